"""Exact solutions of compressible flow: that they are solutions, and numbers that are published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.fluxes import euler
from fluxloom.fv.compressible.gas import Gas, prandtl_meyer, total_pressure_ratio, viscous
from fluxloom_lab.exact.compressible_exact import Corner, Vortex
from fluxloom_lab.exact.ringleb import LIMIT, ringleb_place, ringleb_speed, ringleb_state
from fluxloom_lab.exact.viscous_exact import BoundaryLayer, Couette, blasius

Array = np.ndarray
State = Callable[[Array], Array]
WEIGHTS = ((-2, 1.0 / 12.0), (-1, -8.0 / 12.0), (1, 8.0 / 12.0), (2, -1.0 / 12.0))


def slope(values: Callable[[float], Array], step: float) -> Array:
    """Return a derivative of fourth order at 0."""
    return np.asarray(sum(weight * values(k * step) for k, weight in WEIGHTS)) / step


def fluxes(w: Array, axis: int, gamma: float = 1.4) -> Array:
    d = w.shape[1] - 2
    found = np.zeros_like(w)
    for row, f in zip(w, found, strict=True):
        euler(row, np.eye(d)[axis], f, gamma, d)
    return found


def divergence(state: State, points: Array, step: float, gamma: float = 1.4) -> Array:
    """Return that of the flux of Euler, ``(n, d + 2)``."""
    axes = np.eye(points.shape[1])
    terms = [slope(lambda h, k=k: fluxes(state(points + h * axes[k]), k, gamma), step) for k in range(len(axes))]
    return np.sum(terms, axis=0)


# ------------------------------------------------------------------------------------------------------- vortex


@pytest.mark.parametrize("case", [Vortex(), Vortex(5.0, 0.8, 1.0, 30.0, (10.0, 12.0), (0.5, -1.0), 1.3)])
@pytest.mark.parametrize("d", [2, 3])
def test_vortex_solves_the_equations(case: Vortex, d: int) -> None:
    points = np.random.default_rng(3).uniform(-2.0, 2.0, (60, d)) + np.array([*case.centre, 0.0])[:d]
    gas, time = Gas(gamma=case.gamma), 0.7
    rate = slope(lambda h: gas.conserved(case.state(points, time + h)), 2e-3)
    flow = divergence(lambda x: case.state(x, time), points, 2e-3, case.gamma)
    size = np.abs(flow).max(axis=0)
    assert (size[[0, 1, 2, -1]] > 0.1).all()
    assert (np.abs(rate + flow).max(axis=0) <= 1e-8 * size.max()).all()


def test_vortex_is_carried_around_the_box() -> None:
    case = Vortex(direction=0.0, box=(20.0, 30.0))
    points = np.random.default_rng(1).uniform(-10.0, 10.0, (50, 2))
    np.testing.assert_allclose(case.state(points, 20.0), case.state(points), atol=1e-12)
    np.testing.assert_allclose(case.state(points + np.array([3.0, 0.0]), 3.0), case.state(points), atol=1e-12)
    np.testing.assert_allclose(case.state(points + np.array([0.0, 30.0])), case.state(points), atol=1e-12)
    turned = Vortex(direction=90.0)
    assert turned.mean_velocity == pytest.approx((0.0, 1.0))
    # far away there is the mean flow: p of a speed of sound 1 / M with the density 1
    assert turned.state(np.array([[9.9, 9.9]]))[0] == pytest.approx(
        [1.0, 0.0, 1.0, 1.0 / 1.4 / 0.16], rel=1e-9, abs=1e-9
    )


def test_vortex_is_isentropic() -> None:
    case = Vortex()
    w = case.state(np.random.default_rng(2).uniform(-5.0, 5.0, (50, 2)))
    assert w[:, 0].min() < 0.95
    np.testing.assert_allclose(w[:, 3] / w[:, 0] ** 1.4, 1.0 / (1.4 * 0.16), rtol=1e-13)


def test_vortex_with_a_vacuum() -> None:
    with pytest.raises(SolverError, match="a vacuum in its middle"):
        Vortex(strength=30.0)
    with pytest.raises(SolverError, match="radius"):
        Vortex(radius=0.0)
    with pytest.raises(SolverError, match="gamma"):
        Vortex(gamma=1.0)


# ------------------------------------------------------------------------------------------------------- corner


def test_wedge() -> None:
    """The flow of Mach 2 over 10 degrees: two uniform states, and the mesh of the case lies on both sides."""
    case = Corner(2.0, 10.0, corner=(0.5, 0.0))
    w = case.state(np.array([[0.0, 0.0], [0.0, -1e-12], [1.5, 0.9], [1.5, 0.7], [1.5, np.tan(np.radians(10.0))]]))
    assert w[0] == pytest.approx([1.4, 2.0, 0.0, 1.0], rel=1e-15)
    np.testing.assert_array_equal(w[1:3], w[[0, 0]])
    np.testing.assert_array_equal(w[3], w[4])
    assert w[3, 3] == pytest.approx(1.70658, abs=5e-6)
    assert w[3, 2] / w[3, 1] == pytest.approx(np.tan(np.radians(10.0)), rel=1e-13)
    assert np.hypot(w[3, 1], w[3, 2]) / np.sqrt(1.4 * w[3, 3] / w[3, 0]) == pytest.approx(1.64052, abs=5e-6)


def test_expansion_by_the_tables() -> None:
    """Mach 1.5 around 20 degrees: nu grows from 11.905 to 31.905 degrees, that is Mach 2.207 and p_2 / p_1 = 0.340."""
    case = Corner(1.5, -20.0)
    assert prandtl_meyer(1.5) == pytest.approx(11.905, abs=5e-4)
    assert case.mach_behind == pytest.approx(2.207, abs=5e-4)
    assert case.state(np.array([[1.0, -0.2]]))[0, 3] == pytest.approx(0.340, abs=5e-4)


@pytest.mark.parametrize("d", [2, 3])
def test_fan_solves_the_equations(d: int) -> None:
    """Inside, and it is continuous where it begins and ends; entropy and total enthalpy are those before it."""
    case = Corner(2.0, -20.0, gamma=1.3)
    rays = np.radians(np.linspace(3.0, 29.0, 32))
    points = np.column_stack([np.cos(rays), np.sin(rays), np.full(32, 0.3)])[:, :d]
    flow = divergence(case.state, points, 1e-4, 1.3)
    assert np.abs(slope(lambda h: case.state(points + h * np.eye(d)[1]), 1e-4)[:, 0]).min() > 0.3
    assert np.abs(flow).max() < 1e-8
    every = np.radians(np.linspace(-20.0, 180.0, 20001))
    w = case.state(np.column_stack([np.cos(every), np.sin(every)]))
    assert np.abs(np.diff(w, axis=0)).max() < 1e-3
    np.testing.assert_allclose(w[:, 3] / w[:, 0] ** 1.3, 1.4**-1.3, rtol=1e-12)
    mach = np.hypot(w[:, 1], w[:, 2]) / np.sqrt(1.3 * w[:, 3] / w[:, 0])
    assert mach[[0, -1]] == pytest.approx([case.mach_behind, 2.0], rel=1e-12)
    assert prandtl_meyer(mach[0], 1.3) - prandtl_meyer(2.0, 1.3) == pytest.approx(20.0, rel=1e-10)
    np.testing.assert_allclose(w[:, 3] * total_pressure_ratio(mach, 1.3), total_pressure_ratio(2.0, 1.3), rtol=1e-11)


def test_no_corner() -> None:
    for angle in (30.0, float("nan")):
        with pytest.raises(SolverError, match="attached"):
            Corner(2.0, angle)
    with pytest.raises(SolverError, match="Prandtl and Meyer"):
        Corner(2.0, -110.0)
    with pytest.raises(SolverError, match="supersonic"):
        Corner(0.9, 5.0)
    with pytest.raises(SolverError, match="density"):
        Corner(2.0, 5.0, density=-1.0)


# ------------------------------------------------------------------------------------------------------ Ringleb


def test_ringleb_solves_the_equations() -> None:
    """At subsonic and supersonic places, on both sides of the axis."""
    rng = np.random.default_rng(5)
    k = rng.uniform(0.5, 1.5, 80)
    points = ringleb_place(k * rng.uniform(0.4, 0.999, 80), k)
    points[::2, 1] *= -1.0
    w = ringleb_state(points)
    mach = np.hypot(w[:, 1], w[:, 2]) / np.sqrt(1.4 * w[:, 3] / w[:, 0])
    assert mach.min() < 0.5
    assert mach.max() > 1.5
    flow = divergence(ringleb_state, points, 1e-4)
    size = np.abs(slope(lambda h: ringleb_state(points + h * np.eye(2)[0]), 1e-4)).max()
    assert size > 0.5
    assert np.abs(flow).max() < 1e-8 * size
    np.testing.assert_allclose(total_pressure_ratio(mach) * w[:, 3], 1.0 / 1.4, rtol=1e-12)


def test_ringleb_and_back() -> None:
    """Of all smooth streamlines, those with supersonic places too."""
    rng = np.random.default_rng(0)
    k = rng.uniform(0.1, 0.999 * LIMIT, 5000)
    q = k * rng.uniform(0.05, 1.0, 5000)
    speed, streamline = ringleb_speed(ringleb_place(q, k))
    np.testing.assert_allclose(speed, q, rtol=1e-10)
    np.testing.assert_allclose(streamline, k, rtol=1e-9)


def test_ringleb_on_the_mesh_of_the_case(shared_data: Path) -> None:
    """It is bounded by the streamlines 0.7 and 1.5 and by the speed 0.5."""
    path = shared_data / "inviscid_misc" / "ringleb_QuadDominant25X25_nPoly3.su2"
    lines = path.read_text().splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("NPOIN"))
    count = int(lines[start].split("=")[1])
    points = np.array([line.split()[:2] for line in lines[start + 1 : start + 1 + count]], dtype=np.float64)
    q, k = ringleb_speed(points)
    assert (k.min(), k.max(), q.min()) == pytest.approx((0.7, 1.5, 0.5), abs=1e-6)


def test_outside_of_ringlebs_flow() -> None:
    with pytest.raises(SolverError, match="on no streamline"):
        ringleb_state(np.array([[0.5, 0.5], [-3.0, 0.0]]))
    with pytest.raises(SolverError, match="below 5/3"):
        ringleb_place(0.5, 1.7)


# ------------------------------------------------------------------------------------------------------ viscous


def test_blasius_numbers() -> None:
    """White, table 4-1, and the constants of the layer."""
    profile = blasius()
    assert profile.curvature == pytest.approx(0.332057336215196, rel=1e-10)
    assert profile.displacement == pytest.approx(1.7207876575, rel=1e-9)
    assert profile.momentum == pytest.approx(0.664115, abs=5e-7)
    _, slopes = profile([0.0, 1.0, 2.0, 3.0, 5.0, 100.0])
    assert slopes == pytest.approx([0.0, 0.32978, 0.62977, 0.84604, 0.99154, 1.0], abs=1e-5)
    assert profile(4.91)[1] == pytest.approx(0.99, abs=1e-4)
    assert profile(100.0)[0] == pytest.approx(100.0 - profile.displacement, rel=1e-12)


def test_boundary_layer() -> None:
    """Continuity and Prandtl's equation of momentum, and the friction of the wall."""
    case = BoundaryLayer(speed=20.0, viscosity=0.01, density=1.2, pressure=1e5)
    points = np.random.default_rng(6).uniform((0.5, 0.05), (2.0, 0.25), (40, 2))

    def velocity(x: Array) -> Array:
        return case.state(x)[:, 1:3]

    u, v = velocity(points).T
    ways = np.eye(2)
    du, dv = (slope(lambda h, k=k: velocity(points + h * ways[k]), 1e-3) for k in range(2))
    bend = slope(lambda h: slope(lambda g: velocity(points + (g + h) * ways[1])[:, 0], 2e-3), 2e-3)
    assert np.abs(du[:, 0] + dv[:, 1]).max() < 1e-4 * np.abs(du).max()
    assert np.abs(u * du[:, 0] + v * dv[:, 0] - 0.01 / 1.2 * bend).max() < 1e-4 * np.abs(u * du[:, 0]).max()
    near = case.state(np.array([[1.0, 0.0], [1.0, 1e-5]]))
    stress = 0.01 * near[1, 1] / 1e-5
    assert case.friction(1.0) == pytest.approx(stress / (0.5 * 1.2 * 20.0**2), rel=1e-7)
    assert case.friction(1.0) == pytest.approx(0.664115 / np.sqrt(2400.0), rel=1e-6)
    assert case.displacement(2.0) == pytest.approx(1.720788 * np.sqrt(0.01 * 2.0 / 24.0), rel=1e-6)
    assert near[0] == pytest.approx([1.2, 0.0, 0.0, 1e5])
    with pytest.raises(SolverError, match="x > 0, y >= 0"):
        case.state(np.array([[0.0, 1.0]]))
    with pytest.raises(SolverError, match="viscosity"):
        BoundaryLayer(1.0, 0.0)


