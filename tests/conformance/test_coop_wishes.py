"""What is asked of loops whose rows can be shared, and what they do where they cannot be."""

from __future__ import annotations

import pytest

import fluxloom as fl
from fluxloom import Loop, Read, Write
from fluxloom.core.errors import PlanError

from .harness import build, compare, expected
from .test_coop import COLUMNS, STORES, corners, ctx, product, ragged, run, scatter

__all__ = ["ctx"]


def test_the_rule(ctx: fl.Context) -> None:
    """One item a row on a processor and for columns, else the square root of a row's entries, or its chunks."""
    lanes = {store: product(ctx, store)[0][0].schedule.lanes for store in STORES}
    wanted = dict.fromkeys(STORES, 1)
    if not getattr(ctx.device, "is_cpu", False):
        wanted |= {"csr": 4, "ell-row": 4, "sliced8-row": 4, "grouped8-chunk3": 2}
    assert lanes == wanted


def test_lanes_that_are_not_possible(ctx: fl.Context) -> None:
    @fl.kernel
    def running(x: Read, a: Write):
        total = 0.0
        for j in range(len(x)):
            total += x[j]
            a[j] = total

    def case(ctx, schedule=None):
        m, rng = ragged(ctx)
        x, a = ctx.dat(m.target, rng.random(COLUMNS)), ctx.dat(m.entries)
        return [Loop(running, m.source, x[m], a[m.to_entries], schedule=schedule)], {"a": a}

    message = r"running: lanes=8 is not possible: 'total' is read in the loop that adds to it; use lanes=1"
    with pytest.raises(PlanError, match=message):
        case(ctx, schedule=fl.Schedule(lanes=8))
    everywhere = fl.Context(ctx.device, tuning=False, schedule=fl.Schedule(lanes=8, rows=96))
    built = build(case, everywhere)
    assert built.steps[0].schedule.lanes == 1
    compare(built.run(), expected(case))
    compare(run(ctx, case, fl.Schedule(lanes=1, rows=192)), expected(case))
    with pytest.raises(PlanError, match="running: lanes=2 is not possible"):
        built.steps[0].reschedule(fl.Schedule(lanes=2))


def test_a_target_twice_in_a_row_needs_atomics(ctx: fl.Context) -> None:
    with pytest.raises(PlanError, match="a row of map 'm' meets a target twice, which needs atomic additions"):
        scatter(ctx, schedule=fl.Schedule(lanes=8, strategy="element_colour"))
    (loop,), _ = scatter(ctx, schedule=fl.Schedule(lanes=8))
    assert loop.schedule.strategy == "atomic"


def test_determinism(ctx: fl.Context) -> None:
    with pytest.raises(PlanError, match="deterministic='global' forbids"):
        product(ctx, schedule=fl.Schedule(lanes=8, deterministic="global"))
    compare(run(ctx, product, fl.Schedule(lanes=8, deterministic="plan")), expected(product))
    with pytest.raises(PlanError, match="the strategy 'gather' does not go row by row; atomic, element_colour do"):
        corners(ctx, schedule=fl.Schedule(lanes=8, strategy="gather"))
    (loop,), _ = corners(ctx, schedule=fl.Schedule(lanes=8))
    assert (loop.schedule.strategy, loop.schedule.lanes) == ("atomic", 8)


@pytest.mark.parametrize("lanes", [2, 32])
def test_packs_of_a_processor(lanes: int) -> None:
    ctx = fl.Context("cpu", tuning=False)
    with pytest.raises(PlanError, match=f"spmv: lanes={lanes} on 'cpu': a pack has 1, 4, 8 or 16 elements"):
        product(ctx, schedule=fl.Schedule(lanes=lanes))
    with pytest.raises(PlanError, match="a pack has 1, 4, 8 or 16 elements"):
        product(fl.Context("cpu", tuning=False, schedule=fl.Schedule(lanes=lanes)))
