"""Loops: every check at construction, run-time constants, plans, reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Max, Min, Read, Schedule, Write
from fluxloom.core.errors import CommError, DeviceUnavailable, LoopError, PlanError
from fluxloom.dsl.plan.plan import build_plan
from fluxloom.dsl.run.chain import Chain
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil


@fl.kernel
def flux(u: Read, r: Inc, *, nu: float, gamma: float = 1.4):
    f = nu * (u[1] - u[0]) * gamma
    r[0] += f
    r[1] -= f


@fl.kernel
def move(a: Read, b: Write):
    b[0] = a[0]


@fl.kernel
def change(a: Read, b: RW):
    b[0] = b[0] + a[0]


@fl.kernel
def smooth(u: Read, v: Write):
    v[0] = u[0] + u[1]


@fl.kernel
def scatter(a: Read, b: Write):
    b[0] = a[0]
    b[1] = a[0]


@fl.kernel
def accumulate(a: Read, b: Inc):
    b[0] += a[0]


@fl.kernel
def two(a: Read, b: Inc, c: Inc):
    b[0] += a[0]
    c[0] += a[0]


@fl.kernel
def least(a: Read, b: Min, c: Max):
    b[0] = min(b[0], a[0])
    c[0] = max(c[0], a[0])


@fl.kernel
def total(a: Read, r: Inc, g: Inc):
    r[0] += a[0]
    g[0] += a[0]


@fl.kernel
def row(x: Read, y: Write):
    y[0] = 0.0
    for j in range(len(x)):
        y[0] += x[j]


@fl.kernel
def spread(w: Read, x: Inc):
    for j in range(len(x)):
        x[j] += w[0]


@fl.kernel
def weighted(a: Read, b: Write, *, weights: Const[list[float]]):
    b[0] = a[0] * weights[0]


class Case:
    """A few sets, maps and dats."""

    def __init__(self, device: str = "cpu", **options) -> None:
        ctx = self.ctx = fl.Context(device, tuning=False, **options)
        self.edges, self.nodes = ctx.set(6, "edges"), ctx.set(5, "nodes")
        self.e2n = ctx.map(self.edges, self.nodes, [[0, 1], [1, 2], [2, 3], [3, 4], [4, 4], [0, 2]], "e2n")
        self.n2n = ctx.map(self.nodes, self.nodes, [1, 2, 3, 4, 0], "n2n")
        self.u, self.r, self.s = (ctx.dat(self.nodes, np.arange(5.0), n) for n in "urs")
        self.w = ctx.dat(self.edges, np.ones(6), "w")
        self.g = ctx.scalar(0.0, "g")
        self.rows = ctx.ragged(self.nodes, self.nodes, [0, 1, 2, 3, 4, 6], [1, 2, 3, 4, 0, 1], "rows")


@pytest.fixture(params=["cpu", "reference"])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


ERRORS = [
    (lambda c: Loop(move, c.nodes, c.u), "move: 1 arguments given, the kernel has 2: a, b"),
    (lambda c: Loop(move, c.nodes, c.u, c.r, c.s), "move: 3 arguments given"),
    (lambda c: Loop(move.function, c.nodes, c.u, c.r), "is not a kernel: decorate the function with @fl.kernel"),
    (lambda c: Loop(move, c.nodes, c.u, np.zeros(5)), "move: argument 'b' is a ndarray; pass a dat"),
    (lambda c: Loop(move, c.nodes, c.w, c.r), r"'a' lives on Set\(edges, 6\), the loop runs over Set\(nodes, 5\)"),
    (lambda c: Loop(move, c.nodes, c.u[c.e2n[0]], c.r), r"argument 'a': map 'e2n' starts at Set\(edges, 6\)"),
    (lambda c: Loop(move, c.nodes, c.u, c.g), "argument 'b' is a global: every element would write it"),
    (lambda c: Loop(change, c.nodes, c.u, c.g), "is a global"),
    (lambda c: Loop(move, Case().nodes, c.u, c.r), "argument 'a' belongs to another context"),
    (lambda c: Loop(flux, c.edges, c.u[c.e2n], c.r[c.e2n]), "flux: no value for constant 'nu'; pass nu="),
    (
        lambda c: Loop(flux, c.edges, c.u[c.e2n], c.r[c.e2n], nu=1.0, gama=1.0),
        "flux: unknown constant 'gama'; did you mean 'gamma'",
    ),
    (lambda c: Loop(scatter, c.edges, c.w, c.r[c.e2n]), "'b' is written through map 'e2n', which leads two elements"),
    (lambda c: Loop(change, c.edges, c.w, c.r[c.e2n[0]]), "'b' is written through map 'e2n'"),
    (lambda c: Loop(move, c.nodes, c.u[c.n2n[0]], c.u), "'a' reads 'u' where another element of the same loop"),
    (lambda c: Loop(flux, c.edges, c.u[c.e2n], c.u[c.e2n], nu=1.0), "'u' and 'r' are the same 'u' and it is written"),
    (lambda c: Loop(move, c.nodes, c.u, c.u[c.n2n[0]]), "are the same 'u' and it is written"),
    (lambda c: Loop(least, c.nodes, c.u, c.g, c.g), "'b' and 'c' are the same 'g' and it is written"),
    (lambda c: Loop(row, c.nodes, c.u[c.rows], c.u), "'x' reads 'u' where another element"),
    (lambda c: Loop(move, c.nodes, c.u, c.r[c.rows]), "'b' is Write through a ragged map; only Read and Inc"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), ERRORS)
def test_errors(case: Case, make, message: str) -> None:
    with pytest.raises(LoopError, match=message):
        make(case)


def test_stencils_are_read_only(case: Case) -> None:
    grid = case.ctx.grid((4, 4), periodic=True)
    s = case.ctx.stencil(grid, [[0, 0], [0, 1]], "s")
    u, v = case.ctx.dat(grid, name="u"), case.ctx.dat(grid)
    with pytest.raises(LoopError, match="'b' is Inc through a stencil: elements would race"):
        Loop(accumulate, grid, v, u[s[0]])
    with pytest.raises(LoopError, match="reads 'u' where another element"):
        Loop(smooth, grid, u[s], u)


def test_stencils_stand_without_tables() -> None:
    case = Case()
    grid = case.ctx.grid((4, 4), periodic=True)
    s, back = case.ctx.stencil(grid, [[0, 0], [0, 1]], "s"), case.ctx.map(grid, grid, np.arange(16), "back")
    u, v = case.ctx.dat(grid), case.ctx.dat(grid)
    with pytest.raises(LoopError, match="beside a stencil argument no other one may go through a table"):
        Loop(smooth, case.ctx.subset(grid, [1, 2]), u[s], v[back[0]])()


def test_aliases_that_do_not_race(case: Case) -> None:
    """Reading one's own element through a map, and subsets that do not touch each other."""
    same = case.ctx.map(case.nodes, case.nodes, np.arange(5), "same")
    Loop(move, case.nodes, case.u[same[0]], case.u)()
    even = case.ctx.subset(case.nodes, [0, 2])
    Loop(move, even, case.u[case.n2n[0]], case.u)()
    assert case.u.read().tolist() == [1.0, 1.0, 3.0, 3.0, 4.0]


