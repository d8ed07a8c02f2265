"""The command line, end to end on a tiny mesh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.core.registry import Registry
from fluxloom.dsl.context import Context
from fluxloom.mesh import read_fields
from fluxloom.run import session
from fluxloom.run.results.files import read_residuals
from fluxloom_lab.verify.base import Check, VerifyOptions

Call = Callable[..., SimpleNamespace]
Write = Callable[..., Path]

ROOT = Path(__file__).resolve().parents[3]
RESIDUAL_20 = 9.0845156045888e-04  # of the tiny case after 20 iterations, agreed with the reference device
RESIDUAL_5 = 3.2135433344452e-03
VERBS = ("run", "check", "mesh", "codegen", "tune", "bench", "lab", "verify", "plot", "doctor", "devices")
BENCH_KEYS = ["case", "command", "commit", "device", "device_name", "gpus", "ranks", "precision", "model", "sizes",
              "copy_gbs", "seconds", "metrics", "loops"]  # fmt: skip
LOOP_KEYS = {"name", "calls", "seconds", "useful_gbs", "percent_of_copy", "strategy", "block", "layout"}
CHECK_KEYS = {"name", "value", "reference", "tolerance", "source", "ok"}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the measurement of the memory short, tuning apart, and results in the test's folder."""
    monkeypatch.setattr("fluxloom.device.bandwidth._default_size", lambda: 4 << 20)
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))
    monkeypatch.chdir(tmp_path)


def program(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options}  # type: ignore[dict-item]
    command = [sys.executable, "-m", "fluxloom", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)


# ----------------------------------------------------------------------------------------------- general


def test_steps_that_are_asked_for_are_an_end(fluxloom: Call, tmp_path: Path) -> None:
    """A file need not have one then, and goes on until its own end where it is run without them."""
    case = tmp_path / "wall.toml"
    lines = ['[case]\nname = "wall"\nsolver = "diffusion"', "[mesh]\nnx = 4\nny = 4", "[diffusion]\nconductivity = 1.0"]
    lines += [f'[boundary.{side}]\ntype = "given"\nvalue = 1.0' for side in ("xmin", "xmax", "ymin", "ymax")]
    lines += ["[checkpoint]\nevery = 1", "[time]\ndt = 0.1"]
    case.write_text("\n".join(lines))
    assert fluxloom("run", case, "-n", 2, "--no-picture", "-o", "out").code == 0
    case.write_text("\n".join([*lines, "end = 0.5"]))
    assert fluxloom("run", case, "--no-picture", "-o", "out").code == 0
    record = json.loads(Path("out/run.json").read_text())
    assert (record["iterations"], record["ended_by"]) == (5, "time.end")


def test_version_and_help(fluxloom: Call) -> None:
    assert fluxloom("--version").out.startswith("fluxloom 0.")
    shown = fluxloom("--help")
    assert shown.code == 0
    assert all(verb in shown.out for verb in VERBS)


@pytest.mark.parametrize("verb", [*VERBS, "mesh info", "mesh check", "mesh convert", "mesh generate", "mesh renumber"])
def test_every_verb_has_help(fluxloom: Call, verb: str) -> None:
    assert fluxloom(*verb.split(), "--help").code == 0


def test_usage_errors(fluxloom: Call) -> None:
    assert fluxloom("runn").code == 2
    assert fluxloom("run", "--no-such-option").code == 2


def test_expected_errors_are_one_message(case_file: Write, tmp_path: Path) -> None:
    done = program("run", case_file(("i = 8", "i = 1")), "-o", tmp_path / "out")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "mesh.i: must be at least 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_own_mistakes_give_a_traceback(monkeypatch: pytest.MonkeyPatch, fluxloom: Call) -> None:
    def broken() -> list[object]:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("fluxloom.cli.verbs.devices.device_states", broken)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        fluxloom("devices")


# --------------------------------------------------------------------------------------------------- run


