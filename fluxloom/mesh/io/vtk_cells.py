"""Meshes as VTK's cell arrays, shared by the VTU and VTKHDF files.

Patches, when they are written, follow the cells as elements one dimension lower; the cell array ``patch``
holds -1 for cells and the patch's number for them, the field array ``patch_names`` the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.elements import by_code, element, vtk_order
from fluxloom.mesh.mesh import FloatArray, IntArray, MeshData, MeshSource, PatchFaces

__all__ = ["PATCH", "PATCH_NAMES", "Fields", "VtkCells", "from_vtk", "to_vtk"]

PATCH = "patch"
PATCH_NAMES = "patch_names"

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class Fields:
    """A mesh with values on its points and cells.

    Attributes
    ----------
    mesh
        The mesh.
    point_data, cell_data
        Name to values, ``(n,)`` or ``(n, components)``, cells in global order.
    """

    mesh: MeshData
    point_data: Mapping[str, Array] = field(default_factory=dict)
    cell_data: Mapping[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class VtkCells:
    """What a VTK unstructured grid stores.

    Attributes
    ----------
    points : (n, 3) float64
        Coordinates, z = 0 in two dimensions.
    connectivity : int32
        Nodes of all cells.
    offsets : (n_elements + 1,) int64
        Starts of the cells in ``connectivity``.
    types : (n_elements,) uint8
        VTK cell types.
    point_data, cell_data
        Values, padded for the elements of patches.
    patch_names
        Bytes of the names, one a line; None when patches were not written.
    """

    points: FloatArray
    connectivity: IntArray
    offsets: npt.NDArray[np.int64]
    types: npt.NDArray[np.uint8]
    point_data: dict[str, Array]
    cell_data: dict[str, Array]
    patch_names: npt.NDArray[np.uint8] | None


def to_vtk(
    mesh: MeshData,
    cell_data: Mapping[str, npt.ArrayLike] | None,
    point_data: Mapping[str, npt.ArrayLike] | None,
    patches: bool | None,
) -> VtkCells:
    """Return the arrays of a VTK file.

    Raises
    ------
    MeshError
        For data of the wrong length.
    """
    points = np.zeros((mesh.n_points, 3))
    points[:, : mesh.dimension] = mesh.points
    blocks = list(mesh.cells.items())
    values = {name: _sized(name, data, mesh.n_cells, "cells") for name, data in (cell_data or {}).items()}
    nodal = {name: _sized(name, data, mesh.n_points, "points") for name, data in (point_data or {}).items()}
    names = None
    if patches or (patches is None and not values and not nodal and mesh.patches):
        numbers = [np.full(mesh.n_cells, -1, dtype=np.int32)]
        for number, faces in enumerate(mesh.patches.values()):
            blocks += list(faces.blocks.items())
            numbers.append(np.full(len(faces), number, dtype=np.int32))
        patch = np.concatenate(numbers)
        values = {name: _padded(data, len(patch)) for name, data in values.items()}
        values[PATCH] = patch
        names = np.frombuffer("\n".join(mesh.patches).encode(), dtype=np.uint8)
    flat = [vtk_order(name, block).reshape(-1) for name, block in blocks]
    widths = [np.full(len(block), block.shape[1], dtype=np.int64) for _, block in blocks]
    types = [np.full(len(block), element(name).vtk, dtype=np.uint8) for name, block in blocks]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(widths))]).astype(np.int64)
    return VtkCells(points, np.concatenate(flat), offsets, np.concatenate(types), nodal, values, names)


def from_vtk(path: str, vtk: VtkCells) -> Fields:
    """Return the mesh and data of a VTK file's arrays.

    The mesh has two dimensions when it has no 3D cells and all z are zero.

    Raises
    ------
    MeshError
        For cell types that are not linear elements, and arrays that do not fit each other.
    """
    _require_sound(path, vtk)
    known = by_code("vtk")
    present, first = np.unique(vtk.types, return_index=True)
    unknown = [int(code) for code in present if int(code) not in known]
    if unknown:
        raise MeshError(f"{path}: VTK cell type {unknown[0]} is not supported (known: {sorted(known)})")
    patch = vtk.cell_data.get(PATCH) if vtk.patch_names is not None else None
    kinds = [known[int(code)] for code in present[np.argsort(first)]]
    solid = any(kind.dimension == 3 for kind in kinds) or bool((vtk.points[:, 2] != 0.0).any())
    dimension = 3 if solid else 2
    cells: dict[str, IntArray] = {}
    rows: list[npt.NDArray[np.int64]] = []
    for kind in kinds:
        chosen = vtk.types == kind.vtk
        if patch is not None:
            chosen &= np.asarray(patch, dtype=np.int64) < 0
        row = np.flatnonzero(chosen)
        if kind.dimension == dimension and len(row):
            cells[kind.name] = vtk_order(kind.name, _nodes(path, vtk, row, kind.n_nodes))
            rows.append(row)
    order = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    data = {name: values[order] for name, values in vtk.cell_data.items() if patch is None or name != PATCH}
    patches = _patches(path, vtk, patch) if patch is not None else {}
    mesh = MeshData(vtk.points[:, :dimension], cells, patches, MeshSource(path))
    return Fields(mesh, vtk.point_data, data)


def _require_sound(path: str, vtk: VtkCells) -> None:
    """Raise `MeshError` unless arrays of a file fit each other."""
    offsets, nodes = vtk.offsets, vtk.connectivity
    if vtk.points.ndim != 2 or vtk.points.shape[1] != 3:
        raise MeshError(f"{path}: the points have shape {vtk.points.shape}, not (points, 3); the file is damaged")
    if (
        vtk.types.ndim != 1 or nodes.ndim != 1 or offsets.shape != (len(vtk.types) + 1,)
        or offsets[0] < 0 or offsets[-1] > len(nodes) or (np.diff(offsets) < 0).any()
    ):  # fmt: skip
        raise MeshError(f"{path}: the offsets of the {vtk.types.size} elements do not fit; the file is damaged")
    if nodes.size and not 0 <= int(nodes.min()) <= int(nodes.max()) < len(vtk.points):
        bad = int(nodes.min()) if nodes.min() < 0 else int(nodes.max())
        raise MeshError(f"{path}: an element has the node {bad}, but there are {len(vtk.points)} points")
    for what, data, count in (("points", vtk.point_data, len(vtk.points)), ("cells", vtk.cell_data, len(vtk.types))):
        for name, values in data.items():
            if not values.ndim or len(values) != count:
                raise MeshError(f"{path}: data {name!r} of shape {values.shape} do not fit {count} {what}")


def _patches(path: str, vtk: VtkCells, patch: Array) -> dict[str, PatchFaces]:
    """Return the patches written as elements of their own."""
    known = by_code("vtk")
    text = b"" if vtk.patch_names is None else vtk.patch_names.tobytes()
    names = text.decode().split("\n") if text else []
    patches: dict[str, PatchFaces] = {}
    for number, name in enumerate(names):
        rows = np.flatnonzero(patch == number)
        blocks: dict[str, IntArray] = {}
        for code in dict.fromkeys(vtk.types[rows].tolist()):
            kind = known[code]
            blocks[kind.name] = _nodes(path, vtk, rows[vtk.types[rows] == code], kind.n_nodes)
        patches[name] = PatchFaces(blocks)
    return patches


def _nodes(path: str, vtk: VtkCells, rows: npt.NDArray[np.int64], width: int) -> IntArray:
    if (np.diff(vtk.offsets)[rows] != width).any():
        raise MeshError(f"{path}: an element has another number of nodes than its type; the file is damaged")
    return vtk.connectivity[vtk.offsets[rows][:, None] + np.arange(width)].astype(np.int32)


def _sized(name: str, data: npt.ArrayLike, n: int, what: str) -> Array:
    values = np.asarray(data)
    if values.ndim not in (1, 2) or len(values) != n:
        shapes = f"({n},) or ({n}, components)"
        raise MeshError(f"data {name!r} on {n} {what} must have shape {shapes}, got {values.shape}")
    return values.astype(np.uint8) if values.dtype == np.bool_ else values


def _padded(values: Array, n: int) -> Array:
    """Extend values over the elements of the patches: NaN, or 0 for integers."""
    fill = np.nan if np.issubdtype(values.dtype, np.floating) else 0
    out = np.full((n, *values.shape[1:]), fill, dtype=values.dtype)
    out[: len(values)] = values
    return out
