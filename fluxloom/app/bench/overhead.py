"""The overhead benchmark: what a loop call and a captured chain cost in Python, on a mesh of a few cells."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

from fluxloom.app.bench.base import BenchOptions, Record, Tell, cells_from_text, device_name
from fluxloom.app.cases.airfoil import AirfoilRunner
from fluxloom.app.summary import difference, loop_rows
from fluxloom.device.bandwidth import meter_for
from fluxloom.mesh.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil import AirfoilConstants

__all__ = ["OverheadBench"]

CALLS, ROUNDS = 2000, 7


class OverheadBench:
    """Time of a call less the time in native code, with so few cells that little else is left."""

    title = "Python cost of one loop call and of one replay of a chain"

    def run(self, options: BenchOptions, tell: Tell) -> Record:
        """Measure."""
        i, j = cells_from_text(options.cells, "4,6")
        calls, rounds = options.iterations or CALLS, options.rounds or ROUNDS
        context = replace(options, threads=options.threads or 1).context()
        mesh = airfoil_mesh(i, j)
        runner = AirfoilRunner(context, mesh, AirfoilConstants(), options.schedule, fused=options.fused)
        runner.advance()
        loop = runner.loops[0]
        loop()
        loop_times, loop_native = [], []
        chain_times, chain_native = [], []
        start = list(runner.reports())
        for number in range(1, rounds + 1):
            before = loop.report().seconds
            loop_times.append(_time(loop, calls))
            loop_native.append((loop.report().seconds - before) / calls)
            seen = list(runner.reports())
            chain_times.append(_time(runner.advance, calls))
            spent = difference(list(runner.reports()), seen)
            chain_native.append(sum(item.seconds for item in spent) / calls)
            loop_text, chain_text = f"{1e6 * loop_times[-1]:.2f} us", f"{1e6 * chain_times[-1]:.2f} us"
            tell(f"round {number}/{rounds}: loop call {loop_text}, chain {chain_text}")
        loop_us, chain_us = 1e6 * median(loop_times), 1e6 * median(chain_times)
        native_us, chain_native_us = 1e6 * median(loop_native), 1e6 * median(chain_native)
        copy = meter_for(context.device, context.threads).measure(3).copy_gbs if context.device.native else 0.0
        return Record(
            case="overhead",
            model="euler",
            device=context.device.name,
            device_name=device_name(context),
            precision=runner.solver.q.scalar.name,
            sizes={"cells": runner.cells},
            copy_gbs=copy,
            seconds=median(loop_times),
            metrics={
                "percent_of_copy": None,
                "loop_call_us": loop_us,
                "loop_native_us": native_us,
                "loop_overhead_us": loop_us - native_us,
                "chain_call_us": chain_us,
                "chain_native_us": chain_native_us,
                "chain_overhead_us": chain_us - chain_native_us,
                "calls": calls,
                "rounds": rounds,
            },
            loops=loop_rows(difference(list(runner.reports()), start), copy),
            command=options.command,
        )


def _time(call: Callable[[], None], calls: int) -> float:
    """Return the mean time of a call."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls
