"""Generalised minimal residuals: SciPy's numbers, restarts, what breaks it down, ranks and devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import linalg

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.linalg import GMRES, SSOR, Jacobi, SparseMatrix, Status, Stop, distributed_matrix
from tests.unit.linalg.test_krylov import convection, laplacian, neumann

RNG = np.random.default_rng(4)


def direct(a: Any, b: np.ndarray) -> np.ndarray:
    """Return the solution of SciPy."""
    return np.asarray(linalg.spsolve(sparse.csc_array(a), b), dtype=float)


def made(a: Any, b: Any, device: str = "cpu", dtype: str = "float64", **choices: Any) -> GMRES:
    """Return a solver of a matrix of SciPy."""
    context = fl.Context(device, threads=1, tuning=False) if device == "cpu" else fl.Context(device, tuning=False)
    matrix = SparseMatrix.from_scipy(context, sparse.csr_array(a), dtype=dtype)
    given = context.dat(matrix.rows, np.asarray(b, dtype=dtype), "b")
    return GMRES(matrix, given, context.dat(matrix.rows, name="x", shape=(), dtype=dtype), **choices)


@pytest.mark.parametrize("preconditioner", [None, Jacobi(), SSOR()])
@pytest.mark.parametrize("vectors", [7, 200])
def test_solution(preconditioner: Any, vectors: int) -> None:
    a, b = convection(), RNG.standard_normal(144)
    solver = made(a, b, vectors=vectors, preconditioner=preconditioner, stop=Stop(rtol=1e-9))
    status = solver.solve().require("convection")
    np.testing.assert_allclose(solver.x.read(), direct(a, b), rtol=1e-6, atol=1e-8)
    assert status.residual <= 1e-9 * status.norm
    assert status.residual == pytest.approx(np.linalg.norm(b - a @ solver.x.read()), rel=1e-3)
    assert (np.diff(status.history) <= 1e-9 * status.history[0]).all(), "the residual never rises"


def test_iterations_of_scipy() -> None:
    """Unpreconditioned, the residuals of each iteration are those of SciPy's, cycle by cycle."""
    a, b = convection(6), RNG.standard_normal(36)
    found: list[float] = []
    linalg.gmres(a, b, rtol=1e-8, restart=10, maxiter=100, callback=found.append, callback_type="pr_norm")
    status = made(a, b, vectors=10, stop=Stop(rtol=1e-8)).solve()
    assert abs(status.iterations - len(found)) <= 1
    count = min(len(found), status.iterations) - 1
    np.testing.assert_allclose(status.history[1 : count + 1] / status.norm, found[:count], rtol=1e-6)


def test_starts_from_what_x_has_and_ends_with_its_limit() -> None:
    a, b = convection(), RNG.standard_normal(144)
    solver = made(a, b, vectors=5, stop=Stop(rtol=1e-9, iterations=12))
    first = solver.solve()
    assert (first.reason, first.iterations) == ("iterations", 12)
    second = solver.solve()
    assert second.history[0] == pytest.approx(first.residual, rel=1e-9)
    solver.x.write(direct(a, b))
    assert solver.solve().iterations == 0


def test_no_vector_is_left() -> None:
    """A product that is zero: nothing can be added to the space, and that is said."""
    status = made([[0.0, 1.0], [0.0, 0.0]], [1.0, 1.0]).solve()
    assert (status.converged, status.reason) == (False, "breakdown")
    lucky = made(np.diag([2.0, 2.0, 3.0]), [1.0, 1.0, 1.0]).solve()
    assert (lucky.converged, lucky.iterations) == (True, 2)


def test_constants_in_the_null_space() -> None:
    a, b = neumann(), RNG.standard_normal(144) + 1.0
    solver = made(a, b, vectors=60, nullspace="constant", preconditioner=Jacobi(), stop=Stop(rtol=1e-9))
    assert solver.solve().converged
    x = solver.x.read()
    assert abs(x.mean()) < 1e-12
    assert np.linalg.norm(b - b.mean() - a @ x) < 2e-9 * np.linalg.norm(b)


@pytest.mark.parametrize("scale", [1e-170, 1e-30, 1e150])
def test_numbers_whose_squares_leave_the_range(scale: float) -> None:
    a, b = convection(5), scale * RNG.standard_normal(25)
    solver = made(a, b, vectors=6, stop=Stop(rtol=1e-8))
    assert solver.solve().converged
    np.testing.assert_allclose(solver.x.read() / scale, direct(a, b / scale), rtol=1e-5)


@pytest.mark.parametrize("rtol", [1e-4, 1e-12])
def test_single_precision(rtol: float) -> None:
    """What it says is true of the solution itself."""
    a, b = convection(), RNG.standard_normal(144).astype(np.float32)
    solver = made(a, b, dtype="float32", vectors=40, stop=Stop(rtol=rtol, iterations=400))
    status = solver.solve()
    true = np.linalg.norm(b - a.astype(np.float32).astype(float) @ solver.x.read().astype(float))
    assert status.residual == pytest.approx(true, rel=0.05, abs=1e-7 * status.norm)
    assert status.converged == (rtol == 1e-4)


@pytest.mark.parametrize("device", ["reference", pytest.param("opencl", marks=pytest.mark.opencl),
                                    pytest.param("cuda", marks=pytest.mark.cuda)])  # fmt: skip
def test_every_device(device: str) -> None:
    a, b = convection(5), RNG.standard_normal(25)
    one, other = (made(a, b, name, vectors=6, preconditioner=Jacobi()) for name in ("cpu", device))
    assert one.solve().iterations == other.solve().iterations
    np.testing.assert_allclose(other.x.read(), one.x.read(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("deterministic", ["plan", "global"])
def test_ranks(deterministic: Any) -> None:
    a, b = convection(8), RNG.standard_normal(64)

    def work(comm: Any) -> tuple[np.ndarray, np.ndarray, Status]:
        schedule = fl.Schedule(deterministic=deterministic)
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False, schedule=schedule)
        mine = np.array_split(np.arange(64), comm.size)[comm.rank]
        matrix = distributed_matrix(context, a[mine])
        part = matrix.rows.part
        numbers = mine if part is None else part.numbers[: part.owned]
        x = context.dat(matrix.rows, name="x")
        given = context.dat(matrix.rows, b[numbers], "b")
        status = GMRES(matrix, given, x, vectors=9, preconditioner=Jacobi(), stop=Stop(rtol=1e-8)).solve()
        return numbers, x.read(), status

    answers = []
    for count in (1, 3):
        whole = np.empty(64)
        pieces = fl.run_threads(count, work) if count > 1 else [work(fl.Context("cpu").comm)]
        for numbers, x, _ in pieces:
            whole[numbers] = x
        answers.append((whole, pieces[0][2].iterations))
    assert answers[0][1] == answers[1][1]
    if deterministic == "global":
        assert answers[0][0].tobytes() == answers[1][0].tobytes()
    np.testing.assert_allclose(answers[1][0], answers[0][0], rtol=1e-9, atol=1e-12)


def test_wrong_choices() -> None:
    a, context = laplacian(2), fl.Context("cpu", tuning=False)
    with pytest.raises(SolverError, match="vectors is a whole number, at least 1, not 0"):
        made(a, np.ones(4), vectors=0)
    matrix = SparseMatrix.from_scipy(context, a)
    b, x = (context.dat(matrix.rows, name=name, shape=(2,)) for name in "bx")
    with pytest.raises(SolverError, match=r"GMRES: it solves one system at a time, and x has shape \(2,\)"):
        GMRES(matrix, b, x)
