"""One stage of a time step of flow on a staggered grid: what runs before and after the solver of the pressure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.staggered import kernels as kernels
from fluxloom.solvers.staggered.fields import StaggeredFields
from fluxloom.solvers.staggered.given import StaggeredForce

__all__ = ["StageForm", "StaggeredStage"]


@dataclass(frozen=True)
class StageForm:
    """What all stages of a flow have in common.

    Attributes
    ----------
    viscosity, force
        Of the fluid; acceleration.
    kept, mean
        Axis along which the mean velocity is kept, -1: none; the velocity.
    inflow
        Volume that comes in, in unit time.
    moving
        A force in space and time beside the other one; None: there is none.
    """

    viscosity: float
    force: npt.NDArray[np.float64]
    kept: int
    mean: float
    inflow: float
    moving: StaggeredForce | None = None


class StaggeredStage:
    """The loops of a stage.

    Parameters
    ----------
    fields
        What they work on.
    form
        What stages have in common.

    Attributes
    ----------
    before, after
        What runs before and after the pressure is solved.
    looking
        The latter, which also measures how much the velocity changes.
    lagged
        What runs instead of ``after`` where the pressure is not solved but taken from the step before.
    """

    def __init__(self, fields: StaggeredFields, form: StageForm) -> None:
        f, table = fields, fields.constants
        x, y, z = (float(value) for value in [*form.force, 0.0][:3])
        self._momentum = Loop(
            kernels.momentum, f.grid, f.u[f.stencil], f.metric(f.u, f.stencil), f.inside, f.old, f.star, **table,
            pair=f.pair, nu=form.viscosity, now=0.0, before=0.0, fx=x, fy=y, fz=z,
        )  # fmt: skip
        around = f.star[f.upward], f.metric(f.star, f.upward)
        if form.kept < 0:
            source = [Loop(kernels.divergence, f.grid, *around, f.source, **table)]
        else:
            divergence = kernels.divergence_and_flow
            source = [
                Reset(f.flow),
                Loop(divergence, f.grid, *around, f.fluid, f.source, f.flow, **table, kept=form.kept),
            ]
        self._outflow, outflow = f.outflow_loops(form.inflow)
        self._push, pushed = None, list[Loop]()
        if (force := form.moving) is not None and force.in_space:
            self._push = Loop(kernels.add_force, f.grid, force.dat, f.inside, f.star, f.old, d=f.box.dimension, now=0.0)
            pushed = [*force.loops(), self._push]
        steps = [self._momentum, *pushed, *f.sides.through(), *outflow, *source]
        self.before = Chain(steps, name="momentum", fuse=False)
        self.after = self._correction(f, form, f.q, look=False)[1]
        self.looking = self._correction(f, form, f.q, look=True)[1]
        self._repeat, self.lagged = self._correction(f, form, f.impulse, look=False)

    @staticmethod
    def _correction(f: StaggeredFields, form: StageForm, potential: Dat, *, look: bool) -> tuple[Loop, Chain]:
        table = {**f.constants, "kept": form.kept, "mean": form.mean, "volume": f.box.volume, "part": 1.0}
        read = f.star, potential[f.downward], f.metric(f.star, f.downward), f.inside, f.flow
        if not look:
            correct = Loop(kernels.correct, f.grid, *read, f.u, **table)
            return correct, Chain([correct, *f.ghost_loops], name="correction", fuse=False)
        correct = Loop(kernels.correct_and_look, f.grid, *read, f.u, f.fluid, f.change, **table)
        return correct, Chain([Reset(f.change), correct, *f.ghost_loops], name="correction", fuse=False)

    def push(self, force: npt.NDArray[np.float64]) -> None:
        """Set a force that is the same everywhere."""
        self._momentum.set(**dict(zip(("fx", "fy", "fz"), force.tolist(), strict=False)))

    def weigh(self, part: float, now: float, before: float, lagged: float) -> None:
        """Set the length of the stage, the weights of the rates, and that of the pressure where it is not solved."""
        given = {"now": now, "before": before}
        if any(self._momentum.constants[name] != value for name, value in given.items()):
            self._momentum.set(**given)
        if self._push is not None and self._push.constants["now"] != now:
            self._push.set(now=now)
        if self._outflow is not None and self._outflow.constants["dt"] != part:
            self._outflow.set(dt=part)
        if self._repeat.constants["part"] != lagged:
            self._repeat.set(part=lagged)
