"""Shapes of solid bodies: which points are inside, and where a segment meets the surface.

Coordinates are in cells, in the order of the axes of the grid, slowest first: ``(z, y, x)`` or ``(y, x)``. The centre
of the cell with index ``(k, j, i)`` is at ``(k, j, i)``; the side ``xmin`` of a box is at ``x = -1/2``. Shapes are
closed: points on the surface are inside.

A shape gives the parameters ``t`` at which the line ``start + t step`` may cross its surface, from the formula of
that surface. `Shape.fraction` cuts the segment there and takes the first piece whose middle is inside, which needs no
rule about the order of crossings and serves unions and differences (`fluxloom.lbm.shapes.sets`) too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError

__all__ = ["SMALLEST", "TOUCH", "Array", "Block", "Circle", "Cylinder", "HalfSpace", "Mask", "Shape", "Sphere"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SMALLEST = 2.0**-24
"""The least fraction of a link: a surface through the centre of a cell is taken to be this far from it."""

TOUCH = 1e-9
"""Share of a segment: what is in a shape for less only touches it."""

_WIDE = 1.5
"""A ball of that radius has cells wherever a link could lead through it."""


class Shape(Protocol):
    """A solid. Shapes of one's own derive from this class and give `dimensions`, `inside` and `crossings`."""

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        ...

    @abstractmethod
    def inside(self, points: Array) -> Mask:
        """Return whether points ``(n, dimensions)`` are inside or on the surface, ``(n,)``."""

    @abstractmethod
    def crossings(self, start: Array, step: Array) -> Array:
        """Return all ``t`` at which lines ``start + t step`` cross the surface.

        Parameters
        ----------
        start, step : (n, dimensions)

        Returns
        -------
        (n, m)
            In no order; more than there are do no harm; NaN or infinite where a line has fewer than ``m``. Those out of
            ``[0, 1]`` are not looked at.
        """

    def bounds(self) -> tuple[Array, Array]:
        """Return the least and the greatest coordinates, ``(dimensions,)`` each; infinite where there are none."""
        infinite = np.full(self.dimensions, np.inf)
        return -infinite, infinite

    def fraction(self, start: Array, step: Array) -> Array:
        """Return where segments first meet the surface: the ``q`` in ``(0, 1]``, at ``start + q step``.

        Parameters
        ----------
        start, step : (n, dimensions)
            ``start`` is outside, ``start + step`` inside. A start on the surface, as rounding may have it, gives
            `SMALLEST`.
        """
        cuts = np.clip(np.nan_to_num(self.crossings(start, step), nan=1.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
        ends = np.zeros((len(start), 1))
        cuts = np.hstack([ends, np.sort(cuts, axis=1), ends + 1.0])
        q = np.ones(len(start))
        todo = np.ones(len(start), dtype=bool)
        for low, high in zip(cuts.T[:-1], cuts.T[1:], strict=True):
            at = np.flatnonzero(todo & (high > low))
            if at.size:
                middle = start[at] + (0.5 * (low[at] + high[at]))[:, None] * step[at]
                at = at[self.inside(middle)]
                q[at] = low[at]
                todo[at] = False
        return np.maximum(q, SMALLEST)

    def measure(self) -> float | None:
        """Return how many cells it is large, in the plane its area; None where that is not known, or infinite."""
        return None

    # ---------------------------------------------------------------------------- links between fluid cells
    @property
    def wide(self) -> bool:
        """Whether it is so wide that no link between fluid cells leads through it, from one side to another."""
        return False

    def parts(self) -> Sequence[Shape]:
        """Return shapes which together are this one."""
        return [self]

    def near(self, axes: Sequence[Array]) -> Mask | None:
        """Return which of the points of a grid may be no further than a cell from the surface; None: all of them.

        Parameters
        ----------
        axes
            The coordinates of the points along each axis.
        """
        return None

    def entry(self, start: Array, step: Array) -> Array:
        """Return where segments come into the shape, the least ``q`` in ``[0, 1)``; infinite where they do not.

        Parameters
        ----------
        start, step : (n, dimensions)
            The start is outside, the end anywhere.
        """
        found = np.full(len(start), np.inf)
        cuts = np.nan_to_num(self.crossings(start, step), nan=1.0, posinf=1.0, neginf=0.0)
        met = np.flatnonzero(((cuts > 0.0) & (cuts < 1.0)).any(axis=1))
        if not met.size:
            return found
        cuts = np.hstack([np.sort(np.clip(cuts[met], 0.0, 1.0), axis=1), np.ones((met.size, 1))])
        for low, high in zip(cuts.T[:-1], cuts.T[1:], strict=True):
            at = np.flatnonzero(np.isinf(found[met]) & (high - low > TOUCH))
            middle = start[met[at]] + (0.5 * (low[at] + high[at]))[:, None] * step[met[at]]
            at = at[self.inside(middle)]
            found[met[at]] = np.maximum(low[at], SMALLEST)
        return found


def _vector(what: str, values: Sequence[float], dimensions: Sequence[int] = (2, 3)) -> Array:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or found.size not in dimensions or np.isnan(found).any():
        counts = " or ".join(map(str, dimensions))
        raise SolverError(f"{what} has {counts} coordinates in the order of the axes of the grid, not {values!r}")
    return found


def _positive(what: str, value: float) -> None:
    if not (value > 0 and np.isfinite(value)):
        raise SolverError(f"{what} must be positive, not {value!r} (in cells)")


def quadratic(a: Array, b: Array, c: Array) -> Array:
    """Return both roots of ``a t^2 + 2 b t + c = 0``, ``(n, 2)``, without cancellation; NaN where there are none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        s = -(b + np.copysign(np.sqrt(b * b - a * c), b))
        return np.stack([s / a, c / s], axis=1)


@dataclass(frozen=True)
class _Ball(Shape):
    """Points at no more than ``radius`` from ``center``."""

    center: tuple[float, ...]
    radius: float

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        return len(self.center)

    def bounds(self) -> tuple[Array, Array]:
        """Return the least and the greatest coordinates."""
        return np.subtract(self.center, self.radius), np.add(self.center, self.radius)

    @property
    def wide(self) -> bool:
        """Whether no link between fluid cells leads through it."""
        return self.radius >= _WIDE

    def measure(self) -> float:
        """Return the area of a disc, the volume of a ball."""
        return pi * self.radius**2 * (1.0 if self.dimensions == 2 else 4.0 / 3.0 * self.radius)

    def inside(self, points: Array) -> Mask:
        """Return whether points are inside."""
        away = points - np.asarray(self.center)
        return np.einsum("na,na->n", away, away) <= self.radius**2

    def crossings(self, start: Array, step: Array) -> Array:
        """Return the roots of ``|start + t step - center|^2 = radius^2``."""
        away = start - np.asarray(self.center)
        dot = "na,na->n"
        square = np.einsum(dot, away, away) - self.radius**2
        return quadratic(np.einsum(dot, step, step), np.einsum(dot, away, step), square)


@dataclass(frozen=True)
class Circle(_Ball):
    """A disc, in two dimensions.

    Attributes
    ----------
    center
        ``(y, x)``, in cells.
    radius
        In cells.
    """

    def __post_init__(self) -> None:
        _vector("the centre of a circle", self.center, (2,))
        _positive("the radius of a circle", self.radius)


@dataclass(frozen=True)
class Sphere(_Ball):
    """A ball, in three dimensions.

    Attributes
    ----------
    center
        ``(z, y, x)``, in cells.
    radius
        In cells.
    """

    def __post_init__(self) -> None:
        _vector("the centre of a sphere", self.center, (3,))
        _positive("the radius of a sphere", self.radius)


@dataclass(frozen=True)
class Cylinder(Shape):
    """A circular cylinder in three dimensions, endless or with flat ends.

    Attributes
    ----------
    center
        A point of its axis, in the middle between the ends: ``(z, y, x)``.
    radius
        In cells.
    direction
        Of its axis; any length.
    length
        Between the ends; None: endless.
    """

    center: tuple[float, ...]
    radius: float
    direction: tuple[float, ...]
    length: float | None = None

    def __post_init__(self) -> None:
        _vector("the centre of a cylinder", self.center, (3,))
        _positive("the radius of a cylinder", self.radius)
        if self.length is not None:
            _positive("the length of a cylinder", self.length)
        if not np.linalg.norm(_vector("the direction of a cylinder", self.direction, (3,))) > 0:
            raise SolverError("the direction of a cylinder must not be zero")

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        return 3

    @property
    def _along(self) -> Array:
        direction = np.asarray(self.direction, dtype=np.float64)
        return direction / np.linalg.norm(direction)

    def bounds(self) -> tuple[Array, Array]:
        """Return the least and the greatest coordinates; endless along each axis that it is not at right angles to.

        ``center +- (R sqrt(1 - e_a^2) + |e_a| length / 2)`` with the unit vector ``e`` of its axis.
        """
        along, half = np.abs(self._along), np.inf if self.length is None else 0.5 * self.length
        reach = self.radius * np.sqrt(np.maximum(1.0 - along**2, 0.0))
        reach = reach + np.where(along > 0, along, 0.0) * (half if np.isfinite(half) else 0.0)
        reach = np.where((along > 0) & np.isinf(half), np.inf, reach)
        return np.asarray(self.center) - reach, np.asarray(self.center) + reach

    @property
    def wide(self) -> bool:
        """Whether no link between fluid cells leads through it."""
        return self.radius >= _WIDE and (self.length is None or self.length >= 2.0 * _WIDE)

    def measure(self) -> float | None:
        """Return the volume between the ends, ``pi R^2 length``."""
        return None if self.length is None else pi * self.radius**2 * self.length

    def _parts(self, vectors: Array) -> tuple[Array, Array]:
        """Return components along the axis, ``(n,)``, and at right angles to it, ``(n, 3)``."""
        along = vectors @ self._along
        return along, vectors - along[:, None] * self._along

    def inside(self, points: Array) -> Mask:
        """Return whether points are inside: ``|x_across| <= R`` and ``|x_along| <= length / 2``."""
        along, across = self._parts(points - np.asarray(self.center))
        near = np.einsum("na,na->n", across, across) <= self.radius**2
        return near if self.length is None else near & (np.abs(along) <= 0.5 * self.length)

    def crossings(self, start: Array, step: Array) -> Array:
        """Return crossings ``t`` of the mantle, ``|x_across + t s_across| = R``, and of the planes of the ends."""
        along, across = self._parts(start - np.asarray(self.center))
        speed, sideways = self._parts(step)
        dot = "na,na->n"
        square = np.einsum(dot, across, across) - self.radius**2
        mantle = quadratic(np.einsum(dot, sideways, sideways), np.einsum(dot, across, sideways), square)
        if self.length is None:
            return mantle
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = [(end - along) / speed for end in (-0.5 * self.length, 0.5 * self.length)]
        return np.hstack([mantle, np.stack(ends, axis=1)])


@dataclass(frozen=True)
class Block(Shape):
    """A rectangle or cuboid whose faces are at right angles to the axes.

    Attributes
    ----------
    low, high
        Two opposite corners, in cells, in the order of the axes of the grid; infinite: no face there.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        low = _vector("a corner of a block", self.low)
        if not (low < _vector("a corner of a block", self.high, (low.size,))).all():
            raise SolverError(f"a block needs low < high along each axis, not {self.low} and {self.high}")

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        return len(self.low)

    def bounds(self) -> tuple[Array, Array]:
        """Return the corners."""
        return np.asarray(self.low, dtype=np.float64), np.asarray(self.high, dtype=np.float64)

    @property
    def wide(self) -> bool:
        """Whether no link between fluid cells leads through it: a cell along each axis is enough."""
        return bool(np.all(np.subtract(self.high, self.low) >= 1.0))

    def measure(self) -> float | None:
        """Return the area or volume ``prod (high_a - low_a)``, if it has an end along each axis."""
        found = float(np.prod(np.subtract(self.high, self.low)))
        return found if np.isfinite(found) else None

    def inside(self, points: Array) -> Mask:
        """Return whether points are inside."""
        low, high = self.bounds()
        return np.all((points >= low) & (points <= high), axis=1)

    def crossings(self, start: Array, step: Array) -> Array:
        """Return crossings of the planes of all faces, ``t = (corner_a - x_a) / s_a``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.hstack([(corner - start) / step for corner in self.bounds()])


@dataclass(frozen=True)
class HalfSpace(Shape):
    """All points behind a plane (a line, in two dimensions).

    Attributes
    ----------
    point
        Of the plane.
    normal
        Points out of the solid, into the fluid; any length.
    """

    point: tuple[float, ...]
    normal: tuple[float, ...]

    def __post_init__(self) -> None:
        point = _vector("the point of a half space", self.point)
        if not np.linalg.norm(_vector("the normal of a half space", self.normal, (point.size,))) > 0:
            raise SolverError("the normal of a half space must not be zero")

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        return len(self.point)

    def bounds(self) -> tuple[Array, Array]:
        """Return where it ends, if its normal is along an axis."""
        normal = np.asarray(self.normal, dtype=np.float64)
        point = np.asarray(self.point, dtype=np.float64)
        lone = np.count_nonzero(normal) == 1
        return (
            np.where(lone & (normal < 0), point, -np.inf),
            np.where(lone & (normal > 0), point, np.inf),
        )

    @property
    def wide(self) -> bool:
        """Whether no link between fluid cells leads through it."""
        return True

    def inside(self, points: Array) -> Mask:
        """Return whether points are behind the plane, ``(x - point) . n <= 0``."""
        return (points - np.asarray(self.point)) @ np.asarray(self.normal, dtype=np.float64) <= 0.0

    def crossings(self, start: Array, step: Array) -> Array:
        """Return where lines cross the plane, ``t = (point - x) . n / s . n``."""
        normal = np.asarray(self.normal, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (((np.asarray(self.point) - start) @ normal) / (step @ normal))[:, None]
