"""Starts from the result of another run: the same mesh or another, other settings, other ranks, every solver."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.comm.base import SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, CheckpointError, SolverError
from fluxloom.dsl.context import Context
from fluxloom.mesh.generate.boxes import box2d
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.run.flow_run import FlowRun
from fluxloom.run.results.files import write_fields
from fluxloom.run.results.image_data import read_image, write_image
from fluxloom.run.start import Start
from fluxloom_lab.problems.small.state_cases import CASES, changed
from tests.pages import cases
from tests.source_tree import ROOT
from tests.state_runs import Leg, leg

Main = Callable[..., SimpleNamespace]

STEPS = 6
SETTINGS: dict[str, dict[str, Any]] = {
    "airfoil": {"flow.cfl": 0.5},
    "edge_transport": {"transport.diffusivity": 2e-3},
    "diffusion": {"diffusion.source": 0.5},
    "edge_flow": {"fluid.viscosity": 0.03, "pressure.preconditioner": "jacobi"},
    "edge_flow tracked": {"pressure.rtol": 1e-5},
    "incompressible scalar": {"fluid.viscosity": 0.03, "time.scheme": "runge-kutta"},
    "staggered": {"fluid.viscosity": 0.03, "time.scheme": "runge-kutta"},
    "tsunami": {"flow.order": 1, "flow.manning": 0.01},
    "compressible in time": {"scheme.order": 1, "time.cfl": 0.4},
    "compressible local": {"time.integrator": "multigrid"},
    "lattice pull": {"lattice.streaming": "in-place", "fluid.reynolds": 60},
}  # fmt: skip
"""Other settings on the same mesh."""
FINER: dict[str, dict[str, Any]] = {
    "airfoil": {"mesh.i": 18},
    "edge_transport": {"mesh.nx": 13},
    "diffusion": {"mesh.nx": 13},
    "edge_flow": {"mesh.nx": 11},
    "incompressible scalar": {"mesh.nx": 12, "mesh.ny": 9},
    "staggered": {"mesh.nx": 20, "mesh.ny": 24},
    "staggered kept mean": {"mesh.ny": 14},
    "tsunami": {"mesh.nx": 27, "mesh.ny": 19},
    "compressible in time": {"mesh.nx": 60},
    "compressible local": {"mesh.around": 48, "mesh.outward": 14},
    "lattice pull": {"mesh.nx": 60, "mesh.ny": 40, "mesh.spacing": 0.05},
}  # fmt: skip
"""Another mesh."""
FIELDS = ("u", "v", "w", "velocity", "rho", "density", "pressure", "scalar", "T", "depth")
ROUNDED = {"staggered": 1e-14, "lattice pull": 1e-6}
"""Of the largest value: what a projection, or single precision, makes of states."""
BESIDE_PRESSURE = ("incompressible", "staggered", "edge", "lattice")


def quick(names: Iterable[str], *few: str) -> list[Any]:
    """Return names of cases, the others than some as long ones."""
    return [name if name in few else pytest.param(name, marks=pytest.mark.long) for name in names]


def started(name: str, result: Path, directory: Path, changes: dict[str, Any] | None = None, **options: Any) -> Leg:
    """Return the start of a case, with the case's own formulas taken out."""
    text, own, _ = CASES[name]
    table = {"initial": {"file": str(result)} | options.pop("initial", {})}
    return leg(text, directory, options.pop("steps", 0), own | (changes or {}) | table, **options)


def run_of(name: str, directory: Path, steps: int = STEPS, changes: dict[str, Any] | None = None) -> Leg:
    text, own, _ = CASES[name]
    return leg(text, directory, steps, own | (changes or {}))


def built(name: str, changes: dict[str, Any]) -> FlowRun[Any]:
    text, own, _ = CASES[name]
    model, application = parse_case(Document(Path("case"), changed(tomllib.loads(text), own | changes), {}))
    return application.build(model, Context("cpu", threads=1, tuning=False))


