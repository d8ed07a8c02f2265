"""How signals of monitors oscillate: their frequencies in words, their spectra as tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fluxloom.run.files import write_table
from fluxloom.run.flow import HistoryPanel
from fluxloom.run.results.folder import ResultFolder
from fluxloom.solvers.flow_signals import Signal

__all__ = ["PowerSpectra", "oscillating", "signal_of"]

Array = npt.NDArray[np.float64]

_FEWEST = 16
"""Values from which on there is a spectrum."""
_PARTS = 2
"""Of a signal, whose spectra, and those of parts half-way between them, are averaged."""


def signal_of(time: Array, values: Array, start: float | None = None) -> Signal:
    """Return finite values at times that ascend, from a time on; by default the last half of the time."""
    good = np.isfinite(time) & np.isfinite(values)
    time, first = np.unique(time[good], return_index=True)
    whole = Signal(time, values[good][first])
    return whole.late() if start is None else whole.after(start)


def oscillating(signal: Signal, length: float = 0.0, speed: float = 0.0) -> str:
    """Return in words how a signal oscillates: the one text of all summaries.

    Parameters
    ----------
    signal
        What was seen.
    length, speed
        For a Strouhal number; 0: there is none.
    """
    found = signal.oscillation()
    if found is None:
        return f"no oscillation of three periods or more in {signal.time.size:,} values"
    text = f"frequency {_with(found.frequency, found.uncertainty)}"
    if length and speed:
        text = f"Strouhal number {_with(*found.strouhal(length, speed))}, {text}"
    text += f", amplitude {found.amplitude:.4g}, {found.periods} periods"
    if signal.time.size >= _FEWEST:
        spectrum = signal.even().spectrum()
        if abs(spectrum.peak - found.frequency) > found.uncertainty + spectrum.frequency[1]:
            text += f"; but the largest power is at {spectrum.peak:.4g}"
    return text


def _with(value: float, uncertainty: float) -> str:
    """Return a number with its uncertainty, which has two digits."""
    if uncertainty <= 1e-12 * abs(value):
        return f"{value:.6g}"
    digits = max(0, int(np.ceil(-np.log10(uncertainty))) + 1)
    return f"{value:.{digits}f} +- {uncertainty:.{digits}f}"


class PowerSpectra:
    """Spectra of several signals over the same times, as a table.

    Parameters
    ----------
    signals
        Name to signal.

    Attributes
    ----------
    table
        Frequency, and the power density of each signal; empty: there are too few values.
    """

    def __init__(self, signals: Mapping[str, Signal]) -> None:
        self.table: dict[str, Array] = {}
        for name, signal in signals.items():
            if signal.time.size < _FEWEST:
                continue
            even = signal.even()
            found = even.spectrum(max(_FEWEST // 2, even.time.size // _PARTS))
            self.table |= {"frequency": found.frequency, name: found.density}

    def write(self, folder: ResultFolder, name: str) -> None:
        """Write the table as ``spectrum_NAME.csv``, where there is one."""
        if self.table:
            folder.write(f"spectrum_{name}.csv", lambda path: write_table(path, self.table))

    def draw(self, folder: ResultFolder, name: str, title: str) -> None:
        """Draw the table as ``spectrum_NAME.png``, where there is one."""
        if not self.table:
            return
        from fluxloom.run.pictures import draw_history

        frequency, *_ = self.table.values()
        panels = [(HistoryPanel(value, (value,), logarithmic=True), density[1:, None])
                  for value, density in self.table.items() if value != "frequency"]  # fmt: skip
        folder.write(
            f"spectrum_{name}.png", lambda path: draw_history(path, "frequency", frequency[1:], panels, title)
        )  # fmt: skip
