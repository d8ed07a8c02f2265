"""What a shape is that Gmsh fills with simplices, what shapes have in common, and the simplest: a box."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray, MeshData
from fluxloom.mesh.generate.gmsh_sizes import Block, SizeField

__all__ = ["MOST_CELLS", "GmshBox", "GmshShape", "check_sizes", "draw_box", "on_sides", "refuse_unless"]

MOST_CELLS = 5_000_000
"""Simplices that a mesh may have without a word: some 6 GB while it is made."""

_SIDES = {"xmin": (0, 4, 6, 2), "xmax": (1, 3, 7, 5), "ymin": (0, 1, 5, 4), "ymax": (2, 6, 7, 3),
          "zmin": (0, 2, 3, 1), "zmax": (4, 5, 7, 6)}  # fmt: skip
_PLANE_SIDES = {"ymin": (0, 1), "xmax": (1, 3), "ymax": (3, 2), "xmin": (2, 0)}


class GmshShape(ABC):
    """What `fluxloom.mesh.generate.gmsh_mesh.gmsh_mesh` can mesh.

    Attributes
    ----------
    most_cells
        Simplices that it may have.
    """

    most_cells: int

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"<gmsh {type(self).__name__.removeprefix('Gmsh').lower()}>"

    @property
    @abstractmethod
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Ends of the box around it, along each axis."""

    @abstractmethod
    def sizes(self) -> SizeField:
        """Return the size of simplices everywhere."""

    @abstractmethod
    def sides(self, gmsh: Any) -> Mapping[str, Sequence[int]]:
        """Draw it, and return the tags of the sides of each patch."""

    def inside(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which points ``(n, d)`` within the bounds are in it."""
        return np.ones(len(points), dtype=bool)

    def draw(self, gmsh: Any) -> Mapping[str, Sequence[int]]:
        """Draw it and its sizes, and return the tags of the sides of each patch."""
        patches = self.sides(gmsh)
        gmsh.model.geo.synchronize()
        self.sizes().draw(gmsh, self.bounds)
        return patches

    def settle(self, mesh: MeshData) -> FloatArray:
        """Return the points of its mesh, those of sides exactly there."""
        return on_sides(mesh, self.bounds)


@dataclass(frozen=True)
class GmshBox(GmshShape):
    """A rectangle or a box, with the patches xmin, xmax, ymin, ymax and in three dimensions zmin, zmax.

    Attributes
    ----------
    x, y, z
        Its ends, each a pair; without z a rectangle. Lengths and sizes are in one unit, that of the mesh.
    size
        Side of the simplices.
    wall_size
        Side of those at the walls, all sides of the box; 0: as everywhere.
    growth
        Of the size with the distance from the walls: a length over a length.
    most_cells
        A mesh that would have more simplices is refused.

    Raises
    ------
    MeshError
        If a number is out of range.
    """

    size: float
    x: tuple[float, ...] = (0.0, 1.0)
    y: tuple[float, ...] = (0.0, 1.0)
    z: tuple[float, ...] = ()
    wall_size: float = 0.0
    growth: float = 0.2
    most_cells: int = MOST_CELLS

    def __post_init__(self) -> None:
        for key, ends in (("x", self.x), ("y", self.y), ("z", self.z)):
            right = len(ends) == 2 and ends[0] < ends[1]
            refuse_unless(right or (key == "z" and not ends), key, "the lower and the upper end", list(ends))
        check_sizes(self, self.bounds)
        refuse_unless(0.0 <= self.wall_size <= self.size, "wall_size", "at most the size, or 0", self.wall_size)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Ends along each axis."""
        return tuple((ends[0], ends[1]) for ends in (self.x, self.y, self.z) if ends)

    def sizes(self) -> SizeField:
        """Return the size of simplices everywhere."""
        lower, upper = np.array(self.bounds).T
        walls = []
        for k in range(len(lower)) if self.wall_size else ():
            for at in (lower[k], upper[k]):
                ends = [np.where(np.arange(len(lower)) == k, at, corner) for corner in (lower, upper)]
                walls.append(Block(*(tuple(end.tolist()) for end in ends), size=self.wall_size))
        return SizeField(self.size, self.growth, tuple(walls))

    def sides(self, gmsh: Any) -> Mapping[str, Sequence[int]]:
        """Draw it, and return the tags of the sides of each patch."""
        return draw_box(gmsh.model.geo, self.bounds)


def draw_box(
    geo: Any,
    bounds: Sequence[tuple[float, float]],
    holes: Mapping[str, Sequence[int]] | None = None,
    surfaces: Sequence[int] = (),
) -> dict[str, list[int]]:
    """Draw a rectangle or a box, and return the tags of its sides by their names.

    Parameters
    ----------
    geo
        ``gmsh.model.geo``.
    bounds
        Ends along each axis.
    holes
        Loops of curves left out of a side, by its name; of a rectangle itself, under an empty name.
    surfaces
        Of bodies that are left out of a box.
    """
    d, holes = len(bounds), holes or {}
    low, high = zip(*(*bounds, (0.0, 0.0))[:3], strict=True)
    points = [geo.addPoint(*(high[k] if corner >> k & 1 else low[k] for k in range(3))) for corner in range(2**d)]
    lines: dict[tuple[int, int], int] = {}

    def line(a: int, b: int) -> int:
        if (b, a) in lines:
            return -lines[b, a]
        if (a, b) not in lines:
            lines[a, b] = geo.addLine(points[a], points[b])
        return lines[a, b]

    if d == 2:
        sides = {name: [line(*ends)] for name, ends in _PLANE_SIDES.items()}
        loop = geo.addCurveLoop([tag for tags in sides.values() for tag in tags])
        geo.addPlaneSurface([loop, *holes.get("", ())])
        return {name: sides[name] for name in list(_SIDES)[:4]}
    sides = {}
    for name, nodes in _SIDES.items():
        loop = geo.addCurveLoop([line(nodes[k], nodes[(k + 1) % 4]) for k in range(4)])
        sides[name] = [geo.addPlaneSurface([loop, *holes.get(name, ())])]
    geo.addVolume([geo.addSurfaceLoop([*(tag for tags in sides.values() for tag in tags), *surfaces])])
    return sides


def refuse_unless(right: bool, key: str, wanted: str, value: object) -> None:
    """Raise `MeshError` naming a key, what is wanted and what was given."""
    if not right:
        raise MeshError(f"{key}: {wanted} is wanted, not {value!r}")


def check_sizes(shape: Any, bounds: Sequence[tuple[float, float]]) -> None:
    """Refuse a size, a growth or a number of cells that is out of range; ``bounds`` are the lengths of sides."""
    shortest = min(high - low for low, high in bounds)
    right = isfinite(shape.size) and 0.0 < shape.size <= shortest
    refuse_unless(right, "size", f"above 0 and at most {shortest:g}, the shortest side", shape.size)
    refuse_unless(0.01 <= shape.growth <= 1.0, "growth", "between 0.01 and 1", shape.growth)
    refuse_unless(shape.most_cells >= 1, "most_cells", "at least 1", shape.most_cells)


def on_sides(
    mesh: MeshData, bounds: Sequence[tuple[float, float]], names: Mapping[str, str] | None = None
) -> FloatArray:
    """Return the points of a mesh, rid of the rounding of those on the sides of a box."""
    points = mesh.points.copy()
    for k, ends in enumerate(bounds):
        for word, end in zip(("min", "max"), ends, strict=True):
            side = f"{'xyz'[k]}{word}"
            name = (names or {}).get(side, side)
            if name in mesh.patches:
                points[mesh.patches[name].nodes(), k] = end
    return points
