"""What a case of incompressible flow may have beside the flow: an end, noise, forces, probes, averages, scalars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.cases.files.loading import load_case
from fluxloom.core.errors import CaseError
from fluxloom.dsl.context import Context
from fluxloom.flows.incompressible.flow import Incompressible
from fluxloom.fv.place_noise import place_noise
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.march import march
from fluxloom.run.results.files import ResidualLog
from fluxloom.run.results.results import ResultFolder

BASE = """
[case]
name = "test"
solver = "incompressible"

[mesh]
nx = 8
ny = 6
{mesh}

[fluid]
viscosity = 0.1
{fluid}

{more}
[boundary.ymin]
type = "wall"
[boundary.ymax]
type = "wall"
{boundary}

[pressure]
preconditioner = "jacobi"

[time]
{time}

[run]
iterations = 500
threads = 1
"""
SIDES = '[boundary.xmin]\ntype = "wall"\n[boundary.xmax]\ntype = "wall"\n'
PERIODIC = {"mesh": 'periodic = [["xmin", "xmax"]]', "boundary": ""}


def case(tmp_path: Path, **parts: str) -> Path:
    """Return a case file; walls all around unless said otherwise."""
    given = {"mesh": "", "fluid": "", "more": "", "boundary": SIDES, "time": "dt = 0.01"} | parts
    path = tmp_path / "test.toml"
    path.write_text(BASE.format(**given), encoding="utf-8")
    return path


def build(path: Path) -> FlowRun[Incompressible]:
    model, application = load_case(path)
    runner = application.build(model, Context("cpu", threads=1, tuning=False))
    assert isinstance(runner.flow, Incompressible)
    return runner


def run(tmp_path: Path, **parts: str) -> tuple[FlowRun[Incompressible], Path]:
    """Return a runner after its run, and where its files are."""
    runner, out = build(case(tmp_path, **parts)), tmp_path / "out"
    out.mkdir()
    runner.begin(ResultFolder(out))
    end = march(runner, 500, ResidualLog(None))
    assert end.status in ("converged", "end reached")
    runner.finish(pictures=False)
    return runner, out


def table(path: Path) -> dict[str, np.ndarray]:
    """Return the columns of a file of numbers with a heading."""
    names = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    return dict(zip(names, np.atleast_2d(np.genfromtxt(path, delimiter=",", skip_header=1)).T, strict=True))


@pytest.mark.parametrize(("time", "steps"), [("dt = 0.01\nend = 0.05", 5), ("dt = 0.01\nend = 0.043", 5)])
def test_end(tmp_path: Path, time: str, steps: int) -> None:
    """The run ends at the time; the last two steps share what is left."""
    runner, out = run(tmp_path, time=time, fluid="force = [1.0, 0.0]", more="[history]\nevery = 1")
    found = table(out / "history.csv")
    assert found["time"][-1] == pytest.approx(runner.until.time, rel=1e-12)
    assert runner.flow.solver.steps == steps
    gaps = np.diff(found["time"])
    assert gaps[:3] == pytest.approx([0.01] * 3)
    assert gaps[-1] == pytest.approx(gaps[-2])


def test_steady(tmp_path: Path) -> None:
    """Poiseuille's flow under a force: the run ends when it no longer changes."""
    runner, _ = run(tmp_path, **PERIODIC, fluid="force = [1.0, 0.0]", time="dt = 0.02\nsteady = 1e-3")
    assert runner.finished
    assert 20 < runner.flow.solver.steps < 500
    assert runner.fields()["u"].max() == pytest.approx(1.25, rel=0.05)


