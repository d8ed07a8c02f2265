"""Cases with bodies that move: runs that go on, where bodies were, and what reports say of bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.app.cases.lattice import LatticeApplication
from fluxloom.app.cases.lattice_run import LatticeRunner
from fluxloom.app.cases.lattice_tables import LatticeCase
from fluxloom.app.loading import parse_case
from fluxloom.app.results.folder import ResultFolder
from fluxloom.app.toml import Document
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context

STEPS = 8

BODIES: dict[str, Any] = {
    "case": {"name": "bodies", "solver": "lattice"},
    "run": {"iterations": STEPS},
    "mesh": {"nx": 16, "ny": 14, "spacing": 0.1},
    "fluid": {"viscosity": 0.02},
    "boundary": {"ymin": {"type": "wall"}, "ymax": {"type": "wall"}},
    "body": {
        "arm": {
            "shape": "circle", "center": [0.4, 0.9], "diameter": 0.4, "condition": "immersed", "motion": "prescribed",
            "position_x": "0.05 * t", "angle": "t",
        },
    },
    "particles": {"count": 1, "diameter": 0.4, "density": 2.0, "gravity": [0.0, -1.0], "low": [0.7, 0.0]},
    "forces": {"arm": {}},
    "history": {"every": 1},
    "time": {"look": 2},
    "immersed": {"margin": 0},
}  # fmt: skip


def build(device: str = "reference", **changes: Any) -> LatticeRunner:
    """Return the case, ready to run, with some tables replaced."""
    case, _ = parse_case(Document(Path("case.toml"), BODIES | changes, {}))
    assert isinstance(case, LatticeCase)
    return LatticeApplication().build(case, Context(device, threads=1 if device == "cpu" else 0, tuning=False))


def advance(runner: LatticeRunner, count: int) -> None:
    for _ in range(count):
        runner.advance()


@pytest.mark.parametrize(
    ("device", "pipeline"),
    [("reference", "device"), pytest.param("cpu", "host", marks=pytest.mark.long)],
)
def test_goes_on(tmp_path: Path, device: str, pipeline: str) -> None:
    """A run that was cut off goes on to the same bits, with the same history of forces and places."""
    changes: dict[str, Any] = {"immersed": {"margin": 0, "pipeline": pipeline}}
    whole = build(device, **changes)
    whole.begin(ResultFolder(tmp_path / "whole"))
    advance(whole, STEPS)
    cut = build(device, checkpoint={"every": 3}, **changes)
    cut.begin(ResultFolder(tmp_path / "cut"))
    advance(cut, 5)  # killed: nothing is finished
    runner = build(device, checkpoint={"every": 3}, **changes)
    runner.begin(ResultFolder(tmp_path / "cut"))
    assert runner.flow.steps == 3
    advance(runner, STEPS - 3)
    assert runner.finished
    for name, values in whole.fields().items():
        assert np.array_equal(runner.fields()[name], values), name
    whole.finish(pictures=False)
    runner.finish(pictures=False)
    assert len(whole.history.rows) >= STEPS
    assert runner.history.rows == whole.history.rows
    column = whole.history.column("particles.y")
    assert column[-1] < column[0], "it sinks"


def test_a_checkpoint_of_other_bodies(tmp_path: Path) -> None:
    """What a file lacks, and bodies that are others, are told."""
    runner = build(checkpoint={"every": 1})
    runner.begin(ResultFolder(tmp_path))
    advance(runner, 1)
    fewer = {"count": 1, "diameter": 0.4, "density": 2.0, "gravity": [0.0, -1.0], "low": [0.7, 0.0], "seed": 5}
    with pytest.raises(CaseError, match=r"other values than particles\.seed = 5"):
        build(checkpoint={"every": 1}, particles=fewer).begin(ResultFolder(tmp_path))
    path = tmp_path / "checkpoint.npz"
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if not name.startswith("immersed.")}
    np.savez(path, **arrays)
    with pytest.raises(SolverError, match="is of others: none; these are arm, particle0"):
        build(checkpoint={"every": 1}).begin(ResultFolder(tmp_path))


def test_what_reports_say(tmp_path: Path) -> None:
    """Steps of bodies that are no loops stand among the loops; the summary says how many markers there are."""
    runner = build()
    runner.begin(ResultFolder(tmp_path))
    advance(runner, 2)
    rows = {row.name: row for row in runner.reports()}
    assert {"interpolate", "spread", "move bodies", "move freely"} <= set(rows)
    assert rows["spread"].calls == 2 * 2
    summary = dict(runner.summary())
    assert "2 bodies, 26 markers" in summary["immersed"]
    assert summary["immersed"].endswith("pipeline device")
    assert "immersed, time" not in summary, "the reference keeps no times of loops"
