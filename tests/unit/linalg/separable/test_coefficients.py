"""Separable problems: their matrix, what is refused, weights of singular ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

from fluxloom.core.errors import SolverError
from fluxloom.linalg.direct.separable import Rows, Separable
from fluxloom.linalg.direct.separable.coefficients import null_weights

from .problems import PAIRS, problem, rows


@pytest.mark.parametrize(("y", "x"), PAIRS)
def test_times_is_the_matrix(y, x):
    given = problem(5, 4, y, x)
    u = np.random.default_rng(0).standard_normal(given.shape)
    np.testing.assert_allclose(given.times(u).ravel(), given.matrix() @ u.ravel(), rtol=1e-13, atol=1e-11)


@pytest.mark.parametrize(("y", "x"), PAIRS)
def test_only_neumann_and_periodic_sides_are_singular(y, x):
    assert problem(7, 6, y, x).singular == (y in ("nn", "periodic") and x in ("nn", "periodic"))


def test_reaction_makes_it_regular():
    given = problem(7, 6, "nn", "nn")
    assert not Separable(Rows(given.x.a, given.x.b - 1.0, given.x.c), given.y).singular
    assert Separable(Rows(given.x.a, given.x.b - 1.0, given.x.c), Rows(given.y.a, given.y.b + 1.0, given.y.c)).singular


@pytest.mark.parametrize("sides", ["nn", "periodic"])
def test_weights_are_a_left_null_vector(sides):
    given = rows(9, sides)
    w = null_weights(given)
    assert abs(w.sum() - 1) < 1e-14
    assert np.abs(w @ given.matrix()).max() < 1e-12 * np.abs(given.b).max()


def test_weights_of_a_ring_with_a_current():
    a, c = np.array([1.0, 2.0, 1.5, 1.0]), np.array([3.0, 2.0, 1.0, 2.0])
    given = Rows(a, -(a + c), c, periodic=True)
    assert np.abs(null_weights(given) @ given.matrix()).max() < 1e-14


def test_ends_are_not_read():
    given = Rows(np.full(4, 7.0), np.full(4, -3.0), np.full(4, 2.0))
    assert given.a[0] == given.c[-1] == 0.0
    dense = given.matrix().toarray()
    assert dense[0, 3] == dense[3, 0] == 0.0
    np.testing.assert_allclose(dense @ spsolve(given.matrix().tocsc(), np.ones(4)), 1.0)


def test_wrong_signs_are_refused():
    a, b, c = np.array([0.0, 1.0, -1.0]), np.full(3, -4.0), np.array([1.0, 1.0, 0.0])
    with pytest.raises(SolverError, match=r"a\[2\] = -1 and c\[1\] = 1 need one sign"):
        Separable(rows(4, "dd"), Rows(a, b, c))


def test_one_way_coupling_is_refused():
    with pytest.raises(SolverError, match="need one sign"):
        Separable(rows(4, "dd"), Rows([0.0, 0.0, 1.0], [-4.0, -4.0, -4.0], [1.0, 1.0, 0.0]))


def test_ring_with_a_current_is_refused():
    with pytest.raises(SolverError, match="periodic y: the product of all a"):
        Separable(rows(4, "dd"), Rows(np.full(4, 1.0), np.full(4, -4.0), np.full(4, 2.0), periodic=True))


def test_rows_that_are_none_are_refused():
    with pytest.raises(SolverError, match="one length"):
        Rows(np.ones(3), np.ones(4), np.ones(3))
    with pytest.raises(SolverError, match="at least 3"):
        Rows(np.ones(2), np.ones(2), np.ones(2), periodic=True)
    with pytest.raises(SolverError, match="diagonal b"):
        Rows(np.ones(2), np.array([1.0, np.nan]), np.ones(2))
