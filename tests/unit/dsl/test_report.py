"""Bytes that loops move: components that lie apart count one by one."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Read, Write
from fluxloom.core.dtypes import AoS, Blocked, Layout, SoA
from fluxloom.dsl.run.report import moved, useful_bytes

POINTS, EDGES = 128, 320


@fl.kernel
def corners(a: Read, b: Write, *, n: Const[int]):
    """The first and the last row of a matrix with ``n`` rows."""
    total = 0.0
    for j in fl.rolled(n):
        total += a[0][j] + a[n - 1][j]
    b[0] = total


@fl.kernel
def move(a: Read, b: Write):
    b[0] = a[2][1]


@fl.kernel
def turn(a: RW):
    a[0][0] = 2.0 * a[0][0]


@fl.kernel
def spread(a: Read, r: Inc):
    """One component, at both ends of an edge."""
    r[0][3] += a[0]
    r[1][3] -= a[0]


@fl.kernel
def tell(a: Read, b: Write, *, use: Const[bool]):
    b[0] = a[0][0] if use else 1.0


@fl.kernel
def left(one: Read, two: Read, b: Write):
    b[0] = one[0] + one[1] + two[0]


@fl.kernel
def right(two: Read, one: Read, b: Write):
    """`left` with its names the other way round: kernels of one digest."""
    b[0] = two[0] + two[1] + one[0]


def points(layout: Layout) -> tuple[fl.Set, fl.Dat, fl.Dat]:
    """Return points with matrices of three rows, and with numbers."""
    ctx = fl.Context("reference")
    over = ctx.set(POINTS, "points")
    return over, ctx.dat(over, np.ones((POINTS, 3, 3)), "a", layout=layout), ctx.dat(over, np.ones(POINTS), "b")


@pytest.mark.parametrize(
    ("layout", "numbers"), [(AoS(), 9), (SoA(), 6), (Blocked(8), 6), (Blocked(4), 9)], ids=str
)  # fmt: skip
def test_components_that_are_left_alone(layout: Layout, numbers: int) -> None:
    over, a, b = points(layout)
    loop = Loop(corners, over, a, b, n=3)
    assert loop.useful_bytes == 8 * POINTS * (numbers + 1)
    assert moved((loop.bound,)).written == 8 * POINTS


def test_loops_together_count_what_one_of_them_touches() -> None:
    over, a, b = points(SoA())
    first, last = Loop(move, over, a, b), Loop(turn, over, a)
    assert first.useful_bytes == 8 * POINTS * 2
    assert last.useful_bytes == 8 * POINTS * 2
    both = moved((first.bound, last.bound))
    assert (both.read, both.written, both.maps) == (8 * POINTS * 2, 8 * POINTS * 2, 0)
    assert useful_bytes((first.bound, Loop(corners, over, a, b, n=3).bound)) == 8 * POINTS * (6 + 1)
    assert useful_bytes((first.bound, last.bound), elided=frozenset([id(a)])) == 8 * POINTS


def test_nothing_moves_where_a_kernel_reads_nothing() -> None:
    for layout in (AoS(), SoA()):
        over, a, b = points(layout)
        whole = 9 if layout == AoS() else 1
        assert Loop(tell, over, a, b, use=True).useful_bytes == 8 * POINTS * (whole + 1)
        assert Loop(tell, over, a, b, use=False).useful_bytes == 8 * POINTS


@pytest.mark.parametrize(("layout", "numbers"), [(AoS(), 5), (SoA(), 1)], ids=str)
def test_increments_of_one_component(layout: Layout, numbers: int) -> None:
    ctx = fl.Context("reference")
    nodes, edges = ctx.set(POINTS, "nodes"), ctx.set(EDGES, "edges")
    ends = np.stack([np.arange(EDGES) % 64, (np.arange(EDGES) + 1) % 64], axis=1)
    e2n = ctx.map(edges, nodes, ends, "e2n")
    a, r = ctx.dat(edges, np.ones(EDGES), "a"), ctx.dat(nodes, np.zeros((POINTS, 5)), "r", layout=layout)
    work = moved((Loop(spread, edges, a, r[e2n]).bound,))
    assert (work.read, work.written) == (8 * EDGES + 8 * 64 * numbers, 8 * 64 * numbers)
    assert work.maps == EDGES * 2 * 4
    assert work.total == work.read + work.written + work.maps


def test_components_go_by_the_place_of_a_parameter() -> None:
    ctx = fl.Context("reference")
    over = ctx.set(POINTS, "points")
    once, twice = (ctx.dat(over, np.ones((POINTS, n)), name, layout=SoA()) for n, name in ((2, "once"), (3, "twice")))
    b = ctx.dat(over, np.ones(POINTS), "b")
    first, second = Loop(left, over, twice, once, b), Loop(right, over, twice, once, b)
    assert first.tuning_key == second.tuning_key
    assert first.useful_bytes == second.useful_bytes == 8 * POINTS * (2 + 1 + 1)
