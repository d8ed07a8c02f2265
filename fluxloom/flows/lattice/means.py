"""What of a lattice Boltzmann flow is averaged in time: velocity and pressure, in physical units."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import SoA
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.flows.flow_plan import COMPONENTS
from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.lattice.points import in_units
from fluxloom.flows.lattice.ranks import Pieces
from fluxloom.lbm.streaming.output import moments
from fluxloom.run.measures import Averaged, AveragedValue
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

__all__ = ["averaged_of"]

Array = npt.NDArray[np.float64]


def averaged_of(flow: LatticeBoltzmann, units: Units, pieces: Pieces) -> Averaged:
    """Return velocity and pressure over that of density one by the density; zero where there is no fluid. Collective.

    A sample is one look at the populations, as of even or odd steps, whose loops differ.
    """
    memory, d = flow.memory, units.dimension
    above, u = memory.dat("sampled density", dtype=flow.real), memory.dat("sampled velocity", d, dtype=flow.real)
    found = memory.dat("sampled", d + 1, dtype=flow.real)
    loop = Loop(in_units, memory.set, above, u, found, axes=d, speed=units.speed, name="in units")
    fluid = flow.fluid[pieces.window]

    def prepare() -> None:
        """Find the values of now."""
        flow.look(moments, above, u)()
        loop()

    def read(dat: Dat) -> Array:
        """Return the values of the cells of this rank."""
        values = np.asarray(memory.read(dat), dtype=np.float64)
        return np.where(fluid[..., None], values.reshape(*fluid.shape, -1), 0.0).reshape(fluid.size, -1)

    def places() -> Array:
        """Return the centres of the cells."""
        lines = np.meshgrid(*(np.arange(w.start, w.stop, dtype=np.float64) for w in pieces.window), indexing="ij")
        return np.stack(units.points(np.stack([line.ravel() for line in lines], axis=1)), axis=1)

    def sizes() -> Array:
        """Return the volumes of the cells, ``dx^d``; zero where there is no fluid."""
        return fluid.ravel().astype(np.float64) * units.dx**d

    return Averaged(
        memory.set, [AveragedValue("p", found, place=d)], read, places, sizes, found, COMPONENTS[:d], prepare=prepare,
        dtype=flow.space.total, layout=SoA(),
    )  # fmt: skip
