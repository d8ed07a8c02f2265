"""Smoothed aggregation: iterations, symmetry, null spaces, devices, several systems, ranks, and pyamg's own solver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial import Delaunay

import fluxloom as fl
from fluxloom import Chain
from fluxloom.codegen.unit import generate
from fluxloom.comm.base import Comm, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import DeviceUnavailable, SolverError
from fluxloom.dsl.plan.bind import Numbering
from fluxloom.linalg import ConjugateGradient, Jacobi, SparseMatrix, Status, Stop, distributed_matrix
from fluxloom.linalg.matrix.local_rows import LocalRows
from fluxloom.linalg.precond.chebyshev import Chebyshev, DampedJacobi
from fluxloom.linalg.precond.multigrid import Hierarchy, Multigrid, SmoothedAggregation
from fluxloom.linalg.precond.multigrid_setup import pseudo_inverse
from tests.golden.sources import context as device_of
from tests.unit.linalg.test_chebyshev import applied, laplacian, varied

SMALL = SmoothedAggregation(coarse=20)
"""Of three levels on small matrices."""


@pytest.fixture(scope="module")
def ctx() -> fl.Context:
    return fl.Context("cpu", threads=2, tuning=False)


def neumann(a: sparse.csr_array) -> sparse.csr_array:
    """Return the matrix with the diagonal that makes row sums zero."""
    return sparse.csr_array(a - sparse.diags_array(a.sum(axis=1)))


def delaunay(n: int = 1500) -> sparse.csr_array:
    """Return the Laplacian of the graph of a triangulation of random points, plus a small multiple of one."""
    corners = Delaunay(np.random.default_rng(11).random((n, 2))).simplices
    pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    graph = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    graph = ((graph + graph.T) > 0).astype(float)
    return sparse.csr_array(neumann(sparse.csr_array(-graph)) + 1e-4 * sparse.eye_array(n))


def solved(
    ctx: fl.Context, a: sparse.csr_array, recipe: Any, *, shape: tuple[int, ...] = (), nullspace: Any = "none"
) -> Status:
    """Solve with a random right-hand side; check the residual."""
    matrix = SparseMatrix.from_scipy(ctx, a)
    right = np.random.default_rng(12).random((a.shape[0], *shape))
    if nullspace == "constant":
        right -= right.mean(axis=0)
    b, x = ctx.dat(matrix.rows, right), ctx.dat(matrix.rows, shape=shape)
    status = ConjugateGradient(
        matrix, b, x, preconditioner=recipe, stop=Stop(rtol=1e-8, iterations=200), nullspace=nullspace
    ).solve()
    assert status.converged
    rest = np.linalg.norm(right - a @ x.read(), axis=0) / np.linalg.norm(right, axis=0)
    assert np.max(rest) < 2e-8
    return status


@pytest.mark.parametrize("sizes", [(32, 32), (24, 24, 24)], ids=["2d", "3d"])
def test_iterations(ctx: fl.Context, sizes: tuple[int, ...]) -> None:
    assert solved(ctx, laplacian(*sizes), SmoothedAggregation()).iterations <= 12


@pytest.mark.parametrize(
    ("small", "large"), [((12,) * 3, (20,) * 3), pytest.param((16,) * 3, (32,) * 3, marks=pytest.mark.long)]
)
def test_iterations_do_not_depend_on_the_size(ctx: fl.Context, small: Any, large: Any) -> None:
    few, many = (solved(ctx, laplacian(*sizes), SmoothedAggregation()).iterations for sizes in (small, large))
    assert many <= few + 3


def test_null_space(ctx: fl.Context) -> None:
    a = neumann(laplacian(18, 17, 16))
    status = solved(ctx, a, SmoothedAggregation(), nullspace="constant")
    assert status.iterations <= 12


def test_irregular_graph_and_jacobi(ctx: fl.Context) -> None:
    a = delaunay()
    assert solved(ctx, a, SmoothedAggregation()).iterations <= 15
    assert solved(ctx, a, SmoothedAggregation(DampedJacobi())).iterations <= 25


def test_strong_directions(ctx: fl.Context) -> None:
    """With theta, aggregates follow the strong couplings, and anisotropy costs less."""
    line = laplacian(40)
    a = sparse.csr_array(
        sparse.kron(line, sparse.eye_array(40)) + 1e-3 * sparse.kron(sparse.eye_array(40), line)
    )  # fmt: skip
    matrix = SparseMatrix.from_scipy(ctx, a)
    every, strong = (SmoothedAggregation(theta=theta).build(matrix).describe() for theta in (0.0, 0.1))
    assert strong.rows[1] > 1.5 * every.rows[1]
    assert solved(ctx, a, SmoothedAggregation(theta=0.1)).iterations <= 15


@pytest.mark.parametrize("smoother", [Chebyshev(2), Chebyshev(3), DampedJacobi(1)])
def test_symmetric_and_positive(ctx: fl.Context, smoother: Any) -> None:
    matrix = SparseMatrix.from_scipy(ctx, varied())
    built = SmoothedAggregation(smoother, coarse=20).build(matrix)
    x, y = np.random.default_rng(3).normal(size=(2, matrix.rows.size))
    bx, by = applied(matrix, built, x), applied(matrix, built, y)
    assert abs(x @ by - y @ bx) <= 1e-12 * abs(x @ bx)
    assert x @ bx > 0


def by_hand(built: Multigrid, number: int, b: np.ndarray) -> np.ndarray:
    """Return one cycle by SciPy, with the matrices of the device and a smoother of degree 1."""
    if number == len(built.levels):
        return built.coarsest.to_scipy() @ b
    level = built.levels[number]
    a, d = level.matrix.to_scipy(), level.smoother.inverse.read()
    z = d * b
    z = z + level.prolongation.to_scipy() @ by_hand(built, number + 1, level.restriction.to_scipy() @ (b - a @ z))
    return z + d * (b - a @ z)


def test_is_the_cycle(ctx: fl.Context) -> None:
    """The loops are the cycle; P^T is the restriction; the coarse matrices are Galerkin's."""
    matrix = SparseMatrix.from_scipy(ctx, varied())
    built = SmoothedAggregation(DampedJacobi(1), coarse=20).build(matrix)
    r = np.random.default_rng(13).random(matrix.rows.size)
    assert len(built.levels) == 2
    np.testing.assert_allclose(applied(matrix, built, r), by_hand(built, 0, r), rtol=1e-11)
    for level, below in zip(built.levels, built.levels[1:], strict=False):
        p = level.prolongation.to_scipy()
        assert abs(p.T - level.restriction.to_scipy()).max() == 0.0
        assert abs(p.T @ level.matrix.to_scipy() @ p - below.matrix.to_scipy()).max() < 1e-12
    p = built.levels[-1].prolongation.to_scipy()
    last = (p.T @ built.levels[-1].matrix.to_scipy() @ p).toarray()
    np.testing.assert_allclose(built.coarsest.to_scipy().toarray() @ last, np.eye(len(last)), atol=1e-10)


