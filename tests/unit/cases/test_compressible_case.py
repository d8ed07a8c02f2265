"""The case of compressible flow: its tables, what wrong ones are answered with, and what a run leaves."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.cases.compressible.tables import BOUNDARY_KEYS, GasTable, MarchTable, SchemeTable
from fluxloom.cases.files.loading import applications
from fluxloom.core.errors import CaseError, FluxloomError, SolverError
from fluxloom.flows.compressible.flow import Compressible
from fluxloom.fv.compressible.gas import Gas
from fluxloom.mesh import box2d, write
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.results import ResultFolder
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from tests.unit.cases.flow_cases import Write, advanced, built, writer

CASE = """
[case]
name = "stream"
solver = "compressible"

[mesh]
x = [0.0, 2.0]
nx = 12
ny = 6

[flow]
mach = 0.5
alpha = 2.0

[boundary.xmin]
type = "far-field"
[boundary.xmax]
type = "far-field"
[boundary.ymin]
type = "slip"
[boundary.ymax]
type = "slip"

[run]
iterations = 3
threads = 1
"""
XMIN = '[boundary.xmin]\ntype = "far-field"\n'
YMIN = '[boundary.ymin]\ntype = "slip"\n'
WALL = (YMIN, '[boundary.ymin]\ntype = "wall"\n')
AIR = ("[run]", '[gas]\nviscosity = "sutherland"\n[run]')
MODEL = ("[run]", '[gas]\nviscosity = "sutherland"\n[scheme]\nturbulence = "spalart-allmaras"\n[run]')
SPAN = ("ny = 6", "ny = 6\nz = [0.0, 1.0]\nnz = 2")
LOW = "[scheme]\nlow_mach = true\n[run]"
ENDS = ("[run]", '[boundary.zmin]\ntype = "symmetry"\n[boundary.zmax]\ntype = "symmetry"\n[run]')


@pytest.fixture
def stream(tmp_path: Path) -> Write:
    """Return a function that writes the case with some texts replaced."""
    return writer(CASE, tmp_path / "stream.toml")


def build(path: Path, device: str = "cpu") -> FlowRun[Compressible]:
    return built(Compressible, path, device)


def test_registered() -> None:
    assert "compressible" in applications().names()


def test_tables_have_the_names_of_the_objects() -> None:
    """And their defaults: what a scheme or a gas can be, a case file can say."""
    scheme = {field.name: field.default for field in fields(CompressibleScheme)}
    table = {name: getattr(SchemeTable(), name) for name in SchemeTable.model_fields}
    assert table | {"cfl": MarchTable().cfl} == scheme
    gas = {field.name for field in fields(Gas)}
    assert gas <= set(GasTable.model_fields)
    assert GasTable().value == Gas()


def test_free_stream_at_the_start(stream: Write) -> None:
    """Air at the level of the sea, along the angle of attack."""
    runner = build(stream())
    assert np.isnan(runner.residual())
    fields = runner.fields()
    assert set(fields) == {"rho", "u", "v", "p", "T", "mach"}
    assert fields["p"] == pytest.approx(101325.0)
    assert fields["T"] == pytest.approx(288.15)
    assert fields["mach"] == pytest.approx(0.5)
    assert fields["v"] / fields["u"] == pytest.approx(np.tan(np.radians(2.0)))
    advanced(runner, 1)
    assert runner.residual() == 1.0
    advanced(runner, 60)
    assert 0.0 < runner.residual() < 0.3
    assert dict(runner.summary())["steps"] == "61"


def test_steady_end(stream: Write) -> None:
    """A run ends when the residual has dropped so far."""
    runner = build(stream(("[run]", "[time]\nresidual_drop = 0.5\n[run]")))
    while not runner.finished and runner.flow.solver.steps < 100:
        advanced(runner, 1)
    assert runner.residual() < 0.5
    assert 3 < runner.flow.solver.steps < 100


def test_time_end(stream: Write) -> None:
    """The last step hits the end exactly; the last two are equal."""
    runner = build(stream(("[run]", "[time]\nend = 1e-3\n[run]")))
    lengths = []
    while not runner.finished:
        before = runner.flow.solver.time
        advanced(runner, 1)
        lengths.append(runner.flow.solver.time - before)
    assert runner.flow.solver.time == 1e-3
    assert len(lengths) > 3
    assert lengths[-1] == pytest.approx(lengths[-2], rel=1e-9)


def test_two_gases(stream: Write) -> None:
    """Densities on both sides of a plane across y."""
    sides = '[initial]\nleft = [1.0, 0.0, 0.0, 1.0]\nright = [2.0, 0.1, 0.0, 3.0]\naxis = "y"\nat = 0.5\n[run]'
    fields = build(stream(("[run]", sides))).fields()
    above = np.repeat([False, True], 36)
    assert fields["rho"] == pytest.approx(np.where(above, 2.0, 1.0))
    assert fields["u"] == pytest.approx(np.where(above, 0.1, 0.0))
    assert fields["p"] == pytest.approx(np.where(above, 3.0, 1.0))


def test_formulas(stream: Write) -> None:
    """What is not given is that of the free stream."""
    fields = build(stream(("[run]", '[initial]\npressure = "1e5 * (1 + x)"\n[run]'))).fields()
    assert fields["p"].reshape(6, 12)[0] == pytest.approx(1e5 * (1 + (np.arange(12) + 0.5) / 6))
    assert fields["rho"] == pytest.approx(101325.0 / (287.05 * 288.15))


def test_reynolds(stream: Write) -> None:
    """The density follows from the Reynolds number, and the pressure from it."""
    runner = build(stream(AIR, ("alpha = 2.0", "reynolds = 5000.0\nlength = 0.5")))
    fields, gas = runner.fields(), runner.flow.solver.gas
    assert gas.viscosity is not None
    mu = float(gas.viscosity.at(288.15))
    assert fields["rho"] * fields["u"] * 0.5 / mu == pytest.approx(5000.0)
    assert fields["p"] == pytest.approx(fields["rho"] * 287.05 * 288.15)
    advanced(runner, 2)


def test_friction_and_turbulence(stream: Write) -> None:
    """With walls and the model of Spalart and Allmaras: its variable is a field, and tables have friction."""
    runner = advanced(build(stream(WALL, MODEL)), 3)
    assert runner.fields()["nu_tilde"].min() > 0.0
    assert runner.flow.solver.distance.read().min() > 0.0
    rho, u, v, p, _ = runner.flow.solver.states().T
    wanted = np.array([rho, rho * u, rho * v, p / 0.4 + 0.5 * rho * (u**2 + v**2)]) @ runner.flow.solver.volumes.volumes
    assert runner.flow.solver.totals() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("kind", BOUNDARY_KEYS)
def test_every_boundary(stream: Write, kind: str) -> None:
    """Each type of the table becomes a boundary of its own, and a step is made with it."""
    values = {
        "pressure": "120000.0", "temperature": "300.0", "velocity": "[50.0, 0.0]", "mass_flux": "60.0",
    }  # fmt: skip
    needed, _ = BOUNDARY_KEYS[kind]
    given = "".join(f"{key} = {values[key]}\n" for key in needed)
    given += "temperature = 300.0\n" if kind == "velocity-inlet" else ""
    given += "state = [1.2, 700.0, 0.0, 1e5]\n" if kind == "supersonic-inlet" else ""
    place = (XMIN, "[boundary.xmin]") if kind != "symmetry" else (YMIN, "[boundary.ymin]")
    changes = (place[0], f'{place[1]}\ntype = "{kind}"\n{given}'), ("alpha = 2.0", "alpha = 0.0"), AIR
    runner = advanced(build(stream(*changes)), 2)
    assert np.isfinite(runner.residual())


def test_an_inlet_may_let_nothing_in(stream: Write) -> None:
    """0 is a value: it is not the same as no value."""
    inlet = '[boundary.xmin]\ntype = "mass-inlet"\nmass_flux = 0.0\ntemperature = 288.15\n'
    runner = advanced(build(stream((XMIN, inlet), ("mach = 0.5", "mach = 0.0"))), 3)
    np.testing.assert_allclose(runner.fields()["u"], 0.0, atol=1e-9)


def test_slow_gas_at_a_supersonic_outlet_is_told(stream: Write) -> None:
    runner = advanced(build(stream((XMIN, '[boundary.xmin]\ntype = "supersonic-outlet"\n'))), 4)
    told = dict(runner.summary())["outlets"]
    assert "(xmin) in 4 of 4 steps" in told
    assert "6 faces in the last step" in told
    fast = advanced(build(stream((XMIN, '[boundary.xmin]\ntype = "supersonic-outlet"\n'), ("= 0.5", "= 2.0"),
                                 ("[run]", "[initial]\nvelocity_x = \"-900\"\n[run]"))), 4)  # fmt: skip
    assert "outlets" not in dict(fast.summary())


@pytest.mark.parametrize(("end", "told"), [("slip", True), ("supersonic-outlet", False)])
def test_a_shock_at_a_supersonic_inlet_is_told(stream: Write, end: str, told: bool) -> None:
    """Before a closed end gas comes to rest, and the shock runs upstream."""
    inlet = (XMIN, '[boundary.xmin]\ntype = "supersonic-inlet"\n')
    ends = ('[boundary.xmax]\ntype = "far-field"\n', f'[boundary.xmax]\ntype = "{end}"\n')
    runner = advanced(build(stream(inlet, ends, ("= 0.5", "= 2.0"))), 120)
    runner.finish(pictures=False)
    found = dict(runner.summary()).get("inlets", "")
    assert found.startswith("behind 6 faces of supersonic inlets (xmin)") == told


def test_a_turbulence_variable_below_0_is_told(stream: Write) -> None:
    """The model goes on with it, and it comes back."""
    runner = build(stream(MODEL, WALL))
    flow = runner.flow.solver
    states = flow.states()
    states[5, -1] = -1e-4
    flow.start(states)
    runner.finish(pictures=False)
    assert dict(runner.summary())["nu_tilde"].startswith("negative in 1 of 72 cells, -0.0001 in cell 5 at (0.9")
    advanced(runner, 30)
    runner.finish(pictures=False)
    assert "nu_tilde" not in dict(runner.summary())


SLOW = ("mach = 0.5", "mach = 0.05")
REST = ("mach = 0.5", "mach = 0.0")


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ((), ""),
        ((SLOW,), "set low_mach = true"),
        ((SLOW, ("[run]", LOW)), ""),
        ((SLOW, ("[run]", LOW.replace("low_mach", 'flux = "rusanov"\nlow_mach'))), 'set flux = "roe" and low_mach'),
        ((REST,), ""),  # of gas at rest nothing is known
        ((REST, (XMIN, '[boundary.xmin]\ntype = "velocity-inlet"\nvelocity = [8.0, 0.0]\ntemperature = 288.15\n')),
         "Mach 0.0235 at most"),
        ((REST, (XMIN, '[boundary.xmin]\ntype = "mass-inlet"\nmass_flux = 5.0\ntemperature = 288.15\n')),
         "Mach 0.012 at most"),
        ((REST, (YMIN, '[boundary.ymin]\ntype = "wall"\nvelocity = [12.0, 0.0]\n'), AIR), "Mach 0.0353 at most"),
        ((REST, (XMIN, '[boundary.xmin]\ntype = "total-inlet"\npressure = 102000.0\ntemperature = 288.15\n')),
         "Mach 0.0974 at most"),
        ((REST, (XMIN, '[boundary.xmin]\ntype = "total-inlet"\npressure = 130000.0\ntemperature = 288.15\n')), ""),
        ((SLOW, ("[run]", '[initial]\npressure = "where(x < 0.5, 2e5, 1e5)"\n[run]')), ""),  # a blast is fast
    ],
)  # fmt: skip
def test_slow_flow_wants_a_key(stream: Write, changes: tuple[tuple[str, str], ...], warned: str) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        build(stream(*changes))
    told = [str(one.message) for one in found if "the flow is slow" in str(one.message)]
    assert len(told) == bool(warned)
    assert all(warned in text for text in told)


def test_every_boundary_can_be_named() -> None:
    assert len(BOUNDARY_KEYS) == 10


def test_periodic(stream: Write) -> None:
    """Between periodic sides a uniform flow stays as it is; there is nothing to balance."""
    changes = ((XMIN, ""), ('[boundary.xmax]\ntype = "far-field"\n', ""), ("alpha = 2.0", ""))
    runner = advanced(build(stream(*changes, ("ny = 6", 'ny = 6\nperiodic = [["xmin", "xmax"]]'))), 5)
    assert runner.fields()["mach"] == pytest.approx(0.5, rel=1e-9)
    assert "mass" not in dict(runner.summary())


def test_run_leaves(stream: Write, tmp_path: Path, fluxloom: Callable[..., SimpleNamespace]) -> None:
    """Files of a run, and what they have."""
    tables = (
        '[forces.ymin]\narea = 2.0\npoint = [0.5, 0.0]\n[forces.both]\npatches = ["ymin", "ymax"]\n'
        '[surface]\npatches = ["ymin"]\n[history]\nevery = 2\n[snapshots]\nevery = 4\n[run]'
    )
    path, out = stream(("[run]", tables), ("iterations = 3", "iterations = 9")), tmp_path / "out"
    found = fluxloom("run", path, "--output", out)
    assert found.code == 0, found.text
    history = np.genfromtxt(out / "history.csv", delimiter=",", names=True)
    assert history["step"].tolist() == [0, 2, 4, 6, 8, 9]
    assert {"residual", "clipped_faces", "clipped_cells", "mass_imbalance", "yminlift", "bothdrag", "yminpitch"} <= set(
        history.dtype.names or ()
    )
    assert history["bothlift"][0] == pytest.approx(0.0, abs=1e-12)
    surface = np.genfromtxt(out / "surface_ymin.csv", delimiter=",", names=True)
    assert surface.dtype.names == ("x", "y", "nx", "ny", "area", "p", "T", "cp")
    assert surface["x"] == pytest.approx((np.arange(12) + 0.5) / 6)
    record = json.loads((out / "run.json").read_text())
    assert {"history.csv", "surface_ymin.csv", "history.png", "mach.png", "pressure.png"} <= set(record["files"])
    assert {"ymin", "both", "mass", "steps"} <= set(record["results"])
    assert len([name for name in record["files"] if name.startswith("snapshot_00000")]) == 2
    assert all((out / name).stat().st_size for name in record["files"])


@pytest.mark.long
def test_run_with_a_span(stream: Write, tmp_path: Path, fluxloom: Callable[..., SimpleNamespace]) -> None:
    """In three dimensions, with a cut through patches and a section."""
    tables = '[surface]\npatches = ["ymin", "ymax"]\naxis = "z"\ncuts = [0.4]\n[flow]'
    path = stream(SPAN, ENDS, ("[flow]", tables), ("alpha = 2.0", 'alpha = 2.0\nup = "y"'))
    found = fluxloom("run", path, "--output", tmp_path)
    assert found.code == 0, found.text
    cut = np.genfromtxt(tmp_path / "cut_z_0.4.csv", delimiter=",", names=True)
    assert len(cut) == 24
    assert cut["z"] == pytest.approx(0.4)
    assert (tmp_path / "section_y.png").stat().st_size > 1000


def test_run_on_two_ranks(stream: Write, tmp_path: Path, fluxloom: Callable[..., SimpleNamespace]) -> None:
    """The files are those of one rank."""
    path = stream(("[run]", '[forces.ymin]\n[surface]\npatches = ["ymin", "ymax"]\n[history]\nevery = 1\n[run]'))
    for out, words in ((tmp_path / "one", ()), (tmp_path / "two", ("--ranks", "cpu:1*2"))):
        found = fluxloom("run", path, "--output", out, "--no-picture", *words)
        assert found.code == 0, found.text
    for name in ("history.csv", "surface_ymin.csv", "surface_ymax.csv"):
        one, two = (np.genfromtxt(tmp_path / d / name, delimiter=",", skip_header=1) for d in ("one", "two"))
        np.testing.assert_allclose(two, one, rtol=1e-7, atol=1e-7, err_msg=name)


def test_forces_of_gas_at_rest(stream: Write) -> None:
    """They are there without a free stream; coefficients want a speed."""
    rest, high = ("mach = 0.5\n", ""), '[initial]\npressure = "2e5"\n[forces.ymin]\n'
    run = build(stream(rest, ("[run]", f"{high}[run]")))
    force = -2.0 * (2e5 - 101325.0)
    assert run.columns()["ymin.force_y"] == pytest.approx(force, rel=1e-12)
    assert "ymin.lift" not in run.columns()
    given = build(stream(rest, ("[run]", f"{high}speed = 10.0\narea = 2.0\n[run]"))).columns()
    density, alpha = 101325.0 / (287.05 * 288.15), np.radians(2.0)
    assert given["ymin.lift"] == pytest.approx(force * np.cos(alpha) / (0.5 * density * 10.0**2 * 2.0), rel=1e-12)


def test_mesh_from_a_file(stream: Write, tmp_path: Path) -> None:
    write(tmp_path / "box.su2", box2d(4, 4))
    changes = (("x = [0.0, 2.0]\nnx = 12\nny = 6", f'file = "{tmp_path / "box.su2"}"'),)
    assert build(stream(*changes)).flow.cells == 16


def test_lost(stream: Write, tmp_path: Path, fluxloom: Callable[..., SimpleNamespace]) -> None:
    """A state that is no number ends the run: which cell, where, and what to do."""
    runner = build(stream())
    runner.begin(ResultFolder(tmp_path))
    advanced(runner, 3)
    states = runner.flow.solver.w.read()
    states[17, 0] = np.nan
    runner.flow.solver.w.write(states)
    with pytest.raises(SolverError) as error:
        advanced(runner, 2)
    text = str(error.value)
    assert re.search(r"the state of cell \d+ at \[.*\] is not finite; lower cfl \(now 0.8\)", text)


def test_round_off_of_a_mesh_far_away_is_told(stream: Write) -> None:
    with pytest.warns(UserWarning, match=r"nodes are 2e\+05 from the origin and as near as 0.167 to each other"):
        build(stream(("x = [0.0, 2.0]", "x = [199999.0, 200001.0]")))


def test_mended_states_are_counted(stream: Write) -> None:
    """A strong blast with long steps is kept positive, and the summary says how often."""
    blast = "[initial]\nleft = [1.0, 0.0, 0.0, 1000.0]\nright = [0.01, 0.0, 0.0, 0.001]\nat = 1.0\n"
    runner = build(stream(("[run]", f"{blast}[time]\ncfl = 2.5\n[run]")))
    advanced(runner, 5)
    assert "fluxes of" in dict(runner.summary())["limited"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("mach = 0.5", "mach = -0.5")], "flow.mach: must be at least 0, got -0.5"),
        ([("mach = 0.5", "mahc = 0.5")], "[flow] has no key 'mahc'; did you mean 'mach'?"),
        ([("[boundary.ymin]", "[boundary.ymni]")], "the mesh has no patch 'ymni'; did you mean 'ymin'?"),
        ([(YMIN, "")], "the patch 'ymin' has none; add a table [boundary.ymin] with a type (slip, symmetry, wall,"),
        ([('"slip"', '"slop"')], 'boundary.ymin.type: unknown value "slop"; did you mean \'slip\'?'),
        ([(XMIN, XMIN + "pressure = 1.0\n")], 'type = "far-field" has no pressure: it may have state'),
        ([(XMIN, '[boundary.xmin]\ntype = "total-inlet"\npressure = 2.0\n')], 'type = "total-inlet" needs temperature'),
        ([(XMIN, '[boundary.xmin]\ntype = "velocity-inlet"\nvelocity = [1.0, 0.0]\n')], "needs one of"),
        ([(XMIN, XMIN + "state = [1.0, 0.0, 1.0]\n")], "boundary.xmin.state: density, 2 velocities and pressure"),
        ([(XMIN, XMIN + "state = [1.0, 0.0, 0.0, -1.0]\n")], "density and pressure have to be above 0"),
        ([(XMIN, XMIN + 'vortex = ["ymn"]\n')], "patch 'xmin': vortex: no patch 'ymn'; did you mean 'ymin'?"),
        ([(XMIN, XMIN + 'vortex = ["xmax"]\n')], "patch 'xmin': vortex: patch 'xmax' is no wall"),
        ([(XMIN, XMIN + "centre = [0.0, 0.0]\n")], "centre is there but vortex is not"),
        ([(XMIN, XMIN + 'vortex = ["ymin"]\n'), SPAN, ENDS], "patch 'xmin': vortex: it is one of flows in a plane"),
        ([(YMIN, YMIN + "velocity = [1.0]\n")], "boundary.ymin.velocity: 2 numbers are wanted"),
        ([WALL], "boundary.ymin: a wall with friction needs a gas with a viscosity; or take one that slips"),
        ([("[run]", '[scheme]\nflux = "row"\n[run]')], "scheme.flux: unknown flux 'row'; did you mean 'roe'?"),
        ([("[run]", '[scheme]\nloops = "facs"\n[run]')], "loops: unknown loop of fluxes 'facs'; did you mean 'faces'?"),
        ([("[run]", '[scheme]\nlimiter = "none"\nsmoothness = 2.0\n[run]')], "smoothness is called limiter.smoothness"),
        ([("[run]", '[scheme]\nflux = { type = "hllc", entropy_fix = 0.2 }\n[run]')], "hllc: no key 'entropy_fix'"),
        ([("[run]", '[scheme]\nturbulence = "spalart-allmaras"\n[run]')], "needs gas.viscosity"),
        ([("[run]", "[time]\nend = 1.0\nresidual_drop = 1e-3\n[run]")], "give only one of them"),
        ([("mach = 0.5", "mach = 0.5\nreynolds = 100.0")], "flow.reynolds needs gas.viscosity"),
        ([("mach = 0.5", "mach = 0.5\nbeta = 3.0")], "beta = 0 in 2 dimensions"),
        ([("mach = 0.5", 'mach = 0.5\nup = "z"')], 'flow.up: "z" is no axis'),
        ([SPAN, ENDS, ("mach = 0.5", 'mach = 0.5\nup = "z"')], "the free stream [0.999391, 0.0, 0.034899] has a"),
        ([SPAN, ENDS, ("mach = 0.5", "mach = 0.5\nbeta = -1.0")], "boundary.zmin: the free stream [0.99"),
        ([('"slip"', '"symmetry"')], "boundary.ymin: the free stream [0.999391, 0.034899] has a component across"),
        ([("[run]", "[gas]\nmu = 1.0\n[run]")], 'gas: mu is called viscosity.mu now'),
        ([("[run]", "[forces.ymn]\n[run]")], "forces.ymn: no patch 'ymn'; did you mean 'ymin'?"),
        ([("[run]", "[forces.ymin]\npoint = [0.0]\n[run]")], "forces.ymin: point: 2 coordinates are wanted"),
        ([("mach = 0.5\n", ""), ("[run]", "[forces.ymin]\narea = 2.0\n[run]")], "forces.ymin: the free stream is at"),
        ([("[run]", '[surface]\npatches = ["ymn"]\n[run]')], "surface: no patch 'ymn'; did you mean 'ymin'?"),
        ([("[run]", '[surface]\npatches = ["ymin"]\ncuts = [0.1]\n[run]')], "surface: cuts: the mesh has 2 dimensions"),
        ([("[run]", "[surface]\ncuts = [0.1]\n[run]")], "cuts is there but patches is not"),
        ([("[run]", "[initial]\nleft = [1.0, 0.0, 0.0, 1.0]\n[run]")], "give both of left and right"),
        ([("[run]", '[initial]\npressure = "x - 1"\n[run]')], "initial.pressure: above 0 is wanted"),
        ([("[run]", '[initial]\nvelocity_z = "x"\n[run]')], "initial.velocity_z: the mesh has 2 dimensions"),
        ([("threads = 1", "threads = 1\nfused = false")], "run.fused: this solver chooses"),
        ([("x = [0.0, 2.0]\nnx = 12\nny = 6", 'shape = "airfoil"\nprofile = "12"')], 'four digits, as "0012"'),
        ([("nx = 12", "around = 32\nnx = 12")], 'around is none of shape = "box"'),
    ],
)  # fmt: skip
def test_refused(stream: Write, changes: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(FluxloomError, match=re.escape(message)) as error:
        build(stream(*changes))
    assert isinstance(error.value, CaseError)
