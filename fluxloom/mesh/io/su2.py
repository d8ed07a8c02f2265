"""SU2 native meshes (``.su2``, ``.su2.gz``), two- and three-dimensional, linear elements.

Source: SU2 documentation, "Mesh File".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fluxloom.core.text import whole
from fluxloom.mesh.data.elements import by_code, element, vtk_order
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData, MeshSource, PatchFaces
from fluxloom.mesh.data.whole import check_range
from fluxloom.mesh.io.tables.collect import add_faces
from fluxloom.mesh.io.tables.scan import PlainScanner, open_scanner
from fluxloom.mesh.io.tables.text import TextWriter

__all__ = ["read_su2", "write_su2"]

_LIMIT = 9  # type, eight nodes; a running number after the nodes is not needed
_TABLES = ("NELEM", "NPOIN", "MARKER_ELEMS")
_HALO, _HALO_KEYS = ("SEND_RECEIVE", "SEND_RECV"), ("SEND_TO", "RECEIVE_FROM", "SEND_RECV", "SEND_RECEIVE")


@dataclass
class _Zone:
    """What has been read of one zone."""

    dimension: int = 0
    points: FloatArray | None = None
    cells: dict[str, IntArray] | None = None
    numbers: dict[str, IntArray] = field(default_factory=dict)
    first_line: int = 0
    markers: int = 0
    patches: dict[str, dict[str, IntArray]] = field(default_factory=dict)


def read_su2(path: str | Path, *, zone: str | int | None = None, native: bool = True) -> MeshData:
    """Read an SU2 mesh.

    Parameters
    ----------
    path
        A ``.su2`` file, or ``.su2.gz``.
    zone
        Of a file with several zones, the one to read (from 1).
    native
        False reads with Python alone.

    Returns
    -------
    MeshData
        Cells in blocks by type; within a block in the order of the file.  Markers become patches, those of one name
        one; halo markers (``SEND_RECEIVE``), periodic tables and free-form deformation boxes are skipped.

    Raises
    ------
    MeshError
        With file and line: for curved or unknown elements, truncated sections, node numbers out of range, several
        zones without ``zone``.
    """
    scan = open_scanner(path, native=native)
    chosen = None if zone is None else _chosen(scan, zone)
    return _read(scan, chosen)


def _chosen(scan: PlainScanner, zone: str | int) -> int:
    try:
        return int(zone)
    except ValueError:
        scan.fail(f"zones of SU2 files have numbers, from 1; there is no zone {zone!r}")


def _read(scan: PlainScanner, zone: int | None) -> MeshData:
    """Read the zone that is wanted, or the only one."""
    read = _Zone()
    current, tag, key = 1, "", ""
    while (text := scan.next_line()) is not None:
        if key in _TABLES:
            scan.no_more_rows(text, key)
        word, _, value = text.split("%")[0].partition("=")
        if not word.strip():
            continue
        key, value = word.strip().upper(), value.strip()
        if key == "NZONE":
            _check_zones(scan, _number(scan, key, value), zone)
        elif key == "IZONE":
            current = _number(scan, key, value)
            if zone is not None and current > zone:
                break
        if key == "IZONE" and zone is not None and current < zone:
            scan.skip_to(b"IZONE")
        elif key == "NDIME":
            read.dimension = _number(scan, key, value)
            if read.dimension not in (2, 3):
                scan.fail(f"NDIME must be 2 or 3, got {read.dimension}", scan.line - 1)
        elif (key == "NELEM" and read.cells is not None) or (key == "NPOIN" and read.points is not None):
            scan.fail(f"{key}= is given twice; keep one table of the zone", scan.line - 1)
        elif key == "NELEM":
            read.cells, read.numbers = _elements(scan, _number(scan, key, value), "elements (NELEM)", read.dimension)
            contiguous = scan.last_line - scan.first_line + 1 == sum(map(len, read.cells.values()))
            read.first_line = scan.first_line if contiguous else 0
        elif key == "NPOIN":
            if not read.dimension:
                scan.fail("NPOIN comes before NDIME; give the dimension first", scan.line - 1)
            read.points = scan.reals(_number(scan, key, value), read.dimension, "points (NPOIN)")
        elif key == "NMARK":
            read.markers += _number(scan, key, value)
        elif key == "MARKER_TAG":
            tag = value
        elif key == "MARKER_ELEMS":
            read.markers -= 1
            _marker(scan, read, tag, _number(scan, key, value))
    return _finish(scan, read, zone)


def _number(scan: PlainScanner, key: str, value: str) -> int:
    """Return the first integer after the equals sign."""
    words = value.split()
    try:
        number = whole(words[0])
    except (IndexError, ValueError):
        scan.fail(f"{key}= needs a whole number, got {value!r}", scan.line - 1)
    if number < 0:
        scan.fail(f"{key}= must not be negative, got {number}", scan.line - 1)
    return number


def _check_zones(scan: PlainScanner, count: int, zone: int | None) -> None:
    if count > 1 and zone is None:
        how = f"choose one: --zone N, [mesh] zone = N, or zone=N, from 1 to {count}"
        scan.fail(f"the file has {count} zones; {how}", scan.line - 1)
    if zone is not None and not 1 <= zone <= count:
        scan.fail(f"there is no zone {zone}: the file has {count}", scan.line - 1)


def _marker(scan: PlainScanner, read: _Zone, tag: str, n: int) -> None:
    """Read the faces of one marker into a patch."""
    what = f"faces of marker {tag!r}"
    if not tag:
        scan.fail("MARKER_ELEMS comes before MARKER_TAG", scan.line - 1)
    if tag.upper() in _HALO:
        _skip_halo(scan, n, what)
        return
    blocks, _ = _elements(scan, n, what, read.dimension - 1)
    add_faces(read.patches, tag, blocks)


def _skip_halo(scan: PlainScanner, n: int, what: str) -> None:
    """Leave out the rows of a halo marker, before which may stand to or from which rank they go."""
    position, line = scan.position, scan.line
    text = scan.next_line()
    while text is not None and (not text.strip() or text.lstrip().upper().startswith(_HALO_KEYS)):
        position, line = scan.position, scan.line
        text = scan.next_line()
    scan.position, scan.line = position, line
    scan.ragged(n, _LIMIT, what)


def _elements(scan: PlainScanner, n: int, what: str, dimension: int) -> tuple[dict[str, IntArray], dict[str, IntArray]]:
    """Read rows of ``type nodes...``; return blocks by type, and the row numbers when types are mixed."""
    if dimension < 1:
        scan.fail(f"the {what} come before NDIME; give the dimension first", scan.line - 1)
    counts, flat = scan.ragged(n, _LIMIT, what)
    if not n:
        return {}, {}
    starts = np.zeros(n, dtype=np.int64)
    np.cumsum(counts[:-1], out=starts[1:])
    codes = flat[starts]
    known = by_code("su2")
    blocks: dict[str, IntArray] = {}
    numbers: dict[str, IntArray] = {}
    present, first = np.unique(codes, return_index=True)
    for code in present[np.argsort(first)].tolist():
        rows = np.flatnonzero(codes == code)
        if code not in known or known[code].dimension != dimension:
            scan.fail(_wrong_type(code, dimension, what), _line(scan, n, int(rows[0])))
        kind = known[code]
        short = np.flatnonzero(counts[rows] < 1 + kind.n_nodes)
        if len(short):
            row = int(rows[short[0]])
            found = int(counts[row]) - 1
            scan.fail(f"a {kind.name} needs {kind.n_nodes} nodes, found {found}", _line(scan, n, row))
        width = int(counts[0])
        if len(present) == 1 and (counts == width).all():
            block = np.ascontiguousarray(flat.reshape(n, width)[:, 1 : 1 + kind.n_nodes])
        else:
            block = flat[starts[rows][:, None] + np.arange(1, 1 + kind.n_nodes)]
            if len(present) > 1:
                numbers[kind.name] = rows.astype(np.int32)
        blocks[kind.name] = vtk_order(kind.name, block)
    return blocks, numbers


def _wrong_type(code: int, dimension: int, what: str) -> str:
    known = by_code("su2")
    if code in known:
        return f"{known[code].name} (type {code}) among the {what}: elements of dimension {dimension} belong there"
    if code > 100:
        return f"curved (high-order) element type {code} is not supported; export the mesh with linear elements"
    names = ", ".join(f"{item.vtk} {item.name}" for item in known.values() if item.dimension == dimension)
    return f"unknown element type {code} among the {what} (known: {names})"


def _line(scan: PlainScanner, n: int, row: int) -> int:
    """Return the line of a row of the last table; walks the lines when comments stand between them."""
    if scan.last_line - scan.first_line + 1 == n:
        return scan.first_line + row
    lines = scan.data.split(b"\n", scan.last_line)
    seen = -1
    for number in range(scan.first_line, scan.last_line + 1):
        text = lines[number - 1].strip()
        seen += bool(text) and not text.startswith(b"%")
        if seen == row:
            return number
    return scan.last_line


def _finish(scan: PlainScanner, read: _Zone, zone: int | None) -> MeshData:
    """Assemble the mesh and check its node numbers."""
    place = "" if zone is None else f" in zone {zone}"
    cells, points = read.cells, read.points
    if cells is None or points is None:
        name = "NELEM=" if cells is None else "NPOIN="
        scan.fail(f"the file ends without {name}{place}; it is truncated or not an SU2 mesh")
    if read.markers > 0:
        scan.fail(f"{read.markers} of the markers that NMARK= says are missing{place}; the file is truncated")
    source = MeshSource(scan.path, read.first_line, read.numbers)
    patches = {name: PatchFaces(blocks) for name, blocks in read.patches.items()}
    mesh = MeshData(points, cells, patches, source)
    check_range(mesh)
    return mesh


def _keeps(name: str) -> bool:
    """Whether the name of a marker comes back as it is."""
    return bool(name) and name == name.strip() and not set(name) & set("%\r\n") and name.upper() not in _HALO


def write_su2(path: str | Path, mesh: MeshData, *, native: bool = True) -> None:
    """Write an SU2 mesh (``.su2`` or ``.su2.gz``); coordinates read back equal.

    Parameters
    ----------
    path
        The file to write.
    mesh
        The mesh; its patches become markers.
    native
        False writes with Python alone.

    Raises
    ------
    MeshError
        When the file cannot be written.
    """
    mesh.require_elements("an SU2 file")
    mesh.require_names("an SU2 file", _keeps)
    with TextWriter(path, native=native) as out:
        out.line(f"NDIME= {mesh.dimension}")
        out.line(f"NELEM= {mesh.n_cells}")
        start = 0
        for name, block in mesh.cells.items():
            out.integers(vtk_order(name, block), lead=element(name).vtk, number=start, number_last=True)
            start += len(block)
        out.line(f"NPOIN= {mesh.n_points}")
        out.reals(mesh.points, number=0, number_last=True)
        out.line(f"NMARK= {len(mesh.patches)}")
        for name, faces in mesh.patches.items():
            out.line(f"MARKER_TAG= {name}")
            out.line(f"MARKER_ELEMS= {len(faces)}")
            for kind, block in faces.blocks.items():
                out.integers(block, lead=element(kind).vtk)
