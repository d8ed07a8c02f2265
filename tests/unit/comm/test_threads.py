"""Ranks as threads: errors reach the caller, and nobody waits for ever."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fluxloom.comm import Comm, Message, SelfComm, run_threads
from fluxloom.core.errors import CommError

PATIENCE = 60.0


def ranks(size: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Call run_threads; fail when it does not come back."""
    found: list[Any] = []

    def call() -> None:
        try:
            found.append((run_threads(size, function, *arguments), None))
        except BaseException as error:
            found.append(([], error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "the ranks wait for ever"
    results, error = found[0]
    if error is not None:
        raise error
    return results


def test_results() -> None:
    assert ranks(4, lambda comm, a, b: (comm.rank, comm.size, a, b), 5, "x") == [(r, 4, 5, "x") for r in range(4)]
    for size in (0, -1, 1.5, "2"):
        with pytest.raises(CommError, match=f"{size!r} ranks: at least one is needed"):
            run_threads(size, lambda comm: None)  # type: ignore[arg-type]
    with pytest.raises(CommError, match="what each of them does, not None"):
        run_threads(2, None)  # type: ignore[arg-type]


def test_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranks that did start end."""
    started = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if self.name == "rank 2":
            raise RuntimeError("can't start new thread")
        started(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(CommError, match="3 ranks: can't start new thread"):
        run_threads(3, lambda comm: comm.barrier())


def waits(comm: Comm, how: str) -> None:
    """Wait for the other ranks in one of the ways there are."""
    if how == "channel":
        others = [Message(rank, np.zeros(2)) for rank in range(comm.size)]
        channel = comm.channel([], others, 1)
        channel.start()
        channel.finish()
    elif how == "exchange":
        comm.exchange([np.zeros(1)] * comm.size)
    elif how == "reduce":
        comm.reduce(np.zeros(1), "sum")
    else:
        getattr(comm, how)(*([1] if how in ("allgather", "broadcast") else []))


@pytest.mark.parametrize("how", ["allgather", "broadcast", "reduce", "exchange", "barrier", "channel"])
@pytest.mark.parametrize("kind", [ValueError, SystemExit, CommError])
def test_error_wakes_the_others(how: str, kind: type[BaseException]) -> None:
    woken: list[Any] = []

    def work(comm: Comm) -> None:
        comm.barrier()
        if comm.rank == 1:
            while comm._world._waiting.keys() != {0, 2}:  # the others do wait
                time.sleep(0.001)
            raise kind("no good")
        try:
            waits(comm, how)
        except CommError as error:
            woken.append(str(error))
            raise

    with pytest.raises(kind, match="no good") as caught:
        ranks(3, work)
    assert caught.value.__notes__ == ["on rank 1 of 3"]
    assert woken == [f"rank 1 of 3 failed: {kind.__name__}: no good"] * 2


def test_error_before_the_others_come() -> None:
    def work(comm: Comm) -> None:
        if comm.rank == 0:
            raise ValueError("at once")
        time.sleep(0.05)
        comm.allgather(1)

    with pytest.raises(ValueError, match="at once") as caught:
        ranks(2, work)
    assert caught.value.__notes__ == ["on rank 0 of 2"]


def test_abort() -> None:
    def work(comm: Comm) -> None:
        if comm.rank == 2:
            comm.abort("cannot go on")
        comm.barrier()

    with pytest.raises(CommError, match=r"^cannot go on\non rank 2 of 3$") as caught:
        ranks(3, work)
    assert caught.value.__notes__ == ["on rank 2 of 3"]


@pytest.mark.parametrize("how", ["allgather", "exchange", "barrier", "channel"])
def test_rank_that_left(how: str) -> None:
    """A rank waits for one that has finished."""
    what = "a message of rank 1 with tag 1" if how == "channel" else f"the other ranks in (an? )?{how}[^;]*"

    def work(comm: Comm) -> None:
        if comm.rank == 0:
            waits_for_others(comm)

    def waits_for_others(comm: Comm) -> None:
        if how == "channel":
            channel = comm.channel([], [Message(1, np.zeros(1))], 1)
            channel.start()
            channel.finish()
        else:
            waits(comm, how)

    with pytest.raises(CommError, match=f"rank 0 waits for {what}; rank 1 has finished"):
        ranks(2, work)


def test_circle() -> None:
    """Two ranks wait for messages of each other, the third for both."""

    def work(comm: Comm) -> None:
        if comm.rank == 2:
            comm.barrier()
        channel = comm.channel([], [Message(1 - comm.rank, np.zeros(1))], 4)
        channel.start()
        channel.finish()

    with pytest.raises(
        CommError, match=r"rank 0 waits for a message of rank 1 with tag 4; rank 1 waits .* rank 2 waits"
    ):
        ranks(3, work)


def test_wrong_tag() -> None:
    def work(comm: Comm) -> None:
        other = 1 - comm.rank
        channel = comm.channel([Message(other, np.zeros(1))], [Message(other, np.zeros(1))], comm.rank)
        channel.start()
        channel.finish()

    with pytest.raises(CommError, match="no rank can go on"):
        ranks(2, work)


@pytest.mark.parametrize("others", ["allgather", "broadcast", "reduce", "exchange"])
def test_ranks_that_disagree(others: str) -> None:
    def work(comm: Comm) -> None:
        waits(comm, "barrier" if comm.rank == 1 else others)

    with pytest.raises(CommError, match=r"the ranks disagree: ranks 0 and 2: .*; rank 1: a barrier"):
        ranks(3, work)


def test_no_such_root() -> None:
    with pytest.raises(CommError, match="broadcast from rank 2: there are 2 ranks, from 0"):
        ranks(2, lambda comm: comm.broadcast(1, 2))
    with pytest.raises(CommError, match="broadcast from rank 1: there are 1 ranks"):
        SelfComm().broadcast(1, 1)


def test_different_types_in_an_exchange() -> None:
    def work(comm: Comm) -> None:
        dtype = (np.float64, np.int64)[comm.rank]
        comm.exchange([np.zeros((1, 1 + comm.rank), dtype)] * 2)

    with pytest.raises(CommError, match=r"rank 0: exchange of float64 .*\(1,\); rank 1: exchange of int64 .*\(2,\)"):
        ranks(2, work)


def test_messages_are_snapshots() -> None:
    """A message that is not received yet does not follow what happens to the memory of the sender."""
    sent = threading.Event()

    def work(comm: Comm) -> float:
        memory = np.full(3, float(comm.rank))
        sends, receives = ([Message(1, memory)], []) if comm.rank == 0 else ([], [Message(0, memory)])
        channel = comm.channel(sends, receives, 0)
        if comm.rank == 0:
            for value in (5.0, 6.0):  # two messages ahead of the receiver
                memory[:] = value
                channel.start()
                channel.finish()
            memory[:] = 7.0
            sent.set()
            return 0.0
        assert sent.wait(PATIENCE)
        values = []
        for _ in range(2):
            channel.start()
            channel.finish()
            values.append(float(memory[0]))
        return values == [5.0, 6.0]

    assert ranks(2, work) == [0.0, True]


def test_what_cannot_be_pickled() -> None:
    with pytest.raises(Exception, match=r"pickle|local") as caught:
        ranks(2, lambda comm: comm.allgather(lambda: comm) if comm.rank else comm.allgather(1))
    assert caught.value.__notes__ == ["on rank 1 of 2"]


def test_interruption() -> None:
    """Control-C in the process ends the ranks, which wait for each other."""
    ended: list[str] = []
    main = threading.get_ident()

    def work(comm: Comm) -> None:
        comm.barrier()
        if comm.rank == 0:
            signal.pthread_kill(main, signal.SIGINT)
        try:
            while True:
                comm.barrier()
        except CommError as error:
            ended.append(str(error))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_threads(3, work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended == ["the process failed: KeyboardInterrupt: "] * 3


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    """Ranks do the same at random, and one fails somewhere, or leaves: the error comes out, whatever the others do."""
    generator = np.random.default_rng(seed)
    size, steps = int(generator.integers(2, 8)), 30
    program = generator.integers(0, 5, steps)
    culprit, place, leaves = int(generator.integers(size)), int(generator.integers(steps)), bool(seed % 3 == 0)

    def work(comm: Comm) -> None:
        after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        sent, found = np.zeros(4), np.zeros(4)
        channel = comm.channel([Message(after, sent)], [Message(before, found)], 0)
        for step in range(steps):
            if step == place and comm.rank == culprit:
                if leaves:
                    return
                raise ValueError("planted")
            kind = program[step]
            if kind < 3:
                waits(comm, ("allgather", "exchange", "barrier")[kind])
            else:
                sent[:] = step + comm.rank
                channel.start()
                channel.finish()
                assert found[0] == step + before

    with pytest.raises(CommError if leaves else ValueError, match="no rank can go on" if leaves else "planted"):
        ranks(size, work)


@pytest.mark.parametrize("text", ["abc", "-1", "nan", "inf", "20 s"])
def test_a_patience_that_is_no_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUXLOOM_PATIENCE", text)
    with pytest.raises(CommError, match=f"FLUXLOOM_PATIENCE='{text}': seconds"):
        ranks(2, lambda comm: comm.rank)
