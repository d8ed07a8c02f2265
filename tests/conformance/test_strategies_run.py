"""Strategies and left-out data in what runs loops: chains, tiles, lazy loops, the checking mode, ranks, exact sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Chain, Const, Func, Inc, Loop, Read, Write
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import FluxloomError, LoopCheckError, LoopError
from fluxloom.dsl.tiles.tiling import TiledChain
from fluxloom.dsl.tune.runs import family
from fluxloom.linalg.exact_sums import with_exact_sums

from .harness import DEVICES, context, everywhere
from .strategies import Damped, Flux, Gas, Inflow, Rusanov, Wall, boundaries, edges, optional, through_edges

EXACT = fl.Schedule(deterministic="global")


@dataclass(frozen=True)
class Bounded:
    most: float = 4.0

    @fl.func
    def __call__(self, x):
        return min(x, self.most)


@fl.kernel
def advance(w: RW, res: RW, force: Read | None, total: Inc | None, *, dt: float, limit: Const[Func] = Bounded()):
    for k in range(3):
        w[k] = limit(w[k] + dt * res[k])
        if force is not None:
            w[k] += dt * force[k]
        if total is not None:
            total[0] += w[k]
        res[k] = 0.0


@dataclass(frozen=True)
class Flow:
    """Fluxes and a boundary's as one chain."""

    w: fl.Dat
    total: fl.Global
    loops: tuple[Loop, ...]
    chain: Any

    def set(self, flux: Flux) -> None:
        for loop in self.loops[:2]:
            loop.set(flux=flux)


