"""Slices of a mesh: what each rank holds before the mesh is divided by neighbourhood.

The points, the cells and the faces listed in patches are three tables; a rank holds consecutive rows of each, in
the order of the ranks. Node numbers in them are global. No rank needs the whole mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.comm.rows import block_starts, compress, fetch, from_first
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource

__all__ = ["ListedFaces", "MeshSlice", "as_slice", "corner_mesh", "cut", "face_width", "share_out"]


@dataclass(frozen=True, eq=False)
class ListedFaces:
    """The boundary faces that the patches list, one patch after the other; a rank's slice of them.

    Attributes
    ----------
    names
        Names of the patches.
    offsets : (n_patches + 1,) int64
        Listed faces of patch ``p`` are ``offsets[p] ... offsets[p + 1] - 1``, of all ranks together.
    nodes : (rows, 2 or 4) int32
        Nodes of this rank's rows, padded with -1.
    """

    names: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    nodes: IntArray

    @classmethod
    def of(cls, data: MeshData, rows: slice) -> ListedFaces:
        """Return some rows of the faces that the patches of a mesh list."""
        width = max([face_width(data.dimension), *(faces.width for faces in data.patches.values())])
        tables = [faces.padded(width) for faces in data.patches.values()]
        nodes = np.concatenate(tables) if tables else np.empty((0, width), dtype=np.int32)
        offsets = np.concatenate([[0], np.cumsum([len(faces) for faces in data.patches.values()])]).astype(np.int64)
        return cls(tuple(data.patches), offsets, nodes[rows])

    @property
    def total(self) -> int:
        """Listed faces of all ranks."""
        return int(self.offsets[-1])

    def patch_of(self, position: int) -> tuple[str, int]:
        """Return the patch that lists a face, and the number of the face in it."""
        number = int(np.searchsorted(self.offsets, position, side="right")) - 1
        return self.names[number], position - int(self.offsets[number])


@dataclass(frozen=True, eq=False)
class MeshSlice:
    """One rank's slice of a mesh.

    Attributes
    ----------
    rank, ranks
        Whose slice it is; slices are of equal length, see `fluxloom.comm.rows.block_starts`.
    n_points
        Points of the whole mesh.
    blocks
        Element type to its number of cells in the whole mesh; cells are numbered block after block.
    points : (rows, dimension) float64
        This rank's points.
    cells
        Element type to this rank's cells of the type (all types on every rank, some empty), ``(m, k)`` int32 in
        global node numbers.
    listed
        The faces of the patches.
    path
        Where the mesh came from.
    point_data, cell_data
        Values on this rank's points and cells.
    """

    rank: int
    ranks: int
    n_points: int
    blocks: Mapping[str, int]
    points: FloatArray
    cells: Mapping[str, IntArray]
    listed: ListedFaces
    path: str
    point_data: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    cell_data: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.points.shape[1]

    @property
    def n_cells(self) -> int:
        """Cells of the whole mesh."""
        return sum(self.blocks.values())

    @property
    def point_starts(self) -> npt.NDArray[np.int64]:
        """Where the ranks' points begin, ``(ranks + 1,)``."""
        return block_starts(self.n_points, self.ranks)

    @property
    def cell_starts(self) -> npt.NDArray[np.int64]:
        """Where the ranks' cells begin, ``(ranks + 1,)``."""
        return block_starts(self.n_cells, self.ranks)

    def numbers(self) -> dict[str, range]:
        """Return the global numbers of this rank's cells of each type."""
        first, out = int(self.cell_starts[self.rank]), {}
        for name, block in self.cells.items():
            out[name] = range(first, first + len(block))
            first += len(block)
        return out

    def cell_table(self) -> IntArray:
        """Return the nodes of this rank's cells, ``(rows, most nodes)``, padded with -1."""
        blocks = [block for block in self.cells.values() if len(block)]
        width = max((element(name).n_nodes for name in self.blocks), default=1)
        if len(blocks) == 1 and blocks[0].shape[1] == width:
            return blocks[0]
        wide = [np.pad(block, ((0, 0), (0, width - block.shape[1])), constant_values=-1) for block in blocks]
        return np.concatenate(wide) if wide else np.empty((0, width), dtype=np.int32)


def face_width(dimension: int) -> int:
    """Return the most nodes a face can have."""
    return 2 if dimension == 2 else 4


