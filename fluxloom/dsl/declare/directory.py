"""Sets of which every rank holds a slice: links between them, and who owns what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import CHUNK, distinct, fetch, fetch_pieces, spans

__all__ = [
    "Array", "Directory", "Link", "Numbers", "Owners", "by_rank", "even_owner", "lay_out", "links_of", "mixed_rows",
    "number_type", "places_by_rank",
]  # fmt: skip

Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]

def lay_out(found: Sequence[Array], rank: int, count: int, out: Array) -> Array:
    """Write what came from the other ranks to ``out``, rank by rank; return the place of this rank's ``count`` rows."""
    before = sum(len(rows) for rows in found[:rank])
    if before:
        out[:before] = np.concatenate(found[:rank])
    if len(out) > before + count:
        out[before + count :] = np.concatenate(found[rank + 1 :])
    return out[before : before + count]


Owners = npt.NDArray[np.int32]

_LARGEST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Link:
    """A table from one set to another, of which a rank holds some consecutive rows.

    Parameters
    ----------
    source, target
        Names of the sets.
    table
        Integers, ``(rows, arity)``: *global* numbers of the targets of the elements in this rank's slice of the
        source, which begins behind the slices of the ranks below. -1: no target.
    """

    source: str
    target: str
    table: Array


@dataclass(frozen=True, eq=False)
class Directory:
    """Who owns the elements of a set: each rank knows it for its slice, and answers for it.

    Parameters
    ----------
    comm
        The ranks.
    starts
        int64, ``(ranks + 1,)``: rank ``r`` holds the slice ``starts[r] ... starts[r + 1] - 1``.
    owner
        int32: owner of each element of this rank's slice.
    """

    comm: Comm
    starts: Numbers
    owner: Owners

    @property
    def first(self) -> int:
        """Global number of the first element of this rank's slice."""
        return int(self.starts[self.comm.rank])

    @property
    def total(self) -> int:
        """Elements of all ranks together."""
        return int(self.starts[-1])

    def split(self, numbers: Array) -> list[slice]:
        """Return for each rank which of some ascending numbers lie in its slice."""
        return spans(np.searchsorted(numbers, self.starts))

    def find(self, numbers: Numbers) -> Owners:
        """Return the owner of each of some elements. Collective.

        What lies in the slices of other ranks is asked for once.
        """
        return fetch(self.comm, self.owner, self.starts, numbers)

    def find_rows(self, table: Array) -> Iterator[tuple[slice, Owners]]:
        """Yield some rows of a table at a time, and the owners of their targets, -1 where there is none.

        Every rank has to iterate. What lies in the slices of other ranks is asked for once.
        """
        arity = table.shape[1]
        size = max(1, CHUNK // arity) * arity
        numbers = table.reshape(-1)
        for piece, owners in fetch_pieces(self.comm, self.owner, self.starts, numbers, size, absent=-1):
            yield slice(piece.start // arity, piece.stop // arity), owners.reshape(-1, arity)


def links_of(links: Mapping[str, Link], source: str) -> dict[str, Link]:
    """Return the links from a set."""
    return {name: link for name, link in links.items() if link.source == source}


def number_type(total: int) -> type[np.int32] | type[np.int64]:
    """Return the type in which global numbers of a set of this size travel."""
    return np.int32 if total <= _LARGEST else np.int64


def by_rank(owner: Owners, ranks: int) -> list[slice]:
    """Return for each rank which of some elements, in the order of their owners, it owns."""
    return spans(np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=ranks))]))


def places_by_rank(owner: Owners, ranks: int) -> list[Owners]:
    """Return for each rank which of some elements it owns, ascending; there are fewer than 2**31 elements."""
    from fluxloom.graph.colour import colour_permutation

    order, bounds = colour_permutation(owner, ranks)  # sorts by counting
    return [order[piece] for piece in spans(bounds)]


def even_owner(numbers: Numbers, total: int, shares: npt.NDArray[np.float64]) -> Owners:
    """Return the owner of elements that are dealt out in consecutive blocks, by shares."""
    ends = np.cumsum(shares)
    ends = ends[:-1] * total / ends[-1]
    return np.searchsorted(ends, numbers + 0.5, side="right").astype(np.int32)


def mixed_rows(columns: Sequence[Owners]) -> tuple[Owners, Numbers]:
    """Return the highest owner in each row of a table, given by its columns, and the rows that have several.

    -1 is nobody. Columns are compared one by one: reductions of short rows are slow.
    """
    highest = columns[0].copy()
    for column in columns[1:]:
        np.maximum(highest, column, out=highest)
    mixed = [np.zeros(0, dtype=np.int64)]
    for column in columns:
        other = np.flatnonzero(column != highest)
        mixed.append(other[column[other] >= 0])
    return highest, distinct(np.concatenate(mixed))
