"""Collision kernels of one cell against the textbook: formulas, conservation, symmetry, rounding, mistakes."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.kernel.ir import ArgShape, Kind
from fluxloom.lbm.collisions.operators import BGK, MRT, TRT, CentralMoments, Collision, Cumulant, Regularised
from fluxloom.lbm.collisions.rates import Rates, relaxation
from fluxloom.lbm.lattices import D2Q9, D3Q19, D3Q27, Lattice
from fluxloom.lbm.streaming.steps import Constants, pull
from fluxloom.lbm.units import storage_unit
from tests import lattice_collision_oracle as oracle

ALL = (D2Q9, D3Q19, D3Q27)
EVERYWHERE: tuple[Collision, ...] = (
    BGK(), TRT(), MRT(), MRT(None, None, 1.3, 0.3), MRT(1.3, None, None, 0.3), Regularised(), Regularised(0.3),
    BGK(0.3), TRT(smagorinsky=0.3),
)  # fmt: skip
PRODUCTS: tuple[Collision, ...] = (
    CentralMoments(None, 1.2, 1.3), CentralMoments(corrected=True, smagorinsky=0.3),
    Cumulant(), Cumulant(None, 1.2, 1.3), Cumulant(None, smagorinsky=0.3),
)  # fmt: skip
CASES = [(lattice, c) for lattice in ALL for c in (*EVERYWHERE, *(PRODUCTS if lattice is not D3Q19 else ()))]
VISCOSITY = 0.05
FLOPS = {"D2Q9": (75, 94), "D3Q19": (152, 182), "D3Q27": (232, 274)}  # of BGK: without a force, with a uniform one


def cases(first: str, second: str) -> pytest.MarkDecorator:
    """Every case with the first kind of force; with the second one in the plane, in space when long tests run."""
    long = [pytest.mark.long]
    every = [
        pytest.param(lattice, collision, kind, marks=long if kind == second and lattice is not D2Q9 else [])
        for lattice, collision in CASES
        for kind in (first, second)
    ]
    return pytest.mark.parametrize(
        ("lattice", "collision", "kind"), every,
        ids=lambda case: getattr(case, "name", None) or getattr(case, "type_name", None),
    )


def collide(
    lattice: Lattice, collision: Collision, g: np.ndarray, force: np.ndarray, kind: str, dtype: str = "float64"
) -> np.ndarray:
    """Return what the kernel, called as Python, makes of populations less the weights."""
    f, out = np.full((lattice.q, lattice.q), np.nan), np.empty(lattice.q)
    np.fill_diagonal(f, g)
    constants = Constants(lattice, collision, VISCOSITY, dtype, tuple(force) if kind == "uniform" else None)
    pull(f, force if kind == "field" else None, out, **constants.of(pull))
    return out


def textbook(lattice: Lattice, collision: Collision, f: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Return the populations after collision, by the plain formulas."""
    rates = collision.rates(VISCOSITY)
    if collision.has_subgrid:
        rates = followed(lattice, collision, rates, f, force)
    if isinstance(collision, BGK | TRT):
        return oracle.two_rates(lattice, f, rates, force)
    if isinstance(collision, MRT | Regularised):
        return oracle.by_orders(lattice, f, rates, force)
    if isinstance(collision, CentralMoments):
        return oracle.central(lattice, f, rates, force, collision.corrected)
    return oracle.cumulant(lattice, f, rates, force)


def followed(lattice: Lattice, collision: Any, rates: Rates, f: np.ndarray, force: np.ndarray) -> Rates:
    """Return the rates with the eddy viscosity of a cell."""
    rate = float(oracle.eddy_rate(lattice, f, rates.shear, collision.smagorinsky, force))
    assert rate < 0.99 * rates.shear
    if isinstance(collision, BGK):
        return Rates(rate, rate, rate, rate)
    if isinstance(collision, TRT):
        return Rates(rate, rate, 1 / (collision.magic / (1 / rate - 0.5) + 0.5), rate)
    if isinstance(collision, Regularised):
        return replace(rates, shear=rate, bulk=rate)
    new = {name: rate for name in ("bulk", "odd", "even") if getattr(collision, name) is None}
    return replace(rates, shear=rate, **new)


