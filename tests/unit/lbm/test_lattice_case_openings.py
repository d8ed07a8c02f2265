"""Inlets and outlets of case files: ramps, sponges, pressures that absorb waves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.core.errors import FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.flows.lattice.flow import Lattice
from fluxloom.lbm.boundaries import AntiBounceBack, Pressure, Velocity, ZouHe
from fluxloom.run.flow_run import FlowRun

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "lattice.md"

HELD = {"type": "anti-bounce-back", "absorbing": False}
INLET: dict[str, Any] = {"type": "velocity", "velocity": [1.0, 0.0]}
OUTLET: dict[str, Any] = {"type": "pressure"}


def build(**boundary: Any) -> FlowRun[Lattice]:
    """Return a box of 8 by 3 cells of the size 1/8, with steps of 1/160."""
    tables = {
        "case": {"name": "box", "solver": "lattice"},
        "run": {"iterations": 8},
        "mesh": {"nx": 8, "ny": 3, "spacing": 0.125},
        "fluid": {"reynolds": 20},
        "boundary": {"xmin": INLET, "xmax": OUTLET} | boundary,
    }
    case, application = parse_case(Document(Path("case.toml"), tables, {}))
    assert isinstance(application, LatticeApplication)
    assert isinstance(case, LatticeCase)
    return application.build(case, Context("reference"))


def test_times_and_lengths_are_those_of_the_case() -> None:
    """Ramps in steps, sponges in cells, velocities in cells a step."""
    sponge = {"width": 0.5, "strength": 0.2, "velocity": [1.0, 0.0]}
    flow = build(xmin=INLET | {"ramp": 0.05}, xmax=OUTLET | {"scheme": HELD, "sponge": sponge}).flow
    inlet, outlet = flow.solver.conditions.given["xmin"], flow.solver.conditions.given["xmax"]
    assert isinstance(inlet, Velocity)
    assert isinstance(outlet, Pressure)
    assert inlet.ramp == 8
    assert outlet.scheme == AntiBounceBack(absorbing=False)
    for loop in flow.solver.conditions.parts["xmax sponge"].loops(0):
        loop()
    share = 0.2 * np.maximum(0.0, 1.0 - (7.5 - np.arange(8)) / 4.0) ** 2
    np.testing.assert_allclose(flow.solver.velocity()[1, :, 1], 0.05 * share, atol=1e-7)


def test_pressures_absorb_where_they_can() -> None:
    """Unless told otherwise."""
    given = (OUTLET, OUTLET | {"scheme": "zou-he"})
    first, second = (build(xmax=table).flow.solver.conditions.given["xmax"] for table in given)
    assert isinstance(first, Pressure)
    assert isinstance(second, Pressure)
    assert first.scheme == AntiBounceBack()
    assert second.scheme == ZouHe()


def test_schemes_with_numbers() -> None:
    given = ("anti-bounce-back", HELD, {"type": "anti-bounce-back", "rate": 0.01})
    sides = [build(xmax=OUTLET | {"scheme": scheme}).flow.solver.conditions.given["xmax"] for scheme in given]
    assert [getattr(side, "scheme") for side in sides] == [
        AntiBounceBack(), AntiBounceBack(absorbing=False), AntiBounceBack(rate=0.01)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ({"xmax": OUTLET | {"ramp": 1.0}}, 'type = "pressure" has no ramp'),
        ({"xmin": INLET | {"ramp": -1.0}}, "ramp"),
        ({"xmax": OUTLET | {"absorbing": False}}, "absorbing is called scheme.absorbing now"),
        ({"xmin": INLET | {"scheme": HELD}}, "scheme"),
        ({"xmax": OUTLET | {"sponge": {"width": 0.5, "speed": 1.0}}}, "speed"),
        ({"xmax": OUTLET | {"sponge": {"width": 0.5, "velocity": [1.0]}}}, "boundary.xmax.sponge.velocity"),
        ({"xmax": OUTLET | {"sponge": {"width": 0.01}}}, "boundary.xmax.sponge: .*one cell or more"),
        ({"xmax": OUTLET | {"sponge": {"width": 2.0}}}, "xmax: a sponge of 16 cells"),
        ({"ymin": {"type": "wall", "velocity": [0.0, 0.1]}, "ymax": {"type": "wall"}}, "ymin: the wall has a velocity"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(sides: dict[str, Any], words: str) -> None:
    with pytest.raises(FluxloomError, match=words):
        build(**sides)
