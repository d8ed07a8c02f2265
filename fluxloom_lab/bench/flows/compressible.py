"""The benchmark of compressible flow: the time of a cell and stage, and what each loop moves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fluxloom.cli.runs.summary import overall, rows_of_ranks
from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.run.report import LoopReport
from fluxloom.machine.ranks import rank_devices_of
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom_lab.bench.base import Record, Tell
from fluxloom_lab.bench.flows.compressible_domain import LOOPS, CompressibleOptions, domain_of, flow_on, model_of
from fluxloom_lab.bench.flows.compressible_table import measure_table
from fluxloom_lab.bench.flows.compressible_transports import compare_transports
from fluxloom_lab.bench.rounds import Rounds, measure_rounds, summed

__all__ = ["CompressibleBench"]

ITERATIONS, ROUNDS = 5, 5
TABLES = ("kernels",)


class CompressibleBench:
    """Explicit steps of a disturbed uniform flow over a box of perturbed hexahedra, or on a mesh of a file.

    The first round warms up; each further one is between two measurements of the memory. ``--table kernels`` measures
    the ten loops of a solver over faces in all their ways instead, and the same stage in two passes over cells.
    """

    title = "Compressible flow: a cell and stage of an explicit step; --table kernels: loops over faces, K1 to K10"
    options = CompressibleOptions

    def run(self, options: CompressibleOptions, tell: Tell) -> Record:
        """Measure."""
        model = model_of(options.model)
        if options.table and options.table not in TABLES:
            hint = did_you_mean(options.table, TABLES)
            raise CaseError(f"--table {options.table!r}{hint} (allowed: {', '.join(TABLES)})")
        if options.table:
            return measure_table(options, tell)
        if options.layout:
            raise CaseError("--layout: the layout of the loops over faces; give --table kernels too, or leave it out")
        if options.transports and options.comm.size == 1:
            raise CaseError("--transports compares how messages travel: start several ranks, as with --ranks cuda*2")
        context = options.context(schedule=options.schedule)
        start = time.perf_counter()
        domain = domain_of(options, context)
        flow = flow_on(context, domain, model, options.numerics)
        setup = time.perf_counter() - start
        tell(f"{domain.name}: {domain.cells:,} cells on {context!r}, set-up {setup:.1f} s")
        iterations = options.iterations or ITERATIONS
        rounds = _measured(flow, iterations, options.rounds or ROUNDS, domain.cells, tell)
        found = flow.residuals()
        crew, copy = rank_devices_of(context), summed(context.comm, rounds.copy_gbs)
        metrics = _metrics(flow, rounds, iterations, domain.cells, copy) | {
            "setup_seconds": setup, "threads": context.threads,
            "clipped_faces": found.clipped_faces, "clipped_cells": found.clipped_cells,
            "residual_of_mass": float(found.norms[0]),
        }  # fmt: skip
        loops = [row for row in rows_of_ranks(context.comm, _by_name(rounds.loops), copy) if row.calls]
        if options.transports:
            some = options.rounds or ROUNDS
            metrics["transports"] = compare_transports(options, context.device, domain, model, iterations, some, tell)
        return Record(
            case="compressible", model=model, **crew.place,
            precision=flow.scheme.storage, sizes={"cells": domain.cells}, copy_gbs=copy, seconds=rounds.seconds,
            metrics=metrics, loops=loops, command=options.command,
        )  # fmt: skip


def _measured(flow: CompressibleFlow, iterations: int, rounds: int, cells: int, tell: Tell) -> Rounds:
    """Warm up and time the rounds. Collective."""
    stages = len(flow.scheme.time.stages)
    flow.iterate(iterations)
    flow.context.synchronize()
    return measure_rounds(
        flow.context, flow.iterate, flow.iteration.reports, iterations, rounds, tell,
        lambda seconds: f"{1e9 * seconds / (iterations * stages * cells):.4g} ns a cell and stage",
    )  # fmt: skip


def _metrics(flow: CompressibleFlow, rounds: Rounds, iterations: int, cells: int, copy: float) -> dict[str, Any]:
    """Return what the rounds tell; bytes and bandwidths are those of all ranks together. Collective."""
    stages = len(flow.scheme.time.stages)
    each = rounds.seconds / (iterations * stages)
    moved = summed(flow.context.comm, overall(rounds.loops)[0]) / (iterations * stages)
    separate = summed(flow.context.comm, flow.iteration.bytes_unfused) / stages
    gbs = moved / each / 1e9
    return {
        "flux": strategy_name(flow.scheme.flux), "limiter": strategy_name(flow.scheme.limiter),
        "loops": next(name for name, loops in LOOPS.items() if loops == flow.scheme.loops),
        "time": strategy_name(flow.scheme.time),
        "stages": stages, "dimension": flow.dimension, "iterations": iterations, "rounds": len(rounds.times),
        "ns_per_cell_stage": 1e9 * each / cells,
        "ns_per_cell_stage_best": 1e9 * min(rounds.times) / (iterations * stages * cells),
        "ns_per_cell_stage_worst": 1e9 * max(rounds.times) / (iterations * stages * cells),
        "ms_per_stage": 1e3 * each, "bytes_per_cell_stage": moved / cells,
        "bytes_per_cell_stage_unfused": separate / cells, "useful_gbs": gbs,
        "percent_of_copy": 100.0 * gbs / copy if copy else None,
        "triad_gbs": summed(flow.context.comm, rounds.triad_gbs or 0.0) or None,
    }  # fmt: skip



def _by_name(reports: Sequence[LoopReport]) -> list[LoopReport]:
    """Return the reports of the stages as one a loop: the same loop moves the same bytes in each of them."""
    found: dict[tuple[str, int], LoopReport] = {}
    for report in reports:
        key = (report.name, report.useful_bytes)
        known = found.get(key)
        both = report if known is None else replace(
            known, calls=known.calls + report.calls, seconds=known.seconds + report.seconds
        )  # fmt: skip
        found[key] = both
    return list(found.values())
