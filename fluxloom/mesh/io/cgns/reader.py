"""CGNS files: unstructured and structured zones, in HDF5 and in ADF.

Boundary conditions become patches, under the name of their family or their own; sections of faces that no boundary
condition names are patches too. Zones are joined at matching interfaces.

Source: CGNS "Standard Interface Data Structures" (SIDS), version 4.4.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from fluxloom.core.errors import MeshError
from fluxloom.core.sizes import expanded
from fluxloom.mesh.data.mesh import MeshData, MeshSource, Polyhedra
from fluxloom.mesh.io.cgns.adf import is_adf, read_adf
from fluxloom.mesh.io.cgns.boundary import add_boundary
from fluxloom.mesh.io.cgns.hdf5 import is_hdf5, open_hdf5
from fluxloom.mesh.io.cgns.join import merge_points
from fluxloom.mesh.io.cgns.structured import read_structured
from fluxloom.mesh.io.cgns.tree import Node
from fluxloom.mesh.io.cgns.unstructured import read_unstructured
from fluxloom.mesh.io.cgns.zone import Blocks, Index, NodeSet, Zone, families
from fluxloom.mesh.io.tables.collect import add_faces, mesh_of

__all__ = ["open_cgns", "read_cgns"]

_MOST = np.iinfo(np.int32).max


def read_cgns(path: str | Path, *, zone: str | int | None = None) -> MeshData:
    """Read a CGNS mesh.

    Parameters
    ----------
    path
        A ``.cgns`` file (or ``.cgns.gz``): HDF5, which needs h5py, or ADF.
    zone
        Name of the ``CGNSBase_t`` to read, when the file has several, or of one ``Zone_t`` of the only base.

    Returns
    -------
    MeshData
        The cells of all zones; points that no cell uses are dropped. Cells given by their faces are elements where they
        can be, else polyhedra. A plane mesh in space loses the axis along which
        it has no extent. The sides of a periodic interface are two patches with the names of its nodes.

    Raises
    ------
    MeshError
        For a damaged file, curved elements, interfaces that do not match, and links to other files.
    DeviceUnavailable
        For HDF5 when h5py is not installed.
    """
    with open_cgns(path) as root:
        chosen, wanted = _base(root, None if zone is None else str(zone))
        dimension = int(chosen.integers(2)[0])
        if dimension not in (2, 3):
            raise MeshError(f"{chosen.where}: cells of {dimension} dimensions are not supported, only 2 and 3")
        below = families(chosen)
        zones = [_zone(node, dimension, below) for node in chosen.all("Zone_t") if wanted in (None, node.name)]
    if not zones:
        raise MeshError(f"{chosen.where}: the base holds no zones")
    return _assemble(str(path), zones, dimension)


@contextlib.contextmanager
def open_cgns(path: str | Path) -> Iterator[Node]:
    """Open the tree of a CGNS file; its arrays can be read until it is closed.

    Raises
    ------
    MeshError
        When it is not such a file.
    DeviceUnavailable
        For HDF5 when h5py is not installed.
    """
    place = Path(path)
    try:
        with place.open("rb") as file:
            head = file.read(64)
            content = None
            if head[:2] == b"\x1f\x8b":
                content = _expanded(path, head + file.read())
                head = content[:64]
            if is_hdf5(head):
                with open_hdf5(place, content) as root:
                    yield root
                return
            if not is_adf(head):
                raise MeshError(f"{path}: not a CGNS file: neither HDF5 nor ADF")
            if content is None:
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            yield read_adf(str(path), content)
    except FileNotFoundError:
        raise MeshError(f"{path}: no such mesh file; check the path (relative to {Path.cwd()})") from None
    except OSError as error:
        raise MeshError(f"{path}: cannot be read: {error}") from None


def _expanded(path: str | Path, data: bytes) -> bytes:
    """Return what a compressed file holds."""
    try:
        return expanded(data)
    except ValueError as error:
        raise MeshError(f"{path}: cannot be read: {error}") from None


def _base(root: Node, name: str | None) -> tuple[Node, str | None]:
    """Return the base with a name, or the only one, and of this the zone with the name."""
    bases = {node.name: node for node in root.all("CGNSBase_t")}
    known = ", ".join(bases) or "none"
    if name in bases:
        return bases[name], None
    if len(bases) != 1:
        missing = "one of them is wanted" if name is None else f"no base {name!r}"
        raise MeshError(
            f"{root.where}: {missing} (bases: {known}); give --zone NAME, [mesh] zone = NAME, or zone=NAME in Python"
        )
    base = next(iter(bases.values()))
    zones = [node.name for node in base.all("Zone_t")]
    if name is not None and name not in zones:
        raise MeshError(f"{root.where}: no base or zone {name!r} (base: {known}; zones: {', '.join(zones) or 'none'})")
    return base, name


def _zone(node: Node, dimension: int, below: Mapping[str, str]) -> Zone:
    kind = node.first("ZoneType_t")
    word = "Structured" if kind is None else kind.text()
    if word == "Unstructured":
        return read_unstructured(node, dimension, below)
    zone = read_structured(node, below)
    if len(zone.counts) != dimension:
        raise MeshError(f"{node.where}: a zone of {len(zone.counts)} axes in a base of {dimension} dimensions")
    return zone


def _assemble(path: str, zones: list[Zone], dimension: int) -> MeshData:
    """Return the mesh of all zones."""
    widths = {zone.points.shape[1] for zone in zones}
    if max(widths) < dimension:
        raise MeshError(f"{path}: solid cells need three coordinates")
    if len(widths) != 1:
        raise MeshError(f"{path}: some zones have two coordinates and some three")
    kept, number = merge_points(path, zones)
    joined = len(kept) < len(number)
    points, used = np.concatenate([zone.points for zone in zones])[kept], np.zeros(len(kept), dtype=bool)
    numbers = np.split(number, np.cumsum([len(zone.points) for zone in zones])[:-1])
    for zone, own in zip(zones, numbers, strict=True):
        for block in zone.cells.values():
            used[own[block]] = True
        if zone.polyhedra is not None:
            used[own[zone.polyhedra.faces.indices]] = True
    place = np.where(used, np.cumsum(used) - 1, -1)
    numbers = [place[own] for own in numbers]
    cells = _gathered([{"cells": zone.cells} for zone in zones], numbers)["cells"]
    listed = _gathered([zone.patches for zone in zones], numbers)
    others = [zone.polyhedra.renamed(own) for zone, own in zip(zones, numbers, strict=True) if zone.polyhedra]
    more = Polyhedra.joined(others) if others else None
    if max([len(points), *(len(block) for block in cells.values()), len(more or ())]) > _MOST:
        raise MeshError(f"{path}: more than {_MOST} points or cells are not supported")
    mesh = mesh_of(path, points[used], cells, {} if joined else listed, more)
    if len(zones) == 1:
        mesh = replace(mesh, source=MeshSource(path, 0, zones[0].numbers))
    sets = [NodeSet(item.name, own[item.nodes]) for zone, own in zip(zones, numbers, strict=True) for item in zone.sets]
    # A joint may carry a boundary condition too: of all faces of joined zones only those on the boundary count.
    return add_boundary(mesh, listed if joined else {}, sets, _gathered([zone.sections for zone in zones], numbers))


def _gathered(parts: list[dict[str, Blocks]], numbers: list[Index]) -> dict[str, Blocks]:
    """Return the blocks of all zones by name; ``numbers`` are what the points of each zone are called in the mesh."""
    found: dict[str, Blocks] = {}
    for part, own in zip(parts, numbers, strict=True):
        for name, blocks in part.items():
            add_faces(found, name, {kind: own[block] for kind, block in blocks.items()})
    return found
