r"""Regularised delta functions: how the values of a marker and of the cells around it are carried over to each other.

A delta is a product over the axes of a function ``phi`` of the distance in cells, with

.. math:: \sum_i \phi(i - x) = 1, \quad \sum_i (i - x)\, \phi(i - x) = 0, \quad \sum_i \phi^2(i - x) = C

for every ``x``: forces and torques are kept, linear fields are interpolated exactly, and the third sum, being the
same everywhere, says how much of what a marker spreads comes back to it. Sources: three points, A. Roma, C. Peskin,
M. Berger, J. Comput. Phys. 153 (1999) 509, eq. 22; four points, C. Peskin, Acta Numerica 11 (2002) 479, section 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.access import Const, Read, Write
from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.kernel.frontend import Func, Kernel, func, kernel
from fluxloom.kernel.intrinsics import abs, floor, max, min, sqrt

__all__ = ["DELTAS", "PESKIN", "ROMA", "Delta", "delta_of"]


@func
def roma(r):
    """Three points: the support is ``|r| <= 1.5``."""
    a = abs(r)
    near = min(a, 0.5)
    far = min(max(a, 0.5), 1.5)
    inner = (1.0 + sqrt(1.0 - 3.0 * near * near)) / 3.0
    outer = (5.0 - 3.0 * far - sqrt(1.0 - 3.0 * (1.0 - far) * (1.0 - far))) / 6.0
    return inner if a <= 0.5 else outer


@func
def peskin(r):
    """Four points: the support is ``|r| <= 2``."""
    a = abs(r)
    near = min(a, 1.0)
    far = min(max(a, 1.0), 2.0)
    inner = (3.0 - 2.0 * near + sqrt(1.0 + 4.0 * near - 4.0 * near * near)) / 8.0
    outer = (5.0 - 2.0 * far - sqrt(max(0.0, -7.0 + 12.0 * far - 4.0 * far * far))) / 8.0
    return inner if a <= 1.0 else outer


@kernel
def weigh_roma(x: Read, first: Write, weights: Write, *, dimensions: Const[int]):
    """First cell of the support of a marker along each axis, and the weights of its three cells."""
    for a in range(dimensions):
        start = floor(x[a] + 0.5) - 1.0
        first[a] = int(start)
        for i in range(3):
            weights[3 * a + i] = roma(start + i - x[a])


@kernel
def weigh_peskin(x: Read, first: Write, weights: Write, *, dimensions: Const[int]):
    """First cell of the support of a marker along each axis, and the weights of its four cells."""
    for a in range(dimensions):
        start = floor(x[a]) - 1.0
        first[a] = int(start)
        for i in range(4):
            weights[4 * a + i] = peskin(start + i - x[a])


@dataclass(frozen=True)
class Delta:
    """A regularised delta function.

    Attributes
    ----------
    name
        As options name it.
    points
        Cells of a support along each axis.
    square
        The sum ``C`` of the squares of its values.
    phi
        The function of one axis, of the kernel language.
    weigh
        The kernel that finds supports and weights of markers.
    """

    name: str
    points: int
    square: float
    phi: Func
    weigh: Kernel

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
        values = np.vectorize(self.phi, otypes=[np.float64])(x) / (2 * steps)
        return float(0.5 * values @ np.abs(x[:, None] - x) @ values)

    def first(self, positions: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the first cell of the support along each axis, in the shape of the positions."""
        return np.floor(positions + (0.5 if self.points % 2 else 0.0)).astype(np.int64) - 1

    def weights(self, positions: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the supports of markers and the weights of their cells.

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
        return first, np.vectorize(self.phi, otypes=[np.float64])(distance)


ROMA = Delta("roma", 3, 1 / 2, roma, weigh_roma)
"""Three points an axis: the narrowest with all three sums."""

PESKIN = Delta("peskin", 4, 3 / 8, peskin, weigh_peskin)
"""Four points an axis: even and odd cells get the same, which keeps checkerboards out of elastic bodies."""

DELTAS = {delta.name: delta for delta in (ROMA, PESKIN)}


def delta_of(name: str | Delta) -> Delta:
    """Return a delta function by its name.

    Raises
    ------
    SolverError
        If there is none of that name.
    """
    if isinstance(name, Delta):
        return name
    if name not in DELTAS:
        raise SolverError(f"delta function {name!r}{did_you_mean(name, DELTAS)} (allowed: {', '.join(DELTAS)})")
    return DELTAS[name]
