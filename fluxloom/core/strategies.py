"""Alternatives that are values: frozen dataclasses of one family, which case files choose by name.

A family is a class, and so is each of its members; the fields of a member are its numbers:

    class Flux(Strategy, what="flux", group="fluxloom.fluxes"): ...

    @dataclass(frozen=True)
    class Roe(Flux, name="roe"):
        entropy_fix: float = 0.05

Programs pass ``Roe(0.1)``. A case file says ``flux = "roe"`` or ``flux = { type = "roe", entropy_fix = 0.1 }``.
Members of other packages have a name through an entry point of the family's group, or are named by their place,
``type = "my_package.fluxes:HLL"``. A family within another one is a class of both: smoothers are preconditioners.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from fluxloom.core.errors import FluxloomError, SolverError
from fluxloom.core.registry import Registry, load_object

__all__ = [
    "PYTHON_ONLY", "Strategy", "chosen", "default_of", "is_ours", "require_strategy", "strategy_called",
    "strategy_class", "strategy_name", "strategy_words", "written_fields",
]  # fmt: skip

S = TypeVar("S", bound="Strategy")
V = TypeVar("V")

PYTHON_ONLY = MappingProxyType({"key": False})
"""Metadata of a field that has no key in case files: only programs can give it, such as an array."""


class Strategy:
    """Base of families of alternatives; see the module.

    Attributes
    ----------
    choices
        The members that have a name.
    type_name
        That of a member in case files; empty: it has none.
    """

    choices: ClassVar[Registry[type[Any]]]
    type_name: ClassVar[str] = ""

    def __init_subclass__(
        cls, *, what: str = "", group: str = "", members: Mapping[str, str] = MappingProxyType({}), name: str = "",
        **rest: Any,
    ) -> None:  # fmt: skip
        """Make a family, or a member with a ``name``.

        Parameters
        ----------
        what, group
            What a family is of, and the group of its entry points.
        members
            Names and places, ``"module:Class"``, of those members of a family that are imported when they are asked
            for.
        name
            Of a member in case files.
        **rest
            Of other bases.
        """
        super().__init_subclass__(**rest)
        if what:
            cls.choices = Registry(what, group=group)
            for known, place in members.items():
                cls.choices.place(known, place)
        cls.type_name = name
        if name:
            for family in [base for base in cls.__mro__ if "choices" in vars(base)]:
                family.choices.register(name, cls)


def strategy_class(family: type[S], name: str) -> type[S]:
    """Return a member of a family by its name, or by its place, ``"module:Class"``.

    Raises
    ------
    FluxloomError
        When there is none, with what was probably meant; when what is there is no member.
    """
    try:
        found = load_object(name) if ":" in name else family.choices[name]
    except FluxloomError as error:
        raise FluxloomError(f'{error}; a class of your own is named by its place, "file:Class"') from None
    except SyntaxError as error:
        raise FluxloomError(f"{family.choices.what} {name!r}: {error.filename}:{error.lineno}: {error.msg}") from None
    except (ImportError, AttributeError) as error:
        file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None)
        where = f" (in {file})" if file else ""
        if ".py:" in name:
            where += f'; write "{name.replace(".py:", ":")}"'
        raise FluxloomError(f"{family.choices.what} {name!r} cannot be loaded: {error}{where}") from None
    if not (isinstance(found, type) and issubclass(found, family) and is_dataclass(found)):
        wanted = f"a frozen dataclass that derives from {family.__name__} is wanted"
        raise FluxloomError(f"{family.choices.what} {name!r}: {wanted}, not {found!r}")
    return found


def strategy_called(family: type[S], name: str) -> S | None:
    """Return a member with its defaults, for options of command lines; None for ``"none"``.

    Raises
    ------
    FluxloomError
        As `strategy_class`.
    """
    return None if name == "none" else strategy_class(family, name)()


def strategy_name(value: Strategy | None) -> str:
    """Return what case files call a member; of one without a name its class, of None ``"none"``."""
    return "none" if value is None else value.type_name or type(value).__name__


def written_fields(kind: type[Any]) -> list[Field[Any]]:
    """Return the fields of a dataclass that case files may give: not those that it derives, nor `PYTHON_ONLY` ones."""
    return [field for field in fields(kind) if field.init and field.metadata.get("key", True)]


def default_of(field: Field[Any]) -> Any:
    """Return the default of a field of a dataclass; `dataclasses.MISSING` where it has none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def strategy_words(value: Strategy) -> dict[str, Any]:
    """Return a member as case files write it: its ``type`` and its numbers."""
    kind = type(value)
    place = kind.type_name or f"{kind.__module__}:{kind.__qualname__}"
    numbers = {field.name: getattr(value, field.name) for field in written_fields(kind)}
    return {"type": place, **{k: strategy_words(v) if isinstance(v, Strategy) else v for k, v in numbers.items()}}


def require_strategy(what: str, value: object, family: type[Strategy], *, optional: bool = False) -> None:
    """Raise where a value is no member of a family; of a name, with the value that is meant.

    Raises
    ------
    SolverError
        Which says what to write.
    """
    if isinstance(value, family) or (optional and value is None):
        return
    hint = ""
    if optional and value == "none":
        hint = f"; write {what}=None"
    elif isinstance(value, str):
        near = [value] if value in family.choices else get_close_matches(value, family.choices, 1)
        hint = f"; write {what}={family.choices[near[0]].__name__}()" if near else ""
    elif isinstance(value, type) and issubclass(value, family):
        hint = f"; write {what}={value.__name__}()"
    known = ", ".join(f"{family.choices[name].__name__}" for name in family.choices)
    own = f"or a frozen dataclass of your own that derives from {family.__name__}"
    raise SolverError(f"{what}: a {family.choices.what} is wanted ({known}, {own}), not {value!r}{hint}")


def chosen(what: str, value: V | None, kind: type[V]) -> V:
    """Return a choice of a user, by default that of its kind.

    Raises
    ------
    SolverError
        If it is of another kind.
    """
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise SolverError(f"{what}: {kind.__name__}(...) is wanted, not {value!r}")
    return value


def is_ours(value: Strategy) -> bool:
    """Whether a member came with this package: it is tested, and need not be tried."""
    return type(value).__module__.partition(".")[0] == __name__.partition(".")[0]
