"""What solvers of tridiagonal systems are given by mistake, and what they accept as a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import DeviceUnavailable, SolverError
from fluxloom.linalg.direct.tridiagonal import Form, Lines, TridiagonalSolver

LINES = Lines(9, 20, row_step=20)


@pytest.mark.parametrize("axis", [None, 1.0, "0", True], ids=str)
def test_an_axis_is_a_number(axis: Any) -> None:
    a = np.ones((9, 20))
    with pytest.raises(SolverError, match="give the number of one axis of y"):
        fl.tridiagonal.solve(a, 4 * a, a, a, axis=axis)


def test_off_diagonals_have_as_many_values_as_the_diagonal() -> None:
    a = np.ones(9)
    with pytest.raises(SolverError, match=r"a has the shape \(8,\), and y \(9,\)"):
        fl.tridiagonal.solve(a[1:], 4 * a, a[1:], a)


def test_devices_by_name_and_context() -> None:
    context = fl.Context("cpu", threads=1)
    assert TridiagonalSolver(context, LINES, Form()).device is context.device
    by_name = TridiagonalSolver("cpu", LINES, Form(), threads=1)
    assert by_name.device.name == "cpu"
    assert str(by_name) == by_name.describe()
    with pytest.raises(DeviceUnavailable, match="a device is a name"):
        TridiagonalSolver(3, LINES, Form())  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"threads": -1}, {"threads": 1.5}, {"switch": -1}], ids=str)
def test_numbers(given: dict) -> None:
    with pytest.raises(SolverError, match="is a whole number, at least 0"):
        TridiagonalSolver("cpu", LINES, Form(), **given)


@pytest.mark.parametrize("method", ["auto", "thomas", "cr", "pcr", "cr_pcr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 64, 1000])
def test_singular_periodic_systems_are_refused(rows: int, dtype: type, method: str) -> None:
    one, two = np.ones(rows, dtype), np.full(rows, 2, dtype)
    fits = np.zeros(rows, dtype)
    fits[0], fits[-1] = 1.0, fits[-1] - 1.0
    for y in (one, fits):  # without and with a solution
        with pytest.raises(SolverError, match=r"pivot in row \d+ vanishes"):
            fl.tridiagonal.solve(-one, two, -one, y, periodic=True, method=method)
        if rows > 2 and rows % 2 == 0:
            with pytest.raises(SolverError, match="vanishes"):
                fl.tridiagonal.solve(one, two, one, y, periodic=True, method=method)
    near = fl.tridiagonal.solve(-one, two + dtype(1e-3), -one, one, periodic=True, method=method)
    np.testing.assert_allclose(near, 1e3, rtol=1e-1 if dtype is np.float32 else 1e-9)


def test_one_singular_system_of_many_is_named() -> None:
    a, b = -np.ones((5, 12)), np.full((5, 12), 2.5)
    b[3] = 2.0
    with pytest.raises(SolverError, match="cannot solve system 3 of 5"):
        fl.tridiagonal.solve(a, b, a, np.ones((5, 12)), periodic=True)


@pytest.mark.parametrize("which", range(4))
def test_masks_are_refused(which: int) -> None:
    given = [np.zeros(3), np.ones(3), np.zeros(3), np.ones(3)]
    given[which] = np.ma.array(given[which], mask=[True, False, False])
    with pytest.raises(SolverError, match=f"{'abcy'[which]} is a masked array: fill the masked values"):
        fl.tridiagonal.solve(*given)
