"""Who owns what: one set is partitioned, the others follow it through the links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.comm.rows import CHUNK, from_first, spans, to_first
from fluxloom.core.errors import DatError, FluxloomError
from fluxloom.dsl.declare.directory import Array, Directory, Link, Numbers, Owners, even_owner, mixed_rows
from fluxloom.dsl.ranks.decompose_rcb import parallel_rcb
from fluxloom.graph.csr import Csr
from fluxloom.graph.partition import dual_graph, kway_available, pair_graph, partition_kway

__all__ = ["Method", "Request", "first_owner", "graph_link", "inherit"]

Method = Literal["auto", "kway", "rcb", "block"]

_KWAY_UP_TO = 4_000_000
_LARGEST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Request:
    """How one set is to be partitioned, as one rank sees it.

    Parameters
    ----------
    on
        The set.
    starts
        Its slices.
    sizes
        Elements of every set.
    method
        What was asked for.
    owner, points, weights
        Of this rank's slice, or None; given on every rank or on none.
    shares
        Of the ranks; they need not add up to 1.
    through
        Name of the link whose graph counts, or an empty string when there is none.
    """

    on: str
    starts: Numbers
    sizes: Mapping[str, int]
    method: Method
    owner: Owners | None
    points: npt.NDArray[np.float64] | None
    weights: npt.NDArray[np.float64] | None
    shares: npt.NDArray[np.float64]
    through: str

    @property
    def total(self) -> int:
        """Elements of the set."""
        return self.sizes[self.on]


def graph_link(links: Mapping[str, Link], sizes: Mapping[str, int], on: str) -> str:
    """Return the name of the link whose graph shows best which elements of a set are neighbours, or "".

    That is a link with two targets in the set and as many rows as possible; else one from the set to another
    (elements that share targets are neighbours); else one with more targets in the set.
    """
    into = [n for n, k in links.items() if k.target == on and k.table.shape[1] > 1]
    pairs = [n for n in into if links[n].table.shape[1] == 2]
    out = [n for n, k in links.items() if k.source == on and k.target != on]
    for names in (pairs, out, into):
        if names:
            return max(names, key=lambda name: sizes[links[name].source])
    return ""


def first_owner(comm: Comm, request: Request, links: Mapping[str, Link]) -> tuple[Owners, str]:
    """Partition one set; return the owner of each element of this rank's slice, and the method used. Collective.

    Raises
    ------
    DatError
        When the method lacks what it needs.
    DeviceUnavailable
        When k-way partitioning was asked for and pymetis is not installed.
    """
    if request.owner is not None:
        return request.owner, "given"
    method = request.method
    if method == "auto":
        kway = request.total <= _KWAY_UP_TO and request.through and comm.broadcast(kway_available())
        method = "kway" if kway else "rcb" if request.points is not None else "kway"
    if method == "block":
        return _blocks(comm, request), method
    if method == "rcb":
        if request.points is None:
            raise DatError(f"recursive bisection of {request.on!r} needs the points of its elements: give points")
        first = int(request.starts[comm.rank])
        return parallel_rcb(comm, request.points, first, request.shares, request.weights), method
    if not request.through:
        raise DatError(
            f"no link joins elements of {request.on!r}, so there is no graph to partition: give a link with at least "
            "two targets in it or one from it, points for method 'rcb', or method 'block'"
        )
    return _kway(comm, request, links[request.through]), method


def _blocks(comm: Comm, request: Request) -> Owners:
    """Deal the elements out in the order of their numbers, by weight."""
    first, last = request.starts[comm.rank : comm.rank + 2]
    if request.weights is None:
        return even_owner(np.arange(first, last), request.total, request.shares)
    sums = np.asarray(comm.allgather(float(request.weights.sum())))
    middle = float(sums[: comm.rank].sum()) + np.cumsum(request.weights) - 0.5 * request.weights
    ends = np.cumsum(request.shares)
    return np.searchsorted(ends[:-1] * sums.sum() / ends[-1], middle, side="right").astype(np.int32)


# ------------------------------------------------------------------------------ the graph on one rank


def _kway(comm: Comm, request: Request, link: Link) -> Owners:
    """Partition the graph on rank 0, which is the only one to see it."""
    others = max(request.total, request.sizes[link.target])
    if others > _LARGEST:
        raise DatError(f"the graph of {others} elements does not fit 32-bit numbers: use method 'rcb'")
    if link.source == link.target:
        # neighbours of elements: one pair each
        first = int(request.starts[comm.rank])
        own = np.repeat(np.arange(first, first + len(link.table)), link.table.shape[1])
        rows = np.stack([own, link.table.reshape(-1)], axis=1).astype(np.int32)
    else:
        rows = link.table.astype(np.int32, copy=False)
    table = np.concatenate(to_first(comm, rows))
    weights = None if request.weights is None else np.concatenate(to_first(comm, request.weights))
    problem, part = None, np.zeros(0, dtype=np.int32)
    if comm.rank == 0:
        try:
            graph = _graph(table, request, link)
            part = partition_kway(graph.offsets, graph.indices, request.shares, weights=weights)
        except FluxloomError as error:
            problem = error
    problem = comm.broadcast(problem)
    if problem is not None:
        raise type(problem)(str(problem))
    return from_first(comm, [part[piece] for piece in spans(request.starts)], part)


def _graph(table: npt.NDArray[np.int32], request: Request, link: Link) -> Csr:
    """Return the graph of the whole set."""
    if link.target == request.on:
        return pair_graph(np.ascontiguousarray(table), request.total)
    # with two common targets cells meet at a face (or an edge of it) and not only at a corner
    common = 2 if table.shape[1] > 2 else 1
    return dual_graph(np.ascontiguousarray(table), request.sizes[link.target], common=common)


# ------------------------------------------------------------------------------ the other sets


def inherit(
    comm: Comm,
    starts: Mapping[str, Numbers],
    links: Mapping[str, Link],
    on: str,
    owner: Owners,
    shares: npt.NDArray[np.float64],
) -> dict[str, Directory]:
    """Decide who owns the elements of all sets, beginning with one. Collective.

    A set with a link to a decided set follows its targets: an element belongs to the rank that owns most of them.
    A set that a link from a decided set leads to follows the elements that lead to it in the same way. Ties go to
    the lowest rank. Sets near the first are decided first; a link from a set counts before links to it, and an
    earlier link before a later one. What nothing leads to is from_first out in blocks.

    Parameters
    ----------
    comm
        The ranks.
    starts
        Slices of each set.
    links
        All links.
    on, owner
        The set that is decided, and the owners of this rank's slice of it.
    shares
        Of the ranks.
    """
    known = {on: Directory(comm, starts[on], owner)}
    while len(known) < len(starts):
        waiting = [name for name in starts if name not in known]
        found: dict[str, Owners] = {}
        for name in waiting:
            forward = [k for k in links.values() if k.source == name and k.target in known]
            backward = [k for k in links.values() if k.target == name and k.source in known]
            if forward:
                found[name] = _most_targets(forward[0], known[forward[0].target])
            elif backward:
                found[name] = _most_sources(comm, starts[name], backward[0], known[backward[0].source])
        if not found:
            found[waiting[0]] = np.full(np.diff(starts[waiting[0]])[comm.rank], -1, dtype=np.int32)
        for name, owners in found.items():
            alone = np.flatnonzero(owners < 0)
            owners[alone] = even_owner(starts[name][comm.rank] + alone, int(starts[name][-1]), shares)
            known[name] = Directory(comm, starts[name], owners)
    return {name: known[name] for name in starts}


def _most_targets(link: Link, target: Directory) -> Owners:
    """Return for each row of this rank's slice of a link who owns most of its targets; -1 if there are none."""
    best = np.empty(len(link.table), dtype=np.int32)
    for rows, owners in target.find_rows(link.table):
        best[rows] = _majority(owners)
    return best


