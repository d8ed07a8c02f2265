"""Direct loops, reductions, boundary loops, writes through maps, constants at calls."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Max, Min, Read, Write

from .harness import (
    DEVICES,
    LAYOUTS,
    agree,
    compare,
    context,
    everywhere,
    expected,
    native,
    threads_of,
    variants,
)  # fmt: skip

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
    ("device", "lanes", "dtype"),
    everywhere(
        [(8, "float64"), (4, "float32"), (8, "float16"), (1, "float64"), (16, "float16")],
        [(0, "float64"), (0, "float32"), (0, "float16")],
        keep=3,
        keep_items=1,
    ),
)
def test_modes(layout: str, device: str, lanes: int, dtype: str) -> None:
    for threads in threads_of(device, 1, 2, 3):
        schedule = fl.Schedule(lanes=lanes, stream=True)
        agree(modes, device, layout=layout, dtype=dtype, schedule=schedule, threads=threads, times=2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", SIZES)
def test_modes_of_sizes(device: str, size: int) -> None:
    agree(modes, device, size=size)


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


INTEGERS = [(1, "int64"), (8, "int32"), (16, "uint8")]


@pytest.mark.parametrize(
    ("device", "layout", "lanes", "dtype"),
    everywhere(
        [(layout, *rest) for layout in LAYOUTS for rest in INTEGERS],
        [("aos", 0, "int64"), ("soa", 0, "int32"), ("blocked", 0, "uint8")],
    ),
)
def test_integer_modes(device: str, layout: str, lanes: int, dtype: str) -> None:
    agree(integer_dats, device, layout=layout, dtype=dtype, schedule=fl.Schedule(lanes=lanes))


@pytest.mark.parametrize("device", DEVICES)
def test_uint8_wraps(device: str) -> None:
    """Stored integers wrap round as NumPy's do, on every device."""
    agree(integer_dats, device, dtype="uint8", times=6)


@fl.kernel
def mirrored(a: Read, b: Write, c: RW, *, n: Const[int]):
    for k in range(n):
        b[k] = a[n - 1 - k] + c[k]
        c[k] = a[k] - 1.0


def rows(ctx, schedule=None, dtype="float64", components=4, size=4099, part=False):
    rng = np.random.default_rng(6)
    over = ctx.set(size, "over")
    a, b, c = (ctx.dat(over, rng.random((size, components)), n, dtype=dtype) for n in "abc")
    where = ctx.subset(over, rng.random(size) < 0.7) if part else over
    return [Loop(mirrored, where, a, b, c, n=components, schedule=schedule)], {"b": b, "c": c}


@pytest.mark.parametrize(
    ("device", "dtype"), everywhere(["float64", "float32"], ["float64", "float32", "float16"], keep_items=1)
)
def test_rows(device: str, dtype: str) -> None:
    """Rows of every width, which neighbouring elements may store together, in groups of any size."""
    choices = {
        f"{n} of {size} by {block}{' part' * part}": {
            "components": n, "size": size, "part": part, "schedule": fl.Schedule(block=block),
        }
        for n in (1, 2, 3, 4, 8)
        for size, block, part in [(4099, 128, False), (33, 64, False), (4099, 100, False), (500, 37, False),
                                  (4099, 128, True)]
    }  # fmt: skip
    for name, got in variants(rows, device, choices, dtype=dtype).items():
        options = {k: v for k, v in choices[name].items() if k != "schedule"}
        compare(got, expected(rows, dtype=dtype, **options), dtype, name)


@fl.kernel
def apart(a: Read, b: Write, c: Inc):
    for k in range(3):
        b[k] = a[2 - k] * 2.0
        c[k] += a[k] - a[0]


def components(ctx, schedule=None, layout=None):
    rng = np.random.default_rng(7)
    over = ctx.set(999, "over")
    a, b, c = (ctx.dat(over, rng.random((999, 3)), n, layout=layout) for n in "abc")
    return [Loop(apart, over, a, b, c, schedule=schedule)], {"b": b, "c": c}


@pytest.mark.parametrize("device", DEVICES)
def test_component_by_component(device: str) -> None:
    choices = {name: {"layout": layout, "schedule": fl.Schedule(split=True)} for name, layout in LAYOUTS.items()}
    for name, got in variants(components, device, choices).items():
        compare(got, expected(components), what=name)


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


@pytest.mark.parametrize(
    ("device", "lanes", "dtype"),
    everywhere(
        [(1, "float64"), (4, "float64"), (8, "float32"), (16, "float16")],
        [(0, "float64"), (0, "float32"), (0, "float16")],
        keep_items=1,
    ),
)
def test_reductions(device: str, lanes: int, dtype: str) -> None:
    for threads in threads_of(device, 1, 2, 3):
        agree(sums, device, dtype=dtype, schedule=fl.Schedule(lanes=lanes), threads=threads, times=2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", SIZES)
def test_reductions_of_sizes(device: str, size: int) -> None:
    agree(sums, device, size=size)


@pytest.mark.parametrize(("device", "block"), everywhere([], [32, 100, 256, 640, 1024], keep_items=1))
def test_reductions_in_groups_of_a_size(device: str, block: int) -> None:
    agree(sums, device, schedule=fl.Schedule(block=block))


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
@pytest.mark.parametrize(
    ("device", "strategy"),
    everywhere(
        ["serial", "block_colour", "element_colour", "two_pass"],
        ["gather", "atomic", "two_pass", "element_colour", "block_colour"],
        keep_items=1,
    ),
)
def test_boundary(device: str, strategy: str, layout: str) -> None:
    schedule = fl.Schedule(strategy=strategy, block=128, lanes=8)
    agree(boundary_loop, device, layout=layout, schedule=schedule)
    agree(boundary_loop, device, layout=layout, schedule=schedule, dtype="float32")


@pytest.mark.parametrize("device", DEVICES)
def test_an_empty_boundary(device: str) -> None:
    for schedule in (fl.Schedule(), fl.Schedule(strategy="two_pass"), fl.Schedule(strategy="element_colour")):
        agree(boundary_loop, device, schedule=schedule, size=0)


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
    ("device", "lanes", "dtype"),
    everywhere(
        [(8, "float64"), (16, "float32"), (1, "float64"), (4, "float16")],
        [(0, "float64"), (0, "float32"), (0, "float16")],
        keep=2,
        keep_items=1,
    ),
)
def test_write_through_an_injective_map(device: str, layout: str, lanes: int, dtype: str) -> None:
    agree(injective, device, layout=layout, dtype=dtype, schedule=fl.Schedule(lanes=lanes), threads=3)


# -------------------------------------------------------------------------------- constants at calls


@fl.kernel
def scale(a: Read, b: Write, *, nu: float, n: int = 2, on: bool = True):
    b[0] = a[0] * nu + n if on else 0.0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("device", ["reference", *DEVICES])
def test_constants_change_between_calls(device: str, dtype: str) -> None:
    ctx = context(device)
    over = ctx.set(50, "over")
    a, b = ctx.dat(over, np.arange(50.0), dtype=dtype), ctx.dat(over, dtype=dtype)
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
    loop(on=True, n=-(2**40) if dtype == "float64" else 3)
    np.testing.assert_array_equal(b.read(), -2.0 * np.arange(50) + (-(2**40) if dtype == "float64" else 3))


@pytest.mark.parametrize("device", DEVICES)
def test_the_same_increment_twice(device: str) -> None:
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
    compare(native(case, device), want)
