"""The search that expects knobs to act independently: what it visits, in which order, where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf

import pytest

from fluxloom.core.errors import FluxloomError
from fluxloom.perf.screening import screen
from fluxloom.perf.tuner import Knob, Point

A, B = Knob("a", (1, 2, 4, 8, 16)), Knob("b", (1, 2, 4, 8))
FLAG = Knob("flag", (False, True), ordered=False)


def separable(point: Point) -> float:
    """Factors of the knobs, best at a = 4, b = 8 with the flag."""
    return (
        {1: 1.5, 2: 1.2, 4: 1.0, 8: 1.3, 16: 5.0}[point["a"]] * (2.0 - point["b"] / 8) * (0.9 if point["flag"] else 1.0)
    )


def test_the_first_combination_is_best_where_knobs_are_independent() -> None:
    found = screen([A, B, FLAG], separable, start={"a": 2})
    assert dict(found.best.point) == {"a": 4, "b": 8, "flag": True}
    alone = [t for t in found.trials if sum((t.point["a"] != 2, t.point["b"] != 1, t.point["flag"])) <= 1]
    assert found.trials[len(alone)] is found.best
    assert len(found.trials) == len(alone) + 4  # the best, and three that gain nothing


def test_combinations_of_interacting_knobs_are_found_in_time() -> None:
    """Two knobs whose product matters: the expectation is wrong, and the following combinations put it right."""

    def cost(point: Point) -> float:
        return 1.0 + 0.1 * abs(point["a"] * point["b"] - 16) + 0.01 * point["b"]

    found = screen([A, B], cost, start={"a": 4, "b": 2}, patience=4)
    every = min(cost({"a": a, "b": b}) for a, b in product(A.values, B.values))
    assert found.best.seconds <= 1.02 * every
    assert len(found.trials) < len(A.values) * len(B.values)


def test_a_walk_ends_where_it_is_hopeless() -> None:
    times = {1: 1.0, 2: 2.5, 4: 0.1, 8: 0.1, 16: 0.1}
    assert len(screen([A], lambda p: times[p["a"]]).trials) == 2
    times = {1: 1.0, 2: 1.1, 4: 1.2, 8: 0.1, 16: 0.1}
    assert [t.point["a"] for t in screen([A], lambda p: times[p["a"]]).trials] == [1, 2, 4]
    times = {1: 1.0, 2: 1.1, 4: 0.9, 8: 1.0, 16: 0.8}
    assert [t.point["a"] for t in screen([A], lambda p: times[p["a"]]).trials] == [1, 2, 4, 8, 16]


def test_every_value_of_a_knob_without_order_is_measured() -> None:
    names = Knob("name", ("slow", "slower", "fast"), ordered=False)
    found = screen([names], lambda p: {"slow": 1.0, "slower": 9.0, "fast": 0.5}[p["name"]])
    assert found.best.point["name"] == "fast"
    assert len(found.trials) == 3


def test_points_are_announced_before_they_are_measured() -> None:
    told: set[tuple[tuple[str, object], ...]] = set()
    late: list[Point] = []

    def key(point: Point) -> tuple[tuple[str, object], ...]:
        return tuple(sorted(point.items()))

    def ready(points: Sequence[Point]) -> None:
        told.update(key(point) for point in points)

    def measure(point: Point) -> float:
        if key(point) not in told:
            late.append(point)
        return separable(point)

    screen([A, B, FLAG], measure, start={"a": 2}, ready=ready)
    far = [p for p in late if (p["b"], p["flag"]) != (1, False) and (p["a"], p["flag"]) != (2, False)]
    assert not far  # only walks that go on gaining reach points that nobody spoke of
    assert len(told) > 8


def test_points_that_cannot_run_and_equal_ones() -> None:
    def measure(point: Point) -> float:
        if point["a"] == 1:
            raise FluxloomError("not today")
        return 1.0 + point["a"] + 0.1 * point["b"]

    found = screen([A, B], measure, identity=lambda p: (p["a"], min(p["b"], 2)))
    assert found.best.point["a"] == 2
    assert len({(t.point["a"], min(t.point["b"], 2)) for t in found.trials}) == len(found.trials)
    with pytest.raises(FluxloomError, match="none of 1 points can run; the first: not today"):
        screen([Knob("a", (1,))], measure)


def test_budget() -> None:
    found = screen([A, B, FLAG], separable, budget=3)
    assert len(found.trials) == 3
    assert found.best.seconds < inf


def test_nothing_to_choose() -> None:
    assert screen([], lambda p: 2.0).best.seconds == 2.0
