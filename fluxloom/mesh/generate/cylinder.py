"""A cylinder across a channel: rings of quads round it, inside a lattice, by a map that is nearly conformal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import MeshData, MeshSource, PatchFaces
from fluxloom.mesh.generate.boxes import ring_quads
from fluxloom.mesh.generate.conformal import QuadNet, relax_widths, widths_curvature

__all__ = ["CylinderChannel", "cylinder_channel", "cylinder_sizes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

_WALL = 0.75
"""Thickness of the first ring over the width of its quads, at most."""

_SQUARE = 0.65
"""Half the square round the rings over the distance of the nearer wall, if its sides were straight."""

_MODULUS = 1.155
"""Radius of the circle around which the rings would be as many, over half the square: 1.079 for straight sides."""

_SOFT = 0.25
"""Columns behind the square over those that cross it, after which columns grow by a constant factor."""

_WIDTH_STEPS = 8

_COARSE = 16
"""Quads along a quarter of a mesh on which widths of blocks are found first."""


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


def cylinder_channel(n: int, channel: CylinderChannel | None = None, behind: int = 3) -> MeshData:
    """Mesh a channel round a cylinder with quads.

    Rings round the cylinder, thinner towards it, become a square in a lattice that gets coarser downstream. The map
    from the lattice of square quads, stretched along its rows, columns and rings alone, is conformal
    (`fluxloom.mesh.generate.conformal`): lines cross at right angles up to the second order of their distance, but for
    the corners of the square, where five quads meet. That matters where derivatives along a normal are those between
    two cells: a fifth of a degree all over the mesh changes the lift of the benchmark 2D-1, a 500th of the drag, by
    a third, whatever the number of quads. Nodes on the cylinder and on the sides of the channel slide along them.

    Parameters
    ----------
    n
        Quads along a quarter of the cylinder, at least 4; the mesh has about ``9 n^2`` of them.
    channel
        The geometry; that of Schäfer and Turek by default.
    behind
        Times ``n``: columns behind the rings; fewer where the channel is short. Two are enough for a steady flow, for
        vortices on coarse meshes three.

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
    if behind < 1:
        raise MeshError(f"a mesh round a cylinder needs columns behind it: behind is at least 1, not {behind}")
    return _Blocks(n, channel if channel is not None else CylinderChannel(), behind).mesh()


def cylinder_sizes(n: int, channel: CylinderChannel | None = None) -> tuple[int, int]:
    """Return the numbers of cells and nodes of `cylinder_channel`, without making the mesh."""
    return _Blocks(n, channel if channel is not None else CylinderChannel()).sizes()


