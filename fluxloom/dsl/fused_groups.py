"""The groups of a fused chain as code generation wants them: what is buffered, moved, or not stored.

Which buffer each dat is in changes group by group, step by step.

A fused step reads dats where the last step left them and may leave them elsewhere. The placement is
simulated once for every arrangement that occurs (one or a few, then it repeats) and replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fluxloom.codegen.group import CHUNK, Group, Member, WorkShape
from fluxloom.codegen.spec import symbol_name
from fluxloom.core.access import Access
from fluxloom.device.base import Buffer, Device
from fluxloom.dsl.bind import Numbering, specialise
from fluxloom.dsl.cost import choose_tile, direct_lanes
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.fusion import Copy, FusedGroup, Fusion
from fluxloom.dsl.runtime import Runtime, among

__all__ = ["Arrangement", "FusedGroups", "GroupBuffers", "Placement"]


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
            from fluxloom.dsl.work import fused_plan, work_shape

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
            from fluxloom.dsl.work import work_shape

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
