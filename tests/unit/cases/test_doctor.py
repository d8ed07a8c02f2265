"""`doctor` says what a run finds: packages that are there and broken, launchers, extras."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fluxloom.core.errors import CommError
from fluxloom.machine import probe
from fluxloom.machine.probe import State
from fluxloom.machine.ranks import Starter

ROOT = Path(__file__).resolve().parents[3]


def test_every_extra_is_listed() -> None:
    given = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = " ".join(f"{row[2]} {row[3]}" for row in probe._PACKAGES)
    assert [extra for extra in given if extra != "all" and extra not in listed.split()] == []


BROKEN = {
    "gmsh": "raise OSError('libGLU.so.1: cannot open shared object file: No such file or directory')",
    "scipy": "",
    "scipy/sparse": "raise ImportError('numpy.core.multiarray failed to import')",
    "matplotlib": "__version__ = '3'",
    "h5py": "import os; os.kill(os.getpid(), 11)",
    "meshio": "import sys; print('Traceback'); sys.exit('not here')",
}


@pytest.mark.parametrize(
    ("module", "said", "state"),
    [
        ("gmsh", "OSError: libGLU.so.1", State.FAULTY),
        ("scipy", "ImportError: numpy.core.multiarray failed", State.BROKEN),
        ("matplotlib", "No module named 'matplotlib.figure'", State.FAULTY),
        ("h5py", "the process ended with signal 11", State.FAULTY),
        ("meshio", "the process ended with status 1", State.FAULTY),
    ],
)
def test_broken_packages_are_not_ok(
    module: str, said: str, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in BROKEN.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text + "\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(probe, "find_spec", lambda _name: True)
    row = next(row for row in probe._PACKAGES if row[0] == module)
    found = probe._package(*row)
    assert (found.state, said in found.text) == (state, True), found
    assert f"fluxloom[{row[2]}]" in found.advice


def test_the_command_names_them(tmp_path: Path) -> None:
    """A whole package whose libraries are missing, and one that is half there, before those of the environment."""
    for name in ("gmsh", "matplotlib"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(BROKEN[name] + "\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-m", "fluxloom", "doctor", "--no-bandwidth"], cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    state = {words[1]: words[0] for line in done.stdout.splitlines() if len(words := line.split(None, 2)) == 3}
    assert (state["gmsh"], state["matplotlib"], state["scipy"]) == ("faulty", "faulty", "ok"), done.stdout
    assert "libglu1-mesa" in done.stdout
    assert done.returncode == 0


def test_ranks_are_started_as_runs_start_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher of another MPI that comes first in the search path is no fault: runs do not take it."""
    launcher = tmp_path / "mine"
    launcher.write_text("#!/bin/sh\necho 2\necho 2\n")
    other = tmp_path / "mpiexec"
    other.write_text("#!/bin/sh\nexit 1\n")
    for file in (launcher, other):
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(probe, "find_starter", lambda: Starter(str(launcher), "MPICH"))
    (found,) = probe._mpi()
    assert found.state is State.GOOD
    assert str(launcher) in found.text
    launcher.write_text("#!/bin/sh\nprintf '22\\n\\n'\n")  # Python without buffers writes ends of lines on their own
    assert probe._mpi()[0].state is State.GOOD
    launcher.write_text("#!/bin/sh\necho 1\necho 1\n")
    (found,) = probe._mpi()
    assert (found.state, "did not find each other" in found.text) == (State.FAULTY, True)

    def none() -> Starter:
        raise CommError("no mpiexec for the MPI library of mpi4py")

    monkeypatch.setattr(probe, "find_starter", none)
    (found,) = probe._mpi()
    assert found.state is not State.GOOD
    assert "no mpiexec for the MPI library" in found.text