STRATEGY_ERRORS = [
    (
        lambda c, s: Loop(total, c.edges, c.w, c.r[c.e2n[0]], c.g, schedule=s), "gather",
        r"strategy 'gather' is not possible: 'g' \(Inc\) would be repeated .*possible are serial, block_colour",
    ),
    (lambda c, s: Loop(least, c.edges, c.w, c.u[c.e2n[0]], c.r[c.e2n[0]], schedule=s), "atomic", "Min or Max"),
    (
        lambda c, s: Loop(two, c.edges, c.w, c.w2, c.r[c.e2n[0]], schedule=s), "gather",
        r"'b' \(Inc\) would be repeated",
    ),
    (lambda c, s: Loop(spread, c.nodes, c.u, c.r[c.rows], schedule=s), "two_pass", "go through a ragged map"),
    (lambda c, s: Loop(spread, c.nodes, c.u, c.r[c.rows], schedule=s), "gather", "increments go through a ragged map"),
    (lambda c, s: Loop(accumulate, c.some, c.w, c.r[c.e2n[0]], schedule=s), "two_pass", "it runs over Subset"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "strategy", "message"), STRATEGY_ERRORS)
def test_impossible_strategies(make, strategy: str, message: str) -> None:
    case = Case()
    case.w2 = case.ctx.dat(case.edges)
    case.some = case.ctx.subset(case.edges, [0, 1])
    with pytest.raises(PlanError, match=message):
        make(case, Schedule(strategy=strategy))
    loop = make(case, None)
    with pytest.raises(PlanError, match=message):
        loop.reschedule(Schedule(strategy=strategy))
    loop()


