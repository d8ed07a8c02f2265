"""The benchmark of a flow solver's step: the lid-driven cavity, alone or beside OpenFOAM's ``icoFoam``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.precond.multigrid import SmoothedAggregation
from fluxloom.linalg.status import Stop
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom_lab.bench.base import Record, Tell, device_name
from fluxloom_lab.bench.options import BenchOptions, cells_option, iterations_option, rounds_option
from fluxloom_lab.bench.rounds import stopwatch
from fluxloom_lab.options import option
from fluxloom_lab.peers.openfoam import OpenFoam, find_openfoam
from fluxloom_lab.peers.openfoam_case import PRESSURE_SOLVERS, CavityCase
from fluxloom_lab.peers.programs import peers_from_text
from fluxloom_lab.problems.lid_cavity import BOTELLA_PEYRET, lid_walls
from fluxloom_lab.verify.cavity import extremes

__all__ = ["PEERS", "RECIPES", "CavityBench"]

PEERS = ("openfoam",)
RECIPES: dict[str, Preconditioner] = {"jacobi": Jacobi(), "smoothed aggregation": SmoothedAggregation()}
"""Preconditioners of our pressure."""

SIDE, ROUNDS, SPAN = 64, 10, 50.0
"""Cells a side, rounds, and the time that the flow has by default: it is steady then but for some 1e-4."""

REYNOLDS, TOLERANCE = 1000.0, 1e-5
_PART = 0.5
"""Of a cell that the lid passes in a step."""

_SECONDS = 4 * 3600.0
_NUMBERS = ("least_u", "largest_v", "least_v")


@dataclass(frozen=True)
class _Plan:
    """What everybody computes."""

    n: int
    steps: int
    rounds: int

    @property
    def dt(self) -> float:
        """Length of a step."""
        return _PART / self.n

    @property
    def all_steps(self) -> int:
        """Steps of all rounds."""
        return self.steps * self.rounds


@dataclass(frozen=True)
class CavityOptions(BenchOptions):
    """Options of the benchmark ``cavity``."""

    cells: str = cells_option("Cells a side, an even number.", "N")
    iterations: int = iterations_option()
    rounds: int = rounds_option()
    peers: str = option("", metavar="NAMES", help="Programs to compare with: openfoam.")


class CavityBench:
    """Steps of the flow in the unit square under a lid, Re = 1000, from rest; each half a cell of the lid long.

    Ours: Adams and Bashforth's explicit steps, one pressure solve each, to 1e-5 of the right-hand side. ``--peers
    openfoam``: ``icoFoam`` makes as many steps of the same length, as many processes as there are threads; its steps
    are Euler's implicit ones with two pressure solves to about the same residual. Both end with the same three numbers:
    least and largest velocities on the centrelines, beside those of Botella and Peyret (1998) for the steady flow.
    """

    title = "Steps of the lid-driven cavity at Reynolds number 1000; beside icoFoam of OpenFOAM"
    options = CavityOptions

    def run(self, options: CavityOptions, tell: Tell) -> Record:
        """Measure."""
        context, plan = options.context(), _plan(options)
        peer = _peer(options.peers, context)
        meter = meter_for(context.device, context.threads) if context.device.native else None
        copies = [meter.measure().copy_gbs] if meter else [0.0]
        volumes = control_volumes(box2d(plan.n, plan.n))
        tell(f"{plan.n} x {plan.n} cells, {plan.all_steps} steps of {plan.dt:g} on {context!r}")
        ours = {name: partial(_ours, context, volumes, plan, recipe) for name, recipe in RECIPES.items()}
        rows = [_tried(name, run, tell) for name, run in ours.items()]
        others = list(_theirs(peer, plan, context.threads, tell)) if peer is not None else []
        best, peer_best = _best(rows), _best(others)
        if best is None:
            raise CaseError(f"cavity: none of {', '.join(RECIPES)} made the steps")
        compared = {"icofoam_over_best": peer_best["ms_per_step"] / best["ms_per_step"]} if peer_best else {}
        copies += [meter.measure().copy_gbs] if meter else []
        return Record(
            case="cavity", model="lid-driven cavity, Re = 1000", device=context.device.name,
            device_name=device_name(context), precision="float64", sizes={"cells": plan.n**2}, copy_gbs=median(copies),
            seconds=1e-3 * best["ms_per_step"] * plan.steps,
            metrics={
                "ms_per_step": best["ms_per_step"], "best": best["pressure"], **compared, "threads": context.threads,
                "dt": plan.dt, "steps": plan.all_steps, "time": plan.all_steps * plan.dt, "rtol": TOLERANCE,
                "reference": dict(zip(_NUMBERS, BOTELLA_PEYRET.values(), strict=True)), "flows": rows,
            } | ({"peers": others} if others else {}),
            loops=(), command=options.command,
        )  # fmt: skip


def _plan(options: CavityOptions) -> _Plan:
    """Return what is computed.

    Raises
    ------
    CaseError
        If ``--cells`` is no even number.
    """
    text = options.cells or str(SIDE)
    n = int(text) if text.isascii() and text.isdigit() else 0
    if n < 8 or n % 2 or n > 4096:
        raise CaseError(f"--cells {text!r}: the cells a side, an even number from 8 to 4096")
    rounds = options.rounds or ROUNDS
    return _Plan(n, options.iterations or ceil(SPAN * n / _PART / rounds), rounds)


def _peer(names: str, context: Context) -> OpenFoam | None:
    """Return OpenFOAM if it is asked for; what is missing is said before anything is measured."""
    if not peers_from_text(names, PEERS):
        return None
    if context.device.name != "cpu":
        raise CaseError(f"--peers {names} runs on the cores of a processor: give --device cpu and --threads")
    return find_openfoam()


def _best(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the row of the fastest flow."""
    return min((row for row in rows if "ms_per_step" in row), key=lambda row: row["ms_per_step"], default=None)


