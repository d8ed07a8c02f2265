"""Small mesh files as other programs write them: MSH texts, VTU pieces in every encoding, VTKHDF, STL, SU2."""

from __future__ import annotations

import base64
import lzma
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from fluxloom.core.packages import require

Piece = tuple[list[list[float]], list[list[int]], list[int], list[float]]
"""Points, nodes of cells, VTK types, cell data ``c``."""

LEFT: Piece = ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 3], [0, 3, 2]], [5, 5], [1.0, 2.0])
RIGHT: Piece = ([[1, 0, 0], [2, 0, 0], [1, 1, 0], [2, 1, 0]], [[0, 1, 3, 2]], [9], [3.0])
"""Two triangles, and a square to the right of them: three cells of area 2 on six points."""

_NAMES = {"f8": "Float64", "i8": "Int64", "u1": "UInt8"}
_PACK: dict[str, Callable[[bytes], bytes]] = {
    "vtkZLibDataCompressor": zlib.compress, "vtkLZMADataCompressor": lzma.compress,
}  # fmt: skip


def vtu(
    path: Path,
    pieces: Sequence[Piece],
    form: str = "ascii",
    packed: str = "",
    header: str = "UInt64",
    joint: bool = False,
) -> Path:
    """Write a VTU file: ``form`` ascii, binary, raw or base64; ``joint``: base64 of header and data as one."""
    appended = b""

    def block(values: np.ndarray) -> bytes:
        data, size = values.tobytes(), "<Q" if header == "UInt64" else "<I"
        if packed:
            halves = [part for part in (data[:16], data[16:]) if part]
            squeezed = [_PACK[packed](part) for part in halves]
            sizes = [len(halves), 16, len(halves[-1]) if len(halves) > 1 else 0, *map(len, squeezed)]
            head, data = b"".join(struct.pack(size, n) for n in sizes), b"".join(squeezed)
        else:
            head = struct.pack(size, len(data))
        if form == "raw":
            return head + data
        return base64.b64encode(head + data) if joint else base64.b64encode(head) + base64.b64encode(data)

    def array(name: str, kind: str, values: object, components: int = 1) -> bytes:
        nonlocal appended
        table = np.array(values, dtype=kind)
        head = f'<DataArray type="{_NAMES[kind]}" Name="{name}" NumberOfComponents="{components}" format="'
        if form == "ascii":
            return f'{head}ascii">{" ".join(repr(x) for x in table.reshape(-1).tolist())}</DataArray>'.encode()
        if form == "binary":
            return f'{head}binary">'.encode() + block(table) + b"</DataArray>"
        text = f'{head}appended" offset="{len(appended)}"/>'.encode()
        appended += block(table)
        return text

    body = b""
    for points, cells, types, values in pieces:
        flat = [node for cell in cells for node in cell]
        ends = np.cumsum([len(cell) for cell in cells])
        body += f'<Piece NumberOfPoints="{len(points)}" NumberOfCells="{len(cells)}"><Points>'.encode()
        body += array("Points", "f8", points, 3) + b"</Points><Cells>" + array("connectivity", "i8", flat)
        body += array("offsets", "i8", ends) + array("types", "u1", types) + b"</Cells><CellData>"
        body += array("c", "f8", values) + b"</CellData></Piece>"
    about = f' compressor="{packed}"' if packed else ""
    head = (
        f'<VTKFile type="UnstructuredGrid" byte_order="LittleEndian" header_type="{header}"{about}><UnstructuredGrid>'
    )
    foot = b"</UnstructuredGrid>"
    if form in ("raw", "base64"):
        foot += f'<AppendedData encoding="{form}">_'.encode() + appended + b"</AppendedData>"
    path.write_bytes(head.encode() + body + foot + b"</VTKFile>")
    return path


def vtkhdf(path: Path, steps: bool) -> Path:
    """Write the three cells: in two parts, or as one with two steps, the second of them moved by 5."""
    h5py = require("h5py", "mesh", "samples of VTKHDF files")
    points, cells = np.concatenate([LEFT[0], RIGHT[0]]), [2, 1]
    with h5py.File(path, "w") as file:
        root = file.create_group("VTKHDF")
        root.attrs["Version"], root.attrs["Type"] = [2, 0], np.bytes_("UnstructuredGrid")
        root["NumberOfPoints"], root["NumberOfCells"], root["NumberOfConnectivityIds"] = [4, 4], cells, [6, 4]
        root["Points"] = points
        root["Connectivity"], root["Offsets"] = [0, 1, 3, 0, 3, 2, 0, 1, 3, 2], [0, 3, 6, 0, 4]
        root["Types"], root["CellData/c"] = np.array([5, 5, 9], dtype=np.uint8), [1.0, 2.0, 3.0]
        if steps:
            group = root.create_group("Steps")
            group.attrs["NSteps"] = 2
            group["Values"], group["NumberOfParts"], group["PartOffsets"] = [0.5, 0.75], [1, 1], [0, 1]
            group["PointOffsets"], group["CellOffsets"], group["ConnectivityIdOffsets"] = [0, 4], [[0], [2]], [[0], [6]]
            group["CellDataOffsets/c"] = [0, 2]
    return path


