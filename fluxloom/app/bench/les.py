"""The benchmark of large-eddy simulation: the fused step, the step of three kernels, and the model of its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil, pi, prod
from statistics import median
from typing import Any

import numpy as np

from fluxloom.app.bench.base import BenchOptions, Record, Tell
from fluxloom.app.bench.boxes import usual_side
from fluxloom.app.bench.energy import joules_of
from fluxloom.app.bench.lbm import box_from_text
from fluxloom.app.bench.les_kernels import Kernels, measure_kernels, step_flops
from fluxloom.app.bench.les_products import product_record
from fluxloom.app.bench.rounds import slowest
from fluxloom.app.crew import crew_of
from fluxloom.core.errors import CaseError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.fv.box_volumes import periodic_box_volumes
from fluxloom.fv.eddy_viscosity import Wale
from fluxloom.linalg.status import Stop
from fluxloom.perf.les_model import gflops_per_joule, kernel_bounds, predict, total
from fluxloom.perf.model import Roofline
from fluxloom.solvers.algebraic_step import ITERATION, START, AlgebraicStep
from fluxloom.solvers.incompressible import Incompressible

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
    extras = ("ranks", "slices", "weak")

    def run(self, options: BenchOptions, tell: Tell) -> Record:
        """Measure."""
        if options.weak and options.cells:
            raise CaseError("--cells is the box of a step, --weak the rows a rank of a product alone: give one of them")
        if options.weak:
            return product_record(options, tell)
        context = options.context()
        shape = box_from_text(options.cells, usual_side(context, SIDE_PYTHON, SIDE_CPU, SIDE_GPU))
        if len(shape) != 3 or min(shape) < 3 or prod(shape) * 12 >= 2**31:
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
        copy = float(context.comm.reduce(np.array([median(copies)]), "sum")[0])
        metrics = {
            "shape": list(reversed(shape)), "threads": context.threads, "pressure_iterations": step.solver.made,
            "fused_ms": 1e3 * median(fused), "algebraic_ms": 1e3 * median(mine), "algebraic_ms_best": 1e3 * min(mine),
            "algebraic_over_fused": median(mine) / median(fused), "difference": difference,
            "ns_per_cell": 1e9 * median(mine) / prod(shape),
        }  # fmt: skip
        metrics |= _energy(context, flow, step, (median(fused), median(mine)))
        metrics |= _predicted(kernels, min(mine), step, copy)
        crew = crew_of(context)
        return Record(
            case="les", model="incompressible, WALE, Taylor-Green", device=crew.device, device_name=crew.device_name,
            precision="float64", sizes={"cells": prod(shape)}, copy_gbs=copy, seconds=median(mine), metrics=metrics,
            loops=(), command=options.command, gpus=crew.gpus, ranks=context.comm.size,
        )  # fmt: skip


def _built(context: Context, shape: tuple[int, ...], iterations: int) -> tuple[Incompressible, AlgebraicStep]:
    """Return both solvers at the start; cells are cubes, and the vortices repeat along longer sides."""
    side = 2.0 * pi / min(shape)
    nz, ny, nx = shape
    volumes = periodic_box_volumes((nz, ny, nx), (nx * side, ny * side, nz * side), context.comm)
    stop = Stop(rtol=1e-30, iterations=iterations)
    flow = Incompressible(context, volumes, VISCOSITY, stop=stop, model=Wale())
    flow.initialise(_vortices)
    return flow, AlgebraicStep(flow)


def _vortices(places: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    x, y, z = places.T
    return np.stack([np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z), 0.0 * x], axis=1)


def _rounds(
    context: Context, flow: Incompressible, step: AlgebraicStep, rounds: int, tell: Tell
) -> tuple[list[float], list[float], list[float]]:
    """Return the seconds of a step of both in each round, and the copy bandwidth around them."""
    dt = flow.stable_step()
    meter = meter_for(context.device, context.threads) if context.device.native else None

    def seconds(advance: Callable[[float], object], steps: int) -> float:
        context.synchronize()
        context.comm.barrier()
        start = time.perf_counter()
        for _ in range(steps):
            advance(dt)
        context.synchronize()
        return slowest(context.comm, time.perf_counter() - start) / steps

    for advance in (flow.step, step.step):
        seconds(advance, STEPS)
    each = min(seconds(flow.step, STEPS), seconds(step.step, STEPS))
    steps = max(STEPS, min(MOST_STEPS, ceil(ROUND_SECONDS / each)))
    fused, mine, copies = [], [], [meter.measure().copy_gbs if meter else 0.0]
    for number in range(1, rounds + 1):
        fused.append(seconds(flow.step, steps))
        mine.append(seconds(step.step, steps))
        copies.append(meter.measure().copy_gbs if meter else 0.0)
        tell(f"round {number}/{rounds}: fused {1e3 * fused[-1]:.4g} ms, three kernels {1e3 * mine[-1]:.4g} ms, "
             f"copy {copies[-1]:.1f} GB/s")  # fmt: skip
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


def _predicted(kernels: Kernels, measured: float, step: AlgebraicStep, copy: float) -> dict[str, Any]:
    """Return what the models say, beside what was measured: the best rounds of the kernels and of the step."""
    count = step.solver.made
    simple, parts = predict(kernels.times, count), kernels.parts
    each = total(parts)
    exposed = each + kernels.exchanges
    shares = {kind: total(parts, kind) / each for kind in ("spmv", "axpy", "dot", "extra")}
    runs = {part.name: part.calls for part in step.plan} | {
        START: step.solver.starting,
        ITERATION: step.solver.iterating,
    }
    matrix = step.matrices.poisson
    sizes = step.context.comm.reduce(np.array([matrix.rows.size, matrix.entries], dtype=np.float64), "sum")
    bound = predict(kernel_bounds(Roofline(copy), int(sizes[0]), int(sizes[1])), count) if copy else None
    moved = sum(part.calls * part.nbytes for part in parts)
    return {
        "spmv_us": 1e6 * kernels.times.spmv, "axpy_us": 1e6 * kernels.times.axpy, "dot_us": 1e6 * kernels.times.dot,
        "predicted_ms": 1e3 * simple, "predicted_error_percent": 100.0 * (simple / measured - 1.0),
        "predicted_each_ms": 1e3 * exposed, "predicted_each_error_percent": 100.0 * (exposed / measured - 1.0),
        "bound_ms": 1e3 * bound if bound is not None else None,
        "percent_of_copy": 100.0 * moved / measured / (1e9 * copy) if copy else None,
        "exchanges_ms": 1e3 * kernels.exchanges,
        **{f"share_{kind}": share for kind, share in shares.items()},
        "sub_steps": [
            {"sub_step": name, "spmv": c.spmv, "axpy": c.axpy, "dot": c.dot, "extra": c.extra}
            for name, c in runs.items()
        ],
        "kernels": [
            {"kernel": part.name, "kind": part.kind, "calls": part.calls, "us": 1e6 * part.seconds,
             "share": part.whole / each, "gbs": part.nbytes / part.seconds / 1e9 if part.seconds else None,
             "percent_of_copy": 100.0 * part.nbytes / part.seconds / (1e9 * copy) if part.seconds and copy else None}
            for part in parts
        ],
    }  # fmt: skip
