r"""Immersed boundaries in a lattice Boltzmann flow: direct forcing at markers.

A step of the flow goes on as without bodies. Before it, the velocity that will arrive is found on the cells around
the markers, interpolated at the markers, and what is missing to the wanted velocity becomes a force that is spread
onto those cells (M. Uhlmann, J. Comput. Phys. 209 (2005) 448; in lattice Boltzmann flows S. K. Kang, Y. A. Hassan,
Int. J. Numer. Meth. Fluids 66 (2011) 1132). With Guo's force the velocity of the fluid has half of it,

.. math:: u = u^* + \frac{f}{2 \rho}, \qquad f = 2 \rho\, \epsilon\, (U_d - U^*) \text{ spread}, \quad \rho u^* =
\sum_k c_k f_k

The step is then done again on the cells that have a force; or, of a flow that was made with a `ForceField`, its own
loop reads the force everywhere.

The work on markers needs only what arrives around them, and the step of all cells needs nothing of it: with
``pipeline=OnHost()`` the host does it meanwhile (`fluxloom.lbm.immersed.pipeline`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.core.strategies import require_strategy, strategy_name
from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.run.report import LoopReport
from fluxloom.lbm.immersed.attached import Attached
from fluxloom.lbm.immersed.choice import Choice
from fluxloom.lbm.immersed.forcing import Forcing
from fluxloom.lbm.immersed.groups import Group
from fluxloom.lbm.immersed.markers.data import Step
from fluxloom.lbm.immersed.markers.deltas import Delta, Roma
from fluxloom.lbm.immersed.markers.spreading import MarkerWeights
from fluxloom.lbm.immersed.motion import Contact, Free, ImmersedBody
from fluxloom.lbm.immersed.pipelines import Fastest, OnDevice, OnHost, Pipeline
from fluxloom.lbm.immersed.reports import merged
from fluxloom.lbm.immersed.springs import check_springs

__all__ = ["ImmersedBoundary"]


class ImmersedBoundary:
    """Bodies immersed in a flow.

    Parameters
    ----------
    bodies
        In a box; each with a name of its own.
    delta
        From `fluxloom.lbm.immersed.markers.deltas`: `Roma` or `Peskin`.
    iterations
        Rounds of forcing in a step; one leaves a slip of some per mille. By default one, and two with free bodies:
        where two bodies share cells, one round pushes too much there and may blow up, which a second one takes back.
    after_collision
        Whether it is what the fluid has after collision that meets the wanted velocity, with a force half as large.
    weights
        Of markers of fixed bodies: `Pinelli`, `Balanced` or `Plane`; by default the first one in the plane, the second
        in space. Those of others have the weights of a plane.
    margin
        By how many cells the support of moving markers is widened, to be found more rarely.
    contact
        Repulsion of free bodies.
    scattered
        Whether fixed markers are treated at computed addresses too; the default has the same bits on every run.
    pipeline
        Where the work on markers is done: `OnDevice`, `OnHost` or, as one of them is faster, `Fastest`.

    Attributes
    ----------
    forcing
        Bodies and options.
    choice
        With `Fastest` what was measured, and what is taken; once attached.

    Raises
    ------
    SolverError
        For an option that does not fit, or names that are not different.

    Notes
    -----
    On several ranks every rank has all markers and does the same with them; values at markers are sums over the
    ranks. Motion, forces and whatever is asked about bodies are then the same everywhere, what interpolates
    (a step, `slip`) is collective.
    """

    remembers = ("memory",)
    forgets = ("_attached", "_now")

    def __init__(
        self,
        bodies: Sequence[ImmersedBody],
        *,
        delta: Delta = Roma(),
        iterations: int = 0,
        after_collision: bool = False,
        weights: MarkerWeights | None = None,
        margin: int = 2,
        contact: Contact | None = None,
        scattered: bool = False,
        pipeline: Pipeline = OnDevice(),
    ) -> None:
        require_strategy("delta", delta, Delta)
        require_strategy("weights", weights, MarkerWeights, optional=True)
        require_strategy("pipeline", pipeline, Pipeline)
        if iterations < 0 or margin < 0:
            raise SolverError(f"iterations={iterations}, margin={margin}: neither can be negative")
        self.bodies, self.names = tuple(bodies), tuple(body.name for body in bodies)
        if not bodies or len(set(self.names)) < len(bodies):
            raise SolverError(f"immersed bodies need names of their own; there are: {', '.join(self.names) or 'none'}")
        rounds = iterations or (2 if any(isinstance(body.motion, Free) for body in bodies) else 1)
        factor = 1.0 if after_collision else 2.0
        self.forcing = Forcing(self.bodies, delta, rounds, factor, weights, margin, contact, scattered)
        self.pipeline = pipeline
        self._attached: dict[str, Attached] = {}
        self._now: Attached | None = None
        self._past: list[LoopReport] = []
        self.choice: Choice | None = None

    # --------------------------------------------------------------------------------------- attaching
    def attach(self, flow: Any) -> None:
        """Prepare for a flow.

        Parameters
        ----------
        flow
            A `fluxloom.solvers.lattice.flow.LatticeBoltzmann`: read are ``space``, ``steps``, ``excess``,
            ``motion``, ``force_field``, ``force``, ``field``, ``constants`` and ``viscosity``. The force field is kept
            by this object.

        Raises
        ------
        SolverError
            If the bodies do not fit the flow.
        """
        self._check(flow)
        self.flow, context = flow, flow.space.context
        self._ways: dict[str, Pipeline] = {strategy_name(self.pipeline): self.pipeline}
        if isinstance(self.pipeline, Fastest):
            self._ways = {"device": OnDevice()}
            if context.device.native and not flow.field:
                self._ways["host"] = OnHost(self.pipeline.threads)
            self.choice = Choice(tuple(self._ways), context.synchronize, context.comm)
        first, way = next(iter(self._ways.items()))
        self._attached = {first: Attached(self.forcing, flow, way)}
        self._now = self._attached[first]
        self.restart()

    @property
    def attached(self) -> Attached:
        """What there is for the flow.

        Raises
        ------
        SolverError
            If it has not been attached to any.
        """
        if self._now is None:
            raise SolverError("immersed bodies: the boundary has not been attached to a flow: flow.immerse(boundary)")
        return self._now

    @property
    def groups(self) -> Sequence[Group]:
        """Bodies by the way they move."""
        return () if self._now is None else self._now.groups

    @property
    def cells(self) -> Subset:
        """The cells of this rank to which forces may be spread."""
        return self.attached.cells

    @property
    def time(self) -> int:
        """Steps by which bodies have moved since the start; zero of bodies at rest."""
        return self.attached.time

    def _check(self, flow: Any) -> None:
        """Raise `SolverError` if the bodies do not fit the flow."""
        space = flow.space
        for body in self.bodies:
            if body.markers.dimensions != space.box.dimensions:
                raise SolverError(
                    f"body {body.name!r} has markers in {body.markers.dimensions} dimensions, the flow has "
                    f"{space.box.dimensions}"
                )
        check_springs(self.bodies, self.forcing.delta, flow.viscosity)
        if space.streaming.buffers == 1 and not flow.field:
            raise SolverError(
                f"{strategy_name(space.streaming)} streaming overwrites what a step would be done again from: make the "
                "flow with force=ForceField(), so that its own loop reads the force of each cell"
            )
        if isinstance(self.pipeline, OnHost) and self.pipeline.overlap and flow.field:
            raise SolverError(
                "pipeline=OnHost() computes beside the loop over all cells, which reads the force of a flow that was "
                "made with a ForceField: make it without, or take OnHost(overlap=False)"
            )

    # ------------------------------------------------------------------------------------------- steps
    def before(self, parity: int) -> Sequence[Step]:
        """Return what runs before the loop over all cells."""
        return self.attached.before(parity)

    def after(self, parity: int) -> Sequence[Step]:
        """Return what runs after the loop over all cells."""
        return self.attached.after(parity)

    @property
    def elastic(self) -> tuple[str, ...]:
        """Names of elastic bodies, which blow up if they are too stiff."""
        return self.forcing.elastic

    @property
    def softer(self) -> str:
        """What to change about elastic bodies in a flow that blew up; see `Forcing`."""
        return self.forcing.softer

    @property
    def choosing(self) -> bool:
        """Whether steps have to be done by `take`, because the pipeline is still being chosen."""
        return self.choice is not None and not self.choice.done

    def take(self, run: Callable[[int], None], most: int) -> None:
        """Let some steps be done and time them; the steps after may be others: those of another `attached`.

        Parameters
        ----------
        run
            Does a number of steps of the flow.
        most
            Steps that may be done.
        """
        assert self.choice is not None
        if self.choice.take(run, most):
            self._switch(self.choice.now)
        if self.choice.done:
            self._forget()

    def _switch(self, pipeline: str) -> None:
        """Go on with another pipeline, from where bodies are."""
        state = self.attached.state()
        if pipeline not in self._attached:
            self._attached[pipeline] = Attached(self.forcing, self.flow, self._ways[pipeline])
        self._now = self._attached[pipeline]
        self._now.resume(state)

    def _forget(self) -> None:
        """Let go of the pipelines that are not used any more, but for what they have done."""
        others = [part for part in self._attached.values() if part is not self._now]
        self._past += merged(row for part in others for row in part.reports())
        self._attached = {strategy_name(self.attached.pipeline): self.attached}

    def restart(self) -> None:
        """Begin anew: bodies as at the start, no force."""
        self.attached.restart()

    def set_force(self, force: Sequence[float]) -> None:
        """Take another uniform force of the flow, from the next step on."""
        for part in self._attached.values():
            part.set_force(force)

    # -------------------------------------------------------------------------------------------- state
    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return where bodies are, how they move, and all else that they need to go on to the same bits.

        That is beside the populations and the force of the cells, which are dats of the flow. It is the same on every
        rank.
        """
        # what is not chosen yet is measured again
        pipeline = "" if self.choosing else strategy_name(self.attached.pipeline)
        return self.attached.state() | {"bodies": np.array(self.names), "pipeline": np.array(pipeline)}

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `state` returned; the dats of the flow are restored beside.

        With `Fastest` the pipeline that was chosen goes on, and nothing is measured any more.

        Raises
        ------
        SolverError
            If it is the state of other bodies.
        """
        theirs = [str(name) for name in state.get("bodies", ())]
        if theirs != list(self.names):
            raise SolverError(
                f"the state of immersed bodies is of others: {', '.join(theirs) or 'none'}; these are "
                f"{', '.join(self.names)}"
            )
        pipeline = str(state["pipeline"])
        if self.choice is not None and pipeline in self.choice.names:
            self.choice.settle(pipeline)
            if pipeline != strategy_name(self.attached.pipeline):
                self._switch(pipeline)
            self._forget()
        self.attached.resume(state)

    @property
    def memory(self) -> dict[str, Any]:
        """As `state`."""
        return dict(self.state())

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        self.restore(memory)

    # ------------------------------------------------------------------------------------------ reports
    def reports(self) -> list[LoopReport]:
        """Return what was done in steps beside the loops of the flow's chains: by the host, at computed addresses."""
        parts = self._attached.values()
        return merged([*self._past, *(row for part in parts for row in part.reports())])

    # ------------------------------------------------------------------------------------------- values
    def _group(self, name: str) -> Group:
        for group in self.groups:
            if name in [body.name for body in group.bodies]:
                return group
        where = "" if self.groups else "; the boundary has not been attached to a flow"
        raise SolverError(f"body {name!r}{did_you_mean(name, self.names)} (there are: {', '.join(self.names)}){where}")

    def times(self, *, anew: bool = False) -> dict[str, float]:
        """Return the seconds that the host has spent a step since the start, by part; ``anew``: then forget them.

        ``ahead``: bodies are placed, before the message is waited for; ``waiting``: the device had not come so far;
        ``markers``: interpolation, forces, spreading; ``asking`` the device. Where the device takes longer for the
        step of all cells than ``ahead``, ``markers`` and the messages, these are hidden.

        Raises
        ------
        SolverError
            If the host does no work on markers, or no step has been done.
        """
        host = self.attached.host
        if host is None or not host.steps:
            raise SolverError("times of the host are those of steps with pipeline=OnHost()")
        found = {part: seconds / host.steps for part, seconds in host.seconds.items()}
        if anew:
            host.restart()
        return found

    def force_on(self, name: str) -> npt.NDArray[np.float64]:
        """Return the force ``-sum F_k`` of the fluid on a body in the last step, ``(d,)``.

        That on the fluid inside of it is included.
        """
        return -self._group(name).given(name).sum(axis=0)

    def torque_on(self, name: str) -> npt.NDArray[np.float64]:
        """Return the torque of the fluid on a body about its centre, ``(1,)`` in the plane, ``(3,)`` in space."""
        return self._group(name).torque(name)

    def positions(self, name: str) -> npt.NDArray[np.float64]:
        """Return the places of the markers of a body, ``(n, d)``; those of periodic axes are not wrapped round."""
        return self._group(name).positions(name)

    def centre(self, name: str) -> npt.NDArray[np.float64]:
        """Return the centre of a body, ``(d,)``."""
        return self._group(name).pivot(name)

    def slip(self, name: str) -> npt.NDArray[np.float64]:
        """Return the velocity that the fluid had at the markers in the last step, less the wanted one, ``(n, d)``.

        It is interpolated now, from the populations as they are. On several ranks it is collective.
        """
        group = self._group(name)
        return self.attached.slip(group)[group.of(name)] - group.velocities(name)

    def __str__(self) -> str:
        count = sum(body.markers.count for body in self.bodies)
        found = f"{len(self.bodies):,} bodies, {count:,} markers"
        if self._now is None:
            return found
        way = strategy_name(self._now.pipeline) if self.choice is None else str(self.choice)
        return f"{found}, {self._now.support.size:,} cells around them; pipeline {way}"
