"""Constants that are formulas or records, ``flux: Const[Func]``: what an annotation asks for and tells early."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Generic, Protocol, Union, get_args, get_origin

import numpy as np

from fluxloom.core.errors import did_you_mean
from fluxloom.kernel.ir import ConstantParameter, Kind
from fluxloom.kernel.record_fields import Helper, RecordProblem, check_strategy, run_time_fields
from fluxloom.kernel.source import FunctionSource, static_member

__all__ = ["Strategy", "check_uses", "run_time_constants", "wanted"]

_DATA = (float, int, bool, complex, str, bytes, list, tuple, dict, set, np.ndarray, np.generic)
_NOT_MEMBERS = frozenset({*dir(Protocol), *dir(Generic), "__abstractmethods__", "__annotations__", "__init__"})


@dataclass(frozen=True)
class Strategy:
    """What a constant that is a formula or a record has to be.

    Attributes
    ----------
    classes
        Classes and protocols of which it is one; none where every ``@func`` and every record will do.
    several
        Whether it is a tuple of them.
    optional
        Whether it may be None.
    """

    classes: tuple[type, ...] = ()
    several: bool = False
    optional: bool = False

    def check(self, name: str, given: Any) -> None:
        """Raise `RecordProblem` when what is given is not what the annotation asks for."""
        if given is None and self.optional:
            return
        if not self.several:
            self._check(name, given)
        elif isinstance(given, tuple):
            for k, item in enumerate(given):
                self._check(f"{name}[{k}]", item)
        else:
            raise RecordProblem(f"{name!r} is {given!r}, not a tuple", f"give a tuple of them: {name}=(first, second)")

    def _check(self, name: str, given: Any) -> None:
        check_strategy(name, given)
        if not self.classes:
            if not isinstance(given, Helper) and not isinstance(static_member(type(given), "__call__"), Helper):
                raise RecordProblem(f"{name!r}, a {type(given).__name__}, cannot be called", "give it a @func __call__")
            return
        problems = [_unlike(name, given, kind) for kind in self.classes]
        if all(problems):
            raise RecordProblem(*next(problem for problem in problems if problem))


def wanted(annotation: Any) -> Strategy | None:
    """Return what ``Const[annotation]`` asks for; None if it is a number or an array."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [wanted(item) for item in get_args(annotation) if item is not NoneType]
        found = [part for part in parts if part is not None]
        if len(found) == len(parts) == 1:
            return replace(found[0], optional=NoneType in get_args(annotation))
        if len(found) != len(parts) or any(part.several for part in found):
            return None
        classes = () if any(not part.classes for part in found) else tuple(c for part in found for c in part.classes)
        return Strategy(classes, optional=NoneType in get_args(annotation))
    if get_origin(annotation) is tuple:
        parts = [wanted(item) for item in get_args(annotation) if item is not Ellipsis]
        if not parts or any(part is None or part.several or part.optional for part in parts):
            return None
        every = [part.classes for part in parts if part is not None]
        return Strategy(() if () in every else tuple(dict.fromkeys(c for each in every for c in each)), several=True)
    kind = annotation if isinstance(annotation, type) and get_origin(annotation) is None else get_origin(annotation)
    if kind is Callable or (isinstance(kind, type) and issubclass(kind, Helper)):
        return Strategy()
    if not isinstance(kind, type) or kind in (NoneType, Any) or issubclass(kind, _DATA):
        return None
    return None if kind.__module__ == "collections.abc" else Strategy((kind,))


def run_time_constants(item: ConstantParameter, given: Any) -> list[ConstantParameter]:
    """Return the constants that fields of a strategy are at run time."""
    return [ConstantParameter(key, Kind.REAL, False, item.location) for key, _ in run_time_fields(item.name, given)]


