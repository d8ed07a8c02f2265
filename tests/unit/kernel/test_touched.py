"""Components that a kernel touches."""

from __future__ import annotations

import pytest

from fluxloom.core.access import RW, Const, Inc, Read, Write
from fluxloom.kernel import kernel
from fluxloom.kernel.analysis import touched_components
from fluxloom.kernel.intrinsics import rolled
from fluxloom.kernel.ir import RAGGED, ArgShape, Kind


def shape(*components: int, legs: int | None = None) -> ArgShape:
    """Return how an argument of reals is indexed."""
    return ArgShape(legs, components, Kind.REAL)


@kernel
def ragged(edge: Read, own: Read, r: Write, *, d: Const[int]):
    """Some numbers of each entry: the trace, and the first row."""
    total = 0.0
    for j in range(len(edge)):
        for a in rolled(d):
            total += edge[j][1 + (d + 1) * a] * own[a]
        total += edge[j][0]
    r[0] = total


@pytest.mark.parametrize("d", [2, 3])
def test_numbers_of_entries(d: int) -> None:
    shapes = {"edge": shape(1 + d * d, legs=RAGGED), "own": shape(d), "r": shape()}
    lowered = ragged.lower(shapes, {"d": d})
    assert touched_components(lowered, "edge") == {(0,), *((1 + (d + 1) * a,) for a in range(d))}
    assert touched_components(lowered, "own") == {(a,) for a in range(d)}
    assert touched_components(lowered, "r") == {()}


@kernel
def triangle(a: RW, r: Inc, *, n: Const[int]):
    """Below the diagonal, with bounds and indices made of the counters around."""
    for i in rolled(n):
        for j in rolled(0, i):
            a[n * i + j] = 1.0
            for q in rolled(2):
                r[2 * q] += 1.0


def test_counters_of_nested_loops() -> None:
    lowered = triangle.lower({"a": shape(16), "r": shape(5)}, {"n": 4})
    assert touched_components(lowered, "a") == {(4 * i + j,) for i in range(4) for j in range(i)}
    assert touched_components(lowered, "r") == {(0,), (2,)}


@kernel
def known_later(n: Read, a: Read, b: Read, r: Write):
    """An index that is data, one that a branch chooses, and a counter of an unknown number of trips."""
    total = a[0][n[0]] if n[0] > 1 else b[0]
    total += b[2] if total > 0.0 else 0.0
    r[0] = total


def test_what_is_known_at_run_time_only() -> None:
    shapes = {"n": ArgShape(None, (), Kind.INT), "a": shape(2, 3), "b": shape(4), "r": shape()}
    lowered = known_later.lower(shapes, {})
    assert touched_components(lowered, "a") is None
    assert touched_components(lowered, "b") == {(0,), (2,)}


@kernel
def by_length(x: Read, table: Read, r: Write):
    """A counter that runs as far as the row is long."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * table[j % 4] + table[5]
    r[0] = total


def test_trips_that_differ_by_element() -> None:
    lowered = by_length.lower({"x": shape(legs=RAGGED), "table": shape(6), "r": shape()}, {})
    assert touched_components(lowered, "table") is None
    assert touched_components(lowered, "x") == {()}