@pytest.mark.parametrize("name", quick(SETTINGS, "airfoil", "edge_transport", "incompressible scalar", "tsunami"))
def test_other_settings_on_the_same_mesh(name: str, tmp_path: Path) -> None:
    """Fields are those of the checkpoint, bit by bit where nothing has to be projected or rounded; the run goes on."""
    before = run_of(name, tmp_path / "a")
    found = started(name, tmp_path / "a" / "checkpoint.h5", tmp_path / "b", SETTINGS[name])
    assert found.iterations == 0
    for field in (name for name in FIELDS if name in before.fields):
        scale = np.abs(before.fields[field]).max()
        np.testing.assert_allclose(found.fields[field], before.fields[field], rtol=0, atol=ROUNDED.get(name, 0) * scale,
                                   err_msg=field)  # fmt: skip
    assert started(name, tmp_path / "a", tmp_path / "c", SETTINGS[name], steps=2).iterations == 2


@pytest.mark.parametrize("name", quick(FINER, "compressible in time", "edge_transport", "staggered", "tsunami"))
def test_another_mesh(name: str, tmp_path: Path) -> None:
    """Fields are near those of the result and within their bounds; of two ranks the same; the run goes on."""
    before = run_of(name, tmp_path / "a")
    found = started(name, tmp_path / "a", tmp_path / "b", FINER[name])
    for field in (one for one in FIELDS if one in before.fields and (one, "mach" in before.fields) != ("T", True)):
        low, high = before.fields[field].min(axis=0), before.fields[field].max(axis=0)
        room = 0.15 * (high - low) if field in "uvw" and name.startswith(BESIDE_PRESSURE) else 0.0
        if not (name == "tsunami" and field == "depth"):  # of another bed
            assert (found.fields[field] >= low - room - 1e-12).all(), field
            assert (found.fields[field] <= high + room + 1e-12).all(), field
        spread = np.ptp(before.fields[field], axis=0).max()
        assert np.abs(found.fields[field].mean(axis=0) - before.fields[field].mean(axis=0)).max() < 0.2 * spread + 1e-9
    assert started(name, tmp_path / "a", tmp_path / "c", FINER[name], steps=2).iterations == 2
    if not name.startswith("staggered"):
        two = run_threads(2, lambda comm: started(name, tmp_path / "a", tmp_path / "d", FINER[name], comm=comm))[0]
        for field in (name for name in FIELDS if name in found.fields):
            near = 1e-5 if name == "edge_flow" else 1e-13  # the tolerance of the pressure
            np.testing.assert_allclose(two.fields[field], found.fields[field], rtol=near, atol=near, err_msg=field)


@pytest.mark.parametrize(("coarse", "fine"), [(40, 61), (61, 40), (40, 13)])
def test_sums_of_a_gas_are_kept(coarse: int, fine: int, tmp_path: Path) -> None:
    """Mass, momentum and energy, to the last digits, finer and coarser; what is uniform stays so."""
    name, mesh = "compressible in time", {"mesh.nx": coarse, "mesh.y": [0.0, 0.05]}
    run_of(name, tmp_path, 12, mesh)
    one = built(name, mesh | {"initial": {"file": str(tmp_path)}}).flow
    other = built(name, {"mesh.nx": fine, "mesh.ny": 3, "initial": {"file": str(tmp_path)}}).flow
    size = np.abs(one.solver.totals()).max()
    np.testing.assert_allclose(other.solver.totals(), one.solver.totals(), rtol=0, atol=1e-13 * size)
    assert (other.solver.states()[:, [0, -1]] > 0).all()
    run_of(name, tmp_path / "still", 0, mesh)
    still = built(name, {"mesh.nx": fine, "initial": {"file": str(tmp_path / "still")}}).flow.solver
    states, at = still.states(), still.volumes.centres[: still.volumes.owned, 0]
    away = np.abs(at - 0.5) > 2.0 / min(coarse, fine)
    np.testing.assert_array_equal(states[away & (at < 0.5)], [[1.0, 0.0, 0.0, 1.0]] * int((away & (at < 0.5)).sum()))
    np.testing.assert_array_equal(np.unique(states[away & (at > 0.5)][:, [0, 3]], axis=0), [[0.125, 0.1]])


