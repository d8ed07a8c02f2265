"""Symmetry-preserving operators of collocated finite volumes, as sparse matrices.

From four matrices between cells, elements and faces (`fluxloom.fv.control_volumes`) follow all others:

- ``M_s`` (cells x faces), the sum of outward fluxes: ``+A`` where a face leaves a cell, ``-A`` where it enters;
- ``G_s`` (faces x elements), the derivative along the normal, ``(p_second - p_first) / delta``;
- ``P_s`` (faces x elements), the mean of both sides with equal weights on every mesh, at the boundary the value there;
- ``Gamma_k = n_k P_s``, the component along the normal of a vector, direction by direction.

Equal weights make the convection of a divergence-free field skew-symmetric, and ``M_k = M_s Gamma_k`` the negative
transpose of the gradient: convection and pressure neither create nor destroy kinetic energy.

References
----------
R. W. C. P. Verstappen, A. E. P. Veldman: *Symmetry-preserving discretization of turbulent flow*. J. Comput. Phys.
187, 2003. F. X. Trias, O. Lehmkuhl, A. Oliva, C. D. Perez-Segarra, R. W. C. P. Verstappen: *Symmetry-preserving
discretization of Navier-Stokes equations on collocated unstructured grids*. J. Comput. Phys. 258, 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array, diags_array

from fluxloom.fv.control_volumes import ControlVolumes

__all__ = ["Operators"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Operators:
    """The operators on some control volumes; each is assembled at its first use.

    Rows of cells alone; columns of cells and boundary elements. `pattern` is the common pattern of convection,
    diffusion and gradient, whose entries are refreshed by products with `convection_map` and `diffusion_map`.
    """

    volumes: ControlVolumes

    # ------------------------------------------------------------------------------------- faces
    @cached_property
    def divergence(self) -> csr_array:
        """``M_s``, ``(cells, faces)``: the flux out of each cell of a velocity along the normals."""
        cv = self.volumes
        faces, area = np.arange(len(cv.faces)), cv.area
        inner = slice(0, cv.interior)
        row = np.concatenate([cv.faces[:, 0], cv.faces[inner, 1]])
        column = np.concatenate([faces, faces[inner]])
        return _csr(row, column, np.concatenate([area, -area[inner]]), (cv.cells, faces.size))

    @cached_property
    def normal_gradient(self) -> csr_array:
        """``G_s``, ``(faces, elements)``."""
        return self._two_sided(-1.0 / self.volumes.spacing, 1.0 / self.volumes.spacing)

    @cached_property
    def mean(self) -> csr_array:
        """``P_s``, ``(faces, elements)``: the value at a face."""
        cv = self.volumes
        inner = np.arange(len(cv.faces)) < cv.interior
        return self._two_sided(np.where(inner, 0.5, 0.0), np.where(inner, 0.5, 1.0))

    def normal_component(self, k: int) -> csr_array:
        """Return ``Gamma_k``, ``(faces, elements)``."""
        return csr_array(diags_array(self.volumes.normals[:, k]) @ self.mean)

    def _two_sided(self, first: Array, second: Array) -> csr_array:
        cv = self.volumes
        face = np.arange(len(cv.faces))
        values = np.concatenate([first, second])
        return _csr(np.tile(face, 2), cv.faces.T.ravel(), values, (face.size, cv.elements))

    # ------------------------------------------------------------------------------------- cells
    @cached_property
    def laplacian(self) -> csr_array:
        """``L = M_s G_s``, ``(cells, elements)``: ``sum A (p_j - p_i) / delta``, not divided by the volume."""
        return csr_array(self.divergence @ self.normal_gradient)

    def cell_divergence(self, k: int) -> csr_array:
        """Return ``M_k = M_s Gamma_k``, ``(cells, elements)``; the divergence is the sum over ``k``."""
        return self._cell_divergences[k]

    @cached_property
    def _cell_divergences(self) -> tuple[csr_array, ...]:
        return tuple(csr_array(self.divergence @ self.normal_component(k)) for k in range(self.volumes.dimension))

    def gradient(self, k: int) -> csr_array:
        """Return ``G_k = M_k / Omega``, ``(cells, elements)``: the derivative of a scalar along ``k``.

        Gauss's theorem with the means at the faces. Where the boundary value is that of the cell behind (pressure at
        a wall) it is ``-M_k^T / Omega`` of velocities that vanish there.
        """
        return csr_array(diags_array(1.0 / self.volumes.volumes) @ self.cell_divergence(k))

    # ------------------------------------------------------------------------- entries that change
    @cached_property
    def pattern(self) -> tuple[Index, Index]:
        """Offsets ``(cells + 1,)`` and columns: each cell and the elements across its faces, ascending.

        Two faces between the same two elements share an entry.
        """
        keys = self._keys
        row, column = keys // self.volumes.elements, keys % self.volumes.elements
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=self.volumes.cells))])
        return offsets, column

    @cached_property
    def _keys(self) -> Index:
        cv = self.volumes
        own = np.arange(cv.cells)
        first, second = cv.faces.T
        inner = slice(0, cv.interior)
        row = np.concatenate([own, first, second[inner]])
        column = np.concatenate([own, second, first[inner]])
        return np.unique(row * cv.elements + column)

    def _entry(self, row: Index, column: Index) -> Index:
        return np.searchsorted(self._keys, row * self.volumes.elements + column)

    @cached_property
    def convection_map(self) -> csr_array:
        """``E_C``, ``(entries, faces)``: ``C(u_s) = E_C u_s``, ``[C u]_i = sum (u_i + u_j) / 2 A u_s`` outward.

        Beyond a boundary face lies its value: ``A u_s`` at the entry of the boundary element, nothing at the cell's.
        """
        half = 0.5 * self.volumes.area
        inner = np.arange(half.size) < self.volumes.interior
        return self._face_map(np.where(inner, half, 0.0), np.where(inner, half, 2.0 * half), -1.0)

    @cached_property
    def diffusion_map(self) -> csr_array:
        """``E_D``, ``(entries, faces)``: ``D(nu_s) = E_D nu_s``, ``[D u]_i = -sum nu A (u_j - u_i) / delta``."""
        weight = self.volumes.area / self.volumes.spacing
        return self._face_map(weight, -weight, 1.0)

    def _face_map(self, own: Array, other: Array, mirror: float) -> csr_array:
        """Return what a face adds to a cell's own entry and to the other; ``mirror``: seen from the other cell."""
        cv = self.volumes
        face = np.arange(len(cv.faces))
        first, second = cv.faces.T
        inner = slice(0, cv.interior)
        a, b = first[inner], second[inner]
        ends = ((first, first), (first, second), (b, b), (b, a))
        entry = np.concatenate([self._entry(row, column) for row, column in ends])
        column = np.concatenate([face, face, face[inner], face[inner]])
        values = np.concatenate([own, other, mirror * own[inner], mirror * other[inner]])
        found = _csr(entry, column, values, (self._keys.size, face.size))
        found.eliminate_zeros()
        return found

    def from_entries(self, values: Array) -> csr_array:
        """Return the matrix with some values on the entries of `pattern`, ``(cells, elements)``."""
        offsets, columns = self.pattern
        return csr_array((values, columns, offsets), shape=(self.volumes.cells, self.volumes.elements))


def _csr(row: Index, column: Index, values: Array, shape: tuple[int, int]) -> csr_array:
    return csr_array(coo_array((values, (row, column)), shape=shape))
