"""Several GPUs, one a rank: every transport gives the numbers of one rank on a processor."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.access import Inc, Max, Min, Read, Write
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.incompressible.eddy_viscosity import Wale
from fluxloom.kernel.frontend import kernel
from fluxloom.linalg import Jacobi, SmoothedAggregation, Stop, distributed_matrix
from fluxloom.linalg.direct.extruded.plane import ExtrudedMatrix
from fluxloom.linalg.direct.extruded.solver import ExtrudedPoisson
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.solvers.algebraic.step import AlgebraicStep
from fluxloom.solvers.incompressible.flow import Incompressible
from fluxloom_lab.problems.box_volumes import periodic_box_volumes

Array = np.ndarray
TRANSPORTS = ("host", "nccl", "peer")

pytestmark = pytest.mark.cuda


def count() -> int:
    """Return the number of GPUs, at most four."""
    import cupy  # only where there is a GPU

    return min(4, int(cupy.cuda.runtime.getDeviceCount()))


@pytest.fixture(autouse=True)
def several() -> None:
    """Skip where there is one GPU only."""
    if count() < 2:
        pytest.skip("needs two GPUs or more")


def on_gpus(work: Any, transport: str) -> list[Any]:
    """Return what each rank's work returns; it is given a context.

    NCCL's kernels of more threads of one process may wait for what the others have not asked for yet. So may a copy
    from the other GPU, when the collector frees memory of it in the thread that is to send: it is off while they run.
    """

    def rank(comm: Comm) -> Any:
        context = fl.Context(f"cuda:{comm.rank}", comm=comm, transport=transport, tuning=False)
        found = work(context)
        if transport == "peer":
            assert context.links.peer is not None
        return found

    gc.collect()
    gc.disable()
    try:
        return run_threads(min(2, count()) if transport == "nccl" else count(), rank)
    finally:
        gc.enable()


def on_processor(work: Any) -> Any:
    return work(fl.Context("cpu", threads=1, tuning=False))


def numbers_of(over: fl.Set) -> Array:
    return np.arange(over.size) if over.part is None else over.part.numbers[: over.part.owned]


def whole(found: list[tuple[Array, Array]]) -> Array:
    """Return the values of all elements from numbers and values of each rank."""
    numbers = np.concatenate([n for n, _ in found])
    values = np.concatenate([v for _, v in found])
    assert np.array_equal(np.sort(numbers), np.arange(numbers.size))
    out = np.empty_like(values)
    out[numbers] = values
    return out


def box(n: int) -> Any:
    """Return the Laplacian of a box of n x n x n points."""
    line = sp.csr_matrix(2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))
    one = sp.identity(n)
    return sp.csr_matrix(
        sp.kron(sp.kron(line, one), one) + sp.kron(sp.kron(one, line), one) + sp.kron(sp.kron(one, one), line)
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("recipe", [None, Jacobi(), SmoothedAggregation()], ids=["none", "jacobi", "amg"])
def test_conjugate_gradients(transport: str, recipe: Any) -> None:
    if recipe is not None and not isinstance(recipe, Jacobi):
        pytest.importorskip("pyamg")
    a = box(17)
    b = np.random.default_rng(3).standard_normal(a.shape[0])

    def work(context: fl.Context) -> Any:
        rows = np.array_split(np.arange(a.shape[0]), context.comm.size)[context.comm.rank]
        matrix = distributed_matrix(context, a[rows], rows=rows)
        numbers = numbers_of(matrix.rows)
        given, x = context.dat(matrix.rows, b[numbers], "b"), context.dat(matrix.rows, name="x")
        solver = ConjugateGradient(matrix, given, x, preconditioner=recipe, stop=Stop(rtol=1e-11))
        statuses = []
        for _ in range(4):  # launches, then graphs
            x.write(np.zeros(numbers.size))
            statuses.append(solver.solve())
        assert len({s.iterations for s in statuses}) == 1
        return numbers, x.read(), statuses[-1].iterations, statuses[-1].history

    found = on_gpus(work, transport)
    x = whole([item[:2] for item in found])
    assert np.linalg.norm(a @ x - b) < 1e-9 * np.linalg.norm(b)
    for item in found[1:]:
        np.testing.assert_array_equal(item[3], found[0][3])
    if recipe is None or isinstance(recipe, Jacobi):
        assert abs(found[0][2] - on_processor(work)[2]) <= 1


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_steps_of_flow(transport: str) -> None:
    """The fused step and the one of three kernels, with a model, on a periodic box."""

    def work(context: fl.Context) -> Any:
        volumes = periodic_box_volumes((16, 12, 12), (2.0, 1.5, 1.5), context.comm)
        flow = Incompressible(context, volumes, 0.01, stop=Stop(rtol=1e-11), model=Wale())
        flow.initialise(lambda p: np.stack([np.sin(3 * p[:, 1]), np.cos(5 * p[:, 0]), np.sin(p[:, 0])], axis=1))
        step = AlgebraicStep(flow)
        for dt in (0.02, 0.01, 0.01, 0.01, 0.01, 0.01):
            step.step(dt)
            flow.step(dt)
        return numbers_of(flow.cells), flow.velocity(), step.velocity(), flow.stable_step()

    numbers, wanted, _, stable = on_processor(work)
    reference = whole([(numbers, wanted)])
    found = on_gpus(work, transport)
    for place in (1, 2):
        np.testing.assert_allclose(whole([(f[0], f[place]) for f in found]), reference, rtol=0, atol=1e-7)
    assert [f[3] for f in found] == pytest.approx([stable] * len(found))


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("planes_parted", [False, True])
def test_extruded_poisson(transport: str, planes_parted: bool) -> None:
    side, planes = 12, 8
    line = sp.csr_matrix(2.0 * np.eye(side) - np.eye(side, k=1) - np.eye(side, k=-1)).tolil()
    line[0, 0] = line[-1, -1] = 1.0
    plane = sp.csr_matrix(sp.kron(line, sp.identity(side)) + sp.kron(sp.identity(side), line))
    right = np.random.default_rng(1).standard_normal((side * side, planes))
    right -= right.mean()
    areas = np.full(side * side, 0.25)

    def work(context: fl.Context) -> Any:
        comm = context.comm
        rows = np.array_split(np.arange(side * side), comm.size)[comm.rank]
        matrix = ExtrudedMatrix(plane[rows], areas[rows], planes=planes, spacing=0.3, rows=rows)
        groups = comm.size if planes_parted else 1
        solver = ExtrudedPoisson(context, matrix, groups=groups, stop=Stop(rtol=1e-11))
        solver.b.write(right[rows])
        for _ in range(3):
            solver.x.write(np.zeros((rows.size, planes)))
            assert solver.solve().converged
        return rows, solver.x.read()

    reference = whole([on_processor(work)])
    found = whole(on_gpus(work, transport))
    np.testing.assert_allclose(found - found.mean(), reference - reference.mean(), rtol=0, atol=1e-7)


@kernel
def measure(u: Read, total: Inc, least: Min, most: Max, many: Inc):
    """Sums and extremes of a vector."""
    total[0] += u[0]
    least[0] = min(least[0], u[0])
    most[0] = max(most[0], u[0])
    many[0] += 1


@kernel
def shift(total: Read, least: Read, most: Read, many: Read, u: Read, v: Write):
    """Use what was measured."""
    v[0] = u[0] + total[0] + 2.0 * least[0] + 3.0 * most[0] + 1.0 * many[0]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_sums_and_extremes_within_a_chain(transport: str, kind: str) -> None:
    """Globals that are reduced, read and reduced again while the chain runs; integers beside real numbers."""
    n = 1000
    values = np.arange(n, dtype=kind) % 37 - 11  # whole numbers: every order of sums gives the same

    def work(context: fl.Context) -> Any:
        a = sp.csr_matrix(sp.identity(n))
        rows = np.array_split(np.arange(n), context.comm.size)[context.comm.rank]
        over = distributed_matrix(context, a[rows], rows=rows).rows
        numbers = numbers_of(over)
        u, v = context.dat(over, values[numbers], "u"), context.dat(over, name="v", dtype=kind)
        w = context.dat(over, name="w", dtype=kind)
        total, least, most = (context.scalar(0.0, name, dtype=kind) for name in ("total", "least", "most"))
        many = context.scalar(0, "many", dtype="int64")
        found = (total, least, most, many)
        chain = Chain([
            Reset(total), Reset(many), Loop(measure, over, u, *found), Loop(shift, over, *found, u, v),
            Reset(total), Loop(measure, over, v, *found), Loop(shift, over, *found, v, w),
            Loop(measure, over, v, *found),
        ], fuse=False)  # fmt: skip
        for _ in range(4):
            for g in found:
                g.value = 0
            chain()
        return numbers, w.read(), [float(g.value) for g in found]

    numbers, wanted, sums = on_processor(work)
    parts = on_gpus(work, transport)
    np.testing.assert_array_equal(whole([(n, w) for n, w, _ in parts]), whole([(numbers, wanted)]))
    assert [p[2] for p in parts] == [sums] * len(parts)
