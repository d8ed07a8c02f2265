"""What solvers of many tridiagonal systems are given: where the values lie, which matrices, and how code is told.

Row ``i`` of a system is ``a_i u_{i-1} + b_i u_i + c_i u_{i+1} = y_i``, ``i = 0 ... n - 1``. ``a_0`` and ``c_{n-1}`` are
not read, unless the systems are periodic: then they couple the first and the last row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from fluxloom.codegen.primitive import Function, Parameter

__all__ = ["Code", "Coefficients", "Form", "Lines", "Method", "parameters"]

Coefficients = Literal["each", "shared", "shifted"]
"""Every system has its own three diagonals; all share three; or all share them up to a shift of the main one."""


@dataclass(frozen=True)
class Lines:
    """Where the values of many systems lie in an array.

    Row ``i`` of the right-hand side ``r`` of the system ``(o, s)``, whose number is ``o * inner + s``, is the value
    ``first + o * outer_step + s * inner_step + i * row_step + r * rhs_step``.

    Attributes
    ----------
    rows
        Rows of a system.
    inner, outer
        Systems: ``inner * outer`` of them.
    rhs
        Right-hand sides of each system.
    row_step, inner_step, outer_step, rhs_step
        Distances, in values.
    first
        Of the first value.
    """

    rows: int
    inner: int
    outer: int = 1
    rhs: int = 1
    row_step: int = 1
    inner_step: int = 1
    outer_step: int = 0
    rhs_step: int = 0
    first: int = 0

    @property
    def systems(self) -> int:
        """Number of systems."""
        return self.inner * self.outer

    @property
    def interleaved(self) -> bool:
        """Whether neighbours in memory are of different systems, not of different rows of one."""
        return abs(self.inner_step) < abs(self.row_step) or self.rows == 1


@dataclass(frozen=True)
class Form:
    """What the code of a solver depends on.

    Attributes
    ----------
    real
        C type of all values: ``"double"`` or ``"float"``.
    coefficients
        See `Coefficients`.
    periodic
        Whether the last row is a neighbour of the first.
    rhs
        Right-hand sides that are eliminated together.
    """

    real: str = "double"
    coefficients: Coefficients = "each"
    periodic: bool = False
    rhs: int = 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of all values."""
        return np.dtype(np.float64 if self.real == "double" else np.float32)

    @property
    def size(self) -> int:
        """Bytes of a value."""
        return self.dtype.itemsize


def parameters(form: Form) -> tuple[Parameter, ...]:
    """Return what every function that solves systems is given, whatever its method.

    ``y`` and ``x`` have the steps of `Lines` and may be the same memory. The diagonals of the system ``(o, s)`` are
    ``a[o * c_outer + s * c_inner + i * c_row]`` and so on. With ``"shifted"`` the main diagonal is
    ``b[i] + mass[i] * (inner_shift[s] + outer_shift[o])``; else these three are not read. The right-hand side is
    ``scale * y``. The system of number ``pinned`` has twice its first diagonal value (-1: none has): that settles
    the constant of a singular system whose right-hand side fits. ``work`` is memory of the method's own;
    ``status[0]`` becomes at least the number of a system plus one when a pivot of it vanishes.
    """
    pointer = f"{form.real} *"
    read = [Parameter(pointer, name) for name in ("a", "b", "c", "mass", "inner_shift", "outer_shift")]
    sizes = [
        "rows", "inner", "outer", "y_first", "x_first", "row_step", "inner_step", "outer_step", "rhs_step",
        "c_row", "c_inner", "c_outer", "pinned",
    ]  # fmt: skip
    return (
        Parameter(pointer, "y", shared=True),
        Parameter(pointer, "x", written=True, shared=True),
        *read,
        Parameter(pointer, "work", written=True),
        Parameter("int32_t *", "status", written=True),
        *(Parameter("int64_t", name) for name in sizes),
        Parameter("double", "scale"),
    )


@dataclass(frozen=True)
class Code:
    """What solves systems.

    Attributes
    ----------
    functions
        What has to be compiled; they are called in this order, each with `parameters`.
    items
        Work items of each (1 where functions are plain).
    helpers
        Text before them.
    words
        Values of working memory, ``work``.
    """

    functions: tuple[Function, ...]
    items: tuple[int, ...]
    helpers: str
    words: int


class Method(Protocol):
    """One way to solve systems, on one kind of device."""

    @property
    def name(self) -> str:
        """Its name, as users give it."""
        ...

    def code(self, form: Form, lines: Lines) -> Code:
        """Return what solves systems."""
        ...

    def refuses(self, form: Form, lines: Lines) -> str:
        """Return why systems of this form cannot be solved this way, or an empty string."""
        ...
