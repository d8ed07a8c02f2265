"""A mesh in a context: named sets, the maps between them, coordinates, metric terms and patches.

Only the sets of nodes and cells exist from the start. Everything else is derived at its first use and kept, so that a
program pays for what it reads. The first use of a map from cells or faces, or of what is computed along one, looks at
the whole mesh: loops never run over one that is not sound (see `fluxloom.mesh.sound`).

On several ranks the mesh is divided when it is bound, and each rank has its part of every set; see `Mesh`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.maps import RaggedMap, TableMap
from fluxloom.dsl.sets import Set, Subset
from fluxloom.mesh.connectivity import Connectivity, connectivity
from fluxloom.mesh.distribute import MeshPart, Partition, distribute_mesh
from fluxloom.mesh.elements import element
from fluxloom.mesh.geometry import cell_measures, face_geometry
from fluxloom.mesh.inverse import InverseRows, inverse_rows
from fluxloom.mesh.io import write as write_data
from fluxloom.mesh.mesh import FloatArray, IntArray, MeshData, Ragged, unknown_patch
from fluxloom.mesh.once import Once
from fluxloom.mesh.renumber import MeshRenumbering
from fluxloom.mesh.slices import MeshSlice, as_slice
from fluxloom.mesh.sound import require_positive, require_sound
from fluxloom.mesh.surface import tell_unnamed
from fluxloom.mesh.writing import Values, arrays_of, write_part

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
        The maps to build on several ranks, out of `fluxloom.mesh.distribute.MAPS`; all by default. Fewer need less
        memory and have smaller halos.

    Notes
    -----
    On several ranks sets count the elements that the rank owns, in the numbering of its
    `fluxloom.dsl.parts.Part`, whose ``numbers`` are those of the whole mesh on one rank. Using a property for the
    first time is collective then. `cell_cells` and the like have rows for owned elements: loops read through them.
    `data` and `links` are for one rank.

    Attributes
    ----------
    part : MeshPart or None
        This rank's part as NumPy arrays; None on one rank.
    context : Context
        Where it lives.
    renumbering : MeshRenumbering or None
        Its permutations lead from the numbers of the file to those of the sets and back.
    nodes, cells : Set
        The points and the cells.
    """

    def __init__(
        self,
        data: MeshData | MeshSlice | MeshPart | None,
        context: Context,
        *,
        dtype: npt.DTypeLike = "float64",
        renumbering: MeshRenumbering | None = None,
        partition: Partition = "auto",
        shares: Sequence[float] | None = None,
        maps: Iterable[str] | None = None,
    ) -> None:
        self.context, self.renumbering = context, renumbering
        self.part: MeshPart | None = None
        if context.ranked:
            comm, given = context.comm, data
            if not isinstance(given, MeshPart):
                given = distribute_mesh(as_slice(comm, given), comm, method=partition, shares=shares, maps=maps)
            self.part = given
        elif not isinstance(data, MeshData):
            raise MeshError(f"a mesh on one rank is bound from its arrays (MeshData), not from {type(data).__name__}")
        self._data = data
        self.nodes = self._set("nodes", lambda: self.data.n_points)
        self.cells = self._set("cells", lambda: self.data.n_cells)
        self._dtype = dtype

    @property
    def data(self) -> MeshData:
        """The mesh as NumPy arrays.

        Raises
        ------
        MeshError
            On several ranks, where `part` holds the arrays.
        """
        if self.part is not None or not isinstance(self._data, MeshData):
            raise MeshError(f"{self.path}: the mesh is divided among the ranks, none has it as a whole: use mesh.part")
        return self._data

    @property
    def path(self) -> str:
        """Where the mesh came from."""
        return self.data.source.path if self.part is None else self.part.path

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.data.dimension if self.part is None else self.part.dimension

    @Once
    def links(self) -> Connectivity:
        """The connectivity as NumPy arrays; the maps share its memory.

        Raises
        ------
        MeshError
            On several ranks, and for a mesh that is not sound (see `fluxloom.mesh.sound`).
        """
        if self.part is not None:
            raise MeshError(f"{self.path}: on several ranks no rank has the whole connectivity: use maps, or mesh.part")
        return self._checked[0]

    # -------------------------------------------------------------------------------------- sets
    @Once
    def faces(self) -> Set:
        """Interior faces, each between two cells. In two dimensions they are the interior edges."""
        return self._set("faces", lambda: self.links.n_interior)

    @Once
    def boundary(self) -> Set:
        """Boundary faces: patch by patch, in the order of the patches, then those in no patch."""
        return self._set("boundary", lambda: self.links.n_boundary)

    @Once
    def edges(self) -> Set:
        """Distinct pairs of nodes that an edge of a cell joins, at the boundary too."""
        return self._set("edges", lambda: len(self.links.edges))

    @Once
    def patches(self) -> dict[str, Subset]:
        """Boundary faces of each patch; an unknown name is a `MeshError` that lists those there are."""
        part = self.part
        if part is not None:
            found = {name: part.patch(name) for name in part.listed.names}
        else:
            found = {n: np.arange(p.start, p.stop, dtype=np.int32) for n, p in self.links.patches.items()}
        subsets = {name: Subset(self.boundary, indices, name) for name, indices in found.items()}
        return Patches(subsets, self.path)

    def _set(self, name: str, size: Callable[[], int]) -> Set:
        """Declare a set: this rank's part, or all of it."""
        return Set(self.context, size(), name) if self.part is None else self.context.set(self.part.part(name), name)

    # -------------------------------------------------------------------------------------- maps
    @Once
    def cell_nodes(self) -> TableMap | RaggedMap:
        """Cell -> its nodes, ordered as in `fluxloom.mesh.elements`; ragged if the cells differ in type."""
        return self._map(self.cells, self.nodes, lambda: self.links.cell_nodes, "cell_nodes")

    @Once
    def face_nodes(self) -> TableMap | RaggedMap:
        """Interior face -> its nodes, anticlockwise seen from the second cell; ragged if they differ in number."""
        return self._map(self.faces, self.nodes, lambda: self.links.interior_nodes, "face_nodes")

    @Once
    def face_cells(self) -> TableMap:
        """Interior face -> its two cells; the normal points from the first (lower number) to the second."""
        return self._table(self.faces, self.cells, lambda: self.links.interior_cells, "face_cells")

    @Once
    def boundary_nodes(self) -> TableMap | RaggedMap:
        """Boundary face -> its nodes, anticlockwise seen from outside; ragged if they differ in number."""
        return self._map(self.boundary, self.nodes, lambda: self.links.boundary_nodes, "boundary_nodes")

    @Once
    def boundary_cell(self) -> TableMap:
        """Boundary face -> the cell behind it (one leg)."""
        return self._table(self.boundary, self.cells, lambda: self.links.boundary_cells, "boundary_cell")

    @Once
    def edge_nodes(self) -> TableMap:
        """Edge -> its two nodes, the lower number first."""
        return self._table(self.edges, self.nodes, lambda: self.links.edges, "edge_nodes")

    @Once
    def cell_cells(self) -> RaggedMap:
        """Cell -> the cells across its interior faces."""
        around = self._faces_around
        pairs = self.links.interior_cells if self.part is None else self.part.table("face_cells")
        cells = pairs[around.rows, 1 - around.legs]
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
        around = self._around("boundary_cell", self.boundary, self.cells, lambda: self.links.boundary_cells[:, None])
        return self._ragged(self.cells, self.boundary, Ragged(around.offsets, around.rows), "cell_boundary")

    @Once
    def node_cells(self) -> RaggedMap:
        """Node -> the cells that have it, ascending."""
        if self.part is None:
            return self._ragged(self.nodes, self.cells, self.links.node_cells, "node_cells")
        numbers = self.part.part("cells").numbers[: self.cells.executed]
        around = inverse_rows(self.part.table("cell_nodes"), self.nodes.size, numbers, by_leg=False)
        return self._ragged(self.nodes, self.cells, Ragged(around.offsets, around.rows), "node_cells")

    @Once
    def _faces_around(self) -> InverseRows:
        """The interior faces of each cell, and which of their two cells it is."""
        return self._around("face_cells", self.faces, self.cells, lambda: self.links.interior_cells)

    def _around(self, name: str, source: Set, target: Set, whole: Callable[[], IntArray]) -> InverseRows:
        """Return the elements that lead to each one that this rank owns, in the order of their global numbers."""
        table = self.part.table(name) if self.part is not None else whole()
        numbers = None if source.part is None else source.part.numbers[: source.executed]
        return inverse_rows(table, target.size, numbers)

    def _map(self, source: Set, target: Set, whole: Callable[[], Ragged], name: str) -> TableMap | RaggedMap:
        if self.part is not None:
            table = self.part.table(name)
            if self.part.regular(name):
                return TableMap(source, target, table, name)
            here = table >= 0
            return self._ragged(source, target, Ragged.from_counts(here.sum(axis=1), table[here]), name)
        rows = whole()
        if not len(rows):  # no interior faces: as wide as the faces of the cells are
            width = max((element(kind).face_width for kind in self.data.cells), default=1)
            return TableMap(source, target, np.empty((0, width), dtype=np.int32), name)
        if rows.arity is None:
            return self._ragged(source, target, rows, name)
        return TableMap(source, target, rows.table, name)

    def _table(self, source: Set, target: Set, whole: Callable[[], npt.ArrayLike], name: str) -> TableMap:
        return TableMap(source, target, whole() if self.part is None else self.part.table(name), name)

    @staticmethod
    def _ragged(source: Set, target: Set, rows: Ragged, name: str) -> RaggedMap:
        return RaggedMap(source, target, rows.offsets, rows.indices, name)

    # -------------------------------------------------------------------- coordinates and metric terms
    @Once
    def x(self) -> Dat:
        """Coordinates of the nodes, ``(d,)``."""
        points = self.data.points if self.part is None else self.part.points[: self.nodes.size]
        return self._dat(self.nodes, points, "x")

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
        return self._dat(self.faces, self._face_geometry("face_nodes")[0], "face_normals")

    @Once
    def face_centres(self) -> Dat:
        """Centroids of the interior faces, ``(d,)``."""
        return self._dat(self.faces, self._face_geometry("face_nodes")[1], "face_centres")

    @Once
    def boundary_normals(self) -> Dat:
        """Area vectors of the boundary faces, ``(d,)``, outward."""
        return self._dat(self.boundary, self._face_geometry("boundary_nodes")[0], "boundary_normals")

    @Once
    def boundary_centres(self) -> Dat:
        """Centroids of the boundary faces, ``(d,)``."""
        return self._dat(self.boundary, self._face_geometry("boundary_nodes")[1], "boundary_centres")

    @Once
    def _checked(self) -> tuple[Connectivity, tuple[FloatArray, FloatArray]]:
        """Connectivity, volumes and centroids of a mesh that was found sound: nothing is derived from another."""
        links = connectivity(self.data)
        volumes, centroids, parts = cell_measures(self.data)
        tell_unnamed(require_sound(self.data, links, volumes, parts))
        return links, (volumes, centroids)

    def cell_geometry(self) -> tuple[FloatArray, FloatArray]:
        """Return volumes and centroids of the cells.

        Raises
        ------
        MeshError
            For a cell that is inverted or flat; dividing a mesh has found those that are inverted, on every rank.
        """
        if self.part is not None:
            return self.part.cell_geometry()
        volumes, centroids = self._checked[1]
        require_positive(self.data, volumes)
        return volumes, centroids

    def _face_geometry(self, name: str) -> tuple[FloatArray, FloatArray]:
        if self.part is not None:
            return self.part.face_geometry(name)
        inner = name == "face_nodes"
        return face_geometry(self.data.points, self.links.interior_nodes if inner else self.links.boundary_nodes)

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
        if self.part is not None:
            write_part(Path(path), self.part, self.cells, self.nodes, cell_data, point_data, **options)
            return
        cells = arrays_of(cell_data, self.cells, "cell_data")
        points = arrays_of(point_data, self.nodes, "point_data")
        write_data(path, self.data, cell_data=cells, point_data=points, **options)

    def __repr__(self) -> str:
        if self.part is not None:
            comm, owned = self.context.comm, f"{self.nodes.size} nodes, {self.cells.size} cells"
            return f"Mesh({self.path}, {self.dimension}D, rank {comm.rank} of {comm.size}: {owned})"
        path, cells = self.data.source.path, " + ".join(f"{n} {k}" for k, n in self.data.cell_counts.items())
        return f"Mesh({path}, {self.dimension}D, {self.nodes.size} nodes, {cells})"


bind = Mesh
"""Bind a mesh of NumPy arrays to a context; parameters are those of `Mesh`."""
