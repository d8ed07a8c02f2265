"""What every test may use: reference data, one cache of compiled code, and markers that skip themselves."""

from __future__ import annotations

import functools
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

# Before NumPy is imported, here, in the workers of xdist and in all processes that tests start: reference solutions
# call BLAS for matrices so small that as many threads as a large machine has cores, times the workers, do little else
# than wait for each other. OMP_NUM_THREADS stays as it is: it is that of the loops that are tested.
for _library in ("OPENBLAS", "MKL", "BLIS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent

MARKERS = ("cuda", "nvcc", "opencl", "mpi")

FOLDERS = pytest.StashKey[tuple[str, ...]]()
"""Beginnings of the paths of tests whose loops are not optimised."""


@functools.cache
def missing(marker: str) -> str:
    """Return what tests with the marker need and this machine lacks, and how to get it; empty when all is there.

    Each look is taken in a process of its own: starting a driver or MPI here would leave traces.
    """
    from fluxloom.machine import gpus
    from fluxloom.machine.system import python_says

    if marker == "mpi":
        found = python_says(["-c", "from mpi4py import MPI; print(MPI.Get_version())"], seconds=120)
        return "" if found else "mpi4py cannot be imported -> pip install 'fluxloom[mpi]'"
    surveys = {"cuda": gpus.cuda_survey, "nvcc": gpus.compiler_survey, "opencl": gpus.opencl_survey}
    survey = surveys[marker]()
    return f"{survey.problem} -> {survey.advice}" if survey.problem else ""


def quick_flags() -> str:
    """Return compiler flags for code that runs for milliseconds.

    Loops marked for vectors are made vectors, products and sums contracted and types kept apart at this level too. What
    gcc is told to leave out as well, and clang does not know, takes a quarter of its time.
    """
    plain = "-O1 -fstrict-aliasing -fexpensive-optimizations"
    named = os.environ.get("FLUXLOOM_CC") or os.environ.get("CC")
    if named or sys.platform != "linux" or not shutil.which("gcc"):
        return plain
    return f"{plain} -fno-tree-dominator-opts -fno-thread-jumps -fno-ivopts"


# Most of the default run is compiling, half of that optimising. With the long tests (`make test-long`) everything is
# compiled as for users.
QUICK = {"FLUXLOOM_CFLAGS": quick_flags(), "PYOPENCL_BUILD_OPTIONS": "-cl-opt-disable"}

# What the compiler makes of loops is the matter of tests/conformance, unit/codegen and unit/kernel. Where
# solvers, ranks and runs are tested, code that is not optimised at all, and has no packs, takes a third of the time.
PLAIN = "-O0"
PLAIN_FOLDERS = (
    "unit/cases", "unit/comm", "unit/dsl", "unit/fe", "unit/fv", "unit/lbm", "unit/linalg", "unit/mesh", "unit/solvers",
    "unit/test_", "parallel/", "faults/",
    "conformance/test_lattice", "conformance/test_checking", "conformance/test_compressible",
    "verification/test_compressible", "verification/test_edge", "verification/test_flow", "verification/test_immersed",
    "verification/test_incompressible", "verification/test_lattice", "verification/test_poisson",
    "verification/test_staggered", "verification/test_tsunami",
    "examples/test_compressible", "examples/test_incompressible",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Compile and measure quickly; give PoCL and Python folders of their own where they cannot write the user's."""
    os.environ.setdefault("FLUXLOOM_METER_BYTES", str(8 << 20))  # what the memory carries is no test's concern
    os.environ.setdefault("FLUXLOOM_SILENCE", "0")  # nor how long it has to wait
    if config.option.markexpr == "not long":
        # workers of xdist find in their environment what has been put there for them
        named = os.environ.get("FLUXLOOM_CFLAGS") not in (None, QUICK["FLUXLOOM_CFLAGS"])
        config.stash[FOLDERS] = () if named else PLAIN_FOLDERS
        for name, value in QUICK.items():
            os.environ.setdefault(name, value)
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME", "")
    if "POCL_CACHE_DIR" not in os.environ and not os.access(cache, os.W_OK):
        folder = tempfile.TemporaryDirectory(prefix="fluxloom-pocl-", ignore_cleanup_errors=True)
        os.environ["POCL_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") and not sys.pycache_prefix:
        # Each of the processes that tests start would compile all modules anew. Workers have this from their parent.
        modules = tempfile.TemporaryDirectory(prefix="fluxloom-modules-", ignore_cleanup_errors=True)
        os.environ["PYTHONPYCACHEPREFIX"] = modules.name
        config.add_cleanup(modules.cleanup)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and look no more at what was collected.

    Ten thousand tests are half a million objects that stay. To search them again and again took each worker as long
    as all its imports, and more whenever garbage was collected later.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of `long_cases.txt` as long: slow ones of tests that have quicker cases."""
    listed = frozenset((ROOT / "tests" / "long_cases.txt").read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.long)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marker asks for something that is not here; say how its loops are compiled."""
    if folders := item.config.stash.get(FOLDERS, ()):
        plain = item.path.relative_to(ROOT / "tests").as_posix().startswith(folders)
        os.environ["FLUXLOOM_CFLAGS"] = PLAIN if plain else QUICK["FLUXLOOM_CFLAGS"]
    for marker in MARKERS:
        if item.get_closest_marker(marker) and (lack := missing(marker)):
            pytest.skip(f"{marker}: {lack}")


@pytest.fixture
def uncontracted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where bits of different code are compared: compilers contract ``a * b + c`` here and not there, by processor."""
    monkeypatch.setenv("FLUXLOOM_CFLAGS", f"{QUICK['FLUXLOOM_CFLAGS']} -ffp-contract=off")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of public reference data that lies beside the checkout; skip without it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("reference data folder not present")
    return folder


@pytest.fixture
def optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile with the flags of users, for tests of what the compiler makes of loops."""
    for name in QUICK:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session", autouse=True)
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep compiled code in one folder for the whole session, shared by all its xdist workers."""
    if "FLUXLOOM_CACHE" in os.environ:
        yield Path(os.environ["FLUXLOOM_CACHE"])
        return
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "fluxloom-cache"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["FLUXLOOM_CACHE"] = str(folder)
    yield folder
    del os.environ["FLUXLOOM_CACHE"]
