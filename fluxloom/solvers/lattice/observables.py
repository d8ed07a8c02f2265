"""What one looks at in a lattice Boltzmann flow: moments of the cells, and their sums over the fluid."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import Kernel
from fluxloom.lbm.cells.labels import Labels
from fluxloom.solvers.lattice.values import LatticeValues

__all__ = ["Observables"]


class Observables:
    """Loops over the populations between two steps, made when they are first wanted.

    Parameters
    ----------
    values
        Those of the flow.
    labels
        Which cells are fluid.
    pull
        The force that populations have taken up in their last collision.
    """

    forgets = ("_loops", "sums", "fluid")

    def __init__(self, values: LatticeValues, labels: Labels, pull: Global | Dat) -> None:
        self._values, self._labels, self._pull = values, labels, pull
        self._loops: dict[tuple[int, ...], Loop] = {}

    @cached_property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Which cells are fluid: those of the box, on several ranks of this rank's part of it."""
        memory = self._values.memory
        return memory.inner(memory.grid.local(self._labels)) == 0

    @cached_property
    def sums(self) -> Global:
        """Of ``rho - 1`` and ``rho u^2 / 2``, in double precision where the device has it."""
        space = self._values.space
        return space.context.scalar(np.zeros(2), "totals", dtype=space.total)

    @cached_property
    def fluid(self) -> Dat:
        """One in the cells that are fluid."""
        return self._values.memory.marked(self._labels)

    def loop(self, kernel: Kernel, parity: int, *arguments: Dat | Global) -> Loop:
        """Return the loop of a kernel of `fluxloom.lbm.streaming.output` over populations before a step."""
        key = (id(kernel), parity % 2, *map(id, arguments))
        if key not in self._loops:
            values = self._values
            seen, constants = values.space.seen(parity)
            # what is said of sites is said of steps
            schedule = replace(values.schedule, sites=0) if values.schedule is not None else None
            over = values.memory.set
            self._loops[key] = Loop(kernel, over, seen, self._pull, *arguments, schedule=schedule, **constants)
        return self._loops[key]
