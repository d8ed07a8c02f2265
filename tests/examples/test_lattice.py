"""The lattice Boltzmann example gives its pinned number."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "taylor_green_lattice.py"
MEASURED = 0.04999824311029


def test_taylor_green(capsys: pytest.CaptureFixture[str]) -> None:
    """The measured viscosity is the one that was set, and the same everywhere."""
    measured = runpy.run_path(str(SCRIPT))["main"]()
    assert measured == pytest.approx(MEASURED, rel=1e-8)
    assert measured == pytest.approx(0.05, rel=1e-4)
    assert "set 0.05 (" in capsys.readouterr().out
