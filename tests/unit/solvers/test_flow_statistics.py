"""Running averages against those of all samples at once; profiles."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.control_volumes import control_volumes
from fluxloom.fv.incompressible_boundary import NoSlip
from fluxloom.fv.scalar_sides import Adiabatic, FixedValue
from fluxloom.mesh.generate import box2d, box3d
from fluxloom.solvers.flow_scalar import Scalar
from fluxloom.solvers.flow_statistics import Statistics
from fluxloom.solvers.incompressible import Incompressible

STEPS = (0.01, 0.02, 0.015, 0.03, 0.01, 0.005)


def swirl(x: np.ndarray) -> np.ndarray:
    found = np.zeros(x.shape)
    found[:, 0], found[:, 1] = np.sin(3 * x[:, 1]) + 5.0, np.cos(5 * x[:, 0])
    return found


def channel(ctx: fl.Context, d: int = 3) -> Incompressible:
    mesh = box3d(4, 3, 3, perturb=0.1, seed=2) if d == 3 else box2d(5, 4)
    periodic = [("xmin", "xmax")] + ([("zmin", "zmax")] if d == 3 else [])
    scalar = Scalar("T", 0.1, {"ymin": FixedValue(1.0), "ymax": Adiabatic()}, initial=lambda x: np.sin(4 * x[:, 0]),
                    bounded=False)  # fmt: skip
    flow = Incompressible(
        ctx, control_volumes(mesh, periodic), 0.02, {"ymin": NoSlip(), "ymax": NoSlip((2.0, *(0.0,) * (d - 1)))},
        scalars=[scalar],
    )  # fmt: skip
    flow.initialise(swirl)
    return flow


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", tuning=False, threads=1)


def sampled(flow: Incompressible, statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
    """Make steps; return the samples ``(u, p, T)`` that count, and their weights."""
    found, weights = [], []
    for dt in STEPS:
        flow.step(dt)
        if statistics.sample():
            theta = flow.scalars["T"].values()
            found.append(np.concatenate([flow.velocity(), flow.pressure()[:, None], theta[:, None]], axis=1))
            weights.append(dt)
    return np.array(found), np.array(weights)


@pytest.mark.parametrize("d", [2, 3])
def test_averages_of_all_samples(ctx: fl.Context, d: int) -> None:
    flow = channel(ctx, d)
    statistics = Statistics(flow, start=0.02)
    found, weights = sampled(flow, statistics)
    assert statistics.samples == len(weights) == 5
    assert statistics.weight == pytest.approx(weights.sum())
    mean = np.average(found, axis=0, weights=weights)
    covariance = np.average(np.einsum("sni,snk->snik", found - mean, found - mean), axis=0, weights=weights)
    assert np.allclose(statistics.velocity(), mean[:, :d], rtol=1e-12, atol=1e-12)
    assert np.allclose(statistics.pressure(), mean[:, d], rtol=1e-11, atol=1e-11)
    assert np.allclose(statistics.stress(), covariance[:, :d, :d], rtol=1e-9, atol=1e-13)
    assert np.allclose(statistics.rms() ** 2, np.einsum("nii->ni", covariance)[:, :d], rtol=1e-9, atol=1e-13)
    assert np.allclose(statistics.pressure_variance(), covariance[:, d, d], rtol=1e-9)
    scalar = statistics.scalar("T")
    assert np.allclose(scalar.mean, mean[:, d + 1], rtol=1e-12)
    assert np.allclose(scalar.variance, covariance[:, d + 1, d + 1], rtol=1e-9, atol=1e-14)
    assert np.allclose(scalar.flux, covariance[:, d + 1, :d], rtol=1e-9, atol=1e-13)


def test_profile_over_what_is_alike(ctx: fl.Context) -> None:
    """Over y of a regular mesh: the averages of all cells and samples at that height."""
    flow = channel(ctx, 2)
    statistics = Statistics(flow)
    found, weights = sampled(flow, statistics)
    profile = statistics.profile("y")
    cv = flow.volumes
    assert np.allclose(profile.coordinate, (np.arange(4) + 0.5) / 4)
    assert np.allclose(profile.volume, 0.25)
    for k, y in enumerate(profile.coordinate):
        row = found[:, np.abs(cv.centres[: cv.cells, 1] - y) < 1e-9].reshape(-1, 4)
        weight = np.repeat(weights, 5)
        mean = np.average(row, axis=0, weights=weight)
        covariance = np.average(np.einsum("si,sk->sik", row - mean, row - mean), axis=0, weights=weight)
        assert np.allclose(profile.velocity[k], mean[:2], rtol=1e-11, atol=1e-12)
        assert profile.pressure[k] == pytest.approx(mean[2], abs=1e-11)
        assert np.allclose(profile.stress[k], covariance[:2, :2], rtol=1e-9)
        assert np.allclose(profile.rms[k] ** 2, np.diag(covariance)[:2], rtol=1e-9)
        assert profile.pressure_variance[k] == pytest.approx(covariance[2, 2], rel=1e-9)
        assert profile.scalars["T"].mean[k] == pytest.approx(mean[3])
        assert profile.scalars["T"].variance[k] == pytest.approx(covariance[3, 3])
        assert np.allclose(profile.scalars["T"].flux[k], covariance[3, :2], rtol=1e-9, atol=1e-12)
    whole = statistics.profile("x", bins=1)
    assert whole.coordinate == pytest.approx([0.5])
    assert np.allclose(whole.velocity[0], profile.velocity.mean(axis=0))


def test_reset_and_resume(ctx: fl.Context) -> None:
    flow = channel(ctx)
    whole, parts = Statistics(flow), Statistics(flow)
    flow.step(0.01)
    parts.sample()
    parts.reset()
    for k, dt in enumerate(STEPS):
        flow.step(dt)
        whole.sample()
        if k == 3:
            other = Statistics(flow)
            other.resume(parts.weight, parts.samples)
            for mine, theirs in ((other.mean, parts.mean), (other.moments, parts.moments),
                                 (other.scalars["T"], parts.scalars["T"])):  # fmt: skip
                mine.write(theirs.read())
            parts = other
        parts.sample()
    assert parts.samples == whole.samples
    assert np.array_equal(parts.velocity(), whole.velocity())
    assert np.array_equal(parts.stress(), whole.stress())
    assert np.array_equal(parts.scalar("T").flux, whole.scalar("T").flux)


def test_wrong_input(ctx: fl.Context) -> None:
    flow = channel(ctx)
    statistics = Statistics(flow)
    with pytest.raises(SolverError, match="make a step before, or give a weight"):
        statistics.sample()
    with pytest.raises(SolverError, match="a positive number is wanted"):
        statistics.sample(-1.0)
    with pytest.raises(SolverError, match="no sample yet"):
        statistics.profile("y")
    assert statistics.sample(2.0)
    with pytest.raises(SolverError, match="an axis of x, y, z is wanted, not 'r'"):
        statistics.profile("r")
    with pytest.raises(SolverError, match="bins: a number of at least 1"):
        statistics.profile("y", bins=0)
    with pytest.raises(SolverError, match="no scalar 'S'"):
        statistics.scalar("S")
    with pytest.raises(SolverError, match="start: a finite time"):
        Statistics(flow, start=np.nan)
    with pytest.raises(SolverError, match="weight and samples of at least 0"):
        statistics.resume(-1.0, 2)