def flow(device: str, flux: Flux, size: int = 900, wrap: Callable[..., Any] = Chain, **options: Any) -> Flow:
    ctx = context(device, schedule=EXACT, **options)
    rng = np.random.default_rng(5)
    e, some, n = ctx.set(2 * size, "edges"), ctx.set(size // 3, "boundary edges"), ctx.set(size, "nodes")
    ends = np.arange(2 * size)[:, None] // 2 + np.array([0, 3])
    m = ctx.map(e, n, ends % size, "m")
    b = ctx.map(some, n, ends[: size // 3] % size, "b")
    w = ctx.dat(n, np.array([1.0, 0.3, 2.5]) + 0.2 * rng.random((size, 3)), "w")
    force, res = ctx.dat(n, 0.01 * rng.random((size, 3)), "force"), ctx.dat(n, name="res", shape=(3,))
    total = ctx.scalar(0.0)
    loops = (
        Loop(through_edges, e, w[m], res[m], flux=flux),
        Loop(through_edges, some, w[b], res[b], flux=flux, area=0.5),
        Loop(advance, n, w, res, force, None, dt=0.01),
        Loop(advance, n, w, res, None, total, dt=0.0),
    )
    return Flow(w, total, loops, wrap(loops))


FLOWS: dict[str, Callable[..., Any]] = {
    "fused": Chain,
    "unfused": lambda loops: Chain(loops, fuse=False),
    "tiled": lambda loops: TiledChain(list(loops), tiles=5),
}


@pytest.mark.parametrize(("device", "form"), everywhere(list(FLOWS), ["fused", "unfused"]))
def test_chains(device: str, form: str) -> None:
    """The bits of loop by loop, before and after the fields of the flux change; `set` reaches what a chain holds."""
    settings = [Damped(Gas()), Damped(Gas(1.3), scale=2.0), Damped(Gas(1.6))]
    left, right = flow(device, settings[0], wrap=FLOWS[form]), flow(device, settings[0])
    for setting in settings:
        left.set(setting)
        left.chain()
        for loop in right.loops[:2]:
            loop(flux=setting)
        for loop in right.loops[2:]:
            loop()
        assert left.w.read().tobytes() == right.w.read().tobytes()
        assert left.total.value == pytest.approx(right.total.value, rel=1e-13)


def test_lazy_loops_keep_the_fields_of_their_call() -> None:
    left, right = flow("cpu", Rusanov(Gas())), flow("cpu", Rusanov(Gas()))
    settings = [Rusanov(Gas(1.2 + 0.1 * k), k) for k in range(4)]
    with fl.lazy(left.w.set.context):
        for setting in settings:
            left.loops[0](flux=setting)
            left.loops[2]()
    assert left.loops[0].constants == {"area": 1.0, "flux_scale": 3.0, "flux_gas_gamma": pytest.approx(1.5)}
    for setting in settings:
        right.loops[0](flux=setting)
        right.loops[2]()
    assert left.w.read().tobytes() == right.w.read().tobytes()


@dataclass(frozen=True)
class Ratio:
    """Divides by what may be zero."""

    shift: float

    @fl.func
    def __call__(self, x, k):
        return x[k[0]] + 1.0 / (x[0] - self.shift)  # fault


@fl.kernel
def divide(x: Read, k: Read, extra: Read | None, out: Write, *, by: Const[Func]):
    out[0] = by(x, k)
    if extra is not None:
        out[0] += extra[k[0]]


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("extra", [True, False])
def test_checking(device: str, extra: bool) -> None:
    """The error names the formula's file and line; fields at the time of the call are those that are checked."""
    ctx = fl.Context(device, tuning=False, check=True)
    cells = ctx.set(20, "cells")
    x = ctx.dat(cells, np.arange(40.0).reshape(20, 2))
    k = ctx.dat(cells, np.arange(20) // 19)
    loop = Loop(divide, cells, x, k, x if extra else None, ctx.dat(cells), by=Ratio(0.5))
    loop()
    with pytest.raises(LoopCheckError, match="element 7") as found:
        loop(by=Ratio(14.0))
    assert "strategies_run.py" in str(found.value)
    k.write(np.arange(20) // 10 * 2)
    with pytest.raises(LoopCheckError, match="element 10"):
        loop(by=Ratio(0.5))


@pytest.mark.parametrize("device", DEVICES)
def test_exact_sums(device: str) -> None:
    """Loops that are built anew with the constants of others."""
    left, right = flow(device, Rusanov(Gas())), flow(device, Rusanov(Gas()))
    for loops in (left.loops, right.loops):
        loops[0].set(flux=Rusanov(Gas(1.3)))
        loops[3].set(limit=Bounded(1.05))
    for step in with_exact_sums(left.loops):
        step()
    for loop in right.loops:
        loop()
    assert left.w.read().tobytes() == right.w.read().tobytes()
    assert left.total.value == pytest.approx(right.total.value, rel=1e-13)


# ------------------------------------------------------------------------------------------------ ranks


@fl.kernel
def between(
    u: Read, force: Read | None, out: Write, total: Inc | None, *, flux: Const[Flux], parts: Const[tuple[Func, ...]]
):
    f = fl.zeros(3)
    g = fl.zeros(3)
    flux(u[1], u[0], f)
    flux(u[0], u[2], g)
    for k in range(len(parts)):
        parts[k](f, f)
    for k in range(3):
        out[k] = u[0][k] + 0.1 * (f[k] - g[k])
        if force is not None:
            out[k] += force[k]
    if total is not None:
        total[0] += out[0]


def distributed(comm: Comm, device: str, cut: tuple[int, int], chained: bool) -> tuple[Any, np.ndarray, float]:
    ctx = fl.Context(device, comm=comm, threads=1, tuning=False, schedule=EXACT)
    grid = ctx.grid((12, 10), periodic=True, cut=cut)
    s = ctx.stencil(grid, [(0, 0), (0, -1), (1, 0)])
    rng = np.random.default_rng(6)
    values = np.array([1.0, 0.3, 2.5]) + 0.2 * rng.random((12, 10, 3))
    u, v, force = (ctx.dat(grid, grid.local(values * x, (3,))) for x in (1.0, 0.0, 0.01))
    total = ctx.scalar(0.0)
    constants: dict[str, Any] = {"flux": Rusanov(Gas()), "parts": (Wall(), Wall())}
    loops = [Loop(between, grid, u[s], force, v, None, **constants),
             Loop(between, grid, v[s], None, u, total, **constants)]  # fmt: skip
    call = Chain(loops) if chained else lambda: [loop() for loop in loops]
    for k in range(3):
        loops[0].set(flux=Rusanov(Gas(1.2 + 0.1 * k)))
        call()
    return grid.window, u.read(), float(total.value)


@pytest.mark.parametrize(("device", "chained"), everywhere([True, False], [True], keep_items=0))
def test_ranks(device: str, chained: bool) -> None:
    ((_, want, count),) = run_threads(1, lambda comm: distributed(comm, device, (1, 1), False))
    for window, got, total in run_threads(4, lambda comm: distributed(comm, device, (2, 2), chained)):
        np.testing.assert_array_equal(got, want[window])
        assert total == pytest.approx(count, rel=1e-12)


@pytest.mark.parametrize("what", ["field", "class", "at the call", "left out"])
def test_ranks_that_differ_are_told(what: str) -> None:
    """Accounts of what ranks run name fields of records; another class is another kernel."""

    def one(comm: Comm) -> str:
        ctx = fl.Context("cpu", comm=comm, threads=1, tuning=False)
        grid = ctx.grid((12, 10), periodic=True, cut=(1, 2))
        s = ctx.stencil(grid, [(0, 0), (0, -1), (1, 0)])
        u, v = ctx.dat(grid, shape=(3,)), ctx.dat(grid, shape=(3,))
        other = comm.rank == 1
        flux = Damped(Gas()) if other and what == "class" else Rusanov(Gas(1.3 if other and what == "field" else 1.4))
        force = u if other and what == "left out" else None
        loop = Loop(between, grid, u[s], force, v, None, flux=flux, parts=(Wall(),))
        if what == "at the call":
            loop.set(flux=replace(flux, gas=Gas(1.5 if other else 1.6)))
        try:
            loop()
            loop()
        except FluxloomError as error:
            return str(error)
        return ""

    found = run_threads(2, one)
    assert all(found)
    assert found[0] == found[1]


# ---------------------------------------------------------------------------------------- what is refused


def test_what_may_change() -> None:
    (loop, _), _ = edges(fl.Context("reference"), flux="derived")
    before = dict(loop.constants)
    refused = [
        ({"flux": Rusanov(Gas())}, "flux is a Damped there, not a Rusanov: that is part of the code"),
        ({"flux": Damped(Gas(), order=3)}, "flux.order is 2 there, not 3"),
        ({"flux": Damped(Gas(), limit=0.5)}, "flux.limit is 0.75 there, not 0.5"),
        ({"flux": Damped(Gas(), weights=(0.5, 0.25))}, "flux.weights has 3 entries there, not 2"),
        ({"flux": Damped(Gas(), weights=(0.5, 0.25, 0.5))}, r"flux.weights\[2\] is 0.125 there, not 0.5"),
        ({"flux": Damped(Gas(), name="other")}, "flux.name is 'damped' there, not 'other'"),
        ({"flux": Damped(Gas("air"))}, "the field flux.gas.gamma is float but holds 'air'"),  # type: ignore[arg-type]
        ({"flux": Damped}, "is the class Damped, not one of its instances"),
        ({"flux": 1.0}, "no @func and no record"),
        ({"flux_scale": 1.0}, "'flux_scale' is a field of 'flux': give that whole, flux=..."),
        ({"fluxx": Damped(Gas())}, "'fluxx' is not a run-time constant; did you mean 'flux'"),
        ({"area": 2.0, "flux": Rusanov(Gas())}, "that is part of the code"),
    ]  # fmt: skip
    for constants, message in refused:
        for act in (loop.set, loop):
            with pytest.raises(LoopError, match=message):
                act(**constants)
    assert loop.constants == before


def test_loops_with_other_strategies_are_tuned_apart() -> None:
    """What was found for a loop is tried for others of its kernel alone whose code is the same."""
    loops = [edges(context("cpu"), flux=flux)[0] for flux in ("record", "derived")]
    cheap, dear = loops[0][0], loops[1][0]
    again = Loop(through_edges, cheap.over, *cheap.bound.arguments, flux=Rusanov(Gas(1.1)))
    other = Loop(through_edges, cheap.over, *cheap.bound.arguments, flux=Damped(Gas(1.1)))
    assert family(cheap) == family(again) != family(other)
    assert other.tuning_key == dear.tuning_key != cheap.tuning_key


def test_entries_of_a_tuple_change_by_themselves() -> None:
    (loop,), outputs = boundaries(fl.Context("reference"), conditions="same")
    assert loop.constants == {"conditions_0_value": 0.5, "conditions_1_value": 1.5}
    loop(conditions=(Inflow(2.5), Inflow(3.5)))
    assert set(np.unique(outputs["out"].read()[:, 1])) == {0.0, 2.5, 3.5}
    with pytest.raises(LoopError, match=r"conditions\[1\] is a Inflow there, not a Wall"):
        loop.set(conditions=(Inflow(1.0), Wall()))
    with pytest.raises(LoopError, match="conditions has 2 entries there, not 1"):
        loop.set(conditions=(Inflow(1.0),))


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_left_out_is_not_compiled(device: str) -> None:
    ctx = context(device)
    (whole,), _ = optional(ctx)
    (less,), _ = optional(ctx, given="nothing")
    assert len(less.source) < len(whole.source)
    assert [p.name for p in less.bound.kernel.parameters] == ["w", "out"]
    cells, w = less.over, less.bound.arguments[0]
    with pytest.raises(LoopError, match=r"argument 'w' is None; the kernel would have to annotate it Read \| None"):
        Loop(less.bound.kernel, cells, None, w, push=None)


def test_a_text_stays_refused_once_a_number_was_taken() -> None:
    """Code is found again by its text; the number that it runs with is looked at each time."""
    ctx = context("cpu", threads=1)
    cells = ctx.set(4, "cells")
    w, res = ctx.dat(cells, shape=(3,)), ctx.dat(cells, shape=(3,))
    for most in (2.0, "2.0", "many", None):
        build = lambda most=most: Loop(advance, cells, w, res, None, None, dt=0.1, limit=Bounded(most))  # noqa: E731
        if isinstance(most, float):
            build()()
        else:
            with pytest.raises(FluxloomError, match="most is float but holds"):
                build()
