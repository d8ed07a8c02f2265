"""The case of flow on a staggered grid: its tables, what wrong ones are answered with, and what a run leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.cases.files.loading import applications, load_case
from fluxloom.cli.runs.startup import tune_at_start
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.flows.staggered.flow import Staggered
from fluxloom.mesh.io import read_fields
from fluxloom.run.checkpoint import RunCheckpoint
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.march import march
from fluxloom.run.results.files import ResidualLog
from fluxloom.run.results.results import ResultFolder
from tests.unit.cases.flow_cases import CHANNEL, XMAX, XMIN, YMAX, Write, advanced, built, writer

CASE = f"""
[case]
name = "channel"
solver = "staggered"

[mesh]
x = [0.0, 2.0]
nx = 12
ny = 6
{CHANNEL}
[time]
dt = 0.01
residual_interval = 2

[forces.ymin]
[forces.both]
patches = ["ymin", "ymax"]

[statistics]
every = 2
profile = "y"

[history]
every = 2

[checkpoint]
every = 3

[run]
iterations = 8
threads = 1
"""


@pytest.fixture
def channel(tmp_path: Path) -> Write:
    """Return a function that writes the case with some texts replaced."""
    return writer(CASE, tmp_path / "channel.toml")


def build(path: Path) -> FlowRun[Staggered]:
    return built(Staggered, path)


def ran(path: Path, out: Path, steps: int) -> FlowRun[Staggered]:
    """Return a runner behind some steps, with its files."""
    runner = build(path)
    out.mkdir(exist_ok=True)
    runner.begin(ResultFolder(out))
    march(runner, steps, ResidualLog(None))
    runner.finish(pictures=False)
    return runner


def test_channel(channel: Write) -> None:
    """Poiseuille's flow: the pressure falls by ``8 nu`` a length, and friction takes what it pushes."""
    assert "staggered" in applications().names()
    runner = advanced(build(channel(("residual_interval = 2", "residual_interval = 1"))), 150)
    assert runner.residual() < 1e-2
    p = runner.fields()["p"].reshape(6, 12)
    assert (p[3, 9] - p[3, 3]) == pytest.approx(-0.8, rel=0.05)
    values = runner.monitors[1].columns()
    assert values["both.force_x"] == pytest.approx(1.6, rel=0.05)
    assert values["both.force_y"] == pytest.approx(0.0, abs=1e-9)


def test_residual_is_that_of_its_definition(channel: Write) -> None:
    """The root mean square of ``du/dt`` over the faces, in the first step and every ``residual_interval``."""
    runner = build(channel(('velocity_x = "4 * y * (1 - y)"\n\n', 'velocity_x = "sin(3 * x) + y"\n\n')))
    before = runner.flow.solver.faces()
    first = advanced(runner, 1).residual()
    change = sum(((new - old) ** 2).sum() for new, old in zip(runner.flow.solver.faces(), before, strict=True))
    inside = (np.abs(runner.flow.solver.faces()[0][:, -1] - before[0][:, -1]) ** 2).sum()
    assert first == pytest.approx(np.sqrt((change - inside) / 72) / 0.01, rel=1e-2)
    second = advanced(runner, 1).residual()
    assert second != first
    assert advanced(runner, 1).residual() == second


def test_steps_chosen(channel: Write) -> None:
    """Without ``dt`` it is the largest stable one, and the last two hit the end."""
    runner = build(channel(("dt = 0.01", "end = 0.1\ndiffusion = 0.1")))
    finest = (12 / 2.0) ** 2 + 6**2
    advanced(runner, 1)
    assert runner.flow.solver.dt == pytest.approx(0.1 / (0.1 * finest))
    while not runner.finished:
        runner.advance()
    assert runner.flow.solver.time == pytest.approx(0.1, rel=1e-12)


def test_command_line(channel: Write, fluxloom: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    """Files, pictures, the summary; a run whose velocity is lost says what to change."""
    out = tmp_path / "out"
    done = fluxloom("run", channel(), "--output", out)
    assert done.code == 0, done.text
    record = json.loads((out / "run.json").read_text())
    assert {"history.csv", "profile.csv", "history.png", "checkpoint.h5"} <= set(record["files"])
    written = read_fields(next(out.glob("final.*")))
    assert {"u", "v", "p", "speed", "vorticity", "u_mean"} <= set(written.cell_data)
    points = written.mesh.points
    x, y = np.array([points[cell].mean(axis=0)[:2] for cell in written.mesh.cells["quad"]]).T
    assert np.abs(np.asarray(written.cell_data["u"]) - 4 * y * (1 - y))[x < 1].max() < 0.1
    history = np.genfromtxt(out / "history.csv", delimiter=",", names=True)
    assert history["time"] == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08])
    assert history["imbalance"].max() < 1e-14
    profile = np.genfromtxt(out / "profile.csv", delimiter=",", names=True)
    assert profile["y"] == pytest.approx((np.arange(6) + 0.5) / 6)
    assert profile["u"] == pytest.approx(profile["u"][::-1], rel=1e-9)
    lost = fluxloom("run", channel(("dt = 0.01", "dt = 1e3")), "-n", 60, "--output", tmp_path / "lost")
    text = " ".join(lost.err.split())
    assert lost.code == 1
    assert "time.dt (now 1000)" in text
    assert "Traceback" not in done.text + lost.text


def test_tuned_at_the_start(channel: Write) -> None:
    """Loops may be timed before the first step; the velocity is as it was."""
    runner = build(channel())
    before = runner.flow.solver.faces()
    tune_at_start(runner.flow, "staggered", lambda line: None)
    for one, other in zip(before, runner.flow.solver.faces(), strict=True):
        assert np.array_equal(one, other)
    assert np.isfinite(advanced(runner, 2).residual())


