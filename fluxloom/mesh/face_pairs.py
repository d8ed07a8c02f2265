"""Faces that are equal: numbers that do not depend on the order of their nodes, and finding pairs by them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.ragged import IntArray

__all__ = ["face_keys", "face_senses", "mixed_rows", "pair_keys", "paired", "places_of"]

_NONE = -1
_CHUNK = 1 << 15


def face_keys(nodes: IntArray, n_points: int) -> npt.NDArray[np.uint64]:
    """Return a number per face that does not depend on the order of its nodes.

    Exact for two nodes; for more the lowest node, and below it 32 bits of a sum of mixed node numbers (splitmix64),
    whose rare collisions `paired` detects and resolves. Faces that are near each other have near numbers.
    """
    if nodes.shape[1] == 2:
        return pair_keys(nodes, n_points).view(np.uint64)
    z = np.arange(1, n_points + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    total = np.empty(len(nodes), dtype=np.uint64)
    for start in range(0, len(nodes), _CHUNK):
        rows = nodes[start : start + _CHUNK]
        part, lowest = z[rows[:, 0]], rows[:, 0].astype(np.uint32)
        for column in range(1, nodes.shape[1]):
            part += z[rows[:, column]]  # the pad -1 takes the last, extra, number
            np.minimum(lowest, rows[:, column].astype(np.uint32), out=lowest)  # and is the largest here
        part >>= np.uint64(32)
        total[start : start + _CHUNK] = part | (lowest.astype(np.uint64) << np.uint64(32))
    return total


def face_senses(nodes: IntArray) -> npt.NDArray[np.bool_]:
    """Return which way each face goes round, ``(n,)``: two cells on either side of a face go round it differently.

    Whether the node before the lowest one is above the node behind it; of the two nodes of an edge, whether the second
    is. Rows are padded with -1 at the end.
    """
    if nodes.shape[1] == 2:
        return nodes[:, 0] < nodes[:, 1]
    found, width = np.empty(len(nodes), dtype=bool), nodes.shape[1]
    for start in range(0, len(nodes), _CHUNK):
        part = np.ascontiguousarray(nodes[start : start + _CHUNK].T)
        lowest = part.view(np.uint32).min(axis=0).view(np.int32)
        sense = np.zeros(part.shape[1], dtype=bool)
        for k in range(width):
            before, behind = part[k - 1], part[(k + 1) % width]
            if k == 0:
                for j in range(width - 2, 1, -1):
                    before = np.where(before < 0, part[j], before)
            elif k + 1 < width:
                behind = np.where(behind < 0, part[0], behind)
            sense |= (part[k] == lowest) & (before > behind)
        found[start : start + _CHUNK] = sense
    return found


def pair_keys(pairs: npt.NDArray[np.integer], n_points: int) -> npt.NDArray[np.int64]:
    """Return ``smaller * n_points + larger`` for node pairs ``(..., 2)``."""
    low = np.minimum(pairs[..., 0], pairs[..., 1]).astype(np.int64)
    low *= n_points
    low += np.maximum(pairs[..., 0], pairs[..., 1])
    return low


def places_of(
    wanted: npt.NDArray[Any], keys: npt.NDArray[Any], order: npt.NDArray[np.integer] | None = None
) -> npt.NDArray[np.int64]:
    """Return the place of each wanted number among keys, -1 where it is none; ``order`` is that of ascending keys."""
    if not len(keys):
        return np.full(wanted.shape, _NONE, dtype=np.int64)
    spot = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    place = spot if order is None else order[spot]
    return np.where(keys[place] == wanted, place, _NONE)


def mixed_rows(rows: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Return one number a row of ``(..., k)`` that is seldom the same for different rows."""
    total = np.zeros(rows.shape[:-1], dtype=np.uint64)
    for column in range(rows.shape[-1]):
        total = (total ^ rows[..., column].astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total


def paired(
    keys: npt.NDArray[np.uint64], nodes: IntArray
) -> tuple[npt.NDArray[np.int64], tuple[npt.NDArray[np.int64], ...]]:
    """Find the twin of every half face, and the groups of three and more."""
    order, same = np.argsort(keys), np.zeros(max(len(keys) - 1, 0), dtype=bool)
    for start in range(0, len(same), _CHUNK):
        some = keys[order[start : start + _CHUNK + 1]]
        np.equal(some[1:], some[:-1], out=same[start : start + _CHUNK])
    if nodes.shape[1] > 2 and not _really_same(nodes, order, same):
        same = _told_apart(nodes, order, keys[order])
    twins = np.full(len(keys), _NONE, dtype=np.int64)
    for start in range(0, len(same), _CHUNK):
        part = start + np.flatnonzero(same[start : start + _CHUNK])
        left, right = order[part], order[part + 1]
        twins[left], twins[right] = right, left
    crowded = same[1:] & same[:-1]
    if not crowded.any():
        return twins, ()
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    ends = np.append(starts[1:], len(keys))
    groups = tuple(np.sort(order[s:e]) for s, e in zip(starts, ends, strict=True) if e - s > 2)
    return twins, groups


def _really_same(nodes: IntArray, order: npt.NDArray[np.int64], same: npt.NDArray[np.bool_]) -> bool:
    """Check that faces with equal keys have equal nodes, in pieces to bound the memory."""
    for start in range(0, len(same), _CHUNK):
        part = start + np.flatnonzero(same[start : start + _CHUNK])
        left, right = _sorted_rows(nodes[order[part]]), _sorted_rows(nodes[order[part + 1]])
        if not all(np.array_equal(a, b) for a, b in zip(left, right, strict=True)):
            return False
    return True


def _told_apart(nodes: IntArray, order: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Sort faces with equal keys by their nodes, in place; return which ones are equal to the next.

    Only runs of several faces are looked at, so that a collision costs little.
    """
    again = np.flatnonzero(keys[1:] == keys[:-1])
    place = np.unique(np.concatenate([again, again + 1]))
    rows = np.stack(_sorted_rows(nodes[order[place]]), axis=1)
    inner = np.lexsort((*rows.T, keys[place]))
    order[place], rows = order[place[inner]], rows[inner]
    same = np.zeros(len(keys) - 1, dtype=bool)
    # Neighbours in the list are neighbours in the order, or their keys differ.
    same[place[:-1]] = (keys[place[1:]] == keys[place[:-1]]) & (rows[1:] == rows[:-1]).all(axis=1)
    return same


def _sorted_rows(rows: IntArray) -> list[IntArray]:
    """Return the columns of a table with ascending rows: a network of exchanges, column by column."""
    columns = list(np.ascontiguousarray(rows.T))
    for low, high in combinations(range(len(columns)), 2):
        columns[low], columns[high] = np.minimum(columns[low], columns[high]), np.maximum(columns[low], columns[high])
    return columns