def test_gather_by_target_needs_one_map() -> None:
    case = Case()
    with pytest.raises(PlanError, match="gathering target by target needs one map for all increments; use block > 1"):
        Loop(
            two,
            case.edges,
            case.w,
            case.r[case.e2n[0]],
            case.s[case.e2n[1]],
            schedule=Schedule(strategy="gather", block=1),
        )()


def test_a_strategy_of_the_context_is_a_wish() -> None:
    """A loop that cannot follow runs in another way, and says so."""
    case = Case(schedule=Schedule(strategy="gather", block=1024), threads=2)
    loop = Loop(total, case.edges, case.w, case.r[case.e2n[0]], case.g)
    loop()
    assert loop.strategy == "block_colour"
    assert loop.report().strategy == "block_colour"
    fine = Loop(accumulate, case.edges, case.w, case.r[case.e2n[0]])
    assert fine.strategy == "gather"
    assert Loop(move, case.nodes, case.u, case.r).strategy == "direct"


def test_rescheduling() -> None:
    case = Case()
    loop = Loop(flux, case.edges, case.u[case.e2n], case.r[case.e2n], nu=1.0)
    results = []
    for strategy in (None, "serial", "two_pass", "gather", "element_colour"):
        case.r.write(0.0)
        loop.reschedule(Schedule(strategy=strategy))
        loop()
        assert strategy is None or loop.report().strategy == strategy
        results.append(case.r.read())
    for result in results:
        np.testing.assert_allclose(result, results[0], rtol=1e-14)


def test_run_time_constants(case: Case) -> None:
    loop = Loop(flux, case.edges, case.u[case.e2n], case.r[case.e2n], nu=1.0)
    for call in (lambda: loop(mu=1.0), lambda: loop.set(mu=1.0)):
        with pytest.raises(LoopError, match="'mu' is not a run-time constant; did you mean 'nu'"):
            call()
    baked = Loop(weighted, case.nodes, case.u, case.r, weights=[2.0])
    with pytest.raises(LoopError, match="'weights' is not a run-time constant"):
        baked(weights=[1.0])
    baked()
    assert case.r.read().tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


def test_chain_errors(case: Case) -> None:
    loop = Loop(move, case.nodes, case.u, case.r)
    other = Case()
    with pytest.raises(LoopError, match="steps: a chain needs at least one loop"):
        Chain([], name="steps")
    with pytest.raises(LoopError, match="neither a loop nor a reset"):
        Chain([loop, print])  # type: ignore[list-item]
    with pytest.raises(LoopError, match="different contexts"):
        Chain([loop, Loop(move, other.nodes, other.u, other.r)])
    with pytest.raises(LoopError, match="transient dat 's' is not used"):
        Chain([loop], transient=[case.s])


def test_unknown_devices() -> None:
    with pytest.raises(
        DeviceUnavailable, match=r"unknown device 'cup'; did you mean 'cpu'\? \(known: cpu, cuda, opencl, reference\)"
    ):
        fl.Context("cup")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cpu:3"}, "device 'cpu:3': cpu has no choice behind a colon; threads are said by themselves"),
        ({"device": "reference:0"}, "device 'reference:0': reference has no choice behind a colon"),
        ({"device": None}, "a device is a name, as in 'cpu', or a device object, not NoneType"),
        ({"threads": -1}, "threads=-1: give a number up to 4096"),
        ({"threads": 1.5}, "threads=1.5: give a number"),
        ({"threads": 10**9}, "threads=1000000000: give a number"),
        ({"transport": "tcp"}, "transport 'tcp': one of auto, host, mpi, nccl"),
        ({"transport": None}, "transport None: one of auto"),
        ({"comm": "mpi"}, "comm: a communicator as fluxloom.detect\\(\\) returns it is wanted, not 'mpi'"),
    ],
)
def test_contexts_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises((DeviceUnavailable, CommError), match=message):
        fl.Context(**options)


# --------------------------------------------------------------------------------------------- plans


