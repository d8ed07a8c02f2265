"""The distance to the nearest wall, against all faces one by one and against shapes whose distance is known."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import MeshData, PatchFaces, Ragged, box2d, box3d
from fluxloom.mesh.geometry.box_tree import BoxTree
from fluxloom.mesh.geometry.simplices import Simplices, corners_of
from fluxloom.mesh.ranks.wall_distance import wall_distance, wall_distance_of, wall_faces

Wide = np.longdouble


# ------------------------------------------------------------------------------------------ by another way
def to_segment(point: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    along = b - a
    square = along @ along
    share = np.clip((point - a) @ along / square, 0, 1) if square > 0 else Wide(0)
    away = point - (a + share * along)
    return float(np.sqrt(away @ away))


def to_triangle(point: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Barycentric coordinates in extended precision: the plane where they are positive, else the nearest side."""
    normal = np.cross(b - a, c - a)
    square = normal @ normal
    if square > 0:
        away = point - a
        v, w = np.cross(away, c - a) @ normal / square, np.cross(b - a, away) @ normal / square
        if v >= 0 and w >= 0 and v + w <= 1:
            return float(abs(away @ normal) / np.sqrt(square))
    return min(to_segment(point, *side) for side in ((a, b), (b, c), (c, a)))


def brute(points: np.ndarray, faces: Ragged, nodes: np.ndarray) -> np.ndarray:
    wide = nodes.astype(Wide)
    shapes: list[tuple[np.ndarray, ...]] = []
    for row in faces:
        corners = wide[row]
        if len(row) < 4:
            shapes.append(tuple(corners))
        else:
            shapes += [(corners.mean(axis=0), corners[k], corners[(k + 1) % 4]) for k in range(4)]
    measure = to_segment if nodes.shape[1] == 2 else to_triangle
    return np.array([min(measure(p, *shape) for shape in shapes) for p in points.astype(Wide)])


