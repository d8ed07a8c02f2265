"""Lattice Boltzmann flow in physical units: what is solved in cells and steps, and what of it a run looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, cached_property
from math import isfinite

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import Divergence, SolverError, did_you_mean
from fluxloom.core.status import Goal
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.flows.flow_plan import COMPONENTS, speed_quantity, total_pressure, velocity_quantities
from fluxloom.flows.lattice.fields import gradient_of, look_at
from fluxloom.flows.lattice.given.bodies import Body, solid_bodies
from fluxloom.flows.lattice.given.force import Acceleration
from fluxloom.flows.lattice.given.immersed import Immersion, immersed_boundary
from fluxloom.flows.lattice.given.numerics import Numerics
from fluxloom.flows.lattice.given.particles import Particles
from fluxloom.flows.lattice.given.sides import Given, NoSlip, Side, Slip
from fluxloom.flows.lattice.given.start import Start
from fluxloom.flows.lattice.given.units import FASTEST, SOUND, Units
from fluxloom.flows.lattice.means import averaged_of
from fluxloom.flows.lattice.pictures import FILMED, LatticeFrames, LayerPicture, PlanePicture, draw_fields
from fluxloom.flows.lattice.places import BodyPlaces
from fluxloom.flows.lattice.points import LatticePoints
from fluxloom.flows.lattice.ranks import Pieces
from fluxloom.flows.lattice.rates import Rate, bound_row, bytes_of_step
from fluxloom.flows.lattice.snapshots import BackgroundWriter
from fluxloom.flows.lattice.sums import KeptNumbers
from fluxloom.flows.lattice.surface import LatticeSurface
from fluxloom.flows.lattice.watch import lattice_watch
from fluxloom.flows.naming import named
from fluxloom.flows.volumes import usual_context
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.immersed.reports import shares
from fluxloom.linalg.direct.calls import MixedChain
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.run.fields import Fields, Quantity, curl, curl_quantities, gradient_quantities
from fluxloom.run.flow import Flow, HistoryPanel, Until
from fluxloom.run.measures import Averaged
from fluxloom.run.results.reports import executables, merged_reports
from fluxloom.run.results.results import ResultFolder
from fluxloom.run.start import Start as OtherResult
from fluxloom.run.watch import GuardLimits, Watch
from fluxloom.solvers.lattice.checks import check_collision
from fluxloom.solvers.lattice.flow import LatticeBoltzmann
from fluxloom.solvers.probe_records import Outside

__all__ = ["Lattice"]

Array = npt.NDArray[np.float64]

_CLOSE = 1e-9


class Lattice(Flow):
    """Weakly compressible flow in a box of cubic cells, in physical units; vectors and places have x first.

    Its pictures are drawn at the end from the lattice itself, not from an unstructured mesh.

    Parameters
    ----------
    cells
        Along x, y (and z).
    units
        Size of a cell and length of a step, the fluid, and what it refers to.
    context
        Where it runs; by default this machine's processor. On several ranks everything is collective.
    boundaries
        What happens at sides, from `fluxloom.flows.lattice.given.sides`, by name: ``"xmin"``, ``"xmax"``, ``"ymin"``,
        ... . The two sides across an axis without any are joined.
    bodies, particles
        Bodies by name, and many free ones.
    force
        Acceleration of the fluid, a value a dimension; empty: none. With immersed bodies it is the same everywhere.
    start
        How it begins.
    numerics, immersion
        How it is computed, and immersed bodies in it.
    residual_interval
        Steps from one measurement of the residual to the next.

    Raises
    ------
    SolverError
        For what does not fit; it begins with the part that is meant: ``body.wing.center: ...``.
    """

    remembers = ("_residual", "_energy")

    def __init__(
        self, cells: Sequence[int], units: Units, context: Context | None = None, *,
        boundaries: Mapping[str, Side] | None = None, bodies: Mapping[str, Body] | None = None,
        particles: Particles | None = None, force: Sequence[Given] = (), start: Start = Start(),
        numerics: Numerics = Numerics(), immersion: Immersion = Immersion(), residual_interval: int = 100,
    ) -> None:  # fmt: skip
        if len(cells) != units.dimension:
            raise SolverError(f"cells={tuple(cells)}: {units.dimension} numbers are wanted, as units.lower has them")
        self.context = usual_context(context)
        self.units, self.numerics, self._every = units, numerics, residual_interval
        sides, solids = boundaries or {}, bodies or {}
        self.closed = not solids and particles is None and all(isinstance(one, NoSlip | Slip) for one in sides.values())
        d, shape = units.dimension, tuple(cells[::-1])
        with named("lattice.name"):
            lattice = numerics.lattice_in(d)
        with named("lattice"):
            check_collision(numerics.collision, lattice)
        box = Box(shape, tuple(f"{axis}min" not in sides for axis in "zyx"[3 - d :]))
        self.boundary = immersed_boundary(solids, particles, immersion, box, units)
        self._force = Acceleration(force, units)
        in_field = self.boundary is not None and numerics.streaming.buffers == 1
        self.solver = LatticeBoltzmann(
            self.context, shape, viscosity=units.lattice_viscosity, lattice=lattice, collision=numerics.collision,
            streaming=numerics.streaming, dtype=numerics.precision, bodies=solid_bodies(solids, box, units),
            boundaries={name: side.on_lattice(units, f"boundary.{name}") for name, side in sides.items()},
            force=self._force.start(in_field), cells=numerics.cells,
        )  # fmt: skip
        if self.boundary is not None:
            with named("body, particles"):
                self.solver.immerse(self.boundary)
        self._force.attach(self.solver)
        self.solver.initialise(*start.on_lattice(shape, units))
        self.pieces = Pieces(self.solver)
        self.partition = self.pieces.report(numerics.cells.shares)
        self.beside = BackgroundWriter(self.solver, self.pieces.window)
        self._numbers = KeptNumbers(self.solver)
        self._places = None if self.boundary is None else BodyPlaces(self.boundary, units)
        self._residual = 1.0
        self._energy: tuple[int, float] | None = None
        self._first: int | None = None  # steps done before this run
        self._rate = Rate(self.solver.cells)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The lower and the upper corner of the box."""
        low, counts = np.array(self.units.lower), np.array(self.solver.box.shape[::-1])
        return low, low + counts * self.units.dx

    @property
    def patches(self) -> Sequence[str]:
        """Names of the sides that have a condition, and of the bodies."""
        return [*self.solver.conditions.given, *(() if self.boundary is None else self.boundary.names)]

    def check_forces(self, patches: Sequence[str]) -> None:
        """Raise `SolverError` for a side that is no wall: the exchange of momentum is that of walls and bodies."""
        for name in patches:
            self._numbers.measure(name)

    def surface(self, patches: Sequence[str], about: Sequence[float] = ()) -> LatticeSurface:
        """Return walls and bodies as a surface. Collective."""
        return LatticeSurface(self.solver, self._numbers, self.units, patches, about)

    def at_points(
        self, points: Mapping[str, Sequence[float]], capacity: int, outside: Outside = "error"
    ) -> LatticePoints:
        """Return what samples velocity and pressure at points. Collective."""
        return LatticePoints(self.solver, self.units, points, capacity, outside)

    def averaged(self) -> Averaged:
        """Return velocity and pressure of the cells. Collective."""
        return averaged_of(self.solver, self.units, self.pieces)

    def frames(self, field: str) -> LatticeFrames:
        """Return pictures of speed, vorticity, pressure or a component of the velocity. Collective.

        Those of a volume are of the layer in the middle across z.
        """
        known, flat = FILMED[: 3 + self.dimension], self.dimension == 2
        if field not in known:
            raise SolverError(f"no pictures of {field!r}{did_you_mean(field, known)} (there are: {', '.join(known)})")
        if flat:
            picture = PlanePicture(self.solver, self.units, self.pieces, field, self.beside.snapshot)
        else:
            picture = LayerPicture(self.solver, self.units, field)
        most, signed = self.units.velocity, field != "speed" and (flat or field != "vorticity")
        largest = {"vorticity": 4.0 * most / self.units.length, "p": most**2}.get(field, 1.5 * most)
        return LatticeFrames(picture, self.beside, largest, signed=signed)

    def start_from(self, start: OtherResult) -> None:
        """Start from velocity and pressure of another result, in local equilibrium with them.

        What populations have beyond equilibrium, the stresses, comes back in the first steps, some relaxation times.
        Time and steps that are kept are those of the time of the result, in steps of now, of which the number is even:
        as populations at a start are those that even steps read.

        Raises
        ------
        SolverError
            If a velocity is too fast for the lattice.
        """
        solver, units, d = self.solver, self.units, self.units.dimension
        shape, comm, names = solver.box.shape, solver.context.comm, COMPONENTS[: self.units.dimension]
        cells = np.stack([at.ravel() for at in np.indices(shape, dtype=np.float64)], axis=1)
        places = np.stack(units.points(cells), axis=1)
        found = comm.broadcast(start.at(places if comm.rank == 0 else places[:0], (*names, "p")))
        velocity = np.stack([found[name] for name in names][::-1], axis=1) / units.speed
        if (most := float(np.linalg.norm(velocity, axis=1).max(initial=0.0)) / SOUND) > FASTEST:
            raise SolverError(
                f"{start.path}: the velocity has a Mach number of {most:.3g} on this lattice, which takes {FASTEST} at "
                "most: lower time.lattice_velocity"
            )
        steps = round(start.clock[0] / units.dt)
        steps += steps % 2
        self._force.prepare(steps - 1)
        solver.initialise((1.0 + units.excess(found["p"])).reshape(shape), velocity.reshape(*shape, d))
        solver.steps, solver.conditions.sums = steps, {}  # as before a first step

    # ------------------------------------------------------------------------------------- advance
    @property
    def dimension(self) -> int:
        """2 or 3."""
        return self.units.dimension

    @property
    def steps(self) -> int:
        """Steps since the flow began."""
        return self._numbers.steps

    @property
    def time(self) -> float:
        """In units of the case."""
        return self.steps * self.units.dt

    def goals(self, until: Until) -> Sequence[Goal]:
        """Return the end and the residual that the case names."""
        time, residual = self.time, self._residual
        ends = [Goal("time.end", "time", until.time, time, until.time <= time * (1.0 + _CLOSE))] if until.time else []
        met = residual < until.steady
        return [*ends, *([Goal("time.steady", "residual", until.steady, residual, met)] if until.steady else [])]

    def advance(self, until: Until) -> float:
        """Advance by one step; return the relative change of the speed in the reference time.

        It is that of when it was last measured, before that one.

        Raises
        ------
        SolverError
            If the flow is not finite any more.
        """
        if self._first is None:
            self._first = self.steps
        if self._energy is None:  # of a run that begins
            self._energy = (self.steps, self._kinetic())
        self._force.prepare(self.solver.steps)
        self.solver.step()
        self.beside.stepped()
        if self.steps % self._every == 0:
            self._look()
        return self._residual

    def _kinetic(self) -> float:
        """Return the sum of ``rho u^2 / 2``, on the lattice.

        Raises
        ------
        SolverError
            If it is not finite.
        """
        with np.errstate(all="ignore"):
            above, energy = self.solver.totals()
        if not (isfinite(above) and isfinite(energy)):
            text = f"step {self.solver.steps}: the flow is not finite any more; {self.advice()}"
            raise Divergence(text, step=self.solver.steps, time=self.time)
        return energy

    def _look(self) -> None:
        """Measure the residual and, as that waits for the device, the rate; look for values that were wrong."""
        self.solver.conditions.check_given()
        self._force.check()
        (before, was), steps, energy = self._energy or (0, 0.0), self.solver.steps, self._kinetic()
        passed = (steps - before) * self.units.dt * self.units.velocity / self.units.length
        self._residual = abs(energy - was) / (2.0 * energy * passed) if energy > 0.0 else abs(energy - was)
        self._energy = (steps, energy)
        self._rate.note(steps)

    # --------------------------------------------------------------------------------------- results
    def columns(self) -> dict[str, float]:
        """Return time, sums, and where bodies that move are."""
        units, seen = self.units, self._numbers
        above, energy = seen.totals()
        found = {
            "time": self.time,
            "density": units.density * (1.0 + above / self._fluid_cells),
            "kinetic_energy": energy * units.density * units.dx**units.dimension * units.speed**2,
            "speed_change": seen.noted("speed_change", self._residual),
        }
        return found | ({} if self._places is None else self._places.columns())

    def take(self) -> bool:
        """Let the device keep the sums and the forces that are measured, where it has memory of its own."""
        if self._numbers.apart:
            self._numbers.take(speed_change=self._residual)
        return self._numbers.apart

    def looking_back(self) -> AbstractContextManager[None]:
        """Within, numbers are those of the step at which `take` was called."""
        return self._numbers.looking_back()

    @cached_property
    def _fluid_cells(self) -> int:
        """Cells of fluid, of all ranks; at least one."""
        return max(1, int(np.count_nonzero(self.solver.fluid)))

    def panels(self, columns: Sequence[str]) -> tuple[str, Sequence[HistoryPanel]]:
        """Return the energy, and the coefficients of bodies."""
        panels = [HistoryPanel("kinetic energy", ("kinetic_energy",))]
        names = [column.removesuffix(".drag") for column in columns if column.endswith(".drag")]
        return "time", [*panels, *(HistoryPanel(name, (f"{name}.drag", f"{name}.lift")) for name in names)]

    def finish(self, folder: ResultFolder, name: str, *, pictures: bool) -> None:
        """Draw the fields, and end what is done beside the steps."""
        self.beside.close()
        if pictures:
            found = look_at(self.solver, self.units, self.pieces)
            draw_fields(folder, self.solver, self.units, self.pieces, found, f"{name}, time {self.time:.6g}")

    @property
    def part(self) -> Part | None:
        """The cells of this rank; None on a rank alone."""
        return self.pieces.part

    @property
    def cells(self) -> int:
        """Number of cells of the box."""
        return self.solver.box.cells

    @property
    def updates(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Cells that a step of all ranks updates: progress shows them by the second."""
        return self.solver.cells

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step, and those of steps that were done in another way before."""
        steps = [self.solver.steps_of(parity) for parity in (0, 1)]
        now = [chain for step in steps for chain in (step.chains if isinstance(step, MixedChain) else [step])]
        return [*now, *self.solver.retired]

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step of either parity."""
        return [loop for chain in self.chains for loop in chain.loops]

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group, also of what looks at the flow; then of bodies."""
        observables = [*self._numbers.chains, *executables(self.solver), *self.beside.loops]
        loops = merged_reports(unique([*self.chains, *observables]))
        return [*loops, *([] if self.boundary is None else self.boundary.reports())]

    def fields(self) -> Fields:
        """Return components of the velocity, speed, pressure and vorticity of this rank's cells, ``(cells,)`` each.

        The populations are looked at once, when the first of them is asked for. Derived ones are what the gradient of
        the velocity says, and the pressure of the fluid at rest.
        """
        d, units, pieces = self.dimension, self.units, self.pieces
        now = cache(lambda: look_at(self.solver, units, pieces))
        velocity, pressure = (lambda: now().velocity.reshape(-1, d)), (lambda: now().pressure.ravel())
        gradient = cache(lambda: gradient_of(now().velocity, units.dx, pieces))
        found = velocity_quantities(velocity, d, "") | speed_quantity(velocity, "") | {
            "p": Quantity("", "pressure over that of density one, by the density", pressure),
            "vorticity": Quantity("", "vorticity, in space its magnitude", lambda: now().vorticity.ravel()),
            "fluid": Quantity("", "1 in the fluid", lambda: now().fluid.ravel().astype(np.float32)),
        }  # fmt: skip
        turning = curl_quantities(lambda: curl(gradient()), d, "")
        return Fields(found, turning | gradient_quantities(gradient, "") | total_pressure(pressure, velocity, ""))

    def mesh(self) -> MeshData:
        """Return the cells as quads or hexahedra."""
        counts, units = self.solver.box.shape[::-1], self.units
        lengths = [n * units.dx for n in counts]
        if units.dimension == 2:
            return box2d(counts[0], counts[1], lengths, origin=units.lower)
        return box3d(counts[0], counts[1], counts[2], lengths, origin=units.lower)

    def summary(self, until: Until) -> Sequence[tuple[str, str]]:
        """Return time, steps, sums, what the flow is on the lattice, and the rate."""
        above, energy = self.solver.totals()
        units = self.units
        energy *= units.density * units.dx**units.dimension * units.speed**2
        rows = [
            ("time", f"{self.time:.6g}, {self.solver.steps:,} steps of {self.units.dt:.4g}"),
            ("lattice", str(units)),
            ("kinetic energy", f"{energy:.9g}"),
            ("mean density", f"{units.density * (1.0 + above / self._fluid_cells):.9g}"),
            ("speed change", f"{self._residual:.6e} (relative, in the reference time: that of time.steady)"),
        ]
        if self.boundary is not None:
            parts = [f"{name} {100 * part:.3g} %" for name, part in shares(self.reports()).items()]
            rows.append(("immersed", str(self.boundary)))
            rows += [("immersed, time", ", ".join(parts))] if parts else []
        if self._places is not None:
            rows += self._places.summary()
        if self.rate:
            rows.append(("rate", f"{self.rate / 1e6:.4g} MLUPS (million cells a second)"))
        if self._first is not None and self.steps > self._first:
            each = self._bytes()
            reached = f", {self.rate * each / 1e9:.4g} GB/s" if self.rate else ""
            rows.append(("memory", f"{each:.4g} bytes a cell and step{reached}"))
        return rows

    @property
    def rate(self) -> float:
        """Cells a second of all ranks, between the first look and the last; zero: not known."""
        return self._rate.value

    def _bytes(self) -> float:
        """Return the useful bytes of a cell and a step of this run. Collective."""
        between = self.solver.loops if self.solver.context.distributed else ()  # beside bodies some run by themselves
        rows = merged_reports([*self.chains, *between])
        return bytes_of_step(self.pieces.comm, rows, self.steps - (self._first or 0), self.solver.cells)

    def bound(self, copy_gbs: float) -> Sequence[tuple[str, str]]:
        """Return the rate that the copy bandwidth of all ranks allows, as rows of the summary. Collective."""
        each = self._bytes()
        return (bound_row(self.rate, each, copy_gbs, self.pieces.comm.size),) if each else ()

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return lattice_watch(self.solver, self.boundary, table, closed=self.closed, steady=until.steady > 0.0)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        elastic = () if self.boundary is None else self.boundary.elastic
        stiff = [f"lower body.{name}.stiffness and its bending; " for name in elastic]
        collision = strategy_name(self.numerics.collision)
        return "".join(stiff) + (
            f"lower time.lattice_velocity (now {self.units.velocity / self.units.speed:.3g}), take more cells, another "
            f"lattice.collision (now {collision!r}) or a smagorinsky constant; the relaxation time "
            f"is {self.units.relaxation:.6g}, and 1/2 is the limit"
        )
