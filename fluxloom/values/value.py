"""A number that is given in space and time: what a user may write for one, and what loops compute of it.

``value_of`` takes a number, a formula in x, y, z and t as text, a function of places (and of the time), or a member of
the family `Value`. Case files write the same: ``0.5``, ``"0.5 * sin(3 * t)"``, ``{ type = "series", file = "q.csv" }``.

What loops compute of it are records that are called with a place, the numbers of the time and those of the place:
``now`` has the time and behind it the numbers that are the same everywhere, ``held`` what the host has found at the
place; which of them a value takes, `Slots` says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import CaseError, SolverError
from fluxloom.core.strategies import PYTHON_ONLY, Strategy
from fluxloom.kernel.frontend import Func, func
from fluxloom.kernel.intrinsics import sqrt
from fluxloom.values.expressions import Expression

__all__ = [
    "VARIABLES", "AtPlaces", "Called", "Computed", "Constant", "Direction", "Fixed", "Formula", "Function", "Given",
    "Held", "InTime", "Now", "OfUnit", "Plus", "Product", "Slots", "Sum", "Times", "Value", "has_values", "value_of",
    "vector_of",
]  # fmt: skip

@dataclass(frozen=True)
class Now:
    """A number that the host gives."""

    at: int

    @func
    def __call__(self, x, y, z, now, held):
        """Return it, ``q = now[at]``."""
        return now[self.at]


@dataclass(frozen=True)
class Held:
    """A number that the host has found at the place."""

    at: int

    @func
    def __call__(self, x, y, z, now, held):
        """Return it, ``q = held[at]``."""
        return held[self.at]


@dataclass(frozen=True)
class Fixed:
    """A number."""

    number: float

    @func
    def __call__(self, x, y, z, now, held):
        """Return it, ``q = number``."""
        return self.number


@dataclass(frozen=True)
class Computed:
    """A formula in x, y, z and t."""

    formula: Func[..., Any]

    @func
    def __call__(self, x, y, z, now, held):
        """Return it, ``q = formula(x, y, z, t)``."""
        return self.formula(x, y, z, now[0])


@dataclass(frozen=True)
class Times:
    """A product."""

    one: Any
    other: Any

    @func
    def __call__(self, x, y, z, now, held):
        """Return it, ``q = one * other``."""
        return self.one(x, y, z, now, held) * self.other(x, y, z, now, held)


@dataclass(frozen=True)
class Plus:
    """A sum."""

    one: Any
    other: Any

    @func
    def __call__(self, x, y, z, now, held):
        """Return it, ``q = one + other``."""
        return self.one(x, y, z, now, held) + self.other(x, y, z, now, held)


@dataclass(frozen=True)
class OfUnit:
    """A component of a vector made a unit vector."""

    component: int
    parts: tuple[Any, ...]

    @func
    def __call__(self, x, y, z, now, held):
        """Return it, ``q = v_component / |v|``."""
        square = 0.0
        for k in range(len(self.parts)):
            part = self.parts[k](x, y, z, now, held)
            square += part * part
        return self.parts[self.component](x, y, z, now, held) / sqrt(square)


Array = npt.NDArray[np.float64]
Function = Callable[[Array], npt.ArrayLike] | Callable[[Array, float], npt.ArrayLike]
VARIABLES = ("x", "y", "z", "t")
"""Of formulas."""

_AXES = 3


_TABLES = {name: f"fluxloom.values.tables:{kind}" for name, kind in (
    ("series", "TimeSeries"), ("profile", "Profile"), ("raster", "Raster"),
)}  # fmt: skip


_MOMENTS = 256
"""At which it is looked for what a formula does in time."""


class Value(Strategy, what="value", group="fluxloom.values", members=_TABLES):
    """A number in space and time; a member is a frozen dataclass.

    A member has `values`, and says by `in_time` and `in_space` what it depends on. One that changes in time costs a
    number a step where it is the same everywhere; else `values` is asked by the host at every time, unless the member
    has a `term` of its own, which loops compute.
    """

    in_time = True
    """Whether it depends on the time."""
    in_space = True
    """Whether it depends on the place."""

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Return it at places ``(n, d)`` at a time, ``(n,)``."""
        raise NotImplementedError(f"{type(self).__name__} needs values(places, time)")

    def at(self, places: Array, time: float = 0.0, what: str = "") -> Array:
        """Return it at places ``(n, d)`` at a time, ``(n,)``.

        Raises
        ------
        SolverError
            If there is not one finite number for each place; says where and when. ``what`` begins the message.
        """
        about = f"{what}: " if what else ""
        try:
            found = self.values(places, time)
        except (SolverError, CaseError) as error:
            raise type(error)(f"{about}{error}") from None
        try:
            numbers = np.asarray(found, dtype=np.float64)
            if numbers.shape not in ((), (len(places),)):
                raise ValueError
        except (TypeError, ValueError):
            raise SolverError(
                f"{about}{self}: a number is wanted for each of the places {places.shape}, not what has the shape "
                f"{np.shape(found)}"
            ) from None
        numbers = np.broadcast_to(numbers, (len(places),)).copy()
        for k in np.flatnonzero(~np.isfinite(numbers))[:1].tolist():
            raise SolverError(f"{about}{self} is {numbers[k]:g} {self.where(places[k], time)}")
        return numbers

    @property
    def finest(self) -> float:
        """Interval of the time in which it may change its course; infinite where it does not depend on the time."""
        return 0.0 if self.in_time else np.inf

    def turns(self, begin: float, end: float) -> Array:
        """Return times in ``(begin, end]`` between which it is linear, or hardly anything else, ``(n,)``."""
        return np.linspace(begin, end, _MOMENTS + 1)[1:]

    def over_time(self, times: npt.NDArray[np.floating[Any]]) -> Array:
        """Return it at times, ``(n,)``, where it does not depend on the place; beyond the ends of a table those."""
        nowhere = np.zeros((1, _AXES))
        return np.array([self.at(nowhere, float(time))[0] for time in times])

    def course(self, places: Array, times: npt.NDArray[np.floating[Any]], what: str = "") -> Array:
        """Return it at places ``(n, d)`` at times ``(m,)``, ``(n, m)``; see `at` and `over_time`."""
        if not self.in_space:
            return np.broadcast_to(self.over_time(times), (len(places), len(times)))
        moments = times if self.in_time else times[:1]
        found = np.stack([self.at(places, float(time), what) for time in moments], axis=1)
        return np.broadcast_to(found, (len(places), len(times)))

    def where(self, place: Array, time: float) -> str:
        """Return a place and a time, as far as the value depends on them."""
        at = [f"at ({', '.join(f'{x:g}' for x in place)})"] if self.in_space else []
        return ", ".join([*at, *([f"at t = {time:g}"] if self.in_time else [])]) or "everywhere"

    def term(self, slots: Slots) -> Any:
        """Return what loops compute it by: a record with a ``__call__`` that is a ``@func`` of (x, y, z, now, held).

        ``now`` has the time and the numbers of ``slots``, ``held`` its columns at the place.
        """
        return Held(slots.column(self)) if self.in_space else Now(slots.number(self))

    def __mul__(self, other: Given) -> Value:
        """Return the product."""
        return Product(self, value_of(other))

    __rmul__ = __mul__

    def __add__(self, other: Given) -> Value:
        """Return the sum."""
        return Sum(self, value_of(other))

    __radd__ = __add__


