"""The benchmark of extruded meshes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError
from fluxloom_lab.bench.linear.extruded import ExtrudedBench, ExtrudedOptions
from fluxloom_lab.bench.registry import benches


class Meter:
    """Measures nothing."""

    def measure(self) -> SimpleNamespace:
        return SimpleNamespace(copy_gbs=10.0)


@pytest.fixture(autouse=True)
def meter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom_lab.bench.linear.extruded.meter_for", lambda _: Meter())


def test_record() -> None:
    told: list[str] = []
    record = benches()["extruded"].run(ExtrudedOptions(cells="5,4,2", rounds=1, threads=1), told.append).as_json()
    metrics = record["metrics"]
    assert record["sizes"] == {"cells": 40}
    assert metrics["shape"] == [2, 4, 5]
    assert record["copy_gbs"] == 10.0
    methods = {row["method"]: row for row in metrics["methods"]}
    assert metrics["seconds_per_solve"] == record["seconds"] == methods[metrics["best"]]["seconds"] > 0
    for row in methods.values():
        assert row["converged"]
        assert row["error"] < 1e-6
        assert row["relative_residual"] <= 1e-8
    assert methods["transforms and sparse factors"]["error"] < 1e-13
    assert methods["the same, tuned"]["trials"][-1]["then"] == "end"
    parts = metrics["parts"]
    assert parts["product_gain"] == pytest.approx(parts["product_naive_ns"] / parts["product_unified_ns"])
    assert parts["product_useful_gbs"] > 0
    assert any("ns a row and system" in line for line in told)


@pytest.mark.long
def test_ranks_need_the_iterations_of_one() -> None:
    def run(comm: Comm) -> dict[str, Any]:
        return ExtrudedBench().run(ExtrudedOptions(cells="4", rounds=1, comm=comm, threads=1), lambda _: None).as_json()

    rows = [run_threads(n, run)[0]["metrics"]["methods"] for n in (1, 2)]
    assert rows[0][0]["iterations"] == rows[1][0]["iterations"] > 5
    names = [row["method"] for row in rows[1]]
    assert "the same in 2 teams" in names
    assert "tuned in 2 teams" in names


def test_wrong_box() -> None:
    with pytest.raises(CaseError, match="--cells '5,4' "):
        ExtrudedBench().run(ExtrudedOptions(cells="5,4"), print)
