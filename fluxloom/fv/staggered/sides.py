"""Sides of a staggered grid: what the places beyond them hold, faces with a given velocity, faces of outflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.fv.given import PatchPlaces, parts_of, rows_of
from fluxloom.fv.incompressible.boundary import Boundary, Inflow, NoSlip, Outflow, Symmetry
from fluxloom.fv.staggered.grid import Side, StaggeredGrid, sides_of

__all__ = [
    "Ghosts",
    "OutflowFaces",
    "SideWeights",
    "check_sides",
    "corner_weights",
    "fixed_velocity",
    "ghosts_of",
    "inflow_of",
    "outflow_faces",
    "side_faces",
    "side_places",
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
    keep, gradient, value
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
    next
        Numbers of stored places, ``(n,)``: of the first faces inside.
    half
        ``(n, 3)``: what the pressure on a side that nothing passes is more than in the cells in front of it, by the
        momentum of the half of the cell that no equation has: times the acceleration outward, the square of the
        velocity through the next face, and that velocity. Zero on other sides.
    arms
        Where each component of the force acts, ``(n, d, d)``; along itself it may be anywhere.
    """

    places: Indices
    inner: Indices
    friction: Array
    push: Array
    next: Indices
    half: Array
    arms: Array


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
        if not isinstance(boundary, Boundary) or (
            boundary.formula is not None and not isinstance(boundary, Outflow | Symmetry)
        ):
            known = "NoSlip(), Inflow(...), Outflow(), Symmetry() or another boundary that gives the velocity"
            raise SolverError(f"boundaries.{side.name}: {known} is wanted on a staggered grid, not {boundary!r}")
        whole = Inflow(boundary.velocity) if isinstance(boundary, NoSlip) and boundary.moves else boundary
        through = given(grid, side, whole, side.axis).any()
        if isinstance(boundary, NoSlip) and boundary.moves:
            through |= parts_of(boundary.velocity, grid.dimension)[side.axis].in_time
        if through and boundary.wall:
            raise SolverError(f"boundaries.{side.name}: a wall slides along itself; give an inflow where fluid passes")
        if isinstance(boundary, Outflow) and boundary.pressure != 0.0:
            raise SolverError(f"boundaries.{side.name}: outflows of a staggered grid are given no pressure: leave it "
                              "out")  # fmt: skip


def given(grid: StaggeredGrid, side: Side, boundary: Boundary, component: int) -> Array:
    """Return a component of the velocity that is given on a side, where it is stored; elsewhere zeros."""
    where, d = np.broadcast_arrays(*_side_places(grid, side, component)), grid.dimension
    if boundary.formula is not None:
        return np.zeros(where[0].shape)
    points, areas = np.stack([w.ravel() for w in where], axis=1), np.zeros((where[0].size, d))
    areas[:, side.axis] = 1.0 if side.upper else -1.0
    half = 0.5 * grid.widths(side.axis)[-1 if side.upper else 0]
    faces = PatchPlaces(f"boundaries.{side.name}", points, areas, np.full(len(points), half))
    return rows_of(boundary, faces, d)[:, component].reshape(where[0].shape)


def side_places(grid: StaggeredGrid, side: Side, component: int) -> Array:
    """Return where on a side a component of its places is, ``(n, d)``, in the order of `ghosts_of`."""
    where = np.broadcast_arrays(*_side_places(grid, side, component))
    return np.stack([w.ravel() for w in where], axis=1)


def side_faces(grid: StaggeredGrid, side: Side) -> tuple[Indices, Array, Array]:
    """Return the faces of a side: numbers of stored places ``(n,)``, where they are ``(n, d)``, and ``(n, 2)``.

    The latter has the axis, and the area with the sign of what comes in along it.
    """
    numbers = np.arange(int(np.prod(grid.full_shape))).reshape(grid.full_shape)[_faces(grid, side)]
    area = np.broadcast_to(_areas(grid, side.axis), numbers.shape).ravel()
    rows = np.stack([np.full(area.size, float(side.axis)), -area if side.upper else area], axis=1)
    return numbers.ravel(), side_places(grid, side, side.axis), rows


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
                slope[k, ..., a] = -1.0 if boundary.formula is None else 1.0
                value[k, ..., a] = 2.0 * given(grid, side, boundary, a)
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
        if not boundary.open:
            velocity[(*cut, side.axis)] = given(grid, side, boundary, side.axis)


