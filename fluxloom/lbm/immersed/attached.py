"""What an immersed boundary has for one flow and one place of the work on markers: fields, groups of bodies, steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import Divergence, SolverError
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.lbm.body_force import UniformForce, uniform_force
from fluxloom.lbm.immersed.elastic import ElasticGroup
from fluxloom.lbm.immersed.forcing import Forcing
from fluxloom.lbm.immersed.grouping import group_bodies
from fluxloom.lbm.immersed.groups import Group
from fluxloom.lbm.immersed.markers.data import Fields, Step, Timed, Window, host_report
from fluxloom.lbm.immersed.markers.kernels import clear, shift
from fluxloom.lbm.immersed.markers.spreading import support, support_places
from fluxloom.lbm.immersed.motion import Fixed
from fluxloom.lbm.immersed.pipeline import HostSide
from fluxloom.lbm.immersed.pipelines import OnHost, Pipeline
from fluxloom.lbm.immersed.recompute import Recompute
from fluxloom.linalg.direct.calls import HostStep

__all__ = ["Attached"]

_FARTHEST = 2.0**30
"""Cells from the first one, within which supports are numbered in 32 bits, as devices do."""

_PARTS = {"ahead": "markers: ahead", "waiting": "markers: waiting", "markers": "markers: forces", "asking": "messages"}

State = Mapping[str, npt.NDArray[Any]]


def _nothing() -> None:
    """Do nothing."""


class Attached:
    """Bodies in a flow.

    Parameters
    ----------
    forcing
        Bodies and options.
    flow
        See `ImmersedBoundary.attach`.
    pipeline
        Where the work on markers is done.

    Attributes
    ----------
    groups
        Bodies by the way they move.
    cells
        The cells of this rank to which forces may be spread.
    support
        Those of all ranks, by their numbers in the grid.
    host
        The part that works on fields of its own; None: groups work on those of the flow.
    time
        Steps by which bodies have moved.
    """

    def __init__(self, forcing: Forcing, flow: Any, pipeline: Pipeline) -> None:
        space, box = flow.space, flow.space.box
        self.forcing, self.flow, self.box, self.pipeline = forcing, flow, box, pipeline
        context, grid = space.context, space.grid
        self._window = Window(grid.offset, grid.shape) if context.distributed else None
        self.fields = Fields(context, box, flow.excess, flow.motion, flow.force_field, window=self._window)
        self.background = tuple(float(v) for v in flow.force) or (0.0,) * box.dimensions
        self._uniform = uniform_force(self.background, box.dimensions, 1.0)
        self.host: HostSide | None = None
        by_host = isinstance(pipeline, OnHost)
        self._overlaps = by_host and pipeline.overlap
        if by_host or context.distributed:
            threads = pipeline.threads if by_host else 0
            self.host = HostSide(self.fields, self._still(), threads, here=not by_host)
        seen = self.fields if self.host is None else self.host.fields
        self.groups: list[Group] = group_bodies(seen, forcing)
        self.moving = any(group.moves for group in self.groups)
        self.support = self._support()
        self.cells = Subset(grid, self._own(self.support), "support", capacity=self._room() if self.moving else None)
        self._clear = Loop(clear, self.cells, self.fields.force, uniform=self._uniform)
        self._again = Recompute(flow, self.cells, self.fields)
        self._inner: list[Step] = []
        if self.host is not None:
            ahead, forces = self._ahead(), self._forces()
            self._inner = [*ahead, *forces]
            self.host.connect(self.cells, self._uniform, ahead, forces)
        self._before = {p: self._steps_before(p) for p in (0, 1)}
        self._after = {p: self._steps_after(p) for p in (0, 1)}
        self.time = 0

    def _room(self) -> int:
        """Return how many cells of this rank may be near markers, wherever these are."""
        markers = sum(group.markers.count for group in self.groups)
        width = self.forcing.delta.points + 2 * self.forcing.margin
        return min(int(self.flow.space.grid.size), markers * width**self.box.dimensions)

    # ------------------------------------------------------------------------------------------- steps
    def before(self, parity: int) -> Sequence[Step]:
        """Return what runs before the loop over all cells."""
        return self._before[parity % 2]

    def after(self, parity: int) -> Sequence[Step]:
        """Return what runs after the loop over all cells."""
        return self._after[parity % 2]

    def _steps_before(self, parity: int) -> list[Step]:
        # A message sets the force of the whole support; what cells have that leave it is cleared in `_settle`.
        steps: list[Step] = [self._clear] if self.host is None else []
        if self.moving:
            steps.append(Timed(self.fields.context, self._advance, "move bodies"))
        elif self._window is not None:
            # What walls have put among the copies of other ranks' cells has to outlive this chain: it is read in the
            # one with the loop over all cells, and stays there if nobody before reads more than walls do.
            steps.append(HostStep(self.fields.context, _nothing, "cut"))
        if self.host is None:
            return [*steps, *self._ahead(), self._again.arriving(parity), *self._forces()]
        steps += [self._again.arriving(parity), self.host.ask("ask for what arrives")]
        if not self._overlaps:
            steps.append(self.host.work("forces on the host", serial=isinstance(self.pipeline, OnHost)))
        return steps

    def _steps_after(self, parity: int) -> list[Step]:
        found: list[Step] = []
        if self.host is not None and self._overlaps:
            found.append(self.host.work("forces on the host", serial=False))
        return found if self.flow.field else [*found, *self._again.steps(parity)]

    def _ahead(self) -> list[Step]:
        """Return what places the markers and spreads what does not depend on the fluid."""
        return [step for group in self.groups for step in (*group.place(), *group.push())]

    def _forces(self) -> list[Step]:
        """Return the rounds of forcing, and what follows when all forces are known."""
        factor = self.forcing.factor
        steps: list[Step] = []
        for turn in range(self.forcing.iterations):
            found = [group.correct(factor, again=turn > 0) for group in self.groups]
            steps += [step for pair in found for step in pair[0]]
            steps += [step for pair in found for step in pair[1]]
        for group in self.groups:
            steps += group.finish()
        return steps

    def reports(self) -> list[LoopReport]:
        """Return what is done beside the loops of the flow's chains.

        Interpolation and spreading at computed addresses, the host's steps (bodies move, free ones solve their
        equations, sums over ranks); and of a pipeline with a host its loops, and for how long it did what.
        """
        steps = [*self._before[0], *self._before[1], *self._after[0], *self._after[1], *self._inner]
        rows = [step.report() for step in unique([step for step in steps if isinstance(step, Timed)])]
        if (host := self.host) is not None:
            rows += [row for chain in host.chains for row in chain.reports()]
            rows += [host_report(_PARTS[name], host.steps, s) for name, s in host.seconds.items() if s]
        return rows

    # ------------------------------------------------------------------------------------------- motion
    def _own(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers here of the cells that this rank has."""
        return cells if self._window is None else self._window.find(self.box, cells)[1]

    def _support(self) -> npt.NDArray[np.int64]:
        """Return the cells to which forces may be spread, for markers as they are now."""
        found = [np.zeros(0, dtype=np.int64)]
        for group in self.groups:
            first = self._first(group)
            support_places(self.box, first, self.forcing.delta.points, group.marker_names)  # inside of the box?
            margin = self.forcing.margin if group.moves else 0
            found.append(support(self.box, first, self.forcing.delta.points, margin))
        return np.unique(np.concatenate(found))

    def _first(self, group: Group) -> npt.NDArray[np.int64]:
        """Return the first cell of the support of each marker of a group now, ``(n, d)``.

        Raises
        ------
        Divergence
            If a marker is nowhere, or beyond the cells that devices can number.
        """
        x, names = group.markers.x.read().astype(np.float64), group.marker_names
        lost = ~(np.abs(x) < _FARTHEST).all(axis=1)
        if lost.any():
            nowhere = ~np.isfinite(x).all(axis=1)
            k = int(np.argmax(nowhere if nowhere.any() else lost))
            number, at = k - group.of(names[k]).start, ", ".join(f"{value:.4g}" for value in x[k, ::-1])
            why = "the flow is not finite any more" if nowhere.any() else "no cell is so far away"
            raise Divergence(
                f"step {self.flow.steps}: marker {number} of body {names[k]!r} is at ({at}), in cells: {why}"
                + self.forcing.softer, step=self.flow.steps,
            )  # fmt: skip
        return self.forcing.delta.first(x)

    def _still(self) -> npt.NDArray[np.int64] | None:
        """Return the cells around the markers if these never move and are not treated at computed addresses."""
        bodies, delta = self.forcing.bodies, self.forcing.delta
        if self.forcing.scattered or not all(isinstance(body.motion, Fixed) for body in bodies):
            return None
        first = delta.first(np.concatenate([body.markers.positions for body in bodies]))
        support_places(self.box, first, delta.points, [b.name for b in bodies for _ in b.markers.positions])
        return support(self.box, first, delta.points)

    def _advance(self) -> None:
        """Move the bodies; find the support anew if a marker may leave the one that is there."""
        for group in self.groups:
            group.advance(self.time)
        self.time += 1
        far = [(group, group.drift()) for group in self.groups if group.moves]
        for group, drift in far:
            margin = self.forcing.margin
            if drift > margin and not (isinstance(group, ElasticGroup) and group.measure() + group.FASTEST <= margin):
                self._settle()
                return

    def _settle(self) -> None:
        """Find the support for markers as they are now."""
        for group in self.groups:
            if group.moves:
                for step in group.place():
                    step()
        if self.host is not None:
            self._clear()
        self._assign(self._support())
        for group in self.groups:
            group.settled()

    def _assign(self, cells: npt.NDArray[np.int64]) -> None:
        """Take other cells for the support."""
        self.support = cells
        own = self._own(cells)
        self.cells.assign(own)
        if self.host is not None:
            self.host.assign(own)

    def restart(self) -> None:
        """Begin anew: bodies as at the start, no force."""
        self.time = 0
        for group in self.groups:
            group.restart()
        if self.moving:
            self._assign(self._support())
        if self.host is not None:
            self.host.restart()
        force = self.fields.force
        force.write(np.broadcast_to(self.background, (*force.set.shape, self.box.dimensions)))

    def set_force(self, force: Sequence[float]) -> None:
        """Take another uniform force, which acts from the next step on."""
        d, change = self.box.dimensions, [b - a for a, b in zip(self.background, force, strict=True)]
        self.background = tuple(float(v) for v in force)
        self._uniform = uniform_force(self.background, d, 1.0)
        self._clear.set(uniform=self._uniform)
        self._shift(uniform=uniform_force(change, d, 1.0))
        if self.host is not None:
            self.host.set_force(self._uniform)

    @cached_property
    def _shift(self) -> Loop:
        """Changes the force of all cells, which what is looked at and conditions at sides read."""
        force, none = self.fields.force, UniformForce()
        return Loop(shift, force.set, force, uniform=none, name="immersed background")

    # -------------------------------------------------------------------------------------------- state
    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the next step depends on, but for the dats of the flow."""
        found = {f"{group.kind}.{name}": values for group in self.groups for name, values in group.state().items()}
        return found | {"time": np.array(self.time), "support": self.support.copy()}

    def resume(self, state: State) -> None:
        """Go on from what `state` returned; the dats of the flow are as they were.

        Raises
        ------
        SolverError
            If it is the state of other bodies.
        """
        for key, values in self.state().items():
            if key not in state or (key != "support" and state[key].shape != values.shape):
                raise SolverError(
                    f"the state of immersed bodies does not fit these: {key!r} is {values.shape} here, "
                    f"{state[key].shape if key in state else 'missing'} there"
                )
        for group in self.groups:
            first = f"{group.kind}."
            group.resume({key.removeprefix(first): v for key, v in state.items() if key.startswith(first)})
        self.time = int(state["time"])
        if self.moving:
            self._assign(state["support"].astype(np.int64))

    # ------------------------------------------------------------------------------------------- values
    def slip(self, group: Group) -> npt.NDArray[np.float64]:
        """Return the velocity of the fluid at the markers of a group, ``(n, d)``; collective."""
        d, fields, host = self.box.dimensions, self.fields, self.host
        self._again.look()
        if host is not None:
            host.fetch()
            fields = host.fields
        # Half of the force is in the velocity, and not to be added again.
        kept = fields.force.read()
        fields.force.write(0.0)
        for step in (*group.carrier.prepare(), *group.sample()):
            step()
        fields.force.write(kept)
        return group.markers.sample.read()[:, :d].astype(np.float64)
