"""Verbs on devices of work items: source without hardware, memory of the device, tuned schedules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError, DeviceUnavailable
from fluxloom.device.text import TextDevice
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.tuning import TuningFile

Call = Callable[..., SimpleNamespace]
Write = Callable[..., Path]

MARKS = {"c": "void fl_loop_{}", "cuda": "__global__ void", "opencl": "__kernel "}
GPUS = [pytest.param("opencl:0", marks=pytest.mark.opencl), pytest.param("cuda:0", marks=pytest.mark.cuda)]


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep tuning and results in the test's folder."""
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))
    monkeypatch.chdir(tmp_path)


# ---------------------------------------------------------------------------------------------- codegen


@pytest.mark.parametrize("dialect", MARKS)
def test_codegen_in_every_language(fluxloom: Call, case_file: Write, dialect: str) -> None:
    case, mark = case_file(), MARKS[dialect]
    done = fluxloom("codegen", case, "--dialect", dialect, "--loop", "update")
    assert done.code == 0, done.text
    assert mark.format("update") in done.out
    assert "/* ---- update: direct" in done.out
    assert done.err == ""
    schedule = "block_colour, stage=true"
    staged = fluxloom("codegen", case, "--dialect", dialect, "--loop", "res_calc", "--schedule", schedule)
    assert mark.format("res_calc") in staged.out
    assert mark.format("save_soln") in fluxloom("codegen", case, "--dialect", dialect, "--chain").out
    kernel = fluxloom("codegen", "fluxloom.solvers.airfoil.flow:res_calc", "--dialect", dialect)
    assert mark.format("res_calc") in kernel.out


def test_codegen_for_a_device_that_is_not_here(
    monkeypatch: pytest.MonkeyPatch, fluxloom: Call, case_file: Write
) -> None:
    monkeypatch.setattr("fluxloom.device.cuda.gpu.open_cuda", lambda _: no_gpu())
    done = fluxloom("codegen", case_file(), "--device", "cuda", "--loop", "update")
    assert done.code == 0, done.text
    assert "__global__ void" in done.out
    assert "shown for no device in particular: there is no GPU" in done.err
    done = fluxloom("codegen", "fluxloom.solvers.airfoil.flow:update", "--device", "cuda:1")
    assert "__global__ void" in done.out


def no_gpu() -> None:
    """Fail as a device does that is not here."""
    raise DeviceUnavailable("there is no GPU")


def test_codegen_refuses(fluxloom: Call, case_file: Write) -> None:
    assert "--dialect 'cud'; did you mean 'cuda'?" in fluxloom("codegen", case_file(), "--dialect", "cud").err
    assert fluxloom("codegen", case_file(), "--device", "reference").code == 2


# ------------------------------------------------------------------------------------------ case by name


def test_case_by_the_name_of_a_solver(fluxloom: Call, tmp_path: Path) -> None:
    case, application = load_case("airfoil")
    assert (case.case.name, application.name, case.run.iterations) == ("airfoil", "airfoil", 1000)
    assert "720,000" in fluxloom("check", "airfoil", "--no-build").out
    with pytest.raises(CaseError, match="neither a case file nor a solver; did you mean 'airfoil'"):
        load_case("airfol")
    with pytest.raises(CaseError, match="no such case file"):
        load_case("airfoil.toml")
    Path("airfoil").write_text("")  # a file goes before a solver
    with pytest.raises(CaseError, match="there is no table"):
        load_case("airfoil")


# ------------------------------------------------------------------------------------------------- check


class Small(TextDevice):
    """A device with a memory of its own."""

    shared = False
    room = (0, 0)

    def memory(self) -> tuple[int, int]:
        return self.room


@pytest.mark.parametrize(
    ("room", "code", "text"),
    [
        ((1 << 40, 1 << 41), 0, "1024.0 GiB are free on the device cuda"),
        ((1 << 20, 1 << 41), 2, "1 MiB are free on the device cuda; choose a coarser mesh or a larger device cuda"),
        ((0, 1 << 20), 2, "1 MiB are there on the device cuda"),
        ((0, 0), 0, "are free on the machine)"),
    ],
)
def test_check_compares_with_the_memory_of_the_device(
    monkeypatch: pytest.MonkeyPatch, fluxloom: Call, case_file: Write, room: tuple[int, int], code: int, text: str
) -> None:
    monkeypatch.setattr(Small, "room", room)
    monkeypatch.setattr("fluxloom.cli.verbs.check.Context", lambda *_, **__: Context(Small("cuda")))
    done = fluxloom("check", case_file(("i = 8", "i = 80"), ("j = 12", "j = 120")), "--no-build")
    assert done.code == code, done.text
    assert text in done.text


@pytest.mark.parametrize("device", GPUS)
def test_check_on_a_gpu(fluxloom: Call, case_file: Write, device: str) -> None:
    done = fluxloom("check", case_file(), "--device", device)
    assert done.code == 0, done.text
    assert f"on the device {device.partition(':')[0]}" in done.out
    assert "res_calc (gather)" in done.out


# -------------------------------------------------------------------------------------------------- tune


def test_tune_shows_schedules_of_work_items(fluxloom: Call) -> None:
    schedule = Schedule(strategy="block_colour", block=256, lanes=4, rows=64, stage=True, registers=96)
    TuningFile().put("key", "res_calc", schedule, 2.5e-5)
    shown = fluxloom("tune", "--show").out
    assert "block_colour, block 256, lanes 4, rows 64, registers 96, staged" in shown
    assert "0.0250" in shown


@pytest.mark.parametrize("device", GPUS)
def test_tune_on_a_gpu(fluxloom: Call, case_file: Write, device: str) -> None:
    done = fluxloom("tune", case_file(), "--device", device, "--loop", "res_calc", "--budget", 3)
    assert done.code == 0, done.text
    assert ", block " in done.out
    assert "res_calc" in fluxloom("tune", "--show").out
