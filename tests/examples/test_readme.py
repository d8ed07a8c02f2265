"""The program in the README runs as it is printed, and conserves heat."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def test_first_program(tmp_path: Path) -> None:
    """The first Python block, run from a file: the ring keeps its heat and its warmest node cools."""
    block = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    path = tmp_path / "ring.py"
    path.write_text(block.group(1), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("ring", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = module.u.read()
    assert values.sum() == pytest.approx(0.0, abs=1e-12)
    # Each mode decays by 1 - dt nu (2 - 2 cos(2 pi / n)) / |edge| a step.
    n = values.size
    decay = 1 - 1e-3 * 0.1 * (2 - 2 * np.cos(2 * np.pi / n)) / (2 * np.sin(np.pi / n))
    assert values[0] == pytest.approx(decay**100, rel=1e-12)
