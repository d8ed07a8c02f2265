"""Checking a mesh: located errors for what is broken, a report for what is not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import IntArray, MeshData, unknown_patch
from fluxloom.mesh.data.whole import coordinates, fail_cell
from fluxloom.mesh.geometry.connectivity import Connectivity, connectivity, face_keys, half_faces
from fluxloom.mesh.geometry.metrics import cell_measures, geometry
from fluxloom.mesh.quality.sound import (
    require_mendable,
    require_positive,
    require_sized,
    require_sound,
    require_sound_cells,
)

if TYPE_CHECKING:
    from fluxloom.mesh.quality.report import MeshReport

__all__ = ["check", "check_cells", "check_orphans", "fail_unlisted", "require_listed"]


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
    from fluxloom.mesh.quality.report import make_report

    if not mesh.n_cells:
        raise MeshError(f"{mesh.source.path}: the mesh has no cells")
    half = half_faces(mesh)
    check_orphans(mesh, mesh.used_points())
    check_cells(mesh)
    links = connectivity(mesh, half)
    terms = geometry(mesh, links)
    require_sound(mesh, links, terms.cell_volumes, terms.cell_parts)
    require_listed(mesh, links)
    for name in required_patches:
        if name not in mesh.patches:
            raise unknown_patch(mesh.source.path, name, mesh.patches, "the required patch {} is missing")
    return make_report(mesh, links, terms)


def check_cells(mesh: MeshData) -> None:
    """Look for cells that are wrong by themselves, or there twice; they are whole (see `fluxloom.mesh.data.whole`).

    Raises
    ------
    MeshError
        Naming the element: for duplicate, tangled, flat and inverted cells.
    """
    for name in mesh.cells:
        _check_duplicates(mesh, name)
    volumes, _, parts = cell_measures(mesh)
    require_sized(mesh, volumes)
    require_sound_cells(mesh, volumes, parts)
    if (volumes < 0.0).any():
        require_mendable(mesh, volumes)
        require_positive(mesh, volumes)


def require_listed(mesh: MeshData, links: Connectivity) -> None:
    """Raise `MeshError` with the first boundary face that is in no patch."""
    free = np.flatnonzero(links.boundary_patch < 0)
    if free.size:
        face = int(free[0])
        fail_unlisted(mesh, int(links.boundary_cells[face]), links.boundary_nodes[face], free.size, mesh.patches)


def fail_unlisted(mesh: MeshData, cell: int, nodes: IntArray, count: int, known: Collection[str]) -> NoReturn:
    """Raise `MeshError` for a boundary face of a cell, one of ``count`` in no patch; ``known`` are those there are."""
    names = ", ".join(str(mesh.source.name_of(int(node))) for node in nodes)
    near = coordinates(mesh.points[nodes].mean(axis=0))
    raise MeshError(
        f"{mesh.locate_cell(cell)}: missing patch: {count} boundary faces belong to no patch, one of them has the "
        f"nodes {names} near {near}; add them to a patch (patches: {', '.join(known) or 'none'})"
    )


def check_orphans(mesh: MeshData, used: npt.NDArray[np.bool_]) -> None:
    """Raise `MeshError` with the first point that is not used."""
    orphans = np.flatnonzero(~used)
    if len(orphans):
        node = int(orphans[0])
        raise MeshError(
            f"{mesh.source.path}: node {mesh.source.name_of(node)} at {coordinates(mesh.points[node])} belongs to no "
            f"cell ({len(orphans)} such orphan nodes); remove them, or restore the missing cells"
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
        fail_cell(mesh, start + second, f"duplicate cell: it has the nodes of {other}; remove one of them")
