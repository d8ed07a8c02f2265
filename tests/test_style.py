"""The laws of style that a linter does not check: sizes, docstrings, no hidden state, no swallowed errors.

Each rule is one generator over a parsed module; the tests at the end show that each can fail.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from textwrap import dedent

import pytest

from tests.source_tree import LABORATORY, PACKAGE, ROOT, walk

FOLDERS = (ROOT / PACKAGE, ROOT / LABORATORY)
SOURCES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))
NATIVE = sorted(path for suffix in ("c", "h") for folder in FOLDERS for path in folder.rglob(f"*.{suffix}"))

MAY_PRINT = tuple(f"{PACKAGE}/{room}/" for room in ("cli", "cases", "machine")) + tuple(
    f"{LABORATORY}/{room}/" for room in ("cli", "peers")  # peers run in interpreters of others
)

FILE_LINES, FUNCTION_LINES = 800, 60  # of a file about 150 are usual, and 400 a reason to look again

MUTABLE = ("list", "dict", "set", "bytearray", "defaultdict", "OrderedDict", "Counter", "deque")
MUTATORS = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft",
    "remove", "reverse", "setdefault", "sort", "update",
})  # fmt: skip

Function = ast.FunctionDef | ast.AsyncFunctionDef
Found = Iterator[tuple[int, str]]


# ------------------------------------------------------------------------------------------ the rules


def long_functions(tree: ast.Module) -> Found:
    """Yield functions of more than 60 lines, their docstring and decorators not counted."""
    for node in walk(tree):
        if isinstance(node, Function):
            lines = span(node)
            if ast.get_docstring(node, clean=False) is not None:
                lines -= span(node.body[0])
            if lines > FUNCTION_LINES:
                yield node.lineno, f"function {node.name} has {lines} lines; at most {FUNCTION_LINES}"


def span(node: ast.stmt) -> int:
    """Return the number of lines of a statement."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def missing_docstrings(tree: ast.Module) -> Found:
    """Yield public functions, classes and methods without a docstring."""
    pending: list[ast.AST] = [tree]
    while pending:
        for node in ast.iter_child_nodes(pending.pop()):
            if not isinstance(node, Function | ast.ClassDef):
                pending += [node] if isinstance(node, ast.If | ast.Try | ast.ExceptHandler) else []
                continue
            if node.name.startswith("_") or exempt(node):
                continue
            if ast.get_docstring(node) is None:
                yield node.lineno, f"public {node.name} has no docstring"
            if isinstance(node, ast.ClassDef):
                pending.append(node)


def exempt(node: Function | ast.ClassDef) -> bool:
    """Whether another definition of the same name carries the docstring."""
    words = [ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list]
    return any(word in ("overload", "setter", "deleter") for word in words)


def module_state(tree: ast.Module) -> Found:
    """Yield module-level lists, dicts and sets that are no constants, and ``global`` statements."""
    constants = set()
    for node in module_level(tree):
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value is None or not mutable(value):
            continue
        bound = node.targets if isinstance(node, ast.Assign) else [node.target]
        for name in [ast.unparse(target) for target in bound]:
            if name.isupper():
                constants.add(name)
            elif name != "__all__":
                yield node.lineno, f"module-level mutable {name}; a constant table has an UPPER_CASE name"
    for node in walk(tree):
        if isinstance(node, ast.Global):
            yield node.lineno, f"global {', '.join(node.names)}: modules hold no state"
        elif (name := changed(node)) in constants:
            yield node.lineno, f"changes the constant table {name}"


def module_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that run when the module is imported, those in ``if`` and ``try`` too."""
    pending: list[ast.AST] = [tree]
    while pending:
        for node in ast.iter_child_nodes(pending.pop(0)):
            if isinstance(node, ast.stmt):
                yield node
            if isinstance(node, ast.If | ast.Try | ast.ExceptHandler | ast.With | ast.For | ast.While):
                pending.append(node)


def mutable(value: ast.expr) -> bool:
    """Whether an expression makes a new list, dict or set."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in MUTABLE
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def changed(node: ast.AST) -> str:
    """Return the name whose value a node changes in place, or an empty string."""
    value: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        value = node.func.value
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        value = node.value
    elif isinstance(node, ast.AugAssign):
        value = node.target
    return value.id if isinstance(value, ast.Name) else ""


def swallowed_errors(tree: ast.Module) -> Found:
    """Yield bare ``except:`` and every way to ignore all errors."""
    for node in walk(tree):
        if isinstance(node, ast.ExceptHandler):
            if node.type is None:
                yield node.lineno, "bare except: name the errors"
            elif all_errors(node.type) and all(does_nothing(statement) for statement in node.body):
                yield node.lineno, "ignores every error: name the errors"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "suppress":
            yield from ((node.lineno, "suppresses every error") for kind in node.args if all_errors(kind))


def all_errors(node: ast.expr) -> bool:
    """Whether an ``except`` clause catches everything."""
    types = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(ast.unparse(kind) in ("Exception", "BaseException") for kind in types)


def does_nothing(node: ast.stmt) -> bool:
    """Whether a statement is ``pass``, ``continue`` or a lone constant."""
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Pass | ast.Continue)


def prints(tree: ast.Module) -> Found:
    """Yield calls of ``print``."""
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield node.lineno, "print() outside cli/: use the log, or return the text"


def file_length(lines: int) -> str:
    """Return what is wrong with the length of a file, or an empty string."""
    return f"{lines} lines; at most {FILE_LINES}" if lines > FILE_LINES else ""


