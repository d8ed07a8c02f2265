"""Derived connectivity: faces, owners and neighbours, cell to faces, node to cells, edges.

Faces are numbered by walking the cells in order and giving each interior face the next number when it
is first met; boundary faces follow patch by patch, in the order of the patches.  In two dimensions a
face is an edge of two nodes.

Faces that are equal have the same number, which does not depend on the order of their nodes: by it pairs are found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fluxloom.core.activity import activity
from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.elements import element, face_name
from fluxloom.mesh.data.mesh import IntArray, MeshData, Polyhedra, Ragged
from fluxloom.mesh.data.whole import check_patches, fail_cell, require_whole

__all__ = [
    "Connectivity", "HalfFaces", "InverseRows", "connectivity", "face_keys", "face_senses", "half_faces",
    "inverse_rows", "match_patches", "mixed_rows", "pair_keys", "paired", "places_of", "transpose",
]  # fmt: skip

_NONE = -1
_CHUNK = 1 << 15


def face_keys(nodes: IntArray, n_points: int) -> npt.NDArray[np.uint64]:
    """Return a number per face that does not depend on the order of its nodes.

    Exact for two nodes; for more the lowest node, and below it 32 bits of a sum of mixed node numbers (splitmix64),
    whose rare collisions `paired` detects and resolves. Faces that are near each other have near numbers.
    """
    if nodes.shape[1] == 2:
        return pair_keys(nodes, n_points).view(np.uint64)
    z = np.arange(1, n_points + 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    total = np.empty(len(nodes), dtype=np.uint64)
    for start in range(0, len(nodes), _CHUNK):
        rows = nodes[start : start + _CHUNK]
        part, lowest = z[rows[:, 0]], rows[:, 0].astype(np.uint32)
        for column in range(1, nodes.shape[1]):
            part += z[rows[:, column]]  # the pad -1 takes the last, extra, number
            np.minimum(lowest, rows[:, column].astype(np.uint32), out=lowest)  # and is the largest here
        part >>= np.uint64(32)
        total[start : start + _CHUNK] = part | (lowest.astype(np.uint64) << np.uint64(32))
    return total


def face_senses(nodes: IntArray) -> npt.NDArray[np.bool_]:
    """Return which way each face goes round, ``(n,)``: two cells on either side of a face go round it differently.

    Whether the node before the lowest one is above the node behind it; of the two nodes of an edge, whether the second
    is. Rows are padded with -1 at the end.
    """
    if nodes.shape[1] == 2:
        return nodes[:, 0] < nodes[:, 1]
    found, width = np.empty(len(nodes), dtype=bool), nodes.shape[1]
    for start in range(0, len(nodes), _CHUNK):
        part = np.ascontiguousarray(nodes[start : start + _CHUNK].T)
        lowest = part.view(np.uint32).min(axis=0).view(np.int32)
        sense = np.zeros(part.shape[1], dtype=bool)
        for k in range(width):
            before, behind = part[k - 1], part[(k + 1) % width]
            if k == 0:
                for j in range(width - 2, 1, -1):
                    before = np.where(before < 0, part[j], before)
            elif k + 1 < width:
                behind = np.where(behind < 0, part[0], behind)
            sense |= (part[k] == lowest) & (before > behind)
        found[start : start + _CHUNK] = sense
    return found


def pair_keys(pairs: npt.NDArray[np.integer], n_points: int) -> npt.NDArray[np.int64]:
    """Return ``smaller * n_points + larger`` for node pairs ``(..., 2)``."""
    low = np.minimum(pairs[..., 0], pairs[..., 1]).astype(np.int64)
    low *= n_points
    low += np.maximum(pairs[..., 0], pairs[..., 1])
    return low


def places_of(
    wanted: npt.NDArray[Any], keys: npt.NDArray[Any], order: npt.NDArray[np.integer] | None = None
) -> npt.NDArray[np.int64]:
    """Return the place of each wanted number among keys, -1 where it is none; ``order`` is that of ascending keys."""
    if not len(keys):
        return np.full(wanted.shape, _NONE, dtype=np.int64)
    spot = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    place = spot if order is None else order[spot]
    return np.where(keys[place] == wanted, place, _NONE)


def mixed_rows(rows: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Return one number a row of ``(..., k)`` that is seldom the same for different rows."""
    total = np.zeros(rows.shape[:-1], dtype=np.uint64)
    for column in range(rows.shape[-1]):
        total = (total ^ rows[..., column].astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total


def paired(
    keys: npt.NDArray[np.uint64], nodes: IntArray
) -> tuple[npt.NDArray[np.int64], tuple[npt.NDArray[np.int64], ...]]:
    """Find the twin of every half face, and the groups of three and more."""
    order, same = np.argsort(keys), np.zeros(max(len(keys) - 1, 0), dtype=bool)
    for start in range(0, len(same), _CHUNK):
        some = keys[order[start : start + _CHUNK + 1]]
        np.equal(some[1:], some[:-1], out=same[start : start + _CHUNK])
    if nodes.shape[1] > 2 and not _really_same(nodes, order, same):
        same = _told_apart(nodes, order, keys[order])
    twins = np.full(len(keys), _NONE, dtype=np.int64)
    for start in range(0, len(same), _CHUNK):
        part = start + np.flatnonzero(same[start : start + _CHUNK])
        left, right = order[part], order[part + 1]
        twins[left], twins[right] = right, left
    crowded = same[1:] & same[:-1]
    if not crowded.any():
        return twins, ()
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    ends = np.append(starts[1:], len(keys))
    groups = tuple(np.sort(order[s:e]) for s, e in zip(starts, ends, strict=True) if e - s > 2)
    return twins, groups


def _really_same(nodes: IntArray, order: npt.NDArray[np.int64], same: npt.NDArray[np.bool_]) -> bool:
    """Check that faces with equal keys have equal nodes, in pieces to bound the memory."""
    for start in range(0, len(same), _CHUNK):
        part = start + np.flatnonzero(same[start : start + _CHUNK])
        left, right = _sorted_rows(nodes[order[part]]), _sorted_rows(nodes[order[part + 1]])
        if not all(np.array_equal(a, b) for a, b in zip(left, right, strict=True)):
            return False
    return True


def _told_apart(nodes: IntArray, order: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Sort faces with equal keys by their nodes, in place; return which ones are equal to the next.

    Only runs of several faces are looked at, so that a collision costs little.
    """
    again = np.flatnonzero(keys[1:] == keys[:-1])
    place = np.unique(np.concatenate([again, again + 1]))
    rows = np.stack(_sorted_rows(nodes[order[place]]), axis=1)
    inner = np.lexsort((*rows.T, keys[place]))
    order[place], rows = order[place[inner]], rows[inner]
    same = np.zeros(len(keys) - 1, dtype=bool)
    # Neighbours in the list are neighbours in the order, or their keys differ.
    same[place[:-1]] = (keys[place[1:]] == keys[place[:-1]]) & (rows[1:] == rows[:-1]).all(axis=1)
    return same


def _sorted_rows(rows: IntArray) -> list[IntArray]:
    """Return the columns of a table with ascending rows: a network of exchanges, column by column."""
    columns = list(np.ascontiguousarray(rows.T))
    for low, high in combinations(range(len(columns)), 2):
        columns[low], columns[high] = np.minimum(columns[low], columns[high]), np.maximum(columns[low], columns[high])
    return columns


@dataclass(frozen=True, eq=False)
class InverseRows:
    """Compressed rows of a table's inverse, one a target.

    Attributes
    ----------
    offsets
        int64, ``(targets + 1,)``: where the entries of each target begin.
    rows, legs
        int32, of each entry: the row of the table that leads to the target, and through which column.
    """

    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    legs: npt.NDArray[np.int32]


def inverse_rows(
    table: npt.NDArray[np.integer], targets: int, numbers: npt.NDArray[np.int64] | None = None, *, by_leg: bool = True
) -> InverseRows:
    """Return which rows of a table lead to each of some targets.

    Parameters
    ----------
    table
        ``(rows, arity)``; entries that are negative, or not below ``targets``, lead nowhere.
    targets
        How many there are.
    numbers
        Numbers by which rows are ordered, ascending; by default their own.
    by_leg
        Whether what comes through the first column stands before what comes through the second, and so on; if not,
        only the number of the row counts.
    """
    sorted_rows = None if numbers is None else np.argsort(numbers, kind="stable")
    ordered = table if sorted_rows is None else table[sorted_rows]
    flat = ordered.T.reshape(-1) if by_leg else ordered.reshape(-1)
    order = np.argsort(flat, kind="stable")
    first, last = np.searchsorted(flat, (0, targets), sorter=order)
    place = order[first:last]
    legs, rows = np.divmod(place, max(1, len(table))) if by_leg else np.divmod(place, max(1, table.shape[1]))[::-1]
    rows = rows if sorted_rows is None else sorted_rows[rows]
    counts = np.bincount(flat[place], minlength=targets)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return InverseRows(offsets, rows.astype(np.int32), legs.astype(np.int32))


@dataclass(frozen=True, eq=False)
class Connectivity:
    """The arrays that loops over a mesh need.

    Attributes
    ----------
    n_points, n_cells
        Sizes.
    cell_nodes : n_cells rows
        Cell to nodes.
    cell_faces : n_cells rows
        Cell to faces in the order of the element's face table, of polyhedra in that of their list; numbers from
        ``n_interior`` on are boundary faces.
    interior_nodes : n_interior rows
        Interior face to nodes, turning anticlockwise seen from the neighbour (outward from the owner).
    interior_cells : (n_interior, 2) int32
        Owner (the lower cell number) and neighbour.
    boundary_nodes : n_boundary rows
        Boundary face to nodes, outward.
    boundary_cells : (n_boundary,) int32
        The cell behind each boundary face.
    boundary_patch : (n_boundary,) int32
        Patch number, or -1 for a face that is in no patch (such faces come last).
    patch_names
        Names of the patches, by number.
    patch_offsets : (n_patches + 1,) int64
        Boundary faces of patch ``p`` are ``patch_offsets[p]`` to ``patch_offsets[p + 1]``.
    alike : (m,) int64
        Interior faces that both cells go round in the same way: one of the two is turned over.
    """

    n_points: int
    n_cells: int
    cell_nodes: Ragged
    cell_faces: Ragged
    interior_nodes: Ragged
    interior_cells: IntArray
    boundary_nodes: Ragged
    boundary_cells: IntArray
    boundary_patch: IntArray
    patch_names: tuple[str, ...]
    patch_offsets: npt.NDArray[np.int64]
    edge_table: tuple[tuple[str, range], ...]
    alike: npt.NDArray[np.int64]
    polyhedra: Polyhedra | None = None

    @property
    def n_interior(self) -> int:
        """Number of interior faces."""
        return len(self.interior_cells)

    @property
    def n_boundary(self) -> int:
        """Number of boundary faces."""
        return len(self.boundary_cells)

    @property
    def n_faces(self) -> int:
        """Number of faces, interior and boundary."""
        return self.n_interior + self.n_boundary

    @property
    def patches(self) -> dict[str, range]:
        """Boundary face numbers (from 0) of each patch."""
        ends = self.patch_offsets
        return {name: range(int(ends[p]), int(ends[p + 1])) for p, name in enumerate(self.patch_names)}

    @cached_property
    def node_cells(self) -> Ragged:
        """Node to cells, ascending."""
        return transpose(self.cell_nodes, self.n_points)

    @cached_property
    def cell_cells(self) -> Ragged:
        """Cell to the cells across its interior faces, in the order of the faces' numbers."""
        around = inverse_rows(self.interior_cells, self.n_cells)
        return Ragged(around.offsets, self.interior_cells[around.rows, 1 - around.legs])

    @cached_property
    def edges(self) -> IntArray:
        """Distinct node pairs ``(n_edges, 2)``, smaller node first, ascending."""
        parts: list[npt.NDArray[np.int64]] = []
        for name, numbers in self.edge_table:
            kind = element(name)
            if not len(numbers):
                continue
            first = self.cell_nodes.offsets[numbers.start]
            last = self.cell_nodes.offsets[numbers.stop]
            block = self.cell_nodes.indices[first:last].reshape(-1, kind.n_nodes)
            pairs = block[:, np.array(kind.edges)].reshape(-1, 2)
            parts.append(pair_keys(pairs, self.n_points))
        if self.polyhedra is not None:
            parts.append(pair_keys(np.stack(self.polyhedra.sides()[1:], axis=1), self.n_points))
        keys = np.sort(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
        return np.stack([keys // self.n_points, keys % self.n_points], axis=1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class HalfFaces:
    """Every face as seen from every cell, in walking order.

    Attributes
    ----------
    nodes : (n, most nodes of a face) int32
        Outward nodes; -1 pads faces with fewer, as triangles beside quads.
    cells : (n,) int32
        The cell.
    keys : (n,) uint64
        Equal for equal node sets.
    twins : (n,) int64
        The same face seen from the other cell, or -1 on the boundary.
    groups
        Half faces that three or more cells share, as arrays of equal faces; empty in a manifold mesh.
    """

    nodes: IntArray
    cells: IntArray
    keys: npt.NDArray[np.uint64]
    twins: npt.NDArray[np.int64]
    groups: tuple[npt.NDArray[np.int64], ...]


def connectivity(mesh: MeshData, half: HalfFaces | None = None) -> Connectivity:
    """Derive faces, owners and neighbours of a mesh.

    Parameters
    ----------
    mesh
        The mesh; every node number must be in range.
    half
        Its half faces, when they have been found already.

    Returns
    -------
    Connectivity

    Raises
    ------
    MeshError
        For a mesh without cells, cells that are not whole (`fluxloom.mesh.data.whole`), three or more cells at a face,
        and a patch that lists a face that is not on the boundary or was listed before.
    """
    if not mesh.n_cells:
        raise MeshError(f"{mesh.source.path}: the mesh has no cells")
    with activity("faces of the mesh", f"{mesh.n_cells:,} cells"):
        return _derived(mesh, half_faces(mesh) if half is None else half)


def _derived(mesh: MeshData, half: HalfFaces) -> Connectivity:
    check_patches(mesh)
    if half.groups:
        _fail_non_manifold(mesh, half)
    first = _firsts(half.twins)
    second = half.twins[first]
    outer = np.flatnonzero(half.twins == _NONE)
    order, patch, stray = match_patches(mesh, half, outer)
    if stray:
        _fail_stray(mesh, half, *stray[0], len(stray))
    outer = outer[order]
    face_of = np.empty(len(half.twins), dtype=np.int32)
    face_of[first] = np.arange(len(first), dtype=np.int32)
    face_of[second] = face_of[first]
    face_of[outer] = np.arange(len(first), len(first) + len(outer), dtype=np.int32)
    counts = np.bincount(patch[patch >= 0], minlength=len(mesh.patches))
    inner = half.nodes[first]
    return Connectivity(
        n_points=mesh.n_points,
        n_cells=mesh.n_cells,
        cell_nodes=mesh.cell_nodes(),
        cell_faces=Ragged(_face_offsets(mesh), face_of),
        interior_nodes=Ragged.from_padded(inner),
        interior_cells=np.stack([half.cells[first], half.cells[second]], axis=1),
        boundary_nodes=Ragged.from_padded(half.nodes[outer]),
        boundary_cells=half.cells[outer],
        boundary_patch=patch,
        patch_names=tuple(mesh.patches),
        patch_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        edge_table=tuple(mesh.cell_ranges.items()),
        alike=np.flatnonzero(face_senses(inner) == face_senses(half.nodes[second])),
        polyhedra=mesh.polyhedra,
    )


def _firsts(twins: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the half faces that come before their twins, in pieces to bound the memory."""
    found: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(twins), _CHUNK):
        part = twins[start : start + _CHUNK]
        found.append(start + np.flatnonzero(part > np.arange(start, start + len(part))))
    return np.concatenate(found)


def half_faces(mesh: MeshData) -> HalfFaces:
    """Return every face of every cell, paired with its twin.

    Raises
    ------
    MeshError
        For cells that are not whole, see `fluxloom.mesh.data.whole`.
    """
    require_whole(mesh)
    more, width = mesh.polyhedra, max((element(name).face_width for name in mesh.cells), default=2)
    width = width if more is None else max(width, int(more.faces.counts.max()))
    nodes: list[IntArray] = []
    cells: list[IntArray] = []
    for name, numbers in mesh.cell_ranges.items():
        kind, block = element(name), mesh.cells[name]
        places = np.full((len(kind.faces), width), _NONE)
        for local, face in enumerate(kind.faces):
            places[local, : len(face)] = face
        faces = np.take(block, np.maximum(places, 0).reshape(-1), axis=1).reshape(-1, *places.shape)
        if (places < 0).any():
            faces[:, places < 0] = _NONE
        nodes.append(faces.reshape(-1, width))
        cells.append(np.repeat(np.arange(numbers.start, numbers.stop, dtype=np.int32), len(kind.faces)))
    if more is not None:
        nodes.append(more.faces.padded(width=width))
        cells.append((mesh.n_elements + more.owners).astype(np.int32))
    table = nodes[0] if len(nodes) == 1 else np.concatenate(nodes)
    cell = cells[0] if len(cells) == 1 else np.concatenate(cells)
    del nodes, cells
    keys = face_keys(table, mesh.n_points)
    twins, groups = paired(keys, table)
    return HalfFaces(table, cell, keys, twins, groups)


def match_patches(
    mesh: MeshData, half: HalfFaces, outer: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], IntArray, list[tuple[str, int]]]:
    """Match the faces listed in the patches to the boundary half faces.

    Parameters
    ----------
    mesh, half
        The mesh and its half faces.
    outer : (n_boundary,) int64
        Boundary half faces.

    Returns
    -------
    order : (n_boundary,) int64
        Positions in ``outer``: patch by patch, then the faces in no patch.
    patch : (n_boundary,) int32
        Patch number of each, or -1.
    stray
        ``(patch, face number)`` of listed faces that are no boundary faces or were listed before.
    """
    width = half.nodes.shape[1]
    keys = half.keys[outer]
    by_key = np.argsort(keys)
    taken = np.zeros(len(outer), dtype=bool)
    order: list[npt.NDArray[np.int64]] = []
    numbers: list[IntArray] = []
    stray: list[tuple[str, int]] = []
    for number, (name, faces) in enumerate(mesh.patches.items()):
        listed = faces.padded(max(width, faces.width))
        clean = listed[:, :width].copy()
        bad = (listed[:, width:] >= 0).any(axis=1)  # a face wider than any face of the cells cannot match
        clean[bad] = 0
        wanted = face_keys(clean, mesh.n_points)
        place = places_of(wanted, keys, by_key)
        place[bad] = _NONE
        hits = np.flatnonzero(place >= 0)
        hits = hits[np.sort(np.unique(place[hits], return_index=True)[1])]  # a face listed twice counts once
        hits = hits[~taken[place[hits]]]
        good = np.zeros(len(clean), dtype=bool)
        good[hits] = True
        stray += [(name, int(index)) for index in np.flatnonzero(~good)]
        order.append(place[hits])
        taken[place[hits]] = True
        numbers.append(np.full(len(hits), number, dtype=np.int32))
    rest = np.flatnonzero(~taken)
    order.append(rest)
    numbers.append(np.full(len(rest), _NONE, dtype=np.int32))
    return np.concatenate(order), np.concatenate(numbers), stray


def _fail_non_manifold(mesh: MeshData, half: HalfFaces) -> NoReturn:
    """Name the first face of three cells or more."""
    group = half.groups[0]
    cells = [int(cell) for cell in half.cells[group]]
    words = ", ".join(str(cell) for cell in cells)
    fail_cell(
        mesh, cells[-1],
        f"non-manifold: its face with the nodes {_nodes(half.nodes[group[0]])} is shared by the {len(cells)} cells "
        f"{words}; at most two cells may share a face: remove duplicate or overlapping cells",
    )  # fmt: skip


def _fail_stray(mesh: MeshData, half: HalfFaces, name: str, index: int, count: int) -> NoReturn:
    """Say why a patch face cannot be used."""
    nodes = mesh.patches[name].padded(mesh.patches[name].width)[index]
    real = nodes[nodes >= 0]
    where = f"{mesh.source.path}: patch {name!r}, {face_name(len(real))} {index} with the nodes {_nodes(real)}"
    width = half.nodes.shape[1]
    inside = half.twins[:0]
    if len(real) <= width:
        wide = np.full((1, width), -1, dtype=np.int32)
        wide[0, : len(real)] = real
        inside = half.twins[half.keys == face_keys(wide, mesh.n_points)[0]]
    if not len(inside):
        reason = "is not a face of any cell"
    elif (inside >= 0).all():
        reason = (
            "is not a boundary face: it lies between two cells. A wall within the flow needs nodes of its own on each "
            "side (in Gmsh: Plugin(Crack) before saving); or leave its group out"
        )
    else:
        reason = "is listed twice, in this patch or in an earlier one"
    more = f" ({count} such faces)" if count > 1 else ""
    raise MeshError(f"{where}: it {reason}{more}; remove it from the patch")


def _nodes(nodes: npt.NDArray[np.integer]) -> str:
    return ", ".join(str(int(node)) for node in nodes if node >= 0)


def transpose(rows: Ragged, n_targets: int) -> Ragged:
    """Return target -> rows of a row -> targets table; each row of the result is ascending."""
    counts = np.bincount(rows.indices, minlength=n_targets)
    order = np.argsort(rows.indices, kind="stable")
    row_of = np.repeat(np.arange(len(rows), dtype=np.int32), rows.counts)
    return Ragged.from_counts(counts, row_of[order])


def _face_offsets(mesh: MeshData) -> npt.NDArray[np.int64]:
    """Return the offsets of cell -> faces."""
    counts = [np.full(len(block), len(element(name).faces), dtype=np.int64) for name, block in mesh.cells.items()]
    counts += [] if mesh.polyhedra is None else [np.diff(mesh.polyhedra.offsets)]
    return np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
