"""The Airfoil benchmark: time of an iteration and useful bandwidth of each loop, beside the copy bandwidth."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from fluxloom.app.bench.base import BenchOptions, Record, Tell, cells_from_text, device_name, steps
from fluxloom.app.cases.airfoil import AirfoilRunner
from fluxloom.app.summary import LoopRow, difference, loop_rows, overall
from fluxloom.device.bandwidth import Bandwidth, meter_for
from fluxloom.dsl.report import LoopReport
from fluxloom.mesh.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil import AirfoilConstants

__all__ = ["AirfoilBench"]

ITERATIONS, ROUNDS = 100, 5


class AirfoilBench:
    """Rounds of iterations, each between two measurements of the memory.

    The first round warms up (compilation is not timed) and gives ``rms``: the residual after exactly
    ``iterations`` iterations from the free stream.
    """

    title = "Airfoil: 2D Euler, five loops, two sub-steps an iteration"

    def run(self, options: BenchOptions, tell: Tell) -> Record:
        """Measure."""
        i, j = cells_from_text(options.cells, "720k")
        iterations, rounds = options.iterations or ITERATIONS, options.rounds or ROUNDS
        context = options.context()
        tell(f"building {3 * i * j:,} cells on {context!r}")
        mesh = airfoil_mesh(i, j)
        runner = AirfoilRunner(context, mesh, AirfoilConstants(), options.schedule, fused=options.fused)
        meter = meter_for(context.device, context.threads) if context.device.native else None
        steps(runner, iterations)
        rms = runner.residual()
        tell(f"warm-up: residual {rms:.10e} after {iterations} iterations")
        times: list[float] = []
        read: list[list[LoopReport]] = []
        copies = [meter.measure(3)] if meter else []
        for number in range(1, rounds + 1):
            before, start = list(runner.reports()), time.perf_counter()
            steps(runner, iterations)
            times.append(time.perf_counter() - start)
            read.append(difference(list(runner.reports()), before))
            if meter:
                copies.append(meter.measure(3))
            pace = 1e3 * times[-1] / iterations
            beside = f", copy {copies[-1].copy_gbs:.1f} GB/s" if copies else ""
            tell(f"round {number}/{rounds}: {pace:.3f} ms/iteration{beside}")
        copy = median(item.copy_gbs for item in copies) if copies else 0.0
        reports = _median_reports(read)
        return Record(
            case="airfoil",
            model="euler",
            device=context.device.name,
            device_name=device_name(context),
            precision=runner.solver.q.scalar.name,
            sizes={"cells": runner.cells},
            copy_gbs=copy,
            seconds=median(times),
            metrics=_metrics(runner, options, iterations, times, reports, copies, rms),
            loops=_merged(loop_rows(reports, copy)),
            command=options.command,
        )


def _metrics(
    runner: AirfoilRunner, options: BenchOptions, iterations: int, times: list[float],
    reports: list[LoopReport], copies: list[Bandwidth], rms: float,
) -> dict[str, Any]:  # fmt: skip
    """Return everything about the whole iteration."""
    seconds = median(times) / iterations
    moved, _ = overall(reports)
    copy = median(item.copy_gbs for item in copies) if copies else 0.0
    separate = runner.solver.chain.bytes_unfused
    gbs = moved / iterations / seconds / 1e9
    return {
        "percent_of_copy": 100 * gbs / copy if copy else None,
        "rms": rms,
        "iterations": iterations,
        "rounds": len(times),
        "threads": runner.solver.context.threads,
        "fused": options.fused,
        "ms_per_iteration": 1e3 * seconds,
        "ms_per_iteration_best": 1e3 * min(times) / iterations,
        "ms_per_iteration_worst": 1e3 * max(times) / iterations,
        "ns_per_cell_stage": 1e9 * seconds / (2 * runner.cells),
        "useful_gbs": gbs,
        "bytes_per_iteration": moved / iterations,
        # As if every loop ran by itself: what a program without fusion would have to move in this time.
        "bytes_per_iteration_unfused": separate,
        "unfused_gbs": separate / seconds / 1e9,
        "unfused_percent_of_copy": 100 * separate / seconds / 1e9 / copy if copy else None,
        "triad_gbs": median(item.triad_gbs for item in copies) if copies else None,
        "copy_plain_gbs": median(item.copy_plain_gbs for item in copies) if copies else None,
    }


def _median_reports(rounds: list[list[LoopReport]]) -> list[LoopReport]:
    """Return each loop's counters with the median of its times."""
    found = []
    for position, first in enumerate(rounds[0]):
        seconds = median(item[position].seconds for item in rounds)
        found.append(
            LoopReport(
                name=first.name, calls=first.calls, seconds=seconds, useful_bytes=first.useful_bytes,
                strategy=first.strategy, colours=first.colours, lanes=first.lanes,
                vectorised=first.vectorised, block=first.block,
            )
        )
    return found


def _merged(rows: list[LoopRow]) -> list[LoopRow]:
    """Return rows without loops that did not run by themselves."""
    return [row for row in rows if row.calls]
