"""Lagrange elements: where the degrees of freedom of a reference cell lie, and their basis functions.

A cell has coordinates ``z`` that are ``order`` times those of its axes (lines, quads, hexahedra) or ``order`` times
the barycentric ones (triangles, tetrahedra). Each point of the element has whole numbers for coordinates, its *levels*
``a``, and its basis function is a product of polynomials of one coordinate each,

    phi(z) = prod_c prod_{k in S(a_c)} (z_c - k) / (a_c - k),

with ``S(a)`` all levels but ``a`` for axes, and the levels below ``a`` for barycentric coordinates. It is 1 at its own
point and 0 at the others.

Source: O. C. Zienkiewicz, R. L. Taylor, J. Z. Zhu, "The Finite Element Method: Its Basis and Fundamentals", 6th ed.
(2005), chapter 4, the Lagrange families of rectangles and prisms and the family of triangles; for simplices P.
Silvester, "High-order polynomial triangular finite elements for potential problems", International Journal of
Engineering Science 7 (1969) 849-861, the functions of volume coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.mesh.data.elements import ElementType, element
from fluxloom.mesh.data.once import Once

__all__ = ["CELLS", "MAX_ORDER", "Lagrange"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
Array = TypeVar("Array", bound=npt.NDArray[Any])

CELLS: Mapping[str, str] = MappingProxyType(
    {"line": "line", "quad": "quad", "hexahedron": "hexahedron", "triangle": "triangle", "tetrahedron": "tetra"}
)
"""Each shape, and what `fluxloom.mesh.data.elements` calls a cell of it; read only."""

MAX_ORDER: Mapping[str, int] = MappingProxyType(
    {"line": 4, "quad": 4, "hexahedron": 4, "triangle": 2, "tetrahedron": 2}
)
"""The highest order of a Lagrange element of each shape; read only."""

_SIMPLICES = frozenset({"triangle", "tetrahedron"})
_BOX_CORNERS = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))


@dataclass(frozen=True)
class Lagrange:
    """The Lagrange element of one shape and order, on its reference cell, with points at equal distances.

    The reference cell of lines, quads and hexahedra is ``[0, 1]^d``, that of triangles and tetrahedra the simplex
    ``x_i >= 0, sum x_i <= 1``. Degrees of freedom are numbered so: the corners in the order of
    `fluxloom.mesh.data.elements`; the points inside each edge, from its first to its second corner; those inside each
    face of a cell in three dimensions, the direction from its first to its second corner fastest, then that from its
    first to its last corner; those inside the cell, ``x`` fastest, then ``y``, then ``z``. The points inside a line are
    those of its only edge. All arrays are read only.

    Parameters
    ----------
    shape
        ``"line"``, ``"quad"``, ``"hexahedron"``, ``"triangle"`` or ``"tetrahedron"``.
    order
        Degree of the polynomials: in each coordinate, or for triangles and tetrahedra altogether; 1 to `MAX_ORDER`.

    Raises
    ------
    SolverError
        For another shape or order.
    """

    shape: str
    order: int

    def __post_init__(self) -> None:
        if self.shape not in CELLS:
            hint, known = did_you_mean(str(self.shape), CELLS), ", ".join(CELLS)
            raise SolverError(f"Lagrange: unknown shape {self.shape!r} of a cell{hint} (known: {known})")
        most = MAX_ORDER[self.shape]
        if isinstance(self.order, bool) or not isinstance(self.order, int) or not 1 <= self.order <= most:
            raise SolverError(f"Lagrange: a {self.shape} has the orders 1 to {most}, not {self.order!r}")

    @property
    def kind(self) -> ElementType:
        """The linear cell of the mesh with this shape: its edges and faces."""
        return element(CELLS[self.shape])

    @property
    def dimension(self) -> int:
        """Number of coordinates ``d``."""
        return self.kind.dimension

    @property
    def corners(self) -> int:
        """Number of corners: the first degrees of freedom."""
        return self.kind.n_nodes

    @property
    def size(self) -> int:
        """Number of degrees of freedom ``n``."""
        return len(self.levels)

    @Once
    def points(self) -> FloatArray:
        """Places of the degrees of freedom on the reference cell, ``x = levels / order``, ``(n, d)``, no unit."""
        return _frozen(self.levels[:, -self.dimension :] / self.order)

    @Once
    def on_edges(self) -> IntArray:
        """Degrees of freedom inside each edge, from its first to its second corner, ``(edges, order - 1)``."""
        count = len(self.kind.edges)
        return _numbers(self.corners, count, self.order - 1)

    @Once
    def on_faces(self) -> IntArray:
        """Degrees of freedom inside each face, ``(faces, k)``: 0 faces in one or two dimensions.

        ``k`` is ``(order - 1)^2`` for a hexahedron and 0 for a tetrahedron.
        """
        count = len(self.kind.faces) if self.dimension == 3 else 0
        each = 0 if self.shape in _SIMPLICES else (self.order - 1) ** 2
        return _numbers(self.corners + self.on_edges.size, count, each)

    @Once
    def inside(self) -> IntArray:
        """Degrees of freedom on no corner, edge or face, ``(k,)``: the last ones."""
        start = self.corners + self.on_edges.size + self.on_faces.size
        return _numbers(start, 1, self.size - start)[0]

    @Once
    def levels(self) -> IntArray:
        """Whole coordinates ``z`` of each point, ``(n, d)`` or for simplices ``(n, d + 1)``, barycentric.

        ``points * order``, and for simplices before them what is missing to the sum ``order``.
        """
        p, corners = self.order, _corner_levels(self)
        rows = [p * corner for corner in corners]
        for first, second in self.kind.edges:
            rows += [p * corners[first] + k * (corners[second] - corners[first]) for k in range(1, p)]
        # points inside triangles and tetrahedra begin with the orders 3 and 4
        quads = [face for face in self.kind.faces if len(face) == 4] if self.dimension == 3 else []
        for face in quads:
            origin, along, across = (corners[face[k]] for k in (0, 1, -1))
            rows += [
                p * origin + i * (along - origin) + j * (across - origin) for j in range(1, p) for i in range(1, p)
            ]
        if self.shape in ("quad", "hexahedron"):
            rows += [np.array(place[::-1]) + 1 for place in np.ndindex(*(p - 1,) * self.dimension)]
        return _frozen(np.array(rows, dtype=np.int32))

    def values(self, x: npt.ArrayLike) -> FloatArray:
        """Return the basis functions at places, ``phi_i(x_m)``.

        Parameters
        ----------
        x : (m, d)
            Places on the reference cell; outside of it the polynomials go on.

        Returns
        -------
        (m, n)
            Their sum over ``n`` is 1.

        Raises
        ------
        SolverError
            For places of another shape.
        """
        factors, _ = self._factors(x)
        return np.asarray(factors.prod(axis=2))

    def gradients(self, x: npt.ArrayLike) -> FloatArray:
        """Return the gradients of the basis functions with respect to the reference coordinates.

        Parameters
        ----------
        x : (m, d)
            Places on the reference cell.

        Returns
        -------
        (m, n, d)
            ``d phi_i / d x_j`` at ``x_m``; their sum over ``n`` is 0.

        Raises
        ------
        SolverError
            For places of another shape.
        """
        factors, slopes = self._factors(x)
        slope_of_z = self.order * _gradients_of_coordinates(self)
        out = np.zeros((*factors.shape[:2], self.dimension))
        for c in range(factors.shape[2]):
            others = np.delete(factors, c, axis=2).prod(axis=2)
            out += (slopes[:, :, c] * others)[:, :, None] * slope_of_z[c]
        return out

    def _factors(self, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the polynomial of each coordinate and its derivative by it, ``(m, n, coordinates)``."""
        places = np.asarray(x, dtype=np.float64)
        if places.ndim != 2 or places.shape[1] != self.dimension:
            raise SolverError(f"{self}: places of the shape (m, {self.dimension}) are wanted, not {places.shape}")
        simplex = self.shape in _SIMPLICES
        if simplex:
            places = np.column_stack([1.0 - places.sum(axis=1), places])
        tables = [_polynomial(self.order * places, a, a if simplex else self.order + 1) for a in range(self.order + 1)]
        values, slopes = (np.stack([table[k] for table in tables], axis=2) for k in (0, 1))  # (m, coordinates, levels)
        coordinate = np.arange(places.shape[1])
        return values[:, coordinate, self.levels], slopes[:, coordinate, self.levels]


