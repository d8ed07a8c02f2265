"""The examples of flow on a staggered grid: each is correct and runs, and a number of it is pinned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cases.staggered.case import StaggeredCase
from fluxloom.dsl.context import Context
from fluxloom.flows.staggered.flow import Staggered
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("staggered_cavity", "staggered_channel")


def build(name: str, **tables: dict[str, Any]) -> FlowRun[Staggered]:
    """Return an example with some keys changed."""
    case, application = load_case(EXAMPLES / f"{name}.toml")
    given = case.model_dump()
    for table, keys in tables.items():
        given[table] |= keys
    runner = application.build(StaggeredCase.model_validate(given), Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, Staggered)
    return runner


def finished(runner: FlowRun[Staggered], folder: Path, steps: int = 10**9) -> FlowRun[Staggered]:
    """Return a runner at its end, or after some steps, with its history."""
    runner.begin(ResultFolder(folder))
    while not runner.finished and runner.flow.solver.steps < steps:
        runner.advance()
    runner.finish(pictures=False)
    return runner


@pytest.mark.parametrize("name", NAMES)
def test_correct(name: str) -> None:
    """The file is correct, and its estimate fits a machine."""
    case, application = load_case(EXAMPLES / f"{name}.toml")
    assert application.name == "staggered"
    assert case.case.name == name
    assert application.estimate(case).memory < 8 << 30


def test_cavity(tmp_path: Path) -> None:
    """On 24 x 24 cells: the flow is steady, nothing is lost, and the least u is pinned."""
    runner = finished(build("staggered_cavity", mesh={"nx": 24, "ny": 24}, time={"steady": 1e-5}), tmp_path)
    u = runner.flow.solver.faces()[0][:, 12]
    assert runner.residual() < 1e-5
    assert u.min() == pytest.approx(-0.29333, abs=5e-5)
    assert runner.history.column("imbalance").max() < 1e-15


@pytest.mark.long
def test_cavity_of_the_file(tmp_path: Path) -> None:
    """64 x 64 cells: the least u is 5.7 per cent from Botella and Peyret."""
    runner = finished(build("staggered_cavity"), tmp_path)
    assert runner.flow.solver.faces()[0][:, 32].min() == pytest.approx(-0.3663, abs=2e-4)


def test_channel(tmp_path: Path) -> None:
    """In a small box the mean velocity is kept, the force is what friction takes and inertia, the profile is there."""
    mesh = {"x": [0.0, 3.0], "z": [0.0, 1.5], "nx": 12, "ny": 16, "nz": 8}
    runner = build("staggered_channel", mesh=mesh, statistics={"every": 5, "start": 0.0}, history={"every": 5})
    finished(runner, tmp_path, steps=20)
    assert runner.flow.solver.grid.stretched == 1
    assert runner.history.column("bulk_u")[1:] == pytest.approx(1.0, rel=1e-12)
    assert (runner.history.column("walls.force_x") > 0).all()
    profile = np.genfromtxt(tmp_path / "profile.csv", delimiter=",", names=True)
    widths = runner.flow.solver.grid.widths(1)
    assert (profile["u"] * widths).sum() / 2.0 == pytest.approx(1.0, rel=1e-7)
    assert profile["u_rms"].max() > 0.05
