"""Tables of contributions: for each target the positions, in the tables of some loops, that lead to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fluxloom.dsl.plan import Array
from fluxloom.dsl.sets import Set
from fluxloom.dsl.spans import global_order
from fluxloom.graph import ell_fill, ell_inverse, flat_inverse

__all__ = ["SPARSE", "contributions"]

SPARSE = 0.5
"""With fewer contributions a target, only the targets that have any are visited."""

_MOST_COLUMNS, _LEAST_FILL = 32, 0.8
"""Contributions are padded to the fullest target when that wastes little and there are few of them."""


def _laid_out(
    overs: Sequence[Set], tables: Sequence[npt.NDArray[np.int32]]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64] | None]:
    """Return the tables end to end, elements in their global order, and the position that each entry has as it is."""
    orders = [global_order(over) for over in overs]
    if all(order is None for order in orders):
        flat = [t.ravel() for t in tables]
        return (flat[0] if len(flat) == 1 else np.concatenate(flat)), None
    places, base = [], 0
    for table, order in zip(tables, orders, strict=True):
        rows, arity = table.shape
        sorted_rows = np.arange(rows, dtype=np.int64) if order is None else order
        places.append((base + sorted_rows[:, None] * arity + np.arange(arity)).ravel())
        base += table.size
    back = np.concatenate(places)
    return np.concatenate([t.ravel() for t in tables])[back], back


def contributions(
    name: str, overs: Sequence[Set], tables: Sequence[npt.NDArray[np.int32]], target: Set, *, pad: bool, sparse: bool
) -> dict[str, Array | int]:
    """Return the table of contributions: padded, or of the targets that are met only, where that may be and pays."""
    values: dict[str, Array | int] = {}
    table, back = _laid_out(overs, tables)
    values[f"{name}_n"], targets = target.size, target.stored
    if sparse and table.size < SPARSE * target.size:
        met = np.unique(table)
        table = np.searchsorted(met, table).astype(np.int32)
        values[f"{name}_met"], targets = met, met.size
        values[f"{name}_n"] = int(np.searchsorted(met, target.size))
    table = np.ascontiguousarray(table[:, None])
    few = f"{name}_met" in values  # a short table: what counts is how many loads wait for another one
    if pad and table.size and (few or ell_fill(table, targets) >= _LEAST_FILL):
        found = ell_inverse(table, targets)
        if found.degree <= _MOST_COLUMNS:
            position = _put_back(found.position, back)
            return values | {f"{name}_pos": position, f"{name}_stride": found.stride, "degree": found.degree}
    flat = flat_inverse(table, targets)
    values |= {f"{name}_ptr": flat.pointer, f"{name}_pos": _put_back(flat.position, back)}
    return values


def _put_back(position: npt.NDArray[np.int32], back: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int32]:
    if back is None or not back.size:
        return position
    return np.where(position >= 0, back[np.maximum(position, 0)], -1).astype(np.int32)
