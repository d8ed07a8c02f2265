"""Faces and edges of a mesh of which every rank holds a slice; numbered as those of the whole mesh are.

Each rank pairs the faces of its own cells. Those that find no twin meet in a directory: the rank that has the
highest node of a face in its slice of the points is asked for the twin. So only faces between slices travel. A face
gets its number from the first of its two cells, as in `fluxloom.mesh.geometry.connectivity`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm
from fluxloom.comm.rows import RowExchange, before, block_starts, distinct, fetch, owner_of, place
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import IntArray, MeshData, Ragged
from fluxloom.mesh.geometry.connectivity import HalfFaces, face_senses, half_faces, mixed_rows, pair_keys
from fluxloom.mesh.geometry.metrics import cell_measures
from fluxloom.mesh.quality.check import fail_unlisted
from fluxloom.mesh.quality.sound import fail_over
from fluxloom.mesh.quality.surface import Surface
from fluxloom.mesh.ranks.slices import MeshSlice, face_width

__all__ = ["SliceFaces", "derive_edges", "derive_faces", "surface_of"]

Long = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_NONE = -1


@dataclass(frozen=True, eq=False)
class SliceFaces:
    """The faces whose numbers this rank gives: consecutive rows, in the order of the ranks.

    Attributes
    ----------
    n_interior, n_boundary
        Faces of the whole mesh.
    interior_nodes : (rows, 2 or 3 or 4) int32
        Outward from the first cell, global; -1 pads triangles beside quads.
    interior_cells : (rows, 2) int32
        The two cells, the lower number first.
    boundary_nodes : (boundary rows, 2 or 3 or 4) int32
        Outward.
    boundary_cells : (boundary rows,) int32
        The cell behind each.
    unlisted
        Boundary faces of the whole mesh that are in no patch; they come last.
    """

    n_interior: int
    n_boundary: int
    interior_nodes: IntArray
    interior_cells: IntArray
    boundary_nodes: IntArray
    boundary_cells: IntArray
    unlisted: int


class _Twins(NamedTuple):
    """For each half face of this rank: the twin's place in the walk over all cells, its cell, sense, listed place."""

    place: Long
    cell: Long
    sense: Long
    listed: Long


def derive_faces(
    comm: Comm, part: MeshSlice, corners: MeshData, nodes: Long, *, negative: Mask | None = None, check: bool = False
) -> SliceFaces:
    """Find the faces of a mesh. Collective.

    Parameters
    ----------
    comm
        The ranks.
    part
        This rank's slice.
    corners, nodes
        Its cells as a mesh of their own and the global numbers of its points, from
        `fluxloom.mesh.ranks.slices.corner_mesh`.
    negative : (cells,)
        Cells with a negative volume; none by default.
    check
        Whether to look also for a third cell at a face that two cells of one slice share, which all faces have
        to travel for, and to ask that every boundary face is in a patch.

    Raises
    ------
    MeshError
        On all ranks: when three or more cells share a face, two lie on the same side of it, or a patch lists a face
        that is not on the boundary or was listed before; with ``check``, when a boundary face is in no patch.
    """
    half = raise_on_all_ranks(comm, lambda: _half_faces(part, corners))
    base, _ = before(comm, len(half.twins))
    outward = np.append(nodes, _NONE)[half.nodes].astype(np.int32)
    sense = face_senses(outward)
    if negative is not None:
        sense ^= negative[half.cells]
    twins = _twins(comm, part, half, outward, sense, base, check)
    own = np.arange(base, base + len(half.twins))
    cells = half.cells.astype(np.int64) + int(part.cell_starts[comm.rank])
    raise_on_all_ranks(comm, lambda: _refuse_over(corners, half, twins, sense))
    first, outer = np.flatnonzero(twins.place > own), np.flatnonzero(twins.place == _NONE)
    interior = np.stack([cells[first], twins.cell[first]], axis=1).astype(np.int32)
    free = twins.listed[outer] == _NONE
    skipped, unlisted = before(comm, int(free.sum()))
    if check and unlisted:
        raise_on_all_ranks(comm, lambda: _refuse_unlisted(part, corners, half, outer[free], unlisted))
    number = np.where(free, part.listed.total + skipped + np.cumsum(free) - 1, twins.listed[outer])
    rows = np.concatenate([outward[outer], cells[outer, None].astype(np.int32)], axis=1)
    starts = block_starts(part.listed.total + unlisted, comm.size)
    rows = place(comm, number, rows, starts)
    n_interior = before(comm, len(first))[1]
    boundary = np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])
    return SliceFaces(n_interior, int(starts[-1]), outward[first], interior, *boundary, unlisted)


