"""Forces of flow on the sides of a staggered grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.staggered import kernels as kernels
from fluxloom.fv.staggered.sides import SideWeights, corner_weights, side_weights
from fluxloom.solvers.flow_spaces import place_in
from fluxloom.solvers.staggered.flow import Staggered

__all__ = ["SideForce", "StaggeredForces"]

Array = npt.NDArray[np.float64]


_SUMS = 10
"""Sums of `fluxloom.fv.staggered.kernels.side_sums`."""


@dataclass(frozen=True)
class SideForce:
    """What a fluid of unit density does to some sides at a moment; in two dimensions for a span of 1.

    Attributes
    ----------
    pressure, friction : (d,)
        Parts of the force.
    moment : (3,)
        About the point that was given.
    flow, area
        Volume that leaves through the sides in a unit of time, and their area.
    mean_pressure, mean_total
        Means over the area: of the pressure, and of ``p + u^2 / 2``.
    """

    pressure: Array
    friction: Array
    moment: Array
    flow: float
    area: float
    mean_pressure: float
    mean_total: float


class StaggeredForces:
    """Friction and pressure of a fluid of unit density on some sides.

    Parameters
    ----------
    flow
        The flow.
    sides
        Names, as ``"ymin"``.
    about
        Point that the moment is about, ``(d,)``; the origin by default.

    Attributes
    ----------
    weights, loads
        Of each side, what its force is summed with, and what each of its places bears: forces of pressure and
        friction, and the pressure, ``(n, 2 d + 1)``.

    Raises
    ------
    SolverError
        If there is no such side, or the point does not fit.
    """

    def __init__(self, flow: Staggered, sides: Sequence[str], about: Sequence[float] = ()) -> None:
        known = list(flow.boundaries)
        if flow.moving is not None and flow.moving.in_space:
            raise SolverError("forces: on a staggered grid the force of the fluid is not known beside a force that "
                              "differs from place to place")  # fmt: skip
        self.flow, context = flow, flow.context
        self._about = np.array(place_in(about, flow.dimension))[: flow.dimension]
        self._total = context.scalar(np.zeros(flow.dimension), "force")
        self._sums = context.scalar(np.zeros(_SUMS), "sums")
        self._force = context.scalar(np.zeros(flow.dimension), "acting")
        self._loops: list[Loop] = []
        self._moments: list[Loop] = []
        self.weights: dict[str, SideWeights] = {}
        self.loads: dict[str, Dat] = {}
        for name in sides:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise SolverError(f"forces: there is no side {name!r}{did_you_mean(name, known)} (sides: {listed})")
            if name in self.weights:
                raise SolverError(f"forces: the side {name!r} is named twice")
            boundary = flow.boundaries[name]
            self.weights[name] = side_weights(flow.grid, name, flow.viscosity, boundary)
            self.loads[name] = self._add(name, self.weights[name])
            if boundary.wall:
                for weights in corner_weights(flow.grid, name, flow.viscosity):
                    self._add(f"{name}.corner", weights)
        self.chain = Chain([Reset(self._total), Reset(self._sums), *self._loops, *self._moments], name="forces")

    def _add(self, name: str, weights: SideWeights) -> Dat:
        """Add the loops over some places of a side; return what these bear."""
        flow, context, fields, d = self.flow, self.flow.context, self.flow.fields, self.flow.dimension
        potential, _ = flow.impulse()
        side = context.set(len(weights.places), name)
        places = np.stack([weights.places, weights.inner, weights.next], axis=1)
        pairs = context.map(side, fields.grid, places, "beyond, inner and next")
        places = (weights.arms - self._about).reshape(-1, d * d)
        friction, push, half, arms = (
            context.dat(side, values, "weights") for values in (weights.friction, weights.push, weights.half, places)
        )
        load = context.dat(side, name="load", shape=(2 * d + 1,))
        self._loops.append(Loop(
            kernels.side_force, side, fields.u[pairs], potential[pairs[1]], friction, push, half, self._force,
            load, self._total, d=d, scale=1.0, name=f"force on {name}",
        ))  # fmt: skip
        self._moments.append(Loop(
            kernels.side_sums, side, load, arms, push, fields.u[pairs], self._sums, d=d,
            upper=int(name.partition(".")[0].endswith("max")), name=f"moment on {name}",
        ))  # fmt: skip
        return load

    def take(self) -> None:
        """Let the device find the force of now; the pressure is that of the last stage."""
        _, scale = self.flow.impulse()
        self._force.value = self.flow.acting_force()
        for loop in self._loops:
            loop.set(scale=scale)
        self.chain()

    def collect(self) -> SideForce:
        """Return what `take` asked for last, means as ``sum p A / sum A``."""
        d, found = self.flow.dimension, Global.read_all([self._total, self._sums])
        total, sums = (np.array(values, dtype=np.float64) for values in found)
        flow, mean, square, area = sums[6:].tolist()
        return SideForce(
            sums[:d], total - sums[:d], sums[3:6], flow, area, mean / area, (mean + square) / area
        )  # fmt: skip

    def now(self) -> npt.NDArray[np.float64]:
        """Return the force, ``(d,)``; the pressure is that of the last stage."""
        self.take()
        return np.array(self._total.value, dtype=np.float64)
