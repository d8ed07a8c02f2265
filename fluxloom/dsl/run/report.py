"""What a loop did: calls, time, useful bytes, how it ran."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from fluxloom.codegen.language.spec import comment_text
from fluxloom.core.access import Access
from fluxloom.core.dtypes import Blocked, SoA
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import BoundArgument, EntriesMap, RaggedMap, TableMap
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.dsl.plan.bind import Bound
from fluxloom.dsl.plan.plan import targets_met
from fluxloom.kernel.analysis import touched_components

__all__ = ["LoopReport", "Moved", "layouts", "moved", "useful_bytes", "vectorised"]

_LINE = 64
"""Bytes that move together between memory and the caches."""


@dataclass(frozen=True)
class LoopReport:
    """Counters of one loop or fused group.

    Attributes
    ----------
    name
        Name of the loop; of a fused group the names joined with ``+``.
    calls, seconds
        How often it ran and how long in all.
    useful_bytes
        Bytes a call has to move at least: each distinct dat once (twice for Inc and RW), plus maps (see `moved`).
    strategy, colours, block, lanes
        The schedule it ran with.
    vectorised
        Whether the compiler vectorised the kernel; None where it does not say.
    redundancy
        How often an element is computed, on average.
    layout
        Layouts of the values with several components: ``"aos"``, ``"aos+soa"``; empty where there are none.
    """

    name: str
    calls: int
    seconds: float
    useful_bytes: int
    strategy: str
    colours: int
    lanes: int
    vectorised: bool | None
    block: int
    redundancy: float = 1.0
    layout: str = ""

    @property
    def gbs(self) -> float:
        """Useful gigabytes a second."""
        return self.useful_bytes * self.calls / self.seconds / 1e9 if self.seconds else 0.0


def layouts(bounds: Iterable[Bound]) -> str:
    """Return the layouts of the values with several components that some loops use."""
    dats = [a.data for bound in bounds for a in bound.arguments if isinstance(a.data, Dat) and a.data.dim > 1]
    return "+".join(sorted({type(dat.layout).__name__.lower() for dat in dats}))


@dataclass(frozen=True)
class Moved:
    """Bytes that some loops run together have to move: values they read, values they write, and their maps."""

    read: int
    written: int
    maps: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.read + self.written + self.maps


def useful_bytes(bounds: tuple[Bound, ...], *, elided: frozenset[int] = frozenset()) -> int:
    """Return the bytes that some loops run together have to move (see `moved`)."""
    return moved(bounds, elided=elided).total


def moved(bounds: tuple[Bound, ...], *, elided: frozenset[int] = frozenset()) -> Moved:
    """Return the bytes that some loops run together have to move.

    Each distinct dat counts once over the elements that the loops reach, twice when it is both read
    and written (Inc, RW, or written by one loop after another read it); each map counts once.

    Components that lie apart in memory (``SoA``, and ``Blocked`` with blocks that fill lines of the caches) count one
    by one: those that no kernel touches stay where they are. With ``AoS`` the lines hold them all, and all count.

    Parameters
    ----------
    elided
        ``id`` of dats that live in registers or tile buffers only.
    """
    parts: dict[tuple[int, Hashable], _Part] = {}
    maps: dict[int, int] = {}
    for bound in bounds:
        for arg in bound.arguments:
            if not isinstance(arg.data, Dat):
                continue
            reached = _reached(bound, arg.map)
            for name, width in _met(bound, arg):
                known = parts.get((id(arg.data), name), _Part(0, False, False))
                old = arg.map is not None if known.written else arg.access is not Access.WRITE
                size = max(known.size, reached * width * arg.data.scalar.size)
                written = known.written or arg.access.writes
                parts[id(arg.data), name] = _Part(size, known.read or old, written)
            if arg.map is not None:
                maps[id(arg.map)] = _map_bytes(bound, arg.map, arg.data)
    counted = [part for (key, _), part in parts.items() if key not in elided]
    read, written = (sum(p.size for p in counted if p.read), sum(p.size for p in counted if p.written))
    return Moved(read, written, sum(maps.values()))


@dataclass(frozen=True)
class _Part:
    """A component of a dat, or all of it: bytes over the elements that are reached, and whether they come and go."""

    size: int
    read: bool
    written: bool


def _met(bound: Bound, arg: BoundArgument) -> Iterable[tuple[Hashable, int]]:
    """Yield what a kernel meets of a dat: through slots one number a leg, else what it touches."""
    assert isinstance(arg.data, Dat)
    if isinstance(arg.map, SlotMap):
        return [(("slots", id(arg.map), arg.leg), arg.map.legs if arg.leg < 0 else 1)]
    return _touched(bound, arg.name, arg.data)


def _touched(bound: Bound, parameter: str, dat: Dat) -> Iterable[tuple[Hashable, int]]:
    """Yield what a kernel touches of a dat: names of parts that lie apart, and the number of components of each."""
    place = next(k for k, item in enumerate(bound.lowered.parameters) if item.name == parameter)
    key = ("touched", bound.lowered.digest, place)  # kernels of one digest may differ by the names of their parameters
    found = bound.over.context.plans.once(bound.over, key, lambda: touched_components(bound.lowered, parameter))
    components = found if found is not None else set(product(*map(range, dat.shape)))
    if _apart(dat):
        return [(component, 1) for component in components]
    return [("whole", dat.dim)] if components else []


def _apart(dat: Dat) -> bool:
    """Whether the components of a dat are in lines of their own."""
    layout = dat.layout
    return isinstance(layout, SoA) or (isinstance(layout, Blocked) and layout.size * dat.scalar.size >= _LINE)


def _reached(bound: Bound, through: object) -> int:
    if isinstance(through, TableMap):
        over, key = bound.over, ("met", id(through), id(bound.over))
        return over.context.plans.once(over, key, lambda: targets_met(over, through), over, through)
    if isinstance(through, RaggedMap):
        return through.target.size
    if isinstance(through, EntriesMap):
        return through.ragged.entries.size
    return bound.over.size


def _map_bytes(bound: Bound, through: object, dat: Dat) -> int:
    if isinstance(through, TableMap):
        return bound.over.size * through.legs * 4
    if isinstance(through, RaggedMap):
        return through.indices.size * 4 + through.offsets.size * 8
    if isinstance(through, SlotMap):
        return bound.over.size * through.legs * (8 if through.places(dat).wide else 4)
    return 0


def vectorised(source: str, lines: Mapping[int, str], bound: Bound, lanes: int) -> bool | None:
    """Return whether the compiler vectorised the lane loops of a kernel (None: no report).

    A kernel without arithmetic has nothing left to vectorise: its rows move as vectors anyway.
    """
    name = bound.name
    if lanes <= 1:
        return False
    if bound.lowered.flops == 0:
        return True
    name = comment_text(name)
    begin, end = f"/* lanes {lanes}: {name} */", f"/* end lanes {lanes}: {name} */"
    if not lines or begin not in source:
        return None
    start = source.find(begin)
    while start >= 0:
        stop = source.find(end, start)
        stop = len(source) if stop < 0 else stop
        first = source.count("\n", 0, start)  # clang names the line of the pragma, gcc that of the first statement
        last = first + 1 + source.count("\n", start, stop)
        if any(first <= number <= last for number in lines):
            return True
        start = source.find(begin, stop)
    return False
