"""Scripts make each flow in a few lines, and it is the flow of a case file to the last bit."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.cases.files.loading import load_case
from fluxloom.cases.shallow.case import TsunamiCase
from fluxloom.monitors.gauges import Gauges
from fluxloom.run.flow_run import FlowRun

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = {
    "airfoil": ("airfoil_small", 20),
    "compressible": ("naca0012", 5),
    "diffusion": ("diffusion", 3),
    "edge_flow": ("edge_cavity", 3),
    "incompressible": ("cavity", 3),
    "lattice_cylinder": ("lattice_cylinder", 5),
    "shallow_water": ("tsunami", 1),
    "staggered": ("staggered_cavity", 3),
    "transport": ("edge_transport", 3),
}
"""Script to the case file of its flow, and the steps that are compared."""


def context() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def maker(name: str) -> Callable[[fl.Context], Any]:
    """Return what makes the flow of a script."""
    return runpy.run_path(str(EXAMPLES / "scripts" / f"{name}.py"))["flow"]


def test_every_script_is_compared() -> None:
    assert {path.stem for path in (EXAMPLES / "scripts").glob("*.py")} == set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short(name: str) -> None:
    """It imports, makes the flow and runs it in fifteen statements at most; lines that go on count as well."""
    text = (EXAMPLES / "scripts" / f"{name}.py").read_text()
    code = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    doc = ast.get_docstring(ast.parse(text), clean=False)
    assert doc is not None
    assert len(code) - (doc.count("\n") + 1) <= 15


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_makes_the_flow_of_its_case(name: str) -> None:
    file, steps = SCRIPTS[name]
    case, application = load_case(EXAMPLES / f"{file}.toml")
    ours, theirs = maker(name)(context()), application.build(case, context())
    assert type(ours) is type(theirs.flow)
    looks = [Gauges(case.gauges.points, case.gauges.every)] if isinstance(case, TsunamiCase) else []  # steps stop there
    mine = FlowRun(ours, name, theirs.until, looks)
    for _ in range(steps):
        mine.advance()
        theirs.advance()
    assert mine.residual() == theirs.residual()
    found, wanted = ours.fields(), theirs.flow.fields()
    assert set(found) == set(wanted)
    for key, values in wanted.items():
        np.testing.assert_array_equal(found[key], values, err_msg=key)
    assert max(float(np.ptp(values)) for values in found.values()) > 0.0
    assert ours.columns() == theirs.flow.columns()
