"""Tables by which targets collect contributions that elements left in flat or block-local storage.

A *flat position* is ``element * arity + leg``. Tables here count with 32 bits: what does not fit is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.graph.native import Indices, Offsets, call, count, offsets, row_order, table_in_range

__all__ = [
    "BlockTargets",
    "EllInverse",
    "FlatInverse",
    "block_targets",
    "ell_fill",
    "ell_inverse",
    "flat_inverse",
]

Local = npt.NDArray[np.uint16]

_ROUND, _MOST_LOCAL = 32, 65535


@dataclass(frozen=True, eq=False)
class FlatInverse:
    """For each target, the flat positions that name it, ascending.

    Attributes
    ----------
    pointer
        int32, ``(n_targets + 1,)``: target ``t`` has the positions ``pointer[t] .. pointer[t + 1] - 1``.
    position
        int32, ``(n * arity,)``.
    degree
        Positions of the longest row.
    """

    pointer: Indices
    position: Indices
    degree: int


@dataclass(frozen=True, eq=False)
class EllInverse:
    """A flat inverse padded to rows of one length, stored column by column (ELLPACK).

    Attributes
    ----------
    position
        int32, ``(degree, stride)``: ``position[k, t]`` is the ``k``-th flat position of target ``t``, and -1
        where it has no more or ``t`` is no target.
    """

    position: Indices

    @property
    def degree(self) -> int:
        """Positions of the longest row."""
        return self.position.shape[0]

    @property
    def stride(self) -> int:
        """Targets a column has room for."""
        return self.position.shape[1]


@dataclass(frozen=True, eq=False)
class BlockTargets:
    """The distinct targets of each block of consecutive elements.

    Attributes
    ----------
    target_ptr
        int32, ``(n_blocks + 1,)``: where the targets of each block begin in ``targets``.
    targets
        int32: distinct in each block, ascending.
    local
        uint16, ``(n, arity)``: the place of each table entry among its block's targets.
    most
        Targets of the block that has most.
    """

    target_ptr: Indices
    targets: Indices
    local: Local
    most: int


def flat_inverse(
    tables: Indices | Sequence[Indices], n_targets: int, orders: Sequence[Offsets | None] | None = None
) -> FlatInverse:
    """Return, for each target, the flat positions of an ``(n, arity)`` table that name it.

    Parameters
    ----------
    tables
        The table; or several, whose positions follow one another.
    n_targets
        Number of targets.
    orders
        For each table the order in which its rows come in the lists of targets, int64 and ``(n,)``; None, and by
        default: ascending.

    Raises
    ------
    DatError
        When a table has the wrong type or range, there are 2**31 entries or more, or an order does not fit.
    """
    checked = _flat_tables(tables, n_targets)
    size = sum(t.size for t in checked)
    pointer = np.empty(n_targets + 1, dtype=np.int32)
    position = np.empty(size, dtype=np.int32)
    degree = call("flat_inverse", *_in_order(checked, orders), n_targets, pointer, position)
    return FlatInverse(pointer, position, degree)


def ell_inverse(
    tables: Indices | Sequence[Indices],
    n_targets: int,
    stride: int | None = None,
    orders: Sequence[Offsets | None] | None = None,
) -> EllInverse:
    """Return the flat inverse of an ``(n, arity)`` table, padded to the longest row.

    Parameters
    ----------
    tables, n_targets, orders
        As for :func:`flat_inverse`. :func:`ell_fill` tells how much of the result is padding.
    stride
        Length of a column, ``n_targets`` or more; by default ``n_targets`` rounded up to a multiple of 32.

    Raises
    ------
    DatError
        When a table has the wrong type or range, an order does not fit, the stride is too small, or the result has
        2**31 entries or more.
    """
    checked = _flat_tables(tables, n_targets)
    if stride is None:
        stride = -(-n_targets // _ROUND) * _ROUND
    stride = count(stride, "stride", least=n_targets)
    counts = np.empty(n_targets, dtype=np.int32)
    degree = call("count_rows", len(checked), checked, _sizes(checked), n_targets, counts)
    count(degree * stride, f"the number of entries of {degree} columns of {stride}")
    position = np.empty((degree, stride), dtype=np.int32)
    call("ell_inverse", *_in_order(checked, orders), n_targets, degree, stride, counts, position)
    return EllInverse(position)


def ell_fill(tables: Indices | Sequence[Indices], n_targets: int) -> float:
    """Return the part of ``(degree, n_targets)`` that :func:`ell_inverse` would fill; 1 if that is empty.

    Raises
    ------
    DatError
        When a table has the wrong type or range, or there are 2**31 entries or more.
    """
    checked = _flat_tables(tables, n_targets)
    counts = np.empty(n_targets, dtype=np.int32)
    degree = call("count_rows", len(checked), checked, _sizes(checked), n_targets, counts)
    return sum(t.size for t in checked) / (degree * n_targets) if degree else 1.0


def block_targets(table: Indices, n_targets: int, offset: Offsets) -> BlockTargets:
    """List the distinct targets of blocks of elements, and renumber the table's entries by them.

    Parameters
    ----------
    table
        ``(n, arity)``.
    n_targets
        Number of targets.
    offset
        int64, ``(n_blocks + 1,)``: block ``b`` holds the elements ``offset[b] .. offset[b + 1] - 1``.

    Raises
    ------
    DatError
        When the table has the wrong type or range, or 2**31 entries or more, the offsets do not ascend from 0
        to ``n``, or a block has more than 65535 targets.
    """
    checked = _flat_table(table, n_targets)
    n, arity = checked.shape
    n_blocks = offsets(offset, "offset", n).size - 1
    target_ptr = np.empty(n_blocks + 1, dtype=np.int32)
    targets = np.empty(checked.size, dtype=np.int32)
    local = np.empty((n, arity), dtype=np.uint16)
    place, spare = np.empty(n_targets, dtype=np.int32), np.empty(_MOST_LOCAL, dtype=np.int32)
    size = call(
        "block_targets", checked, arity, n_targets, offset, n_blocks, _MOST_LOCAL,
        place, spare, target_ptr, targets, local,
    )  # fmt: skip
    if size < 0:
        raise DatError(f"block {-1 - size} has more than {_MOST_LOCAL} targets: take smaller blocks")
    return BlockTargets(target_ptr, targets[:size].copy(), local, int(np.diff(target_ptr).max(initial=0)))


def _flat_table(array: Indices, n_targets: int) -> Indices:
    """Return a table as :func:`table_in_range` does, of fewer than 2**31 entries."""
    return _flat_tables(array, n_targets)[0]


def _flat_tables(tables: Indices | Sequence[Indices], n_targets: int) -> tuple[Indices, ...]:
    """Return one table or several as :func:`table_in_range` does, of fewer than 2**31 entries together."""
    if isinstance(tables, np.ndarray):
        checked: tuple[Indices, ...] = (table_in_range(tables, n_targets),)
    else:
        checked = tuple(table_in_range(t, n_targets, f"tables[{i}]") for i, t in enumerate(tables))
    count(sum(t.size for t in checked), "the number of table entries")
    return checked


def _sizes(tables: Sequence[Indices]) -> Offsets:
    """Return the number of entries of each table."""
    return np.array([t.size for t in tables], dtype=np.int64)


def _in_order(tables: Sequence[Indices], orders: Sequence[Offsets | None] | None) -> tuple[Any, ...]:
    """Return how C functions get tables and the orders of their rows."""
    arity = np.array([max(1, t.shape[1]) for t in tables], dtype=np.int64)
    given = [None] * len(tables) if orders is None else orders
    found = [row_order(order, len(t)) for t, order in zip(tables, given, strict=True)]
    ordered = np.array([order.size for order in found], dtype=np.int64)
    return len(tables), tuple(tables), _sizes(tables), arity, tuple(found), ordered
