"""How long the steps of a flow in time are, and what is drawn of it in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from fluxloom.core.errors import SolverError
from fluxloom.linalg.status import Status, Stop
from fluxloom.run.flow import Picture

__all__ = ["COMPONENTS", "StepLengths", "check_bounded", "check_start", "flow_pictures"]

COMPONENTS = ("u", "v", "w")
"""Fields of the velocity."""


@dataclass(frozen=True)
class StepLengths:
    """How long steps are.

    Attributes
    ----------
    dt
        Length of a step; 0: the largest stable one, chosen anew at every step, of `courant` and `diffusion`.
    courant, diffusion
        What the largest stable step may be of the bounds of convection and of friction; 0: as the solver has it.

    Raises
    ------
    SolverError
        If a number is negative.
    """

    dt: float = 0.0
    courant: float = 0.0
    diffusion: float = 0.0

    def __post_init__(self) -> None:
        for name in ("dt", "courant", "diffusion"):
            if not 0.0 <= (value := getattr(self, name)) < inf:
                raise SolverError(f"steps: {name}: a number of at least 0 is wanted, not {value!r}")

    def bounds(self, courant: float, diffusion: float = 0.0) -> StepLengths:
        """Return them with numbers of a solver where there are none."""
        return replace(self, courant=self.courant or courant, diffusion=self.diffusion or diffusion)


def check_start(status: Status, stop: Stop) -> None:
    """Raise `SolverError` unless the velocity at the start has no divergence."""
    if not status.converged:
        raise SolverError(
            f"iterations: {stop.iterations} do not suffice to make the initial velocity free of divergence; raise them "
            "or choose another preconditioner"
        )


def check_bounded(bounded: bool) -> None:
    """Raise `SolverError` where the largest stable step is wanted, and there is none."""
    if not bounded:
        raise SolverError("dt: a fluid at rest without viscosity has no largest stable step: give dt")


def flow_pictures(name: str, time: float) -> Sequence[Picture]:
    """Return the pictures of a plane flow: speed, vorticity and pressure."""
    where = f"{name}, time {time:.6g}"
    return (
        Picture("speed", f"Speed: {where}", "speed", None, "viridis"),
        Picture("vorticity", f"Vorticity: {where}", "vorticity", None, "RdBu_r", 0.0),
        Picture("p", f"Pressure: {where}", "kinematic pressure", None, "RdBu_r", 0.0),
    )
