"""Which libraries of transforms a device has, and the one that is asked for."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from fluxloom.core.errors import DeviceUnavailable, SolverError, did_you_mean
from fluxloom.device.base import Device
from fluxloom.device.transforms.cufft import CufftTransforms
from fluxloom.device.transforms.dft import Library
from fluxloom.device.transforms.host import FftwTransforms, HostTransforms, ScipyTransforms
from fluxloom.device.transforms.vkfft import VkfftTransforms

__all__ = ["open_library"]


def open_library(device: Device, name: str = "auto", threads: int = 1) -> Library | None:
    """Return the library of transforms of a device; None where there is none.

    Parameters
    ----------
    name
        ``"scipy"``, ``"pyfftw"`` (on the host), ``"cufft"``, ``"vkfft"``, or ``"auto"``: what is installed and quick.
    threads
        Of a library on the host.

    Raises
    ------
    DeviceUnavailable
        When the library is not installed; the message names the extra.
    SolverError
        When it does not work on this device.
    """
    where = "host" if device.shared else "cupy" if hasattr(device, "cupy") else "cl" if hasattr(device, "cl") else ""
    known = {"host": ("scipy", "pyfftw"), "cupy": ("cufft",), "cl": ("vkfft",)}.get(where, ())
    if name == "auto":
        if where == "cl" and find_spec("pyvkfft") is None:
            return None
        name = "both" if where == "host" and find_spec("pyfftw") is not None else known[0] if known else ""
    elif name not in known:
        hint = did_you_mean(name, known) if known else ""
        listed = ", ".join(map(repr, (*known, "matrix", "auto")))
        raise SolverError(f"library {name!r} does not transform on the {device.name} device: use one of {listed}{hint}")
    return _opened(device, name, threads) if name else None


def _opened(device: Any, name: str, threads: int) -> Library:
    if name == "scipy":
        return ScipyTransforms(threads)
    if name == "pyfftw":
        return FftwTransforms(threads)
    if name == "both":
        try:
            return HostTransforms(threads)
        except DeviceUnavailable:  # it is there, but cannot be imported
            return ScipyTransforms(threads)
    if name == "cufft":
        return CufftTransforms(device)
    return VkfftTransforms(device)
