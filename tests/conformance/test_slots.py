"""Loops through slots: single components of elements, read, written, changed and added to, on every device."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Inc, Loop, Max, Min, Read, Write
from fluxloom.core.dtypes import scalar

from .harness import (
    DEVICES,
    LAYOUTS,
    build,
    compare,
    context,
    everywhere,
    expected,
    native,
    same,
    schedules,
    threads_of,
    together,
    variants,
)  # fmt: skip

ON_CPU = everywhere(keep_items=0)
"""For what depends little on the device."""

SHAPE, COMPONENTS, LINKS = (24, 31), 9, 1100


@fl.kernel
def bounce(arrived: Read, put: Write, weight: Read, force: Inc, *, a: float):
    for k in range(3):
        put[k] = a * arrived[k] + weight[0] * arrived[(k + 1) % 3]
        force[0] += arrived[k]
    force[1] += arrived[0] * weight[0]


@fl.kernel
def relax(one: RW, least: Min, most: Max, n: Inc):
    least[0] = min(least[0], one[0])
    one[0] = 0.5 * one[0] + 0.125
    most[0] = max(most[0], one[0])
    n[0] += 1


@fl.kernel
def damp(f: RW):
    for k in range(9):
        f[k] = 0.75 * f[k]


def tables(rng: np.random.Generator, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Return slots to read and slots to write, no two alike."""
    every = rng.permutation(cells * COMPONENTS)[: 6 * LINKS].reshape(2, LINKS, 3)
    return every[0], every[1]


