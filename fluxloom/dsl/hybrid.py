"""Unequal devices in one process: running them at the same time, and finding how much each should get.

The load balance is that of the portable algebraic CFD thesis (TermoFluids), section 3: a tabu search on the time
that is measured *while all devices run*. Times of each device alone only tell where to begin: devices that share
memory, power or cores slow each other down.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import FluxloomError
from fluxloom.perf.hybrid import shares_from_weights, weights_from_rates, weights_from_run
from fluxloom.perf.tuner import Knob, Point, tabu

__all__ = ["Attempt", "Balanced", "Build", "Measured", "Program", "Team", "balance", "run_together"]

GRANULES = (16, 64)
"""Into how many pieces the work is cut by default: coarsely first, then finely around the best."""


# ------------------------------------------------------------------------------------ running together


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


def run_together(runs: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run functions once at the same time, each in a thread of its own, and return their results; see `Team`."""
    with Team(runs) as team:
        return team()


# --------------------------------------------------------------------------------------------- balance


@dataclass(frozen=True)
class Measured:
    """The time of a step.

    Attributes
    ----------
    seconds
        From beginning to end, with all that is waited for.
    busy
        Time that each device computed, waiting not counted. Where ranks measure, each knows its own
        and says 0 for the others.
    """

    seconds: float
    busy: tuple[float, ...]


class Program(Protocol):
    """Something that runs on several devices with given shares."""

    def measure(self) -> Measured:
        """Run some steps, on all devices at the same time, and return the time of one."""
        ...

    def close(self) -> None:
        """Give back what it holds; it is not used any more."""
        ...


Build = Callable[[Sequence[Any], Sequence[float]], Program]
"""Makes the program for some devices and the part of the work that each of them gets."""


