"""What a flow on a staggered grid is given in space and time: velocities of its sides, and the force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.given import changes, parts_of
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.fv.staggered import kernels as kernels
from fluxloom.fv.staggered.grid import StaggeredGrid, sides_of
from fluxloom.fv.staggered.sides import given, side_faces, side_places
from fluxloom.solvers.incompressible.types import balanced
from fluxloom.values.given_on import GivenOn
from fluxloom.values.value import AtPlaces, Value

__all__ = ["StaggeredForce", "StaggeredSides"]

Array = npt.NDArray[np.float64]


class StaggeredSides:
    """The velocities of sides that change in time.

    Those along a side are in the tables that fill the places beyond it (`along`); those through its faces are set
    behind the momentum of a stage (`through`).

    Parameters
    ----------
    context, grid, boundaries
        Where it lives, the box, and what happens at its sides.
    places
        The set of the stored places.
    star
        Velocity before the pressure has acted.

    Attributes
    ----------
    inflow
        What comes in through all sides in unit time, and the sum of sizes: where that changes.
    fastest : (d,)
        The largest velocities along sides so far.
    pulsates, area
        Whether what comes in changes, and the smallest area of such a side.
    """

    def __init__(
        self, context: Context, grid: StaggeredGrid, boundaries: Mapping[str, Boundary], places: Set, star: Dat
    ) -> None:
        self.context, self.grid, self.boundaries, d = context, grid, boundaries, grid.dimension
        self.inflow, self.fastest = context.scalar(np.zeros(2), "inflow"), context.scalar(np.zeros(d), "fastest")
        self._values: list[GivenOn] = []
        self._through: list[Loop | Reset] = []
        self.moving = [side.name for side in sides_of(grid) if changes(boundaries[side.name].prescribed)]
        self._closed = not any(boundary.open for boundary in boundaries.values())
        self.pulsates, self.area = any(not boundaries[name].wall for name in self.moving), np.inf
        if not self.pulsates:
            return
        self._through = [Reset(self.inflow)]
        for side in sides_of(grid):
            name, boundary = side.name, boundaries[side.name]
            if boundary.open or boundary.wall:
                continue
            numbers, points, rows = side_faces(grid, side)
            faces = context.set(len(numbers), f"faces of {name}")
            self.area = min(self.area, float(np.abs(rows[:, 1]).sum()))
            parts = self._parts(name)[side.axis : side.axis + 1] if name in self.moving else [
                AtPlaces(given(grid, side, boundary, side.axis).ravel())]
            values = GivenOn(context, faces, points, parts, f"boundary {name!r}")
            self._values.append(values)
            at = context.map(faces, places, numbers[:, None], f"faces of {name}")[0]
            side_rows = context.dat(faces, rows, "side")
            loop = Loop(kernels.let_in, faces, values.dat, side_rows, star[at], self.inflow, d=d)
            self._through += [*values.loops(), loop]

    def _parts(self, name: str) -> tuple[Value, ...]:
        prescribed = self.boundaries[name].prescribed
        assert prescribed is not None
        return parts_of(prescribed, self.grid.dimension, f"boundary {name!r}")

    def along(self, axis: int, beyond: Set, table: Dat) -> list[Loop]:
        """Return the loops to what is given along the two sides across an axis, in a table of `ghosts_of`."""
        loops: list[Loop] = []
        sides = [side for side in sides_of(self.grid) if side.axis == axis]
        for k, side in enumerate(sides):
            if side.name not in self.moving:
                continue
            rows = np.arange(beyond.size).reshape(len(sides), -1)[k]
            over = self.context.subset(beyond, rows, f"beyond {side.name}")
            for a, part in enumerate(self._parts(side.name)):
                if a == axis or not part.in_time:
                    continue
                places = np.zeros((beyond.size, self.grid.dimension))
                places[rows] = side_places(self.grid, side, a)
                values = GivenOn(self.context, over, places, [part], f"boundary {side.name!r}", out=table,
                                 components=[a], weights=np.full((beyond.size, 1), 2.0))  # fmt: skip
                self._values.append(values)
                loops += values.loops()
            loops.append(Loop(kernels.side_speed, over, table, self.fastest, d=self.grid.dimension))
        return loops

    def through(self) -> list[Loop | Reset]:
        """Return the loops to what passes sides, behind the momentum."""
        return self._through

    def prepare(self, time: float) -> None:
        """Say at which time a stage ends."""
        for values in self._values:
            values.prepare([time])

    def check(self, time: float) -> None:
        """Raise `SolverError` where a value is not finite, or more comes in than goes out and nothing is open."""
        for values in self._values:
            values.check()
        if not (self.pulsates and self._closed):
            return
        net, size = (float(value) for value in self.inflow.value)
        if not balanced(net, size):
            raise SolverError(
                f"boundaries: at t = {time:g} the given velocities let {abs(net):.6g} more {'in' if net > 0 else 'out'}"
                ", and no side is an outflow"
            )


class StaggeredForce:
    """A force in space and time.

    Parameters
    ----------
    context, grid, places
        Where it lives, the box, and the set of the stored places.
    parts
        Its components.

    Attributes
    ----------
    in_space
        Whether it differs from place to place.
    """

    def __init__(self, context: Context, grid: StaggeredGrid, places: Set, parts: Sequence[Value]) -> None:
        self.parts, self._d = tuple(parts), grid.dimension
        self.in_space = any(part.in_space for part in parts)
        self._values: list[GivenOn] = []
        self._loops: list[Loop] = []
        if not self.in_space:
            return
        self.dat = context.dat(places, name="force", shape=(self._d,), layout=SoA())
        numbers = np.arange(int(np.prod(grid.full_shape))).reshape(grid.full_shape)
        for a, part in enumerate(self.parts):
            chosen = numbers[grid.face_window(a)].ravel()
            points = np.stack([place.ravel() for place in np.broadcast_arrays(*grid.places(a))], axis=1)
            faces = context.set(chosen.size, f"faces across {'xyz'[a]}")
            values, at = GivenOn(context, faces, points, [part], "force"), context.map(faces, places, chosen[:, None])
            put = Loop(kernels.put_component, faces, values.dat, self.dat[at[0]], component=a)
            put()
            self._values.append(values)
            self._loops += [*values.loops(), put] if values.depends_on_time else []

    def loops(self) -> list[Loop]:
        """Return the loops to a force that differs from place to place."""
        return self._loops

    def now(self, time: float) -> Array:
        """Return a force that is the same everywhere at a time, of another one zeros; say that time to its loops."""
        for values in self._values:
            values.prepare([time])
        if self.in_space:
            return np.zeros(self._d)
        nowhere = np.zeros((1, self._d))
        return np.array([float(part.at(nowhere, time, "force")[0]) for part in self.parts])

    def check(self) -> None:
        """Raise `SolverError` where a value is not finite."""
        for values in self._values:
            values.check()