def _polynomial(z: FloatArray, level: int, end: int) -> tuple[FloatArray, FloatArray]:
    """Return the polynomial that is 1 at a level and 0 at the others before ``end``, and its derivative."""
    value, slope = np.ones_like(z), np.zeros_like(z)
    for k in range(end):
        if k != level:
            slope = (slope * (z - k) + value) / (level - k)
            value = value * (z - k) / (level - k)
    return value, slope


def _corner_levels(item: Lagrange) -> IntArray:
    """Return the levels of the corners for the order 1."""
    if item.shape in _SIMPLICES:
        return np.eye(item.corners, dtype=np.int32)
    return np.array(_BOX_CORNERS[: item.corners], dtype=np.int32)[:, : item.dimension]


def _gradients_of_coordinates(item: Lagrange) -> FloatArray:
    """Return the gradients of the coordinates that levels are in, ``(coordinates, d)``."""
    own = np.eye(item.dimension)
    return np.vstack([-np.ones(item.dimension), own]) if item.shape in _SIMPLICES else own


def _numbers(start: int, rows: int, width: int) -> IntArray:
    """Return consecutive numbers as ``(rows, width)``."""
    return _frozen(np.arange(start, start + rows * width, dtype=np.int32).reshape(rows, width))


def _frozen(array: Array) -> Array:
    """Make an array read only: elements share what they keep."""
    array.setflags(write=False)
    return array
