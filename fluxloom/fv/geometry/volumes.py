"""Cells and boundary elements, and the faces between two of them: what finite-volume operators are assembled from.

A boundary face is an element of its own behind the cells, without volume, at the centre of the face: every face leads
from one element to another, and a boundary value is a value like any other. Faces of two periodic patches become
one interior face. `fluxloom.fv.geometry.control_volumes` makes them from a mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.dsl.declare.parts import Part
from fluxloom.graph.inverse import inverse_ragged
from fluxloom.mesh.geometry.metrics import TENSOR

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["ControlVolumes", "Family", "SharedVolumes", "Sides", "Turned", "Wrapped", "spread", "warps_of"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_AWAY = 0.5
"""How far a face may leave its plane, as a part of the distance of its elements, and be all that it is."""


@dataclass(frozen=True, eq=False)
class SharedVolumes:
    """Which control volumes this rank has; see `fluxloom.fv.geometry.control_volumes`. On one rank: all.

    Attributes
    ----------
    comm
        The ranks.
    cells, elements, faces
        This rank's parts. Cells have the numbers of `ControlVolumes`.
    element_order, face_order
        Number in `ControlVolumes` of each element and face that is stored here, in the order of the part. Elements of
        other ranks that only slopes look at have numbers behind those of `ControlVolumes`, and no geometry.
    """

    comm: Comm
    cells: Part
    elements: Part
    faces: Part
    element_order: Index
    face_order: Index


@dataclass(frozen=True, eq=False)
class Wrapped:
    """Faces across which the second element is the image of a periodic cell.

    Attributes
    ----------
    faces : (n,)
        Their numbers.
    shift : (n, d)
        From the cell to its image.
    """

    faces: Index
    shift: Array

    @classmethod
    def of(cls, centres: Array, faces: Index, ways: Array, some: range) -> Wrapped:
        """Return those of some faces where the ways ``(faces, d)`` to the second element do not lead to its centre."""
        way, pair = ways[some.start : some.stop], faces[some.start : some.stop]
        shift = way - (centres[pair[:, 1]] - centres[pair[:, 0]])
        found = np.flatnonzero(np.abs(shift).max(axis=1, initial=0.0) > 0.5 * np.abs(way).max(axis=1, initial=0.0))
        return cls(some.start + found, shift[found])


@dataclass(frozen=True, eq=False)
class Turned:
    """Boundary elements that are the images of cells beyond the sides of a sector; see `fluxloom.fv.geometry.sectors`.

    Attributes
    ----------
    elements, partners : (n,)
        Their numbers, and the cells whose images they are.
    which : (n,)
        Number of the rotation.
    rotations : (m, d, d)
        What turns the vectors of a partner into those of its image.
    """

    elements: Index
    partners: Index
    which: Index
    rotations: Array


@dataclass(frozen=True, eq=False)
class ControlVolumes:
    """The geometry of collocated finite volumes in ``d`` dimensions.

    Attributes
    ----------
    volumes : (cells,)
        Of the cells.
    centres : (elements, d)
        Centroids of the cells, then centres of the boundary faces.
    faces : (faces, 2)
        First and second element of each face: two cells, or a cell and a boundary element. The faces of boundary
        elements are the last ones, in the order of the elements.
    areas : (faces, d)
        Area vectors, from the first element to the second.
    spacing : (faces,)
        ``|n . v|``: distance of the two elements along the normal ``n``; ``v`` leads to the image of a periodic cell.
    arms : (faces, d)
        From the centroid of the first element to the centroid of the face.
    patches
        Name to the boundary elements of a patch; periodic patches have none.
    wrapped
        Faces between periodic cells.
    shared
        What this rank has: its own cells, then those across a face of them or with an image there, in ascending order
        of their global numbers each, boundary elements and faces of its cells.
    turned
        Boundary elements that are images of cells, at the centroids of these, in no patch; None: there are none.
    moments
        Returns the second moments of the faces, ``(faces, d, d)``, see `fluxloom.mesh.geometry.metrics.face_moments`;
        None: they are not known.
    warps
        Returns which faces are warped, and what their triangles have beside the mean normal, ``(m, 28)``, see
        `fluxloom.mesh.geometry.metrics`; None: no face is, or it is not known.
    """

    volumes: Array
    centres: Array
    faces: Index
    areas: Array
    spacing: Array
    arms: Array
    patches: Mapping[str, range]
    wrapped: Wrapped
    shared: SharedVolumes
    turned: Turned | None = None
    moments: Callable[[], Array] | None = None
    warps: Callable[[], tuple[Index, Array]] | None = None

    @property
    def outer(self) -> Index:
        """Numbers of the boundary elements that are no images of cells."""
        found = np.arange(self.cells, self.elements)
        return found if self.turned is None else np.setdiff1d(found, self.turned.elements, assume_unique=True)

    @property
    def ways(self) -> Array:
        """From the first to the second element of each face, or its image, ``(faces, d)``."""
        found = self.centres[self.faces[:, 1]] - self.centres[self.faces[:, 0]]
        found[self.wrapped.faces] += self.wrapped.shift
        return found

    @property
    def cells(self) -> int:
        """Number of cells, on several ranks those of the halo too."""
        return self.volumes.size

    @property
    def owned(self) -> int:
        """Number of cells that this rank owns: the first ones."""
        return self.shared.cells.owned

    @property
    def total(self) -> int:
        """Number of cells of all ranks."""
        return self.shared.cells.total

    @property
    def elements(self) -> int:
        """Number of cells and boundary elements."""
        return len(self.centres)

    @property
    def interior(self) -> int:
        """Number of faces between two cells."""
        return len(self.faces) - (self.elements - self.cells)

    @property
    def dimension(self) -> int:
        """Two or three."""
        return self.centres.shape[1]

    @cached_property
    def area(self) -> Array:
        """Area of each face, ``(faces,)``; a length in two dimensions."""
        return np.sqrt(np.einsum("ij,ij->i", self.areas, self.areas))

    @property
    def normals(self) -> Array:
        """Unit normals, ``n = A / |A|``, ``(faces, d)``."""
        return self.areas / self.area[:, None]


def warps_of(volumes: ControlVolumes) -> tuple[Index, Array]:
    """Return which faces are warped, and what their triangles have, ``(m, 27)``, less of it where cells are thin.

    The part ``min(1, max(0, 2 - h / (AWAY delta)))`` is kept, ``h`` how far a face leaves its plane.

    Where a face leaves its plane by half the distance of its elements along the normal, or more, what is linear in them
    says nothing of its corners, as in layers of thin cells on a twisted wall: there it fades, to nothing at the whole.
    """
    if volumes.warps is None:
        return np.empty(0, np.int64), np.empty((0, TENSOR))
    rows, found = volumes.warps()
    spacing = volumes.spacing[rows] * np.where(rows < volumes.interior, 1.0, 2.0)
    share = np.clip(2.0 - found[:, TENSOR] / (_AWAY * spacing), 0.0, 1.0)
    return rows, found[:, :TENSOR] * share[:, None]


Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int32]


class Family(NamedTuple):
    """Matrices with one pattern, in compressed rows: what one pass over a row multiplies.

    ``values`` is ``(entries, m)``, of a single matrix ``(entries,)``.
    """

    offsets: Index
    columns: Numbers
    values: Array

    def matrix(self, columns: int, k: int | None = None) -> csr_array:
        """Return one of them as a SciPy array with so many columns."""
        from scipy.sparse import csr_array

        values = self.values if k is None else np.ascontiguousarray(self.values[:, k])
        return csr_array((values, self.columns, self.offsets), shape=(self.offsets.size - 1, columns))


@dataclass(frozen=True, eq=False)
class Sides:
    """The faces around the owned cells, those of a cell side by side in the order of their numbers.

    A face between a cell and itself, across one layer of periodic cells, is none of its sides: what leaves through it
    enters.

    Attributes
    ----------
    offsets : (owned + 1,)
        Sides of cell ``i`` are ``offsets[i] ... offsets[i + 1] - 1``.
    cell, face, other : (n,)
        Whose side, of which face, and the element across it.
    sign : (n,)
        1 where the normal of the face leads out of the cell, else -1.
    outside : (n,)
        Whether a boundary element is across that is no image of a cell.
    """

    offsets: Index
    cell: Numbers
    face: Numbers
    other: Numbers
    sign: Array
    outside: Mask

    @classmethod
    def of(cls, volumes: ControlVolumes) -> Sides:
        """Return the sides of the owned cells of some control volumes."""
        faces, inner = volumes.faces, volumes.faces[: volumes.interior]
        two = inner[:, 0] != inner[:, 1]  # a cell that is on both sides of a face has neither of them
        rows = np.concatenate([inner[two].reshape(-1), faces[volumes.interior :, 0]])
        signs = np.ones(rows.size)
        signs[1 : 2 * np.count_nonzero(two) : 2] = -1.0
        bounds = np.zeros(len(faces) + 1, dtype=np.int64)
        np.cumsum(np.concatenate([2 * two, np.ones(len(faces) - volumes.interior, dtype=np.int64)]), out=bounds[1:])
        met = inverse_ragged(bounds, np.ascontiguousarray(rows, dtype=np.int32), volumes.cells)
        offsets = met.offsets[: volumes.owned + 1].copy()
        face = met.element[: offsets[-1]].copy()
        sign = signs[met.entry[: offsets[-1]]]
        cell = np.repeat(np.arange(volumes.owned, dtype=np.int32), np.diff(offsets))
        other = faces.sum(axis=1)[face]
        other -= cell
        other = other.astype(np.int32)
        outside = other >= volumes.cells
        if volumes.turned is not None:
            outside &= ~np.isin(other, volumes.turned.elements)
        return cls(offsets, cell, face, other, sign, outside)

    @property
    def cells(self) -> int:
        """Number of owned cells."""
        return self.offsets.size - 1

    def sum(self, values: Array) -> Array:
        """Return the sums over the sides of each cell of values ``(n,)`` or ``(n, m)``."""
        if values.ndim == 1:
            return np.bincount(self.cell, values, minlength=self.cells).astype(np.float64)
        return np.stack([self.sum(values[:, k]) for k in range(values.shape[1])], axis=1)

    def rows(self, values: Array, own: Array, chosen: Mask | None = None, kept: Mask | None = None) -> Family:
        """Return rows of cells: an entry of the cell itself, then one of each element across a side.

        Parameters
        ----------
        values, own
            Of the sides, ``(n, ...)``, and of the cells themselves, ``(cells, ...)``.
        chosen : (cells,)
            Which cells have an entry of their own; all by default.
        kept : (n,)
            Which sides have one; all by default.
        """
        cell, other = self.cell, self.other
        if kept is not None:
            cell, other, values = cell[kept], other[kept], values[kept]
        first = np.flatnonzero(np.ones(self.cells, dtype=bool) if chosen is None else chosen)
        starts = self.offsets[:-1] if kept is None else np.searchsorted(cell, np.arange(self.cells))
        ends = np.append(starts, cell.size)
        if not first.size:
            return Family(ends, other, values)
        added = np.zeros(self.cells + 1, dtype=np.int64)
        added[first + 1] = 1
        places = starts[first]
        columns, entries = np.insert(other, places, first), np.insert(values, places, own[first], axis=0)
        return Family(ends + np.cumsum(added), columns, entries)


def spread(rows: Family, pattern: Family) -> Family:
    """Return rows with the entries of another pattern: those that are in both keep their values, others have 0."""
    columns = max(int(found.columns.max(initial=0)) for found in (rows, pattern)) + 1

    def keys(found: Family) -> Index:
        row = np.repeat(np.arange(found.offsets.size - 1, dtype=np.int64), np.diff(found.offsets))
        return row * columns + found.columns

    mine, wanted = keys(rows), keys(pattern)
    order = np.argsort(mine, kind="stable")
    place = np.minimum(np.searchsorted(mine, wanted, sorter=order), mine.size - 1)
    values = np.zeros((wanted.size, *rows.values.shape[1:]), dtype=rows.values.dtype)
    both = mine[order[place]] == wanted
    values[both] = rows.values[order[place[both]]]
    return pattern._replace(values=values)
