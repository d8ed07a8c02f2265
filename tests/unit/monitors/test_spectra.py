"""Spectra of probes and of columns of the history: what a flow does with a known frequency."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import CaseError
from fluxloom.monitors.power_spectra import PowerSpectra, magnitude_of, oscillating, signal_of
from fluxloom.solvers.flow_signals import Signal
from tests.unit.monitors.point_cases import build, run, table

SWING = """
[case]
name = "swing"
solver = "staggered"
[mesh]
nx = 16
ny = 4
periodic = [["xmin", "xmax"], ["ymin", "ymax"]]
[fluid]
viscosity = 0.0
[initial]
velocity_x = "4"
velocity_y = "sin(2 * pi * x)"
[time]
dt = 0.004
[probes]
points.here = [0.3, 0.4]
spectrum = true
[history]
every = 1
[spectra.there]
column = "here.v"
start = 0.4
length = 0.5
speed = 4.0
[run]
iterations = 600
threads = 1
"""


def test_a_wave_that_passes_a_probe(tmp_path: Path) -> None:
    """A wave of length 1 at speed 4 has the frequency 4; the file has its peak there."""
    made = run(SWING, tmp_path, 600)
    rows = dict(made.summary())
    found = re.search(r"frequency (\S+) \+- (\S+), amplitude (\S+), 4 periods", rows["here.v"])
    assert found is not None
    assert float(found[1]) == pytest.approx(4.0, rel=0.03)
    assert float(found[3]) == pytest.approx(1.0, abs=0.05)
    assert "here.u" not in rows
    assert re.match(r"Strouhal number 0\.[45]\d* \+- \S+, frequency", rows["spectrum there"])
    for name in ("here", "there"):
        spectrum = table(tmp_path / f"spectrum_{name}.csv")
        density = spectrum["v" if name == "here" else "here.v"]
        assert spectrum["frequency"][density.argmax()] == pytest.approx(4.0, abs=spectrum["frequency"][1])


@pytest.mark.parametrize("rise", [0.3, 1.0, -2.0])
def test_a_sine_on_a_slope(rise: float) -> None:
    time = np.linspace(0.0, 10.0, 401)
    found = Signal(time, np.sin(2 * np.pi * time) + rise * time).oscillation()
    assert found is not None
    assert (found.frequency, found.amplitude) == pytest.approx((1.0, 1.0), rel=1e-3)
    walk = np.cumsum(np.random.default_rng(7).normal(size=401))
    assert Signal(time, walk + 50.0 * rise * time).oscillation() is None


def test_the_last_period_counts() -> None:
    """Between the first and the last of the passages that come up, wherever the record ends."""
    for end, periods in ((4.2, 3), (7.3, 6), (7.9, 6)):
        time = np.linspace(0.0, end, int(40 * end) + 1)
        found = Signal(time, np.sin(2 * np.pi * time)).oscillation()
        assert found is not None
        assert found.periods == periods


def test_a_sample_more_at_the_end() -> None:
    """Values at other times than the even ones keep the amplitude, though there are eight in a period."""
    time = np.append(np.arange(0.0, 12.0, 0.125), 11.91)
    found = Signal(time, np.sin(2 * np.pi * time + 0.3)).oscillation()
    assert found is not None
    assert found.amplitude == pytest.approx(1.0, rel=2e-3)


def test_words() -> None:
    """Digits are those of the uncertainty; where the largest power is somewhere else, it is said."""
    random, time = np.random.default_rng(2), np.linspace(0.0, 40.0, 801)
    phase = np.cumsum(0.1 * random.normal(size=801)) + 2 * np.pi * 0.5 * time
    text = oscillating(signal_of(time, np.sin(phase), 0.0), 2.0, 4.0)
    assert text == "Strouhal number 0.2401 +- 0.0086, frequency 0.480 +- 0.017, amplitude 0.9455, 18 periods"
    two = np.sin(np.pi * time) + 2.0 * np.sin(2 * np.pi * time + 0.4)
    assert "but the largest power is at" in oscillating(signal_of(time, two, 0.0))
    assert "no oscillation of three periods" in oscillating(signal_of(time, np.exp(-time)))
    grows = oscillating(Signal(time, np.exp(0.02 * time) * np.sin(np.pi * time)))
    assert re.search(r"; still growing: amplitude \S+ in the first third of them, \S+ in the last", grows)
    assert "still growing: range" in oscillating(Signal(time, np.exp(time) * np.sin(np.pi * time)))
    few = np.arange(0.0, 12.0, 1.0 / 2.1)
    assert "; with 2 values in a period it may be another one" in oscillating(Signal(few, np.sin(2 * np.pi * few)))
    assert "9 values, time 0 to 0.4: too few for a spectrum, which takes 16" in oscillating(Signal(time[:9], two[:9]))
    assert oscillating(signal_of(time, two, 50.0)) == "no values: start is behind the end of the run"
    assert PowerSpectra({"a": Signal(time[:9], time[:9])}).table == {}
    assert signal_of(time, two).time[0] == 20.0
    double = signal_of(np.repeat(time, 2), np.repeat(two, 2), 0.0)
    assert double.time.size == time.size


class Columns:
    """A table of a probe in a stream along x."""

    names = ("time", "a.u", "a.v", "a.p")

    def column(self, name: str) -> np.ndarray:
        """Return a column."""
        return np.array({"a.u": [2.0, -3.0], "a.p": [0.1, np.nan]}.get(name, [0.0, 1e-13]))


def test_the_magnitude_is_that_of_the_vector() -> None:
    """A component across the stream is rounding beside that along it, a pressure beside the square of the velocity."""
    assert [magnitude_of(name, Columns()) for name in ("a.u", "a.v", "a.p", "time")] == [3.0, 3.0, 9.0, 1e-13]


def test_a_stream_at_rest_across_has_no_frequency(tmp_path: Path) -> None:
    """A velocity and a pressure that are rounding are not told as oscillations."""
    case = SWING.replace("sin(2 * pi * x)", "1e-13 * sin(2 * pi * x)")
    rows = dict(run(case, tmp_path, 600).summary())
    assert rows["here"] == "no value oscillates for three periods or more in 300 values, time 1.204 to 2.4"
    assert rows["spectrum there"].startswith("no oscillation of three periods or more in 501 values, time 0.4 to 2.4")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"here.v"', '"here.x"', r"spectra\.there: there is no column 'here\.x'; did you mean"),
        ("length = 0.5", "", r"spectra\.there: .*needs length and speed"),
        ('"here.v"', '"content"', "there is no column 'content'"),
    ],
)
def test_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        build(SWING.replace(old, new).replace("every = 1", "every = 0"))


def test_a_run_too_short_says_so(tmp_path: Path) -> None:
    """Probes, spectra, averages and the end by a column, each by what it lacks."""
    more = """
[statistics]
every = 1
start = 5.0
profile = "y"
[stop]
column = "here.v"
"""
    made = run(SWING + more.replace("here.v", "kinetic_energy"), tmp_path, 9)
    rows = dict(made.summary())
    assert rows["here"].endswith("in 4 values, time 0.024 to 0.036: too few for a spectrum, which takes 16")
    assert rows["spectrum there"] == "no values: start is behind the end of the run"
    assert rows["averages"] == "no samples, and no profile.csv: they start at 5, the run ended at time 0.036"
    goal = next(goal for goal in made.goals() if goal.key == "stop.column")
    assert str(goal) == (
        "change of kinetic_energy in a window of 1000 steps, longer than the run, is not known, 1.0e-04 wanted"
    )
