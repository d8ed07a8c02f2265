"""Meshes as VTK's cell arrays, shared by the VTU and VTKHDF files.

Patches, when they are written, follow the cells as elements one dimension lower; the cell array ``patch``
holds -1 for cells and the patch's number for them, the field array ``patch_names`` the names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fluxloom.core.advice import warn
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import VTK_POLYGON, ElementType, by_code, element, face_name, vtk_order
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, Polyhedra

__all__ = [
    "PATCH",
    "PATCH_NAMES",
    "REFERENCES",
    "VTK_POLYHEDRON",
    "Fields",
    "VtkCells",
    "from_vtk",
    "nodes_of",
    "padded",
    "require_sound",
    "sized",
    "to_vtk",
]

PATCH = "patch"
PATCH_NAMES = "patch_names"
VTK_POLYHEDRON = 42
REFERENCES = ("gmsh:physical", "medit:ref", "CellEntityIds", "cell_tags", "nastran:ref", "patch")
"""Cell data by which other programs number the patches."""

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
    polyhedra
        Faces of the polyhedra, which are the cells of that type in their order.
    """

    points: FloatArray
    connectivity: IntArray
    offsets: npt.NDArray[np.int64]
    types: npt.NDArray[np.uint8]
    point_data: dict[str, Array]
    cell_data: dict[str, Array]
    patch_names: npt.NDArray[np.uint8] | None
    polyhedra: Polyhedra | None = None


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
    blocks, more = list(mesh.cells.items()), mesh.polyhedra
    values = {name: sized(name, data, mesh.n_cells, "cells") for name, data in (cell_data or {}).items()}
    nodal = {name: sized(name, data, mesh.n_points, "points") for name, data in (point_data or {}).items()}
    names, sides = None, []
    if patches or (patches is None and not values and not nodal and mesh.patches):
        mesh.require_names("a VTK file", lambda name: bool(name) and "\n" not in name)
        numbers = [np.full(mesh.n_cells, -1, dtype=np.int32)]
        for number, faces in enumerate(mesh.patches.values()):
            sides += list(faces.blocks.items())
            numbers.append(np.full(len(faces), number, dtype=np.int32))
        patch = np.concatenate(numbers)
        values = {name: padded(data, len(patch)) for name, data in values.items()}
        values[PATCH] = patch
        names = np.frombuffer("\n".join(mesh.patches).encode(), dtype=np.uint8)
    parts = [_rows(name, block) for name, block in blocks]
    if more is not None:
        nodes = more.nodes()
        parts.append((nodes.indices, nodes.counts, np.full(len(more), VTK_POLYHEDRON, dtype=np.uint8)))
    parts += [_rows(name, block) for name, block in sides]
    flat, types = np.concatenate([part[0] for part in parts]), np.concatenate([part[2] for part in parts])
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([part[1] for part in parts]))]).astype(np.int64)
    return VtkCells(points, flat, offsets, types, nodal, values, names, more)


