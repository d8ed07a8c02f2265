"""Lists of fluid cells in cases and in the benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import labels_of
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder
from fluxloom_lab.bench.boxes.lbm_choice import LbmOptions, choices_of
from fluxloom_lab.problems.lbm_pack import packing


def build(
    cells: str, condition: str = "bounce-back", streaming: str = "in-place", every: int = 0
) -> FlowRun[Lattice]:
    """Return a periodic box with a disk in it, driven by an acceleration."""
    tables: dict[str, Any] = {
        "case": {"name": "bed", "solver": "lattice"},
        "run": {"iterations": 8},
        "mesh": {"nx": 14, "ny": 12, "spacing": 0.125},
        "fluid": {"viscosity": 0.05, "force": [0.2, 0.0]},
        "reference": {"velocity": 1.0, "length": 1.0},
        "body": {"disk": {"shape": "circle", "center": [0.9, 0.8], "diameter": 1.1, "condition": condition}},
        "lattice": {"cells": cells, "streaming": streaming, "precision": "float64"},
        "forces": {"disk": {}},
        "history": {"every": 4},
        "checkpoint": {"every": every},
    }
    case, application = parse_case(Document(Path("case.toml"), tables, {}))
    assert isinstance(application, LatticeApplication)
    assert isinstance(case, LatticeCase)
    return application.build(case, Context("cpu", threads=1, tuning=False))


def test_same_numbers(tmp_path: Path) -> None:
    """A case gives the same history and fields with one word changed."""
    runners = [build("all"), build("fluid")]
    for runner in runners:
        folder = tmp_path / runner.flow.solver.memory.set.name
        folder.mkdir()
        runner.begin(ResultFolder(folder))
        while not runner.finished and runner.flow.steps < 8:
            runner.advance()
    one, other = (runner.flow.solver for runner in runners)
    assert other.cells < one.cells == 14 * 12
    np.testing.assert_allclose(other.velocity(), one.velocity(), rtol=0, atol=1e-14)
    assert one.velocity().max() > 1e-4
    for name in ("density", "disk.drag"):
        drag = [runner.history.column(name)[-1] for runner in runners]
        assert drag[1] == pytest.approx(drag[0], rel=1e-9)


def test_immersed_bodies_are_refused() -> None:
    with pytest.raises(FluxloomError, match=r'lattice.cells: immersed bodies and particles need all cells; take "all"'):
        build("fluid", "immersed")


@pytest.mark.parametrize("shape", [(64, 64), (32, 32, 32)])
@pytest.mark.parametrize("share", [0.1, 0.4, 0.9, 1.0])
def test_packing(shape: tuple[int, ...], share: float) -> None:
    """Spheres, circles in the plane, leave the share of the box to the fluid that was asked for."""
    if len(shape) == 2 and share == 0.1:
        with pytest.raises(CaseError, match=r"circles that touch leave 0.215"):
            packing(shape, share)
        return
    labels = labels_of(Box(shape, (True,) * len(shape)), [body.shape for body in packing(shape, share)])
    assert (labels == 0).mean() == pytest.approx(share, abs=0.012)


def test_choices() -> None:
    """Each share of fluid is measured with all cells stored, and with the fluid ones."""
    found = choices_of(LbmOptions(fluid="0.2,1", streaming="in-place"))
    assert [(c.fluid, c.stored) for c in found] == [(0.2, "all"), (0.2, "fluid"), (1.0, "all"), (1.0, "fluid")]
    assert found[1].title == "D3Q19 BGK in-place 20 % fluid, fluid cells stored"
    assert "stored" not in choices_of(LbmOptions())[0].row()
    for wrong in ("0.01", "half", "0.2,1.5"):
        with pytest.raises(CaseError, match=r"shares of the box from 0\.05 to 1"):
            choices_of(LbmOptions(fluid=wrong))
    with pytest.raises(CaseError, match="leave --walls out"):
        choices_of(LbmOptions(fluid="0.5", walls=True))
