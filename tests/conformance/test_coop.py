"""Ragged loops whose rows are shared by work items, or handled several an item, against the reference device."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Max, Min, Read, Write
from fluxloom.codegen.items.cooperative_rows import LONG_LANES
from fluxloom_lab.formats.row_grouped import RowGroupedCSR

from .harness import ITEMS, Values, build, compare, expected, rest_is_long

STORES = {
    "csr": fl.CSR(),
    "ell-row": fl.ELL(column_major=False),
    "ell-column": fl.ELL(),
    "sliced8-row": fl.SlicedELL(8, False),
    "sliced4-column": fl.SlicedELL(4, True),
    "grouped8-chunk3": RowGroupedCSR(8, 3),
}
LANES = (1, 2, 4, 8, 16, 32)
COLUMNS = 777

PRODUCTS = [
    pytest.param(store, lanes, marks=[] if (i + j) % 3 == 0 else [pytest.mark.long])
    for i, store in enumerate(STORES)
    for j, lanes in enumerate(LANES)
]
"""Every layout and every number of lanes twice; all pairs of them when long tests are asked for."""


@pytest.fixture(scope="module", params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ITEMS])
def ctx(request: pytest.FixtureRequest) -> fl.Context:
    return fl.Context(request.param, tuning=False)


@fl.kernel
def spmv(a: Read, x: Read, y: Write):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total


@fl.kernel
def add_row(a: Read, y: RW):
    for j in range(len(a)):
        y[0] += a[j]


@fl.kernel
def residual(e: Read, u: Read, p: Read, v: Read, q: Read, r: Inc, s: Write, *, nu: float):
    """Edge-based finite elements: sixteen numbers an entry, two loops, a limiter between them."""
    low = q[0]
    high = q[0]
    g = [0.0, 0.0, 0.0]
    for j in range(len(e)):
        low = min(low, p[j])
        high = max(high, p[j])
        dp = p[j] - q[0]
        for d in range(3):
            g[d] += e[j][10 + d] * dp
    width = high - low + 1.0
    s[0] = 0.0
    for j in range(len(e)):
        du = [u[j][0] - v[0], u[j][1] - v[1], u[j][2] - v[2]]
        laplace = e[j][1] + e[j][5] + e[j][9]
        c = 0.0
        for d in range(3):
            c += e[j][10 + d] * v[d]
        if c > 0.6:
            c = c / width
        for d in range(3):
            r[d] += nu * laplace * du[d] - c * du[d]
            r[d] -= e[j][13 + d] * p[j] * g[d]
        s[0] += e[j][0] * c


@fl.kernel
def bounds(x: Read, y: RW, low: Min, high: Max, sums: Inc, least: Min, count: Inc):
    """Direct and global reductions, integers too; a first value that counts once."""
    n = 0
    any_large = False
    for j in range(len(x)):
        low[0] = min(low[0], x[j])
        high[0] = max(high[0], x[j] + 1.0)
        y[0] = y[0] + x[j]
        if x[j] > 0.5:
            n += 1
        any_large = any_large or x[j] > 0.9
        sums[0] += x[j]
        least[0] = min(least[0], x[j])
    sums[1] += 1.0
    count[0] += n + 1000 if any_large else n


@fl.kernel
def histogram(x: Read, h: Write):
    """A local array at computed places, in steps of two from the second entry."""
    bins = [1.0, 0.0, 0.0, 0.0]
    n = len(x)
    for j in range(1, n, 2):
        b = int(x[j] * 4.0)
        bins[b] += x[j]
    for k in range(4):
        h[k] = bins[k]


@fl.kernel
def spread(w: Read, x: Inc):
    for j in range(len(x)):
        x[j] += w[0] * (j + 1)


@fl.kernel
def spread_bounds(w: Read, x: Inc, low: Min, total: Inc):
    s = 0.0
    for j in range(len(x)):
        x[j] += w[0] * (j + 1)
        low[j] = min(low[j], w[0])
        s += w[0]
    total[0] += s


@fl.kernel
def fill(x: Read, a: Write, b: RW, c: Inc):
    total = 0.0
    for j in range(len(x)):
        a[j] = x[j] * (j + 1)
        total += x[j]
    for j in range(len(x)):
        b[j] = b[j] - total
        c[j] += x[j]


@fl.kernel
def to_corners(x: Read, v: Inc, *, w: Const[float]):
    total = w
    for j in range(len(x)):
        total += x[j]
    for k in range(2):
        v[k] += total


def table(n: int, huge: bool = True, distinct: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of which some are empty and one is huge."""
    rng = np.random.default_rng(n)
    lengths = rng.integers(0, 12, n)
    lengths[rng.random(n) < 0.15] = 0
    if huge and n > 20:
        lengths[n // 3] = 700
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if not distinct:
        return offsets, rng.integers(0, COLUMNS, offsets[-1])
    rows = [rng.choice(COLUMNS, m, replace=False) for m in lengths]
    return offsets, np.concatenate(rows) if rows else np.zeros(0, dtype=int)


def ragged(ctx, store=None, n=1111, **options):
    rows, columns = ctx.set(n, "rows"), ctx.set(COLUMNS, "columns")
    return ctx.ragged(rows, columns, *table(n, **options), "m", STORES[store or "csr"]), np.random.default_rng(7)


def product(ctx, store=None, dtype="float64", n=1111, schedule=None):
    m, rng = ragged(ctx, store, n)
    a = ctx.dat(m.entries, rng.random(m.entries.size), dtype=dtype)
    x = ctx.dat(m.target, rng.random(COLUMNS), dtype=dtype)
    y = ctx.dat(m.source, dtype=dtype)
    return [Loop(spmv, m.source, a[m.to_entries], x[m], y, schedule=schedule)], {"y": y}


def edges(ctx, store=None, dtype="float64", layout=None, schedule=None):
    m, rng = ragged(ctx, store, 900)
    e = ctx.dat(m.entries, rng.random((m.entries.size, 16)), dtype=dtype, layout=layout)
    u, p = (ctx.dat(m.target, rng.random((COLUMNS, *d)), dtype=dtype, layout=layout) for d in ((3,), ()))
    v, r = (ctx.dat(m.source, rng.random((900, 3)), dtype=dtype, layout=layout) for _ in range(2))
    q, s = ctx.dat(m.source, rng.random(900), dtype=dtype), ctx.dat(m.source, dtype=dtype)
    loop = Loop(residual, m.source, e[m.to_entries], u[m], p[m], v, q, r, s, nu=0.3, schedule=schedule)
    return [loop], {"r": r, "s": s}


def extremes(ctx, store=None, dtype="float64", n=1111, some=False, schedule=None):
    m, rng = ragged(ctx, store, n)
    x = ctx.dat(m.target, rng.random(COLUMNS), dtype=dtype)
    y, low, high = (ctx.dat(m.source, rng.random(n), dtype=dtype) for _ in range(3))
    sums, least = ctx.scalar(np.array([2.0, 5.0]), dtype=dtype), ctx.scalar(0.75, dtype=dtype)
    count = ctx.scalar(3, dtype="int32")
    over = ctx.subset(m.source, rng.random(n) < 0.4) if some else m.source
    loop = Loop(bounds, over, x[m], y, low, high, sums, least, count, schedule=schedule)
    return [loop], {"y": y, "low": low, "high": high, "sums": sums, "least": least, "count": count}


@fl.kernel
def three(a: Read, u: Read, r: Inc, s: Write):
    """Components that can be handled one after the other; the last does not depend on the row."""
    t = [0.0, 0.0, 0.0]
    for j in range(len(a)):
        for d in range(3):
            t[d] += a[j] * u[j][d]
            r[d] += u[j][d]
    s[0] = t[0]
    s[1] = t[1]
    s[2] = 1.0


def pieces(ctx, schedule=None):
    m, rng = ragged(ctx)
    a, u = ctx.dat(m.entries, rng.random(m.entries.size)), ctx.dat(m.target, rng.random((COLUMNS, 3)))
    r, s = ctx.dat(m.source, rng.random((m.source.size, 3))), ctx.dat(m.source, shape=(3,))
    return [Loop(three, m.source, a[m.to_entries], u[m], r, s, schedule=schedule)], {"r": r, "s": s}


def bins(ctx, store=None, schedule=None):
    m, rng = ragged(ctx, store)
    x, h = ctx.dat(m.target, rng.random(COLUMNS)), ctx.dat(m.source, shape=(4,))
    return [Loop(histogram, m.source, x[m], h, schedule=schedule)], {"h": h}


def scatter(ctx, store=None, schedule=None):
    m, rng = ragged(ctx, store)
    w, x = ctx.dat(m.source, rng.random(m.source.size)), ctx.dat(m.target, rng.random(COLUMNS))
    return [Loop(spread, m.source, w, x[m], schedule=schedule)], {"x": x}


def coloured(ctx, store=None, schedule=None):
    m, rng = ragged(ctx, store, 400, huge=False, distinct=True)
    w, total = ctx.dat(m.source, rng.random(m.source.size)), ctx.scalar(1.0)
    x, low = (ctx.dat(m.target, rng.random(COLUMNS)) for _ in range(2))
    loop = Loop(spread_bounds, m.source, w, x[m], low[m], total, schedule=schedule)
    return [loop], {"x": x, "low": low, "total": total}


def written(ctx, store=None, schedule=None):
    m, rng = ragged(ctx, store)
    x = ctx.dat(m.target, rng.random(COLUMNS))
    a, b, c = (ctx.dat(m.entries, rng.random(m.entries.size)) for _ in range(3))
    loop = Loop(fill, m.source, x[m], a[m.to_entries], b[m.to_entries], c[m.to_entries], schedule=schedule)
    return [loop], {"a": a, "b": b, "c": c}


def corners(ctx, schedule=None):
    m, rng = ragged(ctx)
    points = ctx.set(300, "points")
    r2p = ctx.map(m.source, points, rng.integers(0, 300, (m.source.size, 2)), "r2p")
    x, v = ctx.dat(m.target, rng.random(COLUMNS)), ctx.dat(points)
    return [Loop(to_corners, m.source, x[m], v[r2p], w=0.5, schedule=schedule)], {"v": v}


def teams(lanes: int, repeat: int = 1, block: int = 64, **more: object) -> fl.Schedule:
    return fl.Schedule(lanes=lanes, rows=repeat * block // lanes, block=block, **more)  # type: ignore[arg-type]


def run(ctx: fl.Context, case, schedule: fl.Schedule, **options) -> Values:
    """Run a case on the device; the schedule has to be in force as it is."""
    built = build(case, ctx, schedule=schedule, **options)
    (loop,) = built.steps
    assert loop.schedule.lanes == schedule.lanes
    assert loop.report().lanes == schedule.lanes
    assert loop.schedule.rows * schedule.lanes % loop.schedule.block == 0
    return built.run()


def same(left: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]) -> None:
    for name, values in left.items():
        np.testing.assert_array_equal(values, right[name], err_msg=name)


@pytest.mark.parametrize(("store", "lanes"), PRODUCTS)
def test_product(ctx: fl.Context, store: str, lanes: int) -> None:
    want = expected(product)
    got = run(ctx, product, teams(lanes), store=store)
    compare(got, want)
    for repeat, block in ((2, 64), (3, 128)):  # the sum of a row depends on lanes only
        same(run(ctx, product, teams(lanes, repeat, block), store=store), got)


def by_hand(values: np.ndarray, lanes: int, start: float) -> float:
    """Return a sum as the lanes of a team take it."""
    parts = [start, *[-0.0] * (lanes - 1)]
    for j, value in enumerate(values):
        parts[j % lanes] += value
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [parts[k] + parts[k + half] for k in range(half)]
    return parts[0]


@pytest.mark.parametrize("lanes", LANES)
def test_the_tree(ctx: fl.Context, lanes: int) -> None:
    """The same bits on every device."""
    m, rng = ragged(ctx)
    values, start = rng.random(m.entries.size), rng.random(m.source.size)
    a, y = ctx.dat(m.entries, values), ctx.dat(m.source, start)
    loop = Loop(add_row, m.source, a[m.to_entries], y, schedule=teams(lanes, 2))
    loop()
    most = loop.plan.values.get("long", max(np.diff(m.offsets)))  # longer rows have lanes of their own
    rows = zip(np.split(values, m.offsets[1:-1]), start, strict=True)
    want = [by_hand(row, lanes if len(row) <= most else LONG_LANES, first) for row, first in rows]
    np.testing.assert_array_equal(y.read(), want)


@pytest.mark.parametrize("lanes", [1, 4])
def test_long_rows(ctx: fl.Context, monkeypatch: pytest.MonkeyPatch, lanes: int) -> None:
    """Rows far longer than the others go to a kernel of their own, also of a subset; results stay the same."""
    monkeypatch.setattr(ctx.device, "is_cpu", False, raising=False)
    m, rng = ragged(ctx)
    values = rng.random(m.entries.size)
    part = ctx.subset(m.source, np.flatnonzero(rng.random(m.source.size) < 0.7))
    for over in (m.source, part):
        a, y = ctx.dat(m.entries, values), ctx.dat(m.source, np.zeros(m.source.size))
        loop = Loop(add_row, over, a[m.to_entries], y, schedule=teams(lanes))
        loop()
        sums = np.array([row.sum() for row in np.split(values, m.offsets[1:-1])])
        chosen = np.zeros(m.source.size, dtype=bool)
        chosen[part.indices if over is part else slice(None)] = True
        np.testing.assert_allclose(y.read(), np.where(chosen, sums, 0.0), rtol=1e-13)
        longest = np.diff(m.offsets)[chosen].max()
        assert ("long_rows" in loop.plan.values) == (longest > 4 * max(64, 16 * lanes))


@pytest.mark.parametrize("lanes", [2, 16])
def test_product_in_single_precision(ctx: fl.Context, lanes: int) -> None:
    compare(run(ctx, product, teams(lanes, 2), dtype="float32"), expected(product, dtype="float32"), "float32")


@pytest.mark.parametrize("n", [0, 1, 7, 65])
@pytest.mark.parametrize(("lanes", "repeat"), [(1, 3), (8, 1), (32, 2)])
def test_fewer_rows_than_items(ctx: fl.Context, n: int, lanes: int, repeat: int) -> None:
    compare(run(ctx, product, teams(lanes, repeat), n=n), expected(product, n=n))


@pytest.mark.parametrize("n", [0, 1, *rest_is_long([65], keep=0)])
def test_reductions_of_few_rows(ctx: fl.Context, n: int) -> None:
    compare(run(ctx, extremes, teams(8, 2, 128), n=n), expected(extremes, n=n))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("store", "lanes", "repeat"), [("csr", 4, 1), ("csr", 32, 2), ("ell-column", 8, 3), ("ell-row", 1, 2)]
)
def test_edge_based_residual(ctx: fl.Context, store: str, lanes: int, repeat: int, dtype: str) -> None:
    compare(run(ctx, edges, teams(lanes, repeat), store=store, dtype=dtype), expected(edges, dtype=dtype), dtype)


