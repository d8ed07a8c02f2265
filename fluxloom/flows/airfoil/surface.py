"""The wall of the Airfoil benchmark as a surface that monitors measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.run.flow_run import rows_in_order
from fluxloom.run.measures import Loads
from fluxloom.solvers.airfoil.flow import Airfoil
from fluxloom.solvers.airfoil.forces import PATCH, AirfoilForces

__all__ = ["AirfoilSurface"]

Array = npt.NDArray[np.float64]


class AirfoilSurface:
    """The wall; see `fluxloom.run.measures.Surface`. The pressure of the free stream is left out of the force.

    Raises
    ------
    SolverError
        If another patch is wanted.
    """

    def __init__(self, solver: Airfoil, patches: Sequence[str], about: Sequence[float]) -> None:
        for name in patches:
            if name != PATCH:
                raise SolverError(f"no patch {name!r}{did_you_mean(name, [PATCH])} (patches: {PATCH})")
        self.patches = tuple(patches)
        self._solver, self._forces = solver, AirfoilForces(solver, about)

    def take(self) -> None:
        """Let the device find the sums of now. Collective."""
        self._forces.take()

    def collect(self) -> Loads:
        """Return what `take` asked for last. Collective."""
        found = self._forces.collect()
        moment = np.array([0.0, 0.0, found.moment])
        return Loads(found.force, np.zeros(2), moment, 0.0, found.area, means={"p": found.mean_pressure})

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return nothing: there are no scalars."""
        return {}

    def faces(self) -> Mapping[str, Array]:
        """Return places, normals ``A / |A|``, lengths ``|A|`` and the pressure of the edges, on rank 0. Collective."""
        self.take()
        rows = rows_in_order(self._solver.context.comm, *self._forces.edges())
        if self._solver.context.comm.rank:
            return {}
        area = np.linalg.norm(rows[:, 2:4], axis=1)
        return {
            "x": rows[:, 0], "y": rows[:, 1], "nx": rows[:, 2] / area, "ny": rows[:, 3] / area, "area": area,
            "p": rows[:, 4],
        }  # fmt: skip
