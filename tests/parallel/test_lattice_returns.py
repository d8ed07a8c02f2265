"""Lattices on several ranks: what is written among copies of other ranks' elements goes back there; what lists send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Loop, Read, Write
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError
from fluxloom.device.base import Enqueued
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.dsl.declare.transports import Apart, HostTransport
from fluxloom.lbm.boundaries import Wall
from fluxloom.lbm.lattices import D2Q9, D3Q19
from tests.lattice_names import lattice_flow
from tests.parallel.test_halo_numbers import lattice

Values = np.ndarray

LEGS = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1))
SHAPE = (8, 9)
Q = len(LEGS)


def long(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.long)


@fl.kernel
def push(f: Read, out: Write):
    for k in range(7):
        out[k][k] = f[k] + 0.5 * f[0]


@fl.kernel
def odd(f: RW):
    """Reads and writes each component through its leg; where the first is small, one is left as it was."""
    for k in range(1, 6, 2):
        kept = f[k][k]
        f[k][k] = f[k + 1][k + 1] + 0.5 * f[0][0]
        if f[0][0] > 0.5:
            f[k + 1][k + 1] = kept


@fl.kernel
def around(f: Read, out: Write):
    for k in range(7):
        out[k] = f[1][k] + 2.0 * f[4][k]


def start() -> Values:
    """Numbers that are exact in all that follows."""
    return np.random.default_rng(3).integers(0, 128, (*SHAPE, Q)) / 128.0


def moved(f: Values, sign: int = 1) -> Values:
    """Return each component shifted along its leg, or against it."""
    return np.stack([np.roll(f[..., k], [sign * x for x in LEGS[k]], (0, 1)) for k in range(Q)], axis=-1)


def pushed(f: Values, visited: Values, out: Values) -> Values:
    """Return what `push` makes of ``out``."""
    new = moved(f + 0.5 * f[..., :1])
    return np.where(moved(np.broadcast_to(visited[..., None], f.shape)), new, out)


def oddly(f: Values, visited: Values) -> Values:
    """Return what `odd` makes of values."""
    seen = moved(f, -1)
    out = seen.copy()
    for k in range(1, 6, 2):
        out[..., k] = seen[..., k + 1] + 0.5 * seen[..., 0]
        out[..., k + 1] = np.where(seen[..., 0] > 0.5, seen[..., k], seen[..., k + 1])
    return moved(np.where(visited[..., None], out, seen))


def lattices(comm: Comm, cut: Any, layout: Any, **options: Any) -> tuple[fl.Grid, Any, fl.Dat, fl.Dat]:
    ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False, **options)
    grid = ctx.grid(SHAPE, "cells", periodic=True, cut=cut)
    values = grid.local(start(), (Q,))
    f, g = (ctx.dat(grid, values, name, layout=layout) for name in "fg")
    return grid, ctx.stencil(grid, LEGS, "legs"), f, g


def around_of(f: Values) -> Values:
    return np.roll(f, -1, 1) + 2.0 * np.roll(f, 1, 0)


@pytest.mark.parametrize("layout", [fl.SoA(), long(fl.AoS()), long(fl.Blocked(4))], ids=str)
@pytest.mark.parametrize("cut", [(2, 2), long((2, 1)), long((1, 3)), long((4, 1))], ids=str)
@pytest.mark.parametrize(("chained", "overlap"), [(True, True), long(True, False), long(False, True)])
def test_values_are_those_of_one_rank(layout: Any, cut: Any, chained: bool, overlap: bool) -> None:
    """All elements, and loops that follow and read elements of other ranks: in a chain, or called by themselves."""
    every = np.ones(SHAPE, dtype=bool)
    f, g = start(), start()
    for _ in range(2):
        g = pushed(f, every, g)
        f = oddly(around_of(oddly(g, every)), every)
        g = oddly(g, every)

    def rank(comm: Comm) -> None:
        grid, legs, a, b = lattices(comm, cut, layout, overlap=overlap)
        loops = [Loop(push, grid, a, b[legs]), Loop(odd, grid, b[legs]), Loop(around, grid, b[legs], a),
                 Loop(odd, grid, a[legs])]  # fmt: skip
        call: Callable[[], object] = Chain(loops) if chained else lambda: [loop() for loop in loops]
        for _ in range(2):
            call()
        np.testing.assert_array_equal(a.read(), f[grid.window])
        np.testing.assert_array_equal(b.read(), g[grid.window])
        assert not a.current, "only the numbers that went back are known here"

    run_threads(cut[0] * cut[1], rank)


@pytest.mark.parametrize("chained", [True, long(False)])
@pytest.mark.parametrize("changing", [True, False])
@pytest.mark.parametrize("cut", [(3, 1), long((2, 2)), long((1, 3))], ids=str)
def test_subsets(cut: Any, changing: bool, chained: bool) -> None:
    """Numbers of elements that are not visited stay as they are, also where copies of them are stale."""
    masks = np.random.default_rng(1).random((3, *SHAPE)) < 0.4
    chosen = masks if changing else [masks[0]] * 3
    f, g = start(), start()
    for mask in chosen:
        g = oddly(pushed(f, mask, g), mask)
        f = around_of(g)

    def rank(comm: Comm) -> None:
        grid, legs, a, b = lattices(comm, cut, fl.SoA())
        mine = [grid.local(mask).ravel() for mask in chosen]
        some = grid.context.subset(grid, mine[0], "some", capacity=grid.size if changing else None)
        loops = [Loop(push, some, a, b[legs]), Loop(odd, some, b[legs]), Loop(around, grid, b[legs], a)]
        call: Callable[[], object] = Chain(loops) if chained else lambda: [loop() for loop in loops]
        for members in mine:
            if changing:
                some.assign(members)
            call()
        np.testing.assert_array_equal(a.read(), f[grid.window])
        np.testing.assert_array_equal(b.read(), g[grid.window])

    run_threads(cut[0] * cut[1], rank)


@pytest.mark.parametrize(("kind", "shape", "links"), [(D2Q9, (8, 6), 3), long(D3Q19, (6, 5, 4), 5)])
@pytest.mark.parametrize(("streaming", "names"), [("push", ["b back", "a back"]), ("in-place", ["a", "a back"])])
def test_messages_are_what_crosses_the_cut(
    kind: Any, shape: tuple[int, ...], links: int, streaming: str, names: list[str]
) -> None:
    """Push sends one message a step; in place there are two in every second one. 3 of 9 numbers, 5 of 19."""

    def rank(comm: Comm) -> None:
        flow = lattice(comm, kind, shape, (2,) + (1,) * (len(shape) - 1), streaming=streaming)
        rows = flow.steps_of(-1).exchanges()  # type: ignore[union-attr]
        assert [row.name for row in rows] == names
        assert {row.nbytes for row in rows} == {2 * 4 * links * int(np.prod(shape[1:]))}

    run_threads(2, rank)


def test_lists_send_what_crosses_the_cut() -> None:
    """Of a cell in the halo of a list only what some cell here reads: through each leg of the table one number."""

    def rank(comm: Comm) -> tuple[int, int]:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        walls = {"ymin": Wall(), "ymax": Wall()}
        flow = lattice_flow(ctx, (12, 10), viscosity=0.05, lattice=D2Q9, cells="fluid", boundaries=walls)
        flow.step(2)
        rows = flow.steps_of(-1).exchanges()  # type: ignore[union-attr]
        part = flow.memory.set.part
        assert part is not None
        assert [row.name for row in rows] == ["a", "b"]
        assert rows[0].nbytes == rows[1].nbytes
        return rows[0].nbytes, 4 * 9 * sum(places.size for places in part.send)

    (sent, whole), _ = run_threads(2, rank)
    assert 0 < 2 * sent <= whole


@pytest.mark.parametrize(
    ("streaming", "between"), [("push", [["push"], ["push"]]), ("in-place", [["odd"], ["odd"]])]
)
def test_the_interior_runs_while_messages_travel(streaming: str, between: list[list[str]]) -> None:
    """Ends of slabs run behind what they wait for, and before what goes back; half of the interior runs with each."""

    def rank(comm: Comm) -> None:
        walls = {side: Wall() for side in ("xmin", "xmax", "ymin", "ymax")} if streaming == "in-place" else {}
        flow = lattice(comm, D2Q9, (40, 6), (2, 1), streaming=streaming, boundaries=walls)
        (sequence,) = flow.steps_of(-1).sequences  # type: ignore[union-attr]
        names = [item.name for item in sequence._items]
        sent = [k for k, name in enumerate(names) if name.endswith("send")]
        came = [k for k, name in enumerate(names) if name.endswith("receive")]
        found = [names[a + 1 : b] for a, b in zip(sent, came, strict=True)]
        assert found[-2:] == between, names

    run_threads(2, rank)


def slots_of(comm: Comm, rows: list[int], length: int = 4, **options: Any) -> tuple[fl.Dat, SlotMap]:
    """Return a dat on a line of some elements a rank, and a slot of each rank: a place of its storage."""
    ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
    grid = ctx.grid((length * comm.size,), "line", periodic=True)
    f = ctx.dat(grid, np.arange(length) + 100.0 * comm.rank, "f")
    one = ctx.set(Part(0, 0, 1, 1, 1, np.array([comm.rank]), comm.size), "one")
    return f, SlotMap(one, grid, [rows[comm.rank]], [0], "ends", stored=True, **options)


@fl.kernel
def tenfold(x: RW):
    x[0] = 10.0 * x[0] + 1.0


@pytest.mark.parametrize("chained", [True, False])
def test_slots_whose_numbers_go_back(chained: bool) -> None:
    """Each rank changes the element before its own ones, which is another rank's."""

    def rank(comm: Comm) -> None:
        f, ends = slots_of(comm, [0, 0, 0], returned=True)
        assert ends.away
        assert ends.stays
        loop = Loop(tenfold, ends.source, f[ends])
        call = Chain([loop]) if chained else loop
        want = np.arange(4.0) + 100.0 * comm.rank
        for _ in range(2):
            call()
            want[3] = 10.0 * want[3] + 1.0
            np.testing.assert_array_equal(f.read(), want)

    run_threads(3, rank)