def cut(data: MeshData, rank: int, ranks: int) -> MeshSlice:
    """Return a rank's slice of a mesh (views where that can be)."""
    if data.polyhedra is not None:
        raise MeshError(
            f"{data.source.path}: a mesh with polyhedra is not cut into slices: give it to part_of "
            "(fluxloom.mesh.ranks.distribute), which divides it among ranks"
        )
    points = slice(*block_starts(data.n_points, ranks)[rank : rank + 2])
    first, last = block_starts(data.n_cells, ranks)[rank : rank + 2]
    cells = {
        name: data.cells[name][max(0, first - part.start) : max(0, last - part.start)]
        for name, part in data.cell_ranges.items()
    }
    width = face_width(data.dimension)
    for name, faces in data.patches.items():
        if any(block.shape[1] > width for block in faces.blocks.values() if len(block)):
            raise MeshError(f"{data.source.path}: patch {name!r} has faces with more than {width} nodes")
    listed = sum(len(faces) for faces in data.patches.values())
    listed = ListedFaces.of(data, slice(*block_starts(listed, ranks)[rank : rank + 2]))
    blocks = {name: len(block) for name, block in data.cells.items()}
    path = data.source.path
    return MeshSlice(rank, ranks, data.n_points, blocks, data.points[points], cells, listed, path)


def as_slice(comm: Comm, data: MeshData | MeshSlice | None) -> MeshSlice:
    """Return this rank's slice of what the ranks hold. Collective.

    Parameters
    ----------
    comm
        The ranks.
    data
        On every rank its slice; or on every rank the whole mesh; or the whole mesh on rank 0 and None elsewhere.

    Raises
    ------
    MeshError
        On all ranks, when it is none of these, or the ranks hold different meshes.
    """
    mine = "nothing" if data is None else "slice" if isinstance(data, MeshSlice) else "mesh"
    held = comm.allgather(mine)
    if set(held) == {"slice"}:
        assert isinstance(data, MeshSlice)
        return data
    if held == ["mesh", *["nothing"] * (comm.size - 1)]:
        return share_out(comm, data if isinstance(data, MeshData) else None)
    if set(held) != {"mesh"}:
        raise MeshError(
            f"the ranks hold {', '.join(held)}: give each rank its slice, or the mesh to all, or to rank 0 alone"
        )
    assert isinstance(data, MeshData)
    sizes = comm.allgather((data.n_points, {name: len(block) for name, block in data.cells.items()}))
    if any(size != sizes[0] for size in sizes):
        raise MeshError(f"{data.source.path}: the ranks hold different meshes: {sizes[0]}, {sizes[-1]}")
    return raise_on_all_ranks(comm, lambda: cut(data, comm.rank, comm.size))


def share_out(comm: Comm, data: MeshData | None) -> MeshSlice:
    """Send each rank its slice of the mesh that rank 0 holds. Collective.

    Parameters
    ----------
    comm
        The ranks.
    data
        The mesh on rank 0; None on the others.

    Notes
    -----
    Rank 0 holds the mesh and what is on its way: once more the points, or the cells of one type. The others
    never hold more than their slices.
    """
    slices = raise_on_all_ranks(
        comm, lambda: [] if data is None else [cut(data, rank, comm.size) for rank in range(comm.size)]
    )
    bare = None
    if slices:
        one = slices[0]
        cells = {name: block[:0] for name, block in one.cells.items()}
        bare = replace(one, points=one.points[:0], cells=cells, listed=replace(one.listed, nodes=one.listed.nodes[:0]))
    shape: MeshSlice = comm.broadcast(bare)

    def sent(of: Callable[[MeshSlice], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        return np.array(from_first(comm, [of(item) for item in slices], of(shape)))

    points, nodes = sent(lambda item: item.points), sent(lambda item: item.listed.nodes)
    cells = {name: sent(lambda item, name=name: item.cells[name]) for name in shape.blocks}
    return replace(shape, rank=comm.rank, points=points, cells=cells, listed=replace(shape.listed, nodes=nodes))


def corner_mesh(comm: Comm, part: MeshSlice) -> tuple[MeshData, npt.NDArray[np.int64]]:
    """Return this rank's cells as a mesh of their own, and the global numbers of its points. Collective.

    The cells keep their order and say in messages which number they have in the whole mesh. Every node number
    must be in range.
    """
    flat = [block.reshape(-1) for block in part.cells.values()]
    numbers, local = compress(np.concatenate(flat) if flat else np.empty(0, dtype=np.int32))
    points = fetch(comm, part.points, part.point_starts, numbers)
    ends = np.cumsum([len(values) for values in flat])
    cells = {
        name: values.reshape(-1, element(name).n_nodes)
        for name, values in zip(part.cells, np.split(local, ends[:-1]) if flat else [], strict=True)
    }
    where = {name: np.arange(found.start, found.stop, dtype=np.int32) for name, found in part.numbers().items()}
    source = MeshSource(part.path, cell_numbers=where, point_numbers=numbers)
    return MeshData(points, cells, {}, source), numbers
