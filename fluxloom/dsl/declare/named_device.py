"""A device by a name that also says its threads, for lists of unequal devices; the device of an array."""

from __future__ import annotations

import functools
from typing import Any

from fluxloom.core.errors import DatError, DeviceUnavailable
from fluxloom.device.base import Device
from fluxloom.dsl.declare.runtime import open_device

__all__ = ["open_device_of", "open_named"]


def open_named(text: str | Device) -> Device:
    """Return the device that ``"cuda:0"``, ``"opencl"``, ``"cpu"`` or ``"cpu:12"`` (12 threads) stands for.

    A device object is returned as it is.

    Raises
    ------
    DeviceUnavailable
        If it is unknown, something it needs is missing, or the number of threads is none.
    """
    if isinstance(text, Device):
        return text
    if not isinstance(text, str):
        return open_device(text)
    name, colon, choice = text.strip().partition(":")
    if name != "cpu" or not colon:
        return open_device(text.strip())
    if not choice.isdigit() or not int(choice):
        raise DeviceUnavailable(f"device {text!r}: behind the colon of cpu stands its number of threads, as in cpu:12")
    return open_device("cpu", int(choice))


def open_device_of(values: Any) -> Device:
    """Return the device in whose memory the values of an array are: one device a process for each memory.

    A GPU of CuPy arrays, or of whatever has ``__cuda_array_interface__`` or DLPack, by its number; the processors for
    NumPy arrays, lists and numbers. Arrays of pyopencl are not: a device of ours has a queue of its own.

    Raises
    ------
    DatError
        If the values are of pyopencl.
    DeviceUnavailable
        If something that the device needs is missing.
    """
    if type(values).__module__.startswith("pyopencl"):
        raise DatError(
            "the values are an array of pyopencl, which belongs to another queue: give a dat of a context on 'opencl', "
            "or copy them to the host with values.get()"
        )
    if hasattr(values, "__cuda_array_interface__"):
        return _opened(f"cuda:{_number(values)}")
    return _opened("cpu")


def _number(values: Any) -> int:
    """Return the number of the GPU that holds an array."""
    if hasattr(values, "__dlpack_device__"):
        return int(values.__dlpack_device__()[1])
    return int(getattr(getattr(values, "device", None), "id", 0))


@functools.cache
def _opened(name: str) -> Device:
    return open_device(name)
