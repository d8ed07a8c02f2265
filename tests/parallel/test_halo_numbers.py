"""Messages of single numbers: only what loops read of other ranks' elements travels, and private writes stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Chain, Loop, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.dsl.plan.halo_reads import StencilReads, halo_reads
from fluxloom.lbm.boundaries import Wall
from fluxloom.lbm.lattices import D2Q9, D3Q19, Lattice
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from tests.lattice_names import lattice_flow

LEGS = ((0, -1), (0, 1), (-1, 0), (1, 0), (0, 0), (1, 1))


@fl.kernel
def from_around(u: Read, v: Write):
    for k in range(5):
        v[k] = u[k][k] + 0.5 * u[4][k]
    v[5] = u[5][0]


@fl.kernel
def everything(u: Read, v: Write):
    for k in range(6):
        v[k] = u[0][k] + u[2][k]


def whole(shape: tuple[int, int]) -> np.ndarray:
    return np.arange(shape[0] * shape[1] * 6, dtype=float).reshape(*shape, 6)


def stepped(shape: tuple[int, int]) -> np.ndarray:
    """Return what two loops of `from_around` make of the values of `whole`, and back."""
    u = whole(shape)
    for _ in range(2):
        shifted = [np.roll(u, [-a for a in leg], axis=(0, 1)) for leg in LEGS]
        v = np.stack([shifted[k][..., k] + 0.5 * u[..., k] for k in range(5)] + [shifted[5][..., 0]], axis=-1)
        u = v
    return u


@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA(), fl.Blocked(4)], ids=str)
@pytest.mark.parametrize("cut", [(2, 1), (1, 3), (2, 2)], ids=str)
def test_what_is_read_is_brought(layout: Any, cut: tuple[int, int]) -> None:
    shape = (6, 9)

    def rank(comm: Comm) -> None:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        grid = ctx.grid(shape, "cells", periodic=True, cut=cut)
        stencil = ctx.stencil(grid, LEGS, "around")
        u = ctx.dat(grid, grid.local(whole(shape), (6,)), "u", shape=(6,), dtype="float32", layout=layout)
        v = ctx.dat(grid, name="v", shape=(6,), dtype="float32", layout=layout)
        there, back = Loop(from_around, grid, u[stencil], v), Loop(from_around, grid, v[stencil], u)
        chain = Chain([there, back])
        for _ in range(2):
            u.write(grid.local(whole(shape), (6,)))
            chain()
            np.testing.assert_array_equal(u.read(), stepped(shape)[grid.window].astype(np.float32))
            assert not u.current
            assert not v.current
        everywhere = Loop(everything, grid, v[stencil], u)
        everywhere()  # by itself: all of the halo, though parts were brought before
        assert v.current

    run_threads(cut[0] * cut[1], rank)


def test_known_reads() -> None:
    def rank(comm: Comm) -> None:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        grid = ctx.grid((8, 5), "cells", periodic=True, cut=(2, 1))
        stencil = ctx.stencil(grid, LEGS, "around")
        u, v = (ctx.dat(grid, name=n, shape=(6,)) for n in "uv")
        (known,) = halo_reads(Loop(from_around, grid, u[stencil], v).bound, [u])
        (reads,) = known.reads
        assert isinstance(reads, StencilReads)
        assert reads.legs == ((0,), (1,), (2,), (3,), (0, 1, 2, 3, 4), (0,))
        assert known.sparse
        assert not known.few
        above, below = 0 * 5 + 2, 5 * 5 + 2  # of storage: a ghost layer before and behind four planes of five
        mask = reads.mask(np.array([above, below]), 6)
        assert np.flatnonzero(mask[0]).tolist() == [2]
        assert np.flatnonzero(mask[1]).tolist() == [0, 3]
        (other,) = halo_reads(Loop(everything, grid, u[stencil], v).bound, [u])
        assert not other.sparse

    run_threads(2, rank)


def lattice(
    comm: Comm, kind: Lattice, shape: tuple[int, ...], cut: tuple[int, ...], overlap: bool = True, **options: Any
) -> LatticeBoltzmann:
    ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False, overlap=overlap)
    flow = lattice_flow(ctx, shape, viscosity=0.05, lattice=kind, cut=cut, **options)
    flow.step(2)
    return flow


@pytest.mark.parametrize(("kind", "shape", "links"), [(D2Q9, (8, 6), 3), (D3Q19, (6, 5, 4), 5)])
def test_a_lattice_sends_what_crosses_the_cut(kind: Lattice, shape: tuple[int, ...], links: int) -> None:
    """Across each of two cuts the populations that lead there: 3 of 9, 5 of 19."""

    def rank(comm: Comm) -> None:
        flow = lattice(comm, kind, shape, (2,) + (1,) * (len(shape) - 1))
        flow.step(1)  # also by itself
        rows = [row for k in (-1, 0) for row in flow.steps_of(k).exchanges()]  # type: ignore[union-attr]
        assert {row.name for row in rows} == {"a", "b"}
        assert [row.calls for row in rows] == [1, 1, 1]
        plane = int(np.prod(shape[1:]))
        assert rows
        assert [r.nbytes for r in rows] == [2 * 4 * links * plane] * len(rows)

    run_threads(2, rank)


@pytest.mark.parametrize(("overlap", "steps", "closed"), [(True, 2, True), (True, 1, False), (False, 2, True)])
def test_the_interior_runs_while_messages_travel(overlap: bool, steps: int, closed: bool) -> None:
    """Walls across a cut are put in place before; only the ends of the slab wait. Without overlap all wait."""

    def rank(comm: Comm) -> None:
        walls = {side: Wall(measure=True) for side in ("xmin", "xmax", "ymin", "ymax")} if closed else {}
        flow = lattice(comm, D2Q9, (40, 6), (2, 1), overlap, boundaries=walls)
        flow.step(steps)
        (sequence,) = flow.steps_of(-1 if steps == 2 else 0).sequences  # type: ignore[union-attr]
        names = [item.name for item in sequence._items]
        sent = [k + 1 for k, name in enumerate(names) if name.startswith("pack")]
        came = [k - 1 for k, name in enumerate(names) if name.startswith("unpack")]
        assert all(names[k].endswith("send") for k in sent)
        assert all(names[k].endswith("receive") for k in came)
        assert len(sent) == len(came) == steps  # one message a step
        for begin, end in zip(sent, came, strict=True):
            assert names[begin + 1 : end] == ["pull"] * overlap, names

    run_threads(2, rank)


@fl.kernel
def put(v: Write):
    v[0] = 7.0


@fl.kernel
def keep(u: Read, v: Write):
    for k in range(5):
        v[k] = u[k][k]
    v[5] = 0.0


@pytest.mark.parametrize("together", [True, False])
def test_private_writes_are_there_in_the_next_chain(together: bool) -> None:
    """What a rank writes where only it looks, among copies, is left alone, also at the start of another chain."""

    def rank(comm: Comm) -> None:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        grid = ctx.grid((6, 5), "cells", periodic=True, cut=(2, 1))
        stencil = ctx.stencil(grid, LEGS, "around")
        u = ctx.dat(grid, grid.local(whole((6, 5)), (6,)), "u", shape=(6,))
        v, w = (ctx.dat(grid, name=n, shape=(6,)) for n in "vw")
        # component 2 of the ghost before the first plane is what the first cell looks at through leg 2
        part = Part(0, 0, 1, 1, 1, np.array([comm.rank]), 2)
        slot = SlotMap(ctx.set(part, "links"), grid, [2], [2], "slots", stored=True, private=True)
        first = [Loop(put, slot.source, u[slot]), Loop(keep, grid, u[stencil], w)]
        last = Loop(keep, grid, u[stencil], v)
        for _ in range(2):
            if together:
                Chain([*first, last])()
            else:
                Chain(first)()
                Chain([last])()
            for found in (v.read(), w.read()):
                assert found[0, 2, 2] == 7.0
                moved = [np.roll(whole((6, 5)), [-a for a in LEGS[k]], axis=(0, 1))[..., k] for k in range(5)]
                want = np.stack(moved, -1)[grid.window]
                want[0, 2, 2] = 7.0
                np.testing.assert_array_equal(found[..., :5], want)
            u.write(grid.local(whole((6, 5)), (6,)))

    run_threads(2, rank)
