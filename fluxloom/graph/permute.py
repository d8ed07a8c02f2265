"""Permutations of elements and targets.

An *order* lists old numbers: ``order[new] = old``. Its inverse, a *numbering*, lists new ones:
``numbering[old] = new``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.graph.native import Indices, call, indices, table_in_range

__all__ = ["first_touch_order", "invert_permutation", "permute_rows", "renumber"]


def invert_permutation(order: Indices) -> Indices:
    """Return the inverse of a permutation: int32, shape ``(n,)``, ``inverse[order[i]] = i``.

    Raises
    ------
    DatError
        When ``order`` is no permutation of ``0 .. n - 1``; the message names the first wrong entry.
    """
    indices(order, "permutation")
    table_in_range(order, order.size, "permutation")
    inverse = np.empty(order.size, dtype=np.int32)
    bad = call("invert", order, order.size, inverse)
    if bad >= 0:
        raise DatError(
            f"permutation[{bad}] is {int(order[bad])}, which was there before: it is no permutation"
        )
    return inverse


def permute_rows(table: npt.NDArray[Any], order: Indices) -> npt.NDArray[Any]:
    """Return a table with its rows in another order: row ``i`` of the result is row ``order[i]``.

    Parameters
    ----------
    table
        Any type, shape ``(n, ...)``.
    order
        int32, shape ``(m,)``: row numbers; a permutation, or a selection.

    Raises
    ------
    DatError
        When an entry of ``order`` is no row of the table.
    """
    table_in_range(indices(order, "order"), table.shape[0], "order")
    return np.ascontiguousarray(np.take(table, order, axis=0))


def renumber(table: Indices, numbering: Indices) -> Indices:
    """Return a table whose entries are replaced by their new numbers: ``numbering[table]``.

    Parameters
    ----------
    table
        int32, any shape of one or two dimensions.
    numbering
        int32, shape ``(n_targets,)``: the new number of each target.

    Raises
    ------
    DatError
        When an entry of the table has no new number.
    """
    table_in_range(table, indices(numbering, "numbering").size)
    return np.take(numbering, table)


def first_touch_order(table: Indices, n_targets: int) -> Indices:
    """Return the targets in the order in which a table names them first, then the ones that it does not name.

    Parameters
    ----------
    table
        Shape ``(n, arity)``, read row by row.
    n_targets
        Number of targets.

    Returns
    -------
    order : int32, shape (n_targets,)
        Old numbers; :func:`invert_permutation` gives the new number of each target.

    Raises
    ------
    DatError
        When the table has the wrong type or range.
    """
    checked = table_in_range(table, n_targets)
    order = np.empty(n_targets, dtype=np.int32)
    call("first_touch", checked, checked.size, n_targets, np.zeros(n_targets, dtype=np.uint8), order)
    return order
