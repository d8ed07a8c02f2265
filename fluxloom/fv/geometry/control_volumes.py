"""From a mesh to control volumes: on one rank, or the part that each of several ranks has of them.

Loops over cells and faces only read values of others, so every face has one owner, that of its first cell, and the halo
is one cell deep; beyond the side of a sector it is the cell whose image is there (`fluxloom.fv.geometry.sectors`). Rows
of matrices keep the order of their entries, whatever the number of ranks is. A mesh on one rank has one part, without a
halo.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.declare.parts import refresh_host
from fluxloom.fv.geometry.volume_tables import (
    CellTable,
    FaceShapes,
    FaceTable,
    OuterTable,
    Totals,
    ascending,
    assemble,
    chain_tables,
    taken,
)
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.mesh.data.mesh import MeshData, Ragged
from fluxloom.mesh.geometry.connectivity import Connectivity
from fluxloom.mesh.geometry.metrics import face_geometry

if TYPE_CHECKING:
    from fluxloom.fv.geometry.sectors import Sector
    from fluxloom.mesh.ranks.part import MeshPart

__all__ = ["FLOW_MAPS", "control_volumes", "shared_volumes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

FLOW_MAPS = ("cell_nodes", "face_cells", "face_nodes", "boundary_cell", "boundary_nodes")
"""Maps with which a mesh has to be divided."""

_FIT = 1e-6
"""How far a periodic face may be from its partner, as a part of the distance between the patches."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Periodic faces: boundary faces on one side, their partners, and the shift from one side to the other."""

    first: Index
    second: Index
    shift: Array


def control_volumes(
    mesh: MeshData,
    periodic: Sequence[tuple[str, str]] = (),
    links: Connectivity | None = None,
    *,
    sectors: Sequence[Sector] = (),
) -> ControlVolumes:
    """Return the control volumes of a mesh.

    Parameters
    ----------
    mesh
        Any mesh; warped faces have the mean normal of their triangles here, and beside it what `warps` tells.
    periodic
        Pairs of patches of which one is the other, moved: translations.
    links
        The connectivity of the mesh, where it is known already.
    sectors
        Pairs of patches of which one is the other, turned; they are no boundaries any more.

    Raises
    ------
    MeshError
        If a patch does not exist or is used twice, the faces of a pair do not lie behind each other, a boundary face is
        in no patch, or the mesh is not sound: see `fluxloom.mesh.quality.sound`.
    """
    from fluxloom.mesh.ranks.part import WholePart

    return shared_volumes(WholePart(mesh, links), periodic, sectors)


def shared_volumes(
    part: MeshPart, periodic: Sequence[tuple[str, str]] = (), sectors: Sequence[Sector] = ()
) -> ControlVolumes:
    """Return this rank's control volumes of a mesh. Collective.

    Parameters
    ----------
    part
        From `fluxloom.mesh.ranks.distribute.distribute_mesh` with the maps `FLOW_MAPS`, or all of a mesh.
    periodic, sectors
        As in `control_volumes`. Faces of these patches are known to every rank while they are matched.

    Raises
    ------
    MeshError
        On every rank, see `control_volumes`.
    """
    comm, patches = part.comm, part.patches
    check_names(part.path, patches, periodic)
    cells = _stored_cells(part)
    part.require_listed()
    inner, within = _inner_faces(part, cells)
    outer, around = _outer_faces(part)
    used = [patches[name] for pair in periodic for name in pair]
    near, faces, kept, ways, shapes, total = [cells], [inner], outer, None, [within, around], part.part("faces").total
    if periodic:
        hidden = np.logical_or.reduce([(outer.number >= s.start) & (outer.number < s.stop) for s in used])
        some, rest = np.flatnonzero(hidden), np.flatnonzero(~hidden)
        joined, ways, between, behind = _periodic_faces(part, periodic, taken(outer, some), around.take(some), cells)
        near, faces, kept = [cells, behind], [inner, joined], taken(outer, rest)
        kept = replace(kept, number=kept.number - sum(len(span) * (kept.number >= span.stop) for span in used))
        shapes, total = [within, between, around.take(rest)], total + sum(len(patches[first]) for first, _ in periodic)
    left = {
        name: range(*(bound - sum(len(s) for s in used if s.stop <= bound) for bound in (span.start, span.stop)))
        for name, span in patches.items()
        if not any(name in pair for pair in periodic)
    }
    beyond = None
    if sectors:
        from fluxloom.fv.geometry.sectors import joined_sectors

        beyond, kept, partners = joined_sectors(comm, sectors, left, kept, cells)
        near.append(partners)
        left = {name: span for name, span in left.items() if not any(name in (s.first, s.second) for s in sectors)}
    totals = Totals(
        part.part("cells").total, total, part.part("boundary").total - sum(map(len, used)), part.part("faces").total
    )
    found = assemble(
        comm, ascending(chain_tables(near)), chain_tables(faces), kept, left, totals, beyond, ways=ways,
        shapes=FaceShapes(part.points, shapes),
    )  # fmt: skip
    raise_on_all_ranks(comm, lambda: check_spacing(part.path, found.spacing, found.faces))
    return found


