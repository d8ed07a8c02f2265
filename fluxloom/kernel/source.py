"""The source of a decorated function: its syntax tree, its locations and the names it captures.

And which syntax is never part of the kernel language. Long sums and chains of `elif` nest deeper than functions of
Python may: what looks at syntax trees works on such sources too.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import contextlib
import dataclasses
import functools
import inspect
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import CodeType, MappingProxyType, ModuleType
from typing import Any, TypeVar

import numpy as np

from fluxloom.core.errors import KernelError, did_you_mean
from fluxloom.kernel import intrinsics
from fluxloom.kernel.intrinsics import Intrinsic
from fluxloom.kernel.ir import Location
from fluxloom.kernel.record_fields import Helper, KernelMarker, RecordProblem, check_strategy, is_record
from fluxloom.kernel.values import (
    Known,
    RecordValue,
    Value,
    constant_array,
    member,
    number,
    strategy_value,
)  # fmt: skip

__all__ = [
    "Captured", "FunctionSource", "assigned_names", "child_nodes", "deeply", "dotted_name", "first_rejected",
    "is_zero_comprehension", "read_source", "statements",
]  # fmt: skip

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


_ROOT = re.compile(r"(?<![\w.])([^\W\d]\w*)\s*\.")
"""What looks like the first name of a dotted one."""

_MOST_ENDS = 20
"""Lines at which a function may end that are tried before its tokens are read one by one."""


Captured = Intrinsic | Helper | ModuleType | type | Known


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function, its syntax tree with file line numbers, and everything it takes from outside.

    Attributes
    ----------
    captured
        What each free name (dotted for attributes of modules: ``"math.sqrt"``) stood for when the
        function was decorated.
    """

    function: Callable[..., Any]
    name: str
    filename: str
    first_line: int
    lines: tuple[str, ...]
    node: ast.FunctionDef
    captured: Mapping[str, Captured] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the positional parameters."""
        return tuple(argument.arg for argument in (*self.node.args.posonlyargs, *self.node.args.args))

    @functools.cached_property
    def assigned(self) -> frozenset[str]:
        """Every name that the body binds."""
        return assigned_names(self.node.body)

    def location(self, node: ast.AST) -> Location:
        """Return the line and column of a node in the user's file."""
        line = getattr(node, "lineno", self.first_line)
        column = getattr(node, "col_offset", 0)
        text = self.line(line)
        # `ast` counts UTF-8 bytes, a reader counts characters
        return Location(line, len(text.encode()[:column].decode(errors="ignore")))

    def line(self, number: int) -> str:
        """Return the text of a line of the file, or an empty string outside the function."""
        offset = number - self.first_line
        return self.lines[offset] if 0 <= offset < len(self.lines) else ""

    def error(
        self, node: ast.AST | Location, message: str, hint: str = "", *, kind: type[KernelError] = KernelError
    ) -> KernelError:
        """Return (not raise) an error located at a node of this function."""
        where = node if isinstance(node, Location) else self.location(node)
        return kind(
            message,
            filename=self.filename,
            line=where.line,
            column=where.column,
            # a tab is one column, as in `ast`; the caret would be off under an expanded one
            source_line=self.line(where.line).replace("\t", " "),
            hint=hint,
        )

    def resolve(self, node: ast.expr) -> Captured | None:
        """Return what a free name or an attribute of a module stands for, or ``None``."""
        dotted = dotted_name(node)
        return self.captured.get(dotted) if dotted else None


