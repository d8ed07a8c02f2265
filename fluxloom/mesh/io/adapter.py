"""Every other format, through meshio."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.advice import warn
from fluxloom.core.errors import MeshError
from fluxloom.core.packages import guarded, require
from fluxloom.mesh.data.elements import ELEMENTS, element, face_name
from fluxloom.mesh.data.mesh import IntArray, MeshData
from fluxloom.mesh.io.meshio_texts import plain_text
from fluxloom.mesh.io.tables.collect import add_rows, cell_dimension, mesh_of, without_unused
from fluxloom.mesh.io.vtk.cells import REFERENCES, Fields

__all__ = ["meshio_suffixes", "read_meshio", "write_meshio"]

_WORDS = {"wedge": "prism"}
_LEFT_OUT = re.compile(r"skipping|discarding|can only write|only supports", re.IGNORECASE)
_TECPLOT, _BEYOND = (".dat", ".tec"), 9


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
    what = f"{path}: meshio cannot read the file"
    with (
        guarded(what, "save it as VTU, MSH 4.1 or SU2", MeshError, lambda: said.getvalue().split("Error: Couldn't")[0]),
        contextlib.redirect_stdout(said), contextlib.redirect_stderr(said),  # it prints, and ends the process
        plain_text(path) as plain,
    ):  # fmt: skip
        found = _read(meshio, plain)
        if "cannot handle" in said.getvalue():  # it prints so, and leaves the cells out
            raise MeshError(f"{path}: cells of a type that meshio leaves out; save it as VTU, MSH 4.1 or SU2")
        return _fields(str(path), found)


def _read(meshio: Any, path: Path) -> Any:
    """Read a file; some readers would look for ever for what is missing at the end of one."""
    suffix = path.suffix.lower()
    if suffix in _TECPLOT:
        with _EndingText(_Ending(io.FileIO(path)), encoding="utf-8", errors="replace") as text:
            return meshio.read(text, file_format="tecplot")
    if suffix == ".ply":
        with _Ending(io.FileIO(path)) as file:
            return meshio.read(file, file_format="ply")
    return meshio.read(path)


class _Ending(io.BufferedReader):
    """A file beyond whose end no lines are read: an `EOFError` where they are asked for."""

    beyond = 0

    def readline(self, size: int | None = -1) -> bytes:
        """Return the next line."""
        return _told(self, super().readline(size))


class _EndingText(io.TextIOWrapper):
    """The same, of a text."""

    beyond = 0

    def readline(self, size: int = -1) -> str:
        """Return the next line."""
        return _told(self, super().readline(size))


def _told(file: _Ending | _EndingText, line: Any) -> Any:
    """Return a line that was read; raise `EOFError` long after the last one."""
    file.beyond = 0 if line else file.beyond + 1
    if file.beyond > _BEYOND:
        raise EOFError("the file ends before all of its numbers")
    return line


def _fields(path: str, found: Any) -> Fields:
    """Return what meshio has read."""
    names = [_name(block) for block in found.cells]
    strange = [name for name in names if name not in ELEMENTS and not name.startswith("polygon")]
    if strange:
        raise MeshError(f"{path}: elements of type {strange[0]!r} are not supported; export linear elements")
    dimension = cell_dimension(path, names)
    parts: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        if element(name).dimension == dimension:
            parts.setdefault(name, []).append(index)
    cells = {name: np.concatenate([found.cells[k].data for k in indices]) for name, indices in parts.items()}
    order = [k for indices in parts.values() for k in indices]
    data = {key: np.concatenate([np.asarray(blocks[k]) for k in order]) for key, blocks in found.cell_data.items()}
    if any(block.type == "polygon" for block in found.cells) and not data:
        warn(f"{path}: values on polygons are not read; save them as VTU")
    points = np.asarray(found.points, dtype=np.float64)
    mesh, kept = without_unused(mesh_of(path, points, cells, _patches(found, names, dimension)))
    return Fields(mesh, {key: np.asarray(value)[kept] for key, value in found.point_data.items()}, data)


def _name(block: Any) -> str:
    """Return what elements of a block are called here."""
    name = str(block.type)
    if name == "polygon":
        return face_name(np.asarray(block.data).shape[1])
    return _WORDS.get(name, name)


def _patches(found: Any, names: list[str], dimension: int) -> dict[str, dict[str, IntArray]]:
    """Return the patches: cell sets where there are any, else reference numbers."""
    faces = [k for k, name in enumerate(names) if element(name).dimension == dimension - 1]
    patches: dict[str, dict[str, IntArray]] = {}
    for label, members in found.cell_sets.items():
        for k in faces:
            chosen = members[k]
            if chosen is not None and len(chosen) and not label.startswith("gmsh:"):
                add_rows(patches.setdefault(label, {}), names[k], found.cells[k].data[np.asarray(chosen)])
    if not patches:
        key = next((key for key in REFERENCES if key in found.cell_data), None)
        words = {int(number): word for word, (number, depth) in found.field_data.items() if depth == dimension - 1}
        for k in faces if key is not None else []:
            references = np.asarray(found.cell_data[key][k])
            for reference in np.unique(references).tolist():
                label = words.get(int(reference), str(reference))
                add_rows(patches.setdefault(label, {}), names[k], found.cells[k].data[references == reference])
    return patches


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
    if mesh.patches:
        kept = ", ".join(mesh.patches)
        warn(f"{path}: the patches ({kept}) are left out; .msh, .su2, .vtu and .vtkhdf files have them")
    said = io.StringIO()
    with (
        guarded(f"{path}: meshio cannot write the mesh", "write .vtu, .msh or .su2", MeshError, said.getvalue),
        contextlib.redirect_stdout(said), contextlib.redirect_stderr(said),
    ):  # fmt: skip
        meshio.Mesh(points, blocks, point_data=nodal, cell_data=split).write(path)
        if _LEFT_OUT.search(said.getvalue()):  # it prints so, and writes the rest
            raise MeshError(f"{path}: the format does not hold all cells ({', '.join(mesh.cells)}); write .vtu or .msh")
