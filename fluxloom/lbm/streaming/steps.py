"""Kernels of a step, for each scheme of streaming: populations arrive, collide and leave in one pass.

A collision is ``g' = Omega(g)``, written below with the populations that arrive at ``x`` at the time ``t``. Where
populations are between two steps is told in `fluxloom.lbm.streaming.schemes`, and the force in
`fluxloom.lbm.body_force`. What a lattice, an operator, a viscosity and a force are to the kernels, `Constants` tell.

Sources: P. Valero-Lara, PhD thesis, Universidad Complutense de Madrid 2015, sections 5.2 and 5.3 (push, pull); P.
Bailey, J. Myre, S. Walsh, D. Lilja, M. Saar, ICPP 2009 (in place, the AA pattern).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy.typing as npt

from fluxloom.core.access import RW, Const, Read, Write
from fluxloom.kernel.frontend import Kernel, func, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.body_force import UniformForce, set_force, uniform_force
from fluxloom.lbm.collisions.operators import Collision
from fluxloom.lbm.collisions.rates import Relaxation, relaxation
from fluxloom.lbm.lattices import Lattice

__all__ = ["Constants", "collide", "even", "odd", "pull", "push"]


@func
def relax(g, field, uniform, lattice, collision, rates):
    """``g' = Omega(g, F)`` with the force ``F`` of the cell, if there is one."""
    if field is None and uniform is None:
        relax_with(g, field, lattice, collision, rates)
    else:
        force = zeros(lattice.dimensions)
        set_force(force, field, uniform, rates.unit)
        relax_with(g, force, lattice, collision, rates)


@func
def relax_with(g, force, lattice, collision, rates):
    """``g' = Omega(g, A, J, F)`` with ``A = sum g_i``, ``J = sum c_i g_i``; the force may be None."""
    momentum = zeros(lattice.dimensions)
    excess = collision.moments(g, momentum, lattice)
    collision(g, excess, momentum, force, lattice, rates)


@func
def relax_given(g, above, u, field, uniform, lattice, collision, rates):
    """``g' = Omega(g, F)`` with moments that are known, ``rho - 1`` and ``u``, which has half of the force."""
    if field is None and uniform is None:
        relax_given_with(g, above, u, field, lattice, collision, rates)
    else:
        force = zeros(lattice.dimensions)
        set_force(force, field, uniform, rates.unit)
        relax_given_with(g, above, u, force, lattice, collision, rates)


@func
def relax_given_with(g, above, u, force, lattice, collision, rates):
    """``g' = Omega(g, A, J, F)`` with ``A = U (rho - 1)``, ``J = U rho u - F / 2``; the force may be None."""
    momentum = zeros(lattice.dimensions)
    collision.moments(g, momentum, lattice)
    excess = rates.unit * above[0]
    for a in range(lattice.dimensions):
        momentum[a] = (rates.unit + excess) * u[a]
        if force is not None:
            momentum[a] -= 0.5 * force[a]
    collision(g, excess, momentum, force, lattice, rates)


@kernel
def pull(
    f: Read, field: Read | None, out: Write,
    *, lattice: Const[Lattice], collision: Const[Collision], rates: Const[Relaxation],
    uniform: Const[UniformForce | None],
):  # fmt: skip
    """``f_k(x, t + 1) = Omega_k(g)``, ``g_k = f_k(x - c_k, t)``.

    Populations arrive through the legs, collide and stay.
    """
    g = zeros(lattice.q)
    for k in range(lattice.q):
        g[k] = f[k][k]
    relax(g, field, uniform, lattice, collision, rates)
    for k in range(lattice.q):
        out[k] = g[k]


@kernel
def push(
    f: Read, field: Read | None, out: Write,
    *, lattice: Const[Lattice], collision: Const[Collision], rates: Const[Relaxation],
    uniform: Const[UniformForce | None],
):  # fmt: skip
    """``f_k(x + c_k, t + 1) = Omega_k(f(x, t))``: populations of the cell collide and leave through the legs."""
    g = zeros(lattice.q)
    for k in range(lattice.q):
        g[k] = f[k]
    relax(g, field, uniform, lattice, collision, rates)
    for k in range(lattice.q):
        out[k][k] = g[k]


