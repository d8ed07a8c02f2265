"""What one rank knows of control volumes in global numbers, before it numbers them itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["CellTable", "FaceTable", "ImageTable", "OuterTable", "chain_tables", "taken"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CellTable:
    """Cells by global number: who owns them, volume and centre."""

    number: Index
    owner: Index
    volume: Array
    centre: Array

    def place(self, asked: Index) -> Index:
        """Return the places of global numbers; ``number`` ascends."""
        return np.searchsorted(self.number, asked)


@dataclass(frozen=True, eq=False)
class FaceTable:
    """Faces between two cells: global numbers, areas, ways from the first to the second and to the face, moments."""

    number: Index
    first: Index
    second: Index
    area: Array
    way: Array
    arm: Array
    moment: Array


@dataclass(frozen=True, eq=False)
class OuterTable:
    """Boundary faces: global number, the cell behind, areas, centres of what is beyond (of the face), moments."""

    number: Index
    cell: Index
    area: Array
    centre: Array
    moment: Array


@dataclass(frozen=True, eq=False)
class ImageTable:
    """Boundary faces with the image of a cell beyond: face, this cell, the rotation, way from behind to the face."""

    number: Index
    partner: Index
    which: Index
    arm: Array


Table = TypeVar("Table", CellTable, FaceTable, ImageTable, OuterTable)


def taken(table: Table, places: npt.NDArray[Any]) -> Table:
    """Return some rows of a table."""
    return type(table)(*(getattr(table, field.name)[places] for field in fields(table)))


def chain_tables(items: Sequence[Table]) -> Table:
    """Return the rows of several tables, one table behind the other."""
    kind = type(items[0])
    return kind(*(np.concatenate([getattr(item, field.name) for item in items]) for field in fields(kind)))
