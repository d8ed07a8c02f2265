"""The program of a solve, run by NumPy, against a sparse direct solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

from fluxloom.core.errors import SolverError
from fluxloom.linalg.direct.separable import Rows, Separable
from fluxloom.linalg.direct.separable.jobs import Sums
from fluxloom.linalg.direct.separable.program import FORMS, make_program
from fluxloom_lab.exact.separable_oracle import run

from .problems import PAIRS, backward_error, fits, problem, solution


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("y", "x"), PAIRS)
def test_every_pair_of_sides(y, x, form):
    given = problem(11, 6, y, x)
    u = solution(given)
    f = given.times(u)
    found = run(make_program(given, form), f)
    assert np.abs(found - u).max() < 2e-13
    assert backward_error(given, found, f) < 30


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 3, 8, 13, 32])
def test_every_number_of_columns(n, form):
    for sides in ("dd", "periodic"):
        if fits(sides, n):
            given = problem(n, 5, sides, "dn")
            f = np.random.default_rng(n).standard_normal(given.shape)
            wanted = spsolve(given.matrix().tocsc(), f.ravel()).reshape(given.shape)
            np.testing.assert_allclose(run(make_program(given, form), f), wanted, atol=1e-12 * np.abs(wanted).max())


def test_right_sides_without_solution_lose_their_mean():
    given = problem(9, 7, "nn", "nn")
    f = np.random.default_rng(1).standard_normal(given.shape)
    found = run(make_program(given), f)
    rest = given.times(found) - f
    assert np.ptp(rest) < 1e-11
    assert abs(rest.mean()) > 1e-3


def test_partial_fractions_need_fewer_solves():
    given = problem(127, 3)
    assert make_program(given, "product").solves == 2215  # as many as the published count for 127 columns
    once = [2 ** (6 - r) * (2 ** (r + 1) - 1) for r in range(7)]
    assert make_program(given, "partial_fractions").solves <= sum(once) + sum(once[:-1])


def test_roots_without_weight_are_left_out():
    whole, less = (make_program(problem(127, 3, constant=constant)).solves for constant in (False, True))
    assert less < 0.85 * whole  # with constant coefficients every second root has none


def test_systems_of_a_level_are_independent():
    program = make_program(problem(31, 3))
    for stage in program.stages:
        if isinstance(stage, Sums):
            assert not set(stage.targets) & set(stage.columns)
        else:
            assert len(set(stage.targets)) == stage.size
            assert stage.longest == 1


def test_unknown_form_is_refused():
    with pytest.raises(SolverError, match=r"did you mean 'product'\?"):
        make_program(problem(3, 3), "products")


def test_indefinite_equation_is_refused():
    given = problem(7, 5, constant=True)
    value = np.linalg.eigvalsh(given.x.matrix().toarray())[-1]
    shifted = Rows(given.y.a, given.y.b - given.y.b[0] - value, given.y.c)
    with pytest.raises(SolverError, match="indefinite"):
        make_program(Separable(given.x, shifted))
