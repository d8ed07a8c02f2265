"""Loops that stay loops: tables, local arrays and legs with run-time indices, in packs and in work items."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Max, Read, Schedule, Write, rolled
from fluxloom.core.errors import LoopCheckError

from .harness import (
    LAYOUTS,
    STRATEGIES,
    agree,
    compare,
    context,
    everywhere,
    expected,
    native,
    schedules,
    threads_of,
    together,
)

LEGS, POINTS = 4, 20
MANY = 66
"""Legs of maps that code goes through in loops; more than loops may have trips that are written out."""


@fl.func
def weighted(row, values):
    total = 0.0
    for k in range(len(row)):
        total += row[k] * values[k]
    return total


@fl.kernel
def element(
    x: Read, scale: Read, y: Inc, m: Write, peak: Max, total: Inc, factor: Read,
    *, table: Const[list[list[list[float]]]], order: Const[list[int]], nu: float,
):  # fmt: skip
    """Loops round statements of each element, conditions of both sorts, values of an element that go from trip to trip.

    ``len(table)`` is such that none of the nests is short enough to be written out.
    """
    kept = fl.zeros(len(table))
    flux = fl.zeros(2)
    highest = -1.0
    for q in rolled(len(table)):
        share = nu * factor[0] + q  # the same for all elements
        place = order[q]
        for a in range(2):
            flux[a] = 0.0
        for c in rolled(len(x)):
            for a in range(2):
                flux[a] += table[q][c][a] * x[c][a]
        if scale[0] > 0.5:
            flux[0] -= share * scale[0]
        if q % 3 == 1:
            flux[1] *= 2.0
            for k in rolled(len(table)):
                flux[1] += 0.01 * k
        kept[place] = weighted(table[place][1], flux)
        highest = max(highest, kept[place])
    for i in rolled(len(table)):
        for j in rolled(i, len(table)):
            m[len(table) * i + j] = kept[i] * kept[j] + scale[0]
            m[len(table) * j + i] = kept[i] * kept[j] - scale[0]
    for q in rolled(len(table)):
        for c in range(len(x)):
            y[c][0] += kept[q] * table[q][c][0]
            y[c][1] -= kept[len(table) - 1 - q] * table[q][c][1]
    peak[0] = max(peak[0], highest)
    for k in rolled(3, -1, -1):
        total[0] += kept[k] * scale[0]


def elements(
    ctx: fl.Context, schedule: Schedule | None = None, layout: Any = None, dtype: str = "float64", size: int = 45
) -> tuple[list[Loop], dict[str, Any]]:
    rng = np.random.default_rng(11)
    cells, points = ctx.set(size, "cells"), ctx.set(60, "points")
    through = ctx.map(cells, points, rng.integers(0, 60, (size, LEGS)), "through")
    x = ctx.dat(points, rng.uniform(-0.5, 0.5, (60, 2)), "x", dtype=dtype, layout=layout)
    scale = ctx.dat(cells, rng.uniform(0.0, 1.0, size), "scale", dtype=dtype, layout=layout)
    y = ctx.dat(points, rng.uniform(-1.0, 1.0, (60, 2)), "y", dtype=dtype, layout=layout)
    m = ctx.dat(cells, np.full((size, POINTS**2), 7.0), "m", dtype=dtype, layout=layout)
    peak, total = ctx.scalar(-9.0, "peak"), ctx.scalar(0.5, "total")
    table = rng.uniform(-1.0, 1.0, (POINTS, LEGS, 2)).tolist()
    order = rng.permutation(POINTS).tolist()
    arguments = (x[through], scale, y[through], m, peak, total, ctx.scalar(1.5, "factor"))
    loop = Loop(element, cells, *arguments, table=table, order=order, nu=0.25, schedule=schedule)
    return [loop], {"y": y, "m": m, "peak": peak, "total": total}


@pytest.mark.parametrize(
    ("device", "lanes", "layout", "dtype"),
    everywhere(
        [(8, "aos", "float64"), (4, "soa", "float32"), (1, "aos", "float64"), (16, "blocked", "float64")],
        [(0, "aos", "float64"), (0, "soa", "float64")],
        keep=1,
        keep_items=1,
    ),
)
def test_elements(device: str, lanes: int, layout: str, dtype: str) -> None:
    """45 elements: packs, and what is left over."""
    for threads in threads_of(device, 2, 1):
        agree(elements, device, layout=layout, dtype=dtype, schedule=Schedule(lanes=lanes), threads=threads)


@pytest.mark.long
@pytest.mark.parametrize("device", ["cpu"])
def test_races(device: str) -> None:
    """Every strategy gives the same sums."""
    wanted = {name: fl.Schedule(**{**vars(schedule), "lanes": 8}) for name, schedule in STRATEGIES.items()}
    want = expected(elements)
    for name, got in together(elements, wanted, device).items():
        compare(got, want, what=name)


def test_lanes_are_inside() -> None:
    """The loops of the kernel go round those over lanes, and what is the same for all elements is one number."""
    ctx = context("cpu", schedule=Schedule(lanes=8))
    text = elements(ctx)[0][0].source
    start = text.index("_run_8(const")
    pack = text[start : text.index("\n}\n", start)]
    outer, lanes = pack.index("for (int64_t for_q_t = 0"), pack.index("#pragma omp simd", pack.index("for_q_t"))
    assert outer < lanes
    assert "int64_t place_;" in pack
    assert "double share_;" in pack
    assert "double kept_[20][8];" in pack
    assert "double weighted_total_;" in pack[lanes:]  # needed in one loop over lanes alone
    assert text.count("static const double fl_table_") == 1


@fl.kernel
def roots(x: Read, v: Write, *, table: Const[list[list[float]]]):
    total = 0.0
    for k in rolled(len(table)):
        total += table[k][0] * fl.sqrt(x[0] * x[0] + table[k][1])
    v[0] = total


def test_the_compiler_makes_vectors(optimised: None) -> None:
    """The compiler's own report says so of the loops over lanes."""
    ctx = context("cpu", schedule=Schedule(lanes=8), threads=1)
    cells = ctx.set(16, "cells")
    loop = Loop(roots, cells, ctx.dat(cells), ctx.dat(cells), table=[[0.5, 2.0]] * 70)
    loop()
    found = loop.report().vectorised
    if found is None:
        pytest.skip("this compiler reports nothing")
    assert found


