"""What stands between the transforms of a Poisson problem on ranks: tridiagonal systems, or a division."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Call, Enqueued
from fluxloom.device.exchange import View
from fluxloom.dsl.arrays import DeviceArray
from fluxloom.dsl.context import Context
from fluxloom.linalg.poisson.passes import Passes
from fluxloom.linalg.poisson.problem import Problem
from fluxloom.linalg.poisson.ranks_mean import DividedMean, line_of
from fluxloom.linalg.transforms.ranks import Extent
from fluxloom.linalg.tridiagonal import Form, Lines, TridiagonalSolver
from fluxloom.linalg.tridiagonal.ranks import RankedTridiagonal

__all__ = ["Division", "Middle", "Systems"]

_Array = npt.NDArray[np.float64]


class Middle(ABC):
    """What is done to the coefficients of all modes, in place.

    Parameters
    ----------
    context
        The ranks.
    problem
        The whole problem.
    passes
        Compiled for the device.
    values
        Dense, of the shape of the box.
    box
        This rank's modes; an axis of components behind the others where there are several.
    eigenvalues
        Of each axis, as many as it has modes.
    scale
        Undoes the scale of the transforms.
    gain
        Mean of all values for one of the constant mode's coefficient, in a singular problem.

    Attributes
    ----------
    items
        Of a sequence.
    mean
        What was taken from the right-hand side of a singular problem, ``(1,)``.
    knows_mean
        Whether it is there on this rank.
    bytes_sent, messages
        That this rank sends each time.
    """

    items: list[Call | Enqueued]
    bytes_sent = 0
    messages = 0

    def __init__(
        self, context: Context, problem: Problem, passes: Passes, values: DeviceArray, box: Extent,
        eigenvalues: Sequence[_Array], scale: float, gain: float,
    ) -> None:  # fmt: skip
        self.context, self.problem, self.passes, self.values = context, problem, passes, values
        self.axes = len(problem.shape)
        self.components = box.shape[self.axes] if len(box.shape) > self.axes else 1
        self.scale, self.gain, self.box = scale, gain, box
        self.eigenvalues = [
            found[box.begin[k] : box.begin[k] + box.shape[k]] if found.size > 1 else found
            for k, found in enumerate(eigenvalues)
        ]
        self.mean = DeviceArray.zeros(context.device, (1,), values.dtype)
        self.knows_mean = problem.singular and box.size > 0 and not any(box.begin[: self.axes])

    @abstractmethod
    def check(self) -> None:
        """Raise `SolverError`, on every rank, where a pivot vanished on one; collective."""

    @abstractmethod
    def describe(self) -> list[str]:
        """Return lines about it."""

    def close(self) -> None:  # noqa: B027 - what carries no messages holds nothing
        """Give back what carries messages."""


class Division(Middle):
    """Every axis is transformed: divides by the sum of the eigenvalues."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        lists = [found.copy() for found in self.eigenvalues]
        lists[0] = lists[0] + self.problem.shift
        self.items = []
        unread = DeviceArray.zeros(self.context.device, (1,), self.values.dtype)
        for number, pair in enumerate(_pairs(self.values, self.axes, self.components) if self.box.size else ()):
            self.items.append(
                self.passes.divide(
                    pair, pair, lists, unread if number else self.mean, scale=self.scale,
                    singular=self.knows_mean, gain=self.gain,
                )
            )  # fmt: skip

    def check(self) -> None:
        """Nothing vanishes."""

    def describe(self) -> list[str]:
        """Return nothing more."""
        return []


