"""Rules of Gauss on reference cells: exact to their degree, and not beyond."""

from __future__ import annotations

from itertools import product
from math import factorial, prod

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.fe.cells.elements import CELLS, Lagrange
from fluxloom.fe.cells.quadrature import Quadrature, gauss

SIMPLICES = ("triangle", "tetrahedron")

shapes = pytest.mark.parametrize("shape", list(CELLS))
counts = pytest.mark.parametrize("count", [1, 2, 3, 5])


def integral(rule: Quadrature, powers: tuple[int, ...]) -> float:
    return float(rule.weights @ np.prod(rule.points ** np.array(powers), axis=1))


def exact(shape: str, powers: tuple[int, ...]) -> float:
    """Return the integral of a monomial over the reference cell; on simplices by the formula of Dirichlet."""
    if shape not in SIMPLICES:
        return prod(1.0 / (p + 1) for p in powers)
    return prod(map(factorial, powers)) / factorial(sum(powers) + len(powers))


@shapes
@counts
def test_exact_to_the_degree(shape: str, count: int) -> None:
    rule, degree = gauss(shape, count), 2 * count - 1
    for powers in product(range(degree + 1), repeat=rule.points.shape[1]):
        if shape not in SIMPLICES or sum(powers) <= degree:
            assert integral(rule, powers) == pytest.approx(exact(shape, powers), rel=2e-13), powers


@shapes
@counts
def test_not_exact_beyond_the_degree(shape: str, count: int) -> None:
    """One degree more is missed along each axis, by the integral of Legendre's monic polynomial squared."""
    rule = gauss(shape, count)
    square = factorial(count) ** 4 / ((2 * count + 1) * factorial(2 * count) ** 2)
    for axis in range(rule.points.shape[1]):
        powers = tuple(2 * count * (k == axis) for k in range(rule.points.shape[1]))
        missed = exact(shape, powers) - integral(rule, powers)
        if shape in SIMPLICES:
            assert missed > 1e-3 * square
        else:
            assert missed == pytest.approx(square, rel=1e-5)


@shapes
@counts
def test_points_lie_inside_and_weights_are_positive(shape: str, count: int) -> None:
    rule = gauss(shape, count)
    dimension = Lagrange(shape, 1).dimension
    assert rule.points.shape == (count**dimension, dimension)
    assert rule.size == count**dimension == len(np.unique(rule.points.round(12), axis=0))
    assert rule.points.min() > 0.0
    assert (rule.points.sum(axis=1) if shape in SIMPLICES else rule.points).max() < 1.0
    assert rule.weights.min() > 0.0
    measure = {"triangle": 1 / 2, "tetrahedron": 1 / 6}.get(shape, 1.0)
    assert rule.weights.sum() == pytest.approx(measure, rel=1e-14)


def test_rules_of_boxes_are_products_with_the_first_direction_fastest() -> None:
    line, box = gauss("line", 3), gauss("hexahedron", 3)
    node, weight = np.polynomial.legendre.leggauss(3)
    assert line.points[:, 0] == pytest.approx((1 + node) / 2, abs=1e-15)
    for place, (k, j, i) in enumerate(product(range(3), repeat=3)):
        assert box.points[place] == pytest.approx((1 + node[[i, j, k]]) / 2, abs=1e-15)
        assert box.weights[place] == pytest.approx(weight[[i, j, k]].prod() / 8, rel=1e-14)


def test_one_point_is_the_centroid() -> None:
    assert gauss("triangle", 1).points == pytest.approx(np.full((1, 2), 1 / 3), abs=1e-15)
    assert gauss("tetrahedron", 1).points == pytest.approx(np.full((1, 3), 1 / 4), abs=1e-15)


def test_stiffness_of_a_triangle_and_a_square() -> None:
    """``int grad phi_i . grad phi_j`` of linear elements: the matrices of every textbook."""
    rule, item = gauss("triangle", 1), Lagrange("triangle", 1)
    slopes = item.gradients(rule.points)
    matrix = np.einsum("q,qid,qjd->ij", rule.weights, slopes, slopes)
    assert matrix == pytest.approx(np.array([[1, -0.5, -0.5], [-0.5, 0.5, 0], [-0.5, 0, 0.5]]), abs=1e-15)
    rule, item = gauss("quad", 2), Lagrange("quad", 1)
    slopes = item.gradients(rule.points)
    matrix = np.einsum("q,qid,qjd->ij", rule.weights, slopes, slopes)
    assert 6 * matrix[0] == pytest.approx(np.array([4, -1, -2, -1]), abs=1e-14)


@pytest.mark.parametrize("count", [0, -1, 2.0, True])
def test_wrong_counts(count: int) -> None:
    with pytest.raises(SolverError, match="a whole number of points in each direction, 1 or more"):
        gauss("quad", count)


def test_wrong_shapes_and_arrays() -> None:
    with pytest.raises(SolverError, match="unknown shape 'tri' of a cell"):
        gauss("tri", 2)
    with pytest.raises(SolverError, match=r"not \(4, 2\) and \(3,\)"):
        Quadrature(np.zeros((4, 2)), np.zeros(3), "quad")
    with pytest.raises(SolverError, match="points of a tetrahedron have 3 coordinates, not 2"):
        Quadrature(np.zeros((4, 2)), np.zeros(4), "tetrahedron")
    with pytest.raises(SolverError, match=r"'prisma' of a cell"):
        Quadrature(np.zeros((4, 3)), np.zeros(4), "prisma")


def test_arrays_are_read_only() -> None:
    rule = gauss("line", 2)
    with pytest.raises(ValueError, match="read-only"):
        rule.points[0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        rule.weights[0] = 0.0
