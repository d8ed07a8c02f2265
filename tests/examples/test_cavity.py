"""The cavity example: it is correct, and its profiles are those of the literature within the error of its mesh.

C. H. Marchi, R. Suero, L. K. Araki: *The lid-driven square cavity flow: numerical solution with a 1024 x 1024 grid*,
J. Braz. Soc. Mech. Sci. Eng. 31 (2009) 186-198: Reynolds number 100, extremes of the velocity on the centrelines.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cases.incompressible.case import IncompressibleCase
from fluxloom.dsl.context import Context
from fluxloom.flows.incompressible.flow import Incompressible
from fluxloom.run.flow_run import FlowRun

CASE = Path(__file__).resolve().parents[2] / "examples" / "cavity.toml"
MARCHI = (-0.2140417, 0.1795728, -0.2538030)
"""Least u on the vertical centreline, largest and least v on the horizontal one."""


def run(n: int, dt: float, end: float) -> FlowRun[Incompressible]:
    """Return the example on ``n x n`` cells, at a time."""
    case, application = load_case(CASE)
    tables = case.model_dump()
    tables["mesh"] |= {"nx": n, "ny": n}
    tables["time"]["dt"] = dt
    changed = IncompressibleCase.model_validate(tables)
    runner = application.build(changed, Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, Incompressible)
    for _ in range(round(end / dt)):
        runner.advance()
    return runner


def extremes(runner: FlowRun[Incompressible], n: int) -> tuple[float, float, float]:
    """Return what `MARCHI` has; the centrelines lie between two cells."""
    fields = runner.fields()
    u, v = fields["u"].reshape(n, n), fields["v"].reshape(n, n)
    upright, level = u[:, n // 2 - 1 : n // 2 + 1].mean(axis=1), v[n // 2 - 1 : n // 2 + 1].mean(axis=0)
    return float(upright.min()), float(level.max()), float(level.min())


def test_half_the_cells() -> None:
    """On 24 x 24 cells the error is four times that of the example."""
    runner = run(24, 0.02, 16.0)
    assert runner.residual() < 1e-4
    assert extremes(runner, 24) == pytest.approx(MARCHI, rel=0.06)
    assert runner.flow.solver.state().imbalance < 1e-6


@pytest.mark.long
def test_steady() -> None:
    """The whole run: pinned, and 1.4, 1.2 and 1.0 per cent from the literature."""
    runner = run(48, 0.005, 20.0)
    assert runner.residual() < 1e-5
    found = np.array(extremes(runner, 48))
    assert found == pytest.approx((-0.2110487, 0.1774669, -0.2512939), rel=1e-4)
    assert found == pytest.approx(MARCHI, rel=0.015)
    assert runner.flow.solver.state().kinetic_energy == pytest.approx(0.03367065, rel=1e-5)
