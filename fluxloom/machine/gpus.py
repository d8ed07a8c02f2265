"""Which GPUs and OpenCL devices there are, what they are called, and what is missing where there are none."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fluxloom.machine import drivers
from fluxloom.machine.system import command_says, package_version, python_says

__all__ = ["Survey", "compiler_survey", "cuda_survey", "opencl_survey"]

_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")
_OPENCL_DRIVER = "the OpenCL driver of the device's maker, or for the CPU (Debian, Ubuntu): apt install pocl-opencl-icd"
_NVIDIA_DRIVER = "NVIDIA's driver, on a machine with one of their GPUs"
_SECONDS = 120


@dataclass(frozen=True)
class Survey:
    """What there is of one kind of device.

    Attributes
    ----------
    text
        Packages, drivers and compilers that were found, with their versions.
    problem, advice
        Why the devices cannot be used, and what to install; empty when they can.
    devices
        Name for ``--device`` and description of each.
    default
        The device that is meant where no number is given.
    """

    text: str
    problem: str = ""
    advice: str = ""
    devices: tuple[tuple[str, str], ...] = ()
    default: str = ""


# ------------------------------------------------------------------------------------------------- CUDA


def cuda_survey() -> Survey:
    """Look for NVIDIA GPUs, their driver, CuPy, and the compilers of CUDA."""
    installed = [f"{name} {version}" for name in _CUPY if (version := package_version(name))]
    if not installed and find_spec("cupy") is None:
        return _without_cupy()
    found = _ask("cuda")
    parts = [", ".join(installed) or "cupy", _driver(found.get("driver", 0))]
    if "runtime" in found:
        parts.append(f"runtime {_release(found['runtime'])}")
    parts += [f"NVRTC {found['nvrtc']}" if "nvrtc" in found else "no NVRTC", _nvcc()]
    devices = tuple((f"cuda:{number}", _gpu_text(gpu)) for number, gpu in enumerate(found.get("gpus", ())))
    problem, advice = _cuda_problem(found, installed)
    return Survey(", ".join(part for part in parts if part), problem, advice, devices, "cuda:0")


def _without_cupy() -> Survey:
    """Return what the driver alone tells."""
    smi = shutil.which("nvidia-smi")
    query = "--query-gpu=name,memory.total,memory.free,compute_cap"
    lines = command_says([smi, query, "--format=csv,noheader,nounits"]).splitlines() if smi else []
    devices = []
    for number, line in enumerate(lines):
        name, total, free, capability = (word.strip() for word in line.rsplit(",", 3))
        sizes = [int(size) << 20 if size.isdigit() else 0 for size in (total, free)]
        gpu = {"name": name, "total": sizes[0], "free": sizes[1], "capability": capability}
        devices.append((f"cuda:{number}", _gpu_text(gpu)))
    latest = re.search(r"CUDA Version: (\d+)\.(\d+)", command_says([smi])) if smi else None
    text = ", ".join(part for part in (_driver(int(latest[1]) * 1000 + int(latest[2]) * 10 if latest else 0), _nvcc())
                     if part)  # fmt: skip
    if not latest:
        advice = f"{_NVIDIA_DRIVER}, and pip install 'fluxloom[cuda]' ('fluxloom[cuda13]' for a driver of CUDA 13)"
        return Survey(text, "no NVIDIA driver, and CuPy is not installed", advice)
    advice = f"pip install 'fluxloom[{'cuda13' if int(latest[1]) >= 13 else 'cuda'}]'"
    return Survey(text, "CuPy is not installed", advice, tuple(devices))


def _cuda_problem(found: dict[str, Any], installed: list[str]) -> tuple[str, str]:
    """Return why CuPy cannot run anything, and what to do; empty texts when it can."""
    if len(installed) > 1:
        names = [item.partition(" ")[0] for item in installed]
        problem = f"{' and '.join(names)} are in each other's way"
        return problem, f"pip uninstall {' '.join(names)}, then install the one for the driver"
    if not found:
        return "CuPy does not answer", "see what 'python -c \"import cupy; cupy.show_config()\"' says"
    return _divide(found.get("error", ""))


def _gpu_text(gpu: dict[str, Any]) -> str:
    memory = f"{_gibibytes(gpu['total'])} ({_gibibytes(gpu['free'])} free)"
    return f"{gpu['name']}, {memory}, compute capability {gpu['capability']}"


def _driver(version: int) -> str:
    """Return the driver in words, with its own number where nvidia-smi tells it; empty for no driver."""
    if not version:
        return ""
    smi = shutil.which("nvidia-smi")
    lines = command_says([smi, "--query-gpu=driver_version", "--format=csv,noheader"]).splitlines() if smi else []
    return f"driver {lines[0]} (CUDA {_release(version)})" if lines else f"driver of CUDA {_release(version)}"


def _nvcc() -> str:
    """Return the version of the toolkit's compiler, which is not needed."""
    nvcc = shutil.which("nvcc")
    version = re.search(r"release ([\d.]+)", command_says([nvcc, "--version"])) if nvcc else None
    return f"nvcc {version[1]}" if version else ""


