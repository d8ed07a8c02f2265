"""Polyhedra that are twisted, open or pinched are refused by readers and by what takes a mesh in Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import MeshError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import bind, box3d, check, read_data, write
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.data.ragged import Ragged
from fluxloom.mesh.geometry.metrics import face_geometry
from fluxloom_lab.attack.files.cgns import base, file_of, polyhedral_sections, unstructured, write_adf
from fluxloom_lab.attack.files.texts import vtu
from tests.unit.mesh.damages import as_polyhedra, cells_of, named, with_cells
from tests.unit.mesh.test_polyhedra import hexagonal_prism

CUBE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], dtype=float)
SHAPES = {
    "hexahedron": CUBE, "prism": CUBE[[0, 1, 3, 4, 5, 7]], "pyramid": np.append(CUBE[:4], [[0.5, 0.5, 1]], axis=0),
}  # fmt: skip
TURNED = [(0, 1, 2, 3, 6, 7, 4, 5), (0, 1, 3, 4, 6, 7, 5, 2), (0, 1, 5, 2, 3, 4, 6, 7), (0, 1, 3, 2, 4, 5, 7, 6)]
"""The top of a hexahedron turned by half a turn, and others whose sides meet within it."""


def ending(mesh: MeshData) -> str:
    """Return why control volumes refuse a mesh, in a word."""
    try:
        control_volumes(mesh)
    except MeshError as error:
        return next(word for word in ("tangled", "inverted", "degenerate", "overlapping") if word in str(error))
    return "taken"


def single(kind: str, order: tuple[int, ...], noise: float) -> MeshData:
    points = SHAPES[kind] + noise * np.random.default_rng(3).random(SHAPES[kind].shape)
    return named(MeshData(points, {kind: np.array([order], dtype=np.int32)}))


@pytest.mark.parametrize(
    ("kind", "step"),
    [("pyramid", 3), ("prism", 17), ("hexahedron", 997), *(pytest.param(kind, step, marks=pytest.mark.long)
     for kind, step in (("pyramid", 1), ("prism", 1), ("hexahedron", 41)))],
)  # fmt: skip
def test_any_order_of_the_corners(kind: str, step: int) -> None:
    """Cells given by their faces are refused as the elements with these corners are."""
    orders = [*itertools.permutations(range(len(SHAPES[kind])))][::step]
    ends = [(ending(mesh), ending(as_polyhedra(mesh))) for mesh in (single(kind, order, 0.1) for order in orders)]
    assert all(one == other for one, other in ends)
    assert {"taken", "inverted", "tangled"} <= {one for one, _ in ends} or len(orders) < 60


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("order", TURNED)
def test_twisted_hexahedra_given_by_their_faces(order: tuple[int, ...], noise: float) -> None:
    mesh = as_polyhedra(single("hexahedron", order, noise))
    for take in (check, control_volumes, lambda mesh: bind(mesh, fl.Context("reference")).cell_nodes):
        with pytest.raises(MeshError, match=r"polyhedron element 0 at \(.*\): (tangled|inverted|degenerate)"):
            take(mesh)


@pytest.mark.parametrize(
    ("degrees", "noise", "word"),
    [(60.0, 0.05, "taken"), (120.0, 0.0, "taken"), (180.0, 0.05, "tangled"), (180.0, 0.0, "degenerate")],
)
def test_a_hexagonal_prism_with_its_top_turned(degrees: float, noise: float, word: str) -> None:
    """At half a turn the sides meet in the middle; those of the exact shape have no area."""
    mesh, angle = hexagonal_prism(), np.radians(degrees)
    points, turn = mesh.points.copy(), np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    points[6:, :2] = points[6:, :2] @ turn
    points += noise * np.random.default_rng(5).random(points.shape)
    assert ending(mesh.with_points(points)) == word


DAMAGES: dict[str, tuple[Callable[[list], list], str]] = {
    "a face missing": (lambda cell: cell[1:], "open: its faces do not close"),
    "a face twice": (lambda cell: [*cell, cell[2]], "open: its faces do not close"),
    "a face twice, one missing": (lambda cell: [*cell[1:], cell[2]], "open: its faces do not close"),
    "two corners in one": (
        lambda cell: [[cell[0][0] if node == far(cell) else node for node in face] for face in cell], "pinched",
    ),
}  # fmt: skip


def far(cell: list[list[int]]) -> int:
    """Return the corner of a hexahedron that shares no face with the first corner of its first face."""
    beside = {node for face in cell if cell[0][0] in face for node in face}
    return next(node for face in cell for node in face if node not in beside)


def damaged(name: str) -> MeshData:
    mesh = as_polyhedra(box3d(2, 2, 2))
    cells = cells_of(mesh)
    cells[5] = DAMAGES[name][0](cells[5])
    return with_cells(mesh, cells)


@pytest.mark.parametrize("name", DAMAGES)
def test_open_polyhedra(name: str, tmp_path: Path) -> None:
    """In Python, and in files: their readers name the file, the cell and its place."""
    mesh, text = damaged(name), rf"polyhedron element 5 at \(.*\): {DAMAGES[name][1]}"
    for take in (check, control_volumes, lambda mesh: bind(mesh, fl.Context("reference")).cell_nodes):
        with pytest.raises(MeshError, match=text):
            take(mesh)
    with pytest.raises(MeshError, match=rf"a\.vtu: {text}"):
        read_data(vtu_of(tmp_path / "a.vtu", mesh))
    pytest.importorskip("h5py")
    write(tmp_path / "a.vtkhdf", replace(mesh, patches={}))
    with pytest.raises(MeshError, match=rf"a\.vtkhdf: {text}"):
        fl.mesh.read(tmp_path / "a.vtkhdf", fl.Context("reference"))


def vtu_of(path: Path, mesh: MeshData) -> Path:
    """Write polyhedra as a VTU file."""
    cells = cells_of(mesh)
    streams = [[len(cell), *(k for face in cell for k in (len(face), *face))] for cell in cells]
    nodes = [sorted({node for face in cell for node in face}) for cell in cells]
    text = vtu(path, [(mesh.points.tolist(), nodes, [42] * len(cells), [0.0] * len(cells))]).read_text()
    arrays = (("faces", np.concatenate(streams)), ("faceoffsets", np.cumsum([len(stream) for stream in streams])))
    more = "".join(
        f'<DataArray type="Int64" Name="{name}" format="ascii">{" ".join(map(str, values))}</DataArray>'
        for name, values in arrays
    )
    path.write_text(text.replace("</Cells>", f"{more}</Cells>"))
    return path


def test_a_twisted_hexahedron_of_a_cgns_file(tmp_path: Path) -> None:
    """Faces of which a hexahedron is made, in a file that has no elements."""
    mesh = single("hexahedron", TURNED[0], 0.1)
    zone = unstructured("Zone", mesh.points, 1, *polyhedral_sections(mesh, offsets=True))
    found = read_data(write_adf(tmp_path / "a.cgns", file_of(base(3, zone))))
    with pytest.raises(MeshError, match=r"a\.cgns: hexahedron element \d+ at \(.*\): tangled"):
        control_volumes(named(found))


def test_faces_whose_widths_have_the_mean_of_one_of_them() -> None:
    """A triangle, a square and a pentagon: four corners on average, which were taken for three squares."""
    angle = 2.0 * np.pi * np.arange(5) / 5
    points = np.concatenate([CUBE[:4], np.stack([np.cos(angle), np.sin(angle), np.zeros(5)], axis=1)])
    faces = Ragged.from_counts(np.array([3, 4, 5]), np.array([0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8]))
    normals, centres = face_geometry(points, faces)
    pentagon = 2.5 * np.sin(2.0 * np.pi / 5)
    np.testing.assert_allclose(normals, [[0, 0, 0.5], [0, 0, 1], [0, 0, pentagon]], atol=1e-15)
    np.testing.assert_allclose(centres, [[2 / 3, 1 / 3, 0], [0.5, 0.5, 0], [0, 0, 0]], atol=1e-15)
