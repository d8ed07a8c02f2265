"""Values on their way between host and device: reads, writes and views between loops, in random order."""

from __future__ import annotations

import random

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Write
from fluxloom.dsl.run.chain import Chain

from .harness import DEVICES, LAYOUTS, context, everywhere

N = 1000


@fl.kernel
def double(u: RW, *, by: float):
    u[0] = by * u[0] + 1.0


@fl.kernel
def copy(u: Read, v: Write):
    v[0] = u[0]


@fl.kernel
def add(u: Read, v: Inc, g: Read, total: Inc):
    v[0] += u[0] * g[0]
    total[0] += 1.0


class Twin:
    """Dats and globals on a device beside NumPy arrays with what must be in them."""

    def __init__(self, ctx: fl.Context, layout: fl.AoS | fl.SoA | fl.Blocked) -> None:
        self.over = ctx.set(N, "over")
        self.u, self.v = (ctx.dat(self.over, np.arange(N) + k, layout=layout) for k in (0.0, 0.5))
        self.g, self.total = ctx.scalar(0.25), ctx.scalar(0.0)
        self.by = 0.5
        self.loops = {
            "double": Loop(double, self.over, self.u, by=self.by),
            "copy": Loop(copy, self.over, self.u, self.v),
            "add": Loop(add, self.over, self.u, self.v, self.g, self.total),
        }
        names = [["double", "add"], ["copy", "double", "add", "double"]]
        self.chains = [(Chain([self.loops[n] for n in c], fuse=f), c) for c in names for f in (True, False)]
        self.viewable = not isinstance(layout, fl.Blocked)
        self.want = {"u": np.arange(N) + 0.0, "v": np.arange(N) + 0.5, "g": 0.25, "total": 0.0}

    def model(self, name: str) -> None:
        want = self.want
        match name:
            case "double":
                want["u"] = self.by * want["u"] + 1.0
            case "copy":
                want["v"] = want["u"].copy()
            case "add":
                want["v"] = want["v"] + want["u"] * want["g"]
                want["total"] += N

    def act(self, pick: random.Random) -> str:
        dat = pick.choice("uv")
        kinds = ["loop", "loop", "chain", "chain", "chain", "write", "view", "look", "read", "global", "constant"]
        match kind := pick.choice(kinds):
            case "loop":
                name = pick.choice(list(self.loops))
                self.loops[name]()
                self.model(name)
            case "chain":
                chain, names = pick.choice(self.chains)
                chain()
                for name in names:
                    self.model(name)
            case "write":
                self.want[dat] = np.full(N, pick.random())
                getattr(self, dat).write(self.want[dat])
            case "view" if self.viewable:
                getattr(self, dat).data[3:70] *= 0.5
                self.want[dat] = self.want[dat].copy()
                self.want[dat][3:70] *= 0.5
            case "look" if self.viewable:
                np.testing.assert_allclose(getattr(self, dat).data_ro, self.want[dat], rtol=1e-13)
            case "global":
                self.want["g"] = pick.random()
                self.g.value = self.want["g"]
            case "constant":
                self.by = pick.random()
                self.loops["double"].set(by=self.by)
            case _:
                self.check()
        return kind

    def check(self) -> None:
        for name in "uv":
            np.testing.assert_allclose(getattr(self, name).read(), self.want[name], rtol=1e-12, err_msg=name)
        assert float(self.g.value) == self.want["g"]
        assert float(self.total.value) == self.want["total"]


@pytest.mark.parametrize(("device", "layout"), everywhere(LAYOUTS, LAYOUTS, keep=1, keep_items=1))
def test_host_and_device_take_turns(device: str, layout: str) -> None:
    pick, twin = random.Random(1), Twin(context(device), LAYOUTS[layout])
    happened = []
    for _ in range(300):
        happened.append(twin.act(pick))
        if pick.random() < 0.1:
            twin.check()
    twin.check()
    assert len(set(happened)) == 8


@pytest.mark.parametrize("device", DEVICES)
def test_values_that_no_loop_has_met(device: str) -> None:
    ctx = context(device)
    over, none = ctx.set(10, "over"), ctx.set(0, "none")
    zero, given, empty = ctx.dat(over), ctx.dat(over, np.arange(10.0)), ctx.dat(none, shape=(3,))
    np.testing.assert_array_equal(zero.read(), 0.0)
    np.testing.assert_array_equal(zero.data_ro, 0.0)
    np.testing.assert_array_equal(given.read(), np.arange(10))
    assert empty.read().shape == empty.data.shape == (0, 3)
    loop = Loop(copy, over, zero, given)
    loop()
    np.testing.assert_array_equal(given.read(), 0.0)


@pytest.mark.parametrize("device", DEVICES)
def test_globals_of_every_type(device: str) -> None:
    """Arrays and scalars, read and reduced into, keep their type and shape."""

    @fl.kernel
    def gather(a: Read, w: Read, sums: Inc, count: Inc, most: fl.Max):
        sums[0] += a[0] * w[0]
        sums[1] += a[0] * w[1]
        count[0] += 1
        most[0] = max(most[0], a[0])

    ctx = context(device)
    over = ctx.set(300, "over")
    a = ctx.dat(over, np.arange(300.0))
    w = ctx.scalar([2.0, -1.0])
    sums, count, most = ctx.scalar([1.0, 2.0], dtype="float32"), ctx.scalar(5, dtype="int32"), ctx.scalar(-1.0)
    loop = Loop(gather, over, a, w, sums, count, most)
    for k in range(1, 4):
        loop()
        total = 44850.0
        np.testing.assert_allclose(sums.value, [1.0 + 2 * k * total, 2.0 - k * total], rtol=1e-6)
        assert sums.value.dtype == np.float32
        assert count.value == 5 + 300 * k
        assert most.value == 299.0
    w.value = [0.0, 0.0]
    sums.value = [7.0, 8.0]
    loop()
    np.testing.assert_array_equal(sums.value, [7.0, 8.0])
