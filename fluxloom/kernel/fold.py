"""Typed, folding constructors of IR expressions: kinds are joined, constants computed, identities applied.

Folding never changes a result: a division by zero, a domain error and ``x * 0.0`` are left to run
time; only identities that are exact in IEEE arithmetic are used (``x * 1``, ``x / 1``, ``x - 0.0``,
but not ``x + 0.0``, which turns -0.0 into 0.0).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from fluxloom.kernel import ir
from fluxloom.kernel.intrinsics import INTRINSICS, Intrinsic
from fluxloom.kernel.ir import Kind

__all__ = [
    "OPERATIONS",
    "FoldError",
    "binary",
    "boolean",
    "call",
    "cast",
    "compare",
    "conditional",
    "convert",
    "integer",
    "join",
    "negate",
    "negation",
    "power",
    "real",
]

INT64 = 2**63
MULTIPLIED_POWER = 8  # x**8 is three multiplications after common subexpressions; beyond, call pow

OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
})  # fmt: skip


class FoldError(Exception):
    """Operands of the wrong kinds; the caller adds the location and raises a `KernelError`."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def integer(value: int) -> ir.Constant:
    """Return an integer constant.

    Raises
    ------
    FoldError
        When it does not fit in 64 bits.
    """
    if not -INT64 <= value < INT64:
        raise FoldError(f"the integer {value} does not fit in 64 bits", "use a real (1e20)")
    return ir.Constant(Kind.INT, value)


def real(value: float) -> ir.Constant:
    """Return a real constant."""
    return ir.Constant(Kind.REAL, float(value))


def _constant(kind: Kind, value: Any) -> ir.Constant:
    if kind is Kind.INT:
        return integer(int(value))
    return real(value) if kind is Kind.REAL else ir.Constant(Kind.BOOL, bool(value))


def join(left: Kind, right: Kind) -> Kind:
    """Return the kind that holds values of both kinds.

    Raises
    ------
    FoldError
        When one is boolean and the other is not.
    """
    if left is right:
        return left
    if Kind.BOOL in (left, right):
        other = right if left is Kind.BOOL else left
        name = "an integer" if other is Kind.INT else "a real"
        raise FoldError(f"a boolean and {name} are mixed", "convert explicitly: int(flag), float(flag), n != 0")
    return Kind.REAL


def cast(kind: Kind, value: ir.Expression) -> ir.Expression:
    """Return an explicit conversion (``float(x)``, ``int(x)``, ``bool(x)``)."""
    if value.kind is kind:
        return value
    if isinstance(value, ir.Constant):
        try:
            return _constant(kind, value.value)
        except (ValueError, OverflowError):
            raise FoldError(f"{value.value} cannot be converted to an integer") from None
    return ir.Cast(kind, value)


def convert(kind: Kind, value: ir.Expression) -> ir.Expression:
    """Return the implicit conversion that an assignment to ``kind`` makes: integers widen to reals.

    Raises
    ------
    FoldError
        For any conversion that could lose something.
    """
    if value.kind is kind:
        return value
    if value.kind is Kind.INT and kind is Kind.REAL:
        return cast(kind, value)
    names = {Kind.REAL: "a real", Kind.INT: "an integer", Kind.BOOL: "a boolean"}
    hints = {Kind.REAL: "use float(...)", Kind.INT: "use int(...), which truncates", Kind.BOOL: "write a comparison"}
    raise FoldError(f"{names[value.kind]} is stored where {names[kind]} is expected", hints[kind])


def _arithmetic_kind(op: str, left: ir.Expression, right: ir.Expression) -> Kind:
    for side in (left, right):
        if side.kind is Kind.BOOL:
            raise FoldError(f"'{op}' needs numbers, not a boolean", "convert explicitly: int(flag) or float(flag)")
    return Kind.REAL if op == "/" else join(left.kind, right.kind)


