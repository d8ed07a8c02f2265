"""Every other format, through meshio."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.core.optional import require
from fluxloom.mesh.elements import ELEMENTS, element
from fluxloom.mesh.io.vtk_cells import Array, Fields
from fluxloom.mesh.mesh import IntArray, MeshData, MeshSource, PatchFaces

__all__ = ["meshio_suffixes", "read_meshio", "write_meshio"]

_WORDS = {"wedge": "prism"}
_REFERENCES = ("gmsh:physical", "medit:ref", "CellEntityIds", "cell_tags", "patch")


def meshio_suffixes() -> frozenset[str]:
    """Return the suffixes that meshio knows; empty when it is not installed."""
    try:
        import meshio  # optional
    except ImportError:
        return frozenset()
    return frozenset(meshio.extension_to_filetypes)


def read_meshio(path: str | Path) -> Fields:
    """Read any file that meshio reads.

    Boundary elements become patches by their reference number (physical group, Medit reference) or cell set.

    Raises
    ------
    MeshError
        When meshio cannot read the file, or it holds curved or polyhedral elements.
    DeviceUnavailable
        When meshio is not installed.
    """
    meshio = require("meshio", "mesh", f"reading {Path(path).suffix} files")
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):  # it prints, and ends the process
            found: Any = meshio.read(path)
    except (meshio.ReadError, OSError, ValueError, KeyError, SystemExit) as error:
        why = " ".join(said.getvalue().split()) if isinstance(error, SystemExit) else str(error)
        raise MeshError(f"{path}: meshio cannot read the file: {why}") from error
    names = [_WORDS.get(str(block.type), str(block.type)) for block in found.cells]
    strange = [name for name in names if name not in ELEMENTS]
    if strange:
        raise MeshError(f"{path}: elements of type {strange[0]!r} are not supported; export linear elements")
    dimension = max((element(name).dimension for name in names), default=0)
    points = np.asarray(found.points, dtype=np.float64)
    if dimension < 3 and points.shape[1] == 3 and not (points[:, 2] == 0.0).all():
        raise MeshError(f"{path}: a surface in space is not a mesh of cells; give plane (z = 0) or solid elements")
    if dimension < 2:
        raise MeshError(f"{path}: the file holds no cells of two or three dimensions")
    cells: dict[str, IntArray] = {}
    parts: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        if element(name).dimension == dimension:
            parts.setdefault(name, []).append(index)
    for name, indices in parts.items():
        cells[name] = np.concatenate([found.cells[k].data for k in indices]).astype(np.int32)
    order = [k for indices in parts.values() for k in indices]
    data = {key: np.concatenate([np.asarray(blocks[k]) for k in order]) for key, blocks in found.cell_data.items()}
    patches = _patches(found, names, dimension)
    mesh = MeshData(points[:, :dimension], cells, patches, MeshSource(str(path)))
    return Fields(mesh, {key: np.asarray(value) for key, value in found.point_data.items()}, data)


def _patches(found: Any, names: list[str], dimension: int) -> dict[str, PatchFaces]:
    """Return the patches: cell sets where there are any, else reference numbers."""
    faces = [k for k, name in enumerate(names) if element(name).dimension == dimension - 1]
    blocks: dict[str, dict[str, list[Array]]] = {}
    for label, members in found.cell_sets.items():
        for k in faces:
            chosen = members[k]
            if chosen is not None and len(chosen) and not label.startswith("gmsh:"):
                rows = found.cells[k].data[np.asarray(chosen)]
                blocks.setdefault(label, {}).setdefault(names[k], []).append(rows)
    if not blocks:
        key = next((key for key in _REFERENCES if key in found.cell_data), None)
        words = {int(number): word for word, (number, depth) in found.field_data.items() if depth == dimension - 1}
        for k in faces if key is not None else []:
            references = np.asarray(found.cell_data[key][k])
            for reference in np.unique(references).tolist():
                label = words.get(int(reference), str(reference))
                rows = found.cells[k].data[references == reference]
                blocks.setdefault(label, {}).setdefault(names[k], []).append(rows)
    result: dict[str, PatchFaces] = {}
    for label, kinds in blocks.items():
        result[label] = PatchFaces({kind: np.concatenate(rows).astype(np.int32) for kind, rows in kinds.items()})
    return result


def write_meshio(
    path: str | Path,
    mesh: MeshData,
    *,
    cell_data: Mapping[str, npt.ArrayLike] | None = None,
    point_data: Mapping[str, npt.ArrayLike] | None = None,
) -> None:
    """Write any file that meshio writes: cells and data, without patches.

    Raises
    ------
    MeshError
        When meshio cannot write the mesh in that format.
    DeviceUnavailable
        When meshio is not installed.
    """
    mesh.require_elements(f"a {Path(path).suffix} file")
    meshio = require("meshio", "mesh", f"writing {Path(path).suffix} files")
    words = {ours: theirs for theirs, ours in _WORDS.items()}
    points = np.zeros((mesh.n_points, 3))
    points[:, : mesh.dimension] = mesh.points
    blocks = [(words.get(name, name), block) for name, block in mesh.cells.items()]
    ranges = mesh.cell_ranges.values()
    split = {
        key: [np.asarray(values)[numbers.start : numbers.stop] for numbers in ranges]
        for key, values in (cell_data or {}).items()
    }
    nodal = {key: np.asarray(values) for key, values in (point_data or {}).items()}
    try:
        meshio.Mesh(points, blocks, point_data=nodal, cell_data=split).write(path)
    except (meshio.WriteError, OSError, ValueError) as error:
        raise MeshError(f"{path}: meshio cannot write the mesh: {error}") from error
