"""The limit of registers of a work item: what the cost model chooses from what a kernel holds, and what a search tries.

A multiprocessor divides its registers among its work items. A kernel that needs many of them leaves room for few
groups, too few to hide how long memory takes; with a limit it keeps a part of its values in memory and has more groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from fluxloom.codegen.language.dialect import DIALECTS
from fluxloom.device.base import Device
from fluxloom.dsl.plan.bind import Bound
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import expressions, statement_blocks

__all__ = ["allowed", "choose_registers", "held_at_once"]

_TRIED = (0, 32, 48, 64, 96, 128)
"""Limits that a search tries; 0: that of the cost model."""

_ALL = 255
"""Registers that an item can have: no limit."""

_THREE_GROUPS = 168
"""Registers that leave room for three groups of 128 items on a multiprocessor, which has 65 536."""

_MANY, _TOO_MANY = 210, 288
"""Registers that a kernel would take for the limit of `_THREE_GROUPS` to pay: a quarter more than that, but not so many
that the compiler keeps a part in memory by itself.

Fluxes with viscosity in three dimensions hold 115 to 127 numbers and take 220 to 248 registers; on an H200 they are a
fifth faster with 168, and slower with 128."""


def choose_registers(bound: Bound, wanted: int) -> int:
    """Return the limit of registers of a loop: the one that was asked for, else what pays; 0: the compiler's choice.

    A number that is held at once with others takes as many registers as it has words of 4 bytes.
    """
    if wanted or not _limits(bound.over.context.device):
        return wanted
    kept: dict[str, int] = vars(bound)
    if "_held" not in kept:  # each schedule of a loop asks
        kept["_held"] = held_at_once(bound.lowered.body)
    needed = kept["_held"] * bound.compute.size // 4
    return _THREE_GROUPS if _MANY < needed <= _TOO_MANY else 0


def allowed(device: Device, now: int) -> tuple[int, ...]:
    """Return the limits that a search may try, with the one in force; none where a language cannot say one."""
    return tuple(sorted({*_TRIED, now, *([_ALL] if now else [])})) if _limits(device) else ()


def _limits(device: Device) -> bool:
    """Whether the language of a device can limit the registers of an item."""
    words = DIALECTS[device.dialect].words
    return words is not None and bool(words.limit)


def held_at_once(body: Sequence[ir.Statement]) -> int:
    """Return the most numbers that a kernel holds at once.

    Each local and each number of an argument is held from where it is first named to where it is last; what a loop
    names, to the end of the loop if it was held before. Arrays that are indexed at run time do not count: they lie in
    memory.
    """
    spans: dict[object, tuple[int, int]] = {}
    places = _note(body, spans, 0)
    begun = Counter(first for first, _ in spans.values())
    ended = Counter(last + 1 for _, last in spans.values())
    return max(accumulate(begun[place] - ended[place] for place in range(places + 1)), default=0)


def _note(body: Sequence[ir.Statement], spans: dict[object, tuple[int, int]], place: int) -> int:
    """Note the statements that name each number first and last; return the number of the last statement."""
    for statement in body:
        begin = place = place + 1
        for item in (*expressions(statement), statement):
            if isinstance(item, ir.Read | ir.Update):
                _extend(spans, (item.parameter, item.leg, item.index), place)
            elif isinstance(item, ir.Local | ir.Assign):
                _extend(spans, item.name, place)
        for block in statement_blocks(statement):
            place = _note(block, spans, place)
        if isinstance(statement, ir.For | ir.While):
            for number in [number for number, (first, last) in spans.items() if first <= begin <= last]:
                _extend(spans, number, place)
    return place


def _extend(spans: dict[object, tuple[int, int]], number: object, place: int) -> None:
    spans[number] = spans.get(number, (place, place))[0], place