def dotted_name(node: ast.expr) -> str:
    """Return ``"a.b.c"`` for a name or a chain of attributes, else an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def assigned_names(nodes: list[ast.stmt]) -> frozenset[str]:
    """Return every name that the statements bind (comprehension variables have their own scope)."""
    found: set[str] = set()
    pending: list[ast.AST] = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        pending += child_nodes(node)
    return frozenset(found)


def read_source(function: Callable[..., Any], lines: Sequence[str]) -> FunctionSource:
    """Parse a function and capture the values of its free names.

    Parameters
    ----------
    function
        The function.
    lines
        Of its file, as they were when it was decorated.

    Raises
    ------
    KernelError
        When there is no source, it is not a plain ``def``, or a free name is not one of: a
        ``@func``, an intrinsic, a module, a number, a tuple of numbers.
    """
    name = getattr(function, "__name__", repr(function))
    if isinstance(function, (staticmethod, classmethod, property)):
        kind = type(function).__name__
        raise KernelError(f"{name} is a {kind}, not a plain function", hint=f"put @{kind} above @fluxloom.func")
    if not inspect.isfunction(function) or name == "<lambda>":
        raise KernelError(f"{name} is not a plain function", hint="decorate a function defined with def")
    filename, first_line = function.__code__.co_filename, function.__code__.co_firstlineno
    if len(lines) < first_line:
        raise KernelError(
            f"the source of {name!r} is not available",
            filename=filename,
            line=first_line,
            hint="define the kernel in a file (or a notebook cell): python -c and the plain prompt keep no source",
        )
    block, node = _parse(name, filename, lines[first_line - 1 :], first_line)
    captured: dict[str, Captured] = {}
    text = tuple([line.rstrip("\n") for line in block])
    source = FunctionSource(function, name, filename, first_line, text, node, MappingProxyType(captured))
    rejected = first_rejected(node.body) or _private(function, node)
    if rejected is not None:
        raise source.error(*rejected)
    if not _is_what_runs(function, text):
        raise source.error(
            node, f"the source found for {name!r} is not the function that runs",
            f"{filename} was changed since it was imported, or another file has its name, or an import hook changes "
            "code: start Python anew, and define kernels in files that stay as they are while it runs",
        )  # fmt: skip
    captured |= _capture(source)
    return source


def _private(function: Callable[..., Any], node: ast.FunctionDef) -> tuple[ast.AST, str, str] | None:
    """Return a name in a method that Python renames, as its class body does: the text does not say what it is."""
    if "." not in function.__qualname__:
        return None
    for item in ast.walk(node):
        name = item.attr if isinstance(item, ast.Attribute) else item.id if isinstance(item, ast.Name) else ""
        if name.startswith("__") and not name.endswith("__"):
            return item, f"{name!r} is another name in each class", "begin it with a single underscore"
    return None


def _is_what_runs(function: Callable[..., Any], text: Sequence[str]) -> bool:
    """Whether the code of a function is that of its text."""
    running: CodeType = getattr(function, "__code__")
    # free variables are those of a function around it; in a class, its own name is that of what is outside
    around = f"def around({', '.join(running.co_freevars)}):\n" if text[0][:1].isspace() else ""
    if around and not getattr(function, "__qualname__").removesuffix(running.co_name).endswith("<locals>."):
        around += " class Around:\n"
    flags, whole = running.co_flags & __future__.annotations.compiler_flag, around + "\n".join(text)
    wanted = _content(running)
    # CPython calls attributes of names that the module imports in another way
    used = {name for item in (running, *_codes(running)) for name in item.co_names}
    roots = sorted(used & set(_ROOT.findall(whole)))
    for count in range(len(roots), -1, -1):
        for imported in itertools.combinations(roots, count):
            head = f"import {', '.join(imported)}\n" if imported else ""
            code = compile(head + whole, running.co_filename, "exec", flags, dont_inherit=True)
            if any(item.co_name == running.co_name and _content(item) == wanted for item in _codes(code)):
                return True
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the codes inside a code."""
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield item
            yield from _codes(item)


def _content(code: CodeType) -> tuple[object, ...]:
    """Return what a code does: places in the file are left out."""
    constants = [_content(item) if isinstance(item, CodeType) else (type(item), repr(item)) for item in code.co_consts]
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, arguments)


def _parse(
    name: str, filename: str, lines: Sequence[str], first_line: int
) -> tuple[Sequence[str], ast.FunctionDef]:
    """Return the lines of a function, which others may follow, and its syntax tree with the lines of the file."""
    for end in islice(_ends(lines), _MOST_ENDS):
        with contextlib.suppress(SyntaxError):  # inside the head, a bracket or a text: the function goes on
            node = _function(lines[:end], first_line)
            if node is None:
                break
            return lines[:end], node
    block = inspect.getblock(list(lines))  # slow
    try:
        node = _function(block, first_line)
    except SyntaxError as problem:
        raise KernelError(f"the source of {name!r} cannot be parsed: {problem.msg}", filename=filename,
                          line=first_line) from problem  # fmt: skip
    if node is None:
        raise KernelError(f"{name!r} is not a plain function", filename=filename, line=first_line,
                          hint="decorate a function defined with def")  # fmt: skip
    return block, node


