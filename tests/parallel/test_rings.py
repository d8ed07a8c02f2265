"""Rings of halo rows on real ranks: the bits of plain products, whatever the number of rings."""

from __future__ import annotations

import json

import pytest

from fluxloom.core.errors import CaseError
from fluxloom_lab.bench.linear.rings import RingsBench, RingsOptions, _sizes, crossover
from tests.parallel.launch import mpiexec

PROGRAM = """
    import sys
    import numpy as np
    import fluxloom as fl
    from fluxloom.linalg import SparseMatrix
    from fluxloom_lab.problems.matrices import GENERATORS
    from fluxloom.linalg.matrix.rings import RingProduct

    times, context = 4, fl.Context("cpu", threads=1)
    for kind in ("laplacian2d", "power_law"):
        a = GENERATORS[kind](4000, 5)
        n = a.shape[0]
        x = np.random.default_rng(1).uniform(-1.0, 1.0, n)
        whole = SparseMatrix.from_scipy(context, a)
        given, result, expected = context.dat(whole.rows, x), context.dat(whole.rows), [x]
        for _ in range(times):
            given.write(expected[-1])
            whole.product(given, result)()
            expected.append(result.read())
        owner = np.random.default_rng(2).integers(0, comm.size, n)
        owner[owner == 1] = comm.size - 1  # rank 1 has no rows, unless it is the last
        rows = np.flatnonzero(owner == comm.rank)
        for rings, overlap in ((1, True), (2, False), (3, True), (4, False)):
            product = RingProduct(context, a[rows], rows=rows, rings=rings, times=times, comm=comm, overlap=overlap)
            for _ in range(2):
                found = product.powers(x[rows])
                assert np.array_equal(found, np.stack(expected)[:, rows]), (kind, rings, overlap)
            product.close()
    counts = comm.allgather(rows.size)
    if comm.rank == 0:
        print("same bits", sum(counts) == n, min(counts))
"""


@pytest.mark.mpi
def test_same_bits_on_real_ranks() -> None:
    assert mpiexec(3, PROGRAM).stdout.split() == ["same", "bits", "True", "0"]


BENCH = """
    import json
    from fluxloom_lab.bench.linear.rings import RingsBench, RingsOptions

    lines = []
    record = RingsBench().run(RingsOptions(cells="250", rounds=2), lines.append).as_json()
    assert len(lines) == (6 if comm.rank == 0 else 0)
    assert len({json.dumps(m) for m in comm.allgather(record["metrics"])}) == 1
    if comm.rank == 0:
        print(json.dumps(record))
"""


@pytest.mark.mpi
@pytest.mark.long
def test_benchmark() -> None:
    """Two sizes, three numbers of rings; every rank has the same numbers."""
    record = json.loads(mpiexec(2, BENCH).stdout)
    assert (record["case"], record["ranks"], record["model"]) == ("rings", 2, "laplacian3d")
    metrics = record["metrics"]
    assert metrics["latency_us"] > 0
    rows = metrics["products"]
    assert [row["rings"] for row in rows] == [2, 3, 4, 2, 3, 4]
    for row in rows:
        assert row["speedup"] == pytest.approx(row["plain_us"] / row["rings_us"])
        assert row["redundancy"] > 1.0
    for rings in (2, 3, 4):
        sizes = [row["rows"] for row in rows if row["rings"] == rings]
        speedups = [row["speedup"] for row in rows if row["rings"] == rings]
        assert metrics[f"crossover_rows_{rings}"] == pytest.approx(crossover(sizes, speedups))
        assert metrics[f"best_speedup_{rings}"] == max(speedups)


def test_benchmark_needs_ranks_and_a_size() -> None:
    with pytest.raises(CaseError, match="mpiexec -n 2 fluxloom bench rings"):
        RingsBench().run(RingsOptions(), print)
    for text in ("foo", "124", "-1", "1.5"):
        with pytest.raises(CaseError, match=f"--cells '{text}': give the most rows a rank, at least 125"):
            next(_sizes(text))


@pytest.mark.parametrize(
    ("ratios", "level", "expected"),
    [
        ((4.0, 2.0, 0.5, 0.25), 1.0, 200 * 2**0.5),
        ((4.0, 2.0, 0.5, 0.25), 2.0, 200.0),
        ((4.0, 2.0, 1.0, 0.25), 1.0, 400.0),
        ((2.0, 0.5, 2.0, 0.5), 1.0, 100 * 2**0.5),
        ((4.0, 2.0, 1.5, 1.2), 1.0, None),
        ((0.5, 0.4, 0.3, 0.2), 1.0, 100.0),
    ],
)
def test_crossover(ratios: tuple[float, ...], level: float, expected: float | None) -> None:
    """The size where straight lines in logarithms first meet the level."""
    assert crossover((100, 200, 400, 800), ratios, level) == pytest.approx(expected)
