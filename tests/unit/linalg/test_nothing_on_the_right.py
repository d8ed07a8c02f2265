"""Systems whose right-hand side is zero have the solution zero, from any guess; one of rounding alone is zero too."""

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
from fluxloom.linalg.direct.extruded.plane import ExtrudedMatrix
from fluxloom.linalg.direct.extruded.solver import ExtrudedPoisson
from tests.unit.linalg.test_krylov import laplacian, neumann
from tests.unit.monitors.surface_cases import built

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


@pytest.mark.parametrize("method", [ConjugateGradient, BiCGStab, GMRES])
def test_rounding_on_the_right(method: Any) -> None:
    """A right-hand side below its rounding has converged at once; others go on as if it were not known."""
    context, right = fl.Context("cpu", threads=1, tuning=False), np.random.default_rng(0).random(144)
    matrix = SparseMatrix.from_scipy(context, laplacian())
    b, x = context.dat(matrix.rows, name="b"), context.dat(matrix.rows, name="x")
    solver, asked, found = method(matrix, b, x, stop=Stop(rtol=1e-10)), [], []
    for rounding in (None, lambda: asked.append(1) or 1e-15):
        solver.rounding = rounding
        x.write(0.0)
        b.write(right)
        found.append((solver.solve().iterations, x.read()))
    assert found[0][0] == found[1][0] > 8
    np.testing.assert_array_equal(found[0][1], found[1][1])
    b.write(1e-18 * right)
    x.write(0.0)
    count = len(asked)
    status = solver.solve()
    assert (status.converged, status.iterations, len(asked) - count) == (True, 0, 1)
    assert solver.verify().converged
    solver.rounding = None
    x.write(0.0)
    assert solver.solve().iterations > 8


STREAM = """
[case]
name = "stream"
solver = "{solver}"
[mesh]
nx = 12
ny = 12
kind = "{kind}"
[fluid]
viscosity = 0.1
[initial]
velocity_x = "0.3 + y"
[boundary.xmin]
type = "inflow"
velocity_x = "0.3 + y"
[boundary.xmax]
type = "outflow"
[boundary.ymin]
type = "wall"
velocity = [0.3, 0.0]
[boundary.ymax]
type = "wall"
velocity = [1.3, 0.0]
[run]
iterations = 1
threads = 1
"""


@pytest.mark.parametrize(
    ("solver", "kind"), [("incompressible", "quad"), ("incompressible", "triangle"), ("edge_flow", "triangle")]
)
def test_a_flow_without_a_pressure_needs_no_iterations(solver: str, kind: str) -> None:
    flow = built(STREAM.format(solver=solver, kind=kind)).flow.solver
    counts = [flow.step(1e-3).iterations for _ in range(5)]
    assert counts == [0] * 5
    assert np.abs(flow.pressure()).max() < 1e-11
    pressure = flow._solver if solver == "edge_flow" else flow.solver
    pressure.rounding = None
    assert flow.step(1e-3).iterations > 8
