"""What makes the fluxes of a scalar exact for linear fields, see `fluxloom.solvers.flow_corrections`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fluxloom.dsl.chain import Chain
from fluxloom.dsl.dats import Global
from fluxloom.dsl.loop import Loop
from fluxloom.fv.linear_kernels import oblique_scalar_flux, scalar_corrections
from fluxloom.fv.linear_operators import LinearOperators
from fluxloom.fv.scalar_transport import VALUE
from fluxloom.solvers.flow_corrections import FlowCorrections, MeanGradients, oblique_faces, oblique_sides
from fluxloom.solvers.flow_patches import patch_elements

if TYPE_CHECKING:
    from fluxloom.solvers.flow_scalar import FlowScalar

__all__ = ["ScalarCorrections"]


class ScalarCorrections:
    """The corrections of a scalar; its boundary elements with a given flux are at the feet of perpendiculars.

    Parameters
    ----------
    scalar
        Whose.
    corrections
        Of the flow that carries it.
    """

    def __init__(self, scalar: FlowScalar, corrections: FlowCorrections) -> None:
        self.scalar, self.corrections = scalar, corrections
        flow, name = scalar.flow, scalar.scalar.name
        feet = scalar.kinds != VALUE
        self.linear = LinearOperators(flow.matrices.operators, feet, np.ones(feet.size, dtype=bool))
        self.flux = flow.context.dat(flow.faces, name=f"{name}.oblique", shape=(1,))
        self.raised = flow.context.dat(flow.faces, name=f"{name}.alpha.raised")
        self._ahead = MeanGradients(flow, self.linear, corrections.means, f"{name}.gradient", 1)
        self._now: MeanGradients | None = None
        self._chains: dict[str, Chain] = {}

    def fluxes(self) -> list[Loop]:
        """Return the loops to the corrections of the fluxes, of the values ahead."""
        scalar, flow, known = self.scalar, self.scalar.flow, self.corrections
        half, name = known.half, scalar.scalar.name
        oblique = flow.spaces.faces.dat(oblique_faces(self.linear), f"{name}.faces")
        return [known.raising(scalar.alpha, self.raised), *self._ahead.of(scalar.ahead), Loop(
            scalar_corrections, flow.faces, half.entries, self._ahead.mean[half.pattern],
            known.velocity.mean[half.pattern], flow.us_ahead, scalar.alpha, known.extra, oblique, known.moment,
            known.normal, self.flux, d=flow.dimension,
        )]  # fmt: skip

    def sums(self) -> list[Loop]:
        """Return the loop that takes the corrections out of cells."""
        return [self.corrections.sums(self.flux, self.scalar.theta, 1)]

    def add_flux(self, patch: str, total: Global) -> None:
        """Add what two-point derivatives lack to what enters through a patch now."""
        scalar, flow = self.scalar, self.scalar.flow
        if patch not in self._chains:
            if self._now is None:
                self._now = MeanGradients(flow, self.linear, self.corrections.means, f"{scalar.scalar.name}.now", 1)
            sides, cells, oblique = oblique_sides(flow, self.linear)
            loop = Loop(
                oblique_scalar_flux, patch_elements(flow, patch), sides.entries, oblique, scalar.alpha[sides.pattern],
                flow.us[sides.pattern], self._now.mean[cells.pattern], total, d=flow.dimension,
            )  # fmt: skip
            self._chains[patch] = Chain([*self._now.of(scalar.theta), loop], name=f"{scalar.scalar.name}.oblique")
        self._chains[patch]()
