"""Incompressible flow: exact solutions, order, conservation, boundaries, devices."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, ProjectionScheme, RungeKutta
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom_lab.exact.taylor_green import plane_vortices

BOTH = (("xmin", "xmax"), ("ymin", "ymax"))
TIGHT = Stop(rtol=1e-11)
LENGTH = 2 * np.pi


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", tuning=False)


def decay(ctx: fl.Context, n: int, scheme: Any) -> float:
    """Return the error of the velocity at time 0.5, the root of its mean square."""
    nu = 0.1
    volumes = control_volumes(box2d(n, n, (LENGTH, LENGTH)), BOTH)
    flow = Incompressible(ctx, volumes, nu, stop=TIGHT, scheme=scheme)
    flow.initialise(plane_vortices)
    steps = 2 * n
    for _ in range(steps):
        assert flow.step(0.5 / steps).converged
    wanted = np.exp(-2 * nu * 0.5) * plane_vortices(volumes.centres[: volumes.cells])
    assert flow.state().imbalance < 1e-9
    return float(np.sqrt(((flow.velocity() - wanted) ** 2).sum(axis=1).mean()))


@pytest.mark.parametrize("scheme", [AdamsBashforth(), RungeKutta()], ids=strategy_name)
def test_vortices_decay_with_second_order(ctx: fl.Context, scheme: Any) -> None:
    coarse, fine = decay(ctx, 16, scheme), decay(ctx, 32, scheme)
    assert fine < 1.2e-3
    assert np.log2(coarse / fine) > 1.8


def error_of_steps(ctx: fl.Context, n: int, steps: int) -> float:
    """Return how far vortices in a stream are from those computed with many more steps, on the same mesh."""
    volumes = control_volumes(box2d(n, n, (LENGTH, LENGTH)), BOTH)

    def run(count: int) -> np.ndarray:
        flow = Incompressible(ctx, volumes, 0.05, stop=TIGHT)
        flow.initialise(lambda x: plane_vortices(x) + np.array([0.7, 0.3]))
        for _ in range(count):
            flow.step(0.8 / count)
        return flow.velocity()

    return float(np.abs(run(steps) - run(512)).max())


def test_error_of_steps(ctx: fl.Context) -> None:
    """It is of the order ``dt h^2 + dt^2``: pressure and velocity at the same places leave the first part."""
    coarse, fine = error_of_steps(ctx, 12, 32), error_of_steps(ctx, 24, 32)
    assert coarse / fine > 3.2
    assert error_of_steps(ctx, 24, 16) / fine > 2.0


@dataclass(frozen=True)
class Stages(ProjectionScheme):
    """A scheme of one's own: Heun's by default, of second order."""

    shares: tuple[float, ...] = (0.0, 0.5)  # pyright: ignore[reportIncompatibleMethodOverride]


@pytest.mark.parametrize(("scheme", "order"), [(AdamsBashforth(), 2), (RungeKutta(), 3), (Stages(), 2)])
def test_order_of_the_scheme(ctx: fl.Context, scheme: Any, order: int) -> None:
    """Shear ``u = sin y`` decays by ``exp(-nu t (2 - 2 cos h) / h^2)`` on a regular mesh, without pressure."""
    n, nu, time = 8, 1.0, 0.8
    volumes = control_volumes(box2d(2, n, (1.0, LENGTH)), BOTH)
    shear = np.stack([np.sin(volumes.centres[:, 1]), np.zeros(2 * n)], axis=1)
    h = LENGTH / n
    wanted = np.exp(-nu * time * (2 - 2 * np.cos(h)) / h**2) * shear
    errors = []
    for steps in (16, 32):
        flow = Incompressible(ctx, volumes, nu, stop=TIGHT, scheme=scheme)
        flow.initialise(lambda _x: shear)
        for _ in range(steps):
            flow.step(time / steps)
        errors.append(np.abs(flow.velocity() - wanted).max())
        assert np.abs(flow.pressure()).max() < 1e-12
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize(("kind", "perturb"), [("quad", 0.0), ("triangle", 0.3)])
def test_energy_changes_by_steps_in_time_alone(ctx: fl.Context, kind: str, perturb: float) -> None:
    """Without viscosity: what is lost in a given time falls with the step, momentum stays.

    The first steps are left out, in which the pressure takes from the cells what the faces have lost already.
    """
    volumes = control_volumes(box2d(10, 8, (LENGTH, LENGTH), kind, perturb=perturb, seed=3), BOTH)
    drift = []
    for steps in (20, 40, 80):
        flow = Incompressible(ctx, volumes, 0.0, stop=TIGHT, consistent=False)
        flow.initialise(lambda x: plane_vortices(x) + np.array([0.4, -0.2]))
        for _ in range(40):
            flow.step(0.5 / steps)
        start = flow.state()
        for _ in range(steps):
            flow.step(0.5 / steps)
        end = flow.state()
        drift.append(abs(end.kinetic_energy / start.kinetic_energy - 1))
        assert np.allclose(end.momentum, start.momentum, atol=1e-9 * start.kinetic_energy)
    assert drift[2] < 0.6 * drift[1] < 0.36 * drift[0]
    assert drift[2] < 4e-3


@pytest.mark.parametrize(
    "mesh",
    [lambda: box2d(5, 4, kind="triangle", perturb=0.3), lambda: box3d(3, 2, 2, kind="tetra", perturb=0.2)],
    ids=["triangle", "tetra"],
)
def test_uniform_flow_stays(ctx: fl.Context, mesh: Callable[[], Any]) -> None:
    volumes = control_volumes(mesh())
    speed = np.eye(volumes.dimension)[0] * 1.5
    sides = {name: Symmetry() for name in volumes.patches}
    flow = Incompressible(ctx, volumes, 0.1, sides | {"xmin": Inflow(speed), "xmax": Outflow()}, stop=TIGHT)
    flow.initialise(speed)
    for _ in range(5):
        flow.step(0.01)
    assert np.abs(flow.velocity() - speed).max() < 1e-10
    assert np.abs(flow.pressure()).max() < 1e-9


def test_couette_flow_is_exact(ctx: fl.Context) -> None:
    """A wall that slides over one at rest: the linear profile is a solution of the discrete equations."""
    volumes = control_volumes(box2d(3, 7), [("xmin", "xmax")])
    flow = Incompressible(ctx, volumes, 0.3, {"ymin": NoSlip(), "ymax": NoSlip((2.0, 0.0))}, stop=TIGHT)
    profile = np.stack([2 * volumes.centres[: volumes.cells, 1], np.zeros(volumes.cells)], axis=1)
    flow.initialise(lambda _x: profile)
    for _ in range(20):
        flow.step(0.005)
    assert np.abs(flow.velocity() - profile).max() < 1e-12


def test_channel_driven_by_a_force(ctx: fl.Context) -> None:
    """``u = f y (1 - y) / (2 nu)`` at rest; the scheme is off by a constant, ``f h^2 / (8 nu)``."""
    n, nu, f = 8, 0.5, 3.0
    volumes = control_volumes(box2d(2, n), [("xmin", "xmax")])
    flow = Incompressible(ctx, volumes, nu, {"ymin": NoSlip(), "ymax": NoSlip()}, force=(f, 0.0), stop=TIGHT)
    flow.initialise((0.0, 0.0))
    for _ in range(1500):
        flow.step(0.003)
    y = volumes.centres[: volumes.cells, 1]
    wanted = f * y * (1 - y) / (2 * nu) + f / (8 * nu * n * n)
    assert np.abs(flow.velocity()[:, 0] - wanted).max() < 1e-6
    assert np.abs(flow.velocity()[:, 1]).max() < 1e-12


def test_flow_through_a_channel(ctx: fl.Context) -> None:
    """A parabola comes in, and the pressure falls by ``8 nu umax / h^2`` a length."""
    n, nu = 12, 0.2
    volumes = control_volumes(box2d(2 * n, n, (2.0, 1.0)))
    inflow = Inflow(lambda x: np.stack([4 * x[:, 1] * (1 - x[:, 1]), 0 * x[:, 1]], axis=1))
    flow = Incompressible(
        ctx, volumes, nu, {"xmin": inflow, "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip()}, stop=Stop(rtol=1e-8)
    )
    flow.initialise((1.0, 0.0))
    for _ in range(600):
        flow.step(0.002)
    x = volumes.centres[: volumes.cells]
    there = np.abs(x[:, 0] - 1.0) < 0.3
    assert np.abs(flow.velocity()[there, 0] - 4 * x[there, 1] * (1 - x[there, 1])).max() < 0.02
    slope = np.polyfit(x[there, 0], flow.pressure()[there], 1)[0]
    assert slope == pytest.approx(-8 * nu, rel=0.02)


@pytest.mark.parametrize("device", ["reference", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_devices_agree(ctx: fl.Context, device: str) -> None:
    volumes = control_volumes(box2d(4, 3, kind="triangle", perturb=0.2))
    sides = {"xmin": Inflow((1.0, 0.1)), "xmax": Outflow(), "ymin": NoSlip(), "ymax": Symmetry()}

    def run(context: fl.Context) -> tuple[np.ndarray, np.ndarray]:
        flow = Incompressible(context, volumes, 0.05, sides, stop=TIGHT)
        flow.initialise((1.0, 0.0))
        for dt in (0.01, 0.02):
            flow.step(dt)
        return flow.velocity(), flow.pressure()

    for mine, wanted in zip(run(fl.Context(device, tuning=False)), run(ctx), strict=True):
        assert np.allclose(mine, wanted, rtol=1e-9, atol=1e-9)


def walls(volumes: ControlVolumes) -> dict[str, Any]:
    return dict.fromkeys(volumes.patches, NoSlip())


def test_wrong_input(ctx: fl.Context) -> None:
    volumes = control_volumes(box2d(3, 3))
    good = walls(volumes)
    for viscosity, boundaries, more, message in (
        (-1.0, good, {}, "viscosity: a number of at least 0 is wanted, not -1.0"),
        (0.1, {}, {}, "patch 'xmin' has no boundary: give NoSlip"),
        (0.1, good | {"xmni": NoSlip()}, {}, "no patch 'xmni'.*did you mean 'xmin'"),
        (0.1, good | {"xmin": Inflow((1.0,) * 3)}, {}, "patch 'xmin': a vector of 2 components is wanted"),
        (0.1, good | {"xmin": Inflow((np.nan, 0.0))}, {}, r"patch 'xmin': \(nan, 0.0\) is not finite"),
        (0.1, good, {"scheme": "runge-cutta"}, r"scheme: .* not 'runge-cutta'; write scheme=RungeKutta\(\)"),
        (0.1, good, {"scheme": Stages((0.5,))}, r"Stages: shares begin with 0 and are less than 1, not \(0.5,\)"),
        (0.1, good, {"force": (1.0,)}, r"force: 2 finite numbers are wanted, not \(1.0,\)"),
    ):
        with pytest.raises(SolverError, match=message):
            Incompressible(ctx, volumes, viscosity, boundaries, **more)


def test_wrong_step(ctx: fl.Context) -> None:
    volumes = control_volumes(box2d(3, 3))
    flow = Incompressible(ctx, volumes, 0.1, walls(volumes))
    flow.initialise((0.0, 0.0))
    with pytest.raises(SolverError, match="dt: a positive number is wanted, not 0"):
        flow.step(0)
    flow.u.write(np.full((volumes.elements, 2), np.nan))
    with pytest.raises(SolverError, match="step 1, time 0: the velocity is not finite"):
        flow.step(0.1)


def test_flat_cells() -> None:
    """Cells in which pressure feeds oscillations are said; good ones are not."""
    ctx = fl.Context("cpu", threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cubes = Incompressible(ctx, control_volumes(box2d(4, 4), [("xmin", "xmax"), ("ymin", "ymax")]), 0.1)
    assert np.allclose(cubes.matrices.operators.wide_share(), 0.25)
    flat = control_volumes(box3d(3, 3, 3, kind="tetra", perturb=0.4))
    walls = {name: NoSlip() for name in flat.patches}
    with pytest.warns(UserWarning, match=r"cells are so flat \(Operators.wide_share is up to .*Netgen"):
        Incompressible(ctx, flat, 0.1, walls, consistent=False)
