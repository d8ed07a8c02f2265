"""Layers of cells above the walls of a mesh of quads, prisms or hexahedra, and the lines that lead through them.

Opposite edges of a quad, a prism or a hexahedron are *parallel*; edges that are parallel to a common one make a *sheet*
of cells, through the whole mesh. The cells at the walls lie in one sheet, those behind them in the next one, and so on:
these are the *layers*. A *line* leads from node to node through them, and starts at the wall, or where the first layer
goes on beyond it, as along the wake of a wing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import PARALLEL, element
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import pair_keys
from fluxloom.mesh.quality.surface import linked_parts

__all__ = ["Column", "Layers", "layers_above"]

Index = npt.NDArray[np.int64]

@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one type in the first layer, and where they lie in it.

    Attributes
    ----------
    kind
        Type.
    nodes : (m, k)
        Of these cells.
    low, high : (k / 2,)
        Which of the nodes of a cell are below, and above them on the same line.
    """

    kind: str
    nodes: Index
    low: Index
    high: Index


@dataclass(frozen=True, eq=False)
class Layers:
    """Layers of cells, and lines through them.

    Attributes
    ----------
    lines : (lines, layers + 1)
        Nodes, from the first layer on. Lines may start at the same node, as on both sides of a wake.
    columns
        The first layer, by type and the way its cells lie.
    members
        Type to the layer that each of its cells is in, counted from 0; -1: none.
    edges : 3 x (edges,)
        Edges through layers: node below, node above, layer.
    """

    lines: Index
    columns: tuple[Column, ...]
    members: Mapping[str, Index]
    edges: tuple[Index, Index, Index]

    @property
    def count(self) -> int:
        """Number of layers."""
        return self.lines.shape[1] - 1

    def first(self, count: int) -> Layers:
        """Return the first ``count`` layers alone."""
        kept = self.edges[2] < count
        tails, heads, layer = (part[kept] for part in self.edges)
        members = {kind: np.where(of < count, of, -1) for kind, of in self.members.items()}
        return Layers(self.lines[:, : count + 1], self.columns, members, (tails, heads, layer))


@dataclass(frozen=True, eq=False)
class _Groups:
    """One group of parallel edges of all cells of a type, in one direction: from ``low`` to ``high``.

    ``sheet`` is the number of the sheet of each cell, in this direction; ``base`` and ``top`` are those of the faces at
    both ends.
    """

    kind: str
    nodes: Index
    low: Index
    high: Index
    sheet: Index
    base: Index
    top: Index


def layers_above(mesh: MeshData, patches: Sequence[str]) -> Layers:
    """Return the layers of cells above some patches.

    They end where a patch is reached, or where the next layer would not cover the last one or lies in cells that are
    in another layer already.

    Parameters
    ----------
    mesh
        Quads in two dimensions; hexahedra and prisms in three; other cells where no layer gets.
    patches
        The walls.

    Raises
    ------
    MeshError
        If a patch is not there, its faces have no parallel edges, or the first layer is several ones that nothing
        joins, meets itself, or leads through cells that cannot be cut.
    """
    path = mesh.source.path
    groups, walls = _groups(mesh, patches)
    first = _starting(groups, walls)
    if not first:
        raise MeshError(f"{path}: layers above {', '.join(patches)}: none of their faces is one of a quad's, or of a "
                        "prism's or hexahedron's")  # fmt: skip
    if len(first) > 1:
        raise MeshError(f"{path}: layers above {', '.join(patches)}: the first layer is {len(first)} ones that nothing "
                        "joins; give the patches one at a time")  # fmt: skip
    layers = _Growing(mesh, groups)
    if not layers.add(first[0]):
        raise MeshError(f"{path}: layers above {', '.join(patches)}: the first one meets itself, or cells that cannot "
                        "be cut: tetrahedra, pyramids, or prisms from the side")  # fmt: skip
    while (following := layers.following()) is not None and layers.add(following):
        pass
    return layers.found()


# ------------------------------------------------------------------------------------------------------- sheets


def _groups(mesh: MeshData, patches: Sequence[str]) -> tuple[list[_Groups], Index]:
    """Return the groups of parallel edges with their sheets, and the numbers of the faces of some patches."""
    n = mesh.n_points
    rows = [(kind, block.astype(np.int64), *ends) for kind, block in mesh.cells.items() for ends in _directions(kind)]
    if not rows:
        raise MeshError(f"{mesh.source.path}: layers: there are no quads, prisms or hexahedra")
    walls = [block.astype(np.int64) for name in patches for block in mesh.patch(name).blocks.values()]
    ends = [nodes[:, end] for _, nodes, low, high in rows for end in (low, high)]
    faces = _face_numbers([*ends, *walls], n)
    sheets = _sheets([(nodes[:, low], nodes[:, high]) for _, nodes, low, high in rows], n)
    groups = [
        _Groups(*row, sheet, base, top)
        for row, sheet, base, top in zip(rows, sheets, faces[: len(ends) : 2], faces[1 : len(ends) : 2], strict=True)
    ]
    return groups, np.concatenate([np.empty(0, dtype=np.int64), *faces[len(ends) :]])


