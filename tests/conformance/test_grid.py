"""Loops over grids: stencils, ghosts, periodic axes, streaming, reductions, subsets of grids."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Max, Min, Read, Write

from .harness import DEVICES, LAYOUTS, compare, everywhere, expected, native, threads_of, variants

FIVE = [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)]
D2Q9 = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]
PULL = [(-y, -x) for y, x in D2Q9]
WEIGHTS = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)


@fl.kernel
def five_points(u: Read, v: Write, *, h: float):
    v[0] = u[0] + h * (u[1] + u[2] + u[3] + u[4] - 4.0 * u[0])


@fl.kernel
def wide(u: Read, v: RW, *, legs: Const[int]):
    """A weighted sum of all legs of a two-component dat."""
    for c in range(2):
        total = 0.0
        for k in range(legs):
            total += (k + 1) * u[k][c]
        v[c] = 0.5 * v[c] + total


@fl.kernel
def stream(f: Read, out: Write):
    for k in range(9):
        out[k] = f[k][k]


@fl.kernel
def stream_collide(f: Read, out: Write, rho: Write, *, omega: float):
    """Pull streaming and relaxation towards rest."""
    total = 0.0
    for k in range(9):
        total += f[k][k]
    rho[0] = total
    for k in range(9):
        out[k] = f[k][k] + omega * (WEIGHTS[k] * total - f[k][k])


@fl.kernel
def grid_sums(u: Read, total: Inc, low: Min, high: Max, n: Inc, most: Max):
    total[0] += u[0]
    total[1] += u[0] * u[0]
    low[0] = min(low[0], u[0])
    high[0] = max(high[0], u[0])
    if u[0] > 0.5:
        n[0] += 1
    most[0] = max(most[0], int(u[0] * 100))


@fl.kernel
def one_leg(right: Read, left: Read, v: Write):
    v[0] = right[0] - left[0]


@fl.kernel
def grid_modes(a: Read, b: Inc, c: RW, d: Min, e: Max):
    b[0] += a[0]
    b[1] -= 2.0
    if a[0] > 0.5:
        c[0] += a[0]
        d[0] = min(d[0], a[0])
    e[0] = max(e[0], a[0])


def smooth(ctx, layout=None, dtype="float64", shape=(70, 61), periodic=True, ghost=0, schedule=None, offsets=None):
    rng = np.random.default_rng(0)
    grid = ctx.grid(shape, periodic=periodic, ghost=ghost)
    s = ctx.stencil(grid, FIVE)
    u = ctx.dat(grid, rng.random(shape), dtype=dtype, layout=layout)
    v = ctx.dat(grid, dtype=dtype, layout=layout)
    if grid.ghost != (0, 0) and not isinstance(layout, fl.Blocked):
        full = u.storage()
        full[0], full[:, 0], full[-1], full[:, -1] = 1.0, 2.0, 3.0, 4.0
    return [Loop(five_points, grid, u[s], v, h=0.2, schedule=schedule)], {"u": u, "v": v}


PRECISIONS = [(0, "float64"), (0, "float32"), (0, "float16")]


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(
    ("device", "lanes", "dtype"),
    everywhere(
        [(8, "float64"), (16, "float32"), (1, "float64"), (4, "float16")],
        PRECISIONS,
        keep=2,
        keep_items=2,
    ),
)
def test_periodic(device: str, layout: str, lanes: int, dtype: str) -> None:
    got = native(smooth, device, layout=LAYOUTS[layout], dtype=dtype, schedule=fl.Schedule(lanes=lanes))
    compare(got, expected(smooth, dtype=dtype), dtype)


GHOSTS = [
    (1, False), ((1, 3), (False, True)), (2, (True, False)), ((1, 3), False), (2, (False, True)),
    (1, (True, False)), (2, False), (1, (False, True)), ((1, 3), (True, False)),
]  # fmt: skip


@pytest.mark.parametrize("layout", ["aos", "soa"])
@pytest.mark.parametrize(
    ("device", "ghost", "periodic"), everywhere(GHOSTS, GHOSTS[:4], keep=3, keep_items=2)
)
def test_ghosts(device: str, layout: str, ghost, periodic) -> None:
    options = {"ghost": ghost, "periodic": periodic}
    compare(native(smooth, device, layout=LAYOUTS[layout], **options), expected(smooth, **options))


SHAPES = [(1, 1), (1, 2), (2, 1), (1, 9), (9, 1), (2, 2), (3, 3), (2, 67), (67, 3), (80, 70)]


@pytest.mark.parametrize("device", DEVICES)
def test_small_periodic_grids(device: str) -> None:
    for threads in threads_of(device, 1, 3):
        found = variants(smooth, device, {str(shape): {"shape": shape} for shape in SHAPES}, threads=threads)
        for shape in SHAPES:
            compare(found[str(shape)], expected(smooth, shape=shape), what=str(shape))


def dimensions(ctx, shape=(50,), offsets=((0,), (1,)), layout=None, periodic=True, ghost=0):
    rng = np.random.default_rng(0)
    grid = ctx.grid(shape, periodic=periodic, ghost=ghost)
    s = ctx.stencil(grid, offsets)
    u, v = (ctx.dat(grid, rng.random((*shape, 2)), layout=layout) for _ in range(2))
    if any(grid.ghost):
        places = u.storage()
        places[...] = np.random.default_rng(4).random(places.shape)
    return [Loop(wide, grid, u[s], v, legs=len(offsets))], {"u": u, "v": v}


SEVEN = ((0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 2, 0), (0, -2, 0), (0, 0, 1), (0, 0, -1), (1, -1, 1))


@pytest.mark.parametrize("layout", ["aos", "soa"])
@pytest.mark.parametrize("device", DEVICES)
def test_dimensions(device: str, layout: str) -> None:
    boxes = [
        ((1,), ((0,), (1,), (-1,))),
        ((3,), ((0,), (3,), (-3,), (2,))),
        ((4500,), ((0,), (1,), (-1,), (7,), (-5,))),
        ((9, 8, 7), SEVEN),
        ((2, 2, 2), SEVEN),
        ((20, 15, 17), SEVEN),
    ]
    choices = {str(box): {"shape": box[0], "offsets": box[1]} for box in boxes}
    found = variants(dimensions, device, choices, layout=LAYOUTS[layout])
    for name, options in choices.items():
        compare(found[name], expected(dimensions, **options), what=name)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("periodic", [False, (False, True, False)])
def test_three_dimensions_with_ghosts(device: str, periodic) -> None:
    options = {"shape": (6, 7, 33), "offsets": SEVEN, "ghost": (1, 2, 1), "periodic": periodic}
    for layout in ("aos", "soa"):
        compare(native(dimensions, device, layout=LAYOUTS[layout], **options), expected(dimensions, **options))


def lattice(ctx, shape=(63, 70), layout=None, dtype="float64", collide=False, schedule=None):
    rng = np.random.default_rng(0)
    grid = ctx.grid(shape, periodic=True)
    s = ctx.stencil(grid, PULL)
    f, g = (ctx.dat(grid, rng.random((*shape, 9)), n, layout=layout, dtype=dtype) for n in "fg")
    rho = ctx.dat(grid, dtype=dtype, layout=layout)
    if not collide:
        return [Loop(stream, grid, f[s], g), Loop(stream, grid, g[s], f)], {"f": f, "g": g}
    loops = [Loop(stream_collide, grid, a[s], b, rho, omega=1.2, schedule=schedule) for a, b in ((f, g), (g, f))]
    return loops, {"f": f, "g": g, "rho": rho}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("device", DEVICES)
def test_streaming(device: str, layout: str) -> None:
    shapes = [(1, 1), (1, 5), (2, 1), (2, 2), (3, 2), (3, 3), (1, 64), (63, 70)]
    found = variants(lattice, device, {str(shape): {"shape": shape} for shape in shapes}, layout=LAYOUTS[layout])
    for shape in shapes:
        got = found[str(shape)]
        compare(got, expected(lattice, shape=shape), what=str(shape))
        f = np.random.default_rng(0).random((*shape, 9))
        g = np.stack([np.roll(f[..., k], D2Q9[k], axis=(0, 1)) for k in range(9)], axis=-1)
        np.testing.assert_array_equal(got["g"], g)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(
    ("device", "lanes", "dtype"),
    everywhere([(8, "float64"), (16, "float16"), (16, "float32")], PRECISIONS, keep=1, keep_items=1),
)
def test_stream_and_collide(device: str, layout: str, lanes: int, dtype: str) -> None:
    schedule = fl.Schedule(lanes=lanes)
    got = native(lattice, device, collide=True, layout=LAYOUTS[layout], dtype=dtype, schedule=schedule, threads=3)
    compare(got, expected(lattice, collide=True, dtype=dtype), dtype)


def sums(ctx, shape=(71, 65), layout=None, dtype="float64", ghost=0, schedule=None):
    rng = np.random.default_rng(0)
    grid = ctx.grid(shape, ghost=ghost)
    u = ctx.dat(grid, rng.random(shape), dtype=dtype, layout=layout)
    total, low, high = ctx.scalar([1.0, 2.0]), ctx.scalar(0.9), ctx.scalar(0.1)
    n, most = ctx.scalar(3, dtype="int64"), ctx.scalar(-1, dtype="int32")
    out = {"total": total, "low": low, "high": high, "n": n, "most": most}
    return [Loop(grid_sums, grid, u, *out.values(), schedule=schedule)], out


@pytest.mark.parametrize(("device", "ghost"), everywhere([0, 1], [1, 0], keep_items=1))
def test_reductions(device: str, ghost: int) -> None:
    shapes = [(1, 1), (1, 5000), (5000, 1), (71, 65), (4, 5, 6), (4200,)]
    for threads in threads_of(device, 1, 3):
        found = variants(sums, device, {str(s): {"shape": s} for s in shapes}, threads=threads, ghost=ghost)
        for shape in shapes:
            compare(found[str(shape)], expected(sums, shape=shape, ghost=ghost), what=str(shape))


def modes(ctx, layout=None, dtype="float64", ghost=0, over=None):
    rng = np.random.default_rng(0)
    shape = (71, 65)
    grid = ctx.grid(shape, ghost=ghost)
    a, c, d, e = (ctx.dat(grid, rng.random(shape), dtype=dtype, layout=layout) for _ in range(4))
    b = ctx.dat(grid, rng.random((*shape, 2)), dtype=dtype, layout=layout)
    where = grid if over is None else ctx.subset(grid, np.random.default_rng(3).random(grid.size) < 0.4)
    return [Loop(grid_modes, where, a, b, c, d, e)], {"b": b, "c": c, "d": d, "e": e}


@pytest.mark.parametrize(
    ("device", "over", "dtype"),
    everywhere(
        [(over, dtype) for over in (None, "subset") for dtype in ("float64", "float16")],
        [("subset", "float64"), (None, "float64"), (None, "float32"), (None, "float16")],
        keep_items=2,
    ),
)
def test_modes(device: str, over, dtype: str) -> None:
    """Every layout with and without ghosts, compiled as one unit."""
    choices = {(name, ghost): {"layout": LAYOUTS[name], "ghost": ghost} for name in LAYOUTS for ghost in (0, 2)}
    found = variants(modes, device, choices, over=over, dtype=dtype)
    for name, ghost in choices:
        want = expected(modes, ghost=ghost, over=over, dtype=dtype)
        compare(found[name, ghost], want, dtype, f"{name} {ghost}")


@pytest.mark.parametrize("device", DEVICES)
def test_single_legs(device: str) -> None:
    def case(ctx, layout=None):
        rng = np.random.default_rng(0)
        grid = ctx.grid((40, 30), periodic=True)
        s = ctx.stencil(grid, [(0, 1), (0, -1)])
        u, v = ctx.dat(grid, rng.random((40, 30)), layout=layout), ctx.dat(grid, layout=layout)
        return [Loop(one_leg, grid, u[s[0]], u[s[1]], v)], {"v": v}

    for layout in LAYOUTS.values():
        compare(native(case, device, layout=layout), expected(case))


@pytest.mark.parametrize("device", DEVICES)
def test_particles_on_a_grid(device: str) -> None:
    """A table map that leads to a grid with ghosts, and one that starts there."""

    @fl.kernel
    def deposit(m: Read, rho: Inc):
        rho[0] += m[0]

    @fl.kernel
    def back(rho: Read, m: Inc):
        m[0] += 2.0 * rho[0]

    def case(ctx, layout=None):
        rng = np.random.default_rng(0)
        grid, points = ctx.grid((30, 20)), ctx.set(5000, "points")
        where = ctx.map(points, grid, rng.integers(0, 600, 5000), "where")
        to = ctx.map(grid, points, rng.integers(0, 5000, 600), "to")
        m = ctx.dat(points, rng.random(5000), layout=layout)
        rho = ctx.dat(grid, rng.random((30, 20)), layout=layout)
        return [Loop(deposit, points, m, rho[where[0]]), Loop(back, grid, rho, m[to[0]])], {"rho": rho, "m": m}

    for layout in LAYOUTS.values():
        compare(native(case, device, layout=layout), expected(case))


@pytest.mark.parametrize("device", DEVICES)
def test_a_map_to_a_grid_with_ghosts(device: str) -> None:
    """Element numbers of a ghosted grid are not storage places."""

    @fl.kernel
    def deposit(m: Read, rho: Inc):
        rho[0] += m[0]

    def case(ctx):
        rng = np.random.default_rng(0)
        grid, points = ctx.grid((30, 20), ghost=1), ctx.set(500, "points")
        where = ctx.map(points, grid, rng.integers(0, 600, 500), "where")
        m, rho = ctx.dat(points, rng.random(500)), ctx.dat(grid, rng.random((30, 20)))
        return [Loop(deposit, points, m, rho[where[0]])], {"rho": rho}

    rng = np.random.default_rng(0)
    places, mass, want = rng.integers(0, 600, 500), rng.random(500), rng.random(600)
    np.add.at(want, places, mass)
    for got in (native(case, device), expected(case)):
        np.testing.assert_allclose(got["rho"].ravel(), want, rtol=1e-13)
