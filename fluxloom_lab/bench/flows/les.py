"""The benchmark of large-eddy simulation: the fused step, the step of three kernels, and the model of its time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, pi, prod
from statistics import median
from typing import Any

import numpy as np

from fluxloom.core.errors import CaseError
from fluxloom.device.bandwidth import Bandwidth, best_roof, meter_for, meter_of_size
from fluxloom.dsl.context import Context
from fluxloom.fv.incompressible.eddy_viscosity import Wale
from fluxloom.linalg.status import Stop
from fluxloom.machine.ranks import rank_devices_of
from fluxloom.perf.model import Roofline
from fluxloom.solvers.algebraic.step import ITERATION, START, AlgebraicStep
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom_lab.bench.base import Record, Tell, box_from_text
from fluxloom_lab.bench.energy import joules_of
from fluxloom_lab.bench.flows.les_kernels import Kernels, measure_kernels, solver_bytes, step_flops
from fluxloom_lab.bench.flows.les_model import Part, gflops_per_joule, kernel_bounds, mean_times, predict, total
from fluxloom_lab.bench.flows.les_products import LesOptions, product_record
from fluxloom_lab.bench.rounds import stopwatch, summed
from fluxloom_lab.exact.taylor_green import space_vortices
from fluxloom_lab.problems.box_volumes import periodic_box_volumes
from fluxloom_lab.problems.boxes import usual_side

__all__ = ["LesBench"]

ITERATIONS, ROUNDS, STEPS, MOST_STEPS = 40, 5, 2, 100
ROUND_SECONDS = 0.2
SIDE_PYTHON, SIDE_CPU, SIDE_GPU = 4, 48, 128
VISCOSITY = 1.0 / 1600.0
ENERGY_SECONDS = 2.0
_MULTIPLE = 8
"""Iterations of the pressure solver come in eights on GPUs."""


class LesBench:
    """Steps of Taylor and Green's vortex at Re = 1600 with WALE and a fixed number of pressure iterations.

    Rounds of the fused step and of the step of three kernels in turn, each between two measurements of the memory, one
    half of them before and one after those of every kernel alone; the models are compared with the best round. With
    ``--weak`` the product with the Laplacian of so many rows a rank instead, with and without overlapping its exchange.
    """

    title = "Large-eddy simulation: the fused step, the step of SpMV, AXPY and DOT, and its predicted time"
    options = LesOptions

    def run(self, options: LesOptions, tell: Tell) -> Record:
        """Measure."""
        if options.weak and options.cells:
            raise CaseError("--cells is the box of a step, --weak the rows a rank of a product alone: give one of them")
        if options.weak:
            return product_record(options, tell)
        context = options.context()
        shape = box_from_text(options.cells, usual_side(context, SIDE_PYTHON, SIDE_CPU, SIDE_GPU))
        if min(shape) < 3 or prod(shape) * 12 >= 2**31:
            raise CaseError(
                f"--cells {options.cells!r}: a box of 3 cells a side or more, and fewer than 178M, is wanted"
            )
        tell(f"building {' x '.join(str(n) for n in reversed(shape))} cells on {context!r}")
        start = time.perf_counter()
        count = _MULTIPLE * ceil((options.iterations or ITERATIONS) / _MULTIPLE)
        flow, step = _built(context, shape, count)
        tell(f"set-up {time.perf_counter() - start:.1f} s; {count} pressure iterations a step")
        rounds = options.rounds or ROUNDS
        fused, mine, copies = _rounds(context, flow, step, ceil(rounds / 2), tell)
        difference = _difference(flow, step)
        tell("each kernel alone")
        kernels = measure_kernels(step)
        for known, more in zip(
            (fused, mine, copies), _rounds(context, flow, step, ceil(rounds / 2), tell), strict=True
        ):
            known += more
        memory = _memory(context, step, copies)
        metrics = {
            "shape": list(reversed(shape)), "threads": context.threads, "pressure_iterations": step.solver.made,
            "fused_ms": 1e3 * median(fused), "algebraic_ms": 1e3 * median(mine), "algebraic_ms_best": 1e3 * min(mine),
            "algebraic_over_fused": median(mine) / median(fused), "difference": difference,
            "ns_per_cell": 1e9 * median(mine) / prod(shape),
        }  # fmt: skip
        metrics |= _energy(context, flow, step, (median(fused), median(mine)))
        metrics |= _predicted(kernels, min(mine), step, memory)
        crew = rank_devices_of(context)
        return Record(
            case="les", model="incompressible, WALE, Taylor-Green", **crew.place,
            precision="float64", sizes={"cells": prod(shape)}, copy_gbs=memory.copy_gbs, seconds=median(mine),
            metrics=metrics, loops=(), command=options.command,
        )  # fmt: skip


def _built(context: Context, shape: tuple[int, ...], iterations: int) -> tuple[Incompressible, AlgebraicStep]:
    """Return both solvers at the start; cells are cubes, and the vortices repeat along longer sides."""
    side = 2.0 * pi / min(shape)
    nz, ny, nx = shape
    volumes = periodic_box_volumes((nz, ny, nx), (nx * side, ny * side, nz * side), context.comm)
    stop = Stop(rtol=1e-30, iterations=iterations)
    flow = Incompressible(context, volumes, VISCOSITY, stop=stop, model=Wale())
    flow.initialise(space_vortices)
    return flow, AlgebraicStep(flow)


def _rounds(
    context: Context, flow: Incompressible, step: AlgebraicStep, rounds: int, tell: Tell
) -> tuple[list[float], list[float], list[Bandwidth]]:
    """Return the seconds of a step of both in each round, and the memory around them."""
    dt = flow.stable_step()
    meter = meter_for(context.device, context.threads) if context.device.native else None

    watch, advances = stopwatch(context), [lambda: flow.step(dt), lambda: step.step(dt)]
    for advance in advances:
        watch.timed(advance, STEPS)
    each = min(watch.timed(advance, STEPS) / STEPS for advance in advances)
    steps = max(STEPS, min(MOST_STEPS, ceil(ROUND_SECONDS / each)))
    fused, mine, copies = [], [], [meter.measure()] if meter else []
    for number in range(1, rounds + 1):
        for found, advance in zip((fused, mine), advances, strict=True):
            found.append(watch.timed(advance, steps) / steps)
        copies += [meter.measure()] if meter else []
        beside = f", copy {copies[-1].copy_gbs:.1f} GB/s" if copies else ""
        tell(f"round {number}/{rounds}: fused {1e3 * fused[-1]:.4g} ms, three kernels {1e3 * mine[-1]:.4g} ms{beside}")
    return fused, mine, copies


def _difference(flow: Incompressible, step: AlgebraicStep) -> float:
    """Return the largest difference of the velocities of both solvers after as many steps. Collective."""
    here = np.abs(flow.velocity() - step.velocity()).max(initial=0.0)
    return float(flow.context.comm.reduce(np.array([here]), "max")[0])


def _energy(
    context: Context, flow: Incompressible, step: AlgebraicStep, seconds: tuple[float, float]
) -> dict[str, Any]:
    """Return joules of a step of both, where the machine tells. Collective."""
    found: dict[str, Any] = {}
    flops = step_flops(step)
    for name, advance, each in (("fused", flow.step, seconds[0]), ("algebraic", step.step, seconds[1])):
        count = max(STEPS, ceil(ENERGY_SECONDS / each))
        used = joules_of(context, lambda advance=advance, count=count: [advance(flow.dt) for _ in range(count)])
        if isinstance(used, str):
            return {"energy": f"not reported ({used})", "gflop_per_step": 1e-9 * flops}
        found[f"{name}_joules_per_step"] = used / count
        found[f"{name}_gflop_per_joule"] = gflops_per_joule(flops, used / count) if used > 0 else None
    return found | {"gflop_per_step": 1e-9 * flops}


@dataclass(frozen=True)
class _Memory:
    """What the memories of all ranks together allow; 0 and None where loops run as Python.

    Attributes
    ----------
    copy_gbs
        The median copy.
    roof
        The best that was measured of each kind.
    solver
        The same with data as large as those of the pressure solver, which caches may hold; None where the device has a
        memory of its own, or there are several ranks.
    """

    copy_gbs: float = 0.0
    roof: Roofline | None = None
    solver: Roofline | None = None


def _memory(context: Context, step: AlgebraicStep, found: Sequence[Bandwidth]) -> _Memory:
    """Return the memory from what its meters say. Collective."""
    if not found:
        return _Memory()
    copy = summed(context.comm, median(item.copy_gbs for item in found))
    meter = None if context.distributed else meter_of_size(context.device, context.threads, solver_bytes(step))
    return _Memory(copy, _roof(context, found), _roof(context, [meter.measure()]) if meter else None)


def _roof(context: Context, found: Sequence[Bandwidth]) -> Roofline:
    """Return the ceilings of all ranks together. Collective."""
    best = best_roof(found)
    here = np.array([best.copy_gbs, best.moving_gbs, best.reading_gbs])
    copy, moving, reading = (float(value) for value in context.comm.reduce(here, "sum"))
    return Roofline(copy, read_gbs=reading, update_gbs=moving)


def _predicted(kernels: Kernels, measured: float, step: AlgebraicStep, memory: _Memory) -> dict[str, Any]:
    """Return what the models say, beside what was measured: the best rounds of the kernels and of the step."""
    copy, roof = memory.copy_gbs, memory.roof
    inside = {name: memory.solver for name in kernels.solving if memory.solver}
    count, parts = step.solver.made, kernels.parts
    each, mean = total(parts), mean_times(parts)
    matrix = step.matrices.poisson
    sizes = step.context.comm.reduce(np.array([matrix.rows.size, matrix.entries], dtype=np.float64), "sum")
    moved = sum(part.calls * part.nbytes for part in parts)
    models = {
        "predicted": predict(kernels.times, count), "predicted_alone": predict(kernels.alone, count),
        "predicted_mean": predict(mean, count, total(parts, "extra")),
        "predicted_each": each + kernels.exchanges,
    }  # fmt: skip
    found: dict[str, Any] = {}
    for mark, times in (("", kernels.times), ("alone_", kernels.alone), ("mean_", mean)):
        found |= {f"{mark}{name}_us": 1e6 * getattr(times, name) for name in ("spmv", "axpy", "dot")}
    for name, seconds in models.items():
        found |= {f"{name}_ms": 1e3 * seconds, f"{name}_error_percent": 100.0 * (seconds / measured - 1.0)}
    return found | {
        "kernels_timed": "in the rotation of a step" if kernels.rotated else "alone",
        "bound_ms": 1e3 * predict(kernel_bounds(roof, int(sizes[0]), int(sizes[1])), count) if roof else None,
        "percent_of_copy": 100.0 * moved / measured / (1e9 * copy) if copy else None,
        **_ceilings("memory", roof), **_ceilings("solver", memory.solver),
        "exchanges_ms": 1e3 * kernels.exchanges,
        **{f"share_{kind}": total(parts, kind) / each for kind in ("spmv", "axpy", "dot", "extra")},
        "sub_steps": _sub_steps(step),
        "kernels": [_row(part, each, copy, inside.get(part.name, roof)) for part in parts],
    }  # fmt: skip


def _sub_steps(step: AlgebraicStep) -> list[dict[str, Any]]:
    """Return what each sub-step runs."""
    runs = {part.name: part.calls for part in step.plan}
    runs |= {START: step.solver.starting, ITERATION: step.solver.iterating}
    return [
        {"sub_step": name, "spmv": c.spmv, "axpy": c.axpy, "dot": c.dot, "extra": c.extra} for name, c in runs.items()
    ]


def _ceilings(of: str, roof: Roofline | None) -> dict[str, float | None]:
    """Return ceilings for the record."""
    names = ("copy_gbs", "update_gbs", "read_gbs")
    return {f"{of}_{name}": getattr(roof, name) if roof else None for name in names}


def _row(part: Part, whole: float, copy: float, roof: Roofline | None) -> dict[str, Any]:
    """Return what the record says of a kernel; ``roof`` has the ceilings of data as large as its."""
    timed = part.seconds > 0
    gbs = part.nbytes / part.seconds / 1e9 if timed else None
    return {
        "kernel": part.name, "kind": part.kind, "calls": part.calls, "us": 1e6 * part.seconds,
        "share": part.whole / whole, "gbs": gbs, "percent_of_copy": 100.0 * gbs / copy if gbs and copy else None,
        "percent_of_bound": roof.percent_of_roof(part.nbytes, 0.0, part.seconds, read=part.read)
        if timed and roof else None,
    }  # fmt: skip
