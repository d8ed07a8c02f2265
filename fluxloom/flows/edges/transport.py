"""Transport on edges, as scripts and cases make it: the scalar at points, its sums over time, where it is slow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import chosen, strategy_name
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.flows.edges.flow import FlowOnPoints, volume_of
from fluxloom.flows.flow_change import Change
from fluxloom.flows.flow_plan import StepLengths, speed_quantity, velocity_quantities
from fluxloom.flows.flow_watch import edge_transport_watch
from fluxloom.flows.given import check_value
from fluxloom.flows.points import PointDomain
from fluxloom.flows.volumes import MeshLike
from fluxloom.fv.incompressible.scalar_boundary import FixedFlux
from fluxloom.run.fields import Fields, Quantity
from fluxloom.run.flow import HistoryPanel, Picture, Until
from fluxloom.run.measures import Averaged, AveragedValue, PointValues
from fluxloom.run.start import Start
from fluxloom.run.watch import GuardLimits, Watch
from fluxloom.solvers.edges.loops import Field
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.transport import EdgeTransport, Scalar, TransportState

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["ScalarOnPoints", "Transport"]

_COURANT = 0.8
"""Of the largest stable step, where it is not given."""


class ScalarOnPoints(FlowOnPoints):
    """A scalar at the points of triangles or tetrahedra, whatever moves it."""

    curves = (
        HistoryPanel("least and most", ("least", "most")),
        HistoryPanel("amount", ("amount",)),
        HistoryPanel("square", ("square",)),
    )
    unknown, section, losses = "c", "scalar", MappingProxyType({})
    solver: Any

    @property
    def _weight(self) -> Dat:
        """The volume of each point."""
        raise NotImplementedError

    def _state(self) -> TransportState:
        """Return sums and range, NaN where the scalar is lost: the fields show where. Collective."""
        try:
            return self.solver.state()
        except SolverError:
            return TransportState(self.solver.time, self.solver.steps, *[math.nan] * 4)

    def columns(self) -> dict[str, float]:
        """Return time, or the step of a flow that has none, amount, square and range of the scalar."""
        state = self._state()
        sums = {"amount": state.amount, "square": state.square, "least": state.least, "most": state.most}
        return ({"step": float(state.steps)} if self.time is None else {"time": state.time}) | sums

    # --------------------------------------------------------------------------------------- results
    def pictures(self, name: str) -> Sequence[Picture]:
        """Return the scalar."""
        when = "" if self.time is None else f", time {self.time:.6g}"
        return (Picture("scalar", f"Scalar: {name}{when}", "scalar"),)

    def fields(self) -> Fields:
        """Return the scalar, ``(n,)``."""
        return Fields(self._quantities(), {})

    def _quantities(self) -> dict[str, Quantity]:
        return {"scalar": Quantity("", "what is carried", self.solver.scalar)}

    def averaged(self) -> Averaged:
        """Return the scalar."""
        points, weight = self.domain.points, self._weight
        return Averaged(
            points, [AveragedValue("scalar", self.solver.c)], Dat.read,
            lambda: self.domain.coordinates[: points.size], lambda: weight.read().reshape(-1),
        )  # fmt: skip

    def _sums(self) -> Sequence[tuple[str, str]]:
        state = self._state()
        return (
            ("amount", f"{state.amount:.9g}"),
            ("square", f"{state.square:.9g}"),
            ("range", f"{state.least:.6g} to {state.most:.6g}"),
        )

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> PointValues:
        """Return what samples the scalar at points. Collective."""
        from fluxloom.solvers.edges.transport_probes import TransportProbes

        return TransportProbes(self.solver, points, capacity, outside)


class Transport(ScalarOnPoints):
    """Convection and diffusion of a scalar on triangles or tetrahedra, by a velocity that is given.

    Parameters
    ----------
    mesh
        The mesh, the path of its file, or points that are dealt out already (`fluxloom.flows.points.flow_points`). On
        several ranks everything is collective.
    context
        Where it runs; by default the CPU.
    velocity
        ``(d,)`` numbers or values in space and time (`fluxloom.values.value.value_of`), or a function of the points
        ``(n, d)`` that returns as many vectors; at rest by default.
    diffusivity, source
        A number, a value, or a function of the points that returns ``(n,)``.
    boundaries
        Patch to the scalar there: a number, a value or a function of the points; to `FixedFlux`: what diffuses in,
        diffusivity times the slope; or to None: nothing diffuses through it. Where the scalar is not given, what flows
        in or out is the scalar itself. Each patch needs one; where patches meet, the later given scalar counts.
    start
        The scalar at the start: a number, a value, or a function of the points.
    scheme, bounded
        How it is carried, see `fluxloom.solvers.edges.transport.EdgeTransport`.
    steps
        Their lengths.

    Attributes
    ----------
    solver
        `fluxloom.solvers.edges.transport.EdgeTransport`.

    Raises
    ------
    MeshError
        If the mesh is broken, or has other cells; `PatchError`, if a patch is not among the boundaries, or a name is
        that of no patch.
    SolverError
        If what is given does not fit.
    """

    remembers = (*FlowOnPoints.remembers, "_limit")

    solver: EdgeTransport

    def __init__(
        self,
        mesh: MeshLike | PointDomain,
        context: Context | None = None,
        *,
        velocity: Field = (),
        diffusivity: Scalar = 0.0,
        boundaries: Mapping[str, Scalar | FixedFlux | None],
        source: Scalar = 0.0,
        start: Scalar = 0.0,
        scheme: EdgeScheme | None = None,
        bounded: bool | None = None,
        steps: StepLengths | None = None,
    ) -> None:
        points = self._settle(mesh, context, boundaries)
        fluxes = {name: one.flux for name, one in boundaries.items() if isinstance(one, FixedFlux)}
        given = {
            name: one for name, one in boundaries.items() if one is not None and not isinstance(one, FixedFlux)
        }  # fmt: skip

        def check() -> None:
            """Raise `SolverError` for what is not finite, or too small, at the points or on a patch."""
            places, d = points.coordinates[: points.points.size], points.dimension
            check_value("velocity", velocity, places, d)
            check_value("diffusivity", diffusivity, places, least=0.0)
            check_value("source", source, places)
            check_value("start", start, places)
            for name, one in (given | fluxes).items():
                check_value(f"boundaries.{name}.value", one, places[points.patches[name].points])

        raise_on_all_ranks(points.context.comm, check)
        self.solver = solver = EdgeTransport(
            points, velocity, diffusivity, given, fluxes=fluxes, source=source, scheme=scheme, bounded=bounded
        )  # fmt: skip
        solver.initialise(start)
        lengths, mass = chosen("steps", steps, StepLengths).bounds(_COURANT), solver.operators.mass
        if not lengths.dt and not math.isfinite(solver.stable_step(lengths.courant)):
            raise SolverError("dt: a scalar that neither flows nor diffuses has no largest stable step: give dt")
        super().__init__(solver, Change(solver.c, mass, volume_of(mass)), lengths)
        self._limit = 0.0

    def _take(self, start: Start) -> None:
        """Take the scalar of another result, bounded by those around it."""
        solver = self.solver
        solver.take(start.at(solver.places, ("scalar",), bounded=True)["scalar"], start.clock[0])

    # ------------------------------------------------------------------------------------- advance
    @property
    def _weight(self) -> Dat:
        return self.solver.operators.mass

    def _largest_step(self) -> float:
        if not self._limit or self.solver.moves:
            self._limit = self.solver.stable_step(self.lengths.courant)
        return self._limit

    # --------------------------------------------------------------------------------------- results
    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return [*self.solver.chains, self.solver.limit, self._change.chain]

    def fields(self) -> Fields:
        """Return the scalar, ``(n,)``; derived ones are the velocity that carries it, and its magnitude."""
        velocity = cache(self.solver.u.read)
        derived = velocity_quantities(velocity, self.solver.dimension, "m/s") | speed_quantity(velocity, "m/s")
        return Fields(self._quantities(), derived)

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return how the scalar is carried."""
        solver = self.solver
        free = f"{strategy_name(solver.scheme.convection)}, not bounded (scheme.bounded)"
        return (("scheme", free if solver.bounded is None else "bounded, by flux correction (scheme.bounded)"),)

    def _sums(self) -> Sequence[tuple[str, str]]:
        return (*super()._sums(), *self.choices())

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return edge_transport_watch(self.solver, self.lengths, until, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.lengths.dt:
            return f"lower time.dt (now {self.lengths.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant"
