"""Constant places inside arguments, and what the updates of a kernel say about them."""

from __future__ import annotations

from fluxloom.codegen.spec import ArgSpec, LoopSpec
from fluxloom.core.access import Access
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import used_components

__all__ = ["flatten", "opposite_legs", "touched", "updates"]


def flatten(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the flat component number of a constant component index."""
    flat = 0
    for k, n in zip(index, shape, strict=False):
        flat = flat * n + k
    return flat


def touched(spec: LoopSpec, arg: ArgSpec, leg: int) -> set[int]:
    """Return the flat components of one leg that the body touches (all when an index is dynamic)."""
    used = used_components(spec.kernel, arg.parameter)
    if used is None:
        return set(range(arg.dim))
    return {flatten(index, arg.components) for used_leg, index in used if used_leg is None or used_leg == leg}


def updates(statement: ir.Statement) -> list[ir.Update]:
    """Return every update inside a statement, in order."""
    match statement:
        case ir.Update():
            return [statement]
        case ir.If(body=body, orelse=orelse):
            return [u for s in (*body, *orelse) for u in updates(s)]
        case ir.For(body=body) | ir.While(body=body):
            return [u for s in body for u in updates(s)]
    return []


def opposite_legs(spec: LoopSpec) -> dict[tuple[str, int], int]:
    """Find legs whose increments are exactly the negatives of another leg's.

    A conservative flux adds ``f`` to one side and ``-f`` to the other; then one transpose serves both
    sides, and ``r -= f`` equals ``r += -f`` to the last bit.
    """
    every = [u for s in spec.kernel.body for u in updates(s)]
    values: dict[tuple[str, int, tuple[int, ...]], tuple[int, ir.Expression]] = {}
    for position, u in enumerate(spec.kernel.body):
        if isinstance(u, ir.Update) and u.op == "+" and isinstance(u.leg, ir.Constant):
            index = tuple(int(k.value) for k in u.index if isinstance(k, ir.Constant))
            values[(u.parameter, int(u.leg.value), index)] = (position, u.value)
    out: dict[tuple[str, int], int] = {}
    for arg in spec.args:
        if arg.kind != "table" or arg.access is not Access.INC or arg.legs != 2:
            continue
        count = sum(u.parameter == arg.parameter for u in every)
        indices = {i for p, _, i in values if p == arg.parameter}
        # One unconditional update a leg and component, nothing else.
        if count == 2 * len(indices) and all(_negated(values, arg.parameter, i) for i in indices):
            out[(arg.parameter, 1)] = 0
    return out


def _negated(
    values: dict[tuple[str, int, tuple[int, ...]], tuple[int, ir.Expression]], parameter: str, index: tuple[int, ...]
) -> bool:
    first, second = values.get((parameter, 0, index)), values.get((parameter, 1, index))
    if first is None or second is None or abs(first[0] - second[0]) != 1:
        return False  # not neighbours: the local could have changed in between
    return second[1] == ir.Negate(second[1].kind, first[1]) and isinstance(first[1], (ir.Local, ir.Constant))
