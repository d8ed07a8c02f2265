"""What a value does in time: spectra, the frequency that dominates, the Strouhal number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["Signal", "Spectrum"]

Array = npt.NDArray[np.float64]

_EVEN = 1e-6
"""How far steps may differ, as a part of their mean, and still count as equal."""


@dataclass(frozen=True)
class Spectrum:
    """Power over frequency.

    Attributes
    ----------
    frequency : (n,)
        From 0 to half of that of the samples.
    density : (n,)
        Power per frequency, one-sided: its integral is the variance of the signal.
    """

    frequency: Array
    density: Array


@dataclass(frozen=True)
class Signal:
    """Values at times.

    Attributes
    ----------
    time, values : (n,)
        Ascending times, and what was there.

    Raises
    ------
    SolverError
        If there are not as many times as values, or times do not ascend.
    """

    time: Array
    values: Array

    def __post_init__(self) -> None:
        if self.time.ndim != 1 or self.time.shape != self.values.shape:
            raise SolverError(f"signal: as many times as values are wanted, not {self.time.shape}, {self.values.shape}")
        if (np.diff(self.time) <= 0).any():
            raise SolverError("signal: times have to ascend: take one sample a step")

    def after(self, start: float) -> Signal:
        """Return what is not before a time."""
        late = self.time >= start
        return Signal(self.time[late], self.values[late])

    def even(self, step: float | None = None) -> Signal:
        """Return values at equal steps, by default of the mean length, between those of this signal linear in time.

        Raises
        ------
        SolverError
            If there are less than two values, or the step is not positive.
        """
        if self.time.size < 2:
            raise SolverError(f"signal: {self.time.size} values; at least 2 are wanted")
        length = float(self.time[-1] - self.time[0])
        wanted = length / (self.time.size - 1) if step is None else step
        if not np.isfinite(wanted) or wanted <= 0:
            raise SolverError(f"signal: step: a positive number is wanted, not {step!r}")
        time = self.time[0] + wanted * np.arange(int(np.floor(length / wanted * (1 + 1e-12))) + 1)
        return Signal(time, np.interp(time, self.time, self.values))

    def spectrum(self, length: int | None = None) -> Spectrum:
        """Return the power spectral density by Welch's method: overlapping segments under Hann's window, averaged.

        Parameters
        ----------
        length
            Values in a segment; by default all, in one segment: the finest frequencies, and the most noise.

        Raises
        ------
        SolverError
            If steps are not equal (see `even`), values are not finite, or segments are too short or too long.

        Notes
        -----
        P. D. Welch, *The use of fast Fourier transform for the estimation of power spectra*. IEEE Trans. Audio
        Electroacoust. 15, 1967. The mean of each segment is taken away.
        """
        from scipy.signal import welch

        steps = np.diff(self.time)
        if not np.isfinite(self.values).all():
            raise SolverError("signal: the values are not finite")
        if steps.size and np.abs(steps - steps.mean()).max() > _EVEN * steps.mean():
            raise SolverError("signal: the steps are not equal: take signal.even() first")
        size = self.time.size if length is None else length
        if not 8 <= size <= self.time.size:
            raise SolverError(f"signal: segments of 8 to {self.time.size} values are wanted, not {size}")
        frequency, density = welch(self.values, fs=1.0 / steps.mean(), nperseg=size, window="hann", detrend="constant")
        return Spectrum(np.asarray(frequency, dtype=np.float64), np.asarray(density, dtype=np.float64))

    def frequency(self, length: int | None = None) -> float:
        """Return the frequency with the largest power, between those of the spectrum by a parabola of its logarithm.

        Raises
        ------
        SolverError
            If nothing changes, or as for `spectrum`.
        """
        found = self.spectrum(length)
        k = int(np.argmax(found.density[1:])) + 1
        size = float(np.abs(self.values).max())
        if found.density[k] * found.frequency[1] <= (1e-14 * size) ** 2:
            raise SolverError("signal: it does not change: there is no frequency")
        if k + 1 == found.density.size:
            return float(found.frequency[k])
        below, peak, above = np.log(np.maximum(found.density[k - 1 : k + 2], 1e-300))
        bend = below - 2.0 * peak + above
        shift = 0.5 * (below - above) / bend if bend < 0 else 0.0
        return float(found.frequency[k] + np.clip(shift, -0.5, 0.5) * found.frequency[1])

    def strouhal(self, size: float, speed: float, length: int | None = None) -> float:
        """Return ``St = f L / U`` with a length ``L`` and a speed ``U``."""
        if not speed > 0 or not size > 0:
            raise SolverError(f"strouhal: a length and a speed above 0 are wanted, not {size!r} and {speed!r}")
        return self.frequency(length) * size / speed
