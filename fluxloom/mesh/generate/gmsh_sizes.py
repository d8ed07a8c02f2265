r"""Sizes of simplices that grow with the distance from what they are fine at, and how many simplices that makes.

The size at a place :math:`x` is

.. math:: h(x) = \min\bigl(h_\infty, \min_k (h_k + g\, d_k(x))\bigr)

with the size :math:`h_\infty` far away, sizes :math:`h_k` at boxes, balls and surfaces, the distance :math:`d_k` from
these and the growth :math:`g`, a size over a distance. The number of simplices is about :math:`c \int h^{-d} dV`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fluxloom.mesh.data.mesh import FloatArray
from fluxloom.mesh.data.once import Once

if TYPE_CHECKING:
    from scipy.spatial import KDTree

__all__ = ["Ball", "Block", "SizeField", "Skin", "estimated_cells"]

_DENSITY = {2: 2.35, 3: 3.85}
"""Simplices of Gmsh in ``h^d`` (regular triangles: 2.31), measured on the unit square and cube."""

_PER_NODE = {2: 2.0, 3: 5.8}
"""Simplices a node far from a boundary; in the plane Euler's formula, in space measured."""

_AT_SIDE, _NODES_AT_SIDE = {2: 0.0, 3: 0.9}, {2: 0.5, 3: 0.45}
"""Simplices and nodes more for each square of the size on the sides of the box around the domain, measured."""

_LEAVES = 200_000
"""Boxes at most that the integral is a sum over."""


@dataclass(frozen=True)
class Block:
    """A box, or what it is when some sides are 0: the size in it."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    size: float

    def distance(self, points: FloatArray) -> FloatArray:
        """Return the distance of points ``(n, d)`` from the box, ``(n,)``."""
        beyond = np.maximum(np.asarray(self.lower) - points, points - np.asarray(self.upper))
        return np.linalg.norm(np.maximum(beyond, 0.0), axis=1)

    def field(self) -> tuple[str, dict[str, float]]:
        """Return what Gmsh calls the field, and its values but for the sizes."""
        return "Box", {f"{'XYZ'[k]}{word}": value for word, corner in (("Min", self.lower), ("Max", self.upper))
                       for k, value in enumerate(corner)}  # fmt: skip


@dataclass(frozen=True)
class Ball:
    """A ball (a disc in the plane): the size in it."""

    centre: tuple[float, ...]
    radius: float
    size: float

    def distance(self, points: FloatArray) -> FloatArray:
        """Return the distance of points ``(n, d)`` from the ball, ``(n,)``."""
        return np.maximum(np.linalg.norm(points - np.asarray(self.centre), axis=1) - self.radius, 0.0)

    def field(self) -> tuple[str, dict[str, float]]:
        """Return what Gmsh calls the field, and its values but for the sizes."""
        return "Ball", {f"{'XYZ'[k]}Center": value for k, value in enumerate(self.centre)} | {"Radius": self.radius}


@dataclass(frozen=True, eq=False)
class Skin:
    """A surface: the size on it.

    Attributes
    ----------
    places : (n, 3)
        Of samples, about a size apart.
    size
        On it.
    """

    places: FloatArray
    size: float

    def distance(self, points: FloatArray) -> FloatArray:
        """Return the distance of points ``(n, 3)`` from the samples, ``(n,)``."""
        return self._tree.query(points)[0]

    @Once
    def _tree(self) -> KDTree:
        from scipy.spatial import KDTree

        return KDTree(self.places)


@dataclass(frozen=True, eq=False)
class SizeField:
    """The size of simplices everywhere; see the module.

    Attributes
    ----------
    far
        Largest size.
    growth
        By which it grows a unit of length.
    near
        Where it is smaller.
    """

    far: float
    growth: float
    near: tuple[Block | Ball | Skin, ...] = ()

    def at(self, points: FloatArray) -> FloatArray:
        """Return the size at points ``(n, d)``, ``(n,)``."""
        found = np.full(len(points), self.far)
        for place in self.near:
            found = np.minimum(found, place.size + self.growth * place.distance(points))
        return found

    def draw(self, gmsh: Any, bounds: Sequence[tuple[float, float]]) -> None:
        """Let Gmsh have the sizes within bounds, as fields of its own or, round a surface, as values in boxes."""
        field, tags = gmsh.model.mesh.field, []
        gmsh.option.setNumber("Mesh.MeshSizeMax", self.far)
        for place in self.near:
            if isinstance(place, Skin):
                tags = [_draw_boxes(gmsh, self, bounds)]
                break
            if place.size < self.far:
                kind, values = place.field()
                sizes = {"VIn": place.size, "VOut": self.far, "Thickness": (self.far - place.size) / self.growth}
                tags.append(_field(gmsh, kind, values | sizes))
        if tags:
            least = field.add("Min")
            field.setNumbers(least, "FieldsList", tags)
            field.setAsBackgroundMesh(least)

    def boxes(self, bounds: Sequence[tuple[float, float]]) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield boxes that fill bounds, large ones first: centres ``(n, d)``, sides ``(d,)``, and sizes at the centres.

        In each the size changes by half of itself at most, unless that needed too many boxes.
        """
        d, ends = len(bounds), np.array(bounds)
        count = np.ceil(16.0 * np.ptp(ends, axis=1) / np.ptp(ends, axis=1).max()).astype(int)
        sides = np.ptp(ends, axis=1) / count
        axes = [low + side * (np.arange(n) + 0.5) for (low, _), side, n in zip(bounds, sides, count, strict=True)]
        centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        halves = 0.25 * np.stack(np.meshgrid(*[[-1.0, 1.0]] * d, indexing="ij"), axis=-1).reshape(-1, d)
        while len(centres):
            size = self.at(centres)
            parted = (self.growth * sides.max() > 0.5 * size) & bool(self.near)
            if np.count_nonzero(parted) * 2**d > _LEAVES:
                parted[:] = False
            yield centres[~parted], sides, size[~parted]
            centres = (centres[parted, None] + halves * sides).reshape(-1, d)
            sides = sides / 2.0


