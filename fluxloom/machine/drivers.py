"""Ask the drivers of GPUs what there is. Run as a program, because drivers leave traces in a process.

``python -m fluxloom.machine.drivers cuda`` prints what `cuda` returns as JSON; `opencl` and `compiler` in the same way.
What cannot be used, and why, the devices themselves decide.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from fluxloom.core.errors import DeviceUnavailable

__all__ = ["compiler", "cuda", "main", "opencl"]


def cuda() -> dict[str, Any]:
    """Return what CuPy sees.

    Returns
    -------
    dict
        ``error``: why the cuda device cannot be used, where it cannot; and what could be found all the same:
        ``driver`` and ``runtime``, CUDA versions in the numbering of CUDA (12040 is 12.4; driver 0: none);
        ``nvrtc``, version of the run-time compiler; ``gpus``, for each name, compute capability, and bytes in all
        and free.
    """
    from fluxloom.device.cuda.support import open_cuda

    found: dict[str, Any] = {"gpus": []}
    try:
        open_cuda(0)
    except DeviceUnavailable as error:
        found["error"] = str(error)
    try:
        cuda: Any = import_module("cupy").cuda
        found |= {"driver": cuda.runtime.driverGetVersion(), "runtime": cuda.runtime.runtimeGetVersion()}
        found |= _nvrtc(cuda)
        found["gpus"] = [_gpu(cuda, number) for number in range(cuda.runtime.getDeviceCount())]
    except Exception as error:  # a half-installed CuPy raises whatever its parts raise
        found.setdefault("error", _first_line(error))
    return found


def _nvrtc(cuda: Any) -> dict[str, str]:
    """Return the version of the run-time compiler that CuPy finds, if any."""
    try:
        return {"nvrtc": ".".join(str(part) for part in cuda.nvrtc.getVersion())}
    except (ImportError, OSError, RuntimeError):
        return {}


def _gpu(cuda: Any, number: int) -> dict[str, Any]:
    """Return the properties of a GPU."""
    properties = cuda.runtime.getDeviceProperties(number)
    name = properties["name"]
    with cuda.Device(number):
        free, total = cuda.runtime.memGetInfo()
    return {
        "name": name.decode() if isinstance(name, bytes) else str(name),
        "capability": f"{properties['major']}.{properties['minor']}",
        "total": total,
        "free": free,
    }


def opencl() -> dict[str, Any]:
    """Return the devices of all OpenCL platforms, in the order of their numbers.

    Returns
    -------
    dict
        ``error``: why the opencl device cannot be used, where it cannot; else ``default``, the number of the device
        that is taken where no number is given, and ``devices``: for each name, kind, platform, version of the
        platform and its own, compute units, bytes of memory, and whether there are double precision and 64-bit
        atomics; for one that does not start ``error`` instead of these.
    """
    from fluxloom.device.opencl.device import OpenClDevice
    from fluxloom.device.opencl.platform import Candidate, candidates, choose, import_pyopencl

    def describe(candidate: Candidate) -> dict[str, Any]:
        found = {
            "name": candidate.name, "platform": candidate.platform,
            "platform_version": candidate.handle.platform.version.partition("  ")[0].strip(),
        }  # fmt: skip
        try:
            device = OpenClDevice(str(candidate.number))
        except DeviceUnavailable as error:
            return found | {"error": str(error)}
        return found | {
            "kind": "GPU" if candidate.gpu else "CPU" if device.is_cpu else "accelerator",
            "version": device.version, "units": device.compute_units, "memory": device.memory()[1],
            "fp64": device.fp64, "int64_atomics": device.int64_atomics,
        }  # fmt: skip

    try:
        found = candidates(import_pyopencl())
    except DeviceUnavailable as error:
        return {"error": str(error)}
    return {"devices": [describe(candidate) for candidate in found], "default": choose(found, "").number}


def compiler() -> dict[str, Any]:
    """Return the version of NVRTC, the run-time compiler of CUDA, which needs neither GPU nor driver.

    Returns
    -------
    dict
        ``nvrtc``, or ``error``.
    """
    try:
        _, major, minor = import_module("cuda.bindings.nvrtc").nvrtcVersion()
        return {"nvrtc": f"{major}.{minor}"}
    except Exception as first:  # each loader of shared libraries has errors of its own
        try:
            found = _nvrtc(import_module("cupy").cuda)
        except Exception:
            found = {}
        return found or {"error": _first_line(first)}


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def main(words: list[str]) -> None:
    """Print the answer to one question, ``cuda``, ``opencl`` or ``compiler``, as one line of JSON."""
    questions = {"cuda": cuda, "opencl": opencl, "compiler": compiler}
    print(json.dumps(questions[words[0]]()))


if __name__ == "__main__":
    main(sys.argv[1:])
