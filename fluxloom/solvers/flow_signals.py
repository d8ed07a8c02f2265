"""What a value does in time: spectra, how fast it oscillates, the Strouhal number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["Oscillation", "Signal", "Spectrum"]

Array = npt.NDArray[np.float64]

_EVEN = 1e-6
"""How far steps may differ, as a part of their mean, and still count as equal."""
_CORRELATED = 1.8**0.5
"""Of the error of a mean that neighbours with a correlation of 1/4, as phases averaged over periods of random length
have, make larger (3/2), and a straight line through them instead of both ends (6/5)."""
_PERIODS, _POINTS = 3, 64
"""Fewest periods of an oscillation, and places in each at which its phase is found."""
_SHORTEST = 8
"""Values from which on there is a spectrum."""
_ROUNDING = 1e-9
"""Of the magnitude of a signal: what is smaller than that comes of rounding."""
_BAND, _LINES = 0.2, 2.5
"""Half the width of the peak of an oscillation, as a part of its frequency, and at least in lines of a spectrum under
Hann's window, whose peaks are four wide."""
_SHARE, _CLEAR, _SCATTER, _VAGUE = 0.3, 0.8, 0.1, 0.5
"""Noise has less of its variance than the first in the peak and phases that jump by more, in periods, from one to the
next; about a line less than the second, or such phases; or its frequency is uncertain by more than the last part."""
_CHANGE = 0.05
"""Part by which the amplitude of an even signal may change from the first third of the periods to the last."""


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

    @property
    def peak(self) -> float:
        """The frequency with the largest power, to the distance of two frequencies; 0 is left out."""
        return float(self.frequency[1 + int(np.argmax(self.density[1:]))])

    def peak_at(self, frequency: float) -> tuple[float, float]:
        """Return the amplitude of the peak at a frequency, ``a = sqrt(2 df sum E)``, and its part of the variance."""
        width = max(_BAND * frequency, _LINES * float(self.frequency[1]))
        power = float(self.density[np.abs(self.frequency - frequency) <= width].sum())
        return float(np.sqrt(2.0 * power * self.frequency[1])), power / float(self.density.sum())


