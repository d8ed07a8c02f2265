"""What a case of lattice Boltzmann flow looks at while it runs: forces, probes, films, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_monitors import common_monitors
from fluxloom.app.cases.lattice_output_tables import LatticeMovieTable
from fluxloom.app.cases.lattice_tables import LatticeCase, LatticeForcesTable
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.flows.lattice import Lattice
from fluxloom.flows.lattice_files import LatticeImages
from fluxloom.flows.lattice_frames import LayerPicture, Picture, PlanePicture
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.history import History
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.run.movies import Movie
from fluxloom.run.results.folder import ResultFolder

__all__ = ["ForcesObserver", "MovieObserver", "frequency", "lattice_monitors"]

Array = npt.NDArray[np.float64]
Frames = npt.NDArray[np.uint8]

_PERIODS = 3
_NOISE = 1e-3
"""Amplitude of the lift coefficient below which there is no shedding."""


def lattice_monitors(case: LatticeCase, flow: Lattice) -> list[Monitor]:
    """Return what looks at a flow, the history last. Collective."""
    found: list[Monitor] = []
    for name, table in case.forces.items():
        try:
            found.append(ForcesObserver(flow, name, table))
        except SolverError as error:
            raise CaseError(f"forces.{name}.of: {error}") from None
    if case.movie.every:
        found.append(MovieObserver(flow, case.movie))
    return [*found, *common_monitors(case), LatticeImages(case.output.every, final=case.output.image)]


def frequency(times: Array, values: Array) -> tuple[float, float] | None:
    """Return the frequency and the amplitude of an oscillation, from its last half; None where there is none.

    The frequency is that of upward passages through the middle, placed by linear interpolation; a passage counts after
    the value has been below by half of the amplitude, so that noise does not.
    """
    half = len(times) // 2
    t, v = times[half:], values[half:]
    if len(t) < 2 * _PERIODS:
        return None
    low, high = float(v.min()), float(v.max())
    wave = v - 0.5 * (low + high)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        return None
    all_up = np.flatnonzero((wave[:-1] < 0.0) & (wave[1:] >= 0.0))
    deep = np.flatnonzero(wave < -0.25 * (high - low))
    up = all_up[np.unique(np.searchsorted(all_up, deep))[:-1]] if len(all_up) and len(deep) else all_up[:0]
    if len(up) < _PERIODS:
        return None
    at = t[up] - wave[up] * (t[up + 1] - t[up]) / (wave[up + 1] - wave[up])
    return float((len(at) - 1) / (at[-1] - at[0])), 0.5 * (high - low)


class ForcesObserver(Monitor):
    """The force on a body or side as columns: components, and coefficients along x (drag) and y (lift)."""

    looks_back = True

    def __init__(self, flow: Lattice, name: str, table: LatticeForcesTable) -> None:
        units = flow.units
        self.name, self._history = name, History(0)
        self.velocity, self.length = table.velocity or units.velocity, table.length or units.length
        area = table.area or (self.length if units.dimension == 2 else 0.25 * np.pi * self.length**2)
        self.scale = 0.5 * units.density * self.velocity**2 * area
        self._surface = flow.surface([table.of or name])  # raises for a name of nothing

    def attach(self, run: Watched) -> None:
        """Hear of the run, whose history has the columns."""
        assert isinstance(run, FlowRun)
        self._history = run.history

    def columns(self) -> dict[str, float]:
        """Return components of the force, and the coefficients."""
        self._surface.take()
        force = self._surface.collect().force
        found = {f"{self.name}.force_{'xyz'[k]}": float(value) for k, value in enumerate(force)}
        coefficients = zip(("drag", "lift"), force / self.scale, strict=False)
        return found | {f"{self.name}.{word}": float(value) for word, value in coefficients}

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return the last coefficients, their means over the last half, and the Strouhal number."""
        try:
            names = (f"{self.name}.drag", f"{self.name}.lift", "time")
            drag, lift, times = (self._history.column(name) for name in names)
        except ValueError:  # no history
            found = self.columns()
            return ((self.name, f"drag {found[f'{self.name}.drag']:.6g}, lift {found[f'{self.name}.lift']:.6g}"),)
        half = len(times) // 2
        rows = [
            (self.name, f"drag {drag[-1]:.6g}, lift {lift[-1]:.6g}"),
            (
                f"{self.name}, mean",
                f"drag {drag[half:].mean():.6g}, lift {lift[half:].mean():.6g} (last half of the run)",
            ),
        ]
        if (wave := frequency(times, lift)) is not None and wave[1] > _NOISE:
            strouhal = wave[0] * self.length / self.velocity
            rows.append((f"{self.name}, lift", f"Strouhal number {strouhal:.5g}, amplitude {wave[1]:.5g}"))
        return rows


class MovieObserver(Monitor):
    """A film of a field; of a volume in the middle across z. Its pictures are drawn while the next steps run.

    On several ranks only what is seen comes together on rank 0: of wide boxes not every cell.
    """

    name, remembers = "movie", ("frames",)

    def __init__(self, flow: Lattice, table: LatticeMovieTable) -> None:
        self._flow, self._table, self._beside = flow, table, flow.beside
        self.movie: Movie | None = None
        self._picture: Picture | None = None
        self._name = ""
        self._before: Frames | None = None

    @property
    def frames(self) -> dict[str, Any]:
        """The field, and the pictures so far, one byte a pixel; on rank 0 alone. Collective."""
        self._beside.settle()
        pictures = [] if self.movie is None else self.movie.pictures
        return {"field": self._table.field, "pictures": np.array(pictures, dtype=np.uint8)}

    @frames.setter
    def frames(self, frames: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        self._before = frames["pictures"] if frames["field"] == self._table.field else None

    def _made(self) -> Picture:
        """Return what the pictures are made of. Collective."""
        flow, field = self._flow, self._table.field
        if flow.dimension == 3:
            return LayerPicture(flow.solver, flow.units, field)
        return PlanePicture(flow.solver, flow.units, flow.pieces, field, self._beside.snapshot)

    def begin(self, folder: ResultFolder) -> None:
        """Begin the film, with the flow as it is; without the packages that it needs, it is left out."""
        super().begin(folder)
        table, units = self._table, self._flow.units
        signed = table.field == "vorticity" and units.dimension == 2
        least = 4.0 * units.velocity / units.length if table.field == "vorticity" else 1.5 * units.velocity
        most = table.range or least
        self._name = f"{table.field}.{table.format}"
        colours = "RdBu_r" if signed else "viridis"
        self.movie = None
        if folder.here:
            with folder.attempt(self._name, keep=False):
                self.movie = Movie(folder / self._name, -most if signed else 0.0, most, colours, table.rate)
        if not self._flow.pieces.comm.broadcast(self.movie is not None):
            return
        self._picture = self._made()
        if self._before is None:
            self._ask()
        elif self.movie is not None:
            self.movie.pictures = list(self._before)

    def _ask(self) -> None:
        if self._picture is not None:
            self._beside.ask(self._picture.taken, self._add)

    def _add(self) -> None:
        """Add the picture of the step that was taken. Collective."""
        assert self._picture is not None
        shown = self._picture.values()
        if shown is not None and self.movie is not None:
            self.movie.add(shown, self._picture.hidden)

    def stepped(self) -> None:
        """Add a picture, where it is due."""
        if self._flow.steps % self._table.every == 0:
            self._ask()

    def finish(self) -> None:
        """Write the film."""
        self._beside.settle()
        if (movie := self.movie) is not None:
            self.folder.write(self._name, lambda _: movie.finish())
