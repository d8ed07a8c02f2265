"""Formulas as text: ``"0.1 * exp(-x**2)"`` becomes a function of NumPy arrays.

The text is parsed as a Python expression and only what is listed here is carried out; nothing else can run. What loops
on a device make of the same text is in `fluxloom.values.kernel_text`. Where a test stands for a number it is 1 or 0.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, did_you_mean

__all__ = ["CONSTANTS", "FUNCTIONS", "Expression", "formula", "is_test"]

FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {name: getattr(np, name) for name in "sin cos tan sinh cosh tanh exp log sqrt abs sign floor ceil hypot".split()}
    | {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2}
    | {"min": np.minimum, "max": np.maximum, "where": np.where, "sech": lambda x: 1.0 / np.cosh(x)}
)
_ARGUMENTS: Mapping[str, int] = MappingProxyType({"hypot": 2, "atan2": 2, "min": 2, "max": 2, "where": 3})
CONSTANTS: Mapping[str, np.float64] = MappingProxyType({"pi": np.float64(np.pi), "e": np.float64(np.e)})
_SHOWN = 100
"""Characters of a formula that messages show."""

_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = MappingProxyType({
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow, ast.Mod: operator.mod, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.And: np.logical_and, ast.Or: np.logical_or, ast.Not: np.logical_not,
    ast.BitAnd: np.logical_and, ast.BitOr: np.logical_or, ast.Invert: np.logical_not,
})  # fmt: skip

_LOGICAL = (ast.BitAnd, ast.BitOr)
"""Operators of tests alone: in Python they bind more tightly than comparisons do."""


@dataclass(frozen=True)
class Expression:
    """A formula in some variables.

    Attributes
    ----------
    text
        Python arithmetic: ``+ - * / % **``, comparisons, ``a if test else b``, ``and or not``, ``& | ~`` between
        tests in brackets, the constants ``pi`` and ``e``, and the usual functions.
    variables
        Names that may occur.

    Raises
    ------
    CaseError
        For a syntax error, an unknown name or anything that is no arithmetic.
    """

    text: str
    variables: tuple[str, ...] = ("x", "y")

    def __post_init__(self) -> None:
        with self.bounded():
            _check(self.tree(), self.shown, self.variables)

    @property
    def shown(self) -> str:
        """The text in quotes, its end left out where it is long."""
        return repr(self.text if len(self.text) <= _SHOWN else self.text[:_SHOWN] + "...")

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Raise `CaseError` where a formula is too deep for Python."""
        try:
            yield
        except RecursionError:
            raise CaseError(f"{self.shown}: too many terms or brackets; give a file instead") from None

    @property
    def names(self) -> frozenset[str]:
        """The variables that occur in it."""
        found = {node.id for node in ast.walk(self.tree()) if isinstance(node, ast.Name)}
        return frozenset(found & set(self.variables))

    def tree(self) -> ast.expr:
        """Return the syntax tree."""
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise CaseError(f"{self.shown} is not an expression: {getattr(error, 'msg', error)}") from None

    def __call__(self, *values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the values for arrays of the variables, in their order; NaN or infinite where there is none."""
        known = dict(zip(self.variables, (np.asarray(v, dtype=np.float64) for v in values), strict=True))
        with np.errstate(all="ignore"), self.bounded():
            result = _evaluate(self.tree(), known)
        shape = np.broadcast_shapes(*(v.shape for v in known.values()))
        return np.broadcast_to(np.asarray(result, dtype=np.float64), shape).copy()


def formula(
    text: str, key: str, variables: tuple[str, ...] = ("x", "y"), least: float = -np.inf
) -> Callable[..., npt.NDArray[np.float64]]:
    """Return what a formula describes, as a function of arrays ``(n,)`` of its variables; no value is below ``least``.

    Raises
    ------
    CaseError
        Naming the key, for a wrong formula; when called, where it has no finite value, or one below the least.
    """
    try:
        expression = Expression(text, variables)
    except CaseError as error:
        raise CaseError(f"{key}: {error}") from None

    def values(*places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the formula at places, ``(n,)`` each; `CaseError` where it is not finite or below ``least``."""
        found = expression(*places)
        for k in np.flatnonzero(~(np.isfinite(found) & (found >= least)))[:1].tolist():
            where = ", ".join(f"{along[k]:g}" for along in places)
            wanted = f"; at least {least:g} is wanted" if found[k] < least else ""
            raise CaseError(f"{key}: {expression.shown} is {found[k]:g} at ({where}){wanted}")
        return found

    return values


def _check(node: ast.expr, shown: str, variables: Sequence[str]) -> None:
    """Raise unless every part of a formula is known; ``shown`` is what messages call it."""
    children: list[ast.expr] = []
    match node:
        case ast.Constant(value=value) if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                float(value)
            except OverflowError:
                raise CaseError(f"{shown}: a number is too large") from None
        case ast.Name(id=name):
            known = [*variables, *CONSTANTS]
            if name not in known:
                hint = did_you_mean(name, [*known, *FUNCTIONS])
                raise CaseError(f"{shown}: unknown name {name!r}{hint} (allowed: {', '.join(known)})")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            children = [left, right]
            if isinstance(op, _LOGICAL):
                _check_tests(children, shown)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            children = [operand]
            if isinstance(op, ast.Invert):
                _check_tests(children, shown)
        case ast.BoolOp(values=values):
            children = values
        case ast.Compare(left=left, ops=ops, comparators=rest) if all(type(op) in _OPERATORS for op in ops):
            children = [left, *rest]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            children = [test, body, orelse]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            if name not in FUNCTIONS:
                hint = did_you_mean(name, FUNCTIONS)
                raise CaseError(f"{shown}: unknown function {name!r}{hint} (allowed: {', '.join(FUNCTIONS)})")
            if len(args) != _ARGUMENTS.get(name, 1):
                raise CaseError(f"{shown}: {name} takes {_ARGUMENTS.get(name, 1)} arguments, got {len(args)}")
            children = args
        case _:
            raise CaseError(f"{shown}: {ast.unparse(node)!r} is not allowed in an expression; write arithmetic only")
    for child in children:
        _check(child, shown, variables)


def _check_tests(operands: Sequence[ast.expr], shown: str) -> None:
    """Raise unless what ``&``, ``|`` and ``~`` join are tests: ``x < 1 & y < 2`` would compare ``1 & y``."""
    for operand in operands:
        if not is_test(operand):
            raise CaseError(
                f"{shown}: {ast.unparse(operand)!r} is no test, and & | ~ join tests: put brackets around each "
                "comparison, as in (x < 1) & (y < 2), or write and, or, not"
            )


def is_test(node: ast.expr) -> bool:
    """Return whether a part of a formula is a test, true or false, and no number."""
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not() | ast.Invert()):
            return True
        case ast.BinOp(op=op):
            return isinstance(op, _LOGICAL)
    return False


