"""Manufactured solutions: their sources against differences of the fluxes of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.fluxes import euler
from fluxloom.fv.compressible.gas import ConstantViscosity, Gas, Sutherland, sutherland, viscous
from fluxloom.fv.compressible.spalart_allmaras import CB2, SIGMA, diffusivity, eddy_viscosity
from fluxloom.fv.compressible.spalart_allmaras import source as production
from fluxloom_lab.exact.manufactured import Manufactured
from fluxloom_lab.exact.plane_waves import PlaneWaves

Array = np.ndarray
CONSTANT = Gas(viscosity=ConstantViscosity(0.9))
# a thick gas, so that the viscous terms are of the size of the others and mu changes much with the temperature
THICK = Gas(viscosity=Sutherland(mu0=0.7, t0=250.0, s=90.0))
CASES = [(d, gas) for d in (2, 3) for gas in (Gas(), CONSTANT, THICK)]
NAMES = [f"{d}d-{kind}" for d in (2, 3) for kind in ("euler", "constant", "sutherland")]


def points_of(d: int, n: int = 12) -> Array:
    return np.random.default_rng(d).random((n, d))


def flux(case: Manufactured, point: Array, axis: int) -> Array:
    """Return the total flux along an axis: that of Euler less the viscous one, of the functions of the kernels."""
    d, gas = case.dimension, case.gas
    n = np.eye(d)[axis]
    w, slopes = case.state(point[None])[0], case.gradient(point[None])[0]
    f, g = np.zeros(d + 2), np.zeros(d + 2)
    euler(w[: d + 2], n, f, gas.gamma, d)
    temperature = w[1 + d] / (w[0] * gas.constant)
    if gas.viscosity is None:
        return f
    law: Any = gas.viscosity
    mu = sutherland(temperature, law.mu0, law.t0, law.s) if isinstance(law, Sutherland) else law.mu
    more = w[0] * eddy_viscosity(w[-1], mu / w[0]) if case.eddy > 0.0 else 0.0
    heat = gas.gamma * gas.constant / (gas.gamma - 1.0) * (mu / gas.prandtl + more / gas.prandtl_turbulent)
    warm = (slopes[1 + d] / w[1 + d] - slopes[0] / w[0]) * temperature
    viscous(w[1 : 1 + d], slopes[1 : 1 + d].ravel(), warm, n, g, mu + more, heat, d)
    return f - g


def divergence(function: Any, points: Array, step: float) -> Array:
    """Return differences of fourth order."""
    total = 0.0
    for axis in range(points.shape[1]):
        for offset, weight in ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0)):
            moved = points + offset * step * np.eye(points.shape[1])[axis]
            total = total + weight * np.array([function(x, axis) for x in moved]) / (12.0 * step)
    return np.asarray(total)


@pytest.mark.parametrize(("d", "gas"), CASES, ids=NAMES)
def test_source_is_the_divergence_of_the_fluxes(d: int, gas: Gas) -> None:
    """In units in which state and box are of order one, each component to 1e-6 of its size."""
    case = Manufactured(d, gas, density=1.3, pressure=1e5, mach=0.8, length=1.0, amplitude=0.2)
    points = points_of(d)
    got, want = case.source(points), divergence(lambda x, k: flux(case, x, k), points, 1e-3)
    assert got.shape == (len(points), d + 2)
    assert (np.abs(want).max(axis=0) > 10.0).all()
    assert (np.abs(got - want).max(axis=0) < 1e-6 * np.abs(want).max(axis=0)).all()


@pytest.mark.parametrize("d", [2, 3])
def test_the_viscous_terms_matter(d: int) -> None:
    """Each part of the source is a good part of it, so the comparison above sees all of them."""
    points = points_of(d, 200)
    inviscid, same, changing = (Manufactured(d, gas).source(points) for gas in (Gas(), CONSTANT, THICK))
    size = np.abs(inviscid).max(axis=0)[1:]
    assert (np.abs(same - inviscid).max(axis=0)[1:] > 1e-3 * size).all()
    assert (np.abs(changing - same).max(axis=0)[1:] > 1e-4 * size).all()
    np.testing.assert_array_equal(same[:, 0], inviscid[:, 0])


@pytest.mark.parametrize("d", [2, 3])
def test_gradients(d: int) -> None:
    case = Manufactured(d, THICK, eddy=4.0)
    points = points_of(d)
    assert case.state(points).shape == (len(points), d + 3) == (len(points), case.variables)
    for axis in range(d):
        want = divergence(lambda x, k, axis=axis: case.state(x[None])[0] * (k == axis), points, 1e-3)
        scale = np.abs(case.state(points)).max(axis=0)
        np.testing.assert_allclose(case.gradient(points)[:, :, axis] / scale, want / scale, atol=1e-8)

    def temperature(x: Array) -> float:
        w = case.state(x[None])[0]
        return w[1 + d] / (w[0] * case.gas.constant)

    want = divergence(lambda x, k: temperature(x) * np.eye(d)[k], points, 1e-3)
    np.testing.assert_allclose(case.temperature_gradient(points), want, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("gas", [CONSTANT, THICK], ids=["constant", "sutherland"])
@pytest.mark.parametrize("d", [2, 3])
def test_model_of_turbulence(d: int, gas: Gas) -> None:
    """The conservative form of its equation (Allmaras et al.), and the eddy viscosity in the others."""
    case = Manufactured(d, gas, mach=0.6, amplitude=0.2, eddy=6.0)
    points = points_of(d)
    distance = 0.3 + points[:, 0]

    def parts(x: Array) -> tuple[Array, Array, float, float]:
        w, slopes = case.state(x[None])[0], case.gradient(x[None])[0]
        law: Any = gas.viscosity
        temperature = w[1 + d] / (w[0] * gas.constant)
        return w, slopes, law.at(temperature) / w[0], diffusivity(w[-1], law.at(temperature) / w[0]) / SIGMA

    def carried(x: Array, axis: int) -> float:
        w, slopes, _, diffused = parts(x)
        return w[0] * (w[1 + axis] * w[-1] - diffused * slopes[-1, axis])

    want = divergence(carried, points, 1e-3)
    for k, x in enumerate(points):
        w, slopes, nu, diffused = parts(x)
        turn = slopes[1 : 1 + d] - slopes[1 : 1 + d].T
        omega = np.sqrt(0.5 * (turn * turn).sum())
        made = production(w[-1], nu, omega, distance[k])
        want[k] += diffused * (slopes[0] @ slopes[-1]) - CB2 / SIGMA * w[0] * (slopes[-1] @ slopes[-1]) - w[0] * made
    got = case.source(points, distance)
    assert np.abs(got[:, -1] - want).max() < 1e-6 * np.abs(want).max()
    flow = divergence(lambda x, k: flux(case, x, k), points, 1e-3)
    assert (np.abs(got[:, :-1] - flow).max(axis=0) < 1e-6 * np.abs(flow).max(axis=0)).all()
    w = case.state(points)
    np.testing.assert_allclose(case.carried_source(points, distance), (got[:, -1] - w[:, -1] * got[:, 0]) / w[:, 0])


def test_periodic_and_of_the_mean() -> None:
    case = Manufactured(3, THICK, length=2.5, mach=0.5)
    points = 2.5 * points_of(3)
    moved = points + np.array([2.5, -2.5, 5.0])
    np.testing.assert_allclose(case.state(moved), case.state(points), rtol=1e-12)
    np.testing.assert_allclose(case.source(moved), case.source(points), rtol=1e-7, atol=1e-5)
    grid = (np.stack(np.meshgrid(*[np.arange(8) / 8] * 3), axis=-1).reshape(-1, 3) + 0.1) * 2.5
    mean = case.state(grid).mean(axis=0)
    assert mean[[0, 4]] == pytest.approx([1.2, 101325.0], rel=1e-12)
    assert np.linalg.norm(mean[1:4]) == pytest.approx(0.5 * np.sqrt(1.4 * 101325.0 / 1.2), rel=1e-12)


def test_uniform_flow_needs_no_source() -> None:
    """But with a model of turbulence that of production and destruction."""
    case = Manufactured(2, THICK, amplitude=0.0, eddy=3.0)
    source = case.source(points_of(2), np.full(12, 0.5))
    assert np.abs(source[:, :4]).max() < 1e-9
    w = case.state(points_of(2))[0]
    nu = THICK.viscosity.at(w[3] / (w[0] * THICK.constant)) / w[0]  # pyright: ignore
    np.testing.assert_allclose(source[:, 4], -w[0] * production(w[4], nu, 0.0, 0.5))


def test_own_fields() -> None:
    """Plane Couette flow of constant density: what it heats has to be taken out."""
    d, shear, mu = 2, 30.0, 0.02
    waves = [PlaneWaves(v, (), (), ()) for v in (1.0, 0.0, 0.0, 1e5)]
    waves[1] = PlaneWaves(0.0, (shear,), ((0.0, 1.0),), (0.0,))
    case = Manufactured(d, Gas(viscosity=ConstantViscosity(mu)), fields=tuple(waves))
    x = points_of(2)
    want = np.zeros((12, 4))
    want[:, 1] = mu * shear * np.sin(x[:, 1])
    want[:, 3] = -mu * shear**2 * (np.cos(x[:, 1]) ** 2 - np.sin(x[:, 1]) ** 2)
    np.testing.assert_allclose(case.source(x), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"dimension": 1}, "2 or 3"),
        ({"density": 0.0}, "density: a number above 0"),
        ({"length": -1.0}, "length"),
        ({"amplitude": 0.5}, "amplitude < 0.5"),
        ({"mach": float("nan")}, "mach >= 0"),
        ({"eddy": 2.0}, "needs a gas with a viscosity"),
        ({"fields": (PlaneWaves(1.0, (), (), ()),)}, "4 are wanted"),
        ({"fields": (PlaneWaves(1.0, (1.0,), ((1.0, 0.0),), (0.0,)),) * 4}, "field 0 may be negative"),
    ],
)
def test_values_out_of_range(values: dict[str, Any], match: str) -> None:
    with pytest.raises(SolverError, match=match):
        Manufactured(**values)


def test_messages() -> None:
    with pytest.raises(SolverError, match=r"points \(n, 3\)"):
        Manufactured(3).state(points_of(2))
    with pytest.raises(SolverError, match="distance: that from the wall of each of the 12"):
        Manufactured(2, THICK, eddy=1.0).source(points_of(2))
    with pytest.raises(SolverError, match="no model of turbulence"):
        Manufactured(2, THICK).carried_source(points_of(2), np.ones(12))
    with pytest.raises(SolverError, match="as many amplitudes"):
        PlaneWaves(1.0, (1.0,), (), ())
