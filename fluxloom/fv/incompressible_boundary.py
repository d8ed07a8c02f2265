"""Boundaries of incompressible flow, and their tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.given import check_patches, given_values, sliding
from fluxloom.fv.incompressible import OUTFLOW, PRESCRIBED, SYMMETRY
from fluxloom.fv.volumes import ControlVolumes

__all__ = ["Boundary", "Inflow", "NoSlip", "Outflow", "Symmetry", "boundary_table", "given_gradients"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Profile = Callable[[Array], npt.ArrayLike]

_STEP = 1e-2
"""Of differences, as a part of the root of the area of a face."""


@dataclass(frozen=True)
class NoSlip:
    """A wall, at rest or sliding along itself.

    Attributes
    ----------
    velocity
        Of the wall, ``(d,)``, or a function of the places ``(n, d)`` that returns ``(n, d)``, of which what is along
        the normals of its faces is left out; at rest by default.
    """

    velocity: Sequence[float] | Profile = ()


@dataclass(frozen=True)
class Inflow:
    """A prescribed velocity.

    Attributes
    ----------
    velocity
        ``(d,)``, or a function of the places ``(n, d)`` that returns ``(n, d)``.
    """

    velocity: Sequence[float] | Profile


@dataclass(frozen=True)
class Outflow:
    """The pressure is zero, the velocity that of the cell behind."""


@dataclass(frozen=True)
class Symmetry:
    """Nothing passes, nothing changes along the normal: a plane of symmetry, or a wall without friction."""


Boundary = NoSlip | Inflow | Outflow | Symmetry


def boundary_table(
    volumes: ControlVolumes, boundaries: Mapping[str, Boundary]
) -> tuple[npt.NDArray[np.int32], Array]:
    """Return kind and prescribed velocity of each boundary element, ``(n,)`` and ``(n, d)``.

    Raises
    ------
    SolverError
        If a patch has no boundary, a boundary no patch, or a velocity does not fit.
    """
    check_patches("boundaries", volumes, boundaries)
    count, d = volumes.elements - volumes.cells, volumes.dimension
    kinds, given = np.full(count, PRESCRIBED, dtype=np.int32), np.zeros((count, d))
    for name, elements in volumes.patches.items():
        boundary = boundaries.get(name)
        place = slice(elements.start - volumes.cells, elements.stop - volumes.cells)
        if isinstance(boundary, Outflow):
            kinds[place] = OUTFLOW
        elif isinstance(boundary, Symmetry):
            kinds[place] = SYMMETRY
        elif isinstance(boundary, NoSlip | Inflow):
            velocity, centres = boundary.velocity, volumes.centres[elements.start : elements.stop]
            if callable(velocity) or isinstance(boundary, Inflow) or len(velocity):
                given[place] = given_values(f"patch {name!r}", velocity, centres, d)
            if callable(velocity) and isinstance(boundary, NoSlip):
                given[place] = sliding(f"patch {name!r}", given[place], volumes.areas[volumes.interior :][place])
        else:
            raise SolverError(
                f"patch {name!r} has no boundary: give NoSlip(), Inflow(...), Outflow() or Symmetry(), not {boundary!r}"
            )
    return kinds, given


def given_gradients(volumes: ControlVolumes, boundaries: Mapping[str, Boundary], chosen: Index) -> Array:
    """Return the derivatives of velocities that enter, ``du_k / dx_n``, ``(boundary elements, d, d)``.

    Central differences of the functions that give them, of some boundary elements ``(m,)``, numbers from 0 on; zero
    elsewhere. They are exact for linear and quadratic functions.
    """
    d, cells = volumes.dimension, volumes.cells
    found = np.zeros((volumes.elements - cells, d, d))
    for name, elements in volumes.patches.items():
        boundary = boundaries.get(name)
        mine = chosen[(chosen >= elements.start - cells) & (chosen < elements.stop - cells)]
        if not isinstance(boundary, Inflow) or not callable(boundary.velocity) or not mine.size:
            continue
        centres = volumes.centres[cells + mine]
        step: Array = _STEP * np.sqrt(volumes.area[volumes.interior + mine])
        for n in range(d):
            away = np.zeros_like(centres)
            away[:, n] = step
            ends = [given_values(f"patch {name!r}", boundary.velocity, centres + way, d) for way in (away, -away)]
            found[mine, :, n] = (ends[0] - ends[1]) / (2.0 * step)[:, None]
    return found
