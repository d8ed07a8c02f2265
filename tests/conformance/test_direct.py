"""Direct loops, reductions, boundary loops, and what a kernel body may contain."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Max, Min, Read, Write

from .harness import LAYOUTS, agree, compare, expected, native, rest_is_long

SIZES = [0, 1, 7, 4099]


# ------------------------------------------------------------------------------------ access modes


@fl.kernel
def every_mode(a: Read, b: Write, c: RW, d: Inc, low: Min, high: Max):
    b[0] = a[0] + a[2]
    b[1] = a[1] * 2.0
    c[0] = c[1] - a[0]
    if a[1] > 0.5:
        c[1] += 1.0
    d[0] += a[0]
    d[0] += a[1]
    d[1] -= a[2]
    low[0] = min(low[0], a[0])
    if a[0] > a[1]:
        high[0] = max(high[0], a[0], a[1])


def modes(ctx, schedule=None, layout=None, dtype="float64", size=4099):
    rng = np.random.default_rng(0)
    over = ctx.set(size, "over")
    dats = [
        ctx.dat(over, rng.random((size, *s)), n, dtype=dtype, layout=layout)
        for n, s in zip("abcdlh", [(3,), (2,), (2,), (2,), (), ()], strict=True)
    ]
    return [Loop(every_mode, over, *dats, schedule=schedule)], {d.name: d for d in dats}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(
    ("lanes", "dtype"),
    rest_is_long([(8, "float64"), (4, "float32"), (8, "float16"), (1, "float64"), (16, "float16")], keep=3),
)
def test_modes(layout: str, lanes: int, dtype: str) -> None:
    for threads in (1, 2, 3):
        schedule = fl.Schedule(lanes=lanes, stream=True)
        agree(modes, layout=layout, dtype=dtype, schedule=schedule, threads=threads, times=2)


@pytest.mark.parametrize("size", SIZES)
def test_modes_of_sizes(size: int) -> None:
    agree(modes, size=size)


@fl.kernel
def integer_modes(a: Read, b: Write, c: RW, d: Inc, low: Min, high: Max, flag: Read):
    b[0] = a[0] // 3 - a[1] % 5
    c[0] = c[0] * 2 + a[1]
    d[0] += a[0]
    if flag[0] == 2:
        low[0] = min(low[0], a[0])
        high[0] = max(high[0], a[1])
        d[0] -= 1


def integer_dats(ctx, schedule=None, layout=None, dtype="int64", size=4099):
    rng = np.random.default_rng(0)
    over = ctx.set(size, "over")
    shapes = [(2,), (), (), (), (), ()]
    dats = [
        ctx.dat(over, rng.integers(0, 20, (size, *s)), n, dtype=dtype, layout=layout)
        for n, s in zip("abcdlh", shapes, strict=True)
    ]
    flag = ctx.dat(over, rng.integers(0, 4, size), "flag", dtype="uint8", layout=layout)
    return [Loop(integer_modes, over, *dats, flag, schedule=schedule)], {d.name: d for d in dats}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(("lanes", "dtype"), [(1, "int64"), (8, "int32"), (16, "uint8")])
def test_integer_modes(layout: str, lanes: int, dtype: str) -> None:
    agree(integer_dats, layout=layout, dtype=dtype, schedule=fl.Schedule(lanes=lanes))


def test_uint8_wraps() -> None:
    """Stored integers wrap round as NumPy's do, on both devices."""
    agree(integer_dats, dtype="uint8", times=6)


# -------------------------------------------------------------------------------------- reductions


@fl.kernel
def reductions(a: Read, c: Read, total: Inc, low: Min, high: Max, n: Inc, least: Min, most: Max, once: Inc):
    total[0] += a[0]
    total[1] += a[1] * a[1]
    total[2] -= a[0]
    low[0] = min(low[0], a[0])
    low[1] = min(low[1], -a[1])
    high[0] = max(high[0], a[0] + a[1])
    n[0] += 1
    if c[0] > 4:
        n[1] += c[0]
        least[0] = min(least[0], c[0] * 3)
    most[0] = max(most[0], c[0])
    once[0] += 0.5


