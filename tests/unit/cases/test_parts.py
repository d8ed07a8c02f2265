"""The parts of the application layer that know no solver: files, marching, schedules, pictures, bandwidth."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.airfoil import mesh_sizes
from fluxloom.cases.files.case import parse_schedule, schedule_text
from fluxloom.cli.runs.summary import ExchangeRow, LoopRow, difference, exchange_rows, loop_rows, overall, rows_of_ranks
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, FluxloomError, PlanError
from fluxloom.core.status import Goal
from fluxloom.device.bandwidth import BandwidthMeter, available_memory, last_level_cache, meter_for
from fluxloom.device.reference import ReferenceDevice
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.ranks.halo_loops import ExchangeTime
from fluxloom.dsl.run.report import LoopReport
from fluxloom.machine.system import command_says, commit, fluxloom_version, processor, python_says
from fluxloom.mesh import airfoil_mesh, box2d, box3d, read_fields
from fluxloom.run import failure
from fluxloom.run.flow import Picture, Until
from fluxloom.run.flow_run import find_lost, gathered
from fluxloom.run.march import march
from fluxloom.run.pictures import draw_field, draw_residual
from fluxloom.run.results.files import (
    ResidualLog,
    atomic,
    fields_name,
    prepare_file,
    read_residuals,
    write_fields,
    write_json,
)
from fluxloom.run.results.results import ResultFolder
from fluxloom_lab.verify.base import Check

PNG = b"\x89PNG"


# ---------------------------------------------------------------------------------------------- files


def test_directory_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CaseError, match="a file of that name in the way"):
        ResultFolder(tmp_path / "file").open("run")
    with pytest.raises(CaseError, match="a file of that name in the way"):
        ResultFolder(tmp_path / "file" / "below").open("run")
    with pytest.raises(CaseError, match=r"will write about \d+ MiB but only \d+ MiB are free"):
        ResultFolder(tmp_path / "big").open("run", 1 << 60)


def test_directory_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing stays of the trial, which exists although it could not be written."""
    def full(self: Path, data: bytes) -> None:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CaseError, match="the disk is full; free some space"):
        ResultFolder(tmp_path).open("run")
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    prepare_file(tmp_path / "new" / "a.json")
    prepare_file(tmp_path / "file")
    for path, text in ((tmp_path / "file" / "a.json", "cannot be made: "), (tmp_path / "new", "it is a directory")):
        with pytest.raises(CaseError, match=text) as caught:
            prepare_file(path)
        assert str(path) in str(caught.value)
    assert (tmp_path / "file").read_text() == "kept"
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_directory_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(CaseError, match="cannot be written"):
            ResultFolder(tmp_path / "new").open("run")
    finally:
        tmp_path.chmod(0o700)


def test_atomic_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"x": float("nan"), "y": np.float64(2.0), "z": (1, None, Path("p"))})
    assert json.loads(path.read_text()) == {"x": None, "y": 2.0, "z": [1, None, "p"]}

    def fails_half_way() -> None:
        with atomic(path) as temporary:
            temporary.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(FluxloomError, match="disk is full"):
        fails_half_way()
    assert json.loads(path.read_text())["y"] == 2.0
    assert list(tmp_path.iterdir()) == [path]

    def names_its_file() -> None:
        with atomic(path) as temporary:
            raise FluxloomError(f"{temporary}: no")

    with pytest.raises(FluxloomError, match=f"^{path}: no$"):
        names_its_file()


def test_residual_log(tmp_path: Path) -> None:
    path = tmp_path / "residual.csv"
    log = ResidualLog(path)
    log.add(1, 0.5, 0.1)
    log.add(2, 0.25, 0.2)
    iterations, values = read_residuals(path)  # before it is closed
    log.close()
    assert iterations.tolist() == [1, 2]
    assert values.tolist() == [0.5, 0.25]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(CaseError, match="not the residual of a run"):
        read_residuals(path)


