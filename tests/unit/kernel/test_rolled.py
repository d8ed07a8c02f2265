"""Loops over ``rolled``: what stays a loop, tables, what a nest of them writes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluxloom.core.access import Const, Inc, Read, Write
from fluxloom.core.errors import AccessError, KernelError
from fluxloom.kernel import func, ir, kernel, statements, walk
from fluxloom.kernel.intrinsics import rolled, zeros

from .conftest import Loader
from .interpreter import agree

N = 6
TABLE = np.random.default_rng(3).uniform(-1.0, 1.0, (N, N, 2)).tolist()


@func
def product(left, right, start, values):
    total = 0.0
    for a in range(2):
        total += left[a] * right[a] * values[start + a]
    return total


@func
def weight(row):
    return row[0][0] + row[len(row) - 1][1]


@kernel
def symmetric(x: Read, m: Write, *, table: Const[list[list[list[float]]]], n: Const[int]):
    """A nest whose inner bounds follow the outer counter; both triangles together cover all."""
    kept = zeros(2 * n)
    for q in rolled(n):
        start = 2 * q
        kept[start] = x[0] + q
        kept[start + 1] = x[1] * weight(table[q])
    for i in rolled(n):
        for j in rolled(i, n):
            total = 0.0
            for q in rolled(n):
                total += product(table[q][i], table[q][j], 2 * q, kept)
            m[n * i + j] = total
            m[n * j + i] = total


@pytest.fixture(autouse=True)
def nothing_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let loops over few trips stay loops, so that the Python function is quick."""
    monkeypatch.setattr(statements, "ROLLED_NODES", 0)


def kept_loops(lowered: ir.LoweredKernel) -> list[str]:
    return [node.name for node in walk(lowered.body) if isinstance(node, ir.For)]


def data(n: int) -> dict[str, Any]:
    return {"x": np.array([0.5, -1.5]), "m": np.zeros(n * n)}


def test_rolled_is_range() -> None:
    assert rolled(4) == range(4)
    assert rolled(7, 1, -2) == range(7, 1, -2)


def test_nests_stay_loops() -> None:
    """Counters index a local array and a nested table; the numbers are those of the Python function."""
    lowered = agree(symmetric, data(N), baked={"table": TABLE, "n": N})
    assert kept_loops(lowered) == ["q", "i", "j", "q"]
    (table,) = lowered.tables
    assert (table.kind, table.shape) == (ir.Kind.REAL, (N, N, 2))
    assert np.array_equal(np.array(table.values), np.ravel(TABLE))
    assert [array.name for array in lowered.arrays] == ["kept"]
    # n (n + 1) / 2 entries of n terms: two products of three factors and two sums, one sum into the total
    pairs = N * (N + 1) // 2
    assert lowered.flops == pytest.approx(pairs * N * 7 + N * 3, abs=pairs + N)


def test_short_nests_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    small = [row[:3] for row in TABLE[:3]]
    lowered = agree(symmetric, data(3), baked={"table": small, "n": 3})
    assert (kept_loops(lowered), lowered.tables, lowered.arrays) == ([], (), ())


def test_digest_follows_tables() -> None:
    shapes = {"x": ir.ArgShape(None, (2,), ir.Kind.REAL), "m": ir.ArgShape(None, (N * N,), ir.Kind.REAL)}
    other = [[list(pair) for pair in row] for row in TABLE]
    other[N - 1][0][1] += 1.0
    found = {symmetric.lower(shapes, {"table": t, "n": N}).digest for t in (TABLE, other)}
    assert len(found) == 2


MISSING = """
@kernel
def k(x: Read, m: Write, *, n: Const[int]):
    for i in fl.rolled(n):
        for j in fl.rolled({start}, n):
            value = x[0] * i
            for q in fl.rolled(n):
                value += x[0] + q * j
            m[n * i + j] = value
            {more}
"""
SHAPES = {"x": ir.ArgShape(None, (1,), ir.Kind.REAL), "m": ir.ArgShape(None, (N * N,), ir.Kind.REAL)}


