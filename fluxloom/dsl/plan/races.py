"""Which arguments of a loop race, what must hold for the others, which strategies are possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Access
from fluxloom.core.errors import LoopError, PlanError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.maps import Argument, BoundArgument, OffsetMap, RaggedMap, TableMap, entries_of
from fluxloom.dsl.declare.schedule import RACE_STRATEGIES
from fluxloom.dsl.declare.sets import Grid, Set, Subset
from fluxloom.dsl.declare.slots import SlotMap
from fluxloom.dsl.plan.bind import Bound, executes_halo, parts_ways
from fluxloom.graph import is_injective

__all__ = ["RaceInfo", "analyse", "check_slots"]

Places = npt.NDArray[np.int64]


def check_slots(bound: Bound) -> set[int]:
    """Check the writes through slots of a loop; returns ``id`` of the dats that were checked with all their uses.

    Raises
    ------
    LoopError
        If two elements would write a slot, or one would read what another one writes.
    """
    by_dat: dict[int, list[BoundArgument]] = {}
    for arg in bound.arguments:
        by_dat.setdefault(id(arg.data), []).append(arg)
    checked = {key: uses for key, uses in by_dat.items() if any(isinstance(a.map, SlotMap) for a in uses)}
    for uses in checked.values():
        _check_dat(bound, uses)
    return set(checked)


def _check_dat(bound: Bound, uses: list[BoundArgument]) -> None:
    data = uses[0].data
    assert isinstance(data, Dat)
    written = [a for a in uses if a.access.writes]
    if not written:
        return
    names = " and ".join(repr(a.name) for a in uses)
    if any(a.access.reduces for a in written):
        _check_increments(bound, uses, names)
        return
    if len(written) > 1:
        raise LoopError(f"{bound.name}: {names} are the same {data.name!r} and several are written: write one of them")
    elements = _elements(bound)
    writer = _Reach(written[0], elements)
    if isinstance(writer.arg.map, SlotMap):
        _check_distinct(bound, writer)
    for use in uses:
        if use is not written[0]:
            _check_slot_reader(bound, writer, _Reach(use, elements, bound.name))


def _check_increments(bound: Bound, uses: list[BoundArgument], names: str) -> None:
    """Check that all uses of a dat that is added to through slots go through the same ones."""
    arg = next(a for a in uses if a.access.reduces)
    data, mode = arg.data, arg.access
    assert isinstance(data, Dat)
    if any(a.map is not arg.map or a.access is not mode for a in uses):
        raise LoopError(
            f"{bound.name}: {names} are the same {data.name!r}, which is changed by {mode.value} through slots: it may "
            "not be used in another way, or through other slots, in the same loop; add to another dat"
        )
    if isinstance(arg.map, SlotMap) and arg.map.places(data).wide:
        raise LoopError(
            f"{bound.name}: argument {arg.name!r} is {mode.value} through slots of {data.name!r}, which has more than "
            "2**31 - 1 numbers: only Read, Write and RW are possible there"
        )


def _elements(bound: Bound) -> Places:
    """Return the elements that a loop runs over."""
    over = bound.over
    count = over.executed if executes_halo(bound) else over.size
    found = over.indices[:count] if isinstance(over, Subset) else np.arange(count)
    return found.astype(np.int64)


class _Reach:
    """What the elements of a loop meet through an argument.

    Attributes
    ----------
    place
        ``(n, legs)``: storage places.
    component
        Of each; None: all components.
    """

    def __init__(self, arg: BoundArgument, elements: Places, loop: str = "") -> None:
        self.arg, data, through = arg, arg.data, arg.map
        assert isinstance(data, Dat)
        self.data, self.elements = data, elements
        self.component: Places | None = None
        legs = slice(None) if arg.leg < 0 else slice(arg.leg, arg.leg + 1)
        if isinstance(through, SlotMap):
            self.place: Places = through.elements[elements][:, legs].astype(np.int64)
            self.component = through.components[elements][:, legs].astype(np.int64)
            return
        if through is not None and not isinstance(through, TableMap):
            raise LoopError(
                f"{loop}: {arg.name!r} meets {data.name!r} through {through!r}, and the same loop changes it "
                "through slots: write another dat instead"
            )
        met = elements[:, None] if through is None else through.table[elements][:, legs]
        position = data.set.position
        self.place = (met if position is None else position[met]).astype(np.int64)

    def keys(self, fine: bool) -> Places:
        """Return a number for each slot, or for each element where ``fine`` is not asked for."""
        return self.place * self.data.dim + self.component if fine and self.component is not None else self.place


def _check_distinct(bound: Bound, writer: _Reach) -> None:
    """Check that each slot is written once."""
    keys = writer.keys(True).ravel()
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if not again.size:
        return
    one, other = (_entry(writer, int(order[again[0] + k])) for k in (0, 1))
    through = writer.arg.map
    assert isinstance(through, SlotMap)
    raise LoopError(
        f"{bound.name}: argument {writer.arg.name!r} is written through slots {through.name!r}, whose entries {one} "
        f"and {other} are the same component of the same element; use Inc, or slots that meet each one at most once"
    )


def _entry(reach: _Reach, flat: int) -> str:
    row, leg = divmod(flat, reach.place.shape[1])
    return f"[{reach.elements[row]}, {max(0, reach.arg.leg) + leg}]"


def _check_slot_reader(bound: Bound, writer: _Reach, reader: _Reach) -> None:
    """Check that an element reads no slot that another one writes."""
    fine = writer.component is not None and reader.component is not None
    met, owner = _owners(writer.keys(fine), writer.elements)
    keys = reader.keys(fine).ravel()
    first, last = np.searchsorted(met, keys, "left"), np.searchsorted(met, keys, "right")
    mine = np.repeat(reader.elements, reader.place.shape[1])
    found = last > first
    foreign = found & (last - first > 1)
    foreign[found] |= owner[first[found]] != mine[found]
    if foreign.any():
        raise LoopError(
            f"{bound.name}: {reader.arg.name!r} reads {reader.data.name!r} where another element of the same loop "
            f"writes it (entry {_entry(reader, int(np.argmax(foreign)))}); write a second dat, or run over subsets "
            "that do not touch each other"
        )


def _owners(keys: Places, elements: Places) -> tuple[npt.NDArray[Any], Places]:
    """Return the distinct pairs of what is written and who writes it, in the order of the former."""
    owner = np.repeat(elements, keys.shape[1])
    order = np.lexsort((owner, keys.ravel()))
    met, owner = keys.ravel()[order], owner[order]
    new = np.ones(met.size, dtype=bool)
    new[1:] = (met[1:] != met[:-1]) | (owner[1:] != owner[:-1])
    return met[new], owner[new]


_ADDED_THROUGH = (TableMap, RaggedMap, SlotMap)
"""Maps that may lead two elements to the same value."""


@dataclass(frozen=True, eq=False)
class RaceInfo:
    """What the plan of a loop has to respect.

    Attributes
    ----------
    tables
        ``(elements, arity)`` tables of the targets of racing increments, one a distinct map (or leg).
    targets
        Target set of each table.
    allowed
        Strategies that are correct for this loop; empty when nothing races.
    reasons
        Why a strategy is not in ``allowed``.
    """

    tables: tuple[npt.NDArray[np.int32], ...]
    targets: tuple[Set, ...]
    allowed: tuple[str, ...]
    reasons: dict[str, str]

    @property
    def racing(self) -> bool:
        """Whether two elements may change the same value."""
        return bool(self.tables)

    def require(self, name: str, strategy: str) -> None:
        """Raise `PlanError` unless ``strategy`` is possible."""
        if self.racing and strategy not in self.allowed:
            raise PlanError(
                f"{name}: strategy {strategy!r} is not possible: {self.reasons.get(strategy, 'unknown')}; "
                f"possible are {', '.join(self.allowed)}"
            )


def analyse(bound: Bound) -> RaceInfo:
    """Check writes and aliases of a loop and find its races.

    Raises
    ------
    LoopError
        If two elements would write the same value, or one would read what another writes.
    """
    for arg in bound.arguments:
        if isinstance(arg.map, TableMap) and arg.access in (Access.WRITE, Access.RW):
            _check_injective(bound, arg, arg.map)
    _check_aliases(bound, check_slots(bound))
    tables: list[npt.NDArray[np.int32]] = []
    targets: list[Set] = []
    seen: set[tuple[int, int]] = set()
    racing = [a for a in bound.arguments if _races(a)]
    for arg in racing:
        key = (id(arg.map), arg.leg)
        if arg.map is not None and key not in seen:
            seen.add(key)
            tables.append(_targets(bound.over, arg))
            targets.append(arg.map.numbered[1] if isinstance(arg.map, SlotMap) else arg.map.target)
    allowed, reasons = _allowed(bound, racing, targets) if tables else ((), {})
    return RaceInfo(tuple(tables), tuple(targets), allowed, reasons)


def _targets(over: Set, arg: Argument) -> npt.NDArray[np.int32]:
    """Return the targets of an argument, one row an element of the loop."""
    through = arg.map
    if isinstance(through, RaggedMap):
        table = _padded_rows(through)
    else:
        assert isinstance(through, (TableMap, SlotMap))
        whole = through.table if isinstance(through, TableMap) else through.numbered[0]
        table = whole if arg.leg < 0 else np.ascontiguousarray(whole[:, arg.leg : arg.leg + 1])
    return np.ascontiguousarray(table[over.indices]) if isinstance(over, Subset) else table


def _padded_rows(ragged: RaggedMap) -> npt.NDArray[np.int32]:
    """Return the targets of each row, short rows filled with a target of their own (empty ones with 0)."""
    width = max(1, int(ragged.store.length.max(initial=0)))
    first = np.minimum(ragged.offsets[:-1], max(0, ragged.indices.size - 1))
    if not ragged.indices.size:
        return np.zeros((ragged.store.rows, 1), dtype=np.int32)
    last = np.maximum(ragged.offsets[1:] - 1, first)
    place = np.minimum(first[:, None] + np.arange(width), last[:, None])
    return np.ascontiguousarray(ragged.indices[place])


def _check_injective(bound: Bound, arg: BoundArgument, through: TableMap) -> None:
    if arg.leg < 0 and through.distinct:
        return  # then any rows of it are
    table = _targets(bound.over, arg)
    if not is_injective(table, through.target.stored) and not parts_ways(bound.over, arg, bound.lowered):
        raise LoopError(
            f"{bound.name}: argument {arg.name!r} is written through map {through.name!r}, which leads two elements "
            "to the same target; use Inc, or a map that meets each target at most once"
        )


def _check_aliases(bound: Bound, known: set[int]) -> None:
    """A dat that is written may appear again only where no element meets what another one writes.

    ``known`` are ``id`` of the dats of which that has been found already.
    """
    by_dat: dict[int, list[BoundArgument]] = {}
    for arg in bound.arguments:
        if id(arg.data) not in known:
            by_dat.setdefault(id(arg.data), []).append(arg)
    for uses in by_dat.values():
        written = [a for a in uses if a.access.writes]
        if len(uses) == 1 or not written or all(a.access is Access.INC for a in uses):
            continue
        names = " and ".join(repr(a.name) for a in uses)
        data = uses[0].data
        if len(written) > 1 or isinstance(data, Global) or written[0].map is not None:
            raise LoopError(
                f"{bound.name}: {names} are the same {data.name!r} and it is written: write another dat instead"
            )
        for arg in uses:
            if arg is not written[0]:
                _check_reader(bound, arg)


def _check_reader(bound: Bound, arg: BoundArgument) -> None:
    """Check that a second use of a dat, which is written directly, only meets unwritten elements."""
    if isinstance(arg.map, (TableMap, RaggedMap)):
        over = bound.over
        elements = over.indices if isinstance(over, Subset) else np.arange(over.executed, dtype=np.int32)
        written = np.zeros(bound.over.parent.stored, dtype=bool)
        written[elements] = True
        reader, met = _readers(bound.over, elements, arg)
        if not (written[met] & (met != reader)).any():
            return
    if isinstance(arg.map, OffsetMap) and all(not any(o) for o in arg.map.offsets):
        return
    raise LoopError(
        f"{bound.name}: {arg.name!r} reads {arg.data.name!r} where another element of the same loop writes it; "
        "write a second dat, or run over subsets that do not touch each other"
    )


def _readers(over: Set, elements: npt.NDArray[np.int32], arg: Argument) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return elements and the targets that they read; of a ragged map, one pair an entry."""
    if not isinstance(arg.map, RaggedMap):
        met = _targets(over, arg)
        return elements[: len(met), None], met
    offsets = arg.map.offsets
    rows = elements[elements < offsets.size - 1]
    lengths = np.diff(offsets)[rows]
    return np.repeat(rows, lengths), arg.map.indices[entries_of(offsets[rows], lengths)]


