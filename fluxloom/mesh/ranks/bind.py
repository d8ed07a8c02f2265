"""A mesh in a context: named sets, the maps between them, coordinates, metric terms and patches.

Only the sets of nodes and cells exist from the start. Everything else is derived at its first use and kept, so that a
program pays for what it reads. The first use of a map from cells or faces, or of what is computed along one, looks at
the whole mesh: loops never run over one that is not sound (see `fluxloom.mesh.quality.sound`).

On several ranks the mesh is divided when it is bound, and each rank has its part of every set; see `Mesh`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import RaggedMap, TableMap
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.mesh.data.mesh import FloatArray, MeshData, Ragged, unknown_patch
from fluxloom.mesh.data.once import Once
from fluxloom.mesh.geometry.connectivity import Connectivity, InverseRows, inverse_rows
from fluxloom.mesh.io import write as write_data
from fluxloom.mesh.ranks.distribute import DividedPart, Partition, part_of
from fluxloom.mesh.ranks.part import MeshPart, WholePart
from fluxloom.mesh.ranks.renumber import MeshRenumbering
from fluxloom.mesh.ranks.slices import MeshSlice
from fluxloom.mesh.ranks.writing import Values, arrays_of, write_part

__all__ = ["Mesh", "Patches", "bind"]


class Patches(dict[str, Subset]):
    """Subsets of the boundary faces by name; a wrong name gets a helpful answer."""

    def __init__(self, subsets: Mapping[str, Subset], path: str) -> None:
        super().__init__(subsets)
        self._path = path

    def __missing__(self, name: str) -> Subset:
        raise unknown_patch(self._path, name, self)


class Mesh:
    """A mesh bound to a context; ``d`` is its dimension.

    Parameters
    ----------
    data
        The mesh as NumPy arrays. On several ranks: the whole mesh on every rank, or on rank 0 and None elsewhere,
        or each rank's slice, or each rank's part.
    context
        Where its sets and dats live.
    dtype
        Of coordinates and metric terms: ``float64``, ``float32`` or ``float16``.
    renumbering
        How ``data`` was renumbered after it was read; None if it was not.
    partition
        How cells are dealt out to ranks: ``"auto"``, ``"kway"``, ``"rcb"`` or ``"block"``.
    shares
        Fraction of the cells that each rank gets; equal by default.
    maps
        The maps to build on several ranks, out of `fluxloom.mesh.ranks.part.MAPS`; all by default. Fewer need less
        memory and have smaller halos.

    Notes
    -----
    On several ranks sets count the elements that the rank owns, in the numbering of its
    `fluxloom.dsl.declare.parts.Part`, whose ``numbers`` are those of the whole mesh on one rank. Using a property for
    the first time is collective then. `cell_cells` and the like have rows for owned elements: loops read through them.
    `data` and `links` are for one rank.

    Attributes
    ----------
    part : MeshPart
        This rank's part as NumPy arrays; on one rank all of the mesh.
    context : Context
        Where it lives.
    renumbering : MeshRenumbering or None
        Its permutations lead from the numbers of the file to those of the sets and back.
    nodes, cells : Set
        The points and the cells.
    """

    def __init__(
        self,
        data: MeshData | MeshSlice | DividedPart | WholePart | None,
        context: Context,
        *,
        dtype: npt.DTypeLike = "float64",
        renumbering: MeshRenumbering | None = None,
        partition: Partition = "auto",
        shares: Sequence[float] | None = None,
        maps: Iterable[str] | None = None,
    ) -> None:
        self.context, self.renumbering = context, renumbering
        comm = context.comm
        if isinstance(data, MeshPart):
            if data.comm.size != comm.size:
                raise MeshError(f"{data.path}: a part of {data.comm.size} ranks, and the context has {comm.size}")
            self.part: DividedPart | WholePart = data
        else:
            self.part = part_of(comm, data, method=partition, shares=shares, maps=maps)
        self.nodes, self.cells = self._set("nodes"), self._set("cells")
        self._dtype = dtype

    @property
    def data(self) -> MeshData:
        """The mesh as NumPy arrays.

        Raises
        ------
        MeshError
            On several ranks, where `part` holds the arrays.
        """
        return self._whole("the mesh is divided among the ranks, none has it as a whole: use mesh.part").data

    def _whole(self, problem: str) -> WholePart:
        """Return the part of a rank alone."""
        if isinstance(self.part, DividedPart):
            raise MeshError(f"{self.path}: {problem}")
        return self.part

    @property
    def path(self) -> str:
        """Where the mesh came from."""
        return self.part.path

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.part.dimension

    @Once
    def links(self) -> Connectivity:
        """The connectivity as NumPy arrays; the maps share its memory.

        Raises
        ------
        MeshError
            On several ranks, and for a mesh that is not sound (see `fluxloom.mesh.quality.sound`).
        """
        return self._whole("on several ranks no rank has the whole connectivity: use maps, or mesh.part").links

    # -------------------------------------------------------------------------------------- sets
    @Once
    def faces(self) -> Set:
        """Interior faces, each between two cells. In two dimensions they are the interior edges."""
        return self._set("faces")

    @Once
    def boundary(self) -> Set:
        """Boundary faces: patch by patch, in the order of the patches, then those in no patch."""
        return self._set("boundary")

    @Once
    def edges(self) -> Set:
        """Distinct pairs of nodes that an edge of a cell joins, at the boundary too."""
        return self._set("edges")

    @Once
    def patches(self) -> dict[str, Subset]:
        """Boundary faces of each patch; an unknown name is a `MeshError` that lists those there are."""
        subsets = {name: Subset(self.boundary, self.part.patch(name), name) for name in self.part.patches}
        return Patches(subsets, self.path)

    def _set(self, name: str) -> Set:
        """Declare a set: what this rank has of it."""
        return self.context.set(self.part.part(name), name)

    # -------------------------------------------------------------------------------------- maps
    @Once
    def cell_nodes(self) -> TableMap | RaggedMap:
        """Cell -> its nodes, ordered as in `fluxloom.mesh.data.elements`; ragged if the cells differ in type."""
        return self._map(self.cells, self.nodes, "cell_nodes")

    @Once
    def face_nodes(self) -> TableMap | RaggedMap:
        """Interior face -> its nodes, anticlockwise seen from the second cell; ragged if they differ in number."""
        return self._map(self.faces, self.nodes, "face_nodes")

    @Once
    def face_cells(self) -> TableMap:
        """Interior face -> its two cells; the normal points from the first (lower number) to the second."""
        return self._table(self.faces, self.cells, "face_cells")

    @Once
    def boundary_nodes(self) -> TableMap | RaggedMap:
        """Boundary face -> its nodes, anticlockwise seen from outside; ragged if they differ in number."""
        return self._map(self.boundary, self.nodes, "boundary_nodes")

    @Once
    def boundary_cell(self) -> TableMap:
        """Boundary face -> the cell behind it (one leg)."""
        return self._table(self.boundary, self.cells, "boundary_cell")

    @Once
    def edge_nodes(self) -> TableMap:
        """Edge -> its two nodes, the lower number first."""
        return self._table(self.edges, self.nodes, "edge_nodes")

    @Once
    def cell_cells(self) -> RaggedMap:
        """Cell -> the cells across its interior faces."""
        around = self._faces_around
        cells = self.part.table("face_cells")[around.rows, 1 - around.legs]
        return self._ragged(self.cells, self.cells, Ragged(around.offsets, cells), "cell_cells")

    @Once
    def cell_faces(self) -> RaggedMap:
        """Cell -> its interior faces, in the order of `cell_cells`: entry ``j`` leads across face ``j``.

        The cell is the first one of the face, and the normal points outward, where `cell_face_signs` is 1.
        """
        around = self._faces_around
        return self._ragged(self.cells, self.faces, Ragged(around.offsets, around.rows), "cell_faces")

    @Once
    def cell_face_signs(self) -> Dat:
        """1 where a cell is the first one of its face, else -1; a dat on ``cell_faces.entries``."""
        signs = np.where(self._faces_around.legs == 0, 1.0, -1.0)
        return Dat(self.cell_faces.entries, signs, dtype=self._dtype, name="cell_face_signs")

    @Once
    def cell_boundary(self) -> RaggedMap:
        """Cell -> its boundary faces; most rows are empty."""
        around = self._around("boundary_cell", self.boundary, self.cells)
        return self._ragged(self.cells, self.boundary, Ragged(around.offsets, around.rows), "cell_boundary")

    @Once
    def node_cells(self) -> RaggedMap:
        """Node -> the cells that have it, ascending."""
        return self._ragged(self.nodes, self.cells, self.part.node_cells(), "node_cells")

    @Once
    def _faces_around(self) -> InverseRows:
        """The interior faces of each cell, and which of their two cells it is."""
        return self._around("face_cells", self.faces, self.cells)

    def _around(self, name: str, source: Set, target: Set) -> InverseRows:
        """Return the elements that lead to each one that this rank owns, in the order of their global numbers."""
        numbers = self.part.part(source.name).numbers[: source.executed]
        return inverse_rows(self.part.table(name), target.size, numbers)

    def _map(self, source: Set, target: Set, name: str) -> TableMap | RaggedMap:
        if self.part.regular(name):
            return self._table(source, target, name)
        return self._ragged(source, target, self.part.rows(name), name)

    def _table(self, source: Set, target: Set, name: str) -> TableMap:
        return TableMap(source, target, self.part.table(name), name)

    @staticmethod
    def _ragged(source: Set, target: Set, rows: Ragged, name: str) -> RaggedMap:
        return RaggedMap(source, target, rows.offsets, rows.indices, name)

    # -------------------------------------------------------------------- coordinates and metric terms
    @Once
    def x(self) -> Dat:
        """Coordinates of the nodes, ``(d,)``."""
        return self._dat(self.nodes, self.part.points[: self.nodes.size], "x")

    @Once
    def volumes(self) -> Dat:
        """Volumes of the cells (areas when d = 2), scalar."""
        return self._dat(self.cells, self.cell_geometry()[0], "volumes")

    @Once
    def centroids(self) -> Dat:
        """Centroids of the cells, ``(d,)``."""
        return self._dat(self.cells, self.cell_geometry()[1], "centroids")

    @Once
    def face_normals(self) -> Dat:
        """Area vectors of the interior faces, ``(d,)``, from the first cell of `face_cells` to the second."""
        return self._dat(self.faces, self.part.face_geometry("face_nodes")[0], "face_normals")

    @Once
    def face_centres(self) -> Dat:
        """Centroids of the interior faces, ``(d,)``."""
        return self._dat(self.faces, self.part.face_geometry("face_nodes")[1], "face_centres")

    @Once
    def boundary_normals(self) -> Dat:
        """Area vectors of the boundary faces, ``(d,)``, outward."""
        return self._dat(self.boundary, self.part.face_geometry("boundary_nodes")[0], "boundary_normals")

    @Once
    def boundary_centres(self) -> Dat:
        """Centroids of the boundary faces, ``(d,)``."""
        return self._dat(self.boundary, self.part.face_geometry("boundary_nodes")[1], "boundary_centres")

    def cell_geometry(self) -> tuple[FloatArray, FloatArray]:
        """Return volumes and centroids of the cells, see `fluxloom.mesh.ranks.distribute.MeshPart.cell_geometry`."""
        return self.part.cell_geometry()

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
            The file; the suffix tells the format. ``.vtu`` and ``.vtkhdf`` files hold values. Several ranks write
            ``.vtkhdf`` files, together: the file is that of one rank, whole or not at all.
        cell_data, point_data
            Name to a dat on `cells` or `nodes`, or to an array of shape ``(n,)`` or ``(n, components)``; on several
            ranks, of the owned elements.
        **options
            Of the format: a file with values has the patches too with ``patches=True``.

        Raises
        ------
        MeshError
            For a dat on another set, an array of the wrong length, or a format that holds no values or is not
            written by several ranks.
        """
        if isinstance(self.part, DividedPart):
            write_part(Path(path), self.part, self.cells, self.nodes, cell_data, point_data, **options)
            return
        cells = arrays_of(cell_data, self.cells, "cell_data")
        points = arrays_of(point_data, self.nodes, "point_data")
        write_data(path, self.part.data, cell_data=cells, point_data=points, **options)

    def __repr__(self) -> str:
        if self.context.distributed:
            comm, owned = self.context.comm, f"{self.nodes.size} nodes, {self.cells.size} cells"
            return f"Mesh({self.path}, {self.dimension}D, rank {comm.rank} of {comm.size}: {owned})"
        path, cells = self.data.source.path, " + ".join(f"{n} {k}" for k, n in self.data.cell_counts.items())
        return f"Mesh({path}, {self.dimension}D, {self.nodes.size} nodes, {cells})"


def bind(
    data: MeshData | MeshSlice | DividedPart | WholePart | None,
    context: Context,
    *,
    dtype: npt.DTypeLike = "float64",
    partition: Partition = "auto",
    shares: Sequence[float] | None = None,
    maps: Iterable[str] | None = None,
) -> Mesh:
    """Bind a mesh of NumPy arrays to a context.

    Parameters
    ----------
    data
        For instance from `box2d`; run `fluxloom.mesh.quality.check` on one from elsewhere.
    context
        Where its sets and dats live.
    dtype
        Of coordinates and metric terms.
    partition, shares, maps
        On several ranks, as `Mesh` takes them.
    """
    return Mesh(data, context, dtype=dtype, partition=partition, shares=shares, maps=maps)
