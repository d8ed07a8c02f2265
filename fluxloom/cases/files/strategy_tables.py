"""Tables of case files that have the keys of a frozen dataclass: its names, types, defaults and checks.

Their base is `Table`. Keys may take values in space and time: a number, a formula as text, or a table with a ``type``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, is_dataclass
from functools import cache
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WrapValidator,
    create_model,
    model_validator,
)
from pydantic import Field as Limits
from pydantic_core import core_schema

from fluxloom.cases.files.errors import mistakes_of
from fluxloom.core.access import Const
from fluxloom.core.errors import CaseError, FluxloomError, did_you_mean
from fluxloom.core.strategies import Strategy, default_of, strategy_class, strategy_words, written_fields
from fluxloom.values.expressions import Expression
from fluxloom.values.value import VARIABLES, Formula, Value
from fluxloom.values.value import Given as ValueOrFunction

__all__ = [
    "AtStart", "Chosen", "Given", "GivenOrNone", "GivenVector", "OrOthers", "StartVector", "StrategyTable", "Table",
    "ValueKey", "Vector", "choose", "formula_check", "member_of", "member_table", "strategy_of", "strategy_table",
]  # fmt: skip


class Table(BaseModel):
    """A table of a case file: unknown keys, conversions, NaN and infinity are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    described: ClassVar[type[Any] | None] = None
    """The dataclass of which the table has the keys."""
    renamed: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Keys of before, and those of now; ``choice.key`` where the number belongs to a choice."""

    @model_validator(mode="before")
    @classmethod
    def _by_their_names(cls, given: Any) -> Any:
        """Refuse keys of before with the names that they have now."""
        for key in sorted(cls.renamed.keys() & given.keys()) if isinstance(given, dict) else ():
            choice, _, number = cls.renamed[key].rpartition(".")
            how = f": write {choice} = {{ type = ..., {number} = ... }}" if choice else ""
            raise ValueError(f"{key} is called {cls.renamed[key]} now{how}")
        return given

    def changed(self, names: Iterable[str]) -> list[str]:
        """Return which of some keys do not have their default value."""
        fields = type(self).model_fields
        return [name for name in names if getattr(self, name) != fields[name].default]


Kind = TypeVar("Kind")
_NONE = {"type": "none"}


class StrategyTable(Table):
    """A table with the keys of a dataclass."""

    @property
    def value(self) -> Any:
        """The dataclass that the table describes; of fields that are no keys the defaults."""
        assert self.described is not None
        return strategy_of(self.described, self)


def strategy_table(kind: type[Any], without: Collection[str] = ()) -> type[StrategyTable]:
    """Return the base of a table with the fields of a dataclass.

    A field that is a tuple is an array in the file (of tables, where it is one of dataclasses), one that is a dataclass
    a table within the table, one of a family of strategies a name or a table with a ``type`` (`Chosen`). What the
    dataclass refuses the table refuses, with the same words.

    Parameters
    ----------
    kind
        The dataclass.
    without
        Fields that are no keys, beside those that no file can give (`fluxloom.core.strategies.written_fields`).
    """

    def check(table: Table) -> Table:
        """Refuse what the dataclass refuses."""
        try:
            strategy_of(kind, table)
        except FluxloomError as error:
            raise ValueError(str(error).removeprefix(f"{kind.__name__}: ")) from None
        return table

    hints = get_type_hints(kind)
    chosen = [field for field in written_fields(kind) if field.name not in without]
    keys: dict[str, Any] = {field.name: (_in_a_file(hints[field.name]), _default(field)) for field in chosen}
    checks: dict[str, Any] = {"check": model_validator(mode="after")(check)}
    table = create_model(f"{kind.__name__}Keys", __base__=StrategyTable, __validators__=checks, **keys)
    table.described = kind  # whose documentation is that of the keys
    return table


def strategy_of(kind: type[Kind], table: Table) -> Kind:
    """Return the dataclass that a table of its fields describes.

    Raises
    ------
    FluxloomError
        What the dataclass refuses.
    """
    hints = get_type_hints(kind)
    keys = [name for name in type(table).model_fields if name in hints]
    return kind(**{name: _value(hints[name], getattr(table, name)) for name in keys})


@dataclass(frozen=True)
class Chosen:
    """Annotation of a key that chooses a member of a family: by its name, or by a table with its numbers.

    ``flux: Annotated[Flux, Chosen(Flux)]``. With ``optional`` there is ``"none"`` too, and None.
    """

    family: type[Strategy]
    optional: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Say how pydantic checks a value, and how it writes one."""

        def check(given: Any) -> Strategy | None:
            return choose(self.family, given, optional=self.optional)

        return handler(Annotated[Any, PlainValidator(check), PlainSerializer(_written)])