def _tried(name: str, run: Callable[[], dict[str, Any]], tell: Tell) -> dict[str, Any]:
    """Return the row of a flow, or one with the error."""
    try:
        row = {"pressure": name} | run()
    except FluxloomError as error:
        tell(f"{name}: {error}")
        return {"pressure": name, "error": str(error)}
    tell(
        f"{name}: {row['ms_per_step']:.4g} ms a step, {row['pressure_iterations']:.1f} iterations, "
        f"{row['largest_deviation_percent']:.3g} % from the reference"
    )
    return row


def _ours(context: Context, volumes: ControlVolumes, plan: _Plan, recipe: Preconditioner) -> dict[str, Any]:
    """Run our flow."""
    sides = lid_walls(volumes.patches)
    stop = Stop(rtol=TOLERANCE)
    flow = Incompressible(context, volumes, 1.0 / REYNOLDS, sides, preconditioner=recipe, stop=stop)
    flow.step(plan.dt)  # compiles
    flow = Incompressible(context, volumes, 1.0 / REYNOLDS, sides, preconditioner=recipe, stop=stop)
    flow.initialise((0.0, 0.0))
    watch, iterations = stopwatch(context), list[int]()

    def step() -> None:
        iterations.append(flow.step(plan.dt).require("the pressure of the cavity").iterations)

    seconds = [watch.timed(step, plan.steps) for _ in range(plan.rounds)]
    velocity = flow.velocity().reshape(plan.n, plan.n, 2)
    return _numbers(seconds, plan, sum(iterations) / plan.all_steps, velocity)


def _theirs(openfoam: OpenFoam, plan: _Plan, processes: int, tell: Tell) -> Iterator[dict[str, Any]]:
    """Yield the rows of OpenFOAM."""

    def run(pressure: str) -> dict[str, Any]:
        case = CavityCase(plan.n, REYNOLDS, plan.dt, plan.all_steps, pressure, TOLERANCE, processes)
        with TemporaryDirectory(prefix="fluxloom-openfoam-") as folder:
            flow = openfoam.run(case, Path(folder), plan.steps, _SECONDS)
        return _numbers(flow.seconds, plan, flow.iterations, flow.velocity) | {"version": flow.version}

    for pressure in PRESSURE_SOLVERS:
        yield _tried(f"icoFoam {pressure}", partial(run, pressure), tell)


def _numbers(
    seconds: Sequence[float], plan: _Plan, iterations: float, velocity: npt.NDArray[np.float64]
) -> dict[str, Any]:
    """Return the numbers of a flow.

    Raises
    ------
    FluxloomError
        If the velocity is not finite.
    """
    if not np.isfinite(velocity).all():
        raise FluxloomError("the velocity is not finite at the end")
    found = extremes(velocity)
    worst = max(abs(value / reference - 1.0) for value, reference in zip(found, BOTELLA_PEYRET.values(), strict=True))
    return {
        "ms_per_step": 1e3 * median(seconds) / plan.steps,
        "ms_per_step_best": 1e3 * min(seconds) / plan.steps,
        "pressure_iterations": iterations,
        **dict(zip(_NUMBERS, found, strict=True)),
        "largest_deviation_percent": 100.0 * worst,
    }