@cases("field", "none")
def test_formula(lattice: Lattice, collision: Collision, kind: str) -> None:
    """Far from equilibrium the kernel is the textbook's formula; mass stays, momentum gains the force."""
    rng = np.random.default_rng(3)
    c, w = oracle.tables(lattice)
    g, force = 0.02 * rng.standard_normal(lattice.q), 0.01 * rng.standard_normal(lattice.dimensions) * (kind != "none")
    out = collide(lattice, collision, g, force, kind)
    np.testing.assert_allclose(out, textbook(lattice, collision, g + w, force) - w, atol=1e-15)
    assert out.sum() == pytest.approx(g.sum(), abs=2e-16)
    np.testing.assert_allclose(out @ c, g @ c + force, atol=2e-16)
    assert np.abs(out - g).max() > 1e-3
    if kind == "field" and lattice is D2Q9:
        np.testing.assert_array_equal(collide(lattice, collision, g, force, "uniform"), out)


@cases("field", "uniform")
def test_rotations_and_reflections(lattice: Lattice, collision: Collision, kind: str) -> None:
    """Turned populations give turned results, for turns that make all others."""
    rng = np.random.default_rng(4)
    axes = lattice.dimensions
    g, force = 0.02 * rng.standard_normal(lattice.q), 0.01 * rng.standard_normal(axes)
    out = collide(lattice, collision, g, force, kind)
    cycle, mirror = np.roll(np.eye(axes, dtype=int), 1, axis=0), np.diag([-1] + [1] * (axes - 1))
    swap = np.eye(axes, dtype=int)[[1, 0, *range(2, axes)]]
    for turn in (cycle, mirror, swap):
        to = [lattice.velocities.index(tuple(int(n) for n in turn @ np.array(v))) for v in lattice.velocities]
        turned, expected = np.empty_like(g), np.empty_like(g)
        turned[to], expected[to] = g, out
        np.testing.assert_allclose(collide(lattice, collision, turned, turn @ force, kind), expected, atol=1e-15)


@cases("field", "none")
def test_equilibrium_stays(lattice: Lattice, collision: Collision, kind: str) -> None:
    """Equilibrium is a fixed point: that of second order, or of central moments the full one."""
    rho, u = np.array(1.02), np.array([0.03, -0.05, 0.02])[: lattice.dimensions]
    _, w = oracle.tables(lattice)
    if isinstance(collision, CentralMoments | Cumulant):
        f = np.linalg.solve(oracle.central_matrix(lattice, u), rho * oracle.maxwellian(lattice, 0 * u))
    else:
        f = oracle.equilibrium(lattice, rho, u)
    np.testing.assert_allclose(collide(lattice, collision, f - w, 0 * u, kind), f - w, atol=1e-15)


@pytest.mark.parametrize("lattice", ALL, ids=lambda lattice: lattice.name)
def test_operators_that_agree(lattice: Lattice) -> None:
    g = 0.02 * np.random.default_rng(5).standard_normal(lattice.q)
    force = np.full(lattice.dimensions, 0.01)
    rate = BGK().rates(VISCOSITY).shear
    bgk, trt = (collide(lattice, c, g, force, "uniform") for c in (BGK(), TRT()))
    equal: list[tuple[Collision, np.ndarray]] = [
        (TRT((1 / rate - 0.5) ** 2), bgk),
        (MRT(None, None, None), bgk),
        (MRT(None, TRT().rates(VISCOSITY).odd, None), trt),
        (BGK(1e-9), bgk),
    ]
    for collision, expected in equal:
        np.testing.assert_allclose(collide(lattice, collision, g, force, "uniform"), expected, atol=1e-15)
    assert np.abs(bgk - trt).max() > 1e-3


@cases("field", "uniform")
def test_unit_of_storage(lattice: Lattice, collision: Collision, kind: str) -> None:
    """Populations in another unit give the same ones in that unit, to the bit: the unit is a power of two."""
    g = 0.02 * np.random.default_rng(6).standard_normal(lattice.q)
    force = (0.01, 0.02, -0.01)[: lattice.dimensions]
    unit = storage_unit("float16")
    assert (unit, storage_unit("float32"), storage_unit("float64")) == (2.0**15, 1.0, 1.0)
    assert np.isfinite(np.float16(unit))
    results = []
    for dtype, scale in (("float32", 1.0), ("float16", unit)):
        f, out = np.diag(scale * g), np.empty(lattice.q)
        constants = Constants(lattice, collision, VISCOSITY, dtype, force if kind == "uniform" else None)
        pull(f, np.array(force) if kind == "field" else None, out, **constants.of(pull))
        results.append(out / scale)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("lattice", ALL, ids=lambda lattice: lattice.name)