Given: TypeAlias = float | str | Value | Function
"""What a user may give for a number; see `value_of`. Fields of strategies have it as their annotation."""


@dataclass(eq=False)
class Slots:
    """What the host gives to a loop that computes values.

    Attributes
    ----------
    numbers
        Those that are the same everywhere: one each, behind the time.
    columns
        Those that the host finds at all places.
    """

    numbers: list[Value] = field(default_factory=list)
    columns: list[Value] = field(default_factory=list)

    def number(self, value: Value) -> int:
        """Return the place of a value among the numbers of ``now``."""
        return 1 + _place(self.numbers, value)

    def column(self, value: Value) -> int:
        """Return the place of a value among those of ``held``."""
        return _place(self.columns, value)


def _place(values: list[Value], value: Value) -> int:
    for k, known in enumerate(values):
        if known is value:
            return k
    values.append(value)
    return len(values) - 1


# --------------------------------------------------------------------------------------------- the family


@dataclass(frozen=True)
class Constant(Value):
    """A number."""

    number: float
    in_time = in_space = False

    def __post_init__(self) -> None:
        if not isfinite(self.number):
            raise SolverError(f"{self.number!r} is not finite")

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Return it."""
        return self.number

    def term(self, slots: Slots) -> Any:
        """Return it."""
        return Fixed(float(self.number))

    def __str__(self) -> str:
        return f"{self.number:g}"


@dataclass(frozen=True)
class Formula(Value, name="formula"):
    """A formula as text; see `fluxloom.values.expressions.Expression` for what it may hold.

    Where it depends on place and time, loops compute it; one in the time alone costs a number a step, one in the place
    alone nothing.

    Attributes
    ----------
    text
        Arithmetic in x, y, z and t.
    """

    text: str

    def __post_init__(self) -> None:
        _ = self.expression

    @cached_property
    def expression(self) -> Expression:
        """The formula, checked."""
        return Expression(self.text, VARIABLES)

    @cached_property
    def in_time(self) -> bool:
        """Whether t occurs."""
        return "t" in self.expression.names

    @cached_property
    def in_space(self) -> bool:
        """Whether x, y or z occur."""
        return not self.expression.names.isdisjoint(VARIABLES[:_AXES])

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Return it at places; z is none of a plane."""
        d = places.shape[1]
        for name in VARIABLES[d:_AXES]:
            if name in self.expression.names:
                raise SolverError(f"{self}: the places have {d} dimensions: leave {name} out")
        return self.expression(*places.T, *(np.zeros(len(places)) for _ in range(_AXES - d)), np.float64(time))

    def term(self, slots: Slots) -> Any:
        """Return the formula for loops where it depends on place and time."""
        from fluxloom.values.kernel_text import kernel_formula

        return Computed(kernel_formula(self.expression)) if self.in_time and self.in_space else super().term(slots)

    def __str__(self) -> str:
        return self.expression.shown


