"""What stands between the transforms of a Poisson problem: tridiagonal systems, or a division."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import scalar
from fluxloom.core.errors import SolverError
from fluxloom.device.base import Call, Enqueued
from fluxloom.device.buffer import View
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.direct.poisson.decomposition import Cut
from fluxloom.linalg.direct.poisson.divided_mean import DividedMean
from fluxloom.linalg.direct.poisson.passes import Passes, line_of
from fluxloom.linalg.direct.poisson.problem import Problem
from fluxloom.linalg.direct.transforms.ranks import Extent
from fluxloom.linalg.direct.tridiagonal import Form, Lines, Matrices, TridiagonalSolver
from fluxloom.linalg.direct.tridiagonal.ranks.solver import DistributedTridiagonal

__all__ = ["DividedSystems", "Middle", "Modes", "Quotient", "Systems"]

Items = list[Call | Enqueued]
_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Modes:
    """The coefficients of all modes, as the transforms leave them.

    Attributes
    ----------
    context
        The ranks.
    problem
        The whole problem.
    passes
        Compiled for the device.
    box
        This rank's modes; an axis of components behind the others where there are several.
    eigenvalues
        Of each axis, as many as it has modes on all ranks.
    scale
        Undoes the scale of the transforms.
    gain
        Mean of all values for one of the constant mode's coefficient, in a singular problem.
    """

    context: Context
    problem: Problem
    passes: Passes
    box: Extent
    eigenvalues: Sequence[_Array]
    scale: float
    gain: float


class Middle(ABC):
    """What is done to the coefficients of all modes.

    Parameters
    ----------
    modes
        These.

    Attributes
    ----------
    mean
        What was taken from the right-hand side of a singular problem, ``(1,)``.
    knows_mean
        Whether it is there on this rank.
    bytes_sent, messages
        That this rank sends each time.
    """

    bytes_sent = 0
    messages = 0

    def __init__(self, modes: Modes) -> None:
        context, problem, box = modes.context, modes.problem, modes.box
        self.modes, self.context, self.problem, self.passes, self.box = modes, context, problem, modes.passes, box
        self.axes = len(problem.shape)
        self.components = box.shape[self.axes] if len(box.shape) > self.axes else 1
        self.eigenvalues = [
            found[box.begin[k] : box.begin[k] + box.shape[k]] if found.size > 1 else found
            for k, found in enumerate(modes.eigenvalues)
        ]
        self.mean, self._unread = (DeviceArray.zeros(context.device, (1,), self.passes.dtype) for _ in range(2))
        self.knows_mean = problem.singular and box.size > 0 and not any(box.begin[: self.axes])

    @abstractmethod
    def items(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return the items of a sequence; values are real numbers of the shape of the box, maybe the same."""

    def check(self) -> None:  # noqa: B027 - nothing vanishes in a division
        """Raise `SolverError`, on every rank, where a pivot vanished on one; collective."""

    def describe(self) -> list[str]:
        """Return lines about it."""
        return []

    def close(self) -> None:  # noqa: B027 - what carries no messages holds nothing
        """Give back what carries messages."""

    def _pairs(self, values: DeviceArray) -> list[DeviceArray]:
        """Return values with components as complex ones, a pair of components each; real ones as they are."""
        if self.components == 1:
            return [values]
        view, kind = values.view, np.result_type(values.dtype, np.complex64)
        shape, strides = view.shape[: self.axes], view.strides[: self.axes]
        offsets = (view.offset + k * kind.itemsize for k in range(self.components // 2))
        return [DeviceArray(values.device, values.buffer, View(shape, kind, strides, offset)) for offset in offsets]


class Quotient(Middle):
    """Every axis is transformed: divides by the sum of the eigenvalues."""

    def items(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return a division for each pair of components."""
        if not self.box.size:
            return []
        lists = [self.eigenvalues[0] + self.problem.shift, *self.eigenvalues[1:]]
        return [
            self.passes.divide(
                one, other, lists, self._unread if number else self.mean, scale=self.modes.scale,
                singular=self.knows_mean, gain=self.modes.gain,
            )
            for number, (one, other) in enumerate(zip(self._pairs(source), self._pairs(target), strict=True))
        ]  # fmt: skip


class Systems(Middle):
    """Tridiagonal systems along an axis that is whole on every rank.

    Parameters
    ----------
    modes
        See `Middle`.
    line
        The axis.
    threads
        That share the systems, on processors.
    """

    def __init__(self, modes: Modes, line: int, threads: int) -> None:
        super().__init__(modes)
        self._line, self._threads = line, threads
        direction, kind, box = self.problem.directions[line], self.passes.dtype, self.box
        self._window = slice(box.begin[line], box.begin[line] + box.shape[line])
        self._weights = direction.weights
        self._form = Form(scalar(kind).c, "shifted", direction.periodic, self.components)
        a, b, c = (np.ascontiguousarray(one[self._window], kind) for one in direction.rows)
        others = [axis for axis in range(self.axes) if axis != line]
        outer, inner = [np.zeros(1)] * (2 - len(others)) + [self.eigenvalues[axis] for axis in others]
        self._matrices = Matrices(
            a, b, c, np.ones(b.size, kind), (inner + self.problem.shift).astype(kind), outer.astype(kind)
        )
        self._solvers: dict[Lines, TridiagonalSolver] = {}

    def _lines(self, values: DeviceArray) -> Lines:
        """Return where the systems lie, from the first value on."""
        steps, parts = values.strides, self.components
        others = [axis for axis in range(self.axes) if axis != self._line]
        outer, inner = [(1, 0)] * (2 - len(others)) + [(self.box.shape[axis], steps[axis]) for axis in others]
        return Lines(
            rows=self.box.shape[self._line], inner=inner[0], outer=outer[0], rhs=parts, row_step=steps[self._line],
            inner_step=inner[1] or 1, outer_step=outer[1], rhs_step=1 if parts > 1 else 0,
        )  # fmt: skip

    def items(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return the solve; on the rank of the constant mode of a singular problem between what takes its mean."""
        if not self.box.size:
            return []
        before: Items = []
        if self.knows_mean:
            before.append(self._fit(source, target, self.mean, self.modes.gain, "poisson mean"))
            source = target  # the same but where nothing is transformed
        elif source.strides != target.strides:
            before.append(self.passes.copy(source, target))
            source = target
        lines = self._lines(source)
        if lines not in self._solvers:
            self._solvers[lines] = TridiagonalSolver(self.context.device, lines, self._form, threads=self._threads)
        calls = self._solvers[lines].calls(
            y=source, x=target, matrices=self._matrices, scale=self.modes.scale, pinned=0 if self.knows_mean else -1,
            y_first=source.first, x_first=target.first,
        )  # fmt: skip
        after = [self._fit(target, target, self._unread, 1.0, "poisson centre")] if self.knows_mean else []
        return [*before, *calls, *after]

    def _fit(self, source: DeviceArray, target: DeviceArray, mean: DeviceArray, gain: float, name: str) -> Call:
        one, other = line_of(source, self._line), line_of(target, self._line)  # imaginary parts are zero there
        return self.passes.fit(one, other, self._weights, mean, gain=gain, name=name)

    def check(self) -> None:
        """Raise `SolverError`, on every rank, where a pivot vanished on one; collective."""
        problem = ""
        for solver in self._solvers.values():
            try:
                solver.check()
            except SolverError as error:
                if not self.context.distributed:
                    raise
                problem = f"rank {self.context.comm.rank}: {error}"
        found = [text for text in self.context.comm.allgather(problem) if text]
        if found:
            raise SolverError(f"poisson: {found[0]}")

    def describe(self) -> list[str]:
        """Return a line about the systems."""
        return [f"systems: {solver.describe()}" for solver in self._solvers.values()]


class DividedSystems(Systems):
    """Tridiagonal systems along an axis that is cut: every rank has a part of every system. Collective, also `items`.

    Parameters
    ----------
    modes, line, threads
        See `Systems`.
    cut
        How the systems come together.
    """

    def __init__(self, modes: Modes, line: int, threads: int, cut: Cut) -> None:
        super().__init__(modes, line, threads)
        self._cut = cut
        self._distributed: DistributedTridiagonal | None = None
        self._divided_mean: DividedMean | None = None

    def items(self, source: DeviceArray, target: DeviceArray) -> Items:
        """Return the solve in place; of a singular problem between what takes the mean of the constant mode."""
        assert source is target, "the first and last row of the source are changed"
        self._distributed = distributed = DistributedTridiagonal(
            self.context, self._lines(source), self._form, way=self._cut.gathering, pieces=self._cut.pieces,
            name="poisson systems",
        )  # fmt: skip
        items = distributed.items(
            y=source, x=target, matrices=self._matrices, scale=self.modes.scale,
            pinned=0 if self.problem.singular else -1, y_first=source.first, x_first=target.first,
        )  # fmt: skip
        self.bytes_sent, self.messages = distributed.bytes_sent, distributed.messages
        if not self.problem.singular:
            return items
        weights = self._weights[self._window] / self._weights.sum()
        self._divided_mean = mean = DividedMean(self.context, line_of(source, self._line), weights, self.modes.gain)
        self.mean, self.knows_mean = mean.mean, True
        self.messages += mean.messages
        self.bytes_sent += mean.bytes_sent
        return [*mean.before, *items, *mean.after]

    def check(self) -> None:
        """Raise `SolverError`, on every rank, where a pivot vanished on one; collective."""
        if self._distributed is not None:
            self._distributed.check()

    def describe(self) -> list[str]:
        """Return a line about the systems."""
        return [] if self._distributed is None else [f"systems: {self._distributed.describe()}"]

    def close(self) -> None:
        """Give back what carries messages."""
        for part in (self._distributed, self._divided_mean):
            if part is not None:
                part.close()
