"""Symmetry-preserving operators of collocated finite volumes, as sparse matrices.

From four matrices between cells, elements and faces (`fluxloom.fv.geometry.control_volumes`) follow all others:

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
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.fv.geometry.volumes import ControlVolumes, Family, Sides

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Operators"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_CLOSED = 1e-12
"""Sum of half the areas of a cell, as a part of their sizes, that is none: a closed cell has no entry of its own."""


@dataclass(frozen=True, eq=False)
class Operators:
    """The operators on some control volumes; each is assembled at its first use.

    Rows of owned cells alone; columns of cells and boundary elements. `pattern` is the common pattern of convection,
    diffusion and gradient, whose entries are refreshed by products with the matrices of `entry_faces`.
    """

    volumes: ControlVolumes

    @cached_property
    def sides(self) -> Sides:
        """The faces around each cell."""
        if self.volumes.turned is not None:
            raise MeshError("patches that are joined by a rotation (mesh.sectors) are of compressible flow alone")
        return Sides.of(self.volumes)

    # ------------------------------------------------------------------------------------- faces
    @property
    def divergence(self) -> csr_array:
        """``M_s``, ``(cells, faces)``: the flux out of each cell of a velocity along the normals."""
        return self.outward().matrix(len(self.volumes.faces), 0)

    def outward(self, mirrors: Mask | None = None) -> Family:
        """Return ``M_s`` and ``|M_s| / delta``, cells by faces; at some boundary elements ``delta`` is to the image."""
        sides, spread = self.sides, self._spread_to_images(mirrors)
        values = np.stack([sides.sign * self.volumes.area[sides.face], spread[sides.face]], axis=1)
        return Family(sides.offsets, sides.face, values)

    def _spread_to_images(self, mirrors: Mask | None) -> Array:
        """Return `spread`, at some boundary elements half of it."""
        if mirrors is None:
            return self.spread
        found, inner = self.spread.copy(), self.volumes.interior
        found[inner:] = np.where(mirrors, 0.5, 1.0) * found[inner:]
        return found

    @property
    def normal_gradient(self) -> csr_array:
        """``G_s``, ``(p_second - p_first) / delta``, ``(faces, elements)``."""
        spread = 1.0 / self.volumes.spacing
        return self.two_sided(-spread, spread).matrix(self.volumes.elements)

    @property
    def mean(self) -> csr_array:
        """``P_s``, ``(q_first + q_second) / 2``, at the boundary the value there, ``(faces, elements)``."""
        return self.two_sided(*self._shares).matrix(self.volumes.elements)

    def normal_components(self) -> Family:
        """Return ``Gamma_k = n_k P_s``, faces by elements."""
        normals = self.volumes.normals
        first, second = self._shares
        return self.two_sided(first[:, None] * normals, second[:, None] * normals)

    @cached_property
    def _shares(self) -> tuple[Array, Array]:
        """Of the values of the first and of the second element in that at a face."""
        inner = np.arange(len(self.volumes.faces)) < self.volumes.interior
        return np.where(inner, 0.5, 0.0), np.where(inner, 0.5, 1.0)

    def two_sided(self, first: Array, second: Array) -> Family:
        """Return rows of faces with values ``(faces, ...)`` for both elements; zeros have no entry."""
        values = np.stack([first, second], axis=1).reshape(-1, *first.shape[1:])
        columns = self.volumes.faces.reshape(-1).astype(np.int32)
        kept = np.asarray(values.any(axis=1) if values.ndim == 2 else values != 0.0)
        offsets = np.concatenate([[0], np.cumsum(kept[0::2].astype(np.int64) + kept[1::2])])
        if kept.all():
            return Family(offsets, columns, values)
        places = np.flatnonzero(kept)
        return Family(offsets, columns.take(places), values.take(places, axis=0))

    # ------------------------------------------------------------------------------------- cells
    @property
    def laplacian(self) -> csr_array:
        """``L = M_s G_s``, ``(cells, elements)``: ``sum A (p_j - p_i) / delta``, not divided by the volume."""
        spread = self.spread[self.sides.face]
        return self.sides.rows(spread, -self.sides.sum(spread)).matrix(self.volumes.elements)

    @cached_property
    def spread(self) -> Array:
        """``A / delta`` of each face."""
        return self.volumes.area / self.volumes.spacing

    @cached_property
    def outward_areas(self) -> Array:
        """Area vectors out of the cell, ``(sides, d)``, times the share of what is across: ``A n / 2`` or ``A n``."""
        share = np.where(self.sides.outside, 1.0, 0.5) * self.sides.sign
        return self.volumes.areas[self.sides.face] * share[:, None]

    @cached_property
    def own_areas(self) -> Array:
        """Sum of half the area vectors to other cells, ``sum A n / 2``, ``(cells, d)``."""
        return self.sides.sum(self.outward_areas * ~self.sides.outside[:, None])

    def open(self, own: Array) -> npt.NDArray[np.bool_]:
        """Return which sums of areas, ``(cells, d)``, are more than round-off: ``max_k |own_k| > CLOSED sum A``."""
        size = self.sides.sum(self.volumes.area[self.sides.face])
        return np.abs(own).max(axis=1) > _CLOSED * size

    def cell_divergences(self) -> Family:
        """Return ``M_k = M_s Gamma_k``, cells by elements; the divergence is the sum over ``k``."""
        return self.sides.rows(self.outward_areas, self.own_areas, self.open(self.own_areas))

    def cell_divergence(self, k: int) -> csr_array:
        """Return ``M_k``, ``(cells, elements)``."""
        return self.cell_divergences().matrix(self.volumes.elements, k)

    def gradients(self) -> Family:
        """Return ``G_k = M_k / Omega``, cells by elements: the derivative of a scalar along ``k``.

        Gauss's theorem with the means at the faces. Where the boundary value is that of the cell behind (pressure at
        a wall) it is ``-M_k^T / Omega`` of velocities that vanish there.
        """
        return self.per_volume(self.cell_divergences())

    def per_volume(self, rows: Family) -> Family:
        """Return rows of cells divided by their volumes, ``Omega^{-1} M``."""
        volume = np.repeat(self.volumes.volumes[: self.sides.cells], np.diff(rows.offsets))
        return rows._replace(values=rows.values / volume[:, None])

    def gradient(self, k: int) -> csr_array:
        """Return ``G_k``, ``(cells, elements)``."""
        return self.gradients().matrix(self.volumes.elements, k)

    def wide_share(self, mirrors: Mask | None = None, known: Mask | None = None) -> Array:
        """Return ``sum A^2 / (4 Omega)`` over ``sum A / delta`` of each cell, ``(cells,)``: a quarter for a cube.

        At boundary elements that are `mirrors` ``delta`` is to the image of the cell. Others than the `known`
        ones do not count in the second.

        The diagonal of ``M Omega^-1 M^T`` over that of ``-L``. Velocities of cells are corrected with the first, those
        of faces with the second; where the first is as large, in flat tetrahedra, pressure feeds oscillations.
        """
        sides, area = self.sides, self.volumes.area[self.sides.face]
        wide = sides.sum(area**2) / (4.0 * self.volumes.volumes[: sides.cells])
        spread = self._spread_to_images(mirrors)
        if known is not None:
            spread = np.where(np.concatenate([np.ones(self.volumes.interior, dtype=bool), known]), spread, 0.0)
        spread = spread[sides.face]
        return wide / np.maximum(sides.sum(spread), np.finfo(np.float64).tiny)

    # ------------------------------------------------------------------------- entries that change
    @property
    def pattern(self) -> tuple[Index, npt.NDArray[np.int32]]:
        """Offsets ``(cells + 1,)`` and columns: each cell, then the elements across its sides.

        Two faces between the same two elements have an entry each.
        """
        sides = self.sides
        found = sides.rows(np.empty((sides.cell.size, 0)), np.empty((sides.cells, 0)))
        return found.offsets, found.columns

    def entry_faces(self) -> Family:
        """Return ``E_C`` and ``E_D``, entries of `pattern` by faces.

        ``C(u_s) = E_C u_s``, ``[C u]_i = sum (u_i + u_j) / 2 A u_s`` outward: beyond a boundary face lies its value,
        ``A u_s`` at the entry of the boundary element, nothing at the cell's. ``D(nu_s) = E_D nu_s``,
        ``[D u]_i = -sum nu A (u_j - u_i) / delta``.
        """
        sides = self.sides
        flux = sides.sign * self.volumes.area[sides.face]
        spread = self.spread[sides.face]
        own = np.stack([np.where(sides.outside, 0.0, 0.5 * flux), spread], axis=1)
        across = np.stack([np.where(sides.outside, flux, 0.5 * flux), -spread], axis=1)
        counts = np.diff(sides.offsets)
        place = sides.offsets[:-1][sides.cell] + np.arange(sides.cell.size)
        values, columns = np.empty((2 * place.size, 2)), np.empty(2 * place.size, dtype=np.int32)
        for where, what in ((place, own), (place + counts[sides.cell], across)):
            values[where], columns[where] = what, sides.face
        lengths = np.ones(place.size + sides.cells, dtype=np.int64)
        lengths[sides.offsets[:-1] + np.arange(sides.cells)] = counts
        return Family(np.concatenate([[0], np.cumsum(lengths)]), columns, values)

    @property
    def convection_map(self) -> csr_array:
        """``E_C``, ``(entries, faces)``."""
        found = self.entry_faces().matrix(len(self.volumes.faces), 0)
        found.eliminate_zeros()
        return found

    @property
    def diffusion_map(self) -> csr_array:
        """``E_D``, ``(entries, faces)``."""
        return self.entry_faces().matrix(len(self.volumes.faces), 1)

    def from_entries(self, values: Array) -> csr_array:
        """Return the matrix with some values on the entries of `pattern`, ``(cells, elements)``."""
        from scipy.sparse import csr_array

        offsets, columns = self.pattern
        return csr_array((values, columns, offsets), shape=(self.sides.cells, self.volumes.elements))
