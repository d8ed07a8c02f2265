"""A case of lattice Boltzmann flow as it runs: steps, history, films, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_monitors import ProbesObserver
from fluxloom.app.cases.flow_start import explained
from fluxloom.app.cases.lattice_fields import fields_of, look_at
from fluxloom.app.cases.lattice_monitors import LatticeHistory, Monitors
from fluxloom.app.cases.lattice_observers import ForcesObserver, MotionObserver, MovieObserver
from fluxloom.app.cases.lattice_probes import LatticeProbes
from fluxloom.app.cases.lattice_ranks import Pieces
from fluxloom.app.cases.lattice_rates import Rate, bound_row, bytes_of_step
from fluxloom.app.cases.lattice_results import draw_fields, write_fields
from fluxloom.app.cases.lattice_snapshots import Beside
from fluxloom.app.cases.lattice_tables import LatticeCase
from fluxloom.app.cases.lattice_units import FASTEST, SOUND, Units
from fluxloom.app.cases.lattice_watch import lattice_watch
from fluxloom.core.errors import CaseError, Divergence, SolverError
from fluxloom.core.status import Goal
from fluxloom.core.strategies import strategy_name
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.identity import unique
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.report import LoopReport
from fluxloom.lbm.immersed import ImmersedBoundary
from fluxloom.lbm.immersed.reports import shares
from fluxloom.linalg.direct import Relay
from fluxloom.mesh.generate import box2d, box3d
from fluxloom.mesh.mesh import MeshData
from fluxloom.run.flow import Flow, HistoryPanel, Until
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.guard_limits import GuardLimits
from fluxloom.run.monitor import Monitor
from fluxloom.run.reports import executables, merged_reports
from fluxloom.run.results.folder import ResultFolder
from fluxloom.run.start import Start
from fluxloom.run.watch import Watch
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["LatticeRun", "lattice_row", "lattice_run"]

_CLOSE = 1e-9
_COMPONENTS = ("u", "v", "w")


class LatticeRun(Flow):
    """The solver of lattice Boltzmann flow, ready to advance by steps.

    Its pictures are drawn at the end from the lattice itself, not from an unstructured mesh.

    Parameters
    ----------
    flow
        In its initial state.
    case
        Its tables.
    units
        Those of the case.
    boundary
        Immersed bodies, if there are any.
    """

    remembers = ("_residual", "_energy")

    def __init__(
        self, flow: LatticeBoltzmann, case: LatticeCase, units: Units, boundary: ImmersedBoundary | None = None
    ) -> None:
        self.solver, self.case, self.units, self.boundary = flow, case, units, boundary
        self.context = flow.context
        self.pieces = Pieces(flow)
        self.beside = Beside(flow, self.pieces.window)
        self.monitors = Monitors(flow)
        self._residual = 1.0
        self._energy: tuple[int, float] | None = None
        self._first: int | None = None  # steps done before this run
        self._rate = Rate(flow.cells)

    def start_from(self, start: Start) -> None:
        """Start from velocity and pressure of another result, in local equilibrium with them.

        What populations have beyond equilibrium, the stresses, comes back in the first steps, some relaxation times.
        Time and steps that are kept are those of the time of the result, in steps of now.

        Raises
        ------
        SolverError
            If a velocity is too fast for the lattice.
        """
        solver, units, d = self.solver, self.units, self.units.dimension
        shape, comm, names = solver.box.shape, solver.context.comm, _COMPONENTS[: self.units.dimension]
        cells = np.stack([at.ravel() for at in np.indices(shape, dtype=np.float64)], axis=1)
        places = np.stack(units.points(cells), axis=1)
        found = comm.broadcast(start.at(places if comm.rank == 0 else places[:0], (*names, "p")))
        velocity = np.stack([found[name] for name in names][::-1], axis=1) / units.speed
        if (most := float(np.linalg.norm(velocity, axis=1).max(initial=0.0)) / SOUND) > FASTEST:
            raise SolverError(
                f"{start.path}: the velocity has a Mach number of {most:.3g} on this lattice, which takes {FASTEST} at "
                "most: lower time.lattice_velocity"
            )
        solver.initialise((1.0 + units.excess(found["p"])).reshape(shape), velocity.reshape(*shape, d))
        time, _ = start.clock
        solver.steps = round(time / units.dt)

    # ------------------------------------------------------------------------------------- advance
    @property
    def dimension(self) -> int:
        """2 or 3."""
        return self.units.dimension

    @property
    def steps(self) -> int:
        """Steps since the flow began."""
        return self.solver.steps

    @property
    def time(self) -> float:
        """In units of the case."""
        return self.solver.steps * self.units.dt

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
        self.solver.step()
        if self.steps % self.case.time.look == 0:
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
        """Measure the residual and, as that waits for the device, the rate."""
        (before, was), steps, energy = self._energy or (0, 0.0), self.solver.steps, self._kinetic()
        passed = (steps - before) * self.units.dt * self.units.velocity / self.units.length
        self._residual = abs(energy - was) / (2.0 * energy * passed) if energy > 0.0 else abs(energy - was)
        self._energy = (steps, energy)
        self._rate.note(steps)

    # --------------------------------------------------------------------------------------- results
    def columns(self) -> dict[str, float]:
        """Return columns, of the step that the monitors look at."""
        units, seen = self.units, self.monitors
        above, energy = seen.totals()
        return {
            "time": seen.steps * units.dt,
            "density": units.density * (1.0 + above / self._fluid_cells),
            "kinetic_energy": energy * units.density * units.dx**units.dimension * units.speed**2,
            "speed_change": seen.noted("speed_change", self._residual),
        }

    def notes(self) -> dict[str, float]:
        """Return what the host knows itself of a line of the history."""
        return {"speed_change": self._residual}

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
        """Write the fields, and draw them."""
        image = self.case.output.image
        if not (pictures or image):
            return
        found = look_at(self.solver, self.units, self.pieces)
        if image:
            write_fields(folder, f"{folder.stem}.vti", self.solver, self.units, self.pieces, found, self.time)
        if pictures:
            text = f"{name}, time {self.time:.6g}"
            draw_fields(folder, self.solver, self.units, self.pieces, found, text)

    def write_taken(self, folder: ResultFolder, name: str) -> None:
        """Write the fields of the step at which they were taken. Collective."""
        taken, units, pieces = self.beside.snapshot, self.units, self.pieces
        found = fields_of(taken.velocity(), taken.density(), self.solver.fluid, units, pieces)
        write_fields(folder, name, self.solver, units, pieces, found, taken.step * units.dt, series=True)

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
        now = [chain for step in steps for chain in (step.chains if isinstance(step, Relay) else [step])]
        return [*now, *self.solver.retired]

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step of either parity."""
        return [loop for chain in self.chains for loop in chain.loops]

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group, also of what looks at the flow; then of bodies."""
        looks = [*self.monitors.chains, *executables(self.solver), *self.beside.loops]
        loops = merged_reports(unique([*self.chains, *looks]))
        return [*loops, *([] if self.boundary is None else self.boundary.reports())]

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return components of the velocity, speed, pressure and vorticity of this rank's cells, ``(cells,)`` each."""
        found = look_at(self.solver, self.units, self.pieces)
        velocity = {name: found.velocity[..., k].ravel() for k, name in enumerate(_COMPONENTS[: self.units.dimension])}
        return velocity | {
            "speed": found.speed.ravel(), "p": found.pressure.ravel(), "vorticity": found.vorticity.ravel(),
            "fluid": found.fluid.ravel().astype(np.float32),
        }  # fmt: skip

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
            ("lattice", lattice_row(self.case, self.units)),
            ("kinetic energy", f"{energy:.9g}"),
            ("mean density", f"{units.density * (1.0 + above / self._fluid_cells):.9g}"),
            ("speed change", f"{self._residual:.6e} (relative, in the reference time: that of time.steady)"),
        ]
        if self.boundary is not None:
            parts = [f"{name} {100 * part:.3g} %" for name, part in shares(self.reports()).items()]
            rows.append(("immersed", str(self.boundary)))
            rows += [("immersed, time", ", ".join(parts))] if parts else []
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
        between = self.solver.loops if self.solver.context.ranked else ()  # beside bodies some run by themselves
        rows = merged_reports([*self.chains, *between])
        return bytes_of_step(self.pieces.comm, rows, self.steps - (self._first or 0), self.solver.cells)

    def bound(self, copy_gbs: float) -> Sequence[tuple[str, str]]:
        """Return the rate that the copy bandwidth of all ranks allows, as rows of the summary. Collective."""
        each = self._bytes()
        return (bound_row(self.rate, each, copy_gbs, self.pieces.comm.size),) if each else ()

    def watch(self, table: GuardLimits, until: Until) -> Watch:
        """Return what guards look at. Collective."""
        return lattice_watch(self.solver, self.case, self.boundary, table)

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        elastic = () if self.boundary is None else self.boundary.elastic
        stiff = [f"lower body.{name}.stiffness and its bending; " for name in elastic]
        collision = strategy_name(self.case.lattice.collision)
        return "".join(stiff) + (
            f"lower time.lattice_velocity (now {self.units.velocity / self.units.speed:.3g}), take more cells, another "
            f"lattice.collision (now {collision!r}) or a smagorinsky constant; the relaxation time "
            f"is {self.units.relaxation:.6g}, and 1/2 is the limit"
        )


