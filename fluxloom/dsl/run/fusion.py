"""Which loops of a chain may run together, found from what they read and write.

Facts about their kernels are copies, values that end as zero, whole writes.

Rules (DESIGN section 3): direct loops over one set run element by element together. A merged gather
(increments from other sets into one target set, tile by tile) is followed in the same pass by the
direct loops over that set. A dat that neighbours still read is written to another buffer. Copies
become renamings. Loops at the head of the chain that fit behind its last group are run there, one
step ahead, into a buffer of their own.

Then the groups of a fused chain as code generation wants them: what is buffered, moved, or not stored. Which buffer
each dat is in changes group by group, step by step. A fused step reads dats where the last step left them and may leave
them elsewhere. The placement is simulated once for every arrangement that occurs (one or a few, then it repeats) and
replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fluxloom.codegen.language.group import CHUNK, Group, Member, WorkShape
from fluxloom.codegen.language.spec import symbol_name
from fluxloom.core.access import Access
from fluxloom.core.dtypes import AoS
from fluxloom.device.base import Buffer, Device
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.declare.runtime import Runtime, among, unique
from fluxloom.dsl.declare.sets import Grid, Set, Subset
from fluxloom.dsl.plan.bind import Bound, Numbering, specialise
from fluxloom.dsl.plan.block import choose_tile
from fluxloom.dsl.plan.lanes import direct_lanes
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel import ir
from fluxloom.kernel.analysis import walk

__all__ = [
    "Arrangement", "Copy", "FusedGroup", "FusedGroups", "Fusion", "GroupBuffers", "Placement", "agree_on_scatters",
    "copied_pair", "ends_zero", "fuse",
]  # fmt: skip

def copied_pair(bound: Bound) -> tuple[Dat, Dat] | None:
    """Return ``(source, target)`` if the loop does nothing but copy one dat to another."""
    if len(bound.arguments) != 2 or bound.lowered.constants:
        return None
    found = {a.access: a.data for a in bound.arguments if a.map is None}
    source, target = found.get(Access.READ), found.get(Access.WRITE)
    if not isinstance(source, Dat) or not isinstance(target, Dat) or bound.over is not source.set:
        return None
    if (source.shape, source.scalar, source.layout) != (target.shape, target.scalar, target.layout):
        return None
    for statement in bound.lowered.body:
        if not (isinstance(statement, ir.Store) and isinstance(statement.value, ir.Read)):
            return None
        if (statement.value.leg, statement.value.index) != (statement.leg, statement.index):
            return None
    return source, target


def ends_zero(bound: Bound, dat: Dat) -> bool:
    """Return whether the loop leaves zero in every component of every element of ``dat``."""
    if bound.over is not dat.set:
        return False
    for arg in bound.arguments:
        if arg.data is dat and arg.map is None and arg.access in (Access.WRITE, Access.RW):
            return _zeroes(bound.lowered.body, arg.name, dat.dim)
    return False


def _zeroes(body: tuple[ir.Statement, ...], parameter: str, dim: int) -> bool:
    last: dict[tuple[ir.Expression, ...], bool] = {}
    for statement in body:
        if isinstance(statement, ir.Store) and statement.parameter == parameter:
            value = statement.value
            last[statement.index] = isinstance(value, ir.Constant) and value.value == 0
        elif isinstance(statement, (ir.If, ir.For, ir.While)) and _changes(statement, parameter):
            return False
    return len(last) == dim and all(last.values())


def _changes(statement: ir.Statement, parameter: str) -> bool:
    return any(isinstance(s, ir.Store | ir.Update) and s.parameter == parameter for s in walk([statement]))


@dataclass(frozen=True, eq=False)
class Copy:
    """A loop that only copies: in a fused chain the target becomes another name of the source."""

    loop: Loop
    source: Dat
    target: Dat


@dataclass(eq=False)
class FusedGroup:
    """Loops that run in one pass.

    ``ahead`` counts the loops at the end of ``direct`` that belong to the next step of the chain.
    """

    over: Set
    scatter: list[Loop] = field(default_factory=list)
    direct: list[Loop] = field(default_factory=list)
    ahead: int = 0
    alone: bool = False
    """A loop that cannot be fused: it runs as it would outside the chain, in place."""

    @property
    def loops(self) -> list[Loop]:
        """All loops in order."""
        return [*self.scatter, *self.direct]

    @property
    def name(self) -> str:
        """The names of the loops, joined."""
        return "+".join(loop.name for loop in self.loops)

    def own(self, modes: tuple[Access, ...] | None = None) -> list[Dat]:
        """Return dats that the direct loops meet at their own element only (in some access modes)."""
        return _dats(self.direct, lambda through: through is None, modes)

    def neighbours(self) -> list[Dat]:
        """Return dats of which an element of the group reads other elements' values."""
        through_maps = _dats(self.direct, lambda through: through is not None, None)
        return through_maps + _dats(self.scatter, lambda _through: True, (Access.READ,))

    def incremented(self) -> list[Dat]:
        """Return dats that the scattering loops add to."""
        return _dats(self.scatter, lambda through: through is not None, (Access.INC, Access.MIN, Access.MAX))

    def computed_ahead(self) -> list[Dat]:
        """Return dats whose last values in the group belong to the next step."""
        return _dats(self.direct[len(self.direct) - self.ahead :], lambda _through: True, (Access.WRITE,))

    def written(self) -> list[Dat]:
        """Return dats whose values the group changes."""
        modes = (Access.WRITE, Access.RW, Access.INC, Access.MIN, Access.MAX)
        return unique([*self.incremented(), *self.own(modes)])


