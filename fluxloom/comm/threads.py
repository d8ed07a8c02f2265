"""Ranks as threads of one process: for tests of many ranks, and of numbers of ranks that no machine here has."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.comm.account import PATIENCE, Account, disagreement, named, patience_asked, unexpected
from fluxloom.comm.base import Channel, Comm, Message, check_messages, check_parts, check_root, combine, raw
from fluxloom.core.errors import CommError, OtherRankFailed

__all__ = ["ThreadsComm", "run_threads", "thread_ranks"]

Result = TypeVar("Result")

_Tag = tuple[Hashable, int]
"""The group that a channel belongs to, and its own tag."""

_Head = tuple[int, int]
"""Count and digest of what a rank has done."""

_Mail = tuple[_Head, Account, npt.NDArray[np.uint8]]
"""A message: what its sender had done, the account of that, the bytes."""

_MOMENT = 0.25
"""Seconds between two looks for an interruption."""


def run_threads(size: int, function: Callable[..., Result], *arguments: Any) -> list[Result]:
    """Run ``function(comm, *arguments)`` on ranks that are threads of this process.

    Parameters
    ----------
    size
        Number of ranks.
    function
        What each rank does; it gets its `ThreadsComm` first.
    arguments
        Further arguments, the same objects for every rank.

    Returns
    -------
    list
        What the function returned on each rank.

    Raises
    ------
    Exception
        The first error that a rank raised, with a note that names the rank. The other ranks get `CommError` from
        what they wait for.
    CommError
        When ranks wait for each other and none can go on, and when there cannot be so many.
    """
    if not isinstance(size, int) or size < 1:
        raise CommError(f"{size!r} ranks: at least one is needed, a whole number of them")
    if not callable(function):
        raise CommError(f"run_threads: behind the number of ranks stands what each of them does, not {function!r}")
    world = _World(size)
    results: list[Any] = [None] * size
    ended = [threading.Event() for _ in range(size)]

    def work(rank: int) -> None:
        try:
            comm = ThreadsComm(world, rank)
            results[rank] = function(comm, *arguments)
            _close(comm)
        except BaseException as error:
            world.fail(rank, error)
        world.leave(rank)
        ended[rank].set()

    threads = [threading.Thread(target=work, args=(rank,), name=f"rank {rank}", daemon=True) for rank in range(size)]
    try:
        for thread in threads:
            thread.start()
        _join(threads, ended)
    except BaseException as error:  # an interruption, or no more threads to be had
        world.fail(-1, error)
        _join(threads, ended)
        if isinstance(error, RuntimeError):
            raise CommError(f"{size} ranks: {error}") from error
        raise
    if world.error is not None:
        world.error.add_note(f"on rank {world.culprit} of {size}")
        raise world.error
    return results


def thread_ranks(size: int) -> list[ThreadsComm]:
    """Return the ranks of a new communicator, for threads that the caller runs, again and again; see `run_threads`.

    While a rank does nothing for others it has to have left (`ThreadsComm.leave`, `ThreadsComm.enter`): those that
    wait for it, because of an error, then get `CommError`, and the communicator is of no more use.

    Raises
    ------
    CommError
        For a number of ranks that is not positive.
    """
    if not isinstance(size, int) or size < 1:
        raise CommError(f"{size!r} ranks: at least one is needed, a whole number of them")
    world = _World(size)
    return [ThreadsComm(world, rank) for rank in range(size)]


def _close(comm: ThreadsComm) -> None:
    """Give back what lives as long as a communicator, once no rank needs it any more."""
    if comm.held:
        comm.barrier()
    for item in comm.held:
        item.close()


def _join(threads: Sequence[threading.Thread], ended: Sequence[threading.Event]) -> None:
    """Wait for threads, those that have not started left out.

    Again and again for a moment: Python looks for signals between two waits only, so that an interruption that comes
    just before a wait is noticed at the end of it. And for events of our own: a `join` that is interrupted takes a
    thread that runs for one that has ended, in Python 3.11 and 3.12.
    """
    for thread, end in zip(threads, ended, strict=True):
        while thread.ident is not None and not end.wait(_MOMENT):
            pass


def _packed(value: Any) -> bytes | list[npt.NDArray[Any]]:
    """Return what travels: copies of arrays of numbers in a list, which sums are and which is faster, else bytes."""
    if type(value) is list and all(type(item) is np.ndarray and not item.dtype.hasobject for item in value):
        return [item.copy() for item in value]
    return pickle.dumps(value)


def _unpacked(data: bytes | list[npt.NDArray[Any]]) -> Any:
    return [item.copy() for item in data] if isinstance(data, list) else pickle.loads(data)


class ThreadsComm(Comm):
    """One of several ranks that are threads of one process; `run_threads` makes them.

    Messages are copied when they are sent, as between processes; they cannot lie in the memory of a GPU.
    """

    name = "threads"

    def __init__(self, world: _World, rank: int, members: Sequence[int] = (), group: Hashable = None) -> None:
        self._world, self._group = world, group
        self._members = tuple(members) or tuple(range(world.size))
        self._own = rank
        self.rank = self.local_rank = self._members.index(rank)
        self.size = self.local_size = len(self._members)
        self._turn, self._epoch = 0, world.epoch
        self.account = Account()
        if group is None:
            world.accounts[rank] = self.account

    def note(self, act: bytes) -> None:
        """Remember what all ranks do here: see `Comm.note`."""
        self.account.note(act)

    def head(self) -> tuple[int, int]:
        """Return count and digest of what this rank has done so far."""
        if self._epoch != self._world.epoch:  # what was left is forgotten
            self._epoch, self._turn = self._world.epoch, 0
            self.account.clear()
        return self.account.count, self.account.digest

    def allgather(self, value: Any) -> list[Any]:
        """Return the value of every rank; each is pickled or copied: no rank sees the objects of another."""
        return [_unpacked(data) for data in self._collect("an allgather", _packed(value))]

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Return the value of one rank on every rank."""
        check_root(root, self.size)
        data = pickle.dumps(value) if self.rank == root else b""
        return pickle.loads(self._collect(f"a broadcast from rank {root}", data)[root])

    def reduce(self, values: npt.NDArray[Any], operation: str) -> npt.NDArray[Any]:
        """Combine small arrays of all ranks."""
        array = np.array(values, copy=True)
        return combine(self._collect(f"{operation} of {array.dtype} of shape {array.shape}", array), operation)

    def exchange(self, parts: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Send ``parts[r]`` to rank ``r``; return what each rank sent here."""
        arrays = check_parts(parts, self.size)
        act = f"exchange of {arrays[0].dtype} of shape {arrays[0].shape[1:]}"
        return [sent[self.rank] for sent in self._collect(act, [np.array(a, copy=True) for a in arrays])]

    def channel(self, sends: Sequence[Message], receives: Sequence[Message], tag: int) -> Channel:
        """Return a channel that copies what is sent when it starts."""
        return _ThreadsChannel(self, self._world, self._members, sends, receives, (self._group, tag))

    def barrier(self) -> None:
        """Wait for every rank."""
        self._collect("a barrier", None)

    def split(self, colour: int, key: int = 0) -> ThreadsComm | None:
        """Return the communicator of the ranks that give the same colour; see `Comm.split`.

        Its ranks are among those that are watched here: when no rank can go on, all are told. Messages of errors have
        the numbers of the ranks of `run_threads`.
        """
        found = self._collect("a split into groups", (int(colour), int(key)))
        if colour < 0:
            return None
        order = sorted((other, rank) for rank, (its, other) in enumerate(found) if its == colour)
        members = [self._members[rank] for _, rank in order]
        return ThreadsComm(self._world, self._own, members, (self._group, self._epoch, self._turn, int(colour)))

    def abort(self, message: str, status: int = 1) -> NoReturn:
        """Wake all other ranks with an error and raise `CommError`."""
        error = CommError(message)
        self._world.fail(self._own, error)
        raise error

    def rally(self, word: Any, patience: float) -> list[Any] | None:
        """Wake the other ranks, and meet them; see `Comm.rally`. Where none can go on, all know at once."""
        found = self._world.rally(self._own, pickle.dumps(word), patience)
        return None if found is None else [pickle.loads(found[member]) for member in self._members]

    def leave(self) -> None:
        """Say that this rank does nothing for others from now on. Not collective."""
        self._world.leave(self._own)

    def enter(self) -> None:
        """Say that this rank takes part again: before any of those that call `leave` afterwards begins."""
        self._world.enter(self._own)

    @property
    def broken(self) -> str:
        """Why the ranks can do nothing any more; empty while they can."""
        return self._world.broken

    def _collect(self, operation: str, payload: Any) -> list[Any]:
        """Return what every rank gave to the same call."""
        self.head()
        self.account.note(operation.encode())
        self._turn += 1
        turn = (self._group, self._epoch, self._turn)
        return self._world.collect(self._own, self._members, turn, operation, (self.head(), self.account, payload))


class _World:
    """What the ranks share. One lock guards it all; each rank waits on a condition of its own.

    A rank that has to wait says for what, with a function that tells whether it came. When every rank that still
    runs waits and nothing came, nothing ever will: all are woken with an error.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.error: BaseException | None = None
        self.culprit = 0
        self.broken = ""
        self.epoch = 0
        """How often the ranks have left everything and met."""
        self._words: dict[int, bytes] = {}
        self._met: dict[int, bytes] = {}
        self.accounts: dict[int, Account] = {}
        self._patience = patience_asked(os.environ.get(PATIENCE, ""))
        self._verdicts: dict[Hashable, str] = {}
        self._lock = threading.Lock()
        self._conditions = [threading.Condition(self._lock) for _ in range(size)]
        self._running = set(range(size))
        self._waiting: dict[int, tuple[str, Callable[[], bool]]] = {}
        self._rounds: dict[Hashable, dict[int, tuple[_Head, Account, Any]]] = defaultdict(dict)
        self._taken: dict[Hashable, int] = defaultdict(int)
        self._mail: dict[tuple[int, int, _Tag], deque[_Mail]] = defaultdict(deque)

    def fail(self, rank: int, error: BaseException) -> None:
        """Remember the first error and wake everybody."""
        with self._lock:
            if self.error is None:
                self.error, self.culprit = error, rank
                who = f"rank {rank} of {self.size}" if rank >= 0 else "the process"
                self._break(self.broken or f"{who} failed: {type(error).__name__}: {error}")

    def leave(self, rank: int) -> None:
        """Note that a rank has finished."""
        with self._lock:
            self._running.discard(rank)
            self._look()

    def enter(self, rank: int) -> None:
        """Note that a rank takes part again."""
        with self._lock:
            self._running.add(rank)

    def rally(self, rank: int, word: bytes, patience: float) -> dict[int, bytes] | None:
        """Wake all ranks and wait until each of them is here; None: they do not come."""
        deadline = time.monotonic() + patience
        with self._lock:
            epoch = self.epoch
            self._words[rank] = word
            if not self.broken:
                self._break(f"rank {rank} of {self.size} has failed")
            if len(self._words) == self.size:
                self._met, self._words = self._words, {}
                for left in (self._rounds, self._taken, self._mail):
                    left.clear()
                self.broken, self.epoch = "", epoch + 1
                self._wake(range(self.size))
            while self.epoch == epoch:
                left = deadline - time.monotonic()
                if left <= 0.0 or len(self._running) < self.size:
                    del self._words[rank]
                    return None
                self._conditions[rank].wait(min(left, _MOMENT))
            return self._met

    def collect(
        self, rank: int, members: Sequence[int], turn: Hashable, operation: str, given: tuple[_Head, Account, Any]
    ) -> list[Any]:
        """Give a payload; return those of all members when the last one is there, if all have done the same so far."""
        size = len(members)
        with self._lock:
            round_ = self._rounds[turn]
            round_[rank] = given
            if len(round_) == size:
                if len({head for head, _, _ in round_.values()}) > 1:
                    self._verdicts[turn] = disagreement({m: round_[m][1].story() for m in members})
                self._wake(members)
            self._wait(rank, f"the other ranks in {operation}", lambda: len(round_) == size)
            self._taken[turn] += 1
            if self._taken[turn] == size:
                del self._rounds[turn], self._taken[turn]
            verdict = self._verdicts.get(turn, "") if self._verdicts else ""
        if verdict:
            raise CommError(verdict)
        return [round_[other][2] for other in members]

    def differ(self, text: str) -> NoReturn:
        """Tell all ranks that what one of them has sent is not what another one waits for."""
        with self._lock:
            if not self.broken:
                self._break(text)
        raise CommError(text)

    def send(self, source: int, target: int, tag: _Tag, data: _Mail) -> None:
        """Put a message into the box of a rank."""
        with self._lock:
            if self.broken:
                raise OtherRankFailed(self.broken)
            self._mail[source, target, tag].append(data)
            self._wake((target,))

    def receive(self, source: int, target: int, tag: _Tag) -> _Mail:
        """Take the oldest message out of the box of a rank."""
        with self._lock:
            box = self._mail[source, target, tag]
            self._wait(target, f"a message of rank {source} with tag {tag[1]}", lambda: bool(box))
            return box.popleft()

    # What follows is called with the lock held.

    def _wait(self, rank: int, what: str, came: Callable[[], bool]) -> None:
        self._waiting[rank] = (what, came)
        begin, tell = time.monotonic(), self._patience
        try:
            while not came():
                self._look()
                if self.broken:
                    raise OtherRankFailed(self.broken)
                if not self._conditions[rank].wait(tell) and time.monotonic() - begin >= tell:
                    tell *= 2.0
                    self._say(rank, what, time.monotonic() - begin)
        finally:
            del self._waiting[rank]

    def _say(self, rank: int, what: str, seconds: float) -> None:
        """Print that a wait is long, once for all ranks: the lowest that waits does."""
        busy = sorted(self._running - set(self._waiting))
        if busy and rank == min(self._waiting):
            away = f"{named(busy)} {'does' if len(busy) == 1 else 'do'} not: still compiling or computing"
            sys.stderr.write(
                f"rank {rank} of {self.size} has waited for {seconds:.0f} s for {what}; {away}. It waits on\n"
            )

    def _look(self) -> None:
        """Break up when all ranks that still run wait for something that did not come."""
        if self.broken or not self._running or len(self._waiting) < len(self._running):
            return
        if any(came() for _, came in self._waiting.values()):
            return
        waits = [f"rank {rank} waits for {what}" for rank, (what, _) in sorted(self._waiting.items())]
        gone = sorted(set(range(self.size)) - self._running)
        waits += [f"rank {rank} has finished" for rank in gone]
        differs = disagreement({rank: account.story() for rank, account in sorted(self.accounts.items())})
        self._break("; ".join([f"no rank can go on: {waits[0]}", *waits[1:], *([differs] if differs else [])]))

    def _break(self, why: str) -> None:
        self.broken = why
        self._wake(range(self.size))

    def _wake(self, ranks: Sequence[int]) -> None:
        for rank in ranks:
            self._conditions[rank].notify()


class _ThreadsChannel(Channel):
    def __init__(
        self, comm: ThreadsComm, world: _World, members: Sequence[int], sends: Sequence[Message],
        receives: Sequence[Message], tag: _Tag,
    ) -> None:  # fmt: skip
        check_messages(sends, receives, tag[1], len(members))
        self._comm, self._world, self._members, self._rank = comm, world, members, comm.rank
        self._key, self._tag, self._head = tag, tag[1], (0, 0)
        self._sends = [(message.rank, raw(message.memory)) for message in sends]
        self._receives = [(message.rank, raw(message.memory, receives=True)) for message in receives]
        self._started, self._epoch = False, world.epoch

    def start(self) -> None:
        if self._started and self._epoch == self._world.epoch:
            raise CommError(f"the channel with tag {self._tag} is started again before it has finished")
        self._started, self._epoch, self._head = True, self._world.epoch, self._comm.head()
        for target, memory in self._sends:
            mail = self._head, self._comm.account, memory.copy()
            self._world.send(self._members[self._rank], self._members[target], self._key, mail)

    def finish(self) -> None:
        if not self._started or self._epoch != self._world.epoch:
            raise CommError(f"the channel with tag {self._tag} is finished but was not started")
        for source, memory in self._receives:
            head, account, data = self._world.receive(self._members[source], self._members[self._rank], self._key)
            if head != self._head:
                stories = {source: account.story(), self._rank: self._comm.account.story()}
                text = disagreement(dict(sorted(stories.items())))
                self._world.differ(text or unexpected([source], self._rank, self._tag, self._comm.account.last))
            if data.size != memory.size:
                raise CommError(
                    f"rank {source} sent {data.size} bytes with tag {self._tag}, "
                    f"rank {self._rank} expected {memory.size}"
                )
            memory[...] = data
        self._started = False
