"""Shapes of bodies in a lattice Boltzmann flow, in physical units, x first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.naming import KeyedError, named
from fluxloom.lbm.shapes import sets as shapes_sets
from fluxloom.lbm.shapes.shapes import Block, Circle, Cylinder, Shape, Sphere
from fluxloom.lbm.shapes.surface import Surface

__all__ = ["Ball", "BodyShape", "Box", "Implicit", "OfFile", "Rod"]

Array = npt.NDArray[np.float64]


class BodyShape(Protocol):
    """Where a body is."""

    def on_lattice(self, units: Units) -> Shape:
        """Return the shape in cells.

        Raises
        ------
        SolverError
            If it does not fit the dimensions, or a number is wrong.
        """
        ...


@dataclass(frozen=True)
class Ball:
    """A circle in the plane, a sphere in space.

    Attributes
    ----------
    center, diameter
        ``(x, y)`` or ``(x, y, z)``, and a length.
    """

    center: Sequence[float]
    diameter: float

    def on_lattice(self, units: Units) -> Shape:
        """Return the shape in cells."""
        make = Circle if units.dimension == 2 else Sphere
        return make(_place("center", self.center, units), 0.5 * self.diameter / units.dx)


@dataclass(frozen=True)
class Rod:
    """A circular cylinder along an axis, in space.

    Attributes
    ----------
    center, diameter
        A point in the middle of its axis, and a length.
    axis
        ``"x"``, ``"y"`` or ``"z"``.
    length
        Between its flat ends; 0: endless.
    """

    center: Sequence[float]
    diameter: float
    axis: Literal["x", "y", "z"]
    length: float = 0.0

    def on_lattice(self, units: Units) -> Shape:
        """Return the shape in cells."""
        along = tuple(float(axis == self.axis) for axis in "zyx")
        middle = _place("center", self.center, units)
        return Cylinder(middle, 0.5 * self.diameter / units.dx, along, self.length / units.dx or None)


@dataclass(frozen=True)
class Box:
    """A box along the axes.

    Attributes
    ----------
    low, high
        Two corners.
    """

    low: Sequence[float]
    high: Sequence[float]

    def on_lattice(self, units: Units) -> Shape:
        """Return the shape in cells."""
        return Block(_place("low", self.low, units), _place("high", self.high, units))


@dataclass(frozen=True)
class Implicit:
    """The points at which a function is not positive.

    Attributes
    ----------
    function
        Of arrays x, y (and z); returns an array.
    low, high
        Where the body ends, if it does; both or none.
    """

    function: Callable[..., npt.ArrayLike]
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    def on_lattice(self, units: Units) -> Shape:
        """Return the shape in cells."""
        function = self.function
        ends = ((name, getattr(self, name)) for name in ("low", "high"))
        low, high = (_place(name, end, units) if end else None for name, end in ends)
        return shapes_sets.Implicit(lambda places: function(*units.points(places)), units.dimension, low, high)


@dataclass(frozen=True)
class OfFile:
    """The inside of a closed surface of triangles (`fluxloom.lbm.shapes.surface.Surface`), in space.

    Attributes
    ----------
    file
        STL, OBJ, PLY, OFF, glTF or 3MF.
    scale, translate
        Change its size, and then its place.
    weld
        Corners that are no further apart become one, in units of the file.
    """

    file: str | Path
    scale: float = 1.0
    translate: Sequence[float] = ()
    weld: float = 0.0

    def on_lattice(self, units: Units) -> Shape:
        """Return the shape in cells."""
        shift = _place("translate", self.translate or [0.0] * units.dimension, units)
        with named("file"):
            return Surface.from_file(Path(self.file), scale=self.scale / units.dx, shift=shift, weld=self.weld)


def _place(name: str, point: Sequence[float], units: Units) -> tuple[float, ...]:
    """Return a point as the lattice has it."""
    if len(point) != units.dimension:
        raise KeyedError(name, f"{units.dimension} numbers are wanted, not {len(point)}")
    return units.place(point)
