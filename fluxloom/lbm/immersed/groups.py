"""Groups of bodies that move in the same way: what each does in a step.

All of a step's forces are found in rounds. First elastic bodies spread theirs; then, in each round, every group with
wanted velocities interpolates, finds what is missing and spreads it: multi-direct forcing (K. Luo, Z. Wang, J. Fan,
K. Cen, Physical Review E 76 (2007) 066709) if there are several.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.immersed.markers import kernels as k
from fluxloom.lbm.immersed.markers.data import Carrier, Fields, MarkerData, Step, Timed
from fluxloom.lbm.immersed.markers.deltas import Delta
from fluxloom.lbm.immersed.markers.places import cross
from fluxloom.lbm.immersed.markers.rows import Rows
from fluxloom.lbm.immersed.markers.scatter import Scatter
from fluxloom.lbm.immersed.markers.spreading import MarkerWeights, interpolation, plane_weights
from fluxloom.lbm.immersed.motion import ImmersedBody

__all__ = ["FixedGroup", "Group", "plane"]

Values = npt.NDArray[np.float64]

_KEPT = ("x", "wanted", "total")
"""Values of markers that a state has; the others are found in every step."""


class Group(ABC):
    """Bodies that move in the same way.

    Attributes
    ----------
    markers
        Those of all bodies, one after the other.
    carrier
        Carries values between them and the cells.
    moves
        Whether markers ever leave their places.
    kind
        One word for the way they move.
    """

    moves = True
    carrier: Carrier

    def __init__(self, fields: Fields, bodies: Sequence[ImmersedBody], weights: Values) -> None:
        self.fields, self.bodies = fields, tuple(bodies)
        self.bounds = np.cumsum([0, *(body.markers.count for body in bodies)])
        positions = np.concatenate([body.markers.positions for body in bodies])
        wanted = np.concatenate([body.markers.velocities for body in bodies])
        self.kind = type(self).__name__.removesuffix("Group").lower()
        self.markers = MarkerData(fields, positions, wanted, weights, f"markers.{self.kind}")
        self._sum = Timed(fields.context, self._add, "sum over ranks")

    @property
    def marker_names(self) -> list[str]:
        """The body of each marker."""
        return [body.name for body in self.bodies for _ in range(body.markers.count)]

    def restart(self) -> None:  # noqa: B027 - a group that does not move has nothing to do
        """Go back to the first state."""

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the next step depends on, and what can be asked about the last one."""
        m = self.markers
        return {name: getattr(m, name).read() for name in _KEPT}

    def resume(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` returned."""
        for name in _KEPT:
            getattr(self.markers, name).write(state[name])

    def advance(self, time: int) -> None:  # noqa: B027
        """Do what the host does at the start of a step; after the first one, forces of the step before are known."""

    def drift(self) -> float:
        """Return a bound, in cells, of how far a marker has come along an axis since `settled`."""
        return 0.0

    def settled(self) -> None:  # noqa: B027
        """Take note that the support has been found for the markers as they are."""

    def place(self) -> Sequence[Step]:
        """Return what finds positions and weights at the start of a step."""
        return self.carrier.prepare()

    def sample(self) -> Sequence[Step]:
        """Return what sets the samples of the markers.

        On several ranks each interpolates from its own cells, and all get the sums: every rank has all markers and the
        same numbers of them, so that what is done with samples needs no messages.
        """
        steps = self.carrier.interpolate()
        return steps if self.fields.comm is None else (*steps, self._sum)

    def _add(self) -> None:
        """Sum the samples over ranks; collective."""
        sample, comm = self.markers.sample, self.fields.comm
        assert comm is not None
        sample.write(comm.reduce(sample.read(), "sum"))

    def push(self) -> Sequence[Step]:
        """Return what spreads forces that do not depend on the fluid."""
        return ()

    def correct(self, factor: float, *, again: bool) -> tuple[Sequence[Step], Sequence[Step]]:
        """Return what finds the force of a round, and what spreads it."""
        m = self.markers
        total = (None, m.total) if again else (m.total, None)
        loop = Loop(
            k.force_marker, m.set, m.sample, m.wanted, m.weight, m.pull, *total, factor=factor, dimensions=m.dimensions
        )
        return [*self.sample(), loop], self.carrier.spread()

    def finish(self) -> Sequence[Step]:
        """Return what follows when all forces are known."""
        return ()

    # ------------------------------------------------------------------------------------------ reports
    def of(self, name: str) -> slice:
        """Return the markers of a body."""
        at = [body.name for body in self.bodies].index(name)
        return slice(int(self.bounds[at]), int(self.bounds[at + 1]))

    def positions(self, name: str) -> Values:
        """Return the places of the markers of a body, ``(n, d)``; not wrapped round."""
        return self.markers.x.read()[self.of(name)].astype(np.float64)

    def velocities(self, name: str) -> Values:
        """Return the velocities that the markers of a body want, ``(n, d)``."""
        return self.markers.wanted.read()[self.of(name)].astype(np.float64)

    def given(self, name: str) -> Values:
        """Return what each marker of a body has given to the fluid in the last step, ``(n, d)``."""
        return self.markers.total.read()[self.of(name)].astype(np.float64)

    def pivot(self, name: str) -> Values:
        """Return the point about which torques of a body are taken."""
        x, measures = self.positions(name), self.bodies[[b.name for b in self.bodies].index(name)].markers.measures
        return np.average(x, axis=0, weights=measures)

    def torque(self, name: str) -> Values:
        """Return the torque ``-sum (X_k - X) x F_k`` of the fluid on a body in the last step."""
        return -cross(self.positions(name) - self.pivot(name), self.given(name)).sum(axis=0)


def plane(bodies: Sequence[ImmersedBody], delta: Delta) -> Values:
    """Return the weights that the markers of bodies have as those of planes."""
    return np.concatenate([plane_weights(delta, body.markers.measures) for body in bodies])


class FixedGroup(Group):
    """Bodies that stay where they are; their matrices are found once.

    Parameters
    ----------
    weights
        How those of the markers are found.
    scattered
        Whether values are carried at computed addresses, as with bodies that move.
    """

    moves = False

    def __init__(
        self, fields: Fields, bodies: Sequence[ImmersedBody], delta: Delta, weights: MarkerWeights, *,
        scattered: bool = False,
    ) -> None:  # fmt: skip
        names = [body.name for body in bodies for _ in range(body.markers.count)]
        matrix = interpolation(fields.box, delta, np.concatenate([b.markers.positions for b in bodies]), names)
        self.epsilon = weights(matrix, plane(bodies, delta))
        super().__init__(fields, bodies, self.epsilon)
        self.carrier = Scatter(self.markers, delta) if scattered else Rows(self.markers, matrix)
