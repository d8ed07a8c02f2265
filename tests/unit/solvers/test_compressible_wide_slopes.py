"""A flow whose slopes come through the nodes of cells: what is around counts, extremes stay those across faces."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.fv.compressible.boundary import FarField
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import Family, spread
from fluxloom.fv.gradients.node_gradients import NodeGradients, node_gradients
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom_lab.problems.compressible_cases import box


@pytest.mark.parametrize("kind", ["green-gauss", "least-squares"])
def test_slopes_of_a_linear_field_and_uniform_flow(kind: NodeGradients) -> None:
    """On a mesh of squares both are exact; the limiter keeps them, and uniform flow stays."""
    mesh = box("quad", 6)
    volumes = control_volumes(mesh)
    stream = np.array([1.2, 0.5, 0.1, 0.9])
    boundaries = dict.fromkeys(volumes.patches, FarField(tuple(stream)))
    flow = CompressibleFlow(
        fl.Context("cpu", threads=1), volumes, boundaries, Gas(constant=1.0), CompressibleScheme(),
        gradients=node_gradients(mesh, volumes, kind),
    )  # fmt: skip
    flow.start(stream)
    flow.iterate(3)
    assert np.abs(flow.states() - stream).max() < 1e-14
    flow.start(lambda x: stream + 1e-3 * x[:, :1])
    flow.before()
    middle = np.flatnonzero((np.abs(volumes.centres[: volumes.cells] - 0.5) < 0.3).all(axis=1))
    found = flow.gradient.read()[: volumes.cells].reshape(-1, 4, 2)[middle]
    assert np.abs(found[:, :, 0] - 1e-3).max() < 1e-12
    assert np.abs(found[:, :, 1]).max() < 1e-12
    assert flow.limiter_values.read()[middle].min() > 0.9


def test_entries_of_another_pattern() -> None:
    """Rows (0: 2, 1), (1: 3) in the pattern (0: 1, 3), (1: 2, 3)."""
    rows = Family(np.array([0, 2, 3]), np.array([2, 1, 3], dtype=np.int32), np.array([[5.0], [6.0], [7.0]]))
    pattern = Family(np.array([0, 2, 4]), np.array([1, 3, 2, 3], dtype=np.int32), np.zeros((4, 2)))
    found = spread(rows, pattern)
    assert found.columns is pattern.columns
    assert found.values.tolist() == [[6.0], [0.0], [0.0], [7.0]]


@pytest.mark.long
def test_noise_does_not_grow_on_tetrahedra_without_a_limiter() -> None:
    """With slopes across faces alone it does: four neighbours are too few at walls."""
    from fluxloom.fv.compressible.boundary import SlipWall

    mesh = box("tetra", 4, perturb=0.1)
    volumes = control_volumes(mesh)
    noise = 1.0 + 1e-3 * np.random.default_rng(1).standard_normal(volumes.cells)
    growth = []
    for slopes in (None, node_gradients(mesh, volumes, "least-squares")):
        flow = CompressibleFlow(
            fl.Context("cpu", threads=1), volumes, dict.fromkeys(volumes.patches, SlipWall()), Gas(constant=1.0),
            CompressibleScheme(limiter=None), gradients=slopes,
        )  # fmt: skip
        states = np.zeros((volumes.cells, 5))
        states[:, 0], states[:, 4] = noise, noise**1.4
        flow.start(states)
        flow.iterate(400)
        growth.append(np.ptp(flow.states()[:, 4]) / np.ptp(states[:, 4]))
    assert growth[1] < 0.1
    assert growth[1] < growth[0]
