"""Values of one mesh at places of another: where places are among cells, and what is there, linearly or bounded.

A place that is that of a value, the centre of a cell or a node, has just this value. Any other has that of the linear
function of the cell it is in,

    q(x) = q_c + g_c . (x - x_c),

with the gradient ``g_c`` of least squares: of the cells across the faces, where these are few those behind them too, or
of the nodes of the cell (on simplices this is linear interpolation). Bounded, it is not beyond the least and the
largest value that the gradient was found of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray, MeshData, Ragged
from fluxloom.mesh.geometry.connectivity import Connectivity, connectivity
from fluxloom.mesh.geometry.metrics import cell_geometry, extents, face_geometry

__all__ = ["CellSearch", "Transfer"]

Index = npt.NDArray[np.int64]

_INSIDE = 1e-9
"""Of the size of a cell, how far beyond a face a place still is in the cell."""
_SAME = 1e-6
"""Of the distance of the next one, how near to the place of a value a place is this one."""
_RIM = 0.25
"""Of the longest side of a cell at the boundary, how far beyond it a place is still covered: walls that are curved are
divided in other ways."""
_NEAREST = 12
"""Cells that are looked at where the way through the faces ends at the boundary."""


class CellSearch:
    """Finds the cells that places are in: from the nearest centre on, through the face that is most in the way.

    Parameters
    ----------
    mesh
        Of any cells; they are convex, or nearly so.

    Raises
    ------
    MeshError
        If coordinates are too large.

    Attributes
    ----------
    centres, volumes
        Of the cells, ``(cells, d)`` and ``(cells,)``.
    """

    def __init__(self, mesh: MeshData) -> None:
        self.mesh = mesh
        volumes, self.centres = cell_geometry(mesh)
        if not (np.isfinite(volumes).all() and np.isfinite(self.centres).all()):
            raise MeshError(f"{mesh.source.path}: coordinates are so large that cells have no volume; mend the file")
        self.volumes = np.abs(volumes)
        self.links: Connectivity = connectivity(mesh)
        inner, outer = (face_geometry(mesh.points, faces)
                        for faces in (self.links.interior_nodes, self.links.boundary_nodes))  # fmt: skip
        normals, self._faces = (np.concatenate(pair) for pair in zip(inner, outer, strict=True))
        size = np.linalg.norm(normals, axis=1)
        self._normals = normals / np.where(size > 0.0, size, 1.0)[:, None]
        edge = self.links.boundary_cells[:, None]
        self._behind = np.concatenate([self.links.interior_cells, np.hstack([edge, np.full_like(edge, -1)])])

    @cached_property
    def sizes(self) -> FloatArray:
        """The longest side of the bounding box of each cell."""
        return extents(self.mesh)

    def find(self, places: FloatArray) -> tuple[Index, FloatArray]:
        """Return the cell of each place ``(n, d)``, and how far beyond its faces it is: 0 inside, else a length.

        A place outside of the mesh gets the cell near it that it is least far out of.
        """
        from scipy.spatial import KDTree

        tree = KDTree(self.centres)
        cells = np.asarray(tree.query(places)[1], dtype=np.int64)
        best, least = cells.copy(), np.full(len(places), np.inf)
        active = np.arange(len(places))
        for _ in range(self._longest_way()):
            if not active.size:
                break
            beyond, following = self._beyond(cells[active], places[active])
            better = beyond < least[active]
            best[active[better]], least[active[better]] = cells[active[better]], beyond[better]
            goes_on = (beyond > _INSIDE * self.sizes[cells[active]]) & (following >= 0)
            active = active[goes_on]
            cells[active] = following[goes_on]
        out = np.flatnonzero(least > _INSIDE * self.sizes[best])
        if out.size:
            others = np.asarray(tree.query(places[out], k=min(_NEAREST, len(self.centres)))[1]).reshape(out.size, -1)
            for others_of in others.T.astype(np.int64):
                beyond, _ = self._beyond(others_of, places[out])
                better = beyond < least[out]
                best[out[better]], least[out[better]] = others_of[better], beyond[better]
        return best, np.where(least > _INSIDE * self.sizes[best], least, 0.0)

    def _longest_way(self) -> int:
        """Return how many faces a way may lead through: layers at walls are many cells thick."""
        return 100 + 4 * int(len(self.centres) ** (1.0 / self.mesh.dimension))

    def _beyond(self, cells: Index, places: FloatArray) -> tuple[FloatArray, Index]:
        """Return how far places are beyond the faces of a cell each, and the cell across the inner one most in the way.

        The latter is -1 where none is.
        """
        faces = self.links.cell_faces.take(cells)
        of, face = np.repeat(np.arange(cells.size), faces.counts), faces.indices
        owner = cells[of]
        outward = np.einsum("ij,ij->i", self._normals[face], self._faces[face] - self.centres[owner])
        away = np.einsum("ij,ij->i", self._normals[face], places[of] - self._faces[face]) * np.sign(outward)
        pair = self._behind[face]
        other = np.where(pair[:, 0] == owner, pair[:, 1], pair[:, 0]).astype(np.int64)
        start = faces.offsets[:-1]
        inner = np.where(other >= 0, away, -np.inf)
        most = np.maximum.reduceat(inner, start)
        last = np.full(cells.size, -1, dtype=np.int64)
        at = np.flatnonzero((inner == most[of]) & (inner > 0.0))
        last[of[at]] = other[at]
        return np.maximum(np.maximum.reduceat(away, start), 0.0), last


@dataclass(frozen=True, eq=False)
class _Around:
    """What the linear function of each of some cells is found of: rows of values, and their weights in its gradient.

    Attributes
    ----------
    rows
        Numbers of the values, a row a cell.
    weights : (entries, d)
        ``g = sum w_j (q_j - q_c)``.
    """

    rows: Ragged
    weights: FloatArray


class Transfer:
    """The way from values on a mesh to other places.

    Parameters
    ----------
    search
        The cells of the mesh.
    places
        ``(n, d)``.
    nodal
        Whether values are at the nodes of the mesh, or in its cells.
    outside
        ``"nearest"``: places that the mesh does not cover get the nearest value; ``""``: they are an error.

    Attributes
    ----------
    same : (n,)
        Which places are those of values.
    all_same
        Whether all are, and each value is taken once: the mesh is the same.
    outside : (n,)
        Which places the mesh does not cover.

    Raises
    ------
    MeshError
        If the mesh does not cover the places: says how many, and where.
    """

    def __init__(self, search: CellSearch, places: FloatArray, *, nodal: bool = False, outside: str = "") -> None:
        from scipy.spatial import KDTree

        mesh = search.mesh
        if places.ndim != 2 or places.shape[1] != mesh.dimension:
            raise MeshError(f"{mesh.source.path}: has {mesh.dimension} dimensions, the mesh of this run "
                            f"{places.shape[-1]}")  # fmt: skip
        self._search, self._nodal, self._places = search, nodal, places
        at = mesh.points if nodal else search.centres
        if nodal and not (used := mesh.used_points()).all():
            at = np.where(used[:, None], at, np.inf)
        known = np.flatnonzero(np.isfinite(at[:, 0]))
        near, number = (np.asarray(found) for found in KDTree(at[known]).query(places, k=2))
        self._nearest = known[np.minimum(number[:, 0], known.size - 1)]
        self.same = near[:, 0] <= _SAME * np.where(np.isfinite(near[:, 1]), near[:, 1], 0.0)
        self.all_same = bool(self.same.all()) and np.array_equal(np.sort(self._nearest), known)
        self.outside = np.zeros(len(places), dtype=bool)
        self._moved = np.flatnonzero(~self.same)
        self._cells = np.zeros(0, dtype=np.int64)
        if self._moved.size:
            self._cells, beyond = search.find(places[self._moved])
            lost = beyond > _RIM * search.sizes[self._cells]
            self.outside[self._moved] = lost
            self._moved, self._cells = self._moved[~lost], self._cells[~lost]
        if self.outside.any() and outside != "nearest":
            raise MeshError(self._uncovered())

    def _uncovered(self) -> str:
        """Return in words which places are not covered."""
        lost = self._places[self.outside]
        low, high = lost.min(axis=0), lost.max(axis=0)
        box = " x ".join(f"[{a:.6g}, {b:.6g}]" for a, b in zip(low, high, strict=True))
        return (
            f"{self._search.mesh.source.path}: does not cover {len(lost):,} of the {len(self._places):,} "
            f"{'points' if self._nodal else 'cells'} of this mesh, in {box}, the first at "
            f"({', '.join(f'{x:.6g}' for x in lost[0])})"
        )

    def __call__(self, values: FloatArray, *, bounded: bool = False) -> FloatArray:
        """Return values ``(n,)`` at the places, of those of the mesh."""
        found, moved = np.asarray(values, dtype=np.float64)[self._nearest], self._moved
        if moved.size:
            found[moved] = self._linear(np.asarray(values, dtype=np.float64))
            if bounded:
                low, high = self.bounds(values)
                found[moved] = np.clip(found[moved], low[moved], high[moved])
        return found

    def bounds(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest of the values that the one at each place is found of."""
        given = np.asarray(values, dtype=np.float64)
        low = given[self._nearest]
        high = low.copy()
        if self._moved.size:
            (cells, which), rows = self._distinct, self._around.rows
            of, entries = np.repeat(np.arange(cells.size), rows.counts), given[rows.indices]
            least, most = (np.full(cells.size, end) for end in (np.inf, -np.inf))
            if not self._nodal:
                least, most = given[cells], given[cells]
            np.minimum.at(least, of, entries)
            np.maximum.at(most, of, entries)
            low[self._moved], high[self._moved] = least[which], most[which]
        return low, high

    @cached_property
    def _distinct(self) -> tuple[Index, Index]:
        """Cells that places are in, once each, and which of them each place is in."""
        cells, which = np.unique(self._cells, return_inverse=True)
        return cells.astype(np.int64), which.reshape(-1)

    @cached_property
    def _around(self) -> _Around:
        search, (cells, _) = self._search, self._distinct
        links, d = search.links, search.mesh.dimension
        rows = links.cell_nodes.take(cells) if self._nodal else _neighbours(links, cells, d)
        of = np.repeat(np.arange(cells.size), rows.counts)
        at = search.mesh.points if self._nodal else search.centres
        away = at[rows.indices] - self._middles[of]
        square = np.einsum("ij,ij->i", away, away)
        weight = np.ones(square.shape) if self._nodal else 1.0 / square
        moments = np.zeros((cells.size, d, d))
        np.add.at(moments, of, weight[:, None, None] * away[:, :, None] * away[:, None, :])
        inverse = np.linalg.pinv(moments, rcond=1e-10, hermitian=True)
        return _Around(rows, np.einsum("ijk,ik->ij", inverse[of], weight[:, None] * away))

    @cached_property
    def _middles(self) -> FloatArray:
        """Where the linear function of each distinct cell has its own value."""
        cells, _ = self._distinct
        if not self._nodal:
            return self._search.centres[cells]
        rows = self._search.links.cell_nodes.take(cells)
        return np.add.reduceat(self._search.mesh.points[rows.indices], rows.offsets[:-1]) / rows.counts[:, None]

    def _linear(self, values: FloatArray) -> FloatArray:
        (cells, which), around = self._distinct, self._around
        rows, start = around.rows, around.rows.offsets[:-1]
        of, entries = np.repeat(np.arange(cells.size), rows.counts), values[rows.indices]
        own = np.add.reduceat(entries, start) / rows.counts if self._nodal else values[cells]
        slope = np.zeros((cells.size, around.weights.shape[1]))
        np.add.at(slope, of, around.weights * (entries - own[of])[:, None])
        away = self._places[self._moved] - self._middles[which]
        return own[which] + np.einsum("ij,ij->i", slope[which], away)


def _neighbours(links: Connectivity, cells: Index, d: int) -> Ragged:
    """Return the cells across the faces of some, and where these are no more than ``d`` those across theirs too."""
    near = links.cell_cells.take(cells)
    few = np.flatnonzero(near.counts <= d)
    if not few.size:
        return near
    of, first = np.repeat(np.arange(cells.size), near.counts), near.indices.astype(np.int64)
    some = near.take(few)
    behind = links.cell_cells.take(some.indices)
    whose = np.repeat(np.repeat(few, some.counts), behind.counts)
    pairs = np.stack([np.concatenate([of, whose]), np.concatenate([first, behind.indices])], axis=1)
    pairs = np.unique(pairs[pairs[:, 1] != cells[pairs[:, 0]]], axis=0)
    return Ragged.from_counts(np.bincount(pairs[:, 0], minlength=cells.size), pairs[:, 1].astype(np.int32))