@pytest.mark.long
def test_a_model_of_turbulence_is_added(tmp_path: Path) -> None:
    """What the result has not begins as without it; what it has is taken."""
    wall = {"gas.viscosity": "sutherland", "flow.reynolds": 1e5, "boundary.airfoil.type": "wall"}
    before = run_of("compressible local", tmp_path, 4, wall)
    model = wall | {"scheme.turbulence": "spalart-allmaras"}
    found = started("compressible local", tmp_path, tmp_path / "b", model)
    np.testing.assert_array_equal(found.fields["rho"], before.fields["rho"])
    assert np.ptp(found.fields["nu_tilde"]) == 0.0
    assert found.fields["nu_tilde"][0] > 0.0
    again = run_of("compressible local", tmp_path / "c", 4, model)
    finer = started("compressible local", tmp_path / "c", tmp_path / "d", model | FINER["compressible local"])
    assert np.ptp(again.fields["nu_tilde"]) > 0.0
    assert finer.fields["nu_tilde"].min() >= again.fields["nu_tilde"].min()


def test_water_at_rest_stays_so(tmp_path: Path) -> None:
    """Round an island, on another mesh: the level is the same to the last digit, shores are where the bed says."""
    still = {"event": [], "initial": {}, "boundary": {}, "gauges": {}}
    run_of("tsunami", tmp_path, 1, still)
    flow = built("tsunami", FINER["tsunami"] | still | {"initial": {"file": str(tmp_path)}}).flow
    depth, bed = flow.solver.depth(), flow.fields()["bed"]
    assert (bed > 0).any()
    np.testing.assert_array_equal(depth > 0, bed < 0)
    np.testing.assert_allclose((depth + bed)[depth > 0], 0.0, atol=1e-12)
    assert np.abs(flow.solver.velocity()).max() < 1e-12


def test_what_is_not_covered(tmp_path: Path) -> None:
    """An error with how many cells and where; or the nearest values, if the case says so."""
    run_of("compressible in time", tmp_path)
    wider = {"mesh.x": [0.0, 1.5]}
    with pytest.raises(CaseError, match=r"initial.file: .* does not cover 26 of the 80 cells .* outside = \"nearest\""):
        started("compressible in time", tmp_path, tmp_path / "b", wider)
    found = started("compressible in time", tmp_path, tmp_path / "b", wider, initial={"outside": "nearest"})
    np.testing.assert_allclose(found.fields["rho"].reshape(2, -1)[:, -10:], 0.125, rtol=1e-6)


def test_time_and_steps(tmp_path: Path) -> None:
    """They begin at 0, or go on from those of the result."""
    before = built("incompressible scalar", {})
    run_of("incompressible scalar", tmp_path)
    anew = built("incompressible scalar", {"initial": {"file": str(tmp_path)}}).flow
    kept = built("incompressible scalar", {"initial": {"file": str(tmp_path), "keep_time": True}}).flow
    assert (anew.time, anew.steps) == (before.flow.time, before.flow.steps) == (0.0, 0)
    assert kept.steps == STEPS
    assert kept.time > 0.0
    found = started("edge_transport", run_path(tmp_path, "edge_transport"), tmp_path / "b", initial={"keep_time": True},
                    steps=STEPS + 2)  # fmt: skip
    assert found.iterations == STEPS + 2
    times = np.genfromtxt(tmp_path / "b" / "probes.csv", delimiter=",", names=True)["time"]
    assert times[0] > 0.0


ONE_STEP: dict[str, dict[str, Any]] = {
    "incompressible stages in time": {"pressure.rtol": 1e-12},
    "edge_flow in time": {"pressure.rtol": 1e-12},
    "staggered in time": {},
    "edge_transport in time": {"scheme.bounded": True},
}  # fmt: skip
"""Cases whose steps need nothing of the one before."""


