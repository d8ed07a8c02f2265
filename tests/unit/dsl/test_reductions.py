"""Globals on several ranks: what each one reduces meets when somebody wants it, and only then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Max, Min, Read
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain

SIZES = (3, 0, 2)
VALUES = (5.0, 1.0, 3.0, 2.0, 4.0)


@fl.kernel
def total(u: Read, g: Inc):
    g[0] += u[0]


@fl.kernel
def lowest(u: Read, g: Min):
    g[0] = min(g[0], u[0])


@fl.kernel
def highest(u: Read, g: Max):
    g[0] = max(g[0], u[0])


@fl.kernel
def add(v: RW, g: Read):
    v[0] = v[0] + g[0]


class Rank:
    """Three ranks with three, no and two elements; ``v`` begins with zeros."""

    def __init__(self, comm: Comm, device: str) -> None:
        begin, n = sum(SIZES[: comm.rank]), SIZES[comm.rank]
        part = Part(0, n, n, n, n, np.arange(begin, begin + n), sum(SIZES))
        self.ctx = fl.Context(device, threads=1, tuning=False, comm=comm)
        self.cells = self.ctx.set(part, "cells")
        self.u = self.ctx.dat(self.cells, np.array(VALUES[begin : begin + n]), "u")
        self.v = self.ctx.dat(self.cells, np.zeros(n), "v")

    def loop(self, kernel: Any, g: fl.Global) -> Loop:
        return Loop(kernel, self.cells, self.v if kernel is add else self.u, g)


def ranks(device: str, body: Callable[[Rank], Any]) -> Any:
    """Return what the body returns, which is the same on every rank; arrays are put together."""
    found = run_threads(len(SIZES), lambda comm: body(Rank(comm, device)))
    if isinstance(found[0], np.ndarray):
        return np.concatenate(found).tolist()
    assert all(f == found[0] for f in found)
    return found[0]


@pytest.fixture(params=["cpu", pytest.param("opencl", marks=[pytest.mark.opencl, pytest.mark.long])])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


def test_loops_sum_over_the_ranks_once(device: str) -> None:
    def body(rank: Rank) -> list[float]:
        g, low, high = (rank.ctx.scalar(x) for x in (10.0, 2.0, 2.0))
        loops = [rank.loop(k, x) for k, x in ((total, g), (lowest, low), (highest, high), (total, g))]
        for loop in loops:
            loop()
        assert len(rank.ctx.waiting) == 3
        found = [float(g.value), float(low.value), float(high.value)]
        assert not rank.ctx.waiting
        loops[0]()
        return [*found, float(g.value)]

    assert ranks(device, body) == [40.0, 1.0, 5.0, 55.0]


def test_a_global_that_is_read_leaves_the_others_waiting(device: str) -> None:
    """A sum that was begun before the chain stays a sum of the ranks' parts."""

    def body(rank: Rank) -> list[float]:
        g, high = rank.ctx.scalar(0.0), rank.ctx.scalar(0.0)
        chain = Chain([rank.loop(total, g), rank.loop(add, high), rank.loop(highest, high)], fuse=False)
        out = []
        for _ in range(3):
            chain()
            out.append(float(g.value)) if len(out) == 2 else out.append(0.0)
        return out

    assert ranks(device, body) == [0.0, 0.0, 45.0]


def test_a_sum_read_in_the_middle_of_a_chain(device: str) -> None:
    def body(rank: Rank) -> np.ndarray:
        g, low = rank.ctx.scalar(0.0), rank.ctx.scalar(9.0)
        steps = [Reset(g, 1.0), rank.loop(lowest, low), rank.loop(total, g), rank.loop(add, g), rank.loop(total, g),
                 rank.loop(add, low), rank.loop(add, g)]  # fmt: skip
        chain = Chain(steps)
        chain()
        chain()
        return rank.v.read()

    assert ranks(device, body) == [2 * (16.0 + 31.0 + 1.0)] * 5


def test_a_global_reduced_in_two_ways(device: str) -> None:
    def body(rank: Rank) -> list[float]:
        g = rank.ctx.scalar(0.0)
        chain = Chain([rank.loop(total, g), rank.loop(lowest, g), rank.loop(total, g)], fuse=False)
        chain()
        first = float(g.value)
        chain()
        return [first, float(g.value)]

    assert ranks(device, body) == [16.0, 16.0]


def test_what_is_read_after_a_reset_is_its_value_on_every_rank(device: str) -> None:
    def body(rank: Rank) -> np.ndarray:
        g = rank.ctx.scalar(7.0)
        chain = Chain([Reset(g, 0.5), rank.loop(add, g), rank.loop(total, g)])
        chain()
        chain()
        assert float(g.value) == 15.5
        return rank.v.read()

    assert ranks(device, body) == [1.0] * 5


def test_a_reset_forgets_what_waits(device: str) -> None:
    def body(rank: Rank) -> list[float]:
        g = rank.ctx.scalar(1.0)
        rank.loop(total, g)()
        Chain([Reset(g, 2.0), rank.loop(highest, rank.ctx.scalar(0.0))])()
        first = float(g.value)
        rank.loop(total, g)()
        Reset(g, 3.0)()
        return [first, float(g.value)]

    assert ranks(device, body) == [2.0, 3.0]


def test_resets_between_reductions(device: str) -> None:
    def body(rank: Rank) -> list[float]:
        g = rank.ctx.scalar(1.0)
        chain = Chain([rank.loop(total, g), Reset(g, 2.0), rank.loop(total, g), Reset(g, 4.0)], fuse=False)
        chain()
        first = float(g.value)
        chain()
        rank.loop(total, g)()
        return [first, float(g.value)]

    assert ranks(device, body) == [4.0, 19.0]


def test_a_new_value_between_two_calls(device: str) -> None:
    def body(rank: Rank) -> list[float]:
        g, loops = rank.ctx.scalar(0.0), []
        loops = [rank.loop(total, g), rank.loop(add, g)]
        loops[0]()
        g.value = 100.0
        loops[0]()
        loops[1]()
        return [float(g.value), *np.unique(rank.v.read()).tolist()][:1]

    assert ranks(device, body) == [115.0]


def test_whole_numbers_and_arrays(device: str) -> None:
    @fl.kernel
    def count(u: Read, n: Inc):
        n[0] += 1
        if u[0] > 2.5:
            n[1] += 2

    def body(rank: Rank) -> list[int]:
        n = rank.ctx.scalar(np.array([1, -1]), dtype="int32")
        loop = Loop(count, rank.cells, rank.u, n)
        loop()
        loop()
        return n.value.tolist()

    assert ranks(device, body) == [11, 11]
