"""A periodic box on one thread, stepped by any scheme of streaming; the loops of a solver and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import fluxloom as fl
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import Kernel
from fluxloom.lbm.collisions.operators import Collision
from fluxloom.lbm.lattices import Lattice
from fluxloom.lbm.streaming.steps import Constants, collide, even, odd, pull, push
from fluxloom.lbm.streaming.steps_moments import equilibrium, macros, stream
from fluxloom.lbm.streaming.stored import Stored

Array = npt.NDArray[Any]


class PeriodicBox:
    """Populations in a periodic box.

    Parameters
    ----------
    force
        One of the whole box, or an array ``(*shape, d)``.
    """

    def __init__(
        self,
        lattice: Lattice,
        shape: tuple[int, ...],
        collision: Collision,
        viscosity: float,
        *,
        scheme: str = "pull",
        dtype: str = "float64",
        force: Sequence[float] | Array = (),
    ) -> None:
        field = isinstance(force, np.ndarray)
        self.ctx = fl.Context("cpu", threads=1, tuning=False)
        self.lattice, self.scheme = lattice, scheme
        uniform = tuple(float(x) for x in force) if len(force) and not field else None
        self.constants = Constants(lattice, collision, viscosity, dtype, uniform)
        grid = self.grid = self.ctx.grid(shape, "cells", periodic=True)
        self.sources = self.ctx.stencil(grid, lattice.sources, "sources")
        self.ahead = self.ctx.stencil(grid, lattice.velocities, "ahead")
        count, axes = (1 if scheme == "in-place" else 2), (lattice.dimensions,)
        real = "float64" if dtype == "float64" else "float32"
        self.f = [self.ctx.dat(grid, name="ab"[n], shape=(lattice.q,), dtype=dtype) for n in range(count)]
        self.above = self.ctx.dat(grid, name="above", dtype=real)
        self.u = self.ctx.dat(grid, name="u", shape=axes, dtype=real)
        self.force = self.ctx.dat(grid, name="force", shape=axes, dtype=real)
        if field:
            self.force.write(force)
        self.acting = self.force if field else None
        self.steps = 0
        self.loops = self._loops()

    def _loop(self, kernel: Kernel, *arguments: Any) -> Loop:
        return Loop(kernel, self.grid, *arguments, **self.constants.of(kernel))

    def _loops(self) -> list[list[Loop]]:
        """Return the loops of an even step and of an odd one."""
        a, b = self.f[0], self.f[-1]
        if self.scheme == "in-place":
            return [[self._loop(even, a, self.acting)], [self._loop(odd, a[self.ahead], self.acting)]]
        if self.scheme == "three-phase":
            three = [
                self._loop(stream, a[self.sources], b),
                self._loop(macros, b, self.acting, self.above, self.u),
                self._loop(collide, b, self.above, self.u, self.acting, a),
            ]
            return [three, three]
        pairs = ((a, b), (b, a))
        if self.scheme == "push":
            return [[self._loop(push, f, self.acting, out[self.ahead])] for f, out in pairs]
        return [[self._loop(pull, f[self.sources], self.acting, out)] for f, out in pairs]

    def start(self, density: Array | float, velocity: Array | float) -> None:
        """Start in equilibrium."""
        self.above.write(np.broadcast_to(np.subtract(density, 1.0), self.grid.shape))
        self.u.write(np.broadcast_to(velocity, (*self.grid.shape, self.lattice.dimensions)))
        ahead = self.scheme in ("push", "in-place")
        target = self.f[0][self.ahead] if ahead else self.f[0]
        constants = self.constants.of(equilibrium, stored=Stored(ahead))
        Loop(equilibrium, self.grid, self.above, self.u, target, **constants)()

    def step(self, count: int) -> None:
        """Advance."""
        for _ in range(count):
            for loop in self.loops[self.steps % 2]:
                loop()
            self.steps += 1

    def departed(self) -> Array:
        """Return what left each cell last, ``(*shape, q)``, less the weights."""
        unit = self.constants.rates.unit
        two = self.scheme in ("pull", "push")
        stored = self.f[self.steps % 2 if two else 0].read().astype(np.float64) / unit
        axes = tuple(range(self.lattice.dimensions))
        ahead = self.scheme == "push" or (self.scheme == "in-place" and self.steps % 2 == 0)
        if self.scheme == "in-place" and not ahead:
            stored = stored[..., list(self.lattice.opposite)]
        if ahead:
            back = [np.roll(stored[..., k], [-n for n in c], axes) for k, c in enumerate(self.lattice.velocities)]
            stored = np.stack(back, axis=-1)
        return stored

    def moments(self) -> tuple[Array, Array]:
        """Return the density and the momentum after the last collision."""
        f = self.departed()
        return 1 + f.sum(axis=-1), f @ np.array(self.lattice.velocities, dtype=float)
