"""The example of Monai Valley: it runs where its data is, says what is missing elsewhere, and its number holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.flows.shallow.flow import ShallowWater
from fluxloom.fv.shallow.boundary import Level
from fluxloom.monitors.gauges import Gauges
from fluxloom.run.flow_run import FlowRun

CASE = Path(__file__).resolve().parents[2] / "examples" / "monai.toml"


@pytest.fixture
def data(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the files that the case names, which is the working directory now."""
    folder = shared_data / "tsunami_monai"
    monkeypatch.chdir(folder)
    return folder


def build(threads: int) -> FlowRun[ShallowWater]:
    case, application = load_case(CASE)
    runner = application.build(case, Context("cpu", threads=threads, tuning=False))
    assert isinstance(runner.flow, ShallowWater)
    return runner


def test_start(data: Path) -> None:
    """Half a second of water at rest: bed, mesh, wave and gauges are there."""
    assert data.is_dir()
    runner = build(1)
    runner.advance()
    solver = runner.flow.solver
    boundary = solver.boundaries["INFLOW"]
    assert isinstance(boundary, Level)
    assert boundary.until == 22.5
    assert boundary.series.values.max() == pytest.approx(0.0161886)
    assert solver.mesh.cells.total == 27_252
    assert solver.zb.read().min() == pytest.approx(-0.13535, abs=1e-3)
    gauges = next(monitor for monitor in runner.monitors if isinstance(monitor, Gauges))
    assert gauges.memory["rows"][-1][0] == pytest.approx(0.5)
    assert np.abs(gauges.memory["rows"][-1][2::4]).max() < 1e-6
    assert solver.survey().surface == pytest.approx(0.0, abs=1e-4)


def test_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaseError, match=r"INFLOW.surface: series: Benchmark_2_input.txt: no such file; paths in"):
        load_case(CASE)


@pytest.mark.long
def test_runup(data: Path) -> None:
    """On triangles of 4 cm a tenth less than measured, in the valley where it was measured."""
    assert data.is_dir()
    runner = build(0)
    for _ in range(40):
        runner.advance()
    assert runner.flow.solver.time == 20.0
    found = runner.flow.runup()
    assert found is not None
    assert found[0] == pytest.approx(0.0801, rel=2e-3)
    assert np.hypot(found[1] - 5.1575, found[2] - 1.88) < 0.03
    gauges = next(monitor for monitor in runner.monitors if isinstance(monitor, Gauges))
    rows = gauges.memory["rows"]
    times, crest = rows[:, 0], rows[:, gauges.names.index("gauge9.elevation")]
    assert crest.max() == pytest.approx(0.0454, rel=0.1)
    assert times[int(np.argmax(crest))] == pytest.approx(16.85, abs=0.1)
    assert abs(runner.flow.solver.survey().defect) < 1e-12