@dataclass(frozen=True, eq=False)
class Fusion:
    """The fused form of a chain: groups and copies in order, and what is known about dats."""

    items: tuple[FusedGroup | Copy, ...]
    head: tuple[Loop, ...]
    zero: dict[int, frozenset[int]]
    """``id(group)`` -> ``id`` of the dats that are zero when the group starts."""

    @property
    def groups(self) -> list[FusedGroup]:
        """The groups alone."""
        return [g for g in self.items if isinstance(g, FusedGroup)]

    @property
    def worthwhile(self) -> bool:
        """Whether anything runs together at all."""
        return any(len(g.loops) > 1 for g in self.groups) or any(isinstance(i, Copy) for i in self.items)


def fuse(loops: list[Loop], transient: tuple[Dat, ...]) -> Fusion:
    """Group the loops of a chain.

    Parameters
    ----------
    loops
        In order.
    transient
        Dats whose values nobody needs after the chain has run.
    """
    items: list[FusedGroup | Copy] = []
    for loop in loops:
        pair = copied_pair(loop.bound)
        if pair is not None and any(pair[1] is t for t in transient) and _renamable(pair, loops):
            items.append(Copy(loop, *pair))
            continue
        last = items[-1] if items else None
        if not isinstance(last, FusedGroup) or not _append(last, loop):
            group = FusedGroup(loop.over)
            if not _append(group, loop):
                group.direct.append(loop)
                group.alone = True
            items.append(group)
    head = _rotate(items, loops)
    return Fusion(tuple(items), tuple(head), _zero_facts(items))


# ---------------------------------------------------------------------------------------- legality


def scatters(loop: Loop) -> bool:
    """Whether a loop can be driven tile by tile from the set that it increments, on every rank."""
    if loop.agreed is not None:
        return loop.agreed
    wanted = loop.schedule
    tiled = wanted.strategy == "gather" or loop.fusable_as_gather
    if not (loop.races.racing and "gather" in loop.races.allowed and tiled and wanted.block != 1):
        return False
    return loop.context.device.items or all(isinstance(d.layout, AoS) for d in _incremented(loop))


def agree_on_scatters(loops: list[Loop]) -> None:
    """Let all ranks decide alike which loops may be driven from what they increment: it decides on messages."""
    racing = unique(loop for loop in loops if loop.races.racing)
    if not racing or not loops[0].context.distributed:
        return
    for loop in racing:
        loop.agreed = None
    here = np.array([scatters(loop) for loop in racing], dtype=np.int64)
    for loop, yes in zip(racing, loops[0].context.comm.reduce(here, "min"), strict=True):
        loop.agreed = bool(yes)


def _incremented(loop: Loop) -> list[Dat]:
    return FusedGroup(loop.over, [loop]).incremented()


def pointwise(loop: Loop) -> bool:
    """Whether a loop only changes values of its own element."""
    if loop.races.racing or isinstance(loop.over, (Subset, Grid)):
        return False
    for arg in loop.bound.arguments:
        if arg.map is not None and (not isinstance(arg.map, TableMap) or arg.access is not Access.READ):
            return False
        if isinstance(arg.data, Dat) and arg.map is None and arg.data.set.position is not None:
            return False
    return True


