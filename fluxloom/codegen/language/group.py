"""What one native function computes: loops in a row, how they are driven, what packs do around the kernels."""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.codegen.language.spec import ArgSpec, LoopSpec
from fluxloom.core.access import Access

__all__ = ["CHUNK", "REDUCTION_LANES", "STRATEGIES", "Group", "Member", "PackStyle", "WorkShape"]

REDUCTION_LANES = 16
"""Partial sums a chunk keeps side by side; fixed, so that the order of a sum never depends on lanes."""


@dataclass(frozen=True)
class Member:
    """One loop of a pack: its spec and its number in the fused group."""

    spec: LoopSpec
    number: int = 0


@dataclass(frozen=True)
class PackStyle:
    """What a pack function is asked to do around the kernels.

    Attributes
    ----------
    lanes
        Elements a pack.
    listed
        Element numbers come from a list instead of being consecutive.
    commit
        How increments through maps reach memory: ``"serial"``, ``"atomic"``, ``"tile"`` (only rows
        of the current tile), ``"scratch"`` (kept per element for a second pass), or ``"keep"``.
    tile_dats
        Dats that live in a buffer of the current tile.
    elide
        Dats whose final value need not reach memory.
    zero
        Dats known to hold zero when the pack starts.
    stream
        Dats stored past the caches.
    renamed
        Dats written to another buffer than the one they are read from.
    """

    lanes: int
    listed: bool = False
    commit: str = "serial"
    tile_dats: frozenset[int] = frozenset()
    elide: frozenset[int] = frozenset()
    stream: frozenset[int] = frozenset()
    renamed: frozenset[int] = frozenset()


CHUNK = 1024
"""Elements a thread takes at a time, and the unit of partial sums (fixed: it is part of the order of sums)."""

STRATEGIES = (
    "direct",
    "serial",
    "block_colour",
    "element_colour",
    "block_permute",
    "atomic",
    "gather",
    "two_pass",
)


@dataclass(frozen=True)
class WorkShape:
    """How a group becomes kernels of work items (not used by languages of plain functions).

    Attributes
    ----------
    block
        Work items a group.
    registers
        Limit of registers an item; 0: the compiler's choice.
    lanes
        Work items that share a ragged row.
    repeat
        Rows a set of lanes handles one after the other.
    sites
        Sites of a grid next to each other that an item handles.
    pairs
        Whether an item handles two neighbouring rows at once.
    long
        Rows with more entries than this are left to a second kernel, in which `LONG_LANES` items share
        each; 0: there are none such.
    degree
        Contributions of the fullest target, when the table of contributions is padded to it
        (``gather``, ``two_pass``); 0: it is compressed.
    sparse
        Whether only the targets that are met by some contribution are visited, through a list.
    single
        Whether no target has more than one contribution, so that elements can add by themselves.
    stage
        Targets of a group, where increments meet in its memory (``block_colour``); 0: they do not.
    components
        Number of components that have a kernel each; 1: one kernel handles all.
    component
        The one component that a kernel handles; -1: all.
    wide
        Whether reductions are in double precision.
    """

    block: int = 256
    registers: int = 0
    lanes: int = 1
    repeat: int = 1
    sites: int = 1
    pairs: bool = False
    long: int = 0
    degree: int = 0
    sparse: bool = False
    single: bool = False
    stage: int = 0
    components: int = 1
    component: int = -1
    wide: bool = True


@dataclass(frozen=True)
class Group:
    """Loops that become one native function.

    Attributes
    ----------
    symbol
        Name of the function.
    scatter
        Loops over other sets whose increments go to the elements of the driving set (gather only).
        For the other strategies the one loop of the group.
    direct
        Loops over the driving set that run element by element after `scatter`.
    strategy
        One of `STRATEGIES`; ``"direct"`` for loops without races.
    lanes
        Elements a pack; 1 means scalar code.
    direct_lanes
        The same for the loops of ``direct`` after a scatter; 0: as `lanes`.
    tile
        Targets a tile of the ``gather`` strategy; 1 gathers target by target.
    buffered
        Incremented dats that live in a buffer of the tile only.
    zero
        Buffered dats known to be zero before the group.
    elide, stream, renamed
        See `fluxloom.codegen.packs.pack.PackStyle`.
    work
        Shape of the kernels.
    ranged
        Whether the elements (of a gather, the targets) begin at the slot ``from`` instead of at 0.
    """

    symbol: str
    scatter: tuple[Member, ...]
    direct: tuple[Member, ...]
    strategy: str
    lanes: int = 8
    direct_lanes: int = 0
    tile: int = 4096
    buffered: frozenset[int] = frozenset()
    zero: frozenset[int] = frozenset()
    elide: frozenset[int] = frozenset()
    stream: frozenset[int] = frozenset()
    renamed: frozenset[int] = frozenset()
    listed: bool = False
    work: WorkShape = WorkShape()
    ranged: bool = False

    @property
    def members(self) -> tuple[Member, ...]:
        """Every loop, in order."""
        return (*self.scatter, *self.direct)

    @property
    def counted(self) -> bool:
        """Whether the number of elements lies behind the places of their list: ``n`` counts the places then."""
        return any(m.spec.counted for m in self.members)

    def since(self, place: str, block: str = "") -> str:
        """Return the C expression of the distance of a place from where the elements begin.

        ``block`` is how the argument block is reached, where it is one.
        """
        return f"({place} - {block}from)" if self.ranged else place

    def reductions(self, members: tuple[Member, ...]) -> list[tuple[Member, ArgSpec]]:
        """Return the global reductions of some of the loops."""
        return [
            (m, a) for m in members for a in m.spec.args if a.kind == "global" and a.access is not Access.READ
        ]
