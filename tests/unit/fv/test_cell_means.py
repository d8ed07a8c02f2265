"""Means over cells: rules on simplices, and on all kinds of cells."""

from __future__ import annotations

from itertools import product
from math import factorial, prod

import numpy as np
import pytest

from fluxloom.core.errors import MeshError, SolverError
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.mesh.geometry.quadrature import simplex_rule
from fluxloom_lab.exact.cell_means import box_means, cell_means
from fluxloom_lab.exact.viscous_exact import BoundaryLayer

Array = np.ndarray


@pytest.mark.parametrize(("d", "points"), list(product((1, 2, 3), (1, 2, 3, 4))))
def test_rules_are_exact(d: int, points: int) -> None:
    """The mean of ``prod b_k^(m_k)`` over a simplex is ``d! prod m_k! / (d + sum m_k)!``."""
    places, weights = simplex_rule(d, points)
    assert places.shape == (points**d, d + 1)
    assert (places > 0.0).all()
    assert (weights > 0.0).all()
    np.testing.assert_allclose(places.sum(axis=1), 1.0, rtol=1e-14)
    for powers in product(range(2 * points), repeat=d + 1):
        if (degree := sum(powers)) < 2 * points:
            want = factorial(d) * prod(factorial(m) for m in powers) / factorial(d + degree)
            assert weights @ (places ** np.array(powers)).prod(axis=1) == pytest.approx(want, rel=1e-12)


def test_a_rule_is_not_exact_beyond_its_degree() -> None:
    places, weights = simplex_rule(1, 2)
    assert abs(weights @ places[:, 1] ** 4 - 0.2) > 1e-3


def cubic(x: Array) -> Array:
    return np.stack([np.ones(len(x)), x[:, 0], x[:, 0] ** 3 - x[:, -1] * x[:, 1] ** 2], axis=1)


@pytest.mark.parametrize("kind", ["quad", "triangle"])
def test_cells_in_the_plane(kind: str) -> None:
    """Volumes times means add up to integrals, of moved nodes too; centroids are the means of the coordinates."""
    mesh = box2d(6, 5, (2.0, 1.0), kind, perturb=0.2)
    volumes, centroids = cell_geometry(mesh)
    np.testing.assert_allclose(volumes @ cell_means(mesh, cubic), [2.0, 2.0, 4.0 - 2.0 / 4.0], rtol=1e-12)
    np.testing.assert_allclose(cell_means(mesh, lambda x: x, 1), centroids, rtol=1e-12)


@pytest.mark.parametrize("kind", ["hexahedron", "prism", "pyramid", "tetra"])
def test_cells_in_space(kind: str) -> None:
    mesh = box3d(4, 3, 3, (2.0, 1.0, 1.0), kind, perturb=0.15)
    volumes, centroids = cell_geometry(mesh)
    np.testing.assert_allclose(volumes @ cell_means(mesh, cubic, 2), [2.0, 2.0, 4.0 - 2.0 / 6.0], rtol=1e-12)
    np.testing.assert_allclose(cell_means(mesh, lambda x: x, 1), centroids, rtol=1e-12, atol=1e-14)


def test_boxes_and_cells_agree() -> None:
    mesh = box2d(5, 4, (2.0, 1.0))

    def smooth(x: Array) -> Array:
        return np.sin(3.0 * x[:, 0] + x[:, 1])

    means = cell_means(mesh, smooth, 6)
    assert means.shape == (20,)
    np.testing.assert_allclose(box_means(cell_geometry(mesh)[1], (0.4, 0.25), smooth, 6), means, rtol=1e-10)
    one = box_means(np.array([[0.5, 0.0]]), (1.0, 1e-9), smooth, 8)
    assert one == pytest.approx((1.0 - np.cos(3.0)) / 3.0, rel=1e-8)


def test_functions_are_asked_inside_of_cells_only() -> None:
    """So those with a singular corner have means: of the state of a boundary layer behind the leading edge."""
    layer = BoundaryLayer(speed=10.0, viscosity=0.1)
    means = cell_means(box2d(4, 3), layer.state)
    assert means.shape == (12, 4)
    assert (np.diff(means[:, 1].reshape(3, 4), axis=0) > 0.0).all()


def test_no_points() -> None:
    with pytest.raises(MeshError, match="at least 1 point"):
        simplex_rule(2, 0)
    with pytest.raises(SolverError, match="at least 1 point"):
        box_means(np.zeros((1, 2)), (1.0, 1.0), cubic, 0)
