r"""Separable partial differential equations on a rectangle, discretised to second order.

.. math::
    \partial_x (a u_x) + b u_x + c u + \partial_y (d u_y) + e u_y + f u = g

with ``a, b, c`` functions of ``x`` and ``d, e, f`` of ``y``. Along each axis, with diffusion ``d``, advection ``e`` and
reaction ``f`` of that axis and equal spacing ``h``:

.. math::
    \frac{d_{j+1/2} (u_{j+1} - u_j) - d_{j-1/2} (u_j - u_{j-1})}{h^2} + e_j \frac{u_{j+1} - u_{j-1}}{2 h} + f_j u_j

A value ``g`` on a side of cells is that of the mean over the side, ``u_{-1} = 2 g - u_0``; on a side of nodes it is
``u_{-1}``. An outward derivative ``g`` is the flux ``d g`` through the side.

Source: Swarztrauber (1974), section 2; for derivatives at nodes: half of a finite volume.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.linalg.arguments import whole
from fluxloom.linalg.direct.separable.coefficients import Rows, Separable

if TYPE_CHECKING:
    from fluxloom.linalg.direct.poisson.boundary import Side

__all__ = ["Axis", "Coefficient", "SeparableEquation"]

Values = npt.NDArray[np.float64]
Coefficient = float | Callable[[Values], npt.ArrayLike]
"""A number, or a function of an array of coordinates."""


@dataclass(frozen=True)
class Axis:
    """One axis of a separable equation.

    Attributes
    ----------
    unknowns
        Values along it.
    interval
        Where the domain begins and ends.
    diffusion, advection, reaction
        ``d``, ``e``, ``f``, see the module.
    centring
        "cell": unknowns at half points; "node": on points, those on a side with a given value excepted.
    """

    unknowns: int
    interval: tuple[float, float] = (0.0, 1.0)
    diffusion: Coefficient = 1.0
    advection: Coefficient = 0.0
    reaction: Coefficient = 0.0
    centring: Literal["cell", "node"] = "cell"

    def __post_init__(self) -> None:
        whole(self.unknowns, "unknowns of an axis", 1)
        try:
            low, high = (float(end) for end in self.interval)
        except (TypeError, ValueError):
            raise SolverError(
                f"interval of an axis: where it begins and ends, as in (0.0, 1.0), not {self.interval!r}"
            ) from None
        if not (high > low and np.isfinite(high - low)):
            raise SolverError(f"interval of an axis: it begins at {low:g} and ends at {high:g}: give finite low < high")
        for name in ("diffusion", "advection", "reaction"):
            given = getattr(self, name)
            if not callable(given):
                _numbers(given, f"{name} of an axis")
        if self.centring not in ("cell", "node"):
            raise SolverError(f"centring {self.centring!r} is neither 'cell' nor 'node'")

    def spacing(self, sides: tuple[Side, Side]) -> float:
        """Return the distance between unknowns, the interval over the number of gaps.

        ``n`` gaps of cells and periodic nodes, else ``n - 1`` and one for each given value.
        """
        gaps = self.unknowns
        if self.centring == "node" and sides[0].kind != "periodic":
            gaps = self.unknowns - 1 + sum(side.kind == "dirichlet" for side in sides)
        if gaps < 1:
            raise SolverError(f"an axis of {self.unknowns} nodes with derivatives on both sides: needs at least 2")
        return (self.interval[1] - self.interval[0]) / gaps

    def points(self, sides: tuple[Side, Side]) -> Values:
        """Return the coordinates of the unknowns, ``x_i = x_0 + (i + shift) h``; ``shift`` is 1/2 of cells.

        Of nodes it is 1 where the first value is given, else 0.
        """
        h = self.spacing(sides)
        shift = 0.5 if self.centring == "cell" else float(sides[0].kind == "dirichlet")
        return np.asarray(self.interval[0] + h * (np.arange(self.unknowns) + shift), dtype=np.float64)

    def rows(self, sides: tuple[Side, Side]) -> tuple[Rows, tuple[float, float]]:
        """Return the rows, and what the data of both sides are multiplied by when the right side loses them.

        ``a_i = d_{i-1/2} / h^2 - e_i / 2 h``, ``c_i = d_{i+1/2} / h^2 + e_i / 2 h``, ``b_i = f_i - (d_{i-1/2} +
        d_{i+1/2}) / h^2``.
        """
        h, x = self.spacing(sides), self.points(sides)
        d = _values(self.diffusion, self._faces(x, h, sides), "diffusion")
        e, f = _values(self.advection, x, "advection"), _values(self.reaction, x, "reaction")
        a, c = d[:-1] / h**2 - e / (2 * h), d[1:] / h**2 + e / (2 * h)
        b = f - (d[:-1] + d[1:]) / h**2
        if sides[0].kind == "periodic":
            return Rows(a, b, c, periodic=True), (0.0, 0.0)
        weights = [0.0, 0.0]
        for end, (outer, inner, place) in enumerate(((a, c, 0), (c, a, -1))):
            coefficient = float(outer[place])
            if self.centring == "cell":
                value = sides[end].kind == "dirichlet"
                b[place] += -coefficient if value else coefficient
                weights[end] = 2 * coefficient if value else h * coefficient
            elif sides[end].kind == "dirichlet":
                weights[end] = coefficient
            else:
                half = float(d[1] if end == 0 else d[-2])
                inner[place], b[place] = 2 * half / h**2, f[place] - 2 * half / h**2
                on_side = float(d[0] if end == 0 else d[-1])
                weights[end] = 2 * on_side / h + (e[place] if end else -e[place])
            outer[place] = 0.0
        return Rows(a, b, c), (weights[0], weights[1])

    def _faces(self, x: Values, h: float, sides: tuple[Side, Side]) -> Values:
        """Return where diffusion is needed: between unknowns, and never outside the domain."""
        faces = np.concatenate([[x[0] - h / 2], x + h / 2])
        return faces if sides[0].kind == "periodic" else np.clip(faces, *self.interval)


def _values(given: Coefficient, points: Values, name: str) -> Values:
    found = _numbers(given(points) if callable(given) else given, name)
    if found.shape not in ((), points.shape):
        raise SolverError(f"{name} has shape {found.shape} at {points.size} points: give a number, or one a point")
    wrong = np.flatnonzero(~np.isfinite(found))
    if wrong.size:
        raise SolverError(f"{name} is not finite at {points[wrong[0]]:g} ({wrong.size} of {points.size} points)")
    return np.broadcast_to(found, points.shape).copy()


def _numbers(given: Any, what: str) -> Values:
    """Return values as real numbers in double precision."""
    try:
        found = np.asarray(given)
    except (TypeError, ValueError):
        found = np.asarray(None)
    if found.dtype.kind not in "iuf":
        raise SolverError(f"{what}: a real number, an array of them in host memory, or a function, not {given!r}")
    return found.astype(np.float64)


class SeparableEquation:
    """A separable equation with its boundary conditions.

    Parameters
    ----------
    axes
        Of the axes 0 (``y``) and 1 (``x``) of arrays of unknowns.
    bc
        Boundary conditions as for `fluxloom.linalg.direct.poisson.Plan`: for all sides, or for each axis one or a pair.

    Attributes
    ----------
    problem
        The discrete problem.
    points
        Coordinates of the unknowns along both axes.

    Raises
    ------
    SolverError
        If these are not two axes, a condition is unknown, or the discrete problem is none that block cyclic reduction
        solves.
    """

    def __init__(self, axes: tuple[Axis, Axis], bc: Any = "dirichlet") -> None:
        from fluxloom.linalg.direct.poisson.boundary import read_conditions  # that package exports what is here

        if not isinstance(axes, Sequence) or len(axes) != 2 or not all(isinstance(axis, Axis) for axis in axes):
            raise SolverError(f"separable: axes are two of Axis, (y, x), not {axes!r}")
        self.axes = axes[0], axes[1]
        self.shape = axes[0].unknowns, axes[1].unknowns
        try:
            self.sides = read_conditions(bc, self.shape)
        except SolverError as error:
            raise SolverError(str(error).replace("poisson:", "separable:", 1)) from None
        (y, self._y), (x, self._x) = (axis.rows(sides) for axis, sides in zip(axes, self.sides, strict=True))
        self.problem = Separable(x, y)
        self.points = axes[0].points(self.sides[0]), axes[1].points(self.sides[1])

    def right_side(self, g: npt.ArrayLike | Callable[[Values, Values], npt.ArrayLike]) -> Values:
        """Return the right-hand side of the discrete problem: ``g`` at the unknowns less the data of the sides.

        Parameters
        ----------
        g
            A number, values of the shape of the unknowns, ``(n, m)``, or that can be broadcast to it; or a function of
            ``y``, shape ``(n, 1)``, and ``x``, shape ``(1, m)``, that returns such values.

        Raises
        ------
        SolverError
            If the values are no numbers or have another shape.
        """
        y, x = self.points
        values = _numbers(g(y[:, None], x[None, :]) if callable(g) else g, "right side")
        try:
            f = np.array(np.broadcast_to(values, self.shape))
        except ValueError:
            raise SolverError(
                f"right side has shape {values.shape}; the equation has {self.shape} unknowns (y, x)"
            ) from None
        for axis, weights in enumerate((self._y, self._x)):
            for place, weight, side in zip((0, -1), weights, self.sides[axis], strict=True):
                if side.data is not None:
                    f[(place,) if axis == 0 else (slice(None), place)] -= weight * side.data
        return f
