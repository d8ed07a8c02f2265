"""Meshes that do not fill space once: what `mesh check` and `mesh info` say of files, with number and place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.geometry.connectivity import connectivity
from fluxloom.mesh.io import write

Call = Callable[..., SimpleNamespace]


def walled(points: np.ndarray, cells: np.ndarray, kind: str) -> MeshData:
    """Return a mesh with one patch of all its boundary."""
    mesh = MeshData(np.asarray(points, dtype=float), {kind: np.asarray(cells, dtype=np.int32)})
    face = {"quad": "line", "hexahedron": "quad"}[kind]
    return replace(mesh, patches={"wall": PatchFaces({face: connectivity(mesh).boundary_nodes.table})})


def turned() -> MeshData:
    """Return cells of which one has its upper corners turned by half a turn: det J changes its sign."""
    mesh = box3d(3, 3, 3)
    block = mesh.cells["hexahedron"].copy()
    block[13] = block[13][[0, 1, 2, 3, 6, 7, 4, 5]]
    return walled(mesh.points, block, "hexahedron")


def inverted() -> MeshData:
    """Return cells of which one has a corner beyond the others."""
    mesh = box3d(3, 3, 3)
    points = mesh.points.copy()
    points[0] = 0.6
    return walled(points, mesh.cells["hexahedron"], "hexahedron")


def over() -> MeshData:
    """Return two blocks that have a part of space in common."""
    mesh = box3d(2, 2, 2)
    block = mesh.cells["hexahedron"]
    points = np.concatenate([mesh.points, mesh.points + np.array([0.3, 0.2, 0.1])])
    return walled(points, np.concatenate([block, block + mesh.n_points]), "hexahedron")


def hanging() -> MeshData:
    """Return a quad beside two that share its side."""
    points = [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [1, 0.5], [2, 0.5]]
    return walled(np.array(points), np.array([[0, 1, 4, 3], [1, 2, 7, 6], [6, 7, 5, 4]]), "quad")


def folded() -> MeshData:
    """Return quads of which some lie over others."""
    mesh = box2d(4, 4)
    points = mesh.points.copy()
    points[12] = 0.9
    return walled(points, mesh.cells["quad"], "quad")


WRONG = {
    turned: r"hexahedron element 13 at \(0\.5, 0\.5, 0\.5\): tangled",
    inverted: r"hexahedron element 0 at \(0\.24\d*, 0\.24\d*, 0\.24\d*\): inverted",
    over: r"hexahedron element 1 at \(.*\): overlapping: it lies over hexahedron element \d+, with which",
    hanging: r"quad element 0: hanging node: node 6 at \(1, 0\.5\)",
    folded: r"quad element 10 at \(0\.725, 0\.725\): inverted",
}


@pytest.mark.parametrize("make", WRONG)
@pytest.mark.parametrize("suffix", [".msh", ".vtu"])
def test_what_is_said_of_a_file(fluxloom: Call, tmp_path: Path, make: Callable[[], MeshData], suffix: str) -> None:
    path = tmp_path / f"wrong{suffix}"
    write(path, make())
    done = fluxloom("mesh", "check", path)
    assert done.code == 2
    assert re.search(WRONG[make], " ".join(done.err.split())), done.err
    info = fluxloom("mesh", "info", path)
    assert info.code == 0
    assert re.search(WRONG[make], " ".join(info.out.split())), info.out
    done = fluxloom("mesh", "convert", path, tmp_path / "right.vtkhdf")
    assert "a run would refuse this mesh" in done.err
