"""A device by a name that also says its threads, for lists of unequal devices."""

from __future__ import annotations

from fluxloom.core.errors import DeviceUnavailable
from fluxloom.device.base import Device
from fluxloom.dsl.context import open_device

__all__ = ["open_named"]


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
