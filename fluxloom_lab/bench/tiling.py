"""The tiling benchmark: chains loop by loop, fused and in tiles of several sizes, on meshes far beyond the caches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.cli.runs.summary import loop_rows
from fluxloom.core.access import RW, Inc, Read, Write
from fluxloom.core.errors import CaseError
from fluxloom.device.bandwidth import Bandwidth, meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.tiles.owners import cache_bytes
from fluxloom.dsl.tiles.tiling import TiledChain
from fluxloom.kernel.frontend import kernel
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom_lab.bench.base import Record, Tell, cells_from_text, device_name
from fluxloom_lab.bench.options import BenchOptions, cells_option, iterations_option, rounds_option

__all__ = ["TilingBench", "collect", "relax", "sweep_cells"]

ROUNDS, SWEEPS = 5, 8

_SIZES = (0.25, 1.0, 4.0)
"""Tiles that are tried, in units of the number that the caches suggest."""

_PASSES = 3


@kernel
def collect(u: Read, s: Inc):
    """Sum over neighbours: ``s_i = sum_j u_j`` (4 components)."""
    for k in range(4):
        s[0][k] += u[1][k]
        s[1][k] += u[0][k]


@kernel
def relax(r: Read, degree: Read, s: RW, u: Write, *, eps: float):
    """One Jacobi sweep of implicit residual smoothing: ``u = (r + eps s) / (1 + eps degree)``."""
    w = 1.0 / (1.0 + eps * degree[0])
    for k in range(4):
        u[k] = w * (r[k] + eps * s[k])
        s[k] = 0.0


@kernel
def sweep_cells(r: Read, u: Read, v: Write, *, eps: float):
    """The same sweep over triangles with three neighbours: ``v = (r + eps sum_j u_j) / (1 + 3 eps)``."""
    for k in range(4):
        v[k] = (r[k] + eps * (u[0][k] + u[1][k] + u[2][k])) / (1.0 + 3.0 * eps)


@dataclass(frozen=True, eq=False)
class _Chain:
    """Steps to be measured, as often as the tiled forms run them in one call."""

    name: str
    elements: int
    steps: Sequence[Loop | Reset]
    transient: tuple[Dat, ...]
    at_once: tuple[int, ...]
    work: int
    """Iterations (sweeps) that the steps are."""


@dataclass(eq=False)
class _Form:
    """A chain in one of its forms."""

    name: str
    chain: Chain | TiledChain
    work: int
    seconds: list[float] = field(default_factory=list)

    def measure(self, calls: int) -> None:
        """Time some calls; the first ones are not counted, because another form has run since."""
        self.chain()
        self.chain()
        start = time.perf_counter()
        for _ in range(calls):
            self.chain()
        self.seconds.append((time.perf_counter() - start) / (calls * self.work))

    def record(self, elements: int) -> dict[str, Any]:
        """Return what is written of it; times are those of an iteration or sweep."""
        seconds = median(self.seconds)
        values: dict[str, Any] = {
            "ms": 1e3 * seconds, "ms_best": 1e3 * min(self.seconds), "ms_worst": 1e3 * max(self.seconds),
            "ns_per_element": 1e9 * seconds / elements,
        }  # fmt: skip
        if isinstance(self.chain, TiledChain):
            c = self.chain.counters
            moved = c.moved / self.work
            values |= {
                "tiles": c.tiles, "elements_a_tile": c.elements, "steps_at_once": self.chain.steps_at_once,
                "redundancy": c.redundancy, "scratch_kib": c.scratch_bytes / 2**10,
                "mb_in": c.bytes_in / 1e6 / self.work, "mb_out": c.bytes_out / 1e6 / self.work,
                "mb_tables": c.bytes_tables / 1e6 / self.work,
            }  # fmt: skip
        else:
            whole = self.chain.bytes_fused if self.chain.fused else self.chain.bytes_unfused
            moved = whole / self.work
        return values | {"mb_moved": moved / 1e6, "gbs": moved / seconds / 1e9}


@dataclass(frozen=True)
class TilingOptions(BenchOptions):
    """Options of the benchmark ``tiling``."""

    cells: str = cells_option("Size of the mesh: 720k, 2.88M or I,J.")
    iterations: int = iterations_option()
    rounds: int = rounds_option()


class TilingBench:
    """Rounds in which every form of a chain runs in turn, each between two measurements of the memory.

    Chains: an Airfoil iteration; eight Jacobi sweeps over the edges of a triangle mesh; eight over its triangles.
    """

    title = "tiling: Airfoil and smoothing, loop by loop, fused, and in tiles"
    options = TilingOptions

    def run(self, options: TilingOptions, tell: Tell) -> Record:
        """Measure.

        Raises
        ------
        CaseError
            If the device has no tiles.
        """
        i, j = cells_from_text(options.cells, "2.88m")
        context = options.context()
        if not context.device.native or context.device.items:
            raise CaseError(f"tiles are for CPUs; the device is {context.device.name}")
        caches = [cache_bytes(level) for level in (1, 2, 3)]
        tell(f"caches {', '.join(f'{b / 2**10:,.0f}' for b in caches)} KiB; {context!r}")
        metrics: dict[str, Any] = {f"cache_{k}_bytes": b for k, b in enumerate(caches, 1)}
        metrics |= {"threads": context.threads, "rounds": options.rounds or ROUNDS}
        copies: list[Bandwidth] = []
        rows: list[Any] = []
        seconds = 0.0
        for make in (_airfoil, _edges, _triangles):
            chain = make(context, i, j)
            forms = _forms(chain, tell)
            copies += _measure(context, forms, options, tell)
            metrics[chain.name] = _compared(chain, forms, tell)
            seconds += median(forms[1].seconds) * forms[1].work
            tiled = [form.chain for form in forms if isinstance(form.chain, TiledChain)]
            rows += [row for item in tiled for row in item.reports()[:1]]
        copy = median(c.copy_gbs for c in copies)
        return Record(
            case="tiling",
            model="chains",
            device=context.device.name,
            device_name=device_name(context),
            precision="float64",
            sizes={"cells": 3 * i * j},
            copy_gbs=copy,
            seconds=seconds,
            metrics=metrics,
            loops=loop_rows(rows, copy),
            command=options.command,
        )


def _forms(chain: _Chain, tell: Tell) -> list[_Form]:
    """Return the forms of a chain: loop by loop, fused, and in tiles."""
    name, work = chain.name, chain.work
    forms = [
        _Form("unfused", Chain(chain.steps, fuse=False, name=f"{name}_plain"), work),
        _Form("fused", Chain(chain.steps, transient=chain.transient, name=f"{name}_fused"), work),
    ]
    for at_once in chain.at_once:
        first = _tiled(chain, at_once, 0)
        tell(first.chain.describe())
        forms.append(first)
        assert isinstance(first.chain, TiledChain)
        for factor in _SIZES if at_once == chain.at_once[0] else ():
            if factor != 1.0:
                forms.append(_tiled(chain, at_once, max(1, round(first.chain.counters.tiles * factor))))
    return forms


def _tiled(chain: _Chain, at_once: int, tiles: int) -> _Form:
    tiled = TiledChain(chain.steps, transient=chain.transient, steps_at_once=at_once, tiles=tiles, name=chain.name)
    text = f"{at_once} at once, {tiled.counters.tiles} tiles"
    return _Form(text, tiled, chain.work * at_once)


def _measure(context: Context, forms: list[_Form], options: TilingOptions, tell: Tell) -> list[Bandwidth]:
    """Run the forms in turn, round after round."""
    meter = meter_for(context.device, context.threads)
    copies = [meter.measure(_PASSES)]
    least = max(form.work for form in forms)
    for number in range(1, (options.rounds or ROUNDS) + 1):
        for form in forms:
            form.measure(max(1, -(-(options.iterations or 2 * least) // form.work)))
        copies.append(meter.measure(_PASSES))
        told = ", ".join(f"{form.name} {1e3 * form.seconds[-1]:.4g}" for form in forms)
        tell(f"round {number}: ms {told}; copy {copies[-1].copy_gbs:.1f} GB/s")
    return copies


def _compared(chain: _Chain, forms: list[_Form], tell: Tell) -> dict[str, Any]:
    """Return the records of all forms, and the speed-up of tiles: the median of the ratios of each round."""
    fused = forms[1].seconds
    out: dict[str, Any] = {"elements": chain.elements, "forms": {}}
    for form in forms:
        record = form.record(chain.elements)
        record["speedup"] = median(a / b for a, b in zip(fused, form.seconds, strict=True))
        out["forms"][form.name] = record
    tiled = {name: r for name, r in out["forms"].items() if "tiles" in r}
    best = max(tiled, key=lambda name: tiled[name]["speedup"])
    out |= {"best": best, "speedup": tiled[best]["speedup"]}
    tell(f"{chain.name}: {best} is {out['speedup']:.3f} times as fast as the fused chain")
    return out


# ---------------------------------------------------------------------------------------- the chains


def _airfoil(context: Context, i: int, j: int) -> _Chain:
    flow = Airfoil(context, airfoil_mesh(i, j))
    return _Chain("airfoil", flow.cells.size, flow.chain.steps, flow.chain.transient, (1, 2), 1)


def triangles(nx: int, ny: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return a box of ``nx`` times ``ny`` nodes cut into triangles: edges -> nodes, and triangles -> neighbours.

    A triangle at the border is its own neighbour there. Edges ascend with their first node.
    """
    node = np.arange(nx * ny).reshape(ny, nx)
    pairs = ((node[:, :-1], node[:, 1:]), (node[:-1], node[1:]), (node[:-1, :-1], node[1:, 1:]))
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in pairs])
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    # Square (y, x) has the triangles 2 (y (nx - 1) + x), above its diagonal, and the next one, below it.
    upper = 2 * np.arange((nx - 1) * (ny - 1)).reshape(ny - 1, nx - 1)
    lower = upper + 1
    left, right, above, below = (own.copy() for own in (upper, lower, upper, lower))
    left[:, 1:], right[:, :-1] = lower[:, :-1], upper[:, 1:]
    above[:-1], below[1:] = lower[1:], upper[:-1]
    near = np.stack([np.stack([lower, left, above], -1), np.stack([upper, right, below], -1)], 2)
    return edges.astype(np.int32), near.reshape(-1, 3).astype(np.int32)


