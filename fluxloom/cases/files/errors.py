"""Case files as TOML, and what is wrong with one: file, line, key, what is allowed, the nearest match."""

from __future__ import annotations

import copy
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, GetCoreSchemaHandler, PlainValidator, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from fluxloom.core.errors import CaseError, did_you_mean
from fluxloom.core.text import without_mark

__all__ = [
    "Document", "LateTable", "describe_errors", "key_lines", "late_table", "mistakes_of", "placed", "read_toml",
    "with_settings",
]  # fmt: skip

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


_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": 'text in quotes ("...")',
    "model_type": "a table",
    "dict_type": "a table",
    "list_type": "an array [...]",
    "tuple_type": "an array [...]",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_KEY = re.compile(r"[A-Za-z_][\w-]*(\.[\w-]+)*")
_TOML_NAMES = {bool: "a truth value", int: "a whole number", float: "a number", str: "text", list: "an array"}


@contextmanager
def placed(file: str) -> Iterator[None]:
    """Put a case file, and the line of the key that a message begins with, before errors of what is built from it."""
    try:
        yield
    except CaseError as error:
        text = str(error)
        if type(error) is not CaseError or text.startswith(file) or not Path(file).is_file():
            raise
        document, key = read_toml(file), text.partition(": ")[0]
        keys = tuple(key.split(".")) if _KEY.fullmatch(key) else ()
        raise CaseError(f"{document.where(keys)}: {text}") from None


def describe_errors(document: Document, model: type[BaseModel], error: ValidationError) -> str:
    """Return one message for all mistakes of a case file.

    Parameters
    ----------
    document
        The file that was checked.
    model
        What it was checked against.
    error
        What pydantic found.
    """
    details = [dict(item) for item in error.errors(include_url=False)]
    absent = [keys for item in details if item["type"] == "missing" and (keys := _keys(item))]
    mistyped = {_meant(keys, absent) for item in details if item["type"] == "extra_forbidden" and (keys := _keys(item))}
    told = [item for item in details if item["type"] != "missing" or _keys(item) not in mistyped]
    told = _likeliest(document, told)
    told.sort(key=lambda item: document.line(_real_keys(document, _keys(item))))
    lines = [_describe(document, model, item, absent) for item in told]
    if len(lines) == 1:
        return lines[0]
    return "\n".join([f"{document.path}: {len(lines)} mistakes", *(f"  {line}" for line in lines)])


def mistakes_of(model: type[BaseModel], error: ValidationError) -> str:
    """Return the mistakes of a table within a value, in one line: what pydantic found, without places."""
    details = [dict(item) for item in error.errors(include_url=False)]
    known = list(model.model_fields)
    told = []
    for item in details:
        keys = _keys(item)
        if item["type"] == "extra_forbidden":
            allowed = f"allowed: {', '.join(known)}" if known else "it has none"
            told.append(f"no key {keys[-1]!r}{did_you_mean(keys[-1], known)} ({allowed})")
        else:
            told.append(_words(model, keys, item, ()))
    return "; ".join(told)


