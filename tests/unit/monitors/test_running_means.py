"""Running averages against those of all samples at once; profiles; what is averaged of each flow."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.fv.incompressible.boundary import NoSlip
from fluxloom.fv.incompressible.scalar_boundary import Adiabatic, FixedValue
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.monitors.running_means import RunningMeans
from fluxloom.solvers.incompressible.scalar import Scalar

STEPS = (0.01, 0.02, 0.015, 0.03, 0.01, 0.005)


def swirl(x: np.ndarray) -> np.ndarray:
    found = np.zeros(x.shape)
    found[:, 0], found[:, 1] = np.sin(3 * x[:, 1]) + 5.0, np.cos(5 * x[:, 0])
    return found


def channel(ctx: fl.Context, d: int = 3) -> fl.Incompressible:
    mesh = box3d(4, 3, 3, perturb=0.1, seed=2) if d == 3 else box2d(5, 4)
    periodic = [("xmin", "xmax")] + ([("zmin", "zmax")] if d == 3 else [])
    scalar = Scalar("T", 0.1, {"ymin": FixedValue(1.0), "ymax": Adiabatic()}, initial=lambda x: np.sin(4 * x[:, 0]),
                    bounded=False)  # fmt: skip
    return fl.Incompressible(
        fl.Domain(mesh, periodic), ctx, viscosity=0.02, start=swirl, scalars=[scalar],
        boundaries={"ymin": NoSlip(), "ymax": NoSlip((2.0, *(0.0,) * (d - 1)))},
    )  # fmt: skip


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", tuning=False, threads=1)


def means_of(flow: fl.Incompressible) -> RunningMeans:
    return RunningMeans(flow.averaged())


def sampled(whole: fl.Incompressible, means: RunningMeans) -> tuple[np.ndarray, np.ndarray]:
    """Make steps; return the samples ``(u, p, T)``, and their weights."""
    flow, found = whole.solver, []
    for dt in STEPS:
        flow.step(dt)
        means.sample(dt)
        theta = flow.scalars["T"].values()
        found.append(np.concatenate([flow.velocity(), flow.pressure()[:, None], theta[:, None]], axis=1))
    return np.array(found), np.array(STEPS)


@pytest.mark.parametrize("d", [2, 3])
def test_averages_of_all_samples(ctx: fl.Context, d: int) -> None:
    flow = channel(ctx, d)
    means = means_of(flow)
    found, weights = sampled(flow, means)
    assert means.samples == len(weights)
    assert means.weight == pytest.approx(weights.sum())
    mean = np.average(found, axis=0, weights=weights)
    covariance = np.average(np.einsum("sni,snk->snik", found - mean, found - mean), axis=0, weights=weights)
    assert np.allclose(means.velocity(), mean[:, :d], rtol=1e-12, atol=1e-12)
    assert np.allclose(means.mean("p"), mean[:, d], rtol=1e-11, atol=1e-11)
    assert np.allclose(means.stress(), covariance[:, :d, :d], rtol=1e-9, atol=1e-13)
    assert np.allclose(means.rms() ** 2, np.einsum("nii->ni", covariance)[:, :d], rtol=1e-9, atol=1e-13)
    assert np.allclose(means.variance("p"), covariance[:, d, d], rtol=1e-9)
    assert np.allclose(means.mean("T"), mean[:, d + 1], rtol=1e-12)
    assert np.allclose(means.variance("T"), covariance[:, d + 1, d + 1], rtol=1e-9, atol=1e-14)
    assert np.allclose(means.flux("T"), covariance[:, d + 1, :d], rtol=1e-9, atol=1e-13)


def test_profile_over_what_is_alike(ctx: fl.Context) -> None:
    """Over y of a regular mesh: the averages of all cells and samples at that height."""
    flow = channel(ctx, 2)
    means = means_of(flow)
    found, weights = sampled(flow, means)
    profile = means.profile("y")
    cv = flow.solver.volumes
    assert np.allclose(profile.coordinate, (np.arange(4) + 0.5) / 4)
    assert np.allclose(profile.volume, 0.25)
    for k, y in enumerate(profile.coordinate):
        row = found[:, np.abs(cv.centres[: cv.cells, 1] - y) < 1e-9].reshape(-1, 4)
        weight = np.repeat(weights, 5)
        mean = np.average(row, axis=0, weights=weight)
        covariance = np.average(np.einsum("si,sk->sik", row - mean, row - mean), axis=0, weights=weight)
        assert [profile["u"][k], profile["v"][k]] == pytest.approx(mean[:2], rel=1e-11, abs=1e-12)
        assert profile["p"][k] == pytest.approx(mean[2], abs=1e-11)
        assert profile["uv"][k] == pytest.approx(covariance[0, 1], rel=1e-9)
        rms = [profile[f"{name}_rms"][k] ** 2 for name in ("u", "v", "p", "T")]
        assert rms == pytest.approx(np.diag(covariance), rel=1e-9)
        assert profile["T"][k] == pytest.approx(mean[3])
        assert [profile["u_T"][k], profile["v_T"][k]] == pytest.approx(covariance[3, :2], rel=1e-9, abs=1e-12)
    whole = means.profile("x", bins=1)
    assert whole.coordinate == pytest.approx([0.5])
    assert whole["u"][0] == pytest.approx(profile["u"].mean())


def test_reset(ctx: fl.Context) -> None:
    flow = channel(ctx)
    whole, parts = means_of(flow), means_of(flow)
    flow.solver.step(0.01)
    parts.sample()
    parts.reset()
    for dt in STEPS:
        flow.solver.step(dt)
        for means in (whole, parts):
            means.sample(dt)
    assert parts.samples == whole.samples
    assert np.array_equal(parts.velocity(), whole.velocity())
    assert np.array_equal(parts.stress(), whole.stress())
    assert np.array_equal(parts.flux("T"), whole.flux("T"))


def test_fields_have_names_and_are_found_when_they_are_asked_for(ctx: fl.Context) -> None:
    flow = channel(ctx, 2)
    means = means_of(flow)
    found, weights = sampled(flow, means)
    fields = means.quantities()
    names = ("u", "v", "p", "T")
    assert list(fields) == [*(f"{name}_mean" for name in names), *(f"{name}_rms" for name in names), "uv", "u_T", "v_T"]
    mean = np.average(found, axis=0, weights=weights)
    assert np.allclose(fields["T_mean"].values(), mean[:, 3])
    product = np.average((found - mean)[:, :, 0] * (found - mean)[:, :, 3], axis=0, weights=weights)
    assert np.allclose(fields["u_T"].values(), product, atol=1e-13)


def test_wrong_input(ctx: fl.Context) -> None:
    flow = channel(ctx)
    means = means_of(flow)
    with pytest.raises(SolverError, match="a sample of weight -1"):
        means.sample(-1.0)
    with pytest.raises(SolverError, match="no sample yet"):
        means.profile("y")
    means.sample(2.0)
    with pytest.raises(SolverError, match="an axis of x, y, z is wanted, not 'r'"):
        means.profile("r")
    with pytest.raises(SolverError, match="bins: a number of at least 1"):
        means.profile("y", bins=-1)
