"""The compiled half of this package: loading it, passing arrays to it, and checks of what is passed."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError, DeviceUnavailable
from fluxloom.toolchain import Library, load_library

__all__ = [
    "Indices", "Offsets", "call", "check_range", "count", "covers", "indices", "is_injective", "offsets", "row_order",
    "table", "table_in_range",
]  # fmt: skip

Indices = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

_SOURCES = ("check.c", "colour.c", "colour_rows.c", "inverse.c", "tiles.c", "csr.c", "gather.c", "lookup.c")
_LARGEST = 2**31 - 1


@functools.cache
def _library() -> Library:
    """Compile all C sources of this package as one unit, once a process."""
    folder = resources.files("fluxloom.graph")
    source = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _SOURCES)
    try:
        return load_library(source, "graph")
    except DeviceUnavailable as error:
        raise DeviceUnavailable(
            f"plans, colourings, inverse maps and orderings are computed by compiled code: {error}"
        ) from error


@functools.cache
def _function(name: str) -> Any:
    """Return a C function; all of them return ``int64_t`` and take ``int64_t`` and pointers."""
    return _library().function("graph_" + name, restype=ctypes.c_int64)


def call(name: str, *arguments: npt.NDArray[Any] | int | Sequence[npt.NDArray[Any]]) -> int:
    """Call a C function with arrays (as pointers), integers, and tuples of arrays (as arrays of pointers)."""
    converted: list[Any] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            converted.append(ctypes.c_void_p(argument.ctypes.data))
        elif isinstance(argument, Sequence):
            pointers = [array.ctypes.data for array in argument]
            converted.append((ctypes.c_void_p * max(len(pointers), 1))(*pointers))
        else:
            converted.append(ctypes.c_int64(int(argument)))
    return int(_function(name)(*converted))


def count(value: int, what: str, *, least: int = 0) -> int:
    """Return a number of things as an int.

    Raises
    ------
    DatError
        When it is less than ``least`` or does not fit a 32-bit index.
    """
    number = int(value)
    if not least <= number <= _LARGEST:
        raise DatError(f"{what} is {number}; it must lie between {least} and {_LARGEST}")
    return number


def indices(array: npt.NDArray[Any], what: str) -> Indices:
    """Return a one-dimensional contiguous int32 array as it is.

    Raises
    ------
    DatError
        When it is anything else; no copy is made behind the caller's back.
    """
    _check_array(array, what, np.int32, (1,))
    return array


def offsets(array: npt.NDArray[Any], what: str, last: int) -> Offsets:
    """Return row offsets as they are: int64, from 0 up to ``last``, never descending.

    Raises
    ------
    DatError
        When they are anything else.
    """
    _check_array(array, what, np.int64, (1,))
    if array.size == 0 or array[0] != 0 or array[-1] != last or bool(np.any(array[1:] < array[:-1])):
        raise DatError(f"{what} must ascend from 0 to {last}, one entry more than there are rows")
    return array


def row_order(order: npt.NDArray[Any] | None, n: int) -> Offsets:
    """Return the order in which ``n`` rows are visited as contiguous int64; an empty array for None: one by one.

    Raises
    ------
    DatError
        When it has not ``n`` entries in ``0 .. n - 1``.
    """
    if order is None:
        return np.zeros(0, dtype=np.int64)
    if order.shape != (n,) or (n and not 0 <= int(order.min()) <= int(order.max()) < n):
        raise DatError(f"an order of {n} rows must list 0 ... {n - 1}")
    return np.ascontiguousarray(order, dtype=np.int64)


def table(array: npt.NDArray[Any], what: str = "table") -> Indices:
    """Return an ``(n, arity)`` contiguous int32 table as it is; one of shape ``(n,)`` as ``(n, 1)``.

    Raises
    ------
    DatError
        For another type, shape or memory order, or more than 2**31 - 1 rows.
    """
    _check_array(array, what, np.int32, (1, 2))
    count(array.shape[0], f"the number of rows of {what}")
    return array.reshape(array.shape[0], 1) if array.ndim == 1 else array


def table_in_range(array: npt.NDArray[Any], n_targets: int, what: str = "table") -> Indices:
    """Return a table as :func:`table` does, every entry of which names a target.

    Raises
    ------
    DatError
        Also when an entry is negative or not below ``n_targets``; the message names the first.
    """
    checked = table(array, what)
    bad = check_range(checked, count(n_targets, "n_targets"))
    if bad >= 0:
        row, leg = divmod(bad, checked.shape[1])
        value = int(checked[row, leg])
        raise DatError(f"{what}[{row}, {leg}] is {value}; targets are numbered from 0 to {n_targets - 1}")
    return checked


def check_range(array: npt.NDArray[np.int32], n: int) -> int:
    """Return the flat index of the first entry that is not in ``0 .. n - 1``, or -1 when all are.

    Parameters
    ----------
    array
        C-contiguous int32 array of any shape.

    Raises
    ------
    DatError
        When the array is of another type or not contiguous, or ``n`` is negative.
    """
    _check_array(array, "array", np.int32, ())
    return call("check_range", array, array.size, count(n, "n"))


def _check_array(array: npt.NDArray[Any], what: str, dtype: type, dimensions: tuple[int, ...]) -> None:
    """Check type, number of dimensions (any, if none are given) and contiguity."""
    if not isinstance(array, np.ndarray):
        raise DatError(f"{what} must be a NumPy array, not {type(array).__name__}")
    wanted = np.dtype(dtype)
    if array.dtype != wanted:
        raise DatError(f"{what} has dtype {array.dtype}; convert it with .astype(np.{wanted.name})")
    if dimensions and array.ndim not in dimensions:
        shapes = " or ".join(str(d) for d in dimensions)
        raise DatError(f"{what} has shape {array.shape}; it must have {shapes} dimension(s)")
    if not array.flags.c_contiguous:
        raise DatError(f"{what} is not C-contiguous; copy it with np.ascontiguousarray")


def is_injective(table: Indices, n_targets: int, *, between_rows: bool = False) -> bool:
    """Whether each target occurs at most once in a table.

    Parameters
    ----------
    table
        Shape ``(n, arity)``.
    n_targets
        Number of targets.
    between_rows
        Whether a target may occur several times in one row, as long as no other row has it.

    Raises
    ------
    DatError
        When the table has the wrong type or names targets that do not exist.
    """
    checked = table_in_range(table, n_targets)
    if between_rows:
        owner = np.empty(n_targets, dtype=np.int32)
        return call("first_shared", checked, checked.shape[0], checked.shape[1], n_targets, owner) < 0
    return call("first_repeated", checked, checked.size, np.zeros(n_targets, dtype=np.uint8)) < 0


def covers(table: Indices, n_targets: int) -> bool:
    """Whether each target occurs at least once in a table of shape ``(n, arity)``.

    Raises
    ------
    DatError
        When the table has the wrong type or names targets that do not exist.
    """
    checked = table_in_range(table, n_targets)
    met = np.zeros(count(n_targets, "n_targets"), dtype=np.uint8)
    return call("count_met", checked, checked.size, met) == n_targets
