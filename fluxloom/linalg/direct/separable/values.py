"""Right-hand sides and solutions in host memory: their types and shapes, and their way to a device and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError, SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.dats import Dat

__all__ = ["HostValues", "check_out", "real_values"]


class HostValues:
    """Memory of a device for right-hand sides of the host, which solutions replace there.

    Parameters
    ----------
    device
        Whose memory.
    shape, dtype
        Of right-hand sides and solutions.
    """

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self.array = DeviceArray.zeros(device, shape, dtype)

    def load(self, f: npt.ArrayLike) -> None:
        """Bring a right-hand side to the device.

        Raises
        ------
        SolverError
            If the values are no real numbers or the shape does not fit.
        """
        values = real_values(f, self.array.dtype)
        if values.shape != self.array.shape:
            raise SolverError(f"separable: f has shape {values.shape}; the problem has {self.array.shape}")
        self.array.host(write=True)[...] = values

    def solved(
        self, f: npt.ArrayLike, out: npt.NDArray[Any] | None, solve: Callable[[], None]
    ) -> npt.NDArray[Any]:
        """Return the solution: ``out``, or a new array.

        Raises
        ------
        SolverError
            See `load`.
        DatError
            If ``out`` has another shape or type, or is read-only.
        """
        check_out(out, self.array.shape, self.array.dtype)
        self.load(f)
        solve()
        found = self.array.host()
        if out is None:
            return found.copy()
        out[...] = found
        return out


def real_values(f: npt.ArrayLike, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a right-hand side in a solver's type.

    Raises
    ------
    SolverError
        If the values are no real numbers.
    """
    array = np.asarray(f)
    if array.dtype.kind not in "biuf":
        raise SolverError(f"separable: f is of {array.dtype}: give real numbers")
    return array.astype(dtype, copy=False)


def check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Complain of what cannot hold the solution: it would be left unwritten, or be rounded.

    Raises
    ------
    DatError
        See `SeparableSolver`.
    """
    if out is None:
        return
    if isinstance(out, Dat):
        kind = np.dtype(out.scalar.numpy)
    elif isinstance(out, DeviceArray) or (hasattr(out, "shape") and hasattr(out, "dtype")):
        kind, size = np.dtype(out.dtype), tuple(out.shape)
        if size != shape:
            raise DatError(f"separable: out has shape {size}, the problem {shape}: give both the same")
    else:
        raise DatError(f"separable: out is an array that can be written to, or a dat, not a {type(out).__name__}")
    if kind != dtype:
        raise DatError(f"separable: out is of {kind}, the solver of {dtype}: give out as that, or dtype= to the solver")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise DatError("separable: out is read-only: give an array that can be written")
