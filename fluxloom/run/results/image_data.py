"""Image data of VTK: values of the cells of a box, as ParaView reads them.

VTK XML, type ``ImageData``, with raw appended data (VTK file formats, section "XML file formats"): after the underscore
each array is its length in bytes (64 bits) and its values, little-endian, x fastest. Files of this form are read too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import FluxloomError, MeshError
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.generate.boxes import box2d, box3d
from fluxloom.mesh.io.vtk.vtu_writer import time_value
from fluxloom.run.results.files import atomic

__all__ = ["read_image", "write_image"]

_TYPES = {"f4": "Float32", "f8": "Float64", "i1": "Int8", "u1": "UInt8", "i2": "Int16", "i4": "Int32", "i8": "Int64"}
_KINDS = {name: f"<{kind}" for kind, name in _TYPES.items()}


def write_image(
    path: Path,
    fields: Mapping[str, npt.NDArray[Any]],
    *,
    origin: Sequence[float],
    spacing: float,
    time: float | None = None,
) -> None:
    """Write a file ``.vti``, whole or not at all.

    Parameters
    ----------
    path
        The file.
    fields
        By name: scalars ``(ny, nx)`` or ``(nz, ny, nx)``; vectors have one axis more, with their components x first.
        All have the same cells; the first is a scalar.
    origin
        The lower corner of the box, x first.
    spacing
        Size of a cell.
    time
        Of the values, seconds.

    Raises
    ------
    FluxloomError
        If the fields do not fit each other, have a type that VTK does not know, or the file cannot be written.
    """
    if not fields:
        raise FluxloomError(f"{path}: there are no fields to write")
    shape = next(iter(fields.values())).shape
    arrays = {name: _array(path, name, np.asarray(values), shape) for name, values in fields.items()}
    ends = " ".join(f"0 {n}" for n in (*shape[::-1], *(1,) * (3 - len(shape))))
    corner = " ".join(f"{x:.17g}" for x in (*origin, *(0.0,) * (3 - len(origin))))
    lines, offset = [], 0
    for name, values in arrays.items():
        components = 3 if values.ndim > len(shape) else 1
        lines.append(
            f'        <DataArray type="{_TYPES[values.dtype.str[1:]]}" Name={quoteattr(name)} '
            f'NumberOfComponents="{components}" format="appended" offset="{offset}"/>'
        )
        offset += 8 + values.nbytes
    text = "\n".join(lines)
    about = f"    <FieldData>\n{time_value(time)}    </FieldData>\n" if time is not None else ""
    head = f"""<?xml version="1.0"?>
<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
  <ImageData WholeExtent="{ends}" Origin="{corner}" Spacing="{spacing:.17g} {spacing:.17g} {spacing:.17g}">
{about}    <Piece Extent="{ends}">
      <CellData>
{text}
      </CellData>
    </Piece>
  </ImageData>
  <AppendedData encoding="raw">
   _"""
    with atomic(path) as temporary, temporary.open("wb") as file:
        file.write(head.encode())
        for values in arrays.values():
            file.write(np.uint64(values.nbytes).astype("<u8").tobytes())
            values.tofile(file)
        file.write(b"\n  </AppendedData>\n</VTKFile>\n")


def _array(path: Path, name: str, values: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return values as they are written: contiguous, little-endian, vectors with three components."""
    d = len(shape)
    if values.dtype == np.bool_:
        values = values.astype(np.uint8)
    vector = values.ndim == d + 1 and values.shape[-1] in (2, 3)
    if values.shape[:d] != shape or not (values.ndim == d or vector) or d not in (2, 3):
        raise FluxloomError(f"{path}: field {name!r} has the shape {values.shape}, the first one has {shape}")
    if values.dtype.str[1:] not in _TYPES:
        raise FluxloomError(f"{path}: field {name!r} has the type {values.dtype}, which VTK does not know")
    if vector and values.shape[-1] == 2:
        values = np.concatenate([values, np.zeros((*shape, 1), dtype=values.dtype)], axis=-1)
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))


def read_image(path: Path) -> tuple[MeshData, dict[str, npt.NDArray[Any]]]:
    """Read a file as `write_image` writes it: its cells as a mesh, and fields ``(cells,)`` or ``(cells, 3)``.

    Raises
    ------
    MeshError
        If the file is damaged, or of another form.
    """
    data = path.read_bytes()
    head, mark, values = data.partition(b'<AppendedData encoding="raw">')
    start = len(head) + len(mark) + values.find(b"_") + 1
    try:
        image = ElementTree.fromstring(head + b"</VTKFile>").find("ImageData")
        if image is None or not mark:
            raise ValueError("there is no ImageData with raw appended data")
        ends, corner, spacing = (
            [float(text) for text in image.attrib[key].split()] for key in ("WholeExtent", "Origin", "Spacing")
        )
        counts = [int(high - low) for low, high in zip(ends[::2], ends[1::2], strict=True)]
        arrays = {
            element.attrib["Name"]: (int(element.attrib["offset"]), _KINDS[element.attrib["type"]],
                                     int(element.get("NumberOfComponents", "1")))
            for element in image.iterfind("Piece/CellData/DataArray")
        }  # fmt: skip
        found: dict[str, npt.NDArray[Any]] = {}
        for name, (offset, kind, components) in arrays.items():
            size = int.from_bytes(data[start + offset : start + offset + 8], "little")
            field = np.frombuffer(data, kind, size // np.dtype(kind).itemsize, start + offset + 8)
            found[name] = field.reshape(-1, components) if components > 1 else field
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise MeshError(f"{path}: is damaged, or no image data of fluxloom ({error})") from None
    lengths = [n * size for n, size in zip(counts, spacing, strict=True)]
    if ends[4:] == [0.0, 1.0] and all(field.shape[0] == counts[0] * counts[1] for field in found.values()):
        return box2d(counts[0], counts[1], lengths[:2], origin=corner[:2]), found
    return box3d(counts[0], counts[1], counts[2], lengths, origin=corner), found
