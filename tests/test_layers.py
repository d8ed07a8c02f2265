"""The layers: a module imports only what lies below it.

Every import of every module counts, those inside functions and under ``TYPE_CHECKING`` too. The rules are
the three tables below; the tests at the end of this file show that each rule can fail.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from textwrap import dedent

import pytest

from tests.source_tree import LABORATORY, PACKAGE, ROOT, Import, imports_of, read_package, walk

LAYERS = {
    "core": 0,
    "kernel": 1, "perf": 1, "toolchain": 1,
    "codegen": 2, "device": 2, "comm": 2, "graph": 2,
    "dsl": 3,
    "mesh": 4, "linalg": 4, "values": 4,
    "fv": 5, "fe": 5, "lbm": 5,
    "solvers": 6,
    "run": 7,
    "flows": 8, "monitors": 8, "machine": 8,
    "cases": 9,
    "cli": 10,
}  # fmt: skip
LABORATORY_LAYERS = {
    "options": 0,
    "exact": 0,
    "formats": 0, "strategies": 0,
    "problems": 1,
    "studies": 2,
    "attack": 3, "bench": 3, "verify": 3, "peers": 3,  # may import each other
    "cli": 4,
}  # fmt: skip
FACADE = frozenset({PACKAGE, f"{PACKAGE}.__main__"})  # may import every layer

APP_ONLY = frozenset({"pydantic", "pydantic_core", "typer", "rich"})  # pydantic comes with pydantic_core
OPTIONAL = frozenset({
    "cupy", "cupyx", "cuda", "pyopencl", "mpi4py", "h5py", "meshio", "gmsh", "pymetis", "matplotlib", "pyvista",
    "vtk", "pyfftw", "pyvkfft", "mkl_fft", "pyamg", "PIL", "ziglang", "KratosMultiphysics",
    "trimesh", "manifold3d", "imageio_ffmpeg", "lbmpy", "pystencils", "xlb", "jax", "warp",
})  # fmt: skip
OPTIONAL_IN = frozenset({
    "device", "comm", "mesh", "run", "flows", "monitors", "machine", "cases", "cli", "linalg", "graph", "lbm",
})  # fmt: skip
SCIPY_LOCAL_FROM, SCIPY_FROM = 2, 4
FOREIGN = frozenset(f"{LABORATORY}.peers.{name}" for name in ("kratos_peer", "lbm_peer_lbmpy", "lbm_peer_xlb"))
"""Programs of interpreters that have what they compare with."""

DEVICE_NAMES = ("cuda", "opencl", "nvrtc", "openmp")  # anywhere in a word, in any case
NO_DEVICE_NAMES_IN = range(4, 7)
NUMERICS = tuple(f"{PACKAGE}.{room}." for room in ("fv", "fe", "lbm", "linalg", "solvers", "flows"))
DEVICE_CODE = (f"{PACKAGE}.linalg.direct.", f"{PACKAGE}.lbm.immersed.")  # primitives: other text for work items
TUNED = frozenset({"block", "lanes", "registers"})
ROOM_FILES = 20


# ------------------------------------------------------------------------------------------ the rules


def owner(module: str) -> str:
    """Return the layer's package that a module belongs to: ``fluxloom.mesh.io.su2`` -> ``mesh``."""
    return module.split(".")[1] if "." in module else ""


def complaint(name: str, item: Import) -> str:
    """Return what is wrong with one import of the module ``name``, or an empty string."""
    first = item.target.split(".")[0]
    if first == PACKAGE:
        return "" if name in FACADE else inner_complaint(name, item.target)
    if first == LABORATORY:
        return "imports the laboratory, which the package does not know: verbs of it are found as entry points"
    if first == "?":
        return "" if owner(name) == "core" or name in FACADE else "imports a module by a computed name"
    if first in sys.stdlib_module_names or first == "numpy":
        return ""
    return outer_complaint(name, first, item.when)


