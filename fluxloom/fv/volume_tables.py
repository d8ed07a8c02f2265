"""What one rank knows of control volumes in global numbers, before it numbers them itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.fv.control_volumes import ControlVolumes
from fluxloom.mesh.warped_faces import WARPS

__all__ = [
    "CellTable", "FaceTable", "ImageTable", "OuterTable", "chain_tables", "face_tensors", "split_tensors", "taken",
]  # fmt: skip

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
    """Faces between two cells: global numbers, areas, ways from the first to the second and to the face, moments.

    These are ``(n, d d)``, with ``(n, 28)`` of `fluxloom.mesh.warped_faces` behind them where any face is warped.
    """

    number: Index
    first: Index
    second: Index
    area: Array
    way: Array
    arm: Array
    moment: Array


@dataclass(frozen=True, eq=False)
class OuterTable:
    """Boundary faces: global number, the cell behind, areas, centres of what is beyond (of the face), their moments."""

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


def face_tensors(volumes: ControlVolumes) -> Array:
    """Return the moments of the faces of control volumes as tables have them; ``(faces, 0)``: not known."""
    if volumes.moments is None:
        return np.empty((len(volumes.faces), 0))
    found = volumes.moments().reshape(len(volumes.faces), -1)
    rows, tensors = (np.empty(0, np.int64), np.empty((0, WARPS))) if volumes.warps is None else volumes.warps()
    if not rows.size:
        return found
    whole = np.zeros((len(found), WARPS))
    whole[rows] = tensors
    return np.concatenate([found, whole], axis=1)


def split_tensors(
    table: Array, dimension: int
) -> tuple[Callable[[], Array] | None, Callable[[], tuple[Index, Array]] | None]:
    """Return ``moments`` and ``warps`` of `ControlVolumes` from a table of both."""
    size = dimension**2
    if not table.shape[1]:
        return None, None
    moments = table[:, :size].reshape(-1, dimension, dimension)
    if table.shape[1] == size:
        return lambda: moments, None
    rows = np.flatnonzero(table[:, size:].any(axis=1))
    return lambda: moments, lambda: (rows, table[rows, size:])
