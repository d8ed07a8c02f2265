"""The benchmarks: their records, their options, and what they refuse. No time is asserted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.comm.base import SelfComm
from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.device.text import TextDevice
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.report import LoopReport
from fluxloom.mesh import airfoil_mesh
from fluxloom.perf.tuner import Knob
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom_lab.bench import exhaustive, strategies
from fluxloom_lab.bench.base import count_gpus
from fluxloom_lab.bench.boxes.lattice import LbmBench, _side
from fluxloom_lab.bench.exhaustive import time_schedules
from fluxloom_lab.bench.flows import airfoil
from fluxloom_lab.bench.flows.airfoil import AirfoilBench
from fluxloom_lab.bench.flows.airfoil_options import AirfoilOptions
from fluxloom_lab.bench.overhead import OverheadBench
from fluxloom_lab.bench.rounds import measure_rounds, profiled
from fluxloom_lab.bench.strategies import Outcome, Way, compare_strategies, require_agreement, ways_of

Call = Callable[..., SimpleNamespace]

TINY = "8,12"
RMS_5 = 3.2135433344452e-03  # after five iterations on the tiny mesh
GPUS = [pytest.param("opencl:0", marks=pytest.mark.opencl), pytest.param("cuda:0", marks=pytest.mark.cuda)]
DEVICES = ["cpu", *GPUS]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep measurements of the memory short, and tuning apart."""
    monkeypatch.setattr("fluxloom.device.bandwidth._default_size", lambda: 4 << 20)
    monkeypatch.setattr("fluxloom.device.opencl.bandwidth._default_size", lambda _: 4 << 20)
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))


def options(device: str = "cpu", bench: type = AirfoilBench, **named: Any) -> Any:
    """Return options for little work."""
    return bench.options(**{"device": device, "threads": 1, "cells": TINY, "iterations": 5, "rounds": 2} | named)


def silent(_: str) -> None:
    """Say nothing."""


# ---------------------------------------------------------------------------------------------- airfoil


