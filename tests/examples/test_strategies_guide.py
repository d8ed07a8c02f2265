"""The guide to strategies."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "strategies.md"


def test_guide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks run as one module; they print fields by their paths and values that can be checked by hand."""
    path = tmp_path / "guide.py"
    path.write_text("\n".join(re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)), "utf-8")
    spec = importlib.util.spec_from_file_location("strategies_guide", path)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "{'flux_dissipation': 1.0, 'flux_law_speed': 2.0}"
    assert float(lines[1]) < 1e-4  # of third order: (2 pi / 100)^3 / 16
    assert float(lines[2]) == 2.0 * 1.5 + 0.5 * 4.0
    assert lines[3] == "[1.5 2.5]"