def _written(value: Strategy | None) -> Any:
    """Return a choice as a file has it."""
    return "none" if value is None else strategy_words(value)


@dataclass(frozen=True)
class OrOthers:
    """Annotation of a table of ours whose ``type`` may also name a member of a family, of others.

    ``boundary: Annotated[BoundaryTable, OrOthers(Boundary, ("wall", "inflow"))]``. Such a table has the fields of the
    member as its keys, and the member itself, which `member_of` returns.
    """

    family: type[Strategy]
    ours: Collection[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Say how pydantic checks a value, and how it writes one."""
        own: type[Any] = create_model(f"Own{source.__name__}", __base__=source, member=(Any, ...))

        def check(given: Any, ours: Callable[[Any], Table]) -> Table:
            kind = given.get("type") if isinstance(given, dict) else None
            if not isinstance(kind, str) or kind in self.ours:
                return ours(given)
            known = [*self.ours, *self.family.choices.names()]
            if ":" not in kind and kind not in known:
                hint = did_you_mean(kind, known)
                raise ValueError(f'type: unknown value "{kind}"{hint} (allowed: {", ".join(known)})')
            return own.model_construct(type=kind, member=choose(self.family, given))

        def written(table: Table) -> Any:
            return strategy_words(member_of(table)) if isinstance(table, own) else table.model_dump()

        return handler(Annotated[source, WrapValidator(check), PlainSerializer(written)])


def member_of(table: Table) -> Any:
    """Return the member of others that a table names, see `OrOthers`; None: the table is of ours."""
    return getattr(table, "member", None)


def choose(family: type[Strategy], given: Any, *, optional: bool = False) -> Strategy | None:
    """Return the member of a family that a value of a case file describes; see `Chosen`.

    Raises
    ------
    ValueError
        Which says what is wrong, for pydantic.
    """
    if isinstance(given, family) or (optional and given in (None, "none", _NONE)):
        return given if isinstance(given, family) else None
    kind, numbers = _named(family, given, optional)
    try:
        keys = member_table(kind)
    except FluxloomError as error:
        raise ValueError(str(error)) from None
    for name in numbers.keys() - keys.model_fields.keys():
        plain = name in vars(kind) and name not in vars(kind).get("__dataclass_fields__", ())
        if plain and not callable(vars(kind)[name]) and not isinstance(vars(kind)[name], property):
            raise ValueError(f"{given['type']}: {name} is no field, it has no type: write {name}: float in the class")
    try:
        return strategy_of(kind, keys.model_validate(numbers))
    except ValidationError as error:
        raise ValueError(f"{given['type']}: {mistakes_of(keys, error)}") from None
    except FluxloomError as error:
        raise ValueError(str(error)) from None


def _named(family: type[Strategy], given: Any, optional: bool) -> tuple[type[Strategy], dict[str, Any]]:
    """Return which member a value of a case file names, and its numbers."""
    known = ", ".join([*family.choices.names(), *(["none"] if optional else [])])
    if isinstance(given, str):
        given = {"type": given}
    if not isinstance(given, dict):
        raise ValueError(f'must be a name in quotes or a table {{ type = "..." }}, got {given!r} (allowed: {known})')
    if not isinstance(given.get("type"), str):
        hint = next((f"; is it misspelt as {key!r}?" for key in given if did_you_mean("type", [key])), "")
        raise ValueError(f'the table needs type = "..."{hint} (allowed: {known})')
    if optional and given["type"] == "none":
        raise ValueError(f"none: no key {next(key for key in given if key != 'type')!r} (it has none)")
    try:
        kind = strategy_class(family, given["type"])
    except FluxloomError as error:
        raise ValueError(str(error)) from None
    return kind, {key: value for key, value in given.items() if key != "type"}


@cache
def member_table(kind: type[Strategy]) -> type[Table]:
    """Return the table of the numbers of a member; once a class, for making it takes long.

    Raises
    ------
    FluxloomError
        Where a field has a name that the table, or the family, has for something else.
    """
    family = [base for base in kind.__mro__ if "choices" in vars(base)]
    for field in written_fields(kind):
        of_family = any(callable(getattr(base, field.name, None)) for base in family)
        if field.name == "type" or of_family or hasattr(StrategyTable, field.name):
            whose = f"a method of {family[0].__name__}" if of_family else "taken in tables of case files"
            raise FluxloomError(f"{kind.__name__}: the name of the field {field.name!r} is {whose}: call it otherwise")
    return strategy_table(kind)


def _default(field: Field[Any]) -> Any:
    """Return the default of a field as a table has it; ``...`` where there is none."""
    given = default_of(field)
    return ... if given is MISSING else list(given) if isinstance(given, tuple) else given


def _inner(hint: Any) -> Any:
    """Return the dataclass, or the family, that a hint is, or may be beside None."""
    found = [member for member in (hint, *get_args(hint)) if is_dataclass(member) or _is_family(member)]
    return found[0] if found else None


def _is_family(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Strategy)


def _in_a_file(hint: Any) -> Any:
    """Return the type of a key."""
    if hint is tuple:
        return list[Any]
    if hint == ValueOrFunction or hint == ValueOrFunction | None:
        return Annotated[Any, ValueKey(optional=hint != ValueOrFunction)]
    if get_origin(hint) in (tuple, Const):
        inside = _in_a_file(get_args(hint)[0])
        return list[inside] if get_origin(hint) is tuple else inside
    inner = _inner(hint)
    if inner is None:
        return hint
    if _is_family(inner):
        return Annotated[Any, Chosen(inner, optional=hint is not inner)]
    table = strategy_table(inner)
    return table if hint is inner else table | None


def _value(hint: Any, value: Any) -> Any:
    """Return the value of a field from that of its key."""
    if isinstance(value, Table):
        return strategy_of(_inner(hint), value)
    of = next(iter(get_args(hint)), Any)
    return tuple(_value(of, item) for item in value) if isinstance(value, list) else value


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

        return handler(Annotated[Any, PlainValidator(check), PlainSerializer(_written_value)])

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


def _written_value(value: Any) -> Any:
    """Return a value as a file has it."""
    if isinstance(value, Formula):
        return value.text
    return strategy_words(value) if isinstance(value, Value) else value


Vector = Annotated[list[float], Limits(max_length=3)]
"""A number a dimension."""

Given = Annotated[Any, ValueKey(blank=True)]
"""A number, a formula in x, y, z and t, or a table."""

GivenOrNone = Annotated[Any, ValueKey(optional=True, blank=True)]
"""The same, where it may be left out."""

GivenVector = Annotated[list[Annotated[Any, ValueKey()]], Limits(max_length=3)]
"""The same, one a dimension."""

AtStart = Annotated[Any, ValueKey(variables=VARIABLES[:3], optional=True, blank=True)]
"""A number, a formula in x, y and z, or a table; it may be left out."""

StartVector = Annotated[list[Annotated[Any, ValueKey(variables=VARIABLES[:3])]], Limits(max_length=3)]
"""The same, one a dimension."""


def formula_check(*variables: str) -> Callable[[str], str]:
    """Return a check of pydantic: a text is empty or a formula in some variables."""

    def check(text: str) -> str:
        try:
            if text:
                Expression(text, variables)
        except CaseError as error:
            raise ValueError(str(error)) from None
        return text

    return check
