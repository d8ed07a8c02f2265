r"""Conduction of heat, and Poisson's equation, in linear elements with implicit steps.

.. math:: c \, \partial_t u = \nabla \cdot (k \nabla u) + f

The scalar lives at the points of triangles or tetrahedra. The conductivity is a number of each cell, so that layers of
materials are exact where they meet at faces; the mass is lumped, and patches give and take at their points. A step has
the two stages of the L-stable method of second order whose diagonal is ``1 - 1 / sqrt(2)``: both solve the same
symmetric system by conjugate gradients, and steps of any length are stable. A steady state is one such stage without
the term in time. Fluxes through patches are what the discrete equations say, so that they balance to rounding.

Sources: R. Alexander, "Diagonally implicit Runge-Kutta methods for stiff O.D.E.'s", SIAM Journal on Numerical Analysis
14 (1977) 1006-1021, theorem 5; T. J. R. Hughes, M. Mallet et al., "The continuous Galerkin method is locally
conservative", Journal of Computational Physics 163 (2000) 467-488, for the fluxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan, sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import Divergence, SolverError
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe import heat_kernels as kernels
from fluxloom.fe.edges.point_mesh import PointMesh
from fluxloom.fe.edges.transport import add
from fluxloom.fe.global_kernels import clear_entry
from fluxloom.fe.global_matrix import GlobalMatrix
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.fv.given import Given, changes, given_values, parts_of
from fluxloom.fv.incompressible.scalar_boundary import FixedFlux
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.operators import Preconditioner
from fluxloom.linalg.precond.jacobi import Diagonal, Jacobi
from fluxloom.linalg.status import STEPS_CHECKED, Status, Stop
from fluxloom.linalg.vectors import copy
from fluxloom.solvers.edges.transport import ScalarSums, TransportState
from fluxloom.solvers.edges.transport_given import MIDDLE, ScalarValues, check_names
from fluxloom.solvers.incompressible.types import check_step
from fluxloom.values.given_on import GivenOn

__all__ = ["Convective", "Diffusion", "DiffusionPatch"]

Array = npt.NDArray[np.float64]

_GAMMA = 1.0 - 1.0 / sqrt(2.0)
"""Of a step, the part after which its first stage is, and that of either stage that is implicit."""


@dataclass(frozen=True)
class Convective:
    """What is outside takes heat from a patch, ``-k du/dn = coefficient (u - outside)``.

    Attributes
    ----------
    coefficient
        Of heat transfer, ``k`` over a length, at least 0: a number, a value in space and time, or a function of places.
    outside
        The scalar there.

    Raises
    ------
    SolverError
        If the coefficient is a number below 0.
    """

    coefficient: Given
    outside: Given = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.coefficient, int | float) and not 0.0 <= self.coefficient < inf:
            raise SolverError(f"Convective: coefficient: a number of at least 0 is wanted, not {self.coefficient!r}")


DiffusionPatch: TypeAlias = Given | FixedFlux | Convective | None
"""The scalar of a patch, what diffuses in, what the outside takes, or None: nothing passes."""


class Diffusion:
    """Diffusion of a scalar on a mesh of triangles or tetrahedra, in time or to a steady state.

    Parameters
    ----------
    mesh
        From `fluxloom.fe.edges.point_mesh.point_mesh`. On several ranks everything is collective.
    conductivity, capacity
        ``k`` and ``c`` of the cells, above 0: a number, a value in space and time (`fluxloom.fv.given.Given`), or a
        function of the centroids ``(n, d)`` of cells.
    source
        ``f`` of the cells, of ``c u`` a second.
    boundaries
        Patch to a `DiffusionPatch`; a patch without one is insulated. Where patches that give the scalar meet, the
        later one counts.
    stop, preconditioner
        Of conjugate gradients, which find the correction of what is known before; by default ``rtol = 1e-8`` and
        `Jacobi`. Others than `Jacobi` are built anew when the matrix has changed.

    Attributes
    ----------
    c : (n,)
        The scalar at the points.
    volume, mass
        What belongs to each point: of the volume, and times ``c``.
    time, steps, dt
        Since the start; steps made; length of the last one, 1 of a steady state.

    Raises
    ------
    SolverError
        If a value does not fit its places, or ``boundaries`` names no patch.
    """

    remembers = ("time", "steps", "dt")
    forgets = ("krylov", "matrix", "stiffness", "load", "lacks", "right", "rise", "inverse", "whole", "mass")

    def __init__(
        self,
        mesh: PointMesh,
        conductivity: Given,
        boundaries: Mapping[str, DiffusionPatch],
        *,
        capacity: Given = 1.0,
        source: Given = 0.0,
        stop: Stop | None = None,
        preconditioner: Preconditioner | None = None,
    ) -> None:
        check_names("boundaries", mesh.patches, boundaries)
        self.mesh, self.context, self.dimension = mesh, mesh.context, mesh.dimension
        self.places, self.conductivity = mesh.coordinates[: mesh.points.size], conductivity
        self.stop, self.recipe = stop or Stop(rtol=1e-8), preconditioner or Jacobi()
        self._dats()
        self._cells(conductivity, capacity, source)
        given = {
            name: one for name, one in boundaries.items()
            if one is not None and not isinstance(one, FixedFlux | Convective)
        }  # fmt: skip
        self.values = ScalarValues(mesh, self.places, given)
        self.free = self.context.dat(mesh.points, np.where(self.values.owner < 0, 1.0, 0.0), "free")
        self._patches(boundaries)
        self._chains()
        self.time, self.steps, self.dt = 0.0, 0, 0.0
        self._made: tuple[float, ...] = ()
        self._check_next = False

    # --------------------------------------------------------------------------------------------- set-up
    def _dats(self) -> None:
        ctx, points = self.context, self.mesh.points
        self.c, self.start, self.before, self.rate, self.load, self.lacks, self.right, self.rise, self.inverse = (
            ctx.dat(points, name=name)
            for name in ("c", "c_start", "c_before", "rate", "load", "lacks", "right", "rise", "inverse")
        )
        self.volume, self.mass, self.whole = (ctx.dat(points, name=name) for name in ("volume", "mass", "exchange"))
        self.weights, self.factor = ctx.scalar(np.ones(2), "weights"), ctx.scalar(1.0, "factor")

    def _cells(self, conductivity: Given, capacity: Given, source: Given) -> None:
        """Make what cells have, and the matrices of it. Collective."""
        ctx, cells = self.context, self.mesh.mesh.cells
        centres = self.mesh.mesh.centroids.read()

        def on_cells(name: str, given: Given, least: float, out: Dat | None = None) -> GivenOn:
            """Return what gives a value in the cells, at least ``least``; `SolverError` names it."""
            return GivenOn(ctx, cells, centres, parts_of(given), name, out=out, least=[least])

        k = on_cells("conductivity", conductivity, 0.0, ctx.dat(cells, name="conductivity"))
        c, f = on_cells("capacity", capacity, 0.0), on_cells("source", source, -inf)
        form = GlobalMatrix(LagrangeSpace.at_points(self.mesh.mesh), k.dat, name="stiffness")
        self.stiffness = form.matrix
        for loop in form.load(ctx.dat(cells, np.ones((cells.size, 1)), "ones"), self.volume):
            loop()
        self._given, self._changing = [k, c, f], changes(conductivity) or changes(capacity)
        self._loads = [*f.loops(), *form.load(f.dat, self.load)]
        self._masses = [*k.loops(), *c.loops(), *form.assembly.loops, *form.load(c.dat, self.mass)]

    def _patches(self, boundaries: Mapping[str, DiffusionPatch]) -> None:
        """Make the loops to what patches give, and what they take of the scalar. Collective."""
        ctx, points = self.context, self.mesh.points
        self._sides: dict[str, tuple[Dat, Dat | None]] = {}
        self._loads.append(Loop(clear_entry, points, self.whole, name="clear"))
        for name, one in boundaries.items():
            if not isinstance(one, FixedFlux | Convective):
                continue
            patch, share = self.mesh.patches[name], np.zeros((points.size, 1))
            share[patch.points, 0] = patch.extents
            over = ctx.subset(points, patch.points, f"sides.{name}")
            what = one.flux if isinstance(one, FixedFlux) else one.coefficient
            least = [-inf if isinstance(one, FixedFlux) else np.nextafter(0.0, -1.0)]
            given = [GivenOn(ctx, over, self.places, parts_of(what), f"patch {name!r}", weights=share, least=least)]
            if isinstance(one, FixedFlux):
                loop, outside = Loop(add, over, given[0].dat, self.load, name=f"flux.{name}"), None
            else:
                given.append(GivenOn(ctx, over, self.places, parts_of(one.outside), f"patch {name!r}: outside"))
                outside = given[1].dat
                loop = Loop(kernels.exchange, over, given[0].dat, outside, self.whole, self.load, name=f"side.{name}")
                self._changing |= changes(what)
            self._sides[name] = given[0].dat, outside
            self._given += given
            self._loads += [*(loop for values in given for loop in values.loops()), loop]

    def _chains(self) -> None:
        ctx, points = self.context, self.mesh.points
        pattern, rows = self.stiffness.pattern, self.stiffness.pattern.to_entries
        self.matrix = SparseMatrix(pattern, ctx.dat(pattern.entries, name="matrix"))
        offsets, columns, _ = self.stiffness.owned()
        own = columns == np.repeat(np.arange(points.size), np.diff(offsets))
        diagonal, stiffness = ctx.dat(pattern.entries, own.astype(np.float64), "diagonal"), self.stiffness.values
        filled = Loop(
            kernels.system, points, stiffness[rows], diagonal[rows], self.free[pattern], self.free, self.mass,
            self.whole, self.weights, self.matrix.values[rows], self.inverse, name="system",
        )  # fmt: skip

        def lacking(name: str, *targets: Dat | None) -> Loop:
            """Return the loop that finds ``r = b - h c - K c`` of the points, and ``tau r``, 0 of others."""
            return Loop(kernels.defect, points, stiffness[rows], self.c[pattern], self.c, self.whole, self.load,
                        self.free, self.weights, *targets, name=name)  # fmt: skip

        self._loading, self._massing = Chain(self._loads, name="load"), Chain(self._masses, name="mass")
        self._filling, self._measure = Chain([filled], name="system"), Chain([lacking("lacks", self.lacks, None, None)])
        self._keep = Chain([Loop(copy, points, self.c, self.start, systems=1)], name="keep")
        self._begin = Chain([
            Loop(copy, points, self.c, self.before, systems=1), *self.values.hold(self.c, MIDDLE),
            lacking("defect", None, self.right, self.rise),
        ], name="defect")  # fmt: skip
        self._end = Chain([
            Loop(kernels.correct, points, self.rise, self.c),
            Loop(kernels.rates, points, self.c, self.before, self.mass, self.weights, self.rate),
        ], name="correction")  # fmt: skip
        self._ahead = Chain([Loop(kernels.extrapolate, points, self.start, self.factor, self.c)], name="extrapolation")
        self.sums_of = ScalarSums(ctx, self.c, self.mass)
        for chain in (self._loading, self._massing, self._filling):
            chain()
        self.krylov = self._solver()

    def _solver(self) -> ConjugateGradient:
        """Return what solves the system, with a preconditioner for the matrix as it is. Collective."""
        recipe = Diagonal(self.inverse) if isinstance(self.recipe, Jacobi) else self.recipe
        return ConjugateGradient(self.matrix, self.right, self.rise, preconditioner=recipe, stop=self.stop,
                                 check_every=STEPS_CHECKED, name="diffusion")  # fmt: skip

    # ------------------------------------------------------------------------------------------ what it does
    def initialise(self, scalar: Given, time: float = 0.0) -> None:
        """Set the scalar to a value or a function of the points, with what is given at patches at a time.

        Raises
        ------
        SolverError
            If there is not one finite value for each point.
        """
        self.c.write(given_values("start", scalar, self.places))
        self.time, self.steps, self.dt, self._made = time, 0, 0.0, ()
        self._given_at(time)
        self._massing()
        self._begin()

    def _given_at(self, time: float) -> None:
        """Make all that is given, but for conductivity and capacity, that of a time. Collective."""
        self.values.prepare(time, 0.0)
        for given in self._given:
            given.prepare([time])
        self._loading()

    def step(self, dt: float) -> Status:
        """Advance by ``dt``, or find the steady state of the time where it is infinite; return the worse solve.

        Raises
        ------
        SolverError
            If ``dt`` is not positive, nothing says the level of a steady state, or a value is not finite.
        """
        if dt == inf:
            self.check_settled()
            status = self._stage(0.0, 1.0, self.time)
            self.steps, self.dt = self.steps + 1, 1.0
            return status
        check_step(dt)
        self._keep()
        first = self._stage(1.0, _GAMMA * dt, self.time + _GAMMA * dt)
        self.factor.value = (1.0 - _GAMMA) / _GAMMA
        self._ahead()
        second = self._stage(1.0, _GAMMA * dt, self.time + dt)
        self.time, self.steps, self.dt = self.time + dt, self.steps + 1, float(dt)
        both = replace(second, iterations=first.iterations + second.iterations)
        return both if first.converged else first

    def check_settled(self) -> None:
        """Raise `SolverError` if nothing says the level of a steady state now. Collective."""
        most = np.array([float(bool(self.values.names)), self.whole.read().max(initial=0.0)])
        if not self.context.comm.reduce(most, "max").any():
            raise SolverError(
                "boundaries: nothing says the level of a steady state: give the scalar at a patch, or a convective "
                "one whose coefficient is not 0; or give dt, and the amount at the start says it"
            )

    def _stage(self, mass: float, tau: float, time: float) -> Status:
        """Solve for what the scalar has at a time, from ``w``, which it has now. Collective."""
        self._given_at(time)
        self.weights.value = np.array([mass, tau])
        if self._made != (made := (mass, tau, time if self._changing else 0.0)):
            if self._changing or not self._made:
                self._massing()
            self._filling()
            if not isinstance(self.recipe, Jacobi):
                self.krylov = self._solver()
            self._made = made
        self._begin()
        self.values.check()
        for given in self._given:
            given.check()
        self.krylov.check_next, self._check_next = self._check_next, False
        status = self.krylov.solve()
        self._end()
        if status.reason == "not finite":
            text = f"step {self.steps + 1}, time {time:.6g}: the scalar is not finite"
            raise Divergence(text, field="scalar", element="point", step=self.steps + 1, time=time)
        return status

    def check_next(self) -> None:
        """Let the solves of the next step end with the residual of the solution itself."""
        self._check_next = True

    def verify(self) -> Status:
        """Return what the last correction is by the residual of itself. Collective."""
        return self.krylov.verify()

    def state(self) -> TransportState:
        """Return sums, ``sum M c u`` the amount, and range.

        Raises
        ------
        SolverError
            If they are not finite.
        """
        self._now()
        return self.sums_of.now(self.time, self.steps)

    def _now(self) -> None:
        """Make all that is given that of now; a restart has it at the start. Collective."""
        self._given_at(self.time)
        if self._changing or not self._made:
            self._massing()
            self._made = ()

    def entering(self, patch: str) -> Array:
        r"""Return what enters through a patch now at each of its points of this rank, ``(k,)``. Collective.

        At points where the patch gives the scalar, what the discrete equations lack, :math:`M \dot u - r`; before the
        first step NaN. Summed over all patches, with the sources, it is what the amount gains in a unit of time.
        """
        self._now()
        self._measure()
        points = self.mesh.patches[patch].points
        if patch in self._sides:
            given, outside = self._sides[patch]
            found = given.read()[points, 0]
            return found if outside is None else found * (outside.read()[points, 0] - self.c.read()[points])
        if patch not in self.values.names:
            return np.zeros(points.size)
        mine = self.values.owner[points] == self.values.names.index(patch)
        lacks = self.rate.read()[points] - self.lacks.read()[points]
        return np.where(mine, lacks if self.steps else nan, 0.0)

    def scalar(self) -> Array:
        """Return the values of the points that this rank owns, ``(n,)``."""
        return self.c.read()

    @property
    def chains(self) -> Sequence[Chain]:
        """What steps run, for reports and tuning."""
        return (self._loading, self._massing, self._filling, self._keep, self._begin, *self.krylov.chains, self._end,
                self._ahead)  # fmt: skip