def _majority(owners: Owners) -> Owners:
    """Return the most frequent rank of each row, the lowest of several; -1 for rows without any."""
    best, mixed = mixed_rows([*owners.T])
    rows = owners[mixed]
    votes, choice = np.zeros(mixed.size, dtype=np.int64), np.full(mixed.size, -1, dtype=np.int32)
    for leg in range(rows.shape[1]):
        here = rows[:, leg]
        many = np.where(here >= 0, (rows == here[:, None]).sum(axis=1), 0)
        better = (many > votes) | ((many == votes) & (here < choice) & (here >= 0))
        votes, choice = np.where(better, many, votes), np.where(better, here, choice)
    best[mixed] = choice
    return best


def _most_sources(comm: Comm, starts: Numbers, link: Link, source: Directory) -> Owners:
    """Return for each element of this rank's slice of the target who owns most of the rows that name it.

    Nearly always one rank owns all rows that name an element; votes are counted for the others alone.
    """
    ranks, first = comm.size, int(starts[comm.rank])
    count = int(starts[comm.rank + 1]) - first
    seen = np.full(count + 1, -1, dtype=np.int32)  # the last place is for targets in other slices
    away = [np.zeros(0, dtype=np.int64)]
    for place, keys, owners in _entries(link.table, source.owner, first, count, ranks):
        seen[place] = owners
        away.append(keys[(place == count) & (keys >= 0)])
    asked, votes = _count(np.sort(np.concatenate(away)))
    pairs = np.stack([asked, votes], axis=1)
    got = np.concatenate(comm.exchange([pairs[piece] for piece in spans(np.searchsorted(asked, starts * ranks))]))
    target, rank = got[:, 0] // ranks - first, got[:, 0] % ranks
    seen[target] = rank
    mixed = np.zeros(count + 1, dtype=bool)
    mixed[target[seen[target] != rank]] = True
    for place, _, owners in _entries(link.table, source.owner, first, count, ranks):
        mixed[place[seen[place] != owners]] = True
    mixed[count] = False
    if mixed.any():
        own = [keys[mixed[place]] for place, keys, _ in _entries(link.table, source.owner, first, count, ranks)]
        got = got[mixed[target]]
        keys = np.concatenate([got[:, 0], *own])
        votes = np.concatenate([got[:, 1], np.ones(keys.size - len(got), dtype=np.int64)])
        _elect(seen, keys, votes, first, ranks)
    return seen[:count]


