"""The calls of a Poisson solve on many ranks, each of which has a box of right-hand side and solution.

Slabs: the axis of the tridiagonal systems is cut; transforms are local and the systems are solved across the ranks
(`fluxloom.linalg.tridiagonal.ranks`), which send two numbers a system each. Pencils: every axis is transformed, or its
systems are solved, by ranks that have the whole of it; in between all values travel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Call, Enqueued
from fluxloom.dsl.arrays import DeviceArray
from fluxloom.dsl.context import Context
from fluxloom.dsl.primitive import Steps
from fluxloom.linalg.poisson.blocks import Blocks, cuts, part
from fluxloom.linalg.poisson.passes import Passes
from fluxloom.linalg.poisson.problem import Problem
from fluxloom.linalg.poisson.ranks_layout import decompose
from fluxloom.linalg.poisson.ranks_middle import Division, Middle, Systems
from fluxloom.linalg.poisson.ranks_moves import Form, Fourier, Items, Move, Passage, Real, viewed
from fluxloom.linalg.transforms import Transforms
from fluxloom.linalg.transforms.ranks import Extent, Redistribution

__all__ = ["RankedStages"]


class RankedStages:
    """Makes the calls that solve a problem on many ranks. Collective; `steps` is not.

    Parameters
    ----------
    context
        The ranks.
    problem
        What is solved: the whole of it.
    dtype
        ``float64`` or ``float32``.
    line, transforms, library
        See `fluxloom.linalg.poisson.plan.Plan`.
    cut, decomposition
        See `fluxloom.linalg.poisson.ranks_layout.decompose`.
    gathering, pieces
        How lines that are divided come together; see `RankedTridiagonal`.

    Attributes
    ----------
    box
        This rank's part of right-hand side and solution.
    decomposition
        What was chosen.
    bytes_sent, messages
        That this rank sends at each solve.
    """

    def __init__(
        self, context: Context, problem: Problem, dtype: npt.DTypeLike, *,
        line: Any = "auto", transforms: Any = "auto", library: str = "auto", cut: Any = None,
        decomposition: Literal["auto", "slabs", "pencils"] = "auto",
        gathering: Literal["auto", "all", "shares"] = "auto", pieces: int = 1,
    ) -> None:  # fmt: skip
        self.context, self.problem, self.dtype = context, problem, np.dtype(dtype)
        device, rank = context.device, context.comm.rank
        on_host = device.shared and not device.items and library == "auto"
        host = all(context.comm.allgather(on_host))  # modes have one order on all ranks
        ranks = context.comm.size
        self.decomposition = decompose(problem, ranks, cut, decomposition, line, transforms, host=host)
        self.way = self.decomposition.way
        self.passes = Passes(device, self.dtype, context.threads)
        self._blocked = self.decomposition.kind == "slabs" and device.shared and not device.items
        self._blocked &= len(problem.shape) > 1
        self.transforms = Transforms(device, threads=1 if self._blocked else context.threads, library=library)
        self._kinds = dict.fromkeys(self.way.periodic, "dft") | dict(self.way.real)
        self._scale, self._passages = 1.0, list[Redistribution]()
        start = Form(problem.shape, self.decomposition.layouts[0].factors)
        self.box: Extent = start.boxes[rank]
        if not all(box.size for box in start.boxes):
            raise SolverError(f"poisson: {problem.shape} unknowns for {start.factors} boxes: some ranks have none")
        self._moves, form = self._chain(start)
        self._form, self._own = form, [f.boxes[rank].shape for f in (start, *(m.after for m in self._moves))]
        most = max(prod(shape) for shape in self._own)
        self._memory = [DeviceArray.zeros(device, (most,), self.dtype) for _ in range(1 + self._needs_two())]
        self._arrays = self._assigned()
        self._middle = self._make_middle(gathering, pieces)
        self.bytes_sent = sum(p.bytes_sent for p in self._passages) + self._middle.bytes_sent
        self.messages = sum(p.messages for p in self._passages) + self._middle.messages

    # ---------------------------------------------------------------------------------- how it is composed
    def _chain(self, form: Form) -> tuple[list[Move], Form]:
        """Return the moves up to the systems, and what values are like then."""
        moves: list[Move] = []
        for number, layout in enumerate(self.decomposition.layouts):
            if number:
                form = self._passage(moves, form, layout.factors)
            for axis, kind in self.way.real:
                if axis in layout.axes:
                    basis = self.problem.directions[axis].basis if kind == "matrix" else None
                    moves.append(Real(self.transforms, form, axis, kind, basis))
                    self._scale /= self.transforms.scale(kind, (form.lengths[axis],))
            periodic = tuple(axis for axis in self.way.periodic if axis in layout.axes)
            for axes in [periodic] if form.components == 1 and periodic else [(axis,) for axis in periodic]:
                self._scale /= self.transforms.scale("dft", tuple(form.lengths[axis] for axis in axes))
                moves.append(Fourier(self.transforms, form, axes))
                form = moves[-1].after
        return moves, form

    def _passage(self, moves: list[Move], form: Form, factors: tuple[int, ...]) -> Form:
        """Append what takes the values to another division; return what they are like then."""
        after = Form(form.lengths, factors, form.components)
        one, other = form.boxes, after.boxes
        names = (f"poisson pencils {len(moves)}", f"poisson pencils back {len(moves)}")
        there, back = (
            Redistribution(self.context, a, b, self.dtype, name)
            for (a, b), name in zip(((one, other), (other, one)), names, strict=True)
        )
        self._passages += [there, back]
        moves.append(Passage(form, after, there, back))
        return after

    def _needs_two(self) -> bool:
        """Whether values go from one working memory to another."""
        first = bool(self.problem.loads) or not self._moves
        return any(not move.in_place for move in self._moves[0 if first else 1 :])

    def _assigned(self) -> list[DeviceArray]:
        """Return working memory for the values in front of each move, and behind the last one."""
        place = 0
        found = [viewed(self._memory[0], self._own[0], self.dtype)]
        for number, (move, shape) in enumerate(zip(self._moves, self._own[1:], strict=True)):
            if not move.in_place and (number or self.problem.loads):
                place = 1 - place
            same = move.in_place and (number or self.problem.loads)
            found.append(found[-1] if same else viewed(self._memory[place], shape, self.dtype))
        return found

    def _make_middle(self, gathering: Any, pieces: int) -> Middle:
        """Return what solves the systems, or divides, in place."""
        axes = range(len(self.problem.shape))
        lists = [self._eigenvalues(axis) for axis in axes]
        gain = 1 / prod(self.problem.directions[k].gain(self._kinds[k]) for k in axes if k != self.way.line) if (
            self.problem.singular
        ) else 0.0  # fmt: skip
        box = self._form.boxes[self.context.comm.rank]
        given = (self.context, self.problem, self.passes, self._arrays[-1], box, lists, self._scale, gain)
        if self.way.line is None:
            return Division(*given)
        divided = self.decomposition.kind == "slabs" and self.context.ranked
        return Systems(*given, line=self.way.line, divided=divided, gathering=gathering, pieces=pieces)

    def _eigenvalues(self, axis: int) -> npt.NDArray[np.float64]:
        """Return the eigenvalues of a transformed axis, as many as there are values along it in the end."""
        if axis == self.way.line:
            return np.zeros(1)
        found = self.problem.directions[axis].eigenvalues(self._kinds[axis])
        return found[: self._form.lengths[axis]]

    # ------------------------------------------------------------------------------------------ the calls
    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of this rank's part."""
        return self.box.shape

    def steps(self, source: DeviceArray, target: DeviceArray) -> Steps:
        """Return the calls that solve for this rank's part of a right-hand side, into that of the solution."""
        arrays, first = self._arrays, source
        items: Items = []
        if self.problem.loads or not self._moves:
            items += [self.passes.copy(source, arrays[0]), *self._boundary(arrays[0])]
            first = arrays[0]
        there = [first, *arrays[1:]]
        items += self._moved(there, forward=True)
        items += self._middle.items
        back = [target, *arrays[1:]]
        items += self._moved(back, forward=False) if self._moves else [self.passes.copy(arrays[0], target)]
        writes = [target.buffer, self.mean.buffer, *(memory.buffer for memory in self._memory)]
        return Steps(self.context.device, items, [source.buffer], writes)

    def _boundary(self, values: DeviceArray) -> list[Call]:
        """Return the calls that take the boundary data beside this rank's box from the right-hand side."""
        found: list[Call] = []
        for load in self.problem.loads:
            begin, n = self.box.begin[load.axis], self.box.shape[load.axis]
            if (begin == 0) if load.end == 0 else (begin + n == self.problem.shape[load.axis]):
                window = tuple(w for k, w in enumerate(self.box.window) if k != load.axis)
                data = load.data[window] if load.data.ndim else load.data
                found.append(self.passes.side(values, load.axis, load.end, data, load.factor))
        return found

    def _moved(self, arrays: list[DeviceArray], *, forward: bool) -> Items:
        """Return the calls of all moves; ``arrays`` are in front of each, and behind the last one."""
        pairs = list(zip(self._moves, arrays, arrays[1:], strict=False))
        if not forward:
            pairs = [(move, behind, front) for move, front, behind in reversed(pairs)]
        if not self._blocked or not prod(self.shape):
            return [item for move, one, other in pairs for item in _call(move, forward)(one, other)]
        line = self.way.line
        assert line is not None
        parts = []
        for begin, end in cuts(arrays[0], line, self.context.threads):
            items: Items = []
            for move, one, other in pairs:
                items += _call(move, forward)(part(one, line, begin, end), part(other, line, begin, end))
            parts.append(items)
        name = "poisson transforms" if forward else "poisson transforms back"
        return [Enqueued(name, Blocks(self.context.device, parts, self.context.threads))]

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

    @property
    def nbytes(self) -> int:
        """Bytes of working memory, messages left out."""
        return sum(memory.buffer.nbytes for memory in self._memory)

    def describe(self) -> str:
        """Return lines about the division, what is sent, and how."""
        ranks = self.context.comm.size
        lines = [
            f"  {ranks} ranks: {self.decomposition.describe()}",
            f"  this rank: {' x '.join(map(str, self.shape))} from {self.box.begin}; {self.messages} messages, "
            f"{self.bytes_sent} bytes a solve",
        ]
        if self.way.real or self.way.periodic:
            lines.append(f"  transforms: {self.transforms.describe()}")
        carriers = [p.transport.name for p in self._passages if p.transport is not None]
        if carriers:
            lines.append(f"  pencils travel by {', '.join(dict.fromkeys(carriers))}")
        return "\n".join([*lines, *(f"  {text}" for text in self._middle.describe())])

    def close(self) -> None:
        """Give back what carries the messages; collective."""
        for passage in self._passages:
            passage.close()
        self._middle.close()


def _call(move: Move, forward: bool) -> Callable[[DeviceArray, DeviceArray], Items]:
    return move.there if forward else move.back