def test_prolongation_keeps_the_null_space(ctx: fl.Context) -> None:
    """Constants are in the range of every P, and A times what they become is zero on every level."""
    built = SMALL.build(SparseMatrix.from_scipy(ctx, neumann(laplacian(18, 17))))
    vector = np.ones(18 * 17)
    for level in built.levels:
        a, p = level.matrix.to_scipy(), level.prolongation.to_scipy()
        assert np.abs(a @ vector).max() < 1e-12
        coarse = np.linalg.lstsq(p.toarray(), vector, rcond=None)[0]
        np.testing.assert_allclose(p @ coarse, vector, atol=1e-12)
        vector = coarse


def test_several_systems(ctx: fl.Context) -> None:
    a = laplacian(24, 24)
    recipe = SmoothedAggregation()
    status = solved(ctx, a, recipe, shape=(3,))
    assert status.each.shape == (3,)
    assert status.iterations <= 12
    matrix = SparseMatrix.from_scipy(ctx, a)
    built, r = recipe.build(matrix), np.random.default_rng(14).random((576, 3))
    together = applied(matrix, built, r)
    for k in range(3):
        np.testing.assert_allclose(together[:, k], applied(matrix, built, r[:, k].copy()), rtol=1e-12)


@pytest.mark.parametrize("device", ["reference", pytest.param("opencl", marks=pytest.mark.opencl)])
@pytest.mark.parametrize(("shape", "smoother"), [((), Chebyshev(2)), ((2,), Chebyshev(3))])
def test_devices_agree(ctx: fl.Context, device: str, shape: tuple[int, ...], smoother: Any) -> None:
    a, recipe = varied(10), SmoothedAggregation(smoother, coarse=20)
    r = np.random.default_rng(15).random((100, *shape))
    found = []
    for context in (ctx, fl.Context(device, tuning=False)):
        matrix = SparseMatrix.from_scipy(context, a, layout=fl.SlicedELL(8))
        found.append(applied(matrix, recipe.build(matrix), r))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-11)


def test_as_good_as_pyamg(ctx: fl.Context) -> None:
    import pyamg

    a = delaunay()
    residuals: list[float] = []
    solver = pyamg.smoothed_aggregation_solver(a)
    right = np.random.default_rng(12).random(a.shape[0])
    solver.solve(right, tol=1e-8, accel="cg", residuals=residuals)
    assert solved(ctx, a, SmoothedAggregation()).iterations <= 2 * (len(residuals) - 1)


