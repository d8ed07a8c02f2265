"""Differential equations made discrete: second order for every pair of sides, cells and nodes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.linalg.direct.poisson.boundary import Dirichlet, Neumann
from fluxloom.linalg.direct.separable import Axis, SeparableEquation
from fluxloom.linalg.direct.separable.program import make_program
from fluxloom_lab.exact.separable_oracle import run, settled

DOMAIN = ((0.1, 1.0), (0.0, 1.2))


def exact(y, x):
    return np.sin(1.3 * x + 0.2) * np.cos(1.7 * y - 0.4)


def slope_x(y, x):
    return 1.3 * np.cos(1.3 * x + 0.2) * np.cos(1.7 * y - 0.4)


def slope_y(y, x):
    return -1.7 * np.sin(1.3 * x + 0.2) * np.sin(1.7 * y - 0.4)


def diffusion(t):
    return 1 + 0.5 * np.sin(2 * t)


def reaction(t):
    return -1 - t * t


def source(y, x):
    u = exact(y, x)
    along_x = -1.69 * diffusion(x) * u + (np.cos(2 * x) + np.cos(x)) * slope_x(y, x)
    along_y = -2.89 * diffusion(y) * u + (np.cos(2 * y) + np.cos(y)) * slope_y(y, x)
    return along_x + along_y + (reaction(x) + reaction(y)) * u


def equation(n: int, centring: str, bc) -> SeparableEquation:
    axes = tuple(
        Axis(n + k, DOMAIN[k], diffusion=diffusion, advection=np.cos, reaction=reaction, centring=centring)
        for k in range(2)
    )
    return SeparableEquation(axes, bc)


def with_data(n: int, centring: str, y: str, x: str) -> SeparableEquation:
    names = {"d": "dirichlet", "n": "neumann"}
    ys, xs = equation(n, centring, [[names[k] for k in sides] for sides in (y, x)]).points
    bc_y = [
        Dirichlet(exact(end, xs)) if kind == "d" else Neumann(sign * slope_y(end, xs))
        for kind, end, sign in zip(y, DOMAIN[0], (-1, 1), strict=True)
    ]
    bc_x = [
        Dirichlet(exact(ys, end)) if kind == "d" else Neumann(sign * slope_x(ys, end))
        for kind, end, sign in zip(x, DOMAIN[1], (-1, 1), strict=True)
    ]
    return equation(n, centring, [bc_y, bc_x])


@pytest.mark.parametrize("centring", ["cell", "node"])
@pytest.mark.parametrize("pair", list(itertools.product(("dd", "dn", "nd", "nn"), repeat=2)), ids="-".join)
def test_second_order(pair, centring):
    errors = []
    for n in (8, 16):
        given = with_data(n, centring, *pair)
        y, x = given.points[0][:, None], given.points[1]
        u = run(make_program(given.problem), given.right_side(source(y, x)))
        errors.append(np.abs(u - exact(y, x)).max())
    assert np.log2(errors[0] / errors[1]) > 1.6
    assert errors[1] < 1e-2


@pytest.mark.parametrize("centring", ["cell", "node"])
def test_periodic_sides(centring):
    errors = []
    for n in (16, 32):
        axes = tuple(Axis(n + k, (0.0, 1.0), diffusion=lambda t: 2 + np.cos(2 * np.pi * t), centring=centring)
                     for k in range(2))  # fmt: skip
        given = SeparableEquation(axes, "periodic")
        y, x = given.points[0][:, None], given.points[1]
        u = np.sin(2 * np.pi * x) + np.cos(2 * np.pi * y)
        p = 2 * np.pi
        g = -p * p * ((2 + np.cos(p * x)) * np.sin(p * x) + np.sin(p * x) * np.cos(p * x))
        g = g - p * p * ((2 + np.cos(p * y)) * np.cos(p * y) - np.sin(p * y) * np.sin(p * y))
        found = run(make_program(given.problem), given.right_side(g))
        errors.append(np.abs(found - settled(given.problem, u)).max())
    assert 1.9 < np.log2(errors[0] / errors[1]) < 2.1


def test_points():
    y, x = equation(4, "cell", "dirichlet").points
    np.testing.assert_allclose(y, 0.1 + 0.9 * (np.arange(4) + 0.5) / 4)
    assert x.size == 5
    y = equation(4, "node", "dirichlet").points[0]
    np.testing.assert_allclose(y, 0.1 + 0.9 * np.arange(1, 5) / 5)
    y = equation(4, "node", "neumann").points[0]
    np.testing.assert_allclose(y, 0.1 + 0.9 * np.arange(4) / 3)


def test_wrong_axes_are_refused():
    with pytest.raises(SolverError, match="at least 1"):
        Axis(0)
    with pytest.raises(SolverError, match="centring"):
        Axis(3, centring="face")  # type: ignore[arg-type]
    with pytest.raises(SolverError, match="at least 2"):
        SeparableEquation((Axis(1, centring="node"), Axis(3)), "neumann")
    with pytest.raises(SolverError, match="diffusion has shape"):
        SeparableEquation((Axis(3, diffusion=lambda _: np.ones(2)), Axis(3)))


def test_strong_advection_is_refused():
    with pytest.raises(SolverError, match="refine the mesh"):
        SeparableEquation((Axis(4, advection=100.0), Axis(4)))
