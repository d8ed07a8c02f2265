"""What can be wrong with polyhedra by themselves, with messages that name them."""

from __future__ import annotations

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.mesh.mesh import FloatArray, MeshData
from fluxloom.mesh.polyhedra import Polyhedra

__all__ = ["check_node_range", "check_polyhedra", "extent_of"]


def check_node_range(mesh: MeshData, cells: Polyhedra) -> None:
    """Raise `MeshError` for the first polyhedron of a mesh with a node that does not exist."""
    nodes = cells.faces.indices
    bad = np.flatnonzero((nodes < 0) | (nodes >= mesh.n_points))
    if bad.size:
        cell = int(np.repeat(cells.owners, cells.faces.counts)[bad[0]])
        where = mesh.locate_cell(mesh.n_elements + cell)
        raise MeshError(f"{where}: node {nodes[bad[0]]} is outside 0 ... {mesh.n_points - 1}; mend the file")


def check_polyhedra(mesh: MeshData, cells: Polyhedra) -> None:
    """Look for polyhedra that are wrong by themselves; node numbers must be in range.

    Raises
    ------
    MeshError
        Naming the first: for a face with the same node twice, and for faces that leave a gap or overlap.
    """
    owner, start, _ = cells.sides()
    face = np.repeat(np.arange(len(cells.faces)), cells.faces.counts)
    order = np.lexsort((start, face))
    twice = np.flatnonzero((start[order[1:]] == start[order[:-1]]) & (face[order[1:]] == face[order[:-1]]))
    if twice.size:
        place = order[twice[0]]
        where = mesh.locate_cell(mesh.n_elements + int(owner[place]))
        raise MeshError(f"{where}: degenerate: a face has the node {start[place]} twice; mend the file")
    gaping = cells.open()
    if gaping.size:
        where = mesh.locate_cell(mesh.n_elements + int(gaping[0]))
        raise MeshError(
            f"{where}: open: its faces do not close ({gaping.size} such cells); each side of a face has to be one of "
            "exactly one other face of the cell, which goes along it the other way"
        )


def extent_of(points: FloatArray, cells: Polyhedra) -> FloatArray:
    """Return the longest side of the bounding box of each polyhedron, ``(n,)``."""
    starts = cells.faces.offsets[cells.offsets[:-1]]
    longest = np.zeros(len(cells))
    for column in points.T:
        values = column[cells.faces.indices]
        np.maximum(longest, np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts), out=longest)
    return longest
