"""Systems whose right-hand side is zero have the solution zero, from any guess."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.linalg import (
    GMRES,
    BiCGStab,
    Chebyshev,
    ConjugateGradient,
    Jacobi,
    SmoothedAggregation,
    SparseMatrix,
    Stop,
)
from fluxloom.linalg.extruded import ExtrudedPoisson
from fluxloom.linalg.extruded_plane import ExtrudedMatrix
from tests.unit.linalg.test_krylov import laplacian, neumann

GUESSES = (0.0, 1.0, 1e-30, np.nan)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", [ConjugateGradient, BiCGStab, GMRES])
@pytest.mark.parametrize("recipe", [None, Jacobi(), Chebyshev(), SmoothedAggregation()], ids=type)
def test_every_method(method: Any, recipe: Any, dtype: str) -> None:
    context = fl.Context("cpu", threads=1, tuning=False)
    for singular in (False, True):
        a = neumann(6) if singular else laplacian(6)
        matrix = SparseMatrix.from_scipy(context, a.astype(dtype))
        n = 36
        b, x = (context.dat(matrix.rows, np.zeros(n), name, dtype=dtype) for name in ("b", "x"))
        solver = method(
            matrix, b, x, preconditioner=recipe, stop=Stop(rtol=1e-6), nullspace="constant" if singular else "none"
        )
        for guess in GUESSES:
            x.write(guess)
            status = solver.solve()
            assert (status.reason, status.iterations, status.residual) == ("converged", 0, 0.0)
            np.testing.assert_array_equal(x.read(), 0.0)
        x.write(0.0)
        b.write(np.random.default_rng(0).permutation(np.repeat([1.0, -1.0], n // 2)))
        assert solver.solve().converged


@pytest.mark.parametrize("method", [ConjugateGradient, BiCGStab])
def test_one_of_several_systems(method: Any) -> None:
    context, a = fl.Context("cpu", threads=1, tuning=False), laplacian(6)
    matrix, right = SparseMatrix.from_scipy(context, a), np.random.default_rng(0).random((36, 3)) * [1.0, 0.0, 1.0]
    b, x = context.dat(matrix.rows, right, "b"), context.dat(matrix.rows, np.ones((36, 3)), "x")
    assert method(matrix, b, x, stop=Stop(rtol=1e-10)).solve().converged
    np.testing.assert_array_equal(x.read()[:, 1], 0.0)
    np.testing.assert_allclose(a @ x.read(), right, atol=1e-8)


def test_extruded() -> None:
    context = fl.Context("cpu", threads=1, tuning=False)
    solver = ExtrudedPoisson(context, ExtrudedMatrix(laplacian(6), np.ones(36), planes=4, spacing=0.3))
    for guess in (0.0, 1.0, 1e-30):
        solver.b.write(0.0)
        solver.x.write(guess)
        status = solver.solve()
        assert (status.converged, status.iterations) == (True, 0)
        np.testing.assert_array_equal(solver.x.read(), 0.0)
