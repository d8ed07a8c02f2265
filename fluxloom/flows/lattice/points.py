"""Values at points of a lattice Boltzmann flow: the device keeps what is in the cells around them step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.flows.flow_plan import COMPONENTS
from fluxloom.flows.lattice.given.units import Units
from fluxloom.kernel.frontend import kernel
from fluxloom.lbm.streaming.space import Elements
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom.solvers.probe_records import Outside, ProbePlaces, ProbeRecords, Source

__all__ = ["LatticePoints"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_SLACK = 1e-12
"""Rounding of a place, of the size of the box."""


@kernel
def in_units(above: Read, u: Read, found: Write, *, axes: Const[int], speed: float):
    """Velocity, x first, and pressure over that of density one by the density, ``(rho - 1) / 3`` on the lattice."""
    for k in range(axes):
        found[k] = speed * u[axes - 1 - k]
    found[axes] = speed * speed * above[0] / 3.0


class _Blend:
    """Samples at points, blended from those of cells.

    Parameters
    ----------
    cells
        Samples of cells.
    numbers, weights : (points, corners)
        Which of them count at a point, and how much.
    """

    def __init__(self, cells: ProbeRecords, numbers: Index, weights: Array) -> None:
        self._cells, self._numbers, self._weights = cells, numbers, weights

    def values(self, first: int = 0) -> tuple[Array, Array]:
        """Return times ``(n,)`` and values ``(n, points, width)``. Collective."""
        times, values = self._cells.values(first)
        return times, np.einsum("pc,npcw->npw", self._weights, values[:, self._numbers])

    def sample(self, time: float) -> None:
        """Keep what is in the cells now. Collective."""
        self._cells.sample(time)

    def reset(self) -> None:
        """Forget all samples."""
        self._cells.reset()


class LatticePoints:
    """Velocity and pressure at points. Collective.

    Values are linear along each axis between the centres of cells, and beyond them where the next cell is no fluid or
    the box ends: exact for fields that are linear along each axis. Where no box of fluid cells has the cell of a point
    as a corner the value is that of the cell.

    Parameters
    ----------
    flow
        What is looked at.
    units
        Of the points, and of what is found there.
    points
        Name to coordinates, x first.
    capacity
        Samples that the device keeps.
    outside
        Whether points outside of the box, or in bodies, are an error, or left out.

    Raises
    ------
    SolverError
        If a point lies outside of the box, or not in the fluid, and may not, or all do.

    Attributes
    ----------
    names, columns
        Of the points, and of the values at each.
    records
        What has been kept: components of the velocity, and pressure over that of density one by the density.
    """

    def __init__(
        self, flow: LatticeBoltzmann, units: Units, points: Mapping[str, Sequence[float]], capacity: int,
        outside: Outside = "error",
    ) -> None:  # fmt: skip
        self._flow, self._units, self._outside = flow, units, outside
        ctx, d = flow.context, units.dimension
        given = ProbePlaces(ctx, points, d, self._find, outside)
        self.names, self.columns = given.names, (*COMPONENTS[:d], "p")
        corners, weights = self._around(given.places)
        cells, numbers = np.unique(corners.reshape(-1, d), axis=0, return_inverse=True)
        centres = np.stack(units.points(cells.astype(np.float64)), axis=1)
        places = ProbePlaces(ctx, {f"cell {k}": at for k, at in enumerate(centres.tolist())}, d, self._find)
        over = Elements(places.set, places.mine, places.cells)
        self._above = ctx.dat(places.set, name="probe density", dtype=flow.real)
        self._u = ctx.dat(places.set, name="probe velocity", shape=(d,), dtype=flow.real)
        self._loops = flow.look_at(over, self._above, self._u, "probes")
        records = ProbeRecords(places, [Source("probes", d + 1, self._values)], capacity)
        self.records = _Blend(records, numbers.reshape(weights.shape), weights)

    def _cell(self, places: Array) -> tuple[Array, Index]:
        """Return places on the lattice, slowest axis first, and the cells that they are in."""
        at = np.stack(self._units.place(tuple(places.T)), axis=1)
        return at, np.clip(np.rint(at).astype(np.int64), 0, np.array(self._flow.box.shape) - 1)

    def _find(self, places: Array) -> tuple[Index, Array]:
        """Return the numbers in the grid of the cells of places, and infinity for those that this rank has not."""
        flow = self._flow
        size = np.array(flow.box.shape, dtype=np.float64)
        at, near = self._cell(places)
        inside = np.all((at >= -0.5 - _SLACK * size) & (at <= size - 0.5 + _SLACK * size), axis=1)  # with both ends
        cells = tuple(near.T)
        if self._outside == "error":
            for k in np.flatnonzero(inside & ~flow.fluid[cells]):
                raise SolverError(f"the probe at {tuple(places[k].tolist())} is in a body: move it into the fluid")
        found = flow.box.place(cells)
        return found, np.where(inside & flow.fluid[cells] & flow.space.owns(found), 0.0, np.inf)

    def _around(self, places: Array) -> tuple[Index, Array]:
        """Return the cells around places, ``(n, corners, d)``, and how much each counts, ``(n, corners)``."""
        box, d = self._flow.box, self._units.dimension
        shape = np.array(box.shape)
        at, near = self._cell(places)
        towards = np.where(at >= near, 1, -1)
        ends = np.array(list(product((0, 1), repeat=d)))
        best, weights = np.repeat(near[:, None], len(ends), axis=1), np.zeros((len(near), len(ends)))
        weights[:, 0] = 1.0  # the cell alone
        open_ = np.ones(len(near), dtype=bool)
        for turned in sorted(product((1, -1), repeat=d), key=lambda ways: -sum(ways)):  # first the box around the place
            way = towards * np.array(turned)
            corners = near[:, None] + ends * way[:, None]
            inside = np.all((corners >= 0) & (corners < shape) | np.array(box.periodic), axis=2)
            corners = np.where(inside[..., None], corners % shape, near[:, None])
            fits = open_ & np.all(inside & self._flow.fluid[tuple(np.moveaxis(corners, 2, 0))], axis=1)
            share = (at - near) * way  # of the second cell along each axis; negative beyond the first
            parts = np.where(ends == 1, share[:, None], 1.0 - share[:, None]).prod(axis=2)
            best[fits], weights[fits] = corners[fits], parts[fits]
            open_ &= ~fits
        return best, weights

    def _values(self, found: Dat) -> Loop:
        units = self._units
        return Loop(in_units, found.set, self._above, self._u, found, axes=units.dimension, speed=units.speed)

    def sample(self) -> None:
        """Keep what is at the points now."""
        self._loops[self._flow.steps % len(self._loops)]()
        self.records.sample(self._flow.steps * self._units.dt)
