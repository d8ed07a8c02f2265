"""``fluxloom mesh refine``: files and errors."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

from fluxloom.mesh import box3d, check, read_data, write


class Call(Protocol):
    def __call__(self, *words: object) -> SimpleNamespace: ...


def test_refine(fluxloom: Call, tmp_path: Path) -> None:
    coarse, fine = tmp_path / "coarse.su2", tmp_path / "fine.vtu"
    write(coarse, box3d(2, 1, 1, kind="prism"))
    done = fluxloom("mesh", "refine", coarse, fine, "--times", 2)
    assert done.code == 0
    assert "225 points, 256 cells" in done.err
    mesh = read_data(fine)
    assert (mesh.n_points, check(mesh).elements) == (9 * 5 * 5, {"prism": 4 * 64})
    assert {name: len(faces) for name, faces in mesh.patches.items()} == {
        "xmin": 16, "xmax": 16, "ymin": 32, "ymax": 32, "zmin": 64, "zmax": 64,
    }  # fmt: skip
    assert fluxloom("mesh", "refine", coarse, tmp_path / "once.su2").code == 0
    assert read_data(tmp_path / "once.su2").n_cells == 32


def test_errors(fluxloom: Call, tmp_path: Path) -> None:
    coarse = tmp_path / "coarse.su2"
    write(coarse, box3d(1, 1, 1))
    done = fluxloom("mesh", "refine", coarse, tmp_path / "fine.su2", "--times", 12)
    assert done.code == 2
    assert "refine 10 times" in done.err
    assert fluxloom("mesh", "refine", coarse, tmp_path / "fine.su2", "--times", 0).code == 2
    assert not (tmp_path / "fine.su2").exists()
