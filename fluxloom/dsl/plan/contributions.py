"""Tables of contributions: for each target the positions, in the tables of some loops, that lead to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.plan.plan import Array, global_order

__all__ = ["SPARSE", "contributions"]

SPARSE = 0.5
"""With fewer contributions a target, only the targets that have any are visited."""

_MOST_COLUMNS, _LEAST_FILL = 32, 0.8
"""Contributions are padded to the fullest target when that wastes little and there are few of them."""


def contributions(
    name: str, overs: Sequence[Set], tables: Sequence[npt.NDArray[np.int32]], target: Set, *, pad: bool, sparse: bool
) -> dict[str, Array | int]:
    """Return the table of contributions: padded, or of the targets that are met only, where that may be and pays."""
    values: dict[str, Array | int] = {}
    orders = [global_order(over) for over in overs]
    values[f"{name}_n"], targets = target.size, target.stored
    size = sum(table.size for table in tables)
    if few := sparse and size < SPARSE * target.size:
        met = np.unique(np.concatenate([table.ravel() for table in tables]))
        tables = [np.searchsorted(met, table).astype(np.int32) for table in tables]
        values[f"{name}_met"], targets = met, met.size
        values[f"{name}_n"] = int(np.searchsorted(met, target.size))
    # of a short table it counts how many loads wait for another one
    from fluxloom.graph import ell_fill, ell_inverse, flat_inverse

    if pad and size and (few or ell_fill(tables, targets) >= _LEAST_FILL):
        found = ell_inverse(tables, targets, orders=orders)
        if found.degree <= _MOST_COLUMNS:
            values |= {f"{name}_pos": found.position, f"{name}_stride": found.stride, "degree": found.degree}
            return values
    flat = flat_inverse(tables, targets, orders)
    values |= {f"{name}_ptr": flat.pointer, f"{name}_pos": flat.position}
    return values