def test_history_and_energy(tmp_path: Path) -> None:
    """Under a steady force friction takes what the force gives, ``f U`` a volume; decay is a difference of energies."""
    runner, out = run(
        tmp_path, **PERIODIC, fluid="force = [1.0, 0.0]", time="dt = 0.02\nend = 8.0", more="[history]\nevery = 3"
    )
    found = table(out / "history.csv")
    assert len(found["time"]) == 1 + 400 // 3 + 1
    mean = runner.flow.solver.state().momentum[0]
    assert found["dissipation"][-1] == pytest.approx(mean, rel=1e-3)
    expected = -np.diff(found["kinetic_energy"]) / np.diff(found["time"])
    assert found["decay"][1:] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_mean_velocity(tmp_path: Path) -> None:
    """The force keeps the mean velocity, and ends as that of Poiseuille's flow: ``12 nu U / (1 + 2 h^2)``."""
    runner, out = run(
        tmp_path,
        **PERIODIC,
        fluid="mean_velocity = [0.5, 0.0]",
        time="dt = 0.02\nend = 6.0",
        more="[history]\nevery = 1",
    )
    assert runner.flow.solver.state().momentum == pytest.approx([0.5, 0.0], abs=1e-12)
    assert table(out / "history.csv")["force_x"][-1] == pytest.approx(0.6 / (1 + 2 / 36), rel=1e-5)
    assert "force" in dict(runner.summary())


def test_noise() -> None:
    """Of the size that is given, without a mean, different in place, component and seed, and the same every time."""
    places = np.random.default_rng(0).normal(size=(4000, 2))
    first = place_noise(places, 2, seed=3)
    assert np.abs(first).max() < 1.0
    assert np.abs(first.mean(axis=0)).max() < 0.05
    assert first.var(axis=0) == pytest.approx(1 / 3, rel=0.06)
    assert abs(np.corrcoef(first.T)[0, 1]) < 0.06
    assert np.array_equal(place_noise(places[100:200], 2, seed=3), first[100:200])
    assert abs(np.corrcoef(first[:, 0], place_noise(places, 2, seed=4)[:, 0])[0, 1]) < 0.06


def test_noise_of_a_case(tmp_path: Path) -> None:
    still = build(case(tmp_path)).flow.solver.state().kinetic_energy
    runner = build(case(tmp_path, more="[initial]\nnoise = 0.2\nseed = 5"))
    assert still == 0.0
    assert 0.0 < np.abs(runner.fields()["u"]).max() < 0.4
    assert runner.flow.solver.state().imbalance < 1e-6


def test_forces_probes_and_averages(tmp_path: Path) -> None:
    """Poiseuille's flow: both walls hold what the force gives; the profile is what the cells have."""
    more = """
[forces.walls]
patches = ["ymin", "ymax"]
[forces.ymin]
speed = 2.0
area = 0.5
[probes]
every = 2
points.middle = [0.5, 0.5]
[statistics]
every = 1
start = 7.5
profile = "y"
"""
    runner, out = run(tmp_path, **PERIODIC, fluid="force = [1.0, 0.0]", time="dt = 0.02\nend = 8.0", more=more)
    found = table(out / "history.csv")
    assert found["walls.force_x"][-1] == pytest.approx(1.0, rel=1e-3)
    assert found["ymin.drag"][-1] == pytest.approx(0.5, rel=1e-3)
    probes = table(out / "probes.csv")
    assert list(probes) == ["time", "middle.u", "middle.v", "middle.p"]
    assert len(probes["time"]) == runner.flow.solver.steps // 2
    profile = table(out / "profile.csv")
    assert profile["y"] == pytest.approx((np.arange(6) + 0.5) / 6)
    assert profile["u"] == pytest.approx(runner.fields()["u"].reshape(6, 8).mean(axis=1), rel=1e-3)
    assert runner.fields()["u_mean"].reshape(6, 8)[:, 0] == pytest.approx(profile["u"])
    assert {"walls", "ymin", "averages"} < set(dict(runner.summary()))


SCALAR = """
[scalar.heat]
diffusivity = 0.1
{extra}
[scalar.heat.boundary.xmin]
type = "value"
value = "1 + 0 * y"
[scalar.heat.boundary.xmax]
type = "flux"
value = "-0.1"
[scalar.heat.boundary.ymin]
type = "adiabatic"
[scalar.heat.boundary.ymax]
type = "symmetry"
"""


