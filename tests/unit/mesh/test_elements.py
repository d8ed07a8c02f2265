from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import ELEMENTS, by_code, element
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.mesh.io import write
from fluxloom.mesh.quality.orient import MIRROR, orient

UNIT = {
    "triangle": ([[0, 0], [1, 0], [0, 1]], 1 / 2, [1 / 3, 1 / 3]),
    "quad": ([[0, 0], [1, 0], [1, 1], [0, 1]], 1.0, [0.5, 0.5]),
    "tetra": ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], 1 / 6, [1 / 4] * 3),
    "pyramid": ([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0.5, 0.5, 1]], 1 / 3, [0.5, 0.5, 0.25]),
    "prism": ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1]], 1 / 2, [1 / 3, 1 / 3, 0.5]),
    "hexahedron": (
        [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]],
        1.0,
        [0.5] * 3,
    ),
}


def test_masked_arrays_are_no_meshes(tmp_path) -> None:
    nodes, points = np.array([[0, 1, 2]]), np.array(UNIT["triangle"][0], dtype=float)
    sides = np.array([[0, 1], [1, 2]])
    with pytest.raises(MeshError, match="points: 1 values are masked"):
        MeshData(np.ma.array(points, mask=points == np.array([1, 9])), {"triangle": nodes})
    with pytest.raises(MeshError, match="cells: triangle: 1 values are masked"):
        MeshData(points, {"triangle": np.ma.array(nodes, mask=nodes == 2)})
    with pytest.raises(MeshError, match="patch 'wall': line: 2 values are masked"):
        MeshData(points, {"triangle": nodes}, {"wall": {"line": np.ma.array(sides, mask=sides == 1)}})
    mesh = MeshData(np.ma.array(points, mask=False), {"triangle": nodes})
    with pytest.raises(MeshError, match=r"a\.vtu: data 'p': 1 values are masked"):
        write(tmp_path / "a.vtu", mesh, cell_data={"p": np.ma.array([1e20], mask=[True])})
    assert not (tmp_path / "a.vtu").exists()


def single(name: str) -> MeshData:
    points = np.array(UNIT[name][0], dtype=float)
    return MeshData(points, {name: np.arange(len(points))[None]})


@pytest.mark.parametrize("name", UNIT)
def test_measure_and_centroid_of_the_unit_element(name):
    volume, centroid = cell_geometry(single(name))
    assert volume[0] == pytest.approx(UNIT[name][1], abs=1e-15)
    assert centroid[0] == pytest.approx(UNIT[name][2], abs=1e-15)


@pytest.mark.parametrize("name", UNIT)
def test_faces_close_and_every_edge_is_shared_by_two_faces(name):
    kind = element(name)
    directed = [(f[k], f[(k + 1) % len(f)]) for f in kind.faces for k in range(len(f))]
    if kind.dimension == 3:  # outward faces meet every edge once in each direction
        assert sorted(directed) == sorted((b, a) for a, b in directed)
        assert {frozenset(pair) for pair in directed} == {frozenset(pair) for pair in kind.edges}
        assert len(kind.edges) == len(directed) // 2
    assert {node for face in kind.faces for node in face} == set(range(kind.n_nodes))


@pytest.mark.parametrize("name", UNIT)
def test_mirror_changes_the_sign_of_the_volume_only(name):
    mesh = single(name)
    mirrored = MeshData(mesh.points, {name: mesh.cells[name][:, list(MIRROR[name])]})
    assert cell_geometry(mirrored)[0] == pytest.approx(-cell_geometry(mesh)[0])
    turned, count = orient(mirrored)
    assert count == 1
    assert cell_geometry(turned)[0] == pytest.approx(cell_geometry(mesh)[0])
    assert orient(mesh) == (mesh, 0)
    faces = {frozenset(mirrored.cells[name][0][list(face)].tolist()) for face in element(name).faces}
    assert faces == {frozenset(face) for face in element(name).faces}


def test_codes():
    assert by_code("vtk")[13].name == "prism"
    assert by_code("gmsh")[5].name == "hexahedron"
    assert by_code("su2") == by_code("vtk")
    assert len(by_code("gmsh")) == len(ELEMENTS)


def test_unknown_element():
    with pytest.raises(MeshError, match=r"unknown element type 'tetrahedron'; did you mean 'hexahedron'|'tetra'"):
        element("tetrahedron")


def test_meshes_agree_with_meshio_on_node_counts():
    meshio = pytest.importorskip("meshio")
    from meshio._mesh import topological_dimension

    for name, kind in ELEMENTS.items():
        word = {"prism": "wedge"}.get(name, name)
        assert topological_dimension[word] == kind.dimension
        assert meshio._common.num_nodes_per_cell[word] == kind.n_nodes
