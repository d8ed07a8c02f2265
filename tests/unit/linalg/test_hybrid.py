"""A matrix on several devices of one process: products, solutions and iterations of one device, however it is cut."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom.core.errors import DeviceUnavailable, FluxloomError, LoopError, SolverError
from fluxloom.device.cpu import CpuDevice
from fluxloom.dsl.declare.named_device import open_named
from fluxloom.linalg import GMRES, BiCGStab, ConjugateGradient, Jacobi, SparseMatrix, Stop
from fluxloom.linalg.mixed.balance import balance_rows
from fluxloom.linalg.mixed.hybrid import HybridMatrix, HybridPart, ordered_rows
from fluxloom.linalg.mixed.rows import check_shares, row_bounds, row_slices
from fluxloom.linalg.mixed.team import DeviceTeam
from fluxloom_lab.problems.matrices import lattice_laplacian, tet_dual
from tests.unit.linalg.test_krylov import MATRICES, random

TWO = ["cpu:1", "cpu:1"]
SPLITS = [(1, 0), (0, 1), (0.5, 0.5), (0.95, 0.05), (0.1, 0.9), (0.002, 0.998)]


def tets(rows: int = 2000) -> Any:
    return tet_dual(5 * rows, 1)


# ---------------------------------------------------------------------------------------- rows and cuts


@pytest.mark.parametrize("cuts", [(0, 300, 1000), (0, 1, 999, 1000), (0, 250, 500, 750, 1000), (0, 1000)])
def test_slices_make_the_matrix(cuts: tuple[int, ...]) -> None:
    """What the parts store, send and receive, put together, is the matrix; the interior needs nobody."""
    rng = np.random.default_rng(4)
    a = sparse.csr_array(np.where(rng.random((1000, 1000)) < 0.004, rng.random((1000, 1000)), 0.0) + np.eye(1000))
    slices = row_slices(a, cuts)
    for rank, piece in enumerate(slices):
        part, first, end = piece.part, cuts[rank], cuts[rank + 1]
        assert (part.owned, part.total) == (end - first, 1000)
        whole = sparse.csr_array(
            (piece.values, part.numbers[piece.indices], piece.offsets), shape=(part.owned, part.total)
        )
        assert abs(whole - a[first:end]).max() == 0.0
        inner = piece.indices[piece.offsets[part.begin] : piece.offsets[part.inside]]
        assert (inner < part.owned).all()
        for near, send in zip(part.neighbours, part.send, strict=True):
            other = slices[near].part
            received = dict(zip(other.neighbours, other.receive, strict=True))[rank]
            np.testing.assert_array_equal(part.numbers[send], other.numbers[received])
        assert part.halo == part.stored - part.owned == len(set(part.numbers[part.owned :]))


def test_interior_of_a_band_is_all_but_the_cut() -> None:
    a = lattice_laplacian((50, 10))
    low, middle, high = row_slices(a, (0, 200, 300, 500))
    assert (low.part.begin, low.part.inside, low.interface) == (0, 190, 10)
    assert (middle.part.begin, middle.part.inside) == (10, 90)
    assert (high.part.begin, high.part.inside) == (10, 200)


@pytest.mark.parametrize(
    ("shares", "granule", "want"),
    [
        ((0.5, 0.5), 1, (0, 50, 101)),
        ((0.5, 0.5), 32, (0, 64, 101)),
        ((1, 0), 32, (0, 101, 101)),
        ((0, 1), 32, (0, 0, 101)),
        ((0.3, 0.7, 0), 10, (0, 30, 101, 101)),
        ((0.999, 0.001), 32, (0, 96, 101)),
    ],
)
def test_bounds(shares: tuple[float, ...], granule: int, want: tuple[int, ...]) -> None:
    assert row_bounds(101, shares, granule) == want


# ------------------------------------------------------------------------------------ results of one device


@pytest.mark.parametrize(
    ("shares", "reorder"),
    [*((split, False) for split in SPLITS), ((0.2, 0.3, 0.5), False), ((0.5, 0, 0.5), True), ((0.3, 0.7), True)],
)
def test_products(shares: tuple[float, ...], reorder: bool) -> None:
    a = tets()
    x = random(a.shape[0])
    with HybridMatrix(a, ["cpu:1"] * len(shares), shares, reorder=reorder) as matrix:
        assert sum(matrix.shares) == pytest.approx(1.0)
        assert matrix.members == tuple(k for k, share in enumerate(shares) if share)
        given, result = matrix.vector(x), matrix.vector()
        product = matrix.product(given, result)
        product()
        np.testing.assert_allclose(result.read(), a @ x, rtol=1e-12, atol=1e-9)
        given.write(-2.0 * x)  # values at the cuts have to travel again
        product()
        np.testing.assert_allclose(result.read(), -2.0 * (a @ x), rtol=1e-12, atol=1e-9)
        np.testing.assert_array_equal(given.read(), -2.0 * x)
        np.testing.assert_array_equal(x, random(a.shape[0]), "the array of the caller was changed")


@pytest.mark.parametrize("method", [ConjugateGradient, BiCGStab, GMRES])
@pytest.mark.parametrize("shares", SPLITS)
def test_solves_as_one_device(shares: tuple[float, float], method: Any) -> None:
    a = MATRICES["cg" if method is ConjugateGradient else "bicgstab"](20)
    b, stop = random(400), Stop(rtol=1e-9)
    context = fl.Context("cpu", threads=1, tuning=False)
    alone = SparseMatrix.from_scipy(context, a)
    x = context.dat(alone.rows, name="x")
    want = method(alone, context.dat(alone.rows, b, "b"), x, preconditioner=Jacobi(), stop=stop).solve()
    with HybridMatrix(a, TWO, shares) as matrix:
        given, found = matrix.vector(b), matrix.vector()
        solver = matrix.solver(given, found, method, preconditioner=Jacobi(), stop=stop)
        status = solver.solve().require()
        assert abs(status.iterations - want.iterations) <= (0 if method is ConjugateGradient else 2)
        np.testing.assert_allclose(found.read(), x.read(), rtol=1e-6, atol=1e-8)
        given.write(2.0 * b)
        assert solver.solve().converged
        np.testing.assert_allclose(a @ found.read(), 2.0 * b, atol=1e-6)


def test_several_systems_and_a_null_space() -> None:
    from tests.unit.linalg.test_krylov import neumann

    a, b = neumann(12), random(144, 3) + 1.0
    with HybridMatrix(a, TWO, (0.7, 0.3), layout=[fl.SlicedELL(8), None]) as matrix:
        x = matrix.vector(systems=3)
        assert x.shape == (144, 3)
        status = matrix.solver(matrix.vector(b), x, nullspace="constant").solve().require()
        found = x.read()
        assert status.each.shape == (3,)
    np.testing.assert_allclose(a @ found, b - b.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-12)


@pytest.mark.opencl
def test_work_items_and_threads() -> None:
    a = tets()
    x = random(a.shape[0])
    with HybridMatrix(a, ["opencl", "cpu:1"], (0.6, 0.4), granule=128) as matrix:
        given, result = matrix.vector(x), matrix.vector()
        matrix.product(given, result)()
        np.testing.assert_allclose(result.read(), a @ x, rtol=1e-12, atol=1e-9)
        solution = matrix.vector()
        matrix.solver(result, solution, preconditioner=Jacobi(), stop=Stop(rtol=1e-10)).solve().require()
        np.testing.assert_allclose(solution.read(), x, rtol=1e-4, atol=1e-5)


def test_reordered_rows_are_few_at_the_cut() -> None:
    a = lattice_laplacian((40, 25))
    mixed = np.random.default_rng(3).permutation(1000)
    a = a[mixed][:, mixed]
    with HybridMatrix(a, TWO) as given, HybridMatrix(a, TWO, reorder=True) as ordered:
        assert sum(given.interface) > 950
        assert sum(ordered.interface) < 120


def test_threads_end() -> None:
    def team() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("team ")]

    before = len(team())
    a = lattice_laplacian((6, 6))
    with HybridMatrix(a, TWO) as matrix:
        assert len(team()) == before + 2
        matrix.close()
        matrix.close()
    with DeviceTeam(TWO) as shared:
        HybridMatrix(a, shared).close()
        assert HybridMatrix(a, shared, (1, 0)).vector(np.ones(36)).read().sum() == 36
        assert len(team()) == before + 2
    with pytest.raises(FluxloomError, match="granules"):
        balance_rows(a, TWO, granules=(1,))
    assert len(team()) == before


def test_programs_of_ranks() -> None:
    """Anything that runs on a rank runs on the parts, and its sums are those of all rows."""
    a = lattice_laplacian((9, 9, 9))

    def entries(part: HybridPart) -> list[int]:
        return part.context.comm.allgather(part.matrix.entries)

    with HybridMatrix(a, TWO, (0.25, 0.75)) as matrix:
        found = matrix.run(entries)
        assert found[0] == found[1]
        assert sum(found[0]) == a.nnz


# -------------------------------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"shares": (0.5, 0.4)}, r"shares \[0.5, 0.4\]: .* which sum to 1"),
        ({"shares": (1.5, -0.5)}, "none negative"),
        ({"shares": (1.0,)}, "1 shares for 2 devices"),
        ({"granule": 0}, "a granule of 0 rows"),
        ({"layout": [None]}, "1 layouts for 2 devices"),
        ({"matrix": sparse.csr_array((0, 0))}, "without rows"),
        ({"matrix": sparse.csr_array((3, 4))}, "square, not 3 x 4"),
        ({"matrix": np.eye(3)}, "sparse one of SciPy, not from ndarray"),
        ({"matrix": sparse.csr_array(np.eye(3) * 1j)}, "real values, not complex128"),
        ({"devices": []}, "no devices: give a list"),
    ],
)
def test_wrong_arguments(choices: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"matrix": lattice_laplacian((5, 5)), "devices": TWO} | choices
    with pytest.raises(SolverError, match=message):
        HybridMatrix(given.pop("matrix"), given.pop("devices"), **given)
    with pytest.raises(SolverError, match="without rows"):
        row_bounds(0, (1.0,))
    with pytest.raises(SolverError, match="none negative"):
        check_shares((float("nan"), 1.0), 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "unknown device 'gpu'"),
        ("cpu:none", "number of threads, as in cpu:12"),
        ("cpu:0", "number of threads, as in cpu:12"),
        ("cup", "did you mean 'cpu'"),
    ],
)
def test_unknown_device(name: str, message: str) -> None:
    with pytest.raises(DeviceUnavailable, match=message):
        HybridMatrix(lattice_laplacian((5, 5)), ["cpu:1", name])


def test_named_devices() -> None:
    device = open_named("cpu:1")
    assert isinstance(device, CpuDevice)
    assert device.threads == 1
    assert open_named(device) is device
    with DeviceTeam([device, "cpu:2"]) as team:
        assert team.names == ("cpu", "cpu:2")
        assert [d.threads for d in team.devices if isinstance(d, CpuDevice)] == [1, 2]


def test_vectors_of_others() -> None:
    a = lattice_laplacian((5, 5))
    with HybridMatrix(a, ["cpu:1"]) as one, HybridMatrix(a, TWO) as two:
        with pytest.raises(SolverError, match=r"no vector of this matrix: make it by matrix.vector"):
            two.product(one.vector(), two.vector())
        with pytest.raises(SolverError, match=r"values of shape \(24,\) for 25 rows"):
            two.vector(np.zeros(24))
        x = two.vector()
        with pytest.raises(LoopError, match="x and y are both"):
            two.product(x, x)
        assert two.solver(two.vector(np.ones(25)), x).solve().converged, "an error that all devices meet breaks nothing"


def test_one_device_that_fails() -> None:
    """The other one, which waits for it, is told; then the matrix is of no more use, and says so."""

    def fails(part: HybridPart) -> None:
        if part.rank:
            raise ValueError("broken here")
        part.context.comm.barrier()

    with HybridMatrix(lattice_laplacian((5, 5)), TWO) as matrix:
        with pytest.raises(ValueError, match="broken here"):
            matrix.run(fails)
        with pytest.raises(SolverError, match="make a new matrix"):
            matrix.vector()


def test_ordered_rows_are_taken_as_they_are() -> None:
    rows = ordered_rows(lattice_laplacian((6, 6)), reorder=True)
    assert ordered_rows(rows) is rows
    assert rows.bound == 8.0
    assert sorted(rows.order.tolist() if rows.order is not None else []) == list(range(36))