class Systems(Middle):
    """Tridiagonal systems along an axis.

    Parameters
    ----------
    given
        See `Middle`.
    line
        The axis.
    divided
        Whether it is cut; then every rank has a part of every system.
    gathering, pieces
        See `RankedTridiagonal`.
    """

    def __init__(self, *given: Any, line: int, divided: bool, gathering: Any, pieces: int) -> None:
        super().__init__(*given)
        self._line = line
        direction, problem, kind = self.problem.directions[line], self.problem, self.values.dtype
        real = "double" if kind == np.float64 else "float"
        form = Form(real, "shifted", direction.periodic, self.components)
        lines, inner, outer = self._lines()
        window = slice(self.box.begin[line], self.box.begin[line] + self.box.shape[line])
        a, b, c = (np.ascontiguousarray(one[window], kind) for one in direction.rows)
        coefficients: dict[str, Any] = {
            "a": a, "b": b, "c": c, "mass": np.ones(lines.rows, kind), "coefficient_steps": (1, 0, 0),
            "inner_shift": (inner + problem.shift).astype(kind), "outer_shift": outer.astype(kind),
            "y": self.values, "x": self.values, "y_first": 0, "x_first": 0, "scale": self.scale,
        }  # fmt: skip
        self._ranked: RankedTridiagonal | None = None
        self._mean: DividedMean | None = None
        self._local: TridiagonalSolver | None = None
        if divided:
            self._ranked = RankedTridiagonal(
                self.context, lines, form, way=gathering, pieces=pieces, name="poisson systems"
            )
            self.bytes_sent, self.messages = self._ranked.bytes_sent, self._ranked.messages
            self.items = self._ranked.items(**coefficients, pinned=0 if problem.singular else -1)
            self._take_mean(direction.weights[window] / direction.weights.sum())
        elif self.box.size:
            self._local = local = TridiagonalSolver(self.context.device, lines, form, threads=self.context.threads)
            pinned = 0 if self.knows_mean else -1
            self.items = self._fitted(direction.weights, list(local.calls(**coefficients, pinned=pinned)))
        else:
            self.items = []

    def _lines(self) -> tuple[Lines, _Array, _Array]:
        """Return where the systems lie, and the eigenvalues along their two axes."""
        line, parts = self._line, self.components
        steps = self.values.strides[: self.axes]
        others = [k for k in range(self.axes) if k != line]
        lengths, distances, shifts = [1, 1], [0, 0], [np.zeros(1), np.zeros(1)]
        for place, axis in zip(range(2 - len(others), 2), others, strict=True):
            lengths[place], distances[place] = self.box.shape[axis], steps[axis]
            shifts[place] = self.eigenvalues[axis]
        lines = Lines(
            rows=self.box.shape[line], inner=lengths[1], outer=lengths[0], rhs=parts, row_step=steps[line],
            inner_step=distances[1] or 1, outer_step=distances[0], rhs_step=1 if parts > 1 else 0, first=0,
        )  # fmt: skip
        return lines, shifts[1], shifts[0]

    def _fitted(self, weights: _Array, solve: list[Call]) -> list[Call | Enqueued]:
        """Return the solve of whole systems; on the rank of the constant mode between what takes its mean."""
        if not self.knows_mean:
            return list(solve)
        pair = _pairs(self.values, self.axes, self.components)[0]
        unread = DeviceArray.zeros(self.context.device, (1,), self.values.dtype)
        names = (("poisson mean", self.mean, self.gain), ("poisson centre", unread, 1.0))
        fit, centre = (
            self.passes.fit(pair, pair, self._line, weights, mean, gain=gain, name=name) for name, mean, gain in names
        )
        return [fit, *solve, centre]

    def _take_mean(self, weights: _Array) -> None:
        """Put around the solve of divided systems what takes the mean of the constant mode."""
        if not self.problem.singular:
            return
        line = line_of(self.values, self._line)
        self._mean = mean = DividedMean(self.context, line, weights, self.gain)
        self.items = [*mean.before, *self.items, *mean.after]
        self.mean, self.knows_mean = mean.mean, True
        self.messages += mean.messages
        self.bytes_sent += mean.bytes_sent

    def check(self) -> None:
        """Raise `SolverError`, on every rank, where a pivot vanished on one; collective."""
        if self._ranked is not None:
            self._ranked.check()
            return
        problem = ""
        try:
            if self._local is not None:
                self._local.check()
        except SolverError as error:
            problem = f"rank {self.context.comm.rank}: {error}"
        found = [text for text in self.context.comm.allgather(problem) if text]
        if found:
            raise SolverError(f"poisson: {found[0]}")

    def describe(self) -> list[str]:
        """Return a line about the systems."""
        if self._ranked is not None:
            return [f"systems: {self._ranked.describe()}"]
        return [f"systems: {self._local.describe()}"] if self._local is not None else []

    def close(self) -> None:
        """Give back what carries messages."""
        for part in (self._ranked, self._mean):
            if part is not None:
                part.close()


def _pairs(values: DeviceArray, axes: int, components: int) -> list[DeviceArray]:
    """Return values with components as complex ones, a pair of components each; real ones as they are."""
    if components == 1:
        return [values]
    view = values.view
    kind = np.result_type(values.dtype, np.complex64)
    return [
        DeviceArray(values.device, values.buffer, View(view.shape[:axes], kind, view.strides[:axes], k * kind.itemsize))
        for k in range(components // 2)
    ]
