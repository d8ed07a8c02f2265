"""Cell values of all ranks: brought together on rank 0, and looked through for values that are lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.dsl.parts import Part

__all__ = ["Lost", "find_lost", "gathered", "rows_in_order"]

Fields = Mapping[str, npt.NDArray[Any]]

Lost = tuple[str, int, int]
"""Name of a field, its first cell with a NaN or infinity, and how many such cells there are."""


def gathered(comm: Comm, part: Part | None, fields: Fields) -> dict[str, npt.NDArray[Any]]:
    """Return values of all cells in global order on rank 0, and no values elsewhere. Collective.

    Parameters
    ----------
    comm
        The ranks.
    part
        This rank's part of the cells; None on a rank alone.
    fields
        Name to the values of the owned cells, ``(owned, ...)``; the same names on every rank.
    """
    if part is None:
        return dict(fields)
    numbers = np.concatenate(_to_first(comm, part.numbers[: part.owned]))
    whole: dict[str, npt.NDArray[Any]] = {}
    for name, values in fields.items():
        found = np.concatenate(_to_first(comm, np.ascontiguousarray(values)))
        if comm.rank:
            continue
        whole[name] = np.empty_like(found)
        whole[name][numbers] = found
    return whole


def _to_first(comm: Comm, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return, on rank 0, the values of each rank; elsewhere nothing."""
    return comm.exchange([values, *(values[:0] for _ in range(comm.size - 1))])


def find_lost(comm: Comm, part: Part | None, fields: Fields) -> Lost | None:
    """Return the first field that has a NaN or an infinity, its first such cell and their number. Collective.

    Every rank gets the same; None when all values are finite.
    """
    for name, values in fields.items():
        lost = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
        numbers = lost if part is None else part.numbers[lost]
        first = int(numbers.min()) if numbers.size else np.iinfo(np.int64).max
        count = int(comm.reduce(np.array([numbers.size]), "sum")[0])
        if count:
            return name, int(comm.reduce(np.array([first], dtype=np.int64), "min")[0]), count
    return None


def rows_in_order(
    comm: Comm, numbers: npt.NDArray[np.integer], rows: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:  # fmt: skip
    """Return rows of all ranks, those with the lowest numbers first, on rank 0; elsewhere none. Collective.

    Parameters
    ----------
    comm
        The ranks.
    numbers : (n,)
        Of this rank's rows, each of one rank.
    rows : (n, k)
        What is brought together.
    """
    if comm.size > 1:
        numbers, rows = (
            np.concatenate(_to_first(comm, np.ascontiguousarray(values))) for values in (numbers.astype(np.int64), rows)
        )
    return rows[np.argsort(numbers, kind="stable")]