def inflow_of(grid: StaggeredGrid, boundaries: Mapping[str, Boundary]) -> float:
    """Return the volume that comes in through sides with a given velocity, in unit time, ``-sum u . n A``.

    Raises
    ------
    SolverError
        If it is not zero and nothing can leave.
    """
    net = scale = 0.0
    for side in sides_of(grid):
        through = given(grid, side, boundaries[side.name], side.axis) * _areas(grid, side.axis)
        net += float(through.sum()) * (-1.0 if side.upper else 1.0)
        scale += float(np.abs(through).sum())
    outflow = any(boundary.open for boundary in boundaries.values())
    if not outflow and abs(net) > _EVEN * scale:
        way = "in" if net > 0 else "out"
        raise SolverError(f"boundaries: the given velocities let {abs(net):.6g} more {way}, and no side is an outflow")
    return net


def outflow_faces(grid: StaggeredGrid, boundaries: Mapping[str, Boundary]) -> OutflowFaces:
    """Return the faces of all sides of outflow."""
    numbers = np.arange(int(np.prod(grid.full_shape))).reshape(grid.full_shape)
    places, inner, rows = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [np.zeros((0, 3))]
    for side in sides_of(grid):
        if not boundaries[side.name].open:
            continue
        k, sign = side.axis, 1.0 if side.upper else -1.0
        places.append(numbers[_faces(grid, side)].ravel())
        inner.append(numbers[_layer(grid, side, 0 if side.upper else 1)].ravel())
        area = np.broadcast_to(_areas(grid, k), numbers[_faces(grid, side)].shape).ravel()
        near = 1.0 / grid.widths(k)[-1 if side.upper else 0]
        rows.append(np.stack([np.full(area.size, float(k)), np.full(area.size, near), sign * area], axis=1))
    return OutflowFaces(np.concatenate(places), np.concatenate(inner), np.concatenate(rows))


def side_weights(grid: StaggeredGrid, name: str, viscosity: float, boundary: Boundary) -> SideWeights:
    """Return what the force on a side of a name is summed with; a component has the area about its own place.

    From the wall to the middle of the first cell the balance of momentum along the outward normal ``e`` is
    ``p_wall = p + h / 2 f_e + (u_e / 2)^2 + nu u_e / h``, with the velocity ``u_e`` of the next face inside: with it
    the forces on all walls of a box are in balance with those on the fluid (`corner_weights`).
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
            if not grid.periodic[a]:  # the halves of the cells at the ends count with the next faces
                about[1] += 0.5 * widths[0]
                about[-1] += 0.5 * widths[-1]
                about[0] = 0.0
            friction[..., a] = viscosity / width * area * grid.along(a, about / grid.widths(a))
    d = grid.dimension
    arms = np.zeros((*places.shape, d, d))
    for a in range(d):
        for b, where in enumerate(_side_places(grid, side, a)):
            arms[..., a, b] = where
    shape, sign = (-1, grid.dimension), 1.0 if side.upper else -1.0
    half = np.tile(boundary.wall * np.array([0.5 * width * sign, 0.25, viscosity / width * sign]), (places.size, 1))
    beyond = numbers[_layer(grid, side, 0 if side.upper else 1)].ravel()
    return SideWeights(
        places.ravel(), inner.ravel(), friction.reshape(shape), push.reshape(shape), beyond, half,
        arms.reshape(-1, d, d),
    )  # fmt: skip


def corner_weights(grid: StaggeredGrid, name: str, viscosity: float) -> list[SideWeights]:
    """Return what a side takes of the friction on the sides that it meets, ``-nu A / h``, one for each of these.

    That on the last half of a cell, which counts with the next face (`side_weights`), is borne by this side, as nothing
    else holds the fluid there.
    """
    side = next(side for side in sides_of(grid) if side.name == name)
    k, end, found = side.axis, -1 if side.upper else 0, []
    for other in sides_of(grid):
        if other.axis == k:
            continue
        weights = side_weights(grid, other.name, viscosity, Outflow())
        shape = tuple(1 if grid.dimension - 1 - m == other.axis else n for m, n in enumerate(grid.shape))
        cut: list[int | slice] = [slice(None)] * grid.dimension
        cut[grid.dimension - 1 - k] = -1 if side.upper else 1
        width = grid.widths(other.axis)[-1 if other.upper else 0]
        area = np.broadcast_to(_areas(grid, other.axis) / grid.along(k, grid.widths(k)), shape)[tuple(cut)].ravel()
        friction = np.zeros((area.size, grid.dimension))
        friction[:, k] = -viscosity / width * area * 0.5 * grid.widths(k)[end]
        chosen = np.arange(weights.places.size).reshape(shape)[tuple(cut)].ravel()
        found.append(SideWeights(
            weights.places[chosen], weights.inner[chosen], friction, np.zeros_like(friction), weights.next[chosen],
            weights.half[chosen], weights.arms[chosen],
        ))  # fmt: skip
    return found
