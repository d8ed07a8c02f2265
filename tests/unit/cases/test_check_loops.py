"""``fluxloom run --check-loops``: cases of every solver pass it, and a fault ends the run with line and iteration."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fluxloom.solvers.airfoil.flow import Airfoil

Call = Callable[..., SimpleNamespace]
Write = Callable[..., Path]

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
QUICK = ("lattice_cavity",)
SLOW = ("staggered_cavity", "sod", "naca0012_implicit", "cavity", "edge_cavity", "edge_transport", "tsunami")


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.long) for name in SLOW)])
def test_examples_pass(name: str, fluxloom: Call, tmp_path: Path) -> None:
    """What is in the box does nothing that Python would refuse."""
    done = fluxloom("run", EXAMPLES / f"{name}.toml", "-n", 1, "--no-picture", "--check-loops", "-o", tmp_path)
    assert done.code == 0, done.text
    assert json.loads((tmp_path / "run.json").read_text())["iterations"] == 1


def test_the_same_results(fluxloom: Call, case_file: Write, tmp_path: Path) -> None:
    """The loops are those of every day; the mode ends with the command."""
    before = os.environ.get("FLUXLOOM_CHECK")
    residuals = []
    for options in ((), ("--check-loops",)):
        directory = tmp_path / f"out{len(options)}"
        assert fluxloom("run", case_file(), "-n", 5, "--no-picture", "-o", directory, *options).code == 0
        residuals.append(json.loads((directory / "run.json").read_text())["residual"])
    assert residuals[1] == pytest.approx(residuals[0], rel=1e-12)
    assert os.environ.get("FLUXLOOM_CHECK") == before


def test_a_fault(fluxloom: Call, case_file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell without mass in the third iteration: without the mode NaN somewhere later, with it the line."""
    iterate, calls = Airfoil.iterate, []

    def faulty(flow: Airfoil) -> None:
        calls.append(1)
        if len(calls) == 3:
            values = flow.q.read()
            values[7] = 0.0
            flow.q.write(values)
        iterate(flow)

    monkeypatch.setattr(Airfoil, "iterate", faulty)
    done = fluxloom("run", case_file(), "-n", 5, "--no-picture", "--check-loops", "-o", tmp_path / "out")
    assert done.code not in (0, 130)
    words = " ".join(done.text.split())
    assert "loop 'adt_calc', kernel 'adt_calc', element 7 of 'cells'" in words
    assert "division by zero: 1.0 / 0.0" in words
    assert "flow.py:" in words
    assert "step 3: loop" in words
    assert "division by zero" in json.loads((tmp_path / "out" / "run.json").read_text())["reason"]
