"""What the host may do between two calls on several ranks; the ranks need not do the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Write
from fluxloom.dsl.run.chain import Chain
from fluxloom_lab.attack.loops.worlds import World, alone, difference, owners, random_mesh, together

CELLS = 90
MESH = random_mesh(11, CELLS, local=True)
RNG = np.random.default_rng(0)
U, C = RNG.random((CELLS, 2)), RNG.random((CELLS, 2))
GLOBAL = fl.Schedule(deterministic="global")


@fl.kernel
def flux(c: Read, u: Read, r: Inc, *, w: float):
    f = w * (u[0][0] - u[1][1]) * (c[0][0] + c[1][0])
    r[0][0] += f
    r[1][1] -= f


@fl.kernel
def advance(old: Read, u: Write, r: RW):
    for k in range(2):
        u[k] = 0.9 * old[k] - 0.1 * r[k]
        r[k] = 0.0


@fl.kernel
def save(u: Read, old: Write):
    old[0] = u[0]
    old[1] = u[1]


@fl.kernel
def around(u: Read, v: Write):
    v[0] = 0.3 * (u[0][0] + u[1][1])
    v[1] = 0.2 * u[2][0] + 0.1


@fl.kernel
def keep(v: Read, r: RW):
    r[0] = 0.5 * r[0] + 0.1 * v[0]
    r[1] = 0.5 * r[1] + 0.1 * v[1]


class Flow:
    """A step with a constant dat ``c``, renamed dats and sums over edges."""

    def __init__(self, world: World, fuse: bool = True) -> None:
        self.world = world
        self.u, self.c = world.dat("cells", U, "u"), world.dat("cells", C, "c")
        self.old, self.r = (world.dat("cells", np.zeros((CELLS, 2)), n) for n in ("old", "r"))
        e, cells = world.maps["edge_cells"], world.sets["cells"]
        self.flux = Loop(flux, world.sets["edges"], self.c[e], self.u[e], self.r[e], w=0.4)
        self.advance = Loop(advance, cells, self.old, self.u, self.r)
        self.save = Loop(save, cells, self.u, self.old)
        self.step = Chain([self.save, self.flux, self.advance], transient=[self.old], fuse=fuse)

    def outputs(self) -> dict[str, fl.Dat]:
        return {"u": self.u, "c": self.c, "r": self.r}


def agree(
    body: Callable[[World], Any], *, ranks: int = 3, kind: str = "random", device: str = "cpu", first: Any = None
) -> None:
    """Compare several ranks with one, to the last bit."""
    want = alone(first or body, MESH, threads=1, schedule=GLOBAL)
    got = together(body, MESH, ranks, owners(kind, CELLS, ranks, 1), device, schedule=GLOBAL)
    assert not difference(got, want, 0.0)


FORMS = [(fuse, chained) for fuse in (True, False) for chained in (True, False) if chained or not fuse]


def calls(flow: Flow, chained: bool) -> Callable[[], object]:
    """Return what runs a step: the chain, or the loops one by one."""

    def loops() -> None:
        flow.save()
        flow.flux()
        flow.advance()

    return flow.step if chained else loops


@pytest.mark.parametrize(("fuse", "chained"), FORMS)
@pytest.mark.parametrize("what", ["u", "c"])
def test_one_rank_alone_writes(what: str, fuse: bool, chained: bool) -> None:
    """Values that only one rank changes reach the others; the changed elements are those of rank 1."""
    kind = owners("random", CELLS, 3, 1)

    def body(world: World, whole: bool = False) -> Any:
        flow = Flow(world, fuse and not whole)
        dat, run = getattr(flow, what), calls(flow, chained)
        for k in range(5):
            run()
            if k != 2 and not whole and world.rank == 1:
                dat.write(0.5 * dat.read())
            elif k != 2 and whole:
                values = dat.read()
                values[kind == 1] *= 0.5
                dat.write(values)
        run()
        return flow.outputs()

    agree(body, first=lambda world: body(world, True))


@pytest.mark.parametrize(("fuse", "chained"), FORMS)
@pytest.mark.parametrize("what", ["u", "c"])
def test_one_rank_holds_a_view_and_writes_through_it(what: str, fuse: bool, chained: bool) -> None:
    kind = owners("random", CELLS, 3, 1)

    def body(world: World, whole: bool = False) -> Any:
        flow = Flow(world, fuse and not whole)
        dat, run = getattr(flow, what), calls(flow, chained)
        run()
        run()
        view = dat.data if whole or world.rank == 1 else None
        for k in range(4):
            if view is not None and k != 1:
                view[kind == 1 if whole else slice(None)] *= 0.75
            run()
            if k == 2:
                view = None
        run()
        run()
        return flow.outputs()

    agree(body, first=lambda world: body(world, True))


@pytest.mark.parametrize("writable", [True, False])
def test_a_view_that_one_rank_keeps(writable: bool) -> None:
    """The others must not run fused while one cannot."""

    def body(world: World) -> Any:
        flow = Flow(world)
        held = []
        for k in range(6):
            flow.step()
            if k == 1 and world.rank == world.ctx.comm.size - 1:
                held.append(flow.u.data if writable else flow.u.data_ro)
            if k == 3:
                held.clear()
        return flow.outputs()

    for ranks in (2, 7):
        agree(body, ranks=ranks, kind="lonely" if ranks == 7 else "random")


def test_chains_that_move_buffers_one_after_another() -> None:
    """What one chain has renamed is exchanged from its new place in another one, and by single loops."""

    def body(world: World) -> Any:
        flow = Flow(world)
        v, cells = world.dat("cells", np.zeros((CELLS, 2)), "v"), world.sets["cells"]
        look = Loop(around, cells, flow.u[world.maps["near"]], v)
        other = Chain([look, Loop(keep, cells, v, flow.r)])
        for _ in range(3):
            flow.step()
            flow.step()
            look()
            other()
            other()
            flow.flux()
            flow.step()
        return flow.outputs() | {"v": v}

    agree(body)
    agree(body, ranks=7, kind="gap")


@pytest.mark.parametrize("fuse", [True, False])
def test_constants_and_globals_between_calls(fuse: bool) -> None:
    @fl.kernel
    def shift(u: RW, g: Read):
        u[0] = u[0] + g[0]

    def body(world: World) -> Any:
        flow = Flow(world, fuse)
        g = world.ctx.scalar(0.25, "g")
        step = Chain([flow.flux, flow.advance, Loop(shift, world.sets["cells"], flow.u, g)], fuse=fuse)
        for k in range(4):
            step()
            flow.flux.set(w=0.1 * k)
            g.value = 0.5 * k
            flow.c.write(flow.c.read() + k)
        flow.flux(w=2.0)
        return flow.outputs() | {"g": g}

    agree(body)


def test_loops_computed_one_step_ahead_see_their_neighbours() -> None:
    """A loop at the head that reads neighbours of what the chain changes runs ahead: it needs the halo at once."""

    @fl.kernel
    def spread(v: Read, r: Inc):
        r[0][0] += v[0][0] - v[1][1]
        r[1][1] += v[0][1]

    def body(world: World) -> Any:
        u, v, r, t = (world.dat("cells", U * k, n) for k, n in ((1.0, "u"), (0.0, "v"), (0.5, "r"), (0.25, "t")))
        cells, edges = world.sets["cells"], world.sets["edges"]
        near, e, tiles = world.maps["near"], world.maps["edge_cells"], fl.Schedule(strategy="gather", block=64)
        chain = Chain([
            Loop(around, cells, u[near], v),
            Loop(spread, edges, v[e], r[e], schedule=tiles),
            Loop(keep, cells, r, u),
            Loop(spread, edges, v[e], t[e], schedule=tiles),
        ])  # fmt: skip
        for k in range(6):
            chain()
            if k == 3:
                r.write(u.read())
        assert "spread+around" in chain.describe()
        return {"u": u, "v": v, "r": r, "t": t}

    agree(body)


@pytest.mark.parametrize("device", ["cpu", pytest.param("opencl", marks=[pytest.mark.opencl, pytest.mark.long])])
def test_stale_and_current_halos_of_single_loops(device: str) -> None:
    def body(world: World) -> Any:
        u, v = world.dat("cells", U, "u"), world.dat("cells", C, "v")
        near, cells = world.maps["near"], world.sets["cells"]
        there, back = Loop(around, cells, u[near], v), Loop(around, cells, v[near], u)
        for k in range(4):
            there()
            there()
            back()
            if k == 1:
                u.write(v.read())
            if k == 2:
                v.data[...] += 1.0
        return {"u": u, "v": v}

    agree(body, device=device)
