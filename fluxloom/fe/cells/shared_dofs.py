"""Degrees of freedom of a mesh that is divided among ranks: numbered as those of the whole mesh, each of one rank.

A rank has all cells that touch one of its points. So the degrees of freedom inside an edge or a face belong to the
owner of one of its points, chosen by the numbers of these alone, and those inside a cell to that of the cell: whoever
owns one has all cells that add to it, ranks agree without a word, and cells of the interior lead to degrees of freedom
of their own rank alone. Numbers of edges and faces come from a directory: a rank knows those whose lowest point is in
its slice of the points. No rank sees the whole mesh.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import together
from fluxloom.comm.rows import Post, before, block_starts, owner_of
from fluxloom.core.errors import MeshError
from fluxloom.dsl.declare.parts import Part
from fluxloom.fe.cells.cell_dofs import (
    DofRanges,
    cell_dofs,
    cell_points,
    edge_points,
    element_of,
    face_points,
    sides_of,
)
from fluxloom.fe.cells.dofs import Dofs
from fluxloom.fe.cells.elements import Lagrange
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource
from fluxloom.mesh.geometry.connectivity import pair_keys
from fluxloom.mesh.geometry.jacobians import require_elements_sound
from fluxloom.mesh.ranks.part import MeshPart

__all__ = ["shared_dofs"]

Long = npt.NDArray[np.int64]


def shared_dofs(part: MeshPart, order: int) -> Dofs:
    """Number the degrees of freedom of a divided mesh. Collective.

    Parameters
    ----------
    part
        This rank's part, with the maps ``cell_nodes`` and ``boundary_nodes``, of hexahedra of order 2 and more
        ``face_nodes`` too.
    order
        See `fluxloom.fe.cells.dofs.lagrange_dofs`.

    Returns
    -------
    Dofs
        With this rank's ``part``, whose numbers are those of `fluxloom.fe.cells.dofs.lagrange_dofs`.

    Raises
    ------
    MeshError
        On every rank: for cells of several kinds or another kind, points that no cell uses, cells that are flat,
        concave or tangled, and a map that is missing.
    SolverError
        For an order that `fluxloom.fe.cells.elements.Lagrange` does not have.
    """
    lagrange = element_of(part.path, [name for name, count in part.blocks.items() if count], order)
    together(part.comm, lambda: _check_points(part, lagrange))
    together(part.comm, lambda: _check_elements(part, lagrange))
    numbering = _numbering(part, lagrange)
    cells = np.empty((len(numbering.local), lagrange.size), dtype=np.int64)
    executed = part.part("cells").numbers[: len(cells)]
    cell_dofs(numbering.ranges, numbering.block, numbering.edges, numbering.faces, executed, cells)
    numbers, first, place = np.unique(cells, return_index=True, return_inverse=True)
    found, local = _part(part, numbering, numbers, first, place.reshape(cells.shape))
    points = _points(numbering, found.numbers[: found.owned])
    order_of = np.argsort(found.numbers)
    patches = {}
    for name in part.patches:
        on = order_of[np.searchsorted(found.numbers[order_of], _on_patch(numbering, name))]
        patches[name] = np.sort(on[on < found.owned]).astype(np.int32)
    return Dofs(lagrange, local, points, patches, found)


@dataclass(frozen=True, eq=False)
class _Numbering:
    """What this rank knows of the numbers of its cells' edges and faces.

    Attributes
    ----------
    part
        The mesh.
    edge_keys, edge_numbers
        Keys of the edges, ascending, and their numbers in the whole mesh.
    faces : (cells, faces) int64 or None
        Numbers of the faces of each cell; only of elements that have points in them.
    ranges
        First dof of each class of entities.
    """

    part: MeshPart
    edge_keys: Long
    edge_numbers: Long
    faces: Long | None
    ranges: DofRanges

    @cached_property
    def local(self) -> IntArray:
        """Points of the executed cells, in local numbers."""
        return _local_cells(self.part, self.ranges.lagrange)

    @cached_property
    def block(self) -> Long:
        """The same in numbers of the whole mesh."""
        return self.part.part("nodes").numbers[self.local]

    def edges(self, pairs: npt.NDArray[np.integer]) -> Long:
        """Return the number of the edge of each pair of points ``(m, 2)``, in numbers of the whole mesh."""
        keys = pair_keys(pairs, self.part.part("nodes").total)
        return self.edge_numbers[np.searchsorted(self.edge_keys, keys)]


def _local_cells(part: MeshPart, lagrange: Lagrange) -> IntArray:
    """Return the points of the cells that this rank executes, in local numbers."""
    return part.table("cell_nodes")[:, : lagrange.corners]


def _check_elements(part: MeshPart, lagrange: Lagrange) -> None:
    """Refuse cells that are flat, or whose determinant changes its sign."""
    cells, kind, nodes = part.part("cells"), lagrange.kind.name, _local_cells(part, lagrange)
    block, numbers = nodes[: cells.owned], cells.numbers[: cells.owned].astype(np.int32)
    source = MeshSource(part.path, cell_numbers={kind: numbers})
    require_elements_sound(MeshData(part.points, {kind: block}, {}, source), block, kind)


def _check_points(part: MeshPart, lagrange: Lagrange) -> None:
    """Refuse points that no cell uses."""
    nodes = part.part("nodes")
    unused = np.ones(nodes.stored, dtype=bool)
    unused[_local_cells(part, lagrange)] = False
    lonely = nodes.numbers[: nodes.owned][unused[: nodes.owned]]
    if lonely.size:
        raise MeshError(
            f"{part.path}: no cell uses point {int(lonely.min())} (rank {part.comm.rank} has {lonely.size} such "
            "points); remove them from the points and renumber the cells and patches"
        )


def _numbering(part: MeshPart, lagrange: Lagrange) -> _Numbering:
    """Find the numbers of the edges and faces of this rank's cells. Collective."""
    points, block = part.part("nodes").total, part.part("nodes").numbers[_local_cells(part, lagrange)]
    keys = numbers = np.zeros(0, dtype=np.int64)
    edges = 0
    if lagrange.order > 1:
        keys, numbers, edges = _numbered_edges(part, lagrange, block)
    faces, count = None, 0
    if lagrange.on_faces.size:
        faces = _numbered_faces(part, lagrange, block)
        count = part.part("faces").total + part.part("boundary").total
    ranges = DofRanges.of(lagrange, points, edges, count, part.part("cells").total)
    return _Numbering(part, keys, numbers, faces, ranges)


