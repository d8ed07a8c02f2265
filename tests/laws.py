"""Numbers of the laws of the house: circles, long files, wide functions, lines, docstrings, types, equations.

They were not kept from the start, so that the numbers of today are stored in `laws.toml` and may only get better:
fall, or rise where more is better. `test_laws.py` holds them to it.

    python -m tests.laws            # what is measured, what is allowed
    python -m tests.laws --all      # and which modules, files and functions these are
    python -m tests.laws --lower    # write what is better than it was
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.source_tree import LABORATORY, ROOT, imports_of, read_package, walk

STORED = Path(__file__).resolve().parent / "laws.toml"
FILE_LINES, PARAMETERS = 800, 12

LITERAL, OPERATOR = re.compile(r"``(.+?)``|:math:`(.+?)`", re.DOTALL), re.compile(r"[=+*/<>^]| - ")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Law:
    """One number: its name in `laws.toml`, and how it may change.

    Attributes
    ----------
    name
        Its key.
    more_is_better
        Whether it may only rise.
    slack
        By how much it may be better than stored before the test asks to store it: lines come and go with every change.
    """

    name: str
    more_is_better: bool = False
    slack: float = 0.0


LAWS = (
    Law("modules_in_circles"),
    Law("largest_circle"),
    Law("files_over_800_lines"),
    Law("functions_over_12_parameters"),
    Law("code_lines", slack=500.0),
    Law("documented_percent", more_is_better=True, slack=0.5),
    Law("typed_percent", more_is_better=True, slack=0.5),
    Law("equations_percent", more_is_better=True, slack=0.5),
)


@dataclass
class Count:
    """What is found in the functions of the package; those that are device code have equations, and count apart."""

    public: int = 0
    documented: int = 0
    arguments: int = 0
    typed: int = 0
    device: int = 0
    equations: int = 0
    wide: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Measured:
    """The numbers by the names of the laws, and the places behind them."""

    numbers: Mapping[str, float]
    circles: list[list[str]]
    places: list[str]


def measure(sources: Mapping[str, str], packages: frozenset[str]) -> Measured:
    """Return the numbers of a package.

    Parameters
    ----------
    sources
        The text of each module by its name.
    packages
        Which of them are packages.
    """
    modules, count, code, big = frozenset(sources), Count(), 0, []
    graph: dict[str, set[str]] = {}
    for name, text in sources.items():
        tree = ast.parse(text, filename=name)
        nodes = walk(tree)
        code += code_lines(text, nodes)
        if (lines := text.count("\n")) > FILE_LINES:
            big.append(f"{name}: {lines} lines")
        count_functions(name, nodes, count)
        found = imports_of(name, text, tree, name in packages, modules)
        graph[name] = {item.target for item in found} & modules - {name}
    circles = sorted((sorted(group) for group in components(graph) if len(group) > 1), key=len, reverse=True)
    numbers = {
        "modules_in_circles": sum(map(len, circles)),
        "largest_circle": max(map(len, circles), default=0),
        "files_over_800_lines": len(big),
        "functions_over_12_parameters": len(count.wide),
        "code_lines": code,
        "documented_percent": round(100 * count.documented / max(count.public, 1), 1),
        "typed_percent": round(100 * count.typed / max(count.arguments, 1), 1),
        "equations_percent": round(100 * count.equations / max(count.device, 1), 1),
    }
    return Measured(numbers, circles, big + count.wide + count.plain)


def code_lines(text: str, nodes: Sequence[ast.AST]) -> int:
    """Return the number of lines that hold code: no blank ones, no comments, no docstrings.

    Lines of a string are code, whatever they look like.
    """
    places = (line.strip() for line in text.splitlines())
    lines = {number for number, line in enumerate(places, 1) if line and not line.startswith("#")}
    prose: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and (node.end_lineno or 0) > node.lineno:
            lines |= set(range(node.lineno, (node.end_lineno or 0) + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | Function) and documented(node):
            first = node.body[0]
            prose |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines - prose)


def documented(node: ast.Module | ast.ClassDef | Function) -> bool:
    """Whether a module, class or function has a docstring."""
    return bool(ast.get_docstring(node, clean=False))


def count_functions(name: str, nodes: Sequence[ast.AST], count: Count) -> None:
    """Add the functions of a module; public ones are those without an underscore, inner ones too."""
    for node in nodes:
        if not isinstance(node, Function):
            continue
        if device_code(node):
            count.device += 1
            if has_equation(ast.get_docstring(node) or ""):
                count.equations += 1
            else:
                count.plain.append(f"{name}:{node.lineno}: {node.name} has no equation")
            continue
        every = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        given = [argument for argument in every if argument.arg not in ("self", "cls")]
        if len(given) > PARAMETERS:
            count.wide.append(f"{name}:{node.lineno}: {node.name} has {len(given)} parameters")
        if not node.name.startswith("_"):
            count.public += 1
            count.documented += documented(node)
            count.arguments += len(given)
            count.typed += sum(argument.annotation is not None for argument in given)


def device_code(node: Function) -> bool:
    """Whether a function is a kernel, or one that kernels call: its parameters are data."""
    words = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any("kernel" in word or word.split(".")[-1] == "func" for word in words)


def has_equation(text: str) -> bool:
    """Whether a docstring has a formula: set apart, or inline, in a literal with an operator or an arrow."""
    return ".. math::" in text or any(OPERATOR.search("".join(found)) for found in LITERAL.findall(text))


def components(graph: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """Yield the strongly connected components of a graph (R. Tarjan, *SIAM J. Computing* 1 (1972) 146-160)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    place = stack.index(node)
                    yield stack[place:]
                    del stack[place:]


