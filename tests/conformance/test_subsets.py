"""Loops over subsets: direct, incrementing, and in place by colour."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Write

from .harness import (
    DEVICES,
    LAYOUTS,
    compare,
    everywhere,
    expected,
    native,
    schedules,
    threads_of,
    together,
)  # fmt: skip
from .kernels import flux_and_sums
from .test_races import Mesh


@fl.kernel
def direct(a: Read, b: RW, total: Inc):
    b[0] = b[0] * 0.5 + a[1]
    total[0] += a[0]


def direct_loop(ctx, layout=None, dtype="float64", schedule=None, share=0.4, size=9000):
    rng = np.random.default_rng(0)
    over = ctx.set(size, "over")
    some = ctx.subset(over, rng.random(size) < share)
    a = ctx.dat(over, rng.random((size, 2)), dtype=dtype, layout=layout)
    b = ctx.dat(over, rng.random(size), dtype=dtype, layout=layout)
    total = ctx.scalar(0.0)
    return [Loop(direct, some, a, b, total, schedule=schedule)], {"b": b, "total": total}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(
    ("device", "lanes", "dtype"),
    everywhere(
        [(1, "float64"), (8, "float64"), (16, "float32"), (4, "float16")],
        [(0, "float64"), (0, "float32"), (0, "float16")],
        keep_items=1,
    ),
)
def test_direct(device: str, layout: str, lanes: int, dtype: str) -> None:
    schedule = fl.Schedule(lanes=lanes, stream=True)
    got = native(direct_loop, device, layout=LAYOUTS[layout], dtype=dtype, schedule=schedule, threads=3)
    compare(got, expected(direct_loop, dtype=dtype), dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("share", [-1.0, 0.001, 2.0])
def test_none_few_all(device: str, share: float) -> None:
    compare(native(direct_loop, device, share=share), expected(direct_loop, share=share))


def increments(ctx, schedule=None, layout=None, dtype="float64"):
    mesh = Mesh(ctx, layout, dtype)
    some = ctx.subset(mesh.edges, np.random.default_rng(8).random(mesh.edges.size) < 0.9)
    u, r = mesh.dat(mesh.nodes, 2), mesh.dat(mesh.nodes, 2)
    total, low, high, n = ctx.scalar([0.0, 0.0]), ctx.scalar(1.0), ctx.scalar(0.0), ctx.scalar(0, dtype="int64")
    loop = Loop(
        flux_and_sums, some, mesh.w, u[mesh.e2n], r[mesh.e2n], total, low, high, n, schedule=schedule
    )  # fmt: skip
    return [loop], {"r": r, "total": total, "low": low, "high": high, "n": n}


@pytest.mark.parametrize(
    ("device", "lanes", "layout"),
    everywhere([(n, a) for n in (1, 8) for a in ("aos", "soa")], [(0, "aos"), (0, "soa")], keep_items=1),
)
def test_increments(device: str, layout: str, lanes: int) -> None:
    found = together(increments, schedules(device, lanes=lanes), device, layout=LAYOUTS[layout], threads=3)
    assert set(found) == set(schedules(device, without=("gather", "two_pass")))
    for name, got in found.items():
        compare(got, expected(increments), what=name)
    if device == "cpu":
        compare(native(increments), expected(increments))


# ----------------------------------------------------------------------------- in place, by colours


@fl.kernel
def gauss_seidel(u: RW, near: Read, f: Read):
    total = 0.0
    for j in range(len(near)):
        total += near[j]
    u[0] = 0.25 * (f[0] + total)


def red_black(ctx, size=72, layout=None):
    """Five-point Gauss-Seidel on a box, in place: red elements read black ones only."""
    rng = np.random.default_rng(0)
    index = np.arange(size * size).reshape(size, size)
    pairs = np.concatenate([
        np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], 1),
        np.stack([index[:-1].ravel(), index[1:].ravel()], 1),
    ])  # fmt: skip
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=size * size))])
    points = ctx.set(size * size, "points")
    near = ctx.ragged(points, points, offsets, pairs[:, 1], "near")
    black = (index // size + index % size).ravel() % 2 == 1
    u, f = ctx.dat(points, rng.random(size * size), layout=layout), ctx.dat(points, rng.random(size * size))
    colours = [ctx.subset(points, mask) for mask in (~black, black)]
    return [Loop(gauss_seidel, c, u, u[near], f) for c in colours], {"u": u}


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("device", DEVICES)
def test_gauss_seidel(device: str, layout: str) -> None:
    for threads in threads_of(device, 1, 3):
        compare(native(red_black, device, layout=LAYOUTS[layout], threads=threads, times=3), expected(red_black, 3))


@fl.kernel
def relax(u: RW, ends: Read):
    u[0] = 0.5 * u[0] + 0.25 * (ends[0] + ends[1])


def chain_of_three(ctx):
    """In place through a table map; some elements see themselves."""
    n = 5001
    points = ctx.set(n, "points")
    table = np.stack([np.maximum(np.arange(n) - 1, 0), np.minimum(np.arange(n) + 1, n - 1)], 1)
    through = ctx.map(points, points, table, "near")
    u = ctx.dat(points, np.random.default_rng(0).random(n))
    colours = [ctx.subset(points, np.arange(n) % 2 == k) for k in range(2)]
    return [Loop(relax, c, u, u[through]) for c in colours], {"u": u}


@pytest.mark.parametrize("device", DEVICES)
def test_in_place_through_a_table(device: str) -> None:
    compare(native(chain_of_three, device, times=2), expected(chain_of_three, 2))


@pytest.mark.parametrize("device", DEVICES)
def test_streaming_in_place(device: str) -> None:
    """A whole map that leads every element to itself is no alias."""

    @fl.kernel
    def double(u: Write, same: Read):
        u[0] = 2.0 * same[0]

    def case(ctx):
        over = ctx.set(100, "over")
        same = ctx.map(over, over, np.arange(100), "same")
        u = ctx.dat(over, np.arange(100.0))
        return [Loop(double, over, u, u[same[0]])], {"u": u}

    compare(native(case, device), expected(case))
