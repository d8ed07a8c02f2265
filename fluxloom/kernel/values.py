"""What an expression of a kernel can stand for while it is lowered, besides a scalar IR expression."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluxloom.kernel.ir import Constant, Expression, Kind
from fluxloom.kernel.marks import Helper

__all__ = [
    "ArrayView",
    "ConstantArray",
    "FunctionValue",
    "Known",
    "ListValue",
    "NoneValue",
    "OpaqueValue",
    "ParameterView",
    "RecordValue",
    "StoredField",
    "TupleValue",
    "Value",
    "constant_array",
    "inner_values",
    "number",
]

INT64 = 2**63


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


@dataclass(frozen=True)
class StoredField:
    """A field of a record that is a local variable: a scalar local, whose kind is that of all its assignments."""

    name: str


@dataclass(frozen=True)
class RecordValue:
    """A frozen dataclass: its fields by name, and the ``@func`` methods of its class.

    Attributes
    ----------
    given
        What its properties are evaluated on; None for a record that the kernel builds.
    """

    kind: type
    fields: tuple[tuple[str, Value], ...]
    given: Any = field(default=None, compare=False, repr=False)

    def part(self, name: str) -> Value | None:
        """Return a field, None where there is none of that name."""
        return next((value for known, value in self.fields if known == name), None)


@dataclass(frozen=True)
class FunctionValue:
    """A ``@func``; one of a record has that as its first argument, and a property is called ``at_once``."""

    helper: Helper
    record: RecordValue | None = None
    at_once: bool = False


@dataclass(frozen=True)
class NoneValue:
    """``None``: data that a loop leaves out, a strategy or a field that is not there."""

    name: str = field(compare=False)


@dataclass(frozen=True)
class OpaqueValue:
    """What a record holds for Python alone, such as a text."""

    name: str = field(compare=False)
    content: Any


Value = (
    Expression | ParameterView | ArrayView | ConstantArray | TupleValue | ListValue
    | StoredField | RecordValue | FunctionValue | NoneValue | OpaqueValue
)  # fmt: skip


Known = Constant | ConstantArray | RecordValue | FunctionValue | TupleValue | NoneValue | OpaqueValue
"""What a name from outside may stand for, beside functions, modules and classes."""


def inner_values(value: Value) -> tuple[Value, ...]:
    """Return the values directly inside a tuple, a record or a method of one."""
    if isinstance(value, TupleValue):
        return value.items
    if isinstance(value, RecordValue):
        return tuple(item for _, item in value.fields)
    return (value.record,) if isinstance(value, FunctionValue) and value.record is not None else ()


def number(value: object) -> Constant | None:
    """Return a Python or NumPy number as a typed constant, or ``None`` when it is not one."""
    if isinstance(value, (bool, np.bool_)):
        return Constant(Kind.BOOL, bool(value))
    if isinstance(value, (int, np.integer)):
        return Constant(Kind.INT, int(value)) if -INT64 <= int(value) < INT64 else None
    if isinstance(value, (float, np.floating)):
        return Constant(Kind.REAL, float(value))
    return None


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
