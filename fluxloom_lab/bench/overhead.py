"""The overhead benchmark: what loop calls and replayed chains cost beside the work of their kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from statistics import median

from fluxloom.cli.runs.summary import loop_rows
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.mesh.generate.airfoil import airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil, AirfoilConstants
from fluxloom_lab.bench.base import Record, Tell, cells_from_text, count_gpus, device_name
from fluxloom_lab.bench.options import Laid, Scheduled, cells_option, iterations_option, rounds_option
from fluxloom_lab.bench.rounds import profiled

__all__ = ["OverheadBench"]

CALLS, ROUNDS = 2000, 7
CELLS, CELLS_ITEMS = "4,6", "48,72"
"""Meshes of 72 and 10,368 cells: so few that starting work is what takes the time."""

_STEPS = 10  # calls of a loop for one of a chain
_QUEUE = 50  # calls between two waits, so that no queue is ever full
_WARM = 10  # a fused step is captured once for each of two arrangements of its buffers
_EPS = (0.05, 0.0500001)


@dataclass(frozen=True)
class _Action:
    """Something to time: its name, a call, the counters of what it runs, and calls a round."""

    name: str
    run: Callable[[], object]
    reports: Callable[[], Sequence[LoopReport]]
    calls: int


@dataclass(frozen=True)
class OverheadOptions(Scheduled, Laid):
    """Options of the benchmark ``overhead``."""

    cells: str = cells_option("Size of the mesh: 720k, 2.88M or I,J.")
    iterations: int = iterations_option("Calls a round")
    rounds: int = rounds_option()


class OverheadBench:
    """Time of a call until it returns, until its work is done, and the part of the kernels, on a small mesh.

    The actions are a loop; a step of Airfoil, fused and unfused; and both with a run-time constant that changes
    every time. For each ``_call_us`` is the time until a call returns, ``_us`` that of one of many calls in a row
    until all are done, ``_latency_us`` that of a single call until it is done, ``_native_us`` the part of the
    kernels, and ``_overhead_us`` the rest of ``_us``. ``read_global_us`` is the time to read a value that the
    device has reduced.
    """

    title = "cost of loop calls, replayed chains, changed constants and read values beside their kernels"
    options = OverheadOptions

    def run(self, options: OverheadOptions, tell: Tell) -> Record:
        """Measure."""
        context = replace(options, threads=options.threads or 1).context()
        size = cells_from_text(options.cells, CELLS_ITEMS if context.device.items else CELLS)
        rounds, calls = options.rounds or ROUNDS, options.iterations or CALLS
        fused, unfused = _runners(options, context, size)
        actions = _actions(fused, unfused, calls)
        for action in actions:
            for _ in range(_WARM):
                action.run()
        found: dict[str, list[float]] = {}
        for number in range(1, rounds + 1):
            for action in actions:
                for key, seconds in _round(context, action).items():
                    found.setdefault(key, []).append(seconds)
            found.setdefault("read_global_us", []).append(_read(context, unfused, actions[-1].calls))
            loop, step = (1e6 * found[key][-1] for key in ("loop_us", "fused_step_us"))
            tell(f"round {number}/{rounds}: loop {loop:.2f} us, fused step {step:.2f} us")
        metrics = {key: 1e6 * median(seconds) for key, seconds in found.items()}
        reports: list[LoopReport] = []
        for action in actions:
            seen = profiled(context, lambda action=action: _repeat(action), action.reports)
            metrics[f"{action.name}_native_us"] = 1e6 * sum(item.seconds for item in seen) / action.calls
            metrics[f"{action.name}_overhead_us"] = metrics[f"{action.name}_us"] - metrics[f"{action.name}_native_us"]
            reports += [replace(item, name=f"{action.name}: {item.name}") for item in seen if item.calls]
        copy = meter_for(context.device, context.threads).measure(3).copy_gbs if context.device.native else 0.0
        return Record(
            case="overhead",
            model="euler",
            device=context.device.name,
            device_name=device_name(context),
            precision=fused.q.scalar.name,
            sizes={"cells": fused.cells.total},
            copy_gbs=copy,
            seconds=1e-6 * metrics["loop_us"],
            metrics={"percent_of_copy": None, **metrics, "calls": calls, "rounds": rounds},
            loops=loop_rows(reports, copy),
            command=options.command,
            gpus=count_gpus(context),
        )


def _runners(options: OverheadOptions, context: Context, size: tuple[int, int]) -> tuple[Airfoil, Airfoil]:
    """Return the fused and the unfused form of one case."""
    mesh, layout = airfoil_mesh(*size), options.chosen_layout
    fused, unfused = (
        Airfoil(context, mesh, AirfoilConstants(), schedule=options.schedule, fused=form, layout=layout)
        for form in (True, False)
    )
    return fused, unfused


def _actions(fused: Airfoil, unfused: Airfoil, calls: int) -> list[_Action]:
    """Return what is timed."""
    loop, many = unfused.loops[0], max(1, calls // _STEPS)
    return [
        _Action("loop", loop, lambda: [loop.report()], calls),
        _Action("fused_step", fused.iterate, fused.reports, many),
        _Action("unfused_step", unfused.iterate, unfused.reports, many),
        _Action("fused_constant_step", _changing(fused), fused.reports, many),
        _Action("unfused_constant_step", _changing(unfused), unfused.reports, many),
    ]


def _changing(runner: Airfoil) -> Callable[[], None]:
    """Return a step before which a run-time constant gets another value."""
    flux: Loop = runner.res_calc
    values = cycle(_EPS)

    def step() -> None:
        flux.set(eps=next(values))
        runner.iterate()

    return step


def _round(context: Context, action: _Action) -> dict[str, float]:
    """Return the seconds of a call: until it returns, of many until all are done, of one until it is done."""
    clock, run, left = time.perf_counter, action.run, action.calls
    returned = done = 0.0
    while left:
        calls = min(left, _QUEUE)
        left -= calls
        context.synchronize()
        start = clock()
        for _ in range(calls):
            run()
        returned += clock() - start
        context.synchronize()
        done += clock() - start
    alone = []
    for _ in range(min(action.calls, _QUEUE)):
        start = clock()
        run()
        context.synchronize()
        alone.append(clock() - start)
    name = action.name
    return {
        f"{name}_call_us": returned / action.calls,
        f"{name}_us": done / action.calls,
        f"{name}_latency_us": median(alone),
    }


def _read(context: Context, runner: Airfoil, times: int) -> float:
    """Return the seconds that it takes to read the residual after a step."""
    found = []
    for _ in range(min(times, _QUEUE)):
        runner.iterate()
        context.synchronize()
        start = time.perf_counter()
        runner.rms()
        found.append(time.perf_counter() - start)
    return median(found)


def _repeat(action: _Action) -> None:
    for _ in range(action.calls):
        action.run()
