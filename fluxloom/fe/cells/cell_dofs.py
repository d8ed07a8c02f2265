"""Which degrees of freedom a cell has: numbers of corners, and of points inside edges, faces and cells.

Points of edges and faces belong to the mesh's edges and faces, whose own frames follow from the numbers of the mesh's
points alone: an edge runs from its lower to its higher point, and a face of four corners begins at its lowest one and
goes first to the lower of the two beside it. A cell that looks at an edge or a face from its own side compares those
numbers, so that it needs to know nothing of its neighbours, nor a rank of other ranks, and meshes that cannot be
oriented are as good as others.

Source: M. W. Scroggs, J. S. Dokken, C. N. Richardson, G. N. Wells, "Construction of Arbitrary Order Finite Element
Degree-of-Freedom Maps on Polygonal and Polyhedral Cell Meshes", ACM Transactions on Mathematical Software 48 (2022)
20: the points of each edge and face reflected and rotated by the numbers of its corners.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.fe.cells.elements import CELLS, Lagrange

__all__ = ["DofRanges", "EdgeNumbers", "cell_dofs", "cell_points", "edge_points", "element_of", "face_points",
           "sides_of"]  # fmt: skip

FloatArray = npt.NDArray[np.float64]
Long = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer[Any]]

EdgeNumbers = Callable[[Numbers], Long]
"""The number of the edge of each pair of points ``(m, 2)``."""

_SHAPES = {kind: shape for shape, kind in CELLS.items() if shape != "line"}  # cells of a mesh have faces
# The corners of a four-cornered face by its turn 2 * origin + reversed: origin, along the first axis, opposite, along
# the second axis.
_FRAMES = tuple((o, (o + s) % 4, (o + 2) % 4, (o - s) % 4) for o in range(4) for s in (1, -1))


def element_of(path: str, kinds: Sequence[str], order: int) -> Lagrange:
    """Return the element of a mesh with some kinds of cells.

    Parameters
    ----------
    path
        Of the mesh, used in messages.
    kinds
        Names of the kinds of its cells, as in `fluxloom.mesh.data.elements`.
    order
        ``p`` of the element.

    Raises
    ------
    MeshError
        If they are not of one kind, or one that has no element.
    SolverError
        For an order that `Lagrange` does not have.
    """
    if len(kinds) != 1 or kinds[0] not in _SHAPES:
        words = " and ".join(kinds) or "no cells"
        raise MeshError(
            f"{path}: Lagrange elements need cells of one kind ({', '.join(_SHAPES)}), and the mesh has "
            f"{words}; divide the other cells, or make a mesh of one kind"
        )
    return Lagrange(_SHAPES[kinds[0]], order)


@dataclass(frozen=True)
class DofRanges:
    """Where the degrees of freedom of each class of entities begin.

    Attributes
    ----------
    lagrange
        The element.
    edges, faces, cells, size
        The first one of edges, of faces and of cells, and the number of all.
    """

    lagrange: Lagrange
    edges: int
    faces: int
    cells: int
    size: int

    @classmethod
    def of(cls, lagrange: Lagrange, points: int, edges: int, faces: int, cells: int) -> DofRanges:
        """Count them in a mesh of so many points, edges, faces and cells."""
        inner = lagrange.order - 1
        per_face = inner**2 if lagrange.shape == "hexahedron" else 0
        first = points + inner * edges
        inside = first + per_face * faces
        return cls(lagrange, points, first, inside, inside + lagrange.inside.size * cells)

    @property
    def inner(self) -> int:
        """Degrees of freedom inside an edge."""
        return self.lagrange.order - 1

    @property
    def face_inner(self) -> int:
        """Those inside a face of three-dimensional cells: none in triangles of the orders there are."""
        return self.inner**2 if self.lagrange.shape == "hexahedron" else 0

    def of_edges(self, numbers: Long) -> Long:
        """Return the degrees of freedom inside some edges, edge by edge."""
        return (self.edges + self.inner * numbers[:, None] + np.arange(self.inner)).reshape(-1)

    def of_faces(self, numbers: Long) -> Long:
        """Return those inside some faces, face by face."""
        return (self.faces + self.face_inner * numbers[:, None] + np.arange(self.face_inner)).reshape(-1)

    def of_cells(self, numbers: Long) -> Long:
        """Return those inside some cells, cell by cell."""
        each = self.lagrange.inside.size
        return (self.cells + each * numbers[:, None] + np.arange(each)).reshape(-1)


def cell_dofs(
    ranges: DofRanges, block: Numbers, edges: EdgeNumbers, faces: Numbers | None, numbers: Long, out: Numbers
) -> None:
    """Write the degrees of freedom of some cells.

    Parameters
    ----------
    ranges
        Numbers of those of the mesh.
    block : (m, corners)
        Points of each cell.
    edges
        Tells edges by their points.
    faces : (m, faces)
        Numbers of the faces of each cell; hexahedra of order 2 and more need them.
    numbers : (m,)
        Of the cells.
    out : (m, n)
        The result, in the local order of the element.
    """
    lagrange = ranges.lagrange
    kind = lagrange.kind
    out[:, : kind.n_nodes] = block
    if ranges.inner:
        steps = np.arange(ranges.inner)
        for local, pair in enumerate(kind.edges):
            nodes = block[:, pair]
            first = ranges.edges + ranges.inner * edges(nodes)[:, None]
            rises = (nodes[:, 0] < nodes[:, 1])[:, None]
            out[:, lagrange.on_edges[local]] = first + np.where(rises, steps, steps[::-1])
    if ranges.face_inner:
        assert faces is not None
        for local, corners in enumerate(kind.faces):
            first = ranges.faces + ranges.face_inner * faces[:, local, None].astype(np.int64)
            turns = _turns(block[:, corners])
            out[:, lagrange.on_faces[local]] = first + _face_steps(lagrange, corners, lagrange.on_faces[local])[turns]
    out[:, lagrange.inside] = ranges.of_cells(numbers).reshape(len(block), lagrange.inside.size)


def sides_of(nodes: Numbers) -> Numbers:
    """Return the edges round some faces ``(m, k)``, ``(m k, 2)``; a face of two points is one edge."""
    return nodes if nodes.shape[1] == 2 else np.stack([nodes, np.roll(nodes, -1, axis=1)], axis=2).reshape(-1, 2)


def edge_points(lagrange: Lagrange, corners: FloatArray) -> FloatArray:
    """Return the places inside edges from the lower to the higher point: ``(m (p - 1), d)``, edge by edge.

    Parameters
    ----------
    lagrange
        The element of the cells, of order ``p``.
    corners : (m, 2, d)
        Places of the two points of each edge, the lower number first.
    """
    step = np.arange(1, lagrange.order) / lagrange.order
    return _mapped("line", step[:, None], corners)


def face_points(lagrange: Lagrange, nodes: Numbers, corners: FloatArray) -> FloatArray:
    """Return the places inside faces of four corners, in their own frames: ``(m (p - 1)^2, d)``, face by face.

    Parameters
    ----------
    lagrange
        The element of the cells, of order ``p``.
    nodes : (m, 4)
        Numbers of the points of each face, round it: they decide where its frame begins.
    corners : (m, 4, d)
        Their places.
    """
    step = np.arange(1, lagrange.order) / lagrange.order
    frames = np.array(_FRAMES)[_turns(nodes)]
    grid = np.stack([np.tile(step, step.size), np.repeat(step, step.size)], axis=1)
    return _mapped("quad", grid, np.take_along_axis(corners, frames[:, :, None], axis=1))


def cell_points(lagrange: Lagrange, corners: FloatArray) -> FloatArray:
    """Return the places inside cells: ``(m k, d)``, cell by cell, with ``k`` dofs inside each.

    Parameters
    ----------
    lagrange
        The element of the cells.
    corners : (m, corners, d)
        Places of the corners of each cell.
    """
    return _mapped(lagrange.shape, lagrange.points[lagrange.inside], corners)


def _turns(nodes: Numbers) -> Long:
    """Return the row of `_FRAMES` that each face ``(m, 4)`` has: from its lowest node first to the lower beside it."""
    origin, rows = np.argmin(nodes, axis=1), np.arange(len(nodes))
    after, before = nodes[rows, (origin + 1) % 4], nodes[rows, (origin + 3) % 4]
    return 2 * origin + (after > before)


def _face_steps(lagrange: Lagrange, corners: Sequence[int], dofs: Numbers) -> Long:
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


def _mapped(shape: str, reference: FloatArray, corners: FloatArray) -> FloatArray:
    """Map reference points ``(k, r)`` to cells with corners ``(m, c, d)``: ``(m k, d)``."""
    mapped = Lagrange(shape, 1).values(reference) @ corners
    return mapped.reshape(mapped.shape[0] * mapped.shape[1], mapped.shape[2])
