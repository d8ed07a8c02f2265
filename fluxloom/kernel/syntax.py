"""Python syntax that is never part of the kernel language, and work on sources that nest deep.

Long sums and chains of `elif` nest deeper than functions of Python may.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

from fluxloom.core.errors import KernelError

__all__ = ["child_nodes", "deeply", "first_rejected", "is_zero_comprehension", "statements"]

REJECTED: Mapping[type[ast.AST], tuple[str, str]] = MappingProxyType({
    ast.Break: ("break", "end the loop with its bound, or use a while loop whose test includes the condition"),
    ast.Continue: ("continue", "put the rest of the body under an if"),
    ast.With: ("with", ""), ast.AsyncWith: ("async with", ""), ast.AsyncFor: ("async for", ""),
    ast.Try: ("try", "test for the condition instead"), ast.TryStar: ("try", "test for the condition instead"),
    ast.Raise: ("raise", "write an error flag to a Global with Max and test it after the loop"),
    ast.Assert: ("assert", "write an error flag to a Global with Max and test it after the loop"),
    ast.Delete: ("del", ""), ast.Global: ("global", "pass a parameter"), ast.Nonlocal: ("nonlocal", "pass a parameter"),
    ast.Import: ("import", "import at the top of the module"),
    ast.ImportFrom: ("import", "import at the top of the module"),
    ast.FunctionDef: ("a nested function", "define it outside and decorate it with @fluxloom.func"),
    ast.AsyncFunctionDef: ("a nested function", "define it outside and decorate it with @fluxloom.func"),
    ast.ClassDef: ("class", ""), ast.Match: ("match", "use if and elif"),
    ast.Lambda: ("lambda", "define a @fluxloom.func"),
    ast.ListComp: ("a comprehension", "write a for loop; only [[0.0] * n for _ in range(m)] is allowed"),
    ast.SetComp: ("a comprehension", "write a for loop"), ast.DictComp: ("a comprehension", "write a for loop"),
    ast.GeneratorExp: ("a comprehension", "write a for loop"),
    ast.JoinedStr: ("an f-string", ""), ast.Dict: ("a dict", "use local variables"),
    ast.Set: ("a set", "use local variables"),
    ast.Slice: ("a slice", "write a for loop over the components"),
    ast.Starred: ("a starred expression", "write the elements out"),
    ast.NamedExpr: ("':='", "assign on a line of its own"),
    ast.Await: ("await", ""), ast.Yield: ("yield", ""), ast.YieldFrom: ("yield", ""),
})  # fmt: skip


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """Return the nodes directly inside a node, in their order: `ast.iter_child_nodes`, in half the time."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            found.append(value)
        elif isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
    return found


def statements(nodes: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements and those inside them, at any depth, of the kinds that hold others in kernels."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, (ast.For, ast.While, ast.If)):
            pending += [*node.body, *node.orelse]


def is_zero_comprehension(node: ast.AST) -> bool:
    """Whether a node is ``[[0.0] * n for _ in range(m)]``, possibly nested: an array without aliased rows."""
    if not isinstance(node, ast.ListComp) or len(node.generators) != 1:
        return False
    generator = node.generators[0]
    counted = (
        not generator.ifs
        and not generator.is_async
        and isinstance(generator.target, ast.Name)
        and isinstance(generator.iter, ast.Call)
    )
    element = node.elt
    filled = isinstance(element, ast.BinOp) and isinstance(element.op, ast.Mult) and isinstance(element.left, ast.List)
    filled = filled and all(isinstance(item, ast.Constant) for item in element.left.elts)  # type: ignore[union-attr]
    return counted and (filled or is_zero_comprehension(element) or isinstance(element, ast.Constant))


def first_rejected(nodes: Iterable[ast.AST]) -> tuple[ast.AST, str, str] | None:
    """Return the first node that is refused, with the message and the hint, or ``None``."""
    for node in nodes:
        if type(node) in REJECTED and not is_zero_comprehension(node):
            what, hint = REJECTED[type(node)]
            return node, f"{what} is not part of the kernel language", hint
        found = first_rejected(child_nodes(node))
        if found is not None:
            return found
    return None


T = TypeVar("T")

_FRAMES = 300_000
_STACK = 512 << 20
"""Bytes of address space: only what is used is taken from memory."""


def deeply(work: Callable[[], T], name: str) -> T:
    """Return what ``work`` returns; where it recurses too deep, do it again where there is room.

    Parameters
    ----------
    work
        Does the same when it is done again.
    name
        The kernel or helper, for the message.

    Raises
    ------
    KernelError
        When even that is not enough.
    """
    try:
        return work()
    except RecursionError:
        pass
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # passed on to the thread that waits
            raised.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    try:
        sys.setrecursionlimit(_FRAMES)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if raised and isinstance(raised[0], RecursionError):
        raise KernelError(f"{name!r}: expressions are nested too deep", hint="keep parts of them in locals")
    if raised:
        raise raised[0]
    return found[0]
