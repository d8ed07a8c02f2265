"""The lattice Boltzmann benchmark: updates of a cell a second, beside the copy bandwidth."""

from __future__ import annotations

import time
from math import log, pi
from statistics import median
from typing import Any

import numpy as np

from fluxloom.app.bench.base import BenchOptions, Record, Tell, device_name
from fluxloom.app.summary import difference, loop_rows
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.device.bandwidth import Bandwidth, meter_for
from fluxloom.lbm.lattices import D3Q19
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["LbmBench", "box_from_text"]

STEPS, ROUNDS = 100, 5
VISCOSITY, SPEED = 0.02, 0.05
PRECISIONS = ("float64", "float32", "float16")
SIDES = {"cpu": 128, "reference": 8}
SIDE_ELSEWHERE = 512


class LbmBench:
    """Rounds of steps of a decaying shear wave in a periodic box, each between two measurements of the memory.

    The first round warms up (compilation is not timed). The decay over the other rounds gives
    ``viscosity_error``: how far the viscosity of the flow is from the one that was asked for.
    """

    title = "Lattice Boltzmann: D3Q19 BGK in a periodic box, one loop a step"

    def run(self, options: BenchOptions, tell: Tell) -> Record:
        """Measure."""
        shape = box_from_text(options.cells, SIDES.get(options.device, SIDE_ELSEWHERE))
        count, rounds = options.iterations or STEPS, options.rounds or ROUNDS
        context = options.context()
        tell(f"building {' x '.join(str(n) for n in reversed(shape))} cells on {context!r}")
        flow = LatticeBoltzmann(
            context, shape, viscosity=VISCOSITY, dtype=_precision(options.precision), schedule=options.schedule
        )
        shear_wave(flow)
        meter = meter_for(context.device, context.threads) if context.device.native else None
        flow.step(count)
        start_energy, before = flow.kinetic_energy(), flow.reports()
        tell(f"warm-up: {count} steps")
        times: list[float] = []
        copies = [meter.measure(3)] if meter else []
        for number in range(1, rounds + 1):
            start = time.perf_counter()
            flow.step(count)
            context.synchronize()
            times.append(time.perf_counter() - start)
            if meter:
                copies.append(meter.measure(3))
            beside = f", copy {copies[-1].copy_gbs:.1f} GB/s" if copies else ""
            tell(f"round {number}/{rounds}: {1e-6 * flow.cells * count / times[-1]:,.1f} MLUPS{beside}")
        reports = difference(flow.reports(), before)
        copy = median(item.copy_gbs for item in copies) if copies else 0.0
        return Record(
            case="lbm",
            model=f"{D3Q19.name} BGK pull",
            device=context.device.name,
            device_name=device_name(context),
            precision=flow.a.scalar.name,
            sizes={"cells": flow.cells},
            copy_gbs=copy,
            seconds=median(times),
            metrics=_metrics(flow, count, times, copies, _viscosity_error(flow, start_energy, count * rounds)),
            loops=loop_rows(reports, copy),
            command=options.command,
        )


def box_from_text(text: str, side: int) -> tuple[int, ...]:
    """Return the shape ``(nz, ny, nx)`` of a box.

    Parameters
    ----------
    text
        ``"N"`` for a cube, or ``"NX,NY,NZ"``; empty for a cube of ``side``.

    Raises
    ------
    CaseError
        For anything else.
    """
    parts = [part.strip() for part in (text or str(side)).split(",")]
    if len(parts) in (1, 3) and all(part.isdecimal() and int(part) > 0 for part in parts):
        sides = [int(part) for part in parts]
        return tuple(reversed(sides)) if len(sides) == 3 else (sides[0],) * 3
    raise CaseError(f"--cells {text!r} (allowed: N for a cube of N cells a side, or NX,NY,NZ)")


def shear_wave(flow: LatticeBoltzmann) -> None:
    """Start with velocity along the last axis that varies as a sine along the one before."""
    n = flow.grid.shape[-2]
    velocity = np.zeros((n, 1, flow.lattice.dimensions), dtype=np.float32)
    velocity[:, 0, -1] = SPEED * np.sin(2 * pi * np.arange(n) / n)
    flow.initialise(1.0, velocity)


def _precision(name: str) -> str:
    """Return a storage precision."""
    if name not in PRECISIONS:
        raise CaseError(f"--precision {name!r}{did_you_mean(name, PRECISIONS)} (allowed: {', '.join(PRECISIONS)})")
    return name


def _viscosity_error(flow: LatticeBoltzmann, energy: float, steps: int) -> float | None:
    """Return the relative error of the viscosity, from the decay ``exp(-2 nu k^2 t)`` of the energy since."""
    wave = 2 * pi / flow.grid.shape[-2]
    now = flow.kinetic_energy()
    if energy <= 0 or now <= 0:  # one cell across: there is no wave
        return None
    return log(energy / now) / (2 * wave * wave * steps) / flow.viscosity - 1


def _metrics(
    flow: LatticeBoltzmann, count: int, times: list[float], copies: list[Bandwidth], error: float | None
) -> dict[str, Any]:
    """Return everything about a step."""
    seconds = median(times) / count
    bytes_per_cell = 2 * flow.lattice.q * flow.a.scalar.size
    gbs = bytes_per_cell * flow.cells / seconds / 1e9
    copy = median(item.copy_gbs for item in copies) if copies else 0.0
    return {
        "mlups": flow.cells / seconds / 1e6,
        "mlups_best": flow.cells * count / min(times) / 1e6,
        "percent_of_copy": 100 * gbs / copy if copy else None,
        "bytes_per_cell": bytes_per_cell,
        "flops_per_cell": flow.forth.bound.lowered.flops,
        "ms_per_step": 1e3 * seconds,
        "ms_per_step_best": 1e3 * min(times) / count,
        "ms_per_step_worst": 1e3 * max(times) / count,
        "useful_gbs": gbs,
        "viscosity_error": error,
        "shape": list(flow.grid.shape),
        "steps": count,
        "rounds": len(times),
        "threads": flow.context.threads,
        "copy_plain_gbs": median(item.copy_plain_gbs for item in copies) if copies else None,
    }
