"""The case of incompressible flow: its tables, what wrong ones are answered with, and what a run leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.cases.files.loading import applications, load_case
from fluxloom.cases.incompressible.tables import IncompressibleCase
from fluxloom.core.errors import CaseError, FluxloomError, PreconditionerError, SolverError
from fluxloom.flows.incompressible.flow import Incompressible
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity, S3pqr, Smagorinsky, Wale
from fluxloom.fv.incompressible.projection_schemes import RungeKutta
from fluxloom.linalg import DampedJacobi, SmoothedAggregation
from fluxloom.mesh import box2d, write
from fluxloom.run.flow_run import FlowRun
from tests.unit.cases.flow_cases import CHANNEL, INITIAL, XMAX, XMIN, YMAX, YMIN, Write, advanced, built, writer

CASE = f"""
[case]
name = "channel"
solver = "incompressible"

[mesh]
x = [0.0, 2.0]
nx = 16
ny = 8
{CHANNEL}
[pressure]
preconditioner = "jacobi"

[time]
dt = 0.01

[run]
iterations = 3
threads = 1
"""
WALLS = YMIN + YMAX
PERIODIC = ((XMIN, ""), (XMAX, ""), ("ny = 8", 'ny = 8\nperiodic = [["xmin", "xmax"]]'))


@pytest.fixture
def channel(tmp_path: Path) -> Write:
    """Return a function that writes the case with some texts replaced."""
    return writer(CASE, tmp_path / "channel.toml")


def build(path: Path, device: str = "cpu") -> FlowRun[Incompressible]:
    return built(Incompressible, path, device)


def test_registered() -> None:
    assert "incompressible" in applications().names()


def test_channel(channel: Write) -> None:
    """Poiseuille flow: the pressure falls by ``8 nu`` a length, and what came in goes out."""
    runner = build(channel())
    assert np.isnan(runner.residual())
    first = advanced(runner, 1).residual()
    assert advanced(runner, 150).residual() < 1e-2 * first
    fields = {name: values.reshape(8, 16) for name, values in runner.fields().items()}
    assert set(fields) == {"u", "v", "p", "speed", "vorticity"}
    assert np.diff(fields["p"][4, 4:12]) / (2 / 16) == pytest.approx(-0.8, rel=0.05)
    assert fields["u"][:, 3:].sum(axis=0) == pytest.approx(5.375, rel=1e-3)  # what the faces of the inlet let in
    assert fields["speed"] == pytest.approx(np.hypot(fields["u"], fields["v"]))
    summary = dict(runner.summary())
    assert list(summary) == ["time", "steps", "kinetic energy", "imbalance", "pressure", "residual", "operators"]
    assert summary["time"].startswith("1.51, ")
    assert summary["steps"] == "151"
    assert [picture.field for picture in runner.pictures] == ["speed", "vorticity", "p"]


def test_residual_is_that_of_its_definition(channel: Write) -> None:
    runner = advanced(build(channel()), 2)
    before = runner.flow.solver.velocity()
    runner.advance()
    rate = (runner.flow.solver.velocity() - before) / 0.01
    assert runner.residual() == pytest.approx(np.sqrt((rate**2).sum(axis=1).mean()), rel=1e-9)


def test_steps_chosen(channel: Write) -> None:
    """Without dt each step is the largest stable one; the flow stays bounded."""
    runner = build(channel(("dt = 0.01", "dt = 0")))
    limit = runner.flow.solver.stable_step()
    runner.advance()
    assert runner.flow.solver.dt == limit > 0
    assert np.abs(advanced(runner, 20).fields()["u"]).max() < 1.5


def test_periodic_channel_with_a_force(channel: Write) -> None:
    """``u = f y (1 - y) / (2 nu)`` is nearly reached, whatever the length."""
    changes = (*PERIODIC, (INITIAL, ""), ("viscosity = 0.1", "viscosity = 0.1\nforce = [0.8, 0.0]"))
    runner = advanced(build(channel(*changes, ("nx = 16", "nx = 4"))), 600)
    u = runner.fields()["u"].reshape(8, 4)
    assert u.std(axis=1).max() < 1e-6
    assert u[3:5].max() == pytest.approx(1.0, rel=0.03)


def test_vortices_without_boundaries(channel: Write) -> None:
    """Taylor and Green's vortices in a periodic square lose kinetic energy as ``exp(-4 nu t)``."""
    end = 2 * np.pi
    pairs = 'ny = 16\nperiodic = [["xmin", "xmax"], ["ymin", "ymax"]]'
    start = '[initial]\nvelocity_x = "sin(x) * cos(y)"\nvelocity_y = "-cos(x) * sin(y)"\n'
    changes = (("x = [0.0, 2.0]", f"x = [0.0, {end}]\ny = [0.0, {end}]"), ("ny = 8", pairs), (INITIAL, start))
    runner = build(channel(*changes, (XMIN + XMAX + WALLS, "")))
    before = runner.flow.solver.state().kinetic_energy
    assert before == pytest.approx(np.pi**2, rel=1e-9)
    after = advanced(runner, 50).flow.solver.state().kinetic_energy
    assert np.log(before / after) == pytest.approx(4 * 0.1 * 0.5, rel=0.03)


