"""What scalars do to a flow by their buoyancy: forces through the faces, in balance with the pressure.

So acts a uniform force too, where walls or outflows would feel it: its part that is a potential, which is all but what
is along directions in which the mesh is periodic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.geometry.volumes import Family
from fluxloom.fv.incompressible.face_forces import (
    accelerate_cells,
    accelerate_faces,
    face_buoyancy,
    face_levers,
    face_to_cells,
    join_forces,
    outward_areas,
    source_of_faces,
)
from fluxloom.fv.incompressible.wall_forces import add_outlets
from fluxloom.linalg.vectors import copy
from fluxloom.solvers.incompressible.corrections import CorrectedFlow
from fluxloom.solvers.incompressible.given_forces import GivenForces
from fluxloom.solvers.incompressible.outlets import Outlets
from fluxloom.solvers.incompressible.scalar_corrections import CorrectedScalar

__all__ = ["Buoyancy", "FlowBuoyancy", "check_buoyancy", "potential_part"]

_NOTHING = 1e-12


@dataclass(frozen=True)
class Buoyancy:
    """The acceleration ``-g beta (theta - theta_0)`` of Boussinesq's approximation.

    Attributes
    ----------
    gravity
        The vector ``g``, ``(d,)``: it points down.
    expansion
        ``beta``, per unit of the scalar: what makes lighter is positive.
    reference
        ``theta_0``, of which gravity is part of the pressure. Between walls the flow does not depend on it.
    """

    gravity: Sequence[float]
    expansion: float
    reference: float = 0.0


def check_buoyancy(what: str, force: Buoyancy, d: int) -> None:
    """Raise `SolverError` unless a buoyancy has finite numbers, and gravity ``d`` of them."""
    if np.shape(force.gravity) != (d,) or not np.isfinite([*force.gravity, force.expansion, force.reference]).all():
        raise SolverError(
            f"{what}: buoyancy: gravity of {d} components, expansion and reference are wanted, all finite, not "
            f"{force!r}"
        )


class FlowBuoyancy:
    """The part of some scalars in the steps of a flow, see `fluxloom.fv.incompressible.face_forces`.

    Parameters
    ----------
    flow
        Whose.
    driving
        The scalars that drive it, and how each does.
    uniform : (d,)
        A force that acts through the faces too.
    given
        Forces and pressures of outflows beside it; None: there are none.

    Attributes
    ----------
    uniform : (d,)
        See the parameter.
    given
        See the parameter.
    force : (faces,)
        Acceleration along the normals in the last step.
    acting
        For how long it acts in this step or stage.
    through
        The uniform force that acts through the faces now, ``(d,)``.
    level : (elements, 1) or None
        Pressure along outflows that balances it; None where it is zero.
    """

    def __init__(
        self, flow: CorrectedFlow, driving: Sequence[tuple[CorrectedScalar, Buoyancy]],
        uniform: npt.NDArray[np.float64], given: GivenForces | None = None,
    ) -> None:  # fmt: skip
        self.flow, self.outlets, self.given = flow, Outlets(flow), given
        ctx, spaces = flow.context, flow.spaces
        self.force, self.acting = ctx.dat(flow.faces, name="buoyancy"), ctx.scalar(0.0, "acting")
        self._outward = spaces.cells.rows(outward_areas(flow.matrices), spaces.faces, "buoyancy.outward")
        self._means = spaces.elements.rows(face_to_cells(flow.matrices), spaces.faces, "buoyancy.means")
        self.explicit = [self._face_force(k, one.ahead, force) for k, (one, force) in enumerate(driving)]
        self._columns: list[tuple[CorrectedScalar, Buoyancy, npt.NDArray[np.float64]]] = []
        for one, force in driving:
            heights = self.outlets.heights(_lift(force))
            if heights.any():
                self._columns.append((one, force, heights))
        self._levels = self.outlets.heights(uniform)
        self.uniform, self._uniform = uniform, self._of_uniform(uniform)
        self.through = ctx.scalar(uniform, "uniform") if given is None or uniform.any() else given.through
        self.level: Dat | None = None
        pressed = given is not None and given.along_outlets(self.outlets)
        if self._columns or self._levels.any() or pressed:
            self.level = spaces.elements.dat(self._along(self.outlets.own(self._levels)), "buoyancy.level")
        if uniform.any() or self._columns or given is not None:
            beside = self._beside = flow.spaces.faces.dat(self._uniform, "buoyancy.beside")
            self._lasting, found = self.level, beside
            if given is not None:  # what stays of both, to which a step adds what it is given
                found = flow.spaces.faces.dat(self._uniform, "buoyancy.whole")
                if self.level is not None:
                    self._lasting = ctx.dat(flow.elements, self.level.read(), "buoyancy.lasting")
                self.explicit += given.loops(beside, found, self._lasting, self.level)
            last = Loop(join_forces, flow.faces, found, self.force) if driving else Loop(
                copy, flow.faces, found, self.force, systems=1)  # fmt: skip
            self.explicit.append(last)

    @property
    def pushes(self) -> bool:
        """Whether a uniform force acts through the faces."""
        return bool(self.uniform.any()) or (self.given is not None and self.given.pushes)

    def _of_uniform(self, force: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the acceleration of faces, beside that by scalars, with the pressure along outflows."""
        cv, outlets = self.flow.volumes, self.outlets
        found = cv.ways @ force / cv.spacing
        found[cv.interior :] *= self.flow.conditions.open
        found[outlets.faces] -= outlets.own(self._levels) / cv.spacing[outlets.faces]
        return found

    def _along(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the values of outflows at all elements, ``(elements, 1)``."""
        found = np.zeros((self.flow.volumes.elements, 1))
        found[self.outlets.elements, 0] = values
        return found

    def act(self, time: float) -> None:
        """Say for how long forces act in the next step or stage, and find the pressure along outflows. Collective."""
        self.acting.value = time
        if not self._columns:
            return
        flow, outlets = self.flow, self.outlets
        level, places = np.zeros(outlets.faces.size), flow.spaces.elements.local(outlets.elements)
        for one, given, heights in self._columns:
            arriving = one.theta.read()[places, 0] - given.reference
            level += outlets.column(heights, arriving)
        found = self._uniform.copy()
        found[outlets.faces] -= level / flow.volumes.spacing[outlets.faces]
        assert self._lasting is not None
        self._lasting.write(self._along(level + outlets.own(self._levels))[flow.spaces.elements.owned])
        self._beside.write(found[flow.spaces.faces.owned])

    def at_outlets(self, cells: Set, found: Family, slope: Dat, name: str) -> list[Loop]:
        """Return what adds to slopes of the pressure in cells what it is along outflows; nothing where it is zero.

        Parameters
        ----------
        cells
            Which.
        found
            Rows of gradients, cells by elements.
        slope : (cells, d)
            Of the pressure times the time for which it acts.
        name
            Of the rows.
        """
        flow = self.flow
        if self.level is None:
            return []
        rows = flow.spaces.cells.rows(found, flow.spaces.elements, name)
        return [Loop(add_outlets, cells, rows.entries, self.level[rows.pattern], self.acting, slope, d=flow.dimension)]

    def _face_force(self, number: int, theta: Dat, given: Buoyancy) -> Loop:
        flow = self.flow
        lift = _lift(given)
        levers = flow.spaces.faces.rows(face_levers(flow.matrices, lift), flow.spaces.elements, "buoyancy.levers")
        return Loop(face_buoyancy, flow.faces, levers.entries, theta[levers.pattern], self.force,
                    reference=float(given.reference), first=int(number == 0))  # fmt: skip

    def source(self) -> Loop:
        """Return what it adds to the right-hand side of the pressure."""
        flow, rows = self.flow, self._outward
        return Loop(source_of_faces, flow.cells, rows.entries, self.force[rows.pattern], self.acting, flow.b)

    def faces(self) -> Loop:
        """Return what it adds to the velocities at faces, beside the slope of the pressure."""
        return Loop(accelerate_faces, self.flow.faces, self.force, self.acting, self.flow.us)

    def cells(self) -> Loop:
        """Return what it adds to the velocities of cells, beside the gradient of the pressure."""
        flow, rows = self.flow, self._means
        return Loop(accelerate_cells, flow.elements, rows.entries, self.force[rows.pattern], self.acting, flow.u,
                    d=flow.dimension)  # fmt: skip


def _lift(given: Buoyancy) -> npt.NDArray[np.float64]:
    """Return the acceleration of a unit of the scalar."""
    return -given.expansion * np.asarray(given.gravity, dtype=np.float64)


def potential_part(flow: CorrectedFlow, force: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the part of a uniform force that acts through faces of a flow, ``P f = X X^T f``, ``(d,)``. Collective.

    All that is across the directions in which the mesh is periodic, where a wall or an outflow feels it; else nothing.
    """
    cv, comm = flow.volumes, flow.context.comm
    if not force.any():
        return np.zeros_like(force)
    shift = cv.wrapped.shift / np.maximum(np.linalg.norm(cv.wrapped.shift, axis=1), np.finfo(float).tiny)[:, None]
    sizes, ways = np.linalg.eigh(comm.reduce((shift.T @ shift).ravel(), "sum").reshape(cv.dimension, -1))
    across = ways[:, sizes <= _NOTHING * max(1.0, sizes.max())]
    found, size = across @ (across.T @ force), np.linalg.norm(force)
    closed = ~flow.conditions.open
    felt = np.abs(cv.normals[cv.interior :][closed] @ found).max(initial=0.0) > _NOTHING * size
    if any(comm.allgather(bool(felt))) or Outlets(flow).heights(found).any():
        return found
    return np.zeros_like(force)
