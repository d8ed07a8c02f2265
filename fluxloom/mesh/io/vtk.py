"""VTU files: XML unstructured grids with raw appended binary data.

Source: VTK file formats, "XML file formats" (UnstructuredGrid, appended raw data, 64-bit block headers).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.io.scan import read_bytes
from fluxloom.mesh.io.vtk_cells import PATCH_NAMES, Array, Fields, VtkCells, from_vtk, to_vtk
from fluxloom.mesh.mesh import MeshData

__all__ = ["is_raw_vtu", "read_vtu", "write_vtu"]

_TYPES = {"f2": "Float32", "f4": "Float32", "f8": "Float64"} | {
    f"{letter}{size}": f"{word}{8 * size}" for letter, word in (("i", "Int"), ("u", "UInt")) for size in (1, 2, 4, 8)
}
_MARK = b'<AppendedData encoding="raw">'


def write_vtu(
    path: str | Path,
    mesh: MeshData,
    *,
    cell_data: Mapping[str, npt.ArrayLike] | None = None,
    point_data: Mapping[str, npt.ArrayLike] | None = None,
    patches: bool | None = None,
) -> None:
    """Write a VTU file.

    Parameters
    ----------
    path
        The file.
    mesh
        The mesh.
    cell_data, point_data
        Name to values, ``(n,)`` or ``(n, components)``; cells in global order.
    patches
        Whether the patches are written too, as elements with a ``patch`` number; by default only when there
        are no data (a mesh file rather than a snapshot).

    Raises
    ------
    MeshError
        For data of the wrong length or type, or when the file cannot be written.
    """
    if mesh.polyhedra is not None:
        raise MeshError(f"{path}: polyhedra are not written to VTU files; write a .vtkhdf file")
    vtk = to_vtk(mesh, cell_data, point_data, patches)
    body = _Appended(path)
    declare = body.declare
    order = "LittleEndian" if sys.byteorder == "little" else "BigEndian"
    xml = f'<?xml version="1.0"?>\n<VTKFile type="UnstructuredGrid" version="1.0" byte_order="{order}" '
    xml += 'header_type="UInt64">\n<UnstructuredGrid>\n'
    if vtk.patch_names is not None:
        xml += f"<FieldData>\n{declare(PATCH_NAMES, vtk.patch_names)}</FieldData>\n"
    xml += f'<Piece NumberOfPoints="{len(vtk.points)}" NumberOfCells="{len(vtk.types)}">\n'
    xml += f"<Points>\n{declare('Points', vtk.points)}</Points>\n<Cells>\n"
    xml += declare("connectivity", vtk.connectivity) + declare("offsets", vtk.offsets[1:])
    xml += declare("types", vtk.types) + "</Cells>\n"
    for tag, data in (("PointData", vtk.point_data), ("CellData", vtk.cell_data)):
        xml += f"<{tag}>\n" + "".join(declare(name, values) for name, values in data.items()) + f"</{tag}>\n"
    xml += "</Piece>\n</UnstructuredGrid>\n"
    try:
        with Path(path).open("wb") as file:
            file.write(xml.encode() + _MARK + b"_")
            for values in body.blocks:
                file.write(np.uint64(values.nbytes).tobytes())
                values.tofile(file)
            file.write(b"\n</AppendedData>\n</VTKFile>\n")
    except OSError as error:
        raise MeshError(f"{path}: cannot be written: {error.strerror or error}") from None


class _Appended:
    """The arrays of a file in the order of their declaration."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.blocks: list[Array] = []
        self._offset = 0

    def declare(self, name: str, values: Array) -> str:
        """Append an array and return its XML element."""
        if values.dtype.str[1:] not in _TYPES:
            raise MeshError(f"{self.path}: data {name!r} have the type {values.dtype}, unknown to VTU files")
        values = np.ascontiguousarray(values, dtype=np.float32 if values.dtype == np.float16 else values.dtype)
        self.blocks.append(values)
        text = f'<DataArray type="{_TYPES[values.dtype.str[1:]]}" Name={quoteattr(name)}'
        if values.ndim == 2:
            text += f' NumberOfComponents="{values.shape[1]}"'
        if name == PATCH_NAMES:
            text += f' NumberOfTuples="{len(values)}"'
        text += f' format="appended" offset="{self._offset}"/>\n'
        self._offset += 8 + values.nbytes
        return text


