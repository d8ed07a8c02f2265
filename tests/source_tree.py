"""Read the package as syntax trees: its modules, and what each of them imports."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "fluxloom"
LABORATORY = "fluxloom_lab"


@dataclass(frozen=True)
class Import:
    """One imported module name, where, and whether importing the module executes it."""

    target: str
    line: int
    when: str  # "import time", "in a function", "for types"


def module_name(path: Path, root: Path) -> str:
    """Return the dotted name of a source file below ``root``."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_package(root: Path, package: str = PACKAGE) -> tuple[dict[str, str], frozenset[str]]:
    """Return the source of every module of a package, by default of Fluxloom, and which of them are packages."""
    files = {module_name(path, root): path for path in sorted((root / package).rglob("*.py"))}
    packages = frozenset(name for name, path in files.items() if path.name == "__init__.py")
    return {name: path.read_text(encoding="utf-8") for name, path in files.items()}, packages


@functools.lru_cache(maxsize=1)  # all rules look at one tree before the next is read
def walk(tree: ast.AST) -> Sequence[ast.AST]:
    """Return a node and all below it that have fields: as `ast.walk`, but quicker and in no order."""
    found, pending = [], [tree]
    while pending:
        node = pending.pop()
        found.append(node)
        for value in node.__dict__.values():
            if value.__class__ is list:
                pending += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                pending.append(value)
    return found


def imports_of(name: str, text: str, tree: ast.Module, is_package: bool, modules: frozenset[str]) -> list[Import]:
    """Return everything a module imports, ``importlib.import_module("x")`` included."""
    package = name if is_package else name.rpartition(".")[0]
    calls = "import_module" in text or "__import__" in text
    found: list[Import] = []

    def visit(node: ast.AST, when: str) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            found.extend(Import(target, node.lineno, when) for target in targets(node, package, modules))
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            for child in node.body:
                visit(child, "for types")
            for child in node.orelse:
                visit(child, when)
            return
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node) if calls else statements(node):
            visit(child, "in a function" if inside and when == "import time" else when)

    visit(tree, "import time")
    return found


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in a node, those of an ``except`` clause or a ``case`` too."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        inside = getattr(node, part, ())
        yield from inside if isinstance(inside, list) else ()


def targets(
    node: ast.Import | ast.ImportFrom | ast.Call, package: str, modules: frozenset[str]
) -> Iterator[str]:
    """Yield the absolute module names that one node imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            full = f"{base}.{alias.name}"
            yield full if full in modules else base
    elif getattr(node.func, "attr", getattr(node.func, "id", "")) in ("import_module", "__import__") and node.args:
        argument = node.args[0]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value
        else:
            yield "?"
