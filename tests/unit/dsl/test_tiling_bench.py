"""The benchmark of tiles: its meshes, its record, what it refuses. No time is asserted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import CaseError
from fluxloom_lab.bench.tiling import TilingBench, TilingOptions, triangles


@pytest.mark.parametrize(("nx", "ny"), [(2, 2), (4, 3), (7, 9)])
def test_the_triangle_mesh(nx: int, ny: int) -> None:
    edges, near = triangles(nx, ny)
    count = 2 * (nx - 1) * (ny - 1)
    assert near.shape == (count, 3)
    assert nx * ny - len(edges) + count == 1  # Euler: a disc
    assert len({tuple(sorted(e)) for e in edges.tolist()}) == len(edges)
    assert (np.diff(edges[:, 0]) >= 0).all()
    met = {(t, int(n)) for t in range(count) for n in near[t] if n != t}
    assert met == {(b, a) for a, b in met}
    # every edge lies between two triangles or at the border, where a triangle is its own neighbour
    border = int((near == np.arange(count)[:, None]).sum())
    assert len(met) // 2 + border == len(edges)
    assert border == 2 * (nx - 1) + 2 * (ny - 1)


@pytest.mark.long
def test_the_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("fluxloom.device.bandwidth._default_size", lambda: 4 << 20)
    monkeypatch.setenv("FLUXLOOM_TUNING", str(tmp_path / "tuning.json"))
    lines: list[str] = []
    record = TilingBench().run(TilingOptions(threads=1, cells="24,30", rounds=1, iterations=2), lines.append).as_json()
    assert (record["case"], record["sizes"]) == ("tiling", {"cells": 2160})
    for name in ("airfoil", "edges", "triangles"):
        case = record["metrics"][name]
        assert {"unfused", "fused", case["best"]} <= set(case["forms"])
        for form in case["forms"].values():
            assert form["ms"] > 0
            if "tiles" in form:
                assert form["redundancy"] >= 1
                assert form["mb_moved"] == pytest.approx(form["mb_in"] + form["mb_out"] + form["mb_tables"])
        assert case["forms"]["fused"]["speedup"] == 1.0
        assert any(text.startswith(f"{name}: ") and "times as fast" in text for text in lines)
    assert {row["strategy"] for row in record["loops"]} == {"tiles"}


def test_devices_without_tiles() -> None:
    with pytest.raises(CaseError, match="tiles are for CPUs"):
        TilingBench().run(TilingOptions(device="reference", cells="8,12"), print)
