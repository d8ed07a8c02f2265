"""Flow on a staggered grid: orders in space and time, exact flows, energy, and the cavity of Botella and Peyret."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

import numpy as np
import numpy.typing as npt
import pytest

import fluxloom as fl
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, StaggeredTimeScheme, Wray
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.mesh.generate.boxes import clustered
from fluxloom.solvers.staggered.flow import Staggered
from fluxloom.solvers.staggered.forces import StaggeredForces
from fluxloom_lab.problems.lid_cavity import BOTELLA_PEYRET
from fluxloom_lab.verify.staggered import extremes, steady_cavity

Array = npt.NDArray[np.float64]

AB2, RK3, ONCE = AdamsBashforth(), Wray(), Wray("step")
POISEUILLE = Inflow(lambda p: np.stack([4 * p[:, 1] * (1 - p[:, 1]), 0 * p[:, 0]], axis=1))


def even(n: int, length: float = 1.0) -> Array:
    return length * np.arange(n + 1) / n


def flow(
    faces: tuple[Array, ...], periodic: tuple[bool, ...], viscosity: float, boundaries: Mapping[str, Boundary],
    scheme: StaggeredTimeScheme = RK3, device: str = "cpu", force: tuple[float, ...] = (), mean: tuple[float, ...] = (),
) -> Staggered:  # fmt: skip
    context = fl.Context(device, threads=1, tuning=False)
    grid = StaggeredGrid(faces, periodic)
    return Staggered(context, grid, viscosity, boundaries, scheme=scheme, force=force, mean_velocity=mean)


def vortices(n: int, scheme: StaggeredTimeScheme, steps: int, viscosity: float = 0.05, end: float = 0.5) -> Staggered:
    """Return the Taylor-Green vortices, carried by a uniform stream."""
    found = flow((even(n, 2 * np.pi),) * 2, (True, True), viscosity, {}, scheme)
    found.initialise(
        lambda p: 0.5 + np.stack([np.cos(p[:, 0]) * np.sin(p[:, 1]), -np.sin(p[:, 0]) * np.cos(p[:, 1])], 1)
    )
    for _ in range(steps):
        found.step(end / steps)
        assert found.state().imbalance < 1e-14
    return found


def test_second_order_in_space() -> None:
    """Velocity and pressure of moving Taylor-Green vortices, the step a part of the cell."""
    errors: list[list[float]] = []
    for n in (16, 32, 64):
        found = vortices(n, RK3, n // 2)
        x, y = found.grid.places(0)
        decay = np.exp(-0.1 * found.time)
        u = 0.5 + decay * np.cos(x - 0.5 * found.time) * np.sin(y - 0.5 * found.time)
        x, y = np.meshgrid(found.grid.centres(0), found.grid.centres(1))
        # The pressure is that of the last third of a step.
        late = found.time - found.dt / 6
        p = -0.25 * np.exp(-0.2 * late) * (np.cos(2 * x - late) + np.cos(2 * y - late))
        errors.append([np.abs(found.faces()[0] - u).max(), np.abs(found.pressure() - p.ravel()).max()])
    for coarse, fine in ((0, 1), (1, 2)):
        for kind in (0, 1):
            assert 1.8 < log2(errors[coarse][kind] / errors[fine][kind]) < 2.2


@pytest.mark.parametrize(("scheme", "order"), [(AB2, 2), (RK3, 3), (ONCE, 2)], ids=["ab2", "rk3", "rk3 once"])
def test_order_in_time(scheme: StaggeredTimeScheme, order: int) -> None:
    """On one grid, against steps so small that they are exact. Solving for the pressure once a step costs an order."""
    exact = vortices(12, RK3, 400, end=1.0).faces()[0]
    errors = [np.abs(vortices(12, scheme, steps, end=1.0).faces()[0] - exact).max() for steps in (12, 24, 48)]
    assert order - 0.2 < log2(errors[1] / errors[2]) < order + 0.3
    assert order - 0.3 < log2(errors[0] / errors[1]) < order + 0.5


def stretched(n: int) -> Array:
    return clustered(1.5)(np.arange(n + 1) / n)


def noisy(found: Staggered) -> Staggered:
    """Return a flow that begins with random velocities, without divergence."""
    rng = np.random.default_rng(0)
    shapes = [found.grid.face_window(a) for a in range(found.dimension)]
    found.initialise([rng.standard_normal([s.stop - s.start for s in shape]) for shape in shapes])
    return found


@pytest.mark.parametrize("dimension", [2, pytest.param(3, marks=pytest.mark.long)])
def test_energy_is_kept(dimension: int) -> None:
    """Convection does no work: without viscosity what is lost vanishes with the third power of the step.

    In a stretched box, periodic along x, between planes without friction.
    """
    sides = {name: Symmetry() for name in ("ymin", "ymax", "zmin", "zmax")[: 2 * dimension - 2]}
    faces, periodic = (even(6), stretched(8), even(5)), (True, False, False)
    found = noisy(flow(faces[:dimension], periodic[:dimension], 0.0, sides))
    start, lost = found.faces(), []
    for steps in (4, 8, 16):
        found.initialise(start)
        before = found.state().kinetic_energy
        for _ in range(steps):
            found.step(0.01 / steps)
        lost.append(abs(found.state().kinetic_energy - before) / before)
    assert lost[0] < 1e-5
    assert lost[0] > 7 * lost[1] > 45 * lost[2]


@pytest.mark.parametrize("scheme", [AB2, RK3, ONCE], ids=["ab2", "rk3", "rk3 once"])
@pytest.mark.parametrize("dimension", [2, pytest.param(3, marks=pytest.mark.long)])
def test_no_sources(scheme: StaggeredTimeScheme, dimension: int) -> None:
    """After each step nothing comes from nowhere, on a stretched grid, with walls, inflow and outflow."""
    sides: dict[str, Boundary] = {
        "xmin": Inflow((1.0, 0.0, 0.1)[:dimension]), "xmax": Outflow(),
        "ymin": NoSlip(), "ymax": NoSlip((0.5, 0.0, 0.2)[:dimension]),
    }  # fmt: skip
    faces, periodic = (even(8, 2.0), stretched(8), even(6)), (False, False, True)
    found = flow(faces[:dimension], periodic[:dimension], 0.01, sides, scheme)
    found.initialise(lambda p: np.add(np.sin(3 * p), [1.0, 0.0, 0.0][:dimension]))
    for _ in range(5):
        found.step(found.stable_step())
        assert found.state().imbalance < 1e-15
    u = found.faces()[0]
    widths = found.grid.widths(1)[None, :]
    assert (u[..., -1] * widths).sum() == pytest.approx((u[..., 0] * widths).sum(), rel=1e-13)


def test_poiseuille() -> None:
    """On equal cells the discrete parabola is ``4 y (1 - y) + h^2`` to rounding; on stretched ones of second order."""
    for n in (8, 16):
        found = flow((even(2, 0.5), even(n)), (True, False), 1.0, {"ymin": NoSlip(), "ymax": NoSlip()}, force=(8.0, 0))
        y = found.grid.centres(1)[:, None]
        found.initialise(lambda p, n=n: np.stack([4 * p[:, 1] * (1 - p[:, 1]) + 1 / n**2, 0 * p[:, 0]], axis=1))
        found.step(found.stable_step())
        assert np.abs(found.faces()[0] - 4 * y * (1 - y) - 1 / n**2).max() < 1e-14
        assert StaggeredForces(found, ["ymin", "ymax"]).now() == pytest.approx([4.0, 0.0], abs=1e-12)
    errors: list[float] = []
    for n in (6, 12, 24):
        found = flow((even(2), stretched(n)), (True, False), 1.0, {"ymin": NoSlip(), "ymax": NoSlip()}, force=(8.0, 0))
        found.initialise(lambda p: np.stack([4 * p[:, 1] * (1 - p[:, 1]), 0 * p[:, 0]], axis=1))
        dt = found.stable_step()
        for _ in range(round(0.6 / dt)):
            found.step(dt)
        y = found.grid.centres(1)[:, None]
        errors.append(float(np.abs(found.faces()[0] - 4 * y * (1 - y)).max()))
    assert 1.8 < log2(errors[0] / errors[1]) < 2.1
    assert 1.9 < log2(errors[1] / errors[2]) < 2.1


@pytest.mark.parametrize("dimension", [2, pytest.param(3, marks=pytest.mark.long)])
def test_couette(dimension: int) -> None:
    """Between sliding walls the linear flow stays to rounding, on stretched cells, along z too."""
    speeds = [1.0, 0.0, -2.0][:dimension]
    sides = {"ymin": NoSlip(), "ymax": NoSlip(tuple(speeds))}
    faces, periodic = (even(3), stretched(7), even(4)), (True, False, True)
    found = flow(faces[:dimension], periodic[:dimension], 0.5, sides, AB2)
    found.initialise(lambda p: p[:, 1:2] * speeds)
    for _ in range(5):
        found.step(found.stable_step())
    y = found.grid.along(1, found.grid.centres(1))
    for values, speed in zip(found.faces(), speeds, strict=True):
        assert np.abs(values - speed * y if speed else values).max() < 1e-14
    assert StaggeredForces(found, ["ymin"]).now() == pytest.approx([0.5, 0.0, -1.0][:dimension], rel=1e-12)


def test_inflow_and_outflow() -> None:
    """A channel from rest: Poiseuille's flow to the end of it, and the pressure falls by ``8 nu`` a length."""
    sides = {"xmin": POISEUILLE, "xmax": Outflow(), "ymin": NoSlip(), "ymax": NoSlip()}
    found = flow((even(24, 3.0), even(12)), (False, False), 0.05, sides)
    found.initialise(lambda p: 0 * p)
    assert found.state().imbalance < 1e-13
    while found.time < 8.0:
        found.step(found.stable_step())
    y = found.grid.centres(1)[:, None]
    assert np.abs(found.faces()[0] - 4 * y * (1 - y)).max() < 6e-3
    assert found.residual < 1e-8
    p = found.pressure().reshape(12, 24)
    x = found.grid.centres(0)
    assert (p[6, 20] - p[6, 4]) / (x[20] - x[4]) == pytest.approx(-0.4, rel=0.02)


