"""Pictures of fields: contours show the field, not its round-off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from fluxloom.mesh import box2d
from fluxloom.run.flow import Picture
from fluxloom.run.pictures import draw_field

pytest.importorskip("matplotlib")
Array = npt.NDArray[np.float64]


def picture(path: Path, values: Array) -> Array:
    """Return the pixels of a field on 60 x 60 cells."""
    from matplotlib.image import imread

    draw_field(path, box2d(60, 60), values, Picture("mach", "Mach number", "M"))
    return np.asarray(imread(path), dtype=np.float64)


def places() -> tuple[Array, Array]:
    y, x = np.divmod(np.arange(3600), 60)
    return (x + 0.5) / 60.0, (y + 0.5) / 60.0


@pytest.mark.parametrize("size", [1e-15, 1e-8])
def test_contours_do_not_show_round_off(tmp_path: Path, size: float) -> None:
    """A shock behind a uniform stream whose value is that of a level: the same picture with noise and without."""
    x, y = places()
    clean = np.where(x + 0.4 * y > 0.8, 1.5, 2.5)
    noise = 2.5 * size * np.random.default_rng(1).uniform(-1.0, 1.0, clean.size)
    assert (picture(tmp_path / "noise.png", clean + noise) == picture(tmp_path / "clean.png", clean)).all()


def test_a_constant_field_has_no_lines(tmp_path: Path) -> None:
    clean = np.full(3600, 2.5)
    noise = 1e-7 * np.random.default_rng(1).uniform(-1.0, 1.0, clean.size)
    found = picture(tmp_path / "noise.png", clean + noise)
    assert np.abs(found - picture(tmp_path / "clean.png", clean)).mean() < 1e-3


def test_contours_show_what_is_there(tmp_path: Path) -> None:
    """Also where less than one node in a hundred has it."""
    x, y = places()
    flat, spot = np.full(3600, 2.5), 2.5 + np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2) / 2e-4)
    assert np.abs(picture(tmp_path / "spot.png", spot) - picture(tmp_path / "flat.png", flat)).max() > 0.3
    slope = picture(tmp_path / "slope.png", 2.0 + x)
    dark = (slope[:, :, :3].max(axis=2) < 0.35).sum(axis=0)
    assert np.count_nonzero(dark) > 0
