"""Blade rows in case files: a passage that is made, its sides joined, and what wrong keys are answered with."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.flows.compressible.flow import Compressible
from fluxloom.fv.geometry.volumes import ControlVolumes

CASE = """
[case]
name = "passage"
solver = "compressible"

[mesh]
sectors = [["low", "high"]]
axis = "x"

[mesh.blade_row]
blades = 20
outlet_angle = 30.0
chord = 0.2
along = 6
before = 2
after = 3
across = 4
span = 2

[boundary.inlet]
type = "total-inlet"
pressure = 1e5
temperature = 300.0
[boundary.outlet]
type = "outlet"
pressure = 9e4
[boundary.blade]
type = "slip"
[boundary.hub]
type = "slip"
[boundary.casing]
type = "slip"

[run]
iterations = 1
threads = 1
"""
PLANE = (("blades = 20\n", ""), ("span = 2\n", ""),
         ('sectors = [["low", "high"]]\naxis = "x"', 'periodic = [["low", "high"]]'),
         ('[boundary.hub]\ntype = "slip"\n[boundary.casing]\ntype = "slip"\n', ""))  # fmt: skip


def volumes_of(path: Path, *changes: tuple[str, str]) -> ControlVolumes:
    """Return the control volumes of the case with other text in it."""
    text = CASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = path / "case.toml"
    file.write_text(text)
    case, application = load_case(file)
    runner = application.build(case, Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, Compressible)
    return runner.flow.solver.volumes


def test_a_passage_of_a_ring(tmp_path: Path) -> None:
    volumes = volumes_of(tmp_path)
    assert (volumes.cells, volumes.dimension) == (88, 3)
    assert volumes.turned is not None
    angle = np.degrees(np.arctan2(volumes.turned.rotations[1][2, 1], volumes.turned.rotations[1][1, 1]))
    assert angle == pytest.approx(18.0)


def test_a_plane_cascade(tmp_path: Path) -> None:
    volumes = volumes_of(tmp_path, *PLANE)
    assert (volumes.cells, volumes.dimension) == (44, 2)
    assert volumes.turned is None
    np.testing.assert_allclose(np.unique(volumes.wrapped.shift.round(12), axis=0), [[0.0, -0.8]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((('"high"]]', '"hgh"]]'),), "mesh.sectors: the mesh has no patch 'hgh'; did you mean 'high'"),
        ((('axis = "x"', 'axis = "y"'),), "mesh.sectors: the patches 'low' and 'high': turned by"),
        ((('axis = "x"', 'axis = "w"'),), "mesh.axis"),
        ((('sectors = [["low", "high"]]\n', ""),), "mesh: axis is there but sectors is not"),
        ((('[boundary.hub]', '[boundary.low]\ntype = "slip"\n[boundary.hub]'),), "mesh.sectors names this patch too"),
        ((('axis = "x"', 'axis = "x"\nnx = 4'),), "mesh: a mesh with [mesh.blade_row] has no nx"),
        ((("chord = 0.2", "chrod = 0.2"),), "mesh.blade_row.chrod"),
        ((("[run]", '[time]\nintegrator = "multigrid"\n[run]'),), 'time.integrator = "multigrid": cells at sides'),
        ((("chord = 0.2", "chord = -0.2"),), "chord: above 0 is wanted, not -0.2"),
    ],
)  # fmt: skip
def test_what_is_wrong(tmp_path: Path, changes: tuple[tuple[str, str], ...], message: str) -> None:
    with pytest.raises(FluxloomError, match=re.escape(message)):
        volumes_of(tmp_path, *changes)