# ------------------------------------------------------------------------------------------ what a rank knows
def _stored_cells(part: MeshPart) -> CellTable:
    """Return the cells that this rank stores of the mesh, ascending. Collective."""
    cells, comm = part.part("cells"), part.comm
    values = []
    for known in raise_on_all_ranks(comm, part.cell_geometry):
        values.append(np.concatenate([known, np.zeros((cells.stored - cells.owned, *known.shape[1:]))]))
        refresh_host(comm, cells, values[-1])
    return ascending(CellTable(cells.numbers, cells.owners(comm.rank), *values))


def _inner_faces(part: MeshPart, known: CellTable) -> tuple[FaceTable, Ragged]:
    """Return the faces between two cells one of which this rank owns, ascending, and their nodes."""
    cells, faces, table = part.part("cells"), part.part("faces"), part.table("face_cells")
    mine = np.flatnonzero((table[:, 0] < cells.owned) | (table[:, 1] < cells.owned))
    mine = mine[np.argsort(faces.numbers[mine], kind="stable")]
    nodes = part.rows("face_nodes").take(mine)
    area, middle = face_geometry(part.points, nodes)
    first, second = (cells.numbers[table[mine, side]] for side in (0, 1))
    place = known.place(first)
    for axis, centre in enumerate(known.centre.T):
        middle[:, axis] -= centre[place]
    return FaceTable(faces.numbers[mine], first, second, area, middle), nodes


def _outer_faces(part: MeshPart) -> tuple[OuterTable, Ragged]:
    """Return the boundary faces of the cells that this rank owns, ascending, and their nodes."""
    cells, faces, behind = part.part("cells"), part.part("boundary"), part.table("boundary_cell")[:, 0]
    mine = np.flatnonzero(behind < cells.owned)
    mine = mine[np.argsort(faces.numbers[mine], kind="stable")]
    nodes = part.rows("boundary_nodes").take(mine)
    return OuterTable(faces.numbers[mine], cells.numbers[behind[mine]], *face_geometry(part.points, nodes)), nodes


