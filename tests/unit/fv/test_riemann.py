"""The exact solution of Riemann's problem."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom_lab.exact.riemann import SOD, RiemannProblem

# Toro, table 4.1 and 4.2: left, right, p*, u*, density left and right of the contact
TORO = [
    ((1.0, 0.0, 1.0), (0.125, 0.0, 0.1), 0.30313, 0.92745, 0.42632, 0.26557),
    ((1.0, -2.0, 0.4), (1.0, 2.0, 0.4), 0.00189, 0.0, 0.02185, 0.02185),
    ((1.0, 0.0, 1000.0), (1.0, 0.0, 0.01), 460.894, 19.5975, 0.57506, 5.99924),
    ((1.0, 0.0, 0.01), (1.0, 0.0, 100.0), 46.0950, -6.19633, 5.99242, 0.57511),
    ((5.99924, 19.5975, 460.894), (5.99242, -6.19633, 46.0950), 1691.64, 8.68975, 14.2823, 31.0426),
]


def flux(state: np.ndarray, gamma: float = 1.4) -> np.ndarray:
    rho, u, p = state
    return np.array([rho * u, rho * u * u + p, u * (gamma / (gamma - 1.0) * p + 0.5 * rho * u * u)])


def conserved(state: np.ndarray, gamma: float = 1.4) -> np.ndarray:
    rho, u, p = state
    return np.array([rho, rho * u, p / (gamma - 1.0) + 0.5 * rho * u * u])


def test_sod() -> None:
    assert SOD.pressure == pytest.approx(0.3031301780, abs=1e-10)
    assert SOD.velocity == pytest.approx(0.9274526200, abs=1e-10)
    assert SOD.density(SOD.left) == pytest.approx(0.4263194282, abs=1e-10)
    assert SOD.density(SOD.right) == pytest.approx(0.2655737117, abs=1e-10)
    places = 0.5 + 0.2 * np.array(SOD.waves())
    assert places == pytest.approx([0.2633568, 0.4859454, 0.6854905, 0.8504311, 0.8504311], abs=1e-7)


@pytest.mark.parametrize("case", TORO, ids=range(1, 6))
def test_problems_of_toro(case: Any) -> None:
    left, right, p, u, before, behind = case
    problem = RiemannProblem(left, right)
    assert problem.pressure == pytest.approx(p, rel=3e-3 if p < 0.01 else 1e-5)
    assert problem.velocity == pytest.approx(u, rel=1e-5, abs=1e-12)
    assert (problem.density(left), problem.density(right)) == pytest.approx((before, behind), rel=3e-4)


@pytest.mark.parametrize("case", TORO, ids=range(1, 6))
def test_conservation(case: Any) -> None:
    """What flows in at both ends in a unit of time is there afterwards, so jumps keep Rankine's conditions."""
    problem = RiemannProblem(case[0], case[1])
    waves = np.array(problem.waves())
    assert (np.diff(waves) >= 0.0).all()
    far = 1.1 * np.abs(waves).max()
    edges = np.unique(np.concatenate([[-far], waves, [far]]))
    total = np.zeros(3)
    points, weights = np.polynomial.legendre.leggauss(40)
    for a, b in pairwise(edges):
        inside = problem.at(0.5 * (a + b) + 0.5 * (b - a) * points)
        total += 0.5 * (b - a) * sum(w * conserved(s) for w, s in zip(weights, inside, strict=True))
    ends = [np.array(case[0]), np.array(case[1])]
    want = far * (conserved(ends[0]) + conserved(ends[1])) + flux(ends[0]) - flux(ends[1])
    np.testing.assert_allclose(total, want, rtol=1e-8, atol=1e-8 * np.abs(want).max())


def test_mirrored() -> None:
    left, right = (1.0, 0.3, 2.0), (0.5, -0.2, 0.4)
    here = RiemannProblem(left, right)
    there = RiemannProblem((right[0], -right[1], right[2]), (left[0], -left[1], left[2]))
    speeds = np.linspace(-4.0, 4.0, 101) + 1e-9
    found, mirrored = here.at(speeds), there.at(-speeds)
    np.testing.assert_allclose(found, mirrored * [1.0, -1.0, 1.0], rtol=1e-12, atol=1e-12)


def test_nothing_happens() -> None:
    state = (0.7, 1.2, 3.0)
    problem = RiemannProblem(state, state)
    np.testing.assert_allclose(problem.at([-9.0, 0.0, 1.2, 9.0]), np.tile(state, (4, 1)), rtol=1e-14)


@pytest.mark.parametrize(
    ("left", "right", "gamma", "text"),
    [
        ((0.0, 0.0, 1.0), (1.0, 0.0, 1.0), 1.4, "states of density, velocity and pressure"),
        ((1.0, 0.0, 1.0), (1.0, 0.0, -1.0), 1.4, "states of density"),
        ((1.0, float("nan"), 1.0), (1.0, 0.0, 1.0), 1.4, "states of density"),
        ((1.0, 0.0, 1.0), (1.0, 0.0, 1.0), 1.0, "gamma: a number above 1"),
        ((1.0, -9.0, 1.0), (1.0, 9.0, 1.0), 1.4, "a vacuum opens"),
    ],
)
def test_what_has_no_solution(left: Any, right: Any, gamma: float, text: str) -> None:
    with pytest.raises(SolverError, match=text):
        RiemannProblem(left, right, gamma)
