"""Inverse maps: which elements meet a target, in the order of the elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.graph.native import Indices, Offsets, call, check_range, count, offsets, table_in_range
from fluxloom.graph.native import indices as as_indices

__all__ = ["InverseMap", "RaggedInverse", "SlicedInverse", "inverse_map", "inverse_ragged", "sliced"]

MOST_LEGS, _MOST_SLICED_LEGS = 256, 128


@dataclass(frozen=True, eq=False)
class InverseMap:
    """For each target, the (element, leg) pairs that name it, sorted by element, then leg.

    Attributes
    ----------
    offsets
        int64, ``(n_targets + 1,)``: target ``t`` has the pairs ``offsets[t] .. offsets[t + 1] - 1``.
    element
        int32, ``(n * arity,)``: row of the table.
    leg
        uint8, ``(n * arity,)``: column of the table. A row that names a target twice gives two pairs.
    """

    offsets: Offsets
    element: Indices
    leg: npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class RaggedInverse:
    """For each target, the entries of ragged rows that name it, in ascending order.

    Attributes
    ----------
    offsets
        int64, ``(n_targets + 1,)``.
    element
        int32, ``(n_entries,)``: the row of each entry.
    entry
        int64, ``(n_entries,)``: its place in the ragged indices.
    """

    offsets: Offsets
    element: Indices
    entry: Offsets


@dataclass(frozen=True, eq=False)
class SlicedInverse:
    """An inverse map for lanes that walk neighbouring targets in step (sliced ELLPACK).

    Attributes
    ----------
    lanes
        Targets a slice; the last slice is filled up with targets that have no pairs.
    slice_start
        int64, ``(n_slices + 1,)``: pair ``j`` of target ``s * lanes + lane`` lies at
        ``slice_start[s] + j * lanes + lane``.
    element
        int32: row of the table; padding repeats the last row of its target (0 if it has none).
    leg
        int8: column of the table, -1 for padding.
    width
        int32, ``(n_slices,)``: pairs of the slice's longest target.
    """

    lanes: int
    slice_start: Offsets
    element: Indices
    leg: npt.NDArray[np.int8]
    width: Indices


def inverse_map(table: Indices, n_targets: int) -> InverseMap:
    """Return the inverse of an ``(n, arity)`` table.

    Raises
    ------
    DatError
        When the table has the wrong type or range, or more than 256 columns.
    """
    checked = table_in_range(table, n_targets)
    n, arity = checked.shape
    if arity > MOST_LEGS:
        raise DatError(
            f"the table has {arity} columns; at most {MOST_LEGS} fit a leg number: use inverse_ragged"
        )
    starts = np.empty(n_targets + 1, dtype=np.int64)
    element = np.empty(checked.size, dtype=np.int32)
    leg = np.empty(checked.size, dtype=np.uint8)
    call("inverse_map", checked, n, arity, n_targets, starts, element, leg)
    return InverseMap(starts, element, leg)


def inverse_ragged(row_offsets: Offsets, indices: Indices, n_targets: int) -> RaggedInverse:
    """Return the inverse of ragged rows.

    Parameters
    ----------
    row_offsets
        int64, shape ``(n_rows + 1,)``.
    indices
        int32, shape ``(row_offsets[-1],)``: the targets of all rows, one after the other.
    n_targets
        Number of targets.

    Raises
    ------
    DatError
        When an array has the wrong type or range, or the offsets do not ascend.
    """
    checked = as_indices(indices, "indices")
    offsets(row_offsets, "row_offsets", checked.size)
    bad = check_range(checked, count(n_targets, "n_targets"))
    if bad >= 0:
        raise DatError(
            f"indices[{bad}] is {int(checked[bad])}; targets are numbered from 0 to {n_targets - 1}"
        )
    n_rows = count(row_offsets.size - 1, "the number of rows")
    starts = np.empty(n_targets + 1, dtype=np.int64)
    element = np.empty(checked.size, dtype=np.int32)
    entry = np.empty(checked.size, dtype=np.int64)
    call("inverse_ragged", row_offsets, checked, n_rows, n_targets, starts, element, entry)
    return RaggedInverse(starts, element, entry)


def sliced(inverse: InverseMap, lanes: int) -> SlicedInverse:
    """Lay an inverse map out in slices of ``lanes`` targets, column by column, padded to the longest.

    Raises
    ------
    DatError
        When ``lanes`` is below 1, or a leg above 127.
    """
    lanes = count(lanes, "lanes", least=1)
    if inverse.leg.size and int(inverse.leg.max()) >= _MOST_SLICED_LEGS:
        raise DatError(f"a table with more than {_MOST_SLICED_LEGS} columns cannot be sliced")
    n_targets = inverse.offsets.size - 1
    n_slices = -(-n_targets // lanes)
    length = np.zeros(n_slices * lanes, dtype=np.int64)
    np.subtract(inverse.offsets[1:], inverse.offsets[:-1], out=length[:n_targets])
    width = length.reshape(n_slices, lanes).max(axis=1, initial=0)
    start = np.zeros(n_slices + 1, dtype=np.int64)
    np.cumsum(width * lanes, out=start[1:])
    width = width.astype(np.int32)
    element = np.empty(int(start[-1]), dtype=np.int32)
    leg = np.empty(int(start[-1]), dtype=np.int8)
    call(
        "slice_inverse", inverse.offsets, inverse.element, inverse.leg, n_targets, lanes, n_slices,
        start, width, element, leg,
    )  # fmt: skip
    return SlicedInverse(lanes, start, element, leg, width)
