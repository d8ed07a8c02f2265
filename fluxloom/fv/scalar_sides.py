"""Boundaries of scalars in a flow, and their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.given import check_patches, given_values
from fluxloom.fv.incompressible_boundary import Outflow, Symmetry
from fluxloom.fv.scalar_transport import FLUX, VALUE
from fluxloom.fv.sides import Family
from fluxloom.fv.volumes import ControlVolumes

__all__ = ["Adiabatic", "Field", "FixedFlux", "FixedValue", "ScalarBoundary", "boundary_sides", "scalar_table"]

Array = npt.NDArray[np.float64]
Field = float | Callable[[Array], npt.ArrayLike]
"""A number, or a function of the places ``(n, d)`` that returns ``(n,)``."""


@dataclass(frozen=True)
class FixedValue:
    """A given value, of a wall or of what flows in.

    Attributes
    ----------
    value
        A number, or a function of the places ``(n, d)`` that returns ``(n,)``.
    """

    value: Field


@dataclass(frozen=True)
class FixedFlux:
    """A given diffusive flux into the domain, ``alpha d theta / dn`` with the outward normal: heat that a wall gives.

    Attributes
    ----------
    flux
        Per area and time, in the unit of ``theta`` times length over time: a number, or a function of the places
        ``(n, d)`` that returns ``(n,)``.
    """

    flux: Field


@dataclass(frozen=True)
class Adiabatic:
    """Nothing diffuses through; what flows in or out has the value of the cell behind."""


ScalarBoundary = FixedValue | FixedFlux | Adiabatic | Outflow | Symmetry
"""At an `Outflow` and a `Symmetry` nothing diffuses through, as with `Adiabatic`."""


def scalar_table(
    what: str, volumes: ControlVolumes, boundaries: Mapping[str, ScalarBoundary], diffusivity: float
) -> tuple[npt.NDArray[np.int32], Array]:
    """Return kind and given value or flux of each boundary element, ``(n,)`` each.

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
    check_patches(f"{what}: boundaries", volumes, boundaries)
    count = volumes.elements - volumes.cells
    kinds, given = np.full(count, FLUX, dtype=np.int32), np.zeros(count)
    for name, elements in volumes.patches.items():
        boundary = boundaries.get(name)
        place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        centres, where = volumes.centres[elements.start : elements.stop], f"{what}: patch {name!r}"
        if isinstance(boundary, FixedValue):
            kinds[place], given[place] = VALUE, given_values(where, boundary.value, centres)
        elif isinstance(boundary, FixedFlux):
            given[place] = given_values(where, boundary.flux, centres)
            if diffusivity == 0.0 and given[place].any():
                raise SolverError(f"{where}: a flux needs a diffusivity above 0: give the scalar one, or Adiabatic()")
        elif not isinstance(boundary, Adiabatic | Outflow | Symmetry):
            raise SolverError(
                f"{where} has no boundary: give FixedValue(...), FixedFlux(...), Adiabatic(), Outflow() or Symmetry(), "
                f"not {boundary!r}"
            )
    return kinds, given


def boundary_sides(volumes: ControlVolumes) -> Family:
    """Return area and distance to the cell behind, ``(A, delta)``, of boundary elements: elements by faces.

    Cells have no entries.
    """
    count = volumes.elements - volumes.cells
    offsets = np.concatenate([np.zeros(volumes.cells, dtype=np.int64), np.arange(count + 1)])
    outer = np.arange(volumes.interior, len(volumes.faces), dtype=np.int32)
    return Family(offsets, outer, np.stack([volumes.area[outer], volumes.spacing[outer]], axis=1))
