"""The body of Ahmed: its file is as published, and flow round it is pinned."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.dsl.context import Context
from fluxloom.lbm.shapes.surface import Surface
from fluxloom.run.results.results import ResultFolder

pytest.importorskip("trimesh")
pytest.importorskip("manifold3d")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that the script writes."""
    path = tmp_path_factory.mktemp("car") / "ahmed.stl"
    runpy.run_path(str(EXAMPLES / "ahmed_body.py"))["ahmed_body"](path)
    return path


def test_the_body(car: Path) -> None:
    """Bounds are those of the paper; the volume is that of a box less the slant, and less the rounding of the nose."""
    surface = Surface.from_file(car)
    np.testing.assert_allclose(surface.bounds(), [(0.0, -0.1945, 0.0), (0.338, 0.1945, 1.044)], atol=1e-7)
    slant = 0.5 * 0.222**2 * np.sin(np.radians(25)) * np.cos(np.radians(25)) * 0.389
    rounding = (1 - np.pi / 4) * 0.1**2 * (2 * 0.389 + 2 * 0.288)  # corners, counted twice, are small
    stilts = 4 * np.pi * 0.015**2 * 0.05
    assert surface.volume == pytest.approx(1.044 * 0.389 * 0.288 - slant - rounding + stilts, rel=5e-3)


def test_flow_round_the_body(car: Path, tmp_path: Path) -> None:
    """The first steps on cells of twice the size: drag and lift are pinned, and there is no force across."""
    case, application = load_case(EXAMPLES / "lattice_ahmed.toml")
    assert isinstance(application, LatticeApplication)
    assert application.estimate(case).memory < 1 << 30
    given = case.model_dump()
    given["mesh"] |= {"nx": 75, "ny": 24, "nz": 18, "spacing": 0.048}
    given["body"]["car"]["file"] = str(car)
    runner = application.build(LatticeCase.model_validate(given), Context("cpu", threads=1, tuning=False))
    runner.begin(ResultFolder(tmp_path))
    for _ in range(300):
        runner.advance()
    assert np.count_nonzero(~runner.flow.solver.fluid) == 1010  # of 0.048^3 each: 0.1117, and the body has 0.1109
    drag, across, lift = (runner.history.column(f"car.force_{axis}")[-8:].mean() for axis in "xyz")
    assert drag == pytest.approx(0.077810, rel=1e-3)
    assert lift == pytest.approx(0.067046, rel=1e-3)
    assert abs(across) < 1e-3 * drag
    assert runner.history.column("density")[-1] == pytest.approx(1.000240, abs=2e-6)
