"""What one rank knows of control volumes in global numbers, before it numbers them itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import Places, place_in
from fluxloom.dsl.declare.parts import Part
from fluxloom.fv.geometry.volumes import ControlVolumes, SharedVolumes, Turned, Wrapped
from fluxloom.mesh.data.mesh import Ragged
from fluxloom.mesh.geometry.metrics import WARPS, face_moments, face_warps

__all__ = [
    "Beyond", "CellTable", "FaceShapes", "FaceTable", "ImageTable", "OuterTable", "Totals", "ascending",
    "assemble", "chain_tables", "taken",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class CellTable:
    """Cells by global number, ascending: who owns them, volume and centre."""

    number: Index
    owner: Index
    volume: Array
    centre: Array

    def place(self, asked: Index) -> Index:
        """Return the places of global numbers."""
        return place_in(self.number, asked)


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
