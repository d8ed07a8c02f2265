"""Bodies of the benchmark ``ib``: as many markers as wanted, or as many bodies as fill a share of a box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, pi, prod

import numpy as np

from fluxloom.core.errors import CaseError
from fluxloom.lbm.immersed import ImmersedBody, Markers, circle, sphere

__all__ = ["Filling", "filling", "nested"]

DIAMETERS = (40.0, 20.0, 10.0)
"""Of bodies, in cells: that of the thesis' cylinder, and smaller ones for small boxes."""

_LEAST = 2
_APART = 4.0
"""Cells between nested surfaces, and between a surface and the end of the box: supports do not touch."""


def nested(count: int, dimensions: int) -> tuple[tuple[int, ...], ImmersedBody]:
    """Return a box and a body of so many markers in it: circles or spheres around each other, four cells apart.

    The outer one has all markers that the inner ones leave, about a cell apart.

    Parameters
    ----------
    count
        Markers.
    dimensions
        Two or three.

    Raises
    ------
    CaseError
        For so few markers that they make no surface.
    """
    if count < 8:
        raise CaseError(f"--nodes {count}: at least eight markers on a circle or sphere")
    radii = _radii(count, dimensions)
    side = ceil(2 * (radii[0] + _APART))
    centre = (0.5 * (side - 1),) * dimensions
    shells = [_surface(centre, radius, 1.0) for radius in radii[1:]]
    rest = count - sum(len(shell.positions) for shell in shells)
    shells.insert(0, _outer(centre, radii[0], rest))
    markers = Markers.at(
        np.concatenate([shell.positions for shell in shells]), np.concatenate([shell.measures for shell in shells])
    )
    return (side,) * dimensions, ImmersedBody("nested", markers)


def _measure(radius: float, dimensions: int) -> float:
    """Return the length of a circle, or the area of a sphere."""
    return 2 * pi * radius if dimensions == 2 else 4 * pi * radius**2


def _radii(count: int, dimensions: int) -> list[float]:
    """Return radii, the greatest first and each four cells less, of surfaces that have about so many markers in all."""
    one = count / (2 * pi) if dimensions == 2 else (count / (4 * pi)) ** 0.5
    low, high = 1.0, max(one, 1.0)

    def shells(radius: float) -> list[float]:
        return [float(r) for r in np.arange(radius, 0.999, -_APART)]

    for _ in range(60):
        middle = 0.5 * (low + high)
        many = sum(_measure(r, dimensions) for r in shells(middle)) > count
        low, high = (low, middle) if many else (middle, high)
    return shells(high)


def _surface(centre: Sequence[float], radius: float, spacing: float) -> Markers:
    return (circle if len(centre) == 2 else sphere)(centre, radius, spacing)


def _outer(centre: Sequence[float], radius: float, count: int) -> Markers:
    """Return exactly so many markers on a circle or sphere."""
    if len(centre) == 2:
        return circle(centre, radius, count=count)
    return sphere(centre, radius, (_measure(radius, 3) / count) ** 0.5)


@dataclass(frozen=True)
class Filling:
    """Bodies that fill a share of a box.

    Attributes
    ----------
    bodies
        Circles or spheres, in rows.
    diameter
        Of each, in cells.
    fraction
        Of the box that they fill.
    """

    bodies: tuple[ImmersedBody, ...]
    diameter: float
    fraction: float

    @property
    def markers(self) -> int:
        """Markers of all bodies."""
        return sum(body.markers.count for body in self.bodies)


def filling(shape: tuple[int, ...], fraction: float, least: float) -> Filling:
    """Return equal circles or spheres that fill about a share of a box.

    Their diameter is the greatest of `DIAMETERS` of which two or more fill the least share that is wanted of a box of
    this size; so their number grows with the box.

    Parameters
    ----------
    shape
        Cells along each axis, slowest first.
    fraction
        What they fill.
    least
        The least share of a series.

    Raises
    ------
    CaseError
        If the box is too small.
    """
    for diameter in DIAMETERS:
        volume = pi * diameter**2 / 4 if len(shape) == 2 else pi * diameter**3 / 6
        if round(least * prod(shape) / volume) >= _LEAST:
            break
    else:
        raise CaseError(f"a box of {prod(shape)} cells is too small for {100 * least:g} % of bodies")
    count = round(fraction * prod(shape) / volume)
    bodies = [
        ImmersedBody(f"body {k}", _surface(centre, diameter / 2, 1.0))
        for k, centre in zip(range(count), _places(shape, count, diameter), strict=False)
    ]
    return Filling(tuple(bodies), diameter, count * volume / prod(shape))


def _places(shape: tuple[int, ...], count: int, diameter: float) -> Iterator[tuple[float, ...]]:
    """Return the middles of equal parts of a box, at least so many, each wide enough for a body."""
    parts = [1] * len(shape)
    while prod(parts) < count:
        widest = max(range(len(shape)), key=lambda axis: shape[axis] / parts[axis])
        parts[widest] += 1
    if min(n / p for n, p in zip(shape, parts, strict=True)) < diameter + _APART:
        raise CaseError(f"{count} bodies of {diameter:g} cells do not fit into a box of {prod(shape)} cells")
    return product(*([(k + 0.5) * n / p - 0.5 for k in range(p)] for n, p in zip(shape, parts, strict=True)))
