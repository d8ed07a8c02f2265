"""Reading a decorated function: its source, its parameters, and all checks that need no shapes.

Access modes of the data and kinds of the constants follow from annotations alone. Early returns of helpers are
restructured so that every path ends in exactly one return, at its end.

Of constants that are formulas or records, ``flux: Const[Func]``, it checks what an annotation asks for and tells early.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Generic, Protocol, Union, get_args, get_origin

import numpy as np

from fluxloom.core.access import Access, Const
from fluxloom.core.errors import did_you_mean
from fluxloom.kernel.contract import check_contract
from fluxloom.kernel.ir import ConstantParameter, Kind, Parameter
from fluxloom.kernel.record_fields import Helper, RecordProblem, check_strategy, run_time_fields
from fluxloom.kernel.source import FunctionSource, read_source, statements, static_member
from fluxloom.kernel.subset import check_subset
from fluxloom.kernel.values import Value, constant_array, number, strategy_value

__all__ = [
    "Signature", "Strategy", "check_returns", "check_uses", "contains_return", "read_func", "read_kernel",
    "read_signature", "returning_block", "run_time_constants", "wanted",
]  # fmt: skip

_DATA = (float, int, bool, complex, str, bytes, list, tuple, dict, set, np.ndarray, np.generic)
_NOT_MEMBERS = frozenset({*dir(Protocol), *dir(Generic), "__abstractmethods__", "__annotations__", "__init__"})


@dataclass(frozen=True)
class Strategy:
    """What a constant that is a formula or a record has to be.

    Attributes
    ----------
    classes
        Classes and protocols of which it is one; none where every ``@func`` and every record will do.
    several
        Whether it is a tuple of them.
    optional
        Whether it may be None.
    """

    classes: tuple[type, ...] = ()
    several: bool = False
    optional: bool = False

    def check(self, name: str, given: Any) -> None:
        """Raise `RecordProblem` when what is given is not what the annotation asks for."""
        if given is None and self.optional:
            return
        if not self.several:
            self._check(name, given)
        elif isinstance(given, tuple):
            for k, item in enumerate(given):
                self._check(f"{name}[{k}]", item)
        else:
            raise RecordProblem(f"{name!r} is {given!r}, not a tuple", f"give a tuple of them: {name}=(first, second)")

    def _check(self, name: str, given: Any) -> None:
        check_strategy(name, given)
        if not self.classes:
            if not isinstance(given, Helper) and not isinstance(static_member(type(given), "__call__"), Helper):
                raise RecordProblem(f"{name!r}, a {type(given).__name__}, cannot be called", "give it a @func __call__")
            return
        problems = [_unlike(name, given, kind) for kind in self.classes]
        if all(problems):
            raise RecordProblem(*next(problem for problem in problems if problem))


def wanted(annotation: Any) -> Strategy | None:
    """Return what ``Const[annotation]`` asks for; None if it is a number or an array."""
    if get_origin(annotation) in (Union, UnionType):
        parts = [wanted(item) for item in get_args(annotation) if item is not NoneType]
        found = [part for part in parts if part is not None]
        if len(found) == len(parts) == 1:
            return replace(found[0], optional=NoneType in get_args(annotation))
        if len(found) != len(parts) or any(part.several for part in found):
            return None
        classes = () if any(not part.classes for part in found) else tuple(c for part in found for c in part.classes)
        return Strategy(classes, optional=NoneType in get_args(annotation))
    if get_origin(annotation) is tuple:
        parts = [wanted(item) for item in get_args(annotation) if item is not Ellipsis]
        if not parts or any(part is None or part.several or part.optional for part in parts):
            return None
        every = [part.classes for part in parts if part is not None]
        return Strategy(() if () in every else tuple(dict.fromkeys(c for each in every for c in each)), several=True)
    kind = annotation if isinstance(annotation, type) and get_origin(annotation) is None else get_origin(annotation)
    if kind is Callable or (isinstance(kind, type) and issubclass(kind, Helper)):
        return Strategy()
    if not isinstance(kind, type) or kind in (NoneType, Any) or issubclass(kind, _DATA):
        return None
    return None if kind.__module__ == "collections.abc" else Strategy((kind,))


def run_time_constants(item: ConstantParameter, given: Any) -> list[ConstantParameter]:
    """Return the constants that fields of a strategy are at run time."""
    return [ConstantParameter(key, Kind.REAL, False, item.location) for key, _ in run_time_fields(item.name, given)]


def _unlike(name: str, given: Any, kind: type) -> tuple[str, str] | None:
    """Say why something is no instance of a class, or does not follow a protocol; None if it is or does."""
    text = f"a @func ({given.source.name})" if isinstance(given, Helper) else f"a {type(given).__name__}"
    if not _is_protocol(kind):
        return None if isinstance(given, kind) else (f"{name!r} is {text}, not a {kind.__name__}", "")
    if isinstance(given, Helper):
        members = _members(kind)
        if members != {"__call__"}:
            return f"{name!r} is {text}, not a {kind.__name__}", f"give a record with {', '.join(sorted(members))}"
        return _other_count(name, given, static_member(kind, "__call__"), own=0)
    own = {item.name for item in fields(given)} if is_dataclass(given) else set[str]()
    for member in sorted(_members(kind)):
        found = static_member(type(given), member)
        if found is None and member not in own:
            return f"{name!r}, {text}, is no {kind.__name__}: it has no {member!r}", ""
        if member == "__call__" and not isinstance(found, Helper):
            return f"the __call__ of {name!r}, {text}, is no @func", "decorate it with @fluxloom.func"
        problem = _other_count(f"{name}.{member}", found, static_member(kind, member), own=1)
        if problem is not None:
            return problem
    return None


def _other_count(name: str, given: Any, declared: Any, own: int) -> tuple[str, str] | None:
    """Say that a formula takes another number of arguments than the protocol says."""
    count = _count(declared)
    if not isinstance(given, Helper) or count is None:
        return None
    has = len(given.source.parameter_names) - own
    where = f"it is in {given.source.filename}:{given.source.node.lineno}"
    return None if has == count else (f"{name} takes {has} arguments, its protocol says {count}", where)


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def _members(kind: type) -> set[str]:
    """Return what a protocol asks for."""
    bases = [base for base in kind.__mro__ if _is_protocol(base) and base not in (Protocol, Generic)]
    names = {name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", {}))}
    return {name for name in names if name == "__call__" or (name not in _NOT_MEMBERS and not name.startswith("_"))}


def _count(function: Any) -> int | None:
    """Return how many arguments a method takes, its own object left out; None where that is open."""
    if isinstance(function, Helper):
        return len(function.source.parameter_names) - 1
    if not inspect.isfunction(function):
        return None
    parameters = list(inspect.signature(function).parameters.values())[1:]
    plain = all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters)
    return len(parameters) if plain else None


# ---------------------------------------------------------------------------- what is known at decoration


def check_uses(source: FunctionSource, strategies: Mapping[str, Strategy], optional: frozenset[str]) -> None:
    """Raise a located `KernelError` for a use of a strategy that its annotation rules out, or a needless test for None.

    Parameters
    ----------
    source, strategies
        The kernel, and its constants that are strategies.
    optional
        Its parameters that may be left out.
    """
    names = {*source.parameter_names, *(a.arg for a in source.node.args.kwonlyargs)} - optional
    names -= {name for name, strategy in strategies.items() if strategy.optional}
    for node in ast.walk(source.node):
        tested = node.left if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)) else None
        if isinstance(tested, ast.Name) and tested.id in names:
            raise source.error(node, f"{tested.id!r} is never None", "annotate what may be left out: Read | None")
        if isinstance(node, ast.Call):
            _check_call(source, node, strategies)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            known = strategies.get(node.value.id)
            if known is not None and not known.several:
                _check_attribute(source, node, known)


def _check_call(source: FunctionSource, node: ast.Call, strategies: Mapping[str, Strategy]) -> None:
    called, name = node.func, "__call__"
    if isinstance(called, ast.Attribute):
        called, name = called.value, called.attr
    several = isinstance(called, ast.Subscript)
    called = called.value if isinstance(called, ast.Subscript) else called
    known = strategies.get(called.id) if isinstance(called, ast.Name) else None
    if known is None or known.several is not several or len(known.classes) != 1:
        return
    count, kind = _count(static_member(known.classes[0], name)), known.classes[0]
    if count is not None and count != len(node.args):
        raise source.error(node, f"{ast.unparse(node.func)} takes {count} arguments, not {len(node.args)}",
                           f"so says {kind.__name__}")  # fmt: skip


def _check_attribute(source: FunctionSource, node: ast.Attribute, known: Strategy) -> None:
    """Check an attribute where a protocol or a record says which there are."""
    if len(known.classes) != 1 or not (_is_protocol(known.classes[0]) or is_dataclass(known.classes[0])):
        return
    kind = known.classes[0]
    names = {item.name for item in fields(kind)} if is_dataclass(kind) else set[str]()
    names |= {name for base in kind.__mro__ for name in (*vars(base), *vars(base).get("__annotations__", {}))}
    if node.attr not in names:
        public = sorted(name for name in names if not name.startswith("_"))
        raise source.error(node, f"{kind.__name__} has no {node.attr!r}{did_you_mean(node.attr, public)}",
                           f"it has: {', '.join(public)}")  # fmt: skip


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
