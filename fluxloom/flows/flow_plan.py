"""How long the steps of a flow in time are, and what is drawn of it in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluxloom.run.flow import Picture

__all__ = ["COMPONENTS", "StepLengths", "flow_pictures"]

COMPONENTS = ("u", "v", "w")
"""Fields of the velocity."""


@dataclass(frozen=True)
class StepLengths:
    """How long steps are.

    Attributes
    ----------
    dt
        Length of a step; 0: the largest stable one, of `courant` and `diffusion`.
    courant, diffusion
        As in the solver's ``stable_step``.
    """

    dt: float = 0.0
    courant: float = 0.35
    diffusion: float = 0.2


def flow_pictures(name: str, time: float) -> Sequence[Picture]:
    """Return the pictures of a plane flow: speed, vorticity and pressure."""
    where = f"{name}, time {time:.6g}"
    return (
        Picture("speed", f"Speed: {where}", "speed", None, "viridis"),
        Picture("vorticity", f"Vorticity: {where}", "vorticity", None, "RdBu_r", 0.0),
        Picture("p", f"Pressure: {where}", "kinematic pressure", None, "RdBu_r", 0.0),
    )
