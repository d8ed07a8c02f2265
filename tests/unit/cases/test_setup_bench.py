"""The set-up benchmark: its phases, and what it says of wrong options. No time is asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluxloom.core.errors import CaseError
from fluxloom.mesh import box2d, write
from fluxloom_lab.bench.registry import benches
from fluxloom_lab.bench.setup import SetupOptions


def test_phases_of_a_box() -> None:
    """They are those of a flow, and add up."""
    told: list[str] = []
    found = benches()["setup"].run(SetupOptions(cells="3,2,2", kind="tetra", threads=1), told.append).as_json()
    metrics = found["metrics"]
    phases = metrics["phases"]
    assert [row["phase"] for row in phases] == ["mesh", "renumbering", "division", "control volumes", "flow"]
    assert found["sizes"] == {"cells": 72}
    assert metrics["cells"] == {"tetra": 72}
    assert found["seconds"] == pytest.approx(sum(row["seconds"] for row in phases))
    assert metrics["cpu_seconds_per_million_cells"] == pytest.approx(metrics["cpu_seconds"] / 72e-6)
    peaks = [row["peak_gib"] for row in phases]
    assert peaks == sorted(peaks)
    assert peaks[0] > 0.0
    assert [line.partition(":")[0] for line in told] == [row["phase"] for row in phases]


def test_a_file_is_refined(tmp_path: Path) -> None:
    write(tmp_path / "box.su2", box2d(3, 2))
    options = SetupOptions(mesh=str(tmp_path / "box.su2"), refine=1, threads=1)
    found = benches()["setup"].run(options, lambda _: None)
    assert found.sizes == {"cells": 24}
    assert [row["phase"] for row in found.metrics["phases"]][:2] == ["mesh", "refinement"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "tet"}, "--kind 'tet'; did you mean 'tetra'"),
        ({"mesh": "a.su2", "kind": "tetra"}, "--mesh reads a mesh, --kind is of a box"),
        ({"mesh": "a.su2", "cells": "4"}, "--mesh reads a mesh, --cells is of a box"),
    ],
)
def test_wrong_options(options: dict[str, str], words: str) -> None:
    with pytest.raises(CaseError) as error:
        benches()["setup"].run(SetupOptions(**options), lambda _: None)  # type: ignore[arg-type]
    assert words in str(error.value)
