"""The loops of `fluxloom_lab.studies.face_loops`, each in every way in which it can run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fluxloom.core.errors import PlanError, did_you_mean
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.gas import Gas, Sutherland
from fluxloom_lab.studies import face_loops as kernels
from fluxloom_lab.studies.face_loops_form import KINDS, FaceLoops, Kind, Work

__all__ = ["standard_works", "work_of"]

_FIX = 0.05
"""Entropy fix of Roe's flux."""


def work_of(
    loops: FaceLoops, name: str, mode: str = "", *, split: bool = False, schedule: Schedule | None = None
) -> Work:
    """Return a loop of `KINDS` in one of its ways.

    Parameters
    ----------
    loops
        Where it takes its values from.
    name
        As ``"K1"``.
    mode
        Set that it runs over; the first one of its kind by default.
    split
        A launch a component, each on arrays of its own, made from what the loops before have left.
    schedule
        How it runs, with the strategy that resolves races.

    Raises
    ------
    PlanError
        If there is no such loop or way, or the strategy is not possible.
    """
    known = {kind.name: kind for kind in KINDS}
    if name not in known:
        raise PlanError(f"loop {name!r} is unknown{did_you_mean(name, known)} ({', '.join(known)})")
    kind = known[name]
    mode = mode or kind.modes[0]
    if mode not in kind.modes:
        hint = did_you_mean(mode, kind.modes)
        raise PlanError(f"{name}: it cannot run over {mode!r}{hint} (possible: {', '.join(kind.modes)})")
    if split and not kind.split:
        names = ", ".join(item.name for item in KINDS if item.split)
        raise PlanError(f"{name}: it has no components to split (possible: {names})")
    return _MAKERS[name](loops, _Way(kind, mode, split, schedule))


def standard_works(loops: FaceLoops, schedule: Schedule | None = None) -> list[Work]:
    """Return all loops as they are commonly written; where a strategy is not possible, with the automatic one."""
    found = []
    for kind in KINDS:
        work = work_of(loops, kind.name)
        races = work.loops[0].races
        if schedule is not None and (not schedule.strategy or schedule.strategy in races.allowed):
            work = work_of(loops, kind.name, schedule=schedule)
        found.append(work)
    return found


@dataclass(frozen=True)
class _Way:
    """How a loop is to be made."""

    kind: Kind
    mode: str
    split: bool
    schedule: Schedule | None

    def loop(self, kernel: Any, over: Set, *arguments: Any, **constants: Any) -> Loop:
        """Return a loop with its schedule."""
        return Loop(kernel, over, *arguments, schedule=self.schedule, name=kernel.name, **constants)

    def work(
        self, loops: Sequence[Loop], place: str, *results: Dat,
        first: Sequence[Loop] = (), cleared: Mapping[Dat, float] | None = None, flops: float | None = None,
    ) -> Work:  # fmt: skip
        """Return the work of some loops; unless it is told how many, operations are those of the kernels."""
        count = float(sum(loop.bound.lowered.flops * loop.over.size for loop in loops)) if flops is None else flops
        return Work(self.kind, self.mode, self.split, loops, [(place, dat) for dat in results], first, cleared, count)


def _to_nodes(f: FaceLoops, way: _Way) -> Work:
    """K2."""
    pairs = list(zip(f.columns(f.q), f.columns(f.node), strict=True)) if way.split else [(f.q, f.node)]
    loops, results, flops = [], [node for _, node in pairs], None
    for q, node in pairs:
        if way.mode == "faces":
            loops.append(way.loop(kernels.nodes_from_faces, f.faces, q[f.sides], f.weight[f.corners], f.counts,
                                  node[f.corners], nv=q.dim, legs=f.legs))  # fmt: skip
            continue
        rows, times = f.around_nodes if way.mode == "nodes" else f.around_elements
        entries, flops = times[rows.to_entries], 2.0 * f.m * rows.entries.size
        if way.mode == "nodes":
            loops.append(way.loop(kernels.nodes_from_nodes, f.nodes, q[rows], f.weight, entries, node, nv=q.dim))
        else:
            loops.append(way.loop(kernels.nodes_from_cells, f.elements, q, f.weight[rows], entries, node[rows],
                                  nv=q.dim))  # fmt: skip
    cleared = {} if way.mode == "nodes" else dict.fromkeys(results, 0.0)
    return way.work(loops, "nodes", *results, cleared=cleared, flops=flops)


