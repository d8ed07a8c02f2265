"""Eddy viscosities: against plain NumPy, where they vanish, at walls, their constants, on every device."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity, Qr, S3pqr, Sigma, Smagorinsky, Wale, filter_areas

Array = npt.NDArray[np.float64]
Model = EddyViscosity

MODELS: dict[str, Model] = {
    "smagorinsky": Smagorinsky(constant=1.0),
    "wale": Wale(constant=1.0),
    "qr": Qr(constant=1.0),
    "sigma": Sigma(constant=1.0),
    "s3pq": S3pqr("pq", constant=1.0),
    "s3pr": S3pqr("pr", constant=1.0),
    "s3qr": S3pqr("qr", constant=1.0),
}
OPENCL = pytest.param("opencl", marks=pytest.mark.opencl)
EVERY = pytest.mark.parametrize("name", MODELS)
ROUND = 1e-14  # what rounding leaves of zero, over |g|
GRADE = 1e-7  # the same where two singular values coincide

ROTATION = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
SHEAR = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


@functools.cache
def context_of(device: str) -> Context:
    return Context(device, threads=1) if device == "cpu" else Context(device)


def viscosity(model: Model, g: Array, volume: float | Array = 1.0, device: str = "cpu") -> Array:
    """Return the eddy viscosity, ``(n,)``, of velocity gradients ``(n, 3, 3)``."""
    context = context_of(device)
    cells = context.set(len(g), "cells")
    gradient = context.dat(cells, np.ascontiguousarray(g.reshape(len(g), 9)), "gradient")
    widths = filter_areas(np.broadcast_to(np.asarray(volume, dtype=g.dtype), len(g)))
    nut = context.dat(cells, np.full(len(g), -1.0, dtype=g.dtype), "nu_t")
    model.loop(cells, gradient, context.dat(cells, widths, "filter_area"), nut)()
    return nut.read()


def free_of_trace(g: Array) -> Array:
    return g - np.trace(g, axis1=1, axis2=2)[:, None, None] / 3.0 * np.eye(3)


def random_gradients(count: int, seed: int = 0) -> Array:
    return free_of_trace(np.random.default_rng(seed).standard_normal((count, 3, 3)))


def turned(g: Array, count: int = 50) -> Array:
    """Return a tensor, or each of ``count``, in random axes, ``(count, 3, 3)``."""
    axes = np.linalg.qr(np.random.default_rng(3).standard_normal((count, 3, 3)))[0]
    return axes @ g @ axes.swapaxes(1, 2)


def expected(name: str, g: Array) -> Array:
    """Return ``D`` from eigenvalues and singular values."""
    strain = 0.5 * (g + g.swapaxes(1, 2))
    eigen = np.linalg.eigvalsh(strain)
    ss = (eigen**2).sum(axis=1)
    s1, s2, s3 = np.linalg.svd(g, compute_uv=False).T
    p = s1**2 + s2**2 + s3**2
    q = (s1 * s2) ** 2 + (s2 * s3) ** 2 + (s3 * s1) ** 2
    r = (s1 * s2 * s3) ** 2
    if name == "smagorinsky":
        return np.sqrt(2 * ss)
    if name == "wale":
        square = free_of_trace(g @ g)
        a = ((0.5 * (square + square.swapaxes(1, 2))) ** 2).sum(axis=(1, 2))
        return a**1.5 / (ss**2.5 + a**1.25)
    if name == "qr":
        return np.maximum(-eigen.prod(axis=1), 0.0) / (0.5 * ss)
    if name == "sigma":
        return s3 * (s1 - s2) * (s2 - s3) / s1**2
    power = {"s3pq": -2.5, "s3pr": -1.0, "s3qr": 0.0}[name]
    return p**power * q ** -(power + 1) * r ** ((power + 2.5) / 3)


@EVERY
def test_random_gradients(name: str) -> None:
    g = random_gradients(2000)
    want = expected(name, g)
    assert want.max() > 0.1
    np.testing.assert_allclose(viscosity(MODELS[name], g), want, rtol=1e-10, atol=1e-13)


@EVERY
def test_divergence_does_not_matter(name: str) -> None:
    g = np.random.default_rng(5).standard_normal((500, 3, 3))
    np.testing.assert_allclose(viscosity(MODELS[name], g), expected(name, g), rtol=1e-10, atol=1e-13)


@EVERY
def test_length_is_the_cube_root_of_the_volume(name: str) -> None:
    g, model = random_gradients(200), MODELS[name]
    volume = np.random.default_rng(1).uniform(0.01, 10.0, 200)
    want = (0.3 * np.cbrt(volume)) ** 2 * viscosity(model, g)
    np.testing.assert_allclose(viscosity(replace(model, constant=0.3), g, volume), want, rtol=1e-13)


@EVERY
@pytest.mark.parametrize("factor", [1e-100, 1e100])
def test_rate(name: str, factor: float) -> None:
    g = random_gradients(200)
    want = factor * viscosity(MODELS[name], g)
    np.testing.assert_allclose(viscosity(MODELS[name], factor * g), want, rtol=1e-10, atol=1e-13 * factor)


@EVERY
def test_axes_do_not_matter(name: str) -> None:
    g = random_gradients(200)
    want = viscosity(MODELS[name], g)
    np.testing.assert_allclose(viscosity(MODELS[name], turned(g, 200)), want, rtol=1e-10, atol=1e-13)


@EVERY
def test_nothing_where_nothing_moves(name: str) -> None:
    g = np.zeros((3, 3, 3))
    g[1], g[2] = 1e-170 * random_gradients(1)[0], 1e-310
    assert viscosity(MODELS[name], g).tolist() == [0.0, 0.0, 0.0]


@EVERY
def test_a_lost_solution_shows(name: str) -> None:
    g = random_gradients(2)
    g[0, 1, 2] = math.nan
    assert np.isnan(viscosity(MODELS[name], g)).tolist() == [True, False]


@pytest.mark.parametrize("real", ["float64", "float32"])
@pytest.mark.parametrize("device", ["cpu", OPENCL])
@EVERY
def test_never_negative_near_degenerate_gradients(name: str, device: str, real: str) -> None:
    """Contracted products round otherwise: differences that cannot be negative are, on devices that contract."""
    single = np.zeros((3, 3, 3, 3))
    single[0], single[1], single[2] = SHEAR, ROTATION, np.diag([2.0, -1.0, -1.0])
    noise = random_gradients(3 * 3 * 400).reshape(3, 3, 400, 3, 3)
    sizes = np.array([1e-16, 1e-12, 1e-8])[None, :, None, None, None]
    g = (single[:, :, None] + sizes * noise).reshape(-1, 3, 3)
    found = viscosity(MODELS[name], g.astype(real), device=device)
    assert found.min() >= 0.0  # false for NaN
    assert found.max() < 4.0


# ------------------------------------------------------------------------------------ where they vanish


@EVERY
def test_pure_shear(name: str) -> None:
    for g in (SHEAR[None], SHEAR.T[None], turned(SHEAR)):
        want = 1.0 if name == "smagorinsky" else 0.0
        np.testing.assert_allclose(viscosity(MODELS[name], g), want, atol=ROUND)


@EVERY
def test_solid_rotation(name: str) -> None:
    """Two models do not vanish; 0.90 for WALE is in Nicoud et al., 2011, table I."""
    want = {"wale": (2 / 3) ** 0.25, "s3pq": 2**-2.5}.get(name, 0.0)
    for g in (ROTATION[None], turned(ROTATION)):
        np.testing.assert_allclose(viscosity(MODELS[name], g), want, atol=ROUND)


@EVERY
def test_two_dimensions(name: str) -> None:
    g = np.zeros((3, 3))
    g[:2, :2] = [[0.7, 1.1], [0.6, -0.7]]
    found = viscosity(MODELS[name], turned(g))
    if name in ("qr", "sigma", "s3pr", "s3qr"):
        assert np.abs(found).max() < ROUND
    else:
        assert found.min() > 0.05


@EVERY
def test_axisymmetric_strain(name: str) -> None:
    """3.46 for Smagorinsky and 0.15 for WALE are in Nicoud et al., 2011, table I."""
    strain = np.diag([2.0, -1.0, -1.0])
    invariants = 6.0, 9.0, 4.0
    known = {"smagorinsky": math.sqrt(12), "wale": 6**1.5 / (6**2.5 + 6**1.25), "qr": 0.0, "sigma": 0.0}
    for sign in (1.0, -1.0):
        if name.startswith("s3"):
            p, (a, b, c) = MODELS[name].p, invariants  # pyright: ignore[reportAttributeAccessIssue]
            want = a**p * b ** -(p + 1) * c ** ((p + 2.5) / 3)
        else:
            want = 2 / 3 if name == "qr" and sign < 0 else known[name]  # r = 2, q = 3
        found = viscosity(MODELS[name], turned(sign * strain))
        np.testing.assert_allclose(found, want, atol=6 * (GRADE if name == "sigma" else ROUND))
    assert (round(known["smagorinsky"], 2), round(known["wale"], 2)) == (3.46, 0.15)


def test_isotropic_contraction() -> None:
    """2.45 for Smagorinsky, nothing for WALE and Sigma: Nicoud et al., 2011, table I."""
    g = -np.eye(3)[None]
    assert viscosity(MODELS["smagorinsky"], g)[0] == pytest.approx(math.sqrt(6), rel=1e-14)
    assert viscosity(MODELS["wale"], g)[0] == pytest.approx(0.0, abs=ROUND)
    assert viscosity(MODELS["sigma"], g)[0] == pytest.approx(0.0, abs=GRADE)


ORDERS = {"smagorinsky": 0, "wale": 3, "qr": 1, "sigma": 3, "s3pq": 3, "s3pr": 3, "s3qr": 3}


@pytest.mark.parametrize(("name", "order"), ORDERS.items())
def test_at_a_wall(name: str, order: int) -> None:
    """``u, w = O(y)`` and ``v = O(y^2)`` without divergence, in axes along the wall and in others."""
    y = np.array([1e-2, 1e-3, 1e-4])[:, None, None]
    a, b, c, d, e, f, h, k = 0.8, 1.3, -0.6, 0.9, -0.7, 1.1, 0.5, -1.2
    first = np.array([[0.0, b, 0.0], [0.0, 0.0, 0.0], [0.0, k, 0.0]])
    second = np.array([[a, 0.0, c], [0.0, 2 * e, 0.0], [h, 0.0, -a - 2 * e]])
    third = np.array([[0.0, 0.0, 0.0], [d, 0.0, f], [0.0, 0.0, 0.0]])
    g = first + y * second + y**2 * third
    axes = np.linalg.qr(np.random.default_rng(4).standard_normal((3, 3)))[0]
    for tensors in (g, axes @ g @ axes.T):
        found = viscosity(MODELS[name], tensors)
        assert found.min() > 0
        slopes = -np.diff(np.log10(found))
        assert slopes[-1] == pytest.approx(order, abs=0.01)


# ---------------------------------------------------------------------------------------- the constants


def test_constants_dissipate_alike() -> None:
    """``C^2 <D S:S>`` is that of Smagorinsky's model for uniformly random tensors without trace."""
    g = free_of_trace(np.random.default_rng(0).uniform(-1.0, 1.0, (100_000, 3, 3)))
    strain = 0.5 * (g + g.swapaxes(1, 2))
    squared = (strain**2).sum(axis=(1, 2))

    def dissipation(model: Model) -> float:
        return float((2.0 * viscosity(model, g) * squared).mean())

    isotropic = dissipation(Smagorinsky(constant=0.165))
    # the constant goes into the dissipation squared
    for variant in ("pq", "pr", "qr"):
        assert math.sqrt(dissipation(S3pqr(variant)) / isotropic) == pytest.approx(1.0, abs=0.005)
    assert math.sqrt(dissipation(Sigma()) / isotropic) == pytest.approx(1.0, abs=0.025)
    assert math.sqrt(dissipation(Wale()) / dissipation(Smagorinsky())) == pytest.approx(1.0, abs=0.07)


