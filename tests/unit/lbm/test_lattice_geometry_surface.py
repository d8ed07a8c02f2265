"""Surfaces of triangles: files, what is inside, and where links meet them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import DeviceUnavailable, SolverError
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import labels_of
from fluxloom.lbm.cells.links import find_links
from fluxloom.lbm.lattices import D3Q27
from fluxloom.lbm.shapes.files import read_triangles
from fluxloom.lbm.shapes.sets import Difference
from fluxloom.lbm.shapes.shapes import SMALLEST, Block, Sphere
from fluxloom.lbm.shapes.surface import Surface

Array = np.ndarray

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("manifold3d")


def cube() -> Array:
    """Return twelve triangles of the unit cube."""
    square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    faces = [np.insert(square, axis, end, axis=1) for axis in range(3) for end in (0, 1)]
    return np.array([face[three] for face in faces for three in ([0, 1, 2], [0, 2, 3])], dtype=float)


def ball(cuts: int) -> Array:
    """Return an octahedron whose triangles are cut into four, with corners on the unit sphere."""
    signs = np.array([(a, b, c) for a in (1, -1) for b in (1, -1) for c in (1, -1)], dtype=float)
    corners = np.array([np.diag(sign)[:: int(sign.prod())] for sign in signs])
    for _ in range(cuts):
        a, b, c = np.moveaxis(corners, 1, 0)
        d, e, f = (middle / np.linalg.norm(middle, axis=1, keepdims=True) for middle in (a + b, b + c, c + a))
        corners = np.concatenate([np.stack(q, axis=1) for q in ((a, d, f), (d, b, e), (f, e, c), (d, e, f))])
    return corners


def write_binary(path: Path, corners: Array) -> None:
    records = np.zeros(len(corners), dtype=[("n", "<f4", 3), ("v", "<f4", (3, 3)), ("a", "<u2")])
    records["v"] = corners[:, :, ::-1]  # the file has x first
    path.write_bytes(b"solid of a liar".ljust(80) + np.uint32(len(corners)).tobytes() + records.tobytes())


def write_text(path: Path, corners: Array) -> None:
    lines = ["solid thing"]
    for three in corners:
        lines += ["facet normal 0 0 0", " outer loop"]
        lines += [f"  vertex {x:.9e} {y:.9e} {z:.9e}" for z, y, x in three]
        lines += [" endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid thing", ""]))


@pytest.mark.parametrize("write", [write_binary, write_text])
def test_files(tmp_path: Path, write) -> None:
    path = tmp_path / "box.stl"
    corners = cube() * (1.0, 2.0, 3.0)
    write(path, corners)
    surface = Surface.from_stl(path, scale=2.0, shift=(1.0, 2.0, 3.0))
    assert len(surface.vertices) == 8
    assert len(surface.triangles) == 12
    low, high = surface.bounds()
    np.testing.assert_allclose(low, (1.0, 2.0, 3.0))
    np.testing.assert_allclose(high, (3.0, 6.0, 9.0))


@pytest.mark.parametrize("suffix", ["obj", "ply", "off", "glb", "3mf", "STL"])
def test_other_formats(tmp_path: Path, suffix: str) -> None:
    """A file of two bodies, x first."""
    boxes = [trimesh.creation.box(bounds=((k, 0, 0), (k + 0.5, 2, 3))) for k in (0, 1)]
    path = tmp_path / f"two.{suffix}"
    (trimesh.util.concatenate(boxes) if suffix in ("off", "STL") else trimesh.Scene(boxes)).export(str(path))
    surface = Surface.from_file(path, shift=(10.0, 20.0, 30.0))
    np.testing.assert_allclose(surface.bounds(), [(10.0, 20.0, 30.0), (13.0, 22.0, 31.5)], atol=1e-6)
    assert surface.volume == pytest.approx(6.0, rel=1e-6)


def test_files_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read, and what is not installed, is said in one message."""
    for name, data in {"a.stll": b"", "a.obj": b"hello", "a.ply": b"ply"}.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(SolverError, match=r"a\.stll: surfaces are files of .*did you mean 'stl'"):
        read_triangles(tmp_path / "a.stll")
    with pytest.raises(SolverError, match=r"a\.obj: the file has no triangles"):
        read_triangles(tmp_path / "a.obj")
    with pytest.raises(SolverError, match=r"a\.ply: trimesh cannot read"):
        read_triangles(tmp_path / "a.ply")
    write_text(tmp_path / "nan.stl", cube() * (1.0, np.nan, 1.0))
    with pytest.raises(SolverError, match=r"nan\.stl: a corner is not finite"):
        read_triangles(tmp_path / "nan.stl")
    monkeypatch.setitem(sys.modules, "manifold3d", None)
    with pytest.raises(DeviceUnavailable, match=r"needs manifold3d, .*: pip install 'fluxloom\[surface\]'"):
        Surface.from_triangles(cube())
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(DeviceUnavailable, match=r"needs trimesh, .*: pip install 'fluxloom\[surface\]'"):
        Surface.from_file(tmp_path / "a.obj")


