"""Lattice Boltzmann: weakly compressible flow in a box, with walls, bodies, inlets and outlets.

All quantities are in lattice units: cells, steps, density near one.

A step is one loop over all cells, which knows of no walls. Before it, loops of their own put what arrives from walls,
sides and bodies where that loop will look for it: see `fluxloom.lbm.streaming`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.core.layout import Layout, SoA
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.context import Context
from fluxloom.dsl.dats import Dat, Global
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.report import LoopReport
from fluxloom.dsl.schedule import Schedule
from fluxloom.dsl.steps import Reset
from fluxloom.lbm.box import Box
from fluxloom.lbm.collisions import BGK, Collision
from fluxloom.lbm.lattices import D3Q19, Lattice
from fluxloom.lbm.output import form_of
from fluxloom.lbm.space import Space
from fluxloom.lbm.steps import step_kernels
from fluxloom.lbm.streaming import streaming as streaming_of
from fluxloom.lbm.units import storage_unit
from fluxloom.linalg.direct import Direct, Relay, sequence
from fluxloom.solvers.lattice_bulk import bulk_loops
from fluxloom.solvers.lattice_checks import check_count, check_force, check_start, check_viscosity, joined_axes
from fluxloom.solvers.lattice_looks import Looks
from fluxloom.solvers.lattice_sides import Conditions

__all__ = ["LatticeBoltzmann"]

Step = Loop | Reset | Direct


class LatticeBoltzmann:
    """Weakly compressible flow in a box.

    Parameters
    ----------
    context
        Where it runs.
    shape
        Cells along each axis, slowest first: ``(nz, ny, nx)`` or ``(ny, nx)``; on several ranks of the whole box.
    viscosity
        Kinematic, in cells squared a step.
    lattice
        From `fluxloom.lbm.lattices`.
    collision
        From `fluxloom.lbm.collisions`.
    streaming
        ``"pull"``, ``"push"``, ``"three-phase"``, or ``"in-place"``, which needs half of the memory.
    dtype
        Storage precision of the populations; single precision is enough for most flows, as what is
        stored is the distance from rest.
    layout
        Of the populations; one array a direction by default.
    boundaries
        Conditions of sides, from `fluxloom.lbm.boundaries`, by name: ``"xmin"``, ``"xmax"``, ``"ymin"``, ... . The
        two sides across an axis that have no condition are joined. On several ranks functions of positions are asked
        about the cells of each rank, and `Part.assign` is collective.
    bodies
        Solid bodies in the box (`fluxloom.lbm.boundaries.Body`).
    force
        Acts on all of the fluid: per volume, along each axis of the grid. `set_force` changes it, if it was given.
    field
        Whether the force differs by cell: `force_field` holds it then, and steps read it.
    schedule
        For every loop.
    cut, shares
        Parts along each axis on several ranks, and how much of the box each rank gets, as `fluxloom.dsl.sets.Grid`
        takes them.

    Raises
    ------
    SolverError
        If the viscosity is not positive, the shape does not fit the lattice, a side has no condition though the one
        across has, or a condition does not fit.

    Attributes
    ----------
    box, grid
        Cells of the flow; and those of memory, which has a layer more across axes that are not joined.
    fluid
        Which cells of the box are fluid.
    steps
        Steps done.
    """

    def __init__(
        self,
        context: Context,
        shape: tuple[int, ...],
        *,
        viscosity: float,
        lattice: Lattice = D3Q19,
        collision: Collision | None = None,
        streaming: str = "pull",
        dtype: npt.DTypeLike = "float32",
        layout: Layout | None = None,
        boundaries: Mapping[str, Any] | None = None,
        bodies: Sequence[Any] = (),
        force: Sequence[float] = (),
        field: bool = False,
        schedule: Schedule | None = None,
        cut: tuple[int, ...] | None = None,
        shares: Sequence[float] | None = None,
    ) -> None:
        if len(shape) != lattice.dimensions:
            raise SolverError(f"{lattice.name} needs a shape of {lattice.dimensions} axes, not {shape}")
        check_viscosity(viscosity)
        self.context, self.lattice, self.viscosity = context, lattice, viscosity
        self.collision = collision if collision is not None else BGK()
        self.collision.check(lattice)
        self.streaming = streaming_of(streaming)
        self.box = Box(tuple(int(n) for n in shape), joined_axes(lattice.dimensions, boundaries or {}))
        self.force = check_force(force, lattice.dimensions)
        self.forcing = "field" if field else "uniform" if len(force) else "none"
        self.schedule = schedule
        self._immersed: Any = None
        self._declare(cut, shares, dtype, layout if layout is not None else SoA())
        self.conditions = Conditions(self.space, boundaries or {}, bodies)
        self._steps: dict[int, Chain | Relay] = {}
        self._bulk = bulk_loops(self)
        self.steps = 0

    # ------------------------------------------------------------------------------------ declaration
    def _declare(
        self, cut: tuple[int, ...] | None, shares: Sequence[float] | None, dtype: npt.DTypeLike, layout: Layout
    ) -> None:
        ctx, lattice, shape = self.context, self.lattice, self.box.grid_shape
        self.grid = ctx.grid(shape, "cells", periodic=True, cut=cut, shares=shares)
        self.stencil = ctx.stencil(self.grid, lattice.sources, lattice.name)
        self.ahead = ctx.stencil(self.grid, lattice.velocities, f"{lattice.name} ahead")
        names = ("a", "b")[: self.streaming.buffers]
        buffers = tuple(ctx.dat(self.grid, name=n, shape=(lattice.q,), dtype=dtype, layout=layout) for n in names)
        self.unit, self.dtype = storage_unit(dtype), np.dtype(dtype)
        self.kernels = step_kernels(lattice, self.collision, self.forcing)
        self.real = "float64" if buffers[0].scalar.size == 8 else "float32"
        self.excess = ctx.dat(self.grid, name="excess", dtype=self.real)  # density less one
        self.motion = ctx.dat(self.grid, name="velocity", shape=(lattice.dimensions,), dtype=self.real, layout=SoA())
        acting = None if self.forcing == "none" else self.pull
        self.space = Space(ctx, lattice, self.box, self.grid, self.streaming, buffers, self.unit, acting)

    @cached_property
    def force_field(self) -> Dat:
        """The force of each cell, per volume: ``(*grid.shape, dimensions)``; to begin with, that of the whole fluid."""
        shape = (self.lattice.dimensions,)
        values = np.broadcast_to(np.array(self.force), (*self.grid.shape, *shape))
        return self.context.dat(self.grid, values, "force", shape=shape, dtype=self.real, layout=SoA())

    @property
    def uniform_force(self) -> tuple[float, ...]:
        """The force that the kernels of a step have as constants; none where they read a field."""
        return self.force if self.forcing == "uniform" else ()

    @cached_property
    def _acting(self) -> Global:
        """The force that is the same everywhere."""
        return self.context.scalar(self.force, "force", dtype=self.real)

    @property
    def pull(self) -> Global | Dat:
        """The force that populations have taken up in their last collision."""
        if self.forcing == "field" or self._immersed is not None:
            return self.force_field
        return self._acting

    # ------------------------------------------------------------------------------------------ steps
    def immerse(self, boundary: Any) -> None:
        """Add an immersed boundary (`fluxloom.lbm.immersed.ImmersedBoundary`); once, before the first step.

        Raises
        ------
        SolverError
            If there is one already, or the flow has begun.
        """
        if self._immersed is not None or self.steps:
            raise SolverError("a flow takes one immersed boundary, with all of its bodies, before the first step")
        self._immersed = boundary
        boundary.attach(self)
        self._steps.clear()

    def parts_of_step(self, parity: int) -> tuple[list[Step], list[Step], list[Step]]:
        """Return what runs before the loop over all cells, that loop, and what runs after."""
        before: list[Step] = list(self.conditions.loops(parity))
        after: list[Step] = []
        if self._immersed is not None:
            before += self._immersed.before(parity)
            after += self._immersed.after(parity)
        return before, list(self._bulk[parity % len(self._bulk)]), after

    def _step(self, parity: int) -> Chain | Relay:
        """Return a step, or with parity -1 two steps that begin at an even one."""
        if parity not in self._steps:
            parities = (0, 1) if parity < 0 else (parity,)
            steps = [step for p in parities for part in self.parts_of_step(p) for step in part]
            self._steps[parity] = sequence(steps, "lattice" if parity < 0 else f"lattice.{parity}")
        return self._steps[parity]

    def step(self, count: int = 1) -> None:
        """Advance by some steps.

        Raises
        ------
        SolverError
            If their number is not whole, or negative.
        """
        last = self.steps + check_count(count)
        if self.steps % 2 and self.steps < last:
            self._step(1)()
            self.steps += 1
        while self.steps + 2 <= last:
            self._step(-1)()
            self.steps += 2
        if self.steps < last:
            self._step(0)()
            self.steps += 1

    # ---------------------------------------------------------------------------------------- values
    @property
    def cells(self) -> int:
        """Number of cells of the box, those of all ranks."""
        return self.box.cells

    @property
    def populations(self) -> Dat:
        """The buffer that holds the present populations, less the weights."""
        return self.space.populations(self.steps)

    @cached_property
    def fluid(self) -> npt.NDArray[np.bool_]:
        """Which cells of the box are fluid."""
        return self.conditions.labels[self.box.inside] == 0

    def initialise(self, density: npt.ArrayLike = 1.0, velocity: npt.ArrayLike = 0.0) -> None:
        """Start from local equilibrium.

        Parameters
        ----------
        density
            Broadcast to the shape of the box.
        velocity
            Broadcast to ``(*shape, dimensions)``; component ``k`` points along axis ``k`` of the grid, so
            the last one is along x.

        Raises
        ------
        SolverError
            If a density is not positive, or a value is not finite.

        Notes
        -----
        On several ranks values over the whole box are cut; a rank may also give those of its own part alone,
        whose shape is ``grid.shape`` and whose cells are at ``grid.coordinates``.
        """
        check_start(density, velocity)
        self.excess.write(self.grid.local(self._padded(np.subtract(density, 1.0))))
        d = (self.lattice.dimensions,)
        self.motion.write(self.grid.local(self._padded(np.asarray(velocity), d), d))
        if self.forcing == "field":  # half of it is in the velocity, as kernels with a uniform one see to themselves
            rho = 1.0 + self.excess.read()[..., None]
            self.motion.write(self.motion.read() + 0.5 * self.force_field.read() / rho)
        self._equilibrium()
        self.steps = 0
        self.conditions.begin(0)
        if self._immersed is not None:
            self._immersed.restart()

    def _padded(self, values: npt.NDArray[Any], components: tuple[int, ...] = ()) -> npt.NDArray[Any]:
        """Return values of the box with those of the last cells repeated in the layer beyond."""
        layers = [(0, n - m) for n, m in zip(self.box.grid_shape, self.box.shape, strict=True)]
        if not any(more for _, more in layers):
            return values
        axes = len(self.box.shape) + len(components)
        if values.ndim < axes:
            values = values.reshape((1,) * (axes - values.ndim) + values.shape)
        widths = [pad if values.shape[k] > 1 else (0, 0) for k, pad in enumerate(layers)]
        return np.pad(values, [*widths, *((0, 0) for _ in components)], mode="edge")

    @cached_property
    def _equilibrium(self) -> Loop:
        form, _ = form_of(self.streaming, self.lattice, 0)
        name = "equilibrium_ahead" if form == "ahead" else "equilibrium"
        constants: dict[str, Any] = {
            **self.kernels.constants_of(name, self.viscosity, self.dtype, self.uniform_force),
            "schedule": self.schedule,
        }  # fmt: skip
        target = self.space.populations(0)
        seen = target[self.ahead] if form == "ahead" else target
        kernel = getattr(self.kernels, name)
        return Loop(kernel, self.grid, self.excess, self.motion, seen, **constants)

    @cached_property
    def _looks(self) -> Looks:
        return Looks(self)

    def density(self) -> npt.NDArray[np.float64]:
        """Return the density of the cells of the box; one where there is no fluid. On ranks: of this rank's cells."""
        self._looks.moments()
        found = 1.0 + self._inner(self.excess.read().astype(np.float64))
        return np.where(self._inner_fluid, found, 1.0)

    def velocity(self) -> npt.NDArray[Any]:
        """Return the velocity of the cells of the box, ``(*shape, dimensions)``, component ``k`` along axis ``k``.

        It is zero where there is no fluid. On several ranks it is that of this rank's cells.
        """
        self._looks.moments()
        return np.where(self._inner_fluid[..., None], self._inner(self.motion.read()), 0.0)

    def _inner(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values of the cells of the box."""
        return values[tuple(slice(0, max(0, n - o)) for n, o in zip(self.box.shape, self.grid.offset, strict=True))]

    @cached_property
    def _inner_fluid(self) -> npt.NDArray[np.bool_]:
        return self._inner(self.grid.local(self.conditions.labels)) == 0

    def totals(self) -> tuple[float, float]:
        """Return the sums of ``rho - 1`` and ``rho u^2 / 2`` over the fluid; collective."""
        return self._looks.totals()

    def mass(self) -> float:
        """Return the sum of the density over the fluid; collective."""
        return self.totals()[0] + int(np.count_nonzero(self.fluid))

    def kinetic_energy(self) -> float:
        """Return the sum of ``rho u^2 / 2`` over the fluid; collective."""
        return self.totals()[1]

    def force_on(self, name: str) -> npt.NDArray[np.float64]:
        """Return the force of the fluid on a body or a side in the last step, along each axis of the grid.

        The pressure of the fluid at rest with density one is left out.

        Raises
        ------
        SolverError
            If nothing of that name measures a force.
        """
        if self._immersed is not None and name in self._immersed.names:
            return self._immersed.force_on(name)
        return self.conditions.force_on(name)

    def set_force(self, force: Sequence[float]) -> None:
        """Change the force that acts everywhere.

        Raises
        ------
        SolverError
            If the flow was made without one.
        """
        if self.forcing != "uniform":
            raise SolverError("set_force: make the flow with force=..., zeros if need be, to change it later")
        self.force = check_force(force, self.lattice.dimensions)
        self._acting.value = np.array(self.force)
        self._bulk = bulk_loops(self)
        self._steps.clear()

    # ---------------------------------------------------------------------------------------- reports
    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops over all cells, of an even and an odd step."""
        return tuple(loop for steps in self._bulk for loop in steps)

    @property
    def chain(self) -> Chain | Relay:
        """Two steps."""
        return self._step(-1)

    def check_finite(self) -> None:
        """Raise if the flow is not finite any more.

        Raises
        ------
        SolverError
            Naming the step.
        """
        if not np.all(np.isfinite(self.totals())):
            raise SolverError(
                f"step {self.steps}: the flow is not finite any more; lower the velocity, raise the viscosity "
                f"(now {self.viscosity:.3g}) or take another collision (now {self.collision.name})"
            )

    def reports(self) -> list[LoopReport]:
        """Return what each step of the chain has done."""
        chain = self.chain
        chains = chain.chains if isinstance(chain, Relay) else [chain]
        return [report for one in chains for report in one.reports()]
