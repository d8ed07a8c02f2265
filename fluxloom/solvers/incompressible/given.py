"""Velocities that a flow is given at its boundaries and that change in time: kept up to date, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.chain import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.fv.given import changes, parts_of
from fluxloom.fv.incompressible.boundary import Boundary, FlowConditions
from fluxloom.fv.incompressible.given_velocity import fastest, passing, push_behind, rising
from fluxloom.solvers.flow_spaces import FlowSpaces, patch_elements
from fluxloom.solvers.incompressible.types import balanced
from fluxloom.values.given_on import GivenOn

__all__ = ["GivenVelocities", "changing_patches"]

Array = npt.NDArray[np.float64]


class _Flow(Protocol):
    """What velocities are given to."""

    context: Context
    volumes: ControlVolumes
    dimension: int
    conditions: FlowConditions
    boundaries: Mapping[str, Boundary]
    spaces: FlowSpaces
    elements: Set
    given: Dat
    normal: Dat
    u: Dat
    behind: TableMap
    floating: bool


def changing_patches(boundaries: Mapping[str, Boundary]) -> list[str]:
    """Return the patches at which the velocity changes in time."""
    return [name for name, one in boundaries.items() if changes(one.prescribed)]


class GivenVelocities:
    """The velocities of the patches of a flow that change in time.

    What a wall has along the normals of its faces is left out. Where nothing leaves freely, what is given has to let as
    much in as out at every time.

    Parameters
    ----------
    flow
        Whose; `given` of it is written.

    Attributes
    ----------
    fastest
        The largest speed that was given since the start.
    """

    def __init__(self, flow: _Flow) -> None:
        self.flow, ctx, d = flow, flow.context, flow.dimension
        names = changing_patches(flow.boundaries)
        cv, owned = flow.volumes, flow.spaces.elements.owned
        normals = np.zeros((cv.elements, d))
        normals[cv.cells :] = cv.normals[cv.interior :]
        self.fastest = ctx.scalar(0.0, "given.fastest")
        self._sums: Global | None = None
        self._values: list[GivenOn] = []
        self._loops: list[Loop | Reset] = []
        for name in names:
            boundary, over = flow.boundaries[name], patch_elements(flow, name)
            assert boundary.prescribed is not None
            parts = parts_of(boundary.prescribed, d, f"patch {name!r}")
            values = GivenOn(ctx, over, cv.centres[owned], parts, f"patch {name!r}", out=flow.given,
                             normals=normals[owned] if boundary.wall else None)  # fmt: skip
            self._values.append(values)
            self._loops += [*values.loops(), Loop(fastest, over, flow.given, self.fastest, d=d)]
        self._inflows = [name for name in names if not flow.boundaries[name].wall]
        self._rise = ctx.dat(flow.elements, name="given.rise")
        if self._inflows:
            over = patch_elements(flow, self._inflows)
            self._loops.append(Loop(rising, over, flow.given, flow.normal, flow.u, self._rise, d=d))
        if flow.floating and self._inflows:
            self._sums = self._passing()

    def _passing(self) -> Global:
        """Add the loop that sums what is let in and out, and return the sums. Collective."""
        flow, cv = self.flow, self.flow.volumes
        areas = np.zeros((cv.elements, flow.dimension))
        areas[cv.cells :] = cv.areas[cv.interior :]
        chosen = flow.spaces.elements.local(cv.cells + np.flatnonzero(flow.conditions.prescribed))
        over = flow.context.subset(flow.elements, chosen, "given velocities")
        sums = flow.context.scalar(np.zeros(2), "given.through")
        area = flow.spaces.elements.dat(areas, "given.areas")
        self._loops += [Reset(sums), Loop(passing, over, flow.given, area, sums, d=flow.dimension)]
        return sums

    def pushes(self) -> list[Loop]:
        """Return the loop from inflows that become faster to the cells behind, where the pressure does not know."""
        if not self._inflows:
            return []
        flow, cv = self.flow, self.flow.volumes
        share, outer = np.zeros(cv.elements), slice(cv.interior, None)
        share[cv.cells :] = cv.area[outer] * cv.spacing[outer] / cv.volumes[cv.faces[outer, 0]]
        over, part = patch_elements(flow, self._inflows), flow.spaces.elements.dat(share, "given.share")
        return [Loop(push_behind, over, self._rise, flow.normal, part, flow.u[flow.behind[0]], d=flow.dimension)]

    def loops(self) -> list[Loop | Reset]:
        """Return the loops to the velocities of the time that was prepared; nothing where none changes."""
        return self._loops

    def prepare(self, time: float) -> None:
        """Say at which time the loops find them."""
        for values in self._values:
            values.prepare([time])

    def update(self, time: float) -> None:
        """Make them those of a time. Collective."""
        for values in self._values:
            values.update(time)

    def check(self, time: float) -> None:
        """Look at what the loops have found. Collective.

        Raises
        ------
        SolverError
            If a value is not finite, a wall moves along its normal, or more flows in than out and nothing is open.
        """
        for values in self._values:
            values.check()
        if self._sums is not None:
            net, size = (float(value) for value in self._sums.value)
            if not balanced(net, size):
                raise SolverError(
                    f"boundaries: at t = {time:g} the given velocities let {abs(net):.6g} more "
                    f"{'in' if net < 0 else 'out'}, and no patch is an Outflow(), where the flow is free"
                )
