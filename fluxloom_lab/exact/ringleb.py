r"""Ringleb's flow: a gas that turns around a blade, exact with compressibility, subsonic and supersonic.

With the density and the speed of sound at rest as units, for ``gamma`` = 1.4, a speed ``q`` has

.. math:: a^2 = 1 - \frac{q^2}{5}, \quad \rho = a^5, \quad p = \frac{a^7}{1.4}, \quad
          J = \frac{1}{a} + \frac{1}{3 a^3} + \frac{1}{5 a^5} - \frac{1}{2} \ln \frac{1 + a}{1 - a}

and lies, on the streamline ``k`` whose greatest speed is ``k``, at

.. math:: x = \frac{1}{2 \rho} \left(\frac{2}{k^2} - \frac{1}{q^2}\right) - \frac{J}{2}, \quad
          y = \pm \frac{1}{\rho k q} \sqrt{1 - q^2 / k^2}

so points of one speed are on a circle, :math:`(x + J / 2)^2 + y^2 = (2 \rho q^2)^{-2}`. Streamlines with ``k`` below
5/3 are smooth; those beyond run into a limit line.

References
----------
F. Ringleb: *Exakte Lösungen der Differentialgleichungen einer adiabatischen Gasströmung*. Z. Angew. Math. Mech. 20,
1940.
G. Chiocchia: *Exact solutions to transonic and supersonic flows*. AGARD-AR-211, 1985.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fv.compressible.gas import bisect

__all__ = ["LIMIT", "ringleb_place", "ringleb_speed", "ringleb_state"]

Array = npt.NDArray[np.float64]

LIMIT = 5.0 / 3.0
"""Streamlines below it are smooth everywhere."""

_GAMMA = 1.4
_SONIC = (1.0 / 1.2) ** 0.5
"""``q`` at Mach 1."""
_SLOWEST = 1e-6
_STEPS = 256


def _gas(q: Array) -> tuple[Array, Array]:
    """Return the density and ``J``."""
    a2 = 1.0 - 0.2 * q * q
    a = np.sqrt(a2)
    # (1 + a) / (1 - a) without the difference, which has no digits where q is small
    series = 1.0 / a + 1.0 / (3.0 * a * a2) + 1.0 / (5.0 * a * a2 * a2)
    return a * a2 * a2, series - 0.5 * np.log((1.0 + a) ** 2 / (0.2 * q * q))


def ringleb_place(speed: npt.ArrayLike, streamline: npt.ArrayLike) -> Array:
    """Return where the flow has a speed on a streamline, ``(n, 2)``, in the half with ``y >= 0``.

    Parameters
    ----------
    speed : (n,)
        ``q``, above 0 and up to ``k``.
    streamline : (n,)
        ``k``, its greatest speed, below `LIMIT`.

    Raises
    ------
    SolverError
        For other values.
    """
    q, k = np.broadcast_arrays(np.asarray(speed, dtype=np.float64), np.asarray(streamline, dtype=np.float64))
    if not ((q > 0.0) & (q <= k) & (k < LIMIT)).all():
        raise SolverError("a speed above 0 and up to that of the streamline is wanted, and streamlines below 5/3")
    rho, j = _gas(q)
    x = 0.5 / rho * (2.0 / k**2 - 1.0 / q**2) - 0.5 * j
    return np.stack([x, np.sqrt(1.0 - (q / k) ** 2) / (rho * k * q)], axis=-1)


def ringleb_speed(points: Array) -> tuple[Array, Array]:
    """Return the speeds ``q`` and streamlines ``k`` of points.

    Circles of equal speed contain those of greater speeds as long as these are subsonic, so where the sonic circle
    does not contain a point its speed is the only subsonic one, and otherwise the first one above. A point beyond all
    circles, or on a streamline behind a limit line, is outside of the flow.

    Parameters
    ----------
    points : (n, 2)
        In the units of the module.

    Raises
    ------
    SolverError
        If a point is outside of the flow.
    """
    x, y = np.asarray(points, dtype=np.float64).T
    y2 = y * y

    def beyond(q: Array) -> Array:
        """How far the points are outside of the circles of some speeds."""
        rho, j = _gas(q)
        return np.sqrt((x + 0.5 * j) ** 2 + y2) - 0.5 / (rho * q * q)

    fast = beyond(np.full_like(x, _SONIC)) < 0.0
    low, high = np.where(fast, _SONIC, _SLOWEST), np.full_like(x, _SONIC)
    open_ = fast.copy()
    for q in np.linspace(_SONIC, LIMIT, _STEPS + 1)[1:]:
        passed = beyond(np.full_like(x, q)) >= 0.0
        high = np.where(open_ & passed, q, high)
        low = np.where(open_ & ~passed, q, low)
        open_ &= ~passed
    if open_.any():
        _refuse(np.asarray(points)[open_][0])
    q = bisect(beyond, low, high)
    rho, j = _gas(q)
    # q^2 / k^2 from x; it is 1, to round-off, on the axis
    share = 0.5 * (1.0 + 2.0 * rho * q * q * (x + 0.5 * j))
    k = q / np.sqrt(np.clip(share, 1e-300, 1.0))
    if (behind := k >= LIMIT).any():
        _refuse(np.asarray(points)[behind][0])
    return q, k


def _refuse(point: Array) -> None:
    raise SolverError(
        f"the point {np.round(point, 6).tolist()} is on no streamline of Ringleb's flow below 5/3: take one with a "
        "larger x or |y|"
    )


def ringleb_state(points: Array) -> Array:
    """Return the primitive states ``(rho, u, v, p)`` of Ringleb's flow at points.

    It comes from the left below the axis and leaves to the left above it; its mirror image in time, with the opposite
    velocity, is a flow too.

    Parameters
    ----------
    points : (n, 2)
        In the units of the module: the density at rest is 1, the speed of sound at rest 1.

    Returns
    -------
    states : (n, 4)
        Density, velocity, pressure.

    Raises
    ------
    SolverError
        If a point is outside of the flow.
    """
    q, k = ringleb_speed(points)
    rho, _ = _gas(q)
    sine = q / k
    along = -np.sign(np.asarray(points)[:, 1]) * np.sqrt(np.maximum(1.0 - sine * sine, 0.0))
    return np.stack([rho, q * along, q * sine, rho**_GAMMA / _GAMMA], axis=1)
