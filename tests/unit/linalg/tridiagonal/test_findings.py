"""What solvers of tridiagonal systems are given by mistake, and what they accept as a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import DeviceUnavailable, SolverError
from fluxloom.linalg.tridiagonal import Form, Lines, TridiagonalSolver

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