class _Files(Monitor):
    """Files of the fields now and then, and all that is done beside the steps: behind the others of a step."""

    def __init__(self, run: LatticeRun) -> None:
        self._run, self._every = run, run.case.output.every

    def stepped(self) -> None:
        """Ask for a file, where one is due, and do what is due."""
        run, steps = self._run, self._run.steps
        if self._every and steps % self._every == 0:
            name = f"fields_{steps:08d}.vti"
            run.beside.ask(run.beside.snapshot, lambda: run.write_taken(self.folder, name))
        run.beside.stepped()

    def finish(self) -> None:
        """Do what is left."""
        self._run.beside.close()


def lattice_run(
    flow: LatticeBoltzmann, case: LatticeCase, units: Units, boundary: ImmersedBoundary | None = None,
    shares: Sequence[float] | None = None,
) -> FlowRun[LatticeRun]:  # fmt: skip
    """Return a flow as its case runs it. Collective.

    Parameters
    ----------
    shares
        What each of several ranks was to get of the cells; None: the same.
    """
    run = LatticeRun(flow, case, units, boundary)
    history = LatticeHistory(case.history.every, run.monitors, run.notes)
    until = Until(case.time.end, case.time.steady)
    return FlowRun(
        run, case.case.name, until, run.mesh, [*_monitors(run, history), _Files(run), history],
        partition=run.pieces.report(shares),
    )  # fmt: skip


