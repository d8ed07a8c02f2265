"""Records, frozen dataclasses that a kernel takes as one constant: what fields may hold, which change at run time.

A field annotated ``float`` is a run-time constant of the loop, called by its path: ``flux_gas_gamma``. All others are
part of the code.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin

import numpy as np

from fluxloom.core.access import Const
from fluxloom.core.errors import did_you_mean
from fluxloom.core.strategies import default_of

__all__ = [
    "Helper", "KernelMarker", "RecordProblem", "build_problem", "built_fields", "check_strategy", "declared_kind",
    "difference", "is_record", "is_run_time", "named_arguments", "positional_fields", "run_time_fields",
    "strategy_identity", "with_fields",
]  # fmt: skip


class Helper(ABC):
    """Base of `fluxloom.kernel.frontend.Formula`: something a kernel may call and that is inlined.

    Attributes
    ----------
    source
        Its `fluxloom.kernel.source.FunctionSource`.
    """

    source: Any

    @abstractmethod
    def meaning(self, real: Any) -> Callable[..., Any]:
        """Return the function that does what the helper means, see `fluxloom.kernel.meaning`."""


class KernelMarker:
    """Base of `fluxloom.kernel.frontend.Kernel`, so that calling a kernel from a kernel is recognised."""


_NAMES: Mapping[str, type] = MappingProxyType({"float": float, "int": int, "bool": bool, "str": str})


class RecordProblem(Exception):
    """Why something cannot be taken for a strategy, with a hint; whoever knows the place makes an error of it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def is_record(kind: type) -> bool:
    """Whether a class is a frozen dataclass."""
    return dataclasses.is_dataclass(kind) and bool(getattr(kind, "__dataclass_params__").frozen)


# ------------------------------------------------------------------------------------- kinds of fields


@functools.lru_cache(maxsize=512)
def _types(kind: type) -> Mapping[str, Any]:
    """Return the annotation of each field; a text where it cannot be evaluated."""
    return MappingProxyType({item.name: _type(kind, item) for item in dataclasses.fields(kind)})


def _type(kind: type, item: dataclasses.Field[Any]) -> Any:
    found: Any = item.type
    if isinstance(found, str):
        owner = next(base for base in kind.__mro__ if item.name in vars(base).get("__annotations__", {}))
        names = vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}
        try:
            found = eval(found, dict(names), dict(vars(owner)))
        except Exception:  # a name for type checkers, or of the function around the class
            found = _NAMES.get(found.strip(), found)
    while get_origin(found) is Annotated or hasattr(found, "__supertype__"):
        found = get_args(found)[0] if get_origin(found) is Annotated else found.__supertype__
    return found


def is_run_time(kind: type, name: str) -> bool:
    """Whether a field is a run-time constant: it is annotated ``float``."""
    found = _types(kind)[name]
    return isinstance(found, type) and issubclass(found, (float, np.floating))


