"""The benchmark of unlike ranks: what its numbers mean, and a run on threads."""

from __future__ import annotations

from typing import Any

import pytest

from fluxloom.comm.base import Comm
from fluxloom.comm.threads import run_threads
from fluxloom.core.errors import CaseError
from fluxloom_lab.bench.mixed import Attempt, MixedBench, MixedOptions, SideBySide, break_even


def test_attempt_compares_with_the_sum_of_rates() -> None:
    attempt = Attempt((600, 200), (2.0, 2.5, 2.0), ((1.5, 1.0), (1.5, 1.0), (3.0, 1.0)), "host")
    assert attempt.shares == (0.75, 0.25)
    assert (attempt.seconds, attempt.busy) == (2.0, (1.5, 1.0))
    assert attempt.rates == (400.0, 200.0)
    # rounds: 400/600, 320/600, 400/400
    assert attempt.efficiency == pytest.approx(400 / 600)
    row = attempt.row()
    assert (row["ms"], row["ms_best"], row["ms_worst"], row["cells"]) == (2000.0, 2000.0, 2500.0, 800)


def test_break_even_lies_between_sizes() -> None:
    rows = [{"cells": 100, "gain_percent": -25.0}, {"cells": 10_000, "gain_percent": 25.0}]
    assert break_even(rows) == pytest.approx(1000.0)  # the middle of the logarithms
    assert break_even(rows[::-1]) == pytest.approx(1000.0)
    assert break_even(rows[1:]) == 10_000
    assert break_even(rows[:1]) is None
    assert break_even([]) is None


def test_two_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluxloom_lab.bench.mixed._AROUND", (1.3,))
    told: list[str] = []

    def run(comm: Comm) -> dict[str, Any]:
        options = MixedOptions(cells="8,12", iterations=2, rounds=3, comm=comm, threads=1)
        return MixedBench().run(options, told.append if comm.rank == 0 else lambda _line: None).as_json()

    record, other = run_threads(2, run)
    assert record["sizes"] == other["sizes"] == {"cells": 288}
    (size,), attempts = record["metrics"]["sizes"], record["metrics"]["attempts"]
    assert len(attempts) == 4
    assert all(sum(row["shares"]) == pytest.approx(1.0) and 0 < row["of_sum_of_rates"] < 1.5 for row in attempts)
    assert size["ms"] == min(row["ms"] for row in attempts)
    assert sum(size["predicted_shares"]) == pytest.approx(1.0)
    assert size["alone_best_ms"] == min(ms for ms in size["alone_ms"] if ms)
    assert size["gain_percent"] > -100
    assert size["together_ms"] > 0
    assert told[0] == "288 cells"
    assert told[-1].startswith("  together, measured between: ")
    assert sum("% of the sum of rates" in line for line in told) == 4


def test_the_gain_is_the_median_of_pairs() -> None:
    found = SideBySide(((2.0, 1.5, 0.0), (2.0, 3.0, 0.0), (4.0, 5.0, 0.0)))
    assert (found.together, found.alone, found.fastest) == (2.0, (3.0, 0.0), 3.0)
    assert found.gain == pytest.approx(0.25)  # of 0.75, 1.5, 1.25; that of the medians would be 0.5


def test_one_rank_is_refused() -> None:
    with pytest.raises(CaseError, match="compares ranks"):
        MixedBench().run(MixedOptions(cells="8,12"), print)