def test_plans_are_shared() -> None:
    """Loops that increment through the same map over the same set use one plan."""
    case = Case()
    for strategy, block in (("block_colour", 64), ("element_colour", 0), ("gather", 1024), ("two_pass", 0)):
        schedule = Schedule(strategy=strategy, block=block)
        first = Loop(flux, case.edges, case.u[case.e2n], case.r[case.e2n], nu=1.0, schedule=schedule)
        second = Loop(flux, case.edges, case.r[case.e2n], case.s[case.e2n], nu=2.0, schedule=schedule)
        assert first.plan is second.plan
        leg = Loop(accumulate, case.edges, case.w, case.s[case.e2n[0]], schedule=schedule)
        other = Loop(accumulate, case.edges, case.w, case.s[case.e2n[1]], schedule=schedule)
        assert len({id(p) for p in (first.plan, leg.plan, other.plan)}) == 3
        assert leg.plan is build_plan(leg.bound, leg.races, strategy, leg.schedule.block)


def test_plans_follow_the_block() -> None:
    case = Case()
    loops = [
        Loop(accumulate, case.edges, case.w, case.s[case.e2n[0]], schedule=Schedule(strategy="block_colour", block=b))
        for b in (64, 128, 64)
    ]
    assert loops[0].plan is loops[2].plan
    assert loops[0].plan is not loops[1].plan


# ------------------------------------------------------------------------------------------- reports


def test_counters() -> None:
    case = Case()
    loop = Loop(flux, case.edges, case.u[case.e2n], case.r[case.e2n], nu=1.0)
    assert loop.report().calls == 0
    for _ in range(3):
        loop()
    report = loop.report()
    assert (report.name, report.calls) == ("flux", 3)
    assert report.seconds > 0
    assert report.gbs == pytest.approx(report.useful_bytes * 3 / report.seconds / 1e9)
    loop.reset_counters()
    assert (loop.report().calls, loop.report().seconds) == (0, 0.0)


def test_versions_count_calls(case: Case) -> None:
    loop = Loop(total, case.edges, case.w, case.r[case.e2n[0]], case.g)
    before = [d.version for d in (case.w, case.r, case.g)]
    loop()
    after = [d.version for d in (case.w, case.r, case.g)]
    assert after[0] == before[0]
    assert after[1] > before[1]
    assert after[2] > before[2]


def airfoil_bytes(i: int, j: int) -> int:
    """The arrays that one Airfoil iteration moves loop by loop, by hand: 1 save, 2 adt, 2 res, 2 bres, 2 update."""
    mesh = airfoil_mesh(i, j)
    cells, nodes, edges, bedges = (len(a) for a in (mesh.cell_nodes, mesh.points, mesh.edge_nodes, mesh.boundary_nodes))
    inner_nodes, edge_cells = len(np.unique(mesh.edge_nodes)), len(np.unique(mesh.edge_cells))
    wall_nodes, wall_cells = len(np.unique(mesh.boundary_nodes)), len(np.unique(mesh.boundary_cells))
    save = cells * (32 + 32)
    adt = nodes * 16 + cells * (32 + 8) + cells * 4 * 4
    res = inner_nodes * 16 + edge_cells * (32 + 8 + 64) + edges * 4 * 4
    bres = wall_nodes * 16 + wall_cells * (32 + 8 + 64) + bedges * (4 * 3 + 4)
    update = cells * (32 + 32 + 64 + 8)
    return save + 2 * (adt + res + bres + update)


def test_useful_bytes_of_airfoil() -> None:
    flow = Airfoil(fl.Context("reference"), airfoil_mesh(8, 12))
    assert flow.chain.bytes_unfused == airfoil_bytes(8, 12)


@pytest.mark.long
def test_useful_bytes_of_the_published_mesh() -> None:
    flow = Airfoil(fl.Context("reference"), airfoil_mesh(400, 600))
    assert flow.chain.bytes_unfused == airfoil_bytes(400, 600)


def test_useful_bytes_of_the_published_mesh_by_formula() -> None:
    assert airfoil_bytes(400, 600) / 1e6 == pytest.approx(565.4, abs=0.1)


def test_par_loop(case: Case) -> None:
    fl.par_loop(move, case.nodes, case.u, case.r)
    assert case.r.read().tolist() == case.u.read().tolist()


def test_dtype_of_an_argument_decides_the_arithmetic() -> None:
    ctx = fl.Context("cpu")
    over = ctx.set(8, "over")
    a, b = ctx.dat(over, np.full(8, 0.1), dtype="float32"), ctx.dat(over, dtype="float32")
    loop = Loop(move, over, a, b)
    assert loop.bound.compute.name == "float32"
    assert Loop(move, over, a, ctx.dat(over)).bound.compute.name == "float64"
