"""Numbers of the edges and faces of the cells that a rank has, and of the degrees of freedom that follow from them.

A rank has all cells that touch one of its points. So the degrees of freedom inside an edge or a face belong to the
owner of one of its points, chosen by the numbers of these alone, and those inside a cell to that of the cell: whoever
owns one has all cells that add to it, ranks agree without a word, and cells of the interior lead to degrees of freedom
of their own rank alone. On several ranks numbers of edges and faces come from a directory: a rank knows those whose
lowest point is in its slice of the points, and none sees the whole mesh. A rank alone has them in its connectivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.comm.rows import Places, RowExchange, before, block_starts, compress, owner_of
from fluxloom.dsl.declare.parts import Part
from fluxloom.fe.cells.cell_dofs import DofRanges
from fluxloom.fe.cells.elements import Lagrange
from fluxloom.mesh.data.mesh import IntArray
from fluxloom.mesh.geometry.connectivity import pair_keys
from fluxloom.mesh.ranks.part import MeshPart, WholePart

__all__ = ["DofNumbers", "dof_part"]

Long = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DofNumbers:
    """What this rank knows of the numbers of its cells' edges and faces.

    Attributes
    ----------
    part
        The mesh.
    edge_keys, edge_numbers
        Keys of the edges, ascending, and their numbers in the whole mesh.
    faces : (cells, faces) integers or None
        Numbers of the faces of each cell, those of the boundary last; only of elements that have points in them.
    ranges
        First dof of each class of entities.
    """

    part: MeshPart
    edge_keys: Long
    edge_numbers: Long
    faces: npt.NDArray[np.integer] | None
    ranges: DofRanges

    @classmethod
    def of(cls, part: MeshPart, lagrange: Lagrange) -> DofNumbers:
        """Find the numbers of the edges and faces of this rank's cells. Collective."""
        points, faces = part.part("nodes").total, None
        keys = numbers = np.zeros(0, dtype=np.int64)
        edges = count = 0
        block = part.part("nodes").numbers[part.table("cell_nodes")[:, : lagrange.corners]]
        if lagrange.order > 1 and isinstance(part, WholePart):
            keys, edges = pair_keys(part.links.edges, points), len(part.links.edges)
            numbers = np.arange(edges)
        elif lagrange.order > 1:
            keys, numbers, edges = _numbered_edges(part, lagrange, block)
        if lagrange.on_faces.size:
            count = part.part("faces").total + part.part("boundary").total
            if isinstance(part, WholePart):
                faces = part.links.cell_faces.indices.reshape(len(block), -1)
            else:
                faces = _numbered_faces(part, lagrange, block)
        ranges = DofRanges.of(lagrange, points, edges, count, part.part("cells").total)
        return cls(part, keys, numbers, faces, ranges)

    @cached_property
    def local(self) -> IntArray:
        """Points of the executed cells, in local numbers."""
        return self.part.table("cell_nodes")[:, : self.ranges.lagrange.corners]

    @cached_property
    def block(self) -> Long:
        """The same in numbers of the whole mesh."""
        return self.part.part("nodes").numbers[self.local]

    @property
    def cells(self) -> Long:
        """Numbers of the executed cells in the whole mesh."""
        return self.part.part("cells").numbers[: len(self.local)]

    @property
    def edge_nodes(self) -> Long:
        """The two points of each edge, in numbers of the whole mesh, ``(edges, 2)``."""
        return np.stack(np.divmod(self.edge_keys, self.part.part("nodes").total), axis=1)

    def edges(self, pairs: npt.NDArray[np.integer]) -> Long:
        """Return the number of the edge of each pair of points ``(m, 2)``, in numbers of the whole mesh."""
        keys = pair_keys(pairs, self.part.part("nodes").total)
        return self.edge_numbers[np.searchsorted(self.edge_keys, keys)]


