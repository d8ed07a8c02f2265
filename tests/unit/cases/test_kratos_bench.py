"""The cavity of tetrahedra beside Kratos: its mesh and parameters, its log and result, messages; itself where it is."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import CaseError, DeviceUnavailable, FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.mesh import box3d
from fluxloom_lab.bench.flows import kratos_bench
from fluxloom_lab.bench.flows.kratos_bench import KratosBench, KratosOptions
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.peers import kratos
from fluxloom_lab.peers.kratos import VARIABLE, Kratos, StepLog, find_kratos, read_result
from fluxloom_lab.peers.kratos_case import PRESSURE_SOLVERS, KratosCase
from fluxloom_lab.problems.tetra_cavity import TetraCavity, profile_points
from fluxloom_lab.problems.tetra_flows import OURS, CavityRun, FlowRun

FAKE = """
    import sys
    sys.path.insert(0, {folder!r})
    _, _, *words = sys.argv
    if words[0] == "-c":
        exec(words[1])
    else:
        import runpy
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
"""
PACKAGE = """
    import os
    VELOCITY, PRESSURE, REACTION = "VELOCITY", "PRESSURE", "REACTION"

    class ParallelUtilities:
        GetNumThreads = staticmethod(lambda: int(os.environ["OMP_NUM_THREADS"]))

    class Kernel:
        Version = staticmethod(lambda: '9.8."7"--0-Release')

    class Parameters:
        def __init__(self, text):
            self.text = text

    class Point:
        def __init__(self, line):
            self.Id, *self.place = int(line.split()[0]), *map(float, line.split()[1:])

        def GetSolutionStepValue(self, name):
            x, y, z = self.place
            return {"VELOCITY": (y, 0.5 * x, 0.0), "PRESSURE": x, "REACTION": (1.0, 0.0, 0.0)}[name]

    class Model:
        def GetModelPart(self, name):
            lines = open("cavity.mdpa").read().partition("Begin Nodes")[2].partition("End Nodes")[0].split("\\n")
            self.Nodes = [Point(line) for line in reversed(lines) if line]
            return self
