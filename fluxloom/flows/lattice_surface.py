"""Forces and torques on sides and bodies of a lattice Boltzmann flow, in physical units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.flows.lattice_sums import KeptNumbers, KeptValues
from fluxloom.flows.lattice_units import Units
from fluxloom.lbm.boundaries import Wall
from fluxloom.run.measures import Loads
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["LatticeSurface"]

Array = npt.NDArray[np.float64]


class LatticeSurface:
    """Walls and bodies on which the flow acts, by the exchange of momentum (`fluxloom.run.measures.Surface`).

    The exchange knows no parts of pressure and friction, and the area of no body: they are not a number.

    Parameters
    ----------
    flow, numbers
        What is measured, and what is asked for forces.
    units
        Of the flow.
    patches
        Names of walls, bodies and immersed bodies.
    about
        Point of the moment; empty: the origin, and without a number where no torque is measured.

    Raises
    ------
    SolverError
        If there is none of a name, or its force, or its torque where a point is given, is not measured.
    """

    def __init__(
        self, flow: LatticeBoltzmann, numbers: KeptNumbers, units: Units, patches: Sequence[str], about: Sequence[float]
    ) -> None:
        d = units.dimension
        if len(about) not in (0, d):
            raise SolverError(f"about: a point has {d} coordinates, not {len(about)}")
        self._flow, self._numbers, self._units = flow, numbers, units
        self.patches: Sequence[str] = tuple(patches)
        self._about = np.array(list(about) or [0.0] * d)
        for name in self.patches:
            numbers.measure(name)
        lacking = [name for name in self.patches if not self._immersed(name) and self._wall(name).center is None]
        if len(about) and lacking:
            raise SolverError(f"no torque is measured on {lacking[0]!r}: make its body, or the side, with torque=True")
        self._turns = not lacking
        self._kept: KeptValues | None = None
        self._asked: dict[str, Array] | None = None

    def _immersed(self, name: str) -> bool:
        return self._flow.immersed is not None and name in self._flow.immersed.names

    def _wall(self, name: str) -> Wall:
        found = self._flow.conditions.given[name]
        assert isinstance(found, Wall)
        return found

    def take(self) -> None:
        """Let the device find the sums of now, or of the step that the flow looks back at."""
        numbers = self._numbers
        if numbers.apart and not numbers.back and self._flow.steps:
            if self._kept is None:
                self._kept = numbers.keep(self.patches)
            self._kept.take()
            self._asked = None
            return
        found = {f"force on {name}": numbers.force_on(name) for name in self.patches}
        if self._turns:
            found |= {f"torque on {name}": numbers.torque_on(name) for name in self.patches}
        self._asked = found

    def collect(self) -> Loads:
        """Return what `take` asked for last."""
        if self._asked is None:
            assert self._kept is not None
            self._asked = self._kept.values()
        d, units, found = self._units.dimension, self._units, self._asked
        force, moment = np.zeros(d), np.zeros(3)
        for name in self.patches:
            own = found[f"force on {name}"][::-1] * units.force
            force += own
            if self._turns:
                torque = found[f"torque on {name}"][::-1] * units.force * units.dx
                moment[3 - torque.size :] += torque
                arm = np.zeros((2, 3))
                arm[:, :d] = self._center(name) - self._about, own
                moment += np.cross(*arm)
        lost = np.full(d, np.nan)
        moment = moment if self._turns else np.full(3, np.nan)
        return Loads(lost, lost, moment, 0.0, np.nan, total=force, turns=self._turns)

    def _center(self, name: str) -> Array:
        """Return the point that a torque is about, x first."""
        center = self._flow.immersed.centre(name) if self._immersed(name) else self._wall(name).center
        return np.array([x[0] for x in self._units.points(np.asarray(center, dtype=np.float64)[None])])

    def faces(self) -> Mapping[str, Array]:
        """Raise `SolverError`: walls of a lattice are links between cells, not faces."""
        raise SolverError("walls of a lattice are links between cells: there are no values of faces")
