"""Orders of the rows of a matrix: groups, lengths, bands, and the same products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import SolverError
from fluxloom.linalg import SparseMatrix, distributed_matrix
from fluxloom.linalg.matrix.reorder import permuted, reorder
from fluxloom_lab.problems.matrices import GENERATORS


def shuffled(a: sparse.csr_array, seed: int = 0) -> sparse.csr_array:
    """Return a matrix with its rows and columns in an order of no sense."""
    return permuted(a, np.random.default_rng(seed).permutation(a.indptr.size - 1))


def bandwidth(a: sparse.csr_array) -> int:
    rows = np.repeat(np.arange(a.indptr.size - 1), np.diff(a.indptr))
    return int(np.abs(rows - a.indices).max(initial=0))


def mesh(entries: int = 4000) -> sparse.csr_array:
    """Return the shuffled Laplacian of a triangulation: 3 to 9 entries a row."""
    return shuffled(GENERATORS["laplacian2d"](entries, 1))


CHOICES: dict[str, dict[str, Any]] = {
    "all": {}, "band": {"lengths": False}, "lengths": {"band": False}, "none": {"lengths": False, "band": False},
}  # fmt: skip


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", list(CHOICES))
@pytest.mark.parametrize("kind", ["laplacian2d", "power_law"])
def test_levels(kind: str, name: str, grouped: bool) -> None:
    a = shuffled(GENERATORS[kind](3000, 1))
    n, choices = a.indptr.size - 1, CHOICES[name]
    groups = np.random.default_rng(5).integers(-1, 3, n) if grouped else np.zeros(n, dtype=int)
    order = reorder(a, groups=groups if grouped else None, **choices)
    assert order.dtype == np.int64
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    assert (np.diff(groups[order]) >= 0).all()
    lengths = np.diff(a.indptr)[order]
    for group in np.unique(groups):
        inside = groups[order] == group
        if choices.get("lengths", True):
            assert (np.diff(lengths[inside]) <= 0).all()
        elif not choices.get("band", True):
            assert (np.diff(order[inside]) > 0).all()


def test_nothing_asked_for_changes_nothing() -> None:
    a = mesh()
    np.testing.assert_array_equal(reorder(a, lengths=False, band=False), np.arange(a.indptr.size - 1))


def test_band_of_a_shuffled_mesh() -> None:
    a = mesh()
    n = a.indptr.size - 1
    assert bandwidth(a) > 0.9 * n
    narrow = permuted(a, reorder(a, lengths=False))
    assert bandwidth(narrow) < 3 * np.sqrt(n)
    both = permuted(a, reorder(a))  # neighbours in the order of one length stay near each other
    longest = np.diff(both.indptr) == np.bincount(np.diff(a.indptr)).argmax()
    inside = both[longest][:, longest]
    assert bandwidth(sparse.csr_array(inside)) < 3 * np.sqrt(n)


def test_padding_of_rows_of_many_lengths() -> None:
    ctx = fl.Context("reference")
    for kind, entries, most in (("laplacian2d", 6000, 1.02), ("power_law", 30000, 1.1)):
        a = shuffled(GENERATORS[kind](entries, 1))
        before = SparseMatrix.from_scipy(ctx, a, layout=fl.SlicedELL(8)).padding
        after = SparseMatrix.from_scipy(ctx, permuted(a, reorder(a)), layout=fl.SlicedELL(8)).padding
        assert before > 1.2
        assert after < most


def test_boundary_rows_are_last() -> None:
    n = 9
    one = sparse.diags_array([np.full(n - 1, -1.0), np.full(n, 2.0), np.full(n - 1, -1.0)], offsets=[-1, 0, 1])
    a = sparse.kron(one, sparse.eye_array(n)) + sparse.kron(sparse.eye_array(n), one)
    order = reorder(a)
    i, j = np.divmod(order, n)
    inner = (i > 0) & (i < n - 1) & (j > 0) & (j < n - 1)
    assert inner[: (n - 2) ** 2].all()
    assert set(order[-4:]) == {0, n - 1, n * (n - 1), n * n - 1}


def test_graph_with_one_way_entries_and_a_halo() -> None:
    rng = np.random.default_rng(3)
    dense = (rng.random((40, 55)) < 0.06) * 1.0
    dense[7] = 1.0
    dense[:, 11] = dense[5] = 0.0
    a = sparse.csr_array(dense)
    order = reorder(a)
    np.testing.assert_array_equal(np.sort(order), np.arange(40))
    assert order[0] == 7
    lengths = np.diff(a.indptr)
    assert (np.diff(lengths[order]) <= 0).all()
    np.testing.assert_array_equal(reorder(a[:, :40], lengths=False), reorder(a, lengths=False))


@pytest.mark.parametrize("form", ["csr", "coo", "csc", "bsr"])
def test_permuted_product(form: str) -> None:
    a = mesh(2000)
    n = a.indptr.size - 1
    order = reorder(a)
    moved = permuted(a.asformat(form), order)
    assert abs(moved - sparse.csr_array(a[order][:, order])).max() == 0.0
    assert moved.has_sorted_indices
    x = np.random.default_rng(1).random(n)
    np.testing.assert_allclose(moved @ x[order], (a @ x)[order], rtol=1e-13, atol=1e-13)
    back = permuted(moved, np.argsort(order))
    np.testing.assert_array_equal(back.indices, a.indices)
    np.testing.assert_array_equal(back.data, a.data)


def test_empty_matrices() -> None:
    assert reorder(sparse.csr_array((0, 0))).shape == (0,)
    assert permuted(sparse.csr_array((0, 0)), []).shape == (0, 0)
    np.testing.assert_array_equal(np.sort(reorder(sparse.csr_array((5, 5)))), np.arange(5))


def test_what_does_not_fit() -> None:
    a = mesh(200)
    n = a.indptr.size - 1
    wrong: list[tuple[Any, str]] = [
        (lambda: reorder(a.toarray()), "a sparse array or matrix of SciPy is wanted, not ndarray"),
        (lambda: reorder(sparse.csr_array((4, 3))), r"shape \(4, 3\) has rows without a column"),
        (lambda: reorder(a, groups=np.zeros(3, dtype=int)), f"groups has shape .3,. and type int64; give {n} integers"),
        (lambda: reorder(a, groups=np.zeros(n)), "type float64"),
        (lambda: permuted(sparse.csr_array((3, 4)), [0, 1, 2]), r"square matrix is wanted, not one of shape \(3, 4\)"),
        (lambda: permuted(a, np.arange(n - 1)), f"give {n} integers"),
        (lambda: permuted(a, np.arange(float(n))), "type float64"),
        (lambda: permuted(a, np.zeros(n, dtype=int)), "no permutation of 0"),
        (lambda: permuted(a, np.arange(n) - 1), "no permutation of 0"),
    ]
    for call, message in wrong:
        with pytest.raises(SolverError, match=message):
            call()


# --------------------------------------------------------------------------------------------- on ranks


@pytest.mark.parametrize(("kind", "ranks"), [("mesh", 1), ("mesh", 2), ("mesh", 3), ("links", 3)])
def test_rows_of_ranks(kind: str, ranks: int) -> None:
    a = mesh(3000) if kind == "mesh" else shuffled(GENERATORS["power_law"](2000, 1))
    n = a.indptr.size - 1
    given = np.random.default_rng(1).random(n)

    def run(comm: Comm) -> tuple[np.ndarray, np.ndarray, float, float]:
        context = fl.Context("cpu", threads=1, comm=comm, tuning=False)
        mine = np.array_split(np.arange(n), ranks)[comm.rank]
        layout = fl.SlicedELL(8)
        plain = distributed_matrix(context, a[mine], layout=layout)
        matrix = distributed_matrix(context, a[mine], layout=layout, reorder=True)
        part = matrix.rows.part
        assert part is not None
        assert part.owned == mine.size
        inner = matrix.pattern.indices[: matrix.pattern.offsets[part.inside]]
        assert inner.max(initial=-1) < part.owned
        lengths = np.diff(matrix.pattern.offsets)
        assert (np.diff(lengths[: part.inside]) <= 0).all()
        assert (np.diff(lengths[part.inside : part.owned]) <= 0).all()
        if plain.rows.part is not None:
            assert plain.rows.part.inside == part.inside
        numbers = part.numbers[: part.owned]
        x, y = context.dat(matrix.rows, given[numbers], "x"), context.dat(matrix.rows, name="y")
        matrix.product(x, y)()
        matrix.product(y, x)()
        return numbers, x.read(), plain.padding, matrix.padding

    out = np.full(n, np.nan)
    for numbers, values, before, after in run_threads(ranks, run):
        out[numbers] = values
        assert after < before
    np.testing.assert_allclose(out, a @ (a @ given), rtol=1e-12, atol=1e-12)
