"""Where a cell finds its populations and the force, and where it leaves them: see `fluxloom.lbm.streaming`."""

from __future__ import annotations

from typing import Any, NamedTuple

from fluxloom.kernel.frontend import Func, func
from fluxloom.lbm.lattices import Lattice

__all__ = ["Slots", "set_field", "set_uniform", "slots_of"]


@func
def set_uniform(force, force_x, force_y, force_z):
    """Set the force along the axes of a grid, slowest first; a plane has no z."""
    last = len(force) - 1
    force[last] = force_x
    force[last - 1] = force_y
    if last == 2:
        force[0] = force_z


@func
def set_field(total, force, unit):
    """Set the force of a cell in the unit of storage."""
    for a in range(len(total)):
        total[a] = unit * force[a]


class Slots(NamedTuple):
    """Helpers that copy between an argument ``f`` and an array ``g`` of a kernel.

    Attributes
    ----------
    take, take_legs, take_turned
        ``g_k`` from component ``k`` of the cell; from component ``k`` through leg ``k``; from component and leg ``k'``,
        the opposite of ``k``.
    put, put_legs, put_turned
        ``g_k`` to component ``k``; through leg ``k``; to component ``k'`` of the cell.
    """

    take: Func[..., Any]
    take_legs: Func[..., Any]
    take_turned: Func[..., Any]
    put: Func[..., Any]
    put_legs: Func[..., Any]
    put_turned: Func[..., Any]


def slots_of(lattice: Lattice) -> Slots:
    """Return the helpers of a lattice."""
    q, opposite = lattice.q, lattice.opposite

    @func
    def take(f, g):
        for k in range(q):
            g[k] = f[k]

    @func
    def take_legs(f, g):
        for k in range(q):
            g[k] = f[k][k]

    @func
    def take_turned(f, g):
        for k in range(q):
            g[k] = f[opposite[k]][opposite[k]]

    @func
    def put(g, out):
        for k in range(q):
            out[k] = g[k]

    @func
    def put_legs(g, out):
        for k in range(q):
            out[k][k] = g[k]

    @func
    def put_turned(g, out):
        for k in range(q):
            out[opposite[k]] = g[k]

    return Slots(take, take_legs, take_turned, put, put_legs, put_turned)
