"""Loops that are put off: when they run, with which constants, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Inc, Loop, Read
from fluxloom.core.errors import LoopError
from fluxloom.dsl.declare.observe import Observer
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.tiles import lazy as module
from fluxloom.dsl.tiles.lazy import lazy
from fluxloom.dsl.tiles.tiling import TiledChain


@fl.kernel
def grow(u: RW, *, w: float):
    u[0] = w * u[0] + 1.0


@fl.kernel
def add(u: Read, v: RW):
    v[0] += u[0]


@fl.kernel
def total(u: Read, g: Inc):
    g[0] += u[0]


class Case:
    """Two dats, a global and three loops."""

    def __init__(self, device: str = "cpu") -> None:
        self.ctx = fl.Context(device, threads=2, tuning=False)
        over = self.ctx.set(100, "over")
        self.u, self.v = (self.ctx.dat(over, np.arange(100.0) / k, name) for k, name in ((1, "u"), (2, "v")))
        self.g = self.ctx.scalar(0.0, "g")
        self.grow, self.add = Loop(grow, over, self.u, w=0.5), Loop(add, over, self.u, self.v)
        self.total = Loop(total, over, self.v, self.g)

    def step(self, **constants: float) -> None:
        """Call the loops once."""
        self.grow(**constants)
        self.add()
        self.total()

    def values(self) -> list[np.ndarray]:
        """Return everything."""
        return [self.u.read(), self.v.read(), np.array(self.g.value)]


def same(left: Case, right: Case) -> None:
    for a, b in zip(left.values(), right.values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("longest", [1, 5, 24])
def test_the_results_are_those_without_laziness(device: str, longest: int) -> None:
    left, right = Case(device), Case(device)
    with lazy(left.ctx, longest=longest):
        for k in range(13):
            left.step()
            if k % 5 == 4:
                left.u.write(left.u.read() + 1)
    for k in range(13):
        right.step()
        if k % 5 == 4:
            right.u.write(right.u.read() + 1)
    assert left.ctx.observer is None
    same(left, right)


def test_when_loops_run() -> None:
    case = Case()
    with lazy(case.ctx) as loops:
        for look in (case.u.read, lambda: case.v.data, lambda: case.g.value, case.ctx.settle):
            case.step()
            assert loops.waiting == ["grow", "add", "total"]
            look()
            assert loops.waiting == []
        case.grow()
        Chain([case.add])()
        assert loops.waiting == []
        case.grow()
    assert loops.waiting == []


def test_repeated_sequences_become_chains() -> None:
    case = Case()
    with lazy(case.ctx, longest=7) as loops:
        for _ in range(10):
            case.step()
        # of seven calls that wait, two whole steps ran
        assert [len(c.loops) for c in loops.chains] == [6]
        chain = loops.chains[0]
    with lazy(case.ctx) as loops:
        case.step()
        case.step()
    assert loops.chains[0] is chain  # sequences are known to the context


def test_sequences_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SEQUENCES", 2)
    case = Case()
    for count in range(1, 5):
        for _ in range(2):
            with lazy(case.ctx, longest=100) as loops:
                for k in range(count):
                    (case.add if k else case.grow)()
    assert [len(c.loops) for c in loops.chains] == [3, 4]


def test_tiles_where_the_caches_are_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cache_bytes", lambda _level: 0)
    left, right = Case(), Case()
    with lazy(left.ctx) as loops:
        for _ in range(4):
            left.step()
            left.ctx.settle()
    for _ in range(4):
        right.step()
    assert [type(c) for c in loops.chains] == [TiledChain]
    same(left, right)


def test_constants_are_those_of_the_call() -> None:
    left, right = Case(), Case()
    with lazy(left.ctx) as loops:
        for k in range(6):
            left.step(w=0.1 * k)
        left.grow.set(w=7.0)  # after the last call: for the next one
        assert loops.waiting == ["grow", "add", "total"]
    for k in range(6):
        right.step(w=0.1 * k)
    same(left, right)
    assert left.grow.constants == {"w": 7.0}
    left.grow()
    right.grow(w=7.0)
    same(left, right)


def test_an_exception_inside() -> None:
    left, right = Case(), Case()

    def stop() -> None:
        with lazy(left.ctx):
            left.step()
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        stop()
    right.step()
    assert left.ctx.observer is None
    same(left, right)


def test_an_error_of_a_loop_that_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()

    def fail() -> None:
        raise LoopError("broken")

    monkeypatch.setattr(case.add, "build", fail)
    def run() -> None:
        with lazy(case.ctx):
            case.step()
            case.u.read()

    with pytest.raises(LoopError, match="broken") as caught:
        run()
    assert "put off: grow, add, total" in caught.value.__notes__[0]
    assert case.ctx.observer is None


def test_one_inside_another() -> None:
    case = Case()
    with lazy(case.ctx) as outer:
        case.grow()
        with lazy(case.ctx) as inner:
            case.add()
        assert inner is outer
        assert outer.waiting == ["grow", "add"]
        case.total()
    assert case.ctx.observer is None


class Watcher(Observer):
    """Lets everything pass."""

    def loop(self, loop: Loop) -> bool:
        return False

    def chain(self, chain: Chain) -> bool:
        return False


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    for longest in (0, 1.5, "5"):
        with pytest.raises(LoopError, match="at least one"), lazy(case.ctx, longest=longest):  # type: ignore[arg-type]
            pass
    for other, kind in ((None, "NoneType"), (fl.Chain([case.grow]), "Chain")):
        with pytest.raises(LoopError, match=f"context of the loops is wanted, not {kind}"), lazy(other):  # type: ignore
            pass
    case.ctx.observer = Watcher()
    with pytest.raises(LoopError, match="a Watcher already watches"), lazy(case.ctx):
        pass
    case.ctx.observer = None
    monkeypatch.setattr(type(case.ctx), "distributed", True)
    with pytest.raises(LoopError, match="different moments"), lazy(case.ctx):
        pass


def test_a_tiled_chain_under_an_observer() -> None:
    """An observer sees the whole chain; where it lets it pass, tiles run."""
    left, right = Case(), Case()
    chain = TiledChain([left.grow, left.add], tiles=3, steps_at_once=2)
    left.ctx.observer = Watcher()
    chain()
    assert isinstance(left.ctx.observer, Watcher)
    for _ in range(2):
        right.grow()
        right.add()
    same(left, right)
    assert chain.reports()[0].calls == 1
