"""What is known at one point of a kernel on every path that leads there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fluxloom.kernel.analysis import expressions
from fluxloom.kernel.ir import RAGGED, Constant, Expression, Local
from fluxloom.kernel.values import ArrayView, ParameterView, TupleValue, Value

__all__ = ["ALL", "Coordinate", "Flow"]

LISTED_TRIPS = 4096  # a longer loop counts as writing only what it covers whole

ALL = "*"
"""A coordinate of a written component that stands for the whole extent of its dimension."""

Coordinate = int | str | Local


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
    """

    assigned: set[str] = field(default_factory=set)
    known: dict[tuple[str, tuple[int, ...]], Constant] = field(default_factory=dict)
    bound: dict[str, Value] = field(default_factory=dict)
    written: set[tuple[str, tuple[Coordinate, ...]]] = field(default_factory=set)

    def copy(self) -> Flow:
        """Return an independent copy."""
        return Flow(set(self.assigned), dict(self.known), dict(self.bound), set(self.written))

    def meet(self, other: Flow) -> Flow:
        """Return what holds on both of two paths."""
        return Flow(
            self.assigned & other.assigned,
            {key: value for key, value in self.known.items() if other.known.get(key) == value},
            {key: value for key, value in self.bound.items() if other.bound.get(key) == value},
            self.written & other.written,
        )

    def forget(self, names: Iterable[str], kept: Iterable[str]) -> None:
        """Drop what a loop body that assigns ``names`` may change between its iterations.

        Names in ``kept`` go on standing for the array or view that they stand for.
        """
        gone = set(names)
        # arrays can be changed through aliases and helpers, so every element is dropped
        self.known = {key: value for key, value in self.known.items() if key[0] not in gone and not key[1]}
        gone -= set(kept)
        self.bound = {key: value for key, value in self.bound.items() if key not in gone}

    def end_loop(self, variable: str, trips: range | None, extents: Callable[[str], tuple[int, ...]]) -> None:
        """Leave a loop: views through its variable end; writes through it become the components it covered.

        ``trips`` is what the variable ran over; ``None`` when only the lengths of ragged arguments tell,
        and then it ran over all their legs.
        """
        self.bound = {key: value for key, value in self.bound.items() if not mentions(value, variable)}
        written: set[tuple[str, tuple[Coordinate, ...]]] = set()
        for name, path in self.written:
            places = [p for p, item in enumerate(path) if isinstance(item, Local) and item.name == variable]
            if not places:
                written.add((name, path))
            elif all(_covers_extent(trips, extents(name)[place]) for place in places) and len(places) == 1:
                written.add((name, tuple(ALL if p in places else item for p, item in enumerate(path))))
            elif trips is not None and len(trips) <= LISTED_TRIPS:
                written |= {(name, tuple(trip if p in places else c for p, c in enumerate(path))) for trip in trips}
        self.written = written


def _covers_extent(trips: range | None, extent: int) -> bool:
    return extent == RAGGED if trips is None else trips == range(extent)


def mentions(value: Value, variable: str) -> bool:
    """Whether a view is indexed with a local."""
    if isinstance(value, TupleValue):
        return any(mentions(item, variable) for item in value.items)
    parts: tuple[Expression, ...] = ()
    if isinstance(value, (ParameterView, ArrayView)):
        parts = value.path
    elif isinstance(value, Expression):
        parts = (value,)
    return any(isinstance(node, Local) and node.name == variable for part in parts for node in expressions(part))