@pytest.mark.parametrize("name", ONE_STEP)
def test_what_depends_on_the_time_is_that_of_the_kept_time(name: str, tmp_path: Path) -> None:
    """Boundaries, forces, pressures of outflows, sources: the next step is that of the run that goes on."""
    changes = ONE_STEP[name] | {"time.dt": 0.004}
    run_of(name, tmp_path, STEPS, changes)
    whole = built(name, changes)
    for _ in range(STEPS + 1):
        whole.advance()
    again = built(name, changes | {"initial": {"file": str(tmp_path), "keep_time": True}})
    again.advance()
    assert again.flow.time == pytest.approx(whole.flow.time, rel=1e-14)
    assert np.isfinite(again.residual())
    found = again.flow.fields()
    for field, values in whole.flow.fields().items():
        scale = np.abs(values).max()
        np.testing.assert_allclose(found[field], values, rtol=0, atol=1e-9 * scale, err_msg=field)


def run_path(directory: Path, name: str) -> Path:
    run_of(name, directory / name)
    return directory / name


def test_the_residual_begins_at_the_start(tmp_path: Path) -> None:
    """The first step is that of a run that goes on, and so is its residual."""
    whole = built("edge_transport", {})
    run_of("edge_transport", tmp_path)
    for _ in range(STEPS + 1):
        whole.advance()
    again = built("edge_transport", {"initial": {"file": str(tmp_path)}})
    again.advance()
    assert again.residual() == whole.residual()
    np.testing.assert_array_equal(again.fields()["scalar"], whole.fields()["scalar"])


def test_results_that_do_not_serve(tmp_path: Path) -> None:
    """The message says what is missing."""
    path = run_path(tmp_path, "edge_transport")
    with pytest.raises(CaseError, match=r"initial.file: .*checkpoint.h5: has no field 'rho'.*\(fields: scalar, "):
        started("compressible in time", path / "checkpoint.h5", tmp_path / "b")
    with pytest.raises(CaseError, match="there is no file or folder nowhere"):
        started("edge_transport", Path("nowhere"), tmp_path / "b")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaseError, match=r"empty: the folder has no checkpoint.h5, final.vtkhdf"):
        started("edge_transport", tmp_path / "empty", tmp_path / "b")
    (tmp_path / "empty" / "run.json").write_text('{"status": "diverged"}')
    (tmp_path / "empty" / "final.vtkhdf").write_bytes(b"of a run before")
    with pytest.raises(CaseError, match=r"the run is not at an end \(diverged\) and has no checkpoint.h5"):
        started("edge_transport", tmp_path / "empty", tmp_path / "b")
    with pytest.raises(CaseError, match="give only one of file and scalar"):
        started("edge_transport", path, tmp_path / "b", {"initial.scalar": 1.0}, initial={"scalar": 1.0})
    with pytest.raises(CaseError, match="outside is there but file is not"):
        leg(CASES["airfoil"][0], tmp_path / "b", 1, {"initial.outside": "nearest"})
    data = bytearray((path / "checkpoint.h5").read_bytes())
    data[len(data) // 2] ^= 1
    (path / "checkpoint.h5").write_bytes(data)
    with pytest.raises(CaseError, match=r"checkpoint.h5: .*damaged"):
        started("edge_transport", path, tmp_path / "b")


def test_files_of_fields(tmp_path: Path) -> None:
    """VTKHDF and VTU, in cells, and at the nodes of an edge flow's triangles; keep_time needs more."""
    before = built("compressible in time", {"mesh.nx": 30})
    before.advance()
    mesh, fields = before.mesh(), dict(before.flow.fields())
    for file in ("final.vtkhdf", "final.vtu"):
        write_fields(tmp_path / file, mesh, fields)
        found = started("compressible in time", tmp_path / file, tmp_path / file[6:], {"mesh.nx": 30})
        np.testing.assert_array_equal(found.fields["p"], fields["p"])
    with pytest.raises(CaseError, match="does not say how many steps were done"):
        started("compressible in time", tmp_path / "final.vtu", tmp_path / "b", initial={"keep_time": True})
    fields["p"][3] = np.nan
    write_fields(tmp_path / "final.vtu", mesh, fields)
    with pytest.raises(CaseError, match=r"p is not finite in 1 places, the first is 3"):
        started("compressible in time", tmp_path / "final.vtu", tmp_path / "b")
    nodes = box2d(8, 8, kind="triangle")
    write_fields(tmp_path / "nodes.vtu", nodes, {"u": nodes.points[:, 1], "v": 0.0 * nodes.points[:, 0]}, nodal=True)
    start = Start(tmp_path / "nodes.vtu", SelfComm())
    places = np.random.default_rng(1).random((50, 2))
    np.testing.assert_allclose(start.velocity(places), np.stack([places[:, 1], 0 * places[:, 0]], axis=1), atol=1e-14)
    assert not start.exact
    assert start.names() == ["u", "v"]


@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 5)])
def test_images(shape: tuple[int, ...], tmp_path: Path) -> None:
    """What is written is read: values cell by cell, x fastest, and where the cells are."""
    values = np.random.default_rng(2).random((*shape, len(shape))).astype(np.float32)
    fields = {"pressure": values[..., 0].astype(np.float64), "velocity": values}
    write_image(tmp_path / "final.vti", fields, origin=[1.0, 2.0, 3.0][: len(shape)], spacing=0.5)
    mesh, found = read_image(tmp_path / "final.vti")
    assert mesh.dimension == len(shape)
    np.testing.assert_array_equal(found["pressure"], fields["pressure"].ravel())
    np.testing.assert_array_equal(found["velocity"][:, : len(shape)], values.reshape(-1, len(shape)))
    places = cell_geometry(mesh)[1]
    np.testing.assert_allclose(places[1] - places[0], [0.5, 0.0, 0.0][: len(shape)], atol=1e-15)
    start = Start(tmp_path / "final.vti", SelfComm())
    np.testing.assert_array_equal(start.velocity(places), values.reshape(-1, len(shape)))
    np.testing.assert_array_equal(start.at(places, ("p",))["p"], found["pressure"])
    (tmp_path / "final.vti").write_bytes(b"<VTKFile>")
    with pytest.raises(SolverError, match=r"final\.vti: is damaged"):
        Start(tmp_path / "final.vti", SelfComm()).names()