def test_mean_velocity_is_kept() -> None:
    """The force that keeps the mean of Poiseuille's flow is friction, ``12 nu / (1 + 2 h^2)`` on equal cells."""
    found = flow((even(2), even(12)), (True, False), 1.0, {"ymin": NoSlip(), "ymax": NoSlip()}, mean=(1.0, 0.0))
    found.initialise(lambda p: np.stack([np.ones(len(p)), 0 * p[:, 0]], axis=1))
    dt = found.stable_step()
    for _ in range(round(0.6 / dt)):
        found.step(dt)
        assert found.state().momentum[0] == pytest.approx(1.0, rel=1e-13)
    friction = StaggeredForces(found, ["ymin", "ymax"]).now()
    assert found.acting_force() == pytest.approx(friction, rel=1e-6)
    assert friction[0] == pytest.approx(12.0 / (1.0 + 2.0 / 144), rel=1e-6)


def test_steps_of_different_lengths() -> None:
    """Adams-Bashforth takes lengths into account: with steps that alternate it is of second order."""
    exact = vortices(12, RK3, 400, end=1.0).faces()[0]
    errors: list[float] = []
    for pairs in (16, 32):
        found = vortices(12, AB2, 0)
        for _ in range(pairs):
            found.step(0.7 / pairs)
            found.step(0.3 / pairs)
        errors.append(float(np.abs(found.faces()[0] - exact).max()))
    assert 1.8 < log2(errors[0] / errors[1]) < 2.3


