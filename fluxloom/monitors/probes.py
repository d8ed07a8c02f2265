"""Probes: what a flow does at points over time, ``probes.csv``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.monitors.point_samples import Points, PointSamples, lines_of, named
from fluxloom.monitors.power_spectra import PowerSpectra, magnitude_of, oscillating, seen, signal_of
from fluxloom.run.moments import Moments
from fluxloom.run.monitor import Watched
from fluxloom.run.results.files import Lines
from fluxloom.run.results.results import ResultFolder
from fluxloom.solvers.flow_signals import Signal

__all__ = ["Probes"]

Array = npt.NDArray[np.float64]


class Probes(PointSamples):
    """Points whose values are written to ``probes.csv``, a line a sample.

    Parameters
    ----------
    points
        Name to coordinates; or coordinates alone, then the names are numbers from 1.
    every
        Steps between two samples.
    period
        Seconds between two samples, instead of steps; see `fluxloom.run.moments.Moments`.
    spectrum
        Whether each probe has its power spectra in ``spectrum_PROBE.csv``, and in the summary how its values oscillate,
        both of the last half of the run.

    Raises
    ------
    SolverError
        When it is attached to a run: if a point lies outside of the mesh.
    """

    name, file = "probes", "probes.csv"

    def __init__(self, points: Points, every: int = 1, *, period: float = 0.0, spectrum: bool = False) -> None:
        super().__init__(named(points), Moments(every, period))
        self.spectrum = spectrum
        self._lines: Lines | None = None

    def attach(self, run: Watched) -> None:
        """Find the points.

        Raises
        ------
        SolverError
            If one lies outside of the mesh, or spectra are wanted of a flow without a time.
        """
        super().attach(run)
        if self.spectrum and run.flow.time is None:
            raise SolverError("spectrum: a flow on the way to a steady one has no time, and no frequencies")

    def begin(self, folder: ResultFolder) -> None:
        """Open the file, and write what there is."""
        super().begin(folder)
        self._lines = folder.lines(self.file, ",".join(self.names), lines_of(self.rows()))

    def _came(self, rows: Array) -> None:
        if self._lines is not None:
            self._lines.add(*lines_of(rows))

    def finish(self) -> None:
        """Take the last sample, where it is not there yet, and write what is left."""
        if self._lines is not None:
            self._last()
        self._fetch()
        self.folder.closed(self.file, self._lines)
        for name, spectra in self._spectra():
            spectra.write(self.folder, name)

    def draw(self, name: str) -> None:
        """Draw the spectra."""
        for probe, spectra in self._spectra():
            spectra.draw(self.folder, probe, f"{name}: spectra at {probe}")

    def _signals(self, probe: str) -> dict[str, Signal]:
        """Return what was seen of each value at a probe, in the last half of the run."""
        time = self.column(self.names[0])
        return {value: signal_of(time, self.column(f"{probe}.{value}")) for value in self.values}

    def _spectra(self) -> list[tuple[str, PowerSpectra]]:
        return [(name, PowerSpectra(self._signals(name))) for name in self.inside] if self.spectrum else []

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return how values oscillate, where spectra are wanted; a row a value that does."""
        rows: list[tuple[str, str]] = []
        for probe in self.inside if self.spectrum else ():
            signals = self._signals(probe)
            sizes = {value: magnitude_of(f"{probe}.{value}", self) for value in signals}
            found = [value for value, signal in signals.items() if signal.oscillation(sizes[value])]
            rows += [(f"{probe}.{value}", oscillating(signals[value], magnitude=sizes[value])) for value in found]
            whole = next(iter(signals.values()))
            rows += [] if found else [(probe, f"no value oscillates for three periods or more in {seen(whole)}")]
        return rows
