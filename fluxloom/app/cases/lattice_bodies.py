"""Bodies of case files of lattice Boltzmann flow, as solvers take them: shapes, markers, motions, particles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fluxloom.app.cases.flow_start import explained
from fluxloom.app.cases.flow_volumes import check_length
from fluxloom.app.cases.lattice_body_tables import LatticeBodyTable, LatticeParticlesTable
from fluxloom.app.cases.lattice_tables import LatticeCase
from fluxloom.app.cases.lattice_units import Units
from fluxloom.core.errors import CaseError
from fluxloom.lbm.boundaries import Body, Wall
from fluxloom.lbm.box import Box
from fluxloom.lbm.immersed import (
    Contact,
    Delta,
    Elastic,
    Fixed,
    Free,
    ImmersedBody,
    ImmersedBoundary,
    Markers,
    Peskin,
    Pose,
    Prescribed,
    circle,
    curve,
    sphere,
    surface,
)
from fluxloom.lbm.immersed.markers import cross
from fluxloom.lbm.immersed.motion import Motion
from fluxloom.lbm.immersed.springs import strain_on_step
from fluxloom.lbm.labels import labels_of
from fluxloom.lbm.lattices import D2Q9, D3Q27
from fluxloom.lbm.links_cut import CutSearch, find_cuts, pieces_of
from fluxloom.lbm.shapes import Block, Circle, Cylinder, Shape, Sphere
from fluxloom.lbm.shapes_sets import Implicit
from fluxloom.lbm.surface import Surface
from fluxloom.values.expressions import formula

__all__ = ["PARTICLE", "bodies_of", "immersed_of", "particle_places"]

Array = npt.NDArray[np.float64]

PARTICLE = "particle"
"""What the names of particles begin with."""

_TRIES = 2000
_GAP = 2.0
_PUSH = 5.0
_MOMENT = 1e-2


def _shape(key: str, table: LatticeBodyTable, units: Units) -> Shape:
    """Return a shape in cells."""
    d, radius = units.dimension, 0.5 * table.diameter / units.dx
    for name in ("center", "low", "high", "translate", "velocity", "gravity"):
        check_length(f"{key}.{name}", len(getattr(table, name)), d)
    if table.shape not in ("box", "implicit") and (table.shape == "circle") != (d == 2):
        raise CaseError(f"{key}.shape: {table.shape!r} is none of a flow in {d} dimensions")
    match table.shape:
        case "circle":
            return Circle(units.place(table.center), radius)
        case "sphere":
            return Sphere(units.place(table.center), radius)
        case "cylinder":
            way = tuple(float(axis == table.axis) for axis in "zyx")
            return Cylinder(units.place(table.center), radius, way, table.length / units.dx or None)
        case "box":
            return Block(units.place(table.low), units.place(table.high))
        case "implicit":
            part = formula(table.function, f"{key}.function", ("x", "y", "z")[:d])
            low, high = (units.place(end) if end else None for end in (table.low, table.high))
            return Implicit(lambda places: part(*units.points(places)), d, low, high)
        case "surface" | "stl":
            shift = units.place(table.translate or [0.0] * d)
            with explained(f"{key}.file"):
                return Surface.from_file(Path(table.file), scale=table.scale / units.dx, shift=shift, weld=table.weld)


def _inside(key: str, shape: Shape, case: LatticeCase) -> None:
    """Raise `CaseError` where a body does not reach into the box."""
    low, high = shape.bounds()
    ends = np.array(case.mesh.shape) - 0.5
    if (high < -0.5).any() or (low > ends).any():
        raise CaseError(f"{key}: the body is outside of the box")


def bodies_of(case: LatticeCase, units: Units) -> list[Body]:
    """Return the bodies whose walls are links.

    Raises
    ------
    CaseError
        For a body that does not fit.
    """
    found = []
    for name, table in case.body.items():
        if table.condition != "immersed":
            key = f"body.{name}"
            with explained(key):
                shape = _shape(key, table, units)
                _inside(key, shape, case)
                wall = Wall(_surface_speed(key, table, shape, units), table.condition == "interpolated", True)
                found.append(Body(name, shape, wall))
    return found


def _surface_speed(key: str, table: LatticeBodyTable, shape: Shape, units: Units) -> Callable[[Array], Array] | None:
    """Return the velocity of a surface at places of the lattice; None at rest."""
    wanted = 1 if units.dimension == 2 else 3
    if table.spin and len(table.spin) != wanted:
        raise CaseError(f"{key}.spin: {wanted} numbers are wanted, not {len(table.spin)}")
    if not any(table.velocity) and not any(table.spin):
        return None
    along = np.array(units.vector(table.velocity, units.speed))
    spin = np.array(table.spin[::-1] or [0.0] * wanted) * units.dt
    middle = np.array(units.place(table.center)) if table.center else np.mean(shape.bounds(), axis=0)
    if any(table.spin) and not np.isfinite(middle).all():
        raise CaseError(f"{key}.spin: a body without ends has no centre: give low and high, or leave spin out")
    return lambda places: along + cross(spin, places - middle)


# -------------------------------------------------------------------------------------------- immersed
def immersed_of(case: LatticeCase, units: Units) -> ImmersedBoundary | None:
    """Return the immersed bodies and particles; None without any.

    Raises
    ------
    CaseError
        For a body that does not fit, and particles that find no room.
    """
    bodies = []
    for name, table in case.body.items():
        if table.condition == "immersed":
            key = f"body.{name}"
            with explained(key):
                shape = _shape(key, table, units)
                _inside(key, shape, case)
                _check_tight(key, shape, case)
                markers = _markers(key, table, shape)
                speed = _surface_speed(key, table, shape, units)
                if speed is not None:
                    markers = markers.moving(speed(markers.positions))
                body = ImmersedBody(name, markers, _motion(key, table, shape, markers, units))
                _check_stiffness(key, table, body, case.immersed.delta, units)
                bodies.append(body)
    contact = None
    if case.particles.count:
        with explained("particles"):
            contact = _contact(case.particles, units)
            bodies += _particles(case, units)
    if not bodies:
        return None
    table = case.immersed
    with explained("immersed"):
        return ImmersedBoundary(
            bodies, delta=table.delta, iterations=table.iterations, margin=table.margin, contact=contact,
            pipeline=table.pipeline,
        )  # fmt: skip


def _check_tight(key: str, shape: Shape, case: LatticeCase) -> None:
    """Raise `CaseError` for an immersed body so thin that links lead through it: markers cannot cut them."""
    d = case.mesh.dimension
    periodic = tuple(f"{axis}min" not in case.boundary for axis in "zyx"[3 - d :])
    box, lattice = Box(case.mesh.shape, periodic), D2Q9 if d == 2 else D3Q27
    pieces = pieces_of(box, [shape])
    if not pieces:
        return
    search = CutSearch(box, labels_of(box, [shape]), pieces)
    count = len(find_cuts(np.array(lattice.velocities), search).cells) // 2
    if count:
        other = "" if case.body[key.removeprefix("body.")].motion != "fixed" else ', or take condition = "interpolated"'
        raise CaseError(
            f"{key}: {count:,} links between cells lead through the body, which is thinner than the way from cell to "
            f"cell, and markers cannot cut them: fluid would pass. Make it two cells thick or more{other}"
        )


def _markers(key: str, table: LatticeBodyTable, shape: Shape) -> Markers:
    match shape:
        case Circle():
            return circle(shape.center, shape.radius, retract=table.retract)
        case Sphere():
            return sphere(shape.center, shape.radius, retract=table.retract)
        case Surface():
            return surface(shape.vertices[shape.triangles])
        case Block() if len(shape.low) == 2:
            (y0, x0), (y1, x1) = shape.low, shape.high
            return curve([(y0, x0), (y0, x1), (y1, x1), (y1, x0)], retract=table.retract)
    raise CaseError(
        f"{key}.condition: {table.shape!r} cannot be immersed: take a circle or a box in the plane, a sphere or a "
        "surface in space, or another condition"
    )


def _motion(key: str, table: LatticeBodyTable, shape: Shape, markers: Markers, units: Units) -> Motion:
    if table.motion == "free":
        assert isinstance(shape, Circle | Sphere)
        return _free(shape.radius, table.density, table.gravity, units)
    if table.motion == "fixed":
        return Fixed()
    if table.motion == "elastic":
        return _elastic(table, markers, units)
    if units.dimension == 3 and table.angle:
        raise CaseError(f"{key}.angle: in three dimensions bodies are moved only, not turned; leave it out")
    if units.dimension == 2 and table.position_z:
        raise CaseError(f"{key}.position_z: the mesh has 2 dimensions; leave it out")
    keys = [f"position_{axis}" for axis in "zyx"[3 - units.dimension :]]
    ways = [formula(getattr(table, name) or "0", f"{key}.{name}", ("t",)) for name in keys]
    turn = formula(table.angle or "0", f"{key}.angle", ("t",))
    return Prescribed(_Path(np.mean(shape.bounds(), axis=0), ways, turn, units))


@dataclass(frozen=True)
class _Path:
    """A motion that formulas of the time describe; velocities are central differences over a hundredth of a step."""

    middle: Array
    ways: Sequence[Callable[..., Array]]
    turn: Callable[..., Array]
    units: Units

    def __call__(self, steps: float) -> Pose:
        """Return the pose at a time in steps."""
        t = (steps + np.array([-0.5, 0.0, 0.5]) * _MOMENT) * self.units.dt
        way = np.stack([part(t) for part in self.ways], axis=1) / self.units.dx
        angle = self.turn(t)
        velocity, spin = (way[2] - way[0]) / _MOMENT, (angle[2] - angle[0]) / _MOMENT
        if self.units.dimension == 3:
            return Pose(self.middle + way[1], (0.0,) * 3, velocity, (0.0,) * 3)
        return Pose(self.middle + way[1], float(angle[1]), velocity, float(spin))


def _free(radius: float, density: float, gravity: Sequence[float], units: Units) -> Free:
    make = Free.disk if units.dimension == 2 else Free.ball
    return make(radius, density / units.density, gravity=units.vector(gravity, units.dx / units.dt**2))


def _elastic(table: LatticeBodyTable, markers: Markers, units: Units) -> Elastic:
    """Return the springs of a membrane in the plane.

    With markers ``l`` apart the tension ``s e`` at a strain ``e`` is that of springs ``s / l``, and the energy of
    bending, half of ``b`` times the square of the curvature along the line, that of ``b / l^3`` at each marker.
    """
    x = markers.positions
    apart = float(np.linalg.norm(np.roll(x, -1, axis=0) - x, axis=1).mean())
    stiffness = table.stiffness / units.force / apart
    return Elastic(stiffness=stiffness, bending=table.bending / (units.force * units.dx**2) / apart**3)


def _check_stiffness(key: str, table: LatticeBodyTable, body: ImmersedBody, delta: Delta, units: Units) -> None:
    """Raise `CaseError` for an elastic body that is so stiff that it blows up; what may do so is warned of later."""
    if not isinstance(body.motion, Elastic):
        return
    strain, lost = strain_on_step(body, delta, units.lattice_viscosity)
    if lost:
        less = "" if not table.bending else f" and bending {table.bending / strain:.3g}"
        other = "" if isinstance(delta, Peskin) else ', or take immersed.delta = "peskin"'
        raise CaseError(
            f"{key}.stiffness: with these cells and steps the body blows up; stiffness {table.stiffness / strain:.3g}"
            f"{less} are safe{other}, or steps {strain ** (-2 / 3):.2g} times as long (time.lattice_velocity)"
        )


def _contact(table: LatticeParticlesTable, units: Units) -> Contact:
    """Return a repulsion that is some times the weight of a particle in the fluid."""
    free = _free(0.5 * table.diameter / units.dx, table.density, table.gravity, units)
    weight = abs(free.mass - free.displaced) * float(np.linalg.norm(free.gravity))
    return Contact(_PUSH * weight, _GAP)


def _particles(case: LatticeCase, units: Units) -> list[ImmersedBody]:
    table, d = case.particles, units.dimension
    for name in ("gravity", "low", "high"):
        check_length(f"particles.{name}", len(getattr(table, name)), d)
    radius = 0.5 * table.diameter / units.dx
    motion = _free(radius, table.density, table.gravity, units)
    make = circle if d == 2 else sphere
    return [
        ImmersedBody(f"{PARTICLE}{k}", make(tuple(place), radius, retract=table.retract), motion)
        for k, place in enumerate(particle_places(case, units))
    ]


def particle_places(case: LatticeCase, units: Units) -> Array:
    """Return places of particles, slowest axis first, at random: two cells apart from each other and from the sides.

    Raises
    ------
    CaseError
        If there is no room for all.
    """
    table, shape = case.particles, np.array(case.mesh.shape)
    radius = 0.5 * table.diameter / units.dx
    edge = radius + _GAP
    low = np.maximum(-0.5, np.array(units.place(table.low)) if table.low else -np.inf) + edge
    high = np.minimum(shape - 0.5, np.array(units.place(table.high)) if table.high else np.inf) - edge
    others = [
        (shape_.bounds(), key) for key, body in case.body.items() for shape_ in [_shape(f"body.{key}", body, units)]
    ]
    random, found = np.random.default_rng(table.seed), np.empty((0, len(shape)))
    tries = 0
    while len(found) < table.count and (low < high).all() and tries < _TRIES:
        place = random.uniform(low, high)
        near = ((found - place) ** 2).sum(axis=1) < (2.0 * radius + _GAP) ** 2
        met = any(((place > a - edge) & (place < b + edge)).all() for (a, b), _ in others)
        tries += 1
        if not near.any() and not met:
            found, tries = np.concatenate([found, place[None]]), 0
    if len(found) < table.count:
        raise CaseError(f"particles.count: only {len(found)} of {table.count} found room: fewer, smaller, a larger box")
    return found