def test_wrong_index_on_the_reference_device() -> None:
    """What lies outside is noticed, with the loop and the element."""
    with pytest.raises(LoopCheckError, match="element 0 of 'over'"):
        native(outside, "reference")


@fl.kernel
def beyond(v: Write, *, table: Const[list[float]]):
    v[0] = 0.0
    for k in rolled(len(table)):
        v[0] += table[k + 1]


def outside(ctx: fl.Context, schedule: Schedule | None = None) -> tuple[list[Loop], dict[str, Any]]:
    over = ctx.set(2, "over")
    v = ctx.dat(over, name="v", layout=LAYOUTS["aos"])
    return [Loop(beyond, over, v, table=[1.0] * 70, schedule=schedule)], {"v": v}


@fl.kernel
def spread(x: Read, w: Read, y: Inc, z: Inc, *, table: Const[list[list[float]]]):
    """Legs of ``y`` in loops that stay, one component left out; each place of ``z`` has one update, written out."""
    first = 0.0
    second = 0.0
    for c in rolled(len(table)):
        first += table[c][0] * x[c][0] + w[0]
        second += table[c][1] * x[c][1]
    for c in rolled(len(table)):
        y[c][0] += table[c][1] * first
        y[c][1] -= w[0] * second
        y[c][3] += table[c][0]
    for half in range(2):
        for c in range(33):
            z[33 * half + c] += table[c][half] * first + w[0]


