"""Walls that turn or slide, in every solver that has walls with friction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context

HEAD = """
[case]
name = "walls"
solver = "{solver}"
[mesh]
x = [-1.0, 1.0]
y = [-1.0, 1.0]
nx = 4
ny = 4
{mesh}
"""
BOX = """
[boundary.xmin]
type = "wall"
[boundary.xmax]
type = "wall"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"
{wall}
[time]
dt = 0.01
[run]
iterations = 5
threads = 1
"""
FLOW = '[fluid]\nviscosity = 0.1\n'
BODIES = {
    "incompressible": ("", FLOW),
    "staggered": ("", FLOW),
    "edge_flow": ('kind = "triangle"', FLOW),
}


def built(path: Path, text: str) -> Any:
    path.write_text(text, encoding="utf-8")
    case, application = load_case(path)
    return application.build(case, Context("cpu", threads=1, tuning=False))


def fields(path: Path, text: str) -> dict[str, np.ndarray]:
    """Return the fields behind five steps."""
    runner = built(path, text)
    for _ in range(5):
        runner.advance()
    return {name: np.asarray(values) for name, values in runner.fields().items()}


def flow(solver: str, wall: str) -> str:
    mesh, fluid = BODIES[solver]
    return HEAD.format(solver=solver, mesh=mesh) + fluid + BOX.format(wall=wall)


@pytest.mark.parametrize("solver", list(BODIES))
def test_a_formula_is_a_velocity(tmp_path: Path, solver: str) -> None:
    """A lid that slides by a formula slides as one by numbers does; y is 1 there."""
    path = tmp_path / "case.toml"
    by_numbers = fields(path, flow(solver, "velocity = [1.0, 0.0]"))
    by_formula = fields(path, flow(solver, 'velocity_x = "y"'))
    assert np.abs(by_numbers["u"]).max() > 1e-3
    for name in ("u", "v", "p"):
        assert np.abs(by_numbers[name] - by_formula[name]).max() < 1e-12


@pytest.mark.parametrize("solver", list(BODIES))
@pytest.mark.parametrize("wall", ['velocity_y = "1"', "spin = 1.0", 'velocity_x = "-y"\nvelocity_y = "x"'])
def test_a_wall_does_not_sweep_through_the_fluid(tmp_path: Path, solver: str, wall: str) -> None:
    with pytest.raises(CaseError, match=r"ymax.*along itself"):
        built(tmp_path / "case.toml", flow(solver, wall))


DISC = """
[boundary.zmin]
type = "wall"
[boundary.zmax]
type = "wall"
{wall}
"""


@pytest.mark.parametrize("solver", ["incompressible", "staggered", "edge_flow"])
def test_a_turning_lid(tmp_path: Path, solver: str) -> None:
    """A lid of a box in space that turns by its spin about an axis in its middle, or by formulas."""
    mesh = "z = [0.0, 1.0]\nnz = 3" + ('\nkind = "tetra"' if solver == "edge_flow" else "")
    found = []
    for wall in ("spin = [0.0, 0.0, 2.0]\nspin_centre = [0.5, 0.0, 0.0]",
                 'velocity_x = "-2 * y"\nvelocity_y = "2 * (x - 0.5)"'):  # fmt: skip
        text = HEAD.format(solver=solver, mesh=mesh) + FLOW + DISC.format(wall=wall) + BOX.format(wall="")
        found.append(fields(tmp_path / "case.toml", text))
    assert np.abs(found[0]["u"]).max() > 1e-2
    for name in ("u", "v", "w", "p"):
        assert np.abs(found[0][name] - found[1][name]).max() < 1e-10


GAS = """
[gas]
gamma = 1.4
constant = 1.0
viscosity = { type = "constant", mu = 0.1 }
[initial]
density = "1"
pressure = "1"
"""


def test_a_wall_in_gas(tmp_path: Path) -> None:
    base = HEAD.format(solver="compressible", mesh="") + GAS + BOX.replace("dt = 0.01", "end = 1.0")
    by_numbers = fields(tmp_path / "case.toml", base.format(wall="velocity = [0.1, 0.0]"))
    by_formula = fields(tmp_path / "case.toml", base.format(wall='velocity_x = "0.1 * y"'))
    assert np.abs(by_numbers["u"]).max() > 1e-5
    assert np.abs(by_numbers["u"] - by_formula["u"]).max() < 1e-12
    with pytest.raises(Exception, match=r"ymax.*along itself"):
        built(tmp_path / "case.toml", base.format(wall="spin = 1.0"))


LATTICE = """
[case]
name = "lid"
solver = "lattice"
[mesh]
nx = 8
ny = 8
length = 1.0
[fluid]
reynolds = 10
[time]
lattice_velocity = 0.05
[boundary.xmin]
type = "wall"
[boundary.xmax]
type = "wall"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"
{wall}
[run]
iterations = 5
threads = 1
"""


def test_a_wall_of_a_lattice(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    by_numbers = fields(path, LATTICE.format(wall="velocity = [1.0, 0.0]"))
    by_formula = fields(path, LATTICE.format(wall='velocity_x = "y"'))
    assert np.abs(by_numbers["u"]).max() > 1e-3
    assert np.abs(by_numbers["u"] - by_formula["u"]).max() < 1e-6
