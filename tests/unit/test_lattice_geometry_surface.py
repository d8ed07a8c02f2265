"""Surfaces of triangles: files, what is inside, and where links meet them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fluxloom.core.errors import SolverError
from fluxloom.lbm.box import Box
from fluxloom.lbm.labels import labels_of
from fluxloom.lbm.lattices import D3Q27
from fluxloom.lbm.links import find_links
from fluxloom.lbm.shapes import Block, Sphere
from fluxloom.lbm.shapes_sets import Difference
from fluxloom.lbm.shapes_stl import read_stl
from fluxloom.lbm.surface import Surface

Array = np.ndarray


def cube() -> Array:
    """Return twelve triangles of the unit cube."""
    square = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    faces = [np.insert(square, axis, end, axis=1) for axis in range(3) for end in (0, 1)]
    return np.array([face[three] for face in faces for three in ([0, 1, 2], [0, 2, 3])], dtype=float)


def ball(cuts: int) -> Array:
    """Return an octahedron whose triangles are cut into four, with corners on the unit sphere."""
    signs = np.array([(a, b, c) for a in (1, -1) for b in (1, -1) for c in (1, -1)], dtype=float)
    corners = np.array([np.diag(sign) for sign in signs])
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


def test_broken_files(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.stl", tmp_path / "broken.stl"
    write_binary(whole, cube())
    path.write_bytes(whole.read_bytes()[:-7])
    with pytest.raises(SolverError, match="cut off"):
        read_stl(path)
    write_text(whole, cube())
    path.write_text(whole.read_text()[:-40])
    with pytest.raises(SolverError, match="cut off"):
        read_stl(path)
    path.write_text(whole.read_text().replace("vertex 0", "vertex zero", 1))
    with pytest.raises(SolverError, match="three numbers"):
        read_stl(path)
    write_text(path, cube()[:0])
    with pytest.raises(SolverError, match="no triangles"):
        read_stl(path)
    with pytest.raises(SolverError, match="cannot be read"):
        read_stl(tmp_path / "none.stl")
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
