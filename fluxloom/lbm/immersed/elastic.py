"""Groups of elastic bodies: markers go with the fluid, springs between them pull at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.immersed.groups import Group
from fluxloom.lbm.immersed.markers import kernels as k
from fluxloom.lbm.immersed.markers.data import Fields, Step
from fluxloom.lbm.immersed.markers.deltas import Delta
from fluxloom.lbm.immersed.markers.scatter import Scatter
from fluxloom.lbm.immersed.motion import Elastic, ImmersedBody
from fluxloom.lbm.immersed.springs import bends_of, edges_of

__all__ = ["ElasticGroup"]


class ElasticGroup(Group):
    """Bodies whose markers go with the fluid, and pull at it with springs."""

    FASTEST = 0.4
    """Cells a step that no marker exceeds while the flow makes sense: the speed of sound is 0.58."""

    def __init__(self, fields: Fields, bodies: Sequence[ImmersedBody], delta: Delta) -> None:
        super().__init__(fields, bodies, np.ones(sum(body.markers.count for body in bodies)))
        self.carrier = Scatter(self.markers, delta)
        self._start = self.markers.x.read()
        m, d = self.markers, fields.box.dimensions
        self._springs = Loop(k.rest, m.set, m.pull, dimensions=d), *self._edges(), *self._bends()
        self._advect = Loop(k.advect, m.set, m.sample, m.pull, m.x, m.total, dimensions=d)
        self.settled()

    def _edges(self) -> list[Loop]:
        """Return the loop over springs, if there are any."""
        ctx, m, ends, springs = self.fields.context, self.markers, [], []
        for body, first in zip(self.bodies, self.bounds, strict=False):
            e = body.motion
            assert isinstance(e, Elastic)
            pairs, rest = edges_of(body)
            ends.append(pairs + first)
            springs.append(np.stack([np.full(len(pairs), float(e.stiffness)), rest], axis=1))
        table, values = np.concatenate(ends), np.concatenate(springs)
        if not len(table):
            return []
        edges = ctx.set(len(table), "springs")
        both = ctx.map(edges, m.set, table, "spring.ends")
        spring = ctx.dat(edges, values.astype(self.fields.wide), name="springs.values")
        return [Loop(k.stretch, edges, m.x[both], spring, m.pull[both], dimensions=m.dimensions)]

    def _bends(self) -> list[Loop]:
        """Return the loop over markers that resist bending, if there are any."""
        ctx, m, places, values = self.fields.context, self.markers, [], []
        for body, first in zip(self.bodies, self.bounds, strict=False):
            e = body.motion
            assert isinstance(e, Elastic)
            triples = bends_of(body)
            places.append(triples + first)
            values.append(np.full(len(triples), float(e.bending)))
        table = np.concatenate(places)
        if not len(table):
            return []
        over = ctx.set(len(table), "bends")
        three = ctx.map(over, m.set, table, "bend.markers")
        stiffness = ctx.dat(over, np.concatenate(values).astype(self.fields.wide), name="bends.stiffness")
        return [Loop(k.bend, over, m.x[three], stiffness, m.pull[three], dimensions=m.dimensions)]

    def restart(self) -> None:
        """Go back to the first state."""
        self.markers.x.write(self._start)
        self.settled()

    def drift(self) -> float:
        """Return a bound of how far a marker has come; places are fetched only when they may matter."""
        self._age += 1
        return self._far + self.FASTEST * self._age

    def measure(self) -> float:
        """Return how far a marker has come."""
        self._far = float(np.abs(self.markers.x.read() - self._then).max())
        self._age = 0
        return self._far

    def settled(self) -> None:
        """Take note of where the markers are."""
        self._then, self._far, self._age = self.markers.x.read(), 0.0, 0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the next step depends on."""
        then = np.array([self._far, float(self._age)])
        return super().state() | {"then": self._then, "drift": then}

    def resume(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` returned."""
        super().resume(state)
        self._then, (self._far, self._age) = state["then"], state["drift"].tolist()

    def push(self) -> Sequence[Step]:
        """Return the loops over springs, and what spreads their forces."""
        return [*self._springs, *self.carrier.spread()]

    def correct(self, factor: float, *, again: bool) -> tuple[Sequence[Step], Sequence[Step]]:
        """Return nothing: no velocity is wanted."""
        return (), ()

    def finish(self) -> Sequence[Step]:
        """Return what moves the markers with the fluid."""
        return [*self.sample(), self._advect]

