"""The spectrum of a column of the history or of probes: ``spectrum_NAME.csv``, frequency and Strouhal number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.monitors.power_spectra import PowerSpectra, magnitude_of, oscillating, signal_of
from fluxloom.monitors.probes import Probes
from fluxloom.run.history import History
from fluxloom.run.monitor import Monitor, Watched
from fluxloom.solvers.flow_signals import Signal

__all__ = ["Spectrum"]


class Spectrum(Monitor):
    """The spectrum of a column of ``history.csv``, such as a lift, or of ``probes.csv``.

    ``spectrum_NAME.csv`` has frequencies and the power density, by Welch's method with three parts; the summary has the
    frequency with its uncertainty, the amplitude, and the Strouhal number; see
    `fluxloom.solvers.flow_signals.Signal.oscillation`.

    Parameters
    ----------
    name
        Of the spectrum.
    column
        As it is called in the table.
    start
        Time from which on it is looked at; None: the last half of the run.
    length, speed
        For a Strouhal number; 0: there is none.

    Raises
    ------
    SolverError
        If only one of length and speed is given; when it is attached to a run, which has to be behind what it looks at,
        if there is no such column, or the flow has no time.
    """

    def __init__(
        self, name: str, column: str, start: float | None = None, *, length: float = 0.0, speed: float = 0.0
    ) -> None:
        if (length > 0.0) != (speed > 0.0):
            raise SolverError(f"spectrum {name!r}: a Strouhal number needs length and speed: give both or none")
        self.name, self.called, self.column = f"spectrum_{name}", name, column
        self.start, self.length, self.speed = start, length, speed
        self._run: Watched | None = None
        self._spectra = PowerSpectra({})

    def attach(self, run: Watched) -> None:
        """Look for the column.

        Raises
        ------
        SolverError
            If there is no such column, or the flow has no time.
        """
        if run.flow.time is None:
            raise SolverError("a flow on the way to a steady one has no time, and no frequencies")
        self._run = run
        known = [*self._history(), *(name for table in self._probes() for name in table.names[1:])]
        if self.column not in known:
            text = ", ".join(known) or "none: history.every is 0, and there are no probes"
            raise SolverError(f"there is no column {self.column!r}{did_you_mean(self.column, known)} (columns: {text})")

    def _monitors(self) -> Sequence[Monitor]:
        return () if self._run is None else self._run.monitors

    def _history(self) -> Mapping[str, float]:
        """Return the columns of the history, where there is one and it has the time."""
        kept = any(isinstance(one, History) and one.every for one in self._monitors())
        found = self._run.columns() if kept and self._run is not None else {}
        return found if "time" in found else {}

    def _probes(self) -> Sequence[Probes]:
        return [one for one in self._monitors() if isinstance(one, Probes)]

    @property
    def _table(self) -> Probes | History | None:
        """What has the column, of the probes or the history."""
        tables = (*self._probes(), *(one for one in self._monitors() if isinstance(one, History)))
        return next((one for one in tables if self.column in one.names), None)

    def signal(self) -> Signal:
        """Return what the column has been, from the start on."""
        if (table := self._table) is None:
            return Signal(np.zeros(0), np.zeros(0))
        return signal_of(table.column("time"), table.column(self.column), self.start)

    def finish(self) -> None:
        """Write the spectrum."""
        self._spectra = PowerSpectra({self.column: self.signal()})
        self._spectra.write(self.folder, self.called)

    def draw(self, name: str) -> None:
        """Draw the spectrum."""
        self._spectra.draw(self.folder, self.called, f"{name}: spectrum of {self.column}")

    def summary(self) -> Sequence[tuple[str, str]]:
        """Return frequency, amplitude and Strouhal number."""
        size = 0.0 if self._table is None else magnitude_of(self.column, self._table)
        return ((f"spectrum {self.called}", oscillating(self.signal(), self.length, self.speed, size)),)