@kernel
def even(
    f: RW, field: Read | None,
    *, lattice: Const[Lattice], collision: Const[Collision], rates: Const[Relaxation],
    uniform: Const[UniformForce | None],
):  # fmt: skip
    """``f_k'(x) = Omega_k(f(x))``.

    Populations of the cell collide and change places with their opposites, ``c_k' = -c_k``.
    """
    g = zeros(lattice.q)
    for k in range(lattice.q):
        g[k] = f[k]
    relax(g, field, uniform, lattice, collision, rates)
    for k in range(lattice.q):
        f[lattice.opposite[k]] = g[k]


@kernel
def odd(
    f: RW, field: Read | None,
    *, lattice: Const[Lattice], collision: Const[Collision], rates: Const[Relaxation],
    uniform: Const[UniformForce | None],
):  # fmt: skip
    """``f_k(x + c_k) = Omega_k(g)``, ``g_k = f_k'(x - c_k)``.

    Populations arrive turned through the legs, and leave by them.
    """
    g = zeros(lattice.q)
    for k in range(lattice.q):
        g[k] = f[lattice.opposite[k]][lattice.opposite[k]]
    relax(g, field, uniform, lattice, collision, rates)
    for k in range(lattice.q):
        f[k][k] = g[k]


@kernel
def collide(
    f: Read, above: Read, u: Read, field: Read | None, out: Write,
    *, lattice: Const[Lattice], collision: Const[Collision], rates: Const[Relaxation],
    uniform: Const[UniformForce | None],
):  # fmt: skip
    """``f_k(x, t + 1) = Omega_k(f(x, t))``: populations of the cell collide; their moments are given."""
    g = zeros(lattice.q)
    for k in range(lattice.q):
        g[k] = f[k]
    relax_given(g, above, u, field, uniform, lattice, collision, rates)
    for k in range(lattice.q):
        out[k] = g[k]


@dataclass(frozen=True)
class Constants:
    """What the kernels of a step, and of `fluxloom.lbm.streaming.steps_moments`, take beside dats.

    Attributes
    ----------
    lattice, collision
        From `fluxloom.lbm.lattices` and `fluxloom.lbm.collisions.operators`.
    viscosity
        Kinematic, in lattice units.
    dtype
        Of the populations: it sets the unit of storage and how rates are rounded.
    force
        Uniform force along each axis of the grid, slowest first, per volume in lattice units; None: kernels have none,
        or that of a field.

    Raises
    ------
    SolverError
        If the operator does not exist on the lattice, the viscosity is not positive, or the force does not fit.
    """

    lattice: Lattice
    collision: Collision
    viscosity: float
    dtype: npt.DTypeLike
    force: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self.collision.check(self.lattice)
        self._values  # noqa: B018  # its checks

    @cached_property
    def _values(self) -> dict[str, Any]:
        rates = relaxation(self.lattice, self.collision.rates(self.viscosity), self.dtype)
        force = None if self.force is None else uniform_force(self.force, self.lattice.dimensions, rates.unit)
        return {
            "lattice": self.lattice, "collision": self.collision, "rates": rates, "unit": rates.unit, "uniform": force,
        }  # fmt: skip

    @property
    def rates(self) -> Relaxation:
        """The rates as kernels take them."""
        return self._values["rates"]

    @property
    def uniform(self) -> UniformForce | None:
        """The uniform force as kernels take it."""
        return self._values["uniform"]

    def of(self, kernel: Kernel, **more: Any) -> dict[str, Any]:
        """Return the values of the keyword-only parameters of a kernel; ``more`` are those that are not here."""
        values = self._values | more
        return {constant.name: values[constant.name] for constant in kernel.constants}
