"""Ragged maps on several ranks: products, loops over entries, increments, in every layout, against one rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Loop, Max, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError, LoopError
from fluxloom.dsl.declare.maps import RaggedMap
from fluxloom.dsl.ranks.decompose import Decomposition, Link, decompose
from fluxloom.dsl.run.chain import Chain
from fluxloom_lab.attack.loops.worlds import OWNERS, difference, join, owners
from tests.conformance.harness import as_a_gpu
from tests.conformance.test_ragged import entrywise, fill, spmv, spread

ROWS, POINTS = 700, 240
STORES = {
    "csr": fl.CSR(), "ell": fl.ELL(), "ell-row": fl.ELL(column_major=False), "sliced8": fl.SlicedELL(8),
    "sliced32": fl.SlicedELL(32), "sliced5-row": fl.SlicedELL(5, column_major=False),
}  # fmt: skip


@fl.kernel
def jacobi(a: Read, x: Read, b: Read, z: Write):
    """One row of ``z = b - A x`` and a value of the row itself."""
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    z[0] = 0.1 * (b[0] - total)


@fl.kernel
def axpy(z: Read, x: fl.RW):
    x[0] += z[0]


@fl.kernel
def longest(x: Read, most: Max, count: Inc):
    most[0] = max(most[0], float(len(x)))
    count[0] += float(len(x))


def table(seed: int, rows: int, targets: int, *, local: bool) -> np.ndarray:
    """Return rows of up to 7 targets, padded with -1, some of them empty."""
    rng = np.random.default_rng(seed)
    near = np.arange(rows)[:, None] * targets // rows + rng.integers(-4, 5, (rows, 7))
    found = near % targets if local else rng.integers(0, targets, (rows, 7))
    found[np.arange(7) >= rng.integers(0, 8, rows)[:, None]] = -1
    return found


CELLS = table(1, ROWS, ROWS, local=True)
CORNERS = table(2, ROWS, POINTS, local=True)
FAR = table(3, ROWS, ROWS, local=False)
TABLES = {"cells": ("cells", "cells", CELLS), "corners": ("cells", "points", CORNERS)}
HUBS = np.concatenate([CELLS, np.full((ROWS, 393), -1)], axis=1)
"""The same, but every ninetieth row leads to 400 others."""
HUBS[::90] = (np.arange(0, ROWS, 90)[:, None] + 3 * np.arange(400)) % ROWS


class Ragged:
    """Ragged maps between cells and points on a context: all rows, or those of a rank."""

    def __init__(
        self, comm: Comm | None, owner: np.ndarray | None, tables: Mapping[str, tuple[str, str, np.ndarray]],
        store: Any, *, covers: bool = True, device: Any = "cpu", **choices: Any,
    ) -> None:  # fmt: skip
        sizes = {"cells": ROWS, "points": POINTS}
        self.ctx = fl.Context(device, tuning=False, comm=comm, **choices)
        self.sets = {name: self.ctx.set(size, name) for name, size in sizes.items()} if comm is None else {}
        mine = {name: rows for name, (_, _, rows) in tables.items()}
        if comm is not None:
            found = _decompose(comm, owner, tables, sizes)
            self.sets = {name: self.ctx.set(found.parts[name], name) for name in sizes}
            mine = {name: found.table(name) for name in tables}
        self.maps = {}
        for name, (source, target, _) in tables.items():
            rows = mine[name] if covers else mine[name][: self.sets[source].size]
            offsets, indices = compressed(rows)
            self.maps[name] = self.ctx.ragged(self.sets[source], self.sets[target], offsets, indices, name, store)

    def on(self, over: fl.Set, seed: int, name: str) -> fl.Dat:
        """Declare a dat whose values depend on the global numbers alone."""
        whole = np.random.default_rng(seed).random(over.total)
        return self.ctx.dat(over, whole if over.part is None else whole[over.part.numbers[: over.size]], name)

    def found(self, outputs: Mapping[str, Any]) -> dict[str, tuple[np.ndarray | None, np.ndarray]]:
        """Return what the rank has of each output."""
        out: dict[str, tuple[np.ndarray | None, np.ndarray]] = {}
        for name, item in outputs.items():
            if isinstance(item, fl.Global):
                out[name] = (None, np.array(item.value))
                continue
            part = item.set.part
            out[name] = (np.arange(item.set.size) if part is None else part.numbers[: part.owned], item.read())
        return out


def _decompose(
    comm: Comm, owner: np.ndarray | None, tables: Mapping[str, tuple[str, str, np.ndarray]], sizes: Mapping[str, int]
) -> Decomposition:
    def slice_of(rows: np.ndarray) -> np.ndarray:
        return rows[len(rows) * comm.rank // comm.size : len(rows) * (comm.rank + 1) // comm.size]

    links = {name: Link(source, target, slice_of(rows)) for name, (source, target, rows) in tables.items()}
    return decompose(comm, sizes, links, on="cells", owner=None if owner is None else slice_of(owner))


def compressed(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and indices of a padded table."""
    return np.concatenate([[0], np.cumsum((rows >= 0).sum(axis=1))]), rows[rows >= 0]