def _likeliest(document: Document, items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out of a value that may be a number or text what the kind that it is not says of it."""
    often = Counter(_real_keys(document, _keys(item)) for item in items)

    def alien(item: Mapping[str, Any]) -> bool:
        """Return whether a message is of the kind that a value is not."""
        text, kind = isinstance(item.get("input"), str), str(item["type"])
        return kind.startswith(("float", "int")) if text else kind == "string_type"

    return [item for item in items if often[_real_keys(document, _keys(item))] == 1 or not alien(item)]


def _meant(keys: tuple[str, ...], absent: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the missing key that a mistyped one stands for, or an empty path."""
    for names in absent:
        if names[:-1] == keys[:-1] and did_you_mean(keys[-1], names[-1:]):
            return names
    return ()


def _keys(item: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(part) for part in item["loc"])


def _describe(
    document: Document, model: type[BaseModel], item: Mapping[str, Any], absent: Sequence[tuple[str, ...]]
) -> str:
    """Return the line of one mistake."""
    keys = _real_keys(document, _keys(item))
    table, text = _table(model, _keys(item)) if keys else None, str(item["msg"]).removeprefix("Value error, ")
    name, _, rest = text.partition(": ")
    if item["type"] == "value_error" and table is not None and rest and name in table.model_fields:
        keys = (*keys, name)  # what a dataclass says of one of its fields
        return f"{document.where(keys)}: {'.'.join(keys)}: {rest}"
    return f"{document.where(keys)}: {_words(model, keys, item, absent)}"


def _words(
    model: type[BaseModel], keys: tuple[str, ...], item: Mapping[str, Any], absent: Sequence[tuple[str, ...]]
) -> str:
    """Return the key of one mistake, and what is wrong with it."""
    where = f"{'.'.join(keys)}: " if keys else ""
    kind, value, context = str(item["type"]), item.get("input"), item.get("ctx") or {}
    if kind == "extra_forbidden":
        return where + _unknown_key(model, keys, _keys(item), absent)
    if kind == "missing":
        return where + _missing_key(model, keys, _keys(item))
    if kind in _TYPES:
        hint = ""
        if kind == "string_type":
            hint = f'; write "{value}"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
        if kind in ("int_type", "int_from_float") and isinstance(value, float) and value.is_integer():
            hint = f"; write {int(value)}"
        if kind == "list_type" and isinstance(value, dict):
            hint = f"; write [[{'.'.join(keys)}]]"
        return where + f"must be {_TYPES[kind]}, got {_shown(value)}{hint}"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = context[name]
        bound = int(bound) if isinstance(bound, float) and bound.is_integer() else bound
        return where + f"must be {words} {bound}, got {_shown(value)}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return where + _wrong_tag(context)
    if kind in ("too_short", "too_long"):
        least = kind == "too_short"
        count = context["min_length" if least else "max_length"]
        return where + f"must have at {'least' if least else 'most'} {count} values, got {context['actual_length']}"
    if kind == "finite_number":
        return where + f"must be a finite number, got {value}"
    if kind in ("literal_error", "enum"):
        allowed = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
        return where + f"unknown value {_shown(value)}{hint} (allowed: {', '.join(allowed)})"
    return where + str(item["msg"]).removeprefix("Value error, ")


def _wrong_tag(context: Mapping[str, Any]) -> str:
    """Return what to say of a table whose keys depend on one that is missing or unknown."""
    key = str(context["discriminator"]).strip("'")
    if "tag" not in context:
        return f"the key {key} is missing; add {key} = ..., which says what other keys there are"
    allowed = [word.strip("'") for word in str(context["expected_tags"]).split(", ")]
    hint = did_you_mean(str(context["tag"]), allowed)
    return f"{key}: unknown value {_shown(context['tag'])}{hint} (allowed: {', '.join(allowed)})"


def _real_keys(document: Document, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path without the names that pydantic adds for the members of a union."""
    table: Any = document.data
    kept: list[str] = []
    for number, key in enumerate(keys):
        if isinstance(table, dict) and key in table:
            kept.append(key)
            table = table[key]
        elif isinstance(table, str | int | float) or (isinstance(table, list) and not key.isdigit()):
            break  # a value, and the members of its union
        elif number == len(keys) - 1 or not isinstance(table, dict):
            kept.append(key)
            table = None
    return tuple(kept)


def _unknown_key(
    model: type[BaseModel], keys: tuple[str, ...], path: tuple[str, ...], absent: Sequence[tuple[str, ...]]
) -> str:
    """Return what to say of a key that nothing knows; ``path`` are the keys with the members of unions."""
    key, above = keys[-1], keys[:-1]
    table = _table(model, path[:-1])
    known = list(table.model_fields) if table is not None else []
    # A required key that is missing from the same table is the likeliest meaning.
    wanted = [name for *place, name in absent if tuple(place) == path[:-1]]
    hint = did_you_mean(key, wanted) or _elsewhere(model, keys) or did_you_mean(key, known)
    owner = f"[{'.'.join(above)}]" if above else "the file"
    allowed = f" (allowed: {', '.join(known)})" if known else ""
    return f"{owner} has no key {key!r}{hint}{allowed}"


def _elsewhere(model: type[BaseModel], keys: tuple[str, ...]) -> str:
    """Return where a key of this name does exist."""
    key, above = keys[-1], keys[:-1]
    if above and key in model.model_fields:
        return f"; [{key}] is a table of its own"
    for name in model.model_fields:
        table = _table(model, (name,))
        if table is not None and key in table.model_fields and (name,) != above:
            return f"; it belongs to [{name}]"
    return ""


def _missing_key(model: type[BaseModel], keys: tuple[str, ...], path: tuple[str, ...]) -> str:
    """Return what to say of a required key or table; ``path`` are the keys with the members of unions."""
    table = _table(model, path)
    if table is not None:
        return f"the table [{'.'.join(keys)}] is missing (keys: {', '.join(table.model_fields)})"
    owner = _table(model, path[:-1])
    field = owner.model_fields.get(keys[-1]) if owner is not None else None
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    kind = words.get(field.annotation, "") if field is not None and field.annotation is not None else ""
    return f"the key is missing; add {keys[-1]} = ..." + (f" ({kind})" if kind else "")


def _table(model: type[BaseModel], path: tuple[str, ...]) -> type[BaseModel] | None:
    """Return the model of a table, or None when the path names no table."""
    rest = iter(path)
    for key in rest:
        field = model.model_fields.get(key)
        annotation = None if field is None else late_table(field) or field.annotation
        if get_origin(annotation) in (list, dict) and next(rest, None) is not None:
            annotation = get_args(annotation)[-1]  # tables with a number or a name of their own
        if get_origin(annotation) in (Union, UnionType) and get_args(annotation)[1:] == (NoneType,):
            annotation = get_args(annotation)[0]  # tables that may be left out
        if get_origin(annotation) is Annotated:
            inner = get_args(annotation)[0]
            single = isinstance(inner, type) and issubclass(inner, BaseModel)
            annotation = inner if single else _member(annotation, next(rest, ""))
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return None
        model = annotation
    return model


@dataclass(frozen=True)
class LateTable:
    """Annotation of a table that may be left out, and whose keys are imported where a file has it.

    ``gmsh: Annotated[Any, LateTable(gmsh_table)] = None``.

    Attributes
    ----------
    table
        Imports the table, or a union of tables, and returns it.
    """

    table: Callable[[], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Say how pydantic checks a value: mistakes have the places that they have in a table that is there at once."""

        def check(given: Any) -> Any:
            return None if given is None else TypeAdapter(self.table()).validate_python(given)

        return handler(Annotated[Any, PlainValidator(check)])


def late_table(field: FieldInfo) -> Any:
    """Return the table of a field that imports it when it is asked for; None: it is no such field."""
    return next((note.table() for note in field.metadata if isinstance(note, LateTable)), None)


def _member(annotation: Any, tag: str) -> Any:
    """Return the table of a union that has a tag, where one of their keys says which of them is meant."""
    union, *notes = get_args(annotation)
    names = [note.discriminator for note in notes if isinstance(note, FieldInfo)]
    tables = [member for member in get_args(union) if isinstance(member, type) and issubclass(member, BaseModel)]
    for table in tables:
        fields = [table.model_fields[name] for name in names if isinstance(name, str)]
        if any(tag in get_args(field.annotation) for field in fields):
            return table
    return None


def _shown(value: Any) -> str:
    """Return a value as TOML shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, int | float):
        return str(value)
    return _TOML_NAMES.get(type(value), type(value).__name__)