def scattered(seed: int, count: int, width: int, dimension: int) -> tuple[Ragged, np.ndarray]:
    """Return faces anywhere, from a thousandth of the domain to all of it."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-3, 0, (count, 1, 1))
    nodes = rng.uniform(size=(count, 1, dimension)) + size * rng.normal(size=(count, width, dimension))
    return Ragged.from_table(np.arange(count * width).reshape(count, width)), nodes.reshape(-1, dimension)


def turned(nodes: np.ndarray, seed: int = 3) -> np.ndarray:
    """Return the rotation of three coordinates by a matrix that has no zeros."""
    return nodes @ np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]


def sheet(s: np.ndarray, t: np.ndarray) -> tuple[Ragged, np.ndarray]:
    """Return the quads of a flat plate with nodes at ``(s, t, 0)``."""
    nodes = np.stack([*np.meshgrid(s, t, indexing="ij"), np.zeros((s.size, t.size))], axis=-1).reshape(-1, 3)
    number = np.arange(len(nodes)).reshape(s.size, t.size)
    quads = np.stack([number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]], axis=-1)
    return Ragged.from_table(quads.reshape(-1, 4)), nodes


# ------------------------------------------------------------------------------------------ against all faces
@pytest.mark.parametrize(("width", "dimension"), [(2, 2), (3, 3), (4, 3)])
@pytest.mark.parametrize("count", [1, 2, 37])
def test_of_faces_of_all_sizes_the_nearest_is_found(width: int, dimension: int, count: int) -> None:
    faces, nodes = scattered(count, count, width, dimension)
    points = np.random.default_rng(0).uniform(-0.5, 1.5, (60, dimension))
    points[:10] *= 30.0
    np.testing.assert_allclose(wall_distance(points, faces, nodes), brute(points, faces, nodes), rtol=1e-12)


def test_triangles_beside_quads() -> None:
    tables = [scattered(seed, 9, width, 3) for seed, width in ((1, 3), (2, 4))]
    table = np.full((18, 4), -1, dtype=np.int32)
    table[:9, :3], table[9:] = tables[0][0].table, tables[1][0].table + 27
    faces, nodes = Ragged.from_padded(table[::-1]), np.concatenate([found for _, found in tables])
    points = np.random.default_rng(4).uniform(size=(40, 3))
    np.testing.assert_allclose(wall_distance(points, faces, nodes), brute(points, faces, nodes), rtol=1e-12)


def test_what_the_tree_leaves_out_is_not_the_nearest_to_the_last_bit() -> None:
    faces, nodes = scattered(7, 300, 4, 3)
    simplices = Simplices.of(corners_of(faces, nodes))
    points = np.random.default_rng(7).uniform(size=(3, 500))
    each = np.stack([simplices.squared_distance(points, np.full(500, k)) for k in range(len(simplices))])
    np.testing.assert_array_equal(BoxTree.of(simplices).squared_distance(points), each.min(axis=0))


def test_results_do_not_depend_on_lists_or_batches() -> None:
    faces, nodes = scattered(5, 200, 4, 3)
    rng = np.random.default_rng(5)
    points = rng.uniform(size=(40_000, 3))
    found = wall_distance(points, faces, nodes)
    order = rng.permutation(200)
    shifts, ways = rng.integers(4, size=200), rng.choice([-1, 1], 200)
    table = np.array([np.roll(faces[k], shifts[k])[:: ways[k]] for k in order])
    new = rng.permutation(len(nodes))
    moved = np.empty_like(nodes)
    moved[new] = nodes
    np.testing.assert_array_equal(wall_distance(points, Ragged.from_table(new[table]), moved), found)
    some = rng.permutation(len(points))[:777]
    np.testing.assert_array_equal(wall_distance(points[some], faces, nodes), found[some])


# ------------------------------------------------------------------------------------------ shapes
@pytest.mark.parametrize("height", [1e-6, 1e-3, 1.0, 50.0])
def test_plate_of_thin_quads_has_its_height_as_the_distance(height: float) -> None:
    """Strips from 1e-5 to 0.3 wide and one long: aspect ratios up to 1e5."""
    faces, nodes = sheet(np.geomspace(1.0, 2.0e5, 60) * 1e-5, np.array([0.0, 1.0]))
    rng = np.random.default_rng(1)
    points = np.stack([10.0 ** rng.uniform(-5, 0.3, 400), rng.uniform(size=400), np.full(400, height)], axis=1)
    np.testing.assert_allclose(wall_distance(points, faces, nodes), height, rtol=1e-14)
    np.testing.assert_allclose(wall_distance(turned(points), faces, turned(nodes)), height, rtol=1e-9)


def test_beside_a_plate_the_distance_is_that_to_its_edge() -> None:
    faces, nodes = sheet(np.linspace(0.0, 1.0, 8), np.linspace(0.0, 2.0, 5))
    points = np.array([[-3.0, 1.0, 4.0], [4.0, 6.0, 0.0], [0.5, -1e-6, 0.0], [0.3, 0.7, 0.0]])
    np.testing.assert_allclose(wall_distance(points, faces, nodes), [5.0, 5.0, 1e-6, 0.0], rtol=1e-11)


def test_thin_triangle_off_its_plane() -> None:
    """A cap whose height is 1e-5 of its longest side, anywhere in space."""
    nodes = turned(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.4, 1e-5, 0.0]])) + 0.1
    rng = np.random.default_rng(2)
    inside = rng.dirichlet([1.0, 1.0, 1.0], 50) @ nodes
    normal = turned(np.array([[0.0, 0.0, 1.0]]))[0]
    faces = Ragged.from_table(np.array([[0, 1, 2]]))
    np.testing.assert_allclose(wall_distance(inside + 1e-6 * normal, faces, nodes), 1e-6, rtol=1e-9)


@pytest.mark.parametrize("n", [16, 64])
def test_sphere_of_facets(n: int) -> None:
    """The surface is below the sphere by at most the sagitta of a facet, half the square of its half diagonal."""
    polar, around = np.meshgrid(np.linspace(0, np.pi, n + 1), np.linspace(0, 2 * np.pi, 2 * n + 1), indexing="ij")
    nodes = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=-1)
    faces, _ = sheet(np.arange(n + 1.0), np.arange(2 * n + 1.0))
    rng = np.random.default_rng(n)
    way = rng.normal(size=(2000, 3))
    radius = 10.0 ** rng.uniform(-1, 2, 2000)
    points = way / np.linalg.norm(way, axis=1)[:, None] * radius[:, None]
    error = wall_distance(points, faces, nodes.reshape(-1, 3)) - np.abs(radius - 1.0)
    sagitta = (np.pi / n) ** 2 / 4
    assert error[radius > 1.0].min() > -1e-13
    assert np.abs(error).max() < 1.001 * sagitta
    assert error[radius > 1.0].max() > 0.5 * sagitta


def test_faces_without_area_are_segments_or_points() -> None:
    nodes = np.array([[0.0, 0, 0], [1.0, 1.0, 1.0], [0.25, 0.25, 0.25], [3.0, 0, 0]])
    faces = Ragged.from_counts(np.array([3, 3, 4]), np.array([0, 1, 2, 3, 3, 3, 0, 2, 1, 2]))
    points = np.random.default_rng(8).uniform(-1, 4, (80, 3))
    expected = [min(to_segment(p, *nodes[:2].astype(Wide)), np.linalg.norm(p - nodes[3])) for p in points.astype(Wide)]
    np.testing.assert_allclose(wall_distance(points, faces, nodes), np.array(expected, dtype=float), rtol=1e-12)
    line = Ragged.from_table(np.array([[0, 0]]))
    np.testing.assert_allclose(
        wall_distance(points[:, :2], line, nodes[:1, :2]), np.hypot(*points[:, :2].T), rtol=1e-14
    )


# ------------------------------------------------------------------------------------------ meshes
def test_channel_between_two_plates() -> None:
    mesh = box2d(7, 40, axes=(None, lambda s: s**3), perturb=0.2)
    y = np.concatenate([mesh.points[block].mean(axis=1)[:, 1] for block in mesh.cells.values()])
    found = wall_distance_of(mesh, ["ymin", "ymax"])
    area = wall_distance_of(mesh, ["ymin"])
    assert np.abs(area - y).max() < 0.02  # centroids are not the mean of the corners
    np.testing.assert_allclose(found, np.minimum(area, 1.0 - area), rtol=1e-9)


@pytest.mark.parametrize("kind", ["hexahedron", "tetra", "prism", "pyramid"])
def test_cells_in_a_box_are_as_far_as_their_centroids_are_high(kind: str) -> None:
    mesh = box3d(3, 4, 5, kind=kind)
    volumes = mesh.points[next(iter(mesh.cells.values()))]
    found = wall_distance_of(mesh, ["zmin"])
    if kind != "pyramid":  # of the others the centroid is the mean of the corners
        np.testing.assert_allclose(found, volumes.mean(axis=1)[:, 2], rtol=1e-12)
    every = wall_distance_of(mesh, list(mesh.patches))
    assert every.max() <= 0.5
    assert (every <= found).all()


def test_walls_hold_their_own_nodes() -> None:
    mesh = box3d(3, 4, 5)
    faces, nodes = wall_faces(mesh, ["xmax", "zmin"])
    assert len(faces) == 4 * 5 + 3 * 4
    assert len(nodes) == 5 * 6 + 4 * 5 - 5
    assert ((nodes[:, 0] == 1.0) | (nodes[:, 2] == 0.0)).all()


# ------------------------------------------------------------------------------------------ errors
def test_patches_that_cannot_be_walls() -> None:
    mesh = box2d(3, 3)
    with pytest.raises(MeshError, match=r"no patch 'ymim'.*did you mean.*ymin.*patches: xmin, xmax, ymin, ymax"):
        wall_distance_of(mesh, ["ymim"])
    for patches in ([], "ymin"):
        with pytest.raises(MeshError, match="a list of at least one patch is wanted"):
            wall_distance_of(mesh, patches)
    empty = MeshData(mesh.points, mesh.cells, {"wall": PatchFaces({})})
    with pytest.raises(MeshError, match="no faces in wall: name the patches of the walls"):
        wall_distance_of(empty, ["wall"])


def test_what_does_not_fit_is_refused() -> None:
    faces, nodes = scattered(1, 3, 3, 3)
    points = np.zeros((2, 3))
    with pytest.raises(MeshError, match=r"points \(2, 2\) and nodes \(9, 3\)"):
        wall_distance(points[:, :2], faces, nodes)
    with pytest.raises(MeshError, match=r"faces with \[3\] nodes in 2 dimensions"):
        wall_distance(points[:, :2], faces, nodes[:, :2])
    with pytest.raises(MeshError, match="faces have node 8 of 8"):
        wall_distance(points, faces, nodes[:-1])
    with pytest.raises(MeshError, match="there are no faces"):
        wall_distance(points, faces.take(np.arange(0)), nodes)
    with pytest.raises(MeshError, match="not finite"):
        wall_distance(points * np.nan, faces, nodes)


def test_no_points() -> None:
    faces, nodes = scattered(1, 3, 3, 3)
    assert wall_distance(np.empty((0, 3)), faces, nodes).shape == (0,)
