r"""Regularised delta functions: how the values of a marker and of the cells around it are carried over to each other.

A delta is a product over the axes of a function ``phi`` of the distance in cells, with

.. math:: \sum_i \phi(i - x) = 1, \quad \sum_i (i - x)\, \phi(i - x) = 0, \quad \sum_i \phi^2(i - x) = C

for every ``x``: forces and torques are kept, linear fields are interpolated exactly, and the third sum, being the
same everywhere, says how much of what a marker spreads comes back to it. Sources: three points, A. Roma, C. Peskin,
M. Berger, J. Comput. Phys. 153 (1999) 509, eq. 22; four points, C. Peskin, Acta Numerica 11 (2002) 479, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Read, Write
from fluxloom.core.strategies import Strategy
from fluxloom.kernel.frontend import func, kernel
from fluxloom.kernel.intrinsics import abs, floor, max, min, sqrt

__all__ = ["Delta", "Peskin", "Roma", "weigh"]


class Delta(Strategy, what="delta function", group="fluxloom.delta_functions"):
    """A regularised delta function.

    A member is a frozen dataclass whose ``__call__``, the function of one axis, is a ``@func``.

    Attributes
    ----------
    points
        Cells of a support along each axis.
    square
        The sum ``C`` of the squares of its values.
    elastic_limits
        Of the quotient in `fluxloom.lbm.immersed.springs`: below the first nothing blew up, above the other all did;
        None: that was not measured.
    """

    points: ClassVar[int]
    square: ClassVar[float]
    elastic_limits: ClassVar[tuple[float, float] | None] = None

    if TYPE_CHECKING:  # a member has to have it

        def __call__(self, r: Any) -> Any:
            """Return the value at a distance along one axis, in cells."""

    @property
    def thickness(self) -> float:
        r"""How far outside of its markers a plane wall is felt, in cells.

        .. math:: c = \frac{1}{2} \iint \phi(x) \phi(y) |x - y| \, dx\, dy

        In a shear flow, ``nu u'' = -F phi(x)`` bends the profile over the support, and the velocity that is
        interpolated at the wall, which is zero, has the mean of it. The straight profile beyond vanishes at ``c``.
        Markers that lie so far inside of a surface make drag and torque converge faster (W.-P. Breugem, J. Comput.
        Phys. 231 (2012) 4469, found 0.3 cells best for spheres).
        """
        steps = 32
        x = (np.arange(-self.points * steps, self.points * steps) + 0.5) / (2 * steps)
        values = np.vectorize(self, otypes=[np.float64])(x) / (2 * steps)
        return float(0.5 * values @ np.abs(x[:, None] - x) @ values)

    def first(self, positions: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return ``floor(x) - 1`` of an even number of points, ``floor(x + 1/2) - 1`` of an odd one, along each axis.

        The first cell of the support, in the shape of the positions.
        """
        return np.floor(positions + (0.5 if self.points % 2 else 0.0)).astype(np.int64) - 1

    def weights(self, positions: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the supports of markers and the weights ``phi(i - x)`` of their cells.

        Parameters
        ----------
        positions : (n, d)
            In cells.

        Returns
        -------
        first : (n, d)
            First cell of the support along each axis; it may lie beyond the grid.
        weights : (n, d, points)
            Of the cells from there on, along each axis.
        """
        at = np.asarray(positions, dtype=np.float64)
        first = self.first(at)
        distance = first[..., None] + np.arange(self.points) - at[..., None]
        if not distance.size:
            return first, distance
        return first, np.vectorize(self, otypes=[np.float64])(distance)


@dataclass(frozen=True)
class Roma(Delta, name="roma"):
    """Three points an axis, ``|r| <= 1.5``: the narrowest with all three sums."""

    points = 3
    square = 1 / 2
    elastic_limits = (0.35, 1.2)

    @func
    def __call__(self, r):
        r"""``phi(r)`` of three points.

        .. math:: \phi(r) = \begin{cases} \tfrac13 \bigl(1 + \sqrt{1 - 3 r^2}\bigr) & |r| \le \tfrac12 \\
           \tfrac16 \bigl(5 - 3 |r| - \sqrt{1 - 3 (1 - |r|)^2}\bigr) & \tfrac12 \le |r| \le \tfrac32 \end{cases}
        """
        a = abs(r)
        near = min(a, 0.5)
        far = min(max(a, 0.5), 1.5)
        inner = (1.0 + sqrt(1.0 - 3.0 * near * near)) / 3.0
        outer = (5.0 - 3.0 * far - sqrt(1.0 - 3.0 * (1.0 - far) * (1.0 - far))) / 6.0
        return inner if a <= 0.5 else outer


@dataclass(frozen=True)
class Peskin(Delta, name="peskin"):
    """Four points an axis, ``|r| <= 2``.

    Even and odd cells get the same, which keeps checkerboards out of elastic bodies.
    """

    points = 4
    square = 3 / 8
    elastic_limits = (1.5, 8.5)

    @func
    def __call__(self, r):
        r"""``phi(r)`` of four points.

        .. math:: \phi(r) = \begin{cases} \tfrac18 \bigl(3 - 2 |r| + \sqrt{1 + 4 |r| - 4 r^2}\bigr) & |r| \le 1 \\
           \tfrac18 \bigl(5 - 2 |r| - \sqrt{-7 + 12 |r| - 4 r^2}\bigr) & 1 \le |r| \le 2 \end{cases}
        """
        a = abs(r)
        near = min(a, 1.0)
        far = min(max(a, 1.0), 2.0)
        inner = (3.0 - 2.0 * near + sqrt(1.0 + 4.0 * near - 4.0 * near * near)) / 8.0
        outer = (5.0 - 2.0 * far - sqrt(max(0.0, -7.0 + 12.0 * far - 4.0 * far * far))) / 8.0
        return inner if a <= 1.0 else outer


@kernel
def weigh(x: Read, first: Write, weights: Write, *, dimensions: Const[int], delta: Const[Delta]):
    """``weights[n a + i] = phi(first_a + i - x_a)``, ``first_a = floor(x_a) - 1``, with ``n`` points an axis.

    Where ``n`` is odd ``first_a = floor(x_a + 1/2) - 1``.
    """
    for a in range(dimensions):
        start = floor(x[a] + 0.5) - 1.0 if delta.points % 2 == 1 else floor(x[a]) - 1.0
        first[a] = int(start)
        for i in range(delta.points):
            weights[delta.points * a + i] = delta(start + i - x[a])
