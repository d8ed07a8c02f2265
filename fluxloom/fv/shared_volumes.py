"""Control volumes on several ranks: each has its own cells, their faces, and the cells across these.

Loops over cells and faces only read values of others, so every face has one owner, that of its first cell, and the halo
is one cell deep; beyond the side of a sector it is the cell whose image is there (`fluxloom.fv.sectors`). Rows of
matrices keep the order of their entries, whatever the number of ranks is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.dsl.parts import Part, refresh_host
from fluxloom.fv.control_volumes import ControlVolumes, SharedVolumes, Wrapped, check_names, check_spacing, match_faces
from fluxloom.fv.sectors import Sector
from fluxloom.fv.shared_sectors import Beyond, shared_sectors
from fluxloom.fv.volume_tables import CellTable, FaceTable, OuterTable, chain_tables, split_tensors, taken
from fluxloom.mesh.geometry import face_geometry, face_moments
from fluxloom.mesh.mesh import Ragged
from fluxloom.mesh.rows import together
from fluxloom.mesh.warped_faces import WARPS, face_warps

if TYPE_CHECKING:
    from fluxloom.mesh.distribute import MeshPart

__all__ = ["FLOW_MAPS", "CellTable", "FaceTable", "OuterTable", "assemble", "shared_volumes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

FLOW_MAPS = ("cell_nodes", "face_cells", "face_nodes", "boundary_cell", "boundary_nodes")
"""Maps with which a mesh has to be divided."""


def shared_volumes(
    part: MeshPart, periodic: Sequence[tuple[str, str]] = (), sectors: Sequence[Sector] = ()
) -> ControlVolumes:
    """Return this rank's control volumes of a divided mesh. Collective.

    Parameters
    ----------
    part
        From `fluxloom.mesh.distribute.distribute_mesh` with the maps `FLOW_MAPS`.
    periodic
        As in `fluxloom.fv.control_volumes.control_volumes`. Faces of these patches are known to every rank while they
        are matched.
    sectors
        As in `fluxloom.fv.sectors.sector_volumes`; so are their faces.

    Raises
    ------
    MeshError
        On every rank, see `fluxloom.fv.control_volumes.control_volumes` and `fluxloom.fv.sectors.sector_volumes`.
    """
    comm = part.comm
    patches = {
        name: range(int(part.listed.offsets[k]), int(part.listed.offsets[k + 1]))
        for k, name in enumerate(part.listed.names)
    }
    check_names(part.path, patches, periodic)
    cells = _stored_cells(part)
    warped = _warped(part)
    outer = _outer_faces(part, warped)
    used = [patches[name] for pair in periodic for name in pair]
    hidden = np.zeros(outer.number.size, dtype=bool)
    for span in used:
        hidden |= (outer.number >= span.start) & (outer.number < span.stop)
    known = taken(cells, np.argsort(cells.number))
    wrapped, others = _periodic_faces(part, patches, periodic, taken(outer, hidden), known)
    faces = chain_tables([_inner_faces(part, known, warped), *wrapped])
    near = [cells, others]
    kept = taken(outer, ~hidden)
    shift = sum((len(span) * (kept.number >= span.stop) for span in used), np.zeros(kept.number.size, dtype=np.int64))
    kept = replace(kept, number=kept.number - shift)
    left = {
        name: range(*(bound - sum(len(s) for s in used if s.stop <= bound) for bound in (span.start, span.stop)))
        for name, span in patches.items()
        if not any(name in pair for pair in periodic)
    }
    beyond = None
    if sectors:
        beyond, kept, partners = shared_sectors(comm, sectors, left, kept, known)
        near.append(partners)
        left = {name: span for name, span in left.items() if not any(name in (s.first, s.second) for s in sectors)}
    totals = (
        part.part("cells").total,
        part.part("faces").total + sum(len(patches[first]) for first, _ in periodic),
        part.part("boundary").total - sum(len(span) for span in used),
    )
    every = chain_tables(near)
    every = taken(every, np.unique(every.number, return_index=True)[1])
    found = assemble(comm, every, faces, kept, left, totals, beyond)
    together(comm, lambda: check_spacing(part.path, found.spacing, found.faces))
    return found


# ------------------------------------------------------------------------------------------ what a rank knows
def _stored_cells(part: MeshPart) -> CellTable:
    """Return the cells that this rank stores of the mesh. Collective."""
    cells, comm = part.part("cells"), part.comm
    values = np.zeros((cells.stored, 1 + part.dimension))
    volumes, centres = together(comm, part.cell_geometry)
    values[: cells.owned, 0], values[: cells.owned, 1:] = volumes, centres
    refresh_host(comm, cells, values)
    owner = np.full(cells.stored, comm.rank, dtype=np.int64)
    for rank, places in zip(cells.neighbours, cells.receive, strict=True):
        owner[places] = rank
    return CellTable(cells.numbers, owner, values[:, 0].copy(), values[:, 1:].copy())


def _warped(part: MeshPart) -> bool:
    """Return whether there are warped faces on any rank. Collective."""
    tables = (part.table("face_nodes"), part.table("boundary_nodes"))
    here = any(face_warps(part.points, Ragged.from_padded(table))[0].size > 0 for table in tables)
    return any(part.comm.allgather(here))


def _moments(points: Array, nodes: Ragged, warped: bool) -> Array:
    """Return the second moments of faces, and what their triangles have beside the mean normal."""
    found = face_moments(points, nodes).reshape(len(nodes), -1)
    if not warped:
        return found
    whole = np.zeros((len(nodes), WARPS))
    rows, tensors = face_warps(points, nodes)
    whole[rows] = tensors
    return np.concatenate([found, whole], axis=1)


def _inner_faces(part: MeshPart, known: CellTable, warped: bool) -> FaceTable:
    """Return the faces between two cells one of which this rank owns."""
    cells, faces, table = part.part("cells"), part.part("faces"), part.table("face_cells")
    mine = np.flatnonzero((table < cells.owned).any(axis=1))
    nodes = Ragged.from_padded(part.table("face_nodes")[mine])
    area, middle = face_geometry(part.points, nodes)
    first, second = cells.numbers[table[mine]].T
    origin = known.centre[known.place(first)]
    way = known.centre[known.place(second)] - origin
    return FaceTable(faces.numbers[mine], first, second, area, way, middle - origin,
                     _moments(part.points, nodes, warped))  # fmt: skip


def _outer_faces(part: MeshPart, warped: bool) -> OuterTable:
    """Return the boundary faces of the cells that this rank owns."""
    cells, faces, behind = part.part("cells"), part.part("boundary"), part.table("boundary_cell")[:, 0]
    mine = np.flatnonzero(behind < cells.owned)
    mine = mine[np.argsort(faces.numbers[mine])]
    nodes = Ragged.from_padded(part.table("boundary_nodes")[mine])
    moments = _moments(part.points, nodes, warped)
    return OuterTable(faces.numbers[mine], cells.numbers[behind[mine]], *face_geometry(part.points, nodes), moments)


def _periodic_faces(
    part: MeshPart,
    patches: Mapping[str, range],
    periodic: Sequence[tuple[str, str]],
    outer: OuterTable,
    known: CellTable,
) -> tuple[list[FaceTable], CellTable]:
    """Return the faces of periodic patches that touch cells of this rank, and all cells behind these patches."""
    comm = part.comm
    behind = taken(known, known.place(outer.cell))
    gathered = comm.allgather((outer, behind))
    every, cells = chain_tables([item[0] for item in gathered]), chain_tables([item[1] for item in gathered])
    order = np.argsort(every.number)
    every, cells = taken(every, order), taken(cells, order)
    base, found = part.part("faces").total, []
    for pair in periodic:
        spans = [np.searchsorted(every.number, (patches[name].start, patches[name].stop)) for name in pair]
        places = {name: range(int(low), int(high)) for name, (low, high) in zip(pair, spans, strict=True)}
        match = together(comm, lambda pair=pair, places=places: match_faces(
            part.path, pair, places, every.centre, every.area))  # fmt: skip
        first, second = taken(cells, match.first), taken(cells, match.second)
        number = base + np.arange(match.first.size)
        base += match.first.size
        mine = (first.owner == comm.rank) | (second.owner == comm.rank)
        way, arm = second.centre - first.centre - match.shift, every.centre[match.first] - first.centre
        found.append(FaceTable(number[mine], first.number[mine], second.number[mine], every.area[match.first][mine],
                            way[mine], arm[mine], every.moment[match.first][mine]))  # fmt: skip
    return found, cells


# ------------------------------------------------------------------------------------------ parts
def assemble(
    comm: Comm,
    near: CellTable,
    faces: FaceTable,
    outer: OuterTable,
    patches: Mapping[str, range],
    totals: tuple[int, int, int],
    beyond: Beyond | None = None,
) -> ControlVolumes:
    """Return the control volumes in local numbers: own cells, those of the halo, boundary elements. Collective.

    Parameters
    ----------
    comm
        The ranks.
    near
        The cells of this rank, those across their faces, and those whose images they have beyond, ascending.
    faces
        Those between two cells of which this rank has one, in any order.
    outer, patches
        Boundary faces of its cells, ascending, and patch to global numbers of boundary faces.
    totals
        Cells, faces between cells and boundary faces of all ranks.
    beyond
        Boundary faces that have images of cells beyond, of no patch; all ranks give them, or none.
    """
    faces = taken(faces, np.argsort(faces.number))
    shared = _shared(comm, near, faces, outer, totals, beyond)
    cells, table = shared.cells, _Places(shared.cells.numbers)
    whole, behind = taken(near, near.place(cells.numbers)), table.of(outer.cell)
    between = np.stack([table.of(faces.first), table.of(faces.second)], axis=1)
    edge = cells.stored + np.arange(outer.number.size)
    areas = np.concatenate([faces.area, outer.area])
    outward = outer.centre - whole.centre[behind]
    ways, arms = np.concatenate([faces.way, outward]), np.concatenate([faces.arm, outward])
    turned = None if beyond is None else beyond.turned(edge, outer, table.of(beyond.images.partner))
    if beyond is not None and turned is not None:
        arms[len(between) + turned.elements - cells.stored] = beyond.images.arm
    spacing = np.abs(np.einsum("ij,ij->i", areas, ways)) / np.linalg.norm(areas, axis=1)
    spans = {
        name: range(*(cells.stored + int(np.searchsorted(outer.number, bound)) for bound in (span.start, span.stop)))
        for name, span in patches.items()
    }
    centres = np.concatenate([whole.centre, outer.centre])
    table_of_faces = np.concatenate([between, np.stack([behind, edge], axis=1)])
    wrapped = Wrapped.of(centres, table_of_faces, ways)
    moments, warps = split_tensors(np.concatenate([faces.moment, outer.moment]), centres.shape[1])
    return ControlVolumes(whole.volume, centres, table_of_faces, areas, spacing, arms, spans, wrapped, shared, turned,
                          moments, warps)  # fmt: skip


def _shared(
    comm: Comm,
    near: CellTable,
    faces: FaceTable,
    outer: OuterTable,
    totals: tuple[int, int, int],
    beyond: Beyond | None,
) -> SharedVolumes:
    """Return the parts of cells, elements and faces. Collective.

    A face is in the interior if both cells are owned, a cell if all its faces are; boundary elements are, but those
    that are images of cells of other ranks: these, their faces and the cells behind them are not.
    """
    n_cells, n_inner, n_outer = totals
    owners = np.stack([near.owner[near.place(faces.first)], near.owner[near.place(faces.second)]], axis=1)
    crossing = (owners != comm.rank).any(axis=1)
    apart, partners = _apart(comm, near, outer, beyond)
    touched = np.unique(np.concatenate([faces.first[crossing], faces.second[crossing], outer.cell[apart], partners]))
    own = near.number[near.owner == comm.rank]
    inside, rest = np.setdiff1d(own, touched), np.intersect1d(own, touched)
    others = taken(near, near.place(np.setdiff1d(touched, own)))
    cells = Part.of_reads(comm, inside, rest, others.number, others.owner, n_cells)
    near_by, away_by = outer.number[~apart], outer.number[apart]
    elements = Part.of_reads(
        comm, np.concatenate([inside, n_cells + near_by]), np.concatenate([rest, n_cells + away_by]),
        others.number, others.owner, n_cells + n_outer,
    )  # fmt: skip
    edge = np.arange(outer.number.size)
    order = cells.stored + edge
    ends = np.split(np.arange(cells.stored), [inside.size, cells.owned])
    element_order = np.concatenate([ends[0], order[~apart], ends[1], order[apart], ends[2]])
    mine = owners[:, 0] == comm.rank
    within, across, away = (np.flatnonzero(chosen) for chosen in (mine & ~crossing, mine & crossing, ~mine))
    away = away[np.argsort(owners[away, 0], kind="stable")]
    part = Part.of_reads(
        comm, np.concatenate([faces.number[within], n_inner + near_by]),
        np.concatenate([faces.number[across], n_inner + away_by]),
        faces.number[away], owners[away, 0], n_inner + n_outer,
    )  # fmt: skip
    order = crossing.size + edge
    face_order = np.concatenate([within, order[~apart], across, order[apart], away])
    return SharedVolumes(comm, cells, elements, part, element_order, face_order)


def _apart(
    comm: Comm, near: CellTable, outer: OuterTable, beyond: Beyond | None
) -> tuple[npt.NDArray[np.bool_], Index]:
    """Return which boundary elements are images of cells of other ranks, and these cells."""
    apart = np.zeros(outer.number.size, dtype=bool)
    if beyond is None:
        return apart, np.empty(0, dtype=np.int64)
    away = near.owner[near.place(beyond.images.partner)] != comm.rank
    apart[np.searchsorted(outer.number, beyond.images.number[away])] = True
    return apart, beyond.images.partner[away]


class _Places:
    """Where global numbers are, in any order."""

    def __init__(self, numbers: Index) -> None:
        self._order = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._order]

    def of(self, asked: Index) -> Index:
        return self._order[np.searchsorted(self._sorted, asked)]
