"""Cells with any faces: each has its own list of them, turning anticlockwise seen from outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.ragged import IntArray, Ragged

__all__ = ["Polyhedra", "turned_rows"]

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Polyhedra:
    """Polyhedra by their faces.

    A face between two cells is listed by both, with the same nodes turning the other way.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Faces of polyhedron ``i`` are ``offsets[i] ... offsets[i + 1] - 1``.
    faces
        Face to nodes, three or more, outward.

    Raises
    ------
    MeshError
        For offsets that do not fit the faces, a polyhedron without faces, and a face with fewer than three nodes.
    """

    offsets: Index
    faces: Ragged

    def __post_init__(self) -> None:
        if self.offsets.ndim != 1 or not self.offsets.size or self.offsets[0] or self.offsets[-1] != len(self.faces):
            raise MeshError(f"polyhedra: the offsets have to ascend from 0 to {len(self.faces)}, the number of faces")
        if len(self) and int(np.diff(self.offsets).min()) < 1:
            raise MeshError(f"polyhedra: polyhedron {int(np.diff(self.offsets).argmin())} has no faces")
        if len(self.faces) and int(self.faces.counts.min()) < 3:
            face = int(self.faces.counts.argmin())
            raise MeshError(f"polyhedra: face {face} has {self.faces[face].size} nodes; a face has 3 or more")

    def __len__(self) -> int:
        return self.offsets.size - 1

    @property
    def owners(self) -> Index:
        """Which polyhedron has each face, ``(faces,)``."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @classmethod
    def joined(cls, parts: Sequence[Polyhedra]) -> Polyhedra:
        """Return several as one, in their order."""
        sizes, faces = [np.diff(part.offsets) for part in parts], [part.faces for part in parts]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        counts = np.concatenate([rows.counts for rows in faces])
        return cls(offsets, Ragged.from_counts(counts, np.concatenate([rows.indices for rows in faces])))

    def take(self, rows: npt.NDArray[np.integer]) -> Polyhedra:
        """Return some polyhedra, in the given order."""
        table = Ragged(self.offsets, np.arange(len(self.faces), dtype=np.int32)).take(rows)
        return Polyhedra(table.offsets, self.faces.take(table.indices))

    def renamed(self, numbers: npt.NDArray[np.integer]) -> Polyhedra:
        """Return them with ``numbers[node]`` in place of each node."""
        return Polyhedra(self.offsets, Ragged(self.faces.offsets, numbers[self.faces.indices].astype(np.int32)))

    def turned(self, chosen: npt.NDArray[np.bool_]) -> Polyhedra:
        """Return them with the faces of those chosen, ``(n,)``, turning the other way."""
        return Polyhedra(self.offsets, turned_rows(self.faces, chosen[self.owners]))

    def nodes(self) -> Ragged:
        """Return polyhedron -> its nodes, ascending."""
        owner, last = np.repeat(self.owners, self.faces.counts), int(self.faces.indices.max(initial=0)) + 1
        keys = np.sort(owner * last + self.faces.indices, kind="stable")  # in the order of their owners already
        once = keys[np.diff(keys, prepend=-1) > 0]
        return Ragged.from_counts(np.bincount(once // last, minlength=len(self)), once % last)

    def sides(self) -> tuple[Index, IntArray, IntArray]:
        """Return the sides of all faces, face by face: which polyhedron, from which node, to which."""
        rows, nodes = self.faces, self.faces.indices
        return np.repeat(self.owners, rows.counts), nodes, nodes[rows.ahead]

    def open(self) -> Index:
        """Return the polyhedra whose faces do not close: a side is not met once in each direction."""
        owner, start, end = self.sides()
        low, high = np.minimum(start, end), np.maximum(start, end)
        if _in_pairs(owner, low, high, start < end):
            return np.empty(0, dtype=np.int64)
        order = np.lexsort((high, low, owner))
        owner, low, high, up = owner[order], low[order], high[order], (start < end)[order]
        edge = np.ones(order.size, dtype=bool)
        edge[1:] = (owner[1:] != owner[:-1]) | (low[1:] != low[:-1]) | (high[1:] != high[:-1])
        number = np.cumsum(edge) - 1
        count, ups = np.bincount(number), np.bincount(number, up)
        return np.unique(owner[edge][(count != 2) | (ups != 1)])


def _in_pairs(owner: Index, low: IntArray, high: IntArray, up: npt.NDArray[np.bool_]) -> bool:
    """Return whether sides come in pairs, one up and one down; False where that cannot be told by one sort."""
    if owner.size % 2:
        return False
    last = np.uint64(int(high.max(initial=0)) + 1)
    mixed = (low.astype(np.uint64) * last + high.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    keys = (owner.astype(np.uint64) << np.uint64(32)) | (mixed >> np.uint64(32))
    order = np.argsort(keys, kind="stable")  # sides are in the order of their owners already
    keys, (one, two) = keys[order], (order[0::2], order[1::2])
    same = (owner[one] == owner[two]) & (low[one] == low[two]) & (high[one] == high[two]) & (up[one] != up[two])
    return bool(same.all() and (keys[1:-1:2] != keys[2::2]).all())


def turned_rows(rows: Ragged, chosen: npt.NDArray[np.bool_]) -> Ragged:
    """Return a table with the entries of those rows chosen in the opposite order."""
    place = np.arange(rows.indices.size)
    back = np.repeat(rows.offsets[:-1] + rows.offsets[1:] - 1, rows.counts) - place
    return Ragged(rows.offsets, rows.indices[np.where(np.repeat(chosen, rows.counts), back, place)])
