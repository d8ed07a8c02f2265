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


class Probes:
    """Points of a flow whose velocity, pressure and scalars are kept.

    Values are linear around the centre of the cell that a point is in, with Gauss's gradient of the cell: exact for
    linear fields on meshes of bricks, of second order on smooth ones. On several ranks everything is collective, and
    each probe is sampled by the rank that owns its cell.

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
        self._set, self._slots = self._share(mine, 1, "probes"), self._share(mine, self.capacity, "slots")
        self._slot, self._scale = flow.context.scalar(0, "slot", dtype="int64"), flow.context.scalar(1.0, "scale")
        self._bind(*self._rows(cells, mine))
        self._times: list[float] = []
        self._blocks: list[Array] = []
        self._filled = 0

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

    def _bind(self, weights: Rows, shares: Rows) -> None:
        """Make the chain of a sample: values at the probes, and these into a slot."""
        flow, ctx, d = self.flow, self.flow.context, self.flow.dimension
        probe = np.repeat(np.arange(self._set.size), self.capacity)
        number = np.tile(np.arange(self.capacity, dtype=np.int32), self._set.size)
        to_probe = ctx.map(self._slots, self._set, probe[:, None], "slots.probe")
        numbers = ctx.dat(self._slots, number, "number")

        def kept(name: str, width: int) -> tuple[Dat, Dat, Loop]:
            found = ctx.dat(self._set, name=name, shape=(width,))
            record = ctx.dat(self._slots, name=f"{name}.record", shape=(width,))
            loop = Loop(keep_sample, self._slots, numbers, self._slot, found[to_probe[0]], record, width=width)
            return found, record, loop

        found, record, keep = kept("flow", d + 1)
        self._records = [record]
        loops = [Loop(sample_flow, self._set, weights.entries, flow.u[weights.pattern], shares.entries,
                      flow.phi[shares.pattern], self._scale, found, d=d), keep]  # fmt: skip
        for name, scalar in flow.scalars.all.items():
            found, record, keep = kept(name, 1)
            self._records.append(record)
            loops += [Loop(sample_scalar, self._set, weights.entries, scalar.theta[weights.pattern], found), keep]
        self._sample = Chain(loops, name="probes")

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
        self._sample()
        self._times.append(self.flow.time)
        self._filled += 1
        if self._filled == self.capacity:
            self._fetch()

    def _fetch(self) -> None:
        """Read what the device has kept, ``(samples, probes of this rank, width)``."""
        shape = (self._set.size, self.capacity)
        found = [dat.read().reshape(*shape, *dat.shape)[:, : self._filled] for dat in self._records]
        self._blocks.append(np.moveaxis(np.concatenate(found, axis=2), 0, 1).copy())
        self._filled = 0

    def series(self) -> ProbeSeries:
        """Return all samples. Collective; every rank gets the same.

        Raises
        ------
        SolverError
            If there is none.
        """
        if not self._times:
            raise SolverError("probes: there is no sample yet: call sample() after steps")
        if self._filled:
            self._fetch()
        d, here = self.flow.dimension, np.concatenate(self._blocks)
        whole = np.empty((len(self._times), len(self.names), here.shape[2]))
        for mine, values in self.flow.context.comm.allgather((self._mine, here)):
            whole[:, mine] = values
        scalars = {name: whole[:, :, d + 1 + k] for k, name in enumerate(self.flow.scalars.all)}
        time = np.array(self._times)
        return ProbeSeries(self.names, self.points, time, whole[:, :, :d], whole[:, :, d], scalars)

    def reset(self) -> None:
        """Forget all samples."""
        self._times, self._blocks, self._filled = [], [], 0


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
