"""The loops whose generated source is kept, by language and name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import fluxloom as fl
from fluxloom import RW, Const, Inc, Loop, Read, Schedule, Write
from fluxloom.codegen.exchange import Field, exchange_unit, numbers_unit
from fluxloom.codegen.language.group import Group
from fluxloom.codegen.unit import Unit, generate
from fluxloom.core.dtypes import scalar
from fluxloom.dsl.declare.maps import Argument
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.dsl.run.checking import LoopChecker
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom.values.given_on import GivenOn
from fluxloom.values.tables import TimeSeries
from fluxloom.values.value import value_of
from fluxloom_lab.formats.row_grouped import RowGroupedCSR

from .fake import FakeItems

DIALECTS = {"c": "c", "cuda": "cu", "opencl": "cl"}
"""Language and how its files end."""

STRATEGIES = {
    "c": {
        **{n: {"strategy": n} for n in ("serial", "block_colour", "element_colour", "block_permute", "atomic")},
        "two_pass": {"strategy": "two_pass"},
        "gather": {"strategy": "gather", "block": 1024},
        "gather_by_target": {"strategy": "gather", "block": 1},
    },
    "items": {
        **{n: {"strategy": n} for n in ("atomic", "gather", "two_pass", "element_colour", "block_colour")},
        "block_colour_staged": {"strategy": "block_colour", "block": 64, "stage": True},
    },
}


@fl.kernel
def spmv(a: Read, x: Read, y: Write):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * x[j]
    y[0] = total


@fl.kernel
def five_points(u: Read, v: Write, *, h: float):
    v[0] = u[0] + h * (u[1] + u[2] + u[3] + u[4] - 4.0 * u[0])


@fl.kernel
def moments(x: Read, y: Write, *, table: Const[list[list[float]]], weight: Const[list[float]]):
    kept = fl.zeros(len(weight))
    for q in fl.rolled(len(weight)):
        kept[q] = (table[q][0] * x[0] + table[q][1] * x[1]) * weight[q]
    total = 0.0
    for i in fl.rolled(len(weight)):
        for j in fl.rolled(i, len(weight)):
            total += kept[i] * kept[j]
    y[0] = total


@fl.kernel
def spread(x: Read, y: Inc):
    total = 0.0
    for c in fl.rolled(len(x)):
        total += x[c][0] * x[c][1]
    for c in fl.rolled(len(x)):
        y[c] += total * x[c][1]


@fl.kernel
def swap(f: RW, *, rate: float):
    here = f[0][0]
    f[0][0] = rate * f[1][1]
    f[1][1] = here


@fl.kernel
def turn(f: RW, speed: Write):
    """What lies ahead changes places with what lies behind, in four directions."""
    speed[0] = f[0][0] - f[1][1]
    f[0][0], f[1][1] = f[1][1], f[0][0]
    f[2][2], f[3][3] = f[3][3], f[2][2]
    f[4][4], f[5][5] = f[5][5], f[4][4]
    f[6][6], f[7][7] = f[7][7], f[6][6]


@fl.kernel
def drain(f: Read, v: RW, total: Inc):
    v[0] = f[0][0] - f[1][1]
    total[0] += v[0]


@dataclass(frozen=True)
class Reflected:
    """A boundary state."""

    @fl.func
    def __call__(self, u):
        return -u


@dataclass(frozen=True)
class Given:
    """A boundary state with a value that may change."""

    value: float

    @fl.func
    def __call__(self, u):
        return 2.0 * self.value - u


@dataclass(frozen=True)
class Limited:
    """A limiter with a baked number and one that may change."""

    order: int = 2
    most: float = 1.5

    @fl.func
    def __call__(self, a, b):
        return max(0.0, min(self.most * a, self.order * b))


@fl.kernel
def chosen(
    kind: Read, u: Read, force: Read | None, r: Inc,
    *, limiter: Const[fl.Func], states: Const[tuple[fl.Func, ...]], h: float,
):  # fmt: skip
    ghost = u[0]
    for k in range(len(states)):
        if kind[0] == k:
            ghost = states[k](u[0])
    f = h * limiter(u[1] - u[0], ghost - u[0])
    if force is not None:
        f += force[0]
    r[0] += f
    r[1] -= f


def context(dialect: str, threads: int = 2) -> fl.Context:
    """Return a context whose device writes a language."""
    if dialect == "c":
        return fl.Context("cpu", threads=threads, tuning=False)
    return fl.Context(FakeItems(dialect), tuning=False)


def airfoil(dialect: str, schedule: Schedule) -> Airfoil:
    lanes = 4 if dialect == "c" else 0
    return Airfoil(context(dialect), airfoil_mesh(8, 12), schedule=replace(schedule, lanes=lanes))


def alone(loop: Loop) -> list[Group]:
    return [loop.group(Numbering())]


def res_calc(dialect: str, **choices) -> list[Group]:
    return alone(airfoil(dialect, Schedule(**choices)).res_calc)


@fl.kernel
def pull(f: fl.Read, v: fl.Write):
    """What arrives from two neighbours."""
    v[0] = f[0][0] + f[1][1]
    v[1] = f[0][0] - f[1][1]


def part_of(groups: list[Group]) -> list[Group]:
    """Return groups as on several ranks: they may begin at any element."""
    return [replace(group, ranged=True) for group in groups]


def update(dialect: str) -> list[Group]:
    """A direct loop with a reduction."""
    return alone(airfoil(dialect, Schedule()).update)


def product(dialect: str, layout, **choices) -> list[Group]:
    ctx = context(dialect)
    rows = ctx.set(3, "rows")
    m = ctx.ragged(rows, rows, [0, 1, 3, 4], [0, 1, 2, 0], "m", layout)
    a, x, y = ctx.dat(m.entries), ctx.dat(rows), ctx.dat(rows)
    return alone(Loop(spmv, rows, a[m.to_entries], x[m], y, schedule=Schedule(stream=False, **choices)))


@fl.kernel
def faulty(w: Read, k: Read, u: Read, r: Inc):
    """What may go wrong: an index, a division, integers, and what is written."""
    j = 2 * k[0] + 1
    r[0] += w[j] / (u[1] - u[0])
    r[1] -= w[0]


def checked(dialect: str) -> list[Group]:
    """The loop that checks another one in the checking mode."""
    ctx = context(dialect)
    edges, nodes = ctx.set(4, "edges"), ctx.set(4, "nodes")
    ends = ctx.map(edges, nodes, [[0, 1], [1, 2], [2, 3], [3, 0]], "ends")
    w, k = ctx.dat(edges, shape=(3,)), ctx.dat(edges, dtype="int64")
    found = LoopChecker(ctx).loop_of(Loop(faulty, edges, w, k, ctx.dat(nodes)[ends], ctx.dat(nodes)[ends]))
    assert found is not None
    return alone(found)


def rolled(dialect: str, points: int = 66) -> list[Group]:
    """A nest of loops that stay loops, with tables; more points than loops may have that are written out."""
    ctx = context(dialect)
    cells = ctx.set(20, "cells")
    schedule = Schedule(lanes=4 if dialect == "c" else 0, stream=False)
    tables = {"table": [[0.5 * k, -1.0] for k in range(points)], "weight": [1.0 / (k + 1) for k in range(points)]}
    return alone(Loop(moments, cells, ctx.dat(cells, shape=(2,)), ctx.dat(cells), schedule=schedule, **tables))


def legs(dialect: str, count: int = 66) -> list[Group]:
    """Arguments with many legs, which are gathered and scattered in loops; as `rolled` more than are written out."""
    ctx = context(dialect)
    cells, points = ctx.set(20, "cells"), ctx.set(400, "points")
    table = (7 * np.arange(20)[:, None] + 3 * np.arange(count)) % 400
    through = ctx.map(cells, points, table, "through")
    schedule = Schedule(strategy="block_colour", lanes=4) if dialect == "c" else Schedule(strategy="atomic")
    x, y = ctx.dat(points, shape=(2,)), ctx.dat(points)
    return alone(Loop(spread, cells, x[through], y[through], schedule=schedule))


def stencil(dialect: str) -> list[Group]:
    ctx = context(dialect)
    grid = ctx.grid((4, 5), periodic=(False, True), ghost=(1, 0))
    s = ctx.stencil(grid, [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)], "s")
    schedule = Schedule(lanes=8 if dialect == "c" else 0, stream=False)
    return alone(Loop(five_points, grid, ctx.dat(grid)[s], ctx.dat(grid), h=0.1, schedule=schedule))


def formulas(dialect: str) -> list[Group]:
    """Formulas and records as constants, one of several by element, and data that one of two loops leaves out."""
    ctx = context(dialect)
    edges, nodes = ctx.set(4, "edges"), ctx.set(4, "nodes")
    ends = ctx.map(edges, nodes, [[0, 1], [1, 2], [2, 3], [3, 0]], "ends")
    u, r, force = ctx.dat(nodes), ctx.dat(nodes), ctx.dat(edges)
    schedule = Schedule(strategy="block_colour", lanes=4) if dialect == "c" else Schedule(strategy="atomic")
    every = (Reflected(), Given(0.5), Given(1.5))
    return distinct([
        Loop(chosen, edges, ctx.dat(edges, dtype="int32"), u[ends], given, r[ends], limiter=Limited(), states=some,
             h=0.5, schedule=schedule).group(Numbering())
        for given, some in ((None, every), (force, ()))
    ])  # fmt: skip


def given(dialect: str) -> list[Group]:
    """The loop of given values: formulas written as text, a series, a function of the host, weights."""
    ctx = context(dialect)
    places, weights = np.zeros((4, 3)), np.ones((4, 4))
    pulse = TimeSeries(times=(0.0, 1.0), numbers=(0.0, 1.0))
    formula = value_of("2 * y * sin(3 * t) + (1 if x < t and not z % 0.5 > 0.2 else max(x, t)**2.5)")
    values = [value_of("0 * t") + 3.0, formula, pulse * formula, value_of(lambda x, t: t * x[:, 0])]
    return alone(GivenOn(ctx, ctx.set(4, "faces"), places, values, "inlet", weights=weights).loops()[0])


def ring(dialect: str) -> tuple[fl.Grid, Argument]:
    """A periodic lattice and what a kernel changes through both of its directions, each component through its own."""
    ctx = context(dialect)
    grid = ctx.grid((4, 5), periodic=True)
    return grid, ctx.dat(grid, shape=(2,), dtype="float32", layout=fl.SoA())[ctx.stencil(grid, [(0, 1), (-1, 0)], "s")]


def swapped(dialect: str) -> list[Group]:
    """Reads and writes through a stencil."""
    grid, f = ring(dialect)
    return alone(Loop(swap, grid, f, schedule=Schedule(lanes=8 if dialect == "c" else 0, stream=False), rate=0.5))


def several(dialect: str) -> list[Group]:
    """Several sites an item, and places that are found a second time."""
    ctx = context(dialect)
    grid = ctx.grid((3, 8), periodic=True)
    s = ctx.stencil(grid, [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1)], "s")
    f = ctx.dat(grid, shape=(8,), dtype="float32", layout=fl.SoA())
    return alone(Loop(turn, grid, f[s], ctx.dat(grid, dtype="float32"), schedule=Schedule(sites=4)))


def returned(dialect: str) -> list[Group]:
    """A stencil that turns round at the ends of rows: in C line by line, else one site an item."""
    ctx = context(dialect)
    grid = ctx.grid((3, 8), periodic=(True, False))
    s = ctx.stencil(grid, [(1, 1), (-1, -1)], "s", mirror=(1, 0))
    f, v = (ctx.dat(grid, shape=(2,), dtype="float32", layout=fl.SoA()) for _ in range(2))
    return alone(Loop(pull, grid, f[s], v, schedule=Schedule(lanes=8 if dialect == "c" else 0, stream=dialect == "c")))


def members(dialect: str) -> list[Group]:
    """A stencil over elements of a list that may change, with a sum."""
    grid, f = ring(dialect)
    ctx = grid.context
    some = ctx.subset(grid, [3, 7], capacity=9)
    schedule = Schedule(lanes=8 if dialect == "c" else 0, stream=False)
    return alone(Loop(drain, some, f, ctx.dat(grid), ctx.scalar(), schedule=schedule))


def fused(dialect: str) -> list[Group]:
    """The fused groups of an iteration, and what starts them."""
    chain = airfoil(dialect, Schedule(strategy="gather", block=1024 if dialect == "c" else 0)).chain
    chain.build()
    replay = chain._fused
    assert replay is not None
    return distinct([*replay._groups, *replay._head])


def distinct(groups: list[Group]) -> list[Group]:
    """Number the groups and leave out those that are equal otherwise."""
    found: dict[Group, Group] = {}
    for group in groups:
        found.setdefault(replace(group, symbol=""), replace(group, symbol=f"{group.symbol}_{len(found)}"))
    return list(found.values())


Make = Callable[[], list[Group]]


def makers(dialect: str) -> dict[str, Make]:
    """Return what makes the groups of each source of a language."""
    strategies = STRATEGIES["c" if dialect == "c" else "items"]
    out: dict[str, Make] = {
        f"res_calc_{name}": lambda choices=choices: res_calc(dialect, **choices) for name, choices in strategies.items()
    }
    if dialect != "c":
        out["update"] = lambda: update(dialect)
        out["spmv_pairs"] = lambda: product(dialect, fl.SlicedELL(8), pairs=True)
        out["spmv_pairs_part"] = lambda: part_of(product(dialect, fl.SlicedELL(8), pairs=True))
        out["spmv_chunks"] = lambda: product(dialect, RowGroupedCSR(4, 2), lanes=4)
    out["res_calc_gather_part"] = lambda: part_of(res_calc(dialect, **strategies["gather"]))
    return out | {
        "spmv_csr": lambda: product(dialect, fl.CSR()),
        "spmv_sliced": lambda: product(dialect, fl.SlicedELL(8)),
        "spmv_grouped": lambda: product(dialect, RowGroupedCSR(4, 2), lanes=1),
        "five_points": lambda: stencil(dialect),
        "swap": lambda: swapped(dialect),
        **({} if dialect == "c" else {"several": lambda: several(dialect)}),
        "returned": lambda: returned(dialect),
        "drain": lambda: members(dialect),
        "rolled": lambda: rolled(dialect),
        "checked": lambda: checked(dialect),
        "legs": lambda: legs(dialect),
        "strategies": lambda: formulas(dialect),
        "given": lambda: given(dialect),
        "airfoil_fused": lambda: fused(dialect),
    }


SOURCES: dict[tuple[str, str], Make] = {(d, name): make for d in DIALECTS for name, make in makers(d).items()}


EXCHANGES: dict[str, Callable[[str], Unit]] = {
    "exchange": lambda dialect: exchange_unit(FIELDS, dialect),
    "exchange_numbers": lambda dialect: numbers_unit(scalar("float32"), False, dialect),
}
NAMES = [*SOURCES, *((dialect, name) for dialect in DIALECTS for name in EXCHANGES)]
"""Language and name of every source: those made of groups, and what packs and unpacks the messages of ranks."""

FIELDS = (Field(scalar("float64"), 4, fl.AoS()), Field(scalar("float32"), 2, fl.SoA()),
          Field(scalar("float16"), 1, fl.Blocked(8)), Field(scalar("uint8"), 3, fl.AoS()))  # fmt: skip


def file_name(dialect: str, name: str) -> str:
    return f"{name}.c" if dialect == "c" else f"{dialect}_{name}.{DIALECTS[dialect]}"


def unit(dialect: str, groups: list[Group], *, contract: bool = True) -> Unit:
    return generate(groups, dialect, contract=contract)


def loops_only(dialect: str, text: str) -> str:
    """Return a source without the prelude and without the row helpers."""
    if dialect != "c":
        return text.removeprefix(generate([], dialect).text).lstrip("\n")
    start = re.search(r"^(/\* [^\n]* \*/\n)?typedef struct \{", text, re.MULTILINE)
    assert start is not None
    tables = re.findall(r"^static const \w+ fl_table_.*?;[^\n]*\n", text[: start.start()], re.MULTILINE | re.DOTALL)
    return "".join(tables) + text[start.start() :]


def source(dialect: str, name: str) -> str:
    """Return the text of the loops of one source."""
    made = EXCHANGES[name](dialect) if name in EXCHANGES else unit(dialect, SOURCES[dialect, name]())
    return loops_only(dialect, made.text)
