"""Polyhedra of VTK files: their faces, and which faces each cell has.

Source: VTK documentation, "VTKHDF file format", version 2.5: ``FaceConnectivity``, ``FaceOffsets``,
``PolyhedronToFaces`` and ``PolyhedronOffsets``, with a row for every cell, empty for those that are no polyhedra.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import Polyhedra
from fluxloom.mesh.data.ragged import Ragged, narrowed
from fluxloom.mesh.io.vtk.cells import VTK_POLYHEDRON

__all__ = ["polyhedra_of", "polyhedra_of_stream", "read_polyhedra", "write_polyhedra"]

Index = npt.NDArray[np.int64]

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
    if not (types == VTK_POLYHEDRON).any():
        return None
    path = root.file.filename
    absent = [name for name in _NEEDED if name not in root]
    if absent:
        raise MeshError(f"{path}: there are polyhedra, but the data set {absent[0]} is missing")
    nodes, bounds, faces, offsets = (np.asarray(root[name], dtype=np.int64) for name in _NEEDED)
    return polyhedra_of(path, types, nodes, bounds, faces, offsets)


def polyhedra_of(
    path: str, types: npt.NDArray[np.uint8], nodes: Index, bounds: Index, faces: Index, offsets: Index
) -> Polyhedra:
    """Return the polyhedra among elements of some types.

    Parameters
    ----------
    path, types
        The file, and the type of each element.
    nodes, bounds
        Nodes of all faces, and where each face begins, and the end.
    faces, offsets
        Faces of all elements, and where those of each element begin, and the end.

    Raises
    ------
    MeshError
        When they do not fit each other.
    """
    sound = (
        offsets.size == types.size + 1 and _ascends(offsets, faces.size) and _ascends(bounds, nodes.size)
        and (not faces.size or 0 <= int(faces.min()) <= int(faces.max()) < bounds.size - 1)
    )  # fmt: skip
    if not sound:
        raise MeshError(f"{path}: the faces of the polyhedra do not fit each other; the file is damaged")
    rows = Ragged(offsets, faces.astype(np.int32)).take(np.flatnonzero(types == VTK_POLYHEDRON))
    return Polyhedra(rows.offsets, Ragged(bounds, narrowed(nodes)).take(rows.indices))


def polyhedra_of_stream(path: str, stream: Index, ends: Index) -> Polyhedra:
    """Return polyhedra given by one list: how many faces, and of each how many nodes and which.

    Parameters
    ----------
    path
        The file.
    stream
        The list.
    ends
        Where the part of each polyhedron ends in it.

    Raises
    ------
    MeshError
        When the list is damaged.
    """
    counts, sizes, nodes, at = [], [], [], 0
    for end in ends.tolist():
        try:
            counts.append(int(stream[at]))
            at += 1
            for _ in range(counts[-1]):
                sizes.append(int(stream[at]))
                nodes.append(stream[at + 1 : at + 1 + sizes[-1]])
                at += 1 + sizes[-1]
        except IndexError:
            at = -1
        if at != end or min(sizes) < 1:
            raise MeshError(f"{path}: the faces of polyhedron {len(counts) - 1} are damaged or cut off")
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Polyhedra(
        offsets, Ragged.from_counts(np.array(sizes, dtype=np.int64), narrowed(np.concatenate(nodes)))
    )


def _ascends(offsets: npt.NDArray[np.int64], last: int) -> bool:
    """Return whether offsets go from 0 to ``last`` and never descend."""
    return bool(offsets.size and offsets[0] == 0 and offsets[-1] == last and (np.diff(offsets) >= 0).all())
