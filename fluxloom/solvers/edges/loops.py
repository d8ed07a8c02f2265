"""Values and loops of a step of flow on edges: momentum, the matrix of the pressure, the correction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges import flow as kernels
from fluxloom.fe.edges.limit import time_limit
from fluxloom.fe.edges.operators import EdgeOperators
from fluxloom.fe.edges.point_mesh import PointMesh
from fluxloom.fv.geometry.wall_curvature import wall_curvature
from fluxloom.fv.given import Given, changes, given_values, parts_of
from fluxloom.fv.incompressible.boundary import Inflow, NoSlip, Outflow
from fluxloom.fv.incompressible.eddy_viscosity import EddyViscosity, filter_areas
from fluxloom.kernel.frontend import Kernel
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.vectors import copy
from fluxloom.solvers.edges.boundary import EdgePatch, WallLaw, edge_boundary
from fluxloom.solvers.edges.forces import force_shares
from fluxloom.solvers.edges.given import EdgeVelocities
from fluxloom.solvers.edges.outlets import hydrostatic
from fluxloom.solvers.edges.pressures import edge_pressures
from fluxloom.solvers.edges.scheme import EdgeScheme, SuitedStress
from fluxloom.solvers.edges.stages import REACH, STAGES
from fluxloom.values.given_on import GivenOn
from fluxloom.values.value import has_values

__all__ = ["EdgeLoops", "Field", "Reaction", "vectors"]

Array = npt.NDArray[np.float64]
Field = Given
"""A vector: numbers, values in space and time, or a function of the points ``(n, d)``."""


_BELOW_ZERO = float(np.nextafter(0.0, -1.0))


_ORIGIN = (0.0, 0.0, 0.0)
_SUMS = 10
"""Sums of `fluxloom.fe.edges.flow.load_sums`."""


@dataclass(frozen=True, eq=False)
class Reaction:
    """What the points of patches bear.

    Attributes
    ----------
    chain
        Finds it.
    total, sums : Global
        The force, and the sums of `fluxloom.fe.edges.flow.load_sums`.
    load : Dat
        The part of each point, ``(d,)``.
    points : (k,)
        The points that this rank owns.
    site : (k, 2 d + 1)
        Of each its place, and the vector and the size of the area that belongs to it.
    """

    forgets = ("load",)

    chain: Chain
    total: Global
    sums: Global
    load: Dat
    points: npt.NDArray[np.int64]
    site: Array


class EdgeLoops:
    """What `fluxloom.solvers.edges.flow.EdgeFlow` is made of; see there for the parameters.

    Attributes
    ----------
    u, p, hat, old : Dat
        Velocity and pressure, the velocity before the correction, and that of the step before.
    shown, acting : Dat
        A uniform force is part of ``p``: pressure with what it makes in a fluid at rest, and the force that is left.
    rise, b, whole : Dat
        Unknown and right-hand side of the system of the pressure, and the unknown with what is given.
    matrix
        Of that system.
    step_length : Global
        ``dt``.
    momentum, fill, correction : Chain
        The parts of a step, in this order; the system is solved after ``fill``.
    """

    def __init__(
        self,
        mesh: PointMesh,
        operators: EdgeOperators,
        viscosity: Given,
        boundaries: Mapping[str, EdgePatch],
        force: Field,
        scheme: EdgeScheme,
        model: EddyViscosity | None,
    ) -> None:
        self.mesh, self.operators, self.scheme, self.model = mesh, operators, scheme, model
        self.context, self.points, self.dimension = mesh.context, operators.points, mesh.dimension
        self.places = mesh.coordinates[: self.points.size]
        self.boundaries = dict(boundaries)
        self.boundary = edge_boundary(mesh.patches, self.places, boundaries)
        self._state()
        self._properties(viscosity, force)
        self._constraints()
        closed = not any(self.context.comm.allgather(bool(self.boundary.outlet.any())))
        self.velocities = EdgeVelocities(
            self.context, self.points, self.places, mesh.patches, self.boundaries, self.boundary, self.given, closed
        )
        self._system()
        self.subscales = scheme.subscales.build(self)
        self.pressures = edge_pressures(
            self.context, self.points, self.places, mesh.patches, self.boundaries, self.outlet
        )
        self.whole = self.rise if self.pressures is None else self.pressures.whole
        self._forces: dict[tuple[tuple[str, ...], tuple[float, float, float]], Reaction] = {}
        self._step()
        self._surveys()

    # --------------------------------------------------------------------------------------------- values
    def _state(self) -> None:
        ctx, points, d = self.context, self.points, self.dimension
        self.u, self.old, self.hat, self.xi, self.sums, self.slope, self._other = (
            ctx.dat(points, name=name, shape=(d,)) for name in ("u", "u_old", "u_hat", "xi", "sums", "pi", "u_stage")
        )
        self.p, self.rise, self.b, self.tau, self.diagonal, self.inverse = (
            ctx.dat(points, name=name) for name in ("p", "p_rise", "continuity", "tau", "diagonal", "inverse")
        )
        self.step_length = ctx.scalar(0.0, "dt")

    def _properties(self, viscosity: Given, force: Field) -> None:
        ctx, points = self.context, self.points
        self._whole = self.operators.mass.read() * self.boundary.images
        self.size = ctx.dat(points, self._whole ** (1.0 / self.dimension), "size")
        nu, stress = _viscosity(viscosity, self.places), self.scheme.stress
        varies = isinstance(stress, SuitedStress) and parts_of(viscosity, what="viscosity")[0].in_space
        self.transposed = 1 if varies else stress.transposed
        ends = np.zeros((points.size, self.dimension))
        for name, patch in self.mesh.patches.items():
            if isinstance(self.boundaries[name], Inflow | Outflow):
                ends[patch.points] += patch.areas
        self._ends = ctx.dat(points, ends, "ends") if self.transposed else None
        self.scheme.check_bounded(nu, np.zeros(points.size), "viscosity")
        self.laminar = ctx.dat(points, nu, "nu")
        self.nu = self.laminar if self.model is None else ctx.dat(points, self.laminar.read(), "nu_total")
        self.body = ctx.dat(points, vectors("force", force, self.places), "force")
        self._fields = [
            GivenOn(ctx, points, self.places, parts_of(given, d, name), name, out=out, least=[least] * max(d, 1))
            for name, given, d, out, least in (
                ("viscosity", viscosity, 0, self.laminar, _BELOW_ZERO),
                ("force", force, self.dimension, self.body, -np.inf),
            ) if changes(given)
        ]  # fmt: skip
        numbers = np.size(force) and not (callable(force) or has_values(force))  # pyright: ignore[reportArgumentType]
        uniform = np.asarray(force, dtype=float) if numbers else np.zeros(self.dimension)
        self.acting, self.shown, self.outlet, self._show = self.body, self.p, 0.0, []
        if uniform.any():
            still, self.outlet = hydrostatic(ctx.comm, self.mesh.patches, self.places, self.boundaries, uniform)
            self.acting = ctx.dat(points, np.zeros((points.size, self.dimension)), "force.reduced")
            self.shown, height = ctx.dat(points, still, "p.shown"), ctx.dat(points, still, "p.hydrostatic")
            self._show = [Loop(kernels.show, points, self.p, height, self.shown, name="show")]
        self.load = ctx.dat(points, self.acting.read(), "load")

    def _constraints(self) -> None:
        ctx, points, d, found = self.context, self.points, self.dimension, self.boundary
        self.free = ctx.dat(points, (~found.outlet).astype(np.float64), "free")
        full, given = np.tile(np.eye(d).ravel(), (points.size, 1)), np.zeros((points.size, d))
        full[found.points] = found.projection.reshape(-1, d * d)
        given[found.points] = found.given
        self.projection, self.given = ctx.dat(points, full, "projection"), ctx.dat(points, given, "given")
        self.held = ctx.subset(points, found.points, "held")
        planes = np.zeros((points.size, d * d))
        planes[found.mirrors] = found.normals.reshape(-1, d * d)
        self._planes = ctx.dat(points, planes, "planes") if any(ctx.comm.allgather(found.mirrors.size > 0)) else None
        self._mirrors = ctx.subset(points, found.mirrors, "mirrors")

    def _system(self) -> None:
        """Make the matrix of the pressure, and what it is filled from."""
        ctx, points, pattern = self.context, self.points, self.operators.neighbours
        offsets = pattern.offsets[: points.size + 1]
        rows = np.repeat(np.arange(points.size), np.diff(offsets))
        own = np.flatnonzero(pattern.indices[: offsets[-1]] == rows)
        self.own_entry = ctx.map(points, pattern.entries, own[:, None].astype(np.int32), "own_entry", stays=True)
        self.stiffness = ctx.dat(pattern.entries, name="stiffness")
        Loop(
            kernels.stiffness, pattern.entries, self.operators.entries, self.stiffness, d=self.dimension,
            name="stiffness",
        )()  # fmt: skip
        values = self.stiffness.read()
        values[own] = 0.0
        self.stiffness.write(values)
        self.matrix = SparseMatrix(pattern, ctx.dat(pattern.entries, name="pressure.values"))

    # ---------------------------------------------------------------------------------------------- loops
    def gather(self, what: Kernel, *arguments: Any, over: Set | None = None, **constants: Any) -> Loop:
        """Return a loop over points whose kernel has the integrals of their edges first."""
        ops = self.operators
        entries = ops.entries[ops.neighbours.to_entries]
        where = self.points if over is None else over
        constants["d"] = self.dimension
        return Loop(what, where, entries, *arguments, schedule=None, name=f"edges.{what.name}", **constants)

    def both(self, *dats: Dat) -> Iterator[Any]:
        """Yield of each dat the values of the neighbours and that of the point."""
        for dat in dats:
            yield dat[self.operators.neighbours]
            yield dat

    def _constrained(self, u: Dat) -> list[Loop]:
        d = self.dimension
        return [Loop(kernels.constrain, self.held, self.projection, self.given, u, d=d, name="constrain")]

    def _mirrored(self, what: Kernel, dat: Dat) -> list[Loop]:
        """Return the loop that takes what is beyond planes of symmetry for a part of a sum over neighbours."""
        if self._planes is None:
            return []
        return [Loop(what, self._mirrors, self._planes, dat, d=self.dimension, name=f"{what.name}.{dat.name}")]

    def convection(self, u: Dat) -> list[Loop]:
        """Return the loops that make ``xi`` of a velocity."""
        skew = self.scheme.convection.skew
        loop = self.gather(kernels.convection, *self.both(u), self.operators.mass, self.xi, skew=skew)
        return [loop, *self._mirrored(kernels.mirror_vector, self.xi)]

    def _stages(self) -> list[Loop | Reset]:
        """Return the loops of the four stages, from ``u`` to ``hat``: two to the middle of the step, two to its end."""
        loops: list[Loop | Reset] = []
        source = self.u
        times: dict[str, Any] = dict(self.scheme.times)
        for number, (place, ahead, weight) in enumerate(STAGES):
            target = (self._other, self.hat)[number % 2]
            loops += self.convection(source)
            loops.append(self.gather(
                kernels.stage, *self.both(source, self.xi, self.nu), self.operators.mass, self.size, self.load,
                self.slope, self.u, self.step_length, self._ends, self.sums, target, place=place, ahead=ahead,
                weight=weight, transposed=self.transposed, **times,
            ))  # fmt: skip
            loops += {0: self.velocities.loops(0), 2: self.velocities.loops(1)}.get(number, [])
            loops += self._constrained(target)
            source = target
        return loops

    def _pressure(self) -> list[Loop]:
        """Return the loops that fill the matrix and the right-hand side."""
        ends = Loop(kernels.fill_diagonal, self.points, self.diagonal, self.matrix.values[self.own_entry[0]],
                    self.inverse, name="fill_diagonal")  # fmt: skip
        given = [] if self.pressures is None else self.pressures.lift(self.p, self.subscales.lifted)
        return [*self.subscales.pressure(ends), *given]

    def _walls(self) -> list[Loop]:
        """Return the loops of the shear at walls with a law."""
        loops = []
        for name, law in self.boundaries.items():
            if not isinstance(law, WallLaw):
                continue
            patch, d = self.mesh.patches[name], self.dimension
            area = np.zeros((self.points.size, d))
            area[patch.points] = patch.areas
            where = self.context.subset(self.points, patch.points, f"wall.{name}")
            loops.append(Loop(
                kernels.friction, where, self.u, self.context.dat(self.points, area, f"area.{name}"),
                self.operators.mass, self.laminar, self.acting, self.load, d=d, distance=law.distance, kappa=law.kappa,
                constant=law.constant, name=f"friction.{name}",
            ))  # fmt: skip
        return loops

    def _changed(self) -> list[Loop]:
        """Return the loops to a force and a viscosity that change in time: those of the middle of a step."""
        loops = [loop for field in self._fields for loop in field.loops()]
        if any(field.dat is self.body for field in self._fields):
            loops.append(Loop(copy, self.points, self.acting, self.load, systems=self.dimension, name="load"))
        return loops

    @property
    def moves(self) -> bool:
        """Whether the force or the viscosity changes in time."""
        return bool(self._fields)

    def prepare(self, time: float, dt: float) -> None:
        """Say when a step begins and how long it is."""
        for field in self._fields:
            field.prepare([time + 0.5 * dt])
        self.velocities.prepare(time + 0.5 * dt, time + dt)
        if self.pressures is not None:
            self.pressures.prepare(time + dt)

    def check(self, time: float) -> None:
        """Look at what a step that ends at a time was given, see `EdgeVelocities.check`. Collective."""
        for field in (*self._fields, *([self.pressures] if self.pressures is not None else [])):
            field.check()
        self.velocities.check(time)

    def begin(self, time: float) -> None:
        """Make all that is given that of the start. Collective."""
        for field in self._fields:
            field.update(time)
        self.velocities.update(time)
        if self.pressures is not None:
            self.pressures.prepare(time)

    def _subgrid(self) -> list[Loop]:
        """Return the loops from the velocity to the viscosity."""
        if self.model is None:
            return []
        ctx, mass = self.context, self.operators.mass
        tensor = ctx.dat(self.points, name="velocity_gradient", shape=(9,))
        turbulent = ctx.dat(self.points, name="nu_t")
        area = ctx.dat(self.points, filter_areas(self._whole), "filter_area")
        return [
            self.gather(kernels.velocity_gradient, *self.both(self.u), mass, tensor),
            *self._mirrored(kernels.mirror_tensor, tensor),
            self.model.loop(self.points, tensor, area, turbulent),
            Loop(kernels.total_viscosity, self.points, self.laminar, turbulent, self.nu, name="total_viscosity"),
        ]

    def _step(self) -> None:
        mass = self.operators.mass
        slope = [self.gather(kernels.pressure_slope, *self.both(self.p), mass, self.slope),
                 *self._mirrored(kernels.mirror_vector, self.slope)]  # fmt: skip
        whole = [] if self.pressures is None else [self.pressures.add(self.rise)]
        last = self.gather(kernels.correct, *self.both(self.whole), mass, self.step_length, self.hat, self.p, self.u)
        keep = Loop(copy, self.points, self.u, self.old, systems=self.dimension, name="keep")
        before = [*self._changed(), *self._subgrid(), *self._walls(), *slope, *self.subscales.track()]
        self.momentum = Chain([*before, *self._stages()], name="momentum")
        self.fill = Chain(self._pressure(), name="pressure.fill")
        self.correction = Chain([keep, *whole, last, *self._constrained(self.u), *self._show], name="correction")

    def _surveys(self) -> None:
        ctx, mass, d, scheme = self.context, self.operators.mass, self.dimension, self.scheme
        self.rate, self.worst = ctx.scalar(0.0, "rate"), ctx.scalar(0.0, "imbalance")
        self.energy, self.total = ctx.scalar(0.0, "energy"), ctx.scalar(np.zeros(d), "momentum")
        times: dict[str, Any] = dict(scheme.times)
        times |= {"share": 0.0, "reach": REACH, "transposed": self.transposed}
        limit = self.gather(time_limit, *self.both(self.u, self.nu, self.size), mass, self.rate, **times)
        self.limit = Chain([Reset(self.rate), limit], name="limit")
        left = self.subscales.imbalance()
        energy = Loop(kernels.energy, self.points, self.u, mass, self.energy, self.total, d=d, name="energy")
        self.squares = ctx.scalar(0.0, "terms")
        terms = self.gather(kernels.continuity_terms, *self.both(self.hat), self.free, self.squares)
        self.terms = Chain([Reset(self.squares), terms], name="terms")
        self.survey = Chain([Reset(self.worst), Reset(self.energy), Reset(self.total), left, energy], name="survey")

    def begin_pressure(self) -> None:
        """Set the pressure to that at the start: nothing, but what holds outflows apart."""
        self.p.write(self.outlet)
        self.rise.write(0.0)
        self.show()

    def show(self) -> None:
        """Make `shown` of the pressure."""
        for loop in self._show:
            loop()

    def refill(self, dt: float) -> None:
        """Fill the matrix of the pressure for a step of ``dt`` that is not made now."""
        self.step_length.value = dt
        with self.subscales.kept():
            self.fill()

    def stepped(self, dt: float) -> None:
        """Take note of a step."""
        self.subscales.stepped(dt)

    def reaction(self, patches: tuple[str, ...], about: tuple[float, float, float] = _ORIGIN) -> Reaction:
        """Return the loops that sum what the points of patches bear (see `force_shares`), and the sums. Collective."""
        if (patches, about) in self._forces:
            return self._forces[patches, about]
        name, d, ctx = f"force.{'.'.join(patches)}", self.dimension, self.context
        total, sums = ctx.scalar(np.zeros(d), name), ctx.scalar(np.zeros(_SUMS), f"{name}.sums")
        shares = force_shares(self.mesh.patches, self.boundaries, patches, self.points.size)
        where = ctx.subset(self.points, shares.points, name)
        share = ctx.dat(self.points, shares.share, f"{name}.share")
        push = ctx.dat(self.points, shares.push, f"{name}.push")
        load = ctx.dat(self.points, name=f"{name}.load", shape=(d,))
        site = np.zeros((self.points.size, 2 * d + 1))
        site[:, :d] = self.places
        for patch in (self.mesh.patches[one] for one in patches):
            site[patch.points, d : 2 * d] += patch.areas
            site[patch.points, 2 * d] += patch.extents
        held = [
            self.gather(
                kernels.reaction, *self.both(self.u), self.old, self.xi, *self.both(self.shown, self.nu),
                self.operators.mass, self.body, self.step_length, share, push, self._ends, *targets, over=where,
                transposed=self.transposed,
            ) for targets in ((None, total), (load, None))
        ]  # fmt: skip
        turning = self._turning(patches, load, total, name)
        x, y, z = about
        summed = Loop(
            kernels.load_sums, where, load, self.shown, self.u, ctx.dat(self.points, site, f"{name}.site"), sums, d=d,
            x=x, y=y, z=z, name=f"{name}.sums",
        )  # fmt: skip
        chain = Chain([Reset(total), Reset(sums), *self.convection(self.u), *held, *turning, summed], name=name)
        found = Reaction(chain, total, sums, load, shares.points, site[shares.points])
        self._forces[patches, about] = found
        return found

    def _turning(self, patches: Sequence[str], load: Dat, total: Global, name: str) -> list[Loop]:
        """Return the loop to what the transposed gradient does on curved walls that move. Collective.

        Where the stress is symmetric, the discrete equations have it.
        """
        ctx, d, moving = self.context, self.dimension, dict[str, NoSlip]()
        for one in patches:
            if isinstance(wall := self.boundaries[one], NoSlip) and wall.moves:
                moving[one] = wall
        if not moving or self.transposed:
            return []
        area, vectors = np.zeros(self.points.size), np.zeros((self.points.size, d))
        for patch in (self.mesh.patches[one] for one in moving):
            area[patch.points] += patch.extents
            vectors[patch.points] += patch.areas
        at = np.flatnonzero(area)
        normals = vectors[at] / np.linalg.norm(vectors[at], axis=1)[:, None]
        found = wall_curvature(ctx.comm, self.places[at], normals)
        if not any(ctx.comm.allgather(bool(found.any()))):
            return []
        whole = np.zeros((self.points.size, d * d))
        whole[at] = area[at, None] * found.reshape(-1, d * d)
        curvature = ctx.dat(self.points, whole, f"{name}.curvature")
        over, title = ctx.subset(self.points, at, f"{name}.turning"), f"{name}.turning"
        return [Loop(kernels.turning_friction, over, curvature, self.u, self.nu, load, total, d=d, name=title)]


def _viscosity(given: Given, places: Array) -> Array:
    """Return the viscosity of the points."""
    found = given_values("viscosity", given, places)
    if (found < 0.0).any():
        first = int(np.argmax(found < 0.0))
        raise SolverError(f"viscosity: at least 0 is wanted, not {found[first]:g} at {tuple(places[first].tolist())}")
    return found.copy()


def vectors(what: str, given: Field, places: Array) -> Array:
    """Return a vector at each of some places.

    Parameters
    ----------
    what
        Has them, for messages.
    given
        One vector ``(d,)`` for all, nothing for zeros, or a function of the places that returns ``(n, d)``.
    places : (n, d)
        Where.

    Raises
    ------
    SolverError
        If there is not one of finite numbers for each.
    """
    if not callable(given) and not np.size(given):  # pyright: ignore[reportArgumentType]
        return np.zeros_like(places)
    return given_values(what, given, places, places.shape[1]).copy()
