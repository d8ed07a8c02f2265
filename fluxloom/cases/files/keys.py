"""The keys of case files, as their models have them: table, key, what it may be, default, and what it is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fluxloom.cases.files.case import CaseModel
from fluxloom.cases.files.errors import late_table
from fluxloom.cases.files.strategy_tables import Chosen, ValueKey, member_table
from fluxloom.core.registry import Registry
from fluxloom.core.strategies import Strategy, default_of, strategy_words, written_fields

__all__ = ["Key", "KeyTable", "key_tables", "page"]

_HEAD = """# Keys of case files

Every table and key, as `fluxloom check --keys SOLVER` lists them. This page is made from the code
(`python -m fluxloom.cases.files.keys > docs/guide/keys.md`). A default of `-` means that the key may be left out and
has none. A table whose heading is `key = { type = "name" }` has the numbers of one choice of that key; `key = "name"`
alone takes their defaults.
"""

_WORDS = {bool: "true or false", int: "whole number", float: "number", str: "text", NoneType: ""}
_BOUNDS = {"gt": "> ", "ge": "≥ ", "lt": "< ", "le": "≤ "}


@dataclass(frozen=True)
class Key:
    """A key of a case file.

    Attributes
    ----------
    name
        Within its table; of several that differ by their names alone, all of them.
    values
        What it may be.
    default
        As TOML has it; empty: the key is needed, ``"-"``: it is left out.
    text
        What it is, in one line.
    """

    name: str
    values: str
    default: str
    text: str


@dataclass(frozen=True)
class KeyTable:
    """A table of a case file: its path (``boundary.NAME``), what it is, and its keys."""

    path: str
    text: str
    keys: tuple[Key, ...]


def key_tables(model: type[BaseModel], path: str = "") -> list[KeyTable]:
    """Return a table and all within it, those of members of families of strategies too.

    Parameters
    ----------
    model
        The model of a case, or of a table.
    path
        Where that is in a file.
    """
    keys: list[Key] = []
    inner: list[KeyTable] = []
    own = model.__annotations__ if issubclass(model, CaseModel) else model.model_fields
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] not in own):  # then inherited ones
        here = f"{path}.{name}" if path else name
        tables = [*_tables(field, here)]
        for place, table in tables:
            inner += key_tables(table, place)
        mark = _mark(field)
        if mark is not None:
            inner += _members(mark.family, here)
        if not tables and not _is_tag(field):
            keys.append(Key(name, _values(field), _default(field), _text(model, name)))
    keys = list(_joined(keys))
    return ([KeyTable(path, _first(model), tuple(keys))] if keys else []) + inner


def page(applications: Registry[Any]) -> str:
    """Return the page of the guide: the tables that all solvers have, then those of each that are others."""
    told: dict[KeyTable, str] = dict.fromkeys(key_tables(CaseModel), "")
    parts = [_HEAD, "## All solvers", ""]
    for table in told:
        parts += _markdown(table)
    for name in applications.names():
        application = applications[name]
        parts += [f'## `solver = "{name}"`', "", f"{application.title}.", ""]
        for table in key_tables(application.model):
            owner = told.setdefault(table, name)
            if owner == name:
                parts += _markdown(table)
            elif owner:
                parts += [f'### `[{table.path}]`', "", f'As of `solver = "{owner}"`: {table.text}', ""]
    return "\n".join(parts).rstrip() + "\n"


def _markdown(table: KeyTable) -> list[str]:
    """Return the lines of a table."""
    lines = [f"### `[{table.path}]`", "", table.text, "", "| key | values | default | |", "|---|---|---|---|"]
    for key in table.keys:
        names, default = key.name.replace(", ", "`, `"), f"`{key.default}`" if key.default else "needed"
        cells = (f"`{names}`", key.values, default, key.text)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def _joined(keys: list[Key]) -> Iterator[Key]:
    """Yield keys, those that follow each other and differ by their names alone as one."""
    for same, group in groupby(keys, key=lambda key: (key.values, key.default, key.text)):
        yield Key(", ".join(key.name for key in group), *same)


# ------------------------------------------------------------------------------------------------- tables within


def _plain(annotation: Any) -> tuple[Any, list[Any]]:
    """Return a type without its annotations, and them; without None too."""
    notes: list[Any] = []
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        notes += more
    if get_origin(annotation) in (Union, UnionType):
        rest = [item for item in get_args(annotation) if item is not NoneType]
        if len(rest) == 1:
            inner, more = _plain(rest[0])
            return inner, [*notes, *more]
    return annotation, notes


def _tables(field: FieldInfo, path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the tables that a key is, with their paths: of a name, one of several, or the members of a union."""
    annotation, _ = _plain(late_table(field) or field.annotation)
    if get_origin(annotation) is dict:
        annotation, path = _plain(get_args(annotation)[1])[0], f"{path}.NAME"
    elif get_origin(annotation) is list and _is_table(_plain(get_args(annotation)[0])[0]):
        annotation, path = _plain(get_args(annotation)[0])[0], f"[{path}]"
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    for member in members:
        table = _plain(member)[0]
        if _is_table(table):
            yield path, table


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _is_tag(field: FieldInfo) -> bool:
    """Whether a key says which of several tables this one is: the table's own text says it."""
    return field.is_required() and get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1