def _unlike(name: str, given: Any, kind: type) -> tuple[str, str] | None:
    """Say why something is no instance of a class, or does not follow a protocol; None if it is or does."""
    text = f"a @func ({given.source.name})" if isinstance(given, Helper) else f"a {type(given).__name__}"
    if not _is_protocol(kind):
        return None if isinstance(given, kind) else (f"{name!r} is {text}, not a {kind.__name__}", "")
    if isinstance(given, Helper):
        members = _members(kind)
        if members != {"__call__"}:
            return f"{name!r} is {text}, not a {kind.__name__}", f"give a record with {', '.join(sorted(members))}"
        return _other_count(name, given, static_member(kind, "__call__"), own=0)
    own = {item.name for item in fields(given)} if is_dataclass(given) else set[str]()
    for member in sorted(_members(kind)):
        found = static_member(type(given), member)
        if found is None and member not in own:
            return f"{name!r}, {text}, is no {kind.__name__}: it has no {member!r}", ""
        if member == "__call__" and not isinstance(found, Helper):
            return f"the __call__ of {name!r}, {text}, is no @func", "decorate it with @fluxloom.func"
        problem = _other_count(f"{name}.{member}", found, static_member(kind, member), own=1)
        if problem is not None:
            return problem
    return None


def _other_count(name: str, given: Any, declared: Any, own: int) -> tuple[str, str] | None:
    """Say that a formula takes another number of arguments than the protocol says."""
    count = _count(declared)
    if not isinstance(given, Helper) or count is None:
        return None
    has = len(given.source.parameter_names) - own
    where = f"it is in {given.source.filename}:{given.source.node.lineno}"
    return None if has == count else (f"{name} takes {has} arguments, its protocol says {count}", where)


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def _members(kind: type) -> set[str]:
    """Return what a protocol asks for."""
    bases = [base for base in kind.__mro__ if _is_protocol(base) and base not in (Protocol, Generic)]
    names = {name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", {}))}
    return {name for name in names if name == "__call__" or (name not in _NOT_MEMBERS and not name.startswith("_"))}


def _count(function: Any) -> int | None:
    """Return how many arguments a method takes, its own object left out; None where that is open."""
    if isinstance(function, Helper):
        return len(function.source.parameter_names) - 1
    if not inspect.isfunction(function):
        return None
    parameters = list(inspect.signature(function).parameters.values())[1:]
    plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)
    return len(parameters) if plain else None


# ---------------------------------------------------------------------------- what is known at decoration


def check_uses(source: FunctionSource, strategies: Mapping[str, Strategy], optional: frozenset[str]) -> None:
    """Raise a located `KernelError` for a use of a strategy that its annotation rules out, or a needless test for None.

    Parameters
    ----------
    source, strategies
        The kernel, and its constants that are strategies.
    optional
        Its parameters that may be left out.
    """
    names = {*source.parameter_names, *(a.arg for a in source.node.args.kwonlyargs)} - optional
    names -= {name for name, strategy in strategies.items() if strategy.optional}
    for node in ast.walk(source.node):
        tested = node.left if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)) else None
        if isinstance(tested, ast.Name) and tested.id in names:
            raise source.error(node, f"{tested.id!r} is never None", "annotate what may be left out: Read | None")
        if isinstance(node, ast.Call):
            _check_call(source, node, strategies)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            known = strategies.get(node.value.id)
            if known is not None and not known.several:
                _check_attribute(source, node, known)


def _check_call(source: FunctionSource, node: ast.Call, strategies: Mapping[str, Strategy]) -> None:
    called, name = node.func, "__call__"
    if isinstance(called, ast.Attribute):
        called, name = called.value, called.attr
    several = isinstance(called, ast.Subscript)
    called = called.value if isinstance(called, ast.Subscript) else called
    known = strategies.get(called.id) if isinstance(called, ast.Name) else None
    if known is None or known.several is not several or len(known.classes) != 1:
        return
    count, kind = _count(static_member(known.classes[0], name)), known.classes[0]
    if count is not None and count != len(node.args):
        raise source.error(node, f"{ast.unparse(node.func)} takes {count} arguments, not {len(node.args)}",
                           f"so says {kind.__name__}")  # fmt: skip


def _check_attribute(source: FunctionSource, node: ast.Attribute, known: Strategy) -> None:
    """Check an attribute where a protocol or a record says which there are."""
    if len(known.classes) != 1 or not (_is_protocol(known.classes[0]) or is_dataclass(known.classes[0])):
        return
    kind = known.classes[0]
    names = {item.name for item in fields(kind)} if is_dataclass(kind) else set[str]()
    names |= {name for base in kind.__mro__ for name in (*vars(base), *vars(base).get("__annotations__", {}))}
    if node.attr not in names:
        public = sorted(name for name in names if not name.startswith("_"))
        raise source.error(node, f"{kind.__name__} has no {node.attr!r}{did_you_mean(node.attr, public)}",
                           f"it has: {', '.join(public)}")  # fmt: skip