def _number(node: ast.expr, known: Mapping[str, npt.NDArray[np.float64]]) -> Any:
    """Return the value of a part of a formula as numbers."""
    value = _evaluate(node, known)
    return np.asarray(value, dtype=np.float64) if is_test(node) else value


def _evaluate(node: ast.expr, known: Mapping[str, npt.NDArray[np.float64]]) -> Any:
    """Return the value of a checked formula."""
    match node:
        case ast.Constant(value=value):
            return np.float64(value)  # pyright: ignore[reportArgumentType]
        case ast.Name(id=name):
            return known[name] if name in known else CONSTANTS[name]
        case ast.BinOp(left=left, op=op, right=right):
            value = _evaluate if is_test(node) else _number
            return _OPERATORS[type(op)](value(left, known), value(right, known))
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)]((_evaluate if is_test(node) else _number)(operand, known))
        case ast.BoolOp(op=op, values=values):
            result = _evaluate(values[0], known)
            for value in values[1:]:
                result = _OPERATORS[type(op)](result, _evaluate(value, known))
            return result
        case ast.Compare(left=left, ops=ops, comparators=rest):
            parts = [_number(part, known) for part in (left, *rest)]
            result = _OPERATORS[type(ops[0])](parts[0], parts[1])
            for k, op in enumerate(ops[1:], 1):
                result = np.logical_and(result, _OPERATORS[type(op)](parts[k], parts[k + 1]))
            return result
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return np.where(_evaluate(test, known), _number(body, known), _number(orelse, known))
        case ast.Call(func=ast.Name(id=name), args=args):
            tests = [_evaluate(args[0], known)] if name == "where" else []
            return FUNCTIONS[name](*tests, *(_number(argument, known) for argument in args[len(tests) :]))
    raise AssertionError(ast.dump(node))
