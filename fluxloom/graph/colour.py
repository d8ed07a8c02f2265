"""Colourings: no two elements of one colour meet the same target.

Greedy colouring with bit masks: I. Z. Reguly, *Algorithms and architectures for unstructured grid
computations*, PhD thesis, PPCU Budapest 2014, section 7.1.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluxloom.core.errors import DatError
from fluxloom.graph.native import Indices, Offsets, call, count, indices, table_in_range

__all__ = ["ElementColours", "TargetTables", "colour_elements", "colour_permutation", "target_tables"]


@dataclass(frozen=True, eq=False)
class ElementColours:
    """A colouring of elements.

    Attributes
    ----------
    colours
        int32, shape ``(n,)``: the colour of each element.
    n_colours
        Number of colours; every colour below it occurs.
    """

    colours: Indices
    n_colours: int


@dataclass(frozen=True, eq=False)
class TargetTables:
    """Checked tables, with one zeroed 64-bit word for each target that they share or not."""

    tables: tuple[Indices, ...]
    arity: Offsets
    base: Offsets
    work: np.ndarray[Any, np.dtype[np.uint64]]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The first arguments of the C functions of ``colour.c``."""
        return (len(self.tables), self.tables, self.arity, self.base, self.work)


def target_tables(
    tables: Sequence[Indices], n_targets: Sequence[int], n_elements: int, sets: Sequence[Hashable] | None
) -> TargetTables:
    """Check tables of the same elements and lay out the masks of their targets.

    Raises
    ------
    DatError
        When lengths disagree, a table has the wrong type, or an entry names no target.
    """
    keys: Sequence[Hashable] = n_targets if sets is None else sets
    if not len(tables) == len(n_targets) == len(keys):
        raise DatError(
            f"{len(tables)} tables, {len(n_targets)} n_targets and {len(keys)} sets: give one each a table"
        )
    checked = tuple(
        table_in_range(t, n, f"tables[{i}]") for i, (t, n) in enumerate(zip(tables, n_targets, strict=True))
    )
    size: dict[Hashable, int] = {}
    for i, (key, t, n) in enumerate(zip(keys, checked, n_targets, strict=True)):
        if t.shape[0] != n_elements:
            raise DatError(f"tables[{i}] has {t.shape[0]} rows; the others, or n_elements, say {n_elements}")
        size[key] = max(size.get(key, 0), int(n))
    base: dict[Hashable, int] = {}
    total = 0
    for key, targets in size.items():
        base[key] = total
        total += targets
    return TargetTables(
        checked,
        np.array([t.shape[1] for t in checked], dtype=np.int64),
        np.array([base[key] for key in keys], dtype=np.int64),
        np.zeros(total, dtype=np.uint64),
    )


def colour_elements(
    tables: Sequence[Indices],
    n_targets: Sequence[int],
    begin: int = 0,
    end: int | None = None,
    *,
    sets: Sequence[Hashable] | None = None,
) -> ElementColours:
    """Colour elements so that no two of one colour share a target through any of the tables.

    Deterministic, and linear in the number of table entries. The colours are few but not always the fewest;
    a target met by more than 512 elements costs more colours than it must.

    Parameters
    ----------
    tables
        One ``(n, arity)`` table a map, all with a row for each element. A row may name a target twice.
    n_targets
        Number of targets of each table.
    begin, end
        The range of elements to colour; ``end=None`` is the last.
    sets
        What each table leads to: tables with equal entries share their targets, others do not. By default
        tables with equal ``n_targets`` share them, which is always safe.

    Raises
    ------
    DatError
        When a table has the wrong type, length or range.
    """
    n = len(tables[0]) if len(tables) else 0
    last = n if end is None else int(end)
    if not 0 <= begin <= last <= n:
        raise DatError(f"elements {begin} .. {last} do not lie in 0 .. {n}")
    work = target_tables(tables, n_targets, n, sets)
    colours = np.empty(last - begin, dtype=np.int32)
    waiting = np.empty(last - begin, dtype=np.int32)
    used = call("colour_elements", *work.arguments, begin, last, colours, waiting)
    return ElementColours(colours, used)


def colour_permutation(colours: Indices, n_colours: int) -> tuple[Indices, Offsets]:
    """Sort elements by colour, those of one colour in ascending order.

    Parameters
    ----------
    colours
        int32, shape ``(n,)``.
    n_colours
        Number of colours.

    Returns
    -------
    permutation : int32, shape (n,)
        Element numbers.
    offsets : int64, shape (n_colours + 1,)
        Colour ``c`` is ``permutation[offsets[c]:offsets[c + 1]]``.

    Raises
    ------
    DatError
        When a colour is not in ``0 .. n_colours - 1``.
    """
    n_colours = count(n_colours, "n_colours")
    table_in_range(indices(colours, "colours"), n_colours, "colours")
    permutation = np.empty(colours.size, dtype=np.int32)
    offsets = np.empty(n_colours + 1, dtype=np.int64)
    call("counting_sort", colours, colours.size, n_colours, offsets, permutation)
    return permutation, offsets
