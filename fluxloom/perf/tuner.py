"""Searches for what is fastest: asked for a point, told how long it took. They know nothing of what is tuned.

A `Search` is driven by whoever has something to run: by a function that measures (`sweep`, `hill_climb`, `tabu`, and
`fluxloom.perf.screening.screen`, over discrete knobs, each point at most once, up to a budget of trials), or by a loop
that does useful work meanwhile (`fluxloom.perf.ragged.OnlineTuner`). Repeating and medians are those of who measures,
see `fluxloom.perf.stopwatch`.

Sources: hill climbing follows I. Z. Reguly, PhD thesis, PPCU Budapest 2014, section 4.5 (keep doubling a
parameter while that helps, else turn round; then the next parameter). The tabu search is the load balance
of the portable algebraic CFD thesis (TermoFluids), chapter 2: a stack of neighbours, so that the direction
which last improved is followed first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, product
from math import inf, isfinite, isnan
from statistics import median_low
from types import MappingProxyType
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from fluxloom.core.errors import FluxloomError, did_you_mean

__all__ = [
    "Identity", "Knob", "KnobSearch", "Limits", "Measure", "Place", "Point", "Search", "SearchResult", "Steps", "Trial",
    "hill_climb", "sweep", "tabu",
]  # fmt: skip

Point = Mapping[str, Any]
"""A value for each knob, by name."""

Measure = Callable[[Point], float]
"""Returns the seconds of a point; raises `FluxloomError` when it cannot run. All other errors end the search."""

Identity = Callable[[Point], Hashable]
"""Equal for points that are the same in effect, so that only one of them is measured."""

P = TypeVar("P")


@dataclass(frozen=True)
class Knob:
    """One discrete choice.

    Attributes
    ----------
    name
        Key in points.
    values
        What it may be; hashable, all different.
    ordered
        Whether neighbours in ``values`` are alike. A search goes step by step along an ordered knob and
        tries every value of another one.

    Raises
    ------
    FluxloomError
        If there is no value, or one occurs twice.
    """

    name: str
    values: tuple[Any, ...]
    ordered: bool = True

    def __post_init__(self) -> None:
        if not self.values:
            raise FluxloomError(f"knob {self.name!r} has no values")
        if len(set(self.values)) != len(self.values):
            raise FluxloomError(f"knob {self.name!r} has a value twice: {self.values}")


@dataclass(frozen=True)
class Trial(Generic[P]):
    """A point and its time.

    Attributes
    ----------
    point
        What was run.
    seconds
        What it took; infinite for a point that cannot run.
    error
        Why it cannot run; empty when it can.
    """

    point: P
    seconds: float
    error: str = ""

    @property
    def feasible(self) -> bool:
        """Whether the point can run."""
        return not self.error


@dataclass(frozen=True)
class SearchResult:
    """What a search over knobs found.

    Attributes
    ----------
    best
        The fastest trial.
    trials
        All of them, in the order in which they were made.
    """

    best: Trial[Point]
    trials: tuple[Trial[Point], ...]

    @property
    def trace(self) -> tuple[float, ...]:
        """Best seconds after each trial; infinite until the first that could run."""
        return tuple(accumulate((trial.seconds for trial in self.trials), min))

    @property
    def distributed(self) -> list[Trial[Point]]:
        """The trials that could run, fastest first."""
        return sorted((t for t in self.trials if t.feasible), key=lambda t: t.seconds)


class Search(Generic[P]):
    """Says what to run next, and is told what it took.

    ::

        while working:
            point = search.next()       # run with this one
            search.observe(seconds)     # it took so long

    The time of a point is the lower median of everything observed for it. When the search is over `next` returns the
    best point; observation may go on then: one that owed its place to one lucky call gives way to the next best as soon
    as further calls show it.

    Parameters
    ----------
    steps
        Yields the points to try, one at least; each has been observed when it goes on.
    key
        What tells a point from others; itself by default.

    Attributes
    ----------
    trials
        Every observation, in order.
    finished
        Whether the search is over.
    """

    def __init__(self, steps: Iterator[P], key: Callable[[P], Hashable] | None = None) -> None:
        self.trials: list[Trial[P]] = []
        self.finished = False
        self._known: dict[Hashable, tuple[P, list[float]]] = {}
        self._steps, self._key = steps, key or (lambda point: point)
        self._point = next(steps)

    def next(self) -> P:
        """Return what to run now; the same until its time is told."""
        return self._point

    def observe(self, seconds: float, error: str = "") -> None:
        """Tell how long what `next` returned took; infinite when it could not run, and why.

        Raises
        ------
        FluxloomError
            If the time is negative or not a number.
        """
        if isnan(seconds) or seconds < 0:
            raise FluxloomError(f"a call cannot take {seconds} seconds")
        self.trials.append(Trial(self._point, seconds, error))
        self._known.setdefault(self._key(self._point), (self._point, []))[1].append(seconds)
        if not self.finished:
            try:
                self._point = next(self._steps)
                return
            except StopIteration:
                self.finished = True
        self._point = self.best

    @property
    def best(self) -> P:
        """The fastest point so far; the first before anything was observed."""
        return min((point for point, _ in self._known.values()), key=self.time, default=self._point)

    @property
    def seconds(self) -> float:
        """The time of `best`; infinite before anything was observed."""
        return self.time(self.best)

    @property
    def tried(self) -> list[P]:
        """The distinct points that were observed, in order."""
        return [point for point, _ in self._known.values()]

    def time(self, point: P) -> float:
        """Return the lower median of the times of a point; infinite for one that never ran."""
        found = self._known.get(self._key(point))
        return median_low(found[1]) if found else inf


class Limits(TypedDict, total=False):
    """What a search over knobs may be told besides.

    Attributes
    ----------
    start
        The first point; each knob's first value where it says nothing.
    budget
        Trials at most; None: no limit. Of a sweep those that differ least from the start are kept.
    identity
        Equal for points that are the same in effect.
    """

    start: Point | None
    budget: int | None
    identity: Identity | None


def sweep(knobs: Sequence[Knob], measure: Measure, **limits: Unpack[Limits]) -> SearchResult:
    """Measure every point, those nearest to the start first (by the number of knobs that differ).

    Parameters
    ----------
    knobs
        The choices.
    measure
        Returns the seconds of a point.
    limits
        See `Limits`.

    Raises
    ------
    FluxloomError
        If no point can run, or ``start`` does not fit the knobs.
    """
    return KnobSearch(knobs, _sweep, **limits).run(measure)


def hill_climb(
    knobs: Sequence[Knob], measure: Measure, *, gain: float = 0.0, **limits: Unpack[Limits]
) -> SearchResult:
    """Improve one knob after the other until none improves.

    An ordered knob is moved one step; while that helps it is moved on, else it is tried the other way.

    Parameters
    ----------
    gain
        Relative improvement that counts: 0.05 ignores gains of less than five per cent.
    knobs, measure, limits
        As for `sweep`.

    Raises
    ------
    FluxloomError
        If no point can run, or ``start`` does not fit the knobs.
    """
    return KnobSearch(knobs, lambda search, start: _climb(search, start, gain), **limits).run(measure)


def tabu(
    knobs: Sequence[Knob], measure: Measure, *, restarts: Sequence[Point] = (), **limits: Unpack[Limits]
) -> SearchResult:
    """Follow improvements depth first, never returning to a point.

    ::

        best = T(start);  stack = neighbours of the start
        while stack:  p = pop;  t = T(p);  if t < best:  best = t;  push the neighbours of p not seen yet

    Parameters
    ----------
    restarts
        Points to start again from.
    knobs, measure, limits
        As for `sweep`.

    Raises
    ------
    FluxloomError
        If no point can run, or a start does not fit the knobs.
    """

    def steps(search: KnobSearch, start: Place) -> Steps:
        """Yield the points of all starts."""
        return _tabu(search, [start, *(search.place(point) for point in restarts)])

    return KnobSearch(knobs, steps, **limits).run(measure)


# ------------------------------------------------------------------------------------------ the parts

Place = tuple[int, ...]
"""A point as the position of the value of each knob."""

Steps = Generator[Point, None, None]
"""Yields the points of a search."""


class _Spent(Exception):
    """The budget is used up."""


class KnobSearch(Search[Point]):
    """Goes over the values of knobs, each point once.

    Parameters
    ----------
    knobs
        The choices.
    method
        Returns the steps of a search from a place.
    start, budget, identity
        See `Limits`.
    """

    def __init__(
        self, knobs: Sequence[Knob], method: Callable[[KnobSearch, Place], Steps], *, start: Point | None = None,
        budget: int | None = None, identity: Identity | None = None,
    ) -> None:  # fmt: skip
        if budget is not None and budget < 1:
            raise FluxloomError(f"a search with a budget of {budget} trials cannot measure anything")
        names = [knob.name for knob in knobs]
        if len(set(names)) != len(names):
            raise FluxloomError(f"two knobs have the same name: {names}")
        self.knobs = tuple(knobs)
        self._budget, self._identity = budget, identity
        self._seconds: dict[Hashable, float] = {}
        super().__init__(self._within(method(self, self.place(start))), lambda point: tuple(point.values()))

    def _within(self, steps: Steps) -> Steps:
        """Yield the steps until the budget is spent."""
        try:
            yield from steps
        except _Spent:
            return

    def place(self, start: Point | None) -> Place:
        """Return the position of a point."""
        given = dict(start or {})
        names = [knob.name for knob in self.knobs]
        for name in given:
            if name not in names:
                raise FluxloomError(f"unknown knob {name!r}{did_you_mean(name, names)} (known: {', '.join(names)})")
        for knob in self.knobs:
            if knob.name in given and given[knob.name] not in knob.values:
                raise FluxloomError(f"{given[knob.name]!r} is not a value of knob {knob.name!r}: {knob.values}")
        return tuple(k.values.index(given[k.name]) if k.name in given else 0 for k in self.knobs)

    def point(self, place: Place) -> Point:
        """Return the values at a position."""
        return MappingProxyType({k.name: k.values[i] for k, i in zip(self.knobs, place, strict=True)})

    def at(self, place: Place) -> Generator[Point, None, float]:
        """Yield the point at a position, if it is new; return its seconds, infinite when it cannot run."""
        point = self.point(place)
        key = place if self._identity is None else self._identity(point)
        if key not in self._seconds:
            if self._budget is not None and len(self.trials) >= self._budget:
                raise _Spent
            yield point
            self._seconds[key] = self.trials[-1].seconds
        return self._seconds[key]

    def run(self, measure: Measure) -> SearchResult:
        """Measure point by point to the end of the search or that of the budget."""
        while not self.finished:
            try:
                seconds, error = float(measure(self.next())), ""
            except FluxloomError as problem:
                seconds, error = inf, str(problem) or type(problem).__name__
            if not error and not isfinite(seconds):
                seconds, error = inf, f"measured {seconds} seconds"
            self.observe(seconds, error)
        best = min(self.trials, key=lambda trial: trial.seconds)
        if not best.feasible:
            raise FluxloomError(f"none of {len(self.trials)} points can run; the first: {self.trials[0].error}")
        return SearchResult(best, tuple(self.trials))

    def neighbours(self, place: Place) -> Iterator[Place]:
        """Yield the points one step away; along an ordered knob upwards first."""
        for k, knob in enumerate(self.knobs):
            steps = (place[k] + 1, place[k] - 1) if knob.ordered else range(len(knob.values))
            for i in steps:
                if 0 <= i < len(knob.values) and i != place[k]:
                    yield (*place[:k], i, *place[k + 1 :])


def _sweep(search: KnobSearch, start: Place) -> Steps:
    knobs = range(len(search.knobs))
    for distance in range(len(search.knobs) + 1):
        for changed in combinations(knobs, distance):
            others = [[i for i in range(len(search.knobs[k].values)) if i != start[k]] for k in changed]
            for values in product(*others):
                place = list(start)
                for k, i in zip(changed, values, strict=True):
                    place[k] = i
                yield from search.at(tuple(place))


def _climb(search: KnobSearch, here: Place, gain: float) -> Steps:
    best = yield from search.at(here)
    improved = True
    while improved:
        improved = False
        for k, knob in enumerate(search.knobs):
            runs: list[Sequence[int]] = [range(here[k] + 1, len(knob.values)), range(here[k] - 1, -1, -1)]
            if not knob.ordered:
                runs = [[i] for i in range(len(knob.values)) if i != here[k]]
            for run in runs:
                moved = False
                for i in run:
                    there = (*here[:k], i, *here[k + 1 :])
                    seconds = yield from search.at(there)
                    if not seconds < best * (1.0 - gain):
                        break
                    here, best, moved = there, seconds, True
                improved = improved or moved
                if moved and knob.ordered:
                    break


def _tabu(search: KnobSearch, starts: Sequence[Place]) -> Steps:
    seen: set[Place] = set()
    for start in starts:
        best = yield from search.at(start)
        seen.add(start)
        stack = [place for place in search.neighbours(start) if place not in seen]
        while stack:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            seconds = yield from search.at(place)
            if seconds < best:
                best = seconds
                stack += [other for other in search.neighbours(place) if other not in seen]
