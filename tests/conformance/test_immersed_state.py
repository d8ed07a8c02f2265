"""Immersed bodies that go on from a state to the same bits, and how far no-slip is missed whenever one asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.run.report import LoopReport
from fluxloom.lbm.immersed import Contact, Elastic, Free, ImmersedBody, ImmersedBoundary, Pose, Prescribed, circle
from fluxloom.lbm.immersed.reports import shares
from fluxloom.lbm.lattices import D2Q9, D3Q19
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_names import immersed, lattice_flow

from .harness import rest_is_long
from .test_immersed import movers, space_bodies

Array = np.ndarray

DEVICES = [pytest.param("opencl", marks=[pytest.mark.opencl, pytest.mark.long])]


def few() -> list[ImmersedBody]:
    """A body of each kind of motion in a small box."""

    def slides(time: float) -> Pose:
        return Pose((2.0, 2.0 + 0.3 * time), velocity=(0.0, 0.3))

    return [
        ImmersedBody("disk", circle((8.0, 3.0), 1.5), Free.disk(1.5, 1.5, gravity=(-1e-3, 0.0), spin=1e-2)),
        ImmersedBody("slider", circle((2.0, 2.0), 1.0), Prescribed(slides)),
        ImmersedBody("ring", circle((6.0, 8.5), 1.5), Elastic(stiffness=0.01, bending=1e-3, lengths=1.2)),
    ]


def small() -> list[ImmersedBody]:
    """A drum across a periodic end."""
    return [ImmersedBody("drum", circle((5.0, 11.3), 2.5).spinning(1e-3))]


SHAPES = {movers: (24, 20), few: (11, 12), small: (10, 12), space_bodies: (14, 13, 12)}


def build(
    make: Callable[[], list[ImmersedBody]], device: str = "reference", **options: Any
) -> tuple[LatticeBoltzmann, ImmersedBoundary]:
    """Return a flow that differs from cell to cell, with bodies."""
    shape, bodies = SHAPES[make], make()
    plane = len(shape) == 2
    streaming, field = options.pop("streaming", "pull"), options.get("mode") == "field"
    context = Context(device, threads=2 if device == "cpu" else 0, tuning=False)
    flow = lattice_flow(
        context, shape, viscosity=0.1, lattice=D2Q9 if plane else D3Q19, dtype="float64", streaming=streaming,
        field=field,
    )  # fmt: skip
    boundary = immersed(bodies, **{"threads": 2, **options})
    flow.immerse(boundary)
    velocity = 0.01 * np.random.default_rng(1).standard_normal((*shape, len(shape)))
    flow.initialise(1.0, velocity)
    return flow, boundary


def everything(flow: LatticeBoltzmann, boundary: ImmersedBoundary) -> Array:
    """Return all that steps leave behind."""
    found = [flow.populations.read(), flow.force_field.read()]
    for name in boundary.names:
        found += [boundary.force_on(name), boundary.torque_on(name), boundary.centre(name)]
        found += [boundary.positions(name), boundary.slip(name)]
    return np.concatenate([np.ravel(values) for values in found])


def copied(flow: LatticeBoltzmann, boundary: ImmersedBoundary, bodies: Any, **options: Any) -> Any:
    """Return another flow in the state of a first one."""
    other, its = build(bodies, **options)
    for to, of in zip((*other.space.buffers, other.force_field), (*flow.space.buffers, flow.force_field), strict=True):
        to.write(of.read())
    other.steps = flow.steps
    its.restore(boundary.state())
    return other, its


CONTACT = Contact(0.01, 1.0)
FORMS = [
    (few, 3, {"margin": 0}),
    (movers, 7, {"margin": 1, "contact": CONTACT, "device": "cpu"}),
    (movers, 7, {"margin": 1, "pipeline": "host", "device": "cpu"}),
    (movers, 20, {"margin": 0, "streaming": "three-phase", "iterations": 3, "device": "cpu"}),
    (movers, 8, {"margin": 1, "mode": "field", "streaming": "in-place", "device": "cpu"}),
    (movers, 9, {"delta": "peskin", "pipeline": "host", "device": "cpu"}),
    (space_bodies, 3, {"device": "cpu"}),
]


@pytest.mark.parametrize(("bodies", "count", "options"), rest_is_long(FORMS, keep=1))
def test_goes_on_to_the_same_bits(bodies: Any, count: int, options: dict[str, Any]) -> None:
    """2 n steps are n steps, a new flow, and n more: free, prescribed, deforming and elastic bodies together."""
    whole, its = build(bodies, **options)
    whole.step(count)
    other, other_its = copied(whole, its, bodies, **options)
    assert other_its.time == count
    assert np.array_equal(everything(whole, its), everything(other, other_its)), "what one sees at once"
    whole.step(count)
    other.step(count)
    assert np.array_equal(everything(whole, its), everything(other, other_its))
    fresh, its_own = build(bodies, **options)
    fresh.step(count)
    assert not np.array_equal(everything(fresh, its_own), everything(other, other_its)), "the comparison tells states"


@pytest.mark.parametrize("device", DEVICES)
def test_another_device_goes_on(device: str) -> None:
    """A state knows no device, and no pipeline."""
    flow, boundary = build(movers, "cpu")
    flow.step(6)
    other, its = copied(flow, boundary, movers, device=device, pipeline="host")
    flow.step(6)
    other.step(6)
    assert np.abs(everything(flow, boundary) - everything(other, its)).max() < 1e-12


def test_a_state_of_other_bodies() -> None:
    flow, boundary = build(small)
    state = boundary.state()
    with pytest.raises(SolverError, match="is of others: drum; these are disk, slider, ring"):
        build(few)[1].restore(state)
    wrong = state | {"fixed.x": state["fixed.x"][1:]}
    with pytest.raises(SolverError, match=r"does not fit these: 'fixed.x' is \(16, 2\) here, \(15, 2\) there"):
        boundary.restore(wrong)
    with pytest.raises(SolverError, match=r"'time' is .* missing there"):
        boundary.restore({k: v for k, v in state.items() if k != "time"})
    assert flow.steps == 0


SLIPS = [
    {}, {"streaming": "three-phase"}, {"pipeline": "host", "device": "cpu"},
    {"streaming": "push", "scattered": True, "device": "cpu"},
    {"streaming": "in-place", "mode": "field", "device": "cpu"},
    {"mode": "field", "pipeline": "host-serial", "device": "cpu"},
]  # fmt: skip


@pytest.mark.parametrize("options", rest_is_long(SLIPS, keep=2), ids=str)
def test_slip_whenever_one_asks(options: dict[str, Any]) -> None:
    """Before and after velocities and totals, again and again, after odd and even numbers of steps."""
    flow, boundary = build(small, **options)
    for count in (1, 1):
        flow.step(count)
        first = boundary.slip("drum")
        before = flow.force_field.read().copy()
        velocity = flow.velocity()
        flow.totals()
        assert np.array_equal(boundary.slip("drum"), first)
        assert np.array_equal(flow.velocity(), velocity), "to ask changes nothing"
        assert np.array_equal(flow.force_field.read(), before)
        assert 1e-7 < np.abs(first).max() < 2e-3
    start, weights = boundary.forcing.delta.weights(boundary.positions("drum"))
    at = start[:, :, None] + np.arange(3)
    near = flow.velocity()[np.mod(at[:, 0, :, None], 10), np.mod(at[:, 1, None, :], 12)]
    wanted = np.einsum("nj,ni,njid->nd", weights[:, 0], weights[:, 1], near) - small()[0].markers.velocities
    assert np.abs(first - wanted).max() < 1e-14, "the velocity of the flow, interpolated"


def test_steps_that_are_no_loops_are_counted() -> None:
    """Interpolation, spreading and the host's work are rows of reports; calls are those of the steps."""
    flow, boundary = build(few)
    flow.step(2)
    rows = {row.name: row for row in boundary.reports()}
    rounds = 2  # of forcing, with free bodies
    assert {name: row.calls for name, row in rows.items()} == {
        "move bodies": 2, "move freely": 2 * rounds, "interpolate": 2 * (rounds + 1), "spread": 2 * (rounds + 1),
    }  # fmt: skip
    assert all(row.seconds > 0 for row in rows.values())


