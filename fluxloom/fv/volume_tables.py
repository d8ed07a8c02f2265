"""What one rank knows of control volumes in global numbers, before it numbers them itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.fv.volumes import Turned
from fluxloom.mesh.geometry import WARPS, face_moments, face_warps
from fluxloom.mesh.mesh import Ragged

__all__ = [
    "Beyond", "CellTable", "FaceShapes", "FaceTable", "ImageTable", "OuterTable", "Places", "ascending",
    "chain_tables", "taken",
]  # fmt: skip

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


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
