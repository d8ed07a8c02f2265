"""The case of flow on edges: its tables, what wrong ones are answered with, and what a run leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.cases.files.loading import applications, load_case
from fluxloom.cli.main import main
from fluxloom.cli.runs.startup import tune_at_start
from fluxloom.comm import run_threads
from fluxloom.comm.base import Comm
from fluxloom.core.errors import CaseError, FluxloomError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.flows.edges.flow import EdgeFlow
from fluxloom.mesh.io import read_fields
from fluxloom.run import session
from fluxloom.run.flow_run import FlowRun, gathered
from fluxloom.run.march import march
from fluxloom.run.results import results as folder_module
from fluxloom.run.results.files import ResidualLog
from fluxloom.run.results.results import ResultFolder
from tests.unit.cases.flow_cases import CHANNEL, INITIAL, XMAX, XMIN, YMAX, Change, Write, advanced, built, writer

CASE = f"""
[case]
name = "channel"
solver = "edge_flow"

[mesh]
x = [0.0, 2.0]
nx = 12
ny = 6
kind = "triangle"
perturb = 0.2
{CHANNEL}
[pressure]
rtol = 1e-8

[time]
dt = 0.01

[forces.ymin]
[forces.both]
patches = ["ymin", "ymax"]
speed = 1.0
area = 2.0

[probes]
every = 2
points.middle = [0.9, 0.52]
points.corner = [2.0, 1.0]

[history]
every = 2

