"""Colourings of the rows of a square pattern, as Gauss-Seidel sweeps in parallel need them."""

from __future__ import annotations

import numpy as np

from fluxloom.core.errors import DatError
from fluxloom.graph.colour import ElementColours
from fluxloom.graph.csr import Csr, transpose_pattern
from fluxloom.graph.native import call, check_range, count, indices, offsets

__all__ = ["colour_rows"]


def colour_rows(pattern: Csr) -> ElementColours:
    """Colour the rows of a square pattern so that no entry joins two of one colour.

    Greedy, in the order of the rows: each gets the lowest colour that none of its neighbours has. Entries count in
    both directions, those of the diagonal not at all. There are at most as many colours as the longest row of the
    pattern and its transpose together has entries, and one; on lattices two.

    Parameters
    ----------
    pattern
        As many columns as rows.

    Raises
    ------
    DatError
        When an array has the wrong type, or a column is not that of a row.
    """
    n = count(pattern.offsets.size - 1, "the number of rows")
    columns = indices(pattern.indices, "pattern.indices")
    starts = offsets(pattern.offsets, "pattern.offsets", columns.size)
    if (bad := check_range(columns, n)) >= 0:
        raise DatError(f"pattern.indices[{bad}] is {columns[bad]}; the pattern has {n} rows and as many columns")
    back = transpose_pattern(pattern, n)
    colours, seen = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    used = call("colour_rows", n, starts, columns, back.offsets, back.indices, colours, seen)
    return ElementColours(colours, used)