def inner_complaint(name: str, target: str) -> str:
    """Apply the layers to an import inside the package."""
    if target in FACADE:
        return "imports the whole package: name the module that is meant"
    mine, other = owner(name), owner(target)
    if other not in LAYERS:
        return f"imports {target}, which belongs to no layer"
    if mine == other or LAYERS[mine] > LAYERS[other]:
        return ""
    kind = "a sibling" if LAYERS[mine] == LAYERS[other] else f"a higher layer ({LAYERS[other]})"
    return f"layer {LAYERS[mine]} ({mine}) imports {target} of {kind}"


def laboratory_complaint(name: str, item: Import) -> str:
    """Apply the rules of the laboratory: it may import the whole package, and of itself what lies lower."""
    first = item.target.split(".")[0]
    if first == LABORATORY:
        mine, other = LABORATORY_LAYERS[owner(name)], LABORATORY_LAYERS.get(owner(item.target), -1)
        return "" if 0 <= other <= mine else f"imports {item.target}, which is above"
    if first in {PACKAGE, "numpy", "scipy", "?"} | APP_ONLY or first in sys.stdlib_module_names:
        return ""
    if first not in OPTIONAL:
        return f"imports {first}, which is no dependency of this package"
    return "" if item.when != "import time" or name in FOREIGN else f"imports the optional {first} at import time"


def laboratory_violations(sources: dict[str, str], packages: frozenset[str]) -> list[str]:
    """Return every breach of the rules of the laboratory."""
    modules, found, edges = frozenset(sources), [], {}
    for name, source in sources.items():
        if name == LABORATORY:
            continue
        if owner(name) not in LABORATORY_LAYERS:
            found.append(f"{name}: belongs to no room of the laboratory; add it to LABORATORY_LAYERS")
            continue
        items = imports_of(name, source, ast.parse(source, filename=name), name in packages, modules)
        found += [f"{name}:{item.line}: {text}" for item in items if (text := laboratory_complaint(name, item))]
        edges[name] = {item.target for item in items if item.when == "import time"} & modules - {name}
    return found + [f"import cycle: {' -> '.join(cycle)}" for cycle in cycles(edges)]


def names_laboratory(source: str) -> Iterator[int]:
    """Yield the lines of strings that name a module of the laboratory, as ``load_object`` would take them."""
    if f"{LABORATORY}." not in source:
        return
    for node in walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(f"{LABORATORY}."):
            yield node.lineno


def outer_complaint(name: str, first: str, when: str) -> str:
    """Apply the rules for packages of other people."""
    mine = owner(name)
    layer = -1 if name in FACADE else LAYERS[mine]
    if first == "scipy":
        needed = SCIPY_FROM if when == "import time" else SCIPY_LOCAL_FROM
        return "" if layer >= needed else f"imports scipy {when}, below layer {needed}"
    if first in APP_ONLY:
        return "" if mine in ("cases", "cli", "machine") else f"imports {first}, which only cases/ and cli/ may"
    if first not in OPTIONAL:
        return f"imports {first}, which is no dependency of this package"
    if first == "ziglang" and mine == "toolchain":
        return "" if when != "import time" else f"imports the optional {first} at import time"
    if mine not in OPTIONAL_IN:
        return f"imports the optional {first} outside {', '.join(sorted(OPTIONAL_IN))}"
    return "" if when != "import time" else f"imports the optional {first} at import time"


