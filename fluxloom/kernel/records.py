"""Strategies as values of a kernel: records with fields, properties and methods, formulas, tuples of them.

Properties are evaluated when a kernel is specialised, so they may not read fields that change at run time: what one
reads is watched.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import fields
from types import MethodType
from typing import Any

import numpy as np

from fluxloom.core.errors import did_you_mean
from fluxloom.kernel.ir import Kind, ReadConstant
from fluxloom.kernel.marks import Helper
from fluxloom.kernel.record_fields import (
    RecordProblem,
    check_strategy,
    declared_kind,
    is_record,
    is_run_time,
    run_time_fields,
)  # fmt: skip
from fluxloom.kernel.values import (
    FunctionValue,
    NoneValue,
    OpaqueValue,
    RecordValue,
    TupleValue,
    Value,
    constant_array,
    number,
)  # fmt: skip

__all__ = ["called_method", "default_value", "member", "strategy_value"]


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
