"""A word means the same in all solvers: kinetic energy, imbalance, drag, forces on walls, the time of averages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.core.errors import CaseError
from fluxloom.values.expressions import Expression

PLANE = """
[case]
name = "one"
solver = "{solver}"
[initial]
velocity_x = "2"
[history]
every = 1
[run]
iterations = 2
threads = 1
[output]
picture = false
residual = false
"""
BOX = '[mesh]\nx = [0.0, 3.0]\nnx = 6\nny = 4\n'
JOINED = 'periodic = [["xmin", "xmax"], ["ymin", "ymax"]]\n'
SLIP = (
    '[boundary.xmin]\ntype = "inflow"\nvelocity = [2.0, 0.0]\n[boundary.xmax]\ntype = "outflow"\n'
    '[boundary.ymin]\ntype = "symmetry"\n[boundary.ymax]\ntype = "symmetry"\n'
)
FLUID = "[fluid]\nviscosity = 0.01\n"
SOLVERS = {
    "incompressible": BOX + JOINED + FLUID + "[time]\ndt = 0.01\n",
    "staggered": BOX + JOINED + FLUID + "[time]\ndt = 0.01\n",
    "edge_flow": BOX + 'kind = "triangle"\n' + SLIP + FLUID + "[time]\ndt = 0.001\n",
    "lattice": "[mesh]\nnx = 12\nny = 4\nspacing = 0.25\n[reference]\nvelocity = 2.0\nlength = 1.0\n" + FLUID
    + "[time]\nlattice_velocity = 0.05\n",
}  # fmt: skip

Run = Callable[..., SimpleNamespace]


def ran(text: str, folder: Path, fluxloom: Run) -> tuple[np.ndarray, str]:
    """Return the history and what the run says."""
    folder.mkdir(exist_ok=True)
    (folder / "one.toml").write_text(text)
    done = fluxloom("run", folder / "one.toml", "--output", folder / "out")
    assert done.code == 0, done.text
    return np.genfromtxt(folder / "out" / "history.csv", delimiter=",", names=True), done.text


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_kinetic_energy_is_the_integral(solver: str, fluxloom: Run, tmp_path: Path) -> None:
    history, text = ran(PLANE.format(solver=solver) + SOLVERS[solver], tmp_path, fluxloom)
    assert history["kinetic_energy"] == pytest.approx(6.0, rel=1e-6)
    row = next(line for line in text.splitlines() if line.startswith("kinetic energy"))
    assert float(row.split()[-1]) == pytest.approx(6.0, rel=1e-6)
    if solver == "incompressible":
        assert history["mean_kinetic_energy"] == pytest.approx(2.0)


WEIGHT = """
[mesh]
x = [0.0, 2.0]
nx = 10
ny = 6
[fluid]
viscosity = 0.05
force = [0.0, -3.0]
[boundary.xmin]
type = "wall"
[boundary.xmax]
type = "wall"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"
[forces.all]
patches = ["xmin", "xmax", "ymin", "ymax"]
"""


@pytest.mark.parametrize("scheme", ["adams-bashforth", "runge-kutta"])
def test_walls_carry_the_weight(scheme: str, fluxloom: Run, tmp_path: Path) -> None:
    """Fluid at rest in a closed box weighs on its walls what it weighs."""
    time = f'[time]\ndt = 0.01\nscheme = "{scheme}"\n'
    case = PLANE.format(solver="staggered").replace('velocity_x = "2"', "")
    history, _ = ran(case + time + WEIGHT, tmp_path, fluxloom)
    assert history["allforce_y"][-1] == pytest.approx(-6.0, rel=1e-10)
    assert history["allforce_x"][-1] == pytest.approx(0.0, abs=1e-10)


LID = """
[mesh]
nx = 12
ny = 12
[fluid]
viscosity = 0.05
[boundary.ymax]
type = "wall"
velocity = [1.0, 0.0]
[boundary.ymin]
type = "wall"
[boundary.xmin]
type = "wall"
[boundary.xmax]
type = "wall"
[forces.all]
patches = ["xmin", "xmax", "ymin", "ymax"]
[forces.ymax]
[time]
dt = 0.01
"""


@pytest.mark.parametrize("scheme", ["adams-bashforth", "runge-kutta"])
def test_forces_on_the_walls_of_a_driven_box_balance(scheme: str, fluxloom: Run, tmp_path: Path) -> None:
    """When nothing changes any more the walls of a closed box carry nothing in all."""
    case = PLANE.format(solver="staggered").replace('velocity_x = "2"', "").replace("every = 1", "every = 500")
    text = case.replace("iterations = 2", "iterations = 1500") + LID + f'scheme = "{scheme}"\n'
    history, _ = ran(text, tmp_path, fluxloom)
    assert abs(history["ymaxforce_x"][-1]) > 0.1
    assert history["allforce_x"][-1] == pytest.approx(0.0, abs=1e-4)
    assert history["allforce_y"][-1] == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("solver", ["incompressible", "staggered"])
def test_averages_say_the_time_that_they_cover(solver: str, fluxloom: Run, tmp_path: Path) -> None:
    case = PLANE.format(solver=solver).replace("iterations = 2", "iterations = 25") + SOLVERS[solver]
    _, text = ran(case + "[statistics]\nevery = 10\n", tmp_path, fluxloom)
    row = next(line for line in text.splitlines() if line.startswith("averages"))
    assert row.split(maxsplit=1)[1] == "3 samples, over a time of 0.25"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("where((x > 0.5) & (y > 0.5), 1, 0)", [0, 0, 1]), ("where((x > 0.5) | (y > 0.5), 1, 0)", [0, 1, 1]),
        ("where(~(x > 0.5) & ((y > 0.5) | (x < 0.1)), 2, 3)", [2, 2, 3]),
        ("(x > 0.5) | (y < 0.5) and x < 2", [1, 0, 1]),
    ],
)  # fmt: skip
def test_tests_are_joined(text: str, wanted: list[float]) -> None:
    assert Expression(text)(np.array([0.0, 0.2, 0.8]), np.array([0.1, 0.9, 0.7])).tolist() == wanted


@pytest.mark.parametrize("text", ["x > 0.5 & y > 0.5", "x | y", "(x > 1) & y", "~x"])
def test_what_is_no_test_is_refused(text: str) -> None:
    with pytest.raises(CaseError, match=r"is no test, and & \| ~ join tests: put brackets"):
        Expression(text)
