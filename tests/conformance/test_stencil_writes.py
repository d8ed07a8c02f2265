"""Writes through stencils: push streaming and the in-place scheme, every device against the reference."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Inc, Loop, Read, Write
from fluxloom.lbm.lattices import D2Q9, D3Q19, Lattice

from .harness import (
    DEVICES,
    LAYOUTS,
    compare,
    context,
    everywhere,
    expected,
    native,
    rest_is_long,
    variants,
)  # fmt: skip


@fl.kernel
def push9(f: Read, out: Write):
    for k in range(9):
        out[k][k] = f[k]


@fl.kernel
def push_collide9(f: Read, out: Write, total: Inc, *, omega: float):
    """Relax towards the mean and push; the sum is reduced beside."""
    mean = 0.0
    for k in range(9):
        mean += f[k] / 9.0
    for k in range(9):
        out[k][k] = f[k] + omega * (mean - f[k])
    total[0] += 9.0 * mean


@fl.kernel
def odd9(f: RW, *, omega: float):
    """The in-place step among neighbours: reads slot k' of neighbour k', writes slot k of neighbour k."""
    g = fl.zeros(9)
    mean = 0.0
    g[0] = f[0][0]
    for k in range(1, 9, 2):
        g[k] = f[k + 1][k + 1]
        g[k + 1] = f[k][k]
    for k in range(9):
        mean += g[k] / 9.0
    for k in range(9):
        f[k][k] = g[k] + omega * (mean - g[k])


@fl.kernel
def even9(f: RW, *, omega: float):
    """The in-place step in a cell's own memory: what goes along k waits in slot k'."""
    g = fl.zeros(9)
    mean = 0.0
    for k in range(9):
        g[k] = f[k]
        mean += g[k] / 9.0
    f[0] = g[0] + omega * (mean - g[0])
    for k in range(1, 9, 2):
        f[k + 1] = g[k] + omega * (mean - g[k])
        f[k] = g[k + 1] + omega * (mean - g[k + 1])


@fl.kernel
def odd19(f: RW, *, omega: float):
    """The same in three dimensions."""
    g = fl.zeros(19)
    mean = 0.0
    g[0] = f[0][0]
    for k in range(1, 19, 2):
        g[k] = f[k + 1][k + 1]
        g[k + 1] = f[k][k]
    for k in range(19):
        mean += g[k] / 19.0
    for k in range(19):
        f[k][k] = g[k] + omega * (mean - g[k])


@fl.kernel
def rotate(left: RW, right: Write, here: Read, *, bound: float):
    """One leg alone: what is there is changed under a condition, and another dat is written."""
    if here[0] > bound:
        left[1] = left[0] + here[1]
    right[0] = here[1]
    right[1] = 2.0 * here[0]


def streams(ctx, shape=(13, 70), layout=None, dtype="float64", kernel="push"):
    rng = np.random.default_rng(0)
    lattice: Lattice = D2Q9 if len(shape) == 2 else D3Q19
    grid = ctx.grid(shape, periodic=True)
    velocities = ctx.stencil(grid, lattice.velocities)
    f, out = (ctx.dat(grid, rng.random((*shape, lattice.q)), n, layout=layout, dtype=dtype) for n in ("f", "out"))
    total = ctx.scalar(0.0, "total")
    if kernel == "push":
        return [Loop(push9, grid, f, out[velocities])], {"out": out}
    if kernel == "collide":
        return [Loop(push_collide9, grid, f, out[velocities], total, omega=0.7)], {"out": out, "total": total}
    return [Loop(odd9 if lattice is D2Q9 else odd19, grid, f[velocities], omega=0.7)], {"f": f}


BOTH, ONE = ("collide", "in-place"), ("in-place",)
STEPS = [("float64", BOTH, "aos"), ("float16", BOTH, "soa"), ("float32", ONE, "soa"), ("float64", ONE, "blocked"),
         ("float32", BOTH, "blocked"), ("float64", BOTH, "soa"), ("float32", BOTH, "aos"),
         ("float16", BOTH, "aos")]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "dtype", "kernels", "layout"), everywhere(STEPS, STEPS[2:7], keep=3, keep_items=1)
)
def test_steps(device: str, dtype: str, kernels: tuple[str, ...], layout: str) -> None:
    choices = {k: {"kernel": k} for k in kernels}
    found = variants(streams, device, choices, dtype=dtype, layout=LAYOUTS[layout])
    for kernel, got in found.items():
        compare(got, expected(streams, kernel=kernel, dtype=dtype), dtype, f"{kernel} {layout}")


SHAPES = [(1, 1), (1, 2), (2, 1), (2, 2), (1, 9), (9, 1), (3, 3), (2, 67), (67, 3), (5, 130)]


@pytest.mark.parametrize("device", DEVICES)
def test_thin_lattices(device: str) -> None:
    """Where ends meet, legs lead to one element, but to components of their own."""
    choices = {("push", shape): {"kernel": "push", "shape": shape} for shape in SHAPES}
    choices |= {("in-place", s): {"kernel": "in-place", "shape": s} for s in [*SHAPES, (1, 2, 3), (3, 4, 19)]}
    found = variants(streams, device, choices, layout=fl.SoA())
    for (kernel, shape), got in found.items():
        compare(got, expected(streams, shape=shape, kernel=kernel), what=f"{kernel} {shape}")


def test_push_is_a_shift() -> None:
    got = native(streams, "cpu", kernel="push")
    f = np.random.default_rng(0).random((13, 70, 9))
    want = np.stack([np.roll(f[..., k], D2Q9.velocities[k], axis=(0, 1)) for k in range(9)], axis=-1)
    np.testing.assert_array_equal(got["out"], want)


@pytest.mark.parametrize("device", everywhere(keep_items=0))
@pytest.mark.parametrize("shape", rest_is_long([(6, 21), ((1, 2),), ((2, 1),)], keep=1))
def test_in_place_is_push(device: str, shape: tuple[int, int]) -> None:
    """Two steps in place leave what two steps of push streaming leave, where those leave it."""
    ctx = context(device, threads=2)
    grid = ctx.grid(shape, periodic=True)
    velocities = ctx.stencil(grid, D2Q9.velocities)
    start = np.random.default_rng(0).random((*shape, 9))
    a, b, c = (ctx.dat(grid, start, layout=fl.SoA()) for _ in range(3))
    total = ctx.scalar()
    pushes = [Loop(push_collide9, grid, x, y[velocities], total, omega=0.7) for x, y in ((a, b), (b, a))]
    chain = Chain([*pushes, Loop(even9, grid, c, omega=0.7), Loop(odd9, grid, c[velocities], omega=0.7)])
    for _ in range(2):
        chain()
    np.testing.assert_allclose(c.read(), a.read(), rtol=1e-13)
    assert not np.allclose(c.read(), start, rtol=1e-3)


def one_leg(ctx, layout=None):
    rng = np.random.default_rng(0)
    grid = ctx.grid((7, 40), periodic=(False, True))
    s = ctx.stencil(grid, [(0, 1), (0, -2)])
    here, left, right = (ctx.dat(grid, rng.random((7, 40, 2)), layout=layout) for _ in range(3))
    loops = [Loop(rotate, grid, left[s[1]], right[s[0]], here, bound=0.4)]
    return loops, {"left": left, "right": right}


@pytest.mark.parametrize("device", DEVICES)
def test_single_legs(device: str) -> None:
    found = variants(one_leg, device, {name: {"layout": layout} for name, layout in LAYOUTS.items()})
    for name, got in found.items():
        compare(got, expected(one_leg), what=name)
