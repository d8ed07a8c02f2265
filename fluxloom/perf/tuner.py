"""Searches over discrete knobs: every point, hill climbing, tabu. They know nothing of what is tuned.

The caller gives ``measure(point) -> seconds`` and does the repeating and the medians itself. Each search
measures a point at most once, stops at a budget of trials, and passes over points that cannot run.

Sources: hill climbing follows I. Z. Reguly, PhD thesis, PPCU Budapest 2014, section 4.5 (keep doubling a
parameter while that helps, else turn round; then the next parameter). The tabu search is the load balance
of the portable algebraic CFD thesis (TermoFluids), chapter 2: a stack of neighbours, so that the direction
which last improved is followed first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import inf, isfinite
from types import MappingProxyType
from typing import Any

from fluxloom.core.errors import FluxloomError, did_you_mean

__all__ = [
    "Identity", "Infeasible", "Knob", "Measure", "Place", "Point", "Search", "SearchResult", "Trial", "hill_climb",
    "sweep", "tabu",
]  # fmt: skip

Point = Mapping[str, Any]
"""A value for each knob, by name."""

Measure = Callable[[Point], float]
"""Returns the seconds of a point; raises an infeasible class of error when it cannot run."""

Infeasible = tuple[type[Exception], ...]
"""Errors that mean: this point is not possible. All others end the search."""

Identity = Callable[[Point], Hashable]
"""Equal for points that are the same in effect, so that only one of them is measured."""


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
class Trial:
    """A point and its time.

    Attributes
    ----------
    point
        The values.
    seconds
        What `measure` returned; infinite for a point that cannot run.
    error
        Why it cannot run; empty when it can.
    """

    point: Point
    seconds: float
    error: str = ""

    @property
    def feasible(self) -> bool:
        """Whether the point can run."""
        return not self.error


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    best
        The fastest trial.
    trials
        All of them, in the order in which they were made.
    trace
        Best seconds after each trial; infinite until the first that could run.
    """

    best: Trial
    trials: tuple[Trial, ...]
    trace: tuple[float, ...]

    @property
    def ranked(self) -> list[Trial]:
        """The trials that could run, fastest first."""
        return sorted((t for t in self.trials if t.feasible), key=lambda t: t.seconds)


def sweep(
    knobs: Sequence[Knob],
    measure: Measure,
    *,
    start: Point | None = None,
    budget: int | None = None,
    infeasible: Infeasible = (FluxloomError,),
    identity: Identity | None = None,
) -> SearchResult:
    """Measure every point, those nearest to the start first (by the number of knobs that differ).

    Parameters
    ----------
    knobs
        The choices.
    measure
        Returns the seconds of a point.
    start
        The first point; each knob's first value where it says nothing.
    budget
        Trials at most; None: no limit. With a budget the points that differ least from the start are kept.
    infeasible
        Errors that mean that a point cannot run.
    identity
        Equal for points that are the same in effect.

    Raises
    ------
    FluxloomError
        If no point can run, or ``start`` does not fit the knobs.
    """
    search = Search(knobs, measure, budget, infeasible, identity)
    return search.run(lambda: _sweep(search, search.place(start)))


def hill_climb(
    knobs: Sequence[Knob],
    measure: Measure,
    *,
    start: Point | None = None,
    budget: int | None = None,
    gain: float = 0.0,
    infeasible: Infeasible = (FluxloomError,),
    identity: Identity | None = None,
) -> SearchResult:
    """Improve one knob after the other until none improves.

    An ordered knob is moved one step; while that helps it is moved on, else it is tried the other way.

    Parameters
    ----------
    gain
        Relative improvement that counts: 0.05 ignores gains of less than five per cent.
    knobs, measure, start, budget, infeasible, identity
        As for `sweep`.

    Raises
    ------
    FluxloomError
        If no point can run, or ``start`` does not fit the knobs.
    """
    search = Search(knobs, measure, budget, infeasible, identity)
    return search.run(lambda: _climb(search, search.place(start), gain))


