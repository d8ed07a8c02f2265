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


def test_one_that_is_far_behind_is_dropped() -> None:
    clock = Clock()
    watch = Stopwatch(5, clock=clock, round_seconds=1e-3)
    best = watch.median(clock.work("good", 1.0))
    clock.log.clear()
    assert watch.median(clock.work("hopeless", 3.5), best) == pytest.approx(3.5)
    assert clock.log == ["hopeless"] * 3  # one that warms up, one, and one more in case something held that up
    clock.log.clear()
    assert watch.median(clock.work("behind", 2.0), best) == pytest.approx(2.0)
    assert clock.log == ["behind"] * 6
    clock.log.clear()
    assert watch.median(clock.work("near", 1.25), best) == pytest.approx(1.25)
    assert clock.log == ["near"] * 12
    clock.log.clear()
    assert watch.median(clock.work("few", 1.25), best, 3) == pytest.approx(1.25)
    assert clock.log == ["few"] * 8


def test_a_single_slow_call_does_not_drop_a_candidate() -> None:
    clock = Clock()
    watch = Stopwatch(3, clock=clock, round_seconds=1e-3)
    best = watch.median(clock.work("good", 1.0))
    calls = 0

    def held_up() -> None:
        nonlocal calls
        calls += 1
        clock.now += 50.0 if calls == 2 else 0.5

    assert watch.median(held_up, best) == pytest.approx(0.5)