def test_couette_flow(channel: Write) -> None:
    """Without a pressure its solver has nothing but rounding to work on, and the run goes on."""
    changes = (*PERIODIC, (INITIAL, ""), (WALLS, WALLS + "velocity = [1, 0]\n"), ("nx = 16", "nx = 4"))
    runner = advanced(build(channel(*changes)), 600)
    y = (np.arange(8) + 0.5) / 8
    assert runner.fields()["u"].reshape(8, 4) == pytest.approx(np.repeat(y[:, None], 4, axis=1), abs=1e-2)
    assert np.abs(runner.fields()["p"]).max() < 1e-9


@pytest.mark.parametrize("name", ["none", "chebyshev", "approximate_inverse", "ssor", "smoothed_aggregation"])
@pytest.mark.parametrize("outflow", [True, pytest.param(False, marks=pytest.mark.long)])
def test_preconditioners_agree(channel: Write, name: str, outflow: bool) -> None:
    """Also where the matrix of the pressure is singular."""
    if name == "smoothed_aggregation":
        pytest.importorskip("pyamg")
    tight = 'preconditioner = "jacobi"\nrtol = 1e-10'
    lid = ('"wall"\n[boundary.ymax]\ntype = "wall"', '"wall"\n[boundary.ymax]\ntype = "wall"\nvelocity = [1, 0]')
    rest = () if outflow else ((INITIAL, ""), (XMIN + XMAX, '[boundary.xmin]\ntype = "symmetry"\n'
                                                            '[boundary.xmax]\ntype = "wall"\n'))  # fmt: skip
    found = []
    for text in (tight, tight.replace("jacobi", name)):
        runner = advanced(build(channel(('preconditioner = "jacobi"', text), lid, *rest)), 3)
        found.append(runner.fields())
    assert found[1]["u"] == pytest.approx(found[0]["u"], abs=1e-8)
    assert found[1]["p"] == pytest.approx(found[0]["p"], abs=1e-6)
    assert np.abs(found[0]["v"]).max() > 1e-4


def test_box(channel: Write) -> None:
    """In three dimensions: a third component, no pictures; uniform flow past symmetry stays."""
    sides = "".join(f'[boundary.{name}]\ntype = "symmetry"\n' for name in ("ymin", "ymax", "zmin", "zmax"))
    changes = ((XMIN, '[boundary.xmin]\ntype = "inflow"\nvelocity = [1, 0, 0]\n'), (WALLS, sides),
               ("ny = 8", 'ny = 4\nnz = 3\nkind = "tetra"'), ("4 * y * (1 - y)", "1 + 0 * z"))  # fmt: skip
    text = channel(*changes)
    case, application = load_case(text)
    runner = advanced(build(text), 3)
    assert runner.flow.cells == application.estimate(case).cells == 16 * 4 * 3 * 6
    fields = runner.fields()
    assert fields["u"] == pytest.approx(1.0, abs=1e-9)
    assert fields["w"] == pytest.approx(0.0, abs=1e-9)
    assert not runner.pictures


