"""Access modes: how a kernel uses each of its parameters.

The classes below are *annotations*. A kernel parameter annotated ``q: Read`` promises that the
body never assigns it; the promise is checked when the kernel is defined.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

__all__ = ["RW", "Access", "Const", "Inc", "Max", "Min", "Read", "Write"]

T = TypeVar("T")


class Access(Enum):
    """The access modes of the loop model."""

    READ = "Read"
    WRITE = "Write"
    RW = "RW"
    INC = "Inc"
    MIN = "Min"
    MAX = "Max"

    @property
    def reads(self) -> bool:
        """Whether the old value of the dat matters to the loop."""
        return self is not Access.WRITE

    @property
    def writes(self) -> bool:
        """Whether the loop changes the dat."""
        return self is not Access.READ

    @property
    def reduces(self) -> bool:
        """Whether contributions combine in any order (``Inc``, ``Min``, ``Max``)."""
        return self is Access.INC or self is Access.MIN or self is Access.MAX


class _Readable:
    """What the body of a kernel may do with a parameter it only reads."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("an access annotation is not a value")

    def __len__(self) -> int:
        raise NotImplementedError("an access annotation is not a value")


class _Assignable(_Readable):
    """What the body of a kernel may do with a parameter it changes."""

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedError("an access annotation is not a value")


class Read(_Readable):
    """The parameter is read and never assigned."""

    access = Access.READ


class Write(_Assignable):
    """Every component is written on every path before it is read; the old value is lost."""

    access = Access.WRITE


class RW(_Assignable):
    """The parameter is read and written."""

    access = Access.RW


class Inc(_Assignable):
    """The parameter is only incremented (``+=``, ``-=``); contributions of elements add up."""

    access = Access.INC


class Min(_Assignable):
    """The parameter only takes minima: ``p[0] = min(p[0], value)``."""

    access = Access.MIN


class Max(_Assignable):
    """The parameter only takes maxima: ``p[0] = max(p[0], value)``."""

    access = Access.MAX


if TYPE_CHECKING:
    Const: TypeAlias = Annotated[T, "constant"]  # in the body of a kernel it is a value
else:

    class Const(Generic[T]):
        """Annotation of a keyword-only parameter whose value is baked into the generated code.

        ``gamma: Const[float]`` is a scalar; ``Const[list[float]]`` and ``Const[list[int]]`` (or
        nested lists) are small constant arrays such as lattice vectors or quadrature weights.
        """
