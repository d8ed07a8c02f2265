r"""What smooths on a level of multigrid for a compressible flow: explicit stages, or implicit ones solved by sweeps.

A step of the implicit ones is, from the states ``w`` and with parts ``a_k`` of which the last is 1,

.. math:: \Big(\frac{V}{\Delta t} \frac{\partial U}{\partial w} - \frac{\partial R}{\partial w}\Big) z_k
          = a_k R(w_{k-1}), \quad w_k = w + z_k, \quad w_0 = w

with the derivative of a scheme of first order at ``w`` (`fluxloom.fv.compressible.implicit`), solved for by some sweeps
of coloured symmetric Gauss-Seidel. With one stage alone changes of second order between neighbours grow at CFL numbers
at which two or three damp them.

References
----------
C.-C. Rossow: *Efficient computation of compressible flows*. J. Comput. Phys. 220, 2007.
R. C. Swanson, E. Turkel, C.-C. Rossow: *Convergence acceleration of Runge-Kutta schemes for solving the Navier-Stokes
equations*. J. Comput. Phys. 224, 2007 (implicit stages, a linearisation of first order, in multigrid).
"""

from __future__ import annotations

from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.compressible.multigrid import paced, part_of, stepped
from fluxloom.linalg.vectors import copy
from fluxloom.solvers.compressible.flow import CompressibleFlow
from fluxloom.solvers.compressible.sweeps import Sweeps

__all__ = ["ImplicitStages", "Stages"]

_PARTS = (0.4, 1.0)
"""Of the residual, one a stage."""
_CHANGE = 0.3
"""Part of themselves by which density and pressure change at most in a stage."""


class Stages:
    """Explicit stages, those of the scheme of a flow."""

    def __init__(self, flow: CompressibleFlow) -> None:
        self.flow, self._cfl = flow, flow.cfl

    def step(self) -> None:
        """Make a step, guarded where cells were lost before."""
        guard = self.flow.positivity
        (guard.iterate if guard.guarding else self.flow.iteration)()

    def set_cfl(self, part: float) -> None:
        """Take a part of the CFL number of the scheme."""
        self.flow.set_cfl(part * self._cfl)


class ImplicitStages:
    """Implicit stages; see the module.

    Parameters
    ----------
    flow
        Whose states; its residual may be one of a coarse level.
    cfl
        The step of each cell is as in `CompressibleScheme`.
    sweeps
        Forward and backward ones of each stage.
    """

    def __init__(self, flow: CompressibleFlow, cfl: float, sweeps: int) -> None:
        self.flow, self._cfl = flow, cfl
        self.sweeps = Sweeps(flow, sweeps)
        nv, over = flow.components, flow.elements
        self._trial = flow.context.dat(over, name="trial", shape=(nv,), layout=flow.w.layout)
        self._rate = Loop(paced, over, flow.speed, flow.volume, self.sweeps.rate, cfl=cfl)
        self._linearise = Chain([self._rate, *self.sweeps.linearise()], fuse=False, name="smoother.linearise")
        self._rights = [Loop(part_of, over, flow.res, self.sweeps.r, part=part, nv=nv) for part in _PARTS]
        self._move = Loop(stepped, over, flow.w, self.sweeps.z, self._trial, most=_CHANGE, nv=nv, d=flow.dimension)
        self._keep = Loop(copy, over, self._trial, flow.w, systems=nv)
        self._finds: dict[tuple[bool, bool], Chain] = {}

    def step(self) -> None:
        """Make a step."""
        for stage, right in enumerate(self._rights):
            self._find(first=stage == 0)
            if stage == 0:
                self._linearise()
            right()
            self.sweeps.solve()
            self._move()
        self._keep()

    def set_cfl(self, part: float) -> None:
        """Take a part of the CFL number."""
        self._rate.set(cfl=part * self._cfl)

    def _find(self, first: bool) -> None:
        """Find the residual of the states of the flow, or of those of the stage before."""
        flow, key = self.flow, (first, self.flow.frozen)
        if key not in self._finds:
            loops = flow.right_hand_side(flow.w if first else self._trial, limited=not flow.frozen)
            self._finds[key] = Chain(loops, name="smoother.residual")
        self._finds[key]()
