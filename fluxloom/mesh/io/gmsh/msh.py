"""Gmsh meshes: MSH 2.2 and 4.1, ASCII and binary; writer of MSH 2.2 ASCII.

Physical groups one dimension below the cells become patches.

Source: Gmsh reference manual, "MSH file format" and "MSH file format version 2 (Legacy)".
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import by_code, element
from fluxloom.mesh.data.mesh import FloatArray, IntArray, MeshData
from fluxloom.mesh.geometry.connectivity import places_of
from fluxloom.mesh.io.gmsh.binary import ByteRows
from fluxloom.mesh.io.gmsh.raw import RawMesh, element_type
from fluxloom.mesh.io.gmsh.text import TextRows
from fluxloom.mesh.io.tables.collect import add_faces, cell_dimension, first_group, mesh_of, tell_shared, without_unused
from fluxloom.mesh.io.tables.scan import PlainScanner, open_scanner
from fluxloom.mesh.io.tables.text import TextWriter

__all__ = ["read_gmsh", "write_gmsh"]

Rows = TextRows | ByteRows


def read_gmsh(path: str | Path, *, native: bool = True) -> MeshData:
    """Read a Gmsh mesh.

    Parameters
    ----------
    path
        A ``.msh`` file (or ``.msh.gz``), version 2.2 or 4.1.
    native
        False reads with Python alone.

    Returns
    -------
    MeshData
        Cells of the highest dimension; nodes that no cell uses are dropped.  Boundary elements in no physical
        group are left out, and a boundary element in several groups belongs to the first.

    Raises
    ------
    MeshError
        With file and line: for other versions, curved elements, truncated sections, unknown nodes.
    """
    scan = open_scanner(path, native=native)
    raw, rows, last = RawMesh(), TextRows(scan), ""
    while (text := scan.next_line()) is not None:
        name = text.strip()
        if not name.startswith("$") or name.startswith("$End"):
            if last in ("$Nodes", "$Elements"):
                scan.no_more_rows(name, last)
            continue
        last = rows.section = name
        if name == "$MeshFormat":
            raw.version, rows = _header(scan)
        elif not raw.version:
            scan.fail("the file does not begin with $MeshFormat; it is not a Gmsh mesh", scan.line - 1)
        elif name == "$PhysicalNames":
            raw.read_names(scan)
        elif name in ("$Entities", "$PartitionedEntities"):
            _entities(rows, raw, divided=name != "$Entities")
        elif name in ("$Nodes", "$ParametricNodes"):
            _nodes(rows, raw)
        elif name == "$Elements":
            _elements(rows, raw)
        else:
            scan.skip_to(b"$End" + name[1:].encode())
    return _assemble(scan, raw)


def _header(scan: PlainScanner) -> tuple[str, Rows]:
    """Return version and what reads the numbers that follow."""
    words = (scan.next_line() or "").split()
    if len(words) < 3 or words[0] not in ("2.2", "4.1", "2", "2.1"):
        found = words[0] if words else "nothing"
        scan.fail(f"MSH version {found} is not supported; save the mesh as version 4.1 or 2.2", scan.line - 1)
    return "4.1" if words[0] == "4.1" else "2.2", ByteRows(scan) if words[1] == "1" else TextRows(scan)


def _nodes(rows: Rows, raw: RawMesh) -> None:
    if raw.version == "2.2":
        rows.nodes_2(raw)
        return
    for _ in range(rows.counts()[0]):
        dimension, _, parametric, count = rows.head()
        tags = rows.whole(count, 1, "node numbers ($Nodes)")[:, 0]
        raw.add_nodes(tags, rows.reals(count, 3, dimension if parametric else 0, "coordinates ($Nodes)"))


def _elements(rows: Rows, raw: RawMesh) -> None:
    if raw.version == "2.2":
        rows.elements_2(raw)
        return
    for _ in range(rows.counts()[0]):
        dimension, tag, code, count = rows.head()
        kind = element_type(rows.scan, code, rows.line)
        table = rows.whole(count, 1 + kind.n_nodes, f"{kind.name} elements ($Elements)")
        raw.add_of(kind.name, table[:, 1:], dimension, tag)


def _entities(rows: Rows, raw: RawMesh, *, divided: bool = False) -> None:
    """Read the physical tags of every entity (4.1).

    Parameters
    ----------
    rows
        The section.
    raw
        Where the tags go.
    divided
        Whether they are those of ``$PartitionedEntities``: parts of others, with the groups of these where they have
        none of their own.
    """
    rows.begin()
    if divided:
        _, ghosts = rows.sizes(2)
        rows.integers(2 * ghosts)
    for dimension, count in enumerate(rows.sizes(4)):
        for _ in range(count):
            rows.begin()
            (tag,), parent = rows.integers(1), (-1, 0)
            if divided:
                above, of = rows.integers(2)
                parent = (above, of)
                rows.integers(rows.sizes(1)[0])
            rows.pass_reals(6 if dimension else 3)
            groups = tuple(dict.fromkeys(abs(group) for group in rows.integers(rows.sizes(1)[0])))
            if dimension:
                rows.integers(rows.sizes(1)[0])
            inherited = raw.groups.get(parent, ()) if parent[0] == dimension else ()
            raw.groups[dimension, tag] = groups or inherited
    rows.begin()


def _assemble(scan: PlainScanner, raw: RawMesh) -> MeshData:
    """Number the nodes, pick the cells, group the boundary elements."""
    if not raw.points or not raw.elements:
        scan.fail("the file ends without $Nodes or $Elements; it is truncated, or no elements were saved")
    points = np.concatenate(raw.points)
    tags = np.concatenate(raw.node_tags)
    order = None if np.array_equal(tags, np.arange(1, len(tags) + 1)) else np.argsort(tags, kind="stable")
    if order is not None:
        _no_two_places(scan.path, tags[order], points[order])
    index = _node_index(scan, tags, order, raw)
    dimension = cell_dimension(scan.path, raw.elements, "mesh the surface or volume, then save")
    cells: dict[str, npt.NDArray[np.int64]] = {}
    grouped: dict[int, dict[str, npt.NDArray[np.int64]]] = {}
    for name, nodes in index.items():
        depth = element(name).dimension
        if depth < dimension - 1:
            continue
        groups = np.concatenate([groups for _, groups in raw.elements[name]])
        nodes, groups = _once(raw, depth, nodes, groups)
        if depth == dimension:
            cells[name] = nodes
            continue
        for group in np.unique(groups[groups > 0]).tolist():
            grouped.setdefault(group, {})[name] = nodes[groups == group]
    shared = Counter[tuple[str, str]]()
    for (depth, other, first), count in raw.shared.items():
        if depth >= dimension - 1:
            shared[raw.name(depth, other), raw.name(depth, first)] += count
    tell_shared(scan.path, shared, "elements")
    patches: dict[str, dict[str, IntArray]] = {}
    for group, blocks in sorted(grouped.items()):
        add_faces(patches, raw.name(dimension - 1, group), blocks)
    return without_unused(mesh_of(scan.path, points, cells, patches), say=False)[0]


def _once(
    raw: RawMesh, depth: int, nodes: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return elements without those that an earlier group has: version 2.2 writes one for each group."""
    grouped = np.flatnonzero(groups > 0)
    if raw.version != "2.2" or not len(grouped):
        return nodes, groups
    first = first_group(nodes[grouped], groups[grouped])
    again = grouped[first != groups[grouped]]
    for (other, one), count in Counter(
        zip(groups[again].tolist(), first[first != groups[grouped]].tolist(), strict=True)
    ).items():
        raw.share(depth, other, one, count)
    return np.delete(nodes, again, axis=0), np.delete(groups, again)


