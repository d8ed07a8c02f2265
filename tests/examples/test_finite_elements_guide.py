"""The guide to finite elements."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "finite_elements.md"


@pytest.mark.long
def test_guide(capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks run as one program; errors in L2 are those of its mesh, products of all formats agree."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "guide"}
    exec(compile("\n".join(blocks), str(GUIDE), "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    iterations, error = lines[0].split()
    assert int(iterations) < 200
    assert float(error) == pytest.approx(1.2789e-7, rel=1e-3)
    assert float(lines[1]) == pytest.approx(1.8825e-7, rel=1e-3)
    assert max(float(word) for word in lines[2].strip("[]").split(",")) < 1e-13
    assert lines[3] == "block_colour"
    assert int(lines[4]) < 40