def _numbered_edges(part: MeshPart, lagrange: Lagrange, block: Long) -> tuple[Long, Long, int]:
    """Return the keys of the edges of this rank's cells, their numbers, and how many edges there are. Collective."""
    comm, points = part.comm, part.part("nodes").total
    keys = np.unique(pair_keys(block[:, np.array(lagrange.kind.edges)].reshape(-1, 2), points))
    post = RowExchange(comm, owner_of(keys // points, block_starts(points, comm.size)))
    known, place = np.unique(post.forward(keys), return_inverse=True)
    first, total = before(comm, known.size)
    return keys, post.back(first + place.reshape(-1)), total


def _numbered_faces(part: MeshPart, lagrange: Lagrange, block: Long) -> Long:
    """Return the number of each face of this rank's cells, boundary faces behind those between cells. Collective.

    Owners of faces tell the directory their numbers; then it is asked.
    """
    comm, nodes = part.comm, part.part("nodes")
    starts, told = block_starts(nodes.total, comm.size), []
    for name, over, base in (("face_nodes", "faces", 0), ("boundary_nodes", "boundary", part.part("faces").total)):
        faces = part.part(over)
        rows = np.sort(nodes.numbers[part.table(name)[: faces.owned, :4]], axis=1)
        told.append(np.column_stack([rows, base + faces.numbers[: faces.owned]]))
    own = np.concatenate(told)
    wanted = np.sort(block[:, np.array(lagrange.kind.faces)].reshape(-1, 4), axis=1)
    asked, place = np.unique(wanted, axis=0, return_inverse=True)
    known = RowExchange(comm, owner_of(own[:, 0], starts)).forward(own)
    post = RowExchange(comm, owner_of(asked[:, 0], starts))
    questions = post.forward(asked)
    _, same = np.unique(np.concatenate([known[:, :4], questions]), axis=0, return_inverse=True)
    same = same.reshape(-1)
    number_of = np.full(int(same.max(initial=-1)) + 1, -1, dtype=np.int64)
    number_of[same[: len(known)]] = known[:, 4]
    return post.back(number_of[same[len(known) :]])[place.reshape(-1)].reshape(len(block), len(lagrange.kind.faces))


# ------------------------------------------------------------------------------------------ who owns what
def _cell_owners(numbers: DofNumbers) -> npt.NDArray[np.int32]:
    """Return the rank of each dof of each cell, ``(cells, n)``."""
    lagrange, block = numbers.ranges.lagrange, numbers.block
    owner = numbers.part.part("nodes").owners(numbers.part.comm.rank)[numbers.local]
    rows = np.arange(len(block))[:, None]
    out = np.empty((len(block), lagrange.size), dtype=np.int32)
    out[:, : lagrange.corners] = owner
    on_edges = zip(lagrange.kind.edges, lagrange.on_edges, strict=True)
    on_faces = zip(lagrange.kind.faces, lagrange.on_faces, strict=False)  # none in the plane
    for corners, dofs in (*on_edges, *on_faces):
        nodes = block[:, corners]
        # not always the lowest point: low numbers are often those of low ranks, which would own all that is shared
        chosen = np.argsort(nodes, axis=1)[rows, nodes.sum(axis=1, keepdims=True) % len(corners)]
        out[:, dofs] = owner[:, corners][rows, chosen]
    out[:, lagrange.inside] = numbers.part.part("cells").owners(numbers.part.comm.rank)[: len(block), None]
    return out


def dof_part(numbers: DofNumbers, cells: Long) -> tuple[Part, IntArray]:
    """Return this rank's part of the dofs of its cells ``(cells, n)``, and these in local numbers. Collective."""
    part = numbers.part
    known, place = compress(cells)
    owner = np.empty(known.size, dtype=np.int32)
    owner[place] = _cell_owners(numbers)
    mine = owner == part.comm.rank
    inside = mine.copy()
    inside[place[part.part("cells").inside :]] = False
    found = Part.of_reads(
        part.comm, known[inside], known[mine & ~inside], known[~mine], owner[~mine], numbers.ranges.size
    )
    return found, Places(found.numbers).of(known).astype(np.int32)[place]
