"""Pictures of sections: a file of the right kind, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import CaseError
from fluxloom_lab.studies.section_pictures import Panel, Pressures, draw_sections


def test_draws_stations(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    x = np.linspace(0.0, 1.0, 11)
    curves = [Pressures("computed", x, x - 0.5), Pressures("measured", x[::2], x[::2] - 0.4, marks=True)]
    for count in (1, 4, 7):
        path = tmp_path / f"{count}.png"
        draw_sections(path, [Panel(f"y = {k}", curves) for k in range(count)], "a wing", critical=-0.3)
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(CaseError, match="at least one station"):
        draw_sections(tmp_path / "none.png", [], "a wing")
