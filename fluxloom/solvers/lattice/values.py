"""What the parts of a lattice Boltzmann flow work on: populations, moments, the force, and what kernels take."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.lbm.streaming.memory import Memory
from fluxloom.lbm.streaming.schemes import Buffers
from fluxloom.lbm.streaming.space import Space
from fluxloom.lbm.streaming.steps import Constants

__all__ = ["LatticeValues"]


@dataclass(frozen=True, eq=False)
class LatticeValues:
    """Values of a flow.

    Attributes
    ----------
    space
        Where its populations are.
    constants
        What the kernels of a step take when the flow is made; the uniform force may change later.
    excess, motion
        Density less one, and velocity, when they were last looked at.
    field
        The force of each cell; None: it is the same everywhere.
    schedule
        Of all loops.
    """

    space: Space
    constants: Constants
    excess: Dat
    motion: Dat
    field: Dat | None
    schedule: Schedule | None

    @property
    def memory(self) -> Memory:
        """Where the values are kept."""
        return self.space.memory

    @property
    def buffers(self) -> Buffers:
        """What the passes of a step read and write."""
        return Buffers(self.space.buffers, self.memory, self.excess, self.motion)
