"""Boundary conditions of scalars in a flow, and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.fv.given import ConditionTable, FaceCondition, Given, PatchPlaces, condition_table
from fluxloom.fv.incompressible.boundary import Outflow, Symmetry
from fluxloom.kernel.frontend import func

__all__ = ["Adiabatic", "Field", "FixedFlux", "FixedValue", "ScalarBoundary", "boundary_sides", "scalar_table"]

Array = npt.NDArray[np.float64]
Field = Given
"""A number, a value (`fluxloom.values.value.value_of`), or a function of places ``(n, d)`` that returns ``(n,)``."""


class ScalarBoundary(FaceCondition, what="boundary condition of a scalar", group="fluxloom.scalar_boundaries"):
    """What happens to a scalar at a patch; a member is a frozen dataclass.

    Either `rows` gives its values there, or a ``__call__`` that is a ``@func`` makes them of that ``inside``, in the
    cell behind: of the number ``given`` that `rows` has, the ``spacing`` from there to the face along the normal, and
    the diffusivity ``alpha`` there, which may be 0.
    """

    if TYPE_CHECKING:  # a member that gives the values has none

        def __call__(self, given: Any, inside: Any, spacing: Any, alpha: Any) -> Any: ...  # noqa: D102


@dataclass(frozen=True)
class FixedValue(ScalarBoundary):
    """A given value, of a wall or of what flows in.

    Attributes
    ----------
    value
        A number, a value, or a function of the places ``(n, d)`` that returns ``(n,)``.
    """

    value: Field

    @property
    def prescribed(self) -> Given | None:
        """The value."""
        return self.value

    def rows(self, faces: PatchPlaces) -> Array:
        """Return the value of each face."""
        return faces.numbers(self.value)


@dataclass(frozen=True)
class _Flux(ScalarBoundary):
    """The formula of a given flux: without diffusivity nothing can diffuse through, the value is that of the cell."""

    @func
    def __call__(self, given, inside, spacing, alpha):
        """Return ``theta_c + q delta / alpha``; that of the cell where nothing can diffuse, ``alpha = 0``."""
        conducts = 1.0 if alpha > 0.0 else 0.0
        return inside + given * spacing * conducts / (alpha if alpha > 0.0 else 1.0)


@dataclass(frozen=True)
class FixedFlux(ScalarBoundary):
    """A given diffusive flux into the domain, ``alpha d theta / dn`` with the outward normal: heat that a wall gives.

    Attributes
    ----------
    flux
        Per area and time, in the unit of ``theta`` times length over time: a number, a value, or a function of the
        places ``(n, d)`` that returns ``(n,)``.
    """

    flux: Field

    @property
    def prescribed(self) -> Given | None:
        """The flux."""
        return self.flux

    @property
    def formula(self) -> ScalarBoundary:
        """That of a flux, which the faces have."""
        return _Flux()

    def rows(self, faces: PatchPlaces) -> Array:
        """Return the flux of each face."""
        return faces.numbers(self.flux)


@dataclass(frozen=True)
class Adiabatic(ScalarBoundary):
    """Nothing diffuses through; what flows in or out has the value of the cell behind."""

    @func
    def __call__(self, given, inside, spacing, alpha):
        """Return that of the cell behind, ``theta_b = theta_c``."""
        return inside


def scalar_table(
    what: str, volumes: ControlVolumes, boundaries: Mapping[str, ScalarBoundary | Outflow | Symmetry],
    diffusivity: float,
) -> ConditionTable:  # fmt: skip
    """Return what happens to a scalar at boundary elements; at an outflow and a symmetry as with `Adiabatic`.

    Parameters
    ----------
    what
        The scalar, for messages.
    volumes
        The control volumes.
    boundaries
        Patch to its boundary; each patch needs one.
    diffusivity
        Of the scalar; without one there can be no flux.

    Raises
    ------
    SolverError
        If a patch has no boundary, a boundary no patch, or a value does not fit.
    """
    made = {name: Adiabatic() if isinstance(one, Outflow | Symmetry) else one for name, one in boundaries.items()}
    known = "FixedValue(...), FixedFlux(...), Adiabatic(), Outflow() or Symmetry()"
    found = condition_table(f"{what}: ", volumes, made, ScalarBoundary, known)
    for name, elements in volumes.patches.items():
        place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        passes = found.given[place].any() or found.varies[place].any()
        if isinstance(made[name], FixedFlux) and diffusivity == 0.0 and passes:
            text = "a flux needs a diffusivity above 0: give the scalar one, or Adiabatic()"
            raise SolverError(f"{what}: patch {name!r}: {text}")
    return found


def boundary_sides(volumes: ControlVolumes) -> Family:
    """Return area and distance to the cell behind, ``(A, delta)``, of boundary elements: elements by faces.

    Cells have no entries.
    """
    count = volumes.elements - volumes.cells
    offsets = np.concatenate([np.zeros(volumes.cells, dtype=np.int64), np.arange(count + 1)])
    outer = np.arange(volumes.interior, len(volumes.faces), dtype=np.int32)
    return Family(offsets, outer, np.stack([volumes.area[outer], volumes.spacing[outer]], axis=1))
