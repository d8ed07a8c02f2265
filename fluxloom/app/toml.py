"""TOML files with the line of every key, so that an error can point at it."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.core.text import without_mark

__all__ = ["Document", "key_lines", "read_toml", "with_settings"]

_HEADER = re.compile(r"^\s*\[{1,2}\s*(?P<keys>[^\[\]]+?)\s*\]{1,2}\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"""^\s*(?P<keys>(?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_WORD = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_DOTTED = re.compile(rf"(?:{_WORD.pattern})(?:\s*\.\s*(?:{_WORD.pattern}))*")
_FENCES = ('"""', "'''")
_WHERE = re.compile(r"\s*\(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")

Keys = tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A parsed TOML file.

    Attributes
    ----------
    path
        The file.
    data
        Its tables.
    lines
        1-based line of each key, by its path of names; tables are listed too.
    given
        Keys that the command line has given instead.
    """

    path: Path
    data: Mapping[str, Any]
    lines: Mapping[Keys, int]
    given: frozenset[Keys] = frozenset()

    def where(self, keys: Keys) -> str:
        """Return ``"file:line"`` of a key, of the table that should hold it, or the file alone."""
        if any(keys[:n] in self.given for n in range(1, len(keys) + 1)):
            return "--set"
        number = self.line(keys)
        return f"{self.path}:{number}" if number else str(self.path)

    def line(self, keys: Keys) -> int:
        """Return the line of a key or of the table that should hold it; 0 when neither is there."""
        return next((self.lines[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in self.lines), 0)


def read_toml(path: str | Path) -> Document:
    """Read a TOML file.

    Raises
    ------
    CaseError
        When the file is missing, is not text, or breaks the rules of TOML; with the line and what it says.
    """
    path = Path(path)
    try:
        text = without_mark(path.read_bytes()).decode("utf-8")
    except FileNotFoundError:
        raise CaseError(f"{path}: no such case file{_neighbours(path)}") from None
    except IsADirectoryError:
        raise CaseError(f"{path}: is a directory; name a case file (*.toml)") from None
    except UnicodeDecodeError as error:
        raise CaseError(f"{path}: not a text file (byte {error.start} is not UTF-8); a case file is TOML") from None
    except OSError as error:
        raise CaseError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CaseError(_syntax_error(path, text, error)) from None
    return Document(path, data, key_lines(text))


def with_settings(document: Document, settings: Sequence[str]) -> Document:
    """Return a document with other values of some keys, each as ``"flow.alpha=4"``.

    The value is one of TOML; what is none is a text, so that quotes may be left out.

    Raises
    ------
    CaseError
        If a setting is no key with a value, or a part of its key is no table.
    """
    data, given = copy.deepcopy(dict(document.data)), set(document.given)
    for setting in settings:
        dotted, between, text = setting.partition("=")
        keys = _names(dotted)
        if not between or not keys or not _DOTTED.fullmatch(dotted.strip()):
            raise CaseError(f"--set {setting}: a key and a value are wanted, as in --set flow.alpha=4")
        try:
            value = tomllib.loads(f"value = {text.strip()}")["value"]
        except tomllib.TOMLDecodeError:
            value = text.strip()
        table: Any = data
        for n, name in enumerate(keys[:-1], 1):
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise CaseError(f"--set {setting}: {'.'.join(keys[:n])} is no table in {document.path}")
        table[keys[-1]] = value
        given.add(keys)
    return Document(document.path, data, document.lines, frozenset(given))


def key_lines(text: str) -> dict[Keys, int]:
    """Return the 1-based line of every key and table header of a valid TOML text.

    Keys inside inline tables are found at the line of the key that holds the table.
    """
    found: dict[Keys, int] = {}
    table: Keys = ()
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            fence = "" if fence in line else fence
            continue
        header = _HEADER.match(line)
        assignment = _ASSIGNMENT.match(line)
        if header:
            table = _names(header["keys"])
            _note(found, (), table, number)
        elif assignment:
            _note(found, table, _names(assignment["keys"]), number)
            fence = next((mark for mark in _FENCES if line.count(mark) % 2), "")
    return found


def _note(found: dict[Keys, int], table: Keys, names: Keys, number: int) -> None:
    """Keep the line of a dotted key and of the tables it opens."""
    for length in range(1, len(names) + 1):
        found.setdefault(table + names[:length], number)


def _names(dotted: str) -> Keys:
    return tuple(word.strip("\"'") for word in _WORD.findall(dotted))


def _syntax_error(path: Path, text: str, error: tomllib.TOMLDecodeError) -> str:
    """Return the message of a syntax error with the line it is in."""
    message = str(error)
    place = _WHERE.search(message)
    reason = _WHERE.sub("", message)
    lines = text.splitlines() or [""]
    line = int(place["line"]) if place and place["line"] else len(lines)
    shown = lines[line - 1] if line <= len(lines) else ""
    caret = f"\n    {' ' * (int(place['column']) - 1)}^" if place and place["column"] and shown else ""
    hint = ""
    value = shown.partition("=")[2].partition("#")[0].strip()
    if "=" in shown and re.fullmatch(r"[A-Za-z_][\w .-]*", value) and value not in ("true", "false", "inf", "nan"):
        hint = f'\nhint: text stands in quotes: "{value}"'
    return f"{path}:{line}: not valid TOML: {reason[:1].lower()}{reason[1:]}\n    {shown}{caret}{hint}"


def _neighbours(path: Path) -> str:
    """Return what to try instead of a missing file."""
    folder = path.parent
    if not folder.is_dir():
        return f"; the directory {folder} does not exist (looked from {Path.cwd()})"
    names = sorted(item.name for item in folder.glob("*.toml"))
    if not names:
        return f" (looked from {Path.cwd()})"
    more = ", ..." if len(names) > 8 else ""
    return f"{did_you_mean(path.name, names)} (there: {', '.join(names[:8])}{more})"
