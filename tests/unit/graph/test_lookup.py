"""Places of numbers among ascending ones, and tables of such places, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxloom.core.errors import DatError
from fluxloom.graph.lookup import ELSEWHERE, NONE, chosen_first, index_numbers, renumber_rows

unhurried = settings(deadline=None)  # the first call compiles


@unhurried
@given(st.sets(st.integers(0, 60)), st.sampled_from([1, 3, 10**9]), st.integers(0, 10**12))
def test_numbers_are_found(chosen: set[int], apart: int, low: int) -> None:
    ascending = low + apart * np.array(sorted(chosen), dtype=np.int64)
    place = {int(number): k for k, number in enumerate(ascending)}
    asked = np.concatenate([low + apart * np.arange(-2, 63), ascending + 1, [-1, 0]])
    index = index_numbers(ascending)
    found = index.find(asked)
    assert found.dtype == np.int32
    assert found.tolist() == [place.get(int(number), -1) for number in asked]
    assert index.first.size <= ascending.size // 4 + 2, "buckets take a byte a number"
    short = asked[(asked >= -1) & (asked < 2**31)].astype(np.int32).reshape(-1, 1)
    assert np.array_equal(index.find(short), index.find(short.astype(np.int64)))


@pytest.mark.parametrize("runs", [1, 40])
def test_runs_of_numbers_are_found(runs: int) -> None:
    """Full buckets are not searched; those at the ends of runs are."""
    ascending = (np.arange(runs)[:, None] * 1000 + np.arange(517)).reshape(-1)
    index = index_numbers(ascending)
    assert np.array_equal(index.find(ascending), np.arange(ascending.size))
    assert (index.find(np.arange(517, 1000)) == -1).all()


@pytest.mark.parametrize("numbers", [[3, 3], [5, 1], [0, 1000, 5], [1, 2, 2, 9], [10, 4, 20]])
def test_numbers_must_ascend(numbers: list[int]) -> None:
    with pytest.raises(DatError, match="must ascend"):
        index_numbers(np.array(numbers, dtype=np.int64))


def test_chosen_numbers_come_first() -> None:
    numbers, out = np.array([7, 1, 9, 4]), np.full(6, -5)
    place, count = chosen_first(np.array([False, True, False, True]), numbers, out)
    assert out.tolist() == [1, 4, 7, 9, -5, -5]
    assert (place.tolist(), place.dtype, count) == ([2, 0, 3, 1], np.int32, 2)
    with pytest.raises(DatError, match="4 numbers, 3 choices and room for 6"):
        chosen_first(np.ones(3, dtype=bool), numbers, out)
    with pytest.raises(DatError, match="room for 3"):
        chosen_first(np.ones(4, dtype=bool), numbers, out[:3])
    with pytest.raises(DatError, match="contiguous"):
        chosen_first(np.ones(4, dtype=bool), numbers, np.zeros(8, dtype=np.int64)[::2])


def test_rows_are_renumbered_and_moved() -> None:
    table = np.array([[0, ELSEWHERE], [2, NONE], [ELSEWHERE, 1], [1, 1]], dtype=np.int32)
    rows, places = np.array([2, 0, 1], dtype=np.int32), np.array([5, 6, 7], dtype=np.int32)
    away = np.array([100, 200], dtype=np.int32)
    assert renumber_rows(table, rows, places, away).tolist() == [[7, NONE], [200, 6], [5, 100], [6, 6]]
    with pytest.raises(DatError, match=r"row_place\[0, 0\] is 3"):
        renumber_rows(table, np.array([3, 0, 1], dtype=np.int32), places, away)
    with pytest.raises(DatError, match="3 places for 2 rows"):
        renumber_rows(table[:2], rows, places, away)