@dataclass(frozen=True)
class Attempt:
    """Shares that were tried.

    Attributes
    ----------
    shares
        Part of the work of each device.
    seconds, busy
        Medians of what was measured; infinite seconds, and no times, when it cannot run.
    error
        Why it cannot run; empty when it can.
    """

    shares: tuple[float, ...]
    seconds: float
    busy: tuple[float, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Balanced:
    """What a balance found.

    Attributes
    ----------
    devices
        The devices, as they were given.
    shares
        The best part of the work of each device.
    seconds
        Time of a step with them.
    rates
        For each device its part of the work divided by the time it computed, while all ran.
    alone
        Seconds of a step of each device alone; empty when it was not measured.
    history
        All that was tried, in order.
    """

    devices: tuple[Any, ...]
    shares: tuple[float, ...]
    seconds: float
    rates: tuple[float, ...]
    alone: tuple[float, ...]
    history: tuple[Attempt, ...]

    @property
    def efficiency(self) -> float:
        """Speed as a part of the sum of the rates that the devices have while all run."""
        return 1.0 / (sum(self.rates) * self.seconds)

    @property
    def pays(self) -> bool:
        """Whether the devices together are faster than the fastest of them alone (where that is known)."""
        return self.seconds < min(self.alone, default=np.inf)


def balance(
    build: Build,
    devices: Sequence[Any],
    *,
    rates: Sequence[float] | None = None,
    granules: Sequence[int] = GRANULES,
    rounds: int = 3,
    budget: int = 40,
    comm: Comm | None = None,
) -> Balanced:
    """Find the part of the work that each device should get, by measuring.

    ::

        shares = separate rates;  measure;  correct them with the rates while all run
        coarse pieces, then fine ones:  tabu search on the measured time of a step

    Parameters
    ----------
    build
        Makes the program. It may raise `FluxloomError` for shares that cannot be.
    devices
        At least two of whatever ``build`` takes.
    rates
        Work a second of each device; by default each is measured alone with all of the work first.
    granules
        Into how many pieces the work is cut, coarse to fine: shares are multiples, each device gets at least
        one. Every number is a multiple of the one before.
    rounds
        Measurements of a median.
    budget
        Attempts at most; those of devices alone do not count.
    comm
        Ranks that share the devices: all of them call this function, and all go by the slowest measurement.

    Raises
    ------
    FluxloomError
        If the choices make no sense, or no shares can run.
    """
    ranks = comm if comm is not None else SelfComm()
    count = len(devices)
    _check(count, rates, granules, rounds, budget)
    alone: tuple[float, ...] = ()
    if rates is None:
        single = [_measure(build, (device,), (1.0,), rounds, ranks) for device in devices]
        for device, one in zip(devices, single, strict=True):
            if one.error:
                raise FluxloomError(f"{device} cannot do all of the work alone: {one.error}; give rates")
        alone = tuple(one.seconds for one in single)
        rates = [1.0 / seconds for seconds in alone]
    tried = _Tried(lambda shares: _measure(build, tuple(devices), shares, rounds, ranks), budget)
    shares = shares_from_weights(weights_from_rates(rates))
    for pieces in granules:
        _search(tried, shares, pieces)
        shares = tried.best.shares
    best = tried.best
    if best.error:
        raise FluxloomError(f"none of {len(tried.known)} shares can run: {best.error}")
    together = tuple(share / busy for share, busy in zip(best.shares, best.busy, strict=True))
    return Balanced(tuple(devices), best.shares, best.seconds, together, alone, tuple(tried.known.values()))


# ------------------------------------------------------------------------------------------ the parts

_Pieces = tuple[int, ...]
"""How many pieces of the work each device gets."""


class _Tried:
    """Measures shares once each, up to a number of attempts."""

    def __init__(self, measure: Callable[[tuple[float, ...]], Attempt], budget: int) -> None:
        self._measure, self._budget = measure, budget
        self.known: dict[tuple[float, ...], Attempt] = {}

    def seconds(self, pieces: _Pieces) -> float:
        """Return the time with these pieces; raise `FluxloomError` if they cannot run, or no attempt is left."""
        found = self.attempt(pieces)
        if found is None or found.error:
            raise FluxloomError(found.error if found is not None else "no attempt is left")
        return found.seconds

    def attempt(self, pieces: _Pieces) -> Attempt | None:
        """Return what comes of these pieces; None when no attempt is left."""
        total = sum(pieces)
        shares = tuple(n / total for n in pieces)
        if shares not in self.known and len(self.known) < self._budget:
            self.known[shares] = self._measure(shares)
        return self.known.get(shares)

    @property
    def best(self) -> Attempt:
        """The fastest attempt."""
        return min(self.known.values(), key=lambda attempt: attempt.seconds)


def _search(tried: _Tried, shares: Sequence[float], pieces: int) -> None:
    """Search with the work cut into so many pieces, beginning near some shares."""
    for start in _around(_cut(shares, pieces)):
        first = tried.attempt(start)
        if first is None:
            return
        if not first.error:
            break
    else:
        return
    other = _cut(shares_from_weights(weights_from_run(first.shares, first.busy)), pieces)
    second = tried.attempt(other)
    start = other if second is not None and second.seconds < first.seconds else start
    last = len(start) - 1
    knobs = [Knob(str(k), tuple(range(1, pieces - last + 1))) for k in range(last)]

    def measure(point: Point) -> float:
        given = tuple(point.values())
        rest = pieces - sum(given)
        if rest < 1:
            raise FluxloomError("nothing is left for the last device")
        return tried.seconds((*given, rest))

    tabu(knobs, measure, start={str(k): start[k] for k in range(last)})


def _around(pieces: _Pieces) -> Iterator[_Pieces]:
    """Yield these pieces, then what comes of moving some from one device to another, few first."""
    yield pieces
    for moved in range(1, sum(pieces)):
        for a, b in itertools.permutations(range(len(pieces)), 2):
            if pieces[a] > moved:
                yield tuple(n + moved * ((k == b) - (k == a)) for k, n in enumerate(pieces))


def _cut(shares: Sequence[float], pieces: int) -> _Pieces:
    """Return how many pieces each device gets: at least one, otherwise as near to its share as can be."""
    exact = [share * pieces for share in shares]
    counts = [max(1, int(e)) for e in exact]
    while (missing := pieces - sum(counts)) != 0:
        # One piece at a time to whom most is missing, or from whom most can be spared.
        step = 1 if missing > 0 else -1
        lack = [step * (e - n) if n + step >= 1 else -np.inf for e, n in zip(exact, counts, strict=True)]
        counts[int(np.argmax(lack))] += step
    return tuple(counts)


def _measure(build: Build, devices: tuple[Any, ...], shares: tuple[float, ...], rounds: int, comm: Comm) -> Attempt:
    """Return what comes of some shares: medians of rounds, each that of the slowest rank."""
    found, error = np.zeros((rounds, 1 + len(devices))), ""
    try:
        program = build(devices, shares)
        try:
            program.measure()  # compiles and loads
            for row in found:
                one = program.measure()
                row[:] = (one.seconds, *one.busy)
        finally:
            program.close()
    except FluxloomError as problem:
        error = str(problem) or type(problem).__name__
    errors = [text for text in comm.allgather(error) if text]
    if errors:
        return Attempt(shares, np.inf, error=errors[0])
    middle = np.median(comm.reduce(found, "max"), axis=0)
    return Attempt(shares, float(middle[0]), tuple(float(b) for b in middle[1:]))


def _check(count: int, rates: Sequence[float] | None, granules: Sequence[int], rounds: int, budget: int) -> None:
    """Raise `FluxloomError` for choices that make no sense."""
    if count < 2:
        raise FluxloomError(f"{count} devices: a balance needs at least two")
    if rates is not None and len(rates) != count:
        raise FluxloomError(f"{len(rates)} rates for {count} devices")
    if not granules or granules[0] < count or any(b % a for a, b in itertools.pairwise(granules)):
        raise FluxloomError(f"granules {tuple(granules)}: at least {count}, each a multiple of the one before")
    if rounds < 1 or budget < 1:
        raise FluxloomError(f"{rounds} rounds, a budget of {budget}: both are at least 1")