def _release(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"


def compiler_survey() -> Survey:
    """Look for a compiler of CUDA: nvcc, or NVRTC. Neither needs a GPU."""
    nvcc = _nvcc()
    found = _ask("compiler")
    text = ", ".join(part for part in (nvcc, f"NVRTC {found['nvrtc']}" if "nvrtc" in found else "") if part)
    if text:
        return Survey(text)
    return Survey("", "neither nvcc nor NVRTC", "the CUDA toolkit, or pip install cuda-bindings nvidia-cuda-nvrtc")


# ----------------------------------------------------------------------------------------------- OpenCL


def opencl_survey() -> Survey:
    """Look for pyopencl and the devices of every OpenCL platform."""
    version = package_version("pyopencl")
    if not version and find_spec("pyopencl") is None:
        return Survey("", "pyopencl is not installed", f"pip install 'fluxloom[opencl]', and {_OPENCL_DRIVER}")
    found = _ask("opencl")
    text = f"pyopencl {version}".strip()
    if "devices" not in found:
        advice = "set POCL_CACHE_DIR to a folder that may be written, if PoCL is the driver; else install it anew"
        return Survey(text, *_divide(found.get("error", f"asking the OpenCL drivers ended the process: {advice}")))
    devices = tuple((f"opencl:{number}", _opencl_text(device)) for number, device in enumerate(found["devices"]))
    platforms = dict.fromkeys(f"{device['platform']} ({device['platform_version']})" for device in found["devices"])
    return Survey(f"{text}: {'; '.join(platforms)}", devices=devices, default=f"opencl:{found['default']}")


def _opencl_text(device: dict[str, Any]) -> str:
    """Return an OpenCL device in words."""
    if "error" in device:
        return f"{device['name']} ({device['platform']}): {device['error']}"
    version = " ".join(device["version"].split()[:2])
    double, atomics = ("yes" if device[key] else "no" for key in ("fp64", "int64_atomics"))
    size = f"{device['units']} units, {_gibibytes(device['memory'])}"
    can = f"fp64 {double}, int64 atomics {atomics}"
    return f"{device['name']} ({device['kind']}, {device['platform']}, {version}), {size}, {can}"


# ----------------------------------------------------------------------------------------------- common


def _gibibytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def _divide(message: str) -> tuple[str, str]:
    """Divide an error into what is wrong and what to do: at the first colon outside parentheses."""
    depth = 0
    for place, letter in enumerate(message):
        depth += (letter == "(") - (letter == ")")
        if not depth and message.startswith(": ", place):
            return message[:place], message[place + 2 :]
    return message, ""


def _ask(question: str) -> dict[str, Any]:
    """Ask in a process of its own; the last line it prints is the answer. Empty when the process died."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
    said = python_says(["-P", "-m", drivers.__name__, question], environment={"PYTHONPATH": path}, seconds=_SECONDS)
    try:
        return dict(json.loads(said.splitlines()[-1])) if said else {}
    except ValueError:
        return {}