def sums(ctx, schedule=None, layout=None, dtype="float64", size=9001):
    rng = np.random.default_rng(1)
    over = ctx.set(size, "over")
    a = ctx.dat(over, rng.random((size, 2)), "a", dtype=dtype, layout=layout)
    c = ctx.dat(over, rng.integers(0, 9, size), "c", dtype="int32", layout=layout)
    real = dtype if dtype != "float16" else "float32"
    out = {
        "total": ctx.scalar([1.0, 2.0, 3.0], dtype=real),
        "low": ctx.scalar([5.0, -0.3], dtype=real),
        "high": ctx.scalar(0.0, dtype=real),
        "n": ctx.scalar([3, 4], dtype="int64"),
        "least": ctx.scalar(1000, dtype="int32"),
        "most": ctx.scalar(2, dtype="int64"),
        "once": ctx.scalar(0.0, dtype="float64"),
    }
    return [Loop(reductions, over, a, c, *out.values(), schedule=schedule)], out


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("lanes", "dtype"), [(1, "float64"), (4, "float64"), (8, "float32"), (16, "float16")])
def test_reductions(lanes: int, dtype: str, threads: int) -> None:
    agree(sums, dtype=dtype, schedule=fl.Schedule(lanes=lanes), threads=threads, times=2)


@pytest.mark.parametrize("size", SIZES)
def test_reductions_of_sizes(size: int) -> None:
    agree(sums, size=size)


# ------------------------------------------------------------------------------------ boundary loop


@fl.kernel
def boundary(x: Read, q: Read, r: Inc, code: Read, far: Read, *, gm1: float, wall: int = 1):
    """A boundary flux with a branch on an integer code, incrementing one leg."""
    dx = x[1][0] - x[0][0]
    dy = x[1][1] - x[0][1]
    p = gm1 * q[1]
    if code[0] == wall:
        r[0] += p * dy
        r[1] -= p * dx
    elif code[0] == 2:
        r[0] += 0.5 * (q[0] + far[0]) * dy
    else:
        f = far[1] * dx
        r[1] += f


def boundary_loop(ctx, schedule=None, layout=None, dtype="float64", size=5001):
    rng = np.random.default_rng(2)
    faces, nodes, cells = ctx.set(size, "faces"), ctx.set(900, "nodes"), ctx.set(700, "cells")
    f2n = ctx.map(faces, nodes, rng.integers(0, 900, (size, 2)), "f2n")
    f2c = ctx.map(faces, cells, rng.integers(0, 700, size), "f2c")
    x = ctx.dat(nodes, rng.random((900, 2)), "x", dtype=dtype, layout=layout)
    q, r = (ctx.dat(cells, rng.random((700, 2)), n, dtype=dtype, layout=layout) for n in "qr")
    code = ctx.dat(faces, rng.integers(0, 4, size), "code", dtype="int32", layout=layout)
    far = ctx.scalar([0.3, 0.7], "far")
    loop = Loop(boundary, faces, x[f2n], q[f2c[0]], r[f2c[0]], code, far, gm1=0.4, schedule=schedule)
    return [loop], {"r": r}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("strategy", ["serial", "block_colour", "element_colour", "two_pass"])
def test_boundary(strategy: str, layout: str) -> None:
    schedule = fl.Schedule(strategy=strategy, block=128, lanes=8)
    agree(boundary_loop, layout=layout, schedule=schedule)
    agree(boundary_loop, layout=layout, schedule=schedule, dtype="float32")


# ------------------------------------------------------------------------------- indirect Write, RW