def test_candidates(ctx: fl.Context) -> None:
    """With vectors that the matrix takes to zero, but are not constant, iterations stay few."""
    weight = np.random.default_rng(16).uniform(0.2, 5.0, 900)
    scale = sparse.diags_array(weight)
    a = sparse.csr_array(scale @ neumann(laplacian(30, 30)) @ scale + 1e-6 * sparse.eye_array(900))
    blind = solved(ctx, a, SmoothedAggregation(coarse=60)).iterations
    told = solved(ctx, a, SmoothedAggregation(coarse=60, candidates=1.0 / weight)).iterations
    assert told <= 15
    assert blind > 1.5 * told


def test_several_candidates(ctx: fl.Context) -> None:
    """A biharmonic matrix, with constants and linear functions: blocks on the coarse levels."""
    n = 16
    a = sparse.csr_array(laplacian(n, n) @ laplacian(n, n))
    y, x = np.divmod(np.arange(n * n), n)
    vectors = np.stack([np.ones(n * n), x - x.mean(), y - y.mean()], axis=1)
    recipe = SmoothedAggregation(candidates=vectors, coarse=60)
    built = recipe.build(SparseMatrix.from_scipy(ctx, a))
    assert all(rows % 3 == 0 for rows in built.describe().rows[1:])
    assert solved(ctx, a, recipe).iterations <= 0.5 * solved(ctx, a, Jacobi()).iterations


def test_describe(ctx: fl.Context) -> None:
    matrix = SparseMatrix.from_scipy(ctx, laplacian(32, 32))
    report = SMALL.build(matrix).describe()
    assert report.rows[0] == 1024
    assert report.entries[0] == matrix.entries
    assert report.rows[-1] <= 20 < report.rows[-2]
    assert 1.0 < report.operator_complexity < 1.7
    assert "operator complexity" in str(report)
    assert Hierarchy((8, 2), (24, 4)).operator_complexity == pytest.approx(28 / 24)
    assert Hierarchy((8, 2), (24, 4)).grid_complexity == pytest.approx(1.25)


def test_rows_that_are_alone(ctx: fl.Context) -> None:
    """Rows of the identity (Dirichlet values) have no part in coarse levels, and the solution is right."""
    a = laplacian(20, 20).tolil()
    for row in (0, 45, 399):
        a[row, :], a[:, row] = 0.0, 0.0
        a[row, row] = 1.0
    assert solved(ctx, sparse.csr_array(a), SMALL).iterations <= 15


# ---------------------------------------------------------------------------------------------- ranks


def on_ranks(a: sparse.csr_array, ranks: int, recipe: Any, nullspace: Any = "none") -> Status:
    """Solve on ranks with consecutive rows each; check the residual."""
    right = np.random.default_rng(17).random(a.shape[0])
    right -= right.mean()

    def run(comm: Comm) -> tuple[np.ndarray, np.ndarray, Status]:
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        matrix = distributed_matrix(context, a[np.array_split(np.arange(a.shape[0]), comm.size)[comm.rank]])
        part = matrix.rows.part
        numbers = np.arange(a.shape[0]) if part is None else part.numbers[: part.owned]
        b, x = context.dat(matrix.rows, right[numbers]), context.dat(matrix.rows)
        status = ConjugateGradient(matrix, b, x, preconditioner=recipe, nullspace=nullspace).solve()
        return numbers, x.read(), status

    found, out = run_threads(ranks, run), np.empty_like(right)
    for numbers, values, _ in found:
        out[numbers] = values
    assert len({status.iterations for *_, status in found}) == 1
    assert np.linalg.norm(right - a @ out) < 2e-8 * np.linalg.norm(right)
    return found[0][2]


@pytest.mark.parametrize(("ranks", "singular"), [(2, False), (3, True)])
def test_ranks(ranks: int, singular: bool) -> None:
    a = laplacian(14, 13, 12)
    status = on_ranks(neumann(a), ranks, SMALL, "constant") if singular else on_ranks(a, ranks, SMALL)
    assert status.iterations <= 15


def test_a_rank_without_rows() -> None:
    a, rows = varied(), [np.arange(100), np.arange(0), np.arange(100, 144)]
    r = np.random.default_rng(18).random(144)

    def run(comm: Comm) -> float:
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        matrix = distributed_matrix(context, a[rows[comm.rank]], rows=rows[comm.rank])
        assert matrix.rows.part is not None
        z = applied(matrix, SMALL.build(matrix), r[matrix.rows.part.numbers[: matrix.rows.size]])
        return float(z @ r[matrix.rows.part.numbers[: matrix.rows.size]])

    alone = SparseMatrix.from_scipy(fl.Context("cpu", tuning=False), a)
    np.testing.assert_allclose(sum(run_threads(3, run)), r @ applied(alone, SMALL.build(alone), r), rtol=0.2)


