"""Flow on a staggered grid, as scripts and cases make it: steps, history, fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import chosen
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.flows.flow_in_time import FlowInTime
from fluxloom.flows.flow_plan import (
    COMPONENTS,
    StepLengths,
    flow_pictures,
    speed_quantity,
    total_pressure,
    velocity_quantities,
)
from fluxloom.flows.flow_watch import staggered_watch
from fluxloom.flows.given import check_value, start_velocity
from fluxloom.flows.staggered.surface import StaggeredSurface
from fluxloom.flows.volumes import usual_context
from fluxloom.fv.given import Given
from fluxloom.fv.incompressible.boundary import Boundary
from fluxloom.fv.incompressible.projection_schemes import StaggeredTimeScheme
from fluxloom.fv.staggered import kernels as kernels
from fluxloom.fv.staggered.grid import StaggeredGrid, sides_of
from fluxloom.fv.staggered.sides import side_places
from fluxloom.fv.staggered.transfer import between_faces, same_box
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.run.fields import Fields, Quantity, curl_quantities, gradient_quantities
from fluxloom.run.flow import HistoryPanel, Picture, Until
from fluxloom.run.measures import Averaged, AveragedValue, PointValues
from fluxloom.run.start import Start
from fluxloom.run.watch import GuardLimits, Watch
from fluxloom.solvers.staggered.flow import Staggered as Solver

if TYPE_CHECKING:
    from fluxloom.solvers.probe_records import Outside

__all__ = ["Staggered", "StaggeredStart"]

Array = npt.NDArray[np.float64]

StaggeredStart = Given | Sequence[Array]
"""A vector of numbers or values, a function of the places ``(n, d)``, or each component at its faces."""


class _Residual:
    """What the solver measures by itself, now and then."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver

    @property
    def chain(self) -> Chain:
        """What measures: the last part of a step."""
        return self._solver.stages[-1].looking

    def begin(self) -> None:
        """Nothing is kept here."""

    def measured(self, dt: float) -> float:
        """Return the root mean square of ``du/dt``, when it was last measured."""
        return self._solver.residual


