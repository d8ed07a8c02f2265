"""Order of accuracy of transport on edges: a Gaussian hill that turns and spreads, against the exact one.

D. Kuzmin: *A Guide to Numerical Methods for Transport Equations* (2010), section 4.4.6.3.
"""

from __future__ import annotations

from math import ceil, log2

import numpy as np
import numpy.typing as npt
import pytest

from fluxloom.dsl.context import Context
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.edges.scheme import Advective, EdgeScheme
from fluxloom.solvers.edges.transport import EdgeTransport

Array = npt.NDArray[np.float64]

SKEW, ADVECTIVE = EdgeScheme(), EdgeScheme(convection=Advective())


def hill(places: Array, age: float, kappa: float) -> Array:
    """Return the hill, of the volume 1, so long after all of it was in the point (0, 0.5)."""
    x, y = places[:, 0] + 0.5 * np.sin(age), places[:, 1] - 0.5 * np.cos(age)
    return np.exp(-(x**2 + y**2) / (4 * kappa * age)) / (4 * np.pi * kappa * age)


def error(n: int, kappa: float, end: float, scheme: EdgeScheme) -> float:
    """Return the root of the mean square over that of the hill, from a quarter of a turn on."""
    context, start = Context("cpu", threads=1), np.pi / 2
    mesh = point_mesh(context, box2d(n, n, (2.0, 2.0), kind="triangle", origin=(-1.0, -1.0), perturb=0.1))
    transport = EdgeTransport(
        mesh, lambda p: np.stack([-p[:, 1], p[:, 0]], axis=1), kappa, dict.fromkeys(mesh.patches, 0.0), scheme=scheme
    )
    transport.initialise(lambda p: hill(p, start, kappa))
    steps = ceil(end / transport.stable_step())
    for _ in range(steps):
        transport.step(end / steps)
    exact, mass = hill(transport.places, start + end, kappa), transport.operators.mass.read()
    return float(np.sqrt(mass @ (transport.scalar() - exact) ** 2 / (mass @ exact**2)))


@pytest.mark.parametrize("scheme", [SKEW, ADVECTIVE])
def test_second_order(scheme: EdgeScheme) -> None:
    """A wide hill, an eighth of a turn."""
    coarse, fine = (error(n, 4e-3, np.pi / 4, scheme) for n in (40, 80))
    assert log2(coarse / fine) > 1.88
    assert fine == pytest.approx(0.02798, rel=0.02)


@pytest.mark.long
@pytest.mark.parametrize("scheme", [SKEW, ADVECTIVE])
def test_second_order_of_the_benchmark(scheme: EdgeScheme) -> None:
    """A whole turn with the diffusivity of the benchmark."""
    coarse, fine = (error(n, 1e-3, 2 * np.pi, scheme) for n in (128, 256))
    assert log2(coarse / fine) > 1.93
    assert fine == pytest.approx(0.02899, rel=0.02)
