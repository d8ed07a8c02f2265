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

__all__ = ["bounded", "bounded_parts", "smooth_parts", "smooth_share"]


@func
def bounded_parts(change, low, high):
    """Barth and Jespersen: the largest share that keeps a change between the least and the largest, as a fraction.

    Both parts are 0 for no change, else that below is above 0; all is kept from 1 on.
    """
    return select(change > 0.0, high, low) * change, change * change


@func
def bounded(share, change, low, high):
    """Return a share, or that of Barth and Jespersen where it is less."""
    most, square = bounded_parts(change, low, high)
    return select(square > most, min(share, most / square), share)


@func
def smooth_parts(change, low, high, eps2):
    """Venkatakrishnan: ``(m^2 + 2 c m + e) / (m^2 + 2 c^2 + c m + e)``, which has no kink at ``c = m``: flows settle.

    With ``c`` the change, ``m`` the largest one on its side, and ``e = (K h)^3`` in units of their square: below it
    nothing is limited. By itself it is at most 1.094; where a cell begins with a share of 1, all is kept for
    ``c < m / 2``. Returned as a fraction; both parts are 0 where nothing changes, else that below is above 0.
    """
    most = select(change > 0.0, high, low)
    return most * most + 2.0 * change * most + eps2, most * most + 2.0 * change * change + change * most + eps2


@func
def smooth_share(share, change, low, high, eps2):
    """Return a share, or that of Venkatakrishnan, `smooth_parts`, where it is less."""
    top, below = smooth_parts(change, low, high, eps2)
    return min(share, select(below > 0.0, top / below, 1.0))
