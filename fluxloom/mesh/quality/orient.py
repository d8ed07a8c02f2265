"""Turning cells the right way round."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from fluxloom.mesh.data.mesh import IntArray, MeshData
from fluxloom.mesh.data.whole import check_range
from fluxloom.mesh.geometry.metrics import cell_geometry
from fluxloom.mesh.quality.sound import require_mendable

__all__ = ["MIRROR", "orient"]

MIRROR: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "triangle": (0, 2, 1),
        "quad": (0, 3, 2, 1),
        "tetra": (0, 2, 1, 3),
        "pyramid": (0, 3, 2, 1, 4),
        "prism": (0, 2, 1, 3, 5, 4),
        "hexahedron": (0, 3, 2, 1, 4, 7, 6, 5),
    }
)
"""Node orders that mirror an element, so that its volume changes sign and its faces stay the same. Of any polygon that
is the opposite order."""


def orient(mesh: MeshData) -> tuple[MeshData, int]:
    """Mirror the node order of cells whose volume is negative.

    Programs disagree about the handedness of elements (VTK's and Gmsh's prisms, clockwise triangles), and
    some mix both in one file; the shapes of the cells do not change.

    Parameters
    ----------
    mesh
        The mesh; node numbers in range.

    Returns
    -------
    mesh
        The same object when there was nothing to turn.
    turned : int
        Number of cells turned.

    Raises
    ------
    MeshError
        For a cell with a negative volume whose faces go round as those of its neighbours do, or the other way about:
        it lies over them, however it is turned.
    """
    if not mesh.n_cells:
        return mesh, 0
    check_range(mesh)
    volumes, _ = cell_geometry(mesh)
    negative = volumes < 0.0
    turned = int(negative.sum())
    if not turned:
        return mesh, 0
    require_mendable(mesh, volumes)
    cells: dict[str, IntArray] = {}
    for name, numbers in mesh.cell_ranges.items():
        wrong = np.flatnonzero(negative[numbers.start : numbers.stop])
        block = mesh.cells[name]
        if len(wrong):
            block = block.copy()
            block[wrong] = block[wrong][:, list(MIRROR.get(name, range(block.shape[1])[::-1]))]
        cells[name] = block
    more = None if mesh.polyhedra is None else mesh.polyhedra.turned(negative[mesh.n_elements :])
    return MeshData(mesh.points, cells, mesh.patches, mesh.source, more), turned
