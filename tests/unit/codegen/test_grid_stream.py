"""When a loop over a grid is moved line by line, and what its code says."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read, Schedule, Write
from fluxloom.dsl.plan import stream


@fl.kernel
def smooth(u: Read, v: Write):
    v[0] = 0.5 * u[0] + 0.25 * (u[1] + u[2])


@fl.kernel
def pair(u: Read, v: Write):
    v[0] = u[1]
    v[1] = u[0]


@fl.kernel
def sum_and_copy(u: Read, v: Write, total: Inc):
    v[0] = u[0]
    total[0] += u[0]


THREE = ((0, 0), (0, -1), (0, 1))


def smooth_loop(shape: tuple[int, ...], **choices) -> Loop:
    ctx = fl.Context("cpu", threads=1)
    grid = ctx.grid(shape, periodic=True)
    u, v = ctx.dat(grid, dtype="float32"), ctx.dat(grid, dtype="float32")
    return Loop(smooth, grid, u[ctx.stencil(grid, THREE)], v, schedule=Schedule(**choices))


def lines(loop: Loop) -> bool:
    return "line by line" in loop.source


def test_beyond_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two dats of 64 KiB each: driven line by line where they are more than the caches hold, and rows are long."""
    monkeypatch.setattr(stream, "last_level_cache", lambda: 1 << 20)
    assert not lines(smooth_loop((64, 256)))
    monkeypatch.setattr(stream, "last_level_cache", lambda: 1 << 16)
    assert lines(smooth_loop((64, 256)))
    assert not lines(smooth_loop((512, 32)))
    assert lines(smooth_loop((512, 32), stream=True))
    assert not lines(smooth_loop((64, 256), stream=False))
    assert not lines(smooth_loop((64, 256), lanes=1))


def test_order_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums whose order shall not depend on the parts of a grid are made element by element."""
    monkeypatch.setattr(stream, "last_level_cache", lambda: 1 << 10)
    ctx = fl.Context("cpu")
    grid = ctx.grid((64, 256), periodic=True)
    u, v, total = ctx.dat(grid), ctx.dat(grid), ctx.scalar(0.0, "total")
    assert lines(Loop(sum_and_copy, grid, u, v, total))
    assert not lines(Loop(sum_and_copy, grid, u, v, total, schedule=Schedule(deterministic="global")))


@pytest.mark.parametrize(("layout", "wanted"), [(fl.SoA(), True), (fl.AoS(), False), (fl.Blocked(8), False)])
def test_layouts(layout: fl.AoS | fl.SoA | fl.Blocked, wanted: bool) -> None:
    ctx = fl.Context("cpu")
    grid = ctx.grid((4, 64), periodic=True)
    u, v = (ctx.dat(grid, shape=(2,), layout=layout) for _ in range(2))
    assert lines(Loop(pair, grid, u, v, schedule=Schedule(stream=True))) == wanted


def test_memory_of_others_is_stored_in_the_caches() -> None:
    """Lines need not begin where an array of somebody else does."""
    ctx = fl.Context("cpu")
    grid = ctx.grid((4, 65), periodic=True)
    u = ctx.dat(grid, np.random.default_rng(0).random((4, 65)))
    v = ctx.dat(grid, np.zeros(4 * 65 + 1)[1:].reshape(4, 65), copy=False)
    loop = Loop(smooth, grid, u[ctx.stencil(grid, THREE)], v, schedule=Schedule(stream=True))
    assert not lines(loop)


def test_vectors_are_reported() -> None:
    loop = smooth_loop((4, 64), stream=True)
    loop()
    assert loop.report().vectorised in (True, None)
    assert "fl_line(" in loop.source


@fl.kernel
def double(u: RW):
    u[0] *= 2.0


def test_values_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is gained where each element changes its own values, unless they are converted."""
    monkeypatch.setattr(stream, "last_level_cache", lambda: 1 << 10)
    ctx = fl.Context("cpu")
    grid = ctx.grid((64, 256), periodic=True)
    assert not lines(Loop(double, grid, ctx.dat(grid)))
    assert lines(Loop(double, grid, ctx.dat(grid, dtype="float16")))
