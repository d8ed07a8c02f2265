"""Formulas in the language of kernels: a formula that depends on time is computed where the values are."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fluxloom.kernel import intrinsics
from fluxloom.kernel.check.written import func_of_text
from fluxloom.kernel.frontend import Formula, func
from fluxloom.kernel.intrinsics import cosh, floor, select
from fluxloom.values.expressions import CONSTANTS, FUNCTIONS, Expression, is_test

__all__ = ["kernel_formula"]


@func
def remainder(a, b):
    """Return ``a - b floor(a / b)``, which has the sign of ``b``."""
    return a - b * floor(a / b)


@func
def least(a, b):
    """Return the smaller one of two numbers, ``a if a < b else b``; NaN if one is, as NumPy does."""
    return select(a < b or a != a, a, b)


@func
def greatest(a, b):
    """Return the larger one of two numbers, ``a if a > b else b``; NaN if one is, as NumPy does."""
    return select(a > b or a != a, a, b)


@func
def sech(x):
    """Return ``1 / cosh(x)``."""
    return 1.0 / cosh(x)


_VISIBLE: Mapping[str, Any] = MappingProxyType(
    {name: getattr(intrinsics, name) for name in (*FUNCTIONS, "pow", "select", "inf") if hasattr(intrinsics, name)}
    | {"remainder": remainder, "sech": sech, "min": least, "max": greatest}
)
_SYMBOLS: Mapping[type[ast.AST], str] = MappingProxyType({
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.USub: "-", ast.UAdd: "+",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.And: " and ", ast.Or: " or ", ast.BitAnd: " and ", ast.BitOr: " or ",
})  # fmt: skip
_WRITTEN_OUT = 8
"""Powers up to this one are products."""


def kernel_formula(expression: Expression) -> Formula[..., Any]:
    """Return a formula as a helper of its variables, in their order, that kernels inline.

    Equal formulas share what is compiled, whatever their variables are called.
    """
    with expression.bounded():
        result = _number(expression.tree())
    return func_of_text("formula", expression.variables, result, _VISIBLE, f"formula {expression.shown}")


def _number(node: ast.expr) -> str:
    """Return a checked part of a formula as a real of the kernel language."""
    if is_test(node):
        return f"select({_test(node)}, 1.0, 0.0)"
    match node:
        case ast.Constant(value=value):
            return repr(float(value))  # pyright: ignore[reportArgumentType]
        case ast.Name(id=name):
            return repr(float(CONSTANTS[name])) if name in CONSTANTS else name
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(left, right)
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return f"remainder({_number(left)}, {_number(right)})"
        case ast.BinOp(left=left, op=op, right=right):
            return f"({_number(left)} {_SYMBOLS[type(op)]} {_number(right)})"
        case ast.UnaryOp(op=op, operand=operand):
            return f"({_SYMBOLS[type(op)]}{_number(operand)})"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return f"select({_test(test)}, {_number(body)}, {_number(orelse)})"
        case ast.Call(func=ast.Name(id="where"), args=[test, body, orelse]):
            return f"select({_test(test)}, {_number(body)}, {_number(orelse)})"
        case ast.Call(func=ast.Name(id=name), args=args):
            return f"{name}({', '.join(_number(argument) for argument in args)})"
    raise AssertionError(ast.dump(node))


def _power(base: ast.expr, exponent: ast.expr) -> str:
    """Return a power; small whole ones are products, as the kernel language makes of them."""
    match exponent:
        case ast.Constant(value=int(value)) if 0 <= value <= _WRITTEN_OUT:
            return f"({_number(base)} ** {value})"
    return f"pow({_number(base)}, {_number(exponent)})"


def _test(node: ast.expr) -> str:
    """Return a checked part of a formula as a test; a number is true unless it is 0."""
    match node:
        case ast.BoolOp(op=op, values=values):
            return f"({_SYMBOLS[type(op)].join(_test(value) for value in values)})"
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right):
            return f"({_test(left)}{_SYMBOLS[type(op)]}{_test(right)})"
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return f"(not {_test(operand)})"
        case ast.Compare(left=left, ops=ops, comparators=rest):
            parts = [_number(part) for part in (left, *rest)]
            pairs = [f"{parts[k]} {_SYMBOLS[type(op)]} {parts[k + 1]}" for k, op in enumerate(ops)]
            return f"({' and '.join(pairs)})"
    return f"({_number(node)} != 0.0)"
