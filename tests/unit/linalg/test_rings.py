"""Rings of halo rows: several products with one exchange are bit for bit those with one exchange each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom.comm.base import Channel, Comm, Message, SelfComm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CommError, DatError
from fluxloom.linalg import SparseMatrix
from fluxloom.linalg.matrix.ring_rows import Rings, find_rings
from fluxloom.linalg.matrix.rings import RingProduct
from fluxloom_lab.problems.matrices import GENERATORS

Rows = list[npt.NDArray[np.int64]]


def unsymmetric(n: int = 90, seed: int = 3) -> sparse.csr_array:
    """Return a matrix whose graph has one-way entries, empty rows, empty columns and entries in no order."""
    rng = np.random.default_rng(seed)
    dense = rng.uniform(-1.0, 1.0, (n, n)) * (rng.random((n, n)) < 0.03)
    dense[5] = dense[n // 2] = 0.0
    dense[:, 11] = 0.0
    dense[7, ::9] = 1.0
    a = sparse.csr_array(dense)
    for row in range(n):
        part = slice(a.indptr[row], a.indptr[row + 1])
        order = rng.permutation(part.stop - part.start)
        a.indices[part], a.data[part] = a.indices[part][order], a.data[part][order]
    return a


MATRICES = {
    "mesh": lambda: GENERATORS["laplacian2d"](1500, 2),
    "links": lambda: GENERATORS["power_law"](800, 3),
    "unsymmetric": unsymmetric,
    "empty": lambda: sparse.csr_array((20, 20)),
}


def slices(n: int, ranks: int) -> Rows:
    return [np.asarray(part, dtype=np.int64) for part in np.array_split(np.arange(n), ranks)]


def scattered(n: int, ranks: int, seed: int = 0) -> Rows:
    """Return rows of each rank in no order; the first of several ranks has none."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(1 if ranks > 1 else 0, ranks, n)
    return [rng.permutation(np.flatnonzero(owner == rank)) for rank in range(ranks)]


def plain(a: sparse.csr_array, x: npt.NDArray[Any], times: int, device: str = "cpu") -> npt.NDArray[Any]:
    """Return ``x, A x, ...`` of one rank, by products over the whole matrix."""
    matrix = SparseMatrix.from_scipy(fl.Context(device, threads=1), a)
    found = [x]
    for _ in range(times):
        given, result = matrix.rows.context.dat(matrix.columns, found[-1]), matrix.rows.context.dat(matrix.rows)
        matrix.product(given, result)()
        found.append(result.read())
    return np.stack(found)


def powers(a: sparse.csr_array, x: npt.NDArray[Any], rows: Rows, device: str = "cpu", **choices: Any) -> Any:
    """Return the powers that the ranks compute together, rows in global order, and what each rank stores."""

    def work(comm: Comm) -> tuple[npt.NDArray[Any], Rings]:
        mine = rows[comm.rank]
        product = RingProduct(fl.Context(device, threads=1), a[mine], rows=mine, comm=comm, **choices)
        first = product.powers(x[mine])
        np.testing.assert_array_equal(product(x[mine]), first[-1])
        product.close()
        if product.plan.send or product.plan.receive:
            with pytest.raises(CommError, match="closed"):
                product.run()
        return first, product.plan

    together = run_threads(len(rows), work)
    found = np.empty((together[0][0].shape[0], x.size))
    for mine, (part, _) in zip(rows, together, strict=True):
        found[:, mine] = part
    return found, [plan for _, plan in together]


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", list(MATRICES))
def test_same_bits_as_plain_products(kind: str, ranks: int) -> None:
    a = MATRICES[kind]()
    n = a.shape[0]
    x = np.random.default_rng(1).uniform(-1.0, 1.0, n)
    expected = plain(a, x, 4)
    np.testing.assert_allclose(expected[4], a @ (a @ (a @ (a @ x))), rtol=1e-12, atol=1e-12 * abs(expected[4]).max())
    for rings in (1, 2, 3, 4):
        rows = slices(n, ranks) if rings % 2 else scattered(n, ranks)
        found, _ = powers(a, x, rows, rings=rings)
        np.testing.assert_array_equal(found, expected[: rings + 1])


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("rings", "times"), [(1, 4), (2, 3), (2, 4), (3, 2), (4, 4)])
def test_exchange_before_every_so_many_products(rings: int, times: int, overlap: bool) -> None:
    a = unsymmetric()
    x = np.random.default_rng(1).uniform(-1.0, 1.0, a.shape[0])
    found, _ = powers(a, x, scattered(a.shape[0], 3), rings=rings, times=times, overlap=overlap)
    np.testing.assert_array_equal(found, plain(a, x, times))


