"""Tiled chains: the results of the chain without tiles, to the last bit, whatever the tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Max, Min, Read, Write
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.tiles.tiling import TiledChain
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom_lab.attack.loops.chains import RandomChain

from .harness import LAYOUTS, compare, context

pytest.importorskip("hypothesis", reason="hypothesis makes the random meshes")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MESH = airfoil_mesh(8, 12)
EXACT = fl.Schedule(deterministic="global")
MODEST = settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


# ----------------------------------------------------------------------------------------------- Airfoil


def flows(threads: int, tiles: Any, at_once: int, **options: Any) -> tuple[Airfoil, TiledChain, Airfoil]:
    """An Airfoil with a tiled chain beside one that runs loop by loop, slightly away from the free stream."""
    both = []
    for n in (threads, 1):
        flow = Airfoil(context("cpu", threads=n), MESH, schedule=EXACT, fused=False, **options)
        flow.q.write(flow.q.read() * (1 + 0.01 * np.random.default_rng(0).random((flow.cells.size, 4))))
        both.append(flow)
    chain = both[0].chain
    tiled = TiledChain(chain.steps, transient=chain.transient, tiles=tiles, steps_at_once=at_once)
    return both[0], tiled, both[1]


def step_both(left: Airfoil, tiled: TiledChain, right: Airfoil, times: int = 1) -> None:
    for _ in range(times):
        tiled()
        for _ in range(tiled.steps_at_once):
            right.chain()
        assert left.q.read().tobytes() == right.q.read().tobytes()
        assert left.rms() == pytest.approx(right.rms(), rel=1e-13)


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize(("threads", "tiles"), [(1, 1), (2, 2), (2, 0), (1, 9), (2, 40), (2, 500)])
def test_airfoil(threads: int, tiles: int, at_once: int) -> None:
    left, tiled, right = flows(threads, tiles, at_once)
    step_both(left, tiled, right, 4)
    assert tiled.tiled
    assert tiled.reports()[0].calls == 3  # the first call establishes that the residual is zero
    if tiles > 1:
        assert tiled.counters.tiles == tiles
        assert tiled.counters.redundancy > 1


@pytest.mark.long
def test_airfoil_in_components() -> None:
    step_both(*flows(2, 5, 2, layout=LAYOUTS["soa"]), 3)


def test_given_tiles() -> None:
    """Tiles of scattered elements, some of them empty."""
    owner = np.random.default_rng(3).integers(0, 6, 3 * 8 * 12) * 2
    left, tiled, right = flows(2, owner, 1)
    step_both(left, tiled, right, 3)
    assert tiled.counters.tiles == owner.max() + 1


@pytest.mark.parametrize("how", ["view", "write", "held", "held_ro", "x", "res", "held_res"])
def test_the_host_changes_values(how: str) -> None:
    left, tiled, right = flows(2, 6, 1)
    step_both(left, tiled, right, 3)
    held: list[Any] = []
    for flow in (left, right):
        match how:
            case "view":
                flow.q.data[5:50] *= 1.02
            case "write":
                flow.q.write(flow.q.read() * 1.01)
            case "held":
                held.append(flow.q.data)
                held[-1][7] *= 1.03
            case "held_ro":
                held.append(flow.q.data_ro)
            case "x":
                flow.x.data[:, 1] *= 1.001
            case "res":
                flow.res.data[3:9] += 1e-4
            case "held_res":
                held.append(flow.res.data)
    for k in range(4):
        if how == "held_res":
            for view in held:
                view[20:25] += 1e-5
        step_both(left, tiled, right)
        if how == "held" and k == 1:
            for view in held:
                view[20:30] *= 0.99
        if how in ("held", "held_ro"):
            for flow, view in zip((left, right), held, strict=True):
                np.testing.assert_array_equal(view, flow.q.read())
    before = tiled.reports()[0].calls
    held.clear()
    del held
    view = None
    step_both(left, tiled, right, 3)
    assert tiled.reports()[0].calls >= before + 2


def test_constants_and_other_loops() -> None:
    """New constants reach the tiles; loops and chains that share the dats follow the moved buffers."""
    left, tiled, right = flows(2, 6, 2)
    step_both(left, tiled, right, 2)
    for flow in (left, right):
        flow.adt_calc.set(cfl=0.6)
        flow.res_calc.set(eps=0.1)
    step_both(left, tiled, right, 2)
    for flow in (left, right):
        flow.adt_calc()
        flow.chain()
    assert left.adt.read().tobytes() == right.adt.read().tobytes()
    step_both(left, tiled, right, 2)
    for flow in (left, right):
        flow.far.value = flow.far.value * 1.01
    step_both(left, tiled, right, 2)


def test_other_tiles() -> None:
    left, tiled, right = flows(2, 3, 1)
    for tiles in (0, 7, np.arange(left.cells.size) % 4, 1):
        tiled.retile(tiles)
        step_both(left, tiled, right, 2)


# ----------------------------------------------------------------------------------------- random chains


def tiled_pair(seed: int, at_once: int, tiles: int) -> tuple[list[RandomChain], TiledChain]:
    runs = [RandomChain(context("cpu", threads=n), seed, EXACT, False) for n in (2, 1)]
    first = runs[0].chain
    tiled = TiledChain(first.steps, transient=first.transient, tiles=tiles, steps_at_once=at_once)
    return runs, tiled


def random_chain(seed: int, at_once: int, tiles: int, calls: int = 5) -> str:
    """Run a random chain in tiles and loop by loop, with events in between; returns why it is not tiled."""
    runs, tiled = tiled_pair(seed, at_once, tiles)
    happened: list[str] = []
    for _ in range(calls):
        tiled()
        for _ in range(at_once):
            runs[1].chain()
        left, right = (run.values() for run in runs)
        for name, value in right.items():
            text = f"seed {seed}: {name} after {happened}\n{runs[0].describe()}\n{tiled.describe()}"
            if value.ndim:
                np.testing.assert_array_equal(left[name], value, err_msg=text)
            else:
                np.testing.assert_allclose(left[name], value, rtol=1e-12, err_msg=text)
        words = {run.between() for run in runs}
        assert len(words) == 1
        happened.append(words.pop())
    return tiled.reason


@pytest.mark.parametrize(("seed", "at_once", "tiles"), [(7, 1, 5), (12, 2, 3), (96, 3, 40)])
def test_random_chains(seed: int, at_once: int, tiles: int) -> None:
    assert not random_chain(seed, at_once, tiles)


@pytest.mark.long
@pytest.mark.parametrize("first", range(300, 350, 10))
def test_many_random_chains(first: int) -> None:
    reasons = [random_chain(seed, 1 + seed % 3, (1, 2, 5, 30, 3000)[seed % 5]) for seed in range(first, first + 5)]
    assert not all(reasons), "none ran in tiles"


# -------------------------------------------------------------------------------- all kinds of arguments


@fl.kernel
def spread(x: Read, w: Read, near: Inc, low: Min, high: Max):
    near[0][0] += w[0] * x[1][0]
    near[1][1] -= w[0] * x[0][1]
    low[0] = min(low[0], x[0][0] + w[0])
    high[0] = max(high[0], x[0][1] - w[0])


@fl.kernel
def turn(near: RW, x: RW, count: RW, low: Read, high: Read, size: Inc, top: Max):
    x[0] = 0.5 * x[0] + 0.1 * near[1] + 0.05 * low[0]
    x[1] = 0.5 * x[1] - 0.1 * near[0] + 0.05 * high[0]
    near[0] = 0.0
    near[1] = 0.0
    if x[0] > 0.25:
        count[0] = count[0] + 1
    size[0] += x[0] * x[0]
    top[0] = max(top[0], x[1])


@fl.kernel
def hand(x: Read, w: RW, to: Write):
    w[0] = 0.9 * w[0] + 0.01 * x[0]
    to[0] = w[0] * x[1]


@fl.kernel
def back(to: Read, x: RW, near: Inc):
    x[0] += 0.01 * to[0]
    near[1] += 0.02 * to[0]


def world(ctx: fl.Context, mesh: tuple[list[tuple[int, int]], int], dtype: str, layout: Any, schedule: Any = None):
    """Loops with every kind of argument that tiles know, over a random table."""
    edges, nodes = mesh
    rng = np.random.default_rng(len(edges) + nodes)
    e, n, far = ctx.set(len(edges), "edges"), ctx.set(nodes, "nodes"), ctx.set(len(edges) + 3, "far")
    m = ctx.map(e, n, np.array(edges, dtype=int).reshape(len(edges), 2), "m")
    to = ctx.map(e, far, rng.permutation(len(edges) + 3)[: len(edges)], "to")
    back_to = ctx.map(n, far, rng.integers(0, len(edges) + 3, nodes), "back")
    make = {"dtype": dtype, "layout": layout}
    x, near = (ctx.dat(n, rng.random((nodes, 2)), name, **make) for name in ("x", "near"))
    low, high = (ctx.dat(n, rng.random(nodes), name, **make) for name in ("low", "high"))
    w, t = ctx.dat(e, rng.random(len(edges)), "w", **make), ctx.dat(far, rng.random(len(edges) + 3), "t", **make)
    count = ctx.dat(n, np.zeros(nodes, dtype=np.int32), "count")
    size, top = ctx.scalar(1.0, "size"), ctx.scalar(-9.0, "top")
    loops = [
        Loop(spread, e, x[m], w, near[m], low[m[1]], high[m[0]], schedule=schedule),
        Loop(turn, n, near, x, count, low, high, size, top, schedule=schedule),
        Loop(hand, e, x[m[0]], w, t[to[0]], schedule=schedule),
        Loop(back, n, t[back_to[0]], x, near, schedule=schedule),
    ]
    values = {"x": x, "near": near, "low": low, "high": high, "w": w, "t": t, "count": count, "size": size, "top": top}
    return loops, values


def read(values: dict[str, Any]) -> dict[str, np.ndarray]:
    return {k: np.array(v.value) if isinstance(v, fl.Global) else v.read() for k, v in values.items()}


@st.composite
def meshes(draw):
    nodes = draw(st.integers(1, 50))
    return draw(st.lists(st.tuples(*[st.integers(0, nodes - 1)] * 2), max_size=90)), nodes


@MODEST
@given(
    mesh=meshes(),
    tiles=st.sampled_from([1, 2, 3, 10, 200]),
    at_once=st.integers(1, 2),
    threads=st.integers(1, 2),
    kind=st.sampled_from([("float64", "aos"), ("float32", "soa")]),
)
@pytest.mark.long
def test_random_meshes(mesh, tiles, at_once, threads, kind) -> None:
    dtype, layout = kind
    ctx, oracle, plain = context("cpu", threads=threads), fl.Context("reference"), context("cpu", threads=1)
    loops, values = world(ctx, mesh, dtype, LAYOUTS[layout], EXACT)
    tiled = TiledChain(loops, tiles=tiles, steps_at_once=at_once)
    assert tiled.tiled
    wanted, want = world(oracle, mesh, dtype, None)
    beside, same = world(plain, mesh, dtype, LAYOUTS[layout], EXACT)
    chain = Chain(beside, fuse=False)
    for _ in range(3):
        tiled()
        for _ in range(at_once):
            chain()
            for loop in wanted:
                loop()
    compare(read(values), read(want), dtype)
    for name, value in read(same).items():
        if value.ndim:
            assert read(values)[name].tobytes() == value.tobytes(), name


# ------------------------------------------------------------------------------------ globals, edge cases


@fl.kernel
def total(u: Read, g: Inc):
    g[0] += u[0] * u[0]


@fl.kernel
def grow(u: RW):
    u[0] *= 1.01


@pytest.mark.parametrize("at_once", [1, 3])
def test_resets(at_once: int) -> None:
    """A reset global has the sum since the last reset; one that is not adds up."""
    ctx = context("cpu", threads=2)
    over = ctx.set(100, "over")
    u, g, h, n = ctx.dat(over, np.ones(100)), ctx.scalar(7.0), ctx.scalar(0.0), ctx.scalar([9, 9], dtype="int32")
    steps = [Loop(total, over, u, g), Reset(g, 1.5), Reset(n, 3), Loop(total, over, u, g), Loop(total, over, u, h)]
    tiled = TiledChain(steps, tiles=7, steps_at_once=at_once)
    assert tiled.tiled
    for k in range(1, 4):
        tiled()
        assert float(g.value) == pytest.approx(1.5 + 100)
        assert float(h.value) == pytest.approx(100 * k * at_once)
        assert n.value.tolist() == [3, 3]
    assert tiled.reports()[0].calls == 3


def test_sums_do_not_depend_on_threads() -> None:
    sums = []
    for threads in (1, 2, 2):
        ctx = context("cpu", threads=threads)
        over = ctx.set(5000, "over")
        u, g = ctx.dat(over, np.random.default_rng(0).random(5000)), ctx.scalar(0.0)
        TiledChain([Loop(total, over, u, g), Loop(grow, over, u), Loop(total, over, u, g)], tiles=11)()
        sums.append(float(g.value))
    assert sums[0] == sums[1] == sums[2]


@fl.kernel
def keep(u: Read, r: Inc):
    r[0] += u[0]


def test_empty_sets() -> None:
    ctx = context("cpu", threads=2)
    some, none = ctx.set(10, "some"), ctx.set(0, "none")
    through = ctx.map(none, some, np.zeros((0, 1), dtype=int))
    u, r, s = ctx.dat(none), ctx.dat(some), ctx.dat(some, np.ones(10))
    tiled = TiledChain([Loop(keep, none, u, r[through[0]]), Loop(keep, some, s, r)], tiles=3)
    nothing = TiledChain([Loop(keep, none, u, u2 := ctx.dat(none)), Loop(keep, none, u2, u)], tiles=3)
    for _ in range(3):
        tiled()
        nothing()
    assert tiled.tiled
    np.testing.assert_array_equal(r.read(), 3.0)


def test_wide_numbers() -> None:
    """A tile with more elements than 16 bits can number."""
    n = 70_000
    edges = np.stack([np.arange(n), (np.arange(n) + 1) % n], 1)
    results = []
    for tiled in (True, False):
        ctx = context("cpu", threads=2)
        cells, e = ctx.set(n, "cells"), ctx.set(n, "edges")
        m = ctx.map(e, cells, edges, "m")
        u, r = ctx.dat(cells, np.arange(n) % 17.0), ctx.dat(cells)
        loops = [Loop(keep, e, u[m[0]], r[m[1]], schedule=EXACT), Loop(keep, e, r[m[1]], u[m[0]], schedule=EXACT)]
        chain = TiledChain(loops, tiles=1) if tiled else Chain(loops, fuse=False)
        chain()
        chain()
        results.append(u.read())
    np.testing.assert_array_equal(*results)
