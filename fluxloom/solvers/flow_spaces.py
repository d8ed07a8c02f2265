"""Cells, elements and faces of control volumes as sets of a context, as this rank has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import Layout
from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.maps import RaggedMap, entries_of
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.fv.geometry.volumes import ControlVolumes, Family

__all__ = ["FlowSpaces", "Patched", "Rows", "Space", "patch_elements", "patch_numbers", "place_in"]

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
            wanted = "shared_volumes of the divided mesh" if context.distributed else "control_volumes(mesh)"
            raise SolverError(f"the context has {context.comm.size} ranks: make the control volumes with {wanted}")
        self.cells = Space(context, "cells", shared.cells)
        self.elements = Space(context, "elements", shared.elements, shared.element_order)
        self.faces = Space(context, "faces", shared.faces, shared.face_order)
        self.inside = self.elements.local(np.arange(shared.cells.owned))


class Patched(Protocol):
    """A flow on control volumes, whose boundary elements are in patches."""

    context: Context
    volumes: ControlVolumes
    spaces: FlowSpaces
    elements: Set


def patch_numbers(flow: Patched, patches: str | Sequence[str]) -> np.ndarray:
    """Return the numbers in `ControlVolumes` of the boundary elements of one or several patches that this rank has.

    Raises
    ------
    SolverError
        If a patch does not exist or is named twice.
    """
    known, names = flow.volumes.patches, [patches] if isinstance(patches, str) else list(patches)
    for k, name in enumerate(names):
        if name not in known:
            listed = ", ".join(known) or "none"
            raise SolverError(f"no patch {name!r}{did_you_mean(name, known)} (patches: {listed})")
        if name in names[:k]:
            raise SolverError(f"patch {name!r} is named twice")
    return np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(known[name].start, known[name].stop)
                                                          for name in names)])  # fmt: skip


def patch_elements(flow: Patched, patches: str | Sequence[str]) -> Subset:
    """Return the boundary elements of one or several patches, see `patch_numbers`. Collective."""
    names = patches if isinstance(patches, str) else "+".join(patches)
    return flow.context.subset(flow.elements, flow.spaces.elements.local(patch_numbers(flow, patches)), names)


def place_in(about: Sequence[float], dimension: int) -> tuple[float, float, float]:
    """Return the point that moments are about in space, by default the origin; raise `SolverError` if it is none."""
    point = tuple(float(x) for x in about) or (0.0,) * dimension
    if len(point) != dimension or not np.isfinite(point).all():
        raise SolverError(f"point: {dimension} coordinates are wanted, not {list(about)}")
    x, y, z = (*point, 0.0)[:3]
    return x, y, z