def test_mesh_file(channel: Write, tmp_path: Path) -> None:
    """A mesh of a file is that which was generated."""
    write(tmp_path / "m.vtu", box2d(16, 8, (2.0, 1.0), "triangle"), patches=True)
    block = "x = [0.0, 2.0]\nnx = 16\nny = 8"
    made = advanced(build(channel((block, block + '\nkind = "triangle"'))), 2)
    path = channel((block, f'file = "{tmp_path / "m.vtu"}"'))
    read = advanced(build(path), 2)
    assert read.fields()["u"] == pytest.approx(made.fields()["u"], abs=1e-8)
    case, application = load_case(path)
    assert application.estimate(case).cells == read.flow.cells == 256


def test_reference_device(channel: Write) -> None:
    small = (("nx = 16", "nx = 4"), ("ny = 8", "ny = 3"))
    found = [advanced(build(channel(*small), device), 2).fields() for device in ("cpu", "reference")]
    assert found[0]["u"] == pytest.approx(found[1]["u"], abs=1e-10)
    assert found[0]["p"] == pytest.approx(found[1]["p"], abs=1e-7)


def test_loops_and_reports(channel: Write) -> None:
    """A name a loop, of the pressure's iterations one; the time of all is there."""
    runner = advanced(build(channel()), 3)
    names = [loop.name for loop in runner.flow.loops]
    assert names.count("poisson.product_dot") == 1
    assert {"transport", "predict", "correct", "change"} <= set(names)
    reports = {report.name: report for report in runner.flow.reports()}
    assert reports["change"].calls == reports["predict"].calls == 3
    assert reports["poisson.product_dot"].calls >= 3


def test_command_line(channel: Write, fluxloom: Callable[..., SimpleNamespace], tmp_path: Path) -> None:
    """Files, a record with results; a lost solution is one message."""
    done = fluxloom("run", channel(), "--output", tmp_path / "out")
    assert done.code == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["results"]["steps"] == "3"
    assert {"residual.csv", "speed.png", "p.png"} <= set(record["files"])
    lost = fluxloom("run", channel(("dt = 0.01", "dt = 1e4")), "-n", 60, "--output", tmp_path / "lost")
    assert lost.code == 1
    assert "time.dt (now 10000)" in " ".join(lost.err.split())
    assert "Traceback" not in done.text + lost.text


