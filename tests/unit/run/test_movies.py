"""Films as MP4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluxloom.cases.files.errors import Document
from fluxloom.cases.files.loading import parse_case
from fluxloom.cases.lattice.case import LatticeApplication
from fluxloom.cases.lattice.tables import LatticeCase
from fluxloom.core.errors import DeviceUnavailable
from fluxloom.dsl.context import Context
from fluxloom.run.results.movies import Movie
from fluxloom.run.results.results import ResultFolder

ffmpeg = pytest.importorskip("imageio_ffmpeg")
pytest.importorskip("matplotlib")

CASE: dict[str, Any] = {
    "case": {"name": "film", "solver": "lattice"},
    "run": {"iterations": 4},
    "mesh": {"nx": 13, "ny": 7, "spacing": 0.1},
    "fluid": {"viscosity": 0.1},
    "initial": {"velocity_x": "0.5 * sin(9 * y)"},
    "movie": {"every": 2, "format": "mp4", "field": "speed", "rate": 10},
}


def pictures(path: Path) -> tuple[dict[str, Any], np.ndarray]:
    """Return what a film says of itself, and its pictures."""
    frames = ffmpeg.read_frames(str(path))
    meta = next(frames)
    width, height = meta["size"]
    return meta, np.stack([np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in frames])


def test_pictures_of_a_film(tmp_path: Path) -> None:
    """As many pictures as were added, y upward, in the colours of the values; bodies are grey."""
    movie = Movie(tmp_path / "a.mp4", 0.0, 1.0, rate=10)
    field = np.zeros((5, 7))
    field[3:, :3] = 1.0
    hidden = np.zeros((5, 7), dtype=bool)
    hidden[:2, 5:] = True
    for values in (field, 1.0 - field, field):
        movie.add(values, hidden)
    assert movie.finish()
    meta, found = pictures(tmp_path / "a.mp4")
    assert meta["fps"] == 10
    assert len(found) == 3
    _, height, width, _ = found.shape
    assert width >= 480
    assert height / width == pytest.approx(5 / 7, rel=0.02)
    for k, shown in enumerate(found.astype(int)):
        high, low = (movie.palette[254 if k % 2 == end else 0] for end in (0, 1))
        assert np.abs(shown[height // 10, width // 10] - high).max() < 12
        assert np.abs(shown[height // 2, width // 2] - low).max() < 12
        assert np.abs(shown[-height // 10, -width // 10] - movie.palette[255]).max() < 12


def test_a_case_with_a_film(tmp_path: Path) -> None:
    """The start, and each second step."""
    case, _ = parse_case(Document(Path("case.toml"), CASE, {}))
    assert isinstance(case, LatticeCase)
    runner = LatticeApplication().build(case, Context("reference"))
    runner.begin(ResultFolder(tmp_path))
    while not runner.finished and runner.flow.steps < case.run.iterations:
        runner.advance()
    runner.finish(pictures=False)
    assert "speed.mp4" in runner.folder.written
    assert len(pictures(tmp_path / "speed.mp4")[1]) == 3


def test_without_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That there is no ffmpeg is said before the run."""

    def none() -> str:
        raise RuntimeError("none found")

    monkeypatch.setattr(ffmpeg, "get_ffmpeg_exe", none)
    with pytest.raises(DeviceUnavailable, match=r"needs ffmpeg, .*none found.*or take \.gif"):
        Movie(tmp_path / "a.mp4", 0.0, 1.0)