class _Blocks:
    """The lattice with a square hole and the rings in it."""

    def __init__(self, n: int, channel: CylinderChannel, behind: int = 3) -> None:
        self.n, self.channel, self.behind = n, channel, behind
        half, (x, y) = _SQUARE * channel.room, channel.centre
        self.half, step = half, 2.0 * half / n
        lengths = np.array([x - half, channel.length - x - half, y - half, channel.height - y - half])
        self.left, _, self.low, self.high = (max(2, round(length / step)) for length in lengths)
        self.right = min(behind * n, max(2, round(lengths[1] / step)))
        self.widths = np.log(lengths / step)
        self.around = 2.0 * n / np.pi * np.log(_MODULUS * half / channel.radius)
        self.rings = 2
        while _thickening(self.rings, self.around)[0] > _WALL:
            self.rings += 1
        rows, columns = self.low + n + self.high + 1, self.left + n + self.right + 1
        self.lattice = np.arange(rows * columns).reshape(rows, columns)

    def sizes(self) -> tuple[int, int]:
        """Return the numbers of cells and nodes."""
        rows, columns, n = *self.lattice.shape, self.n
        rings = 4 * n * self.rings
        return (rows - 1) * (columns - 1) - n * n + rings, rows * columns - (n - 1) ** 2 + rings

    def mesh(self) -> MeshData:
        """Return the mesh."""
        points, quads = _without_gaps(self._start(), self._quads())
        points, _, _ = self._relaxed(points, quads)
        patches = _patches(points, quads, self.channel)
        return MeshData(points, {"quad": quads.astype(np.int32)}, patches, MeshSource("<cylinder_channel>"))

    def _relaxed(self, points: Array, quads: Index) -> tuple[Array, Array, Array]:
        """Return nodes, logarithms of the widths of blocks over `n`, and the curvature of the energy by these."""
        net = self._net(points, quads)
        shift = np.log(self.n)
        if self.n <= _COARSE:
            widths = self.widths
            curvature = widths_curvature(net, points, self._ratios, widths)
        else:
            coarse = _Blocks(_COARSE, self.channel, self.behind)
            _, found, curvature = coarse._relaxed(*_without_gaps(coarse._start(), coarse._quads()))
            widths = found + shift
        points, widths = relax_widths(net, points, self._ratios, widths, curvature, _WIDTH_STEPS)
        return points, widths - shift, curvature

    def _net(self, points: Array, quads: Index) -> QuadNet:
        """Return which nodes may move: those on sides along these, those on the cylinder round it."""
        centre, ends = np.array(self.channel.centre), (self.channel.length, self.channel.height)
        held = np.stack([np.isin(points[:, k], (0.0, end)) for k, end in enumerate(ends)], axis=1)
        wall = np.abs(np.linalg.norm(points - centre, axis=1) - self.channel.radius) < 1e-9 * self.channel.radius
        return QuadNet(quads, held, np.flatnonzero(wall), centre, self.channel.radius)

    def _ratios(self, widths: Array) -> Array:
        """Return the ratio of the second to the first side of all quads, for logarithms of the widths of blocks."""
        left, right, low, high = np.exp(widths)
        columns = np.concatenate(
            [_growing(self.left, left)[::-1], np.ones(self.n), _growing(self.right, right, _SOFT * self.n)]
        )
        rows = np.concatenate([_growing(self.low, low)[::-1], np.ones(self.n), _growing(self.high, high)])
        rings = _thickening(self.rings, self.around)
        return np.concatenate([(rows[:, None] / columns)[self._outside()], np.repeat(1.0 / rings, 4 * self.n)])

    def _outside(self) -> npt.NDArray[np.bool_]:
        """Return which quads of the lattice are outside of the square."""
        rows, columns = self.lattice.shape
        found = np.ones((rows - 1, columns - 1), dtype=bool)
        found[self.low : self.low + self.n, self.left : self.left + self.n] = False
        return found

    def _quads(self) -> Index:
        """Return the quads of the lattice, row by row, then those of the rings; their first side leads outwards."""
        nodes, count = self.lattice, 4 * self.n
        quads = np.stack([nodes[:-1, :-1], nodes[:-1, 1:], nodes[1:, 1:], nodes[1:, :-1]], axis=-1)
        inner = nodes.size + np.arange(self.rings * count).reshape(self.rings, count)
        return np.concatenate([quads[self._outside()], ring_quads(np.concatenate([inner, self._square()[None]]))])

    def _square(self) -> Index:
        """Return the nodes of the lattice on the square, anticlockwise from its lower left corner."""
        j, i, n = self.low, self.left, self.n
        block = self.lattice[j : j + n + 1, i : i + n + 1]
        return np.concatenate([block[0, :-1], block[:-1, -1], block[-1, :0:-1], block[:0:-1, 0]])

    def _start(self) -> Array:
        """Return a guess of the nodes: those of the lattice, then those of the rings."""
        half, (x, y), count = self.half, self.channel.centre, 4 * self.n
        behind = _growing(self.right, float(np.exp(self.widths[1])), _SOFT * self.n)
        xs = _places((0.0, x - half, x + half, self.channel.length), (np.ones(self.left), np.ones(self.n), behind))
        ys = _places((0.0, y - half, y + half, self.channel.height), tuple(map(np.ones, (self.low, self.n, self.high))))
        grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
        angle = -0.75 * np.pi + 2.0 * np.pi * np.arange(count) / count
        circle = np.array([x, y]) + self.channel.radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        reach = np.concatenate([[0.0], np.cumsum(_thickening(self.rings, self.around))])
        part = np.expm1(2.0 * np.pi * reach / count)
        part = (part / part[-1])[:-1, None, None]
        return np.concatenate([grid, ((1.0 - part) * circle + part * grid[self._square()]).reshape(-1, 2)])


def _places(ends: tuple[float, ...], widths: tuple[Array, ...]) -> Array:
    """Return places whose distances between two ends are in proportion to some widths."""
    found = [np.array(ends[:1])]
    for first, last, width in zip(ends[:-1], ends[1:], widths, strict=True):
        found.append(first + (last - first) * np.cumsum(width) / width.sum())
        found[-1][-1] = last
    return np.concatenate(found)


def _growing(count: int, total: float, soft: float = 0.0) -> Array:
    """Return widths ``(count,)`` with a sum, from 1 on, that grow by a factor, constant after some ``soft`` of them."""
    from scipy.optimize import brentq

    place = np.arange(count) + 0.5
    if soft:
        place = place - soft * -np.expm1(-place / soft)
    reach = 20.0 / float(place[-1])
    rate = float(brentq(lambda q: np.exp(q * place).sum() - total, -reach, reach))  # pyright: ignore
    return np.exp(rate * place)


def _thickening(count: int, total: float) -> Array:
    """Return thickness over width of rings, ``(count,)``, that rises with a falling slope to 1, with a sum."""
    part = (1.0 - (np.arange(count) + 0.5) / count) ** 2
    return 1.0 - (count - total) * part / part.sum()


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
