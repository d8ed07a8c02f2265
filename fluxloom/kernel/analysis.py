"""Read-only walks over the IR, and the generic rewriter: for passes, plans and the code generator.

Among them which components of its arguments a kernel touches, and the trips of loops whose bounds follow from constants
and from the counters of loops around them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from fluxloom.kernel import ir
from fluxloom.kernel.fold import OPERATIONS
from fluxloom.kernel.ir import (
    Assign,
    Binary,
    Constant,
    Expression,
    For,
    Kind,
    Local,
    LoweredKernel,
    Negate,
    Read,
    Statement,
    Store,
    Update,
)

__all__ = [
    "Counted", "children", "constant_index", "count_flops", "dump", "expressions", "is_counted", "map_blocks",
    "map_expression", "map_expressions", "node_count", "nodes", "reads", "statement_blocks", "touched_components",
    "trips", "used_components", "value_of", "walk",
]  # fmt: skip


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


Node = ir.Expression | ir.Statement
Block = tuple[ir.Statement, ...]
N = TypeVar("N", ir.Expression, ir.Statement)


def field_names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a node's class."""
    return kind.__match_args__  # `dataclasses.fields` builds a tuple each time


def children(node: Node) -> list[ir.Expression]:
    """Return the expressions directly inside a node (not those of nested statements)."""
    found: list[ir.Expression] = []
    for name in node.parts:
        value = getattr(node, name)
        if isinstance(value, tuple):
            found += value
        elif value is not None:
            found.append(value)
    return found


def statement_blocks(statement: ir.Statement) -> tuple[Block, ...]:
    """Return the nested blocks of a statement."""
    if isinstance(statement, ir.If):
        return statement.body, statement.orelse
    return (statement.body,) if isinstance(statement, (ir.For, ir.While)) else ()


def walk(statements: Iterable[ir.Statement]) -> list[ir.Statement]:
    """Return every statement, outer ones first, in program order."""
    found: list[ir.Statement] = []
    for statement in statements:
        found.append(statement)
        for block in statement_blocks(statement):
            found += walk(block)
    return found


def nodes(statements: Iterable[ir.Statement]) -> list[Node]:
    """Return every statement with the expressions behind it, outer ones first, in program order."""
    return [node for statement in walk(statements) for node in (statement, *expressions(statement))]


def constant_index(index: tuple[ir.Expression, ...]) -> tuple[int, ...] | None:
    """Return an index as integers, or ``None`` when some part is not constant."""
    found = tuple([int(part.value) for part in index if isinstance(part, ir.Constant)])
    return found if len(found) == len(index) else None


def expressions(node: Node) -> tuple[ir.Expression, ...]:
    """Return every expression of a node at any depth (an expression itself first).

    Of a statement with nested blocks only its own expressions (test, bounds) are returned: combine with `walk`. They
    are kept with the statement, as each pass asks for them.
    """
    if isinstance(node, ir.Expression):
        return tuple(_inside([node]))
    kept: dict[str, tuple[ir.Expression, ...]] = vars(node)
    if "_expressions" not in kept:
        kept["_expressions"] = tuple(_inside(children(node)))
    return kept["_expressions"]


def _inside(nodes: list[ir.Expression]) -> list[ir.Expression]:
    """Return some expressions with all that is in them, outer ones first."""
    found: list[ir.Expression] = []
    pending = nodes[::-1]
    while pending:
        node = pending.pop()
        found.append(node)
        if node.parts:
            pending += children(node)[::-1]
    return found


def node_count(node: Node) -> int:
    """Return the number of IR nodes of a statement (nested blocks excluded: they are counted as emitted)."""
    return len(expressions(node)) + (not isinstance(node, ir.Expression))


def map_expression(node: ir.Expression, change: Callable[[ir.Expression], ir.Expression]) -> ir.Expression:
    """Return an expression rebuilt bottom-up with ``change`` applied to every node."""
    return change(_rebuild(node, change))


def _rebuild(node: N, change: Callable[[ir.Expression], ir.Expression]) -> N:
    changed: dict[str, object] = {}
    for name in node.parts:
        value = getattr(node, name)
        if isinstance(value, tuple):
            new: object = tuple([map_expression(item, change) for item in value])
            new = value if all(a is b for a, b in zip(new, value, strict=True)) else new
        elif value is not None:
            new = map_expression(value, change)
        else:
            continue
        if new is not value:
            changed[name] = new
    return replace(node, **changed) if changed else node


def map_expressions(statements: Block, change: Callable[[ir.Expression], ir.Expression]) -> Block:
    """Return statements with ``change`` applied bottom-up to every expression, nested blocks included."""

    def inside(block: Block) -> Block:
        return map_expressions(block, change)

    return tuple([map_blocks(_rebuild(statement, change), inside) for statement in statements])


def map_blocks(statement: ir.Statement, change: Callable[[Block], Block]) -> ir.Statement:
    """Return a statement with ``change`` applied to its nested blocks; the same one where nothing changes."""
    old = statement_blocks(statement)
    new = [change(block) for block in old]
    if all(a is b for a, b in zip(old, new, strict=True)):
        return statement
    return replace(statement, **dict(zip(("body", "orelse"), new, strict=False)))


