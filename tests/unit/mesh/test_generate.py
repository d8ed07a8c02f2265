from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import airfoil_mesh, box2d, box3d, check
from fluxloom.mesh.generate.airfoil import FAR_FIELD, WALL, six_decimals
from fluxloom.mesh.geometry.connectivity import connectivity


def test_counts():
    mesh = box2d(4, 3, (2, 1))
    links = connectivity(mesh)
    assert (mesh.n_points, mesh.n_cells, links.n_interior, links.n_boundary) == (20, 12, 17, 14)
    assert {name: len(faces) for name, faces in mesh.patches.items()} == {"xmin": 3, "xmax": 3, "ymin": 4, "ymax": 4}
    assert box2d(4, 3, kind="triangle").n_cells == 24
    mesh = box3d(4, 3, 2)
    links = connectivity(mesh)
    assert (mesh.n_points, mesh.n_cells, links.n_interior, links.n_boundary) == (60, 24, 46, 52)
    assert [box3d(4, 3, 2, kind=kind).n_cells for kind in ("tetra", "prism", "pyramid")] == [144, 48, 144]


@pytest.mark.parametrize("kind", ["hexahedron", "tetra", "prism", "pyramid"])
def test_sides_of_a_box(kind):
    mesh = box3d(2, 3, 1, (2, 1, 3), kind, origin=(1, 0, -1), perturb=0.3)
    check(mesh)
    for axis, letter in enumerate("xyz"):
        for side, value in (("min", mesh.points[:, axis].min()), ("max", mesh.points[:, axis].max())):
            assert (mesh.points[mesh.patch(letter + side).nodes(), axis] == value).all()


def test_node_and_cell_order():
    mesh = box2d(2, 2, (2, 2))
    assert mesh.points[:4].tolist() == [[0, 0], [1, 0], [2, 0], [0, 1]]
    assert mesh.cells["quad"].tolist() == [[0, 1, 4, 3], [1, 2, 5, 4], [3, 4, 7, 6], [4, 5, 8, 7]]


def test_diagonals():
    def count(diagonal):
        mesh = box2d(4, 4, kind="triangle", diagonal=diagonal)
        edges = mesh.points[connectivity(mesh).edges]
        along = edges[:, 1] - edges[:, 0]
        return int((along.prod(axis=1) > 0).sum()), int((along.prod(axis=1) < 0).sum())

    assert count("right") == (16, 0)
    assert count("left") == (0, 16)
    assert count("alternating") == (8, 8)


def test_stretching():
    mesh = box2d(4, 2, (2, 1), axes=(lambda s: s**2, [0.0, 0.1, 1.0]))
    assert np.unique(mesh.points[:, 0]) == pytest.approx([0, 0.125, 0.5, 1.125, 2])
    assert np.unique(mesh.points[:, 1]) == pytest.approx([0, 0.1, 1])


def test_perturbation_keeps_the_boundary_and_is_repeatable():
    plain, moved = box3d(4, 4, 4), box3d(4, 4, 4, perturb=0.2, seed=3)
    inner = ((plain.points > 0) & (plain.points < 1)).all(axis=1)
    np.testing.assert_array_equal(plain.points[~inner], moved.points[~inner])
    assert (plain.points[inner] != moved.points[inner]).all()
    np.testing.assert_array_equal(moved.points, box3d(4, 4, 4, perturb=0.2, seed=3).points)


def test_errors():
    with pytest.raises(MeshError, match="unknown kind of cell 'quads'; did you mean 'quad'"):
        box2d(1, 1, kind="quads")
    with pytest.raises(MeshError, match="at least one interval along y"):
        box2d(1, 0)
    with pytest.raises(MeshError, match="along x must be 3 increasing values"):
        box2d(2, 1, axes=([0.0, 1.0, 0.5], None))
    with pytest.raises(MeshError, match="perturb must be in"):
        box2d(2, 2, perturb=0.5)
    with pytest.raises(MeshError, match="3 lengths"):
        box3d(1, 1, 1, (1, 1))
    with pytest.raises(MeshError, match="unknown diagonal"):
        box2d(2, 2, kind="triangle", diagonal="up")  # type: ignore[arg-type]


