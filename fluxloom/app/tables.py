"""The base of all tables of case files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

from fluxloom.core.strategies import Strategy, strategy_words

__all__ = ["Table"]


class Table(BaseModel):
    """A table of a case file: unknown keys, conversions, NaN and infinity are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    described: ClassVar[type[Any] | None] = None
    """The dataclass of which the table has the keys."""
    moved: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys of before, whose values are numbers of a choice now: the key of that."""
    zero_is_default: ClassVar[Collection[str]] = ()
    """Those of them whose 0 stood for the choice's own number."""
    renamed: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys of before that have another name now."""

    @model_validator(mode="before")
    @classmethod
    def _by_their_names(cls, given: Any) -> Any:
        """Give the values of keys of before to those of now."""
        if not (isinstance(given, dict) and cls.renamed.keys() & given.keys()):
            return given
        if both := next((old for old, new in cls.renamed.items() if old in given and new in given), ""):
            raise ValueError(f"give only one of {both} and {cls.renamed[both]}, which are the same")
        return {cls.renamed.get(key, key): value for key, value in given.items()}

    @model_validator(mode="before")
    @classmethod
    def _in_their_place(cls, given: Any) -> Any:
        """Put the values of keys of before where they belong: ``entropy_fix = 0.1`` into ``flux``."""
        if not (isinstance(given, dict) and cls.moved.keys() & given.keys()):
            return given
        table = {key: value for key, value in given.items() if key not in cls.moved}
        for choice in dict.fromkeys(cls.moved[key] for key in given if key in cls.moved):
            numbers = {key: value for key, value in given.items() if cls.moved.get(key) == choice}
            if numbers := {key: n for key, n in numbers.items() if not (key in cls.zero_is_default and n == 0)}:
                table[choice] = _with_numbers(table.get(choice, cls.model_fields[choice].default), choice, numbers)
        return table

    def changed(self, names: Iterable[str]) -> list[str]:
        """Return which of some keys do not have their default value."""
        fields = type(self).model_fields
        return [name for name in names if getattr(self, name) != fields[name].default]


def _with_numbers(choice: Any, name: str, numbers: dict[str, Any]) -> Any:
    """Return a choice with some of its numbers."""
    key = next(iter(numbers))
    words = strategy_words(choice) if isinstance(choice, Strategy) else choice
    if words is None or words == "none":
        raise ValueError(f"{key} is a number of {name}, which is none: write {name} = {{ type = ..., {key} = ... }}")
    words = {"type": words} if isinstance(words, str) else words
    if not isinstance(words, dict):
        return words  # nonsense, which the check of the choice tells
    if (both := numbers.keys() & words.keys()) and not isinstance(choice, Strategy):
        raise ValueError(f"give only one of {min(both)} and {name}.{min(both)}")
    return words | numbers
