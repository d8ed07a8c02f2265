"""The results of every strategy, layout, form and grade of determinism on one mesh, which have to agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.cases.files.case import schedule_text
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.plan.tuning import gradable
from fluxloom.mesh.generate.airfoil import AirfoilMesh, airfoil_mesh
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom_lab.bench.base import NAMED_SIZES, Tell
from fluxloom_lab.bench.flows.airfoil_options import AirfoilOptions
from fluxloom_lab.bench.options import LAYOUTS

__all__ = ["TOLERANCE", "Outcome", "Way", "compare_strategies", "require_agreement", "ways_of"]

TOLERANCE = 1e-7
"""Largest relative difference of residuals: 1e-5 per cent."""

_ITERATIONS = 100
_LARGEST = "72k"
_LAYOUTS = ("aos", "soa")
_GRADES = (None, "plan", "global")
_STAGED = ("block_colour",)


@dataclass(frozen=True)
class Way:
    """One way to run the same case."""

    schedule: Schedule
    layout: str
    fused: bool

    @property
    def strategy(self) -> str:
        """The strategy and how it differs from its usual form."""
        name = self.schedule.strategy or "auto"
        return f"{name}, staged" if self.schedule.stage else name

    @property
    def repeats(self) -> bool:
        """Whether it has to give the same bits each time."""
        return self.schedule.strategy != "atomic" and (
            self.schedule.strategy is not None or self.schedule.deterministic is not None
        )

    def __str__(self) -> str:
        return f"{schedule_text(self.schedule)}, {self.layout}, {'fused' if self.fused else 'unfused'}"


@dataclass(frozen=True)
class Outcome:
    """What one way gave.

    Attributes
    ----------
    rms
        The residual.
    difference
        From the residual of the first way, relative.
    repeatable
        Whether a second run gave the same state and residual, to the last bit.
    """

    way: Way
    rms: float
    difference: float
    repeatable: bool

    def record(self) -> dict[str, Any]:
        """Return the row of the record."""
        return {
            "strategy": self.way.strategy,
            "layout": self.way.layout,
            "fused": self.way.fused,
            "deterministic": self.way.schedule.deterministic,
            "rms": self.rms,
            "relative_difference": self.difference,
            "repeatable": self.repeatable,
        }


def compare_strategies(options: AirfoilOptions, size: tuple[int, int], tell: Tell) -> dict[str, Any]:
    """Run every way twice and compare.

    Parameters
    ----------
    size
        Of the mesh; larger ones than 72k are replaced by that.

    Returns
    -------
    dict
        ``strategies``: a row a way; ``strategies_spread``: the largest relative difference of two residuals.

    Raises
    ------
    SolverError
        When a residual differs too much, or a way that has to repeat does not.
    """
    i, j = min(size, NAMED_SIZES[_LARGEST], key=lambda pair: pair[0] * pair[1])
    mesh, iterations = airfoil_mesh(i, j), options.iterations or _ITERATIONS
    tell(f"strategies: {3 * i * j:,} cells, {iterations} iterations")
    context = Context(options.device, threads=options.threads, tuning=False)
    found: list[Outcome] = []
    for way in ways_of(context, mesh):
        first, second = (_run(context, mesh, way, iterations) for _ in range(2))
        reference = found[0].rms if found else first[0]
        same = first[0] == second[0] and bool(np.array_equal(first[1], second[1]))
        found.append(Outcome(way, first[0], abs(first[0] / reference - 1), same))
        repeats = "repeats" if same else "does not repeat"
        tell(f"{way}: residual {first[0]:.13e}, difference {found[-1].difference:.1e}, {repeats}")
    require_agreement(found)
    rms = [outcome.rms for outcome in found]
    return {"strategies_spread": max(rms) / min(rms) - 1, "strategies": [outcome.record() for outcome in found]}


def require_agreement(found: list[Outcome]) -> None:
    """Raise where results differ that may not.

    Raises
    ------
    SolverError
        Naming every way that does.
    """
    wrong = [
        f"{outcome.way}: the residual {outcome.rms:.13e} differs by {100 * outcome.difference:.1e} %"
        for outcome in found
        if not outcome.difference <= TOLERANCE  # a NaN is wrong too
    ]
    wrong += [
        f"{outcome.way}: two runs differ, and this schedule promises that they do not"
        for outcome in found
        if outcome.way.repeats and not outcome.repeatable
    ]
    if wrong:
        raise SolverError("\n".join(["ways to run the same case disagree:", *wrong]))


def ways_of(context: Context, mesh: AirfoilMesh) -> Iterator[Way]:
    """Yield every way that is possible on a device; the first is the plainest."""
    solver = Airfoil(context, mesh, fused=False)
    allowed = [name for name in solver.res_calc.races.allowed if name in solver.bres_calc.races.allowed]
    for grade in _GRADES:
        schedules = [Schedule(deterministic=grade)]
        for name in allowed:
            if gradable(name, grade) and grade != "plan":  # a named strategy is of that grade by itself
                stages = (False, True) if context.device.items and name in _STAGED else (None,)
                schedules += [Schedule(strategy=name, deterministic=grade, stage=stage) for stage in stages]
        for schedule in schedules:
            for layout in _LAYOUTS:
                for fused in (False, True):
                    yield Way(schedule, layout, fused)


def _run(context: Context, mesh: AirfoilMesh, way: Way, iterations: int) -> tuple[float, npt.NDArray[Any]]:
    """Return the residual and the state after some iterations."""
    solver = Airfoil(context, mesh, schedule=way.schedule, fused=way.fused, layout=LAYOUTS[way.layout])
    for _ in range(iterations):
        solver.iterate()
    return solver.rms(), solver.q.read()