@pytest.mark.parametrize("device", GPUS)
def test_airfoil_on_a_gpu(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """Timed rounds keep no times of loops; one more does. The residual after 1000 iterations is the published one's."""
    monkeypatch.setattr(airfoil, "_PUBLISHED_CELLS", (8, 12))
    monkeypatch.setattr(airfoil, "RMS_1000", 1.0)
    told: list[str] = []
    record = AirfoilBench().run(options(device), told.append).as_json()
    assert record["device"] == device.partition(":")[0]
    assert record["gpus"] == count_gpus(Context(device))
    metrics = record["metrics"]
    assert metrics["rms"] == pytest.approx(RMS_5, rel=1e-9)
    assert metrics["seconds_per_1000_iterations"] == pytest.approx(200 * record["seconds"])
    assert 0 < metrics["rms_1000"] < metrics["rms"]
    assert metrics["rms_1000_difference_percent"] == pytest.approx(100 * (metrics["rms_1000"] - 1))
    assert all(row["seconds"] > 0 and row["block"] and row["layout"] == "aos" for row in record["loops"])
    assert {row["calls"] for row in record["loops"]} == {5}
    assert told[-1].startswith("residual ")


@pytest.mark.opencl
def test_airfoil_options() -> None:
    """Layout, strategy, block and form reach every loop; the residual of 1000 iterations does not depend on them."""
    plain = AirfoilBench().run(options("opencl"), silent)
    schedule = Schedule(strategy="two_pass", block=64)
    given = options("opencl", schedule=schedule, layout="soa", fused=False, iterations=300, rounds=3)
    record = AirfoilBench().run(given, silent)
    rows = {row.name: row for row in record.loops}
    assert list(rows) == ["save_soln", "adt_calc", "res_calc", "bres_calc", "update"]
    assert {row.layout for row in record.loops} == {"soa"}
    assert (rows["res_calc"].strategy, rows["res_calc"].block) == ("two_pass", 64)
    assert (record.metrics["strategy"], record.metrics["layout"], record.metrics["fused"]) == ("two_pass", "soa", False)
    assert record.metrics["rms_1000"] == pytest.approx(plain.metrics["rms_1000"], rel=1e-7)  # of another runner


def test_airfoil_on_a_cpu() -> None:
    record = AirfoilBench().run(options(layout="soa", fused=False), silent)
    assert record.gpus == 0
    assert "rms_1000" not in record.metrics
    assert all(row.seconds > 0 and row.layout == "soa" for row in record.loops)
    assert record.metrics["rms"] == pytest.approx(RMS_5, rel=1e-9)


def test_slow_devices_skip_the_published_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(device=SimpleNamespace(items=True), comm=SelfComm())
    case: Any = SimpleNamespace(context=context, size=(8, 12))
    assert airfoil._published(case, SimpleNamespace(), 10, 1.0, silent) == {}  # type: ignore[arg-type]


def test_reference_has_no_schedules() -> None:
    for name in ("exhaustive", "strategies"):
        with pytest.raises(CaseError, match="has no schedules to compare"):
            AirfoilBench().run(options("reference", **{name: True}), silent)


# ----------------------------------------------------------------------------------------------- rounds


def test_rounds_profile_by_themselves() -> None:
    """On devices of work items times of loops come from one more round, and profiling is off again after it."""
    log: list[str] = []
    counts = {"calls": 0, "seconds": 0.0}

    class Fake:
        profile = False
        threads = 1
        comm = SelfComm()
        device = SimpleNamespace(native=False, items=True)

        def synchronize(self) -> None:
            log.append("wait")

    context: Any = Fake()

    def advance(steps: int) -> None:
        log.append("profiled" if context.profile else "plain")
        counts["calls"] += steps
        counts["seconds"] += 0.5 * steps if context.profile else 0.0

    def reports() -> list[LoopReport]:
        return [LoopReport("a", int(counts["calls"]), counts["seconds"], 8, "direct", 0, 1, None, 64)]

    found = measure_rounds(context, advance, reports, 4, 2, silent, str)
    assert log == ["wait", "plain", "wait", "wait", "plain", "wait", "profiled"]
    assert (found.loops[0].calls, found.loops[0].seconds, found.steps) == (4, 2.0, 12)
    assert (len(found.times), found.copy_gbs, found.triad_gbs) == (2, 0.0, None)
    context.device.items = False
    found = measure_rounds(context, advance, reports, 4, 3, silent, str)
    assert (found.loops[0].calls, found.loops[0].seconds, found.steps) == (4, 0.0, 12)


def test_profiling_ends_with_errors() -> None:
    context = Context("reference")

    def broken() -> None:
        assert context.profile
        raise SolverError("lost")

    with pytest.raises(SolverError, match="lost"):
        profiled(context, broken, list)
    assert not context.profile


# ------------------------------------------------------------------------------------------- exhaustive


def few_schedules(loop: Any, now: Schedule, point: Any) -> Schedule:
    """Return the schedule of a point of `few_knobs`."""
    return replace(now, **point)


def few_knobs(loop: Any, *_: object) -> tuple[list[Knob], Schedule]:
    """Return few choices, of which one cannot run where plans of packs have other limits."""
    if loop.races.racing:
        return [Knob("strategy", ("gather", "two_pass"), ordered=False)], loop.schedule
    return [Knob("block", (64, 256)) if loop.context.device.items else Knob("lanes", (1, 32))], loop.schedule


@pytest.fixture
def quick_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches try what compiles quickly."""
    monkeypatch.setattr(exhaustive, "loop_knobs", few_knobs)
    monkeypatch.setattr(exhaustive, "loop_schedule", few_schedules)
    monkeypatch.setattr(exhaustive, "starting_point", lambda *_: {})


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.usefixtures("quick_search")
def test_exhaustive(device: str) -> None:
    told: list[str] = []
    found = exhaustive.exhaustive(options(device), airfoil_mesh(8, 12), told.append)
    names = ["save_soln", "adt_calc", "res_calc", "bres_calc", "update"]
    assert list(found["auto"]) == names
    assert [line.partition(":")[0] for line in told] == names
    assert list(dict.fromkeys(row["loop"] for row in found["exhaustive"])) == names
    for name, item in found["auto"].items():
        rows = [row for row in found["exhaustive"] if row["loop"] == name]
        assert item["auto_us"] >= item["best_us"] > 0
        assert item["auto_percent_of_best"] == pytest.approx(100 * item["best_us"] / item["auto_us"])
        assert {item["auto_schedule"], item["best_schedule"]} <= {row["schedule"] for row in rows if row["final"]}
        assert len(rows) > 1
    assert found["auto_percent_of_best_least"] <= 100


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.usefixtures("quick_search")
def test_timing_leaves_a_loop_as_it_was(device: str) -> None:
    solver = Airfoil(Context(device, threads=1, tuning=False), airfoil_mesh(8, 12), fused=False)
    solver.iterate()
    before = [solver.q.read(), solver.res.read(), solver.rms(), solver.update.schedule, solver.res_calc.schedule]
    tables = [time_schedules(solver.res_calc), time_schedules(solver.update)]
    after = [solver.q.read(), solver.res.read(), solver.rms(), solver.update.schedule, solver.res_calc.schedule]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert [table.name for table in tables] == ["res_calc", "update"]
    assert tables[1].skipped == (0 if solver.context.device.items else 1)  # no pack has 32 elements
    solver.iterate()
    fresh = Airfoil(Context(device, threads=1, tuning=False), airfoil_mesh(8, 12), fused=False)
    for _ in range(2):
        fresh.iterate()
    assert solver.rms() == pytest.approx(fresh.rms(), rel=1e-12)


# ------------------------------------------------------------------------------------------- strategies


def test_ways() -> None:
    mesh = airfoil_mesh(8, 12)
    ways = list(ways_of(Context(TextDevice("cuda")), mesh))
    assert str(ways[0]) == "auto, aos, unfused"
    assert {way.schedule.strategy for way in ways} == {
        None, "block_colour", "element_colour", "atomic", "gather", "two_pass",
    }  # fmt: skip
    assert {way.strategy for way in ways} >= {"gather", "block_colour, staged"}
    assert {(way.layout, way.fused) for way in ways} == {(a, b) for a in ("aos", "soa") for b in (False, True)}
    assert not any(way.repeats for way in ways if way.schedule.strategy == "atomic")
    graded = {way.schedule.strategy for way in ways if way.schedule.deterministic == "global"}
    assert graded == {None, "gather", "two_pass"}
    assert len(set(ways)) == len(ways)
    assert {way.schedule.strategy for way in ways_of(Context("cpu"), mesh)} > {"serial", "block_permute"}


@pytest.mark.parametrize("device", DEVICES)
def test_strategies(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    chosen = [Way(Schedule(), "aos", False), Way(Schedule(strategy="gather", deterministic="global"), "soa", True)]
    monkeypatch.setattr(strategies, "ways_of", lambda *_: iter(chosen))
    told: list[str] = []
    found = compare_strategies(options(device), (8, 12), told.append)
    assert [row["strategy"] for row in found["strategies"]] == ["auto", "gather"]
    assert found["strategies_spread"] < 1e-12
    for row in found["strategies"]:
        assert row["rms"] == pytest.approx(RMS_5, rel=1e-9)
        assert row["relative_difference"] < 1e-12
    assert found["strategies"][1]["repeatable"]
    assert found["strategies"][1]["deterministic"] == "global"
    assert told[0] == "strategies: 288 cells, 5 iterations"


def test_disagreement_is_an_error() -> None:
    good = Outcome(Way(Schedule(strategy="gather"), "aos", True), 1e-3, 0.0, True)
    loose = Outcome(Way(Schedule(strategy="atomic"), "aos", False), 1e-3, 9e-8, False)
    require_agreement([good, loose])
    with pytest.raises(SolverError, match=r"atomic, aos, unfused: the residual .* differs by 2\.0e-05 %"):
        require_agreement([good, replace(loose, difference=2e-7)])
    with pytest.raises(SolverError, match="gather, aos, fused: two runs differ"):
        require_agreement([replace(good, repeatable=False), loose])
    with pytest.raises(SolverError, match="differs by nan"):
        require_agreement([replace(good, difference=float("nan"))])


# -------------------------------------------------------------------------------------- overhead, lattice


@pytest.mark.parametrize("device", DEVICES)
def test_overhead(device: str) -> None:
    record = OverheadBench().run(options(device, OverheadBench, layout="soa"), silent)
    assert record.sizes == {"cells": 288}
    for name in ("loop", "fused_step", "unfused_step", "fused_constant_step", "unfused_constant_step"):
        for part in ("call", "latency", "native"):
            assert record.metrics[f"{name}_{part}_us"] > 0
        assert record.metrics[f"{name}_us"] >= record.metrics[f"{name}_call_us"]
        found = record.metrics[f"{name}_us"] - record.metrics[f"{name}_native_us"]
        assert record.metrics[f"{name}_overhead_us"] == pytest.approx(found)
    assert record.metrics["read_global_us"] > 0
    assert record.seconds == pytest.approx(1e-6 * record.metrics["loop_us"])
    assert {row.name.partition(":")[0] for row in record.loops} >= {"loop", "fused_step", "unfused_constant_step"}


def test_default_boxes() -> None:
    gpu = Context(TextDevice("cuda"))
    assert count_gpus(gpu) == 1
    assert [_side(gpu, name) for name in ("float32", "float64")] == [512, 400]
    assert _side(Context("cpu"), "float32") == 128
    assert _side(Context("reference"), "float32") == 8


@pytest.mark.opencl
def test_processors_with_a_driver_are_no_gpus() -> None:
    context = Context("opencl")
    assert count_gpus(context) == int(not getattr(context.device, "is_cpu"))
    assert _side(context, "float32") == (512 if count_gpus(context) else 128)


@pytest.mark.parametrize("device", GPUS)
def test_lattice(device: str) -> None:
    given = options(device, LbmBench, cells="16", iterations=4, schedule=Schedule(block=64), precision="float32")
    record = LbmBench().run(given, silent)
    assert record.metrics["mlups"] > 0
    assert (record.metrics["steps"], record.metrics["rounds"], record.metrics["layout"]) == (4, 2, "soa")
    assert all(row.calls and row.seconds > 0 for row in record.loops)
    assert record.metrics["block"] == 64
    assert {row.block for row in record.loops} == {64}


# ------------------------------------------------------------------------------------------ command line


def test_options_of_the_command_line(monkeypatch: pytest.MonkeyPatch, fluxloom: Call, tmp_path: Path) -> None:
    given: list[AirfoilOptions] = []
    path = tmp_path / "b.json"

    def run(self: AirfoilBench, chosen: AirfoilOptions, tell: Callable[[str], None]) -> Any:
        given.append(chosen)
        record = real(self, chosen, tell)
        record.metrics.update(auto={"res_calc": {"auto_us": 2.0}}, strategies=[{"strategy": "gather", "fused": True}])
        return record

    real = AirfoilBench.run
    monkeypatch.setattr(AirfoilBench, "run", run)
    words = ("--cells", TINY, "-n", 2, "--rounds", 1, "--threads", 1, "--unfused", "--layout", "soa", "--strategy",
             "gather", "--block", 64, "--schedule", "two_pass, lanes=4", "--json", path)  # fmt: skip
    done = fluxloom("bench", "airfoil", *words)
    assert done.code == 0, done.text
    assert given[0].schedule == Schedule(strategy="gather", block=64, lanes=4)
    assert (given[0].fused, given[0].layout, given[0].chosen_layout) == (False, "soa", SoA())
    assert not given[0].exhaustive
    lines = [line.split() for line in done.out.splitlines()]
    assert ["res_calc", "2"] in lines
    assert ["gather", "yes"] in lines
    assert json.loads(path.read_text())["metrics"]["auto"] == {"res_calc": {"auto_us": 2.0}}


def test_refused_options(fluxloom: Call) -> None:
    assert "the benchmark lbm has no option --exhaustive" in fluxloom("bench", "lbm", "--exhaustive").err
    assert "the benchmark spmv has no option --layout" in fluxloom("bench", "spmv", "--layout", "soa").err
    assert "the benchmark overhead has no option --strategies" in fluxloom("bench", "overhead", "--strategies").err
    assert "--layout 'sao'; did you mean 'soa'?" in fluxloom("bench", "airfoil", "--layout", "sao").err
    assert "did you mean 'gather'?" in fluxloom("bench", "airfoil", "--strategy", "gathr").err
