"""Shallow water: tsunamis, dam breaks and run-up on meshes of triangles or other polygons.

The equations and the scheme of VOLNA (Dutykh, Poncet, Dias 2011): depth and momentum in the cells, HLL flux with
hydrostatic reconstruction, Heun's method, a time step from the state. See `fluxloom.fv.shallow.kernels` for the
formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.comm.agreement import raise_on_all_ranks
from fluxloom.core.dtypes import Layout
from fluxloom.core.errors import Divergence, SolverError
from fluxloom.dsl.declare.dats import Dat, Global
from fluxloom.dsl.declare.schedule import Schedule
from fluxloom.dsl.run.chain import Chain, Reset
from fluxloom.dsl.run.loop import Loop
from fluxloom.dsl.run.report import LoopReport
from fluxloom.fv.shallow.boundary import WINDOW, Boundary, boundary_tables
from fluxloom.fv.shallow.geometry import ShallowGeometry
from fluxloom.fv.shallow.gradients import shallow_gradients
from fluxloom.fv.shallow.kernels import (
    DRY,
    boundary_flat,
    boundary_linear,
    correct,
    drawn_in,
    flux_flat,
    flux_linear,
    highest,
    pour,
    predict,
    survey,
    time_scale,
)
from fluxloom.fv.shallow.places import first_cell, highest_cell
from fluxloom.fv.shallow.scheme import FOREVER, ShallowScheme, Survey
from fluxloom.mesh.ranks.bind import Mesh

__all__ = ["Field", "ShallowWater"]

FloatArray = npt.NDArray[np.float64]
Field = npt.ArrayLike | Callable[[FloatArray, FloatArray], npt.ArrayLike]
"""Values in the cells that the rank owns: a number, an array, or a function of the coordinates of the centroids."""

_ROUNDING, _CLOSE = 1.0e-12, 1.0e-9
_BATCH, _FEW = 256, 4  # steps between two looks of the host; samples that a step passes over at most
_OFF, _LOST, _HALF = 0.1, 1e-2, 0.5
"""Part of the largest value in time by which samples may be off between them, and of the integral; of steps of a given
length half of that."""
_SLACK = {4: 1e-3, 8: 1e-9}
"""Part of a step of given length, over the number of them, by which rounding may be off; by the size of a number."""


class ShallowWater:
    """Water over a bed, in two dimensions.

    On several ranks all methods are collective, except those that return arrays: these hold the cells that the rank
    owns, in local order.

    Parameters
    ----------
    mesh
        Of any polygons, in the plane.
    bed
        Bed elevation, `Field`.
    elevation
        Surface at the start; the depth is what is above the bed.
    velocity
        At the start: two `Field` values.
    scheme
        Numbers of the scheme.
    boundaries
        By patch; the rest is wall.
    schedule
        For every loop.
    fused
        Whether the chain may fuse loops.
    layout
        Of the state.
    dtype
        Storage precision. Single precision resolves 6e-8 of the depth: use it where that is less than the waves.
    peak
        Whether the highest surface of each cell is kept.
    film
        Depth from which on water counts for it, metres; at least that of thin water.

    Attributes
    ----------
    peak
        As it was given.
    drawn
        What comes in through outflows at the start, m^3/s: nothing says how much that is later.

    Raises
    ------
    SolverError
        For a mesh that is not plane, or values that are not finite.
    MeshError
        For a patch that the mesh does not have.
    """

    remembers = ("time", "steps", "_first_volume")

    def __init__(
        self,
        mesh: Mesh,
        bed: Field,
        elevation: Field = 0.0,
        velocity: Sequence[Field] = (0.0, 0.0),
        *,
        scheme: ShallowScheme | None = None,
        boundaries: Mapping[str, Boundary] | None = None,
        schedule: Schedule | None = None,
        fused: bool = True,
        layout: Layout | None = None,
        dtype: npt.DTypeLike = "float64",
        peak: bool = True,
        film: float = 0.0,
    ) -> None:
        if mesh.dimension != 2:
            raise SolverError(f"shallow water flows over a plane mesh, not over one of {mesh.dimension} dimensions")
        self.mesh, self.context = mesh, mesh.context
        self.scheme = scheme if scheme is not None else ShallowScheme()
        self.boundaries = dict(boundaries or {})
        self._schedule, self._fused, self.peak, self._film = schedule, fused, peak, film
        self.geometry = ShallowGeometry(mesh, dtype=dtype, gradients=self.scheme.order == 2)
        self._declare(dtype, layout)
        self.zb.write(self._values(bed, "bed"))
        self._give(0.0, 0.0)
        self._start(elevation, velocity)
        self._build()
        self._begin()

    # --------------------------------------------------------------------------------------- set-up
    def _values(self, field: Field, name: str) -> FloatArray:
        """Return a field at the centroids of this rank's cells, float64. Collective."""
        centre = self.mesh.centroids.read().astype(np.float64)

        def evaluated() -> npt.ArrayLike:
            """Return the values at the centroids: ``(n,)``, or one for all."""
            return field(centre[:, 0], centre[:, 1]) if callable(field) else field

        found = np.asarray(raise_on_all_ranks(self.context.comm, evaluated), dtype=np.float64)
        values = np.broadcast_to(found, (self.mesh.cells.size,))
        if (bad := first_cell(self.mesh, ~np.isfinite(values))) is not None:
            raise SolverError(f"{name}: the value of {bad[0]} is not finite")
        return values

    def _declare(self, dtype: npt.DTypeLike, layout: Layout | None) -> None:
        ctx, cells = self.context, self.mesh.cells
        self.u = ctx.dat(cells, name="u", shape=(3,), dtype=dtype, layout=layout)
        self.zb = ctx.dat(cells, name="zb", dtype=dtype)
        self.mid = ctx.dat(cells, name="mid", shape=(3,), dtype=dtype, layout=layout)
        self.res = ctx.dat(cells, name="res", shape=(4,), dtype=dtype, layout=layout)
        self.gradient = ctx.dat(cells, name="slope", shape=(8,), dtype=dtype) if self.scheme.order == 2 else None
        self.top = ctx.dat(cells, name="top", dtype=dtype)
        self._before = ctx.dat(cells, name="before", dtype=dtype)
        real = "float32" if ctx.device.refuses_double else "float64"
        self._ahead = ctx.scalar(np.zeros(2), "ahead", dtype=real)
        self._now = ctx.scalar(np.zeros(2), "now", dtype=real)
        self._inflow = ctx.scalar(0.0, "inflow", dtype=real)
        self._drawn = ctx.scalar(0.0, "drawn", dtype=real)
        self._sums = ctx.scalar(np.zeros(3), "sums", dtype=real)
        self._most = ctx.scalar(np.zeros(2), "most", dtype=real)
        self._tables = tables = boundary_tables(self.mesh, self.boundaries)
        self._kind = ctx.dat(self.mesh.boundary, tables.kinds, "kind")
        self._row = ctx.dat(self.mesh.boundary, tables.rows, "row")
        self._series = ctx.dat(self.mesh.boundary, self._levels(0.0, 0.0), "series", dtype=real)
        self._ends = ctx.scalar(np.minimum(tables.ends, FOREVER), "ends", dtype=real)
        self._sources = self.scheme.sources
        self._samples = WINDOW if any(one.in_time for one in self._sources.values()) else 2
        self._poured = ctx.dat(cells, name="poured", shape=(3 * self._samples,), dtype=real) if self._sources else None
        self._given = [*self._sources.values(), *(one for _, one, _ in tables.series)]

    def _levels(self, begin: float, spacing: float) -> FloatArray:
        """Return what is given at boundary faces from a time on, ``(n_boundary, WINDOW)``. Collective."""
        return raise_on_all_ranks(self.context.comm, lambda: self._tables.window(begin, spacing))

    def _give(self, begin: float, spacing: float) -> None:
        """Give the device what changes in time, from a time on. Collective.

        It bounds steps also where it is dry yet: a wave on what comes in, ``R`` metres a second, crosses no more than
        `cfl` of a cell of the length ``L = 2 A / P``, ``dt^3 g R = (cfl L)^2``.
        """
        levels, rain = self._levels(begin, spacing), np.zeros(self.mesh.cells.size)
        self._series.write(levels)
        self._filling = FOREVER
        if self._poured is not None:
            rain = self._pour(begin + spacing * np.arange(self._samples))
        elif not self._tables.series:
            return
        n, edge = len(rain), self.mesh.boundary_cell.table[: len(levels), 0]
        shape, bed = self.geometry.shape.read()[:n].astype(np.float64), self.zb.read().astype(np.float64)
        entering = self._tables.entering(levels.max(axis=1), bed[edge], self.scheme.gravity)
        rate = rain + np.bincount(edge, entering * self.geometry.boundary.read()[:, 2], n)[:n] * shape[:, 0]
        most = (rate / shape[:, 1] ** 2).max(initial=0.0)
        if most := float(self.context.comm.reduce(np.array([most]), "max")[0]):
            self._filling = float(np.cbrt(self.scheme.cfl**2 / (self.scheme.gravity * most)))

    def _pour(self, times: npt.NDArray[np.floating[Any]]) -> FloatArray:
        """Give rain and wind at times to the device; return the heaviest rain on each cell, m/s. Collective."""
        assert self._poured is not None
        at = self.mesh.centroids.read()[: self.mesh.cells.size].astype(np.float64)
        rain, *stress = raise_on_all_ranks(
            self.context.comm, lambda: [one.course(at, times, name) for name, one in self._sources.items()]
        )
        if (bad := first_cell(self.mesh, np.any(rain < 0.0, axis=1))) is not None:
            raise SolverError(f"rain: {self._sources['rain']} is below 0 in {bad[0]}: at least 0 is wanted")
        self._poured.write(np.concatenate([rain, *(one / self.scheme.density for one in stress)], axis=1))
        return rain.max(axis=1)

    def _start(self, elevation: Field, velocity: Sequence[Field]) -> None:
        """Set the state."""
        surface = self._values(elevation, "elevation")
        depth = np.maximum(0.0, surface - self.zb.read())
        speeds = [self._values(part, "velocity") for part in velocity]
        if len(speeds) != 2:
            raise SolverError(f"velocity has two components, got {len(speeds)}")
        self.u.write(np.stack([depth, depth * speeds[0], depth * speeds[1]], axis=1))
        self._measure(depth)

    def _measure(self, depth: FloatArray) -> None:
        """Find what is thin beside the deepest water."""
        deepest = float(self.context.comm.reduce(np.array([depth.max(initial=0.0)]), "max")[0])
        self.thin = self.scheme.dry * (deepest if deepest > 0.0 else 1.0)
        """Depth of thin water, metres."""

    def _build(self) -> None:
        scheme = self.scheme
        common: dict[str, Any] = {"g": scheme.gravity, "eps": self.thin, "schedule": self._schedule}
        cells, shape = self.mesh.cells, self.geometry.shape
        friction = {"manning": scheme.manning, "rough": int(scheme.manning > 0.0)}
        stepping = {"cfl": scheme.cfl, "longest": scheme.longest, "span": FOREVER}
        first = self._residual(self.u, self._ahead, 0, common | stepping)
        second = self._residual(self.mid, self._now, 1, common | stepping)
        self._predict = Loop(
            predict, cells, self.u, shape, self._ahead, self.res, self.mid, self._now, self._inflow,
            **stepping, **friction, **common,
        )  # fmt: skip
        self._spanned = [loop for loop in (*first, self._predict) if "span" in loop.constants]
        self._correct = Loop(
            correct, cells, self.u, self.mid, shape, self._now, self.res, self._ahead, self._inflow,
            **friction, **common,
        )  # fmt: skip
        bare = {"eps": self.thin, "schedule": self._schedule}
        film = max(self.thin, self._film)
        self._highest = Loop(highest, cells, self.u, self.zb, self.top, eps=film, schedule=self._schedule)
        self._time_scale = Loop(time_scale, cells, self.u, shape, self._ahead, **common)
        self._survey = Loop(survey, cells, self.u, self.zb, shape, self._before, self._sums, self._most, **bare)
        last = [self._highest] if self.peak else []
        self._timed = [loop for loop in (*first, *second) if "spacing" in loop.constants]
        # A call ends one step and begins the next: then only one global has to be reset, and at the start of the chain.
        self.loops: tuple[Loop, ...] = (*second, self._correct, *last, *first, self._predict)
        """The loops of the chain, in order: the second stage of a step, then the first stage of the next."""
        self.chain = Chain(
            [Reset(self._ahead, FOREVER), *self.loops],
            transient=(self.res, *([self.gradient] if self.gradient is not None else [])),
            fuse=self._fused,
            name="shallow_water",
        )

    def _residual(self, u: Dat, clock: Global, stage: int, common: dict[str, Any]) -> list[Loop]:
        """Return the loops that add the fluxes of a state to the residual."""
        mesh, shape, inner = self.mesh, self.geometry, self.mesh.face_cells
        common = {"stage": stage, **common}
        zb, res = self.zb, self.res
        last = [self._at_boundary(u, clock, self._series, res[mesh.boundary_cell[0]], common)]
        if self._poured is not None:
            last.append(Loop(
                pour, mesh.cells, u, shape.shape, self._poured, clock, res, stage=stage, samples=self._samples,
                spacing=1.0, eps=self.thin, schedule=self._schedule,
            ))  # fmt: skip
        if self.gradient is None:
            return [
                Loop(
                    flux_flat, mesh.faces, u[inner], zb[inner], shape.faces, shape.shape[inner], clock, res[inner],
                    **common,
                ),
                *last,
            ]  # fmt: skip
        gradient = self.gradient
        return [
            self._gradients(u),
            Loop(
                flux_linear, mesh.faces, u[inner], zb[inner], gradient[inner], shape.faces, shape.arms,
                shape.shape[inner], clock, res[inner], **common,
            ),
            *last,
        ]  # fmt: skip

    def _gradients(self, u: Dat) -> Loop:
        """Return the loop that finds the slopes of a state."""
        shape, zb, around = self.geometry, self.zb, self.geometry.neighbours
        return Loop(
            shallow_gradients, self.mesh.cells, u, u[around], zb, zb[around], shape.weights, shape.middles,
            shape.points, self.gradient, legs=around.legs, eps=self.thin, schedule=self._schedule,
        )  # fmt: skip

    def _at_boundary(self, u: Dat, clock: Global, series: Dat, res: Any, common: dict[str, Any]) -> Loop:
        """Return the loop that adds the fluxes through the boundary to what is given."""
        mesh, shape, zb, edge = self.mesh, self.geometry, self.zb, self.mesh.boundary_cell[0]
        timing: dict[str, Any] = {"start": 0.0, "samples": WINDOW, "spacing": 1.0, "states": self._tables.formulas}
        driven = (self._kind, self._row, series, self._ends, clock)
        if self.gradient is None:
            return Loop(
                boundary_flat, mesh.boundary, u[edge], zb[edge], shape.boundary, shape.shape[edge], *driven,
                res, **timing, **common,
            )  # fmt: skip
        return Loop(
            boundary_linear, mesh.boundary, u[edge], zb[edge], self.gradient[edge], shape.boundary, shape.boundary_arms,
            shape.shape[edge], *driven, res, **timing, **common,
        )  # fmt: skip

    def passing(self, load: Dat) -> tuple[Sequence[Loop], Callable[[], None]]:
        """Return loops that add what leaves through each boundary face now, and what has to be called before them.

        Parameters
        ----------
        load : (4,) on boundary faces
            A length times mass, momentum less the pressure of the cell, and mass again.
        """
        scheme, ctx = self.scheme, self.context
        clock = ctx.scalar(np.zeros(2), "passing.clock", dtype=self._ahead.scalar.numpy)
        series = ctx.dat(self.mesh.boundary, self._levels(self.time, 0.0), "passing", dtype=self._series.scalar.numpy)
        found = self._at_boundary(
            self.u, clock, series, load,
            {"g": scheme.gravity, "eps": self.thin, "schedule": self._schedule, "stage": 0, "cfl": scheme.cfl,
             "longest": FOREVER, "span": FOREVER},
        )  # fmt: skip

        def prepare() -> None:
            """Set the time, what is given then, and the step, which bounds what leaves a cell."""
            clock.value = np.array([0.0, self._ahead.value[1]])
            series.write(self._levels(self.time, 0.0))
            found.set(start=self.time, longest=self.next_step())

        return [*([self._gradients(self.u)] if self.gradient is not None else []), found], prepare

    def _begin(self) -> None:
        """Set everything that follows from the state at the start."""
        self.time, self.steps = 0.0, 0
        self.top.write(np.full(self.mesh.cells.size, DRY))
        if self.peak:
            self._highest()
        self._rescale()
        self._inflow.value = 0.0
        self.drawn = self._drawn_in()
        self._before.write(self.u.read()[:, 0])
        self._first_volume = self.survey().volume

    def begin_from(self, state: npt.ArrayLike | None = None) -> None:
        """Begin with another state over the bed that there is; the time is 0.

        Parameters
        ----------
        state
            Depth and momentum of the cells of this rank, ``(n, 3)``; None: those that `u` has.

        Raises
        ------
        SolverError
            If a value is not finite, or a depth below 0.
        """
        if state is not None:
            self.u.write(np.asarray(state))
        values = self.u.read()
        if (bad := first_cell(self.mesh, ~np.isfinite(values).all(axis=1) | (values[:, 0] < 0.0))) is not None:
            raise SolverError(f"start: a depth from 0 on and a finite momentum are wanted, not those of {bad[0]}")
        self._measure(values[:, 0].astype(np.float64))
        for loop in dict.fromkeys((*self.loops, self._predict, self._correct, self._time_scale, self._survey)):
            if "eps" in loop.constants:
                loop.set(eps=self.thin)
        self._highest.set(eps=max(self.thin, self._film))
        self._begin()

    def _drawn_in(self) -> float:
        """Return what comes in through outflows now, where nothing says how much that is, m^3/s."""
        self._drawn.value = 0.0
        Loop(
            drawn_in, self.mesh.boundary, self.u[self.mesh.boundary_cell[0]], self.geometry.boundary, self._kind,
            self._drawn, g=self.scheme.gravity, eps=self.thin, states=self._tables.formulas,
        )()  # fmt: skip
        return float(self._drawn.value)

    def _rescale(self) -> None:
        """Find the time scale of the present state, with no step begun."""
        self.mid.write(self.u)
        self._now.value = np.zeros(2)
        self._ahead.value = np.array([FOREVER, FOREVER])
        self._time_scale()

    # -------------------------------------------------------------------------------------- advance
    def advance_to(self, time: float) -> None:
        """Advance until a time is reached exactly; steps are chosen on the device.

        Raises
        ------
        SolverError
            If the time has passed already, a series of a boundary ends before, or the step shrinks to nothing; names
            the cell with the largest speed. If steps of a given length come to be too long.
        """
        if not (time >= self.time and isfinite(time)):
            raise SolverError(f"cannot advance to {time:g} s: it is {self.time:g} s already")
        finest = min((one.finest for one in self._given), default=np.inf)
        for moment in (self.time, time):
            raise_on_all_ranks(self.context.comm, lambda moment=moment: self.check_given(moment))
        while self.time < time:
            spacing, stop = 1.0, time
            step = self.next_step()
            if isfinite(finest):  # the kernels have a window of each series: long enough for some dozen steps
                spacing = min(max(finest, step), (time - self.time) * (1.0 + _ROUNDING) + step)
                if not finest or any(one.in_space for one in self._given):  # formulas may have no value beyond
                    spacing = min(spacing, (time - self.time) * (1.0 - _ROUNDING) / (WINDOW - 1))
                if (seen := self._seen(spacing, time)) < time:
                    spacing, stop = min(spacing, seen - self.time), seen
                far = (WINDOW - 1) * spacing >= (time - self.time) * (1.0 - 2.0 * _ROUNDING)
                stop = stop if far else min(stop, self.time + (WINDOW - 1) * spacing)
            count = 0
            if self.scheme.dt:
                whole = max(1, ceil((time - self.time) / step * (1.0 - _CLOSE)))
                step = (time - self.time) / whole
                count = min(whole, _BATCH, max(1, int((stop - self.time) / step * (1.0 + _CLOSE))))
                stop = time if count == whole else self.time + count * step
            if self._given:
                self._give(self.time, spacing)
            if not self.scheme.dt and step > _FEW * spacing and any(x.in_time and x.in_space for x in self._given):
                self._filling = min(self._filling, spacing)
            for loop in self._timed:
                loop.set(spacing=spacing, **({"start": self.time} if "start" in loop.constants else {}))
            self._advance(stop, count)

    def _seen(self, spacing: float, end: float) -> float:
        """Return up to when samples so far apart have all that is given in time, ``end`` at most: no pulse is lost.

        Raises
        ------
        SolverError
            If steps of a given length lose half of it.
        """
        begin, seen = self.time, end
        grid = np.minimum(begin + spacing * np.arange(WINDOW), end)
        for one in (one for one in self._given if one.in_time and not one.in_space):
            times = np.append(begin, one.turns(begin, float(grid[-1])))
            values, samples = one.over_time(times), one.over_time(grid)
            if not _loses(grid, samples, times, values):
                continue
            if self.scheme.dt:
                if _loses(grid, samples, times, values, np.inf, _HALF):
                    message = f"dt: steps of {self.scheme.dt:g} s pass over what {one} is from {begin:g} s on: lower dt"
                    raise SolverError(message)
                continue
            count = WINDOW // 2
            while count > 1 and _loses(grid[:count], samples[:count], times, values):
                count //= 2
            moments = grid[:count]
            if count == 1:  # a step may have more than one turn
                moments = times[: int(np.searchsorted(times, grid[1], "right"))]
                ends = values[: moments.size]
                while (count := moments.size) > 2 and _loses(moments[[0, -1]], ends[[0, -1]], moments, ends):
                    moments, ends = moments[: (count + 1) // 2], ends[: (count + 1) // 2]
            seen = min(seen, float(moments[-1]))
        return seen

    def check_given(self, time: float) -> None:
        """Raise `SolverError` if what is given has no value at a time."""
        self._tables.check(time)
        for name, one in self._sources.items():
            if one.in_time:
                one.at(self.mesh.centroids.read()[: self.mesh.cells.size].astype(np.float64), time, name)

    def check_step(self) -> None:
        """Raise `SolverError` if steps of a given length are longer than the state of now allows."""
        dt, limit = self.scheme.dt, self._limit()
        if dt > limit * (1.0 + _CLOSE):
            raise SolverError(f"dt: {self._too_long(limit)}")

    def _too_long(self, limit: float) -> str:
        """Return what to say of steps of a given length that are too long."""
        scheme = self.scheme
        return (
            f"steps of {scheme.dt:g} s are longer than cfl = {scheme.cfl:g} allows, {limit:.3g} s: lower dt, or leave "
            "it out for steps that are chosen"
        )

    def _advance(self, time: float, steps: int) -> None:
        """Advance to a time within the windows of the series, by so many equal steps; 0: by those that are chosen."""
        span = time - self.time
        longest = min(self.scheme.longest, self._filling)
        if steps:
            longest = span / steps * (1.0 + _SLACK[self.u.scalar.size] / steps)
        # The device counts from the start of this call, which keeps its digits in single precision.
        self._ahead.value = np.array([0.0, self._ahead.value[1]])
        self._now.value = np.zeros(2)
        for loop in self._spanned:
            loop.set(span=span, longest=longest)
        single = self.u.scalar.size == 4
        span = float(np.float32(span)) if single else span  # as the device compares it
        smallest = 4.0 * float(np.finfo(np.float32 if single else np.float64).eps) * span
        calls, passed = -1, 0.0  # the first call begins a step, without one to end
        while passed < span:
            step, limit = self.next_step(), self._limit()
            if not (limit if steps else step) > smallest:
                raise Divergence(self._lost(self.time + passed, limit), step=self.steps, time=self.time + passed)
            if steps and (calls >= steps or span / steps > limit * (1.0 + _CLOSE)):
                message = f"time {self.time + passed:g} s: {self._too_long(limit)}"
                raise Divergence(message, step=self.steps + max(0, calls), time=self.time + passed)
            step = span / steps if steps else step
            count = max(1, min(_BATCH, ceil((span - passed) / step * (1.0 - _ROUNDING)) + (calls < 0)))
            for _ in range(count):
                self.chain()
            calls += count
            passed = -float(self._ahead.value[0])
        self.steps += max(0, calls)
        self.time = time

    def _lost(self, time: float, step: float) -> str:
        """Return the message of a time step that shrinks to nothing."""
        self.check_finite()
        found = highest_cell(self.mesh, np.abs(self.velocity()).max(axis=1))
        where = "" if found is None else f"the speed is largest, {found[0]:.3g} m/s, in {found[1]}; "
        return (
            f"time {time:g} s: the time step fell to {step:.3g} s; {where}lower cfl "
            f"(now {self.scheme.cfl:g}) or look for an odd bed or a tiny cell there"
        )

    def next_step(self) -> float:
        """Return the length of the next time step, seconds, if nothing has to be met exactly."""
        return self.scheme.dt or min(self._limit(), self.scheme.longest)

    def _limit(self) -> float:
        """Return the longest step that `cfl` allows for the water that is there and for what comes in."""
        return min(self.scheme.cfl * float(self._ahead.value[1]), self._filling)

    def displace(self, rise: Field) -> None:
        """Lift the bed, and the water with it, as an earthquake does."""
        self.zb.write(self.zb.read() + self._values(rise, "rise"))
        if self.peak:
            self._highest()

    # --------------------------------------------------------------------------------------- results
    def survey(self) -> Survey:
        """Sum up the present state: ``V = sum A H``, ``defect = (V - V_0 - inflow) / V_0``, change, extremes."""
        self._sums.value = np.zeros(3)
        self._most.value = np.array([DRY, 0.0])
        self._survey()
        sums, most, inflow = Global.read_all([self._sums, self._most, self._inflow])
        volume, square, bad = sums.tolist()
        (surface, speed), inflow = most.tolist(), float(inflow)
        first = getattr(self, "_first_volume", volume)
        defect = (volume - first - inflow) / first if first else volume - inflow
        change = sqrt(square / self.geometry.total_area) if square >= 0.0 else float("nan")
        if bad:
            change = float("nan")
        return Survey(volume, inflow, defect, change, surface if surface > DRY else None, speed)

    def depth(self) -> FloatArray:
        """Return the depths of the cells, ``(n,)``."""
        return self.u.read()[:, 0].astype(np.float64)

    def surface(self) -> FloatArray:
        """Return the surface elevation of the cells, that of the bed where it is dry, ``(n,)``."""
        return self.depth() + self.zb.read()

    def velocity(self) -> FloatArray:
        """Return the velocities of the cells, ``Hu / H``, ``(n, 2)``; zero where it is dry."""
        u = self.u.read().astype(np.float64)
        depth = np.maximum(u[:, 0], 0.0)
        wet = depth > self.thin
        return np.where(wet[:, None], u[:, 1:] / np.where(wet, depth, 1.0)[:, None], 0.0)

    def highest_surface(self) -> FloatArray:
        """Return the highest surface that each cell has had, ``max_t (H + z_b)``; NaN where it was always dry."""
        if not self.peak:
            raise SolverError("the highest surface was not kept; build the solver with peak=True")
        top = self.top.read().astype(np.float64)
        return np.where(top > 0.5 * DRY, top, np.nan)

    def check_finite(self) -> None:
        """Raise `SolverError` naming the first cell whose state is not finite."""
        bad = first_cell(self.mesh, np.any(~np.isfinite(self.u.read()), axis=1))
        if bad is not None:
            raise Divergence(
                f"time {self.time:g} s: the state of {bad[0]} is not finite "
                f"({bad[1]} cells in all); lower cfl (now {self.scheme.cfl:g}) or use order = 1",
                field="depth", step=self.steps, time=self.time,
            )  # fmt: skip

    def fields(self) -> dict[str, FloatArray]:
        """Return cell values: depth, velocity, surface and bed elevation, and, if kept, the highest surface so far.

        Where it is (or always was) dry, the surface is the bed.
        """
        depth, bed = self.depth(), self.zb.read().astype(np.float64)
        found = {"depth": depth, "velocity": self.velocity(), "elevation": depth + bed, "bed": bed}
        if self.peak:
            top = self.highest_surface()
            found["highest"] = np.where(np.isnan(top), bed, top)
        return found

    def reports(self) -> list[LoopReport]:
        """Return what each loop or fused group has done."""
        return self.chain.reports()


def _loses(
    at: FloatArray, samples: FloatArray, times: FloatArray, values: FloatArray, off: float = _OFF, lost: float = _LOST
) -> bool:
    """Return whether samples are no more what has values at times between which it is linear.

    ``off`` is a part of the largest value, ``lost`` of the integral.
    """
    within = times <= at[-1]
    times, values = times[within], values[within]
    gap = np.interp(times, at, samples) - values
    most, whole = np.abs(values).max(initial=0.0), float(np.trapezoid(np.abs(values), times))
    return bool(np.abs(gap).max(initial=0.0) > off * most or abs(float(np.trapezoid(gap, times))) > lost * whole)
