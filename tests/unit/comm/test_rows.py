"""Rows that are spread over ranks, and properties that are computed once."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.rows import (
    RowExchange,
    before,
    block_starts,
    compress,
    distinct,
    fetch,
    from_first,
    owner_of,
    place,
    to_first,
)
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError, MeshError
from fluxloom.mesh.data.once import Once

RANKS = [1, 2, 3, 7]


def test_blocks() -> None:
    starts = block_starts(10, 4)
    assert starts.tolist() == [0, 2, 5, 7, 10]
    assert owner_of(np.arange(10), starts).tolist() == [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]
    uneven = np.array([0, 0, 4, 4, 10])
    assert owner_of(np.array([0, 3, 4, 9]), uneven).tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize("numbers", [[[7, 3], [3, 9]], [[10**9, 3], [3, 10**6]], np.empty((0, 2), dtype=int)])
def test_compress(numbers: object) -> None:
    table = np.array(numbers, dtype=np.int64)
    distinct, position = compress(table)
    np.testing.assert_array_equal(distinct, np.unique(table))
    np.testing.assert_array_equal(distinct[position], table)
    assert position.shape == table.shape
    assert position.dtype == np.int32


@pytest.mark.parametrize("numbers", [[5, 1, 5, 5, 2, 1], [3], []])
def test_distinct(numbers: list[int]) -> None:
    assert distinct(np.array(numbers, dtype=np.int64)).tolist() == sorted(set(numbers))


@pytest.mark.parametrize("ranks", RANKS)
def test_fetch_and_place(ranks: int) -> None:
    table = np.random.default_rng(1).random((23, 2))
    starts = block_starts(23, ranks)

    def action(comm: Comm) -> None:
        mine = table[starts[comm.rank] : starts[comm.rank + 1]]
        wanted = np.random.default_rng(comm.rank).integers(0, 23, 5 * comm.rank)
        np.testing.assert_array_equal(fetch(comm, mine, starts, wanted), table[wanted])
        scattered = np.random.default_rng(2).permutation(23)[comm.rank :: comm.size]
        np.testing.assert_array_equal(place(comm, scattered, table[scattered], starts), mine)
        assert before(comm, comm.rank + 1) == (comm.rank * (comm.rank + 1) // 2, ranks * (ranks + 1) // 2)

    run_threads(ranks, action)


@pytest.mark.parametrize("ranks", RANKS)
def test_answers_find_back(ranks: int) -> None:
    def action(comm: Comm) -> None:
        rows = np.random.default_rng(comm.rank).integers(0, 1000, 11 + comm.rank)
        post = RowExchange(comm, rows % comm.size)
        came = post.forward(rows)
        assert (came % comm.size == comm.rank).all()
        np.testing.assert_array_equal(post.back(came * 3 + comm.rank), rows * 3 + rows % comm.size)

    run_threads(ranks, action)


def test_an_error_of_one_rank_is_raised_on_all() -> None:
    def fails_on(*ranks: int) -> list[str]:
        def action(comm: Comm) -> str:
            def alone() -> int:
                if comm.rank in ranks:
                    raise (MeshError if comm.rank == 2 else DatError)(f"rank {comm.rank} has it")
                return comm.rank

            with pytest.raises((MeshError, DatError)) as caught:
                raise_on_all_ranks(comm, alone)
            return f"{type(caught.value).__name__}: {caught.value}"

        return run_threads(4, action)

    assert fails_on(2) == ["MeshError: rank 2 has it"] * 4
    assert fails_on(3, 2, 1) == ["DatError: rank 1 has it"] * 4
    assert run_threads(3, lambda comm: raise_on_all_ranks(comm, lambda: comm.rank)) == [0, 1, 2]
    with pytest.raises(MeshError, match="alone"):
        raise_on_all_ranks(SelfComm(), lambda: (_ for _ in ()).throw(MeshError("alone")))


@pytest.mark.parametrize("ranks", RANKS)
def test_to_the_first_rank_and_back(ranks: int) -> None:
    def action(comm: Comm) -> list[int]:
        mine = np.arange(comm.rank, dtype=np.int32)
        found = to_first(comm, mine)
        assert [rows.size for rows in found] == [0 if comm.rank else rank for rank in range(ranks)]
        return from_first(comm, [rows + 1 for rows in found] if comm.rank == 0 else None, mine).tolist()

    assert run_threads(ranks, action) == [list(range(1, rank + 1)) for rank in range(ranks)]


class Counted:
    def __init__(self, comm: Comm) -> None:
        self.comm, self.calls = comm, 0

    @Once
    def total(self) -> int:
        """Sum of all ranks."""
        self.calls += 1
        return sum(self.comm.allgather(self.comm.rank))


def test_a_property_may_wait_for_other_ranks() -> None:
    def action(comm: Comm) -> int:
        item = Counted(comm)
        assert "total" not in vars(item)
        assert item.total == item.total == 3
        return item.calls

    assert run_threads(3, action) == [1, 1, 1]
    assert Counted.total.__doc__ == "Sum of all ranks."