"""
ANALYSIS = """
    import json

    class FluidDynamicsAnalysis:
        def __init__(self, model, parameters):
            self.settings = json.loads(parameters.text)["solver_settings"]
            self.steps = 0

        def Initialize(self):
            json.loads(open(self.settings["material_import_settings"]["materials_filename"]).read())
            self.amgcl = self.settings["pressure_linear_solver_settings"]["solver_type"] == "amgcl"

        def _GetSolver(self):
            return self

        def _GetLinearSolver(self):
            return [self, None]

        def GetIterationsNumber(self):
            return 0 if self.amgcl else 40

        def _GetSolutionStrategy(self):
            return self

        def CalculateReactions(self):
            assert self.steps

        def _AdvanceTime(self):
            self.steps += 1
            return self.steps * self.settings["time_stepping"]["time_step"]

        def InitializeSolutionStep(self):
            assert self.time > 0

        def SolveSolutionStep(self):
            print("FractionalStepStrategy: FRAC VEL.: ratio = 0.1; exp.ratio = 0.001 abs = 2")
            print("FractionalStepStrategy: FRAC VEL.: ratio = 1e-4; exp.ratio = 0.001 abs = 2e-3")
            print("FractionalStepStrategy: Calculating Pressure.")
            if self.amgcl:
                print("AMGCLSolver: 19 iterations 2e-07 residual")
            print("FractionalStepStrategy: Updating Velocity.")

        def FinalizeSolutionStep(self):
            pass
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An interpreter that has a package with what our script needs of Kratos."""
    fluid = tmp_path / "packages" / "KratosMultiphysics" / "FluidDynamicsApplication"
    fluid.mkdir(parents=True)
    (fluid.parent / "__init__.py").write_text(dedent(PACKAGE))
    (fluid / "__init__.py").touch()
    (fluid / "fluid_dynamics_analysis.py").write_text(dedent(ANALYSIS))
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}\n" + dedent(FAKE).format(folder=str(fluid.parent.parent)))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(VARIABLE, str(path))
    return str(path)


@pytest.fixture(scope="module")
def cavity() -> TetraCavity:
    return TetraCavity(box3d(4, 4, 4, kind="tetra"))


def case(cavity: TetraCavity, pressure: str = "amgcl") -> KratosCase:
    return KratosCase(cavity, 0.01, 0.125, 6, pressure, 1e-7)


def blocks(lines: Iterator[str]) -> dict[str, Any]:
    """Return what Kratos reads: blocks by their heads, of lines of words; blocks in blocks by their heads there."""
    stack: list[tuple[str, dict[str, Any]]] = [("", {})]
    for line in "\n".join(lines).split("\n"):
        words = line.split()
        if words[0] == "Begin":
            stack.append((" ".join(words[1:]), {"": []}))
        elif words[0] == "End":
            head, found = stack.pop()
            assert head.split()[0] == words[1]
            assert head not in stack[-1][1]
            stack[-1][1][head] = found
        else:
            stack[-1][1][""].append(words)
    assert len(stack) == 1
    return stack[0][1]


# ------------------------------------------------------------------------------------------- the case


def test_mesh_of_a_case(cavity: TetraCavity) -> None:
    found, mesh = blocks(case(cavity).mesh_lines()), cavity.mesh
    nodes = np.array(found["Nodes"][""], dtype=float)
    cells = np.array(found["Elements Element3D4N"][""], dtype=int)
    faces = np.array(found["Conditions SurfaceCondition3D3N"][""], dtype=int)
    assert nodes[:, 0].tolist() == list(range(1, mesh.n_points + 1))
    assert np.array_equal(nodes[:, 1:], mesh.points)
    assert np.array_equal(cells[:, 2:] - 1, cavity.cells)
    assert cells[:, 0].tolist() == list(range(1, 6 * 4**3 + 1))
    assert len(faces) == 6 * 2 * 4**2
    parts = {
        head.split()[1]: {name: [int(row[0]) for row in part[f"SubModelPart{name}"][""]]
                          for name in ("Nodes", "Elements", "Conditions")}
        for head, part in found.items() if head.startswith("SubModelPart")
    }  # fmt: skip
    assert parts["fluid"]["Elements"] == cells[:, 0].tolist()
    assert parts["skin"]["Conditions"] == faces[:, 0].tolist()
    lid, walls = (nodes[np.array(parts[name]["Nodes"]) - 1, 1:] for name in ("lid", "walls"))
    assert len(lid) == 3**2  # without the rim
    assert (lid[:, 1] == 1.0).all()
    assert len(lid) + len(walls) == 5**3 - 3**3
    assert nodes[parts["pin"]["Nodes"][0] - 1, 1:].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("pressure", PRESSURE_SOLVERS)
def test_parameters_of_a_case(cavity: TetraCavity, pressure: str) -> None:
    chosen = case(cavity, pressure)
    found, material = chosen.parameters(), chosen.materials()["properties"][0]
    solver = found["solver_settings"]
    assert found["problem_data"]["end_time"] == 0.75
    assert solver["time_stepping"] == {"automatic_time_step": False, "time_step": 0.125}
    assert solver["pressure_linear_solver_settings"] == {**PRESSURE_SOLVERS[pressure], "tolerance": 1e-7}
    known = {f"Cavity.{head.split()[1]}" for head in blocks(chosen.mesh_lines()) if head.startswith("SubModelPart")}
    held = [process["Parameters"] for process in found["processes"]["boundary_conditions_process_list"]]
    named = {solver["volume_model_part_name"], *solver["skin_parts"], material["model_part_name"]}
    assert named | {parameters["model_part_name"] for parameters in held} == known
    assert [(parameters["variable_name"], parameters["value"]) for parameters in held] == [
        ("VELOCITY", [1.0, 0.0, 0.0]), ("VELOCITY", [0.0, 0.0, 0.0]), ("PRESSURE", 0.0),
    ]  # fmt: skip
    assert material["Material"]["Variables"] == {"DENSITY": 1.0, "DYNAMIC_VISCOSITY": 0.01}


# --------------------------------------------------------------------------------- logs, results, messages


def test_log_of_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(kratos, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks)) ** 2))
    log = StepLog()
    for text in ("fluxloom: threads 2", 'fluxloom: version 10.4."4"--0-Release-x86_64', "Read materials: Started"):
        log.line(text)
    for solver in ("AMGCLSolver: 19 iterations 1.6e-07 residual", "nothing"):
        log.line("fluxloom: step")
        for text in (
            "CONVERGENCE CHECK:",
            "FRAC VEL.: ratio = 0.1; exp.ratio = 0.001 abs = 1.7",
            "Calculating Pressure.",
        ):
            log.line(f"FractionalStepStrategy: {text}")
        log.line(solver)
        log.line("FractionalStepStrategy: Updating Velocity.")
        log.line("fluxloom: done 2.5 4.5 7")
    assert (log.threads, log.version, log.sweeps) == (2, "10.4.4", 2)
    assert log.iterations == [19, 7]  # amgcl says it in a line, others when they are asked
    assert log.cpu_seconds == [4.5, 4.5]
    assert (log.seconds, log.momentum, log.pressure) == ([2.5, 2.5], [1.0, 7.0], [3.0, 9.0])
    log.require(2, 2, 20)
    for steps, threads, most, words in ((3, 2, 20, "2 steps"), (2, 1, 20, "on 2 threads"), (2, 2, 19, "19 iterations")):
        with pytest.raises(FluxloomError, match=words):
            log.require(steps, threads, most)


def test_result(tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    with pytest.raises(FluxloomError, match="no result of Kratos"):
        read_result(path, 2)
    np.savez(path, velocity=np.ones((2, 3)), pressure=np.zeros(2))
    with pytest.raises(FluxloomError, match=r"no result of Kratos: .*reaction"):
        read_result(path, 2)
    np.savez(path, velocity=np.ones((2, 3)), pressure=np.zeros(2), reaction=np.ones((2, 3)))
    assert read_result(path, 2)[0].shape == (2, 3)
    with pytest.raises(FluxloomError, match=r"velocity has the shape \(2, 3\) instead of \(3, 3\)"):
        read_result(path, 3)


def test_without_kratos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, sys.executable)
    told: list[str] = []
    words = rf"not {sys.executable}: `pip install KratosMultiphysics Kratos\w+` .*--python or {VARIABLE}"
    with pytest.raises(DeviceUnavailable, match=words):
        KratosBench().run(KratosOptions(cells="2", threads=1), told.append)
    assert told == []  # nothing was measured
    with pytest.raises(DeviceUnavailable, match="not /nowhere/python:"):
        find_kratos("/nowhere/python")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (KratosOptions(cells="many"), "--cells 'many'"),
        (KratosOptions(cells="4", mesh="a.msh"), "give one of them"),
        (KratosOptions(iterations=3), "the first 3 steps are not timed"),
        (KratosOptions(rounds=2), "no rounds"),
        (KratosOptions(model="edge"), "--model 'edge'; did you mean 'edges'.*finite volumes"),
        (KratosOptions(device="reference"), "--device cpu"),
    ],
)
def test_wrong_options(options: KratosOptions, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kratos_bench, "find_kratos", lambda _: Kratos(""))
    with pytest.raises(CaseError, match=words):
        KratosBench().run(options, print)


def test_one_model() -> None:
    assert kratos_bench._chosen("") == tuple(OURS)
    assert kratos_bench._chosen("edges") == tuple(name for name in OURS if name.startswith("edges, ")) != ()


# ------------------------------------------------------------------------------------------- the record


def test_record(fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a flow of ours that is that of the false Kratos but for a half, and of one that fails."""

    def half(context: Context, run: CavityRun) -> FlowRun:
        points = run.cavity.mesh.points
        velocity = np.stack([0.5 * points[:, 1], 0.25 * points[:, 0], 0.0 * points[:, 0]], axis=1)
        return FlowRun(
            (9.0, 9.0, 9.0, 1.0, 2.0, 6.0), 6 * (0.5,), 5.0, run.cavity.profiles(velocity, run.viscosity), {"k": 1}
        )

    def broken(context: Context, run: CavityRun) -> FlowRun:
        raise FluxloomError("broken: no steps")

    monkeypatch.setattr(kratos_bench, "OURS", table := {"half": half, "broken": broken})
    monkeypatch.setattr("fluxloom_lab.problems.tetra_flows.OURS", table)
    told: list[str] = []
    record = benches()["kratos"].run(KratosOptions(cells="2", threads=2, iterations=6), told.append).as_json()
    metrics = record["metrics"]
    assert record["sizes"] == {"cells": 48, "points": 27}
    assert (metrics["best"], metrics["ms_per_step"], metrics["threads"]) == ("half", 2000.0, 2)
    assert metrics["flows"][0]["cpu_ms_per_step"] == 500.0
    assert metrics["kratos_over_best_cpu"] == min(row["cpu_ms_per_step"] for row in metrics["peers"]) / 500.0
    assert metrics["dt"] == pytest.approx(0.5 / 48 ** (1 / 3))
    assert metrics["flows"][1] == {"flow": "broken", "error": "broken: no steps"}
    assert metrics["flows"][0]["drag"] == pytest.approx(-0.01 * 0.75)
    peers = {row["flow"]: row for row in metrics["peers"]}
    assert {name: row["pressure_iterations"] for name, row in peers.items()} == {
        "kratos amgcl": 19, "kratos cg, diagonal": 40,
    }  # fmt: skip
    for row in peers.values():
        assert (row["version"], row["momentum_solves"], row["reaction"]) == ("9.8.7", 2.0, 1.0)
        assert row["middle_reaction"] == pytest.approx(row["reaction"])  # one point moves, and two triangles are it
        assert row["ms_per_step_best"] <= row["ms_per_step"] <= row["ms_per_step_worst"]
        assert row["drag"] == pytest.approx(-0.01 * 1.5)
    assert [(row["flow"], row["from"]) for row in metrics["differences"]] == [("half", name) for name in peers]
    for row in metrics["differences"]:
        assert row["u_max"] == pytest.approx(0.5 * profile_points()[:, 1].max())
        assert row["drag_percent"] == row["middle_drag_percent"] == pytest.approx(-50.0)
    assert "broken: broken: no steps" in told


@pytest.mark.long
def test_kratos_itself() -> None:
    """At t = 1 Kratos and edges agree within some per cent, finite volumes as well as so coarse a mesh allows."""
    try:
        find_kratos()
    except DeviceUnavailable as error:
        pytest.skip(str(error))
    record = KratosBench().run(KratosOptions(cells="10", threads=2, iterations=36), lambda _: None)
    rows = record.metrics["differences"]
    assert len(rows) == 2 * len(OURS)
    for row in rows:
        near = row["flow"].startswith("edges")
        assert row["u_l2"] < (0.02 if near else 0.06), row
        assert row["v_l2"] < (0.01 if near else 0.03), row
        assert abs(row["drag_percent"]) < 10 or not near, row
    first, second = record.metrics["peers"]
    assert first["drag"] == pytest.approx(second["drag"], rel=1e-3)
    assert second["pressure_iterations"] > first["pressure_iterations"] > 0