def _directions(kind: str) -> list[tuple[Index, Index]]:
    """Return the ends of the groups of a type, in both directions."""
    found: list[tuple[Index, Index]] = []
    for pairs in PARALLEL.get(kind, ()):
        low, high = np.array(pairs, dtype=np.int64).T
        found += [(low, high), (high, low)]
    return found


def _sheets(edges: list[tuple[Index, Index]], n: int) -> list[Index]:
    """Return the sheets of groups, ``(m,)`` each, of their directed edges ``(m, k)`` from nodes to nodes."""
    keys = [low * n + high for low, high in edges]
    known = np.unique(np.concatenate([key.reshape(-1) for key in keys]))
    numbers = [np.searchsorted(known, key) for key in keys]
    one = np.concatenate([np.repeat(number[:, 0], number.shape[1] - 1) for number in numbers])
    other = np.concatenate([number[:, 1:].reshape(-1) for number in numbers])
    sheets = linked_parts(known.size, one, other)
    return [sheets[number[:, 0]] for number in numbers]


def _face_numbers(tables: list[Index], n: int) -> list[Index]:
    """Return a number for each face, the same for the same nodes in any order: the three lowest ones settle it."""
    rows = [np.sort(table, axis=1) for table in tables]
    pairs = np.concatenate([row[:, 0] * n + row[:, 1] for row in rows])
    third = np.concatenate([row[:, 2] if row.shape[1] > 2 else np.zeros(len(row), dtype=np.int64) for row in rows])
    number = np.unique(pairs, return_inverse=True)[1] * n + third
    return np.split(number, np.cumsum([len(row) for row in rows])[:-1])


def _starting(groups: list[_Groups], faces: Index) -> list[int]:
    """Return the sheets that start at some faces."""
    found = [group.sheet[np.isin(group.base, faces)] for group in groups]
    return np.unique(np.concatenate(found)).tolist()


class _Growing:
    """Layers as they are found."""

    def __init__(self, mesh: MeshData, groups: list[_Groups]) -> None:
        self.mesh, self.groups = mesh, groups
        self.members = {kind: np.full(len(block), -1, dtype=np.int64) for kind, block in mesh.cells.items()}
        self.sheets: list[int] = []

    def add(self, sheet: int) -> bool:
        """Add a layer, unless a cell is in it twice or in one already, or cannot be cut; return whether it was."""
        number = len(self.sheets)
        new = {kind: np.zeros(len(block), dtype=np.int64) for kind, block in self.mesh.cells.items()}
        for group in self.groups:
            new[group.kind] += group.sheet == sheet
        if any(((count > 1) | ((count > 0) & (self.members[kind] >= 0))).any() for kind, count in new.items()):
            return False
        if self._cuts_others(sheet):
            return False
        for kind, count in new.items():
            self.members[kind][count > 0] = number
        self.sheets.append(sheet)
        return True

    def _edges(self, sheet: int) -> tuple[Index, Index]:
        """Return the distinct edges of a layer: nodes below and above."""
        n = self.mesh.n_points
        parts = [group.nodes[group.sheet == sheet] for group in self.groups]
        keys = [
            (part[:, group.low] * n + part[:, group.high]).reshape(-1)
            for part, group in zip(parts, self.groups, strict=True)
        ]
        return np.divmod(np.unique(np.concatenate(keys)), n)

    def _cuts_others(self, sheet: int) -> bool:
        """Return whether an edge of a layer is one of a cell, or of a side of a prism, that cannot be cut there."""
        n = self.mesh.n_points
        tails, heads = self._edges(sheet)
        cut = pair_keys(np.stack([tails, heads], axis=1), n)
        for kind, block in self.mesh.cells.items():
            along = {frozenset(pair) for pairs in PARALLEL.get(kind, ()) for pair in pairs}
            for a, b in element(kind).edges:
                if frozenset((a, b)) not in along and np.isin(pair_keys(block[:, [a, b]], n), cut).any():
                    return True
        return False

    def following(self) -> int | None:
        """Return the sheet that covers the last layer, of cells that are in none yet; None where there is none."""
        last = self.sheets[-1]
        tops = np.concatenate([group.top[group.sheet == last] for group in self.groups])
        hits = [np.isin(group.base, tops) & (self.members[group.kind] < 0) for group in self.groups]
        found = np.unique(np.concatenate([group.sheet[hit] for group, hit in zip(self.groups, hits, strict=True)]))
        covered = sum(int(hit.sum()) for hit in hits)
        return int(found[0]) if found.size == 1 and covered == tops.size else None

    def found(self) -> Layers:
        """Return what was found."""
        edges = [self._edges(sheet) for sheet in self.sheets]
        lines = [*edges[0]]
        for tails, heads in edges[1:]:
            order = np.argsort(tails)
            lines.append(heads[order][np.searchsorted(tails[order], lines[-1])])
        columns = [
            Column(group.kind, group.nodes[group.sheet == self.sheets[0]], group.low, group.high)
            for group in self.groups
            if (group.sheet == self.sheets[0]).any()
        ]
        layer = np.repeat(np.arange(len(edges)), [len(tails) for tails, _ in edges])
        tails, heads = (np.concatenate([pair[k] for pair in edges]) for k in range(2))
        return Layers(np.stack(lines, axis=1), tuple(columns), self.members, (tails, heads, layer))
