"""A case of lattice Boltzmann flow as it runs: steps, history, films, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.case import GuardTable
from fluxloom.app.cases.flow_monitors import ProbesObserver
from fluxloom.app.cases.flow_observer import Observer
from fluxloom.app.cases.flow_reports import executables, merged_reports
from fluxloom.app.cases.flow_start import explained
from fluxloom.app.cases.lattice_fields import fields_of, look_at
from fluxloom.app.cases.lattice_monitors import LatticeHistory, Monitors
from fluxloom.app.cases.lattice_observers import ForcesObserver, MotionObserver, MovieObserver
from fluxloom.app.cases.lattice_probes import LatticeProbes
from fluxloom.app.cases.lattice_ranks import Pieces
from fluxloom.app.cases.lattice_rates import Rate, bound_row, bytes_of_step
from fluxloom.app.cases.lattice_results import draw_fields, draw_panels, write_fields
from fluxloom.app.cases.lattice_snapshots import Beside
from fluxloom.app.cases.lattice_tables import LatticeCase
from fluxloom.app.cases.lattice_units import Units
from fluxloom.app.cases.lattice_watch import lattice_watch
from fluxloom.app.results.folder import ResultFolder
from fluxloom.app.watch import Watch
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
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["LatticeRunner"]

_CLOSE = 1e-9
_COMPONENTS = ("u", "v", "w")


class LatticeRunner:
    """The solver of lattice Boltzmann flow, ready to advance by steps.

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
    shares
        What each of several ranks was to get of the cells; None: the same.
    """

    remembers = ("_residual", "_energy")

    chain: Chain | None = None
    pictures = ()
    """Empty: they are drawn at the end from the lattice itself, not from an unstructured mesh."""

    def __init__(
        self, flow: LatticeBoltzmann, case: LatticeCase, units: Units,
        boundary: ImmersedBoundary | None = None, shares: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        self.flow, self.case, self.units, self.boundary = flow, case, units, boundary
        self.pieces = Pieces(flow)
        self.beside = Beside(flow, self.pieces.window)
        self.partition = self.pieces.report(shares)
        self.monitors = Monitors(flow)
        self.folder = ResultFolder(None)
        self._mesh: MeshData | None = None
        self._written: list[str] = []
        self._residual = 1.0
        self._energy: tuple[int, float] | None = None
        self._first = 0  # steps done before this run
        self._rate = Rate(flow.cells)
        self.observers = self._observers()
        parts = (self._columns, *(one.columns for one in self.observers))
        self.history = LatticeHistory(case.history.every, parts, self.monitors, self._notes)

    def _observers(self) -> list[Observer]:
        found: list[Observer] = []
        for name, table in self.case.forces.items():
            try:
                column = lambda key: self.history.column(key)  # noqa: E731 - there is no history yet
                found.append(ForcesObserver(self.monitors, name, table, self.units, column))
            except SolverError as error:
                raise CaseError(f"forces.{name}.of: {error}") from None
        if self.boundary is not None and self.case.moves:
            found.append(MotionObserver(self.boundary, self.units))
        if self.case.probes.points:
            with explained("probes"):
                probes = LatticeProbes(self.flow, self.units, self.case.probes.points)
            names = (*_COMPONENTS[: self.units.dimension], "p")
            found.append(ProbesObserver(self.flow, probes, "time", names, self.case.probes.every))
        if self.case.movie.every:
            found.append(MovieObserver(self.flow, self.case.movie, self.units, self.pieces, self.beside))
        return found

    # ------------------------------------------------------------------------------------- advance
    def begin(self, folder: ResultFolder) -> None:
        """Hear where files go, before the first step."""
        self.folder = folder
        for observer in self.observers:
            observer.begin(folder)
        self.history.begin(folder)
        self._first = self.flow.steps
        if self._energy is None:  # of a run that begins
            self._energy = (self._first, self._kinetic())

    @property
    def time(self) -> float:
        """In units of the case."""
        return self.flow.steps * self.units.dt

    @property
    def finished(self) -> bool:
        """Whether the end, a steady state or the last step has been reached."""
        return any(goal.met for goal in self.goals()) or self.flow.steps >= self.case.run.iterations

    def goals(self) -> Sequence[Goal]:
        """Return the end and the residual that the case names."""
        table, time, residual = self.case.time, self.time, self._residual
        ends = [Goal("time.end", "time", table.end, time, table.end <= time * (1.0 + _CLOSE))] if table.end else []
        met = residual < table.steady
        return [*ends, *([Goal("time.steady", "residual", table.steady, residual, met)] if table.steady else [])]

    def advance(self) -> None:
        """Advance by one step.

        Raises
        ------
        SolverError
            If the flow is not finite any more.
        """
        self.flow.step()
        steps = self.flow.steps
        if steps % self.case.time.look == 0:
            self._look()
        for observer in self.observers:
            observer.stepped()
        self.history.stepped(steps)
        every = self.case.output.every
        if every and steps % every == 0:
            self.beside.ask(self.beside.snapshot, lambda: self._write_taken(f"fields_{steps:08d}.vti"))
        self.beside.stepped()

    def _kinetic(self) -> float:
        """Return the sum of ``rho u^2 / 2``, on the lattice.

        Raises
        ------
        SolverError
            If it is not finite.
        """
        with np.errstate(all="ignore"):
            above, energy = self.flow.totals()
        if not (isfinite(above) and isfinite(energy)):
            text = f"step {self.flow.steps}: the flow is not finite any more; {self.advice()}"
            raise Divergence(text, step=self.flow.steps, time=self.time)
        return energy

    def _look(self) -> None:
        """Measure the residual and, as that waits for the device, the rate."""
        (before, was), steps, energy = self._energy or (0, 0.0), self.flow.steps, self._kinetic()
        passed = (steps - before) * self.units.dt * self.units.velocity / self.units.length
        self._residual = abs(energy - was) / (2.0 * energy * passed) if energy > 0.0 else abs(energy - was)
        self._energy = (steps, energy)
        self._rate.note(steps)

    def residual(self) -> float:
        """Return the relative change of the speed in the reference time, when it was last measured; before, one."""
        return self._residual

    # --------------------------------------------------------------------------------------- results
    def _columns(self) -> dict[str, float]:
        """Return columns, of the step that the monitors look at."""
        units, seen = self.units, self.monitors
        above, energy = seen.totals()
        return {
            "time": seen.steps * units.dt,
            "density": units.density * (1.0 + above / self._fluid_cells),
            "kinetic_energy": energy * units.density * units.dx**units.dimension * units.speed**2,
            "speed_change": seen.noted("speed_change", self._residual),
        }

    def _notes(self) -> dict[str, float]:
        """Return what the host knows itself of a line of the history."""
        return {"speed_change": self._residual}

    @cached_property
    def _fluid_cells(self) -> int:
        """Cells of fluid, of all ranks; at least one."""
        return max(1, int(np.count_nonzero(self.flow.fluid)))

    def finish(self, *, pictures: bool = True) -> None:
        """Close ``history.csv``, write the fields, draw."""
        folder = self.folder
        self.history.finish()
        self.beside.close()
        for observer in self.observers:
            observer.finish()
        found = look_at(self.flow, self.units, self.pieces) if pictures or self.case.output.image else None
        if found is not None and self.case.output.image:
            write_fields(folder, f"{folder.stem}.vti", self.flow, self.units, self.pieces, found, self.time)
        if found is not None and pictures:
            name = self.case.case.name
            text = f"{name}, time {self.time:.6g}"
            draw_fields(folder, self.flow, self.units, self.pieces, found, text)
            forces = [one.name for one in self.observers if isinstance(one, ForcesObserver)]
            draw_panels(folder, self.history, forces, name)

    def _write_taken(self, name: str) -> None:
        """Write the fields of the step at which they were taken. Collective."""
        taken, units, pieces = self.beside.snapshot, self.units, self.pieces
        found = fields_of(taken.velocity(), taken.density(), self.flow.fluid, units, pieces)
        write_fields(self.folder, name, self.flow, units, pieces, found, taken.step * units.dt, series=True)

    @property
    def part(self) -> Part | None:
        """The cells of this rank; None on a rank alone."""
        return self.pieces.part

    @property
    def cells(self) -> int:
        """Number of cells of the box."""
        return self.flow.box.cells

    @property
    def updates(self) -> int:
        """Cells that a step of all ranks updates: progress shows them by the second."""
        return self.flow.cells

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step, and those of steps that were done in another way before."""
        steps = [self.flow.steps_of(parity) for parity in (0, 1)]
        now = [chain for step in steps for chain in (step.chains if isinstance(step, Relay) else [step])]
        return [*now, *self.flow.retired]

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step of either parity."""
        return [loop for chain in self.chains for loop in chain.loops]

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group, also of what looks at the flow; then of bodies."""
        looks = [*self.monitors.chains, *executables(self.flow), *self.beside.loops]
        loops = merged_reports(unique([*self.chains, *looks]))
        return [*loops, *([] if self.boundary is None else self.boundary.reports())]

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return components of the velocity, speed, pressure and vorticity of this rank's cells, ``(cells,)`` each."""
        found = look_at(self.flow, self.units, self.pieces)
        velocity = {name: found.velocity[..., k].ravel() for k, name in enumerate(_COMPONENTS[: self.units.dimension])}
        return velocity | {
            "speed": found.speed.ravel(), "p": found.pressure.ravel(), "vorticity": found.vorticity.ravel(),
            "fluid": found.fluid.ravel().astype(np.float32),
        }  # fmt: skip

    def mesh(self) -> MeshData:
        """Return the cells as quads or hexahedra."""
        if self._mesh is None:
            counts, units = self.flow.box.shape[::-1], self.units
            lengths = [n * units.dx for n in counts]
            if units.dimension == 2:
                self._mesh = box2d(counts[0], counts[1], lengths, origin=units.lower)
            else:
                self._mesh = box3d(counts[0], counts[1], counts[2], lengths, origin=units.lower)
        return self._mesh

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return time, steps, sums, what the flow is on the lattice, and the rate."""
        columns = self._columns()
        rows = [
            ("time", f"{self.time:.6g}, {self.flow.steps:,} steps of {self.units.dt:.4g}"),
            ("lattice", lattice_row(self.case, self.units)),
            ("kinetic energy", f"{columns['kinetic_energy']:.9g}"),
            ("mean density", f"{columns['density']:.9g}"),
            ("speed change", f"{self._residual:.6e} (relative, in the reference time: that of time.steady)"),
        ]
        rows += [row for observer in self.observers for row in observer.summary()]
        if self.boundary is not None:
            parts = [f"{name} {100 * part:.3g} %" for name, part in shares(self.reports()).items()]
            rows.append(("immersed", str(self.boundary)))
            rows += [("immersed, time", ", ".join(parts))] if parts else []
        if self.rate:
            rows.append(("rate", f"{self.rate / 1e6:.4g} MLUPS (million cells a second)"))
        if self.flow.steps > self._first:
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
        between = self.flow.loops if self.flow.context.ranked else ()  # beside bodies some run by themselves
        rows = merged_reports([*self.chains, *between])
        return bytes_of_step(self.pieces.comm, rows, self.flow.steps - self._first, self.flow.cells)

    def bound(self, copy_gbs: float) -> Sequence[tuple[str, str]]:
        """Return the rate that the copy bandwidth of all ranks allows, as rows of the summary. Collective."""
        each = self._bytes()
        return (bound_row(self.rate, each, copy_gbs, self.pieces.comm.size),) if each else ()

    def watch(self, table: GuardTable) -> Watch:
        """Return what guards look at. Collective."""
        return lattice_watch(self.flow, self.case, self.boundary, table)

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


def lattice_row(case: LatticeCase, units: Units) -> str:
    """Return what a flow is on the lattice, in words."""
    reynolds = units.velocity * units.length / units.viscosity
    return (
        f"Re {reynolds:.5g}, velocity {units.velocity / units.speed:.4g} cells a step (Mach {units.mach:.3g}), "
        f"viscosity {units.lattice_viscosity:.4g}, relaxation time {units.relaxation:.5g}, "
        f"{units.length / units.dx:.4g} cells across the reference length"
    )
