"""Rules of quadrature on reference cells: products of Gauss's rules.

Lines, quads and hexahedra take the rule of Gauss and Legendre along each axis, simplices the conical products of
`fluxloom.mesh.geometry.quadrature`: all weights are positive and all points inside.

Source: A. H. Stroud, "Approximate Calculation of Multiple Integrals" (1971), chapter 2, Cartesian and conical
products of rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.fe.cells.elements import Lagrange
from fluxloom.mesh.geometry.quadrature import simplex_rule

__all__ = ["Quadrature", "gauss", "require_rule"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Points and weights on a reference cell: ``int g dx = sum_q weights_q g(points_q)``.

    Attributes
    ----------
    points : (q, d)
        Places on the reference cell of `fluxloom.fe.cells.elements.Lagrange`, no unit.
    weights : (q,)
        With the measure of the reference cell as their sum: 1, for triangles 1/2, for tetrahedra 1/6.
    shape
        Of the reference cell, as `fluxloom.fe.cells.elements.Lagrange` names it.

    Raises
    ------
    SolverError
        For arrays that do not fit together or to the shape, and for an unknown shape.
    """

    points: FloatArray
    weights: FloatArray
    shape: str

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or self.weights.shape != self.points.shape[:1]:
            raise SolverError(
                "Quadrature: points of the shape (q, d) and weights of the shape (q,) are wanted, "
                f"not {self.points.shape} and {self.weights.shape}"
            )
        dimension = Lagrange(self.shape, 1).dimension
        if self.points.shape[1] != dimension:
            raise SolverError(
                f"Quadrature: points of a {self.shape} have {dimension} coordinates, not {self.points.shape[1]}"
            )

    @property
    def size(self) -> int:
        """Number of points ``q``."""
        return len(self.weights)

    def __repr__(self) -> str:
        return f"Quadrature({self.shape}, {self.size} points)"


def gauss(shape: str, count: int) -> Quadrature:
    """Return the rule of Gauss on a reference cell with ``count`` points in each direction.

    Parameters
    ----------
    shape
        Of a `fluxloom.fe.cells.elements.Lagrange` element.
    count
        Points in each direction, at least 1. Lines, quads and hexahedra: exact for polynomials of the degree
        ``2 count - 1`` in each coordinate; triangles and tetrahedra: for those of the total degree ``2 count - 1``.

    Returns
    -------
    Quadrature
        Of ``count^d`` points; the first direction turns fastest. Its arrays are read only.

    Raises
    ------
    SolverError
        For another shape, or a count that is no whole number from 1 on.
    """
    dimension = Lagrange(shape, 1).dimension
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise SolverError(f"gauss: a whole number of points in each direction, 1 or more, is wanted, not {count!r}")
    if shape in ("triangle", "tetrahedron"):
        places, weights = simplex_rule(dimension, count)
        points, weights = np.ascontiguousarray(places[:, 1:]), weights / factorial(dimension)
    else:
        node, weight = simplex_rule(1, count)
        points, weights = np.zeros((1, 0)), np.ones(1)
        for _ in range(dimension):
            inner = np.tile(points, (count, 1))
            points = np.column_stack([inner, np.repeat(node[:, 1], len(points))])
            weights = np.outer(weight, weights).ravel()
    for array in (points, weights):
        array.setflags(write=False)
    return Quadrature(points, weights, shape)


def require_rule(rule: object, shape: str, name: str) -> Quadrature:
    """Return a rule that is one of a reference cell.

    Parameters
    ----------
    rule
        What was given.
    shape
        Of the cell.
    name
        Of what wants it, used in messages.

    Raises
    ------
    SolverError
        If it is no rule, or that of another cell.
    """
    if isinstance(rule, Quadrature) and rule.shape == shape:
        return rule
    given = rule if isinstance(rule, Quadrature) else f"{type(rule).__name__} {rule!r}"
    raise SolverError(f"{name}: rule is a Quadrature on the {shape}, as gauss({shape!r}, 3) gives it, not {given}")