# --------------------------------------------------------------------------------- the package itself

RULES: dict[str, Callable[[ast.Module], Found]] = {
    "functions": long_functions,
    "docstrings": missing_docstrings,
    "state": module_state,
    "errors": swallowed_errors,
    "print": prints,
}


def test_package_keeps_the_rules() -> None:
    """Every module keeps every rule; modules are parsed once, which takes longer than all rules."""
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == {PACKAGE, LABORATORY}, "no modules found"
    found = []
    for path in SOURCES:
        name = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=name)
        for rule, check in RULES.items():
            if rule != "print" or not name.startswith(MAY_PRINT):
                found += [f"{name}:{line}: {text}" for line, text in check(tree)]
    assert not found, "\n".join(found)


def test_rooms_have_doors() -> None:
    """Each room of the package says what is in it, in which order to read, and names files and rooms that are there."""
    lost = []
    for path in sorted((ROOT / PACKAGE).glob("*/**/__init__.py")):
        room, text = path.parent, ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if "Read " not in text:
            lost.append(f"{room.name}: what is in it, and what to read first")
        for name in re.findall(r"`([a-z_]+)`", text) if "Read " in text else ():
            places = [room, *room.glob("*/")]
            if not any((place / name).is_dir() or (place / f"{name}.py").is_file() for place in places):
                lost.append(f"{room.name}: there is no {name}")
    assert not lost, "\n".join(lost)


def test_files_are_short() -> None:
    """No file grows past the limit."""
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in SOURCES + NATIVE
    }
    found = [f"{name}: {text}" for name, lines in lengths.items() if (text := file_length(lines))]
    assert not found, "\n".join(found)


# ----------------------------------------------------------------------------- the checker can fail


def lines_of(count: int) -> str:
    """Return a function of ``count`` lines, and a docstring of 50 more."""
    doc = '    """' + "\n" * 49 + '    """'
    return "\n".join(["def f():", doc, *["    x = 1"] * (count - 1)])


@pytest.mark.parametrize(
    ("rule", "source", "expected"),
    [
        ("functions", lines_of(61), "function f has 61 lines"),
        ("docstrings", "def f(): ...", "public f"),
        ("docstrings", "class A:\n    'Text.'\n    def f(self): ...", "public f"),
        ("docstrings", "class A: ...", "public A"),
        ("docstrings", "class A:\n    'Text.'\n    @property\n    def f(self): ...", "public f"),
        ("docstrings", "try:\n    import x\nexcept ImportError:\n    def f(): ...", "public f"),
        ("state", "cache = {}", "module-level mutable cache"),
        ("state", "seen: set[int] = set()", "module-level mutable seen"),
        ("state", "if True:\n    names = [n for n in range(3)]", "module-level mutable names"),
        ("state", "counts = collections.defaultdict(int)", "module-level mutable counts"),
        ("state", "TABLE = {}\ndef f():\n    TABLE['x'] = 1", "changes the constant table TABLE"),
        ("state", "TABLE: Final = []\ndef f():\n    TABLE.append(1)", "changes the constant table TABLE"),
        ("state", "TABLE = {1}\nTABLE |= {2}", "changes the constant table TABLE"),
        ("state", "TABLE = {1: 2}\ndel TABLE[1]", "changes the constant table TABLE"),
        ("state", "count = 0\ndef f():\n    global count\n    count += 1", "global count"),
        ("errors", "try:\n    f()\nexcept:\n    raise", "bare except"),
        ("errors", "try:\n    f()\nexcept Exception:\n    pass", "ignores every error"),
        ("errors", "try:\n    f()\nexcept (ValueError, BaseException):\n    ...", "ignores every error"),
        ("errors", "with contextlib.suppress(Exception):\n    f()", "suppresses every error"),
        ("print", "def f():\n    print(1)", "print() outside cli/"),
    ],
)
def test_rule_finds(rule: str, source: str, expected: str) -> None:
    """Each rule reports its breach once."""
    found = [text for _, text in RULES[rule](ast.parse(dedent(source)))]
    assert len(found) == 1, found
    assert expected in found[0]


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("functions", lines_of(60)),
        ("docstrings", "def _f(): ...\nclass _A:\n    def f(self): ..."),
        ("docstrings", "class A:\n    'Text.'\n    def __init__(self): ...\n    def _f(self): ..."),
        ("docstrings", "def f():\n    'Text.'\n    def inner(): ...\n    return inner"),
        ("docstrings", "@overload\ndef f(x: int) -> int: ...\ndef f(x):\n    'Text.'"),
        ("state", "__all__ = ['f']\nTABLE = {'a': 1}\n_ALSO: Final = [1]\nONE = 1\nx = (1, 2)"),
        ("state", "def f():\n    cache = {}\n    cache['x'] = 1"),
        ("state", "TABLE = {'a': 1}\ndef f(key):\n    return TABLE[key]"),
        ("errors", "try:\n    f()\nexcept ValueError:\n    pass"),
        ("errors", "try:\n    f()\nexcept Exception as error:\n    raise RuntimeError('x') from error"),
        ("print", "def f(log):\n    log.print(1)"),
    ],
)
def test_rule_allows(rule: str, source: str) -> None:
    """What the rules permit passes."""
    assert not list(RULES[rule](ast.parse(dedent(source))))


def test_length_of_files() -> None:
    """The limit is 800 lines."""
    assert not file_length(FILE_LINES)
    assert file_length(FILE_LINES + 1)