@dataclass(frozen=True)
class InTime(Value):
    """A number that is the same everywhere, by a function of the time.

    Attributes
    ----------
    function
        Of the time, returns a number.
    about
        What messages call it.
    """

    function: Callable[[float], float]
    about: str
    in_space = False

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Return it."""
        return self.function(time)

    def __str__(self) -> str:
        return self.about


@dataclass(frozen=True)
class Called(Value):
    """A Python function, which the host calls: at each time where it takes one, which formulas and tables do faster.

    Attributes
    ----------
    function
        Of places ``(n, d)``, or of places and a time; returns ``(n,)`` or with a ``component`` ``(n, components)``.
    component, components
        Which component of a vector it is, and how many that has; -1: the function returns numbers.
    """

    function: Function = field(metadata=PYTHON_ONLY)
    component: int = field(default=-1, metadata=PYTHON_ONLY)
    components: int = field(default=0, metadata=PYTHON_ONLY)

    @cached_property
    def in_time(self) -> bool:
        """Whether the function takes a time."""
        return _takes_time(self.function)

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Call the function."""
        given: Any = self.function
        found = given(places, time) if self.in_time else given(places)
        if self.component < 0:
            return found
        shape = (len(places), self.components)
        try:
            numbers = np.asarray(found, dtype=np.float64)
            if numbers.shape not in (shape, shape[1:]):
                raise ValueError
        except (TypeError, ValueError):
            raise SolverError(
                f"{self}: it has to return {shape} numbers for the places {places.shape}, not what has the shape "
                f"{np.shape(found)}"
            ) from None
        return np.broadcast_to(numbers, shape)[:, self.component]

    def __str__(self) -> str:
        return f"the function {getattr(self.function, '__name__', type(self.function).__name__)}"


class _LastCall:
    """A function that is not called again for places and time of its last call, as for each component of a vector."""

    def __init__(self, function: Function) -> None:
        self.__wrapped__: Any = function  # whose signature this one has
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self._of: tuple[Array | None, tuple[float, ...]] = None, ()
        self._found: Any = None

    def __call__(self, places: Array, *time: float) -> npt.ArrayLike:
        if self._of[0] is not places or self._of[1] != time:
            self._found, self._of = self.__wrapped__(places, *time), (places, time)
        return self._found


@dataclass(frozen=True, eq=False)
class AtPlaces(Value):
    """Numbers at the places themselves, in their order.

    Attributes
    ----------
    numbers : (n,)
        One for each.
    """

    numbers: Array = field(metadata=PYTHON_ONLY)
    in_time = False

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Return them."""
        return self.numbers

    def __str__(self) -> str:
        return f"an array {np.shape(self.numbers)}"


_WITH_TIME = 2
"""Arguments of a function of places and a time."""


def _takes_time(function: Any) -> bool:
    """Whether a function takes a time beside places."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of C, without a signature
        return False
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = len([p for p in parameters if p.kind in plain and p.default is p.empty])
    if count > _WITH_TIME:
        name = getattr(function, "__name__", type(function).__name__)
        raise SolverError(
            f"the function {name} takes {count} arguments: one of places (n, d), or of places and a time, is wanted"
        )
    return count == _WITH_TIME


@dataclass(frozen=True)
class _Two(Value):
    """What is made of two values."""

    one: Value
    other: Value

    @property
    def in_time(self) -> bool:
        """Whether one of them does."""
        return self.one.in_time or self.other.in_time

    @property
    def in_space(self) -> bool:
        """Whether one of them does."""
        return self.one.in_space or self.other.in_space

    def turns(self, begin: float, end: float) -> Array:
        """Return those of both."""
        parts = [part.turns(begin, end) for part in (self.one, self.other) if part.in_time]
        return np.unique(np.concatenate(parts)) if parts else super().turns(begin, end)


