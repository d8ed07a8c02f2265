"""The budget of kinetic energy of a flow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.incompressible.dissipation import dissipation
from fluxloom.fv.incompressible.linear_kernels import oblique_dissipation
from fluxloom.fv.incompressible.viscosity_kernels import stress_work
from fluxloom.solvers.incompressible.corrections import MeanGradients
from fluxloom.solvers.incompressible.flow import Incompressible

__all__ = ["Energy", "EnergyBudget"]


@dataclass(frozen=True)
class Energy:
    """Kinetic energy at a moment, integrals over the volume.

    Attributes
    ----------
    time
        Of the moment.
    kinetic
        ``sum Omega u . u / 2``.
    dissipation
        ``u . D(nu_s) u``: what viscosity takes in unit time, that of eddies and friction at walls too.
    """

    time: float
    kinetic: float
    dissipation: float


class EnergyBudget:
    """Kinetic energy and dissipation, with the operators of the solver.

    Without walls that move, inflow and force, ``-dE/dt`` of the exact solution of the discrete equations is the
    dissipation; what differs is the doing of the steps in time, and of the pressure, which is not exactly at the places
    of the velocity.

    Parameters
    ----------
    flow
        The solver.
    """

    def __init__(self, flow: Incompressible) -> None:
        self.flow = flow
        context, cv, spaces = flow.context, flow.volumes, flow.spaces
        mine = np.array([cv.volumes[: cv.owned].sum()])
        self.volume = float(context.comm.reduce(mine, "sum")[0])
        numbers = spaces.elements.local(cv.faces[spaces.faces.owned])
        ends = context.map(flow.faces, flow.elements, numbers, "ends")
        spread = spaces.faces.dat(cv.area / cv.spacing, "spread")
        self._total = context.scalar(0.0, "dissipation")
        loop = Loop(dissipation, flow.faces, flow.u[ends], spread, flow.nus, self._total, d=flow.dimension)
        more, given = self._oblique(ends), flow.given_viscosity
        if given is not None and given.in_space:
            more += [*given.stress(flow.u), Loop(stress_work, flow.faces, flow.u[ends], given.flux, self._total,
                                                 d=flow.dimension)]  # fmt: skip
        self.chain = Chain([Reset(self._total), loop, *more], name="dissipation")

    def _oblique(self, ends: TableMap) -> list[Loop]:
        """Return the loops to what two-point derivatives lack."""
        flow, known = self.flow, self.flow.corrections
        if known is None:
            return []
        g = MeanGradients(flow, flow.matrices.velocity_operators, known.means, "dissipation.velocity", flow.dimension)
        half = known.half
        return [*g.of(flow.u), Loop(oblique_dissipation, flow.faces, flow.u[ends], half.entries, g.mean[half.pattern],
                                    known.oblique, flow.nus, self._total, d=flow.dimension)]  # fmt: skip

    def now(self) -> Energy:
        """Return the budget of this moment."""
        state = self.flow.state()
        self.chain()
        return Energy(state.time, state.kinetic_energy, float(self._total.value))
