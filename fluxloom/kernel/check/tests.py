"""Tests of the checking mode as expressions: what overflows, what an index may be, in which range integers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fluxloom.kernel import ir
from fluxloom.kernel.ir import RAGGED, Kind

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

_FALSE, _TRUE = ir.Constant(Kind.BOOL, False), ir.Constant(Kind.BOOL, True)
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
    location: ir.Location
    values: tuple[ir.Expression, ...] = ()


def integer(value: int) -> ir.Constant:
    """Return an integer literal."""
    return ir.Constant(Kind.INT, value)


def compare(left: ir.Expression, op: str, right: ir.Expression | int) -> ir.Compare:
    """Return a comparison."""
    return ir.Compare(Kind.BOOL, op, left, right if isinstance(right, ir.Expression) else integer(right))


def both(op: str, *tests: ir.Expression) -> ir.Expression:
    """Return tests joined by ``and`` or ``or``; each can be evaluated whatever the others are."""
    return tests[0] if len(tests) == 1 else ir.Boolean(Kind.BOOL, op, tests)


def finite(value: ir.Expression) -> ir.Call:
    """Return whether a real is neither infinite nor NaN."""
    return ir.Call(Kind.BOOL, "isfinite", (value,))


def outside(index: ir.Expression, stop: ir.Expression) -> ir.Expression:
    """Return whether an index is not in ``0 ... stop - 1``."""
    return both("or", compare(index, "<", 0), compare(index, ">=", stop))


def not_an_integer(value: ir.Expression) -> ir.Expression:
    """Return whether a real has no integer of 64 bits as its whole part; NaN has none."""
    inside = both(
        "and",
        ir.Compare(Kind.BOOL, ">=", value, ir.Constant(Kind.REAL, -(2.0**63))),
        ir.Compare(Kind.BOOL, "<", value, ir.Constant(Kind.REAL, 2.0**63)),
    )
    return ir.Conditional(Kind.BOOL, inside, _FALSE, _TRUE)


def overflows(op: str, a: ir.Expression, b: ir.Expression) -> ir.Expression:
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


def _product_overflows(a: ir.Expression, b: ir.Expression) -> ir.Expression:
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


def _either(test: ir.Expression, yes: ir.Expression, no: ir.Expression) -> ir.Conditional:
    return ir.Conditional(Kind.BOOL, test, yes, no)


def _int(op: str, a: ir.Expression, b: ir.Expression) -> ir.Binary:
    return ir.Binary(Kind.INT, op, a, b)


def _minus(a: ir.Expression) -> ir.Negate:
    return ir.Negate(Kind.INT, a)


def stop_of(shape: ir.ArgShape, parameter: str) -> ir.Expression:
    """Return how many legs an argument has."""
    return ir.Length(Kind.INT, parameter) if shape.legs == RAGGED else integer(shape.legs or 1)


def integer_range(node: ir.Expression, counters: Mapping[str, Range], stored: Mapping[str, Range]) -> Range:
    """Return between which values an integer expression is, as far as that is easily seen.

    Parameters
    ----------
    counters
        The ranges of the counters of the loops around it.
    stored
        The range of each integer parameter.
    """

    def inside(part: ir.Expression) -> Range:
        found = integer_range(part, counters, stored)
        return found if found[0] >= LOW and found[1] <= HIGH else (LOW, HIGH)  # it wraps round

    match node:
        case ir.Constant():
            return int(node.value), int(node.value)
        case ir.Local():
            return counters.get(node.name, (LOW, HIGH))
        case ir.Length():
            return 0, _LONGEST
        case ir.Read():
            return stored.get(node.parameter, (LOW, HIGH))
        case ir.Cast() if node.operand.kind is Kind.BOOL:
            return 0, 1
        case ir.Negate():
            low, high = inside(node.operand)
            return -high, -low
        case ir.Binary():
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
