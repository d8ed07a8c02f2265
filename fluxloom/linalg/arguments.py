"""What solvers are given besides their equations: devices, types, numbers."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.named_device import open_named

__all__ = ["device_of", "floating_of", "real", "whole"]


def device_of(given: Device | Context | str | None) -> Device:
    """Return the device that is meant; a processor when nothing is said.

    Raises
    ------
    DeviceUnavailable
        If it is unknown, or something that it needs is missing.
    """
    if isinstance(given, Context):
        return given.device
    return open_named("cpu" if given is None else given)


def whole(given: Any, what: str, least: int, meaning: str = "") -> int:
    """Return a whole number of at least ``least``; ``what`` and ``meaning`` stand in the message.

    Raises
    ------
    SolverError
        For anything else.
    """
    if isinstance(given, bool | np.bool_) or not isinstance(given, int | np.integer) or given < least:
        raise SolverError(f"{what} is a whole number, at least {least}{meaning}, not {given!r}")
    return int(given)


def real(given: Any, what: str, wanted: str, low: float, high: float = inf, *, closed: bool = False) -> float:
    """Return a number between two others; ``what`` and ``wanted`` stand in the message.

    Parameters
    ----------
    closed
        Whether it may be the lower one.

    Raises
    ------
    SolverError
        For anything else.
    """
    number = isinstance(given, int | float | np.number) and not isinstance(given, bool | complex)
    if not number or not (low < given < high or (closed and given == low)):
        raise SolverError(f"{what} is {wanted}, not {given!r}")
    return float(given)


def floating_of(dtype: npt.DTypeLike, what: str) -> np.dtype[Any]:
    """Return the type of a solver's values.

    Raises
    ------
    SolverError
        For another one than float64 and float32.
    """
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found not in (np.dtype(np.float64), np.dtype(np.float32)):
        order = " in the byte order of this machine" if found is not None and not found.isnative else ""
        raise SolverError(f"{what}: dtype is float64 or float32{order}, not {dtype!r}")
    return found
