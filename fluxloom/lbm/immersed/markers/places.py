"""Markers: points on the surface of a body, about one cell apart.

Positions are in cells in the order of the grid's axes, slowest first, ``(y, x)`` or ``(z, y, x)``; the centre of cell
``(j, i)`` is at ``(j, i)``. Each marker stands for a piece of the surface, its measure: arc length in two dimensions,
area in three.

A surface is felt outside of its markers, by part of the width of the delta function (`Delta.thickness`). With
``retract`` markers lie that far inside of the true surface, as far apart as they would be on it, and their measures are
those of the surface on which they lie: forces follow from measures (`plane_weights`), and with larger ones bodies that
move were unstable, as with Guo's force the populations get twice what the velocity lacks. Mass, reference area and
length of a body, of which markers know nothing, stay those of the true surface (W.-P. Breugem, J. Comput. Phys. 231
(2012) 4469).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from fluxloom.core.errors import SolverError

__all__ = ["Markers", "circle", "curve", "ellipse", "sphere", "surface"]

Points = npt.NDArray[np.float64]

_FINE = 4000
"""Pieces of an ellipse whose lengths are added up."""

_SAMPLES = 3.0
"""Samples of a triangle a spacing, of which markers are chosen."""

_NEAREST = 0.9
"""Markers of a triangulated surface are no nearer than so many spacings."""


@dataclass(frozen=True)
class Markers:
    """Points on a surface.

    Attributes
    ----------
    positions : (n, d)
        In cells, slowest axis first.
    measures : (n,)
        Of the pieces that the markers stand for, in cells or cells squared.
    velocities : (n, d)
        Wanted velocities, in cells a step: of a fixed surface that moves along itself; beside the motion of a body.
    """

    positions: Points
    measures: Points
    velocities: Points

    @staticmethod
    def at(positions: npt.ArrayLike, measures: npt.ArrayLike = 1.0, velocities: npt.ArrayLike = 0.0) -> Markers:
        """Return markers; measures and velocities are broadcast.

        Raises
        ------
        SolverError
            If positions are no ``(n, 2)`` or ``(n, 3)``, the rest is of another shape, or a number is not finite or a
            measure not positive.
        """
        x = np.array(positions, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] not in (2, 3) or not len(x):
            raise SolverError(f"markers: positions are (n, 2) or (n, 3) numbers, not of shape {x.shape}")
        size = np.array(_spread("measures", measures, x.shape[:1]))
        u = np.array(_spread("velocities", velocities, x.shape))
        if not (np.isfinite(x).all() and np.isfinite(u).all() and (size > 0).all() and np.isfinite(size).all()):
            raise SolverError("markers: positions and velocities have to be finite, measures positive")
        return Markers(x, size, u)

    @property
    def count(self) -> int:
        """Number of markers."""
        return len(self.positions)

    @property
    def dimensions(self) -> int:
        """Number of axes."""
        return int(self.positions.shape[1])

    @property
    def centre(self) -> Points:
        """The mean of the positions, ``sum s_k X_k / sum s_k`` with the measures ``s``."""
        return np.average(self.positions, axis=0, weights=self.measures)

    def moving(self, velocities: npt.ArrayLike) -> Markers:
        """Return the same markers with wanted velocities, ``(n, d)`` or what broadcasts to it."""
        return Markers.at(self.positions, self.measures, velocities)

    def spinning(self, spin: npt.ArrayLike, centre: npt.ArrayLike | None = None) -> Markers:
        """Return the same markers with ``U_d = Omega x (X - centre)``, radians a step, counter-clockwise in x, y."""
        about = self.centre if centre is None else np.asarray(centre, dtype=np.float64)
        return self.moving(cross(np.asarray(spin, dtype=np.float64), self.positions - about))

    def moved(self, shift: npt.ArrayLike) -> Markers:
        """Return the markers elsewhere."""
        return Markers.at(
            self.positions + _spread("shifts", shift, self.positions.shape), self.measures, self.velocities
        )


def cross(a: Points, b: Points) -> Points:
    """Return the vector product ``a x b``, right-handed in ``x, y, z``, of vectors whose slowest axis is first.

    In two dimensions a spin (a scalar, or ``(..., 1)``) times a vector is a vector; a vector times a vector is
    ``(..., 1)``, positive from x to y.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if b.shape[-1] == 3:
        return -np.cross(a, b)  # turning the order of three axes round is a reflection
    if a.ndim and a.shape[-1] == 2:
        return (a[..., 1] * b[..., 0] - a[..., 0] * b[..., 1])[..., None]
    spin = a[..., 0] if a.ndim else a
    return np.stack([spin * b[..., 1], -spin * b[..., 0]], axis=-1)


