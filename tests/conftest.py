"""What every test may use: reference data, one cache of compiled code, and markers that skip themselves."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What a marker needs, tried in a process of its own: starting a driver or MPI here would leave traces.
PROBES = {
    "cuda": "import cupy; assert cupy.cuda.runtime.getDeviceCount() > 0",
    "opencl": "import pyopencl; assert any(p.get_devices() for p in pyopencl.get_platforms())",
    "mpi": "from mpi4py import MPI",
}


@functools.cache
def available(marker: str) -> bool:
    """Whether this machine has what tests with the marker need."""
    try:
        found = subprocess.run([sys.executable, "-c", PROBES[marker]], capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return False
    return found.returncode == 0


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marker asks for something that is not here."""
    for marker in PROBES:
        if item.get_closest_marker(marker) and not available(marker):
            pytest.skip(f"{marker} is not available here")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of public reference data that lies beside the checkout; skip without it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("reference data folder not present")
    return folder


@pytest.fixture(scope="session", autouse=True)
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep compiled code in one folder for the whole session, shared by all its xdist workers."""
    if "FLUXLOOM_CACHE" in os.environ:
        yield Path(os.environ["FLUXLOOM_CACHE"])
        return
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "fluxloom-cache"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["FLUXLOOM_CACHE"] = str(folder)
    yield folder
    del os.environ["FLUXLOOM_CACHE"]
