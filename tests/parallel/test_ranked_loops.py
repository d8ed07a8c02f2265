"""Every race strategy, layout, type and device on several ranks, against one rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Inc, Loop, Max, Min, Read
from fluxloom.core.dtypes import scalar
from fluxloom.core.errors import PlanError
from fluxloom.dsl.run.chain import Chain
from fluxloom_lab.attack.loops.programs import (
    ends,
    extremes,
    flux,
    flux_and_sum,
    put_more,
    spread,
    to_points,
    two_legs,
    two_sets,
)
from fluxloom_lab.attack.loops.worlds import World, alone, difference, owners, random_mesh, together
from tests.conformance.harness import ITEM_STRATEGIES, LAYOUTS, STRATEGIES, TOLERANCE
from tests.conformance.kernels import counts

CELLS = 1100
MESH = random_mesh(3, CELLS, local=True)
HALF = np.random.default_rng(5).random(2 * CELLS) < 0.4


@fl.kernel
def tally(c: Read, r: Inc, low: Min, high: Max, n: Inc):
    """Whole numbers: increments, extremes and a sum."""
    r[0][0] += c[0]
    r[1][0] += 1
    low[0][0] = min(low[0][0], c[0])
    high[1][0] = max(high[1][0], 2 * c[0])
    n[0] += c[0]


def narrow(schedules: Mapping[str, fl.Schedule]) -> dict[str, fl.Schedule]:
    """Return the strategies with small blocks and tiles, so that a part has several."""
    return {name: replace(s, block=min(s.block, 64) if s.block > 1 else s.block) for name, s in schedules.items()}


def reals(world: World, schedules: Mapping[str, fl.Schedule]) -> dict[str, Any]:
    """Run increments of all kinds under many schedules, compiled as one unit, twice."""
    rng = np.random.default_rng(1)
    sizes, maps, out, loops = world.mesh.sizes, world.maps, {}, []
    some = world.subset("edges", HALF)
    k0, u0 = rng.random((sizes["edges"], 2)), rng.random((sizes["cells"], 2))
    k, u = world.dat("edges", k0, "k"), world.dat("cells", u0, "u")
    e, p, b = maps["edge_cells"], maps["edge_points"], maps["border_cell"]
    for name, schedule in schedules.items():
        r = [world.dat("cells", u0, f"r{j}_{name}") for j in range(8)]
        state, a = world.dat("edges", k0, f"k_{name}"), world.dat("points", np.zeros((sizes["points"], 2)), f"a_{name}")
        t = world.dat("border", k0[: sizes["border"]], f"t_{name}")
        total, low = world.ctx.scalar(0.0, f"total_{name}"), world.ctx.scalar(1.0, f"low_{name}")
        edges, cells = world.sets["edges"], world.sets["cells"]
        forms: list[Any] = [
            (flux, edges, u[e], r[0][e], {"w": 0.9}), (spread, edges, state, u[e], r[1][e], {}),
            (two_sets, edges, k, r[2][e], a[p], {}), (two_legs, edges, k, r[3][e[0]], r[4][e[1]], {}),
            (extremes, edges, k, u[e], r[5][e], r[6][e], {}), (flux, some, u[e], r[7][e], {"w": 0.5}),
            (flux_and_sum, edges, u[e], r[7][e], total, low, {}), (to_points, cells, u, a[maps["cell_points"]], {}),
        ]  # fmt: skip
        for kernel, over, *arguments, constants in forms:
            if kernel is flux_and_sum and (name == "two_pass" or world.dtype == "float16"):
                continue
            if kernel is two_legs and name == "gather1":
                continue  # takes one map
            try:
                loops.append(Loop(kernel, over, *arguments, schedule=schedule, **constants))
            except PlanError:
                continue
        loops.append(Loop(put_more, world.sets["border"], t, r[0][b[0]]))
        loops.append(Loop(ends, edges, r[1][e], a[p], k))
        out |= {d.name: d for d in (*r, state, a, t, total, low)}
    chain = Chain(loops, fuse=False)
    for _ in range(2):
        chain()
    return out | {"k": k, "u": u}


def integers(world: World, schedules: Mapping[str, fl.Schedule]) -> dict[str, Any]:
    """The same with whole numbers of four and of one byte."""
    rng = np.random.default_rng(2)
    cells, edges = world.mesh.sizes["cells"], world.mesh.sizes["edges"]
    out: dict[str, Any] = {}
    loops = []
    e = world.maps["edge_cells"]
    for dtype in ("int32", "uint8"):
        c = world.dat("edges", rng.integers(0, 9, edges), f"c_{dtype}", dtype=dtype)
        for name, schedule in schedules.items():
            three = np.full((cells, 2), 3)
            r, low, high = (world.dat("cells", three, f"{x}_{name}_{dtype}", dtype=dtype) for x in "rlh")
            n = world.ctx.scalar(1, f"n_{name}_{dtype}", dtype="int32")
            for kernel, tail in ((tally, [n]), (counts, [])):
                if kernel is counts:
                    arguments: list[Any] = [c, r[e[0]], low[e[0]], high[e[1]]]
                else:
                    arguments = [c, r[e], low[e], high[e], *tail]
                if (tail and name == "two_pass") or (kernel is counts and name == "gather1"):
                    continue  # cannot count, takes one map
                try:
                    loops.append(Loop(kernel, world.sets["edges"], *arguments, schedule=schedule))
                except PlanError:
                    continue
            out |= {d.name: d for d in (r, low, high, n)}
    Chain(loops, fuse=False)()
    return out


CASES = [
    pytest.param("float64", "aos", 2, "blocks", id="float64-aos-2"),
    pytest.param("float64", "soa", 7, "blocks", id="float64-soa-7", marks=pytest.mark.long),
    pytest.param("float64", "blocked", 3, "lonely", id="float64-blocked-3", marks=pytest.mark.long),
    pytest.param("float32", "soa", 2, "random", id="float32-soa-2", marks=pytest.mark.long),
    pytest.param("float16", "aos", 3, "gap", id="float16-aos-3", marks=pytest.mark.long),
]


def compared(body: Any, ranks: int, kind: str, device: Any, tolerance: float, **options: Any) -> None:
    want = alone(body, MESH, device, **options)
    got = together(body, MESH, ranks, owners(kind, CELLS, ranks, 4), device, **options)
    assert not difference(got, want, tolerance)


@pytest.mark.parametrize(("dtype", "layout", "ranks", "kind"), CASES)
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.long)])
def test_strategies(dtype: str, layout: str, ranks: int, kind: str, threads: int) -> None:
    options = {"dtype": dtype, "layout": LAYOUTS[layout], "threads": threads}
    compared(lambda w: reals(w, narrow(STRATEGIES)), ranks, kind, "cpu", 10 * TOLERANCE[dtype], **options)


STAGED = {name: s for name, s in narrow(ITEM_STRATEGIES).items() if name.endswith("staged")}
"""Those with tables that a span has for itself."""


@pytest.mark.opencl
@pytest.mark.parametrize(("dtype", "layout", "ranks", "kind"), [
    pytest.param("float64", "soa", 2, "blocks", id="staged"),
    *(pytest.param(*c.values, id=c.id, marks=pytest.mark.long) for c in CASES),
])  # fmt: skip
def test_strategies_on_items(dtype: str, layout: str, ranks: int, kind: str, request: pytest.FixtureRequest) -> None:
    options = {"dtype": dtype, "layout": LAYOUTS[layout]}
    schedules = STAGED if request.node.callspec.id.endswith("staged") else narrow(ITEM_STRATEGIES)
    if why := fl.Context("opencl", tuning=False).device.refuses(scalar(dtype)):
        pytest.skip(why)
    want = alone(lambda w: reals(w, schedules), MESH, "opencl", **options)
    got = together(lambda w: reals(w, schedules), MESH, ranks, owners(kind, CELLS, ranks, 4), "opencl", **options)
    assert not difference(got, want, 10 * TOLERANCE[dtype])


@pytest.mark.parametrize("layout", ["aos", pytest.param("soa", marks=pytest.mark.long)])
@pytest.mark.parametrize(("device", "ranks", "kind"), [
    pytest.param("cpu", 3, "blocks", marks=pytest.mark.long),
    pytest.param("cpu", 7, "gap", marks=pytest.mark.long),
    pytest.param("opencl", 2, "blocks", marks=pytest.mark.opencl),
    pytest.param("opencl", 3, "lonely", marks=[pytest.mark.opencl, pytest.mark.long]),
])  # fmt: skip
def test_whole_numbers(layout: str, device: str, ranks: int, kind: str) -> None:
    items = STAGED if kind == "blocks" else narrow(ITEM_STRATEGIES)
    schedules = narrow(STRATEGIES) if device == "cpu" else items
    compared(lambda w: integers(w, schedules), ranks, kind, device, 0.0, layout=LAYOUTS[layout])


@pytest.mark.parametrize("owner", ["random", *(pytest.param(o, marks=pytest.mark.long) for o in ("gap", "one"))])
def test_global_order_is_that_of_one_rank(owner: str) -> None:
    """Increments are added in the order of the global numbers, however the mesh is cut."""

    def body(world: World) -> dict[str, Any]:
        rng = np.random.default_rng(7)
        k = world.dat("edges", rng.random((2 * CELLS, 2)), "k")
        u = world.dat("cells", rng.random((CELLS, 2)), "u")
        e, p, out, loops = world.maps["edge_cells"], world.maps["edge_points"], {}, []
        for name in ("gather", "gather1", "two_pass"):
            schedule = replace(STRATEGIES[name], deterministic="global", block=min(64, STRATEGIES[name].block))
            r, s = (world.dat("cells", np.zeros((CELLS, 2)), f"{x}_{name}") for x in "rs")
            a = world.dat("points", np.zeros((CELLS // 2 + 3, 2)), f"a_{name}")
            loops.append(Loop(flux, world.sets["edges"], u[e], r[e], w=0.7, schedule=schedule))
            if name == "two_pass":
                loops.append(Loop(two_sets, world.sets["edges"], k, s[e], a[p], schedule=schedule))
            out |= {d.name: d for d in (r, s, a)}
        for loop in loops:
            loop()
        return out

    want = alone(body, MESH, threads=1)
    assert np.array_equal(want["r_gather"], want["r_two_pass"])
    for ranks in (2, 3, 7):
        assert not difference(together(body, MESH, ranks, owners(owner, CELLS, ranks, 2), threads=1), want, 0.0)
