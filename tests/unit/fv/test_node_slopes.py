"""Slopes through the nodes of cells: exact where they should be, and refused where they cannot be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.fv.gradients.node_gradients import NodeGradients, node_gradients
from fluxloom.mesh import box2d
from fluxloom_lab.problems.compressible_cases import KINDS, box

Array = npt.NDArray[np.float64]


def applied(rows: Family, volumes: ControlVolumes, values: Array) -> Array:
    """Return the slopes of the values of elements, ``(cells, d)``."""
    row = np.repeat(np.arange(volumes.cells), np.diff(rows.offsets))
    jump = values[rows.columns] - values[row]
    sums = [np.bincount(row, w * jump, minlength=volumes.cells) for w in rows.values.T]
    return np.stack(sums, axis=1).astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_least_squares_are_exact_for_linear_fields(kind: str) -> None:
    mesh = box(kind, 4, perturb=0.2)
    volumes = control_volumes(mesh)
    slope = np.arange(1.0, volumes.dimension + 1.0)
    found = applied(node_gradients(mesh, volumes, "least-squares"), volumes, 3.0 + volumes.centres @ slope)
    assert np.abs(found - slope).max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_green_gauss_of_a_constant_and_of_waves(kind: str) -> None:
    """Constants have no slope; errors of a smooth field fall on average with the mesh."""
    errors = []
    for n in (4, 8):
        mesh = box(kind, n)
        volumes = control_volumes(mesh)
        rows = node_gradients(mesh, volumes)
        assert np.abs(applied(rows, volumes, np.ones(volumes.elements))).max() == 0.0
        x = volumes.centres
        exact = np.zeros((volumes.cells, volumes.dimension))
        exact[:, 0] = np.cos(x[: volumes.cells, 0])
        errors.append(np.abs(applied(rows, volumes, np.sin(x[:, 0])) - exact).mean())
    assert errors[1] < 0.75 * errors[0]


def test_green_gauss_is_exact_on_parallelograms() -> None:
    """Boundary elements included: their faces take their values."""
    mesh = box2d(6, 5, (3.0, 1.0))
    volumes = control_volumes(mesh)
    found = applied(node_gradients(mesh, volumes), volumes, volumes.centres @ np.array([2.0, -1.0]))
    assert np.abs(found - [2.0, -1.0]).max() < 1e-12


def test_wrong_requests_are_refused() -> None:
    mesh = box2d(4, 4)
    with pytest.raises(SolverError, match="did you mean 'green-gauss'"):
        node_gradients(mesh, control_volumes(mesh), "green-gaus")  # type: ignore[arg-type]
    kind: NodeGradients = "green-gauss"
    with pytest.raises(SolverError, match="periodic patches"):
        node_gradients(mesh, control_volumes(mesh, periodic=[("xmin", "xmax")]), kind)
