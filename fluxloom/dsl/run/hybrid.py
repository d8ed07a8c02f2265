"""Unequal devices in one process: running them at the same time, and finding how much each should get.

The load balance is that of the portable algebraic CFD thesis (TermoFluids), section 3: a tabu search on the time
that is measured *while all devices run*. Times of each device alone only tell where to begin: devices that share
memory, power or cores slow each other down.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fluxloom.comm.base import Comm, SelfComm
from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.run.concurrent import Team, TimedComm
from fluxloom.perf.shares import shares_from_weights, weights_from_rates, weights_from_run
from fluxloom.perf.tuner import Knob, Point, tabu

__all__ = [
    "Attempt",
    "Balanced",
    "Build",
    "DistributedProgram",
    "Measured",
    "Program",
    "Team",
    "TimedComm",
    "balance",
]

GRANULES = (16, 64)
"""Into how many pieces the work is cut by default: coarsely first, then finely around the best."""


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


class DistributedProgram:
    """A program of which each rank computes its part on a device of its own.

    Parameters
    ----------
    comm
        The ranks; its context exchanges through it.
    step
        Runs one step of this rank, exchanges included.
    steps
        Steps of a measurement.
    close
        Called at the end.
    """

    def __init__(
        self, comm: TimedComm, step: Callable[[], object], steps: int = 10, close: Callable[[], object] | None = None
    ) -> None:
        self._comm, self._step, self._steps, self._close = comm, step, steps, close

    def measure(self) -> Measured:
        """Run the steps on all ranks and return the time of one, and that for which this rank computed."""
        comm = self._comm
        comm.barrier()
        comm.waited, start = 0.0, time.perf_counter()
        for _ in range(self._steps):
            self._step()
        if comm.settle is not None:
            comm.settle()
        seconds = time.perf_counter() - start
        busy = max(seconds - comm.waited, 0.0) / self._steps
        return Measured(seconds / self._steps, tuple(busy if k == comm.rank else 0.0 for k in range(comm.size)))

    def close(self) -> None:
        """Give back what the program holds."""
        if self._close is not None:
            self._close()


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
    restarts: Sequence[Sequence[float]] = (),
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
    restarts
        Other shares from which the coarse search begins again: it follows improvements and may end in a local minimum.
    comm
        Ranks, one a device (see `DistributedProgram`): all of them call this function, and all go by the slowest
        measurement. Give ``rates`` then, equal ones if nothing is known: no device works alone there.

    Raises
    ------
    FluxloomError
        If the choices make no sense, or no shares can run.
    """
    ranks, count = comm if comm is not None else SelfComm(), len(devices)
    _check(count, rates, granules, rounds, budget)
    others = _restarts(restarts, count)
    alone = () if rates is not None else _seconds_alone(build, devices, rounds, ranks)
    rates = rates if rates is not None else [1.0 / seconds for seconds in alone]
    tried = _Tried(lambda shares: _measure(build, tuple(devices), shares, rounds, ranks), budget)
    shares = shares_from_weights(weights_from_rates(rates))
    for number, pieces in enumerate(granules):
        for start in (shares, *others) if number == 0 else (shares,):
            _search(tried, start, pieces)
        shares = tried.best.shares
    best = tried.best
    if best.error:
        raise FluxloomError(f"none of {len(tried.known)} shares can run: {best.error}")
    together = tuple(share / busy for share, busy in zip(best.shares, best.busy, strict=True))
    return Balanced(tuple(devices), best.shares, best.seconds, together, alone, tuple(tried.known.values()))


def _restarts(given: Sequence[Sequence[float]], count: int) -> list[tuple[float, ...]]:
    """Return other shares to begin from, which add up to 1.

    Raises
    ------
    FluxloomError
        If there are not ``count`` of them each time.
    """
    if any(len(again) != count for again in given):
        raise FluxloomError(f"restarts {[list(again) for again in given]}: give {count} shares each")
    return [shares_from_weights(again) for again in given]


def _seconds_alone(build: Build, devices: Sequence[Any], rounds: int, ranks: Comm) -> tuple[float, ...]:
    """Return the time of a step on each device with all of the work."""
    found = [_measure(build, (device,), (1.0,), rounds, ranks) for device in devices]
    for device, one in zip(devices, found, strict=True):
        if one.error:
            raise FluxloomError(f"{device} cannot do all of the work alone: {one.error}; give rates")
    return tuple(one.seconds for one in found)


# ------------------------------------------------------------------------------------------ the parts

_Pieces = tuple[int, ...]
"""How many pieces of the work each device gets."""


class _Tried:
    """Measures shares once each, up to a number of attempts."""

    def __init__(self, measure: Callable[[tuple[float, ...]], Attempt], budget: int) -> None:
        self._measure, self._budget = measure, budget
        self.known: dict[tuple[float, ...], Attempt] = {}

    def attempt(self, pieces: _Pieces) -> Attempt:
        """Return what comes of these pieces, or that no attempt is left."""
        total = sum(pieces)
        shares = tuple(n / total for n in pieces)
        if shares not in self.known:
            if len(self.known) >= self._budget:
                return Attempt(shares, np.inf, error="no attempt is left")
            self.known[shares] = self._measure(shares)
        return self.known[shares]

    @property
    def best(self) -> Attempt:
        """The fastest attempt."""
        return min(self.known.values(), key=lambda attempt: attempt.seconds)


def _search(tried: _Tried, shares: Sequence[float], pieces: int) -> None:
    """Search with the work cut into so many pieces, beginning near some shares."""
    start = next((near for near in _around(_cut(shares, pieces)) if not tried.attempt(near).error), None)
    if start is None:
        return
    first = tried.attempt(start)
    other = _cut(shares_from_weights(weights_from_run(first.shares, first.busy)), pieces)
    start = other if tried.attempt(other).seconds < first.seconds else start
    last = len(start) - 1
    knobs = [Knob(str(k), tuple(range(1, pieces - last + 1))) for k in range(last)]

    def measure(point: Point) -> float:
        given = tuple(point.values())
        rest = pieces - sum(given)
        if rest < 1:
            raise FluxloomError("nothing is left for the last device")
        found = tried.attempt((*given, rest))
        if found.error:
            raise FluxloomError(found.error)
        return found.seconds

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
