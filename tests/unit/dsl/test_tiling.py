"""Tiled chains: what they refuse, report and keep; the planner against sets of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Write
from fluxloom.core.errors import DatError, LoopError, PlanError
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.tiles.owners import cache_bytes
from fluxloom.dsl.tiles.tiling import TiledChain
from fluxloom.dsl.tiles.tune import tune_tiles
from fluxloom.graph import inverse_map
from fluxloom.graph.chain_tiles import ChainArg, ChainMap, ChainPass, ChainStep, TileOwners, plan_tiles


@fl.kernel
def collect(u: Read, s: Inc):
    s[0] += u[1]
    s[1] += u[0]


@fl.kernel
def relax(r: Read, s: RW, u: Write, *, w: float):
    u[0] = w * r[0] + 0.1 * s[0]
    s[0] = 0.0


@fl.kernel
def total(u: Read, g: Inc):
    g[0] += u[0]


@fl.kernel
def scaled(u: RW, g: Read):
    u[0] *= g[0]


@fl.kernel
def rows(x: Read, u: Write):
    t = 0.0
    for j in range(len(x)):
        t += x[j]
    u[0] = t


@fl.kernel
def twice(u: RW):
    u[0] *= 2.0


class Ring:
    """A ring of nodes with smoothing sweeps."""

    def __init__(self, n: int = 600, threads: int = 2, device: str = "cpu") -> None:
        self.ctx = fl.Context(device, threads=threads, tuning=False)
        self.nodes, self.edges = self.ctx.set(n, "nodes"), self.ctx.set(n, "edges")
        self.map = self.ctx.map(self.edges, self.nodes, np.stack([np.arange(n), (np.arange(n) + 1) % n], 1), "ends")
        values = np.random.default_rng(0).random(n)
        self.r, self.u, self.s = (self.ctx.dat(self.nodes, v, name) for v, name in ((values, "r"), (values, "u"), (
            np.zeros(n), "s")))  # fmt: skip
        self.collect = Loop(collect, self.edges, self.u[self.map], self.s[self.map])
        self.relax = Loop(relax, self.nodes, self.r, self.s, self.u, w=0.8)
        self.sweep = [self.collect, self.relax]


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"steps_at_once": 0}, "once or more"),
        ({"steps_at_once": 1.5}, "steps_at_once=1.5: a call runs"),
        ({"steps_at_once": "2"}, "steps_at_once='2': a call runs"),
        ({"tiles": -1}, "positive number"),
        ({"tiles": 2.5}, "whole numbers, not float64"),
        ({"tiles": None}, "whole numbers, not object"),
        ({"tiles": "many"}, "whole numbers, not <U4"),
        ({"tiles": np.zeros(600)}, "whole numbers, not float64"),
    ],
)
def test_wrong_choices(options: dict[str, Any], text: str) -> None:
    with pytest.raises(PlanError, match=text):
        TiledChain(Ring().sweep, **options)


def test_wrong_tiles() -> None:
    ring = Ring()
    for wrong in (np.zeros(5, dtype=int), np.full(600, -1), np.zeros((600, 2), dtype=int)):
        with pytest.raises(PlanError, match="one tile from 0"):
            TiledChain(ring.sweep, tiles=wrong)()
    for many in (10**9, 10**15 * np.arange(600)):
        with pytest.raises(PlanError, match=r"tiles for the 600 elements of \w+: give fewer"):
            TiledChain(ring.sweep, tiles=many)()


def test_wrong_steps() -> None:
    with pytest.raises(LoopError, match="neither a loop"):
        TiledChain([print])  # type: ignore[list-item]
    ring = Ring()
    other = ring.ctx.dat(ring.nodes, name="other")
    with pytest.raises(LoopError, match="not used by any loop"):
        TiledChain([ring.relax], transient=[other])
    with pytest.raises(LoopError, match="transient are dats, not 's'"):
        TiledChain([ring.relax], transient=["s"])  # type: ignore[list-item]
    for steps, transient in ((None, ()), (ring.relax, ()), (fl.Chain(ring.sweep), ()), (ring.sweep, ring.s)):
        for kind in (TiledChain, fl.Chain):
            with pytest.raises(LoopError, match="lists of loops and of transient dats are wanted"):
                kind(steps, transient=transient)  # type: ignore[arg-type]


def untiled(kind: str) -> tuple[TiledChain, str]:
    """A chain that tiles cannot run, and words of the reason."""
    ring = Ring(device="reference" if kind == "reference" else "cpu")
    ctx, g = ring.ctx, ring.ctx.scalar(1.0, "g")
    match kind:
        case "reference":
            return TiledChain(ring.sweep), "tiles are for CPUs"
        case "subset":
            some = ctx.subset(ring.nodes, np.arange(5))
            return TiledChain([*ring.sweep, Loop(twice, some, ring.u)]), "twice: it runs over"
        case "ragged":
            near = ctx.ragged(ring.nodes, ring.nodes, np.arange(601), np.arange(600), "near")
            return TiledChain([Loop(rows, ring.nodes, ring.r[near], ring.u)]), "only table maps"
        case "blocked":
            other = ctx.dat(ring.nodes, np.ones((600, 2)), "b", layout=fl.Blocked(8))
            return TiledChain([Loop(twice, ring.nodes, other)]), "blocked layout"
        case "grid":
            grid = ctx.grid((5, 5), periodic=True)
            return TiledChain([Loop(twice, grid, ctx.dat(grid, np.ones((5, 5))))]), "only loops over whole sets"
        case "grade":
            strict = Loop(twice, ring.nodes, ring.u, schedule=fl.Schedule(deterministic="global"))
            return TiledChain([*ring.sweep, strict]), "ask for deterministic"
        case "reduced":
            return TiledChain([Loop(total, ring.nodes, ring.u, g), Loop(scaled, ring.nodes, ring.r, g)]), "reduces into"
    return TiledChain([Reset(g, 2.0), Loop(scaled, ring.nodes, ring.r, g)]), "which the chain resets"


@pytest.mark.parametrize("kind", ["reference", "subset", "ragged", "blocked", "grid", "grade", "reduced", "reset"])
def test_what_is_not_tiled(kind: str) -> None:
    """It runs all the same, and says why it does so without tiles."""
    chain, text = untiled(kind)
    assert text in chain.reason
    assert text in chain.describe()
    assert not chain.tiled
    assert chain.lead is None
    chain()
    with pytest.raises(PlanError, match="does not run in tiles"):
        _ = chain.counters


# -------------------------------------------------------------------------------------------- reports


def test_reports_and_counters() -> None:
    ring = Ring()
    chain = TiledChain(ring.sweep * 3, tiles=6, transient=[ring.s], name="smooth")
    for _ in range(3):
        chain()
    counters = chain.counters
    # a ring: in front of a sweep, a tile needs one node and one edge more on each side than behind it
    extra = sum(2 * k for k in range(3)) + sum(2 * k + 1 for k in range(3))
    gaps = 2 * 4  # the first and the last tile run what lies between the two ends of their edges too
    assert counters.executed - counters.needed == 6 * extra + gaps
    assert counters.bytes_in == 8 * (600 + 6 * 2 * 3) + 8 * (600 + 6 * 2 * 2)
    assert counters.bytes_out == 8 * 600
    row = chain.reports()[0]
    assert (row.strategy, row.calls, row.block) == ("tiles", 2, 100)
    assert row.useful_bytes == counters.moved
    assert [r.name for r in chain.reports()[1:]] == ["collect", "relax"]
    text = chain.describe()
    assert "6 tiles of up to 100 nodes" in text
    assert "second buffer: u" in text
    assert "zero between calls: s" in text
    held = ring.u.data
    assert "loop by loop for now: arrays outside share the memory of u" in chain.describe()
    del held
    chain.reset_counters()
    assert all(r.calls == 0 for r in chain.reports())
    assert "fl_tiled_smooth" in chain.source
    assert repr(chain) == "TiledChain(smooth, 1 x 6 loops)"
    assert chain.lead is ring.nodes


def test_loops_that_run_together() -> None:
    """Loops that only change their own element share a pass; one that reads neighbours of it does not."""
    ring = Ring()
    near = Loop(collect, ring.edges, ring.u[ring.map], ring.s[ring.map])
    chain = TiledChain([ring.relax, Loop(twice, ring.nodes, ring.u), near, ring.relax])
    assert "4 loops in 3 passes" in chain.describe()


def test_a_dat_that_only_its_tile_reads_stays_where_it_is() -> None:
    ring = Ring()
    chain = TiledChain([Loop(twice, ring.nodes, ring.u)], tiles=4)
    view = ring.u.data
    before = view.copy()
    chain()
    np.testing.assert_array_equal(view, 2 * before)
    assert "second buffer" not in chain.describe()


def test_a_transient_dat_that_the_next_call_reads_is_kept() -> None:
    values = []
    for tiled in (True, False):
        ring = Ring()
        chain = TiledChain([ring.relax, ring.collect], tiles=5, transient=[ring.s])
        for _ in range(4):
            chain() if tiled else chain.chain()
        values.append(ring.u.read())
    np.testing.assert_allclose(*values, rtol=1e-14)


def test_the_cache_of_a_core(tmp_path: Path) -> None:
    for k, (level, kind, size) in enumerate([(1, "Instruction", "64K"), (1, "Data", "48K"), (2, "Unified", "2M")]):
        folder = tmp_path / f"index{k}"
        folder.mkdir()
        for name, value in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{value}\n")
    assert [cache_bytes(level, tmp_path) for level in (1, 2)] == [48 * 1024, 2 * 2**20]
    assert cache_bytes(3, tmp_path) == 16 * 2**20  # where the system does not say


def test_tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fastest size is used and recorded; a new chain finds it; the values are as before."""
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))
    ring = Ring()
    ring.ctx.tuning = True
    chain = TiledChain(ring.sweep, tiles=6, name="smooth")
    before = ring.u.read()
    now = [0.0]

    def clock() -> float:
        """Let a call take as long as its tiles differ from 200 elements."""
        now[0] += 1.0 + abs(chain.counters.elements - 200)
        return now[0]

    found = tune_tiles(chain, rounds=1, clock=clock)
    assert found.best.point == {"tile": 200}
    assert chain.counters.tiles == 3
    np.testing.assert_array_equal(ring.u.read(), before)
    assert TiledChain(ring.sweep).counters.tiles == 3
    assert TiledChain(ring.sweep, tiles=5).counters.tiles == 5
    ring.ctx.tuning = False
    assert TiledChain(ring.sweep).counters.tiles == 1


