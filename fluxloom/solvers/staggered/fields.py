"""What flow on a staggered grid is stored in, and the loops at its sides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import SoA
from fluxloom.device.buffer import View
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.dats import Dat, view_of
from fluxloom.dsl.declare.maps import Argument, OffsetMap
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.fv.staggered import kernels as kernels
from fluxloom.fv.staggered.grid import StaggeredGrid
from fluxloom.fv.staggered.sides import ghosts_of, outflow_faces
from fluxloom.solvers.staggered.given import StaggeredSides

__all__ = ["StaggeredFields"]

Array = npt.NDArray[np.float64]


class StaggeredFields:
    """Values on the places of a staggered grid, with its stencils.

    The lattice holds the places beyond the sides too, so that loops can fill them; it is periodic, and what is computed
    beyond the sides, round the ends, is thrown away.

    Parameters
    ----------
    context
        Where it lives.
    grid
        The box.
    boundaries
        Of its sides.

    Attributes
    ----------
    u, star, old
        Velocity, velocity before the pressure has acted, and rates of the stage before: ``(d,)``.
    source, q, impulse
        Right-hand side and potential of the pressure; what the pressure did in the whole last step, where it is solved
        for once a step.
    inside, fluid
        1 at faces between cells; volumes of cells, zero beyond the sides.
    given
        Largest velocity along the sides at the start, ``(d,)``.
    sides
        Velocities of sides that change in time.
    flow, bulk, change, energy, speed, imbalance
        Sums of loops.
    """

    keeps = ("q", "flow")  # the pressure, and the force that keeps a mean, are those of the last step

    def __init__(self, context: Context, grid: StaggeredGrid, boundaries: Mapping[str, Boundary]) -> None:
        self.context, self.box, d = context, grid, grid.dimension
        self.grid = context.grid(grid.full_shape, "places", periodic=True)
        legs, self.pair = grid.offsets()
        self.stencil = context.stencil(self.grid, legs, "around")
        self.upward = context.stencil(self.grid, [legs[0], *legs[1 : 2 * d : 2]], "upward")
        self.downward = context.stencil(self.grid, [legs[0], *legs[2 : 2 * d + 1 : 2]], "downward")
        self.u, self.star, self.old = (self._vector(name) for name in ("u", "star", "old"))
        self.source, self.q, self.impulse = (context.dat(self.grid, name=name) for name in ("source", "q", "impulse"))
        self.inside = context.dat(self.grid, grid.inside(), "inside", layout=SoA())
        self.fluid = context.dat(self.grid, grid.volumes(), "fluid")
        self._metric = None
        if grid.stretched >= 0:
            self._metric = context.dat(self.grid, grid.metric(), "metric", layout=SoA())
        self.flow, self.bulk = context.scalar(0.0, "flow"), context.scalar(np.zeros(d), "bulk")
        names = ("change", "energy", "speed", "imbalance", "outflow")
        self.change, self.energy, self.speed, self.imbalance, self.outflow = (context.scalar(0.0, n) for n in names)
        self.faces = outflow_faces(grid, boundaries)
        self.given = np.zeros(d)
        self.sides = StaggeredSides(context, grid, boundaries, self.grid, self.star)
        self.ghost_loops = self._ghosts(boundaries)

    def _vector(self, name: str) -> Dat:
        return self.context.dat(self.grid, name=name, shape=(self.box.dimension,), layout=SoA())

    def metric(self, other: Dat, around: OffsetMap) -> Argument:
        """Return the metric through a stencil; without a stretched axis ``other``, which nobody reads."""
        return (other if self._metric is None else self._metric)[around]

    @property
    def constants(self) -> dict[str, Any]:
        """What every kernel wants to know of the grid."""
        x, y, z = [*self.box.inverse, 0.0][:3]
        return {"d": self.box.dimension, "spacing": kernels.Spacing(self.box.stretched, x, y, z)}

    def _ghosts(self, boundaries: Mapping[str, Boundary]) -> list[Loop]:
        """Return what fills the places beyond the sides, a loop an axis."""
        loops: list[Loop] = []
        context, d = self.context, self.box.dimension
        for axis in range(d):
            if (ghosts := ghosts_of(self.box, boundaries, axis)) is None:
                continue
            beyond = context.set(len(ghosts.places), f"beyond {'xyz'[axis]}")
            pairs = context.map(beyond, self.grid, np.stack([ghosts.places, ghosts.inner], axis=1), "beyond and inner")
            named = (("keep", ghosts.keep), ("slope", ghosts.slope), ("value", ghosts.value))
            tables = [context.dat(beyond, values, name) for name, values in named]
            self.given = np.maximum(self.given, 0.5 * np.abs(ghosts.value).max(axis=0))
            loops += self.sides.along(axis, beyond, tables[2])
            loops.append(Loop(kernels.fill_ghosts, beyond, self.u[pairs], *tables, d=d, name=f"fill_{'xyz'[axis]}"))
        return loops

    @property
    def fastest(self) -> Array:
        """The largest velocities along the sides so far, ``(d,)``."""
        return np.maximum(self.given, np.asarray(self.sides.fastest.value))

    def outflow_loops(self, inflow: float) -> tuple[Loop | None, list[Loop | Reset]]:
        """Return the loop that moves faces of outflow on, and all that is done there; nothing where there are none."""
        faces, context, d = self.faces, self.context, self.box.dimension
        if not len(faces.places):
            return None, []
        leaving = context.set(len(faces.places), "leaving")
        place = context.map(leaving, self.grid, faces.places[:, None], "face")[0]
        inner = context.map(leaving, self.grid, faces.inner[:, None], "next")[0]
        side = context.dat(leaving, faces.side, "side")
        if self.sides.pulsates:
            star, what = self.star[place], self.sides.inflow
            advance = Loop(
                kernels.advance_outflow_in_time, leaving, self.u[inner], self.u[place], star, side, what, self.outflow,
                d=d, dt=0.0, area=faces.area,
            )  # fmt: skip
            scale = Loop(kernels.scale_outflow_in_time, leaving, star, side, self.outflow, what, d=d, area=faces.area)
            return advance, [Reset(self.outflow), advance, scale]
        advance = Loop(
            kernels.advance_outflow, leaving, self.u[inner], self.u[place], self.star[place], side, self.outflow,
            d=d, dt=0.0, speed=max(0.0, inflow / faces.area),
        )  # fmt: skip
        scale = Loop(
            kernels.scale_outflow, leaving, self.star[place], side, self.outflow, d=d, inflow=inflow, area=faces.area
        )
        return advance, [Reset(self.outflow), advance, scale]

    def cells_of(self, dat: Dat) -> DeviceArray:
        """Return the cells of stored values as an array in the device's memory."""
        whole = view_of(dat)
        steps = whole.strides[: self.box.dimension]
        offset = whole.offset + sum(cut.start * step for cut, step in zip(self.box.interior, steps, strict=True))
        return DeviceArray(self.context.device, dat.buffer, View(self.box.shape, whole.dtype, steps, offset))

    def face_values(self) -> list[Array]:
        """Return each component at its faces, those of the sides too."""
        whole = self.u.read()
        return [whole[(*self.box.face_window(a), a)].copy() for a in range(self.box.dimension)]

    def mean_of_faces(self) -> Array:
        """Return the velocity in the middle of cells, ``(*shape, d)``."""
        whole, box = self.u.read(), self.box
        found = np.empty((*box.shape, box.dimension))
        for a in range(box.dimension):
            up = np.roll(whole[..., a], -1, axis=box.dimension - 1 - a)
            found[..., a] = 0.5 * (whole[..., a] + up)[box.interior]
        return found

    def vorticity(self) -> Array:
        """Return the vorticity in the middle of cells: ``(cells,)`` in the plane, else ``(cells, 3)``."""
        whole, d = self.u.read(), self.box.dimension

        def across(a: int, b: int) -> Array:
            """Return ``du_b / dx_a - du_a / dx_b``."""
            return self._of_edges(self._slope(whole[..., b], a) - self._slope(whole[..., a], b), a, b)

        if d == 2:
            return across(0, 1)
        return np.stack([across(1, 2), across(2, 0), across(0, 1)], axis=1)

    def velocity_gradient(self) -> Array:
        """Return ``du_i / dx_j`` in the middle of cells, ``(cells, d, d)``: across them, else means of their edges."""
        whole, box, d = self.u.read(), self.box, self.box.dimension
        found = np.empty((box.cells, d, d))
        for i in range(d):
            up = np.roll(whole[..., i], -1, axis=d - 1 - i) - whole[..., i]
            found[:, i, i] = (up / box.along(i, box.stored(i, box.widths(i))))[box.interior].ravel()
            for j in (j for j in range(d) if j != i):
                found[:, i, j] = self._of_edges(self._slope(whole[..., i], j), i, j)
        return found

    def _of_edges(self, values: Array, a: int, b: int) -> Array:
        """Return the means over the four edges of a cell that lie across two axes, ``(cells,)``."""
        d = self.box.dimension
        values = values + np.roll(values, -1, axis=d - 1 - a)
        return 0.25 * (values + np.roll(values, -1, axis=d - 1 - b))[self.box.interior].ravel()

    def _slope(self, values: Array, axis: int) -> Array:
        """Return differences to the lower neighbours along an axis over their distances."""
        widths = self.box.stored(axis, self.box.widths(axis))
        distance = 0.5 * (widths + np.roll(widths, 1))
        return (values - np.roll(values, 1, axis=self.box.dimension - 1 - axis)) / self.box.along(axis, distance)
