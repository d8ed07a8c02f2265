"""Passes over a lowered body: arrays to scalars, dead locals. Folding and unrolling happen while lowering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from fluxloom.kernel.analysis import expressions, map_expressions, walk
from fluxloom.kernel.ir import (
    Assign,
    Constant,
    Expression,
    For,
    If,
    Kind,
    Local,
    LocalArray,
    LocalElement,
    Statement,
    StoreLocal,
    While,
)  # fmt: skip

__all__ = ["remove_dead_locals", "rewrite_statements", "scalarise"]

Body = tuple[Statement, ...]


def rewrite_statements(statements: Body, change: Callable[[Statement], Statement | None]) -> Body:
    """Return statements with ``change`` applied bottom-up to each; ``None`` removes it."""
    result: list[Statement] = []
    for statement in statements:
        if isinstance(statement, If):
            body, orelse = rewrite_statements(statement.body, change), rewrite_statements(statement.orelse, change)
            statement = replace(statement, body=body, orelse=orelse)
        elif isinstance(statement, (For, While)):
            statement = replace(statement, body=rewrite_statements(statement.body, change))
        changed = change(statement)
        if changed is not None:
            result.append(changed)
    return tuple(result)


def scalarise(
    body: Body, arrays: Iterable[LocalArray], used: Iterable[str]
) -> tuple[Body, tuple[LocalArray, ...], dict[str, Kind]]:
    """Replace local arrays whose every index is constant by scalar locals ``name_0``, ``name_1_2``.

    Parameters
    ----------
    body, arrays
        The statements and their local arrays.
    used
        Names that the new locals may not take.

    Returns
    -------
    body, arrays, scalars
        The new body, the arrays that remain, and the kinds of the new locals.
    """
    declared = {array.name: array for array in arrays}
    candidates = declared.keys() - _dynamically_indexed(body)
    taken = set(used) | declared.keys()
    names: dict[tuple[str, tuple[int, ...]], str] = {}
    kinds: dict[str, Kind] = {}

    def scalar(name: str, index: tuple[Expression, ...]) -> str:
        position = tuple(int(item.value) for item in index if isinstance(item, Constant))
        if (name, position) not in names:
            candidate = "_".join([name, *map(str, position)])
            while candidate in taken:
                candidate += "_"
            taken.add(candidate)
            names[name, position] = candidate
            kinds[candidate] = declared[name].kind
        return names[name, position]

    def change_expression(node: Expression) -> Expression:
        if isinstance(node, LocalElement) and node.name in candidates:
            return Local(node.kind, scalar(node.name, node.index))
        return node

    def change_statement(node: Statement) -> Statement:
        if isinstance(node, StoreLocal) and node.name in candidates:
            return Assign(scalar(node.name, node.index), node.value, location=node.location)
        return node

    new_body = map_expressions(rewrite_statements(body, change_statement), change_expression)
    return new_body, tuple(array for array in declared.values() if array.name not in candidates), kinds


def _dynamically_indexed(body: Body) -> set[str]:
    found: set[str] = set()
    for statement in walk(body):
        accesses: list[Expression | Statement] = [*expressions(statement), statement]
        for node in accesses:
            element = isinstance(node, (LocalElement, StoreLocal))
            if element and not all(isinstance(item, Constant) for item in node.index):
                found.add(node.name)
    return found


def remove_dead_locals(body: Body) -> Body:
    """Remove assignments to locals and arrays that nothing reads, and control flow left empty."""
    while True:
        reads = _reads(body)

        def change(node: Statement, reads: Mapping[str, int] = reads) -> Statement | None:
            if isinstance(node, (Assign, StoreLocal)):
                return node if reads.get(node.name) else None
            if isinstance(node, If) and not node.body and not node.orelse:
                return None
            return None if isinstance(node, For) and not node.body else node

        shorter = rewrite_statements(body, change)
        if shorter == body:
            return body
        body = shorter


def _reads(body: Body) -> Counter[str]:
    """Count the reads of each local; an assignment does not keep its own target alive."""
    counts: Counter[str] = Counter()
    for statement in walk(body):
        own = statement.name if isinstance(statement, (Assign, StoreLocal)) else ""
        counts.update(name for name in _names(expressions(statement)) if name != own)
    return counts


def _names(nodes: Iterable[Expression]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, (Local, LocalElement)):
            yield node.name
