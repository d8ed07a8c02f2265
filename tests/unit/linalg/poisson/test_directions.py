"""Second differences of one direction: matrices, eigenvalues, transforms, weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.fft

from fluxloom.core.errors import SolverError
from fluxloom.linalg.direct.poisson.directions import Direction, read_direction

ENDS = [("periodic",) * 2, *itertools.product(("dirichlet", "neumann"), repeat=2)]
SIZES = (1, 2, 3, 8, 17)
CASES = [
    (centring, ends, n)
    for centring in ("cell", "node")
    for ends in ENDS
    for n in SIZES
    if (centring, ends, n) != ("node", ("neumann", "neumann"), 1)
]
DIGITS = {"rtol": 1e-12, "atol": 1e-10}


def stretched(n: int, ends: tuple[str, str], centring: str) -> Direction:
    count = read_direction(0, n, 1.0, ends, centring).intervals.size
    coordinates = np.cumsum(np.random.default_rng(n).uniform(0.5, 1.5, count + 1))
    return read_direction(0, n, coordinates, ends, centring)


@pytest.mark.parametrize(("centring", "ends", "n"), CASES)
def test_transform_diagonalises(centring, ends, n):
    direction = read_direction(0, n, 0.3, ends, centring)
    matrix, kind = direction.matrix().toarray(), direction.kind
    f = np.random.default_rng(1).standard_normal(n)

    def transformed(values):
        if kind == "dft":
            return np.fft.fft(values)
        return getattr(scipy.fft, kind[:3])(values, int(kind[3]))

    np.testing.assert_allclose(transformed(matrix @ f), direction.eigenvalues(kind) * transformed(f), **DIGITS)
    if direction.constant:
        mean = np.average(f, weights=direction.weights)
        assert transformed(f)[0].real / direction.gain(kind) == pytest.approx(mean, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("centring", "ends", "n"), CASES)
@pytest.mark.parametrize("uniform", [True, False])
def test_basis_diagonalises(centring, ends, n, uniform):
    direction = read_direction(0, n, 0.3, ends, centring) if uniform else stretched(n, ends, centring)
    matrix, basis = direction.matrix().toarray(), direction.basis
    weighted = direction.weights[:, None] * matrix
    np.testing.assert_allclose(weighted, weighted.T, **DIGITS)
    np.testing.assert_allclose(basis.backward * basis.eigenvalues @ basis.forward, matrix, **DIGITS)
    np.testing.assert_allclose(basis.forward @ basis.backward, np.eye(n), **DIGITS)
    np.testing.assert_allclose(np.sort(direction.spectrum), np.sort(basis.eigenvalues), **DIGITS)
    if direction.constant:
        f = np.random.default_rng(1).standard_normal(n)
        mean = np.average(f, weights=direction.weights)
        assert (basis.forward @ f)[0] / direction.gain("matrix") == pytest.approx(mean, rel=1e-12, abs=1e-13)
        assert basis.eigenvalues[0] == 0.0


@pytest.mark.parametrize("centring", ["cell", "node"])
@pytest.mark.parametrize("ends", ENDS)
def test_quadratic_is_exact(centring, ends):
    """In the interior of a uniform direction, and with its data at the ends where those are nodes."""
    n, h = 7, 0.25
    direction = read_direction(0, n, h, ends, centring)
    first = h / 2 if centring == "cell" else h * (ends[0] == "dirichlet")
    x = first + h * np.arange(n)
    found = direction.matrix() @ x**2
    np.testing.assert_allclose(found[1:-1], 2.0, rtol=1e-12)
    if centring == "node" and ends != ("periodic",) * 2:
        last = x[-1] + h * (ends[1] == "dirichlet")
        data = {"dirichlet": (0.0, last**2), "neumann": (0.0, 2 * last)}
        low = found[0] + direction.load(0) * data[ends[0]][0]
        high = found[-1] + direction.load(-1) * data[ends[1]][1]
        np.testing.assert_allclose([low, high], 2.0, rtol=1e-12)


def test_equidistant_coordinates_are_uniform():
    direction = read_direction(0, 10, np.linspace(0.0, 1.0, 11), ("neumann",) * 2, "cell")
    assert direction.uniform
    assert direction.kind == "dct2"
    assert direction.intervals[0] == pytest.approx(0.1, rel=1e-15)


@pytest.mark.parametrize(("centring", "ends", "count"), [
    ("cell", ("dirichlet",) * 2, 9), ("node", ("dirichlet",) * 2, 10), ("node", ("neumann",) * 2, 8),
    ("node", ("neumann", "dirichlet"), 9), ("node", ("periodic",) * 2, 9),
])  # fmt: skip
def test_number_of_coordinates(centring, ends, count):
    x = np.arange(count) ** 1.5
    assert read_direction(2, 8, x, ends, centring).n == 8
    with pytest.raises(SolverError, match=f"axis 2 has shape \\({count + 1},\\).*all {count} "):
        read_direction(2, 8, np.arange(count + 1.0), ends, centring)


@pytest.mark.parametrize("spacing", [0.0, -1.0, np.nan, np.inf])
def test_lengths_have_to_be_positive(spacing):
    with pytest.raises(SolverError, match="spacing of axis 1 is a positive length"):
        read_direction(1, 4, spacing, ("periodic",) * 2, "cell")


@pytest.mark.parametrize("x", [[0.0, 1.0, 1.0, 2.0], [0.0, 1.0, np.nan, 2.0], [0.0, 2.0, 1.0, 3.0]])
def test_coordinates_have_to_increase(x):
    with pytest.raises(SolverError, match="coordinates increase, but not from number 1 to 2"):
        read_direction(0, 3, x, ("periodic",) * 2, "cell")


def test_one_node_between_neumann_ends_is_refused():
    with pytest.raises(SolverError, match="axis 0 has 1 unknowns"):
        read_direction(0, 1, 1.0, ("neumann",) * 2, "node")


def test_centring_is_checked():
    with pytest.raises(SolverError, match="did you mean 'node'"):
        read_direction(0, 3, 1.0, ("periodic",) * 2, "nodes")
