"""Polyhedra of VTKHDF files: their faces, and which faces each cell has.

Source: VTK documentation, "VTKHDF file format", version 2.5: ``FaceConnectivity``, ``FaceOffsets``,
``PolyhedronToFaces`` and ``PolyhedronOffsets``, with a row for every cell, empty for those that are no polyhedra.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.io.vtk_cells import VTK_POLYHEDRON
from fluxloom.mesh.polyhedra import Polyhedra
from fluxloom.mesh.ragged import Ragged

__all__ = ["read_polyhedra", "write_polyhedra"]

_NEEDED = ("FaceConnectivity", "FaceOffsets", "PolyhedronToFaces", "PolyhedronOffsets")


def write_polyhedra(root: Any, cells: Polyhedra, types: npt.NDArray[np.uint8]) -> None:
    """Write polyhedra into the group of a grid, each with faces of its own.

    Parameters
    ----------
    root
        The group.
    cells, types
        The polyhedra, and the types of all elements of the file.
    """
    count = len(cells.faces)
    sizes = np.zeros(types.size, dtype=np.int64)
    sizes[types == VTK_POLYHEDRON] = np.diff(cells.offsets)
    root["NumberOfFaces"] = np.array([count], dtype=np.int64)
    root["NumberOfFaceConnectivityIds"] = np.array([cells.faces.indices.size], dtype=np.int64)
    root["NumberOfPolyhedronToFaceIds"] = np.array([count], dtype=np.int64)
    root["FaceConnectivity"] = cells.faces.indices.astype(np.int64)
    root["FaceOffsets"] = cells.faces.offsets
    root["PolyhedronToFaces"] = np.arange(count, dtype=np.int64)
    root["PolyhedronOffsets"] = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def read_polyhedra(root: Any) -> Polyhedra | None:
    """Return the polyhedra of a grid; None where it has none.

    Faces have to turn anticlockwise seen from outside of each cell that has them, as faces of one cell alone do.

    Raises
    ------
    MeshError
        When arrays are missing or do not fit each other.
    """
    types = np.asarray(root["Types"], dtype=np.uint8)
    chosen = np.flatnonzero(types == VTK_POLYHEDRON)
    if not chosen.size:
        return None
    path = root.file.filename
    absent = [name for name in _NEEDED if name not in root]
    if absent:
        raise MeshError(f"{path}: there are polyhedra, but the data set {absent[0]} is missing")
    nodes, bounds, faces, offsets = (np.asarray(root[name], dtype=np.int64) for name in _NEEDED)
    sound = (
        offsets.size == types.size + 1 and _ascends(offsets, faces.size) and _ascends(bounds, nodes.size)
        and (not faces.size or 0 <= int(faces.min()) <= int(faces.max()) < bounds.size - 1)
    )  # fmt: skip
    if not sound:
        raise MeshError(f"{path}: the faces of the polyhedra do not fit each other; the file is damaged")
    rows = Ragged(offsets, faces.astype(np.int32)).take(chosen)
    return Polyhedra(rows.offsets, Ragged(bounds, nodes.astype(np.int32)).take(rows.indices))


def _ascends(offsets: npt.NDArray[np.int64], last: int) -> bool:
    """Return whether offsets go from 0 to ``last`` and never descend."""
    return bool(offsets.size and offsets[0] == 0 and offsets[-1] == last and (np.diff(offsets) >= 0).all())
