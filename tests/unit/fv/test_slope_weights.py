"""Sides of cells and the weights of slopes, against what a few lines of NumPy say."""

from __future__ import annotations

import numpy as np
import pytest

from fluxloom.fv.geometry.cell_faces import CompressibleGeometry, least_squares
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.fv.geometry.volumes import ControlVolumes, Sides
from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.geometry.dual import dual

Pairs = tuple[tuple[str, str], ...]
THIN: Pairs = (("xmin", "xmax"), ("ymin", "ymax"))
BOXES: list[tuple[MeshData, Pairs]] = [
    (box2d(4, 3, kind="triangle", perturb=0.3), ()),
    (box2d(1, 4), (("xmin", "xmax"),)),
    (box3d(3, 2, 2, kind="prism", perturb=0.2), ()),
    (box3d(2, 1, 3), THIN),
    (box3d(1, 1, 1), (*THIN, ("zmin", "zmax"))),
]


@pytest.mark.parametrize(("mesh", "periodic"), BOXES)
def test_sides_are_those_that_a_walk_over_the_faces_finds(mesh: MeshData, periodic: Pairs) -> None:
    """Face by face each of its cells gets a side, except where a cell meets itself."""
    volumes = control_volumes(mesh, periodic)
    wanted: list[list[tuple[int, int, float]]] = [[] for _ in range(volumes.cells)]
    for face, (first, second) in enumerate(volumes.faces.tolist()):
        if first != second:
            wanted[first].append((face, second, 1.0))
            if second < volumes.cells:
                wanted[second].append((face, first, -1.0))
    sides = Sides.of(volumes)
    found = [
        list(zip(sides.face[a:b].tolist(), sides.other[a:b].tolist(), sides.sign[a:b].tolist(), strict=True))
        for a, b in zip(sides.offsets[:-1], sides.offsets[1:], strict=True)
    ]
    assert found == wanted
    np.testing.assert_array_equal(sides.outside, sides.other >= volumes.cells)
    np.testing.assert_array_equal(sides.cell, np.repeat(np.arange(volumes.cells), np.diff(sides.offsets)))


def ways_of(volumes: ControlVolumes) -> tuple[Sides, np.ndarray]:
    sides = Sides.of(volumes)
    return sides, volumes.ways[sides.face] * sides.sign[:, None]


@pytest.mark.parametrize("kind", ["quad", "triangle", "hexahedron", "tetra", "prism", "pyramid", "polyhedron"])
@pytest.mark.parametrize("stretch", [1.0, 1e3])
def test_weights_are_those_of_least_squares(kind: str, stretch: float) -> None:
    """Of each cell those of the least sum of squares of differences over distances; exact for linear fields."""
    several, kind = kind == "polyhedron", "tetra" if kind == "polyhedron" else kind
    if kind in ("quad", "triangle"):
        mesh = box2d(4, 3, (stretch, 1.0), kind=kind, perturb=0.3)
    else:
        mesh = box3d(3, 2, 2, (stretch, 1.0, 1.0), kind=kind, perturb=0.2)
    volumes = control_volumes(dual(mesh) if several else mesh)
    sides, ways = ways_of(volumes)
    found = least_squares(ways, sides.cell, sides.cells)
    if stretch == 1.0:  # thin cells have others
        np.testing.assert_array_equal(found, CompressibleGeometry.of(volumes).weights)
    for cell in range(sides.cells):
        span = slice(int(sides.offsets[cell]), int(sides.offsets[cell + 1]))
        root = 1.0 / np.linalg.norm(ways[span], axis=1)
        wanted = np.linalg.pinv(root[:, None] * ways[span]) * root
        np.testing.assert_allclose(found[span].T, wanted, rtol=0, atol=1e-8 * np.abs(wanted).max())
        np.testing.assert_allclose(found[span].T @ ways[span], np.eye(volumes.dimension), atol=1e-8 * stretch)


def test_no_slope_across_a_plane_of_neighbours() -> None:
    """The pseudo-inverse has no component along a direction in which there is no neighbour."""
    way = np.array([[1.0, 0.5, 0.0], [-1.0, 0.25, 0.0], [0.0, -1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    cell = np.array([0, 0, 0, 1, 1])
    found = least_squares(way, cell, 2)
    assert (found[:3, 2] == 0.0).all()
    np.testing.assert_allclose(found[:3].T @ way[:3], np.diag([1.0, 1.0, 0.0]), atol=1e-14)
    np.testing.assert_allclose(found[3:], [[0.5, 0.0, 0.0], [0.0, 0.0, 1.0]], atol=1e-14)


def test_control_volumes_of_a_known_connectivity_are_the_same() -> None:
    """What is known is not sought again, and nothing else changes."""
    mesh = box3d(3, 2, 2, kind="tetra", perturb=0.2)
    first, second = control_volumes(mesh), control_volumes(mesh, (), connectivity(mesh))
    for name in ("volumes", "centres", "faces", "areas", "spacing", "arms"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.patches == second.patches