def _entries(
    table: Array, owner: Owners, first: int, count: int, ranks: int
) -> Iterator[tuple[Numbers, Numbers, Owners]]:
    """Yield for some entries of a table at a time the place of the target, the key of the vote, and who votes.

    The place is counted from ``first``, and ``count`` where it is none of as many. The key is the target's number
    times the number of ranks, plus the voter; negative where there is no target.
    """
    rows = max(1, CHUNK // table.shape[1])
    for begin in range(0, len(table), rows):
        numbers = table[begin : begin + rows].reshape(-1).astype(np.int64)
        owners = np.repeat(owner[begin : begin + rows], table.shape[1])
        # what lies below ``first`` is a huge unsigned number
        place = np.minimum((numbers - first).view(np.uint64), np.uint64(count)).view(np.int64)
        yield place, numbers * ranks + owners, owners


def _elect(winner: Owners, keys: Numbers, votes: Numbers, first: int, ranks: int) -> None:
    """Write for each target who has most votes, the lowest of several; keys are those of `_entries`."""
    order = np.argsort(keys, kind="stable")
    keys, votes = _count(keys[order], votes[order])
    target, rank = keys // ranks - first, keys % ranks
    begins = np.flatnonzero(np.diff(target, prepend=-1))
    most = np.maximum.reduceat(votes, begins)
    winners = np.flatnonzero(votes == np.repeat(most, np.diff(begins, append=keys.size)))
    winners = winners[np.diff(target[winners], prepend=-1) != 0]
    winner[target[winners]] = rank[winners]


def _count(keys: Numbers, votes: Numbers | None = None) -> tuple[Numbers, Numbers]:
    """Return each of some ascending keys once, with the sum of its votes; one each by default."""
    if keys.size == 0:
        return keys, keys
    begins = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return keys[begins], np.diff(begins, append=keys.size) if votes is None else np.add.reduceat(votes, begins)
