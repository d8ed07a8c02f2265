"""The benchmark of large-eddy simulation: what its record says, products on ranks, energy meters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError, FluxloomError
from fluxloom.device.bandwidth import Bandwidth
from fluxloom_lab.bench.energy import GpuEnergy, ProcessorEnergy, joules_of
from fluxloom_lab.bench.flows.les import LesBench, _built
from fluxloom_lab.bench.flows.les_kernels import _rotation, _spent, measure_kernels, solver_bytes
from fluxloom_lab.bench.flows.les_model import ITERATION
from fluxloom_lab.bench.flows.les_products import LesOptions, lattice_of, rows_from_text
from fluxloom_lab.bench.registry import benches


class Memory:
    """A memory of 10 GB/s that reads at 8."""

    def __init__(self, copy: float = 10.0, read: float = 8.0) -> None:
        self.found = Bandwidth(copy, copy, copy, 1, 1, read, 1.5 * copy)

    def measure(self, repeats: int = 5) -> Bandwidth:
        return self.found


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rounds be of moments, and the memory be known: what they measure is not looked at."""
    for module in ("les", "les_products"):
        monkeypatch.setattr(f"fluxloom_lab.bench.flows.{module}.meter_for", lambda *_: Memory())
    monkeypatch.setattr("fluxloom_lab.bench.flows.les.meter_of_size", lambda *_: Memory(30.0, 20.0))
    monkeypatch.setattr("fluxloom_lab.bench.flows.les_kernels._ROUND_SECONDS", 1e-4)
    monkeypatch.setattr("fluxloom_lab.bench.rounds._ROUND_SECONDS", 1e-4)
    for name in ("ENERGY_SECONDS", "ROUND_SECONDS"):
        monkeypatch.setattr(f"fluxloom_lab.bench.flows.les.{name}", 1e-3)


def rank_record(comm: Comm, **options: Any) -> dict[str, Any]:
    return LesBench().run(LesOptions(comm=comm, threads=1, rounds=1, **options), lambda _: None).as_json()


@pytest.mark.long
def test_record() -> None:
    """The parts of the model add up to what it says, and calls are those of the sub-steps."""
    record = benches()["les"].run(LesOptions(cells="5,4,3", rounds=1, threads=1, iterations=9), lambda _: None)
    metrics, kernels = record.metrics, record.metrics["kernels"]
    assert record.sizes == {"cells": 60}
    assert record.copy_gbs == 10.0
    moved = sum(row["calls"] * row["gbs"] * 1e-6 * row["us"] for row in kernels)
    assert metrics["percent_of_copy"] == pytest.approx(100 * moved / (1e-3 * metrics["algebraic_ms_best"]) / 10.0)
    assert metrics["shape"] == [5, 4, 3]
    assert metrics["pressure_iterations"] == 16
    assert metrics["difference"] < 1e-9
    assert metrics["algebraic_ms"] == 1e3 * record.seconds > 0
    calls = {kind: sum(row["calls"] for row in kernels if row["kind"] == kind) for kind in ("spmv", "axpy", "dot")}
    start = {"spmv": 31 + 3, "axpy": 11 + 2, "dot": 2}
    assert calls == {kind: start[kind] + 16 * count for kind, count in zip(start, ITERATION, strict=True)}
    assert metrics["predicted_each_ms"] == pytest.approx(sum(1e-3 * row["calls"] * row["us"] for row in kernels))
    us = metrics["spmv_us"], metrics["axpy_us"], metrics["dot_us"]
    wanted = sum((30, 10, 2)[k] * us[k] + 16 * ITERATION[k] * us[k] for k in range(3))
    assert metrics["predicted_ms"] == pytest.approx(1e-3 * wanted)
    for model in ("predicted", "predicted_alone", "predicted_mean", "predicted_each"):
        error = 100.0 * (metrics[f"{model}_ms"] / metrics["algebraic_ms_best"] - 1.0)
        assert metrics[f"{model}_error_percent"] == pytest.approx(error)
    extras = sum(row["calls"] * row["us"] for row in kernels if row["kind"] == "extra")
    sums = {kind: sum(row["calls"] * row["us"] for row in kernels if row["kind"] == kind) for kind in calls}
    counts = {"spmv": 30 + 16 * 2, "axpy": 10 + 16 * 3, "dot": 2 + 16 * 2}
    mean = sum(counts[kind] * sums[kind] / calls[kind] for kind in counts) + extras
    assert metrics["predicted_mean_ms"] == pytest.approx(1e-3 * mean)
    assert metrics["kernels_timed"] == "in the rotation of a step"
    assert sum(metrics[f"share_{kind}"] for kind in ("spmv", "axpy", "dot", "extra")) == pytest.approx(1.0)
    check_bounds(kernels)
    assert "energy" in metrics or metrics["algebraic_joules_per_step"] > 0


