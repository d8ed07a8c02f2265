"""What every reader does with what a file holds: plane meshes, groups that share elements, points without a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.advice import warn
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource, PatchFaces, Polyhedra
from fluxloom.mesh.data.ragged import narrowed
from fluxloom.mesh.geometry.connectivity import face_keys

__all__ = [
    "add_faces",
    "add_rows",
    "cell_dimension",
    "finite_box",
    "first_group",
    "first_patches",
    "level_axis",
    "mesh_of",
    "plane_points",
    "tell_shared",
    "without_unused",
]

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_LEVEL = 1e-12
"""A mesh is plane when its extent along an axis is at most this part of its largest."""


def plane_points(path: str | Path, points: FloatArray, used: npt.NDArray[np.integer] | Mask) -> FloatArray:
    """Return the points of plane cells with two coordinates: without z, or the axis along which all are level.

    Parameters
    ----------
    path
        The file, for messages.
    points : (n, 2) or (n, 3)
        Coordinates.
    used
        Which of them cells have; others may be anywhere.

    Raises
    ------
    MeshError
        When the cells do not lie in such a plane.
    """
    if points.shape[1] == 2:
        return points
    some = points[used]
    low, high = finite_box(some) if len(some) else (np.zeros(3), np.zeros(3))
    return np.delete(points, level_axis(path, low, high), axis=1)


def finite_box(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the box round the coordinates that are finite; what checks a mesh names the others."""
    known = np.isfinite(points)
    return points.min(axis=0, initial=np.inf, where=known), points.max(axis=0, initial=-np.inf, where=known)


def level_axis(path: str | Path, low: FloatArray, high: FloatArray) -> int:
    """Return the axis along which a mesh has no extent, z first.

    Parameters
    ----------
    path
        The file, for messages.
    low, high : (3,)
        Ends of the box around its cells.

    Raises
    ------
    MeshError
        When there is none.
    """
    extent = high - low
    level = np.flatnonzero(extent <= _LEVEL * extent.max())
    if not level.size:
        raise MeshError(
            f"{path}: a surface in space is not a mesh of cells: z goes from {low[2]:.6g} to {high[2]:.6g}; give cells "
            "of a plane (one z for all nodes, to 1e-12 of the size), or save the solid elements"
        )
    axis = int(level[-1])
    if axis != 2:
        rest = " and ".join(name for k, name in enumerate("xyz") if k != axis)
        warn(f"{path}: the mesh lies in the plane {'xyz'[axis]} = {low[axis]:.6g}: its two coordinates are {rest}")
    return axis


def cell_dimension(path: str | Path, names: Iterable[str], advice: str = "save these too") -> int:
    """Return the dimension of the cells of a mesh: the highest one of its types of elements.

    Raises
    ------
    MeshError
        When that is below two.
    """
    dimension = max((element(name).dimension for name in names), default=0)
    if dimension < 2:
        raise MeshError(f"{path}: the file holds no cells of two or three dimensions; {advice}")
    return dimension


def mesh_of(
    path: str,
    points: FloatArray,
    cells: Mapping[str, npt.NDArray[np.integer]],
    patches: Mapping[str, Mapping[str, IntArray]],
    polyhedra: Polyhedra | None = None,
) -> MeshData:
    """Return the mesh of what a file holds, with two coordinates where its cells are plane.

    Raises
    ------
    MeshError
        When plane cells do not lie in a plane across an axis.
    """
    blocks = {name: narrowed(block) for name, block in cells.items()}
    if polyhedra is None and cell_dimension(path, blocks) == 2:
        used = np.concatenate([block.reshape(-1) for block in blocks.values()])
        points = plane_points(path, points, used[(used >= 0) & (used < len(points))])  # the check names the others
    named = {name: PatchFaces(faces) for name, faces in patches.items()}
    return MeshData(points, blocks, named, MeshSource(path), polyhedra)


def add_rows(blocks: dict[str, IntArray], kind: str, rows: npt.NDArray[np.integer]) -> None:
    """Add elements of a type to those that are there."""
    more = narrowed(rows)
    blocks[kind] = np.concatenate([blocks[kind], more]) if kind in blocks else more


def add_faces(patches: dict[str, dict[str, IntArray]], name: str, blocks: Mapping[str, npt.NDArray[Any]]) -> None:
    """Add blocks of faces to a patch; groups of one name are one patch, which is there even without faces."""
    for kind, faces in blocks.items():
        add_rows(patches.setdefault(name, {}), kind, faces)
    patches.setdefault(name, {})


