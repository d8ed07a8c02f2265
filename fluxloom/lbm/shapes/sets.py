"""Shapes made of others, of a polygon, or of a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.lbm.shapes.shapes import SMALLEST, Array, Mask, Shape

__all__ = ["Complement", "Difference", "Implicit", "Intersection", "Polygon", "Union"]

_BISECTIONS = 50
"""A double has 53 binary places."""

_SAMPLES = 16
"""Values on a link by which zeros, and minima near zero, are looked for."""

_MANY = 300_000
"""Points from which on those near the surface are looked for first."""

_STEEP = 4.0
"""Changes of a function from cell to cell that its values next to the surface do not exceed."""

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

    def parts(self) -> Sequence[Shape]:
        """Return what it is the union of."""
        return [part for shape in self.members for part in shape.parts()]

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
        """Return where lines cross the edges, ``t`` of ``x + t s = p + r e`` with ``0 <= r <= 1``."""
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

    def near(self, axes: Sequence[Array]) -> Mask | None:
        """Return at which points the function is no more than it changes over some cells; None for few points."""
        if np.prod([axis.size for axis in axes]) <= _MANY:
            return None
        shape = tuple(axis.size for axis in axes)
        value = np.empty(shape)
        for k, plane in enumerate(axes[0]):
            at = np.meshgrid([plane], *axes[1:], indexing="ij")
            value[k] = np.abs(self._value(np.stack([x.ravel() for x in at], axis=1))).reshape(shape[1:])
        change = np.zeros(shape)
        for axis in range(len(axes)):
            step = np.abs(np.diff(value, axis=axis, append=np.take(value, [-1], axis=axis)))
            change = np.maximum(change, np.maximum(step, np.roll(step, 1, axis=axis)))
        return value <= _STEEP * change

    def entry(self, start: Array, step: Array) -> Array:
        """Return where segments come into the shape: where the function has a zero, or a minimum that is none."""
        ends = np.linspace(0.0, 1.0, _SAMPLES + 1)
        values = np.stack([self._outward(start + t * step) for t in ends], axis=1)
        with np.errstate(invalid="ignore"):  # beyond the bounds it is infinite
            change = np.nan_to_num(np.abs(np.diff(values, axis=1)), nan=0.0, posinf=0.0)
        found, low, high = (np.full(len(start), np.inf) for _ in range(3))
        for j in range(_SAMPLES + 1):
            at = np.flatnonzero(np.isinf(low))
            first, last = max(j - 1, 0), min(j + 1, _SAMPLES)
            here, to = values[at, j], np.full(at.size, ends[j])
            into = (here <= 0.0) & (j > 0)
            least = (here > 0.0) & (here <= values[at, first]) & (here <= values[at, last])
            dips = np.flatnonzero(least & (here <= 2.0 * change[at, max(j - 2, 0) : j + 2].max(axis=1)))
            some = at[dips]
            to[dips], value = self._least(start[some], step[some], ends[first], ends[last])
            into[dips] = value <= 0.0
            low[at[into]], high[at[into]] = ends[first], to[into]
        at = np.flatnonzero(np.isfinite(low))
        a, b = low[at], high[at]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (a + b)
            yes = self._outward(start[at] + middle[:, None] * step[at]) <= 0.0
            a, b = np.where(yes, a, middle), np.where(yes, middle, b)
        found[at] = np.maximum(0.5 * (a + b), SMALLEST)
        return found

    def _outward(self, points: Array) -> Array:
        """Return the function, infinite beyond the bounds."""
        low, high = self.bounds()
        found = np.full(len(points), np.inf)
        within = np.all((points >= low) & (points <= high), axis=1)
        found[within] = self._value(points[within])
        return found

    def _least(self, start: Array, step: Array, low: float, high: float) -> tuple[Array, Array]:
        """Return where on segments, between two shares of them, the function is least, and its value there."""
        a, b = np.full(len(start), low), np.full(len(start), high)
        for _ in range(_BISECTIONS if len(start) else 0):
            first, second = (2.0 * a + b) / 3.0, (a + 2.0 * b) / 3.0
            less = self._outward(start + first[:, None] * step) < self._outward(start + second[:, None] * step)
            a, b = np.where(less, a, first), np.where(less, second, b)
        middle = 0.5 * (a + b)
        return middle, self._outward(start + middle[:, None] * step)

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
