"""Reading VTU files: XML unstructured grids, of one piece or several, in every encoding that VTK writes but LZ4.

Source: VTK file formats, "XML file formats": inline text, inline base64, appended raw or base64; compressed in blocks,
whose sizes stand before them.
"""

from __future__ import annotations

import base64
import binascii
import lzma
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from fluxloom.core.advice import warn
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import Polyhedra
from fluxloom.mesh.data.ragged import narrowed
from fluxloom.mesh.io.tables.scan import read_bytes
from fluxloom.mesh.io.vtk.cells import PATCH_NAMES, VTK_POLYHEDRON, Array, Fields, VtkCells, from_vtk
from fluxloom.mesh.io.vtk.pieces import join_pieces
from fluxloom.mesh.io.vtk.polyhedra import polyhedra_of, polyhedra_of_stream
from fluxloom.mesh.io.vtk.vtu_writer import VTU_TYPES

__all__ = ["read_vtu"]

_CODES = {word: code for code, word in VTU_TYPES.items() if code != "f2"}
_UNPACK: Mapping[str, Callable[[], Any]] = {
    "vtkZLibDataCompressor": zlib.decompressobj,
    "vtkLZMADataCompressor": lzma.LZMADecompressor,
}
_APPENDED = b"<AppendedData"
_FACES = ("face_connectivity", "face_offsets", "polyhedron_to_faces", "polyhedron_offsets")


def read_vtu(path: str | Path) -> Fields:
    """Read a VTU file.

    Returns
    -------
    Fields
        All pieces as one mesh, with patches where the file has them, and its data.

    Raises
    ------
    MeshError
        For damaged and truncated files, unsupported cell types, and data compressed by LZ4.
    """
    data = read_bytes(path)
    start = data.find(_APPENDED)
    try:
        root = ElementTree.fromstring(data if start < 0 else data[:start] + b"</VTKFile>")
    except ElementTree.ParseError as error:
        raise MeshError(f"{path}: not a VTU file, or its XML is damaged or cut off: {error}") from None
    grid = root.find("UnstructuredGrid")
    if grid is None:
        raise MeshError(f"{path}: there is no <UnstructuredGrid> in the file; save an unstructured grid")
    pieces = [piece for piece in grid.findall("Piece") if piece.get("NumberOfCells", "").strip() != "0"]
    if not pieces:
        raise MeshError(f"{path}: there is no <Piece> with cells in the file")
    file = _File.of(str(path), root, data, start)
    names = _patch_names(file, grid)
    return from_vtk(str(path), join_pieces(path, [_piece(file, piece, names) for piece in pieces]), unused=False)


def _patch_names(file: _File, grid: ElementTree.Element) -> npt.NDArray[np.uint8] | None:
    for item in grid.findall("FieldData/DataArray"):
        if item.get("Name") == PATCH_NAMES:
            return file.array(item).astype(np.uint8)
    return None


def _piece(file: _File, piece: ElementTree.Element, names: npt.NDArray[np.uint8] | None) -> VtkCells:
    """Return the arrays of a piece."""
    points, cells = file.section(piece, "Points"), file.section(piece, "Cells")
    if not points or not {"connectivity", "offsets", "types"} <= cells.keys():
        raise MeshError(f"{file.path}: <Points> or <Cells> is incomplete")
    types = cells["types"].reshape(-1).astype(np.uint8)
    vtk = VtkCells(
        points=next(iter(points.values())).astype(np.float64),
        connectivity=narrowed(cells["connectivity"].reshape(-1)),
        offsets=np.concatenate([[0], cells["offsets"].reshape(-1)]).astype(np.int64),
        types=types,
        point_data=file.section(piece, "PointData"),
        cell_data=file.section(piece, "CellData"),
        patch_names=names,
        polyhedra=_polyhedra(file.path, types, cells),
    )
    for what, count in (("NumberOfPoints", len(vtk.points)), ("NumberOfCells", len(vtk.types))):
        said = piece.get(what, str(count)).strip()
        if said != str(count):
            raise MeshError(f"{file.path}: a piece says {what}={said!r}, and has {count}; the file is damaged")
    return vtk


def _polyhedra(path: str, types: npt.NDArray[np.uint8], cells: dict[str, Array]) -> Polyhedra | None:
    if not (types == VTK_POLYHEDRON).any():
        return None
    if cells.keys() >= set(_FACES):
        nodes, bounds, faces, offsets = (cells[name].reshape(-1).astype(np.int64) for name in _FACES)
        begin = np.zeros(1, dtype=np.int64)
        return polyhedra_of(path, types, nodes, np.append(begin, bounds), faces, np.append(begin, offsets))
    if not {"faces", "faceoffsets"} <= cells.keys():
        raise MeshError(f"{path}: there are polyhedra, but no faces of them; the file is damaged")
    stream, ends = (cells[name].reshape(-1).astype(np.int64) for name in ("faces", "faceoffsets"))
    return polyhedra_of_stream(path, stream, ends[types == VTK_POLYHEDRON])


