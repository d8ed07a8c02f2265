"""VTKHDF files: unstructured grids in HDF5, through h5py.

Source: VTK documentation, "VTKHDF file format", version 2.0, UnstructuredGrid; version 2.5 where there are polyhedra.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.disk import Disk
from fluxloom.core.errors import MeshError
from fluxloom.core.optional import require
from fluxloom.mesh.io.vtk_cells import PATCH_NAMES, Array, Fields, VtkCells, from_vtk, to_vtk
from fluxloom.mesh.io.vtk_polyhedra import read_polyhedra, write_polyhedra
from fluxloom.mesh.mesh import MeshData

__all__ = ["create_grid", "open_grid", "read_vtkhdf", "write_vtkhdf"]

_VERSION, _POLYHEDRAL = (2, 0), (2, 5)
_NEEDED = ("Points", "Connectivity", "Offsets", "Types")


def write_vtkhdf(
    path: str | Path,
    mesh: MeshData,
    *,
    cell_data: Mapping[str, npt.ArrayLike] | None = None,
    point_data: Mapping[str, npt.ArrayLike] | None = None,
    patches: bool | None = None,
) -> None:
    """Write a VTKHDF file.

    Parameters
    ----------
    path, mesh, cell_data, point_data, patches
        As in `fluxloom.mesh.io.vtk.write_vtu`.

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
                root.attrs["Version"] = np.array(_POLYHEDRAL, dtype=np.int64)
                write_polyhedra(root, vtk.polyhedra, vtk.types)
            for group, data in (("PointData", vtk.point_data), ("CellData", vtk.cell_data)):
                target = root.create_group(group)
                for name, values in data.items():
                    target[name] = values
            if vtk.patch_names is not None:
                root.create_group("FieldData")[PATCH_NAMES] = vtk.patch_names
        disk.check()
    except OSError as error:
        raise MeshError(f"{path}: cannot be written: {error.strerror or error}") from None


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


def read_vtkhdf(path: str | Path) -> Fields:
    """Read an UnstructuredGrid VTKHDF file of one partition and one time.

    Returns
    -------
    Fields
        The mesh, with patches where the file has them, and its data.

    Raises
    ------
    MeshError
        When it is not such a file.
    DeviceUnavailable
        When h5py is not installed.
    """
    with open_grid(path) as root:
        vtk = _load(root)
    return from_vtk(str(path), vtk)


@contextlib.contextmanager
def open_grid(path: str | Path) -> Iterator[Any]:
    """Open the group of an UnstructuredGrid of one partition and one time, after a look at what is there.

    Raises
    ------
    MeshError
        When it is not such a file.
    DeviceUnavailable
        When h5py is not installed.
    """
    h5py = require("h5py", "mesh", "reading VTKHDF files")
    try:
        with h5py.File(path, "r") as file:
            yield _root(str(path), file)
    except FileNotFoundError:
        raise MeshError(f"{path}: no such mesh file; check the path (relative to {Path.cwd()})") from None
    except IsADirectoryError:
        raise MeshError(f"{path}: is a directory; name a mesh file") from None
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:  # h5py raises any of them
        raise MeshError(f"{path}: not an HDF5 file, or damaged: {error}") from None


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
    if len(root["NumberOfCells"]) != 1:
        count = len(root["NumberOfCells"])
        raise MeshError(f"{path}: the file holds {count} partitions or times; only files with one are read")
    return root


def _load(root: Any) -> VtkCells:
    """Return the arrays of an open file."""

    def section(name: str) -> dict[str, Array]:
        return {key: value[()] for key, value in root[name].items()} if name in root else {}

    names = section("FieldData").get(PATCH_NAMES)
    return VtkCells(
        points=np.asarray(root["Points"], dtype=np.float64),
        connectivity=np.asarray(root["Connectivity"]).astype(np.int32),
        offsets=np.asarray(root["Offsets"], dtype=np.int64),
        types=np.asarray(root["Types"], dtype=np.uint8),
        point_data=section("PointData"),
        cell_data=section("CellData"),
        patch_names=None if names is None else names.astype(np.uint8),
        polyhedra=read_polyhedra(root),
    )