def _append(group: FusedGroup, loop: Loop) -> bool:
    """Add a loop to a group if the result stays the same; returns whether it was added."""
    if group.alone:
        return False
    if group.loops and (group.loops[0].bound.compute != loop.bound.compute or _grade(group.loops[0]) != _grade(loop)):
        return False
    if _meets_globals(group, loop):
        return False
    if scatters(loop):
        return _append_scatter(group, loop)
    if not pointwise(loop) or (group.loops and loop.over is not group.over):
        return False
    written = group.written()
    reads_far = _dats([loop], lambda through: through is not None, None)
    if any(among(d, written) for d in reads_far):
        return False  # a neighbour's new value would be needed
    group.over = loop.over
    group.direct.append(loop)
    return True


def _append_scatter(group: FusedGroup, loop: Loop) -> bool:
    target = loop.races.targets[0]
    if group.direct or (group.scatter and group.over is not target):
        return False
    incremented = _incremented(loop)
    reads = _dats([loop], lambda _through: True, (Access.READ,))
    if any(among(d, group.incremented()) for d in reads) or any(among(d, group.neighbours()) for d in incremented):
        return False
    group.over = target
    group.scatter.append(loop)
    return True


def _grade(loop: Loop) -> str | None:
    return loop.schedule.deterministic


def _meets_globals(group: FusedGroup, loop: Loop) -> bool:
    """Whether the loop reads a global that the group reduces into, or the reverse."""
    reduced, read = ([g for m in group.loops for g, _ in m.bound.globals(reads=reads)] for reads in (False, True))
    mine = [g for g, _ in loop.bound.globals(reads=False)]
    return any(among(g, reduced) for g, _ in loop.bound.globals(reads=True)) or any(
        among(g, read) or among(g, reduced) for g in mine
    )


# ------------------------------------------------------------------------------- rotation and facts


def _renamable(pair: tuple[Dat, Dat], loops: list[Loop]) -> bool:
    """Whether two dats may share a buffer: every other loop that changes one writes its own element only."""
    for loop in loops:
        for arg in loop.bound.arguments:
            if any(arg.data is d for d in pair) and arg.access.writes and not pointwise(loop):
                return False
    # Between two steps each dat needs a buffer of its own: the old value of the target must be dead there.
    first = next(loop for loop in loops if any(a.data is pair[1] for a in loop.bound.arguments))
    copied = copied_pair(first.bound)
    return copied is not None and copied[1] is pair[1]


def _rotate(items: list[FusedGroup | Copy], loops: list[Loop]) -> list[Loop]:
    """Move the pointwise loops at the start of the chain behind its last group, one step ahead."""
    last = items[-1] if items else None
    place = next((k for k, item in enumerate(items) if isinstance(item, FusedGroup)), None)
    if not isinstance(last, FusedGroup) or place is None:
        return []
    first = items[place]
    if first is last or not isinstance(first, FusedGroup) or first.scatter or first.alone or not last.scatter:
        return []
    reduced = [g for loop in loops for g, _ in loop.bound.globals(reads=False)]
    copied = [item.target for item in items[:place] if isinstance(item, Copy)]
    changed = last.written()
    moved: list[Loop] = []
    for loop in first.direct:
        whole = all(
            a.access is Access.READ or (a.access is Access.WRITE and isinstance(a.data, Dat))
            for a in loop.bound.arguments
        )
        reads = _dats([loop], lambda _through: True, (Access.READ,))
        if any(among(g, reduced) for g, _ in loop.bound.globals(reads=True)):
            break  # its value would be the one of the step before
        if any(among(d, changed) for d in _dats([loop], lambda _through: True, (Access.WRITE,))):
            break  # this step's own value would be lost
        if not whole or any(among(d, copied) for d in reads) or not _append(last, loop):
            break
        moved.append(loop)
    if len(moved) != len(first.direct):
        for _ in moved:
            last.direct.pop()
        return []
    last.ahead = len(moved)
    items.remove(first)
    return moved


