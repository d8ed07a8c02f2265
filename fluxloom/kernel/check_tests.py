"""Tests of the checking mode as expressions: what overflows, what an index may be, in which range integers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fluxloom.kernel.ir import (
    RAGGED,
    ArgShape,
    Binary,
    Boolean,
    Call,
    Cast,
    Compare,
    Conditional,
    Constant,
    Expression,
    Kind,
    Length,
    Local,
    Location,
    Negate,
    Read,
)  # fmt: skip

__all__ = [
    "HIGH",
    "LOW",
    "Range",
    "Site",
    "both",
    "compare",
    "finite",
    "integer",
    "integer_range",
    "not_an_integer",
    "outside",
    "overflows",
    "stop_of",
]

HIGH, LOW = 2**63 - 1, -(2**63)
Range = tuple[int, int]
"""The least and the greatest value an integer can have."""

_FALSE, _TRUE = Constant(Kind.BOOL, False), Constant(Kind.BOOL, True)
_LONGEST = 2**40
"""More entries than a row ever has."""


@dataclass(frozen=True)
class Site:
    """A place in a kernel where something may go wrong.

    Attributes
    ----------
    what
        What went wrong, with ``{0}``, ``{1}`` ... where ``values`` are named.
    values
        What the message shows of the element.
    """

    what: str
    location: Location
    values: tuple[Expression, ...] = ()


def integer(value: int) -> Constant:
    """Return an integer literal."""
    return Constant(Kind.INT, value)


def compare(left: Expression, op: str, right: Expression | int) -> Compare:
    """Return a comparison."""
    return Compare(Kind.BOOL, op, left, right if isinstance(right, Expression) else integer(right))


def both(op: str, *tests: Expression) -> Expression:
    """Return tests joined by ``and`` or ``or``; each can be evaluated whatever the others are."""
    return tests[0] if len(tests) == 1 else Boolean(Kind.BOOL, op, tests)


def finite(value: Expression) -> Call:
    """Return whether a real is neither infinite nor NaN."""
    return Call(Kind.BOOL, "isfinite", (value,))


def outside(index: Expression, stop: Expression) -> Expression:
    """Return whether an index is not in ``0 ... stop - 1``."""
    return both("or", compare(index, "<", 0), compare(index, ">=", stop))


def not_an_integer(value: Expression) -> Expression:
    """Return whether a real has no integer of 64 bits as its whole part; NaN has none."""
    inside = both(
        "and",
        Compare(Kind.BOOL, ">=", value, Constant(Kind.REAL, -(2.0**63))),
        Compare(Kind.BOOL, "<", value, Constant(Kind.REAL, 2.0**63)),
    )
    return Conditional(Kind.BOOL, inside, _FALSE, _TRUE)


def overflows(op: str, a: Expression, b: Expression) -> Expression:
    """Return whether ``a op b`` needs more than 64 bits. Nothing that is evaluated on the way does."""
    match op:
        case "+":
            return _either(compare(b, ">", 0), compare(a, ">", _int("-", integer(HIGH), b)),
                           compare(a, "<", _int("-", integer(LOW), b)))  # fmt: skip
        case "-":
            return _either(compare(b, "<", 0), compare(a, ">", _int("+", integer(HIGH), b)),
                           compare(a, "<", _int("+", integer(LOW), b)))  # fmt: skip
        case "*":
            return _product_overflows(a, b)
        case "//":
            return both("and", compare(a, "==", LOW), compare(b, "==", -1))
    return _FALSE


def _product_overflows(a: Expression, b: Expression) -> Expression:
    """Compare with quotients of the largest numbers, case by case of the signs."""
    positive = _either(
        compare(b, ">", 0),
        compare(a, ">", _int("//", integer(HIGH), b)),
        _either(compare(b, "==", -1), _FALSE, compare(a, ">", _int("//", integer(LOW), b))),
    )
    negative = _either(
        compare(b, ">", 0),
        _either(compare(a, "==", -1), _FALSE, compare(b, ">", _int("//", integer(LOW), a))),
        _either(compare(b, "==", LOW), _TRUE, compare(a, "<", _minus(_int("//", integer(HIGH), _minus(b))))),
    )
    nothing = both("or", compare(a, "==", 0), compare(b, "==", 0))
    return _either(nothing, _FALSE, _either(compare(a, ">", 0), positive, negative))


def _either(test: Expression, yes: Expression, no: Expression) -> Conditional:
    return Conditional(Kind.BOOL, test, yes, no)


def _int(op: str, a: Expression, b: Expression) -> Binary:
    return Binary(Kind.INT, op, a, b)


def _minus(a: Expression) -> Negate:
    return Negate(Kind.INT, a)


def stop_of(shape: ArgShape, parameter: str) -> Expression:
    """Return how many legs an argument has."""
    return Length(Kind.INT, parameter) if shape.legs == RAGGED else integer(shape.legs or 1)


def integer_range(node: Expression, counters: Mapping[str, Range], stored: Mapping[str, Range]) -> Range:
    """Return between which values an integer expression is, as far as that is easily seen.

    Parameters
    ----------
    counters
        The ranges of the counters of the loops around it.
    stored
        The range of each integer parameter.
    """

    def inside(part: Expression) -> Range:
        found = integer_range(part, counters, stored)
        return found if found[0] >= LOW and found[1] <= HIGH else (LOW, HIGH)  # it wraps round

    match node:
        case Constant():
            return int(node.value), int(node.value)
        case Local():
            return counters.get(node.name, (LOW, HIGH))
        case Length():
            return 0, _LONGEST
        case Read():
            return stored.get(node.parameter, (LOW, HIGH))
        case Cast() if node.operand.kind is Kind.BOOL:
            return 0, 1
        case Negate():
            low, high = inside(node.operand)
            return -high, -low
        case Binary():
            left, right = inside(node.left), inside(node.right)
            return _combined(node.op, left, right)
    return LOW, HIGH


def _combined(op: str, left: Range, right: Range) -> Range:
    """Return the range of a sum, a difference, a product or a remainder of integers; it may exceed 64 bits."""
    match op:
        case "+":
            return left[0] + right[0], left[1] + right[1]
        case "-":
            return left[0] - right[1], left[1] - right[0]
        case "*":
            corners = [a * b for a in left for b in right]
            return min(corners), max(corners)
        case "//" if right[0] > 0 and left[0] >= 0:
            return left[0] // right[1], left[1] // right[0]
        case "%" if right[0] > 0:
            return 0, right[1] - 1
    return LOW, HIGH
