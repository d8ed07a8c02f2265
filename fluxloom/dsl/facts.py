"""Facts about kernels that a chain uses: copies, values that end as zero, whole writes."""

from __future__ import annotations

from fluxloom.core.access import Access
from fluxloom.dsl.bind import Bound
from fluxloom.dsl.dats import Dat
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import walk

__all__ = ["copied_pair", "ends_zero"]


def copied_pair(bound: Bound) -> tuple[Dat, Dat] | None:
    """Return ``(source, target)`` if the loop does nothing but copy one dat to another."""
    if len(bound.arguments) != 2 or bound.lowered.constants:
        return None
    found = {a.access: a.data for a in bound.arguments if a.map is None}
    source, target = found.get(Access.READ), found.get(Access.WRITE)
    if not isinstance(source, Dat) or not isinstance(target, Dat) or bound.over is not source.set:
        return None
    if (source.shape, source.scalar, source.layout) != (target.shape, target.scalar, target.layout):
        return None
    for statement in bound.lowered.body:
        if not (isinstance(statement, ir.Store) and isinstance(statement.value, ir.Read)):
            return None
        if (statement.value.leg, statement.value.index) != (statement.leg, statement.index):
            return None
    return source, target


def ends_zero(bound: Bound, dat: Dat) -> bool:
    """Return whether the loop leaves zero in every component of every element of ``dat``."""
    if bound.over is not dat.set:
        return False
    for arg in bound.arguments:
        if arg.data is dat and arg.map is None and arg.access in (Access.WRITE, Access.RW):
            return _zeroes(bound.lowered.body, arg.name, dat.dim)
    return False


def _zeroes(body: tuple[ir.Statement, ...], parameter: str, dim: int) -> bool:
    last: dict[tuple[ir.Expression, ...], bool] = {}
    for statement in body:
        if isinstance(statement, ir.Store) and statement.parameter == parameter:
            value = statement.value
            last[statement.index] = isinstance(value, ir.Constant) and value.value == 0
        elif isinstance(statement, (ir.If, ir.For, ir.While)) and _changes(statement, parameter):
            return False
    return len(last) == dim and all(last.values())


def _changes(statement: ir.Statement, parameter: str) -> bool:
    return any(isinstance(s, ir.Store | ir.Update) and s.parameter == parameter for s in walk([statement]))
