"""The groups of a fused chain as code generation wants them: what is buffered, moved, or not stored."""

from __future__ import annotations

from dataclasses import replace

from fluxloom.codegen.group import CHUNK, Group, Member, WorkShape
from fluxloom.codegen.spec import symbol_name
from fluxloom.core.access import Access
from fluxloom.device.base import Device
from fluxloom.dsl.bind import Numbering, specialise
from fluxloom.dsl.cost import choose_tile, direct_lanes
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.fusion import FusedGroup, Fusion
from fluxloom.dsl.rename import Placement

__all__ = ["FusedGroups"]

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
