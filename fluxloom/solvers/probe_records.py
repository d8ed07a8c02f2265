"""Points of a flow, and what is there step after step: kept on the device, and read in blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.parts import Part
from fluxloom.dsl.declare.sets import Set
from fluxloom.dsl.run.chain import Chain
from fluxloom.dsl.run.loop import Loop
from fluxloom.fv.flow_samples import keep_sample, locate
from fluxloom.fv.geometry.volumes import ControlVolumes
from fluxloom.solvers.flow_spaces import Rows, Space

__all__ = ["Outside", "ProbePlaces", "ProbePoints", "ProbeRecords", "Source"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

Outside = Literal["error", "leave out"]
"""What becomes of points outside of the mesh."""

_LARGEST = 4096
"""Samples of one block: each sample passes over its block."""


@dataclass(frozen=True)
class Source:
    """Numbers at points.

    Attributes
    ----------
    name, width
        Of the numbers, and how many there are at a point.
    find
        Returns the loop over `ProbePoints.set` that finds them, given where to put them.
    """

    name: str
    width: int
    find: Callable[[Dat], Loop]


class ProbePlaces:
    """Points of a mesh, each of which belongs to one rank. Collective on several.

    Parameters
    ----------
    context
        Of the flow.
    points
        Name to coordinates ``(d,)``.
    dimension
        ``d``.
    find
        Of places ``(n, d)``: the number of the cell of each on this rank, and how far out of it the place is; infinite
        where this rank has none.
    outside
        Whether points outside of the mesh are an error, or left out.
    numbers
        Of the cells of this rank in the whole mesh: of ranks that have a place equally far out, that with the lower
        one has it. None: the lower rank.

    Attributes
    ----------
    names, places
        Of all points that are in the mesh, and their coordinates ``(n, d)``.
    mine, cells
        Numbers of those of this rank, and the cells that they are in.
    given
        What numbers those of this rank had among the places that `find` was asked for.
    set
        The points as a set.

    Raises
    ------
    SolverError
        If a point lies outside the mesh and may not, or all do; if one is not finite or has the wrong number of
        coordinates, or there are none.
    """

    def __init__(
        self,
        context: Context,
        points: Mapping[str, Sequence[float]],
        dimension: int,
        find: Callable[[Array], tuple[Index, Array]],
        outside: Outside = "error",
        *,
        numbers: Index | None = None,
    ) -> None:
        names, places = tuple(points), _places(points, dimension)
        cells, out = find(places)
        number = np.zeros_like(cells) if numbers is None or not numbers.size else numbers[cells]
        every, of = (np.array(context.comm.allgather(values)) for values in (out, number))
        nearest = every.min(axis=0)
        inside, owner = np.isfinite(nearest), np.where(every == nearest, of, np.iinfo(np.int64).max).argmin(axis=0)
        if outside == "error" and not inside.all():
            k = int(np.argmin(inside))
            raise SolverError(f"probe {names[k]!r} at {tuple(places[k].tolist())} is not in the mesh")
        if not inside.any():
            raise SolverError(f"none of {len(names):,} points is in the mesh")
        kept = np.flatnonzero(inside)
        self.context, self.names, self.places = context, tuple(names[k] for k in kept.tolist()), places[kept]
        self.mine = np.flatnonzero(owner[kept] == context.comm.rank).astype(np.int64)
        self.given = kept[self.mine]
        self.cells = cells[self.given]
        self.set = self.share(1, "probes")

    def share(self, each: int, name: str) -> Set:
        """Return a set of so many elements for each point. Collective."""
        ctx, nothing = self.context, np.zeros(0, dtype=np.int64)
        numbers = (self.mine[:, None] * each + np.arange(each)).ravel()
        total = len(self.names) * each
        return ctx.set(Part.of_reads(ctx.comm, nothing, numbers, nothing, nothing, total), name)


class ProbePoints(ProbePlaces):
    """Where points are among control volumes: each belongs to the rank that owns its cell; see `ProbePlaces`."""

    def __init__(
        self, context: Context, volumes: ControlVolumes, points: Mapping[str, Sequence[float]],
        outside: Outside = "error",
    ) -> None:  # fmt: skip
        self.volumes = volumes
        super().__init__(context, points, volumes.dimension, lambda places: locate(volumes, places), outside)

    @property
    def reach(self) -> Array:
        """The ways from the centres of their cells to the points of this rank, ``(mine, d)``."""
        return self.places[self.mine] - self.volumes.centres[self.cells]

    def rows(
        self, space: Space, columns: Sequence[Index], values: Sequence[Array], name: str, width: tuple[int, ...] = ()
    ) -> Rows:
        """Return weights of elements of a space, a row for each point of this rank; of a shape `width` each."""
        offsets = np.concatenate([[0], np.cumsum([row.size for row in columns])]).astype(np.int64)
        place = space.local(np.concatenate([np.zeros(0, dtype=np.int64), *columns]).astype(np.int64))
        pattern = self.context.ragged(self.set, space.set, offsets, place, name)
        weights = np.concatenate([np.zeros((0, *width)), *values])
        return Rows(pattern, self.context.dat(pattern.entries, weights, f"{name}.values"))


@dataclass(frozen=True, eq=False)
class _Block:
    """Samples that the device keeps: ``(points of this rank * capacity, width)`` of each source."""

    capacity: int
    records: tuple[Dat, ...]
    sample: Chain

    def read(self, points: int, filled: int) -> Array:
        """Return the first samples, ``(filled, points, width)``."""
        found = [dat.read().reshape(points, self.capacity, *dat.shape)[:, :filled] for dat in self.records]
        return np.moveaxis(np.concatenate(found, axis=2), 0, 1).copy()


class ProbeRecords:
    """Samples at points, of several sources beside each other.

    Where checkpoints watch the flow, samples stay on the device, in blocks that grow: they are part of the checkpoint,
    and the host looks at them only in `values`. On several ranks everything is collective.

    Parameters
    ----------
    points
        Where.
    sources
        What.
    capacity
        Samples that the device keeps before the host reads them all at once.

    Raises
    ------
    SolverError
        If the capacity is less than 1.
    """

    forgets = ("_block", "_full")

    def __init__(self, points: ProbePlaces, sources: Sequence[Source], capacity: int) -> None:
        if capacity < 1:
            raise SolverError(f"probes: capacity: a number of at least 1 is wanted, not {capacity!r}")
        self.points, self.sources, self.capacity = points, tuple(sources), int(capacity)
        self._slot = points.context.scalar(0, "slot", dtype="int64")
        self._block = self._made(self.capacity)
        self.reset()

    def _made(self, capacity: int) -> _Block:
        """Return an empty block, and the chain of a sample: values at the points, and these into a slot. Collective."""
        ctx, probes = self.points.context, self.points.set
        slots = self.points.share(capacity, "slots")
        probe = np.repeat(np.arange(probes.size), capacity)
        number = np.tile(np.arange(capacity, dtype=np.int32), probes.size)
        to_probe, numbers = ctx.map(slots, probes, probe[:, None], "slots.probe"), ctx.dat(slots, number, "number")
        kind = "float32" if ctx.device.refuses_double else "float64"
        records: list[Dat] = []
        loops: list[Loop] = []
        for source in self.sources:
            found = ctx.dat(probes, name=source.name, shape=(source.width,), dtype=kind)
            record = ctx.dat(slots, name=f"{source.name}.record", shape=(source.width,), dtype=kind)
            keep = Loop(keep_sample, slots, numbers, self._slot, found[to_probe[0]], record, width=source.width)
            records.append(record)
            loops += [source.find(found), keep]
        return _Block(capacity, tuple(records), Chain(loops, name="probes"))

    def sample(self, time: float) -> None:
        """Keep what is at the points now."""
        self._slot.value = self._filled
        self._block.sample()
        self._times.append(time)
        self._filled += 1
        if self._filled == self._block.capacity:
            self._turn()

    def _turn(self) -> None:
        """Make room: the host takes the samples, or leaves them where a checkpoint finds them. Collective."""
        self._full.append(self._block)
        if self.points.context.observer is None:
            self._fetch()
        else:  # loops may be skipped, as a run goes on from a checkpoint: nobody may look at what they would write
            self._block = self._made(min(2 * self._block.capacity, max(_LARGEST, self.capacity)))
        self._filled = 0

    def _fetch(self) -> None:
        """Read the full blocks."""
        self._values += [block.read(self.points.set.size, block.capacity) for block in self._full]
        self._full = []

    def values(self, first: int = 0) -> tuple[Array, Array]:
        """Return all samples, or those from the one with the number ``first`` on. Collective; all ranks get the same.

        Returns
        -------
        times : (n,)
            Of the samples.
        values : (n, points, width)
            Of the sources one after the other.

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
        points = self.points
        blocks = [*self._values, *([self._block.read(points.set.size, self._filled)] if self._filled else [])]
        begins = np.cumsum([0, *(len(block) for block in blocks)])
        here = np.concatenate([block[max(0, first - begin) :] for block, begin in zip(blocks, begins, strict=False)])
        times = np.array(self._times[first:])
        whole = np.empty((times.size, len(points.names), here.shape[2]))
        for mine, values in points.context.comm.allgather((points.mine, here)):
            whole[:, mine] = values
        return times, whole

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
    found = _coordinates(list(points.values()))
    if found is None or found.shape != (len(points), d):
        shapes = ((name, point, _coordinates(point)) for name, point in points.items())
        name, point = next((name, point) for name, point, one in shapes if one is None or one.shape != (d,))
        raise SolverError(f"probe {name!r}: {d} finite coordinates are wanted, not {point!r}")
    return found


def _coordinates(given: Sequence[Any]) -> Array | None:
    """Return what is given as finite numbers, None where it is none."""
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return found if np.isfinite(found).all() else None
