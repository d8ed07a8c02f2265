"""The calls of a solve: boundary data, transforms there, tridiagonal systems or a division, transforms back.

On several ranks each has a box of right-hand side and solution. Slabs: the axis of the tridiagonal systems is cut;
transforms are local and the systems are solved across the ranks (`fluxloom.linalg.direct.tridiagonal.ranks.solver`),
which send two numbers a system each. Pencils: every axis is transformed, or its systems are solved, by ranks that have
the whole of it; in between all values travel. On one rank nothing is cut, and real values are transformed in the
solution's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Call, Enqueued
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.direct.poisson.blocks import Blocks, cuts, helpers, part
from fluxloom.linalg.direct.poisson.decomposition import Cut, Decomposition
from fluxloom.linalg.direct.poisson.middle import DividedSystems, Middle, Modes, Quotient, Systems
from fluxloom.linalg.direct.poisson.moves import Form, Fourier, Items, Move, Passage, Real, viewed
from fluxloom.linalg.direct.poisson.passes import Passes
from fluxloom.linalg.direct.poisson.problem import Problem
from fluxloom.linalg.direct.transforms import Transforms
from fluxloom.linalg.direct.transforms.ranks import Extent, Redistribution

__all__ = ["Stages", "same"]

_SHARED = 1 << 15
"""Unknowns from which on several threads share the work: to wake one takes as long as some thousands of values."""

_PAD = 8
"""Values behind each row of a block that is transformed across its rows: a cache line of double precision."""

_WAY = 1 << 10
"""Bytes between neighbours across rows at multiples of which many of them have the same few places in a cache."""

_Moved = tuple[Move, DeviceArray, DeviceArray]
"""A move, where it reads, and where it writes."""


def _strided(moves: Sequence[_Moved]) -> bool:
    """Whether there are two fast real transforms, one of them across rows that are a large power of two apart."""
    if len(moves) != 2 or not all(isinstance(move, Real) and move.kind != "matrix" for move, _, _ in moves):
        return False
    source = moves[0][1]
    return len(source.shape) == 3 and source.shape[-1] * source.dtype.itemsize % _WAY == 0


def same(one: DeviceArray, other: DeviceArray) -> bool:
    """Whether two arrays are the same values in memory."""
    return one.buffer.address == other.buffer.address and one.view == other.view


class Stages:
    """Makes the calls that solve a problem, for any right-hand side and solution. Collective; `steps` is not.

    Parameters
    ----------
    context
        The ranks.
    problem
        What is solved: the whole of it.
    decomposition
        How.
    dtype
        ``float64`` or ``float32``.
    library
        See `fluxloom.linalg.direct.transforms.Transforms`.
    threads
        Of the host.
    cut
        Says how lines that are divided come together.

    Attributes
    ----------
    box
        This rank's part of right-hand side and solution.
    bytes_sent, messages
        That this rank sends at each solve.
    """

    def __init__(
        self, context: Context, problem: Problem, decomposition: Decomposition, dtype: npt.DTypeLike, library: str,
        threads: int, cut: Cut,
    ) -> None:  # fmt: skip
        self.context, self.problem, self.decomposition, self.dtype = context, problem, decomposition, np.dtype(dtype)
        self.way, device = decomposition.way, context.device
        start = Form(problem.shape, decomposition.layouts[0].factors)
        self.box: Extent = start.boxes[context.comm.rank]
        if not all(box.size for box in start.boxes):
            raise SolverError(f"poisson: {problem.shape} unknowns for {start.factors} boxes: some ranks have none")
        self.threads = threads if self.box.size >= _SHARED else 1
        self.passes = Passes(device, self.dtype, self.threads)
        whole_lines = decomposition.kind != "pencils" and self.way.line is not None and len(problem.shape) > 1
        self._blocked = whole_lines and device.shared and not device.items
        dense = any(kind == "matrix" for _, kind in self.way.real)
        workers = self.threads if self._blocked and not dense else 1  # matrix products have threads of their own
        each = 1 if workers > 1 else self.threads
        self._workers = [Transforms(device, threads=each, library=library) for _ in range(workers)]
        self._pool = helpers(workers)
        self._kinds = dict.fromkeys(self.way.periodic, "dft") | dict(self.way.real)
        self._scale, self._passages = 1.0, list[Redistribution]()
        self._moves, self._form = self._chain(start)
        self._shapes = [form.boxes[context.comm.rank].shape for form in (start, *(m.after for m in self._moves))]
        self._memory: dict[int, DeviceArray] = {}
        self._rooms: dict[tuple[int, tuple[int, ...]], DeviceArray] = {}
        self._middle = self._make_middle(cut)
        self._fixed = self._arrays() if context.distributed else None
        self._items = [] if self._fixed is None else self._middle.items(self._fixed[-1], self._fixed[-1])
        self.bytes_sent = sum(p.bytes_sent for p in self._passages) + self._middle.bytes_sent
        self.messages = sum(p.messages for p in self._passages) + self._middle.messages

    # ---------------------------------------------------------------------------------- how it is composed
    def _chain(self, form: Form) -> tuple[list[Move], Form]:
        """Return the moves up to the systems, and what values are like then."""
        moves: list[Move] = []
        for number, layout in enumerate(self.decomposition.layouts):
            if number:
                after = Form(form.lengths, layout.factors, form.components)
                passage = Passage(self.context, form, after, self.dtype, len(moves))
                self._passages += [passage.there, passage.back]
                moves.append(passage)
                form = after
            for axis, kind in self.way.real:
                if axis in layout.axes:
                    basis = self.problem.directions[axis].basis if kind == "matrix" else None
                    moves.append(Real(form, axis, kind, basis, kind != "matrix" or not self.context.distributed))
                    self._scale /= self._workers[0].scale(kind, (form.lengths[axis],))
            periodic = tuple(axis for axis in self.way.periodic if axis in layout.axes)
            for axes in [periodic] if form.components == 1 and periodic else [(axis,) for axis in periodic]:
                self._scale /= self._workers[0].scale("dft", tuple(form.lengths[axis] for axis in axes))
                moves.append(Fourier(form, axes))
                form = moves[-1].after
        return moves, form

    def _make_middle(self, cut: Cut) -> Middle:
        """Return what solves the systems, or divides."""
        axes, directions, line = range(len(self.problem.shape)), self.problem.directions, self.way.line
        gain = 0.0
        if self.problem.singular:
            gain = 1 / prod(directions[k].gain(self._kinds[k]) for k in axes if k != line)
        box = self._form.boxes[self.context.comm.rank]
        modes = Modes(
            self.context, self.problem, self.passes, box, [self._eigenvalues(k) for k in axes], self._scale, gain
        )
        if line is None:
            return Quotient(modes)
        if self.decomposition.kind == "slabs":
            return DividedSystems(modes, line, self.threads, cut)
        return Systems(modes, line, self.threads)

    def _eigenvalues(self, axis: int) -> npt.NDArray[np.float64]:
        """Return the eigenvalues of a transformed axis, as many as there are values along it in the end."""
        if axis == self.way.line:
            return np.zeros(1)
        found = self.problem.directions[axis].eigenvalues(self._kinds[axis])
        return found[: self._form.lengths[axis]]

    # --------------------------------------------------------------------------------------- working memory
    @cached_property
    def _places(self) -> list[int]:
        """In which of two memories values are in front of each move, and behind the last one."""
        found = [0]
        for number, move in enumerate(self._moves):
            apart = not move.in_place and (number > 0 or bool(self.problem.loads) or not self.context.distributed)
            found.append(1 - found[-1] if apart else found[-1])
        return found

    def _room(self, place: int) -> DeviceArray:
        """Return a memory, large enough for all values that are ever in it."""
        if place not in self._memory:
            size = max(prod(n) for n, k in zip(self._shapes, self._places, strict=True) if k == place)
            self._memory[place] = DeviceArray.zeros(self.context.device, (size,), self.dtype)
        return self._memory[place]

    def _arrays(self, target: DeviceArray | None = None) -> list[DeviceArray]:
        """Return where values are in front of each move, and behind the last one.

        On one rank real values go to the solution's memory, ``target``, unless it has gaps.
        """
        own = target is None or (not target.dense and bool(self._moves))
        found = [viewed(self._room(0), self._shapes[0], self.dtype) if target is None or own else target]
        for move, place, shape in zip(self._moves, self._places[1:], self._shapes[1:], strict=True):
            found.append(found[-1] if move.in_place else viewed(self._room(place), shape, self.dtype))
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of working memory made so far, messages left out."""
        own = sum(array.buffer.nbytes for array in (*self._memory.values(), *self._rooms.values()))
        return own + sum(transforms.nbytes for transforms in self._workers)

    # ------------------------------------------------------------------------------------------------ calls
    def steps(self, source: DeviceArray, target: DeviceArray) -> Steps:
        """Return the calls that solve for the values of ``source``, into ``target``, which may be the same.

        Both are this rank's part.
        """
        arrays = self._fixed or self._arrays(target)
        items, first = self._start(source, arrays[0])
        items += self._moved([first, *arrays[1:]], back=False)
        if self._fixed is not None:
            items += self._items
        else:
            items += self._middle.items(arrays[-1] if self._moves else first, arrays[-1])
        if self._moves:
            items += self._moved([target, *arrays[1:]], back=True)
        elif self._fixed is not None:
            items.append(self.passes.copy(arrays[0], target))
        writes = [target.buffer, self.mean.buffer, *(memory.buffer for memory in self._memory.values())]
        return Steps(self.context.device, items, [source.buffer], writes)

    def _start(self, source: DeviceArray, place: DeviceArray) -> tuple[Items, DeviceArray]:
        """Return the calls that take boundary data from the right-hand side, and where that is then."""
        if not self.problem.loads and (self._moves or self._fixed is None):
            return [], source
        items: Items = [] if same(source, place) else [self.passes.copy(source, place)]
        for load in self.problem.loads:
            begin, n = self.box.begin[load.axis], self.box.shape[load.axis]
            if (begin == 0) if load.end == 0 else (begin + n == self.problem.shape[load.axis]):
                window = tuple(w for k, w in enumerate(self.box.window) if k != load.axis)
                data = load.data[window] if load.data.ndim else load.data
                items.append(self.passes.side(place, load.axis, load.end, data, load.factor))
        return items, place

    def _moved(self, arrays: list[DeviceArray], *, back: bool) -> Items:
        """Return the calls of all moves; ``arrays`` are in front of each, and behind the last one."""
        moves: list[_Moved] = list(zip(self._moves, arrays, arrays[1:], strict=False))
        if back:
            moves = [(move, behind, front) for move, front, behind in reversed(moves)]
        if not self._blocked or not moves:
            return self._in_order(moves, 0, back)
        line = self.way.line
        assert line is not None
        parts: list[list[Call | Enqueued]] = []
        for begin, end in cuts(arrays[0], line, len(self._workers)):
            worker = len(parts) % len(self._workers)
            cut = [(m, part(one, line, begin, end), part(other, line, begin, end)) for m, one, other in moves]
            if not self.context.distributed and _strided(cut):
                cut = self._apart(cut, worker)
            parts.append(self._in_order(cut, worker, back))
        name = "poisson transforms back" if back else "poisson transforms"
        return [Enqueued(name, Blocks(self.context.device, parts, len(self._workers), self._pool))]

    def _in_order(self, moves: Sequence[_Moved], worker: int, back: bool) -> Items:
        transforms = self._workers[worker]
        return [item for move, one, other in moves for item in move.items(transforms, one, other, back=back)]

    def _apart(self, moves: Sequence[_Moved], worker: int) -> list[_Moved]:
        """Return the same two transforms by way of memory whose rows do not meet in the same places of a cache."""
        source, target = moves[0][1], moves[-1][2]
        real = [move for move, _, _ in moves if isinstance(move, Real)]
        across, along = sorted(real, key=lambda move: -abs(source.strides[move.axis]))
        wide = (*source.shape[:-1], source.shape[-1] + _PAD)
        room = self._rooms.get((worker, wide))
        if room is None:
            room = self._rooms[worker, wide] = DeviceArray.zeros(self.context.device, wide, self.dtype)
        room = part(room, len(wide) - 1, 0, source.shape[-1])
        return [(across, source, room), (along, room, target)]

    # -------------------------------------------------------------------------------------------- reports
    @property
    def mean(self) -> DeviceArray:
        """What was taken from the last right-hand side of a singular problem, on the ranks that know it."""
        return self._middle.mean

    def removed(self) -> float:
        """Return the weighted mean taken from the last right-hand side of a singular problem; waits, collective."""
        if not self.problem.singular:
            return 0.0
        self.context.device.synchronize()
        owners = self.context.comm.allgather(self._middle.knows_mean)
        value = float(self.mean.host()[0]) if self._middle.knows_mean else 0.0
        return float(self.context.comm.broadcast(value, owners.index(True)))

    def check(self) -> None:
        """Raise `SolverError` on every rank where a pivot vanished on one; waits, collective."""
        self._middle.check()

    def describe(self) -> list[str]:
        """Return lines: how, on several ranks also the division and what is sent."""
        lines = [self.way.describe()]
        if self.context.distributed:
            shape = " x ".join(map(str, self.box.shape))
            lines = [
                f"{self.context.comm.size} ranks: {self.decomposition.describe()}",
                f"this rank: {shape} from {self.box.begin}; {self.messages} messages, {self.bytes_sent} bytes a solve",
            ]
        if self._kinds:
            lines.append(f"transforms: {self._workers[0].describe()}")
        carriers = [p.transport.name for p in self._passages if p.transport is not None]
        if carriers:
            lines.append(f"pencils travel by {', '.join(dict.fromkeys(carriers))}")
        return [*lines, *self._middle.describe()]

    def close(self) -> None:
        """Give back what carries the messages; collective."""
        for passage in self._passages:
            passage.close()
        self._middle.close()
