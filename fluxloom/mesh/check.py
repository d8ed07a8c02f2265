"""Checking a mesh: located errors for what is broken, a report for what is not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.mesh.connectivity import HalfFaces, connectivity, face_keys, half_faces, match_patches
from fluxloom.mesh.elements import element, face_name
from fluxloom.mesh.geometry import cell_measures, geometry
from fluxloom.mesh.hanging import require_no_hanging
from fluxloom.mesh.mesh import FloatArray, IntArray, MeshData
from fluxloom.mesh.overlaps import require_no_overlaps
from fluxloom.mesh.polyhedra_check import check_node_range, check_polyhedra, extent_of
from fluxloom.mesh.report import MeshReport, make_report
from fluxloom.mesh.sound import not_positive, require_mendable, require_sound, require_sound_cells

__all__ = ["check", "check_cells", "check_range"]

_FLAT = 1e-15
"""A cell is flat when its volume is below this times the cube (square) of its extent: a few rounding errors."""


def check(mesh: MeshData, required_patches: Iterable[str] = ()) -> MeshReport:
    """Check a mesh and describe it.

    Parameters
    ----------
    mesh
        The mesh.
    required_patches
        Patches that must exist, for instance those of a case file.

    Returns
    -------
    MeshReport
        Counts, volumes, quality, bounding box and patches.

    Raises
    ------
    MeshError
        Naming the file, the element (with its line, where the file has one element a line), the node, and what to
        do: for elements of the wrong dimension, node numbers out of range, coordinates that are not finite, orphan
        nodes, repeated nodes, duplicate cells, inverted, tangled, flat and open cells, cells that lie over their
        neighbours or over others, hanging nodes, faces of three or more cells, boundary faces in no patch, patch faces
        that are not on the boundary, and absent required patches.
    """
    if not mesh.n_cells:
        raise MeshError(f"{mesh.source.path}: the mesh has no cells")
    _check_nodes(mesh)
    check_cells(mesh)
    half = half_faces(mesh)
    if half.groups:
        _fail_non_manifold(mesh, half)
    _check_patches(mesh, half)
    for name in required_patches:
        if name not in mesh.patches:
            known = ", ".join(mesh.patches) or "none"
            hint = did_you_mean(name, mesh.patches)
            raise MeshError(f"{mesh.source.path}: the required patch {name!r} is missing{hint} (patches: {known})")
    links = connectivity(mesh, half)
    terms = geometry(mesh, links)
    require_sound(mesh, links, terms.cell_volumes, terms.cell_parts)
    return make_report(mesh, links, terms)


def check_cells(mesh: MeshData, numbers: npt.NDArray[np.int64] | None = None) -> None:
    """Look for cells that are wrong by themselves; node numbers must be in range.

    Parameters
    ----------
    mesh
        The mesh.
    numbers : (n_points,) int64
        What messages call the nodes; by default they have their own numbers.

    Raises
    ------
    MeshError
        Naming the element: for repeated nodes, duplicate, tangled, flat and inverted cells.
    """
    for name in mesh.cells:
        _check_repeated(mesh, name, numbers)
        _check_duplicates(mesh, name)
    if mesh.polyhedra is not None:
        check_polyhedra(mesh, mesh.polyhedra)
    volumes, _, parts = cell_measures(mesh)
    require_sound_cells(mesh, volumes, parts)
    _check_volumes(mesh, volumes)


def check_range(mesh: MeshData) -> None:
    """Raise `MeshError` naming the element whose node does not exist: what reads a mesh goes no further then."""
    for name, numbers in mesh.cell_ranges.items():
        bad = _first_bad(mesh.cells[name], mesh.n_points)
        if bad is not None:
            _fail_cell(
                mesh, numbers.start + bad[0], f"node {bad[1]} is outside 0 ... {mesh.n_points - 1}; mend the file"
            )
    if mesh.polyhedra is not None:
        check_node_range(mesh, mesh.polyhedra)
    for name, faces in mesh.patches.items():
        for kind, block in faces.blocks.items():
            bad = _first_bad(block, mesh.n_points)
            if bad is not None:
                where = f"{mesh.source.path}: patch {name!r}, {kind} {bad[0]}"
                raise MeshError(f"{where}: node {bad[1]} is outside 0 ... {mesh.n_points - 1}; mend the file")


def _check_nodes(mesh: MeshData) -> None:
    """Dimension of the elements, range of the node numbers, coordinates, orphans."""
    check_range(mesh)
    used = np.zeros(mesh.n_points, dtype=bool)
    for name, numbers in mesh.cell_ranges.items():
        if element(name).dimension != mesh.dimension:
            where = mesh.locate_cell(numbers.start)
            raise MeshError(f"{where}: a {name} cannot be a cell of a mesh in {mesh.dimension} dimensions")
        used[mesh.cells[name]] = True
    if mesh.polyhedra is not None:
        used[mesh.polyhedra.faces.indices] = True
    broken = np.flatnonzero(~np.isfinite(mesh.points).all(axis=1))
    if len(broken):
        node = int(broken[0])
        words = _point(mesh, node)
        raise MeshError(f"{mesh.source.path}: node {node}: its coordinates {words} are not finite; mend the file")
    orphans = np.flatnonzero(~used)
    if len(orphans):
        node = int(orphans[0])
        raise MeshError(
            f"{mesh.source.path}: node {node} at {_point(mesh, node)} belongs to no cell ({len(orphans)} such orphan "
            "nodes); remove them, or restore the missing cells"
        )


def _first_bad(block: IntArray, n_points: int) -> tuple[int, int] | None:
    if not block.size or (int(block.min()) >= 0 and int(block.max()) < n_points):
        return None
    row, column = np.argwhere((block < 0) | (block >= n_points))[0]
    return int(row), int(block[row, column])


def _check_repeated(mesh: MeshData, name: str, numbers: npt.NDArray[np.int64] | None) -> None:
    block = mesh.cells[name]
    ordered = np.sort(block, axis=1)
    same = ordered[:, 1:] == ordered[:, :-1]
    rows = np.flatnonzero(same.any(axis=1))
    if len(rows):
        row = int(rows[0])
        node = int(ordered[row, 1:][same[row]][0])
        node = node if numbers is None else int(numbers[node])
        _fail_cell(
            mesh, mesh.cell_ranges[name].start + row, f"degenerate: node {node} is repeated; use another element type"
        )


def _check_duplicates(mesh: MeshData, name: str) -> None:
    """Cells with the same nodes."""
    block = mesh.cells[name]
    if len(block) < 2:
        return
    keys = face_keys(block, mesh.n_points)
    order = np.argsort(keys)
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    left, right = np.sort(block[order[same]], axis=1), np.sort(block[order[same + 1]], axis=1)
    twins = same[(left == right).all(axis=1)]
    if len(twins):
        first, second = sorted((int(order[twins[0]]), int(order[twins[0] + 1])))
        start = mesh.cell_ranges[name].start
        other = mesh.locate_cell(start + first).removeprefix(f"{mesh.source.path}:").strip()
        _fail_cell(mesh, start + second, f"duplicate cell: it has the nodes of {other}; remove one of them")


def _check_volumes(mesh: MeshData, volumes: FloatArray) -> None:
    word = "area" if mesh.dimension == 2 else "volume"
    extents = [_extent(mesh, block) for block in mesh.cells.values()]
    extents += [] if mesh.polyhedra is None else [extent_of(mesh.points, mesh.polyhedra)]
    scale = np.concatenate(extents) ** mesh.dimension
    flat = np.flatnonzero(np.abs(volumes) <= _FLAT * scale)
    if len(flat):
        cell = int(flat[0])
        _fail_cell(mesh, cell, f"degenerate: its {word} is {volumes[cell]:.3g} ({len(flat)} such cells); remesh there")
    inverted = np.flatnonzero(volumes < 0.0)
    if len(inverted):
        cell = int(inverted[0])
        require_mendable(mesh, volumes)
        _fail_cell(mesh, cell, not_positive(mesh.dimension, volumes, inverted))


def _extent(mesh: MeshData, block: IntArray) -> FloatArray:
    """Return the longest side of the bounding box of each cell."""
    longest = np.zeros(len(block))
    for axis in range(mesh.dimension):
        values = mesh.points[:, axis][block]
        np.maximum(longest, values.max(axis=1) - values.min(axis=1), out=longest)
    return longest


def _fail_non_manifold(mesh: MeshData, half: HalfFaces) -> NoReturn:
    group = half.groups[0]
    nodes = half.nodes[group[0]]
    cells = [int(cell) for cell in half.cells[group]]
    words = ", ".join(str(cell) for cell in cells)
    _fail_cell(
        mesh,
        cells[-1],
        f"non-manifold: its face with the nodes {_nodes(nodes)} is shared by the {len(cells)} cells {words}; at most "
        "two cells may share a face: remove overlapping cells",
    )


def _check_patches(mesh: MeshData, half: HalfFaces) -> None:
    """Every boundary face is in exactly one patch, and every patch face is on the boundary."""
    outer = np.flatnonzero(half.twins < 0)
    order, patch, stray = match_patches(mesh, half, outer)
    if stray:
        _fail_stray(mesh, half, *stray[0], len(stray))
    free = outer[order[patch < 0]]
    if len(free):
        links = connectivity(mesh, half)
        require_no_hanging(mesh, links)
        require_no_overlaps(mesh, links, cell_measures(mesh)[0])
        face = int(free[0])
        nodes = half.nodes[face]
        middle = mesh.points[nodes[nodes >= 0]].mean(axis=0)
        known = ", ".join(mesh.patches) or "none"
        where = mesh.locate_cell(int(half.cells[face]))
        raise MeshError(
            f"{where}: missing patch: {len(free)} boundary faces belong to no patch, one of them has the nodes "
            f"{_nodes(nodes)} near {_coordinates(middle)}; add them to a patch (patches: {known})"
        )


def _fail_stray(mesh: MeshData, half: HalfFaces, name: str, index: int, count: int) -> NoReturn:
    """Say why a patch face cannot be used."""
    nodes = mesh.patches[name].padded(mesh.patches[name].width)[index]
    real = nodes[nodes >= 0]
    where = f"{mesh.source.path}: patch {name!r}, {face_name(len(real))} {index} with the nodes {_nodes(real)}"
    width = half.nodes.shape[1]
    inside = half.twins[:0]
    if len(real) <= width:
        wide = np.full((1, width), -1, dtype=np.int32)
        wide[0, : len(real)] = real
        inside = half.twins[half.keys == face_keys(wide, mesh.n_points)[0]]
    if not len(inside):
        reason = "is not a face of any cell"
    elif (inside >= 0).all():
        reason = (
            "is not a boundary face: it lies between two cells. A wall within the flow needs nodes of its own on each "
            "side (in Gmsh: Plugin(Crack) before saving); or leave its group out"
        )
    else:
        reason = "is listed twice, in this patch or in an earlier one"
    more = f" ({count} such faces)" if count > 1 else ""
    raise MeshError(f"{where}: it {reason}{more}; remove it from the patch")


def _fail_cell(mesh: MeshData, cell: int, message: str) -> NoReturn:
    raise MeshError(f"{mesh.locate_cell(cell)}: {message}")


def _nodes(nodes: npt.NDArray[np.integer]) -> str:
    return ", ".join(str(int(node)) for node in nodes if node >= 0)


def _point(mesh: MeshData, node: int) -> str:
    return _coordinates(mesh.points[node])


def _coordinates(values: FloatArray) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in values) + ")"
