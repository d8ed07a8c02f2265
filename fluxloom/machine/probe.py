"""What this machine offers to the package, and what to install for the rest: the findings of ``doctor``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec

from fluxloom.comm.launchers import without_launcher
from fluxloom.core.errors import CommError, FluxloomError
from fluxloom.device.bandwidth import BandwidthMeter, available_threads
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.runtime import device_registry
from fluxloom.machine.gpus import Survey, cuda_survey, opencl_survey
from fluxloom.machine.ranks import find_starter
from fluxloom.machine.system import command_says, fluxloom_version, package_version, processor, python_version
from fluxloom.toolchain import compile_flags, find_compiler, open_cache

__all__ = ["DeviceState", "Finding", "State", "device_states", "examine"]

_GMSH = "apt install libglu1-mesa libxcursor1 libxft2 libxinerama1 (Debian, Ubuntu), if it names one of their libraries"

_PACKAGES = (
    ("scipy", "scipy", "app", "mesh generation, sparse matrices", "sparse.linalg spatial interpolate optimize special"),
    ("pydantic", "pydantic", "app", "case files", ""),
    ("typer", "typer", "app", "command line", ""),
    ("rich", "rich", "app", "command line", "console"),
    ("matplotlib", "matplotlib", "viz", "pictures", "figure backends.backend_agg ticker colors collections"),
    ("pyvista", "pyvista", "viz3d", "pictures in three dimensions", ""),
    ("h5py", "h5py", "mesh", "VTKHDF files, checkpoints", ""),
    ("meshio", "meshio", "mesh", "mesh files of other programs", ""),
    ("gmsh", "gmsh", "mesh", "mesh generation with Gmsh", ""),
    ("pymetis", "pymetis", "mesh", "partitioning", ""),
    ("trimesh", "trimesh", "surface", "bodies from files of triangles", ""),
    ("manifold3d", "manifold3d", "surface", "bodies from files of triangles", ""),
    ("networkx", "networkx", "surface", "bodies from files of triangles", ""),
    ("lxml", "lxml", "surface", "bodies from 3MF files", "etree"),
    ("imageio_ffmpeg", "imageio-ffmpeg", "movie", "films as MP4", ""),
    ("pyfftw", "pyfftw", "fft", "quicker Fourier transforms on the host", ""),
    ("pyvkfft", "pyvkfft", "vkfft", "Fourier transforms on OpenCL", "opencl"),
    ("pyamg", "pyamg", "amg", "comparing with its algebraic multigrid", ""),
    ("ziglang", "ziglang", "compiler", "a C compiler where the system has none", ""),
    ("mpi4py", "mpi4py", "mpi", "many ranks", "MPI"),
    ("pyopencl", "pyopencl", "opencl", "the opencl device", ""),
    ("cupy", "cupy-cuda12x", "cuda", "the cuda device; cuda13 for drivers of CUDA 13", ""),
    ("mkdocs", "mkdocs", "docs", "building the documentation", ""),
    ("pytest", "pytest", "dev", "the tests", ""),
)
"""Module, distribution, extra, what needs it, and those of its modules that a run imports."""

_IMPORTS = """
import importlib, json, os, sys
path, names = json.loads(sys.argv[1])
sys.path[:] = path
if names[0] == "mpi4py":
    import mpi4py
    mpi4py.rc.initialize = False
for name in names:
    importlib.import_module(name)
