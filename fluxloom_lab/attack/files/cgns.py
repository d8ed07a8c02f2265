"""Writers of small CGNS files: trees of tuples in HDF5 and in ADF."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fluxloom.core.packages import require
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.geometry.connectivity import connectivity

Tree = tuple[Any, ...]
"""Name, label, data (None, text, or an array with its axes reversed), children."""

CODES = {"line": 3, "triangle": 5, "quad": 7, "tetra": 10, "pyramid": 12, "prism": 14, "hexahedron": 17}
TYPES = {"i4": "I4", "i8": "I8", "f4": "R4", "f8": "R8", "S1": "C1"}


def node(name: str, label: str, data: Any = None, *children: Tree) -> Tree:
    """Return a node: name, label, data, children."""
    if isinstance(data, str):
        data = np.frombuffer(data.encode(), dtype="S1")
    elif data is not None:
        data = np.ascontiguousarray(data)
        data = data if data.dtype.kind == "f" or data.dtype == "i8" else data.astype("i4")
    return (name, label, data, children)


def file_of(*bases: Tree) -> Tree:
    """Return the root of a file with its bases."""
    version = node("CGNSLibraryVersion", "CGNSLibraryVersion_t", np.array([4.2], dtype="f4"))
    return node("root", "Root Node", None, version, *bases)


def base(dimension: int, *children: Tree, physical: int | None = None, name: str = "Base") -> Tree:
    """Return a base with its zones."""
    return node(name, "CGNSBase_t", [dimension, physical or dimension], *children)


def grid(points: np.ndarray, *more: Tree, shape: tuple[int, ...] | None = None) -> Tree:
    """Return the coordinates of points."""
    axes = [
        node(f"Coordinate{axis}", "DataArray_t", values.reshape(shape or -1))
        for axis, values in zip("XYZ", points.T, strict=False)
    ]
    return node("GridCoordinates", "GridCoordinates_t", None, *axes, *more)


def unstructured(name: str, points: np.ndarray, cells: int, *children: Tree) -> Tree:
    """Return an unstructured zone."""
    kind = node("ZoneType", "ZoneType_t", "Unstructured")
    return node(name, "Zone_t", [[len(points)], [cells], [0]], kind, grid(points), *children)


def section(name: str, code: int, first: int, count: int, nodes: Any, *more: Tree) -> Tree:
    """Return a section of elements."""
    return node(
        name, "Elements_t", [code, 0], node("ElementRange", "IndexRange_t", [first, first + count - 1]),
        node("ElementConnectivity", "DataArray_t", np.asarray(nodes).reshape(-1)), *more,
    )  # fmt: skip


def condition(name: str, child: str, numbers: Any, place: str = "", family: str = "") -> Tree:
    """Return a boundary condition of faces or points."""
    label = "IndexRange_t" if "Range" in child else "IndexArray_t"
    parts = [node(child, label, numbers)]
    parts += [node("GridLocation", "GridLocation_t", place)] if place else []
    parts += [node("FamilyName", "FamilyName_t", family)] if family else []
    return node(name, "BC_t", "BCWall", *parts)


def conditions(*children: Tree) -> Tree:
    """Return the boundary conditions of a zone."""
    return node("ZoneBC", "ZoneBC_t", None, *children)


def sections_of(mesh: MeshData) -> tuple[list[Tree], dict[str, tuple[int, int]]]:
    """Return sections of cells and of the faces of patches, and the first and last number of each section."""
    parts = list(mesh.cells.items())
    parts += [
        (f"{name}\0{kind}", block) for name, faces in mesh.patches.items() for kind, block in faces.blocks.items()
    ]
    found, ranges, first = [], {}, 1
    for key, block in parts:
        name, _, kind = key.partition("\0")
        title = name if kind in ("", "line") else f"{name} {kind}"
        found.append(section(title, CODES[kind or name], first, len(block), block + 1))
        ranges[title] = (first, first + len(block) - 1)
        first += len(block)
    return found, ranges


def mixed_section(mesh: MeshData, *, offsets: bool) -> Tree:
    """Return one mixed section of all cells, of alternating types."""
    rows = [
        (CODES[kind], *(row + 1))
        for kind, block in mesh.cells.items()
        for row in block.tolist()
        for row in [np.array(row)]
    ]
    order = np.argsort(np.arange(len(rows)) % 3, kind="stable")
    rows = [rows[k] for k in order]
    more = []
    if offsets:
        more = [node("ElementStartOffset", "DataArray_t", np.cumsum([0, *map(len, rows)]))]
    return section("Cells", 20, 1, len(rows), np.concatenate(rows), *more)


def polyhedral_sections(mesh: MeshData, *, offsets: bool) -> list[Tree]:
    """Return faces as polygons, and cells by their faces."""
    links = connectivity(mesh)
    faces = [*links.interior_nodes, *links.boundary_nodes]
    cells: list[list[int]] = [[] for _ in range(mesh.n_cells)]
    for number, (owner, neighbour) in enumerate(links.interior_cells.tolist()):
        cells[owner].append(number + 1)
        cells[neighbour].append(-number - 1)
    for number, owner in enumerate(links.boundary_cells.tolist()):
        cells[owner].append(links.n_interior + number + 1)
    tables = [("Faces", 22, 1, [(face + 1).tolist() for face in faces]), ("Cells", 23, len(faces) + 1, cells)]
    found = []
    for name, code, first, rows in tables:
        if offsets:
            starts = node("ElementStartOffset", "DataArray_t", np.cumsum([0, *map(len, rows)]))
            found.append(section(name, code, first, len(rows), np.concatenate(rows), starts))
        else:
            flat = np.concatenate([[len(row), *row] for row in rows])
            found.append(section(name, code, first, len(rows), flat))
    return found


def structured(name: str, points: np.ndarray, counts: tuple[int, ...], *children: Tree) -> Tree:
    """Return a structured zone; ``points`` with the first index running fastest."""
    sizes = [list(counts), [n - 1 for n in counts], [0] * len(counts)]
    return node(name, "Zone_t", sizes, grid(points, shape=counts[::-1]), *children)


def lattice(counts: tuple[int, ...], origin: tuple[float, ...] = (0.0, 0.0, 0.0)) -> np.ndarray:
    """Return the points of unit cubes, the first index running fastest."""
    mesh = np.meshgrid(*(np.arange(n, dtype=float) for n in counts[::-1]), indexing="ij")
    return np.stack([part.reshape(-1) for part in mesh[::-1]], axis=1) + np.array(origin[: len(counts)])


def one_to_one(donor: str, here: Any, there: Any, turn: Any, *more: Tree) -> Tree:
    """Return an interface between the faces of two structured zones."""
    return node(
        f"to {donor}", "GridConnectivity1to1_t", donor, node("PointRange", "IndexRange_t", here),
        node("PointRangeDonor", "IndexRange_t", there), node("Transform", '"int[IndexDimension]"', turn), *more,
    )  # fmt: skip


def interfaces(*children: Tree) -> Tree:
    """Return the interfaces of a zone."""
    return node("ZoneGridConnectivity", "ZoneGridConnectivity_t", None, *children)


PERIODIC = node(
    "GridConnectivityProperty", "GridConnectivityProperty_t", None,
    node("Periodic", "Periodic_t", None, node("Translation", "DataArray_t", np.array([1.0, 0.0]))),
)  # fmt: skip


def write_hdf5(path: Path, tree: Tree) -> Path:
    """Write a tree as HDF5."""
    h5py = require("h5py", "mesh", "samples of CGNS files")

    def add(group: Any, item: Tree) -> None:
        name, label, data, children = item
        group.attrs["name"], group.attrs["label"] = np.bytes_(name), np.bytes_(label)
        group.attrs["type"] = np.bytes_("MT" if data is None else TYPES[data.dtype.str[1:]])
        if data is not None:
            group[" data"] = data.view("i1") if data.dtype == "S1" else data
        for child in children:
            add(group.create_group(child[0], track_order=True), child)

    with h5py.File(path, "w", track_order=True) as file:
        add(file, tree)
    return path


def write_adf(path: Path, tree: Tree, *, version: str = "B", big: bool = False, chunks: int = 1) -> Path:
    """Write an ADF file; ``chunks`` is the number of pieces in which arrays are stored."""
    out = bytearray(266)

    def pointer(place: int) -> bytes:
        block, offset = divmod(place, 4096)
        return struct.pack("<QI", block, offset) if version == "B" else b"%08X%04X" % (block, offset)

    def length(value: int) -> bytes:
        return struct.pack("<Q", value) if version == "B" else b"%08X" % value

    def word(text: str) -> bytes:
        return text.encode().ljust(32)

    def chunk(content: bytes) -> int:
        start = len(out)
        out.extend(b"DaTa" + pointer(start + 16 + len(content)) + content + b"dEnD")
        return start

    def store(data: np.ndarray) -> tuple[int, int]:
        content = data.astype(data.dtype.newbyteorder(">" if big else "<")).tobytes()
        pieces = min(chunks, len(content))
        if pieces == 1:
            return 1, chunk(content)
        cuts = np.linspace(0, len(content), pieces + 1).astype(int)
        places = [chunk(content[a:b]) for a, b in pairwise(cuts)]
        start = len(out)
        ends = [place + 16 + int(b - a) for place, (a, b) in zip(places, pairwise(cuts), strict=True)]
        table = b"".join(pointer(a) + pointer(b) for a, b in zip(places, ends, strict=True))
        out.extend(b"DCtb" + pointer(start + 16 + len(table)) + table + b"dcTE")
        return pieces, start

    def add(item: Tree) -> int:
        name, label, data, children = item
        start = len(out)
        out.extend(bytes(246))
        count, place = (0, 0) if data is None else store(data)
        places = [add(child) for child in children]
        table = len(out)
        rows = b"".join(word(child[0]) + pointer(where) for child, where in zip(children, places, strict=True))
        out.extend(b"SNTb" + pointer(table + 16 + len(rows)) + rows + b"snTE")
        sizes = [] if data is None else list(data.shape[::-1])
        text = b"".join(length(size) for size in sizes).ljust(96, b"\0" if version == "B" else b"0")
        kind = "MT" if data is None else TYPES[data.dtype.str[1:]]
        head = b"NoDe" + word(name) + word(label) + b"%08X%08X" % (len(children), len(children)) + pointer(table)
        out[start : start + 246] = (
            head + word(kind) + b"%02X" % len(sizes) + text + b"%04X" % count + pointer(place) + b"TaiL"
        )
        return start

    assert add(tree) == 266
    ends = pointer(266) + pointer(len(out)) + pointer(186) + pointer(4096)
    out[:186] = _adf_head(version, big, ends)
    path.write_bytes(bytes(out))
    return path


def _adf_head(version: str, big: bool, ends: bytes) -> bytes:
    """Return the first bytes of an ADF file."""
    what = bytearray(f"@(#)ADF Database Version {version}02012>".encode())
    what[:4] = bytes(byte | 0x80 for byte in what[:4])
    head = bytes(what) + b"AdF0" + b" " * 28 + b"AdF1" + b" " * 28 + b"AdF2" + (b"B" if big else b"L") + b"LAdF3"
    head += b"010204080408080808080808" + b"AdF4" + ends + b"AdF5"
    assert len(head) == 186
    return head