def slow_airfoil_edges(i: int, j: int):
    """Loop over the cells as the published description does."""

    def node(a, b):
        return a + b * (3 * i + 1)

    def cell(a, b):
        return a + 3 * i * b

    nodes, cells = [], []
    for b in range(j):
        for a in range(3 * i):
            if b == 0 and a < i:
                nodes.append((node(a, 0), node(a + 1, 0)))
                cells.append((cell(3 * i - 1 - a, 0), cell(a, 0)))
            if b < j - 1:
                nodes.append((node(a, b + 1), node(a + 1, b + 1)))
                cells.append((cell(a, b), cell(a, b + 1)))
            if a < 3 * i - 1:
                nodes.append((node(a + 1, b), node(a + 1, b + 1)))
                cells.append((cell(a + 1, b), cell(a, b)))
    bound = [(node(a + 1, 0), node(a, 0), cell(a, 0)) for a in range(i, 2 * i)]
    bound += [(node(3 * i, b + 1), node(3 * i, b), cell(3 * i - 1, b)) for b in range(j)]
    bound += [(node(a, j), node(a + 1, j), cell(a, j - 1)) for a in range(3 * i - 1, -1, -1)]
    bound += [(node(0, b), node(0, b + 1), cell(0, b)) for b in range(j - 1, -1, -1)]
    return nodes, cells, bound


@pytest.mark.parametrize(("i", "j"), [(4, 3), (2, 1), (20, 7)])
def test_airfoil_order(i, j):
    mesh = airfoil_mesh(i, j)
    nodes, cells, bound = slow_airfoil_edges(i, j)
    assert mesh.edge_nodes.tolist() == [list(pair) for pair in nodes]
    assert mesh.edge_cells.tolist() == [list(pair) for pair in cells]
    assert np.column_stack([mesh.boundary_nodes, mesh.boundary_cells]).tolist() == [list(row) for row in bound]
    assert mesh.boundary_codes.tolist() == [WALL] * i + [FAR_FIELD] * (3 * i + 2 * j)
    assert mesh.cell_nodes[0].tolist() == [0, 1, 3 * i + 2, 3 * i + 1]
    assert mesh.shape == (i, j)
    for array in (mesh.cell_nodes, mesh.edge_nodes, mesh.edge_cells, mesh.boundary_nodes, mesh.boundary_codes):
        assert array.dtype == np.int32


def test_airfoil_published_counts_and_coordinates():
    mesh = airfoil_mesh()
    assert len(mesh.points) == 721801
    assert len(mesh.cell_nodes) == 720000
    assert len(mesh.edge_nodes) == 1438600
    assert len(mesh.boundary_codes) == 2800
    assert mesh.points[0].tolist() == [9.0, 0.0]
    assert mesh.points[1200].tolist() == [9.0, 0.0]
    assert mesh.points[400].tolist() == [1.0, 0.0]
    assert mesh.points[-1].tolist() == [0.0, 18.0]
    assert mesh.points[600].tolist() == [pytest.approx(-0.0077, abs=1e-2), 0.0]
    grid = mesh.points.reshape(601, 1201, 2)
    np.testing.assert_allclose(grid[:, :, 0], grid[:, ::-1, 0], atol=1.01e-6)
    np.testing.assert_allclose(grid[:, :, 1], -grid[:, ::-1, 1], atol=1.01e-6)
    some = mesh.points[::997].reshape(-1)
    assert all(float(f"{value:.6f}") == value for value in some.tolist())


def test_airfoil_as_a_mesh():
    arrays = airfoil_mesh(20, 15)
    mesh = arrays.to_mesh_data()
    report = check(mesh, ("wall", "far_field"))
    assert report.n_interior_faces == len(arrays.edge_nodes)
    assert report.n_boundary_faces == len(arrays.boundary_codes)
    assert report.patches == {"wall": 20, "far_field": 90}
    assert mesh.n_points == len(arrays.points) - 21


def test_airfoil_errors():
    with pytest.raises(MeshError, match="i >= 2"):
        airfoil_mesh(1, 1)


def test_six_decimals_is_the_parse_of_the_text():
    rng = np.random.default_rng(1)
    values = rng.uniform(-18, 18, 20000)
    values = np.concatenate(
        [values, (rng.integers(-9000000, 9000000, 20000) + 0.5) / 1e6, [0.0, -1e-9, 0.5e-6, 2.5e-6]]
    )
    expected = np.array([float(f"{value:.6f}") for value in values])
    np.testing.assert_array_equal(six_decimals(values), expected)
    nudged = np.nextafter(values, 100.0)
    np.testing.assert_array_equal(six_decimals(nudged), [float(f"{value:.6f}") for value in nudged])
