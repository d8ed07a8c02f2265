"""Probes and averages of compressible flow: every device finds what NumPy finds."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.compressible.flow import Compressible
from fluxloom.fv.compressible.boundary import SlipWall
from fluxloom.fv.flow_samples import locate
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import box2d
from fluxloom.monitors.running_means import RunningMeans
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.monitors import StateProbes


def flow_on(device: str) -> CompressibleFlow:
    mesh = box2d(5, 4, kind="triangle", perturb=0.2)
    context = Context(device, threads=1, tuning=False) if device == "cpu" else Context(device)
    return CompressibleFlow(context, control_volumes(mesh), dict.fromkeys(mesh.patches, SlipWall()))


def states(k: int) -> np.ndarray:
    """Return the states of the cells at sample ``k``."""
    noise = np.random.default_rng(k).uniform(-0.1, 0.1, (40, 4))
    return np.array([1.0, 0.2, -0.1, 0.8]) + noise


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_averages(device: str) -> None:
    mesh = box2d(5, 4, kind="triangle", perturb=0.2)
    context = Context(device, threads=1, tuning=False) if device == "cpu" else Context(device)
    whole = Compressible(mesh, context, boundaries=dict.fromkeys(mesh.patches, SlipWall()), start=(1.0, 0.2, -0.1, 0.8))
    flow, averages = whole.solver, RunningMeans(whole.averaged())
    weights = np.array([1.0, 3.0, 0.5])
    for k, weight in enumerate(weights):
        flow.start(states(k))
        averages.sample(float(weight))
    found, share = np.array([states(k) for k in range(3)]), weights / weights.sum()
    mean = np.einsum("s,sck->ck", share, found)
    product = np.einsum("s,sci,sck->cik", share, found - mean, found - mean)
    np.testing.assert_allclose(averages.velocity(), mean[:, 1:3], rtol=1e-13)
    np.testing.assert_allclose(averages.stress(), product[:, 1:3, 1:3], atol=1e-15)
    for place, name in ((0, "rho"), (3, "p")):
        np.testing.assert_allclose(averages.mean(name), mean[:, place], rtol=1e-13)
        np.testing.assert_allclose(averages.variance(name), product[:, place, place], rtol=1e-11)
    assert (averages.samples, averages.weight) == (3, 4.5)
    with pytest.raises(SolverError, match="a sample of weight 0"):
        averages.sample(0.0)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_probes(device: str) -> None:
    """Linear states exactly, on triangles; the cell's own where they would not be positive."""
    flow = flow_on(device)
    points = {"inside": (0.53, 0.37), "edge": (0.999, 0.6)}
    probes = StateProbes(flow, points, capacity=2)

    def linear(x: np.ndarray) -> np.ndarray:
        return np.column_stack([1 + x[:, 0], x[:, 1], x[:, 0] - x[:, 1], 2 - x[:, 1]])

    flow.start(linear)
    for _ in range(3):  # more than a block holds
        probes.sample()
    times, found = probes.records.values()
    assert times.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(found, np.broadcast_to(linear(np.array(list(points.values()))), (3, 2, 4)), rtol=1e-12)
    cell = int(locate(flow.volumes, np.array([points["edge"]]))[0][0])
    values = states(0)
    values[cell, 0] = 1e-3
    flow.start(values)
    probes.records.reset()
    probes.sample()
    np.testing.assert_array_equal(probes.records.values()[1][0, 1], values[cell])