# -------------------------------------------------------------------------------------- with the command line

BASE = """
[case]
name = "NAME"
solver = "compressible"
[mesh]
shape = "airfoil"
profile = "0012"
around = 32
outward = 10
reach = 10.0
[flow]
mach = 0.5
alpha = ALPHA
[boundary]
airfoil = { type = "slip" }
far_field = { type = "far-field" }
[forces.airfoil]
[run]
iterations = 12
threads = 1
[output]
picture = false
"""


def history(name: str) -> np.ndarray:
    return np.genfromtxt(f"results/{name}/history.csv", delimiter=",", names=True)


@pytest.mark.long
def test_the_guide(tmp_path: Path, fluxloom: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    """A polar, each angle from the one before, and the same on a finer mesh: as the guide has it."""
    monkeypatch.chdir(tmp_path)
    guide = cases(ROOT / "docs" / "guide" / "starts.md")
    polar, fine, line = guide["wing_a2.toml"], guide["wing_fine.toml"], '[initial]\nfile = "results/wing_a1"\n'
    texts = {
        "wing_a1": polar.replace(line, "").replace("wing_a2", "wing_a1").replace("alpha = 2.0", "alpha = 1.0"),
        "wing_a2": polar, "wing_fine": fine,
        "alone": fine.replace('[initial]\nfile = "results/wing_a2"\n', "").replace("wing_fine", "alone"),
    }  # fmt: skip
    for name, text in texts.items():
        Path(f"{name}.toml").write_text(text + "[output]\npicture = false\n")
        assert fluxloom("run", f"{name}.toml").code == 0, name
    lift = {name: history(name)["airfoillift"] for name in texts}
    assert lift["wing_a2"][-1] == pytest.approx(2.0 * lift["wing_a1"][-1], rel=0.05)
    assert lift["wing_a2"][0] == pytest.approx(lift["wing_a1"][-1], rel=0.2)
    assert lift["wing_fine"][0] == pytest.approx(lift["wing_a2"][-1], rel=0.1)
    assert abs(lift["alone"][0]) < 0.1 * lift["wing_a2"][-1]
    assert lift["wing_fine"][-1] == pytest.approx(lift["alone"][-1], rel=1e-2)


def test_a_rescue(tmp_path: Path, fluxloom: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has diverged has its last checkpoint; from there others start, and it goes on itself."""
    monkeypatch.chdir(tmp_path)
    right = CASES["incompressible jacobi"][0].replace('"cavity"', '"lost"').replace("= 1000", "= 30")
    right += "[checkpoint]\nevery = 1\n[output]\npicture = false\n"
    Path("lost.toml").write_text(right + "[time]\ndt = 0.25\n")
    assert fluxloom("run", "lost.toml").code == 1
    Path("other.toml").write_text(right.replace('"lost"', '"other"') + '[initial]\nfile = "results/lost"\n')
    assert fluxloom("run", "other.toml").code == 0
    Path("lost.toml").write_text(right)
    found = fluxloom("run", "lost.toml", "--allow-changes")
    assert found.code == 0, found.text
    assert "changed: time.dt: was 0.25, is 0.0" in found.text
    assert np.isfinite(history("lost")["kinetic_energy"]).all()
    assert (np.diff(history("lost")["time"]) > 0).all()


def test_allow_changes(tmp_path: Path, fluxloom: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has changed is said; the run goes on at its step with its histories; another mesh is refused."""
    monkeypatch.chdir(tmp_path)
    text = BASE.replace("NAME", "n").replace("ALPHA", "1.0") + "[checkpoint]\nevery = 5\n[history]\nevery = 1\n"
    path = Path("n.toml")
    path.write_text(text)
    assert fluxloom("run", path).code == 0
    path.write_text(text.replace("iterations = 12", "iterations = 20") + "[scheme]\norder = 1\n")
    found = fluxloom("run", path)
    assert found.code == 2
    assert "scheme.order: was 2, is 1" in found.text
    assert "--allow-changes goes on from its checkpoint" in " ".join(found.text.split())
    found = fluxloom("run", path, "--allow-changes")
    assert found.code == 0
    assert "changed: scheme.order: was 2, is 1" in found.text
    assert "resumed from step 12" in found.text
    steps = np.genfromtxt("results/n/history.csv", delimiter=",", names=True)["step"]
    np.testing.assert_array_equal(steps, np.arange(21))
    path.write_text(text.replace("around = 32", "around = 40"))
    found = fluxloom("run", path, "--allow-changes")
    assert found.code == 2
    assert "is of another mesh (mesh.around: was 32, is 40)" in " ".join(found.text.split())
    assert "[initial] file =" in " ".join(found.text.split())
    assert fluxloom("run", path, "--allow-changes", "--overwrite").code == 2


def test_allowed_changes_of_a_model(tmp_path: Path) -> None:
    """A bounded scalar more, another scheme: they begin now, at the time of the run; probes keep their lines."""
    text, changes, _ = CASES["incompressible scalar"]
    leg(text, tmp_path, 5, changes | {"checkpoint.every": 1}, killed=True)
    sides = {side: {"type": "adiabatic"} for side in ("xmin", "xmax", "ymin", "ymax")}
    more = changes | {"scalar.smoke": {"diffusivity": 0.01, "initial": "1", "boundary": sides}, "fluid.viscosity": 0.05}
    with pytest.raises(CheckpointError, match=r"scalar\.smoke"):
        leg(text, tmp_path, 8, more)
    found = leg(text, tmp_path, 8, more, allow_changes=True)
    assert found.resumed is not None
    assert found.resumed.steps == 5
    assert any(line.startswith("changed: fluid.viscosity: was 0.02, is 0.05") for line in found.resumed.told)
    rows = np.genfromtxt(tmp_path / "probes.csv", delimiter=",", names=True)
    assert len(rows) == 8
    assert (np.diff(rows["time"]) > 0).all()