class Staggered(FlowInTime):
    """Incompressible flow in a box on a staggered grid, with a direct solver of the pressure.

    Parameters
    ----------
    grid
        The box.
    context
        Where it runs, on one rank; by default the CPU.
    viscosity
        Kinematic.
    boundaries
        Side to `NoSlip`, `Inflow`, `Outflow` or `Symmetry`; each side that is not periodic needs one.
    start
        Velocity at the start, ``(d,)`` numbers or values, a function of places ``(n, d)`` that returns as many vectors,
        or each component at its faces (`StaggeredGrid.places`); it is made free of divergence. At rest by default.
    force
        Acceleration, ``(d,)``: numbers, or values in space and time (`fluxloom.values.value.value_of`).
    mean_velocity
        ``(d,)``: along the one axis where it is not zero, which is periodic, the force keeps it; empty: it does not.
    scheme, steps
        How time advances (`AdamsBashforth` or `Wray`), and how long steps are.
    residual_interval
        Steps from one measurement of the residual, and of the largest stable step, to the next.
    library
        Of the transforms of the pressure, as `fluxloom.linalg.direct.poisson.Plan` takes it.

    Attributes
    ----------
    solver
        `fluxloom.solvers.staggered.flow.Staggered`.

    Raises
    ------
    SolverError
        If a side has no boundary condition, what is given does not fit, or there are several ranks.
    """

    curves = (
        *FlowInTime.curves,
        HistoryPanel("bulk velocity", ("bulk_u", "bulk_v")),
        HistoryPanel("residual", ("residual",), logarithmic=True),
    )

    remembers = (*FlowInTime.remembers, "_stable")

    def __init__(
        self,
        grid: StaggeredGrid,
        context: Context | None = None,
        *,
        viscosity: float,
        boundaries: Mapping[str, Boundary] | None = None,
        start: StaggeredStart = (),
        force: Given = (),
        mean_velocity: Sequence[float] = (),
        scheme: StaggeredTimeScheme | None = None,
        steps: StepLengths | None = None,
        residual_interval: int = 10,
        library: str = "auto",
    ) -> None:
        _check_values(grid, boundaries or {}, force)
        self.solver = solver = Solver(
            usual_context(context), grid, viscosity, boundaries, force=force, scheme=scheme,
            mean_velocity=mean_velocity, library=library,
        )  # fmt: skip
        solver.initialise(_start(start, solver.context.comm))
        solver.every, lengths = residual_interval, chosen("steps", steps, StepLengths)
        super().__init__(solver, _Residual(solver), lengths)
        self._stable = 0.0

    def _take(self, start: Start) -> None:
        """Take the velocity of another result, linear, and made free of divergence.

        From a checkpoint of a staggered grid of the same box the velocity is that at its faces: on the same grid the
        velocity is the same but for round-off.
        """
        solver, grid = self.solver, self.solver.grid
        places = [np.broadcast_arrays(*grid.places(a)) for a in range(grid.dimension)]
        at = [np.stack([line.ravel() for line in lines], axis=1) for lines in places]
        found = self._between_faces(start)
        if found is None:
            found = [start.velocity(at[a])[:, a].reshape(lines[0].shape) for a, lines in enumerate(places)]
        else:
            found = [v + start.noise(at[a])[:, a].reshape(v.shape) for a, v in enumerate(found)]
        solver.initialise(found, start.clock[0])

    def _between_faces(self, start: Start) -> list[npt.NDArray[np.float64]] | None:
        """Return the velocity of a checkpoint of a grid of the same box; None: it is of something else."""
        kept = start.kept(("run.flow.solver.box", "run.flow.solver.fields.u"))
        if kept is None:
            return None
        box, values = kept.values()
        other = StaggeredGrid(tuple(np.asarray(line) for line in box["faces"]), tuple(box["periodic"]))
        if not same_box(self.solver.grid, other):
            return None
        try:
            return between_faces(other, values.reshape(*other.full_shape, other.dimension), self.solver.grid)
        except SolverError as error:
            raise SolverError(f"{start.path}: {error}") from None

    def mesh(self) -> MeshData:
        """Return the cells as quads or hexahedra."""
        faces, counts = self.solver.grid.faces, self.solver.grid.counts
        lengths = [float(f[-1] - f[0]) for f in faces]
        origin = [float(f[0]) for f in faces]
        if self.solver.dimension == 2:
            return box2d(counts[0], counts[1], lengths, origin=origin, axes=faces)
        return box3d(counts[0], counts[1], counts[2], lengths, origin=origin, axes=faces)

    @property
    def bounds(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Lower and upper corner of the box."""
        faces = self.solver.grid.faces
        return np.array([float(f[0]) for f in faces]), np.array([float(f[-1]) for f in faces])

    # ------------------------------------------------------------------------------------- advance
    def _bounded(self) -> bool:
        return math.isfinite(self.solver.stable_step(self.lengths.courant, self.lengths.diffusion))

    def _largest_step(self) -> float:
        steps, every = self.solver.steps, self.solver.every
        if not self._stable or steps < every or steps % every == 0:  # the first steps find the speed of the flow
            self._stable = self.solver.stable_step(self.lengths.courant, self.lengths.diffusion)
        return self._stable

    # ------------------------------------------------------------------------------- what can be measured
    @property
    def patches(self) -> Sequence[str]:
        """Names of the sides."""
        return tuple(self.solver.boundaries)

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> StaggeredSurface:
        """Return sides as a surface."""
        return StaggeredSurface(self.solver, patches, about)

    # --------------------------------------------------------------------------------------- results
    def columns(self) -> dict[str, float]:
        """Return time, energy, imbalance, bulk velocity and force."""
        state = self.solver.state()
        found = {"time": state.time, "kinetic_energy": state.kinetic_energy, "imbalance": state.imbalance}
        bulk = state.momentum / self.solver.grid.volume
        found |= {f"bulk_{name}": float(value) for name, value in zip(COMPONENTS, bulk, strict=False)}
        force = self.solver.acting_force()
        found |= {f"force_{'xyz'[k]}": float(value) for k, value in enumerate(force)}
        return found | {"residual": self.solver.residual}

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.solver.grid.cells

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        return self.solver.chains

    def pictures(self, name: str) -> Sequence[Picture]:
        """Return speed, vorticity and pressure."""
        return flow_pictures(name, self.solver.time)

    def fields(self) -> Fields:
        """Return components of the velocity, speed, kinematic pressure and vorticity of cells, ``(cells,)`` each.

        Of a flow in three dimensions the vorticity is its magnitude. Derived ones are what the gradient of the velocity
        says, and the pressure of the fluid at rest.
        """
        solver, d = self.solver, self.solver.dimension
        velocity, pressure = cache(solver.velocity), cache(solver.pressure)
        turning = curl_quantities(cache(solver.fields.vorticity), d, "")
        found = velocity_quantities(velocity, d, "") | speed_quantity(velocity, "")
        found |= {"p": Quantity("", "kinematic pressure", pressure), "vorticity": turning["vorticity"]}
        gradient = gradient_quantities(cache(solver.fields.velocity_gradient), "")
        return Fields(found, turning | gradient | total_pressure(pressure, velocity, ""))

    def averaged(self) -> Averaged:
        """Return the velocity in the middle of cells and the kinematic pressure.

        Squares of the velocity are means of those at the two faces of a cell.
        """
        solver, fields, d = self.solver, self.solver.fields, self.solver.dimension
        centre, spread = (
            self.context.dat(fields.grid, name=name, shape=(d,), layout=SoA()) for name in ("u centre", "u spread")
        )
        centres = Loop(kernels.centred, fields.grid, fields.u[fields.upward], centre, spread, d=d)
        pressure = AveragedValue("p", solver.impulse()[0], scale=lambda: solver.impulse()[1])
        grid = solver.grid

        def read(dat: Dat) -> npt.NDArray[np.float64]:
            """Return the values of the cells."""
            return dat.read()[grid.interior].reshape(grid.cells, -1)

        def places() -> npt.NDArray[np.float64]:
            """Return the middles of the cells."""
            lines = np.meshgrid(*(grid.centres(k) for k in reversed(range(d))), indexing="ij")
            return np.stack([line.ravel() for line in reversed(lines)], axis=1)

        return Averaged(
            fields.grid, [pressure], read, places, lambda: grid.volumes()[grid.interior].ravel(), centre,
            COMPONENTS[:d], spread=spread, before=[centres], layout=SoA(),
        )  # fmt: skip

    def _sums(self) -> Sequence[tuple[str, str]]:
        state = self.solver.state()
        bulk = ", ".join(f"{value:.7g}" for value in state.momentum / self.solver.grid.volume)
        return (
            ("kinetic energy", f"{state.kinetic_energy:.9g}"),
            ("bulk velocity", bulk),
            ("imbalance", f"{state.imbalance:.2e} at most in a cell"),
        )

    def _rows(self) -> Sequence[tuple[str, str]]:
        solver = self.solver
        force = ", ".join(f"{value:.6g}" for value in solver.acting_force())
        rows = [("force", force)] if solver.acting_force().any() else []
        loops = sum(report.seconds for chain in solver.chains for report in chain.reports())
        pressure = sum(solver.pressure_seconds.values())
        text = "not timed on this device; add --profile"
        if loops and pressure:
            share = 100.0 * pressure / (loops + pressure)
            text = f"loops {loops:.3f} s, pressure {pressure:.3f} s ({share:.1f} %)"
        return [*rows, ("split", text), ("pressure", solver.plan.describe().splitlines()[0])]

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> PointValues:
        """Return what samples velocity and pressure at points."""
        from fluxloom.solvers.staggered.probes import StaggeredProbes

        return StaggeredProbes(self.solver, points, capacity, outside)

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return staggered_watch(self.solver, self.lengths, until, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        if self.lengths.dt:
            return f"lower time.dt (now {self.lengths.dt:g}), or set it to 0 for the largest stable step"
        return "lower time.courant and time.diffusion, or give time.dt, a fixed step below those that were chosen"


def _start(given: StaggeredStart, comm: Comm) -> Callable[[Array], Array] | Sequence[Array]:
    """Return the velocity at the start as the solver takes it."""
    if isinstance(given, Sequence | np.ndarray) and len(given) and np.ndim(given[0]):  # pyright: ignore[reportArgumentType]
        return [np.asarray(component, dtype=np.float64) for component in given]
    return lambda places: start_velocity(given, places, comm)  # pyright: ignore[reportArgumentType]


def _check_values(grid: StaggeredGrid, boundaries: Mapping[str, Boundary], force: Given) -> None:
    """Raise `SolverError` where the force, or the velocity of a side, does not fit the box at the start."""
    d = grid.dimension
    check_value("force", force, np.array([[line.mean() for line in grid.faces]]), d)
    for side in sides_of(grid):
        one = boundaries.get(side.name)
        if isinstance(one, Boundary) and one.prescribed is not None:
            check_value(f"boundaries.{side.name}.velocity", one.prescribed, side_places(grid, side, side.axis), d)
