"""Subsets of lattices on several ranks: what stencils read beyond a cut is current, every cut gives the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import Chain, Inc, Loop, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DatError, LoopError
from fluxloom.dsl.declare.parts import Part

from .harness import everywhere, rest_is_long

FIVE = [(0, 0), (0, -1), (0, 1), (-1, 0), (1, 0)]
SHAPE = (14, 11)


@fl.kernel
def smooth(u: Read, v: Write, n: Inc):
    v[0] = 0.25 * (u[1] + u[2] + u[3] + u[4]) - u[0]
    n[0] += 1


@fl.kernel
def push(u: Read, v: Write):
    v[0] = u[0]
    v[1] = u[0]


def smoothed(comm: Comm, device: str, cut: tuple[int, int], chained: bool) -> tuple[Any, np.ndarray, int]:
    """Smooth to and fro on some elements; each rank's part of the lattice, what it has there, and how many ran."""
    ctx = fl.Context(device, comm=comm, threads=1, tuning=False)
    grid = ctx.grid(SHAPE, periodic=True, cut=cut)
    s = ctx.stencil(grid, FIVE)
    rng = np.random.default_rng(0)
    values, mask = rng.random(SHAPE), rng.random(SHAPE) < 0.6
    u, v = (ctx.dat(grid, grid.local(values)) for _ in range(2))
    n = ctx.scalar(0, dtype="int64")
    some = ctx.subset(grid, grid.local(mask).ravel())
    loops = [Loop(smooth, some, u[s], v, n), Loop(smooth, some, v[s], u, n)]
    call = Chain(loops) if chained else lambda: [loop() for loop in loops]
    for _ in range(3):
        call()
    return grid.window, u.read(), int(n.value)


@pytest.mark.parametrize(("device", "chained"), everywhere([True, False], [True], keep=1, keep_items=0))
@pytest.mark.parametrize("cut", rest_is_long([(2, 2), ((2, 1),), ((1, 2),)], keep=1))
def test_cuts(device: str, chained: bool, cut: tuple[int, int]) -> None:
    ((_, want, count),) = run_threads(1, lambda comm: smoothed(comm, device, (1, 1), False))
    for window, got, total in run_threads(cut[0] * cut[1], lambda comm: smoothed(comm, device, cut, chained)):
        np.testing.assert_array_equal(got, want[window])
        assert total == count


def test_refusals() -> None:
    def case(comm: Comm) -> list[str]:
        ctx = fl.Context("cpu", comm=comm, threads=1, tuning=False)
        ghosts = ctx.grid(SHAPE, "ghosts", ghost=(1, 0), cut=(1, 2))
        u, v = ctx.dat(ghosts), ctx.dat(ghosts, shape=(2,))
        found = []
        for wrong in (lambda: Loop(push, ghosts, u, v[ctx.stencil(ghosts, [(1, 0)])[0]]),
                      lambda: ctx.subset(ctx.set(Part.whole(6), "rows"), [1], "some", capacity=4)):  # fmt: skip
            with pytest.raises((LoopError, DatError)) as error:
                wrong()
            found.append(str(error.value))
        return found

    for write, change in run_threads(2, case):
        assert "'v' is Write through stencil 'stencil', and Grid(ghosts" in write
        assert "has ghosts (1, 0); declare it without, periodic along each axis" in write
        assert "subset 'some': on several ranks members can change on a lattice only" in change
