"""Refusing meshes whose cells do not fill space once: turned over, crossed by themselves, with hanging nodes, twice.

What a face between two cells says does not depend on how programs number nodes: cells that go round it in different
ways have volumes of one sign, cells that go round it in the same way have volumes of different signs. Where neither
holds, one of the two lies on the side of the other, however its nodes are turned afterwards. So this is looked at
before any cell is turned round.

A cell that is seen as a whole from the mean of its nodes (`fluxloom.mesh.geometry.cell_measures`) does not cross
itself; of the others, which are few, every edge is tried against every face. Those that pass are concave: control
volumes may be, elements not (`fluxloom.mesh.jacobians`). Parts of a mesh that share no face are left then
(`fluxloom.mesh.overlaps`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.connectivity import Connectivity, connectivity, half_faces
from fluxloom.mesh.crossings import crossed
from fluxloom.mesh.hanging import require_no_hanging
from fluxloom.mesh.jacobians import FOLDABLE
from fluxloom.mesh.mesh import FloatArray, MeshData
from fluxloom.mesh.overlaps import require_no_overlaps

__all__ = [
    "fail_over",
    "hidden_cells",
    "not_positive",
    "require_mendable",
    "require_positive",
    "require_sound",
    "require_sound_cells",
    "require_unfolded",
    "turned_over",
]

Index = npt.NDArray[np.int64]

_PART = {2: 1e-9, 3: 1e-2}
"""A part of a cell counts as negative below this times the volume: far above round-off, and above what the middle of a
warped face may stick through the face on the other side of a thin cell."""

_ROUND = 1e-9


def require_sound(mesh: MeshData, links: Connectivity, volumes: FloatArray, parts: FloatArray) -> None:
    """Refuse a mesh with cells turned over, crossed by themselves or lying over others, and with hanging nodes.

    Parameters
    ----------
    mesh, links
        The mesh and its connectivity; cells may be of either orientation.
    volumes, parts
        Of its cells, from `fluxloom.mesh.geometry.cell_measures`.

    Raises
    ------
    MeshError
        Naming the first such cell, its place and how many there are.
    """
    require_unfolded(mesh, links.interior_cells, links.alike, volumes)
    require_sound_cells(mesh, volumes, parts)
    require_no_hanging(mesh, links)
    require_no_overlaps(mesh, links, volumes)


def require_mendable(mesh: MeshData, volumes: FloatArray) -> None:
    """Refuse a mesh with cells that lie over their neighbours, which would do so if they were turned round too."""
    half = half_faces(mesh)
    if not half.groups:
        links = connectivity(replace(mesh, patches={}), half)
        require_unfolded(mesh, links.interior_cells, links.alike, volumes)


def require_positive(mesh: MeshData, volumes: FloatArray) -> None:
    """Refuse cells without a positive volume: control volumes divide by it."""
    wrong = np.flatnonzero(~(volumes > 0.0))
    if wrong.size:
        _fail(mesh, int(wrong[0]), not_positive(mesh.dimension, volumes, wrong))


def not_positive(dimension: int, volumes: FloatArray, wrong: npt.NDArray[np.integer], of: str = "cells") -> str:
    """Return what is said of the first of the cells ``wrong``, which have no positive volume."""
    word = "area" if dimension == 2 else "volume"
    return (
        f"inverted: its {word} is {volumes[wrong[0]]:.6g} ({wrong.size} of {volumes.size} {of}); number its nodes "
        "anticlockwise (VTK order): fluxloom.mesh.orient does, and reading with orient=True"
    )


def turned_over(pairs: npt.NDArray[np.integer], alike: Index, volumes: FloatArray) -> Index:
    """Return the faces whose two cells lie on one side of it.

    Parameters
    ----------
    pairs : (faces, 2)
        The cells.
    alike
        Faces that both cells go round in the same way.
    volumes : (cells,)
        Their signed volumes.
    """
    negative = volumes < 0.0
    if not negative.any():
        return alike
    same = np.zeros(len(pairs), dtype=bool)
    same[alike] = True
    return np.flatnonzero(same == (negative[pairs[:, 0]] == negative[pairs[:, 1]]))


def require_unfolded(mesh: MeshData, pairs: npt.NDArray[np.integer], alike: Index, volumes: FloatArray) -> None:
    """Refuse a mesh with cells that lie on the side of their neighbours; parameters are those of `turned_over`."""
    faces = turned_over(pairs, alike, volumes)
    if not faces.size:
        return
    both = pairs[faces]
    count = np.bincount(both.reshape(-1), minlength=mesh.n_cells)
    total = np.bincount(pairs.reshape(-1), minlength=mesh.n_cells)
    cell = int(np.argmax(count / np.maximum(total, 1)))  # all its faces are wrong, few of the cells beside it
    other = both[(both == cell).any(axis=1)][0]
    beside = int(other[1] if other[0] == cell else other[0])
    name = mesh.locate_cell(beside).removeprefix(f"{mesh.source.path}:").strip()
    fail_over(mesh, cell, name, faces.size)


def fail_over(mesh: MeshData, cell: int, beside: str, count: int) -> NoReturn:
    """Raise `MeshError` for a cell that lies over its neighbour.

    Parameters
    ----------
    mesh, cell
        The cell.
    beside
        What messages call the neighbour.
    count
        Number of such faces.
    """
    _fail(
        mesh, cell,
        f"inverted: it lies over its neighbour, {beside}, on the same side of the face between them ({count} such "
        "faces), however it is turned: a node is beyond the cells round it; move it back, or remesh there",
    )  # fmt: skip


def hidden_cells(dimension: int, volumes: FloatArray, parts: FloatArray) -> Index:
    """Return the cells of positive volume that are not seen as a whole from the mean of their nodes."""
    return np.flatnonzero((parts < -_PART[dimension] * volumes) & (volumes > 0.0))


def require_sound_cells(mesh: MeshData, volumes: FloatArray, parts: FloatArray) -> None:
    """Refuse cells that cross themselves; parameters are those of `require_sound`."""
    hidden = [hidden_cells(mesh.dimension, volumes, parts)]
    for kind in FOLDABLE:
        if numbers := mesh.cell_ranges.get(kind):  # the determinant tells these from thin cells with warped sides
            least, volume = parts[numbers.start : numbers.stop], volumes[numbers.start : numbers.stop]
            hidden.append(numbers.start + np.flatnonzero((least < _ROUND * volume) & (volume > 0.0)))
    doubtful = np.unique(np.concatenate(hidden))
    if not doubtful.size:
        return
    found = doubtful[crossed(mesh, doubtful)]
    if found.size:
        _fail(
            mesh, int(found[0]),
            f"tangled: its sides cross each other ({found.size} such cells); put its nodes in order or move them apart",
        )  # fmt: skip


def _fail(mesh: MeshData, cell: int, message: str) -> NoReturn:
    raise MeshError(f"{mesh.locate_cell(cell)} at {_place(mesh, cell)}: {message}")


def _place(mesh: MeshData, cell: int) -> str:
    """Return the mean of the nodes of a cell, in words."""
    for name, numbers in mesh.cell_ranges.items():
        if cell in numbers:
            nodes = mesh.cells[name][cell - numbers.start]
            break
    else:
        assert mesh.polyhedra is not None
        nodes = mesh.polyhedra.take(np.array([cell - mesh.n_elements])).nodes().indices
    return "(" + ", ".join(f"{value:.6g}" for value in mesh.points[nodes].mean(axis=0)) + ")"