@pytest.mark.parametrize("viscosity", [1e-5, 0.02, 1 / 6, 5.0])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_constants_lose_nothing(lattice: Lattice, viscosity: float, dtype: str) -> None:
    """The sums on which mass and momentum depend are one, and all numbers are exact in the arithmetic."""
    found = asdict(relaxation(lattice, TRT(smagorinsky=0.1).rates(viscosity), dtype))
    count, single = round(1 / lattice.weights[-1]), dtype != "float64"
    values = {name: Fraction(value) for name, value in found.items()}
    assert 2 * values["half_odd"] + Fraction(count, 3) * values["odd_gain"] == 1
    mass = 2 * values["half_even"] + count * values["even_gain"] + values["rest_gain"] - 1
    assert abs(mass) < (1e-13 if single else 1e-30)
    if single:
        assert all(float(np.float32(value)) == value for value in found.values())
    assert 1 - found["shear_kept"] == pytest.approx(BGK().rates(viscosity).shear, abs=1e-7 if single else 1e-15)
    assert 1 - 2 * found["half_odd"] == pytest.approx(TRT().rates(viscosity).odd, abs=4e-7 if single else 1e-15)


@pytest.mark.parametrize("lattice", ALL, ids=lambda lattice: lattice.name)
def test_few_operations(lattice: Lattice) -> None:
    """BGK and TRT in pairs, every access constant: each population has a register on every device."""
    q = lattice.q
    shapes = {"f": ArgShape(q, (q,), Kind.REAL), "out": ArgShape(None, (q,), Kind.REAL)}
    for collision in (BGK(), TRT()):
        for force, flops in zip((None, (0.0,) * lattice.dimensions), FLOPS[lattice.name], strict=True):
            constants = Constants(lattice, collision, VISCOSITY, "float64", force).of(pull)
            lowered = pull.leaving_out(["field"]).lower(shapes, constants)
            assert (lowered.flops, lowered.arrays) == (flops, ())


def test_a_sweep_compiles_once() -> None:
    """Numbers of an operator are no part of the code; whether there is a model, and whether anything is kept, are."""
    same: list[tuple[Collision, ...]] = [
        (BGK(), TRT(), TRT(0.25)),
        (BGK(0.1), BGK(0.2)),
        (TRT(0.1, 0.1), TRT(0.2, 0.2)),
        (MRT(), MRT(bulk=1.3, odd=1.5)),
        (Cumulant(), Cumulant(bulk=1.1)),
        (Cumulant(odd=1.2), Cumulant(odd=1.3)),
    ]
    shapes = {"f": ArgShape(9, (9,), Kind.REAL), "out": ArgShape(None, (9,), Kind.REAL)}
    kernel, found = pull.leaving_out(["field"]), []
    for operators in same:
        every = [kernel.lower(shapes, Constants(D2Q9, c, VISCOSITY, "float64").of(pull)).digest for c in operators]
        assert len(set(every)) == 1
        found.append(every[0])
    assert len(set(found)) == len(same)


def test_mistakes() -> None:
    for collision in (CentralMoments(), Cumulant()):
        with pytest.raises(SolverError, match="no D3Q19; it needs all products"):
            Constants(D3Q19, collision, 0.1, "float32")
    with pytest.raises(SolverError, match=r"the rate odd is between 0 and 2, not 2\.5"):
        MRT(odd=2.5)
    with pytest.raises(SolverError, match="magic parameter must be positive"):
        TRT(magic=0.0)
    with pytest.raises(SolverError, match=r"Smagorinsky constant is in \[0, 1\), not -0.1"):
        BGK(-0.1)
    with pytest.raises(SolverError, match="viscosity must be positive"):
        Constants(D2Q9, BGK(), 0.0, "float32")
    with pytest.raises(SolverError, match="the force needs 2 finite components"):
        Constants(D2Q9, BGK(), 0.1, "float32", (1.0,))


@pytest.mark.parametrize("rate", [0.0, 2.0, -1.0, math.inf])
def test_rates_are_between_zero_and_two(rate: float) -> None:
    with pytest.raises(SolverError, match="mrt: the rate odd is between 0 and 2"):
        MRT(odd=rate)
