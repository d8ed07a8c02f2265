"""Lattice Boltzmann against exact solutions: Taylor-Green vortex, shear waves, conservation."""

from __future__ import annotations

from math import log, log2, pi

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import CaseError
from fluxloom.lbm.lattices import D2Q9, D3Q19, Lattice
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom_lab.bench.boxes.lattice import LbmBench, box_from_text
from fluxloom_lab.bench.boxes.lbm_choice import LbmOptions
from fluxloom_lab.exact.taylor_green import lattice_vortices


def build(shape: tuple[int, ...], viscosity: float, lattice: Lattice, dtype: str = "float64") -> LatticeBoltzmann:
    ctx = fl.Context("cpu", threads=2, tuning=False)
    return LatticeBoltzmann(ctx, shape, viscosity=viscosity, lattice=lattice, dtype=dtype)


def decay(n: int) -> tuple[float, float]:
    """Return the errors of velocity and viscosity at ``2 nu k^2 t = 1``; the speed falls with the cell size."""
    viscosity, k = 0.1, 2 * pi / n
    flow = build((n, n), viscosity, D2Q9)
    density, start = lattice_vortices(n, 0.64 / n)
    flow.initialise(density, start)
    half = round(1 / (8 * viscosity * k * k)) * 2
    flow.step(half)
    energy = flow.kinetic_energy()
    flow.step(half)
    exact = start * np.exp(-2 * viscosity * k * k * 2 * half)
    error = np.sqrt(((flow.velocity() - exact) ** 2).sum() / (exact**2).sum())
    rate = log(energy / flow.kinetic_energy()) / half
    return float(error), rate / (4 * k * k) / viscosity - 1


def test_taylor_green_is_of_second_order() -> None:
    """Velocity and viscosity converge with the square of the cell size."""
    errors = [decay(n) for n in (16, 32, 64)]
    for kind in (0, 1):
        coarse, middle, fine = (abs(error[kind]) for error in errors)
        assert 1.8 < log2(coarse / middle) < 2.3
        assert 1.8 < log2(middle / fine) < 2.3
    assert errors[2][0] < 2e-3
    assert abs(errors[2][1]) < 2e-3


@pytest.mark.parametrize(("wave", "along"), [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1), (1, 0)])
def test_shear_waves(wave: int, along: int) -> None:
    """A wave in any direction decays with the viscosity that was asked for."""
    n, viscosity = 48, 0.05
    shape = tuple(n if axis == wave else 3 for axis in range(3))
    flow = build(shape, viscosity, D3Q19)
    places = np.arange(n).reshape([n if axis == wave else 1 for axis in range(3)])
    velocity = np.zeros((*shape, 3))
    velocity[..., along] = 0.02 * np.sin(2 * pi * places / n)
    flow.initialise(1.0, velocity)
    flow.step(50)
    energy = flow.kinetic_energy()
    flow.step(200)
    measured = log(energy / flow.kinetic_energy()) / (2 * (2 * pi / n) ** 2 * 200)
    assert measured == pytest.approx(viscosity, rel=2e-3)
    others = np.delete(flow.velocity(), along, axis=-1)
    assert np.abs(others).max() < 1e-15


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19], ids=lambda lattice: lattice.name)
def test_conservation(lattice: Lattice) -> None:
    """Mass and momentum change by round-off alone."""
    shape = (6, 10, 17)[: lattice.dimensions]
    rng = np.random.default_rng(0)
    flow = build(shape, 0.02, lattice)
    flow.initialise(1 + 0.05 * rng.random(shape), 0.05 * rng.standard_normal((*shape, lattice.dimensions)))
    c = np.column_stack([np.ones(lattice.q), np.array(lattice.velocities)])

    def totals() -> np.ndarray:
        return flow.populations.read().reshape(-1, lattice.q).sum(axis=0) @ c

    before = totals()
    flow.step(100)
    np.testing.assert_allclose(totals(), before, atol=1e-15 * flow.cells)


def test_rest_stays_rest() -> None:
    flow = build((4, 4, 4), 0.1, D3Q19)
    flow.initialise()
    flow.step(10)
    assert not flow.populations.read().any()


def test_single_precision_keeps_slow_flow() -> None:
    """What is stored is the distance from rest: even slow flow keeps its digits."""
    results: list[np.ndarray] = []
    for dtype in ("float64", "float32"):
        flow = build((32, 32), 0.05, D2Q9, dtype)
        flow.initialise(*lattice_vortices(32, 1e-3))
        flow.step(400)
        results.append(flow.velocity())
    assert np.abs(results[1] - results[0]).max() < 3e-6 * np.abs(results[0]).max()


def test_single_precision_has_no_trend() -> None:
    """Uniform motion under a wave loses nothing in thousands of steps."""
    flow = build((16, 16), 0.013, D2Q9, "float32")
    velocity = np.full((16, 16, 2), 0.02)
    velocity[..., 1] += 1e-3 * np.sin(2 * pi * np.arange(16) / 16)[:, None]
    flow.initialise(1.0, velocity)
    flow.step(10_000)
    np.testing.assert_allclose(flow.velocity().mean(axis=(0, 1), dtype=float), 0.02, rtol=1e-5)
    assert flow.density().mean() == pytest.approx(1.0, abs=1e-6)


def test_benchmark() -> None:
    """The benchmark measures the viscosity that it asked for."""
    options = LbmOptions(device="cpu", threads=1, cells="6,32,4", iterations=50, rounds=2, precision="float64")
    said: list[str] = []
    record = LbmBench().run(options, said.append)
    metrics = record.metrics
    assert (record.model, record.precision, record.sizes) == ("D3Q19 BGK pull", "float64", {"cells": 768})
    assert metrics["shape"] == [4, 32, 6]
    assert abs(metrics["viscosity_error"]) < 5e-3
    assert metrics["bytes_per_cell"] == 304
    assert metrics["mlups"] == pytest.approx(768e-6 * 50 / record.seconds)
    assert metrics["percent_of_copy"] > 0
    assert any("round 2/2" in line for line in said)


def test_size_of_the_benchmark() -> None:
    assert box_from_text("", 128) == (128, 128, 128)
    assert box_from_text("64", 128) == (64, 64, 64)
    assert box_from_text("8, 16,32", 128) == (32, 16, 8)
    for wrong in ("720k", "0", "4,4", "4,4,-4"):
        with pytest.raises(CaseError, match="--cells"):
            box_from_text(wrong, 128)
    with pytest.raises(CaseError, match="did you mean 'float32'"):
        LbmBench().run(LbmOptions(cells="4", precision="flaot32"), print)
