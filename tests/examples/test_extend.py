"""The pages on extending Fluxloom: their files are written, imported and run as they are printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.pages import cases

PAGES = Path(__file__).resolve().parents[2] / "docs" / "extend"


def files_of(page: str, folder: Path) -> None:
    """Write each block that begins with the name of its file."""
    for name, text in cases(PAGES / page).items():
        (folder / name).write_text(text, encoding="utf-8")


def run(folder: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(folder: Path, entries: list[str]) -> None:
    """Make a folder one in which a package with entry points is installed."""
    installed = folder / "my_package-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("\n".join(entries))


def density(folder: Path, case: str) -> np.ndarray:
    """Run a case of two rows of cells; return the density along them."""
    run(folder, "-m", "fluxloom", "run", case, "--output", "out", "--no-picture", "--overwrite")
    assert json.loads((folder / "out" / "run.json").read_text())["status"].startswith("end reached")
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "out" / "final.vtkhdf") as file:
        return np.asarray(file["VTKHDF/CellData/rho"])[:100]


def centre(folder: Path, case: str) -> float:
    """Run a flow between plates; return the largest velocity."""
    run(folder, "-m", "fluxloom", "run", case, "--output", "out", "--no-picture", "--overwrite")
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "out" / "final.vtkhdf") as file:
        return float(np.asarray(file["VTKHDF/CellData/u"]).max())


def sod(x: np.ndarray) -> np.ndarray:
    from fluxloom_lab.exact.riemann import RiemannProblem

    return RiemannProblem((1.0, 0.0, 1.0), (0.125, 0.0, 0.1)).at((x - 0.5) / 0.2)[:, 0]


CENTRES = (np.arange(100) + 0.5) / 100


def test_a_flux(tmp_path: Path) -> None:
    files_of("flux.md", tmp_path)
    found = density(tmp_path, "tube.toml")
    error = np.abs(found - sod(CENTRES)).mean()
    assert error == pytest.approx(0.0085, abs=0.003)
    script = run(tmp_path, "-c", "import tube, numpy; print(*tube.flow.states()[:100, 0])")
    np.testing.assert_allclose([float(word) for word in script.split()], found, rtol=1e-12)
    roe = (tmp_path / "tube.toml").read_text().replace('{ type = "hll:HLL", widening = 1.05 }', '"roe"')
    (tmp_path / "roe.toml").write_text(roe)
    assert not np.allclose(density(tmp_path, "roe.toml"), found, rtol=1e-4)


def test_a_limiter(tmp_path: Path) -> None:
    files_of("limiter.md", tmp_path)
    found = density(tmp_path, "tube.toml")
    assert np.abs(found - sod(CENTRES)).mean() == pytest.approx(0.00474, abs=2e-4)
    assert found.min() > 0.125 - 5e-4
    assert found.max() < 1.01


def test_a_boundary_condition(tmp_path: Path) -> None:
    """The pressure follows that of slow filling; nothing passes where it is that of the room."""
    files_of("boundary.md", tmp_path)
    run(tmp_path, "-m", "fluxloom", "run", "tube.toml", "--output", "out", "--no-picture")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "out" / "final.vtkhdf") as file:
        pressure = np.asarray(file["VTKHDF/CellData/p"])
    assert pressure.mean() == pytest.approx(2.0 - np.exp(-1.4 * 0.01 * 50.0), rel=2e-3)
    still = (tmp_path / "tube.toml").read_text().replace("pressure = 2.0", "pressure = 1.0")
    (tmp_path / "still.toml").write_text(still)
    assert density(tmp_path, "still.toml") == pytest.approx(1.0, abs=1e-13)
    wrong = still.replace("permeability", "permeabilty")
    (tmp_path / "wrong.toml").write_text(wrong)
    words = [sys.executable, "-m", "fluxloom", "check", "wrong.toml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "boundary.xmin: porous:PorousWall: " in done.stderr
    assert "no key 'permeabilty'; did you mean 'permeability'?" in done.stderr


def test_a_boundary_condition_of_incompressible_flow(tmp_path: Path) -> None:
    """Slip moves the profile between plates by ``L f h / (2 nu)``; a wall that loses heat has the value that it should.

    On the reference device and two ranks too; one that lets the flow pass is refused.
    """
    files_of("boundary.md", tmp_path)
    text = (tmp_path / "plates.toml").read_text()
    (tmp_path / "walls.toml").write_text(text.replace('"slip:SlipLength"\nlength = 0.1', '"wall"'))
    assert centre(tmp_path, "plates.toml") - centre(tmp_path, "walls.toml") == pytest.approx(0.4, rel=1e-4)
    heat = """