def laboratory_lines(numbers: Mapping[str, float]) -> list[str]:
    """Return what is told of the laboratory, which has no ceiling: it is in no run of a user."""
    return [f"{'lab_' + name:<30} {value:>8g}" for name, value in numbers.items()]


# --------------------------------------------------------------------------------------------- the ratchet


@dataclass(frozen=True)
class Allowance:
    """What is stored: a number a law, and what it may be worse by, each with its reason."""

    numbers: Mapping[str, float]
    worse: Mapping[str, float]

    def of(self, law: Law) -> float:
        """Return what a number may be."""
        by = self.worse.get(law.name, 0.0)
        return self.numbers[law.name] + (-by if law.more_is_better else by)


def read_allowance(text: str) -> Allowance:
    """Return what a text as that of `laws.toml` allows; a change for the worse needs a reason.

    Raises
    ------
    ValueError
        For a law that is not there, or one that nobody knows, a step that is none, or a reason that says nothing.
    """
    given = tomllib.loads(text)
    names, worse = {law.name for law in LAWS}, dict[str, float]()
    if wrong := set(given["numbers"]) ^ names:
        raise ValueError(f"[numbers]: {', '.join(sorted(wrong))}: missing or unknown")
    for entry in given.get("worse", []):
        if entry["law"] not in names or entry["by"] <= 0 or len(str(entry["reason"]).split()) < 3:
            raise ValueError(f"worse: {entry}: needs a law, a number above 0, and a reason in words")
        worse[entry["law"]] = worse.get(entry["law"], 0.0) + entry["by"]
    return Allowance(given["numbers"], worse)


def complaints(numbers: Mapping[str, float], allowance: Allowance) -> list[str]:
    """Return what is worse than allowed, and what is so much better that it should be stored."""
    found = []
    for law in LAWS:
        here, limit = numbers[law.name], allowance.of(law)
        better = round((here - limit) * (1 if law.more_is_better else -1), 6)
        if better < 0:
            found.append(
                f"{law.name} is {here:g}, {limit:g} is allowed: mend it, or say why in worse of tests/laws.toml: "
                f'{{ law = "{law.name}", by = {-better:g}, reason = "..." }},'
            )
        elif better > law.slack:
            found.append(f"{law.name} is {here:g}, better than {limit:g}: store it with python -m tests.laws --lower")
    return found


def lowered(text: str, numbers: Mapping[str, float]) -> str:
    """Return the text of `laws.toml` with every number that is better stored; reasons that it has overtaken go."""
    allowance = read_allowance(text)
    for law in LAWS:
        here, stored = numbers[law.name], allowance.numbers[law.name]
        sign = -1 if law.more_is_better else 1
        if sign * (here - allowance.of(law)) >= 0:
            continue
        by = allowance.worse.get(law.name, 0.0)
        if sign * (here - stored) <= 0:
            text, by = re.sub(rf'^ *\{{ law = "{law.name}",.*\n', "", text, flags=re.MULTILINE), 0.0
        text = re.sub(rf"^{law.name} = .*$", f"{law.name} = {here - sign * by:g}", text, flags=re.MULTILINE)
    return text


def main(words: list[str] | None = None) -> int:
    """Print the numbers; return 1 where one is worse than allowed or should be stored."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="list circles, files and functions")
    parser.add_argument("--lower", action="store_true", help="store what is better")
    given = parser.parse_args(words)
    measured = measure(*read_package(ROOT))
    if given.lower:
        STORED.write_text(lowered(STORED.read_text(encoding="utf-8"), measured.numbers), encoding="utf-8")
    allowance = read_allowance(STORED.read_text(encoding="utf-8"))
    for law in LAWS:
        limit = "at least" if law.more_is_better else "at most"
        print(f"{law.name:<30} {measured.numbers[law.name]:>8g}   {limit} {allowance.of(law):g}")
    print(*laboratory_lines(measure(*read_package(ROOT, LABORATORY)).numbers), sep="\n")
    if given.all:
        circles = (f"circle of {len(circle)}: {', '.join(circle)}" for circle in measured.circles)
        print(*circles, *measured.places, sep="\n")
    found = complaints(measured.numbers, allowance)
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
