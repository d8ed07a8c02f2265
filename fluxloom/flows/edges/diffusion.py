"""Conduction of heat and Poisson's equation, as scripts and cases make them: steps, or a steady state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.flows.edges.flow import volume_of
from fluxloom.flows.edges.transport import ScalarOnPoints
from fluxloom.flows.flow_change import Change
from fluxloom.flows.flow_plan import StepLengths
from fluxloom.flows.flow_watch import diffusion_watch
from fluxloom.flows.given import check_value
from fluxloom.flows.points import PointDomain
from fluxloom.flows.scalar_surface import ScalarSurface
from fluxloom.flows.volumes import MeshLike
from fluxloom.fv.given import Given
from fluxloom.fv.incompressible.scalar_boundary import FixedFlux
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.status import Stop
from fluxloom.run.flow import HistoryPanel, Until
from fluxloom.run.start import Start
from fluxloom.run.watch import GuardLimits, Watch
from fluxloom.solvers.edges.diffusion import Convective, DiffusionPatch
from fluxloom.solvers.edges.diffusion import Diffusion as Solver

__all__ = ["Diffusion"]


class Diffusion(ScalarOnPoints):
    r"""Diffusion of a scalar in time or to a steady state, :math:`c \, \partial_t u = \nabla \cdot (k \nabla u) + f`.

    Conduction of heat, with ``k`` in W/(m K), ``c`` in J/(m^3 K) and ``f`` in W/m^3; Poisson's equation.

    Parameters
    ----------
    mesh
        The mesh, the path of its file, or points that are dealt out already (`fluxloom.flows.points.flow_points`).
        Cells of any kind but polyhedra are divided into triangles or tetrahedra at their points
        (`fluxloom.mesh.geometry.divide`); the flow and its results are on these. On several ranks everything is
        collective.
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
        Of conjugate gradients, see `fluxloom.solvers.edges.diffusion.Diffusion`.

    Attributes
    ----------
    solver
        `fluxloom.solvers.edges.diffusion.Diffusion`.

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

    unknown, exerts, solves, table = "u", False, "the correction", "krylov"
    solver: Solver

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
            """Raise `SolverError` for what is not finite, or too small, in the cells, at the points or on a patch."""
            cells, places = points.mesh.centroids.read(), points.coordinates[: points.points.size]
            for key, given in (("conductivity", conductivity), ("capacity", capacity), ("source", source)):
                check_value(key, given, cells)
            check_value("start", start, places)
            for name, one in boundaries.items():
                where, key = places[points.patches[name].points], f"boundaries.{name}"
                if isinstance(one, Convective):
                    check_value(f"{key}.coefficient", one.coefficient, where, least=0.0)
                    check_value(f"{key}.outside", one.outside, where)
                else:
                    check_value(f"{key}.value", one.flux if isinstance(one, FixedFlux) else one, where)

        raise_on_all_ranks(points.context.comm, check)
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
        """Raise `SolverError` for an end in time of a steady state, or one whose level nothing says. Collective."""
        if self.lengths.dt:
            return
        if until.time:
            raise SolverError("dt: a run to an end in time needs the length of its steps; without dt it is steady")
        self.solver.check_settled()

    def _largest_step(self) -> float:
        return math.inf

    @property
    def _weight(self) -> Dat:
        return self.solver.volume

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

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return what flows in time say; of a steady state the change in the last step."""
        rows = super().summary(until)
        if self.lengths.dt:
            return rows
        known = dict(rows) | {"residual": f"{self._residual:.6e} (root mean square of the change in the last step)"}
        return [(name, text) for name, text in known.items() if name != "time"]

    def _rows(self) -> Sequence[tuple[str, str]]:
        mean = self._iterations / max(1, self.solver.steps)
        return (("conjugate gradients", f"{self._last:,} iterations in the last step, {mean:.1f} on average"),)

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return diffusion_watch(self.solver, until, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return "look at what is given: steps of any length are stable"
