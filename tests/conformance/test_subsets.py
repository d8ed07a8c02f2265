"""Loops over subsets: direct, incrementing, and in place by colour."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Write

from .harness import LAYOUTS, compare, expected, native, together, with_lanes
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
@pytest.mark.parametrize(("lanes", "dtype"), [(1, "float64"), (8, "float64"), (16, "float32"), (4, "float16")])
def test_direct(layout: str, lanes: int, dtype: str) -> None:
    schedule = fl.Schedule(lanes=lanes, stream=True)
    got = native(direct_loop, layout=LAYOUTS[layout], dtype=dtype, schedule=schedule, threads=3)
    compare(got, expected(direct_loop, dtype=dtype), dtype)


@pytest.mark.parametrize("share", [-1.0, 0.001, 2.0])
def test_none_few_all(share: float) -> None:
    compare(native(direct_loop, share=share), expected(direct_loop, share=share))


def increments(ctx, schedule=None, layout=None, dtype="float64"):
    mesh = Mesh(ctx, layout, dtype)
    some = ctx.subset(mesh.edges, np.random.default_rng(8).random(mesh.edges.size) < 0.9)
    u, r = mesh.dat(mesh.nodes, 2), mesh.dat(mesh.nodes, 2)
    total, low, high, n = ctx.scalar([0.0, 0.0]), ctx.scalar(1.0), ctx.scalar(0.0), ctx.scalar(0, dtype="int64")
    loop = Loop(
        flux_and_sums, some, mesh.w, u[mesh.e2n], r[mesh.e2n], total, low, high, n, schedule=schedule
    )  # fmt: skip
    return [loop], {"r": r, "total": total, "low": low, "high": high, "n": n}


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("layout", ["aos", "soa"])
def test_increments(layout: str, lanes: int) -> None:
    names = ["serial", "block_colour", "element_colour", "block_permute", "atomic"]
    found = together(increments, with_lanes(lanes), layout=LAYOUTS[layout], threads=3)
    assert list(found) == names
    for name, got in found.items():
        compare(got, expected(increments), what=name)
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
def test_gauss_seidel(layout: str) -> None:
    for threads in (1, 3):
        compare(native(red_black, layout=LAYOUTS[layout], threads=threads, times=3), expected(red_black, 3))


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


def test_in_place_through_a_table() -> None:
    compare(native(chain_of_three, times=2), expected(chain_of_three, 2))


def test_streaming_in_place() -> None:
    """A whole map that leads every element to itself is no alias."""

    @fl.kernel
    def double(u: Write, same: Read):
        u[0] = 2.0 * same[0]

    def case(ctx):
        over = ctx.set(100, "over")
        same = ctx.map(over, over, np.arange(100), "same")
        u = ctx.dat(over, np.arange(100.0))
        return [Loop(double, over, u, u[same[0]])], {"u": u}

    compare(native(case), expected(case))
