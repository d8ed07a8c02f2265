"""How long the steps of a flow in time are, its velocity as fields, and what is drawn of it in the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.run.fields import Quantity
from fluxloom.run.flow import Picture

if TYPE_CHECKING:
    from fluxloom.linalg.status import Status, Stop

__all__ = [
    "COMPONENTS", "StepLengths", "check_bounded", "check_start", "flow_pictures", "speed_quantity", "total_pressure",
    "velocity_quantities",
]  # fmt: skip

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


def velocity_quantities(
    velocity: Callable[[], npt.NDArray[np.float64]], dimension: int, unit: str
) -> dict[str, Quantity]:  # fmt: skip
    """Return the components of what finds a velocity ``(n, d)``, with ``"m/s"`` or no unit, as fields."""
    return {
        name: Quantity(unit, f"velocity along {'xyz'[k]}", lambda k=k: velocity()[:, k].copy())
        for k, name in enumerate(COMPONENTS[:dimension])
    }


def speed_quantity(velocity: Callable[[], npt.NDArray[np.float64]], unit: str) -> dict[str, Quantity]:
    """Return the magnitude of what finds a velocity ``(n, d)`` as a field."""
    return {"speed": Quantity(unit, "magnitude of the velocity", lambda: np.linalg.norm(velocity(), axis=1))}


def total_pressure(
    pressure: Callable[[], npt.NDArray[np.float64]], velocity: Callable[[], npt.NDArray[np.float64]], unit: str
) -> dict[str, Quantity]:  # fmt: skip
    """Return ``p + |u|^2 / 2`` of what finds a kinematic pressure ``(n,)`` and a velocity ``(n, d)`` as a field."""
    return {
        "total_pressure": Quantity(
            unit, "kinematic pressure and half of the squared speed",
            lambda: pressure() + 0.5 * (velocity() ** 2).sum(axis=1),
        )
    }  # fmt: skip


def flow_pictures(name: str, time: float) -> Sequence[Picture]:
    """Return the pictures of a plane flow: speed, vorticity and pressure."""
    where = f"{name}, time {time:.6g}"
    return (
        Picture("speed", f"Speed: {where}", "speed", None, "viridis"),
        Picture("vorticity", f"Vorticity: {where}", "vorticity", None, "RdBu_r", 0.0),
        Picture("p", f"Pressure: {where}", "kinematic pressure", None, "RdBu_r", 0.0),
    )
