"""Groups of neighbouring cells for the coarser levels of multigrid, by pairs of cells, pairs of pairs, and so on.

In each pass cells find the neighbour that they are coupled strongest with, ``A^2 / (V_i V_j)`` for the area ``A`` they
share and their volumes: for a cell of a lattice the square of one over its length along that direction. So flat cells
are stacked until they are about as high as wide, and cubes become cubes. A front leads from cell to cell; of its cells
those with the fewest free neighbours come first, that few are left over.

References
----------
D. J. Mavriplis: *Directional agglomeration multigrid techniques for high-Reynolds-number viscous flows*. AIAA 98-0612.
Y. Notay: *An aggregation-based algebraic multigrid method*. Electron. Trans. Numer. Anal. 37, 2010 (pairs of pairs,
fewest free neighbours first).
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import DatError
from fluxloom.graph.native import Indices, Offsets, check_range, count, indices, offsets
from fluxloom.toolchain import Library, load_library

if TYPE_CHECKING:
    from fluxloom.graph.csr import Csr

__all__ = ["Grouping", "agglomerate"]

Array = npt.NDArray[np.float64]

_LARGER = 1.25
"""How much larger than wanted a group of two groups may be, and twice that with what was left over."""


@dataclass(frozen=True)
class Grouping:
    """How cells are grouped.

    Attributes
    ----------
    passes
        Rounds of pairs: groups of ``2^passes`` cells.
    weak
        A cell pairs with none that it is coupled with less than this part of its strongest coupling; 1/16: across the
        long way of cells four times as long as wide.
    """

    passes: int
    weak: float = 1 / 16

    def __post_init__(self) -> None:
        if not 1 <= self.passes <= 6:
            raise DatError(f"passes is {self.passes}; groups of 2**passes cells are made for 1 to 6 passes")
        if not 0 <= self.weak < 1:
            raise DatError(f"weak is {self.weak}; it is a part of the strongest coupling, from 0 to below 1")

    @property
    def size(self) -> int:
        """Cells of a group, as wanted."""
        return 2**self.passes


def agglomerate(pattern: Csr, area: Array, volume: Array, first: Indices, grouping: Grouping) -> Indices:
    """Return the group of each cell; groups are numbered by their first cells.

    Parameters
    ----------
    pattern
        Neighbours of each cell, symmetric, without the cell itself.
    area : (entries,)
        What a cell shares with a neighbour, above 0, the same in both directions.
    volume : (n,)
        Above 0.
    first
        Cells where the front starts, such as those at walls.
    grouping
        How.

    Raises
    ------
    DatError
        When an array has the wrong type or length, or a cell does not exist.
    """
    n = count(pattern.offsets.size - 1, "the number of cells")
    starts = offsets(pattern.offsets, "pattern.offsets", indices(pattern.indices, "pattern.indices").size)
    for name, places in (("pattern.indices", pattern.indices), ("first", indices(first, "first"))):
        if (bad := check_range(places, n)) >= 0:
            raise DatError(f"{name}[{bad}] is {places[bad]}; there are {n} cells")
    for name, values, size in (("area", area, pattern.indices.size), ("volume", volume, n)):
        if values.dtype != np.float64 or values.shape != (size,) or not values.flags.c_contiguous:
            raise DatError(f"{name} must be {size} contiguous numbers in float64")
        if not (values > 0).all():
            raise DatError(f"{name} must be above 0")
    graph = _Graph(starts, pattern.indices, area, volume, np.ones(n, dtype=np.int32), first)
    group, limit = np.arange(n, dtype=np.int32), int(_LARGER * grouping.size)
    for k in range(grouping.passes + 1):
        found = _pairs(graph, min(limit, 2 ** (k + 1)) if k < grouping.passes else limit, grouping.weak)
        graph, group = _contracted(graph, found), found[group]
    found = _joined(graph, max(1, grouping.size // 4), 2 * limit)
    return _numbered(found[group])


@dataclass(frozen=True, eq=False)
class _Graph:
    """Neighbours, shared areas, volumes, numbers of cells, and where the front starts."""

    offsets: Offsets
    indices: Indices
    area: Array
    volume: Array
    size: Indices
    first: Indices


def _pairs(graph: _Graph, limit: int, weak: float) -> Indices:
    """Return the pair of each vertex, in groups of up to ``limit`` cells."""
    n = graph.volume.size
    mate, work = np.empty(n, dtype=np.int32), np.empty(4 * n, dtype=np.int32)
    _call("pair", n, graph.offsets, graph.indices, graph.area, graph.volume, graph.size, graph.first.size, graph.first,
          limit, round(1000 * weak), mate, work)  # fmt: skip
    return _numbered(np.minimum(mate, np.arange(n, dtype=np.int32)))


def _joined(graph: _Graph, least: int, limit: int) -> Indices:
    """Return the group of each vertex when those of up to ``least`` cells have joined a neighbour."""
    n = graph.volume.size
    into = np.empty(n, dtype=np.int32)
    _call("join", n, graph.offsets, graph.indices, graph.area, graph.volume, graph.size.copy(), least, limit, into)
    return _numbered(into)


def _numbered(group: Indices) -> Indices:
    """Return groups with numbers in the order in which they occur first."""
    names, begin, place = np.unique(group, return_index=True, return_inverse=True)
    rank = np.empty(names.size, dtype=np.int32)
    rank[np.argsort(begin)] = np.arange(names.size, dtype=np.int32)
    return rank[place]


def _contracted(graph: _Graph, group: Indices) -> _Graph:
    """Return the graph of the groups."""
    m = int(group.max(initial=-1)) + 1
    member = np.argsort(group, kind="stable")
    member_offsets = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=m))]).astype(np.int64)
    starts, mark = np.empty(m + 1, dtype=np.int64), np.empty(m, dtype=np.int64)
    neighbours, area = np.empty_like(graph.indices), np.empty_like(graph.area)
    size = _call("contract", graph.offsets, graph.indices, graph.area, group, m, member_offsets, member, starts,
                 neighbours, area, mark)  # fmt: skip
    first = np.zeros(m, dtype=bool)
    first[group[graph.first]] = True
    return _Graph(
        starts, neighbours[:size].copy(), area[:size].copy(), np.bincount(group, graph.volume, m).astype(np.float64),
        np.bincount(group, graph.size, m).astype(np.int32), np.flatnonzero(first).astype(np.int32),
    )  # fmt: skip


@functools.cache
def _library() -> Library:
    source = resources.files("fluxloom.graph").joinpath("agglomerate.c").read_text(encoding="utf-8")
    return load_library(source, "agglomerate")


def _call(name: str, *arguments: npt.NDArray[Any] | int) -> int:
    """Call a C function with arrays (as pointers) and integers."""
    function = _library().function("agglomerate_" + name, restype=ctypes.c_int64)
    return int(function(*(
        ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(a) for a in arguments
    )))  # fmt: skip
