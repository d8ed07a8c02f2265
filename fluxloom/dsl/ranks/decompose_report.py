"""What a decomposition looks like: sizes, halos, neighbours, balance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fluxloom.comm.base import Comm
from fluxloom.dsl.declare.directory import Directory, Link, Owners, mixed_rows
from fluxloom.dsl.declare.parts import Part

__all__ = ["PartitionReport", "SetReport", "cut_rows", "imbalance", "make_report"]


@dataclass(frozen=True)
class SetReport:
    """The parts of one set; each tuple has one entry a rank.

    Attributes
    ----------
    name
        Name of the set.
    total
        Its elements.
    owned, interior, execute_halo, rest
        Elements that a rank owns, how many of them are in the interior, and elements of other ranks that it executes
        or only reads.
    neighbours
        Ranks that a rank exchanges values of the set with.
    """

    name: str
    total: int
    owned: tuple[int, ...]
    interior: tuple[int, ...]
    execute_halo: tuple[int, ...]
    rest: tuple[int, ...]
    neighbours: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class PartitionReport:
    """How sets are divided among ranks; ``str(report)`` is a table.

    Attributes
    ----------
    ranks
        Their number.
    on
        The set that was partitioned; the others follow it.
    method
        ``"kway"``, ``"rcb"``, ``"block"`` or ``"given"``; ``"whole"`` for a rank alone.
    through
        The link whose graph counts, or an empty string.
    edge_cut
        Rows of that link that join elements of different ranks; -1 without a link.
    imbalance
        The largest load of a rank over what its share of all weights comes to, less 1: 0 is perfect.
    sets
        The parts of each set.
    """

    ranks: int
    on: str
    method: str
    through: str
    edge_cut: int
    imbalance: float
    sets: tuple[SetReport, ...]

    @property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """For each rank those that it exchanges values of some set with."""
        return tuple(
            tuple(sorted({other for s in self.sets for other in s.neighbours[rank]})) for rank in range(self.ranks)
        )

    def __str__(self) -> str:
        cut = f", {self.edge_cut} of {self.through} cut" if self.edge_cut >= 0 else ""
        lines = [f"{self.ranks} parts of {self.on} by {self.method}{cut}, imbalance {100 * self.imbalance:.2f} %"]
        head = ("set", "rank", "owned", "interior", "execute halo", "rest", "neighbours")
        rows = [
            (
                s.name if rank == 0 else "",
                *map(str, (rank, s.owned[rank], s.interior[rank], s.execute_halo[rank], s.rest[rank])),
                " ".join(map(str, s.neighbours[rank])) or "-",
            )
            for s in self.sets
            for rank in range(self.ranks)
        ]
        widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
        for row in (head, *rows):
            cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:-1], widths[1:-1], strict=True))]
            lines.append("  ".join([*cells, row[-1]]))
        return "\n".join(lines)


def cut_rows(comm: Comm, link: Link, on: str, directories: Mapping[str, Directory]) -> int:
    """Return how many rows of a link, of all ranks, join elements of different ranks. Collective."""
    own, cut = directories[on].owner, 0
    for rows, owners in directories[link.target].find_rows(link.table):
        cut += mixed_rows([*owners.T, own[rows]] if link.source == on else [*owners.T])[1].size
    return sum(comm.allgather(cut))


def imbalance(comm: Comm, owner: Owners, weights: np.ndarray | None, shares: np.ndarray) -> float:
    """Return the largest load over what is due, less 1. Collective."""
    load = comm.reduce(np.bincount(owner, weights, comm.size).astype(np.float64), "sum")
    return float((load * shares.sum() / (shares * load.sum())).max()) - 1.0 if load.sum() else 0.0


def make_report(
    comm: Comm, parts: Mapping[str, Part], *, on: str, method: str, through: str, edge_cut: int, unbalanced: float
) -> PartitionReport:
    """Collect the sizes of all parts. Collective."""
    own = {n: (p.owned, p.inside, p.executed - p.owned, p.stored - p.executed, p.neighbours) for n, p in parts.items()}
    found = comm.allgather(own)
    sets = tuple(
        SetReport(name, part.total, *(tuple(one[name][k] for one in found) for k in range(5)))
        for name, part in parts.items()
    )
    return PartitionReport(comm.size, on, method, through, edge_cut, unbalanced, sets)
