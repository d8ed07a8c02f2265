"""The matrices of a fractional step, boundary conditions of the pressure built in, as SciPy arrays.

A *family* is several matrices with one pattern, entry by entry ``(n, m)`` numbers: what one pass over a row multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, diags_array

from fluxloom.fv.control_volumes import ControlVolumes
from fluxloom.fv.incompressible import OUTFLOW, PRESCRIBED
from fluxloom.fv.operators import Operators

__all__ = ["Family", "FlowMatrices", "family"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


class Family(NamedTuple):
    """Matrices with one pattern in compressed rows; ``values`` is ``(entries, m)``, of a single one ``(entries,)``."""

    offsets: Index
    columns: Index
    values: Array


def family(matrices: Sequence[csr_array]) -> Family:
    """Return matrices as one pattern, that of all their entries."""
    pattern = csr_array(sum(abs(m) for m in matrices))
    pattern.sort_indices()
    lengths = np.diff(pattern.indptr)
    lines = np.repeat(np.arange(lengths.size), lengths)
    values = np.stack([np.asarray(m.tocsr()[lines, pattern.indices]).ravel() for m in matrices], axis=1)
    offsets, columns = (np.asarray(part, dtype=np.int64) for part in (pattern.indptr, pattern.indices))
    return Family(offsets, columns, values[:, 0] if len(matrices) == 1 else values)


@dataclass(frozen=True, eq=False)
class FlowMatrices:
    """The matrices of a flow.

    Attributes
    ----------
    volumes
        The control volumes.
    kinds : (boundary elements,)
        `PRESCRIBED`, `OUTFLOW` or `SYMMETRY`. The pressure is zero at an outflow, elsewhere that of the cell behind.
    """

    volumes: ControlVolumes
    kinds: npt.NDArray[np.int32]

    @cached_property
    def operators(self) -> Operators:
        """The operators without boundary conditions."""
        return Operators(self.volumes)

    @cached_property
    def owners(self) -> Index:
        """For each element the cell behind it; a cell itself."""
        cv = self.volumes
        return np.concatenate([np.arange(cv.cells), cv.faces[cv.interior :, 0]])

    @cached_property
    def _behind(self) -> csr_array:
        """Pressure of elements from that of cells."""
        cv = self.volumes
        seen = np.concatenate([np.ones(cv.cells), np.where(self.kinds == OUTFLOW, 0.0, 1.0)])
        return csr_array((seen, (np.arange(cv.elements), self.owners)), shape=(cv.elements, cv.cells))

    @property
    def _directions(self) -> range:
        return range(self.volumes.dimension)

    @cached_property
    def poisson(self) -> csr_array:
        """``-L``, symmetric and positive (semi)definite, ``(cells, cells)``."""
        return csr_array(-(self.operators.laplacian @ self._behind))

    def pressure_gradient(self) -> Family:
        """Return ``G_k``, cells by cells."""
        return family([csr_array(self.operators.gradient(k) @ self._behind) for k in self._directions])

    def pressure_slope(self) -> Family:
        """Return ``G_s``, faces by cells."""
        return family([csr_array(self.operators.normal_gradient @ self._behind)])

    def divergence(self) -> Family:
        """Return ``M_k``, cells by elements."""
        return family([self.operators.cell_divergence(k) for k in self._directions])

    def normal_components(self) -> Family:
        """Return ``Gamma_k``, faces by elements."""
        return family([self.operators.normal_component(k) for k in self._directions])

    def velocity_gradient(self) -> Family:
        """Return ``G_k``, cells by elements: boundary values are those of the velocity."""
        return family([self.operators.gradient(k) for k in self._directions])

    def entry_faces(self) -> Family:
        """Return ``E_C`` and ``E_D``, entries of `Operators.pattern` by faces."""
        return family([self.operators.convection_map, self.operators.diffusion_map])

    def outward(self) -> Family:
        """Return ``M_s`` and ``|M_s| / delta``, cells by faces."""
        out = self.operators.divergence
        return family([out, csr_array(abs(out) @ diags_array(1.0 / self.volumes.spacing))])

    def face_means(self) -> Family:
        """Return the means of an eddy viscosity, faces by cells: none where the velocity is prescribed."""
        cv = self.volumes
        weight = np.full(len(cv.faces), 0.5)
        weight[cv.interior :] = np.where(self.kinds == PRESCRIBED, 0.0, 1.0)
        cell = np.concatenate([cv.faces[: cv.interior].T.ravel(), cv.faces[cv.interior :, 0]])
        face = np.concatenate([np.tile(np.arange(cv.interior), 2), np.arange(cv.interior, len(cv.faces))])
        return family([csr_array((weight[face], (face, cell)), shape=(len(cv.faces), cv.cells))])
