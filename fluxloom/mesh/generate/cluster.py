r"""Cells as thin as a boundary layer wants them: the points on the lines above walls are placed anew, and more of them.

On a line of length ``L`` the ``N`` new intervals grow by one factor ``r`` from the wall on,

.. math:: h \frac{r^N - 1}{r - 1} = L

with the height ``h`` of the first cell. All lines have as many points; that of median length at the wall has the factor
that was asked for. Lines that start beyond the wall, as along a wake, have first cells that are the higher, the farther
the wall is, and grow less. Between the old points lines are cubic, along parabolas through three of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isfinite, log

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource, PatchFaces
from fluxloom.mesh.generate.layers import Layers, layers_above
from fluxloom.mesh.geometry.connectivity import pair_keys, places_of

__all__ = ["Clustering", "cluster", "growth_factors"]

Index = npt.NDArray[np.int64]

_BISECTIONS = 80
_STEEPEST = 1e3


@dataclass(frozen=True)
class Clustering:
    """How points are clustered at walls.

    Attributes
    ----------
    first
        Height of the first cells along the lines, in the unit of the mesh.
    growth
        Of the intervals, on the line of median length.
    layers
        Old layers that are replaced: 0, all of them; None, up to where the new intervals are as long as the old ones.
    slope, spread
        Where lines start at a distance ``a`` from the wall, first cells are higher by ``slope a + spread a^2 / L``,
        with the length ``L`` of the median line.

    Raises
    ------
    MeshError
        If a number is out of range.
    """

    first: float
    growth: float = 1.2
    layers: int | None = None
    slope: float = 0.0005
    spread: float = 0.05

    def __post_init__(self) -> None:
        for name, least in (("first", 0.0), ("growth", 1.0)):
            value = getattr(self, name)
            if not (isfinite(value) and value > least):
                raise MeshError(f"clustering: {name}: a number above {least:g} is wanted, not {value!r}")
        for name in ("slope", "spread"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0.0):
                raise MeshError(f"clustering: {name}: a number of at least 0 is wanted, not {value!r}")
        if self.layers is not None and self.layers < 0:
            raise MeshError(f"clustering: layers: None, or a number of at least 0 is wanted, not {self.layers!r}")


def cluster(mesh: MeshData, patches: Sequence[str], clustering: Clustering) -> MeshData:
    """Return a mesh whose cells at some walls are thin, with more layers of them.

    Parameters
    ----------
    mesh
        Quads in two dimensions; hexahedra and prisms in three; other cells where no layer above the walls gets.
    patches
        The walls; see `fluxloom.mesh.generate.layers`.
    clustering
        How thin, and how they grow.

    Returns
    -------
    MeshData
        The cells of each column above a face follow one another, behind them those that no layer has; patches have
        their names. Points beyond the layers and on the walls are where they were.

    Raises
    ------
    MeshError
        If there are no such layers, or they are lower than one cell.

    References
    ----------
    J. F. Thompson, B. K. Soni, N. P. Weatherill: *Handbook of Grid Generation*, CRC Press 1999, sec. 3.6 (growth along
    lines).
    """
    from scipy.spatial import KDTree  # takes longer to import than all of this package

    layers = layers_above(mesh, patches)
    lines = mesh.points[layers.lines]
    arc = _arc(lines)
    wall = np.isin(layers.lines[:, 0], np.concatenate([mesh.patch(name).nodes() for name in patches]))
    count = _replaced(np.median(arc[wall], axis=0), clustering)
    layers, length = layers.first(count), arc[:, count]
    if (length <= clustering.first).any():
        raise MeshError(
            f"{mesh.source.path}: clustering: {count} layers are only {length.min():.3g} high somewhere, less than the "
            f"first cell ({clustering.first:g}); replace more layers, or give a smaller first"
        )
    intervals = _intervals(float(np.median(length[wall])), clustering)
    away = KDTree(lines[wall, 0]).query(lines[:, 0])[0]
    room = np.maximum(length / intervals - clustering.first, 0.0)  # equal intervals are the highest first ones
    higher = clustering.slope * away + clustering.spread * away**2 / np.median(length[wall])
    first = clustering.first + np.minimum(higher, room)
    heights = _heights(first, length, intervals)
    places = _on_lines(lines[:, : count + 2], arc[:, : count + 2], heights)
    return _Replaced(mesh, layers, places).mesh()


def growth_factors(first: FloatArray, length: FloatArray, intervals: int) -> FloatArray:
    """Return the factors by which so many intervals grow from a first one to a whole length, see the module; ``(n,)``.

    Raises
    ------
    MeshError
        If there is none between 1/1000 and 1000.
    """
    ratio = np.asarray(length, dtype=np.float64) / np.asarray(first, dtype=np.float64)
    powers = np.arange(intervals, dtype=np.float64)
    low, high = np.full(ratio.shape, -log(_STEEPEST)), np.full(ratio.shape, log(_STEEPEST))
    if not (np.exp(np.minimum(powers * high[:, None], 700.0)).sum(axis=1) >= ratio).all() or not (ratio > 1.0).all():
        raise MeshError(f"clustering: {intervals} intervals do not lead from the first height to the whole length")
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        over = np.exp(np.minimum(powers * middle[:, None], 700.0)).sum(axis=1) > ratio
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return np.exp(0.5 * (low + high))


# ------------------------------------------------------------------------------------------------------ lines


def _arc(lines: FloatArray) -> FloatArray:
    """Return the lengths along lines ``(n, k, d)`` up to their points, ``(n, k)``."""
    steps = np.linalg.norm(np.diff(lines, axis=1), axis=2)
    return np.concatenate([np.zeros((len(lines), 1)), np.cumsum(steps, axis=1)], axis=1)


def _replaced(arc: FloatArray, clustering: Clustering) -> int:
    """Return how many layers are replaced, given the lengths along the median line."""
    whole = len(arc) - 1
    if clustering.layers is not None:
        return min(clustering.layers or whole, whole)
    new = clustering.first + arc[1:-1] * (clustering.growth - 1.0)
    met = np.flatnonzero(new >= np.diff(arc)[1:])
    return int(met[0]) + 1 if met.size else whole


def _intervals(length: float, clustering: Clustering) -> int:
    """Return how many intervals lead along the median line."""
    g = clustering.growth
    return max(1, ceil(log(1.0 + length * (g - 1.0) / clustering.first) / log(g) - 1e-9))


def _heights(first: FloatArray, length: FloatArray, intervals: int) -> FloatArray:
    """Return the heights of the new points above the start of their lines, ``(n, intervals + 1)``."""
    factor = growth_factors(first, length, intervals)
    steps = factor[:, None] ** np.arange(intervals)
    heights = np.concatenate([np.zeros((len(first), 1)), np.cumsum(steps, axis=1)], axis=1)
    return heights * (length / heights[:, -1])[:, None]


def _on_lines(lines: FloatArray, arc: FloatArray, heights: FloatArray) -> FloatArray:
    """Return the places at heights ``(n, m)`` along cubic lines through given points; the last height is a point."""
    slopes = _slopes(lines, arc)
    places = np.empty((*heights.shape, lines.shape[2]))
    for i in range(len(lines)):
        piece = np.clip(np.searchsorted(arc[i], heights[i], side="right") - 1, 0, arc.shape[1] - 2)
        h = arc[i, piece + 1] - arc[i, piece]
        t = ((heights[i] - arc[i, piece]) / h)[:, None]
        a, b, h = lines[i, piece], lines[i, piece + 1], h[:, None]
        da, db = h * slopes[i, piece], h * slopes[i, piece + 1]
        places[i] = (
            (1.0 + 2.0 * t) * (1.0 - t) ** 2 * a + t * (1.0 - t) ** 2 * da
            + t * t * (3.0 - 2.0 * t) * b + t * t * (t - 1.0) * db
        )  # fmt: skip
    return places


def _slopes(lines: FloatArray, arc: FloatArray) -> FloatArray:
    """Return unit vectors along lines at their points: derivatives of parabolas through three of them."""
    h = np.diff(arc, axis=1)[..., None]
    chords = np.diff(lines, axis=1) / h
    if lines.shape[1] == 2:
        return np.concatenate([chords, chords], axis=1)
    inner = (h[:, 1:] * chords[:, :-1] + h[:, :-1] * chords[:, 1:]) / (h[:, 1:] + h[:, :-1])
    slopes = np.concatenate([2.0 * chords[:, :1] - inner[:, :1], inner, 2.0 * chords[:, -1:] - inner[:, -1:]], axis=1)
    return slopes / np.linalg.norm(slopes, axis=2, keepdims=True)


# ------------------------------------------------------------------------------------------------------- cells


class _Replaced:
    """A mesh with other points on the lines of its layers: ``places`` ``(lines, intervals + 1, d)``."""

    def __init__(self, mesh: MeshData, layers: Layers, places: FloatArray) -> None:
        self.old, self.layers = mesh, layers
        self.intervals = places.shape[1] - 1
        gone = np.zeros(mesh.n_points, dtype=bool)
        gone[layers.lines[:, 1:-1]] = True
        self.number = np.cumsum(~gone) - 1
        inner = places[:, 1:-1].reshape(-1, mesh.dimension)
        self.points = np.concatenate([mesh.points[~gone], inner])
        new = np.arange(len(inner)).reshape(len(places), -1) + int((~gone).sum())
        ends = self.number[layers.lines[:, [0, -1]]]
        self.lines = np.concatenate([ends[:, :1], new, ends[:, 1:]], axis=1)
        tails, heads, layer = layers.edges
        keys = pair_keys(np.stack([tails, heads], axis=1), mesh.n_points)
        order = np.argsort(keys)
        self.keys, self.layer, self.upward = keys[order], layer[order], (tails < heads)[order]
        starts = layers.lines[:, 0] * mesh.n_points + layers.lines[:, 1]
        self.starts = np.sort(starts)
        self.line = np.argsort(starts)

    def mesh(self) -> MeshData:
        """Return the new mesh."""
        cells: dict[str, list[IntArray]] = {kind: [] for kind in self.old.cells}
        for column in self.layers.columns:
            cells[column.kind].append(self._stacked(column.nodes, column.low, column.high))
        for kind, block in self.old.cells.items():
            cells[kind].append(self._kept(block[self.layers.members[kind] < 0]))
        patches = {name: self._patch(patch) for name, patch in self.old.patches.items()}
        source = MeshSource(f"{self.old.source.path} (clustered)")
        return MeshData(self.points, {kind: np.concatenate(parts) for kind, parts in cells.items()}, patches, source)

    def _kept(self, nodes: npt.NDArray[np.integer]) -> IntArray:
        return self.number[nodes].astype(np.int32)

    def _lines_of(self, low: Index, high: Index) -> Index:
        """Return the lines that begin with edges from nodes to nodes."""
        return self.line[np.searchsorted(self.starts, low * self.old.n_points + high)]

    def _patch(self, patch: PatchFaces) -> PatchFaces:
        """Return a patch: faces at the side of layers are replaced, the others stay."""
        blocks: dict[str, IntArray] = {}
        for kind, block in patch.blocks.items():
            faces = block.astype(np.int64)
            parts: list[IntArray] = []
            kept = np.ones(len(faces), dtype=bool)
            for low, high in _FACES.get(kind, ()):
                layer, upward = self._layer(faces[:, low[0]], faces[:, high[0]])
                kept &= layer < 0
                for turned in (False, True):
                    first = faces[(layer == 0) & (upward != turned)]
                    parts.append(self._stacked(first, *((high, low) if turned else (low, high))))
            blocks[kind] = np.concatenate([*parts, self._kept(faces[kept])])
        return PatchFaces(blocks)

    def _layer(self, one: Index, other: Index) -> tuple[Index, npt.NDArray[np.bool_]]:
        """Return the layer that edges lead through, -1 for none, and whether upward."""
        keys = pair_keys(np.stack([one, other], axis=1), self.old.n_points)
        at = places_of(keys, self.keys)
        return np.where(at < 0, -1, self.layer[at]), self.upward[at] == (one < other)

    def _stacked(self, first: Index, low: Index | list[int], high: Index | list[int]) -> IntArray:
        """Return the cells above those of the first layer, or the faces at their side, one column after the other."""
        nodes = self.lines[self._lines_of(first[:, low], first[:, high])]
        out = np.empty((len(first), self.intervals, first.shape[1]), dtype=np.int32)
        out[:, :, low], out[:, :, high] = nodes[:, :, :-1].swapaxes(1, 2), nodes[:, :, 1:].swapaxes(1, 2)
        return out.reshape(-1, first.shape[1])


_FACES = {"line": (([0], [1]),), "quad": (([0, 3], [1, 2]), ([0, 1], [3, 2]))}
"""Nodes of faces that may be the side of a layer, below and above, either way."""
