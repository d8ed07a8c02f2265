"""Test matrices of any size: meshes, finite elements, power laws, bands, as SciPy arrays in compressed rows.

Every generator takes the number of entries to aim at and a seed, and works with whole arrays, so that twenty
million entries take seconds. Rows are sorted and without duplicates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array, dia_array, kron

from fluxloom.core.errors import DatError

__all__ = [
    "GENERATORS",
    "Generator",
    "banded",
    "lagrange2",
    "laplacian2d",
    "laplacian3d",
    "lattice_laplacian",
    "power_law",
    "tet_dual",
]

Generator = Callable[[int, int], csr_array]
"""Takes the number of entries to aim at and a seed."""

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Pairs = tuple[Index, Index]

WINDOW = 60.0
"""How far a mesh element's number may be from where it lies: a mesh numbered well, but by no formula.

So chosen that 32 neighbouring rows meet as many cache lines as those of a Delaunay mesh of random points in reverse
Cuthill-McKee order do: 12 in two dimensions, 18 in three.
"""

SHIFT = 1e-3
"""Added to the diagonal of Laplacians, which makes them positive definite."""

_HALF_BAND = 32
_ZIPF, _LONGEST = 2.2, 5000

# Quadratic elements in one dimension: of (u', v') and of (u, v) on an element of length one.
_STIFFNESS = np.array([[7.0, -8.0, 1.0], [-8.0, 16.0, -8.0], [1.0, -8.0, 7.0]]) / 3.0
_MASS = np.array([[4.0, 2.0, -1.0], [2.0, 16.0, 2.0], [-1.0, 2.0, 4.0]]) / 30.0


# ------------------------------------------------------------------------------------------- Laplacians


def laplacian2d(entries: int, seed: int = 0) -> csr_array:
    """Return the Laplacian of a triangulation: about 7 entries a row, 3 to 9.

    A lattice of squares, each cut along one of its diagonals at random, its points moved and renumbered a
    little. An edge weighs the inverse square of its length.
    """
    rng = _random(entries, seed)
    n = max(2, round((entries / 7.0) ** 0.5))
    node = np.arange(n * n).reshape(n, n)
    lattice = [(node[1:], node[:-1]), (node[:, 1:], node[:, :-1])]
    cut = rng.random((n - 1, n - 1)) < 0.5
    first = np.where(cut, node[:-1, :-1], node[:-1, 1:])
    second = np.where(cut, node[1:, 1:], node[1:, :-1])
    points = np.stack(np.divmod(np.arange(n * n), n), axis=1) + rng.uniform(-0.2, 0.2, (n * n, 2))
    return _mesh_laplacian([*lattice, (first, second)], points, node.ravel(), rng)


def laplacian3d(entries: int, seed: int = 0) -> csr_array:
    """Return the Laplacian of a tetrahedral mesh: about 15 entries a row, 5 to 27.

    A lattice of cubes with a point in the middle of each. Every square is cut along one of its diagonals at
    random; each half makes a tetrahedron with the middle of the cube on either side. Points are moved and
    renumbered a little; an edge weighs the inverse square of its length.
    """
    rng = _random(entries, seed)
    n = max(2, round((entries / 30.0) ** (1.0 / 3.0)) + 1)
    corner = np.arange(n**3).reshape(n, n, n)
    middle = n**3 + np.arange((n - 1) ** 3).reshape(n - 1, n - 1, n - 1)
    pairs: list[Pairs] = []
    for axis in range(3):
        turned = np.moveaxis(corner, axis, 0)
        pairs.append((turned[1:], turned[:-1]))
        cut = rng.random((n, n - 1, n - 1)) < 0.5
        first = np.where(cut, turned[:, :-1, :-1], turned[:, :-1, 1:])
        second = np.where(cut, turned[:, 1:, 1:], turned[:, 1:, :-1])
        pairs.append((first, second))
    low, high = slice(None, -1), slice(1, None)
    for i in (low, high):
        for j in (low, high):
            pairs += [(middle, corner[i, j, k]) for k in (low, high)]
    points = np.concatenate([_lattice_points(n), _lattice_points(n - 1) + 0.5])
    points += rng.uniform(-0.1, 0.1, points.shape)
    place = np.concatenate([2.0 * corner.ravel(), 2.0 * corner[:-1, :-1, :-1].ravel() + 1.0])
    return _mesh_laplacian(pairs, points, place, rng)


def lattice_laplacian(shape: tuple[int, ...], rows: range | None = None) -> csr_array:
    """Return rows of minus the Laplacian on a box of a lattice with zeros beyond it, ``(len(rows), cells)``.

    ``2 d`` on the diagonal and -1 for each neighbour, in ``d`` dimensions: finite volumes on equal cells, scaled, with
    Dirichlet values half a cell beyond a wall left out of the diagonal. Unlike the other matrices it has no seed.

    Parameters
    ----------
    shape
        Cells along each axis, the slowest first.
    rows
        Consecutive rows, as of a rank; all by default.
    """
    total = int(np.prod(shape))
    chosen = rows if rows is not None else range(total)
    cell = np.arange(chosen.start, chosen.stop)
    strides = np.cumprod((1, *shape[:0:-1]))[::-1]
    place = [cell // stride % side for stride, side in zip(strides, shape, strict=True)]
    low = [(at > 0, -int(stride)) for at, stride in zip(place, strides, strict=True)]
    high = [(at < side - 1, int(stride)) for at, stride, side in zip(place, strides, shape, strict=True)]
    legs = [*low, (np.ones(cell.size, dtype=bool), 0), *high[::-1]]
    there = np.stack([there for there, _ in legs], axis=1)
    columns = cell[:, None] + np.array([offset for _, offset in legs])
    values = np.broadcast_to(np.where(np.arange(len(legs)) == len(low), 2.0 * len(shape), -1.0), there.shape)
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    kind = np.int32 if max(total, int(offsets[-1])) < 2**31 else np.int64
    parts = (values[there], columns[there].astype(kind), offsets.astype(kind))
    return csr_array(parts, shape=(cell.size, total))


def tet_dual(entries: int, seed: int = 0) -> csr_array:
    """Return a matrix on the dual graph of the mesh of `laplacian3d`: a row a cell, 5 entries, fewer at the boundary.

    Cells that share a face are neighbours; a face has a random weight. Cells are renumbered a little.
    """
    rng = _random(entries, seed)
    n = max(1, round((entries / 60.0) ** (1.0 / 3.0)))
    cells = 12 * n**3
    i, j = _tet_faces(n, rng)
    number = _renumbered(np.arange(cells), rng)
    return _laplacian(number[i], number[j], rng.uniform(0.5, 1.5, i.size), cells)


def _tet_faces(n: int, rng: np.random.Generator) -> Pairs:
    """Return the two cells behind each inner face of ``n**3`` cubes of twelve tetrahedra.

    Tetrahedron ``12 cube + 4 axis + 2 side + half``: that of half a square on one side of the cube. The half
    numbered 0 is the one with the edge at the lower end of the square's second axis.
    """
    cube = 12 * np.arange(n**3).reshape(n, n, n)
    cuts = [np.moveaxis(rng.integers(0, 2, (n + 1, n, n)), 0, axis) for axis in range(3)]

    def half(axis: int, side: int, other: int, end: int) -> Index | int:
        """Return which half of a square has the edge at one end of another axis."""
        if other == max(a for a in range(3) if a != axis):
            return end
        cut = np.take(cuts[axis], range(side, side + n), axis)
        return 1 - cut if end else cut

    pairs: list[Pairs] = []
    for axis in range(3):
        pairs += [(cube + 4 * axis + 2 * side, cube + 4 * axis + 2 * side + 1) for side in (0, 1)]
        below, above = np.take(cube, range(n - 1), axis), np.take(cube, range(1, n), axis)
        pairs += [(below + 4 * axis + 2 + k, above + 4 * axis + k) for k in (0, 1)]
        p, q = (a for a in range(3) if a != axis)  # the edges of the cube along this axis
        for s in (0, 1):
            for t in (0, 1):
                one = cube + 4 * p + 2 * s + half(p, s, q, t)
                pairs.append((one, cube + 4 * q + 2 * t + half(q, t, p, s)))
    return _flat(pairs)


# --------------------------------------------------------------------------------------- finite elements


def lagrange2(entries: int, seed: int = 0) -> csr_array:
    """Return the stiffness matrix of quadratic elements on squares: 25 entries a row at corners, 15 on edges, 9 inside.

    On a lattice the matrix of ``-∇²u`` is ``K ⊗ M + M ⊗ K`` with the matrices of one dimension. The lattice
    numbering stays; ``seed`` varies the coefficient between the two directions.
    """
    rng = _random(entries, seed)
    n = max(1, round((entries / 64.0) ** 0.5))
    stiffness, mass = _line(_STIFFNESS, n), _line(_MASS, n)
    ratio = float(rng.uniform(0.5, 2.0))
    matrix = kron(stiffness, mass, format="csr") + kron(mass, ratio * stiffness, format="csr")
    return _sorted(csr_array(matrix))


def _line(element: Array, n: int) -> csr_array:
    """Return the matrix of ``n`` quadratic elements in a row."""
    first = 2 * np.arange(n)[:, None, None]
    i, j = first + np.arange(3)[:, None], first + np.arange(3)
    i, j = np.broadcast_arrays(i, j)
    values = np.broadcast_to(element, i.shape)
    return csr_array((values.ravel(), (i.ravel(), j.ravel())), shape=(2 * n + 1, 2 * n + 1))


# ------------------------------------------------------------------------------------ graphs and bands


def power_law(entries: int, seed: int = 0) -> csr_array:
    """Return a matrix with row lengths by Zipf's law, as of links between web pages: mean 3, some thousand at most.

    ``P(length = k) ~ k**-2.2`` up to 5000. Half of the columns are near the diagonal (links within a site), half
    anywhere with the low numbers preferred (popular pages). The few links that occur twice become one.
    """
    rng = _random(entries, seed)
    longest = max(1, min(_LONGEST, entries // 4))
    lengths = np.minimum(rng.zipf(_ZIPF, max(2, round(entries / 2.4))), longest)
    n = max(2, int(np.searchsorted(np.cumsum(lengths), 1.08 * entries)))
    lengths = lengths[:n]
    row = np.repeat(np.arange(lengths.size), lengths)
    near = row + np.rint(rng.laplace(0.0, 30.0, row.size)).astype(np.int64)
    far = (lengths.size * rng.random(row.size) ** 3).astype(np.int64)
    column = np.where(rng.random(row.size) < 0.5, near % lengths.size, far)
    matrix = coo_array((rng.uniform(-1.0, 1.0, row.size), (row, column)), shape=(lengths.size,) * 2)
    return _sorted(csr_array(matrix))


def banded(entries: int, seed: int = 0) -> csr_array:
    """Return a matrix with a full band of 65 diagonals (fewer in a small one), diagonally dominant."""
    rng = _random(entries, seed)
    half = min(_HALF_BAND, max(1, int((entries / 12) ** 0.5)))
    width = 2 * half + 1
    n = max(width, round((entries + half * (half + 1)) / width))
    values = rng.uniform(-1.0, 0.0, (width, n))
    values[half] = width
    return _sorted(csr_array(dia_array((values, np.arange(-half, half + 1)), shape=(n, n))))


# ----------------------------------------------------------------------------------------------- parts


def _random(entries: int, seed: int) -> np.random.Generator:
    if entries < 1 or entries >= 2**31:
        raise DatError(f"a test matrix of {entries} entries; give 1 ... 2**31 - 1")
    return np.random.default_rng(seed)


def _flat(pairs: list[Pairs]) -> Pairs:
    return np.concatenate([i.ravel() for i, _ in pairs]), np.concatenate([j.ravel() for _, j in pairs])


def _lattice_points(n: int) -> Array:
    return np.stack(np.unravel_index(np.arange(n**3), (n, n, n)), axis=1).astype(np.float64)


def _renumbered(place: npt.NDArray[np.number], rng: np.random.Generator) -> Index:
    """Return new numbers in the order of ``place``, disturbed by up to `WINDOW`."""
    order = np.argsort(place + rng.uniform(0.0, WINDOW, place.size))
    number = np.empty(place.size, dtype=np.int64)
    number[order] = np.arange(place.size)
    return number


def _mesh_laplacian(
    pairs: list[Pairs], points: Array, place: npt.NDArray[np.number], rng: np.random.Generator
) -> csr_array:
    i, j = _flat(pairs)
    weight = 1.0 / ((points[i] - points[j]) ** 2).sum(axis=1)
    number = _renumbered(place, rng)
    return _laplacian(number[i], number[j], weight, place.size)


def _laplacian(i: Index, j: Index, weight: Array, n: int) -> csr_array:
    """Return ``diag(Σ w) - W + SHIFT`` for the edges ``(i, j)``, each given once."""
    diagonal = SHIFT + np.bincount(i, weight, n) + np.bincount(j, weight, n)
    everything = np.arange(n)
    row, column = np.concatenate([i, j, everything]), np.concatenate([j, i, everything])
    values = np.concatenate([-weight, -weight, diagonal])
    return _sorted(csr_array(coo_array((values, (row, column)), shape=(n, n))))


def _sorted(matrix: csr_array) -> csr_array:
    """Sort the rows, add duplicates up, and keep indices and offsets in 32 bits, which always hold them here."""
    matrix.sum_duplicates()
    parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    result = csr_array(parts, shape=matrix.shape)
    result.has_canonical_format = True
    return result


GENERATORS: Mapping[str, Generator] = MappingProxyType({
    "laplacian2d": laplacian2d,
    "laplacian3d": laplacian3d,
    "tet_dual": tet_dual,
    "lagrange2": lagrange2,
    "power_law": power_law,
    "banded": banded,
})  # fmt: skip
"""The generators by name."""
