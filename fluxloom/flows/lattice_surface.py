"""Forces and torques on sides and bodies of a lattice Boltzmann flow, and what passes its sides, in physical units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.flows.lattice_openings import Opening, side_area
from fluxloom.flows.lattice_sums import KeptNumbers, KeptValues
from fluxloom.flows.lattice_units import Units
from fluxloom.lbm.boundaries import Wall
from fluxloom.lbm.box import side_names
from fluxloom.run.measures import Loads
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["LatticeSurface"]

Array = npt.NDArray[np.float64]


class LatticeSurface:
    """Sides and bodies as a surface (`fluxloom.run.measures.Surface`).

    Forces and torques are those of walls and bodies, by the exchange of momentum, which knows no parts of pressure and
    friction, and the area of no body: they are not a number. Of sides through which fluid flows there are sums over the
    cells along them, and no force.

    Parameters
    ----------
    flow, numbers
        What is measured, and what is asked for forces.
    units
        Of the flow.
    patches
        Names of sides, bodies and immersed bodies.
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
        given = flow.conditions.given
        self._openings = [
            Opening(flow, units, name) for name in patches if name in given and not isinstance(given[name], Wall)
        ]
        self._walls = [name for name in patches if name not in given or isinstance(given[name], Wall)]
        for name in self._walls:
            numbers.measure(name)
        lacking = [name for name in self._walls if not self._immersed(name) and self._wall(name).center is None]
        if len(about) and lacking:
            raise SolverError(f"no torque is measured on {lacking[0]!r}: make its body, or the side, with torque=True")
        self._turns = not lacking and not self._openings
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
        for opening in self._openings:
            opening.take()
        numbers = self._numbers
        if self._walls and numbers.apart and not numbers.back and self._flow.steps:
            if self._kept is None:
                self._kept = numbers.keep(self._walls)
            self._kept.take()
            self._asked = None
            return
        found = {f"force on {name}": numbers.force_on(name) for name in self._walls}
        if self._turns:
            found |= {f"torque on {name}": numbers.torque_on(name) for name in self._walls}
        self._asked = found

    def collect(self) -> Loads:
        """Return what `take` asked for last."""
        d, units = self._units.dimension, self._units
        if self._asked is None:
            assert self._kept is not None
            self._asked = self._kept.values()
        force, moment, lost = np.zeros(d), np.zeros(3), np.full(d, np.nan)
        for name in self._walls:
            own = self._asked[f"force on {name}"][::-1] * units.force
            force += own
            if self._turns:
                torque = self._asked[f"torque on {name}"][::-1] * units.force * units.dx
                moment[3 - torque.size :] += torque
                arm = np.zeros((2, 3))
                arm[:, :d] = self._center(name) - self._about, own
                moment += np.cross(arm[0], arm[1])
        passed = [opening.collect() for opening in self._openings]
        sides, area = side_names(d), sum(one.area for one in passed)
        means: dict[str, float] = {}
        if passed and not self._walls:
            means = {"p": sum(one.pressure for one in passed) / area}
            means["total_pressure"] = sum(one.total for one in passed) / area
        area += sum(side_area(self._flow, units, name) if name in sides else np.nan for name in self._walls)
        return Loads(
            lost, lost, moment if self._turns else np.full(3, np.nan), sum(one.flow for one in passed), area,
            means=means, total=lost if passed else force, turns=self._turns,
        )  # fmt: skip

    def _center(self, name: str) -> Array:
        """Return the point that a torque is about, x first."""
        center = self._flow.immersed.centre(name) if self._immersed(name) else self._wall(name).center
        return np.array([x[0] for x in self._units.points(np.asarray(center, dtype=np.float64)[None])])

    def carried(self) -> Mapping[str, tuple[float, float]]:
        """Return nothing: no scalars are carried."""
        return {}

    def faces(self) -> Mapping[str, Array]:
        """Raise `SolverError`: walls of a lattice are links between cells, not faces."""
        raise SolverError("walls of a lattice are links between cells: there are no values of faces")