# -------------------------------------------------------------------------------------------- the planner


def backwards(
    tile: int, owners: list[np.ndarray], dats: list[tuple[int, bool]], maps: list[ChainMap], steps: list[ChainStep]
) -> tuple[list[set[int]], list[set[int]]]:
    """Executed elements of each step and needed values of each dat, by sets of Python."""

    def reached(arg: ChainArg, e: int) -> list[int]:
        if arg.map < 0:
            return [e]
        row = maps[arg.map].table[e].tolist()
        return row if arg.leg < 0 else [row[arg.leg]]

    own = [set(np.flatnonzero(o == tile).tolist()) for o in owners]
    need = [set(own[s]) if out else set() for s, out in dats]
    executed: list[set[int]] = []
    for step in reversed(steps):
        every = range(owners[step.set].size)
        here = {e for e in every if any(set(reached(a, e)) & need[a.dat] for a in step.args if a.writes)}
        here |= own[step.set] if step.reduces else set()
        for kills in (True, False):
            for a in step.args:
                touched = {t for e in here for t in reached(a, e)}
                if kills and a.kills:
                    need[a.dat] -= touched
                elif not kills and a.reads:
                    need[a.dat] |= touched
        executed.insert(0, here)
    return executed, need


@pytest.mark.parametrize("seed", range(12))
def test_plan_of_random_chains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, tiles = rng.integers(1, 30, 3), int(rng.integers(1, 5))
    owners = [rng.integers(0, tiles, n) for n in sizes]
    dats = [(int(s), bool(rng.random() < 0.6)) for s in rng.integers(0, 3, 4)]
    maps = []
    for _ in range(3):
        a, b = (int(s) for s in rng.integers(0, 3, 2))
        table = rng.integers(0, sizes[b], (sizes[a], 2)).astype(np.int32)
        maps.append(ChainMap(a, b, table, inverse_map(table, int(sizes[b]))))
    steps = []
    for k in range(5):
        over, args = int(rng.integers(0, 3)), []
        for d, (where, _) in enumerate(dats):
            ways = [m for m, item in enumerate(maps) if (item.source, item.target) == (over, where)]
            ways += [-1] if where == over else []
            if ways:
                m = int(rng.choice(ways))
                reads, writes, kills = [(1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 1, 1)][rng.integers(0, 4)]
                kills = kills and m < 0
                leg = -1 if m < 0 else int(rng.integers(-1, 2))
                args.append(ChainArg(d, m, leg, bool(reads), bool(writes), bool(kills)))
        steps.append(ChainStep(over, k, bool(rng.random() < 0.2), tuple(args)))
    passes = [ChainPass(s.set, 0, s.reduces) for s in steps]
    plan = plan_tiles([TileOwners.of(o, tiles) for o in owners], dats, maps, steps, passes)
    foreign = [False] * len(dats)
    for tile in range(tiles):
        executed, need = backwards(tile, owners, dats, maps, steps)
        for k, runs in enumerate(plan.passes):
            rows_ = runs.runs[runs.first[tile] : runs.first[tile + 1]]
            assert sum(end - begin for begin, end, _ in rows_.tolist()) == len(executed[k])
            if steps[k].reduces:
                mine = sum(end - begin for begin, end, owned in rows_.tolist() if owned)
                assert mine == int((owners[steps[k].set] == tile).sum())
        for d, runs in enumerate(plan.inputs):
            rows_ = runs.runs[runs.first[tile] : runs.first[tile + 1]].tolist()
            assert [e for g, _, n in rows_ for e in range(g, g + n)] == sorted(need[d])
            foreign[d] |= any(owners[dats[d][0]][e] != tile for e in need[d])
    assert list(plan.foreign) == foreign


def test_the_planner_wants_inverses() -> None:
    owners = [TileOwners.of(np.zeros(2, dtype=int), 1)]
    step = ChainStep(0, 0, False, (ChainArg(0, 0, -1, False, True, False),))
    table = np.zeros((2, 1), dtype=np.int32)
    with pytest.raises(DatError, match="give its inverse"):
        plan_tiles(owners, [(0, True)], [ChainMap(0, 0, table)], [step], [ChainPass(0, 0, False)])
