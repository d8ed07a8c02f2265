"""The cavity beside icoFoam: case files, logs, fields, messages; OpenFOAM itself where it is installed."""

from __future__ import annotations

import os
import re
import stat
import sys
from itertools import count
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import CaseError, DeviceUnavailable, FluxloomError
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom_lab.bench.flows import cavity
from fluxloom_lab.bench.flows.cavity import CavityBench, CavityOptions
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.peers import openfoam
from fluxloom_lab.peers.openfoam import StepLog, find_openfoam, read_velocity
from fluxloom_lab.peers.openfoam_case import PRESSURE_SOLVERS, CavityCase

WHOLE_PATH = os.environ.get("PATH", "")
PROGRAMS = ("icoFoam", "blockMesh", "decomposePar", "reconstructPar")
LOG = """\
Build  : OPENFOAM=2012 patch=7
nProcs : 2
Time = 0.25

PCG:  Solving for p, Initial residual = 1, Final residual = 9e-06, No Iterations 30
time step continuity errors : sum local = 1e-09, global = 0, cumulative = 0
PCG:  Solving for p, Initial residual = 0.1, Final residual = 9e-06, No Iterations 12
time step continuity errors : sum local = 1e-09, global = 0, cumulative = 0
"""
FAKE = """
    import pathlib, re, sys
    here = pathlib.Path()
    (here / "calls").open("a").write(pathlib.Path(sys.argv[0]).name + " " + " ".join(sys.argv[1:]) + chr(10))
    if sys.argv[0].endswith("icoFoam"):
        text = (here / "system/controlDict").read_text()
        dt, end, every = (re.search(key + " (.*);", text)[1] for key in ("deltaT", "endTime", "writeInterval"))
        n = int(re.search(r"7[)] [(](\\d+)", (here / "system/blockMeshDict").read_text())[1])
        print("Build  : OPENFOAM=2012 patch=7")
        print("nProcs :", 2 if "-parallel" in sys.argv else 1)
        for step in range(int(every)):
            print("Time =", (step + 1) * float(dt))
            print("PCG:  Solving for p, Initial residual = 1, Final residual = 0, No Iterations 7", flush=True)
            print("time step continuity errors : sum local = 1e-09, global = 0, cumulative = 0", flush=True)
        (here / end).mkdir()
        vectors = [f"({i} {j} 0)" for j in range(n) for i in range(n)]
        parts = ["internalField   nonuniform List<vector> ", str(n * n), "(", *vectors, ")", ";"]
        (here / end / "U").write_text(chr(10).join(parts))
"""