def binary(op: str, left: ir.Expression, right: ir.Expression) -> ir.Expression:
    """Return ``left op right`` for ``+ - * / // %`` (powers: `power`).

    Raises
    ------
    FoldError
        For booleans, an integer division by the constant zero, or an overflow of integer constants.
    """
    kind = _arithmetic_kind(op, left, right)
    if kind is Kind.INT and op in ("//", "%") and right == ir.Constant(Kind.INT, 0):
        raise FoldError("an integer is divided by zero")
    # the operands keep the kind of Python's own computation: 7 / 2 is exact for 64-bit operands only as reals
    left, right = cast(kind, left), cast(kind, right)
    if isinstance(left, ir.Constant) and isinstance(right, ir.Constant):
        try:
            return _constant(kind, OPERATIONS[op](left.value, right.value))
        except (ZeroDivisionError, OverflowError):
            return ir.Binary(kind, op, left, right)
    return _identity(kind, op, left, right) or ir.Binary(kind, op, left, right)


def _is(value: ir.Expression, number: float) -> bool:
    return isinstance(value, ir.Constant) and value.value == number


def _identity(kind: Kind, op: str, left: ir.Expression, right: ir.Expression) -> ir.Expression | None:
    """Return the simpler equal expression, or ``None``; every rule is exact for its kind."""
    if op == "*":
        if _is(left, 1):
            return right
        if _is(right, 1):
            return left
        if kind is Kind.INT and (_is(left, 0) or _is(right, 0)):
            return integer(0)
    if op == "/" and _is(right, 1):
        return left
    if kind is Kind.INT:
        if op == "+" and _is(left, 0):
            return right
        if op in "+-" and _is(right, 0):
            return left
        if op == "//" and _is(right, 1):
            return left
        if op == "%" and _is(right, 1):
            return integer(0)
    elif op == "-" and isinstance(right, ir.Constant) and right.value == 0 and math.copysign(1.0, right.value) > 0:
        return left
    return None


def negate(value: ir.Expression) -> ir.Expression:
    """Return ``-value``."""
    if value.kind is Kind.BOOL:
        raise FoldError("'-' needs a number, not a boolean")
    if isinstance(value, ir.Constant):
        return _constant(value.kind, -value.value)
    return value.operand if isinstance(value, ir.Negate) else ir.Negate(value.kind, value)


def negation(value: ir.Expression) -> ir.Expression:
    """Return ``not value``."""
    if value.kind is not Kind.BOOL:
        raise FoldError("'not' needs a boolean", "compare explicitly: n == 0")
    if isinstance(value, ir.Constant):
        return ir.Constant(Kind.BOOL, not value.value)
    return value.operand if isinstance(value, ir.Not) else ir.Not(Kind.BOOL, value)


def compare(op: str, left: ir.Expression, right: ir.Expression) -> ir.Expression:
    """Return the comparison of two values.

    Raises
    ------
    FoldError
        When a boolean is compared with a number, or two booleans are ordered.
    """
    kind = join(left.kind, right.kind)
    if kind is Kind.BOOL and op not in ("==", "!="):
        raise FoldError(f"booleans cannot be ordered with '{op}'", "use 'and', 'or', 'not'")
    left, right = cast(kind, left), cast(kind, right)
    if isinstance(left, ir.Constant) and isinstance(right, ir.Constant):
        return ir.Constant(Kind.BOOL, OPERATIONS[op](left.value, right.value))
    return ir.Compare(Kind.BOOL, op, left, right)


def boolean(op: str, values: tuple[ir.Expression, ...]) -> ir.Expression:
    """Return ``and``/``or`` of boolean values; constants that do not decide it are dropped."""
    deciding = op == "or"
    kept: list[ir.Expression] = []
    for value in values:
        if value.kind is not Kind.BOOL:
            raise FoldError(f"'{op}' needs booleans", "compare explicitly: n != 0")
        if isinstance(value, ir.Constant):
            if value.value is deciding:
                kept.append(value)
                break
            continue
        kept.append(value)
    if not kept:
        return ir.Constant(Kind.BOOL, not deciding)
    if isinstance(kept[-1], ir.Constant):
        return kept[-1]  # no side effects: what precedes a deciding constant does not matter
    return kept[0] if len(kept) == 1 else ir.Boolean(Kind.BOOL, op, tuple(kept))