def test_scalar(tmp_path: Path) -> None:
    """At rest: it goes to a straight line between a given value and a given flux."""
    runner, out = run(tmp_path, more=SCALAR.format(extra='initial = "1 - 0.98 * x"'), time="dt = 0.02\nend = 9.9")
    centres = (np.arange(8) + 0.5) / 8
    assert runner.fields()["heat"].reshape(6, 8)[2] == pytest.approx(1.0 - centres, abs=2e-3)
    found = table(out / "history.csv")
    assert found["heat.flux_xmin"][-1] == pytest.approx(-0.1, rel=0.02)
    assert found["heat.flux_xmax"][-1] == pytest.approx(0.1)
    assert found["heat.total"][-1] == pytest.approx(0.5, rel=0.02)


def test_buoyancy(tmp_path: Path) -> None:
    """Warm fluid rises beside the warm wall."""
    runner = build(
        case(tmp_path, fluid="gravity = [0.0, -10.0]", more=SCALAR.format(extra="expansion = 1.0\nreference = 0.5"))
    )
    for _ in range(50):
        runner.advance()
    assert runner.fields()["v"].reshape(6, 8)[3, 0] > 0.01


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"fluid": "force = [1.0, 0.0]\nmean_velocity = [1.0, 0.0]"}, "give only one of force and mean_velocity"),
        ({"fluid": "mean_velocity = [0.0, 0.0]"}, "fluid: mean_velocity is zero in all directions"),
        ({"time": "dt = 0.1\ncourant = 0.3"}, "time: give only one of dt and courant"),
        ({"mesh": "n = 8"}, 'mesh: n is none of shape = "box"'),
        ({"mesh": 'shape = "cylinder"'}, 'mesh: nx is none of shape = "cylinder"'),
        ({"mesh": "stretch_z = 2.0"}, "stretch_z is there but nz is not"),
        ({"mesh": "stretch_y = -1.0"}, "mesh.stretch_y"),
        ({"fluid": "gravity = [0.0, -1.0]"}, "fluid.gravity is there but no scalar has an expansion"),
        ({"more": SCALAR.format(extra="expansion = 1.0")}, "scalar.heat.expansion is there but fluid.gravity is not"),
        ({"more": SCALAR.format(extra="reference = 1.0")}, "reference is there but expansion is not"),
        ({"more": SCALAR.format(extra="").replace("heat", "p")}, "a scalar cannot be called 'p'"),
        ({"more": SCALAR.format(extra="").replace('"-0.1"', '""')}, "give value, a formula in quotes"),
        ({"more": "[forces.ymin]\nspeed = 1.0"}, "forces.ymin: give both of speed and area"),
        ({"more": "[forces.ymin]\nlift = [0.0, 1.0]"}, "lift is there but speed and area are not"),
        ({"more": "[statistics]\nprofile = \"y\""}, "profile is there but every is not"),
        ({"more": "[statistics]\nevery = 1\nbins = 3"}, "bins is there but profile is not"),
        ({"more": '[probes.points]\n"a.b" = [0.0, 1.0]'}, "a probe cannot be called 'a.b'"),
    ],
)  # fmt: skip
def test_mistakes_of_the_file(tmp_path: Path, parts: dict[str, str], expected: str) -> None:
    with pytest.raises(CaseError) as caught:
        load_case(case(tmp_path, **parts))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"fluid": "mean_velocity = [1.0]"}, "fluid.mean_velocity: 2 numbers are wanted"),
        ({"more": "[forces.lid]"}, "lid"),
        ({"more": "[probes]\npoints.out = [2.0, 0.5]"}, "probe 'out' at (2.0, 0.5) is not in the mesh"),
        ({"more": SCALAR.format(extra="").replace("boundary.xmin", "boundary.xmni")}, "no patch 'xmni'; did you mean"),
        ({"more": SCALAR.format(extra="source = \"z\"")}, "scalar.heat.source"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_mesh(tmp_path: Path, parts: dict[str, str], expected: str) -> None:
    with pytest.raises(CaseError) as caught:
        build(case(tmp_path, **parts))
    assert expected in str(caught.value)
