"""Populations with which a lattice Boltzmann flow starts: local equilibrium."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.body_force import UniformForce
from fluxloom.lbm.streaming.steps_moments import equilibrium
from fluxloom.solvers.lattice.checks import check_start
from fluxloom.solvers.lattice.values import LatticeValues

__all__ = ["Start"]


class Start:
    """Sets the populations of a flow to equilibrium.

    Parameters
    ----------
    values
        Those of the flow.
    """

    def __init__(self, values: LatticeValues) -> None:
        self._values = values

    def __call__(self, density: npt.ArrayLike, velocity: npt.ArrayLike) -> None:
        """Set density, velocity and populations; see `LatticeBoltzmann.initialise`."""
        values, space = self._values, self._values.space
        part = (tuple(space.grid.shape),) if space.context.distributed else ()
        check_start(density, velocity, space.box.shape, *part)
        space.memory.write(values.excess, np.subtract(density, 1.0))
        space.memory.write(values.motion, velocity)
        if values.field is not None:  # half of it is in the velocity, as kernels with a uniform one see to themselves
            rho = 1.0 + values.excess.read()[..., None]
            values.motion.write(values.motion.read() + 0.5 * values.field.read() / rho)
        self._equilibrium()

    def set_force(self, uniform: UniformForce | None) -> None:
        """Take another force that acts everywhere."""
        self._equilibrium.set(uniform=uniform)

    @cached_property
    def _equilibrium(self) -> Loop:
        values = self._values
        seen, known = values.space.seen(0)
        constants = values.constants.of(equilibrium, stored=known["stored"])
        over = values.memory.set
        return Loop(equilibrium, over, values.excess, values.motion, seen, schedule=values.schedule, **constants)