@fl.kernel
def scatter(v: Read, out: Write, both: RW):
    out[0][0] = v[0]
    out[0][1] = -v[0]
    out[1][0] = v[0] * 2.0
    out[1][1] = v[0] * v[0]
    both[0] = both[0] + v[0]


def injective(ctx, schedule=None, layout=None, dtype="float64"):
    rng = np.random.default_rng(3)
    n = 4100
    pairs, points = ctx.set(n, "pairs"), ctx.set(2 * n + 5, "points")
    order = rng.permutation(2 * n + 5)[: 2 * n].reshape(n, 2)
    p2p = ctx.map(pairs, points, order, "p2p")
    v = ctx.dat(pairs, rng.random(n), dtype=dtype, layout=layout)
    out = ctx.dat(points, rng.random((points.size, 2)), dtype=dtype, layout=layout)
    both = ctx.dat(points, rng.random(points.size), dtype=dtype, layout=layout)
    return [Loop(scatter, pairs, v, out[p2p], both[p2p[1]], schedule=schedule)], {"out": out, "both": both}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(
    ("lanes", "dtype"), rest_is_long([(8, "float64"), (16, "float32"), (1, "float64"), (4, "float16")], keep=2)
)
def test_write_through_an_injective_map(layout: str, lanes: int, dtype: str) -> None:
    agree(injective, layout=layout, dtype=dtype, schedule=fl.Schedule(lanes=lanes), threads=3)


# ------------------------------------------------------------------------------------ kernel bodies

STEP = 0.125
OFFSETS = (3, 1, 2, 0)


@fl.func
def smooth(a, b):
    return 0.5 * (a + b) + fl.sqrt(fl.fabs(a - b))


@fl.func
def split(a):
    lower = fl.floor(a * 4)
    return lower, a - 0.25 * lower


@fl.kernel
def body(
    a: Read, k: Read, out: Write, n: Write, *,
    nu: float, shift: int, flag: bool, weights: Const[list[float]], table: Const[list[list[int]]], g: Const[float],
):  # fmt: skip
    w = [0.0, 0.5, 1.0, 1.5]
    for i in range(4):
        w[i] = w[i] * a[OFFSETS[i]] + weights[i % 3]
    m = fl.zeros(2, 2)
    m[1, 0] = a[k[0] % 4]
    m[0, k[1] % 2] = STEP
    total = 0.0
    for i in range(k[0] % 5):
        total += w[i % 4] * (i + 1)
    x = a[0] + 1.0
    trips = 0
    while x < 3.0 and trips < 12:
        x = x * 1.3 + STEP
        trips += 1
    lower, rest = split(a[1])
    y = total if flag else -total
    y += m[1, 0] - m[0, 1] + smooth(x, w[k[2] % 4])
    if (nu > 0.5 and k[0] > 3) or not flag:
        y -= nu
    elif k[1] == table[1][0]:
        y *= g
    else:
        y = y / (1.0 + a[2]) ** 2
    out[0] = y + rest
    out[1] = fl.select(a[0] < 0.5, lower, 2.0) - (k[0] - 10) % 7 + (-a[1]) % 0.3
    n[0] = (k[0] - 10) // 3 + trips
    n[1] = (k[1] - 10) % shift
    n[2] = abs(k[2] - 9) * table[0][1] + int(a[0] * 9) + min(k[0], k[1], shift) + max(k[2], 4)
    n[3] = -7 // (k[0] + 1) + (-7) % (k[1] + 1) + (k[2] - 9) // -4 + (k[2] - 9) % -4


