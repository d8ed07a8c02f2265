"""What checkpoints save at each loop: the published costs of Airfoil, overwrites, periods."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Read, Write
from fluxloom.core.errors import CheckpointError
from fluxloom.dsl.checkpoint.checkpoint import Checkpoints
from fluxloom.dsl.checkpoint.rules import call_of, changed_before, costs, find_period, saved_from
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil


@fl.kernel
def store(q: Read, qold: Write):
    for k in range(4):
        qold[k] = q[k]


@fl.kernel
def speed(x: Read, q: Read, adt: Write):
    adt[0] = q[0] + x[0][0]


@fl.kernel
def flux(q: Read, adt: Read, res: Inc):
    for k in range(4):
        res[0][k] += adt[0] * q[1][k]
        res[1][k] -= adt[1] * q[0][k]


@fl.kernel
def wall(q: Read, adt: Read, res: Inc, bound: Read):
    for k in range(4):
        res[k] += adt[0] * q[k] * bound[0]


@fl.kernel
def advance(qold: Read, q: Write, res: RW, rms: Inc):
    for k in range(4):
        q[k] = qold[k] - 0.01 * res[k]
        rms[0] += res[k] * res[k]
        res[k] = 0.0


@fl.kernel
def copy(a: Read, b: Write):
    b[0] = a[0]


@fl.kernel
def bump(a: RW):
    a[0] += 1.0


def thesis_loops() -> tuple[fl.Loop, ...]:
    """The five loops with the argument lists of the thesis: `update` does not read adt."""
    n = 12
    ctx = fl.Context("reference")
    cells, nodes = ctx.set(n, "cells"), ctx.set(n + 1, "nodes")
    edges, bedges = ctx.set(n - 1, "edges"), ctx.set(2, "bedges")
    c2n = ctx.map(cells, nodes, np.stack([np.arange(n), np.arange(n) + 1], axis=1))
    e2c = ctx.map(edges, cells, np.stack([np.arange(n - 1), np.arange(n - 1) + 1], axis=1))
    b2c = ctx.map(bedges, cells, np.array([0, n - 1]))
    x, bound = ctx.dat(nodes, np.ones((n + 1, 2)), "x"), ctx.dat(bedges, np.ones(2), "bound")
    q, qold, res = (ctx.dat(cells, np.ones((n, 4)), name) for name in ("q", "qold", "res"))
    adt, rms = ctx.dat(cells, name="adt"), ctx.scalar(0.0, "rms")
    return (
        fl.Loop(store, cells, q, qold, name="save_soln"),
        fl.Loop(speed, cells, x[c2n], q, adt, name="adt_calc"),
        fl.Loop(flux, edges, q[e2c], adt[e2c], res[e2c], name="res_calc"),
        fl.Loop(wall, bedges, q[b2c[0]], adt[b2c[0]], res[b2c[0]], bound, name="bres_calc"),
        fl.Loop(advance, cells, qold, q, res, rms, name="update"),
    )


def airfoil_loops() -> tuple[fl.Loop, ...]:
    return Airfoil(fl.Context("reference"), airfoil_mesh(3, 2)).loops


@pytest.mark.parametrize(("loops", "update"), [(thesis_loops, 8), (airfoil_loops, 9)])
def test_airfoil_costs_what_was_published(
    loops: Callable[[], tuple[fl.Loop, ...]], update: int, tmp_path: Path
) -> None:
    """Reguly 2014, section 6.1, in values a cell: 8, 12, 13, 13, 8; 9 where `update` reads adt."""
    save, *stage = loops()
    saver = Checkpoints(tmp_path / "c.h5", place="marked", every_calls=1)
    with saver.watch(save.context):
        for _ in range(3):
            for loop in (save, *stage, *stage):
                loop()
    advice = saver.advice()
    cells = save.over.size
    assert [s.name for s in advice.spots] == [loop.name for loop in (save, *stage, *stage)]
    assert [s.nbytes / (8 * cells) for s in advice.spots] == [8, 12, 13, 13, update, 12, 13, 13, update]
    assert {d.name for d in advice.best.saved} == {"q", "res"}
    assert advice.best.name == "save_soln"
    assert not {"x", "bound"} & {d.name for s in advice.spots for d in s.saved}
    assert "best place for a checkpoint: before save_soln" in str(advice)
    assert saver.saved == 0


def test_chain_has_the_same_costs_and_begins_best(tmp_path: Path) -> None:
    """The chain of Airfoil: places inside it cost what the loops cost, its beginning is the best."""
    airfoil = Airfoil(fl.Context("reference"), airfoil_mesh(3, 2))
    saver = Checkpoints(tmp_path / "c.h5", place="marked")
    with saver.watch(airfoil.context):
        for _ in range(2):
            airfoil.iterate()
    spots = saver.advice().spots
    assert [s.nbytes / (8 * airfoil.cells.size) for s in spots] == [8, 12, 13, 13, 9, 12, 13, 13, 9]
    assert saver.advice().best.step == 1
    assert {s.within for s in spots} == {"airfoil"}


def line() -> tuple[fl.Context, fl.dsl.sets.Set, list[fl.Dat]]:  # type: ignore[name-defined]
    ctx = fl.Context("reference")
    cells = ctx.set(6, "cells")
    return ctx, cells, [ctx.dat(cells, np.arange(6.0), name) for name in "abcd"]


def test_full_overwrite() -> None:
    """A direct write over the whole set and an indirect one that reaches all of it; nothing less."""
    ctx, cells, (a, b, *_) = line()
    other = ctx.set(6, "other")
    source = ctx.dat(other, np.zeros(6), "source")
    onto = ctx.map(other, cells, np.array([3, 1, 0, 2, 5, 4]))
    pairs = ctx.set(3, "pairs")
    few = ctx.dat(pairs, np.zeros(3), "few")
    part = ctx.map(pairs, cells, np.array([0, 2, 4]))
    half = ctx.subset(cells, [0, 1, 2])
    found = {
        "direct": fl.Loop(copy, cells, a, b),
        "subset": fl.Loop(copy, half, a, b),
        "onto": fl.Loop(copy, other, source, b[onto[0]]),
        "part": fl.Loop(copy, pairs, few, b[part[0]]),
    }
    full = {name: b in call_of(loop).uses[0].overwritten for name, loop in found.items()}
    assert full == {"direct": True, "subset": False, "onto": True, "part": False}
    assert all(b in call_of(loop).uses[0].changed for loop in found.values())


def test_ghosts_are_not_overwritten() -> None:
    """A loop over a lattice does not come to its ghosts."""
    ctx = fl.Context("reference")
    for ghost, full in ((0, True), (1, False)):
        grid = ctx.grid((3, 4), ghost=ghost)
        a, b = ctx.dat(grid, name="a"), ctx.dat(grid, name="b")
        assert (b in call_of(fl.Loop(copy, grid, a, b)).uses[0].overwritten) is full


def test_late_use_decides() -> None:
    """What is first used by a full write is left out, what is never used again is saved."""
    _, cells, (a, b, c, d) = line()
    uses = call_of(fl.Chain([fl.Loop(copy, cells, a, b), fl.Loop(copy, cells, b, c), fl.Loop(bump, cells, c)])).uses
    assert [x.name for x in saved_from(uses, [a, b, c, d])] == ["a", "d"]
    assert [x.name for x in saved_from(uses, [b, c])] == []
    assert [x.name for x in saved_from(uses[1:], [a, b, c])] == ["b", "a"]


def test_transient_dats_are_dead_between_calls() -> None:
    """A transient dat that the chain overwrites first need not be saved where the chain does not run."""
    _, cells, (a, b, c, _) = line()
    first, second = fl.Loop(copy, cells, a, b), fl.Loop(copy, cells, b, a)
    other = call_of(fl.Loop(bump, cells, c))
    plain = call_of(fl.Chain([first, second]))
    dying = call_of(fl.Chain([first, second], transient=[b]))
    assert [d.name for d in dying.dead] == ["b"]
    before = [[d.name for d in changed_before([call, other])] for call in (plain, dying)]
    assert before == [["b", "a", "c"], ["a", "c"]]
    inside = changed_before([dying, other], dying.uses[:1])
    assert [d.name for d in inside] == ["a", "c", "b"]
    carried = call_of(fl.Chain([fl.Loop(bump, cells, b), second], transient=[b]))
    assert carried.dead == ()


@pytest.mark.parametrize(
    ("sequence", "period"),
    [
        ("ababab", 2), ("xyzababab", 2), ("aaaa", 1), ("abc", None), ("", None), ("a", None),
        ("sabbabbabb", 3), ("initssssu" + "ssssu" * 3, 5), ("abcabc", 3), ("aab" * 4 + "aa", 3),
    ],
)  # fmt: skip
def test_period(sequence: str, period: int | None) -> None:
    """The length that explains most of what was recorded, the shortest of those."""
    assert find_period([ord(c) for c in sequence]) == period


def test_costs_need_a_loop() -> None:
    """A period without loops has no place."""
    with pytest.raises(CheckpointError, match="no loop was recorded"):
        costs([])
    with pytest.raises(CheckpointError, match="no period shows"):
        Checkpoints("c.h5", every=1.0).advice()