def _monitors(run: LatticeRun, history: LatticeHistory) -> list[Monitor]:
    """Return what looks at a flow. Collective."""
    found: list[Monitor] = []
    flow, case, units = run.solver, run.case, run.units
    for name, table in case.forces.items():
        try:
            found.append(ForcesObserver(run.monitors, name, table, units, history.column))
        except SolverError as error:
            raise CaseError(f"forces.{name}.of: {error}") from None
    if run.boundary is not None and case.moves:
        found.append(MotionObserver(run.boundary, units))
    if case.probes.points:
        with explained("probes"):
            probes = LatticeProbes(flow, units, case.probes.points)
        names = (*_COMPONENTS[: units.dimension], "p")
        found.append(ProbesObserver(flow, probes, "time", names, case.probes.every))
    if case.movie.every:
        found.append(MovieObserver(flow, case.movie, units, run.pieces, run.beside))
    return found


def lattice_row(case: LatticeCase, units: Units) -> str:
    """Return what a flow is on the lattice, in words."""
    reynolds = units.velocity * units.length / units.viscosity
    return (
        f"Re {reynolds:.5g}, velocity {units.velocity / units.speed:.4g} cells a step (Mach {units.mach:.3g}), "
        f"viscosity {units.lattice_viscosity:.4g}, relaxation time {units.relaxation:.5g}, "
        f"{units.length / units.dx:.4g} cells across the reference length"
    )