[scalar.T]
diffusivity = 0.5
[scalar.T.boundary.ymin]
type = "loss:HeatLoss"
coefficient = 2.0
[scalar.T.boundary.ymax]
type = "value"
value = "1"
"""
    (tmp_path / "heat.toml").write_text(text.replace("end = 20.0", "end = 5.0") + heat)
    run(tmp_path, "-m", "fluxloom", "run", "heat.toml", "--output", "heat", "--no-picture")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "heat" / "final.vtkhdf") as file:
        found = np.asarray(file["VTKHDF/CellData/T"])
    y = (np.arange(8) + 0.5) / 8  # of the profile a + b y: 0.5 b = 2 a, a + b = 1
    assert np.sort(found)[::2] == pytest.approx(0.2 + 0.8 * y, abs=1e-4)
    said = run(tmp_path, "-c", """if True:
        import fluxloom as fl
        from fluxloom.fv.geometry.control_volumes import control_volumes
        from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, shared_volumes
        from fluxloom.mesh import box2d
        from fluxloom.mesh.ranks.distribute import distribute_mesh
        from fluxloom.mesh.ranks.slices import as_slice
        from fluxloom.solvers.incompressible.flow import Incompressible
        from slip import SlipLength

        MESH, SIDES = box2d(4, 6), [("xmin", "xmax")]

        def energy(context, volumes):
            sides = {"ymin": SlipLength(0.1), "ymax": SlipLength(0.2)}
            flow = Incompressible(context, volumes, 0.1, sides, force=(0.8, 0.0))
            flow.initialise((1.0, 0.0))
            for _ in range(5):
                flow.step(0.01)
            return flow.state().kinetic_energy

        def here(comm):
            part = distribute_mesh(as_slice(comm, MESH), comm, method="rcb", maps=FLOW_MAPS)
            return energy(fl.Context("cpu", threads=1, comm=comm), shared_volumes(part, SIDES))

        volumes = control_volumes(MESH, SIDES)
        print(energy(fl.Context("cpu"), volumes), energy(fl.Context("reference"), volumes), *fl.run_threads(2, here))
    """)
    energies = [float(word) for word in said.split()]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-9)
    assert 0.49 < energies[0] < 0.5
    (tmp_path / "slip.py").write_text((tmp_path / "slip.py").read_text().replace(" - through * normal", ""))
    words = [sys.executable, "-m", "fluxloom", "run", "plates.toml", "--output", "wrong", "--no-picture"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "SlipLength: of the velocity [0.7, -0.4] behind a face" in done.stderr
    assert "return what is along the face, or say open = True" in done.stderr


def test_a_model_of_eddies(tmp_path: Path) -> None:
    """It leaves a laminar flow alone, takes energy from vortices, on the reference device and two ranks too."""
    files_of("eddy_viscosity.md", tmp_path)
    text = (tmp_path / "plates.toml").read_text()
    laminar = centre(tmp_path, "plates.toml")
    assert laminar == pytest.approx(1.0, abs=1e-3)
    for name, model in (("none", '"none"'), ("smagorinsky", '"smagorinsky"')):
        (tmp_path / f"{name}.toml").write_text(text.replace('{ type = "vreman:Vreman", constant = 0.07 }', model))
    assert centre(tmp_path, "none.toml") == laminar
    assert centre(tmp_path, "smagorinsky.toml") < laminar - 3e-3
    left = [float(word) for word in run(tmp_path, "vortices.py").split()]
    assert left[1] < left[0] - 1e-3
    said = run(tmp_path, "-c", """if True:
        import fluxloom as fl
        from fluxloom.fv.geometry.control_volumes import FLOW_MAPS, shared_volumes
        from fluxloom.mesh.ranks.distribute import distribute_mesh
        from fluxloom.mesh.ranks.slices import as_slice
        from vortices import MESH, SIDES, Vreman, control_volumes, energy

        def here(comm):
            part = distribute_mesh(as_slice(comm, MESH), comm, method="rcb", maps=FLOW_MAPS)
            return energy(Vreman(), fl.Context("cpu", threads=1, comm=comm), shared_volumes(part, SIDES))

        print(energy(Vreman(), fl.Context("reference"), control_volumes(MESH, SIDES)))
        print(*fl.run_threads(2, here))
    """)
    np.testing.assert_allclose([float(word) for word in said.split()], left[1], rtol=1e-6)


def test_a_preconditioner(tmp_path: Path) -> None:
    """Fewer iterations to the same solution, in a case and in Python, on the reference device and two ranks too."""
    files_of("preconditioner.md", tmp_path)
    text = (tmp_path / "cavity.toml").read_text()
    (tmp_path / "jacobi.toml").write_text(text.replace('{ type = "neumann:Neumann", weight = 0.9 }', '"jacobi"'))
    counts = []
    for case in ("cavity.toml", "jacobi.toml"):
        run(tmp_path, "-m", "fluxloom", "run", case, "--output", case[:-5], "--no-picture")
        results = json.loads((tmp_path / case[:-5] / "run.json").read_text())["results"]
        assert results["kinetic energy"].startswith("0.014682219")
        counts.append(int(results["pressure"].split()[0]))
    assert counts[0] < 0.6 * counts[1]
    many, few = (int(word) for word in run(tmp_path, "solve.py").split())
    assert few < 0.6 * many
    said = run(tmp_path, "-c", """if True:
        import fluxloom as fl
        from solve import Jacobi, Neumann, solved
        print(*solved(Jacobi(), fl.Context("cpu")))
        print(*solved(Neumann(), fl.Context("reference")))
        for x, count in fl.run_threads(2, lambda comm: solved(Neumann(), fl.Context("cpu", threads=1, comm=comm))):
            print(x, count)
    """)
    rows = [line.split() for line in said.splitlines()]
    assert [int(row[1]) for row in rows] == [many, few, few, few]
    np.testing.assert_allclose([float(row[0]) for row in rows], float(rows[0][0]), rtol=1e-9)


def test_a_mesh_format(tmp_path: Path) -> None:
    """A channel of four quads, by the place of its format and by its suffix; a broken file."""
    files_of("mesh_format.md", tmp_path)
    points = [f"{x} {y}" for y in (0.0, 0.5, 1.0) for x in (0.0, 1.0, 2.0)]
    quads = ["0 1 4 3", "1 2 5 4", "3 4 7 6", "4 5 8 7"]
    edges = ["left 0 3", "left 3 6", "right 2 5", "right 5 8", "sides 0 1", "sides 1 2", "sides 6 7", "sides 7 8"]
    text = "\n".join(["9 4 8", *points, *quads, *edges]) + "\n"
    (tmp_path / "channel.plain").write_text(text)
    run(tmp_path, "-m", "fluxloom", "run", "channel.toml", "--output", "out", "--no-picture")
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "out" / "final.vtkhdf") as file:
        assert np.asarray(file["VTKHDF/CellData/u"]) == pytest.approx(1.0, abs=1e-6)
    install(tmp_path, ["[fluxloom.mesh_formats]", "plain = plain:PLAIN"])
    assert "4 quad" in run(tmp_path, "-m", "fluxloom", "mesh", "info", "channel.plain")
    (tmp_path / "short.plain").write_text(text.removesuffix("sides 7 8\n"))
    words = [sys.executable, "-m", "fluxloom", "mesh", "info", "short.plain"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "short.plain: the first line promises 9 points, 4 cells and 8 edges; the file ends early" in done.stderr


def test_an_output_format(tmp_path: Path) -> None:
    """A table of cells, and of points; by its place and by its name; a run anew removes what another has written."""
    files_of("output_format.md", tmp_path)
    run(tmp_path, "-m", "fluxloom", "run", "cavity.toml", "--output", "out", "--no-picture")
    head, names, *lines = (tmp_path / "out" / "final.csv").read_text().splitlines()
    assert head.startswith("# time ")
    assert float(head.removeprefix("# time ")) == pytest.approx(0.2)
    columns = np.array([[float(word) for word in line.split(",")] for line in lines])
    assert names.split(",")[:2] == ["x", "y"]
    assert columns.shape[0] == 64
    assert columns[0, :2] == pytest.approx([0.0625, 0.0625])
    assert columns[:, names.split(",").index("u")].max() > 0.1
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "final.csv" in record["files"]
    install(tmp_path, ["[fluxloom.mesh_formats]", "table = table:TABLE"])
    text = (tmp_path / "cavity.toml").read_text()
    edges = text.replace("table:TABLE", "table").replace("incompressible", "edge_flow")
    edges = edges.replace("ny = 8", 'ny = 8\nkind = "triangle"')
    (tmp_path / "edges.toml").write_text(edges)
    run(tmp_path, "-m", "fluxloom", "run", "edges.toml", "--output", "points", "--no-picture")
    assert len((tmp_path / "points" / "final.csv").read_text().splitlines()) == 2 + 81
    (tmp_path / "vtu.toml").write_text(text.replace("table:TABLE", "vtu"))
    run(tmp_path, "-m", "fluxloom", "run", "vtu.toml", "--output", "out", "--no-picture", "--overwrite")
    assert not (tmp_path / "out" / "final.csv").exists()
    (tmp_path / "wrong.toml").write_text(text.replace("table:TABLE", "tabel"))
    words = [sys.executable, "-m", "fluxloom", "check", "wrong.toml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "output.format: unknown format 'tabel'; did you mean 'table'" in done.stderr


PLACES = {
    "flux.md": "fluxloom.fv.compressible.fluxes:Flux",
    "limiter.md": "fluxloom.fv.gradients.limiters:Limiter",
    "boundary.md": "fluxloom.fv.compressible.boundary:BoundaryCondition",
    "eddy_viscosity.md": "fluxloom.fv.incompressible.eddy_viscosity:EddyViscosity",
    "preconditioner.md": "fluxloom.linalg.operators:Preconditioner",
}
"""Pages and the families that they are about."""


def test_members_of_packages_have_names(tmp_path: Path) -> None:
    """What a page says of names and entry points: the class registers itself, and is found by its name."""
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    entries, wanted = [], []
    for page, family in PLACES.items():
        files_of(page, tmp_path)
        text = (PAGES / page).read_text(encoding="utf-8")
        group, name, place = re.findall(r'\[project.entry-points."([\w.]+)"\]\n([\w-]+) = "(.*)"', text)[0]
        module, _, kind = place.removeprefix("my_package.").partition(":")
        code = (tmp_path / f"{module}.py").read_text(encoding="utf-8")
        named = re.sub(rf"class {kind}\((fl\.\w+)\)", rf'class {kind}(\1, name="{name}")', code)
        assert named != code
        (package / f"{module}.py").write_text(named, encoding="utf-8")
        entries.append(f"[{group}]\n{name} = {place}")
        wanted.append((family, name, kind))
    install(tmp_path, entries)
    said = run(tmp_path, "-c", f"""if True:
        from fluxloom.core.registry import load_object
        from fluxloom.core.strategies import strategy_class
        for place, name, kind in {wanted!r}:
            family = load_object(place)
            print(strategy_class(family, name).__name__, family.choices.names().count(name))
    """)
    assert said.split("\n")[:-1] == [f"{kind} 1" for _, _, kind in wanted]
    assert '"vreman"' in run(tmp_path, "-m", "fluxloom", "check", "--keys", "edge_flow")


def test_a_verb_and_a_benchmark(tmp_path: Path) -> None:
    files_of("verb.md", tmp_path)
    entries = re.findall(r'\[project.entry-points."([\w.]+)"\]\n(\w+) = "(.*)"', (PAGES / "verb.md").read_text("utf-8"))
    install(tmp_path, [f"[{group}]\n{name} = {place}" for group, name, place in entries])
    assert "weigh" in run(tmp_path, "-m", "fluxloom", "--help")
    run(tmp_path, "-m", "fluxloom", "mesh", "generate", "box3d", "box.su2", "--cells", "3,2,2", "--lengths", "3,2,1")
    assert run(tmp_path, "-m", "fluxloom", "weigh", "box.su2", "--density", "2.5") == "15\n"
    assert "--cells N" in run(tmp_path, "-m", "fluxloom", "bench", "waves", "--help")
    run(tmp_path, "-m", "fluxloom", "bench", "waves", "--cells", "50", "--device", "reference", "--json", "waves.json")
    record = json.loads((tmp_path / "waves.json").read_text())
    assert record["metrics"] == {"sum": 100.0}
    assert record["command"].startswith("fluxloom bench waves --cells 50")


def test_a_turbulence_model(tmp_path: Path) -> None:
    """In turbulent flow the model without f_t2 is ours."""
    files_of("turbulence.md", tmp_path)
    h5py = pytest.importorskip("h5py")
    text, found = (tmp_path / "couette.toml").read_text(), {}
    ours = re.sub(r"turbulence = \{.*\}", 'turbulence = "spalart-allmaras"', text)
    for name, case in ("own", text), ("ours", ours):
        (tmp_path / f"{name}.toml").write_text(case)
        run(tmp_path, "-m", "fluxloom", "run", f"{name}.toml", "--output", name, "--no-picture")
        assert json.loads((tmp_path / name / "run.json").read_text())["status"].startswith("converged")
        with h5py.File(tmp_path / name / "final.vtkhdf") as file:
            found[name] = np.asarray(file["VTKHDF/CellData/nu_tilde"])
    assert found["ours"].max() > 20 * 2e-5
    assert found["own"].max() == pytest.approx(found["ours"].max(), rel=0.02)


def test_a_formula_that_has_changed_makes_another_case(tmp_path: Path) -> None:
    files_of("flux.md", tmp_path)
    words = [sys.executable, "-m", "fluxloom", "run", "tube.toml", "--output", "out", "--no-picture"]
    run(tmp_path, *words[1:])
    formula = tmp_path / "hll.py"
    formula.write_text(formula.read_text().replace("slow * fast * jump", "1.01 * slow * fast * jump"))
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "hll:HLL" in done.stderr


def test_a_collision(tmp_path: Path) -> None:
    """The vortex decays as it should on file and in Python; without strength it is BGK, and the force is all there."""
    files_of("collision.md", tmp_path)
    run(tmp_path, "-m", "fluxloom", "run", "vortex.toml", "--output", "out", "--no-picture", "--overwrite")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"].startswith("end reached")
    names, *rows = (line.split(",") for line in (tmp_path / "out" / "history.csv").read_text().splitlines())
    history = np.array(rows, dtype=float)
    time, energy = (history[:, names.index(name)] for name in ("time", "kinetic_energy"))
    later = time > 0.8  # it starts in equilibrium, without stresses
    assert -np.polyfit(time[later], np.log(energy[later]), 1)[0] == pytest.approx(4 * 0.05, rel=1e-3)
    script = run(tmp_path, "-c", SCRIPT)
    decay, limit, entropic, gained = (float(word) for word in script.split())
    assert decay == pytest.approx(1.0, abs=1e-3)
    assert limit < 1e-14
    assert entropic > 1e-6
    assert gained < 1e-15


SCRIPT = """
import numpy as np
import fluxloom as fl
from entropic import Entropic
from fluxloom.lbm.streaming.steps import Constants, pull
from vortex import decay

def collide(operator, g, force=None):
    f, out = np.zeros((9, 9)), np.zeros(9)
    np.fill_diagonal(f, g)
    pull(f, None, out, **Constants(fl.D2Q9, operator, 0.05, "float64", force).of(pull))
    return out

g, c = 0.02 * np.random.default_rng(3).standard_normal(9), np.array(fl.D2Q9.velocities)
bgk = collide(fl.BGK(), g)
forced = collide(Entropic(), g, (0.01, -0.02))
off = [abs(collide(Entropic(0.0), g) - bgk).max(), abs(collide(Entropic(), g) - bgk).max()]
print(decay, *off, max(abs(forced.sum() - g.sum()), abs((forced - g) @ c - [0.01, -0.02]).max()))
"""