class Lattice:
    """A lattice with nine numbers a cell, and links that each read three of them and write three."""

    def __init__(self, ctx, layout=None, dtype="float64", ghost=0):
        rng = np.random.default_rng(7)
        self.grid = ctx.grid(SHAPE, periodic=not ghost, ghost=ghost)
        self.links = ctx.set(LINKS, "links")
        values = rng.random((*SHAPE, COMPONENTS))
        self.f = ctx.dat(self.grid, values, dtype=dtype, layout=layout, name="f")
        self.weight = ctx.dat(self.links, rng.random(LINKS), dtype=dtype, layout=layout)
        read, put = tables(rng, SHAPE[0] * SHAPE[1])
        self.read = ctx.slots(self.links, self.grid, read // COMPONENTS, read % COMPONENTS, "read")
        self.put = ctx.slots(self.links, self.grid, put // COMPONENTS, put % COMPONENTS, "put")
        self.force = ctx.scalar([0.0, 0.0], "force")
        self.least, self.most, self.n = ctx.scalar(1.0), ctx.scalar(-1.0), ctx.scalar(0, dtype="int64")

    def loops(self, over=None):
        over = over if over is not None else self.links
        return [
            Loop(bounce, over, self.f[self.read], self.f[self.put], self.weight, self.force, a=0.5),
            Loop(relax, over, self.f[self.read[1]], self.least, self.most, self.n),
        ]

    @property
    def outputs(self):
        return {k: getattr(self, k) for k in ("f", "force", "least", "most", "n")}


def lattice(ctx, **options):
    made = Lattice(ctx, **options)
    return made.loops(), made.outputs


EVERY = [(name, t) for t in ("float64", "float32", "float16") for name in LAYOUTS]
SOME = [(name, t) for (name, t) in EVERY if name == {"float64": "aos", "float32": "blocked", "float16": "soa"}[t]]
"""Each layout and each type once."""


@pytest.mark.parametrize(
    ("device", "pairs"), everywhere([(SOME,), (EVERY,)], [(SOME,), (EVERY,)], keep=1, keep_items=1)
)
def test_layouts_and_types(device: str, pairs: list[tuple[str, str]]) -> None:
    refuses = context(device).device.refuses
    choices = {(name, t): {"layout": LAYOUTS[name], "dtype": t} for name, t in pairs if not refuses(scalar(t))}
    for threads in threads_of(device, 1, 2):
        for (layout, dtype), got in variants(lattice, device, choices, threads=threads).items():
            compare(got, expected(lattice, dtype=dtype), dtype, f"{layout} {dtype} {threads}")


@pytest.mark.parametrize("device", ON_CPU)
def test_sums_are_in_double_precision(device: str) -> None:
    """Of single precision numbers whose sum has more digits than these."""
    ctx = context(device)
    made = Lattice(ctx, dtype="float32")
    values = made.f.read().astype(np.float64) + 4096.0
    made.f.write(values)
    made.loops()[0]()
    read, _ = tables_of(made)
    exact = made_sum(values.astype(np.float32).astype(np.float64), read)
    assert abs(made.force.value[0] - exact) < 1e-9 * exact


def tables_of(made: Lattice) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    return (made.read.cells, made.read.components), (made.put.cells, made.put.components)


def made_sum(values: np.ndarray, read: tuple[np.ndarray, np.ndarray]) -> float:
    return float(values.reshape(-1, COMPONENTS)[read].sum())


# ------------------------------------------------------------------------------------- where they lead


def some(ctx, layout=None):
    """Over a subset."""
    made = Lattice(ctx, layout)
    chosen = np.random.default_rng(3).random(LINKS) < 0.4
    return made.loops(ctx.subset(made.links, chosen)), made.outputs


@fl.kernel
def look(arrived: Read, out: RW, force: Inc):
    for k in range(3):
        out[0] += arrived[k]
    force[0] += out[0]


def changing(ctx, layout=None):
    """Over a subset whose members change between two calls, to less and to more."""
    made = Lattice(ctx, layout)
    over = ctx.subset(made.links, np.arange(100), capacity=900)
    seen = Chain([Loop(look, over, made.f[made.read], made.weight, made.force)], fuse=False)
    steps = [seen, lambda: over.assign(np.arange(50, 60)), seen, lambda: over.assign(np.arange(200, 1100)), seen]
    return steps, {"weight": made.weight, "force": made.force}


@pytest.mark.parametrize("device", ON_CPU)
def test_members_that_change(device: str) -> None:
    compare(native(changing, device, layout=LAYOUTS["soa"]), expected(changing))


@fl.kernel
def fill(edge: Write, inner: Read):
    edge[0] = 2.0 * inner[0] + inner[1]


def ghosts(ctx, layout=None):
    """Elements of a lattice with ghosts by their numbers, and ghosts by their places."""
    made = Lattice(ctx, layout, ghost=1)
    full = np.arange(made.grid.storage_size).reshape(made.grid.full_shape)
    front = full[0, 1:-1]
    over = ctx.set(front.size, "front")
    edge = ctx.slots(over, made.grid, front, 4, "edge", stored=True)
    inner = ctx.slots(over, made.grid, np.stack([full[1, 1:-1], full[2, 1:-1]], 1), [2, 5], "inner", stored=True)
    back = ctx.slots(over, made.grid, np.stack([full[0, 1:-1]] * 2, 1), [4, 4], "back", stored=True)
    again = ctx.slots(over, made.grid, np.arange(front.size), 8, "again")
    steps = [Loop(fill, over, made.f[edge], made.f[inner]), Loop(fill, over, made.f[again], made.f[back])]
    return [*made.loops(), *steps], made.outputs


@fl.kernel
def double(x: RW, k: RW):
    for g in range(2):
        x[g] = 2.0 * x[g]
        k[g] = k[g] + 3


def entries(ctx, layout=None):
    """Slots of the entries of ragged rows, which are stored in an order of their own; of matrices, and of integers."""
    rng = np.random.default_rng(5)
    rows, over = ctx.set(50, "rows"), ctx.set(40, "over")
    lengths = rng.integers(0, 6, 50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ragged = ctx.ragged(rows, rows, offsets, rng.integers(0, 50, offsets[-1]), "ragged", fl.SlicedELL(8))
    n = int(offsets[-1])
    x = ctx.dat(ragged.entries, rng.random((n, 2, 2)), layout=layout)
    k = ctx.dat(ragged.entries, rng.integers(0, 9, (n, 4)), dtype="int32", layout=layout)
    where = rng.permutation(4 * n)[:80].reshape(40, 2)
    slots = ctx.slots(over, ragged.entries, where // 4, where % 4)
    return [Loop(double, over, x[slots], k[slots])], {"x": x, "k": k}


@fl.kernel
def many(x: Read, y: Write):
    for g in range(40):
        y[g] = x[g] + 0.5 * x[39 - g]


def many_legs(ctx, layout=None):
    rng = np.random.default_rng(2)
    cells, over = ctx.set(200, "cells"), ctx.set(30, "over")
    f = ctx.dat(cells, rng.random((200, 19)), layout=layout, dtype="float32")
    every = rng.permutation(200 * 19)[:2400].reshape(2, 30, 40)
    read, put = (ctx.slots(over, cells, t // 19, t % 19) for t in every)
    return [Loop(many, over, f[read], f[put])], {"f": f}


CASES = (some, ghosts, entries, many_legs)


@pytest.mark.parametrize("device", DEVICES)
def test_where_they_lead(device: str) -> None:
    """Cases compiled as one unit; the reference device has no blocks with ghosts, and needs none."""
    ctx = context(device, threads=2)
    found = {(case, name): build(case, ctx, layout=LAYOUTS[name]) for case in CASES for name in ("aos", "soa")}
    found |= {(case, "blocked"): build(case, ctx, layout=LAYOUTS["blocked"]) for case in (entries, ghosts)}
    Chain([step for item in found.values() for step in item.steps], fuse=False)()
    for (case, name), item in found.items():
        compare(item.values(), expected(case), "float32" if case is many_legs else "float64", f"{case.__name__} {name}")


@pytest.mark.parametrize("device", ON_CPU)
def test_places_of_64_bits(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with more than 2**31 numbers, without having so many."""
    monkeypatch.setattr("fluxloom.dsl.declare.slots.NARROW", 0)
    ctx = context(device)
    found = [build(lattice, ctx, layout=LAYOUTS["soa"]), build(many_legs, ctx)]
    Chain([step for item in found for step in item.steps], fuse=False)()
    for item, want in zip(found, (expected(lattice), expected(many_legs)), strict=True):
        assert not re.search(r"int32_t \*.*\bm\d", item.steps[0].source)
        assert re.search(r"int64_t \*.*\bm\d", item.steps[0].source)
        compare(item.values(), want, "float32")


# ------------------------------------------------------------------------------------------ increments


@fl.kernel
def gain(x: Inc, w: Read, total: Inc):
    x[0] += w[0]
    x[1] += 2.0 * w[0]
    total[0] += w[0]


@fl.kernel
def extremes(low: Min, high: Max, w: Read):
    low[0] = min(low[0], w[0])
    high[0] = max(high[0], 2.0 * w[0])


def increments(ctx, layout=None, dtype="float64", schedule=None):
    rng = np.random.default_rng(11)
    cells, over = ctx.set(40, "cells"), ctx.set(3000, "over")
    w = ctx.dat(over, rng.random(3000), dtype=dtype)
    f, low, high = (ctx.dat(cells, rng.random((40, 5)), dtype=dtype, layout=layout) for _ in range(3))
    slots = ctx.slots(over, cells, rng.integers(0, 40, (3000, 2)), rng.integers(0, 5, (3000, 2)))
    total = ctx.scalar(0.0)
    loop = Loop(gain, over, f[slots], w, total, schedule=schedule)
    steps = [loop]
    if schedule is None or schedule.strategy != "atomic":
        steps.append(Loop(extremes, over, low[slots[0]], high[slots[1]], w, schedule=schedule))
    return steps, {"f": f, "total": total}


@pytest.mark.parametrize(
    ("device", "layout"), everywhere(list(LAYOUTS), list(LAYOUTS), keep=1, keep_items=0)
)
def test_increments(device: str, layout: str) -> None:
    found = together(increments, schedules(device), device, layout=LAYOUTS[layout])
    wanted = {"serial", "block_colour", "element_colour", "block_permute", "atomic"}
    assert set(found) == (wanted if device == "cpu" else {"atomic", "element_colour"})
    for name, got in found.items():
        compare(got, expected(increments), what=name)


# ----------------------------------------------------------------------------------------------- chains


def chain_of(ctx, fuse=True, layout=None):
    """Two loops through slots with direct loops before, between and behind."""
    made = Lattice(ctx, layout)
    first, second = made.loops()
    work = Loop(damp, made.grid, made.f)
    scale = Loop(relax_weight, made.links, made.weight)
    steps = [fl.Reset(made.force), scale, work, first, scale, second, work, first]
    return [Chain(steps, fuse=fuse)], made.outputs


@fl.kernel
def relax_weight(w: RW):
    w[0] = 0.5 * w[0] + 0.25


@pytest.mark.parametrize("device", ON_CPU)
def test_chains(device: str) -> None:
    want = expected(chain_of, 3)
    found = [native(chain_of, device, times=3, fuse=fuse, layout=LAYOUTS["soa"]) for fuse in (True, False)]
    for got in found:
        compare(got, want)
    same(found[0], found[1])


def sets_chain(ctx, fuse=True):
    """Over plain sets, where loops do fuse: what slots write is what the next direct loop finds, and the reverse."""
    rng = np.random.default_rng(9)
    cells, links = ctx.set(700, "cells"), ctx.set(200, "links")
    f, g = (ctx.dat(cells, rng.random((700, 3)), name=name) for name in "fg")
    t = rng.permutation(2100)[:1200].reshape(2, 200, 3)
    read, put = (ctx.slots(links, cells, s // 3, s % 3) for s in t)
    w, force = ctx.dat(links, rng.random(200)), ctx.scalar([0.0, 0.0])
    copy, smooth = Loop(keep, cells, f, g), Loop(blend, cells, f, g)
    far = Loop(bounce, links, f[read], f[put], w, force, a=0.5)
    steps = [copy, smooth, far, smooth, Loop(bounce, links, g[read], f[put], w, force, a=0.25), smooth]
    return [Chain(steps, fuse=fuse, transient=[g] if fuse else [])], {"f": f, "force": force}


@fl.kernel
def keep(f: Read, g: Write):
    for k in range(3):
        g[k] = f[k]


@fl.kernel
def blend(f: RW, g: Read):
    for k in range(3):
        f[k] = 0.5 * (f[k] + g[k])


@pytest.mark.parametrize("device", ON_CPU)
def test_chains_of_sets(device: str) -> None:
    want = expected(sets_chain, 3)
    for fuse in (True, False):
        compare(native(sets_chain, device, times=3, fuse=fuse), want)
