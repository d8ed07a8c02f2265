"""The case of transport on edges: its tables, what wrong ones are answered with, and what a run leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.cases.files.loading import applications, load_case
from fluxloom.cli.runs.startup import tune_at_start
from fluxloom.comm import run_threads
from fluxloom.comm.base import Comm
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.dsl.context import Context
from fluxloom.fe.edges.point_mesh import point_mesh
from fluxloom.flows.edges.transport import Transport
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.mesh.io import read_fields
from fluxloom.run.flow_run import FlowRun, gathered
from fluxloom.run.march import march
from fluxloom.run.results.files import ResidualLog
from fluxloom.run.results.results import ResultFolder
from fluxloom.solvers.edges.scheme import Advective, EdgeScheme
from fluxloom.solvers.edges.transport import EdgeTransport
from tests.unit.cases.flow_cases import Change, Write, advanced, built, writer

CASE = """
[case]
name = "plume"
solver = "edge_transport"

[mesh]
nx = 10
ny = 8
kind = "triangle"
perturb = 0.2

[transport]
velocity = [1.0, 0.25]
diffusivity = "0.01 * (1 + x)"
source = "y"

[initial]
scalar = "exp(-20 * ((x - 0.3)**2 + (y - 0.4)**2))"

[boundary.xmin]
type = "given"
value = "sin(pi * y)"
[boundary.ymin]
type = "given"
value = 0.5
[boundary.xmax]
type = "free"
[boundary.ymax]
type = "free"

[time]
dt = 0.01

[scheme]
convection = "advective"
dynamic = 0.5

[probes]
every = 2
points.middle = [0.47, 0.52]
points.corner = [1.0, 1.0]

[history]
every = 2