def _zero_facts(items: list[FusedGroup | Copy]) -> dict[int, frozenset[int]]:
    """For each group, the incremented dats that its predecessors (round the cycle) leave at zero."""
    order = [(item, loop) for item in items if isinstance(item, FusedGroup) for loop in item.loops]
    facts: dict[int, frozenset[int]] = {}
    for group in (i for i in items if isinstance(i, FusedGroup)):
        known = set()
        for dat in group.incremented():
            start = next(k for k, (g, _) in enumerate(order) if g is group)
            for step in range(1, len(order) + 1):
                loop = order[(start - step) % len(order)][1]
                if any(a.data is dat for a in loop.bound.arguments):
                    if ends_zero(loop.bound, dat):
                        known.add(id(dat))
                    break
        facts[id(group)] = frozenset(known)
    return facts


# ----------------------------------------------------------------------------------------- helpers


def _dats(loops: list[Loop], through, modes: tuple[Access, ...] | None) -> list[Dat]:
    return unique(
        a.data
        for loop in loops
        for a in loop.bound.arguments
        if isinstance(a.data, Dat) and through(a.map) and (modes is None or a.access in modes)
    )


@dataclass(frozen=True, eq=False)
class GroupBuffers:
    """Where a group reads and writes each dat (by ``id``)."""

    inputs: dict[int, Buffer]
    outputs: dict[int, Buffer]


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Where every dat is between two steps: the dats themselves, and values computed one step ahead."""

    buffers: dict[int, Buffer]
    ahead: dict[int, Buffer]

    @property
    def key(self) -> tuple[int, ...]:
        """Equal for equal arrangements."""
        return tuple(id(b) for b in (*self.buffers.values(), *self.ahead.values()))


class Placement:
    """Chooses buffers.

    Parameters
    ----------
    fusion
        The groups.
    dats
        Every dat of the chain.
    transient
        Those whose values are not needed after a step.
    """

    def __init__(self, context: Runtime, fusion: Fusion, dats: list[Dat], transient: tuple[Dat, ...]) -> None:
        self.context, self.fusion, self.dats = context, fusion, dats
        self.transient = {id(d) for d in transient}
        self.by_id = {id(d): d for d in dats}
        self.owned: list[Buffer] = []
        """Buffers that belong to the chain and to no dat."""
        self.ahead_dats = self._ahead_dats()

    def _ahead_dats(self) -> list[Dat]:
        return [dat for group in self.fusion.groups for dat in group.computed_ahead()]

    def start(self) -> Arrangement:
        """Return the arrangement after an unfused step, with buffers for the values one step ahead."""
        buffers = {id(d): d.buffer for d in self.dats}
        ahead: dict[int, Buffer] = {}
        for dat in self.ahead_dats:
            ahead[id(dat)] = self._free(dat, buffers, [*buffers.values(), *ahead.values()])
        return Arrangement(buffers, ahead)

    def renamed(self, group: FusedGroup) -> frozenset[int]:
        """Return ids of dats that the group must write to another buffer than the one it reads."""
        if group.alone:
            return frozenset()
        far = {id(d) for d in group.neighbours()}
        return frozenset(
            id(d)
            for d in group.own((Access.WRITE, Access.RW, Access.INC, Access.MIN, Access.MAX))
            if id(d) in far or self._aliased(d) or among(d, group.computed_ahead())
        )

    def _aliased(self, dat: Dat) -> bool:
        """Whether a copy may make ``dat`` share its buffer with another dat."""
        return any(isinstance(i, Copy) and (i.source is dat or i.target is dat) for i in self.fusion.items)

    # ------------------------------------------------------------------------------------- steps
    def step(self, begin: Arrangement) -> tuple[list[GroupBuffers], Arrangement]:
        """Return the buffers of every group of one step, and the arrangement after it."""
        state = dict(begin.buffers)
        state.update(begin.ahead)  # what was computed ahead is now current
        ahead: dict[int, Buffer] = {}
        placed = []
        for position, item in enumerate(self.fusion.items):
            if isinstance(item, Copy):
                state[id(item.target)] = state[id(item.source)]
                continue
            inputs = dict(state)
            outputs: dict[int, Buffer] = {}
            renamed = self.renamed(item)
            for dat in item.own((Access.WRITE, Access.RW, Access.INC, Access.MIN, Access.MAX)):
                if id(dat) in renamed:
                    taken = self._taken(dat, item, position, state, [*outputs.values(), *ahead.values()])
                    outputs[id(dat)] = self._free(dat, begin.buffers, taken)
            for key, buffer in outputs.items():
                (ahead if among(self.by_id[key], item.computed_ahead()) else state)[key] = buffer
            placed.append(GroupBuffers(inputs, outputs))
        return placed, Arrangement(self._settle(state, begin.buffers, ahead), ahead)

    def _taken(
        self, dat: Dat, group: FusedGroup, position: int, state: dict[int, Buffer], used: list[Buffer]
    ) -> list[Buffer]:
        """Return the buffers where a group must not write ``dat``: somebody reads them then or later."""
        taken = [*used, *(state[id(d)] for d in group.neighbours())]
        if among(dat, group.computed_ahead()):
            taken.append(state[id(dat)])  # this step's value stays where it is
        taken += [b for k, b in state.items() if k != id(dat) and not self._dead(self.by_id[k], position)]
        return taken

    def _dead(self, dat: Dat, position: int) -> bool:
        """Whether the value of ``dat`` after the item at ``position`` is never used."""
        if id(dat) not in self.transient:
            return False
        items = self.fusion.items
        for step in range(1, len(items) + 1):
            item = items[(position + step) % len(items)]
            if isinstance(item, Copy):
                if item.source is dat:
                    return False
                if item.target is dat:
                    return True
                continue
            if any(a.data is dat for loop in item.loops for a in loop.bound.arguments):
                return False
        return True

    def _settle(
        self, state: dict[int, Buffer], homes: dict[int, Buffer], ahead: dict[int, Buffer]
    ) -> dict[int, Buffer]:
        """Give every dat a buffer of its own again."""
        out: dict[int, Buffer] = {}
        last = len(self.fusion.items) - 1
        alive = {k: b for k, b in state.items() if not self._dead(self.by_id[k], last)}
        out.update(alive)
        for key in state:
            if key not in out:
                out[key] = self._free(self.by_id[key], homes, [*out.values(), *ahead.values()])
        return {id(d): out[id(d)] for d in self.dats}

    def _free(self, dat: Dat, homes: dict[int, Buffer], taken: list[Buffer]) -> Buffer:
        """Return a buffer of the dat's size that is not taken: its own, another moved dat's, or one of the chain's.

        Memory that belongs to an array of somebody else serves no other dat.
        """
        movable = self._movable()
        others = (b for k, b in homes.items() if k in movable and not b.foreign)
        candidates = [homes[id(dat)], *others, *self.owned]
        for buffer in candidates:
            if buffer.nbytes == dat.buffer.nbytes and not any(buffer is t for t in taken):
                return buffer
        fresh = self.context.allocate(dat.buffer.nbytes)
        self.owned.append(fresh)
        return fresh

    def moved(self, before: list[Buffer], after: list[Buffer]) -> None:
        """Keep the books after dats changed buffers: what they left is the chain's, what they took is theirs."""
        pool = [*self.owned, *before]
        self.owned = [b for b in pool if not any(b is a for a in after)]

    def key(self, arrangement: Arrangement) -> tuple[int, ...]:
        """Equal keys: the same buffers in the same places, so that a prepared step can be replayed."""
        return (*arrangement.key, 0, *sorted(id(b) for b in self.owned))

    def movable(self) -> list[Dat]:
        """Return the dats that the chain may move to other buffers."""
        return [self.by_id[k] for k in sorted(self._movable())]

    def _movable(self) -> set[int]:
        """Ids of dats that this chain moves between buffers anyway."""
        out = set(self.transient)
        for group in self.fusion.groups:
            out |= self.renamed(group)
        return out


