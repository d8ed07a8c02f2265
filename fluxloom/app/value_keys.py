"""Keys of case files that take a value in space and time: a number, a formula as text, or a table with a ``type``."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, PlainSerializer, PlainValidator
from pydantic_core import core_schema

from fluxloom.app.strategy_tables import choose
from fluxloom.core.errors import FluxloomError
from fluxloom.core.strategies import strategy_words
from fluxloom.values.value import VARIABLES, Formula, Value

__all__ = ["AtStart", "Given", "GivenVector", "StartVector", "ValueKey", "Vector"]


@dataclass(frozen=True)
class ValueKey:
    """Annotation of such a key: ``pressure: Annotated[Any, ValueKey(gt=0)]``.

    A number stays a number; all else becomes a member of `fluxloom.values.value.Value`.

    Attributes
    ----------
    gt, ge, le
        What a number has to be above, at least, or at most. (Of others solvers ask it where they take the values.)
    variables
        That a formula may have.
    optional
        Whether the key may be left out, None then.
    blank
        Whether an empty text is 0, of an optional one None.
    """

    gt: float | None = None
    ge: float | None = None
    le: float | None = None
    variables: tuple[str, ...] = VARIABLES
    optional: bool = False
    blank: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """Say how pydantic checks a value, and how it writes one."""

        def check(given: Any) -> float | Value | None:
            if self.blank and given == "":
                return None if self.optional else 0.0
            return None if given is None and self.optional else self.checked(given)

        return handler(Annotated[Any, PlainValidator(check), PlainSerializer(_written)])

    def checked(self, given: Any) -> float | Value:
        """Return what a file gives.

        Raises
        ------
        ValueError
            Which says what is wrong, for pydantic.
        """
        if isinstance(given, bool) or not isinstance(given, (int, float, str, dict, Value)):
            raise ValueError(f'must be a number, a formula in quotes or a table {{ type = "..." }}, got {given!r}')
        if isinstance(given, (int, float)):
            return self._number(float(given))
        try:
            found: Any = Formula(given) if isinstance(given, str) else choose(Value, given)
        except FluxloomError as error:
            raise ValueError(str(error)) from None
        for name in found.expression.names if isinstance(found, Formula) else ():
            if name not in self.variables:
                raise ValueError(f"{found}: unknown name {name!r} (allowed: {', '.join(self.variables)})")
        return found

    def _number(self, given: float) -> float:
        if not isfinite(given):
            raise ValueError(f"must be a finite number, got {given!r}")
        if self.gt is not None and not given > self.gt:
            raise ValueError(f"must be greater than {self.gt:g}, got {given:g}")
        if self.ge is not None and not given >= self.ge:
            raise ValueError(f"must be at least {self.ge:g}, got {given:g}")
        if self.le is not None and not given <= self.le:
            raise ValueError(f"must be at most {self.le:g}, got {given:g}")
        return given


def _written(value: Any) -> Any:
    """Return a value as a file has it."""
    if isinstance(value, Formula):
        return value.text
    return strategy_words(value) if isinstance(value, Value) else value


Vector = Annotated[list[float], Field(max_length=3)]
"""A number a dimension."""

Given = Annotated[Any, ValueKey(blank=True)]
"""A number, a formula in x, y, z and t, or a table."""

GivenVector = Annotated[list[Annotated[Any, ValueKey()]], Field(max_length=3)]
"""One of these a dimension."""

AtStart = Annotated[Any, ValueKey(variables=("x", "y", "z"), blank=True)]
"""A number, a formula in x, y and z, or a table."""

StartVector = Annotated[list[Annotated[Any, ValueKey(variables=("x", "y", "z"))]], Field(max_length=3)]
"""One of these a dimension."""