def language(ctx, schedule=None, layout=None, dtype="float64", size=4099):
    rng = np.random.default_rng(4)
    over = ctx.set(size, "over")
    a = ctx.dat(over, rng.random((size, 4)), "a", dtype=dtype, layout=layout)
    k = ctx.dat(over, rng.integers(0, 20, (size, 3)), "k", dtype="int32", layout=layout)
    out = ctx.dat(over, shape=(2,), name="out", dtype=dtype, layout=layout)
    n = ctx.dat(over, shape=(4,), name="n", dtype="int64", layout=layout)
    constants = {
        "nu": 0.7, "shift": 6, "flag": True, "g": 1.4, "weights": [0.25, -1.0, 2.0], "table": [[1, 2], [3, 4]],
    }  # fmt: skip
    return [Loop(body, over, a, k, out, n, schedule=schedule, **constants)], {"out": out, "n": n}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(
    ("lanes", "dtype"), rest_is_long([(8, "float64"), (1, "float64"), (4, "float64"), (16, "float64")], keep=2)
)
def test_bodies(layout: str, lanes: int, dtype: str) -> None:
    agree(language, layout=layout, dtype=dtype, schedule=fl.Schedule(lanes=lanes))


@fl.kernel
def guarded(k: Read, x: Read, n: Write, out: Write):
    """The right side of a boolean may be undefined where the left side decides."""
    n[0] = 0
    if k[0] != 0 and 12 // k[0] > 2:
        n[0] = 1
    if k[0] == 0 or 12 % k[0] == 0:
        n[0] += 2
    n[0] += 100 // k[0] if k[0] > 0 else -4
    j = k[1] - 1
    out[0] = 0.0
    if j >= 0 and j < 3 and x[j] > 0.5:
        out[0] = x[j]


@pytest.mark.parametrize("lanes", [1, 8])
def test_guards(lanes: int) -> None:
    def case(ctx, layout=None, dtype="float64", schedule=None):
        rng = np.random.default_rng(5)
        over = ctx.set(4099, "over")
        k = ctx.dat(over, rng.integers(0, 6, (4099, 2)), dtype="int32")
        x = ctx.dat(over, rng.random((4099, 3)))
        n, out = ctx.dat(over, dtype="int64"), ctx.dat(over)
        return [Loop(guarded, over, k, x, n, out, schedule=schedule)], {"n": n, "out": out}

    compare(native(case, schedule=fl.Schedule(lanes=lanes)), expected(case))


# -------------------------------------------------------------------------------- constants at calls


@fl.kernel
def scale(a: Read, b: Write, *, nu: float, n: int = 2, on: bool = True):
    b[0] = a[0] * nu + n if on else 0.0


def test_constants_change_between_calls() -> None:
    for device in ("reference", "cpu"):
        ctx = fl.Context(device)
        over = ctx.set(50, "over")
        a, b = ctx.dat(over, np.arange(50.0)), ctx.dat(over)
        loop = Loop(scale, over, a, b, nu=1.5)
        loop()
        np.testing.assert_array_equal(b.read(), 1.5 * np.arange(50) + 2)
        loop(nu=-2.0, n=5)
        np.testing.assert_array_equal(b.read(), -2.0 * np.arange(50) + 5)
        loop.set(n=1)
        loop()
        np.testing.assert_array_equal(b.read(), -2.0 * np.arange(50) + 1)
        loop(on=False)
        np.testing.assert_array_equal(b.read(), 0.0)


def test_the_same_increment_twice() -> None:
    """A dat or global that is incremented by two parameters gets both."""

    @fl.kernel
    def twice(a: Read, b: Inc, c: Inc, g: Inc, h: Inc):
        b[0] += a[0]
        c[0] += 2.0 * a[0]
        g[0] += a[0]
        h[0] += 3.0 * a[0]

    def case(ctx):
        over = ctx.set(100, "over")
        a, b, g = ctx.dat(over, np.arange(100.0)), ctx.dat(over, np.ones(100)), ctx.scalar(1.0)
        return [Loop(twice, over, a, b, b, g, g)], {"b": b, "g": g}

    want = expected(case)
    np.testing.assert_array_equal(want["b"], 1 + 3 * np.arange(100.0))
    assert want["g"] == 1 + 4 * 4950
    compare(native(case), want)