@fl.kernel
def own(x: Read, u: RW, v: Write, peak: Max, *, table: Const[list[list[float]]]):
    """Legs of which no two elements share one, and those whose extremes are kept."""
    for c in rolled(len(table)):
        u[c][1] = 0.5 * u[c][1] + table[c][0] * x[c][0]
        peak[c] = max(peak[c], table[c][1] * x[c][1])
    for half in range(2):
        for c in range(33):
            v[33 * half + c] = u[c][1] - x[c][half]


def legs(
    ctx: fl.Context, schedule: Schedule | None = None, layout: Any = None, dtype: str = "float64",
    extremes: bool = False,
) -> tuple[list[Loop], dict[str, Any]]:  # fmt: skip
    """Return a loop with many legs, and what it changes: sums, or values of its own and extremes."""
    rng = np.random.default_rng(5)
    size, count = 15, 900
    cells, points, places = ctx.set(size, "cells"), ctx.set(count, "points"), ctx.set(size * MANY, "places")
    through = ctx.map(cells, points, rng.integers(0, count, (size, MANY)), "through")
    alone = ctx.map(cells, places, rng.permutation(size * MANY).reshape(size, MANY), "alone")
    values = {"dtype": dtype, "layout": layout}
    x = ctx.dat(points, rng.uniform(-0.5, 0.5, (count, 2)), "x", **values)
    w = ctx.dat(cells, rng.uniform(0.0, 1.0, size), "w", **values)
    y = ctx.dat(points, rng.uniform(-1.0, 1.0, (count, 4)), "y", **values)
    z = ctx.dat(points, rng.uniform(-1.0, 1.0, count), "z", **values)
    u = ctx.dat(places, rng.uniform(-1.0, 1.0, (size * MANY, 2)), "u", **values)
    v = ctx.dat(places, np.full(size * MANY, 9.0), "v", **values)
    table = rng.uniform(-1.0, 1.0, (MANY, 2)).tolist()
    if extremes:
        arguments = (x[through], u[alone], v[alone], z[through])
        return [Loop(own, cells, *arguments, table=table, schedule=schedule)], {"u": u, "v": v, "peak": z}
    loop = Loop(spread, cells, x[through], w, y[through], z[through], table=table, schedule=schedule)
    return [loop], {"y": y, "z": z}


@pytest.mark.parametrize(
    ("device", "extremes", "lanes", "layout", "dtype"),
    everywhere(
        [(False, 4, "aos", "float64"), (True, 4, "aos", "float64"), (False, 1, "aos", "float64"),
         (False, 8, "soa", "float32"), (True, 8, "aos", "float32"), (False, 8, "aos", "float32")],
        [(False, 0, "aos", "float64"), (True, 0, "aos", "float64"), (False, 0, "soa", "float32")],
        keep=1,
        keep_items=1,
    ),
)  # fmt: skip
def test_many_legs(device: str, extremes: bool, lanes: int, layout: str, dtype: str) -> None:
    """Every strategy of a device gives the sums of the reference device."""
    wanted = schedules(device, lanes=lanes)
    got = together(legs, wanted, device, layout=LAYOUTS[layout], dtype=dtype, extremes=extremes)
    missing = {name for name in wanted if name not in got}
    assert all(extremes and name.startswith(("atomic", "gather")) for name in missing), missing
    for name, values in got.items():
        compare(values, expected(legs, dtype=dtype, extremes=extremes), dtype, what=name)


@pytest.mark.parametrize("device", ["cpu", pytest.param("opencl", marks=pytest.mark.opencl)])
def test_legs_are_gone_through_in_a_loop(device: str) -> None:
    """No statement names a leg but those of the kernel itself."""
    ctx = context(device, schedule=Schedule(lanes=4) if device == "cpu" else None)
    text = legs(ctx)[0][0].source
    assert f"for (int g = 0; g < {MANY}; g++)" in text
    assert not re.search(rf"m\d+\[[^\]]*\* {MANY} \+ \d+\]", text)
    assert re.search(r"p0_z\[65\]\[0\](\[l\])? = ", text)
    assert "p0_y[c_]" in text
    assert not re.search(r"p0_y\[\d+\]\[.* = ", text)
