"""What one looks at in a lattice Boltzmann flow: moments of the cells, and their sums over the fluid."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.kernel.frontend import Kernel
from fluxloom.lbm.output import MOMENTS, TOTALS, form_of

if TYPE_CHECKING:
    from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["Looks"]


class Looks:
    """Loops over the populations between two steps, made when they are first wanted.

    Parameters
    ----------
    flow
        What is looked at.
    """

    def __init__(self, flow: LatticeBoltzmann) -> None:
        self._flow = flow
        self._loops: dict[tuple[str, int], Loop] = {}

    def moments(self) -> None:
        """Set ``excess`` and ``motion`` of the flow: density less one, and velocity."""
        self._run("moments", MOMENTS, self._flow.excess, self._flow.motion)

    def totals(self) -> tuple[float, float]:
        """Return the sums of ``rho - 1`` and ``rho u^2 / 2`` over the fluid; collective."""
        self._totals.value = np.zeros(2)
        self._run("totals", TOTALS, self._fluid, self._totals)
        above, energy = self._totals.value
        return float(above), float(energy)

    @cached_property
    def _totals(self) -> Global:
        """Sums in double precision, where the device has it."""
        return self._flow.context.scalar(np.zeros(2), "totals", dtype=self._flow.space.total)

    @cached_property
    def _fluid(self) -> Dat:
        """One in the cells that are fluid."""
        flow = self._flow
        mask = (flow.conditions.labels == 0).astype(np.uint8)
        return flow.context.dat(flow.grid, flow.grid.local(mask), name="fluid", dtype="uint8")

    def _run(self, name: str, kernels: Mapping[str, Kernel], *outputs: Dat | Global) -> None:
        """Run the loop of a kernel over the present populations."""
        flow, key = self._flow, (name, self._flow.steps % 2)
        if key not in self._loops:
            form, constants = form_of(flow.streaming, flow.lattice, flow.steps)
            f = flow.populations
            seen = f[flow.ahead] if form == "ahead" else f
            constants |= {"unit": flow.unit, "schedule": flow.schedule}
            self._loops[key] = Loop(kernels[form], flow.grid, seen, flow.pull, *outputs, **constants)
        self._loops[key]()
