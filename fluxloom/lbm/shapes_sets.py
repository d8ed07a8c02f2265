"""Shapes made of others, of a polygon, or of a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.lbm.shapes import Array, Mask, Shape

__all__ = ["Complement", "Difference", "Implicit", "Intersection", "Polygon", "Union"]

_BISECTIONS = 50
"""A double has 53 binary places."""

_SLACK = 1e-9
"""Edges are longer by this share, so that no line slips through a corner; a crossing too many does no harm."""


@dataclass(frozen=True)
class _Several(Shape):
    """Shapes of the same number of dimensions."""

    members: tuple[Shape, ...]

    def __init__(self, *members: Shape) -> None:
        if not members or len({shape.dimensions for shape in members}) > 1:
            raise SolverError(f"{type(self).__name__} is of one or more shapes that have as many dimensions")
        object.__setattr__(self, "members", members)

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        return self.members[0].dimensions

    def crossings(self, start: Array, step: Array) -> Array:
        """Return crossings of the surfaces of all members."""
        return np.hstack([shape.crossings(start, step) for shape in self.members])

    def _ends(self) -> tuple[Array, Array]:
        """Return the bounds of all members, ``(members, dimensions)``."""
        low, high = zip(*(shape.bounds() for shape in self.members), strict=True)
        return np.stack(low), np.stack(high)


class Union(_Several):
    """What is inside any of some shapes: ``Union(a, b, ...)``."""

    def bounds(self) -> tuple[Array, Array]:
        """Return the least and the greatest coordinates."""
        low, high = self._ends()
        return low.min(axis=0), high.max(axis=0)

    def inside(self, points: Array) -> Mask:
        """Return whether points are inside any."""
        found = np.zeros(len(points), dtype=bool)
        for shape in self.members:
            rest = np.flatnonzero(~found)
            found[rest] = shape.inside(points[rest])
        return found


class Intersection(_Several):
    """What is inside each of some shapes: ``Intersection(a, b, ...)``."""

    def bounds(self) -> tuple[Array, Array]:
        """Return the least and the greatest coordinates, at most."""
        low, high = self._ends()
        return low.max(axis=0), high.min(axis=0)

    def inside(self, points: Array) -> Mask:
        """Return whether points are inside all."""
        found = np.ones(len(points), dtype=bool)
        for shape in self.members:
            rest = np.flatnonzero(found)
            found[rest] = shape.inside(points[rest])
        return found


class Difference(_Several):
    """What is inside the first of some shapes, and in none of the others: ``Difference(a, b, ...)``."""

    def bounds(self) -> tuple[Array, Array]:
        """Return those of the first shape."""
        return self.members[0].bounds()

    def inside(self, points: Array) -> Mask:
        """Return whether points are inside the first and no other."""
        found = self.members[0].inside(points)
        for shape in self.members[1:]:
            rest = np.flatnonzero(found)
            found[rest] = ~shape.inside(points[rest])
        return found


@dataclass(frozen=True)
class Complement(Shape):
    """All that is not inside a shape: the solid around a pipe, say. It has no ends."""

    shape: Shape

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        return self.shape.dimensions

    def inside(self, points: Array) -> Mask:
        """Return whether points are not inside the shape."""
        return ~self.shape.inside(points)

    def crossings(self, start: Array, step: Array) -> Array:
        """Return crossings of the surface, which is the same."""
        return self.shape.crossings(start, step)


@dataclass(frozen=True, eq=False)
class Polygon(Shape):
    """A polygon in two dimensions, of any form, by the rule of even and odd.

    Attributes
    ----------
    vertices
        ``(n, 2)``: ``(y, x)`` of each corner, in either sense; the last one is joined to the first.
    """

    vertices: npt.ArrayLike

    def __post_init__(self) -> None:
        corners = np.array(self.vertices, dtype=np.float64)
        if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3 or not np.isfinite(corners).all():
            raise SolverError(f"a polygon has three or more finite corners (y, x), not an array of {corners.shape}")
        object.__setattr__(self, "vertices", corners)

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        return 2

    def bounds(self) -> tuple[Array, Array]:
        """Return the least and the greatest coordinates."""
        corners = np.asarray(self.vertices)
        return corners.min(axis=0), corners.max(axis=0)

    def _edges(self) -> tuple[Array, Array]:
        corners = np.asarray(self.vertices)
        return corners, np.roll(corners, -1, axis=0)

    def inside(self, points: Array) -> Mask:
        """Return whether a line from each point along x crosses an odd number of edges; points on edges are inside."""
        y, x = points.T
        odd, on = np.zeros(len(points), dtype=bool), np.zeros(len(points), dtype=bool)
        for (y0, x0), (y1, x1) in zip(*self._edges(), strict=True):
            side = (y - y0) * (x1 - x0) - (x - x0) * (y1 - y0)  # its sign: on which side of the edge
            odd ^= ((y0 <= y) != (y1 <= y)) & ((side > 0) == (y1 > y0))
            on |= (side == 0) & (np.minimum(y0, y1) <= y) & (y <= np.maximum(y0, y1)) & (
                (np.minimum(x0, x1) <= x) & (x <= np.maximum(x0, x1))
            )  # fmt: skip
        return odd | on

    def crossings(self, start: Array, step: Array) -> Array:
        """Return where lines cross the edges."""
        first, second = self._edges()
        along = second - first
        away = first[None] - start[:, None]
        across = step[:, None, 0] * along[:, 1] - step[:, None, 1] * along[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (away[..., 0] * along[:, 1] - away[..., 1] * along[:, 0]) / across
            where = (away[..., 0] * step[:, None, 1] - away[..., 1] * step[:, None, 0]) / across
            return np.where((where >= -_SLACK) & (where <= 1.0 + _SLACK), t, np.nan)


@dataclass(frozen=True)
class Implicit(Shape):
    """The points at which a function is not positive.

    Attributes
    ----------
    function
        Of points ``(n, dimensions)``; returns ``(n,)``: negative inside, positive outside, continuous.
    axes
        Number of coordinates of its points.
    low, high
        Where it ends, if it does: nothing outside is looked at, and it comes in again over periodic sides.
    pieces
        Into how many equal pieces a link is cut to look for a change of sign. Surfaces that a piece crosses twice are
        not seen.
    """

    function: Callable[[Array], npt.ArrayLike]
    axes: int
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    pieces: int = 4

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        return self.axes

    def bounds(self) -> tuple[Array, Array]:
        """Return the ends that were given."""
        low, high = super().bounds()
        return (
            low if self.low is None else np.asarray(self.low, dtype=np.float64),
            high if self.high is None else np.asarray(self.high, dtype=np.float64),
        )

    def inside(self, points: Array) -> Mask:
        """Return whether the function is not positive, between the ends."""
        low, high = self.bounds()
        found = np.all((points >= low) & (points <= high), axis=1)
        found[found] = self._value(points[found]) <= 0.0
        return found

    def _value(self, points: Array) -> Array:
        values = np.asarray(self.function(points), dtype=np.float64)
        if values.shape != (len(points),) or np.isnan(values).any():
            raise SolverError(
                f"the function of an implicit shape has to return {(len(points),)} numbers for points {points.shape}, "
                f"and no NaN; it returned an array of shape {values.shape}"
            )
        return values

    def crossings(self, start: Array, step: Array) -> Array:
        """Return where ``inside`` changes between the ends of a piece, by bisection."""
        ends = np.linspace(0.0, 1.0, self.pieces + 1)
        states = np.stack([self.inside(start + t * step) for t in ends], axis=1)
        found = np.full((len(start), self.pieces), np.nan)
        row, piece = np.nonzero(states[:, 1:] != states[:, :-1])
        low, high = ends[piece], ends[piece + 1]
        first = states[row, piece]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            same = self.inside(start[row] + middle[:, None] * step[row]) == first
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        found[row, piece] = 0.5 * (low + high)
        return found
