"""How signals of monitors oscillate: their frequencies in words, their spectra as tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.run.flow import HistoryPanel
from fluxloom.run.results.files import write_table
from fluxloom.run.results.results import ResultFolder
from fluxloom.solvers.flow_signals import Signal

__all__ = ["PowerSpectra", "magnitude_of", "oscillating", "seen", "signal_of"]

Array = npt.NDArray[np.float64]

_FEWEST = 16
"""Values from which on there is a spectrum."""
_MANY = 4
"""Values in a period from which on there is no doubt about it."""
_PARTS = 2
"""Of a signal, whose spectra, and those of parts half-way between them, are averaged."""

_ALIKE = ("u", "v", "w"), ("velocity_x", "velocity_y"), ("drag", "lift"), *(
    tuple(f"{what}_{axis}" for axis in "xyz") for what in ("force", "moment")
)
"""Columns that are parts of one thing, whose magnitude is that of all of them."""


class Table(Protocol):
    """What has columns by name, as probes and the history."""

    @property
    def names(self) -> Sequence[str]:
        """Of the columns."""
        ...

    def column(self, name: str) -> Array:
        """Return one."""
        ...


def magnitude_of(column: str, table: Table) -> float:
    """Return the largest value of a column, of the same one elsewhere, and of other components of the same vector.

    What is far below is rounding: the velocity across a stream has the magnitude of the stream, a pressure over a
    density that of the square of the velocity.
    """
    words = {name: name.rpartition(".")[2] for name in table.names}
    word = column.rpartition(".")[2]
    kin = next((alike for alike in _ALIKE if word in alike), (word,))

    def largest(kin: Sequence[str]) -> float:
        """Return the largest finite value, by its amount, of all columns of these kinds; 0 where there is none."""
        found = (table.column(name) for name in table.names if words[name] in kin)
        return max((float(np.abs(one[np.isfinite(one)]).max(initial=0.0)) for one in found), default=0.0)

    return max(largest(kin), largest("uvw") ** 2 if word == "p" and "rho" not in words.values() else 0.0)


def signal_of(time: Array, values: Array, start: float | None = None) -> Signal:
    """Return finite values at times that ascend, from a time on; by default the last half of the time."""
    good = np.isfinite(time) & np.isfinite(values)
    time, first = np.unique(time[good], return_index=True)
    whole = Signal(time, values[good][first])
    return whole.late() if start is None else whole.after(start)


def oscillating(signal: Signal, length: float = 0.0, speed: float = 0.0, magnitude: float = 0.0) -> str:
    """Return in words how a signal oscillates: the one text of all summaries.

    Parameters
    ----------
    signal
        What was seen.
    length, speed
        For a Strouhal number; 0: there is none.
    magnitude
        As `Signal.oscillation` takes it.
    """
    found = signal.oscillation(magnitude)
    if found is None:
        grows = _growing(signal.values)
        return f"no oscillation of three periods or more in {seen(signal)}{grows}" if signal.time.size else seen(signal)
    text = f"frequency {_with(found.frequency, found.uncertainty)}"
    if length and speed:
        text = f"Strouhal number {_with(*found.strouhal(length, speed))}, {text}"
    text += f", amplitude {found.amplitude:.4g}, {found.periods} periods"
    if found.growth != 1.0:
        text += f"; still {'growing' if found.growth > 1.0 else 'decaying'}: amplitude {found.first:.4g} in the first "
        text += f"third of them, {found.last:.4g} in the last: run on, or give a later start"
    many = (signal.time.size - 1) / float(np.ptp(signal.time)) / found.frequency
    if many < _MANY:
        text += f"; with {many:.2g} values in a period it may be another one: take them more often"
    if signal.time.size >= _FEWEST:
        spectrum = signal.even().spectrum()
        if abs(spectrum.peak - found.frequency) > found.uncertainty + spectrum.frequency[1]:
            text += f"; but the largest power is at {spectrum.peak:.4g}"
    return text


def seen(signal: Signal) -> str:
    """Return in words how many values there are, from when to when, and whether they are too few for a spectrum."""
    count = signal.time.size
    if not count:
        return "no values: start is behind the end of the run"
    text = f"{count:,} value{'s' if count > 1 else ''}, time {signal.time[0]:.6g} to {signal.time[-1]:.6g}"
    return text if count >= _FEWEST else f"{text}: too few for a spectrum, which takes {_FEWEST}"


def _growing(values: Array) -> str:
    """Return in words that the range of values still grows, in which periods cannot be counted."""
    first, *_, last = (float(np.ptp(part)) if part.size else 0.0 for part in np.array_split(values, 3))
    if not last > 2.0 * first > 0.0:
        return ""
    return f"; still growing: range {first:.4g} in the first third, {last:.4g} in the last"


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
