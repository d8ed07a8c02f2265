"""Loops over grids of which a work item handles several sites: the numbers of one site an item."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom import RW, Loop, Read, Write
from fluxloom.codegen.grids.sites import sites_of, why_one_site
from fluxloom.core.errors import PlanError
from fluxloom.dsl.plan.bind import Numbering, specialise
from fluxloom.lbm.lattices import D2Q9, D3Q19, Lattice
from tests.lattice_names import lattice_flow

from .harness import Values, compare, context, everywhere, expected, native

PAIRS = [(0, 1), (0, -1), (1, 1), (-1, -1), (1, 0), (-1, 0), (2, -2), (-2, 2)]
FAR = [(0, 0), (0, -2), (0, 1), (-1, 2), (1, 0), (2, -1), (-1, -1), (1, 1)]


def on_items(values: list[Any]) -> list[Any]:
    """Return parameters for devices of work items; of others an item has all sites of a row anyway."""
    return everywhere([], values, keep_items=2)


@fl.kernel
def spread(f: Read, held: RW, out: Write, *, h: float):
    """Every leg of two components, values kept and values replaced."""
    total = 0.0
    for k in range(8):
        total += (k + 1) * f[k][0] - h * f[k][1]
    for c in range(8):
        out[c] = held[c] + f[c][1] + h * total
        held[c] = 0.5 * held[c] + f[c][0]


@fl.kernel
def turn(f: RW):
    """What lies ahead changes places with what lies behind."""
    f[0][0], f[1][1] = 0.5 * f[1][1], 2.0 * f[0][0]
    f[2][2], f[3][3] = 0.5 * f[3][3], 2.0 * f[2][2]
    f[4][4], f[5][5] = 0.5 * f[5][5], 2.0 * f[4][4]
    f[6][6], f[7][7] = 0.5 * f[7][7], 2.0 * f[6][6]


def spreading(
    ctx: fl.Context, shape: tuple[int, ...] = (5, 12), dtype: str = "float64", sites: int = 0, ghost: Any = 0,
    periodic: Any = True,
) -> Any:  # fmt: skip
    rng = np.random.default_rng(2)
    grid = ctx.grid(shape, periodic=periodic, ghost=ghost)
    f = ctx.dat(grid, rng.random((*shape, 2)), dtype=dtype, layout=fl.SoA())
    held = ctx.dat(grid, rng.random((*shape, 8)), dtype=dtype, layout=fl.SoA())
    out = ctx.dat(grid, shape=(8,), dtype=dtype, layout=fl.SoA())
    schedule = fl.Schedule(sites=sites)
    loops = [Loop(spread, grid, f[ctx.stencil(grid, FAR)], held, out, h=0.3, schedule=schedule)]
    if ghost == 0 and periodic is True:
        loops.append(Loop(turn, grid, out[ctx.stencil(grid, PAIRS)], schedule=schedule))
    return loops, {"held": held, "out": out}


FORMS = [
    ("float32", 2, (5, 12)), ("float16", 4, (5, 12)), ("float64", 2, (6, 4)), ("float32", 4, (3, 4)),
    ("float64", 4, (5, 20)), ("float16", 2, (6, 2)), ("float32", 2, (2, 34)),
]  # fmt: skip


@pytest.mark.parametrize(("device", "dtype", "sites", "shape"), on_items(FORMS))
def test_several_sites(device: str, dtype: str, sites: int, shape: tuple[int, ...]) -> None:
    """Stencils that lead along rows, round their ends, and both; reads, writes, and values that change places."""
    got = native(spreading, device, shape=shape, dtype=dtype, sites=sites)
    compare(got, expected(spreading, shape=shape, dtype=dtype), dtype)


@pytest.mark.parametrize(
    ("device", "ghost", "periodic"),
    on_items([((2, 0), (False, True)), ((3, 0), (True, True))]),
)
def test_layers_along_other_axes(device: str, ghost: Any, periodic: Any) -> None:
    options = {"shape": (7, 8), "ghost": ghost, "periodic": periodic, "dtype": "float32"}
    compare(native(spreading, device, sites=2, **options), expected(spreading, **options), "float32")


def asked(wanted: int, dtype: str = "float32", shape: tuple[int, ...] = (4, 8), **named: Any) -> tuple[int, str]:
    """Return the sites an item would handle, and why not more than one."""
    loops, _ = spreading(fl.Context("cpu", threads=1, tuning=False), shape, dtype, **named)
    spec = specialise(loops[0].bound, Numbering())
    return sites_of(spec, shape[-1], wanted), why_one_site(spec, shape[-1], wanted or 2)


def test_choices() -> None:
    """As many as fill eight bytes; what cannot be is one."""
    assert [asked(0, dtype)[0] for dtype in ("float64", "float32", "float16")] == [1, 2, 2]  # 26 numbers at a time
    assert asked(4) == (4, "")
    assert asked(2, shape=(4, 9)) == (1, "rows of 9 are no multiple of 2")
    assert asked(2, ghost=2) == (1, "rows have layers around them")
    assert asked(0, shape=(4, 9))[0] == 1
    with pytest.raises(fl.FluxloomError, match="sites=3: an item handles 1, 2 or 4 sites"):
        fl.Schedule(sites=3)


def stepped(
    ctx: fl.Context, lattice: Lattice, shape: tuple[int, ...], streaming: str, dtype: str, sites: int
) -> Values:
    """Return what three steps leave, from a start that differs from cell to cell."""
    rng = np.random.default_rng(3)
    flow = lattice_flow(
        ctx, shape, viscosity=0.03, lattice=lattice, dtype=dtype, streaming=streaming, schedule=fl.Schedule(sites=sites)
    )
    flow.initialise(1 + 0.02 * rng.random(shape), 0.05 * rng.standard_normal((*shape, len(shape))))
    flow.step(3)
    if ctx.device.items:
        assert {loop.schedule.sites for loop in flow.loops if not loop.name.startswith("totals")} == {sites}
    return {"density": flow.density(), "velocity": flow.velocity()}


@pytest.mark.opencl
def test_what_cannot_be_is_said() -> None:
    """To a loop that was asked itself; a wish of the context is for those that can."""
    own = {"shape": (5, 9), "dtype": "float32"}
    with pytest.raises(PlanError, match="spread: 2 sites an item are not possible: rows of 9 are no multiple of 2"):
        spreading(context("opencl"), sites=2, **own)
    ctx = context("opencl", schedule=fl.Schedule(sites=2))
    loops, _ = spreading(ctx, **own)
    assert [loop.schedule.sites for loop in loops] == [1, 1]


@functools.cache
def on_a_processor(lattice: Lattice, shape: tuple[int, ...], streaming: str, dtype: str) -> Values:
    return stepped(fl.Context("cpu", threads=1, tuning=False), lattice, shape, streaming, dtype, 0)


FLOWS = [
    (D2Q9, (5, 12), "in-place", "float32", 2), (D2Q9, (5, 12), "pull", "float16", 4),
    (D2Q9, (5, 12), "push", "float32", 4), (D2Q9, (4, 8), "three-phase", "float64", 2),
    (D3Q19, (3, 5, 8), "in-place", "float16", 4), (D3Q19, (3, 5, 8), "in-place", "float64", 2),
    (D3Q19, (3, 4, 4), "pull", "float32", 2), (D3Q19, (2, 3, 4), "push", "float16", 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "lattice", "shape", "streaming", "dtype", "sites"), on_items(FLOWS)
)
def test_lattices(
    device: str, lattice: Lattice, shape: tuple[int, ...], streaming: str, dtype: str, sites: int
) -> None:
    """Steps of lattice Boltzmann, which move many numbers to and from all neighbours."""
    got = stepped(context(device, dtype=dtype), lattice, shape, streaming, dtype, sites)
    compare(got, on_a_processor(lattice, shape, streaming, dtype), dtype)
