"""What a kernel means: its Python function with the values of its decoration and the arithmetic of NumPy's scalars.

Python raises where NumPy's float64 has an infinity or a NaN, and its integers never wrap round. Which of the two an
operation met depended on where a number came from: elements of arrays are NumPy's, literals, constants and results
of `math` are Python's. So the function is compiled from the source that was read with each number as a scalar of NumPy,
and with each name as it was when the function was decorated. Files, lines and locals are those of the source.
"""

from __future__ import annotations

import ast
import copy
import functools
import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from fluxloom.kernel.intrinsics import INTRINSICS, Intrinsic
from fluxloom.kernel.ir import Kind
from fluxloom.kernel.record_fields import Helper, built_fields, positional_fields
from fluxloom.kernel.source import Captured, FunctionSource, dotted_name
from fluxloom.kernel.values import (
    ConstantArray,
    FunctionValue,
    NoneValue,
    OpaqueValue,
    RecordValue,
    TupleValue,
    Value,
    called_method,
    default_value,
    member,
)  # fmt: skip

__all__ = ["constant_value", "meaning", "whole_part"]

Real = type[np.floating[Any]]
LOW = -(2**63)


def meaning(source: FunctionSource, real: Real) -> Callable[..., Any]:
    """Return a function that does what a kernel or a helper means.

    Parameters
    ----------
    source
        The function.
    real
        Type of the arithmetic: ``numpy.float64`` or ``numpy.float32``.

    Returns
    -------
    callable
        Takes all parameters of the function; reals and integers among its constants as NumPy's scalars.
    """
    translation = _Translation(source, real)
    function = translation.visit(copy.deepcopy(source.node))
    module = ast.fix_missing_locations(ast.Module([function], []))
    names, name = translation.names, source.node.name
    outside = {name: names[name]} if name in names else {}  # what a method may call that has its own name
    exec(compile(module, source.filename, "exec", dont_inherit=True), names)
    meant = names[name]
    names |= outside
    return meant


def constant_value(value: Value | Captured, real: Real) -> Any:
    """Return what a constant is in the function: a scalar of NumPy, an array that cannot be written to, a strategy."""
    match value:
        case TupleValue():
            return tuple(constant_value(item, real) for item in value.items)
        case RecordValue():
            return _Record(value, {name: constant_value(item, real) for name, item in value.fields}, real)
        case FunctionValue():
            function = value.helper.meaning(real)
            return function if value.record is None else functools.partial(function, constant_value(value.record, real))
        case Helper():
            return value.meaning(real)
        case NoneValue():
            return None
        case OpaqueValue():
            return value.content
        case _:
            return _plain(value, real)


def _plain(value: Any, real: Real) -> Any:
    if isinstance(value, ConstantArray):
        kind = {Kind.REAL: real, Kind.INT: np.int64, Kind.BOOL: np.bool_}[value.kind]
        array = np.array(value.values, kind).reshape(value.shape)
        array.flags.writeable = False
        return array
    with np.errstate(all="ignore"):
        return _number(value.value, real)


def _number(value: Any, real: Real) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return np.int64(value) if isinstance(value, (int, np.integer)) else real(value)


class _Record:
    """A record as the function sees it: its numbers are scalars of NumPy, its methods do what they mean."""

    def __init__(self, record: RecordValue, fields: Mapping[str, Any], real: Real) -> None:
        self.__dict__.update(fields)
        self.__record, self.__real = record, real

    def __getattr__(self, name: str) -> Any:
        found = member(self.__record, name)
        if isinstance(found, FunctionValue) and found.record is not None:
            method = functools.partial(found.helper.meaning(self.__real), self)
            return method() if found.at_once else method
        value = self.__dict__[name] = constant_value(found, self.__real)
        return value

    def __call__(self, *arguments: Any) -> Any:
        return functools.partial(called_method(self.__record).helper.meaning(self.__real), self)(*arguments)


def _built(kind: type, real: Real) -> Callable[..., _Record]:
    """Return what builds a record in the function."""
    _, defaults = built_fields(kind)
    rest = {name: constant_value(default_value(kind, name, value), real) for name, value in defaults.items()}
    record = RecordValue(kind, ())
    placed = positional_fields(kind)
    return lambda *given, **named: _Record(record, rest | dict(zip(placed, given, strict=False)) | named, real)