def test_broken_files(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.stl", tmp_path / "broken.stl"
    write_binary(whole, cube())
    path.write_bytes(whole.read_bytes()[:-7])
    with pytest.raises(SolverError, match="cut off"):
        read_triangles(path)
    write_text(whole, cube())
    path.write_text(whole.read_text()[:-40])
    with pytest.raises(SolverError, match="cut off"):
        read_triangles(path)
    path.write_text(whole.read_text().replace("vertex 0", "vertex zero", 1))
    with pytest.raises(SolverError, match=r"broken\.stl:\d+: the coordinate 'zero"):
        read_triangles(path)
    write_text(path, cube()[:0])
    with pytest.raises(SolverError, match="no triangles"):
        read_triangles(path)
    with pytest.raises(SolverError, match="cannot be read"):
        read_triangles(tmp_path / "none.stl")
    write_binary(path, cube()[1:])
    with pytest.raises(SolverError, match=r"broken\.stl: the surface is not closed: 3 of 18 edges"):
        Surface.from_stl(path)


def test_welding() -> None:
    """Corners apart by rounding leave holes until they are joined."""
    corners = cube() + np.random.default_rng(0).uniform(-1e-7, 1e-7, (12, 3, 3))
    with pytest.raises(SolverError, match="weld="):
        Surface.from_triangles(corners)
    assert len(Surface.from_triangles(corners, weld=1e-3).vertices) == 8


@pytest.mark.parametrize(("low", "size"), [(2.5, 3.0), (2.25, 3.5), (1.75, 4.3)])
def test_a_cube_is_a_block(low: float, size: float) -> None:
    """Large triangles, whose common edge goes through the centres of cells."""
    box = Box((9, 8, 10), (True, False, True))
    shape = Surface.from_triangles(cube()).moved(scale=size, shift=(low,) * 3)
    same = Block((low,) * 3, (low + size,) * 3)
    labels = labels_of(box, [shape])
    np.testing.assert_array_equal(labels, labels_of(box, [same]))
    sides = ["ymin", "ymax"]
    got, want = (find_links(box, D3Q27, labels, [one], sides)[1] for one in (shape, same))
    assert len(got) > 100
    np.testing.assert_array_equal(got.cells, want.cells)
    np.testing.assert_allclose(got.fractions, want.fractions, atol=1e-12)


def test_a_ball_of_small_triangles() -> None:
    """Between the spheres inside and around it, to the fraction of every link."""
    center, radius = (9.5, 9.3, 9.1), 7.3
    shape = Surface.from_triangles(ball(5), weld=1e-9).moved(scale=radius, shift=center)
    box = Box((19, 19, 20), (False,) * 3)
    labels = labels_of(box, [shape])
    inner, outer = Sphere(center, radius * (1 - 1e-3)), Sphere(center, radius)
    solid = labels == 1
    assert (solid >= (labels_of(box, [inner]) == 1)).all()
    assert (solid <= (labels_of(box, [outer]) == 1)).all()
    links = find_links(box, D3Q27, labels, [shape], ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"])[1]
    steps = links.fractions[:, None] * np.array(D3Q27.velocities)[links.directions]
    at = np.stack(box.coordinates(links.cells), -1) - steps
    away = np.linalg.norm(at - center, axis=1)
    assert len(links) > 3000
    assert radius * (1 - 1e-3) < away.min() <= away.max() <= radius * (1 + 1e-12)


def test_lines_through_corners_and_edges() -> None:
    """A ball whose corners and edges are on lines of cells: rows are as many cells long as the sphere's."""
    shape = Surface.from_triangles(ball(0)).moved(scale=6.25, shift=(8.0, 8.0, 8.0))
    labels = labels_of(Box((17, 17, 17), (True,) * 3), [shape])
    z, y, x = np.abs(np.mgrid[:17, :17, :17] - 8)
    np.testing.assert_array_equal(labels == 1, z + y + x <= 6.25)


def test_single_points_and_rows_are_the_same() -> None:
    shape = Surface.from_triangles(ball(2), weld=1e-9).moved(scale=4.0, shift=(0.1, 0.2, 0.3)).turned((1, 2, 3), 33.0)
    points = np.stack(np.meshgrid(*[np.arange(-5.0, 6.0)] * 3, indexing="ij"), -1).reshape(-1, 3)
    found = shape.inside(points)
    order = np.random.default_rng(1).permutation(len(points))
    np.testing.assert_array_equal(shape.inside(points[order]), found[order])
    assert 0.8 * 4 / 3 * np.pi * 64 < found.sum() < 4 / 3 * np.pi * 64


def test_in_a_difference() -> None:
    """All hits of a line count: the hole of a ball, seen from within."""
    ring = Difference(Surface.from_triangles(ball(3), weld=1e-9).moved(scale=4.0), Sphere((0.0, 0.0, 0.0), 2.0))
    start, step = np.array([[0.2, 0.1, 0.0], [0.1, 0.2, 5.0]]), np.array([[0.0, 0.0, 3.0], [0.0, 0.0, -9.0]])
    q = ring.fraction(start, step)
    assert q[0] == pytest.approx(np.sqrt(4 - 0.05) / 3, abs=1e-12)
    assert q[1] == pytest.approx((5 - np.sqrt(16 - 0.05)) / 9, abs=0.01)


def test_turning() -> None:
    """By the rule of the right hand: a quarter about z takes x to y."""
    corners = Surface.from_triangles(cube()).moved(shift=(0.0, 0.0, 2.0)).turned((1.0, 0.0, 0.0), 90.0)
    low, high = corners.bounds()
    np.testing.assert_allclose(low, (0.0, 2.0, -1.0), atol=1e-14)
    np.testing.assert_allclose(high, (1.0, 3.0, 0.0), atol=1e-14)
    with pytest.raises(SolverError):
        corners.turned((0.0, 0.0, 0.0), 1.0)


# ------------------------------------------------------------------------------------------- degenerate places


def hull(random: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return the hull of random whole points, and of all whole points the side: -1 inside, 0 on it, 1 outside."""
    spatial = pytest.importorskip("scipy.spatial")
    points = random.integers(1, 12, (random.integers(5, 20), 3))
    triangles = spatial.ConvexHull(points).simplices
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    normal = np.cross(b - a, c - a)
    normal *= -np.sign(np.einsum("ta,ta->t", points.mean(axis=0) - a, normal))[:, None].astype(np.int64)
    places = np.stack(np.indices((13, 13, 13)), axis=-1).reshape(-1, 1, 3)
    side = np.sign(np.einsum("nta,ta->nt", places - a, normal).max(axis=1))
    return points[triangles].astype(np.float64), side, places[:, 0].astype(np.float64)


def test_corners_and_edges_on_cells() -> None:
    """Hulls of whole points, whose corners, edges and faces lines meet: whole arithmetic says what is inside."""
    random = np.random.default_rng(7)
    for _ in range(12):
        corners, side, places = hull(random)
        found = Surface.from_triangles(corners).inside(places)
        assert found[side < 0].all()
        assert not found[side > 0].any()


def test_fractions_at_corners_and_edges_on_cells() -> None:
    """Links from outside hit the surface, those that start on it at once."""
    random = np.random.default_rng(8)
    corners, side, places = hull(random)
    surface = Surface.from_triangles(corners)
    side = side.reshape(13, 13, 13)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals *= -np.sign(((corners.mean(axis=(0, 1)) - corners[:, 0]) * normals).sum(axis=1))[:, None]
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)

    def distance(points: Array) -> Array:
        return ((points[:, None] - corners[:, 0]) * normals).sum(axis=2).max(axis=1)

    for way in np.array(D3Q27.velocities)[1:]:
        start = places[(places + way >= 0).all(axis=1) & (places + way < 13).all(axis=1)]
        end = start + way
        at, to = (side[tuple(p.astype(int).T)] for p in (start, end))
        step = np.broadcast_to(way.astype(float), start.shape)
        some = (at > 0) & (to <= 0)
        q = surface.fraction(start[some], step[some])
        assert np.abs(distance(start[some] + q[:, None] * step[some])).max(initial=0.0) < 1e-12
        some = (at == 0) & (to < 0)
        np.testing.assert_allclose(surface.fraction(start[some], step[some]), SMALLEST, atol=1e-12)


def shells(*parts: tuple[Array, float, float, int]) -> Surface:
    """Return cubes: triangles, side, least coordinate, and the sense of the triangles."""
    return Surface.from_triangles(np.concatenate([(size * c + low)[:, ::way] for c, size, low, way in parts]))


def test_shells() -> None:
    """Shells that overlap are one body, shells that turn the other way are holes; all may turn the other way."""
    outward = Surface.from_triangles(cube()).turned((1, 0, 0), 0.0)  # as its triangles turn the same way now
    box = outward.vertices[outward.triangles]
    points = np.stack([np.arange(-0.5, 10.0)] * 3, axis=1)
    for way in (1, -1):
        overlap = shells((box, 4.0, 0.0, way), (box, 4.0, 2.0, way), (box, 1.0, 8.0, way))
        assert np.flatnonzero(overlap.inside(points)).tolist() == [1, 2, 3, 4, 5, 6, 9]
        hollow = shells((box, 8.0, 0.0, way), (box, 4.0, 2.0, -way), (box, 1.0, 3.0, way))
        assert np.flatnonzero(hollow.inside(points)).tolist() == [1, 2, 4, 7, 8]
        assert hollow.volume == pytest.approx(512 - 64 + 1)
    q = overlap.fraction(np.array([[1.0, 1.0, -2.0]]), np.array([[0.0, 0.0, 4.0]]))
    assert q == pytest.approx(0.5, abs=1e-15)


def test_triangles_that_turn_both_ways() -> None:
    """Those of the cube do; each shell is turned outward, whatever it was."""
    corners = cube()
    two = np.concatenate([corners[:, ::-1], corners + 3.0])
    surface = Surface.from_triangles(two)
    assert surface.volume == pytest.approx(2.0)
    a, b, c = np.moveaxis(surface.vertices[surface.triangles][..., ::-1], 1, 0)
    assert np.einsum("ta,ta->", a, np.cross(b, c)) / 6.0 == pytest.approx(2.0)


def test_one_sided_surfaces_are_refused() -> None:
    """The projective plane of six vertices is closed, and has no inside."""
    faces = ["123", "134", "145", "156", "162", "235", "346", "452", "563", "624"]
    triangles = np.array([[int(digit) - 1 for digit in face] for face in faces])
    with pytest.raises(SolverError, match="cannot be turned outward"):
        Surface(np.random.default_rng(0).normal(size=(6, 3)), triangles)


def test_surfaces_refused() -> None:
    """Wrong arrays are refused."""
    good = Surface.from_triangles(cube())
    for vertices, triangles, what in (
        (good.vertices[:, :2], good.triangles, "vertices"),
        (good.vertices[:5], good.triangles, "numbers of its 5 vertices"),
        (good.vertices * np.nan, good.triangles, "not finite"),
        (good.vertices, good.triangles[:0], "not none"),
    ):
        with pytest.raises(SolverError, match=what):
            Surface(vertices, triangles)
