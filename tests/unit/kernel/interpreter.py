"""A direct interpreter of lowered kernels, so that their meaning can be tested without a compiler."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from fluxloom.kernel import ir
from fluxloom.kernel.intrinsics import INTRINSICS

ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
CASTS = {ir.Kind.REAL: float, ir.Kind.INT: int, ir.Kind.BOOL: bool}


class Interpreter:
    """Runs one element; ``data`` are arrays indexed as the kernel indexes them (a list of legs first)."""

    def __init__(self, lowered: ir.LoweredKernel, data: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        self.lowered = lowered
        self.data = data
        self.constants = constants
        self.scalars: dict[str, Any] = {}
        self.kinds = dict(lowered.scalars)
        # local arrays start as garbage: reading an element that was never stored must show
        self.arrays = {item.name: np.full(item.shape, None, dtype=object) for item in lowered.arrays}
        self.tables = {item.name: np.array(item.values).reshape(item.shape) for item in lowered.tables}

    def run(self) -> None:
        self.block(self.lowered.body)

    def block(self, statements: tuple[ir.Statement, ...]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ir.Statement) -> None:
        match node:
            case ir.Assign(name, value):
                self.scalars[name] = self.typed(self.kinds[name], value)
            case ir.StoreLocal(name, index, value):
                self.arrays[name][self.index(index)] = self.evaluate(value)
            case ir.Store(parameter, leg, index, value):
                self.component(parameter, leg)[self.index(index)] = self.evaluate(value)
            case ir.Update(parameter, leg, index, op, value):
                place, position = self.component(parameter, leg), self.index(index)
                combine = {"+": operator.add, "min": min, "max": max}[op]
                place[position] = combine(place[position], self.evaluate(value))
            case ir.If(test, body, orelse):
                self.block(body if self.evaluate(test) else orelse)
            case ir.For(name, start, stop, step, body):
                # as in C: the bound is looked at before every trip
                self.scalars[name] = self.evaluate(start)
                while (
                    self.scalars[name] < self.evaluate(stop) if step > 0 else self.scalars[name] > self.evaluate(stop)
                ):
                    self.block(body)
                    self.scalars[name] += step
            case ir.While(test, body):
                while self.evaluate(test):
                    self.block(body)
            case _:
                raise AssertionError(node)

    def typed(self, kind: ir.Kind, value: ir.Expression) -> Any:
        assert value.kind is kind, (value, kind)
        return self.evaluate(value)

    def component(self, parameter: str, leg: ir.Expression | None) -> Any:
        position = [item.name for item in self.lowered.parameters].index(parameter)
        assert (leg is None) == (self.lowered.shapes[position].legs is None)
        value = self.data[parameter]
        if leg is not None:
            value = value[self.evaluate(leg)]
        return value

    def index(self, index: tuple[ir.Expression, ...]) -> Any:
        values = tuple(self.evaluate(item) for item in index)
        assert all(isinstance(item, (int, np.integer)) and item >= 0 for item in values)
        return values

    def evaluate(self, node: ir.Expression) -> Any:
        value = self._evaluate(node)
        allowed = {
            ir.Kind.REAL: (float, np.floating),
            ir.Kind.INT: (int, np.integer),
            ir.Kind.BOOL: (bool, np.bool_),
        }[node.kind]
        assert isinstance(value, allowed), (node, value)
        return value

    def _evaluate(self, node: ir.Expression) -> Any:
        match node:
            case ir.Constant(_, value):
                return value
            case ir.Local(_, name):
                return self.scalars[name]
            case ir.LocalElement(_, name, index):
                return self.arrays[name][self.index(index)]
            case ir.TableElement(_, name, index):
                return self.tables[name][self.index(index)]
            case ir.ReadConstant(kind, name):
                return CASTS[kind](self.constants[name])
            case ir.Read(kind, parameter, leg, index):
                return CASTS[kind](self.component(parameter, leg)[self.index(index)])
            case ir.Length(_, parameter):
                return len(self.data[parameter])
            case ir.Negate(_, operand):
                return -self.evaluate(operand)
            case ir.Not(_, operand):
                return not self.evaluate(operand)
            case ir.Binary(kind, op, left, right):
                a, b = self.evaluate(left), self.evaluate(right)
                assert left.kind is right.kind is kind
                return divide(a, b) if op == "/" else ARITHMETIC[op](a, b)
            case ir.Compare(_, op, left, right):
                assert left.kind is right.kind
                return COMPARE[op](self.evaluate(left), self.evaluate(right))
            case ir.Boolean(_, op, values):
                # every operand is evaluated, as generated code may do
                return (all if op == "and" else any)([self.evaluate(item) for item in values])
            case ir.Conditional(_, test, yes, no):
                return self.evaluate(yes if self.evaluate(test) else no)
            case ir.Call(_, function, arguments):
                return INTRINSICS[function].python(*(self.evaluate(item) for item in arguments))
            case ir.Cast(kind, operand):
                return CASTS[kind](self.evaluate(operand))
            case _:
                raise AssertionError(node)


def divide(a: float, b: float) -> float:
    """IEEE division."""
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def run(lowered: ir.LoweredKernel, data: Mapping[str, Any], constants: Mapping[str, Any] | None = None) -> None:
    """Run one element; scalar dats with legs are given as lists of 0-d arrays."""
    Interpreter(lowered, data, constants or {}).run()


class Legs:
    """Legs of a scalar dat: ``u[leg]`` is the number itself, as on the reference device."""

    def __init__(self, values: list[np.ndarray]) -> None:
        self.values = values

    def __getitem__(self, leg: int) -> Any:
        return self.values[leg][()]

    def __setitem__(self, leg: int, value: Any) -> None:
        self.values[leg][()] = value

    def __len__(self) -> int:
        return len(self.values)


def agree(
    kernel: Any, data: Mapping[str, Any], *, baked: Mapping[str, Any] | None = None,
    fields: Mapping[str, float] | None = None, **constants: Any,
) -> ir.LoweredKernel:  # fmt: skip
    """Assert that the lowered kernel and the Python function do the same to copies of ``data``.

    An array is a direct argument (0-d: a scalar dat, which the kernel sees as one component); a
    tuple is a whole map with that many legs, a list is a ragged one. What is not there is None, which ends the
    parameters. ``fields`` are run-time fields of strategies.
    """
    shapes: dict[str, ir.ArgShape] = {}
    python: list[Any] = []
    ours: dict[str, Any] = {}
    results: list[tuple[Any, Any]] = []
    for name, value in data.items():
        legs = len(value) if isinstance(value, tuple) else ir.RAGGED if isinstance(value, list) else None
        parts = [np.array(item) for item in value] if legs is not None else [np.array(value)]
        copies = [item.copy() for item in parts]
        kind = ir.Kind.INT if parts and parts[0].dtype.kind == "i" else ir.Kind.REAL
        shapes[name] = ir.ArgShape(legs, parts[0].shape if parts else (), kind)
        if legs is not None:
            python.append(Legs(parts) if parts and parts[0].ndim == 0 else parts)
            ours[name] = copies
        else:
            python.append(parts[0].reshape(1) if parts[0].ndim == 0 else parts[0])
            ours[name] = copies[0]
        results += zip(parts, copies, strict=True)
    lowered = kernel.lower(shapes, baked or {})
    with np.errstate(all="ignore"):
        absent = [None] * (len(kernel.parameters) - len(python))
        kernel(*python, *absent, **{**kernel.defaults, **(baked or {}), **constants})
    run(lowered, ours, {**constants, **(fields or {})})
    for want, have in results:
        np.testing.assert_allclose(have, want, rtol=1e-12, atol=0)
    return lowered
