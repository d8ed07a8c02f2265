r"""Immersed boundaries in a lattice Boltzmann flow: direct forcing at markers.

A step of the flow goes on as without bodies. Before it, the velocity that will arrive is found on the cells around
the markers, interpolated at the markers, and what is missing to the wanted velocity becomes a force that is spread
onto those cells (M. Uhlmann, J. Comput. Phys. 209 (2005) 448; in lattice Boltzmann flows S. K. Kang, Y. A. Hassan,
Int. J. Numer. Meth. Fluids 66 (2011) 1132). With Guo's force the velocity of the fluid has half of it,

.. math:: u = u^* + \frac{f}{2 \rho}, \qquad f = 2 \rho\, \epsilon\, (U_d - U^*) \text{ spread}, \quad \rho u^* =
\sum_k c_k f_k

The step is then done again on the cells that have a force (``mode="local"``), or the flow's own loop reads the force
everywhere (``mode="field"``).

The work on markers needs only what arrives around them, and the step of all cells needs nothing of it: with
``pipeline="host"`` the host does it meanwhile (`fluxloom.lbm.immersed.pipeline`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.sets import Subset
from fluxloom.lbm.immersed.data import Fields, Step
from fluxloom.lbm.immersed.deltas import Delta, delta_of
from fluxloom.lbm.immersed.elastic import ElasticGroup
from fluxloom.lbm.immersed.grouping import group_bodies
from fluxloom.lbm.immersed.groups import Group
from fluxloom.lbm.immersed.kernels import arriving_turned, clear
from fluxloom.lbm.immersed.motion import Contact, Fixed, Free, ImmersedBody
from fluxloom.lbm.immersed.pipeline import PIPELINES, HostSide
from fluxloom.lbm.immersed.spreading import WEIGHTS, support, support_places
from fluxloom.lbm.steps import step_kernels
from fluxloom.linalg.direct import Direct

__all__ = ["ImmersedBoundary"]

MODES = ("local", "field")

TARGETS = {"velocity": 2.0, "momentum": 1.0}
"""What meets the wanted velocity, and the factor of the force: the velocity, or the momentum after collision."""


class ImmersedBoundary:
    """Bodies immersed in a flow.

    Parameters
    ----------
    bodies
        In a box; each with a name of its own.
    delta
        ``"roma"`` or ``"peskin"``, or a `Delta`.
    iterations
        Rounds of forcing in a step; one leaves a slip of some per mille. By default one, and two with free bodies:
        where two bodies share cells, one round pushes too much there and may blow up, which a second one takes back.
    mode
        ``"local"``: the flow knows no force, and its step is done again on the cells around the markers. ``"field"``:
        the flow was made with ``field=True`` and reads the force of every cell; the one way for in-place streaming.
    target
        ``"velocity"``: the velocity that the fluid has meets the wanted one. ``"momentum"``: what it has after
        collision does, a force half as large.
    weights
        Of markers of fixed bodies: ``"pinelli"``, ``"balanced"`` or ``"plane"``; by default the first one in the plane,
        the second in space. Those of others have the weights of a plane.
    margin
        By how many cells the support of moving markers is widened, to be found more rarely.
    contact
        Repulsion of free bodies.
    scattered
        Whether fixed markers are treated at computed addresses too; the default has the same bits on every run.
    pipeline
        ``"device"``: all is done where the flow is. ``"host"``: interpolation, forces, spreading and motion are done by
        the host, while the device does the step of all cells. ``"host-serial"``: the same, one after the other, to
        compare with.
    threads
        Of the host in the latter two; 0: all.

    Raises
    ------
    SolverError
        For an option that does not exist, or names that are not different.
    """

    def __init__(
        self,
        bodies: Sequence[ImmersedBody],
        *,
        delta: str | Delta = "roma",
        iterations: int = 0,
        mode: str = "local",
        target: str = "velocity",
        weights: str = "",
        margin: int = 2,
        contact: Contact | None = None,
        scattered: bool = False,
        pipeline: str = "device",
        threads: int = 0,
    ) -> None:
        options = (
            ("pipeline", pipeline, PIPELINES),
            ("mode", mode, MODES),
            ("target", target, tuple(TARGETS)),
            ("weights", weights or WEIGHTS[0], WEIGHTS),
        )
        for what, word, allowed in options:
            if word not in allowed:
                raise SolverError(f"{what} {word!r}{did_you_mean(word, allowed)} (allowed: {', '.join(allowed)})")
        if iterations < 0 or margin < 0:
            raise SolverError(f"iterations={iterations}, margin={margin}: neither can be negative")
        self.bodies, self.names = tuple(bodies), tuple(body.name for body in bodies)
        if pipeline == "host" and mode == "field":
            raise SolverError(
                "pipeline='host' computes beside the loop over all cells, which reads the force with mode='field': "
                "use mode='local', or pipeline='host-serial'"
            )
        if not bodies or len(set(self.names)) < len(bodies):
            raise SolverError(f"immersed bodies need names of their own; there are: {', '.join(self.names) or 'none'}")
        self.delta, self.mode, self.margin = delta_of(delta), mode, margin
        self.iterations = iterations or (2 if any(isinstance(body.motion, Free) for body in bodies) else 1)
        self.target, self.weights, self.contact, self.scattered = target, weights, contact, scattered
        self.pipeline, self.threads = pipeline, threads
        self._host: HostSide | None = None
        self.groups: list[Group] = []
        self.time = 0

    # --------------------------------------------------------------------------------------- attaching
    def attach(self, flow: Any) -> None:
        """Prepare for a flow.

        Parameters
        ----------
        flow
            A `fluxloom.solvers.lattice.LatticeBoltzmann`: read are ``space``, ``stencil``, ``ahead``, ``excess``,
            ``motion``, ``force_field``, ``force``, ``forcing``, ``collision`` and ``viscosity``. The force field is
            kept by this object.

        Raises
        ------
        SolverError
            If the bodies do not fit the flow.
        """
        space, box = flow.space, flow.space.box
        self._check(flow)
        self.flow, self.box = flow, box
        self.fields = Fields(space.context, box, flow.excess, flow.motion, flow.force_field)
        self.background = tuple(float(v) for v in flow.force) or (0.0,) * box.dimensions
        weights = self.weights or ("pinelli" if box.dimensions == 2 else "balanced")
        self._host = None
        if self.pipeline != "device":
            self._host = HostSide(self.fields, self._still(), self.threads)
        seen = self.fields if self._host is None else self._host.fields
        self.groups = group_bodies(
            seen, self.bodies, self.delta, weights, self.contact, scattered=self.scattered
        )
        self._moving = any(group.moves for group in self.groups)
        cells = self._support()
        if self._moving:
            markers, width = sum(group.markers.count for group in self.groups), self.delta.points + 2 * self.margin
            capacity = min(int(np.prod(box.grid_shape)), markers * width**box.dimensions)
            self.cells = Subset(space.grid, cells, "support", capacity=capacity)
        else:
            self.cells = Subset(space.grid, cells, "support")
        self._clear = Loop(clear, self.cells, self.fields.force, background=self.background)
        self._arriving = {p: self._arriving_loop(p) for p in (0, 1)}
        if self._host is not None:
            self._host.connect(self.cells, self.background, self._ahead(), self._forces())
        self._steps = {p: self._steps_before(p) for p in (0, 1)}
        self._after = {p: self._steps_after(p) for p in (0, 1)}
        self.restart()

    def _check(self, flow: Any) -> None:
        """Raise `SolverError` if the bodies do not fit the flow."""
        space = flow.space
        for body in self.bodies:
            if body.markers.dimensions != space.box.dimensions:
                raise SolverError(
                    f"body {body.name!r} has markers in {body.markers.dimensions} dimensions, the flow has "
                    f"{space.box.dimensions}"
                )
        if space.context.ranked:
            raise SolverError("immersed boundaries run on one rank; leave out the others")
        if self.mode == "local" and space.streaming.name == "in-place":
            raise SolverError("in-place streaming overwrites what a step would be done again from: use mode='field'")
        if (self.mode == "field") != (flow.forcing == "field"):
            raise SolverError(
                "mode='field' needs a flow made with field=True, mode='local' one without: its own loop then adds no "
                f"force of a cell (the flow has forcing {flow.forcing!r}, the boundary mode {self.mode!r})"
            )

    # ------------------------------------------------------------------------------------------- steps
    def before(self, parity: int) -> Sequence[Step]:
        """Return what runs before the loop over all cells."""
        return self._steps[parity % 2]

    def after(self, parity: int) -> Sequence[Step]:
        """Return what runs after the loop over all cells."""
        return self._after[parity % 2]

    def _steps_before(self, parity: int) -> list[Step]:
        steps: list[Step] = [self._clear]
        if self._moving:
            steps.append(Direct(self.fields.context, self._advance, "move bodies"))
        if self._host is None:
            return [*steps, *self._ahead(), self._arriving[parity], *self._forces()]
        steps += [self._arriving[parity], self._host.ask("ask for what arrives")]
        if self.pipeline == "host-serial":
            steps.append(self._host.work("forces on the host", serial=True))
        return steps

    def _steps_after(self, parity: int) -> list[Step]:
        found: list[Step] = []
        if self._host is not None and self.pipeline == "host":
            found.append(self._host.work("forces on the host", serial=False))
        return [*found, *self._redo(parity)] if self.mode == "local" else found

    def _ahead(self) -> list[Step]:
        """Return what places the markers and spreads what does not depend on the fluid."""
        return [step for group in self.groups for step in (*group.place(), *group.push())]

    def _forces(self) -> list[Step]:
        """Return the rounds of forcing, and what follows when all forces are known."""
        factor = TARGETS[self.target]
        steps: list[Step] = []
        for turn in range(self.iterations):
            found = [group.correct(factor, again=turn > 0) for group in self.groups]
            steps += [step for pair in found for step in pair[0]]
            steps += [step for pair in found for step in pair[1]]
        for group in self.groups:
            steps += group.finish()
        return steps

    def _arriving_loop(self, parity: int) -> Loop:
        """Return the loop that finds what will arrive at the cells of the support, without force."""
        flow, space = self.flow, self.flow.space
        f, moments = space.populations(parity), (self.fields.above, self.fields.u)
        ahead, turned = space.streaming.stored(parity)
        if turned:
            constants: dict[str, Any] = {"velocities": space.lattice.velocities, "opposite": space.lattice.opposite}
            return Loop(arriving_turned, self.cells, f[flow.ahead], *moments, unit=space.unit, **constants)
        if ahead:
            return self._step_loop("none", "macros", f, *moments)
        return self._step_loop("none", "arriving", f[flow.stencil], *moments)

    def _step_loop(self, force: str, name: str, *arguments: Any) -> Loop:
        """Return a loop of a kernel of the flow's steps over the cells of the support."""
        space = self.flow.space
        kernels = step_kernels(space.lattice, self.flow.collision, force)
        constants: dict[str, Any] = {}
        constants |= kernels.constants_of(name, self.flow.viscosity, space.buffers[0].scalar.numpy)
        return Loop(getattr(kernels, name), self.cells, *arguments, name=f"immersed {name}", **constants)

    def _redo(self, parity: int) -> Sequence[Step]:
        """Return the step of the flow again, with force, on the cells of the support."""
        flow, space, fields = self.flow, self.flow.space, self.fields
        a, b = space.populations(parity), space.populations(parity + 1)
        match space.streaming.name:
            case "pull":
                return (self._step_loop("field", "pull", a[flow.stencil], fields.force, b),)
            case "push":
                return (self._step_loop("field", "push", a, fields.force, b[flow.ahead]),)
            case _:  # three phases: what has streamed is in the second buffer
                a, b = space.buffers
                return (
                    self._step_loop("field", "macros", b, fields.force, fields.above, fields.u),
                    self._step_loop("field", "collide", b, fields.above, fields.u, fields.force, a),
                )

    # ------------------------------------------------------------------------------------------- motion
    def _support(self) -> npt.NDArray[np.int64]:
        """Return the cells to which forces may be spread, for markers as they are now."""
        found = [np.zeros(0, dtype=np.int64)]
        for group in self.groups:
            first = group.carrier.first()
            self._check_inside(group, first)
            margin = self.margin if group.moves else 0
            found.append(support(self.box, first, self.delta.points, margin))
        return np.unique(np.concatenate(found))

    def _still(self) -> npt.NDArray[np.int64] | None:
        """Return the cells around the markers if these never move and are not treated at computed addresses."""
        if self.scattered or not all(isinstance(body.motion, Fixed) for body in self.bodies):
            return None
        first = self.delta.first(np.concatenate([body.markers.positions for body in self.bodies]))
        support_places(self.box, first, self.delta.points, [b.name for b in self.bodies for _ in b.markers.positions])
        return support(self.box, first, self.delta.points)

    def _check_inside(self, group: Group, first: npt.NDArray[np.int64]) -> None:
        support_places(self.box, first, self.delta.points, group.marker_names)

    def _advance(self) -> None:
        """Move the bodies; find the support anew if a marker may leave the one that is there."""
        for group in self.groups:
            group.advance(self.time)
        self.time += 1
        far = [(group, group.drift()) for group in self.groups if group.moves]
        for group, drift in far:
            if drift > self.margin and (not isinstance(group, ElasticGroup) or self._beyond(group)):
                self._settle()
                return

    def _beyond(self, group: ElasticGroup) -> bool:
        return group.measure() + group.FASTEST > self.margin

    def _settle(self) -> None:
        """Find the support for markers as they are now."""
        for group in self.groups:
            if group.moves:
                for step in group.place():
                    step()
        self._assign()
        for group in self.groups:
            group.settled()

    def _assign(self) -> None:
        """Find the support for markers as they are now, which are placed."""
        cells = self._support()
        self.cells.assign(cells)
        if self._host is not None:
            self._host.assign(cells)

    def restart(self) -> None:
        """Begin anew: bodies as at the start, no force."""
        self.time = 0
        for group in self.groups:
            group.restart()
        if self._moving:
            self._assign()
        if self._host is not None:
            self._host.restart()
        self.fields.force.write(np.broadcast_to(self.background, (*self.fields.force.set.shape, self.box.dimensions)))

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
        if self._host is None or not self._host.steps:
            raise SolverError("times of the host are those of steps with pipeline='host' or 'host-serial'")
        found = {part: seconds / self._host.steps for part, seconds in self._host.seconds.items()}
        if anew:
            self._host.restart()
        return found

    def force_on(self, name: str) -> npt.NDArray[np.float64]:
        """Return the force of the fluid on a body in the last step, the fluid inside of it included, ``(d,)``."""
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

        It is interpolated now, with the force of the last step. With ``pipeline="device"`` ask for it before the
        velocity or totals of the flow, which take the place of what arrived.
        """
        group, force = self._group(name), self.fields.force
        # The second of three phases has left the velocity with half the force in it, which is not to be added again.
        twice = self._host is None and self.flow.space.streaming.name == "three-phase"
        kept = force.read() if twice else None
        if kept is not None:
            force.write(0.0)
        for step in group.carrier.interpolate():
            step()
        if kept is not None:
            force.write(kept)
        sample = group.markers.sample.read()[group.of(name), : self.box.dimensions].astype(np.float64)
        return sample - group.velocities(name)
