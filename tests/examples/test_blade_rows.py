"""The examples of blade rows, on coarse meshes: they converge, and mass, work and enthalpy are in balance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.compressible.case import CompressibleCase
from fluxloom.cases.files.loading import load_case
from fluxloom.dsl.context import Context
from fluxloom.flows.compressible.flow import Compressible
from fluxloom.solvers.compressible.flow import CompressibleFlow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COARSE = {"along": 16, "before": 6, "after": 8, "across": 12}


def build(name: str, **keys: Any) -> CompressibleFlow:
    """Return the flow of an example on a coarser passage."""
    case, application = load_case(EXAMPLES / f"{name}.toml")
    given = case.model_dump()
    given["mesh"]["blade_row"] |= COARSE | keys
    runner = application.build(CompressibleCase.model_validate(given), Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, Compressible)
    return runner.flow.solver


def out_of(flow: CompressibleFlow, patch: str) -> np.ndarray:
    """Return what leaves the faces of a patch, ``(n, nv)``."""
    cv, span = flow.volumes, flow.volumes.patches[patch]
    first = span.start - cv.cells + cv.interior
    return cv.area[first : first + len(span), None] * flow.outflow.read()[span.start : span.stop, : flow.components]


@pytest.mark.long
def test_a_turning_blade_row() -> None:
    """A step is one chain of more than 50 loops; the blades' torque times their rate is what the gas gains."""
    flow = build("blade_row", span=4)
    assert len(flow.iteration.loops) >= 50
    flow.iterate(1500)
    flow.before()
    enters, leaves = (out_of(flow, name).sum(axis=0) for name in ("inlet", "outlet"))
    assert enters[0] + leaves[0] == pytest.approx(0.0, abs=1e-3 * leaves[0])
    gained = leaves[4] / leaves[0] - enters[4] / enters[0]
    span, force = flow.volumes.patches["blade"], out_of(flow, "blade")
    place = flow.volumes.centres[span.start : span.stop]
    torque = -(place[:, 1] * force[:, 3] - place[:, 2] * force[:, 2]).sum()
    assert flow.rotation is not None
    assert gained > 3000.0
    assert gained == pytest.approx(torque * flow.rotation.vector[0] / leaves[0], rel=5e-3)
    assert -force[:, 4].sum() == pytest.approx(torque * flow.rotation.vector[0], rel=1e-6)
