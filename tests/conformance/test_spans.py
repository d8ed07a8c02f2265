"""OpenCL on a CPU: kernels of which one item handles a whole group, as they are written and as they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.access import Inc, Min, Read, Write
from fluxloom.dsl.races import analyse
from fluxloom.dsl.spans import whole_span
from fluxloom.dsl.work_cpu import serial_tile, serial_tiles
from tests.golden.fake import FakeItems

CELLS, FACES = 700, 1300


@fl.kernel
def flux(q: Read, r: Inc):
    f = q[0][0] - 2.0 * q[1][1]
    r[0] += f
    r[1] -= f


@fl.kernel
def advance(r: Read, q: Read, qn: Write, most: Min, total: Inc):
    for k in range(2):
        qn[k] = q[k] - 0.1 * r[0]
    most[0] = min(most[0], qn[0])
    total[0] += qn[1]


@fl.kernel
def pick(q: Read, which: Read, out: Write):
    for k in range(2):
        out[k] = q[which[0]] + k


class Case:
    """A set of cells and a set of faces whose map is scattered."""

    def __init__(self, device: Any, layout: Any = None, **schedule: Any) -> None:
        rng = np.random.default_rng(7)
        self.context = fl.Context(device, tuning=False, schedule=fl.Schedule(**schedule))
        self.cells, self.faces = self.context.set(CELLS, "cells"), self.context.set(FACES, "faces")
        self.table = rng.integers(0, CELLS, (FACES, 2)).astype(np.int32)
        self.map = self.context.map(self.faces, self.cells, self.table, "sides")
        more = {} if layout is None else {"layout": layout}
        self.start = rng.random((CELLS, 2))
        self.q = self.context.dat(self.cells, self.start, name="q", **more)
        self.out = self.context.dat(self.cells, name="out", shape=(2,), **more)
        self.r = self.context.dat(self.cells, name="r")
        self.which = self.context.dat(self.cells, rng.integers(0, 2, CELLS), name="which", dtype="int32")
        self.most, self.total = self.context.scalar(9.0, "most"), self.context.scalar(0.0, "total")
        self.flux = fl.Loop(flux, self.faces, self.q[self.map], self.r[self.map])
        self.advance = fl.Loop(advance, self.cells, self.r, self.q, self.out, self.most, self.total)
        self.pick = fl.Loop(pick, self.cells, self.q, self.which, self.out)


def cpu_like(memory: int = 1 << 20) -> FakeItems:
    device = FakeItems("opencl")
    device.is_cpu, device.local_memory = True, memory  # type: ignore[attr-defined]
    return device


def test_one_item_a_group() -> None:
    case = Case(cpu_like())
    schedule = case.flux.schedule
    assert (schedule.strategy, schedule.stage) == ("gather", True)
    text = case.flux.source.split("/* flux: gather */")[1]
    assert "reqd_work_group_size(1, 1, 1)" in text
    assert "barrier(" not in text
    assert "double2" not in text
    group = case.advance.source.split("/* advance: direct */")[1].split("_finish(")[0]
    assert "barrier(" not in group
    colours = Case(cpu_like(), strategy="block_colour").flux
    assert (colours.schedule.block, "barrier(" in colours.source) == (128, True)


def test_what_keeps_elements_apart() -> None:
    for layout, told in ((fl.AoS(), False), (fl.SoA(), True)):
        case = Case(cpu_like(), layout)
        assert ("vectorize(assume_safety)" in case.advance.source) is told
        assert "vectorize(assume_safety)" not in case.pick.source  # its private array is shared by all elements


def test_tiles_that_do_not_fit() -> None:
    small = Case(cpu_like(1024))
    assert not small.flux.schedule.stage
    assert "inv_pos" in small.flux.source
    bound = small.flux.bound
    assert serial_tile(bound, analyse(bound), 4096) == 0


@pytest.mark.parametrize("tile", [1, 64, CELLS, 70000])
def test_places_in_tiles(tile: int) -> None:
    case = Case(cpu_like())
    races = analyse(case.flux.bound)
    plan = serial_tiles(case.flux.over, races, whole_span(races.targets[0]), tile)
    seg, elements, places = (np.asarray(plan.values[k]) for k in ("seg", "elem", "loc_0_at"))
    met = np.zeros(CELLS, dtype=int)
    for k in range(len(seg) - 1):
        for e, row in zip(elements[seg[k] : seg[k + 1]], places[seg[k] : seg[k + 1]], strict=True):
            for target, place in zip(case.table[e], row, strict=True):
                assert place == (target - k * tile if target // tile == k else tile)
                met[target] += target // tile == k
    assert (met == np.bincount(case.table.ravel(), minlength=CELLS)).all()


@pytest.mark.opencl
@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA(), fl.Blocked(8)], ids=str)
@pytest.mark.parametrize("schedule", [{}, {"block": 128}, {"stage": False}, {"strategy": "two_pass"}], ids=str)
def test_values(layout: Any, schedule: dict[str, Any]) -> None:
    case, same = Case("opencl", layout, **schedule), Case("reference", layout)
    for one in (case, same):
        one.pick()
        one.picked = one.out.read()  # type: ignore[attr-defined]
        one.flux()
        one.advance()
    np.testing.assert_array_equal(case.picked, same.picked)  # type: ignore[attr-defined]
    np.testing.assert_allclose(case.r.read(), same.r.read(), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(case.out.read(), same.out.read(), rtol=1e-12, atol=1e-13)
    assert case.most.value == pytest.approx(float(same.most.value), rel=1e-12)
    assert case.total.value == pytest.approx(float(same.total.value), rel=1e-12)