def script(path: Path, text: str) -> None:
    path.write_text(f"#!{sys.executable}\n{dedent(text)}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs with the names of OpenFOAM's, settings beside them as Debian has them, a launcher that calls once."""
    folder, settings = tmp_path / "bin", tmp_path / "share" / "openfoam" / "etc"
    folder.mkdir()
    settings.mkdir(parents=True)
    (settings / "controlDict").touch()
    for name in PROGRAMS:
        script(folder / name, FAKE)
    script(folder / "mpiexec.openmpi", "import os, sys\nos.execv(sys.argv[5], sys.argv[5:])")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("WM_PROJECT_DIR", raising=False)
    return folder


def parse(text: str) -> dict[str, Any]:
    """Return what OpenFOAM reads: words up to a semicolon, braces around more; lists stay text."""
    words = re.findall(r"\([^;]*\)(?=;)|\[[^\]]*\]|[^\s{};]+|[{};]", text)
    stack: list[dict[str, Any]] = [{}]
    line: list[str] = []
    for word in words:
        if word == "{":
            stack.append(stack[-1].setdefault(" ".join(line), {}))
            line = []
        elif word == "}":
            stack.pop()
        elif word == ";":
            stack[-1][line[0]] = " ".join(line[1:])
            line = []
        else:
            line.append(word)
    assert len(stack) == 1
    assert not line
    return stack[0]


# ------------------------------------------------------------------------------------------- the case


def test_files_of_a_case(tmp_path: Path) -> None:
    case = CavityCase(16, 400.0, 0.03125, 64, "GAMG", 1e-6, 3)
    case.write(tmp_path)
    found = {path: (tmp_path / path).read_text() for path in case.files()}
    control, solution = parse(found["system/controlDict"]), parse(found["system/fvSolution"])
    assert control["FoamFile"] == {
        "version": "2.0", "format": "ascii", "class": "dictionary", "object": "controlDict",
    }  # fmt: skip
    assert (float(control["deltaT"]), float(control["endTime"])) == (0.03125, 2.0)
    assert (control["writeInterval"], control["writeFormat"], control["application"]) == ("64", "ascii", "icoFoam")
    wanted = {"solver": "GAMG", "smoother": "GaussSeidel", "tolerance": "1e-06", "relTol": "0"}
    assert solution["solvers"]["p"] == solution["solvers"]["pFinal"] == wanted
    assert solution["PISO"]["nCorrectors"] == "2"
    assert "(16 16 1)" in parse(found["system/blockMeshDict"])["blocks"]
    assert parse(found["constant/transportProperties"])["nu"] == "[0 2 -1 0 0 0 0] 0.0025"
    parts = parse(found["system/decomposeParDict"])
    assert (parts["numberOfSubdomains"], parts["simpleCoeffs"]["n"]) == ("3", "(1 3 1)")
    velocity, pressure = parse(found["0/U"]), parse(found["0/p"])
    assert velocity["boundaryField"]["lid"] == {"type": "fixedValue", "value": "uniform (1 0 0)"}
    assert set(velocity["boundaryField"]) == set(pressure["boundaryField"]) == {"lid", "walls", "sides"}
    for name in ("lid", "walls", "sides"):
        assert f"{name} {{ type" in found["system/blockMeshDict"]


def test_every_face_of_the_block_has_a_patch() -> None:
    mesh = CavityCase(4, 1.0, 0.1, 1, "GAMG", 1e-5).files()["system/blockMeshDict"]
    vertices = mesh.partition("vertices")[2].partition(";")[0]
    corners = np.array(re.findall(r"\(?([\d.]+) ([\d.]+) ([\d.]+)\)", vertices), dtype=float)
    assert corners.shape == (8, 3)
    sides = {}
    for name, faces in re.findall(r"(\w+) \{ type \w+; faces \((.*?)\); \}", mesh):
        for text in re.findall(r"\(([\d ]+)\)", f"({faces})"):
            points = corners[[int(word) for word in text.split()]]
            normal = np.cross(points[1] - points[0], points[2] - points[1])
            assert normal @ (points.mean(axis=0) - corners.mean(axis=0)) > 0  # outward
            axis = int(np.argmax(np.abs(normal)))
            sides[axis, points[0, axis] > 0.01] = name
    assert sides == {
        (0, False): "walls", (0, True): "walls", (1, False): "walls", (1, True): "lid", (2, False): "sides",
        (2, True): "sides",
    }  # fmt: skip


# --------------------------------------------------------------------------------- logs, fields, messages


def test_log_of_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(openfoam, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))
    log = StepLog()
    for text in (LOG + 3 * LOG.partition("2\n")[2]).splitlines():
        log.line(text)
    assert (log.version, log.processes, log.iterations) == ("2012 patch=7", 2, 4 * 42)
    # A step looks at the clock when it begins and behind each pressure.
    assert log.rounds(1) == (3.0, 3.0, 3.0, 2.0)
    assert log.rounds(2) == (6.0, 5.0)
    with pytest.raises(FluxloomError, match="4 steps, no multiple of 3"):
        log.rounds(3)
    with pytest.raises(FluxloomError, match="0 steps"):
        StepLog().rounds(1)


def test_field_of_vectors(tmp_path: Path) -> None:
    path = tmp_path / "U"
    head = "FoamFile\n{\n class volVectorField;\n}\ninternalField   nonuniform List<vector> \n2\n(\n"
    path.write_text(head + "(1 -2e-3 0)\n(3.5 4 5)\n)\n;\nboundaryField\n{\n lid { value uniform (1 0 0); }\n}\n")
    assert read_velocity(path).tolist() == [[1.0, -0.002, 0.0], [3.5, 4.0, 5.0]]
    path.write_text(head + "(1 2 3)\n)\n;\n")
    with pytest.raises(FluxloomError, match="2 vectors are announced"):
        read_velocity(path)
    path.write_text("internalField uniform (0 0 0);")
    with pytest.raises(FluxloomError, match="no field of vectors"):
        read_velocity(path)


