"""Conduction of heat and Poisson's equation, as scripts and cases make them: steps, or a steady state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fluxloom.core.errors import SolverError
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat
from fluxloom.flows.domain import MeshLike
from fluxloom.flows.edge_flow import FlowOnPoints, volume_of
from fluxloom.flows.flow_change import Change
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.flows.flow_watch import diffusion_watch
from fluxloom.flows.given import check_value
from fluxloom.flows.points import PointDomain
from fluxloom.flows.scalar_surface import ScalarSurface
from fluxloom.fv.given import Given
from fluxloom.fv.scalar_sides import FixedFlux
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.status import Status, Stop
from fluxloom.mesh.rows import together
from fluxloom.run.fields import Fields, Quantity
from fluxloom.run.flow import HistoryPanel, Picture, Until
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.measures import Averaged, AveragedValue, PointValues
from fluxloom.run.start import Start
from fluxloom.run.watch import Watch
from fluxloom.solvers.diffusion import Convective, DiffusionPatch
from fluxloom.solvers.diffusion import Diffusion as Solver
from fluxloom.solvers.edge_transport import TransportState

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["Diffusion"]

_TINY = float(np.finfo(np.float64).tiny)


class Diffusion(FlowOnPoints):
    r"""Diffusion of a scalar in time or to a steady state, :math:`c \, \partial_t u = \nabla \cdot (k \nabla u) + f`.

    Conduction of heat, with ``k`` in W/(m K), ``c`` in J/(m^3 K) and ``f`` in W/m^3; Poisson's equation.

    Parameters
    ----------
    mesh
        The mesh, the path of its file, or points that are dealt out already (`fluxloom.flows.points.flow_points`). Cells
        of any kind but polyhedra are divided into triangles or tetrahedra at their points (`fluxloom.mesh.divide`); the
        flow and its results are on these. On several ranks everything is collective.
    context
        Where it runs; by default the CPU.
    conductivity, capacity, source
        ``k``, ``c`` and ``f`` of the cells: a number, a value in space and time (`fluxloom.values.value.value_of`) at
        their centroids, or a function of these ``(n, d)`` that returns ``(n,)``.
    boundaries
        Patch to the scalar there: a number, a value or a function of the points; to `FixedFlux`: what diffuses in,
        ``k du/dn``; to `Convective`; or to None: insulated. Each patch needs one; where patches meet, the later given
        scalar counts.
    start
        The scalar at the start: a number, a value, or a function of the points.
    dt
        Length of the steps. 0: each step finds the steady state, at time 0; run it until `Steady`.
    stop, preconditioner
        Of conjugate gradients, see `fluxloom.solvers.diffusion.Diffusion`.

    Attributes
    ----------
    solver
        `fluxloom.solvers.diffusion.Diffusion`.

    Raises
    ------
    MeshError
        If the mesh is broken, or has polyhedra; `PatchError`, if a patch is not among the boundaries, or a name is that
        of no patch.
    SolverError
        If what is given does not fit.

    Examples
    --------
    >>> wall = fl.Diffusion("wall.msh", conductivity=0.8, boundaries={"in": 20.0, "out": fl.Convective(25.0, -5.0)})
    >>> fl.run(wall, fl.Steady(), [fl.PatchFlow("in")])
    """

    curves = (HistoryPanel("least and most", ("least", "most")), HistoryPanel("amount", ("amount",)))
    section, exerts = "scalar", False

    def __init__(
        self,
        mesh: MeshLike | PointDomain,
        context: Context | None = None,
        *,
        conductivity: Given,
        boundaries: Mapping[str, DiffusionPatch],
        capacity: Given = 1.0,
        source: Given = 0.0,
        start: Given = 0.0,
        dt: float = 0.0,
        stop: Stop | None = None,
        preconditioner: Preconditioner | None = None,
    ) -> None:
        points = self._settle(mesh, context, boundaries, divide=True)
        lengths = StepLengths(dt)

        def check() -> None:
            cells, places = points.mesh.centroids.read(), points.coordinates[: points.points.size]
            check_value("conductivity", conductivity, cells, least=_TINY)
            check_value("capacity", capacity, cells, least=_TINY)
            check_value("source", source, cells)
            check_value("start", start, places)
            for name, one in boundaries.items():
                where, key = places[points.patches[name].points], f"boundaries.{name}"
                if isinstance(one, Convective):
                    check_value(f"{key}.coefficient", one.coefficient, where, least=0.0)
                    check_value(f"{key}.outside", one.outside, where)
                else:
                    check_value(f"{key}.value", one.flux if isinstance(one, FixedFlux) else one, where)

        together(points.context.comm, check)
        self.solver = solver = Solver(
            points, conductivity, boundaries, capacity=capacity, source=source, stop=stop, preconditioner=preconditioner
        )  # fmt: skip
        solver.initialise(start)
        super().__init__(solver, Change(solver.c, solver.volume, volume_of(solver.volume)), lengths)

    def _take(self, start: Start) -> None:
        """Take the scalar of another result, bounded by those around it."""
        solver = self.solver
        values = start.at(solver.places, ("scalar",), bounded=True)["scalar"]
        solver.initialise(lambda _places: values, start.clock[0])

    # ------------------------------------------------------------------------------------- advance
    @property
    def time(self) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Of the flow; None where it has none, on the way to a steady state."""
        return self.solver.time if self.lengths.dt else None

    def check_end(self, until: Until) -> None:
        """Raise `SolverError` for an end in time of a steady state."""
        if until.time and not self.lengths.dt:
            raise SolverError("dt: a run to an end in time needs the length of its steps; without dt it is steady")

    def _largest_step(self) -> float:
        return math.inf

    def _solved(self, status: Status) -> None:
        if not status.converged:
            raise SolverError(
                f"step {self.solver.steps}: conjugate gradients have not converged, |r|/|b| = {status.relative:.2e} "
                f"after {status.iterations:,} iterations ({status.reason}); raise krylov.iterations or krylov.rtol, or "
                "choose another krylov.preconditioner"
            )
        super()._solved(status)

    def columns(self) -> dict[str, float]:
        """Return time, amount ``sum M c u`` and range of the scalar."""
        state = self._state()
        found = {"time": state.time, "amount": state.amount, "least": state.least, "most": state.most}
        return found if self.lengths.dt else {name: found[name] for name in found if name != "time"}

    def _state(self) -> TransportState:
        """Return sums and range, NaN where the scalar is lost: the fields show where. Collective."""
        try:
            return self.solver.state()
        except SolverError:
            return TransportState(self.solver.time, self.solver.steps, *[math.nan] * 4)

    # ------------------------------------------------------------------------------- what can be measured
    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> ScalarSurface:
        """Return patches as a surface that knows what passes. Collective."""
        return ScalarSurface(self.solver, patches, self.solver.conductivity)

    # --------------------------------------------------------------------------------------- results
    @property
    def _pressure_chains(self) -> Sequence[Chain]:
        return self.solver.krylov.chains

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return [*self.solver.chains, self._change.chain]

    def panels(self, columns: Sequence[str]) -> tuple[str, Sequence[HistoryPanel]]:
        """Return what is drawn over time, or over steps."""
        return "time" if self.lengths.dt else "step", self.curves

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return the scalar."""
        when = f", time {self.solver.time:.6g}" if self.lengths.dt else ""
        return (Picture("scalar", f"Scalar: {name}{when}", "scalar"),)

    def fields(self) -> Fields:
        """Return the scalar, ``(n,)``."""
        return Fields({"scalar": Quantity("", "what diffuses", self.solver.scalar)}, {})

    def averaged(self) -> Averaged:
        """Return the scalar."""
        points, volume = self.domain.points, self.solver.volume
        return Averaged(
            points, [AveragedValue("scalar", self.solver.c)], Dat.read,
            lambda: self.domain.coordinates[: points.size], lambda: volume.read().reshape(-1),
        )  # fmt: skip

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return what flows in time say; of a steady state the change in the last step."""
        rows = super().summary(until)
        if self.lengths.dt:
            return rows
        known = dict(rows) | {"residual": f"{self._residual:.6e} (root mean square of the change in the last step)"}
        return [(name, text) for name, text in known.items() if name != "time"]

    def _sums(self) -> Sequence[tuple[str, str]]:
        state = self._state()
        mean = self._iterations / max(1, state.steps)
        return (
            ("amount", f"{state.amount:.9g}"),
            ("range", f"{state.least:.6g} to {state.most:.6g}"),
            ("conjugate gradients", f"{self._last:,} iterations in the last step, {mean:.1f} on average"),
        )

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> PointValues:
        """Return what samples the scalar at points. Collective."""
        from fluxloom.solvers.edge_transport_probes import TransportProbes

        return TransportProbes(self.solver, points, capacity, outside)

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return diffusion_watch(self.solver, until, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return "look at what is given: steps of any length are stable"
