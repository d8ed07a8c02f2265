"""Poisson's equation on extruded meshes: the solution of the whole matrix, frequency by frequency."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import splu

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.linalg import ApproximateInverse, Chebyshev, ConjugateGradient, Jacobi, SparseMatrix, Stop
from fluxloom.linalg.direct.extruded.batch import PlaneGradients
from fluxloom.linalg.direct.extruded.frequencies import Frequencies
from fluxloom.linalg.direct.extruded.plane import ExtrudedMatrix
from fluxloom.linalg.direct.extruded.solver import ExtrudedPoisson
from fluxloom_lab.strategies.sparse_factors import SparseFactors
from tests.unit.linalg.test_krylov import laplacian, neumann

SIDE, SPACING = 6, 0.3
STOP = Stop(rtol=1e-10)


def weights(n: int = SIDE * SIDE) -> np.ndarray:
    """Return areas that differ from cell to cell."""
    return 0.5 + np.random.default_rng(5).random(n)


def circulant(planes: int, spacing: float = SPACING) -> sparse.csr_array:
    """Return ``-L_per``, entry by entry."""
    found = sparse.lil_array((planes, planes))
    for k in range(planes):
        found[k, k] += 2.0
        for other in (k - 1, k + 1):
            found[k, other % planes] -= 1.0
    return sparse.csr_array(found) / spacing


def whole(plane: Any, areas: np.ndarray, planes: int, spacing: float = SPACING) -> Any:
    """Return the matrix of all cells, in the order ``i planes + k``."""
    along = sparse.kron(sparse.diags_array(areas), circulant(planes, spacing))
    return sparse.csr_array(along + spacing * sparse.kron(plane, sparse.eye_array(planes)))


def values(planes: int, seed: int = 1) -> np.ndarray:
    """Return random numbers on the cells, a row a column of cells."""
    return np.random.default_rng(seed).standard_normal((SIDE * SIDE, planes))


def solver(plane: Any, planes: int, *, device: str = "cpu", **choices: Any) -> ExtrudedPoisson:
    """Return a solver of the plane problem with `weights`."""
    context = fl.Context(device, tuning=False, threads=1 if device == "cpu" else 0)
    matrix = ExtrudedMatrix(plane, weights(), planes=planes, spacing=SPACING)
    given: dict[str, Any] = {"stop": STOP} | choices
    return ExtrudedPoisson(context, matrix, **given)


def four_planes() -> ExtrudedMatrix:
    """Return a matrix that fits many vectors badly."""
    return ExtrudedMatrix(laplacian(SIDE), weights(), planes=4, spacing=1.0)


@pytest.mark.parametrize("planes", [1, 2, 3, 9, 20])
def test_solution_of_the_whole_matrix(planes: int) -> None:
    plane, b = laplacian(SIDE), values(planes)
    found = solver(plane, planes)
    found.b.write(b)
    status = found.solve()
    assert status.converged
    assert found.nullspace == "none"
    assert status.each.shape == (planes,)
    want = splu(whole(plane, weights(), planes).tocsc()).solve(b.ravel())
    np.testing.assert_allclose(found.x.read().ravel(), want, rtol=1e-7, atol=1e-8 * np.abs(want).max())


@pytest.mark.parametrize("planes", [1, 2, 5, 8])
def test_status_tells_the_residual_of_the_whole(planes: int) -> None:
    plane, b = laplacian(SIDE), values(planes)
    found = solver(plane, planes, stop=Stop(rtol=1e-4))
    found.b.write(b)
    status = found.solve()
    residual = b.ravel() - whole(plane, weights(), planes) @ found.x.read().ravel()
    assert status.norm == pytest.approx(np.linalg.norm(b))
    assert status.residual == pytest.approx(np.linalg.norm(residual), rel=1e-6)
    assert status.relative <= 1e-4


@pytest.mark.parametrize("planes", [1, 2, 7, 12])
def test_constants_in_the_null_space(planes: int) -> None:
    plane, b = neumann(SIDE), values(planes) + 3.0
    found = solver(plane, planes)
    found.b.write(b)
    found.x.write(values(planes, 2) + 5.0)
    status = found.solve()
    assert (status.converged, found.nullspace) == (True, "constant")
    x, centred = found.x.read(), b - b.mean()
    assert abs(x.mean()) < 1e-12
    assert status.norm == pytest.approx(np.linalg.norm(centred))
    error = centred.ravel() - whole(plane, weights(), planes) @ x.ravel()
    assert np.linalg.norm(error) < 1.1e-10 * np.linalg.norm(centred)


def test_same_as_conjugate_gradients_for_the_whole() -> None:
    plane, planes, b = laplacian(SIDE), 8, values(8)
    found = solver(plane, planes)
    context = found.context
    matrix = SparseMatrix.from_scipy(context, whole(plane, weights(), planes))
    x = context.dat(matrix.rows, name="x", shape=())
    ConjugateGradient(matrix, context.dat(matrix.rows, b.ravel(), "b"), x, preconditioner=Jacobi(), stop=STOP).solve()
    found.b.write(b)
    status = found.solve()
    assert status.each[0] == status.iterations
    assert status.each[-1] < status.each[0]  # higher frequencies are better conditioned
    np.testing.assert_allclose(found.x.read().ravel(), x.read(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("width", [2, 4])
def test_batched_as_one_by_one(width: int) -> None:
    b, answers = values(9), []
    for each in (width, 8):
        found = solver(laplacian(SIDE), 9, width=each)
        found.b.write(b)
        status = found.solve()
        answers.append((status.each.tolist(), found.x.read()))
    assert answers[0][0] == answers[1][0]
    np.testing.assert_allclose(answers[0][1], answers[1][1], rtol=1e-12, atol=1e-13)


def test_systems_that_are_solved_stand_still() -> None:
    """A right-hand side of one frequency: all others are zero and stay so."""
    planes, k = 12, 2
    wave = np.cos(2 * np.pi * k * np.arange(planes) / planes)
    b = values(1) * wave
    found = solver(laplacian(SIDE), planes)
    found.b.write(b)
    status = found.solve()
    assert status.converged
    assert status.each[2 * k - 1] == status.iterations > 0
    others = np.delete(status.each, [2 * k - 1])
    assert not others.any()
    eigenvalue = Frequencies(planes, SPACING).eigenvalues[k]
    plane = SPACING * laplacian(SIDE) + eigenvalue * sparse.diags_array(weights())
    want = splu(sparse.csc_array(plane)).solve(values(1).ravel())
    np.testing.assert_allclose(found.x.read(), want[:, None] * wave, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("planes", [1, 2, 5, 8])
@pytest.mark.parametrize("make", [laplacian, neumann])
def test_direct_solution(make: Any, planes: int) -> None:
    found = solver(make(SIDE), planes, method=SparseFactors())
    b = values(planes)
    found.b.write(b)
    status = found.solve()
    assert status.converged
    assert (status.iterations, found.chains) == (1, [])
    right = b - (b.mean() if make is neumann else 0.0)
    left = right.ravel() - whole(make(SIDE), weights(), planes) @ found.x.read().ravel()
    assert np.linalg.norm(left) < 1e-13 * np.linalg.norm(b)
    assert status.residual == pytest.approx(np.linalg.norm(left), abs=1e-13 * float(np.linalg.norm(b)))
    assert make is laplacian or abs(found.x.read().mean()) < 1e-13


def test_nothing_to_do() -> None:
    found = solver(laplacian(SIDE), 6)
    status = found.solve()
    assert (status.reason, status.iterations, status.relative) == ("converged", 0, 0.0)
    assert not found.x.read().any()


def test_starts_from_what_x_has() -> None:
    found = solver(laplacian(SIDE), 8)
    found.b.write(values(8))
    first = found.solve()
    assert found.solve().iterations == 0
    exact = found.x.read()
    found.x.write(np.zeros_like(exact))
    assert found.solve().iterations == first.iterations
    found.x.write(exact)
    assert found.solve().iterations == 0


@pytest.mark.parametrize("recipe", [ApproximateInverse(), Chebyshev(degree=5)])
def test_preconditioner_of_the_lowest_frequency(recipe: Any) -> None:
    plane, b = laplacian(SIDE), values(3)
    found = solver(plane, 3, method=PlaneGradients(recipe))
    found.b.write(b)
    jacobi = solver(plane, 3)
    jacobi.b.write(b)
    status = found.solve()
    assert status.converged
    assert status.each[0] < jacobi.solve().each[0]
    np.testing.assert_allclose(found.x.read(), jacobi.x.read(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("planes", [2, 7])
def test_cells_in_another_order(planes: int) -> None:
    plane, b = laplacian(SIDE), values(planes)
    context = fl.Context("cpu", threads=1, tuning=False)
    order = np.random.default_rng(3).permutation(b.size).reshape(b.shape)
    cells = context.set(b.size, "cells")
    scattered = np.empty(b.size)
    scattered[order] = b
    given, x = context.dat(cells, scattered, "b"), context.dat(cells, name="x", shape=())
    matrix = ExtrudedMatrix(plane, weights(), planes=planes, spacing=SPACING)
    found = ExtrudedPoisson(context, matrix, b=given, x=x, order=order, stop=STOP)
    for _ in range(2):  # the second time chains are fused, and replayed
        x.write(np.ones(b.size))
        assert found.solve().converged
    assert len(found.chains) >= 5
    plain = solver(plane, planes)
    plain.b.write(b)
    plain.solve()
    np.testing.assert_allclose(x.read()[order], plain.x.read(), rtol=1e-6, atol=1e-9)


def test_scalars_plane_by_plane_of_each_column() -> None:
    context = fl.Context("cpu", threads=1, tuning=False)
    cells, b = context.set(SIDE * SIDE * 4, "cells"), values(4)
    x = context.dat(cells, name="x", shape=())
    matrix = ExtrudedMatrix(laplacian(SIDE), weights(), planes=4, spacing=SPACING)
    found = ExtrudedPoisson(context, matrix, b=context.dat(cells, b.ravel()), x=x, stop=STOP)
    assert found.solve().converged
    plain = solver(laplacian(SIDE), 4)
    plain.b.write(b)
    plain.solve()
    np.testing.assert_array_equal(x.read(), plain.x.read().ravel())


def test_an_order_that_is_none() -> None:
    context = fl.Context("cpu", threads=1, tuning=False)
    cells = context.set(SIDE * SIDE * 4, "cells")
    b, x = (context.dat(cells, name=name, shape=()) for name in "bx")
    for order in (np.zeros((36, 4), dtype=int), np.arange(144).reshape(4, 36)):
        with pytest.raises(SolverError, match="order has each of 144 cells once, 36 rows of 4 planes"):
            ExtrudedPoisson(context, four_planes(), b=b, x=x, order=order)


def test_single_precision() -> None:
    context = fl.Context("cpu", threads=1, tuning=False)
    rows, b = context.set(SIDE * SIDE, "rows"), values(2).astype(np.float32)
    x = context.dat(rows, name="x", shape=(2,), dtype="float32")
    matrix = ExtrudedMatrix(laplacian(SIDE), weights(), planes=2, spacing=SPACING)
    found = ExtrudedPoisson(context, matrix, b=context.dat(rows, b), x=x, stop=Stop(rtol=1e-4))
    assert found.solve().converged
    want = splu(whole(laplacian(SIDE), weights(), 2).tocsc()).solve(b.astype(float).ravel())
    np.testing.assert_allclose(x.read().ravel(), want, rtol=1e-2, atol=1e-3 * np.abs(want).max())


@pytest.mark.parametrize("device", ["reference", pytest.param("opencl", marks=pytest.mark.opencl),
                                    pytest.param("cuda", marks=pytest.mark.cuda)])  # fmt: skip
def test_every_device(device: str) -> None:
    b, answers = values(5), []
    for name in ("cpu", device):
        found = solver(neumann(SIDE), 5, device=name, stop=Stop(rtol=1e-6))
        found.b.write(b)
        answers.append((found.solve(), found.x.read()))
    np.testing.assert_array_equal(answers[0][0].each, answers[1][0].each)
    np.testing.assert_allclose(answers[1][1], answers[0][1], rtol=1e-9, atol=1e-10)


def test_iterations_that_do_not_suffice() -> None:
    found = solver(laplacian(SIDE), 8, stop=Stop(rtol=1e-10, iterations=3))
    found.b.write(values(8))
    status = found.solve()
    assert (status.converged, status.reason) == (False, "iterations")
    with pytest.raises(SolverError, match="pressure: not converged"):
        status.require("pressure")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8, 1e-14])
def test_converged_is_true_of_the_solution_itself(dtype: str, rtol: float) -> None:
    """200 cells in a row: the recurrence falls on where the solution in float32 stands still, at 1e-5."""
    n, planes = 200, 8
    plane = sparse.csr_array(2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))
    context, areas = fl.Context("cpu", threads=1, tuning=False), np.full(n, 1e-3)
    rows = context.set(n, "rows")
    b = context.dat(rows, np.random.default_rng(0).standard_normal((n, planes)), "b", dtype=dtype)
    x = context.dat(rows, np.zeros((n, planes)), "x", dtype=dtype)
    stop = Stop(rtol=rtol, iterations=2000)
    matrix = ExtrudedMatrix(plane, areas, planes=planes, spacing=1.0)
    status = ExtrudedPoisson(context, matrix, b=b, x=x, stop=stop).solve()
    right = b.read().astype(float).ravel()
    residual = right - whole(plane, areas, planes, 1.0) @ x.read().astype(float).ravel()
    true = float(np.linalg.norm(residual) / np.linalg.norm(right))
    if status.converged:
        assert true <= 2.0 * rtol
    else:
        assert status.reason == "stagnated"
        assert true > rtol
    assert status.relative == pytest.approx(true, rel=4.0)
    assert status.converged == (rtol >= {"float32": 1e-4, "float64": 1e-8}[dtype])


@pytest.mark.parametrize("method", [PlaneGradients(), SparseFactors()])
@pytest.mark.parametrize("plane", [laplacian(SIDE), neumann(SIDE)])
def test_a_solution_is_verified_behind_its_solve(plane: Any, method: Any) -> None:
    """The residual of the whole system, also of an ``x`` that is not the last solution."""
    planes = 8
    found = solver(plane, planes, method=method, check_every=0)
    given = values(planes)
    found.b.write(given)
    found.solve().require()
    right = given - (given.mean() if found.nullspace == "constant" else 0.0)
    for x in (found.x.read(), values(planes, 2)):
        found.x.write(x)
        left = np.linalg.norm(right.ravel() - whole(plane, weights(), planes) @ x.ravel())
        status = found.verify()
        assert status.norm == pytest.approx(np.linalg.norm(right))
        assert status.residual == pytest.approx(left, rel=1e-6, abs=1e-13 * status.norm)
        assert status.converged == (left <= STOP.rtol * status.norm)


def test_numbers_that_are_not_finite() -> None:
    found, b = solver(laplacian(SIDE), 3), values(3)
    b[4, 1] = np.nan
    found.b.write(b)
    assert found.solve().reason == "not finite"
    found.b.write(values(3))
    assert found.solve().converged  # nothing of it was left in x


# ------------------------------------------------------------------------------------------ wrong input


def unsymmetric() -> Any:
    """Return a matrix with one entry changed."""
    found = laplacian(SIDE).tolil()
    found[0, 1] -= 0.5
    return found


WRONG = [
    ({"spacing": 0.0}, "spacing is a positive length, not 0.0"),
    ({"spacing": float("nan")}, "spacing is a positive length, not nan"),
    ({"planes": 0}, "planes is a whole number, at least 1, not 0"),
    ({"planes": 2.5}, "planes is a whole number, at least 1, not 2.5"),
    ({"method": "cg"}, r"extruded: method: a method of plane systems is wanted.*method=PlaneGradients\(\)"),
    ({"width": 3}, "width is an even number of systems"),
    ({"groups": 2}, "1 ranks cannot be divided into 2 teams"),
    ({"plane": "no"}, "plane is a sparse matrix of SciPy, not str"),
    ({"plane": sparse.csr_array((36, 35))}, "plane has 35 columns and 36 rows"),
    ({"plane": unsymmetric()}, r"plane is not symmetric: its entries \(0, 1\) and \(1, 0\) differ"),
    ({"plane": -laplacian(SIDE)}, "the diagonal of row 0 is .*: give -L"),
    ({"areas": np.ones(35)}, r"one number for each of 36 rows is wanted, not an array of shape \(35,\)"),
    ({"areas": np.append(np.ones(35), 0.0)}, "positive numbers are wanted; that of row 35 is not"),
    ({"rows": np.zeros(36, dtype=int)}, "each of 36 rows belongs to one rank"),
    ({"order": np.zeros((36, 4), dtype=int)}, "order is for scalars on cells: give b and x"),
]


@pytest.mark.parametrize(("change", "said"), WRONG, ids=[f"{next(iter(c))}-{k}" for k, (c, _) in enumerate(WRONG)])
def test_wrong_input(change: dict[str, Any], said: str) -> None:
    context = fl.Context("cpu", threads=1, tuning=False)
    known = {field.name for field in fields(ExtrudedMatrix)}
    choices = {key: value for key, value in change.items() if key not in known}
    with pytest.raises(SolverError, match=said):
        ExtrudedPoisson(context, replace(four_planes(), **{k: v for k, v in change.items() if k in known}), **choices)


def test_vectors_that_do_not_fit() -> None:
    context = fl.Context("cpu", threads=1, tuning=False)
    rows = context.set(36, "rows")
    good, other = (context.dat(rows, name=name, shape=(4,)) for name in "bx")
    soa = context.dat(rows, name="soa", shape=(4,), layout=fl.SoA())
    short = context.dat(rows, name="short", shape=(3,))
    whole_numbers = context.dat(rows, name="int", shape=(4,), dtype="int32")
    wrong: Any = (
        (good, None, "give both b and x"),
        (good, good, "two dats on one set"),
        (short, short, "two dats on one set"),
        (good, short, r"36 columns of 4 planes"),
        (good, soa, "layout AoS"),
        (good, whole_numbers, "float64 or float32"),
        (np.zeros(3), other, "b and x are dats, not ndarray and Dat"),
    )
    for b, x, said in wrong:
        with pytest.raises(SolverError, match=said):
            ExtrudedPoisson(context, four_planes(), b=b, x=x)
