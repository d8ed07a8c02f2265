"""What flows through the sides of a lattice Boltzmann flow, in physical units: sums over the cells along a side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fluxloom.flows.lattice_units import Units
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["Opening", "Passed", "side_area"]


@dataclass(frozen=True)
class Passed:
    """What passes a side.

    Attributes
    ----------
    flow
        Volume that leaves, m^3/s; in the plane for a span of 1.
    pressure, total
        The pressure over that of density one by the density, and with ``u^2 / 2``, both times the area.
    area
        Of the cells of fluid along the side.
    """

    flow: float
    pressure: float
    total: float
    area: float


class Opening:
    """A side whose cells are looked at: their centres are half a cell inside of it. Collective.

    Parameters
    ----------
    flow, units
        What is looked at, and in which units.
    name
        Of the side.
    """

    def __init__(self, flow: LatticeBoltzmann, units: Units, name: str) -> None:
        self._flow, self._units = flow, units
        self._axis, self._outward = flow.box.axis(name)
        at = list(flow.box.inside)
        last = flow.box.shape[self._axis]
        at[self._axis] = slice(0, 1) if self._outward < 0 else slice(last - 1, last)
        labels = flow.conditions.labels
        here = np.zeros(labels.shape, dtype=bool)
        here[tuple(at)] = labels[tuple(at)] == 0
        over = flow.space.elements(np.flatnonzero(here).astype(np.int64), f"{name} surface")
        ctx, d = flow.context, units.dimension
        self._above = ctx.dat(over.set, name=f"{name} density looked at", dtype=flow.real)
        self._u = ctx.dat(over.set, name=f"{name} velocity looked at", shape=(d,), dtype=flow.real)
        self._loops = flow.look_at(over, self._above, self._u, f"{name} surface")

    def take(self) -> None:
        """Let the device find the values of now."""
        self._loops[self._flow.steps % len(self._loops)]()

    def collect(self) -> Passed:
        """Return the sums of what was taken."""
        units = self._units
        u = self._u.read().astype(np.float64) * units.speed
        p = self._above.read().astype(np.float64).ravel() / 3.0 * units.speed**2
        one = units.dx ** (units.dimension - 1)
        total = p + 0.5 * (u**2).sum(axis=1)
        sums = np.array([self._outward * u[:, self._axis].sum(), p.sum(), total.sum(), float(len(p))]) * one
        return Passed(*map(float, self._flow.context.comm.reduce(sums, "sum")))


def side_area(flow: LatticeBoltzmann, units: Units, name: str) -> float:
    """Return the area of a side of the box, in the plane its length."""
    axis, _ = flow.box.axis(name)
    return float(np.prod([n * units.dx for k, n in enumerate(flow.box.shape) if k != axis]))