class Counting(Comm):
    """Ranks whose exchanges are counted."""

    def __init__(self, inner: Comm) -> None:
        self._inner, self.rank, self.size, self.name = inner, inner.rank, inner.size, inner.name
        self.started: list[int] = []

    def allgather(self, value: Any) -> list[Any]:
        return self._inner.allgather(value)

    def exchange(self, parts: Any) -> list[Any]:
        return self._inner.exchange(parts)

    def barrier(self) -> None:
        self._inner.barrier()

    def abort(self, *arguments: Any) -> Any:
        return self._inner.abort(*arguments)

    def channel(self, sends: Any, receives: Any, tag: int) -> Channel:
        assert all(isinstance(message, Message) for message in (*sends, *receives))
        channel, started = self._inner.channel(sends, receives, tag), self.started

        class Counted(Channel):
            def start(self) -> None:
                started.append(len(sends))
                channel.start()

            def finish(self) -> None:
                channel.finish()

        return Counted()


@pytest.mark.parametrize(("rings", "exchanges"), [(1, 4), (2, 2), (3, 2), (4, 1)])
def test_number_of_messages(rings: int, exchanges: int) -> None:
    a = GENERATORS["laplacian2d"](1500, 2)

    def work(comm: Comm) -> list[int]:
        counting, mine = Counting(comm), slices(a.shape[0], 3)[comm.rank]
        product = RingProduct(fl.Context("cpu", threads=1), a[mine], rings=rings, times=4, comm=counting)
        product.start(np.ones(mine.size))
        product.run()
        return counting.started

    assert all(len(started) == exchanges for started in run_threads(3, work))


@pytest.mark.parametrize("kind", ["mesh", "unsymmetric"])
def test_rings_are_distances(kind: str) -> None:
    """Ring k holds the rows whose shortest way from an owned one has k entries, and the right rows are there."""
    a, ranks, rings = MATRICES[kind](), 3, 4
    n = a.shape[0]
    rows = scattered(n, ranks)
    _, plans = powers(a, np.ones(n), rows, rings=rings)
    for mine, plan in zip(rows, plans, strict=True):
        reached, ends = [np.unique(mine)], [0, *plan.ends]
        for _ in range(rings):
            onwards = np.unique(a[reached[-1]].indices) if reached[-1].size else reached[-1]
            reached.append(np.setdiff1d(onwards, np.concatenate(reached)))
        for k, expected in enumerate(reached):
            np.testing.assert_array_equal(np.sort(plan.numbers[ends[k] : ends[k + 1]]), expected)
        np.testing.assert_array_equal(plan.numbers[: plan.owned], mine)
        for local in range(plan.ends[rings - 1]):
            part, whole = slice(*plan.offsets[local : local + 2]), slice(*a.indptr[plan.numbers[local] :][:2])
            np.testing.assert_array_equal(plan.numbers[plan.indices[part]], a.indices[whole])
            np.testing.assert_array_equal(plan.values[part], a.data[whole])
    for rank, plan in enumerate(plans):
        for other, places in plan.send.items():
            there = plans[other]
            np.testing.assert_array_equal(plan.numbers[places], there.numbers[there.receive[rank]])
        assert sum(p.size for p in plan.receive.values()) == plan.numbers.size - plan.owned


