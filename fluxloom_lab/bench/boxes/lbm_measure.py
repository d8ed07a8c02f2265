"""Timing one flow of the benchmark ``lbm``: rounds of steps, each between two measurements of the memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from fluxloom.dsl.context import Context
from fluxloom.dsl.run.chain import Chain
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom_lab.bench.base import Tell
from fluxloom_lab.bench.boxes.lbm_choice import Choice, LbmOptions, ideal_mlups, thesis_mlups
from fluxloom_lab.bench.boxes.lbm_flow import lattice_flow, viscosity_error
from fluxloom_lab.bench.exchange_cost import measure_exchanges
from fluxloom_lab.bench.rounds import Rounds, measure_rounds

__all__ = ["Measured", "measure"]


@dataclass(frozen=True)
class Measured:
    """What the steps of one flow took.

    Attributes
    ----------
    rounds
        Times, memory and loops.
    metrics
        Everything about a step.
    """

    choice: Choice
    rounds: Rounds
    metrics: dict[str, Any]

    def row(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        keys = (
            "cells", "mlups", "mlups_best", "percent_of_copy", "ideal_mlups", "thesis_mlups", "ms_per_step",
            "bytes_per_cell", "moved_bytes_per_cell", "flops_per_cell", "copy_gbs", "kernels_ms", "viscosity_error",
        )  # fmt: skip
        more = ("fluid_cells", "fluid_mlups", "memory_mb") if self.choice.stored else ()
        return self.choice.row() | {key: self.metrics[key] for key in (*keys, *more, "layout")}


def measure(
    context: Context, choice: Choice, shape: tuple[int, ...], count: int, rounds: int, options: LbmOptions, tell: Tell
) -> Measured:  # fmt: skip
    """Time some rounds of steps, after one that warms up; collective. Bandwidths are those of all ranks together.

    Parameters
    ----------
    shape
        Cells along each axis, slowest first.
    count, rounds
        Steps a round, and timed rounds.

    Raises
    ------
    SolverError
        If the solver refuses the choice, or the flow is not finite at the end.
    """
    tell(f"building {choice.title}, {choice.precision}, {' x '.join(str(n) for n in reversed(shape))} on {context!r}")
    flow = lattice_flow(context, choice, shape, options.schedule)
    flow.step(count)
    energy, start = flow.kinetic_energy() if choice.plain else 0.0, flow.steps
    tell(f"warm-up: {count} steps")
    timed = measure_rounds(
        context, flow.step, flow.reports, count, rounds, tell,
        lambda seconds: f"{1e-6 * flow.cells * count / seconds:,.1f} MLUPS, of the cells that are stepped",
    )  # fmt: skip
    flow.check_finite()
    error = None
    if choice.plain:
        error = viscosity_error(shape, (energy, flow.kinetic_energy()), flow.steps - start)
    metrics = _metrics(flow, choice, shape, count, timed) | {"viscosity_error": error}
    if context.distributed and isinstance(flow.chain, Chain):
        cost = measure_exchanges(flow.chain)  # of two steps, an even and an odd one; the flow is of no use afterwards
        metrics |= {"exchanges": cost.record()} if cost is not None else {}
    return Measured(choice, timed, metrics)


def _metrics(
    flow: LatticeBoltzmann, choice: Choice, shape: tuple[int, ...], count: int, rounds: Rounds
) -> dict[str, Any]:  # fmt: skip
    """Return everything about a step."""
    comm = flow.context.comm
    cells, seconds = flow.cells, rounds.seconds / count
    moved = _a_step([loop.report().useful_bytes for loop in flow.loops])
    copy, moved = (float(x) for x in comm.reduce(np.array([rounds.copy_gbs, moved]), "sum"))
    gbs = choice.bytes_per_cell * cells / seconds / 1e9
    report = flow.loops[0].report()
    fluid = int(flow.fluid.sum()) if choice.walls or choice.stored else prod(shape)
    return {
        "cells": prod(shape),
        "mlups": cells / seconds / 1e6,
        "mlups_best": cells * count / min(rounds.times) / 1e6,
        "percent_of_copy": 100 * gbs / copy if copy else None,
        "ideal_mlups": ideal_mlups(copy, choice) if copy else None,
        "thesis_mlups": thesis_mlups(copy, choice.velocities) if copy else None,
        "bytes_per_cell": choice.bytes_per_cell,
        "moved_bytes_per_cell": moved / cells,
        "flops_per_cell": _a_step([loop.bound.lowered.flops for loop in flow.loops]),
        "ms_per_step": 1e3 * seconds,
        "ms_per_step_best": 1e3 * min(rounds.times) / count,
        "ms_per_step_worst": 1e3 * max(rounds.times) / count,
        "useful_gbs": gbs,
        "shape": list(shape),
        "fluid_cells": fluid,
        "fluid_mlups": fluid / seconds / 1e6,
        "memory_mb": flow.cost.memory / 1e6,
        "steps": count,
        "rounds": len(rounds.times),
        "threads": flow.context.threads,
        "block": report.block,
        "layout": report.layout,
        "copy_gbs": copy,
        "copy_plain_gbs": rounds.copy_plain_gbs,
        "kernels_ms": _kernels(rounds, count),
    }


def _a_step(values: list[int]) -> float:
    """Return a sum over the loops of a step: those of an even and of an odd step are there."""
    return sum(values) / 2


def _kernels(rounds: Rounds, count: int) -> dict[str, float]:
    """Return the milliseconds a step of each kernel, where times are kept; those of even and odd steps together."""
    found: dict[str, float] = {}
    for item in rounds.loops:
        if item.seconds:
            found[item.name] = found.get(item.name, 0.0) + 1e3 * item.seconds / count
    return {name: float(f"{value:.5g}") for name, value in found.items()}
