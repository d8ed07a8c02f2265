"""A box around a body, whose surface an STL file has, that Gmsh fills with tetrahedra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import MeshError
from fluxloom.mesh.data.mesh import FloatArray
from fluxloom.mesh.data.once import Once
from fluxloom.mesh.generate.gmsh_shapes import MOST_CELLS, GmshShape, draw_box, refuse_unless
from fluxloom.mesh.generate.gmsh_sizes import Block, SizeField, Skin

if TYPE_CHECKING:
    from fluxloom.mesh.generate.gmsh_surface import Surface

__all__ = ["GmshBody", "GmshRefinement"]

_TOUCHING = 1e-6
"""How far corners on the ground may lie off it, as a part of the extent of the body."""


@dataclass(frozen=True)
class GmshRefinement:
    """A box in which tetrahedra are small, as in a wake.

    Attributes
    ----------
    lower, upper
        Corners of the box.
    size
        Side of tetrahedra in it.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    size: float

    def __post_init__(self) -> None:
        right = len(self.lower) == len(self.upper) == 3 and all(np.less_equal(self.lower, self.upper))
        refuse_unless(right, "refine", "three numbers in lower and in upper, none less than in lower", self.upper)
        refuse_unless(self.size > 0.0, "refine.size", "above 0", self.size)


@dataclass(frozen=True)
class GmshBody(GmshShape):
    """A box around a body: the patches body, xmin, xmax, ymin, ymax, zmin (the ground) and zmax.

    The body may stand on the ground: flat parts of its surface that lie there are left out, and the ground has holes.

    Attributes
    ----------
    file
        The closed surface, an STL file, in the unit of the mesh.
    x, y, z
        Ends of the box, each a pair; that of z begins at the ground.
    size_body, size_far
        Sides of triangles on the body, and of tetrahedra far away.
    growth
        Of the size with the distance from the body and from refined boxes: a length over a length.
    refine
        Boxes in which tetrahedra are small.
    angle
        Degrees between triangles of the file, beyond which their edge is sharp and kept.
    most_cells
        A mesh that would have more tetrahedra is refused.

    Raises
    ------
    MeshError
        If a number is out of range.
    """

    file: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[float, ...]
    size_body: float
    size_far: float
    growth: float = 0.2
    refine: tuple[GmshRefinement, ...] = ()
    angle: float = 20.0
    most_cells: int = MOST_CELLS

    def __post_init__(self) -> None:
        for key, ends in (("x", self.x), ("y", self.y), ("z", self.z)):
            refuse_unless(len(ends) == 2 and ends[0] < ends[1], key, "the lower and the upper end", list(ends))
        shortest = min(high - low for low, high in self.bounds)
        refuse_unless(0.0 < self.size_far <= shortest, "size_far", f"above 0 and at most {shortest:g}", self.size_far)
        refuse_unless(0.0 < self.size_body <= self.size_far, "size_body", "above 0 and at most size_far",
                      self.size_body)  # fmt: skip
        refuse_unless(0.01 <= self.growth <= 1.0, "growth", "between 0.01 and 1", self.growth)
        refuse_unless(1.0 <= self.angle <= 60.0, "angle", "between 1 and 60 degrees", self.angle)
        refuse_unless(self.most_cells >= 1, "most_cells", "at least 1", self.most_cells)

    @property
    def name(self) -> str:
        """What messages call it: the file."""
        return self.file

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Ends of the box."""
        return tuple((ends[0], ends[1]) for ends in (self.x, self.y, self.z))

    @Once
    def surface(self) -> Surface:
        """The surface without what lies on the ground.

        Raises
        ------
        MeshError
            For a file that is no STL or not closed, and a body that is not within the box or rests on the ground with
            an edge or a corner alone.
        """
        from fluxloom.mesh.generate.gmsh_surface import read_stl

        whole = read_stl(self.file)
        whole.check_closed()
        whole = whole.outward()
        near, points = _TOUCHING * whole.extent, whole.points
        height = points[:, 2] - self.z[0]
        lowest, highest = points.min(axis=0), points.max(axis=0)
        for key, (low, high), a, b in zip("xyz", self.bounds, lowest, highest, strict=True):
            bottom = low - near if key == "z" else low
            if not (a > bottom and b < high):
                raise MeshError(
                    f"{self.file}: {key}: the body reaches from {a:g} to {b:g}, which is not within the box, "
                    f"{low:g} to {high:g}; the ground may touch it from below and not cut it"
                )
        grounded = np.all((np.abs(height) <= near)[whole.triangles], axis=1, keepdims=True)[:, 0]
        resting = np.setdiff1d(np.flatnonzero(np.abs(height) <= near), whole.triangles[grounded])
        if len(resting):
            raise MeshError(
                f"{self.file}: z: the body touches the ground z = {self.z[0]:g} at {points[resting[0]].tolist()} with "
                "an edge or a corner and no flat part; leave a gap below it"
            )
        level = points.copy()
        level[np.abs(height) <= near, 2] = self.z[0]
        return replace(whole, points=level).without(grounded)

    @Once
    def _samples(self) -> tuple[FloatArray, FloatArray]:
        """Places on the surface, and unit normals."""
        return self.surface.samples(self.size_body)

    @Once
    def _sizes(self) -> SizeField:
        boxes = [Block(box.lower, box.upper, box.size) for box in self.refine]
        return SizeField(self.size_far, self.growth, (Skin(self._samples[0], self.size_body), *boxes))

    def sizes(self) -> SizeField:
        """Return the size of tetrahedra everywhere."""
        return self._sizes

    def inside(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which points are outside of the body, by the normal at the nearest place of its surface."""
        from scipy.spatial import KDTree

        places, normals = self._samples
        nearest = KDTree(places).query(points)[1]
        return np.einsum("ij,ij->i", points - places[nearest], normals[nearest]) > 0.0

    def sides(self, gmsh: Any) -> Mapping[str, Sequence[int]]:
        """Draw it, and return the tags of the sides of each patch."""
        geo, charts = gmsh.model.geo, _draw_charts(gmsh, self.surface, self.angle, self.size_body)
        rim = gmsh.model.getBoundary([(2, tag) for tag in charts], combined=True, oriented=False)
        contact = [geo.addCurveLoop(loop) for loop in _loops(gmsh, [tag for _, tag in rim])]
        flat = {}
        for tag in [tag for tag, even in charts.items() if even]:
            border = gmsh.model.getBoundary([(2, tag)], combined=True, oriented=False)
            loops = [geo.addCurveLoop(loop) for loop in _loops(gmsh, [curve for _, curve in border])]
            flat[tag] = geo.addPlaneSurface(loops)
        gmsh.model.removeEntities([(2, tag) for tag in flat])
        body = [flat.get(tag, tag) for tag in charts]
        return {"body": body, **draw_box(geo, self.bounds, {"zmin": contact}, body)}


