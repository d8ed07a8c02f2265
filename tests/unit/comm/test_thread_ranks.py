"""Ranks for threads that the caller runs, and groups of ranks: they end together when one of them cannot go on."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import ThreadsComm, run_threads, thread_ranks
from fluxloom.core.errors import CommError
from fluxloom.dsl.run.concurrent import TimedComm


def both(ranks: list[ThreadsComm], function: Callable[[ThreadsComm], object]) -> list[object]:
    """Run a function on every rank in threads of their own; return what it returned or raised."""
    found: list[object] = [None for _ in ranks]
    for comm in ranks:
        comm.enter()

    def work(comm: ThreadsComm) -> None:
        try:
            found[comm.rank] = function(comm)
        except Exception as error:
            found[comm.rank] = error
        finally:
            comm.leave()

    threads = [threading.Thread(target=work, args=(comm,)) for comm in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return found


def test_again_and_again() -> None:
    ranks = thread_ranks(3)
    for turn in range(3):
        assert (
            both(ranks, lambda comm, turn=turn: comm.allgather((comm.rank, turn)))
            == [[(rank, turn) for rank in range(3)]] * 3
        )


def test_errors_of_all_break_nothing() -> None:
    ranks = thread_ranks(2)

    def fails(comm: ThreadsComm) -> None:
        comm.barrier()
        raise ValueError(comm.rank)

    assert [str(error) for error in both(ranks, fails)] == ["0", "1"]
    assert ranks[0].broken == ""
    assert both(ranks, lambda comm: comm.allgather(1)) == [[1, 1]] * 2


def test_one_that_left_is_waited_for() -> None:
    ranks = thread_ranks(2)
    first, second = both(ranks, lambda comm: comm.rank or comm.allgather(1))
    assert isinstance(first, CommError)
    assert "rank 0 waits for the other ranks in an allgather; rank 1 has finished" in str(first)
    assert second == 1
    assert ranks[1].broken


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_wrong_number(count: int) -> None:
    with pytest.raises(CommError, match="at least one"):
        thread_ranks(count)


def test_circle_across_groups() -> None:
    """One rank waits in the whole, the other in a group: nobody can go on."""

    def run(comm: Comm) -> None:
        part = comm.split(0)
        assert part is not None
        (comm if comm.rank else part).barrier()

    with pytest.raises(CommError, match="no rank can go on"):
        run_threads(2, run)


def test_error_in_one_group_wakes_the_other() -> None:
    def run(comm: Comm) -> None:
        part = comm.split(comm.rank % 2)
        assert part is not None
        if comm.rank == 3:
            part.abort("no more")
        part.barrier()

    with pytest.raises(CommError, match="no more") as caught:
        run_threads(4, run)
    assert caught.value.__notes__ == ["on rank 3 of 4"]


def test_groups_take_their_own_time() -> None:
    def run(comm: Comm) -> tuple[int, bool, float]:
        timed = TimedComm(comm)
        part = timed.split(comm.rank // 2)
        assert part is not None
        assert timed.split(-1) is None
        before = timed.waited
        part.barrier()
        assert part.waited > 0
        return part.size, isinstance(part, TimedComm), timed.waited - before

    assert run_threads(3, run) == [(2, True, 0.0), (2, True, 0.0), (1, True, 0.0)]
