"""Stencils that turn round at the ends of the last axis: every device against the reference, and against arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError, LoopError
from fluxloom.lbm.lattices import D2Q9, D3Q19, Lattice

from .harness import LAYOUTS, Built, build, compare, context, everywhere, expected, native, rest_is_long

OPEN = (True, True, False)
"""Rows have ends."""


@fl.kernel
def pull9(f: Read, out: Write, total: Inc, *, omega: float):
    mean = 0.0
    for k in range(9):
        mean += f[k][k] / 9.0
    for k in range(9):
        out[k] = f[k][k] + omega * (mean - f[k][k])
    total[0] += mean


@fl.kernel
def pull19(f: Read, out: Write, *, omega: float):
    mean = 0.0
    for k in range(19):
        mean += f[k][k] / 19.0
    for k in range(19):
        out[k] = f[k][k] + omega * (mean - f[k][k])


@fl.kernel
def push9(f: Read, out: Write, *, omega: float):
    mean = 0.0
    for k in range(9):
        mean += f[k] / 9.0
    for k in range(9):
        out[k][k] = f[k] + omega * (mean - f[k])


@fl.kernel
def odd9(f: RW, *, omega: float):
    """In place among neighbours: reads slot k' of neighbour k', writes slot k of neighbour k."""
    for k in range(1, 9, 2):
        there = f[k][k]
        f[k][k] = omega * f[k + 1][k + 1]
        f[k + 1][k + 1] = there


@fl.kernel
def far(u: Read, v: Write):
    """Two components through each of two legs that lead one and two elements along the row."""
    v[0] = u[0][0] - 2.0 * u[0][1]
    v[1] = u[1][1] - 3.0 * u[1][0]


@fl.kernel
def one(u: Read, v: Write):
    """Through one leg alone."""
    v[1] = 3.0 * u[0]
    v[0] = u[0] + u[1]


KINDS = ("pull", "push", "in-place", "far", "listed")


def turning(
    ctx: fl.Context, shape: tuple[int, ...] = (5, 21), kind: str = "pull", dtype: str = "float64", layout: Any = None,
    schedule: Any = None, comm: Comm | None = None, cut: Any = None,
) -> Any:  # fmt: skip
    rng = np.random.default_rng(1)
    lattice: Lattice = D2Q9 if len(shape) == 2 else D3Q19
    grid = ctx.grid(shape, periodic=OPEN[-len(shape) :], cut=cut)
    named: dict[str, Any] = {"dtype": dtype, "layout": layout}
    if kind == "far":
        u, v = (ctx.dat(grid, grid.local(rng.random((*shape, 2)), (2,)), **named) for _ in range(2))
        s = ctx.stencil(grid, [(0, -1), (0, 2)], mirror=(1, 0))
        return [Loop(far, grid, u[s], v, schedule=schedule), Loop(one, grid, v[s[0]], u, schedule=schedule)], {
            "u": u,
            "v": v,
        }
    a, b = (ctx.dat(grid, grid.local(rng.random((*shape, lattice.q)), (lattice.q,)), **named) for _ in range(2))
    behind = ctx.stencil(grid, lattice.sources, mirror=lattice.opposite)
    ahead = ctx.stencil(grid, lattice.velocities, mirror=lattice.opposite)
    both: dict[str, Any] = {"omega": 0.7, "schedule": schedule}
    if kind == "push":
        return [Loop(push9, grid, a, b[ahead], **both)], {"b": b}
    if kind == "in-place":
        return [Loop(odd9, grid, a[ahead], **both)], {"a": a}
    if lattice is D3Q19:
        return [Loop(pull19, grid, a[behind], b, **both)], {"b": b}
    total = ctx.scalar(0.0, "total", dtype="float32" if dtype != "float64" else dtype)
    over = ctx.subset(grid, grid.local(rng.random(shape) < 0.6).ravel()) if kind == "listed" else grid
    return [Loop(pull9, over, a[behind], b, total, **both)], {"b": b, "total": total}


STORED = [("float64", "soa"), ("float32", "aos"), ("float16", "soa"), ("float64", "blocked")]
CPU = [(kind, dtype, layout) for kind in KINDS for dtype, layout in STORED]
ITEMS = [("pull", "float32", "soa"), ("in-place", "float32", "soa"), ("push", "float64", "aos"),
         ("far", "float32", "blocked"), ("listed", "float64", "soa"), ("pull", "float16", "aos"),
         ("far", "float64", "aos"), ("in-place", "float16", "blocked")]  # fmt: skip
SHAPES = [(5, 21), (3, 1), (1, 2), (4, 64), (2, 131)]


@pytest.mark.parametrize(("device", "kind", "dtype", "layout"), everywhere(CPU, ITEMS, keep_items=4))
def test_kinds(device: str, kind: str, dtype: str, layout: str) -> None:
    for shape in SHAPES if device == "cpu" else SHAPES[:1]:
        if kind == "far" and shape[-1] < 2:
            continue
        options = {"shape": shape, "kind": kind, "dtype": dtype}
        compare(
            native(turning, device, layout=LAYOUTS[layout], **options), expected(turning, **options), dtype, f"{shape}"
        )


@pytest.mark.parametrize("kind", ["pull", "push", "in-place"])
@pytest.mark.parametrize("dtype", rest_is_long(["float16", "float32"], keep=1))
def test_line_by_line(kind: str, dtype: str) -> None:
    """Past the caches, where rows are cut into lines."""
    for shape in [*SHAPES, (1, 16), (2, 33), (3, 7)]:
        schedule = fl.Schedule(stream=True, deterministic="global")
        built = build(
            turning, fl.Context("cpu"), shape=shape, kind=kind, dtype=dtype, layout=fl.SoA(), schedule=schedule
        )
        assert "line by line" in built.steps[0].source
        compare(built.run(), expected(turning, shape=shape, kind=kind, dtype=dtype), dtype, f"{shape}")


SITES = [("far", "float32", 2, (4, 6)), ("in-place", "float32", 2, (3, 8)), ("push", "float16", 4, (3, 8)),
         ("pull", "float16", 4, (2, 3, 4)), ("pull", "float32", 4, (2, 3, 8)),
         ("far", "float32", 4, (3, 4))]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "kind", "dtype", "sites", "shape"),
    everywhere([], SITES, keep_items=2),
)
def test_several_sites(device: str, kind: str, dtype: str, sites: int, shape: tuple[int, ...]) -> None:
    options = {"shape": shape, "kind": kind, "dtype": dtype}
    ctx = context(device, dtype=dtype)
    built = build(turning, ctx, layout=fl.SoA(), schedule=fl.Schedule(sites=sites), **options)
    got = built.run()
    if ctx.device.items:
        assert [loop.schedule.sites for loop in built.steps] == [sites] * len(built.steps)
    compare(got, expected(turning, **options), dtype)


def bounced(f: np.ndarray) -> np.ndarray:
    """Return what arrives at each cell of a plane: from neighbours, from the cell itself at ends of rows."""
    found = np.stack([np.roll(f[..., k], D2Q9.velocities[k], axis=(0, 1)) for k in range(9)], axis=-1)
    for k, (_, along) in enumerate(D2Q9.velocities):
        if along:
            end = 0 if along > 0 else -1
            found[:, end, k] = f[:, end, D2Q9.opposite[k]]
    return found


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_populations_come_back(device: str) -> None:
    """With no relaxation what arrives is told by arithmetic; pull and push are inverse to each other's question."""
    ctx = fl.Context(device)
    f = np.random.default_rng(3).random((4, 9, 9))
    grid = ctx.grid((4, 9), periodic=(True, False))
    a, b, c = (ctx.dat(grid, f) for _ in range(3))
    total = ctx.scalar()
    Loop(pull9, grid, a[ctx.stencil(grid, D2Q9.sources, mirror=D2Q9.opposite)], b, total, omega=0.0)()
    Loop(push9, grid, a, c[ctx.stencil(grid, D2Q9.velocities, mirror=D2Q9.opposite)], omega=0.0)()
    np.testing.assert_array_equal(b.read(), bounced(f))
    np.testing.assert_array_equal(c.read(), bounced(f))


