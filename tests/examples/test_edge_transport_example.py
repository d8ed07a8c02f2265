"""The example of transport on edges: it is correct and runs, and is as near to the exact solution as is pinned.

D. Kuzmin: *A Guide to Numerical Methods for Transport Equations* (2010), section 4.4.6.3: the rotating Gaussian hill.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.edges.transport_tables import EdgeTransportCase
from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context
from fluxloom.flows.edges.transport import Transport
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "edge_transport.toml"
PEAK = 1.0 / (4 * np.pi * 1e-3 * 2.5 * np.pi)
"""Of the exact hill at the end, 10.13."""


def finished(folder: Path, **mesh: Any) -> FlowRun[Transport]:
    """Return the example at its end, on another mesh where one is given."""
    case, application = load_case(EXAMPLE)
    given = case.model_dump()
    given["mesh"] |= mesh
    runner = application.build(EdgeTransportCase.model_validate(given), Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, Transport)
    runner.begin(ResultFolder(folder))
    while not runner.finished:
        runner.advance()
    runner.finish(pictures=False)
    return runner


def off(runner: FlowRun[Transport]) -> float:
    """Return the root of the mean square of the error at the end, over that of the exact hill."""
    x, y = runner.flow.solver.places.T
    age = 4e-3 * 2.5 * np.pi
    exact, mass = np.exp(-((x + 0.5) ** 2 + y**2) / age) / (np.pi * age), runner.flow.solver.operators.mass.read()
    return float(np.sqrt(mass @ (runner.flow.solver.scalar() - exact) ** 2 / (mass @ exact**2)))


def test_correct() -> None:
    """The file is correct, and is called as the case."""
    case, application = load_case(EXAMPLE)
    assert application.name == case.case.name == "edge_transport"


def test_hill_on_a_quarter_of_the_triangles(tmp_path: Path) -> None:
    """Peak, least value, amount and error, pinned; the peak is within 12 per cent of the exact one."""
    runner = finished(tmp_path, nx=64, ny=64)
    state = runner.flow.solver.state()
    assert state.most == pytest.approx(PEAK, rel=0.12)
    found = state.most, state.least, state.amount, off(runner)
    assert found == pytest.approx((8.994, -1.163, 1.00013, 0.3678), rel=5e-3)


@pytest.mark.long
def test_hill(tmp_path: Path) -> None:
    """The whole run: the peak within 1 per cent, the amount within 1e-4; pinned."""
    runner = finished(tmp_path)
    state = runner.flow.solver.state()
    assert state.most == pytest.approx(PEAK, rel=0.01)
    assert state.amount == pytest.approx(1.0, abs=1e-4)
    assert (state.most, state.least, off(runner)) == pytest.approx((10.0732, -0.0721, 0.1109), rel=5e-3)
    series = np.genfromtxt(tmp_path / "probes.csv", delimiter=",", names=True)
    half = np.argmin(np.abs(series["time"] - np.pi))
    assert series["oppositescalar"][half] == pytest.approx(1.0 / (4 * np.pi * 1e-3 * 1.5 * np.pi), rel=0.06)
