"""The Airfoil benchmark: time of an iteration and useful bandwidth of each loop, beside the copy bandwidth."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fluxloom.cases.files.application import equal_shares, measured_shares
from fluxloom.cli.runs.summary import overall, rows_of_ranks
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.flows.airfoil.flow import airfoil_part
from fluxloom.machine.ranks import rank_devices_of
from fluxloom.mesh.generate.airfoil import AirfoilMesh
from fluxloom.solvers.airfoil.flow import Airfoil, AirfoilConstants
from fluxloom_lab.bench.base import Record, Tell, cells_from_text, steps
from fluxloom_lab.bench.exchange_cost import measure_exchanges
from fluxloom_lab.bench.exhaustive import exhaustive
from fluxloom_lab.bench.flows.airfoil_options import AirfoilOptions
from fluxloom_lab.bench.rounds import Rounds, measure_rounds, summed
from fluxloom_lab.bench.strategies import compare_strategies
from fluxloom_lab.verify.airfoil import RMS_1000

__all__ = ["AirfoilBench"]

ITERATIONS, ROUNDS = 100, 5

_PUBLISHED, _PUBLISHED_CELLS = 1000, (400, 600)
"""Iterations after which the residual on a mesh of this size is published."""

_QUICK = 60.0
"""Seconds that so many iterations may take for the residual to be computed."""


@dataclass(frozen=True)
class _Case:
    """What is measured: options, context, the size of the mesh, and the shares of the ranks."""

    options: AirfoilOptions
    context: Context
    size: tuple[int, int]
    shares: Sequence[float] | None = None

    def runner(self, context: Context | None = None, shares: Sequence[float] | None = None) -> Airfoil:
        """Return a new runner at the free stream; its mesh is made for it, and on several ranks not kept."""
        options, here = self.options, context if context is not None else self.context
        mesh = airfoil_part(here, *self.size, options.partition, shares if shares is not None else self.shares)
        return Airfoil(
            here, mesh, AirfoilConstants(), schedule=options.schedule, fused=options.fused, layout=options.chosen_layout
        )

    @property
    def ranks(self) -> int:
        """Their number."""
        return self.context.comm.size


class AirfoilBench:
    """Rounds of iterations, each between two measurements of the memory.

    The first round warms up (compilation is not timed) and gives ``rms``: the residual after exactly
    ``iterations`` iterations from the free stream. Further parts, where they are asked for: every schedule of
    each loop, and the results of every strategy; on several ranks, every transport.
    """

    title = "Airfoil: 2D Euler, five loops, two sub-steps an iteration"
    options = AirfoilOptions

    def run(self, options: AirfoilOptions, tell: Tell) -> Record:
        """Measure."""
        context = options.context()
        case = _case(options, context, tell)
        runner = case.runner()
        iterations = options.iterations or ITERATIONS
        rounds, metrics = _measured(case, runner, tell)
        metrics |= _published(case, runner, iterations + rounds.steps, rounds.seconds / iterations, tell)
        crew, copy = rank_devices_of(context), summed(context.comm, rounds.copy_gbs)
        cells, precision = runner.cells.total, runner.q.scalar.name
        if case.ranks > 1:
            metrics |= _distributed(case, runner)
        elif options.exhaustive:
            metrics |= exhaustive(options, _whole(case), tell)
        del runner
        if options.strategies:
            metrics |= compare_strategies(options, case.size, tell)
        if options.transports:
            metrics["transports"] = _transports(case, tell)
        return Record(
            case="airfoil",
            model="euler",
            **crew.place,
            precision=precision,
            sizes={"cells": cells},
            copy_gbs=copy,
            seconds=rounds.seconds,
            metrics=metrics,
            loops=[row for row in rows_of_ranks(context.comm, rounds.loops, copy) if row.calls],
            command=options.command,
        )


def _case(options: AirfoilOptions, context: Context, tell: Tell) -> _Case:
    """Return what is measured, with the shares of the ranks.

    Raises
    ------
    CaseError
        For parts that this device, or this number of ranks, cannot have.
    """
    size, ranks = cells_from_text(options.cells, "720k"), context.comm.size
    more = options.exhaustive or options.strategies
    if more and not context.device.native:
        raise CaseError(f"the device {context.device.name} runs kernels as Python: it has no schedules to compare")
    if more and ranks > 1:
        raise CaseError("--exhaustive and --strategies compare on one rank: start the benchmark without mpiexec")
    if options.transports and ranks == 1:
        raise CaseError("--transports compares how messages travel: start several ranks, as with --ranks cuda*2")
    on = f"{ranks} ranks, {context!r} and others" if ranks > 1 else repr(context)
    tell(f"building {3 * size[0] * size[1]:,} cells on {on}")
    case = _Case(options, context, size, None if isinstance(options.shares, str) else options.shares)
    if options.shares != "measured" or ranks == 1:
        return case
    shares = measured_shares(context, lambda trial, equal: case.runner(trial, equal).iterate)
    gc.collect()
    tell(f"measured shares: {', '.join(f'{share:.4f}' for share in shares)}")
    return replace(case, shares=shares)


def _whole(case: _Case) -> AirfoilMesh:
    """Return the mesh of a rank alone."""
    mesh = airfoil_part(case.context, *case.size)
    assert isinstance(mesh, AirfoilMesh)
    return mesh


def _measured(case: _Case, runner: Airfoil, tell: Tell) -> tuple[Rounds, dict[str, Any]]:
    """Warm up, time the rounds, and return what they tell."""
    iterations, count = case.options.iterations or ITERATIONS, case.options.rounds or ROUNDS
    steps(runner, iterations)
    rms = runner.rms()
    tell(f"warm-up: residual {rms:.10e} after {iterations} iterations")

    def advance(number: int) -> None:
        for _ in range(number):
            runner.iterate()

    rounds = measure_rounds(
        runner.context, advance, runner.reports, iterations, count, tell,
        lambda seconds: f"{1e3 * seconds / iterations:.4g} ms/iteration",
    )  # fmt: skip
    return rounds, _metrics(case, runner, rounds, iterations) | {"rms": rms}



def _metrics(case: _Case, runner: Airfoil, rounds: Rounds, iterations: int) -> dict[str, Any]:
    """Return everything about the whole iteration; bytes and bandwidths are those of all ranks together."""
    context = runner.context
    seconds = rounds.seconds / iterations
    moved = summed(context.comm, overall(rounds.loops)[0])
    copy = summed(context.comm, rounds.copy_gbs)
    separate = summed(context.comm, runner.chain.bytes_unfused)
    gbs = moved / iterations / seconds / 1e9
    flux = runner.res_calc
    return {
        "percent_of_copy": 100 * gbs / copy if copy else None,
        "seconds_per_1000_iterations": 1000 * seconds,
        "iterations": iterations,
        "rounds": len(rounds.times),
        "threads": context.threads,
        "fused": case.options.fused,
        "strategy": flux.strategy,
        "layout": flux.report().layout,
        "ms_per_iteration": 1e3 * seconds,
        "ms_per_iteration_best": 1e3 * min(rounds.times) / iterations,
        "ms_per_iteration_worst": 1e3 * max(rounds.times) / iterations,
        "ns_per_cell_stage": 1e9 * seconds / (2 * runner.cells.total),
        "useful_gbs": gbs,
        "bytes_per_iteration": moved / iterations,
        # As if every loop ran by itself: what a program without fusion would have to move in this time.
        "bytes_per_iteration_unfused": separate,
        "unfused_gbs": separate / seconds / 1e9,
        "unfused_percent_of_copy": 100 * separate / seconds / 1e9 / copy if copy else None,
        "triad_gbs": summed(context.comm, rounds.triad_gbs or 0.0) or None,
        "copy_plain_gbs": summed(context.comm, rounds.copy_plain_gbs or 0.0) or None,
    }


def _distributed(case: _Case, runner: Airfoil) -> dict[str, Any]:
    """Return how the mesh is divided and what the messages cost; the runner is spent afterwards. Collective."""
    report, context = runner.partition, runner.context
    assert report is not None
    cost = measure_exchanges(runner.chain)
    shares = case.shares if case.shares is not None else equal_shares(case.ranks)
    cells = next(found for found in report.sets if found.name == "cells")
    times = context.transport_seconds
    return {
        "ranks": case.ranks, "cells": runner.cells.total, "partition": report.method, "edge_cut": report.edge_cut,
        "imbalance": report.imbalance, "shares": [share / sum(shares) for share in shares],
        "owned_most": max(cells.owned), "owned_least": min(cells.owned),
        **(cost.record() if cost is not None else {}),
        **({"transport_us": [{k: 1e6 * v for k, v in row.items()} for row in times]} if times else {}),
        "crew": rank_devices_of(context).record(),
    }  # fmt: skip


def _transports(case: _Case, tell: Tell) -> list[dict[str, Any]]:
    """Return a row for each way in which messages between the GPUs of this run can travel. Collective."""
    rows = []
    for name in case.options.context(device=case.context.device, transport="auto").links.candidates:
        gc.collect()
        tell(f"transport {name}")
        context = case.options.context(device=case.context.device, transport=name)
        runner = case.runner(context)
        rounds, metrics = _measured(case, runner, tell)
        cost = measure_exchanges(runner.chain)
        rows.append({
            "name": name, "ms_per_iteration": metrics["ms_per_iteration"], "best": metrics["ms_per_iteration_best"],
            "exchange_alone_ms": 1e3 * cost.alone if cost else None, "exchange_hidden": cost.hidden if cost else None,
            "exchange_share": cost.share if cost else None, "rms": metrics["rms"], "rounds": len(rounds.times),
        })  # fmt: skip
    return rows


def _published(case: _Case, runner: Airfoil, done: int, pace: float, tell: Tell) -> dict[str, Any]:
    """Return the residual after exactly 1000 iterations, beside the published one, where it takes moments.

    Parameters
    ----------
    done
        Iterations that the runner has behind it; when they are too many another one starts afresh.
    pace
        Seconds of an iteration.
    """
    if not all(case.context.comm.allgather(case.context.device.items)) or _PUBLISHED * pace > _QUICK:
        return {}
    if done > _PUBLISHED:
        runner, done = case.runner(), 0
    steps(runner, _PUBLISHED - done)
    rms = runner.rms()
    found: dict[str, Any] = {"rms_1000": rms}
    text = f"residual {rms:.13e} after {_PUBLISHED} iterations"
    if case.size == _PUBLISHED_CELLS:
        percent = 100 * (rms / RMS_1000 - 1)
        found["rms_1000_difference_percent"] = percent
        text += f", {percent:+.2e} % from the published {RMS_1000:.12e}"
    tell(text)
    return found
