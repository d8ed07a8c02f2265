"""Partitions of graphs and of points into parts of given sizes, and the graphs that are partitioned."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.core.packages import require
from fluxloom.graph.csr import Csr, element_graph, rows_to_csr, target_graph
from fluxloom.graph.inverse import inverse_ragged
from fluxloom.graph.native import Indices, Offsets, call, count, table_in_range
from fluxloom.graph.native import indices as as_indices
from fluxloom.graph.native import offsets as as_offsets
from fluxloom.graph.native import table as as_table

__all__ = [
    "as_points",
    "as_shares",
    "as_weights",
    "components",
    "cut_edges",
    "dual_graph",
    "fractions",
    "kway_available",
    "pair_graph",
    "partition_kway",
    "partition_rcb",
]

Floats = npt.NDArray[np.float64]

_SEED = 1
_UNBALANCE = 10  # METIS ufactor: a part may exceed its share by 10 in a thousand
_KWAY_FROM = 128  # vertices a part, below which METIS leaves parts empty unless it bisects
_CHUNK = 1 << 20


def kway_available() -> bool:
    """Whether the package that `partition_kway` needs is installed."""
    return find_spec("pymetis") is not None


def fractions(shares: Sequence[float] | Floats) -> Floats:
    """Return the shares of the parts, scaled so that they add up to 1; see `as_shares`."""
    array = as_shares(shares)
    return array / array.sum()


def as_shares(shares: Sequence[float] | Floats) -> Floats:
    """Return the shares of the parts as float64.

    Raises
    ------
    DatError
        When there is none, or one is not a positive finite number; the message names it.
    """
    array = np.asarray(shares, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise DatError(f"shares must list one number a part, got an array of shape {array.shape}")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
    if wrong.size:
        raise DatError(f"share {int(wrong[0])} is {array[wrong[0]]}; shares must be positive: leave the part out")
    return array


def partition_kway(
    offsets: Offsets,
    neighbours: Indices,
    shares: Sequence[float] | Floats,
    *,
    weights: npt.NDArray[Any] | None = None,
) -> Indices:
    """Partition a graph with METIS so that few edges join different parts.

    Parameters
    ----------
    offsets, neighbours
        The graph by compressed rows, symmetric and without loops: int64 ``(n + 1,)`` and int32.
    shares
        What each part gets of the weight of all vertices; they need not add up to 1.
    weights
        Weight of each vertex, ``(n,)``, not negative; all alike by default. Those that are no integers are rounded
        to about a thousandth of their mean.

    Returns
    -------
    part : int32, shape (n,)
        Part of each vertex, the same in every run. No part is empty. Parts of a connected graph that is not small
        are connected.

    Raises
    ------
    DatError
        When there are more parts than vertices, or an argument has the wrong type, shape or range.
    DeviceUnavailable
        When pymetis is not installed.

    Notes
    -----
    G. Karypis and V. Kumar, "Multilevel k-way partitioning scheme for irregular graphs", J. Parallel Distrib.
    Comput. 48 (1998) 96-129. Below 128 vertices a part METIS bisects instead.
    """
    target = fractions(shares)
    n = count(offsets.size - 1, "the number of vertices")
    as_offsets(offsets, "offsets", neighbours.size)
    table_in_range(as_indices(neighbours, "neighbours"), n, "neighbours")
    weight = _whole_weights(weights, n)
    _enough(n, target.size, "vertices")
    if target.size == 1 or n == 0:
        return np.zeros(n, dtype=np.int32)
    metis = require("pymetis", "mesh", "k-way partitioning")
    kway = n >= _KWAY_FROM * target.size
    connected = kway and not components(offsets, neighbours).any()
    index = metis.zero_copy_dtype()
    _, found = metis.part_graph(
        target.size,
        metis.CSRAdjacency(offsets.astype(index, copy=False), neighbours.astype(index, copy=False)),
        vweights=None if weight is None else weight.astype(index, copy=False),
        tpwgts=target.tolist(),
        recursive=not kway,
        options=metis.Options(seed=_SEED, ufactor=_UNBALANCE, contig=int(connected)),
    )
    return _fill_empty(np.asarray(found, dtype=np.int32), target.size)


def partition_rcb(
    points: npt.NDArray[np.floating[Any]],
    shares: Sequence[float] | Floats,
    *,
    weights: npt.NDArray[Any] | None = None,
) -> Indices:
    """Partition points by recursive coordinate bisection.

    The parts are halved (the lower half gets ``parts // 2``), the points are cut across the axis along which they
    extend most, so that the weight on each side comes as near to the shares of its parts as it can, and so on.
    Points with equal coordinates are told apart by their numbers. Each part gets at least one point.

    Parameters
    ----------
    points
        Shape ``(n, dimensions)``.
    shares
        What each part gets of the weight of all points; they need not add up to 1.
    weights
        Weight of each point, ``(n,)``, not negative; all alike by default.

    Returns
    -------
    part : int32, shape (n,)
        Part of each point.

    Raises
    ------
    DatError
        When there are more parts than points, or an argument has the wrong shape or range.

    Notes
    -----
    H. D. Simon, "Partitioning of unstructured problems for parallel processing", Comput. Syst. Eng. 2 (1991)
    135-148. An element is left of the cut when the middle of its weight is.
    """
    target = as_shares(shares)
    place = as_points(points)
    weight = as_weights(weights, len(place))
    _enough(len(place), target.size, "points")
    part = np.zeros(len(place), dtype=np.int32)
    ends = np.concatenate([[0.0], np.cumsum(target)])
    pending = [(np.arange(len(place)), 0, target.size)]
    while pending:
        chosen, low, high = pending.pop()
        if high - low == 1:
            part[chosen] = low
            continue
        middle = low + (high - low) // 2
        here = place[chosen]
        axis = int(np.argmax(here.max(axis=0) - here.min(axis=0)))
        ordered = chosen[np.argsort(here[:, axis], kind="stable")]
        left = _left_of_cut(weight[ordered], ends[middle] - ends[low], ends[high] - ends[low])
        left = min(max(left, middle - low), ordered.size - (high - middle))
        # ascending numbers make the stable sort break ties by number
        pending += [(np.sort(ordered[:left]), low, middle), (np.sort(ordered[left:]), middle, high)]
    return part


def _left_of_cut(weight: Floats, share: float, whole: float) -> int:
    """Return how many elements, in their order, weigh as nearly as they can ``share / whole`` of all."""
    above = np.cumsum(weight)
    aim = share * above[-1] / whole
    cross = min(int(np.searchsorted(above, aim)), weight.size - 1)
    before = above[cross] - weight[cross]
    return cross + int(before + 0.5 * weight[cross] < aim)


def cut_edges(offsets: Offsets, neighbours: Indices, part: npt.NDArray[np.integer[Any]]) -> int:
    """Return how many edges of a symmetric graph join vertices of different parts.

    Parameters
    ----------
    offsets, neighbours
        The graph by compressed rows.
    part
        Part of each vertex, ``(n,)``.
    """
    own = np.repeat(part, np.diff(offsets))
    return int(np.count_nonzero(own != part[neighbours])) // 2


def dual_graph(table: Indices, n_targets: int, *, common: int = 1) -> Csr:
    """Link the rows of a table that share targets: from cells -> nodes, the cells that have a node in common.

    The graph is symmetric, without loops, and its rows ascend.

    Parameters
    ----------
    table
        int32, ``(n, arity)``; negative entries are no targets.
    n_targets
        Number of targets.
    common
        How many targets two rows must share.

    Raises
    ------
    DatError
        When the table has the wrong type or range.
    """
    rows = rows_to_csr(table)
    n = rows.offsets.size - 1
    linked = element_graph(inverse_ragged(rows.offsets, rows.indices, n_targets), n)
    if common <= 1:
        return linked
    wide = as_table(table)
    own = np.repeat(np.arange(n, dtype=np.int32), np.diff(linked.offsets))
    keep = np.empty(own.size, dtype=bool)
    for begin in range(0, own.size, _CHUNK):
        piece = slice(begin, begin + _CHUNK)
        mine, other = wide[own[piece]], wide[linked.indices[piece]]
        same = np.zeros(len(mine), dtype=np.int64)
        for leg in range(wide.shape[1]):
            same += ((mine[:, leg : leg + 1] == other) & (other >= 0)).any(axis=1)
        keep[piece] = same >= common
    counts = np.bincount(own[keep], minlength=n)
    return Csr(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), linked.indices[keep])


def pair_graph(table: Indices, n_targets: int) -> Csr:
    """Link the targets that a row of a table names together: from edges -> cells, the cells across each edge.

    The graph is symmetric, without loops or duplicates, and its rows ascend.

    Parameters
    ----------
    table
        int32, ``(n, arity)``; negative entries are no targets.
    n_targets
        Number of targets.

    Raises
    ------
    DatError
        When the table has the wrong type or range.
    """
    rows = as_table(table)
    if rows.size and int(rows.min()) < 0:
        first = rows.max(axis=1)
        rows = np.where(rows < 0, first[:, None], rows)[first >= 0]
    return target_graph(np.ascontiguousarray(rows), n_targets)


def components(offsets: Offsets, neighbours: Indices) -> Indices:
    """Return for each vertex of a symmetric graph the lowest vertex that it is connected to: int32, ``(n,)``."""
    n = offsets.size - 1
    label = np.empty(n, dtype=np.int32)
    call("components", offsets, neighbours, n, label, np.empty(n, dtype=np.int32))
    return label


def as_points(points: npt.NDArray[Any]) -> Floats:
    """Return points as float64 ``(n, dimensions)``.

    Raises
    ------
    DatError
        For another shape, or a coordinate that is not finite; the message names the point.
    """
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] == 0:
        raise DatError(f"points have shape {array.shape}; it must be (n, dimensions)")
    finite = np.isfinite(array)
    if not finite.all():
        wrong = int(np.argmin(finite.all(axis=1)))
        raise DatError(f"point {wrong} is {array[wrong].tolist()}; coordinates must be finite")
    return array


def as_weights(weights: npt.NDArray[Any] | None, n: int) -> Floats:
    """Return weights as float64 ``(n,)``; ones when there are none.

    Raises
    ------
    DatError
        For another shape, or a weight that is negative or not finite; the message names it.
    """
    if weights is None:
        return np.ones(n)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n,):
        raise DatError(f"weights have shape {array.shape}; it must be ({n},)")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if wrong.size:
        raise DatError(f"weight {int(wrong[0])} is {array[wrong[0]]}; weights must be finite and not negative")
    return array


def _whole_weights(weights: npt.NDArray[Any] | None, n: int) -> Offsets | None:
    """Return weights as the integers that METIS wants."""
    if weights is None:
        return None
    array = as_weights(weights, n)
    mean = float(array.mean()) if n else 0.0
    if mean == 0.0 or (np.array_equal(array, np.rint(array)) and float(array.sum()) < 2**31):
        return array.astype(np.int64) if mean else None
    scale = min(1000.0, (2**31 - 1.0) / (2.0 * n)) / mean
    return np.rint(array * scale).astype(np.int64)


def _enough(n: int, parts: int, what: str) -> None:
    if n < parts and not (n == 0 and parts == 1):
        raise DatError(f"{n} {what} cannot be divided into {parts} parts: ask for at most {max(n, 1)}")


def _fill_empty(part: Indices, parts: int) -> Indices:
    """Give each empty part the last vertex of the part that has most."""
    sizes = np.bincount(part, minlength=parts)
    for empty in np.flatnonzero(sizes == 0):
        largest = int(np.argmax(sizes))
        part[np.flatnonzero(part == largest)[-1]] = empty
        sizes[largest] -= 1
        sizes[empty] += 1
    return part