SQUARE_POINTS = "1 0 0 {z}\n2 1 0 {z}\n3 1 1 {z}\n4 0 1 {z}\n5 0.5 0.5 {z}\n"
SQUARE_CELLS = "5 2 2 5 1 1 2 5\n6 2 2 5 1 2 3 5\n7 2 2 5 1 3 4 5\n8 2 2 5 1 4 1 5\n"
SQUARE_SIDES = "1 1 2 1 1 1 2\n2 1 2 2 2 2 3\n3 1 2 3 3 3 4\n4 1 2 4 4 4 1\n"


def msh2(
    sides: str = SQUARE_SIDES,
    cells: str = SQUARE_CELLS,
    z: str = "0",
    names: str = "",
    nodes: str = "$Nodes",
    more: str = "",
) -> str:
    """Return a square of four triangles, MSH 2.2, with the sides 1 to 4."""
    rows = SQUARE_POINTS.format(z=z) + more
    named = f"$PhysicalNames\n{names.count(chr(10))}\n{names}$EndPhysicalNames\n" if names else ""
    count = sides.count("\n") + cells.count("\n")
    number = rows.count("\n")
    return (
        f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n{named}{nodes}\n{number}\n{rows}$End{nodes[1:]}\n"
        f"$Elements\n{count}\n{sides}{cells}$EndElements\n"
    )


ENTITIES = """1 0 0 0 1 0 0 1 11 0
2 1 0 0 1 1 0 1 12 0
3 0 1 0 1 1 0 2 12 13 0
4 0 0 0 0 1 0 1 14 0
"""


def msh4(
    entities: str = ENTITIES, surface: str = "1 0 0 0 1 1 0 1 5 4 1 2 3 4\n", names: str = "", divided: str = ""
) -> str:
    """Return the same square, MSH 4.1; side 3 is in two groups."""
    named = f"$PhysicalNames\n{names.count(chr(10))}\n{names}$EndPhysicalNames\n" if names else ""
    lines = "".join(f"1 {tag} 1 1\n{tag} {a} {b}\n" for tag, a, b in ((1, 1, 2), (2, 2, 3), (3, 3, 4), (4, 4, 1)))
    points = "".join(f"{row.split(' ', 1)[1]}\n" for row in SQUARE_POINTS.format(z="0").splitlines())
    return (
        f"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n{named}$Entities\n0 4 1 0\n{entities}{surface}$EndEntities\n{divided}"
        f"$Nodes\n1 5 1 5\n2 1 0 5\n1\n2\n3\n4\n5\n{points}$EndNodes\n"
        f"$Elements\n5 8 1 8\n{lines}2 1 2 4\n5 1 2 5\n6 2 3 5\n7 3 4 5\n8 4 1 5\n$EndElements\n"
    )


SU2 = """NDIME= 2
NELEM= 1
9 0 1 2 3
NPOIN= 4
0 0
1 0
1 1
0 1
NMARK= 2
MARKER_TAG= wall
MARKER_ELEMS= 3
3 0 1
3 1 2
3 2 3
MARKER_TAG= in
MARKER_ELEMS= 1
3 3 0
"""


def cube(size: float = 1.25) -> np.ndarray:
    """Return the triangles of a cube from 0.25 on, outward, ``(12, 3, 3)``."""
    corners = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)]) * size + 0.25
    quads = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    return corners[[tri for a, b, c, d in quads for tri in ((a, b, c), (a, c, d))]]


def stl(number: str = "{:.6e}", name: str = "cube", end: str = "endsolid cube") -> str:
    """Return the cube as a text, numbers in a format."""
    facets = ""
    for triangle in cube():
        rows = "".join(f"vertex {' '.join(number.format(x) for x in corner)}\n" for corner in triangle)
        facets += f"facet normal 0 0 0\nouter loop\n{rows}endloop\nendfacet\n"
    return f"solid {name}\n{facets}{end}\n"
