"""The points of a patch of a mesh of simplices, and the vectors of area that belong to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["PatchPoints"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PatchPoints:
    r"""A patch as points see it.

    Attributes
    ----------
    faces : (m, d) int32
        Points of its faces, turned outward.
    points : (k,) int32
        Its points, ascending.
    areas : (k, d)
        :math:`\int N_I n \, dA` over the patch, ``n`` outward; m^(d-1). Their sum is that of the areas of the faces.
    extents : (k,)
        :math:`\int N_I \, dA` over the patch; m^(d-1).
    """

    faces: Index
    points: Index
    areas: Array
    extents: Array

    @classmethod
    def of(cls, faces: Index, places: Array) -> PatchPoints:
        """Return the patch of some faces; ``places`` are the coordinates of all points.

        ``int N_I n dA = sum_f A_f n_f / d``, ``int N_I dA = sum_f A_f / d`` over the faces ``f`` of a point.
        """
        corners, d = places[faces], places.shape[1]
        side = corners[:, 1] - corners[:, 0]
        if d == 2:
            area = np.stack([side[:, 1], -side[:, 0]], axis=1)
        else:
            area = 0.5 * np.cross(side, corners[:, 2] - corners[:, 0])
        points, place = np.unique(faces, return_inverse=True)
        shares = np.repeat(area / d, d, axis=0)
        areas, extents = np.zeros((points.size, d)), np.zeros(points.size)
        np.add.at(areas, place.reshape(-1), shares)
        np.add.at(extents, place.reshape(-1), np.linalg.norm(shares, axis=1))
        return cls(faces, points.astype(np.int32), areas, extents)

    @property
    def size(self) -> Array:
        """Area ``|int N_I n dA|`` that belongs to each point, ``(k,)``.

        Less than that of its faces where these are at an angle.
        """
        return np.linalg.norm(self.areas, axis=1)
