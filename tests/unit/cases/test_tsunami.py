"""The tsunami case: its tables, what wrong ones are answered with, expressions, grids, and what a run leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import applications, load_case
from fluxloom.cases.shallow.case import TsunamiCase
from fluxloom.cli.main import main
from fluxloom.core.errors import CaseError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.shallow.flow import ShallowWater
from fluxloom.mesh import box2d, box3d, write
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder
from fluxloom.values.expressions import Expression
from fluxloom.values.tables import read_raster, read_series

CASE = """
[case]
name = "pond"
solver = "tsunami"

[mesh]
x = [0.0, 4.0]
y = [0.0, 2.0]
nx = 12
ny = 6

[bathymetry]
expression = "-0.5 + 0.2 * x"

[initial]
expression = "0.1 * exp(-((x - 1) ** 2 + (y - 1) ** 2) / 0.1)"

[boundary.xmin]
type = "outflow"

[gauges]
every = 0.05
[gauges.points]
a = [1.0, 1.0]

[run]
time = 0.2
iterations = 2
threads = 1

[output]
snapshots = 2
"""

Write = Callable[..., Path]


@pytest.fixture
def pond(tmp_path: Path) -> Write:
    """Return a function that writes the case with some texts replaced."""

    def write_case(*changes: tuple[str, str]) -> Path:
        text = CASE
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "pond.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_case


def build(path: Path) -> FlowRun[ShallowWater]:
    case, application = load_case(path)
    runner = application.build(case, Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, ShallowWater)
    return runner


def test_registered() -> None:
    assert "tsunami" in applications().names()


def test_run_leaves_files(pond: Write, tmp_path: Path) -> None:
    """Gauges at their times, snapshots, pictures; a balanced volume."""
    runner = build(pond())
    runner.begin(ResultFolder(tmp_path))
    for _ in range(2):
        runner.advance()
    assert runner.flow.solver.time == 0.2
    assert np.isfinite(runner.residual())
    runner.finish()
    files = runner.folder.written
    assert set(files) >= {"gauges.csv", "elevation.png", "gauges.png"}
    assert sum(name.startswith("snapshot_000") for name in files) == 2
    assert all((tmp_path / name).stat().st_size > 100 for name in files)
    table = np.genfromtxt(tmp_path / "gauges.csv", delimiter=",", names=True, deletechars="")
    assert table["time"] == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])
    assert table["a.elevation"][0] > table["a.elevation"][-1] > -0.1
    assert abs(runner.flow.solver.survey().defect) < 1e-13
    summary = dict(runner.summary())
    assert summary["time"].startswith("0.2 s, ")
    assert set(runner.fields()) == {"depth", "velocity", "elevation", "bed", "highest"}
    runner.advance()
    assert runner.flow.solver.time == 0.2


def test_steps_of_a_given_length(pond: Write, tmp_path: Path) -> None:
    """All alike; where the water comes to be too fast for them, the run has diverged."""
    runner = build(pond(("[run]", "[flow]\ndt = 1e-3\n[run]")))
    for _ in range(2):
        runner.advance()
    assert (runner.flow.time, runner.flow.solver.steps) == (0.2, 200)
    dam = ('"0.1 * exp(-((x - 1) ** 2 + (y - 1) ** 2) / 0.1)"', '"0.4 * (x > 2)"')
    limit = build(pond(dam)).flow.solver.next_step()
    path = pond(dam, ("[run]", f"[flow]\ndt = {0.999 * limit:.6g}\n[run]"))
    assert main(["run", str(path), "-o", str(tmp_path / "lost")]) == 1
    record = (tmp_path / "lost" / "run.json").read_text()
    assert json.loads(record)["status"] == "diverged"
    assert "lower dt" in record


def test_rain_wind_and_discharge(pond: Write) -> None:
    """A number, a formula and a table; the volume is that of all, and the history counts them."""
    path = pond(("[run]", '[flow]\nrain = "1e-2 * t"\nwind_stress = ["5 * y", 0]\n[run]'),
                ('type = "outflow"', 'type = "discharge"\ndischarge = "0.1 * (1 + y)"'),
                ("-0.5 + 0.2 * x", "-0.5"))  # fmt: skip
    runner = build(path)
    first = runner.flow.columns()["volume"]
    for _ in range(2):
        runner.advance()
    found, wanted = runner.flow.columns(), 0.5e-2 * 0.2**2 * 8.0 + 0.1 * 4.0 * 0.2
    assert found["inflow"] == pytest.approx(wanted, rel=1e-11)
    assert found["volume"] - first == pytest.approx(wanted, rel=1e-11)


def test_events_lift_the_bed_in_order(pond: Write) -> None:
    events = '[[event]]\ntime = 0.1\nexpression = "0.2"\n[[event]]\ntime = 0.05\nexpression = "0.1"\n\n[run]'
    runner = build(pond(("[run]", events)))
    before = runner.flow.solver.zb.read()
    runner.advance()
    assert runner.flow.solver.zb.read() - before == pytest.approx(0.3)


def test_other_run_options_keep_the_case(pond: Write) -> None:
    case, _ = load_case(pond())
    changed = case.with_run(threads=2)
    assert isinstance(changed, TsunamiCase)
    assert changed.run.threads == 2
    assert changed.boundary == case.boundary  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("nx = 12", "nz = 12", "mesh.nz: [mesh] has no key 'nz'; did you mean"),
        ("nx = 12", 'file = "m.su2"', "mesh: a mesh from a file has no x"),
        ("x = [0.0, 4.0]", "x = [4.0, 0.0]", "mesh: x and y are the lower and the upper end"),
        ('"-0.5 + 0.2 * x"', '"-0.5 + 0.2 * z"', "bathymetry.expression: '-0.5 + 0.2 * z': unknown name 'z'"),
        ('expression = "-0.5 + 0.2 * x"', "positive_down = true", "bathymetry: give one of the keys expression, file"),
        ('type = "outflow"', 'type = "outlow"', "boundary.xmin.type: unknown value \"outlow\"; did you mean 'outflow'"),
        ('type = "outflow"', 'type = "outflow"\nstill = 1.0', 'boundary.xmin: type = "outflow" has no still'),
        ('type = "outflow"', 'type = "level"', 'boundary.xmin: type = "level" needs surface'),
        ('type = "outflow"', 'type = "level"\nsurface = "sin(z)"', "unknown name 'z'"),
        ('type = "outflow"', 'type = "level"\nsurface = "y"\nevery = 1', "every is of a surface that is a formula"),
        ('type = "outflow"', 'type = "level"\nsurface = 1\nstill = 0.5', 'boundary.xmin: type = "level" has no still'),
        ('type = "outflow"', 'type = "discharge"\nsurface = 1', 'boundary.xmin: type = "discharge" has no surface'),
        ('type = "outflow"', 'type = "discharge"', 'boundary.xmin: type = "discharge" needs discharge'),
        ("[run]", "[flow]\nrain = -1e-6\n[run]", "flow.rain: must be at least 0, got -1e-06"),
        ("[run]", "[flow]\nwind_stress = [1.0]\n[run]", "flow.wind_stress: a vector of 2 components is wanted"),
        ("[run]", '[flow]\nrain = "z"\n[run]', "flow.rain: 'z': unknown name 'z' (allowed: x, y, t)"),
        ("a = [1.0, 1.0]", "a = [1.0]", "gauges.points.a"),
        ("time = 0.2", "time = 0", "run.time: must be greater than 0, got 0"),
        ("[run]", "[flow]\norder = 3\n[run]", "flow.order: unknown value 3"),
        ("[run]", '[flow]\nprecision = "half"\n[run]', 'flow.precision: unknown value "half"'),
        ("[run]", "[flow]\ncfl = 5\n[run]", "flow.cfl: must be at most 1, got 5"),
        ("[run]", "[flow]\ndry = -1e-6\n[run]", "flow.dry: must be greater than 0"),
        ("[run]", "[flow]\nlongest = 1e-12\n[run]", "flow.longest: 1e-12 makes 2.0e+11 steps until run.time"),
        ("[run]", "[flow]\ndt = 1e-12\n[run]", "flow.dt: 1e-12 makes 2.0e+11 steps until run.time"),
        ("[run]", "[flow]\ndt = 0.1\nlongest = 0.1\n[run]", "flow: give only one of dt and longest"),
        ("every = 0.05", "every = 1e-9", "gauges.every: 1e-09 makes 2.0e+08 rows until run.time = 0.2; at most 1e+06"),
        ('type = "outflow"', 'type = "level"\nsurface = "t"\nevery = 1e-9', "boundary.xmin.every: 1e-09 makes"),
        ('type = "outflow"', 'type = "outflow"\nevry = 1', "(allowed: type, surface, discharge, every, still, until)"),
        ("a = [1.0, 1.0]", '"a,b" = [1.0, 1.0]', "gauges.points: a gauge cannot be called 'a,b'"),
        ("a = [1.0, 1.0]", "a = [1.0, 1.0, 1.0]", "gauges.points.a: must have at most 2 values, got 3"),
        ("[run]", '[[event]]\ntime = -1.0\nexpression = "1"\n[run]', "event.0.time: must be at least 0, got -1.0"),
        ("[run]", '[[event]]\ntme = 1.0\nexpression = "1"\n[run]', "[event.0] has no key 'tme'; did you mean 'time'?"),
        ("[run]", '[event]\nexpression = "1"\n[run]', "event: must be an array [...], got a table; write [[event]]"),
    ],
)
def test_mistakes_of_the_file(pond: Write, old: str, new: str, expected: str) -> None:
    with pytest.raises(CaseError) as caught:
        load_case(pond((old, new)))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("[boundary.xmin]", "[boundary.xmim]", "boundary: the mesh has no patch 'xmim'; did you mean 'xmin'?"),
        ('expression = "-0.5 + 0.2 * x"', 'field = "z"', "bathymetry.field: a generated mesh has no fields"),
        ('expression = "-0.5 + 0.2 * x"', 'file = "none.asc"', "none.asc: no such file"),
        ("[run]", "[flow]\ndt = 0.1\n[run]", "flow.dt: steps of 0.1 s are longer than cfl = 0.5 allows, 0.0"),
        ('"-0.5 + 0.2 * x"', '"1 / 0"', "bathymetry.expression: '1 / 0' is inf at ("),
        ('"-0.5 + 0.2 * x"', '"10 ** 400"', "bathymetry.expression: '10 ** 400' is inf at ("),
        ('"-0.5 + 0.2 * x"', '"-1 + sqrt(x - 2)"', "bathymetry.expression: '-1 + sqrt(x - 2)' is nan at ("),
        ("[boundary.xmin]", 'velocity_x = "0 / (x - x)"\n[boundary.xmin]', "initial.velocity_x: '0 / (x - x)' is"),
        ("[run]", '[[event]]\nexpression = "log(x - 9)"\n[run]', "event.0.expression: 'log(x - 9)' is nan at ("),
        ("[run]", '[flow]\nrain = "1 - x"\n[run]', "flow.rain: '1 - x' is below 0 in cell "),
        ("[run]", '[flow]\nwind_stress = [0, "1 / (x > 1)"]\n[run]', "flow.wind_stress.1: '1 / (x > 1)' is inf at ("),
        ("[run]", '[flow]\nrain = "sqrt(0.1 - t)"\n[run]', "flow.rain: 'sqrt(0.1 - t)' is nan at t = 0.2"),
        ('type = "outflow"', 'type = "level"\nsurface = "1 / (y > 1)"', "boundary.xmin: '1 / (y > 1)' is inf at (0, "),
        ('type = "outflow"', 'type = "level"\nsurface = "1 / (t - 0.1)"', "boundary.xmin.surface: '1 / (t"),
    ],
)
def test_mistakes_found_when_building(pond: Write, old: str, new: str, expected: str) -> None:
    with pytest.raises(CaseError) as caught:
        build(pond((old, new)))
    assert expected in str(caught.value)


def test_bed_from_the_mesh_file(pond: Write, tmp_path: Path) -> None:
    data = box2d(6, 3, (4.0, 2.0), "triangle")
    write(tmp_path / "m.vtu", data, point_data={"z": -1.0 - data.points[:, 0]}, patches=True)
    text = f'file = "{tmp_path / "m.vtu"}"'
    block = ("x = [0.0, 4.0]\ny = [0.0, 2.0]\nnx = 12\nny = 6", text)
    runner = build(pond(block, ('expression = "-0.5 + 0.2 * x"', 'field = "z"')))
    x = runner.flow.solver.mesh.centroids.read()[:, 0]
    assert runner.flow.solver.zb.read() == pytest.approx(-1.0 - x)
    with pytest.raises(CaseError, match=r"has no field 'zz'; did you mean 'z'"):
        build(pond(block, ('expression = "-0.5 + 0.2 * x"', 'field = "zz"')))


def test_a_mesh_in_space_is_refused(pond: Write, tmp_path: Path) -> None:
    write(tmp_path / "m.vtu", box3d(2, 2, 2))
    block = ("x = [0.0, 4.0]\ny = [0.0, 2.0]\nnx = 12\nny = 6", f'file = "{tmp_path / "m.vtu"}"')
    with pytest.raises(CaseError, match=r"mesh.file: .*m.vtu has 3 dimensions"):
        build(pond(block))


def test_expressions() -> None:
    x, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 3.0])
    cases = {
        "2 * x - y / 4 + pi": 2 * x - y / 4 + np.pi,
        "-x ** 2": -(x**2),
        "1 if x > 0.5 and not y > 2 else -1": np.array([-1.0, 1.0, -1.0]),
        "where(0 < x < 1.5, 5, 6)": np.array([6.0, 5.0, 6.0]),
        "max(x, y) + hypot(x, y) + sech(x)": np.maximum(x, y) + np.hypot(x, y) + 1 / np.cosh(x),
        "7": np.full(3, 7.0),
    }
    for text, expected in cases.items():
        assert Expression(text)(x, y) == pytest.approx(expected), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x +", "is not an expression"),
        ("sine(x)", "unknown function 'sine'; did you mean 'sin'?"),
        ("hypot(x)", "hypot takes 2 arguments, got 1"),
        ("x.real", "not allowed in an expression"),
        ("__import__('os')", "unknown function '__import__'"),
        ("[x][0]", "not allowed in an expression"),
        ("'a'", "not allowed in an expression"),
        ("9" * 400, "999...': a number is too large"),
        ("+".join("x" * 5000), "x+x+...': too many terms or brackets"),
        ("-" * 3000 + "x", "---...': too many terms or brackets"),
    ],
)
def test_expressions_refuse(text: str, expected: str) -> None:
    with pytest.raises(CaseError) as caught:
        Expression(text)
    assert expected in str(caught.value)


def test_rasters(tmp_path: Path) -> None:
    """Lines in any order and ESRI grids give the same bilinear function."""
    x, y = np.meshgrid([1.0, 2.0, 3.0], [5.0, 6.0], indexing="ij")
    values = 2 * x - 3 * y
    lines = [f"{a} {b} {c}" for a, b, c in zip(x.ravel(), y.ravel(), values.ravel(), strict=True)]
    (tmp_path / "a.xyz").write_text("x y z\n" + "\n".join(reversed(lines)))
    rows = "\n".join(" ".join(str(v) for v in row) for row in values.T[::-1])
    heading = "ncols 3\nnrows 2\nxllcenter 1\nyllcenter 5\ncellsize 1\nNODATA_value -9999\n"
    (tmp_path / "b.asc").write_text(heading + rows)
    at = (np.array([1.25, 2.5, 3.4]), np.array([5.5, 5.75, 6.0]))
    for name in ("a.xyz", "b.asc"):
        found = read_raster(tmp_path / name)(*at)
        assert found == pytest.approx(2 * np.minimum(at[0], 3.0) - 3 * at[1]), name
    with pytest.raises(CaseError, match=r"point \(9, 5\) of the mesh lies outside the grid, which covers x 1 to 3"):
        read_raster(tmp_path / "a.xyz")(np.array([9.0]), np.array([5.0]))
    (tmp_path / "b.asc").write_text(heading + rows.replace(str(values[0, 0]), "-9999"))
    with pytest.raises(CaseError, match="has no value at the point"):
        read_raster(tmp_path / "b.asc")(np.array([1.0]), np.array([5.0]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 1\n1 0 2\n0 1 3\n", "3 points are not a regular grid"),
        ("0 0 1\n1 0 2\n0 1 3\n0 1 3\n", "occur twice"),
        ("0 0 1\n1 zero 2\n", "bad.xyz:2: 3 numbers are expected, got '1 zero 2'"),
        ("", "there are no numbers"),
        ("ncols 3\nnrows 2\ncellsize 1\n1 2 3\n4 5 6\n", "heading of the grid has no xllcorner"),
        ("ncols 3\nnrows 3\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2 3\n4 5 6\n", "6 values for 3 rows of 3"),
        ("ncols nan\nnrows 3\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2 3\n", "ncols in the heading of the grid"),
        ("ncols 2\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize -1\n1 2\n3 4\n", "cellsize in the heading of the"),
        ("ncols 2\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2\n3 x\n", "bad.xyz:7: numbers are expected"),
        ("0 0 1\nnan 0 2\n", "bad.xyz:2: finite numbers are expected, got nan 0.0"),
    ],
)
def test_broken_rasters(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "bad.xyz"
    path.write_text(text)
    with pytest.raises(CaseError) as caught:
        read_raster(path)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0\n\n2 1\n1 3\n", "wave.txt:4: the times must increase, got 1 after 2"),
        ("0 0\n2 1\n2 3\n", "wave.txt:3: the times must increase, got 2 after 2"),
        ("t eta\n0 0\n1 nan\n", "wave.txt:3: finite numbers are expected, got 1.0 nan"),
        ("0 0\n1 one\n", "wave.txt:2: 2 numbers are expected, got '1 one'"),
        ("a wave\nin words\n", "wave.txt:2: 2 numbers are expected"),
    ],
)
def test_broken_series(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "wave.txt"
    path.write_text(text)
    with pytest.raises(CaseError) as caught:
        read_series(path)
    assert expected in str(caught.value)


def test_series_from_a_file(pond: Write, tmp_path: Path) -> None:
    path = tmp_path / "wave.csv"
    path.write_text("time,surface\n0,0\n0.1,0.05\n10,0.05\n")
    times, values = read_series(path)
    assert times.tolist() == [0.0, 0.1, 10.0]
    assert values.tolist() == [0.0, 0.05, 0.05]
    runner = build(pond(('type = "outflow"', f'type = "incident"\nsurface = {{ type = "series", file = "{path}" }}')))
    runner.advance()
    assert runner.flow.solver.survey().inflow > 0.0


def test_a_wave_of_many_periods_is_sampled_finely_enough(pond: Write) -> None:
    """A thousand samples of a thousand periods are all 0."""
    run = build(pond(("type = \"outflow\"", 'type = "level"\nsurface = "0.01 * sin(2 * pi * t / 0.0002)"'))).flow
    run.solver.advance_to(0.00005)
    assert run.solver.survey().inflow > 0.0
    with pytest.raises(CaseError, match=r"boundary.xmin.surface: .* changes so fast that 1e\+06 samples"):
        build(pond(('type = "outflow"', 'type = "level"\nsurface = "sin(1e9 * t)"')))


def test_surfaces_in_the_words_of_all_values(pond: Write, tmp_path: Path) -> None:
    """A formula, sampled or not, and a series of a file; a series may end where the run does not."""
    path = tmp_path / "wave.csv"
    path.write_text("time,surface,other\n0,0,0\n0.1,0.05,0\n0.15,0.05,0\n")
    series = f'surface = {{ type = "series", file = "{path}", column = "surface", outside = "hold" }}'
    for words in ('surface = "0.1 * t"', 'surface = "0.1 * t"\nevery = 0.05', series):
        runner = build(pond(('type = "outflow"', f'type = "incident"\n{words}')))
        for _ in range(3):
            runner.advance()
        assert runner.flow.solver.survey().inflow > 0.0
    for words, expected in (
        (f'surface = {{ type = "series", file = "{path}" }}', "has no value at t = "),
        (f'surface = "t"\nfile = "{path}"', "file is called surface.file now"),
        ("surface = 0.1\nevery = 0.1", "every is of a surface that is a formula"),
        ('surface = { type = "serie" }', "did you mean 'series'"),
    ):
        with pytest.raises((CaseError, SolverError), match=expected):
            build(pond(('type = "outflow"', f'type = "incident"\n{words}'))).flow.solver.advance_to(0.2)
