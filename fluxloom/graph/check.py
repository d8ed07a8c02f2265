"""Questions about a table."""

from __future__ import annotations

import numpy as np

from fluxloom.graph.native import Indices, call, count, table_in_range

__all__ = ["covers", "is_injective"]


def is_injective(table: Indices, n_targets: int, *, between_rows: bool = False) -> bool:
    """Whether each target occurs at most once in a table.

    Parameters
    ----------
    table
        Shape ``(n, arity)``.
    n_targets
        Number of targets.
    between_rows
        Whether a target may occur several times in one row, as long as no other row has it.

    Raises
    ------
    DatError
        When the table has the wrong type or names targets that do not exist.
    """
    checked = table_in_range(table, n_targets)
    if between_rows:
        owner = np.empty(n_targets, dtype=np.int32)
        return call("first_shared", checked, checked.shape[0], checked.shape[1], n_targets, owner) < 0
    return call("first_repeated", checked, checked.size, np.zeros(n_targets, dtype=np.uint8)) < 0


def covers(table: Indices, n_targets: int) -> bool:
    """Whether each target occurs at least once in a table of shape ``(n, arity)``.

    Raises
    ------
    DatError
        When the table has the wrong type or names targets that do not exist.
    """
    checked = table_in_range(table, n_targets)
    met = np.zeros(count(n_targets, "n_targets"), dtype=np.uint8)
    return call("count_met", checked, checked.size, met) == n_targets
