"""Drag a plane mesh along the third direction: quads become hexahedra, triangles prisms."""

from __future__ import annotations

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource, PatchFaces

__all__ = ["extrude"]

_SOLIDS = {"quad": "hexahedron", "triangle": "prism"}


def extrude(plane: MeshData, heights: FloatArray) -> MeshData:
    """Return a plane mesh dragged along z.

    Parameters
    ----------
    plane
        A mesh of quads and triangles in two dimensions.
    heights : (layers + 1,)
        Values of z, increasing.

    Returns
    -------
    MeshData
        The cells layer by layer (of each kind), within a layer in the order of the plane; the patches of the plane,
        and ``zmin`` and ``zmax``.

    Raises
    ------
    MeshError
        For a mesh that is not plane or has such patches already, and for heights that do not increase.
    """
    values = np.asarray(heights, dtype=np.float64)
    if plane.dimension != 2:
        raise MeshError(f"{plane.source.path}: only meshes in two dimensions can be extruded")
    if values.ndim != 1 or values.size < 2 or not (np.diff(values) > 0.0).all():
        raise MeshError("the heights of an extruded mesh must be at least two increasing values")
    if taken := {"zmin", "zmax"} & set(plane.patches):
        raise MeshError(f"{plane.source.path}: a patch {taken.pop()} is there before the mesh is extruded; rename it")
    layers, n = values.size - 1, plane.n_points
    points = np.concatenate([np.tile(plane.points, (values.size, 1)), np.repeat(values, n)[:, None]], axis=1)
    plane.require_elements("extrusion")
    cells = {_SOLIDS[name]: _dragged(block, n, layers) for name, block in plane.cells.items()}
    patches = {
        name: PatchFaces({"quad": np.concatenate([_walls(block, n, layers) for block in patch.blocks.values()])})
        for name, patch in plane.patches.items()
        if len(patch)
    }
    patches["zmin"] = PatchFaces({name: block[:, ::-1].astype(np.int32) for name, block in plane.cells.items()})
    patches["zmax"] = PatchFaces({name: (block + n * layers).astype(np.int32) for name, block in plane.cells.items()})
    return MeshData(points, cells, patches, MeshSource(plane.source.path))


def _dragged(block: IntArray, n: int, layers: int) -> IntArray:
    """Return the solids over plane cells, layer by layer."""
    bottom = block[None] + n * np.arange(layers, dtype=np.int32)[:, None, None]
    return np.concatenate([bottom, bottom + n], axis=2).reshape(-1, 2 * block.shape[1]).astype(np.int32)


def _walls(lines: IntArray, n: int, layers: int) -> IntArray:
    """Return the quads over lines, layer by layer."""
    bottom = lines[None] + n * np.arange(layers, dtype=np.int32)[:, None, None]
    return np.concatenate([bottom, bottom[..., ::-1] + n], axis=2).reshape(-1, 4).astype(np.int32)