def _no_two_places(path: str, tags: npt.NDArray[np.int64], points: FloatArray) -> None:
    """Refuse a number of a node that stands at two places; the numbers ascend."""
    twice = np.flatnonzero((tags[1:] == tags[:-1]) & (points[1:] != points[:-1]).any(axis=1))
    if len(twice):
        node, (one, other) = int(tags[twice[0]]), map(tuple, points[twice[0] : twice[0] + 2].tolist())
        raise MeshError(f"{path}: the node {node} is given twice, at {one} and at {other}; give each its own number")


def _node_index(
    scan: PlainScanner, tags: npt.NDArray[np.int64], order: npt.NDArray[np.int64] | None, raw: RawMesh
) -> dict[str, npt.NDArray[np.int64]]:
    """Replace node tags by positions; ``order`` is that of ascending tags, None where they are 1, 2, 3 ..."""
    result: dict[str, npt.NDArray[np.int64]] = {}
    for name, blocks in raw.elements.items():
        nodes = np.concatenate([part for part, _ in blocks])
        if order is None:
            bad = (nodes < 1) | (nodes > len(tags))
            place = nodes - 1
        else:
            place = places_of(nodes, tags, order)
            bad = place < 0
        if bad.any():
            row, column = np.argwhere(bad)[0]
            missing = int(nodes[row, column])
            raise MeshError(f"{scan.path}: {name} number {row} has the node {missing}, which is not in $Nodes")
        result[name] = place
    return result


def write_gmsh(path: str | Path, mesh: MeshData, *, native: bool = True) -> None:
    """Write a Gmsh mesh, version 2.2 ASCII; patches and the domain become physical groups.

    Parameters
    ----------
    path
        The file (``.msh`` or ``.msh.gz``).
    mesh
        The mesh.
    native
        False writes with Python alone.

    Raises
    ------
    MeshError
        When the file cannot be written.
    """
    codes = {item.name: code for code, item in by_code("gmsh").items()}
    points = np.zeros((mesh.n_points, 3))
    points[:, : mesh.dimension] = mesh.points
    mesh.require_elements("a Gmsh file")
    mesh.require_names("a Gmsh file", lambda name: bool(name) and not set(name) & set("\r\n"))
    with TextWriter(path, native=native) as out:
        out.line("$MeshFormat\n2.2 0 8\n$EndMeshFormat")
        out.line(f"$PhysicalNames\n{len(mesh.patches) + 1}")
        for number, name in enumerate(mesh.patches, start=1):
            out.line(f'{mesh.dimension - 1} {number} "{name}"')
        domain = len(mesh.patches) + 1
        out.line(f'{mesh.dimension} {domain} "domain"\n$EndPhysicalNames')
        out.line(f"$Nodes\n{mesh.n_points}")
        out.reals(points, number=1)
        total = mesh.n_cells + sum(len(faces) for faces in mesh.patches.values())
        out.line(f"$EndNodes\n$Elements\n{total}")
        groups = [(number, faces.blocks) for number, faces in enumerate(mesh.patches.values(), start=1)]
        start = 1
        for group, blocks in [*groups, (domain, mesh.cells)]:
            for name, block in blocks.items():
                table = np.empty((len(block), 4 + block.shape[1]), dtype=np.int32)
                table[:, :4] = (codes[name], 2, group, group)
                table[:, 4:] = block + 1
                out.integers(table, number=start)
                start += len(block)
        out.line("$EndElements")
