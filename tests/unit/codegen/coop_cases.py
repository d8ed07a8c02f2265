"""Kernels over the rows of a ragged map, and their specs, for the tests of code that shares rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Max, Min, Read, Write
from fluxloom.codegen.language.spec import LoopSpec
from fluxloom.dsl.plan.bind import Numbering, specialise


class Case:
    """Rows, columns, a ragged map between them, and dats to choose from."""

    def __init__(self, layout: Any = None, dtype: str = "float64") -> None:
        self.ctx = ctx = fl.Context("reference")
        self.rows, self.columns, self.points = ctx.set(5, "rows"), ctx.set(4, "columns"), ctx.set(3, "points")
        offsets = np.array([0, 2, 2, 5, 6, 8])
        self.m = ctx.ragged(self.rows, self.columns, offsets, np.array([0, 1, 1, 2, 3, 0, 2, 3]), "m", layout)
        self.t = ctx.map(self.rows, self.points, np.zeros((5, 2), dtype=int), "t")
        self.dtype = dtype

    def at(self, where: str, *shape: int) -> Any:
        """Return a new argument: x (target), e (entry), y (row), t (through a table), g (global)."""
        if where == "g":
            return self.ctx.scalar(np.zeros(shape), dtype=self.dtype)
        over = {"x": self.columns, "e": self.m.entries, "y": self.rows, "t": self.points}[where]
        dat = self.ctx.dat(over, shape=shape, dtype=self.dtype)
        through = {"x": self.m, "e": self.m.to_entries, "t": self.t}
        return dat[through[where]] if where in through else dat


def spec_of(kernel: fl.Kernel, where: str, case: Case | None = None, **constants: Any) -> LoopSpec:
    """Return the spec of a kernel whose arguments are where the letters say; a digit asks for components."""
    case = case or Case()
    places = re.findall(r"([a-z])(\d*)", where)
    loop = Loop(kernel, case.rows, *(case.at(w, *([int(n)] if n else [])) for w, n in places), **constants)
    return specialise(loop.bound, Numbering())


@fl.kernel
def spmv(a: Read, x: Read, y: Write):
    total = 0.0
    for j in range(len(a)):
        product = a[j] * x[j]
        total += product
    y[0] = total


@fl.kernel
def stored_sums(a: Read, y: Write, z: RW, g: Inc):
    y[0] = 1.0
    y[1] = 0.0
    for j in range(len(a)):
        y[0] += a[j]
        y[1] = a[j] + y[1] - 2.0
        z[0] = min(z[0], a[j])
        g[0] += a[j]


@fl.kernel
def two_loops(a: Read, x: Read, r: Inc, low: Min, high: Max):
    mean = 0.0
    for j in range(len(a)):
        t = a[j] + 1.0
        mean += t
    mean = mean / (len(a) + 1)
    for j in range(len(a)):
        t = x[j] - mean
        if t > 0.0:
            r[0] += t
        else:
            r[1] -= t
        low[0] = min(low[0], t)
        high[0] = max(high[0], t)


@fl.kernel
def forms(a: Read, y: Write):
    s = 0.0
    u = 0.0
    b = 0.0
    c = 0.0
    n = 0
    some = False
    every = True
    flag = False
    for j in range(len(a)):
        s = 1.0 + (s - a[j]) + 2.0
        u = max(a[j], u, 0.5)
        b = b + a[j] if a[j] > 0.0 else b
        n += 1
        some = some or a[j] > 0.0
        every = a[j] > 0.0 and every
        if a[j] > 3.0:
            flag = True
        for k in range(100):
            c += a[j] * k
    y[0] = s + u + b + c + n
    y[1] = 1.0 if (some and every) or flag else 0.0


@fl.kernel
def inner_sums(a: Read, x: Read, y: Write):
    """A sum of its own for each entry, and a loop over the same row inside."""
    n = len(a)
    total = 0.0
    for j in range(1, n, 2):
        inside = 0.0
        for k in range(n):
            inside += x[k]
        total += inside * a[j]
    y[0] = total


@fl.kernel
def entry_writes(x: Read, e: Write, f: RW, g: Inc):
    for j in range(len(x)):
        e[j] = x[j]
        f[j] = f[j] + x[j]
    for j in range(len(x)):
        g[j] += x[j] * f[j]


@fl.kernel
def arrays(a: Read, y: Write):
    bins = [0.0, 1.0, 0.0]
    for j in range(len(a)):
        w = [a[j], 2.0 * a[j], 3.0]
        k = int(a[j]) % 3
        bins[k] += w[k]
    y[0] = bins[0] + bins[1] + bins[2]


@fl.kernel
def table_sums(x: Read, v: Inc):
    s = 0.0
    for j in range(len(x)):
        s += x[j]
        v[1] += x[j]
    v[0] += s


@fl.kernel
def scatter(w: Read, x: Inc):
    for j in range(len(x)):
        x[j] += w[0]