def _edges(context: Context, i: int, j: int) -> _Chain:
    """Return sweeps over the edges of a mesh with about ``3 i j`` nodes."""
    nx, ny = 2 * i, -(-3 * j // 2)
    table, _ = triangles(nx, ny)
    nodes, edges = context.set(nx * ny, "nodes"), context.set(len(table), "edges")
    ends = context.map(edges, nodes, table, "ends")
    r = context.dat(nodes, np.random.default_rng(0).random((nx * ny, 4)), "r")
    u, s = context.dat(nodes, r.read(), "u"), context.dat(nodes, shape=(4,), name="s")
    degree = context.dat(nodes, np.bincount(table.ravel(), minlength=nx * ny).astype(float), "degree")
    sweep = [Loop(collect, edges, u[ends], s[ends]), Loop(relax, nodes, r, degree, s, u, eps=0.5)]
    return _Chain("edges", nx * ny, sweep * SWEEPS, (s,), (1,), SWEEPS)


def _triangles(context: Context, i: int, j: int) -> _Chain:
    """Return sweeps over about ``3 i j`` triangles."""
    nx, ny = i + 1, -(-3 * j // 2) + 1
    _, table = triangles(nx, ny)
    cells = context.set(len(table), "triangles")
    near = context.map(cells, cells, table, "near")
    r = context.dat(cells, np.random.default_rng(0).random((len(table), 4)), "r")
    u, v = context.dat(cells, r.read(), "u"), context.dat(cells, shape=(4,), name="v")
    there, back = (Loop(sweep_cells, cells, r, a[near], b, eps=0.5) for a, b in ((u, v), (v, u)))
    return _Chain("triangles", len(table), [there, back] * (SWEEPS // 2), (v,), (1,), SWEEPS)
