"""The example of Poisson's equation gives its pinned numbers."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "poisson_solve.py"
MEMBRANE, FLOW, REMOVED = 0.07366781046908, 1.82988531846863, 0.16666412353516


def test_poisson(capsys: pytest.CaptureFixture[str]) -> None:
    """Second-order results near the exact ones, the same everywhere; the mean is that of the discrete values."""
    membrane, flow, removed = runpy.run_path(str(SCRIPT))["main"]()
    assert membrane == pytest.approx(MEMBRANE, rel=1e-10)
    assert flow == pytest.approx(FLOW, rel=1e-10)
    assert removed == pytest.approx(REMOVED, rel=1e-10)
    assert membrane == pytest.approx(0.0736713, rel=1e-4)
    assert flow == pytest.approx(1.829453, rel=3e-4)
    assert "tridiagonal systems along axis 1" in capsys.readouterr().out