[run]
iterations = 4
threads = 1
"""
SMALL = (("nx = 12", "nx = 4"), ("ny = 6", "ny = 3"))
BOX = (
    ("perturb = 0.2", 'nz = 3\nkind = "tetra"'), ('kind = "triangle"\n', ""), *SMALL,
    (YMAX, YMAX + '[boundary.zmin]\ntype = "symmetry"\n[boundary.zmax]\ntype = "symmetry"\n'),
    ("[0.9, 0.52]", "[0.9, 0.52, 0.4]"), ("[2.0, 1.0]", "[2.0, 1.0, 0.0]"),
)  # fmt: skip


@pytest.fixture
def channel(tmp_path: Path) -> Write:
    """Return a function that writes the case with some texts replaced."""
    return writer(CASE, tmp_path / "channel.toml")


def build(path: Path, device: str = "cpu", comm: Comm | None = None) -> FlowRun[EdgeFlow]:
    return built(EdgeFlow, path, device, comm)


def test_channel(channel: Write) -> None:
    """Poiseuille flow: the pressure falls by ``8 nu`` a length, and friction takes what it pushes."""
    assert "edge_flow" in applications().names()
    runner = build(channel(("dt = 0.01", "dt = 0.02"), ("perturb = 0.2", "perturb = 0.0")))
    assert runner.flow.points
    assert np.isnan(runner.residual())
    first = advanced(runner, 1).residual()
    assert advanced(runner, 150).residual() < 1e-2 * first
    fields, points = runner.fields(), runner.mesh().points
    assert set(fields) == {"u", "v", "p", "speed", "vorticity"}
    assert all(values.shape == (runner.flow.points,) for values in fields.values())
    low, high = (np.abs(points - [x, 0.5]).sum(axis=1).argmin() for x in (0.5, 1.5))
    assert fields["p"][low] - fields["p"][high] == pytest.approx(0.8, rel=0.02)
    assert fields["vorticity"][low] == pytest.approx(0.0, abs=0.05)
    force = runner.flow.solver.force("ymin", "ymax")
    assert force[0] == pytest.approx(1.6, rel=0.03)
    summary = dict(runner.summary())
    assert list(summary) == ["time", "steps", "kinetic energy", "imbalance", "pressure", "residual", "split", "copies",
                             "ymin", "both"]  # fmt: skip
    assert summary["split"].startswith("momentum ")
    assert float(summary["both"].split()[1].rstrip(",")) == pytest.approx(force[0], rel=1e-6)


def test_residual_is_that_of_its_definition(channel: Write) -> None:
    runner = advanced(build(channel()), 2)
    before, mass = runner.flow.solver.velocity(), runner.flow.solver.operators.mass.read()
    runner.advance()
    rate = (runner.flow.solver.velocity() - before) / 0.01
    assert runner.residual() == pytest.approx(np.sqrt(((rate**2).sum(axis=1) @ mass) / mass.sum()), rel=1e-9)


def test_steps_chosen(channel: Write) -> None:
    """Without dt each step is the largest stable one, or the last ones are equal and hit the end."""
    runner = build(
        channel(("dt = 0.01", "courant = 0.5\nend = 0.21"), ("viscosity = 0.1", 'viscosity = "0.1 + 0 * t"'))
    )
    limit = runner.flow.solver.stable_step(0.5)
    runner.advance()
    assert 0.9 * limit < runner.flow.solver.dt <= limit
    assert runner.flow.solver.dt == pytest.approx(0.21 / 12)
    while not runner.finished:
        runner.advance()
    assert runner.flow.solver.time == pytest.approx(0.21, rel=1e-12)


def test_devices(channel: Write) -> None:
    """The reference device finds what the CPU does; a wall law, eddies and full stress included."""
    law = (YMAX, '[boundary.ymax]\ntype = "wall_law"\ndistance = 0.05\nkappa = 0.4\nconstant = 5.2\n')
    more = ("[run]", '[les]\nmodel = "smagorinsky"\n[scheme]\nstress = "full"\nconvection = "advective"\n[run]')
    small = (*SMALL, ("viscosity = 0.1", "viscosity = 1e-3\nforce = [0.1, 0]"))
    path = channel(law, more, *small)
    found = [advanced(build(path, device), 2).fields() for device in ("cpu", "reference")]
    assert set(found[0]) >= {"nu_t"}
    assert found[0]["nu_t"].max() > 0
    for name, values in found[0].items():
        assert values == pytest.approx(found[1][name], rel=1e-6, abs=1e-8), name


def test_command_line(channel: Write, fluxloom: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    """Files, values of points among them; pictures are drawn anew; a lost solution is one message."""
    out = tmp_path / "out"
    done = fluxloom("run", channel(("[history]\nevery = 2", "[history]\nevery = 1")), "--output", out)
    assert done.code == 0
    record = json.loads((out / "run.json").read_text())
    assert record["results"]["steps"] == "4"
    files = {"residual.csv", "speed.png", "p.png", "vorticity.png", "history.csv", "probes.csv", "history.png"}
    assert files <= set(record["files"])
    written = read_fields(next(out.glob("final.*")))
    assert not written.cell_data
    assert {"u", "v", "p", "speed", "vorticity"} <= set(written.point_data)
    x, y = written.mesh.points.T
    rim = x == 0.0
    assert np.asarray(written.point_data["u"])[rim] == pytest.approx((4 * y * (1 - y))[rim], abs=1e-12)
    history = np.genfromtxt(out / "history.csv", delimiter=",", names=True)
    assert history["time"] == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    assert np.isnan(history["bothdrag"][0])
    assert (history["bothdrag"][1:] > 0).all()
    assert fluxloom("plot", out, "--field", "u").code == 0
    lost = fluxloom("run", channel(("dt = 0.01", "dt = 1e4")), "-n", 60, "--output", tmp_path / "lost")
    text = " ".join(lost.err.split())
    assert lost.code == 1
    assert "u is not finite in point" in text
    assert " at (" in text
    assert "time.dt (now 10000)" in text
    assert next((tmp_path / "lost").glob("diverged.*")).exists()
    assert "Traceback" not in done.text + lost.text


def test_probes(channel: Write, tmp_path: Path) -> None:
    """At a corner of the mesh the values of the point; between points linear ones."""
    runner = build(channel(("[2.0, 1.0]", "[2.0, 0.5]")))
    runner.begin(ResultFolder(tmp_path))
    advanced(runner, 4)
    runner.finish(pictures=False)
    series = np.genfromtxt(tmp_path / "probes.csv", delimiter=",", names=True)
    assert series["time"] == pytest.approx([0.02, 0.04])
    fields, mesh = runner.fields(), runner.mesh()
    k = np.abs(mesh.points - [2.0, 0.5]).sum(axis=1).argmin()
    assert series["corneru"][-1] == pytest.approx(fields["u"][k], rel=1e-8)
    triangles = mesh.cells["triangle"]
    a, b, c = (mesh.points[triangles[:, j]] for j in range(3))
    ways = np.stack([b - a, c - a], axis=2)
    s, t = np.linalg.solve(ways, (np.array([0.9, 0.52]) - a)[:, :, None])[:, :, 0].T
    inside = int(np.flatnonzero((s >= 0) & (t >= 0) & (s + t <= 1))[0])
    weight = np.array([1 - s[inside] - t[inside], s[inside], t[inside]])
    for name in ("u", "v", "p"):
        assert series[f"middle{name}"][-1] == pytest.approx(
            weight @ fields[name][triangles[inside]], rel=1e-7, abs=1e-10
        )


def ran(path: Path, out: Path, comm: Comm | None = None, steps: int | None = None) -> dict[str, np.ndarray]:
    """Return the fields behind a run in the order of the whole mesh, or nothing behind its death."""
    runner = build(path, comm=comm)
    runner.begin(ResultFolder(out if comm is None or comm.rank == 0 else None))
    march(runner, 12 if steps is None else steps, ResidualLog(None), comm=comm)
    if steps is not None:
        return {}
    runner.finish(pictures=False)
    return gathered(runner.flow.solver.context.comm, runner.flow.part, runner.fields())


def _made(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("changes", [(), pytest.param(BOX, marks=pytest.mark.long)])
def test_ranks(channel: Write, tmp_path: Path, changes: tuple[Change, ...]) -> None:
    """On two ranks what one finds, to the tolerance of the pressure; forces, probes and the history too."""
    path = channel(*changes, ("rtol = 1e-8", "rtol = 1e-12"))
    one, two = _made(tmp_path / "one"), _made(tmp_path / "two")
    wanted = ran(path, one)
    found = run_threads(2, lambda comm: ran(path, two, comm))[0]
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, atol=1e-9, err_msg=name)
    for name in ("history.csv", "probes.csv"):
        here, there = (np.genfromtxt(out / name, delimiter=",", skip_header=1) for out in (one, two))
        columns = [k for k in range(here.shape[1]) if name != "history.csv" or k not in (3, 4)]
        np.testing.assert_allclose(there[:, columns], here[:, columns], rtol=1e-7, atol=1e-8, equal_nan=True)


def test_box(channel: Write, fluxloom: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    """In three dimensions: a third component and sections through the middle."""
    path = channel(*BOX)
    case, application = load_case(path)
    assert application.estimate(case).cells == 4 * 3 * 3 * 6
    done = fluxloom("run", path, "--output", tmp_path / "out")
    assert done.code == 0
    assert (tmp_path / "out" / "section_y.png").exists()
    written = read_fields(next((tmp_path / "out").glob("final.*")))
    assert "w" in written.point_data
    assert len(np.asarray(written.point_data["w"])) == 5 * 4 * 4


def test_tuned_at_the_start(channel: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ragged loop and every sum is measured once, the winners are kept, and the values stay as they are."""
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))
    case, application = load_case(
        channel(("nx = 12", "nx = 4"), ("ny = 6", "ny = 3"), ("[run]", '[run]\ntune = "startup"'))
    )
    assert case.run.tune == "startup"

    def made() -> FlowRun[EdgeFlow]:
        runner = application.build(case, Context("cpu", threads=1))
        assert isinstance(runner.flow, EdgeFlow)
        return advanced(runner, 1)

    runner = made()
    before = {name: values.copy() for name, values in runner.fields().items()}
    rows = tune_at_start(runner.flow, "edge_flow")
    names = [row.name for row in rows]
    assert {"edges.convection", "edges.stage", "edges.fill", "edges.continuity", "edges.correct", "pressure.norms",
            "neighbours.product_dot"} <= set(names)  # fmt: skip
    assert all(row.seconds is not None and row.tried >= 1 for row in rows)
    for name, values in runner.fields().items():
        np.testing.assert_array_equal(values, before[name], err_msg=name)
    recorded = json.loads((tmp_path / "tuning.json").read_text())
    assert {row.key for row in rows} == set(recorded)
    other = made()
    again = tune_at_start(other.flow, "edge_flow")
    assert all(row.seconds is None for row in again)
    assert {row.key for row in again} == set(recorded)
    steps = [advanced(each, 2).fields()["u"] for each in (runner, other)]
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-9, atol=1e-12)


