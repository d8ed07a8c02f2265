"""Runs towards a steady flow, and the last steps before an end."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context

CAVITY = """
[case]
name = "cavity"
solver = "{solver}"
[mesh]
nx = 4
ny = 4
{mesh}
[fluid]
viscosity = 0.05
[boundary.ymax]
type = "wall"
velocity_x = "16 * x**2 * (1 - x)**2"
[boundary.ymin]
type = "wall"
[boundary.xmin]
type = "wall"
[boundary.xmax]
type = "wall"
{more}
[time]
{time}
[run]
iterations = 3000
threads = 1
"""
TIGHT = "[pressure]\nrtol = 1e-8"


def run(path: Path, text: str, **parts: str) -> tuple[Any, list[float], list[float]]:
    """Return the runner at its end, times and residuals."""
    given = {"solver": "incompressible", "mesh": "", "more": TIGHT, "time": "dt = 0.02"} | parts
    path.write_text(text.format(**given), encoding="utf-8")
    case, application = load_case(path)
    runner: Any = application.build(case, Context("cpu", threads=1, tuning=False))
    times, residuals = [0.0], []
    while not runner.finished and len(residuals) < case.run.iterations:
        runner.advance()
        times.append(runner.flow.time)
        residuals.append(runner.residual())
    return runner, times, residuals


@pytest.mark.parametrize(
    ("mesh", "more"),
    [
        ("", TIGHT),
        ('kind = "triangle"\nperturb = 0.2', TIGHT),
        ("", f'{TIGHT}\n[scalar.t]\ndiffusivity = 0.05\nexpansion = 1.0\ninitial = "y"\n'
             + "".join(f'[scalar.t.boundary.{side}]\ntype = "value"\nvalue = "x"\n' for side in ("xmin", "xmax"))
             + "".join(f'[scalar.t.boundary.{side}]\ntype = "adiabatic"\n' for side in ("ymin", "ymax"))),
    ],
    ids=["quads", "oblique", "buoyancy"],
)  # fmt: skip
def test_a_steady_flow_does_not_depend_on_the_step(tmp_path: Path, mesh: str, more: str) -> None:
    text = CAVITY.replace("viscosity = 0.05", "viscosity = 0.05\ngravity = [0.0, -3.0]") if "scalar" in more else CAVITY
    found = []
    for dt in (0.008, 0.004) if mesh else (0.02, 0.01):
        runner, _, residuals = run(tmp_path / "case.toml", text, mesh=mesh, more=more, time=f"dt = {dt}\nsteady = 1e-8")
        assert residuals[-1] <= 1e-8 * max(residuals)
        found.append(runner.fields())
    for name in ("u", "v", "p"):
        assert np.abs(found[0][name] - found[1][name]).max() < 1e-6
    assert np.abs(found[0]["u"]).max() > 0.1


def test_a_steady_flow_on_edges_does_not_depend_on_the_step(tmp_path: Path) -> None:
    found = []
    for dt in (0.04, 0.02):
        runner, _, _ = run(
            tmp_path / "case.toml", CAVITY, solver="edge_flow", mesh='kind = "triangle"',
            time=f"dt = {dt}\nsteady = 1e-8",
        )  # fmt: skip
        found.append(runner.fields())
    for name in ("u", "v", "p"):
        assert np.abs(found[0][name] - found[1][name]).max() < 1e-6
    assert np.abs(found[0]["u"]).max() > 0.1


def test_the_end_does_not_disturb(tmp_path: Path) -> None:
    """A whole number of equal steps hits an end that is no multiple of the step: the residual goes on falling."""
    _, times, residuals = run(tmp_path / "case.toml", CAVITY, time="dt = 0.02\nend = 4.00001")
    steps = [b - a for a, b in itertools.pairwise(times)]
    assert times[-1] == pytest.approx(4.00001, rel=1e-12)
    assert max(steps) - min(steps) < 1e-12
    assert residuals[-1] < residuals[-2] < residuals[-3]


def test_chosen_steps_are_equal_before_the_end(tmp_path: Path) -> None:
    _, times, _ = run(tmp_path / "case.toml", CAVITY, time="end = 0.7")
    steps = [b - a for a, b in itertools.pairwise(times)]
    assert times[-1] == pytest.approx(0.7, rel=1e-12)
    assert min(steps[-10:]) > 0.94 * max(steps[-10:])


@pytest.mark.parametrize("solver", ["incompressible", "staggered", "edge_flow"])
def test_a_steady_run_passes_its_end(tmp_path: Path, solver: str) -> None:
    mesh, more = ('kind = "triangle"', TIGHT) if solver == "edge_flow" else ("", "")
    time = "dt = 0.02\nsteady = 1e-9\nend = 0.109"
    _, times, _ = run(tmp_path / "case.toml", CAVITY, solver=solver, mesh=mesh, more=more, time=time)
    assert times[-1] == pytest.approx(0.12)


def test_rest_is_steady_at_once(tmp_path: Path) -> None:
    still = CAVITY.replace('velocity_x = "16 * x**2 * (1 - x)**2"', "")
    _, _, residuals = run(tmp_path / "case.toml", still, time="dt = 0.02\nsteady = 1e-9")
    assert residuals == [0.0]
