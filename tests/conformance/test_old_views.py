"""What is written through an array that was taken before loops ran reaches the values, or is an error: never lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Loop, Read
from fluxloom.core.errors import DatError
from fluxloom.dsl.tiles.lazy import lazy

from .harness import DEVICES, context

Form = Callable[[fl.Dat], np.ndarray]

VIEWS: Mapping[str, Form] = {
    "data": lambda u: u.data,
    "slice": lambda u: u.data[2:5],
    "slice of a slice": lambda u: u.data[2:][:, 1],
    "other shape": lambda u: u.data.reshape(-1),
    "other type": lambda u: u.data.view(np.int64),
    "memory": lambda u: np.frombuffer(u.data.data, dtype=np.float64),
}
"""Arrays over the values of ``u``; all but the first are made by NumPy."""


@fl.kernel
def double(u: RW):
    for k in range(2):
        u[k] = 2.0 * u[k]


@fl.kernel
def add(u: Read, v: RW):
    for k in range(2):
        v[k] += u[k]


def refusal(action: Callable[[], object]) -> str:
    """Return what an action is refused with."""
    try:
        action()
    except (DatError, ValueError) as error:
        return str(error)
    return ""


class Case:
    """Two dats and what runs over them."""

    def __init__(self, ctx: fl.Context) -> None:
        over = ctx.set(7, "over")
        self.u, self.v = ctx.dat(over, np.ones((7, 2)), "u"), ctx.dat(over, np.zeros((7, 2)), "v")
        self.double, self.add = Loop(double, over, self.u), Loop(add, over, self.u, self.v)
        self.chain = fl.Chain([self.double, self.add])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("run", ["double", "add", "chain"])
@pytest.mark.parametrize("name", VIEWS)
def test_what_is_written_late_is_not_lost(device: str, run: str, name: str) -> None:
    case = Case(context(device))
    view = VIEWS[name](case.u)
    getattr(case, run)()
    before = case.u.read()
    if told := refusal(lambda: view.fill(5)):
        assert "read-only" in told
        np.testing.assert_array_equal(case.u.read(), before)
        return
    now = before.copy()
    VIEWS[name](case.v)[:] = 5  # of the same form, taken in time: the values that `u` should have
    now[case.v.read() != 0.0] = case.v.read()[case.v.read() != 0.0]
    case.v.write(0.0)
    getattr(case, run)()
    if told := refusal(case.u.read):
        assert re.match(r"dat 'u': .* after loops$", told)
        return
    np.testing.assert_array_equal(case.u.read(), now if run == "add" else 2.0 * now)


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_written_in_time_counts(device: str) -> None:
    case = Case(context(device))
    kept = case.u.data[:, 1]
    kept[:] = 3.0
    for value in (6.0, 12.0):
        case.double()
        np.testing.assert_array_equal(case.u.read()[:, 1], value)
        np.testing.assert_array_equal(case.u.data_ro[:, 0], value / 3.0)
    new = case.u.data
    new[:] = 1.0
    case.double()
    np.testing.assert_array_equal(case.u.read(), 2.0)
    case.u.write(4.0)
    case.chain()
    np.testing.assert_array_equal(case.v.read(), 8.0)


@pytest.mark.parametrize("run", ["double", "add"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_slice_that_is_gone_when_the_values_are_read(device: str, run: str) -> None:
    case = Case(context(device))
    some = case.u.data[3:]
    getattr(case, run)()
    some[:] = 7.0
    del some
    told, own = refusal(case.u.read), 2.0 if run == "double" else 1.0
    np.testing.assert_array_equal(case.u.read()[3:], own if told else 7.0)  # it is told once


def test_loops_that_wait_do_not_run_over_what_was_written_after_them() -> None:
    case = Case(context("cpu"))
    view = case.u.data
    with lazy(case.u.context) as loops:
        case.double()
        view[:] = 5.0
        np.testing.assert_array_equal(case.u.read(), 5.0)
        case.add()
        view[:] = 6.0
        np.testing.assert_array_equal(case.v.read(), 5.0)
        del view
        case.double()
        assert loops.waiting == [case.double.name]
    np.testing.assert_array_equal(case.u.read(), 12.0)