def derive_edges(comm: Comm, part: MeshSlice) -> IntArray:
    """Return this rank's slice of the distinct node pairs that an edge of a cell joins. Collective.

    Returns
    -------
    (rows, 2) int32 array
        Smaller node first, ascending over all ranks.
    """
    keys = [np.empty(0, dtype=np.int64)]
    for name, block in part.cells.items():
        keys.append(distinct(pair_keys(block[:, np.array(element(name).edges)].reshape(-1, 2), part.n_points)))
    mine = distinct(np.concatenate(keys))
    post = RowExchange(comm, owner_of(mine // part.n_points, part.point_starts))
    found = distinct(post.forward(mine))
    return np.stack([found // part.n_points, found % part.n_points], axis=1).astype(np.int32)


def surface_of(comm: Comm, part: MeshSlice, corners: MeshData, faces: SliceFaces) -> Surface:
    """Return the boundary of a mesh that is divided: all of it on every rank, which tries its slice. Collective.

    Parameters
    ----------
    part, corners
        This rank's slice, and its cells as a mesh of their own.
    faces
        From `derive_faces`.
    """
    known = np.empty((corners.n_cells, part.dimension + 1))
    for name, numbers in corners.cell_ranges.items():
        known[numbers.start : numbers.stop, :-1] = corners.points[corners.cells[name]].mean(axis=1)
    known[:, -1] = cell_measures(corners)[0]
    behind = fetch(comm, known, part.cell_starts, faces.boundary_cells)
    nodes, cells, behind = (
        np.concatenate(comm.allgather(rows)) for rows in (faces.boundary_nodes, faces.boundary_cells, behind)
    )
    numbers, local = np.unique(nodes[nodes >= 0], return_inverse=True)
    points = fetch(comm, part.points, part.point_starts, numbers)
    starts = block_starts(faces.n_boundary, comm.size)
    bounds = np.cumsum(list(part.blocks.values()))

    def locate(cell: int) -> str:
        return f"{part.path}: {list(part.blocks)[int(np.searchsorted(bounds, cell, side='right'))]} element {cell}"

    return Surface(
        points, numbers, Ragged.from_counts((nodes >= 0).sum(axis=1), local.reshape(-1).astype(np.int32)), cells,
        np.arange(faces.n_boundary) >= part.listed.total, behind[:, -1] >= 0.0, behind[:, :-1],
        np.arange(starts[comm.rank], starts[comm.rank + 1]), locate, lambda cell, place: "",
    )  # fmt: skip


def _half_faces(part: MeshSlice, corners: MeshData) -> HalfFaces:
    """Return the faces of this rank's cells, paired where both cells are here."""
    half = half_faces(corners)
    if half.groups:
        first = int(part.cell_starts[part.rank])
        cells = ", ".join(str(int(cell) + first) for cell in half.cells[half.groups[0]])
        raise _crowded(part, cells)
    return half


def _crowded(part: MeshSlice, cells: str) -> MeshError:
    return MeshError(
        f"{part.path}: a face is shared by the cells {cells}; at most two cells may share a face: "
        "remove duplicate or overlapping cells"
    )


def _refuse_over(corners: MeshData, half: HalfFaces, twins: _Twins, sense: Mask) -> None:
    """Refuse cells that lie over their neighbours; see `fluxloom.mesh.quality.sound`."""
    over = np.flatnonzero((twins.place >= 0) & (twins.sense == sense))
    if over.size:
        cell = int(np.bincount(half.cells[over]).argmax())
        beside = int(twins.cell[over[half.cells[over] == cell][0]])
        fail_over(corners, cell, f"cell {beside}", over.size)


def _twins(
    comm: Comm, part: MeshSlice, half: HalfFaces, outward: IntArray, sense: Mask, base: int, check: bool
) -> _Twins:
    """Return the twins of this rank's half faces, of which some are on other ranks."""
    offset = int(part.cell_starts[comm.rank])
    paired = half.twins >= 0
    position = np.where(paired, half.twins + base, _NONE)
    cell = np.where(paired, half.cells[half.twins].astype(np.int64) + offset, _NONE)
    listed = np.full(len(position), _NONE, dtype=np.int64)
    turn = np.where(paired, sense[half.twins], _NONE).astype(np.int64)
    single = np.flatnonzero(~paired)
    keys = _sorted(outward[single], part.dimension)
    columns = [(single + base)[:, None], half.cells[single, None] + offset, sense[single, None]]
    rows = np.concatenate([keys, *columns], axis=1)
    post = RowExchange(comm, owner_of(keys[:, -1], part.point_starts))
    came = post.forward(rows.astype(np.int64))
    wanted, bad = _listed_rows(comm, part)
    inquiry = RowExchange(comm, owner_of(wanted[:, -2], part.point_starts))
    asked = inquiry.forward(wanted)
    answers, missed, crowd = _meet(came, asked, face_width(part.dimension))
    if check:
        once = _sorted(outward[half.twins > np.arange(len(half.twins))], part.dimension)
        inner = RowExchange(comm, owner_of(once[:, -1], part.point_starts)).forward(once)
        crowd = crowd or _third(came, inner, face_width(part.dimension))
    raise_on_all_ranks(comm, lambda: _refuse(part, crowd))
    found = post.back(answers)
    position[single], cell[single], turn[single], listed[single] = found.T
    _refuse_stray(comm, part, bad + missed)
    return _Twins(position, cell, turn, listed)


def _sorted(nodes: IntArray, dimension: int) -> Long:
    """Return faces with their nodes ascending, as wide as faces can be; -1 pads in front."""
    rows = np.sort(nodes, axis=1).astype(np.int64)
    return np.pad(rows, ((0, 0), (face_width(dimension) - rows.shape[1], 0)), constant_values=_NONE)


def _listed_rows(comm: Comm, part: MeshSlice) -> tuple[Long, list[int]]:
    """Return the listed faces of this rank, nodes and place in the list, and the places of those that cannot be."""
    first = int(block_starts(part.listed.total, comm.size)[comm.rank])
    keys = _sorted(part.listed.nodes, part.dimension)
    bad = (keys >= part.n_points).any(axis=1) | (keys[:, -1] < 0)
    places = np.arange(first, first + len(keys))
    rows = np.concatenate([keys, places[:, None]], axis=1)
    return rows[~bad], [int(spot) for spot in places[bad]]


def _meet(halves: Long, listed: Long, width: int) -> tuple[Long, list[int], str]:
    """Match the faces that came to the directory.

    Returns
    -------
    answers : (rows of ``halves``, 4) int64
        The twin's place, cell and sense, and the place of the face in the list; -1 where there is none.
    missed
        Places of listed faces that are not on the boundary, or were listed before.
    crowd
        The cells of a face of three or more cells; empty if there is none.
    """
    n = len(halves)
    keys = np.concatenate([halves[:, :width], listed[:, :width]])
    if not len(keys):
        return np.empty((0, 4), dtype=np.int64), [], ""
    group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    mine, theirs = group[:n], group[n:]
    count = np.bincount(mine, minlength=int(group.max()) + 1)
    answers = np.full((n, 4), _NONE, dtype=np.int64)
    if (count > 2).any():
        return answers, [], ", ".join(str(cell) for cell in np.sort(halves[mine == np.argmax(count > 2), width + 1]))
    total = np.zeros(len(count), dtype=np.int64)
    np.add.at(total, mine, np.arange(n))
    double = np.flatnonzero(count[mine] == 2)
    answers[double, :3] = halves[total[mine[double]] - double, width:]
    spot = np.full(len(count), np.iinfo(np.int64).max)
    np.minimum.at(spot, theirs, listed[:, width])
    outer = np.flatnonzero((count[mine] == 1) & (spot[mine] < np.iinfo(np.int64).max))
    answers[outer, 3] = spot[mine[outer]]
    good = (count[theirs] == 1) & (spot[theirs] == listed[:, width])
    return answers, [int(place) for place in listed[~good, width]], ""


def _third(halves: Long, inner: Long, width: int) -> str:
    """Return a cell whose face two other cells share already; empty if there is none."""
    mine, theirs = mixed_rows(halves[:, :width]), mixed_rows(inner)
    suspect = inner[np.isin(theirs, mine)]
    if not len(suspect):
        return ""
    keys = np.concatenate([np.unique(suspect, axis=0), np.unique(halves[:, :width], axis=0)])
    distinct, count = np.unique(keys, axis=0, return_counts=True)
    twice = distinct[count == 2]
    if not len(twice):
        return ""
    cell = int(halves[(halves[:, :width] == twice[0]).all(axis=1), width + 1][0])
    return f"{cell} and two others"


def _refuse(part: MeshSlice, crowd: str) -> None:
    if crowd:
        raise _crowded(part, crowd)


def _refuse_stray(comm: Comm, part: MeshSlice, places: list[int]) -> None:
    """Raise on all ranks when the patches list faces that are not on the boundary, or twice."""
    found = [spot for spot in comm.allgather(min(places, default=None)) if spot is not None]
    if found:
        name, index = part.listed.patch_of(min(found))
        raise MeshError(
            f"{part.path}: face {index} of patch {name!r} is not a boundary face, or is listed twice; "
            "run fluxloom mesh check for its nodes"
        )


def _refuse_unlisted(part: MeshSlice, corners: MeshData, half: HalfFaces, free: Long, total: int) -> None:
    """Raise with the first boundary face of this rank that is in no patch."""
    if len(free):
        nodes = half.nodes[free[0]]
        fail_unlisted(corners, int(half.cells[free[0]]), nodes[nodes >= 0], total, part.listed.names)
