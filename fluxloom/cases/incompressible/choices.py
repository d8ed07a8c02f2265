"""What tables of incompressible flow say, as solvers take it: velocities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fluxloom.cases.incompressible.tables import InitialVelocityTable
from fluxloom.cases.shared.wall_motion import velocity_values
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.flows.given import check_value
from fluxloom.fv.given import given_values
from fluxloom.fv.place_noise import place_noise

__all__ = ["initial_velocity", "velocity_noise"]

Array = npt.NDArray[np.float64]


def initial_velocity(table: InitialVelocityTable, d: int) -> Callable[[Array], Array]:
    """Return the initial velocity, with its noise."""
    parts, noise = velocity_values(table, "initial", d) or (0.0,) * d, velocity_noise(table, d)

    def smooth(places: Array) -> Array:
        """Return the velocity at places ``(n, d)``, ``(n, d)``, without noise; `CaseError` where it is not finite."""
        try:
            check_value("initial.velocity", parts, places, d)
        except SolverError as error:
            raise CaseError(str(error)) from None
        return given_values("initial", parts, places, d)

    return smooth if noise is None else lambda places: smooth(places) + noise(places)


def velocity_noise(table: InitialVelocityTable, d: int) -> Callable[[Array], Array] | None:
    """Return the noise of the initial velocity, a function of places; None: there is none."""
    return None if not table.noise else lambda places: table.noise * place_noise(places, d, table.seed)
