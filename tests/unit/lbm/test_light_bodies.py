"""Free bodies lighter than the fluid: they live, and rise as they should."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.lbm.collisions.operators import TRT
from fluxloom.lbm.immersed import Free, ImmersedBody, ImmersedBoundary, circle, sphere
from fluxloom.lbm.lattices import D2Q9, D3Q19
from fluxloom.solvers.lattice.flow import LatticeBoltzmann


@pytest.mark.parametrize(
    ("density", "diameter", "dimensions", "steps"),
    [(0.5, 10.0, 2, 900), (0.5, 20.0, 2, 700), (0.7, 20.0, 2, 500), (0.1, 12.0, 2, 500), (0.5, 8.0, 3, 150)],
)
def test_bodies_lighter_than_the_fluid_rise(density: float, diameter: float, dimensions: int, steps: int) -> None:
    """Their speed never jumps, and what they gain at first is that of potential flow, less friction and the box."""
    n, weight = int(3 * diameter), 2.5e-4
    lattice, make = (D2Q9, circle) if dimensions == 2 else (D3Q19, sphere)
    gravity = (*(0.0,) * (dimensions - 1), -weight)
    motion = (Free.disk if dimensions == 2 else Free.ball)(diameter / 2, density, gravity=gravity)
    flow = LatticeBoltzmann(
        fl.Context("cpu", threads=1, tuning=False), (n,) * dimensions, viscosity=0.005, lattice=lattice,
        collision=TRT(), dtype="float64",
    )  # fmt: skip
    markers = make(((n - 1) / 2,) * dimensions, diameter / 2, retract=0.35)
    boundary = ImmersedBoundary([ImmersedBody("b", markers, motion)])
    flow.immerse(boundary)
    flow.initialise()
    speeds, last = [0.0], boundary.centre("b")
    for _ in range(steps):
        flow.step()
        here = boundary.centre("b")
        speeds.append(here[-1] - last[-1])
        last = here
    changes = np.diff(speeds)
    assert np.abs(changes).max() < 0.01 * 0.05
    assert np.abs(np.diff(changes[-100:])).max() < 0.1 * weight  # it does not swing from step to step
    added = 1.0 if dimensions == 2 else 0.5
    free = weight * (1.0 - density) / (density + added)
    assert 0.4 * free < speeds[100] / 100 < 1.05 * free
