"""Consecutive rows of a matrix for each of several devices, without an entry moved: what each stores and sends.

The source of the split is the portable algebraic CFD thesis (TermoFluids), section 3.4: rows ``0 ... 2m - 1`` go to one
device, the others to the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.parts import Part

__all__ = ["RowSlice", "check_shares", "row_bounds", "row_slices"]

Index = npt.NDArray[np.int64]

_SUM = 1e-9
"""By how much the sum of shares may differ from 1."""


@dataclass(frozen=True, eq=False)
class RowSlice:
    """The rows of one device.

    Attributes
    ----------
    part
        What it owns and stores: rows, then those of others whose values it needs.
    offsets, indices, values
        Compressed rows with local columns.
    """

    part: Part
    offsets: Index
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]

    @property
    def interface(self) -> int:
        """Rows outside the interior: those that need values of others, and what lies between them."""
        return self.part.owned - (self.part.inside - self.part.begin)


def check_shares(shares: Sequence[float], devices: int) -> tuple[float, ...]:
    """Return shares as they are.

    Raises
    ------
    SolverError
        If there are no devices, not one share for each, one is negative or not a number, or they do not sum to 1.
    """
    if not devices:
        raise SolverError("no devices: give a list of names, with one at least")
    found = tuple(float(share) for share in shares)
    if len(found) != devices:
        raise SolverError(f"{len(found)} shares for {devices} devices: give one each")
    if not all(isfinite(share) and share >= 0 for share in found) or abs(sum(found) - 1.0) > _SUM:
        raise SolverError(f"shares {list(found)}: parts of all rows are wanted, none negative, which sum to 1")
    return found


def row_bounds(total: int, shares: Sequence[float], granule: int = 1) -> tuple[int, ...]:
    """Return the first row of each device, and the end; as near to the shares as whole granules of rows allow.

    Raises
    ------
    SolverError
        If there are no rows, or no granule of at least one.
    """
    if total < 1:
        raise SolverError("a matrix without rows cannot be divided among devices")
    if granule < 1:
        raise SolverError(f"a granule of {granule} rows: at least one is wanted")
    exact = np.cumsum(np.asarray(shares, dtype=np.float64)) * total
    ends = np.minimum(np.rint(exact / granule).astype(np.int64) * granule, total)
    ends[-1] = total
    last = max(k for k, share in enumerate(shares) if share > 0)
    ends[last:] = total
    return (0, *np.maximum.accumulate(ends).tolist())


def row_slices(matrix: Any, bounds: Sequence[int]) -> list[RowSlice]:
    """Return the rows of each device.

    The interior of a part is its longest run of rows that meet no column of others: in a matrix of a narrow band that
    is all but the rows at the cuts.

    Parameters
    ----------
    matrix
        Square, in compressed rows: an array of SciPy.
    bounds
        First row of each device, and the end; every device has a row.
    """
    cuts = np.asarray(bounds, dtype=np.int64)
    ranks = range(cuts.size - 1)
    offsets = matrix.indptr.astype(np.int64, copy=False)
    pieces = [_piece(offsets, matrix.indices, int(cuts[rank]), int(cuts[rank + 1])) for rank in ranks]
    owners = [np.searchsorted(cuts, halo, side="right") - 1 for _, halo, _ in pieces]
    made = []
    for rank, (columns, halo, (begin, inside)) in enumerate(pieces):
        first, end = int(cuts[rank]), int(cuts[rank + 1])
        owned = end - first
        near = sorted({*owners[rank].tolist(), *(k for k in ranks if (owners[k] == rank).any())})
        part = Part(
            begin=begin, inside=inside, owned=owned, executed=owned, stored=owned + halo.size,
            numbers=np.concatenate([np.arange(first, end, dtype=np.int64), halo]), total=int(cuts[-1]),
            neighbours=tuple(near),
            send=tuple((pieces[k][1][owners[k] == rank] - first).astype(np.int32) for k in near),
            receive=tuple((owned + np.flatnonzero(owners[rank] == k)).astype(np.int32) for k in near),
        )  # fmt: skip
        entries = slice(int(offsets[first]), int(offsets[end]))
        values = matrix.data[entries].astype(np.float64, copy=False)
        made.append(RowSlice(part, offsets[first : end + 1] - offsets[first], columns, values))
    return made


def _piece(
    offsets: Index, indices: npt.NDArray[np.integer[Any]], first: int, end: int
) -> tuple[npt.NDArray[np.int32], Index, tuple[int, int]]:
    """Return the local columns of some rows, the other rows that they meet, ascending, and the interior."""
    start = int(offsets[first])
    columns = indices[start : int(offsets[end])]
    outside = np.flatnonzero((columns < first) | (columns >= end))
    halo = np.unique(columns[outside]).astype(np.int64)
    local = (columns - first).astype(np.int32)
    local[outside] = end - first + np.searchsorted(halo, columns[outside])
    rows = np.unique(np.searchsorted(offsets[first : end + 1], start + outside, side="right") - 1)
    walls = np.concatenate([[-1], rows, [end - first]])
    widest = int(np.argmax(np.diff(walls)))
    return local, halo, (int(walls[widest]) + 1, int(walls[widest + 1]))
