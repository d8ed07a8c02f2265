"""Patches of CGNS files that the boundary of the mesh has to tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fluxloom.mesh.data.elements import face_name
from fluxloom.mesh.data.mesh import IntArray, MeshData, PatchFaces
from fluxloom.mesh.geometry.connectivity import HalfFaces, half_faces, match_patches
from fluxloom.mesh.io.cgns.zone import Blocks, NodeSet
from fluxloom.mesh.io.tables.collect import add_rows

__all__ = ["add_boundary"]


def add_boundary(
    mesh: MeshData, named: dict[str, Blocks], sets: list[NodeSet], sections: dict[str, Blocks]
) -> MeshData:
    """Return a mesh with more patches; each takes of the boundary what those before it have left.

    Parameters
    ----------
    mesh
        The mesh, with the patches that list their faces.
    named
        Name to faces that count where they are on the boundary.
    sets
        Of the faces left, those that have all their nodes in a set belong to its patch.
    sections
        As ``named``, after the sets.
    """
    if not (named or sets or sections):
        return mesh
    patches = {name: dict(faces.blocks) for name, faces in mesh.patches.items()}
    half = half_faces(mesh)
    free = _add_listed(mesh, half, patches, named)
    _add_sets(patches, sets, free, mesh.n_points)
    if sections:
        _add_listed(mesh, half, patches, sections)
    return _with_patches(mesh, patches)


def _with_patches(mesh: MeshData, patches: dict[str, Blocks]) -> MeshData:
    return replace(mesh, patches={name: PatchFaces(blocks) for name, blocks in patches.items()})


def _add_listed(mesh: MeshData, half: HalfFaces, patches: dict[str, Blocks], more: dict[str, Blocks]) -> IntArray:
    """Add faces that are on the boundary and in no patch yet; return those left, ``(n, width)``, padded with -1."""
    tried = dict(patches)
    keys: dict[str, tuple[str, str]] = {}
    for name, blocks in more.items():
        for kind, block in blocks.items():
            key = f"{name}\0{kind}"  # no name of a file has a zero character
            keys[key], tried[key] = (name, kind), {kind: block}
    outer = np.flatnonzero(half.twins < 0)
    order, patch, stray = match_patches(_with_patches(mesh, tried), half, outer)
    gone: dict[str, list[int]] = {}
    for key, row in stray:
        gone.setdefault(key, []).append(row)
    for key, (name, kind) in keys.items():
        rows = np.delete(more[name][kind], gone.get(key, []), axis=0)
        if len(rows):
            add_rows(patches.setdefault(name, {}), kind, rows)
    return half.nodes[outer[order[patch < 0]]]


def _add_sets(patches: dict[str, Blocks], sets: list[NodeSet], faces: IntArray, points: int) -> None:
    """Add the faces ``(n, width)``, padded with -1, that have all their nodes in a set."""
    for item in sets:
        member = np.zeros(points + 1, dtype=bool)  # the last one stands for the padding
        member[item.nodes[item.nodes >= 0]] = member[-1] = True
        hit = member[faces].all(axis=1)
        widths = (faces >= 0).sum(axis=1)
        for width in np.unique(widths[hit]).tolist():
            add_rows(patches.setdefault(item.name, {}), face_name(width), faces[hit & (widths == width), :width])
        faces = faces[~hit]
