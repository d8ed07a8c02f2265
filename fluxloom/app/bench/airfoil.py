"""The Airfoil benchmark: time of an iteration and useful bandwidth of each loop, beside the copy bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fluxloom.app.bench.base import BenchOptions, Record, Tell, cells_from_text, count_gpus, device_name, steps
from fluxloom.app.bench.exhaustive import exhaustive
from fluxloom.app.bench.rounds import Rounds, measure_rounds
from fluxloom.app.bench.strategies import compare_strategies
from fluxloom.app.cases.airfoil import AirfoilRunner
from fluxloom.app.summary import loop_rows, overall
from fluxloom.app.verify.airfoil import RMS_1000
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.mesh.airfoil import AirfoilMesh, airfoil_mesh
from fluxloom.solvers.airfoil import AirfoilConstants

__all__ = ["AirfoilBench"]

ITERATIONS, ROUNDS = 100, 5

_PUBLISHED, _PUBLISHED_CELLS = 1000, (400, 600)
"""Iterations after which the residual on a mesh of this size is published."""

_QUICK = 60.0
"""Seconds that so many iterations may take for the residual to be computed."""


@dataclass(frozen=True)
class _Case:
    """What is measured: options, context and mesh, and its size."""

    options: BenchOptions
    context: Context
    mesh: AirfoilMesh
    size: tuple[int, int]

    def runner(self) -> AirfoilRunner:
        """Return a new runner at the free stream."""
        options = self.options
        return AirfoilRunner(
            self.context, self.mesh, AirfoilConstants(), options.schedule,
            fused=options.fused, layout=options.chosen_layout,
        )  # fmt: skip


class AirfoilBench:
    """Rounds of iterations, each between two measurements of the memory.

    The first round warms up (compilation is not timed) and gives ``rms``: the residual after exactly
    ``iterations`` iterations from the free stream. Further parts, where they are asked for: every schedule of
    each loop, and the results of every strategy.
    """

    title = "Airfoil: 2D Euler, five loops, two sub-steps an iteration"
    extras = ("layout", "exhaustive", "strategies")

    def run(self, options: BenchOptions, tell: Tell) -> Record:
        """Measure."""
        size = cells_from_text(options.cells, "720k")
        iterations, count = options.iterations or ITERATIONS, options.rounds or ROUNDS
        context = options.context()
        if (options.exhaustive or options.strategies) and not context.device.native:
            raise CaseError(f"the device {context.device.name} runs kernels as Python: it has no schedules to compare")
        tell(f"building {3 * size[0] * size[1]:,} cells on {context!r}")
        case = _Case(options, context, airfoil_mesh(*size), size)
        runner = case.runner()
        steps(runner, iterations)
        rms = runner.residual()
        tell(f"warm-up: residual {rms:.10e} after {iterations} iterations")

        def advance(number: int) -> None:
            for _ in range(number):
                runner.advance()

        rounds = measure_rounds(
            context, advance, runner.reports, iterations, count, tell,
            lambda seconds: f"{1e3 * seconds / iterations:.4g} ms/iteration",
        )  # fmt: skip
        metrics = _metrics(case, runner, rounds, iterations) | {"rms": rms}
        metrics |= _published(case, runner, iterations + rounds.steps, rounds.seconds / iterations, tell)
        if options.exhaustive:
            metrics |= exhaustive(options, case.mesh, tell)
        if options.strategies:
            metrics |= compare_strategies(options, size, tell)
        return Record(
            case="airfoil",
            model="euler",
            device=context.device.name,
            device_name=device_name(context),
            precision=runner.solver.q.scalar.name,
            sizes={"cells": runner.cells},
            copy_gbs=rounds.copy_gbs,
            seconds=rounds.seconds,
            metrics=metrics,
            loops=[row for row in loop_rows(rounds.loops, rounds.copy_gbs) if row.calls],
            command=options.command,
            gpus=count_gpus(context),
        )


def _metrics(case: _Case, runner: AirfoilRunner, rounds: Rounds, iterations: int) -> dict[str, Any]:
    """Return everything about the whole iteration."""
    seconds = rounds.seconds / iterations
    moved, _ = overall(rounds.loops)
    copy = rounds.copy_gbs
    separate = runner.solver.chain.bytes_unfused
    gbs = moved / iterations / seconds / 1e9
    flux = runner.solver.res_calc
    return {
        "percent_of_copy": 100 * gbs / copy if copy else None,
        "seconds_per_1000_iterations": 1000 * seconds,
        "iterations": iterations,
        "rounds": len(rounds.times),
        "threads": case.context.threads,
        "fused": case.options.fused,
        "strategy": flux.strategy,
        "layout": flux.report().layout,
        "ms_per_iteration": 1e3 * seconds,
        "ms_per_iteration_best": 1e3 * min(rounds.times) / iterations,
        "ms_per_iteration_worst": 1e3 * max(rounds.times) / iterations,
        "ns_per_cell_stage": 1e9 * seconds / (2 * runner.cells),
        "useful_gbs": gbs,
        "bytes_per_iteration": moved / iterations,
        # As if every loop ran by itself: what a program without fusion would have to move in this time.
        "bytes_per_iteration_unfused": separate,
        "unfused_gbs": separate / seconds / 1e9,
        "unfused_percent_of_copy": 100 * separate / seconds / 1e9 / copy if copy else None,
        "triad_gbs": rounds.triad_gbs,
        "copy_plain_gbs": rounds.copy_plain_gbs,
    }


def _published(case: _Case, runner: AirfoilRunner, done: int, pace: float, tell: Tell) -> dict[str, Any]:
    """Return the residual after exactly 1000 iterations, beside the published one, where it takes moments.

    Parameters
    ----------
    done
        Iterations that the runner has behind it; when they are too many another one starts afresh.
    pace
        Seconds of an iteration.
    """
    if not case.context.device.items or _PUBLISHED * pace > _QUICK:
        return {}
    if done > _PUBLISHED:
        runner, done = case.runner(), 0
    steps(runner, _PUBLISHED - done)
    rms = runner.residual()
    found: dict[str, Any] = {"rms_1000": rms}
    text = f"residual {rms:.13e} after {_PUBLISHED} iterations"
    if case.size == _PUBLISHED_CELLS:
        percent = 100 * (rms / RMS_1000 - 1)
        found["rms_1000_difference_percent"] = percent
        text += f", {percent:+.2e} % from the published {RMS_1000:.12e}"
    tell(text)
    return found
