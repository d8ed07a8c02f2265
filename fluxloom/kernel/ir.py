"""The intermediate representation of a kernel body: small, frozen, typed by three kinds.

A kernel knows nothing of storage precision: a value is ``REAL`` (printed in the compute precision of
the loop), ``INT`` (64-bit) or ``BOOL``. Storage types appear only where the loop loads and stores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import ClassVar

from fluxloom.core.access import Access

__all__ = [
    "RAGGED",
    "ArgShape",
    "Assign",
    "Binary",
    "Boolean",
    "Call",
    "Cast",
    "Compare",
    "Conditional",
    "Constant",
    "ConstantParameter",
    "Expression",
    "For",
    "If",
    "Kind",
    "Length",
    "Local",
    "LocalArray",
    "LocalElement",
    "Location",
    "LoweredKernel",
    "Negate",
    "Not",
    "Parameter",
    "Read",
    "ReadConstant",
    "SpreadShape",
    "Statement",
    "Store",
    "StoreLocal",
    "Table",
    "TableElement",
    "Update",
    "While",
]


class Kind(Enum):
    """The three kinds of value in a kernel."""

    REAL = "real"
    INT = "int"
    BOOL = "bool"


RAGGED = -1
"""`ArgShape.legs` of an argument through a whole ragged map: the number of legs differs by element."""


@dataclass(frozen=True)
class Location:
    """Where a node came from in the user's source (1-based line, 0-based column).

    ``inside`` is the file and line in a helper, whose call is at the line and column.
    """

    line: int = 0
    column: int = 0
    inside: tuple[str, int] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ArgShape:
    """How a parameter is indexed in this loop.

    Attributes
    ----------
    legs
        ``None``: no leg index (direct argument, one leg of a map, or a global); ``n > 0``: the
        whole of a map of that arity; `RAGGED`: the whole of a ragged map.
    components
        Shape of one element's value; ``()`` for a scalar dat.
    kind
        `Kind.REAL` or `Kind.INT`.
    is_global
        Whether the argument is a `Global`.
    """

    legs: int | None
    components: tuple[int, ...]
    kind: Kind
    is_global: bool = False


@dataclass(frozen=True)
class SpreadShape(ArgShape):
    """How a ``Write`` parameter through a whole stencil is indexed: each component is written through one leg."""


@dataclass(frozen=True)
class Parameter:
    """A positional (data) parameter of a kernel; an ``optional`` one may be left out by a loop."""

    name: str
    access: Access
    location: Location = Location()
    optional: bool = field(default=False, compare=False, kw_only=True)


@dataclass(frozen=True)
class ConstantParameter:
    """A keyword-only parameter: a run-time scalar, or a baked value when ``baked``."""

    name: str
    kind: Kind
    baked: bool
    location: Location = Location()


# ---------------------------------------------------------------------------------- expressions


def _parts(node: type) -> tuple[str, ...]:
    """Return the fields of a node that hold expressions, by their annotations."""
    return tuple(name for name, kind in node.__annotations__.items() if kind.startswith(_EXPRESSIONS))


_EXPRESSIONS = ("Expression", "tuple[Expression")


@dataclass(frozen=True)
class Expression:
    """Base of expressions; ``kind`` is the kind of its value.

    ``parts`` are the fields that hold other expressions: one, a tuple of them, or None.
    """

    kind: Kind
    parts: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.parts = _parts(cls)

    @cached_property
    def depth(self) -> int:
        """How many expressions are inside each other."""
        inside = [getattr(self, name) for name in self.parts]
        nodes = [node for part in inside for node in (part if isinstance(part, tuple) else (part,)) if node is not None]
        return 1 + max((node.depth for node in nodes), default=0)


@dataclass(frozen=True)
class Constant(Expression):
    """A literal."""

    value: float | int | bool


@dataclass(frozen=True)
class Local(Expression):
    """The value of a scalar local variable."""

    name: str


@dataclass(frozen=True)
class LocalElement(Expression):
    """One element of a fixed-size local array; one index per dimension."""

    name: str
    index: tuple[Expression, ...]


@dataclass(frozen=True)
class TableElement(Expression):
    """One element of a constant table (`LoweredKernel.tables`); some index is known at run time only."""

    name: str
    index: tuple[Expression, ...]


@dataclass(frozen=True)
class ReadConstant(Expression):
    """The value of a run-time constant parameter (baked ones are folded to `Constant`)."""

    name: str


@dataclass(frozen=True)
class Read(Expression):
    """The value of one component of a data parameter.

    ``leg`` is ``None`` when the argument has no leg index. ``index`` has one entry a dimension of
    the component shape, and is ``()`` for a scalar dat.
    """

    parameter: str
    leg: Expression | None
    index: tuple[Expression, ...]


@dataclass(frozen=True)
class Length(Expression):
    """The number of legs of a ragged argument for this element: ``len(x)``."""

    parameter: str


@dataclass(frozen=True)
class Negate(Expression):
    """``-operand``."""

    operand: Expression


@dataclass(frozen=True)
class Not(Expression):
    """``not operand``."""

    operand: Expression


@dataclass(frozen=True)
class Binary(Expression):
    """Arithmetic on operands of one kind. ``op`` is one of ``+ - * / // %``; ``/`` always yields a real."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Compare(Expression):
    """A comparison of two values: ``< <= > >= == !=``."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Boolean(Expression):
    """``and`` / ``or`` of boolean values (no side effects, so evaluation order is free)."""

    op: str
    values: tuple[Expression, ...]


@dataclass(frozen=True)
class Conditional(Expression):
    """``yes if test else no``; only the chosen branch is evaluated."""

    test: Expression
    yes: Expression
    no: Expression


@dataclass(frozen=True)
class Call(Expression):
    """An intrinsic by its name in `fluxloom.kernel.intrinsics`: ``sqrt``, ``min``, ``abs`` ..."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Cast(Expression):
    """Conversion between kinds: ``float(i)``, ``int(x)`` (towards zero), ``bool(i)``."""

    operand: Expression


