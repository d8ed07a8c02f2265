"""Sides of a staggered grid: what the places beyond them hold, faces with a given velocity, faces of outflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.fv.incompressible_boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.staggered_grid import Side, StaggeredGrid, sides_of

__all__ = [
    "Ghosts", "OutflowFaces", "SideWeights", "check_sides", "fixed_velocity", "ghosts_of", "held_faces",
    "held_force", "inflow_of", "outflow_faces",
    "side_weights",
]  # fmt: skip

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
_EVEN = 1e-10


@dataclass(frozen=True)
class Ghosts:
    """Places beyond the sides: ``u = keep u + slope u_inner + value``.

    Attributes
    ----------
    places, inner
        Numbers of stored places, ``(n,)``: beyond, and the cells in front of them.
    keep, slope, value
        ``(n, d)``.
    """

    places: Indices
    inner: Indices
    keep: Array
    slope: Array
    value: Array


@dataclass(frozen=True)
class OutflowFaces:
    """Faces through which the flow leaves.

    Attributes
    ----------
    places, inner
        Numbers of stored places: of the faces, and of the next faces inside.
    side
        ``(n, 3)``: the axis that a face is across, one over the distance to the next face, its area with the outward
        sign.
    """

    places: Indices
    inner: Indices
    side: Array

    @property
    def area(self) -> float:
        """Of all faces."""
        return float(np.abs(self.side[:, 2]).sum())


@dataclass(frozen=True)
class SideWeights:
    """What the force on a side is summed with.

    Attributes
    ----------
    places, inner
        Numbers of stored places, ``(n,)``: beyond the side, and the cells in front of them.
    friction
        ``(n, d)``: viscosity times area over distance; zero along the normal.
    push
        ``(n, d)``: area with the outward sign, along the normal.
    """

    places: Indices
    inner: Indices
    friction: Array
    push: Array


def check_sides(grid: StaggeredGrid, boundaries: Mapping[str, Boundary]) -> None:
    """Raise `SolverError` unless each side that is not periodic has a boundary that fits, and no other has one."""
    known = [side.name for side in sides_of(grid)]
    for name in boundaries:
        if name not in known:
            listed = ", ".join(known) or "none, for all axes are periodic"
            raise SolverError(f"boundaries: there is no side {name!r}{did_you_mean(name, known)} (sides: {listed})")
    for side in sides_of(grid):
        if side.name not in boundaries:
            raise SolverError(f"boundaries: the side {side.name!r} has none; give it one, or make its axis periodic")
        boundary = boundaries[side.name]
        if isinstance(boundary, NoSlip) and callable(boundary.velocity):
            if np.abs(given(boundary, _side_places(grid, side, side.axis), side.axis)).max() > 0.0:
                raise SolverError(f"{side.name}: a wall slides along itself; give an inflow where fluid passes")
            continue
        if not isinstance(boundary, NoSlip | Inflow) or callable(boundary.velocity) or not len(boundary.velocity):
            continue
        if len(boundary.velocity) != grid.dimension:
            raise SolverError(f"{side.name}: the velocity needs {grid.dimension} numbers, not {len(boundary.velocity)}")
        if isinstance(boundary, NoSlip) and boundary.velocity[side.axis]:
            raise SolverError(f"{side.name}: a wall slides along itself; give an inflow where fluid passes")


def given(boundary: Boundary, places: Sequence[Array], component: int) -> Array:
    """Return a component of the velocity of a wall or an inflow at places, arrays that broadcast."""
    where = np.broadcast_arrays(*places)
    if not isinstance(boundary, NoSlip | Inflow):
        return np.zeros(where[0].shape)
    velocity = boundary.velocity
    if isinstance(velocity, Callable):
        points = np.stack([w.ravel() for w in where], axis=1)
        return np.asarray(velocity(points), dtype=np.float64)[:, component].reshape(where[0].shape)
    return np.full(where[0].shape, velocity[component] if len(velocity) else 0.0)


def _layer(grid: StaggeredGrid, side: Side, depth: int) -> tuple[slice, ...]:
    """Return slices of a layer of places in front of a side; depth -1: beyond it."""
    cut = list(grid.interior)
    n = grid.counts[side.axis]
    at = n - depth if side.upper else 1 + depth
    cut[grid.dimension - 1 - side.axis] = slice(at, at + 1)
    return tuple(cut)


def _side_places(grid: StaggeredGrid, side: Side, component: int) -> list[Array]:
    """Return where on a side a component of its places is."""
    lines = [grid.centres(k) for k in range(grid.dimension)]
    if component != side.axis:
        lines[component] = grid.faces[component][:-1]
    lines[side.axis] = grid.faces[side.axis][[-1 if side.upper else 0]]
    return [grid.along(k, line) for k, line in enumerate(lines)]


def ghosts_of(grid: StaggeredGrid, boundaries: Mapping[str, Boundary], axis: int) -> Ghosts | None:
    """Return what the places beyond the two sides across an axis hold; None where they are joined.

    A wall or an inflow has its velocity half-way between the two places; nothing changes across the others.
    """
    sides = [side for side in sides_of(grid) if side.axis == axis]
    if not sides:
        return None
    numbers = np.arange(int(np.prod(grid.full_shape))).reshape(grid.full_shape)
    places, inner = (np.stack([numbers[_layer(grid, side, depth)] for side in sides]) for depth in (-1, 0))
    keep, slope, value = (np.zeros((*places.shape, grid.dimension)) for _ in range(3))
    keep[..., axis] = 1.0
    for k, side in enumerate(sides):
        boundary = boundaries[side.name]
        for a in range(grid.dimension):
            if a != axis:
                free = isinstance(boundary, Outflow | Symmetry)
                slope[k, ..., a] = 1.0 if free else -1.0
                value[k, ..., a] = 2.0 * given(boundary, _side_places(grid, side, a), a)
    tables = (table.reshape(-1, grid.dimension) for table in (keep, slope, value))
    return Ghosts(places.ravel(), inner.ravel(), *tables)


def _faces(grid: StaggeredGrid, side: Side) -> tuple[slice, ...]:
    """Return slices of the faces on a side: those of the upper one are stored beyond it."""
    return _layer(grid, side, -1 if side.upper else 0)


def _areas(grid: StaggeredGrid, axis: int) -> Array:
    """Return areas of the faces of a layer across an axis."""
    area = np.ones([1 if grid.dimension - 1 - k == axis else n for k, n in enumerate(grid.shape)])
    for k in range(grid.dimension):
        if k != axis:
            area = area * grid.along(k, grid.widths(k))
    return area


def fixed_velocity(grid: StaggeredGrid, boundaries: Mapping[str, Boundary], velocity: Array) -> None:
    """Set what passes the sides in stored velocities, ``(*full_shape, d)``; faces of outflow stay."""
    for side in sides_of(grid):
        boundary, cut = boundaries[side.name], _faces(grid, side)
        if not isinstance(boundary, Outflow):
            velocity[(*cut, side.axis)] = given(boundary, _side_places(grid, side, side.axis), side.axis)


def inflow_of(grid: StaggeredGrid, boundaries: Mapping[str, Boundary]) -> float:
    """Return the volume that comes in through sides with a given velocity, in unit time.

    Raises
    ------
    SolverError
        If it is not zero and nothing can leave.
    """
    net = scale = 0.0
    for side in sides_of(grid):
        boundary = boundaries[side.name]
        through = given(boundary, _side_places(grid, side, side.axis), side.axis) * _areas(grid, side.axis)
        net += float(through.sum()) * (-1.0 if side.upper else 1.0)
        scale += float(np.abs(through).sum())
    outflow = any(isinstance(boundary, Outflow) for boundary in boundaries.values())
    if not outflow and abs(net) > _EVEN * scale:
        way = "in" if net > 0 else "out"
        raise SolverError(f"boundaries: the given velocities let {abs(net):.6g} more {way}, and no side is an outflow")
    return net


def outflow_faces(grid: StaggeredGrid, boundaries: Mapping[str, Boundary]) -> OutflowFaces:
    """Return the faces of all sides of outflow."""
    numbers = np.arange(int(np.prod(grid.full_shape))).reshape(grid.full_shape)
    places, inner, rows = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [np.zeros((0, 3))]
    for side in sides_of(grid):
        if not isinstance(boundaries[side.name], Outflow):
            continue
        k, sign = side.axis, 1.0 if side.upper else -1.0
        places.append(numbers[_faces(grid, side)].ravel())
        inner.append(numbers[_layer(grid, side, 0 if side.upper else 1)].ravel())
        area = np.broadcast_to(_areas(grid, k), numbers[_faces(grid, side)].shape).ravel()
        near = 1.0 / grid.widths(k)[-1 if side.upper else 0]
        rows.append(np.stack([np.full(area.size, float(k)), np.full(area.size, near), sign * area], axis=1))
    return OutflowFaces(np.concatenate(places), np.concatenate(inner), np.concatenate(rows))


def side_weights(
    grid: StaggeredGrid, name: str, viscosity: float, boundaries: Mapping[str, Boundary] | None = None
) -> SideWeights:
    """Return what the force on a side of a name is summed with; a component has the area about its own place.

    The halves of the cells at an end count with the next faces, but where it is a wall: there see `held_force`.
    """
    side = next(side for side in sides_of(grid) if side.name == name)
    numbers = np.arange(int(np.prod(grid.full_shape))).reshape(grid.full_shape)
    places, inner = (numbers[_layer(grid, side, depth)] for depth in (-1, 0))
    friction, push = (np.zeros((*places.shape, grid.dimension)) for _ in range(2))
    area = np.broadcast_to(_areas(grid, side.axis), places.shape)
    width = grid.widths(side.axis)[-1 if side.upper else 0]
    push[..., side.axis] = area if side.upper else -area
    for a in range(grid.dimension):
        if a != side.axis:
            widths = grid.stored(a, grid.widths(a))
            about = (0.5 * (widths + np.roll(widths, 1)))[grid.interior[grid.dimension - 1 - a]]
            if not grid.periodic[a]:
                held = [_held(boundaries, end) for end in sides_of(grid) if end.axis == a]
                about[1] += 0.5 * widths[0] * (not held[0])
                about[-1] += 0.5 * widths[-1] * (not held[1])
                about[0] = 0.0
            friction[..., a] = viscosity / width * area * grid.along(a, about / grid.widths(a))
    shape = (-1, grid.dimension)
    return SideWeights(places.ravel(), inner.ravel(), friction.reshape(shape), push.reshape(shape))


def _held(boundaries: Mapping[str, Boundary] | None, side: Side) -> bool:
    """Return whether nothing passes a side."""
    return boundaries is not None and isinstance(boundaries[side.name], NoSlip | Symmetry)


def held_faces(grid: StaggeredGrid, name: str) -> tuple[Indices, float]:
    """Return the faces on a side and the next ones inside, ``(n, 2)``, and the width of the cells between them."""
    side = next(side for side in sides_of(grid) if side.name == name)
    numbers = np.arange(int(np.prod(grid.full_shape))).reshape(grid.full_shape)
    next_ = numbers[_layer(grid, side, 0 if side.upper else 1)]
    return np.stack([numbers[_faces(grid, side)].ravel(), next_.ravel()], axis=1), float(
        grid.widths(side.axis)[-1 if side.upper else 0]
    )


def held_force(grid: StaggeredGrid, boundaries: Mapping[str, Boundary], viscosity: float) -> dict[str, Array]:
    """Return the friction of sides on the halves of cells whose face a wall holds, by side: it goes on to the wall.

    A face on a wall, from which half a cell reaches inward, is at rest; a side beside it rubs on that half.
    """
    found = {side.name: np.zeros(grid.dimension) for side in sides_of(grid)}
    for side in sides_of(grid):
        if not isinstance(boundaries[side.name], NoSlip | Inflow):
            continue
        width = grid.widths(side.axis)[-1 if side.upper else 0]
        for end in sides_of(grid):
            a = end.axis
            if a == side.axis or not _held(boundaries, end):
                continue
            lines = [grid.centres(k) for k in range(grid.dimension)]
            lines[a] = grid.faces[a][[-1 if end.upper else 0]]
            lines[side.axis] = grid.faces[side.axis][[-1 if side.upper else 0]]
            speed = given(boundaries[side.name], [grid.along(k, line) for k, line in enumerate(lines)], a)
            area = np.ones_like(speed) * 0.5 * grid.widths(a)[-1 if end.upper else 0]
            for k in range(grid.dimension):
                if k not in (a, side.axis):
                    area = area * grid.along(k, grid.widths(k))
            force = -2.0 * viscosity / width * float((area * speed).sum())
            found[side.name][a] += force
            found[end.name][a] -= force
    return found
