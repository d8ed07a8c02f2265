"""What one looks at in a lattice Boltzmann flow: moments of the cells, and their sums over the fluid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import Divergence
from fluxloom.core.strategies import strategy_name
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

    forgets = ("_loops", "_totals", "_fluid")

    def __init__(self, flow: LatticeBoltzmann) -> None:
        self._flow = flow
        self._loops: dict[tuple[str, int], Loop] = {}

    def moments(self) -> None:
        """Set ``excess`` and ``motion`` of the flow: density less one, and velocity."""
        self._run("moments", MOMENTS, self._flow.excess, self._flow.motion)

    def density(self) -> npt.NDArray[np.float64]:
        """Return the density of the cells of the box; one where there is no fluid."""
        self.moments()
        found = 1.0 + self._flow.memory.read(self._flow.excess).astype(np.float64)
        return np.where(self._inside, found, 1.0)

    def velocity(self) -> npt.NDArray[Any]:
        """Return the velocity of the cells of the box, ``(*shape, dimensions)``; zero where there is no fluid."""
        self.moments()
        return np.where(self._inside[..., None], self._flow.memory.read(self._flow.motion), 0.0)

    @cached_property
    def _inside(self) -> npt.NDArray[np.bool_]:
        """Which cells are fluid: those of the box, on several ranks of this rank's part of it."""
        flow = self._flow
        return flow.memory.inner(flow.grid.local(flow.conditions.labels)) == 0

    def totals(self) -> tuple[float, float]:
        """Return the sums of ``rho - 1`` and ``rho u^2 / 2`` over the fluid; collective."""
        self._totals.value = np.zeros(2)
        self._run("totals", TOTALS, self._fluid, self._totals)
        above, energy = self._totals.value
        return float(above), float(energy)

    def check_finite(self) -> None:
        """Raise `Divergence` if the flow is not finite any more; collective."""
        flow = self._flow
        if not np.all(np.isfinite(self.totals())):
            stiff = "" if flow.immersed is None else flow.immersed.softer
            raise Divergence(
                f"step {flow.steps}: the flow is not finite any more; lower the velocity, raise the viscosity "
                f"(now {flow.viscosity:.3g}) or take another collision (now {strategy_name(flow.collision)}){stiff}",
                step=flow.steps,
            )

    @cached_property
    def _totals(self) -> Global:
        """Sums in double precision, where the device has it."""
        return self._flow.context.scalar(np.zeros(2), "totals", dtype=self._flow.space.total)

    @cached_property
    def _fluid(self) -> Dat:
        """One in the cells that are fluid."""
        return self._flow.memory.marked(self._flow.conditions.labels)

    def _run(self, name: str, kernels: Mapping[str, Kernel], *outputs: Dat | Global) -> None:
        """Run the loop of a kernel over the present populations."""
        flow, key = self._flow, (name, self._flow.steps % 2)
        if key not in self._loops:
            form, constants = form_of(flow.streaming, flow.lattice, flow.steps)
            f = flow.populations
            seen = f[flow.ahead] if form == "ahead" else f
            schedule = replace(flow.schedule, sites=0) if flow.schedule is not None else None  # that is said of steps
            constants |= {"unit": flow.unit, "schedule": schedule}
            self._loops[key] = Loop(kernels[form], flow.memory.set, seen, flow.pull, *outputs, **constants)
        self._loops[key]()
