"""Gauges, probes and lines of shallow water: at their own times within the intervals of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError
from tests.state_runs import leg, same
from tests.unit.monitors.point_cases import build, run, table

POND = """
[case]
name = "pond"
solver = "tsunami"
[mesh]
x = [0.0, 2.0]
nx = 16
ny = 8
[initial]
expression = "0.1 * (x < 1)"
[gauges]
every = 0.03
points.a = [0.7, 0.5]
[probes]
period = 0.04
points.a = [0.7, 0.5]
points.b = [1.9, 0.1]
[lines.along]
start = [-0.5, 0.51]
end = [2.0, 0.51]
count = 26
period = 0.1
[run]
time = 0.3
iterations = 3
threads = 1
"""


def test_all_have_their_own_times(tmp_path: Path) -> None:
    """Also within an interval; gauges have the start too. What is at the same place and time is the same."""
    made = run(POND, tmp_path, 3)
    assert made.flow.steps == 3
    gauges, probes = table(tmp_path / "gauges.csv"), table(tmp_path / "probes.csv")
    np.testing.assert_allclose(gauges["time"], 0.03 * np.arange(11), atol=1e-12)
    np.testing.assert_allclose(probes["time"], [*(0.04 * np.arange(1, 8)), 0.3], atol=1e-12)
    parts = ["depth", "elevation", "velocity_x", "velocity_y"]
    assert list(gauges) == ["time", *(f"a.{part}" for part in parts)]
    assert list(probes) == ["time", *(f"{name}.{part}" for name in "ab" for part in parts)]
    for part in parts:
        np.testing.assert_array_equal(gauges[f"a.{part}"][[4, 8]], probes[f"a.{part}"][[2, 5]])
    line = table(tmp_path / "line_along.csv")
    assert list(line) == ["x", "y", "distance", *parts]
    assert line["x"][0] == pytest.approx(0.0)
    assert np.ptp(line["depth"]) > 0.02
    series = table(tmp_path / "line_along_series.csv")
    np.testing.assert_allclose(np.unique(series["time"]), [0.1, 0.2, 0.3])
    assert dict(made.summary())["line along"] == "5 of 26 points are outside of the mesh"


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    whole = leg(POND, tmp_path / "whole", 3)
    leg(POND, tmp_path / "parts", 2, {"checkpoint.every": 1}, killed=True)
    assert not same(whole, leg(POND, tmp_path / "parts", 3))


def _on(comm: Comm, folder: Path) -> None:
    run(POND, folder / f"{comm.size}", 3, comm=comm)


def test_two_ranks(tmp_path: Path) -> None:
    for ranks in (1, 2):
        (tmp_path / f"{ranks}").mkdir()
        run_threads(ranks, _on, tmp_path)
    for name in ("gauges.csv", "probes.csv", "line_along.csv", "line_along_series.csv"):
        assert (tmp_path / "1" / name).read_text() == (tmp_path / "2" / name).read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[0.7, 0.5]\n[probes]", "[2.7, 0.5]\n[probes]", r"gauges: probe 'a' at \(2\.7, 0\.5\) is not in the mesh"),
        ("[1.9, 0.1]", "[1.9, 0.1, 0.0]", r"probes: probe 'b': 2 finite coordinates are wanted"),
        ("[-0.5, 0.51]", "[2.0, 1.51]", r"lines\.along: none of 26 points is in the mesh"),
    ],
)
def test_refused(old: str, new: str, message: str) -> None:
    text = POND.replace(old, new)
    with pytest.raises(CaseError, match=message):
        build(text if "1.51" not in new else text.replace("end = [2.0, 0.51]", "end = [2.5, 1.51]"))
