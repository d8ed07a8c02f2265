"""Cases with bodies that move: runs that go on, where bodies were, and what reports say of bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder

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
    "time": {"residual_interval": 2},
    "immersed": {"margin": 0},
}  # fmt: skip


def build(device: str = "reference", **changes: Any) -> FlowRun[Lattice]:
    """Return the case, ready to run, with some tables replaced."""
    case, _ = parse_case(Document(Path("case.toml"), BODIES | changes, {}))
    assert isinstance(case, LatticeCase)
    return LatticeApplication().build(case, Context(device, threads=1 if device == "cpu" else 0, tuning=False))


def advance(runner: FlowRun[Lattice], count: int) -> None:
    for _ in range(count):
        runner.advance()


def test_what_reports_say(tmp_path: Path) -> None:
    """Steps of bodies that are no loops stand among the loops; the summary says how many markers there are."""
    runner = build()
    runner.begin(ResultFolder(tmp_path))
    advance(runner, 2)
    rows = {row.name: row for row in runner.flow.reports()}
    assert {"interpolate", "spread", "move bodies", "move freely"} <= set(rows)
    assert rows["spread"].calls == 2 * 2
    summary = dict(runner.summary())
    assert "2 bodies, 26 markers" in summary["immersed"]
    assert summary["immersed"].endswith("pipeline device")
    assert "immersed, time" not in summary, "the reference keeps no times of loops"
