"""One component at a time: of which loops it is possible, and what is said of the others."""

from __future__ import annotations

import numpy as np

import fluxloom as fl
from fluxloom import Inc, Loop, Read, Write
from fluxloom.core.access import RW
from fluxloom.dsl.plan.split import components, why_whole


@fl.kernel
def one(x: Read, y: Write):
    y[0] = x[0]


@fl.kernel
def two(x: Read, y: Write):
    y[0] = x[0]
    y[1] = 2.0 * x[0]


@fl.kernel
def different(y: Write, z: Write):
    y[0] = 1.0
    z[0] = 1.0
    z[1] = 2.0


@fl.kernel
def again(x: RW):
    x[0] += 1.0
    x[1] += 1.0


@fl.kernel
def summed(x: Read, total: Inc):
    total[0] += x[0]


def test_loops_that_write_some_components_alike_can_be_split() -> None:
    ctx = fl.Context("reference")
    s = ctx.set(4, "s")
    u, v = ctx.dat(s, np.ones(4), "u"), ctx.dat(s, shape=(2,), dtype="float64", name="v")
    scalar, vector = Loop(one, s, u, ctx.dat(s, np.ones(4), "w")).bound, Loop(two, s, u, v).bound
    assert why_whole(vector, "direct") == ""
    assert (components(scalar), components(vector)) == (1, 2)
    assert "in stages needs all" in why_whole(vector, "direct", stage=True)
    assert "'two_pass' needs all" in why_whole(vector, "two_pass")
    said = {
        "what it writes has one component": scalar,
        "what it writes has 1 and 2 components": Loop(different, s, u, v).bound,
        "'x' is read and written": Loop(again, s, v).bound,
        "'total' is a global": Loop(summed, s, u, ctx.scalar(0.0)).bound,
    }
    for words, bound in said.items():
        assert words in why_whole(bound, "direct")