sys.stdout.flush()
os._exit(0)
"""
_SECONDS = 120
_SIZES = "from fluxloom.comm.mpi import world; print(world().size, flush=True)"


class State(Enum):
    """How a finding counts."""

    GOOD = "ok"
    ABSENT = "absent"
    """An option that is not there."""
    FAULTY = "faulty"
    """An option that is there and does not work."""
    BROKEN = "missing"
    """A requirement that is not there, or does not work."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Attributes
    ----------
    name, state, text
        What, whether it is there, and what was found.
    advice
        What to install or set, when something is missing.
    """

    name: str
    state: State
    text: str
    advice: str = ""


def examine(*, bandwidth: bool = True) -> list[Finding]:
    """Look for everything the package can use; nothing raises.

    Parameters
    ----------
    bandwidth
        Whether the memory bandwidth is measured too.
    """
    looks: list[Callable[[], list[Finding]]] = [_python, _processor, _compiler]
    if bandwidth:
        looks.append(_bandwidth)
    looks += [_cache, _cuda, _opencl, _mpi, _packages]
    found: list[Finding] = []
    for look in looks:
        try:
            found += look()
        except (FluxloomError, OSError, subprocess.SubprocessError) as error:
            found.append(Finding(look.__name__.strip("_"), State.ABSENT, str(error)))
    return found


def _python() -> list[Finding]:
    versions = f"{python_version()}, numpy {package_version('numpy')}"
    return [Finding("fluxloom", State.GOOD, f"{fluxloom_version()} ({versions})")]


def _processor() -> list[Finding]:
    found = processor()
    vector = f"{found.vector_name}, {found.vector_bits} bits" if found.vector_bits else "unknown"
    caches = ", ".join(f"{level} {size}" for level, size in found.caches.items()) or "unknown"
    threads = os.environ.get("OMP_NUM_THREADS")
    setting = f" (OMP_NUM_THREADS={threads})" if threads else ""
    return [
        Finding("processor", State.GOOD, f"{found.name}; {found.cores} cores for this process{setting}"),
        Finding("vectors", State.GOOD, vector),
        Finding("caches", State.GOOD, caches),
        Finding("memory", State.GOOD, f"{found.memory / 2**30:.1f} GiB free"),
    ]


def _compiler() -> list[Finding]:
    try:
        compiler = find_compiler()
    except FluxloomError as error:
        text, _, advice = str(error).partition(": ")
        return [Finding("C compiler", State.BROKEN, text, advice or str(error))]
    openmp = (
        Finding("OpenMP", State.GOOD, "yes")
        if compiler.openmp
        else Finding("OpenMP", State.ABSENT, "no: loops run on one thread", "install gcc, or clang with libomp")
    )
    return [
        Finding("C compiler", State.GOOD, f"{compiler.name} {compiler.version} ({' '.join(compiler.command)})"),
        openmp,
        Finding("flags", State.GOOD, " ".join(compile_flags(compiler))),
    ]


def _bandwidth() -> list[Finding]:
    try:
        found = BandwidthMeter().measure(3)
    except FluxloomError:
        return [Finding("bandwidth", State.ABSENT, "not measured: it needs the C compiler")]
    plain = f"{found.copy_plain_gbs:.1f} with ordinary stores"
    text = f"copy {found.copy_gbs:.1f} GB/s ({plain}), triad {found.triad_gbs:.1f}"
    return [Finding("bandwidth", State.GOOD, f"{text}; {found.threads} threads, 3 x {found.bytes >> 20} MiB")]


def _cache() -> list[Finding]:
    folder = open_cache().folder
    sizes = [item.stat().st_size for item in folder.rglob("*") if item.is_file()]
    return [Finding("cache", State.GOOD, f"{folder}: {len(sizes)} files, {sum(sizes) / 2**20:.1f} MiB")]


def _cuda() -> list[Finding]:
    return _survey("CUDA", cuda_survey())


def _opencl() -> list[Finding]:
    return _survey("OpenCL", opencl_survey())


def _survey(name: str, found: Survey) -> list[Finding]:
    """Return a line about a kind of device and one for each of them."""
    state = State.ABSENT if found.problem else State.GOOD
    text = ": ".join(part for part in (found.text, found.problem) if part)
    return [Finding(name, state, text, found.advice), *(Finding(n, state, text) for n, text in found.devices)]


def _mpi() -> list[Finding]:
    """Start two ranks as ``--ranks`` does."""
    try:
        starter = find_starter()
    except CommError as error:
        there = State.FAULTY if find_spec("mpi4py") is not None else State.ABSENT
        return [Finding("MPI", there, str(error), "pip install 'fluxloom[mpi]', or load the MPI of this site")]
    said = command_says(starter.command(2, ["-c", _SIZES]), starter.environment(), _SECONDS)
    # without buffers (PYTHONUNBUFFERED) both numbers may come before both ends of line
    sizes = "".join(line.strip() for line in said.splitlines() if line.strip().isdecimal())
    text = f"mpi4py {package_version('mpi4py')}, {starter.family}, {starter.program}"
    if sizes == "22":
        return [Finding("MPI", State.GOOD, f"{text}: two ranks found each other")]
    advice = "see what 'fluxloom run CASE --ranks cpu*2' says; pip install 'fluxloom[mpi]' brings library and launcher"
    reason = "ranks did not find each other" if sizes else "two ranks could not be started"
    return [Finding("MPI", State.FAULTY, f"{text}: {reason}", advice)]


def _packages() -> list[Finding]:
    with ThreadPoolExecutor(available_threads()) as pool:
        return list(pool.map(lambda row: _package(*row), _PACKAGES))


def _package(module: str, distribution: str, extra: str, purpose: str, parts: str) -> Finding:
    """Import a package as a run does, in a process of its own that looks in the same places."""
    use, needed = f"({extra}: {purpose})", extra == "app"
    if find_spec(module) is None:
        state = State.BROKEN if needed else State.ABSENT
        return Finding(module, state, f"not installed {use}", f"pip install 'fluxloom[{extra}]'")
    names = [module, *(f"{module}.{part}" for part in parts.split())]
    problem = _import_problem(names)
    version = package_version(distribution) or "installed"
    if not problem:
        return Finding(module, State.GOOD, f"{version} {use}")
    advice = f"pip install --force-reinstall 'fluxloom[{extra}]'" + (f"; {_GMSH}" if module == "gmsh" else "")
    state = State.BROKEN if needed else State.FAULTY
    return Finding(module, state, f"{version}, but cannot be imported {use}: {problem}", advice)


def _import_problem(names: Sequence[str]) -> str:
    """Return why modules cannot be imported; empty when they can."""
    words = [sys.executable, "-c", _IMPORTS, json.dumps([sys.path, names])]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", check=False, timeout=_SECONDS,
            stdin=subprocess.DEVNULL, env=without_launcher() | {"PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it takes more than {_SECONDS} s"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    ended = f"signal {-done.returncode}" if done.returncode < 0 else f"status {done.returncode}"
    told = next((line for line in reversed(lines) if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)), "")
    return told or f"the process ended with {ended}"


@dataclass(frozen=True)
class DeviceState:
    """A device and whether it can be used.

    Attributes
    ----------
    name, available
        As given to ``--device``, and whether that works.
    text
        What it is, or why it cannot be used and what to do.
    """

    name: str
    available: bool
    text: str


def device_states() -> list[DeviceState]:
    """Return every device a user may name, usable or not; each GPU is one, and so is each OpenCL device."""
    known = device_registry().names()
    states = [_state(name) for name in ("cpu", "reference")]
    for name, look in (("cuda", cuda_survey), ("opencl", opencl_survey)):
        found = look()
        if found.problem:
            states.append(DeviceState(name, False, f"{found.problem} -> {found.advice}"))
        else:
            states.append(DeviceState(name, True, f"{found.default} unless a number says otherwise ({found.text})"))
        states += [DeviceState(one, not found.problem, text) for one, text in found.devices]
    return states + [_state(name) for name in known if name not in {state.name for state in states}]


def _state(name: str) -> DeviceState:
    try:
        return DeviceState(name, True, Context(name).device.describe())
    except FluxloomError as error:
        return DeviceState(name, False, str(error))
