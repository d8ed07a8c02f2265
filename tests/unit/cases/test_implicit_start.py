"""Implicit steps by their defaults find steps by themselves: flows whose residual stays where it is for long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context

SPECIFIC_HEAT = 1.4 * 287.0 / 0.4

COUETTE = """
[case]
name = "couette"
solver = "compressible"
[mesh]
x = [0.0, 0.25]
y = [0.0, 1.0]
nx = 4
ny = {cells}
periodic = [["xmin", "xmax"]]
[gas]
viscosity = {{ type = "constant", mu = {mu} }}
constant = 287.0
prandtl = 0.72
[flow]
mach = 0.5
temperature = 300.0
pressure = 100000.0
[initial]
velocity_x = "{speed} * y"
velocity_y = "0"
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"
velocity = [{speed}, 0.0]
temperature = 300.0
[scheme]
limiter = "none"
[time]
integrator = "implicit"
residual_drop = 1e-10
[run]
iterations = 60
threads = 1
"""


@pytest.mark.parametrize(("cells", "mu", "speed"), [(32, 1.0, 300.0), (16, 0.2, 150.0)])
def test_heat_of_couette_flow(tmp_path: Path, cells: int, mu: float, speed: float) -> None:
    """One wall is adiabatic: what friction heats goes through the other, T = T_1 + Pr U^2 (1 - y^2) / (2 c_p)."""
    path = tmp_path / "case.toml"
    path.write_text(COUETTE.format(cells=cells, mu=mu, speed=speed), encoding="utf-8")
    case, application = load_case(path)
    runner: Any = application.build(case, Context("cpu", threads=1, tuning=False))
    steps = 0
    while runner.residual() > 1e-10 or not steps:
        runner.advance()
        steps += 1
        assert steps <= 60
    states = runner.flow.solver.states()
    y = runner.flow.solver.volumes.centres[: len(states), 1]
    found = states[:, 3] / (287.0 * states[:, 0])
    want = 300.0 + 0.72 * speed**2 * (1.0 - y**2) / (2.0 * SPECIFIC_HEAT)
    np.testing.assert_allclose(found, want, atol=0.005 * (want.max() - 300.0))