def _spread(what: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> Points:
    """Return values that are broadcast to a shape."""
    array = np.asarray(values, dtype=np.float64)
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        raise SolverError(f"markers: {what} are of the shape {shape}, not {array.shape}") from error


def _positive(what: str, value: float) -> float:
    """Return a length that is positive and finite."""
    if not (isinstance(value, int | float | np.number) and np.isfinite(value) and value > 0):
        raise SolverError(f"{what} is a positive number of cells, not {value!r}")
    return float(value)


def _vector(what: str, values: Sequence[float], count: int) -> Points:
    """Return some finite numbers."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (count,) or not np.isfinite(found).all():
        raise SolverError(f"{what} has {count} finite numbers, one an axis, slowest first; not {values!r}")
    return found


def _inside(radius: float, retract: float, what: str) -> float:
    """Return the radius on which markers lie."""
    if not 0.0 <= retract < _positive(f"{what}: radius", radius):
        raise SolverError(f"{what}: markers lie by 0 to less than its radius {radius:g} inside, not by {retract}")
    return radius - retract


def _count(size: float, spacing: float, least: int) -> int:
    return max(least, round(size / spacing))


def circle(
    centre: Sequence[float], radius: float, spacing: float = 1.0, count: int = 0, *, retract: float = 0.0
) -> Markers:
    """Return markers on a circle, ``X_k = centre + R (sin t, cos t)``, ``t = 2 pi k / n``.

    Their measure is ``2 pi R / n``. Evenly spread, from the direction of x on counter-clockwise.

    Parameters
    ----------
    centre
        ``(y, x)``.
    spacing
        Arc length between markers, about.
    count
        Number of markers, instead of the spacing.
    retract
        How far inside of the circle the markers lie, in cells.
    """
    middle, inner = _vector("circle: centre", centre, 2), _inside(radius, retract, "circle")
    if count != int(count) or count < 0:
        raise SolverError(f"circle: count is a whole number of markers, or 0 to go by the spacing, not {count!r}")
    n = int(count) or _count(2 * np.pi * inner, _positive("circle: spacing", spacing), 3)
    angle = 2 * np.pi * np.arange(n) / n
    return Markers.at(middle + inner * np.stack([np.sin(angle), np.cos(angle)], axis=1), 2 * np.pi * inner / n)


def ellipse(
    centre: Sequence[float], radii: Sequence[float], angle: float = 0.0, spacing: float = 1.0, *, retract: float = 0.0
) -> Markers:
    """Return markers on an ellipse, ``(a cos t, b sin t)`` turned by ``angle``, evenly spread along its arc.

    Parameters
    ----------
    centre, radii
        ``(y, x)``; the second radius is along x where the angle is zero.
    angle
        By which it is turned, counter-clockwise.
    retract
        As in `curve`.
    """
    middle, (along_y, along_x) = _vector("ellipse: centre", centre, 2), _vector("ellipse: radii", radii, 2)
    _positive("ellipse: its least radius", min(along_y, along_x))
    if not np.isfinite(angle):
        raise SolverError(f"ellipse: angle is a finite number of radians, not {angle!r}")
    t = 2 * np.pi * np.arange(_FINE) / _FINE
    a, b = along_x * np.cos(t), along_y * np.sin(t)
    x, y = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
    return curve(np.stack([middle[0] + y, middle[1] + x], axis=1), spacing=spacing, retract=retract)


def curve(points: npt.ArrayLike, spacing: float = 1.0, *, closed: bool = True, retract: float = 0.0) -> Markers:
    """Return markers on a line through points, ``(n, 2)`` in the order ``(y, x)``, at arc lengths ``k L / n``.

    Evenly spread, of the measure ``L / n``; at ``(k + 1/2) L / n`` of an open line.

    Parameters
    ----------
    closed
        Whether the last point is joined to the first.
    retract
        How far inside of a closed line the markers lie, in cells: on lines beside its edges.

    Raises
    ------
    SolverError
        If there are no two points, or the line has no inside that is so wide everywhere.
    """
    p = np.asarray(points, dtype=np.float64)
    if p.ndim != 2 or p.shape[1] != 2 or len(p) < 2:
        raise SolverError(f"curve: at least two points (y, x) are wanted, not an array of shape {p.shape}")
    if not np.isfinite(p).all() or (p == p[0]).all():
        raise SolverError("curve: points have to be finite, and not all the same")
    line = np.concatenate([p, p[:1]]) if closed else p
    if retract:
        line = _inset(line, retract, closed)
    arc = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    n = _count(float(arc[-1]), _positive("curve: spacing", spacing), 3 if closed else 2)
    at = arc[-1] * (np.arange(n) / n if closed else (np.arange(n) + 0.5) / n)
    return Markers.at(np.stack([np.interp(at, arc, line[:, k]) for k in (0, 1)], axis=1), arc[-1] / n)


def _inset(line: Points, distance: float, closed: bool) -> Points:
    """Return a closed line, whose last point is the first, whose edges lie beside those of another one, inside.

    A corner between edges with the normals ``a`` and ``b`` moves by ``distance (a + b) / (1 + a b)``.
    """
    edges = np.diff(line, axis=0)
    edges = edges[np.hypot(*edges.T) > 0]
    corners = line[0] + np.concatenate([np.zeros((1, 2)), np.cumsum(edges, axis=0)[:-1]])
    (y, x), (dy, dx) = (corners - corners.mean(axis=0)).T, edges.T
    turn = np.sign((x * dy - y * dx).sum())  # twice the area, counter-clockwise
    inward = turn * np.stack([dx, -dy], axis=1) / np.hypot(dy, dx)[:, None]
    before = np.roll(inward, 1, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = corners + distance * (inward + before) / (1.0 + (inward * before).sum(axis=1))[:, None]
    moved = np.concatenate([moved, moved[:1]])
    # an edge that is used up has turned round, or lies at nothing where the line turns back on itself
    if not (closed and distance > 0 and turn and ((np.diff(moved, axis=0) * edges).sum(axis=1) > 0).all()):
        raise SolverError(
            f"curve: markers cannot lie {distance:g} cells inside: the line is open, or an edge or a corner narrower "
            "than that; retract less, or give the points of the inner line"
        )
    return moved


def sphere(centre: Sequence[float], radius: float, spacing: float = 1.0, *, retract: float = 0.0) -> Markers:
    """Return markers on a sphere, evenly spread along a spiral.

    ``z_k = 1 - (2 k + 1) / n``, ``t_k = pi (3 - sqrt 5) k``, each of the measure ``4 pi R^2 / n``: the heights are
    those of ``n`` equal zones, the angle from one to the next is the golden one (R. Swinbank, R. J. Purser, Q. J. R.
    Meteorol. Soc. 132 (2006) 1769).

    Equal areas: the heights are those of ``n`` equal zones, the angle from one to the next is the golden one (R.
    Swinbank, R. J. Purser, Q. J. R. Meteorol. Soc. 132 (2006) 1769).

    Parameters
    ----------
    centre
        ``(z, y, x)``.
    spacing
        Root of the area of a marker, about.
    retract
        How far inside of the sphere the markers lie, in cells.
    """
    middle, inner = _vector("sphere: centre", centre, 3), _inside(radius, retract, "sphere")
    area = 4 * np.pi * inner**2
    n = _count(area, _positive("sphere: spacing", spacing) ** 2, 4)
    height = 1 - (2 * np.arange(n) + 1) / n
    angle = np.pi * (3 - np.sqrt(5)) * np.arange(n)
    ring = np.sqrt(1 - height**2)
    points = np.stack([height, ring * np.sin(angle), ring * np.cos(angle)], axis=1)
    return Markers.at(middle + inner * points, area / n)


def surface(triangles: npt.ArrayLike, spacing: float = 1.0) -> Markers:
    """Return markers on a triangulated surface, whatever the size of its triangles.

    Samples are laid on every triangle a third of the spacing apart; markers are chosen among them, none nearer to
    another one than nine tenths of the spacing, and get the areas of the samples that are nearest to them.

    Parameters
    ----------
    triangles : (n, 3, 3)
        Corners, in the order ``(z, y, x)``.
    """
    corners = np.asarray(triangles, dtype=np.float64)
    if corners.ndim != 3 or corners.shape[1:] != (3, 3) or not len(corners):
        raise SolverError(f"surface: triangles are (n, 3, 3) numbers, not of shape {corners.shape}")
    sides = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    if not np.isfinite(corners).all() or not sides.any():
        raise SolverError("surface: corners of triangles have to be finite, and some triangle to have an area")
    points, areas = _samples(corners, _positive("surface: spacing", spacing) / _SAMPLES)
    chosen = _apart(points, _NEAREST * spacing)
    nearest = KDTree(points[chosen]).query(points)[1]
    return Markers.at(points[chosen], np.bincount(nearest, areas, len(chosen)))


def _samples(corners: Points, spacing: float) -> tuple[Points, Points]:
    """Return the centres and areas of equal parts of triangles, whose sides are no longer than the spacing."""
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    areas = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    parts = np.maximum(1, np.ceil(sides / spacing)).astype(np.int64)
    points, sizes = [], []
    for n in np.unique(parts):
        i, j = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
        upward, downward = i + j < n, i + j < n - 1
        places = np.concatenate(
            [np.stack([i, j], axis=1)[upward] + 1 / 3, np.stack([i, j], axis=1)[downward] + 2 / 3]
        ) / n  # fmt: skip
        mine = corners[(parts == n) & (areas > 0)]
        edges = np.stack([mine[:, 1] - mine[:, 0], mine[:, 2] - mine[:, 0]], axis=1)
        points.append((mine[:, None, 0] + np.einsum("pk,tkd->tpd", places, edges)).reshape(-1, 3))
        sizes.append(np.repeat(areas[(parts == n) & (areas > 0)] / n**2, n**2))
    return np.concatenate(points), np.concatenate(sizes)


def _apart(points: Points, distance: float) -> npt.NDArray[np.int64]:
    """Return some of the points, in order, none within a distance of another one."""
    tree = KDTree(points)
    free = np.ones(len(points), dtype=bool)
    chosen = []
    for k in range(len(points)):
        if free[k]:
            chosen.append(k)
            free[tree.query_ball_point(points[k], distance)] = False
    return np.array(chosen, dtype=np.int64)
