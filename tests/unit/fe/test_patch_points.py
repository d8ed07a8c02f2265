"""Areas that belong to the points of a patch."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.fe.edges.patch_points import PatchPoints
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.ranks.bind import bind


def test_points_of_a_line_have_half_of_each_side() -> None:
    """Vectors point outward; at an angle a point has the sum of two halves."""
    places = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 3.0], [9.0, 9.0]])
    patch = PatchPoints.of(np.array([[0, 1], [1, 2]], dtype=np.int32), places)
    assert patch.points.tolist() == [0, 1, 2]
    assert patch.areas.tolist() == [[0.0, -0.5], [1.5, -0.5], [1.5, 0.0]]
    assert patch.size == pytest.approx([0.5, np.hypot(1.5, 0.5), 1.5])


def test_points_of_a_triangle_have_a_third() -> None:
    places = np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [0.0, 3.0, 1.0]])
    patch = PatchPoints.of(np.array([[0, 1, 2]], dtype=np.int32), places)
    assert patch.areas == pytest.approx(np.array([[0.0, 0.0, 1.0]] * 3))


@pytest.mark.parametrize("dimension", [2, 3])
def test_sides_of_a_box(dimension: int) -> None:
    """Areas add up to those of the sides, outward, and to nothing over the whole boundary."""
    import fluxloom as fl
    from fluxloom.fe.edges.point_mesh import PointMesh

    lengths = (1.5, 0.5, 2.0)[:dimension]
    data = (
        box2d(3, 2, lengths=lengths, kind="triangle", perturb=0.2)
        if dimension == 2
        else box3d(2, 2, 3, lengths=lengths, kind="tetra", perturb=0.2)
    )
    mesh = PointMesh.of(bind(data, fl.Context("reference")))
    total = np.zeros(dimension)
    for name, patch in mesh.patches.items():
        axis, sign = "xyz".index(name[0]), 1.0 if name.endswith("max") else -1.0
        wanted = np.zeros(dimension)
        wanted[axis] = sign * np.prod(lengths) / lengths[axis]
        assert patch.areas.sum(axis=0) == pytest.approx(wanted, abs=1e-14)
        assert patch.size.sum() == pytest.approx(np.abs(wanted).sum())
        total += patch.areas.sum(axis=0)
    assert np.abs(total).max() < 1e-14
