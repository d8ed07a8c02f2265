"""The model of Spalart and Allmaras: the layers near a wall, and negative values."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.access import Read, Write
from fluxloom.fv.compressible.spalart_allmaras import CB1, CB2, CW1, KAPPA, SIGMA, diffusivity, eddy_viscosity, source
from fluxloom.kernel.frontend import kernel

Array = np.ndarray


@kernel
def model(a: Read, out: Write):
    out[0] = source(a[0], a[1], a[2], a[3])
    out[1] = eddy_viscosity(a[0], a[1])
    out[2] = diffusivity(a[0], a[1])


def computed(nut: Array, nu: Array, omega: Array, y: Array, device: str = "cpu") -> Array:
    given = np.column_stack(np.broadcast_arrays(nut, nu, omega, y)).astype(np.float64)
    context = fl.Context(device, tuning=False)
    cells = context.set(len(given), "cells")
    out = context.dat(cells, shape=(3,))
    fl.Loop(model, cells, context.dat(cells, given), out)()
    return out.read()


def expected(nut: float, nu: float, omega: float, y: float) -> float:
    """Return the source, written down once more from the report of 2012."""
    chi = nut / nu
    if nut < 0.0:
        return CB1 * (1.0 - 1.2) * omega * nut + CW1 * (nut / y) ** 2
    fv1 = chi**3 / (chi**3 + 7.1**3)
    fv2 = 1.0 - chi / (1.0 + chi * fv1)
    ft2 = 1.2 * np.exp(-0.5 * chi**2)
    bar = nut / (KAPPA * y) ** 2 * fv2
    s = omega + bar
    if bar < -0.7 * omega:
        s = omega + omega * (0.49 * omega + 0.9 * bar) / ((0.9 - 1.4) * omega - bar)
    r = min(nut / (s * (KAPPA * y) ** 2), 10.0)
    g = r + 0.3 * (r**6 - r)
    fw = g * ((1.0 + 2.0**6) / (g**6 + 2.0**6)) ** (1.0 / 6.0)
    return CB1 * (1.0 - ft2) * s * nut - (CW1 * fw - CB1 / KAPPA**2 * ft2) * (nut / y) ** 2


@pytest.mark.parametrize("device", ["reference", "cpu", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_source(device: str) -> None:
    rng = np.random.default_rng(4)
    nu, omega, y = (10.0 ** rng.uniform(a, b, 300) for a, b in ((-6.0, -3.0), (-1.0, 4.0), (-5.0, 0.0)))
    nut = nu * 10.0 ** rng.uniform(-2.0, 4.0, 300) * np.where(rng.random(300) < 0.2, -1.0, 1.0)
    want = [expected(*values) for values in zip(nut, nu, omega, y, strict=True)]
    found = computed(nut, nu, omega, y, device)[:, 0]
    scale = CW1 * (nut / y) ** 2 + CB1 * omega * np.abs(nut)
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12 * scale.max())


def test_logarithmic_layer() -> None:
    """``nu~ = kappa u_tau y`` with the modified vorticity ``u_tau / (kappa y)`` is a solution: the terms cancel."""
    u, nu = 1.3, 1e-9
    y = np.linspace(0.1, 1.0, 10)
    nut = KAPPA * u * y
    chi = nut / nu
    fv2 = 1.0 - chi / (1.0 + chi * chi**3 / (chi**3 + 7.1**3))
    omega = u / (KAPPA * y) - nut / (KAPPA * y) ** 2 * fv2
    diffusion = (1.0 + CB2) / SIGMA * (KAPPA * u) ** 2
    np.testing.assert_allclose(computed(nut, np.full(10, nu), omega, y)[:, 0], -diffusion, rtol=1e-6)


def test_eddy_viscosity() -> None:
    chi = np.array([0.0, 1e-3, 7.1, 1e4, -5.0])
    found = computed(1e-5 * chi, np.full(5, 1e-5), np.ones(5), np.ones(5))[:, 1] / 1e-5
    np.testing.assert_allclose(found, [0.0, 1e-12 / 7.1**3, 7.1 / 2.0, 1e4, 0.0], rtol=1e-6, atol=1e-18)


def test_negative_values_come_back() -> None:
    """They diffuse, however large, and grow towards zero where there is no vorticity; both branches meet at zero."""
    chi = -(10.0 ** np.linspace(-6.0, 6.0, 60))
    one = np.ones(60)
    source_, _, spread = computed(chi, one, 0.0 * one, one).T
    assert (source_ > 0.0).all()
    assert (spread > 0.0).all()
    both = computed(np.array([-1e-9, 0.0, 1e-9]), np.ones(3), 50.0 * np.ones(3), np.ones(3))
    np.testing.assert_allclose(both[:, 0], [0.0, 0.0, 0.0], atol=1e-8)
    assert both[1].tolist() == [0.0, 0.0, 1.0]
    slopes = np.diff(both[:, 0])
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-6)  # c_b1 (1 - c_t3) omega on both sides


def test_no_flow() -> None:
    """Without vorticity nothing is produced, and nothing is divided by zero."""
    found = computed(np.array([0.0, 1e-5, 1.0]), np.full(3, 1e-5), np.zeros(3), np.ones(3))[:, 0]
    assert np.isfinite(found).all()
    assert found[0] == 0.0
    assert (found[1:] < 0.0).all()
