"""Conditions at walls and sides against exact flows: channels, moving walls, cylinders, outlets."""

from __future__ import annotations

from collections.abc import Callable
from math import log2, pi

import numpy as np
import pytest

from fluxloom.lbm.boundaries import (
    AntiBounceBack,
    Body,
    BounceBack,
    Condition,
    Outflow,
    Pressure,
    RegularisedCells,
    Slip,
    Velocity,
    Wall,
    ZouHe,
)
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.shapes.sets import Complement
from fluxloom.lbm.shapes.shapes import Circle, HalfSpace
from tests.lattice_boundaries_flow import Flow

EXACT = TRT(magic=3 / 16)
"""With it half-way walls are exactly half-way in a channel."""


def parabola(height: int, peak: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the flow along x between walls half a cell beyond the first and last cells across y, as a function."""

    def velocity(positions: np.ndarray) -> np.ndarray:
        y = positions[:, -2] + 0.5
        out = np.zeros(positions.shape)
        out[:, -1] = 4 * peak * y * (height - y) / height**2
        return out

    return velocity


# ------------------------------------------------------------------------------------------------ walls


@pytest.mark.parametrize("streaming", ["pull", pytest.param("in-place", marks=pytest.mark.long)])
def test_poiseuille_between_half_way_walls_is_exact(streaming: str) -> None:
    """Velocity and forces to round-off, as is the mass."""
    height, force, viscosity = 9, 1e-5, 0.25
    walls = {"ymin": Wall(measure=True), "ymax": Wall(measure=True)}
    flow = Flow(
        (height, 3), walls, viscosity=viscosity, force=(0.0, force), collision=EXACT, streaming=streaming
    )  # fmt: skip
    flow.step(3000)
    column = np.stack([np.arange(height), np.zeros(height)], axis=1)
    exact = parabola(height, force * height**2 / (8 * viscosity))(column)
    np.testing.assert_allclose(flow.velocity[:, 1], exact, atol=1e-12)
    for name in walls:
        np.testing.assert_allclose(flow.force_on(name), [0.0, force * height * 3 / 2], atol=1e-14)
    assert abs(flow.g.sum()) < 1e-13


@pytest.mark.parametrize("lattice", [D2Q9, *(pytest.param(one, marks=pytest.mark.long) for one in (D3Q19, D3Q27))])
def test_couette_force_and_mass(lattice: Lattice) -> None:
    """Moving walls drag the fluid and feel it; no mass is added."""
    n, viscosity, slow, fast = 8, 0.2, -0.01, 0.04
    still = [0.0] * (lattice.dimensions - 1)
    walls = {
        "ymin": Wall(velocity=(*still, slow), measure=True),
        "ymax": Wall(velocity=lambda x: np.broadcast_to([*still, fast], x.shape), measure=True),
    }
    shape = (n, 3) if lattice is D2Q9 else (2, n, 3)
    flow = Flow(shape, walls, viscosity=viscosity, lattice=lattice)
    flow.step(2500)
    u = flow.velocity.reshape(-1, n, 3, lattice.dimensions)
    np.testing.assert_allclose(u[0, :, 1, -1], slow + (fast - slow) * (np.arange(n) + 0.5) / n, atol=1e-11)
    stress = viscosity * (fast - slow) / n * np.prod(shape) / n
    assert flow.force_on("ymin")[-1] == pytest.approx(stress, rel=1e-8)
    assert flow.force_on("ymax")[-1] == pytest.approx(-stress, rel=1e-8)
    assert abs(flow.g.sum()) < 1e-12


def test_walls_that_are_not_half_way() -> None:
    """Two plates anywhere between cells: linear interpolation is exact for a linear profile, moving too."""
    low, high, speed = 1.2, 9.9, 0.03
    plates = [
        Body("low", HalfSpace((low, 0.0), (1.0, 0.0)), Wall(interpolated=True, measure=True)),
        Body("high", HalfSpace((high, 0.0), (-1.0, 0.0)), Wall(velocity=(0.0, speed), interpolated=True, measure=True)),
    ]
    flow = Flow((12, 3), {"ymin": Wall(), "ymax": Wall()}, plates, viscosity=0.3, collision=EXACT)
    flow.step(2000)
    y = np.arange(2, 10)
    np.testing.assert_allclose(flow.velocity[2:10, 1, 1], speed * (y - low) / (high - low), atol=1e-12)
    drag = 0.3 * speed / (high - low) * 3
    assert flow.force_on("low")[1] == pytest.approx(drag, rel=1e-9)
    assert flow.force_on("high")[1] == pytest.approx(-drag, rel=1e-9)
    assert flow.parts["low"].halfway == 0


def between_cylinders(n: int, *, interpolated: bool, steps: float = 1.2) -> tuple[float, float]:
    """Return the relative errors of velocity and torque between a turning and a resting cylinder."""
    inner, outer, viscosity = n / 5.03, n / 2.11, 0.1
    center = np.array([(n - 1) / 2 + 0.13, (n - 1) / 2 - 0.21])
    omega = 0.3 / n / inner

    def turning(x: np.ndarray) -> np.ndarray:
        return omega * np.stack([x[:, 1] - center[1], center[0] - x[:, 0]], axis=1)

    middle = tuple(center)
    wall = Wall(velocity=turning, interpolated=interpolated, measure=True, center=middle)
    bodies = [
        Body("shaft", Circle(middle, inner), wall),
        Body("housing", Complement(Circle(middle, outer)), Wall(interpolated=interpolated)),
    ]
    flow = Flow((n, n), {}, bodies, viscosity=viscosity, collision=EXACT)
    flow.step(int(steps * (outer - inner) ** 2 / viscosity))
    x = np.stack(np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), axis=-1) - center
    r2 = np.maximum((x**2).sum(axis=-1), 1e-9)
    fluid = (r2 > inner**2) & (r2 < outer**2)
    turn = omega * inner**2 / (outer**2 - inner**2) * (outer**2 / r2 - 1)
    exact = turn[..., None] * np.stack([x[..., 1], -x[..., 0]], axis=-1)
    error = np.sqrt(((flow.velocity - exact)[fluid] ** 2).sum() / (exact[fluid] ** 2).sum())
    torque = -4 * pi * viscosity * omega * inner**2 * outer**2 / (outer**2 - inner**2)
    # the torque about the axis out of the plane turns x to y, the rotation here the other way round
    return float(error), float(flow.torque_on("shaft")[0] / torque - 1)


def test_cylinders_are_of_second_order_with_interpolation() -> None:
    """Torque and velocity converge; without interpolation they are a good deal worse."""
    coarse, fine = (between_cylinders(n, interpolated=True) for n in (20, 40))
    assert log2(coarse[0] / fine[0]) > 1.6
    assert fine[0] < 4e-3
    assert abs(fine[1]) < 0.01
    assert between_cylinders(40, interpolated=False)[0] > 3 * fine[0]


def test_slip_keeps_a_plug() -> None:
    """A uniform flow between sides that slip, and round an edge of two of them, stays as it is."""
    flow = Flow(
        (4, 5, 3), {name: Slip() for name in ("ymin", "ymax", "zmin", "zmax")}, lattice=D3Q19, force=(0.0, 0.0, 1e-4)
    )
    flow.step(50)
    u = flow.velocity
    np.testing.assert_allclose(u[..., 2], 49.5e-4, atol=1e-15)
    np.testing.assert_allclose(u[..., :2], 0.0, atol=1e-15)


def test_half_a_channel_is_a_channel() -> None:
    """A slip side is a plane of symmetry."""
    rng = np.random.default_rng(3)
    start = 1e-3 * rng.standard_normal((6, 7, 9))
    mirror = np.array([D2Q9.velocities.index((-c[0], c[1])) for c in D2Q9.velocities])
    half = Flow((6, 7), {"ymin": Wall(), "ymax": Slip(), "xmin": Slip(), "xmax": Wall()})
    whole = Flow((12, 7), {"ymin": Wall(), "ymax": Wall(), "xmin": Slip(), "xmax": Wall()})
    half.fill(start)
    whole.fill(np.concatenate([start, start[::-1][..., mirror]]))
    for flow in (half, whole):
        flow.step(25)
    np.testing.assert_allclose(whole.g[:6], half.g, atol=1e-16)
    np.testing.assert_allclose(whole.g[6:], half.g[::-1][..., mirror], atol=1e-16)


# ------------------------------------------------------------------------------------------------ sides


def channel(height: int, inlet: str, outlet: Condition) -> tuple[float, float]:
    """Return the greatest errors, as a share of the peak, of the velocity in the middle and of the pressure gradient.

    The speed falls with the cell size, and with its square the changes of density.
    """
    length, viscosity, peak = 2 * height, 0.2, 0.2 / height
    profile = parabola(height, peak)
    sides = {"ymin": Wall(), "ymax": Wall(), "xmin": Velocity(profile, INLETS[inlet]), "xmax": outlet}
    flow = Flow((height, length), sides, viscosity=viscosity, collision=EXACT)
    ramp = 4 * height
    for n in range(ramp):
        flow.parts["xmin"].assign(lambda x, n=n: profile(x) * (1 + n) / ramp)
        flow.step()
    flow.step(14 * height**2)
    u, rho = flow.velocity, flow.density
    middle = length // 2
    column = np.stack([np.arange(height), 0 * np.arange(height)], axis=1)
    error = np.abs(u[:, middle] - profile(column)).max() / peak
    gradient = (rho[:, middle + 2] - rho[:, middle - 2]).mean() / 12
    return float(error), float(gradient / (-8 * viscosity * peak / height**2) - 1)


INLETS = {"regularised": RegularisedCells(), "zou-he": ZouHe(), "bounce-back": BounceBack()}
OUTLETS = {
    "anti-bounce-back": Pressure(),
    "regularised": Pressure(scheme=RegularisedCells()),
    "zou-he": Pressure(scheme=ZouHe()),
    "outflow": Outflow(),
}
SHORT = {("regularised", "anti-bounce-back"), ("bounce-back", "outflow")}


@pytest.mark.parametrize(
    ("inlet", "outlet"),
    [
        pytest.param(inlet, outlet, marks=[] if (inlet, outlet) in SHORT else [pytest.mark.long])
        for inlet in INLETS
        for outlet in OUTLETS
    ],
)
def test_channel_is_of_second_order(inlet: str, outlet: str) -> None:
    """Any inlet with any outlet between walls, corners and all."""
    coarse, fine = channel(6, inlet, OUTLETS[outlet]), channel(12, inlet, OUTLETS[outlet])
    assert log2(coarse[0] / fine[0]) > 1.6
    assert fine[0] < 0.012
    assert abs(fine[1]) < 0.05


STREAM = (0.01, 0.05)


@pytest.mark.parametrize(
    ("scheme", "outlet"),
    [
        ("regularised", Pressure(scheme=RegularisedCells(), velocity=STREAM)),
        pytest.param("zou-he", Pressure(scheme=ZouHe(), velocity=STREAM), marks=pytest.mark.long),
        pytest.param("bounce-back", Pressure(scheme=AntiBounceBack(absorbing=False)), marks=pytest.mark.long),
    ],
)
def test_free_stream_fills_the_box(scheme: str, outlet: Condition) -> None:
    """From rest to a uniform flow across all sides, edges where velocity and pressure meet among them."""
    inlet = Velocity(STREAM, INLETS[scheme])
    flow = Flow((9, 12), {"xmin": inlet, "ymin": inlet, "ymax": outlet, "xmax": outlet}, viscosity=0.05)
    flow.step(2500)
    np.testing.assert_allclose(flow.velocity, np.broadcast_to(STREAM, (9, 12, 2)), atol=1e-7)
    np.testing.assert_allclose(flow.density, 1.0, atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("lattice", [D3Q19, D3Q27])
def test_free_stream_through_edges_and_corners(lattice: Lattice) -> None:
    """In three dimensions, where three sides meet as well."""
    stream = (0.01, 0.02, 0.05)
    inlet, outlet = Velocity(stream), Pressure(scheme=RegularisedCells(), velocity=stream)
    sides = {f"{axis}{end}": one for axis in "xyz" for end, one in (("min", inlet), ("max", outlet))}
    flow = Flow((7, 8, 9), sides, lattice=lattice, viscosity=0.05)
    flow.step(2000)
    np.testing.assert_allclose(flow.velocity, np.broadcast_to(stream, (7, 8, 9, 3)), atol=1e-12)


def test_outflow_holds_the_density() -> None:
    """Between walls the pressure falls towards the side: drawn back, the mass stays; left free, it grows."""
    profile = parabola(8, 0.05)

    def drift(outflow: Outflow) -> float:
        sides = {"ymin": Wall(), "ymax": Wall(), "xmin": Velocity(profile), "xmax": outflow}
        flow = Flow((8, 16), sides)
        flow.step(3000)
        before = flow.g.sum()
        flow.step(100)
        return float(flow.g.sum() - before) / 100

    assert abs(drift(Outflow())) < 1e-7
    assert drift(Outflow(density=None)) > 1e-3
