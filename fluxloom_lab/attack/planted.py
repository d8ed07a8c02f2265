"""Small faults in the text of a module: each is one node of its syntax tree in another form.

Messages of errors, annotations, decorators and docstrings are left as they are: no test has to know them.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Mutation", "applied", "mutations", "sample"]

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
}  # fmt: skip
_UNTOUCHED = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Assert, ast.Raise)
_LEFT_OUT = frozenset({"annotation", "returns", "decorator_list", "bases"})


@dataclass(frozen=True)
class Mutation:
    """A fault: what stands between two places of a file, and what shall stand there.

    Attributes
    ----------
    file
        Path from the root of the repository.
    kind
        ``"comparison"``, ``"arithmetic"``, ``"constant"``, ``"statement"``, ``"not"``, ``"arguments"``, ``"branch"``.
    line
        Number of the first line, from 1.
    begin, end
        Offsets in the text of the file, in bytes.
    before, after
        The text there, and that of the mutant.
    """

    file: str
    kind: str
    line: int
    begin: int
    end: int
    before: str
    after: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What names a mutation while lines above it come and go."""
        return self.file, self.before, self.after


def applied(source: str, mutation: Mutation) -> str:
    """Return the text of the mutant."""
    data = source.encode()
    return (data[: mutation.begin] + mutation.after.encode() + data[mutation.end :]).decode()


def mutations(file: str, source: str) -> list[Mutation]:
    """Return all mutations of a module, in the order of its text."""
    starts = [0]
    for row in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    found = []
    for kind, node, after in _faults(ast.parse(source)):
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = source.encode()[begin:end].decode()
        found.append(Mutation(file, kind, node.lineno, begin, end, before, after))
    return sorted(found, key=lambda one: (one.begin, one.end, one.after))


def sample(groups: Sequence[Sequence[Mutation]], count: int, seed: int) -> list[Mutation]:
    """Return so many mutations, of each group and each kind in it in turn.

    A larger count has those of a smaller one, and more.
    """
    mixed = [_mixed(group, random.Random(seed)) for group in groups]
    return _in_turn(mixed)[:count]


def _mixed(group: Sequence[Mutation], numbers: random.Random) -> list[Mutation]:
    """Return the mutations of a file in an order by chance, in which each kind has its turn."""
    kinds: dict[str, list[Mutation]] = {}
    for one in group:
        kinds.setdefault(one.kind, []).append(one)
    lists = list(kinds.values())
    for one in (*lists, lists):
        numbers.shuffle(one)
    return _in_turn(lists)


def _in_turn(lists: Sequence[Sequence[Mutation]]) -> list[Mutation]:
    longest = max((len(one) for one in lists), default=0)
    return [one[k] for k in range(longest) for one in lists if k < len(one)]


def _faults(tree: ast.Module) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Yield the kind of each fault, the node, and the text that takes its place."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.expr):
            yield from ((kind, node, f"({ast.unparse(other)})") for kind, other in _expressions(node))
        elif isinstance(node, ast.stmt) and _can_go(node):
            yield "statement", node, "pass"
        if isinstance(node, ast.If | ast.IfExp | ast.While) and not _is_for_types(node.test):
            for value in ("False",) if isinstance(node, ast.While) else ("True", "False"):
                yield "branch", node.test, value
        pending += _inside(node)


def _inside(node: ast.AST) -> list[ast.AST]:
    """Return the nodes below one in which faults are planted."""
    if isinstance(node, _UNTOUCHED):
        return []
    found: list[ast.AST] = []
    for name, value in ast.iter_fields(node):
        if name in _LEFT_OUT:
            continue
        items = value if isinstance(value, list) else [value]
        found += [item for item in items if isinstance(item, ast.AST) and not _is_text(item)]
    return found


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is a docstring, or a table of public names."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _is_for_types(test: ast.expr) -> bool:
    return ast.unparse(test).endswith("TYPE_CHECKING")


def _can_go(node: ast.stmt) -> bool:
    """Whether a statement can be left out without leaving a name undefined."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break)


def _expressions(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield other forms of an expression."""
    if isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            others = [*node.ops[:k], _COMPARISONS[type(operator)](), *node.ops[k + 1 :]]
            yield "comparison", ast.Compare(node.left, others, node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        if not isinstance(node.left, ast.Constant | ast.JoinedStr) or not _is_string(node.left):
            yield "arithmetic", ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "not" if isinstance(node.op, ast.Not) else "arithmetic", node.operand
    elif isinstance(node, ast.BoolOp):
        yield "not", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        yield "constant", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Call):
        for k in range(len(node.args) - 1):
            first, second = node.args[k : k + 2]
            if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                swapped = [*node.args[:k], second, first, *node.args[k + 2 :]]
                yield "arguments", ast.Call(node.func, swapped, node.keywords)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
