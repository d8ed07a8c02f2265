"""Frequencies of a periodic direction: eigenvalues, the real systems they stand for, and which are solved together.

The discrete Laplacian of ``N`` equidistant planes is a circulant matrix, which the Fourier transform diagonalises.
Frequencies ``k`` and ``N - k`` are conjugate, so that ``k = 0 ... N // 2`` are solved for: 0, and ``N / 2`` of an
even ``N``, are one real system each, the others two with the same matrix, real and imaginary part. A spectrum is
stored as real numbers ``(rows, 2 (N // 2 + 1))``: columns ``2 k`` and ``2 k + 1`` are frequency ``k``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.linalg.arguments import real, whole

__all__ = ["WIDTH", "Frequencies", "batches", "padded_systems"]

WIDTH = 8
"""Systems that are solved together: a vector of 512 bits, and as many sums as a work item has registers for."""

_QUAD = 4


@dataclass(frozen=True)
class Frequencies:
    r"""What a periodic direction with ``planes`` equidistant planes is made of.

    .. math:: |\lambda_k| = \frac{2}{\Delta} \left( 1 - \cos \frac{2 \pi k}{N} \right)
              = \frac{4}{\Delta} \sin^2 \frac{\pi k}{N}

    are the eigenvalues of :math:`-L_{per} = \mathrm{circ}(2, -1, 0, \ldots, 0, -1) / \Delta`.

    Attributes
    ----------
    planes
        ``N``, even or odd, from 1 on.
    spacing
        ``Delta``, the distance of two planes.

    Raises
    ------
    SolverError
        If one of them is out of range.
    """

    planes: int
    spacing: float

    def __post_init__(self) -> None:
        whole(self.planes, "extruded mesh: planes", 1)
        real(self.spacing, "extruded mesh: spacing", "a positive length", 0.0)

    @property
    def count(self) -> int:
        """Number of frequencies that are solved for: ``planes // 2 + 1``."""
        return self.planes // 2 + 1

    @property
    def columns(self) -> int:
        """Real numbers a row of a spectrum."""
        return 2 * self.count

    @property
    def eigenvalues(self) -> npt.NDArray[np.float64]:
        """``|lambda_k| = 4 / Delta sin^2(pi k / N)``, ``(count,)``, ascending; 0 is exactly zero."""
        return 4.0 / self.spacing * np.sin(np.pi * np.arange(self.count) / self.planes) ** 2

    @property
    def systems(self) -> npt.NDArray[np.int64]:
        """Real systems of each frequency, ``(count,)``; ``planes`` altogether."""
        found = np.full(self.count, 2)
        found[0] = 1
        if self.planes % 2 == 0:
            found[-1] = 1
        return found

    @property
    def shares(self) -> int:
        """Number of equal parts ``t`` of the square of a residual: if each system has at most ``t``, so has the whole.

        ``sum_k s_k^2`` with the systems ``s_k`` of each frequency.

        A frequency with a conjugate has two systems, and counts twice in the norm of the whole.
        """
        return int((self.systems**2).sum())


def batches(frequencies: Sequence[int] | range, width: int = WIDTH) -> list[range]:
    """Return consecutive frequencies divided into batches of at most ``width`` real systems.

    Frequency 0, the only one whose matrix may be singular, is a batch of its own. The last one of a batch is less than
    twice the first: what one of them needs, iterations and a preconditioner, the others need about as well. For 33 of
    them and a width of 8: 0, 1, 2-3, 4-7, 8-11, ..., 32.

    Raises
    ------
    SolverError
        If the width is not an even number of systems.
    """
    if not isinstance(width, int | np.integer) or width < 2 or width % 2:
        raise SolverError(f"extruded mesh: width is an even number of systems, at least 2, not {width!r}")
    first, end = frequencies[0], frequencies[-1] + 1
    found = []
    while first < end:
        last = min(first + width // 2, max(2 * first, 1), end)
        found.append(range(first, last))
        first = last
    return found


def padded_systems(frequencies: range) -> int:
    """Return how many systems a batch stores: two a frequency, and zeros up to a multiple of four."""
    systems = 2 * len(frequencies)
    return systems if systems <= 2 else -(-systems // _QUAD) * _QUAD
