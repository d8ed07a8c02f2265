"""Kernels that collide nothing: streaming, moments, and populations in equilibrium; see `fluxloom.lbm.steps`."""

from __future__ import annotations

from typing import Any

from fluxloom.core.access import Read, Write
from fluxloom.kernel.frontend import Func, Kernel, func, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.moments import along, plain_sums, product
from fluxloom.lbm.steps_slots import Slots, set_field, set_uniform

__all__ = ["moment_kernels"]


def moment_kernels(lattice: Lattice, slots: Slots, force: str) -> dict[str, Kernel]:
    """Return the kernels by their names in `fluxloom.lbm.steps.StepKernels`."""
    start = _forced_start if force == "uniform" else _start
    found = _passes(lattice, slots) | start(lattice, slots, _equilibrium(lattice))
    return found | {"macros": MACROS[force](lattice, slots, _moments(lattice))}


def _passes(lattice: Lattice, slots: Slots) -> dict[str, Kernel]:
    q, axes, take_legs, put, set_moments = lattice.q, lattice.dimensions, slots.take_legs, slots.put, _moments(lattice)

    @kernel
    def stream(f: Read, out: Write):
        """Populations arrive through the legs of the sources."""
        g = zeros(q)
        take_legs(f, g)
        put(g, out)

    @kernel
    def arriving(f: Read, above: Write, u: Write, *, unit: float):
        """Density less one and velocity of what arrives."""
        g, force = zeros(q), zeros(axes)
        take_legs(f, g)
        set_moments(g, force, above, u, unit)

    return {"stream": stream, "arriving": arriving}


def _moments(lattice: Lattice) -> Func[..., Any]:
    """Return the helper that sets the density less one and the velocity, with half the force."""
    axes, sums = lattice.dimensions, plain_sums(lattice)

    @func
    def set_moments(g, force, above, u, unit):
        j = zeros(axes)
        excess = sums(g, j)
        above[0] = excess / unit
        for a in range(axes):
            u[a] = (j[a] + 0.5 * force[a]) / (unit + excess)

    return set_moments


def _plain_macros(lattice: Lattice, slots: Slots, set_moments: Func[..., Any]) -> Kernel:
    q, axes, take = lattice.q, lattice.dimensions, slots.take

    @kernel
    def macros(f: Read, above: Write, u: Write, *, unit: float):
        """Density less one and velocity of the cell's populations, before collision."""
        g, force = zeros(q), zeros(axes)
        take(f, g)
        set_moments(g, force, above, u, unit)

    return macros


def _uniform_macros(lattice: Lattice, slots: Slots, set_moments: Func[..., Any]) -> Kernel:
    q, axes, take = lattice.q, lattice.dimensions, slots.take

    @kernel
    def macros(
        f: Read, above: Write, u: Write, *, unit: float, force_x: float, force_y: float, force_z: float
    ):  # fmt: skip
        """Density less one and velocity of the cell's populations, before collision."""
        g, force = zeros(q), zeros(axes)
        take(f, g)
        set_uniform(force, force_x, force_y, force_z)
        set_moments(g, force, above, u, unit)

    return macros


def _field_macros(lattice: Lattice, slots: Slots, set_moments: Func[..., Any]) -> Kernel:
    q, axes, take = lattice.q, lattice.dimensions, slots.take

    @kernel
    def macros(f: Read, force: Read, above: Write, u: Write, *, unit: float):
        """Density less one and velocity of the cell's populations, before collision."""
        g, total = zeros(q), zeros(axes)
        take(f, g)
        set_field(total, force, unit)
        set_moments(g, total, above, u, unit)

    return macros


MACROS = {"none": _plain_macros, "uniform": _uniform_macros, "field": _field_macros}


def _equilibrium(lattice: Lattice) -> Func[..., Any]:
    """Return the helper that sets ``w_i (rho - 1 + rho (3 c u + 4.5 (c u)^2 - 1.5 u^2) + 1.5 c F)``."""
    q, axes, velocities, weights = lattice.q, lattice.dimensions, lattice.velocities, lattice.weights

    @func
    def set_equilibrium(g, force, above, u, unit):
        excess = unit * above[0]
        rho = unit + excess
        v, t = zeros(axes), zeros(axes)
        for a in range(axes):
            v[a] = u[a]
            t[a] = 3.0 * rho * u[a] + 1.5 * force[a]
        base = excess - 1.5 * rho * product(v, v)
        g[0] = weights[0] * base
        for k in range(1, q, 2):
            p = along(velocities[k], v)
            even = base + 4.5 * rho * (p * p)
            odd = along(velocities[k], t)
            g[k] = weights[k] * (even + odd)
            g[k + 1] = weights[k] * (even - odd)

    return set_equilibrium


def _start(lattice: Lattice, slots: Slots, set_equilibrium: Func[..., Any]) -> dict[str, Kernel]:
    q, axes, put, put_legs = lattice.q, lattice.dimensions, slots.put, slots.put_legs

    @kernel
    def equilibrium(above: Read, u: Read, f: Write, *, unit: float):
        """Populations in equilibrium, in the cell's own memory."""
        g, force = zeros(q), zeros(axes)
        set_equilibrium(g, force, above, u, unit)
        put(g, f)

    @kernel
    def equilibrium_ahead(above: Read, u: Read, f: Write, *, unit: float):
        """Populations in equilibrium, where they go to."""
        g, force = zeros(q), zeros(axes)
        set_equilibrium(g, force, above, u, unit)
        put_legs(g, f)

    return {"equilibrium": equilibrium, "equilibrium_ahead": equilibrium_ahead}


def _forced_start(lattice: Lattice, slots: Slots, set_equilibrium: Func[..., Any]) -> dict[str, Kernel]:
    q, axes, put, put_legs = lattice.q, lattice.dimensions, slots.put, slots.put_legs

    @kernel
    def equilibrium(
        above: Read, u: Read, f: Write, *, unit: float, force_x: float, force_y: float, force_z: float
    ):  # fmt: skip
        """Populations in equilibrium with half the force, in the cell's own memory."""
        g, force = zeros(q), zeros(axes)
        set_uniform(force, force_x, force_y, force_z)
        set_equilibrium(g, force, above, u, unit)
        put(g, f)

    @kernel
    def equilibrium_ahead(
        above: Read, u: Read, f: Write, *, unit: float, force_x: float, force_y: float, force_z: float
    ):  # fmt: skip
        """Populations in equilibrium with half the force, where they go to."""
        g, force = zeros(q), zeros(axes)
        set_uniform(force, force_x, force_y, force_z)
        set_equilibrium(g, force, above, u, unit)
        put_legs(g, f)

    return {"equilibrium": equilibrium, "equilibrium_ahead": equilibrium_ahead}
