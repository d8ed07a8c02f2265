"""The fastest layout of a matrix: what is tried, and that the cheapest comes first. No time is asserted."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from itertools import pairwise

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core import registry
from fluxloom.core.errors import SolverError
from fluxloom.linalg import SparseMatrix
from fluxloom.linalg.matrix import layouts
from fluxloom.linalg.matrix.layouts import fastest_layouts, layouts_of, product_schedules
from fluxloom_lab.formats.row_grouped import RowGroupedCSR
from fluxloom_lab.problems.matrices import power_law, tet_dual
from tests.golden.fake import FakeItems


@pytest.fixture(autouse=True)
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let another package have a format, whatever is installed."""
    entry = EntryPoint("row_grouped", "fluxloom_lab.formats.row_grouped:RowGroupedCSR", "fluxloom.matrix_formats")
    found = {entry.group: [entry]}
    monkeypatch.setattr(registry, "entry_points", lambda *, group: found.get(group, []))


class Costs:
    """A stopwatch that knows what a layout costs: the later ones less."""

    def __init__(self, rounds: int, wait: object) -> None:
        self.rounds = rounds

    def race(self, runs: Sequence[fl.Loop]) -> list[float]:
        for run in runs:
            run()
        return [1.0 / (1 + k) for k in range(len(runs))]


def test_the_cheapest_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "Stopwatch", Costs)
    ctx = fl.Context("cpu", threads=1, tuning=False)
    found = fastest_layouts(ctx, tet_dual(5000, 1))
    assert [trial.layout for trial in found] == [RowGroupedCSR(), fl.ELL(), fl.SlicedELL(8), fl.CSR()]
    assert [trial.seconds for trial in found] == [1 / 4, 1 / 3, 1 / 2, 1.0]
    assert all(trial.schedule == fl.Schedule() for trial in found)
    assert 1.0 == found[-1].padding <= found[1].padding < 2.0


def test_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "Stopwatch", Costs)
    ctx = fl.Context("cpu", threads=1, tuning=False)
    matrix = power_law(20000, 1)
    assert [trial.layout for trial in fastest_layouts(ctx, matrix)] == [RowGroupedCSR(), fl.CSR()]
    only = fastest_layouts(ctx, matrix, layouts=[fl.ELL()])
    assert [trial.layout for trial in only] == [fl.ELL()]
    assert only[0].padding > 100


def test_really_measured() -> None:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    found = fastest_layouts(ctx, tet_dual(3000, 1), rounds=2)
    assert len(found) == 4
    assert all(0 < a.seconds <= b.seconds for a, b in pairwise(found))


def test_of_devices() -> None:
    ctx = fl.Context(FakeItems("cuda"), tuning=False)
    assert layouts_of(ctx)[1] == fl.SlicedELL(32)
    for layout, schedules in ((fl.SlicedELL(32), 2), (fl.ELL(), 1), (fl.CSR(), 1)):
        matrix = SparseMatrix.from_csr(ctx, np.arange(41), np.arange(40), np.ones(40), layout=layout)
        assert len(product_schedules(matrix)) == schedules


def test_errors() -> None:
    ctx = fl.Context("cpu", threads=1, tuning=False)
    with pytest.raises(SolverError, match="no layouts to try"):
        fastest_layouts(ctx, tet_dual(300, 1), layouts=[])
    with pytest.raises(SolverError, match="runs kernels as Python"):
        fastest_layouts(fl.Context("reference"), tet_dual(300, 1))
