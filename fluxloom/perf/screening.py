r"""A search that looks along each knob first, and then goes through combinations in the order of the times it expects.

The expectation takes the knobs to act independently of each other,

.. math:: T(p) \approx T(s) \prod_k \frac{T(s\ \text{with}\ p_k)}{T(s)}

for the start ``s``, whose factors are what the first part has measured. Where that holds, the first combination is the
best one; where it does not, the following ones are tried until some in a row gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from math import inf, isfinite, log
from typing import Unpack

from fluxloom.perf.tuner import Knob, KnobSearch, Limits, Measure, Place, Point, SearchResult, Steps

__all__ = ["Ready", "screen"]

Ready = Callable[[Sequence[Point]], None]
"""Told of points that are probably measured next, in time to prepare them side by side."""

_HOPELESS = 2.0
"""Times slower than the start: a walk along a knob goes no further, and no combination has such a value."""

_WRONG_STEPS = 2
"""Steps in a row that gain nothing, after which a walk along a knob ends."""


def screen(
    knobs: Sequence[Knob], measure: Measure, *, patience: int = 3, ready: Ready | None = None, **limits: Unpack[Limits]
) -> SearchResult:
    """Change one knob at a time, then measure combinations in the order of their expected times.

    An ordered knob is walked both ways until two steps gain nothing or one is hopeless; of another one every value
    is measured. Combinations end when ``patience`` of them in a row are no faster than the best.

    Parameters
    ----------
    patience
        Combinations that may gain nothing, one after the other.
    ready
        Told of points before they are measured; some of them may not be.
    knobs, measure, limits
        As for `fluxloom.perf.tuner.sweep`.

    Raises
    ------
    FluxloomError
        If no point can run, or ``start`` does not fit the knobs.
    """
    return KnobSearch(knobs, lambda search, start: _screen(search, start, patience, ready or _nobody), **limits).run(
        measure
    )


def _nobody(points: Sequence[Point]) -> None:
    """Tell nobody."""


def _screen(search: KnobSearch, start: Place, patience: int, ready: Ready) -> Steps:
    walks = [(k, walk) for k, here in enumerate(start) for walk in _walks(search.knobs[k], here)]
    first = [_changed(start, k, i) for k, walk in walks for i in walk[:_WRONG_STEPS]]
    ready([search.point(place) for place in (start, *first)])
    base = yield from search.at(start)
    alone = [{here: base} for here in start]
    for k, walk in walks:
        yield from _along(search, start, k, walk, alone[k])
    best = min([base, *(seconds for times in alone for seconds in times.values())])
    missed, combinations = 0, _combinations(start, base, alone)
    while missed < patience and (batch := list(islice(combinations, patience - missed))):
        ready([search.point(place) for place in batch])
        for place in batch:
            before, seconds = len(search.trials), (yield from search.at(place))
            if seconds < best:
                best, missed = seconds, 0
            elif len(search.trials) > before:  # else it is the same in effect as one that was measured
                missed += 1


def _walks(knob: Knob, here: int) -> list[list[int]]:
    """Return the positions to try along a knob: up and down, or all others."""
    if knob.ordered:
        return [list(range(here + 1, len(knob.values))), list(range(here - 1, -1, -1))]
    return [[i for i in range(len(knob.values)) if i != here]]


def _changed(place: Place, k: int, i: int) -> Place:
    return (*place[:k], i, *place[k + 1 :])


def _along(search: KnobSearch, start: Place, k: int, walk: Sequence[int], times: dict[int, float]) -> Steps:
    """Measure the positions of one walk along a knob."""
    best, wrong, base = times[start[k]], 0, times[start[k]]
    for i in walk:
        times[i] = yield from search.at(_changed(start, k, i))
        if times[i] < best:
            best, wrong = times[i], 0
        else:
            wrong += 1
        hopeless = isfinite(times[i]) and times[i] > _HOPELESS * base
        if search.knobs[k].ordered and (hopeless or wrong >= _WRONG_STEPS):
            return


def _combinations(start: Place, base: float, alone: Sequence[dict[int, float]]) -> Iterator[Place]:
    """Yield places with several knobs changed, those of the least expected time first."""
    scale = base if isfinite(base) else min([base, *(seconds for times in alone for seconds in times.values())])
    if not isfinite(scale):
        return
    likely = [
        {i: _worth(seconds, scale) for i, seconds in times.items() if seconds <= _HOPELESS * scale or i == here}
        for here, times in zip(start, alone, strict=True)
    ]
    places = [place for place in product(*likely) if sum(a != b for a, b in zip(place, start, strict=True)) > 1]
    yield from sorted(places, key=lambda place: sum(likely[k][i] for k, i in enumerate(place)))


def _worth(seconds: float, scale: float) -> float:
    """Return the logarithm of a factor."""
    return log(seconds / scale) if 0.0 < seconds < inf and scale > 0.0 else 0.0
