"""From tables to their inverse: which elements lead to a target, and through which leg."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["InverseRows", "inverse_rows"]


@dataclass(frozen=True, eq=False)
class InverseRows:
    """Compressed rows of a table's inverse, one a target.

    Attributes
    ----------
    offsets
        int64, ``(targets + 1,)``: where the entries of each target begin.
    rows, legs
        int32, of each entry: the row of the table that leads to the target, and through which column.
    """

    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    legs: npt.NDArray[np.int32]


def inverse_rows(
    table: npt.NDArray[np.integer], targets: int, numbers: npt.NDArray[np.int64] | None = None, *, by_leg: bool = True
) -> InverseRows:
    """Return which rows of a table lead to each of some targets.

    Parameters
    ----------
    table
        ``(rows, arity)``; entries that are negative, or not below ``targets``, lead nowhere.
    targets
        How many there are.
    numbers
        Numbers by which rows are ordered, ascending; by default their own.
    by_leg
        Whether what comes through the first column stands before what comes through the second, and so on; if not,
        only the number of the row counts.
    """
    sorted_rows = None if numbers is None else np.argsort(numbers, kind="stable")
    ordered = table if sorted_rows is None else table[sorted_rows]
    flat = ordered.T.reshape(-1) if by_leg else ordered.reshape(-1)
    order = np.argsort(flat, kind="stable")
    first, last = np.searchsorted(flat, (0, targets), sorter=order)
    place = order[first:last]
    legs, rows = np.divmod(place, max(1, len(table))) if by_leg else np.divmod(place, max(1, table.shape[1]))[::-1]
    rows = rows if sorted_rows is None else sorted_rows[rows]
    counts = np.bincount(flat[place], minlength=targets)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return InverseRows(offsets, rows.astype(np.int32), legs.astype(np.int32))
