"""Fixtures of the mesh tests: the shared data, readers with and without compiled code, tiny meshes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fluxloom.mesh.data.mesh import MeshData, MeshSource, PatchFaces
from fluxloom.mesh.geometry.connectivity import connectivity

DATA = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    if not DATA.is_dir():
        pytest.skip("the shared reference data are not beside this checkout (../shared/data)")
    return DATA.resolve()


@pytest.fixture(params=[True, False], ids=["native", "python"])
def native(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def two_quads() -> MeshData:
    """Two unit squares side by side."""
    points = np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]], dtype=float)
    cells = {"quad": np.array([[0, 1, 4, 3], [1, 2, 5, 4]], dtype=np.int32)}
    lines = {
        "bottom": [[0, 1], [1, 2]],
        "right": [[2, 5]],
        "top": [[5, 4], [4, 3]],
        "left": [[3, 0]],
    }
    patches = {name: PatchFaces({"line": np.array(rows, dtype=np.int32)}) for name, rows in lines.items()}
    return MeshData(points, cells, patches, MeshSource("two_quads.su2", first_line=10))


@pytest.fixture
def change(two_quads: MeshData) -> Callable[..., MeshData]:
    """Return a copy of the two squares with other parts."""

    def changed(**parts: object) -> MeshData:
        values = {
            "points": two_quads.points,
            "cells": two_quads.cells,
            "patches": two_quads.patches,
            "source": two_quads.source,
        }
        return MeshData(**(values | parts))  # type: ignore[arg-type]

    return changed


@pytest.fixture(scope="session")
def assert_same() -> Callable[[MeshData, MeshData], None]:
    return _assert_same


def _assert_same(first: MeshData, second: MeshData) -> None:
    np.testing.assert_array_equal(first.points, second.points)
    assert list(first.cells) == list(second.cells)
    for name, block in first.cells.items():
        np.testing.assert_array_equal(block, second.cells[name])
    assert list(first.patches) == list(second.patches)
    for name, faces in first.patches.items():
        assert list(faces.blocks) == list(second.patches[name].blocks)
        for kind, block in faces.blocks.items():
            np.testing.assert_array_equal(block, second.patches[name].blocks[kind])


@pytest.fixture(scope="session")
def mixed_mesh() -> MeshData:
    """One cell of every 3D type: a hexahedron, a pyramid on top, a prism at its side, a tetra on the prism."""
    points = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
    points += [[0.5, 0.5, 2], [2, 0.5, 0], [2, 0.5, 1], [1.5, 0.5, 2]]
    cells = {
        "hexahedron": np.array([[0, 1, 2, 3, 4, 5, 6, 7]]),
        "pyramid": np.array([[4, 5, 6, 7, 8]]),
        "prism": np.array([[1, 9, 2, 5, 10, 6]]),
        "tetra": np.array([[5, 10, 6, 11]]),
    }
    bare = MeshData(np.array(points, dtype=float), cells)
    links = connectivity(bare)
    blocks: dict[str, list[np.ndarray]] = {}
    for nodes in links.boundary_nodes:
        blocks.setdefault("triangle" if len(nodes) == 3 else "quad", []).append(nodes)
    patch = PatchFaces({kind: np.array(rows) for kind, rows in blocks.items()})
    return MeshData(bare.points, cells, {"skin": patch}, MeshSource("mixed"))
