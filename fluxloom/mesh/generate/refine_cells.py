"""How one cell is divided into similar ones: its points, and its children as tables of them.

Two corners name a point of a cell: a corner and itself that corner, the ends of an edge its midpoint, opposite corners
of a face with four nodes the mean of that face, opposite corners of a hexahedron its mean. The child at corner ``c``
of any type then has the points ``(c, 0), (c, 1) ...``: the cell shrunk to half its size towards that corner. What the
children at the corners leave is

- of a triangle, a triangle; of a prism, two prisms: the middle ones of its two layers;
- of a tetrahedron, an octahedron about its centre, cut into four tetrahedra around its shortest diagonal;
- of a pyramid, a pyramid that stands on its head below the apex, and four tetrahedra under its triangles.

References
----------
J. Bey: Tetrahedral grid refinement, Computing 55, 1995, section 2 (corners and the octahedron; its diagonals).
S. Zhang: Successive subdivisions of tetrahedra and multigrid methods on tetrahedral meshes, Houston Journal of
Mathematics 21, 1995, section 3 (which diagonal keeps tetrahedra from getting flat).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.elements import ElementType, element
from fluxloom.mesh.data.mesh import FloatArray, IntArray

__all__ = ["CHILDREN", "Division"]

Table = npt.NDArray[np.int64]

CHILDREN: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "line": {"line": 2},
        "triangle": {"triangle": 4},
        "quad": {"quad": 4},
        "tetra": {"tetra": 8},
        "pyramid": {"pyramid": 6, "tetra": 4},
        "prism": {"prism": 8},
        "hexahedron": {"hexahedron": 8},
    }
)
"""Number of children of each type, by their type."""

_INNER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "triangle": ("01 12 20",),
        "prism": ("01 12 20 04 15 23", "04 15 23 34 45 53"),
        "pyramid": ("04 34 24 14 02",),
    }
)
"""Children that are at no corner, of the type of the cell."""

_ORDER: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "line": (0, 1),
        "triangle": (0, 3, 1, 2),
        "quad": (0, 3, 2, 1),
        "tetra": (0, 1, 2, 3),
        "pyramid": (0, 1, 2, 3, 5, 4),
        "prism": (0, 1, 6, 2, 5, 7, 4, 3),
        "hexahedron": (0, 4, 7, 3, 2, 6, 5, 1),
    }
)
"""Order of the children: those at the corners by their numbers, then the inner ones. Neighbours follow one another; the
last quad or hexahedron is a neighbour of the first one in the cell behind the edge of corners 0 and 1."""

_UNDER_TRIANGLES = ("01 04 14 02", "12 14 24 02", "23 24 34 02", "30 34 04 02")
"""Tetrahedra of a pyramid: midpoints of the sides of a triangle, middle of the base."""

_OCTAHEDRA = (
    ("02 13 01 12", "02 13 12 23", "02 13 23 03", "02 13 03 01"),
    ("01 23 12 02", "01 23 02 03", "01 23 03 13", "01 23 13 12"),
    ("03 12 01 02", "03 12 02 23", "03 12 23 13", "03 12 13 01"),
)
"""Inner tetrahedra of a tetrahedron, for each diagonal of the octahedron; the diagonal is their first two points."""

_EQUAL = 1e-9
"""Squares of lengths that differ less than this are equal: rounding does not choose between diagonals."""

_LOOP4 = (0, 1, 2, 3)


@dataclass(frozen=True)
class Division:
    """How the cells of one type are divided.

    The points of a cell are numbered: its corners, the midpoints of its edges in the order of the element's table,
    the means of its faces with four nodes likewise (a quad is one itself), the mean of a hexahedron.

    Attributes
    ----------
    kind
        The type.
    """

    kind: ElementType

    @classmethod
    def of(cls, name: str) -> Division:
        """Return the division of a type by its name, one of `CHILDREN`."""
        return cls(element(name))

    @cached_property
    def edges(self) -> Table:
        """Corners of each edge, ``(edges, 2)``."""
        return np.array(self.kind.edges, dtype=np.int64)

    @cached_property
    def loops(self) -> tuple[tuple[int, ...], ...]:
        """Corners of each face with four nodes."""
        return (_LOOP4,) if self.kind.name == "quad" else tuple(face for face in self.kind.faces if len(face) == 4)

    @cached_property
    def loop_edges(self) -> Table:
        """Numbers of the edges around each face with four nodes, ``(loops, 4)``; the first and third are opposite."""
        number = {frozenset(edge): k for k, edge in enumerate(self.kind.edges)}
        sides = [[number[frozenset((loop[k], loop[(k + 1) % 4]))] for k in range(4)] for loop in self.loops]
        return np.array(sides, dtype=np.int64).reshape(-1, 4)

    @property
    def has_centre(self) -> bool:
        """Whether the mean of the cell is one of its points, and of no other cell."""
        return self.kind.name == "hexahedron"

    def children(self, cells: IntArray, points: FloatArray) -> Iterator[tuple[str, IntArray]]:
        """Yield the type and the nodes ``(children, k)`` of children, cell by cell.

        Parameters
        ----------
        cells : (m, points of a cell)
            Their numbers.
        points : (n, d)
            Coordinates; those of the corners decide how tetrahedra are cut.
        """
        corners = range(self.kind.n_nodes)
        written = [" ".join(f"{a}{b}" for b in corners) for a in corners] + [*_INNER.get(self.kind.name, ())]
        own = self._table([written[k] for k in _ORDER[self.kind.name]])
        if self.kind.name == "tetra":
            yield "tetra", self._tetrahedra(cells, own, points)
            return
        yield self.kind.name, cells[:, own].reshape(-1, self.kind.n_nodes)
        if self.kind.name == "pyramid":
            yield "tetra", cells[:, self._table(_UNDER_TRIANGLES)].reshape(-1, 4)

    def _tetrahedra(self, cells: IntArray, corners: Table, points: FloatArray) -> IntArray:
        """Return the children of tetrahedra, ``(8 m, 4)``: those at the corners first."""
        found = np.empty((len(cells), 8, 4), dtype=np.int32)
        found[:, :4] = cells[:, corners]
        inner = [self._table(octahedron) for octahedron in _OCTAHEDRA]
        way = _shortest(points, cells[:, :4])
        for k, table in enumerate(inner):
            rows = np.flatnonzero(way == k)
            found[rows, 4:] = cells[rows[:, None, None], table]
        return found.reshape(-1, 4)

    def _table(self, children: Sequence[str]) -> Table:
        """Return the numbers of the points of children that are written as pairs of corners."""
        return np.array([[self._number(int(word[0]), int(word[1])) for word in child.split()] for child in children])

    def _number(self, a: int, b: int) -> int:
        """Return the number of the point between two corners."""
        if a == b:
            return a
        first = self.kind.n_nodes
        for k, pair in enumerate(self.kind.edges):
            if {a, b} == set(pair):
                return first + k
        first += len(self.kind.edges)
        for k, loop in enumerate(self.loops):
            if {a, b} <= set(loop):
                return first + k
        return first + len(self.loops)


def _shortest(points: FloatArray, corners: IntArray) -> npt.NDArray[np.intp]:
    """Return which diagonal of the inner octahedron is the shortest; of equal ones the first.

    The diagonal between the midpoints of the edges ``ab`` and ``cd`` is ``(c + d - a - b) / 2``.
    """
    squares = np.zeros((3, len(corners)))
    for x in points.T:
        a, b, c, d = (x[corners[:, k]] for k in range(4))
        for square, way in zip(squares, (b + d - a - c, c + d - a - b, b + c - a - d), strict=True):
            square += way * way
    return np.argmax(squares <= (1.0 + _EQUAL) * squares.min(axis=0), axis=0)
