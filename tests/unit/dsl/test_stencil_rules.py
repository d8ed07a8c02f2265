"""Writes through stencils and subsets whose members change: what is refused, and what the messages say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Min, Read, Write
from fluxloom.core.errors import AccessError, DatError, FluxloomError, LoopError
from fluxloom.dsl.checkpoint.rules import call_of
from fluxloom.dsl.tiles.lazy import lazy


@fl.kernel
def push(u: Read, f: Write):
    f[0][0] = u[0]
    f[1][1] = u[0]


@fl.kernel
def push_twice(u: Read, f: Write):
    f[0][0] = u[0]
    f[1][1] = u[0]
    f[1][0] = 0.0


@fl.kernel
def reach_twice(u: Read, f: RW):
    f[0][0] = u[0]
    f[1][1] = f[1][0]


@fl.kernel
def push_half(u: Read, f: Write):
    f[0][0] = u[0]


@fl.kernel
def push_sometimes(u: Read, f: Write):
    f[0][0] = u[0]
    if u[0] > 0.0:
        f[1][1] = u[0]


@fl.kernel
def push_scalar(u: Read, f: Write):
    f[1] = u[0]


@fl.kernel
def push_anywhere(u: Read, f: RW):
    f[int(u[0])][0] = 1.0


@fl.kernel
def add(u: Read, f: Inc):
    f[0][0] += u[0]


@fl.kernel
def move(u: Read, v: Write):
    v[0] = u[0]


@fl.kernel
def shift(u: Read, f: RW):
    f[0][0] = u[1][0]
    f[1][1] = u[0][1]


@fl.kernel
def bump(u: RW):
    u[0] += 1.0


@fl.kernel
def gather(u: Read, v: Inc):
    v[0] += u[0]


@fl.kernel
def least(u: Read, v: Min):
    v[0] = min(v[0], u[0])


@fl.kernel
def rows(u: Read, v: Write):
    total = 0.0
    for j in range(len(u)):
        total += u[j]
    v[0] = total


class Case:
    """A lattice joined along its last axis, one joined along both, and one with ghosts."""

    def __init__(self) -> None:
        self.ctx = ctx = fl.Context("reference")
        self.torus = ctx.grid((4, 5), "torus", periodic=True)
        self.tube = ctx.grid((4, 5), "tube", periodic=(False, True), ghost=(0, 0))
        self.box = ctx.grid((4, 5), "box", periodic=True, ghost=(1, 0))
        self.u, self.f = ctx.dat(self.torus, name="u"), ctx.dat(self.torus, name="f", shape=(2,))
        self.v = ctx.dat(self.torus, name="v")
        self.s = ctx.stencil(self.torus, [(0, 1), (1, 0)], "s")
        self.open = ctx.subset(self.torus, [1, 2], "some", capacity=3)
        self.table = ctx.map(self.torus, self.torus, np.arange(20), "table")
        self.ragged = ctx.ragged(self.torus, self.torus, np.arange(21), np.arange(20), "rows")

    def on(self, grid: fl.Grid, offsets: list[tuple[int, int]]) -> tuple[fl.Dat, Any]:
        f, u = self.ctx.dat(grid, shape=(2,)), self.ctx.dat(grid)
        return u, f[self.ctx.stencil(grid, offsets, "s")]


Make = Callable[[Case], object]

REFUSED: list[tuple[Make, type[FluxloomError], str]] = [
    (lambda c: Loop(push_twice, c.torus, c.u, c.f[c.s]), LoopError,
     "'f' is Write through stencil 's', and the kernel reaches component 0 through legs 0 and 1: elements would meet"),
    (lambda c: Loop(reach_twice, c.torus, c.u, c.f[c.s]), LoopError, "component 0 through legs 0 and 1"),
    (lambda c: Loop(push_half, c.torus, c.u, c.f[c.s]), AccessError,
     "'f' is Write through a stencil but component 1 is not written on every path"),
    (lambda c: Loop(push_sometimes, c.torus, c.u, c.f[c.s]), AccessError, "component 1 is not written on every path"),
    (lambda c: Loop(push_anywhere, c.torus, c.u, c.f[c.s]), LoopError, "the kernel computes a leg or a component"),
    (lambda c: Loop(add, c.torus, c.u, c.f[c.s]), LoopError, "'f' is Inc through a stencil: elements would race"),
    (lambda c: Loop(shift, c.torus, c.f[c.s], c.f[c.s]), LoopError, "'u' and 'f' are the same 'f' and it is written"),
    (lambda c: Loop(push, c.box, *c.on(c.box, [(0, 1), (1, 0)])), LoopError, r"has ghosts \(1, 0\); declare"),
    (lambda c: Loop(move, c.open, c.u[c.s[0]], c.u), LoopError, "'u' reads 'u' where another element"),
    (lambda c: Loop(move, c.open, c.u, c.v[c.table[0]]), LoopError, "'v' is Write through 'table', and the members"),
    (lambda c: Loop(gather, c.open, c.u, c.v[c.table[0]]), LoopError, "that needs a plan made for them; declare the"),
    (lambda c: Loop(least, c.open, c.u, c.v[c.table[0]]), LoopError, "is Min through 'table'"),
    (lambda c: Loop(move, c.open, c.u[c.table[0]], c.u), LoopError, "'u' reads 'u', which the loop writes"),
    (lambda c: Loop(rows, c.open, c.u[c.ragged], c.v), LoopError, "'u' goes through a ragged map, and the members of"),
    (lambda c: c.open.assign([0, 1, 2, 3]), DatError, "'some': 4 elements are more than its capacity 3"),
    (lambda c: c.open.assign([20]), DatError, "element 20 does not exist"),
    (lambda c: c.open.assign([1.5]), DatError, "element numbers must be integers, got float64"),
    (lambda c: c.open.assign([True]), DatError, r"mask of shape \(1,\) does not fit"),
    (lambda c: c.ctx.subset(c.torus, [1], "fixed").assign([2]), DatError, "'fixed': its members cannot change"),
    (lambda c: c.ctx.subset(c.torus, [1, 2], "few", capacity=1), DatError, "2 elements are more than its capacity 1"),
    (lambda c: c.ctx.subset(c.torus, [], "none", capacity=0), DatError, "capacity 0 is no number of elements"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "message"), REFUSED)
def test_refused(make: Make, kind: type[FluxloomError], message: str) -> None:
    with pytest.raises(kind, match=message):
        make(Case())


def test_where_the_lattice_ends() -> None:
    """Only axes along which the stencil leads have to be joined."""
    case = Case()
    Loop(push, case.tube, *case.on(case.tube, [(0, 0), (0, 1)]))()
    ctx = fl.Context("reference")
    grid = ctx.grid((4, 5), "tube", periodic=(False, True))
    f, u = ctx.dat(grid, shape=(2,)), ctx.dat(grid, np.ones((4, 5)))
    Loop(push, grid, u, f[ctx.stencil(grid, [(0, 2), (0, -1)])])()
    assert f.read().tolist() == np.ones((4, 5, 2)).tolist()


def test_one_number_an_element() -> None:
    """A scalar is written through one leg of a whole stencil."""
    case = Case()
    case.u.write(np.arange(20.0).reshape(4, 5))
    Loop(push_scalar, case.torus, case.u, case.v[case.s])()
    np.testing.assert_array_equal(case.v.read(), np.roll(np.arange(20.0).reshape(4, 5), 1, axis=0))


def test_a_write_through_a_stencil_needs_no_old_values() -> None:
    """A checkpoint before a push saves what it reads, not what it writes; a subset leaves old values."""
    case = Case()
    (use,) = call_of(Loop(push, case.torus, case.u, case.f[case.s])).uses
    assert use.needed == (case.u,)
    assert use.overwritten == (case.f,)
    (use,) = call_of(Loop(push, case.open, case.u, case.f[case.s])).uses
    assert use.needed == (case.u, case.f)


def test_members() -> None:
    """Numbers in any order, twice, or masks of either shape; those of a subset are ascending."""
    case = Case()
    case.open.assign([19, 3, 19])
    assert (case.open.indices.tolist(), case.open.size, len(case.open), case.open.most) == ([3, 19], 2, 2, 3)
    mask = np.zeros((4, 5), dtype=bool)
    mask[1, 2] = True
    for some in (mask, mask.ravel()):
        case.open.assign(some)
        assert case.open.indices.tolist() == [7]
    case.open.assign([])
    assert case.open.size == 0
    Loop(bump, case.open, case.u)()
    assert not case.u.read().any()


def test_a_failed_change_changes_nothing() -> None:
    case = Case()
    with pytest.raises(DatError):
        case.open.assign([5, 6, 7, 8])
    assert case.open.indices.tolist() == [1, 2]


def test_reports_count_the_members_of_now() -> None:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    grid = ctx.grid((4, 5), periodic=True)
    u = ctx.dat(grid)
    some = ctx.subset(grid, [1], capacity=20)
    loop = Loop(bump, some, u)
    assert loop.report().useful_bytes == 16
    some.assign(np.arange(10))
    loop()
    assert loop.report().useful_bytes == 160
    assert u.read().sum() == 10.0


def test_loops_that_were_put_off_run_over_the_members_of_their_time() -> None:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    grid = ctx.grid((4, 5), periodic=True)
    u, some = ctx.dat(grid), ctx.subset(grid, [1, 2], capacity=4)
    loop = Loop(bump, some, u)
    with lazy(ctx):
        loop()
        some.assign([2, 3])
        loop()
    assert u.read().ravel()[:5].tolist() == [0.0, 1.0, 2.0, 1.0, 0.0]