def _gradients(f: FaceLoops, way: _Way) -> Work:
    """K1."""
    pairs = list(zip(f.columns(f.node), f.columns(f.slope, f.d), strict=True)) if way.split else [(f.node, f.slope)]
    loops = [
        way.loop(kernels.green_gauss, f.faces, node[f.corners], f.counts, f.area, f.inverse[f.sides], slope[f.sides],
                 nv=node.dim, d=f.d, legs=f.legs)
        for node, slope in pairs
    ]  # fmt: skip
    results = [slope for _, slope in pairs]
    return way.work(loops, "elements", *results, cleared=dict.fromkeys(results, 0.0))


def _extremes(f: FaceLoops, way: _Way) -> Work:
    """K8."""
    if way.mode == "cells":
        rows = f.neighbours
        loop = way.loop(kernels.extremes_from_cells, f.elements, f.q, f.q[rows], f.low, f.high, d=f.d)
        return way.work([loop], "elements", f.low, f.high, flops=2.0 * rows.entries.size)
    first = Loop(kernels.own_pressure, f.elements, f.q, f.low, f.high, d=f.d)
    loop = way.loop(kernels.extremes_from_faces, f.faces, f.q[f.sides], f.low[f.sides], f.high[f.sides], d=f.d)
    return way.work([loop], "elements", f.low, f.high, first=[first])


def _limiter(f: FaceLoops, way: _Way) -> Work:
    """K4."""
    s = f.sides
    loop = way.loop(kernels.limit_pressure, f.faces, f.q[s], f.slope[s], f.low[s], f.high[s], f.arms, f.share[s],
                    d=f.d, rough=f.rough)  # fmt: skip
    return way.work([loop], "elements", f.share, cleared={f.share: 1.0})


def _face_values(f: FaceLoops, way: _Way) -> Work:
    """K7."""
    loop = way.loop(kernels.face_values, f.faces, f.q[f.sides], *f.raw, nv=f.m)
    return way.work([loop], "faces", *f.raw)


def _reconstruction(f: FaceLoops, way: _Way) -> Work:
    """K5."""
    s = f.sides
    loop = way.loop(kernels.reconstruct, f.faces, f.q[s], f.slope[s], f.share[s], f.arms, *f.sharp, d=f.d)
    return way.work([loop], "faces", *f.sharp)


def _flux(f: FaceLoops, way: _Way) -> Work:
    loop = way.loop(
        kernels.face_flux, f.faces, *f.sharp, f.friction, f.area, f.flux, gamma=f.gas.gamma, fix=_FIX, d=f.d
    )
    return way.work([loop], "faces", f.flux)


def _friction(f: FaceLoops, way: _Way) -> Work:
    """K3."""
    s, gas = f.sides, f.gas
    capacity = gas.gamma * gas.constant / (gas.gamma - 1.0)
    loop = way.loop(
        kernels.face_friction, f.faces, *f.raw, f.slope[s], f.nut[s], f.area, f.arms, f.part, f.friction,
        capacity=capacity, prandtl=gas.prandtl, prandtl_turbulent=gas.prandtl_turbulent, **_law(gas), d=f.d,
    )  # fmt: skip
    return way.work([loop], "faces", f.friction)


def _law(gas: Gas) -> dict[str, float]:
    assert isinstance(gas.viscosity, Sutherland)
    return asdict(gas.viscosity)


def _sum(f: FaceLoops, way: _Way) -> Work:
    """K6."""
    pairs = list(zip(f.columns(f.flux), f.columns(f.res), strict=True)) if way.split else [(f.flux, f.res)]
    loops = [way.loop(kernels.sum_fluxes, f.faces, flux, res[f.sides], nv=flux.dim) for flux, res in pairs]
    results = [res for _, res in pairs]
    return way.work(loops, "elements", *results, cleared=dict.fromkeys(results, 0.0))


def _coefficients(f: FaceLoops, way: _Way) -> Work:
    """K9."""
    loop = way.loop(kernels.turbulence_coefficients, f.faces, *f.raw, f.nut[f.sides], f.flux, f.area, f.arms,
                    f.coefficient, f.diagonal[f.sides], d=f.d, **_law(f.gas))  # fmt: skip
    made = way.work([loop], "elements", f.diagonal, cleared={f.diagonal: 0.0})
    return replace(made, results=[*made.results, ("faces", f.coefficient)])


def _turbulence(f: FaceLoops, way: _Way) -> Work:
    """K10."""
    s = f.sides
    loop = way.loop(kernels.sum_turbulence, f.faces, f.coefficient, f.nut[s], f.turbulence[s])
    return way.work([loop], "elements", f.turbulence, cleared={f.turbulence: 0.0})


_MAKERS = {
    "K1": _gradients, "K2": _to_nodes, "K3": _friction, "K4": _limiter, "K5": _reconstruction, "K6": _sum,
    "K7": _face_values, "K8": _extremes, "K9": _coefficients, "K10": _turbulence, "flux": _flux,
}  # fmt: skip