def used_components(lowered: ir.LoweredKernel, parameter: str) -> frozenset[tuple[int | None, tuple[int, ...]]] | None:
    """Return the components of a parameter that the body touches.

    Returns
    -------
    frozenset of (leg, index) or None
        ``leg`` is ``None`` for an argument without legs; ``None`` in place of the set when some
        leg or index is not constant.
    """
    found: set[tuple[int | None, tuple[int, ...]]] = set()
    for access in _accesses(lowered):
        if access.parameter == parameter:
            leg, index = constant_index(() if access.leg is None else (access.leg,)), constant_index(access.index)
            if leg is None or index is None:
                return None
            found.add((leg[0] if leg else None, index))
    return frozenset(found)


def reads(lowered: ir.LoweredKernel, parameter: str) -> bool:
    """Whether the body reads a parameter, or changes it by an increment."""
    return any(a.parameter == parameter and not isinstance(a, ir.Store) for a in _accesses(lowered))


def _accesses(lowered: ir.LoweredKernel) -> tuple[ir.Read | ir.Store | ir.Update, ...]:
    """Return all accesses to parameters in program order; kept with the kernel, as many parameters ask for them."""
    kept: dict[str, tuple[ir.Read | ir.Store | ir.Update, ...]] = vars(lowered)
    if "_accesses" not in kept:
        found = nodes(lowered.body)
        kept["_accesses"] = tuple(node for node in found if isinstance(node, (ir.Read, ir.Store, ir.Update)))
    return kept["_accesses"]


# -------------------------------------------------------------------------------------- flops


def count_flops(statements: Iterable[ir.Statement], known: Mapping[str, int] = MappingProxyType({})) -> int:
    """Return the floating-point operations along the longest path (see `LoweredKernel.flops`).

    ``known`` are the values of counters of the loops around the statements, as far as they matter.
    """
    return sum(_statement_flops(statement, known) for statement in statements)


def _statement_flops(statement: ir.Statement, known: Mapping[str, int]) -> int:
    own = sum(_operation(item) for item in expressions(statement)) + isinstance(statement, ir.Update)
    if isinstance(statement, ir.For):
        return own + _loop_flops(statement, known)
    return own + max((count_flops(block, known) for block in statement_blocks(statement)), default=0)


def _loop_flops(loop: ir.For, known: Mapping[str, int]) -> int:
    if not (is_counted(loop.start, known) and is_counted(loop.stop, known)):
        return count_flops(loop.body, known)
    inner = [node for node in walk(loop.body) if isinstance(node, ir.For)]
    bounds = [bound for node in inner for bound in (node.start, node.stop)]
    trips = range(value_of(loop.start, known), value_of(loop.stop, known), loop.step)
    names = {node.name for bound in bounds for node in expressions(bound) if isinstance(node, ir.Local)}
    if loop.name not in names:
        return len(trips) * count_flops(loop.body, known)
    return sum(count_flops(loop.body, {**known, loop.name: trip}) for trip in trips)


def _operation(node: ir.Expression) -> int:
    """Count one node; both sides of a `Conditional` are counted, as generated code evaluates both."""
    if isinstance(node, (ir.Binary, ir.Call)):
        arguments = (node.left,) if isinstance(node, ir.Binary) else node.arguments
        return int(node.kind is Kind.REAL or arguments[0].kind is Kind.REAL)
    return int(isinstance(node, ir.Compare) and node.left.kind is Kind.REAL)


# -------------------------------------------------------------------------------------- dump


def dump(node: object, indent: str = "") -> str:
    """Return a short text of a kernel, statements or an expression, for debugging."""
    if isinstance(node, ir.LoweredKernel):
        return f"{node.name}{tuple(item.name for item in node.parameters)}\n{dump(node.body, '  ')}"
    if isinstance(node, tuple):
        return "\n".join(dump(item, indent) for item in node)
    if isinstance(node, ir.If):
        text = f"{indent}if {_text(node.test)}:\n{dump(node.body, indent + '  ')}"
        return text + (f"\n{indent}else:\n{dump(node.orelse, indent + '  ')}" if node.orelse else "")
    if isinstance(node, ir.While):
        return f"{indent}while {_text(node.test)}:\n{dump(node.body, indent + '  ')}"
    if isinstance(node, ir.For):
        head = f"{indent}for {node.name} in ({_text(node.start)}, {_text(node.stop)}, {node.step}):"
        return f"{head}\n{dump(node.body, indent + '  ')}"
    return indent + _text(node)


def _text(node: object) -> str:
    if isinstance(node, ir.Constant):
        return repr(node.value)
    if isinstance(node, (ir.Binary, ir.Compare)):
        return f"({_text(node.left)} {node.op} {_text(node.right)})"
    if isinstance(node, ir.Boolean):
        return "(" + f" {node.op} ".join(_text(item) for item in node.values) + ")"
    if isinstance(node, ir.Cast):
        return f"{node.kind.value}({_text(node.operand)})"
    if isinstance(node, ir.Conditional):
        return f"({_text(node.yes)} if {_text(node.test)} else {_text(node.no)})"
    if isinstance(node, tuple):
        return "[" + ", ".join(_text(item) for item in node) + "]"
    if isinstance(node, (ir.Expression, ir.Statement)):
        names = [name for name in field_names(type(node)) if name not in ("kind", "location")]
        parts = [_text(getattr(node, name)) for name in names]
        return f"{type(node).__name__}({', '.join(parts)})"
    return str(node)


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
