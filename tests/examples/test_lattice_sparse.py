"""The example of porous media: drag of spheres in a cubic array."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "lattice_porous.py"


def test_porous(capsys: pytest.CaptureFixture[str]) -> None:
    """With 16 cells a side the drag is within some per cent, and pinned."""
    assert runpy.run_path(str(SCRIPT))["main"]("cpu", "16") == pytest.approx(0.05403, abs=5e-4)
    assert "46.9 %" in capsys.readouterr().out


@pytest.mark.long
def test_porous_as_given(tmp_path: Path) -> None:
    """As it is run: within 1.2 per cent of Zick and Homsy, with a picture."""
    pytest.importorskip("matplotlib")
    picture = tmp_path / "porous.png"
    assert runpy.run_path(str(SCRIPT))["main"]("cpu", "32", str(picture)) < 0.0125
    assert picture.stat().st_size > 10_000
