"""The tsunami example: it is correct, and its pinned numbers come out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context
from fluxloom.flows.shallow.flow import ShallowWater
from fluxloom.monitors.gauges import Gauges
from fluxloom.run.flow_run import FlowRun

CASE = Path(__file__).resolve().parents[2] / "examples" / "tsunami.toml"


def run(threads: int, iterations: int) -> FlowRun[ShallowWater]:
    case, application = load_case(CASE)
    runner = application.build(case, Context("cpu", threads=threads, tuning=False))
    assert isinstance(runner.flow, ShallowWater)
    for _ in range(iterations):
        runner.advance()
    return runner


@pytest.mark.long
def test_start() -> None:
    """The lifted water sets off: a report later its volume is kept and the wave has its height."""
    runner = run(1, 2)
    found = runner.flow.solver.survey()
    assert runner.flow.solver.time == 20.0
    assert abs(found.defect) < 1e-13
    assert found.surface == pytest.approx(1.83, abs=0.05)


@pytest.mark.long
def test_runup() -> None:
    runner = run(0, 48)
    found = runner.flow.runup()
    assert found is not None
    assert found[0] == pytest.approx(2.65867, rel=1e-3)
    gauges = next(monitor for monitor in runner.monitors if isinstance(monitor, Gauges))
    rows = gauges.memory["rows"]
    times, offshore = rows[:, 0], rows[:, gauges.names.index("offshore.elevation")]
    assert times[int(np.argmax(offshore))] == pytest.approx(125.0, abs=15.0)
    assert abs(runner.flow.solver.survey().defect) < 1e-12