def test_shares_of_the_time() -> None:
    """Prediction, forces, correction; what a host has done at markers counts once."""
    row = LoopReport("pull", 4, 6.0, 1, "direct", 0, 1, False, 0)
    rows = [row, replace(row, name="immersed arriving", seconds=1.0), replace(row, name="immersed pull", seconds=2.0)]
    near = [*rows, replace(row, name="spread", seconds=0.5), replace(row, name="move bodies", seconds=0.5)]
    wanted = {"cells": 0.6, "prediction": 0.1, "forces": 0.1, "correction": 0.2}
    assert shares(near) == pytest.approx(wanted)
    hosted = [*near, replace(row, name="markers: forces", seconds=0.75), replace(row, name="messages", seconds=0.25)]
    assert shares(hosted) == pytest.approx(wanted)
    assert shares([replace(row, seconds=0.0)]) == {}, "nobody knows times"


@pytest.mark.long
def test_loops_of_the_host_are_counted() -> None:
    flow, boundary = build(movers, "cpu", pipeline="host")
    flow.step(4)
    rows = {row.name: row for row in boundary.reports()}
    assert rows["markers: forces"].calls == rows["clear"].calls == 4
    assert {"markers: ahead", "messages", "force_marker", "spread"} <= set(rows)
    assert rows["interpolate"].useful_bytes > boundary.cells.size * 3 * 8