CUTS = [((1, 3), False, 13), ((1, 3), True, 131), ((2, 2), True, 40)]


@pytest.mark.parametrize(("cut", "stream", "length"), rest_is_long(CUTS, keep=2))
def test_ranks(cut: tuple[int, int], stream: bool, length: int) -> None:
    """Only ranks at the ends of rows turn; the middle one meets its neighbours. Rows are moved line by line, or not."""

    def case(comm: Comm) -> tuple[Any, Any]:
        ctx = fl.Context("cpu", comm=comm, threads=1, tuning=False)
        schedule = fl.Schedule(stream=stream)
        steps, outputs = turning(ctx, (6, length), "pull", layout=fl.SoA(), cut=cut, schedule=schedule)
        assert ("line by line" in steps[0].source) == stream
        return outputs["b"].set.window, Built(tuple(steps), outputs).run(2)["b"]

    want = build(turning, fl.Context("reference"), shape=(6, length)).run(2)["b"]
    for window, got in run_threads(cut[0] * cut[1], case):
        np.testing.assert_allclose(got, want[window], rtol=1e-13)


def test_refusals() -> None:
    ctx = context("cpu")
    rows, joined = ctx.grid((4, 6), periodic=(True, False)), ctx.grid((4, 6), periodic=True)
    with pytest.raises(DatError, match="it turns round at the ends of the last axis: no periodic one, no ghosts"):
        ctx.stencil(joined, [(0, 1)], mirror=(0,))
    with pytest.raises(DatError, match=r"leaves the box; make the axis periodic"):
        ctx.stencil(ctx.grid((4, 6)), [(1, 0)], mirror=(0,))
    wrongs: list[Any] = [(0, 2), (0.5, 1)]
    for wrong in wrongs:
        with pytest.raises(DatError, match=r"mirror=.* is no permutation of 0 ... 1"):
            ctx.stencil(rows, [(0, 1)], mirror=wrong)
    with pytest.raises(DatError, match=r"reach 7 is longer than axis 1 \(6 elements\)"):
        ctx.stencil(rows, [(0, 7)], mirror=(0,))
    pair, three = ctx.stencil(rows, [(0, -1), (0, 1)], mirror=(1, 0)), ctx.dat(rows, shape=(3,))
    with pytest.raises(LoopError, match=r"has components of shape \(3,\), but stencil 'stencil' turns 2 of them round"):
        three[pair]
    f, g = (ctx.dat(rows, shape=(2,)) for _ in range(2))
    same_way = ctx.stencil(rows, [(0, 1), (0, 1)], mirror=(1, 0))

    @fl.kernel
    def spread(f: Read, g: Write):
        g[0][0] = f[0]
        g[1][1] = f[1]

    @fl.kernel
    def chosen(f: Read, g: RW):
        k = int(g[0])
        g[0] = f[k][0]

    Loop(spread, rows, f, g[pair])()
    with pytest.raises(
        LoopError, match="legs of components 0 and 1, which change places at ends, do not lead opposite"
    ):
        Loop(spread, rows, f, g[same_way])
    with pytest.raises(LoopError, match="has a leg or a component that the kernel computes; use numbers"):
        Loop(chosen, rows, f[pair], g)
