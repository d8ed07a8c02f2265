from __future__ import annotations

import sys

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import MeshData, PatchFaces, Ragged
from fluxloom.mesh.geometry.connectivity import connectivity, transpose
from fluxloom.mesh.geometry.metrics import closure, geometry

SHAPES = ("quad", "triangle", "left", "hexahedron", "tetra", "prism", "pyramid", "mixed")


@pytest.fixture(params=SHAPES)
def mesh(request: pytest.FixtureRequest, mixed_mesh: MeshData) -> MeshData:
    kind = request.param
    if kind == "mixed":
        return mixed_mesh
    if kind == "left":
        return box2d(4, 3, (2, 1), "triangle", diagonal="left")
    if kind in ("quad", "triangle"):
        return box2d(4, 3, (2, 1), kind, perturb=0.2)
    return box3d(4, 3, 2, (2, 1, 3), kind, perturb=0.2)


def slow_faces(mesh: MeshData):
    """Walk the cells; number each interior face when it is first met."""
    seen: dict[frozenset[int], list[tuple[int, tuple[int, ...]]]] = {}
    cell = 0
    for name, block in mesh.cells.items():
        for nodes in block.tolist():
            for face in element(name).faces:
                corner = tuple(nodes[k] for k in face)
                seen.setdefault(frozenset(corner), []).append((cell, corner))
            cell += 1
    interior = [uses for uses in seen.values() if len(uses) == 2]
    return [(uses[0][1], uses[0][0], uses[1][0]) for uses in interior]


def test_interior_faces_follow_the_walk(mesh):
    links = connectivity(mesh)
    expected = slow_faces(mesh)
    assert links.n_interior == len(expected)
    for number, (nodes, owner, neighbour) in enumerate(expected):
        assert tuple(links.interior_nodes[number]) == nodes
        assert tuple(links.interior_cells[number]) == (owner, neighbour)


def test_cell_faces_and_boundary(mesh):
    links = connectivity(mesh)
    assert links.n_faces == links.n_interior + links.n_boundary
    assert (links.boundary_patch >= 0).all()
    cell = 0
    for name, block in mesh.cells.items():
        for nodes in block:
            faces = links.cell_faces[cell]
            for local, face in zip(element(name).faces, faces, strict=True):
                outer = face >= links.n_interior
                found = links.boundary_nodes[face - links.n_interior] if outer else links.interior_nodes[face]
                assert set(found) == set(nodes[list(local)])
                if outer:
                    assert links.boundary_cells[face - links.n_interior] == cell
                else:
                    assert cell in links.interior_cells[face]
            cell += 1
    for number, (name, faces) in enumerate(links.patches.items()):
        assert len(faces) == len(mesh.patches[name])
        assert (links.boundary_patch[faces.start : faces.stop] == number).all()


def test_euler_characteristic_edges_and_node_cells(mesh):
    links = connectivity(mesh)
    edges = links.edges
    assert (edges[:, 0] < edges[:, 1]).all()
    assert len(np.unique(edges, axis=0)) == len(edges)
    if mesh.dimension == 2:
        assert len(edges) == links.n_faces
        assert mesh.n_points - links.n_faces + mesh.n_cells == 1
    else:
        assert mesh.n_points - len(edges) + links.n_faces - mesh.n_cells == 1
    back = transpose(links.node_cells, mesh.n_cells)
    for cell in range(mesh.n_cells):
        assert set(back[cell]) == set(links.cell_nodes[cell])
    cells = links.cell_cells
    assert cells.counts.sum() == 2 * links.n_interior


def test_geometry_closes_and_fills_the_box(mesh):
    links = connectivity(mesh)
    terms = geometry(mesh, links)
    assert (terms.cell_volumes > 0).all()
    assert np.abs(closure(mesh, links, terms)).max() < 1e-15 * 20
    if len(mesh.cells) == 1:
        lengths = mesh.points.max(axis=0) - mesh.points.min(axis=0)
        assert terms.cell_volumes.sum() == pytest.approx(np.prod(lengths), rel=1e-14)
    # the divergence theorem: the flux of the position vector is d times the volume
    flux = np.einsum("ij,ij->", terms.boundary_normals, terms.boundary_centres)
    if mesh.dimension == 2 or len(mesh.cells) == 1:
        assert flux == pytest.approx(mesh.dimension * terms.cell_volumes.sum(), rel=1e-13)
    line = terms.cell_centroids[links.interior_cells[:, 1]] - terms.cell_centroids[links.interior_cells[:, 0]]
    assert (np.einsum("ij,ij->i", terms.face_normals, line) > 0).all()
    outward = terms.boundary_centres - terms.cell_centroids[links.boundary_cells]
    assert (np.einsum("ij,ij->i", terms.boundary_normals, outward) > 0).all()


