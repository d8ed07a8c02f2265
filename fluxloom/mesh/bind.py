"""A mesh in a context: named sets, the maps between them, coordinates, metric terms and patches.

Only the sets of nodes and cells exist from the start. Everything else is derived at its first use and kept,
so that a program pays for what it reads: a node-based finite element code never sees a face.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.maps import RaggedMap, TableMap
from fluxloom.dsl.sets import Set, Subset
from fluxloom.mesh.check import check as check_mesh
from fluxloom.mesh.connectivity import Connectivity
from fluxloom.mesh.elements import element
from fluxloom.mesh.geometry import cell_geometry, face_geometry
from fluxloom.mesh.io import read as read_data
from fluxloom.mesh.io import write as write_data
from fluxloom.mesh.mesh import FloatArray, MeshData, Ragged
from fluxloom.mesh.renumber import MeshRenumbering, Method
from fluxloom.mesh.renumber import renumber as renumber_mesh

__all__ = ["Mesh", "Patches", "bind", "read"]

Values = Mapping[str, Dat | npt.ArrayLike]
"""Name to values: a dat, or an array of shape ``(n,)`` or ``(n, components)``."""


class Patches(dict[str, Subset]):
    """Subsets of the boundary faces by name; a wrong name gets a helpful answer."""

    def __init__(self, subsets: Mapping[str, Subset], path: str) -> None:
        super().__init__(subsets)
        self._path = path

    def __missing__(self, name: str) -> Subset:
        known = ", ".join(self) or "none"
        raise MeshError(f"{self._path}: no patch {name!r}{did_you_mean(name, self)} (patches: {known})")


class Mesh:
    """A mesh bound to a context; ``d`` is its dimension.

    Parameters
    ----------
    data
        The mesh as NumPy arrays.
    context
        Where its sets and dats live.
    dtype
        Of coordinates and metric terms: ``float64``, ``float32`` or ``float16``.
    renumbering
        How ``data`` was renumbered after it was read; None if it was not.

    Attributes
    ----------
    data : MeshData
        The mesh as NumPy arrays.
    context : Context
        Where it lives.
    renumbering : MeshRenumbering or None
        Its permutations lead from the numbers of the file to those of the sets and back.
    nodes, cells : Set
        The points and the cells.
    """

    def __init__(
        self,
        data: MeshData,
        context: Context,
        *,
        dtype: npt.DTypeLike = "float64",
        renumbering: MeshRenumbering | None = None,
    ) -> None:
        self.data, self.context, self.renumbering = data, context, renumbering
        self.nodes = Set(context, data.n_points, "nodes")
        self.cells = Set(context, data.n_cells, "cells")
        self._dtype = dtype

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.data.dimension

    @cached_property
    def links(self) -> Connectivity:
        """The connectivity as NumPy arrays; the maps share its memory."""
        return self.data.connectivity()

    # -------------------------------------------------------------------------------------- sets
    @cached_property
    def faces(self) -> Set:
        """Interior faces, each between two cells. In two dimensions they are the interior edges."""
        return Set(self.context, self.links.n_interior, "faces")

    @cached_property
    def boundary(self) -> Set:
        """Boundary faces: patch by patch, in the order of the patches, then those in no patch."""
        return Set(self.context, self.links.n_boundary, "boundary")

    @cached_property
    def edges(self) -> Set:
        """Distinct pairs of nodes that an edge of a cell joins, at the boundary too."""
        return Set(self.context, len(self.links.edges), "edges")

    @cached_property
    def patches(self) -> dict[str, Subset]:
        """Boundary faces of each patch; an unknown name is a `MeshError` that lists those there are."""
        subsets = {
            name: Subset(self.boundary, np.arange(part.start, part.stop, dtype=np.int32), name)
            for name, part in self.links.patches.items()
        }
        return Patches(subsets, self.data.source.path)

    # -------------------------------------------------------------------------------------- maps
    @cached_property
    def cell_nodes(self) -> TableMap | RaggedMap:
        """Cell -> its nodes, ordered as in `fluxloom.mesh.elements`; ragged if the cells differ in type."""
        return self._map(self.cells, self.nodes, self.data.cell_nodes(), "cell_nodes")

    @cached_property
    def face_nodes(self) -> TableMap | RaggedMap:
        """Interior face -> its nodes, anticlockwise seen from the second cell; ragged if they differ in number."""
        return self._map(self.faces, self.nodes, self.links.interior_nodes, "face_nodes")

    @cached_property
    def face_cells(self) -> TableMap:
        """Interior face -> its two cells; the normal points from the first (lower number) to the second."""
        return TableMap(self.faces, self.cells, self.links.interior_cells, "face_cells")

    @cached_property
    def boundary_nodes(self) -> TableMap | RaggedMap:
        """Boundary face -> its nodes, anticlockwise seen from outside; ragged if they differ in number."""
        return self._map(self.boundary, self.nodes, self.links.boundary_nodes, "boundary_nodes")

    @cached_property
    def boundary_cell(self) -> TableMap:
        """Boundary face -> the cell behind it (one leg)."""
        return TableMap(self.boundary, self.cells, self.links.boundary_cells, "boundary_cell")

    @cached_property
    def edge_nodes(self) -> TableMap:
        """Edge -> its two nodes, the lower number first."""
        return TableMap(self.edges, self.nodes, self.links.edges, "edge_nodes")

    @cached_property
    def cell_cells(self) -> RaggedMap:
        """Cell -> the cells across its interior faces."""
        return self._ragged(self.cells, self.cells, self.links.cell_cells, "cell_cells")

    @cached_property
    def cell_faces(self) -> RaggedMap:
        """Cell -> its interior faces, in the order of `cell_cells`: entry ``j`` leads across face ``j``.

        The cell is the first one of the face, and the normal points outward, where `cell_face_signs` is 1.
        """
        n = self.faces.size
        order = self._face_order()
        numbers = np.arange(n, dtype=np.int32)
        rows = Ragged(self.links.cell_cells.offsets, np.concatenate([numbers, numbers])[order])
        return self._ragged(self.cells, self.faces, rows, "cell_faces")

    @cached_property
    def cell_face_signs(self) -> Dat:
        """1 where a cell is the first one of its face, else -1; a dat on ``cell_faces.entries``."""
        signs = np.where(self._face_order() < self.faces.size, 1.0, -1.0)
        return Dat(self.cell_faces.entries, signs, dtype=self._dtype, name="cell_face_signs")

    @cached_property
    def cell_boundary(self) -> RaggedMap:
        """Cell -> its boundary faces; most rows are empty."""
        owner = self.links.boundary_cells
        order = np.argsort(owner, kind="stable")
        rows = Ragged.from_counts(np.bincount(owner, minlength=self.cells.size), order)
        return self._ragged(self.cells, self.boundary, rows, "cell_boundary")

    @cached_property
    def node_cells(self) -> RaggedMap:
        """Node -> the cells that have it, ascending."""
        return self._ragged(self.nodes, self.cells, self.links.node_cells, "node_cells")

    def _face_order(self) -> npt.NDArray[np.int64]:
        """Return how ``[owners, neighbours]`` of the faces sort into the rows of `cell_cells`."""
        return np.argsort(self.links.interior_cells.T.reshape(-1), kind="stable")

    def _map(self, source: Set, target: Set, rows: Ragged, name: str) -> TableMap | RaggedMap:
        if not len(rows):  # no interior faces: as wide as the faces of the cells are
            width = max((element(kind).face_width for kind in self.data.cells), default=1)
            return TableMap(source, target, np.empty((0, width), dtype=np.int32), name)
        if rows.arity is None:
            return self._ragged(source, target, rows, name)
        return TableMap(source, target, rows.table, name)

    @staticmethod
    def _ragged(source: Set, target: Set, rows: Ragged, name: str) -> RaggedMap:
        return RaggedMap(source, target, rows.offsets, rows.indices, name)

    # -------------------------------------------------------------------- coordinates and metric terms
    @cached_property
    def x(self) -> Dat:
        """Coordinates of the nodes, ``(d,)``."""
        return self._dat(self.nodes, self.data.points, "x")

    @cached_property
    def volumes(self) -> Dat:
        """Volumes of the cells (areas when d = 2), scalar."""
        return self._dat(self.cells, cell_geometry(self.data)[0], "volumes")

    @cached_property
    def centroids(self) -> Dat:
        """Centroids of the cells, ``(d,)``."""
        return self._dat(self.cells, cell_geometry(self.data)[1], "centroids")

    @cached_property
    def face_normals(self) -> Dat:
        """Area vectors of the interior faces, ``(d,)``, from the first cell of `face_cells` to the second."""
        return self._dat(self.faces, self._face_geometry(self.links.interior_nodes)[0], "face_normals")

    @cached_property
    def face_centres(self) -> Dat:
        """Centroids of the interior faces, ``(d,)``."""
        return self._dat(self.faces, self._face_geometry(self.links.interior_nodes)[1], "face_centres")

    @cached_property
    def boundary_normals(self) -> Dat:
        """Area vectors of the boundary faces, ``(d,)``, outward."""
        return self._dat(self.boundary, self._face_geometry(self.links.boundary_nodes)[0], "boundary_normals")

    @cached_property
    def boundary_centres(self) -> Dat:
        """Centroids of the boundary faces, ``(d,)``."""
        return self._dat(self.boundary, self._face_geometry(self.links.boundary_nodes)[1], "boundary_centres")

    def _face_geometry(self, faces: Ragged) -> tuple[FloatArray, FloatArray]:
        return face_geometry(self.data.points, faces)

    def _dat(self, over: Set, values: FloatArray, name: str) -> Dat:
        return Dat(over, values, dtype=self._dtype, name=name)

    # ----------------------------------------------------------------------------------------- files
    def write(
        self,
        path: str | Path,
        cell_data: Values | None = None,
        point_data: Values | None = None,
        **options: Any,
    ) -> None:
        """Write the mesh with values on its cells and nodes.

        Parameters
        ----------
        path
            The file; the suffix tells the format. ``.vtu`` and ``.vtkhdf`` files hold values.
        cell_data, point_data
            Name to a dat on `cells` or `nodes`, or to an array of shape ``(n,)`` or ``(n, components)``.
        **options
            Of the format: a file with values has the patches too with ``patches=True``.

        Raises
        ------
        MeshError
            For a dat on another set, an array of the wrong length, or a format that holds no values.
        """
        cells = _arrays(cell_data, self.cells, "cell_data")
        points = _arrays(point_data, self.nodes, "point_data")
        write_data(path, self.data, cell_data=cells, point_data=points, **options)

    def __repr__(self) -> str:
        path, cells = self.data.source.path, " + ".join(f"{len(b)} {k}" for k, b in self.data.cells.items())
        return f"Mesh({path}, {self.dimension}D, {self.nodes.size} nodes, {cells})"


def bind(data: MeshData, context: Context, *, dtype: npt.DTypeLike = "float64") -> Mesh:
    """Bind a mesh of NumPy arrays to a context.

    Parameters
    ----------
    data
        For instance from `box2d`; run `fluxloom.mesh.check` on one from elsewhere.
    context
        Where its sets and dats live.
    dtype
        Of coordinates and metric terms.
    """
    return Mesh(data, context, dtype=dtype)


def read(
    path: str | Path,
    context: Context,
    *,
    renumber: Method | None = None,
    check: bool = True,
    required_patches: Iterable[str] = (),
    format: str | None = None,
    dtype: npt.DTypeLike = "float64",
) -> Mesh:
    """Read a mesh and bind it to a context.

    Parameters
    ----------
    path
        The file; its suffix tells the format (SU2, Gmsh, VTU, VTKHDF, and meshio's).
    context
        Where its sets and dats live.
    renumber
        ``"rcm"`` or ``"gps"`` bring neighbours close together in memory; None keeps the order of the file.
    check
        Whether to look for broken elements, inverted cells and the like first (see `fluxloom.mesh.check`).
    required_patches
        Patches that must exist.
    format
        Name of the format, when the suffix does not tell.
    dtype
        Of coordinates and metric terms.

    Raises
    ------
    MeshError
        For a broken file or mesh, with the line or element, and for a missing patch, with those there are.
    DeviceUnavailable
        When the format, or renumbering, needs a package that is not installed.
    """
    data = read_data(path, format=format)
    required = tuple(required_patches)
    if check:
        check_mesh(data, required)
    for name in required:
        data.patch(name)
    if renumber is None:
        return Mesh(data, context, dtype=dtype)
    renumbering = renumber_mesh(data, renumber)
    return Mesh(renumbering.mesh, context, dtype=dtype, renumbering=renumbering)


def _arrays(values: Values | None, over: Set, what: str) -> dict[str, npt.ArrayLike] | None:
    """Return plain arrays of values, dats of rank two and more flattened to components."""
    if not values:
        return None
    out: dict[str, npt.ArrayLike] = {}
    for name, value in values.items():
        if isinstance(value, Dat):
            if value.set is not over:
                raise MeshError(f"{what} {name!r} lives on {value.set}, not on the {over.name} of this mesh")
            array = value.read()
            value = array.reshape(over.size, -1) if array.ndim > 2 else array
        out[name] = value
    return out