def _numbered_edges(part: MeshPart, lagrange: Lagrange, block: Long) -> tuple[Long, Long, int]:
    """Return the keys of the edges of this rank's cells, their numbers, and how many edges there are. Collective."""
    comm, points = part.comm, part.part("nodes").total
    keys = np.unique(pair_keys(block[:, np.array(lagrange.kind.edges)].reshape(-1, 2), points))
    post = Post(comm, owner_of(keys // points, block_starts(points, comm.size)))
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
    known = Post(comm, owner_of(own[:, 0], starts)).forward(own)
    post = Post(comm, owner_of(asked[:, 0], starts))
    questions = post.forward(asked)
    _, same = np.unique(np.concatenate([known[:, :4], questions]), axis=0, return_inverse=True)
    same = same.reshape(-1)
    number_of = np.full(int(same.max(initial=-1)) + 1, -1, dtype=np.int64)
    number_of[same[: len(known)]] = known[:, 4]
    return post.back(number_of[same[len(known) :]])[place.reshape(-1)].reshape(len(block), len(lagrange.kind.faces))


# ------------------------------------------------------------------------------------------ who owns what
def _cell_owners(numbering: _Numbering) -> npt.NDArray[np.int32]:
    """Return the rank of each dof of each cell, ``(cells, n)``."""
    lagrange, block = numbering.ranges.lagrange, numbering.block
    owner = numbering.part.part("nodes").owners(numbering.part.comm.rank)[numbering.local]
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
    out[:, lagrange.inside] = numbering.part.part("cells").owners(numbering.part.comm.rank)[: len(block), None]
    return out


def _part(part: MeshPart, numbering: _Numbering, numbers: Long, first: Long, place: Long) -> tuple[Part, IntArray]:
    """Return this rank's part of the dofs, and the cells' dofs in local numbers. Collective.

    Parameters
    ----------
    numbers
        Of the dofs of this rank's cells, ascending.
    first
        Where each is found first among the dofs of the cells.
    place : (cells, n)
        Which of them the cells have.
    """
    owner = _cell_owners(numbering).reshape(-1)[first]
    mine = owner == part.comm.rank
    inside = mine.copy()
    inside[place[part.part("cells").inside :]] = False
    found = Part.of_reads(
        part.comm, numbers[inside], numbers[mine & ~inside], numbers[~mine], owner[~mine], numbering.ranges.size
    )
    local = np.empty(numbers.size, dtype=np.int32)
    local[np.searchsorted(numbers, found.numbers)] = np.arange(numbers.size, dtype=np.int32)
    return found, local[place]


# ------------------------------------------------------------------------------------------ places, patches
def _points(numbering: _Numbering, wanted: Long) -> FloatArray:
    """Return the places of some dofs of this rank's cells; see `fluxloom.fe.cells.dofs.Dofs`."""
    part, ranges, lagrange = numbering.part, numbering.ranges, numbering.ranges.lagrange
    nodes = part.part("nodes").numbers
    order = np.argsort(nodes)
    total = part.part("nodes").total
    numbers, points = [nodes], [part.points]
    if ranges.inner:
        pairs = np.stack([numbering.edge_keys // total, numbering.edge_keys % total], axis=1)
        numbers.append(ranges.of_edges(numbering.edge_numbers))
        points.append(edge_points(lagrange, part.points[order[np.searchsorted(nodes[order], pairs)]]))
    if numbering.faces is not None:
        faces, first = np.unique(numbering.faces, return_index=True)
        corners = numbering.local[:, np.array(lagrange.kind.faces)].reshape(-1, 4)[first]
        numbers.append(ranges.of_faces(faces))
        points.append(face_points(lagrange, nodes[corners], part.points[corners]))
    numbers.append(ranges.of_cells(part.part("cells").numbers[: len(numbering.local)]))
    points.append(cell_points(lagrange, part.points[numbering.local]))
    every = np.concatenate(numbers)
    ascending = np.argsort(every)
    return np.concatenate(points)[ascending[np.searchsorted(every[ascending], wanted)]]


def _on_patch(numbering: _Numbering, name: str) -> Long:
    """Return the dofs on those faces of a patch that this rank has: all that touch a dof of its own.

    Numbers of the whole mesh.
    """
    part, ranges = numbering.part, numbering.ranges
    span, table = part.patches[name], part.table("boundary_nodes")
    numbers = part.part("boundary").numbers[: len(table)]
    chosen = (numbers >= span.start) & (numbers < span.stop)
    nodes = part.part("nodes").numbers[table[chosen]][:, : len(ranges.lagrange.kind.faces[0])]
    found = [np.unique(nodes)]
    if ranges.inner:
        found.append(ranges.of_edges(np.unique(numbering.edges(sides_of(nodes)))))
    if ranges.face_inner:
        found.append(ranges.of_faces(part.part("faces").total + numbers[chosen]))
    return np.concatenate(found)
