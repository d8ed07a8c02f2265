"""The timing model of processes of unequal speed: the thesis' numbers, cases by hand, limits."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxloom.core.errors import FluxloomError
from fluxloom.perf.shares import shares_from_weights, weights_from_rates, weights_from_run
from fluxloom_lab.studies.hybrid import (
    FREE,
    Link,
    LoopRate,
    LoopTime,
    barrier_seconds,
    everyone,
    linear_times,
    loop_times,
    optimal_weight,
    region_seconds,
    timelines,
    total_seconds,
)

GPU, CPU = 34.0, 144.0
"""Seconds of Airfoil on the K20c and the E5-2640 of the thesis, each alone with the whole mesh."""

PAIR = ((1,), (0,))


def whole(gpu: float, cpu: float, boundary: int = 0, elements: int = 2_880_000) -> list[list[LoopRate]]:
    """Return a program of one loop from the times of the whole set."""
    return [[LoopRate(elements, (gpu / elements, cpu / elements), boundary=(boundary, boundary))]]


# ------------------------------------------------------------------------------------ the thesis' numbers


def test_first_guess_and_ideal_bound_of_the_thesis() -> None:
    weights = weights_from_rates([1.0 / GPU, 1.0 / CPU])
    assert weights == pytest.approx((4.235, 1.0), abs=1e-3)
    assert round(weights[0], 1) == 4.2
    ideal = 1.0 / (1.0 / GPU + 1.0 / CPU)  # the sum of the rates
    assert ideal == pytest.approx(27.5, abs=0.01)
    best = optimal_weight(whole(GPU, CPU), PAIR, bounds=(1.0, 8.0))
    assert best.weight == pytest.approx(CPU / GPU, rel=1e-6)
    assert best.seconds == pytest.approx(ideal, rel=1e-6)


def test_optimum_of_the_thesis_from_its_two_runs() -> None:
    """At 4.2 the GPU is the slower one (28.7 s), at 3.7 both are as fast (27.9 s): that gives the speed of each."""
    gpu = 28.7 / shares_from_weights((4.2, 1.0))[0]
    cpu = 27.9 / shares_from_weights((3.7, 1.0))[1]
    assert gpu == pytest.approx(27.9 / shares_from_weights((3.7, 1.0))[0], rel=0.005)  # the runs agree with each other
    program = whole(gpu, cpu)
    best = optimal_weight(program, PAIR, bounds=(1.0, 8.0))
    assert best.weight == pytest.approx(3.7, rel=0.03)  # the sweep's optimum
    assert best.weight == pytest.approx(3.6, rel=0.03)  # what the thesis' model predicted
    assert best.seconds == pytest.approx(27.9, abs=0.1)
    # What one run at 4.2 tells: its GPU time is known, its CPU time that of the share.
    slower = [28.7, cpu * shares_from_weights((4.2, 1.0))[1]]
    assert weights_from_run((4.2, 1.0), slower)[0] == pytest.approx(best.weight, rel=1e-6)
    sweep = np.linspace(1.0, 8.0, 71)
    times = [barrier_seconds([[loop_times(program[0][0], shares_from_weights((w, 1.0)))]]) for w in sweep]
    assert sweep[int(np.argmin(times))] == pytest.approx(best.weight, abs=0.06)
    assert np.interp(4.2, sweep, times) == pytest.approx(28.7, abs=0.05)


def test_a_run_with_the_weights_of_equal_times_changes_nothing() -> None:
    assert weights_from_run((3.0, 1.0, 2.0), (5.0, 5.0, 5.0)) == pytest.approx((3.0, 1.0, 2.0))
    assert weights_from_run((1.0, 1.0), (1.0, 3.0)) == pytest.approx((3.0, 1.0))


# ------------------------------------------------------------------------------------------- by hand


def test_recurrences_by_hand() -> None:
    """Two loops with messages, one without in between and one behind; process 1 is the slower one."""
    region = [
        LoopTime((1.0, 2.0)),
        LoopTime((2.0, 5.0), (0.5, 1.0)),
        LoopTime((1.0, 1.0)),
        LoopTime((1.0, 4.0), (0.5, 2.0)),
        LoopTime((3.0, 1.0)),
    ]
    fast, slow = timelines(region, PAIR)
    assert fast.send == (1.0, 4.5)
    assert fast.receive == (3.0, 5.5)
    assert fast.wait == (3.0, 9.0)  # the second waits for 2 + 5 + 1 + 1 of the other
    assert fast.finish == (3.5, 9.5)
    assert fast.end == 12.5
    assert fast.idle == 3.5
    assert slow.send == (2.0, 9.0)
    assert slow.wait == (7.0, 13.0)
    assert (slow.end, slow.idle) == (16.0, 0.0)
    assert region_seconds(region, PAIR) == 16.0
    assert total_seconds([region, region[:1]], PAIR) == 18.0
    assert barrier_seconds([region]) == 2.0 + 6.0 + 1.0 + 6.0 + 3.0


def test_messages_that_cost() -> None:
    region = [LoopTime((1.0, 2.0), (0.25, 0.5), (100.0, 300.0))]
    link = Link(latency=1.5, bandwidth=100.0)
    assert link.seconds(100.0) == 2.5
    fast, slow = timelines(region, PAIR, link)
    assert fast.wait == (4.5,)  # 1.5 + 300 / 100
    assert slow.wait == (2.5,)  # 1.5 + 100 / 100, behind 2 of the interior
    assert (fast.end, slow.end) == (4.75, 3.0)
    assert region_seconds(region, PAIR) == 2.5


def test_only_neighbours_are_waited_for() -> None:
    """In a row of three the first does not wait for the last, which is late: after two loops it does."""
    first, again = LoopTime((0.0, 0.0, 9.0)), LoopTime((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    row = ((1,), (0, 2), (1,))
    assert [line.end for line in timelines([first, again], row)] == [2.0, 10.0, 11.0]
    assert [line.end for line in timelines([first, again, again], row)] == [11.0, 12.0, 13.0]
    assert everyone(3) == ((1, 2), (0, 2), (0, 1))


# -------------------------------------------------------------------------------------------- limits


def test_one_process_and_no_loops() -> None:
    region = [LoopTime((1.0,), (2.0,)), LoopTime((3.0,))]
    assert region_seconds(region, ((),), Link(latency=inf)) == barrier_seconds([region]) == 6.0
    assert region_seconds([], ((),)) == total_seconds([], PAIR) == barrier_seconds([]) == 0.0


def test_infinite_latency() -> None:
    region = [LoopTime((1.0, 1.0), (1.0, 1.0))]
    assert region_seconds(region, PAIR, Link(latency=inf)) == inf
    assert region_seconds(region, ((), ()), Link(latency=inf)) == 2.0
    assert region_seconds([LoopTime((1.0, 1.0))], PAIR, Link(latency=inf)) == 1.0


times = st.floats(0.0, 10.0)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_between_the_slowest_process_and_the_barriers(data: st.DataObject) -> None:
    """Hiding waits never takes longer than barriers, never less than the longest work; later messages never help."""
    count = data.draw(st.integers(1, 4))
    column = st.tuples(*[times] * count)
    loops = st.builds(LoopTime, column, st.one_of(st.just(()), column))
    region = data.draw(st.lists(loops, max_size=6))
    neighbours = everyone(count)
    ends = [line.end for line in timelines(region, neighbours)]
    work = [sum(loop.seconds(i) for loop in region) for i in range(count)]
    seconds = region_seconds(region, neighbours)
    assert all(e >= w - 1e-12 for e, w in zip(ends, work, strict=True))
    assert seconds <= barrier_seconds([region]) + 1e-9
    assert region_seconds(region, neighbours, Link(latency=0.5)) >= seconds
    assert all(line.idle >= -1e-12 for line in timelines(region, neighbours))


# ------------------------------------------------------------------------------------ the best weight


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_best_weight_is_the_best_of_a_sweep(data: st.DataObject) -> None:
    speed = st.tuples(st.floats(1e-9, 1e-7), st.floats(1e-8, 1e-6))
    loops = st.builds(
        LoopRate,
        st.integers(100_000, 1_000_000),
        speed,
        st.one_of(st.just(()), st.tuples(st.floats(0, 1e-4), st.floats(0, 1e-4))),
        st.one_of(st.just(()), st.just((500, 700))),
        st.just((4e4, 4e4)),
    )
    regions = data.draw(st.lists(st.lists(loops, min_size=1, max_size=4), min_size=1, max_size=2))
    link = data.draw(st.sampled_from([FREE, Link(1e-5, 1e9)]))
    best = optimal_weight(regions, PAIR, bounds=(0.25, 64.0), link=link)
    assert sum(best.shares) == pytest.approx(1.0)
    assert best.shares == pytest.approx(shares_from_weights((best.weight, 1.0)))

    def seconds(weight: float) -> float:
        found = [[loop_times(loop, shares_from_weights((weight, 1.0))) for loop in region] for region in regions]
        return total_seconds(found, PAIR, link)

    assert best.seconds == pytest.approx(seconds(best.weight))
    assert best.seconds <= min(seconds(w) for w in np.geomspace(0.25, 64.0, 200)) * (1 + 1e-6)


def test_several_fast_processes() -> None:
    """Two that are three times as fast as three others: with everything linear all are done at once."""
    loop = LoopRate(900, (1.0, 3.0, 1.0, 3.0, 3.0))
    best = optimal_weight([[loop]], everyone(5), fast=(0, 2))
    assert best.weight == pytest.approx(3.0, rel=1e-6)
    assert best.seconds == pytest.approx(900 / (1 + 1 / 3 + 1 + 1 / 3 + 1 / 3), rel=1e-6)


def test_overhead_moves_work_to_the_others() -> None:
    (region,) = whole(GPU, CPU)
    heavy = [replace(loop, overhead=(0.0, 10.0)) for loop in region]
    best = optimal_weight([heavy], PAIR)
    share = (CPU + 10.0) / (GPU + CPU)
    assert best.shares[0] == pytest.approx(share, rel=1e-6)
    assert best.seconds == pytest.approx(GPU * share, rel=1e-6)
    alone = optimal_weight([[replace(loop, overhead=(0.0, 100.0)) for loop in region]], PAIR)
    assert alone.weight == pytest.approx(64.0)  # the bound: the other does not pay
    assert alone.seconds > GPU


def test_boundaries() -> None:
    loop = LoopRate(100, (0.1, 0.5), boundary=(10, 30))
    times = loop_times(loop, (0.8, 0.2))
    assert times.interior == pytest.approx((7.0, 0.0))  # 20 elements, all of them boundary
    assert times.boundary == pytest.approx((1.0, 10.0))
    assert times.exchanges
    assert not loop_times(replace(loop, boundary=()), (0.8, 0.2)).exchanges


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Link(-1.0), "latency"),
        (lambda: Link(0.0, 0.0), "bandwidth"),
        (lambda: timelines([LoopTime((1.0,))], PAIR), "for \\[1\\] processes, there are 2"),
        (lambda: timelines([LoopTime((1.0, 1.0), (1.0,))], PAIR), "for \\[1, 2\\] processes"),
        (lambda: timelines([], ((2,), (0,))), "process 0 of 2 has the neighbours \\[2\\]"),
        (lambda: timelines([], ((0,),)), "process 0 of 1 has the neighbours \\[0\\]"),
        (lambda: shares_from_weights((0.0, 0.0)), "one positive"),
        (lambda: shares_from_weights((1.0, -1.0)), "at least 0"),
        (lambda: weights_from_rates((1.0, 0.0)), "measure each process"),
        (lambda: weights_from_rates(()), "measure each process"),
        (lambda: weights_from_run((1.0, 1.0), (1.0,)), "a positive time for each"),
        (lambda: loop_times(LoopRate(5, (1.0, 1.0)), (1.0,)), "1 shares"),
        (lambda: optimal_weight(whole(GPU, CPU), PAIR, fast=(0, 1)), "not all"),
        (lambda: optimal_weight(whole(GPU, CPU), PAIR, fast=()), "name some"),
        (lambda: optimal_weight(whole(GPU, CPU), PAIR, bounds=(2.0, 1.0)), "ascending"),
    ],
)
def test_what_makes_no_sense_is_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(FluxloomError, match=message):
        call()


# ---------------------------------------------------------------------------- times linear in the elements


def test_linear_times_find_overhead_and_slope() -> None:
    runs = [((n, 1000 - n), (2e-3 + 1e-5 * n, 4e-5 * (1000 - n))) for n in (300, 600, 800)]
    (a, b), (c, d) = linear_times(runs)
    assert (a, b) == pytest.approx((2e-3, 1e-5), rel=1e-9)
    assert d == pytest.approx(4e-5, rel=1e-9)
    assert c == pytest.approx(0.0, abs=1e-12)


def test_linear_times_go_through_the_origin_where_a_line_makes_no_sense() -> None:
    assert linear_times([((10, 30), (1.0, 6.0))]) == [(0.0, 0.1), (0.0, 0.2)]
    # fewer elements took longer: noise
    ((a, b),) = linear_times([((10,), (1.2,)), ((12,), (1.0,))])
    assert (a, b) == pytest.approx((0.0, (0.12 + 1 / 12) / 2))


@pytest.mark.parametrize("runs", [[], [((0,), (1.0,))], [((3,), (0.0,))], [((3,), (inf,))]])
def test_linear_times_need_numbers(runs: list[tuple[tuple[int, ...], tuple[float, ...]]]) -> None:
    with pytest.raises(FluxloomError, match="elements and seconds"):
        linear_times(runs)
