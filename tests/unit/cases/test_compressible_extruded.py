"""Profiles that are extruded have the coefficients of the plane ones, and their default stream is in that plane."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from fluxloom.flows.compressible.flow import Compressible
from fluxloom.monitors.forces import Forces
from tests.unit.cases.flow_cases import built

Array = npt.NDArray[np.float64]
CASE = """\
[case]
name = "profile"
solver = "compressible"
[mesh]
shape = "airfoil"
profile = "2412"
around = 16
outward = 5
reach = 4.0
{span}
[flow]
mach = 0.4
alpha = 2.0
[boundary.airfoil]
type = "slip"
[boundary.far_field]
type = "far-field"
{ends}
[scheme]
limiter = "{limiter}"
[time]
integrator = "implicit"
residual_drop = 1e-10
[forces.airfoil]
area = {area}
point = [{point}]
[run]
iterations = 80
threads = 1
[output]
picture = false
"""
ENDS = '[boundary.zmin]\ntype = "symmetry"\n[boundary.zmax]\ntype = "symmetry"\n'


def coefficients(path: Path, limiter: str, span: float = 0.0, cells: int = 0, periodic: bool = False) -> Array:
    """Return drag, lift and moment of a profile, plane or extruded by a span with so many cells."""
    span_keys = f"z = [1.0, {1.0 + span}]\nnz = {cells}" if cells else ""
    if periodic:
        span_keys += '\nperiodic = [["zmin", "zmax"]]'
    text = CASE.format(
        span=span_keys, ends=ENDS if cells and not periodic else "", limiter=limiter, area=span or 1.0,
        point="0.25, 0.0, 0.0" if cells else "0.25, 0.0",
    )  # fmt: skip
    path.write_text(text)
    runner = built(Compressible, path)
    while not runner.finished:
        runner.advance()
        assert runner.flow.solver.steps < 100
    monitor = next(item for item in runner.monitors if isinstance(item, Forces))
    monitor.now()
    return np.array([monitor.cd, monitor.cl, monitor.cm])


@pytest.mark.parametrize("limiter", ["none", "venkatakrishnan"])
def test_extruded_is_plane(tmp_path: Path, limiter: str) -> None:
    """However wide, in however many cells, and between planes of symmetry or periodic."""
    spans = [(0.01, 1, False)] if limiter == "venkatakrishnan" else [(0.5, 2, False), (5.0, 5, True)]
    path = tmp_path / "profile.toml"
    plane = coefficients(path, limiter)
    assert plane[1] > 0.3
    for span, cells, periodic in spans:
        assert np.abs(coefficients(path, limiter, span, cells, periodic) - plane).max() < 1e-8, (span, cells)
