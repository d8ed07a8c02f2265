"""Limiters of slopes on unstructured meshes: what share of a slope keeps the values at faces among those of cells.

``change`` is what a slope adds to a cell's value at a face (or a corner), ``low <= 0 <= high`` the distance from that
value to the least and the largest one of the cell and its neighbours. The share of a cell is the least of its faces.

References
----------
T. J. Barth, D. C. Jespersen: *The design and application of upwind schemes on unstructured meshes*. AIAA 89-0366.
V. Venkatakrishnan: *Convergence to steady state solutions of the Euler equations on unstructured grids with limiters*.
J. Comput. Phys. 118, 1995 (eq. 13 to 15).
"""

from __future__ import annotations

from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import min, select

__all__ = ["bounded", "smooth_share"]


@func
def bounded(share, change, low, high):
    """Barth and Jespersen: the largest share of a slope that keeps a change between the least and the largest."""
    most = select(change > 0.0, high, low)
    return select(change * change > most * change, min(share, most / change), share)


@func
def smooth_share(share, change, low, high, eps2):
    """Venkatakrishnan: ``(m^2 + 2 c m + e) / (m^2 + 2 c^2 + c m + e)``, which has no kink at ``c = m``: flows settle.

    With ``c`` the change, ``m`` the largest one on its side, and ``e = (K h)^3`` in units of their square: below it
    nothing is limited. By itself it is at most 1.094; where a cell begins with a share of 1, all is kept for
    ``c < m / 2``.
    """
    most = select(change > 0.0, high, low)
    top = most * most + 2.0 * change * most + eps2
    below = most * most + 2.0 * change * change + change * most + eps2
    return min(share, select(below > 0.0, top / below, 1.0))