def products(world: Ragged) -> dict[str, Any]:
    """Three sweeps that read through maps, change entries and rows, and loop over entries."""
    cells, corners = world.maps["cells"], world.maps["corners"]
    rows = world.sets["cells"]
    a, w = world.on(cells.entries, 1, "a"), world.on(corners.entries, 2, "w")
    x, b, p = world.on(rows, 3, "x"), world.on(rows, 4, "b"), world.on(world.sets["points"], 5, "p")
    z, y = world.ctx.dat(rows, name="z"), world.ctx.dat(rows, name="y")
    e = world.ctx.dat(rows, name="e")
    most, count = world.ctx.scalar(0.0, "most"), world.ctx.scalar(0.0, "count")
    c = world.ctx.dat(corners.entries, name="c")
    chain = Chain([
        Loop(jacobi, rows, a[cells.to_entries], x[cells], b, z),
        Loop(axpy, rows, z, x),
        Loop(spmv, rows, w[corners.to_entries], p[corners], y),
        Loop(fill, rows, x[cells], world.on(cells.entries, 6, "f")[cells.to_entries], a[cells.to_entries]),
        Loop(fill, rows, p[corners], c[corners.to_entries], w[corners.to_entries]),
        Loop(entrywise, cells.entries, a, x[cells.entry_target[0]], e[cells.entry_row[0]]),
        Loop(longest, rows, x[cells], most, count),
    ])  # fmt: skip
    for _ in range(3):
        chain()
    return {"x": x, "y": y, "z": z, "a": a, "w": w, "c": c, "e": e, "most": most, "count": count}


def scattered(world: Ragged) -> dict[str, Any]:
    """Loops that add to what rows and entries lead to; the entries change, so that their halo matters."""
    cells, corners = world.maps["cells"], world.maps["corners"]
    rows, points = world.sets["cells"], world.sets["points"]
    x, p = world.on(rows, 3, "x"), world.on(points, 5, "p")
    low, high = world.ctx.dat(points, np.full(points.size, 9.0)), world.ctx.dat(points, name="high")
    w, a = world.on(corners.entries, 2, "w"), world.on(cells.entries, 1, "a")
    r = world.ctx.dat(rows, name="r")
    chain = Chain([
        Loop(spread, rows, x, p[corners], low[corners], high[corners]),
        Loop(fill, rows, p[corners], world.ctx.dat(corners.entries)[corners.to_entries], w[corners.to_entries]),
        Loop(entrywise, corners.entries, w, x[corners.entry_row[0]], p[corners.entry_target[0]]),
        Loop(entrywise, cells.entries, a, x[cells.entry_row[0]], r[cells.entry_target[0]]),
        Loop(axpy, rows, r, x),
    ])  # fmt: skip
    for _ in range(2):
        chain()
    return {"p": p, "x": x, "low": low, "high": high, "w": w, "r": r}


def serial(body: Any, store: Any, tables: Any = TABLES, **choices: Any) -> dict[str, np.ndarray]:
    world = Ragged(None, None, tables, store, **choices)
    return {name: values for name, (_, values) in world.found(body(world)).items()}


def parallel(body: Any, store: Any, ranks: int, kind: str, tables: Any = TABLES, **choices: Any) -> Any:
    owner = owners(kind, ROWS, ranks)
    device = choices.pop("device", "cpu")

    def run(comm: Comm) -> Any:
        mine = device[comm.rank] if isinstance(device, list) else device
        world = Ragged(comm, owner, tables, store, device=mine() if callable(mine) else mine, **choices)
        return world.found(body(world))

    return join(run_threads(ranks, run))


