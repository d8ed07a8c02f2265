"""Tables of central moments on lattices that have all products of three velocities along each axis.

The moment of orders ``(a, b, c)``, each 0, 1 or 2, has the number ``9 a + 3 b + c``, in a plane ``3 a + b``. What the
moments are is told in `fluxloom.lbm.collisions.central`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

__all__ = ["ProductMoments"]

LINE = (1 / 6, 2 / 3, 1 / 6)
"""Weights of the velocities -1, 0 and 1."""

EVEN = (1.0, 0.0, 1 / 3)
"""Their moments of order 0, 1 and 2."""


@dataclass(frozen=True)
class ProductMoments:
    """Where moments are, and what they are in equilibrium.

    Attributes
    ----------
    velocities
        Of the lattice, ``(3^d, d)``.
    """

    velocities: tuple[tuple[int, ...], ...]

    @property
    def axes(self) -> int:
        """Number of axes."""
        return len(self.velocities[0])

    @cached_property
    def digits(self) -> tuple[tuple[int, ...], ...]:
        """Orders of each moment along each axis; minus one they are the velocity in its place before the transform."""
        return tuple(product(range(3), repeat=self.axes))

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Number of the velocity that each place has before the transform."""
        return tuple(self.velocities.index(tuple(n - 1 for n in digit)) for digit in self.digits)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """From a moment to that of the next order along an axis ``a``, ``3^(d - 1 - a)``."""
        return tuple(3 ** (self.axes - 1 - a) for a in range(self.axes))

    @cached_property
    def starts(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the moments of order 0 along each axis: where the lines along it begin."""
        return tuple(tuple(i for i, digit in enumerate(self.digits) if digit[a] == 0) for a in range(self.axes))

    @cached_property
    def offsets(self) -> tuple[tuple[float, ...], ...]:
        """``K``: what the weights add to the moment of order 0 of each of these lines, when the axes before are done.

        ``prod_{b < a} (1, 0, 1/3)_n_b prod_{b > a} (1/6, 2/3, 1/6)_n_b``, the moments of axes that are done, and
        weights.
        """
        return tuple(
            tuple(
                prod(EVEN[n] if b < a else LINE[n] for b, n in enumerate(self.digits[i]) if b != a)
                for i in self.starts[a]
            )
            for a in range(self.axes)
        )

    @cached_property
    def orders(self) -> tuple[int, ...]:
        """Order of each moment."""
        return tuple(map(sum, self.digits))

    @cached_property
    def targets(self) -> tuple[float, ...]:
        """Moments of the weights, ``K = prod_a (1, 0, 1/3)_n_a`` of the orders ``n_a``.

        Those of equilibrium over the density.
        """
        return tuple(prod(EVEN[n] for n in digit) for digit in self.digits)

    @cached_property
    def along(self) -> tuple[int, ...]:
        """The axis of moments that have one odd order; else -1."""
        return tuple(digit.index(1) if digit.count(1) == 1 else -1 for digit in self.digits)

    @cached_property
    def halves(self) -> tuple[float, ...]:
        """``1/2 prod_{b != a} (1, 0, 1/3)_n_b``: half of what a force along that axis ``a`` is in these moments."""
        return tuple(0.5 * prod(EVEN[n] for n in digit if n != 1) for digit in self.digits)
