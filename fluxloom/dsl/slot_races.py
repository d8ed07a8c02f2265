"""Which loops through slots are correct: no two elements may write a slot, none may read what another one writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import LoopError
from fluxloom.dsl.bind import Bound, executes_halo
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.maps import BoundArgument, TableMap
from fluxloom.dsl.sets import Subset
from fluxloom.dsl.slots import SlotMap

__all__ = ["check_slots"]

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
            _check_reader(bound, writer, _Reach(use, elements, bound.name))


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


def _check_reader(bound: Bound, writer: _Reach, reader: _Reach) -> None:
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
