"""The benchmark of sparse products: its record, its options, and how it searches. No time is asserted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import CaseError, PlanError
from fluxloom.device.bandwidth import Bandwidth
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.linalg import SparseMatrix
from fluxloom.mesh import box3d, write
from fluxloom.perf.ragged import LANES, Grouping
from fluxloom_lab.bench.linear import spmv
from fluxloom_lab.bench.linear.spmv import SpmvBench, SpmvOptions, exhaustive, time_calls
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.problems.matrices import GENERATORS, laplacian2d


def test_record(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, memory in (("meter_for", Bandwidth(50.0, 50.0, 50.0, 1, 1, 40.0)),
                         ("meter_of_size", Bandwidth(70.0, 70.0, 70.0, 1, 1, 30.0, 90.0))):  # fmt: skip
        meter = SimpleNamespace(measure=lambda *_, memory=memory: memory)
        monkeypatch.setattr(spmv, name, lambda *_, meter=meter: meter)
    told: list[str] = []
    record = SpmvBench().run(SpmvOptions(cells="0.003", rounds=2, threads=1), told.append)
    assert (record.case, record.device, record.precision) == ("spmv", "cpu", "float64")
    assert [row.name for row in record.loops] == list(GENERATORS)
    assert len(told) == len(GENERATORS)
    assert record.copy_gbs == 50.0
    for name in GENERATORS:
        found = record.metrics[name]
        assert found["error"] < 1e-13
        assert found["peer"].startswith("scipy")
        assert min(found[key] for key in ("auto_ms", "tuned_ms", "peer_ms", "minimum_gbs", "caching_gbs")) > 0
        assert found["minimum_gbs"] <= found["effective_gbs"] <= found["worst_gbs"]
        assert found["minimum_gbs"] <= found["caching_gbs"]
        read, written = 12 * found["entries"] + 8 * found["columns"], 8 * found["rows"]
        least = max(read / 40.0, (read + written) / 50.0)
        assert found["percent_of_read_bound"] == pytest.approx(1e-4 * least / found["tuned_ms"])
        least = max(read / 45.0, (read + written) / 90.0)
        assert found["percent_of_same_size_bound"] == pytest.approx(1e-4 * least / found["tuned_ms"])
    assert record.sizes["n"] == sum(record.metrics[name]["entries"] for name in GENERATORS)
    assert record.seconds == pytest.approx(sum(row.seconds for row in record.loops))
    assert record.metrics["tuned_over_peer"] > 0
    assert 0 < record.metrics["auto_over_tuned_csr"] <= 1.0
    assert record.metrics["online_after_5"] is None


def test_registered() -> None:
    assert isinstance(benches()["spmv"], SpmvBench)


def test_mesh_file(tmp_path: Path) -> None:
    """The dual graph of a mesh: a row a cell, the cell itself and its neighbours."""
    path = tmp_path / "box.su2"
    write(path, box3d(2, 3, 4))
    entries, files = spmv._wanted(f"0.5, {path}", 20.0)
    assert (entries, files) == (500_000, [path])
    matrix = spmv._dual(path)
    assert matrix.shape == (24, 24)
    assert matrix.nnz == 24 + 2 * (1 * 12 + 2 * 8 + 3 * 6)
    assert matrix.has_canonical_format
    assert (matrix.diagonal() == 5.0).all()


@pytest.mark.parametrize("text", ["many", "0", "-1", "5000", "1e-9", ",a.su2"])
def test_bad_sizes(text: str) -> None:
    with pytest.raises(CaseError, match="in millions"):
        spmv._wanted(text, 2.0)


def test_sizes() -> None:
    assert spmv._wanted("", 2.0) == (2_000_000, [])
    assert spmv._wanted("0.5M", 2.0)[0] == 500_000


def test_the_reference_device_is_not_timed() -> None:
    with pytest.raises(CaseError, match="reference"):
        SpmvBench().run(SpmvOptions(device="reference", cells="0.001"), lambda _: None)


def test_times_of_calls() -> None:
    ctx = fl.Context("cpu", threads=1)
    matrix = SparseMatrix.from_scipy(ctx, laplacian2d(2000, 0))
    x, y = ctx.dat(matrix.columns, np.ones(matrix.shape[1])), ctx.dat(matrix.rows)
    times = time_calls(ctx, matrix.product(x, y), lambda: None, rounds=3)
    assert len(times) == 2
    assert times[0] > 0
    assert time_calls(ctx, matrix.product(x, y), rounds=1)[0] > 0


class Pretended:
    """A loop on a device with lanes, whose clock says what the grouping costs."""

    def __init__(self) -> None:
        self.now, self.grouping, self.calls, self.waits = 0.0, Grouping(128, 4, 1), 0, 0
        self.device = SimpleNamespace(synchronize=self.wait, elapsed=lambda run: spent(self, run))

    def wait(self) -> None:
        self.waits += 1

    def reschedule(self, schedule: Any) -> None:
        if schedule.block > 256:
            raise PlanError("too large")
        self.grouping = Grouping(schedule.block, schedule.lanes, schedule.rows * schedule.lanes // schedule.block)

    def __call__(self) -> None:
        self.calls += 1
        self.now += 1e-3 * (1 + abs(self.grouping.lanes - 8) + abs(self.grouping.repeat - 2))


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    loop = Pretended()
    monkeypatch.setattr(spmv, "schedule_of", lambda g, _: SimpleNamespace(block=g.block, lanes=g.lanes, rows=g.rows))
    monkeypatch.setattr(spmv, "Stopwatch", lambda rounds, wait: SimpleNamespace(median=lambda run: spent(loop, run)))
    return loop


def spent(loop: Pretended, run: Any) -> float:
    begin = loop.now
    run()
    return loop.now - begin


def test_exhaustive_search(pretended: Pretended) -> None:
    found = exhaustive(pretended, pretended, Schedule())  # type: ignore[arg-type]
    blocks = [block for block in spmv.BLOCKS if block <= 256]
    assert len(found) == len(blocks) * len(LANES) * len(spmv.REPEATS)
    assert min(found, key=lambda g: found[g])[1:] == (8, 2)


def test_groups_need_a_device_that_has_them() -> None:
    assert not spmv.groupable(fl.Context("cpu"))
    assert not spmv.groupable(fl.Context("reference"))