def test_no_half_line_stays_when_the_disk_is_full(tmp_path: Path) -> None:
    """A file that may not grow is as good as a full disk."""
    path, lost = tmp_path / "residual.csv", dict[str, str]()
    log = ResidualLog()
    log.begin(path, lost.__setitem__)
    log.add(1, 0.5, 0.1)
    size = path.stat().st_size
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 4, before[1]))
        log.add(2, 0.25, 0.2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert lost == {"residual.csv": "File too large"}
    log.add(3, 0.125, 0.3)
    assert not log.close()
    assert path.stat().st_size == size
    assert read_residuals(path)[0].tolist() == [1]
    assert log.values == [0.5, 0.25, 0.125]


def test_vtk(tmp_path: Path) -> None:
    mesh = box2d(3, 2)
    write_fields(tmp_path / "final.vtu", mesh, {"p": np.arange(6.0), "u": np.ones((6, 2))})
    found = read_fields(tmp_path / "final.vtu")
    assert found.cell_data["p"].tolist() == list(range(6))
    assert found.cell_data["u"].shape == (6, 3)
    assert (fields_name("none"), fields_name("vtu")) == ("", "final.vtu")


# -------------------------------------------------------------------------------------------- marching


def test_march(fake_runner: Callable[..., Any]) -> None:
    heard: list[int] = []
    log = ResidualLog(None)
    end = march(fake_runner(), 5, log, SimpleNamespace(advanced=lambda n, r, s: heard.append(n)))
    assert (end.iterations, end.residual, end.status) == (5, 0.5**5, "end reached")
    assert end.outcome.goal == Goal("run.iterations", "steps", 5, 5, True)
    assert heard == log.iterations == [1, 2, 3, 4, 5]


def test_lost_solution(fake_runner: Callable[..., Any]) -> None:
    log = ResidualLog(None)
    end = march(fake_runner(lost_at=3), 5, log)
    assert (end.iterations, end.status, end.outcome.exit_code) == (3, "diverged", 1)
    assert end.outcome.reason == (
        "step 3: the residual is nan; the first cell without a finite pressure is 7 at (0.875, 0.5) "
        "(2 of 12 cells); lower flow.cfl"
    )
    assert len(log.values) == 3


@pytest.mark.parametrize(
    ("goals", "steps", "asked", "status", "ended_by"),
    [
        ([("time.steady", "residual", 1e-1)], 5, False, "converged", "time.steady"),
        ([("time.steady", "residual", 1e-9)], 5, False, "not converged", "run.iterations"),
        ([("time.steady", "residual", 1e-9)], 5, True, "end reached", "run.iterations"),
        ([("time.end", "time", 3.0)], 5, False, "end reached", "time.end"),
        ([("time.end", "time", 9.0)], 5, False, "not converged", "run.iterations"),
        ([("time.end", "time", 9.0)], 5, True, "end reached", "run.iterations"),
        ([("time.end", "time", 3.0), ("time.steady", "residual", 1e-9)], 5, False, "not converged", "time.end"),
        ([("time.end", "time", 3.0), ("time.steady", "residual", 1e-9)], 5, True, "not converged", "time.end"),
        ([("time.end", "time", 9.0), ("time.steady", "residual", 0.3)], 5, False, "converged", "time.steady"),
    ],
)
def test_how_a_run_ends(
    fake_runner: Callable[..., Any], goals: list[tuple[str, str, float]], steps: int, asked: bool, status: str,
    ended_by: str,
) -> None:  # fmt: skip
    """A target comes first; a time is an end, but a limit beside a target; steps are what is asked for, or a limit."""

    run = fake_runner()

    def aimed(until: Until) -> list[Goal]:
        reached = {"time": float(run.flow.step), "residual": 0.5**run.flow.step}
        return [
            Goal(key, name, wanted, reached[name], (reached[name] >= wanted) == (name == "time"))
            for key, name, wanted in goals
        ]

    run.flow.goals = aimed
    end = march(run, steps, ResidualLog(), asked=asked)
    assert (end.status, end.outcome.goal and end.outcome.goal.key) == (status, ended_by)
    assert end.outcome.exit_code == (1 if status == "not converged" else 0)
    if asked and status == "end reached":
        assert "target not met: " in end.outcome.reason


def test_interruption(fake_runner: Callable[..., Any]) -> None:
    log = ResidualLog(None)
    end = march(fake_runner(stop_at=4), 5, log)
    assert (end.iterations, end.status, end.residual) == (4, "interrupted", 0.5**4)
    assert (end.outcome.exit_code, end.outcome.reason) == (130, "SIGINT after 4 steps")
    assert len(log.values) == 4
    assert march(fake_runner(stop_at=5), 5, ResidualLog(None)).status == "end reached"


def test_an_iteration_that_does_not_end(fake_runner: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """One signal is enough: an iteration gets some time to finish, and no more."""
    monkeypatch.setattr(failure, "_GRACE", 0.2)
    monkeypatch.setattr(failure, "_SAME_SIGNAL", 0.1)
    runner = fake_runner()

    def advance() -> None:
        signal.raise_signal(signal.SIGTERM)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.setattr(runner, "advance", advance)
    start = time.monotonic()
    with pytest.raises(SystemExit) as ended:
        march(runner, 5, ResidualLog(None))
    assert ended.value.code == 143
    assert time.monotonic() - start < 30


def test_second_interruption(fake_runner: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    log = ResidualLog(None)
    before = signal.getsignal(signal.SIGINT)
    assert march(fake_runner(stop_at=4, signals=2), 5, log).status == "interrupted"  # what a launcher repeats
    monkeypatch.setattr(failure, "_SAME_SIGNAL", -1.0)
    with pytest.raises(KeyboardInterrupt):
        march(fake_runner(stop_at=4, signals=2), 5, log)
    assert signal.getsignal(signal.SIGINT) is before


def test_lost_cells() -> None:
    good = {"a": np.ones(3)}
    assert find_lost(SelfComm(), None, good) is None
    assert find_lost(SelfComm(), None, good | {"v": np.array([[1, 1], [1, np.inf], [np.nan, 1]])}) == ("v", 1, 2)


def shuffled(rank: int) -> Part:
    """Return the part of one of three ranks that own every third of eleven cells, one of them in another order."""
    numbers = np.arange(rank, 11, 3, dtype=np.int64)[:: -1 if rank == 1 else 1]
    return Part(0, len(numbers), len(numbers), len(numbers), len(numbers) + 1, np.append(numbers, 0), 11)


def test_lost_cells_of_several_ranks() -> None:
    """Every rank names the first cell by its global number; a halo is not looked at."""
    def on_rank(comm: Comm) -> tuple[object, object]:
        part = shuffled(comm.rank)
        values = np.where(part.numbers[: part.owned] > 5, np.nan, 1.0) if comm.rank else np.ones(part.owned)
        return find_lost(comm, part, {"p": np.ones((part.owned, 2)), "q": values}), find_lost(comm, part, {})

    assert run_threads(3, on_rank) == [(("q", 7, 3), None)] * 3


def test_values_are_gathered_in_global_order() -> None:
    def on_rank(comm: Comm) -> dict[str, np.ndarray]:
        part = shuffled(comm.rank)
        numbers = part.numbers[: part.owned]
        return gathered(comm, part, {"a": 2.0 * numbers, "v": np.stack([numbers, -numbers], axis=1)})

    first, *others = run_threads(3, on_rank)
    assert first["a"].tolist() == (2.0 * np.arange(11)).tolist()
    assert first["v"].tolist() == [[k, -k] for k in range(11)]
    assert others == [{}, {}]


def test_loops_of_several_ranks_are_one_row() -> None:
    """The time is that of the slowest, bytes are those of all; loops that a rank does not have do not disturb."""
    def on_rank(comm: Comm) -> list[LoopRow]:
        mine = [LoopReport("a", 4, 1.0 + comm.rank, 10**9 * (1 + comm.rank), "gather", 0, 4, None, 64, 1.0, "aos")]
        if comm.rank == 0:
            mine.append(LoopReport("b", 1, 0.0, 8, "direct", 0, 1, None, 0))
        return rows_of_ranks(comm, mine, 12.0)

    rows = run_threads(2, on_rank)
    assert rows[0] == rows[1]
    a, b = rows[0]
    assert (a.seconds, a.mean_seconds, a.imbalance) == (2.0, 1.5, pytest.approx(1 / 3))
    assert (a.useful_gbs, a.percent_of_copy) == (pytest.approx(6.0), pytest.approx(50.0))
    assert a.cells()[-2:] == ["1.500", "33"]
    assert a.record()["mean_seconds"] == 1.5
    assert (b.name, b.imbalance, b.cells()[-2:]) == ("b", None, ["-", "-"])


def test_exchanges_of_several_ranks_are_one_row() -> None:
    def on_rank(comm: Comm) -> list[ExchangeRow]:
        return exchange_rows(comm, [ExchangeTime("q+adt", 10, 0.1 * (1 + comm.rank), 400, "host", 1 + comm.rank)])

    (row,) = run_threads(2, on_rank)[0]
    assert (row.calls, row.most, row.mean, row.nbytes, row.neighbours) == (10, 0.2, pytest.approx(0.15), 800, 2)
    assert row.cells() == ["q + adt", "10", "0.200", "0.150", "20.0000", "0.8", "2", "host"]


def test_sizes_of_the_airfoil_mesh() -> None:
    assert mesh_sizes(400, 600) == {
        "nodes": 721_801, "cells": 720_000, "edges": 1_438_600, "boundary_edges": 2_800,
    }  # fmt: skip
    mesh = airfoil_mesh(8, 12)
    found = (len(mesh.points), len(mesh.cell_nodes), len(mesh.edge_nodes), len(mesh.boundary_nodes))
    assert tuple(mesh_sizes(8, 12).values()) == found


# ------------------------------------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("auto", Schedule()),
        ("gather", Schedule(strategy="gather")),
        ("block_colour, block=512, lanes=8", Schedule(strategy="block_colour", block=512, lanes=8)),
        ("deterministic=plan", Schedule(deterministic="plan")),
        ("auto, stream=true, threads=2", Schedule(stream=True, threads=2)),
    ],
)
def test_schedules(text: str, schedule: Schedule) -> None:
    assert parse_schedule(text) == schedule
    assert parse_schedule(schedule_text(schedule)) == schedule


@pytest.mark.parametrize("text", ["", "gather,", "gather, serial", "atomic, deterministic=plan", "lanes=3"])
def test_wrong_schedules(text: str) -> None:
    with pytest.raises((CaseError, PlanError)):
        parse_schedule(text)


# -------------------------------------------------------------------------------------------- pictures


def test_picture(tmp_path: Path) -> None:
    mesh = box2d(20, 10, (2.0, 1.0))
    values = mesh.points[mesh.cells["quad"]].mean(axis=1)[:, 0]
    draw_field(tmp_path / "x.png", mesh, values, Picture("x", "title", "label", centre=1.0))
    draw_field(tmp_path / "y.png", mesh, np.ones(200), Picture("y", "constant", "label", (0.5, 1.0, 0.0, 1.0)))
    draw_residual(tmp_path / "r.png", np.arange(1, 9), 0.5 ** np.arange(8))
    draw_residual(tmp_path / "s.png", np.arange(1, 3), np.array([np.nan, 0.0]))
    for name in "xyrs":
        assert (tmp_path / f"{name}.png").read_bytes().startswith(PNG)


def test_picture_errors(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="no cells lie in the window"):
        draw_field(tmp_path / "x.png", box2d(2, 2), np.ones(4), Picture("x", "", "", (5, 6, 5, 6)))
    with pytest.raises(CaseError, match="three dimensions"):
        draw_field(tmp_path / "x.png", box3d(1, 1, 1), np.ones(1), Picture("x", "", ""))
    with pytest.raises(CaseError, match="no finite values"):
        draw_field(tmp_path / "x.png", box2d(2, 2), np.full(4, np.nan), Picture("x", "", ""))
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------- numbers of loops, checks


def test_loop_rows() -> None:
    report = LoopReport("flux", 10, 0.5, 10**9, "gather", 0, 4, True, 64)
    row = loop_rows([report], 40.0)[0]
    assert (row.useful_gbs, row.percent_of_copy, row.milliseconds) == (20.0, 50.0, 50.0)
    keys = {"name", "calls", "seconds", "useful_gbs", "percent_of_copy", "strategy", "block", "layout"}
    assert set(row.record()) == keys
    assert row.cells()[7:9] == ["-", "-"]
    assert replace(row, layout="soa").cells(simd=False)[7:9] == ["64", "soa"]
    assert overall([report]) == (1e10, 0.5)
    idle = loop_rows([LoopReport("idle", 0, 0.0, 1, "direct", 0, 1, None, 0)])[0]
    assert idle.useful_gbs is None
    assert idle.cells()[2:4] == ["-", "-"]
    assert idle.cells()[-3] == "1?"
    assert idle.cells(simd=False)[-1] == "-"
    change = difference([LoopReport("flux", 15, 0.75, 10**9, "gather", 0, 4, True, 64)], [report])[0]
    assert (change.calls, change.seconds) == (5, 0.25)


def test_checks() -> None:
    assert Check("a", 1.0 + 1e-8, 1.0, 1e-7, "").ok
    assert not Check("a", 1.0 + 1e-6, 1.0, 1e-7, "").ok
    assert Check("a", 1e-12, 0.0, 1e-11, "").ok
    assert not Check("a", float("nan"), 0.0, 1.0, "").ok


# --------------------------------------------------------------------------------------------- machine


def test_bandwidth() -> None:
    found = BandwidthMeter(threads=1, nbytes=4 << 20).measure(2)
    assert found.copy_gbs >= found.copy_plain_gbs > 0.1
    assert found.triad_gbs > 0.1
    assert (found.threads, found.bytes) == (1, 4 << 20)


def test_meter_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom.device.bandwidth._default_size", lambda: 4 << 20)
    host = meter_for(ReferenceDevice(), 1)
    assert isinstance(host, BandwidthMeter)
    assert host.threads == 1

    class WithMemory(ReferenceDevice):
        def meter(self) -> object:
            return own

    own = object()
    assert meter_for(WithMemory()) is own


def test_commands_say() -> None:
    assert python_says(["-c", "print('  text ')"]) == "text"
    assert python_says(["-c", "import os; print(os.environ['A_NAME'])"], environment={"A_NAME": "value"}) == "value"
    assert python_says(["-c", "raise SystemExit(1)"]) == ""
    assert python_says(["-c", "import time; time.sleep(60)"], seconds=0.1) == ""
    assert command_says(["no-such-command"]) == ""


def test_machine(tmp_path: Path) -> None:
    for level, size in ((0, "48K"), (1, "2048K"), (2, "32768K")):
        folder = tmp_path / "cache" / f"index{level}"
        folder.mkdir(parents=True)
        (folder / "size").write_text(size + "\n")
        (folder / "level").write_text(f"{level + 1}\n")
        (folder / "type").write_text("Unified\n")
    info = tmp_path / "cpuinfo"
    info.write_text("model name\t: Made Up  9000\nflags\t\t: sse2 avx avx2\n\nmodel name\t: other\n")
    found = processor(info, tmp_path)
    assert (found.name, found.vector_bits, found.vector_name) == ("Made Up 9000", 256, "AVX2")
    assert found.caches == {"L1": "48 KiB", "L2": "2 MiB", "L3": "32 MiB"}
    assert last_level_cache(tmp_path / "cache") == 32 << 20
    assert available_memory() > 1 << 20
    assert processor(tmp_path / "none", tmp_path / "none").vector_bits == 0
    assert fluxloom_version()[0].isdigit()
    assert commit()
