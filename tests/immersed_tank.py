"""A periodic box of fluid at rest: the least flow that an immersed boundary can be attached to."""

from __future__ import annotations

import numpy as np

from fluxloom.core.dtypes import SoA
from fluxloom.core.strategies import strategy_called
from fluxloom.dsl.context import Context
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.cells.box import Box
from fluxloom.lbm.collisions.operators import BGK
from fluxloom.lbm.lattices import D2Q9, D3Q19
from fluxloom.lbm.streaming.memory import GridMemory
from fluxloom.lbm.streaming.schemes import Streaming
from fluxloom.lbm.streaming.space import Space
from fluxloom.lbm.streaming.steps import Constants, collide, even, odd, pull, push
from fluxloom.lbm.streaming.steps_moments import macros, stream


class Tank:
    """Fluid at rest in a periodic box; a uniform force may act on it. The populations start without any force."""

    def __init__(self, context, shape, viscosity, force=(), dtype="float64", scheme="pull", field=True, collision=None):
        lattice = D2Q9 if len(shape) == 2 else D3Q19
        d = lattice.dimensions
        self.force, self.viscosity = tuple(force), viscosity
        self.collision = collision if collision is not None else BGK()
        self.field = field
        scheme, box = strategy_called(Streaming, scheme), Box(tuple(shape), (True,) * d)
        memory = GridMemory(context, lattice, box)
        grid = memory.grid
        names = "ab"[: scheme.buffers]
        buffers = tuple(context.dat(grid, name=n, shape=(lattice.q,), dtype=dtype, layout=SoA()) for n in names)
        self.space = Space(context, lattice, box, memory, scheme, buffers)
        self.stencil, self.ahead = memory.behind, memory.ahead
        uniform = self.force if self.force and not field else None
        self.constants = Constants(lattice, self.collision, viscosity, dtype, uniform)
        self.excess = context.dat(grid, name="excess", dtype=dtype)
        self.motion = context.dat(grid, name="velocity", shape=(d,), dtype=dtype, layout=SoA())
        self.force_field = context.dat(grid, name="force", shape=(d,), dtype=dtype, layout=SoA())
        self.steps, self.boundary = 0, None
        self.bulk = [self._bulk(parity) for parity in (0, 1)]

    def _bulk(self, parity):
        space = self.space
        a, b = space.populations(parity), space.populations(parity + 1)
        match space.streaming.type_name:
            case "pull":
                return [self._loop(pull, a[self.stencil], out=(b,))]
            case "push":
                return [self._loop(push, a, out=(b[self.ahead],))]
            case "in-place":
                return [self._loop(odd, a[self.ahead]) if parity else self._loop(even, a)]
        a, b = space.buffers
        return [
            self._loop(stream, a[self.stencil], out=(b,)),
            self._loop(macros, b, out=(self.excess, self.motion)),
            self._loop(collide, b, self.excess, self.motion, out=(a,)),
        ]

    def _loop(self, kernel, f, *more, out=()):
        field = () if kernel is stream else (self.force_field if self.field else None,)
        return Loop(kernel, self.space.grid, f, *more, *field, *out, **self.constants.of(kernel))

    def immerse(self, boundary):
        self.boundary = boundary
        boundary.attach(self)
        return self

    def step(self, count=1):
        for _ in range(count):
            before, after = self.boundary.before(self.steps), self.boundary.after(self.steps)
            for one in (*before, *self.bulk[self.steps % 2], *after):
                one()
            self.steps += 1

    def populations(self):
        """What left each cell, in the order of the lattice's velocities, ``(cells, q)``."""
        space = self.space
        cells, k = np.arange(space.grid.size)[:, None], np.arange(space.lattice.q)[None, :]
        at, component = space.streaming.departed(space.box, space.lattice, cells, k, self.steps)
        return space.populations(self.steps).read().reshape(-1, space.lattice.q)[at, component].astype(np.float64)

    def momentum(self):
        """Momentum of all populations, ``(d,)``."""
        return self.populations().sum(axis=0) @ np.array(self.space.lattice.velocities)

    def velocity(self):
        """Velocity of the cells: after a collision populations have all of the force, the velocity has half."""
        g = self.populations()
        j = (g @ np.array(self.space.lattice.velocities)).reshape(self.force_field.read().shape)
        return (j - 0.5 * self.force_field.read()) / (1.0 + g.sum(axis=-1)).reshape(*j.shape[:-1], 1)


def tank(shape, viscosity, force=(), device="cpu", threads=2, **options):
    """Return a tank on a device."""
    context = Context(device, threads=threads if device == "cpu" else 0, tuning=False)
    return Tank(context, shape, viscosity, force, **options)
