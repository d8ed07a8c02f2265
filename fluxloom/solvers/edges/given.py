"""What flow on edges is given in time: velocities at points of the boundary, the force, the viscosity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.chain import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges.patch_points import PatchPoints
from fluxloom.fv.given import parts_of
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.fv.incompressible.given_velocity import fastest, passing
from fluxloom.solvers.edges.boundary import EdgeBoundary, EdgePatch
from fluxloom.solvers.incompressible.types import balanced
from fluxloom.values.given_on import GivenOn

__all__ = ["EdgeVelocities"]

Array = npt.NDArray[np.float64]


class EdgeVelocities:
    """The velocities at points of the boundary that change in time: those in the middle and at the end of a step.

    Parameters
    ----------
    context, points
        Where they live.
    places : (n, d)
        Of the points.
    patches, boundaries
        Points of each patch, and what happens there.
    found
        What holds at the points.
    given : (d,)
        A dat on the points, which is written.
    closed
        Whether nothing leaves freely: then as much has to come in as goes out.

    Attributes
    ----------
    fastest
        The largest speed that was given since the start.
    """

    def __init__(
        self, context: Context, points: Set, places: Array, patches: Mapping[str, PatchPoints],
        boundaries: Mapping[str, EdgePatch], found: EdgeBoundary, given: Dat, closed: bool,
    ) -> None:  # fmt: skip
        self._given, self._values, d = given, [], places.shape[1]
        self.fastest = context.scalar(0.0, "given.fastest")
        self._sums, self._looks = context.scalar(np.zeros(2), "given.through"), list[Loop | Reset]()
        for name, chosen in found.varying.items():
            boundary = boundaries[name]
            assert isinstance(boundary, Boundary)
            assert boundary.prescribed is not None
            over, normals = context.subset(points, chosen, f"given.{name}"), None
            if boundary.wall:
                normals, patch = np.zeros_like(places), patches[name]
                normals[patch.points] = patch.areas / np.maximum(patch.size, np.finfo(float).tiny)[:, None]
            parts = parts_of(boundary.prescribed, d, f"patch {name!r}")
            values = GivenOn(context, over, places, parts, f"patch {name!r}", out=given, normals=normals, moments=2)
            self._values.append(values)
            self._looks.append(Loop(fastest, over, given, self.fastest, d=d, name=f"fastest.{name}"))
        self._closed = bool(closed and found.varying)
        if self._closed:
            self._looks += self._passing(context, points, places, patches, found)

    def _passing(
        self, context: Context, points: Set, places: Array, patches: Mapping[str, PatchPoints], found: EdgeBoundary
    ) -> list[Loop | Reset]:
        """Return the loop that sums what is let in and out. Collective."""
        areas, held = np.zeros_like(places), np.zeros(len(places), dtype=bool)
        for name in found.prescribed:
            areas[patches[name].points] += patches[name].areas
            held[patches[name].points] = True
        over = context.subset(points, np.flatnonzero(held), "given velocities")
        area = context.dat(points, areas, "given.areas")
        return [Reset(self._sums), Loop(passing, over, self._given, area, self._sums, d=places.shape[1])]

    def loops(self, moment: int) -> list[Loop | Reset]:
        """Return the loops to what is given in the middle, 0, or at the end, 1, of a step."""
        found: list[Loop | Reset] = [loop for values in self._values for loop in values.loops(moment)]
        return [*found, *self._looks] if moment else found

    def prepare(self, middle: float, end: float) -> None:
        """Say when the middle and the end of a step are."""
        for values in self._values:
            values.prepare([middle, end])

    def check(self, time: float) -> None:
        """Look at what the loops have found at the end of a step. Collective.

        Raises
        ------
        SolverError
            If a value is not finite, a wall moves along its normal, or more flows in than out and nothing is open.
        """
        for values in self._values:
            values.check()
        net, size = (float(value) for value in self._sums.value) if self._closed else (0.0, 0.0)
        if not balanced(net, size):
            raise SolverError(
                f"boundaries: at t = {time:g} the given velocities let {abs(net):.6g} more {'in' if net < 0 else 'out'}"
                ", and no patch is an Outflow(), where the flow is free"
            )

    def update(self, time: float) -> None:
        """Make them those of a time, of which `check` is told. Collective."""
        for values in self._values:
            values.update(time)
        for look in self._looks:
            look()
        self.prepare(time, time)
