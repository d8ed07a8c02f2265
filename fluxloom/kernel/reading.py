"""Reading a decorated function: its source, its parameters, and all checks that need no shapes.

Access modes of the data and kinds of the constants follow from annotations alone. Early returns of helpers are
restructured so that every path ends in exactly one return, at its end.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from fluxloom.core.access import Access, Const
from fluxloom.core.errors import did_you_mean
from fluxloom.kernel.contract import check_contract
from fluxloom.kernel.ir import ConstantParameter, Kind, Parameter
from fluxloom.kernel.record_fields import RecordProblem
from fluxloom.kernel.source import FunctionSource, read_source
from fluxloom.kernel.strategies import Strategy, check_uses, wanted
from fluxloom.kernel.subset import check_subset
from fluxloom.kernel.syntax import statements
from fluxloom.kernel.values import Value, constant_array, number, strategy_value

__all__ = [
    "Signature", "check_returns", "contains_return", "read_func", "read_kernel", "read_signature", "returning_block",
]  # fmt: skip

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


_SCALARS: Mapping[Any, Kind] = MappingProxyType({float: Kind.REAL, int: Kind.INT, bool: Kind.BOOL})
ACCESS_HINT = "annotate it with Read, Write, RW, Inc, Min or Max"


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel.

    Attributes
    ----------
    arrays
        Names of the baked constants that are arrays, with the declared kind of their elements
        (``None``: deduced from the value).
    defaults
        Default values of constants.
    strategies
        The baked constants that are formulas or records, with what they have to be.
    """

    parameters: tuple[Parameter, ...]
    constants: tuple[ConstantParameter, ...]
    arrays: Mapping[str, Kind | None]
    defaults: Mapping[str, Any]
    strategies: Mapping[str, Strategy] = field(default_factory=lambda: MappingProxyType({}))

    def constant(self, name: str) -> ConstantParameter | None:
        """Return the constant parameter of that name."""
        return next((item for item in self.constants if item.name == name), None)

    def check_strategy(self, source: FunctionSource, item: ConstantParameter, given: Any) -> None:
        """Raise `KernelError` when a value is not the strategy that a constant parameter asks for."""
        try:
            self.strategies[item.name].check(item.name, given)
        except RecordProblem as problem:
            raise source.error(item.location, problem.message, problem.hint) from None

    def value(self, source: FunctionSource, item: ConstantParameter, given: Any) -> Value:
        """Return the value given for a constant parameter, checked against its annotation.

        Raises
        ------
        KernelError
            When it is not a number of the declared kind (integers are taken for reals), for an
            array parameter not a rectangular nest of them, or not the strategy that is asked for.
        """
        if item.name in self.strategies:
            self.check_strategy(source, item, given)
            return strategy_value(item.name, given, run_time=True)
        if item.name in self.arrays:
            array = constant_array(item.name, given, self.arrays[item.name])
            if array is None:
                wanted = self.arrays[item.name]
                raise source.error(
                    item.location, f"the value of {item.name!r} is not an array of {_plural(wanted)}",
                    "give a rectangular nested list, a tuple or a NumPy array",
                )  # fmt: skip
            return array
        given = given if not isinstance(given, np.ndarray) or given.ndim else given.item()
        if item.kind is Kind.REAL and isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            given = float(given)
        value = number(given)
        if value is None or value.kind is not item.kind:
            names = {Kind.REAL: "a real number", Kind.INT: "an integer", Kind.BOOL: "a boolean"}
            bits = " of 64 bits" if isinstance(given, int) and item.kind is Kind.INT and value is None else ""
            raise source.error(item.location, f"the value {given!r} of {item.name!r} is not {names[item.kind]}{bits}")
        return value


def _plural(kind: Kind | None) -> str:
    return {None: "numbers", Kind.REAL: "numbers", Kind.INT: "integers", Kind.BOOL: "booleans"}[kind]


def read_signature(source: FunctionSource, visible: Mapping[str, Any]) -> Signature:
    """Read the parameters of a kernel.

    Parameters
    ----------
    source
        The kernel.
    visible
        Names at the place of definition, in which annotations given as strings are looked up last.

    Raises
    ------
    KernelError
        For ``*args``, ``**kwargs``, a missing or unknown annotation, or a default on data.
    """
    arguments = source.node.args
    for extra in (arguments.vararg, arguments.kwarg):
        if extra is not None:
            raise source.error(extra, "a kernel has no *args or **kwargs", "name every parameter")
    if arguments.defaults:
        raise source.error(arguments.defaults[0], "a data parameter has no default")
    parameters = tuple(
        _parameter(source, item, visible)
        for item in (*arguments.posonlyargs, *arguments.args)
    )
    constants: list[ConstantParameter] = []
    arrays: dict[str, Kind | None] = {}
    strategies: dict[str, Strategy] = {}
    for item in arguments.kwonlyargs:
        constants.append(_constant(source, item, visible, arrays, strategies))
    # those of now, whatever becomes of a list
    given: dict[str, Any] = getattr(source.function, "__kwdefaults__") or {}
    defaults = {key: value if key in strategies else copy.deepcopy(value) for key, value in given.items()}
    signature = Signature(parameters, tuple(constants), MappingProxyType(arrays), MappingProxyType(defaults),
                          MappingProxyType(strategies))  # fmt: skip
    for item in constants:
        if item.name in defaults:
            signature.value(source, item, defaults[item.name])
    return signature


