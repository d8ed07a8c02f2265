"""Parts of a mesh that lie over each other without a common face are refused; those that touch or are close are not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fluxloom as fl
from fluxloom.core.errors import MeshError
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.fv.geometry.control_volumes import control_volumes
from fluxloom.mesh import bind, box2d, box3d, check
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.geometry.jacobians import folded_elements
from fluxloom.mesh.io import read, write

CONTEXT = fl.Context("reference")


def joined(*parts: MeshData) -> MeshData:
    """Return meshes as one, with all patches."""
    starts = np.cumsum([0, *(part.n_points for part in parts)])
    cells: dict[str, list[np.ndarray]] = {}
    patches = {}
    for number, (part, start) in enumerate(zip(parts, starts.tolist(), strict=False)):
        for kind, block in part.cells.items():
            cells.setdefault(kind, []).append(block + start)
        for name, faces in part.patches.items():
            patches[f"{name}{number}"] = PatchFaces({k: b + start for k, b in faces.blocks.items()})
    points = np.concatenate([part.points for part in parts])
    return MeshData(points, {kind: np.concatenate(blocks) for kind, blocks in cells.items()}, patches)


def shifted(mesh: MeshData, *by: float) -> MeshData:
    return mesh.with_points(mesh.points + by)


def closed(points: np.ndarray, cells: dict[str, list[list[int]]]) -> MeshData:
    """Return a plane mesh with one patch of all its boundary."""
    blocks = {kind: np.array(rows, dtype=np.int32) for kind, rows in cells.items()}
    faces = connectivity(MeshData(points, blocks)).boundary_nodes.table
    return MeshData(points, blocks, {"all": PatchFaces({"line": faces})})


def wound(turns: float, pitch: float = 0.0, cells: int = 20) -> MeshData:
    """Return a layer of quads round the origin; it grows outwards by ``pitch`` in each turn."""
    angle = np.linspace(0.0, 2.0 * np.pi * turns, cells + 1)
    at = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    out = (pitch * angle / (2.0 * np.pi))[:, None]
    points = np.concatenate([(1.0 + out) * at, (1.3 + out) * at])
    return closed(points, {"quad": [[k, k + cells + 1, k + cells + 2, k + 1] for k in range(cells)]})


def flap() -> MeshData:
    """Return a square with a triangle that lies over it and shares a node with it."""
    square = box2d(3, 3)
    points = np.concatenate([square.points, [[0.9, 0.5], [0.9, 0.9]]])
    return closed(points, {"quad": square.cells["quad"].tolist(), "triangle": [[0, 16, 17]]})


OVER: dict[str, Callable[[], MeshData]] = {
    "quads twice": lambda: joined(box2d(3, 3), box2d(3, 3)),
    "quads, by a part": lambda: joined(box2d(3, 3), shifted(box2d(4, 4), 0.37, 0.21)),
    "quads, by a part of a cell": lambda: joined(box2d(3, 3), shifted(box2d(3, 3), 0.95, 0.0)),
    "quad within a quad": lambda: joined(box2d(1, 1), box2d(1, 1, (0.2, 0.3), origin=(0.55, 0.4))),
    "triangle over quads": flap,
    "layer over itself": lambda: wound(1.2),
    "polygons": lambda: joined(*(shifted(dual(box2d(4, 4, kind="triangle")), k * 0.4, 0.0) for k in (0, 1))),
    "hexahedra twice": lambda: joined(box3d(2, 2, 2), box3d(2, 2, 2)),
    "hexahedra, by a part": lambda: joined(box3d(2, 2, 2), shifted(box3d(3, 2, 2), 0.37, 0.21, 0.33)),
    "thin hexahedra": lambda: joined(box3d(4, 4, 4, (1.0, 1.0, 1e-4)), box3d(1, 1, 1, origin=(0.4, 0.4, -0.5))),
    "tetrahedra over hexahedra": lambda: joined(box3d(2, 2, 2), shifted(box3d(1, 1, 1, kind="tetra"), 0.6, 0.6, 0.6)),
    "prisms": lambda: joined(*(shifted(box3d(2, 2, 2, kind="prism", perturb=0.1), k * 0.8, 0.0, 0.0) for k in (0, 1))),
}

APART: dict[str, Callable[[], MeshData]] = {
    "touching": lambda: joined(box2d(3, 3), shifted(box2d(4, 4), 1.0, 0.0)),
    "touching at an edge": lambda: joined(box3d(2, 2, 2), shifted(box3d(2, 2, 2), 1.0, 1.0, 0.0)),
    "close": lambda: joined(box3d(2, 2, 2), shifted(box3d(3, 3, 3, kind="tetra"), 1.0 + 1e-9, 0.0, 0.0)),
    "spiral": lambda: wound(2.4, pitch=0.31, cells=60),
    "nearly a ring": lambda: wound(0.999),
    "within a hole": lambda: joined(wound(0.999), box2d(2, 2, origin=(-0.5, -0.5))),
    "arcs divided in two ways": lambda: joined(arc(1.0, 1.2, 24), arc(1.2, 1.6, 31)),
    "arcs of thin cells": lambda: joined(arc(1.0, 1.2, 60), arc(1.2, 1.205, 100)),
}


def arc(inner: float, outer: float, cells: int) -> MeshData:
    """Return a layer of quads between two radii, over a right angle."""
    angle = np.linspace(0.0, 0.5 * np.pi, cells + 1)
    at = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rows = [[k, k + cells + 1, k + cells + 2, k + 1] for k in range(cells)]
    return closed(np.concatenate([inner * at, outer * at]), {"quad": rows})


@pytest.mark.parametrize("name", OVER)
def test_cells_over_others(name: str) -> None:
    mesh = OVER[name]()
    with pytest.raises(MeshError, match=r"element \d+ at \(.*overlapping: it lies over \w+ element \d+, .* \(\d+ such"):
        check(mesh)
    for take in (control_volumes, lambda mesh: bind(mesh, CONTEXT).face_normals):
        with pytest.raises(MeshError, match="overlapping"):
            take(mesh)
    if len(mesh.cells) == 1 and set(mesh.cells) <= {"quad", "hexahedron"}:
        with pytest.raises(MeshError, match="overlapping"):
            LagrangeSpace.on(bind(mesh, CONTEXT), 1)


@pytest.mark.parametrize("name", APART)
def test_parts_beside_each_other(name: str) -> None:
    mesh = APART[name]()
    assert check(mesh).n_cells == control_volumes(mesh).cells


@pytest.mark.parametrize("suffix", [".msh", ".vtu", ".su2"])
@pytest.mark.parametrize("turned", [False, True])
def test_in_files_and_of_either_orientation(tmp_path: Path, suffix: str, turned: bool) -> None:
    mesh = OVER["hexahedra, by a part"]()
    if turned:
        block = mesh.cells["hexahedron"][:, [4, 5, 6, 7, 0, 1, 2, 3]]
        mesh = MeshData(mesh.points, {"hexahedron": block}, mesh.patches)
    path = tmp_path / f"over{suffix}"
    write(path, mesh)
    with pytest.raises(MeshError, match=rf"over\{suffix}.*hexahedron element 1 .*overlapping"):
        fl.mesh.read(path, CONTEXT)
    with pytest.raises(MeshError, match="overlapping"):
        control_volumes(read(path))


CUBE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], dtype=float)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 6, 7, 4, 5), (0, 1, 3, 4, 6, 7, 5, 2), (0, 1, 5, 2, 3, 4, 6, 7)])
def test_sides_that_meet_at_the_mean_of_the_corners(order: tuple[int, ...], noise: float) -> None:
    """The top turned by half a turn: the mean of the nodes is on the sides, and volumes are positive."""
    points = CUBE + noise * np.random.default_rng(3).random((8, 3))
    mesh = MeshData(points, {"hexahedron": np.array([order], dtype=np.int32)})
    for take in (control_volumes, check):
        with pytest.raises(MeshError, match=r"hexahedron element 0 at \(.*tangled"):
            take(mesh)


def test_the_determinant_of_prisms() -> None:
    """Each order of the corners of a prism without symmetry, and bent prisms, against the values at points."""
    random = np.random.default_rng(1)
    prism = CUBE[[0, 1, 3, 4, 5, 7]]
    orders = np.array(list(itertools.permutations(range(6))))
    corners = np.concatenate([(prism + 0.1 * random.random((6, 3)))[orders], prism + 0.6 * random.random((300, 6, 3))])
    block = np.arange(corners.size // 3, dtype=np.int32).reshape(-1, 6)
    middle, folded = folded_elements(corners.reshape(-1, 3), block, "prism")
    x, y, z = np.meshgrid(*3 * [np.linspace(0.0, 1.0, 9)], indexing="ij")
    low, high = corners[:, :3, :, None], corners[:, 3:, :, None]
    x, y, z = (values[x + y <= 1.0] for values in (x, y, z))
    nodes, up = (1.0 - z) * low + z * high, high - low
    rise = (1.0 - x - y) * up[:, 0] + x * up[:, 1] + y * up[:, 2]
    sides = np.stack(np.broadcast_arrays(nodes[:, 1] - nodes[:, 0], nodes[:, 2] - nodes[:, 0], rise), axis=-1)
    values = np.linalg.det(np.moveaxis(sides, 2, 1)) * np.sign(middle)[:, None]
    found = values.min(axis=1) < 0.0
    assert found.sum() > 500
    assert not (found & ~folded).any()
    assert (folded & ~found).sum() <= 3  # between the points
    assert (~folded).sum() > 100
