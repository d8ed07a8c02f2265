"""Loops over subsets of grids through stencils, and subsets whose members change."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Inc, Loop, Max, Min, Read, Write
from fluxloom.lbm.lattices import D2Q9, D3Q19

from .harness import (
    DEVICES,
    LAYOUTS,
    compare,
    context,
    everywhere,
    expected,
    native,
    threads_of,
    variants,
)  # fmt: skip


@fl.kernel
def five_points(u: Read, v: Write, *, h: float):
    v[0] = u[0] + h * (u[1] + u[2] + u[3] + u[4] - 4.0 * u[0])


@fl.kernel
def pull9(f: Read, out: RW, total: Inc, most: Max, n: Inc, *, omega: float):
    """Pull, relax towards the mean, and reduce; what is written stays below a bound."""
    mean = 0.0
    for k in range(9):
        mean += f[k][k] / 9.0
    for k in range(9):
        if out[k] < 0.9:
            out[k] = f[k][k] + omega * (mean - f[k][k])
    total[0] += mean
    most[0] = max(most[0], mean)
    n[0] += 1


@fl.kernel
def odd19(f: RW, *, omega: float):
    for k in range(1, 19, 2):
        g = f[k + 1][k + 1]
        f[k + 1][k + 1] = f[k][k] * omega
        f[k][k] = g
    f[0][0] *= omega


@fl.kernel
def push9(f: Read, out: Write):
    for k in range(9):
        out[k][k] = f[k] + k


@fl.kernel
def count(n: Inc, u: RW, total: Inc):
    n[0] += 1
    u[0] += 1.0
    total[0] += u[0]


FIVE = [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)]


def smooth(ctx, layout=None, dtype="float64", shape=(40, 33), periodic=True, ghost=0, share=0.3, capacity=0):
    rng = np.random.default_rng(0)
    grid = ctx.grid(shape, periodic=periodic, ghost=ghost)
    s = ctx.stencil(grid, FIVE)
    u, v = (ctx.dat(grid, rng.random(shape), dtype=dtype, layout=layout) for _ in range(2))
    if any(grid.ghost) and not isinstance(layout, fl.Blocked):
        full = u.storage()
        full[0], full[:, 0], full[-1], full[:, -1] = 1.0, 2.0, 3.0, 4.0
    some = ctx.subset(grid, rng.random(shape) < share, capacity=capacity or None)
    return [Loop(five_points, some, u[s], v, h=0.2)], {"u": u, "v": v}


PRECISIONS = ["float64", "float32", "float16"]


GHOSTS = everywhere(
    ghosts := [(1, False), ((1, 3), (False, True)), (2, (True, False))], ghosts, keep=2, keep_items=0
)


@pytest.mark.parametrize(("device", "ghost", "periodic"), GHOSTS)
def test_ghosts(device: str, ghost, periodic) -> None:
    options = {"ghost": ghost, "periodic": periodic}
    compare(native(smooth, device, layout=fl.SoA(), **options), expected(smooth, **options))


SHAPES = [(1, 1), (1, 2), (2, 1), (2, 2), (1, 9), (9, 1), (3, 3), (2, 67), (67, 70)]


@pytest.mark.parametrize(("device", "dtype"), everywhere(PRECISIONS, PRECISIONS, keep=1, keep_items=1))
def test_sizes(device: str, dtype: str) -> None:
    """Thin lattices; no element, some, and all of them; every layout."""
    choices = {(s, share, "aos"): {"shape": s, "share": share} for s in SHAPES for share in (0.0, 0.4, 1.0)}
    choices |= {((40, 33), 0.3, name): {"layout": layout} for name, layout in LAYOUTS.items()}
    found = variants(smooth, device, choices, dtype=dtype)
    for (shape, share, layout), got in found.items():
        compare(got, expected(smooth, shape=shape, share=share, dtype=dtype), dtype, f"{shape} {share} {layout}")


ROOMS = [("aos", 0), ("soa", 1500)]
"""Layouts with the capacities of the subset."""


def reduced(ctx, layout=None, dtype="float64", shape=(37, 43), share=0.7, capacity=0):
    rng = np.random.default_rng(0)
    grid = ctx.grid(shape, periodic=True)
    s = ctx.stencil(grid, D2Q9.sources)
    f, out = (ctx.dat(grid, rng.random((*shape, 9)), dtype=dtype, layout=layout) for _ in range(2))
    some = ctx.subset(grid, rng.random(grid.size) < share, capacity=capacity or None)
    total, most, n = ctx.scalar(1.0), ctx.scalar(0.0), ctx.scalar(5, dtype="int64")
    loops = [Loop(pull9, some, f[s], out, total, most, n, omega=0.7)]
    return loops, {"out": out, "total": total, "most": most, "n": n}


@pytest.mark.parametrize(("device", "dtype"), everywhere(PRECISIONS, PRECISIONS, keep=1, keep_items=0))
def test_reductions(device: str, dtype: str) -> None:
    want = expected(reduced, dtype=dtype)
    choices = {(name, room): {"layout": LAYOUTS[name], "capacity": room} for name, room in ROOMS}
    for threads in threads_of(device, 1, 2):
        for choice, got in variants(reduced, device, choices, dtype=dtype, threads=threads).items():
            compare(got, want, dtype, str(choice))


@fl.kernel
def some_components(u: Read, total: Inc, least: Min):
    total[2] += u[1]
    least[0] = min(least[0], u[0])


def partly(ctx, listed: bool = False):
    grid = ctx.grid((5, 30), periodic=True)
    s, u = ctx.stencil(grid, [(0, 0), (0, 1)]), ctx.dat(grid, np.arange(150.0).reshape(5, 30))
    total, least = ctx.scalar([1.0, 2.0, 3.0, 4.0]), ctx.scalar([-1.0, 5.0, 7.0])
    over = ctx.subset(grid, np.arange(0, 150, 2)) if listed else grid
    return [Loop(some_components, over, u[s], total, least)], {"total": total, "least": least}


@pytest.mark.parametrize("device", everywhere(keep_items=0))
def test_reductions_of_some_components(device: str) -> None:
    """Components that a kernel does not touch stay as they are."""
    found = variants(partly, device, {listed: {"listed": listed} for listed in (False, True)})
    for listed, got in found.items():
        compare(got, expected(partly, listed=listed), what=str(listed))


def written(ctx, layout=None, shape=(5, 6, 40), share=0.5):
    rng = np.random.default_rng(0)
    grid = ctx.grid(shape, periodic=True)
    lattice = D2Q9 if len(shape) == 2 else D3Q19
    f, out = (ctx.dat(grid, rng.random((*shape, lattice.q)), layout=layout) for _ in range(2))
    s = ctx.stencil(grid, lattice.velocities)
    some = ctx.subset(grid, rng.random(shape) < share)
    if lattice is D3Q19:
        return [Loop(odd19, some, f[s], omega=0.5)], {"f": f}
    return [Loop(push9, some, f, out[s])], {"out": out}


@pytest.mark.parametrize("device", DEVICES)
def test_writes(device: str) -> None:
    """Slots of elements outside of the subset, to which legs lead, are written; all others stay."""
    shapes = [(2, 2), (13, 70), (1, 2, 3), (3, 4, 20)]
    choices = {(shape, name): {"shape": shape, "layout": LAYOUTS[name]} for shape in shapes for name in ("aos", "soa")}
    for (shape, layout), got in variants(written, device, choices).items():
        compare(got, expected(written, shape=shape), what=f"{shape} {layout}")


def moving(ctx, chained: bool = False, direct: bool = False):
    """Loops over a subset whose members change between the calls; what they leave after each call."""
    rng = np.random.default_rng(0)
    grid = ctx.grid((30, 60), periodic=True)
    s = ctx.stencil(grid, FIVE)
    u, v, w = (ctx.dat(grid, rng.random((30, 60))) for _ in range(3))
    n, total = ctx.scalar(0, dtype="int64"), ctx.scalar(0.0)
    some = ctx.subset(grid, [3, 5], "some", capacity=1500)
    kept = [Loop(count, some, n, w, total)]
    if not direct:
        kept += [Loop(five_points, some, u[s], v, h=0.2), Loop(five_points, some, v[s], u, h=0.1)]
    call = Chain(kept) if chained else lambda: [loop() for loop in kept]
    found = []
    for members in (None, [], rng.random(1800) < 0.7, [7], rng.integers(0, 1800, 900), [], [0, 1799]):
        if members is not None:
            some.assign(members)
        call()
        call()
        found.append(np.concatenate([x.read().ravel() for x in (u, v, w)] + [[n.value, total.value]]))
        assert some.size == len(some.indices) == len(np.unique(some.indices))
    return np.array(found)


@pytest.mark.parametrize(
    ("device", "chained", "direct"),
    everywhere([(True, False), (False, True), (False, False)], [(True, False), (False, True)], keep=2, keep_items=1),
)  # fmt: skip
def test_members_change(device: str, chained: bool, direct: bool) -> None:
    want = moving(fl.Context("reference"), direct=direct)
    for threads in threads_of(device, 1, 2):
        got = moving(context(device, threads=threads), chained, direct)
        np.testing.assert_allclose(got, want, rtol=1e-13)
