"""Slots on several ranks: reading finds what the other ranks have now, changing stays at home."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Inc, Loop, Read
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError, LoopError
from fluxloom.dsl.declare.parts import Part

SHAPE, COMPONENTS, LINKS = (13, 11), 5, 200


@fl.kernel
def follow(far: Read, near: Read, own: RW, total: Inc):
    own[0] = 0.5 * own[0] + 0.25 * far[0] + 0.125 * near[0]
    total[0] += far[0]


@fl.kernel
def mix(f: RW, g: RW):
    for k in range(5):
        g[k] = 0.5 * (g[k] + f[k])
        f[k] = 0.75 * f[k] + 0.0625 * g[k]


@fl.kernel
def add(own: Inc):
    own[0] += 1.0


def part_of(numbers: np.ndarray, total: int, inside: int = 0) -> Part:
    """Return a part without a halo; its first elements may be said to need nothing of other ranks."""
    n = numbers.size
    return Part(0, inside, n, n, n, numbers.astype(np.int64), total)


class Links:
    """Each link changes a number of its own cell by two of cells beside it, of one dat and of another."""

    def __init__(self, comm: Comm, cut: tuple[int, int] | None, layout: Any, inside: int = 0) -> None:
        self.ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        self.grid = self.ctx.grid(SHAPE, periodic=True, cut=cut)
        rng = np.random.default_rng(4)
        own = rng.permutation(SHAPE[0] * SHAPE[1] * 2)[:LINKS]
        cell, component = np.stack(np.divmod(own // 2, SHAPE[1]), 1), own % 2  # the others are read
        beside = [cell + rng.integers(-1, 2, (LINKS, 2)) for _ in range(2)]
        mine = np.flatnonzero(self.local(cell)[1])
        self.links = self.ctx.set(part_of(mine, LINKS, inside) if comm.size > 1 else LINKS, "links")
        start = rng.random((2, *SHAPE, COMPONENTS))
        self.f = self.ctx.dat(self.grid, self.grid.local(start[0], (COMPONENTS,)), "f", layout=layout)
        self.g = self.ctx.dat(self.grid, self.grid.local(start[1], (COMPONENTS,)), "g", layout=layout)
        self.own = self.slots(cell[mine], component[mine], "own")
        self.near = self.slots(beside[0][mine], 2 + (own % 3)[mine], "near")
        self.far = self.slots(beside[1][mine], (own % 5)[mine], "far")
        self.total = self.ctx.scalar(0.0)

    def local(self, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return places in the storage, and which are elements of this rank."""
        grid, places, inside = self.grid, [], np.ones(len(cell), dtype=bool)
        for axis, (o, n, w) in enumerate(zip(grid.offset, grid.shape, grid.ghost, strict=True)):
            at = np.mod(cell[:, axis] - o + w, SHAPE[axis])
            inside &= (at >= w) & (at < w + n)
            places.append(np.minimum(at, n + 2 * w - 1))
        return np.asarray(np.ravel_multi_index(tuple(places), grid.full_shape)), inside

    def slots(self, cell: np.ndarray, component: np.ndarray, name: str) -> Any:
        return self.ctx.slots(self.links, self.grid, self.local(cell)[0], component, name, stored=True)


def followed(comm: Comm, cut: tuple[int, int] | None = None, layout: Any = None, fuse: bool = True) -> dict[str, Any]:
    made = Links(comm, cut, layout)
    loop = Loop(follow, made.links, made.g[made.far], made.f[made.near], made.f[made.own], made.total)
    chain = Chain([loop, Loop(mix, made.grid, made.f, made.g)], fuse=fuse)
    for _ in range(3):
        chain()
    loop()
    return {
        "f": made.f.read(), "g": made.g.read(), "total": float(made.total.value), "window": made.grid.window,
        "stays": (made.own.stays, made.near.stays, made.far.stays),
    }  # fmt: skip


@pytest.mark.parametrize(("ranks", "cut"), [(2, None), (4, (2, 2))])
def test_reading_finds_what_other_ranks_have(ranks: int, cut: Any) -> None:
    layout = fl.SoA() if cut else fl.AoS()
    one = followed(SelfComm(), layout=layout)
    found = run_threads(ranks, lambda comm: followed(comm, cut, layout))
    for each in found:
        for name in "fg":
            np.testing.assert_array_equal(each[name], one[name][each["window"]], err_msg=name)
        np.testing.assert_allclose(each["total"], one["total"], rtol=1e-13)
        assert each["stays"] == (True, False, False)


def test_what_is_refused() -> None:
    def ask(comm: Comm) -> None:
        made = Links(comm, None, None)
        with pytest.raises(LoopError, match=r"'own' is RW through slots 'near': .* of another rank; a rank may only"):
            Loop(follow, made.links, made.g[made.far], made.g[made.near], made.f[made.near], made.total)
        with pytest.raises(LoopError, match="'own' is Inc through slots, on several ranks"):
            Loop(add, made.links, made.f[made.own])
        table = made.ctx.map(made.links, made.links, np.arange(made.links.size), "table")
        extra = made.ctx.dat(made.links)
        with pytest.raises(LoopError, match="may not change 'f' through slots and another dat through a map"):
            Loop(change_both, made.links, extra[table[0]], made.f[made.own])

    run_threads(2, ask)


@fl.kernel
def change_both(x: RW, own: RW):
    x[0] = own[0]
    own[0] = 2.0 * own[0]


def test_the_interior_may_not_meet_other_ranks() -> None:
    def ask(comm: Comm) -> None:
        with pytest.raises(DatError, match=r"slots '(near|far)': row \d+ is in the interior"):
            Links(comm, None, None, inside=60)

    run_threads(2, ask)


def test_a_table_that_is_wrong_on_one_rank_is_an_error_on_all() -> None:
    def ask(comm: Comm) -> None:
        ctx = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        grid = ctx.grid(SHAPE, periodic=True)
        over = ctx.set(part_of(np.arange(2), 4), "over")
        with pytest.raises(DatError, match=r"cells: entry \[1, 0\] is 9999"):
            ctx.slots(over, grid, [0, 9999 if comm.rank else 1], 0)

    run_threads(2, ask)
