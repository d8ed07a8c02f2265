"""Groups of bodies whose markers move as is prescribed, or as Newton's equations have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.immersed.groups import Group, plane
from fluxloom.lbm.immersed.markers import kernels as k
from fluxloom.lbm.immersed.markers.data import Fields, Step, Timed
from fluxloom.lbm.immersed.markers.deltas import Delta
from fluxloom.lbm.immersed.markers.scatter import Scatter
from fluxloom.lbm.immersed.motion import Contact, Deforming, Free, ImmersedBody, Prescribed
from fluxloom.lbm.immersed.newton import FreeBodies, state

__all__ = ["DeformingGroup", "RigidGroup"]

Values = npt.NDArray[np.float64]


class RigidGroup(Group):
    """Rigid bodies with a prescribed or free motion; the markers follow from a row of numbers a body.

    Attributes
    ----------
    fastest
        Bound of the speed of a marker in all steps so far, cells a step.
    """

    def __init__(self, fields: Fields, bodies: Sequence[ImmersedBody], delta: Delta, contact: Contact | None) -> None:
        d = fields.box.dimensions
        super().__init__(fields, bodies, plane(bodies, delta))
        self.carrier = Scatter(self.markers, delta)
        ctx, m, numbers = fields.context, self.markers, np.arange(len(bodies))
        self._free = np.array([isinstance(body.motion, Free) for body in bodies])
        free = [body for body, yes in zip(bodies, self._free, strict=True) if yes]
        self.newton = FreeBodies(fields.box, free, contact) if free else None
        self._rows = np.zeros((len(bodies), 2 * d + d * d + (1 if d == 2 else 3)))
        self._begun, self.fastest = False, 0.0
        self._prescribe(0)
        self._reference = np.concatenate(
            [body.markers.positions - row[:d] for body, row in zip(bodies, self._rows, strict=True)]
        )
        self._set = ctx.set(len(bodies), "bodies")
        self._state = ctx.dat(self._set, self._rows.astype(fields.wide), name="bodies.state")
        self._sums = ctx.dat(self._set, name="bodies.sums", shape=(7 if d == 2 else 16,), dtype=fields.wide)
        owner = ctx.map(m.set, self._set, np.repeat(numbers, np.diff(self.bounds)), "marker.body")
        members = ctx.ragged(self._set, m.set, self.bounds, np.arange(m.count), "body.markers")
        reference = m.dat("reference", self._reference, fields.wide)
        own = m.dat("own", np.concatenate([body.markers.velocities for body in bodies]), fields.wide)
        self._place = Loop(
            k.place_2d if d == 2 else k.place_3d, m.set, reference, own, self._state[owner[0]], m.x, m.wanted
        )
        self._members = members
        self._reach = np.array(
            [np.linalg.norm(part, axis=1).max() for part in np.split(self._reference, self.bounds[1:-1])]
        )
        self.restart()

    def _prescribe(self, time: int) -> None:
        d = self.fields.box.dimensions
        for i, body in enumerate(self.bodies):
            if isinstance(body.motion, Prescribed):
                self._rows[i] = state(body.motion.pose(float(time)), d)
        if self.newton is not None:
            self._rows[self._free] = self.newton.state

    def restart(self) -> None:
        """Go back to the first state."""
        self._begun = False
        if self.newton is not None:
            self.newton.restart()
        self._prescribe(0)
        self._state.write(self._rows)
        self._place()
        self.settled()

    def advance(self, time: int) -> None:
        """Move free bodies by their velocities, and prescribed ones to where they are now."""
        if self.newton is not None and self._begun:
            self.newton.advance()
        self._begun = True
        self._prescribe(time)
        self._state.write(self._rows)
        self.fastest = max(self.fastest, self._speed())

    def _speed(self) -> float:
        """Return a bound of the speed of markers, cells a step: of centres and of farthest points as they turn."""
        d = self.fields.box.dimensions
        along = np.linalg.norm(self._rows[:, d + d * d : 2 * d + d * d], axis=1)
        return float((along + np.linalg.norm(self._rows[:, 2 * d + d * d :], axis=1) * self._reach).max())

    def drift(self) -> float:
        """Return a bound of how far a marker has come: the way of the centre, and of the farthest point as it turns."""
        d = self.fields.box.dimensions
        way = np.abs(self._rows[:, :d] - self._settled[:, :d]).max(axis=1)
        turned = np.linalg.norm(self._rows[:, d : d + d * d] - self._settled[:, d : d + d * d], axis=1)
        return float((way + turned * self._reach).max())

    def settled(self) -> None:
        """Take note of where the bodies are."""
        self._settled = self._rows.copy()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the next step depends on."""
        found = super().state() | {"rows": self._rows.copy(), "settled": self._settled, "begun": np.array(self._begun)}
        return found | ({} if self.newton is None else self.newton.kept())

    def resume(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` returned."""
        super().resume(state)
        self._rows, self._settled, self._begun = state["rows"].copy(), state["settled"].copy(), bool(state["begun"])
        self._state.write(self._rows)
        if self.newton is not None:
            self.newton.resume(state)

    def place(self) -> Sequence[Step]:
        """Return the loops that place the markers and find their weights."""
        return [self._place, *self.carrier.prepare()]

    def correct(self, factor: float, *, again: bool) -> tuple[Sequence[Step], Sequence[Step]]:
        """Return what finds the force of a round, and what spreads it; free bodies take their velocities before."""
        force, spread = super().correct(factor, again=again)
        if self.newton is None:
            return force, spread
        m, members = self.markers, self._members
        sums = Loop(
            k.sums_2d if m.dimensions == 2 else k.sums_3d, self._set, m.x[members], m.sample[members],
            m.wanted[members], m.weight[members], self._state, self._sums, factor=factor,
        )  # fmt: skip
        solve = Timed(self.fields.context, lambda: self._solve(again=again), "move freely")
        return [*force[:-1], sums, solve, self._place, force[-1]], spread

    def _solve(self, *, again: bool) -> None:
        """Find the velocities of free bodies together with the forces of this round."""
        assert self.newton is not None
        self.newton.solve(self._sums.read()[self._free].astype(np.float64), again=again)
        if (comm := self.fields.comm) is not None:  # ranks of unlike machines round differently, and would drift apart
            self.newton.resume(comm.broadcast(self.newton.kept()))
        self._rows[self._free] = self.newton.state
        self._state.write(self._rows)

    def pivot(self, name: str) -> Values:
        """Return the centre of a body."""
        return self._rows[[b.name for b in self.bodies].index(name), : self.fields.box.dimensions].copy()


class DeformingGroup(Group):
    """Bodies whose markers have prescribed places and velocities in each step."""

    def __init__(self, fields: Fields, bodies: Sequence[ImmersedBody], delta: Delta) -> None:
        super().__init__(fields, bodies, plane(bodies, delta))
        self.carrier = Scatter(self.markers, delta)
        self.restart()

    def restart(self) -> None:
        """Go back to the first state."""
        self.advance(0)
        self.settled()

    def advance(self, time: int) -> None:
        """Set places and velocities of a time.

        Raises
        ------
        SolverError
            If they do not fit the markers, or are not finite.
        """
        d, places, velocities = self.fields.box.dimensions, [], []
        for body in self.bodies:
            assert isinstance(body.motion, Deforming)
            for found, values in zip((places, velocities), body.motion.shape(float(time)), strict=True):
                array = np.asarray(values, dtype=np.float64)
                if array.shape != (body.markers.count, d) or not np.isfinite(array).all():
                    raise SolverError(
                        f"body {body.name!r}: at step {time} its shape gives an array {array.shape}; wanted are finite "
                        f"positions and velocities {(body.markers.count, d)}"
                    )
                found.append(array)
        self._now = np.concatenate(places)
        self.markers.x.write(self._now)
        self.markers.wanted.write(np.concatenate(velocities))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the next step depends on."""
        return super().state() | {"now": self._now, "then": self._then}

    def resume(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` returned."""
        super().resume(state)
        self._now, self._then = state["now"], state["then"]

    def drift(self) -> float:
        """Return how far a marker has come."""
        return float(np.abs(self._now - self._then).max())

    def settled(self) -> None:
        """Take note of where the markers are."""
        self._then = self._now
