"""The linear system of a Newton step of a compressible flow, with products by differences of its residual."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.newton_kernels import derivative, measure, perturb, scaled
from fluxloom.linalg.krylov.gmres import Arnoldi
from fluxloom.linalg.status import Status, judged
from fluxloom.solvers.compressible.sweeps import Sweeps

if TYPE_CHECKING:
    from fluxloom.solvers.compressible.flow import CompressibleFlow

__all__ = ["NewtonSystem"]


class NewtonSystem:
    r"""One cycle of GMRES (`fluxloom.linalg.krylov.gmres`) for :math:`J z = R`, preconditioned from the right.

    The product is that of the full residual,

    .. math:: J z = \frac{V}{\Delta t} \frac{\partial U}{\partial w} z - \frac{R(w + \epsilon z) - R(w)}{\epsilon},

    ``eps`` such that ``eps z`` is, as root of a mean square, a ``part`` of the size of the variables.

    Parameters
    ----------
    flow, sweeps
        The equations, and what preconditions them.
    rows, columns
        Inverses of the sizes of the components of a residual and of a state.
    base, trial, find
        ``R(w)``; states that are free to be used; what finds the flow's residual ``res`` of these.
    vectors
        At most in a cycle.
    cells
        Of all ranks.
    part
        Of perturbations.
    """

    forgets = ("y",)

    def __init__(
        self, flow: CompressibleFlow, sweeps: Sweeps, rows: Global, columns: Global, base: Dat, trial: Dat,
        find: Callable[[], None],
        vectors: int,
        cells: int,
        part: float = 1e-7,
    ) -> None:  # fmt: skip
        context, over, nv = flow.context, flow.elements, flow.components
        self.sweeps, self.find = sweeps, find
        self.y = context.dat(over, name="y", shape=(nv,), layout=flow.w.layout)
        self.space = Arnoldi(self.y, sweeps.r, vectors, rows)
        self.loops = self.space.loops
        self.square = context.scalar(0.0, "square")
        count = float(cells * nv)
        common: dict[str, Any] = {"nv": nv}
        self._begin = Chain(
            [Reset(self.space.left), Loop(scaled, over, base, rows, self.y, self.space.left, **common)],
            name="krylov.begin",
        )
        self._perturb = Chain([
            Reset(self.square), Loop(measure, over, sweeps.z, columns, self.square, **common),
            Loop(perturb, over, flow.w, sweeps.z, self.square, trial, count=count, part=part, **common),
        ], fuse=False, name="krylov.perturb")  # fmt: skip
        self._product = Loop(
            derivative, over, flow.w, sweeps.z, base, flow.res, sweeps.rate, rows, self.square, self.y,
            gamma=flow.gas.gamma, count=count, part=part, d=flow.dimension, **common,
        )  # fmt: skip

    def solve(self, tolerance: float) -> Status:
        """Find increments whose linear residual is a part ``tolerance`` of the right-hand side, or as many can.

        Returns
        -------
        Status
            ``residual`` is a part of the right-hand side, whose norm counts as 1; NaN where a product was not finite.
        """
        self._begin()
        norm = sqrt(float(self.space.left.value))
        weights, rests = self.space.cycle(norm, tolerance, self._differences)
        status = judged(np.array([[1.0], *([rest] for rest in rests)]), np.ones(1), np.array([tolerance]))[0]
        if status.reason != "not finite":
            self.space.combine(weights * norm)
            self.sweeps.solve()
        return status

    def _differences(self) -> None:
        """Form the product of what stands for a vector, by sweeps and a difference of residuals."""
        self.sweeps.solve()
        self._perturb()
        self.find()
        self._product()
