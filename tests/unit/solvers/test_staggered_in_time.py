"""Flow on a staggered grid whose sides and force change in time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.incompressible.projection_schemes import AdamsBashforth, Wray
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.solvers.staggered.flow import Staggered

WALLS = {name: NoSlip() for name in ("xmin", "xmax", "ymin", "ymax")}
STREAM = Inflow(("1 + 0.5 * sin(5 * t)", 0.0))


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", threads=1, tuning=False)


def box(*ends: tuple[float, float, int], periodic: tuple[bool, ...] = ()) -> StaggeredGrid:
    return StaggeredGrid(tuple(np.linspace(a, b, n + 1) for a, b, n in ends), periodic or (False,) * len(ends))


def plate(ctx: fl.Context, scheme: Any, steps: int) -> np.ndarray:
    grid = box((0.0, 0.25, 4), (0.0, 1.0, 16), periodic=(True, False))
    flow = Staggered(ctx, grid, 0.02, {"ymin": NoSlip(("cos(3 * t)", 0.0)), "ymax": NoSlip()}, scheme=scheme)
    flow.initialise(lambda x: 0.0 * x)
    for _ in range(steps):
        flow.step(0.5 / steps)
    return flow.velocity()


@pytest.mark.parametrize(("scheme", "order"), [(AdamsBashforth(), 1.9), (Wray(), 2.9)], ids=str)
def test_order_of_steps_beside_a_plate_that_swings(ctx: fl.Context, scheme: Any, order: float) -> None:
    coarse, middle, fine = (plate(ctx, scheme, n) for n in (20, 40, 80))
    assert np.log2(np.abs(coarse - middle).max() / np.abs(middle - fine).max()) > order


@pytest.mark.parametrize("scheme", [AdamsBashforth(), Wray(), Wray("step")], ids=str)
@pytest.mark.parametrize("out", [STREAM, Outflow()], ids=["given", "free"])
def test_a_stream_that_swings(ctx: fl.Context, scheme: Any, out: Any) -> None:
    sides = {"xmin": STREAM, "xmax": out, "ymin": Symmetry(), "ymax": Symmetry()}
    flow = Staggered(ctx, box((0.0, 1.5, 12), (0.0, 1.0, 8)), 0.02, sides, scheme=scheme)
    flow.initialise([np.ones((8, 13)), np.zeros((9, 12))])
    for _ in range(20):
        flow.step(0.02)
    assert np.abs(flow.velocity() - (1.0 + 0.5 * np.sin(2.0), 0.0)).max() < 1e-12
    assert flow.state().imbalance < 1e-14


@pytest.mark.parametrize("force", [("cos(t)", 0.0), ("cos(t) + 0 * y", 0.0)])
def test_a_force_that_swings_across_a_channel(ctx: fl.Context, force: Any) -> None:
    """Womersley's flow; the force is the same everywhere, or differs from place to place by nothing."""
    k = (1 + 1j) * np.sqrt(0.5 / 0.04)

    def exact(y: np.ndarray, time: float) -> np.ndarray:
        return ((1 - np.cosh(k * y) / np.cosh(k)) * np.exp(1j * time)).imag

    grid = box((0.0, 0.25, 4), (-1.0, 1.0, 32), periodic=(True, False))
    flow = Staggered(ctx, grid, 0.04, {"ymin": NoSlip(), "ymax": NoSlip()}, force=force)
    flow.initialise(lambda x: np.stack([exact(x[:, 1], 0.0), 0.0 * x[:, 1]], axis=1))
    for _ in range(100):
        flow.step(0.01)
    u = flow.velocity().reshape(32, 4, 2)[:, 0, 0]
    assert np.abs(u - exact(grid.centres(1), 1.0)).max() < 8e-3


def test_a_force_in_space_turns_a_fluid(ctx: fl.Context) -> None:
    """Kolmogorov's flow, ``f = sin(y) cos(t)``: exact in the plane; a potential does nothing."""
    grid = box((0.0, 2 * np.pi, 8), (0.0, 2 * np.pi, 32), periodic=(True, True))
    flow = Staggered(ctx, grid, 0.1, {}, force=("sin(y) * cos(t)", 0.0), scheme=Wray())
    flow.initialise(lambda x: 0.0 * x)
    for _ in range(50):
        flow.step(0.02)
    size = (0.1 * np.cos(1.0) + np.sin(1.0) - 0.1 * np.exp(-0.1)) / 1.01
    u = flow.velocity().reshape(32, 8, 2)
    assert np.abs(u[..., 0] - size * np.sin(grid.centres(1))[:, None]).max() < 1e-3
    still = Staggered(ctx, box((0.0, 1.0, 8), (0.0, 1.0, 8)), 0.1, WALLS, force=("x * t", "cos(5 * y)"))
    still.initialise(lambda x: 0.0 * x)
    for _ in range(5):
        still.step(0.02)
    assert np.abs(still.velocity()).max() < 1e-14


def test_a_lid_that_turns_to_and_fro(ctx: fl.Context) -> None:
    """The places beyond it have the velocity of the time; the largest stable step knows it."""
    grid = box((-1.0, 1.0, 8), (-1.0, 1.0, 8), (-1.0, 1.0, 8))
    sides = WALLS | {"zmin": NoSlip(), "zmax": NoSlip(("-sin(3 * t) * y", "sin(3 * t) * x", 0.0))}
    flow = Staggered(ctx, grid, 0.1, sides)
    flow.initialise(lambda x: 0.0 * x)
    before = flow.stable_step(diffusion=100.0)
    for _ in range(10):
        flow.step(0.02)
    assert before == pytest.approx(100.0 / (0.1 * 3 * 16.0))
    assert flow.stable_step(diffusion=100.0) < 1.0
    values = flow.velocity().reshape(8, 8, 8, 3)
    assert np.abs(values[-1]).max() > 0.1
    assert flow.state().imbalance < 1e-15


def test_what_is_refused_in_time(ctx: fl.Context) -> None:
    grid = box((0.0, 1.5, 12), (0.0, 1.0, 8))
    flow = Staggered(ctx, grid, 0.02, WALLS | {"xmin": Inflow(("t", 0.0))})
    flow.initialise(lambda x: 0.0 * x)
    with pytest.raises(SolverError, match=r"at t = 0\.1 the given velocities let 0\.1 more in, and no side"):
        flow.step(0.1)
    with pytest.raises(SolverError, match="ymax: a wall slides along itself"):
        Staggered(ctx, grid, 0.02, WALLS | {"ymax": NoSlip((0.0, "t"))})
    with pytest.raises(SolverError, match="xmax: outflows of a staggered grid are given no pressure"):
        Staggered(ctx, grid, 0.02, WALLS | {"xmin": STREAM, "xmax": Outflow("t")})
