"""The pages of the documentation as programs: what stands in them in Python and TOML is run as it is printed.

A page is one program: its blocks run in order, in one namespace and one folder. A block whose first line is a comment
with the name of a file is that file too. A comment of HTML before a block says what readers have, or need, besides it:

- `<!-- before`, lines of Python, `-->`: what runs first, as a mesh or a flow that the page speaks of;
- `<!-- case`, lines of TOML, `-->`: the case that this fragment and the next ones are parts of;
- `<!-- needs NAME -->`: left out where the module, or the device, is missing;
- `<!-- not run: REASON -->`.

A block of TOML is a case, which runs a few steps; a part of one, which is checked, with each line `# key = value` in it
too; or a part of a `pyproject.toml`, whose classes are those of the page. Where nothing needs CUDA, its devices are the
processor.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fluxloom.cli.main import main
from tests.conftest import MARKERS, ROOT, missing

__all__ = ["PAGES", "Block", "blocks", "cases", "run_page"]

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_PART = re.compile(r"(?ms)^<!-- (before|case|needs|not run:)\s(.*?)-->$|^```(python|toml)\n(.*?)^```$")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes
    ----------
    language
        `"python"` or `"toml"`; of comments `"before"`, `"case"`.
    text
        What is in it.
    line
        Of the page, of the first line.
    needs
        A module or device; empty: nothing.
    reason
        Why it is not run; empty: it is.
    """

    language: str
    text: str
    line: int
    needs: str = ""
    reason: str = ""


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, what runs before them included."""
    text, found, said = page.read_text(encoding="utf-8"), [], {"needs": "", "not run:": ""}
    for part in _PART.finditer(text):
        word, comment, language, code = part.groups()
        if word in said:
            said[word] = comment.strip()
            continue
        start = part.start(2) if word else part.start(4)
        found.append(Block(word or language, comment if word else code, text.count("\n", 0, start), *said.values()))
        if language:
            said = dict.fromkeys(said, "")
    return found


def cases(page: Path) -> dict[str, str]:
    """Return the blocks of a page that are files, by their names."""
    named = [(re.match(r"# (\S+\.(?:py|toml))\n", block.text), block.text) for block in blocks(page)]
    return {name[1]: text for name, text in named if name}


def run_page(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a page in a folder; return its names."""
    name = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
    module, case = ModuleType(name), ""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(sys.modules, name, module)
    module.__file__ = f"{name}.py"
    known, lines = set(sys.modules), [""] * page.read_text(encoding="utf-8").count("\n")
    for path, text in cases(page).items():
        Path(path).write_text(text, encoding="utf-8")
    try:
        for block in blocks(page):
            if block.reason or (block.needs and _absent(block.needs)):
                continue
            if block.language == "case":
                case = block.text
            elif block.language == "toml":
                _run_toml(block.text, case)
            else:  # at its line of the page, where kernels find their source
                text = block.text if block.needs == "cuda" else re.sub(r'"cuda(:\d)?"', '"cpu"', block.text)
                code = text.splitlines()
                lines[block.line : block.line + len(code)] = code
                Path(module.__file__).write_text("\n".join(lines) + "\n", encoding="utf-8")
                whole = compile("\n" * block.line + text, str(folder / module.__file__), "exec")
                exec(whole, module.__dict__)
    finally:
        for other in set(sys.modules) - known:
            if str(getattr(sys.modules[other], "__file__", "")).startswith(str(folder)):
                del sys.modules[other]
    return module.__dict__


def _absent(name: str) -> bool:
    return bool(missing(name)) if name in MARKERS else find_spec(name) is None


def _run_toml(text: str, case: str) -> None:
    table = tomllib.loads(text)
    if "project" in table:
        for entries in table["project"]["entry-points"].values():
            for place in entries.values():
                module, _, attribute = place.removeprefix("my_package.").partition(":")
                assert hasattr(importlib.import_module(module), attribute), place
    elif "case" in table:
        Path("page.toml").write_text(text, encoding="utf-8")
        main(["run", "page.toml", "--iterations", "3", "--no-picture", "--overwrite"])
        record = json.loads(Path(f"results/{table['case']['name']}/run.json").read_text(encoding="utf-8"))
        assert record["status"].startswith(("end reached", "converged", "not converged")), record
    else:
        assert case, f"of which case is this a part?\n{text}"
        for variant in _variants(re.sub(r"cuda(:\d)?", "cpu", text)):
            whole = _merged(tomllib.loads(case), tomllib.loads(variant))
            Path("page.toml").write_text(_toml(whole), encoding="utf-8")
            assert main(["check", "page.toml", *(["--no-build"] if "gmsh" in whole["mesh"] else [])]) == 0, variant


def _variants(text: str) -> list[str]:
    """Return the text, and for each line `# key = value` one with it in place of what its table has of that key."""
    lines, found = text.splitlines(), [text]
    for number, line in enumerate(lines):
        commented = re.match(r"# ?(([\w.]+) = .*)", line)
        if commented:
            heads = [n for n, other in enumerate(lines) if other.startswith("[")]
            end = min((n for n in heads if n > number), default=len(lines))
            table = range(max((n for n in heads if n < number), default=0), end)
            kept = [n not in table or not other.startswith(f"{commented[2]} = ") for n, other in enumerate(lines)]
            found.append("\n".join(commented[1] if n == number else lines[n] for n in range(len(lines)) if kept[n]))
    return found


def _merged(old: Any, new: Any) -> Any:
    """Return a table with the keys of another in place of its own."""
    if not (isinstance(old, dict) and isinstance(new, dict)) or "type" in new or "shape" in new:
        return new
    return old | {key: _merged(old.get(key), value) for key, value in new.items()}


def _toml(table: dict[str, Any]) -> str:
    """Return the text of a file with a table of tables."""
    return "\n".join(f"{name} = {_value(value)}" for name, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_value(inner)}" for name, inner in value.items()) + "}"
    return "[" + ", ".join(map(_value, value)) + "]" if isinstance(value, list) else json.dumps(value)
