"""Rows of a global matrix on several ranks: entries follow rows, and cells add to more than this rank's rows.

A rank has all cells that touch its degrees of freedom, so that it can form its rows without a message. These cells also
have pairs in rows of others, which their owners form themselves. Cells therefore add to a dat of this rank alone that
has room for all their pairs, own rows first, and a loop takes what belongs to these over into the matrix. The kernels,
the layouts of the matrix and the ways to keep additions apart are those of one rank; memory and traffic of the entries
during assembly are about twice as large.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fluxloom.core.access import Read, Write
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.local_sets import local_set
from fluxloom.dsl.declare.maps import TableMap
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.cells.cell_entries import CellEntries
from fluxloom.kernel.frontend import kernel

__all__ = ["own_rows", "receiver"]


@kernel
def take_entry(source: Read, value: Write):
    """``a_ij = s_ij`` of one entry of an own row: the sum over the cells of this rank."""
    value[0] = source[0]


def own_rows(entries: CellEntries, rows: int) -> CellEntries:
    """Return the first rows, those that a rank owns; the table of cells still leads to all entries.

    Parameters
    ----------
    entries
        Of all rows that cells of the rank add to, own rows first.
    rows
        Number of own rows.
    """
    offsets = entries.offsets[: rows + 1]
    return replace(
        entries, offsets=offsets, indices=entries.indices[: offsets[-1]], diagonal=entries.diagonal[:rows]
    )  # fmt: skip


def receiver(values: Dat, entries: int, name: str) -> tuple[Dat, list[Loop]]:
    """Return what cells add to, and the loops that take it over into a matrix. Collective on several ranks.

    Parameters
    ----------
    values
        Of the matrix, on its entries.
    entries
        How many pairs all cells of this rank have, those of rows of other ranks, which come last, included.
    name
        Of the matrix.

    Returns
    -------
    Dat, list of Loop
        On one rank ``values`` itself, and none.
    """
    context = values.set.context
    if not context.distributed:
        return values, []
    pairs = local_set(context, entries, f"{name}.pairs")
    sums = Dat(pairs, name=f"{name}.sums", dtype=values.scalar.numpy)
    own = np.arange(values.set.size, dtype=np.int32)
    taken = TableMap(values.set, pairs, own, f"{name}.own_pairs", stays=True)
    return sums, [Loop(take_entry, values.set, sums[taken[0]], values, name=f"{name}.take")]
