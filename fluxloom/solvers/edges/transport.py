r"""Convection and diffusion of a scalar on linear triangles and tetrahedra, edge by edge.

.. math:: \partial_t c + u \cdot \nabla c = \nabla \cdot (\kappa \nabla c) + s

The scalar lives at the points, linear in between, with orthogonal subscales for stabilisation, and time goes on by the
classical method of Runge and Kutta of fourth order, as the momentum of `fluxloom.solvers.edges.flow` does, for a
velocity that is given. What velocity and diffusivity make of the integrals of the edges is three numbers of each, made
again when the velocity or the step has changed; the kernels are those of `fluxloom.fe.edges.transport`.

Sources: R. Codina, Computer Methods in Applied Mechanics and Engineering 190 (2000) 1579-1599; R. Codina, A. Folch,
International Journal for Numerical Methods in Fluids 44 (2004) 483-503.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import Divergence, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.sets import Subset
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.edges import bounded as bounded
from fluxloom.fe.edges import transport as kernels
from fluxloom.fe.edges.flow import relaxation
from fluxloom.fe.edges.limit import time_limit
from fluxloom.fe.edges.operators import EdgeOperators, operators_on
from fluxloom.fe.edges.point_mesh import PointMesh
from fluxloom.fe.edges.transport import hold
from fluxloom.fv.given import Given, changes, given_values, parts_of
from fluxloom.fv.incompressible.flux_correction import allowances, corrected, unlimited
from fluxloom.fv.steep_start import discontinuous, steepest
from fluxloom.solvers.edges.loops import Field, vectors
from fluxloom.solvers.edges.scheme import EdgeScheme
from fluxloom.solvers.edges.stages import REACH, STAGES, stable_step
from fluxloom.solvers.edges.transport_given import BEGIN, END, MIDDLE, ScalarSources, ScalarValues
from fluxloom.solvers.incompressible.types import SolvedDirectly, check_step
from fluxloom.values.given_on import GivenOn

__all__ = ["BoundedTransport", "EdgeTransport", "Scalar", "ScalarSums", "TransportState", "starts_with_a_jump"]

_STAGES = (0.0, 0.75, 1.0 / 3.0)
"""What each stage has of the start of the step."""

_ROUNDING = 1e-9


class BoundedTransport:
    """The loops of a bounded step, see `fluxloom.fe.edges.bounded`.

    Parameters
    ----------
    transport
        Whose scalar it is.

    Attributes
    ----------
    prepare, advance
        What a new velocity or step needs, and a step.
    """

    forgets = ("pair", "flux", "low", "rate", "allowed", "start")

    def __init__(self, transport: EdgeTransport) -> None:
        self.transport = transport
        ctx, ops, points = transport.context, transport.operators, transport.mesh.points
        entries = ops.neighbours.entries
        self.pair = ctx.dat(entries, name="bounded.pair", shape=(3,), layout=ops.entries.layout)
        self.flux = ctx.dat(entries, name="bounded.flux")
        self.low, self.rate, self.allowed, self.start = (
            ctx.dat(points, name=f"bounded.{name}", shape=shape)
            for name, shape in (("low", ()), ("rate", ()), ("allowed", (2,)), ("start", ()))
        )
        self.inverse = ctx.dat(points, 1.0 / ops.mass.read(), "bounded.inverse")
        self._fastest = ctx.scalar(0.0, "bounded.fastest")
        rows, both = ops.neighbours.to_entries, transport.both
        self.prepare = Chain([
            Reset(self._fastest),
            Loop(bounded.prepare, points, ops.entries[rows], *both(transport.u, transport.kappa), self.inverse,
                 self.pair[rows], self._fastest, d=transport.dimension, name="bounded.prepare"),
        ], name="bounded.prepare")  # fmt: skip
        keep = Loop(hold, points, transport.c, self.start, name="bounded.start")
        stages = zip(_STAGES, (BEGIN, END, MIDDLE), (END, MIDDLE, END), strict=True)
        self.advance = Chain([keep, *(loop for stage in stages for loop in self._stage(*stage))], name="bounded")

    def _stage(self, share: float, begin: int, end: int) -> list[Loop]:
        """Return the loops of a stage, from ``c`` to ``c``, and of one moment to another."""
        own, points = self.transport, self.transport.mesh.points
        rows, both, dt = own.operators.neighbours.to_entries, own.both, own.step_length
        free = [] if own.held is None else [Loop(unlimited, own.held, self.allowed, name="bounded.unlimited")]
        mixed = [Loop(bounded.blend, points, self.start, own.c, share=share, name="bounded.blend")] if share else []
        if mixed and own.values.moves:
            mixed += own.values.hold(own.c, end)
        return [
            *own.sources.loops(begin),
            Loop(bounded.low_order, points, self.pair[rows], *both(own.c), self.inverse, own.source, dt, self.rate,
                 self.low, name="bounded.low"),
            *own.values.hold(self.low, end),
            Loop(bounded.edge_fluxes, points, self.pair[rows], *both(own.c, self.rate), self.flux[rows],
                 name="bounded.fluxes"),
            Loop(allowances, points, self.flux[rows], *both(self.low, own.c), self.inverse, dt, self.allowed,
                 name="bounded.allowances"),
            *free,
            Loop(corrected, points, self.flux[rows], *both(self.allowed), self.low, self.inverse, dt, own.c,
                 name="bounded.corrected"),
            *own.values.hold(own.c, end),
            *mixed,
        ]  # fmt: skip

    def check(self, dt: float) -> None:
        """Raise `SolverError` where a step is too long to be bounded; `prepare` has run. Collective."""
        longest = self.longest()
        if dt > longest * (1.0 + _ROUNDING):
            raise SolverError(
                f"dt = {dt:g}: a bounded scalar takes steps of at most {longest:.4g} here; take a shorter one, "
                "0 for the largest, or bounded = false"
            )

    def longest(self) -> float:
        """Return the longest step that makes no new extremum, ``1 / max rate``; `prepare` has run. Collective."""
        rate = float(self._fastest.value)
        return 1.0 / rate if rate > 0.0 else float("inf")


def starts_with_a_jump(transport: EdgeTransport, initial: Given, given: Mapping[str, Given]) -> bool:
    """Return whether the scalar jumps at the start, between points or to what is given where flow enters. Collective.

    The latter where there is no source: with one, a start is but where the way to a steady state begins.

    Parameters
    ----------
    transport
        Whose scalar it is.
    initial
        What it starts from.
    given
        Patch to what it is there.
    """
    places, pattern, size = transport.mesh.coordinates, transport.operators.neighbours, transport.mesh.points.size
    first = np.repeat(np.arange(size), np.diff(pattern.offsets[: size + 1]))
    second = pattern.indices[: first.size]
    pairs = first < second
    start = given_values("initial", initial, places)
    jumps = [np.array([steepest(initial, places[first[pairs]], places[second[pairs]])])]
    values, velocity = [start], transport.u.read()
    sourced = transport.context.comm.reduce(np.array([np.abs(transport.source.read()).max(initial=0.0)]), "max")[0]
    sourced += transport.sources.moves
    for name, scalar in given.items() if sourced == 0.0 else ():
        patch = transport.mesh.patches[name]
        enters = np.einsum("ij,ij->i", velocity[patch.points], patch.areas) < 0.0
        there = given_values(f"patch {name!r}", scalar, places[patch.points])
        values.append(there)
        jumps.append(np.abs(there - start[patch.points])[enters])
    return discontinuous(transport.context.comm, values, jumps)


Array = npt.NDArray[np.float64]
Scalar = Given

BELOW = float(np.nextafter(0.0, -1.0))
"""The largest number that no diffusivity may be."""


@dataclass(frozen=True)
class TransportState:
    """Sums of a scalar.

    Attributes
    ----------
    time, steps
        When.
    amount, square
        ``sum M c`` and ``sum M c^2``, of all ranks.
    least, most
        Its range.
    """

    time: float
    steps: int
    amount: float
    square: float
    least: float
    most: float


class ScalarSums:
    """Sums and range of a scalar at points.

    Parameters
    ----------
    context
        Where they live.
    c, mass : (n,)
        The scalar, and what sums count of each point.

    Attributes
    ----------
    chain
        What finds them.
    """

    def __init__(self, context: Context, c: Dat, mass: Dat) -> None:
        starts = {"amount": 0.0, "square": 0.0, "least": np.inf, "most": -np.inf}
        self._sums = [context.scalar(start, name) for name, start in starts.items()]
        resets = [Reset(*pair) for pair in zip(self._sums, starts.values(), strict=True)]
        self.chain = Chain([*resets, Loop(kernels.totals, c.set, c, mass, *self._sums, name="totals")], name="survey")

    def now(self, time: float, steps: int, hint: str = "") -> TransportState:
        """Return them; raise `Divergence` with a hint if they are not finite. Collective."""
        self.chain()
        found = [float(value) for value in Global.read_all(self._sums)]
        if not np.isfinite(found).all():
            text = f"step {steps}, time {time:.6g}: the scalar is not finite{hint}"
            raise Divergence(text, field="scalar", element="point", step=steps, time=time)
        return TransportState(time, steps, *found)


class EdgeTransport(SolvedDirectly):
    """Convection and diffusion of a scalar on a mesh of triangles or tetrahedra.

    Parameters
    ----------
    mesh
        Triangles or tetrahedra in a context, from `fluxloom.fe.edges.point_mesh.point_mesh`. On several ranks
        everything is collective.
    velocity
        ``(d,)`` numbers or values in space and time (`fluxloom.fv.given.Given`), of which those in the middle of a step
        hold throughout it; a function of the points ``(n, d)`` that returns as many vectors; or a dat ``(d,)`` on the
        points such as ``EdgeFlow.u``, whose values at the start of a step hold throughout it; m/s.
    diffusivity
        ``kappa``: a number, a value, or a function of the points that returns ``(n,)``; m^2/s.
    given
        Patch to the scalar there: a number, a value, or a function of its points. Nothing but ``fluxes`` diffuses
        through other patches; what flows in or out there is ``c`` itself. Where patches meet, the later one of
        ``given`` counts.
    fluxes
        Patch to what diffuses in through it, ``kappa dc/dn`` with the outward normal, such as the heat that a wall
        gives: a number, a value, or a function of its points; of ``c`` times m/s.
    source
        ``s``, of ``c`` a second: a number, a value, or a function of the points.
    scheme
        ``convection``, and ``dynamic``, ``viscous``, ``convective`` of ``tau``; the rest belongs to flow.
    bounded
        Whether steps make no new extremum (`fluxloom.fe.edges.bounded`, in place of ``scheme``), by default where the
        start is discontinuous.
    operators
        Of the mesh, where they exist, such as those of an `EdgeFlow`; by default with ``SoA`` storage.

    Attributes
    ----------
    time, steps, dt
        Since the start, s; steps made; length of the last one.
    bounded
        The loops of bounded steps; None: those of ``scheme``.

    Raises
    ------
    MeshError
        If the mesh has other cells.
    SolverError
        If a value does not fit its places, or ``given`` names no patch.

    Examples
    --------
    >>> smoke = EdgeTransport(mesh, flow.u, 1e-3, {"inlet": 1.0}, operators=flow.operators)
    >>> smoke.initialise(0.0)
    >>> smoke.step(min(dt, smoke.stable_step()))
    """

    remembers = ("time", "steps", "dt")
    forgets = ("tau", "flux", "rest", "strong")

    def __init__(
        self,
        mesh: PointMesh,
        velocity: Field | Dat,
        diffusivity: Scalar,
        given: Mapping[str, Scalar] | None = None,
        *,
        fluxes: Mapping[str, Scalar] | None = None,
        source: Scalar = 0.0,
        scheme: EdgeScheme | None = None,
        operators: EdgeOperators | None = None,
        bounded: bool | None = None,
    ) -> None:
        self.operators = operators_on(mesh, operators)
        self.mesh, self.context, self.dimension = mesh, mesh.context, mesh.dimension
        self.scheme = scheme if scheme is not None else EdgeScheme()
        self.places = mesh.coordinates[: mesh.points.size]
        self.sources = ScalarSources(mesh, self.places, self.operators.mass.read(), source, fluxes or {})
        self._values(velocity, diffusivity)
        self._patches = dict(given or {})
        self.values = ScalarValues(mesh, self.places, self._patches)
        self._loops()
        self._asked, self.bounded = bounded, BoundedTransport(self) if bounded else None
        self._made: tuple[float, int, int] | None = None
        self.time, self.steps, self.dt = 0.0, 0, 0.0

    # --------------------------------------------------------------------------------------------- values
    def _values(self, velocity: Field | Dat, diffusivity: Scalar) -> None:
        ctx, points, d = self.context, self.mesh.points, self.dimension
        if isinstance(velocity, Dat):
            if velocity.set is not points or velocity.shape != (d,):
                raise SolverError(
                    f"velocity: {velocity.name!r} has shape {velocity.shape} on {velocity.set}; give ({d},) on {points}"
                )
            self.u = velocity
        else:
            self.u = ctx.dat(points, vectors("velocity", velocity, self.places), "u")
        kappa = given_values("diffusivity", diffusivity, self.places)
        if (kappa < 0.0).any():
            raise SolverError(f"diffusivity: numbers of at least 0 are wanted, the least one is {kappa.min():g}")
        speed = np.zeros(points.size) if isinstance(velocity, Dat) else np.linalg.norm(self.u.read(), axis=1)
        self.scheme.check_bounded(kappa, speed, "diffusivity")
        self.kappa = ctx.dat(points, kappa, "kappa")
        self._fields: list[GivenOn] = []
        if not isinstance(velocity, Dat) and changes(velocity):
            self._fields.append(GivenOn(ctx, points, self.places, parts_of(velocity, d), "velocity", out=self.u))
        if changes(diffusivity):
            parts = parts_of(diffusivity)
            self._fields.append(GivenOn(ctx, points, self.places, parts, "diffusivity", out=self.kappa, least=[BELOW]))
        self.size = ctx.dat(points, self.operators.mass.read() ** (1.0 / d), "size")
        self.c, self.xi, self.sums, self.tau, self.strong, self._one, self._other = (
            ctx.dat(points, name=name) for name in ("c", "xi", "sums", "tau", "strong", "c_stage", "c_other")
        )
        entries = self.operators.neighbours.entries
        self.flux = ctx.dat(entries, name="flux")
        self.rest = ctx.dat(entries, name="rest", shape=(2,), layout=self.operators.entries.layout)
        self.step_length = ctx.scalar(0.0, "dt")

    @property
    def source(self) -> Dat:
        """What comes in a second, with what patches give."""
        return self.sources.dat

    @property
    def given(self) -> Dat:
        """The scalar at patches where it is given."""
        return self.values.dat

    @property
    def held(self) -> Subset | None:
        """The points at which it is given; None: there are none."""
        return self.values.held

    @property
    def moves(self) -> bool:
        """Whether velocity or diffusivity change in time."""
        return bool(self._fields)

    # ---------------------------------------------------------------------------------------------- loops
    def both(self, *dats: Dat) -> Iterator[Any]:
        """Yield of each dat the values of the neighbours and that of the point."""
        for dat in dats:
            yield dat[self.operators.neighbours]
            yield dat

    def _loops(self) -> None:
        ops, scheme, points = self.operators, self.scheme, self.mesh.points
        rows, mass, d = ops.neighbours.to_entries, ops.mass, self.dimension
        skew = scheme.convection.skew
        times: dict[str, Any] = dict(scheme.times)
        self.prepare = Chain([
            Loop(relaxation, points, self.u, self.kappa, self.size, self.step_length, self.tau, d=d, factor=1.0,
                 name="relaxation", **times),
            Loop(kernels.prepare, points, ops.entries[rows], *self.both(self.u, self.kappa, self.tau),
                 self.flux[rows], self.rest[rows], self.strong, d=d, skew=skew, name="edges.prepare"),
        ], name="prepare")  # fmt: skip
        loops: list[Loop] = []
        source = self.c
        for number, (place, ahead, weight) in enumerate(STAGES):
            target = (self._one, self._other)[number % 2]
            loops += self.sources.loops((BEGIN, MIDDLE, MIDDLE, END)[number])
            loops.append(Loop(
                kernels.projection, points, self.flux[rows], *self.both(source), mass, self.xi, skew=skew,
                name="edges.projection",
            ))  # fmt: skip
            loops.append(Loop(
                kernels.transport_stage, points, self.rest[rows], self.strong, *self.both(source, self.xi), mass,
                self.source, self.c, self.step_length, self.sums, target, place=place, ahead=ahead, weight=weight,
                name="edges.transport_stage",
            ))  # fmt: skip
            loops += self.values.hold(target, (MIDDLE, MIDDLE, END, END)[number])
            source = target
        loops.append(Loop(kernels.hold, points, self._other, self.c, name="keep"))
        self.advance = Chain(loops, name="transport")
        self._surveys(times)

    def _surveys(self, times: Mapping[str, Any]) -> None:
        ctx, ops, points = self.context, self.operators, self.mesh.points
        self.rate = ctx.scalar(0.0, "rate")
        limit = Loop(
            time_limit, points, ops.entries[ops.neighbours.to_entries], *self.both(self.u, self.kappa, self.size),
            ops.mass, self.rate, d=self.dimension, share=0.5, reach=REACH, transposed=0,
            name="edges.time_limit", **times,
        )  # fmt: skip
        self.limit = Chain([Reset(self.rate), limit], name="limit")
        self.sums_of = ScalarSums(ctx, self.c, ops.mass)

    # ------------------------------------------------------------------------------------------ what it does
    def initialise(self, scalar: Scalar) -> None:
        """Set the scalar, with what is given at patches; the time is 0.

        Raises
        ------
        SolverError
            If there is not one finite value for each point.
        """
        self._begin(given_values("scalar", scalar, self.places), 0.0)
        if self._asked is None:
            if not starts_with_a_jump(self, scalar, self._patches):
                self.bounded = None
            elif self.bounded is None:
                self.bounded = BoundedTransport(self)
            self._made = None
        self.time, self.steps, self.dt = 0.0, 0, 0.0

    def _begin(self, scalar: Array, time: float) -> None:
        """Set the scalar, and what is given at a time. Collective."""
        self.c.write(scalar)
        self.values.update(time)
        for field in self._fields:
            field.update(time)
        if self.held is not None:
            Loop(kernels.hold, self.held, self.given, self.c, name="hold")()

    def take(self, scalar: Array, time: float = 0.0) -> None:
        """Set the scalar to values of the points of this rank, ``(n,)``, of another run, with what is given at a time.

        Nothing says whether it jumped at its start: where it is left open whether it is bounded, it is.

        Raises
        ------
        SolverError
            If there is not one finite value for each point.
        """
        self._begin(given_values("scalar", lambda _places: scalar, self.places), time)
        if self._asked is None and self.bounded is None:
            self.bounded, self._made = BoundedTransport(self), None
        self.time, self.steps, self.dt = time, 0, 0.0

    def step(self, dt: float) -> None:
        """Advance by ``dt``.

        Raises
        ------
        SolverError
            If ``dt`` is not positive, or too long for a bounded scalar.
        """
        check_step(dt)
        self.values.prepare(self.time, dt)
        self.sources.prepare(self.time, dt)
        for field in self._fields:
            field.update(self.time + 0.5 * dt)
            field.check()
        if self._made != (dt, self.u.version, self.kappa.version):
            self.step_length.value = dt
            self._prepared.prepare()
            if self.bounded is not None:
                self.bounded.check(dt)
            self._made = (dt, self.u.version, self.kappa.version)
        self._prepared.advance()
        self.values.check()
        self.sources.check()
        self.time, self.steps, self.dt = self.time + dt, self.steps + 1, float(dt)

    def stable_step(self, courant: float = 0.8) -> float:
        """Return a stable step, s, ``courant reach / rate``: the reach of the method over a bound of the eigenvalues.

        Of a bounded scalar ``courant``, at most 1, of the longest step without a new extremum. Infinite at rest without
        diffusion.

        Raises
        ------
        SolverError
            If ``courant`` is not positive.
        """
        if self.bounded is None:
            self.limit()
            return stable_step(float(self.rate.value), courant)
        self.bounded.prepare()
        self._made = None
        return stable_step(REACH / self.bounded.longest(), min(1.0, courant))

    def state(self) -> TransportState:
        """Return sums and range.

        Raises
        ------
        SolverError
            If they are not finite.
        """
        return self.sums_of.now(self.time, self.steps, "; take dt smaller")

    def scalar(self) -> Array:
        """Return the values of the points that this rank owns, ``(n,)``."""
        return self.c.read()

    @property
    def chains(self) -> Sequence[Chain]:
        """What steps run, for reports and tuning."""
        return (self._prepared.prepare, self._prepared.advance)

    @property
    def _prepared(self) -> EdgeTransport | BoundedTransport:
        """What has the loops of steps."""
        return self if self.bounded is None else self.bounded