def test_constant_of_isotropic_turbulence() -> None:
    """Lilly's: the dissipation of the strain of a Kolmogorov spectrum up to ``pi / Delta``, here integrated."""
    kolmogorov = 1.6
    edges = np.linspace(0.0, math.pi, 20_001)
    middle = 0.5 * (edges[1:] + edges[:-1])
    twice = 2 * kolmogorov * float((middle ** (1 / 3)).sum() * (edges[1] - edges[0]))  # 2 S:S = 2 int k^2 E dk
    assert twice**-0.75 == pytest.approx((2 / (3 * kolmogorov)) ** 0.75 / math.pi, rel=1e-4)
    assert round((2 / (3 * kolmogorov)) ** 0.75 / math.pi, 3) == 0.165


def test_constant_of_qr() -> None:
    assert Qr().constant ** 2 == pytest.approx(3 / (2 * math.pi**2), rel=1e-15)


@pytest.mark.parametrize("variant", ["pq", "pr", "qr"])
def test_less_than_vreman(variant: str) -> None:
    """``3 D <= (Q / P)^(1/2)``, equal for three equal singular values."""
    model = MODELS[f"s3{variant}"]
    g = random_gradients(5000)
    s1, s2, s3 = np.linalg.svd(g, compute_uv=False).T
    vreman = np.sqrt(((s1 * s2) ** 2 + (s2 * s3) ** 2 + (s3 * s1) ** 2) / (s1**2 + s2**2 + s3**2))
    assert (3 * viscosity(model, g) / vreman).max() < 1 + 1e-12
    assert 3 * viscosity(model, np.eye(3)[None])[0] == pytest.approx(1.0, rel=1e-13)
    assert math.sqrt(3 * 0.07) == pytest.approx(0.458, abs=5e-4)


def test_constants_are_checked() -> None:
    for model in (Smagorinsky, Wale, Qr, Sigma):
        for wrong in (-0.1, math.nan, math.inf):
            with pytest.raises(SolverError, match=rf"{model.__name__}: constant is .* not {wrong!r}"):
                model(constant=wrong)
    with pytest.raises(SolverError, match="S3pqr: constant"):
        S3pqr("pq", constant=-1.0)
    with pytest.raises(SolverError, match=r"unknown variant 'pqr'.*\(known: pq, pr, qr\)"):
        S3pqr("pqr")  # pyright: ignore[reportArgumentType]


# ------------------------------------------------------------------------------------------- devices


@pytest.mark.parametrize("device", ["reference", OPENCL])
@EVERY
def test_devices_agree(name: str, device: str) -> None:
    g = np.concatenate([random_gradients(12), np.zeros((1, 3, 3)), SHEAR[None], ROTATION[None]])
    volume = np.linspace(0.5, 2.0, len(g))
    found = viscosity(MODELS[name], g, volume, device)
    np.testing.assert_allclose(found, viscosity(MODELS[name], g, volume), rtol=1e-11, atol=1e-14)