def test_run(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = fluxloom("run", case_file(), "--output", out)
    assert done.code == 0, done.text
    assert {path.name for path in out.iterdir()} == {
        "residual.csv", "run.json", "pressure.png", "mach.png", "residual.png",
        *(path.name for path in out.glob("final.vtk*")), *(path.name for path in out.glob("final.vtu")),
    }  # fmt: skip
    iterations, residuals = read_residuals(out / "residual.csv")
    assert iterations.tolist() == list(range(1, 21))
    assert residuals[-1] == pytest.approx(RESIDUAL_20, rel=1e-9)
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "end reached"
    assert record["case"]["mesh"] == {"type": "airfoil", "i": 8, "j": 12}
    assert record["residual"] == pytest.approx(residuals[-1], rel=1e-12)
    assert record["command"].startswith("fluxloom run ")
    assert record["copy_gbs"] is None
    assert done.out.splitlines()[0].split(maxsplit=1) == ["status", "end reached: 20 of 20 steps"]
    assert all(set(row) >= LOOP_KEYS for row in record["loops"])
    final = read_fields(next(out.glob("final.*")))
    assert set(final.cell_data) == {"density", "velocity", "pressure", "energy", "mach"}
    assert len(final.cell_data["mach"]) == 288
    assert "iteration      10/20" in done.err
    assert "residual" in done.out


def test_set_keys(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    """Values of the command line take the place of those of the file, and errors name them."""
    case, out = case_file(), tmp_path / "set"
    words = ("--set", "run.iterations=3", "--set", "case.name=other name", "--set", "output.picture = false")
    assert fluxloom("run", case, "-o", out, *words).code == 0
    record = json.loads((out / "run.json").read_text())
    assert (record["iterations"], record["case"]["case"]["name"]) == (3, "other name")
    assert not list(out.glob("*.png"))
    for setting, text in (
        ("run.iteratons=3", "--set: run.iteratons: [run] has no key 'iteratons'; did you mean 'iterations'?"),
        ("run.iterations=0.5", "--set: run.iterations"), ("run.iterations", "a key and a value are wanted"),
        ("case.name.more=1", "case.name is no table"), ("=3", "a key and a value are wanted"),
    ):  # fmt: skip
        done = fluxloom("check", case, "--set", setting)
        assert done.code == 2
        assert text in done.text, done.text
    for old, new in (("--transport=mpi", "--set run.transport=NAME"), ("--no-fused", "--set run.fused=false")):
        done = fluxloom("run", case, old)
        assert done.code == 2
        assert new in done.text


def test_run_options_agree(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    case = case_file()
    ways = (
        ("--device", "reference"), ("--set", "run.fused=false"),
        ("--threads", "2", "--set", "run.schedule=gather,block=64"),
        ("--set", "run.schedule = 'block_colour,block=32,lanes=4'"),
    )  # fmt: skip
    for number, way in enumerate(ways):
        out = tmp_path / str(number)
        assert fluxloom("run", case, "-o", out, "-n", 4, "--no-picture", *way).code == 0
        assert not list(out.glob("*.png"))
    first = read_residuals(tmp_path / "0" / "residual.csv")[1]
    for number in range(1, len(ways)):
        assert read_residuals(tmp_path / str(number) / "residual.csv")[1] == pytest.approx(first, rel=1e-11)


def test_profile(
    monkeypatch: pytest.MonkeyPatch, fluxloom: Call, case_file: Write, tmp_path: Path
) -> None:
    def run(*words: str) -> str:
        done = fluxloom("run", case_file(), "-o", tmp_path / "out", "-n", 3, "--no-picture", "--overwrite", *words)
        assert done.code == 0, done.text
        return done.out

    contexts: list[Context] = []

    class Spy(Context):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            contexts.append(self)

    monkeypatch.setattr("fluxloom.cli.runs.job.Context", Spy)
    assert "% copy" not in run()
    out = run("--profile")
    assert "% copy" in out
    assert out.index("residual") < out.index("% copy")  # the physics comes first
    assert json.loads((tmp_path / "out" / "run.json").read_text())["copy_gbs"] > 0
    assert [context.profile for context in contexts] == [False, True]


@pytest.mark.parametrize(
    "device", [pytest.param("opencl:0", marks=pytest.mark.opencl), pytest.param("cuda:0", marks=pytest.mark.cuda)]
)
def test_run_on_a_gpu(fluxloom: Call, case_file: Write, tmp_path: Path, device: str) -> None:
    out = tmp_path / "out"
    done = fluxloom("run", case_file(), "-o", out, "--no-picture", "--device", device)
    assert done.code == 0, done.text
    assert read_residuals(out / "residual.csv")[1][-1] == pytest.approx(RESIDUAL_20, rel=1e-9)
    assert "% copy" not in done.out
    done = fluxloom("run", case_file(), "-o", out, "--no-picture", "--device", device, "--profile", "--overwrite")
    assert "% copy" in done.out
    assert "SIMD" not in done.out
    record = json.loads((out / "run.json").read_text())
    assert record["useful_gbs"] > 0
    assert record["device"] == device.partition(":")[0]


def test_run_without_files(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    case = case_file(("threads = 1", "threads = 1\n[output]\nformat = \"none\"\nresidual = false\npicture = false"))
    done = fluxloom("run", case, "-n", 2)
    assert done.code == 0
    assert [path.name for path in (tmp_path / "results" / "tiny").iterdir()] == ["run.json"]


def test_lost_solution_keeps_files(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = fluxloom("run", case_file(("cfl = 0.9", "cfl = 9.0")), "-o", out)
    assert done.code == 1
    assert "error: diverged: " in done.err
    assert "lower flow.cfl (now 9)" in done.err
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "diverged"
    assert record["details"]["step"] == record["iterations"]
    assert (out / "residual.csv").exists()
    assert [path.stem for path in out.glob("*.vt*")] == ["diverged"]


def test_unusable_output(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    done = fluxloom("run", case_file(), "-o", tmp_path / "out")
    assert done.code == 2
    assert "in the way" in done.err
    assert "building" not in done.err


@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (OSError(28, "No space left"), 3, "output lost: final.vtkhdf: the disk is full"),
        (ValueError("odd"), 3, "output lost: final.vtkhdf: ValueError: odd"),
        (DeviceUnavailable("writing VTKHDF files needs h5py"), 0, "warning: final.vtkhdf is left out: writing VTKHDF"),
    ],
)
def test_fields_that_cannot_be_written(
    fluxloom: Call, case_file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    error: Exception, code: int, word: str,
) -> None:  # fmt: skip
    """All other results are there; the status tells what was lost, but not what an absent package would have done."""
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(session, "write_fields", fails)
    done = fluxloom("run", case_file(), "-o", tmp_path / "out", "-n", 2)
    assert done.code == code
    assert word in done.err
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["files"] == ["residual.csv", "pressure.png", "mach.png", "residual.png"]
    assert list(record["lost"]) == (["final.vtkhdf"] if code else [])
    assert ("outputs lost" in done.out) == bool(code)
    assert record["status"] == "end reached"


def test_exhausted_memory_is_one_message(monkeypatch: pytest.MonkeyPatch, fluxloom: Call) -> None:
    def exhausted() -> list[object]:
        raise MemoryError("Unable to allocate 2. PiB for an array")

    monkeypatch.setattr("fluxloom.cli.verbs.devices.device_states", exhausted)
    done = fluxloom("devices")
    assert done.code == 2
    assert done.err == "error: the memory of this machine is exhausted: Unable to allocate 2. PiB for an array\n"


def test_interruption_keeps_results(case_file: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    case = case_file(("iterations = 20", "iterations = 100000000"))
    command = [sys.executable, "-m", "fluxloom", "run", str(case), "-o", str(out), "--no-picture"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 120
        log = out / "residual.csv"
        while time.monotonic() < end and (not log.exists() or log.stat().st_size < 1000):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "interrupted"
    assert record["iterations"] == len(read_residuals(log)[0])
    assert list(out.glob("final.*"))


# ----------------------------------------------------------------------------------- check, codegen, plot


def test_check(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    done = fluxloom("check", case_file())
    assert done.code == 0
    for text in ("cells           288", "save_soln (direct), adt_calc (direct), res_calc (", "chain ", "about 1 MiB"):
        assert text in done.out
    assert not (tmp_path / "results").exists()
    done = fluxloom("check", case_file(("i = 8", "i = 20000"), ("j = 12", "j = 30000")))
    assert done.code == 2
    assert "of memory" in done.err


def test_codegen(fluxloom: Call, case_file: Write) -> None:
    case = case_file()
    done = fluxloom("codegen", case, "--loop", "update")
    assert done.code == 0
    assert "void fl_loop_update(" in done.out
    assert "void fl_loop_res_calc(" not in done.out
    assert "void fl_loop_res_calc(" in fluxloom("codegen", case).out
    assert "+" in fluxloom("codegen", case, "--chain").out
    assert "no loop 'updat'; did you mean 'update'?" in fluxloom("codegen", case, "--loop", "updat").err
    assert fluxloom("codegen", case, "--device", "reference").code == 2


@pytest.mark.parametrize(
    ("dialect", "word"), [("cuda", "fl_several<float, 2>"), ("opencl", "float2 v"), ("c", "void fl_loop_pull")]
)
def test_codegen_of_a_lattice(dialect: str, word: str, fluxloom: Call, tmp_path: Path) -> None:
    """A solver that runs loops while it is built is shown where nothing runs."""
    case = tmp_path / "flow.toml"
    case.write_text((ROOT / "examples" / "lattice_moving.toml").read_text())
    done = fluxloom("codegen", case, "--dialect", dialect, "--loop", "pull")
    assert done.code == 0
    assert word in done.out


def test_codegen_of_a_kernel(fluxloom: Call) -> None:
    done = fluxloom("codegen", "fluxloom.solvers.airfoil.flow:res_calc")
    assert done.code == 0
    assert "void fl_loop_res_calc(" in done.out
    assert "has no 'nothing'" in fluxloom("codegen", "fluxloom.solvers.airfoil.flow:nothing").err
    assert "no module" in fluxloom("codegen", "no_such_module:x").err
    assert "not a kernel or a loop" in fluxloom("codegen", "math:pi").err
    told = fluxloom("codegen", "fluxloom.solvers.airfoil.flow:update", "--device", "reference")
    assert "no generated code" in told.err


def test_plot(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    out, drawn = tmp_path / "out", tmp_path / "drawn"
    assert fluxloom("run", case_file(), "-o", out, "--no-picture").code == 0
    assert fluxloom("plot", out, "-o", drawn).code == 0
    assert {path.name for path in drawn.iterdir()} == {"residual.png", "pressure.png", "mach.png"}
    assert fluxloom("plot", out, "-f", "speed", "--window", "-1,2,-1,1", "--colours", "magma").code == 0
    assert (out / "speed.png").exists()
    assert "did you mean 'pressure'?" in fluxloom("plot", out, "-f", "presure").err
    assert "give four numbers" in fluxloom("plot", out, "--window", "1,2").err
    assert "no such directory" in fluxloom("plot", tmp_path / "none").err
    (tmp_path / "empty").mkdir()
    assert "nothing to draw" in fluxloom("plot", tmp_path / "empty").err


# --------------------------------------------------------------------------------------------------- mesh


def test_mesh_verbs(fluxloom: Call, tmp_path: Path) -> None:
    su2, vtu = tmp_path / "box.su2", tmp_path / "box.vtu"
    assert fluxloom("mesh", "generate", "box2d", su2, "--cells", "8,6", "--kind", "triangle").code == 0
    assert "96 triangle" in fluxloom("mesh", "info", su2).out
    assert fluxloom("mesh", "check", su2, "--patch", "xmin").code == 0
    assert "did you mean 'xmin'?" in fluxloom("mesh", "check", su2, "--patch", "xmni").err
    assert fluxloom("mesh", "convert", su2, vtu).code == 0
    done = fluxloom("mesh", "renumber", vtu, tmp_path / "new.su2", "--method", "gps")
    assert done.code == 0
    assert "bandwidth" in done.out
    assert read_fields(tmp_path / "new.su2").mesh.n_cells == 96
    assert fluxloom("mesh", "generate", "airfoil", tmp_path / "a.su2", "--cells", "8,12").code == 0
    assert "wall (8), far_field (48)" in fluxloom("mesh", "info", tmp_path / "a.su2").out


def test_mesh_errors(fluxloom: Call, tmp_path: Path) -> None:
    assert "did you mean 'box2d'?" in fluxloom("mesh", "generate", "box2", tmp_path / "a.su2").err
    done = fluxloom("mesh", "generate", "box2d", tmp_path / "a.su2", "--cells", "3")
    assert "give 2 positive whole numbers" in done.err
    assert "unknown method 'rmc'" in fluxloom("mesh", "renumber", tmp_path / "x", tmp_path / "y", "--method", "rmc").err
    assert fluxloom("mesh", "info", tmp_path / "none.su2").code == 2
    (tmp_path / "broken.su2").write_text("NDIME= 2\nNELEM= 1\n5 0 1 7\n")
    assert fluxloom("mesh", "check", tmp_path / "broken.su2").code == 2


# -------------------------------------------------------------------------------------------------- bench


@pytest.mark.parametrize("name", ["airfoil", "overhead"])
def test_bench_record(fluxloom: Call, tmp_path: Path, name: str) -> None:
    path = tmp_path / "b.json"
    done = fluxloom("bench", name, "--cells", "8,12", "-n", 5, "--rounds", 3, "--threads", 1, "--json", path)
    assert done.code == 0, done.text
    record = json.loads(path.read_text())
    assert list(record) == BENCH_KEYS
    assert (record["case"], record["device"], record["gpus"], record["ranks"]) == (name, "cpu", 0, 1)
    assert (record["precision"], record["sizes"]) == ("float64", {"cells": 288})
    assert record["copy_gbs"] > 0
    assert record["seconds"] > 0
    assert record["command"].startswith(f"fluxloom bench {name}")
    assert "percent_of_copy" in record["metrics"]
    assert record["loops"]
    assert all(set(row) == LOOP_KEYS for row in record["loops"])
    assert "round 3/3" in done.err
    if name == "airfoil":
        metrics = record["metrics"]
        assert metrics["percent_of_copy"] > 0
        assert metrics["rms"] == pytest.approx(RESIDUAL_5, rel=1e-9)
        assert metrics["ms_per_iteration"] == pytest.approx(1e3 * record["seconds"] / 5)


def test_bench_names(fluxloom: Call) -> None:
    assert "overhead" in fluxloom("bench", "list").out
    assert "did you mean 'airfoil'?" in fluxloom("bench", "airfol").err
    assert "--cells '720'; did you mean '720k'?" in fluxloom("bench", "airfoil", "--cells", "720").err


# -------------------------------------------------------------------------------------------------- verify


class FakeVerification:
    """Two checks, of which one may fail."""

    title = "made up"
    options = VerifyOptions

    def __init__(self, value: float) -> None:
        self.value = value

    def run(self, options: VerifyOptions, tell: Callable[[str], None]) -> Iterator[Check]:
        tell("working")
        yield Check("one", 1.0, 1.0, 0.0, "definition")
        yield Check("half", self.value, 0.5, 1e-6, "arithmetic")


@pytest.mark.parametrize(("value", "code", "last"), [(0.5, 0, "2 of 2"), (0.6, 1, "1 of 2"), (np.nan, 1, "1 of 2")])
def test_verify(
    monkeypatch: pytest.MonkeyPatch, fluxloom: Call, tmp_path: Path, value: float, code: int, last: str
) -> None:
    registry: Registry[FakeVerification] = Registry("verification")
    registry.register("fake", FakeVerification(value))
    monkeypatch.setattr("fluxloom_lab.cli.verify.verifications", lambda: registry)
    path = tmp_path / "v.json"
    done = fluxloom("verify", "fake", "--json", path)
    assert done.code == code
    assert done.out.splitlines()[-1] == f"{last} checks passed"
    record = json.loads(path.read_text())
    assert list(record) == ["case", "device", "ranks", "checks"]
    assert all(set(check) == CHECK_KEYS for check in record["checks"])
    assert [check["ok"] for check in record["checks"]] == [True, code == 0]


def test_verify_names(fluxloom: Call) -> None:
    assert "airfoil" in fluxloom("verify", "list").out
    assert "unknown verification 'airfol'; did you mean 'airfoil'?" in fluxloom("verify", "airfol").err


# ------------------------------------------------------------------------------------ tune, doctor, devices


def test_tune(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    assert "nothing recorded" in fluxloom("tune", "--show").out
    done = fluxloom("tune", case_file(), "--loop", "bres_calc", "--budget", 4)
    assert done.code == 0, done.text
    assert "recorded in" in done.out
    assert "bres_calc" in fluxloom("tune", "--show").out
    assert fluxloom("tune", "--clear").code == 0
    assert not (tmp_path / "tuning.json").exists()
    assert "name a case file" in fluxloom("tune").err


def test_devices(fluxloom: Call) -> None:
    lines = fluxloom("devices").out.splitlines()
    assert any(line.startswith("yes reference") for line in lines)
    assert any("cuda" in line for line in lines)


def test_doctor(fluxloom: Call) -> None:
    done = fluxloom("doctor")
    assert done.code == 0
    for name in ("C compiler", "OpenMP", "vectors", "caches", "bandwidth", "cache", "CUDA", "OpenCL", "MPI", "numpy"):
        assert name in done.out


def test_doctor_without_compiler(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = program(
        "doctor", PATH=str(tmp_path / "empty"), CC="", FLUXLOOM_CC="", FLUXLOOM_CACHE=str(tmp_path / "cache")
    )
    if "ziglang" in done.stdout:
        pytest.skip("the ziglang package serves as compiler")
    assert done.returncode == 1
    assert "missing C compiler" in done.stdout
    assert "apt install gcc" in done.stdout
    assert "only the reference device works without" in done.stdout
    assert "Traceback" not in done.stderr
