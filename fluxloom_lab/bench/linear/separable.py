"""The benchmark of block cyclic reduction: forms, mappings, the split between two devices, level by level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import Any

import numpy as np

from fluxloom.core.errors import CaseError, SolverError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.separable import PeriodicSolver, SeparableSolver, SplitSolver, Timed
from fluxloom.perf.stopwatch import Stopwatch
from fluxloom_lab.bench.base import Record, Tell, device_name
from fluxloom_lab.bench.options import BenchOptions, cells_option, rounds_option
from fluxloom_lab.options import option
from fluxloom_lab.peers.separable_peers import factors
from fluxloom_lab.problems.separable_problem import Manufactured, manufactured

__all__ = ["SeparableBench"]

ROUNDS = 5
_SIDE, _SIDE_PROCESSOR = "511,1024", "127,255"
_PLANES = (8, 32, 128)
_FORMS = ("partial_fractions", "product")
_MAPPINGS = ("partition", "block", "thread")


@dataclass(frozen=True)
class SeparableOptions(BenchOptions):
    """Options of the benchmark ``separable``."""

    cells: str = cells_option("Sides of squares: 511,1024.", "N,...")
    rounds: int = rounds_option()
    model: str = option("", metavar="NAME", help="What is split or divided, in place of all.")


class SeparableBench:
    """Time of solves of a separable equation with variable coefficients on n x n unknowns.

    ``--cells 511,1024`` gives the sides. On a device of work items every form and mapping is timed, and levels are
    divided between it and the processor: the split of the thesis (``"block"`` in product form, and which level is
    best), and in three directions with planes in batches. ``--model plane`` or ``--model box`` does one of the two.
    """

    title = "Block cyclic reduction: partial fractions and products, every mapping, split by level between two devices"
    options = SeparableOptions

    def run(self, options: SeparableOptions, tell: Tell) -> Record:
        """Measure."""
        context = options.native_context()
        if options.model not in ("", "plane", "box"):
            raise CaseError(f"--model {options.model!r} (allowed: plane, box)")
        sides = _sides(options.cells or (_SIDE if context.device.items else _SIDE_PROCESSOR))
        meter, rounds = meter_for(context.device, context.threads), options.rounds or ROUNDS
        copies, metrics = [meter.measure(3).copy_gbs], {}
        if options.model != "box":
            metrics["plane"] = _planes(context, sides, rounds, tell)
            metrics["peer"] = [factors(manufactured(n, n), tell) for n in sides]
            if context.device.items:
                metrics["split"] = _splits(context, sides[-1], tell)
        if options.model != "plane" and context.device.items:
            metrics["box"] = _boxes(context, min(255, sides[-1] // 4), tell)
        copies.append(meter.measure(3).copy_gbs)
        plane = metrics.get("plane") or metrics["box"]
        return Record(
            case="separable",
            model=options.model or "plane,box",
            device=context.device.name,
            device_name=device_name(context),
            precision="float64",
            sizes={"cells": sides[-1] ** 2},
            copy_gbs=median(copies),
            seconds=min(row["seconds"] for row in plane if row.get("n") == plane[-1].get("n")),
            metrics={"threads": context.threads, **metrics},
            loops=[],
            command=options.command,
        )


def _sides(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) > 1 for word in words):
        raise CaseError(f"--cells {text!r}: sides of squares are wanted, as 511 or 511,1024")
    return [int(word) for word in words]


def _planes(context: Context, sides: Sequence[int], rounds: int, tell: Tell) -> list[dict[str, Any]]:
    """Return the time, the errors and the levels of every form and mapping."""
    rows = []
    for n in sides:
        given = manufactured(n, n)
        for form in _FORMS:
            for mapping in _MAPPINGS if context.device.items else ("partition",):
                rows.append(_plane(context, given, form, mapping, rounds))
                row = rows[-1]
                tell(
                    f"{n} x {n}, {form}, {mapping}: {1e3 * row['seconds']:.4g} ms, forward {row['forward']:.1e}, "
                    f"backward {row['backward_eps']:.3g} eps, prepared in {row['prepare_seconds']:.2g} s"
                )
    return rows


def _plane(context: Context, given: Manufactured, form: str, mapping: str, rounds: int) -> dict[str, Any]:
    device = context.device
    solver, prepared = Stopwatch().result(
        lambda: SeparableSolver(given.problem, context, form=form, mapping=mapping, threads=context.threads)
    )
    f, u = DeviceArray.of(device, given.right), DeviceArray.zeros(device, given.right.shape)
    steps = solver.steps(f, u)
    steps()
    forward, backward = given.errors(u.host())
    steps()
    seconds = Stopwatch(rounds, wait=device.synchronize, most_calls=20).median(steps)
    return {
        "n": int(sqrt(u.host().size)), "form": form, "mapping": mapping if device.items else "vectors",
        "seconds": seconds, "forward": forward, "backward_eps": backward, "prepare_seconds": prepared,
        "solves": solver.program.solves, "levels": _levels(context, solver, steps),
    }  # fmt: skip


def _levels(context: Context, solver: SeparableSolver, steps: Steps) -> list[dict[str, Any]]:
    """Return phase, level, kernel, systems and time of each stage."""
    context.profile = True
    try:
        steps.reset()
        steps()
        seconds = steps.seconds
        return [
            {
                "phase": stage.phase, "level": stage.level, "kernel": stage.kernel,
                "systems": int(getattr(stage, "roots", np.zeros(0)).size),
                "microseconds": 1e6 * seconds.get(stage.name, 0.0),
            }
            for stage in solver.program.stages
        ]  # fmt: skip
    finally:
        context.profile = False


def _splits(context: Context, n: int, tell: Tell) -> list[dict[str, Any]]:
    """Return the solves of two devices: the first level of the processor, times, transfers, levels."""
    given, rows = manufactured(n, n), []
    levels = n.bit_length()
    wanted: list[tuple[str, str, Any]] = [("product", "block", split) for split in ("auto", 3, 5, 7) if split != levels]
    wanted += [("product", "partition", "auto"), ("partial_fractions", "partition", "auto")]
    for form, mapping, split in wanted:
        try:
            solver = SplitSolver(given.problem, context, "cpu", split=split, form=form, mapping=mapping)
        except SolverError as error:
            tell(f"split {split}: {error}")
            continue
        forward = given.errors(solver(given.right))[0]
        solver.measure(given.right)
        trace = solver.measure(given.right)
        rows.append({
            "n": n, "form": form, "mapping": mapping, "asked": split, "split": solver.split, "forward": forward,
            "seconds": _wall(lambda solver=solver: solver(given.right)),
            "parts_seconds": sum(one.seconds for one in trace), "transfer_share": solver.transfer_share,
            "predicted_seconds": list(solver.predicted),
            "host": solver.host.describe(), "levels": _rows(trace),
        })  # fmt: skip
        tell(
            f"{n} x {n}, {form}, {mapping}, split {split} -> level {solver.split} of {solver.program.levels}: "
            f"{1e3 * rows[-1]['seconds']:.4g} ms with the array there and back, parts "
            f"{1e3 * rows[-1]['parts_seconds']:.4g} ms, transfers {100 * solver.transfer_share:.2g} %"
        )
    return rows


def _rows(trace: Iterable[Timed]) -> list[dict[str, Any]]:
    return [
        {
            "phase": one.phase, "level": one.level, "kernel": one.kernel, "device": one.device, "systems": one.systems,
            "microseconds": 1e6 * one.seconds,
        }
        for one in trace
    ]  # fmt: skip


def _wall(run: Any, rounds: int = 5) -> float:
    return Stopwatch(rounds, warm=0, most_calls=1).median(run)


def _boxes(context: Context, n: int, tell: Tell) -> list[dict[str, Any]]:
    """Return solves in three directions: numbers of planes, one device or two, batches."""
    rows = []
    for planes in _PLANES:
        given, spacing = manufactured(n, n), 2.0 * np.pi / planes
        exact = np.random.default_rng(n).standard_normal((planes, n, n))
        right = (np.roll(exact, 1, 0) - 2.0 * exact + np.roll(exact, -1, 0)) / spacing**2
        for k in range(planes):
            right[k] += given.problem.times(exact[k])
        alone: dict[str, float] = {}
        choices: list[tuple[str, int | None, Any]] = [
            ("product", None, 1), ("product", 5, 1), ("product", 5, "auto"), ("partial_fractions", None, 1),
        ]  # fmt: skip
        for form, split, batches in choices:
            solver = PeriodicSolver(
                given.problem, planes, spacing, context, host="cpu", split=split, batches=batches, form=form,
                mapping="block" if form == "product" else "partition",
            )  # fmt: skip
            forward, seconds = float(np.abs(solver(right) - exact).max()), solver.seconds()
            alone.setdefault(form, seconds)
            rows.append({
                "planes": planes, "n": n, "form": form, "split": split, "batches": solver.count, "seconds": seconds,
                "forward": forward, "gain_over_one_device": alone[form] / seconds - 1.0,
                "tried_seconds": {str(k): v for k, v in dict(solver.tried).items()},
            })  # fmt: skip
            tell(
                f"{planes} x {n} x {n}, {form}, split {split}, {solver.count} batches: {1e3 * seconds:.4g} ms, gain "
                f"{100 * rows[-1]['gain_over_one_device']:.3g} %, forward {forward:.1e}"
            )
    return rows
