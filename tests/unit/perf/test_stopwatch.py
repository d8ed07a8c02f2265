"""The stopwatch, with a clock that the candidates move."""

from __future__ import annotations

import pytest

from fluxloom.perf.stopwatch import Stopwatch


class Clock:
    """Time that passes only when somebody works."""

    def __init__(self) -> None:
        self.now, self.log = 0.0, []

    def __call__(self) -> float:
        return self.now

    def work(self, name: str, seconds: float):
        def run() -> None:
            self.log.append(name)
            self.now += seconds

        return run


def test_median_and_number_of_calls() -> None:
    clock = Clock()
    watch = Stopwatch(3, lambda: clock.log.append("restore"), clock=clock, round_seconds=0.01)
    assert watch.median(clock.work("a", 0.004)) == pytest.approx(0.004)
    first = ["restore", "a", "a", "a", "a", "a", "a", "a"]  # warm, three to find the number of calls, three timed
    assert clock.log == [*first, *["restore", "a", "a", "a", "a"] * 2]


def test_rounds_are_interleaved() -> None:
    clock = Clock()
    watch = Stopwatch(2, clock=clock, warm=0, round_seconds=1.0)
    a, b = clock.work("a", 2.0), clock.work("b", 3.0)
    assert watch.race([a, b]) == [2.0, 3.0]
    assert clock.log == ["a", "a", "a", "a", "b", "a", "b"]


def test_the_device_is_waited_for() -> None:
    waits: list[int] = []
    watch = Stopwatch(1, wait=lambda: waits.append(1), clock=Clock())
    watch.round(lambda: None)
    assert len(waits) == 8


def test_a_clock_that_stands_still() -> None:
    assert Stopwatch(1, clock=Clock()).median(lambda: None) == 0.0