@dataclass(frozen=True, eq=False)
class _File:
    """How a file encodes its arrays."""

    path: str
    order: str
    header: int
    compressor: str
    appended: bytes
    base64: bool

    @classmethod
    def of(cls, path: str, root: ElementTree.Element, data: bytes, start: int) -> _File:
        head = data[start : data.find(b">", start) + 1] if start >= 0 else b""
        begin = data.find(b"_", start + len(head)) + 1
        return cls(
            path,
            ">" if root.get("byte_order") == "BigEndian" else "<",
            8 if root.get("header_type") == "UInt64" else 4,
            root.get("compressor", ""),
            data[begin:] if start >= 0 else b"",
            b"base64" in head,
        )

    def section(self, parent: ElementTree.Element, tag: str) -> dict[str, Array]:
        """Return the arrays of numbers of a part of a piece."""
        found = parent.find(tag)
        arrays: dict[str, Array] = {}
        for item in [] if found is None else found:
            name = item.get("Name", "")
            if item.tag == "DataArray" and item.get("type") in _CODES:
                arrays[name] = self.array(item)
            elif item.tag in ("DataArray", "Array"):
                warn(f"{self.path}: the data {name!r} are of the type {item.get('type')}; they are left out")
        return arrays

    def array(self, item: ElementTree.Element) -> Array:
        """Return one array."""
        dtype = np.dtype(self.order + _CODES[item.get("type", "")])
        form, where = item.get("format", "ascii"), f"{self.path}: array {item.get('Name')!r}"
        try:
            if form == "ascii":
                words = (item.text or "").split()
                exact = np.float64 if dtype.kind == "f" else dtype
                values = np.array(words, dtype=exact) if words else np.empty(0, dtype=dtype)
            elif form == "binary":
                values = np.frombuffer(self._bytes((item.text or "").strip().encode(), 0, True), dtype)
            elif form == "appended":
                offset = int(item.get("offset", "0"))
                values = np.frombuffer(self._bytes(self.appended, offset, self.base64), dtype)
            else:
                raise MeshError(f"{where}: the format {form!r} is unknown; the file is damaged")
            components = int(item.get("NumberOfComponents", "1"))
            return values.reshape(-1, components) if components > 1 else values
        except (ValueError, OverflowError, binascii.Error, zlib.error, lzma.LZMAError) as error:
            raise MeshError(f"{where} is damaged or cut off: {error}") from None

    def _bytes(self, text: bytes, start: int, encoded: bool) -> bytes:
        """Return the bytes of one array that begins at a place."""
        if not self.compressor:
            head, begin = self._take(text, start, self.header, encoded)
            (size,) = self._sizes(head)
            marks = -self.header % 3
            if encoded and text[begin - marks : begin] != b"=" * marks:  # header and data are encoded as one
                return self._take(text, start, self.header + size, encoded)[0][self.header :]
            return self._take(text, begin, size, encoded)[0]
        if self.compressor not in _UNPACK:
            raise MeshError(
                f"{self.path}: compressed by {self.compressor}, which is not read; save it with ZLib, LZMA or no "
                "compression (ParaView: Save Data, Compressor Type)"
            )
        (count,) = self._sizes(self._take(text, start, self.header, encoded)[0])
        if count > len(text):
            raise ValueError(f"it has {count} blocks")
        head, begin = self._take(text, start, self.header * (3 + count), encoded)
        _, whole, last, *blocks = self._sizes(head)
        body = self._take(text, begin, sum(blocks), encoded)[0]
        sizes, ends = [whole] * count, np.cumsum([0, *blocks]).tolist()
        if last and sizes:
            sizes[-1] = last
        return b"".join(self._unpacked(body[ends[k] : ends[k + 1]], size) for k, size in enumerate(sizes))

    def _unpacked(self, block: bytes, size: int) -> bytes:
        """Return what a compressed block holds, which may be no longer than the file says."""
        unpacker = _UNPACK[self.compressor]()
        found = unpacker.decompress(block, size + 1)
        if len(found) > size or not unpacker.eof:
            raise ValueError(f"a block of {size} bytes is cut off, or longer")
        return found

    def _sizes(self, head: bytes) -> list[int]:
        return [int(size) for size in np.frombuffer(head, f"{self.order}u{self.header}")]

    @staticmethod
    def _take(text: bytes, start: int, size: int, encoded: bool) -> tuple[bytes, int]:
        """Return some bytes and where they end."""
        end = start + (-(-size // 3) * 4 if encoded else size)
        found = text[start:end]
        if len(found) < end - start:
            raise ValueError("the file is truncated")
        return (base64.b64decode(found)[:size], end) if encoded else (found, end)
