"""Scalar types of storage and arithmetic, and how the components of a dat are laid out in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError, did_you_mean

__all__ = [
    "FLOAT32", "FLOAT64", "INT32", "INT64", "PAD", "SCALARS", "UINT8", "AoS", "Blocked", "Layout", "Scalar", "SoA",
    "padded", "scalar",
]  # fmt: skip


@dataclass(frozen=True)
class Scalar:
    """A storage type: its NumPy dtype and its spelling in C.

    Attributes
    ----------
    name
        ``"float64"``, ``"float32"``, ``"float16"``, ``"int64"``, ``"int32"`` or ``"uint8"``.
    c
        The C spelling of the stored value.
    size
        Bytes of one value.
    floating
        Whether arithmetic on it is real arithmetic.
    """

    name: str
    c: str
    size: int
    floating: bool

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype."""
        return np.dtype(self.name)

    @property
    def real(self) -> type[np.floating[Any]]:
        """The type of NumPy's scalars, of a type of reals."""
        return {"float64": np.float64, "float32": np.float32, "float16": np.float16}[self.name]

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        return int(np.iinfo(self.name).min), int(np.iinfo(self.name).max)


FLOAT64 = Scalar("float64", "double", 8, True)
FLOAT32 = Scalar("float32", "float", 4, True)
FLOAT16 = Scalar("float16", "_Float16", 2, True)
INT64 = Scalar("int64", "int64_t", 8, False)
INT32 = Scalar("int32", "int32_t", 4, False)
UINT8 = Scalar("uint8", "uint8_t", 1, False)
SCALARS: dict[str, Scalar] = {
    s.name: s for s in (FLOAT64, FLOAT32, FLOAT16, INT64, INT32, UINT8)
}


def scalar(dtype: npt.DTypeLike | Scalar) -> Scalar:
    """Return the `Scalar` of a NumPy dtype or name.

    Raises
    ------
    DatError
        If the dtype is not one that dats can store.
    """
    if isinstance(dtype, Scalar):
        return dtype
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in SCALARS:
        allowed = ", ".join(SCALARS)
        raise DatError(f"dtype {name!r} cannot be stored; use one of {allowed}{did_you_mean(name, SCALARS)}")
    return SCALARS[name]


PAD = 64
"""Storage is padded to a multiple of this many elements, so that a vector load never leaves it."""


@dataclass(frozen=True)
class AoS:
    """Array of structures: component ``c`` of element ``i`` at ``i * d + c``."""


@dataclass(frozen=True)
class SoA:
    """Structure of arrays: component ``c`` of element ``i`` at ``c * n + i`` (``n`` padded)."""


@dataclass(frozen=True)
class Blocked:
    """Blocks of ``size`` elements, structure of arrays inside each block.

    Component ``c`` of element ``i`` is at ``(i // size) * size * d + c * size + i % size``.
    """

    size: int = 8

    def __post_init__(self) -> None:
        if self.size not in (4, 8, 16, 32, 64):
            raise DatError(f"Blocked(size={self.size}): the block must be 4, 8, 16, 32 or 64 elements")


Layout = AoS | SoA | Blocked


def padded(n: int) -> int:
    """Return ``n`` rounded up to a multiple of `PAD` (at least one block)."""
    return max(PAD, -(-n // PAD) * PAD)
