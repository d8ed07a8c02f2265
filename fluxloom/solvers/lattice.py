"""Lattice Boltzmann on a periodic box: BGK collision, pull streaming between two buffers.

All quantities are in lattice units: cells, steps, density near one.
"""

from __future__ import annotations

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
from fluxloom.lbm.bgk import equilibrium, kinetic_energy, moments, relaxation, stream_collide
from fluxloom.lbm.lattices import D3Q19, Lattice

__all__ = ["LatticeBoltzmann"]


class LatticeBoltzmann:
    """Weakly compressible flow in a periodic box.

    Each loop reads the populations of one buffer through the stencil of the lattice, relaxes them and
    writes the other buffer; a chain of two steps leads back to the first. On several ranks each one has a part
    of the box, ``grid.window`` of it, and sends all populations of the layer at each cut before every step.

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
    dtype
        Storage precision of the populations; single precision is enough for most flows, as what is
        stored is the distance from rest.
    layout
        Of the populations; one array a direction by default.
    schedule
        For every loop.
    cut
        Parts along each axis on several ranks, as `fluxloom.dsl.sets.Grid` takes it.

    Raises
    ------
    SolverError
        If the viscosity is not positive, or the shape does not fit the lattice.
    """

    def __init__(
        self,
        context: Context,
        shape: tuple[int, ...],
        *,
        viscosity: float,
        lattice: Lattice = D3Q19,
        dtype: npt.DTypeLike = "float32",
        layout: Layout | None = None,
        schedule: Schedule | None = None,
        cut: tuple[int, ...] | None = None,
    ) -> None:
        if len(shape) != lattice.dimensions:
            raise SolverError(f"{lattice.name} needs a shape of {lattice.dimensions} axes, not {shape}")
        self.context, self.lattice, self.viscosity = context, lattice, viscosity
        self._keep, self._scale = relaxation(viscosity, dtype)
        self._declare(shape, cut, dtype, layout if layout is not None else SoA())
        self._schedule = schedule
        self._build()
        self.steps = 0

    def _declare(
        self, shape: tuple[int, ...], cut: tuple[int, ...] | None, dtype: npt.DTypeLike, layout: Layout
    ) -> None:
        ctx, lattice = self.context, self.lattice
        self.grid = ctx.grid(shape, "cells", periodic=True, cut=cut)
        self.stencil = ctx.stencil(self.grid, lattice.sources, lattice.name)
        self.a = ctx.dat(self.grid, name="a", shape=(lattice.q,), dtype=dtype, layout=layout)
        self.b = ctx.dat(self.grid, name="b", shape=(lattice.q,), dtype=dtype, layout=layout)
        self._excess = ctx.dat(self.grid, name="excess", dtype=dtype)  # density less one
        self._velocity = ctx.dat(self.grid, name="velocity", shape=(lattice.dimensions,), dtype=dtype, layout=layout)

    def _build(self) -> None:
        lattice, grid, a, b, schedule = self.lattice, self.grid, self.a, self.b, self._schedule
        step = stream_collide(lattice)
        tables: dict[str, Any] = {"velocities": lattice.velocities, "schedule": schedule}
        collision: dict[str, Any] = {"keep": self._keep, "scale": self._scale, "schedule": schedule}
        self.forth = Loop(step, grid, a[self.stencil], b, **collision)
        self.back = Loop(step, grid, b[self.stencil], a, **collision)
        self.chain = Chain([self.forth, self.back], name="lattice")
        self._equilibrium = Loop(equilibrium, grid, self._excess, self._velocity, a, weights=lattice.weights, **tables)
        self._moments = [Loop(moments, grid, f, self._excess, self._velocity, **tables) for f in (a, b)]

    @cached_property
    def _energy(self) -> Global:
        """A sum in double precision, declared when it is asked for: not every device has it."""
        real = "float32" if self.context.device.refuses_double else "float64"
        return self.context.scalar(0.0, "energy", dtype=real)

    @cached_property
    def _energies(self) -> list[Loop]:
        """The sum over each buffer."""
        tables: dict[str, Any] = {"velocities": self.lattice.velocities, "schedule": self._schedule}
        return [Loop(kinetic_energy, self.grid, f, self._energy, **tables) for f in (self.a, self.b)]

    @property
    def cells(self) -> int:
        """Number of cells, those of all ranks."""
        return self.grid.total

    @property
    def omega(self) -> float:
        """Share of the distance to equilibrium that one collision removes."""
        return 12.0 * self._scale

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The two steps."""
        return self.forth, self.back

    @property
    def populations(self) -> Dat:
        """The buffer that holds the present populations, less the weights."""
        return self.b if self.steps % 2 else self.a

    def initialise(self, density: npt.ArrayLike = 1.0, velocity: npt.ArrayLike = 0.0) -> None:
        """Start from local equilibrium.

        Parameters
        ----------
        density
            Broadcast to the shape of the box.
        velocity
            Broadcast to ``(*shape, dimensions)``; component ``k`` points along axis ``k`` of the grid, so
            the last one is along x.

        Notes
        -----
        On several ranks values over the whole box are cut; a rank may also give those of its own part alone,
        whose shape is ``grid.shape`` and whose cells are at ``grid.coordinates``.
        """
        self._excess.write(self.grid.local(np.subtract(density, 1.0)))
        self._velocity.write(self.grid.local(velocity, (self.lattice.dimensions,)))
        self._equilibrium()
        self.steps = 0

    def step(self, count: int = 1) -> None:
        """Advance by some steps."""
        last = self.steps + count
        if self.steps % 2 and self.steps < last:
            self.back()
            self.steps += 1
        while self.steps + 2 <= last:
            self.chain()
            self.steps += 2
        if self.steps < last:
            self.forth()
            self.steps += 1

    def density(self) -> npt.NDArray[np.float64]:
        """Return the density of this rank's cells; double precision keeps what is stored, its distance from one."""
        self._moments[self.steps % 2]()
        return 1.0 + self._excess.read().astype(np.float64)

    def velocity(self) -> npt.NDArray[Any]:
        """Return the velocity of this rank's cells, ``(*grid.shape, dimensions)``, component ``k`` along axis ``k``."""
        self._moments[self.steps % 2]()
        return self._velocity.read()

    def kinetic_energy(self) -> float:
        """Return the sum of ``rho u^2 / 2`` over all cells; collective."""
        self._energy.value = 0.0
        self._energies[self.steps % 2]()
        return float(self._energy.value)

    def check_finite(self) -> None:
        """Raise if a population is NaN or infinite.

        Raises
        ------
        SolverError
            Naming the step.
        """
        if not np.isfinite(self.kinetic_energy()):
            raise SolverError(
                f"step {self.steps}: a population is not finite; lower the velocity or raise the viscosity "
                f"(now {self.viscosity:.3g})"
            )

    def reports(self) -> list[LoopReport]:
        """Return what each step of the chain has done."""
        return self.chain.reports()
