"""Probes: what a flow does at points, step by step, kept on the device and read in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError, did_you_mean
from fluxloom.dsl.chain import Chain
from fluxloom.dsl.dats import Dat
from fluxloom.dsl.loop import Loop
from fluxloom.dsl.parts import Part
from fluxloom.dsl.sets import Set
from fluxloom.fv.flow_samples import keep_sample, locate, sample_flow, sample_scalar
from fluxloom.fv.sides import Family
from fluxloom.fv.wall_forces import pressure_slopes
from fluxloom.solvers.flow_signals import Signal
from fluxloom.solvers.flow_spaces import Rows, Space
from fluxloom.solvers.incompressible import Incompressible

__all__ = ["ProbeSeries", "Probes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


_LARGEST = 4096
"""Samples of one block: each sample passes over its block."""


@dataclass(frozen=True)
class ProbeSeries:
    """What probes have seen.

    Attributes
    ----------
    names, points
        Of the probes, and their coordinates ``(probes, d)``.
    time : (n,)
        Of the samples.
    velocity : (n, probes, d)
        At the probes.
    pressure : (n, probes)
        Kinematic, of the last step.
    scalars
        Name to values, ``(n, probes)``.
    """

    names: tuple[str, ...]
    points: Array
    time: Array
    velocity: Array
    pressure: Array
    scalars: Mapping[str, Array]

    def signal(self, probe: str, what: str) -> Signal:
        """Return what one probe has seen of ``"u"``, ``"v"``, ``"w"``, ``"p"`` or a scalar.

        Raises
        ------
        SolverError
            If there is no such probe or value.
        """
        if probe not in self.names:
            raise SolverError(f"no probe {probe!r}{did_you_mean(probe, self.names)} (probes: {', '.join(self.names)})")
        k = self.names.index(probe)
        columns = {"uvw"[i]: self.velocity[:, k, i] for i in range(self.velocity.shape[2])}
        columns |= {"p": self.pressure[:, k]} | {name: values[:, k] for name, values in self.scalars.items()}
        if what not in columns:
            known = ", ".join(columns)
            raise SolverError(f"probe {probe!r}: no {what!r}{did_you_mean(what, columns)} (it has {known})")
        return Signal(self.time, columns[what])


@dataclass(frozen=True, eq=False)
class _Block:
    """Samples that the device keeps: ``(probes of this rank * capacity, width)`` of the flow and of each scalar."""

    capacity: int
    records: tuple[Dat, ...]
    sample: Chain

    def read(self, probes: int, filled: int) -> Array:
        """Return the first samples, ``(filled, probes, width)``."""
        found = [dat.read().reshape(probes, self.capacity, *dat.shape)[:, :filled] for dat in self.records]
        return np.moveaxis(np.concatenate(found, axis=2), 0, 1).copy()


class Probes:
    """Points of a flow whose velocity, pressure and scalars are kept.

    Values are linear around the centre of the cell that a point is in, with Gauss's gradient of the cell: exact for
    linear fields on meshes of bricks, of second order on smooth ones. On several ranks everything is collective, and
    each probe is sampled by the rank that owns its cell.

    Where checkpoints watch the flow, samples stay on the device, in blocks that grow: they are part of the checkpoint,
    and the host looks at them only in `series`.

    Parameters
    ----------
    flow
        Whose.
    points
        Name to coordinates ``(d,)``.
    capacity
        Samples that the device keeps before the host reads them all at once.

    Raises
    ------
    SolverError
        If a point lies outside the mesh, is not finite or has the wrong number of coordinates, or there are none.
    """

    def __init__(self, flow: Incompressible, points: Mapping[str, Sequence[float]], capacity: int = 256) -> None:
        if capacity < 1:
            raise SolverError(f"probes: capacity: a number of at least 1 is wanted, not {capacity!r}")
        self.flow, self.names, self.capacity = flow, tuple(points), int(capacity)
        self.points = _places(points, flow.dimension)
        mine, cells = self._owners()
        self._mine = mine
        self._set = self._share(mine, 1, "probes")
        self._slot, self._scale = flow.context.scalar(0, "slot", dtype="int64"), flow.context.scalar(1.0, "scale")
        self._weights, self._shares = self._rows(cells, mine)
        self._block = self._made(self.capacity)
        self.reset()

    # ------------------------------------------------------------------------------ set-up
    def _owners(self) -> tuple[Index, Index]:
        """Return the probes that this rank samples, and their cells. Collective."""
        comm = self.flow.context.comm
        cells, out = locate(self.flow.volumes, self.points)
        every = np.array(comm.allgather(out))
        if (lost := np.flatnonzero(~np.isfinite(every.min(axis=0)))).size:
            k = int(lost[0])
            raise SolverError(f"probe {self.names[k]!r} at {tuple(self.points[k].tolist())} is not in the mesh")
        mine = np.flatnonzero(every.argmin(axis=0) == comm.rank)
        return mine.astype(np.int64), cells[mine]

    def _share(self, mine: Index, each: int, name: str) -> Set:
        """Return a set of so many elements for each probe. Collective."""
        ctx, nothing = self.flow.context, np.zeros(0, dtype=np.int64)
        numbers = (mine[:, None] * each + np.arange(each)).ravel()
        total = len(self.names) * each
        part = Part.of_reads(ctx.comm, nothing, numbers, nothing, nothing, total) if ctx.ranked else total
        return ctx.set(part, name)

    def _made(self, capacity: int) -> _Block:
        """Return an empty block, and the chain of a sample: values at the probes, and these into a slot. Collective."""
        flow, ctx, d = self.flow, self.flow.context, self.flow.dimension
        weights, shares, slots = self._weights, self._shares, self._share(self._mine, capacity, "slots")
        probe = np.repeat(np.arange(self._set.size), capacity)
        number = np.tile(np.arange(capacity, dtype=np.int32), self._set.size)
        to_probe, numbers = ctx.map(slots, self._set, probe[:, None], "slots.probe"), ctx.dat(slots, number, "number")

        def kept(name: str, width: int) -> tuple[Dat, Dat, Loop]:
            found = ctx.dat(self._set, name=name, shape=(width,))
            record = ctx.dat(slots, name=f"{name}.record", shape=(width,))
            loop = Loop(keep_sample, slots, numbers, self._slot, found[to_probe[0]], record, width=width)
            return found, record, loop

        found, record, keep = kept("flow", d + 1)
        records = [record]
        loops = [Loop(sample_flow, self._set, weights.entries, flow.u[weights.pattern], shares.entries,
                      flow.phi[shares.pattern], self._scale, found, d=d), keep]  # fmt: skip
        for name, scalar in flow.scalars.all.items():
            found, record, keep = kept(name, 1)
            records.append(record)
            loops += [Loop(sample_scalar, self._set, weights.entries, scalar.theta[weights.pattern], found), keep]
        return _Block(capacity, tuple(records), Chain(loops, name="probes"))

    def _rows(self, cells: Index, mine: Index) -> tuple[Rows, Rows]:
        """Return the weights of elements for values at the probes, and those of cells for the pressure."""
        known, spaces = self.flow.matrices, self.flow.spaces
        reach = self.points[mine] - self.flow.volumes.centres[cells]
        return (
            _weights(self._set, known.velocity_gradient(), spaces.elements, cells, reach, "probes.weights"),
            _weights(self._set, pressure_slopes(known), spaces.cells, cells, reach, "probes.shares"),
        )

    # ------------------------------------------------------------------------------ sampling
    def sample(self) -> None:
        """Keep what is at the probes now."""
        self._slot.value, self._scale.value = self._filled, 1.0 / self.flow.impulse
        self._block.sample()
        self._times.append(self.flow.time)
        self._filled += 1
        if self._filled == self._block.capacity:
            self._turn()

    def _turn(self) -> None:
        """Make room: the host takes the samples, or leaves them where a checkpoint finds them. Collective."""
        self._full.append(self._block)
        if self.flow.context.observer is None:
            self._fetch()
        else:  # loops may be skipped, as a run goes on from a checkpoint: nobody may look at what they would write
            self._block = self._made(min(2 * self._block.capacity, max(_LARGEST, self.capacity)))
        self._filled = 0

    def _fetch(self) -> None:
        """Read the full blocks."""
        self._values += [block.read(self._set.size, block.capacity) for block in self._full]
        self._full = []

    def series(self, first: int = 0) -> ProbeSeries:
        """Return all samples, or those from the one with the number ``first`` on. Collective; all ranks get the same.

        Raises
        ------
        SolverError
            If there is none.
        CheckpointError
            If a run catches up with its checkpoint: the samples are not there yet.
        """
        if not 0 <= first < len(self._times):
            raise SolverError(f"probes: there is no sample yet from number {first} on: call sample() after steps")
        self._fetch()
        blocks = [*self._values, *([self._block.read(self._set.size, self._filled)] if self._filled else [])]
        begins = np.cumsum([0, *(len(block) for block in blocks)])
        here = np.concatenate([block[max(0, first - begin) :] for block, begin in zip(blocks, begins, strict=False)])
        d, time = self.flow.dimension, np.array(self._times[first:])
        whole = np.empty((time.size, len(self.names), here.shape[2]))
        for mine, values in self.flow.context.comm.allgather((self._mine, here)):
            whole[:, mine] = values
        scalars = {name: whole[:, :, d + 1 + k] for k, name in enumerate(self.flow.scalars.all)}
        return ProbeSeries(self.names, self.points, time, whole[:, :, :d], whole[:, :, d], scalars)

    def reset(self) -> None:
        """Forget all samples."""
        self._times: list[float] = []
        self._values: list[Array] = []
        self._full: list[_Block] = []
        self._filled = 0


def _places(points: Mapping[str, Sequence[float]], d: int) -> Array:
    """Return the coordinates of points, ``(n, d)``."""
    if not points:
        raise SolverError("probes: at least one point is wanted")
    for name, point in points.items():
        if np.shape(point) != (d,) or not np.isfinite(np.asarray(point, dtype=np.float64)).all():
            raise SolverError(f"probe {name!r}: {d} finite coordinates are wanted, not {point!r}")
    return np.array([tuple(point) for point in points.values()], dtype=np.float64)


def _weights(over: Set, gradient: Family, space: Space, cells: Index, reach: Array, name: str) -> Rows:
    """Return the rows ``1 + reach . G`` of some cells; the cell itself comes first in each."""
    columns, values, lengths = [], [], []
    for cell, away in zip(cells.tolist(), reach, strict=True):
        row = slice(int(gradient.offsets[cell]), int(gradient.offsets[cell + 1]))
        columns += [np.array([cell]), gradient.columns[row]]
        values += [np.ones(1), gradient.values[row] @ away]
        lengths.append(1 + row.stop - row.start)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    place = space.local(np.concatenate([np.zeros(0, dtype=np.int64), *columns]).astype(np.int64))
    pattern = over.context.ragged(over, space.set, offsets, place, name)
    return Rows(pattern, over.context.dat(pattern.entries, np.concatenate([np.zeros(0), *values]), f"{name}.values"))
