"""Where populations are between two steps (`.schemes`): a constant of the kernels that look at them.

Source: P. Bailey, J. Myre, S. Walsh, D. Lilja, M. Saar, ICPP 2009 (turned ones).
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.kernel.frontend import func

__all__ = ["Stored"]


@dataclass(frozen=True)
class Stored:
    """The places of the populations that left a cell.

    Attributes
    ----------
    ahead
        Whether they are where they go to, one cell further: kernels see them through the stencil of the velocities.
    turned
        Whether they are in the slots of the opposite directions.
    """

    ahead: bool = False
    turned: bool = False

    @func
    def load(self, f, g, lattice):
        """``g_k = f_k(x + c_k)`` of populations that are ahead, ``f_k'(x)`` of turned ones, ``f_k(x)`` of others."""
        for k in range(lattice.q):
            if self.ahead:
                g[k] = f[k][k]
            elif self.turned:
                g[k] = f[lattice.opposite[k]]
            else:
                g[k] = f[k]

    @func
    def store(self, g, f, lattice):
        """``f_k(x + c_k) = g_k`` of populations that are ahead, ``f_k(x) = g_k`` of others; they are not turned."""
        for k in range(lattice.q):
            if self.ahead:
                f[k][k] = g[k]
            else:
                f[k] = g[k]