class Product(_Two):
    """The product of two values."""

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Return it, ``q = one * other``."""
        return np.asarray(self.one.values(places, time)) * np.asarray(self.other.values(places, time))

    def term(self, slots: Slots) -> Any:
        """Return the product of what loops compute."""
        return Times(self.one.term(slots), self.other.term(slots))

    def __str__(self) -> str:
        return f"{self.one} * {self.other}"


class Sum(_Two):
    """The sum of two values."""

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Return it, ``q = one + other``."""
        return np.asarray(self.one.values(places, time)) + np.asarray(self.other.values(places, time))

    def term(self, slots: Slots) -> Any:
        """Return the sum of what loops compute."""
        return Plus(self.one.term(slots), self.other.term(slots))

    def __str__(self) -> str:
        return f"{self.one} + {self.other}"


@dataclass(frozen=True)
class Direction(Value):
    """A component of a vector, made a unit vector.

    Attributes
    ----------
    parts
        The components of the vector.
    component
        Which one it is.
    """

    parts: tuple[Value, ...] = field(metadata=PYTHON_ONLY)
    component: int = field(metadata=PYTHON_ONLY)

    @property
    def in_time(self) -> bool:
        """Whether a component does."""
        return any(part.in_time for part in self.parts)

    @property
    def in_space(self) -> bool:
        """Whether a component does."""
        return any(part.in_space for part in self.parts)

    def values(self, places: Array, time: float) -> npt.ArrayLike:
        """Return it, ``q = v_component / |v|``; NaN where there is no direction."""
        found = [np.asarray(part.values(places, time), dtype=np.float64) for part in self.parts]
        with np.errstate(all="ignore"):
            return found[self.component] / np.sqrt(sum(part * part for part in found))

    def term(self, slots: Slots) -> Any:
        """Return the component of what loops compute."""
        return OfUnit(self.component, tuple(part.term(slots) for part in self.parts))

    def __str__(self) -> str:
        return f"component {self.component} of the direction ({', '.join(map(str, self.parts))})"


# ------------------------------------------------------------------------------------------ what is given


def value_of(given: Any, what: str = "") -> Value:
    """Return the value that a user gives.

    Parameters
    ----------
    given
        A number; a formula in x, y, z and t, as text; a function of places ``(n, d)``, or of places and a time, that
        returns ``(n,)``; an array ``(n,)`` of a number for each of them; a `Value`.
    what
        Begins messages.

    Raises
    ------
    SolverError
        If it is none of them, or not finite; says what it may be.
    CaseError
        If a formula is wrong.
    """
    if isinstance(given, Value):
        return given
    if isinstance(given, str):
        return Formula(given)
    if isinstance(given, (int, float, np.integer, np.floating)) and not isinstance(given, bool):
        if not isfinite(given):
            raise SolverError(f"{what}: {given!r} is not finite" if what else f"{given!r} is not finite")
        return Constant(float(given))
    if callable(given):
        return Called(cast(Function, given))
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "fiu":
        return AtPlaces(given)
    about = f"{what}: " if what else ""
    raise SolverError(f"{about}a number, a formula in quotes, a function or a table is wanted, not {given!r}")


def has_values(given: Any) -> bool:
    """Return whether a number or a vector that a user gives has formulas, tables or the like, or depends on the time.

    Numbers, arrays of them and functions of the places alone do not.
    """
    if isinstance(given, str | Value) or hasattr(given, "parts"):
        return True
    if isinstance(given, Sequence):
        return any(has_values(one) for one in given)
    return callable(given) and _takes_time(given)


def vector_of(given: Any, components: int, what: str = "") -> tuple[Value, ...]:
    """Return the components of a vector that a user gives.

    Parameters
    ----------
    given
        A value for each component, nothing for zeros; a function of places, or of places and a time, that returns
        ``(n, components)``; or what has them, as `fluxloom.values.fluctuation.Fluctuation`: a method ``parts``.
    components
        How many it has.
    what
        Begins messages.

    Raises
    ------
    SolverError
        If there are others than as many.
    """
    if callable(parts := getattr(given, "parts", None)):
        return tuple(cast(Sequence[Value], parts(components)))
    if callable(given) and not isinstance(given, Value):
        whole = _LastCall(cast(Function, given))
        return tuple(Called(whole, k, components) for k in range(components))
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        if not len(given):
            return (Constant(0.0),) * components
        if isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1] == components:
            return tuple(AtPlaces(column) for column in given.T)
        if len(given) == components:
            return tuple(value_of(one, what) for one in given)
    raise SolverError(f"{what}: a vector of {components} components is wanted, or a function, not {given!r}")