def _rows(name: str, block: IntArray) -> tuple[IntArray, npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the nodes of a block in VTK's order, how many each element has, and its type."""
    count = len(block)
    widths = np.full(count, block.shape[1], dtype=np.int64)
    return vtk_order(name, block).reshape(-1), widths, np.full(count, element(name).vtk, dtype=np.uint8)


def from_vtk(path: str, vtk: VtkCells, *, unused: bool = True) -> Fields:
    """Return the mesh and data of a VTK file's arrays.

    The mesh has two dimensions when it has no 3D cells and lies in a plane. Voxels and pixels are hexahedra and
    quadrilaterals. Elements one dimension lower are patches, as `to_vtk` writes them or by numbers of other programs.

    Parameters
    ----------
    path, vtk
        The file and its arrays.
    unused
        Whether points stay that no cell has.

    Raises
    ------
    MeshError
        For cell types that are not linear elements, and arrays that do not fit each other.
    """
    from fluxloom.mesh.io.tables.collect import cell_dimension, mesh_of, without_unused

    require_sound(path, vtk)
    vtk = _without_voxels(vtk)
    known = by_code("vtk")
    codes = _codes(vtk)
    present, first = np.unique(codes, return_index=True)
    unknown = [int(code) for code in present if 0 < code < _WIDE and int(code) not in known]
    if unknown:
        raise MeshError(
            f"{path}: VTK cell type {unknown[0]} is not supported (known: {sorted(known)}); save linear cells: of "
            "strips and curved cells ParaView's filter Triangulate or Tessellate makes them"
        )
    patch, names = _patch_numbers(vtk)
    kinds = [(int(code), _kind(int(code))) for code in present[np.argsort(first)] if code > 0]
    dimension = 3 if vtk.polyhedra is not None else cell_dimension(path, [kind.name for _, kind in kinds])
    cells: dict[str, IntArray] = {}
    rows: list[npt.NDArray[np.int64]] = []
    sides = np.zeros(len(codes), dtype=bool)
    for code, kind in kinds:
        chosen = codes == code
        if kind.dimension == dimension and vtk.patch_names is not None and patch is not None:
            chosen &= patch < 0
        row = np.flatnonzero(chosen)
        if kind.dimension == dimension and len(row):
            cells[kind.name] = vtk_order(kind.name, nodes_of(path, vtk, row, kind.n_nodes))
            rows.append(row)
        sides |= chosen & (kind.dimension == dimension - 1)
    if vtk.polyhedra is not None:
        rows.append(np.flatnonzero(codes == 0))
    order = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    data = {k: v[order] for k, v in vtk.cell_data.items() if k != PATCH or vtk.patch_names is None}
    if patch is None and sides.any():
        warn(f"{path}: {int(sides.sum())} elements of {dimension - 1} dimensions are in no patch; they are left out")
    patches = {} if patch is None else _patches(path, vtk, codes, np.where(sides, patch, -1), names)
    mesh = mesh_of(path, vtk.points, cells, patches, vtk.polyhedra)
    if unused:
        return Fields(mesh, vtk.point_data, data)
    mesh, kept = without_unused(mesh)
    return Fields(mesh, {name: values[kept] for name, values in vtk.point_data.items()}, data)


_WIDE = 1000
"""From here on codes are those of polygons: this, and the number of nodes."""


_AS_BRICKS = {11: ("hexahedron", [0, 1, 3, 2, 4, 5, 7, 6]), 8: ("quad", [0, 1, 3, 2])}
"""Codes of voxels and pixels: what they are, and its nodes in theirs."""


def _without_voxels(vtk: VtkCells) -> VtkCells:
    """Return arrays with hexahedra for voxels and quadrilaterals for pixels."""
    for code, (name, order) in _AS_BRICKS.items():
        rows = np.flatnonzero(vtk.types == code)
        if len(rows):
            nodes, types = vtk.connectivity.copy(), vtk.types.copy()
            place = vtk.offsets[rows][:, None] + np.arange(len(order))
            types[rows] = element(name).vtk
            nodes[place] = nodes[np.minimum(place, len(nodes) - 1)][:, order]
            vtk = replace(vtk, connectivity=nodes, types=types)
    return vtk


def _patch_numbers(vtk: VtkCells) -> tuple[npt.NDArray[np.int64] | None, Mapping[int, str]]:
    """Return the number of the patch of each element, -1 for none, and the names by number."""
    if vtk.patch_names is not None:
        found = vtk.cell_data.get(PATCH)
        text = vtk.patch_names.tobytes().decode()
        names = dict(enumerate(text.split("\n"))) if text else {}
        return (None if found is None else found.astype(np.int64)), names
    key = next((key for key in REFERENCES if key in vtk.cell_data and vtk.cell_data[key].ndim == 1), None)
    return (None, {}) if key is None else (vtk.cell_data[key].astype(np.int64), {})


def _codes(vtk: VtkCells) -> npt.NDArray[np.int64]:
    """Return the type of each element: a number for polygons of each size (VTK has one for all), 0 for polyhedra."""
    codes = vtk.types.astype(np.int64)
    widths = np.diff(vtk.offsets)
    few = {3: element("triangle").vtk, 4: element("quad").vtk}
    polygons = codes == VTK_POLYGON
    codes[polygons] = _WIDE + widths[polygons]
    for width, code in few.items():
        codes[codes == _WIDE + width] = code
    if vtk.polyhedra is not None:
        codes[codes == VTK_POLYHEDRON] = 0
    return codes


def _kind(code: int) -> ElementType:
    return element(face_name(code - _WIDE)) if code >= _WIDE else by_code("vtk")[code]


def require_sound(path: str, vtk: VtkCells) -> None:
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


def _patches(
    path: str, vtk: VtkCells, codes: npt.NDArray[np.int64], patch: npt.NDArray[np.int64], names: Mapping[int, str]
) -> dict[str, dict[str, IntArray]]:
    """Return the patches written as elements of their own; ``patch`` is -1 for all others."""
    patches: dict[str, dict[str, IntArray]] = {name: {} for name in names.values()}
    for number in np.unique(patch[patch >= 0]).tolist():
        rows = np.flatnonzero(patch == number)
        for code in dict.fromkeys(codes[rows].tolist()):
            from fluxloom.mesh.io.tables.collect import add_rows

            kind, some = _kind(code), rows[codes[rows] == code]
            name = names.get(number, str(number))
            add_rows(patches.setdefault(name, {}), kind.name, nodes_of(path, vtk, some, kind.n_nodes))
    return patches


def nodes_of(path: str, vtk: VtkCells, rows: npt.NDArray[np.int64], width: int) -> IntArray:
    """Return the nodes ``(rows, width)`` of some elements, which all have so many."""
    if (np.diff(vtk.offsets)[rows] != width).any():
        raise MeshError(f"{path}: an element has another number of nodes than its type; the file is damaged")
    return vtk.connectivity[vtk.offsets[rows][:, None] + np.arange(width)].astype(np.int32)


def sized(name: str, data: npt.ArrayLike, n: int, what: str) -> Array:
    """Return values as an array that a VTK file can hold, refusing such as are not one row for each of ``n``."""
    values = np.asarray(data)
    if values.ndim not in (1, 2) or len(values) != n:
        shapes = f"({n},) or ({n}, components)"
        raise MeshError(f"data {name!r} on {n} {what} must have shape {shapes}, got {values.shape}")
    return values.astype(np.uint8) if values.dtype == np.bool_ else values


def padded(values: Array, n: int) -> Array:
    """Extend values over the elements of the patches: NaN, or 0 for integers."""
    fill = np.nan if np.issubdtype(values.dtype, np.floating) else 0
    out = np.full((n, *values.shape[1:]), fill, dtype=values.dtype)
    out[: len(values)] = values
    return out
