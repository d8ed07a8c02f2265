"""What is known at one point of a kernel on every path that leads there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import islice

from fluxloom.kernel import fold
from fluxloom.kernel.analysis import expressions, map_expression
from fluxloom.kernel.counters import Counted, is_counted, trips, value_of
from fluxloom.kernel.ir import RAGGED, Binary, Constant, Expression, Kind, Local
from fluxloom.kernel.values import ArrayView, FunctionValue, ParameterView, RecordValue, Value, inner_values

__all__ = ["ALL", "Coordinate", "Flow", "Written"]

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