def test_pressure_that_does_not_converge(channel: Write) -> None:
    """Nothing has to be done to a fluid at rest, but much to what a lid starts."""
    rest = ((INITIAL, ""), (XMIN + XMAX, '[boundary.xmin]\ntype = "wall"\n[boundary.xmax]\ntype = "wall"\n'))
    lid = (WALLS, WALLS + "velocity = [1, 0]\n")
    runner = build(channel(('preconditioner = "jacobi"', "iterations = 1"), lid, *rest))
    with pytest.raises(SolverError, match=r"step 1: the pressure has not converged, .* raise pressure.iterations"):
        runner.advance()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("viscosity = 0.1", "viscosity = -0.1", "fluid.viscosity: must be at least 0, got -0.1"),
        ("viscosity = 0.1", "viscsity = 0.1", "fluid.viscsity: [fluid] has no key 'viscsity'; did you mean 'viscosi"),
        ("[fluid]\nviscosity = 0.1\n", "", "[fluid] is missing (keys: viscosity, force, mean_velocity, gravity)"),
        ('"jacobi"', '"jacobian"', "pressure.preconditioner: unknown preconditioner 'jacobian'; did you mean 'jacobi'"),
        ('"jacobi"', '"jacobi"\nrtol = 0', "pressure.rtol: must be greater than 0, got 0"),
        ('"jacobi"', '"jacobi"\niterations = 0', "pressure.iterations: must be at least 1, got 0"),
        ("dt = 0.01", "dt = -1", "time.dt: must be at least 0, got -1"),
        ("nx = 16", "nx = 0", "mesh.nx: must be at least 1, got 0"),
        ("nx = 16", 'file = "m.su2"', "mesh: a mesh from a file has no x"),
        ("nx = 16", "z = [0.0, 2.0]", "mesh: z is there but nz is not"),
        ("nx = 16", 'kind = "tetra"', 'mesh: kind = "tetra" is none of a mesh without nz (allowed: auto, quad, '),
        ("nx = 16", 'nz = 2\nkind = "quad"', 'mesh: kind = "quad" is none of a mesh with nz'),
        ("x = [0.0, 2.0]", "x = [2.0, 0.0]", "mesh: x, y and z are the lower and the upper end"),
        ("nx = 16", 'periodic = [["xmin"]]', "mesh.periodic.0: must have at least 2 values, got 1"),
        ('"outflow"', '"outlow"', "boundary.xmax.type: unknown value \"outlow\"; did you mean 'outflow'"),
        ('"outflow"', '"outflow"\nvelocity = [1, 0]', 'boundary.xmax: type = "outflow" has no velocity'),
        ('"outflow"', '"symmetry"\nvelocity_y = "x"', 'boundary.xmax: type = "symmetry" has no velocity_y'),
        ('"outflow"', '"inflow"', "boundary.xmax: give velocity = [...], or components as velocity_x"),
        ('"inflow"', '"inflow"\nvelocity = [1, 0]', "boundary.xmin: give only one of velocity and velocity_x"),
        ("(1 - y)", "(1 - t)", "initial.velocity_x: '4 * y * (1 - t)': unknown name 't'"),
        ("[run]", "[les]\nconstant = 0.1\n[run]", "les: constant is called model.constant now: write model = { type"),
        ("[run]", '[les]\nmodel = "whale"\n[run]', "les.model"),
        ("iterations = 3", 'iterations = 3\nschedule = "serial"', "run.schedule: this solver chooses"),
        ("iterations = 3", "iterations = 3\nfused = false", "run.fused: this solver chooses"),
    ],
)
def test_mistakes_of_the_file(channel: Write, old: str, new: str, expected: str) -> None:
    with pytest.raises(CaseError) as caught:
        load_case(channel((old, new)))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((("[boundary.ymax]", "[boundary.ymx]"),), "boundary: the mesh has no patch 'ymx'; did you mean 'ymax'?"),
        (((XMAX, ""),), "boundary: the patch 'xmax' has none; add a table [boundary.xmax] with a type"),
        ((("ny = 8", 'ny = 8\nperiodic = [["xmin", "xmx"]]'),), "mesh.periodic: the mesh has no patch 'xmx'; did you"),
        (PERIODIC[1:], "boundary.xmin: mesh.periodic names this patch too"),
        ((("ny = 8", 'ny = 8\nperiodic = [["xmin", "ymin"]]'), (XMIN, ""), (XMAX + '[boundary.ymin]\ntype = "wall"',
         '[boundary.xmax]\ntype = "outflow"')), "periodic patches 'xmin' and 'ymin' have 8 and 16 faces"),
        ((("viscosity = 0.1", "viscosity = 0.1\nforce = [1]"),), "fluid.force: 2 numbers are wanted, as the mesh has"),
        ((('velocity_x = "4 * y * (1 - y)"\n[boundary.xmax]', "velocity = [1, 0, 0]\n[boundary.xmax]"),),
         "boundary.xmin.velocity: 2 numbers are wanted, as the mesh has 2 dimensions, not 3"),
        (((INITIAL, '[initial]\nvelocity_z = "1"\n'),), "initial.velocity_z: the mesh has 2 dimensions; leave it out"),
        (((INITIAL, '[initial]\nvelocity_y = "z"\n'),), "initial.velocity_y: 'z': unknown name 'z'"),
        (((INITIAL, '[initial]\nvelocity_y = "1 / (x - x)"\n'),), "initial.velocity_y: '1 / (x - x)' is inf at ("),
        (((XMIN, XMIN.replace("4 * y", "log(-y)")),), "boundary.xmin.velocity_x: 'log(-y) * (1 - y)' is nan at ("),
        (((WALLS, WALLS + "velocity = [0, 1]\n"),), "boundary.ymax.velocity: a wall slides along itself"),
        (((XMAX, '[boundary.xmax]\ntype = "wall"\n'),), "boundary: the given velocities let 0.671875 more in, and no"),
        (((INITIAL, ""), ("dt = 0.01", "dt = 0"), ("viscosity = 0.1", "viscosity = 0"),
          (XMIN, '[boundary.xmin]\ntype = "wall"\n')), "time.dt: a fluid at rest without viscosity"),
        ((('"jacobi"', '"jacobi"\niterations = 1'), (INITIAL, '[initial]\nvelocity_y = "sin(9 * x)"\n')),
         "pressure.iterations: 1 do not suffice to make the initial velocity free of divergence"),
    ],
)  # fmt: skip
def test_mistakes_found_when_building(channel: Write, changes: tuple[tuple[str, str], ...], expected: str) -> None:
    with pytest.raises(FluxloomError) as caught:
        build(channel(*changes))
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("les", "model"),
    [
        ('model = "none"', None),
        ('model = "wale"', Wale()),
        ('model = { type = "wale", constant = 0.5 }', Wale(0.5)),
        ('model = { type = "s3pqr", variant = "pr" }', S3pqr("pr")),
        ('model = { type = "s3pqr", constant = 0.4 }', S3pqr("qr", 0.4)),
    ],
)
def test_models_of_eddies(channel: Write, les: str, model: EddyViscosity | None) -> None:
    case = load_case(channel(("[run]", f"[les]\n{les}\n[run]")))[0]
    assert isinstance(case, IncompressibleCase)
    assert case.les.model == model