@pytest.mark.parametrize(
    ("name", "ranks", "kind"),
    [("csr", 2, "random"), ("csr", 7, "blocks"), ("ell", 3, "blocks"), ("ell-row", 2, "blocks"),
     ("sliced8", 3, "gap"), ("sliced32", 2, "lonely"), ("sliced5-row", 3, "one")],
)  # fmt: skip
def test_what_only_reads(name: str, ranks: int, kind: str) -> None:
    """Rows of owned elements are enough, and rows of all executed ones change nothing."""
    want = serial(products, STORES[name])
    for covers in (False, True):
        got = parallel(products, STORES[name], ranks, kind, covers=covers)
        assert not difference(got, want, 1e-13), covers


@pytest.mark.parametrize(("name", "ranks", "kind"), [("csr", 3, "random"), ("sliced8", 2, "blocks"), ("ell", 7, "gap")])
def test_what_adds(name: str, ranks: int, kind: str) -> None:
    want = serial(scattered, STORES[name])
    assert not difference(parallel(scattered, STORES[name], ranks, kind), want, 1e-13)


@pytest.mark.opencl
def test_devices() -> None:
    """OpenCL on the processor, cooperating work items, and a CPU rank beside them."""
    for body in (products, scattered):
        want = serial(body, fl.SlicedELL(8))
        mixed = parallel(body, fl.SlicedELL(8), 2, "blocks", device=["cpu", "opencl"])
        assert not difference(mixed, want, 1e-12)
        gpus = parallel(body, fl.SlicedELL(8), 2, "blocks", device=[as_a_gpu, as_a_gpu])
        assert not difference(gpus, want, 1e-12)


@fl.kernel
def gauss(a: Read, x: Read, y: fl.RW):
    """``y += A x``"""
    for j in range(len(a)):
        y[0] += a[j] * x[j]


@fl.kernel
def push(x: Read, r: Inc):
    for j in range(len(r)):
        r[j] += 0.01 * x[0]


def hubs(world: Ragged, **form: Any) -> dict[str, Any]:
    """A power of a matrix with long rows, which are added to as well."""
    cells, rows = world.maps["cells"], world.sets["cells"]
    a, x, y = world.on(cells.entries, 1, "a"), world.on(rows, 3, "x"), world.on(rows, 4, "y")
    product = Loop(gauss, rows, a[cells.to_entries], x[cells], y, schedule=fl.Schedule(**form))
    r = world.on(rows, 5, "r")
    adds = Loop(push, rows, y, r[cells], schedule=fl.Schedule(strategy="atomic", **form))
    chain = Chain([product, adds, Loop(axpy, rows, r, x)], fuse=False)
    for _ in range(3):
        chain()
    assert ("long" in product.plan.values) is ("long" in adds.plan.values) is (form["lanes"] < 8)
    if world.ctx.comm.size > 1:
        assert all(sequence.tasks[0].cut for sequence in chain.sequences)
    return {"x": x, "y": y, "r": r}


@pytest.mark.opencl
@pytest.mark.parametrize("form", [{"lanes": 4}, {"rows": 2, "lanes": 1}, {"lanes": 32}, {"lanes": 2, "block": 64}])
def test_teams_begin_anywhere(form: dict[str, Any]) -> None:
    """Rows that work items share are cut where the interior ends too, long rows with them."""
    tables = {"cells": ("cells", "cells", HUBS)}
    want = serial(lambda world: hubs(world, **form), fl.CSR(), tables, device=as_a_gpu())
    got = parallel(lambda world: hubs(world, **form), fl.CSR(), 2, "blocks", tables, device=[as_a_gpu, as_a_gpu])
    assert not difference(got, want, 1e-12)


def near(world: Ragged, **form: Any) -> dict[str, Any]:
    """Products with rows that reach their neighbours only, most of them in the interior of a rank."""
    cells, rows = world.maps["cells"], world.sets["cells"]
    a, x, y = world.on(cells.entries, 1, "a"), world.on(rows, 3, "x"), world.on(rows, 4, "y")
    product = Loop(gauss, rows, a[cells.to_entries], x[cells], y, schedule=fl.Schedule(**form))
    chain = Chain([product, Loop(axpy, rows, y, x)], fuse=False)
    for _ in range(3):
        chain()
    if world.ctx.comm.size > 1:
        tasks = [sequence.tasks[0] for sequence in chain.sequences]
        assert all(task.cut and len(task.limits.interior) > 100 and task.limits.rest for task in tasks)
    return {"x": x, "y": y}


