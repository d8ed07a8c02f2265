"""The pipeline of immersed bodies that measured numbers choose: by a clock that the test holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.lbm.immersed import ImmersedBody, ImmersedBoundary, circle
from fluxloom.lbm.immersed.choice import BLOCK, BLOCKS, WARM, Choice
from fluxloom.lbm.lattices import D2Q9
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_names import immersed

NAMES = ("device", "host")
ALL = WARM + BLOCK * BLOCKS
"""Steps that a way has until it has been measured."""


class Clock:
    """A time that goes on by what steps are said to cost."""

    def __init__(self, costs: dict[str, Any]) -> None:
        self.now: float = 0.0
        self.costs, self.waits = costs, 0
        self.done: list[str] = []

    def __call__(self) -> float:
        return self.now

    def wait(self) -> None:
        self.waits += 1

    def run(self, way: str, count: int) -> None:
        for _ in range(count):
            cost = self.costs[way]
            self.now += float(cost(len(self.done)) if callable(cost) else cost)  # type: ignore[arg-type]
            self.done.append(way)


def measured(costs: dict[str, Any], portion: int = 1000, comm: Any = None) -> tuple[Choice, Clock]:
    """Return a choice that has been made, in portions of steps."""
    clock = Clock(costs)
    choice = Choice(NAMES, clock.wait, comm, clock)
    while not choice.done:
        choice.take(lambda count: clock.run(choice.now, count), portion)
    return choice, clock


@pytest.mark.parametrize("portion", [1, 2, 5, 1000])
@pytest.mark.parametrize(("device", "host", "taken"), [(1.0, 2.0, "device"), (2.0, 1.0, "host"), (1.0, 1.0, "device")])
def test_the_faster_one_is_taken(portion: int, device: float, host: float, taken: str) -> None:
    choice, clock = measured({"device": device, "host": host}, portion)
    assert choice.now == taken
    assert choice.seconds == pytest.approx({"device": device, "host": host})
    assert clock.done == ["device"] * ALL + ["host"] * ALL
    assert clock.waits >= 2 * 2 * BLOCKS
    assert str(choice) == f"{taken} (device {1e3 * device:g} ms, host {1e3 * host:g} ms a step)"


def test_what_happens_once_does_not_count() -> None:
    """The first steps, in which loops are compiled, and one block that was held up."""
    slow = {0, 1, ALL, ALL + 1, WARM + 3}
    choice, _ = measured({"device": lambda step: 500.0 if step in slow else 1.0,
                          "host": lambda step: 500.0 if step in slow else 2.0})  # fmt: skip
    assert choice.now == "device"
    assert choice.seconds == pytest.approx({"device": 1.0, "host": 2.0})


def test_ranks_choose_the_same() -> None:
    """The slowest rank of each way counts."""
    costs = [{"device": 1.0, "host": 3.0}, {"device": 5.0, "host": 4.0}]
    found = run_threads(2, lambda comm: measured(costs[comm.rank], comm=comm)[0])
    assert [choice.now for choice in found] == ["host", "host"]
    assert all(choice.seconds == {"device": 5.0, "host": 4.0} for choice in found)


def test_nothing_to_choose_from() -> None:
    clock = Clock({"device": 1.0})
    assert Choice(["device"], clock.wait, clock=clock).done
    with pytest.raises(SolverError, match="something to choose from"):
        Choice([], clock.wait)


def flow_of(**options: Any) -> tuple[LatticeBoltzmann, ImmersedBoundary]:
    context = Context("cpu", threads=1, tuning=False)
    flow = LatticeBoltzmann(context, (12, 14), viscosity=0.1, lattice=D2Q9, dtype="float64")
    boundary = immersed([ImmersedBody("drum", circle((6.0, 7.0), 3.0).spinning(1e-3))], threads=1, **options)
    flow.immerse(boundary)
    flow.initialise()
    return flow, boundary


@pytest.mark.parametrize(("device", "host"), [(2.0, 1.0), pytest.param(1.0, 2.0, marks=pytest.mark.long)])
def test_a_flow_goes_on_with_what_was_measured(device: float, host: float) -> None:
    """All steps are useful ones: they are those of a flow without a choice; what was not taken is let go of."""
    flow, boundary = flow_of(pipeline="auto")
    clock = Clock({"device": device, "host": host})
    boundary.choice = Choice(NAMES, clock.wait, clock=clock)
    inner = boundary.choice.take

    def take(run: Any, most: int) -> bool:
        def timed(count: int) -> None:
            assert boundary.choice is not None
            assert strategy_name(boundary.attached.pipeline) == boundary.choice.now, "steps are done as is measured"
            run(count)
            clock.run(boundary.choice.now, count)

        return inner(timed, most)

    boundary.choice.take = take
    flow.step(2 * ALL - 1)
    assert boundary.choosing
    flow.step(5)
    taken = "device" if device < host else "host"
    assert not boundary.choosing
    assert strategy_name(boundary.attached.pipeline) == taken
    assert str(boundary.state()["pipeline"]) == taken
    assert list(boundary._attached) == [taken]
    rows = [row for row in flow.reports() if row.name == "pull"]
    assert sum(row.calls for row in rows) == flow.steps, "all steps are counted"
    assert f"pipeline {taken} (device" in str(boundary)
    other, its = flow_of()
    other.step(2 * ALL + 4)
    assert flow.steps == other.steps
    assert np.abs(flow.velocity() - other.velocity()).max() < 1e-14
    assert np.abs(boundary.force_on("drum") - its.force_on("drum")).max() < 1e-14
    assert np.abs(its.torque_on("drum")).max() > 1e-6
    again, restored = flow_of(pipeline="auto")
    restored.restore(boundary.state())
    assert not restored.choosing, "a run that goes on measures no more"
    assert strategy_name(restored.attached.pipeline) == taken
    again.step(2)
