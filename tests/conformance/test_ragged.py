"""Loops over rows of ragged maps and over their entries, in every layout."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Max, Min, Read, Write
from fluxloom_lab.formats.row_grouped import RowGroupedCSR

from .harness import (
    LAYOUTS,
    ROW_DEVICES,
    compare,
    everywhere,
    expected,
    native,
    schedules,
    threads_of,
    together,
    variants,
)  # fmt: skip

STORES = {
    "csr": fl.CSR(),
    "ell-row": fl.ELL(column_major=False),
    "ell-column": fl.ELL(),
    "grouped5-chunk3": RowGroupedCSR(5, 3),
    "grouped32": RowGroupedCSR(),
    **{f"sliced{n}-{'column' if c else 'row'}": fl.SlicedELL(n, c) for n in (1, 4, 8, 32) for c in (True, False)},
}


@fl.kernel
def spmv(a: Read, x: Read, y: Write):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total


@fl.kernel
def block_spmv(a: Read, x: Read, y: Inc):
    """Two by two blocks."""
    for j in range(len(x)):
        for r in range(2):
            y[r] += a[j][r, 0] * x[j][0] + a[j][r, 1] * x[j][1]


@fl.kernel
def spread(w: Read, x: Inc, low: Min, high: Max):
    """Adds to every target of a row."""
    for j in range(len(x)):
        x[j] += w[0] * (j + 1)
        low[j] = min(low[j], w[0])
        high[j] = max(high[j], w[0] + len(x))


@fl.kernel
def fill(x: Read, a: Write, b: RW):
    """Writes the entries of a row."""
    for j in range(len(x)):
        a[j] = x[j] * (j + 1)
        b[j] = b[j] - x[j]


@fl.kernel
def entrywise(a: Read, x: Read, y: Inc):
    """SpMV driven from the entries."""
    y[0] += a[0] * x[0]


@fl.kernel
def interpolate(w: Read, p: Read, v: Inc):
    """Cell to node, driven from the cells."""
    for k in range(4):
        v[k] += w[0] * p[0]


@fl.kernel
def gather_cells(p: Read, w: Read, v: Write):
    """Cell to node, driven from the nodes."""
    v[0] = 0.0
    for j in range(len(p)):
        v[0] += w[j] * p[j]


def rows(n: int, columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 9, n)
    lengths[rng.random(n) < 0.1] = 0
    if n > 40:
        lengths[17] = 33
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return offsets, rng.integers(0, max(1, columns), offsets[-1]) if columns else np.zeros(0, dtype=int)


def matrix(ctx, store, n=4321, columns=999):
    offsets, indices = rows(n, columns)
    row_set, column_set = ctx.set(n, "rows"), ctx.set(columns, "columns")
    return ctx.ragged(row_set, column_set, offsets, indices, "matrix", store), np.random.default_rng(1)


def product(ctx, store=None, layout=None, dtype="float64", n=4321, schedule=None):
    m, rng = matrix(ctx, store, n)
    a = ctx.dat(m.entries, rng.random(m.entries.size), dtype=dtype, layout=layout)
    x = ctx.dat(m.target, rng.random(999), dtype=dtype, layout=layout)
    y = ctx.dat(m.source, dtype=dtype, layout=layout)
    return [Loop(spmv, m.source, a[m.to_entries], x[m], y, schedule=schedule)], {"y": y, "a": a}


def blocks(ctx, store=None, layout=None, dtype="float64"):
    m, rng = matrix(ctx, store, 1500)
    a = ctx.dat(m.entries, rng.random((m.entries.size, 2, 2)), dtype=dtype, layout=layout)
    x = ctx.dat(m.target, rng.random((999, 2)), dtype=dtype, layout=layout)
    y = ctx.dat(m.source, rng.random((1500, 2)), dtype=dtype, layout=layout)
    return [Loop(block_spmv, m.source, a[m.to_entries], x[m], y)], {"y": y}


def increments(ctx, store=None, layout=None, dtype="float64", schedule=None):
    m, rng = matrix(ctx, store, 4200)
    w = ctx.dat(m.source, rng.random(4200), dtype=dtype)
    x, low, high = (ctx.dat(m.target, rng.random(999), dtype=dtype, layout=layout) for _ in range(3))
    loop = Loop(spread, m.source, w, x[m], low[m], high[m], schedule=schedule)
    return [loop], {"x": x, "low": low, "high": high}


def entries_written(ctx, store=None, layout=None, dtype="float64"):
    m, rng = matrix(ctx, store)
    x = ctx.dat(m.target, rng.random(999), dtype=dtype, layout=layout)
    a = ctx.dat(m.entries, dtype=dtype, layout=layout)
    b = ctx.dat(m.entries, rng.random(m.entries.size), dtype=dtype, layout=layout)
    return [Loop(fill, m.source, x[m], a[m.to_entries], b[m.to_entries])], {"a": a, "b": b}


def longest(ctx, store=None, most=255):
    """Products with rows of at most ``most`` entries: a byte holds the length 255, but not 256."""
    lengths = np.tile([3, most, 0, 17, 1, most - 1, 2, 5], 5)
    rng, offsets = np.random.default_rng(most), np.concatenate([[0], np.cumsum(lengths)])
    row_set, columns = ctx.set(lengths.size, "rows"), ctx.set(300, "columns")
    m = ctx.ragged(row_set, columns, offsets, rng.integers(0, 300, offsets[-1]), "matrix", store)
    assert m.store.short == (most < 256)
    a, x, y = ctx.dat(m.entries, rng.random(m.entries.size)), ctx.dat(columns, rng.random(300)), ctx.dat(row_set)
    return [Loop(spmv, row_set, a[m.to_entries], x[m], y)], {"y": y}


def entries_driven(ctx, store=None, layout=None, dtype="float64", schedule=None):
    m, rng = matrix(ctx, store)
    a = ctx.dat(m.entries, rng.random(m.entries.size), dtype=dtype, layout=layout)
    x = ctx.dat(m.target, rng.random(999), dtype=dtype)
    y = ctx.dat(m.source, rng.random(m.source.size), dtype=dtype)
    through, rows_of = m.entry_target, m.entry_row
    return [Loop(entrywise, m.entries, a, x[through[0]], y[rows_of[0]], schedule=schedule)], {"y": y}


EVERY = {name: {"store": store} for name, store in STORES.items()}


@pytest.mark.parametrize("device", ROW_DEVICES)
def test_spmv(device: str) -> None:
    for threads in threads_of(device, 1, 3):
        for name, got in variants(product, device, EVERY, threads=threads).items():
            compare(got, expected(product), what=name)


@pytest.mark.parametrize("layout", ["soa", "blocked"])
@pytest.mark.parametrize(
    ("device", "store", "dtype"),
    everywhere(
        [("csr", "float64"), ("sliced8-column", "float32"), ("ell-column", "float16")],
        [("csr", "float64"), ("sliced8-column", "float32"), ("ell-column", "float16")],
        keep_items=2,
    ),
)
def test_spmv_layouts(device: str, store: str, layout: str, dtype: str) -> None:
    want = expected(product, dtype=dtype)
    compare(native(product, device, store=STORES[store], layout=LAYOUTS[layout], dtype=dtype), want, dtype)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("device", ROW_DEVICES)
def test_blocks(device: str, layout: str) -> None:
    some = {name: EVERY[name] for name in ("csr", "ell-column", "sliced4-column", "sliced32-row")}
    for name, got in variants(blocks, device, some, layout=LAYOUTS[layout]).items():
        compare(got, expected(blocks), what=name)


@pytest.mark.parametrize("device", ROW_DEVICES)
def test_lengths_of_a_byte_and_more(device: str) -> None:
    some = ("csr", "ell-row", "ell-column", "sliced8-column", "sliced32-row", "grouped32")
    choices = {f"{name} {most}": {"store": STORES[name], "most": most} for name in some for most in (255, 256)}
    for name, got in variants(longest, device, choices).items():
        compare(got, expected(longest, most=choices[name]["most"]), what=name)


@pytest.mark.parametrize("device", ROW_DEVICES)
def test_few_rows(device: str) -> None:
    some = ("csr", "ell-row", "ell-column", "sliced8-column", "sliced8-row")
    choices = {f"{name} {n}": {"store": STORES[name], "n": n} for name in some for n in (0, 1, 7, 33)}
    for name, got in variants(product, device, choices).items():
        compare(got, expected(product, n=choices[name]["n"]), what=name)


@pytest.mark.parametrize("device", ROW_DEVICES)
@pytest.mark.parametrize("store", ["csr", "sliced8-column", "grouped5-chunk3"])
def test_increments_through_rows(device: str, store: str) -> None:
    found = together(increments, schedules(device), device, store=STORES[store], threads=3)
    without = ("atomic", "gather", "two_pass", *(() if device == "cpu" else ("block_colour",)))
    assert set(found) == set(schedules(device, without=without))
    for name, got in found.items():
        compare(got, expected(increments), what=name)


@pytest.mark.parametrize("device", ROW_DEVICES)
@pytest.mark.parametrize("layout", ["aos", "soa", "blocked"])
def test_increments_through_rows_in_layouts(device: str, layout: str) -> None:
    compare(native(increments, device, layout=LAYOUTS[layout], threads=2), expected(increments))


@pytest.mark.parametrize("device", ROW_DEVICES)
def test_atomic_increments_through_rows(device: str) -> None:
    @fl.kernel
    def add(w: Read, x: Inc):
        for j in range(len(x)):
            x[j] += w[0] * (j + 1)

    def case(ctx, schedule=None):
        m, rng = matrix(ctx, None, 4200)
        w, x = ctx.dat(m.source, rng.random(4200)), ctx.dat(m.target)
        return [Loop(add, m.source, w, x[m], schedule=schedule)], {"x": x}

    compare(native(case, device, schedule=fl.Schedule(strategy="atomic"), threads=3), expected(case))


@pytest.mark.parametrize("device", ROW_DEVICES)
def test_writes_of_entries(device: str) -> None:
    for name, got in variants(entries_written, device, EVERY).items():
        compare(got, expected(entries_written), what=name)


@pytest.mark.parametrize("device", ROW_DEVICES)
@pytest.mark.parametrize("store", ["csr", "sliced8-row"])
def test_entries_drive(device: str, store: str) -> None:
    found = together(entries_driven, schedules(device, lanes=8), device, store=STORES[store])
    if store == "csr":
        assert set(found) == set(schedules(device))
    for name, got in found.items():
        compare(got, expected(entries_driven), what=name)


@pytest.mark.parametrize("device", ROW_DEVICES)
@pytest.mark.parametrize("layout", ["soa", "blocked"])
def test_entries_drive_in_layouts(device: str, layout: str) -> None:
    for store in ("csr", "sliced8-column"):
        schedule = fl.Schedule(lanes=8)
        got = native(entries_driven, device, store=STORES[store], layout=LAYOUTS[layout], schedule=schedule)
        compare(got, expected(entries_driven))


@pytest.mark.parametrize("device", ROW_DEVICES)
def test_interpolation_from_both_sides(device: str) -> None:
    """Cell to node: the incrementing form over cells and the gathering form over nodes agree."""

    def from_cells(ctx):
        rng = np.random.default_rng(5)
        cells, nodes = ctx.set(4500, "cells"), ctx.set(2300, "nodes")
        c2n = ctx.map(cells, nodes, rng.integers(0, 2300, (4500, 4)), "c2n")
        w, p = ctx.dat(cells, rng.random(4500)), ctx.dat(cells, rng.random(4500))
        v = ctx.dat(nodes)
        return [Loop(interpolate, cells, w, p, v[c2n])], {"v": v}

    def from_nodes(ctx):
        rng = np.random.default_rng(5)
        cells, nodes = ctx.set(4500, "cells"), ctx.set(2300, "nodes")
        flat = rng.integers(0, 2300, (4500, 4)).ravel()
        order = np.argsort(flat, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=2300))])
        n2c = ctx.ragged(nodes, cells, offsets, order // 4, "n2c")
        w, p = ctx.dat(cells, rng.random(4500)), ctx.dat(cells, rng.random(4500))
        v = ctx.dat(nodes)
        return [Loop(gather_cells, nodes, p[n2c], w[n2c], v)], {"v": v}

    want = expected(from_cells)
    for case in (from_cells, from_nodes):
        for threads in threads_of(device, 1, 3):
            compare(native(case, device, threads=threads), want)


@pytest.mark.parametrize("device", ROW_DEVICES)
def test_a_subset_of_rows(device: str) -> None:
    def case(ctx, store=None):
        m, rng = matrix(ctx, store)
        a, x = ctx.dat(m.entries, rng.random(m.entries.size)), ctx.dat(m.target, rng.random(999))
        y = ctx.dat(m.source, rng.random(m.source.size))
        some = ctx.subset(m.source, rng.random(m.source.size) < 0.3)
        return [Loop(spmv, some, a[m.to_entries], x[m], y)], {"y": y}

    some = {name: EVERY[name] for name in ("csr", "ell-column", "sliced8-column", "sliced8-row")}
    for name, got in variants(case, device, some).items():
        compare(got, expected(case), what=name)


@fl.kernel
def hidden_names(x: Read, y: Write, *, t: float, te: float):
    """Loop variable and constants whose generated names are near each other."""
    y[0] = 0.0
    for k in range(len(x)):
        y[0] += t * x[k] + te * k


@pytest.mark.parametrize("device", ROW_DEVICES)
def test_names_of_counters_and_constants(device: str) -> None:
    def case(ctx):
        m, rng = matrix(ctx, None, 100)
        x, y = ctx.dat(m.target, rng.random(999)), ctx.dat(m.source)
        return [Loop(hidden_names, m.source, x[m], y, t=0.25, te=-3.0)], {"y": y}

    compare(native(case, device), expected(case))


@fl.kernel
def assemble(k: Read, a: Inc):
    """An element matrix added to the matrix."""
    for i in range(4):
        a[i] += k[i]


def assembly(ctx, store=None, layout=None):
    m, rng = matrix(ctx, store)
    cells = ctx.set(4100, "cells")
    c2a = ctx.map(cells, m.entries, rng.integers(0, m.entries.size, (4100, 4)), "c2a")
    k, a = ctx.dat(cells, rng.random((4100, 4))), ctx.dat(m.entries, layout=layout)
    x, y = ctx.dat(m.target, rng.random(999)), ctx.dat(m.source)
    return [Loop(assemble, cells, k, a[c2a]), Loop(spmv, m.source, a[m.to_entries], x[m], y)], {"a": a, "y": y}


@pytest.mark.parametrize(("device", "layout"), everywhere(LAYOUTS, LAYOUTS, keep=1, keep_items=1))
def test_assembly(device: str, layout: str) -> None:
    """A map to the entries of a matrix: storage places differ from entry numbers, results do not."""
    for name, got in variants(assembly, device, EVERY, layout=LAYOUTS[layout]).items():
        compare(got, expected(assembly), what=name)
