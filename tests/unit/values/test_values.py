"""Numbers that are given in space and time: what a user may write, and what wrong ones are answered with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.core.errors import CaseError, SolverError
from fluxloom.values.fluctuation import Fluctuation
from fluxloom.values.tables import Profile, Raster, TimeSeries
from fluxloom.values.value import Direction, value_of, vector_of

PLACES = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])


@pytest.mark.parametrize(
    ("given", "wanted", "in_time", "in_space"),
    [
        (2, [2.0] * 3, False, False),
        ("x - y", [-1.0] * 3, False, True),
        ("2 * t", [6.0] * 3, True, False),
        ("t + x", [3.0, 5.0, 7.0], True, True),
        (lambda x: x[:, 0], [0.0, 2.0, 4.0], False, True),
        (lambda x, t: t * x[:, 1], [3.0, 9.0, 15.0], True, True),
        (value_of("x") * "t" + 1.0, [1.0, 7.0, 13.0], True, True),
    ],
)
def test_what_may_be_given(given: Any, wanted: list[float], in_time: bool, in_space: bool) -> None:
    value = value_of(given)
    assert value.at(PLACES, 3.0).tolist() == wanted
    assert (value.in_time, value.in_space) == (in_time, in_space)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.inf, "it: inf is not finite"),
        (True, "it: a number, a formula in quotes, a function or a table is wanted, not True"),
        ([1.0, 2.0], "it: a number, a formula"),
        ("2 * q", "unknown name 'q'.*allowed: x, y, z, t"),
        ("z", "it: 'z': the places have 2 dimensions: leave z out"),
        ("1 / (x - 2)", r"it: '1 / \(x - 2\)' is inf at \(2, 3\)$"),
        ("1 / (x - t)", r"it: '1 / \(x - t\)' is inf at \(4, 5\), at t = 4"),
        (lambda x: x[:2, 0], r"it: the function .*: a number is wanted for each of the places \(3, 2\), not what"),
    ],
)
def test_wrong_ones(given: Any, message: str) -> None:
    with pytest.raises((SolverError, CaseError), match=message):
        value_of(given, "it").at(PLACES, 4.0, "it")


def test_vectors() -> None:
    for given in (["y", 0.0], lambda x: np.stack([x[:, 1], 0.0 * x[:, 0]], axis=1), ("y", lambda x, t: 0.0 * x[:, 0])):
        found = [value.at(PLACES).tolist() for value in vector_of(given, 2, "it")]
        assert found == [[1.0, 3.0, 5.0], [0.0] * 3]
    assert [value.at(PLACES).tolist() for value in vector_of((), 2)] == [[0.0] * 3] * 2
    calls = []
    for k, value in enumerate(vector_of(lambda x, t: calls.append(t) or t * x, 2)):
        assert value.in_time
        assert value.at(PLACES, 2.0).tolist() == (2.0 * PLACES[:, k]).tolist()
    assert calls == [2.0]
    with pytest.raises(SolverError, match="it: a vector of 2 components is wanted"):
        vector_of([1.0], 2, "it")
    parts = vector_of(["3 * t", 4.0], 2)
    assert Direction(parts, 0).at(PLACES, 1.0).tolist() == [0.6] * 3


def test_series(tmp_path: Path) -> None:
    file = tmp_path / "q.csv"
    file.write_text("# t, p, q\n0, 1, 5\n1, 3, 7\n2, 1, 9\n")
    series = TimeSeries(str(file))
    assert [series.at(PLACES, t)[0] for t in (0.0, 0.5, 2.0)] == [1.0, 2.0, 1.0]
    assert TimeSeries(str(file), column="q").at(PLACES, 0.5)[0] == 6.0
    assert TimeSeries(str(file), periodic=True).at(PLACES, -1.5)[0] == 2.0
    assert TimeSeries(str(file), outside="hold").at(PLACES, 9.0)[0] == 1.0
    with pytest.raises(SolverError, match=r"q.csv: it goes from 0 to 2 and has no value at t = 2.5; give a longer"):
        series.at(PLACES, 2.5)
    with pytest.raises(SolverError, match="ends with the value that it begins with"):
        TimeSeries(str(file), column="q", periodic=True)
    with pytest.raises(CaseError, match=r"q.csv: there is no column 'r' \(its heading is t p q\)"):
        TimeSeries(str(file), column="r")
    file.write_text("0 1\n1 nan\n")
    with pytest.raises(CaseError, match=r"q.csv:2: finite numbers"):
        TimeSeries(str(file))
    with pytest.raises(SolverError, match="the times of a series must increase, got 1 after 1"):
        TimeSeries(times=(1.0, 1.0), numbers=(0.0, 0.0))


def test_profiles(tmp_path: Path) -> None:
    file = tmp_path / "u.dat"
    file.write_text("y u k\n5 10 1\n1 2 0\n")
    profile = Profile(str(file))
    assert profile.at(PLACES).tolist() == [2.0, 6.0, 10.0]
    assert Profile(str(file), column="k").at(PLACES).tolist() == [0.0, 0.5, 1.0]
    assert Profile(str(file), along="x", outside="hold").at(PLACES).tolist() == [2.0, 4.0, 8.0]
    with pytest.raises(SolverError, match=r"u.dat: it covers x 1 to 5, and \(0, 1\) is outside"):
        Profile(str(file), along="x").at(PLACES)
    space = np.array([[0.0, 3.0, 4.0], [7.0, 0.0, 1.0]])
    radial = Profile(along="r", points=[0.0, 10.0], numbers=[0.0, 20.0], centre=(1.0, 0.0, 0.0))
    assert radial.at(space).tolist() == [10.0, 2.0]
    assert radial.at(PLACES[:1]) == pytest.approx(2.0 * np.sqrt(2.0))
    corners = [(0.0, 0.0), (5.0, 0.0), (0.0, 5.0), (5.0, 5.0)]
    plane = Profile(along="yz", points=corners, numbers=[y + 2.0 * z for y, z in corners])
    assert plane.at(space) == pytest.approx([11.0, 2.0])
    with pytest.raises(SolverError, match="the places have 2 dimensions"):
        plane.at(PLACES)
    with pytest.raises(SolverError, match="two values at y = 1"):
        Profile(points=[1.0, 1.0], numbers=[0.0, 1.0])


def test_rasters(tmp_path: Path) -> None:
    file = tmp_path / "bed.xyz"
    file.write_text("".join(f"{x} {y} {x + 10 * y}\n" for x in (0, 4) for y in (1, 5)))
    assert Raster(str(file)).at(PLACES).tolist() == [10.0, 32.0, 54.0]
    assert Raster(str(file), negative=True).at(PLACES).tolist() == [-10.0, -32.0, -54.0]
    with pytest.raises(CaseError, match=r"bed.xyz: the point \(9, 1\)"):
        Raster(str(file)).at(np.array([[9.0, 1.0]]))


@pytest.mark.parametrize("d", [2, 3])
def test_fluctuations(d: int) -> None:
    """Intensity and integral length are those given, and there is no divergence."""
    rng = np.random.default_rng(0)
    places = 40.0 * rng.random((4000, d))
    fluctuation = Fluctuation(0.3, 0.5, (1.0, *(0.0,) * (d - 1)), seed=3)
    parts = fluctuation.parts(d)
    assert [part.at(places, 0.3).std() for part in parts] == pytest.approx([0.3] * d, rel=0.15)
    steps = 1e-4 * np.eye(d)
    divergence = sum(part.at(places + h, 0.3) - part.at(places - h, 0.3) for part, h in zip(parts, steps, strict=True))
    assert np.abs(divergence).max() / 2e-4 < 1e-4
    apart = np.linspace(0.0, 4.0, 200)
    correlation = np.zeros(apart.size)
    for seed in range(40):
        waves, amplitudes, _, _ = Fluctuation(0.3, 0.5, seed=seed, modes=128).waves(d)
        correlation += 0.5 * amplitudes[:, 0] ** 2 @ np.cos(np.outer(waves[:, 0], apart))
    assert np.trapezoid(correlation, apart) / correlation[0] == pytest.approx(0.5, rel=0.25)
    same = Fluctuation(0.3, 0.5, (1.0, *(0.0,) * (d - 1)), seed=3).parts(d)[0]
    assert same.at(places[::-1], 0.3)[::-1].tolist() == parts[0].at(places, 0.3).tolist()
    with pytest.raises(SolverError, match="length: a number above 0"):
        Fluctuation(0.1, 0.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("4 5", "4 1e999", "a value is infinite"), ("cellsize 1", "cellsize 1e-30", "x from 10.* is no axis"),
     ("xllcorner 10", "xllcorner nan", "x from nan .* is no axis")],
)  # fmt: skip
def test_damaged_rasters(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = "ncols 2\nnrows 2\nxllcorner 10\nyllcorner 0\ncellsize 1\n1 2\n4 5\n"
    (path := tmp_path / "bed.asc").write_text(text.replace(old, new))
    with pytest.raises(CaseError, match=message):
        Raster(str(path))