@pytest.mark.parametrize("layout", [fl.SoA(), fl.Blocked(8)])
def test_edge_based_residual_in_layouts(ctx: fl.Context, layout: fl.Layout) -> None:
    compare(run(ctx, edges, teams(8), store="sliced4-column", layout=layout), expected(edges))


GROUPINGS = [
    (8, 2, 128, False), (1, 3, 128, True), (2, 1, 128, False), (32, 1, 256, True), (8, 2, 64, True), (32, 3, 64, False),
]  # fmt: skip


@pytest.mark.parametrize(("lanes", "repeat", "block", "some"), rest_is_long(GROUPINGS, keep=3))
def test_reductions(ctx: fl.Context, lanes: int, repeat: int, block: int, some: bool) -> None:
    first = run(ctx, extremes, teams(lanes, repeat, block), some=some)
    compare(first, expected(extremes, some=some))
    same(run(ctx, extremes, teams(lanes, repeat, block), some=some), first)


@pytest.mark.parametrize("store", rest_is_long(["ell-column", "sliced8-row"], keep=1))
def test_reductions_of_padded_rows(ctx: fl.Context, store: str) -> None:
    want = expected(extremes, dtype="float32")
    compare(run(ctx, extremes, teams(4, 2, 128), store=store, dtype="float32"), want, "float32")


