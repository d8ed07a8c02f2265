"""Checkpoints of several ranks: one file in global order, from which any number of ranks goes on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.disk import Disk
from fluxloom.comm.store import StoreReader, StoreWriter
from fluxloom.comm.threads import run_threads
from fluxloom.core.dtypes import Layout
from fluxloom.core.errors import CheckpointError, CommError
from fluxloom.dsl.checkpoint.checkpoint import Checkpoints, CheckpointWarning
from fluxloom.dsl.ranks.decompose import Link, decompose
from fluxloom.dsl.run.chain import Reset

N, M = 9, 7


@fl.kernel
def keep(u: Read, old: Write):
    for k in range(2):
        old[k] = u[k]


@fl.kernel
def flux(u: Read, r: Inc, *, c: float):
    for k in range(2):
        f = c * (u[1][k] - u[0][k])
        r[0][k] += f
        r[1][k] -= f


@fl.kernel
def advance(old: Read, u: Write, r: RW, total: Inc):
    for k in range(2):
        u[k] = old[k] + r[k]
        total[0] += r[k] * r[k]
        r[k] = 0.0


class Plate:
    """Heat in a plate of N x M cells, cut up by `owner`; stops when the host finds that little changes."""

    def __init__(self, comm: Comm, seed: int = 0) -> None:
        cells = np.arange(N * M).reshape(N, M)
        across = np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=1)
        edges = np.concatenate([across, np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)])
        mine, count = comm.rank == 0, N * M
        owner = np.random.default_rng(seed).integers(0, comm.size, count)
        found = decompose(
            comm,
            {"cells": count, "edges": len(edges)},
            {"e2c": Link("edges", "cells", edges if mine else edges[:0])},
            on="cells",
            owner=owner if mine else owner[:0],
        )
        self.ctx = ctx = fl.Context("cpu", threads=1, comm=comm, schedule=fl.Schedule(deterministic="global"))
        self.cells = ctx.set(found.parts["cells"], "cells")
        self.edges = ctx.set(found.parts["edges"], "edges")
        self.e2c = ctx.map(self.edges, self.cells, found.table("e2c"), "e2c")
        numbers = found.parts["cells"].numbers[: self.cells.size]
        self.numbers = numbers
        self.u = ctx.dat(self.cells, np.stack([np.sin(numbers * 1.0), np.cos(numbers * 0.3)], axis=1), "u")
        self.old, self.r = ctx.dat(self.cells, name="old", shape=(2,)), ctx.dat(self.cells, name="r", shape=(2,))
        self.total = ctx.scalar(0.0, "total")
        self.keep = fl.Loop(keep, self.cells, self.u, self.old)
        self.flux = fl.Loop(flux, self.edges, self.u[self.e2c], self.r[self.e2c], c=0.05)
        self.advance = fl.Loop(advance, self.cells, self.old, self.u, self.r, self.total)
        steps = [Reset(self.total), self.keep, self.flux, self.advance]
        self.chain = fl.Chain(steps, transient=[self.old, self.r])

    def run(self, steps: int, chained: bool) -> list[float]:
        seen = []
        for k in range(steps):
            if chained:
                self.chain()
            else:
                self.total.value = 0.0
                for loop in (self.keep, self.flux, self.advance):
                    loop()
            if k % 3 == 0:
                seen.append(float(self.total.value))
        return seen

    def whole(self) -> np.ndarray:
        """Return u of all ranks in global order."""
        out = np.empty((N * M, 2))
        for numbers, values in self.ctx.comm.allgather((self.numbers, self.u.read())):
            out[numbers] = values
        return out


Result = tuple[list[float], np.ndarray, Checkpoints]


def run(comm: Comm, path: Path, steps: int, chained: bool, seed: int, every: int, place: str) -> Result:
    plate = Plate(comm, seed)
    saver = Checkpoints(path, every_calls=every, place=place)
    with saver.watch(plate.ctx):
        seen = plate.run(steps, chained)
    return seen, plate.whole(), saver


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("place", ["local", "period"])
def test_ranks_two_three_one(chained: bool, place: str, tmp_path: Path) -> None:
    """A run of 2 ranks goes on with 3, cut up otherwise, and that with 1: fields bitwise, sums to rounding."""
    path, each = tmp_path / "run.h5", 1 if chained else 3
    expected = run_threads(1, lambda comm: (p := Plate(comm)).run(40, chained) and p.whole())[0]
    sums = run_threads(1, lambda comm: Plate(comm).run(40, chained))[0]
    entries = []
    for ranks, steps, seed in ((2, 14, 1), (3, 27, 2), (1, 40, 3)):
        found = run_threads(ranks, run, path, steps, chained, seed, 5 * each + 1, place)
        for seen, _, saver in found:
            assert saver.saved >= 1
            assert saver.failed == 0
            np.testing.assert_allclose(seen, sums[: len(seen)], rtol=1e-12)
            assert seen == found[0][0]
        _, whole, saver = found[-1]
        assert saver.last is not None
        assert set(saver.last.dats) in ({"u", "r"}, {"old", "r"})
        entries.append(saver.last.entry.call)
    assert entries == sorted(entries)
    np.testing.assert_array_equal(whole, expected)


@fl.kernel
def five(u: Read, v: Write):
    for k in range(2):
        v[k] = 0.2 * (u[0][k] + u[1][k] + u[2][k] + u[3][k] + u[4][k])


@fl.kernel
def back(v: Read, u: Write):
    for k in range(2):
        u[k] = v[k] + 0.01


def diffuse(comm: Comm, path: Path | None, steps: int, cut: tuple[int, int] | None, layout: Layout) -> np.ndarray:
    """Heat on a lattice between a hot and a cold wall, which are ghosts that the host sets once."""
    ctx = fl.Context("cpu", threads=1, comm=comm)
    grid = ctx.grid((12, 10), "plate", periodic=(False, True), ghost=(1, 0), cut=cut)
    u = ctx.dat(grid, grid.local(np.random.default_rng(1).random((12, 10, 2)), (2,)), "u", layout=layout)
    v = ctx.dat(grid, name="v", shape=(2,), layout=layout)
    stencil = ctx.stencil(grid, [[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]])
    chain = fl.Chain([fl.Loop(five, grid, u[stencil], v), fl.Loop(back, grid, v, u)])

    def march() -> None:
        for step in range(steps):
            if step == 1 and not isinstance(layout, fl.Blocked):
                wall = u.storage()
                if grid.offset[0] == 0:
                    wall[0] = 5.0
                if grid.offset[0] + grid.shape[0] == 12:
                    wall[-1] = -3.0
            chain()

    if path is None:
        march()
    else:
        with Checkpoints(path, every_calls=3).watch(ctx):
            march()
    out = np.empty((12, 10, 2))
    for window, values in comm.allgather((grid.window, u.read())):
        out[window] = values
    return out


@pytest.mark.parametrize(
    "layout", [fl.AoS(), *(pytest.param(x, marks=pytest.mark.long) for x in (fl.SoA(), fl.Blocked(8)))], ids=str
)
def test_lattices(layout: fl.Layout, tmp_path: Path) -> None:
    """Boxes of a lattice go on as other boxes, with what lies beyond the ends."""
    path = tmp_path / "lattice.h5"
    expected = run_threads(1, diffuse, None, 20, None, layout)[0]
    for ranks, steps, cut in ((4, 6, (2, 2)), (3, 11, (3, 1)), (1, 15, None), (2, 20, (1, 2))):
        found = run_threads(ranks, diffuse, path, steps, cut, layout)
    np.testing.assert_array_equal(found[0], expected)
    assert isinstance(layout, fl.Blocked) or expected[0].mean() > 1.0 > -1.0 > expected[-1].mean()


def test_file_is_in_global_order(tmp_path: Path) -> None:
    """Rows of ranks that are dealt out at random lie in the order of their global numbers, and come back."""
    total, dim = 1000, 3
    rows = np.arange(total * dim, dtype=np.float64).reshape(total, dim)
    path = tmp_path / "a.h5"

    def write(comm: Comm) -> None:
        numbers = np.random.default_rng(1).permutation(total)[comm.rank :: comm.size].astype(np.int64)
        writer = StoreWriter(path, comm)
        writer.rows("rows/a", rows[numbers], numbers, total)
        writer.rows("rows/b", np.full((len(numbers), 2), 4.5), numbers, total)
        writer.finish({}, {})

    def read(comm: Comm) -> bool:
        numbers = np.random.default_rng(2).permutation(total)[comm.rank :: comm.size].astype(np.int64)
        reader = StoreReader(path, comm)
        a = reader.rows("rows/a", numbers, len(numbers), total, rows[:0])
        b = reader.rows("rows/b", numbers, len(numbers), total, rows[:0, :2])
        reader.close()
        return bool((a == rows[numbers]).all() and (b == 4.5).all())

    run_threads(3, write)
    with h5py.File(path, "r") as file:
        np.testing.assert_array_equal(file["checkpoint/rows/a"], rows)
        assert file["checkpoint/rows/b"].shape == (1, 2)
    assert run_threads(4, read) == [True] * 4
    assert run_threads(1, read) == [True]


def test_rows_travel_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rank holds more than a block of the others' rows."""
    monkeypatch.setattr("fluxloom.comm.store._BLOCK_BYTES", 800)
    test_file_is_in_global_order(tmp_path)


