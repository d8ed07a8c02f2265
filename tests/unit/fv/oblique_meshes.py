"""Small meshes of every kind of cell whose faces do not stand across the middle of the line between two cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import clustered
from fluxloom.mesh.generate.extrude import extrude
from fluxloom.mesh.geometry.dual import dual

__all__ = ["PLANE", "STRAIGHT", "THIN", "WARPED", "oblique_mesh", "turned", "warped"]


def _moved(mesh: MeshData, matrix: np.ndarray) -> MeshData:
    """Return a mesh under a linear map: faces that are plane stay so."""
    return replace(mesh, points=mesh.points @ matrix.T)


def _sheared(mesh: MeshData, thin: float = 1.0) -> MeshData:
    """Return a mesh with oblique axes, the second of them shorter."""
    d = mesh.dimension
    shear = np.eye(d) + np.triu(np.full((d, d), 0.4), 1)
    scale = np.ones(d)
    scale[1] = thin
    return _moved(mesh, scale[:, None] * shear)


def _mixed() -> MeshData:
    """Return quads and triangles: every other box of a perturbed mesh is cut in two."""
    mesh = box2d(5, 4, kind="quad", perturb=0.3, seed=5)
    quads = mesh.cells["quad"]
    cut = np.arange(len(quads)) % 2 == 0
    halves = np.concatenate([quads[cut][:, [0, 1, 2]], quads[cut][:, [0, 2, 3]]])
    return replace(mesh, cells={"quad": quads[~cut], "triangle": halves})


def _mixed_space() -> MeshData:
    """Return hexahedra with plane faces, one of them cut into six pyramids about its middle."""
    mesh = box3d(3, 3, 3, axes=(UNEVEN, UNEVEN, None))
    cells = mesh.cells["hexahedron"]
    cell, top = cells[13], len(mesh.points)
    corners = ((0, 1, 2, 3), (4, 7, 6, 5), (0, 4, 5, 1), (1, 5, 6, 2), (2, 6, 7, 3), (3, 7, 4, 0))
    pyramids = np.array([[*cell[list(face)], top] for face in corners], dtype=np.int32)
    points = np.vstack([mesh.points, mesh.points[cell].mean(axis=0)])
    found = MeshData(points, {"hexahedron": np.delete(cells, 13, axis=0), "pyramid": pyramids}, mesh.patches)
    return _sheared(found)


def turned(mesh: MeshData, wave: float) -> MeshData:
    """Return a mesh whose quadrilateral faces are not plane."""
    x = mesh.points
    return replace(mesh, points=x + wave * np.sin(2.0 * x[:, [1, 2, 0]] + 3.0 * x[:, [2, 0, 1]]))


def _shaken(mesh: MeshData) -> MeshData:
    """Return a mesh of the unit cube whose points are moved, but for those on its sides, which move along them."""
    x = mesh.points
    inside = (x > 1e-9) & (x < 1.0 - 1e-9)
    return replace(mesh, points=x + inside * np.random.default_rng(7).uniform(-0.08, 0.08, x.shape))


UNEVEN = clustered(1.2)

PLANE: dict[str, Callable[[], MeshData]] = {
    "triangle": lambda: box2d(5, 4, kind="triangle", perturb=0.35, seed=1),
    "regular triangle": lambda: box2d(4, 4, kind="triangle", diagonal="right"),
    "quad": lambda: box2d(5, 4, kind="quad", perturb=0.35, seed=2),
    "uneven quad": lambda: box2d(5, 4, axes=(UNEVEN, UNEVEN)),
    "polygon": lambda: dual(box2d(5, 4, kind="triangle", perturb=0.3, seed=3)),
    "mixed": _mixed,
    "tetra": lambda: box3d(3, 2, 2, kind="tetra", perturb=0.3, seed=4),
    "prism": lambda: _sheared(extrude(box2d(3, 3, kind="triangle", perturb=0.3, seed=5), np.array([0.0, 0.2, 1.0]))),
    "pyramid": lambda: _sheared(box3d(2, 2, 2, kind="pyramid", axes=(UNEVEN, None, UNEVEN))),
    "hexahedron": lambda: _sheared(box3d(3, 3, 3, axes=(UNEVEN, UNEVEN, UNEVEN))),
    "extruded quad": lambda: extrude(box2d(3, 3, perturb=0.3, seed=6), np.array([0.0, 0.5, 0.7, 1.0])),
    "mixed space": _mixed_space,
}
"""Cells with plane faces: perturbed, skewed, uneven, non-orthogonal."""

THIN: dict[str, Callable[[], MeshData]] = {
    "thin triangle": lambda: _sheared(box2d(5, 4, kind="triangle", perturb=0.3, seed=1), 1e-3),
    "thin quad": lambda: _sheared(box2d(5, 4, kind="quad", perturb=0.3, seed=2), 1e-3),
    "thin tetra": lambda: _sheared(box3d(3, 2, 2, kind="tetra", perturb=0.3, seed=4), 1e-3),
    "thin hexahedron": lambda: _sheared(box3d(3, 3, 3, axes=(UNEVEN, UNEVEN, UNEVEN)), 1e-3),
}
"""The same, a thousand times as long as thick."""

WARPED: dict[str, Callable[[], MeshData]] = {
    "warped hexahedron": lambda: warped(4),
    "warped prism": lambda: turned(box3d(4, 4, 4, kind="prism"), 0.05),
    "polyhedron": lambda: dual(box3d(3, 3, 3, kind="tetra", perturb=0.1)),
    "warped mixed": lambda: turned(_mixed_space(), 0.03),
    "thin warped hexahedron": lambda: _moved(warped(4), np.diag([1.0, 1e-3, 1.0])),
    "hexahedra in a box": lambda: _shaken(box3d(4, 3, 3)),
    "prisms in a box": lambda: _shaken(box3d(4, 3, 3, kind="prism")),
}
"""Cells with faces that are not plane."""

STRAIGHT = ("polyhedron", "hexahedra in a box", "prisms in a box")
"""Of these, meshes whose sides are plane."""


def warped(n: int) -> MeshData:
    """Return hexahedra under a smooth map, ``n`` a side."""
    return turned(box3d(n, n, n), 0.05)


def oblique_mesh(name: str) -> MeshData:
    """Return one of them."""
    return (PLANE | THIN | WARPED)[name]()
