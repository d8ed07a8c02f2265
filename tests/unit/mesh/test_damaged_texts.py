"""Damaged mesh files that were once taken, hung or ended by a traceback: each is refused by both readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import box2d, box3d, read_data, write
from fluxloom.mesh.geometry.transfer import CellSearch
from fluxloom_lab.attack.files.meshes import polyhedron
from fluxloom_lab.attack.files.texts import SU2, msh2, msh4

Change = Callable[[str], str]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: text.index("MARKER_TAG= in")], "1 of the markers that NMARK= says are missing"),
        (lambda text: text.replace("9 0 1 2 3", f"9 0 1 2 {'9' * 30}"), "too large|not a number"),
        (lambda text: text.replace("9 0 1 2 3", "9 0 1 2 \u0663"), "not a number in the elements"),
        (lambda text: text.replace("9 0 1 2 3", "9\u00a00 1 2 3"), "not a number in the elements"),
        (lambda text: text.replace("9 0 1 2 3", "9 0 1 2 1_0"), "not a number in the elements"),
        (lambda text: text.replace("3 0 1\n", "\x00\x00\n"), "a number|a row|needs"),
        (lambda text: text.replace("1 0\n1 1", "0x1 0\n1 1"), "not a number in the points"),
        (lambda text: text.replace("1 0\n1 1", "nan(1) 0\n1 1"), "not a number in the points"),
    ],
)
def test_of_su2(tmp_path: Path, native: bool, change: Change, message: str) -> None:
    (path := tmp_path / "a.su2").write_text(change(SU2), encoding="utf-8")
    with pytest.raises(MeshError, match=message):
        read_data(path, native=native)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("number", ["1.5D-3", "1.5Q-3", "1.5-3", "1.5d-03", "+.15E-2", "15-4"])
def test_exponents_of_fortran(tmp_path: Path, native: bool, number: str) -> None:
    (path := tmp_path / "a.su2").write_text(SU2.replace("NPOIN= 4\n0 0", f"NPOIN= 4\n0 {number}"))
    assert read_data(path, native=native).points[0, 1] == 1.5e-3


@pytest.mark.parametrize("native", [True, False])
def test_of_gmsh(tmp_path: Path, native: bool) -> None:
    path = tmp_path / "a.msh"
    path.write_text(msh4().replace("$Nodes\n1 5 1 5\n2 1 0 5", "$Nodes\n1 5 1 5\n2 1 0 -5"))
    with pytest.raises(MeshError, match=r"a\.msh"):
        read_data(path, native=native)
    for old, new in (("5 2 2 5 1 1 2 5", f"5 2 2 5 1 1 2 {'9' * 25}"), ("1 0 0 0", "1 0x0 0 0")):
        path.write_text(msh2(names='1 1 "a"\n').replace(old, new))
        with pytest.raises(MeshError, match=r"a\.msh"):
            read_data(path, native=native)


def test_of_polyhedra(tmp_path: Path) -> None:
    text = polyhedron(tmp_path / "a.vtu").read_text()
    for old, new in ((" 4 0 2 3 1 ", " 4 0 2 9 1 "), (" 4 0 2 3 1 ", " 4 0 2 -3 1 ")):
        assert old.strip() in text
        (tmp_path / "a.vtu").write_text(text.replace(old.strip(), new.strip(), 1))
        with pytest.raises(MeshError, match=r"a\.vtu"):
            read_data(tmp_path / "a.vtu")


def test_of_abaqus_without_a_keyword(tmp_path: Path) -> None:
    (path := tmp_path / "a.inp").write_text("1, 2, 3\n")
    with pytest.raises(MeshError, match=r"a\.inp"):
        read_data(path)


@pytest.mark.parametrize("suffix", [".dat", ".ply"])
def test_of_meshio_that_end_early(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("meshio")
    write(path := tmp_path / f"a{suffix}", replace(box2d(2, 2, kind="triangle"), patches={}))
    data = path.read_bytes()
    for part in (0.2, 0.5, 0.9):
        path.write_bytes(data[: int(part * len(data))])
        with pytest.raises(MeshError, match=r"meshio cannot read the file"):
            read_data(path)
    path.write_bytes(data)
    assert read_data(path).n_cells == 8


@pytest.mark.parametrize("suffix", [".off", ".ply", ".stl"])
def test_cells_that_meshio_leaves_out_are_told(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("meshio")
    with pytest.raises(MeshError, match=r"the format does not hold all cells \(tetra\)"):
        write(tmp_path / f"a{suffix}", replace(box3d(1, 1, 1, kind="tetra"), patches={}))


def test_coordinates_beyond_all_volumes() -> None:
    mesh = box2d(2, 2)
    with pytest.raises(MeshError, match="coordinates are so large"), np.errstate(all="ignore"):
        CellSearch(mesh.with_points(mesh.points * 1e300))
