"""Steps of compressible cases: implicit, multigrid, a CFL number that grows, a mesh that turns."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.compressible.tables import ImplicitTable, MultigridTable
from fluxloom.cases.files.loading import load_case
from fluxloom.cases.files.strategy_tables import strategy_of
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.flows.compressible.flow import Compressible
from fluxloom.fv.geometry.agglomeration import Grouping
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.march import march
from fluxloom.run.results.files import ResidualLog
from fluxloom.run.results.results import ResultFolder
from fluxloom.solvers.compressible.cycles import ExplicitSmoother, ImplicitSmoother, Multigrid, WCycle
from fluxloom.solvers.compressible.implicit import Implicit

CASE = """
[case]
name = "stream"
solver = "compressible"

[mesh]
x = [0.0, 2.0]
nx = 12
ny = 6

[flow]
mach = 0.5
alpha = 2.0

[boundary.xmin]
type = "far-field"
[boundary.xmax]
type = "far-field"
[boundary.ymin]
type = "slip"
[boundary.ymax]
type = "slip"

[history]
every = 1

[time]
residual_drop = 1e-9

[run]
iterations = 200
threads = 1
"""
IMPLICIT = CASE.replace(
    "residual_drop = 1e-9", 'residual_drop = 1e-9\nintegrator = "implicit"\n[implicit]\ncfl = 20.0\nkrylov = 12'
)
MULTIGRID = CASE.replace(
    "residual_drop = 1e-9", 'residual_drop = 1e-7\nintegrator = "multigrid"\n[multigrid]\nlevels = 2\nstart = 2'
)
TURNING = """
[rotation]
rate = 20.0
centre = [1.0, 0.5]
"""
BOX = re.sub(r'type = ".*"', 'type = "slip"\nvelocity = "mesh"', CASE.replace("mach = 0.5\nalpha = 2.0", "")) + TURNING


def build(text: str, folder: Path) -> FlowRun[Compressible]:
    path = folder / "case.toml"
    path.write_text(text, encoding="utf-8")
    case, application = load_case(path)
    runner = application.build(case, Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, Compressible)
    return runner


def run(text: str, folder: Path, steps: int = 0) -> FlowRun[Compressible]:
    """Return a runner at its end, or after some steps as if it had been killed there."""
    folder.mkdir(exist_ok=True)
    runner = build(text, folder)
    runner.begin(ResultFolder(folder))
    march(runner, steps or 200, ResidualLog(None))
    if not steps:
        runner.finish(pictures=False)
    return runner


@pytest.mark.parametrize(("kind", "table"), [(Implicit, ImplicitTable), (Multigrid, MultigridTable)])
def test_tables_have_the_fields_of_the_objects(kind: Any, table: Any) -> None:
    """And their defaults, whatever fields there will be."""
    assert set(table.model_fields) == {field.name for field in fields(kind) if field.default is not MISSING}
    assert strategy_of(kind, table()) == kind()


def test_arrays_and_tables_within_a_table() -> None:
    given = {"walls": ["wing"], "grouping": {"passes": 1}}
    found = strategy_of(Multigrid, MultigridTable.model_validate(given))
    assert found == Multigrid(walls=("wing",), grouping=Grouping(1))


def test_numbers_of_the_smoother_by_their_keys_of_before() -> None:
    """They were those of the table, one for all smoothers."""
    for given, wanted in (
        ({"smoother": {"type": "sweeps", "cfl": 3.0, "sweeps": 4}}, ImplicitSmoother(3.0, 4)),
        ({"smoother": {"type": "stages", "coarse_cfl": 1.5}}, ExplicitSmoother(1.5)),
        ({"smoother": {"type": "sweeps", "sweeps": 1}}, ImplicitSmoother(sweeps=1)),
    ):
        assert strategy_of(Multigrid, MultigridTable.model_validate(given)).smoother == wanted
    assert strategy_of(Multigrid, MultigridTable.model_validate({"cycle": "W"})).cycle == WCycle()


def test_implicit(tmp_path: Path) -> None:
    """A steady state in few steps, and what is said of them."""
    whole = run(IMPLICIT, tmp_path / "whole")
    assert whole.finished
    assert whole.residual() < 1e-9
    assert 5 < whole.flow.steps < 60
    history = whole.history
    assert np.nanmax(history.column("products")) > 0.0
    assert history.column("cfl")[1] == 20.0
    assert history.column("cfl")[-1] > 20.0
    assert "products of GMRES in all" in dict(whole.summary())["implicit"]
    calls = {report.name: report.calls for report in whole.reports()}
    assert calls["relax"] > whole.flow.steps
    assert calls["boundary_flux"] > whole.flow.steps
    assert "advance" not in calls
    assert {"relax", "boundary_flux", "derivative"} <= {loop.name for loop in whole.loops}


@pytest.mark.long
def test_multigrid(tmp_path: Path) -> None:
    """Cycles with coarse levels, from a start on these."""
    whole = run(MULTIGRID, tmp_path / "whole")
    assert whole.residual() < 1e-7
    assert 12 < whole.flow.steps < 30
    assert "levels of 72, " in dict(whole.summary())["multigrid"]
    assert whole.history.column("cfl_part")[-1] == 1.0


def test_ramp(tmp_path: Path) -> None:
    """The CFL number grows by equal amounts; in time the steps do, and still hit the end."""
    growing = CASE.replace("residual_drop = 1e-9", "cfl = 0.8\nramp = 4\ncfl_start = 0.4")
    runner = run(growing.replace("iterations = 200", "iterations = 7"), tmp_path, 7)
    assert runner.history.column("cfl")[1:] == pytest.approx([0.4, 0.5, 0.6, 0.7, 0.8, 0.8, 0.8])
    runner = run(growing.replace("ramp = 4", "ramp = 4\nend = 2e-3"), tmp_path / "time")
    lengths = np.diff(runner.history.column("time"))
    assert lengths[1:4] / lengths[0] == pytest.approx([1.25, 1.5, 1.75], rel=0.05)
    assert runner.flow.solver.time == 2e-3


def test_steps_that_double_hit_the_end(tmp_path: Path) -> None:
    """The step before the last may be less than half of what comes next."""
    text = CASE.replace("residual_drop = 1e-9", "cfl = 0.8\nramp = 1\ncfl_start = 0.01\nend = 1e-4")
    runner = run(text, tmp_path)
    assert runner.flow.solver.time == 1e-4


def test_walls_that_turn_with_the_mesh(tmp_path: Path) -> None:
    """Gas that turns with its box stays; the one that is at rest is stirred."""
    turning = 'velocity_x = "-20 * (y - 0.5)"\nvelocity_y = "20 * (x - 1)"\n'
    turning += 'pressure = "101325 * exp(200 * ((x - 1)**2 + (y - 0.5)**2) / (287.05 * 288.15))"\n'
    turning += 'density = "101325 / (287.05 * 288.15) * exp(200 * ((x - 1)**2 + (y - 0.5)**2) / (287.05 * 288.15))"\n'
    change = []
    for start in ("[initial]\n" + turning, ""):
        runner = build(BOX + start, tmp_path)
        before = runner.flow.solver.states().copy()
        for _ in range(5):
            runner.advance()
        change.append(np.abs(runner.flow.solver.states() - before)[:, 1:3].max())
    assert change[0] < 0.2
    assert change[1] > 1.0


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        (IMPLICIT, "krylov = 12", "krilov = 12", "[implicit] has no key 'krilov'; did you mean 'krylov'?"),
        (IMPLICIT, "krylov = 12", "krylov = -1", "implicit: krylov is a whole number of at least 0, not -1"),
        (IMPLICIT, "cfl = 20.0", "cfl = 0.0", "implicit.cfl: above 0 and at most 1e+300 is wanted, not 0.0"),
        (IMPLICIT, "krylov = 12", "krylov = 1.5", "implicit.krylov: must be a whole number, got 1.5"),
        (IMPLICIT, '"implicit"', '"implizit"', "time.integrator: unknown value \"implizit\"; did you mean 'implicit'?"),
        (IMPLICIT, 'integrator = "implicit"', "", '[implicit] is there but time.integrator is "explicit"'),
        (IMPLICIT, "residual_drop = 1e-9", "end = 1.0", 'time.end: integrator = "implicit" makes steps towards a'),
        (IMPLICIT, "residual_drop = 1e-9", "cfl = 2.0", "time: cfl is of explicit steps"),
        (IMPLICIT, "residual_drop = 1e-9", "ramp = 3", 'time: ramp is of integrator = "explicit"'),
        (IMPLICIT, "[history]", '[scheme]\ntime = "rk5"\n[history]', "scheme.time is of explicit steps"),
        (MULTIGRID, "levels = 2", 'cycle = "X"', "multigrid.cycle: unknown cycle 'X'"),
        (MULTIGRID, "levels = 2", 'smoother = { type = "sweeps", sweeps = 0 }', "smoother: sweeps: sweeps is 0"),
        (MULTIGRID, "levels = 2", "cfl = 3.0", "multigrid: cfl is called smoother.cfl now"),
        (MULTIGRID, "residual_drop = 1e-7", "residual_drop = 1e-7\ncfl = 1.0", "time.cfl is of explicit steps: leave"),
        (MULTIGRID, "levels = 2", "levels = 0", "multigrid: no coarse level"),
        (MULTIGRID, "levels = 2", 'walls = ["ymn"]', "multigrid: agglomeration: no patch 'ymn'; did you mean 'ymin'?"),
        (MULTIGRID, "levels = 2", "grouping = { pases = 1 }", "did you mean 'passes'?"),
        (MULTIGRID, "start = 2", "start = 2\n[implicit]", '[implicit] is there but time.integrator is "multigrid"'),
        (CASE, "residual_drop = 1e-9", "ramp = 3", "time: ramp is there but cfl_start is not"),
        (CASE, "residual_drop = 1e-9", "cfl_start = 0.1", "time: cfl_start is there but ramp is not"),
        (CASE, "residual_drop = 1e-9", "ramp = 3\ncfl_start = 1.0", "time: cfl_start (1) is more than cfl (0.8)"),
        (CASE, "residual_drop = 1e-9", "dt = 0.1", "time: dt is of steps in time: give end"),
        (CASE, "residual_drop = 1e-9", "end = 1.0\ndt = 5.0", "time.dt: steps of 5 are longer than cfl = 0.8 allows"),
        (CASE, '"slip"', '"slip"\nvelocity = "mesh"', 'boundary.ymin.velocity = "mesh": the mesh does not turn'),
        (CASE, '"slip"', '"slip"\nvelocity = "mash"', "boundary.ymin.velocity: must be a number, a formula or a table"),
        (CASE, '"far-field"', '"velocity-inlet"\ndensity = 1.0\nvelocity = "mesh"', 'velocity = "mesh" is of walls'),
        (CASE, "[history]", "[rotation]\nrate = 1.0\n[history]", "boundary.ymin: the mesh turns: say whether this"),
        (BOX, "rate = 20.0", "", "rotation.rate: the key is missing"),
        (BOX, "rate = 20.0", "rate = 0.0", "rotation: rate is 0: nothing turns"),
        (BOX, "rate = 20.0", 'rate = "fast"', "rotation.rate: must be a number"),
        (BOX, "rate = 20.0", "rate = [1.0, 2.0]", "rotation.rate: a number, or one about each of three axes"),
        (BOX, "rate = 20.0", "rate = [1.0, 2.0, 3.0]", "rotation.rate: a mesh with 2 dimensions turns about z alone"),
        (BOX, "centre = [1.0, 0.5]", "centre = [1.0]", "rotation.centre: 2 numbers are wanted"),
        (BOX, "[time]", '[time]\nintegrator = "multigrid"', "rotation: coarse levels cannot turn"),
        (BOX.replace("[flow]", "[flow]\nmach = 0.1"), 'type = "slip"\nvelocity = "mesh"', 'type = "far-field"',
         "boundary.xmin: the free stream is not along the axis of rotation"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, text: str, old: str, new: str, message: str) -> None:
    """One message, which names the key."""
    assert old in text
    with pytest.raises(FluxloomError, match=re.escape(message)) as error:
        build(text.replace(old, new, 1), tmp_path)
    assert isinstance(error.value, CaseError)
    assert "mistakes" not in str(error.value)
