"""Division by the lengths of a lattice's axes as a product and a shift; offsets of 32 bits, and of 64 where needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fluxloom as fl
from fluxloom import Loop, Read, Write
from fluxloom.dsl.plan import bind
from fluxloom.dsl.plan.executable import divisor
from tests.golden.fake import FakeItems

LAST = 2**31 - 1


@fl.kernel
def around(u: Read, v: Write):
    v[0] = u[0][0] + u[1][1] - u[2][2]
    v[1] = u[1][0]
    v[2] = u[2][1]


@given(st.integers(0, LAST), st.integers(1, LAST))
@example(LAST, 1)
@example(LAST, LAST)
@example(LAST, 2**30)
@example(LAST, 2**30 + 1)
@example(LAST - 1, 3)
def test_division(i: int, number: int) -> None:
    q, h = divisor(number)
    assert 0 < q < 2**32
    for k in {i, i // number * number, max(0, i // number * number - 1)}:
        assert k * q >> h == k // number
        assert k * q < 2**64


@pytest.mark.parametrize("dialect", ["cuda", "opencl"])
@pytest.mark.parametrize("layout", [fl.SoA(), fl.AoS(), fl.Blocked(4)], ids=str)
def test_offsets(dialect: str, layout: fl.Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    def source() -> str:
        ctx = fl.Context(FakeItems(dialect), tuning=False)
        grid = ctx.grid((3, 4, 5), periodic=True)
        stencil = ctx.stencil(grid, [(0, 0, 0), (0, 0, -1), (1, 0, 1)])
        u, v = (ctx.dat(grid, shape=(3,), layout=layout) for _ in range(2))
        return Loop(around, grid, u[stencil], v).source

    short = source()
    monkeypatch.setattr(bind, "_wide", lambda _dat: True)
    long = source()
    assert "(int64_t)i" not in short
    assert "(uint32_t)i" in short
    assert "(int64_t)i" in long
    assert "(uint32_t)i)" not in long


def test_dats_tell_their_size() -> None:
    ctx = fl.Context("reference")
    small = ctx.dat(ctx.grid((4, 4)), shape=(3,))
    assert not bind._wide(small)
    small.stride = 2**31
    assert bind._wide(small)
    other = ctx.dat(ctx.set(7, "rows"), np.zeros((7, 3)))
    other.stride = 2**31
    assert not bind._wide(other)
