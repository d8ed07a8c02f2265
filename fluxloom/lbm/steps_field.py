"""Step kernels with a force that differs from cell to cell, given by a dat; see `fluxloom.lbm.steps`."""

from __future__ import annotations

from fluxloom.core.access import RW, Read, Write
from fluxloom.kernel.frontend import Kernel, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.collisions_operator import Operator
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.steps_slots import Slots, set_field

__all__ = ["field_kernels"]


def field_kernels(lattice: Lattice, slots: Slots, operator: Operator) -> dict[str, Kernel]:
    """Return the kernels by their names in `fluxloom.lbm.steps.StepKernels`."""
    q, axes, whole, given = lattice.q, lattice.dimensions, operator.whole, operator.given
    take, take_legs, take_turned, put, put_legs, put_turned = slots

    @kernel
    def pull(f: Read, force: Read, out: Write, *, unit: float, share: float, scale: float, rest: float, curve: float,
             half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float):  # fmt: skip
        """Populations arrive through the legs of the sources, collide and stay."""
        g, total = zeros(q), zeros(axes)
        take_legs(f, g)
        set_field(total, force, unit)
        whole(g, total, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put(g, out)

    @kernel
    def push(f: Read, force: Read, out: Write, *, unit: float, share: float, scale: float, rest: float, curve: float,
             half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float):  # fmt: skip
        """Populations of the cell collide and leave through the legs of the velocities."""
        g, total = zeros(q), zeros(axes)
        take(f, g)
        set_field(total, force, unit)
        whole(g, total, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put_legs(g, out)

    @kernel
    def even(f: RW, force: Read, *, unit: float, share: float, scale: float, rest: float, curve: float,
             half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float):  # fmt: skip
        """Populations of the cell collide and change places with their opposites."""
        g, total = zeros(q), zeros(axes)
        take(f, g)
        set_field(total, force, unit)
        whole(g, total, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put_turned(g, f)

    @kernel
    def odd(f: RW, force: Read, *, unit: float, share: float, scale: float, rest: float, curve: float,
            half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float):  # fmt: skip
        """Populations arrive turned through the legs of the velocities, and leave through them."""
        g, total = zeros(q), zeros(axes)
        take_turned(f, g)
        set_field(total, force, unit)
        whole(g, total, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put_legs(g, f)

    @kernel
    def collide(f: Read, above: Read, u: Read, force: Read, out: Write, *,
                unit: float, share: float, scale: float, rest: float, curve: float,
                half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float):  # fmt: skip
        """Populations of the cell collide; their moments are given."""
        g, total = zeros(q), zeros(axes)
        take(f, g)
        set_field(total, force, unit)
        given(g, above, u, total, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put(g, out)

    return {"pull": pull, "push": push, "even": even, "odd": odd, "collide": collide}
