"""Two rows a work item, rows abreast on a CPU: what is chosen, what is refused and why, what can be tuned."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Loop, Read, Schedule, Write
from fluxloom.codegen.items.pairs import why_not_paired
from fluxloom.codegen.packs.row_packs import why_no_row_packs
from fluxloom.core.errors import PlanError
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.plan.bind import Numbering, specialise
from fluxloom.dsl.plan.lanes import allowed, why_alone
from fluxloom.dsl.plan.pairs import why_single
from fluxloom.dsl.plan.tuning import schedule_words
from fluxloom.dsl.tune.knobs import loop_knobs, loop_schedule, starting_point
from fluxloom_lab.formats.row_grouped import RowGroupedCSR
from tests.golden.fake import FakeItems

N = 5000


@fl.kernel
def product(a: Read, x: Read, y: Write):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total


@fl.kernel
def first(x: Read, y: Write):
    y[0] = 0.0
    if len(x) > 0:
        y[0] = x[0]


@fl.kernel
def spread(x: Inc, y: Read):
    for j in range(len(x)):
        x[j] += y[0]


@fl.kernel
def through(x: Read, z: Read, y: Write):
    y[0] = 0.0
    for j in range(len(x)):
        y[0] += x[j] * z[0]


@fl.kernel
def scaled(a: Write, x: Read):
    for j in range(len(x)):
        a[j] = 2.0 * x[j]


@fl.kernel
def summed(a: Read, x: Read, y: Write, total: Inc):
    y[0] = 0.0
    for j in range(len(a)):
        y[0] += a[j] * x[j]
    total[0] += y[0]


class Case:
    """Rows of seven entries on a device."""

    def __init__(self, device: object = None, layout: RaggedLayout | None = None, **options: object) -> None:
        self.ctx = ctx = fl.Context(device or FakeItems("cuda"), tuning=False, **options)  # type: ignore[arg-type]
        self.rows = rows = ctx.set(N, "rows")
        layout = layout or fl.SlicedELL(32)
        self.m = m = ctx.ragged(rows, rows, 7 * np.arange(N + 1), np.arange(7 * N) % N, "m", layout)
        self.a, self.x, self.y = ctx.dat(m.entries, np.ones(7 * N)), ctx.dat(rows, np.ones(N)), ctx.dat(rows)

    def product(self, schedule: Schedule | None = None) -> Loop:
        return Loop(product, self.rows, self.a[self.m.to_entries], self.x[self.m], self.y, schedule=schedule)

    def reasons(self, loop: Loop) -> tuple[str, str]:
        spec = specialise(loop.bound, Numbering())
        return why_no_row_packs(spec), why_not_paired(spec)


def test_chosen() -> None:
    case = Case()
    assert case.product().schedule.pairs is False
    chosen = case.product(Schedule(pairs=True)).schedule
    assert (chosen.pairs, chosen.lanes, chosen.rows) == (True, 1, 2 * chosen.block)
    assert "pairs" in schedule_words(chosen)
    wide = Case(schedule=Schedule(pairs=True))  # a wish for all loops is followed where it can be
    assert wide.product().schedule.pairs is True
    double = Loop(through, wide.rows, wide.x[wide.m], wide.y, wide.ctx.dat(wide.rows), schedule=Schedule(lanes=4))
    assert (double.schedule.pairs, double.schedule.lanes) == (False, 4)


@pytest.mark.parametrize(
    ("layout", "abreast", "paired"),
    [
        (fl.CSR(), "stored column by column", "stored column by column"),
        (RowGroupedCSR(), "stored column by column", "stored column by column"),
        (fl.SlicedELL(32, column_major=False), "stored column by column", "stored column by column"),
        (fl.ELL(), "", "an even number of rows"),
        (fl.SlicedELL(5), "", "an even number of rows"),
        (fl.SlicedELL(6), "", ""),
    ],
)
def test_layouts(layout: RaggedLayout, abreast: str, paired: str) -> None:
    case = Case(layout=layout)
    one, two = case.reasons(case.product())
    assert (abreast in one, paired in two) == (True, True)
    assert (bool(one), bool(two)) == (bool(abreast), bool(paired))
    if paired:
        with pytest.raises(PlanError, match="pairs of rows are not possible"):
            case.product(Schedule(pairs=True))


def test_kernels() -> None:
    case = Case()
    some = case.ctx.subset(case.rows, np.arange(0, N, 3))
    column, mine = case.x[case.m], case.a[case.m.to_entries]
    table = case.ctx.map(case.rows, case.rows, np.arange(N)[:, None], "own")
    for loop, abreast, paired in (
        (Loop(first, case.rows, column, case.y), "no loop over the entries", ""),
        (Loop(product, some, mine, column, case.y), "subset", ""),
        (Loop(spread, case.rows, column, case.y), "may change the same target", ""),
        (Loop(scaled, case.rows, mine, column), "", "changes the entries"),
        (Loop(through, case.rows, column, case.y[table[0]], case.ctx.dat(case.rows)), "", "another map"),
    ):
        one, two = case.reasons(loop)
        assert abreast in one if abreast else not one, loop
        assert (paired or abreast) in two, loop


def test_refused() -> None:
    case = Case()
    with pytest.raises(PlanError, match="lanes=4 items share a row"):
        case.product(Schedule(pairs=True, lanes=4))
    loop = case.product()
    with pytest.raises(PlanError, match="pairs of rows"):
        Case(layout=fl.CSR()).product().reschedule(Schedule(pairs=True))
    loop.reschedule(Schedule(pairs=True))
    assert "double2" in loop.source


def test_sums_of_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank's rows may begin inside a pair, whose sum would belong to two ranks."""
    case = Case()
    rows = case.a[case.m.to_entries], case.x[case.m], case.y
    total = case.ctx.scalar(0.0)
    assert Loop(summed, case.rows, *rows, total, schedule=Schedule(pairs=True)).schedule.pairs is True
    alone, both = case.product(), Loop(summed, case.rows, *rows, total)
    monkeypatch.setattr(case.rows, "part", object())
    assert not why_single(alone.bound, None)
    assert "it reduces over rows of several ranks" in why_single(both.bound, None)