def test_failure_is_agreed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When rank 0 cannot write every rank counts it and goes on."""
    def full(self: Disk) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Disk, "sync", full)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run_threads(2, run, tmp_path / "a.h5", 20, False, 0, 20, "local")
    assert [(saver.saved, saver.failed) for *_, saver in found] == [(0, 2)] * 2
    assert sum(issubclass(w.category, CheckpointWarning) for w in caught) >= 2
    assert not list(tmp_path.iterdir())


def test_damage_is_told_to_every_rank(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    path.write_text("no")

    def start(comm: Comm) -> str:
        try:
            run(comm, path, 1, False, 0, 5, "local")
        except CheckpointError as error:
            return str(error)
        return ""

    texts = run_threads(3, start)
    assert len(set(texts)) == 1
    assert "damaged" in texts[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda rank: {"every_calls": 4 + rank}, "ranks 0 and 1 differ in every_calls: 4 and 5"),
        (lambda rank: {"every_calls": 4, "place": ("local", "period")[rank]}, "differ in place: 'local' and 'period'"),
        (lambda rank: {"every_calls": 4, "digest": str(rank)}, "ranks 0 and 1 differ in digest; give all the same"),
        (lambda rank: {"every_calls": 4, "restart": rank == 0}, "differ in restart: True and False"),
        (lambda rank: {"every_calls": 4, "path": f"{rank}.h5"}, "differ in file: '0.h5' and '1.h5'"),
    ],
)
def test_ranks_are_told_the_same(options: Callable[[int], dict[str, Any]], message: str, tmp_path: Path) -> None:
    def start(comm: Comm) -> str:
        given = {"path": "a.h5", "restart": True} | options(comm.rank)
        path, restart = tmp_path / given.pop("path"), given.pop("restart")
        with pytest.raises(CheckpointError, match=message) as caught:
            Checkpoints(path, **given).watch(Plate(comm).ctx, restart=restart).__enter__()
        return str(caught.value)

    assert len(set(run_threads(2, start))) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("watcher", [0, 1])
def test_all_ranks_watch_or_none(watcher: int, tmp_path: Path) -> None:
    """They end with an error, which says that they do not do the same."""
    def start(comm: Comm) -> None:
        plate = Plate(comm)
        saver = Checkpoints(tmp_path / "a.h5", every_calls=4)
        with saver.watch(plate.ctx) if comm.rank == watcher else nullcontext():
            plate.run(5, chained=False)

    with pytest.raises(CommError, match=r"the ranks disagree: rank 0: .*; rank 1: ") as caught:
        run_threads(2, start)
    assert f"rank {watcher}: an allgather" in str(caught.value)


def test_clock_of_rank_zero_decides(tmp_path: Path) -> None:
    """Ranks whose clocks differ enter at the same loop."""
    def go(comm: Comm) -> tuple[int, list[int]]:
        now = [1000.0 * comm.rank]

        def clock() -> float:
            now[0] += 1.0 if comm.rank == 0 else 0.001
            return now[0]

        plate = Plate(comm)
        saver = Checkpoints(tmp_path / "a.h5", every=20.0, clock=clock)
        entries = []
        with saver.watch(plate.ctx):
            for _ in range(60):
                plate.run(1, chained=False)
                if saver.last is not None and saver.last.entry.call not in entries:
                    entries.append(saver.last.entry.call)
        return saver.saved, entries

    found = run_threads(3, go)
    assert found[0][0] >= 2
    assert found == [found[0]] * 3


def test_looks_of_one_rank_only(tmp_path: Path) -> None:
    """One rank may read its dats alone at any time, also while a checkpoint is taken."""
    def go(comm: Comm, restart: bool) -> tuple[int, np.ndarray]:
        plate = Plate(comm)
        saver = Checkpoints(tmp_path / "a.h5", every_calls=4)
        with saver.watch(plate.ctx, restart=restart):
            for _ in range(10):
                for loop in (plate.keep, plate.flux, plate.advance):
                    loop()
                    if comm.rank == 1 and not saver.replaying:
                        plate.r.read()
        return saver.saved, plate.whole()

    saved, first = run_threads(2, go, False)[0]
    assert saved >= 2
    _, again = run_threads(2, go, True)[0]
    np.testing.assert_array_equal(first, again)
