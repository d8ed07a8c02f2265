r"""The force per volume that a collision adds to the momentum of a cell: none, one for all cells, or one of each.

A force :math:`F` adds :math:`F` to the momentum in a step; the velocity of equilibrium has half of it, :math:`\rho u =
\sum c_i f_i + F / 2` (Z. Guo, C. Zheng, B. Shi, Physical Review E 65 (2002) 046308). Kernels have it in two parameters,
of which one at most is given: a dat ``field`` and a `UniformForce`. With neither nothing of it is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from fluxloom.core.errors import SolverError
from fluxloom.kernel.frontend import func

__all__ = ["ForceField", "UniformForce", "set_force", "uniform_force"]


@dataclass(frozen=True)
class UniformForce:
    """A force that is the same everywhere, per volume in the unit of storage; it may change at run time."""

    x: float = 0.0
    y: float = 0.0
    z: float = 0.0

    @func
    def __call__(self, force):
        """``F_a = F`` along the axes of a grid, slowest first; a plane has no z."""
        last = len(force) - 1
        force[last] = self.x
        force[last - 1] = self.y
        if last == 2:
            force[0] = self.z


@dataclass(frozen=True)
class ForceField:
    """What a flow is told whose force differs by cell: dats have it, which steps read.

    Attributes
    ----------
    start
        That of all cells to begin with, along each axis of the grid, slowest first; empty: none.
    """

    start: Sequence[float] = ()


@func
def set_force(force, field, uniform, unit):
    """``F_a = U field_a`` of a cell, or the uniform force, in the unit of storage ``U``."""
    if field is not None:
        for a in range(len(force)):
            force[a] = unit * field[a]
    else:
        uniform(force)


def uniform_force(along: Sequence[float], dimensions: int, unit: float) -> UniformForce:
    """Return the force ``U F`` in the unit of storage, from components along each axis of the grid, slowest first.

    Raises
    ------
    SolverError
        If their number does not fit, or one is not finite.
    """
    if len(along) != dimensions or not all(map(isfinite, along)):
        raise SolverError(f"the force needs {dimensions} finite components, slowest axis first, not {tuple(along)}")
    return UniformForce(*(unit * float(value) for value in reversed(along)))