@functools.lru_cache(maxsize=512)
def _parted(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the fields that change at run time, and of those that are part of the code."""
    names = [item.name for item in dataclasses.fields(kind)]
    return tuple(n for n in names if is_run_time(kind, n)), tuple(n for n in names if not is_run_time(kind, n))


def positional_fields(kind: type) -> list[str]:
    """Return the names of the fields that the constructor of a record takes by position."""
    return [item.name for item in dataclasses.fields(kind) if not item.kw_only]


def declared_kind(kind: type, name: str) -> type | None:
    """Return the kind of number that a field is declared to hold, None where that is open."""
    found = _types(kind)[name]
    if get_origin(found) is Const:
        (found,) = get_args(found)
    if not isinstance(found, type):
        return None
    if issubclass(found, (float, np.floating)):
        return float
    return found if found in (int, bool) else None


# ------------------------------------------------------------------------------------------- checks


def check_strategy(name: str, value: Any) -> None:
    """Raise `RecordProblem` when a value is no ``@func``, no record, or one with a field that cannot be part of code.

    Parameters
    ----------
    name
        How the value is called in messages.
    """
    if isinstance(value, Helper):
        return
    kind = type(value)
    if isinstance(value, type):
        raise RecordProblem(f"{name!r} is the class {value.__name__}, not one of its instances",
                            f"give an instance: {value.__name__}(...)")  # fmt: skip
    if isinstance(value, KernelMarker):
        raise RecordProblem(f"{name!r} is a kernel: a kernel cannot call another", "make the shared part a @func")
    if inspect.ismethod(value):
        raise RecordProblem(f"{name!r} is a method of a {type(value.__self__).__name__}", "give the record itself")
    if inspect.isroutine(value) or isinstance(value, functools.partial):
        called = getattr(value, "__name__", "a partial call")
        raise RecordProblem(f"{name!r} is {called!r}, an ordinary Python function", "decorate it with @fluxloom.func")
    if dataclasses.is_dataclass(kind) and not is_record(kind):
        raise RecordProblem(f"{name!r} is a {kind.__name__}, a dataclass that is not frozen",
                            "declare it @dataclass(frozen=True)")  # fmt: skip
    if not is_record(kind):
        raise RecordProblem(f"{name!r} is {_shown(value)}: no @func and no record",
                            "give a @func, or a frozen dataclass whose methods are @func")  # fmt: skip
    for item in dataclasses.fields(value):
        if not hasattr(value, item.name):
            raise RecordProblem(f"the field {name}.{item.name} of {kind.__name__} has no value")
        _check_field(f"{name}.{item.name}", kind, item.name, getattr(value, item.name))


def _check_field(path: str, kind: type, name: str, value: Any) -> None:
    declared = declared_kind(kind, name)
    if declared is None:
        _check_part(path, value)
        return
    truth = isinstance(value, (bool, np.bool_))
    whole = isinstance(value, (int, np.integer)) and not truth
    fits = {float: whole or isinstance(value, (float, np.floating)), int: whole, bool: truth}[declared]
    if not fits:
        raise RecordProblem(f"the field {path} is {declared.__name__} but holds {_shown(value)}",
                            f"give {'a number' if declared is float else f'an {declared.__name__}'}")  # fmt: skip
    if declared is int and not -(2**63) <= int(value) < 2**63:
        raise RecordProblem(f"the field {path} does not fit in 64 bits: {value}")


def _check_part(path: str, value: Any) -> None:
    """Check what a field of no kind of number holds: nothing that may change later."""
    if isinstance(value, tuple):
        for k, item in enumerate(value):
            _check_part(f"{path}[{k}]", item)
    elif dataclasses.is_dataclass(type(value)):
        check_strategy(path, value)
    elif isinstance(value, (np.ndarray, list)):
        raise RecordProblem(f"the field {path} is {_shown(value)}, which may change behind the kernel's back",
                            "make it a tuple of numbers, nested ones for several dimensions")  # fmt: skip
    elif not isinstance(value, Hashable):
        raise RecordProblem(f"the field {path} is {_shown(value)}, which may change behind the kernel's back",
                            "use numbers, tuples, texts, records and @funcs")  # fmt: skip


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return f"a {type(value).__name__}" if isinstance(value, (list, dict, set)) else repr(value)


# ------------------------------------------------------------------------------------ run-time fields


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is directly inside a tuple or a record, with the names of run-time constants in it."""
    if isinstance(value, tuple):
        for k, item in enumerate(value):
            yield f"{name}_{k}", item
    elif is_record(type(value)):
        for field in _parted(type(value))[1]:
            yield f"{name}_{field}", getattr(value, field)


def run_time_fields(name: str, value: Any) -> list[tuple[str, float]]:
    """Return the run-time constants that a strategy brings: ``name_field`` and its value, in order of declaration."""
    found: list[tuple[str, float]] = []
    if is_record(type(value)):
        found += [(f"{name}_{field}", float(getattr(value, field))) for field in _parted(type(value))[0]]
    for inner, item in _inside(name, value):
        found += run_time_fields(inner, item)
    return found


def with_fields(name: str, value: Any, given: Mapping[str, Any]) -> Any:
    """Return a strategy with the values that its run-time fields have in ``given``, by their names there."""
    if isinstance(value, tuple):
        return tuple(with_fields(f"{name}_{k}", item, given) for k, item in enumerate(value))
    if not is_record(type(value)):
        return value
    new = copy.copy(value)
    for item in dataclasses.fields(value):
        inner = f"{name}_{item.name}"
        changing = is_run_time(type(value), item.name)
        now = given[inner] if changing else with_fields(inner, getattr(value, item.name), given)
        object.__setattr__(new, item.name, now)  # not by its constructor: what that computes is in other fields
    return new


# ------------------------------------------------------------------------------------------ identity


def strategy_identity(value: Any) -> Hashable:
    """Return what tells the code of a strategy from others: types and signs of zero do, run-time fields do not."""
    if isinstance(value, tuple):
        return tuple(map(strategy_identity, value))
    if is_record(type(value)):
        kind = type(value)
        return kind, tuple(strategy_identity(getattr(value, name)) for name in _parted(kind)[1])
    if isinstance(value, (bool, int, float, np.generic)) and not isinstance(value, Enum):
        return type(value), repr(value)
    return type(value), value


def difference(name: str, old: Any, new: Any) -> str:
    """Say in what the code of two strategies differs; an empty text where only run-time fields do."""
    if strategy_identity(old) == strategy_identity(new):
        return ""
    if type(old) is not type(new):
        other = "another class of that name" if _named(old) == _named(new) else _named(new)
        return f"{name} is {_named(old)} there, not {other}"
    if isinstance(old, tuple):
        if len(old) != len(new):
            return f"{name} has {len(old)} entries there, not {len(new)}"
        pairs = [(f"{name}[{k}]", a, b) for k, (a, b) in enumerate(zip(old, new, strict=True))]
    elif is_record(type(old)):
        pairs = [(f"{name}.{field}", getattr(old, field), getattr(new, field)) for field in _parted(type(old))[1]]
    else:
        return f"{name} is {old!r} there, not {new!r}"
    return next(text for text in (difference(*pair) for pair in pairs) if text)


def _named(value: Any) -> str:
    return f"a {type(value).__name__}" if is_record(type(value)) else repr(value)


# ------------------------------------------------------------------------------ records built in kernels


def build_problem(kind: type) -> RecordProblem | None:
    """Return why a kernel cannot build a record of a class: its constructor does more than to take the fields."""
    name, parameters = kind.__name__, getattr(kind, "__dataclass_params__")
    if hasattr(kind, "__post_init__"):
        return RecordProblem(f"{name} has a __post_init__, which kernels do not run", "check what it is built of")
    if not parameters.init or kind.__new__ is not object.__new__:
        return RecordProblem(f"{name} has a constructor of its own, which kernels do not run",
                             "leave the constructor to @dataclass")  # fmt: skip
    for item in dataclasses.fields(kind):
        if not item.init:
            return RecordProblem(f"the field {item.name!r} of {name} is not given to its constructor",
                                 "kernels give all fields: no field(init=False)")  # fmt: skip
    return None


def named_arguments(kind: type, node: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments of a call of the class of a record by the names of the fields, as they are written.

    Raises
    ------
    RecordProblem
        When there are too many, one of an unknown field, two of the same or one too few.
    """
    names, defaults = built_fields(kind)
    placed = positional_fields(kind)
    if len(node.args) > len(placed):
        raise RecordProblem(f"{kind.__name__} takes {len(placed)} arguments by position, not {len(node.args)}")
    given = dict(zip(placed, node.args, strict=False))
    for item in node.keywords:
        if item.arg not in names:
            raise RecordProblem(f"{kind.__name__} has no field {item.arg!r}{did_you_mean(str(item.arg), names)}")
        if item.arg in given:
            raise RecordProblem(f"{kind.__name__} is given {item.arg!r} twice")
        given[item.arg] = item.value
    missing = [name for name in names if name not in given and name not in defaults]
    if missing:
        raise RecordProblem(f"{kind.__name__} is not given {missing[0]!r}", f"its fields are: {', '.join(names)}")
    return given


def built_fields(kind: type) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Return the names of the fields in order, and the defaults of the last ones."""
    every = dataclasses.fields(kind)
    defaults = {item.name: default_of(item) for item in every}
    return tuple(defaults), {name: value for name, value in defaults.items() if value is not dataclasses.MISSING}
