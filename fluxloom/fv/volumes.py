"""Cells and boundary elements, and the faces between two of them: what finite-volume operators are assembled from.

A boundary face is an element of its own behind the cells, without volume, at the centre of the face: every face leads
from one element to another, and a boundary value is a value like any other. Faces of two periodic patches become
one interior face. `fluxloom.fv.control_volumes` makes them from a mesh.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fluxloom.comm.base import Comm
from fluxloom.dsl.parts import Part
from fluxloom.mesh.geometry import TENSOR

__all__ = ["ControlVolumes", "SharedVolumes", "Turned", "Wrapped", "warps_of"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_AWAY = 0.5
"""How far a face may leave its plane, as a part of the distance of its elements, and be all that it is."""


@dataclass(frozen=True, eq=False)
class SharedVolumes:
    """Which control volumes this rank has; see `fluxloom.fv.control_volumes`. On one rank these are all, in order.

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
    """Boundary elements that are the images of cells beyond the sides of a sector; see `fluxloom.fv.sectors`.

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
        Returns the second moments of the faces, ``(faces, d, d)``, see `fluxloom.mesh.geometry.face_moments`; None:
        they are not known.
    warps
        Returns which faces are warped, and what their triangles have beside the mean normal, ``(m, 28)``, see
        `fluxloom.mesh.geometry`; None: no face is, or it is not known.
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
        """Unit normals, ``(faces, d)``."""
        return self.areas / self.area[:, None]


def warps_of(volumes: ControlVolumes) -> tuple[Index, Array]:
    """Return which faces are warped, and what their triangles have, ``(m, 27)``, less of it where cells are thin.

    Where a face leaves its plane by half the distance of its elements along the normal, or more, what is linear in them
    says nothing of its corners, as in layers of thin cells on a twisted wall: there it fades, to nothing at the whole.
    """
    if volumes.warps is None:
        return np.empty(0, np.int64), np.empty((0, TENSOR))
    rows, found = volumes.warps()
    spacing = volumes.spacing[rows] * np.where(rows < volumes.interior, 1.0, 2.0)
    share = np.clip(2.0 - found[:, TENSOR] / (_AWAY * spacing), 0.0, 1.0)
    return rows, found[:, :TENSOR] * share[:, None]