@pytest.mark.parametrize("lanes", [1, 4, 32])
def test_local_arrays(ctx: fl.Context, lanes: int) -> None:
    compare(run(ctx, bins, teams(lanes, 2)), expected(bins))


@pytest.mark.parametrize("lanes", [1, 8])
def test_component_by_component(ctx: fl.Context, lanes: int) -> None:
    compare(run(ctx, pieces, teams(lanes, 2, split=True)), expected(pieces))


@pytest.mark.parametrize("lanes", [1, 8])
def test_atomic_updates(ctx: fl.Context, lanes: int) -> None:
    compare(run(ctx, scatter, teams(lanes, 2, strategy="atomic")), expected(scatter))
    compare(run(ctx, corners, teams(lanes, 2, strategy="atomic")), expected(corners))


@pytest.mark.parametrize(("lanes", "repeat"), [(1, 2), (4, 1), (16, 3)])
def test_coloured_updates(ctx: fl.Context, lanes: int, repeat: int) -> None:
    schedule = teams(lanes, repeat, 128, strategy="element_colour")
    first = run(ctx, coloured, schedule)
    compare(first, expected(coloured))
    same(run(ctx, coloured, schedule), first)


@pytest.mark.parametrize("store", ["csr", *rest_is_long(["ell-column", "sliced8-row"], keep=1)])
@pytest.mark.parametrize("lanes", [1, 2, 32])
def test_written_entries(ctx: fl.Context, store: str, lanes: int) -> None:
    compare(run(ctx, written, teams(lanes, 2), store=store), expected(written))


def test_a_chain_of_shared_rows(ctx: fl.Context) -> None:
    """Inside a chain, beside a loop without rows."""

    @fl.kernel
    def scale(y: RW):
        y[0] = 2.0 * y[0]

    def case(ctx, schedule=None):
        (loop,), outputs = product(ctx, schedule=schedule)
        return [fl.Chain([loop, Loop(scale, loop.over, outputs["y"]), loop])], outputs

    compare(build(case, ctx, schedule=teams(8, 2)).run(), expected(case))
