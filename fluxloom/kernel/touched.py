"""Which components of its arguments a kernel touches: what moves where components lie apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from fluxloom.kernel.analysis import expressions, statement_blocks, walk
from fluxloom.kernel.counters import Counted, is_counted, trips, value_of
from fluxloom.kernel.ir import Assign, Expression, For, Local, LoweredKernel, Read, Statement, Store, Update

__all__ = ["touched_components"]

_Place = tuple[tuple[Expression, ...], tuple[Counted, ...]]
"""An index, and the counted loops around it."""


def touched_components(lowered: LoweredKernel, parameter: str) -> frozenset[tuple[int, ...]] | None:
    """Return the components of a parameter that the body may touch, whatever the legs.

    Other than in `fluxloom.kernel.analysis.used_components`, an index may be made of the counters of loops with known
    trips.

    Returns
    -------
    frozenset of index or None
        ``None`` in place of the set when an index is known at run time only.
    """
    found: set[tuple[int, ...]] = set()
    for index, loops in _indices(lowered).get(parameter, ()):
        if not all(is_counted(part, {loop.name for loop in loops}) for part in index):
            return None
        for trip in trips(_that_matter(index, loops)):
            found.add(tuple(value_of(part, trip) for part in index))
    return frozenset(found)


def _indices(lowered: LoweredKernel) -> Mapping[str, Sequence[_Place]]:
    """Return the index of each access to each parameter, with the counted loops around it; kept with the kernel."""
    kept: dict[str, dict[str, list[_Place]]] = vars(lowered)
    if "_indices" not in kept:
        # names that statements other than the heads of loops set
        unsteady = {statement.name for statement in walk(lowered.body) if isinstance(statement, Assign)}
        found: dict[str, list[_Place]] = {}
        _collect(lowered.body, (), unsteady, found)
        kept["_indices"] = found
    return kept["_indices"]


def _collect(
    body: Iterable[Statement], loops: tuple[Counted, ...], unsteady: Set[str], found: dict[str, list[_Place]]
) -> None:
    for statement in body:
        for node in (*expressions(statement), statement):
            if isinstance(node, (Read, Store, Update)):
                found.setdefault(node.parameter, []).append((node.index, loops))
        inner = loops
        if isinstance(statement, For):
            inner = tuple(loop for loop in loops if loop.name != statement.name)
            names = {loop.name for loop in inner}
            if statement.name not in unsteady and all(is_counted(e, names) for e in (statement.start, statement.stop)):
                inner = (*inner, Counted.of(statement))
        for block in statement_blocks(statement):
            _collect(block, inner, unsteady, found)


def _that_matter(index: tuple[Expression, ...], loops: tuple[Counted, ...]) -> tuple[Counted, ...]:
    """Return the loops on whose counters an index depends, by itself or through their bounds."""
    needed = _locals(index)
    chosen: list[Counted] = []
    for loop in reversed(loops):
        if loop.name in needed:
            needed |= _locals((loop.start, loop.stop))
            chosen.append(loop)
    return tuple(reversed(chosen))


def _locals(nodes: Iterable[Expression]) -> set[str]:
    return {item.name for node in nodes for item in expressions(node) if isinstance(item, Local)}
