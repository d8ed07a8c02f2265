"""Bodies in a lattice Boltzmann flow, in physical units, x first: solid ones, and immersed ones that may move."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.flows.lattice.given.shapes import BodyShape
from fluxloom.flows.lattice.given.sides import Given, VelocityInTime, vector
from fluxloom.flows.lattice.given.units import Units
from fluxloom.flows.naming import KeyedError, named
from fluxloom.lbm import boundaries as lbm
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.cells.labels import labels_of
from fluxloom.lbm.cells.links_cut import CutSearch, find_cuts, pieces_of
from fluxloom.lbm.immersed import (
    Elastic,
    Fixed,
    Free,
    ImmersedBody,
    Markers,
    Pose,
    Prescribed,
    circle,
    curve,
    sphere,
    surface,
)
from fluxloom.lbm.immersed.markers.deltas import Delta, Peskin
from fluxloom.lbm.immersed.markers.places import cross
from fluxloom.lbm.immersed.motion import Motion
from fluxloom.lbm.immersed.springs import strain_on_step
from fluxloom.lbm.lattices import D2Q9, D3Q27
from fluxloom.lbm.shapes.shapes import Block, Circle, Shape, Sphere
from fluxloom.lbm.shapes.surface import Surface
from fluxloom.values.value import Called, Constant, Product, Sum, Value, value_of, vector_of

__all__ = ["Body", "Floating", "Membrane", "Moving", "free_body", "immersed_bodies", "solid_bodies"]

Array = npt.NDArray[np.float64]

_MOMENT = 1e-2
"""Of a step: over it velocities of a body that is moved are differences."""


@dataclass(frozen=True)
class Moving:
    """A motion that is known.

    Attributes
    ----------
    position
        The way from the centre, ``(n, d)``, of times ``(n,)``; None: it stays.
    angle
        In the plane, radians ``(n,)`` of times ``(n,)``, counter-clockwise; None: it does not turn.
    """

    position: Callable[[Array], npt.ArrayLike] | None = None
    angle: Callable[[Array], npt.ArrayLike] | None = None


@dataclass(frozen=True)
class Floating:
    """A rigid ball that moves as the fluid and its weight push it.

    Attributes
    ----------
    density
        Of the body.
    gravity
        Acceleration; buoyancy is taken off.
    """

    density: float
    gravity: Sequence[float] = ()


@dataclass(frozen=True)
class Membrane:
    """A membrane without mass in the plane, with fluid inside; slack as it starts.

    Attributes
    ----------
    stiffness
        The tension at a strain of one, a force by depth.
    bending
        The bending moment at a curvature of one, a force times a length by depth.
    """

    stiffness: float
    bending: float = 0.0


BodyMotion: TypeAlias = Moving | Floating | Membrane


@dataclass(frozen=True)
class Body:
    """A body in the flow.

    Attributes
    ----------
    shape
        From `fluxloom.flows.lattice.given.shapes`.
    condition
        ``"bounce-back"`` (walls half-way between cells), ``"interpolated"`` (where the shape says), or ``"immersed"``:
        forces at markers.
    velocity
        Of its surface, which stays where it is; of a solid one in space and time.
    spin
        Of its surface about the centre, radians a time: in the plane one value, counter-clockwise, in space three; of a
        solid one in time.
    motion
        Of immersed bodies; None: it stays where it is.
    retract
        Of immersed balls, and boxes in the plane: how many cells inside of the surface its markers lie.
    torque
        Whether the torque of the flow on a solid body is measured too; on an immersed one it always is.
    """

    shape: BodyShape
    condition: Literal["bounce-back", "interpolated", "immersed"] = "interpolated"
    velocity: Sequence[Given] = ()
    spin: Sequence[Given] = ()
    motion: BodyMotion | None = None
    retract: float = 0.0
    torque: bool = False

    def __post_init__(self) -> None:
        if self.motion is not None and self.condition != "immersed":
            raise SolverError('Body(motion=...): a body that moves needs condition="immersed"')


# ----------------------------------------------------------------------------------------------- solid
def solid_bodies(bodies: Mapping[str, Body], box: Box, units: Units) -> list[lbm.Body]:
    """Return the bodies whose walls are links, in cells and steps.

    Raises
    ------
    SolverError
        For a body that does not fit.
    """
    found = []
    for name, body in bodies.items():
        if body.condition != "immersed":
            with named(f"body.{name}"):
                shape = _inside(body, box, units)
                center = tuple(_middle(shape)) if body.torque else None
                if center is not None and not np.isfinite(center).all():
                    center = (-0.5,) * units.dimension  # the lower corner of the box
                speed, interpolated = _surface_speed(body, shape, units, name), body.condition == "interpolated"
                wall = lbm.Wall(speed, interpolated, True, center)
                found.append(lbm.Body(name, shape, wall))
    return found


def _inside(body: Body, box: Box, units: Units) -> Shape:
    """Return the shape of a body in cells; raise `SolverError` where it does not reach into the box."""
    shape = body.shape.on_lattice(units)
    low, high = shape.bounds()
    ends = np.array(box.shape) - 0.5
    if (high < -0.5).any() or (low > ends).any():
        raise SolverError("the body is outside of the box")
    return shape


def _surface_speed(
    body: Body, shape: Shape, units: Units, name: str = ""
) -> Callable[[Array], Array] | VelocityInTime | None:  # fmt: skip
    """Return the velocity of a surface at places of the lattice; None at rest."""
    d, wanted = units.dimension, 1 if units.dimension == 2 else 3
    if len(body.velocity) not in (0, d):
        raise KeyedError("velocity", f"{d} numbers are wanted, one a dimension, not {len(body.velocity)}")
    if len(body.spin) not in (0, wanted):
        raise KeyedError("spin", f"{wanted} numbers are wanted, not {len(body.spin)}")
    along, spin = vector_of(body.velocity, d), [value_of(one) for one in body.spin] or [Constant(0.0)] * wanted
    numbers = [one.number for one in (*along, *spin) if isinstance(one, Constant)]
    if len(numbers) == d + wanted and not any(numbers):
        return None
    middle = _middle(shape)
    if any(not isinstance(one, Constant) or one.number for one in spin) and not np.isfinite(middle).all():
        raise KeyedError("spin", "a body without ends has no centre: give low and high, or leave spin out")
    if len(numbers) < d + wanted:
        return _turning(along, spin, middle, units, f"body.{name}")
    vector_along = np.array(units.vector(numbers[:d], units.speed))
    turn = np.array(numbers[d:][::-1]) * units.dt
    return lambda places: vector_along + cross(turn, places - middle)


def _turning(
    along: Sequence[Value], spin: Sequence[Value], middle: Array, units: Units, key: str
) -> VelocityInTime:  # fmt: skip
    """Return a velocity that changes in time: that of a place, and of turning about the middle."""
    centre = [float(x[0]) for x in units.points(np.where(np.isfinite(middle), middle, 0.0)[None])]
    arms = [_arm(axis, x) for axis, x in enumerate(centre)]
    if len(arms) == 2:
        turned = (Product(Product(Constant(-1.0), spin[0]), arms[1]), Product(spin[0], arms[0]))
    else:
        turned = tuple(
            Sum(
                Product(spin[(k + 1) % 3], arms[(k + 2) % 3]),
                Product(Product(Constant(-1.0), spin[(k + 2) % 3]), arms[(k + 1) % 3]),
            )
            for k in range(3)
        )  # fmt: skip
    parts = tuple(Sum(one, other) for one, other in zip(along, turned, strict=True))
    return VelocityInTime(parts, key, units.dx, units.dt, units.lower, 1.0, units.speed)


def _arm(axis: int, centre: float) -> Called:
    """Return the way from a place on an axis."""
    return Called(lambda places: places[:, axis] - centre)


def _middle(shape: Shape) -> Array:
    """Return the centre of a shape, or that of what bounds it."""
    center = getattr(shape, "center", None)
    with np.errstate(invalid="ignore"):  # of bodies without ends
        return np.mean(shape.bounds(), axis=0) if center is None else np.array(center)


# -------------------------------------------------------------------------------------------- immersed
def immersed_bodies(bodies: Mapping[str, Body], box: Box, units: Units, delta: Delta) -> list[ImmersedBody]:
    """Return the immersed bodies, in cells and steps.

    Raises
    ------
    SolverError
        For a body that does not fit.
    """
    found = []
    for name, given in bodies.items():
        if given.condition == "immersed":
            with named(f"body.{name}"):
                shape = _inside(given, box, units)
                _check_tight(given, shape, box)
                markers = _markers(given, shape)
                speed = _surface_speed(given, shape, units, name)
                if isinstance(speed, VelocityInTime):
                    raise KeyedError("velocity", "that of an immersed surface does not change: give numbers")
                if speed is not None:
                    markers = markers.moving(speed(markers.positions))
                body = ImmersedBody(name, markers, _motion(given.motion, shape, markers, units))
                _check_stiffness(given.motion, body, delta, units)
                found.append(body)
    return found


def _check_tight(body: Body, shape: Shape, box: Box) -> None:
    """Raise `SolverError` for an immersed body so thin that links lead through it: markers cannot cut them."""
    lattice = D2Q9 if box.dimensions == 2 else D3Q27
    pieces = pieces_of(box, [shape])
    if not pieces:
        return
    search = CutSearch(box, labels_of(box, [shape]), pieces)
    count = len(find_cuts(np.array(lattice.velocities), search).cells) // 2
    if count:
        other = "" if body.motion is not None else ', or take condition = "interpolated"'
        raise SolverError(
            f"{count:,} links between cells lead through the body, which is thinner than the way from cell to "
            f"cell, and markers cannot cut them: fluid would pass. Make it two cells thick or more{other}"
        )


def _markers(body: Body, shape: Shape) -> Markers:
    match shape:
        case Circle():
            return circle(shape.center, shape.radius, retract=body.retract)
        case Sphere():
            return sphere(shape.center, shape.radius, retract=body.retract)
        case Surface():
            return surface(shape.vertices[shape.triangles])
        case Block() if len(shape.low) == 2:
            (y0, x0), (y1, x1) = shape.low, shape.high
            return curve([(y0, x0), (y0, x1), (y1, x1), (y1, x0)], retract=body.retract)
    raise KeyedError(
        "condition",
        f"{type(body.shape).__name__.lower()!r} cannot be immersed: take a circle or a box in the plane, a sphere or a "
        "surface in space, or another condition",
    )


def _motion(given: BodyMotion | None, shape: Shape, markers: Markers, units: Units) -> Motion:
    match given:
        case None:
            return Fixed()
        case Floating():
            if not isinstance(shape, Circle | Sphere):
                raise KeyedError("motion", "a circle or a sphere floats; bodies of other shapes are moved")
            return free_body(shape.radius, given.density, given.gravity, units)
        case Membrane():
            if units.dimension == 3:
                raise KeyedError("motion", "a membrane is in the plane")
            return _elastic(given, markers, units)
        case Moving():
            if units.dimension == 3 and given.angle is not None:
                raise KeyedError("angle", "in three dimensions bodies are moved only, not turned; leave it out")
            return Prescribed(_Path(np.mean(shape.bounds(), axis=0), given, units))


@dataclass(frozen=True)
class _Path:
    """A motion as a function of the time; velocities are central differences over a hundredth of a step."""

    middle: Array
    motion: Moving
    units: Units

    def __call__(self, steps: float) -> Pose:
        """Return the pose at a time in steps."""
        t = (steps + np.array([-0.5, 0.0, 0.5]) * _MOMENT) * self.units.dt
        d, position, turn = self.units.dimension, self.motion.position, self.motion.angle
        way = np.zeros((3, d)) if position is None else np.asarray(position(t), np.float64)[:, ::-1] / self.units.dx
        angle = np.zeros(3) if turn is None else np.asarray(turn(t), np.float64)
        velocity, spin = (way[2] - way[0]) / _MOMENT, (angle[2] - angle[0]) / _MOMENT
        if d == 3:
            return Pose(self.middle + way[1], (0.0,) * 3, velocity, (0.0,) * 3)
        return Pose(self.middle + way[1], float(angle[1]), velocity, float(spin))


def free_body(radius: float, density: float, gravity: Sequence[float], units: Units) -> Free:
    """Return the motion of a ball of some cells that floats."""
    make = Free.disk if units.dimension == 2 else Free.ball
    return make(radius, density / units.density, gravity=vector("gravity", gravity, units, units.dx / units.dt**2))


def _elastic(given: Membrane, markers: Markers, units: Units) -> Elastic:
    """Return the springs of a membrane in the plane.

    With markers ``l`` apart the tension ``s e`` at a strain ``e`` is that of springs ``s / l``, and the energy of
    bending, half of ``b`` times the square of the curvature along the line, that of ``b / l^3`` at each marker.
    """
    x = markers.positions
    apart = float(np.linalg.norm(np.roll(x, -1, axis=0) - x, axis=1).mean())
    stiffness = given.stiffness / units.force / apart
    return Elastic(stiffness=stiffness, bending=given.bending / (units.force * units.dx**2) / apart**3)


def _check_stiffness(given: BodyMotion | None, body: ImmersedBody, delta: Delta, units: Units) -> None:
    """Raise `SolverError` for an elastic body that is so stiff that it blows up; what may do so is warned of later."""
    if not isinstance(given, Membrane):
        return
    strain, lost = strain_on_step(body, delta, units.lattice_viscosity)
    if lost:
        less = "" if not given.bending else f" and bending {given.bending / strain:.3g}"
        other = "" if isinstance(delta, Peskin) else ', or take immersed.delta = "peskin"'
        raise KeyedError(
            "stiffness",
            f"with these cells and steps the body blows up; stiffness {given.stiffness / strain:.3g}"
            f"{less} are safe{other}, or steps {strain ** (-2 / 3):.2g} times as long (time.lattice_velocity)",
        )