def violations(sources: dict[str, str], packages: frozenset[str]) -> list[str]:
    """Return every breach of the layers, one readable line each."""
    modules = frozenset(sources)
    found, edges = [], {}
    for name, source in sources.items():
        if name not in FACADE and owner(name) not in LAYERS:
            found.append(f"{name}: belongs to no layer; add its package to LAYERS")
            continue
        items = imports_of(name, source, ast.parse(source, filename=name), name in packages, modules)
        found += [f"{name}:{item.line}: {text}" for item in items if (text := complaint(name, item))]
        found += [f"{name}:{line}: names a module of the laboratory" for line in names_laboratory(source)]
        edges[name] = {item.target for item in items if item.when == "import time"} & modules - {name}
        if name not in FACADE and LAYERS[owner(name)] in NO_DEVICE_NAMES_IN:
            found += [f"{name}:{line}: names the device {word!r}" for line, word in device_names(source)]
        if name.startswith(NUMERICS) and not name.startswith(DEVICE_CODE):
            found += [f"{name}:{line}: {text}, which the loop layer decides" for line, text in schedules(source)]
    return found + [f"import cycle: {' -> '.join(cycle)}" for cycle in cycles(edges)]


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return one closed path for each back edge of a depth-first walk: empty means no cycle."""
    found: list[list[str]] = []
    done: set[str] = set()

    def walk(node: str, path: list[str]) -> None:
        if node in path:
            found.append([*path[path.index(node) :], node])
        elif node not in done:
            for target in sorted(edges.get(node, ())):
                walk(target, [*path, node])
            done.add(node)

    for node in sorted(edges):
        walk(node, [])
    return found


def device_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each device in an identifier or a string that is no docstring."""
    text = source.lower()
    if not any(name in text for name in DEVICE_NAMES):
        return
    tree = ast.parse(source)
    prose = {id(node.value) for node in walk(tree) if isinstance(node, ast.Expr)}
    for node in walk(tree):
        if id(node) in prose and isinstance(node, ast.Constant):
            continue
        words: list[object] = []
        for _, value in ast.iter_fields(node):
            words += value if isinstance(value, list) else [value]
        for name in DEVICE_NAMES:
            if any(isinstance(word, str) and name in word.lower() for word in words):
                yield getattr(node, "lineno", 0), name


