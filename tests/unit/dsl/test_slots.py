"""Slots: what they accept, what they refuse and how they say it, and where they lead."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Inc, Loop, Read, Write
from fluxloom.core.errors import DatError, LoopError, PlanError


@fl.kernel
def take(x: Read, y: Write):
    y[0] = x[0]


@fl.kernel
def take_both(x: Read, y: Write):
    y[0] = x[0]
    y[1] = x[1]


@fl.kernel
def swap(x: RW):
    first = x[0]
    x[0] = x[1]
    x[1] = first


@fl.kernel
def add(x: Inc):
    x[0] += 1.0


@fl.kernel
def add_two(x: Inc, y: Inc):
    x[0] += 1.0
    y[0] += 1.0


@pytest.fixture
def ctx() -> fl.Context:
    return fl.Context("reference")


@pytest.fixture
def made(ctx: fl.Context) -> SimpleNamespace:
    links, cells = ctx.set(3, "links"), ctx.set(4, "cells")
    f = ctx.dat(cells, np.arange(20.0).reshape(4, 5), name="f")
    return SimpleNamespace(links=links, cells=cells, f=f, own=ctx.dat(links, shape=(2,), name="own"))


@pytest.mark.parametrize(
    ("cells", "components", "message"),
    [
        ([[0, 1], [1, 4], [2, 3]], 0, r"slots 's': cells: entry \[1, 1\] is 4; allowed are 0 ... 3"),
        ([[0, 1], [1, 2], [-1, 3]], 0, r"slots 's': cells: entry \[2, 0\] is -1"),
        ([0, 1, 2], [0, 1, -2], r"slots 's': components: entry \[2, 0\] is -2"),
        ([[0, 1], [1, 2]], 0, r"slots 's': cells of shape \(2, 2\) do not fit Set\(links, 3\)"),
        (np.zeros((3, 2, 2), int), 0, "do not fit"),
        (np.zeros((3, 0), int), 0, "they have no legs"),
        ([0, 1, 2], [0, 1], r"components of shape \(2,\) do not fit cells of shape \(3,\)"),
        ([0.0, 1.0, 2.0], 0, "indices must be integers, got float64"),
        ([0, 1, 2], 0.5, "indices must be integers, got float64"),
    ],
)
def test_tables(ctx, made, cells, components, message: str) -> None:
    with pytest.raises(DatError, match=message):
        ctx.slots(made.links, made.cells, cells, components, "s")


def test_sets_that_do_not_fit(ctx, made) -> None:
    other = fl.Context("reference").set(4, "others")
    with pytest.raises(DatError, match="belong to different contexts"):
        ctx.slots(made.links, other, [0, 1, 2], 0)
    with pytest.raises(DatError, match=r"stored=True is for a lattice, Set\(cells, 4\) is none"):
        ctx.slots(made.links, made.cells, [0, 1, 2], 0, stored=True)
    slots = ctx.slots(made.links, made.cells, [0, 1, 2], 0, "s")
    with pytest.raises(LoopError, match=r"dat 'own' is on Set\(links, 3\), but map 's' leads to Set\(cells, 4\)"):
        made.own[slots]
    with pytest.raises(LoopError, match=r"map 's' starts at Set\(links, 3\), the loop runs over Set\(cells, 4\)"):
        Loop(take, made.cells, made.f[slots], made.f)
    with pytest.raises(LoopError, match=r"map 's' has legs 0 ... 0, not 1"):
        slots[1]


def test_a_component_that_a_dat_has_not(ctx, made) -> None:
    slots = ctx.slots(made.links, made.cells, [[0, 1]] * 3, [[0, 1], [2, 5], [3, 4]], "s")
    with pytest.raises(LoopError, match=r"slots 's': components: entry \[1, 1\] is 5; dat 'f' has 0 ... 4"):
        made.f[slots]
    with pytest.raises(LoopError, match="dat 'f' has"):
        made.f[slots[0]]


def test_a_ghost_has_a_place_but_no_number(ctx, made) -> None:
    grid = ctx.grid((4,), ghost=1)
    with pytest.raises(DatError, match=r"entry \[0, 0\] is 5; allowed are 0 ... 3"):
        ctx.slots(made.links, grid, [5, 1, 2], 0)
    with pytest.raises(DatError, match=r"entry \[0, 0\] is 6; allowed are 0 ... 5"):
        ctx.slots(made.links, grid, [6, 1, 2], 0, stored=True)
    by_place = ctx.slots(made.links, grid, [5, 1, 2], 0, stored=True)
    by_number = ctx.slots(made.links, grid, [3, 0, 1], 0)
    np.testing.assert_array_equal(by_place.elements, [[5], [1], [2]])
    np.testing.assert_array_equal(by_number.elements, [[4], [1], [2]])


@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA(), fl.Blocked(4)])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_places_are_those_of_the_storage(ctx, layout, shape: tuple[int, ...]) -> None:
    """Checked against the bytes of a dat whose values are its own numbers."""
    cells, dim = ctx.set(70, "cells"), int(np.prod(shape))
    dat = ctx.dat(cells, np.arange(70 * dim).reshape(70, *shape), dtype="int32", layout=layout)
    wanted = np.random.default_rng(0).integers(0, 70 * dim, (40, 3))
    slots = ctx.slots(ctx.set(40, "over"), cells, wanted // dim, wanted % dim)
    storage = dat.buffer.host(write=False).view(np.int32)
    np.testing.assert_array_equal(storage[slots.places(dat).table], wanted)
    again = ctx.dat(cells, shape=shape, dtype="float64", layout=layout)
    assert slots.places(again) is slots.places(dat)


# ------------------------------------------------------------------------------------------------ races


def test_two_elements_may_not_write_a_slot(ctx, made) -> None:
    one = ctx.slots(made.links, made.cells, [[0, 1], [2, 3], [1, 3]], [[0, 1], [2, 3], [1, 4]], "s")
    message = r"take_both: argument 'y' is written through slots 's', whose entries \[0, 1\] and \[2, 0\] are the same"
    with pytest.raises(LoopError, match=message):
        Loop(take_both, made.links, made.own, made.f[one])
    with pytest.raises(LoopError, match=r"swap: argument 'x' is written through slots 's'"):
        Loop(swap, made.links, made.f[one])
    Loop(take, made.links, made.own, made.f[one[0]])()  # each leg by itself meets no slot twice
    Loop(take_both, ctx.subset(made.links, [0, 1]), made.own, made.f[one])()
    twice = ctx.slots(made.links, made.cells, [[0, 0], [2, 2], [1, 1]], [[0, 1], [2, 2], [1, 4]])
    with pytest.raises(LoopError, match=r"entries \[1, 0\] and \[1, 1\] are the same"):
        Loop(swap, made.links, made.f[twice])


def test_members_that_may_change(ctx, made) -> None:
    """What is only read is found through tables; what is written was checked for given members."""
    one, some = ctx.slots(made.links, made.cells, [0, 0, 1], 2), ctx.subset(made.links, [0, 2], capacity=2)
    with pytest.raises(LoopError, match=r"members of .* may change"):
        Loop(take, some, made.own, made.f[one])
    loop = Loop(take_both, some, made.f[ctx.slots(made.links, made.cells, [[0, 3]] * 3, [[1, 2]] * 3)], made.own)
    loop()
    some.assign([1])
    loop()
    np.testing.assert_array_equal(made.own.read(), [[1, 17]] * 3)


def test_different_components_of_a_cell_do_not_meet(ctx, made) -> None:
    slots = ctx.slots(made.links, made.cells, [[2, 2]] * 3, [[0, 1], [2, 3], [4, 0]], "s")
    with pytest.raises(LoopError, match=r"entries \[0, 0\] and \[2, 1\]"):
        Loop(swap, made.links, made.f[slots])
    Loop(swap, ctx.subset(made.links, [0, 1]), made.f[slots])()
    np.testing.assert_array_equal(made.f.read()[2], [11, 10, 13, 12, 14])


def test_what_another_element_writes_may_not_be_read(ctx, made) -> None:
    read = ctx.slots(made.links, made.cells, [0, 1, 2], [0, 0, 0], "read")
    message = r"take: 'x' reads 'f' where another element of the same loop writes it \(entry \[1, 0\]\)"
    for components, fits in (([1, 1, 1], True), ([0, 1, 0], True), ([1, 0, 1], True), ([0, 1, 1], True)):
        assert fits
        put = ctx.slots(made.links, made.cells, [0, 1, 2], components)
        Loop(take, made.links, made.f[read], made.f[put])
    put = ctx.slots(made.links, made.cells, [1, 0, 3], [0, 1, 0], "put")
    with pytest.raises(LoopError, match=message):
        Loop(take, made.links, made.f[read], made.f[put])
    other = ctx.dat(made.cells, shape=(5,))
    Loop(take, made.links, made.f[read], other[put])()


def test_slots_beside_other_uses_of_a_dat(ctx, made) -> None:
    """Directly, and through a table: then all components are met."""
    table = ctx.map(made.links, made.cells, [3, 1, 2], "table")
    put = ctx.slots(made.links, made.cells, [3, 0, 2], 1)
    put_elsewhere = ctx.slots(made.links, made.cells, [3, 2, 0], 1)
    with pytest.raises(LoopError, match=r"reads 'f' where another element of the same loop writes it \(entry \[2, 0\]"):
        Loop(take, made.links, made.f[table[0]], made.f[put_elsewhere])
    Loop(take, made.links, made.f[table[0]], made.f[put])()
    assert made.f.read()[3, 1] == made.f.read()[3, 0]
    own = ctx.slots(made.cells, made.cells, np.arange(4), 2, "own")
    shifted = ctx.slots(made.cells, made.cells, [1, 2, 3, 0], 2, "shifted")
    Loop(take_whole, made.cells, made.f[own], made.f)()
    with pytest.raises(LoopError, match="another element of the same loop writes it"):
        Loop(take_whole, made.cells, made.f[shifted], made.f)
    with pytest.raises(LoopError, match="another element of the same loop writes it"):
        Loop(take_leg, made.cells, made.f, made.f[shifted])
    Loop(take_leg, made.cells, made.f, made.f[own])()


@fl.kernel
def take_whole(x: Read, y: Write):
    for k in range(5):
        y[k] = x[0]


@fl.kernel
def take_leg(x: Read, y: Write):
    y[0] = x[4]


def test_other_ways_to_the_same_dat_are_refused(ctx, made) -> None:
    near = ctx.ragged(made.links, made.cells, [0, 1, 2, 3], [1, 2, 3], "near")
    put = ctx.slots(made.links, made.cells, [0, 1, 2], 1, "put")
    with pytest.raises(LoopError, match=r"first_of: 'x' meets 'f' through RaggedMap\(near: .*\), and the same loop"):
        Loop(first_of, made.links, made.f[near], made.f[put])
    with pytest.raises(LoopError, match="'x' and 'y' are the same 'f' and several are written"):
        Loop(both, made.links, made.f[put], made.f[put])


@fl.kernel
def first_of(x: Read, y: Write):
    y[0] = 0.0
    for j in range(len(x)):
        y[0] = y[0] + x[j][0]


@fl.kernel
def both(x: RW, y: RW):
    x[0] = y[0]
    y[0] = x[0]


# ------------------------------------------------------------------------------------------- increments


def test_increments_meet(ctx, made) -> None:
    slots = ctx.slots(made.links, made.cells, [1, 1, 2], [3, 3, 0])
    loop = Loop(add, made.links, made.f[slots])
    loop()
    assert made.f.read()[1, 3] == 8 + 2
    assert made.f.read()[2, 0] == 10 + 1
    assert loop.races.racing
    assert "gather" not in loop.races.allowed
    with pytest.raises(PlanError, match="'gather' is not possible: increments go through slots"):
        Loop(add, made.links, made.f[slots], schedule=fl.Schedule(strategy="gather"))


def test_increments_through_several_slots_are_refused(ctx, made) -> None:
    one, other = (ctx.slots(made.links, made.cells, [1, 1, 2], [3, 3, 0]) for _ in range(2))
    message = "'x' and 'y' are the same 'f', which is changed by Inc through slots"
    with pytest.raises(LoopError, match=message):
        Loop(add_two, made.links, made.f[one], made.f[other])
    Loop(add_two, made.links, made.f[one], made.f[one])()
    assert made.f.read()[1, 3] == 8 + 4
    with pytest.raises(LoopError, match="'x' and 'y' are the same 'f', which is changed by Inc through slots"):
        Loop(add_and_read, made.links, made.f[one], made.f[other])


@fl.kernel
def add_and_read(x: Inc, y: Read):
    x[0] += y[0]


def test_increments_past_32_bits_are_refused(ctx, made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom.dsl.declare.slots.NARROW", 0)
    slots = ctx.slots(made.links, made.cells, [1, 1, 2], [3, 3, 0])
    with pytest.raises(LoopError, match=r"argument 'x' is Inc through slots of 'f', which has more than 2\*\*31 - 1"):
        Loop(add, made.links, made.f[slots])


# ----------------------------------------------------------------------------------------------- passes


def test_loops_through_slots_run_alone(made) -> None:
    """A chain neither fuses nor tiles them."""
    ctx = fl.Context("cpu", threads=1)
    cells = ctx.set(100, "cells")
    f = ctx.dat(cells, np.arange(500.0).reshape(100, 5), name="f")
    slots = ctx.slots(cells, cells, np.arange(100)[::-1].copy(), 2)
    own = ctx.dat(cells, shape=(2,))
    work = Loop(double, cells, f)
    chain = Chain([work, Loop(take, cells, own, f[slots]), work], name="steps")
    chain()
    assert "+" not in chain.describe()


@fl.kernel
def double(f: RW):
    for k in range(5):
        f[k] = 2.0 * f[k]


def test_reports_count_them() -> None:
    ctx = fl.Context("cpu", threads=1)
    links, cells = ctx.set(30, "links"), ctx.set(40, "cells")
    f, own = ctx.dat(cells, shape=(5,)), ctx.dat(links, shape=(2,))
    loop = Loop(take, links, own, f[ctx.slots(links, cells, np.arange(30), 1)])
    loop()
    assert loop.report().calls == 1
    assert loop.useful_bytes > 0


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_sets_without_elements(device: str) -> None:
    """As sides of a box have them that are no side of a rank's part."""
    ctx = fl.Context(device, threads=1)
    links, cells = ctx.set(0, "links"), ctx.set(4, "cells")
    f, total = ctx.dat(cells, np.ones((4, 5)), name="f"), ctx.scalar(2.0)
    read, put = (ctx.slots(links, cells, np.zeros((0, 2), int), np.zeros((0, 2), int)) for _ in range(2))
    Loop(take_and_sum, links, f[read], f[put], total)()
    Loop(add, links, f[put])()
    assert total.value == 2.0
    np.testing.assert_array_equal(f.read(), 1.0)


@fl.kernel
def take_and_sum(x: Read, y: Write, total: Inc):
    y[0] = x[1]
    y[1] = x[0]
    total[0] += x[0]
