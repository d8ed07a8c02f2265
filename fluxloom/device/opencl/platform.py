"""The OpenCL devices of this machine: their numbers, and the one that a user means."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.core.packages import require
from fluxloom.toolchain import open_cache, user_folder

__all__ = ["Candidate", "candidates", "choose", "import_pyopencl"]

_NO_DRIVER = (
    "no OpenCL platform was found: install the OpenCL driver of the device's maker, or PoCL, which serves every "
    "processor (Debian, Ubuntu: apt install pocl-opencl-icd)"
)


@dataclass(frozen=True)
class Candidate:
    """A device that could be chosen.

    Attributes
    ----------
    number
        Its place among the devices of all platforms.
    platform, name
        What the driver calls them.
    gpu
        Whether it says that it is a GPU.
    handle
        The ``pyopencl.Device``.
    """

    number: int
    platform: str
    name: str
    gpu: bool
    handle: Any

    def __str__(self) -> str:
        return f"{self.number}: {self.name} ({self.platform})"


def import_pyopencl() -> ModuleType:
    """Import pyopencl, after making sure that it and PoCL find a folder for what they compile.

    Raises
    ------
    DeviceUnavailable
        When pyopencl is not installed, or broken.
    """
    _give_folders()
    try:
        return require("pyopencl", "opencl", "the opencl device")
    except DeviceUnavailable as error:
        cause = error.__cause__
        if cause is None or (isinstance(cause, ModuleNotFoundError) and cause.name == "pyopencl"):
            raise
        raise DeviceUnavailable(
            f"pyopencl is installed but cannot be imported ({cause}): pip install --force-reinstall pyopencl"
        ) from cause


def candidates(cl: ModuleType) -> list[Candidate]:
    """Return the devices of all platforms.

    Raises
    ------
    DeviceUnavailable
        When there is no platform, or no platform has a device.
    """
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader reports "no platform" as an error
        platforms = []
    if not platforms:
        raise DeviceUnavailable(_NO_DRIVER)
    found: list[Candidate] = []
    for platform in platforms:
        try:
            handles = platform.get_devices()
        except cl.Error:  # a driver without its hardware
            handles = []
        found += [
            Candidate(k, platform.name.strip(), handle.name.strip(), bool(handle.type & cl.device_type.GPU), handle)
            for k, handle in enumerate(handles, len(found))
        ]
    if not found:
        names = ", ".join(platform.name.strip() for platform in platforms)
        raise DeviceUnavailable(
            f"no OpenCL platform has a device (found {names}): see whether the hardware is visible to this user; "
            "PoCL has none while its cache folder cannot be written (set POCL_CACHE_DIR)"
        )
    return found


def choose(found: list[Candidate], choice: str) -> Candidate:
    """Return the device that a user means.

    Parameters
    ----------
    found
        What there is.
    choice
        A number, or text found in the name of the device or its platform; empty: the first GPU, else the first
        device.

    Raises
    ------
    DeviceUnavailable
        When nothing matches; the message lists the devices.
    """
    if not choice:
        return next((candidate for candidate in found if candidate.gpu), found[0])
    if choice.isdecimal() and int(choice) < len(found):
        return found[int(choice)]
    for candidate in found:
        if choice.casefold() in f"{candidate.name}\n{candidate.platform}".casefold():
            return candidate
    listed = "; ".join(str(candidate) for candidate in found)
    raise DeviceUnavailable(f"no OpenCL device matches {choice!r}; a number or part of a name chooses of {listed}")


def _give_folders() -> None:
    """Do without the user's cache folder where it cannot be written.

    pyopencl does not load then, unless told to keep nothing. PoCL, which compiles on disk, reports no device or
    ends the process: it is given a folder of ours.
    """
    base = user_folder(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    if not base or not _writable(Path(base, "pytools")):
        os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
    if "POCL_CACHE_DIR" not in os.environ and not (base and _writable(Path(base, "pocl", "kcache"))):
        os.environ["POCL_CACHE_DIR"] = str(open_cache().folder / "pocl")


def _writable(folder: Path) -> bool:
    """Whether a folder can be written, or made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