def test_ranks_keep_the_null_space() -> None:
    """The coarsest matrix of several ranks has the null space too: its pseudo-inverse drops one eigenvalue."""
    from fluxloom.linalg.precond.multigrid_setup import Limits, hierarchy

    a = neumann(laplacian(15, 14))

    def run(comm: Comm) -> tuple[int, float]:
        rows = LocalRows(comm, a[np.array_split(np.arange(210), comm.size)[comm.rank]])
        _, coarsest = hierarchy(rows, np.ones((rows.owned, 1)), Limits(0.0, 30, 10, 4.0 / 3.0))
        inverse = np.concatenate(comm.allgather(pseudo_inverse(coarsest)))
        return len(inverse) - np.linalg.matrix_rank(inverse, tol=1e-9), float(np.abs(inverse - inverse.T).max())

    for ranks in (1, 2, 3):
        assert all(dropped == 1 and uneven < 1e-10 for dropped, uneven in run_threads(ranks, run))


# --------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("choices", "what"),
    [
        ({"smoother": "jacobi"}, "smoother is Chebyshev"),
        ({"smoother": Chebyshev(2, largest=2.0)}, "leave out largest="),
        ({"theta": -0.1}, "theta is a number from 0 to below 1"),
        ({"weight": 2.0}, "weight is a number from 0 to below 2"),
        ({"coarse": 0}, "coarse is a whole number, at least 1, not 0"),
        ({"levels": 1}, "levels is a whole number, at least 2, not 1"),
    ],
)
def test_wrong_choices(choices: dict[str, Any], what: str) -> None:
    with pytest.raises(SolverError, match=what):
        SmoothedAggregation(**choices)


def test_what_cannot_be_built(ctx: fl.Context) -> None:
    matrix = SparseMatrix.from_scipy(ctx, laplacian(12, 12))
    for recipe, what in (
        (SmoothedAggregation(candidates=np.ones(5)), r"candidates have shape \(5,\); give \(144,\)"),
        (SmoothedAggregation(candidates=np.full(144, np.nan)), "finite"),
        (SmoothedAggregation(levels=2, coarse=2), "levels=2 ends there: the coarsest may have 2"),
    ):
        with pytest.raises(SolverError, match=what):
            recipe.build(matrix)
    with pytest.raises(SolverError, match="must be positive"):
        SmoothedAggregation().build(SparseMatrix.from_scipy(ctx, sparse.csr_array(-laplacian(4, 4))))
    with pytest.raises(SolverError, match="negative eigenvalue"):
        pseudo_inverse(LocalRows(SelfComm(), sparse.csr_array(np.diag([1.0, -1.0]))))


def test_the_extra_is_named(ctx: fl.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyamg", None)
    with pytest.raises(DeviceUnavailable, match=r"pip install 'fluxloom\[amg\]'"):
        SmoothedAggregation().build(SparseMatrix.from_scipy(ctx, laplacian(4, 4)))


@pytest.mark.parametrize("dialect", ["cuda", "opencl"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_source_of_other_devices(dialect: str, shape: tuple[int, ...]) -> None:
    """Every loop of a cycle becomes a kernel of the language; no device is needed for that."""
    context = device_of(dialect)
    matrix = SparseMatrix.from_scipy(context, laplacian(6, 6), layout=fl.SlicedELL(32))
    r, z = (context.dat(matrix.rows, shape=shape) for _ in range(2))
    loops = list(SmoothedAggregation(Chebyshev(4), coarse=5).build(matrix).apply(r, z))
    groups = [replace(loop.group(Numbering()), symbol=f"loop{k}") for k, loop in enumerate(loops)]
    text = generate(groups, dialect).text
    assert all(f"loop{k}" in text for k in range(len(loops)))
    assert {loop.name.rpartition(".")[2].removesuffix("_more") for loop in loops} >= {"two", "step", "later", "prolong"}


def test_loops_of_a_cycle(ctx: fl.Context) -> None:
    """Six loops a level above the coarsest: two of them smooth before, none is a copy."""
    matrix = SparseMatrix.from_scipy(ctx, laplacian(16, 16))
    built = SmoothedAggregation().build(matrix)
    assert len(built.levels) == 1
    r, z = ctx.dat(matrix.rows, np.ones(256)), ctx.dat(matrix.rows)
    names = [step.name for step in Chain(built.apply(r, z)).loops]
    assert names == [
        "amg0.two", "matrix.residual", "amg0.R.product", "amg.coarsest.product", "amg0.P.prolong",
        "amg0.step", "amg0.later",
    ]  # fmt: skip
