"""The calls of a solve: boundary data, transforms there, tridiagonal systems or a division, transforms back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.device.base import Call, Device, Enqueued
from fluxloom.device.exchange import View
from fluxloom.dsl.arrays import DeviceArray
from fluxloom.dsl.primitive import Steps
from fluxloom.linalg.poisson.blocks import Blocks, cuts, helpers, part
from fluxloom.linalg.poisson.choice import Way
from fluxloom.linalg.poisson.passes import Passes
from fluxloom.linalg.poisson.problem import Problem
from fluxloom.linalg.transforms import Transforms
from fluxloom.linalg.tridiagonal import Form, Lines, TridiagonalSolver

__all__ = ["Stages", "same"]

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Move:
    """A transform between two arrays."""

    kind: str
    axes: tuple[int, ...]
    source: DeviceArray
    target: DeviceArray


_SHARED = 1 << 15
"""Unknowns from which on several threads share the work: to wake one takes as long as some thousands of values."""

_PAD = 8
"""Values behind each row of a block that is transformed across its rows: a cache line of double precision."""

_WAY = 1 << 10
"""Bytes between neighbours across rows at multiples of which many of them have the same few places in a cache."""


def _strided(moves: list[_Move]) -> bool:
    """Whether there are two fast real transforms, one of them across rows that are a large power of two apart."""
    if len(moves) != 2 or any(move.kind in ("dft", "matrix") for move in moves):
        return False
    return len(moves[0].source.shape) == 3 and moves[0].source.shape[-1] * moves[0].source.dtype.itemsize % _WAY == 0


def same(one: DeviceArray, other: DeviceArray) -> bool:
    """Whether two arrays are the same values in memory."""
    return one.buffer.address == other.buffer.address and one.view == other.view


class Stages:
    """Makes the calls that solve a problem, for any right-hand side and solution in the memory of a device.

    Parameters
    ----------
    device
        Runs the calls.
    problem, way
        What is solved, and how.
    dtype
        ``float64`` or ``float32``.
    library
        See `fluxloom.linalg.transforms.Transforms`.
    threads
        Of the host.
    """

    def __init__(
        self, device: Device, problem: Problem, way: Way, dtype: npt.DTypeLike, library: str, threads: int
    ) -> None:
        threads = threads if problem.size >= _SHARED else 1
        self.device, self.problem, self.way, self.threads = device, problem, way, threads
        self.dtype = np.dtype(dtype)
        self.passes = Passes(device, self.dtype, threads)
        self.blocked = way.line is not None and len(problem.shape) > 1 and device.shared and not device.items
        dense = any(kind == "matrix" for _, kind in way.real)
        workers = threads if self.blocked and not dense else 1  # the library of matrix products has threads of its own
        each = 1 if workers > 1 else threads
        self._workers = [Transforms(device, threads=each, library=library) for _ in range(workers)]
        self._pool = helpers(workers)
        self.mean = DeviceArray.zeros(device, (1,), self.dtype)
        self._left = DeviceArray.zeros(device, (1,), self.dtype)
        self.solvers: list[TridiagonalSolver] = []
        self._rooms: dict[tuple[int, tuple[int, ...]], DeviceArray] = {}

    @property
    def transforms(self) -> Transforms:
        """What transforms the values; blocks of them where there are several threads."""
        return self._workers[0]

    # --------------------------------------------------------------------------------------- working memory
    @cached_property
    def _work(self) -> DeviceArray:
        """Real values without gaps."""
        return DeviceArray.zeros(self.device, self.problem.shape, self.dtype)

    @cached_property
    def _spectrum(self) -> DeviceArray:
        """What the Fourier transform makes of real values."""
        found = self.transforms.spectrum("dft", self.way.periodic, self.problem.shape, self.dtype)
        return DeviceArray.zeros(self.device, *found)

    @property
    def nbytes(self) -> int:
        """Bytes of working memory made so far."""
        own = sum(self.__dict__[name].buffer.nbytes for name in ("_work", "_spectrum") if name in self.__dict__)
        own += sum(room.buffer.nbytes for room in self._rooms.values())
        return own + sum(transforms.nbytes for transforms in self._workers)

    # ------------------------------------------------------------------------------------------------ calls
    def steps(self, source: DeviceArray, target: DeviceArray) -> Steps:
        """Return the calls that solve for the values of ``source``, into ``target``, which may be the same."""
        real = target if target.dense else self._work
        items, current = self._boundary(source, target, real)
        there: list[_Move] = []
        for axis, kind in self.way.real:
            there.append(_Move(kind, (axis,), current, real))
            current = real
        if self.way.periodic:
            there.append(_Move("dft", self.way.periodic, current, self._spectrum))
            current = self._spectrum
        back: list[_Move] = []
        place = current if there else target
        if self.way.periodic:
            back.append(_Move("dft", self.way.periodic, self._spectrum, real if self.way.real else target))
        for number, (axis, kind) in enumerate(reversed(self.way.real), 1):
            back.append(_Move(kind, (axis,), real, target if number == len(self.way.real) else real))
        items += self._moved(there, "poisson transforms", back=False)
        items += self._middle(current, place)
        items += self._moved(back, "poisson transforms back", back=True)
        reads, writes = [source.buffer], [target.buffer, self.mean.buffer, self._left.buffer]
        for name in ("_work", "_spectrum"):
            if name in self.__dict__:
                writes.append(self.__dict__[name].buffer)
        return Steps(self.device, items, reads, writes)

    def _boundary(
        self, source: DeviceArray, target: DeviceArray, real: DeviceArray
    ) -> tuple[list[Call | Enqueued], DeviceArray]:
        """Return the calls that take boundary data from the right-hand side, and where that is then."""
        if not self.problem.loads:
            return [], source
        place = real if self.way.real or self.way.periodic else target
        items: list[Call | Enqueued] = [] if same(source, place) else [self.passes.copy(source, place)]
        items += [self.passes.side(place, one.axis, one.end, one.data, one.factor) for one in self.problem.loads]
        return items, place

    def _moved(self, moves: list[_Move], name: str, *, back: bool) -> list[Call | Enqueued]:
        """Return the calls of some transforms: one after the other, or all of them block by block."""
        if not moves:
            return []
        if not self.blocked:
            return [item for move in moves for item in self._transform(self.transforms, move, back)]
        line = self.way.line
        assert line is not None
        parts: list[list[Call | Enqueued]] = []
        for begin, end in cuts(moves[0].source, line, len(self._workers)):
            worker = len(parts) % len(self._workers)
            cut = [
                _Move(m.kind, m.axes, part(m.source, line, begin, end), part(m.target, line, begin, end)) for m in moves
            ]
            cut = self._apart(cut, worker) if _strided(cut) else cut
            parts.append([item for move in cut for item in self._transform(self._workers[worker], move, back)])
        return [Enqueued(name, Blocks(self.device, parts, len(self._workers), self._pool))]

    def _apart(self, moves: list[_Move], worker: int) -> list[_Move]:
        """Return the same two transforms by way of memory whose rows do not meet in the same places of a cache."""
        source, target = moves[0].source, moves[-1].target
        across, along = sorted(moves, key=lambda move: -abs(source.strides[move.axes[0]]))
        wide = (*source.shape[:-1], source.shape[-1] + _PAD)
        room = self._rooms.get((worker, wide))
        if room is None:
            room = self._rooms[worker, wide] = DeviceArray.zeros(self.device, wide, self.dtype)
        room = part(room, len(wide) - 1, 0, source.shape[-1])
        return [_Move(across.kind, across.axes, source, room), _Move(along.kind, along.axes, room, target)]

    def _transform(self, transforms: Transforms, move: _Move, back: bool) -> list[Call | Enqueued]:
        transform = transforms.backward if back else transforms.forward
        if move.kind != "matrix":
            return transform(move.kind, move.axes, move.source, move.target)
        basis = self.problem.directions[move.axes[0]].basis
        return transform("matrix", move.axes, move.source, move.target, basis=basis)

    # --------------------------------------------------------------------------------------- between transforms
    @property
    def scale(self) -> float:
        """What undoes the scale of the transforms there and back."""
        found = 1.0
        for axis, kind in self.way.real:
            found /= self.transforms.scale(kind, (self.problem.shape[axis],))
        if self.way.periodic:
            found /= self.transforms.scale("dft", tuple(self.problem.shape[axis] for axis in self.way.periodic))
        return found

    def _kind(self, axis: int) -> str:
        return dict(self.way.real).get(axis, "dft")

    def _eigenvalues(self, axis: int) -> _Array:
        """Return the eigenvalues of a transformed axis, as many as its spectrum has values."""
        found = self.problem.directions[axis].eigenvalues(self._kind(axis))
        halved = bool(self.way.periodic) and axis == self.way.periodic[-1]
        return found[: found.size // 2 + 1] if halved else found

    @property
    def _gain(self) -> float:
        """What makes the mean of all values of the constant mode's coefficient."""
        axes = [axis for axis in range(len(self.problem.shape)) if axis != self.way.line]
        return 1 / prod(self.problem.directions[axis].gain(self._kind(axis)) for axis in axes)

    def _middle(self, source: DeviceArray, target: DeviceArray) -> list[Call | Enqueued]:
        problem, line = self.problem, self.way.line
        if line is None:
            lists = [self._eigenvalues(axis) for axis in range(len(problem.shape))]
            lists[0] = lists[0] + problem.shift
            gain = self._gain if problem.singular else 0.0
            return [
                self.passes.divide(
                    source, target, lists, self.mean, scale=self.scale, singular=problem.singular, gain=gain
                )
            ]
        items: list[Call | Enqueued] = []
        weights = problem.directions[line].weights
        if problem.singular:
            fit = self.passes.fit(source, target, line, weights, self.mean, gain=self._gain, name="poisson mean")
            items.append(fit)
            source = target  # the same but in one dimension, where nothing is transformed
        elif source.strides != target.strides:
            items.append(self.passes.copy(source, target))
            source = target
        items += self._systems(source, target, line)
        if problem.singular:
            centre = self.passes.fit(target, target, line, weights, self._left, gain=1.0, name="poisson centre")
            items.append(centre)
        return items

    def _systems(self, source: DeviceArray, target: DeviceArray, line: int) -> list[Call | Enqueued]:
        """Return the calls that solve the tridiagonal systems of all modes."""
        problem, complex_values = self.problem, source.dtype.kind == "c"
        parts = 2 if complex_values else 1
        others = [axis for axis in range(len(problem.shape)) if axis != line]
        shifts = [np.zeros(1)] * (2 - len(others)) + [self._eigenvalues(axis) for axis in others]
        lines, y_first = _lines(source, line, others, parts)
        x_first = _lines(target, line, others, parts)[1]
        direction = problem.directions[line]
        real = "double" if self.dtype == np.float64 else "float"
        form = Form(real, "shifted", direction.periodic, parts)
        solver = TridiagonalSolver(self.device, lines, form, threads=self.threads)
        self.solvers = [solver]
        a, b, c = (one.astype(self.dtype) for one in direction.rows)
        found = solver.calls(
            y=_numbers(source), x=_numbers(target), a=a, b=b, c=c, mass=np.ones(direction.n, self.dtype),
            inner_shift=(shifts[1] + problem.shift).astype(self.dtype), outer_shift=shifts[0].astype(self.dtype),
            coefficient_steps=(1, 0, 0), scale=self.scale, pinned=0 if problem.singular else -1,
            y_first=y_first, x_first=x_first,
        )  # fmt: skip
        return list(found)


def _lines(array: DeviceArray, line: int, others: list[int], parts: int) -> tuple[Lines, int]:
    """Return where the systems lie in an array, in real numbers, and its first number."""
    steps = [parts * step for step in array.strides]
    lengths, distances = [1, 1], [0, 0]
    for place, axis in zip(range(2 - len(others), 2), others, strict=True):
        lengths[place], distances[place] = array.shape[axis], steps[axis]
    found = Lines(
        rows=array.shape[line], inner=lengths[1], outer=lengths[0], rhs=parts, row_step=steps[line],
        inner_step=distances[1] or 1, outer_step=distances[0], rhs_step=1 if parts == 2 else 0,
        first=parts * array.first,
    )  # fmt: skip
    return found, parts * array.first


def _numbers(array: DeviceArray) -> DeviceArray:
    """Return an array of real numbers over the memory of complex ones; real ones as they are."""
    if array.dtype.kind != "c":
        return array
    view, size = array.view, array.dtype.itemsize // 2
    kind = np.dtype(f"f{size}")
    return DeviceArray(array.device, array.buffer, View((*view.shape, 2), kind, (*view.strides, size), view.offset))
