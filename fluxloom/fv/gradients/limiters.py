r"""Limiters of gradients on unstructured meshes: what limiter value keeps the values at faces among those of cells.

``change`` is what a gradient adds to a cell's value at a face (or a corner), ``low <= 0 <= high`` the distance from
that value to the least and the largest one of the cell and its neighbours. The share of a cell is the least of its
faces.

A vector is limited along its own change: with :math:`c_j` what the gradient adds at face ``j`` and :math:`\Delta_i` the
differences to the neighbours, ``change`` is :math:`c_j \cdot c_j` and ``high`` is
:math:`\max(0, \max_i c_j \cdot \Delta_i)`, both in units of :math:`|c_j|`. So one share counts for all components, none
of them is a matter of the axes, and where all changes are along one line it is the share of the component along it.

References
----------
T. J. Barth, D. C. Jespersen: *The design and application of upwind schemes on unstructured meshes*. AIAA 89-0366.
V. Venkatakrishnan: *Convergence to steady state solutions of the Euler equations on unstructured grids with limiters*.
J. Comput. Phys. 118, 1995 (eq. 13 to 15).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from fluxloom.core.errors import SolverError
from fluxloom.core.strategies import Strategy
from fluxloom.kernel.frontend import func
from fluxloom.kernel.intrinsics import max, min, select

__all__ = [
    "BarthJespersen", "Limiter", "Venkatakrishnan", "bounded", "bounded_parts", "minor", "smooth_parts",
    "smooth_share",
]  # fmt: skip

_MINOR, _MAIN = 1e-2, 16.0
"""Part of the square of the range of values around a cell, and how many times the square of a change takes it away."""


@func
def minor(square, reach):
    """Return which squares of changes are so small beside the range of values around a cell that they do not decide.

    ``MINOR max(0, reach - MAIN square)``: ``square`` is that of the change at a face, ``reach`` that of the range. A
    change of a quarter of the range, as a steady gradient has it twice, is limited strictly; else values at faces may
    be beyond the extremes by 5 % of the range at most. Without this round-off decides: at a wall, where all neighbours
    are on one side, a change along it as small as 1e-16 chooses what is left of the gradient across.
    """
    return _MINOR * max(0.0, reach - _MAIN * square)


@func
def bounded_parts(change, low, high, eps2):
    """Barth and Jespersen: the largest share that keeps a change between the least and the largest, as a fraction.

    ``(c m + e) / (c^2 + e)``, with ``c`` the change, ``m`` the largest one on its side, and ``e`` of `minor`. All is
    kept from 1 on. Both parts are 0 where nothing changes and ``e`` is 0, else that below is above 0.
    """
    return select(change > 0.0, high, low) * change + eps2, change * change + eps2


@func
def bounded(phi, change, low, high, eps2):
    """Return a limiter value, or that of Barth and Jespersen where it is less, ``min(phi, (c m + e) / (c^2 + e))``."""
    most, square = bounded_parts(change, low, high, eps2)
    return select(square > most, min(phi, most / square), phi)


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
def smooth_share(phi, change, low, high, eps2):
    """Return a limiter value, or that of Venkatakrishnan, ``a / b`` of `smooth_parts`, where it is less."""
    top, below = smooth_parts(change, low, high, eps2)
    return min(phi, select(below > 0.0, top / below, 1.0))


# --------------------------------------------------------------------------------------------------- schemes


class Limiter(Strategy, what="limiter", group="fluxloom.limiters"):
    """What part of a gradient is kept, face by face.

    A member is a frozen dataclass whose ``__call__`` is a ``@func`` that returns numerator and denominator of that
    part, at least 0, which is 1 where it is more; both may be 0 where nothing changes. It is given the ``change`` to
    the face, ``low`` and ``high`` (see the module), and ``eps2``: squares of changes below it are not to be limited.
    """

    if TYPE_CHECKING:  # a member has to have it: that of the family would be a wrong formula

        def __call__(self, change: Any, low: Any, high: Any, eps2: Any) -> Any: ...  # noqa: D102

    has_threshold: ClassVar[bool] = False
    """Whether small changes are left alone, see `threshold`; that takes the way to each face."""

    def threshold(self, length: float) -> tuple[float, float]:
        """Return ``t`` and ``m``: squares of changes below ``min(t h^3, m)`` of the flow's own are not limited.

        Parameters
        ----------
        length
            That of the body.
        """
        return 0.0, 0.0


@dataclass(frozen=True)
class BarthJespersen(Limiter, name="barth-jespersen"):
    """Barth and Jespersen: values at faces stay between the least and the largest one around a cell."""

    @func
    def __call__(self, change, low, high, eps2):
        """Return numerator and denominator of ``phi = (c m + e) / (c^2 + e)``, at most 1."""
        return bounded_parts(change, low, high, eps2)


@dataclass(frozen=True)
class Venkatakrishnan(Limiter, name="venkatakrishnan"):
    """Venkatakrishnan: smooth, and without effect on small changes, so that steady flows settle.

    Attributes
    ----------
    smoothness
        ``K``: changes below ``(K h / length)^(3/2)`` of the flow's own size are not limited, where ``h`` is twice the
        way to the face.
    length
        In which cells are measured, m; 0: that of the walls (`fluxloom.fv.geometry.symmetry_planes.reference_length`).
    unlimited
        Changes above this part of the flow's own size are limited in any case: cells far away are large.
    """

    smoothness: float = 5.0
    length: float = 0.0
    unlimited: float = 0.03

    def __post_init__(self) -> None:
        for name in ("smoothness", "unlimited"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0.0):
                raise SolverError(f"{name}: a number above 0 is wanted, not {value!r}")
        if not (isfinite(self.length) and self.length >= 0.0):
            raise SolverError(f"length: a number of at least 0 is wanted, not {self.length!r}")

    has_threshold = True

    def threshold(self, length: float) -> tuple[float, float]:
        """Return ``(2 K / length)^3`` and the square of ``unlimited``."""
        return (2.0 * self.smoothness / (self.length or length)) ** 3, self.unlimited**2

    @func
    def __call__(self, change, low, high, eps2):
        """Return numerator and denominator of ``phi = (m^2 + 2 c m + e) / (m^2 + 2 c^2 + c m + e)``."""
        return smooth_parts(change, low, high, eps2)
