"""Shares of a limiter that follow the states of a steady flow slowly, and stay: what changes, what converges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.dsl.run.chain import Chain
from fluxloom.fv.compressible.boundary import FarField, SlipWall
from fluxloom.fv.compressible.free_stream import FreeStream
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.gradients.limiters import Limiter, Venkatakrishnan
from fluxloom.fv.time_schemes import RK5
from fluxloom.mesh import box2d
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.solvers.compressible.cycles import Multigrid
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.implicit import Implicit, SteadySteps
from fluxloom.solvers.compressible.limiter_freezing import LimiterFollowing, LimiterFreezing
from fluxloom.solvers.compressible.multigrid import MultigridSteps
from fluxloom.solvers.compressible.scheme import CompressibleScheme

SOUND, TURN = 1.4**0.5, 0.15
STREAM = [1.0, 2.0 * SOUND * np.cos(TURN), -2.0 * SOUND * np.sin(TURN), 1.0]


SMOOTH = Venkatakrishnan()


def shock(limiter: Limiter | None = SMOOTH, device: str = "cpu", cells: tuple[int, int] = (16, 10)) -> CompressibleFlow:
    """Return a stream faster than sound that a wall turns: an oblique shock."""
    volumes = control_volumes(box2d(*cells, (1.6, 1.0), perturb=0.15))
    sides = {name: SlipWall() if name == "ymin" else FarField(STREAM) for name in volumes.patches}
    scheme = CompressibleScheme(limiter=limiter, time=RK5(), cfl=1.0)
    context = fl.Context(device, threads=1, tuning=False)
    flow = CompressibleFlow(context, volumes, sides, Gas(constant=1.0), scheme)
    flow.start(STREAM)
    return flow


def live_shares(flow: CompressibleFlow) -> np.ndarray:
    """Return what the limiter leaves of the slopes of the states now; the flow has live shares afterwards."""
    flow.freeze(False)
    flow.before()
    return flow.limiter_values.read()[: flow.volumes.cells]


def test_shares_go_a_part_of_the_way() -> None:
    flow = shock()
    flow.iterate(8)
    cells = flow.volumes.cells
    wanted = live_shares(flow)
    assert wanted.min() < 0.6
    flow.freeze()
    flow.limiter_values.write(np.full_like(flow.limiter_values.read(), 0.5))
    flow.before()
    Chain(flow.renewal(flow.w, 0.25), fuse=False)()
    np.testing.assert_allclose(flow.limiter_values.read()[:cells], 0.5 + 0.25 * (wanted - 0.5), rtol=1e-13)


def test_frozen_shares_stay_until_the_start() -> None:
    flow = shock()
    flow.iterate(3)
    flow.freeze()
    assert flow.frozen
    cells = flow.volumes.cells
    before = flow.limiter_values.read()[:cells].copy()
    flow.iterate(3)
    np.testing.assert_array_equal(flow.limiter_values.read()[:cells], before)
    flow.freeze(False)
    flow.iterate(3)
    assert np.abs(flow.limiter_values.read()[:cells] - before).max() > 0.01
    flow.freeze()
    flow.start(STREAM)
    assert not flow.frozen
    free = shock(None)
    free.freeze()
    assert not free.frozen
    with pytest.raises(SolverError, match="no limiter"):
        free.renewal(free.w, 0.5)


def test_implicit_steps_with_shares_that_stay() -> None:
    """They converge to the last; the live limiter's residual is small there."""
    steps = SteadySteps(shock(), Implicit())
    first = steps.begin().total
    found = []
    while steps.total > 1e-11 * first:
        found.append(steps.step())
        assert len(found) < 80
    live = [step.live for step in found]
    assert live[0] == 1.0
    assert 0.3 in live
    assert live == sorted(live, reverse=True)
    assert live[-1] == 0.0
    assert steps.flow.frozen
    before = steps.flow.states()
    steps.flow.iterate(5)
    np.testing.assert_allclose(steps.flow.states(), before, rtol=1e-9, atol=1e-9)
    assert steps.begin().total < 0.02 * first
    assert steps.shares.weight == 1.0


@pytest.mark.long
def test_multigrid_with_shares_that_stay() -> None:
    steps = MultigridSteps(shock(cells=(20, 12)), Multigrid(levels=2, freeze_below=1e-3))
    norms = steps.solve(1e-10, 400)
    assert norms[-1] <= 1e-10 * norms[0]
    assert steps.shares.weight == 0.0
    before = steps.flow.states()
    steps.step()
    np.testing.assert_allclose(steps.flow.states(), before, atol=1e-8)


def test_when_shares_follow_and_stay() -> None:
    """At the levels that are given, or after steps without a lower residual; live again where it grows."""
    flow = shock()
    how = LimiterFreezing(relax_below=0.1, relaxation=0.5, freeze_below=1e-3, patience=3)
    shares = LimiterFollowing(flow, flow.w, how)

    def after(*parts: float) -> float:
        for part in parts:
            shares.look(part)
        return shares.weight

    assert after(1.0, 0.2, 0.2, 0.2, 0.2) == 1.0
    assert not flow.frozen
    assert after(0.09) == 0.5
    assert flow.frozen
    assert after(0.085, 0.09, 0.25, 0.07, 0.09, 0.08) == 0.5
    assert after(0.31) == 1.0
    assert not flow.frozen
    assert after(0.1, 9e-4) == 0.0
    assert after(0.2) == 0.0
    shares.begin()
    assert after(0.1, 0.095, 0.095, 0.11) == 0.5
    assert after(0.095) == 0.0
    assert not shares.renew()


@pytest.mark.long
def test_transonic_airfoil() -> None:
    """Two shocks on rings of quads, to the last; what is left of the live limiter's residual is small."""
    gas, stream = Gas(constant=1.0), FreeStream.at_angles(0.8, 1.0, 1.0, 1.25, dimension=2)
    volumes = control_volumes(naca_mesh("0012", 64, 24, 20.0))
    flow = CompressibleFlow(fl.Context("cpu", threads=1, tuning=False), volumes,
                            {"airfoil": SlipWall(), "far_field": FarField(stream)}, gas)  # fmt: skip
    flow.start(stream.state(gas, 2))
    steps = SteadySteps(flow)
    norms = steps.solve(1e-10, 500)
    assert norms[-1] <= 1e-10 * norms[0]
    assert steps.shares.weight == 0.0
    assert steps.begin().total < 1e-2 * norms[0]


@pytest.mark.long
def test_reference_follows_the_same_way() -> None:
    found = []
    for device in ("cpu", "reference"):
        flow = shock(device=device, cells=(6, 5))
        steps = SteadySteps(flow, Implicit(relax_below=1.0, krylov=0, sweeps=1))
        for _ in range(3):
            steps.step()
        found.append((flow.states(), flow.limiter_values.read()[: flow.volumes.cells]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relax_below": 1.5}, "relax_below: from 0 to 1"),
        ({"relaxation": float("nan")}, "relaxation: from 0 to 1"),
        ({"freeze_below": -0.1}, "freeze_below: from 0 to 1"),
        ({"patience": 1.5}, "patience is a whole number"),
        ({"relaxation": 0.0}, "relaxation is 0"),
    ],
)
def test_choices(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SolverError, match=message):
        LimiterFreezing(**({"relax_below": 0.1, "relaxation": 0.3, "freeze_below": 1e-4, "patience": 100} | options))
    with pytest.raises(SolverError, match=message):
        Implicit(**options)
    with pytest.raises(SolverError, match=message):
        Multigrid(**options)
