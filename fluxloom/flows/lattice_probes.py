"""Points of a lattice Boltzmann flow: the device keeps what is there step by step, the host reads it in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_monitors import BLOCK
from fluxloom.core.access import Const, Read, Write
from fluxloom.core.errors import SolverError
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop
from fluxloom.flows.lattice_units import Units
from fluxloom.kernel.frontend import kernel
from fluxloom.lbm.space import Elements
from fluxloom.solvers.lattice import LatticeBoltzmann
from fluxloom.solvers.probe_records import ProbePlaces, ProbeRecords, Source

__all__ = ["LatticeProbes"]

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


class LatticeProbes:
    """Velocity and pressure in the cells that some points are in. Collective.

    Parameters
    ----------
    flow
        What is looked at.
    units
        Those of the case.
    points
        Name to coordinates, x first.

    Raises
    ------
    SolverError
        If a point lies outside of the box, or not in the fluid.

    Attributes
    ----------
    names
        Of the points.
    records
        What has been kept: components of the velocity, and pressure, in units of the case.
    """

    def __init__(self, flow: LatticeBoltzmann, units: Units, points: Mapping[str, Sequence[float]]) -> None:
        self._flow, self._units = flow, units
        places = ProbePlaces(flow.context, points, units.dimension, self._find)
        self.names = places.names
        ctx, d = flow.context, units.dimension
        over = Elements(places.set, places.mine, places.cells)
        self._above = ctx.dat(places.set, name="probe density", dtype=flow.real)
        self._u = ctx.dat(places.set, name="probe velocity", shape=(d,), dtype=flow.real)
        self._loops = flow.look_at(over, self._above, self._u, "probes")
        self.records = ProbeRecords(places, [Source("probes", d + 1, self._values)], BLOCK)

    def _find(self, places: Array) -> tuple[Index, Array]:
        """Return the numbers in the grid of the cells of places, and infinity for those that this rank has not."""
        flow, shape = self._flow, self._flow.box.shape
        at = np.stack([self._units.place(place) for place in places.tolist()])
        size = np.array(shape, dtype=np.float64)
        low, high = -0.5 - _SLACK * size, size - 0.5 + _SLACK * size
        inside = np.all((at >= low) & (at <= high), axis=1)  # both ends belong to the box
        near = tuple(np.clip(np.rint(x).astype(np.int64), 0, n - 1) for x, n in zip(at.T, shape, strict=True))
        for k in np.flatnonzero(inside & ~flow.fluid[near]):
            raise SolverError(f"the probe at {tuple(places[k].tolist())} is in a body: move it into the fluid")
        found = flow.box.place(near)
        return found, np.where(inside & flow.space.owns(found), 0.0, np.inf)

    def _values(self, found: Dat) -> Loop:
        units = self._units
        return Loop(in_units, found.set, self._above, self._u, found, axes=units.dimension, speed=units.speed)

    def sample(self) -> None:
        """Keep what is at the points now."""
        self._loops[self._flow.steps % len(self._loops)]()
        self.records.sample(self._flow.steps * self._units.dt)