def _ends(lines: Sequence[str]) -> Iterator[int]:
    """Yield where a function may end: before lines of code that are not indented more than its first."""
    indent = len(lines[0]) - len(lines[0].lstrip())
    for end, line in enumerate(lines[1:], 1):
        code = line.lstrip()
        if code and len(line) - len(code) <= indent and not code.startswith("#"):
            yield end
    yield len(lines)


def _function(lines: Sequence[str], first_line: int) -> ast.FunctionDef | None:
    """Return the function that some lines define; None if it is not a plain one."""
    indented = lines[0][:1].isspace()
    # a nested function is parsed below a dummy `if`: columns stay those of the file, unlike with dedent
    above = "\n" * (first_line - 2) + "if True:\n" if indented else "\n" * (first_line - 1)
    nodes = ast.walk(ast.parse(above + "".join(lines)))
    found = next((node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    return found if isinstance(found, ast.FunctionDef) else None


def _capture(source: FunctionSource) -> dict[str, Captured]:
    node = source.node
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    local = {argument.arg for argument in arguments} | source.assigned
    captured: dict[str, Captured] = {}
    for item in _free_references(node.body, local):
        dotted = dotted_name(item)
        if dotted not in captured:
            captured[dotted] = _classify(source, item, dotted)
    return captured


def _free_references(body: list[ast.stmt], local: set[str]) -> list[ast.expr]:
    """Return names and whole attribute chains that are not rooted in a local name."""
    found: list[ast.expr] = []

    def visit(node: ast.AST, hidden: frozenset[str]) -> None:
        if isinstance(node, ast.Attribute) and (dotted := dotted_name(node)):
            root = dotted.partition(".")[0]
            if root not in local and root not in hidden:
                found.append(node)
            return
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id not in local and node.id not in hidden:
                found.append(node)
            return
        if isinstance(node, ast.AnnAssign):
            visit_all([node.target, *([node.value] if node.value else [])], hidden)  # the annotation is not run
            return
        if isinstance(node, ast.ListComp):
            hidden |= {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        visit_all(child_nodes(node), hidden)

    def visit_all(nodes: list[Any], hidden: frozenset[str]) -> None:
        for child in nodes:
            visit(child, hidden)

    visit_all(list(body), frozenset())
    return found


def _lookup(source: FunctionSource, node: ast.expr, name: str) -> object:
    function = source.function
    code = getattr(function, "__code__")
    closure = dict(zip(code.co_freevars, getattr(function, "__closure__") or (), strict=True))
    outer = getattr(function, "__qualname__", name).rpartition(".")[0]
    is_method = outer != "" and not outer.endswith("<locals>")  # whose name stands for something else in its body
    if name == source.name and not (name in closure or name in source.parameter_names or is_method):
        raise source.error(node, f"{name!r} calls itself: recursion is not part of the kernel language",
                           "write a bounded loop")  # fmt: skip
    if name in closure:
        try:
            return closure[name].cell_contents
        except ValueError:
            raise source.error(node, f"{name!r} has no value yet", "define it before the kernel") from None
    names: dict[str, Any] = getattr(function, "__globals__")
    if name in names:
        return names[name]
    if hasattr(builtins, name):
        return getattr(builtins, name)
    near = did_you_mean(name, [*source.parameter_names, *sorted(source.assigned), *names])
    raise source.error(
        node, f"{name!r} is not defined{near}",
        "a kernel takes its names when it is defined: define helpers and constants above it",
    )  # fmt: skip


def static_member(kind: type, name: str) -> Any:
    """Return what a class has under a name, without asking it; a static method as its function."""
    found = inspect.getattr_static(kind, name, None)
    return found.__func__ if isinstance(found, staticmethod) else found


def _classify(source: FunctionSource, node: ast.expr, dotted: str) -> Captured:
    root, *attributes = dotted.split(".")
    value = _lookup(source, node, root)
    for position, attribute in enumerate(attributes):
        if is_record(type(value)) or _is_tuple_of_records(value):
            return _strategy(source, node, ".".join([root, *attributes[:position]]), value, attributes[position:])
        method = static_member(value, attribute) if isinstance(value, type) else None
        if isinstance(method, Helper):
            value = method  # a method, with its record as the first argument
            continue
        if not isinstance(value, ModuleType):
            raise source.error(node, f"attribute access on {root!r} is not part of the kernel language",
                               "only attributes of modules (math.sqrt, np.pi) can be used")  # fmt: skip
        if not hasattr(value, attribute):
            raise source.error(
                node, f"module {value.__name__!r} has no {attribute!r}{did_you_mean(attribute, dir(value))}"
            )
        value = getattr(value, attribute)
    if isinstance(value, (Helper, ModuleType)):
        return value
    intrinsic = intrinsics.find(value)
    if intrinsic is not None:
        return intrinsic
    constant = number(value)
    if constant is not None:
        return constant
    if isinstance(value, tuple):
        array = constant_array(dotted, value)
        if array is not None:
            return array
    if isinstance(value, type) and is_record(value):
        return value
    if is_record(type(value)) or _is_tuple_of_records(value):
        return _strategy(source, node, dotted, value, [])
    raise _unusable(source, node, dotted, value)


def _is_tuple_of_records(value: object) -> bool:
    return isinstance(value, tuple) and any(isinstance(item, Helper) or is_record(type(item)) for item in value)


def _strategy(source: FunctionSource, node: ast.expr, dotted: str, value: Any, attributes: list[str]) -> Captured:
    """Return a record of the module, or what is in it: all of it is as it was at the decoration."""
    try:
        for k, item in enumerate(value if isinstance(value, tuple) else (value,)):
            check_strategy(f"{dotted}[{k}]" if isinstance(value, tuple) else dotted, item)
        found: Value = strategy_value(dotted.replace(".", "_"), value, run_time=False)
        for attribute in attributes:
            if not isinstance(found, RecordValue):
                raise RecordProblem(f"attribute access on {dotted!r} is not part of the kernel language")
            dotted, found = f"{dotted}.{attribute}", member(found, attribute)
    except RecordProblem as problem:
        raise source.error(node, problem.message, problem.hint) from None
    assert isinstance(found, Known)
    return found


def _unusable(source: FunctionSource, node: ast.expr, dotted: str, value: object) -> KernelError:
    if isinstance(value, KernelMarker):
        return source.error(node, f"{dotted!r} is a kernel: a kernel cannot call another",
                            "make the shared part a @func")  # fmt: skip
    if isinstance(value, (list, dict, set, np.ndarray)):
        return source.error(
            node, f"{dotted!r} is a mutable {type(value).__name__} defined outside the kernel",
            "use a tuple of numbers, or pass it as a keyword-only Const[list[float]] parameter",
        )  # fmt: skip
    if value is print:
        return source.error(node, "print is not part of the kernel language",
                            "run the kernel on the 'reference' device to debug it")  # fmt: skip
    if inspect.isfunction(value):
        return source.error(node, f"{dotted!r} is an ordinary Python function", "decorate it with @fluxloom.func")
    if value is super:
        return source.error(node, "super is not part of the kernel language", "name the class: Base.method(self, ...)")
    if isinstance(value, type) and issubclass(value, tuple) and value is not tuple:
        return source.error(node, f"{dotted!r} is no record", "declare it @dataclass(frozen=True)")
    if dataclasses.is_dataclass(value):
        return source.error(node, f"{dotted!r} is a dataclass that is not frozen", "declare it @dataclass(frozen=True)")
    return source.error(
        node, f"{dotted!r} ({type(value).__name__}) cannot be used in a kernel",
        "a kernel uses its parameters, @func helpers, math intrinsics and numeric constants only",
    )  # fmt: skip
