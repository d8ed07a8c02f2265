"""What a command and the first line of a script import, and what they do not; names and kernels that are read late."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import fluxloom
import fluxloom_lab
from fluxloom.core.errors import KernelError
from fluxloom.kernel.frontend import Func, Kernel

ROOT = Path(fluxloom.__file__).parent
NO_VERBS = """
import fluxloom.core.registry as registry
asked = registry.entry_points
registry.entry_points = lambda *, group: 1 / 0 if group == "fluxloom.commands" else asked(group=group)
"""
LIST = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"

TUBE = """
[case]
name = "tube"
solver = "compressible"
[mesh]
nx = 12
ny = 2
[initial]
left = [1.0, 0.0, 0.0, 1.0]
right = [0.125, 0.0, 0.0, 0.1]
at = 0.5
[boundary.xmin]
type = "slip"
[boundary.xmax]
type = "slip"
[boundary.ymin]
type = "slip"
[boundary.ymax]
type = "slip"
[time]
end = 0.2
cfl = CFL
[run]
iterations = 3
device = "reference"
"""


def python(*lines: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run lines of Python in a process of their own."""
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def modules(*lines: str, folder: Path) -> set[str]:
    """Return what some lines import."""
    done = python(*lines, LIST, folder=folder)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def below(found: set[str], *names: str) -> list[str]:
    """Return the modules that are one of some packages, or in one."""
    return sorted(item for item in found if any(item == name or item.startswith(f"{name}.") for name in names))


def test_import_fluxloom_is_light(tmp_path: Path) -> None:
    found = modules("import fluxloom", folder=tmp_path)
    rooms = "codegen device toolchain comm graph dsl mesh linalg fv solvers cases cli"
    assert not below(found, *(f"fluxloom.{room}" for room in rooms.split()))
    assert not below(found, "scipy", "matplotlib", "h5py", "mpi4py", "pydantic", "typer", "rich")


def test_an_explicit_run_imports_its_own_solver(tmp_path: Path) -> None:
    (tmp_path / "tube.toml").write_text(TUBE.replace("CFL", "0.5"))
    command = ["run", "tube.toml", "-o", "out", "--no-picture", "-n", "3"]
    main = "from fluxloom.cli.main import main"
    found = modules(NO_VERBS, main, f"assert main({command!r}) == 0", folder=tmp_path)
    assert (tmp_path / "out" / "final.vtkhdf").is_file()
    assert "fluxloom.solvers.compressible.flow" in found
    solvers = "compressible.implicit compressible.multigrid incompressible lattice staggered edges shallow"
    assert not below(found, *(f"fluxloom.solvers.{name}" for name in solvers.split()))
    assert not below(found, "fluxloom_lab", "fluxloom.cli.verbs.mesh", "fluxloom.lbm")
    assert not below(found, "scipy", "matplotlib", "mpi4py", "meshio", "gmsh", "rich.progress")
    assert not below(found - modules("import rich.console", folder=tmp_path), "rich.table")  # Rich before 15 takes it
    rooms = "tune plan.work ranks.exchange ranks.decompose run.hybrid checkpoint.state"
    assert not below(found, *(f"fluxloom.dsl.{name}" for name in rooms.split()))
    late = ("fluxloom.cli.runs.startup", "fluxloom.mesh.generate.gmsh_session", "fluxloom.mesh.ranks.wall_distance")
    assert not below(found, *late)
    others = """
        comm.threads comm.store codegen.items.kernels mesh.generate.gmsh_mesh mesh.generate.cascade mesh.generate.naca
        values.fluctuation values.given_on linalg run.stall monitors"""
    assert not below(found, *(f"fluxloom.{name}" for name in others.split()))
    doors = [name for name in below(found, "fluxloom") if (ROOT.parent / name.replace(".", "/")).is_dir()]
    assert len(below(found, "fluxloom")) - len(doors) <= 200  # doors of rooms hold no code


def test_a_verb_imports_no_other_and_help_lists_all(tmp_path: Path) -> None:
    main = "from fluxloom.cli.main import main"
    found = modules(NO_VERBS, main, "main(['devices', '--help'])", folder=tmp_path)
    assert below(found, "fluxloom.cli.verbs.devices")
    assert not below(found, "fluxloom.cli.verbs.run", "fluxloom_lab")
    told = python(main, "main(['--help'])", folder=tmp_path).stdout
    verbs = ("run", "check", "codegen", "tune", "bench", "lab", "verify", "plot", "doctor", "devices", "mesh")
    assert all(f"{verb} " in told for verb in verbs)
    wrong = python(main, "main(['runn', 'case.toml'])", folder=tmp_path)
    assert "No such command 'runn'" in wrong.stderr


# ------------------------------------------------------------------------------ names that are imported late