def _mark(field: FieldInfo) -> Chosen | None:
    """Return the mark of a key that chooses from a family of strategies."""
    notes = [*field.metadata, *_plain(field.annotation)[1]]
    return next((note for note in notes if isinstance(note, Chosen)), None)


def _members(family: type[Strategy], path: str) -> Iterator[KeyTable]:
    """Yield the numbers of each member of a family that has any."""
    for name in family.choices.names():
        for table in key_tables(member_table(family.choices[name]), path):
            yield replace(table, path=f'{path} = {{ type = "{name}" }}') if table.path == path else table


# --------------------------------------------------------------------------------------------------- their words


def _values(field: FieldInfo) -> str:
    """Return what a key may be, in words."""
    mark = _mark(field)
    if mark is not None:
        names = [*mark.family.choices.names(), *(["none"] if mark.optional else [])]
        return ", ".join(f'`"{name}"`' for name in names)
    annotation, notes = _plain(field.annotation)
    return _kind(annotation, [*field.metadata, *notes])


def _kind(annotation: Any, notes: list[Any]) -> str:
    annotation, more = _plain(annotation)
    notes = [*notes, *more]
    notes += [item for note in notes if isinstance(note, FieldInfo) for item in note.metadata]
    if (key := next((note for note in notes if isinstance(note, ValueKey)), None)) is not None:
        found = [(name, getattr(key, name)) for name in ("gt", "ge", "le")]
        bounds = ", ".join(f"{_BOUNDS[name]}{bound:g}" for name, bound in found if bound is not None)
        return f"{f'number {bounds}'.strip()}, formula in {', '.join(key.variables)}, or table"
    words = _choices(notes)
    if words:
        return ", ".join(f'`"{word}"`' for word in words)
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{_toml(value)}`" for value in get_args(annotation))
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(dict.fromkeys(_kind(item, []) for item in get_args(annotation)))
    if get_origin(annotation) in (list, tuple):
        least, most = _note(notes, "min_length"), _note(notes, "max_length")
        count = f" of {most}" if most and least == most else f" of at most {most}" if most else ""
        return f"array{count}: {_kind(get_args(annotation)[0], [])}"
    bounds = [f"{sign}{bound:g}" for name, sign in _BOUNDS.items() if (bound := _note(notes, name)) is not None]
    return " ".join([_WORDS.get(annotation, "value"), ", ".join(bounds)]).strip()


def _note(notes: list[Any], name: str) -> Any:
    """Return what an annotation says of a bound, None where none does."""
    return next((value for note in notes if (value := getattr(note, name, None)) is not None), None)


def _choices(notes: list[Any]) -> list[str]:
    """Return the names that a check of a text allows."""
    return next((list(note.func.known) for note in notes if hasattr(getattr(note, "func", None), "known")), [])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    default = field.get_default(call_default_factory=True)
    return '"none"' if default is None and _mark(field) is not None else _toml(default)


def _toml(value: Any) -> str:
    """Return a value as TOML has it."""
    if value is None:
        return "-"
    if isinstance(value, Strategy):
        numbers = [(field, getattr(value, field.name)) for field in written_fields(type(value))]
        changed = [f"{field.name} = {_toml(number)}" for field, number in numbers if number != default_of(field)]
        name = strategy_words(value)["type"]
        return f'{{ type = "{name}", {", ".join(changed)} }}' if changed else f'"{name}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _first(kind: type[Any]) -> str:
    """Return the first sentence of a class, without the name of its table."""
    described = getattr(kind, "described", None)
    text = kind.__doc__ or (described.__doc__ if described else "") or ""
    text = inspect.cleandoc(text).split("\n\n")[0].replace("\n", " ")
    text = re.sub(r"^``\[+[\w.]+\]+``:? ?", "", text).replace("``", "`")
    return text[:1].upper() + text[1:]


def _text(kind: type[Any], name: str) -> str:
    """Return what the documentation of a class, or of those that it is made of, says of one of its attributes."""
    for owner in kind.__mro__:
        for source in (owner, vars(owner).get("described")):
            found = _attributes(source).get(name) if source is not None else None
            if found:
                return found
    return ""


def _attributes(kind: type[Any]) -> dict[str, str]:
    """Return the texts of the section of attributes of a class's documentation, by name."""
    text = inspect.cleandoc(vars(kind).get("__doc__") or "")
    found = re.search(r"^Attributes\n-+\n(.*?)(?:\n\n\w[^\n]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
    result: dict[str, str] = {}
    names: list[str] = []
    for line in found[1].split("\n") if found else ():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.partition(" :")[0].split(",")]
        for name in names if line.startswith(" ") else ():
            result[name] = f"{result.get(name, '')} {line.strip()}".strip().replace("``", "`")
    return result


def _main() -> None:
    """Print the page of the guide."""
    from fluxloom.cases.files.loading import applications

    print(page(applications()), end="")


if __name__ == "__main__":
    _main()
