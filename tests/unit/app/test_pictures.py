"""Pictures of fields: round-off in a uniform part leaves no trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.app.application import Picture
from fluxloom.app.pictures import draw_field
from fluxloom.mesh import box2d


@pytest.mark.parametrize("level", [2.5, 1.0, 0.0, -40.0])
@pytest.mark.parametrize("part", [0.5, 1.0])
def test_round_off_is_not_drawn(tmp_path: Path, level: float, part: float) -> None:
    """A stream that is uniform in a part of the plane, or everywhere: with noise the picture is the same to the bit."""
    pytest.importorskip("matplotlib")
    mesh = box2d(12, 8)
    x = np.array([mesh.points[corners].mean(axis=0)[0] for block in mesh.cells.values() for corners in block
                  if len(corners) > 2])  # fmt: skip
    field = level + np.maximum(x - part, 0.0)
    noise = 1e-13 * max(abs(level), 0.1) * np.random.default_rng(2).uniform(-1.0, 1.0, field.size)
    drawn = []
    for name, values in (("still", field), ("noisy", np.where(x < part, field + noise, field))):
        path = tmp_path / f"{name}.png"
        draw_field(path, mesh, values, Picture("v", "v", "v"))
        drawn.append(path.read_bytes())
    assert drawn[0] == drawn[1]
