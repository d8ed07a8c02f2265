"""A force that is a potential leaves a flow alone: at rest between walls, and along outflows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context
from fluxloom.solvers.incompressible.forces import Forces
from fluxloom.solvers.incompressible.probes import Probes

CHANNEL = """
[case]
name = "channel"
solver = "{solver}"
[mesh]
x = [0.0, 2.0]
nx = 8
ny = 6
{mesh}
[fluid]
viscosity = 0.01
{fluid}
[boundary.xmin]
type = "inflow"
velocity_x = "6*y*(1-y)"
[boundary.xmax]
type = "outflow"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "{top}"
[initial]
velocity_x = "6*y*(1-y)"
{more}
[time]
dt = 0.005
[run]
iterations = 20
threads = 1
"""
SCALAR = """
[scalar.t]
diffusivity = 0.0
expansion = 1.0
reference = {reference}
initial = "{profile}"
[scalar.t.boundary.xmin]
type = "value"
value = "{profile}"
[scalar.t.boundary.xmax]
type = "outflow"
[scalar.t.boundary.ymin]
type = "adiabatic"
[scalar.t.boundary.ymax]
type = "{top}"
"""
TIGHT = "[pressure]\nrtol = 1e-9"
TRIANGLES = 'kind = "triangle"\nperturb = 0.2'
UNIFORM = "force = [0.5, -2.0]"
BUOYANT = "gravity = [0.0, -2.0]"
SOLVERS = [("incompressible", ""), ("incompressible", TRIANGLES), ("edge_flow", TRIANGLES), ("staggered", "")]


def after(path: Path, text: str, steps: int = 20) -> Any:
    """Return the runner behind some steps."""
    path.write_text(text, encoding="utf-8")
    case, application = load_case(path)
    runner: Any = application.build(case, Context("cpu", threads=1, tuning=False))
    for _ in range(steps):
        runner.advance()
    return runner


def velocity(runner: Any) -> np.ndarray:
    fields = runner.fields()
    return np.stack([fields["u"], fields["v"]], axis=1)


def channel(solver: str, mesh: str = "", fluid: str = "", more: str = "", top: str = "wall") -> str:
    pressure = "" if solver == "staggered" else TIGHT
    return CHANNEL.format(solver=solver, mesh=mesh, fluid=fluid, top=top, more=f"{pressure}\n{more}")


@pytest.mark.parametrize("top", ["wall", "outflow"])
@pytest.mark.parametrize(("solver", "mesh"), SOLVERS)
def test_a_uniform_force_leaves_a_channel_alone(tmp_path: Path, solver: str, mesh: str, top: str) -> None:
    """The outflows touch where the upper wall is one too: they have one level."""
    free = after(tmp_path / "case.toml", channel(solver, mesh, top=top))
    forced = after(tmp_path / "case.toml", channel(solver, mesh, UNIFORM, top=top))
    assert np.abs(velocity(free) - velocity(forced)).max() < 1e-6
    if solver != "staggered":
        assert np.ptp(forced.fields()["p"]) > np.ptp(free.fields()["p"]) + 1.0


WALLS = ("ymin", "ymax")
PLACES = {"inside": (1.0, 0.3), "low": (1.97, 0.03), "out": (1.9, 0.75)}


@pytest.mark.parametrize("by", ["force", "scalar"])
@pytest.mark.parametrize("mesh", ["", 'stretch_y = 1.5', 'kind = "triangle"', TRIANGLES])
def test_probes_and_forces_beside_an_outflow_know_its_pressure(tmp_path: Path, mesh: str, by: str) -> None:
    """A force across the outflow, -2 along y, adds -2 (y - 1/2) to the pressure, up to the outflow."""
    scalar = SCALAR.format(profile="0", reference=1.0, top="adiabatic")
    given = ("force = [0.0, -2.0]", "") if by == "force" else (BUOYANT, scalar)
    found = []
    for fluid, more in (("", ""), given):
        runner = after(tmp_path / "case.toml", channel("incompressible", mesh, fluid, more))
        probes = Probes(runner.flow.solver, PLACES)
        probes.sample()
        forces = [Forces(runner.flow.solver, side).now().pressure[1] for side in WALLS]
        found.append((probes.series().pressure[-1], forces))
    (free, before), (forced, weight) = found
    assert forced - free == pytest.approx(np.array([0.4, 0.94, -0.5]), abs=1e-6)
    assert np.array(weight) - before == pytest.approx(np.array([-2.0, -2.0]), abs=1e-6)


@pytest.mark.parametrize("mesh", ["", TRIANGLES])
@pytest.mark.parametrize(("profile", "reference"), [("1", 0.0), ("1", 0.4)])
def test_uniform_buoyancy_leaves_a_channel_alone(tmp_path: Path, mesh: str, profile: str, reference: float) -> None:
    free = after(tmp_path / "case.toml", channel("incompressible", mesh))
    scalar = SCALAR.format(profile=profile, reference=reference, top="adiabatic")
    forced = after(tmp_path / "case.toml", channel("incompressible", mesh, BUOYANT, scalar))
    assert np.abs(velocity(free) - velocity(forced)).max() < 1e-6


def test_a_stratified_stream_leaves_as_it_came(tmp_path: Path) -> None:
    """Uniform flow of a fluid whose density falls linearly with height, between planes of symmetry."""
    scalar = SCALAR.format(profile="1+2*y", reference=0.0, top="adiabatic")
    text = channel("incompressible", "", BUOYANT, scalar, "symmetry")
    text = text.replace('"6*y*(1-y)"', '"1"').replace('ymin]\ntype = "wall"', 'ymin]\ntype = "symmetry"')
    found = velocity(after(tmp_path / "case.toml", text, 60))
    assert np.abs(found - [1.0, 0.0]).max() < 1e-6


@pytest.mark.parametrize(("solver", "mesh"), SOLVERS)
def test_rest_stays_rest(tmp_path: Path, solver: str, mesh: str) -> None:
    text = channel(solver, mesh, UNIFORM).replace('"6*y*(1-y)"', '"0"').replace('"outflow"', '"wall"')
    text = text.replace('type = "inflow"\nvelocity_x = "0"', 'type = "wall"')
    runner = after(tmp_path / "case.toml", text, 40)
    assert np.abs(velocity(runner)).max() < 1e-6
    span = 2.0 * 0.5 * 0.8 + 2.0 * 0.8
    assert np.ptp(runner.fields()["p"]) > span - 0.3


def test_a_force_drives_a_flow_from_one_outflow_to_another(tmp_path: Path) -> None:
    """They do not touch: each has its own level."""
    for solver, mesh in (("incompressible", ""), ("edge_flow", TRIANGLES)):
        text = channel(solver, mesh, UNIFORM).replace('type = "inflow"\nvelocity_x = "6*y*(1-y)"', 'type = "outflow"')
        text = text.replace('[initial]\nvelocity_x = "6*y*(1-y)"', "")
        found = velocity(after(tmp_path / "case.toml", text, 20))
        assert found[:, 0].max() == pytest.approx(0.5 * 20 * 0.005, rel=0.05)
        assert np.abs(found[:, 1]).max() < 5e-3


LID = """
[case]
name = "lid"
solver = "staggered"
[mesh]
nx = 6
ny = 5
[fluid]
viscosity = 0.1
force = [0.0, -3.0]
[boundary.xmin]
type = "wall"
[boundary.xmax]
type = "wall"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"
velocity = [1.0, 0.0]
[forces.all]
patches = ["xmin", "xmax", "ymin", "ymax"]
[forces.floor]
patches = ["ymin", "ymax"]
[time]
dt = 0.03
scheme = "runge-kutta"
[run]
iterations = 300
threads = 1
"""


def test_the_walls_of_a_closed_box_carry_its_weight(tmp_path: Path) -> None:
    """To round-off, when nothing changes any more: a lid moves the fluid, and the walls hold it."""
    runner = after(tmp_path / "case.toml", LID, 300)
    assert runner.residual() < 1e-11
    everything = runner.monitors[0].now().force
    assert everything == pytest.approx([0.0, -3.0], abs=1e-10)
    assert np.abs(velocity(runner)).max() > 0.1