def test_refusals() -> None:
    """Slots of two kinds at once; a number that two ranks would bring back."""

    def rank(comm: Comm) -> None:
        with pytest.raises(DatError, match="slots 'ends': what is written through them is private, or goes back"):
            slots_of(comm, [0, 0, 0], private=True, returned=True)
        f, ends = slots_of(comm, [2, 0, 0], 1, returned=True)  # the element of rank 1 is before and behind others
        with pytest.raises(DatError, match="rank 1: 1 numbers of 'f' are changed by elements of more than one rank"):
            Loop(tenfold, ends.source, f[ends])()

    run_threads(3, rank)


@pytest.mark.parametrize(
    ("streaming", "wanted"),
    [
        ("in-place", "a fork, odd, pack a, a send, a receive, unpack a, odd, odd, "
                     "pack a, a back send, a back receive, unpack a, a join"),
        long("push", "a back fork, push, push, push, pack a, a back send, a back receive, unpack a, a back join"),
    ],
)  # fmt: skip
def test_messages_beside_the_interior(streaming: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where messages have a queue of their own, the ends of slabs are in it too: behind one message, before another."""

    def apart(self: HostTransport, name: str) -> Apart:
        runs = {"fork": lambda: None, "send": self.start, "receive": self.finish, "join": lambda: None}
        fork, send, receive, join = (Enqueued(f"{name} {word}", run) for word, run in runs.items())
        return Apart(fork, send, (receive,), join)

    monkeypatch.setattr(HostTransport, "apart", apart)
    options: dict[str, Any] = {"streaming": streaming, "force": (1e-3, 2e-3)}
    one = lattice(SelfComm(), D2Q9, (40, 6), (1, 1), **options)

    def rank(comm: Comm) -> None:
        flow = lattice(comm, D2Q9, (40, 6), (2, 1), **options)
        names = [item.name.removeprefix("halo ") for item in flow.steps_of(-1).sequences[0]._items]  # type: ignore[union-attr]
        assert ", ".join(names).endswith(wanted)
        np.testing.assert_array_equal(flow.velocity(), one.velocity()[flow.grid.window])

    run_threads(2, rank)
