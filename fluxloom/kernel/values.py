"""What an expression of a kernel can stand for while it is lowered, besides a scalar IR expression.

Strategies are values too: records with fields, properties and methods, formulas, tuples of them. Properties are
evaluated when a kernel is specialised, so they may not read fields that change at run time: what one reads is watched.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, field, fields
from types import MethodType
from typing import Any

import numpy as np

from fluxloom.core.errors import did_you_mean
from fluxloom.kernel.ir import Constant, Expression, Kind, ReadConstant
from fluxloom.kernel.record_fields import (
    Helper,
    RecordProblem,
    check_strategy,
    declared_kind,
    is_record,
    is_run_time,
    run_time_fields,
)  # fmt: skip

__all__ = [
    "ArrayView", "ConstantArray", "FunctionValue", "Known", "ListValue", "NoneValue", "OpaqueValue", "ParameterView",
    "RecordValue", "StoredField", "TupleValue", "Value", "called_method", "constant_array", "default_value",
    "inner_values", "member", "number", "strategy_value",
]  # fmt: skip

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


def strategy_value(name: str, value: Any, *, run_time: bool, shown: str = "") -> Value:
    """Return what a strategy, or a field of one, is in a kernel.

    Parameters
    ----------
    name
        Its name in the generated code; with ``run_time``, fields annotated ``float`` are run-time constants
        ``name_field``, without it they are numbers.
    shown
        Its name in messages, where that is another one.
    """
    if value is None:
        return NoneValue(shown or name)
    if isinstance(value, Helper):
        return FunctionValue(value)
    if isinstance(value, (tuple, np.ndarray)):
        table = constant_array(name, value)
        if table is not None:
            return table
    if isinstance(value, tuple):
        return TupleValue(tuple(strategy_value(f"{name}_{k}", item, run_time=run_time) for k, item in enumerate(value)))
    if not is_record(type(value)):
        return number(value) or OpaqueValue(shown or name, value)
    kind: Any = type(value)
    parts = tuple((item.name, _field(f"{name}_{item.name}", value, item.name, run_time)) for item in fields(kind))
    watched = run_time and run_time_fields(name, value)
    return RecordValue(kind, parts, _Watched(value) if watched else value)


def _field(path: str, record: Any, name: str, run_time: bool) -> Value:
    kind, given = type(record), getattr(record, name)
    if run_time and is_run_time(kind, name):
        return ReadConstant(Kind.REAL, path)
    given = float(given) if declared_kind(kind, name) is float else given
    return strategy_value(path, given, run_time=run_time, shown=f"{kind.__name__}.{name}")


# -------------------------------------------------------------------------------------------- members


def member(record: RecordValue, name: str) -> Value:
    """Return a field, a property, a method or a number of the class of a record.

    Raises
    ------
    RecordProblem
        When there is none of that name, or none that a kernel can use.
    """
    found = record.part(name)
    if found is not None:
        return found
    kind = record.kind
    static = inspect.getattr_static(kind, name, None)
    if isinstance(static, Helper):
        return FunctionValue(static, record)
    if isinstance(static, staticmethod) and isinstance(static.__func__, Helper):
        return FunctionValue(static.__func__)
    if isinstance(static, property) and isinstance(static.fget, Helper):
        return FunctionValue(static.fget, record, at_once=True)
    if isinstance(static, (property, functools.cached_property)):
        return _property(record, name)
    if isinstance(static, classmethod):
        raise RecordProblem(f"{name!r} is a class method of {kind.__name__}", "make it a @staticmethod above a @func")
    if inspect.isroutine(static) or isinstance(static, staticmethod):
        raise RecordProblem(f"{name!r} of {kind.__name__} is an ordinary Python method",
                            "decorate it with @fluxloom.func")  # fmt: skip
    if not _is_there(kind, name) or name.startswith("__"):
        known = [*(item.name for item in fields(kind)), *(key for key in dir(kind) if not key.startswith("_"))]
        raise RecordProblem(f"{kind.__name__} has no {name!r}{did_you_mean(name, known)}",
                            "a kernel sees fields, properties, numbers of the class and its @func methods")  # fmt: skip
    return _constant_value(f"{kind.__name__}_{name}", static)


def _is_there(kind: type, name: str) -> bool:
    return any(name in vars(base) for base in kind.__mro__)


def called_method(record: RecordValue) -> FunctionValue:
    """Return what a call of a record calls.

    Raises
    ------
    RecordProblem
        When its class has no ``@func`` called ``__call__``.
    """
    method = next((vars(base)["__call__"] for base in record.kind.__mro__ if "__call__" in vars(base)), None)
    if isinstance(method, Helper):
        return FunctionValue(method, record)
    name = record.kind.__name__
    if method is not None:
        raise RecordProblem(f"the __call__ of {name} is an ordinary Python method", "decorate it with @fluxloom.func")
    raise RecordProblem(f"{name} cannot be called", "give it a @func called __call__, or name one of its methods")


def _property(record: RecordValue, name: str) -> Value:
    """Evaluate a property."""
    of = f"the property {name!r} of {record.kind.__name__}"
    if record.given is None:
        raise RecordProblem(f"{of} is asked for where a kernel built the record", "make it a @func without arguments")
    try:
        found = getattr(record.given, name)
    except _RunTimeRead as read:
        raise RecordProblem(
            f"{of} reads {read.field!r}, which is known at run time only: properties are part of the code",
            f"put @fluxloom.func below the @property of {name!r}, or annotate {read.field!r} Const[float]: it is baked "
            "in then",
        ) from None
    except Exception as problem:
        what = f"{of} cannot be evaluated: {type(problem).__name__}: {problem}"
        raise RecordProblem(what, "properties that kernels use are computed from fields") from problem
    return _constant_value(f"{record.kind.__name__}_{name}", found.item() if isinstance(found, np.generic) else found)


def default_value(kind: type, name: str, value: Any) -> Value:
    """Return what a field of a record that a kernel builds holds by default."""
    real = declared_kind(kind, name) is float and isinstance(value, (int, np.integer))
    return _constant_value(f"{kind.__name__}_{name}", float(value) if real else value)


def _constant_value(name: str, value: Any) -> Value:
    """Return a value that is known when the kernel is specialised."""
    if isinstance(value, list):
        value = np.asarray(value)
    if is_record(type(value)):
        check_strategy(name, value)
    return strategy_value(name, value, run_time=False)


# ------------------------------------------------------------------------------- what a property reads


class _RunTimeRead(BaseException):
    """A property reads a field that changes at run time; no `Exception`, so that no property catches it."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


