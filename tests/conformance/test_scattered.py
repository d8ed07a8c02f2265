"""Loops over a scattered map, an index that data give, and reductions, in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.access import Inc, Min, Read, Write

from .harness import everywhere

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


SCHEDULES: list[dict[str, Any]] = [{}, {"block": 128}, {"strategy": "two_pass"}]


@pytest.mark.parametrize("layout", [fl.AoS(), fl.SoA(), fl.Blocked(8)], ids=str)
@pytest.mark.parametrize(("device", "schedule"), everywhere(SCHEDULES, SCHEDULES, keep=1))
def test_values(device: str, layout: Any, schedule: dict[str, Any]) -> None:
    case, same = Case(device, layout, **schedule), Case("reference", layout)
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
