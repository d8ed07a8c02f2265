"""The lattice Boltzmann benchmark: updates of a cell a second, beside the copy bandwidth."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from fluxloom.app.bench.base import BenchOptions, Record, Tell, count_gpus, device_name
from fluxloom.app.bench.rounds import Rounds, measure_rounds
from fluxloom.app.summary import loop_rows
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.lbm.lattices import D3Q19
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["LbmBench", "box_from_text"]

STEPS, ROUNDS = 100, 5
VISCOSITY, SPEED = 0.02, 0.05
PRECISIONS = ("float64", "float32", "float16")
SIDE_PYTHON, SIDE_CPU = 8, 128
SIDES = {"float64": 400, "float32": 512, "float16": 512}
"""Cells along a side on a GPU: two buffers of at most 21 GB."""


class LbmBench:
    """Rounds of steps of a decaying shear wave in a periodic box, each between two measurements of the memory.

    The first round warms up (compilation is not timed). The decay over the other rounds gives
    ``viscosity_error``: how far the viscosity of the flow is from the one that was asked for.
    """

    title = "Lattice Boltzmann: D3Q19 BGK in a periodic box, one loop a step"
    extras = ("layout",)

    def run(self, options: BenchOptions, tell: Tell) -> Record:
        """Measure."""
        count, precision = options.iterations or STEPS, _precision(options.precision or "float32")
        context = options.context()
        shape = box_from_text(options.cells, _side(context, precision))
        tell(f"building {' x '.join(str(n) for n in reversed(shape))} cells on {context!r}")
        flow = LatticeBoltzmann(
            context, shape, viscosity=VISCOSITY, dtype=precision,
            layout=options.chosen_layout, schedule=options.schedule,
        )  # fmt: skip
        shear_wave(flow)
        flow.step(count)
        start_energy, start = flow.kinetic_energy(), flow.steps
        tell(f"warm-up: {count} steps")
        rounds = measure_rounds(
            context, flow.step, flow.reports, count, options.rounds or ROUNDS, tell,
            lambda seconds: f"{1e-6 * flow.cells * count / seconds:,.1f} MLUPS",
        )  # fmt: skip
        error = _viscosity_error(flow, start_energy, flow.steps - start)
        return Record(
            case="lbm",
            model=f"{D3Q19.name} BGK pull",
            device=context.device.name,
            device_name=device_name(context),
            precision=flow.a.scalar.name,
            sizes={"cells": flow.cells},
            copy_gbs=rounds.copy_gbs,
            seconds=rounds.seconds,
            metrics=_metrics(flow, count, rounds, error),
            loops=loop_rows(rounds.loops, rounds.copy_gbs),
            command=options.command,
            gpus=count_gpus(context),
        )


def _side(context: Context, precision: str) -> int:
    """Return the cells along a side of the default box."""
    if not context.device.native:
        return SIDE_PYTHON
    return SIDES[precision] if count_gpus(context) else SIDE_CPU


def box_from_text(text: str, side: int, plane: bool = False) -> tuple[int, ...]:
    """Return the shape ``(nz, ny, nx)`` of a box.

    Parameters
    ----------
    text
        ``"N"`` for a cube, or ``"NX,NY,NZ"``; empty for a cube of ``side``.
    plane
        Whether ``"NX,NY"`` is allowed too.

    Raises
    ------
    CaseError
        For anything else.
    """
    parts = [part.strip() for part in (text or str(side)).split(",")]
    if len(parts) in (1, 2 if plane else 3, 3) and all(part.isdecimal() and int(part) > 0 for part in parts):
        sides = [int(part) for part in parts]
        return tuple(reversed(sides)) if len(sides) > 1 else (sides[0],) * 3
    others = "NX,NY or NX,NY,NZ" if plane else "or NX,NY,NZ"
    raise CaseError(f"--cells {text!r} (allowed: N for a cube of N cells a side, {others})")


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


def _metrics(flow: LatticeBoltzmann, count: int, rounds: Rounds, error: float | None) -> dict[str, Any]:
    """Return everything about a step."""
    seconds = rounds.seconds / count
    bytes_per_cell = 2 * flow.lattice.q * flow.a.scalar.size
    gbs = bytes_per_cell * flow.cells / seconds / 1e9
    report = flow.forth.report()
    return {
        "mlups": flow.cells / seconds / 1e6,
        "mlups_best": flow.cells * count / min(rounds.times) / 1e6,
        "percent_of_copy": 100 * gbs / rounds.copy_gbs if rounds.copy_gbs else None,
        "bytes_per_cell": bytes_per_cell,
        "flops_per_cell": flow.forth.bound.lowered.flops,
        "ms_per_step": 1e3 * seconds,
        "ms_per_step_best": 1e3 * min(rounds.times) / count,
        "ms_per_step_worst": 1e3 * max(rounds.times) / count,
        "useful_gbs": gbs,
        "viscosity_error": error,
        "shape": list(flow.grid.shape),
        "steps": count,
        "rounds": len(rounds.times),
        "threads": flow.context.threads,
        "block": report.block,
        "layout": report.layout,
        "copy_plain_gbs": rounds.copy_plain_gbs,
    }
