"""Loops over grids that are moved line by line: the bits of those driven element by element, whatever their rows."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Inc, Loop, Max, Min, Read, Schedule, Write
from fluxloom.lbm.lattices import D2Q9

from .harness import rest_is_long

SHAPES = [(3, 4, 64), (2, 3, 67), (4, 1, 130), (2, 2, 5), (1, 1, 1), (1, 2, 33), (3, 2, 16), (1, 1, 200)]
"""Rows of whole lines and of some more, shorter than a line, axes of one element."""

REACH = ((0, 0, 0), (0, 0, 1), (0, 0, -1), (0, 1, 0), (1, 0, -1), (-1, -1, 1))


@fl.kernel
def spread(u: Read, a: Read, v: Write, w: Write, *, h: float):
    """Neighbours along each axis, a value of its own, and a branch; what was stored is read again."""
    total = 0.0
    for k in range(6):
        total += (k + 1) * u[k][0] - h * u[k][1]
    v[0] = total + a[0]
    v[1] = v[0] * u[0][1] if a[0] > 0.5 else v[0] - h
    w[0] = h * v[1]


@fl.kernel
def update(u: RW, most: Max, r: Inc, p: Read):
    """Changes in place."""
    u[0] += 0.25 * p[0] * u[1]
    most[0] = max(most[0], u[0])
    r[0] += u[1] - p[0]


@fl.kernel
def totals(u: Read, copy: Write, total: Inc, low: Min, high: Max, n: Inc):
    copy[0] = u[0]
    total[0] += u[0]
    total[1] += u[0] * u[0]
    low[0] = min(low[0], u[0])
    high[0] = max(high[0], u[0])
    if u[0] > 0.5:
        n[0] += 1


@fl.kernel
def push(f: Read, out: Write, *, omega: float):
    mean = 0.0
    for k in range(9):
        mean += f[k] / 9.0
    for k in range(9):
        out[k][k] = f[k] + omega * (mean - f[k])


@fl.kernel
def odd(f: RW, *, omega: float):
    """In place among neighbours: reads slot k' of neighbour k', writes slot k of neighbour k."""
    for k in range(1, 9, 2):
        there = f[k][k]
        f[k][k] = omega * f[k + 1][k + 1]
        f[k + 1][k + 1] = there


def moved(stream: bool) -> Schedule:
    """Return a schedule without contraction, so that the arithmetic is the same."""
    return Schedule(stream=stream, deterministic="global")


def lines(loop: Loop) -> bool:
    """Whether a loop is driven line by line."""
    return "line by line" in loop.source


def spread_loop(ctx: fl.Context, shape: tuple[int, ...], dtype: str, *, stream: bool, periodic=True, ghost=0):
    rng = np.random.default_rng(0)
    grid = ctx.grid(shape, periodic=periodic, ghost=ghost)
    offsets = [o[3 - len(shape) :] for o in REACH]
    s = ctx.stencil(grid, offsets)
    u = ctx.dat(grid, rng.random((*shape, 2)), dtype=dtype, layout=fl.SoA())
    if any(grid.ghost):
        places = u.storage()
        places[...] = np.random.default_rng(4).random(places.shape)
    a = ctx.dat(grid, rng.random(shape), dtype=dtype)
    v = ctx.dat(grid, shape=(2,), dtype=dtype, layout=fl.SoA())
    w = ctx.dat(grid, dtype=dtype)
    return Loop(spread, grid, u[s], a, v, w, h=0.3, schedule=moved(stream)), (v, w)


@pytest.mark.parametrize("dtype", rest_is_long(["float32", "float16", "float64"], keep=1))
def test_bits(dtype: str) -> None:
    for threads in (1, 2):
        ctx = fl.Context("cpu", threads=threads)
        for shape in SHAPES:
            new, got = spread_loop(ctx, shape, dtype, stream=True)
            old, want = spread_loop(ctx, shape, dtype, stream=False)
            assert lines(new)
            assert not lines(old)
            new()
            old()
            for left, right in zip(got, want, strict=True):
                assert np.array_equal(left.read(), right.read()), (shape, threads)


@pytest.mark.parametrize("shape", [(40,), (6, 37), (5, 64)])
def test_reference(shape: tuple[int, ...]) -> None:
    new, got = spread_loop(fl.Context("cpu"), shape, "float64", stream=True)
    plain, want = spread_loop(fl.Context("reference"), shape, "float64", stream=True)
    new()
    plain()
    for left, right in zip(got, want, strict=True):
        np.testing.assert_allclose(left.read(), right.read(), rtol=1e-13)


@pytest.mark.parametrize("length", [64, 35, 7])
def test_ghosts(length: int) -> None:
    options = {"periodic": (True, True, False), "ghost": (0, 0, 2)}
    new, got = spread_loop(fl.Context("cpu"), (2, 3, length), "float64", stream=True, **options)
    old, want = spread_loop(fl.Context("cpu"), (2, 3, length), "float64", stream=False, **options)
    assert lines(new)
    new()
    old()
    for left, right in zip(got, want, strict=True):
        assert np.array_equal(left.read(), right.read())


@pytest.mark.parametrize("dtype", rest_is_long(["float64", "float32", "float16"], keep=1))
def test_in_place(dtype: str) -> None:
    """Values that stay, largest values and increments of the element itself."""
    found = []
    for stream in (True, False):
        ctx, rng = fl.Context("cpu"), np.random.default_rng(1)
        grid = ctx.grid((5, 77), periodic=True)
        u = ctx.dat(grid, rng.random((5, 77, 2)), dtype=dtype, layout=fl.SoA())
        most, r, p = (ctx.dat(grid, rng.random((5, 77)), dtype=dtype) for _ in range(3))
        loop = Loop(update, grid, u, most, r, p, schedule=moved(stream))
        assert lines(loop) == stream
        loop()
        loop()
        found.append([d.read() for d in (u, most, r)])
    for left, right in zip(*found, strict=True):
        assert np.array_equal(left, right)


def test_reductions() -> None:
    """Sums to rounding and the same for any number of threads; counts and extremes to the bit."""
    values = np.random.default_rng(2).random((9, 101))
    sums = []
    for threads in (1, 2):
        ctx = fl.Context("cpu", threads=threads)
        grid = ctx.grid(values.shape, periodic=True)
        u, copy = ctx.dat(grid, values), ctx.dat(grid)
        total, low = ctx.scalar(np.zeros(2), "total"), ctx.scalar(1.0, "low")
        high, n = ctx.scalar(0.0, "high"), ctx.scalar(0, "n", dtype="int64")
        loop = Loop(totals, grid, u, copy, total, low, high, n, schedule=Schedule(stream=True))
        assert lines(loop)
        loop()
        assert np.array_equal(copy.read(), values)
        assert (low.value, high.value, n.value) == (values.min(), values.max(), np.count_nonzero(values > 0.5))
        np.testing.assert_allclose(total.value, [values.sum(), (values**2).sum()], rtol=1e-14)
        sums.append(total.value)
    assert np.array_equal(*sums)


@pytest.mark.parametrize("shape", [(6, 64), (5, 43), (3, 9)])
@pytest.mark.parametrize("dtype", rest_is_long(["float16", "float64"], keep=1))
def test_written_neighbours(shape: tuple[int, ...], dtype: str) -> None:
    """Push streaming and the in-place scheme, in a chain."""
    found = []
    for stream in (True, False):
        ctx = fl.Context("cpu")
        grid = ctx.grid(shape, periodic=True)
        s = ctx.stencil(grid, D2Q9.velocities)
        f = ctx.dat(grid, np.random.default_rng(3).random((*shape, 9)), dtype=dtype, layout=fl.SoA())
        out = ctx.dat(grid, shape=(9,), dtype=dtype, layout=fl.SoA())
        loops = [
            Loop(push, grid, f, out[s], omega=0.7, schedule=moved(stream)),
            Loop(odd, grid, out[s], omega=0.9, schedule=moved(stream)),
        ]
        assert [lines(loop) for loop in loops] == [stream] * 2
        chain = Chain(loops, name="steps")
        chain()
        found.append(out.read())
    assert np.array_equal(*found)