def test_without_openfoam(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_openfoam().variables == {"WM_PROJECT_DIR": str(fake.parent / "share" / "openfoam")}
    (fake.parent / "share" / "openfoam" / "etc" / "controlDict").unlink()
    with pytest.raises(DeviceUnavailable, match="WM_PROJECT_DIR, its folder"):
        find_openfoam()
    monkeypatch.setenv("WM_PROJECT_DIR", "/elsewhere")
    assert find_openfoam().variables == {}
    monkeypatch.setenv("WM_MPLIB", "SYSTEMMPICH")
    assert find_openfoam().family == "MPICH"
    (fake / "blockMesh").unlink()
    with pytest.raises(DeviceUnavailable, match=r"needs blockMesh, not found: .*apt install openfoam"):
        find_openfoam()


def test_a_missing_peer_is_said_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise DeviceUnavailable("no OpenFOAM here")

    monkeypatch.setattr(cavity, "find_openfoam", missing)
    told: list[str] = []
    with pytest.raises(DeviceUnavailable, match="no OpenFOAM here"):
        CavityBench().run(CavityOptions(cells="8", threads=1, peers="openfoam"), told.append)
    assert told == []


@pytest.mark.parametrize("text", ["7", "9", "six", "6", "16,16", "10000"])
def test_wrong_cells(text: str) -> None:
    with pytest.raises(CaseError, match="an even number from 8 to 4096"):
        benches()["cavity"].run(CavityOptions(cells=text, threads=1), print)


def test_openfoam_runs_on_processors() -> None:
    with pytest.raises(CaseError, match="--device cpu"):
        CavityBench().run(CavityOptions(device="reference", cells="8", peers="openfoam"), print)


# ------------------------------------------------------------------------------------------- the record


def test_record(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the fake velocity is (i, j), the extremes are those of lines: their ends."""
    monkeypatch.setattr(cavity, "RECIPES", {"jacobi": Jacobi(), "broken": Broken()})
    monkeypatch.setenv("PATH", os.pathsep.join([str(fake), WHOLE_PATH]))
    told: list[str] = []
    options = CavityOptions(cells="8", threads=2, iterations=3, rounds=2, peers="openfoam")
    metrics = CavityBench().run(options, told.append).metrics
    jacobi, failed = metrics["flows"]
    assert failed == {"pressure": "broken", "error": "broken: cannot be built"}
    assert "broken: broken: cannot be built" in told
    assert (metrics["best"], metrics["steps"], metrics["dt"], metrics["time"]) == ("jacobi", 6, 1 / 16, 0.375)
    assert metrics["ms_per_step"] == jacobi["ms_per_step"] > 0
    assert jacobi["least_u"] < 0 < jacobi["largest_v"]
    assert [row["pressure"] for row in metrics["peers"]] == [f"icoFoam {name}" for name in PRESSURE_SOLVERS]
    for row in metrics["peers"]:
        assert (row["least_u"], row["largest_v"], row["least_v"]) == pytest.approx((3.5, 3.5, 3.5))
        assert row["pressure_iterations"] == 7
        assert row["version"] == "2012 patch=7"
    fastest = min(row["ms_per_step"] for row in metrics["peers"])
    assert metrics["icofoam_over_best"] == pytest.approx(fastest / jacobi["ms_per_step"])


class Broken(Preconditioner):
    def build(self, matrix: Any) -> Any:
        raise FluxloomError("broken: cannot be built")


def test_programs_in_turn(fake: Path, tmp_path: Path) -> None:
    calls = {
        1: ["blockMesh ", "icoFoam "],
        2: ["blockMesh ", "decomposePar ", "icoFoam -parallel", "reconstructPar -latestTime"],
    }
    for processes, words in calls.items():
        folder = tmp_path / str(processes)
        folder.mkdir()
        flow = find_openfoam().run(CavityCase(8, 100.0, 0.1, 4, "PCG, DIC", 1e-5, processes), folder, 2, 60.0)
        assert (folder / "calls").read_text().splitlines() == words
        assert flow.velocity.shape == (8, 8, 2)
        assert np.array_equal(flow.velocity[..., 0], np.tile(np.arange(8.0), (8, 1)))
        assert len(flow.seconds) == 2
    script(fake / "mpiexec.openmpi", "import os, sys\nos.execv(sys.argv[5], sys.argv[5:6])")
    (tmp_path / "alone").mkdir()
    with pytest.raises(FluxloomError, match="as 1 processes instead of 2"):
        find_openfoam().run(CavityCase(8, 100.0, 0.1, 4, "GAMG", 1e-5, 2), tmp_path / "alone", 2, 60.0)


# ------------------------------------------------------------------------------------- OpenFOAM itself


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.long)])
def test_icofoam_computes_the_same_flow(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    try:
        find_openfoam()
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setattr(cavity, "RECIPES", {"jacobi": Jacobi()})
    options = CavityOptions(cells="32", threads=threads, iterations=120, rounds=2, peers="openfoam")
    metrics = CavityBench().run(options, lambda _: None).metrics
    (ours,), (pcg, gamg) = metrics["flows"], metrics["peers"]
    for key in ("least_u", "largest_v", "least_v"):
        assert pcg[key] == pytest.approx(gamg[key], rel=1e-4)
        # Explicit steps of second order and implicit ones of first order, from rest to time 3.75.
        assert ours[key] == pytest.approx(pcg[key], rel=0.08)
    assert gamg["pressure_iterations"] < pcg["pressure_iterations"]
