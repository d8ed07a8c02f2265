"""Steps in a periodic box: schemes of streaming agree; viscosity, order of accuracy, sums in single precision."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.lbm.collisions.operators import BGK, MRT, TRT, CentralMoments, Collision, Cumulant, Regularised
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from tests.lattice_periodic_box import PeriodicBox

SCHEMES = ("pull", "push", "three-phase", "in-place")
OPERATORS: tuple[Collision, ...] = (BGK(), TRT(), MRT(), Regularised(), CentralMoments(corrected=True), Cumulant())

operators = pytest.mark.parametrize("collision", OPERATORS, ids=lambda collision: collision.type_name)
long = pytest.mark.long


def random_start(box: PeriodicBox) -> None:
    rng, shape = np.random.default_rng(0), box.grid.shape
    box.start(1 + 0.02 * rng.standard_normal(shape), 0.05 * rng.standard_normal((*shape, box.lattice.dimensions)))


@pytest.mark.parametrize(
    ("lattice", "collision", "kind"),
    [
        (D2Q9, BGK(), "field"),
        pytest.param(D2Q9, BGK(), "uniform", marks=long),
        pytest.param(D2Q9, Cumulant(), "uniform", marks=long),
        pytest.param(D3Q19, TRT(smagorinsky=0.1), "field", marks=long),
        pytest.param(D3Q27, MRT(), "none", marks=long),
        pytest.param(D3Q27, CentralMoments(), "field", marks=long),
        pytest.param(D3Q27, Cumulant(), "uniform", marks=long),
    ],
)
def test_schemes_agree(lattice: Lattice, collision: Collision, kind: str) -> None:
    """Pull, push, three phases and in place give the same flow, after even and odd counts of steps."""
    shape, axes = (5, 4, 6)[-lattice.dimensions :], lattice.dimensions
    field = 1e-3 * np.random.default_rng(1).standard_normal((*shape, axes))
    force = {"none": (), "uniform": (1e-3, 2e-3, 3e-3)[:axes], "field": field}[kind]
    boxes = [PeriodicBox(lattice, shape, collision, 0.02, scheme=name, force=force) for name in SCHEMES]
    for box in boxes:
        random_start(box)
    momentum = boxes[0].moments()[1]
    for count in (1, 1, 3):
        for box in boxes:
            box.step(count)
            np.testing.assert_allclose(box.departed(), boxes[0].departed(), atol=1e-15)
    gained = (boxes[0].moments()[1] - momentum).sum(axis=tuple(range(axes)))
    acting = np.broadcast_to(force if len(force) else 0.0, (*shape, axes)).reshape(-1, axes)
    np.testing.assert_allclose(gained, 5 * acting.sum(axis=0), atol=1e-14)


def viscosity_error(
    lattice: Lattice, collision: Collision, n: int, wave: tuple[int, ...], mean: tuple[float, ...] = ()
) -> float:
    """Return the relative error of the viscosity, from the decay of a shear wave carried by a mean flow."""
    nu, steps, axes = 0.05, n * n // 5, lattice.dimensions
    k = 2 * np.pi / n * np.array(wave)
    across = np.zeros(axes)
    across[:2] = (-wave[1], wave[0]) if any(wave[:2]) else (1, 0)
    across /= np.linalg.norm(across)
    shape = tuple(n if w else 1 for w in wave)
    turns = np.moveaxis(np.indices(shape), 0, -1) @ k
    box = PeriodicBox(lattice, shape, collision, nu)
    box.start(1.0, np.array(mean or (0.0,) * axes) + 1e-3 * np.cos(turns)[..., None] * across)
    found = []
    for _ in range(2):
        box.step(steps)
        rho, momentum = box.moments()
        found.append((np.exp(-1j * turns) * ((momentum / rho[..., None]) @ across)).mean())
    return float(-np.log(found[1] / found[0]).real / steps / (k @ k) / nu - 1)


@operators
@pytest.mark.parametrize("wave", [(1, 0), (0, 1), (1, 1)])
def test_viscosity(collision: Collision, wave: tuple[int, int]) -> None:
    """The error falls with the square of the cells across a wave."""
    coarse, fine = (abs(viscosity_error(D2Q9, collision, n, wave)) for n in (16, 32))
    assert fine < 4e-3
    assert 3.7 < coarse / fine < 4.3 or coarse < 4e-4


@long
@pytest.mark.parametrize("lattice", [D3Q19, D3Q27], ids=lambda lattice: lattice.name)
@operators
@pytest.mark.parametrize("wave", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)])
def test_viscosity_in_space(lattice: Lattice, collision: Collision, wave: tuple[int, ...]) -> None:
    if lattice is D3Q19 and isinstance(collision, CentralMoments | Cumulant):
        return
    coarse, fine = (abs(viscosity_error(lattice, collision, n, wave)) for n in (12, 24))
    assert fine < 6e-3
    assert coarse / fine > 3.5 or coarse < 4e-4


def test_viscosity_in_a_moving_frame() -> None:
    """Where ``c^3 = c`` is taken out, a mean flow does not change the viscosity; BGK shows how it would."""
    for wave, mean in (((1, 0), (0.1, 0.0)), ((1, 1), (0.1, 0.1))):
        for collision in (CentralMoments(corrected=True), Cumulant()):
            assert abs(viscosity_error(D2Q9, collision, 32, wave, mean)) < 2e-3
        assert viscosity_error(D2Q9, BGK(), 32, wave, mean) < -0.02


@operators
def test_taylor_green_converges(collision: Collision) -> None:
    """With diffusive scaling, halved cells quarter the error."""
    errors = []
    for n in (16, 32):
        nu, speed, k = 0.05, 0.64 / n, 2 * np.pi / n
        steps = n * n // 8
        y, x = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
        u = np.stack([np.sin(k * y) * np.cos(k * x), -np.cos(k * y) * np.sin(k * x)], axis=-1)
        pressure = 0.25 * (np.cos(2 * k * x) + np.cos(2 * k * y))
        box = PeriodicBox(D2Q9, (n, n), collision, nu)
        box.start(1 - 3 * speed**2 * -pressure, speed * u)
        box.step(steps)
        rho, momentum = box.moments()
        exact = speed * np.exp(-2 * nu * k * k * steps) * u
        errors.append(float(np.abs(momentum / rho[..., None] - exact).max() / speed))
    assert errors[1] < 0.01
    assert errors[0] / errors[1] > 3.3


@pytest.mark.parametrize(
    ("lattice", "collision"),
    [(D2Q9, BGK()), (D2Q9, MRT(smagorinsky=0.1)), (D2Q9, Cumulant()), pytest.param(D3Q27, Cumulant(), marks=long)],
)
def test_no_trend_in_single_precision(lattice: Lattice, collision: Collision) -> None:
    """Mass and momentum of thousands of steps stay within rounding that does not add up."""
    shape, mean = (8, 12, 8)[-lattice.dimensions :], (0.05, 0.04, -0.03)[: lattice.dimensions]
    box = PeriodicBox(lattice, shape, collision, 0.02, dtype="float32")
    box.start(1.01, np.array(mean))
    sums = [np.append(*(part.mean(axis=tuple(range(lattice.dimensions))) for part in box.moments()))]
    for _ in range(2):
        box.step(2000)
        sums.append(np.append(*(part.mean(axis=tuple(range(lattice.dimensions))) for part in box.moments())))
    np.testing.assert_allclose(sums[2], sums[0], atol=2e-7)


def test_half_precision() -> None:
    """Stored in 11 digits, a flow is right to some of them."""
    force = (1e-5, 0.0)
    runs = [PeriodicBox(D2Q9, (12, 10), BGK(), 0.05, dtype=dtype, force=force) for dtype in ("float16", "float64")]
    for box in runs:
        random_start(box)
        box.step(40)
    half, double = (box.moments() for box in runs)
    np.testing.assert_allclose(half[0], double[0], atol=2e-4)
    np.testing.assert_allclose(half[1], double[1], atol=2e-4)
    assert np.abs(double[1]).max() > 2e-3


def test_start_has_its_moments() -> None:
    """With a uniform force the velocity at the start is the one given, half of the force taken off."""
    force = np.array([2e-3, 1e-3])
    for scheme in SCHEMES:
        box = PeriodicBox(D2Q9, (4, 5), BGK(), 0.1, scheme=scheme, force=tuple(force))
        rng = np.random.default_rng(2)
        rho, u = 1 + 0.1 * rng.random((4, 5)), 0.1 * rng.standard_normal((4, 5, 2))
        box.start(rho, u)
        got, momentum = box.moments()
        np.testing.assert_allclose(got, rho, rtol=1e-14)
        np.testing.assert_allclose((momentum - 0.5 * force) / got[..., None], u, atol=1e-15)
