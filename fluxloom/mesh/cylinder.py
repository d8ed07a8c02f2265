"""A cylinder across a channel: rings of quads round it, inside a graded lattice, made orthogonal by smoothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import splu

from fluxloom.core.errors import MeshError
from fluxloom.mesh.mesh import MeshData, MeshSource, PatchFaces

__all__ = ["CylinderChannel", "cylinder_channel", "cylinder_sizes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_WALL = 0.5
"""Thickness of the first ring over its circumference divided by the cells round it."""

_RINGS, _SQUARE = 0.38, 0.65
"""Ends of the rings that stay circles, and half the square round them, over the distance of the nearer wall."""

_SMOOTHINGS = 12


@dataclass(frozen=True)
class CylinderChannel:
    """A channel with a cylinder across it; by default that of Schäfer and Turek's benchmarks 2D-1 and 2D-2.

    Attributes
    ----------
    length, height
        Of the channel, whose lower left corner is the origin.
    centre, radius
        Of the cylinder.

    References
    ----------
    M. Schäfer, S. Turek: *Benchmark computations of laminar flow around a cylinder*. Notes on Numerical Fluid
    Mechanics 52, Vieweg 1996, sec. 2.
    """

    length: float = 2.2
    height: float = 0.41
    centre: tuple[float, float] = (0.2, 0.2)
    radius: float = 0.05

    @property
    def room(self) -> float:
        """Distance from the centre to the nearest side."""
        (x, y) = self.centre
        return min(x, y, self.length - x, self.height - y)

    def __post_init__(self) -> None:
        if not (self.radius > 0 and self.room > 3.0 * self.radius):
            raise MeshError(
                f"a cylinder of radius {self.radius:g} needs three radii from its centre {self.centre} to each side of "
                f"the channel {self.length:g} x {self.height:g}"
            )


def cylinder_channel(n: int, channel: CylinderChannel | None = None) -> MeshData:
    """Mesh a channel round a cylinder with quads.

    Rings round the cylinder, thinner towards it, become a square in a lattice that gets coarser downstream. Outside of
    the inner rings the nodes are placed such that ``sum f (x_j - x_i) = 0`` over the neighbours ``j`` of a node with
    ``f`` the ratio of the sides of the quads at the edge, which is the discrete form of an orthogonal map (Ryskin and
    Leal, J. Comput. Phys. 50, 1983); nodes on the sides of the channel slide along them. The corners of the square,
    where five quads meet, are the only places where lines do not cross at right angles.

    Parameters
    ----------
    n
        Quads along a quarter of the cylinder, at least 4; the mesh has about ``9 n^2`` of them.
    channel
        The geometry; that of Schäfer and Turek by default.

    Returns
    -------
    MeshData
        With patches ``xmin``, ``xmax``, ``ymin``, ``ymax``, ``cylinder``.

    Raises
    ------
    MeshError
        For too few quads.
    """
    if n < 4:
        raise MeshError(f"a mesh round a cylinder needs at least 4 quads along a quarter of it, not {n}")
    blocks = _Blocks(n, channel if channel is not None else CylinderChannel())
    return blocks.mesh()


def cylinder_sizes(n: int, channel: CylinderChannel | None = None) -> tuple[int, int]:
    """Return the numbers of cells and nodes of `cylinder_channel`, without making the mesh."""
    return _Blocks(n, channel if channel is not None else CylinderChannel()).sizes()


class _Blocks:
    """The lattice with a square hole and the rings in it."""

    def __init__(self, n: int, channel: CylinderChannel) -> None:
        self.n, self.channel = n, channel
        half = _SQUARE * channel.room
        self.step, (x, y) = 2.0 * half / n, channel.centre
        step = self.step
        across = np.linspace(-half, half, n + 1)
        below, above = (max(2, round((part - half) / step)) for part in (y, channel.height - y))
        before = max(2, round((x - half) / step))
        behind = _graded(x + half, channel.length, step, 3 * n)
        self.xs = np.concatenate([np.linspace(0.0, x - half, before + 1)[:-1], x + across, behind[1:]])
        self.ys = np.concatenate([
            np.linspace(0.0, y - half, below + 1)[:-1], y + across, np.linspace(y + half, channel.height, above + 1)[1:]
        ])  # fmt: skip
        self.left, self.low = before, below
        self.lattice = np.arange(self.xs.size * self.ys.size).reshape(self.ys.size, self.xs.size)
        self.radii = self._radii()

    def _radii(self) -> Array:
        """Return the radii of the rings that are circles: thickness over width grows from the wall outwards."""
        radius, end = self.channel.radius, max(_RINGS * self.channel.room, 1.2 * self.channel.radius)
        width, found = 0.5 * np.pi / self.n, [self.channel.radius]
        while found[-1] < end:
            part = min(1.0, (found[-1] - radius) / (end - radius))
            found.append(found[-1] * (1.0 + width * (_WALL + (1.0 - _WALL) * part)))
        return np.array(found)

    def _around(self) -> Index:
        """Return the nodes of the lattice on the square, anticlockwise from its lower left corner."""
        j, i, n = self.low, self.left, self.n
        block = self.lattice[j : j + n + 1, i : i + n + 1]
        return np.concatenate([block[0, :-1], block[:-1, -1], block[-1, :0:-1], block[:0:-1, 0]])

    def _grid(self) -> Array:
        return np.stack(np.meshgrid(self.xs, self.ys), axis=-1).reshape(-1, 2)

    def _rings(self, square: Array) -> Array:
        """Return the nodes ``(rings, around, 2)`` from the cylinder to the square, which has ``(around, 2)``."""
        count = 4 * self.n
        angle = -0.75 * np.pi + 2.0 * np.pi * np.arange(count) / count
        ray = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        circles = np.array(self.channel.centre) + self.radii[:, None, None] * ray
        reach = float(np.linalg.norm(square - circles[-1], axis=1).mean())
        part = _between(float(self.radii[-1] - self.radii[-2]) / reach, self.step / reach)[:, None, None]
        return np.concatenate([circles, (1.0 - part) * circles[-1] + part * square])

    def sizes(self) -> tuple[int, int]:
        """Return the numbers of cells and nodes."""
        rings, n = len(self._rings(self._grid()[self._around()])), self.n
        rows, columns = self.lattice.shape
        return (rows - 1) * (columns - 1) - n * n + 4 * n * rings, rows * columns - (n - 1) ** 2 + 4 * n * rings

    def mesh(self) -> MeshData:
        """Return the smoothed mesh."""
        grid, around = self._grid(), self._around()
        rings = self._rings(grid[around])
        points = np.concatenate([grid, rings.reshape(-1, 2)])
        inner = len(grid) + np.arange(rings.shape[0] * rings.shape[1]).reshape(rings.shape[:2])
        levels = np.concatenate([inner, around[None]])
        quads = np.concatenate([self._lattice_quads(), _ring_quads(levels)])
        circular = levels[: len(self.radii)].ravel()
        points, quads = _without_gaps(self._smooth(points, quads, circular), quads)
        patches = _patches(points, quads, self.channel)
        return MeshData(points, {"quad": quads.astype(np.int32)}, patches, MeshSource("<cylinder_channel>"))

    def _lattice_quads(self) -> Index:
        nodes = self.lattice
        quads = np.stack([nodes[:-1, :-1], nodes[:-1, 1:], nodes[1:, 1:], nodes[1:, :-1]], axis=-1)
        kept = np.ones(quads.shape[:2], dtype=bool)
        kept[self.low : self.low + self.n, self.left : self.left + self.n] = False
        return quads[kept]

    def _smooth(self, points: Array, quads: Index, circular: Index) -> Array:
        """Return the points, moved until the lines between them cross at right angles, as far as they can."""
        fixed = np.ones((len(points), 2), dtype=bool)
        fixed[np.unique(quads)] = False
        fixed[circular] = True
        for k, ends in enumerate(((0.0, self.channel.length), (0.0, self.channel.height))):
            fixed[np.isin(points[:, k], ends), k] = True
        for _ in range(_SMOOTHINGS):
            matrix = _spring_matrix(points, quads)
            moved = points.copy()
            for k in range(2):
                free, held = np.flatnonzero(~fixed[:, k]), np.flatnonzero(fixed[:, k])
                rows = matrix[free]
                moved[free, k] = splu(rows[:, free].tocsc()).solve(-(rows[:, held] @ points[held, k]))
            points = moved
        return points


def _graded(low: float, high: float, step: float, count: int) -> Array:
    """Return ``count + 1`` places from ``low`` to ``high`` whose distances grow from ``step`` by a constant factor."""
    span = high - low
    if count * step >= span:
        return np.linspace(low, high, max(1, round(span / step)) + 1)
    factor = float(brentq(lambda q: step * (q**count - 1.0) / (q - 1.0) - span, 1.0 + 1e-9, 3.0))  # pyright: ignore
    part: Array = np.expm1(np.log(factor) * np.arange(count + 1, dtype=np.float64))
    return low + span * part / part[-1]


def _between(first: float, last: float) -> Array:
    """Return places between 0 and 1 whose distances grow evenly from about ``first`` to about ``last``."""
    count = max(2, round(2.0 / (first + last)))
    ends: Array = np.cumsum(np.linspace(first, last, count, dtype=np.float64))
    return (ends[:-1] / ends[-1]).astype(np.float64)


def _ring_quads(levels: Index) -> Index:
    """Return the quads between nodes ``(levels, around)``, closed around, from the inside to the outside."""
    following = np.roll(levels, -1, axis=1)
    return np.stack([levels[:-1], levels[1:], following[1:], following[:-1]], axis=-1).reshape(-1, 4)


def _spring_matrix(points: Array, quads: Index) -> csr_array:
    """Return ``sum f (x_i - x_j)``: half the ratio of the other sides to the own ones, from both quads of an edge."""
    side = np.linalg.norm(points[np.roll(quads, -1, axis=1)] - points[quads], axis=2)
    across = (side[:, 1] + side[:, 3]) / (side[:, 0] + side[:, 2])
    weight = 0.5 * np.stack([across, 1.0 / across, across, 1.0 / across], axis=1).ravel()
    first, second = quads.ravel(), np.roll(quads, -1, axis=1).ravel()
    size = len(points)
    half = coo_array((weight, (first, second)), shape=(size, size))
    linked = csr_array(half + half.T)
    return csr_array(diags_array(np.asarray(linked.sum(axis=1)).ravel()) - linked)


def _without_gaps(points: Array, quads: Index) -> tuple[Array, Index]:
    """Return the points that quads have, and the quads with their new numbers."""
    used, numbers = np.unique(quads, return_inverse=True)
    return points[used], numbers.reshape(quads.shape)


def _patches(points: Array, quads: Index, channel: CylinderChannel) -> dict[str, PatchFaces]:
    """Return the sides of the channel and the cylinder, by the edges of one quad only."""
    edges = np.stack([quads, np.roll(quads, -1, axis=1)], axis=-1).reshape(-1, 2)
    _, where, count = np.unique(np.sort(edges, axis=1), axis=0, return_index=True, return_counts=True)
    outer = edges[np.sort(where[count == 1])]
    on = {
        f"{'xy'[k]}{side}": (points[outer, k] == value).all(axis=1)
        for k, ends in enumerate((channel.length, channel.height))
        for side, value in (("min", 0.0), ("max", ends))
    }
    on["cylinder"] = ~np.any(list(on.values()), axis=0)
    return {name: PatchFaces({"line": outer[chosen].astype(np.int32)}) for name, chosen in on.items()}
