"""The benchmark ``lbm`` on several numbers of threads: its processes and its table."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fluxloom.core.errors import CaseError
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom_lab.bench.boxes import lbm_threads
from fluxloom_lab.bench.boxes.lattice import LbmBench
from fluxloom_lab.bench.boxes.lbm_choice import Choice, LbmOptions
from fluxloom_lab.bench.boxes.lbm_threads import child_words, numbers_of_threads, sweep_threads
from tests.unit.lab.test_bench_lbm import little, silent


def test_numbers() -> None:
    assert numbers_of_threads(1) == [1]
    assert numbers_of_threads(6) == [1, 2, 3, 4, 5, 6]
    assert numbers_of_threads(12) == [1, 2, 4, 8, 9, 12]
    assert numbers_of_threads(64) == [1, 2, 4, 8, 16, 32, 48, 64]


def test_words_of_a_process() -> None:
    """What is usual is left out, so that nothing is said which was not asked for."""
    words = child_words(LbmOptions(), Choice(), 2, 10, 3)
    assert words == ["bench", "lbm", "--device", "cpu", "--threads", "2", "-n", "10", "--rounds", "3"]
    choice = Choice("D2Q9", "trt", "float64", "push", "aos", "uniform", walls=True)
    words = child_words(LbmOptions(cells="8", schedule=Schedule(block=64)), choice, 1, 1, 1)[10:]
    assert words == [
        "--cells", "8", "--schedule", "block=64", "--precision", "float64", "--layout", "aos", "--lattice", "D2Q9",
        "--collision", "trt", "--streaming", "push", "--force", "uniform", "--walls",
    ]  # fmt: skip


def test_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number of threads is a process, one thread once; its variables place the threads."""
    seen: list[tuple[str, str]] = []

    def run(command: Sequence[str], *, name: str, environment: Mapping[str, str]) -> list[str]:
        assert command[:5] == [sys.executable, "-m", "fluxloom", "bench", "lbm"]
        threads = command[command.index("--threads") + 1]
        seen.append((threads, environment["OMP_PROC_BIND"]))
        assert environment["OMP_PLACES"] == "cores"
        metrics: dict[str, Any] = {
            "threads": int(threads),
            "mlups": 10.0 * int(threads) ** 0.5,
            "percent_of_copy": 50.0,
            "ms_per_step": 1.0,
        }
        Path(command[-1]).write_text(json.dumps({"metrics": metrics, "copy_gbs": 20.0}), encoding="utf-8")
        return []

    monkeypatch.setattr(lbm_threads, "run_program", run)
    rows = sweep_threads(LbmOptions(), Choice(), 4, 1, 1, silent)
    assert seen == [(str(n), b) for n in (1, 2, 3, 4) for b in ("close", "spread") if n > 1 or b == "close"]
    assert rows[-1]["speedup"] == pytest.approx(2.0)
    assert rows[-1]["efficiency"] == pytest.approx(0.5)


def test_only_one_flow_on_a_processor() -> None:
    with pytest.raises(CaseError, match="--threads-sweep measures one flow on a processor"):
        LbmBench().run(little(device="reference", threads_sweep=True), silent)
    with pytest.raises(CaseError, match="--threads-sweep measures one flow on a processor"):
        LbmBench().run(little(threads_sweep=True, lattice="d2q9,d3q19"), silent)
