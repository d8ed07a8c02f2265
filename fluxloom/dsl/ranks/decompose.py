"""Distribute sets and the links between them over ranks, of which each holds only a slice of everything.

A *slice* is what a rank happens to hold at the start: consecutive elements, behind those of the ranks below (the
rows of a file that it read). `decompose` decides who *owns* which elements, and gives each rank its
`fluxloom.dsl.declare.parts.Part` of every set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import agree
from fluxloom.comm.base import Comm
from fluxloom.comm.rows import RowExchange, spans, stable_order
from fluxloom.core.errors import DatError, did_you_mean
from fluxloom.dsl.declare.directory import Array, Directory, Link, Numbers, number_type
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.ranks.decompose_check import Problem, checked
from fluxloom.dsl.ranks.decompose_halo import make_parts
from fluxloom.dsl.ranks.decompose_owner import Method, Request, first_owner, inherit
from fluxloom.dsl.ranks.decompose_report import PartitionReport, SetReport, cut_rows, imbalance, make_report

__all__ = ["Decomposition", "Link", "Method", "PartitionReport", "SetReport", "decompose"]


@dataclass(frozen=True, eq=False)
class Decomposition:
    """What `decompose` found out, as one rank sees it.

    Attributes
    ----------
    comm
        The ranks.
    parts
        This rank's part of each set.
    tables
        For each link int32, ``(executed rows, arity)``: local numbers of the targets, in the local order of the
        rows; -1 where there is no target.
    summary
        Sizes of all parts.
    """

    comm: Comm
    parts: Mapping[str, Part]
    tables: Mapping[str, npt.NDArray[np.int32]]
    summary: PartitionReport
    _directories: Mapping[str, Directory] = field(repr=False)

    def table(self, name: str) -> npt.NDArray[np.int32]:
        """Return the table of a link in local numbers, ``(executed rows, arity)``; every target is stored here.

        Raises
        ------
        DatError
            If there is no such link.
        """
        if name not in self.tables:
            raise DatError(f"no link is called {name!r}{did_you_mean(name, self.tables)}")
        return self.tables[name]

    def slice_of(self, name: str) -> tuple[int, int]:
        """Return the first element of this rank's slice of a set, and how many there are.

        Raises
        ------
        DatError
            If there is no such set.
        """
        directory = self._directory(name)
        return directory.first, int(directory.owner.size)

    def scatter(self, name: str, values: npt.ArrayLike) -> Array:
        """Return the values of the elements that this rank owns, in local order. Collective.

        Parameters
        ----------
        name
            The set.
        values
            Those of the elements of a slice, ``(count, ...)``. The slices of the ranks follow one another; when
            they are not those of `slice_of`, the values travel twice. What has no rows may have any type.

        Raises
        ------
        DatError
            If there is no such set, or the ranks' values do not fit it or each other.
        """
        directory = self._directory(name)
        array, counts = self._alike(name, np.asarray(values), directory.total, "values")
        array = _move(self.comm, array, np.concatenate([[0], np.cumsum(counts)]), directory.starts)
        ascending = RowExchange(self.comm, directory.owner).forward(array)
        result = np.empty_like(ascending)
        result[self._ascending(name)] = ascending
        return result

    def gather(self, name: str, owned: npt.ArrayLike) -> Array:
        """Return the values of this rank's slice of a set; the inverse of `scatter`. Collective.

        Parameters
        ----------
        name
            The set.
        owned
            Values of the elements that this rank owns, in local order, ``(part.owned, ...)``.

        Raises
        ------
        DatError
            If there is no such set, or the ranks' values do not fit it or each other.
        """
        directory, part = self._directory(name), self.parts[name]
        array, counts = self._alike(name, np.asarray(owned), directory.total, "owned values")
        short = counts[self.comm.rank] != part.owned
        agree(self.comm, f"set {name!r}: {array.shape[0]} values for {part.owned} owned elements" if short else "")
        order = self._ascending(name)
        numbers = part.numbers[: part.owned][order]
        sent = self.comm.exchange([array[order[piece]] for piece in directory.split(numbers)])
        result = np.empty((directory.owner.size, *array.shape[1:]), dtype=array.dtype)
        result[stable_order(directory.owner, self.comm.size)] = np.concatenate(sent)
        return result

    def report(self) -> PartitionReport:
        """Return the sizes of all parts; the same on every rank."""
        return self.summary

    def _directory(self, name: str) -> Directory:
        if name not in self._directories:
            raise DatError(f"no set is called {name!r}{did_you_mean(name, self._directories)}")
        return self._directories[name]

    def _ascending(self, name: str) -> Numbers:
        """Return the local numbers of the owned elements in the order of their global ones."""
        part = self.parts[name]
        return np.argsort(part.numbers[: part.owned], kind="stable")

    def _alike(self, name: str, array: Array, total: int, what: str) -> tuple[Array, Numbers]:
        """Return values whose type and trailing shape are those of the other ranks, and the ranks' counts."""
        found = self.comm.allgather((array.shape, array.dtype.str))
        if any(not shape for shape, _ in found):
            raise DatError(f"set {name!r}: a single number was given as {what} of a slice")
        counts = np.array([shape[0] for shape, _ in found], dtype=np.int64)
        kinds = {(shape[1:], dtype) for shape, dtype in found if shape[0]}
        if counts.sum() != total:
            raise DatError(f"set {name!r}: the ranks give {' + '.join(map(str, counts))} {what}; there are {total}")
        if len(kinds) > 1:
            shown = " and ".join(sorted(f"{np.dtype(dtype)} {shape}" for shape, dtype in kinds))
            raise DatError(f"set {name!r}: the ranks give {what} of different kinds: {shown}")
        shape, dtype = kinds.pop() if kinds else (found[0][0][1:], found[0][1])
        return (array if array.shape[0] else np.empty((0, *shape), dtype=dtype)), counts


