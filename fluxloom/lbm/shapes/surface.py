"""Closed surfaces of triangles as shapes.

Files are read by trimesh, and lines are met with triangles by manifold3d, in double precision: where a line goes
through a corner or along an edge the geometry counts as moved by less than any number, the same way for all triangles,
so that no line slips through and every line crosses a closed surface an even number of times (J. Smith, *Towards
robust inexact geometric computation*, PhD thesis, University of Cambridge, 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import cos, radians, sin
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.packages import require
from fluxloom.lbm.shapes.files import EXTRA, read_triangles
from fluxloom.lbm.shapes.shapes import SMALLEST, Array, Mask, Shape

__all__ = ["Surface"]

Indices = npt.NDArray[np.int64]

_NEAR = 1e-9
"""A hit at less than this share of a segment may be that of a start on the surface, on the way out."""


@dataclass(frozen=True, eq=False)
class Surface(Shape):
    """The inside of a closed surface, in three dimensions, of one shell or several.

    Shells that overlap are one body. A shell within another whose triangles turn the other way is a hole in it. If the
    triangles of a shell turn both ways, all are turned outward, so that each shell is solid. Points on the surface
    itself may be taken to be inside or outside.

    Attributes
    ----------
    vertices : float64 (n, 3)
        ``(z, y, x)``, in cells.
    triangles : int64 (m, 3)
        Numbers of vertices; seen from outside they turn counter-clockwise, or all of them clockwise.

    Raises
    ------
    SolverError
        If the surface is not closed, or cannot be turned outward (a Klein bottle).
    DeviceUnavailable
        If trimesh or manifold3d is not installed.
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
        if not np.isfinite(vertices).all():
            raise SolverError("a vertex of a surface is not finite")
        a, b, c = triangles.T
        triangles = triangles[(a != b) & (b != c) & (c != a)]
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles)
        self._check_closed()
        if self._solid is None:
            object.__setattr__(self, "triangles", _outward(vertices, triangles))
            del self.__dict__["_solid"]
        if self._solid is None:
            raise SolverError("the triangles of the surface cannot be turned outward; repair it")

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
            Corners that are no further apart become one; 0: those that are equal.
        """
        points = np.asarray(corners, dtype=np.float64).reshape(-1, 3) + 0.0  # no -0.0
        points, number = np.unique(points, axis=0, return_inverse=True)
        if weld > 0:
            points, number = _welded(points, number, weld)
        return cls(points, number.reshape(-1, 3))

    @classmethod
    def from_file(
        cls, path: str | Path, *, scale: float = 1.0, shift: Sequence[float] = (0.0, 0.0, 0.0), weld: float = 0.0
    ) -> Surface:
        """Read a file of any format that trimesh knows: STL, OBJ, PLY, OFF, glTF, 3MF.

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
            If the file cannot be read, or the surface is not closed.
        DeviceUnavailable
            If trimesh or manifold3d is not installed.
        """
        corners = read_triangles(path)[:, :, ::-1]
        try:
            return cls.from_triangles(corners, weld).moved(scale=scale, shift=shift)
        except SolverError as error:
            raise SolverError(f"{path}: {error}") from error

    from_stl = from_file

    def moved(self, *, scale: float = 1.0, shift: Sequence[float] = (0.0, 0.0, 0.0)) -> Surface:
        """Return the surface ``x' = scale x + shift``, scaled about the origin, then shifted by ``(z, y, x)``."""
        offset = np.asarray(shift, dtype=np.float64)
        if not (scale > 0 and np.isfinite(scale)) or offset.shape != (3,) or not np.isfinite(offset).all():
            raise SolverError(f"a surface is moved by a positive scale and a shift (z, y, x), not {scale!r}, {shift!r}")
        return Surface(scale * self.vertices + offset, self.triangles)

    def turned(self, axis: Sequence[float], degrees: float, center: Sequence[float] = (0.0, 0.0, 0.0)) -> Surface:
        """Return the surface turned about an axis ``(z, y, x)`` through a point, by the rule of the right hand.

        Rodrigues' formula, ``R = I + sin(t) K + (1 - cos(t)) K^2`` with the matrix ``K`` of the vector product with the
        axis.
        """
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

    @property
    def volume(self) -> float:
        """Cells that its shells have inside, holes taken off; where shells overlap they count twice."""
        return abs(sum(shell.volume() for shell in self._shells))

    def measure(self) -> float | None:
        """Return the volume of one shell; of several, which may overlap, that is not known."""
        return self.volume if len(self._shells) == 1 else None

    def bounds(self) -> tuple[Array, Array]:
        """Return the least and the greatest coordinates."""
        corners = self.vertices[self.triangles]
        return corners.min(axis=(0, 1)), corners.max(axis=(0, 1))

    def near(self, axes: Sequence[Array]) -> Mask:
        """Return which points are no more than a cell from the bounds of a triangle."""
        corners = self.vertices[self.triangles]
        low, high = corners.min(axis=1) - 1.0, corners.max(axis=1) + 1.0
        # one at the lower corner of each triangle's box of points, and back behind the others; sums fill the boxes
        marks = np.zeros([axis.size + 1 for axis in axes], dtype=np.int32)
        ends = [
            (np.searchsorted(axis, low[:, a], "left"), np.searchsorted(axis, high[:, a], "right"))
            for a, axis in enumerate(axes)
        ]
        for which in product((0, 1), repeat=3):
            np.add.at(marks, tuple(end[k] for end, k in zip(ends, which, strict=True)), (-1) ** sum(which))
        for axis in range(3):
            np.cumsum(marks, axis=axis, out=marks)
        return marks[:-1, :-1, :-1] > 0

    def inside(self, points: Array) -> Mask:
        """Return whether the surface winds round the points.

        It does so once for each shell that a line along x from the point crosses an odd number of times, and once less
        for each hole. Rows of points along x with the same ``z`` and ``y``, one after the other, cost one line.
        """
        winding = np.zeros(len(points), dtype=np.int64)
        for shell in self._shells:
            box = np.array(shell.bounding_box())
            low, high = box[:3][::-1], box[3:][::-1]
            some = np.flatnonzero(np.all((points >= low) & (points <= high), axis=1))
            odd = _odd(shell, points[some], low[2], high[2])
            winding[some[odd]] += 1 if shell.volume() > 0 else -1
        return winding != 0

    def crossings(self, start: Array, step: Array) -> Array:
        """Return where segments meet triangles."""
        hits = self._hits(start, step)
        found = np.full((len(start), max(map(len, hits), default=1) or 1), np.nan)
        for row, some in zip(found, hits, strict=True):
            row[: len(some)] = some
        return found

    def fraction(self, start: Array, step: Array) -> Array:
        """Return the first hit of each segment: outside, there is none before.

        Where the number of hits is even an end is on the surface, to rounding. If there is none, it is the start if the
        middle is inside; else a first hit at the start leads out.
        """
        hits = self._hits(start, step)
        q = np.array([_first(some) for some in hits], dtype=np.float64)
        missed = np.flatnonzero(np.isnan(q))
        q[missed] = np.where(self.inside(start[missed] + 0.5 * step[missed]), SMALLEST, 1.0)
        return np.clip(q, SMALLEST, 1.0)

    # ---------------------------------------------------------------------------------- the library

    @cached_property
    def _solid(self) -> Any:
        """The surface as manifold3d has it, in ``(x, y, z)``; None if its triangles do not turn the same way."""
        library: Any = require("manifold3d", EXTRA, "a surface of triangles")
        vertices = np.ascontiguousarray(self.vertices[:, ::-1])
        solid = library.Manifold(library.Mesh64(vertices, self.triangles.astype(np.uint64)))
        return solid if solid.status() == library.Error.NoError and not solid.is_empty() else None

    @cached_property
    def _shells(self) -> list[Any]:
        """The parts of the surface that do not hang together."""
        return self._solid.decompose()

    def _hits(self, start: Array, step: Array) -> list[list[float]]:
        """Return where segments meet triangles, ascending, in ``[0, 1]``."""
        cast = self._solid.ray_cast
        begins, ends = start[:, ::-1].tolist(), (start + step)[:, ::-1].tolist()
        return [[hit.distance for hit in cast(begin, end)] for begin, end in zip(begins, ends, strict=True)]


