"""What flows through the boundaries of shallow water: the discharge of the discrete equations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import MeshError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.flows.shallow.flow import Plan
from fluxloom.fv.shallow.boundary import Discharge, Incident, Level, Outflow
from fluxloom.fv.shallow.scheme import ShallowScheme
from fluxloom.mesh import box2d

SIDES = {
    "xmin": Level("0.1 * sin(4 * t)", until=0.35), "xmax": Outflow(), "ymin": Incident("0.02 * t"),
    "ymax": Discharge("0.03 * x * t"),
}  # fmt: skip


def water(comm: Comm, order: int = 2, **given: Any) -> fl.ShallowWater:
    given = {"bed": lambda x, y: -1.0 + 0.2 * x, "boundaries": SIDES, "plan": Plan(0.4, 200)} | given
    return fl.ShallowWater(
        box2d(12, 6, (2.0, 1.0), "triangle", perturb=0.2), Context("cpu", threads=1, tuning=False, comm=comm),
        scheme=ShallowScheme(order=order), schedule=Schedule(deterministic="global"), **given,
    )  # fmt: skip


def passed(flow: fl.ShallowWater, *patches: str) -> fl.PatchFlow:
    """Return the monitor of patches, of a flow that does not run."""
    from types import SimpleNamespace

    monitor = fl.PatchFlow("sides", patches)
    monitor.attach(SimpleNamespace(flow=flow))  # type: ignore[arg-type]
    return monitor


def test_uniform_flow() -> None:
    """A metre of water at half a metre a second: out is positive, walls let nothing through."""
    sides = {"xmin": Outflow(), "xmax": Outflow()}
    flow = water(SelfComm(), bed=-1.0, velocity=(0.5, 0.0), boundaries=sides)
    for patches, value in ((("xmax",), 0.5), (("xmin",), -0.5), (("xmin", "xmax"), 0.0), (("ymin", "ymax"), 0.0)):
        assert passed(flow, *patches).now().flow == pytest.approx(value, abs=1e-14)
    found = passed(flow, "xmin").columns()
    assert found == {
        "sides.flow": pytest.approx(-0.5), "sides.depth": pytest.approx(1.0), "sides.elevation": pytest.approx(0.0),
    }  # fmt: skip


@pytest.mark.parametrize("order", [1, 2])
def test_what_passed_is_what_came_in(order: int, tmp_path: Path) -> None:
    """The integral of the discharge is the inflow of the history; of ranks too; a level that has ended is a wall."""

    def run(comm: Comm) -> np.ndarray:
        history, sides = fl.History(1), [fl.PatchFlow(name) for name in SIDES]
        fl.run(
            water(comm, order), fl.Time(0.4), [history, *sides], directory=tmp_path / f"{comm.size}", overwrite=True
        )
        names = (*(f"{name}.flow" for name in SIDES), "time", "inflow")
        return np.stack([history.column(name) for name in names])

    whole, *parts = run_threads(1, run)[0], *run_threads(2, run)
    for part in parts:
        np.testing.assert_allclose(part, whole, rtol=1e-12, atol=1e-14)
    flows, time, inflow = whole[:4].sum(axis=0), whole[4], whole[5]
    np.testing.assert_allclose(whole[3], -0.06 * time, rtol=1e-11, atol=1e-15)
    assert (np.abs(whole[0, 1:170]) > 0.0).all()
    assert (whole[0, 176:] == 0.0).all()
    before = time < 0.349
    came = -np.concatenate([[0.0], np.cumsum(0.5 * (flows[1:] + flows[:-1]) * np.diff(time))])
    gained = inflow - inflow[0]
    np.testing.assert_allclose(came[before], gained[before], atol=2e-4 * np.ptp(inflow))
    assert np.ptp(inflow) > 0.01


def test_it_is_of_now_behind_a_restart() -> None:
    """Levels are those of the time of the water, wherever its steps began."""
    flow, other = water(SelfComm()), water(SelfComm())
    flow.solver.advance_to(0.2)
    other.solver.u.write(flow.solver.u.read())
    other.solver.time = 0.2
    one, two = passed(flow, "xmin").now().flow, passed(other, "xmin").now().flow
    assert one == pytest.approx(two, rel=1e-12)
    assert abs(one) > 0.01


def test_measuring_changes_no_bit() -> None:
    runs = []
    for looks in (False, True):
        flow = water(SelfComm())
        for time in (0.05, 0.1, 0.2):
            flow.solver.advance_to(time)
            if looks:
                passed(flow, *SIDES).now()
        runs.append(flow.solver.u.read())
    np.testing.assert_array_equal(*runs)


def test_refused() -> None:
    flow = water(SelfComm())
    with pytest.raises(MeshError, match="xmix"):
        passed(flow, "xmix")
    with pytest.raises(SolverError, match="no surfaces"):
        flow.surface(["xmin"])
