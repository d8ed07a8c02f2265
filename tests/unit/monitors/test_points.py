"""Probes and lines of every flow: from a case file, exact for linear fields, on ranks, over restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.monitors.lines import Line
from fluxloom.run.flow import Flow
from fluxloom.run.results.results import ResultFolder
from tests.state_runs import leg, same
from tests.unit.monitors.point_cases import build, run, table

CHANNEL = """
[case]
name = "channel"
solver = "{solver}"
[mesh]
x = [0.0, 2.0]
nx = 8
ny = {ny}
kind = "{kind}"
{mesh}
[fluid]
viscosity = 0.1
[initial]
velocity_x = "{u}"
[boundary]
xmin = {{ type = "inflow", velocity_x = "{u}" }}
xmax = {{ type = "outflow" }}
ymin = {{ type = "wall" }}
ymax = {{ type = "wall" }}
[pressure]
rtol = 1e-9
[time]
dt = 0.01
[history]
every = 0
[run]
iterations = 12
threads = 1
{more}
"""
POISEUILLE = "4 * y * (1 - y)"
CHANNELS = [("incompressible", "quad", 0.01), ("edge_flow", "triangle", 0.006)]
LINE = "[lines.across]\nstart = [1.0, -0.1]\nend = [1.0, 1.1]\ncount = 25\n"


def channel(solver: str = "incompressible", kind: str = "quad", **keys: Any) -> str:
    return CHANNEL.format(**{"solver": solver, "kind": kind, "u": POISEUILLE, "ny": 8, "mesh": "", "more": ""} | keys)


@pytest.mark.parametrize(("solver", "kind", "off"), CHANNELS)
def test_a_line_across_a_channel(tmp_path: Path, solver: str, kind: str, off: float) -> None:
    """From a case file alone: the parabola; what is beyond the walls is left out, and said."""
    made = run(channel(solver, kind, ny=16, more=LINE), tmp_path)
    found = table(tmp_path / "line_across.csv")
    assert list(found) == ["x", "y", "distance", "u", "v", "p"]
    assert len(found["y"]) == 21
    np.testing.assert_allclose(found["distance"], found["y"] + 0.1, atol=1e-9)
    np.testing.assert_allclose(found["u"], 4 * found["y"] * (1 - found["y"]), atol=off)
    assert np.abs(found["v"]).max() < off
    assert dict(made.summary())["line across"] == "4 of 25 points are outside of the mesh"
    assert not (tmp_path / "line_across_series.csv").exists()


def test_lines_over_time(tmp_path: Path) -> None:
    """All samples stand one below the other, with their times; a run that goes on has those of before."""
    more = LINE + 'every = 4\n[lines.once]\nstart = [0.5, 0.2]\nend = [1.5, 0.2]\ncount = 3\nperiod = 0.03\n'
    text = channel(more=more)
    whole = leg(text, tmp_path / "whole", 12)
    leg(text, tmp_path / "parts", 7, {"checkpoint.every": 3}, killed=True)
    assert not same(whole, leg(text, tmp_path / "parts", 12))
    series = table(tmp_path / "whole" / "line_across_series.csv")
    assert list(series)[:4] == ["time", "x", "y", "distance"]
    np.testing.assert_allclose(series["time"], np.repeat([0.04, 0.08, 0.12], 21))
    last, end = table(tmp_path / "whole" / "line_across.csv"), slice(42, None)
    for name, values in last.items():
        np.testing.assert_array_equal(series[name][end], values)
    times = table(tmp_path / "whole" / "line_once_series.csv")["time"]
    np.testing.assert_allclose(times, np.repeat([0.03, 0.06, 0.09, 0.12], 3))


def test_steps_of_free_length_hit_the_times(tmp_path: Path) -> None:
    text = channel(more="[probes]\npoints = [[0.5, 0.5]]\nperiod = 0.1\n").replace("dt = 0.01", "end = 0.25")
    made = run(text, tmp_path, 100)
    np.testing.assert_allclose(table(tmp_path / "probes.csv")["time"], [0.1, 0.2, 0.25], rtol=1e-9)
    assert made.flow.steps > 3


def test_given_steps_pass_them(tmp_path: Path) -> None:
    """The first step at such a time or behind it counts, and no step is made shorter."""
    made = run(channel(more="[probes]\npoints = [[0.5, 0.5]]\nperiod = 0.025\n"), tmp_path)
    np.testing.assert_allclose(table(tmp_path / "probes.csv")["time"], [0.03, 0.05, 0.08, 0.1, 0.12], rtol=1e-9)
    assert made.flow.steps == 12


STAGGERED = """
[case]
name = "box"
solver = "staggered"
[mesh]
x = [0.0, 2.0]
nx = 8
ny = 6
periodic = [["xmin", "xmax"]]
[fluid]
viscosity = 0.1
force = [0.8, 0.0]
[initial]
velocity_x = "4 * y * (1 - y) + 0.1 * sin(3 * x)"
[boundary]
ymin = { type = "wall" }
ymax = { type = "wall" }
[time]
dt = 0.01
[probes]
points.a = [0.3, 0.9]
points.b = [2.0, 0.0]
[lines.across]
start = [1.0, -0.1]
end = [1.0, 1.1]
count = 13
every = 4
[run]
iterations = 9
threads = 1
"""


def test_a_staggered_run_goes_on(tmp_path: Path) -> None:
    """The line is the velocity of the cells, 0 at the walls; what a run that goes on leaves is the same, bit by bit."""
    whole = leg(STAGGERED, tmp_path / "whole", 9)
    leg(STAGGERED, tmp_path / "parts", 6, {"checkpoint.every": 5}, killed=True, poison=True)
    assert not same(whole, leg(STAGGERED, tmp_path / "parts", 9, poison=True))
    line = table(tmp_path / "whole" / "line_across.csv")
    assert list(line) == ["x", "y", "distance", "u", "v", "p"]
    np.testing.assert_allclose(line["u"][[0, -1]], 0.0, atol=1e-12)
    assert 0.9 < line["u"].max() < 1.1
    assert abs(table(tmp_path / "whole" / "probes.csv")["b.u"]).max() < 1e-12


def test_points_that_were_moved(tmp_path: Path) -> None:
    """What was seen elsewhere is not theirs."""
    leg(STAGGERED, tmp_path, 4, {"checkpoint.every": 4})
    leg(STAGGERED, tmp_path, 8, {"probes.points.a": [0.3, 0.8], "lines.across.end": [1.0, 1.3]})
    probes, line = table(tmp_path / "probes.csv"), table(tmp_path / "line_across_series.csv")
    assert np.isnan(probes["a.u"][:4]).all()
    assert np.isfinite(probes["a.u"][4:]).all()
    assert np.isfinite(probes["b.u"]).all()
    first = line["time"] < 0.05
    assert np.isnan(line["u"][first]).all()
    assert np.isfinite(line["u"][~first]).all()


COMPRESSIBLE = """
[case]
name = "box"
solver = "compressible"
[mesh]
nx = 4
ny = 3
nz = 3
kind = "{kind}"
[flow]
mach = 0.3
[initial]
density = "1 + 0.1 * x + 0.2 * y - 0.1 * z"
velocity_x = "0.3 - 0.2 * x"
velocity_y = "0.1 * y"
velocity_z = "0.1 * z - 0.05 * x"
pressure = "1 + 0.05 * x - 0.1 * y"
[boundary]
xmin = {{ type = "slip" }}
xmax = {{ type = "slip" }}
ymin = {{ type = "slip" }}
ymax = {{ type = "slip" }}
zmin = {{ type = "slip" }}
zmax = {{ type = "slip" }}
[time]
end = 1.0
[lines.through]
start = [0.0, 0.0, 0.0]
end = [1.0, 1.0, 1.0]
count = 12
every = 1
[run]
iterations = 5
threads = 1
"""


def test_explicit_steps_of_a_gas_hit_the_times(tmp_path: Path) -> None:
    """Lines and probes at times of their own, and the end."""
    text = COMPRESSIBLE.format(kind="hexahedron") + "[probes]\npoints = [[0.5, 0.5, 0.5]]\nperiod = 0.05\n"
    text = text.replace("end = 1.0\n", "end = 0.12\n").replace("every = 1", "period = 0.07")
    text = text.replace("iterations = 5", "iterations = 100")
    run(text, tmp_path, 100)
    assert table(tmp_path / "probes.csv")["time"].tolist() == [0.05, 0.1, 0.12]
    assert np.unique(table(tmp_path / "line_through_series.csv")["time"]).tolist() == [0.07, 0.12]


@pytest.mark.parametrize("kind", ["tetra", "prism", "pyramid", "hexahedron"])
def test_linear_states_are_exact(kind: str) -> None:
    """Along a diagonal, corner to corner, on every kind of cell."""
    made = build(COMPRESSIBLE.format(kind=kind))
    line = next(monitor for monitor in made.monitors if isinstance(monitor, Line))
    line.stepped()
    x = line.places[:, 0]
    assert len(x) == 12
    wanted = [1 + 0.2 * x, 0.3 - 0.2 * x, 0.1 * x, 0.05 * x, 1 - 0.05 * x]
    found = line.profile(line.memory["rows"][-1])[:, 4:]
    np.testing.assert_allclose(found, np.stack(wanted, axis=1), rtol=1e-9, atol=1e-9)


def _probes(comm: Comm, text: str, folder: Path) -> None:
    run(text, folder / f"{comm.size}", comm=comm)


TRANSPORT = """
[case]
name = "box"
solver = "edge_transport"
[mesh]
nx = 4
ny = 3
nz = 3
kind = "tetra"
[transport]
velocity = [0.0, 0.0, 0.0]
diffusivity = 0.1
[initial]
scalar = "1 + x - 2 * y + 0.5 * z"
[boundary]
xmin = { type = "given", value = "1 + x - 2 * y + 0.5 * z" }
xmax = { type = "given", value = "1 + x - 2 * y + 0.5 * z" }
ymin = { type = "given", value = "1 + x - 2 * y + 0.5 * z" }
ymax = { type = "given", value = "1 + x - 2 * y + 0.5 * z" }
zmin = { type = "given", value = "1 + x - 2 * y + 0.5 * z" }
zmax = { type = "given", value = "1 + x - 2 * y + 0.5 * z" }
[time]
dt = 0.01
[lines.through]
start = [0.0, 1.0, 0.1]
end = [1.0, 0.0, 0.9]
count = 12
[run]
iterations = 2
threads = 1
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_linear_scalar_stays_exact(tmp_path: Path, ranks: int) -> None:
    """On tetrahedra, where nothing but linear diffusion acts."""
    (tmp_path / f"{ranks}").mkdir()
    run_threads(ranks, _probes, TRANSPORT, tmp_path)
    line = table(tmp_path / f"{ranks}" / "line_through.csv")
    assert list(line) == ["x", "y", "z", "distance", "scalar"]
    assert len(line["x"]) == 12
    np.testing.assert_allclose(line["scalar"], 1 + line["x"] - 2 * line["y"] + 0.5 * line["z"], atol=1e-8)


