"""Degrees of freedom of continuous Lagrange elements: one number a point, shared by all cells that have it.

Points of edges and faces belong to the mesh's edges and faces, whose own frames follow from the numbers of the mesh's
points alone: an edge runs from its lower to its higher point, and a face of four corners begins at its lowest one and
goes first to the lower of the two beside it. A cell that looks at an edge or a face from its own side compares those
numbers, so that it needs to know nothing of its neighbours, and meshes that cannot be oriented are as good as others.

Source: M. W. Scroggs, J. S. Dokken, C. N. Richardson, G. N. Wells, "Construction of Arbitrary Order Finite Element
Degree-of-Freedom Maps on Polygonal and Polyhedral Cell Meshes", ACM Transactions on Mathematical Software 48 (2022)
20: the points of each edge and face reflected and rotated by the numbers of its corners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError, did_you_mean
from fluxloom.fe.elements import CELLS, Lagrange
from fluxloom.mesh.connectivity import Connectivity
from fluxloom.mesh.elements import ElementType, element
from fluxloom.mesh.face_pairs import pair_keys
from fluxloom.mesh.mesh import FloatArray, IntArray, MeshData

__all__ = ["Dofs", "lagrange_dofs"]

LongArray = npt.NDArray[np.int64]

_SHAPES = {kind: shape for shape, kind in CELLS.items() if shape != "line"}  # cells of a mesh have faces
_MOST = np.iinfo(np.int32).max
# The corners of a four-cornered face by its turn 2 * origin + reversed: origin, along the first axis, opposite, along
# the second axis.
_FRAMES = tuple((o, (o + s) % 4, (o + 2) % 4, (o - s) % 4) for o in range(4) for s in (1, -1))


@dataclass(frozen=True, eq=False)
class Dofs:
    """The degrees of freedom (dofs) of one Lagrange element on one mesh.

    Numbers go up from the corners, which keep the numbers of the mesh's points, over the inner points of edges (edges
    in the order of `Connectivity.edges`) and of faces (in the order of the mesh's faces, in three dimensions) to those
    of cells.

    Attributes
    ----------
    element
        The element; ``n`` is its size.
    cells : (n_cells, n) int32
        Cell to dofs, in the local order of the element.
    points : (n_dofs, d) float64
        Place of each dof, in the unit of the mesh: images under the map of the element of order one.
    patches
        Name of each patch of the mesh to the dofs on its faces, ascending, int32.
    """

    element: Lagrange
    cells: IntArray
    points: FloatArray
    patches: Mapping[str, IntArray] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of dofs."""
        return len(self.points)

    def on(self, patches: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return which dofs lie on faces of patches, their corners and edges included.

        Parameters
        ----------
        patches
            Names of patches of the mesh; none is allowed.

        Returns
        -------
        (n_dofs,) bool

        Raises
        ------
        MeshError
            For a name the mesh does not have; the message lists those it has.
        """
        mask = np.zeros(self.size, dtype=bool)
        for name in [patches] if isinstance(patches, str) else patches:
            if name not in self.patches:
                known = ", ".join(self.patches) or "none"
                raise MeshError(f"no patch {name!r}{did_you_mean(name, self.patches)} (patches: {known})")
            mask[self.patches[name]] = True
        return mask


@dataclass(frozen=True, eq=False)
class _Numbering:
    """Where the dofs of the edges, faces and cells of a mesh begin.

    Attributes
    ----------
    mesh
        Their mesh.
    kind, block
        Type and nodes of the cells.
    lagrange
        The element.
    graph
        Faces and edges of the mesh.
    edge_keys
        Keys of the edges, ascending.
    edge_start, face_start, cell_start, size
        First dof of each class of entities, and the number of dofs.
    """

    mesh: MeshData
    kind: ElementType
    block: IntArray
    lagrange: Lagrange
    graph: Connectivity
    edge_keys: LongArray
    edge_start: int
    face_start: int
    cell_start: int
    size: int

    @property
    def inner(self) -> int:
        """Dofs inside an edge."""
        return self.lagrange.order - 1

    @property
    def face_inner(self) -> int:
        """Dofs inside a face of three-dimensional cells: none in triangles of the orders there are."""
        return self.inner**2 if self.kind.name == "hexahedron" else 0

    def edges(self, pairs: IntArray) -> LongArray:
        """Return the edge of each pair of nodes ``(m, 2)``."""
        return np.searchsorted(self.edge_keys, pair_keys(pairs, self.mesh.n_points)).astype(np.int64)


def lagrange_dofs(mesh: MeshData, order: int) -> Dofs:
    """Number the degrees of freedom of continuous Lagrange elements.

    With ``V`` points, ``E`` edges, ``F`` faces and ``C`` cells there are ``V + (p - 1) E + (p - 1)^2 F + (p - 1)^3 C``
    of them in hexahedra of order ``p``, ``V + (p - 1) E + (p - 1)^2 C`` in quads, ``V + (p - 1) E`` in simplices
    (of order 1 or 2).

    Parameters
    ----------
    mesh
        Triangles, quads, tetrahedra or hexahedra, of one kind.
    order
        ``p``: 1 to 4, of simplices 1 or 2.

    Returns
    -------
    Dofs
        Equal places have equal numbers, however the cells that share them are turned.

    Raises
    ------
    MeshError
        For cells of several kinds or another kind, points that no cell uses, broken patches and cells, and more than
        2^31 - 1 dofs.
    SolverError
        For an order that `Lagrange` does not have.
    """
    numbering = _numbering(mesh, order)
    return Dofs(
        numbering.lagrange,
        _cells(numbering),
        _points(numbering),
        {name: _on_faces(numbering, faces) for name, faces in numbering.graph.patches.items()},
    )


def _numbering(mesh: MeshData, order: int) -> _Numbering:
    """Check the mesh and count."""
    kind, block = _only_block(mesh)
    lagrange = Lagrange(_SHAPES[kind.name], order)
    graph = mesh.connectivity()
    unused = np.ones(mesh.n_points, dtype=bool)
    unused[block] = False
    if unused.any():
        raise MeshError(
            f"{mesh.source.path}: no cell uses point {int(np.argmax(unused))} ({int(unused.sum())} such points); "
            "remove them from the points and renumber the cells and patches"
        )
    keys = pair_keys(graph.edges, mesh.n_points)
    inner, faces = order - 1, graph.n_faces if kind.name == "hexahedron" else 0
    edge_start = mesh.n_points
    face_start = edge_start + inner * len(keys)
    cell_start = face_start + inner**2 * faces
    size = cell_start + lagrange.inside.size * len(block)
    if size > _MOST:
        raise MeshError(
            f"{mesh.source.path}: order {order} has {size} degrees of freedom, and their numbers have 32 bits (at most "
            f"{_MOST}); lower the order or divide the mesh among ranks"
        )
    return _Numbering(mesh, kind, block, lagrange, graph, keys, edge_start, face_start, cell_start, size)


def _only_block(mesh: MeshData) -> tuple[ElementType, IntArray]:
    """Return the one kind of cell of a mesh and its nodes."""
    found = [name for name, count in mesh.cell_counts.items() if count]
    if len(found) != 1 or found[0] not in _SHAPES:
        words = " and ".join(found) or "no cells"
        raise MeshError(
            f"{mesh.source.path}: Lagrange elements need cells of one kind ({', '.join(_SHAPES)}), and the mesh has "
            f"{words}; divide the other cells, or make a mesh of one kind"
        )
    return element(found[0]), mesh.cells[found[0]]


def _cells(numbering: _Numbering) -> IntArray:
    """Return cell to dofs."""
    block, kind, lagrange, inner = numbering.block, numbering.kind, numbering.lagrange, numbering.inner
    cells = np.empty((len(block), lagrange.size), dtype=np.int32)
    cells[:, : kind.n_nodes] = block
    if inner:
        steps = np.arange(inner)
        for local, pair in enumerate(kind.edges):
            nodes = block[:, pair]
            first = numbering.edge_start + inner * numbering.edges(nodes)[:, None]
            rises = (nodes[:, 0] < nodes[:, 1])[:, None]
            cells[:, lagrange.on_edges[local]] = first + np.where(rises, steps, steps[::-1])
    if numbering.face_inner:
        faces = numbering.graph.cell_faces.indices.reshape(len(block), -1).astype(np.int64)
        for local, corners in enumerate(kind.faces):
            first = numbering.face_start + numbering.face_inner * faces[:, local, None]
            turns = _turns(block[:, corners])
            cells[:, lagrange.on_faces[local]] = first + _face_steps(lagrange, corners, lagrange.on_faces[local])[turns]
    inside = numbering.cell_start + np.arange(lagrange.inside.size * len(block))
    cells[:, lagrange.inside] = inside.reshape(len(block), -1)
    return cells


def _turns(nodes: IntArray) -> LongArray:
    """Return the row of `_FRAMES` that each face ``(m, 4)`` has: from its lowest node first to the lower beside it."""
    origin, rows = np.argmin(nodes, axis=1), np.arange(len(nodes))
    after, before = nodes[rows, (origin + 1) % 4], nodes[rows, (origin + 3) % 4]
    return 2 * origin + (after > before)


def _face_steps(lagrange: Lagrange, corners: Sequence[int], dofs: IntArray) -> LongArray:
    """Return the place of each dof inside a face, in the frames of all eight turns: ``(8, (p - 1)^2)``.

    Places are ``(i - 1) + (p - 1) (j - 1)`` at ``origin + (i first + j second) / p``.
    """
    corner, points = lagrange.points[list(corners)], lagrange.points[dofs]
    steps = np.empty((len(_FRAMES), len(dofs)), dtype=np.int64)
    for turn, (origin, first, _, second) in enumerate(_FRAMES):
        axes = np.stack([corner[first], corner[second]]) - corner[origin]
        i, j = np.rint(lagrange.order * axes @ (points - corner[origin]).T).astype(np.int64) - 1
        steps[turn] = i + (lagrange.order - 1) * j
    return steps


def _points(numbering: _Numbering) -> FloatArray:
    """Return the places of all dofs; those of edges and faces do not depend on a cell, so are the same to the bit."""
    mesh, lagrange, inner = numbering.mesh, numbering.lagrange, numbering.inner
    points = np.empty((numbering.size, mesh.dimension))
    points[: mesh.n_points] = mesh.points
    edges, faces, cells = numbering.edge_start, numbering.face_start, numbering.cell_start
    step = np.arange(1, inner + 1) / lagrange.order
    points[edges:faces] = _mapped("line", step[:, None], mesh.points[numbering.graph.edges])
    if numbering.face_inner:
        graph = numbering.graph
        nodes = np.concatenate([graph.interior_nodes.indices, graph.boundary_nodes.indices]).reshape(-1, 4)
        nodes = np.take_along_axis(nodes, np.array(_FRAMES)[_turns(nodes)], axis=1)
        grid = np.stack([np.tile(step, inner), np.repeat(step, inner)], axis=1)
        points[faces:cells] = _mapped("quad", grid, mesh.points[nodes])
    points[cells:] = _mapped(lagrange.shape, lagrange.points[lagrange.inside], mesh.points[numbering.block])
    return points


def _mapped(shape: str, reference: FloatArray, corners: FloatArray) -> FloatArray:
    """Map reference points ``(k, r)`` to cells with corners ``(m, c, d)``: ``(m k, d)``."""
    mapped = Lagrange(shape, 1).values(reference) @ corners
    return mapped.reshape(mapped.shape[0] * mapped.shape[1], mapped.shape[2])


def _on_faces(numbering: _Numbering, faces: range) -> IntArray:
    """Return the dofs on a range of boundary faces, ascending."""
    graph, mesh = numbering.graph, numbering.mesh
    width = len(numbering.kind.faces[0])
    nodes = graph.boundary_nodes.indices.reshape(-1, width)[faces.start : faces.stop]
    sides = nodes if mesh.dimension == 2 else np.stack([nodes, np.roll(nodes, -1, axis=1)], axis=2)
    edges = np.unique(numbering.edges(sides.reshape(-1, 2)))
    on_edges = numbering.edge_start + numbering.inner * edges[:, None] + np.arange(numbering.inner)
    numbers = graph.n_interior + np.arange(faces.start, faces.stop)
    inner = numbering.face_inner
    on_faces = numbering.face_start + inner * numbers[:, None] + np.arange(inner)
    parts = [np.unique(nodes), on_edges.reshape(-1), on_faces.reshape(-1)]  # in ascending order of numbers
    return np.concatenate(parts).astype(np.int32)
