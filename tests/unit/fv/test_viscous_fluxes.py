"""Viscous fluxes, and Sutherland's law."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.access import Const, Read, Write
from fluxloom.fv.compressible.gas import sutherland, viscous
from fluxloom.kernel.frontend import kernel
from fluxloom.kernel.intrinsics import zeros

Array = np.ndarray
MU, HEAT = 0.3, 0.7


@kernel
def flux(u: Read, slopes: Read, heat: Read, n: Read, f: Write, *, mu: float, heats: float, d: Const[int]):
    g = zeros(2 + d)
    viscous(u, slopes, heat, n, g, mu, heats, d)
    for k in range(2 + d):
        f[k] = g[k]


@kernel
def viscosity(t: Read, mu: Write):
    mu[0] = sutherland(t[0], 1.716e-5, 273.15, 110.4)


def computed(u: Array, slopes: Array, heat: Array, n: Array, device: str = "cpu") -> Array:
    d = u.shape[1]
    context = fl.Context(device, tuning=False)
    faces = context.set(len(u), "faces")
    given = [context.dat(faces, np.ascontiguousarray(v.reshape(len(u), -1))) for v in (u, slopes, heat, n)]
    f = context.dat(faces, shape=(2 + d,))
    fl.Loop(flux, faces, *given, f, mu=MU, heats=HEAT, d=d)()
    return f.read()


@pytest.mark.parametrize("device", ["reference", "cpu", pytest.param("opencl", marks=pytest.mark.opencl)])
@pytest.mark.parametrize("d", [2, 3])
def test_stress_and_heat(d: int, device: str) -> None:
    rng = np.random.default_rng(1)
    u, slopes, heat, n = (rng.standard_normal(s) for s in ((30, d), (30, d, d), (30, d), (30, d)))
    tau = MU * (
        slopes + slopes.swapaxes(1, 2) - 2.0 / 3.0 * np.trace(slopes, axis1=1, axis2=2)[:, None, None] * np.eye(d)
    )
    force = np.einsum("fij,fj->fi", tau, n)
    want = np.column_stack([np.zeros(30), force, (force * u).sum(axis=1) + HEAT * (heat * n).sum(axis=1)])
    np.testing.assert_allclose(computed(u, slopes, heat, n, device), want, rtol=1e-12, atol=1e-13)


def test_rotation_has_no_stress() -> None:
    """Neither has a uniform expansion in three dimensions, whose pressure is thermodynamic alone (Stokes)."""
    turn = np.array([[0.0, -2.0, 1.0], [2.0, 0.0, -3.0], [-1.0, 3.0, 0.0]])
    slopes = np.array([turn, 1.7 * np.eye(3)])
    zero, n = np.zeros((2, 3)), np.tile([0.0, 0.6, 0.8], (2, 1))
    np.testing.assert_allclose(computed(zero, slopes, zero, n), 0.0, atol=1e-15)


def test_sutherland() -> None:
    """Air: 1.716e-5 Pa s at 273.15 K, 1.846e-5 at 300 K, 2.670e-5 at 500 K (White, table A-2, within 1 %)."""
    context = fl.Context("cpu", threads=1, tuning=False)
    points = context.set(3, "points")
    mu = context.dat(points)
    fl.Loop(viscosity, points, context.dat(points, np.array([273.15, 300.0, 500.0])), mu)()
    np.testing.assert_allclose(mu.read(), [1.716e-5, 1.846e-5, 2.67e-5], rtol=1e-2)
    assert mu.read()[0] == pytest.approx(1.716e-5, rel=1e-12)
