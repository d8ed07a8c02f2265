"""Matrices whose rows are distributed over ranks: plain loops multiply them, and only vectors travel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.maps import entries_of
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.ragged import RaggedLayout
from fluxloom.dsl.declare.runtime import Runtime
from fluxloom.dsl.declare.sets import Set
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.matrix.reorder import reorder as order_of
from fluxloom.linalg.matrix.ring_rows import Index, Rings, find_rings

__all__ = ["distributed_matrix"]


def distributed_matrix(
    context: Runtime,
    matrix: Any,
    *,
    rows: npt.ArrayLike | None = None,
    layout: RaggedLayout | None = None,
    dtype: npt.DTypeLike | None = None,
    reorder: bool = False,
    name: str = "matrix",
) -> SparseMatrix:
    """Make a square matrix of which each rank has some rows. Collective.

    Rows that meet columns of this rank alone are the interior, which is multiplied while messages travel; the part of
    ``matrix.rows`` has the global numbers of the rows in their new order. Entries of a row keep their order,
    so that a product has the same bits on any number of ranks.

    Parameters
    ----------
    context
        Where it lives; has the ranks.
    matrix
        The rows of this rank, ``(owned, total)`` with global columns: a SciPy sparse array or matrix.
    rows
        Global number of each row, ascending or not. By default ranks have consecutive rows in their order.
    layout, dtype, name
        As in `SparseMatrix.from_csr`.
    reorder
        Whether the rows of this rank that are alike, in the interior or not, are ordered by
        `fluxloom.linalg.matrix.reorder.reorder`; otherwise their global numbers ascend. On one rank, too,
        ``matrix.rows`` then has a part, whose numbers tell the order.

    Raises
    ------
    DatError
        On every rank, if on one of them the rows, columns or values do not fit; it names the rank.
    """
    plan = find_rings(context.comm, matrix, 1, rows)
    order = _reordered(plan) if reorder else np.lexsort((plan.numbers[: plan.owned], ~plan.inner))
    place = np.arange(plan.numbers.size)
    place[order] = np.arange(plan.owned)
    lengths = np.diff(plan.offsets)[order]
    entries = entries_of(plan.offsets[order], lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    part = _part(plan, order, place)
    shared = context.distributed or reorder
    where = Set(context, part.owned if shared else plan.owned, f"{name}.rows", part=part if shared else None)
    return SparseMatrix.from_csr(
        context, offsets, place[plan.indices[entries]], plan.values[entries], rows=where, columns=where,
        layout=layout, dtype=dtype, name=name,
    )  # fmt: skip


def _reordered(plan: Rings) -> Index:
    """Return the order of the owned rows: inner ones first, then by their lengths and their graph on this rank."""
    from scipy.sparse import csr_array

    shape = plan.owned, plan.numbers.size
    entries = int(plan.offsets[plan.owned])
    offsets, indices = plan.offsets[: plan.owned + 1], plan.indices[:entries]
    return order_of(csr_array((np.ones(entries), indices, offsets), shape=shape), groups=~plan.inner)


def _part(plan: Rings, order: Index, place: Index) -> Part:
    """Return the part of the rows: those of `order`, then the rows of other ranks whose values are needed."""
    near = sorted({*plan.send, *plan.receive})
    none = np.zeros(0, dtype=np.int64)
    return Part(
        begin=0,
        inside=int(np.count_nonzero(plan.inner)),
        owned=plan.owned,
        executed=plan.owned,
        stored=plan.numbers.size,
        numbers=np.concatenate([plan.numbers[order], plan.numbers[plan.owned :]]),
        total=plan.total,
        neighbours=tuple(near),
        send=tuple(place[plan.send.get(rank, none)].astype(np.int32) for rank in near),
        receive=tuple(plan.receive.get(rank, none).astype(np.int32) for rank in near),
    )