def test_knobs() -> None:
    case = Case()
    knobs, now = loop_knobs(case.product(), None, "sweep", 10_000)
    assert {k.name: k.values for k in knobs}["pairs"] == (False, True)
    point = starting_point(knobs, now) | {"pairs": True, "repeat": 4, "lanes": 8}
    tuned = loop_schedule(case.product(), now, point)
    assert (tuned.pairs, tuned.lanes) == (True, 1)
    assert case.product(tuned).schedule.rows == 2 * tuned.block
    assert "pairs" not in {k.name for k in loop_knobs(Case(layout=fl.CSR()).product(), None, "sweep", 64)[0]}


@pytest.mark.usefixtures("optimised")
def test_knobs_of_packs() -> None:
    for layout, lanes in ((fl.SlicedELL(8), (1, 4, 8)), (fl.SlicedELL(4), (1, 4, 8)), (fl.CSR(), None)):
        knobs, _ = loop_knobs(Case("cpu", layout, threads=1).product(), None, "sweep", 64)
        found = {k.name: k.values for k in knobs}
        assert found.get("lanes") == lanes, layout


def test_lanes_of_chunks() -> None:
    """The rule gives an item to each chunk of a usual row."""
    for chunk, lanes in ((7, 1), (4, 2), (2, 4), (1, 8)):
        assert Case(layout=RowGroupedCSR(32, chunk)).product().schedule.lanes == lanes
    text = Case(layout=RowGroupedCSR(32, 2)).product().source
    assert "lane * row0_chunk" in text


@pytest.mark.parametrize(
    ("schedule", "partials"),
    [(Schedule(lanes=4), -(-N // 32)), (Schedule(pairs=True), -(-N // 128)), (Schedule(lanes=1), -(-N // 128))],
)
def test_partial_results_of_shared_rows(schedule: Schedule, partials: int) -> None:
    """One for each group that shares 32 rows, else one for 128 rows."""
    case = Case()
    total = case.ctx.scalar(0.0, "total")
    loop = Loop(summed, case.rows, case.a[case.m.to_entries], case.x[case.m], case.y, total, schedule=schedule)
    assert loop.plan.partials == partials


@pytest.mark.parametrize(("repeats", "reason"), [(False, ""), (True, "map 'm' meets a target twice")])
def test_rows_that_scatter_are_shared_where_no_target_repeats(repeats: bool, reason: str) -> None:
    ctx = fl.Context(FakeItems("cuda"), tuning=False)  # type: ignore[arg-type]
    rows, cells = ctx.set(4, "rows"), ctx.set(8, "cells")
    m = ctx.ragged(rows, cells, [0, 2, 4, 6, 8], np.arange(8) // (2 if repeats else 1), "m")
    bound = Loop(spread, rows, ctx.dat(cells)[m], ctx.dat(rows)).bound
    said = why_alone(bound, "element_colour", None)
    assert reason in said
    assert bool(said) is repeats
    assert why_alone(bound, "atomic", None) == ""
    assert "forbids" in why_alone(bound, "atomic", "global")


def test_lanes_that_are_not_possible_are_refused() -> None:
    case = Case()
    with pytest.raises(PlanError, match=r"first: lanes=4 is not possible: .*; use lanes=1"):
        Loop(first, case.rows, case.x[case.m], case.y, schedule=Schedule(lanes=4))


def test_lanes_of_a_cpu_are_tried_only_where_there_are_some() -> None:
    case = Case()
    loop = case.product()
    case.ctx.device.is_cpu = True  # type: ignore[attr-defined]
    assert allowed(loop.bound, ["direct"], Schedule(lanes=1)) == ()
    assert allowed(loop.bound, ["direct"], Schedule(lanes=2)) != ()
    case.ctx.device.is_cpu = False  # type: ignore[attr-defined]
    assert allowed(loop.bound, ["direct"], Schedule(lanes=1)) != ()