def first_group(nodes: npt.NDArray[np.integer], groups: npt.NDArray[np.integer]) -> Index:
    """Return, for each of some elements, the first group that has it.

    Parameters
    ----------
    nodes : (n, k)
        Nodes of elements, from 0, padded with -1.
    groups : (n,)
        Their groups; the first one of equal elements is that which comes first here.
    """
    if len(nodes) < 2 or (groups == groups[0]).all():
        return groups.astype(np.int64)
    keys = face_keys(nodes.astype(np.int32), int(nodes.max()) + 1)
    order = np.argsort(keys, kind="stable")
    rows = np.sort(nodes, axis=1)[order]
    same = (keys[order][1:] == keys[order][:-1]) & (rows[1:] == rows[:-1]).all(axis=1)
    start = np.concatenate([[True], ~same])
    found = np.empty(len(nodes), dtype=np.int64)
    found[order] = groups[order[np.flatnonzero(start)[np.cumsum(start) - 1]]]
    return found


def tell_shared(path: str | Path, shared: Counter[tuple[str, str]], what: str) -> None:
    """Say which groups lack elements since another one has them: ``(other, first)`` to their number."""
    lost = [
        f"{count} of {other!r} belong to {first!r} too" for (other, first), count in shared.items() if other != first
    ]
    if lost:
        warn(f"{path}: {what} in several groups: {'; '.join(lost)}; the group that comes first has them")


def first_patches(mesh: MeshData) -> MeshData:
    """Return a mesh in which a face belongs to the first patch that has it, and say so where there were others.

    A face that one patch has twice stays so; `fluxloom.mesh.quality.check` refuses it.
    """
    every, names = list(mesh.patches.values()), list(mesh.patches)
    width = max((faces.width for faces in every), default=0)
    if len(every) < 2 or not width:
        return mesh
    nodes = np.concatenate([faces.padded(width) for faces in every])
    groups = np.repeat(np.arange(len(every)), [len(faces) for faces in every])
    if not nodes.size or nodes.min() < -1 or nodes.max() >= mesh.n_points:
        return mesh
    first = first_group(nodes, groups)
    kept = first == groups
    if kept.all():
        return mesh
    pairs = zip(groups[~kept].tolist(), first[~kept].tolist(), strict=True)
    tell_shared(mesh.source.path, Counter((names[other], names[one]) for other, one in pairs), "faces")
    patches: dict[str, dict[str, IntArray]] = {}
    start = 0
    for name, faces in mesh.patches.items():
        for kind, rows in faces.blocks.items():
            left = rows[kept[start : start + len(rows)]]
            start += len(rows)
            if len(left):
                add_rows(patches.setdefault(name, {}), kind, left)
    return replace(mesh, patches={name: PatchFaces(found) for name, found in patches.items()})


def without_unused(mesh: MeshData, say: bool = True) -> tuple[MeshData, Index]:
    """Return a mesh without the points that no cell and no patch has, and the numbers of those that stay.

    Parameters
    ----------
    mesh
        The mesh.
    say
        Whether a warning tells how many went.
    """
    faces: Sequence[IntArray] = [block for patch in mesh.patches.values() for block in patch.blocks.values()]
    loops = () if mesh.polyhedra is None else (mesh.polyhedra.faces.indices,)
    for table in (*mesh.cells.values(), *faces, *loops):
        if table.size and not 0 <= int(table.min()) <= int(table.max()) < mesh.n_points:
            return mesh, np.arange(mesh.n_points)  # the check names the element
    used = mesh.used_points()
    for table in faces:
        used[table] = True
    kept = np.flatnonzero(used)
    if len(kept) == mesh.n_points:
        return mesh, kept
    if say:
        warn(f"{mesh.source.path}: points that no cell has are left out ({mesh.n_points - len(kept)})")
    place = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
    cells = {name: place[block] for name, block in mesh.cells.items()}
    patches = {n: PatchFaces({k: place[b] for k, b in faces.blocks.items()}) for n, faces in mesh.patches.items()}
    more = None if mesh.polyhedra is None else mesh.polyhedra.renamed(place)
    return replace(mesh, points=mesh.points[kept], cells=cells, patches=patches, polyhedra=more), kept