def test_preconditioners_have_numbers(channel: Write) -> None:
    numbers = '{ type = "smoothed_aggregation", theta = 0.1, smoother = { type = "damped_jacobi", sweeps = 2 } }'
    case = load_case(channel(('"jacobi"', numbers)))[0]
    assert isinstance(case, IncompressibleCase)
    found = case.pressure.preconditioner
    assert isinstance(found, SmoothedAggregation)
    assert (found.theta, found.smoother) == (0.1, DampedJacobi(2))
    assert case.divided.startswith('pressure.preconditioner = "smoothed_aggregation" works rank by rank')


def test_a_preconditioner_that_makes_no_numbers_is_blamed_for_them(channel: Write) -> None:
    """And not the length of the step, which would have to be smaller were the flow lost."""
    runner = build(channel(('"jacobi"', '"tests.unit.linalg.test_preconditioning:NoNumber"')))
    said = r"pressure: the preconditioner NoNumber \(test_preconditioning.py:\d+\) makes NaN"
    with pytest.raises(PreconditionerError, match=said) as error:
        runner.advance()
    assert "dt" not in str(error.value)


def test_scheme_and_model(channel: Write) -> None:
    les = ("[run]", '[les]\nmodel = { type = "smagorinsky", constant = 0.2 }\n[run]')
    runner = build(channel(("dt = 0.01", 'dt = 0.01\nscheme = "runge-kutta"'), les))
    assert runner.flow.solver.scheme == RungeKutta()
    assert runner.flow.solver.model == Smagorinsky(0.2)
    runner.advance()
    assert runner.flow.solver.nut.read().max() > 0
    assert runner.residual() > 0
