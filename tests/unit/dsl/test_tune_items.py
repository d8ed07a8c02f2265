"""Tuning on devices of work items: what is searched, what is recorded, and the search call by call."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Read, Write
from fluxloom.core.errors import CompileError, PlanError
from fluxloom.device.base import Buffer, Device
from fluxloom.dsl.plan.tuning import TuningFile, schedule_words
from fluxloom.dsl.tune.knobs import loop_knobs, loop_schedule, starting_point
from fluxloom.dsl.tune.online import OnlineTuning
from fluxloom.dsl.tune.search import tune
from fluxloom.perf.ragged import Grouping, measured_rule

N = 40000

ON_DEVICES = pytest.mark.parametrize(
    "device", [pytest.param("opencl", marks=pytest.mark.opencl), pytest.param("cuda", marks=pytest.mark.cuda)]
)


class Items(Device):
    """A device of work items that is never asked to run anything."""

    name, native, items, dialect, max_block = "items", True, True, "cuda", 512

    def allocate(self, nbytes: int, stagger: int = 0) -> Buffer:
        return Buffer(nbytes)

    def describe(self) -> str:
        return "items"


@fl.kernel
def product(a: Read, x: Read, y: Write):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total


@fl.kernel
def running(a: Read, y: Write):
    total = 1.0
    for j in range(len(a)):
        total = total * a[j]
    y[0] = total


@fl.kernel
def double(u: Read, v: Write):
    v[0] = 2.0 * u[0]


@fl.kernel
def flux(u: Read, r: Inc):
    r[0] += u[1] - u[0]
    r[1] -= u[1] - u[0]


class Rows:
    """A matrix of seven entries a row on a device."""

    def __init__(self, device: str | Device, n: int = N, layout: object = None, **options: object) -> None:
        self.ctx = ctx = fl.Context(device, **options)  # type: ignore[arg-type]
        self.rows = ctx.set(n, "rows")
        offsets, columns = 7 * np.arange(n + 1), np.arange(7 * n) % n
        self.m = ctx.ragged(self.rows, self.rows, offsets, columns, "m", layout)  # type: ignore[arg-type]
        self.a, self.x = ctx.dat(self.m.entries, np.ones(7 * n)), ctx.dat(self.rows, np.ones(n))
        self.y = ctx.dat(self.rows)

    def product(self, schedule: fl.Schedule | None = None) -> fl.Loop:
        return fl.Loop(product, self.rows, self.a[self.m.to_entries], self.x[self.m], self.y, schedule=schedule)

    def running(self) -> fl.Loop:
        return fl.Loop(running, self.rows, self.a[self.m.to_entries], self.y)

    def flux(self, schedule: fl.Schedule | None = None) -> fl.Loop:
        ends = np.stack([np.arange(N - 1), np.arange(1, N)], axis=1)
        through = self.ctx.map(self.ctx.set(N - 1, "faces"), self.rows, ends, "f2c")
        return fl.Loop(flux, through.source, self.x[through], self.y[through], schedule=schedule)


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("FLUXLOOM_TUNING", str(path))
    return path


class Clock:
    """Time that passes as a rule says: loops do nothing but cost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cost: Callable[[fl.Schedule], float]) -> None:
        self.now = 0.0
        clock = self

        class Fake:
            def __init__(self, seconds: float) -> None:
                self.seconds = seconds

            def run(self) -> None:
                clock.now += self.seconds

        monkeypatch.setattr(fl.Loop, "build", lambda loop: Fake(cost(loop.schedule)))

    def __call__(self) -> float:
        return self.now


def names(loop: fl.Loop, method: str = "sweep", budget: int = 64) -> dict[str, tuple[object, ...]]:
    return {knob.name: knob.values for knob in loop_knobs(loop, None, method, budget)[0]}


# ------------------------------------------------------------------------------------------ choices


