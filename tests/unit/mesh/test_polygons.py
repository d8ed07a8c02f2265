"""Places in polygons: the same as cell by cell, and on sides the cell of the nearest centre."""

from __future__ import annotations

import numpy as np

from fluxloom.mesh import box2d
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.mesh.geometry.polygons import cells_at

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def shapes_of(kind: str, nx: int, ny: int) -> tuple[np.ndarray, np.ndarray]:
    """Return corners, of triangles the last one twice, and centres."""
    mesh = box2d(nx, ny, (2.0, 1.0), kind, perturb=0.3 if kind == "triangle" else 0.0)
    (cells,) = mesh.cells.values()
    rows = cells if kind == "quad" else cells[:, [0, 1, 2, 2]]
    return mesh.points[rows][..., :2], cell_geometry(mesh)[1][:, :2]


def test_random_places() -> None:
    shapes, centres = shapes_of("triangle", 14, 9)
    places = np.random.default_rng(3).uniform((-0.1, -0.1), (2.1, 1.1), (700, 2))
    found, away = cells_at(shapes, centres, np.arange(len(shapes)), places)
    for place, cell, distance in zip(places, found, away, strict=True):
        side = np.roll(shapes[:, :3], -1, axis=1) - shapes[:, :3]
        turns = np.einsum("nki,ij,nkj->nk", place - shapes[:, :3], TURN, side)
        inside = np.flatnonzero((turns >= 0.0).all(axis=1))
        assert [cell] == inside.tolist() if inside.size else cell == -1
        assert distance == (np.hypot(*(place - centres[cell])) if inside.size else np.inf)
    assert 0 < (found < 0).sum() < 300


def test_places_on_sides_and_corners() -> None:
    """Four squares round a node are equally near: the lowest number has it. The boundary belongs to the mesh."""
    shapes, centres = shapes_of("quad", 4, 2)
    places = np.array([[1.0, 0.5], [0.0, 0.0], [2.0, 1.0], [2.0, 0.25], [2.0 + 1e-6, 0.25], [0.6, 0.5]])
    for numbers in (np.arange(8), np.arange(8)[::-1]):
        found, away = cells_at(shapes, centres, numbers, places)
        around = np.flatnonzero(np.isclose(np.hypot(*(centres - places[0]).T), away[0]))
        assert around.size == 4
        assert numbers[found[0]] == numbers[around].min()
        assert found[1:5].tolist() == [0, 7, 3, -1]
        assert numbers[found[5]] == min(numbers[[1, 5]])


def test_nothing() -> None:
    shapes, centres = shapes_of("quad", 2, 2)
    none = np.zeros((0, 2))
    assert cells_at(shapes, centres, np.arange(4), none)[0].size == 0
    found, away = cells_at(np.zeros((0, 4, 2)), none, np.arange(0), centres)
    assert (found.tolist(), away.tolist()) == ([-1] * 4, [np.inf] * 4)
