"""The entries of ragged maps on several ranks: who owns them, their numbers, who sends which."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.dsl.decompose_rows import Numbers, spans
from fluxloom.dsl.parts import Part

__all__ = ["entries_of", "entry_part", "row_starts"]

Places = npt.NDArray[np.int32]


def entries_of(starts: Numbers, lengths: Numbers) -> Numbers:
    """Return the numbers of the entries of some rows, row after row."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(int(ends[-1]) if ends.size else 0)


def entry_part(comm: Comm, rows: Part | None, offsets: Numbers, position: Places | None) -> Part | None:
    """Return this rank's part of the entries of its rows; None where the rows have no parts. Collective.

    An entry belongs to the owner of its row. Globally entries are numbered row after row.

    Parameters
    ----------
    comm
        The ranks.
    rows
        Their part.
    offsets
        ``(owned + 1,)`` or ``(executed + 1,)``: where the entries of each row begin here.
    position
        Storage place of each entry; None when they are in order.
    """
    if rows is None:
        return None
    count = offsets.size - 1
    lengths = np.diff(offsets)
    starts, total = row_starts(comm, rows, lengths)
    numbers = np.repeat(starts - offsets[:-1], lengths) + np.arange(int(offsets[-1]))
    known = [places[places < count] for places in rows.receive]
    wanted = _wanted(comm, rows, [places < count for places in rows.receive])
    send = [places[kept] for places, kept in zip(rows.send, wanted, strict=True)]
    near = [k for k in range(len(rows.neighbours)) if send[k].size or known[k].size]
    return Part(
        begin=int(offsets[rows.begin]),
        inside=int(offsets[rows.inside]),
        owned=int(offsets[rows.owned]),
        executed=int(offsets[-1]),
        stored=int(offsets[-1]),
        numbers=numbers,
        total=total,
        neighbours=tuple(rows.neighbours[k] for k in near),
        send=tuple(_places(offsets, send[k], position) for k in near),
        receive=tuple(_places(offsets, known[k], position) for k in near),
    )


def row_starts(comm: Comm, rows: Part, lengths: Numbers) -> tuple[Numbers, int]:
    """Return the global number of the first entry of each row, and how many entries there are. Collective.

    Ranks answer for blocks of rows of even size: no rank needs the lengths of all rows.

    Parameters
    ----------
    lengths
        Entries of the first rows of the part, at least of those that are owned.
    """
    width = max(1, -(-rows.total // comm.size))
    bounds = np.minimum(np.arange(comm.size + 1) * width, rows.total)
    owned = rows.numbers[: rows.owned]
    order = np.argsort(owned, kind="stable")
    pieces = [order[piece] for piece in spans(np.searchsorted(owned[order], bounds))]
    pairs = [np.stack([owned[piece], lengths[piece]], axis=1) for piece in pieces]
    first = int(bounds[comm.rank])
    block = np.zeros(int(bounds[comm.rank + 1]) - first, dtype=np.int64)
    for found in comm.exchange(pairs):
        block[found[:, 0] - first] = found[:, 1]
    sums = comm.allgather(int(block.sum()))
    begins = sum(sums[: comm.rank]) + np.cumsum(block) - block
    asked = rows.numbers[: lengths.size]
    order = np.argsort(asked, kind="stable")
    questions = [asked[order[piece]] for piece in spans(np.searchsorted(asked[order], bounds))]
    answers = comm.exchange([begins[numbers - first] for numbers in comm.exchange(questions)])
    starts = np.empty(asked.size, dtype=np.int64)
    starts[order] = np.concatenate(answers)
    return starts, sum(sums)


def _wanted(comm: Comm, rows: Part, executed: list[npt.NDArray[np.bool_]]) -> list[npt.NDArray[np.bool_]]:
    """Return for each neighbour which of the rows sent to it it has entries of; each tells the others. Collective."""
    none = np.zeros(0, dtype=np.bool_)
    told = dict(zip(rows.neighbours, executed, strict=True))
    heard = comm.exchange([told.get(rank, none) for rank in range(comm.size)])
    return [heard[rank] for rank in rows.neighbours]


def _places(offsets: Numbers, rows: Places, position: Places | None) -> Places:
    """Return the storage places of the entries of some rows, row after row."""
    entries = entries_of(offsets[rows], offsets[rows + 1] - offsets[rows])
    return np.ascontiguousarray(entries if position is None else position[entries], dtype=np.int32)
