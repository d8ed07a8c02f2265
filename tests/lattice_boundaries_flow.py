"""The least flow that conditions at walls and sides can be tested in: a box, its parts, and the loops of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

import fluxloom as fl
from fluxloom.core.strategies import strategy_called
from fluxloom.dsl.run.loop import Loop
from fluxloom.kernel.frontend import Kernel
from fluxloom.lbm.boundaries import Body, Condition, Part, Sponge, parts_of
from fluxloom.lbm.cells.box import AXES, Box
from fluxloom.lbm.cells.labels import labels_of
from fluxloom.lbm.collisions.operators import BGK, Collision
from fluxloom.lbm.lattices import D2Q9, Lattice
from fluxloom.lbm.streaming.memory import GridMemory
from fluxloom.lbm.streaming.schemes import Streaming
from fluxloom.lbm.streaming.space import Space
from fluxloom.lbm.streaming.steps import Constants, collide, even, odd, pull, push
from fluxloom.lbm.streaming.steps_moments import macros, stream
from fluxloom.lbm.units import storage_unit


class Flow:
    """A flow in lattice units; arguments as those of the solver."""

    def __init__(
        self,
        shape: tuple[int, ...],
        sides: Mapping[str, Condition | Sponge],
        bodies: Sequence[Body] = (),
        *,
        viscosity: float = 0.1,
        lattice: Lattice = D2Q9,
        collision: Collision | None = None,
        force: Sequence[float] = (),
        streaming: str = "pull",
        context: fl.Context | None = None,
        dtype: str = "float64",
        layout: Any = None,
    ) -> None:
        ctx = context or fl.Context("cpu", threads=1, tuning=False)
        given = {side[0] for side in sides}
        self.box = Box(shape, tuple(AXES[len(shape) - 1 - a] not in given for a in range(len(shape))))
        memory = GridMemory(ctx, lattice, self.box)
        grid, scheme = memory.grid, strategy_called(Streaming, streaming)
        buffers = tuple(
            ctx.dat(grid, name=name, shape=(lattice.q,), dtype=dtype, layout=layout or fl.SoA())
            for name in ("a", "b")[: scheme.buffers]
        )
        acting = ctx.scalar(np.array(force, dtype=float), "force", dtype="float64") if len(force) else None
        given = tuple(float(x) for x in force)
        self.space = Space(ctx, lattice, self.box, memory, scheme, buffers, storage_unit(dtype), acting, weight=given)
        self.labels = labels_of(self.box, [body.shape for body in bodies])
        self.parts: dict[str, Part] = parts_of(self.space, sides, bodies, self.labels)
        self.force = np.array(force if len(force) else [0.0] * lattice.dimensions)
        self.bulk = self._loops(collision or BGK(), viscosity, dtype)
        self._starts()
        self.steps = 0

    def _loops(self, collision: Collision, viscosity: float, dtype: str) -> list[list[Loop]]:
        force = tuple(self.force) if self.force.any() else None
        constants = Constants(self.space.lattice, collision, viscosity, dtype, force)
        ctx, grid, lattice = self.space.context, self.space.grid, self.space.lattice
        behind, ahead = self.space.memory.behind, self.space.memory.ahead

        def loop(kernel: Kernel, *arguments: Any) -> Loop:
            return Loop(kernel, grid, *arguments, **constants.of(kernel))

        a, b = self.space.buffers[0], self.space.buffers[-1]
        match self.space.streaming.type_name:
            case "in-place":
                return [[loop(even, a, None)], [loop(odd, a[ahead], None)]]
            case "pull":
                return [[loop(pull, a[behind], None, b)], [loop(pull, b[behind], None, a)]]
            case "push":
                return [[loop(push, a, None, b[ahead])], [loop(push, b, None, a[ahead])]]
        above, u = (ctx.dat(grid, shape=(n,), dtype=self.space.real) for n in (1, lattice.dimensions))
        return [[loop(stream, a[behind], b), loop(macros, b, None, above, u), loop(collide, b, above, u, None, a)]]

    def _starts(self) -> None:
        for part in self.parts.values():
            for step in part.begin(0):
                step()

    def fill(self, populations: np.ndarray) -> None:
        """Set ``g`` that left the cells of the box, ``(*shape, q)``; then start outflows."""
        self.steps = 0
        whole = np.zeros((prod(self.box.grid_shape), self.space.lattice.q))
        whole[self._places()] = populations.reshape(-1, self.space.lattice.q) * self.space.unit
        self.space.populations(0).write(whole.reshape(*self.box.grid_shape, -1))
        self._starts()

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where what left the cells of the box is stored."""
        inside = np.zeros(self.box.grid_shape, dtype=bool)
        inside[self.box.inside] = True
        s = self.space
        every = np.arange(s.lattice.q)[None, :]
        return s.streaming.departed(s.box, s.lattice, np.flatnonzero(inside)[:, None], every, self.steps)

    def step(self, count: int = 1) -> None:
        """Advance."""
        for _ in range(count):
            for part in self.parts.values():
                for step in part.loops(self.steps):
                    step()
            for loop in self.bulk[self.steps % len(self.bulk)]:
                loop()
            self.steps += 1

    def force_on(self, name: str) -> np.ndarray:
        """Return the force on a side or body in the last step."""
        force = self.parts[name].force
        assert force is not None
        return force.value

    def torque_on(self, name: str) -> np.ndarray:
        """Return the torque on a side or body in the last step."""
        torque = self.parts[name].torque
        assert torque is not None
        return torque.value

    @property
    def g(self) -> np.ndarray:
        """What left the cells of the box last, ``(*shape, q)``, less the weights; zero where there is no fluid."""
        q = self.space.lattice.q
        stored = self.space.populations(self.steps).read().reshape(-1, q).astype(np.float64)
        found = stored[self._places()].reshape(*self.box.shape, q) / self.space.unit
        return np.where((self.labels[self.box.inside] == 0)[..., None], found, 0.0)

    @property
    def density(self) -> np.ndarray:
        """Density of the cells of the box."""
        return 1.0 + self.g.sum(axis=-1)

    @property
    def velocity(self) -> np.ndarray:
        """Velocity of the cells of the box, ``(*shape, dimensions)``."""
        g = self.g
        momentum = g @ np.array(self.space.lattice.velocities, dtype=float)
        momentum -= 0.5 * self.force * (self.labels[self.box.inside] == 0)[..., None]
        return momentum / (1.0 + g.sum(axis=-1))[..., None]