def is_raw_vtu(path: str | Path) -> bool:
    """Whether a VTU file has raw appended, uncompressed data (others go through meshio)."""
    head = read_bytes(path)
    return _MARK in head and b"compressor=" not in head[: head.find(b">", head.find(b"<VTKFile"))]


def read_vtu(path: str | Path) -> Fields:
    """Read a VTU file with raw appended data, as `write_vtu` writes it.

    Returns
    -------
    Fields
        The mesh, with patches where the file has them, and its data.

    Raises
    ------
    MeshError
        For other encodings, truncated files and unsupported cell types.
    """
    data = read_bytes(path)
    start = data.find(_MARK)
    if start < 0:
        raise MeshError(f"{path}: not a VTU file with raw appended data; convert it with meshio or ParaView")
    try:
        root = ElementTree.fromstring(data[:start] + b"</VTKFile>")
    except ElementTree.ParseError as error:
        raise MeshError(f"{path}: the XML header is damaged: {error}") from None
    raw = data.find(b"_", start + len(_MARK)) + 1
    piece = root.find(".//Piece")
    if piece is None:
        raise MeshError(f"{path}: there is no <Piece> in the file")
    order = "<" if root.get("byte_order") == "LittleEndian" else ">"
    header = 8 if root.get("header_type") == "UInt64" else 4

    def section(parent: ElementTree.Element, tag: str) -> dict[str, Array]:
        found = parent.find(tag)
        arrays = [] if found is None else found.findall("DataArray")
        try:
            return {item.get("Name", ""): _array(path, data, raw, item, order, header) for item in arrays}
        except ValueError as error:
            raise MeshError(f"{path}: the arrays of <{tag}> are damaged: {error}") from None

    grid = root.find("UnstructuredGrid")
    names = section(grid, "FieldData").get(PATCH_NAMES) if grid is not None else None
    points, cells = section(piece, "Points"), section(piece, "Cells")
    if not points or not {"connectivity", "offsets", "types"} <= cells.keys():
        raise MeshError(f"{path}: <Points> or <Cells> is incomplete")
    vtk = VtkCells(
        points=next(iter(points.values())).astype(np.float64),
        connectivity=cells["connectivity"].astype(np.int32),
        offsets=np.concatenate([[0], cells["offsets"]]).astype(np.int64),
        types=cells["types"].astype(np.uint8),
        point_data=section(piece, "PointData"),
        cell_data=section(piece, "CellData"),
        patch_names=None if names is None else names.astype(np.uint8),
    )
    return from_vtk(str(path), vtk)


def _array(path: str | Path, data: bytes, raw: int, item: ElementTree.Element, order: str, header: int) -> Array:
    """Return one appended array."""
    codes = {word: code for code, word in _TYPES.items() if code != "f2"}
    kind = item.get("type", "")
    if item.get("format") != "appended" or kind not in codes:
        raise MeshError(f"{path}: array {item.get('Name')!r} ({kind}, {item.get('format')}) is not raw appended data")
    start = raw + int(item.get("offset", "0"))
    size = int.from_bytes(data[start : start + header], "little" if order == "<" else "big")
    if start + header + size > len(data):
        raise MeshError(f"{path}: array {item.get('Name')!r} is cut off; the file is truncated")
    dtype = np.dtype(order + codes[kind])
    values = np.frombuffer(data, dtype, count=size // dtype.itemsize, offset=start + header)
    components = int(item.get("NumberOfComponents", "1"))
    return values.reshape(-1, components) if components > 1 else values
