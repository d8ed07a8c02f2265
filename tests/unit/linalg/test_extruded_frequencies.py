"""Frequencies of a periodic direction, the systems they stand for, and operators of several of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import fft, sparse

import fluxloom as fl
from fluxloom.core.errors import SolverError
from fluxloom.device.transforms.fft import HostTransform
from fluxloom.linalg import BiCGStab, ConjugateGradient, SparseMatrix, Stop
from fluxloom.linalg.direct.extruded.frequencies import Frequencies, batches, padded_systems
from fluxloom.linalg.direct.extruded.operator import ShiftedMatrix, diagonals
from tests.unit.linalg.test_extruded import circulant
from tests.unit.linalg.test_krylov import laplacian


@pytest.mark.parametrize("planes", [1, 2, 3, 4, 7, 8, 16])
def test_eigenvalues_of_the_circulant(planes: int) -> None:
    found = Frequencies(planes, 0.25)
    every = np.concatenate([np.repeat(value, n) for value, n in zip(found.eigenvalues, found.systems, strict=True)])
    want = np.linalg.eigvalsh(circulant(planes, 0.25).toarray())
    np.testing.assert_allclose(np.sort(every), want, atol=1e-12)
    assert every.size == planes == found.systems.sum()
    assert found.eigenvalues[0] == 0.0
    assert (np.diff(found.eigenvalues) > 0).all()


@pytest.mark.parametrize("planes", [1, 2, 5, 8])
def test_frequencies_left_out_are_conjugate(planes: int) -> None:
    values = np.random.default_rng(1).standard_normal((3, planes))
    spectra = HostTransform().forward(values)
    found = spectra[:, ::2] + 1j * spectra[:, 1::2]
    every = np.asarray(fft.fft(values, axis=1, norm="ortho"))
    np.testing.assert_allclose(found, every[:, : planes // 2 + 1], atol=1e-14)
    for k in range(1, planes):
        np.testing.assert_allclose(every[:, planes - k], np.conj(every[:, k]), atol=1e-14)
    squares = (spectra.reshape(3, -1, 2) ** 2).sum(axis=(0, 2))
    systems = Frequencies(planes, 1.0).systems
    assert squares @ systems == pytest.approx((values**2).sum())  # as much as residuals of frequencies count


@pytest.mark.parametrize(("planes", "shares"), [(1, 1), (2, 2), (3, 5), (4, 6), (8, 14)])
def test_shares(planes: int, shares: int) -> None:
    assert Frequencies(planes, 1.0).shares == shares


def test_batches() -> None:
    assert batches(range(1)) == [range(1)]
    quads = [range(k, k + 4) for k in range(4, 32, 4)]
    assert batches(range(33), 8) == [range(1), range(1, 2), range(2, 4), *quads, range(32, 33)]
    assert batches(range(3, 10), 8) == [range(3, 6), range(6, 10)]
    assert batches(range(4), 2) == [range(k, k + 1) for k in range(4)]
    assert [padded_systems(range(1, 1 + n)) for n in (1, 2, 3, 4)] == [2, 4, 8, 8]


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("systems", [1, 2, 8])
def test_products_with_a_shift_each(device: str, systems: int) -> None:
    context, random = fl.Context(device, tuning=False), np.random.default_rng(2)
    plane, areas, shifts = laplacian(5), 1.0 + random.random(25), np.arange(systems) * 0.7
    matrix = SparseMatrix.from_scipy(context, plane)
    operator = ShiftedMatrix(matrix, context.dat(matrix.rows, areas), shifts)
    given, right = random.standard_normal((25, systems)), random.standard_normal((25, systems))
    want = plane @ given + shifts * areas[:, None] * given
    x, b = context.dat(matrix.rows, given), context.dat(matrix.rows, right)
    y, r = (context.dat(matrix.rows, shape=(systems,)) for _ in "yr")
    total = context.scalar(np.zeros(systems))
    operator.product_dot(x, y, total)()
    np.testing.assert_allclose(y.read(), want, atol=1e-13)
    np.testing.assert_allclose(total.value, (given * want).sum(axis=0), atol=1e-12)
    y.write(np.zeros((25, systems)))
    operator.product(x, y)()
    operator.residual(x, b, r)()
    np.testing.assert_allclose(y.read(), want, atol=1e-13)
    np.testing.assert_allclose(r.read(), right - want, atol=1e-13)
    for k, shift in enumerate(shifts):
        one = operator.member(shift).to_scipy()
        np.testing.assert_allclose(one @ given[:, k], want[:, k], atol=1e-13)
    inverse = diagonals(operator).diagonal.read()
    np.testing.assert_allclose(inverse, 1 / (plane.diagonal()[:, None] + shifts * areas[:, None]))


def test_diagonal_of_each_system() -> None:
    """By both methods, which are told of several diagonals by their shape."""
    context, plane = fl.Context("cpu", threads=1, tuning=False), laplacian(8)
    matrix = SparseMatrix.from_scipy(context, plane)
    operator = ShiftedMatrix(matrix, context.dat(matrix.rows, np.ones(64)), [0.0, 1.0, 20.0, 400.0])
    b = context.dat(matrix.rows, np.random.default_rng(0).standard_normal((64, 4)))
    for method in (ConjugateGradient, BiCGStab):
        x = context.dat(matrix.rows, shape=(4,))
        status = method(operator, b, x, preconditioner=diagonals(operator), stop=Stop(rtol=1e-10)).solve()
        assert status.converged
        left = b.read() - plane @ x.read() - x.read() * [0.0, 1.0, 20.0, 400.0]
        assert np.linalg.norm(left) < 1e-8


def test_wrong_operators() -> None:
    context = fl.Context("cpu", threads=1, tuning=False)
    matrix = SparseMatrix.from_scipy(context, laplacian(3))
    weight = context.dat(matrix.rows, np.ones(9))
    with pytest.raises(SolverError, match="scalars on its rows"):
        ShiftedMatrix(matrix, context.dat(matrix.rows, shape=(2,)), [1.0])
    with pytest.raises(SolverError, match="a finite shift"):
        ShiftedMatrix(matrix, weight, [np.inf])
    operator = ShiftedMatrix(matrix, weight, [1.0, 2.0])
    x, y = (context.dat(matrix.rows, shape=(3,)) for _ in "xy")
    with pytest.raises(SolverError, match="there are 2 systems"):
        operator.product(x, y)
    with pytest.raises(SolverError, match="the diagonal of local row 0 is not positive"):
        diagonals(ShiftedMatrix(matrix, weight, [-100.0]))
    hollow = SparseMatrix.from_scipy(context, sparse.csr_array(np.ones((2, 2)) - np.eye(2)))
    with pytest.raises(SolverError, match="2 rows have no entry on the diagonal"):
        ShiftedMatrix(hollow, context.dat(hollow.rows, np.ones(2)), [1.0]).member(1.0)
