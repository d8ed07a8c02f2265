"""Compressible flow on unstructured meshes: finite volumes of first or second order, explicit steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.errors import Divergence, SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.ranks.task import Reset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.fv.compressible.boundary import (
    BoundaryCondition,
    NoSlipWall,
    SlipWall,
    SymmetryPlane,
    boundary_table,
    check_turning,
)
from fluxloom.fv.compressible.boundary_states import PARAMETERS
from fluxloom.fv.compressible.gas import Gas
from fluxloom.fv.compressible.kernels import advance, common_step, last_stage, least_step, local_step
from fluxloom.fv.geometry.cell_faces import CompressibleGeometry, Rotation
from fluxloom.fv.geometry.symmetry_planes import extruded_along, is_flat, reference_length
from fluxloom.fv.geometry.volumes import ControlVolumes, Family
from fluxloom.fv.guard_kernels import all_that_passed, take_back, through_boundary
from fluxloom.solvers.compressible.positivity import Positivity
from fluxloom.solvers.compressible.residual import ResidualLoops
from fluxloom.solvers.compressible.scheme import CompressibleScheme
from fluxloom.solvers.compressible.values import Field, Residuals, left, owned_numbers, require_finite, squared_sizes
from fluxloom.solvers.flow_spaces import FlowSpaces
from fluxloom.values.value import Function, Given, has_values, vector_of

__all__ = ["CompressibleFlow", "Residuals"]

Array = npt.NDArray[np.float64]

Balance = Callable[["CompressibleFlow", Dat], Sequence[Loop | Reset]]
Source = Field | Sequence[Given] | Function

FOREVER = 1.0e300
_CLOSE = 1e-9
"""Part of a step of given length that is rounding."""

_STILL = 1e-9
"""Part of the velocity of a mesh that turns, along the normal of a plane of symmetry that stands still."""


class CompressibleFlow:
    """The Euler, Navier-Stokes or averaged Navier-Stokes equations on control volumes of any shape.

    Parameters
    ----------
    context
        Where it runs.
    volumes
        From `fluxloom.fv.geometry.control_volumes.control_volumes`, on several ranks from `shared_volumes` there.
    boundaries
        Patch to what is beyond it; see `fluxloom.fv.compressible.boundary`.
    gas, scheme
        What flows, and how it is computed. A gas with a viscosity has friction.
    distance : (cells,)
        From the wall, for a model of turbulence; halo cells of several ranks included.
    source
        Of mass, momentum and energy (and of the model's variable, times density), per unit of volume and time:
        ``(nv,)``, ``(owned, nv)``, or a function of the places; or a value in space and time for each component, or a
        function of places and time.
    rotation
        The mesh turns; velocities are those where one stands still, along axes that turn with it.
    balance
        What takes the place of `right_hand_side`, as on coarse levels of multigrid.
    gradients
        Elements around each cell and the weights of gradients, from `fluxloom.fv.gradients.node_gradients`; by default
        those across its faces, by least squares.

    Attributes
    ----------
    w
        Primitive states ``(rho, u, p)`` of the elements: cells, then boundary elements; with a model of turbulence its
        variable is the last one.
    mirrors
        Boundary elements beyond which the flow is mirrored.
    axis
        Along which the mesh is a plane one, extruded (`fluxloom.fv.geometry.symmetry_planes.extruded_along`); None: it
        is not.
    length
        In which the limiter measures cells.
    time, steps
        Since the start.
    outflow
        Of the boundary elements the flux out of their faces, per unit of area, where cells have limiter values.
    cfl
        Of the next explicit step; that of the scheme, unless `set_cfl` has changed it.
    frozen
        Whether the limiter values stay as they are; see `freeze_below`.
    given
        What boundaries and sources are given that depends on the time.
    passed
        Mass and energy that left through each face of the boundary before this step, and in it; see `keep_balance`.
    limits
        In how many cells, step by step, fluxes were limited to keep density and pressure above 0.
    positivity
        What makes steps in which that is needed.

    Raises
    ------
    SolverError
        If a patch has no boundary, or what is given does not fit.
    """

    remembers = ("memory",)

    def __init__(
        self,
        context: Context,
        volumes: ControlVolumes,
        boundaries: Mapping[str, BoundaryCondition] | None = None,
        gas: Gas | None = None,
        scheme: CompressibleScheme | None = None,
        distance: Array | None = None,
        source: Source | None = None,
        rotation: Rotation | None = None,
        balance: Balance | None = None,
        gradients: Family | None = None,
    ) -> None:
        self.context, self.volumes, self.balance, self.gradients = context, volumes, balance, gradients
        self.boundaries: Mapping[str, BoundaryCondition] = dict(boundaries or {})
        self.gas, self.scheme = gas or Gas(), scheme or CompressibleScheme()
        if gradients is None and self.scheme.order == 2 and self.scheme.gradients != "faces":
            raise SolverError(
                f"gradients: {self.scheme.gradients!r} wants the rows of `fluxloom.fv.gradients.node_gradients` beside "
                "the scheme: give gradients, or make the flow by fluxloom.Compressible"
            )
        self.dimension = volumes.dimension
        self.turbulent = self.scheme.turbulence is not None
        self.components = self.dimension + 2 + self.turbulent
        self.spaces = FlowSpaces(context, volumes)
        self.elements = self.spaces.elements.set
        outer = self.spaces.elements.local(volumes.outer)
        self.boundary = context.subset(self.elements, outer, "boundary")
        self.open = any(context.comm.allgather(self.boundary.size > 0))
        self.time, self.steps, self.cfl, self.rotation = 0.0, 0, self.scheme.cfl, rotation
        self.length = self._length()
        found = self._geometry(boundaries or {})
        self._balance = ResidualLoops(self, found) if balance is None else None
        del found  # what is stored now takes as much again: it goes before the states come
        self._distance(distance)
        self._states()
        self._with_source(source)
        self.frozen, self._begun = False, False
        self.passed: Dat | None = None
        self.limits = 0
        self.positivity = Positivity(self)
        self._found: dict[bool, tuple[list[Loop], list[Sequence[Loop | Reset]]]] = {}
        self._stages = {False: self._loops(limited=True)}
        self.iteration, self.before, self.after = self._stages[False]

    @property
    def memory(self) -> dict[str, Any]:
        """What the host keeps from step to step; with `w`, the limiter values and the globals it is the state."""
        return {"time": self.time, "steps": self.steps, "cfl": self.cfl, "frozen": self.frozen, "limits": self.limits}

    @memory.setter
    def memory(self, memory: Mapping[str, Any]) -> None:
        """Take back what a checkpoint has kept."""
        self.time, self.steps = float(memory["time"]), int(memory["steps"])
        self.set_cfl(float(memory["cfl"]))
        self.freeze(bool(memory["frozen"]))
        self.limits, self._begun = int(memory["limits"]), True
        self.given.prepare(self.time)

    # --------------------------------------------------------------------------------------- building
    def _geometry(self, boundaries: Mapping[str, BoundaryCondition]) -> CompressibleGeometry:
        from fluxloom.solvers.compressible.given import GivenValues

        cv, elements, faces = self.volumes, self.spaces.elements, self.spaces.faces
        kinds, par = np.zeros(cv.elements, dtype=np.int32), np.zeros((cv.elements, PARAMETERS))
        table = raise_on_all_ranks(self.context.comm, lambda: boundary_table(cv, boundaries, self.gas))
        kinds[cv.cells :], par[cv.cells :], self.formulas = table.kinds, table.rows, table.states
        self.mirrors = self._mirrors()
        par[self.mirrors, 0] = 1.0
        self.axis = extruded_along(cv, self.mirrors, self.context.comm) if self.balance is None else None
        found = CompressibleGeometry.of(cv, self.rotation, self.mirrors, self.axis)
        self.face = faces.dat(found.faces, "face", self.context.component_layout)
        layout = self.context.row_layout()
        signs = found.signs._replace(values=found.signs.values.astype(np.float32))
        near = elements.rows(signs, elements, "near", layout)
        self.near, self.sign = near.pattern, near.entries
        self.sides = elements.rows(found.sides, faces, "sides", layout).pattern
        self.volume = elements.dat(found.volume, "volume")
        self.swept = None if found.swept is None else elements.dat(found.swept, "swept")
        if (turns := self.rotation) is not None:
            turning = turns.velocity(cv.centres[cv.cells :])
            raise_on_all_ranks(self.context.comm, lambda: check_turning(cv, boundaries, par[cv.cells :], turning))
        self.kind, self.par = elements.dat(kinds, "kind"), elements.dat(par, "par")
        self.given = GivenValues(self, table.changing)
        behind, edge = np.arange(cv.elements), np.zeros(cv.elements, dtype=np.int64)
        behind[cv.cells :], edge[cv.cells :] = cv.faces[cv.interior :, 0], np.arange(cv.interior, len(cv.faces))
        owned, over = elements.owned, self.elements
        self.behind = self.context.map(over, over, elements.local(behind[owned]), "behind", stays=True)
        self.edge = self.context.map(self.elements, faces.set, faces.local(edge[owned])[:, None], "edge")
        return found

    def _mirrors(self) -> npt.NDArray[np.int64]:
        """Return the boundary elements beyond which the flow is mirrored."""
        cv, found = self.volumes, [np.empty(0, dtype=np.int64)]
        if self.balance is not None or self.gradients is not None:
            return found[0]
        for name, span in cv.patches.items():
            if isinstance(self.boundaries.get(name), SymmetryPlane):
                elements = np.arange(span.start, span.stop)
                if self.rotation is not None:
                    velocity = self.rotation.velocity(cv.centres[elements])
                    pace = np.abs(np.einsum("ij,ij->i", velocity, cv.normals[elements - cv.cells + cv.interior]))
                    elements = elements[pace <= _STILL * np.linalg.norm(velocity, axis=1)]
                found.append(elements)
        return np.concatenate(found)

    def _length(self) -> float:
        """Return the length in which the limiter measures cells: flat walls without friction count if all are so."""
        limiter = self.scheme.limiter
        if limiter is None or not (self.limiting and limiter.has_threshold):
            return 1.0
        cv, context, given = self.volumes, self.context, self.boundaries.items()
        planes = [name for name, kind in given if isinstance(kind, SymmetryPlane)]
        sliding = [name for name, kind in given if isinstance(kind, SlipWall)]
        bodies = [name for name, kind in given if isinstance(kind, NoSlipWall)]
        bodies += [name for name in sliding if not is_flat(cv, name, context.comm)]
        return reference_length(cv, bodies or sliding, planes, context)

    def _distance(self, distance: Array | None) -> None:
        if not self.turbulent:
            return
        if self.gas.viscosity is None:
            raise SolverError("turbulence: the gas has no viscosity; give it one")
        cv, shape = self.volumes, () if distance is None else np.shape(distance)
        if shape != (cv.cells,) or not (np.asarray(distance) > 0.0).all():
            raise SolverError(
                f"turbulence: distances from the wall above 0 are wanted, ({cv.cells},), not"
                f" {'none' if distance is None else shape} (fluxloom.mesh.ranks.wall_distance)"
            )
        padded = np.ones(cv.elements)
        padded[: cv.cells] = distance
        self.distance = self.spaces.elements.dat(padded, "distance")

    def _states(self) -> None:
        nv, d, cv = self.components, self.dimension, self.volumes
        ctx, many = self.context, self.context.component_layout
        start = np.zeros((cv.elements, nv))
        start[:, 0] = start[:, -1] = 1.0
        self.w = self.spaces.elements.dat(start, "w", many)
        stages = len(self.scheme.time.stages)
        self.between = [self.spaces.elements.dat(start, f"w{k}", many) for k in (1, 2)]
        self.kept = self.between[stages % 2 == 0]  # the last stage does not read it
        self.gradient = ctx.dat(self.elements, name="slope", shape=(nv * d,), dtype=self.scheme.storage, layout=many)
        kept = np.full((cv.elements, nv), self.scheme.order - 1.0)
        self.limiter_values = self.spaces.elements.dat(kept, "limiter values", many)
        self.outflow = self.limiter_values
        self.res = ctx.dat(self.elements, name="residual", shape=(nv,), layout=many)
        self.speed, self.step = ctx.dat(self.elements, name="speed"), ctx.dat(self.elements, name="step")
        self._own = Loop(local_step, self.elements, self.speed, self.volume, self.step, cfl=self.cfl)
        self.scale = ctx.scalar(np.ones(nv), "scale")
        self.least, self.dt = ctx.scalar(FOREVER, "least"), ctx.scalar(0.0, "dt")
        self.norm = ctx.scalar(np.zeros(nv), "norm")
        self.clipped, self.clipped_cells = ctx.scalar(0.0, "clipped_faces"), ctx.scalar(0.0, "clipped_cells")

    def right_hand_side(self, w: Dat, limited: bool = True) -> Sequence[Loop | Reset]:
        """Return the loops that find `res` and `speed` of some states; they set those of the boundary elements.

        Not ``limited``, they take the limiter values that are there.
        """
        if self.balance is not None:
            return self.balance(self, w)
        assert self._balance is not None
        return self._balance.loops(w, limited)

    def _each(self, limited: bool) -> tuple[list[Loop], list[Sequence[Loop | Reset]]]:
        """Return what advances the states in each stage, and what finds their residual before."""
        if limited not in self._found:
            stages = self.scheme.time.stages
            states = [self.w, *(self.between[k % 2] for k in range(len(stages) - 1)), self.w]
            common: dict[str, Any] = {"gamma": self.gas.gamma, "nv": self.components, "d": self.dimension}
            ahead = [
                Loop(advance, self.elements, self.w, states[k], self.res, self.step, states[k + 1], self.norm,
                     self.clipped_cells,
                     None, a=a, b=b, c=c, **common) if k < len(stages) - 1 else
                Loop(last_stage, self.elements, states[k], self.res, self.step, self.w, self.kept, self.norm,
                     self.clipped_cells,
                     None, a=a, b=b, c=c, **common)
                for k, (a, b, c) in enumerate(stages)
            ]  # fmt: skip
            find: list[Sequence[Loop | Reset]] = [
                [*self.given.loops(k), *self.right_hand_side(states[k], limited)] for k in range(len(stages))
            ]
            self._found[limited] = ahead, find
        return self._found[limited]

    def _loops(self, limited: bool) -> tuple[Chain, Chain, Chain]:
        """Return a step of each cell's own, and what comes before and after the length of a common one is known."""
        stages, (ahead, find) = self.scheme.time.stages, self._each(limited)

        def rest(leave: Sequence[Sequence[Loop]]) -> list[Loop | Reset]:
            """Return what follows the first stage."""
            parts = [[*find[k], Reset(self.norm), ahead[k], *leave[k]] for k in range(1, len(stages))]
            return [*leave[0], *chain.from_iterable(parts)]

        least = Loop(least_step, self.elements, self.volume, self.speed, self.least)
        same = Loop(common_step, self.elements, self.volume, self.dt, self.step)
        bare = rest([()] * len(stages))
        iteration = Chain([*find[0], self._own, Reset(self.norm), ahead[0], *bare], name="iteration")
        before = Chain([Reset(self.least, FOREVER), Reset(self.clipped_cells), *find[0], least], name="residual")
        whole = rest(left(stages, self.leaving()))
        return iteration, before, Chain([same, Reset(self.norm), ahead[0], *whole], name="step")

    def leaving(self) -> Callable[[float, bool], Loop] | None:
        """Return what makes the loop that adds what leaves in a stage to `passed`; None where that is not wanted."""
        passed, face = self.passed, self.face[self.edge[0]]
        if passed is None or not self.open:
            return None
        return lambda weight, first: Loop(through_boundary, self.boundary, self.outflow, face, self.dt, passed,
                                          weight=weight, first=int(first), d=self.dimension)  # fmt: skip

    def keep_balance(self) -> None:
        """Sum up in `passed` what leaves through the boundary from now on, in steps that are one for all cells."""
        passed = self.passed = self.context.dat(self.elements, name="passed", shape=(4,))
        self.positivity.back = Chain([Loop(take_back, self.boundary, passed)], name="take back")
        self._stages = {}
        self.positivity.forget()
        self.freeze(self.frozen)

    # --------------------------------------------------------------------------------------- running
    def start(self, values: Field) -> None:
        """Set the states of the cells: ``(d + 2,)``, ``(cells, d + 2)``, or a function of the places.

        Raises
        ------
        SolverError
            If a number is missing or not finite, or density or pressure are not positive.
        """
        found, place = owned_numbers("start", values, self.volumes, self.components), self.spaces.elements.owned
        if (found[:, [0, 1 + self.dimension]] <= 0.0).any():
            raise SolverError("start: density and pressure have to be positive")
        cv = self.volumes
        whole = np.ones((cv.elements, self.components))
        whole[: cv.owned] = found
        whole[cv.cells :] = whole[cv.faces[cv.interior :, 0]]
        self.w.write(whole[place])
        self.scale.value = squared_sizes(found, self.volumes, self.gas, self.length, self.context)
        self.time, self.steps, self._begun = 0.0, 0, True
        self.given.prepare(0.0)
        self.freeze(False)

    @property
    def balanced(self) -> ResidualLoops:
        """What finds its residuals.

        Raises
        ------
        SolverError
            If something takes its place, as on coarse levels.
        """
        if self._balance is None:
            raise SolverError("this flow has fluxes of its own, which nothing limits: make shorter steps")
        return self._balance

    @property
    def last(self) -> Dat:
        """The states that the last stage of an explicit step begins with."""
        return self.between[1] if self.kept is self.between[0] else self.between[0]

    @property
    def limiting(self) -> bool:
        """Whether the scheme has a limiter."""
        return self.balance is None and self.scheme.order == 2 and self.scheme.limiter is not None

    def freeze(self, frozen: bool = True) -> None:
        """Keep the limiter values as they are now, or find them from the states again.

        A limiter takes least and largest values around a cell, whose kinks keep residuals from falling; with shares
        that stay they fall as far as numbers go. What converges is then the scheme with these shares: where they come
        from states near the steady one, the difference is that between the two. Without a limiter nothing changes.
        """
        self.frozen = frozen and self.limiting
        if self.frozen not in self._stages:
            self._stages[self.frozen] = self._loops(limited=not self.frozen)
        self.iteration, self.before, self.after = self._stages[self.frozen]

    def renewal(self, w: Dat, weight: float) -> list[Loop]:
        """Return loops that move the limiter values a part of the way to those of some states.

        Their residual has to have been found just before: the states of their boundary elements are there then.

        Raises
        ------
        SolverError
            If the scheme has no limiter.
        """
        if self._balance is None or not self.limiting:
            raise SolverError("limiter values: the scheme has no limiter (or order 1), so there is nothing to renew")
        return self._balance.renewal(w, weight)

    def _with_edges(self, what: str, values: Field, edge: float, name: str) -> Dat:
        """Return given numbers of the cells as a dat, with the same number on all boundary elements."""
        whole = np.full((self.volumes.elements, self.components), edge)
        whole[: self.volumes.owned] = owned_numbers(what, values, self.volumes, self.components)
        return self.spaces.elements.dat(whole, name)

    def _with_source(self, source: Source | None) -> None:
        """Take what is gained per unit of volume and time."""
        what, cv, nv = "source", self.volumes, self.components
        self.source: Dat | None = None
        if source is None:
            return
        if not has_values(source):
            self.source = self._with_edges(what, cast(Field, source), 0.0, what)
            return
        self.source = self.spaces.elements.dat(np.zeros((cv.elements, nv)), what)
        self.given.over_cells(what, vector_of(source, nv, what), self.source)

    def set_cfl(self, cfl: float) -> None:
        """Take a CFL number for the explicit steps from here on, instead of the scheme's."""
        self.cfl = cfl
        self._own.set(cfl=cfl)

    def _require_start(self) -> None:
        """Raise `SolverError` before `start`: the states are those of no flow, and so is what limiters compare with."""
        if not self._begun:
            raise SolverError("the flow has no states yet: call start(values) before its first step")

    def iterate(self, count: int = 1) -> None:
        """Make steps towards a steady flow, each cell with a step of its own.

        Raises
        ------
        SolverError
            Before `start`; if something that is given depends on the time.
        """
        self._require_start()
        self.given.require_steady()
        for _ in range(count):
            (self.positivity.iterate if self.positivity.guarding else self.iteration)()
        self.steps += count

    def _too_long(self, dt: float) -> str:
        """Return what to say of a step that is longer than the states of `before` allow; nothing of another one."""
        limit = self.cfl * float(self.least.value)
        if dt <= limit * (1.0 + _CLOSE):
            return ""
        return (
            f"steps of {dt:g} are longer than cfl = {self.cfl:g} allows, {limit:.3g}: lower dt, or leave it out for "
            "steps that are chosen"
        )

    def check_step(self, dt: float) -> None:
        """Raise `SolverError` if a step is longer than the states of now allow. Collective."""
        self._require_start()
        self.given.prepare(self.time)
        self.before()
        if text := self._too_long(dt):
            raise SolverError(f"dt: {text}")

    def advance(self, longest: float = FOREVER, *, given: bool = False) -> float:
        """Make one step, equal for all cells, of at most a length; return its length.

        Where it is ``given``, the step has this length, but for one that is made anew.

        A step that would leave a cell without density or pressure is made anew (`Positivity`): nothing is lost.

        Raises
        ------
        SolverError
            If there is none: a state is not finite; if a given one is longer than the CFL number allows; before `start`
        """
        self._require_start()
        self.given.prepare(self.time)
        self.before()
        dt = min(self.cfl * float(self.least.value), longest)
        if not (isfinite(dt) and dt > 0.0):
            self.given.check()
            self.check()
            text = f"time {self.time:g}: the step fell to {dt!r}: lower cfl (now {self.cfl:g})"
            raise Divergence(text, step=self.steps, time=self.time)
        if given and (text := self._too_long(longest)):
            raise Divergence(f"time {self.time:g}: {text}", step=self.steps, time=self.time)
        if self.positivity.guarding:
            dt = self.positivity.advance(dt)
        else:
            self.dt.value = dt
            self.given.prepare(self.time, dt, self.scheme.time.stages)
            self.after()
            self.given.check()
            if float(self.clipped_cells.value):
                dt = self.positivity.advance(dt, again=True)
        self.time += dt
        self.steps += 1
        self.given.prepare(self.time)  # who looks at residuals has them with the values of now
        return dt

    def advance_to(self, time: float) -> None:
        """Make steps until a time is reached exactly; the last two are equal.

        Raises
        ------
        SolverError
            If the time has passed, or a state is not finite.
        """
        if not (isfinite(time) and time >= self.time):
            raise SolverError(f"cannot advance to {time:g}: it is {self.time:g} already")
        last = FOREVER
        while self.time < time:
            left = time - self.time
            last = self.advance(left if left <= last else 0.5 * left if left < 2.0 * last else left)
            if left <= last * (1.0 + 1e-12):
                self.time = time

    # --------------------------------------------------------------------------------------- results
    def residuals(self) -> Residuals:
        """Return what the last step did, and what was clipped since the last call. Collective.

        Where steps towards a steady flow left cells as they were, those that follow are guarded (`Positivity`).

        Raises
        ------
        SolverError
            If a state is not finite; names the cell.
        """
        squares, clipped, clipped_cells = Global.read_all([self.norm, self.clipped, self.clipped_cells])
        norms = np.sqrt(np.asarray(squares) / max(1, self._count()))
        found = Residuals(norms, int(clipped), int(clipped_cells))
        if found.clipped_faces:
            self.clipped.value = 0.0
        if found.clipped_cells:
            self.clipped_cells.value = 0.0
        if not np.isfinite(norms).all():
            self.check()
        if found.clipped_cells and self._balance is not None:
            self.positivity.begin()
        return found

    def _count(self) -> int:
        return self.volumes.total

    def check(self) -> None:
        """Raise `Divergence` naming the first cell whose state is not finite. Collective."""
        require_finite(self.states(), self.volumes, self.context.comm, self.steps, self.time, self.cfl)

    def states(self) -> Array:
        """Return the primitive states of the cells that this rank owns, ``(owned, d + 2)``."""
        return self.owned(self.w)

    def owned(self, dat: Dat) -> Array:
        """Return the values of a dat of the elements in the cells that this rank owns."""
        values, place = dat.read(), self.spaces.elements.place
        return values[: self.volumes.owned] if place is None else values[place[: self.volumes.owned]]

    def totals(self) -> Array:
        """Return mass, momentum and energy of all cells, ``(d + 2,)``. Collective."""
        cells = self.gas.conserved(self.states()[:, : self.dimension + 2])
        return self.context.comm.reduce(self.volumes.volumes[: self.volumes.owned] @ cells, "sum")

    def left(self) -> Array:
        """Return mass and energy that left since `keep_balance`, ``(2,)``. Collective.

        Raises
        ------
        SolverError
            If it was not called.
        """
        if self.passed is None:
            raise SolverError("what left is not known: call keep_balance() before the first step")
        sums = self.context.scalar(np.zeros(3), "left")
        Loop(all_that_passed, self.boundary, self.passed, sums)()
        return np.asarray(sums.value)[1:]

    def reports(self) -> list[LoopReport]:
        """Return what each loop or fused group has done."""
        every = chain.from_iterable([*self._stages.values(), self.positivity.chains])
        return [report for one in every for report in one.reports()]
