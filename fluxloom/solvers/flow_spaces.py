"""Cells, elements and faces of control volumes as sets of a context, as this rank has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Layout
from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.maps import RaggedMap, entries_of
from fluxloom.dsl.parts import Part
from fluxloom.dsl.ragged import RaggedLayout
from fluxloom.dsl.sets import Set
from fluxloom.fv.sides import Family
from fluxloom.fv.volumes import ControlVolumes

__all__ = ["FlowSpaces", "Rows", "Space"]

Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """A sparse matrix whose entries may have several numbers."""

    pattern: RaggedMap
    values: Dat

    @property
    def entries(self) -> Any:
        """What loops over the rows take for the values of a row."""
        return self.values[self.pattern.to_entries]


class Space:
    """A set, and the numbers of its elements in `ControlVolumes`.

    Parameters
    ----------
    context
        Where it lives.
    name
        Of the set.
    part
        What this rank has.
    order
        Number in `ControlVolumes` of each stored element; the same order by default.
    """

    def __init__(self, context: Context, name: str, part: Part, order: Index | None = None) -> None:
        self.set: Set = context.set(part, name)
        if order is not None and order.size == self.set.size and np.array_equal(order, np.arange(order.size)):
            order = None  # as on one rank
        self.context, self.order = context, order
        self.place: Index | None = None
        if order is not None:
            self.place = np.empty_like(order)
            self.place[order] = np.arange(order.size)

    @property
    def owned(self) -> Index | slice:
        """Numbers in `ControlVolumes` of the elements that this rank owns, in the order of the set."""
        return slice(0, self.set.size) if self.order is None else self.order[: self.set.size]

    def dat(self, values: npt.NDArray[Any], name: str, layout: Layout | None = None) -> Dat:
        """Return values ``(n, ...)`` in the order of `ControlVolumes` as a dat."""
        return self.context.dat(self.set, values[self.owned], name, layout=layout)

    def local(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return local numbers of elements."""
        return numbers if self.place is None else self.place[numbers]

    def rows(self, found: Family, target: Space, name: str, layout: RaggedLayout | None = None) -> Rows:
        """Return matrices from this space to another; rows that they do not have are empty."""
        bounds, chosen = self._stored(found.offsets)
        columns, values = found.columns, found.values
        if chosen is not None:
            columns, values = columns[chosen], values[chosen]
        pattern = self.context.ragged(self.set, target.set, bounds, target.local(columns), name, layout)
        return Rows(pattern, self.context.dat(pattern.entries, values, f"{name}.values"))

    def more(self, pattern: RaggedMap, found: Family, name: str) -> Dat:
        """Return the values of further matrices of the same rows as those that a pattern was made from."""
        chosen = self._stored(found.offsets)[1]
        return self.context.dat(pattern.entries, found.values if chosen is None else found.values[chosen], name)

    def _stored(self, offsets: Index) -> tuple[Index, Index | None]:
        """Return where rows begin in the order of storage, and which entries come one after the other; None: all."""
        stored = self.set.size if self.order is None else self.order.size
        lengths = np.zeros(max(stored, offsets.size - 1), dtype=np.int64)
        lengths[: offsets.size - 1] = np.diff(offsets)
        entries = None
        if self.order is not None:
            chosen = self.order[: self.set.size]
            starts = np.concatenate([offsets[:-1], np.zeros(lengths.size - offsets.size + 1, dtype=np.int64)])[chosen]
            lengths = lengths[chosen]
            entries = entries_of(starts, lengths)
        return np.concatenate([[0], np.cumsum(lengths)]), entries

    def entry_rows(self, pattern: RaggedMap, found: Family, name: str) -> Rows:
        """Return matrices from the entries of a pattern to this space.

        Raises
        ------
        SolverError
            If there is not a row for each entry.
        """
        if found.offsets.size - 1 != pattern.entries.size:
            raise SolverError(f"{name}: {found.offsets.size - 1} rows for {pattern.entries.size} entries")
        map_ = self.context.ragged(pattern.entries, self.set, found.offsets, self.local(found.columns), name)
        return Rows(map_, self.context.dat(map_.entries, found.values, f"{name}.values"))


class FlowSpaces:
    """The sets of a flow: `cells`, `elements` (cells and boundary elements) and `faces`.

    Raises
    ------
    SolverError
        If the control volumes and the context are not of as many ranks.
    """

    def __init__(self, context: Context, volumes: ControlVolumes) -> None:
        shared = volumes.shared
        if context.comm.size != shared.comm.size:
            wanted = "shared_volumes of the divided mesh" if context.ranked else "control_volumes(mesh)"
            raise SolverError(f"the context has {context.comm.size} ranks: make the control volumes with {wanted}")
        self.cells = Space(context, "cells", shared.cells)
        self.elements = Space(context, "elements", shared.elements, shared.element_order)
        self.faces = Space(context, "faces", shared.faces, shared.face_order)
        self.inside = self.elements.local(np.arange(shared.cells.owned))