@pytest.mark.opencl
@pytest.mark.parametrize(
    "form", [{"lanes": 4}, {"rows": 2, "lanes": 1}, {"lanes": 32}, {"lanes": 1}, {}]
)
@pytest.mark.parametrize("store", ["csr", "ell", "sliced8"])
def test_teams_have_an_interior(form: dict[str, Any], store: str) -> None:
    """The second span of a loop begins where the first one ends, not with the first row."""
    want = serial(lambda world: near(world), STORES[store])
    got = parallel(lambda world: near(world, **form), STORES[store], 2, "blocks", device=[as_a_gpu, as_a_gpu])
    assert not difference(got, want, 1e-12)


@pytest.mark.parametrize("kind", OWNERS)
def test_bits_of_one_rank(kind: str) -> None:
    """Rows keep the order of their entries: a product has the same bits however many ranks there are."""
    want = serial(products, fl.CSR(), schedule=fl.Schedule(deterministic="global"))
    got = parallel(products, fl.CSR(), 3, kind, covers=False, schedule=fl.Schedule(deterministic="global"))
    assert not difference(got, want, 0.0)


def test_interior_runs_while_messages_travel() -> None:
    """A product is cut where its interior ends, and only the vector travels."""

    def run(comm: Comm) -> tuple[int, int, list[str]]:
        world = Ragged(comm, owners("blocks", ROWS, 2), {"cells": TABLES["cells"]}, fl.CSR(), covers=False)
        cells, rows = world.maps["cells"], world.sets["cells"]
        a, x, y = world.on(cells.entries, 1, "a"), world.on(rows, 2, "x"), world.ctx.dat(rows, name="y")
        chain = Chain([Loop(spmv, rows, a[cells.to_entries], x[cells], y), Loop(axpy, rows, y, x)], fuse=False)
        for _ in range(3):
            chain()
        sequence = max(chain.sequences, key=lambda s: int(s.counts.sum()))
        part = rows.part
        assert part is not None
        return part.inside, len(sequence.tasks[0].limits.interior), [e.name for e in sequence.exchanges]

    for inside, cut, names in run_threads(2, run):
        assert inside - 128 < cut <= inside
        assert cut > 0
        assert names == ["x"]


# --------------------------------------------------------------------------------------- what is refused


def test_rows_that_are_missing_are_named() -> None:
    def adds(comm: Comm) -> None:
        scattered(Ragged(comm, owners("blocks", ROWS, 2), TABLES, fl.CSR(), covers=False))

    with pytest.raises(LoopError, match=r"spread: .*'corners' has rows for those of this rank only.*executed rows"):
        run_threads(2, adds)


def test_what_decompose_does_not_know() -> None:
    def lies(comm: Comm) -> None:
        found = _decompose(comm, owners("blocks", ROWS, 2), {"cells": TABLES["cells"]}, {"cells": ROWS})
        context = fl.Context("cpu", comm=comm)
        cells = context.set(found.parts["cells"], "cells")
        offsets = np.arange(cells.size + 1)
        away = np.full(cells.size, cells.size)  # of another rank
        context.ragged(cells, cells, offsets, away, "far")

    with pytest.raises(DatError, match=r"rank 0: ragged map 'far': row 0 is in the interior.*tell decompose"):
        run_threads(2, lies)


def test_one_rank_with_wrong_rows_ends_all() -> None:
    def wrong(comm: Comm) -> None:
        found = _decompose(comm, owners("blocks", ROWS, 2), {"cells": TABLES["cells"]}, {"cells": ROWS})
        context = fl.Context("cpu", comm=comm)
        cells = context.set(found.parts["cells"], "cells")
        context.ragged(cells, cells, np.arange(cells.size + 1 + comm.rank), np.zeros(cells.size + comm.rank, dtype=int))

    with pytest.raises(DatError, match=r"rank 1: ragged map 'ragged': offsets must start at 0.*entries"):
        run_threads(2, wrong)


def test_entries_are_numbered_row_after_row() -> None:
    offsets, indices = compressed(CELLS)

    def run(comm: Comm) -> None:
        for covers in (False, True):
            world = Ragged(comm, owners("random", ROWS, 3), {"cells": TABLES["cells"]}, fl.ELL(), covers=covers)
            cells: RaggedMap = world.maps["cells"]
            part, rows = cells.entries.part, cells.source.part
            assert part is not None
            assert rows is not None
            assert (part.total, cells.entries.total) == (indices.size, indices.size)
            assert np.array_equal(rows.numbers[cells.indices], indices[part.numbers])
            assert np.array_equal(part.numbers, np.concatenate([np.arange(offsets[r], offsets[r + 1])
                                  for r in rows.numbers[: cells.offsets.size - 1].tolist()]))  # fmt: skip
            assert cells.entries.shared is covers

    run_threads(3, run)