@pytest.mark.parametrize("kind", ["quad", "triangle"])
def test_two_ranks_have_what_one_has(tmp_path: Path, kind: str) -> None:
    text = channel(kind=kind, ny=4, mesh="perturb = 0.1", more=LINE + "every = 3\n")
    for ranks in (1, 2):
        (tmp_path / f"{ranks}").mkdir()
        run_threads(ranks, _probes, text, tmp_path)
    for name in ("line_across.csv", "line_across_series.csv"):
        one, two = (table(tmp_path / f"{ranks}" / name) for ranks in (1, 2))
        for column, values in one.items():
            np.testing.assert_allclose(two[column], values, atol=1e-6, err_msg=column)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("[lines.off]\nstart = [3.0, 0.0]\nend = [4.0, 0.0]\n", r"lines\.off: none of 101 points is in the mesh"),
        ("[probes]\npoints.out = [3.0, 0.0]\n", r"probes: probe 'out' at \(3\.0, 0\.0\) is not in the mesh"),
        ("[probes]\npoints = [[0.5, 0.5]]\nevery = 2\nperiod = 0.1\n", "give only one of every and period"),
        ("[lines.a]\nstart = [0.0, 0.0]\nend = [0.0, 0.0]\n", "start and end are different points"),
        ("[probes]\npoints.a = [0.5, 0.5]\nspectrum = true\n[spectra.a]\ncolumn = 'a.u'", "has a spectrum of this"),
        ("[probes]\npoints.'a/b' = [0.5, 0.5]\nspectrum = true\n", "'a/b' cannot have a spectrum"),
        (LINE + LINE.replace("across", "across_series"), r"lines\.across_series: 'across' has a file of this name"),
        ('[lines."a/b"]\nstart = [0.0, 0.0]\nend = [0.0, 1.0]\n', "a/b"),
    ],
)
def test_refused(more: str, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        build(channel(more=more))


def test_monitors_of_a_script(tmp_path: Path) -> None:
    """Made without a flow, here one in a box; errors do not name a table, and a monitor without a run says so."""
    made = build(STAGGERED)
    probes, line = fl.Probes([[0.5, 0.5]], every=2), fl.Line("across", (1.0, -0.1), (1.0, 1.1), 25)
    with pytest.raises(SolverError, match="Probes: there is no run yet"):
        probes.begin(ResultFolder(tmp_path))
    result = fl.run(made.flow, fl.Steps(5), [probes, line], directory=tmp_path / "out")
    assert result.monitors["probes"] is probes
    assert probes.column("step" if made.flow.time is None else "time").tolist() == pytest.approx([0.02, 0.04, 0.05])
    assert {"probes.csv", "line_across.csv"} <= set(result.files)
    with pytest.raises(SolverError, match=r"^probe '1' at"):
        fl.Probes([[0.5, 5.0]]).attach(made)
    for wrong in (lambda: fl.Line("a", (0.0, 0.0), (0.0, 0.0)), lambda: fl.Line("a", (0.0, 0.0), (0.0, 1.0), 1),
                  lambda: fl.Probes([[0.5, 0.5]], period=-1.0), lambda: fl.Slice("a", "z", 0.0, size=1)):  # fmt: skip
        with pytest.raises(SolverError):
            wrong()


def test_a_flow_without_values_at_points() -> None:
    """The message says which flow it is."""

    class Nothing(Flow):
        """A flow that says nothing."""

    with pytest.raises(SolverError, match="Nothing: values at points cannot be sampled"):
        Nothing().at_points({"a": (0.0, 0.0)}, 1)
