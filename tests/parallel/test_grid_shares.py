"""Lattices cut into slabs of unequal thickness, for ranks of unequal speed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Context, Loop, Read, Write
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError
from fluxloom.dsl.declare.boxes import box_of

FIVE = [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)]


@fl.kernel
def average(u: Read, v: Write):
    v[0] = 0.5 * u[0] + 0.125 * (u[1] + u[2] + u[3] + u[4])


def smoothed(comm: Comm, shares: tuple[float, ...] | None, cut: tuple[int, ...] | None = None) -> dict[str, Any]:
    ctx = Context("cpu", threads=1, comm=comm, tuning=False)
    grid = ctx.grid((23, 9), periodic=True, shares=shares, cut=cut)
    stencil = ctx.stencil(grid, FIVE)
    u = ctx.dat(grid, grid.local(np.random.default_rng(3).random((23, 9))), "u")
    v = ctx.dat(grid, np.zeros(grid.shape), "v")
    chain = fl.Chain([Loop(average, grid, u[stencil], v), Loop(average, grid, v[stencil], u)])
    for _ in range(3):
        chain()
    return {"u": u.read(), "window": grid.window, "shape": grid.shape}


@pytest.mark.parametrize("shares", [(1, 1, 1), (0.7, 0.2, 0.1), (0.98, 0.01, 0.01), (1, 5, 2)])
def test_any_shares_give_the_same(shares: tuple[float, ...]) -> None:
    one = smoothed(SelfComm(), None)["u"]
    found = run_threads(3, lambda comm: smoothed(comm, shares))
    whole = np.full((23, 9), np.nan)
    for each in found:
        whole[each["window"]] = each["u"]
    np.testing.assert_array_equal(whole, one)
    thickness = [each["shape"][0] for each in found]
    wanted = [max(1.0, 23 * s / sum(shares)) for s in shares]
    assert sum(thickness) == 23
    np.testing.assert_allclose(thickness, wanted, atol=2)


def test_the_last_axis_can_be_cut_too() -> None:
    one = smoothed(SelfComm(), None)["u"]
    found = run_threads(2, lambda comm: smoothed(comm, (0.3, 0.7), (1, 2)))
    assert [each["shape"] for each in found] == [(23, 3), (23, 6)]
    for each in found:
        np.testing.assert_array_equal(each["u"], one[each["window"]])


@pytest.mark.parametrize(
    ("shape", "shares", "cut", "text"),
    [
        ((20, 8), (1.0, 0.0), None, "one positive number a rank"),
        ((20, 8), (1.0, 1.0, 1.0), None, "one positive number a rank"),
        ((1, 8), (1.0, 1.0), None, "thick"),
    ],
)
def test_shares_that_do_not_fit(
    shape: tuple[int, ...], shares: tuple[float, ...], cut: tuple[int, ...] | None, text: str
) -> None:
    with pytest.raises(DatError, match=text):
        box_of(shape, 0, 2, periodic=(True, True), ghost=(0, 0), reach=(1, 1), factors=cut, shares=shares)


def test_two_cut_axes_take_no_shares() -> None:
    with pytest.raises(DatError, match="one axis that is cut"):
        box_of((8, 8), 0, 4, periodic=(True, True), ghost=(0, 0), reach=(1, 1), factors=(2, 2), shares=(1, 1, 1, 1))