def test_device_that_interprets(channel: Write) -> None:
    """The solver of the pressure is generated code, which the device that runs kernels as Python says."""
    case, application = load_case(channel())
    with pytest.raises(FluxloomError, match="generated code"):
        application.build(case, Context("reference"))




def test_start_from_a_file(channel: Write, tmp_path: Path) -> None:
    """On another grid linear velocities stay; a file of another box is refused."""
    linear = ('velocity_x = "4 * y * (1 - y)"\n\n', 'velocity_x = "1 + y"\n\n')
    closed = (XMIN + XMAX, ""), ("ny = 6", 'ny = 6\nperiodic = [["xmax", "xmin"]]')
    slip = ('[boundary.ymin]\ntype = "wall"', '[boundary.ymin]\ntype = "symmetry"')
    base = channel(linear, *closed, slip, ('[boundary.ymax]\ntype = "wall"', '[boundary.ymax]\ntype = "symmetry"'))
    runner = build(base)
    case, _ = load_case(base)
    RunCheckpoint(case.checkpoint.value, case.model_dump(), runner, runner.flow.solver.context, tmp_path).save()
    file = tmp_path / "checkpoint.h5"
    walls = (*closed, slip, ('[boundary.ymax]\ntype = "wall"', '[boundary.ymax]\ntype = "symmetry"'))
    start = (linear[0], f'file = "{file}"\n\n')
    other = build(channel(start, *walls, ("nx = 12", "nx = 9"), ("ny = 6\n", "ny = 7\n"), name="other.toml"))
    grid = other.flow.solver.grid
    assert grid.shape == (7, 9)
    u, v = other.flow.solver.faces()
    assert u == pytest.approx(np.broadcast_to(1 + grid.centres(1)[:, None], u.shape), abs=1e-12)
    assert np.abs(v).max() < 1e-12
    again = build(channel(start, *walls, name="again.toml"))
    assert again.flow.solver.faces()[0] == pytest.approx(runner.flow.solver.faces()[0], abs=1e-12)
    longer = ("x = [0.0, 2.0]", "x = [0.0, 3.0]")
    with pytest.raises(CaseError, match=r'initial.file: .*h5: does not cover .*, in \[2.* outside = "nearest"'):
        build(channel(start, *walls, longer, name="longer.toml"))
    near = build(channel((linear[0], start[1] + 'outside = "nearest"\n'), *walls, longer, name="near.toml"))
    found = near.flow.solver.faces()[0]
    assert found == pytest.approx(np.broadcast_to(found[:, :1], found.shape), abs=0.05)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nx = 12", "nx = 12\nstrech_y = 1.0", r"channel.toml:\d+: mesh.strech_y: .*did you mean 'stretch_y'"),
        ("nx = 12", "nx = 12\nstretch_y = 1.0\nstretch_x = 1.0", "give only one of stretch_x and stretch_y"),
        ("nx = 12", 'nx = 12\nperiodic = [["xmin", "ymax"]]', "are no opposite sides"),
        ("nx = 12", 'nx = 12\nstretch_x = 1.0\nperiodic = [["xmin", "xmax"]]', "a periodic direction has equal cells"),
        ("nx = 12", "nx = 12\nz = [0.0, 2.0]", "z is there but nz is not"),
        ("nx = 12", "nx = 1", "greater than or equal to 2|at least 2"),
        ("viscosity = 0.1", "viscosity = 0.1\nmean_velocity = [1.0, 1.0]", "one component differs from zero"),
        ("dt = 0.01", "dt = 0.01\ncourant = 0.5", "give only one of dt and courant"),
        ("dt = 0.01", 'dt = 0.01\nprojection = "step"', "time: projection is called scheme.projection now"),
        ("dt = 0.01", 'dt = 0.01\nscheme = "rungekutta"', "did you mean 'runge-kutta'"),
        ('profile = "y"', 'profile = "z"', 'profile = "z" needs mesh.nz'),
        ("threads = 1", "threads = 1\nfused = false", "run.fused: this solver chooses"),
        ("threads = 1", 'threads = 1\n[partition]\nmethod = "rcb"', "partition.method: this solver runs on one rank"),
        ("[initial]\n", '[initial]\nfile = "a.npz"\n', "give only one of file and velocity_x"),
    ],
)
def test_wrong_tables(channel: Write, old: str, new: str, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        load_case(channel((old, new)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (YMAX, "", "boundary: the side 'ymax' has none; give it one, or make its axis periodic"),
        ("[boundary.ymax]", "[boundary.ymx]", "no side 'ymx'; did you mean 'ymax'"),
        (XMAX, '[boundary.xmax]\ntype = "wall"\n', "more in, and no side is an outflow"),
        (YMAX, YMAX + "velocity = [0.0, 1.0]\n", "ymax: a wall slides along itself"),
        ("[forces.ymin]", "[forces.ymini]", "forces.ymini: forces: there is no side 'ymini'; did you mean 'ymin'"),
        ("viscosity = 0.1", "viscosity = 0.1\nforce = [1.0]", "fluid.force"),
        (
            "viscosity = 0.1",
            "viscosity = 0.1\nmean_velocity = [1.0, 0.0]",
            "fluid, pressure: mean_velocity: .* periodic",
        ),
        ("[time]", '[pressure]\nlibrary = "fastest"\n[time]', "fluid, pressure: library 'fastest' does not transform"),
    ],
)
def test_wrong_cases(channel: Write, old: str, new: str, message: str) -> None:
    case, application = load_case(channel((old, new)))
    with pytest.raises(CaseError, match=message):
        application.build(case, Context("cpu", threads=1))