def _periodic_faces(
    part: MeshPart, periodic: Sequence[tuple[str, str]], outer: OuterTable, nodes: Ragged, known: CellTable
) -> tuple[FaceTable, Array, Array, CellTable]:
    """Return the faces of periodic patches at cells of this rank, ways and shapes, and all cells behind the patches."""
    comm, patches = part.comm, part.patches
    behind = taken(known, known.place(outer.cell))
    gathered = comm.allgather((outer, behind, FaceShapes(part.points, [nodes]).table()))
    every, cells = chain_tables([item[0] for item in gathered]), chain_tables([item[1] for item in gathered])
    order = np.argsort(every.number)
    every, cells = taken(every, order), taken(cells, order)
    shapes = np.concatenate([item[2] for item in gathered])[order]
    base, found, ways, kept = part.part("faces").total, [], [], []
    for pair in periodic:
        spans = [np.searchsorted(every.number, (patches[name].start, patches[name].stop)) for name in pair]
        places = {name: range(int(low), int(high)) for name, (low, high) in zip(pair, spans, strict=True)}
        match = raise_on_all_ranks(comm, lambda pair=pair, places=places: match_faces(
            part.path, pair, places, every.centre, every.area))  # fmt: skip
        first, second = taken(cells, match.first), taken(cells, match.second)
        number = base + np.arange(match.first.size)
        base += match.first.size
        mine = (first.owner == comm.rank) | (second.owner == comm.rank)
        arm = every.centre[match.first] - first.centre
        found.append(FaceTable(number[mine], first.number[mine], second.number[mine], every.area[match.first][mine],
                               arm[mine]))  # fmt: skip
        ways.append((second.centre - first.centre - match.shift)[mine])
        kept.append(shapes[match.first][mine])
    return chain_tables(found), np.concatenate(ways), np.concatenate(kept), cells


# ------------------------------------------------------------------------------------------ patches
def check_names(path: str, patches: Collection[str], periodic: Sequence[tuple[str, str]]) -> None:
    """Raise `MeshError` unless pairs name different patches that exist."""
    seen: set[str] = set()
    for pair in periodic:
        if isinstance(pair, str) or len(pair) != 2:
            raise MeshError(f"periodic: pairs of patches are wanted, not {pair!r}")
        for name in pair:
            if name not in patches:
                known = ", ".join(patches) or "none"
                hint = did_you_mean(name, patches)
                raise MeshError(f"{path}: periodic: no patch {name!r}{hint} (patches: {known})")
            if name in seen:
                raise MeshError(f"{path}: periodic: patch {name!r} is named twice")
            seen.add(name)


def match_faces(path: str, names: tuple[str, str], patches: Mapping[str, range], centres: Array, areas: Array) -> Pairs:
    """Return the faces of the first patch and their partners in the second.

    Parameters
    ----------
    path, names
        Of the mesh and of the patches, for messages.
    patches
        Name to its faces.
    centres, areas
        Of all faces, ``(n, d)``.
    """
    from scipy.spatial import KDTree

    first, second = (np.arange(patches[name].start, patches[name].stop) for name in names)
    what = f"{path}: periodic patches {names[0]!r} and {names[1]!r}"
    if first.size != second.size:
        raise MeshError(f"{what} have {first.size} and {second.size} faces; as many are wanted")
    weight = np.linalg.norm(areas, axis=1)
    middle = [np.average(centres[side], axis=0, weights=weight[side]) for side in (first, second)]
    shift = middle[1] - middle[0]
    reach = float(np.linalg.norm(shift))
    distance, partner = KDTree(centres[second]).query(centres[first] + shift)
    if distance.max() > _FIT * reach or np.unique(partner).size != partner.size:
        raise MeshError(
            f"{what}: moved by {np.round(shift, 6).tolist()} a face is {distance.max():.3g} away from its partner; "
            "the faces on both sides have to be alike"
        )
    second = second[partner]
    opposite = np.linalg.norm(areas[first] + areas[second], axis=1)
    if (opposite > 1e3 * _FIT * weight[first]).any():
        raise MeshError(f"{what}: faces that lie behind each other have different areas or directions")
    return Pairs(first, second, shift)


def check_spacing(path: str, spacing: Array, faces: Index) -> None:
    """Raise `MeshError` unless the elements of each face have a distance."""
    if (flat := np.flatnonzero(~(spacing > 0))).size:
        raise MeshError(f"{path}: the elements {faces[flat[0]].tolist()} of a face lie beside each other")
