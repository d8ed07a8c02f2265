"""What a lattice Boltzmann flow is at a step, on its way to the host while the next steps run.

Density and velocity are put into dats of their own behind the step: one loop. Then the device copies these to the host
beside what it is asked for next (`fluxloom.device.transfer_queue`), and the host waits for the copies, draws and writes
in a thread of its own, or, on several ranks, some steps later, for all of them have to take part. Where the device
works in the memory of the host there is nothing to copy, and the work is done at once: its cores are busy with the
steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import SoA
from fluxloom.device.buffer import RemoteBuffer
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.runtime import unique
from fluxloom.dsl.run.loop import Loop
from fluxloom.flows.lattice.ranks import gather_rows
from fluxloom.lbm.streaming.output import moments
from fluxloom.solvers.lattice.flow import LatticeBoltzmann

__all__ = ["BackgroundWriter", "HostCopy", "Layers", "Snapshot"]

Array = npt.NDArray[np.float64]
Work = Callable[[], None]

_AHEAD = 4
"""Steps that ranks whose devices have memory of their own are ahead of the work on what was taken."""


class HostCopy:
    """Density and velocity of some cells at a step.

    Parameters
    ----------
    flow
        What is looked at.
    above, u
        Density less one, and velocity; nobody else writes them.

    Attributes
    ----------
    step
        At which they were taken last; negative: never.
    loops
        What has set the dats.
    """

    forgets = ("loops",)

    loops: Sequence[Loop]

    def __init__(self, flow: LatticeBoltzmann, above: Dat, u: Dat) -> None:
        self._flow, self.above, self.u = flow, above, u
        self._courier = flow.context.device.transfer_queue()
        self.step = -1

    def _look(self) -> None:
        """Run the loop that sets the dats."""
        raise NotImplementedError

    def take(self) -> None:
        """Take the values now; what was taken before is lost."""
        self._look()
        if self._courier is not None:
            self._flow.context.settle()
            buffers = (self.above.buffer, self.u.buffer)
            self._courier.down(*(buffer for buffer in buffers if isinstance(buffer, RemoteBuffer)))
        self.step = self._flow.steps

    def arrived(self) -> None:
        """Wait until the host has the values; it does not wait for the steps that follow."""
        if self._courier is not None:
            self._courier.wait()


class Snapshot(HostCopy):
    """Density and velocity of all cells; on several ranks of this rank's. Taking them is collective.

    Parameters
    ----------
    flow
        What is looked at.
    window
        Slices that cut this rank's cells out of an array over the box.
    """

    def __init__(self, flow: LatticeBoltzmann, window: tuple[slice, ...]) -> None:
        memory = flow.memory
        above = memory.dat("taken density", dtype=flow.real)
        super().__init__(flow, above, memory.dat("taken velocity", flow.lattice.dimensions, dtype=flow.real))
        self._window = window
        self.loops = []

    def _look(self) -> None:
        loop = self._flow.look(moments, self.above, self.u)
        self.loops = unique([*self.loops, loop])
        loop()

    def density(self) -> Array:
        """Return the density, ``(*cells,)``; one where there is no fluid."""
        found = 1.0 + self._flow.memory.read(self.above).astype(np.float64)
        return np.where(self._flow.fluid[self._window], found, 1.0)

    def velocity(self) -> npt.NDArray[Any]:
        """Return the velocity, ``(*cells, d)``, slowest axis first; zero where there is no fluid."""
        return np.where(self._flow.fluid[self._window][..., None], self._flow.memory.read(self.u), 0.0)


class Layers(HostCopy):
    """Density and velocity of some layers of cells across an axis, in space: as much as a picture needs. Collective.

    Parameters
    ----------
    flow
        What is looked at.
    axis, places
        The layers.
    """

    def __init__(self, flow: LatticeBoltzmann, axis: int, places: Sequence[int]) -> None:
        self._shape = tuple(len(places) if k == axis else n for k, n in enumerate(flow.box.shape))
        at = np.meshgrid(
            *(np.array(places) if k == axis else np.arange(n) for k, n in enumerate(flow.box.shape)), indexing="ij"
        )
        self._fluid = np.flatnonzero(flow.fluid.take(np.array(places), axis=axis))
        space, ctx, d = flow.space, flow.context, flow.lattice.dimensions
        self._over = over = space.elements(flow.box.place([x.ravel()[self._fluid] for x in at]), "layers")
        above = ctx.dat(over.set, name="taken density", dtype=flow.real)
        u = ctx.dat(over.set, name="taken velocity", shape=(d,), dtype=flow.real, layout=SoA())
        super().__init__(flow, above, u)
        self.loops = flow.look_at(over, above, u, "layers")

    def _look(self) -> None:
        self.loops[self._flow.steps % len(self.loops)]()

    def values(self) -> tuple[Array, Array] | None:
        """Return density, ``(*cells,)``, and velocity, ``(*cells, d)``, slowest axis first, on rank 0; else None.

        They are one and zero where there is no fluid. Collective.
        """
        comm, mine = self._flow.context.comm, np.concatenate([self.above.read().reshape(-1, 1), self.u.read()], axis=1)
        which, rows = gather_rows(comm, self._over.which), gather_rows(comm, mine)
        if which is None or rows is None:
            return None
        found = np.zeros((int(np.prod(self._shape)), mine.shape[1]))
        found[self._fluid[np.concatenate(which)]] = np.concatenate(rows)
        found = found.reshape(*self._shape, -1)
        return 1.0 + found[..., 0], found[..., 1:]


class BackgroundWriter:
    """Work of the host on what was taken, beside the steps that follow; in the order in which it was asked for.

    Parameters
    ----------
    flow
        What is looked at.
    window
        Slices that cut this rank's cells out of an array over the box.
    """

    def __init__(self, flow: LatticeBoltzmann, window: tuple[slice, ...]) -> None:
        self._flow, self._window = flow, window
        apart, alone = not flow.context.device.shared, not flow.context.distributed
        self._threaded = apart and alone
        self._pool: ThreadPoolExecutor | None = None
        self._ahead = _AHEAD if apart else 0
        self._running: deque[tuple[HostCopy, Future[None]]] = deque()
        self._waiting: deque[tuple[HostCopy, int, Work]] = deque()
        self._known: list[HostCopy] = []

    @cached_property
    def snapshot(self) -> Snapshot:
        """Of all cells; for all that look at them at the same step."""
        return Snapshot(self._flow, self._window)

    @property
    def loops(self) -> Sequence[Loop]:
        """What has taken something so far."""
        return [loop for taken in self._known for loop in taken.loops]

    def ask(self, taken: HostCopy, work: Work) -> None:
        """Take the values of this step, unless that has been done, and have work done on them. Collective.

        Parameters
        ----------
        taken
            What the work is on; it is not taken anew before the work is done.
        work
            On several ranks it is collective.
        """
        if taken.step != self._flow.steps:
            if taken.step < 0:
                self._known.append(taken)
            self.settle(taken)
            taken.take()

        def begin() -> None:
            taken.arrived()
            work()

        if self._threaded:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="pictures")
            self._running.append((taken, self._pool.submit(begin)))
        elif self._ahead:
            self._waiting.append((taken, self._flow.steps + self._ahead, begin))
        else:
            begin()

    def stepped(self) -> None:
        """Do what is due behind a step; raise what went wrong in the meantime. Collective."""
        while self._running and self._running[0][1].done():
            self._running.popleft()[1].result()
        while self._waiting and self._waiting[0][1] <= self._flow.steps:
            self._waiting.popleft()[2]()

    def settle(self, taken: HostCopy | None = None) -> None:
        """Wait for all work, or for that on something and what was asked for before; raise what went wrong."""
        while self._has(taken, [item[0] for item in self._running]):
            self._running.popleft()[1].result()
        while self._has(taken, [item[0] for item in self._waiting]):
            self._waiting.popleft()[2]()

    @staticmethod
    def _has(taken: HostCopy | None, kept: Sequence[HostCopy]) -> bool:
        return bool(kept) if taken is None else any(one is taken for one in kept)

    def close(self) -> None:
        """Wait for all work, and end; what is asked for later begins anew."""
        self.settle()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
