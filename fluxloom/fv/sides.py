"""The sides of cells, cell by cell: what the rows of finite-volume matrices are laid out from, without sorting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.fv.volumes import ControlVolumes
from fluxloom.graph.inverse import inverse_ragged

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Family", "Sides", "spread"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int32]
Index = npt.NDArray[np.int64]


class Family(NamedTuple):
    """Matrices with one pattern, in compressed rows: what one pass over a row multiplies.

    ``values`` is ``(entries, m)``, of a single matrix ``(entries,)``.
    """

    offsets: Index
    columns: Numbers
    values: Array

    def matrix(self, columns: int, k: int | None = None) -> csr_array:
        """Return one of them as a SciPy array with so many columns."""
        from scipy.sparse import csr_array

        values = self.values if k is None else np.ascontiguousarray(self.values[:, k])
        return csr_array((values, self.columns, self.offsets), shape=(self.offsets.size - 1, columns))


@dataclass(frozen=True, eq=False)
class Sides:
    """The faces around the owned cells, those of a cell side by side in the order of their numbers.

    A face between a cell and itself, across one layer of periodic cells, is none of its sides: what leaves through it
    enters.

    Attributes
    ----------
    offsets : (owned + 1,)
        Sides of cell ``i`` are ``offsets[i] ... offsets[i + 1] - 1``.
    cell, face, other : (n,)
        Whose side, of which face, and the element across it.
    sign : (n,)
        1 where the normal of the face leads out of the cell, else -1.
    outside : (n,)
        Whether a boundary element is across that is no image of a cell.
    """

    offsets: Index
    cell: Numbers
    face: Numbers
    other: Numbers
    sign: Array
    outside: Mask

    @classmethod
    def of(cls, volumes: ControlVolumes) -> Sides:
        """Return the sides of the owned cells of some control volumes."""
        faces, inner = volumes.faces, volumes.faces[: volumes.interior]
        two = inner[:, 0] != inner[:, 1]  # a cell that is on both sides of a face has neither of them
        rows = np.concatenate([inner[two].reshape(-1), faces[volumes.interior :, 0]])
        signs = np.ones(rows.size)
        signs[1 : 2 * np.count_nonzero(two) : 2] = -1.0
        bounds = np.zeros(len(faces) + 1, dtype=np.int64)
        np.cumsum(np.concatenate([2 * two, np.ones(len(faces) - volumes.interior, dtype=np.int64)]), out=bounds[1:])
        met = inverse_ragged(bounds, np.ascontiguousarray(rows, dtype=np.int32), volumes.cells)
        offsets = met.offsets[: volumes.owned + 1].copy()
        face = met.element[: offsets[-1]].copy()
        sign = signs[met.entry[: offsets[-1]]]
        cell = np.repeat(np.arange(volumes.owned, dtype=np.int32), np.diff(offsets))
        other = faces.sum(axis=1)[face]
        other -= cell
        other = other.astype(np.int32)
        outside = other >= volumes.cells
        if volumes.turned is not None:
            outside &= ~np.isin(other, volumes.turned.elements)
        return cls(offsets, cell, face, other, sign, outside)

    @property
    def cells(self) -> int:
        """Number of owned cells."""
        return self.offsets.size - 1

    def sum(self, values: Array) -> Array:
        """Return the sums over the sides of each cell of values ``(n,)`` or ``(n, m)``."""
        if values.ndim == 1:
            return np.bincount(self.cell, values, minlength=self.cells).astype(np.float64)
        return np.stack([self.sum(values[:, k]) for k in range(values.shape[1])], axis=1)

    def rows(self, values: Array, own: Array, chosen: Mask | None = None, kept: Mask | None = None) -> Family:
        """Return rows of cells: an entry of the cell itself, then one of each element across a side.

        Parameters
        ----------
        values, own
            Of the sides, ``(n, ...)``, and of the cells themselves, ``(cells, ...)``.
        chosen : (cells,)
            Which cells have an entry of their own; all by default.
        kept : (n,)
            Which sides have one; all by default.
        """
        cell, other = self.cell, self.other
        if kept is not None:
            cell, other, values = cell[kept], other[kept], values[kept]
        first = np.flatnonzero(np.ones(self.cells, dtype=bool) if chosen is None else chosen)
        starts = self.offsets[:-1] if kept is None else np.searchsorted(cell, np.arange(self.cells))
        ends = np.append(starts, cell.size)
        if not first.size:
            return Family(ends, other, values)
        added = np.zeros(self.cells + 1, dtype=np.int64)
        added[first + 1] = 1
        places = starts[first]
        columns, entries = np.insert(other, places, first), np.insert(values, places, own[first], axis=0)
        return Family(ends + np.cumsum(added), columns, entries)


def spread(rows: Family, pattern: Family) -> Family:
    """Return rows with the entries of another pattern: those that are in both keep their values, others have 0."""
    columns = max(int(found.columns.max(initial=0)) for found in (rows, pattern)) + 1

    def keys(found: Family) -> Index:
        row = np.repeat(np.arange(found.offsets.size - 1, dtype=np.int64), np.diff(found.offsets))
        return row * columns + found.columns

    mine, wanted = keys(rows), keys(pattern)
    order = np.argsort(mine, kind="stable")
    place = np.minimum(np.searchsorted(mine, wanted, sorter=order), mine.size - 1)
    values = np.zeros((wanted.size, *rows.values.shape[1:]), dtype=rows.values.dtype)
    both = mine[order[place]] == wanted
    values[both] = rows.values[order[place[both]]]
    return pattern._replace(values=values)
