"""What the loop layer chooses by the device and by what kernels hold: layouts, registers, packs, memory of entries."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Read, Write, kernel
from fluxloom.device.text import TextDevice
from fluxloom.dsl.declare.ragged import CSR, SlicedELL
from fluxloom.dsl.plan.cost import entry_memory
from fluxloom.dsl.plan.registers import allowed, held_at_once

MANY, FEW, TOO_MANY = 37, 10, 60
"""A third of the numbers that a kernel holds: 224 registers in double precision, 62, and 362."""


@kernel
def divided(x: Read, y: Read, z: Read, part: Write, *, n: fl.Const[int]):
    """Every number is read before the first result is written, and again for it."""
    total = 0.0
    for i in range(n):
        total += x[i] + y[i] + z[i]
    for i in range(n):
        part[i] = x[i] * y[i] * z[i] / total


@kernel
def chain(x: Read, y: Write):
    """One number after the other."""
    a = 2.0 * x[0]
    b = a * a
    c = b * b
    y[0] = c


@kernel
def repeated(x: Read, near: Read, y: Write):
    """What a loop names is held as long as it runs."""
    a = x[0]
    b = 0.0
    for j in range(len(near)):
        c = near[j] * a
        b += c
    y[0] = b


@kernel
def added(near: Read, y: Write, *, n: fl.Const[int]):
    """Numbers of neighbours, added up."""
    for i in range(n):
        total = 0.0
        for j in range(len(near)):
            total += near[j][i]
        y[i] = total


def context(dialect: str) -> fl.Context:
    return fl.Context(TextDevice(dialect, 2, passing=True), tuning=False)


def loop_of(dialect: str, n: int, dtype: str = "float64", schedule: fl.Schedule | None = None) -> fl.Loop:
    """Return a loop that holds ``3 n + 1`` numbers."""
    ctx = context(dialect)
    cells = ctx.set(1000, "cells")
    dats = (ctx.dat(cells, name=name, shape=(n,), dtype=dtype) for name in ("x", "y", "z", "part"))
    return fl.Loop(divided, cells, *dats, n=n, schedule=schedule)


@pytest.mark.parametrize(("dialect", "layout", "rows", "unpacked"), [
    ("c", fl.AoS(), SlicedELL(8), CSR()), ("cuda", fl.SoA(), SlicedELL(32), SlicedELL(32)),
    ("opencl", fl.SoA(), SlicedELL(32), SlicedELL(32)),
])  # fmt: skip
def test_layouts(dialect: str, layout: object, rows: object, unpacked: object) -> None:
    ctx = context(dialect)
    assert ctx.component_layout == layout
    assert (ctx.row_layout(), ctx.row_layout(packed=False)) == (rows, unpacked)


def test_numbers_that_are_held_at_once() -> None:
    ctx = context("cuda")
    cells = ctx.set(10, "cells")
    x, y = ctx.dat(cells, name="x"), ctx.dat(cells, name="y")
    assert held_at_once(fl.Loop(chain, cells, x, y).bound.lowered.body) == 2
    near = ctx.ragged(cells, cells, np.arange(11), np.arange(10), "near")
    assert held_at_once(fl.Loop(repeated, cells, x, x[near], y).bound.lowered.body) == 5  # j too
    assert held_at_once(loop_of("cuda", FEW).bound.lowered.body) == 3 * FEW + 1
    assert held_at_once(()) == 0


def test_registers_of_kernels_that_hold_much() -> None:
    """Three groups fit on a multiprocessor where two would; only languages that can say it do."""
    assert loop_of("cuda", MANY).schedule.registers == 168
    assert "__launch_bounds__(128, 3)" in loop_of("cuda", MANY).source
    for other in (loop_of("cuda", FEW), loop_of("cuda", MANY, "float32"), loop_of("opencl", MANY), loop_of("c", MANY),
                  loop_of("cuda", TOO_MANY)):
        assert other.schedule.registers == 0
    own = loop_of("cuda", MANY, schedule=fl.Schedule(registers=96))
    assert own.schedule.registers == 96
    cuda, opencl = TextDevice("cuda"), TextDevice("opencl")
    assert allowed(cuda, 0) == (0, 32, 48, 64, 96, 128)
    assert allowed(cuda, 168) == (0, 32, 48, 64, 96, 128, 168, 255)  # 255: no limit after all
    assert allowed(opencl, 0) == ()


def test_memory_of_entries() -> None:
    assert [entry_memory(context("c"), most) for most in (6, 30)] == ["stack", "stack"]
    assert [entry_memory(context("cuda"), most) for most in (6, 7)] == ["registers", "none"]


@pytest.mark.parametrize(("layout", "lanes"), [(fl.AoS(), 1), (fl.SoA(), 8)])
def test_rows_that_only_fetch_go_one_by_one(
    monkeypatch: pytest.MonkeyPatch, layout: fl.AoS | fl.SoA, lanes: int
) -> None:
    monkeypatch.setattr("fluxloom.dsl.plan.lanes.optimises", lambda: True)
    ctx = context("c")
    cells = ctx.set(64, "cells")
    near = ctx.ragged(cells, cells, np.arange(0, 129, 2), np.arange(128) % 64, "near", ctx.row_layout())
    x, y = (ctx.dat(cells, name=name, shape=(4,), layout=layout) for name in "xy")
    assert fl.Loop(added, cells, x[near], y, n=4).schedule.lanes == lanes
    assert fl.Loop(added, cells, x[near], y, n=4, schedule=fl.Schedule(lanes=8)).schedule.lanes == 8
