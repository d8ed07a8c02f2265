"""Channels that Gmsh fills with simplices: one with a cylinder across it, one with a backward-facing step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.mesh import FloatArray, MeshData
from fluxloom.mesh.generate.gmsh_shapes import MOST_CELLS, GmshShape, check_sizes, draw_box, on_sides, refuse_unless
from fluxloom.mesh.generate.gmsh_sizes import Ball, Block, SizeField

__all__ = ["GmshCylinder", "GmshStep"]


@dataclass(frozen=True)
class GmshCylinder(GmshShape):
    """The channel of Schäfer and Turek's benchmarks: the patches xmin, xmax, ymin, ymax, cylinder.

    Attributes
    ----------
    length, height, centre, radius
        Of the channel, whose lower left corner is the origin, and the cylinder (m in the benchmark); see
        `fluxloom.mesh.generate.cylinder.CylinderChannel`.
    size
        Largest side of the triangles.
    size_cylinder
        That of those at the cylinder; 0: a 40th of its circumference, or the size if that is less.
    growth
        Of the size with the distance from the cylinder: a length over a length.
    most_cells
        A mesh that would have more triangles is refused.

    Raises
    ------
    MeshError
        If a number is out of range.
    """

    size: float
    size_cylinder: float = 0.0
    length: float = 2.2
    height: float = 0.41
    centre: tuple[float, ...] = (0.2, 0.2)
    radius: float = 0.05
    growth: float = 0.1
    most_cells: int = MOST_CELLS

    def __post_init__(self) -> None:
        refuse_unless(len(self.centre) == 2, "centre", "two numbers", list(self.centre))
        for key in ("length", "height", "radius"):
            refuse_unless(getattr(self, key) > 0.0, key, "above 0", getattr(self, key))
        from fluxloom.mesh.generate.cylinder import CylinderChannel

        CylinderChannel(self.length, self.height, (self.centre[0], self.centre[1]), self.radius)
        check_sizes(self, self.bounds)
        least = min(self.size, self.radius)
        refuse_unless(0.0 <= self.size_cylinder <= least, "size_cylinder", "at most size and radius, or 0",
                      self.size_cylinder)  # fmt: skip

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Ends of the channel."""
        return (0.0, self.length), (0.0, self.height)

    def sizes(self) -> SizeField:
        """Return the size of triangles everywhere."""
        fine = self.size_cylinder or min(self.size, np.pi * self.radius / 20.0)
        return SizeField(self.size, self.growth, (Ball(self.centre, self.radius, fine),))

    def inside(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which points are outside of the cylinder."""
        return np.linalg.norm(points - np.array(self.centre), axis=1) > self.radius

    def sides(self, gmsh: Any) -> Mapping[str, Sequence[int]]:
        """Draw it, and return the tags of the sides of each patch."""
        geo, (x, y), r = gmsh.model.geo, self.centre, self.radius
        middle = geo.addPoint(x, y, 0.0)
        tips = [geo.addPoint(x + r * a, y + r * b, 0.0) for a, b in ((1, 0), (0, 1), (-1, 0), (0, -1))]
        arcs = [geo.addCircleArc(tips[k], middle, tips[(k + 1) % 4]) for k in range(4)]
        return {**draw_box(geo, self.bounds, {"": [geo.addCurveLoop(arcs)]}), "cylinder": arcs}

    def settle(self, mesh: MeshData) -> FloatArray:
        """Return the points of its mesh, those of sides and of the cylinder exactly there."""
        points, nodes, middle = on_sides(mesh, self.bounds), mesh.patch("cylinder").nodes(), np.array(self.centre)
        way = points[nodes] - middle
        points[nodes] = middle + self.radius * way / np.linalg.norm(way, axis=1)[:, None]
        return points


@dataclass(frozen=True)
class GmshStep(GmshShape):
    """A backward-facing step: the patches inlet, outlet, wall, and with a span zmin, zmax.

    The edge of the step is at the origin; the floor behind it is ``y = -step``, the ceiling ``y = height - step``. By
    default the expansion ratio is 2, with the lengths of Gartling in heights of the channel (that of Armaly et al. is
    1.94: ``step = 0.485``). Gartling's channel begins at the step: ``upstream = 0``.

    Attributes
    ----------
    step
        Height of the step.
    height
        Of the channel behind it.
    upstream, downstream
        Lengths before and behind it.
    span
        Along z, from 0 on; 0: triangles in the plane.
    size
        Side of the simplices.
    size_step
        That of those at the edge of the step; 0: as everywhere.
    growth
        Of the size with the distance from the edge: a length over a length.
    most_cells
        A mesh that would have more simplices is refused.

    Raises
    ------
    MeshError
        If a number is out of range.

    References
    ----------
    D. K. Gartling: *A test problem for outflow boundary conditions: flow over a backward-facing step*. International
    Journal for Numerical Methods in Fluids 11, 1990. B. F. Armaly, F. Durst, J. C. F. Pereira, B. Schönung:
    *Experimental and theoretical investigation of backward-facing step flow*. Journal of Fluid Mechanics 127, 1983.
    """

    size: float
    size_step: float = 0.0
    step: float = 0.5
    height: float = 1.0
    upstream: float = 1.0
    downstream: float = 15.0
    span: float = 0.0
    growth: float = 0.1
    most_cells: int = MOST_CELLS

    def __post_init__(self) -> None:
        for key, right, wanted in (
            ("step", self.step > 0.0, "above 0"), ("height", self.height > self.step, "above the step"),
            ("upstream", self.upstream >= 0.0, "at least 0"), ("downstream", self.downstream > 0.0, "above 0"),
            ("span", self.span >= 0.0, "at least 0"),
        ):  # fmt: skip
            refuse_unless(right and isfinite(getattr(self, key)), key, wanted, getattr(self, key))
        lengths = (self.step, self.height - self.step, self.downstream, self.upstream, self.span)
        check_sizes(self, [(0.0, length) for length in lengths if length])
        refuse_unless(0.0 <= self.size_step <= self.size, "size_step", "at most the size, or 0", self.size_step)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Ends of the box around it."""
        plane = (-self.upstream, self.downstream), (-self.step, self.height - self.step)
        return (*plane, (0.0, self.span)) if self.span else plane

    def sizes(self) -> SizeField:
        """Return the size of simplices everywhere."""
        edge = ((0.0, 0.0, 0.0), (0.0, 0.0, self.span))
        d = len(self.bounds)
        fine = (Block(edge[0][:d], edge[1][:d], self.size_step),) if self.size_step else ()
        return SizeField(self.size, self.growth, fine)

    def inside(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which points are not in the step."""
        return (points[:, 0] > 0.0) | (points[:, 1] > 0.0)

    def sides(self, gmsh: Any) -> Mapping[str, Sequence[int]]:
        """Draw it, and return the tags of the sides of each patch."""
        geo, (ahead, behind), (floor, top) = gmsh.model.geo, *self.bounds[:2]
        corners = [(0.0, 0.0), (0.0, floor), (behind, floor), (behind, top), (ahead, top), (ahead, 0.0)]
        corners = corners if self.upstream else corners[:-1]
        points = [geo.addPoint(*corner, 0.0) for corner in corners]
        lines = [geo.addLine(a, b) for a, b in zip(points, points[1:] + points[:1], strict=True)]
        plane = geo.addPlaneSurface([geo.addCurveLoop(lines)])
        sides, ends = lines, {}
        if self.span:
            made = geo.extrude([(2, plane)], 0.0, 0.0, self.span)
            sides, ends = [tag for _, tag in made[2:]], {"zmin": [plane], "zmax": [made[0][1]]}
        walls = [tag for k, tag in enumerate(sides) if k not in (2, 4)]
        return {"inlet": [sides[4]], "outlet": [sides[2]], "wall": walls, **ends}

    def settle(self, mesh: MeshData) -> FloatArray:
        """Return the points of its mesh, those of sides exactly there."""
        return on_sides(mesh, self.bounds, {"xmin": "inlet", "xmax": "outlet"})