def test_tuning_refused(channel: Write) -> None:
    runner = build(channel(("nx = 12", "nx = 3"), ("ny = 6", "ny = 2")), "reference")
    with pytest.raises(CaseError, match=r"run\.tune: the device reference runs kernels as Python"):
        tune_at_start(runner.flow, "edge_flow")


def test_pressure_that_does_not_converge(channel: Write) -> None:
    runner = build(channel(("rtol = 1e-8", "rtol = 1e-8\niterations = 400")))
    runner.flow.solver.stop = type(runner.flow.solver.stop)(rtol=1e-8, iterations=1)
    runner.flow.solver.prepare(0.01)
    with pytest.raises(SolverError, match=r"step 1: the pressure has not converged, .* raise pressure.iterations"):
        runner.advance()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("viscosity = 0.1", "viscosity = -0.1", "fluid.viscosity"),
        ("viscosity = 0.1", 'viscosity = "0.1 * q"', "fluid.viscosity"),
        ("viscosity = 0.1", "viscosity = 0.1\nmean_velocity = [1, 0]", "fluid.mean_velocity: [fluid] has no key"),
        ("rtol = 1e-8", "rtol = 2", "pressure.rtol: must be less than 1, got 2"),
        ("rtol = 1e-8", 'preconditioner = "jacobian"', "pressure.preconditioner: unknown preconditioner 'jacobian'"),
        ("rtol = 1e-8", 'solver = "fourier"', "pressure.solver: unknown value \"fourier\" (allowed: cg, bicgstab)"),
        ("dt = 0.01", "dt = -1", "time.dt: must be at least 0, got -1"),
        ("dt = 0.01", "courant = 3", "time.courant: must be at most 2, got 3"),
        ("dt = 0.01", "dt = 0.01\ncourant = 0.5", "time: give only one of dt and courant"),
        ("dt = 0.01", "dt = 0.01\nsteady = -1", "time.steady: must be at least 0"),
        ("dt = 0.01", "dt = 0.01\nend = -1", "time.end: must be at least 0"),
        ('"outflow"', '"outlow"', "boundary.xmax.type: unknown value \"outlow\"; did you mean 'outflow'"),
        ('"outflow"', '"wall_law"', 'boundary.xmax: type = "wall_law" needs distance'),
        ('"outflow"', '"outflow"\ndistance = 0.1', 'boundary.xmax: type = "outflow" has no distance'),
        ('"outflow"', '"outflow"\nkappa = 0.4', 'boundary.xmax: type = "outflow" has no kappa'),
        ('"outflow"', '"wall_law"\ndistance = 0.1\nconstant = 0', "boundary.xmax.constant: must be greater than 0"),
        ('"outflow"', '"wall_law"\ndistance = 0.1\nvelocity = [1, 0]', 'boundary.xmax: type = "wall_law" has no veloc'),
        ("[run]", '[scheme]\nconvection = "upwind"\n[run]', "scheme.convection: unknown form of convection 'upwind'"),
        ("[run]", "[scheme]\nviscous = -1\n[run]", "scheme.viscous: a number of at least 0 is wanted, not -1"),
        ("[run]", '[les]\nmodel = "whale"\n[run]', "les.model"),
        ("speed = 1.0\n", "", "forces.both: give both of speed and area, above 0, or neither"),
        ("speed = 1.0\n", 'speed = 1.0\nform = "surface"\n', "forces.both.form: "),
        ("nx = 12", 'periodic = [["ymin", "ymax"]]', "mesh.periodic: flow on edges joins no patches"),
        ("iterations = 4", 'iterations = 4\ntune = "always"', "run.tune: unknown value \"always\""),
        ("iterations = 4", 'iterations = 4\nschedule = "serial"', "run.schedule: this solver chooses"),
        ("[run]", '[partition]\nshares = "measured"\n[run]', "partition.shares: flow on edges measures no shares"),
    ],
)  # fmt: skip
def test_mistakes_of_the_file(channel: Write, old: str, new: str, expected: str) -> None:
    with pytest.raises(CaseError) as caught:
        load_case(channel((old, new)))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("change", "line", "expected"),
    [
        (("[boundary.ymax]", "[boundary.ymx]"), "[boundary", "boundary: the mesh has no patch 'ymx'"),
        (("viscosity = 0.1", 'viscosity = "log(x - 1)"'), "viscosity", "fluid.viscosity: 'log(x - 1)' is nan"),
        (("[2.0, 1.0]", "[2.5, 1.0]"), "[probes]", "probes: probe 'corner'"),
    ],
)  # fmt: skip
def test_mistakes_found_when_building_have_a_line(
    channel: Write, change: Change, line: str, expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = channel(change)
    number = next(k for k, text in enumerate(path.read_text().splitlines(), 1) if text.startswith(line))
    assert main(["run", str(path), "-o", str(tmp_path / "out")]) == 2
    assert f"error: {path}:{number}: {expected}" in "".join(capsys.readouterr().err.split("\n"))
    assert not (tmp_path / "out" / "run.json").exists()


@pytest.mark.parametrize(
    ("value", "expected"),
    [("-0.01", "must be at least 0, got -0.01"), ("nan", "must be a finite number, got nan"),
     ('"log("', "'log(' is not an expression"), ("[1]", "must be a number, a formula in quotes or a table")],
)  # fmt: skip
def test_one_line_for_what_is_a_number_or_a_formula(channel: Write, value: str, expected: str) -> None:
    with pytest.raises(CaseError) as caught:
        load_case(channel(("viscosity = 0.1", f"viscosity = {value}")))
    assert f": fluid.viscosity: {expected}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_results_that_cannot_be_written_are_all_named(
    channel: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the last record is one of them."""

    def full(path: Path, *_: object, **__: object) -> None:
        raise FluxloomError(f"{path}: cannot be written: the disk is full")

    written = folder_module.write_json
    monkeypatch.setattr(session, "write_fields", full)
    end = lambda path, record: full(path) if record["status"] != "running" else written(path, record)  # noqa: E731
    monkeypatch.setattr(folder_module, "write_json", end)
    out = tmp_path / "out"
    assert main(["run", str(channel(*SMALL)), "-o", str(out), "--no-picture"]) == 3
    told = "".join(capsys.readouterr().err.split("\n"))
    assert "output lost: final.vtkhdf: the disk is full" in told
    assert "output lost: run.json: the disk is full" in told



@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((("[boundary.ymax]", "[boundary.ymx]"),), "boundary: the mesh has no patch 'ymx'; did you mean 'ymax'?"),
        (((XMAX, ""),), "boundary: the patch 'xmax' has none; add a table [boundary.xmax] with a type (wall, inflow, "
         "outflow, symmetry or wall_law)"),
        ((('kind = "triangle"\n', ""), ("perturb = 0.2\n", "")), "mesh: <box2d>: triangle cells alone are taken"),
        ((("viscosity = 0.1", "viscosity = 0.1\nforce = [1]"),), "fluid.force: 2 numbers are wanted, as the mesh has"),
        ((("viscosity = 0.1", 'viscosity = "x - 1"'),), "fluid.viscosity: 'x - 1' is -1 at (0, 0); at least 0 is"),
        (((INITIAL, '[initial]\nvelocity_z = "1"\n'),), "initial.velocity_z: the mesh has 2 dimensions; leave it out"),
        (((YMAX, YMAX + "velocity = [0, 1]\n"),), "boundary.ymax.velocity: a wall slides along itself"),
        (((YMAX, YMAX + "velocity = [1]\n"),), "boundary.ymax.velocity: 2 numbers are wanted"),
        (((XMAX, '[boundary.xmax]\ntype = "wall"\n'),), "boundary: the given velocities let "),
        (((INITIAL, ""), ("dt = 0.01", "dt = 0"), ("viscosity = 0.1", "viscosity = 0"),
          (XMIN, '[boundary.xmin]\ntype = "wall"\n')), "time.dt: a fluid at rest without viscosity"),
        ((("rtol = 1e-8", "iterations = 1"), (INITIAL, '[initial]\nvelocity_y = "sin(9 * x)"\n')),
         "pressure.iterations: 1 do not suffice to make the initial velocity free of divergence"),
        (((", \"ymax\"]", ", \"ymx\"]"),), "forces.both: "),
        ((("speed = 1.0", "speed = 1.0\ndrag = [1, 0, 0]"),), "forces.both: forces: reference: drag"),
        ((("[2.0, 1.0]", "[2.5, 1.0]"),), "probes: probe 'corner' at (2.5, 1.0) is not in the mesh"),
    ],
)  # fmt: skip
def test_mistakes_found_when_building(channel: Write, changes: tuple[Change, ...], expected: str) -> None:
    with pytest.raises(FluxloomError) as caught:
        build(channel(*changes))
    assert expected in str(caught.value)


def test_snapshots(channel: Write, tmp_path: Path) -> None:
    """Fields at points now and then, with their times, in a solver that has no files of its own."""
    path = channel(("dt = 0.01", "dt = 0.02"))
    path.write_text(path.read_text() + "\n[snapshots]\nevery = 2\n")
    runner = build(path)
    runner.begin(ResultFolder(tmp_path))
    advanced(runner, 5)
    assert sorted(tmp_path.glob("snapshot_*.vtk*")) == [tmp_path / f"snapshot_00000{k}.vtkhdf" for k in (2, 4)]
    again = build(channel(("dt = 0.01", "dt = 0.02"), name="again.toml"))
    wanted = advanced(again, 4).fields()
    found = read_fields(tmp_path / "snapshot_000004.vtkhdf").point_data
    assert set(found) == set(wanted)
    np.testing.assert_array_equal(found["u"], wanted["u"])
    times = json.loads((tmp_path / "snapshot.vtkhdf.series").read_text())["files"]
    assert [one["time"] for one in times] == pytest.approx([0.04, 0.08])
