"""The searches, on functions whose minimum is known; nothing is timed."""

from __future__ import annotations

from math import inf

import pytest

from fluxloom.core.errors import FluxloomError, PlanError
from fluxloom.perf.tuner import Knob, Point, hill_climb, sweep, tabu

A = Knob("a", tuple(range(8)))
B = Knob("b", tuple(range(6)))
COLOUR = Knob("colour", ("red", "green", "blue"), ordered=False)


class Bowl:
    """A convex function of two knobs that counts how often it is asked."""

    def __init__(self, a: int = 5, b: int = 2) -> None:
        self.a, self.b, self.asked = a, b, []

    def __call__(self, point: Point) -> float:
        self.asked.append((point["a"], point["b"]))
        return 1.0 + (point["a"] - self.a) ** 2 + (point["b"] - self.b) ** 2


@pytest.mark.parametrize("search", [sweep, hill_climb, tabu])
def test_finds_the_minimum_and_asks_once(search) -> None:
    bowl = Bowl()
    result = search([A, B], bowl)
    assert dict(result.best.point) == {"a": 5, "b": 2}
    assert result.best.seconds == 1.0
    assert len(set(bowl.asked)) == len(bowl.asked) == len(result.trials) == len(result.trace)
    assert list(result.trace) == sorted(result.trace, reverse=True)
    assert result.trace[-1] == 1.0


def test_sweep_asks_everything_nearest_first() -> None:
    bowl = Bowl()
    result = sweep([A, B], bowl, start={"a": 3})
    assert len(result.trials) == 48
    distances = [(a != 3) + (b != 0) for a, b in bowl.asked]
    assert bowl.asked[0] == (3, 0)
    assert distances == sorted(distances)


@pytest.mark.parametrize("search", [hill_climb, tabu])
def test_asks_less_than_a_sweep(search) -> None:
    assert len(search([A, B], Bowl(), start={"a": 4, "b": 3}).trials) < 16


@pytest.mark.parametrize("search", [sweep, hill_climb, tabu])
def test_budget(search) -> None:
    result = search([A, B], Bowl(), budget=3)
    assert len(result.trials) == 3
    assert result.best in result.trials


def test_budget_of_nothing_is_an_error() -> None:
    with pytest.raises(FluxloomError, match="budget of 0"):
        sweep([A], lambda _: 1.0, budget=0)


@pytest.mark.parametrize("search", [sweep, hill_climb, tabu])
def test_infeasible_points_are_passed_over(search) -> None:
    def measure(point: Point) -> float:
        if point["colour"] == "green":
            raise PlanError("green cannot run")
        return {"red": 2.0, "blue": 1.0}[point["colour"]]

    result = search([COLOUR], measure)
    assert result.best.point["colour"] == "blue"
    failed = [t for t in result.trials if not t.feasible]
    assert [(t.point["colour"], t.seconds, t.error) for t in failed] == [("green", inf, "green cannot run")]
    assert [t.point["colour"] for t in result.distributed] == ["blue", "red"]


def test_other_errors_are_not_hidden() -> None:
    def measure(_: Point) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sweep([A], measure)


def test_nothing_feasible_says_why() -> None:
    def measure(_: Point) -> float:
        raise PlanError("no plan")

    with pytest.raises(FluxloomError, match="none of 3 points can run; the first: no plan"):
        sweep([COLOUR], measure)


def test_nan_is_infeasible() -> None:
    result = sweep([A], lambda p: float("nan") if p["a"] == 0 else 1.0 + p["a"])
    assert result.best.point["a"] == 1


def test_equal_in_effect_is_measured_once() -> None:
    bowl = Bowl()
    result = sweep([A, B], bowl, identity=lambda p: (p["a"] // 4, p["b"]))
    assert len(result.trials) == len(bowl.asked) == 12


def test_hill_climb_follows_a_direction_and_turns_round() -> None:
    bowl = Bowl(a=2)
    hill_climb([A, Knob("b", (2,))], bowl, start={"a": 5})
    assert [a for a, _ in bowl.asked] == [5, 6, 4, 3, 2, 1]


def test_hill_climb_ignores_small_gains() -> None:
    result = hill_climb([A], lambda p: 1.0 - 0.01 * p["a"], gain=0.05)
    assert [t.point["a"] for t in result.trials] == [0, 1]


def test_tabu_is_the_load_balance_of_the_paper() -> None:
    """One knob: the stack holds m0 - dm on top, and what improved last is followed first."""
    bowl = Bowl(a=1)
    result = tabu([A, Knob("b", (2,))], bowl, start={"a": 4})
    assert [a for a, _ in bowl.asked] == [4, 3, 2, 1, 0, 5]
    assert result.best.point["a"] == 1


def test_tabu_starts_again() -> None:
    valleys = {0: 3.0, 1: 2.0, 2: 5.0, 3: 6.0, 4: 5.0, 5: 4.0, 6: 1.0, 7: 2.0}
    once = tabu([A], lambda p: valleys[p["a"]])
    twice = tabu([A], lambda p: valleys[p["a"]], restarts=[{"a": 7}])
    assert (once.best.point["a"], twice.best.point["a"]) == (1, 6)


def test_wrong_starts() -> None:
    with pytest.raises(FluxloomError, match="unknown knob 'colur'; did you mean 'colour'"):
        sweep([COLOUR], lambda _: 1.0, start={"colur": "red"})
    with pytest.raises(FluxloomError, match="'pink' is not a value of knob 'colour'"):
        sweep([COLOUR], lambda _: 1.0, start={"colour": "pink"})


def test_wrong_knobs() -> None:
    with pytest.raises(FluxloomError, match="has no values"):
        Knob("a", ())
    with pytest.raises(FluxloomError, match="a value twice"):
        Knob("a", (1, 1))
    with pytest.raises(FluxloomError, match="same name"):
        sweep([A, A], lambda _: 1.0)


def test_no_knob_is_one_point() -> None:
    assert len(sweep([], lambda _: 1.0).trials) == 1
