"""From a mesh to control volumes: on one rank, or the part that each of several ranks has of them.

Loops over cells and faces only read values of others, so every face has one owner, that of its first cell, and the halo
is one cell deep; beyond the side of a sector it is the cell whose image is there (`fluxloom.fv.sectors`). Rows of
matrices keep the order of their entries, whatever the number of ranks is. A mesh on one rank has one part, without a
halo.

What one rank knows of them is first in global numbers, before it numbers them itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.dsl.parts import Part, refresh_host
from fluxloom.fv.volumes import ControlVolumes, SharedVolumes, Turned, Wrapped
from fluxloom.mesh.check import require_listed
from fluxloom.mesh.connectivity import Connectivity
from fluxloom.mesh.geometry import WARPS, face_geometry, face_moments, face_warps
from fluxloom.mesh.mesh import MeshData, Ragged
from fluxloom.mesh.rows import together

if TYPE_CHECKING:
    from fluxloom.fv.sectors import Sector
    from fluxloom.mesh.mesh_part import MeshPart

__all__ = [
    "FLOW_MAPS", "Beyond", "CellTable", "FaceShapes", "FaceTable", "ImageTable", "OuterTable", "Places", "Totals",
    "ascending", "assemble", "chain_tables", "control_volumes", "shared_volumes", "taken",
]  # fmt: skip

class Places:
    """Where global numbers are among some, in any order."""

    def __init__(self, numbers: Index) -> None:
        self._order = None if (numbers[1:] > numbers[:-1]).all() else np.argsort(numbers, kind="stable")
        self._sorted = numbers if self._order is None else numbers[self._order]

    def of(self, asked: Index) -> Index:
        """Return the places of numbers that are there."""
        found = _found(self._sorted, asked)
        return found if self._order is None else self._order[found]


def _found(numbers: Index, asked: Index) -> Index:
    """Return the places of numbers among ascending ones; those that follow each other need no search."""
    if numbers.size and numbers[-1] - numbers[0] == numbers.size - 1:
        return asked - numbers[0]
    return np.searchsorted(numbers, asked)


@dataclass(frozen=True, eq=False)
class CellTable:
    """Cells by global number, ascending: who owns them, volume and centre."""

    number: Index
    owner: Index
    volume: Array
    centre: Array

    def place(self, asked: Index) -> Index:
        """Return the places of global numbers."""
        return _found(self.number, asked)


@dataclass(frozen=True, eq=False)
class FaceTable:
    """Faces between two cells: global numbers, areas, ways from the first to the face."""

    number: Index
    first: Index
    second: Index
    area: Array
    arm: Array


@dataclass(frozen=True, eq=False)
class OuterTable:
    """Boundary faces: global number, the cell behind, areas, centres of what is beyond (of the face)."""

    number: Index
    cell: Index
    area: Array
    centre: Array


@dataclass(frozen=True, eq=False)
class ImageTable:
    """Boundary faces with the image of a cell beyond: face, this cell, the rotation, way from behind to the face."""

    number: Index
    partner: Index
    which: Index
    arm: Array


@dataclass(frozen=True, eq=False)
class Beyond:
    """Boundary faces of this rank with images beyond, and the rotations ``(m, d, d)`` of all ranks."""

    images: ImageTable
    rotations: Array

    def turned(self, edge: Index, outer: OuterTable, cells: Index) -> Turned:
        """Return them by the numbers of this rank.

        Parameters
        ----------
        edge, outer
            Numbers of the boundary elements, and their faces, ascending.
        cells
            Number of the partner of each image.
        """
        place = np.searchsorted(outer.number, self.images.number)
        return Turned(edge[place], cells, self.images.which, self.rotations)


Table = TypeVar("Table", CellTable, FaceTable, ImageTable, OuterTable)


def taken(table: Table, places: npt.NDArray[Any]) -> Table:
    """Return some rows of a table."""
    return type(table)(*(getattr(table, field.name)[places] for field in fields(table)))


def ascending(table: Table) -> Table:
    """Return the rows of a table in the order of their numbers, each once."""
    if (table.number[1:] > table.number[:-1]).all():
        return table
    return taken(table, np.unique(table.number, return_index=True)[1])


def chain_tables(items: Sequence[Table]) -> Table:
    """Return the rows of several tables, one table behind the other."""
    if len(items) == 1:
        return items[0]
    kind = type(items[0])
    return kind(*(np.concatenate([getattr(item, field.name) for item in items]) for field in fields(kind)))


@dataclass(frozen=True, eq=False)
class FaceShapes:
    """Second moments of faces, and what warped ones have beside the mean normal; found when they are asked for.

    Attributes
    ----------
    points : (n, d)
        The nodes; of tables any places.
    pieces
        Faces one behind the other: their nodes, or what `table` returned for them.
    """

    points: Array
    pieces: Sequence[Ragged | Array]

    def moments(self) -> Array:
        """Return the second moments of all faces, ``(faces, d, d)``."""
        d = self.points.shape[1]
        return np.concatenate([
            face_moments(self.points, piece) if isinstance(piece, Ragged) else piece[:, : d * d].reshape(-1, d, d)
            for piece in self.pieces
        ])  # fmt: skip

    def warps(self) -> tuple[Index, Array]:
        """Return which faces are warped, and what their triangles have, ``(m, 28)``."""
        rows, tensors, begin = [], [], 0
        for piece in self.pieces:
            if isinstance(piece, Ragged):
                some, found = face_warps(self.points, piece)
            else:
                whole = piece[:, self.points.shape[1] ** 2 :]
                some = np.flatnonzero(whole.any(axis=1))
                found = whole[some] if some.size else np.empty((0, WARPS))
            rows.append(begin + some)
            tensors.append(found)
            begin += len(piece)
        return np.concatenate(rows).astype(np.int64), np.concatenate(tensors)

    def table(self) -> Array:
        """Return both in one table, ``(faces, d d + 28)``, zeros where faces are plane."""
        moments, (rows, tensors) = self.moments(), self.warps()
        whole = np.zeros((len(moments), WARPS))
        whole[rows] = tensors
        return np.concatenate([moments.reshape(len(moments), self.points.shape[1] ** 2), whole], axis=1)


Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Totals:
    """Cells, faces between cells and boundary faces of all ranks; faces from ``joined`` on may lead to images."""

    cells: int
    faces: int
    outer: int
    joined: int


def assemble(
    comm: Comm,
    near: CellTable,
    faces: FaceTable,
    outer: OuterTable,
    patches: Mapping[str, range],
    totals: Totals,
    beyond: Beyond | None = None,
    *,
    ways: Array | None = None,
    shapes: FaceShapes | None = None,
) -> ControlVolumes:
    """Return the control volumes in local numbers: own cells, those of the halo, boundary elements. Collective.

    Parameters
    ----------
    comm
        The ranks.
    near
        The cells of this rank, those across their faces, and those whose images they have beyond, ascending.
    faces
        Those between two cells of which this rank has one, ascending.
    outer, patches
        Boundary faces of its cells, ascending, and patch to global numbers of boundary faces.
    totals
        What all ranks have.
    beyond
        Boundary faces that have images of cells beyond, of no patch; all ranks give them, or none.
    ways : (n, d)
        Across the faces from ``totals.joined`` on, from the first cell to the second, or to its image.
    shapes
        Of the faces, then of the boundary faces, where they are known.
    """
    shared = _shared(comm, near, faces, outer, totals, beyond)
    cells, table = shared.cells, Places(shared.cells.numbers)
    whole, behind = taken(near, near.place(cells.numbers)), table.of(outer.cell)
    edge = cells.stored + np.arange(outer.number.size)
    areas = np.concatenate([faces.area, outer.area])
    turned = None if beyond is None else beyond.turned(edge, outer, table.of(beyond.images.partner))
    spans = {
        name: range(*(cells.stored + int(np.searchsorted(outer.number, bound)) for bound in (span.start, span.stop)))
        for name, span in patches.items()
    }
    centres = np.concatenate([whole.centre, outer.centre])
    table_of_faces = np.empty((len(areas), 2), dtype=np.int64)
    for side, (inner, other) in enumerate(((faces.first, behind), (faces.second, edge))):
        table_of_faces[: inner.size, side], table_of_faces[inner.size :, side] = table.of(inner), other
    across = np.empty_like(areas)
    for axis, centre in enumerate(centres.T):
        np.subtract(centre[table_of_faces[:, 1]], centre[table_of_faces[:, 0]], out=across[:, axis])
    arms = np.concatenate([faces.arm, across[faces.number.size :]])
    if beyond is not None and turned is not None:
        arms[faces.number.size + turned.elements - cells.stored] = beyond.images.arm
    some = range(int(np.searchsorted(faces.number, totals.joined)), faces.number.size)
    if ways is not None:
        across[some.start : some.stop] = ways
    size = np.sqrt(sum(column * column for column in areas.T))
    spacing = np.abs(np.einsum("ij,ij->i", areas, across)) / size
    wrapped = Wrapped.of(centres, table_of_faces, across, some)
    moments, warps = (None, None) if shapes is None else (shapes.moments, shapes.warps)
    return ControlVolumes(whole.volume, centres, table_of_faces, areas, spacing, arms, spans, wrapped, shared, turned,
                          moments, warps)  # fmt: skip


def _shared(
    comm: Comm,
    near: CellTable,
    faces: FaceTable,
    outer: OuterTable,
    totals: Totals,
    beyond: Beyond | None,
) -> SharedVolumes:
    """Return the parts of cells, elements and faces. Collective.

    A face is in the interior if both cells are owned, a cell if all its faces are; boundary elements are, but those
    that are images of cells of other ranks: these, their faces and the cells behind them are not.
    """
    first, second = (near.owner[near.place(side)] for side in (faces.first, faces.second))
    crossing = (first != comm.rank) | (second != comm.rank)
    apart, partners = _apart(comm, near, outer, beyond)
    touched = np.zeros(near.number.size, dtype=bool)
    for numbers in (faces.first[crossing], faces.second[crossing], outer.cell[apart], partners):
        touched[near.place(numbers)] = True
    own = near.owner == comm.rank
    inside, rest, others = near.number[own & ~touched], near.number[own & touched], taken(near, touched & ~own)
    cells = Part.of_reads(comm, inside, rest, others.number, others.owner, totals.cells)
    near_by, away_by = outer.number[~apart], outer.number[apart]
    elements = Part.of_reads(
        comm, np.concatenate([inside, totals.cells + near_by]), np.concatenate([rest, totals.cells + away_by]),
        others.number, others.owner, totals.cells + totals.outer,
    )  # fmt: skip
    edge = np.arange(outer.number.size)
    order = cells.stored + edge
    ends = np.split(np.arange(cells.stored), [inside.size, cells.owned])
    element_order = np.concatenate([ends[0], order[~apart], ends[1], order[apart], ends[2]])
    mine = first == comm.rank
    within, across, away = (np.flatnonzero(chosen) for chosen in (mine & ~crossing, mine & crossing, ~mine))
    away = away[np.argsort(first[away], kind="stable")]
    part = Part.of_reads(
        comm, np.concatenate([faces.number[within], totals.faces + near_by]),
        np.concatenate([faces.number[across], totals.faces + away_by]),
        faces.number[away], first[away], totals.faces + totals.outer,
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
        in no patch, or the mesh is not sound: see `fluxloom.mesh.sound`.
    """
    from fluxloom.mesh.mesh_part import WholePart

    part = WholePart(mesh, links)
    part.cell_geometry()
    require_listed(mesh, part.links)
    return shared_volumes(part, periodic, sectors)


def shared_volumes(
    part: MeshPart, periodic: Sequence[tuple[str, str]] = (), sectors: Sequence[Sector] = ()
) -> ControlVolumes:
    """Return this rank's control volumes of a mesh. Collective.

    Parameters
    ----------
    part
        From `fluxloom.mesh.distribute.distribute_mesh` with the maps `FLOW_MAPS`, or all of a mesh.
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
        from fluxloom.fv.sectors import joined_sectors

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
    together(comm, lambda: check_spacing(part.path, found.spacing, found.faces))
    return found


# ------------------------------------------------------------------------------------------ what a rank knows
def _stored_cells(part: MeshPart) -> CellTable:
    """Return the cells that this rank stores of the mesh, ascending. Collective."""
    cells, comm = part.part("cells"), part.comm
    values = []
    for known in together(comm, part.cell_geometry):
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
        match = together(comm, lambda pair=pair, places=places: match_faces(
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
