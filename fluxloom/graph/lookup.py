"""Where numbers stand among ascending ones, and tables of such places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.graph.native import Indices, Offsets, call, count, indices, table_in_range
from fluxloom.graph.native import table as as_table

__all__ = ["ELSEWHERE", "NONE", "NumberIndex", "chosen_first", "index_numbers", "renumber_rows"]

NONE, ELSEWHERE = -1, -2
"""Entries of a table that `renumber_rows` takes: no target, and a target that has no place among the others."""

_SHARE = 4  # numbers a bucket, at least, on average


@dataclass(frozen=True, eq=False)
class NumberIndex:
    """Different numbers, ascending, and buckets by which one of them is found in a few steps.

    A bucket is a range of ``2**shift`` numbers, so that a number costs one look at its bucket and up to ``shift``
    steps of bisection; none, where the bucket is full, as in runs of consecutive numbers. The buckets take at most
    a byte for each of the numbers, however far these are apart.

    Attributes
    ----------
    ascending
        int64, ``(n,)``.
    shift
        Logarithm of the range of a bucket.
    first
        int32, ``(buckets + 1,)``: how many numbers lie below each bucket.
    """

    ascending: Offsets
    shift: int
    first: Indices

    def find(self, numbers: npt.NDArray[Any]) -> Indices:
        """Return the place of each number, int32 of the same shape; -1 where it is not there.

        Parameters
        ----------
        numbers
            Integers; those of 32 or 64 bits are not copied when they are contiguous.
        """
        wide = numbers.dtype != np.int32
        asked = np.ascontiguousarray(numbers, dtype=np.int64 if wide else np.int32)
        place = np.empty(numbers.shape, dtype=np.int32)
        low = int(self.ascending[0]) if self.ascending.size else 0
        call(
            "find_numbers", self.ascending, low, self.shift, self.first.size - 1, self.first,
            asked, wide, asked.size, place,
        )  # fmt: skip
        return place


def index_numbers(ascending: Offsets) -> NumberIndex:
    """Return an index of different numbers, int64 and ascending.

    Raises
    ------
    DatError
        When there are 2**31 numbers or more, or they do not ascend.
    """
    n = count(ascending.size, "the number of numbers")
    numbers = np.ascontiguousarray(ascending, dtype=np.int64)
    if n == 0:
        return NumberIndex(numbers, 0, np.zeros(1, dtype=np.int32))
    span = max(n, int(numbers[-1]) - int(numbers[0]) + 1)
    shift = max(0, -(-_SHARE * span // n) - 1).bit_length()
    first = np.empty(-(-span >> shift) + 1, dtype=np.int32)
    bad = call("fill_buckets", numbers, n, shift, first.size - 1, first)
    if bad >= 0:
        raise DatError(f"numbers[{bad}] is {int(numbers[bad])}: numbers to be found must ascend")
    return NumberIndex(numbers, shift, first)


def chosen_first(chosen: npt.NDArray[np.bool_], numbers: Offsets, out: Offsets) -> tuple[Indices, int]:
    """Write numbers to the beginning of ``out``: the chosen ones, then the others, both in their order.

    Returns
    -------
    place : int32, shape (n,)
        Where each number went.
    count
        How many are chosen.

    Raises
    ------
    DatError
        When the arrays have other types, are not contiguous, or do not fit each other.
    """
    n = count(numbers.size, "the number of numbers")
    given = ((chosen, np.bool_), (numbers, np.int64), (out, np.int64))
    if any(array.dtype != kind or not array.flags.c_contiguous for array, kind in given):
        raise DatError("chosen_first wants contiguous arrays of bool, int64 and int64")
    if chosen.size != n or out.size < n:
        raise DatError(f"{n} numbers, {chosen.size} choices and room for {out.size}")
    place = np.empty(n, dtype=np.int32)
    return place, call("chosen_first", chosen, numbers, n, place, out)


def renumber_rows(table: Indices, row_place: Indices, target_place: Indices, away: Indices) -> Indices:
    """Return the rows of a table in new numbers, each at its new place.

    Parameters
    ----------
    table
        int32, ``(n, arity)``: targets by their old numbers, `NONE` or `ELSEWHERE`.
    row_place
        int32, ``(m,)``: new place of each of the first ``m`` rows, a permutation; rows behind them stay.
    target_place
        int32: new number of each target.
    away
        int32: new numbers of the targets elsewhere, in the order of the table.

    Raises
    ------
    DatError
        When an array has the wrong type, there are fewer rows than places, or a place is none of ``0 .. m - 1``.
    """
    n, arity = as_table(table).shape
    if n < row_place.size:
        raise DatError(f"{row_place.size} places for {n} rows")
    table_in_range(row_place, row_place.size, "row_place")
    out = np.empty((n, arity), dtype=np.int32)
    call(
        "renumber_rows", table, n, arity, row_place, row_place.size,
        indices(target_place, "target_place"), indices(away, "away"), out,
    )  # fmt: skip
    return out
