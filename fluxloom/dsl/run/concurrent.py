"""Functions that run at the same time in one process, and how long ranks wait for each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy.typing as npt

from fluxloom.comm.base import Channel, Comm, Message
from fluxloom.core.errors import FluxloomError

__all__ = ["Team", "TimedComm"]


@dataclass
class _Member:
    """A thread that runs what it is told to, again and again."""

    run: Callable[[], Any]
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    result: Any = None
    error: BaseException | None = None
    seconds: float = 0.0
    leaves: bool = False


class Team:
    """Threads that run functions at the same time, each always its own.

    Native code (loops of the CPU device, kernels of others) does not hold Python's lock, so that it really runs at
    the same time. A thread keeps its function for good: so does what belongs to the thread, as the
    threads of OpenMP do. Use it as a context manager, or call `close`.

    Parameters
    ----------
    runs
        The functions, which take nothing.

    Attributes
    ----------
    seconds
        Time that each function took in the last call.
    """

    def __init__(self, runs: Sequence[Callable[[], Any]]) -> None:
        self._members = [_Member(run) for run in runs]
        self._done = threading.Semaphore(0)
        self._threads = [
            threading.Thread(target=self._work, args=(member,), name=f"team {k}", daemon=True)
            for k, member in enumerate(self._members)
        ]
        self.seconds: list[float] = [0.0 for _ in self._members]
        for thread in self._threads:
            thread.start()

    def _work(self, member: _Member) -> None:
        while True:
            member.go.acquire()
            if member.leaves:
                return
            start = time.perf_counter()
            try:
                member.result = member.run()
            except BaseException as error:  # the caller raises it
                member.error = error
            member.seconds = time.perf_counter() - start
            self._done.release()

    def __call__(self) -> list[Any]:
        """Run every function once, all at the same time, and return their results.

        Raises
        ------
        Exception
            The error of the first function that raised one, when all have ended; a note says which.
        FluxloomError
            If the team was closed.
        """
        if not all(thread.is_alive() for thread in self._threads):
            raise FluxloomError("this team was closed: make a new one")
        for member in self._members:
            member.result, member.error = None, None
            member.go.release()
        for _ in self._members:
            self._done.acquire()
        self.seconds = [member.seconds for member in self._members]
        for k, member in enumerate(self._members):
            if member.error is not None:
                member.error.add_note(f"in function {k} of {len(self._members)} that ran together")
                raise member.error
        return [member.result for member in self._members]

    def close(self) -> None:
        """End the threads."""
        for member, thread in zip(self._members, self._threads, strict=True):
            member.leaves = True
            member.go.release()
            thread.join()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TimedComm(Comm):
    """A communicator that takes the time for which a rank waits for others.

    Parameters
    ----------
    inner
        Does the work.
    settle
        Waits for the device of this rank: called before each wait, so that what the device computes
        meanwhile does not count as waiting. Give ``context.synchronize``, later if need be.

    Attributes
    ----------
    waited
        Seconds so far in what needs other ranks; may be set to 0.
    """

    def __init__(self, inner: Comm, settle: Callable[[], None] | None = None) -> None:
        self.name, self.rank, self.size = inner.name, inner.rank, inner.size
        self.local_rank, self.local_size = inner.local_rank, inner.local_size
        self.takes_device_memory = inner.takes_device_memory
        self.inner, self.settle, self.waited = inner, settle, 0.0

    @contextmanager
    def waiting(self) -> Iterator[Comm]:
        """Count what runs inside as waiting; gives the communicator that does the work."""
        if self.settle is not None:
            self.settle()
        start = time.perf_counter()
        try:
            yield self.inner
        finally:
            self.waited += time.perf_counter() - start

    def allgather(self, value: Any) -> list[Any]:
        """Return the value of every rank."""
        with self.waiting() as inner:
            return inner.allgather(value)

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value of one rank on every rank."""
        with self.waiting() as inner:
            return inner.broadcast(value, root)

    def reduce(self, values: npt.NDArray[Any], operation: str) -> npt.NDArray[Any]:
        """Combine small arrays of all ranks."""
        with self.waiting() as inner:
            return inner.reduce(values, operation)

    def exchange(self, parts: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Send ``parts[r]`` to rank ``r``; return what each rank sent here."""
        with self.waiting() as inner:
            return inner.exchange(parts)

    def note(self, act: bytes) -> None:
        """Remember what all ranks do here."""
        self.inner.note(act)

    def devices_talk(self) -> Callable[[Callable[[], bool]], None] | None:
        """Hear that devices send each other messages; see `Comm.devices_talk`."""
        return self.inner.devices_talk()

    def barrier(self) -> None:
        """Wait for every rank."""
        with self.waiting() as inner:
            inner.barrier()

    def rest(self) -> None:
        """Wait for every rank without keeping a core busy."""
        with self.waiting() as inner:
            inner.rest()

    def split(self, colour: int, key: int = 0) -> TimedComm | None:
        """Return the communicator of the ranks that give the same colour; it counts its own waiting."""
        with self.waiting() as inner:
            part = inner.split(colour, key)
        return None if part is None else TimedComm(part, self.settle)

    def channel(self, sends: Sequence[Message], receives: Sequence[Message], tag: int) -> Channel:
        """Return a channel whose `finish` counts as waiting."""
        return _TimedChannel(self, self.inner.channel(sends, receives, tag))

    def rally(self, word: Any, patience: float) -> list[Any] | None:
        """Wake the other ranks, and meet them."""
        return self.inner.rally(word, patience)

    def abort(self, message: str, status: int = 1) -> NoReturn:
        """End all ranks."""
        self.inner.abort(message, status)


class _TimedChannel(Channel):
    def __init__(self, comm: TimedComm, inner: Channel) -> None:
        self._comm, self._inner = comm, inner

    def start(self) -> None:
        self._inner.start()

    def finish(self) -> None:
        with self._comm.waiting():
            self._inner.finish()

    def close(self) -> None:
        self._inner.close()