def _draw_charts(gmsh: Any, surface: Surface, angle: float, size: float) -> dict[int, bool]:
    """Add the charts of a surface to Gmsh, and return their tags, and which are flat; the others are laid out."""
    from fluxloom.mesh.generate.gmsh_surface import charts_of

    chart, flat = charts_of(surface, angle, size)
    model, used = gmsh.model, np.unique(surface.triangles)
    tags = [model.addDiscreteEntity(2) for _ in flat]
    model.mesh.addNodes(2, tags[0], used + 1, surface.points[used].reshape(-1))
    for number, tag in enumerate(tags):
        model.mesh.addElementsByType(tag, 2, [], (surface.triangles[chart == number] + 1).reshape(-1))
    model.mesh.reclassifyNodes()
    model.mesh.createTopology(True, False)
    curved = [(2, tag) for tag, even in zip(tags, flat, strict=True) if not even]
    model.mesh.createGeometry(model.getEntities(1) + curved)
    return {tag: bool(even) for tag, even in zip(tags, flat, strict=True)}


def _loops(gmsh: Any, curves: Sequence[int]) -> list[list[int]]:
    """Return curves as closed loops, the tags of those that run backwards negative; the widest loop first."""
    ends = {
        curve: [tag for _, tag in gmsh.model.getBoundary([(1, curve)], combined=False, oriented=False)]
        for curve in curves
    }
    left, loops = dict(ends), []
    while left:
        curve, found = left.popitem()
        loop = [curve]
        while found and found[-1] != found[0]:
            at = found[-1]
            follower = next(tag for tag, pair in left.items() if at in pair)
            pair = left.pop(follower)
            loop.append(follower if pair[0] == at else -follower)
            found = [found[0], pair[-1] if pair[0] == at else pair[0]]
        loops.append(loop)

    def width(loop: list[int]) -> float:
        boxes = np.array([gmsh.model.getBoundingBox(1, abs(curve)) for curve in loop])
        return float(np.linalg.norm(boxes[:, 3:].max(axis=0) - boxes[:, :3].min(axis=0)))

    return sorted(loops, key=width, reverse=True)