@pytest.mark.parametrize("d", [2, 3])
def test_couette_balances(d: int) -> None:
    """The flux of momentum and energy through planes between the walls is the same everywhere."""
    gas = Gas(prandtl=0.8)
    case = Couette(400.0, 0.5, (300.0, 320.0), gas=gas)
    y = np.linspace(0.05, 0.45, 9)
    points = np.zeros((9, d))
    points[:, 1] = y
    w = case.state(points)
    warm = slope(lambda h: case.temperature(y + h), 1e-2)
    mu, found = 0.02, np.zeros((9, d + 2))
    heat = gas.gamma * gas.constant / (gas.gamma - 1.0) * mu / gas.prandtl
    for row, t, f in zip(w, warm, found, strict=True):
        slopes = np.zeros((d, d))
        slopes[0, 1] = 400.0 / 0.5
        viscous(row[1 : 1 + d], slopes.ravel(), t * np.eye(d)[1], np.eye(d)[1], f, mu, heat, d)
    assert found[0, 1] == pytest.approx(mu * 800.0)
    np.testing.assert_allclose(found - found[0], 0.0, atol=1e-9 * np.abs(found).max())
    assert case.temperature([0.0, 0.5]) == pytest.approx([300.0, 320.0], rel=1e-14)
    np.testing.assert_allclose(gas.temperature(w), case.temperature(y), rtol=1e-14)
    # hottest between the walls, where the walls are alike: by Pr U^2 / 8 c_p
    alike = Couette(400.0, temperatures=(300.0, 300.0), gas=gas)
    assert alike.temperature(0.5) == pytest.approx(300.0 + 0.8 * 400.0**2 / (8.0 * 3.5 * 287.05), rel=1e-14)


@pytest.mark.parametrize("values", [{"height": 0.0}, {"temperatures": (300.0, -1.0)}, {"pressure": float("inf")}])
def test_couette_refuses(values: dict[str, Any]) -> None:
    with pytest.raises(SolverError, match="a number above 0 is wanted"):
        Couette(1.0, **values)
