"""Clustering at walls: heights and growth along lines, conforming meshes, patches, and what cannot be clustered."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import box2d, box3d, check
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.generate.cluster import Clustering, cluster, growth_factors
from fluxloom.mesh.generate.extrude import extrude
from fluxloom.mesh.generate.layers import layers_above
from fluxloom.mesh.generate.naca import naca_mesh
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.geometry.metrics import cell_geometry


def wing() -> MeshData:
    """Return rings round an airfoil with a span, in which the layers are the rings."""
    return extrude(naca_mesh("0012", 24, 10, 5.0, 1.0), np.linspace(0.0, 1.0, 4))


def sheared(mesh: MeshData) -> MeshData:
    shear = np.array([[1.3, 0.4, -0.2], [0.1, 0.8, 0.3], [-0.3, 0.2, 1.1]])[: mesh.dimension, : mesh.dimension]
    return mesh.with_points(mesh.points @ shear.T)


def lines_of(mesh: MeshData, patch: str) -> np.ndarray:
    """Return the heights along the lines above a patch, ``(lines, points)``."""
    lines = mesh.points[layers_above(mesh, [patch]).lines]
    steps = np.linalg.norm(np.diff(lines, axis=1), axis=2)
    return np.concatenate([np.zeros((len(lines), 1)), np.cumsum(steps, axis=1)], axis=1)


def test_growth_factors() -> None:
    first, length = np.array([1e-6, 0.01, 0.1, 0.5]), np.array([1.0, 1.0, 1.0, 1.0])
    found = growth_factors(first, length, 10)
    sums = (first[:, None] * found[:, None] ** np.arange(10)).sum(axis=1)
    np.testing.assert_allclose(sums, length, rtol=1e-12)
    assert found[2] == pytest.approx(1.0)
    assert found[3] < 1.0
    with pytest.raises(MeshError, match="10 intervals do not lead"):
        growth_factors(np.array([2.0]), np.array([1.0]), 10)


def test_layers_of_boxes() -> None:
    box = box3d(3, 4, 5)
    layers = layers_above(box, ["zmin"])
    assert layers.lines.shape == (4 * 5, 6)
    heights = box.points[layers.lines][..., 2]
    np.testing.assert_allclose(heights, np.broadcast_to(np.arange(6) / 5, heights.shape), atol=1e-15)
    cells = cell_geometry(box)[1][:, 2]
    np.testing.assert_array_equal(layers.members["hexahedron"], np.floor(5 * cells))
    assert layers.first(2).count == 2
    assert layers_above(box3d(2, 2, 3, kind="prism"), ["zmax"]).count == 3
    assert layers_above(box2d(4, 3), ["xmin"]).count == 4


@pytest.mark.parametrize("kind", ["quad", "hexahedron", "prism"])
def test_box(kind: str) -> None:
    """Straight lines: heights are exact, volumes are kept, and cells and patches fit."""
    box = box2d(3, 6, kind=kind) if kind == "quad" else box3d(3, 2, 6, kind=kind)
    wall = "ymin" if kind == "quad" else "zmin"
    found = cluster(sheared(box), [wall], Clustering(1e-3, 1.3, layers=0))
    report = check(found)
    assert report.volume_total == pytest.approx(check(sheared(box)).volume_total, rel=1e-12)
    assert report.volume_min > 0.0
    assert report.closure_max < 1e-12
    heights = np.diff(lines_of(found, wall), axis=1)
    np.testing.assert_allclose(heights[:, 0], 1e-3, rtol=1e-9)
    growth = heights[:, 1:] / heights[:, :-1]
    np.testing.assert_allclose(growth, growth[:, :1].repeat(growth.shape[1], axis=1), rtol=1e-9)
    assert growth.min() > 1.2
    assert growth.max() < 1.3
    assert (connectivity(found).boundary_patch >= 0).all()
    count = heights.shape[1]
    for name, faces in box.patches.items():
        side = name[0] != wall[0]
        assert len(found.patches[name]) == len(faces) * (count if side else 6) // 6


def test_round_an_airfoil_with_a_span() -> None:
    """Curved lines: the outer layers stay where they were, and the first height is met."""
    mesh = wing()
    found = cluster(mesh, ["airfoil"], Clustering(1e-4, 1.5, layers=4))
    report = check(found)
    assert report.volume_min > 0.0
    assert report.closure_max < 1e-12
    old, new = lines_of(mesh, "airfoil"), lines_of(found, "airfoil")
    np.testing.assert_allclose(np.diff(new, axis=1)[:, 0], 1e-4, rtol=0.05)
    np.testing.assert_allclose(np.diff(new, axis=1)[:, -6:], np.diff(old, axis=1)[:, -6:])
    assert report.volume_total == pytest.approx(check(mesh).volume_total, rel=1e-3)
    met = cluster(mesh, ["airfoil"], Clustering(1e-4, 1.3))
    assert found.n_cells < met.n_cells < cluster(mesh, ["airfoil"], Clustering(1e-5, 1.3)).n_cells


def test_lines_beyond_the_wall() -> None:
    """A wall that is a part of a plane: first cells grow with the distance along the rest of it, up to equal ones."""
    box = box2d(8, 6, (4.0, 1.0))
    faces = box.patches["ymin"].blocks["line"]
    near = box.points[faces][:, :, 0].max(axis=1) < 1.01
    parts = {"ymin": PatchFaces({"line": faces[~near]}), "wall": PatchFaces({"line": faces[near]})}
    split = MeshData(box.points, box.cells, {**box.patches, **parts})
    found = cluster(split, ["wall"], Clustering(1e-3, 1.4, layers=0, slope=0.005, spread=0.01))
    lines = layers_above(found, ["wall"]).lines
    start, heights = found.points[lines[:, 0], 0], np.diff(lines_of(found, "wall"), axis=1)[:, 0]
    away = np.maximum(start - 1.0, 0.0)
    wanted = np.minimum(1e-3 + 0.005 * away + 0.01 * away**2, 1.0 / (lines.shape[1] - 1))
    np.testing.assert_allclose(heights, wanted, rtol=1e-9)
    assert check(found).volume_total == pytest.approx(4.0)


def test_what_cannot_be_clustered() -> None:
    with pytest.raises(MeshError, match="no quads, prisms or hexahedra"):
        layers_above(box3d(2, 2, 2, kind="tetra"), ["zmin"])
    with pytest.raises(MeshError, match="no patch 'wing'"):
        layers_above(box3d(2, 2, 2), ["wing"])
    with pytest.raises(MeshError, match="2 ones that nothing joins"):
        layers_above(box3d(2, 2, 2), ["zmin", "xmin"])
    with pytest.raises(MeshError, match="none of their faces"):
        layers_above(box3d(2, 2, 2, kind="prism"), ["xmin"])
    with pytest.raises(MeshError, match="first: a number above 0"):
        Clustering(0.0)
    with pytest.raises(MeshError, match="growth: a number above 1"):
        Clustering(1e-3, 1.0)
    with pytest.raises(MeshError, match="1 layers are only"):
        cluster(box2d(3, 6), ["ymin"], Clustering(0.2, 1.2, layers=1))