@pytest.mark.parametrize(
    ("start", "more", "first"),
    [("i", "pass", N), ("i + 1", "m[n * j + i] = value", 0), ("0", "pass", None), ("i", "m[n * j + i] = value", None),
     ("i // 2 * 2", "m[i + n * j] = value", None)],
)  # fmt: skip
def test_what_a_nest_writes(load: Loader, start: str, more: str, first: int | None) -> None:
    """The first component that is left out is named; a nest that leaves none out is accepted."""
    made = load(MISSING.format(start=start, more=more)).k
    if first is None:
        assert len(kept_loops(made.lower(SHAPES, {"n": N}))) == 3
        return
    with pytest.raises(AccessError, match=rf"'m' is Write but m\[{first}\] is not written on every path"):
        made.lower(SHAPES, {"n": N})


@pytest.mark.parametrize("guard", ["if x[0] > 0.0:", "for t in range(int(x[0])):"])
def test_what_may_be_skipped_is_not_written(load: Loader, guard: str) -> None:
    text = f"""
@kernel
def k(x: Read, m: Write, *, n: Const[int]):
    {guard}
        for i in fl.rolled(n):
            for j in fl.rolled(i, n):
                m[n * i + j] = x[0]
                m[n * j + i] = x[0]
"""
    with pytest.raises(AccessError, match=r"m\[0\] is not written"):
        load(text).k.lower(SHAPES, {"n": N})


def test_a_component_of_the_same_trip_can_be_read(load: Loader) -> None:
    """What has been written in this trip may be read in it, what another trip writes may not."""
    text = """
@kernel
def k(x: Read, m: Write, *, n: Const[int]):
    for i in fl.rolled(n):
        for j in fl.rolled(n):
            m[n * i + j] = x[0] + i
            m[n * i + j] *= {read}
"""
    agree(load(text.format(read="2.0 + j")).k, {"x": np.array([3.0]), "m": np.zeros(25)}, baked={"n": 5})
    with pytest.raises(AccessError, match="read before it is written"):
        load(text.format(read="m[n * j + i]")).k.lower(SHAPES, {"n": N})


@pytest.mark.parametrize(
    ("body", "message"),
    [("s = fl.rolled(3)", "rolled is used outside a for loop"),
     ("for i in fl.rolled():\n        r[0] += x[0]", "rolled takes 1 to 3 arguments"),
     ("for i in fl.rolled(0, 9, 0):\n        r[0] += x[0]", "step of range must be a constant other than zero"),
     ("for i in fl.rolled(x[0]):\n        r[0] += x[0]", "must be an integer"),
     ("for i in fl.rolled(5000):\n        r[0] += x[i]", "index 4999 of 'x' is out of bounds"),
     ("for i in fl.rolled(5000):\n        i = 2", "loop variable 'i' is assigned")],
)  # fmt: skip
def test_refused(load: Loader, body: str, message: str) -> None:
    shapes = {"x": ir.ArgShape(None, (2,), ir.Kind.REAL), "r": ir.ArgShape(None, (), ir.Kind.REAL)}
    with pytest.raises(KernelError, match=message) as caught:
        load(f"@kernel\ndef k(x: Read, r: Inc):\n    {body}\n").k.lower(shapes)
    assert caught.value.line is not None


@kernel
def scattered(u: Read, r: Inc, *, table: Const[list[list[float]]]):
    """Updates through legs that are known at run time only; a table of one row is another one."""
    for i in rolled(len(table)):
        for j in rolled(len(table)):
            r[i] += table[i][j] * u[j] + table[2][j]


def test_updates_in_rolled_loops() -> None:
    values = np.random.default_rng(5).uniform(-1.0, 1.0, (4, 4))
    legs = tuple(np.array(v) for v in np.linspace(0.0, 1.0, 4))
    lowered = agree(scattered, {"u": legs, "r": legs}, baked={"table": values.tolist()})
    assert [table.shape for table in lowered.tables] == [(4, 4), (4,)]
