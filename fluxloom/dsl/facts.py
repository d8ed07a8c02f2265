"""Facts about kernels that a chain uses: copies, values that end as zero, whole writes."""

from __future__ import annotations

from fluxloom.core.access import Access
from fluxloom.dsl.bind import Bound
from fluxloom.dsl.dats import Dat
from fluxloom.kernel import ir

__all__ = ["copied_pair", "ends_zero"]


def copied_pair(bound: Bound) -> tuple[Dat, Dat] | None:
    """Return ``(source, target)`` if the loop does nothing but copy one dat to another."""
    if len(bound.arguments) != 2 or bound.lowered.constants:
        return None
    modes = {p.name: (p.access, a) for p, a in zip(bound.kernel.parameters, bound.arguments, strict=True)}
    source = next((n for n, (m, _) in modes.items() if m is Access.READ), None)
    target = next((n for n, (m, _) in modes.items() if m is Access.WRITE), None)
    if source is None or target is None:
        return None
    a, b = modes[source][1], modes[target][1]
    same = (
        isinstance(a.data, Dat)
        and isinstance(b.data, Dat)
        and a.map is None
        and b.map is None
        and bound.over is a.data.set
        and (a.data.shape, a.data.scalar, a.data.layout) == (b.data.shape, b.data.scalar, b.data.layout)
    )
    for statement in bound.lowered.body:
        if not (isinstance(statement, ir.Store) and isinstance(statement.value, ir.Read)):
            return None
        same = same and (statement.value.leg, statement.value.index) == (statement.leg, statement.index)
    return (a.data, b.data) if same and isinstance(a.data, Dat) and isinstance(b.data, Dat) else None


def ends_zero(bound: Bound, dat: Dat) -> bool:
    """Return whether the loop leaves zero in every component of every element of ``dat``."""
    if bound.over is not dat.set:
        return False
    for parameter, arg in zip(bound.kernel.parameters, bound.arguments, strict=True):
        if arg.data is dat and arg.map is None and parameter.access in (Access.WRITE, Access.RW):
            return _zeroes(bound.lowered.body, parameter.name, dat.dim)
    return False


def _zeroes(body: tuple[ir.Statement, ...], parameter: str, dim: int) -> bool:
    last: dict[tuple[ir.Expression, ...], bool] = {}
    for statement in body:
        if isinstance(statement, ir.Store) and statement.parameter == parameter:
            value = statement.value
            last[statement.index] = isinstance(value, ir.Constant) and value.value == 0
        elif isinstance(statement, (ir.If, ir.For, ir.While)) and _stores(statement, parameter):
            return False
    return len(last) == dim and all(last.values())


def _stores(statement: ir.Statement, parameter: str) -> bool:
    match statement:
        case ir.Store(parameter=name) | ir.Update(parameter=name):
            return name == parameter
        case ir.If(body=body, orelse=orelse):
            return any(_stores(s, parameter) for s in (*body, *orelse))
        case ir.For(body=body) | ir.While(body=body):
            return any(_stores(s, parameter) for s in body)
    return False