class _Watched:
    """Stands for a record while its properties are evaluated: fields that change at run time cannot be read."""

    def __init__(self, record: Any) -> None:
        self._watched = record

    def __getattribute__(self, name: str) -> Any:
        record = object.__getattribute__(self, "_watched")
        kind = type(record)
        if name == "__class__":  # for `isinstance` and `super` in properties
            return kind
        if name in {item.name for item in fields(kind)}:
            if is_run_time(kind, name):
                raise _RunTimeRead(name)
            return _watch(getattr(record, name))
        static = inspect.getattr_static(kind, name)
        if isinstance(static, Helper):
            return MethodType(getattr(static, "function"), self)
        if isinstance(static, functools.cached_property):
            return static.func(self)
        if isinstance(static, (property, staticmethod, classmethod)) or inspect.isfunction(static):
            return static.__get__(self, kind)
        return static

    def __eq__(self, other: object) -> bool:
        raise _RunTimeRead(run_time_fields("", object.__getattribute__(self, "_watched"))[0][0].strip("_"))

    def __hash__(self) -> int:  # it would compare too
        return int(self == self)

    def __repr__(self) -> str:
        return str(self == self)

    def __call__(self, *arguments: Any) -> Any:
        return self.__getattribute__("__call__")(*arguments)


def _watch(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_watch, value))
    return _Watched(value) if is_record(type(value)) and run_time_fields("", value) else value