def check_bounds(kernels: list[dict[str, Any]]) -> None:
    """Kernels of the pressure solver have the ceilings of data as large as its, the others those of the memory."""
    known = {row["kernel"]: row for row in kernels}
    dot, axpy, copy = known["dot cells"], known["axpy elements"], known["E_C.product"]
    assert dot["percent_of_bound"] == pytest.approx(100 * dot["gbs"] / 22.5)
    assert axpy["percent_of_bound"] == pytest.approx(100 * axpy["gbs"] / (8.0 * 3 / 2))
    assert copy["percent_of_copy"] == pytest.approx(100 * copy["gbs"] / 10.0)
    assert all(row["percent_of_bound"] > 0 for row in kernels)


def test_rotation() -> None:
    """A rotation runs what a step does, as often and in its order, and leaves the state as it was."""
    step = _built(fl.Context("cpu", threads=1), (4, 4, 4), 8)[1]
    step.step(step.stable_step())
    before = step.velocity().copy(), step.pressure().copy()
    kernels = measure_kernels(step)
    assert kernels.rotated
    np.testing.assert_array_equal(step.velocity(), before[0])
    np.testing.assert_array_equal(step.pressure(), before[1])
    found = _spent(_rotation(step))
    assert {name: calls for name, (calls, _) in found.items()} == {part.name: part.calls for part in kernels.parts}
    assert all(part.seconds > 0 for part in kernels.parts)
    assert kernels.solving == {"poisson.product", "diagonal.product", "axpy cells", "dot cells"}
    for part in kernels.parts:
        written = {"spmv": 8 * 64, "axpy": 8 * 64, "dot": 0}
        if part.name in kernels.solving:
            assert part.nbytes - part.read == written[part.kind]


def test_bytes_of_the_solver() -> None:
    """Seven and one entries a row, with starts of rows, and five vectors."""
    step = _built(fl.Context("cpu", threads=1), (4, 4, 4), 8)[1]
    matrices = 64 * 12 * (7 + 1) + 2 * 65 * 8
    assert solver_bytes(step) == matrices + 5 * 64 * 8


@pytest.mark.long
def test_ranks() -> None:
    """On two ranks there are exchanges, which the second model adds to the kernels."""
    found = run_threads(2, lambda comm: rank_record(comm, cells="6", iterations=8))[0]
    metrics = found["metrics"]
    assert found["ranks"] == 2
    assert metrics["difference"] < 1e-6
    assert metrics["exchanges_ms"] > 0
    assert metrics["kernels_timed"] == "alone"
    assert metrics["predicted_ms"] == metrics["predicted_alone_ms"]
    assert metrics["memory_read_gbs"] == pytest.approx(16.0)
    assert metrics["solver_read_gbs"] is None
    alone = sum(1e-3 * row["calls"] * row["us"] for row in metrics["kernels"])
    assert metrics["predicted_each_ms"] == pytest.approx(alone + metrics["exchanges_ms"])


@pytest.mark.parametrize("ranks", [1, 2])
def test_products(ranks: int) -> None:
    """The product is SciPy's; the hidden share is that of the times."""
    record = run_threads(ranks, lambda comm: rank_record(comm, weak="216"))[0]
    metrics = record["metrics"]
    assert metrics["shape"] == [6, 6, 6 * ranks]
    assert metrics["rows_a_rank"] == 216
    assert metrics["error"] < 1e-14
    if ranks == 1:
        assert metrics["hidden"] is None
    else:
        left = metrics["product_ms"] + metrics["exchange_ms"] - metrics["overlapped_ms"]
        assert metrics["hidden"] == pytest.approx(left / metrics["exchange_ms"])
        assert metrics["halo_bytes"] == 2 * 36 * 8


def test_sizes() -> None:
    assert [rows_from_text(text) for text in ("12M", "400k", "5000")] == [12_000_000, 400_000, 5000]
    assert lattice_of(12_000_000, 2) == (458, 229, 229)
    for wrong in ("", "x", "26", "1e9M", "nan"):
        with pytest.raises(CaseError, match="--weak"):
            rows_from_text(wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cells": "2"}, "a box of 3 cells a side or more"),
        ({"cells": "4,4"}, "--cells '4,4' "),
        ({"cells": "4", "weak": "400k"}, "give one of them"),
        ({"weak": "400k", "device": "reference"}, "take cpu, opencl or cuda"),
    ],
)
def test_wrong_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        LesBench().run(LesOptions(**options), print)  # type: ignore[arg-type]


def test_counters_of_processors(tmp_path: Path) -> None:
    """Packages are summed, parts of them not; a counter that begins anew has gone round."""
    for name, value in (("intel-rapl:0", 5_000_000), ("intel-rapl:1", 1_000_000), ("intel-rapl:0:0", 9_000_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text(str(value))
        (tmp_path / name / "max_energy_range_uj").write_text("10000000")
    meter = ProcessorEnergy(tmp_path)
    assert meter.joules() == pytest.approx(6.0)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("2000000")
    assert meter.joules() == pytest.approx(13.0)


def test_no_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FluxloomError, match="no counters in"):
        ProcessorEnergy(tmp_path)
    with pytest.raises(FluxloomError, match="energy: "):
        GpuEnergy("nowhere 0000:FF:1F.0")
    monkeypatch.setattr("fluxloom_lab.bench.energy.ProcessorEnergy.__init__.__defaults__", (tmp_path,))
    assert "no counters in" in str(joules_of(fl.Context("cpu", threads=1), lambda: None))
