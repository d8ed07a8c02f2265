"""Boxes of the benchmark ``lbm`` that are partly solid: spheres in a cubic array, larger than touching if need be."""

from __future__ import annotations

from itertools import product
from math import cbrt, pi

from fluxloom.core.errors import CaseError
from fluxloom.lbm.boundaries import Body, Wall
from fluxloom.lbm.shapes.sets import Union
from fluxloom.lbm.shapes.shapes import Circle, Sphere

__all__ = ["LEAST", "packing", "shares_of"]

LEAST = 0.05
"""Share of fluid below which spheres in a cubic array leave no way through (0.035) or nearly so."""

_APART = 32
"""Cells between the middles of the spheres, at least."""


def shares_of(text: str) -> list[float]:
    """Return the shares of fluid of ``--fluid``: numbers from `LEAST` to one, separated by commas.

    Raises
    ------
    CaseError
        For anything else.
    """
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(LEAST <= share <= 1 for share in found):
        raise CaseError(f"--fluid {text!r}: shares of the box from {LEAST} to 1, separated by commas")
    return list(dict.fromkeys(found))


def packing(shape: tuple[int, ...], fluid: float) -> list[Body]:
    """Return the body that leaves a share of the box to the fluid, spheres about `_APART` cells apart; all: none.

    Parameters
    ----------
    shape
        Cells along each axis; in the plane the spheres are circles.
    fluid
        The share; cells make it right to about a hundredth.

    Raises
    ------
    CaseError
        If the cells of the array are not cubes.
    """
    if fluid >= 1:
        return []
    counts = [max(1, round(n / _APART)) for n in shape]
    sides = {n / count for n, count in zip(shape, counts, strict=True)}
    if len(sides) > 1:
        raise CaseError(f"--fluid: sides of the box that are multiples of {_APART} are wanted, not {shape[::-1]}")
    side, solid = sides.pop(), Circle if len(shape) == 2 else Sphere
    radius = side * _radius(1.0 - fluid, len(shape))
    middles = product(*(((k + 0.5) * side - 0.5 for k in range(count)) for count in counts))
    return [Body("spheres", Union(*(solid(middle, radius) for middle in middles)), Wall())]


def _radius(solid: float, dimensions: int) -> float:
    """Return the radius of circles or spheres that cover a share of a square or cube of side one, by bisection."""
    touching = pi / 4 if dimensions == 2 else pi / 6
    if dimensions == 2 and solid > touching:
        raise CaseError(f"--fluid: in the plane circles that touch leave {1 - touching:.3f}, and nothing flows then")
    if solid <= touching:
        return 0.5 * (solid / touching) ** 0.5 if dimensions == 2 else 0.5 * cbrt(solid / touching)
    low, high = 0.5, 0.5**0.5
    for _ in range(60):
        middle = 0.5 * (low + high)
        cap = middle - 0.5
        covered = 4 / 3 * pi * middle**3 - 2 * pi * cap**2 * (3 * middle - cap)
        low, high = (middle, high) if covered < solid else (low, middle)
    return low
