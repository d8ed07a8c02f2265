"""Early returns of helpers: restructured so that every path ends in exactly one return, at its end."""

from __future__ import annotations

import ast
import functools

from fluxloom.kernel.source import FunctionSource
from fluxloom.kernel.syntax import statements

__all__ = ["check_returns", "contains_return", "returning_block"]

HINT = "return at the end, or in both branches of an if at the end"


@functools.lru_cache(maxsize=256)  # a helper is inlined at many places
def returning_block(source: FunctionSource) -> list[ast.stmt]:
    """Return the body of a helper with the statements after ``if c: return a`` moved into the else branch.

    Raises
    ------
    KernelError
        For a return inside a loop, statements after a return, or a path that returns nothing
        while another returns a value.
    """
    block = _restructure(source, source.node.body)
    if contains_return(block):
        _check_ends(source, block)
    return block


def check_returns(source: FunctionSource) -> None:
    """Raise `KernelError` when the returns of a helper cannot be restructured."""
    returning_block(source)


def contains_return(nodes: list[ast.stmt]) -> bool:
    """Whether a return is among the statements, at any depth."""
    return any(isinstance(item, ast.Return) for item in statements(nodes))


def always_returns(nodes: list[ast.stmt]) -> bool:
    """Whether every path through the statements ends in a return."""
    if not nodes:
        return False
    last = nodes[-1]
    return isinstance(last, ast.Return) or (
        isinstance(last, ast.If) and always_returns(last.body) and always_returns(last.orelse)
    )


def _restructure(source: FunctionSource, nodes: list[ast.stmt]) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for position, node in enumerate(nodes):
        rest = nodes[position + 1 :]
        if isinstance(node, ast.Return):
            if rest:
                raise source.error(rest[0], "this statement follows a return")
            return [*result, node]
        if isinstance(node, (ast.For, ast.While)) and contains_return([node]):
            inner = next(item for item in statements([node]) if isinstance(item, ast.Return))
            raise source.error(inner, "return inside a loop is not part of the kernel language",
                               "keep the result in a local and return it after the loop")  # fmt: skip
        if isinstance(node, ast.If) and contains_return([node]):
            body, orelse = _restructure(source, node.body), _restructure(source, node.orelse)
            if rest and always_returns(body) and always_returns(orelse):
                raise source.error(rest[0], "this statement follows a return")
            # what follows the `if` belongs to each branch that does not return
            body = body if always_returns(body) else _restructure(source, [*node.body, *rest])
            orelse = orelse if always_returns(orelse) else _restructure(source, [*node.orelse, *rest])
            return [*result, ast.copy_location(ast.If(node.test, body, orelse), node)]
        result.append(node)
    return result


def _check_ends(source: FunctionSource, nodes: list[ast.stmt]) -> None:
    last = nodes[-1] if nodes else None
    if isinstance(last, ast.Return):
        return
    if isinstance(last, ast.If) and contains_return([last]):
        for branch in (last.body, last.orelse):
            if not branch:
                raise source.error(last, "a path of this helper returns nothing", HINT)
            _check_ends(source, branch)
        return
    raise source.error(last or source.node, "a path of this helper returns nothing", HINT)
