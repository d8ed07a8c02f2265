"""The state of one lowering: the block being emitted, names and kinds of locals.

`Flow` is what is known at one point of a kernel on every path that leads there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import prod
from typing import TypeVar

from fluxloom.kernel import fold, ir
from fluxloom.kernel.analysis import (
    Counted,
    constant_index,
    expressions,
    is_counted,
    map_expression,
    node_count,
    trips,
    value_of,
)
from fluxloom.kernel.fold import FoldError, convert, join
from fluxloom.kernel.ir import RAGGED, Binary, Constant, Expression, Kind, Local
from fluxloom.kernel.source import FunctionSource
from fluxloom.kernel.values import (
    ArrayView,
    ConstantArray,
    FunctionValue,
    ParameterView,
    RecordValue,
    StoredField,
    Value,
    inner_values,
)

__all__ = ["ALL", "Branch", "Builder", "Coordinate", "Flow", "Rebound", "Scope", "Slot", "UnrollOverflow", "Written"]

LISTED_TRIPS = 4096  # a longer loop counts as writing only what it covers whole
LISTED_NESTS = 1 << 16  # and so do nests of loops with more trips

STRATEGIES = (RecordValue, FunctionValue)

ALL = "*"
"""A coordinate of a written component that stands for the whole extent of its dimension."""

Coordinate = int | str | Expression


@dataclass(frozen=True)
class Written:
    """A component of a ``Write`` parameter that has been written, or one in each trip of some loops.

    Attributes
    ----------
    path
        Leg and component: numbers, `ALL`, or expressions of counters.
    loops
        Loops that have ended, outermost first, whose counters appear in ``path``; their bounds depend on the counters
        of loops that go on.
    """

    parameter: str
    path: tuple[Coordinate, ...]
    loops: tuple[Counted, ...] = ()

    def open_counters(self) -> frozenset[str]:
        """Return the counters of loops that go on, on which it depends."""
        bounds = [bound for loop in self.loops for bound in (loop.start, loop.stop)]
        parts = [*bounds, *(item for item in self.path if isinstance(item, Expression))]
        names = {node.name for part in parts for node in expressions(part) if isinstance(node, Local)}
        return frozenset(names - {loop.name for loop in self.loops})

    def listed(self) -> set[Written]:
        """Return the components of all trips, or nothing if there are too many."""
        every = list(islice(trips(self.loops), LISTED_NESTS + 1))
        if len(every) > LISTED_NESTS:
            return set()
        places = {
            tuple(value_of(item, trip) if isinstance(item, Expression) else item for item in self.path)
            for trip in every
        }  # fmt: skip
        return {Written(self.parameter, place) for place in places}


@dataclass
class Flow:
    """What is known at one point of the program, on every path that leads there.

    Attributes
    ----------
    assigned
        Scalar locals that have a value.
    known
        Constant values of scalar locals (index ``()``) and elements of local arrays.
    bound
        Names that stand for something other than a scalar local: parameters, views, arrays, tuples,
        the variable of an unrolled loop.
    written
        Components of ``Write`` parameters that have been written.
    parted
        Names that stand for different records or formulas on paths that lead here.
    """

    assigned: set[str] = field(default_factory=set)
    known: dict[tuple[str, tuple[int, ...]], Constant] = field(default_factory=dict)
    bound: dict[str, Value] = field(default_factory=dict)
    written: set[Written] = field(default_factory=set)
    parted: set[str] = field(default_factory=set)

    def copy(self) -> Flow:
        """Return an independent copy."""
        return Flow(set(self.assigned), dict(self.known), dict(self.bound), set(self.written), set(self.parted))

    def meet(self, other: Flow) -> Flow:
        """Return what holds on both of two paths."""
        return Flow(
            self.assigned & other.assigned,
            {key: value for key, value in self.known.items() if other.known.get(key) == value},
            {key: value for key, value in self.bound.items() if other.bound.get(key) == value},
            self.written & other.written,
            self.parted | other.parted | _parted(self.bound, other.bound),
        )

    def forget(self, names: Iterable[str], kept: Iterable[str]) -> None:
        """Drop what a loop body that assigns ``names`` may change between its iterations.

        Names in ``kept`` go on standing for the array or view that they stand for.
        """
        gone = set(names)
        # arrays can be changed through aliases and helpers, so every element is dropped
        self.known = {key: value for key, value in self.known.items() if key[0] not in gone and not key[1]}
        gone -= set(kept)
        self.parted |= {key for key in gone & self.bound.keys() if isinstance(self.bound[key], STRATEGIES)}
        self.bound = {key: value for key, value in self.bound.items() if key not in gone}

    def end_loop(self, variable: str, trips: range | None, extents: Callable[[str], tuple[int, ...]]) -> None:
        """Leave a loop: views through its variable end; writes through it become the components it covered.

        ``trips`` is what the variable ran over; ``None`` when only the lengths of ragged arguments tell,
        and then it ran over all their legs.
        """
        self.bound = {key: value for key, value in self.bound.items() if not mentions(value, variable)}
        written: set[Written] = set()
        for item in self.written:
            path = item.path
            places = [p for p, part in enumerate(path) if isinstance(part, Local) and part.name == variable]
            if variable not in item.open_counters():
                written.add(item)
            elif len(places) == 1 and not item.loops and _covers_extent(trips, extents(item.parameter)[places[0]]):
                written.add(replace(item, path=tuple(ALL if p in places else part for p, part in enumerate(path))))
            elif trips is not None and item.loops:
                written |= _each_trip(item, Counted(variable, *_bounds(trips)))
            elif trips is not None and len(trips) <= LISTED_TRIPS:
                written |= {replace(item, path=_in_trip(path, variable, trip)) for trip in trips}
        self.written = written

    def end_counted(self, loop: Counted, before: set[Written], counters: frozenset[str]) -> None:
        """Leave a loop that may have no trips: what its body wrote, it wrote in each trip there was.

        ``before`` had been written ahead of the loop; ``counters`` are those of the loops around it.
        """
        self.bound = {key: value for key, value in self.bound.items() if not mentions(value, loop.name)}
        known = all(is_counted(bound, counters) for bound in (loop.start, loop.stop))
        kept = self.written & before
        for item in self.written - before if known else ():
            kept |= _each_trip(item, loop)
        self.written = kept


def _parted(one: dict[str, Value], other: dict[str, Value]) -> set[str]:
    return {key for key in one.keys() & other.keys() if isinstance(one[key], STRATEGIES) and one[key] != other[key]}


def _in_trip(path: tuple[Coordinate, ...], variable: str, trip: int) -> tuple[Coordinate, ...]:
    """Return a path in one trip of the loop over a variable."""

    def change(node: Expression) -> Expression:
        if isinstance(node, Local) and node.name == variable:
            return fold.integer(trip)
        return fold.binary(node.op, node.left, node.right) if isinstance(node, Binary) else node

    new = [map_expression(part, change) if isinstance(part, Expression) else part for part in path]
    return tuple(int(part.value) if isinstance(part, Constant) else part for part in new)


def _each_trip(item: Written, loop: Counted) -> set[Written]:
    """Return what has been written when a loop has ended whose body writes ``item``."""
    whole = replace(item, loops=(loop, *item.loops))
    return {whole} if whole.open_counters() else whole.listed()


def _bounds(trips: range) -> tuple[Expression, Expression, int]:
    return Constant(Kind.INT, trips.start), Constant(Kind.INT, trips.stop), trips.step


def _covers_extent(trips: range | None, extent: int) -> bool:
    return extent == RAGGED if trips is None else trips == range(extent)


def mentions(value: Value, variable: str) -> bool:
    """Whether a view is indexed with a local."""
    inside = inner_values(value)
    if inside:
        return any(mentions(item, variable) for item in inside)
    parts: tuple[Expression, ...] = ()
    if isinstance(value, (ParameterView, ArrayView)):
        parts = value.path
    elif isinstance(value, Expression):
        parts = (value,)
    return any(isinstance(node, Local) and node.name == variable for part in parts for node in expressions(part))


T = TypeVar("T")

Branch = tuple[T, list[ir.Statement], Flow]
"""What a branch gives, its statements, and what is known at its end."""


class UnrollOverflow(Exception):
    """Unrolling a loop produced too many nodes; caught by the loop of that depth."""

    def __init__(self, depth: int) -> None:
        super().__init__(depth)
        self.depth = depth


class Rebound(Exception):
    """A loop body leaves a name standing for another array than it stood for before."""


@dataclass(frozen=True)
class Slot:
    """Storage of one local array; ``commas`` when ``a[i, j]`` is legal Python for it."""

    name: str
    shape: tuple[int, ...]
    commas: bool


@dataclass(frozen=True)
class Scope:
    """One activation of a function: its source and the unique names of its locals.

    ``call`` is the location of the outermost call in the kernel, for statements of inlined helpers.
    """

    source: FunctionSource
    names: Mapping[str, str]
    call: ir.Location | None = None
    active: tuple[FunctionValue, ...] = ()

    def place(self, node: ast.AST) -> ir.Location:
        """Return where a node is: in the kernel, or at the call in the kernel and at a line inside a helper."""
        if self.call is None:
            return self.source.location(node)
        return replace(self.call, inside=(self.source.filename, getattr(node, "lineno", self.source.first_line)))


class Builder:
    """Emits statements into nested blocks and keeps names, kinds and `Flow`.

    Parameters
    ----------
    parameters, shapes
        The data parameters and how each is indexed.
    kinds
        Kinds of locals found by the previous pass; lowering repeats until they stop changing.
    reserved
        Names that locals may not take.
    """

    def __init__(
        self,
        parameters: Mapping[str, ir.Parameter],
        shapes: Mapping[str, ir.ArgShape],
        kinds: Mapping[str, Kind],
        reserved: Iterable[str],
    ) -> None:
        self.parameters = parameters
        self.shapes = shapes
        self.kinds: dict[str, Kind] = dict(kinds)
        self.changed = False
        self.slots: dict[str, Slot] = {}
        self.scalars: set[str] = set()
        self.loops: dict[str, range | None] = {}
        self.tables: dict[str, ConstantArray] = {}
        self.effects: list[str] = []
        self.fields: dict[tuple[str, str], str] = {}
        self.owners: dict[str, list[str]] = {}
        self.used: set[str] = set(reserved)
        self.numbers: dict[str, int] = {}
        self.flow = Flow()
        self.blocks: list[list[ir.Statement]] = [[]]
        self.nodes = 0
        self.limits: list[int] = []
        self.where = ir.Location()

    # ---------------------------------------------------------------------------------- blocks

    def emit(self, statement: ir.Statement) -> None:
        """Append a statement to the current block.

        Raises
        ------
        UnrollOverflow
            When the outermost loop being unrolled has grown too much.
        """
        self.blocks[-1].append(statement)
        self.nodes += node_count(statement)
        for depth, limit in enumerate(self.limits):
            if self.nodes > limit:
                raise UnrollOverflow(depth)

    @contextmanager
    def block(self) -> Iterator[list[ir.Statement]]:
        """Collect the statements emitted in the ``with`` body."""
        inner: list[ir.Statement] = []
        self.blocks.append(inner)
        try:
            yield inner
        finally:
            self.blocks.pop()

    def branch(self, lower: Callable[[], T]) -> Branch[T]:
        """Lower one way on from here; what is known here stays as it was."""
        before, self.flow = self.flow, self.flow.copy()
        with self.block() as statements:
            value = lower()
        after, self.flow = self.flow, before
        return value, statements, after

    def choose(self, test: ir.Expression, yes: Branch[T], no: Branch[T], where: ir.Location) -> None:
        """Emit a conditional whose branches have been lowered."""
        self.flow = yes[2].meet(no[2])
        self.emit(ir.If(test, tuple(yes[1]), tuple(no[1]), location=where))

    @contextmanager
    def attempt(self, limit: int | None = None) -> Iterator[None]:
        """Restore everything when the ``with`` body gives up with `UnrollOverflow` or `Rebound`, and re-raise.

        ``limit`` is the number of nodes that the body may add.
        """
        depth = len(self.limits)
        saved = (dict(self.kinds), self.changed, dict(self.slots), {k: list(v) for k, v in self.owners.items()},
                 set(self.used), self.flow.copy(), len(self.blocks), len(self.blocks[-1]),
                 self.nodes, dict(self.tables), set(self.scalars), dict(self.fields))  # fmt: skip
        if limit is not None:
            self.limits.append(self.nodes + limit)
        try:
            yield
        except (UnrollOverflow, Rebound):
            (self.kinds, self.changed, self.slots, self.owners, self.used, self.flow, levels, length,
             self.nodes, self.tables, self.scalars, self.fields) = saved  # fmt: skip
            del self.blocks[levels:]
            del self.blocks[-1][length:]
            raise
        finally:
            del self.limits[depth:]

    # ----------------------------------------------------------------------------------- names

    def unique(self, name: str) -> str:
        """Return ``name``, or ``name_2`` ... when it is taken, and reserve it."""
        candidate, number = name, self.numbers.get(name, 1)
        while candidate in self.used:
            number += 1
            candidate = f"{name}_{number}"
        self.numbers[name] = number
        self.used.add(candidate)
        return candidate

    def assign(self, name: str, value: ir.Expression) -> None:
        """Emit ``name = value``, widening the kind of the local when needed.

        Raises
        ------
        FoldError
            When a boolean is joined with a number.
        """
        if name in self.slots:
            raise FoldError(f"{name!r} is an array and a number", "use two names")
        kind = self._join(name, value.kind)
        self.scalars.add(name)
        value = convert(kind, value)
        self.emit(ir.Assign(name, value, location=self.where))
        self.flow.bound.pop(name, None)
        self.flow.assigned.add(name)
        if isinstance(value, ir.Constant):
            self.flow.known[name, ()] = value
        else:
            self.flow.known.pop((name, ()), None)

    def field(self, owner: str, name: str) -> str:
        """Return the local that holds a field of the record which the variable ``owner`` is, the same at each call."""
        if (owner, name) not in self.fields:
            self.fields[owner, name] = self.unique(f"{owner}_{name}")
        return self.fields[owner, name]

    def store_field(self, local: str, value: ir.Expression) -> StoredField:
        """Emit the assignment of a field of a record that is a variable; its value is read where it is used."""
        self.assign(local, value)
        self.flow.known.pop((local, ()), None)
        return StoredField(local)

    def _join(self, name: str, kind: Kind) -> Kind:
        old = self.kinds.get(name)
        new = kind if old is None else join(old, kind)
        if new is not old:
            self.changed = self.changed or old is not None
            self.kinds[name] = new
        return new

    def local(self, name: str) -> ir.Expression:
        """Return the value of an assigned scalar local, a constant when flow knows it."""
        known = self.flow.known.get((name, ()))
        return known if known is not None else ir.Local(self.kinds[name], name)

    def temporary(self, value: ir.Expression, name: str = "t") -> ir.Expression:
        """Return a value that later assignments cannot change: a constant, or a fresh local."""
        if isinstance(value, ir.Constant):
            return value
        fresh = self.unique(name)
        self.assign(fresh, value)
        return self.local(fresh)

    # ---------------------------------------------------------------------------------- arrays

    def slot(self, owner: str, shape: tuple[int, ...], commas: bool) -> Slot:
        """Return storage for a new array of the variable ``owner``.

        The storage of an earlier array of the same variable is taken again when nothing else
        refers to it, so both branches of an ``if`` may create the array.
        """
        for name in self.owners.get(owner, []):
            slot = self.slots[name]
            if slot.shape == shape and slot.commas == commas and not self._referenced(name, owner):
                return slot
        if owner in self.scalars:
            raise FoldError(f"{owner!r} is a number and an array", "use two names")
        slot = Slot(self.unique(owner), shape, commas) if self.owners.get(owner) else Slot(owner, shape, commas)
        self.used.add(slot.name)
        self.slots[slot.name] = slot
        self.owners.setdefault(owner, []).append(slot.name)
        return slot

    def _referenced(self, array: str, owner: str) -> bool:
        def refers(value: Value) -> bool:
            return any(map(refers, inner_values(value))) or (isinstance(value, ArrayView) and value.array == array)

        return any(name != owner and refers(value) for name, value in self.flow.bound.items())

    def store_local(self, name: str, index: tuple[ir.Expression, ...], value: ir.Expression) -> None:
        """Emit ``name[index] = value`` for a local array."""
        value = convert(self._join(name, value.kind), value)
        self.effects.append(name)
        self.emit(ir.StoreLocal(name, index, value, location=self.where))
        position = constant_index(index)
        if position is None:
            self.flow.known = {key: item for key, item in self.flow.known.items() if key[0] != name}
        elif isinstance(value, ir.Constant):
            self.flow.known[name, position] = value
        else:
            self.flow.known.pop((name, position), None)

    def element(self, name: str, index: tuple[ir.Expression, ...]) -> ir.Expression:
        """Return one element of a local array or a table, a constant when flow knows it."""
        if name in self.tables:
            return ir.TableElement(self.tables[name].kind, name, index)
        position = constant_index(index)
        known = self.flow.known.get((name, position)) if position is not None else None
        return known if known is not None else ir.LocalElement(self.kinds[name], name, index)

    # ------------------------------------------------------------------------- written components

    def extents(self, parameter: str) -> tuple[int, ...]:
        """Return the extent of each index of a parameter, leg first (`RAGGED` when it varies)."""
        shape = self.shapes[parameter]
        if shape.legs is None:
            return shape.components or (1,)
        return (shape.legs, *shape.components)

    def split(
        self, parameter: str, path: tuple[ir.Expression, ...]
    ) -> tuple[ir.Expression | None, tuple[ir.Expression, ...]]:
        """Return the leg and the component index of a complete path."""
        shape = self.shapes[parameter]
        if shape.legs is not None:
            return path[0], path[1:]
        return None, path if shape.components else ()

    def mark_written(self, parameter: str, path: tuple[ir.Expression, ...]) -> None:
        """Note that a component of a ``Write`` parameter has been written."""
        coordinates: list[Coordinate] = []
        for index in path:
            if isinstance(index, ir.Constant):
                coordinates.append(int(index.value))
            elif is_counted(index, self.loops):
                coordinates.append(index)
            else:
                return
        self.flow.written.add(Written(parameter, tuple(coordinates)))

    def first_unwritten(self, parameter: str, path: tuple[ir.Expression, ...] | None = None) -> tuple[int, ...] | None:
        """Return a component that may not have been written yet (among those of ``path``), or ``None``."""
        entries = {item.path for item in self.flow.written if item.parameter == parameter and not item.loops}
        wide = [path for path in entries if ALL in path]
        extents = self.extents(parameter)
        if path is not None:
            exact = tuple(int(index.value) if isinstance(index, ir.Constant) else index for index in path)
            if exact in entries:
                return None
        choices = []
        for position, extent in enumerate(extents):
            index = path[position] if path is not None else None
            if isinstance(index, ir.Constant):
                choices.append((int(index.value),))
            else:
                choices.append(tuple(range(extent)) if extent != RAGGED else (RAGGED,))
        for number in range(prod(len(choice) for choice in choices)):
            component: list[int] = []
            for choice in reversed(choices):
                number, digit = divmod(number, len(choice))
                component.insert(0, choice[digit])
            if tuple(component) not in entries and not any(_covers(entry, component) for entry in wide):
                return tuple(component)
        return None

    def first_unspread(self, parameter: str) -> tuple[int, ...] | None:
        """Return a component that may not have been written yet, through whatever leg, or ``None``."""
        found = {item.path[1:] for item in self.flow.written if item.parameter == parameter and not item.loops}
        for component in product(*map(range, self.shapes[parameter].components)):
            if not any(_covers(entry, list(component)) for entry in found):
                return component
        return None


def _covers(entry: tuple[Coordinate, ...], component: list[int]) -> bool:
    return all(have in (ALL, want) for have, want in zip(entry, component, strict=True))
