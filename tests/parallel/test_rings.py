"""Rings of halo rows on real ranks: the bits of plain products, whatever the number of rings."""

from __future__ import annotations

import pytest

from tests.parallel.launch import mpiexec

PROGRAM = """
    import sys
    import numpy as np
    import fluxloom as fl
    from fluxloom.linalg import SparseMatrix
    from fluxloom.linalg.generate import GENERATORS
    from fluxloom.linalg.rings import RingProduct

    times = 4
    for kind in ("laplacian2d", "power_law"):
        a = GENERATORS[kind](4000, 5)
        n = a.shape[0]
        x = np.random.default_rng(1).uniform(-1.0, 1.0, n)
        whole = SparseMatrix.from_scipy(fl.Context("cpu", threads=1), a)
        given, result, expected = whole.rows.context.dat(whole.rows, x), whole.rows.context.dat(whole.rows), [x]
        for _ in range(times):
            given.write(expected[-1])
            whole.product(given, result)()
            expected.append(result.read())
        owner = np.random.default_rng(2).integers(0, comm.size, n)
        owner[owner == 1] = comm.size - 1  # rank 1 has no rows, unless it is the last
        rows = np.flatnonzero(owner == comm.rank)
        for rings in (1, 2, 3, 4):
            for overlap in (False, True):
                product = RingProduct(fl.Context("cpu", threads=1), a[rows], rows=rows, rings=rings, times=times,
                                      comm=comm, overlap=overlap, tag=rings)
                for _ in range(3):
                    found = product.powers(x[rows])
                    assert np.array_equal(found, np.stack(expected)[:, rows]), (kind, rings, overlap)
                product.close()
    counts = comm.allgather(rows.size)
    if comm.rank == 0:
        print("same bits", sum(counts) == n, min(counts))
"""


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_same_bits_on_real_ranks(ranks: int) -> None:
    out = mpiexec(ranks, PROGRAM).stdout.split()
    assert out[:3] == ["same", "bits", "True"]
    assert (int(out[3]) == 0) is (ranks == 3)