def conditional(test: ir.Expression, yes: ir.Expression, no: ir.Expression) -> ir.Expression:
    """Return ``yes if test else no`` with the kinds of both joined."""
    if test.kind is not Kind.BOOL:
        raise FoldError("a test must be a boolean", "compare explicitly: n != 0")
    if isinstance(test, ir.Constant):
        return yes if test.value else no
    kind = join(yes.kind, no.kind)
    yes, no = cast(kind, yes), cast(kind, no)
    # zeros of both signs are equal
    same = yes == no and not isinstance(yes, ir.Constant) and repr(yes) == repr(no)
    return yes if same else ir.Conditional(kind, test, yes, no)


def call(function: Intrinsic, arguments: tuple[ir.Expression, ...]) -> ir.Expression:
    """Return a call of a math intrinsic, folded when every argument is constant.

    Raises
    ------
    FoldError
        For a boolean argument.
    """
    if any(argument.kind is Kind.BOOL for argument in arguments):
        raise FoldError(f"{function.name} needs numbers, not a boolean", "convert explicitly: float(flag)")
    kind = Kind.REAL
    if function.result == "join":
        for argument in arguments:
            kind = argument.kind if argument is arguments[0] else join(kind, argument.kind)
    arguments = tuple(cast(kind, argument) for argument in arguments)
    if function.name in ("min", "max") and len(arguments) > 2:
        return call(function, (call(function, arguments[:-1]), arguments[-1]))
    if all(isinstance(argument, ir.Constant) for argument in arguments):
        folded = _evaluate(function, kind, arguments)
        if folded is not None:
            return folded
    result = Kind.BOOL if function.result == "bool" else kind
    value = ir.Call(result, function.name, arguments)
    return cast(Kind.INT, value) if function.result == "int" else value


def _evaluate(function: Intrinsic, kind: Kind, arguments: tuple[ir.Expression, ...]) -> ir.Constant | None:
    values = [argument.value for argument in arguments if isinstance(argument, ir.Constant)]
    try:
        value = function.python(*values)
        if function.result == "bool":
            return ir.Constant(Kind.BOOL, bool(value))
        return _constant(Kind.INT if function.result == "int" else kind, value)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def power(base: ir.Expression, exponent: ir.Expression) -> ir.Expression:
    """Return ``base ** exponent``: small whole powers multiplied out, ``** 0.5`` by a square root.

    ``base`` is repeated in the result, so the caller makes it cheap (a local or a read) first.

    Raises
    ------
    FoldError
        For booleans, and for an integer to a power that is not a small constant (its kind would
        depend on the sign of the exponent).
    """
    kind = _arithmetic_kind("**", base, exponent)
    value = exponent.value if isinstance(exponent, ir.Constant) else None
    whole = value is not None and math.isfinite(value) and float(value).is_integer()
    if value is not None and whole and abs(value) <= MULTIPLIED_POWER:
        if value >= 0:
            return _multiplied(cast(kind, base), int(value))
        return binary("/", real(1.0), _multiplied(cast(Kind.REAL, base), -int(value)))
    if kind is Kind.INT:
        raise FoldError(f"an integer to a power that is not a constant of at most {MULTIPLIED_POWER}",
                        "use a real base: float(n) ** k")  # fmt: skip
    if value == 0.5:
        return call(INTRINSICS["root"], (cast(Kind.REAL, base),))
    return call(INTRINSICS["pow"], (base, exponent))


def _multiplied(base: ir.Expression, exponent: int) -> ir.Expression:
    if exponent == 0:
        return _constant(base.kind, 1)
    if exponent <= 3:
        product = base
        for _ in range(exponent - 1):
            product = binary("*", product, base)
        return product
    half = _multiplied(base, exponent // 2)
    square = binary("*", half, half)
    return binary("*", square, base) if exponent % 2 else square
