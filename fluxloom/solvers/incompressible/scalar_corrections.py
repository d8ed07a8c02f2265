"""What makes the fluxes of a scalar exact for linear fields, see `fluxloom.solvers.incompressible.corrections`."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.given import ConditionTable
from fluxloom.fv.incompressible.linear_kernels import oblique_scalar_flux, scalar_corrections
from fluxloom.fv.incompressible.linear_operators import LinearOperators
from fluxloom.fv.incompressible.projection_schemes import ProjectionScheme
from fluxloom.solvers.flow_spaces import Rows
from fluxloom.solvers.incompressible.corrections import (
    CorrectedFlow,
    FlowCorrections,
    MeanGradients,
    means_of,
    oblique_faces,
    oblique_sides,
)
from fluxloom.solvers.incompressible.given_forces import GivenForces

__all__ = ["CarryingFlow", "CorrectedScalar", "ScalarCorrections"]


class CarryingFlow(CorrectedFlow, Protocol):
    """What scalars take of a flow, see `fluxloom.solvers.incompressible.flow.Incompressible`."""

    corrections: FlowCorrections | None
    scheme: ProjectionScheme
    viscosity: float
    time: float
    boundary: Subset
    behind: TableMap
    transport: Rows
    entry_faces: Rows
    given: Dat
    weight: Dat
    acceleration: Global
    given_forces: GivenForces | None
    share: Global
    blend: Global


class CorrectedScalar(Protocol):
    """What the corrections take of a scalar, see `fluxloom.solvers.incompressible.scalar.FlowScalar`."""

    conditions: ConditionTable
    theta: Dat
    ahead: Dat
    alpha: Dat


class ScalarCorrections:
    """The corrections of a scalar; its boundary elements with a given flux are at the feet of perpendiculars.

    Parameters
    ----------
    scalar, name
        Whose.
    flow, corrections
        What carries it.
    """

    def __init__(
        self, scalar: CorrectedScalar, name: str, flow: CorrectedFlow, corrections: FlowCorrections
    ) -> None:
        self.scalar, self.name, self.flow, self.corrections = scalar, name, flow, corrections
        feet = ~scalar.conditions.prescribed
        still = (scalar.conditions.given == 0.0) & ~scalar.conditions.varies  # a flux that passes is no image
        mirrors = flow.matrices.mirrors & feet & still
        self.linear = LinearOperators(flow.matrices.operators, feet, np.ones(feet.size, dtype=bool), mirrors)
        same = all(flow.context.comm.allgather(np.array_equal(mirrors, flow.matrices.mirrors)))
        self._means = corrections.means if same else means_of(flow.context, flow.spaces, self.linear, f"{name}.means")
        self.flux = flow.context.dat(flow.faces, name=f"{name}.oblique", shape=(1,))
        self.raised = flow.context.dat(flow.faces, name=f"{name}.alpha.raised")
        self._ahead = MeanGradients(flow, self.linear, self._means, f"{name}.gradient", 1)
        self._now: MeanGradients | None = None
        self._chains: dict[str, Chain] = {}

    def fluxes(self) -> list[Loop]:
        """Return the loops to the corrections of the fluxes, of the values ahead."""
        scalar, flow, known = self.scalar, self.flow, self.corrections
        half, name = known.half, self.name
        oblique = flow.spaces.faces.dat(oblique_faces(self.linear), f"{name}.faces")
        return [known.raising(scalar.alpha, self.raised), *self._ahead.of(scalar.ahead), Loop(
            scalar_corrections, flow.faces, half.entries, self._ahead.mean[half.pattern],
            known.velocity.mean[half.pattern], flow.us_ahead, scalar.alpha, known.extra, oblique, known.moment,
            known.normal, self.flux, d=flow.dimension,
        ), *known.twisted_scalar(self._ahead.mean, self.flux)]  # fmt: skip

    def sums(self) -> list[Loop]:
        """Return the loop that takes the corrections out of cells."""
        return [self.corrections.sums(self.flux, self.scalar.theta, 1)]

    def add_flux(self, patch: str, over: Subset, entering: Dat, total: Global) -> None:
        """Add what two-point derivatives lack to what enters through a patch, some boundary elements, now."""
        scalar, flow = self.scalar, self.flow
        if patch not in self._chains:
            if self._now is None:
                self._now = MeanGradients(flow, self.linear, self._means, f"{self.name}.now", 1)
            sides, cells, oblique = oblique_sides(flow, self.linear)
            loop = Loop(
                oblique_scalar_flux, over, sides.entries, oblique, scalar.alpha[sides.pattern],
                flow.us[sides.pattern], self._now.mean[cells.pattern], entering, total, d=flow.dimension,
            )  # fmt: skip
            self._chains[patch] = Chain([*self._now.of(scalar.theta), loop], name=f"{self.name}.oblique")
        self._chains[patch]()
