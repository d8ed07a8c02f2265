"""What a collision operator computes, as helpers of the kernel language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fluxloom.kernel.frontend import Func, func
from fluxloom.kernel.intrinsics import zeros
from fluxloom.lbm.lattices import Lattice

__all__ = ["Operator", "operator_of"]


@dataclass(frozen=True)
class Operator:
    """What an operator computes, for the kernel language; populations are changed in place.

    Attributes
    ----------
    whole
        ``whole(g, force, *words)``: a collision, see `words`. Without a force ``force`` is not looked at.
    given
        ``given(g, above, u, force, *words)``: the same with moments that are known, ``rho - 1`` and the velocity.
    """

    whole: Func[..., Any]
    given: Func[..., Any]


def operator_of(lattice: Lattice, forced: bool, prepare: Func[..., Any], relax: Func[..., Any]) -> Operator:
    """Return the operator of two helpers.

    Parameters
    ----------
    prepare
        ``prepare(g, j)`` sets the momentum ``j`` and returns ``A``; it may rewrite ``g`` for ``relax``.
    relax
        ``relax(g, above, j, force, *words)`` leaves populations after collision in ``g``.
    """
    axes = lattice.dimensions

    @func
    def whole(g, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy):
        j = zeros(axes)
        excess = prepare(g, j)
        relax(g, excess, j, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)

    @func
    def given(g, above, u, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy):
        j = zeros(axes)
        prepare(g, j)
        excess = unit * above[0]
        for a in range(axes):
            j[a] = (unit + excess) * u[a]
            if forced:
                j[a] -= 0.5 * force[a]
        relax(g, excess, j, force, unit, share, scale, rest, curve, half_odd, half_even, keep_shear, keep_bulk, eddy)

    return Operator(whole, given)
