"""What a loop did: calls, time, useful bytes, how it ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fluxloom.codegen.spec import comment_text
from fluxloom.core.access import Access
from fluxloom.dsl.bind import Bound
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.maps import EntriesMap, RaggedMap, TableMap
from fluxloom.dsl.plan import targets_met

__all__ = ["LoopReport", "layouts", "useful_bytes", "vectorised"]


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
        Bytes a call has to move at least: each distinct dat once (twice for Inc and RW), plus maps.
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


def useful_bytes(bounds: tuple[Bound, ...], *, elided: frozenset[int] = frozenset()) -> int:
    """Return the bytes that some loops run together have to move.

    Each distinct dat counts once over the elements that the loops reach, twice when it is both read
    and written (Inc, RW, or written by one loop after another read it); each map counts once.

    Parameters
    ----------
    elided
        ``id`` of dats that live in registers or tile buffers only.
    """
    dats: dict[int, tuple[Dat, int, bool, bool]] = {}
    maps: dict[int, int] = {}
    for bound in bounds:
        for arg, parameter in zip(bound.arguments, bound.kernel.parameters, strict=True):
            if not isinstance(arg.data, Dat):
                continue
            reached = _reached(bound, arg.map)
            known = dats.get(id(arg.data), (arg.data, 0, False, False))
            first_write = parameter.access is Access.WRITE and not known[3]
            reads = known[2] or (not first_write and not known[3]) or (known[3] and arg.map is not None)
            dats[id(arg.data)] = (arg.data, max(known[1], reached), reads, known[3] or parameter.access.writes)
            if arg.map is not None:
                maps[id(arg.map)] = _map_bytes(bound, arg.map)
    total = sum(maps.values())
    for key, (dat, reached, reads, writes) in dats.items():
        if key not in elided:
            total += reached * dat.dim * dat.scalar.size * (int(reads) + int(writes))
    return total


def _reached(bound: Bound, through: object) -> int:
    if isinstance(through, TableMap):
        known = bound.over.context.plans
        key = ("met", id(through), id(bound.over))
        if key not in known:
            known[key] = (targets_met(bound.over, through), bound.over, (through,))
        return known[key][0]
    if isinstance(through, RaggedMap):
        return through.target.size
    if isinstance(through, EntriesMap):
        return through.ragged.entries.size
    return bound.over.size


def _map_bytes(bound: Bound, through: object) -> int:
    if isinstance(through, TableMap):
        return bound.over.size * through.legs * 4
    if isinstance(through, RaggedMap):
        return through.indices.size * 4 + through.offsets.size * 8
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
    inside = False
    for number, text in enumerate(source.splitlines(), 1):
        if begin in text:
            inside = True
            if number - 1 in lines:  # clang names the line of the pragma, gcc that of the first statement
                return True
        if inside and number in lines:
            return True
        if end in text:
            inside = False
    return False
