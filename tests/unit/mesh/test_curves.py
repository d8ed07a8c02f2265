"""Splines and roots have the numbers of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline as Theirs
from scipy.optimize import brentq

from fluxloom.core.errors import MeshError
from fluxloom.mesh.curves import CubicSpline, root_between


@pytest.mark.parametrize("points", [4, 5, 300])
@pytest.mark.parametrize("periodic", [False, True])
def test_splines(points: int, periodic: bool) -> None:
    random = np.random.default_rng(points)
    x = np.cumsum(random.uniform(0.5, 1.5, points))
    y = random.standard_normal(points)
    y[-1] = y[0] if periodic else y[-1]
    at = np.linspace(x[0], x[-1], 1000) if periodic else np.linspace(x[0] - 0.1, x[-1] + 0.1, 1000)
    wanted = Theirs(x, y, bc_type="periodic" if periodic else "not-a-knot")(at)
    np.testing.assert_allclose(CubicSpline(x, y, periodic)(at), wanted, rtol=0.0, atol=1e-13 * np.abs(wanted).max())


def test_a_cubic_is_its_own_spline() -> None:
    x = np.array([0.0, 0.5, 1.5, 2.0, 4.0])
    at = np.linspace(-1.0, 5.0, 13)
    np.testing.assert_allclose(CubicSpline(x, x**3 - 2.0 * x)(at), at**3 - 2.0 * at, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda x: x**3 - 2.0, 0.0, 2.0),
        (lambda x: np.exp(x) - 1e6, -20.0, 20.0),
        (lambda x: x, 0.0, 1.0),
        (lambda x: x - 1.0, 0.0, 1.0),
        (lambda x: np.cos(x) - x, 0.0, 1.0),
    ],
)
def test_roots(function, low: float, high: float) -> None:
    assert root_between(function, low, high) == brentq(function, low, high)
    assert root_between(function, low, high, within=1e-15, relative=1e-15) == brentq(
        function, low, high, xtol=1e-15, rtol=1e-15
    )


def test_what_has_no_root_is_refused() -> None:
    with pytest.raises(MeshError, match="no root can be found from 0 to 1: there is no value at 1"):
        root_between(lambda x: np.nan if x else -1.0, 0.0, 1.0)
    with pytest.raises(MeshError, match="no root is known to lie from 0 to 1: 1 and 2 at the ends"):
        root_between(lambda x: x + 1.0, 0.0, 1.0)
