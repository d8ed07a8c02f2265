"""Meshes round a wing: right cells, closed patches, first cells as high as asked, and higher ones in the wake."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fluxloom.core.errors import MeshError
from fluxloom.mesh import MeshData, check, quality
from fluxloom_lab.problems.wing import WingMesh, wing_mesh
from fluxloom_lab.problems.wing_planform import WingPlanform
from fluxloom_lab.problems.wing_surface import WingShape, stretched
from fluxloom_lab.verify.compressible.wing_meshes import wing_shape

SIZES = WingMesh(16, 10, 12, 24, first=1e-4, nose=0.006, edge=0.02, tip=0.01)


@pytest.fixture(scope="module")
def mesh() -> MeshData:
    return wing_mesh(wing_shape(), SIZES)


def test_cells_are_right_and_patches_close_them(mesh: MeshData) -> None:
    found = quality(mesh)
    assert mesh.n_cells == SIZES.cells == 2 * 26 * 12 * 24
    assert found.negative_volumes == found.flat_faces == 0
    assert found["closure"].most < 1e-12
    assert check(mesh, ("wing", "symmetry", "farfield")).n_cells == mesh.n_cells
    assert {name: len(patch) for name, patch in mesh.patches.items()} == {
        "wing": 2 * 16 * 12, "symmetry": 2 * 26 * 24, "farfield": 2 * 12 * (26 + 24),
    }  # fmt: skip


def _areas(mesh: MeshData, patch: str) -> np.ndarray:
    corners = mesh.points[mesh.patch(patch).blocks["quad"]]
    return 0.5 * np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1])


def test_patches_lie_outside_and_the_wing_is_that_of_the_report(mesh: MeshData) -> None:
    wing, symmetry, far = (_areas(mesh, name) for name in ("wing", "symmetry", "farfield"))
    assert (symmetry[:, 1] < 0.0).all()
    np.testing.assert_allclose(wing.sum(axis=0) + symmetry.sum(axis=0) + far.sum(axis=0), 0.0, atol=1e-8)
    planform = 0.5 * 0.8059 * 1.562 * 1.1963 * 1.0057  # with the edge that goes on until it is sharp
    assert 0.5 * np.abs(wing[:, 2]).sum() == pytest.approx(planform + 0.0073, rel=3e-3)
    points = mesh.points[mesh.patch("wing").nodes()]
    assert points[:, 1].max() == pytest.approx(1.1963 + 0.4529 * 0.0489, abs=2e-4)
    assert np.abs(points[:, 2]).max() == pytest.approx(0.8059 * 0.0489, rel=0.01)


def test_first_cells_are_as_high_as_asked_and_higher_in_the_wake_and_at_the_sharp_corner(mesh: MeshData) -> None:
    cells = mesh.points[mesh.cells["hexahedron"][:: SIZES.normal]]  # the first ones, away from wing and wake
    above = cells[: len(cells) // 2].reshape(26, 12, 8, 3)
    heights = np.linalg.norm(above[:, :, 4] - above[:, :, 0], axis=-1)
    np.testing.assert_allclose(heights[:10], SIZES.first, rtol=0.01)
    np.testing.assert_allclose(heights[:16, :6], SIZES.first, rtol=0.01)
    assert (heights[15, 11:] > 3.0 * SIZES.first).all()
    behind = above[16:, 0, 0, 0] - 0.8105
    assert (heights[16:][behind > 0.2] > 20.0 * SIZES.first).all()


def test_upper_and_lower_half_are_alike(mesh: MeshData) -> None:
    up, down = (np.sort(mesh.points[mesh.points[:, 2] * side > 0.0][:, 0]) for side in (1.0, -1.0))
    np.testing.assert_array_equal(up, down)


def test_ends_of_stretched_places() -> None:
    steps = np.diff(stretched(40, 0.002, 0.006))
    assert steps.sum() == pytest.approx(1.0)
    assert steps[0] == pytest.approx(0.002, rel=0.15)
    assert steps[-1] == pytest.approx(0.006, rel=0.15)


def test_what_is_wrong_is_said() -> None:
    shape = wing_shape()
    with pytest.raises(MeshError, match="taper: a positive number"):
        replace(shape.planform, taper=0.0)
    with pytest.raises(MeshError, match="places that increase"):
        replace(shape, section=shape.section[::-1])
    with pytest.raises(MeshError, match="does not close"):
        WingShape(np.array([[0.0, 0.0], [0.5, 0.05], [1.0, 0.06]]), WingPlanform(1.0, 1.0, 1.0, 0.0)).closed()
    with pytest.raises(MeshError, match="first: a positive number"):
        replace(SIZES, first=0.0)
    with pytest.raises(MeshError, match="take fewer"):
        stretched(100, 0.02, 0.02)
