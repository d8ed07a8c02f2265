"""Renumbering sets for locality: cells by their graph, the others by first touch.

Sources: Cuthill and McKee, "Reducing the bandwidth of sparse symmetric matrices", ACM 1969; Gibbs, Poole and
Stockmeyer, SIAM J. Numer. Anal. 13 (1976) 236-250 (ends of a pseudo-diameter).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.core.packages import require
from fluxloom.mesh.data.mesh import IntArray, MeshData, MeshSource, PatchFaces
from fluxloom.mesh.geometry.connectivity import connectivity

__all__ = [
    "MeshRenumbering",
    "Method",
    "Permutation",
    "SetMap",
    "SetRenumbering",
    "Spread",
    "first_touch",
    "graph_order",
    "renumber",
    "renumber_sets",
    "sort_by_target",
    "spread",
]

Method = Literal["rcm", "gps"]
Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Permutation:
    """A renumbering of one set.

    Attributes
    ----------
    order : (n,) int32
        Old number of each new element.
    rank : (n,) int32
        New number of each old element.
    """

    order: IntArray
    rank: IntArray

    @classmethod
    def from_order(cls, order: Integers) -> Permutation:
        """Build from the old numbers in their new order."""
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return cls(np.ascontiguousarray(order, dtype=np.int32), rank)

    @classmethod
    def identity(cls, n: int) -> Permutation:
        """Leave everything where it is."""
        return cls.from_order(np.arange(n, dtype=np.int32))

    def __len__(self) -> int:
        return len(self.order)

    def move(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values on the set (first axis) in the new order."""
        return values[self.order]

    def restore(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values in the new order to the old one."""
        return values[self.rank]

    def rename(self, numbers: Integers) -> IntArray:
        """Replace old element numbers by new ones; negative numbers stay."""
        if numbers.size and int(numbers.min()) < 0:
            return np.where(numbers >= 0, self.rank[numbers], numbers).astype(np.int32)
        return self.rank[numbers]


@dataclass(frozen=True)
class Spread:
    """How far apart linked elements are numbered.

    Attributes
    ----------
    bandwidth
        Largest difference of linked numbers.
    profile
        Sum over the rows of the distance from the diagonal to the first link.
    """

    bandwidth: int
    profile: int


@dataclass(frozen=True, eq=False)
class SetMap:
    """A map between two sets, for `renumber_sets`.

    Attributes
    ----------
    source, target
        Names of the sets.
    table : (n_source, arity) or (n_source,) integers
        Targets of each source element.
    """

    source: str
    target: str
    table: Integers


@dataclass(frozen=True, eq=False)
class SetRenumbering:
    """Result of `renumber_sets`: a permutation per set, the renumbered tables, the spread before and after."""

    permutations: Mapping[str, Permutation]
    maps: Mapping[str, IntArray]
    before: Spread
    after: Spread


@dataclass(frozen=True, eq=False)
class MeshRenumbering:
    """Result of `renumber`: the mesh, the permutations of cells and points, the spread before and after."""

    mesh: MeshData
    cells: Permutation
    points: Permutation
    before: Spread
    after: Spread


def renumber(mesh: MeshData, method: Method = "rcm") -> MeshRenumbering:
    """Renumber the cells of a mesh by their graph and the points by first touch.

    Parameters
    ----------
    mesh
        The mesh.
    method
        ``"rcm"`` (reverse Cuthill-McKee, scipy) or ``"gps"`` (Cuthill-McKee from the ends of a pseudo-diameter).

    Returns
    -------
    MeshRenumbering
        Cells stay in their blocks; the faces follow from the order of the cells.

    Raises
    ------
    MeshError
        For an unknown method or a mesh without faces.
    DeviceUnavailable
        When scipy is not installed.
    """
    links = connectivity(mesh)
    with activity("renumbering the mesh", f"{mesh.n_cells:,} cells"):
        order = graph_order(links.interior_cells, mesh.n_cells, method).order
    blocks = [order[(order >= part.start) & (order < part.stop)] for part in mesh.cell_ranges.values()]
    tables = [
        mesh.cells[name][chosen - part.start]
        for (name, part), chosen in zip(mesh.cell_ranges.items(), blocks, strict=True)
    ]
    touched, more = [table.reshape(-1) for table in tables], mesh.polyhedra
    if more is not None:
        blocks.append(order[order >= mesh.n_elements])
        more = more.take(blocks[-1] - mesh.n_elements)
        touched.append(more.faces.indices)
    cells = Permutation.from_order(np.concatenate(blocks))
    points = first_touch(np.concatenate(touched), mesh.n_points)
    renamed = {name: points.rename(table) for name, table in zip(mesh.cells, tables, strict=True)}
    patches = {
        name: PatchFaces({kind: points.rename(block) for kind, block in faces.blocks.items()})
        for name, faces in mesh.patches.items()
    }
    source = MeshSource(f"{mesh.source.path} (renumbered)")
    more = None if more is None else more.renamed(points.rank)
    result = MeshData(points.move(mesh.points), renamed, patches, source, more)
    after = spread(cells.rename(links.interior_cells), mesh.n_cells)
    return MeshRenumbering(result, cells, points, spread(links.interior_cells, mesh.n_cells), after)


def renumber_sets(
    sizes: Mapping[str, int],
    maps: Mapping[str, SetMap],
    graph: str,
    method: Method = "rcm",
    keep: Collection[str] = (),
) -> SetRenumbering:
    """Renumber several sets that maps connect.

    The target set of ``graph`` is ordered by its graph: two elements are linked when a row of the map holds
    both.  The others follow outwards from it: targets in the order of first touch, sources by the lowest
    targets of their rows (walking the targets in order, each source gets the next number when first met).

    Parameters
    ----------
    sizes
        Set name to number of elements.
    maps
        Map name to map, for instance ``{"edge_cells": SetMap("edges", "cells", table), ...}``.
    graph
        The map whose target set is ordered first, of arity at least 2.
    method
        As in `renumber`.
    keep
        Sets that stay in their order (their rows are renamed all the same).

    Returns
    -------
    SetRenumbering

    Raises
    ------
    MeshError
        For unknown names or tables that do not fit the sizes.
    """
    _check_maps(sizes, maps, graph)
    first = maps[graph]
    pairs = _links(first.table)
    found: dict[str, Permutation] = {name: Permutation.identity(sizes[name]) for name in keep}
    if first.target not in found:
        found[first.target] = graph_order(pairs, sizes[first.target], method)
    queue = [first.target]
    while queue:
        name = queue.pop(0)
        for item in maps.values():
            if item.source == name and item.target not in found:
                found[item.target] = first_touch(found[name].move(item.table).reshape(-1), sizes[item.target])
                queue.append(item.target)
            elif item.target == name and item.source not in found:
                found[item.source] = sort_by_target(found[name].rename(item.table))
                queue.append(item.source)
    for name, n in sizes.items():
        found.setdefault(name, Permutation.identity(n))
    tables = {
        name: np.ascontiguousarray(found[item.source].move(found[item.target].rename(item.table)))
        for name, item in maps.items()
    }
    n = sizes[first.target]
    return SetRenumbering(found, tables, spread(pairs, n), spread(found[first.target].rename(pairs), n))


def graph_order(pairs: Integers, n: int, method: Method = "rcm") -> Permutation:
    """Order the vertices of a graph.

    Parameters
    ----------
    pairs : (m, 2) integers
        Links.
    n
        Number of vertices.
    method
        As in `renumber`.
    """
    sparse = require("scipy.sparse", "app", "renumbering")
    csgraph = require("scipy.sparse.csgraph", "app", "renumbering")
    if method not in ("rcm", "gps"):
        raise MeshError(f"unknown renumbering method {method!r} (known: rcm, gps)")
    ones = np.ones(2 * len(pairs), dtype=np.int8)
    ends = (np.concatenate([pairs[:, 0], pairs[:, 1]]), np.concatenate([pairs[:, 1], pairs[:, 0]]))
    matrix = sparse.coo_matrix((ones, ends), shape=(n, n)).tocsr()
    if method == "rcm":
        return Permutation.from_order(csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True))
    # Numbering the vertices by degree makes a breadth-first search visit neighbours as Cuthill-McKee does.
    by_degree = np.argsort(np.diff(matrix.indptr), kind="stable")
    matrix = matrix[by_degree][:, by_degree].tocsr()
    matrix.sort_indices()
    count, label = csgraph.connected_components(matrix, directed=False)
    starts = np.unique(label, return_index=True)[1]
    pieces = [_from_best_end(csgraph, matrix, int(starts[k])) for k in range(count)]
    return Permutation.from_order(by_degree[np.concatenate(pieces)])


def _from_best_end(csgraph: Any, matrix: Any, start: int) -> npt.NDArray[np.int64]:
    """Return the reversed search order of a component from the end of a pseudo-diameter with narrower levels."""
    order, levels = _search(csgraph, matrix, start)
    while True:
        last = order[levels[-2] :]
        end = int(last.min())  # numbers are sorted by degree: the lowest degree of the last level
        other, other_levels = _search(csgraph, matrix, end)
        if len(other_levels) <= len(levels):
            break
        order, levels = other, other_levels
    narrow = np.diff(other_levels).max() < np.diff(levels).max()
    return (other if narrow else order)[::-1].astype(np.int64)


def _search(csgraph: Any, matrix: Any, start: int) -> tuple[npt.NDArray[np.int32], list[int]]:
    """Return the breadth-first order and the positions where its levels begin (and the end)."""
    order, before = csgraph.breadth_first_order(matrix, start, directed=True)
    place = np.empty(matrix.shape[0], dtype=np.int64)
    place[order] = np.arange(len(order))
    parents = place[before[order[1:]]]  # never decreases: a level's parents are the level before
    levels = [0, 1]
    while levels[-1] < len(order):
        levels.append(1 + int(np.searchsorted(parents, levels[-1], side="left")))
    return order, levels


def first_touch(numbers: Integers, n: int) -> Permutation:
    """Order the ``n`` targets as a walk along ``numbers`` first meets them; those never met come last."""
    first = np.full(n, len(numbers), dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)  # the last assignment, of the first place, stays
    return Permutation.from_order(np.argsort(first, kind="stable"))


def sort_by_target(table: Integers) -> Permutation:
    """Order the rows of a map by their lowest target, then the next, and so on."""
    rows = table.reshape(len(table), -1)
    if rows.shape[1] == 1:
        return Permutation.from_order(np.argsort(rows[:, 0], kind="stable"))
    return Permutation.from_order(np.lexsort(np.sort(rows, axis=1).T[::-1]))


def spread(pairs: Integers, n: int) -> Spread:
    """Return bandwidth and profile of a graph with ``n`` vertices and links ``pairs`` of shape ``(m, 2)``."""
    low, high = np.minimum(pairs[:, 0], pairs[:, 1]), np.maximum(pairs[:, 0], pairs[:, 1])
    first = np.arange(n)
    np.minimum.at(first, high, low)
    return Spread(int((high - low).max(initial=0)), int((np.arange(n) - first).sum()))


def _links(table: Integers) -> Integers:
    """Return the pairs of targets that share a row."""
    columns = range(table.shape[1])
    return np.concatenate([table[:, [a, b]] for a in columns for b in columns if a < b])


def _check_maps(sizes: Mapping[str, int], maps: Mapping[str, SetMap], graph: str) -> None:
    if graph not in maps:
        raise MeshError(f"unknown map {graph!r}{did_you_mean(graph, maps)} (known: {', '.join(maps)})")
    if maps[graph].table.ndim != 2 or maps[graph].table.shape[1] < 2:
        raise MeshError(f"map {graph!r} links nothing: its arity must be at least 2")
    for name, item in maps.items():
        for end in (item.source, item.target):
            if end not in sizes:
                raise MeshError(
                    f"map {name!r}: unknown set {end!r}{did_you_mean(end, sizes)} (known: {', '.join(sizes)})"
                )
        if len(item.table) != sizes[item.source]:
            raise MeshError(f"map {name!r} has {len(item.table)} rows, its set {item.source!r} {sizes[item.source]}")
        if item.table.size and not 0 <= int(item.table.min()) <= int(item.table.max()) < sizes[item.target]:
            raise MeshError(f"map {name!r} points outside its target set {item.target!r}")
