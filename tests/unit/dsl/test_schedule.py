"""Schedules as values, and the choices that a cost model makes for them."""

from __future__ import annotations

import pytest

from fluxloom import Schedule
from fluxloom.core.errors import PlanError


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"strategy": "blok_colour"}, r"strategy 'blok_colour'; did you mean 'block_colour'\? \(known: serial, "),
        ({"lanes": 3}, "lanes=3: a pack has 1, 4, 8 or 16 elements"),
        ({"block": -1}, "cannot be negative"),
        ({"threads": -2}, "cannot be negative"),
        ({"deterministic": "yes"}, "use None, 'plan' or 'global'"),
        ({"deterministic": "plan", "strategy": "atomic"}, "atomic additions are not repeatable"),
        ({"deterministic": "global", "strategy": "atomic"}, "not repeatable"),
        ({"deterministic": "global", "strategy": "block_colour"}, "block_colour sums in colour order"),
        ({"deterministic": "global", "strategy": "element_colour"}, "allows serial, gather and two_pass"),
    ],
)
def test_errors(choices: dict, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Schedule(**choices)


def test_merging() -> None:
    mine = Schedule(strategy="gather", stream=False)
    other = Schedule(strategy="serial", block=64, lanes=4, stream=True, threads=3, deterministic="plan")
    assert mine.merged(other) == Schedule("gather", 64, 4, 3, False, "plan")
    assert Schedule.auto() == Schedule()
    assert Schedule.auto().merged(other) == other
    assert other.merged(Schedule.auto()) == other
    with pytest.raises(PlanError, match="not repeatable"):
        Schedule(strategy="atomic").merged(Schedule(deterministic="plan"))


def test_schedules_are_values() -> None:
    assert hash(Schedule(lanes=8)) == hash(Schedule(lanes=8))
    with pytest.raises(AttributeError):
        Schedule().lanes = 4  # type: ignore[misc]