@pytest.mark.parametrize(
    "device", [pytest.param("opencl", marks=pytest.mark.opencl), pytest.param("cuda", marks=pytest.mark.cuda)]
)
def test_devices(device: str) -> None:
    """A device finds what the processor does."""
    found: list[Array] = []
    for name in ("cpu", device):
        sides: dict[str, Boundary] = {
            "xmin": Inflow((1.0, 0.0)),
            "xmax": Outflow(),
            "ymin": NoSlip(),
            "ymax": Symmetry(),
        }
        here = flow((even(10, 2.0), stretched(8)), (False, False), 0.01, sides, AB2, name)
        here.initialise(lambda p: np.add(np.sin(3 * p), [1.0, 0.0]))
        for _ in range(4):
            here.step(0.01)
        found.append(here.velocity())
    assert np.abs(found[1] - found[0]).max() < 1e-13


@pytest.mark.long
def test_cavity() -> None:
    """Order 2, and the limit within two thousandths of the spectral solution."""
    found: list[Array] = []
    here: Staggered | None = None
    context = fl.Context("cpu", threads=1, tuning=False)
    for n in (32, 64, 128):
        here = steady_cavity(context, n, here)
        found.append(np.array(list(extremes(here).values())))
    published = np.array(list(BOTELLA_PEYRET.values()))
    errors = [np.abs(values / published - 1).max() for values in found]
    assert log2(errors[1] / errors[2]) > 1.8
    assert errors[2] < 0.016
    limit = found[2] + (found[2] - found[1]) / 3
    assert np.abs(limit / published - 1).max() < 2e-3
