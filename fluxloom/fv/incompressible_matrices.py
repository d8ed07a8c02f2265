"""The matrices of a fractional step, boundary conditions of the pressure built in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.fv.control_volumes import ControlVolumes
from fluxloom.fv.incompressible import OUTFLOW, PRESCRIBED
from fluxloom.fv.operators import Operators
from fluxloom.fv.sides import Family

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["FlowMatrices"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


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
        return np.concatenate([np.arange(cv.cells), cv.faces[cv.interior :, 0]]).astype(np.int64)

    @cached_property
    def _open_sides(self) -> npt.NDArray[np.bool_]:
        """Sides of cells at an outflow."""
        sides, found = self.operators.sides, np.zeros(self.operators.sides.cell.size, dtype=bool)
        found[sides.outside] = self.kinds[sides.other[sides.outside] - self.volumes.cells] == OUTFLOW
        return found

    def poisson_rows(self) -> Family:
        """Return ``-L``, symmetric and positive (semi)definite, cells by cells: the diagonal first in each row."""
        sides = self.operators.sides
        spread = self.operators.spread[sides.face]
        own = sides.sum(np.where(~sides.outside | self._open_sides, spread, 0.0))
        return sides.rows(-spread, own, kept=~sides.outside)

    @property
    def poisson(self) -> csr_array:
        """``-L`` as a SciPy array, ``(cells, cells)``."""
        return self.poisson_rows().matrix(self.volumes.cells)

    def pressure_gradient(self) -> Family:
        """Return ``G_k``, cells by cells."""
        ops, sides = self.operators, self.operators.sides
        behind = (sides.outside & ~self._open_sides)[:, None]
        own = ops.own_areas + sides.sum(np.where(behind, ops.outward_areas, 0.0))
        return ops.per_volume(sides.rows(ops.outward_areas, own, ops.open(own), ~sides.outside))

    def pressure_slope(self) -> Family:
        """Return ``G_s``, faces by cells; nothing at a boundary but for outflows, where the pressure is zero."""
        cv, spread = self.volumes, 1.0 / self.volumes.spacing
        inner = np.arange(len(cv.faces)) < cv.interior
        first = spread.copy()
        first[cv.interior :] *= self.kinds == OUTFLOW
        return self.operators.two_sided(-first, np.where(inner, spread, 0.0))

    def divergence(self) -> Family:
        """Return ``M_k``, cells by elements."""
        return self.operators.cell_divergences()

    def normal_components(self) -> Family:
        """Return ``Gamma_k``, faces by elements."""
        return self.operators.normal_components()

    def velocity_gradient(self) -> Family:
        """Return ``G_k``, cells by elements: boundary values are those of the velocity."""
        return self.operators.gradients()

    def face_means(self) -> Family:
        """Return the means of an eddy viscosity, faces by cells: none where the velocity is prescribed."""
        cv = self.volumes
        inner = np.arange(len(cv.faces)) < cv.interior
        first = np.full(len(cv.faces), 0.5)
        first[cv.interior :] = np.where(self.kinds == PRESCRIBED, 0.0, 1.0)
        return self.operators.two_sided(first, np.where(inner, 0.5, 0.0))