[run]
iterations = 4
threads = 1
"""
YMAX = '[boundary.ymax]\ntype = "free"\n'
SMALL = (("nx = 10", "nx = 4"), ("ny = 8", "ny = 3"))
BOX = (
    ("perturb = 0.2", 'nz = 3\nkind = "tetra"'), ('kind = "triangle"\n', ""), *SMALL, ("0.25]", "0.25, 0.1]"),
    (YMAX, YMAX + '[boundary.zmin]\ntype = "free"\n[boundary.zmax]\ntype = "free"\n'),
    ("[0.47, 0.52]", "[0.47, 0.52, 0.4]"), ("[1.0, 1.0]", "[1.0, 1.0, 0.0]"),
)  # fmt: skip
FORMULAS = ("velocity = [1.0, 0.25]", 'velocity_x = "0.5 - y"\nvelocity_y = "x - 0.5"')


@pytest.fixture
def plume(tmp_path: Path) -> Write:
    """Return a function that writes the case with some texts replaced."""
    return writer(CASE, tmp_path / "plume.toml")


def build(path: Path, device: str = "cpu", comm: Comm | None = None) -> FlowRun[Transport]:
    return built(Transport, path, device, comm)


def test_solver_of_the_tables(plume: Write) -> None:
    """A case is the solver of its numbers and formulas, bit by bit."""
    assert "edge_transport" in applications().names()
    runner = advanced(build(plume()), 3)
    assert runner.flow.points
    mesh = point_mesh(Context("cpu", threads=1, tuning=False), box2d(10, 8, kind="triangle", perturb=0.2))
    solver = EdgeTransport(
        mesh, (1.0, 0.25), lambda p: 0.01 * (1 + p[:, 0]), {"xmin": lambda p: np.sin(np.pi * p[:, 1]), "ymin": 0.5},
        source=lambda p: p[:, 1], scheme=EdgeScheme(convection=Advective(), dynamic=0.5),
    )  # fmt: skip
    solver.initialise(lambda p: np.exp(-20 * ((p[:, 0] - 0.3) ** 2 + (p[:, 1] - 0.4) ** 2)))
    for _ in range(3):
        solver.step(0.01)
    np.testing.assert_array_equal(runner.fields()["scalar"], solver.scalar())
    state, summary = solver.state(), dict(runner.summary())
    assert list(summary) == ["time", "steps", "amount", "square", "range", "scheme", "residual"]
    assert float(summary["amount"]) == pytest.approx(state.amount, rel=1e-8)
    assert [float(word) for word in summary["range"].split(" to ")] == pytest.approx([state.least, state.most], 1e-5)


def test_residual_is_that_of_its_definition(plume: Write) -> None:
    runner = advanced(build(plume()), 2)
    before, mass = runner.flow.solver.scalar(), runner.flow.solver.operators.mass.read()
    runner.advance()
    rate = (runner.flow.solver.scalar() - before) / 0.01
    assert runner.residual() == pytest.approx(np.sqrt((rate**2 @ mass) / mass.sum()), rel=1e-9)


def test_steps_chosen(plume: Write) -> None:
    """Without dt each step is the largest stable one, or the last ones are equal and hit the end."""
    runner = build(plume(("dt = 0.01", "courant = 0.5\nend = 0.21"), FORMULAS))
    limit = runner.flow.solver.stable_step(0.5)
    runner.advance()
    assert 0.9 * limit < runner.flow.solver.dt <= limit
    assert runner.flow.solver.dt == pytest.approx(0.21 / 6)
    while not runner.finished:
        runner.advance()
    assert runner.flow.solver.time == pytest.approx(0.21, rel=1e-12)


@pytest.mark.parametrize(
    "changes", [SMALL, pytest.param((*BOX, ("0.01 * (1 + x)", "0.01 * (1 + z)")), marks=pytest.mark.long)]
)
def test_devices(plume: Write, changes: tuple[Change, ...]) -> None:
    """The reference device finds what the CPU does."""
    path = plume(*changes)
    cpu, reference = (advanced(build(path, device), 2).fields()["scalar"] for device in ("cpu", "reference"))
    np.testing.assert_allclose(cpu, reference, rtol=1e-12, atol=1e-13)


def test_command_line(plume: Write, fluxloom: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    """Files, values of points among them; a lost solution is one message."""
    out = tmp_path / "out"
    done = fluxloom("run", plume(("[history]\nevery = 2", "[history]\nevery = 1")), "--output", out)
    assert done.code == 0
    record = json.loads((out / "run.json").read_text())
    assert record["results"]["steps"] == "4"
    files = {"residual.csv", "scalar.png", "history.csv", "probes.csv", "history.png"}
    assert files <= set(record["files"])
    written = read_fields(next(out.glob("final.*")))
    assert not written.cell_data
    x, y = written.mesh.points.T
    entry = (x == 0.0) & (y > 0.0)
    assert np.asarray(written.point_data["scalar"])[entry] == pytest.approx(np.sin(np.pi * y)[entry], abs=1e-12)
    assert np.asarray(written.point_data["scalar"])[y == 0.0] == pytest.approx(0.5, abs=1e-12)
    history = np.genfromtxt(out / "history.csv", delimiter=",", names=True)
    assert history.dtype.names == ("time", "amount", "square", "least", "most")
    assert history["time"] == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    assert history["amount"][0] != history["amount"][-1]
    lost = fluxloom("run", plume(("dt = 0.01", "dt = 1e4")), "-n", 90, "--output", tmp_path / "lost")
    text = " ".join(lost.err.split())
    assert lost.code == 1
    assert "residual inf;" in text
    assert "lower time.dt (now 10000)" in text
    assert next((tmp_path / "lost").glob("diverged.*")).exists()
    assert "Traceback" not in done.text + lost.text


def test_probes(plume: Write, tmp_path: Path) -> None:
    """At a corner of the mesh the value of the point; between points a linear one."""
    runner = build(plume())
    runner.begin(ResultFolder(tmp_path))
    advanced(runner, 4)
    runner.finish(pictures=False)
    series = np.genfromtxt(tmp_path / "probes.csv", delimiter=",", names=True)
    assert series["time"] == pytest.approx([0.02, 0.04])
    scalar, mesh = runner.fields()["scalar"], runner.mesh()
    k = np.abs(mesh.points - [1.0, 1.0]).sum(axis=1).argmin()
    assert series["cornerscalar"][-1] == pytest.approx(scalar[k], rel=1e-8)
    triangles = mesh.cells["triangle"]
    a, b, c = (mesh.points[triangles[:, j]] for j in range(3))
    s, t = np.linalg.solve(np.stack([b - a, c - a], axis=2), (np.array([0.47, 0.52]) - a)[:, :, None])[:, :, 0].T
    inside = int(np.flatnonzero((s >= 0) & (t >= 0) & (s + t <= 1))[0])
    weight = np.array([1 - s[inside] - t[inside], s[inside], t[inside]])
    assert series["middlescalar"][-1] == pytest.approx(weight @ scalar[triangles[inside]], rel=1e-7)


def ran(path: Path, out: Path, comm: Comm | None = None, steps: int | None = None) -> dict[str, np.ndarray]:
    """Return the fields behind a run in the order of the whole mesh, or nothing behind its death."""
    out.mkdir(exist_ok=True)
    runner = build(path, comm=comm)
    runner.begin(ResultFolder(out if comm is None or comm.rank == 0 else None))
    march(runner, 12 if steps is None else steps, ResidualLog(None), comm=comm)
    if steps is not None:
        return {}
    runner.finish(pictures=False)
    return gathered(runner.flow.solver.context.comm, runner.flow.part, runner.fields())


@pytest.mark.parametrize("changes", [(FORMULAS,), pytest.param(BOX, marks=pytest.mark.long)])
def test_ranks(plume: Write, tmp_path: Path, changes: tuple[Change, ...]) -> None:
    """On two ranks what one finds, bit by bit; sums to rounding."""
    path = plume(*changes)
    one, two = tmp_path / "one", tmp_path / "two"
    wanted = ran(path, one)
    found = run_threads(2, lambda comm: ran(path, two, comm))[0]
    np.testing.assert_array_equal(found["scalar"], wanted["scalar"])
    for name in ("history.csv", "probes.csv"):
        here, there = (np.genfromtxt(out / name, delimiter=",", skip_header=1) for out in (one, two))
        np.testing.assert_allclose(there, here, rtol=1e-8, atol=1e-9)


@pytest.mark.long
def test_box(plume: Write, fluxloom: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    """In three dimensions: sections through the middle."""
    path = plume(*BOX)
    case, application = load_case(path)
    assert application.estimate(case).cells == 4 * 3 * 3 * 6
    assert fluxloom("run", path, "--output", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "section_y.png").exists()
    written = read_fields(next((tmp_path / "out").glob("final.*")))
    assert len(np.asarray(written.point_data["scalar"])) == 5 * 4 * 4


@pytest.mark.long
def test_tuned_at_the_start(plume: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ragged loop and every sum is measured, and the values stay as they are."""
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))
    case, application = load_case(plume(*SMALL, ("[run]", '[run]\ntune = "startup"')))
    runner = application.build(case, Context("cpu", threads=1))
    runner.advance()
    before = runner.fields()["scalar"].copy()
    rows = tune_at_start(runner.flow, "edge_transport")
    assert {"edges.prepare", "edges.projection", "edges.transport_stage", "edges.time_limit", "change"} <= {
        row.name for row in rows
    }
    np.testing.assert_array_equal(runner.fields()["scalar"], before)
    runner.advance()
    whole = advanced(build(plume(*SMALL)), 2).fields()["scalar"]
    np.testing.assert_allclose(runner.fields()["scalar"], whole, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('diffusivity = "0.01 * (1 + x)"', "diffusivity = -0.1", "transport.diffusivity"),
        ("(1 + x)", "(1 + q)", "transport.diffusivity"),
        ("velocity = [1.0, 0.25]", 'velocity = [1, 0]\nvelocity_x = "y"', "transport: give only one of velocity and v"),
        ("velocity =", "velocty =", "transport.velocty: [transport] has no key 'velocty'; did you mean 'velocity'"),
        ("[initial]\nscalar", "[initial]\nscaler", "initial.scaler: [initial] has no key 'scaler'; did you mean"),
        ('"given"\nvalue = 0.5', '"given"', 'boundary.ymin: type = "given" needs value: a number, or a formula'),
        ('"free"', '"free"\nvalue = 1.0', 'boundary.xmax: type = "free" has no value; type = "given" has'),
        ('"free"', '"fre"', "boundary.xmax.type: unknown value \"fre\"; did you mean 'free'"),
        ("dt = 0.01", "dt = 0.01\ncourant = 0.5", "time: give only one of dt and courant"),
        ('"advective"', '"upwind"', "scheme.convection: unknown form of convection 'upwind'"),
        ("dynamic = 0.5", "dynamic = -1", "scheme.dynamic: a number of at least 0 is wanted, not -1"),
        ("dynamic = 0.5", "pressure = 1.0", "scheme.pressure: [scheme] has no key 'pressure'"),
        ("nx = 10", 'periodic = [["ymin", "ymax"]]', "mesh.periodic: transport on edges joins no patches"),
        ("iterations = 4", 'iterations = 4\nschedule = "serial"', "run.schedule: this solver chooses"),
        ("[run]", '[partition]\nshares = "measured"\n[run]', "partition.shares: transport on edges measures no sh"),
    ],
)  # fmt: skip
def test_mistakes_of_the_file(plume: Write, old: str, new: str, expected: str) -> None:
    with pytest.raises(CaseError) as caught:
        load_case(plume((old, new)))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((("[boundary.ymax]", "[boundary.ymx]"),), "boundary: the mesh has no patch 'ymx'; did you mean 'ymax'?"),
        (((YMAX, ""),), "the patch 'ymax' has none; add a table [boundary.ymax] with a type (given, flux or free)"),
        ((('kind = "triangle"\n', ""), ("perturb = 0.2\n", "")), "mesh: "),
        ((("velocity = [1.0, 0.25]", "velocity = [1]"),), "transport.velocity: 2 numbers are wanted, as the mesh has"),
        ((("velocity = [1.0, 0.25]", 'velocity_z = "1"'),), "transport.velocity_z: the mesh has 2 dimensions"),
        ((("(1 + x)", "(x - 1)"),), "transport.diffusivity: '0.01 * (x - 1)' is -0.01 at (0, 0); at least 0 is wanted"),
        ((("sin(pi * y)", "1 / y"),), "boundary.xmin.value: '1 / y' is inf at (0, 0)"),
        ((('scalar = "exp(', 'scalar = "log(0 * x) + exp('),), "initial.scalar: "),
        ((('source = "y"', 'source = "z"'),), "transport.source: "),
        ((("velocity = [1.0, 0.25]\n", ""), ('diffusivity = "0.01 * (1 + x)"\n', ""), ("dt = 0.01", "end = 1.0")),
         "time.dt: a scalar that neither flows nor diffuses has no largest stable step: give dt"),
        ((("[1.0, 1.0]", "[2.5, 1.0]"),), "probes: probe 'corner' at (2.5, 1.0) is not in the mesh"),
    ],
)  # fmt: skip
def test_mistakes_found_when_building(plume: Write, changes: tuple[Change, ...], expected: str) -> None:
    with pytest.raises(FluxloomError) as caught:
        build(plume(*changes))
    assert expected in str(caught.value)
