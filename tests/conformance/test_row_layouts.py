"""Ragged loops in every layout and schedule: rows in chunks, rows abreast on CPUs, two rows a work item."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Max, Read, Schedule, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import PlanError
from fluxloom.linalg import SparseMatrix, distributed_matrix
from fluxloom_lab.formats.row_grouped import RowGroupedCSR
from fluxloom_lab.problems.matrices import tet_dual

from .harness import DEVICES, compare, context, everywhere, expected, same, variants

STORES = {
    "csr": fl.CSR(),
    "ell": fl.ELL(),
    "sliced6": fl.SlicedELL(6),
    "sliced8": fl.SlicedELL(8),
    "sliced32": fl.SlicedELL(32),
    "grouped5-3": RowGroupedCSR(5, 3),
    "grouped32": RowGroupedCSR(),
    "grouped4-1": RowGroupedCSR(4, 1),
    "grouped7-900": RowGroupedCSR(7, 900),
}
PACKS = {n: Schedule(lanes=n) for n in (1, 4, 8, 16)}
TEAMS = {
    "one": Schedule(lanes=1),
    "rule": Schedule(),
    "two": Schedule(lanes=2, rows=200),
    "eight": Schedule(lanes=8),
    "all": Schedule(lanes=32),
    "pairs": Schedule(pairs=True),
    "pairs64": Schedule(pairs=True, block=64),
}
ROWS = {"mixed": 403, "one": 1, "two": 2, "none": 0, "empty": 21, "long": 90}
COLUMNS = 311


def lengths(kind: str) -> np.ndarray:
    """Return the entries of each row: some empty, all empty, one very long."""
    n, rng = ROWS[kind], np.random.default_rng(3)
    if kind == "empty":
        return np.zeros(n, dtype=int)
    found = rng.integers(0, 9, n)
    found[rng.random(n) < 0.1] = 0
    if kind == "mixed":
        found[64:128] = 0  # whole slices and groups
        found[200] = 40
    if kind == "long":
        found[50] = 3000
    if kind in ("one", "two"):
        found[:] = np.arange(5, 5 + n)
    return found


def ragged(ctx: fl.Context, store: str, kind: str) -> tuple[Any, np.random.Generator]:
    rng = np.random.default_rng(4)
    offsets = np.concatenate([[0], np.cumsum(lengths(kind))])
    rows, columns = ctx.set(ROWS[kind], "rows"), ctx.set(COLUMNS, "columns")
    return ctx.ragged(rows, columns, offsets, rng.integers(0, COLUMNS, offsets[-1]), "m", STORES[store]), rng


@fl.kernel
def spmv(a: Read, x: Read, y: Write):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total


@fl.kernel
def spmm(a: Read, x: Read, y: Write, *, systems: Const[int]):
    total = [0.0, 0.0, 0.0]
    for j in range(len(a)):
        for k in range(systems):
            total[k] += a[j] * x[j][k]
    for k in range(systems):
        y[k] = total[k]


@fl.kernel
def everything(a: Read, x: Read, q: Read, y: RW, s: Inc, low: Max, total: Inc, count: Inc, *, nu: float):
    """Loops that depend on each other, conditions, entries out of order, reductions of every kind."""
    n = len(a)
    mean = 0.0
    large = False
    for j in range(n):
        mean += x[j] / n
        large = large or x[j] > 0.9
    spread = 0.0
    last = 0.0
    for j in range(1, n, 2):
        d = x[j] - mean
        if d > 0.0:
            spread += d * d * a[j - 1]
        last = a[j]
    y[0] = y[0] + nu * spread - last
    if large:
        y[0] = y[0] * q[0]
    for j in range(len(x)):
        s[0] += a[j] * q[0]
        low[0] = max(low[0], x[j])
        total[0] += x[j]
    count[0] += n


@fl.kernel
def fill(x: Read, a: Write, b: RW):
    for j in range(len(x)):
        a[j] = x[j] * (j + 1)
        b[j] = b[j] - x[j]


def product(ctx, store="csr", kind="mixed", dtype="float64", schedule=None):
    m, rng = ragged(ctx, store, kind)
    a = ctx.dat(m.entries, rng.random(m.entries.size), dtype=dtype)
    x, y = ctx.dat(m.target, rng.random(COLUMNS), dtype=dtype), ctx.dat(m.source, dtype=dtype)
    return [Loop(spmv, m.source, a[m.to_entries], x[m], y, schedule=schedule)], {"y": y}


def several(ctx, store="csr", layout=None, schedule=None):
    m, rng = ragged(ctx, store, "mixed")
    a = ctx.dat(m.entries, rng.random(m.entries.size))
    x = ctx.dat(m.target, rng.random((COLUMNS, 3)), layout=layout)
    y = ctx.dat(m.source, shape=(3,), dtype="float64", layout=layout)
    return [Loop(spmm, m.source, a[m.to_entries], x[m], y, systems=3, schedule=schedule)], {"y": y}


def mixture(ctx, store="csr", dtype="float64", schedule=None):
    m, rng = ragged(ctx, store, "mixed")
    a = ctx.dat(m.entries, rng.random(m.entries.size), dtype=dtype)
    x = ctx.dat(m.target, rng.random(COLUMNS), dtype=dtype)
    q, y, s, low = (ctx.dat(m.source, rng.random(m.source.size), dtype=dtype) for _ in range(4))
    total, count = ctx.scalar(0.5, dtype=dtype), ctx.scalar(2, dtype="int32")
    loop = Loop(everything, m.source, a[m.to_entries], x[m], q, y, s, low, total, count, nu=0.3, schedule=schedule)
    return [loop], {"y": y, "s": s, "low": low, "total": total, "count": count}


def written(ctx, store="csr", schedule=None):
    m, rng = ragged(ctx, store, "mixed")
    x = ctx.dat(m.target, rng.random(COLUMNS))
    a = ctx.dat(m.entries, dtype="float64")
    b = ctx.dat(m.entries, rng.random(m.entries.size))
    return [Loop(fill, m.source, x[m], a[m.to_entries], b[m.to_entries], schedule=schedule)], {"a": a, "b": b}


def choices(device: str, stores: tuple[str, ...] = tuple(STORES)) -> dict[str, dict[str, Any]]:
    """Return every layout with every schedule of a device."""
    known = PACKS if device == "cpu" else TEAMS
    return {f"{s} {n}": {"store": s, "schedule": schedule} for s in stores for n, schedule in known.items()}


@pytest.mark.parametrize("kind", ["mixed", pytest.param("long", marks=pytest.mark.long)])
@pytest.mark.parametrize("device", DEVICES)
def test_products(device: str, kind: str) -> None:
    found = variants(product, device, choices(device), kind=kind)
    assert ("sliced8 pairs" in found) == (device != "cpu")
    for name, got in found.items():
        compare(got, expected(product, kind=kind), what=name)


@pytest.mark.parametrize("kind", ["one", "two", "none", "empty"])
@pytest.mark.parametrize("device", everywhere(keep_items=0))
def test_few_rows(device: str, kind: str) -> None:
    some = choices(device, ("sliced8", "grouped5-3", "grouped32"))
    for name, got in variants(product, device, some, kind=kind).items():
        compare(got, expected(product, kind=kind), what=name)


@pytest.mark.parametrize("device", DEVICES)
def test_float32(device: str) -> None:
    found = variants(product, device, choices(device, ("sliced8", "sliced32", "grouped5-3")), dtype="float32")
    for name, got in found.items():
        compare(got, expected(product, dtype="float32"), "float32", what=name)


@pytest.mark.parametrize("layout", ["aos", "soa"])
@pytest.mark.parametrize("device", DEVICES)
def test_several_systems(device: str, layout: str) -> None:
    kind = fl.SoA() if layout == "soa" else fl.AoS()
    for name, got in variants(several, device, choices(device, ("sliced8", "grouped5-3")), layout=kind).items():
        compare(got, expected(several), what=name)


@pytest.mark.parametrize("device", DEVICES)
def test_rich_kernels(device: str) -> None:
    found = variants(mixture, device, choices(device, ("csr", "ell", "sliced8", "sliced6", "grouped5-3", "grouped32")))
    for name, got in found.items():
        compare(got, expected(mixture), what=name)


@pytest.mark.parametrize("device", DEVICES)
def test_entries_that_are_written(device: str) -> None:
    found = variants(written, device, choices(device, ("sliced8", "grouped5-3", "grouped4-1")))
    assert not any("pairs" in name for name in found)
    for name, got in found.items():
        compare(got, expected(written), what=name)


@pytest.mark.usefixtures("uncontracted")
@pytest.mark.parametrize("case", [product, several, written])
def test_packs_of_rows_keep_the_order_of_sums(case: Any) -> None:
    found = variants(case, "cpu", choices("cpu", ("sliced8", "ell")))
    for name, got in found.items():
        same(got, found["sliced8 1"], name)


@pytest.mark.parametrize("device", DEVICES[1:])
@pytest.mark.parametrize("case", [product, several])
def test_pairs_keep_the_order_of_sums(device: str, case: Any) -> None:
    found = variants(case, device, choices(device, ("sliced8",)))
    same(found["sliced8 pairs"], found["sliced8 one"])


@pytest.mark.parametrize("device", DEVICES)
def test_sums_of_chunks_repeat(device: str) -> None:
    first, again = (variants(product, device, choices(device, ("grouped5-3",)), threads=n) for n in (1, 2))
    for name, got in first.items():
        same(got, again[name], name)


@pytest.mark.parametrize("layout", [fl.SlicedELL(8), RowGroupedCSR(5, 2)])
@pytest.mark.parametrize("device", DEVICES)
def test_ranks(device: str, layout: Any) -> None:
    """Ranges of rows that begin anywhere: inside a slice, a pair, a group."""
    matrix = tet_dual(1500, 2)
    rows = matrix.indptr.size - 1
    start = np.random.default_rng(1).random(rows)
    bounds = [0, rows // 3 + 1, rows // 3 * 2, rows]
    schedule = Schedule() if device == "cpu" or isinstance(layout, RowGroupedCSR) else Schedule(pairs=True)

    def run(comm: Comm) -> tuple[np.ndarray, np.ndarray]:
        ctx = context(device, threads=1, comm=comm)
        mine = np.arange(bounds[comm.rank], bounds[comm.rank + 1])
        found = distributed_matrix(ctx, matrix[mine], layout=layout)
        part = found.rows.part
        assert part is not None
        x = ctx.dat(found.rows, start[part.numbers[: part.owned]])
        y = ctx.dat(found.rows, np.full(found.rows.size, np.nan))
        found.product(x, y, schedule)()
        return part.numbers[: part.owned], y.read()

    got = np.full_like(start, np.nan)
    for numbers, values in run_threads(3, run):
        got[numbers] = values
    assert np.allclose(got, matrix @ start, rtol=1e-13, atol=1e-14)


def test_packs_of_rows_are_reported() -> None:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    some = ((fl.CSR(), 1), (fl.ELL(), 8), (fl.SlicedELL(8), 8), (fl.SlicedELL(6), 2), (RowGroupedCSR(), 1))
    for layout, lanes in some:
        matrix = SparseMatrix.from_scipy(ctx, tet_dual(500), layout=layout)
        x, y = ctx.dat(matrix.columns, dtype="float64"), ctx.dat(matrix.rows, dtype="float64")
        assert matrix.product(x, y).lanes == lanes, layout


def test_pairs_where_there_are_none() -> None:
    ctx = fl.Context("cpu", tuning=False)
    with pytest.raises(PlanError, match="has packs of rows: use lanes"):
        product(ctx, "sliced8", schedule=Schedule(pairs=True))
