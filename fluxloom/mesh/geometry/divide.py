"""Cells of any kind as triangles or tetrahedra with the same points.

The point with the lowest number sees each cell: what lies opposite to it, faces as triangles from their own lowest
point, makes its tetrahedra. Neighbours divide the face between them alike, as its points alone decide.

Source: J. Dompierre, P. Labbe, M.-G. Vallet, R. Camarero, "How to subdivide pyramids, prisms and hexahedra into
tetrahedra", 8th International Meshing Roundtable (1999): the diagonal from the lowest point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import IntArray, MeshData, MeshSource, PatchFaces

__all__ = ["divided"]

Index = npt.NDArray[np.integer[Any]]


def divided(mesh: MeshData) -> MeshData:
    """Return a mesh of triangles in two dimensions, of tetrahedra in three, with the points and patches of a mesh.

    Its cells follow the order of those that they are parts of, whose numbers they have in messages. A mesh of such
    cells alone is returned as it is.

    Parameters
    ----------
    mesh
        Convex cells of any kind but polyhedra.

    Raises
    ------
    MeshError
        For polyhedra.
    """
    kind = {2: "triangle", 3: "tetra"}[mesh.dimension]
    if mesh.polyhedra is not None:
        raise MeshError(f"{mesh.source.path}: polyhedra are not divided into tetrahedra; take a mesh of other cells")
    if [name for name, count in mesh.cell_counts.items() if count] == [kind]:
        return mesh
    cells, parents = list[IntArray](), list[Index]()
    for name, block in mesh.cells.items():
        found, parent = _fans(block) if mesh.dimension == 2 else _tetrahedra(name, block)
        numbers = mesh.source.cell_numbers.get(name)
        parents.append(parent + mesh.cell_ranges[name].start if numbers is None else np.asarray(numbers)[parent])
        cells.append(found)
    patches = mesh.patches
    if mesh.dimension == 3:
        patches = {
            name: PatchFaces({"triangle": np.concatenate([_fans(block)[0] for block in faces.blocks.values()])})
            if len(faces) else faces for name, faces in patches.items()
        }  # fmt: skip
    source = MeshSource(mesh.source.path, cell_numbers={kind: np.concatenate(parents)})
    return replace(mesh, cells={kind: np.concatenate(cells)}, patches=patches, source=source)


def _fans(faces: IntArray) -> tuple[IntArray, Index]:
    """Return faces ``(m, k)`` as triangles from their lowest points ``(m (k - 2), 3)``, and the face of each."""
    count, width = faces.shape
    turned = faces[np.arange(count)[:, None], (faces.argmin(axis=1)[:, None] + np.arange(width)) % width]
    fans = [turned[:, [0, k, k + 1]] for k in range(1, width - 1)]
    return np.stack(fans, axis=1).reshape(-1, 3), np.repeat(np.arange(count), width - 2)


def _tetrahedra(name: str, block: IntArray) -> tuple[IntArray, Index]:
    """Return cells of a kind as tetrahedra ``(n, 4)``, and the cell of each."""
    lowest, found, parents = block.argmin(axis=1), list[IntArray](), list[Index]()
    for corner in range(block.shape[1]):
        some = np.flatnonzero(lowest == corner)
        for face in element(name).faces:
            if corner not in face:
                base, of = _fans(block[some][:, face])
                found.append(np.column_stack([base[:, [0, 2, 1]], block[some[of], corner]]))  # seen from the corner
                parents.append(some[of])
    whole = np.concatenate(parents)
    order = np.argsort(whole, kind="stable")
    return np.concatenate(found)[order], whole[order]