@pytest.mark.parametrize("package", ["fluxloom", "fluxloom.comm", "fluxloom.graph", "fluxloom.mesh", "fluxloom.linalg"])
def test_names_for_checkers_of_types_are_those_at_run_time(package: str) -> None:
    module = importlib.import_module(package)
    tree = ast.parse(Path(str(module.__file__)).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    typed = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for item in node.names:
            typed[item.asname or item.name] = (str(node.module), item.name)
    assert set(typed) == set(vars(module)["_places"])
    assert set(typed) <= set(dir(module))
    for name, (place, theirs) in typed.items():
        home = importlib.import_module(place)
        if f"{place}.{theirs}" in sys.modules and not hasattr(home, theirs):
            importlib.import_module(f"{place}.{theirs}")
        assert getattr(module, name) is getattr(home, theirs)


def test_modules_do_not_hide_names(tmp_path: Path) -> None:
    """``fluxloom.kernel`` and ``fluxloom.mesh.quality`` are packages, and the public names are others."""
    done = python(
        "import fluxloom as fl, fluxloom.kernel.ir, fluxloom.mesh.quality.check, fluxloom.linalg.matrix.reorder",
        "assert callable(fl.kernel) and callable(fl.mesh.quality) and callable(fluxloom.linalg.reorder)",
        "from fluxloom.mesh.quality.measures import quality",
        "assert fl.mesh.quality is quality",
        "from fluxloom import *",
        "assert Chain is fl.Chain and kernel is fl.kernel and 'scipy' not in __import__('sys').modules",
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="'fluxloom' has no attribute 'Lop'"):
        getattr(fluxloom, "Lop")
    with pytest.raises(ImportError, match="cannot import name 'Lop'"):
        exec("from fluxloom import Lop")


# -------------------------------------------------------------------------------------- kernels that are read late


def test_every_kernel_of_the_package_is_right() -> None:
    """They are read when they are first used: what a user hears when his is defined, ours have to pass here."""
    checked = 0
    for package in (fluxloom, fluxloom_lab):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for item in vars(module).values():
                if isinstance(item, (Kernel, Func)) and item.function.__module__ == found.name:
                    item.check()
                    checked += 1
    assert checked > 400


def test_the_source_is_that_of_the_time_of_decoration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be edited between its import and the first use of a kernel in it."""
    path = tmp_path / "trial.py"
    head = "from fluxloom.core.access import Read, Write\nfrom fluxloom.kernel.frontend import kernel\n\n\n"
    path.write_text(f"{head}@kernel\ndef old(u: Read, v: Write):\n    v[0] = 2.0 * u[0]\n")
    spec = importlib.util.spec_from_file_location("fluxloom.trial", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text(f"{head}# another line\n@kernel\ndef new(a: Read, b: Read, c: Write):\n    c[0] = a[0] + b[0]\n")
    assert [item.name for item in module.old.parameters] == ["u", "v"]
    assert module.old.source.line(module.old.line) == "def old(u: Read, v: Write):"

    path.write_text(f"{head}@kernel\ndef bad(u: Read, v: Write):\n    u[0] = v[0]\n")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(KernelError, match=r"(?s)trial.py:7:.*\^"):
        module.bad.check()


def test_the_kernel_of_a_user_is_checked_when_it_is_defined(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import fluxloom as fl\nfrom fluxloom import Read\n\n\n@fl.kernel\ndef wrong(q: Read):\n    q[0] = 0.0\n"
    )
    done = python("import mine", folder=tmp_path)
    assert done.returncode == 1
    assert "mine.py:7: 'q' is Read but is assigned" in done.stderr
    assert "\n        q[0] = 0.0\n        ^\n" in done.stderr or "    q[0] = 0.0\n    ^\n" in done.stderr


# ------------------------------------------------------------------------------------------------------ warnings


VERB = """
import sys, typer, warnings
import numpy as np
from fluxloom.cli.verbs import doctor
from fluxloom.core.advice import warn
from fluxloom.dsl.checkpoint.checkpoint import CheckpointWarning

def command() -> None:
    \"""Warn.\"""
    warn("the disk is full.\\n  The run goes on", CheckpointWarning)
    warnings.warn("of another package", RuntimeWarning)
    np.full(2, 1e308) * 10.0

doctor.command = command
from fluxloom.cli.main import main
sys.exit(main(["doctor"]))
"""


def test_warnings_of_the_command_line_are_one_line(tmp_path: Path) -> None:
    done = python(VERB, folder=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["warning: the disk is full. The run goes on", "warning: of another package"]


def test_warnings_of_arithmetic_are_there_for_who_asks(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", VERB], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "warning: overflow encountered in multiply"


def test_a_warning_points_at_the_program_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(
        "import fluxloom as fl\nfrom fluxloom.lbm.lattices import D2Q9\n\n"
        "fl.LatticeBoltzmann(fl.Context('reference'), (4, 6), viscosity=1e-7, lattice=D2Q9)\n"
    )
    done = subprocess.run(
        [sys.executable, "flow.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert "flow.py:4: RuntimeWarning: with a viscosity of 1e-07" in done.stderr
    assert str(ROOT) not in done.stderr