def _races(arg: BoundArgument) -> bool:
    """Whether elements may add to the same value through an argument."""
    return arg.access.reduces and isinstance(arg.map, _ADDED_THROUGH)


def _allowed(
    bound: Bound, racing: list[BoundArgument], targets: list[Set]
) -> tuple[tuple[str, ...], dict[str, str]]:
    reasons: dict[str, str] = {}
    if any(isinstance(a.map, RaggedMap) for a in racing):
        text = "increments go through a ragged map"
        reasons |= {"gather": text, "two_pass": text}
    if any(isinstance(a.map, SlotMap) for a in racing):
        text = "increments go through slots"
        reasons |= {"gather": text, "two_pass": text}
        reasons |= {"block_colour": text} if bound.over.context.device.items else {}
    if any(a.access is not Access.INC for a in racing):
        reasons["atomic"] = "it has Min or Max increments, which have no atomic form here"
    if "gather" not in reasons:
        reasons |= {"gather": reason} if (reason := _not_gatherable(bound, targets)) else {}
    if any(t.position is not None for t in targets):
        text = "it increments elements that are not stored in order"
        reasons.setdefault("gather", text)
        reasons.setdefault("two_pass", text)
    if isinstance(bound.over, (Subset, Grid)):
        reasons.setdefault("gather", f"it runs over {bound.over}")
        reasons.setdefault("two_pass", f"it runs over {bound.over}") if isinstance(bound.over, Subset) else None
    return tuple(s for s in RACE_STRATEGIES if s not in reasons), reasons


def _not_gatherable(bound: Bound, targets: list[Set]) -> str:
    """Return why the kernel may not be computed twice for an element (empty when it may)."""
    if any(t is not targets[0] for t in targets):
        return "its increments go to more than one set"
    for arg in bound.arguments:
        if arg.access is Access.READ:
            continue
        if not arg.access.reduces or not isinstance(arg.map, TableMap):
            return f"{arg.name!r} ({arg.access.value}) would be repeated for an element with targets in two tiles"
    return ""