def test_the_rule_is_the_default() -> None:
    block, lanes, repeat = measured_rule(N, 7 * N)
    chosen = Rows(Items()).product().schedule
    assert (chosen.block, chosen.lanes, chosen.rows) == (block, lanes, repeat * block // lanes)
    assert lanes == 4
    column = Rows(Items(), layout=fl.SlicedELL(32)).product().schedule
    assert (column.lanes, column.rows) == (1, column.block)
    assert Rows(Items()).running().schedule.lanes == 1
    flagged = Items()
    flagged.is_cpu = True  # type: ignore[attr-defined]
    assert Rows(flagged).product().schedule.lanes == 1


def test_wishes() -> None:
    rows = Rows(Items())
    wide = rows.product(fl.Schedule(lanes=16, block=100)).schedule
    assert (wide.block, wide.lanes, wide.rows) == (128, 16, 8)
    deep = rows.product(fl.Schedule(rows=96, block=64, lanes=2)).schedule
    assert (deep.block, deep.lanes, deep.rows) == (64, 2, 96)
    plain = fl.Loop(double, rows.rows, rows.x, rows.y, schedule=fl.Schedule(lanes=8, rows=7)).schedule
    assert (plain.lanes, plain.rows) == (1, 0)


def test_stage_is_of_block_colours() -> None:
    """A loop that is asked for it itself says so; where all loops are, others leave it out."""
    with pytest.raises(PlanError, match="flux: stage=True is of block_colour: with 'gather' no increments meet"):
        Rows(Items()).flux(fl.Schedule(strategy="gather", stage=True))
    coloured = Rows(Items()).flux(fl.Schedule(strategy="block_colour", stage=True)).schedule
    assert coloured.stage
    gathered = Rows(Items()).flux(fl.Schedule(stage=True)).schedule
    assert (gathered.strategy, gathered.stage) == ("gather", False)


def test_items_of_a_processor_share_no_rows() -> None:
    flagged = Items()
    flagged.is_cpu = True  # type: ignore[attr-defined]
    assert set(names(Rows(flagged).product())) == {"block", "repeat"}
    assert "lanes" in names(Rows(flagged).product(fl.Schedule(lanes=4)))
    assert {"block", "repeat", "lanes"} <= set(names(Rows(Items()).product()))


def test_knobs() -> None:
    rows = Rows(Items())
    loop = rows.product()
    assert names(loop) == {"block": (64, 128, 192, 256, 512), "lanes": (1, 2, 4, 8, 16, 32), "repeat": (1, 2, 4, 8)}
    assert names(loop, "tabu")["registers"] == (0, 32, 48, 64, 96, 128)
    assert "registers" in names(loop, budget=10000)
    assert "lanes" not in names(rows.running())
    assert set(names(fl.Loop(double, rows.rows, rows.x, rows.y))) == {"block", "registers"}
    racing = names(rows.flux())
    assert racing["strategy"][0] == "gather"
    assert set(racing) == {"strategy", "block", "stage"}
    knobs, now = loop_knobs(loop, None, "sweep", 64)
    assert loop_schedule(loop, now, starting_point(knobs, now)) == now
    point = {"block": 192, "lanes": 8, "repeat": 2}
    assert loop_schedule(loop, now, point).rows == 48


def test_the_cheapest_wins_and_is_found_again(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    def cost(schedule: fl.Schedule) -> float:
        repeat = schedule.rows * schedule.lanes // schedule.block
        return 1.0 + abs(schedule.lanes - 16) + abs(schedule.block - 256) / 64 + abs(repeat - 2)

    loop = Rows(Items()).product()
    report = tune(loop, clock=Clock(monkeypatch, cost), method="hill_climb")
    best = report["product"].best
    assert (best.block, best.lanes, best.rows) == (256, 16, 32)
    [row] = TuningFile().show()
    assert row.schedule.rows == 32
    assert schedule_words(row.schedule) == "direct, block 256, lanes 16, rows 32"
    again = Rows(Items()).product().schedule
    assert (again.block, again.lanes, again.rows) == (256, 16, 32)
    # A loop that cannot follow a record runs with what it can; one lane a row here.
    other = Rows(Items()).running()
    TuningFile().put(other.tuning_key, "running", fl.Schedule(lanes=8, block=256, rows=512), 1.0)
    assert (other.schedule.lanes, other.schedule.rows) == (1, 512)


def test_blocks_and_registers_of_plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(Items())
    loop = fl.Loop(double, rows.rows, rows.x, rows.y)
    clock = Clock(monkeypatch, lambda s: 1.0 + abs(s.block - 512) + abs(s.registers - 48))
    best = tune(loop, clock=clock)["double"].best
    assert (best.block, best.registers) == (512, 48)
    assert schedule_words(best) == "direct, block 512, registers 48"


def test_words() -> None:
    assert schedule_words(fl.Schedule("block_colour", 256, 1, stage=True, rows=0)) == "block_colour, block 256, staged"
    assert schedule_words(fl.Schedule("atomic", 128, 4, rows=64, stage=False)) == "atomic, block 128, lanes 4, rows 64"
    assert schedule_words(fl.Schedule("atomic", 256, 8, stream=True)) == "atomic, lanes 8, stream"


# --------------------------------------------------------------------------------------- call by call


def costing(loop: fl.Loop, ran: list[Grouping]) -> Callable[[Callable[[], object]], float]:
    """Return a clock that runs and says what the schedule in force should cost."""

    def elapsed(run: Callable[[], object]) -> float:
        run()
        now = loop.schedule
        ran.append(Grouping(now.block, now.lanes, now.rows * now.lanes // now.block))
        return 1.0 + abs(now.lanes - 4) + 0.1 * now.rows / now.block

    return elapsed


@ON_DEVICES
def test_online_tuning_does_the_work_meanwhile(device: str) -> None:
    @fl.kernel
    def add(a: Read, y: Inc, *, w: float):
        for j in range(len(a)):
            y[0] += w * a[j]

    rows = Rows(device, 500)
    loop = fl.Loop(add, rows.rows, rows.a[rows.m.to_entries], rows.y, w=0.0)
    timed: list[Grouping] = []
    online = OnlineTuning(loop, elapsed=costing(loop, timed))
    total, calls = 0, 0
    while not online.finished:
        calls += 1
        total += calls
        assert online(w=float(calls)) == online.calls[-1].grouping
        assert calls < 60
    np.testing.assert_allclose(rows.y.read(), 7.0 * total)  # every call ran once, with its own constant
    assert timed == [trial.grouping for trial in online.calls if trial.seconds is not None]
    assert len({trial.grouping for trial in online.calls}) <= 10
    assert online.best.lanes == 4
    assert loop.schedule.lanes == 4
    [row] = TuningFile().show()
    assert (row.key, row.schedule.lanes) == (loop.tuning_key, 4)
    loop(w=1.0)
    assert online(w=2.0) == online.best
    np.testing.assert_allclose(rows.y.read(), 7.0 * (total + 3))
    assert len(loop._blocks) == 1
    assert str(online).startswith(f"add: best block {online.best.block}, lanes 4, repeat {online.best.repeat}: ")
    assert Rows(device, 500).product().schedule == Rows(device, 500, tuning=False).product().schedule


@ON_DEVICES
def test_online_kernels_are_made_once(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(device, 300, tuning=False)
    loop = rows.product(fl.Schedule(lanes=8))
    built: list[fl.Schedule] = []
    build = fl.Loop.build

    def counted(self: fl.Loop) -> object:
        if self.schedule.lanes != 8:  # whichever is tried next to the first
            raise CompileError("not today")
        built.append(self.schedule)
        return build(self)

    monkeypatch.setattr(fl.Loop, "build", counted)
    online = OnlineTuning(loop, record=False)  # the device's own clock
    while not online.finished:
        online()
    assert len(set(built)) == len(built)
    assert any(trial.seconds == inf and trial.grouping.lanes != 8 for trial in online.calls)
    np.testing.assert_allclose(rows.y.read(), 7.0)
    assert not TuningFile().show()


def test_nothing_to_tune_online() -> None:
    rows = Rows(Items())
    with pytest.raises(PlanError, match="double: there are no rows to group on 'items'"):
        OnlineTuning(fl.Loop(double, rows.rows, rows.x, rows.y))
    with pytest.raises(PlanError, match="there are no rows to group on 'cpu'"):
        OnlineTuning(Rows("cpu", 100).product())


@ON_DEVICES
def test_tuning_on_the_device(device: str) -> None:
    rows = Rows(device, 2000)
    loop = rows.product()
    loop()
    before = rows.y.read()
    report = tune(loop, rounds=1, budget=5)
    np.testing.assert_array_equal(rows.y.read(), before)
    assert len(report["product"].rows) >= 5
    assert TuningFile().show()[0].schedule.rows
    loop()
    np.testing.assert_allclose(rows.y.read(), 7.0)
