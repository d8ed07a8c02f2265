"""Patterns of compressed sparse rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fluxloom.core.errors import DatError
from fluxloom.graph.inverse import InverseMap, RaggedInverse, inverse_map, inverse_ragged
from fluxloom.graph.native import Indices, Offsets, call, count, table_in_range
from fluxloom.graph.native import table as as_table

__all__ = ["Csr", "PairEntries", "element_graph", "pair_entries", "rows_to_csr", "target_graph", "transpose_pattern"]


@dataclass(frozen=True, eq=False)
class Csr:
    """Rows of column numbers.

    Attributes
    ----------
    offsets
        int64, ``(n_rows + 1,)``: row ``r`` is ``indices[offsets[r]:offsets[r + 1]]``.
    indices
        int32: columns.
    """

    offsets: Offsets
    indices: Indices


def rows_to_csr(table: Indices) -> Csr:
    """Return the rows of an ``(n, arity)`` table, without its negative entries ("no neighbour").

    Raises
    ------
    DatError
        When the table has the wrong type.
    """
    checked = as_table(table)
    n, arity = checked.shape
    offsets = np.empty(n + 1, dtype=np.int64)
    columns = np.empty(checked.size + 1, dtype=np.int32)
    size = call("compact_rows", checked, n, arity, offsets, columns)
    return Csr(offsets, columns[:size].copy() if size < checked.size else columns[:size])


def transpose_pattern(pattern: Csr, n_columns: int) -> Csr:
    """Return the transposed pattern; its rows are ascending, and entries that occur twice stay twice.

    Raises
    ------
    DatError
        When the pattern has arrays of the wrong type, or a column is not below ``n_columns``.
    """
    inverse = inverse_ragged(pattern.offsets, pattern.indices, n_columns)
    return Csr(inverse.offsets, inverse.element)


def target_graph(table: Indices, n_targets: int) -> Csr:
    """Link the targets that occur in one row: from faces -> cells, the cells that share a face.

    The graph is symmetric, without loops from a target to itself, and its rows are ascending.

    Parameters
    ----------
    table
        Shape ``(n, arity)``.
    n_targets
        Number of targets.

    Raises
    ------
    DatError
        When the table has the wrong type or range.
    """
    checked = table_in_range(table, n_targets)
    n, arity = checked.shape
    groups = np.arange(n + 1, dtype=np.int64) * arity
    own = (
        inverse_map(checked, n_targets)
        if arity <= 256
        else inverse_ragged(groups, checked.reshape(-1), n_targets)
    )
    return _link(n_targets, groups, checked, own.offsets, own.element)


@dataclass(frozen=True, eq=False)
class PairEntries:
    """The graph of `target_graph` with each target linked to itself, and where the pairs of a row of the table are.

    Attributes
    ----------
    graph
        Rows of ascending columns.
    diagonal
        int32, ``(n_targets,)``: the entry that links a target to itself.
    table
        int32, ``(n, arity * arity)``: the entry of the pair ``i``, ``j`` of a row at ``arity i + j``.
    """

    graph: Csr
    diagonal: Indices
    table: Indices


def pair_entries(table: Indices, n_targets: int) -> PairEntries:
    """Link the targets that occur in one row, and each to itself, and find the pairs of all rows: one pass over them.

    Parameters
    ----------
    table
        Shape ``(n, arity)``, up to 256 targets a row, all different.
    n_targets
        Number of targets.

    Raises
    ------
    DatError
        When the table has the wrong type or range, or there are 2**31 entries or more.
    """
    checked = table_in_range(table, n_targets)
    n, arity = checked.shape
    own = inverse_map(checked, n_targets)
    groups = np.arange(n + 1, dtype=np.int64) * arity
    place, offsets = np.empty(n_targets, dtype=np.int32), np.empty(n_targets + 1, dtype=np.int64)
    call("link_members", n_targets, groups, checked, own.offsets, own.element, place, offsets, 0, place)
    offsets += np.arange(n_targets + 1)
    if offsets[-1] >= 2**31:
        raise DatError(
            f"the pairs of {n} rows have {int(offsets[-1])} entries, and their numbers have 31 bits: divide the rows "
            "among ranks, or keep their values row by row"
        )
    columns, diagonal = np.empty(offsets[-1], dtype=np.int32), np.empty(n_targets, dtype=np.int32)
    found = np.empty((n, arity * arity), dtype=np.int32)
    call(
        "pair_entries", n_targets, arity, checked, own.offsets, own.element, own.leg, offsets, place, columns, diagonal,
        found,
    )  # fmt: skip
    return PairEntries(Csr(offsets, columns), diagonal, found)


def element_graph(inverse: InverseMap | RaggedInverse, n_elements: int) -> Csr:
    """Link the elements that share a target: from the inverse of cells -> faces, the cells that share a face.

    The graph is symmetric, without loops from an element to itself, and its rows are ascending. A target with
    ``k`` elements costs ``k * k``.

    Parameters
    ----------
    inverse
        From :func:`fluxloom.graph.inverse_map` or :func:`fluxloom.graph.inverse_ragged`.
    n_elements
        Number of elements (rows of the table).

    Raises
    ------
    DatError
        When the inverse names an element that does not exist.
    """
    n = count(n_elements, "n_elements")
    own = inverse_ragged(inverse.offsets, inverse.element, n)
    return _link(n, inverse.offsets, inverse.element, own.offsets, own.element)


def _link(n: int, groups: Offsets, members: Indices, own_offsets: Offsets, own_groups: Indices) -> Csr:
    """Link the ``n`` members that occur in one group, counting first."""
    last = np.empty(n, dtype=np.int32)
    offsets = np.empty(n + 1, dtype=np.int64)
    common = (n, groups, members, own_offsets, own_groups, last, offsets)
    size = call("link_members", *common, 0, last)
    neighbours = np.empty(size, dtype=np.int32)
    call("link_members", *common, 1, neighbours)
    return Csr(offsets, neighbours)
