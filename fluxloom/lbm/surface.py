"""Closed surfaces of triangles as shapes.

A point is inside if a line from it along x crosses the surface an odd number of times. Each triangle is crossed or not
by the parity of its edges, seen along x: an edge is crossed by the same rule and the same arithmetic in both triangles
that share it, so that every line crosses a closed surface an even number of times, whatever corner or edge it meets,
and none slips through (the rule of half-open edges of scan conversion, J. Foley et al., *Computer Graphics: Principles
and Practice*, section 3.6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import cos, radians, sin
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.lbm.shapes import SMALLEST, Array, Mask, Shape
from fluxloom.lbm.shapes_stl import read_stl

__all__ = ["Surface"]

Indices = npt.NDArray[np.int64]

_PAIRS = 1 << 20
"""Pairs of a triangle and a place that are looked at together."""

_PIECE = 4.0
"""Triangles with longer edges, in cells, are cut for the search of those near a link."""

_SLACK = 1e-9
"""Triangles are larger by this share, so that no link slips through an edge; a hit twice does no harm."""


@dataclass(frozen=True, eq=False)
class Surface(Shape):
    """The inside of a closed surface, in three dimensions.

    Points on the surface itself may be taken to be inside or outside.

    Attributes
    ----------
    vertices : float64 (n, 3)
        ``(z, y, x)``, in cells.
    triangles : int64 (m, 3)
        Numbers of vertices; the sense does not matter.

    Raises
    ------
    SolverError
        If the surface is not closed: an edge belongs to an odd number of triangles.
    """

    vertices: Array
    triangles: Indices

    def __post_init__(self) -> None:
        vertices = np.ascontiguousarray(self.vertices, dtype=np.float64)
        triangles = np.ascontiguousarray(self.triangles, dtype=np.int64)
        if vertices.ndim != 2 or vertices.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
            raise SolverError(
                f"a surface has vertices (n, 3) and triangles (m, 3), not {vertices.shape} and {triangles.shape}"
            )
        if not triangles.size or triangles.min() < 0 or triangles.max() >= len(vertices):
            raise SolverError(f"the triangles of a surface are numbers of its {len(vertices)} vertices, and not none")
        a, b, c = triangles.T
        triangles = triangles[(a != b) & (b != c) & (c != a)]
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles)
        self._check_closed()

    def _check_closed(self) -> None:
        edges = np.sort(np.concatenate([self.triangles[:, [k, (k + 1) % 3]] for k in range(3)]), axis=1)
        edges, count = np.unique(edges, axis=0, return_counts=True)
        open_edges = edges[count % 2 == 1]
        if len(open_edges) or not len(edges):
            where = "".join(f", one from {self._said(a)} to {self._said(b)} (x, y, z)" for a, b in open_edges[:1])
            raise SolverError(
                f"the surface is not closed: {len(open_edges)} of {len(edges)} edges belong to an odd number of "
                f"triangles{where}; repair it, or join corners that are apart by rounding with weld="
            )

    def _said(self, vertex: int) -> str:
        return "(" + ", ".join(f"{x:.6g}" for x in self.vertices[vertex][::-1]) + ")"

    @classmethod
    def from_triangles(cls, corners: Array, weld: float = 0.0) -> Surface:
        """Return a surface from triangles that have their own corners.

        Parameters
        ----------
        corners
            ``(m, 3, 3)``: triangle, corner, ``(z, y, x)``.
        weld
            Corners that are the same when rounded to multiples of this become one; 0: those that are equal.
        """
        points = np.asarray(corners, dtype=np.float64).reshape(-1, 3) + 0.0  # no -0.0
        keys = np.round(points / weld) if weld > 0 else points
        _, first, number = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        return cls(points[first], number.reshape(-1, 3).astype(np.int64))

    @classmethod
    def from_stl(
        cls, path: str | Path, *, scale: float = 1.0, shift: Sequence[float] = (0.0, 0.0, 0.0), weld: float = 0.0
    ) -> Surface:
        """Read an STL file.

        Parameters
        ----------
        path
            Its coordinates ``(x, y, z)`` become ``(z, y, x)``.
        scale
            Cells per unit of the file.
        shift
            Where the origin of the file is, ``(z, y, x)`` in cells.
        weld
            As in `from_triangles`, in units of the file.

        Raises
        ------
        SolverError
            If the file is broken, or the surface not closed.
        """
        corners = read_stl(path)[:, :, ::-1]
        try:
            return cls.from_triangles(corners, weld).moved(scale=scale, shift=shift)
        except SolverError as error:
            raise SolverError(f"{path}: {error}") from error

    def moved(self, *, scale: float = 1.0, shift: Sequence[float] = (0.0, 0.0, 0.0)) -> Surface:
        """Return the surface ``scale`` times as large about the origin, then shifted by ``(z, y, x)``."""
        offset = np.asarray(shift, dtype=np.float64)
        if not (scale > 0 and np.isfinite(scale)) or offset.shape != (3,) or not np.isfinite(offset).all():
            raise SolverError(f"a surface is moved by a positive scale and a shift (z, y, x), not {scale!r}, {shift!r}")
        return Surface(scale * self.vertices + offset, self.triangles)

    def turned(self, axis: Sequence[float], degrees: float, center: Sequence[float] = (0.0, 0.0, 0.0)) -> Surface:
        """Return the surface turned about an axis ``(z, y, x)`` through a point, by the rule of the right hand."""
        z, y, x = np.asarray(axis, dtype=np.float64) / (np.linalg.norm(axis) or 1.0)
        if not abs(z * z + y * y + x * x - 1.0) < 1e-9:
            raise SolverError(f"a surface is turned about a direction (z, y, x), not {axis!r}")
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])  # of x, y, z: Rodrigues's formula
        turn = np.eye(3) + sin(radians(degrees)) * cross + (1.0 - cos(radians(degrees))) * cross @ cross
        middle = np.asarray(center, dtype=np.float64)
        return Surface((self.vertices - middle)[:, ::-1] @ turn.T[:, ::-1] + middle, self.triangles)

    # ---------------------------------------------------------------------------------- the shape

    @property
    def dimensions(self) -> int:
        """Number of coordinates of its points."""
        return 3

    def bounds(self) -> tuple[Array, Array]:
        """Return the least and the greatest coordinates."""
        return self._corners.min(axis=(0, 1)), self._corners.max(axis=(0, 1))

    def inside(self, points: Array) -> Mask:
        """Return whether lines along x from the points cross the surface an odd number of times.

        Rows of points along x with the same ``z`` and ``y``, ascending, cost one line.
        """
        found = np.zeros(len(points), dtype=bool)
        low, high = self.bounds()
        some = np.flatnonzero(np.all((points >= low) & (points <= high), axis=1))
        if not some.size:
            return found
        at = points[some]
        broken = (at[1:, :2] != at[:-1, :2]).any(axis=1) | (at[1:, 2] < at[:-1, 2])
        starts = np.concatenate([[0], np.flatnonzero(broken) + 1])
        ends = np.append(starts[1:], len(at))
        row, x = self._row_hits(at[starts, :2])
        # the first point of the row that is behind the hit, by bisection
        first, last = starts[row], ends[row]
        while (first < last).any():
            middle = (first + last) // 2
            before = (first < last) & (at[np.minimum(middle, len(at) - 1), 2] < x)
            first, last = np.where(before, middle + 1, first), np.where(before, last, np.minimum(middle, last))
        passed = np.bincount(first[first < ends[row]], minlength=len(at)).cumsum()
        passed = np.concatenate([[0], passed])
        found[some] = (passed[1:] - np.repeat(passed[starts], ends - starts)) % 2 == 1
        return found

    def crossings(self, start: Array, step: Array) -> Array:
        """Return where segments meet triangles."""
        row, t = self._hits(start, step)
        order = np.argsort(row, kind="stable")
        row, t = row[order], t[order]
        count = np.bincount(row, minlength=len(start))
        found = np.full((len(start), max(1, count.max(initial=0))), np.nan)
        found[row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)] = t
        return found

    def fraction(self, start: Array, step: Array) -> Array:
        """Return the first hit of each segment: outside, there is none before."""
        row, t = self._hits(start, step)
        q = np.ones(len(start))
        np.minimum.at(q, row, np.maximum(t, SMALLEST))
        return q

    # ---------------------------------------------------------------------------------- triangles and lines

    @cached_property
    def _corners(self) -> Array:
        """Corners of the triangles, ``(m, 3, 3)``, each in the order of the numbers of its vertices."""
        return self.vertices[np.sort(self.triangles, axis=1)]

    @cached_property
    def _pieces(self) -> tuple[Indices, Array, Array]:
        """Triangles cut until they are small: of which one each is, and its bounds, ``(p, 3)``."""
        corners, parents = self._corners, np.arange(len(self.triangles))
        done: list[tuple[Indices, Array]] = []
        while len(corners):
            long = (np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2) > _PIECE).any(axis=1)
            done.append((parents[~long], corners[~long]))
            a, b, c = np.moveaxis(corners[long], 1, 0)
            d, e, f = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + a)
            quarters = [(a, d, f), (d, b, e), (f, e, c), (d, e, f)]
            corners = np.concatenate([np.stack(quarter, axis=1) for quarter in quarters])
            parents = np.tile(parents[long], 4)
        corners = np.concatenate([piece for _, piece in done])
        return np.concatenate([number for number, _ in done]), corners.min(axis=1), corners.max(axis=1)

    def _row_hits(self, rows: Array) -> tuple[Indices, Array]:
        """Return where lines along x at ``(z, y)`` cross the surface: number of the line, and ``x``."""
        corners = self._corners
        numbers, hits = [np.zeros(0, np.int64)], [np.zeros(0)]
        for row, triangle in _pairs(rows, corners[..., :2].min(axis=1), corners[..., :2].max(axis=1)):
            at, three = rows[row], corners[triangle]
            odd = np.zeros(len(row), dtype=bool)
            for first, second in ((0, 1), (1, 2), (0, 2)):
                a, b = three[:, first], three[:, second]
                across = (a[:, 0] <= at[:, 0]) != (b[:, 0] <= at[:, 0])
                with np.errstate(divide="ignore", invalid="ignore"):
                    y = a[:, 1] + (at[:, 0] - a[:, 0]) / (b[:, 0] - a[:, 0]) * (b[:, 1] - a[:, 1])
                odd ^= across & (at[:, 1] < y)
            numbers.append(row[odd])
            hits.append(_plane_x(three[odd], at[odd]))
        return np.concatenate(numbers), np.concatenate(hits)

    def _hits(self, start: Array, step: Array) -> tuple[Indices, Array]:
        """Return where segments meet triangles: number of the segment, and ``t`` in ``[0, 1]``."""
        parents, low, high = self._pieces
        reach = np.abs(step).max(axis=0, initial=0.0)
        numbers, hits = [np.zeros(0, np.int64)], [np.zeros(0)]
        for row, piece in _pairs(start, low - reach, high + reach):
            a, b, c = np.moveaxis(self._corners[parents[piece]], 1, 0)
            t, inside = _meet(start[row], step[row], a, b - a, c - a)
            numbers.append(row[inside])
            hits.append(np.clip(t[inside], 0.0, 1.0))
        return np.concatenate(numbers), np.concatenate(hits)


def _plane_x(corners: Array, at: Array) -> Array:
    """Return the ``x`` of the planes of triangles at ``(z, y)``, between their corners."""
    a = corners[:, 0]
    normal = np.cross(corners[:, 1] - a, corners[:, 2] - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = a[:, 2] - ((at - a[:, :2]) * normal[:, :2]).sum(axis=1) / normal[:, 2]
    low, high = corners[..., 2].min(axis=1), corners[..., 2].max(axis=1)
    return np.clip(np.where(np.isnan(x), low, x), low, high)


def _meet(start: Array, step: Array, a: Array, ab: Array, ac: Array) -> tuple[Array, Mask]:
    """Return ``t`` of ``start + t step`` in the planes of triangles, and whether it is in the triangle and the segment.

    T. Moeller, B. Trumbore, *Journal of Graphics Tools* 2 (1997) 21-28.
    """
    p, s = np.cross(step, ac), start - a
    q = np.cross(s, ab)
    dot = "na,na->n"
    with np.errstate(divide="ignore", invalid="ignore"):
        one = 1.0 / np.einsum(dot, ab, p)
        u, v = one * np.einsum(dot, s, p), one * np.einsum(dot, step, q)
        t = one * np.einsum(dot, ac, q)
        rest = 1.0 - u - v
    inside = (u >= -_SLACK) & (v >= -_SLACK) & (rest >= -_SLACK) & (t >= -_SLACK) & (t <= 1.0 + _SLACK)
    return t, inside


def _pairs(points: Array, low: Array, high: Array) -> Iterator[tuple[Indices, Indices]]:
    """Yield pairs of a point and a box ``low`` to ``high`` that are in the same square or cube of side one.

    Points are sorted by their cube; each box asks for all cubes that it touches.
    """
    if not len(points):
        return
    cubes = np.floor(points).astype(np.int64)
    base, top = cubes.min(axis=0), cubes.max(axis=0)
    first = np.maximum(np.floor(low).astype(np.int64), base)
    sizes = np.maximum(np.minimum(np.floor(high).astype(np.int64), top) - first + 1, 0)
    stride = np.cumprod(np.append(1, (top - base + 1)[:0:-1]))[::-1]
    keys = (cubes - base) @ stride
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    counts = sizes.prod(axis=1)
    boxes = np.flatnonzero(counts)
    groups = np.cumsum(counts[boxes]) // _PAIRS
    for some in np.split(boxes, np.flatnonzero(np.diff(groups)) + 1):
        box, rank = _ranks(some, counts[some])
        key = np.zeros(len(box), dtype=np.int64)
        for axis in reversed(range(points.shape[1])):
            rank, place = np.divmod(rank, sizes[box, axis])
            key += (first[box, axis] - base[axis] + place) * stride[axis]
        begin = np.searchsorted(keys, key, "left")
        met = np.searchsorted(keys, key, "right") - begin
        full = np.flatnonzero(met)
        for few in np.split(full, np.flatnonzero(np.diff(np.cumsum(met[full]) // _PAIRS)) + 1):
            which, rank = _ranks(few, met[few])
            if len(which):
                yield order[begin[which] + rank], box[which]


def _ranks(numbers: Indices, counts: Indices) -> tuple[Indices, Indices]:
    """Return each number as often as its count says, and ``0, 1, ...`` beside them."""
    return np.repeat(numbers, counts), np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
