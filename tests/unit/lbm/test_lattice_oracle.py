"""The oracle itself, on flows that have a formula."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27
from tests.lattice_oracle import AntiBounce, Bounce, Convective, Oracle, Pressure, Slip, Velocity


def test_couette() -> None:
    """A straight profile to round-off, and the force of friction on both walls."""
    n, speed, nu = 5, 0.05, 0.5
    flow = Oracle(D2Q9, (n, 2), viscosity=nu, conditions={"ymin": Bounce(), "ymax": Bounce((0, speed))})
    flow.initialise()
    flow.step(250)
    np.testing.assert_allclose(flow.velocity()[:, 0, 1], speed * (np.arange(n) + 0.5) / n, atol=1e-13)
    np.testing.assert_allclose(flow.force_on("ymin"), (0, 2 * nu * speed / n), atol=1e-12)
    np.testing.assert_allclose(flow.force_on("ymax"), (0, -2 * nu * speed / n), atol=1e-12)
    assert flow.mass() == pytest.approx(2 * n, abs=1e-12)


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19, D3Q27], ids=lambda one: one.name)
def test_poiseuille(lattice) -> None:
    """With the magic number 3/16 walls are exactly half-way."""
    n, force, nu = 4, 1e-5, 0.5
    shape, d = (1,) * (lattice.dimensions - 2) + (n, 1), lattice.dimensions
    walls = {"ymin": Bounce(), "ymax": Bounce()}
    flow = Oracle(lattice, shape, viscosity=nu, magic=3 / 16, force=(0,) * (d - 1) + (force,), conditions=walls)
    flow.initialise()
    flow.step(110)
    y = np.arange(n) + 0.5
    np.testing.assert_allclose(flow.velocity()[..., 0, -1].ravel(), force / (2 * nu) * y * (n - y), rtol=1e-10)
    drag = flow.force_on("ymin") + flow.force_on("ymax")
    assert drag[-1] == pytest.approx(n * force, rel=1e-10)


def test_interpolated_walls_off_the_middle() -> None:
    """Bouzidi's walls at 0.2 and 0.8 of a link: a straight profile between them, one of which moves."""
    n, speed = 6, 0.04
    fractions = np.full((n, 1, 9), 0.5)
    fractions[0], fractions[-1] = 0.2, 0.8
    walls = {"ymin": Bounce(interpolated=True), "ymax": Bounce((0, speed), interpolated=True)}
    flow = Oracle(D2Q9, (n, 1), viscosity=0.5, conditions=walls, fractions=fractions)
    flow.initialise()
    flow.step(300)
    np.testing.assert_allclose(flow.velocity()[:, 0, 1], speed * (np.arange(n) + 0.2) / (n - 1 + 1.0), rtol=1e-9)


def test_slip_leaves_a_plug_alone() -> None:
    """Corners of two slip sides too."""
    sides = {"ymin": Slip(), "ymax": Slip(), "zmin": Slip(), "zmax": Slip()}
    flow = Oracle(D3Q27, (3, 4, 5), viscosity=0.1, conditions=sides)
    flow.initialise(1.0, (0, 0, 0.1))
    flow.step(5)
    np.testing.assert_allclose(flow.velocity(), np.broadcast_to((0, 0, 0.1), (3, 4, 5, 3)), atol=1e-14)


@pytest.mark.parametrize("scheme", ["zou-he", "regularised"])
@pytest.mark.parametrize("lattice", [D2Q9, D3Q19], ids=lambda one: one.name)
def test_what_is_set_is_there(lattice, scheme: str) -> None:
    """Velocity and density at the cells of the sides, with a force, in what arrives."""
    d, force = lattice.dimensions, np.array([0.002, -0.001, 0.003])[-lattice.dimensions :]
    want = np.array([0.01, -0.02, 0.05])[-d:]
    sides = {"xmin": Velocity(want, scheme), "xmax": Pressure(1.02, scheme)}
    flow = Oracle(lattice, (3, 4, 5)[-d:], viscosity=0.1, force=force, conditions=sides)
    rng = np.random.default_rng(0)
    flow.initialise(1 + 0.02 * rng.random(flow.shape), 0.03 * rng.standard_normal((*flow.shape, d)))
    flow.step(3)
    g = flow.arrived()
    rho, j = g.sum(-1), g @ flow.c + 0.5 * force
    np.testing.assert_allclose(j[..., 0, :], rho[..., 0, None] * want, atol=1e-15)
    np.testing.assert_allclose(rho[..., -1], 1.02, atol=1e-14)
    np.testing.assert_allclose(j[..., -1, :-1], 0, atol=1e-15)


def test_channel_between_pressures() -> None:
    """Anti-bounce-back: the flow between walls follows the gradient, less what the ends take."""
    n, m, nu, drop = 5, 40, 0.5, 1e-4
    sides = {"ymin": Bounce(), "ymax": Bounce(), "xmin": AntiBounce(1 + drop), "xmax": AntiBounce(1.0)}
    flow = Oracle(D2Q9, (n, m), viscosity=nu, magic=3 / 16, conditions=sides)
    flow.initialise()
    flow.step(500)
    y = np.arange(n) + 0.5
    slope = (flow.density()[2, 15] - flow.density()[2, 25]) / 30
    np.testing.assert_allclose(flow.velocity()[:, 20, 1], slope / (2 * nu) * y * (n - y), rtol=1e-3)
    assert slope == pytest.approx(drop / 3 / m, rel=0.03)


def test_outflow_lets_a_plug_go() -> None:
    for out in (Convective(0.05), Convective(), Convective(0.05, density=1.0, rate=0.01)):
        sides = {"xmin": Velocity((0, 0.05)), "xmax": out, "ymin": Slip(), "ymax": Slip()}
        flow = Oracle(D2Q9, (3, 8), viscosity=0.1, conditions=sides)
        flow.initialise(1.0, (0, 0.05))
        flow.step(20)
        np.testing.assert_allclose(flow.velocity()[..., 1], 0.05, atol=1e-14)


def test_force_on_a_body_is_what_the_fluid_loses() -> None:
    """All momentum that a force gives, goes to the body or stays in the fluid; and mass stays."""
    labels = np.zeros((9, 12), dtype=int)
    labels[3:6, 4:7] = 1
    force = np.array([1e-5, 2e-5])
    flow = Oracle(D2Q9, labels.shape, viscosity=0.1, force=force, conditions={1: Bounce()}, labels=labels)
    flow.initialise()
    flow.step(20)
    before = (flow.f @ flow.c)[flow.fluid].sum(0)
    flow.step()
    after = (flow.f @ flow.c)[flow.fluid].sum(0)
    np.testing.assert_allclose(after - before, force * flow.fluid.sum() - flow.force_on(1), atol=1e-16)
    assert flow.mass() == pytest.approx(flow.fluid.sum(), abs=1e-11)
    assert flow.torque_on(1, (4.0, 5.0)).shape == (1,)
