"""A case of lattice Boltzmann flow as it runs: steps, history, checkpoints, films, files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_history import History, HistoryPanel
from fluxloom.app.cases.flow_observer import Observer
from fluxloom.app.cases.flow_pictures import draw_history
from fluxloom.app.cases.flow_reports import merged_reports
from fluxloom.app.cases.lattice_fields import Fields, draw_plane, look_at, middle
from fluxloom.app.cases.lattice_observers import ForcesObserver, MotionObserver, MovieObserver
from fluxloom.app.cases.lattice_state import CHECKPOINT, read_checkpoint, restore, write_checkpoint
from fluxloom.app.cases.lattice_tables import LatticeCase
from fluxloom.app.cases.lattice_units import Units
from fluxloom.app.files import prepare_directory
from fluxloom.app.image_data import write_image
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.report import LoopReport
from fluxloom.lbm.immersed import ImmersedBoundary
from fluxloom.linalg.direct import Relay
from fluxloom.mesh.generate import box2d, box3d
from fluxloom.mesh.mesh import MeshData
from fluxloom.solvers.lattice import LatticeBoltzmann

__all__ = ["LatticeRunner"]

_CLOSE = 1e-9
_FEW = 3
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
    digest
        Text of what must not differ when a run goes on.
    boundary
        Immersed bodies, if there are any.
    output
        Bytes of a file of fields.
    """

    part: None = None
    partition: None = None
    chain: Chain | None = None
    pictures = ()
    """Empty: they are drawn at the end from the lattice itself, not from an unstructured mesh."""

    def __init__(
        self, flow: LatticeBoltzmann, case: LatticeCase, units: Units, digest: str,
        boundary: ImmersedBoundary | None = None, output: int = 0,
    ) -> None:  # fmt: skip
        self.flow, self.case, self.units, self.boundary = flow, case, units, boundary
        self._digest, self._output = digest, output
        self._directory: Path | None = None
        self._mesh: MeshData | None = None
        self._written: list[str] = []
        self._residual, self._energy = 1.0, (0, 0.0)
        self._first = 0  # steps done before this run
        self._clock: tuple[int, float] | None = None
        self.rate = 0.0  # cells a second, between the first look and the last
        self.observers = self._observers()
        self.history = History(case.history.every, (self._columns, *(one.columns for one in self.observers)))

    def _observers(self) -> list[Observer]:
        found: list[Observer] = []
        for name, table in self.case.forces.items():
            try:
                found.append(ForcesObserver(self.flow, name, table, self.units, lambda key: self.history.column(key)))
            except SolverError as error:
                raise CaseError(f"forces.{name}.of: {error}") from None
        if self.boundary is not None and self.case.moves:
            found.append(MotionObserver(self.boundary, self.units))
        if self.case.movie.every:
            found.append(MovieObserver(self.flow, self.case.movie, self.units))
        return found

    # ------------------------------------------------------------------------------------- advance
    def begin(self, directory: Path) -> None:
        """Hear where files go, before the first step; go on from a checkpoint that is there."""
        prepare_directory(directory, self._output if self.case.output.image else 0)
        self._directory = directory
        path, table = directory / CHECKPOINT, self.case.checkpoint
        if table.every and table.resume and path.exists():
            self._resume(path)
        for observer in self.observers:
            observer.begin(directory)
        self.history.begin(directory / "history.csv")
        self._first = self.flow.steps
        if not self._energy[0]:  # of a run that begins
            self._energy = (self._first, self._kinetic())

    def _resume(self, path: Path) -> None:
        state = read_checkpoint(path, self._digest)
        restore(self.flow, self.boundary is not None, state)
        if self.finished:
            raise CaseError(
                f"{path}: the run has come to its end, {self.flow.steps:,} steps: raise run.iterations and time.end, "
                "or set checkpoint.resume = false to begin anew"
            )
        self._residual = float(state["residual"])
        looked, energy = state["energy"].tolist()
        self._energy = (int(looked), energy)
        self.history.rows = [tuple(row) for row in state["history"].tolist()]

    @property
    def time(self) -> float:
        """In units of the case."""
        return self.flow.steps * self.units.dt

    @property
    def finished(self) -> bool:
        """Whether the end, or a steady state, has been reached; a run that goes on counts the steps before."""
        end, steps = self.case.time.end, self.flow.steps
        over = 0.0 < end <= self.time * (1.0 + _CLOSE) or steps >= self.case.run.iterations
        return over or self._residual < self.case.time.steady

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
        self.history.stepped(steps, last=self.finished)
        every = self.case.output.every
        if every and steps % every == 0 and self._directory is not None:
            self._write_image(f"fields_{steps:08d}.vti", look_at(self.flow, self.units))
        if self.case.checkpoint.every and steps % self.case.checkpoint.every == 0:
            self._save()

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
            raise SolverError(f"step {self.flow.steps}: the flow is not finite any more; {self.advice()}")
        return energy

    def _look(self) -> None:
        """Measure the residual and, as that waits for the device, the rate."""
        (before, was), steps, energy = self._energy, self.flow.steps, self._kinetic()
        passed = (steps - before) * self.units.dt * self.units.velocity / self.units.length
        self._residual = abs(energy - was) / (2.0 * energy * passed) if energy > 0.0 else abs(energy - was)
        self._energy = (steps, energy)
        now = time.perf_counter()
        if self._clock is None:
            self._clock = (steps, now)
        else:
            first, since = self._clock
            self.rate = (steps - first) * self.flow.cells / (now - since)

    def residual(self) -> float:
        """Return the relative change of the speed in the reference time, when it was last measured; before, one."""
        return self._residual

    def _save(self) -> None:
        if self._directory is not None:
            write_checkpoint(
                self._directory / CHECKPOINT, self.flow, self.boundary is not None, digest=self._digest,
                residual=self._residual, energy=np.array(self._energy), history=np.array(self.history.rows),
            )  # fmt: skip

    # --------------------------------------------------------------------------------------- results
    def _columns(self) -> dict[str, float]:
        units, cells = self.units, max(1, int(np.count_nonzero(self.flow.fluid)))
        above, energy = self.flow.totals()
        return {
            "time": self.time,
            "density": units.density * (1.0 + above / cells),
            "kinetic_energy": energy * units.density * units.dx**units.dimension * units.speed**2,
            "residual": self._residual,
        }

    def finish(self, *, pictures: bool = True) -> Sequence[str]:
        """Close ``history.csv``, take the last checkpoint, write the fields, draw; return the names of the files."""
        directory = self._directory
        if directory is None:
            return ()
        written = ["history.csv"] if self.history.finish() else []
        if self.case.checkpoint.every and isfinite(self.flow.totals()[1]):
            self._save()
            written.append(CHECKPOINT)
        for observer in self.observers:
            written += observer.finish()
        found = look_at(self.flow, self.units) if pictures or self.case.output.image else None
        if found is not None and self.case.output.image:
            self._write_image("final.vti", found)
        if found is not None and pictures:
            written += self._draw(directory, found)
        return [*written, *self._written]

    def _write_image(self, name: str, found: Fields) -> None:
        assert self._directory is not None
        fields = {
            "pressure": found.pressure.astype(np.float32),
            "velocity": found.velocity.astype(np.float32),
            "vorticity": found.vorticity.astype(np.float32),
            "fluid": found.fluid,
        }
        write_image(self._directory / name, fields, origin=self.units.lower, spacing=self.units.dx)
        self._written.append(name)

    def _draw(self, directory: Path, found: Fields) -> list[str]:
        """Draw speed and vorticity, of a volume in its middle planes, and the history."""
        name, plane = self.case.case.name, self.units.dimension == 2
        written = []
        for field, values in (("speed", found.speed), ("vorticity", found.vorticity)):
            title = f"{field.capitalize()}: {name}, time {self.time:.6g}"
            for across, axes in (("z", ("x", "y")),) if plane else (("z", ("x", "y")), ("y", ("x", "z"))):
                file = f"{field}.png" if plane else f"{field}_{across}.png"
                draw_plane(
                    directory / file, middle(values, across), middle(found.fluid, across), self.units, title, field,
                    axes, signed=plane and field == "vorticity",
                )  # fmt: skip
                written.append(file)
        if len(self.history.rows) > _FEW:
            draw_history(directory / "history.png", *self.history.panels("time", self._panels()), name)
            written.append("history.png")
        return written

    def _panels(self) -> list[HistoryPanel]:
        names = [one.name for one in self.observers if isinstance(one, ForcesObserver)]
        panels = [HistoryPanel("kinetic energy", ("kinetic_energy",))]
        return panels + [HistoryPanel(f"{name}", (f"{name}.cd", f"{name}.cl")) for name in names]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.flow.cells

    @property
    def updates(self) -> int:
        """Cells that a step updates: progress shows them by the second."""
        return self.flow.cells

    @property
    def chains(self) -> Sequence[Chain]:
        """Every chain of a step."""
        steps = [self.flow._step(parity) for parity in (0, 1)]
        return [chain for step in steps for chain in (step.chains if isinstance(step, Relay) else [step])]

    @property
    def loops(self) -> Sequence[Loop]:
        """Every loop of a step of either parity."""
        return [loop for chain in self.chains for loop in chain.loops]

    def reports(self) -> Sequence[LoopReport]:
        """Return the counters of each loop or fused group; those of the same name and size together."""
        return merged_reports(self.chains)

    def fields(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return components of the velocity, speed, pressure and vorticity of cells, ``(cells,)`` each."""
        found = look_at(self.flow, self.units)
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
            ("residual", f"{self._residual:.6e} (relative change of the speed in the reference time)"),
        ]
        rows += [row for observer in self.observers for row in observer.summary()]
        if self.rate:
            rows.append(("rate", f"{self.rate / 1e6:.4g} MLUPS (million cells a second)"))
        if steps := self.flow.steps - self._first:
            moved = sum(report.useful_bytes * report.calls for report in self.reports()) / steps / self.cells
            reached = f", {self.rate * moved / 1e9:.4g} GB/s; the copy bandwidth is ideal" if self.rate else ""
            rows.append(("memory", f"{moved:.4g} bytes a cell and step{reached}"))
        return rows

    def advice(self) -> str:
        """Return what to change when the solution is lost."""
        return (
            f"lower time.lattice_velocity (now {self.units.velocity / self.units.speed:.3g}), take more cells, another "
            f"lattice.collision (now {self.case.lattice.collision!r}) or a smagorinsky constant; the relaxation time "
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
