"""Small meshes of each kind of cell on the unit square or cube, and what may be wrong with a cell near the middle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.mesh import box2d, box3d
from fluxloom.mesh.data.elements import face_name
from fluxloom.mesh.data.mesh import MeshData, PatchFaces, Polyhedra
from fluxloom.mesh.data.ragged import Ragged
from fluxloom.mesh.geometry.connectivity import connectivity, half_faces
from fluxloom.mesh.geometry.dual import dual
from fluxloom.mesh.quality.orient import MIRROR

Cell = list[Any]
"""Nodes of an element, or the faces of a polyhedron."""

Damage = Callable[[MeshData], MeshData | None]
"""Makes a damaged mesh of a sound one; None: there is no such damage of these cells."""


def as_polyhedra(mesh: MeshData) -> MeshData:
    """Return the same cells, each given by its faces."""
    half = half_faces(mesh)
    order = np.argsort(half.cells, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(half.cells))])
    cells = Polyhedra(offsets, Ragged.from_padded(half.nodes[order]))
    return MeshData(mesh.points, {}, mesh.patches, mesh.source, cells)


def mixed() -> MeshData:
    """Return quads of which every other one is two triangles."""
    mesh = box2d(5, 5)
    block = mesh.cells["quad"]
    halves = np.concatenate([block[1::2][:, [0, 1, 2]], block[1::2][:, [0, 2, 3]]])
    return replace(mesh, cells={"quad": block[::2], "triangle": halves})


KINDS: Mapping[str, Callable[[], MeshData]] = {
    "triangle": lambda: box2d(3, 3, kind="triangle"),
    "quad": lambda: box2d(3, 3),
    "quads and triangles": mixed,
    "polygon": lambda: dual(box2d(4, 4, kind="triangle")),
    **{kind: lambda kind=kind: box3d(2, 2, 2, kind=kind) for kind in ("tetra", "pyramid")},
    **{kind: lambda kind=kind: box3d(3, 3, 3, kind=kind) for kind in ("prism", "hexahedron")},
    "polyhedron": lambda: dual(box3d(3, 3, 3, kind="tetra")),
    **{f"faces of {kind}": lambda kind=kind: as_polyhedra(KINDS[kind]())
       for kind in ("tetra", "pyramid", "prism", "hexahedron")},
}  # fmt: skip


def kind_of(name: str) -> str:
    """Return the kind of cell without its place."""
    return name.removesuffix(CORNER)


CORNER = " at a corner"

AT_CORNERS: Mapping[str, Callable[[], MeshData]] = {
    kind + CORNER: lambda make=make: (mesh := make()).with_points(mesh.points + 0.48) for kind, make in KINDS.items()
}
"""The same, moved such that a corner is in the middle: damages come to a cell of the boundary."""


def cells_of(mesh: MeshData) -> list[Cell]:
    """Return all cells as lists."""
    more = mesh.polyhedra
    if more is None:
        return [row for block in mesh.cells.values() for row in block.tolist()]
    return [[more.faces[f].tolist() for f in range(*more.offsets[c : c + 2])] for c in range(len(more))]


def nodes_of(cell: Cell) -> list[int]:
    return sorted({node for face in cell for node in face}) if isinstance(cell[0], list) else list(cell)


def with_cells(mesh: MeshData, cells: list[Cell], more: npt.ArrayLike = ()) -> MeshData:
    """Return a mesh with these cells, and more points behind its own."""
    points = np.concatenate([mesh.points, np.reshape(more, (-1, mesh.dimension))])
    if mesh.polyhedra is not None:
        faces = [face for cell in cells for face in cell]
        rows = Ragged.from_counts(np.array([len(face) for face in faces]), np.concatenate(faces))
        offsets = np.concatenate([[0], np.cumsum([len(cell) for cell in cells])])
        return replace(mesh, points=points, polyhedra=Polyhedra(offsets, rows))
    blocks: dict[str, list[Cell]] = {}
    solid = {4: "tetra", 5: "pyramid", 6: "prism", 8: "hexahedron"}
    for cell in cells:
        blocks.setdefault(face_name(len(cell)) if mesh.dimension == 2 else solid[len(cell)], []).append(cell)
    return replace(mesh, points=points, cells={kind: np.array(rows) for kind, rows in blocks.items()})


def middle(mesh: MeshData, cells: list[Cell]) -> int:
    """Return the number of a cell near the middle."""
    places = np.array([mesh.points[nodes_of(cell)].mean(axis=0) for cell in cells])
    return int(np.argmin(np.linalg.norm(places - 0.499, axis=1)))


def renamed(cell: Cell, names: Mapping[int, int]) -> Cell:
    return [renamed(part, names) if isinstance(part, list) else names.get(part, part) for part in cell]


def edge_of(cell: Cell) -> tuple[int, int]:
    first = cell[0] if isinstance(cell[0], list) else cell
    return first[0], first[1]


def across(cell: Cell) -> tuple[int, int] | None:
    """Return two nodes of a cell that no edge joins, or another edge of a tetrahedron."""
    if isinstance(cell[0], list):
        return cell[0][0], next(node for node in reversed(nodes_of(cell)) if node not in cell[0])
    return (cell[0], cell[2]) if len(cell) > 3 else None


def one(change: Callable[[MeshData, Cell], Cell | None]) -> Damage:
    """Return what changes the cell near the middle."""

    def damage(mesh: MeshData) -> MeshData | None:
        cells = cells_of(mesh)
        place = middle(mesh, cells)
        changed = change(mesh, cells[place])
        return None if changed is None else with_cells(mesh, [*cells[:place], changed, *cells[place + 1 :]])

    return damage


def places(change: Callable[[npt.NDArray[np.float64], Cell], Any]) -> Damage:
    """Return what moves nodes of the cell near the middle; nothing is moved: there is no such damage."""

    def damage(mesh: MeshData) -> MeshData | None:
        cells, points = cells_of(mesh), mesh.points.copy()
        change(points, cells[middle(mesh, cells)])
        return None if np.array_equal(points, mesh.points) else mesh.with_points(points)

    return damage


def faces_of(change: Callable[[Cell], Cell | None]) -> Damage:
    """Return what changes the faces of a polyhedron."""
    return one(lambda mesh, cell: None if mesh.polyhedra is None else change(cell))


def repeated(pair: tuple[int, int] | None, cell: Cell) -> Cell | None:
    return None if pair is None else renamed(cell, {pair[1]: pair[0]})


def swapped(pair: tuple[int, int] | None, cell: Cell) -> Cell | None:
    return None if pair is None else renamed(cell, {pair[0]: pair[1], pair[1]: pair[0]})


def exchange(points: npt.NDArray[np.float64], pair: tuple[int, int] | None) -> None:
    if pair is not None:
        points[list(pair)] = points[list(pair)[::-1]]


def merged(mesh: MeshData) -> MeshData:
    """Make two nodes of an edge one, in all cells and patches: what is left of cells round an axis."""
    cells = cells_of(mesh)
    kept, gone = edge_of(cells[middle(mesh, cells)])
    names = {gone: kept, **{node: node - 1 for node in range(gone + 1, mesh.n_points)}}
    table = np.array([names.get(node, node) for node in range(mesh.n_points)], dtype=np.int32)
    table[gone] = table[kept]
    cells = [renamed(cell, dict(enumerate(table.tolist()))) for cell in cells]
    patches = {n: PatchFaces({k: table[b] for k, b in faces.blocks.items()}) for n, faces in mesh.patches.items()}
    return replace(with_cells(mesh, cells), points=np.delete(mesh.points, gone, axis=0), patches=patches)


def mirrored(mesh: MeshData, cell: Cell) -> Cell:
    if isinstance(cell[0], list):
        return [face[::-1] for face in cell]
    solid = {4: "tetra", 5: "pyramid", 6: "prism", 8: "hexahedron"}
    return cell[::-1] if mesh.dimension == 2 else [cell[k] for k in MIRROR[solid[len(cell)]]]


def turned_top(by: int) -> Damage:
    def turn(mesh: MeshData, cell: Cell) -> Cell | None:
        half = len(cell) // 2
        if mesh.dimension == 2 or mesh.polyhedra is not None or len(cell) not in (6, 8) or by >= half:
            return None
        return cell[:half] + cell[half + by :] + cell[half : half + by]

    return one(turn)


def again(shift: float | None, name: bool = False) -> Damage:
    """Return what adds the cell once more: itself, or with nodes of its own, moved by a part of its size."""

    def damage(mesh: MeshData) -> MeshData:
        cells = cells_of(mesh)
        cell = cells[middle(mesh, cells)]
        if shift is None:
            return with_cells(mesh, [*cells, cell])
        nodes = nodes_of(cell)
        own = {node: mesh.n_points + k for k, node in enumerate(nodes)}
        points = mesh.points[nodes]
        found = with_cells(mesh, [*cells, renamed(cell, own)], points + shift * np.ptp(points, axis=0))
        return named(found) if name else found

    return damage


def named(mesh: MeshData) -> MeshData:
    """Return a mesh with a patch of all boundary faces that are in none."""
    links = connectivity(mesh)
    blocks: dict[str, list[list[int]]] = {}
    for face in np.flatnonzero(links.boundary_patch < 0).tolist():
        nodes = links.boundary_nodes[face].tolist()
        blocks.setdefault(face_name(len(nodes)), []).append(nodes)
    more = PatchFaces({kind: np.array(rows) for kind, rows in blocks.items()})
    return replace(mesh, patches={**mesh.patches, "more": more})


def without_cell(mesh: MeshData) -> MeshData:
    cells = cells_of(mesh)
    del cells[middle(mesh, cells)]
    return with_cells(mesh, cells)


def hanging(mesh: MeshData) -> MeshData | None:
    """Put a node on an edge of a polygon or polyhedron that the cells beside it do not know."""
    cells, node = cells_of(mesh), mesh.n_points
    place = middle(mesh, cells)
    cell, (a, b) = cells[place], edge_of(cells[place])
    if mesh.polyhedra is None and mesh.dimension == 3:
        return None

    def grown(loop: list[int]) -> list[int]:
        pairs = zip(loop, [*loop[1:], loop[0]], strict=True)
        return [k for x, y in pairs for k in ((x, node) if {x, y} == {a, b} else (x,))]

    cells[place] = [grown(face) for face in cell] if isinstance(cell[0], list) else grown(cell)
    return with_cells(mesh, cells, mesh.points[[a, b]].mean(axis=0))


HALVES = {
    ("triangle", 3): ([[0, 3, 2], [3, 1, 2]], [(0, 1)]),
    ("quad", 4): ([[0, 4, 5, 3], [4, 1, 2, 5]], [(0, 1), (2, 3)]),
    ("tetra", 4): ([[0, 4, 2, 3], [4, 1, 2, 3]], [(0, 1)]),
    ("prism", 6): ([[0, 6, 2, 3, 7, 5], [6, 1, 2, 7, 4, 5]], [(0, 1), (3, 4)]),
    ("hexahedron", 8): (
        [[0, 8, 9, 3, 4, 10, 11, 7], [8, 1, 2, 9, 10, 5, 6, 11]], [(0, 1), (2, 3), (4, 5), (6, 7)],
    ),
}  # fmt: skip
"""Elements cut in two: nodes of the halves, and the edges in whose middles the new ones are."""


def halved(mesh: MeshData) -> MeshData | None:
    cells = cells_of(mesh)
    place = middle(mesh, cells)
    found = HALVES.get((next(iter(mesh.cells), ""), len(cells[place])))
    if found is None:
        return None
    own = [*cells[place], *range(mesh.n_points, mesh.n_points + len(found[1]))]
    cells[place : place + 1] = [[own[k] for k in half] for half in found[0]]
    more = [mesh.points[[own[a], own[b]]].mean(axis=0) for a, b in found[1]]
    return with_cells(mesh, cells, np.array(more))


def first_face(mesh: MeshData, inside: bool = False) -> tuple[str, npt.NDArray[np.int32]]:
    links = connectivity(mesh)
    nodes = (links.interior_nodes if inside else links.boundary_nodes)[0]
    return face_name(nodes.size), nodes[None].copy()


def patch(change: Callable[[MeshData, npt.NDArray[np.int32]], Any], inside: bool = False) -> Damage:
    """Return what adds a patch of a face between two cells or of the boundary, after a change of it."""

    def damage(mesh: MeshData) -> MeshData:
        kind, nodes = first_face(mesh, inside)
        change(mesh, nodes)
        return replace(mesh, patches={**mesh.patches, "again": PatchFaces({kind: nodes})})

    return damage


def listed_twice(mesh: MeshData) -> MeshData:
    kind, nodes = first_face(mesh)
    name, faces = next(iter(mesh.patches.items()))
    blocks = {**faces.blocks, kind: np.concatenate([faces.blocks[kind], nodes])}
    return replace(mesh, patches={**mesh.patches, name: PatchFaces(blocks)})


def put(nodes: npt.NDArray[np.int32], value: int) -> None:
    nodes[0, 0] = value


def more_points(value: float) -> Damage:
    return lambda mesh: replace(mesh, points=np.concatenate([mesh.points, np.full((1, mesh.dimension), value)]))


def through(points: npt.NDArray[np.float64], cell: Cell) -> None:
    """Move a node of the interior beyond the cells round it."""
    node = int(np.argmin(np.linalg.norm(points - 0.51, axis=1)))
    points[node] += np.array([0.52, 0.41, 0.47])[: points.shape[1]]


def flatten(points: npt.NDArray[np.float64], cell: Cell) -> None:
    points[nodes_of(cell), -1] = points[nodes_of(cell), -1].mean()


def lost(value: float) -> Damage:
    def damage(points: npt.NDArray[np.float64], cell: Cell) -> None:
        points[nodes_of(cell)[0], 0] = value

    return places(damage)


def coincide(points: npt.NDArray[np.float64], cell: Cell) -> None:
    points[edge_of(cell)[1]] = points[edge_of(cell)[0]]


def crossed(cell: Cell) -> Cell | None:
    wide = next((face for face in cell if len(face) > 3), None)
    return wide and [[face[1], face[0], *face[2:]] if face is wide else face for face in cell]