_TILE_BYTES = 2**20
"""Bytes of increments a tile may hold."""


class FusedGroups:
    """Turns the groups of a fusion into groups for code generation.

    Parameters
    ----------
    fusion, placement
        What runs together, and where dats move.
    dats
        Every dat of the chain.
    transient
        Those whose values are not needed after a step.
    """

    def __init__(
        self, device: Device, fusion: Fusion, placement: Placement, dats: list[Dat], transient: tuple[Dat, ...]
    ) -> None:
        self.device, self.fusion, self.placement, self.dats = device, fusion, placement, dats
        self._transient = {id(d) for d in transient}

    def group(self, fused: FusedGroup, numbering: Numbering) -> Group:
        """Return one group of the fusion."""
        members = [Member(specialise(loop.bound, numbering), k) for k, loop in enumerate(fused.loops)]
        scatter, direct = tuple(members[: len(fused.scatter)]), tuple(members[len(fused.scatter) :])
        renamed = frozenset(numbering.dat(d) for d in self.dats if id(d) in self.placement.renamed(fused))
        if fused.alone:
            return fused.loops[0].group(numbering)
        group = Group(
            symbol=symbol_name("fl_fused_", *(loop.name for loop in fused.loops)),
            scatter=scatter,
            direct=direct,
            strategy="gather" if scatter else "direct",
            tile=0,
            elide=frozenset(numbering.dat(d) for d in self.elided(fused)),
            renamed=renamed,
            ranged=fused.over.part is not None,
        )
        zero, first = self.fusion.zero[id(fused)], fused.loops[0]
        if self.device.items:  # one item a target, increments in its registers
            from fluxloom.dsl.plan.work import fused_plan, work_shape

            plans = [fused_plan(fused.scatter)] if scatter else []
            return replace(
                group,
                zero=frozenset(numbering.dat(d) for d in fused.incremented() if id(d) in zero),
                work=work_shape(first.schedule, plans, self.device, fused=True),
            )
        return replace(
            group,
            lanes=first.schedule.lanes,
            direct_lanes=direct_lanes(first.bound),
            tile=self._tile(fused),
            buffered=frozenset(numbering.dat(d) for d in self._buffered(fused)),
            zero=frozenset(numbering.dat(d) for d in self._buffered(fused) if id(d) in zero),
            stream=renamed if any(loop.schedule.stream for loop in fused.direct) else frozenset(),
        )

    def _tile(self, fused: FusedGroup) -> int:
        """Return the targets a tile: as chosen, but with buffers that fit on the stack of a thread."""
        row = sum(d.dim * d.scalar.size for d in self._buffered(fused))
        most = max(CHUNK, _TILE_BYTES // max(1, row) // CHUNK * CHUNK)
        return min(self._wanted_tile(fused), most)

    @staticmethod
    def _wanted_tile(fused: FusedGroup) -> int:
        chosen = [s.block for s in (loop.schedule for loop in fused.scatter) if s.strategy == "gather" and s.block > 1]
        if chosen or not fused.scatter:
            return chosen[0] if chosen else 0
        largest = max(fused.scatter, key=lambda loop: loop.over.size)
        return choose_tile(largest.bound, largest.races)

    def head_group(self, numbering: Numbering) -> Group:
        """Return the loops at the head of the chain, which fused steps compute one step ahead."""
        members = tuple(Member(specialise(loop.bound, numbering), k) for k, loop in enumerate(self.fusion.head))
        ahead = frozenset(numbering.dat(d) for d in self.placement.ahead_dats)
        head, work = self.fusion.head[0], WorkShape()
        if self.device.items:
            from fluxloom.dsl.plan.work import work_shape

            work = work_shape(head.schedule, [], self.device)
        return Group(
            "fl_ahead", (), members, "direct", lanes=direct_lanes(head.bound), tile=0, renamed=ahead, work=work
        )

    def _buffered(self, fused: FusedGroup) -> list[Dat]:
        """Incremented dats that a direct loop of the same group rewrites: they live in the tile only.

        A work item keeps all of them to itself.
        """
        if self.device.items:
            return fused.incremented()
        rewritten = fused.own((Access.WRITE, Access.RW))
        return [d for d in fused.incremented() if any(d is r for r in rewritten)]

    def elided(self, fused: FusedGroup) -> list[Dat]:
        """Transient dats whose final value in this group nobody reads, or everybody knows to be zero."""
        groups = self.fusion.groups
        place = next(k for k, g in enumerate(groups) if g is fused)
        out = []
        for dat in [] if fused.alone else fused.own((Access.WRITE, Access.RW, Access.INC)):
            if id(dat) not in self._transient or any(dat is d for d in self.placement.ahead_dats):
                continue
            for step in range(1, len(groups) + 1):
                other = groups[(place + step) % len(groups)]
                if any(a.data is dat for loop in other.loops for a in loop.bound.arguments):
                    if id(dat) in self.fusion.zero[id(other)] and any(dat is d for d in self._buffered(other)):
                        out.append(dat)
                    break
        return out