def tabu(
    knobs: Sequence[Knob],
    measure: Measure,
    *,
    start: Point | Sequence[Point] | None = None,
    budget: int | None = None,
    infeasible: Infeasible = (FluxloomError,),
    identity: Identity | None = None,
) -> SearchResult:
    """Follow improvements depth first, never returning to a point.

    ::

        best = T(start);  stack = neighbours of the start
        while stack:  p = pop;  t = T(p);  if t < best:  best = t;  push the neighbours of p not seen yet

    Parameters
    ----------
    start
        A point, or several to start again from.
    knobs, measure, budget, infeasible, identity
        As for `sweep`.

    Raises
    ------
    FluxloomError
        If no point can run, or ``start`` does not fit the knobs.
    """
    search = Search(knobs, measure, budget, infeasible, identity)
    starts = [start] if start is None or isinstance(start, Mapping) else list(start)
    places = [search.place(point) for point in starts]
    return search.run(lambda: _tabu(search, places))


# ------------------------------------------------------------------------------------------ the parts

Place = tuple[int, ...]
"""A point as the position of the value of each knob."""


class _Spent(Exception):
    """The budget is used up."""


class Search:
    """Measures points once each and keeps the record."""

    def __init__(
        self,
        knobs: Sequence[Knob],
        measure: Measure,
        budget: int | None,
        infeasible: Infeasible,
        identity: Identity | None,
    ) -> None:
        if budget is not None and budget < 1:
            raise FluxloomError(f"a search with a budget of {budget} trials cannot measure anything")
        names = [knob.name for knob in knobs]
        if len(set(names)) != len(names):
            raise FluxloomError(f"two knobs have the same name: {names}")
        self.knobs = tuple(knobs)
        self._measure, self._budget, self._infeasible, self._identity = measure, budget, infeasible, identity
        self._known: dict[Hashable, float] = {}
        self._trials: list[Trial] = []
        self._trace: list[float] = []

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

    @property
    def spent(self) -> int:
        """Trials made."""
        return len(self._trials)

    def at(self, place: Place) -> float:
        """Return the seconds of a point, measured at the first call; infinite when it cannot run."""
        point = self.point(place)
        key = place if self._identity is None else self._identity(point)
        if key in self._known:
            return self._known[key]
        if self._budget is not None and len(self._trials) >= self._budget:
            raise _Spent
        try:
            trial = Trial(point, float(self._measure(point)))
        except self._infeasible as problem:
            trial = Trial(point, inf, str(problem) or type(problem).__name__)
        if trial.feasible and not isfinite(trial.seconds):
            trial = Trial(point, inf, f"measured {trial.seconds} seconds")
        self._known[key] = trial.seconds
        self._trials.append(trial)
        self._trace.append(min(trial.seconds, self._trace[-1] if self._trace else inf))
        return trial.seconds

    def run(self, method: Callable[[], None]) -> SearchResult:
        """Run a search to its end or that of the budget."""
        with contextlib.suppress(_Spent):
            method()
        best = min(self._trials, key=lambda trial: trial.seconds)
        if not best.feasible:
            raise FluxloomError(f"none of {len(self._trials)} points can run; the first: {self._trials[0].error}")
        return SearchResult(best, tuple(self._trials), tuple(self._trace))

    def neighbours(self, place: Place) -> Iterator[Place]:
        """Yield the points one step away; along an ordered knob upwards first."""
        for k, knob in enumerate(self.knobs):
            steps = (place[k] + 1, place[k] - 1) if knob.ordered else range(len(knob.values))
            for i in steps:
                if 0 <= i < len(knob.values) and i != place[k]:
                    yield (*place[:k], i, *place[k + 1 :])


def _sweep(search: Search, start: Place) -> None:
    knobs = range(len(search.knobs))
    for distance in range(len(search.knobs) + 1):
        for changed in combinations(knobs, distance):
            others = [[i for i in range(len(search.knobs[k].values)) if i != start[k]] for k in changed]
            for values in product(*others):
                place = list(start)
                for k, i in zip(changed, values, strict=True):
                    place[k] = i
                search.at(tuple(place))


def _climb(search: Search, here: Place, gain: float) -> None:
    best = search.at(here)
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
                    seconds = search.at(there)
                    if not seconds < best * (1.0 - gain):
                        break
                    here, best, moved = there, seconds, True
                improved = improved or moved
                if moved and knob.ordered:
                    break


def _tabu(search: Search, starts: Sequence[Place]) -> None:
    seen: set[Place] = set()
    for start in starts:
        best = search.at(start)
        seen.add(start)
        stack = [place for place in search.neighbours(start) if place not in seen]
        while stack:
            place = stack.pop()
            if place in seen:
                continue
            seen.add(place)
            seconds = search.at(place)
            if seconds < best:
                best = seconds
                stack += [other for other in search.neighbours(place) if other not in seen]
