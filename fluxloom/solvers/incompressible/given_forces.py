"""Forces that a flow is given in space and time, and pressures of its outflows.

A force acts through the faces as far as walls and outflows feel it, in balance with the pressure
(`fluxloom.solvers.incompressible.buoyancy`): ``P f``, with ``P`` all that is across the directions in which the mesh is
periodic. The rest, ``f - P f``, accelerates cells. A given pressure of an outflow acts as a force through its faces
does, as ``-p_b / delta``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.given import parts_of
from fluxloom.fv.incompressible.boundary import Outflow
from fluxloom.fv.incompressible.face_forces import across_walls, along_faces, outlet_level, push_outlets
from fluxloom.solvers.flow_spaces import patch_elements
from fluxloom.solvers.incompressible.corrections import CorrectedFlow
from fluxloom.solvers.incompressible.outlets import Outlets
from fluxloom.values.given_on import GivenOn
from fluxloom.values.value import Constant, Value

__all__ = ["GivenForces", "given_forces"]

Array = npt.NDArray[np.float64]


def given_forces(
    flow: CorrectedFlow, force: Sequence[Value], part: Callable[[Array], Array]
) -> GivenForces | None:  # fmt: skip
    """Return the forces and pressures of outflows of a flow; None where there are none beside a constant force.

    Parameters
    ----------
    flow
        Whose.
    force
        The components of the acceleration, where they are not numbers; else nothing.
    part
        Returns what of a uniform force acts through the faces.
    """
    pressures = {
        name: value for name, one in flow.boundaries.items() if isinstance(one, Outflow)
        for value in parts_of(one.pressure, what=f"patch {name!r}: pressure") if value != Constant(0.0)
    }  # fmt: skip
    return GivenForces(flow, force, pressures, part) if force or pressures else None


class GivenForces:
    """The forces of a flow in space and time, and pressures of outflows. Making it is collective.

    Parameters
    ----------
    flow
        Whose.
    force
        Its components; nothing: there is none.
    pressures
        Patch to what is given there.
    part
        Returns what of a uniform force acts through the faces.

    Attributes
    ----------
    in_space
        Whether the force differs from place to place.
    through
        A uniform force, what of it acts through the faces now, ``(d,)``; zeros else.
    acceleration
        Of cells, by the rest of the force; None: there is no force.
    most
        The largest uniform force so far.
    """

    def __init__(
        self, flow: CorrectedFlow, force: Sequence[Value], pressures: dict[str, Value], part: Callable[[Array], Array]
    ) -> None:
        self.flow, self._force, ctx, d = flow, tuple(force), flow.context, flow.dimension
        self.in_space = any(value.in_space for value in force)
        self._part = np.zeros((d, d))
        for k, value in enumerate(force):
            if value != Constant(0.0):
                self._part[:, k] = part(np.eye(d)[k])
        self.through = ctx.scalar(np.zeros(d), "force.through")
        self._field: list[GivenOn] = []
        self._pressure = ctx.dat(flow.elements, name="outflow.pressure")
        places = flow.volumes.centres[flow.spaces.elements.owned]
        self._pressures = [
            GivenOn(ctx, patch_elements(flow, name), places, [value], f"patch {name!r}: pressure", out=self._pressure)
            for name, value in pressures.items()
        ]  # fmt: skip
        self._heights: Array | None = None
        self._cells: list[Loop] = []
        self.most, self.acceleration = 0.0, self._of_cells() if force else None
        self.prepare(0.0)

    # ------------------------------------------------------------------------------------------- set-up
    @property
    def directions(self) -> list[Array]:
        """Those in which the force may push, ``(d,)`` each."""
        eye = np.eye(self.flow.dimension)
        return [eye[k] for k, value in enumerate(self._force) if value != Constant(0.0)]

    def along_outlets(self, outlets: Outlets) -> bool:
        """Return whether the pressure along outflows is not zero."""
        d, self._outlets = self.flow.dimension, outlets
        if self._force and not self.in_space:
            found = np.stack([outlets.heights(self._part[:, k]) for k in range(d)], axis=1)
            self._heights = outlets.own(found) if found.any() else None
        return self._heights is not None or bool(self._pressures)

    @property
    def through_faces(self) -> bool:
        """Whether anything acts through the faces."""
        return bool(self._part.any() or self._pressures)

    @property
    def pushes(self) -> bool:
        """Whether a uniform force acts through the faces."""
        return bool(self._part.any()) and not self.in_space

    def cells(self) -> list[Loop]:
        """Return the loops to the acceleration of cells."""
        return self._cells

    def _of_cells(self) -> Dat | Global:
        """Return the acceleration of cells, and keep the loops to it."""
        flow, ctx, d = self.flow, self.flow.context, self.flow.dimension
        if not self.in_space:
            return ctx.scalar(np.zeros(d), "force")
        places = flow.volumes.centres[flow.spaces.elements.owned]
        given = GivenOn(ctx, flow.elements, places, self._force, "force")
        self._cells = [*given.loops()]
        self._field.append(given)
        if not self._part.any():
            return given.dat
        rest, part = ctx.dat(flow.elements, name="force.rest", shape=(d,)), ctx.scalar(self._part.ravel(), "force.part")
        share = Loop(across_walls, flow.elements, given.dat, part, rest, d=d)
        share()
        self._cells += [share] if self._cells else []
        return rest

    def loops(self, base: Dat, beside: Dat, lasting: Dat | None, level: Dat | None) -> list[Loop]:
        """Return the loops to the forces through faces and the pressure along outflows.

        Parameters
        ----------
        base, lasting
            What stays of them: of faces, and along outflows.
        beside, level
            What they are.
        """
        flow, cv, spaces, d = self.flow, self.flow.volumes, self.flow.spaces, self.flow.dimension
        ways = cv.ways / cv.spacing[:, None]
        ways[cv.interior :] *= flow.conditions.open[:, None]
        found, force = [], self.through
        if self.in_space and self._part.any():
            ways = ways @ self._part
            places = cv.centres[cv.faces[:, 0]] + 0.5 * cv.ways
            places[cv.interior :] = cv.centres[cv.faces[cv.interior :, 1]]
            given = GivenOn(flow.context, flow.faces, places[spaces.faces.owned], self._force, "force through faces")
            found, force = [*given.loops()], given.dat
            self._field.append(given)
        elif self._heights is not None:
            ways[self._outlets.faces] -= self._heights / cv.spacing[self._outlets.faces][:, None]
        way = spaces.faces.dat(ways, "force.ways")
        found.append(Loop(along_faces, flow.faces, way, force, base, beside, d=d))
        return [*found, *self._along(beside, lasting, level)]

    def _along(self, beside: Dat, lasting: Dat | None, level: Dat | None) -> list[Loop]:
        """Return the loops along outflows. Collective."""
        if level is None or lasting is None:
            return []
        flow, cv, spaces, d = self.flow, self.flow.volumes, self.flow.spaces, self.flow.dimension
        outlets, ctx = self._outlets, self.flow.context
        heights = np.zeros((cv.elements, d))
        if self._heights is not None:
            heights[outlets.elements] = self._heights
        over = ctx.subset(flow.elements, spaces.elements.local(outlets.elements), "outflows")
        local = spaces.faces.local(outlets.faces)
        faces = ctx.subset(flow.faces, np.sort(local[local < flow.faces.size]), "faces of outflows")
        far = spaces.elements.local(cv.faces[spaces.faces.owned, 1])
        ends = ctx.map(flow.faces, flow.elements, far[:, None], "far")
        spacing = spaces.faces.dat(cv.spacing, "spacing")
        return [
            *(loop for given in self._pressures for loop in given.loops()),
            Loop(outlet_level, over, spaces.elements.dat(heights, "force.heights"), self.through, lasting,
                 self._pressure, level, d=d),
            Loop(push_outlets, faces, self._pressure[ends[0]], spacing, beside),
        ]  # fmt: skip

    # ------------------------------------------------------------------------------------------ in time
    def prepare(self, time: float) -> None:
        """Say at which time the force acts and the pressures hold."""
        for given in (*self._field, *self._pressures):
            given.prepare([time])
        if isinstance(self.acceleration, Global):
            nowhere = np.zeros((1, self.flow.dimension))
            force = np.array([float(value.at(nowhere, time, "force")[0]) for value in self._force])
            self.through.value = self._part @ force
            self.acceleration.value = force - self._part @ force
            self.most = max(self.most, float(np.linalg.norm(force)))

    def largest(self) -> float:
        """Return the largest force so far, of one that differs from place to place that of now, on this rank."""
        return max([self.most, *(float(np.abs(given.dat.read()).max(initial=0.0)) for given in self._field)])

    def largest_pressure(self) -> float:
        """Return the largest pressure that outflows are given now, on this rank."""
        return float(np.abs(self._pressure.read()).max(initial=0.0))

    def check(self) -> None:
        """Raise `SolverError` where a value was not finite. Collective."""
        for given in (*self._field, *self._pressures):
            given.check()
