"""VTKHDF files: unstructured grids in HDF5, through h5py.

Source: VTK documentation, "VTKHDF file format", version 2.0, UnstructuredGrid; version 2.5 where there are polyhedra.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fluxloom.comm.disk import Disk
from fluxloom.core.advice import warn
from fluxloom.core.errors import MeshError
from fluxloom.core.packages import guarded, require
from fluxloom.core.sizes import check_stored
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.data.ragged import narrowed
from fluxloom.mesh.io.vtk.cells import PATCH_NAMES, VTK_POLYHEDRON, Array, Fields, VtkCells, from_vtk, to_vtk

__all__ = ["create_grid", "is_single", "open_grid", "patch_names", "read_vtkhdf", "write_vtkhdf"]

_VERSION, _POLYHEDRAL = (2, 0), (2, 5)
_NEEDED = ("Points", "Connectivity", "Offsets", "Types", "NumberOfPoints", "NumberOfCells", "NumberOfConnectivityIds")


def write_vtkhdf(
    path: str | Path,
    mesh: MeshData,
    *,
    cell_data: Mapping[str, npt.ArrayLike] | None = None,
    point_data: Mapping[str, npt.ArrayLike] | None = None,
    patches: bool | None = None,
    time: float | None = None,
    units: Mapping[str, str] | None = None,
) -> None:
    """Write a VTKHDF file.

    Parameters
    ----------
    path, mesh, cell_data, point_data, patches, time
        As in `fluxloom.mesh.io.vtk.vtu_writer.write_vtu`; with a time the file has one step in time.
    units
        Name of the values to their unit, the attribute ``units`` of their data sets.

    Raises
    ------
    MeshError
        For data of the wrong length, or when the file cannot be written.
    DeviceUnavailable
        When h5py is not installed.
    """
    h5py = require("h5py", "mesh", "writing VTKHDF files")
    vtk = to_vtk(mesh, cell_data, point_data, patches)
    try:
        # HDF5 crashes the process after a write of its own that has failed.
        disk = Disk(Path(path))
        with contextlib.closing(disk), h5py.File(disk, "w") as file:
            root = create_grid(file, len(vtk.points), len(vtk.types), len(vtk.connectivity))
            root["Points"] = vtk.points
            root["Connectivity"] = vtk.connectivity.astype(np.int64)
            root["Offsets"] = vtk.offsets
            root["Types"] = vtk.types
            if vtk.polyhedra is not None:
                from fluxloom.mesh.io.vtk.polyhedra import write_polyhedra

                root.attrs["Version"] = np.array(_POLYHEDRAL, dtype=np.int64)
                write_polyhedra(root, vtk.polyhedra, vtk.types)
            for group, data in (("PointData", vtk.point_data), ("CellData", vtk.cell_data)):
                target = root.create_group(group)
                for name, values in data.items():
                    target[name] = values
                    if unit := (units or {}).get(name):
                        target[name].attrs["units"] = unit
            if vtk.patch_names is not None:
                root.create_group("FieldData")[PATCH_NAMES] = vtk.patch_names
            if time is not None:
                _write_time(root, time)
        disk.check()
    except OSError as error:
        raise MeshError(f"{path}: cannot be written: {error.strerror or error}") from None


def _write_time(root: Any, time: float) -> None:
    """Say the time: as that of one step; of polyhedra, whose steps have more tables, as data of the field."""
    if "PolyhedronToFaces" in root:
        root.require_group("FieldData")["TimeValue"] = np.array([time])
        return
    steps = root.create_group("Steps")
    steps.attrs["NSteps"] = np.int64(1)
    steps["Values"] = np.array([time], dtype=np.float64)
    zero = np.zeros(1, dtype=np.int64)
    steps["NumberOfParts"] = zero + 1
    for name in ("PartOffsets", "PointOffsets"):
        steps[name] = zero
    for name in ("CellOffsets", "ConnectivityIdOffsets"):
        steps[name] = zero[:, None]
    for group in ("PointData", "CellData"):
        offsets = steps.create_group(f"{group}Offsets")
        for name in root[group]:
            offsets[name] = zero


def create_grid(file: Any, points: int, cells: int, connectivity: int) -> Any:
    """Begin an UnstructuredGrid in an empty HDF5 file: its group with the attributes and the three counts."""
    h5py = require("h5py", "mesh", "writing VTKHDF files")
    root = file.create_group("VTKHDF")
    root.attrs["Version"] = np.array(_VERSION, dtype=np.int64)
    kind = b"UnstructuredGrid"
    root.attrs.create("Type", kind, dtype=h5py.string_dtype("ascii", len(kind)))
    root["NumberOfPoints"] = np.array([points], dtype=np.int64)
    root["NumberOfCells"] = np.array([cells], dtype=np.int64)
    root["NumberOfConnectivityIds"] = np.array([connectivity], dtype=np.int64)
    return root


def read_vtkhdf(path: str | Path, *, step: int | None = None) -> Fields:
    """Read an UnstructuredGrid VTKHDF file.

    Parameters
    ----------
    path
        The file.
    step
        Of a file with several steps in time, the one to read, from 0; by default the last one.

    Returns
    -------
    Fields
        All parts as one mesh, with patches where the file has them, and its data.

    Raises
    ------
    MeshError
        When it is not such a file.
    DeviceUnavailable
        When h5py is not installed.
    """
    with open_grid(path) as root:
        from fluxloom.mesh.io.vtk.pieces import join_pieces

        vtk = join_pieces(path, _load(str(path), root, step))
    return from_vtk(str(path), vtk)


@contextlib.contextmanager
def open_grid(path: str | Path) -> Iterator[Any]:
    """Open the group of an UnstructuredGrid, after a look at what is there.

    Raises
    ------
    MeshError
        When it is not such a file.
    DeviceUnavailable
        When h5py is not installed.
    """
    h5py = require("h5py", "mesh", "reading VTKHDF files")
    if not Path(path).exists():
        raise MeshError(f"{path}: no such mesh file; check the path (relative to {Path.cwd()})")
    if Path(path).is_dir():
        raise MeshError(f"{path}: is a directory; name a mesh file")
    with guarded(f"{path}: not an HDF5 file, or damaged", "write it anew", MeshError), h5py.File(path, "r") as file:
        root = _root(str(path), file)
        check_stored(root)
        yield root


def _root(path: str, file: Any) -> Any:
    """Return the group of the grid in an open file."""
    root: Any = file.get("VTKHDF")
    if root is None:
        raise MeshError(f"{path}: there is no group VTKHDF; it is not a VTKHDF file")
    kind = root.attrs.get("Type", b"")
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind != "UnstructuredGrid":
        raise MeshError(f"{path}: VTKHDF type {kind!r} is not supported, only UnstructuredGrid")
    absent = [name for name in _NEEDED if name not in root]
    if absent:
        raise MeshError(f"{path}: the data set {absent[0]} is missing")
    return root


def is_single(root: Any) -> bool:
    """Return whether a grid has one part and at most one step in time."""
    return len(root["NumberOfCells"]) == 1 and ("Steps" not in root or int(root["Steps"].attrs["NSteps"]) == 1)


def patch_names(root: Any) -> npt.NDArray[np.uint8] | None:
    """Return the bytes of the names of patches, one a line; None where the file has none."""
    names = root["FieldData"].get(PATCH_NAMES) if "FieldData" in root else None
    return None if names is None else np.asarray(names).astype(np.uint8)


class _Step(NamedTuple):
    """Where a step begins in the data sets, and its parts."""

    parts: range
    points: int = 0
    cells: int = 0
    nodes: int = 0
    number: int = -1


def _step(path: str, root: Any, step: int | None) -> _Step:
    """Return the step that is wanted, of a grid without steps all of it."""
    steps = root.get("Steps")
    if steps is None:
        if step not in (None, 0):
            raise MeshError(f"{path}: there is no step {step}: the file has no steps in time")
        return _Step(range(len(root["NumberOfCells"])))
    count = int(steps.attrs["NSteps"])
    if step is None and count > 1:
        times = np.asarray(steps["Values"], dtype=np.float64)
        warn(
            f"{path}: the last of {count} steps is read (t = {times[-1]:g}); --step 0 ... {count - 1} chooses one"
        )
    number = count - 1 if step is None else step
    if not 0 <= number < count:
        raise MeshError(f"{path}: there is no step {number}; give --step 0 ... {count - 1}")

    def of(name: str, default: int) -> int:
        return int(np.asarray(steps[name]).reshape(count, -1)[number, 0]) if name in steps else default

    many = of("NumberOfParts", len(root["NumberOfCells"]) // (count if "PartOffsets" in steps else 1))
    first = of("PartOffsets", 0)
    return _Step(
        range(first, first + many), of("PointOffsets", 0), of("CellOffsets", 0), of("ConnectivityIdOffsets", 0), number
    )


def _load(path: str, root: Any, wanted: int | None) -> list[VtkCells]:
    """Return the arrays of all parts of a step of an open file."""
    from fluxloom.mesh.io.vtk.polyhedra import read_polyhedra

    text = patch_names(root)
    step = _step(path, root, wanted)
    counts = [np.asarray(root[f"NumberOf{what}"], dtype=np.int64) for what in ("Points", "Cells", "ConnectivityIds")]
    point, cell, node = step.points, step.cells, step.nodes
    polyhedra = read_polyhedra(root) if is_single(root) else None
    pieces = []
    for part in step.parts:
        points, cells, nodes = (int(values[part]) for values in counts)
        types = _rows(path, root, "Types", cell, cells).astype(np.uint8)
        if polyhedra is None and (types == VTK_POLYHEDRON).any():
            raise MeshError(
                f"{path}: polyhedra are read from files of one part without steps; save one step, merged"
            )
        data = [
            {
                name: _rows(path, root, f"{group}/{name}", _data_offset(root, group, name, step, start) + past, count)
                for name in root.get(group, {})
            }
            for group, start, past, count in (
                ("PointData", step.points, point - step.points, points),
                ("CellData", step.cells, cell - step.cells, cells),
            )
        ]
        pieces.append(
            VtkCells(
                points=_rows(path, root, "Points", point, points).astype(np.float64),
                connectivity=narrowed(_rows(path, root, "Connectivity", node, nodes)),
                offsets=_rows(path, root, "Offsets", cell + part, cells + 1).astype(np.int64),
                types=types,
                point_data=data[0],
                cell_data=data[1],
                patch_names=text,
                polyhedra=polyhedra,
            )
        )
        point, cell, node = point + points, cell + cells, node + nodes
    return pieces


def _rows(path: str, root: Any, name: str, start: int, count: int) -> Array:
    """Return rows of a data set."""
    found = np.asarray(root[name][start : start + count])
    if start < 0 or len(found) != count:
        raise MeshError(f"{path}: {name} has {len(root[name])} rows, {start + count} are wanted; the file is damaged")
    return found


def _data_offset(root: Any, group: str, name: str, step: _Step, start: int) -> int:
    """Return where the values of a step begin."""
    offsets = root.get(f"Steps/{group}Offsets")
    return start if step.number < 0 or offsets is None or name not in offsets else int(offsets[name][step.number])
