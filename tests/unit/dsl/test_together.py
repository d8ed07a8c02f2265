"""Functions that run at the same time, and what counts as waiting for other ranks."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import Comm, Message, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CommError, FluxloomError
from fluxloom.dsl.run.concurrent import Team, TimedComm


def test_functions_really_run_at_the_same_time() -> None:
    """Each waits until the others are there too: one after the other they would never get on."""
    meeting = threading.Barrier(3, timeout=20)

    def run(k: int) -> tuple[int, str]:
        meeting.wait()
        return k, threading.current_thread().name

    with Team([lambda k=k: run(k) for k in range(3)]) as team:
        found = team()
    assert [k for k, _ in found] == [0, 1, 2]
    assert len({name for _, name in found}) == 3


def test_a_team_keeps_its_threads_and_takes_the_time() -> None:
    meeting = threading.Barrier(2, timeout=20)

    def run() -> int:
        meeting.wait()
        return threading.get_ident()

    with Team([run, run]) as team:
        first = team()
        assert all(team() == first for _ in range(20))
        assert len(team.seconds) == 2
        assert all(seconds > 0 for seconds in team.seconds)
    with pytest.raises(FluxloomError, match="closed"):
        team()


def test_errors_come_out_when_all_have_ended() -> None:
    ended = threading.Event()
    calls = []

    def fails() -> None:
        calls.append(1)
        raise ValueError("broken")

    with Team([ended.set, fails]) as team:
        for k in range(2):
            ended.clear()
            with pytest.raises(ValueError, match="broken") as caught:
                team()
            assert ended.is_set()
            assert len(calls) == k + 1
            assert caught.value.__notes__ == ["in function 1 of 2 that ran together"]


def test_nothing_to_run() -> None:
    with Team([]) as team:
        assert team() == []


def test_only_what_needs_others_is_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that ticks once each time it is read: whatever needs other ranks takes one tick."""
    ticks = itertools.count()
    monkeypatch.setattr("fluxloom.dsl.run.concurrent.time.perf_counter", lambda: float(next(ticks)))
    timed = TimedComm(SelfComm())
    sent, received = np.full(3, 7.0), np.zeros(3)
    channel = timed.channel([Message(0, sent)], [Message(0, received)], 1)
    channel.start()
    assert timed.waited == 0.0
    channel.finish()
    assert timed.waited == 1.0
    assert list(received) == [7.0] * 3
    calls: list[tuple[Callable[[], Any], Any]] = [
        (lambda: timed.allgather(5), [5]),
        (lambda: timed.broadcast(4), 4),
        (lambda: timed.reduce(np.array([2.0]), "sum").tolist(), [2.0]),
        (lambda: [part.tolist() for part in timed.exchange([np.array([3])])], [[3]]),
        (timed.barrier, None),
    ]
    for k, (call, expected) in enumerate(calls):
        assert call() == expected
        assert timed.waited == 2.0 + k
    channel.close()
    with pytest.raises(CommError, match="enough"):
        timed.abort("enough")


def test_the_device_is_waited_for_before_the_others() -> None:
    settled = []

    def work(comm: Comm) -> None:
        timed = TimedComm(comm, lambda: settled.append(comm.rank))
        timed.barrier()
        timed.allgather(1)

    run_threads(2, work)
    assert sorted(settled) == [0, 0, 1, 1]
