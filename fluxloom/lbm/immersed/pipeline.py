"""The work on markers done by the host, while the device of the flow does the step of all cells.

What arrives at the cells around the markers (density, velocity without force) becomes a message to the host, the forces
of these cells one back. The step of all cells needs neither: messages travel and the host computes beside it. What
follows, on the device, is the step again on the cells around the markers, with the force.

On a device that shares its memory with the host the same is done in order, without copies.

On several ranks the work on markers is always done on fields of its own, of this rank's cells, by the host or by the
device of the flow: groups of bodies then know of no ranks, but for sums (`fluxloom.lbm.immersed.groups.Group.sample`).
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import SolverError
from fluxloom.device.base import Buffer
from fluxloom.device.buffer import RemoteBuffer
from fluxloom.device.transfer_queue import landing
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.sets import Set, Subset
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.lbm.body_force import UniformForce
from fluxloom.lbm.immersed.markers.data import Fields, Step
from fluxloom.lbm.immersed.markers.kernels import clear
from fluxloom.lbm.immersed.markers.messages import Copies
from fluxloom.linalg.direct.calls import HostStep, sequence
from fluxloom.perf.stopwatch import Stopwatch

__all__ = ["HostSide"]

PARTS = ("ahead", "waiting", "markers", "asking")

_SPARE = 1.25
"""By how much a message is made longer than it has to be when the cells may become more."""


class HostSide:
    """The host's part of an immersed boundary.

    Parameters
    ----------
    fields
        Those of the flow.
    still
        The cells around the markers, ascending, if these never move: the host's fields have these cells only. None:
        they are as large as the flow's, for addresses that are computed.
    threads
        Of the host; 0: all.
    here
        Whether the work is done by the device of the flow after all, as on several ranks.

    Attributes
    ----------
    fields
        Those of the host, where groups of bodies work.
    seconds
        Of the host since the last restart, by part: ``ahead`` (bodies move, weights are found: nothing of the device is
        needed), ``waiting`` for the message, ``markers`` (interpolation, forces, spreading), ``asking`` the device.

    Raises
    ------
    SolverError
        If the device runs no generated code.
    """

    def __init__(
        self, fields: Fields, still: npt.NDArray[np.int64] | None, threads: int, *, here: bool = False
    ) -> None:
        context = fields.context
        if not context.device.native:
            raise SolverError("pipeline=OnHost() copies by generated code, which this device runs not: use OnDevice()")
        self._near, self._still = fields, still if fields.window is None else self._owned(fields, still)
        # What has no part in ranks: for the message, which is of this rank alone.
        alone = context
        if context.distributed:
            alone = Context(context.device, schedule=context.schedule, tuning=context.tuning, check=context.check)
        apart = context.device.items and not here
        self._alone, self._host = alone, alone
        if apart:
            self._host = Context("cpu", threads=threads, tuning=context.tuning, check=context.check)
        over, d, real = self._set(), fields.box.dimensions, fields.real
        above, u, force = (
            self._host.dat(over, name=f"host {name}", shape=shape, dtype=real, layout=SoA())
            for name, shape in (("excess", ()), ("velocity", (d,)), ("force", (d,)))
        )
        comm = context.comm if context.distributed else None
        self.fields = Fields(self._host, fields.box, above, u, force, self._still, fields.window, comm)
        self._courier = context.device.transfer_queue() if apart else None
        self._copies = {
            "collect": Copies(context, (fields.u, fields.above), back=False),
            "unpack": Copies(self._host, (u, above), back=True),
            "pack": Copies(self._host, (force,), back=False),
            "distribute": Copies(context, (fields.force,), back=True),
        }
        self._apart, self._room = apart, 0
        self.restart()

    @staticmethod
    def _owned(fields: Fields, still: npt.NDArray[np.int64] | None) -> npt.NDArray[np.int64] | None:
        """Return those of some cells that this rank has, by their numbers in the grid."""
        assert fields.window is not None
        return None if still is None else still[fields.window.find(fields.box, still)[0]]

    def _set(self) -> Set:
        """Return what the host's fields are on; at least one element, of which nothing is wanted if there is none."""
        if self._still is not None:
            return self._host.set(max(1, self._still.size), "host support")
        if (window := self._near.window) is not None:
            return self._host.grid(window.shape, "host cells")
        return self._host.grid(self._near.box.grid_shape, "host cells", periodic=True)

    def connect(
        self, cells: Subset, background: UniformForce, ahead: Sequence[Step], markers: Sequence[Step]
    ) -> None:
        """Take over the steps of the groups.

        Parameters
        ----------
        cells
            The support on the flow's grid.
        background
            The force of every cell.
        ahead, markers
            Steps on the host's fields that need nothing from the device, and those that follow.
        """
        self._cells = cells
        self._find_places()
        over = self.fields.force.set
        if self._still is None:
            over = self._here = Subset(over, cells.indices, "host support", capacity=cells.most)
            self._listed: npt.NDArray[np.int32] = over.indices
        else:
            self._listed = np.arange(cells.size, dtype=np.int32)
        self._clear = Loop(clear, over, self.fields.force, uniform=background)
        self._ahead = sequence([self._clear, *ahead], "immersed ahead")
        self._markers = sequence(markers, "immersed markers") if markers else None

    def assign(self, cells: npt.NDArray[np.int64]) -> None:
        """Take note that the flow's support has these cells of this rank now."""
        self._find_places()
        if self._still is None:
            self._here.assign(cells)
            self._listed = self._here.indices

    def _find_places(self) -> None:
        """Find where the cells of the support are stored, on several ranks: the fields have layers around."""
        position = self._cells.parent.position
        self._places = None if position is None else position[self._cells.indices]

    def set_force(self, background: UniformForce) -> None:
        """Take another force of every cell."""
        self._clear.set(uniform=background)

    def restart(self) -> None:
        """Forget times."""
        self.steps, self.seconds = 0, dict.fromkeys(PARTS, 0.0)

    # ------------------------------------------------------------------------------------------- a step
    def ask(self, name: str) -> HostStep:
        """Return the step that asks for the message, behind the loop that finds what arrives."""
        return HostStep(self._near.context, self._ask, name)

    def work(self, name: str, *, serial: bool) -> HostStep:
        """Return the step in which the host finds the forces; ``serial``: when the device has nothing else to do."""
        return HostStep(self._near.context, self._work_alone if serial else self._work, name)

    def _ask(self) -> None:
        self.seconds["asking"] += Stopwatch().timed(self._send)

    def _send(self) -> None:
        """Let density and velocity on the support set out."""
        self._make_room()
        self._copies["collect"](self._members, self._cells.size, self._message.buffer)
        if self._courier is not None:
            self._courier.down((self._remote, 0, self._bytes(self._near.box.dimensions + 1)))

    def _receive(self) -> None:
        """Take them over into the host's fields."""
        self._copies["unpack"](self._listed, self._cells.size, self._there)

    def fetch(self) -> None:
        """Bring density and velocity on the support to the host's fields, between two steps."""
        self._send()
        if self._courier is not None:
            self._courier.wait()
        self._receive()

    def _work_alone(self) -> None:
        self.seconds["waiting"] += Stopwatch().timed(self._near.context.synchronize)
        self._work()

    def _work(self) -> None:
        times = [perf_counter()]
        self._ahead()
        times.append(perf_counter())
        if self._courier is not None:
            self._courier.wait()
        times.append(perf_counter())
        count = self._cells.size
        self._receive()
        if self._markers is not None:
            self._markers()
        self._copies["pack"](self._listed, count, self._there)
        self._host.synchronize()
        times.append(perf_counter())
        if self._courier is not None:
            self._courier.up((self._remote, 0, self._bytes(self._near.box.dimensions)))
            self._courier.join()
        self._copies["distribute"](self._members, count, self._message.buffer)
        times.append(perf_counter())
        for part, begin, end in zip(PARTS, times[:-1], times[1:], strict=True):
            self.seconds[part] += end - begin
        self.steps += 1

    @property
    def chains(self) -> list[Chain]:
        """The loops of the host."""
        parts = [self._ahead] if self._markers is None else [self._ahead, self._markers]
        return [chain for part in parts for chain in ([part] if isinstance(part, Chain) else part.chains)]

    # ---------------------------------------------------------------------------------------- messages
    @property
    def _members(self) -> Buffer | npt.NDArray[np.int32]:
        """The cells of the support, as the flow's device takes them."""
        if self._places is not None:
            return self._places
        return self._cells.indices if self._cells.most is None else self._cells.members

    def _bytes(self, components: int) -> int:
        return self._cells.size * components * self._message.scalar.size

    @property
    def _remote(self) -> RemoteBuffer:
        buffer = self._message.buffer
        assert isinstance(buffer, RemoteBuffer)
        return buffer

    def _make_room(self) -> None:
        """Let the message be long enough for all cells of the support."""
        if self._room and self._cells.size <= self._room:
            return
        if self._courier is not None:
            self._courier.wait()
        self._room = max(1, self._cells.size if self._still is not None else int(_SPARE * self._cells.size))
        context, parts, real = self._alone, self._near.box.dimensions + 1, self._near.real
        self._message: Dat = context.dat(context.set(parts * self._room, "message"), name="message", dtype=real)
        buffer = self._message.buffer
        self._there: Any = buffer
        if self._apart and isinstance(buffer, RemoteBuffer):
            memory = landing(buffer)
            self._there = self._host.device.wrap(memory)
            self._memory = memory