class _Translation(ast.NodeTransformer):
    """Replaces each number and each name from outside by a global name of the function that is compiled."""

    def __init__(self, source: FunctionSource, real: Real) -> None:
        self.source, self.real = source, real
        self.names: dict[str, Any] = {"**": _power(real), "narrow": _narrow}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave out what is evaluated at the definition."""
        node.decorator_list, node.returns = [], None
        arguments = node.args
        for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            item.annotation = None
        arguments.kw_defaults = [None] * len(arguments.kwonlyargs)
        node.body = [self.visit(item) for item in node.body]
        return node

    def _global(self, node: ast.expr, name: str) -> ast.expr:
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Take a number as a scalar of NumPy."""
        if isinstance(node.value, (bool, str)) or node.value is None:
            return node
        text = repr(node.value)
        self.names[text] = _number(node.value, self.real)
        return self._global(node, text)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Leave indices that are literals as they are."""
        node.value = self.visit(node.value)
        node.slice = node.slice if isinstance(node.slice, ast.Constant) else self.visit(node.slice)
        return node

    def _captured(self, node: ast.Name | ast.Attribute) -> ast.expr:
        name = dotted_name(node)
        found = self.source.captured.get(name)
        if found is None:
            return node
        self.names.setdefault(name, _value(found, self.real))
        return self._global(node, name)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Take a name from outside as it was."""
        return self._captured(node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Take an attribute of a module as it was."""
        found = self._captured(node)
        if found is node:
            node.value = self.visit(node.value)
        return found

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Leave out the annotation."""
        assert node.value is not None
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Let powers of integers be those of Python, and round to the type of the arithmetic."""
        left, right = self.visit(node.left), self.visit(node.right)
        return self._operation(node, left, node.op, right)

    def _operation(self, node: ast.AST, left: ast.expr, op: ast.operator, right: ast.expr) -> ast.expr:
        if isinstance(op, ast.Pow):
            found: ast.expr = ast.Call(ast.Name("**", ast.Load()), [left, right], [])
        else:
            found = ast.BinOp(left, op, right)
        if self.real is not np.float64:  # an integer beside a float32 makes a float64
            found = ast.Call(ast.Name("narrow", ast.Load()), [found], [])
        return ast.copy_location(found, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """Write the operation out: lists and names have no type to which a result is rounded."""
        old = copy.deepcopy(node.target)
        for item in ast.walk(old):
            if isinstance(item, (ast.Name, ast.Subscript)):
                item.ctx = ast.Load()
        value = self._operation(node, self.visit(old), node.op, self.visit(node.value))
        return ast.copy_location(ast.Assign([self.visit(node.target)], value), node)


def _value(found: Captured, real: Real) -> Any:
    """Return what a name stands for."""
    if isinstance(found, type):
        return _built(found, real)
    if isinstance(found, Intrinsic):
        return _intrinsic(found, real)
    return found if isinstance(found, ModuleType) else constant_value(found, real)


def _intrinsic(found: Intrinsic, real: Real) -> Callable[..., Any]:
    """Return an intrinsic whose results are scalars of NumPy, of the kind that they have in generated code."""
    python = INTRINSICS[found.name].python
    match found.result:
        case "bool":
            return python
        case "real":
            return lambda *arguments: real(python(*arguments))
        case "int":
            return lambda argument: whole_part(python(argument))
        case "join":
            return lambda *arguments: _number(_joined(arguments, python(*arguments)), real)
    forms: dict[str, Callable[..., Any]] = {
        "float": real,
        "int": whole_part,
        "len": lambda argument: np.int64(len(argument)),
        "range": _counted,
        "rolled": _counted,
        "select": lambda test, yes, no: _number(_joined((yes, no), yes if test else no), real),
        "zeros": lambda *shape: np.zeros(shape[0] if isinstance(shape[0], tuple) else shape, real),
    }
    return forms.get(found.name, python)


def _counted(*bounds: int) -> map[Any]:
    return map(np.int64, range(*bounds))


def _joined(arguments: tuple[Any, ...], value: Any) -> Any:
    """Return a value as a real when one of the arguments is."""
    return float(value) if any(isinstance(item, (float, np.floating)) for item in arguments) else value


def whole_part(value: Any) -> np.int64:
    """Return the whole part; the smallest integer for what has none of 64 bits, as casts of NumPy do."""
    inside = math.isfinite(value) and LOW <= int(value) < -LOW
    return np.int64(int(value) if inside else LOW)


def _narrow(value: Any) -> Any:
    return np.float32(value) if isinstance(value, np.float64) else value


def _power(real: Real) -> Callable[[Any, Any], Any]:
    def power(base: Any, exponent: Any) -> Any:
        if isinstance(base, np.integer) and isinstance(exponent, np.integer) and exponent >= 0:
            return base**exponent
        return real(base) ** real(exponent)

    return power
