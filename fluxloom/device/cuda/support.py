"""What the cuda device needs from a machine: CuPy, a driver, a GPU and a run-time compiler that go together."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.core.packages import require
from fluxloom.device.cuda.errors import error_key
from fluxloom.toolchain import open_cache

__all__ = ["choose_architecture", "open_cuda", "release"]

_OLDEST_CUPY = 13
_NO_DRIVER = (
    "the cuda device needs an NVIDIA GPU with its driver, and no driver is loaded: install the driver, "
    "or start the container with its GPUs (docker run --gpus all)"
)


def open_cuda(number: int) -> Any:
    """Return CuPy after making sure that a GPU can be used with it.

    Parameters
    ----------
    number
        Of the GPU, as CUDA counts the visible ones.

    Raises
    ------
    DeviceUnavailable
        With what is missing, or does not fit together, and what to do.
    """
    cupy = _import_cupy()
    _check_driver(cupy)
    _check_number(cupy, number)
    supported = _check_compiler(cupy)
    capability = int(cupy.cuda.Device(number).compute_capability)
    if choose_architecture(capability, supported) is None:
        raise DeviceUnavailable(
            f"GPU {number} has compute capability {capability / 10:.1f}, and the run-time compiler of CUDA "
            f"{_built_for(cupy)} begins at {min(supported) / 10:.1f}: use CuPy for an older CUDA "
            "(pip install 'fluxloom[cuda]' has CUDA 12)"
        )
    return cupy


def release(version: int) -> str:
    """Return a CUDA version as people write it: 12040 is 12.4."""
    return f"{version // 1000}.{version % 1000 // 10}"


def choose_architecture(capability: int, supported: Sequence[int]) -> str | None:
    """Return what to compile for: ``sm_90`` for machine code, ``compute_90`` for code that the driver translates.

    Parameters
    ----------
    capability
        Of the GPU: 90 is 9.0.
    supported
        What the run-time compiler knows.
    """
    older = [known for known in supported if known <= capability]
    same = [known for known in older if known // 10 == capability // 10]
    if same:
        return f"sm_{max(same)}"  # machine code runs on later GPUs of the same generation
    return f"compute_{max(older)}" if older else None


# ------------------------------------------------------------------------------------------------ CuPy


def _import_cupy() -> Any:
    """Import CuPy, or say why that fails."""
    _share_cache()
    extra = "cuda13" if _driver_version() >= 13000 else "cuda"
    try:
        cupy: Any = require("cupy", extra, "the cuda device")
    except DeviceUnavailable as error:
        cause = error.__cause__
        if cause is None or (isinstance(cause, ModuleNotFoundError) and cause.name == "cupy"):
            raise
        raise _broken(cause, extra) from cause
    except Exception as error:  # half-installed packages raise whatever their parts raise
        raise _broken(error, extra) from error
    version = str(getattr(cupy, "__version__", "0"))
    if not version.split(".")[0].isdecimal() or int(version.split(".")[0]) < _OLDEST_CUPY:
        raise DeviceUnavailable(
            f"CuPy {version} is too old for the cuda device: pip install --upgrade 'fluxloom[{extra}]'"
        )
    return cupy


def _share_cache() -> None:
    """Let CuPy keep its own kernels in our cache folder, where the user has named one and CuPy has none yet."""
    named = os.environ.get("FLUXLOOM_CACHE") and "CUPY_CACHE_DIR" not in os.environ
    if named and "cupy" not in sys.modules:
        os.environ["CUPY_CACHE_DIR"] = str(open_cache().folder / "cupy")


def _broken(error: BaseException, extra: str) -> DeviceUnavailable:
    """Return the error for a CuPy that is there but cannot be imported."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =")]
    after = [k + 1 for k, line in enumerate(lines) if line.startswith("Original error")]
    reason = lines[after[0]] if after and after[0] < len(lines) else (lines or [type(error).__name__])[0]
    if "libcuda.so" in reason:
        return DeviceUnavailable(_NO_DRIVER)
    return DeviceUnavailable(
        f"CuPy is installed but cannot be imported ({reason}): install it anew, one package of it only "
        f"(pip uninstall those that 'pip list' shows, then pip install 'fluxloom[{extra}]')"
    )


