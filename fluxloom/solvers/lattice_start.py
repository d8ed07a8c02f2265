"""Populations with which a lattice Boltzmann flow starts: local equilibrium."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.loop import Loop
from fluxloom.lbm.output import form_of
from fluxloom.lbm.steps_moments import equilibrium, equilibrium_ahead
from fluxloom.solvers.lattice_checks import check_start

if TYPE_CHECKING:
    from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["Start"]


class Start:
    """Sets the populations of a flow to equilibrium.

    Parameters
    ----------
    flow
        Whose populations are set.
    """

    def __init__(self, flow: LatticeBoltzmann) -> None:
        self._flow = flow

    def __call__(self, density: npt.ArrayLike, velocity: npt.ArrayLike) -> None:
        """Set density, velocity and populations; see `LatticeBoltzmann.initialise`."""
        flow = self._flow
        part = (tuple(flow.grid.shape),) if flow.context.ranked else ()
        check_start(density, velocity, flow.box.shape, *part)
        flow.memory.write(flow.excess, np.subtract(density, 1.0))
        flow.memory.write(flow.motion, velocity)
        if flow.field:  # half of it is in the velocity, as kernels with a uniform one see to themselves
            rho = 1.0 + flow.excess.read()[..., None]
            flow.motion.write(flow.motion.read() + 0.5 * flow.force_field.read() / rho)
        self._equilibrium()

    def set_force(self) -> None:
        """Take the force that acts everywhere now."""
        self._equilibrium.set(uniform=self._flow.constants.uniform)

    @cached_property
    def _equilibrium(self) -> Loop:
        flow = self._flow
        form, _ = form_of(flow.streaming, flow.lattice, 0)
        target = flow.space.populations(0)
        kernel, seen = (equilibrium_ahead, target[flow.ahead]) if form == "ahead" else (equilibrium, target)
        constants = flow.constants.of(kernel)
        return Loop(kernel, flow.memory.set, flow.excess, flow.motion, seen, schedule=flow.schedule, **constants)
