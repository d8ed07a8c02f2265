"""Channels round a cylinder, and plane meshes that are dragged along z."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh.generate.boxes import box2d, clustered
from fluxloom.mesh.generate.cylinder import CylinderChannel, cylinder_channel, cylinder_sizes
from fluxloom.mesh.generate.extrude import extrude
from fluxloom.mesh.quality.check import check


@pytest.mark.parametrize("n", [4, 8, 15])
def test_channel(n: int) -> None:
    """It is closed, has the area of the channel without the polygon, and lines cross at nearly right angles."""
    mesh = cylinder_channel(n)
    report = check(mesh)
    assert (mesh.n_cells, mesh.n_points) == cylinder_sizes(n)
    assert report.non_orthogonality_max < 12.0
    volumes = control_volumes(mesh)
    nodes = mesh.points[mesh.patches["cylinder"].nodes()]
    assert np.linalg.norm(nodes - 0.2, axis=1) == pytest.approx(0.05, rel=1e-12)
    angle = np.sort(np.arctan2(*(nodes - 0.2).T[::-1]))
    corner = np.diff(angle, append=angle[0] + 2.0 * np.pi)
    assert corner == pytest.approx(np.pi / (2 * n), rel=0.06)
    polygon = 0.5 * 0.05**2 * np.sin(corner).sum()
    assert volumes.volumes.sum() == pytest.approx(2.2 * 0.41 - polygon, rel=1e-12)
    assert len(volumes.patches["cylinder"]) == 4 * n


def test_finer_meshes_are_more_orthogonal() -> None:
    """But for the corners where five quads meet lines cross at right angles, to the second order."""

    def angles(n: int) -> tuple[float, float]:
        volumes = control_volumes(cylinder_channel(n))
        inner = slice(0, volumes.interior)
        way = volumes.centres[volumes.faces[inner, 1]] - volumes.centres[volumes.faces[inner, 0]]
        cosine = volumes.spacing[inner] / np.linalg.norm(way, axis=1)
        found = np.rad2deg(np.arccos(np.clip(cosine, -1, 1)))
        return float(found.mean()), float(np.quantile(found, 0.9))

    (coarse, coarse_most), (fine, fine_most) = angles(8), angles(16)
    assert fine < 0.5 * coarse < 0.4
    assert fine_most < 0.5 * coarse_most
    assert fine_most < 0.5


def test_other_channel() -> None:
    channel = CylinderChannel(3.0, 1.0, (0.7, 0.5), 0.1)
    mesh = cylinder_channel(8, channel)
    assert mesh.points.max(axis=0) == pytest.approx([3.0, 1.0])
    nodes = mesh.points[mesh.patches["cylinder"].nodes()]
    assert np.linalg.norm(nodes - [0.7, 0.5], axis=1) == pytest.approx(0.1)
    middle = mesh.points[np.abs(mesh.points[:, 1] - 0.5) < 1e-9]  # as below so above
    assert len(middle) > 20


def test_fewer_columns_behind() -> None:
    """Only the lattice behind the rings is another; round the cylinder nodes hardly move."""
    few, many = cylinder_channel(8, behind=1), cylinder_channel(8)
    assert many.n_cells - few.n_cells == 2 * 8 * (8 + 2 + 2)
    near = [mesh.points[np.linalg.norm(mesh.points - 0.2, axis=1) < 0.07] for mesh in (few, many)]
    assert near[0] == pytest.approx(near[1], abs=2e-3)


def test_wrong_channels() -> None:
    with pytest.raises(MeshError, match="at least 4 quads along a quarter of it, not 3"):
        cylinder_channel(3)
    with pytest.raises(MeshError, match="behind is at least 1, not 0"):
        cylinder_channel(8, behind=0)
    with pytest.raises(MeshError, match="needs three radii from its centre"):
        CylinderChannel(radius=0.1)


@pytest.mark.parametrize("kind", ["quad", "triangle"])
def test_extrusion(kind: str) -> None:
    plane = box2d(4, 3, (2.0, 1.0), kind, perturb=0.2)
    heights = np.array([0.0, 0.2, 0.5])
    solid = extrude(plane, heights)
    assert check(solid).closure_max < 1e-12
    assert set(solid.cells) == {"quad": {"hexahedron"}, "triangle": {"prism"}}[kind]
    assert list(solid.patches) == ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"]
    flat = control_volumes(plane)
    volumes = control_volumes(solid, [("zmin", "zmax")])
    assert volumes.volumes == pytest.approx(np.outer([0.2, 0.3], flat.volumes).ravel())
    assert volumes.centres[: flat.cells, :2] == pytest.approx(flat.centres[: flat.cells])
    assert {name: len(part) for name, part in volumes.patches.items()} == {"xmin": 6, "xmax": 6, "ymin": 8, "ymax": 8}


def test_wrong_extrusions() -> None:
    plane = box2d(2, 2)
    solid = extrude(plane, np.array([0.0, 1.0]))
    with pytest.raises(MeshError, match="only meshes in two dimensions"):
        extrude(solid, np.array([0.0, 1.0]))
    for heights in ([0.0], [1.0, 0.0], [0.0, 0.0, 1.0]):
        with pytest.raises(MeshError, match="at least two increasing values"):
            extrude(plane, np.array(heights))


def test_clustered() -> None:
    places = clustered(1.8)(np.linspace(0.0, 1.0, 33))
    gaps = np.diff(places)
    assert places[[0, 16, -1]] == pytest.approx([0.0, 0.5, 1.0], abs=1e-15)
    assert gaps == pytest.approx(gaps[::-1])
    assert (np.diff(gaps[:16]) > 0).all()
    assert gaps[0] * 32 == pytest.approx(3.6 / np.sinh(3.6), rel=0.15)
    with pytest.raises(MeshError, match="above 0, not 0"):
        clustered(0.0)
