"""Tridiagonal systems of arrays: whose memory, which axes, which shapes; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.device.cpu import CpuDevice
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.direct.tridiagonal import Form, Lines, Matrices, TridiagonalSolver

ROWS = 9
SHAPES = [((ROWS,), 0), ((ROWS, 20), 0), ((20, ROWS), -1), ((4, ROWS, 5), 1)]


def diagonals(shape: tuple[int, ...], dtype: str = "float64"):
    generator = np.random.default_rng(3)
    a, c = (generator.uniform(-1, 1, shape).astype(dtype) for _ in range(2))
    return a, (abs(a) + abs(c) + 1).astype(dtype), c


def product(a, b, c, u, axis: int, periodic: bool = False):
    """Return the matrix times ``u``; diagonals have the axes of u."""
    a, b, c, v = (np.moveaxis(np.asarray(one, np.float64), axis, 0) for one in (a, b, c, u))
    before, after = np.roll(v, 1, 0), np.roll(v, -1, 0)
    if not periodic:
        before[0] = after[-1] = 0
    return np.moveaxis(a * before + b * v + c * after, 0, axis)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_arrays(shape: tuple[int, ...], axis: int, periodic: bool) -> None:
    a, b, c = diagonals(shape)
    y = np.random.default_rng(1).random(shape)
    found = fl.tridiagonal.solve(a, b, c, y, axis=axis, periodic=periodic)
    np.testing.assert_allclose(product(a, b, c, found, axis, periodic), y, rtol=0, atol=1e-14)


def test_single_precision_in_place() -> None:
    a, b, c = diagonals((ROWS, 20), "float32")
    y = np.random.default_rng(1).random((ROWS, 20), dtype=np.float32)
    right = y.copy()
    assert fl.tridiagonal.solve(a, b, c, y, axis=0, out=y) is y
    np.testing.assert_allclose(product(a, b, c, y, 0), right, rtol=0, atol=2e-6)


def test_one_matrix_for_all() -> None:
    a, b, c = diagonals((ROWS,))
    y = np.random.default_rng(1).random((3, 4, ROWS))
    found = fl.tridiagonal.solve(a, b, c, y)
    np.testing.assert_allclose(product(*(np.broadcast_to(v, y.shape) for v in (a, b, c)), found, -1), y, atol=1e-14)


def test_more_right_hand_sides_than_go_together() -> None:
    a, b, c = diagonals((ROWS, 20))
    y = np.random.default_rng(1).random((11, ROWS, 20))
    found = fl.tridiagonal.solve(a, b, c, y, axis=1)
    np.testing.assert_allclose(product(*(np.broadcast_to(v, y.shape) for v in (a, b, c)), found, 1), y, atol=1e-14)


def test_gaps_and_other_orders_of_axes() -> None:
    """Right-hand sides with gaps, diagonals in another order, a result with gaps: values are copied."""
    a, b, c = (v.T for v in diagonals((20, ROWS)))
    room = np.random.default_rng(1).random((ROWS, 40))
    y, out = room[:, ::2], np.zeros((ROWS, 40))[:, ::2]
    before = y.copy()
    assert fl.tridiagonal.solve(a, b, c, y, axis=0, out=out) is out
    np.testing.assert_allclose(product(a, b, c, out, 0), before, rtol=0, atol=1e-14)
    fl.tridiagonal.solve(a, b, c, y, axis=0, out=y)
    np.testing.assert_array_equal(y, out)


def test_dats() -> None:
    context = fl.Context("cpu", threads=1)
    grid = context.grid((ROWS, 20), ghost=1)
    values = np.random.default_rng(1).random((ROWS, 20))
    y, u = context.dat(grid, values), context.dat(grid)
    a, b, c = diagonals((ROWS, 20))
    assert fl.tridiagonal.solve(a, b, c, y, axis=0, out=u) is u
    np.testing.assert_allclose(product(a, b, c, u.data_ro, 0), values, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(y.data_ro, values)


@pytest.mark.parametrize("method", ["thomas", "cr", "pcr", "cr_pcr"])
def test_singular_systems_are_named(method: str) -> None:
    a, b, c = diagonals((ROWS, 20))
    b[4, 13] = np.nan
    with pytest.raises(SolverError, match=r"cannot solve system 13 of 20: its pivot in row 4 vanishes"):
        fl.tridiagonal.solve(a, b, c, np.ones((ROWS, 20)), axis=0, method=method)


def test_right_hand_sides_that_are_no_numbers_are_named() -> None:
    a, b, c = diagonals((ROWS, 20))
    y = np.ones((ROWS, 20))
    y[3, 2] = np.nan
    with pytest.raises(SolverError, match=r"system 2 of 20: no pivot .* look at y"):
        fl.tridiagonal.solve(a, b, c, y, axis=0)


def test_what_is_wrong_is_named() -> None:
    a, b, c = diagonals((ROWS, 20))
    y = np.ones((ROWS, 20))
    for given, message in (
        ({"y": np.ones((ROWS, 20), int)}, "y is of int64: give it as float64 or float32"),
        ({"a": a.astype("float32")}, "a is of float32, and y of float64"),
        ({"b": b[:, :3]}, r"b has the shape \(9, 3\), and y \(9, 20\)"),
        ({"c": c[:, 0].copy()}, r"different shapes \(a \(9, 20\), b \(9, 20\), c \(9,\)\)"),
        ({"axis": 2}, "axis=2, and y has the shape"),
        ({"out": np.ones(3)}, r"out has the shape \(3,\)"),
        ({"out": np.ones((ROWS, 20), "float32")}, "out is of float32"),
        ({"method": "tomas"}, "method 'tomas'.*thomas"),
        ({"y": np.ones((ROWS, 0))}, "it has no values"),
    ):
        with pytest.raises(SolverError, match=message):
            fl.tridiagonal.solve(**{"a": a, "b": b, "c": c, "y": y, "axis": 0} | given)


def test_solvers_are_used_again_and_tell_of_every_failure() -> None:
    device = CpuDevice(1)
    solver = TridiagonalSolver(device, Lines(ROWS, 20, 1, 1, 20, 1), Form())
    assert solver.method == "thomas"
    assert "20 tridiagonal systems of 9 rows of double, interleaved: method thomas" in solver.describe()
    one = DeviceArray.zeros(device, (ROWS, 20))
    shifted = TridiagonalSolver(device, Lines(ROWS, 20, 1, 1, 20, 1), Form(coefficients="shifted"))
    with pytest.raises(SolverError, match="shifted matrices need mass"):
        shifted.calls(y=one, x=one, matrices=Matrices(one, one, one))
    with pytest.raises(SolverError, match="2 right-hand sides in lines and 1 in form"):
        TridiagonalSolver(device, Lines(ROWS, 20, rhs=2), Form())
    with pytest.raises(SolverError, match="switch=4 is of method 'cr_pcr' alone"):
        TridiagonalSolver(device, Lines(ROWS, 20), Form(), switch=4)
