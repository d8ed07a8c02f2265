"""A chain as its tiles see it: sets, dats and maps by number, passes of loops, what each argument needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fluxloom.codegen.language.group import Group, Member
from fluxloom.codegen.language.spec import symbol_name
from fluxloom.core.access import Access
from fluxloom.core.dtypes import Blocked
from fluxloom.device.base import Device
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import BoundArgument, TableMap
from fluxloom.dsl.declare.runtime import among, unique
from fluxloom.dsl.declare.sets import Grid, Set, Subset
from fluxloom.dsl.plan.bind import Numbering, specialise
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.fusion import ends_zero
from fluxloom.dsl.run.loop import Loop
from fluxloom.graph import inverse_map
from fluxloom.graph.chain_tiles import ChainArg, ChainMap, ChainPass, ChainStep
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import expressions, walk

__all__ = ["LoopPass", "TiledForm", "why_not_tiled"]

_GAP = 8
"""Elements that are executed although nobody needs them, so that a run is not cut: about a pack."""


# ---------------------------------------------------------------------------------------- legality


def why_not_tiled(steps: Sequence[Loop | Reset], device: Device) -> str:
    """Return why a chain cannot run in tiles, naming the loop; empty if it can."""
    if not device.native or device.items:
        return f"tiles are for CPUs; the device is {device.name}"
    loops = [s for s in steps if isinstance(s, Loop)]
    if not loops:
        return "it has no loops"
    for loop in loops:
        if reason := _why_not(loop):
            return f"{loop.name}: {reason}"
    grades = {loop.schedule.deterministic == "global" for loop in loops}
    if len(grades) > 1:
        return "some of its loops ask for deterministic='global' and others do not"
    return _why_globals(steps, loops)


def _why_not(loop: Loop) -> str:
    if isinstance(loop.over, (Subset, Grid)):
        return f"it runs over {loop.over}; only loops over whole sets are tiled"
    if loop.over.part is not None:
        return "its set is shared by several ranks"
    for arg in loop.bound.arguments:
        data = arg.data
        if isinstance(data, Global):
            continue
        if arg.map is not None and not isinstance(arg.map, TableMap):
            return f"{data.name!r} is reached through {arg.map!r}; only table maps are tiled"
        if isinstance(data.set, Grid) or data.set.position is not None:
            return f"{data.name!r} is on {data.set}, whose elements are not stored one after the other"
        if isinstance(data.layout, Blocked):
            return f"{data.name!r} has a blocked layout; use AoS or SoA"
    return ""


def _why_globals(steps: Sequence[Loop | Reset], loops: list[Loop]) -> str:
    """A tile does not know what other tiles have reduced, nor what a global was before it was reset."""
    reads = [(data, loop) for loop in loops for data, _ in loop.bound.globals(reads=True)]
    reduced = [data for loop in loops for data, _ in loop.bound.globals(reads=False)]
    resets = [s.target for s in steps if isinstance(s, Reset)]
    for data, loop in reads:
        if among(data, reduced):
            return f"{loop.name}: it reads {data.name!r}, which a loop of the chain reduces into"
        if among(data, resets):
            return f"{loop.name}: it reads {data.name!r}, which the chain resets"
    return ""


# -------------------------------------------------------------------------------------------- passes


@dataclass(frozen=True, eq=False)
class LoopPass:
    """Loops over one set that run together; ``first`` is the number of the first among the loops of the form."""

    loops: tuple[Loop, ...]
    first: int

    def takes(self, loop: Loop) -> bool:
        """Whether a loop may join: both only change their own element, and none reads what the other changes there."""
        mine, lead = self.loops, self.loops[0]
        if loop.over is not lead.over or not all(_pointwise(x) for x in (*mine, loop)):
            return False
        if (loop.bound.compute, loop.schedule.lanes) != (lead.bound.compute, lead.schedule.lanes):
            return False
        far, written = [d for x in mine for d in _far(x)], [d for x in mine for d in x.written]
        return not any(among(d, written) for d in _far(loop)) and not any(among(d, far) for d in loop.written)

    def group(self, numbering: Numbering) -> Group:
        """Return the loops as a group of generated code."""
        members = tuple(Member(specialise(loop.bound, numbering), k) for k, loop in enumerate(self.loops))
        racing, lead = self.loops[0].races.racing, self.loops[0]
        symbol = symbol_name("fl_tile_", *(loop.name for loop in self.loops))
        parts = (members, ()) if racing else ((), members)
        return Group(symbol, *parts, "serial", lanes=lead.schedule.lanes, tile=0)


def _pointwise(loop: Loop) -> bool:
    return not loop.races.racing and all(a.map is None or not a.access.writes for a in loop.bound.arguments)


def _far(loop: Loop) -> list[Dat]:
    return [a.data for a in loop.bound.arguments if a.map is not None and isinstance(a.data, Dat)]


def _harmless(loop: Loop) -> bool:
    """Whether the kernel may run on any numbers: it does not count iterations or places by values of dats."""
    if any(not a.data.scalar.floating for a in loop.bound.arguments):
        return False
    return not any(
        isinstance(s, ir.While) or any(isinstance(e, ir.Cast) for e in expressions(s))
        for s in walk(loop.bound.lowered.body)
    )


# ----------------------------------------------------------------------------------------- the form


class TiledForm:
    """What the tiles of a chain are planned from.

    Parameters
    ----------
    steps
        Loops and resets, in order, as often as they run.
    transient
        Dats whose values are not needed afterwards, but by the next call.

    Attributes
    ----------
    loops
        In order.
    sets, dats, maps
        By number.
    passes
        Loops that run together.
    zero
        Dats that every call leaves at zero, so that the next starts from zeros.
    """

    def __init__(self, steps: Sequence[Loop | Reset], transient: Sequence[Dat]) -> None:
        self.steps = tuple(steps)
        self.loops = [s for s in steps if isinstance(s, Loop)]
        arguments = [a for loop in self.loops for a in loop.bound.arguments]
        self.dats = unique(a.data for a in arguments if isinstance(a.data, Dat))
        self.maps = unique(a.map for a in arguments if isinstance(a.map, TableMap))
        self.sets: list[Set] = unique([*(loop.over for loop in self.loops), *(d.set for d in self.dats)])
        self._set = {id(s): k for k, s in enumerate(self.sets)}
        self._dat = {id(d): k for k, d in enumerate(self.dats)}
        self._map = {id(m): k for k, m in enumerate(self.maps)}
        self.passes = _passes(self.loops)
        self.written = unique(d for loop in self.loops for d in loop.written)
        self.zero = [d for d in self.dats if self._left_at_zero(d)]
        unwanted = [*self.zero, *(d for d in transient if among(d, self.dats) and self._begins_anew(d))]
        self.wanted = [d for d in self.dats if among(d, self.written) and not among(d, unwanted)]
        """Dats whose values are handed over."""

    def _left_at_zero(self, dat: Dat) -> bool:
        last = next(loop for loop in reversed(self.loops) if any(a.data is dat for a in loop.bound.arguments))
        return ends_zero(last.bound, dat)

    def _begins_anew(self, dat: Dat) -> bool:
        """Whether the first loop that meets the dat writes all of it, so that no call needs what the last one left."""
        first = next(loop for loop in self.loops if any(a.data is dat for a in loop.bound.arguments))
        uses = [a for a in first.bound.arguments if a.data is dat]
        return first.over is dat.set and all(a.access is Access.WRITE and a.map is None for a in uses)

    def number(self, thing: Set | Dat | TableMap) -> int:
        """Return the number of a set, a dat or a map."""
        known = self._set if isinstance(thing, Set) else self._dat if isinstance(thing, Dat) else self._map
        return known[id(thing)]

    def is_free(self, over: Set) -> bool:
        """Whether loops run over a set, and none of them adds up through a map, so that their order does not matter."""
        racing = [loop.races.racing for loop in self.loops if loop.over is over]
        return bool(racing) and not any(racing)

    def resets(self) -> list[Reset]:
        """Return the last reset of each global."""
        return list({id(s.target): s for s in self.steps if isinstance(s, Reset)}.values())

    def live(self, item: LoopPass) -> frozenset[tuple[int, str]]:
        """Return the reductions of a pass that no later reset of their global makes void."""
        at = [k for k, s in enumerate(self.steps) if isinstance(s, Loop)]
        out = set()
        for k, loop in enumerate(item.loops):
            later = [s.target for s in self.steps[at[item.first + k] :] if isinstance(s, Reset)]
            for arg in loop.bound.arguments:
                if isinstance(arg.data, Global) and arg.access.writes and not among(arg.data, later):
                    out.add((k, arg.name))
        return frozenset(out)

    # --------------------------------------------------------------------- in the terms of the planner
    @cached_property
    def chain_dats(self) -> list[tuple[int, bool]]:
        """Set of each dat, and whether it is handed over."""
        return [(self.number(d.set), among(d, self.wanted)) for d in self.dats]

    @cached_property
    def chain_maps(self) -> list[ChainMap]:
        """Tables, with inverses of those that something is written through."""
        written = [a.map for loop in self.loops for a in loop.bound.arguments if a.access.writes and a.map is not None]
        return [
            ChainMap(
                self.number(m.source), self.number(m.target), m.table,
                inverse_map(m.table, m.target.size) if among(m, written) else None,
            )
            for m in self.maps
        ]  # fmt: skip

    @cached_property
    def chain_passes(self) -> list[ChainPass]:
        """Set of each pass, and how its runs are cut."""
        out = []
        for item in self.passes:
            flagged = bool(self.live(item))
            gap = _GAP if not flagged and all(_harmless(loop) for loop in item.loops) else 0
            out.append(ChainPass(self.number(item.loops[0].over), gap, flagged))
        return out

    @cached_property
    def chain_steps(self) -> list[ChainStep]:
        """Each loop with what happens to the values of its dats."""
        out = []
        for number, item in enumerate(self.passes):
            live = self.live(item)
            for k, loop in enumerate(item.loops):
                args = tuple(self._argument(a) for a in loop.bound.arguments if isinstance(a.data, Dat))
                out.append(ChainStep(self.number(loop.over), number, any(n == k for n, _ in live), args))
        return out

    def _argument(self, arg: BoundArgument) -> ChainArg:
        assert isinstance(arg.data, Dat)
        mode = arg.access
        through = self.number(arg.map) if isinstance(arg.map, TableMap) else -1
        reads = mode in (Access.READ, Access.RW)
        # A kernel writes every component of a Write argument, or it is refused.
        return ChainArg(self.number(arg.data), through, arg.leg, reads, mode.writes, mode is Access.WRITE)


def _passes(loops: Sequence[Loop]) -> list[LoopPass]:
    out: list[LoopPass] = []
    for k, loop in enumerate(loops):
        if out and out[-1].takes(loop):
            out[-1] = LoopPass((*out[-1].loops, loop), out[-1].first)
        else:
            out.append(LoopPass((loop,), k))
    return out
