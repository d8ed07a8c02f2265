"""What a loop is, as far as its generated code depends on it: frozen, comparable, hashable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from fluxloom.core.access import Access
from fluxloom.core.dtypes import AoS, Layout, Scalar
from fluxloom.kernel.analysis import used_components
from fluxloom.kernel.ir import LoweredKernel

__all__ = [
    "ArgSpec",
    "Entry",
    "GridSpec",
    "LaunchSpec",
    "LoopSpec",
    "RaggedStorage",
    "RowCode",
    "Slot",
    "StencilSpec",
    "comment_text",
    "symbol_name",
]

_SYMBOL_LENGTH = 60


@dataclass(frozen=True)
class RowCode:
    """How generated code finds the entries of a row, in C that all languages of devices share.

    In all texts ``{row}`` begins the names of what is known of the row at hand, as ``{row}_start``, the place that the
    store has for it; ``{table}`` is the store's table of 64-bit integers and ``{element}`` the number of the row.

    Attributes
    ----------
    place
        Expression: the place of the entry ``{entry}``.
    stride
        Expression: the value of ``{row}_stride``.
    declarations
        Statements that declare what else `place` needs: ``"const int {row}_chunk = (int){table}[{element}];"``.
    dealt
        Expression: so many neighbouring entries go to one work item where several share a row; empty: one.
    functions
        Definitions that a unit has once, as they are: ``AI int64_t name(int64_t j) { ... }``.
    """

    place: str
    stride: str = "1"
    declarations: tuple[str, ...] = ()
    dealt: str = ""
    functions: str = ""


@dataclass(frozen=True)
class RaggedStorage:
    """How the entries of a ragged map are stored.

    Entry ``j`` of row ``r`` is at ``start(r) + j * stride(r)``. ``row_major`` stores have stride 1
    and a table of starts; ``column_major`` ones have slices of ``slice`` rows (0: one slice of all).
    ``compact`` stores hold row after row, so that a row ends where the next one starts; the starts of
    ``narrow`` ones fit into 32 bits, the lengths of ``short`` rows into 8. Where entries lie otherwise, ``code`` says
    how they are found.
    """

    column_major: bool = False
    slice: int = 1
    compact: bool = False
    narrow: bool = False
    code: RowCode | None = None
    short: bool = False


@dataclass(frozen=True)
class StencilSpec:
    """The offsets of a stencil, slowest axis first, one tuple a leg.

    Attributes
    ----------
    mirror
        Where a leg leaves the box along the last axis it leads back to the element itself, and there component ``c`` is
        component ``mirror[c]``; empty: no leg leaves.
    ends
        Whether the first and the last element of a row are where legs leave: not so where the row goes on elsewhere.
    """

    offsets: tuple[tuple[int, ...], ...]
    mirror: tuple[int, ...] = ()
    ends: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class GridSpec:
    """The box a loop runs over: periodic axes and ghost layers, slowest axis first."""

    periodic: tuple[bool, ...]
    ghost: tuple[int, ...]

    @property
    def box(self) -> GridSpec:
        """The same as a box of three axes; missing ones, which come first, have one element."""
        missing = 3 - len(self.ghost)
        return GridSpec((False,) * missing + self.periodic, (0,) * missing + self.ghost)


@dataclass(frozen=True)
class ArgSpec:
    """One argument of a loop.

    Attributes
    ----------
    kind
        ``"direct"``, ``"table"`` (whole table map or one leg of it), ``"ragged"`` (dat on the
        targets of a ragged map), ``"entries"`` (dat on its entries), ``"stencil"`` or ``"global"``.
    dat
        Number of the dat inside the loop or chain: equal numbers are the same dat.
    map
        Number of the map, ``-1`` without one.
    arity
        Legs of the map.
    leg
        The one leg that is used, ``-1`` for the whole map.
    positioned
        Direct argument on a set whose elements are stored in another order or padded.
    wide
        Whether the entries of the table have 64 bits; on a lattice, whether places in the storage of the dat do.
    """

    parameter: str
    access: Access
    kind: str
    dat: int
    scalar: Scalar
    components: tuple[int, ...]
    layout: Layout = AoS()
    map: int = -1
    arity: int = 1
    leg: int = -1
    positioned: bool = False
    wide: bool = False
    stencil: StencilSpec | None = None
    ragged: RaggedStorage | None = None

    @property
    def dim(self) -> int:
        """Number of components of one element."""
        return prod(self.components) if self.components else 1

    @property
    def legs(self) -> int:
        """Number of legs the kernel sees in a packed argument."""
        return self.arity if self.kind == "table" and self.leg < 0 else 1

    def column(self, leg: int) -> int:
        """Return the leg of the map behind a leg that the kernel sees."""
        return self.leg if self.leg >= 0 else leg

    @property
    def offsets(self) -> list[tuple[int, int, int]]:
        """Where each leg of a stencil leads along the three axes of a box; other arguments have the element itself."""
        if self.stencil is None:
            return [(0, 0, 0)]
        offsets = self.stencil.offsets if self.leg < 0 else (self.stencil.offsets[self.leg],)
        full = [(0,) * (3 - len(o)) + o for o in offsets]
        return [(o[0], o[1], o[2]) for o in full]

    @property
    def total(self) -> str:
        """C type in which results of a reduction are added up."""
        return "double" if self.scalar.floating else "int64_t"

    def turns(self, shift: int) -> bool:
        """Whether a leg that leads so far along the last axis leads back to the element at an end."""
        return self.stencil is not None and bool(self.stencil.mirror) and shift != 0 and self.stencil.ends[shift > 0]

    def mirrored(self, component: int) -> int:
        """Return the component of the element that is seen through a leg which leads back."""
        assert self.stencil is not None
        return self.stencil.mirror[component]


@dataclass(frozen=True)
class LoopSpec:
    """A kernel bound to the kinds of its arguments.

    Attributes
    ----------
    grid
        The box it runs over, or whose elements are listed, where neighbours are found by arithmetic.
    listed
        Whether the elements are those of a list.
    counted
        Whether their number lies behind the places of the list, so that it can change.
    """

    name: str
    kernel: LoweredKernel
    args: tuple[ArgSpec, ...]
    compute: Scalar
    grid: GridSpec | None = None
    listed: bool = False
    counted: bool = False

    @cached_property
    def used(self) -> Mapping[str, Mapping[int | None, frozenset[tuple[int, ...]]] | None]:
        """Components of each parameter that the body touches, by leg; None: some leg or index is not constant."""
        return {arg.parameter: _by_leg(used_components(self.kernel, arg.parameter)) for arg in self.args}

    def arg(self, parameter: str) -> ArgSpec:
        """Return the argument bound to a kernel parameter."""
        return next(a for a in self.args if a.parameter == parameter)

    @property
    def box(self) -> GridSpec:
        """The box of three axes over which it runs."""
        assert self.grid is not None
        return self.grid.box

    @cached_property
    def increments(self) -> list[ArgSpec]:
        """The arguments that add to targets of a map."""
        return [a for a in self.args if a.kind == "table" and a.access.reduces]

    @property
    def ragged(self) -> bool:
        """Whether an argument goes through a ragged map."""
        return any(a.kind in ("ragged", "entries") for a in self.args)


def _by_leg(
    used: frozenset[tuple[int | None, tuple[int, ...]]] | None,
) -> Mapping[int | None, frozenset[tuple[int, ...]]] | None:
    if used is None:
        return None
    found: dict[int | None, set[tuple[int, ...]]] = {}
    for leg, index in used:
        found.setdefault(leg, set()).add(index)
    return {leg: frozenset(indices) for leg, indices in found.items()}


@dataclass(frozen=True)
class Slot:
    """One 8-byte word of a loop's argument block: its C type, its C name and where it comes from.

    ``origin`` is ``"dat"``, ``"map"``, ``"constant"``, ``"global"``, ``"size"`` or ``"plan"``; ``key``
    tells which one.
    """

    ctype: str
    name: str
    origin: str
    key: int | str


@dataclass(frozen=True)
class LaunchSpec:
    """One kernel of a group on a device that is given work items.

    Attributes
    ----------
    symbol
        Name of the kernel.
    block
        Work items a group.
    extent
        Slot that holds the number of elements; empty: one group.
    per, over
        Work items for ``over`` elements.
    colours
        Launched once a colour of the plan, with the first and the last position and the number of
        partial results before it as trailing parameters.
    chunk
        Work items a partial result.
    """

    symbol: str
    block: int
    extent: str = ""
    per: int = 1
    over: int = 1
    colours: bool = False
    chunk: int = 128


@dataclass(frozen=True)
class Entry:
    """Name of the native function of a loop and the layout of its argument block.

    ``launches`` and ``constants`` (type, name) are empty for devices that call the function itself
    and find the run-time constants among the slots.
    """

    symbol: str
    slots: tuple[Slot, ...]
    launches: tuple[LaunchSpec, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()


def symbol_name(prefix: str, *names: str) -> str:
    """Return a C identifier from loop names, which may be any text; no helper begins with ``prefix``."""
    return prefix + re.sub(r"\W", "_", "_".join(names), flags=re.ASCII)[:_SYMBOL_LENGTH]


def comment_text(name: str) -> str:
    """Return a loop name as it may stand in a C comment."""
    return " ".join(name.split()).replace("*/", "* /").replace("/*", "/ *")