def _welded(points: Array, number: Indices, weld: float) -> tuple[Array, Indices]:
    """Return points of which those that are near each other are one, the first of them, and their new numbers."""
    spatial: Any = require("scipy.spatial", EXTRA, "joining corners")
    sparse: Any = require("scipy.sparse", EXTRA, "joining corners")
    graph: Any = require("scipy.sparse.csgraph", EXTRA, "joining corners")
    pairs = spatial.KDTree(points).query_pairs(weld, output_type="ndarray")
    near = sparse.coo_array((np.ones(len(pairs), dtype=bool), tuple(pairs.T)), shape=(len(points),) * 2)
    _, group = graph.connected_components(near, directed=False)
    _, first = np.unique(group, return_index=True)
    return points[first], group[number]


def _first(hits: Sequence[float]) -> float:
    """Return the hit at which a segment that begins outside enters; NaN without one."""
    if len(hits) % 2:
        return hits[0]
    return next((t for t in hits if t > _NEAR), float("nan"))


def _odd(shell: Any, at: Array, low: float, high: float) -> Indices:
    """Return the numbers of the points before which a line along x crosses a shell, from low to high, an odd time."""
    found: list[Indices] = []
    starts = np.flatnonzero(np.r_[True, (at[1:, :2] != at[:-1, :2]).any(axis=1)]) if len(at) else []
    ends = [*starts[1:], len(at)]
    pad = 0.5 * (high - low) + 1.0
    for first, last in zip(starts, ends, strict=False):
        z, y = at[first, :2].tolist()
        hits = [hit.position[0] for hit in shell.ray_cast((low - pad, y, z), (high + pad, y, z))]
        if hits:
            passed = np.searchsorted(np.sort(hits), at[first:last, 2])
            found.append(first + np.flatnonzero(passed % 2))
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _outward(vertices: Array, triangles: Indices) -> Indices:
    """Return the triangles with those turned that do not turn as their neighbours, all shells outward."""
    trimesh: Any = require("trimesh", EXTRA, "a surface of triangles")
    mesh = trimesh.Trimesh(vertices[:, ::-1], triangles, process=False)
    trimesh.repair.fix_normals(mesh, multibody=True)
    return np.array(mesh.faces, dtype=np.int64)