@dataclass(frozen=True)
class Oscillation:
    """How values oscillate.

    Attributes
    ----------
    frequency
        Periods a time.
    amplitude
        Of the sine of this frequency: ``A = sqrt(2 P)`` with the power ``P`` of the peak, the integral of the power
        density (`Signal.spectrum`) over a fifth of the frequency on both sides, at least 2.5 lines. Harmonics, noise
        and other frequencies do not count: of a pure sine it is half of the range.
    uncertainty
        Of the frequency: with 95 % it is at most so far off. Where the frequency or the amplitude still changes, that
        from the first third of the periods to the last is added.
    periods
        That were seen.
    first, last
        Mean amplitude in each period of the first and of the last third of them.
    growth
        ``last / first``; 1 where they differ by less than 5 %, or than the scatter of single periods explains.
    """

    frequency: float
    amplitude: float
    uncertainty: float
    periods: int
    first: float = 0.0
    last: float = 0.0
    growth: float = 1.0

    def strouhal(self, size: float, speed: float) -> tuple[float, float]:
        """Return ``St = f L / U`` with a length ``L`` and a speed ``U``, and its uncertainty.

        Raises
        ------
        SolverError
            If one of them is not above 0.
        """
        if not speed > 0 or not size > 0:
            raise SolverError(f"strouhal: a length and a speed above 0 are wanted, not {size!r} and {speed!r}")
        return self.frequency * size / speed, self.uncertainty * size / speed


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

    def late(self) -> Signal:
        """Return the last half of the time.

        ``t >= (t_0 + t_n) / 2``.
        """
        return self.after(0.5 * (self.time[0] + self.time[-1])) if self.time.size else self

    def even(self, step: float | None = None) -> Signal:
        """Return values at equal steps, by default of the mean length, between those of this signal by Akima's curve.

        It keeps the amplitude where there are few values in a period, and does not swing where two are close together.

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
        if not np.isfinite(self.values).all():
            raise SolverError("signal: the values are not finite")
        from scipy.interpolate import Akima1DInterpolator

        return Signal(time, Akima1DInterpolator(self.time, self.values)(np.minimum(time, self.time[-1])))

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
        if not _SHORTEST <= size <= self.time.size:
            raise SolverError(f"signal: segments of {_SHORTEST} to {self.time.size} values are wanted, not {size}")
        frequency, density = welch(self.values, fs=1.0 / steps.mean(), nperseg=size, window="hann", detrend="constant")
        return Spectrum(np.asarray(frequency, dtype=np.float64), np.asarray(density, dtype=np.float64))

    def oscillation(self, magnitude: float = 0.0) -> Oscillation | None:
        """Return how these values oscillate; None where there are less than three periods, or noise alone.

        The first guess of the period is that of the upward passages through the middle of the range; one counts after
        the value has been below by half of the amplitude, so that noise does not. Where there are too few, a straight
        line is taken away first. Then the phase ``p_k`` of this
        frequency ``f_0`` is found in each period ``T_0`` on its own, which harmonics do not disturb:
        ``f = f_0 + (dp/dk) / (2 pi T_0)`` by least squares. The uncertainty is that of the mean of ``p_(k+1) - p_k``
        from their scatter, with the factor of Student's distribution for 95 %: it is right where each period is as long
        as it happens to be, as in turbulent wakes, and on the safe side where noise moves the phases alone.

        Parameters
        ----------
        magnitude
            Of what the values are a part of, as the speed for a component of a velocity: a range below 1e-9 of it, or
            of the largest value, is rounding.

        Raises
        ------
        SolverError
            If values are not finite.
        """
        t, v = self.time, self.values
        if not np.isfinite(v).all():
            raise SolverError("signal: the values are not finite")
        if t.size < _SHORTEST:
            return None
        low, high = float(v.min()), float(v.max())
        wave = v - 0.5 * (low + high)
        if high - low <= _ROUNDING * max(abs(low), abs(high), magnitude):
            return None
        at = _passages(t, wave)
        if leans := at.size <= _PERIODS:  # of the whole range; about a line that rises or falls?
            wave = v - np.polyval(np.polyfit(t - t[0], v, 1), t - t[0])
            at = _passages(t, wave - 0.5 * (wave.min() + wave.max()))
        if at.size <= _PERIODS or np.ptp(wave) <= _ROUNDING * max(abs(low), abs(high), magnitude):
            return None
        count = at.size - 1
        period = float(at[-1] - at[0]) / count
        waves = _waves(Signal(t, wave), at[0], period, count)
        phase = np.unwrap(np.angle(waves)) / (2.0 * np.pi)
        sizes, jumps = 2.0 * np.abs(waves), np.diff(phase)
        spread, scatter = _spread(jumps)
        first, last = _thirds(sizes)
        growth = last / first if abs(_change(sizes)) > _CHANGE * max(first, last) else 1.0
        drift = float(np.subtract(*_thirds(jumps))) if growth != 1.0 else _change(jumps)
        number = np.arange(count) - 0.5 * (count - 1)
        frequency = (1.0 + float(number @ phase / (number @ number))) / period
        uncertainty = (spread + abs(drift)) / period
        amplitude, share = Signal(t, wave).even().spectrum().peak_at(frequency)
        noisy = (share < _CLEAR or scatter > _SCATTER) if leans else (share < _SHARE and scatter > _SCATTER)
        if uncertainty > _VAGUE * frequency or noisy:
            return None
        return Oscillation(frequency, amplitude, uncertainty, count, first, last, growth)


def _passages(t: Array, wave: Array) -> Array:
    """Return the times at which a value comes up through 0, after it was below by a quarter of its range."""
    every = np.flatnonzero((wave[:-1] < 0.0) & (wave[1:] >= 0.0))
    after = np.unique(np.searchsorted(every, np.flatnonzero(wave < -0.25 * np.ptp(wave))))
    up = every[after[after < every.size]]
    return t[up] - wave[up] * (t[up + 1] - t[up]) / (wave[up + 1] - wave[up])


def _waves(signal: Signal, begin: float, period: float, count: int) -> npt.NDArray[np.complex128]:
    """Return the Fourier coefficients of a frequency in each of its periods, ``(count,)``."""
    places = (np.arange(_POINTS) + 0.5) / _POINTS
    values = np.interp(begin + period * (np.arange(count)[:, None] + places), signal.time, signal.values)
    return np.asarray(values @ np.exp(-2j * np.pi * places) / _POINTS, dtype=np.complex128)


def _spread(jumps: Array) -> tuple[float, float]:
    """Return how far the mean of jumps of the phase is off, with 95 %, and their standard deviation."""
    from scipy.stats import t as student

    scatter = float(jumps.std(ddof=1))
    return _CORRELATED * float(student.ppf(0.975, jumps.size - 1)) / jumps.size**0.5 * scatter, scatter


def _thirds(values: Array) -> tuple[float, float]:
    """Return the means of the first and of the last third."""
    size = max(1, values.size // 3)
    return float(values[:size].mean()), float(values[-size:].mean())


def _change(values: Array) -> float:
    """Return by how much the last third is above the first one; 0 where the scatter about a line explains that."""
    first, last = _thirds(values)
    number = np.arange(values.size)
    scatter = float((values - np.polyval(np.polyfit(number, values, 1), number)).std())
    return last - first if abs(last - first) > 3.0 * scatter * (2.0 / max(1, values.size // 3)) ** 0.5 else 0.0