def test_face_centre_of_a_trapezium():
    points = np.array(
        [[0, 0, 0], [4, 0, 0], [2, 2, 0], [0, 2, 0], [0, 0, 1], [4, 0, 1], [2, 2, 1], [0, 2, 1]], dtype=float
    )
    mesh = MeshData(points, {"hexahedron": np.arange(8)[None]})
    links = connectivity(mesh)
    terms = geometry(mesh, links)
    assert terms.cell_volumes[0] == pytest.approx(6.0)
    assert terms.cell_centroids[0] == pytest.approx([14 / 9, 8 / 9, 0.5])
    assert terms.boundary_centres[0] == pytest.approx([14 / 9, 8 / 9, 0.0])
    assert terms.boundary_normals[0] == pytest.approx([0, 0, -6.0])


def test_faces_without_patch_come_last(two_quads):
    patches = {"right": two_quads.patches["right"]}
    links = connectivity(MeshData(two_quads.points, two_quads.cells, patches))
    assert links.boundary_patch.tolist() == [0, -1, -1, -1, -1, -1]
    assert links.patches == {"right": range(0, 1)}


def test_hash_collisions_are_resolved(monkeypatch):
    module = sys.modules["fluxloom.mesh.geometry.connectivity"]
    mesh = box3d(2, 2, 2, kind="tetra")
    good = connectivity(mesh)
    bare = MeshData(mesh.points, mesh.cells)
    monkeypatch.setattr(module, "face_keys", lambda nodes, n: nodes.min(axis=1).astype(np.uint64))
    again = connectivity(bare)
    np.testing.assert_array_equal(again.interior_cells, good.interior_cells)


def test_three_cells_at_a_face():
    points = np.array([[0, 0], [1, 0], [0, 1], [0, -1], [0.5, 2]], dtype=float)
    mesh = MeshData(points, {"triangle": np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4]])})
    with pytest.raises(MeshError, match="shared by the 3 cells 0, 1, 2"):
        connectivity(mesh)


def test_bad_arrays():
    points = np.zeros((3, 2))
    with pytest.raises(MeshError, match=r"shape \(n, 2\) or \(n, 3\)"):
        MeshData(np.zeros((3, 4)), {})
    with pytest.raises(MeshError, match=r"triangle must have shape \(m, 3\)"):
        MeshData(points, {"triangle": np.zeros((1, 4), dtype=int)})
    with pytest.raises(MeshError, match="must be integers"):
        MeshData(points, {"triangle": np.zeros((1, 3))})
    with pytest.raises(MeshError, match="unknown element type"):
        MeshData(points, {"hexagon": np.zeros((1, 6), dtype=int)})
    with pytest.raises(MeshError, match="has no cells"):
        connectivity(MeshData(points, {}))


def test_patch_lookup(two_quads):
    assert two_quads.patch("top").nodes().tolist() == [3, 4, 5]
    with pytest.raises(MeshError, match="no patch 'rigth'; did you mean 'right'"):
        two_quads.patch("rigth")


def test_ragged():
    rows = Ragged.from_counts(np.array([2, 0, 3]), np.array([5, 6, 7, 8, 9]))
    assert [row.tolist() for row in rows] == [[5, 6], [], [7, 8, 9]]
    assert rows.arity is None
    assert rows[-1].tolist() == [7, 8, 9]
    assert rows.padded().tolist() == [[5, 6, -1], [-1, -1, -1], [7, 8, 9]]
    assert [row.tolist() for row in rows.take(np.array([2, 0]))] == [[7, 8, 9], [5, 6]]
    with pytest.raises(MeshError, match="differ in length"):
        _ = rows.table
    assert Ragged.from_padded(np.array([[1, 2], [3, 4]], dtype=np.int32)).table.tolist() == [[1, 2], [3, 4]]
    patch = PatchFaces({"triangle": np.array([[1, 2, 3]], dtype=np.int32)})
    assert patch.padded(4).tolist() == [[1, 2, 3, -1]]
