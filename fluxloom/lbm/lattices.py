"""Lattices: sets of discrete velocities with their weights.

Y. H. Qian, D. d'Humieres, P. Lallemand, "Lattice BGK models for Navier-Stokes equation", Europhysics
Letters 17 (1992) 479-484. The speed of sound is ``1 / sqrt(3)`` lattice units a step in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from fluxloom.lbm.lattices_product import ProductMoments

__all__ = ["D2Q9", "D3Q19", "D3Q27", "LATTICES", "SOUND_SPEED_SQUARED", "Lattice"]

SOUND_SPEED_SQUARED = 1.0 / 3.0

Velocity = tuple[int, ...]


@dataclass(frozen=True)
class Lattice:
    """Discrete velocities: rest first, then pairs of opposite directions side by side.

    ``sum w_i = 1``, ``sum w_i c_ia c_ib = c_s^2 delta_ab``, ``c_s^2 = 1/3``.

    Attributes
    ----------
    name
        ``"D2Q9"``: two dimensions, nine velocities.
    velocities
        ``(q, dimensions)`` in cells a step, slowest axis of the grid first: ``(cz, cy, cx)``.
    weights
        ``(q,)``, summing to one.
    """

    name: str
    velocities: tuple[Velocity, ...]
    weights: tuple[float, ...]

    @property
    def q(self) -> int:
        """Number of velocities."""
        return len(self.velocities)

    @property
    def dimensions(self) -> int:
        """Number of axes."""
        return len(self.velocities[0])

    @property
    def opposite(self) -> tuple[int, ...]:
        """Number of the direction against each one."""
        return tuple(self.velocities.index(_against(c)) for c in self.velocities)

    @property
    def sources(self) -> tuple[Velocity, ...]:
        """Where what arrives at a cell comes from: minus each velocity, the stencil of pull streaming."""
        return tuple(_against(c) for c in self.velocities)

    @property
    def least(self) -> float:
        """The least weight, that of the last velocity."""
        return self.weights[-1]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Weights over the least one, ``w_i / w``, which are whole numbers."""
        return tuple(float(round(weight / self.least)) for weight in self.weights)

    @property
    def is_product(self) -> bool:
        """Whether it has all products of three velocities along each axis."""
        return self.q == 3**self.dimensions

    @property
    def product(self) -> ProductMoments:
        """Tables of its central moments; of a lattice that has all products of velocities."""
        return ProductMoments(self.velocities)


def _against(velocity: Velocity) -> Velocity:
    return tuple(-component for component in velocity)


def _lattice(name: str, half: tuple[Velocity, ...], weights: tuple[float, ...]) -> Lattice:
    """Return a lattice from one velocity of each pair, and weights by the number of moving axes."""
    rest = (0,) * len(half[0])
    velocities = (rest, *(c for velocity in half for c in (velocity, _against(velocity))))
    return Lattice(name, velocities, tuple(weights[sum(map(abs, c))] for c in velocities))


D2Q9 = _lattice("D2Q9", ((0, 1), (1, 0), (1, 1), (-1, 1)), (4 / 9, 1 / 9, 1 / 36))
"""Two dimensions; the pairs run along x, y, x + y and x - y."""

D3Q19 = _lattice(
    "D3Q19",
    (
        (0, 0, 1), (0, 1, 0), (1, 0, 0),
        (0, 1, 1), (0, -1, 1), (1, 0, 1), (-1, 0, 1), (1, 1, 0), (-1, 1, 0),
    ),
    (1 / 3, 1 / 18, 1 / 36),
)  # fmt: skip
"""Three dimensions; the pairs run along x, y, z, x + y, x - y, x + z, x - z, y + z and y - z."""

D3Q27 = _lattice(
    "D3Q27",
    (
        (0, 0, 1), (0, 1, 0), (1, 0, 0),
        (0, 1, 1), (0, -1, 1), (1, 0, 1), (-1, 0, 1), (1, 1, 0), (-1, 1, 0),
        (1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1),
    ),
    (8 / 27, 2 / 27, 1 / 54, 1 / 216),
)  # fmt: skip
"""Three dimensions; the pairs of `D3Q19`, then those along the diagonals of the cube."""

LATTICES = {lattice.name: lattice for lattice in (D2Q9, D3Q19, D3Q27)}
