"""Tuning: data put back, winners valid, recorded, found again, ignored when asked. No time is asserted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Read, Write
from fluxloom.core.errors import FluxloomError, PlanError
from fluxloom.device.base import Program
from fluxloom.dsl.plan.tuning import TuningFile
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.tune.runs import Runs, depends_on_itself
from fluxloom.dsl.tune.search import tune

N = 3000


@fl.kernel
def flux(u: Read, r: Inc):
    f = u[1] - u[0]
    r[0] += f
    r[1] -= f


@fl.kernel
def advance(u: RW, r: RW, total: Inc):
    u[0] += 0.1 * r[0]
    total[0] += r[0] * r[0]
    r[0] = 0.0


@fl.kernel
def double(u: Read, v: Write):
    v[0] = 2.0 * u[0]


@fl.kernel
def row_sum(u: Read, v: Write):
    s = 0.0
    for j in range(len(u)):
        s += u[j]
    v[0] = s


class Line:
    """Cells in a row, and the faces between them."""

    def __init__(self, schedule: fl.Schedule | None = None, **options: object) -> None:
        self.ctx = fl.Context("cpu", threads=2, schedule=schedule, **options)  # type: ignore[arg-type]
        self.cells, self.faces = self.ctx.set(N, "cells"), self.ctx.set(N - 1, "faces")
        left = np.arange(N - 1)
        self.f2c = self.ctx.map(self.faces, self.cells, np.stack([left, left + 1], axis=1), "f2c")
        self.u = self.ctx.dat(self.cells, np.sin(np.arange(N)), "u")
        self.r = self.ctx.dat(self.cells, np.full(N, 0.25), "r")
        self.total = self.ctx.scalar(3.0, "total")
        self.flux = fl.Loop(flux, self.faces, self.u[self.f2c], self.r[self.f2c])
        self.advance = fl.Loop(advance, self.cells, self.u, self.r, self.total)

    def values(self) -> list[bytes]:
        return [self.u.read().tobytes(), self.r.read().tobytes(), np.asarray(self.total.value).tobytes()]


class Clock:
    """Time that passes as a rule says, instead of being measured: loops do nothing but cost."""

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


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tuning.json"
    monkeypatch.setenv("FLUXLOOM_TUNING", str(path))
    return path


QUICK = {"rounds": 1, "budget": 6}


@pytest.mark.parametrize("method", ["sweep", "screen", "hill_climb", "tabu"])
def test_data_are_as_before(method: str) -> None:
    line = Line()
    before = line.values()
    versions = [line.u.version, line.r.version, line.total.version]
    report = tune([line.flux, line.advance], method=method, **QUICK)  # type: ignore[arg-type]
    assert line.values() == before
    after = [line.u.version, line.r.version, line.total.version]
    assert all(new > old for new, old in zip(after[1:], versions[1:], strict=True))
    assert [r.name for r in report.results] == ["flux", "advance"]
    for loop in (line.flux, line.advance):
        assert loop.schedule == report[loop.name].best
        loop()
    other = Line(tuning=False)
    other.flux()
    other.advance()
    # the winners add in orders of their own, and some of the sums are nearly nothing
    np.testing.assert_allclose(line.u.read(), other.u.read(), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(line.total.value, other.total.value, rtol=1e-12)


def test_a_plan_of_a_trial_is_not_kept() -> None:
    line = Line()
    line.flux()
    plans, blocks = line.ctx.plans.known(), len(line.flux._blocks)
    tune(line.flux, strategies=["two_pass", "element_colour"], rounds=1)
    assert {key[0] for key in line.ctx.plans.known() - plans} <= {line.flux.strategy}
    assert len(line.flux._blocks) == blocks


def costs(schedule: fl.Schedule) -> float:
    if schedule.lanes == 1:
        raise PlanError("no scalar code today")
    strategies = {"two_pass": 1.0, "gather": 2.0, "block_permute": 3.0}
    return strategies.get(schedule.strategy or "", 5.0) * (1.0 if schedule.lanes == 8 else 1.5)


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize("method", ["sweep", "screen", "hill_climb", "tabu"])
def test_the_cheapest_wins_and_is_recorded(monkeypatch: pytest.MonkeyPatch, file: Path, method: str) -> None:
    line = Line()
    before = line.flux.schedule
    report = tune(line.flux, method=method, rounds=3, clock=Clock(monkeypatch, costs))
    result = report["flux"]
    assert (result.best.strategy, result.best.lanes) == ("two_pass", 8)
    assert line.flux.schedule == result.best
    assert result.seconds == pytest.approx(1.0)
    assert (result.before, result.before_seconds) == (before, pytest.approx(costs(before)))
    assert result.gain == pytest.approx(costs(before))
    assert result.skipped > 0 or method == "hill_climb"
    assert all(row.seconds == pytest.approx(costs(row.schedule)) for row in result.rows)
    assert all(row.percent == pytest.approx(100 / costs(row.schedule)) for row in result.rows)
    [row] = TuningFile().show()
    assert (row.key, row.loop, row.seconds) == (line.flux.tuning_key, "flux", pytest.approx(1.0))
    assert row.schedule == replace(result.best, threads=0)
    assert report.path == file
    assert Line().flux.schedule == result.best


def test_what_is_in_force_stays_unless_another_is_clearly_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line()
    before = line.flux.schedule
    clock = Clock(monkeypatch, lambda s: 1.0 if s == before else 0.99)
    assert tune(line.flux, clock=clock)["flux"].best == before
    clock = Clock(monkeypatch, lambda s: 1.0 if s == before else 0.97)
    assert tune(line.flux, clock=clock)["flux"].best != before


def test_a_new_context_finds_the_winner() -> None:
    line = Line()
    line.ctx.tuning = False
    tune(line.flux, strategies=["element_colour"], rounds=1)
    assert line.flux.strategy == "element_colour"
    again = Line()
    assert again.flux.strategy == "element_colour"
    again.flux()
    assert Line(tuning=False).flux.strategy != "element_colour"


def test_switched_off(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    tune(Line().flux, strategies=["element_colour"], rounds=1)
    monkeypatch.setenv("FLUXLOOM_TUNING", "off")
    assert Line().flux.strategy != "element_colour"
    report = tune(Line().flux, strategies=["two_pass"], rounds=1)
    assert report.path is None
    assert "not recorded" in str(report)
    monkeypatch.setenv("FLUXLOOM_TUNING", str(file))
    assert Line().flux.strategy == "element_colour"


def test_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    other = tmp_path / "deep" / "mine.json"
    report = tune(Line().flux, strategies=["element_colour"], rounds=1, path=other)
    assert report.path == other
    assert not file.exists()
    assert tune(Line().flux, rounds=1, record=False, budget=1).path is None
    assert not file.exists()
    monkeypatch.setenv("FLUXLOOM_TUNING", str(other))
    assert Line().flux.strategy == "element_colour"


@pytest.mark.parametrize(
    ("grade", "possible"),
    [
        pytest.param(
            "plan",
            {"serial", "block_colour", "element_colour", "block_permute", "gather", "two_pass"},
            marks=pytest.mark.long,
        ),
        ("global", {"serial", "gather", "two_pass"}),
    ],
)
def test_determinism_is_kept(grade: str, possible: set[str]) -> None:
    line = Line(fl.Schedule(deterministic=grade))
    report = tune(line.flux, rounds=1)
    assert {row.schedule.strategy for row in report.rows} == possible
    assert line.flux.schedule.deterministic == grade
    assert [row.key for row in TuningFile().show()] == [f"{line.flux.tuning_key}:{grade}"]
    assert (
        Line(fl.Schedule(deterministic=grade)).flux.schedule
        == Line(fl.Schedule(deterministic=grade), tuning=False).flux.schedule
    )


def test_atomic_only_where_nothing_forbids_it() -> None:
    report = tune(Line().flux, rounds=1)
    assert "atomic" in {row.schedule.strategy for row in report.rows}


def test_wrong_requests() -> None:
    line = Line()
    with pytest.raises(PlanError, match="unknown method 'tabo'; did you mean 'tabu'"):
        tune(line.flux, method="tabo")
    with pytest.raises(PlanError, match="unknown strategy 'gathr'"):
        tune(line.flux, strategies=["gathr"])
    with pytest.raises(PlanError, match="no loop to tune"):
        tune([])
    fixed = Line(fl.Schedule(deterministic="plan"))
    with pytest.raises(PlanError, match="not repeatable"):
        tune(fixed.flux, strategies=["atomic"])
    ctx = fl.Context("reference")
    cells = ctx.set(3, "cells")
    loop = fl.Loop(double, cells, ctx.dat(cells, np.ones(3)), ctx.dat(cells, np.ones(3)))
    with pytest.raises(PlanError, match="there is nothing to tune"):
        tune(loop)


def test_a_failure_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line()
    before, schedule = line.values(), line.flux.schedule

    def broken() -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tune(line.flux, clock=broken)
    assert line.values() == before
    assert line.flux.schedule == schedule
    line.flux()


def test_direct_and_ragged_loops() -> None:
    line = Line()
    v = line.ctx.dat(line.cells, np.zeros(N), "v")
    direct = fl.Loop(double, line.cells, line.u, v)
    offsets = np.minimum(np.arange(N + 1) * 2, 2 * N - 2)
    rows = line.ctx.ragged(line.cells, line.cells, offsets, np.arange(2 * N - 2) % N)
    ragged = fl.Loop(row_sum, line.cells, line.u[rows], v)
    report = tune([direct, ragged], rounds=1)
    assert {(r.schedule.lanes, r.schedule.stream) for r in report["double"].rows} >= {
        (lanes, stream) for lanes in (1, 4, 8) for stream in (True, False)
    }
    assert len({r.schedule.lanes for r in report["row_sum"].rows}) == 1
    assert not v.read().any()
    direct()
    np.testing.assert_array_equal(v.read(), 2 * line.u.read())


def test_loops_that_differ_in_their_dats_only_share_a_result() -> None:
    line = Line()
    r2 = line.ctx.dat(line.cells, np.zeros(N), "r2")
    twin = fl.Loop(flux, line.faces, line.u[line.f2c], r2[line.f2c])
    report = tune([line.flux, twin, line.flux], strategies=["two_pass"], rounds=1)
    assert len(report.results) == 1
    assert (line.flux.strategy, twin.strategy) == ("two_pass", "two_pass")


@fl.kernel
def scaled(u: Read, r: Inc, *, factor: Const[float]):
    f = factor * (u[1] - u[0])
    r[0] += f
    r[1] -= f


@pytest.mark.usefixtures("optimised")
def test_loops_that_differ_in_constants_race_with_what_was_best(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line()
    monkeypatch.setattr(Runs, "prepare", lambda runs, schedules: list(schedules))
    clock = Clock(monkeypatch, costs)
    stages = [fl.Loop(scaled, line.faces, line.u[line.f2c], line.r[line.f2c], factor=0.5 * k) for k in (1, 2)]
    lines: list[str] = []
    report = tune(stages, method="screen", rounds=1, clock=clock, tell=lines.append)
    first, *others = report.results
    final = {row.schedule for row in first.rows if row.final}
    assert len(first.rows) > len(final) > 1
    for result, loop in zip(others, stages[1:], strict=True):
        assert {row.schedule for row in result.rows} == final
        assert all(row.final for row in result.rows)
        assert loop.schedule == result.best
    assert lines[:2] == [f"tuning {k} of 2: scaled" for k in (1, 2)]
    assert lines[2].startswith("tuned 2 in ")
    assert report.total > 0


def test_a_screening_compiles_side_by_side_what_it_will_build(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line()
    device, names = line.ctx.device, list[str]()
    plain = device.compile

    def compiled(text: str, symbols: Sequence[str], name: str, *, contract: bool = True) -> Program:
        names.append(threading.current_thread().name)
        return plain(text, symbols, name, contract=contract)

    monkeypatch.setattr(device, "compile", compiled)
    tune(line.flux, method="screen", strategies=["gather"], rounds=1, record=False)
    assert sum("ThreadPool" in name for name in names) > 1
    assert "MainThread" in names


def test_what_a_loop_changes_without_reading_is_put_back_at_the_end() -> None:
    line = Line()
    v = line.ctx.dat(line.cells, np.full(N, 7.0), "v")
    loop = fl.Loop(double, line.cells, line.u, v)
    assert depends_on_itself(loop) == []
    assert depends_on_itself(line.advance) == [line.u, line.r, line.total]
    tune(loop, rounds=1, record=False, budget=3)
    assert (v.read() == 7.0).all()


def test_report() -> None:
    report = tune(Line().flux, rounds=1, budget=5)
    result = report["flux"]
    assert sum(row.note == "before" for row in result.rows) == 1
    assert max(row.percent for row in result.rows) == pytest.approx(100.0)
    assert 2 <= len(result.rows) <= 6
    assert result.gain > 0
    text = str(report)
    assert text.startswith("flux: ")
    assert "recorded in" in text
    with pytest.raises(FluxloomError, match="'flx' was not tuned"):
        report["flx"]


# ------------------------------------------------------------------------------------------- chains


def chain_of(line: Line) -> Chain:
    return Chain([Reset(line.total), line.flux, line.advance], transient=[line.r], name="step")


@pytest.mark.long
def test_chain() -> None:
    line, plain = Line(), Line(tuning=False)
    chain, other = chain_of(line), chain_of(plain)
    for _ in range(3):
        chain()
        other()
    before = line.values()
    buffers = [line.u.buffer, line.r.buffer]
    report = tune(chain, rounds=1, budget=4)
    assert line.values() == before
    assert [line.u.buffer, line.r.buffer] == buffers
    assert [r.name for r in report.results] == ["flux", "advance", "step"]
    assert {row.note for row in report["step"].rows} == {"fused", "each loop's own schedule"}
    for _ in range(4):
        chain()
        other()
    np.testing.assert_allclose(line.u.read(), plain.u.read(), rtol=1e-12)
    np.testing.assert_allclose(line.total.value, plain.total.value, rtol=1e-10)


def test_tile_of_a_fused_chain_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import fluxloom.dsl.tune.search as module

    def fused_wins(final: dict[fl.Schedule, float], before: fl.Schedule, *, keep: bool = True) -> fl.Schedule:
        tiled = [s for s in final if s.strategy == "gather" and s.block > 1]
        return max(tiled or [before], key=lambda s: s.block)

    monkeypatch.setattr(module, "choose_winner", fused_wins)
    chain = chain_of(Line())
    report = tune(chain, rounds=1)
    tile = report.best["step"].block
    assert chain.loops[0].schedule.block == tile
    again = chain_of(Line())
    assert again.loops[0].schedule.block == tile
    assert again.build() is not None
    assert again.fused


def test_unfused_chain_tunes_its_loops() -> None:
    line = Line()
    chain = Chain([line.flux, line.advance], fuse=False)
    report = tune(chain, strategies=["two_pass"], rounds=1)
    assert [r.name for r in report.results] == ["flux", "advance"]
    chain()
    other = Line(tuning=False)
    other.flux()
    other.advance()
    np.testing.assert_allclose(line.u.read(), other.u.read(), rtol=1e-14, atol=1e-14)


def test_a_live_view_forbids_to_tune_the_fused_form() -> None:
    line = Line()
    chain = chain_of(line)
    view = line.u.data
    report = tune(chain, **QUICK)  # type: ignore[arg-type]
    assert report.notes == ("step: the fused form was not tuned, because a NumPy view of its data is alive",)
    assert view[1] == np.sin(1)


# ------------------------------------------------------------------------------------- the file itself


def test_show_merge_ship_clear(tmp_path: Path, file: Path) -> None:
    mine, theirs = TuningFile(), TuningFile(tmp_path / "theirs.json")
    mine.put("k1", "flux", fl.Schedule(strategy="gather", block=4096), 1e-3)
    theirs.put("k1", "flux", fl.Schedule(strategy="serial"), 2e-3)
    theirs.put("k2", "advance", fl.Schedule(lanes=8), 3e-3)
    assert mine.merge(theirs) == 1
    assert [(r.loop, r.key, r.schedule.strategy) for r in mine.show()] == [
        ("advance", "k2", None),
        ("flux", "k1", "gather"),
    ]
    assert mine.merge(theirs.path, replace=True) == 2
    assert mine.get("k1") == fl.Schedule(strategy="serial")
    shipped = tmp_path / "out" / "shipped.json"
    assert mine.ship(shipped) == 2
    assert TuningFile(shipped).entries() == mine.entries()
    mine.clear("flux")
    assert [r.loop for r in mine.show()] == ["advance"]
    mine.clear()
    assert mine.show() == []
    assert not file.exists()
    mine.clear()


def test_merge_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(FluxloomError, match="there is no tuning file"):
        TuningFile().merge(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "cannot be read"),
        ("[1]", "does not hold one record a key"),
        ('{"k": {"schedule": {"warp": 32}}}', "unknown choices warp"),
        ('{"k": {}}', "no schedule"),
    ],
)
def test_broken_file(file: Path, text: str, expected: str) -> None:
    file.write_text(text)
    with pytest.raises(FluxloomError, match=expected):
        TuningFile().show()


def test_records_of_a_gather_with_stage_are_left_out(tmp_path: Path, file: Path) -> None:
    """Files of versions that had it are read, and the loop is measured anew."""
    old, new = TuningFile(), TuningFile(tmp_path / "new.json")
    old.put("k1", "flux", fl.Schedule(strategy="gather", block=64, stage=True), 1e-3)
    old.put("k2", "advance", fl.Schedule(strategy="block_colour", stage=True), 2e-3)
    with pytest.warns(UserWarning, match="'flux' was tuned to a gather with stage=True, which is gone; .* tune"):
        assert old.get("k1") is None
    with pytest.warns(UserWarning, match="left out"):
        assert [r.loop for r in old.show()] == ["advance"]
    with pytest.warns(UserWarning, match="left out"):
        assert new.merge(old) == 1
    assert list(new.entries()) == ["k2"]


def test_writers_do_not_lose_records(file: Path) -> None:
    def put(k: int) -> None:
        TuningFile().put(f"k{k}", "loop", fl.Schedule(lanes=4), 1e-3)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(40)))
    assert len(json.loads(file.read_text())) == 40


@pytest.mark.parametrize("entry", [
    {"schedule": {"lanes": 0.5}}, {"schedule": {"block": -1}}, {"schedule": {"block": "x"}},
    {"schedule": {}, "seconds": "quick"}, {"schedule": {}, "seconds": float("nan")},
])  # fmt: skip
def test_a_damaged_record_names_the_file(tmp_path: Path, entry: dict[str, object]) -> None:
    (path := tmp_path / "tuning.json").write_text(json.dumps({"key": entry}))
    with pytest.raises(fl.FluxloomError, match=r"tuning\.json cannot be read .*delete it"):
        TuningFile(path).show()
