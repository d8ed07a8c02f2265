"""What has to hold of cells before anything is derived from them: nodes that are there, once a cell, and closed sides.

Faces, volumes and elements of other cells mean nothing, so `fluxloom.mesh.geometry.connectivity.half_faces`, by which
all that takes a mesh begins, refuses them.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import IntArray, MeshData

__all__ = ["check_finite", "check_patches", "check_range", "coordinates", "fail_cell", "place_of", "require_whole"]


def require_whole(mesh: MeshData) -> None:
    """Refuse a mesh with cells from which no faces can be derived.

    Raises
    ------
    MeshError
        Naming the first: for a cell of the wrong dimension, a node that does not exist, has coordinates that are not
        finite, or is in one cell twice, and for polyhedra whose faces do not close.
    """
    if not mesh.cells and mesh.polyhedra is None:
        raise MeshError(f"{mesh.source.path}: the mesh has no cells")
    for name, numbers in mesh.cell_ranges.items():
        if len(numbers) and element(name).dimension != mesh.dimension:
            where = mesh.locate_cell(numbers.start)
            raise MeshError(f"{where}: a {name} cannot be a cell of a mesh in {mesh.dimension} dimensions")
    _check_cell_range(mesh)
    check_finite(mesh)
    for name, numbers in mesh.cell_ranges.items():
        _check_repeated(mesh, mesh.cells[name], numbers.start)
    if mesh.polyhedra is not None:
        _check_closed(mesh)


def check_range(mesh: MeshData) -> None:
    """Raise `MeshError` naming the element whose node does not exist: what reads a mesh goes no further then."""
    _check_cell_range(mesh)
    check_patches(mesh)


def check_patches(mesh: MeshData) -> None:
    """Raise `MeshError` naming the face of a patch whose node does not exist."""
    for name, faces in mesh.patches.items():
        for kind, block in faces.blocks.items():
            bad = _first_bad(block, mesh.n_points)
            if bad is not None:
                where = f"{mesh.source.path}: patch {name!r}, {kind} {bad[0]}"
                raise MeshError(f"{where}: node {bad[1]} is outside 0 ... {mesh.n_points - 1}; mend the file")


def fail_cell(mesh: MeshData, cell: int, message: str) -> NoReturn:
    """Raise `MeshError` with the number and the place of a cell."""
    raise MeshError(f"{mesh.locate_cell(cell)} at {place_of(mesh, cell)}: {message}")


def place_of(mesh: MeshData, cell: int) -> str:
    """Return the mean of the nodes of a cell, in words."""
    for name, numbers in mesh.cell_ranges.items():
        if cell in numbers:
            nodes = mesh.cells[name][cell - numbers.start]
            break
    else:
        assert mesh.polyhedra is not None
        nodes = mesh.polyhedra.take(np.array([cell - mesh.n_elements])).nodes().indices
    return coordinates(mesh.points[nodes].mean(axis=0))


def _check_cell_range(mesh: MeshData) -> None:
    last = mesh.n_points - 1
    for name, numbers in mesh.cell_ranges.items():
        bad = _first_bad(mesh.cells[name], mesh.n_points)
        if bad is not None:
            where = mesh.locate_cell(numbers.start + bad[0])
            raise MeshError(f"{where}: node {bad[1]} is outside 0 ... {last}; mend the file")
    if mesh.polyhedra is not None:
        cells, nodes = mesh.polyhedra, mesh.polyhedra.faces.indices
        wrong = np.flatnonzero((nodes < 0) | (nodes > last))
        if wrong.size:
            where = mesh.locate_cell(mesh.n_elements + int(np.repeat(cells.owners, cells.faces.counts)[wrong[0]]))
            raise MeshError(f"{where}: node {nodes[wrong[0]]} is outside 0 ... {last}; mend the file")


def _first_bad(block: IntArray, n_points: int) -> tuple[int, int] | None:
    if not block.size or (int(block.min()) >= 0 and int(block.max()) < n_points):
        return None
    row, column = np.argwhere((block < 0) | (block >= n_points))[0]
    return int(row), int(block[row, column])


def check_finite(mesh: MeshData) -> None:
    """Raise `MeshError` naming the point whose coordinates are not finite."""
    finite = np.isfinite(mesh.points)
    if not finite.all():
        node = int(np.argmin(finite.all(axis=1)))
        raise MeshError(
            f"{mesh.source.path}: node {mesh.source.name_of(node)}: its coordinates {coordinates(mesh.points[node])} "
            "are not finite; mend the file"
        )


def _check_repeated(mesh: MeshData, block: IntArray, start: int) -> None:
    """Elements that have a node twice: other programs write wedges and pyramids as such hexahedra."""
    columns, found = np.ascontiguousarray(block.T), np.zeros(len(block), dtype=bool)
    for k in range(len(columns)):
        for j in range(k):
            found |= columns[k] == columns[j]
    if found.any():
        row = int(np.argmax(found))
        nodes, counts = np.unique(block[row], return_counts=True)
        node = mesh.source.name_of(int(nodes[np.argmax(counts > 1)]))
        fail_cell(
            mesh, start + row,
            f"degenerate: node {node} is repeated ({int(found.sum())} such cells); use the element type that has each "
            "node once, as a prism for a hexahedron with an edge gone on either side",
        )  # fmt: skip


def _check_closed(mesh: MeshData) -> None:
    """Polyhedra with a node twice in a face, and with faces that leave a gap or lie over each other."""
    cells = mesh.polyhedra
    assert cells is not None
    nodes, face = cells.faces.indices, np.repeat(np.arange(len(cells.faces)), cells.faces.counts)
    keys = np.sort(face * mesh.n_points + nodes)
    twice = keys[1:][keys[1:] == keys[:-1]]
    if twice.size:
        found, node = divmod(int(twice[0]), mesh.n_points)
        message = f"degenerate: a face has the node {mesh.source.name_of(node)} twice; mend the file"
        fail_cell(mesh, mesh.n_elements + int(cells.owners[found]), message)
    gaping = cells.open()
    if gaping.size:
        fail_cell(
            mesh, mesh.n_elements + int(gaping[0]),
            f"open: its faces do not close ({gaping.size} such cells); each side of a face has to be one of exactly "
            "one other face of the cell, which goes along it the other way",
        )  # fmt: skip
    sides = np.add.reduceat(cells.faces.counts, cells.offsets[:-1])
    pinched = np.flatnonzero(cells.nodes().counts - sides // 2 + np.diff(cells.offsets) != 2)
    if pinched.size:
        fail_cell(
            mesh, mesh.n_elements + int(pinched[0]),
            f"pinched: its faces do not enclose one body ({pinched.size} such cells): with V nodes, E edges and F "
            "faces V - E + F has to be 2 (Euler); parts of it meet at a node, or it has a hole: divide it there",
        )  # fmt: skip


def coordinates(values: npt.NDArray[np.floating]) -> str:
    """Return the coordinates of a place, in words."""
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"