def _driver_version() -> int:
    """Return the newest CUDA that the driver supports, 13000 for 13.0; 0 without a driver."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        version = ctypes.c_int(0)
        return version.value if library.cuDriverGetVersion(ctypes.byref(version)) == 0 else 0
    except (OSError, AttributeError):
        return 0


def _built_for(cupy: Any) -> int:
    """Return the major version of CUDA that CuPy was built for."""
    return int(cupy.cuda.driver.get_build_version()) // 1000


# ------------------------------------------------------------------------------------- driver and GPUs


def _check_driver(cupy: Any) -> None:
    """Make sure that there is a driver, new enough for CuPy, with a GPU."""
    runtime = cupy.cuda.runtime
    driver = int(runtime.driverGetVersion())
    if not driver:
        raise DeviceUnavailable(_NO_DRIVER)
    try:
        count = int(runtime.getDeviceCount())
    except RuntimeError as error:
        key = error_key(error)
        if key == "insufficientdriver":
            raise _old_driver(cupy, driver) from error
        if key != "nodevice":
            raise DeviceUnavailable(
                f"the NVIDIA driver cannot be used ({error}): see whether nvidia-smi runs, and restart the machine "
                "if the driver was updated"
            ) from error
        count = 0
    if not count:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        chosen = f" (CUDA_VISIBLE_DEVICES is {visible!r})" if visible is not None else ""
        raise DeviceUnavailable(f"the NVIDIA driver sees no GPU{chosen}: see what nvidia-smi lists")


def _old_driver(cupy: Any, driver: int) -> DeviceUnavailable:
    """Return the error for a driver that is older than what CuPy was built for."""
    built = int(cupy.cuda.runtime.runtimeGetVersion())
    other = ""
    if driver // 1000 < built // 1000 and driver >= 12000:
        other = (
            f", or use CuPy for CUDA {driver // 1000} (pip uninstall cupy-cuda{built // 1000}x, then "
            "pip install 'fluxloom[cuda]')"
        )
    return DeviceUnavailable(
        f"the NVIDIA driver supports CUDA {release(driver)}, and CuPy was built for CUDA {release(built)}: "
        f"update the driver{other}"
    )


def _check_number(cupy: Any, number: int) -> None:
    """Make sure that a GPU of this number is there."""
    runtime = cupy.cuda.runtime
    count = int(runtime.getDeviceCount())
    if 0 <= number < count:
        return
    names = [runtime.getDeviceProperties(k)["name"] for k in range(count)]
    listed = ", ".join(f"{k} ({name.decode() if isinstance(name, bytes) else name})" for k, name in enumerate(names))
    raise DeviceUnavailable(f"there is no GPU {number}: this process sees {listed}")


def _check_compiler(cupy: Any) -> tuple[int, ...]:
    """Make sure that CuPy finds the run-time compiler it was built for; returns the GPUs it compiles for."""
    built = _built_for(cupy)
    try:
        major = int(cupy.cuda.nvrtc.getVersion()[0])
        supported = tuple(int(known) for known in cupy.cuda.nvrtc.getSupportedArchs())
    except (RuntimeError, ImportError, OSError) as error:
        raise DeviceUnavailable(
            f"CuPy for CUDA {built} does not find the run-time compiler of CUDA {built} (NVRTC): "
            f"pip install nvidia-cuda-nvrtc{'-cu12' if built == 12 else ''}, or install CuPy for the CUDA toolkit "
            f"of this machine{_toolkit()}"
        ) from error
    if major != built:
        raise DeviceUnavailable(
            f"CuPy was built for CUDA {built} but finds the run-time compiler of CUDA {major}: install one CuPy "
            f"only, that for CUDA {major}, or let CUDA_PATH name a toolkit of CUDA {built}"
        )
    return supported


def _toolkit() -> str:
    """Return which toolkit is in the usual place."""
    found = sorted(path.name.removeprefix("cuda-") for path in Path("/usr/local").glob("cuda-*.*"))
    return f" (CUDA {', '.join(found)})" if found else ""
