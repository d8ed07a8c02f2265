"""The examples of lattice Boltzmann flow: each is correct and runs, and a number of it is pinned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("cavity", "cylinder", "moving", "particles", "schaefer_turek", "sphere", "taylor_green")


def ran(name: str, folder: Path, count: int, **tables: dict[str, Any]) -> FlowRun[Lattice]:
    """Return an example, some keys of which are changed, after some steps or at its end."""
    case, application = load_case(EXAMPLES / f"lattice_{name}.toml")
    given = case.model_dump()
    for table, keys in tables.items():
        given[table] |= keys
    assert isinstance(application, LatticeApplication)
    runner = application.build(LatticeCase.model_validate(given), Context("cpu", threads=1, tuning=False))
    runner.begin(ResultFolder(folder))
    while not runner.finished and runner.flow.solver.steps < count:
        runner.advance()
    return runner


@pytest.mark.parametrize("name", NAMES)
def test_correct(name: str) -> None:
    """The file is correct, and its estimate fits a machine."""
    case, application = load_case(EXAMPLES / f"lattice_{name}.toml")
    assert application.name == "lattice"
    assert case.case.name == f"lattice_{name}"
    assert application.estimate(case).memory < 1 << 30


def test_cylinder(tmp_path: Path) -> None:
    """The first 400 steps: drag is pinned."""
    runner = ran("cylinder", tmp_path, 400)
    assert runner.history.column("cylinder.drag")[-1] == pytest.approx(1.3338, abs=2e-3)
    assert runner.history.column("density")[-1] == pytest.approx(1.000513, abs=2e-5)


def test_moving(tmp_path: Path) -> None:
    """The cylinder goes where the formula says, and its drag is pinned."""
    runner = ran("moving", tmp_path, 100)
    assert runner.history.column("cylinder.x")[-1] == pytest.approx(-0.46369, abs=1e-5)
    assert runner.history.column("cylinder.drag")[-1] == pytest.approx(-11.338, abs=2e-2)


@pytest.mark.long
def test_schaefer_turek(tmp_path: Path) -> None:
    """With 10 cells across the cylinder drag is 3 per cent from the published 5.58, lift in the range."""
    runner = ran("schaefer_turek", tmp_path, 10**9)
    assert runner.history.column("cylinder.drag")[-1] == pytest.approx(5.58, rel=0.04)
    assert runner.history.column("cylinder.lift")[-1] == pytest.approx(0.0107, abs=0.001)


@pytest.mark.long
def test_cavity(tmp_path: Path) -> None:
    """The least u on the centre line is within two per cent of Botella and Peyret."""
    runner = ran("cavity", tmp_path, 10**9, mesh={"nx": 65, "ny": 65})
    assert runner.residual() < 1e-4
    assert runner.flow.solver.velocity()[:, 32, 1].min() * runner.flow.units.speed == pytest.approx(-0.38857, rel=0.02)