# ----------------------------------------------------------------------------------- statements


@dataclass(frozen=True)
class Statement:
    """Base of statements; ``parts`` are the fields that hold expressions, as those of `Expression`."""

    location: Location = field(default=Location(), kw_only=True, compare=False)
    parts: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.parts = _parts(cls)


@dataclass(frozen=True)
class Assign(Statement):
    """``name = value`` for a scalar local."""

    name: str
    value: Expression


@dataclass(frozen=True)
class StoreLocal(Statement):
    """``name[index] = value`` for a local array."""

    name: str
    index: tuple[Expression, ...]
    value: Expression


@dataclass(frozen=True)
class Store(Statement):
    """``parameter[leg][index] = value`` for a ``Write`` or ``RW`` parameter."""

    parameter: str
    leg: Expression | None
    index: tuple[Expression, ...]
    value: Expression


@dataclass(frozen=True)
class Update(Statement):
    """A contribution to an ``Inc`` (``op`` "+"), ``Min`` ("min") or ``Max`` ("max") parameter."""

    parameter: str
    leg: Expression | None
    index: tuple[Expression, ...]
    op: str
    value: Expression


@dataclass(frozen=True)
class If(Statement):
    """A conditional; both branches may be empty."""

    test: Expression
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...]


@dataclass(frozen=True)
class For(Statement):
    """A counted loop that was not unrolled: ``for name in range(start, stop, step)``, constant ``step``."""

    name: str
    start: Expression
    stop: Expression
    step: int
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class While(Statement):
    """A loop whose number of trips the checker could bound."""

    test: Expression
    body: tuple[Statement, ...]


# --------------------------------------------------------------------------------------- kernel


@dataclass(frozen=True)
class LocalArray:
    """Declaration of a fixed-size local array."""

    name: str
    kind: Kind
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """A constant array that is indexed at run time: ``values`` in row-major order."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    values: tuple[float | int | bool, ...]


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel specialised to the shapes of one loop: typed, checked, folded, unrolled.

    Attributes
    ----------
    name
        The name of the Python function.
    parameters, shapes
        The data parameters in order, and how each is indexed here.
    constants
        The run-time constant parameters that the body reads, in order of declaration.
    scalars
        Kind of every scalar local (loop variables included); declared at the top in C.
    arrays
        The local arrays.
    body
        The statements.
    digest
        Of all above but its names, see `fluxloom.kernel.lowering`: equal digests mean code that differs by names alone.
    flops
        Floating-point operations of one element along the longest path, with the trip count of
        ragged loops taken as 1 (add, multiply, divide, sqrt, min, max, abs and compare count 1).
    tables
        The constant arrays that the body indexes at run time.
    """

    name: str
    parameters: tuple[Parameter, ...]
    shapes: tuple[ArgShape, ...]
    constants: tuple[ConstantParameter, ...]
    scalars: tuple[tuple[str, Kind], ...]
    arrays: tuple[LocalArray, ...]
    body: tuple[Statement, ...]
    digest: str
    flops: int
    tables: tuple[Table, ...] = ()
