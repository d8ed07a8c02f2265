"""Writing VTU files: XML unstructured grids with raw appended binary data.

Source: VTK file formats, "XML file formats" (UnstructuredGrid, appended raw data, 64-bit block headers).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.io.vtk.cells import PATCH_NAMES, Array, to_vtk

__all__ = ["VTU_TYPES", "time_value", "write_vtu"]

VTU_TYPES = {"f2": "Float32", "f4": "Float32", "f8": "Float64"} | {
    f"{letter}{size}": f"{word}{8 * size}" for letter, word in (("i", "Int"), ("u", "UInt")) for size in (1, 2, 4, 8)
}
"""Types of NumPy, without the order of the bytes, to their names in VTK."""
_MARK = b'<AppendedData encoding="raw">'


def write_vtu(
    path: str | Path,
    mesh: MeshData,
    *,
    cell_data: Mapping[str, npt.ArrayLike] | None = None,
    point_data: Mapping[str, npt.ArrayLike] | None = None,
    patches: bool | None = None,
    time: float | None = None,
    units: Mapping[str, str] | None = None,
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
    time
        Of the values, seconds; ParaView shows it.
    units
        Name of the values to their unit; readers of VTK know it as ``vtkDataArray::UNITS_LABEL``.

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
    about = time_value(time) + ("" if vtk.patch_names is None else declare(PATCH_NAMES, vtk.patch_names))
    xml += f"<FieldData>\n{about}</FieldData>\n" if about else ""
    xml += f'<Piece NumberOfPoints="{len(vtk.points)}" NumberOfCells="{len(vtk.types)}">\n'
    xml += f"<Points>\n{declare('Points', vtk.points)}</Points>\n<Cells>\n"
    xml += declare("connectivity", vtk.connectivity) + declare("offsets", vtk.offsets[1:])
    xml += declare("types", vtk.types) + "</Cells>\n"
    for tag, data in (("PointData", vtk.point_data), ("CellData", vtk.cell_data)):
        xml += f"<{tag}>\n" + "".join(
            declare(name, values, (units or {}).get(name, "")) for name, values in data.items()
        ) + f"</{tag}>\n"
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


def time_value(time: float | None) -> str:
    """Return the array of ``<FieldData>`` by which readers of VTK know the time of a file; empty for None."""
    if time is None:
        return ""
    return f'<DataArray type="Float64" Name="TimeValue" NumberOfTuples="1" format="ascii">{time!r}</DataArray>\n'


class _Appended:
    """The arrays of a file in the order of their declaration."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.blocks: list[Array] = []
        self._offset = 0

    def declare(self, name: str, values: Array, unit: str = "") -> str:
        """Append an array and return its XML element."""
        if values.dtype.str[1:] not in VTU_TYPES:
            raise MeshError(f"{self.path}: data {name!r} have the type {values.dtype}, unknown to VTU files")
        values = np.ascontiguousarray(values, dtype=np.float32 if values.dtype == np.float16 else values.dtype)
        self.blocks.append(values)
        text = f'<DataArray type="{VTU_TYPES[values.dtype.str[1:]]}" Name={quoteattr(name)}'
        if values.ndim == 2:
            text += f' NumberOfComponents="{values.shape[1]}"'
        if name == PATCH_NAMES:
            text += f' NumberOfTuples="{len(values)}"'
        text += f' format="appended" offset="{self._offset}"'
        if unit:
            key = f'<InformationKey name="UNITS_LABEL" location="vtkDataArray">{escape(unit)}</InformationKey>'
            text += f">\n{key}\n</DataArray>\n"
        else:
            text += "/>\n"
        self._offset += 8 + values.nbytes
        return text
