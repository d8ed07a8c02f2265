"""How a case of incompressible flow in time runs, and what is drawn of it in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluxloom.app.application import Picture

__all__ = ["COMPONENTS", "FlowPlan", "flow_pictures"]

COMPONENTS = ("u", "v", "w")
"""Fields of the velocity."""


@dataclass(frozen=True)
class FlowPlan:
    """How a case runs.

    Attributes
    ----------
    name
        Of the case.
    dt
        Length of a step; 0: the largest stable one, of `courant` and `diffusion`.
    end, steady
        Time, and residual, at which the run ends; 0: there is none.
    courant, diffusion
        As in the solver's ``stable_step``.
    mean_velocity
        Of the volume, which the force keeps, component by component; 0: no force. Empty: the force stays as it is.
    history
        Steps between two lines of ``history.csv``; 0: no such file.
    """

    name: str
    dt: float = 0.0
    end: float = 0.0
    steady: float = 0.0
    courant: float = 0.35
    diffusion: float = 0.2
    mean_velocity: Sequence[float] = ()
    history: int = 0


def flow_pictures(name: str, time: float) -> Sequence[Picture]:
    """Return the pictures of a plane flow: speed, vorticity and pressure."""
    where = f"{name}, time {time:.6g}"
    return (
        Picture("speed", f"Speed: {where}", "speed", None, "viridis"),
        Picture("vorticity", f"Vorticity: {where}", "vorticity", None, "RdBu_r", 0.0),
        Picture("p", f"Pressure: {where}", "kinematic pressure", None, "RdBu_r", 0.0),
    )