def estimated_cells(
    sizes: SizeField,
    bounds: Sequence[tuple[float, float]],
    inside: Callable[[FloatArray], npt.NDArray[np.bool_]],
) -> tuple[int, int]:
    """Return about how many simplices and nodes a mesh has, by an integral over boxes that are smaller where sizes are.

    Parameters
    ----------
    sizes
        Of simplices.
    bounds
        Ends of a box around the domain, along each axis.
    inside
        Of points ``(n, d)``, which are in the domain.
    """
    d, total, surface = len(bounds), 0.0, 0.0
    for centres, sides, size in sizes.boxes(bounds):
        weight = inside(centres) * np.prod(sides) * size ** -float(d)
        total += float(weight.sum())
        for k, (low, high) in enumerate(bounds):
            outer = np.minimum(centres[:, k] - low, high - centres[:, k]) < sides[k]
            surface += float((weight * size / sides[k])[outer].sum())
    cells = _DENSITY[d] * total + _AT_SIDE[d] * surface
    return max(1, round(cells)), max(d + 1, round(cells / _PER_NODE[d] + _NODES_AT_SIDE[d] * surface))


def _draw_boxes(gmsh: Any, sizes: SizeField, bounds: Sequence[tuple[float, float]]) -> int:
    """Add sizes at the corners of boxes to Gmsh, between which they are linear, and return the tag of the field."""
    corners = 0.5 * np.array(
        [(-1, -1, -1), (1, -1, -1), (1, 1, -1), (-1, 1, -1), (-1, -1, 1), (1, -1, 1), (1, 1, 1), (-1, 1, 1)]
    )
    found = []
    for centres, sides, _ in sizes.boxes(bounds):
        places = centres[:, None] + corners * sides
        values = sizes.at(places.reshape(-1, 3)).reshape(-1, 1, 8)
        found.append(np.concatenate([places.transpose(0, 2, 1), values], axis=1).reshape(-1, 32))
    view, data = gmsh.view.add("size"), np.concatenate(found)
    gmsh.view.addListData(view, "SH", len(data), data.reshape(-1))
    return _field(gmsh, "PostView", {"ViewTag": view})


def _field(gmsh: Any, kind: str, values: dict[str, float]) -> int:
    """Add a field of Gmsh."""
    tag = gmsh.model.mesh.field.add(kind)
    for name, value in values.items():
        gmsh.model.mesh.field.setNumber(tag, name, value)
    return tag
