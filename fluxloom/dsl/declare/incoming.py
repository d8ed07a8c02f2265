"""Where values come in: into dats and globals as numbers of their type, into tables as integers.

Nothing is narrowed, and nothing dropped.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Scalar
from fluxloom.core.errors import DatError

__all__ = ["incoming", "integers", "unmasked", "whole"]

Array = npt.NDArray[Any]


def unmasked(values: Any, what: str) -> Any:
    """Return values as they are.

    Raises
    ------
    DatError
        For an array of `numpy.ma` some of whose values are masked: NumPy would take what lies below the mask.
    """
    if np.ma.is_masked(values):
        mask = np.ma.getmaskarray(values)
        raise DatError(
            f"{what}: {int(mask.sum())} of {mask.size} values are masked, the first is [{_first(mask)}]: "
            "fill them, values.filled(...)"
        )
    return values


def incoming(values: Any, scalar: Scalar, what: str) -> Array:
    """Return values as an array of a type, without a copy where they are one.

    Reals are rounded, to infinity beyond the range of their type; what another value would stand for is refused.

    Raises
    ------
    DatError
        For masked values and what is no number; for reals with a fraction, NaN or infinities, and integers beyond the
        range, where integers are stored.
    """
    array = np.asarray(unmasked(values, what))
    kind = scalar.numpy
    if array.dtype == kind:
        return array
    if array.dtype.kind == "O" and all(isinstance(v, (int, float)) for v in array.ravel()):
        array = array if not scalar.floating else array.astype(np.float64)  # integers of any size
    elif array.dtype.kind not in "biuf":
        raise DatError(f"{what}: values of type {array.dtype} are not real numbers")
    if not array.size:
        return array.astype(kind)
    if scalar.floating:
        with np.errstate(over="ignore"):  # as everywhere in reals: what is beyond the range is infinite
            return array.astype(kind)
    if array.dtype.kind == "f":
        fraction = (array != np.trunc(array)) | ~np.isfinite(array)
        _refuse(fraction, array, f"{what}: {{}} is not a whole number; the values are {kind}")
    low, high = scalar.range
    beyond = (array < low) | (array >= float(high) + 1 if array.dtype.kind == "f" else array > high)
    _refuse(np.asarray(beyond, dtype=bool), array, f"{what}: {{}} does not fit {kind}, {low} ... {high}")
    return array.astype(kind)


def integers(values: Any, what: str) -> Array:
    """Return a table of integers as an array.

    Raises
    ------
    DatError
        For masked values, and other values than integers.
    """
    array = np.asarray(unmasked(values, what))
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise DatError(f"{what}: indices must be integers, got {array.dtype}")
    return array


def whole(value: Any, what: str) -> int:
    """Return a whole number as Python's.

    Raises
    ------
    DatError
        For anything but an integer of Python or NumPy.
    """
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise DatError(f"{what} is {value!r}: a whole number is needed")
    return operator.index(value)


def _refuse(bad: Array, values: Array, message: str) -> None:
    if bad.any():
        place = f", at [{_first(bad)}]" if bad.ndim else ""
        raise DatError(message.format(values[bad].tolist()[0]) + place)


def _first(bad: Array) -> str:
    return ", ".join(str(int(k)) for k in np.argwhere(bad)[0])