def test_inner_rows_and_redundancy() -> None:
    """A chain of ten elements on two ranks: what neighbours compute too is a triangle of rows."""
    a = sparse.diags_array([np.ones(9), 2.0 * np.ones(10), np.ones(9)], offsets=[-1, 0, 1]).tocsr()
    plan = powers(a, np.ones(10), slices(10, 2), rings=3)[1][0]
    assert plan.ends == (5, 6, 7, 8)
    np.testing.assert_array_equal(plan.numbers, np.arange(8))
    np.testing.assert_array_equal(plan.inner, [True, True, True, True, False])
    assert plan.redundancy == (14 + 17 + 20) / (3 * 14)
    assert plan.rings == 3
    assert list(plan.send) == [1]
    np.testing.assert_array_equal(plan.send[1], [4, 3, 2])  # in the order of the rings there


@pytest.mark.parametrize("layout", [fl.CSR(), fl.ELL(), fl.SlicedELL(4)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_layouts_and_types(layout: Any, dtype: str) -> None:
    a = unsymmetric()
    x = np.random.default_rng(1).uniform(-1.0, 1.0, a.shape[0])
    found, _ = powers(a, x, slices(a.shape[0], 2), rings=2, layout=layout, dtype=dtype)
    tolerance = 1e-13 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(found[2], a @ (a @ x), rtol=tolerance, atol=tolerance)


def test_on_the_reference_device() -> None:
    a = unsymmetric(40)
    x = np.random.default_rng(1).uniform(-1.0, 1.0, 40)
    found, _ = powers(a, x, scattered(40, 2), device="reference", rings=3, overlap=True)
    np.testing.assert_array_equal(found, plain(a, x, 3, "reference"))


@pytest.mark.opencl
@pytest.mark.parametrize("overlap", [False, True])
def test_on_a_device_with_its_own_memory(overlap: bool) -> None:
    a = GENERATORS["laplacian2d"](1500, 2)
    x = np.random.default_rng(1).uniform(-1.0, 1.0, a.shape[0])
    found, _ = powers(a, x, scattered(a.shape[0], 3), device="opencl", rings=2, times=4, overlap=overlap)
    np.testing.assert_allclose(found, plain(a, x, 4), rtol=1e-12, atol=1e-12 * abs(found).max())


def test_a_rank_without_rows() -> None:
    a = unsymmetric(30)
    x = np.random.default_rng(1).uniform(-1.0, 1.0, 30)
    rows = [np.arange(12), np.zeros(0, dtype=np.int64), np.arange(12, 30)]
    found, plans = powers(a, x, rows, rings=4)
    np.testing.assert_array_equal(found, plain(a, x, 4))
    assert plans[1].numbers.size == 0
    assert plans[1].redundancy == 1.0


def test_loops_over_owned_rows_take_the_vectors() -> None:
    """A step of a Krylov method: the basis is what a loop over the owned rows sees directly."""
    a = unsymmetric(30)

    @fl.kernel
    def add(x: fl.Read, y: fl.RW, *, alpha: float):
        y[0] += alpha * x[0]

    def work(comm: Comm) -> npt.NDArray[Any]:
        mine = slices(30, 2)[comm.rank]
        product = RingProduct(fl.Context("cpu", threads=1), a[mine], rings=2, comm=comm)
        product.start(np.arange(30.0)[mine])
        product.run()
        fl.Loop(add, product.rows, product.basis[1], product.basis[2], alpha=-3.0)()
        return product.basis[2].read()[: product.plan.owned]

    x = np.arange(30.0)
    np.testing.assert_allclose(np.concatenate(run_threads(2, work)), a @ (a @ x) - 3.0 * (a @ x), rtol=1e-12)


def test_a_context_of_several_ranks() -> None:
    """The communicator of the context joins the ranks when none is given."""
    a = unsymmetric(30)

    def work(comm: Comm) -> npt.NDArray[Any]:
        mine = slices(30, 2)[comm.rank]
        return RingProduct(fl.Context("cpu", threads=1, comm=comm), a[mine], rings=2)(np.ones(mine.size))

    np.testing.assert_array_equal(np.concatenate(run_threads(2, work)), plain(a, np.ones(30), 2)[2])


def wrong(comm: Comm, case: str) -> None:
    a, mine, last = unsymmetric(30), slices(30, 2)[comm.rank], comm.rank == 1
    rows, matrix, rings, times = mine, a[mine], 2, 0
    match case:
        case "rings":
            rings = 2 + comm.rank
        case "no rings":
            rings = 0
        case "times":
            times = -1 if last else 0
        case "other times":
            times = 3 if last else 0
        case "columns":
            matrix = matrix[:, :20] if last else matrix
        case "rows":
            rows = rows + (1 if last else 0)
        case "twice":
            rows = np.append(rows[1:], 3) if last else rows
        case "shape":
            rows = rows[:4] if last else rows
        case "complex":
            matrix = matrix * 1j if last else matrix
        case "dense":
            matrix = matrix.toarray() if last else matrix
        case "nothing":
            matrix = None if last else matrix
        case "half a ring":
            rings = 2.5
        case "half a product":
            times = 2.5
        case "tag":
            RingProduct(fl.Context("reference"), matrix, comm=comm, tag=comm.rank)
        case "dtype":
            RingProduct(fl.Context("reference"), matrix, comm=comm, dtype=("float64", "float32")[comm.rank])
    RingProduct(fl.Context("reference"), matrix, rings=rings, times=times, rows=rows, comm=comm)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("rings", "rank 1: 3 rings, but 2 on rank 0"),
        ("no rings", "rank 0: 0 rings"),
        ("times", "rank 1: -1 products"),
        ("other times", "rank 1: 3 products, but 0 on rank 0"),
        ("columns", "rank 1: the matrix has 20 columns, but all ranks together have 30 rows"),
        ("rows", "rank 1: row 30 is outside 0 ... 29"),
        ("twice", "rank 0: 2 ranks have row 3"),
        ("shape", r"rank 1: row numbers of shape \(4,\)"),
        ("complex", "rank 1: the values are complex128"),
        ("dense", "rank 1: the matrix is of type ndarray; give a sparse one of SciPy"),
        ("nothing", "rank 1: the matrix is of type NoneType"),
        ("half a ring", "rank 0: 2.5 rings; give at least 1, a whole number"),
        ("half a product", "rank 0: 2.5 products; give a positive number"),
        ("tag", "rank 1: 1 is the tag, but 0 on rank 0"),
        ("dtype", "rank 1: float32 is the dtype, but float64 on rank 0"),
    ],
)
def test_every_rank_learns_what_is_wrong(case: str, message: str) -> None:
    def work(comm: Comm) -> str:
        with pytest.raises(DatError, match=message) as caught:
            wrong(comm, case)
        return str(caught.value)

    first, second = run_threads(2, work)
    assert first == second


def test_wrong_vector() -> None:
    a = unsymmetric(30)
    with pytest.raises(DatError, match="this rank has 30 rows"):
        RingProduct(fl.Context("reference"), a)(np.ones(29))
    for x, kind in ((1j * np.ones(30), "complex128"), (["a"] * 30, "<U1")):
        with pytest.raises(DatError, match=f"x of type {kind}; real numbers are wanted"):
            RingProduct(fl.Context("reference"), a)(x)
    with pytest.raises(CommError, match="a context is wanted first, not str"):
        RingProduct("cpu", a)  # type: ignore[arg-type]
    with pytest.raises(CommError, match="comm: a communicator is wanted, not 'mpi'"):
        RingProduct(fl.Context("reference"), a, comm="mpi")  # type: ignore[arg-type]
    assert find_rings(SelfComm(), a, 2).ends == (30, 30, 30)
