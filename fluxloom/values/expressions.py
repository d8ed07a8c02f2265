"""Arithmetic in text: ``"0.1 * exp(-x**2)"`` becomes a function of NumPy arrays.

The text is parsed as a Python expression and only what is listed here is carried out; nothing else can run.
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

__all__ = ["Expression", "formula", "formula_check"]

_FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {name: getattr(np, name) for name in "sin cos tan sinh cosh tanh exp log sqrt abs sign floor ceil hypot".split()}
    | {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2}
    | {"min": np.minimum, "max": np.maximum, "where": np.where, "sech": lambda x: 1.0 / np.cosh(x)}
)
_ARGUMENTS: Mapping[str, int] = MappingProxyType({"hypot": 2, "atan2": 2, "min": 2, "max": 2, "where": 3})
_CONSTANTS: Mapping[str, np.float64] = MappingProxyType({"pi": np.float64(np.pi), "e": np.float64(np.e)})
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
        with self._bounded():
            _check(self._tree(), self.shown, self.variables)

    @property
    def shown(self) -> str:
        """The text in quotes, its end left out where it is long."""
        return repr(self.text if len(self.text) <= _SHOWN else self.text[:_SHOWN] + "...")

    @property
    def names(self) -> frozenset[str]:
        """The variables that occur in it."""
        found = {node.id for node in ast.walk(self._tree()) if isinstance(node, ast.Name)}
        return frozenset(found & set(self.variables))

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """Raise `CaseError` where a formula is too deep for Python."""
        try:
            yield
        except RecursionError:
            raise CaseError(f"{self.shown}: too many terms or brackets; give a file instead") from None

    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise CaseError(f"{self.shown} is not an expression: {getattr(error, 'msg', error)}") from None

    def __call__(self, *values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the values for arrays of the variables, in their order; NaN or infinite where there is none."""
        known = dict(zip(self.variables, (np.asarray(v, dtype=np.float64) for v in values), strict=True))
        with np.errstate(all="ignore"), self._bounded():
            result = _evaluate(self._tree(), known)
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
        found = expression(*places)
        for k in np.flatnonzero(~(np.isfinite(found) & (found >= least)))[:1].tolist():
            where = ", ".join(f"{along[k]:g}" for along in places)
            wanted = f"; at least {least:g} is wanted" if found[k] < least else ""
            raise CaseError(f"{key}: {expression.shown} is {found[k]:g} at ({where}){wanted}")
        return found

    return values


def formula_check(*variables: str) -> Callable[[str], str]:
    """Return a check of pydantic: a text is empty or a formula in some variables."""

    def check(text: str) -> str:
        try:
            if text:
                Expression(text, variables)
        except CaseError as error:
            raise ValueError(str(error)) from None
        return text

    return check


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
            known = [*variables, *_CONSTANTS]
            if name not in known:
                hint = did_you_mean(name, [*known, *_FUNCTIONS])
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
            if name not in _FUNCTIONS:
                hint = did_you_mean(name, _FUNCTIONS)
                raise CaseError(f"{shown}: unknown function {name!r}{hint} (allowed: {', '.join(_FUNCTIONS)})")
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
        match operand:
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not() | ast.Invert()):
                pass
            case ast.BinOp(op=op) if isinstance(op, _LOGICAL):
                pass
            case _:
                raise CaseError(
                    f"{shown}: {ast.unparse(operand)!r} is no test, and & | ~ join tests: put brackets around each "
                    "comparison, as in (x < 1) & (y < 2), or write and, or, not"
                )


def _evaluate(node: ast.expr, known: Mapping[str, npt.NDArray[np.float64]]) -> Any:
    """Return the value of a checked formula."""
    match node:
        case ast.Constant(value=value):
            return np.float64(value)  # pyright: ignore[reportArgumentType]
        case ast.Name(id=name):
            return known[name] if name in known else _CONSTANTS[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_evaluate(left, known), _evaluate(right, known))
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)](_evaluate(operand, known))
        case ast.BoolOp(op=op, values=values):
            result = _evaluate(values[0], known)
            for value in values[1:]:
                result = _OPERATORS[type(op)](result, _evaluate(value, known))
            return result
        case ast.Compare(left=left, ops=ops, comparators=rest):
            parts = [_evaluate(part, known) for part in (left, *rest)]
            result = _OPERATORS[type(ops[0])](parts[0], parts[1])
            for k, op in enumerate(ops[1:], 1):
                result = np.logical_and(result, _OPERATORS[type(op)](parts[k], parts[k + 1]))
            return result
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return np.where(_evaluate(test, known), _evaluate(body, known), _evaluate(orelse, known))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name](*(_evaluate(argument, known) for argument in args))
    raise AssertionError(ast.dump(node))
