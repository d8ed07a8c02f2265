"""The generated matrices: sizes, structure counted by Euler's formula, values that mean something."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.sparse import csr_array

from fluxloom.core.errors import DatError
from fluxloom_lab.problems import matrices
from fluxloom_lab.problems.matrices import (
    GENERATORS,
    SHIFT,
    banded,
    lagrange2,
    laplacian2d,
    laplacian3d,
    power_law,
    tet_dual,
)

MESHES = {"laplacian2d": laplacian2d, "laplacian3d": laplacian3d, "tet_dual": tet_dual}


@pytest.mark.parametrize("name", list(GENERATORS))
def test_size_form_and_seed(name: str) -> None:
    make = GENERATORS[name]
    matrix = make(300_000, 5)
    assert isinstance(matrix, csr_array)
    assert abs(matrix.nnz / 300_000 - 1.0) < 0.1
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert matrix.data.dtype == np.float64
    checked = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    assert checked.has_canonical_format
    again, other = make(300_000, 5), make(300_000, 6)
    assert np.array_equal(matrix.indices, again.indices)
    assert np.array_equal(matrix.data, again.data)
    assert not np.array_equal(matrix.data[: other.nnz], other.data[: matrix.nnz])


@pytest.mark.parametrize("name", list(GENERATORS))
def test_any_number_of_entries(name: str) -> None:
    for entries in (1, 2, 10, 99, 1000):
        matrix = GENERATORS[name](entries, 0)
        assert matrix.nnz >= 1
        assert matrix.shape[0] == matrix.shape[1]
    for wrong in (0, -3, 2**31):
        with pytest.raises(DatError, match="entries"):
            GENERATORS[name](wrong, 0)


@pytest.mark.parametrize("name", list(MESHES))
def test_laplacians(name: str) -> None:
    """Symmetric, no positive weight off the diagonal, rows sum to the shift: positive definite."""
    matrix = MESHES[name](20_000, 1)
    assert abs(matrix - matrix.T).max() == 0.0
    off = matrix.copy()
    off.setdiag(0.0)
    assert off.max() <= 0.0
    scale = matrix.diagonal().max()
    np.testing.assert_allclose(matrix @ np.ones(matrix.shape[0]), SHIFT, atol=1e-12 * scale)
    assert (matrix.diagonal() > 0).all()


def test_triangulation() -> None:
    """Euler: a square of n by n points has (n-1)^2 diagonals beside its 2 n (n-1) lattice edges."""
    n = round((20_000 / 7) ** 0.5)
    matrix = laplacian2d(20_000, 3)
    assert matrix.shape == (n * n, n * n)
    assert matrix.nnz == n * n + 2 * ((n - 1) ** 2 + 2 * n * (n - 1))
    lengths = np.diff(matrix.indptr)
    assert lengths.min() >= 3
    assert lengths.max() <= 9
    assert lengths.std() > 0.5  # unstructured: rows differ


def test_tetrahedra() -> None:
    """Euler: points - edges + faces - cells = 1 for a ball."""
    matrix = laplacian3d(20_000, 3)
    n = round((20_000 / 30) ** (1 / 3)) + 1
    points, cells = n**3 + (n - 1) ** 3, 12 * (n - 1) ** 3
    faces = (4 * cells + 12 * (n - 1) ** 2) // 2
    assert matrix.shape[0] == points
    assert (matrix.nnz - points) // 2 == points + faces - cells - 1
    lengths = np.diff(matrix.indptr)
    assert lengths.min() >= 5
    assert lengths.max() <= 27


def test_numbering_is_local_but_no_formula() -> None:
    matrix = laplacian2d(100_000, 0)
    n = round(matrix.shape[0] ** 0.5)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    distance = np.abs(matrix.indices - row)
    assert distance.max() <= n + 1 + 2 * matrices.WINDOW
    assert np.unique(distance).size > 100


@pytest.mark.parametrize("n", [1, 2, 3])
def test_dual_graph_is_that_of_the_tetrahedra(n: int) -> None:
    """The pairs are those tetrahedra that have three points in common, by looking at all of them."""
    i, j = matrices._tet_faces(n, np.random.default_rng(7))
    found = {tuple(sorted(pair)) for pair in zip(i.tolist(), j.tolist(), strict=True)}
    assert len(found) == i.size
    corners = tetrahedra(n, np.random.default_rng(7))
    by_face: dict[frozenset[tuple[float, ...]], list[int]] = {}
    for number, points in enumerate(corners):
        for face in combinations(points, 3):
            by_face.setdefault(frozenset(face), []).append(number)
    assert max(len(cells) for cells in by_face.values()) <= 2
    assert found == {tuple(cells) for cells in by_face.values() if len(cells) == 2}


def tetrahedra(n: int, rng: np.random.Generator) -> list[list[tuple[float, ...]]]:
    """Return the points of each tetrahedron, in their order."""
    cuts = [rng.integers(0, 2, (n + 1, n, n)) for _ in range(3)]
    cells = []
    for cube in product(range(n), repeat=3):
        middle = tuple(c + 0.5 for c in cube)
        for axis, side in product(range(3), (0, 1)):
            first, second = (a for a in range(3) if a != axis)
            cut = cuts[axis][cube[axis] + side, cube[first], cube[second]]
            square = {}
            for s, t in product((0, 1), repeat=2):
                point = [float(c) for c in cube]
                point[axis] += side
                point[first] += s
                point[second] += t
                square[s, t] = tuple(point)
            ends = [(0, 0), (1, 1)] if cut else [(1, 0), (0, 1)]
            thirds = [(1, 0), (0, 1)] if cut else [(0, 0), (1, 1)]  # the one at the lower end of `second` first
            cells += [[middle, *(square[k] for k in ends), square[third]] for third in thirds]
    return cells


def test_dual_graph_rows() -> None:
    matrix = tet_dual(50_000, 0)
    n = round((50_000 / 60) ** (1 / 3))
    assert matrix.shape[0] == 12 * n**3
    assert np.bincount(np.diff(matrix.indptr)).tolist() == [0, 0, 0, 0, 12 * n * n, 12 * n**3 - 12 * n * n]


def test_quadratic_elements() -> None:
    """Rows of 25, 15 and 9; constants have no energy, linear functions that of their gradient."""
    n = 12
    matrix = lagrange2(64 * n * n, 4)
    size = 2 * n + 1
    assert matrix.shape == (size**2, size**2)
    counts = np.bincount(np.diff(matrix.indptr))
    assert counts[9] == n * n + 4 + 4 * n  # inside cells; corners of the square, and middles of its sides: 9
    assert counts.nonzero()[0].tolist() == [9, 15, 25]
    assert counts[25] == (n - 1) ** 2
    assert abs(matrix - matrix.T).max() < 1e-14
    np.testing.assert_allclose(matrix @ np.ones(size**2), 0.0, atol=1e-12)
    slow = np.repeat(0.5 * np.arange(size), size)
    fast = np.tile(0.5 * np.arange(size), size)
    ratio = (fast @ (matrix @ fast)) / n**2
    assert slow @ (matrix @ slow) == pytest.approx(n**2)
    assert 0.5 < ratio < 2.0
    assert slow @ (matrix @ fast) == pytest.approx(0.0, abs=1e-9)
    # quadratics are exact too: the energy of x**2 is the integral of 4 x**2
    assert slow**2 @ (matrix @ slow**2) == pytest.approx(4.0 * n * n**3 / 3.0)


def test_power_law() -> None:
    """Mean and spread as of webbase-1M (3.1 and 25); the histogram falls like k**-2.2."""
    matrix = power_law(3_000_000, 2)
    lengths = np.diff(matrix.indptr)
    assert 2.5 < lengths.mean() < 3.5
    assert lengths.std() > 4 * lengths.mean()
    assert 1000 < lengths.max() <= 5000
    counts = np.bincount(lengths)
    slope = np.log(counts[2] / counts[16]) / np.log(8.0)
    assert 2.0 < slope < 2.5


def test_band() -> None:
    matrix = banded(200_000, 0)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    assert np.abs(matrix.indices - row).max() == 32
    assert np.diff(matrix.indptr).max() == 65
    assert matrix.nnz == 65 * matrix.shape[0] - 32 * 33
    diagonal = matrix.diagonal()
    assert (diagonal > np.abs(matrix).sum(axis=1) - diagonal).all()
