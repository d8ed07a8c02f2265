"""Inlets and outlets that make no waves or let them go: absorbing pressure, ramps, sponges."""

from __future__ import annotations

from math import exp, sqrt
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import strategy_name
from fluxloom.lbm.boundaries import (
    AntiBounceBack,
    Body,
    BounceBack,
    Outflow,
    Pressure,
    RegularisedCells,
    Slip,
    Sponge,
    Velocity,
    VelocityScheme,
    Wall,
)
from fluxloom.lbm.lattices import D2Q9
from fluxloom.lbm.shapes.shapes import Circle
from tests.lattice_boundaries_flow import Flow
from tests.lattice_oracle import equilibrium

C = np.array(D2Q9.velocities)
FAST = (0.0, 0.05)


@pytest.fixture(scope="module")
def context() -> fl.Context:
    """One for all: equal kernels are compiled once."""
    return fl.Context("cpu", threads=1, tuning=False)


def tube(context: fl.Context, inlet: Any, outlet: Any, trips: int) -> list[float]:
    """Return how far the velocity is from that of the inlet after each time of a wave there and back, from rest."""
    n = 40
    flow = Flow((3, n), {"xmin": inlet, "xmax": outlet}, viscosity=0.02, context=context)
    found = []
    for _ in range(trips):
        flow.step(int(2 * n * sqrt(3)))
        found.append(float(np.abs(flow.velocity[1, :, 1] / FAST[1] - 1).max()))
    return found


def test_waves_between_two_sides(context: fl.Context) -> None:
    """Held at both ends they stay; an inlet of mass returns (1 - Ma) / (1 + Ma); the default outlet lets them go."""
    held = tube(context, Velocity(FAST), Pressure(scheme=AntiBounceBack(absorbing=False)), 4)
    assert min(held) > 0.9
    mass = tube(context, Velocity(FAST, BounceBack()), Pressure(scheme=AntiBounceBack(absorbing=False)), 4)
    mach = sqrt(3) * FAST[1]
    assert mass[3] / mass[1] == pytest.approx(((1 - mach) / (1 + mach)) ** 2, rel=0.03)
    assert max(tube(context, Velocity(FAST), Pressure(), 5)[-2:]) < 0.1


def test_absorbing_pressure_is_what_is_set_in_the_end(context: fl.Context) -> None:
    """Between a velocity and a pressure, to round-off, as without."""
    absorbing = Pressure(1.01, scheme=AntiBounceBack(rate=0.01))
    flow = Flow((3, 9), {"xmin": Velocity(FAST), "xmax": absorbing}, context=context)
    flow.step(4000)
    np.testing.assert_allclose(flow.density, 1.01, atol=1e-10)
    np.testing.assert_allclose(flow.velocity, np.broadcast_to(FAST, (3, 9, 2)), atol=1e-10)


@pytest.mark.parametrize("scheme", [RegularisedCells(), BounceBack()], ids=strategy_name)
def test_ramp(context: fl.Context, scheme: VelocityScheme) -> None:
    """Values grow as said, are those set from the last step on, and begin anew with the flow."""
    flow = Flow((4, 6), {"xmin": Velocity(FAST, scheme, ramp=8), "xmax": Wall()}, context=context)

    def entering(steps: int) -> list[float]:
        """Return the velocity in the cells at the side, or what bounce-back adds to the mass, step by step."""
        found, mass = [], float(flow.g.sum())
        for _ in range(steps):
            flow.step()
            before, mass = mass, float(flow.g.sum())
            found.append(float(flow.velocity[1, 0, 1]) if scheme.on_cells else (mass - before) / 4)
        return found

    share = np.minimum(np.arange(1, 11) / 8, 1.0)
    grown = share**2 * (3 - 2 * share)
    np.testing.assert_allclose(entering(10), FAST[1] * grown, atol=1e-14)
    flow.fill(np.zeros((4, 6, 9)))
    flow.parts["xmin"].assign((0.0, 0.02))
    np.testing.assert_allclose(entering(9), 0.02 * grown[:9], atol=1e-14)
    assert len(flow.parts["xmin"].state) == 1


def test_ramp_at_edges() -> None:
    """Cells where two sides meet begin as slowly."""
    inlet = Velocity((0.02, 0.04), ramp=4)
    sides = {"xmin": inlet, "ymin": inlet, "xmax": Outflow(), "ymax": Outflow()}
    flow = Flow((5, 5), sides, context=fl.Context("reference"))
    flow.step(2)
    np.testing.assert_allclose(flow.velocity[0, 0], (0.01, 0.02), atol=1e-14)
    flow.step(2)
    np.testing.assert_allclose(flow.velocity[0, 0], (0.02, 0.04), atol=1e-14)
    assert all(flow.parts[name].state for name in flow.parts if "min" in name)


def test_sponge_does_what_it_says() -> None:
    """One pass over random populations: density and velocity go to those given, stresses do not change."""
    wanted, width, strength = (0.01, 0.03), 2.5, 0.4
    flow = Flow(
        (5, 6), {"xmin": Slip(), "xmax": Sponge(Slip(), width, strength, 1.02, wanted)},
        [Body("disc", Circle((2.0, 5.0), 0.6))], context=fl.Context("reference"),
    )  # fmt: skip
    g = 2e-3 * np.random.default_rng(3).standard_normal((5, 6, 9))
    flow.fill(g)
    for step in flow.parts["xmax sponge"].loops(0):
        step()
    rho = 1 + g.sum(-1)
    u = g @ C / rho[..., None]
    away = 5.5 - np.arange(6)
    share = (strength * np.maximum(0.0, 1 - away / width) ** 2)[:, None]
    rho_to, u_to = rho + share[:, 0] * (1.02 - rho), u + share * (np.array(wanted) - u)
    exact = g + equilibrium(D2Q9, rho_to, u_to) - equilibrium(D2Q9, rho, u)
    exact[2, 5] = 0.0
    np.testing.assert_allclose(flow.g, exact, atol=1e-15)
    assert next(iter(flow.parts)) == "xmax sponge"


def test_sponge_takes_waves(context: fl.Context) -> None:
    """What is left of a wave is of the size that the formula tells."""
    held, width, strength = Pressure(scheme=AntiBounceBack(absorbing=False)), 20, 0.15
    left = tube(context, Velocity(FAST), Sponge(held, width, strength, velocity=FAST), 2)
    expected = exp(-2 * sqrt(3) * strength * width / 3)
    assert expected / 4 < left[0] < 4 * expected
    assert left[1] < 4 * expected**2


SPONGE: Any = Sponge


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Velocity(FAST, ramp=-1), "must not be negative"),
        (lambda: Velocity(FAST, ramp=2.5), "whole number of steps"),  # pyright: ignore[reportArgumentType]
        (lambda: Pressure(scheme=AntiBounceBack(absorbing=False, rate=0.1)), "held in every step"),
        (lambda: Pressure(scheme=AntiBounceBack(rate=1.5)), "about 0.001"),
        (lambda: Sponge(Outflow(), 0.5), "one cell or more"),
        (lambda: Sponge(Outflow(), 5, 1.5), "between 0 and 1"),
        (lambda: SPONGE(Sponge(Outflow(), 5), 5), "a side has one sponge"),
        (lambda: Flow((4, 6), {"xmin": Slip(), "xmax": Sponge(Slip(), 6)}), "xmax: a sponge of 6 cells in a box of 6"),
        (lambda: Flow((4, 6), {"xmin": Slip(), "xmax": Sponge(Slip(), 3, density=-1.0)}), "xmax sponge: a density"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, words: str) -> None:
    with pytest.raises(SolverError, match=words):
        make()
