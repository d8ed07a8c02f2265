"""Step kernels with a force that is the same everywhere, given by constants; see `fluxloom.lbm.steps`."""

from __future__ import annotations

from fluxloom.core.access import RW, Read, Write
from fluxloom.kernel.frontend import Kernel, kernel
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.collisions_operator import Operator
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.steps_slots import Slots, set_uniform

__all__ = ["uniform_kernels"]


def uniform_kernels(lattice: Lattice, slots: Slots, operator: Operator) -> dict[str, Kernel]:
    """Return the kernels by their names in `fluxloom.lbm.steps.StepKernels`."""
    q, axes, whole, given = lattice.q, lattice.dimensions, operator.whole, operator.given
    take, take_legs, _, put, put_legs, _ = slots

    @kernel
    def pull(f: Read, out: Write, *, unit: float, share: float, scale: float, rest: float, curve: float,
             half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float,
             force_x: float, force_y: float, force_z: float):  # fmt: skip
        """Populations arrive through the legs of the sources, collide and stay."""
        g, force = zeros(q), zeros(axes)
        take_legs(f, g)
        set_uniform(force, force_x, force_y, force_z)
        whole(g, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put(g, out)

    @kernel
    def push(f: Read, out: Write, *, unit: float, share: float, scale: float, rest: float, curve: float,
             half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float,
             force_x: float, force_y: float, force_z: float):  # fmt: skip
        """Populations of the cell collide and leave through the legs of the velocities."""
        g, force = zeros(q), zeros(axes)
        take(f, g)
        set_uniform(force, force_x, force_y, force_z)
        whole(g, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put_legs(g, out)

    @kernel
    def collide(f: Read, above: Read, u: Read, out: Write, *,
                unit: float, share: float, scale: float, rest: float, curve: float,
                half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float,
                force_x: float, force_y: float, force_z: float):  # fmt: skip
        """Populations of the cell collide; their moments are given."""
        g, force = zeros(q), zeros(axes)
        take(f, g)
        set_uniform(force, force_x, force_y, force_z)
        given(g, above, u, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put(g, out)

    return {"pull": pull, "push": push, "collide": collide, **_in_place(lattice, slots, operator)}


def _in_place(lattice: Lattice, slots: Slots, operator: Operator) -> dict[str, Kernel]:
    """Return the two kernels of the scheme in place."""
    q, axes, whole = lattice.q, lattice.dimensions, operator.whole
    take, _, take_turned, _, put_legs, put_turned = slots

    @kernel
    def even(f: RW, *, unit: float, share: float, scale: float, rest: float, curve: float,
             half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float,
             force_x: float, force_y: float, force_z: float):  # fmt: skip
        """Populations of the cell collide and change places with their opposites."""
        g, force = zeros(q), zeros(axes)
        take(f, g)
        set_uniform(force, force_x, force_y, force_z)
        whole(g, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put_turned(g, f)

    @kernel
    def odd(f: RW, *, unit: float, share: float, scale: float, rest: float, curve: float,
            half_odd: float, half_even: float, keep_shear: float, keep_bulk: float, eddy: float,
            force_x: float, force_y: float, force_z: float):  # fmt: skip
        """Populations arrive turned through the legs of the velocities, and leave through them."""
        g, force = zeros(q), zeros(axes)
        take_turned(f, g)
        set_uniform(force, force_x, force_y, force_z)
        whole(g, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)
        put_legs(g, f)

    return {"even": even, "odd": odd}
