"""The matrices of a fractional step, boundary conditions of the pressure built in."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fluxloom.fv.geometry.symmetry_planes import in_planes
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.fv.incompressible.boundary import FlowConditions
from fluxloom.fv.incompressible.linear_operators import LinearOperators, stored
from fluxloom.fv.incompressible.operators import Operators

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["DAMPING", "FLAT", "FlowMatrices"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

DAMPING = 1.5
"""With 1 the rest of the last solve grows on tetrahedra; from 1.3 to 3 no mesh of the tests has a mode that does."""

FLAT = 3.0
"""Of `Operators.wide_share`, where this is more than `DAMPING`: there pressure feeds oscillations with less."""


_FLAT_CELLS = 0.85
"""The same, counting sides alone at which the pressure is known: above it Gauss's theorem feeds oscillations."""


@dataclass(frozen=True, eq=False)
class FlowMatrices:
    """The matrices of a flow. Making them is collective.

    Attributes
    ----------
    volumes
        The control volumes.
    conditions
        Of its boundary elements. The pressure is zero where they are open, elsewhere that of the cell behind.
    oblique
        Whether the operators are corrected by those of `fluxloom.fv.incompressible.linear_operators`.
    mirrors : (boundary elements,)
        Which are in planes of symmetry; not those on curved patches.
    """

    volumes: ControlVolumes
    conditions: FlowConditions
    oblique: bool = False
    mirrors: npt.NDArray[np.bool_] = field(init=False)
    _kept: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mirrors", in_planes(self.volumes, self.conditions.mirrored))

    @cached_property
    def operators(self) -> Operators:
        """The operators without boundary conditions."""
        return Operators(self.volumes)

    @cached_property
    def velocity_operators(self) -> LinearOperators:
        """Corrections of the velocity: at outflows and planes of symmetry it changes across the boundary alone."""
        known = np.ones(self.conditions.kinds.size, dtype=bool)
        return LinearOperators(self.operators, ~self.conditions.prescribed, known, self.mirrors)

    @cached_property
    def pressure_operators(self) -> LinearOperators:
        """Corrections of the pressure, which is known at outflows and planes of symmetry alone."""
        return self.mirrored_pressure(self.mirrors)

    def mirrored_pressure(self, mirrors: npt.NDArray[np.bool_]) -> LinearOperators:
        """Return `pressure_operators` with some of the planes of symmetry."""
        return LinearOperators(self.operators, mirrors, self.conditions.open | mirrors, mirrors)

    @property
    def damping(self) -> Array:
        """``alpha = max(DAMPING, FLAT wide)`` of each face: the implicit derivative of the pressure is ``alpha G_s``.

        The rest is that of the last solve. More where cells are flat: `Operators.wide_share` of either. Collective
        where the operators are corrected.
        """
        cv = self.volumes
        if not self._kept:  # a cached property would hold the lock of all ranks that are threads
            share = np.zeros(cv.elements)
            if self.oblique:
                share[: cv.cells] = stored(cv, self.operators.wide_share(self.mirrors))
            self._kept.append(np.maximum(DAMPING if self.oblique else 1.0, FLAT * share[cv.faces].max(axis=1)))
        return self._kept[0]

    @cached_property
    def flat(self) -> npt.NDArray[np.bool_]:
        """Owned cells whose velocities are corrected by the mean gradient of the pressure, not by Gauss's theorem."""
        if not self.oblique:
            return np.zeros(self.operators.sides.cells, dtype=bool)
        return self.operators.wide_share(self.mirrors, self.pressure_operators.known) > _FLAT_CELLS

    @cached_property
    def owners(self) -> Index:
        """For each element the cell behind it; a cell itself."""
        cv = self.volumes
        return np.concatenate([np.arange(cv.cells), cv.faces[cv.interior :, 0]]).astype(np.int64)

    def outward(self) -> Family:
        """Return `Operators.outward`; with corrected operators a plane of symmetry is half way to an image."""
        return self.operators.outward(self.mirrors if self.oblique else None)

    @cached_property
    def _open_sides(self) -> npt.NDArray[np.bool_]:
        """Sides of cells at an outflow."""
        sides, found = self.operators.sides, np.zeros(self.operators.sides.cell.size, dtype=bool)
        found[sides.outside] = self.conditions.open[sides.other[sides.outside] - self.volumes.cells]
        return found

    def poisson_rows(self) -> Family:
        """Return ``-alpha L``, ``sum alpha A / delta (p_i - p_j)``, symmetric, positive semidefinite, cells by cells.

        The diagonal is first in a row.
        """
        sides = self.operators.sides
        spread = (self.damping * self.operators.spread)[sides.face]
        own = sides.sum(np.where(~sides.outside | self._open_sides, spread, 0.0))
        return sides.rows(-spread, own, kept=~sides.outside)

    @property
    def poisson(self) -> csr_array:
        """``-L`` as a SciPy array, ``(cells, cells)``."""
        return self.poisson_rows().matrix(self.volumes.cells)

    def pressure_gradient(self, excess: Array | None = None) -> Family:
        """Return ``G_k``, cells by cells; nothing in cells that are `flat`.

        Values at faces are means, across a side by ``1 + excess``, ``(sides,)``.
        """
        ops, sides = self.operators, self.operators.sides
        behind, gauss = (sides.outside & ~self._open_sides)[:, None], np.where(self.flat, 0.0, 1.0)[:, None]
        areas = gauss[sides.cell] * ops.outward_areas
        own = gauss * ops.own_areas + sides.sum(np.where(behind, areas, 0.0))
        if excess is not None:
            more = areas * excess[:, None]
            areas, own = areas + more, own - sides.sum(more)
        return ops.per_volume(sides.rows(areas, own, ops.open(own), ~sides.outside))

    def carried_pressure(self) -> Family:
        """Return what mean gradients of the pressure add to `pressure_gradient`, cells by cells, ``(d, d)``."""
        return self.pressure_operators.carried(self.flat)

    def pressure_slope(self) -> Family:
        """Return ``alpha G_s``, ``alpha (p_j - p_i) / delta``, faces by cells.

        Nothing at a boundary but for outflows, where the pressure is zero.
        """
        cv, spread = self.volumes, self.damping / self.volumes.spacing
        inner = np.arange(len(cv.faces)) < cv.interior
        first = spread.copy()
        first[cv.interior :] *= self.conditions.open
        return self.operators.two_sided(-first, np.where(inner, spread, 0.0))

    def divergence(self) -> Family:
        """Return ``M_k``, cells by elements."""
        return self.operators.cell_divergences()

    def normal_components(self) -> Family:
        """Return ``Gamma_k``, faces by elements."""
        return self.operators.normal_components()

    def velocity_gradient(self) -> Family:
        """Return ``G_k``, cells by elements: boundary values are those of the velocity."""
        return self.velocity_operators.gradients() if self.oblique else self.operators.gradients()

    def face_means(self) -> Family:
        """Return the means of an eddy viscosity, faces by cells: none where the velocity is prescribed."""
        cv = self.volumes
        inner = np.arange(len(cv.faces)) < cv.interior
        first = np.full(len(cv.faces), 0.5)
        first[cv.interior :] = np.where(self.conditions.prescribed, 0.0, 1.0)
        return self.operators.two_sided(first, np.where(inner, 0.5, 0.0))