def _annotation(source: FunctionSource, item: ast.arg, visible: Mapping[str, Any]) -> Any:
    annotation = getattr(source.function, "__annotations__").get(item.arg)
    if not isinstance(annotation, str):
        return annotation
    names = {**visible, **getattr(source.function, "__globals__"), **inspect.getclosurevars(source.function).nonlocals}
    try:
        # postponed annotations are the user's own source; evaluating them is what typing.get_type_hints does
        return eval(annotation, names)
    except Exception as problem:
        constant = item in source.node.args.kwonlyargs
        hint = "names in it have to be there when the kernel is defined, not only for checkers of types"
        raise source.error(item.annotation or item, f"the annotation of {item.arg!r} cannot be evaluated: {problem}",
                           hint if constant else ACCESS_HINT) from problem  # fmt: skip


def _parameter(source: FunctionSource, item: ast.arg, visible: Mapping[str, Any]) -> Parameter:
    if item.annotation is None:
        raise source.error(item, f"the parameter {item.arg!r} has no access mode", ACCESS_HINT)
    annotation = _annotation(source, item, visible)
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else ()
    optional = len(parts) == 2 and NoneType in parts
    if optional:
        annotation = next(part for part in parts if part is not NoneType)
    access = annotation if isinstance(annotation, Access) else getattr(annotation, "access", None)
    if not isinstance(access, Access):
        text = ast.unparse(item.annotation)
        hint = f"{ACCESS_HINT}{did_you_mean(text.rsplit('.', 1)[-1], [mode.value for mode in Access])}"
        if annotation in (float, int, bool) or annotation is Const or get_origin(annotation) is Const:
            hint = f"constants are keyword-only: put {item.arg!r} after a *"
        raise source.error(item.annotation, f"{text!r} is not an access mode", hint)
    return Parameter(item.arg, access, source.location(item), optional=optional)


def _constant(
    source: FunctionSource, item: ast.arg, visible: Mapping[str, Any], arrays: dict[str, Kind | None],
    strategies: dict[str, Strategy],
) -> ConstantParameter:  # fmt: skip
    where = source.location(item)
    if item.annotation is None:
        raise source.error(item, f"the constant {item.arg!r} has no annotation", "float, int, bool or Const[...]")
    annotation = _annotation(source, item, visible)
    if annotation in (float, int, bool):
        return ConstantParameter(item.arg, _SCALARS[annotation], False, where)
    if get_origin(annotation) is Const:
        (inner,) = get_args(annotation)
        if inner in (float, int, bool):
            return ConstantParameter(item.arg, _SCALARS[inner], True, where)
        strategy = wanted(inner)
        if strategy is not None:
            strategies[item.arg] = strategy
            return ConstantParameter(item.arg, Kind.REAL, True, where)
        arrays[item.arg] = _element(inner)
        return ConstantParameter(item.arg, arrays[item.arg] or Kind.REAL, True, where)
    text = ast.unparse(item.annotation)
    hint = "float, int, bool, Const[float], Const[list[float]] or Const[Func]"
    if annotation is Const:
        hint = "say what it is: Const[float], Const[int] or Const[list[float]]"
    elif isinstance(getattr(annotation, "access", None), Access):
        hint = f"data comes before the *: move {item.arg!r} there"
    raise source.error(item.annotation, f"{text!r} is not the type of a constant", hint)


def _element(annotation: Any) -> Kind | None:
    """Return the kind of the innermost element type of ``list[list[float]]`` and the like."""
    arguments = [item for item in get_args(annotation) if item is not Ellipsis]
    if not arguments:
        return _SCALARS.get(annotation)
    kinds = {_element(item) for item in arguments}
    return kinds.pop() if len(kinds) == 1 else None


def read_func(function: Callable[..., Any], lines: Sequence[str]) -> FunctionSource:
    """Read a helper and check it.

    Parameters
    ----------
    function
        The decorated function.
    lines
        Of its file, as they were when it was decorated.

    Raises
    ------
    KernelError
        For anything outside the kernel language.
    """
    source = read_source(function, lines)
    arguments = source.node.args
    for extra in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
        if extra is not None:
            raise source.error(extra, "a helper takes positional parameters only")
    if arguments.defaults:
        raise source.error(arguments.defaults[0], "a parameter of a helper has no default")
    check_subset(source, is_kernel=False)
    check_returns(source)
    return source


def read_kernel(
    function: Callable[..., None], lines: Sequence[str], visible: Mapping[str, Any]
) -> tuple[FunctionSource, Signature]:
    """Read a kernel and check it.

    Parameters
    ----------
    function
        The decorated function.
    lines
        Of its file, as they were when it was decorated.
    visible
        Names at the place of definition, for annotations that are strings.

    Raises
    ------
    KernelError
        For anything outside the kernel language.
    AccessError
        When the body breaks an access mode.
    """
    source = read_source(function, lines)
    signature = read_signature(source, visible)
    check_subset(source, is_kernel=True, strategies=signature.strategies)
    optional = frozenset(item.name for item in signature.parameters if item.optional)
    check_uses(source, signature.strategies, optional)
    check_contract(source, signature.parameters)
    return source, signature
