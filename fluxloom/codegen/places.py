"""Constant places inside arguments, and what the updates of a kernel say about them."""

from __future__ import annotations

from collections.abc import Collection

from fluxloom.codegen.spec import ArgSpec, LoopSpec
from fluxloom.core.access import Access
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import constant_index, walk

__all__ = ["MANY", "Place", "begins_with_updates", "constant_place", "first_updates", "flatten",
           "leg_components", "looped", "opposite_legs", "touched", "updates"]  # fmt: skip

MANY = 32
"""Legs, or components, up to which each has statements of its own; more of them are gone through in a loop."""

Place = tuple[str, int, int]
"""Parameter, leg and flat component."""


def flatten(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the flat component number of a constant component index."""
    flat = 0
    for k, n in zip(index, shape, strict=False):
        flat = flat * n + k
    return flat


def touched(spec: LoopSpec, arg: ArgSpec, leg: int) -> set[int]:
    """Return the flat components of one leg that the body touches (all when an index is dynamic)."""
    used = spec.used[arg.parameter]
    if used is None:
        return set(range(arg.dim))
    places = used.get(None, frozenset()) | used.get(leg, frozenset())
    return {flatten(index, arg.components) for index in places}


def looped(spec: LoopSpec, arg: ArgSpec) -> bool:
    """Whether code goes through the legs of an argument in a loop.

    There are many, and the kernel touches the same components of each, or only reads: then more may be read than it
    needs. Loops over ragged rows are left as they are.
    """
    if arg.kind != "table" or arg.legs <= MANY or spec.ragged:
        return False
    if spec.used[arg.parameter] is None or arg.access is Access.READ:
        return True
    first = touched(spec, arg, 0)
    return bool(first) and all(touched(spec, arg, leg) == first for leg in range(1, arg.legs))


def leg_components(spec: LoopSpec, arg: ArgSpec) -> set[int]:
    """Return the components that are moved of each leg of an argument with many."""
    if spec.used[arg.parameter] is None:
        return set(range(arg.dim))
    return set[int]().union(*(touched(spec, arg, leg) for leg in range(arg.legs)))


def constant_place(arg: ArgSpec, leg: ir.Expression | None, index: tuple[ir.Expression, ...]) -> Place:
    """Return the place behind a constant leg and index."""
    number = int(leg.value) if isinstance(leg, ir.Constant) else 0
    return arg.parameter, number, flatten(constant_index(index) or (), arg.components)


def first_updates(spec: LoopSpec, parameters: Collection[str]) -> dict[Place, ir.Update]:
    """Find updates of some parameters, used at constant places alone, that come first and without a condition.

    They may set an increment instead of adding to it.
    """
    first: dict[Place, ir.Update] = {}
    seen: set[Place] = set()
    args = {arg.parameter: arg for arg in spec.args}
    for statement in spec.kernel.body:
        for update in updates(statement):
            if update.parameter not in parameters:
                continue
            place = constant_place(args[update.parameter], update.leg, update.index)
            if place not in seen and update is statement and update.op == "+":
                first[place] = update
            seen.add(place)
    return first


def begins_with_updates(spec: LoopSpec, arg: ArgSpec) -> bool:
    """Whether each place that a kernel increments has a first update that may set it."""
    if arg.access is not Access.INC or spec.used[arg.parameter] is None:
        return False
    places = sum(len(touched(spec, arg, leg)) for leg in range(arg.legs))
    return len(first_updates(spec, (arg.parameter,))) == places


def updates(statement: ir.Statement) -> list[ir.Update]:
    """Return every update inside a statement, in order."""
    return [node for node in walk([statement]) if isinstance(node, ir.Update)]


def opposite_legs(spec: LoopSpec) -> dict[tuple[str, int], int]:
    """Find legs whose increments are exactly the negatives of another leg's.

    A conservative flux adds ``f`` to one side and ``-f`` to the other; then one transpose serves both
    sides, and ``r -= f`` equals ``r += -f`` to the last bit.
    """
    every = [u for s in spec.kernel.body for u in updates(s)]
    values: dict[tuple[str, int, tuple[int, ...]], tuple[int, ir.Expression]] = {}
    for position, u in enumerate(spec.kernel.body):
        if isinstance(u, ir.Update) and u.op == "+" and isinstance(u.leg, ir.Constant):
            values[(u.parameter, int(u.leg.value), constant_index(u.index) or ())] = (position, u.value)
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
