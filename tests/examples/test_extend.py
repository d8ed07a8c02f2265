"""The pages on extending Fluxloom: their files are written, imported and run as they are printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "extend"


def files_of(page: str, folder: Path) -> None:
    """Write each block that begins with the name of its file."""
    text = (PAGES / page).read_text(encoding="utf-8")
    for language, block in re.findall(r"```(python|toml)\n(.*?)```", text, re.DOTALL):
        found = re.match(r"# (\S+\.(?:py|toml))\n", block)
        if found:
            (folder / found[1]).write_text(block, encoding="utf-8")
        else:
            assert language == "toml", block  # of a pyproject.toml


def run(folder: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def density(folder: Path, case: str) -> np.ndarray:
    """Run a case of two rows of cells; return the density along them."""
    run(folder, "-m", "fluxloom", "run", case, "--output", "out", "--no-picture", "--overwrite")
    assert json.loads((folder / "out" / "run.json").read_text())["status"].startswith("end reached")
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "out" / "final.vtkhdf") as file:
        return np.asarray(file["VTKHDF/CellData/rho"])[:100]


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


def test_a_verb_and_a_benchmark(tmp_path: Path) -> None:
    files_of("verb.md", tmp_path)
    entries = re.findall(r'\[project.entry-points."([\w.]+)"\]\n(\w+) = "(.*)"', (PAGES / "verb.md").read_text("utf-8"))
    installed = tmp_path / "scales-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: scales\nVersion: 1.0\n")
    text = "\n".join(f"[{group}]\n{name} = {place}" for group, name, place in entries)
    (installed / "entry_points.txt").write_text(text)
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
from fluxloom.lbm.steps import Constants, pull
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
