"""When processes of unequal speed share one mesh: how long a step takes, and which shares are best.

Two models of I. Z. Reguly, PhD thesis, PPCU Budapest 2014, section 6.3. The simple one waits for the slowest process
after every loop. The other follows the messages: between two global synchronisations a process waits
only for the neighbours whose values it needs, and hides the wait behind its interior elements. The
thesis leaves out what a message costs; here it may have a latency and a bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import TypeAlias

import numpy as np

from fluxloom.core.errors import FluxloomError

__all__ = [
    "FREE",
    "Link",
    "LoopRate",
    "LoopTime",
    "Neighbours",
    "Optimum",
    "Timeline",
    "barrier_seconds",
    "everyone",
    "linear_times",
    "loop_times",
    "optimal_weight",
    "region_seconds",
    "timelines",
    "total_seconds",
]

Neighbours: TypeAlias = Sequence[Sequence[int]]
"""For each process those whose values it needs."""


@dataclass(frozen=True)
class Link:
    """What a message costs: ``latency + bytes / bandwidth`` seconds.

    Attributes
    ----------
    latency
        Seconds of an empty message.
    bandwidth
        Bytes a second.

    Raises
    ------
    FluxloomError
        If the latency is negative or the bandwidth not positive.
    """

    latency: float = 0.0
    bandwidth: float = inf

    def __post_init__(self) -> None:
        if not self.latency >= 0 or not self.bandwidth > 0:
            raise FluxloomError(f"{self}: a latency is at least 0, a bandwidth positive")

    def seconds(self, nbytes: float) -> float:
        """Return the time from sending to arrival."""
        return self.latency + nbytes / self.bandwidth


FREE = Link()
"""Messages that cost nothing, as in the thesis."""


@dataclass(frozen=True)
class LoopTime:
    """The times of one loop on every process.

    Attributes
    ----------
    interior
        Seconds of the elements that need no message; of all elements, when the loop needs none.
    boundary
        Seconds of those that do; empty: the loop needs nothing of other processes.
    nbytes
        Bytes that each process sends to each neighbour before the loop; empty: none.
    """

    interior: tuple[float, ...]
    boundary: tuple[float, ...] = ()
    nbytes: tuple[float, ...] = ()

    @property
    def exchanges(self) -> bool:
        """Whether messages go before the loop."""
        return bool(self.boundary)

    def seconds(self, process: int) -> float:
        """Return the time of all elements of a process."""
        return self.interior[process] + (self.boundary[process] if self.boundary else 0.0)


@dataclass(frozen=True)
class Timeline:
    """When a process does what between two global synchronisations, in seconds after the first.

    The first four have one entry for each loop that needs messages.

    Attributes
    ----------
    send
        The messages leave; interior elements begin.
    receive
        Interior elements are done.
    wait
        All messages are here; boundary elements begin.
    finish
        The loop is done.
    end
        All loops are done.
    """

    send: tuple[float, ...]
    receive: tuple[float, ...]
    wait: tuple[float, ...]
    finish: tuple[float, ...]
    end: float

    @property
    def idle(self) -> float:
        """Seconds spent waiting for messages."""
        return sum(self.wait) - sum(self.receive)


# -------------------------------------------------------------------------------- time of given loops


def everyone(processes: int) -> tuple[tuple[int, ...], ...]:
    """Return the neighbours when every process needs values of all others."""
    return tuple(tuple(k for k in range(processes) if k != i) for i in range(processes))


def timelines(region: Sequence[LoopTime], neighbours: Neighbours, link: Link = FREE) -> list[Timeline]:
    """Return what each process does between two global synchronisations.

    ::

        send(l) = fin(l-1) + loops without messages in between      recv(l) = send(l) + interior(l)
        wait(l) = max(recv(l), arrival of the last message)         fin(l)  = wait(l) + boundary(l)

    A message arrives ``link.seconds(bytes)`` after its sender reached ``send(l)``.

    Raises
    ------
    FluxloomError
        If a loop does not have a time for every process, or a neighbour does not exist.
    """
    processes = range(_count(region, neighbours))
    now = [0.0 for _ in processes]
    marks: list[tuple[list[float], ...]] = [([], [], [], []) for _ in processes]
    for loop in region:
        if not loop.exchanges:
            now = [now[i] + loop.seconds(i) for i in processes]
            continue
        arrives = [now[i] + link.seconds(loop.nbytes[i] if loop.nbytes else 0.0) for i in processes]
        for i, sent in enumerate(list(now)):
            received = sent + loop.interior[i]
            waited = max([received, *(arrives[n] for n in neighbours[i])])
            now[i] = waited + loop.boundary[i]
            for column, value in zip(marks[i], (sent, received, waited, now[i]), strict=True):
                column.append(value)
    return [
        Timeline(tuple(send), tuple(receive), tuple(wait), tuple(finish), now[i])
        for i, (send, receive, wait, finish) in enumerate(marks)
    ]


def region_seconds(region: Sequence[LoopTime], neighbours: Neighbours, link: Link = FREE) -> float:
    """Return the time between two global synchronisations: that of the last process (see `timelines`)."""
    return max((line.end for line in timelines(region, neighbours, link)), default=0.0)


def total_seconds(regions: Sequence[Sequence[LoopTime]], neighbours: Neighbours, link: Link = FREE) -> float:
    """Return the time of regions that global synchronisations separate: the sum (see `region_seconds`)."""
    return sum(region_seconds(region, neighbours, link) for region in regions)


def barrier_seconds(regions: Sequence[Sequence[LoopTime]]) -> float:
    """Return the time when all processes wait for the slowest after every loop: ``Σ max``."""
    return sum(max(loop.seconds(i) for i in range(len(loop.interior))) for region in regions for loop in region)


def _count(region: Sequence[LoopTime], neighbours: Neighbours) -> int:
    """Return the number of processes that the loops and the neighbours are for."""
    count = len(neighbours)
    for k, loop in enumerate(region):
        sizes = {len(loop.interior)} | {len(part) for part in (loop.boundary, loop.nbytes) if part}
        if sizes != {count}:
            raise FluxloomError(f"loop {k} of a region has numbers for {sorted(sizes)} processes, there are {count}")
    for i, others in enumerate(neighbours):
        if any(not 0 <= n < count or n == i for n in others):
            raise FluxloomError(f"process {i} of {count} has the neighbours {list(others)}")
    return count


# ------------------------------------------------------------------------------------ the best weight


@dataclass(frozen=True)
class LoopRate:
    """What a loop costs on each process, by the number of its elements.

    Attributes
    ----------
    elements
        Of the whole set.
    seconds
        For each process the time of an element.
    overhead
        For each process the time of a loop without elements; empty: none.
    boundary
        For each process how many of its elements need messages; empty: the loop needs none.
    nbytes
        Bytes that each process sends to each neighbour before the loop.
    """

    elements: int
    seconds: tuple[float, ...]
    overhead: tuple[float, ...] = ()
    boundary: tuple[int, ...] = ()
    nbytes: tuple[float, ...] = ()


@dataclass(frozen=True)
class Optimum:
    """The best weight and what it gives.

    Attributes
    ----------
    weight
        Of each fast process, when each other one has 1.
    shares
        Part of the elements of every process.
    seconds
        Predicted time.
    """

    weight: float
    shares: tuple[float, ...]
    seconds: float


def loop_times(loop: LoopRate, shares: Sequence[float]) -> LoopTime:
    """Return the times of a loop when each process has a share of the elements: linear in their number.

    A process cannot have more boundary elements than elements.

    Raises
    ------
    FluxloomError
        If there is not a share for each process.
    """
    if len(shares) != len(loop.seconds):
        raise FluxloomError(f"{len(shares)} shares for a loop with the speed of {len(loop.seconds)} processes")
    counts = [share * loop.elements for share in shares]
    edge = [min(float(b), n) for b, n in zip(loop.boundary or [0] * len(counts), counts, strict=True)]
    fixed = loop.overhead or (0.0,) * len(counts)
    inner = (f + s * (n - b) for f, s, n, b in zip(fixed, loop.seconds, counts, edge, strict=True))
    outer = (s * b for s, b in zip(loop.seconds, edge, strict=True))
    return LoopTime(tuple(inner), tuple(outer) if loop.boundary else (), loop.nbytes)


def optimal_weight(
    regions: Sequence[Sequence[LoopRate]],
    neighbours: Neighbours,
    fast: Sequence[int] = (0,),
    *,
    bounds: tuple[float, float] = (1.0 / 64.0, 64.0),
    link: Link = FREE,
) -> Optimum:
    """Return the weight of the fast processes that is predicted to take the least time.

    Every other process has weight 1. The time is that of `total_seconds`; it is convex in the shares while no
    process is all boundary, so that a golden-section search over the share of the fast ones finds the minimum.

    Parameters
    ----------
    regions
        The loops between global synchronisations.
    neighbours
        For each process those whose values it needs.
    fast
        The processes that have the weight.
    bounds
        Least and greatest weight.
    link
        What messages cost.

    Raises
    ------
    FluxloomError
        If no process or every one is fast, the bounds are not positive and ascending, or the loops do not fit.
    """
    count, chosen = len(neighbours), frozenset(fast)
    if not chosen or len(chosen) >= count or not all(0 <= i < count for i in chosen):
        raise FluxloomError(f"the fast processes {sorted(chosen)} of {count}: name some of them, and not all")
    low, high = bounds
    if not 0 < low < high < inf:
        raise FluxloomError(f"weights between {low} and {high}: both must be positive and ascending")
    many, few = len(chosen), count - len(chosen)

    def shares(part: float) -> tuple[float, ...]:
        return tuple(part / many if i in chosen else (1.0 - part) / few for i in range(count))

    def seconds(part: float) -> float:
        times = [[loop_times(loop, shares(part)) for loop in region] for region in regions]
        return total_seconds(times, neighbours, link)

    best = _golden(seconds, many * low / (many * low + few), many * high / (many * high + few))
    return Optimum(best * few / ((1.0 - best) * many), shares(best), seconds(best))


def _golden(function: Callable[[float], float], low: float, high: float, tolerance: float = 1e-9) -> float:
    """Return where a function with one valley is least; the ends count too."""
    ends, ratio = (low, high), (sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > tolerance:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return min((0.5 * (low + high), *ends), key=function)


def linear_times(runs: Sequence[tuple[Sequence[int], Sequence[float]]]) -> list[tuple[float, float]]:
    """Return ``(a, b)`` of each process, which takes ``a + b n`` seconds for n elements, from runs with other shares.

    The straight line of least squares of relative errors, or the line through the origin where the other one would
    have a negative part, or where there is one number of elements.

    Parameters
    ----------
    runs
        For each run the elements of each process and the time that it computed.

    Raises
    ------
    FluxloomError
        If there is no run, or a number is not positive.
    """
    if not runs or not all(n > 0 and isfinite(t) and t > 0 for row in runs for n, t in zip(*row, strict=True)):
        raise FluxloomError(f"runs {list(runs)}: give elements and seconds of each process, all positive")
    return [_line([(row[0][i], row[1][i]) for row in runs]) for i in range(len(runs[0][0]))]


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Return ``(a, b)`` of ``t = a + b n``, both at least 0."""
    counts, times = np.array(points, dtype=np.float64).T
    if np.ptp(counts) > 0.01 * counts.max():
        matrix = np.stack([1.0 / times, counts / times], axis=1)
        (a, b), *_ = np.linalg.lstsq(matrix, np.ones(len(points)), rcond=None)
        if a >= 0 and b > 0:
            return float(a), float(b)
    return 0.0, float(np.mean(times / counts))
