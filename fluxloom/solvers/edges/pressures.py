r"""Pressures that outflows of flow on edges are given.

The rise of the pressure in a step is ``r = r_0 + g``, with ``g`` what the pressure at outflows has to rise by, 0
elsewhere, and ``r_0`` the unknown, 0 at outflows: the system has ``b - H g`` on its right-hand side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges.patch_points import PatchPoints
from fluxloom.fe.edges.pressures import outlet_rise, whole_rise
from fluxloom.fv.given import parts_of
from fluxloom.fv.incompressible.boundary import Outflow
from fluxloom.values.given_on import GivenOn
from fluxloom.values.value import Constant

__all__ = ["EdgePressures", "edge_pressures"]

Array = npt.NDArray[np.float64]


def edge_pressures(
    context: Context, points: Set, places: Array, patches: Mapping[str, PatchPoints],
    boundaries: Mapping[str, object], base: float | Array,
) -> EdgePressures | None:  # fmt: skip
    """Return the pressures of outflows; None where all of them are 0. Collective.

    Parameters
    ----------
    context, points
        Where they live.
    places : (n, d)
        Of the points.
    patches, boundaries
        Points of each patch, and what happens there.
    base
        Pressure at points of outflows beside it, ``(n,)`` or one.
    """
    given = {name: one.pressure for name, one in boundaries.items() if isinstance(one, Outflow)}
    if all(parts_of(one)[0] == Constant(0.0) for one in given.values()):
        return None
    owner, names = np.full(len(places), -1), [name for name in patches if name in given]
    for k, name in enumerate(names):
        owner[patches[name].points] = k
    want = context.dat(points, name="outflow.pressure")
    values = [
        GivenOn(context, context.subset(points, np.flatnonzero(owner == k), f"outflow.{name}"), places,
                parts_of(given[name]), f"patch {name!r}: pressure", out=want)
        for k, name in enumerate(names)
    ]  # fmt: skip
    over = context.subset(points, np.flatnonzero(owner >= 0), "outflows")
    return EdgePressures(context, over, want, values, base)


class EdgePressures:
    """The pressures of outflows; made by `edge_pressures`.

    Attributes
    ----------
    rise
        ``g`` of the step.
    acting
        0 where they do not act: while the initial velocity is made free of divergence; else 1.
    """

    def __init__(self, context: Context, over: Set, want: Dat, values: list[GivenOn], base: float | Array) -> None:
        points = over.parent
        self._over, self._want, self._values = over, want, values
        self._base = context.dat(points, np.broadcast_to(base, (points.size,)).copy(), "outflow.base")
        self.rise, self.whole = (context.dat(points, name=f"p_rise.{name}") for name in ("outflow", "whole"))
        self.acting = context.scalar(1.0, "outflow.acting")

    def lift(self, p: Dat, lifted: Callable[[Dat], Loop]) -> list[Loop]:
        """Return the loops to ``g`` and to what it takes from the right-hand side, which ``lifted`` makes."""
        given = [loop for values in self._values for loop in values.loops()]
        rise = Loop(outlet_rise, self._over, self._want, self._base, p, self.acting, self.rise, name="outlet_rise")
        return [*given, rise, lifted(self.rise)]

    def add(self, rise: Dat) -> Loop:
        """Return the loop to the whole rise."""
        return Loop(whole_rise, rise.set, rise, self.rise, self.whole, name="whole_rise")

    def prepare(self, time: float) -> None:
        """Say when a step ends."""
        for values in self._values:
            values.prepare([time])

    def check(self) -> None:
        """Raise `SolverError` where a value was not finite. Collective."""
        for values in self._values:
            values.check()

    def largest(self) -> float:
        """Return the largest pressure now, on this rank."""
        return float(np.abs(self._want.read()).max(initial=0.0))
