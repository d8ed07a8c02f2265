r"""Kernels of a step, for each scheme of streaming: populations arrive, collide and leave in one pass.

`step_kernels` makes them of a lattice, a collision operator and a kind of force. Where populations are between two
steps is told in `fluxloom.lbm.streaming`. A force :math:`F` per volume adds :math:`F` to the momentum of a cell in a
step; the velocity of equilibrium has half of it, :math:`\rho u = \sum c_i f_i + F / 2` (Z. Guo, C. Zheng, B. Shi,
Physical Review E 65 (2002) 046308).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite

import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.kernel.frontend import Kernel
from fluxloom.lbm.collisions import Collision
from fluxloom.lbm.collisions_rates import words
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.steps_field import field_kernels
from fluxloom.lbm.steps_moments import moment_kernels
from fluxloom.lbm.steps_plain import plain_kernels
from fluxloom.lbm.steps_slots import slots_of
from fluxloom.lbm.steps_uniform import uniform_kernels

__all__ = ["FORCES", "StepKernels", "step_kernels"]

FORCES = {"none": plain_kernels, "uniform": uniform_kernels, "field": field_kernels}
"""Kinds of force: none, the same everywhere (run-time constants), one of each cell (a dat, one component an axis)."""

FORCE_WORDS = ("force_x", "force_y", "force_z")


@dataclass(frozen=True)
class StepKernels:
    """Kernels of one lattice, collision operator and kind of force.

    Arguments come in this order: populations, moments, the force if it is a field, then what is written. Constants are
    those of `constants_of`.

    Attributes
    ----------
    pull
        ``(f[sources], [force], out)``: populations arrive from the neighbours and stay in the cell.
    push
        ``(f, [force], out[velocities])``: populations of the cell leave to the neighbours.
    even, odd
        ``(f, [force])`` and ``(f[velocities], [force])``: the two steps in place.
    stream, macros, collide
        ``(f[sources], out)``, ``(f, [force], above, u)``, ``(f, above, u, [force], out)``: three phases. ``above`` is
        ``rho - 1``, ``u`` has half the force.
    arriving
        ``(f[sources], above, u)``: moments of what the next step with ``pull`` will see, without the force.
    equilibrium, equilibrium_ahead
        ``(above, u, f)`` and ``(above, u, f[velocities])``: populations that leave a cell in equilibrium, in its own
        memory or already where they go to. A uniform force has half its momentum in them, so that the velocity at the
        start is the one given.
    """

    lattice: Lattice
    collision: Collision
    force: str
    pull: Kernel
    push: Kernel
    even: Kernel
    odd: Kernel
    stream: Kernel
    macros: Kernel
    collide: Kernel
    arriving: Kernel
    equilibrium: Kernel
    equilibrium_ahead: Kernel

    def constants_of(
        self, kernel: str, viscosity: float, dtype: npt.DTypeLike, force: Sequence[float] = ()
    ) -> dict[str, float]:
        """Return the values of the keyword-only parameters of a kernel.

        Parameters
        ----------
        kernel
            Its name, ``"pull"``.
        viscosity
            Kinematic, in lattice units.
        dtype
            Of the populations: it sets the unit of storage and how rates are rounded.
        force
            Uniform force along each axis of the grid, slowest first, per volume in lattice units; none: zero.

        Raises
        ------
        SolverError
            If there is no such kernel, the viscosity is not positive, or the force does not fit.
        """
        found = getattr(self, kernel, None)
        if not isinstance(found, Kernel):
            known = ", ".join(KERNELS)
            raise SolverError(f"there is no step kernel {kernel!r}{did_you_mean(kernel, KERNELS)} (there are: {known})")
        values = self.constants(viscosity, dtype, force)
        return {constant.name: values[constant.name] for constant in found.constants}

    def constants(self, viscosity: float, dtype: npt.DTypeLike, force: Sequence[float] = ()) -> dict[str, float]:
        """Return the values of all constants; see `constants_of`."""
        rates = self.collision.rates(viscosity)
        values = words(self.lattice, rates, self.collision.smagorinsky, dtype)
        return values | self.force_constants(values["unit"], force)

    def force_constants(self, unit: float, force: Sequence[float] = ()) -> dict[str, float]:
        """Return the constants that a uniform force is given by, in the unit of storage."""
        return {name: unit * value for name, value in zip(FORCE_WORDS, self._force(force), strict=True)}

    def _force(self, force: Sequence[float]) -> tuple[float, ...]:
        """Return the force along x, y and z."""
        axes = self.lattice.dimensions
        along = tuple(float(value) for value in force) or (0.0,) * axes
        if len(along) != axes or not all(map(isfinite, along)):
            raise SolverError(f"{self.lattice.name} needs a force of {axes} finite components, not {tuple(force)}")
        if self.force != "uniform" and any(along):
            raise SolverError(f"a uniform force {along} is given to kernels made for the force {self.force!r}")
        return (*reversed(along), 0.0)[:3]


KERNELS = tuple(name for name, kind in StepKernels.__annotations__.items() if kind == "Kernel")
"""Names of the kernels."""


@cache
def step_kernels(lattice: Lattice, collision: Collision, force: str = "none") -> StepKernels:
    """Return the kernels of a step; equal arguments give the same ones.

    Parameters
    ----------
    lattice
        From `fluxloom.lbm.lattices`.
    collision
        From `fluxloom.lbm.collisions`.
    force
        ``"none"``, ``"uniform"`` or ``"field"``, see `FORCES`.

    Raises
    ------
    SolverError
        If there is no such force, or the operator does not exist on the lattice.
    """
    if force not in FORCES:
        raise SolverError(f"force {force!r}{did_you_mean(force, FORCES)} (allowed: {', '.join(FORCES)})")
    collision.check(lattice)
    slots = slots_of(lattice)
    operator = collision.operator(lattice, force != "none")
    kernels = FORCES[force](lattice, slots, operator) | moment_kernels(lattice, slots, force)
    return StepKernels(lattice, collision, force, **kernels)
