"""Planes whose first and last levels one device computes and whose middle levels another one does.

A batch is three sequences: *first* on the near device (low levels of the reduction, columns of the middle levels into a
box), *middle* on the far one (high levels, down and up again), *last* on the near device (low levels of the
substitution). While the far device is busy with one batch the near one works on others, and boxes travel beside the
kernels.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.device.base import Buffer, Call
from fluxloom.device.buffer import RemoteBuffer
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.separable.jobs import Sums
from fluxloom.linalg.direct.separable.native import Machine
from fluxloom.linalg.direct.separable.program import Program
from fluxloom.linalg.direct.separable.roots import Tree
from fluxloom.linalg.direct.separable.solver import Timed

__all__ = ["Around", "Batch", "moved_columns", "pipeline"]


@dataclass(frozen=True, eq=False)
class Around:
    """What the near device does before and after a batch, and the memory of users that it reads and writes."""

    before: tuple[Call, ...] = ()
    after: tuple[Call, ...] = ()
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()


def moved_columns(program: Program, split: int) -> npt.NDArray[np.int32]:
    """Return the columns that the levels from ``split`` on read and write: their centres."""
    tree = Tree(program.problem.y.length, program.problem.y.periodic)
    return np.array(sorted(block.centre for blocks in tree.levels[split:] for block in blocks), dtype=np.int32)


class Batch:
    """Planes that are solved together.

    Parameters
    ----------
    near, far
        Machines with the same program and planes: the first for the levels below ``split``, the second for the others.
    split
        First level of the far device; the number of levels: it has nothing to do.
    pinned
        Plane in which the problem is singular (-1: in none).
    around
        See there.
    """

    def __init__(self, program: Program, near: Machine, far: Machine, split: int, pinned: int, around: Around) -> None:
        self.program, self.near, self.far, self.split = program, near, far, split
        low, high = range(split), range(split, program.levels)
        down = [near.stage(stage, pinned) for stage in program.part("reduction", low)]
        up = [near.stage(stage, pinned) for stage in program.part("substitution", low)]
        self.box: DeviceArray | None = None
        self.transfer_queue = None
        self.middle: Steps | None = None
        if split >= program.levels:
            whole = [*around.before, *down, *up, *around.after]
            self.first = Steps(near.device, whole, around.reads, around.writes)
            self.last: Steps | None = None
            return
        columns = moved_columns(program, split)
        box = DeviceArray.zeros(near.device, (near.planes, columns.size, near.shape.rows), near.dtype)
        pack, unpack = (near.move(columns, box, back=back) for back in (False, True))
        self.first = Steps(near.device, [*around.before, *down, pack], around.reads, [box.buffer])
        self.last = Steps(near.device, [unpack, *up, *around.after], [box.buffer, *around.writes], around.writes)
        there = DeviceArray.of(far.device, box.host(write=True))
        inside = [
            far.stage(stage, pinned) for phase in ("reduction", "substitution") for stage in program.part(phase, high)
        ]
        ends = [far.move(columns, there, back=back) for back in (True, False)]
        self.middle = Steps(far.device, [ends[0], *inside, ends[1]])
        self.box, self._there = box, there
        self.transfer_queue = near.device.transfer_queue() if isinstance(box.buffer, RemoteBuffer) else None

    @property
    def moved(self) -> int:
        """Bytes that travel one way."""
        return 0 if self.box is None else self.box.buffer.nbytes

    def begin(self) -> None:
        """Ask the near device for the low levels of the reduction, and for the box."""
        self.first()
        if self.transfer_queue is not None and self.box is not None:
            assert isinstance(self.box.buffer, RemoteBuffer)
            self.transfer_queue.down(self.box.buffer)

    def work(self) -> None:
        """Wait for the box and run the high levels."""
        if self.box is None or self.middle is None:
            return
        if self.transfer_queue is not None:
            self.transfer_queue.wait()
        self.box.host()
        self.middle()
        self.middle.device.synchronize()

    def end(self) -> None:
        """Send the box back and ask the near device for the rest."""
        if self.box is None or self.last is None:
            return
        self.box.host(write=True)
        if self.transfer_queue is not None:
            assert isinstance(self.box.buffer, RemoteBuffer)
            self.transfer_queue.up(self.box.buffer)
            self.transfer_queue.join()
        self.last()

    def __call__(self) -> None:
        """Solve."""
        self.begin()
        self.work()
        self.end()

    def measure(self) -> list[Timed]:
        """Solve once with waits in between; return the stages in order, with the time of each and of the transfers."""
        device = self.near.device
        parts = [steps for steps in (self.first, self.middle, self.last) if steps is not None]
        before, device.profile = device.profile, True
        try:
            for steps in parts:
                steps.reset()
            self.first()
            device.synchronize()
            down = up = 0.0
            if self.box is not None and self.middle is not None and self.last is not None:
                start = time.perf_counter()
                self.box.host()
                down = time.perf_counter() - start
                self.middle()
                self.middle.device.synchronize()
                self.box.host(write=True)
                start = time.perf_counter()
                self.box.buffer.device()
                device.synchronize()
                up = time.perf_counter() - start
                self.last()
            device.synchronize()
            seconds = [steps.seconds for steps in parts]
        finally:
            device.profile = before
        return self._timed(seconds, down, up)

    def _timed(self, seconds: Sequence[dict[str, float]], down: float, up: float) -> list[Timed]:
        found: list[Timed] = []
        for stage in self.program.stages:
            far = stage.level >= self.split
            where = self.far.device.name if far else self.near.device.name
            spent = seconds[1] if far else seconds[0 if stage.phase == "reduction" or len(seconds) == 1 else -1]
            systems = 0 if isinstance(stage, Sums) else int(stage.roots.size) * self.near.planes
            found.append(Timed(stage.phase, stage.level, stage.kernel, where, systems, spent.get(stage.name, 0.0)))
        if self.box is None:
            return found
        first = next(k for k, one in enumerate(found) if one.device == self.far.device.name and one.level >= self.split)
        last = max(k for k, one in enumerate(found) if one.level >= self.split) + 1
        here = self.near.device.name
        transfers = (
            Timed("transfer", self.split, "down", here, 0, down),
            Timed("transfer", self.split, "up", here, 0, up),
        )
        return [*found[:first], transfers[0], *found[first:last], transfers[1], *found[last:]]


def pipeline(batches: Sequence[Batch]) -> None:
    """Solve batches one behind the other: the near device is always one batch ahead of the far one."""
    batches[0].begin()
    for number, batch in enumerate(batches):
        if number + 1 < len(batches):
            batches[number + 1].begin()
        batch.work()
        batch.end()
