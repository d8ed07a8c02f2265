"""A force that keeps the mean velocity of a flow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import total_of_ranks
from fluxloom.solvers.incompressible.flow import Incompressible

__all__ = ["MeanVelocity"]


class MeanVelocity:
    """A uniform force, chosen anew before every step such that the mean velocity is what it should be behind it.

    With ``D`` what friction took from the mean in the last step, ``D = f - (U - U_old) / dt_old``, the next force is
    ``f = D + (U_wanted - U) / dt``.

    Parameters
    ----------
    flow
        The solver, whose force is replaced.
    wanted
        Mean velocity of the volume, ``(d,)``; a component that is zero has no force.

    Raises
    ------
    SolverError
        If there are not as many numbers as dimensions, or all of them are zero.

    References
    ----------
    C. Benocci, A. Pinelli: *The role of the forcing term in the large eddy simulation of equilibrium channel flow*.
    Engineering Turbulence Modelling and Experiments, Elsevier 1990, pp. 287-296.
    """

    remembers = ("force", "_drag", "_before")

    def __init__(self, flow: Incompressible, wanted: Sequence[float]) -> None:
        self.flow, self.wanted = flow, np.asarray(wanted, dtype=np.float64)
        if self.wanted.shape != (flow.dimension,) or not np.isfinite(self.wanted).all() or not self.wanted.any():
            raise SolverError(
                f"mean velocity: {flow.dimension} finite numbers are wanted, of which one is not zero, not {wanted!r}"
            )
        if flow.given_forces is not None and flow.given_forces.acceleration is not None:
            raise SolverError("mean velocity: the flow has a force that changes in space or time: leave one out")
        cv = flow.volumes
        mine = cv.volumes[: cv.owned, None]
        self._volume = float(total_of_ranks(flow.context, mine[:, 0].sum(keepdims=True), mine)[0])
        self._drag: npt.NDArray[np.float64] = np.zeros(flow.dimension)
        self._before: npt.NDArray[np.float64] | None = None
        self.force: npt.NDArray[np.float64] = np.zeros(flow.dimension)

    def before(self, dt: float) -> None:
        """Set the force of a step of length ``dt``, ``f = D + (U - mean(u)) / dt``; to be called before each step.

        ``D = f - (mean(u) - mean(u_before)) / dt`` is what the last step lost.
        """
        mean = self.flow.state().momentum / self._volume
        if self._before is not None:
            self._drag = self.force - (mean - self._before) / self.flow.dt
        self._before = mean
        self.force = np.where(self.wanted != 0.0, self._drag + (self.wanted - mean) / dt, 0.0)
        self.flow.acceleration.value = self.force