def _move(comm: Comm, values: Array, have: Numbers, want: Numbers) -> Array:
    """Return values in other slices. Collective."""
    if np.array_equal(have, want):
        return values
    bounds = np.clip(want, have[comm.rank], have[comm.rank + 1]) - have[comm.rank]
    return np.concatenate(comm.exchange([values[piece] for piece in spans(bounds)]))


def decompose(
    comm: Comm,
    sizes: Mapping[str, int],
    links: Mapping[str, Link],
    *,
    on: str,
    owner: npt.ArrayLike | None = None,
    method: Method = "auto",
    points: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    shares: Sequence[float] | None = None,
    through: str | None = None,
) -> Decomposition:
    """Distribute sets over the ranks. Collective.

    One set is partitioned; the others follow it through the links (an element goes where most of the elements are
    that it leads to, or that lead to it; ties to the lowest rank; what no link reaches is dealt out in blocks).

    Parameters
    ----------
    comm
        The ranks.
    sizes
        Elements of each set, of all ranks together.
    links
        Tables between the sets: of each, this rank's slice. A rank may hold nothing, or everything. Sets that no
        link starts from have even slices, `Decomposition.slice_of` (the set ``on``: those of what is given for it).
    on
        The set to partition.
    owner
        Rank of each element of this rank's slice of ``on``, when that is decided already.
    method
        ``"kway"``: METIS, on rank 0, which gets the graph and nothing else, about 250 bytes an element for
        quadrilaterals with their edges. ``"rcb"``: recursive bisection of ``points``, on all ranks, no rank
        getting those of another. ``"block"``: in the order of the numbers. ``"auto"``: ``"kway"`` up to 4 million
        elements if pymetis is installed and there is a graph, else ``"rcb"`` if there are points, else ``"kway"``.
    points, weights
        Places and work of the elements of this rank's slice of ``on``: ``(count, dimensions)`` and ``(count,)``.
    shares
        What each rank gets of all work, one positive number a rank; equal by default.
    through
        The link whose graph `"kway"` partitions and the report counts. By default the one with two targets in ``on``
        and most rows, else one from ``on`` (elements with common targets are neighbours), else one with more
        targets in ``on``.

    Returns
    -------
    Decomposition
        On a rank alone every part is whole and the numbers stay as they are.

    Raises
    ------
    DatError
        The same on every rank: when the arguments do not fit each other, or there are more ranks than elements.
    DeviceUnavailable
        When k-way partitioning is wanted and pymetis is not installed.
    """
    given = Problem(sizes, links, on, owner, method, points, weights, shares, through)
    request, starts, tables = checked(comm, given)
    if comm.size == 1:
        return _whole(comm, request, tables)
    found, used = first_owner(comm, request, tables)
    directories = inherit(comm, starts, tables, on, found, request.shares)
    name = request.through
    cut = cut_rows(comm, tables[name], on, directories) if name else -1
    uneven = imbalance(comm, found, request.weights, request.shares)
    parts, local = make_parts(comm, directories, tables)
    summary = make_report(comm, parts, on=on, method=used, through=name, edge_cut=cut, unbalanced=uneven)
    return Decomposition(comm, parts, local, summary, directories)


def _whole(comm: Comm, request: Request, links: Mapping[str, Link]) -> Decomposition:
    """Return the decomposition of a rank alone."""
    directories, parts = {}, {}
    for name, total in request.sizes.items():
        if number_type(total) is not np.int32:
            raise DatError(f"set {name!r} has {total} elements; a rank can number 2**31 - 1: use more ranks")
        directories[name] = Directory(comm, np.array([0, total]), np.zeros(total, dtype=np.int32))
        parts[name] = Part.whole(total)
    tables = {name: np.array(link.table, dtype=np.int32, order="C") for name, link in links.items()}
    name = request.through
    summary = make_report(
        comm, parts, on=request.on, method="whole", through=name, edge_cut=0 if name else -1, unbalanced=0.0
    )
    return Decomposition(comm, parts, tables, summary, directories)
