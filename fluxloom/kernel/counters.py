"""Loops whose bounds follow from constants and from the counters of loops around them: their trips, one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fluxloom.kernel.fold import OPERATIONS
from fluxloom.kernel.ir import Binary, Constant, Expression, For, Kind, Local, Negate

__all__ = ["Counted", "is_counted", "trips", "value_of"]


@dataclass(frozen=True)
class Counted:
    """``for name in range(start, stop, step)``; the bounds may be made of the counters of loops around it."""

    name: str
    start: Expression
    stop: Expression
    step: int

    @classmethod
    def of(cls, loop: For) -> Counted:
        """Return what a loop runs over."""
        return cls(loop.name, loop.start, loop.stop, loop.step)


def is_counted(node: Expression, counters: Collection[str]) -> bool:
    """Whether an expression is an integer made of constants and some counters by ``+ - * // %``.

    Divisors are constants, so that it has a value whatever the counters are.
    """
    match node:
        case Constant(kind=Kind.INT):
            return True
        case Local(name=name):
            return name in counters
        case Negate(kind=Kind.INT, operand=operand):
            return is_counted(operand, counters)
        case Binary(kind=Kind.INT, op=op, left=left, right=right):
            return is_counted(left, counters) and (
                isinstance(right, Constant) if op in ("//", "%") else is_counted(right, counters)
            )
    return False


def value_of(node: Expression, counters: Mapping[str, int]) -> int:
    """Return the value of an expression for which `is_counted` holds."""
    match node:
        case Constant(value=value):
            return int(value)
        case Local(name=name):
            return counters[name]
        case Negate(operand=operand):
            return -value_of(operand, counters)
        case Binary(op=op, left=left, right=right):
            return OPERATIONS[op](value_of(left, counters), value_of(right, counters))
    raise TypeError(f"{type(node).__name__} is not made of counters")


def trips(loops: tuple[Counted, ...], known: Mapping[str, int] = MappingProxyType({})) -> Iterator[Mapping[str, int]]:
    """Yield the values of the counters in each trip of nested loops, outermost first; ``known`` are those around."""
    if not loops:
        yield known
        return
    first = loops[0]
    for count in range(value_of(first.start, known), value_of(first.stop, known), first.step):
        yield from trips(loops[1:], {**known, first.name: count})
