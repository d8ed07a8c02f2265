"""Whether a mesh that was taken is sound, by formulas of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import FluxloomError
from fluxloom.mesh import check
from fluxloom.mesh.data.elements import face_name
from fluxloom.mesh.data.mesh import MeshData, PatchFaces
from fluxloom.mesh.geometry.connectivity import Connectivity, connectivity
from fluxloom.mesh.geometry.metrics import cell_measures

__all__ = ["unlike", "unsound"]

Array = npt.NDArray[np.float64]

_ROUND = 1e-9
"""Relative to the sum of absolute values."""


def unsound(counts: Counter[str], mesh: MeshData) -> Iterator[str]:
    r"""Yield what is wrong with a mesh that `fluxloom.mesh.check` takes.

    .. math:: \sum_f A_f = 0, \qquad \sum_c \Omega_c = \frac1d \sum_f x_f \cdot A_f

    over the faces of the boundary, with area vectors that are found here from the nodes alone. What the check says is
    counted.
    """
    if not np.isfinite(mesh.points).all():
        yield "coordinates that are not finite"
        return
    try:
        mesh = _listed(mesh)
        check(mesh)
    except FluxloomError:
        counts["refused by the check"] += 1
        return
    counts["sound"] += 1
    volumes = cell_measures(mesh)[0]
    if not (volumes > 0.0).all():
        yield f"a cell has the volume {volumes.min():g}"
    areas, moments = _boundary(mesh, connectivity(mesh))
    size = np.abs(areas).sum()
    if not np.abs(areas.sum(axis=0)).max(initial=0.0) <= _ROUND * size:
        yield f"the boundary is not closed: {areas.sum(axis=0)}"
    scale = volumes.sum() + np.abs(moments).sum()
    if not abs(volumes.sum() - moments.sum()) <= _ROUND * scale:
        yield f"cells have the volume {volumes.sum():.12g}, the boundary has {moments.sum():.12g} inside"


def _listed(mesh: MeshData) -> MeshData:
    """Return a mesh with a patch of all boundary faces that are in none."""
    links = connectivity(mesh)
    blocks: dict[str, list[list[int]]] = {}
    for face in np.flatnonzero(links.boundary_patch < 0).tolist():
        nodes = links.boundary_nodes[face].tolist()
        blocks.setdefault(face_name(len(nodes)), []).append(nodes)
    more = PatchFaces({kind: np.array(rows, dtype=np.int32) for kind, rows in blocks.items()})
    return replace(mesh, patches={**mesh.patches, "in no patch": more}) if blocks else mesh


def _boundary(mesh: MeshData, links: Connectivity) -> tuple[Array, Array]:
    """Return area vectors of the faces of the boundary, and ``x . A / d``, of triangles about the mean of the nodes."""
    areas, moments, middle = [], [], mesh.points.mean(axis=0)
    for nodes in links.boundary_nodes:
        corners = mesh.points[nodes] - middle
        if mesh.dimension == 2:
            along = corners[1] - corners[0]
            area = np.array([along[1], -along[0]])
            areas.append(area)
            moments.append(corners.mean(axis=0) @ area / 2.0)
            continue
        centre = corners.mean(axis=0)
        parts = 0.5 * np.cross(corners - centre, np.roll(corners, -1, axis=0) - centre)
        places = (corners + np.roll(corners, -1, axis=0) + centre) / 3.0
        areas.append(parts.sum(axis=0))
        moments.append((places * parts).sum() / 3.0)
    return np.array(areas).reshape(-1, mesh.dimension), np.array(moments)


def unlike(first: MeshData, second: MeshData) -> Iterator[str]:
    """Yield by what two meshes differ that have to be one."""
    if not np.array_equal(first.points, second.points):
        yield "two readers find other points"
    if set(first.cells) != set(second.cells) or not all(
        np.array_equal(block, second.cells[kind]) for kind, block in first.cells.items()
    ):
        yield "two readers find other cells"
    if list(first.patches) != list(second.patches):
        yield f"two readers find other patches: {list(first.patches)}, {list(second.patches)}"
