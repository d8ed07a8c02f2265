r"""The upper side of a straight tapered wing with a rounded tip, as a grid of points with normals.

All sections along the stream are alike. At the tip the last one is turned about its chord, so that the wing ends with
half a body of revolution. Lines of the grid lead along the chord, ``i`` from the leading to the trailing edge, and
along the span, ``k`` from the root to the line on which the tip meets its mirror image below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom_lab.problems.wing_planform import WingPlanform

__all__ = ["WingShape", "stretched", "surface_normals", "surface_points"]

Array = npt.NDArray[np.float64]

_FINE = 4001


@dataclass(frozen=True, eq=False)
class WingShape:
    """A straight tapered half of a wing with a symmetric section: ``x`` along the stream, ``y`` the span, ``z`` up.

    Attributes
    ----------
    section : (n, 2)
        Places along the chord from 0 on, and half the thickness there, over the chord. An edge that is blunt
        is closed: the last slope goes on until the thickness is 0, so that chords are a little longer.
    planform
        Without the rounded tip.

    Raises
    ------
    MeshError
        If the places do not increase from 0 on.
    """

    section: Array
    planform: WingPlanform

    def __post_init__(self) -> None:
        x, z = np.asarray(self.section, dtype=np.float64).T
        if x[0] != 0.0 or z[0] != 0.0 or not (np.diff(x) > 0.0).all() or (z[1:-1] <= 0.0).any():
            raise MeshError("wing: section: places that increase from (0, 0) on, with a positive thickness, are wanted")

    def closed(self) -> Array:
        """Return the section with a sharp edge, ``(n, 2)``."""
        section = np.asarray(self.section, dtype=np.float64)
        if section[-1, 1] <= 0.0:
            return section
        slope = (section[-1, 1] - section[-2, 1]) / (section[-1, 0] - section[-2, 0])
        if slope >= 0.0:
            raise MeshError("wing: section: it does not close behind its last place")
        return np.concatenate([section, [[section[-1, 0] - section[-1, 1] / slope, 0.0]]])

    def upper(self, count: int, nose: float, edge: float) -> Array:
        """Return points on the upper side over the chord, ``(count + 1, 2)``, with the first and last distance."""
        from scipy.interpolate import CubicSpline

        section = self.closed()
        root = np.sqrt(section[:, 0])
        curve = CubicSpline(root, section[:, 1])
        fine = np.linspace(0.0, root[-1], _FINE)
        x, z = fine**2, curve(fine)
        z[-1] = 0.0
        arc = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(z)))])
        at = np.interp(stretched(count, nose / arc[-1], edge / arc[-1]) * arc[-1], arc, fine)
        found = np.stack([at**2, np.maximum(curve(at), 0.0)], axis=1)
        found[0], found[-1] = 0.0, (root[-1] ** 2, 0.0)
        return found


def stretched(count: int, first: float, last: float) -> Array:
    r"""Return ``count + 1`` places from 0 to 1 whose first and last distances are about those given.

    .. math:: u = \tfrac12 + \frac{\tanh \delta (t - 1/2)}{2 \tanh(\delta / 2)}, \quad s = \frac{u}{A + (1 - A) u},
        \quad A = \sqrt{last / first}, \quad \frac{\sinh \delta}{\delta} = \frac{1}{N \sqrt{first\ last}}

    Raises
    ------
    MeshError
        If so many distances are too short for the whole.

    References
    ----------
    M. Vinokur: *On one-dimensional stretching functions for finite-difference calculations*. J. Comput. Phys. 50, 1983.
    """
    from scipy.optimize import brentq

    ratio, whole = np.sqrt(last / first), 1.0 / (count * np.sqrt(first * last))
    if whole <= 1.0:
        raise MeshError(f"wing: {count} distances between {first:g} and {last:g} need not be stretched; take fewer")
    delta = float(brentq(lambda d: np.sinh(d) / d - whole, 1e-6, 100.0))  # type: ignore[arg-type]
    t = np.linspace(0.0, 1.0, count + 1)
    u = 0.5 * (1.0 + np.tanh(delta * (t - 0.5)) / np.tanh(0.5 * delta))
    return u / (ratio + (1.0 - ratio) * u)


def surface_points(shape: WingShape, section: Array, spanwise: Array) -> Array:
    """Return points of the upper side, ``(len(section), len(spanwise), 3)``.

    Parameters
    ----------
    shape
        The wing.
    section : (n, 2)
        Places along the chord and half thicknesses.
    spanwise : (m,)
        Parts, from 0 to 1, of the way over straight wing and rounded tip; the tip is longer where the wing is thicker.
    """
    tip = float(shape.planform.chord(shape.planform.span))
    radius = tip * section[:, 1]
    way = spanwise * (shape.planform.span + 0.5 * np.pi * radius)[:, None]
    y = np.minimum(way, shape.planform.span)
    round_ = np.maximum(way - shape.planform.span, 0.0) / np.maximum(radius, 1e-300)[:, None]
    angle = np.clip(np.where(radius[:, None] > 0.0, round_, 0.0), 0.0, 0.5 * np.pi)
    x = shape.planform.leading(y) + shape.planform.chord(y) * section[:, :1]
    thick = shape.planform.chord(y) * section[:, 1:]
    points = np.stack([x, y + radius[:, None] * np.sin(angle), thick * np.cos(angle)], axis=2)
    points[0, :, 2] = points[-1, :, 2] = points[:, -1, 2] = points[:, 0, 1] = 0.0
    return points


def surface_normals(points: Array, root: float) -> Array:
    """Return unit normals at points ``(n, m, 3)`` of the upper side, in the planes of symmetry along the edges.

    Parameters
    ----------
    points
        As `surface_points` has them.
    root
        Length of the span in which normals turn into the plane ``y = 0``.
    """
    one, other = points[1:, 1:] - points[:-1, :-1], points[:-1, 1:] - points[1:, :-1]
    areas = np.cross(one, other)
    areas /= np.maximum(np.linalg.norm(areas, axis=2, keepdims=True), 1e-300)
    found = np.zeros_like(points)
    for a in (slice(None, -1), slice(1, None)):
        for b in (slice(None, -1), slice(1, None)):
            found[a, b] += areas
    # along the edges of the block normals are those of the edge in the plane z = 0: sums of those of thin wings are not
    edge = np.concatenate([points[0], points[1:, -1]])
    way = np.gradient(edge, axis=0)
    out = np.stack([-way[:, 1], way[:, 0], np.zeros(len(edge))], axis=1)
    found[0], found[:, -1] = out[: points.shape[1]], out[points.shape[1] - 1 :]
    t = np.clip(points[..., 1] / root, 0.0, 1.0)
    found[..., 1] *= t * t * (3.0 - 2.0 * t)
    return found / np.linalg.norm(found, axis=2, keepdims=True)
