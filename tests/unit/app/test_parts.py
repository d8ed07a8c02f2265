"""The parts of the application layer that know no solver: files, marching, schedules, pictures, bandwidth."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.app.application import Picture
from fluxloom.app.cases.airfoil import mesh_sizes
from fluxloom.app.files import (
    ResidualLog,
    atomic,
    prepare_directory,
    read_residuals,
    vtk_name,
    write_json,
    write_vtk,
)
from fluxloom.app.march import first_bad_cell, march
from fluxloom.app.pictures import draw_field, draw_residual
from fluxloom.app.schedules import parse_schedule, schedule_text
from fluxloom.app.summary import difference, loop_rows, overall
from fluxloom.app.system import command_says, commit, fluxloom_version, processor, python_says
from fluxloom.app.verify.base import Check
from fluxloom.core.errors import CaseError, FluxloomError, PlanError
from fluxloom.device.bandwidth import BandwidthMeter, available_memory, last_level_cache, meter_for
from fluxloom.device.reference import ReferenceDevice
from fluxloom.dsl.report import LoopReport
from fluxloom.dsl.schedule import Schedule
from fluxloom.mesh import airfoil_mesh, box2d, box3d, read_fields

PNG = b"\x89PNG"


# ---------------------------------------------------------------------------------------------- files


def test_directory_is_made_and_cleared(tmp_path: Path) -> None:
    folder = prepare_directory(tmp_path / "a" / "b", 1000)
    for name in ("run.json", "final.vtu", "old.png", "notes.txt"):
        (folder / name).write_text("{}")
    prepare_directory(folder, 1000)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_directory_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_text("mine")
    prepare_directory(tmp_path, 0)
    assert (tmp_path / "photo.png").exists()


def test_directory_errors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CaseError, match="a file of that name in the way"):
        prepare_directory(tmp_path / "file", 0)
    with pytest.raises(CaseError, match="a file of that name in the way"):
        prepare_directory(tmp_path / "file" / "below", 0)
    with pytest.raises(CaseError, match=r"will write about \d+ MiB but only \d+ MiB are free"):
        prepare_directory(tmp_path / "big", 1 << 60)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_directory_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(CaseError, match="cannot be written"):
            prepare_directory(tmp_path / "new", 0)
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_full_disk_while_running() -> None:
    with pytest.raises(FluxloomError, match="the disk is full; the run was stopped"):
        ResidualLog(Path("/dev/full"))


def test_vtk(tmp_path: Path) -> None:
    mesh = box2d(3, 2)
    write_vtk(tmp_path / "final.vtu", mesh, {"p": np.arange(6.0), "u": np.ones((6, 2))})
    found = read_fields(tmp_path / "final.vtu")
    assert found.cell_data["p"].tolist() == list(range(6))
    assert found.cell_data["u"].shape == (6, 3)
    assert (vtk_name("none"), vtk_name("vtu")) == ("", "final.vtu")


# -------------------------------------------------------------------------------------------- marching


def test_march(fake_runner: Callable[..., Any]) -> None:
    heard: list[int] = []
    log = ResidualLog(None)
    end = march(fake_runner(), 5, log, SimpleNamespace(advanced=lambda n, r, s: heard.append(n)))
    assert (end.iterations, end.residual, end.status) == (5, 0.5**5, "finished")
    assert heard == log.iterations == [1, 2, 3, 4, 5]


def test_lost_solution(fake_runner: Callable[..., Any]) -> None:
    log = ResidualLog(None)
    end = march(fake_runner(lost_at=3), 5, log)
    assert (end.iterations, end.status) == (3, "failed")
    assert end.error == (
        "iteration 3: the residual is nan; the first cell without a finite pressure is 7 at (0.875, 0.5) "
        "(2 of 12 cells); lower flow.cfl"
    )
    assert len(log.values) == 3


def test_interruption(fake_runner: Callable[..., Any]) -> None:
    log = ResidualLog(None)
    end = march(fake_runner(stop_at=4), 5, log)
    assert (end.iterations, end.status, end.residual) == (3, "interrupted", 0.5**3)


def test_first_bad_cell() -> None:
    good = {"a": np.ones(3)}
    assert first_bad_cell(good) is None
    assert first_bad_cell(good | {"v": np.array([[1, 1], [1, np.inf], [np.nan, 1]])}) == ("v", 1, 2)


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
    assert idle.cells()[-1] == "1?"
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
