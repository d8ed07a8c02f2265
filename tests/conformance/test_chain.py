"""Chains: fused and unfused are the same, whatever happens between two calls."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Max, Min, Read, Write
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom_lab.attack.loops.chains import (
    CELLS,
    RandomChain,
    World,
    blend,
    copy,
    differ,
    flux,
    mix,
    partly,
    step,
    total,
)  # fmt: skip

from .harness import DEVICES, LAYOUTS, context, everywhere

MESH = airfoil_mesh(8, 12)
GATHER = fl.Schedule(strategy="gather", block=1024, deterministic="global")


def flows(device: str) -> list[Airfoil]:
    """A fused and an unfused Airfoil, slightly away from the free stream."""
    out = []
    for fused in (True, False):
        flow = Airfoil(context(device, threads=2), MESH, schedule=GATHER, fused=fused)
        flow.q.write(flow.q.read() * (1 + 0.01 * np.random.default_rng(0).random((flow.cells.size, 4))))
        out.append(flow)
    return out


def equal(pair: list[Airfoil]) -> None:
    assert pair[0].q.read().tobytes() == pair[1].q.read().tobytes()
    assert pair[0].rms() == pair[1].rms()


def iterate(pair: list[Airfoil], times: int = 1) -> None:
    for flow in pair:
        for _ in range(times):
            flow.iterate()
    equal(pair)


@pytest.mark.parametrize("device", DEVICES)
def test_fused_and_unfused(device: str) -> None:
    pair = flows(device)
    iterate(pair, 7)
    assert [f.chain.fused for f in pair] == [True, False]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("how", ["view", "write", "held", "held_ro", "x"])
def test_the_host_changes_values(device: str, how: str) -> None:
    pair = flows(device)
    iterate(pair, 3)
    held = []
    for flow in pair:
        match how:
            case "view":
                flow.q.data[5:50] *= 1.02
            case "write":
                flow.q.write(flow.q.read() * 1.01)
            case "held":
                view = flow.q.data
                view[7] *= 1.03
                held.append(view)
            case "held_ro":
                held.append(flow.q.data_ro)
            case "x":
                flow.x.data[:, 1] *= 1.001
    for k in range(4):
        iterate(pair)
        if how == "held" and k == 1:
            for flow, view in zip(pair, held, strict=True):  # the view is still alive
                assert view.flags.writeable == flow.q.context.device.shared
                if view.flags.writeable:
                    view[20:30] *= 0.99
        for flow, view in zip(pair, held, strict=False):
            np.testing.assert_array_equal(view, flow.q.read())
    del held
    iterate(pair, 3)


@pytest.mark.parametrize("device", DEVICES)
def test_a_loop_is_not_taken_ahead_of_what_replaces_its_values(device: str) -> None:
    """The first loop of the next step may run at the end of this one only where no value of this step is lost."""
    found = []
    for fused in (True, False):
        world = World(context(device, threads=2))
        u, old, r = world.dats[:3]
        chain = Chain([
            Loop(copy, world.cells, u, old, schedule=GATHER),
            Loop(flux, world.edges, old[world.e], r[world.e], w=0.5, schedule=GATHER),
            Loop(step, world.cells, u, r, schedule=GATHER),
            Loop(mix, world.cells, u, u, old, w=0.7, schedule=GATHER),
        ], fuse=fused)  # fmt: skip
        for _ in range(3):
            chain()
        found.append((u.read(), old.read(), r.read()))
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()

@pytest.mark.parametrize("device", DEVICES)
def test_constants_reach_the_chain(device: str) -> None:
    pair = flows(device)
    iterate(pair, 3)
    for name, value in (("cfl", 0.6), ("gamma", 1.3)):
        for flow in pair:
            flow.adt_calc.set(**{name: value})
        iterate(pair, 2)
    for flow in pair:
        flow.res_calc.set(eps=0.1)
        flow.bres_calc.set(eps=0.1)
    iterate(pair, 3)
    for flow in pair:
        flow.far.value = flow.far.value * 1.01
    iterate(pair, 3)


@pytest.mark.parametrize("device", DEVICES)
def test_loops_between_calls(device: str) -> None:
    """Loops of the chain called by themselves, and the transient dats they fill."""
    pair = flows(device)
    iterate(pair, 2)
    for flow in pair:
        flow.adt_calc()
    assert pair[0].adt.read().tobytes() == pair[1].adt.read().tobytes()
    iterate(pair, 2)
    for flow in pair:
        flow.save_soln()
    assert pair[0].qold.read().tobytes() == pair[1].qold.read().tobytes()
    iterate(pair, 2)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(("device", "calls"), everywhere([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], keep_items=3))
def test_rotation_of_buffers(device: str, calls: int, kept: bool) -> None:
    """``u`` is read by neighbours and rewritten in one pass, so it moves from buffer to buffer."""
    values = []
    for fuse in (True, False):
        world = World(context(device, threads=2))
        u, r = world.dats[0], world.dats[1]
        loops = [
            Loop(flux, world.edges, u[world.e], r[world.e], w=1.0, schedule=GATHER),
            Loop(step, world.cells, u, r, schedule=GATHER),
        ]
        chain = Chain(loops, transient=[] if kept else [r], fuse=fuse)
        for _ in range(calls):
            chain()
        other = Loop(partly, world.cells, u, world.dats[2], schedule=GATHER)  # a loop that must follow the dat
        other()
        values.append([d.read() for d in (u, world.dats[2], *([r] if kept else []))])
        assert chain.fused == fuse
    for left, right in zip(*values, strict=True):
        assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("device", DEVICES)
def test_two_chains_share_dats(device: str) -> None:
    values = []
    for fuse in (True, False):
        world = World(context(device, threads=2))
        u, v, r = world.dats[:3]
        first = Chain(
            [
                Loop(flux, world.edges, u[world.e], r[world.e], w=1.0, schedule=GATHER),
                Loop(step, world.cells, u, r, schedule=GATHER),
            ],
            fuse=fuse,
        )
        second = Chain(
            [
                Loop(flux, world.edges, v[world.e], r[world.e], w=0.5, schedule=GATHER),
                Loop(step, world.cells, v, r, schedule=GATHER),
                Loop(partly, world.cells, u, v, schedule=GATHER),
            ],
            fuse=fuse,
        )
        for chain in (first, second, first, first, second, second, second, first):
            chain()
        values.append([d.read() for d in world.dats])
    for left, right in zip(*values, strict=True):
        assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("device", ["reference", *DEVICES])
def test_reset(device: str) -> None:
    """A reset global starts anew at every call; one that is not adds up."""
    for fuse in (True, False):
        ctx = context(device, threads=2)
        over = ctx.set(100, "over")
        u = ctx.dat(over, np.ones((100, 2)))
        g, h, n = ctx.scalar(7.0), ctx.scalar(0.0), ctx.scalar([9, 9], dtype="int32")
        loops = [Loop(total, over, u, g), Loop(total, over, u, h)]
        chain = Chain([Reset(g, 1.5), Reset(n, 3), *loops], fuse=fuse)
        for k in range(1, 5):
            chain()
            assert float(g.value) == pytest.approx(1.5 + 110)
            assert float(h.value) == pytest.approx(110 * k)
            assert n.value.tolist() == [3, 3]


@pytest.mark.parametrize("device", DEVICES)
def test_reset_in_the_middle(device: str) -> None:
    for fuse in (True, False):
        ctx = context(device, threads=2)
        over = ctx.set(100, "over")
        u, g, h = ctx.dat(over, np.ones((100, 2))), ctx.scalar(0.0), ctx.scalar(0.0)
        chain = Chain(
            [Loop(total, over, u, g), Reset(g, 0.0), Loop(total, over, u, g), Loop(total, over, u, h)], fuse=fuse
        )
        for _ in range(3):
            chain()
            assert float(g.value) == pytest.approx(110)


@pytest.mark.parametrize("device", DEVICES)
def test_subsets_and_grids_in_a_chain(device: str) -> None:
    """Loops that cannot be fused run in place between loops that can."""

    @fl.kernel
    def halve(a: RW):
        a[0] *= 0.5

    @fl.kernel
    def relax(u: RW, near: Read):
        u[0] = 0.5 * u[0] + 0.25 * (near[0] + near[1])

    @fl.kernel
    def move(a: Read, b: Write):
        b[0] = a[0] + 1.0

    @fl.kernel
    def smooth(u: Read, v: Write):
        v[0] = 0.5 * (u[0] + u[1])

    n, values = 5000, []
    for fuse in (True, False):
        ctx = context(device, threads=2)
        points, grid = ctx.set(n, "points"), ctx.grid((n,), periodic=True)
        table = np.stack([np.maximum(np.arange(n) - 1, 0), np.minimum(np.arange(n) + 1, n - 1)], 1)
        near, s = ctx.map(points, points, table, "near"), ctx.stencil(grid, [[0], [1]])
        rng = np.random.default_rng(0)
        u, v, w = (ctx.dat(points, rng.random(n), name) for name in "uvw")
        x, y = ctx.dat(grid, rng.random(n), "x"), ctx.dat(grid, name="y")
        red, black = (ctx.subset(points, np.arange(n) % 2 == k) for k in range(2))
        loops = [
            Loop(halve, points, v), Loop(move, points, v, w), Loop(relax, red, u, u[near]),
            Loop(relax, black, u, u[near]),
            Loop(halve, red, w), Loop(move, points, u, v), Loop(halve, points, v), Loop(smooth, grid, x[s], y),
            Loop(smooth, grid, y[s], x),
        ]  # fmt: skip
        chain = Chain(loops, fuse=fuse)
        for _ in range(5):
            chain()
        assert chain.fused == fuse
        values.append([d.read() for d in (u, v, w, x, y)])
    for left, right in zip(*values, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-13)


@fl.kernel
def extremes(v: Read, low: Min, high: Max):
    for k in range(2):
        low[0][k] = min(low[0][k], v[1][k] - 0.2)
        high[1][k] = max(high[1][k], v[0][k] + 0.1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("device", DEVICES)
def test_extremes_in_a_chain(device: str, layout: str) -> None:
    """What reads neighbours before their extremes has old values in every tile, what follows has all extremes."""
    schedule, values = fl.Schedule(strategy="gather", block=64, deterministic="global"), []
    for fuse in (True, False):
        world = World(context(device, threads=2, schedule=schedule), layout=LAYOUTS[layout])
        u, v, w, r, s = world.dats
        loops = [
            Loop(flux, world.edges, u[world.e], r[world.e], w=1.0),
            Loop(extremes, world.edges, v[world.e], u[world.e], s[world.e]),
            Loop(partly, world.cells, w, s), Loop(blend, world.cells, s, v, w=0.6),
        ]  # fmt: skip
        chain = Chain(loops, fuse=fuse)
        for _ in range(3):
            chain()
        assert chain.fused == fuse
        values.append([d.read() for d in world.dats])
    np.testing.assert_array_equal(*values)


@pytest.mark.parametrize(
    ("device", "seed"),
    everywhere([7, 12, 10, 96, 0, 1, 19, *range(200, 230)], [7, 12, 10, 96, *range(200, 210)], keep=4, keep_items=2),
)
def test_random_chains(device: str, seed: int) -> None:
    """Random loops, transients and events; the first seeds once went wrong."""
    assert not (text := differ(seed, device)), text


@pytest.mark.parametrize(("device", "seed"), everywhere([3, 10, 25], [3, 10, 25], keep=1, keep_items=1))
def test_random_chains_against_the_reference(device: str, seed: int) -> None:
    runs = [RandomChain(context(name), seed, fl.Schedule(), True) for name in (device, "reference")]
    for _ in range(3):
        for run in runs:
            run.chain()
        left, right = (run.values() for run in runs)
        for name in right:
            np.testing.assert_allclose(left[name], right[name], rtol=1e-11, atol=1e-12)
    assert left["u"].shape == (CELLS, 2) if "u" in left else True


@fl.kernel
def keep(u: Read, r: Inc):
    r[0] += u[0]


@pytest.mark.parametrize("device", DEVICES)
def test_an_empty_set_in_a_chain(device: str) -> None:
    ctx = context(device, threads=2)
    some, none = ctx.set(10, "some"), ctx.set(0, "none")
    through = ctx.map(none, some, np.zeros((0, 1), dtype=int))
    u, r, s = ctx.dat(none), ctx.dat(some), ctx.dat(some, np.ones(10))
    chain = Chain([Loop(keep, none, u, r[through[0]]), Loop(keep, some, s, r)])
    for _ in range(3):
        chain()
    np.testing.assert_array_equal(r.read(), 3.0)
