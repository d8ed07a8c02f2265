"""Meshes that are turned, and doubled at a plane of symmetry."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.mesh import IntArray, MeshData
from fluxloom.mesh.quality.orient import orient

__all__ = ["moved", "turn", "with_image"]

Array = npt.NDArray[np.float64]


def turn(dimension: int, degrees: float) -> Array:
    """Return the matrix that turns about ``z``."""
    found, angle = np.eye(dimension), np.radians(degrees)
    found[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return found


def moved(mesh: MeshData, matrix: Array, move: float = 0.0, size: float = 1.0) -> MeshData:
    """Return a mesh that is turned or mirrored, moved by so much along each axis, and enlarged, in this order."""
    return orient(mesh.with_points(size * (mesh.points @ matrix.T + move)))[0]


def with_image(mesh: MeshData, patch: str) -> MeshData:
    """Return a mesh with its image in ``y = 0``, where the patch is; first its own points and cells of each kind."""
    inner = np.ones(mesh.n_points, dtype=bool)
    inner[mesh.patches[patch].nodes()] = False
    number = np.arange(mesh.n_points, dtype=np.int32)
    number[inner] = mesh.n_points + np.arange(np.count_nonzero(inner))
    image = mesh.points.copy()
    image[:, 1] *= -1.0

    def both(blocks: Mapping[str, IntArray]) -> dict[str, IntArray]:
        """Return rows of nodes, and those of their images."""
        return {kind: np.concatenate([block, number[block]]) for kind, block in blocks.items()}

    patches = {name: both(faces.blocks) for name, faces in mesh.patches.items() if name != patch}
    points = np.concatenate([mesh.points, image[inner]])
    return orient(MeshData(points, both(mesh.cells), patches))[0]  # type: ignore[arg-type]
