"""Read-only walks over the IR, and the generic rewriter: for passes, plans and the code generator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from fluxloom.kernel import ir
from fluxloom.kernel.counters import is_counted, value_of
from fluxloom.kernel.ir import Kind

__all__ = [
    "children",
    "constant_index",
    "count_flops",
    "dump",
    "expressions",
    "map_blocks",
    "map_expression",
    "map_expressions",
    "node_count",
    "nodes",
    "reads",
    "statement_blocks",
    "used_components",
    "walk",
]

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