def schedules(source: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of choices by the kind of a device, and of numbers that a schedule leaves to the cost model."""
    for node in walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("device.items"):
            yield node.lineno, "asks for work items"
        elif isinstance(node, ast.keyword) and node.arg in TUNED and isinstance(node.value, ast.Constant):
            yield node.value.lineno, f"sets {node.arg}={node.value.value!r}"


# --------------------------------------------------------------------------------- the package itself


def test_modules_import_only_lower_layers() -> None:
    """No module of the package breaks the layers."""
    sources, packages = read_package(ROOT)
    assert sources, "no modules found"
    found = violations(sources, packages)
    assert not found, "\n".join(found)


def rooms(sources: dict[str, str], packages: frozenset[str]) -> list[str]:
    """Return folders with too many files, and circles of folders: every import counts, those for types too."""
    modules, sizes, edges = frozenset(sources), Counter[str](), {}
    for name, source in sources.items():
        room = name if name in packages else name.rpartition(".")[0]
        sizes[room] += 1
        if name not in packages:
            items = imports_of(name, source, ast.parse(source, filename=name), False, modules)
            inner = {item.target for item in items} & modules - packages
            edges.setdefault(room, set()).update({other.rpartition(".")[0] for other in inner} - {room})
    found = [f"{room}: {size} files, at most {ROOM_FILES}" for room, size in sorted(sizes.items()) if size > ROOM_FILES]
    return found + [f"circle of rooms: {' -> '.join(circle)}" for circle in cycles(edges)]


def test_rooms_are_small_and_in_order() -> None:
    """No folder of either package is crowded, and none of the package is in a circle; benches and peers may be."""
    found = rooms(*read_package(ROOT))
    found += [line for line in rooms(*read_package(ROOT, LABORATORY)) if "files" in line]
    assert not found, "\n".join(found)


def test_rooms_that_need_each_other_are_found() -> None:
    """A circle of folders counts, though no two modules import each other; so does a crowd."""
    circle = {"p.a.x": "from p.b.x import f", "p.b.x": "", "p.b.y": "def g():\n    from p.a.z import h", "p.a.z": ""}
    assert rooms(circle, frozenset()) == ["circle of rooms: p.a -> p.b -> p.a"]
    assert rooms({f"p.x{k}": "" for k in range(ROOM_FILES + 1)}, frozenset()) == ["p: 21 files, at most 20"]


def test_the_layers_are_those_of_the_page() -> None:
    """`CONTRIBUTING.md` lists them, and each is there."""
    rows = re.findall(r"(?m)^\| (\d+) \| (`.*?`) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert {room: int(layer) for layer, rooms in rows for room in re.findall(r"\w+", rooms)} == LAYERS
    assert all((ROOT / PACKAGE / room / "__init__.py").exists() for room in LAYERS)


def test_laboratory_keeps_to_its_rooms() -> None:
    """No module of the laboratory breaks its rules, and none is missing a room."""
    sources, packages = read_package(ROOT, LABORATORY)
    assert len(sources) > 100, "no modules found"
    found = laboratory_violations(sources, packages)
    assert not found, "\n".join(found)


def test_import_needs_numpy_alone() -> None:
    """``import fluxloom`` works where no other package is installed."""
    if not (ROOT / PACKAGE / "__init__.py").exists():
        pytest.skip("the package has no __init__.py")
    program = dedent("""
        import sys

        class OnlyNumpy:
            def find_spec(self, name, path=None, target=None):
                first = name.split(".")[0]
                if first not in sys.stdlib_module_names and first not in ("numpy", "fluxloom"):
                    raise ModuleNotFoundError(f"import fluxloom needs {name}", name=name)

        import numpy
        sys.meta_path.insert(0, OnlyNumpy())
        import fluxloom
    """)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# ----------------------------------------------------------------------------- the checker can fail


def check(**modules: str) -> list[str]:
    """Run the checker on made-up modules; ``__`` in a keyword stands for a dot."""
    sources = {f"{PACKAGE}.{name.replace('__', '.')}": dedent(text) for name, text in modules.items()}
    sources = {name.removesuffix(".init"): text for name, text in sources.items()}
    packages = frozenset(name for name in sources if any(other.startswith(name + ".") for other in sources))
    return violations(sources, packages)


TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("core__errors", "import fluxloom.dsl.run.loop", "higher layer (3)"),
        ("codegen__printer", "def f():\n    from fluxloom.dsl import loop", "higher layer (3)"),
        ("codegen__printer", "from ..device.cpu import build", "of a sibling"),
        ("fv__flux", f"{TYPES}    from fluxloom.lbm import euler", "of a sibling"),
        ("solvers__euler", "importlib.import_module('fluxloom.cases.files.case')", "higher layer (9)"),
        ("dsl__loop", "from importlib import import_module\nimport_module(name)", "computed name"),
        ("fv__flux", "import fluxloom", "whole package"),
        ("mesh__mesh", "from fluxloom import Loop", "whole package"),
        ("fv__flux", "from fluxloom.extra import thing", "no layer"),
        ("extra__thing", "", "no layer"),
        ("device__cuda", "import cupy", "at import time"),
        ("device__cuda", "try:\n    import cupy\nexcept ImportError:\n    cupy = None", "at import time"),
        ("fv__flux", "def f():\n    import cupy", "outside"),
        ("kernel__check", "def f():\n    import scipy.sparse", "below layer 2"),
        ("graph__colour", "import scipy.sparse", "below layer 4"),
        ("mesh__mesh", "import rich", "only cases/ and cli/"),
        ("cases__case", "import pandas", "no dependency"),
        ("cli__run", "def f():\n    from fluxloom_lab.bench import lbm", "imports the laboratory"),
        ("cli__run", "load_object('fluxloom_lab.cli.bench:command')", "names a module of the laboratory"),
        ("linalg__krylov", "def f(x):\n    return x.device == 'cuda'", "names the device"),
        ("fv__flux", "def opencl_flux():\n    pass", "names the device"),
        ("solvers__euler", "from fluxloom.dsl.context import OpenCLContext", "names the device"),
        ("fv__flux", "def f(x):\n    '''Docstring.'''\n    return f'on CUDA {x}'", "names the device"),
        ("solvers__euler", "def f(context):\n    return 1 if context.device.items else 2", "asks for work items"),
        ("linalg__matrix", "def f(device):\n    return device.items", "asks for work items"),
        ("fe__forms", "SCHEDULE = Schedule(registers=168)", "sets registers=168, which the loop layer decides"),
        ("flows__gas", "def f():\n    return Schedule('gather', block=1)", "sets block=1"),
    ],
)  # fmt: skip
def test_checker_finds(module: str, source: str, expected: str) -> None:
    """Each rule reports its breach, and nothing else."""
    found = check(**{module: source})
    assert len(found) == 1, found
    assert expected in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mesh__io__su2", "from ..mesh import Mesh\nfrom fluxloom.core.errors import MeshError"),
        ("device__cuda", "def start():\n    import cupy"),
        ("device__cuda", f"{TYPES}    import cupy"),
        ("mesh__generate", "import numpy as np\nfrom scipy.interpolate import CubicSpline"),
        ("graph__colour", "def f():\n    import scipy.sparse"),
        ("toolchain__find", "def f():\n    import ziglang"),
        ("cases__case", "import pydantic, typer, rich\nfrom fluxloom.solvers import euler"),
        ("fv__flux", "'''Runs on CUDA.'''\ndef f():\n    '''Also on OpenCL.'''"),
        ("device__cuda", "NAME = 'cuda'"),
        ("linalg__direct__lines", "def f(device):\n    return Function(block=64) if device.items else None"),
        ("lbm__immersed__rows", "def f(device):\n    return device.items"),
        ("dsl__plan", "def f(device):\n    return Schedule(lanes=1) if device.items else None"),
        ("solvers__euler", "def f(found, wanted):\n    return [*found.items()], Schedule(block=wanted)"),
        ("core__registry", "import importlib\ndef load(name):\n    return importlib.import_module(name)"),
    ],
)
def test_checker_allows(module: str, source: str) -> None:
    """What the rules permit passes."""
    assert check(**{module: source}) == []


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("exact.riemann", "from fluxloom_lab.bench.base import Tell", "which is above"),
        ("bench.lbm", "def f():\n    from fluxloom_lab.cli import bench", "which is above"),
        ("verify.lbm", "from fluxloom_lab.stories import tale", "which is above"),
        ("stories.tale", "", "no room of the laboratory"),
        ("bench.lbm", "import pandas", "no dependency"),
        ("bench.lbm", "import cupy", "at import time"),
        ("bench.lbm", "from fluxloom_lab.bench.lbm_flow import x", "import cycle"),
    ],
)
def test_checker_of_the_laboratory_finds(module: str, source: str, expected: str) -> None:
    """Each rule of the laboratory reports its breach, and nothing else."""
    (found,) = laboratory(**{module: source, "bench.lbm_flow": "from fluxloom_lab.bench.lbm import x"})
    assert expected in found


def test_checker_of_the_laboratory_allows() -> None:
    """It may import all of the package, what it compares with, and of itself what lies lower or beside."""
    assert not laboratory(**{
        "cli.bench": "import typer\nfrom fluxloom import Loop\nfrom fluxloom_lab.bench import lbm",
        "bench.fem": "import scipy\nfrom fluxloom_lab.peers import kratos_peer\nfrom fluxloom_lab.exact import riemann",
        "peers.kratos_peer": "import KratosMultiphysics",
        "peers.spmv_peers": "def f():\n    import cupyx",
    })  # fmt: skip


def laboratory(**modules: str) -> list[str]:
    """Run the checker of the laboratory on made-up modules."""
    return laboratory_violations({f"{LABORATORY}.{name}": text for name, text in modules.items()}, frozenset())


def test_checker_finds_cycles() -> None:
    """A cycle at import time is found; one broken by a local or a type-only import is none."""
    plan, dats, loop = "from .plan import Plan", "from .dats import Dat", "from . import loop"
    found = check(dsl__loop=plan, dsl__plan=dats, dsl__dats=loop)
    path = " -> ".join(f"fluxloom.dsl.{name}" for name in ("dats", "loop", "plan", "dats"))
    assert found == [f"import cycle: {path}"]
    assert not check(dsl__loop=plan, dsl__plan=f"{TYPES}    from .loop import Loop")
    assert not check(dsl__loop="from .plan import Plan", dsl__plan="def f():\n    from .loop import Loop")
    exported = check(dsl__init="from .loop import Loop", dsl__loop="from fluxloom.dsl import Loop")
    assert len(exported) == 1
    assert "cycle" in exported[0]
