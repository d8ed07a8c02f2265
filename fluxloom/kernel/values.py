"""What an expression of a kernel can stand for while it is lowered, besides a scalar IR expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxloom.kernel.ir import Constant, Expression, Kind

__all__ = ["ArrayView", "ConstantArray", "ListValue", "ParameterView", "TupleValue", "Value", "constant_array"]


@dataclass(frozen=True)
class ParameterView:
    """A data parameter indexed by ``path`` so far (leg first, when it has legs)."""

    parameter: str
    path: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class ArrayView:
    """A local array indexed by ``path`` so far."""

    array: str
    path: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class ConstantArray:
    """A captured tuple or a baked array, row-major; ``commas`` when ``c[i, j]`` is legal Python for it."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    values: tuple[float | int | bool, ...]
    commas: bool = False

    def item(self, index: int) -> Constant | ConstantArray:
        """Return the sub-array, or the constant, at one index of the first dimension."""
        size = len(self.values) // self.shape[0]
        part = self.values[index * size : (index + 1) * size]
        if len(self.shape) == 1:
            return Constant(self.kind, part[0])
        return ConstantArray(f"{self.name}_{index}", self.kind, self.shape[1:], part, self.commas)


@dataclass(frozen=True)
class TupleValue:
    """A Python tuple of values: what a ``@func`` returns, or the right side of ``a, b = ...``."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class ListValue:
    """A list display that has no storage yet: row-major elements."""

    shape: tuple[int, ...]
    elements: tuple[Expression, ...]
    commas: bool = False


Value = Expression | ParameterView | ArrayView | ConstantArray | TupleValue | ListValue


def constant_array(name: str, value: Any, kind: Kind | None = None) -> ConstantArray | None:
    """Return nested sequences of numbers as a constant array.

    Parameters
    ----------
    name
        What the array is called in messages and in the generated code.
    value
        A (nested) tuple or list of numbers, or a NumPy array.
    kind
        The declared kind of the elements; deduced from the values when ``None``.

    Returns
    -------
    ConstantArray or None
        ``None`` when the value is empty, ragged, not numeric, or real where integers were declared.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return None
    if array.ndim == 0 or array.size == 0 or array.dtype.kind not in "bif":
        return None
    found = {"b": Kind.BOOL, "i": Kind.INT, "f": Kind.REAL}[array.dtype.kind]
    if kind is None:
        kind = found
    if kind is not found and (kind, found) != (Kind.REAL, Kind.INT):
        return None
    convert = float if kind is Kind.REAL else int if kind is Kind.INT else bool
    elements = tuple(convert(item) for item in array.ravel().tolist())
    return ConstantArray(name, kind, tuple(array.shape), elements, commas=isinstance(value, np.ndarray))
