"""Passes over a lowered body: arrays to scalars, dead locals. Folding and unrolling happen while lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import replace

from fluxloom.kernel import ir
from fluxloom.kernel.analysis import constant_index, expressions, map_blocks, map_expressions, nodes, walk
from fluxloom.kernel.ir import Kind

__all__ = ["cut_chains", "remove_dead_locals", "rewrite_statements", "scalarise"]

Body = tuple[ir.Statement, ...]

_LONGEST = 32
"""Branches of a chain of `elif` that are inside each other; some compilers know 256 brackets."""


def rewrite_statements(statements: Body, change: Callable[[ir.Statement], ir.Statement | None]) -> Body:
    """Return statements with ``change`` applied bottom-up to each; ``None`` removes it.

    Where nothing changes it is the same tuple.
    """

    def inside(block: Body) -> Body:
        return rewrite_statements(block, change)

    found = [change(map_blocks(statement, inside)) for statement in statements]
    if all(new is old for new, old in zip(found, statements, strict=True)):
        return statements
    return tuple([statement for statement in found if statement is not None])


def scalarise(
    body: Body, arrays: Iterable[ir.LocalArray], used: Iterable[str]
) -> tuple[Body, tuple[ir.LocalArray, ...], dict[str, Kind]]:
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

    def scalar(name: str, index: tuple[ir.Expression, ...]) -> str:
        position = constant_index(index) or ()
        if (name, position) not in names:
            candidate = "_".join([name, *map(str, position)])
            while candidate in taken:
                candidate += "_"
            taken.add(candidate)
            names[name, position] = candidate
            kinds[candidate] = declared[name].kind
        return names[name, position]

    def change_expression(node: ir.Expression) -> ir.Expression:
        if isinstance(node, ir.LocalElement) and node.name in candidates:
            return ir.Local(node.kind, scalar(node.name, node.index))
        return node

    def change_statement(node: ir.Statement) -> ir.Statement:
        if isinstance(node, ir.StoreLocal) and node.name in candidates:
            return ir.Assign(scalar(node.name, node.index), node.value, location=node.location)
        return node

    new_body = map_expressions(rewrite_statements(body, change_statement), change_expression)
    return new_body, tuple(array for array in declared.values() if array.name not in candidates), kinds


def _dynamically_indexed(body: Body) -> set[str]:
    accesses = (node for node in nodes(body) if isinstance(node, (ir.LocalElement, ir.StoreLocal)))
    return {node.name for node in accesses if constant_index(node.index) is None}


def remove_dead_locals(body: Body) -> Body:
    """Remove assignments to locals and arrays that nothing reads, and control flow left empty."""
    while True:
        read = _read_names(body)

        def change(node: ir.Statement, read: Set[str] = read) -> ir.Statement | None:
            if isinstance(node, (ir.Assign, ir.StoreLocal)):
                return node if node.name in read else None
            if isinstance(node, ir.If) and not node.body and not node.orelse:
                return None
            return None if isinstance(node, ir.For) and not node.body else node

        shorter = rewrite_statements(body, change)
        if shorter is body:
            return body
        body = shorter


def _read_names(body: Body) -> set[str]:
    """Return the locals that are read; an assignment does not keep its own target alive."""
    found: set[str] = set()
    for statement in walk(body):
        own = statement.name if isinstance(statement, (ir.Assign, ir.StoreLocal)) else ""
        names = [node.name for node in expressions(statement) if isinstance(node, (ir.Local, ir.LocalElement))]
        found.update(name for name in names if name != own)
    return found


def cut_chains(body: Body, used: Iterable[str]) -> tuple[Body, dict[str, Kind]]:
    """Replace long chains of ``elif`` by several, of which each runs where those before it have found nothing.

    Parameters
    ----------
    body
        The statements.
    used
        Names that the flags between the chains may not take.

    Returns
    -------
    body, flags
        The new body, and the kinds of the flags.
    """
    taken, flags = set(used), dict[str, Kind]()

    def flag() -> str:
        name = f"rest_{len(flags)}"
        while name in taken:
            name += "_"
        taken.add(name)
        flags[name] = Kind.BOOL
        return name

    def cut(block: Body) -> Body:
        found: list[ir.Statement] = []
        for statement in block:
            found += _pieces(map_blocks(statement, cut), flag)
        return tuple(found)

    return cut(body), flags


def _pieces(statement: ir.Statement, flag: Callable[[], str]) -> list[ir.Statement]:
    """Return a statement, a long chain in pieces."""
    chain: list[ir.If] = []
    node: ir.Statement | None = statement
    while isinstance(node, ir.If) and len(chain) <= _LONGEST:
        chain.append(node)
        node = node.orelse[-1] if node.orelse else None
    if len(chain) <= _LONGEST:
        return [statement]
    name, last = flag(), chain[_LONGEST - 1]
    piece = replace(last, orelse=(ir.Assign(name, ir.Constant(Kind.BOOL, True), location=last.location),))
    for outer in reversed(chain[: _LONGEST - 1]):
        piece = replace(outer, orelse=(*outer.orelse[:-1], piece))
    start = ir.Assign(name, ir.Constant(Kind.BOOL, False), location=piece.location)
    rest = ir.If(ir.Local(Kind.BOOL, name), last.orelse, (), location=last.location)
    return [start, piece, rest]
