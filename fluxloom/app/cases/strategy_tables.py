"""Tables of case files that have the keys of a frozen dataclass: its names, types, defaults and checks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import create_model, model_validator

from fluxloom.app.case import Table
from fluxloom.core.errors import FluxloomError

__all__ = ["strategy_of", "strategy_table"]

Strategy = TypeVar("Strategy")


def strategy_table(kind: type[Any], without: Collection[str] = ()) -> type[Table]:
    """Return the base of a table with the fields of a dataclass.

    A field that is a tuple is an array in the file (of tables, where it is one of dataclasses), one that is a dataclass
    a table within the table. What the dataclass refuses the table refuses, with the same words.

    Parameters
    ----------
    kind
        The dataclass.
    without
        Fields that are no keys.
    """

    def check(table: Table) -> Table:
        try:
            strategy_of(kind, table)
        except FluxloomError as error:
            raise ValueError(str(error).removeprefix(f"{kind.__name__}: ")) from None
        return table

    hints = get_type_hints(kind)
    chosen = [field for field in fields(kind) if field.name not in without]
    keys: dict[str, Any] = {field.name: (_in_a_file(hints[field.name]), _default(field)) for field in chosen}
    checks: dict[str, Any] = {"check": model_validator(mode="after")(check)}
    return create_model(f"{kind.__name__}Keys", __base__=Table, __validators__=checks, **keys)


def strategy_of(kind: type[Strategy], table: Table) -> Strategy:
    """Return the dataclass that a table of its fields describes.

    Raises
    ------
    FluxloomError
        What the dataclass refuses.
    """
    hints = get_type_hints(kind)
    keys = [name for name in type(table).model_fields if name in hints]
    return kind(**{name: _value(hints[name], getattr(table, name)) for name in keys})


def _default(field: Field[Any]) -> Any:
    """Return the default of a field as a table has it; ``...`` where there is none."""
    given = field.default if field.default_factory is MISSING else field.default_factory()
    return ... if given is MISSING else list(given) if isinstance(given, tuple) else given


def _inner(hint: Any) -> Any:
    """Return the dataclass that a hint is, or may be beside None."""
    found = [member for member in (hint, *get_args(hint)) if is_dataclass(member)]
    return found[0] if found else None


def _in_a_file(hint: Any) -> Any:
    """Return the type of a key."""
    if get_origin(hint) is tuple:
        return list[_in_a_file(get_args(hint)[0])]
    inner = _inner(hint)
    if inner is None:
        return hint
    table = strategy_table(inner)
    return table if hint is inner else table | None


def _value(hint: Any, value: Any) -> Any:
    """Return the value of a field from that of its key."""
    if isinstance(value, Table):
        return strategy_of(_inner(hint), value)
    return tuple(_value(get_args(hint)[0], item) for item in value) if isinstance(value, list) else value
