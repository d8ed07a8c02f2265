"""Two devices for one separable equation: the levels with many systems on one, those with few on the other.

Source: the heterogeneous solver of the thesis that `docs/theory/fast_poisson.md` cites: a device of work items runs the
first levels of the reduction and the last ones of the substitution, the processor those between.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Device
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.linalg.arguments import device_of, floating_of, whole
from fluxloom.linalg.direct.separable.batches import Around, Batch, moved_columns
from fluxloom.linalg.direct.separable.coefficients import Separable
from fluxloom.linalg.direct.separable.equation import SeparableEquation
from fluxloom.linalg.direct.separable.native import Machine
from fluxloom.linalg.direct.separable.program import make_program
from fluxloom.linalg.direct.separable.solver import Timed, problem_of
from fluxloom.linalg.direct.separable.values import HostValues

__all__ = ["SplitSolver"]


class SplitSolver:
    """Solves a separable equation on two devices, divided by level.

    Parameters
    ----------
    problem
        The equation, discrete or not.
    device
        Runs the levels below ``split``.
    host
        Runs the others; a processor by default.
    split
        First level of ``host``; "auto": the one with the least time, from the times of each level on both devices and
        of the transfers. The number of levels leaves all to ``device``.
    form, mapping, dtype, threads
        As for `SeparableSolver`; ``threads`` are those of ``host``.

    Attributes
    ----------
    split
        The first level of ``host``.
    predicted
        With "auto": the seconds that each split would take, by what was measured.

    Raises
    ------
    SolverError
        If the level is none of the problem, or form or mapping do not fit.
    """

    def __init__(
        self, problem: Separable | SeparableEquation, device: Device | Context | str,
        host: Device | Context | str | None = None, *, split: int | Literal["auto"] = "auto",
        form: str = "product", mapping: str = "partition", dtype: npt.DTypeLike = np.float64, threads: int = 0,
    ) -> None:  # fmt: skip
        self.problem, self.dtype = problem_of(problem), floating_of(dtype, "separable")
        threads = whole(threads, "separable: threads", 0, " (0: all of the host)")
        self.device, self.host = device_of(device), device_of(host)
        self.program = make_program(self.problem, form)
        given = self.program, mapping, dtype, np.zeros(1)
        self._near, self._far = Machine(self.device, *given), Machine(self.host, *given, threads)
        self._values = HostValues(self.device, self.problem.shape, dtype)
        self._mean, self._rest = (DeviceArray.zeros(self.device, (1,), dtype) for _ in range(2))
        self.predicted: tuple[float, ...] = ()
        if split == "auto":
            split = self._tuned()
        if not isinstance(split, int | np.integer) or not 0 <= split <= self.program.levels:
            raise SolverError(f"split {split!r}: a level from 0 to {self.program.levels}, or 'auto'")
        self.split = int(split)
        self._batch = self._make(self.split)
        self._trace: list[Timed] = []

    def _make(self, split: int) -> Batch:
        f, near, singular = self._values.array, self._near, self.problem.singular
        before = [near.load(f), *(near.settle(self._mean, 0) if singular else [])]
        after = [*(near.settle(self._rest, 0) if singular else []), near.store(f)]
        # The means of both ends are written, though at different times.
        writes = (f.buffer, self._mean.buffer, self._rest.buffer)
        around = Around(tuple(before), tuple(after), (f.buffer,), writes)
        return Batch(self.program, near, self._far, split, 0 if singular else -1, around)

    def _tuned(self) -> int:
        """Return the split with the least sum of measured times."""
        levels = self.program.levels
        alone = {}
        for split in (levels, 0):
            batch = self._make(split)
            batch.measure()  # loads code
            alone[split] = batch.measure()
        seconds = np.zeros((2, levels))
        for row, split in enumerate((levels, 0)):
            for one in alone[split]:
                if one.phase != "transfer":
                    seconds[row, one.level] += one.seconds
        whole = sum(one.seconds for one in alone[0] if one.phase == "transfer")
        found = []
        for split in range(levels + 1):
            part = moved_columns(self.program, split).size / self.problem.y.length if split < levels else 0.0
            found.append(float(seconds[0, :split].sum() + seconds[1, split:].sum() + part * whole))
        self.predicted = tuple(found)
        return int(np.argmin(found))

    def __call__(self, f: npt.ArrayLike, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Return the solution for a right-hand side of shape ``(n, m)`` in host memory.

        Raises
        ------
        SolverError
            If the shape does not fit.
        DatError
            If ``out`` has another shape or type, or is read-only.
        """
        return self._values.solved(f, out, self._batch)

    def describe(self) -> str:
        """Return one line: form, levels, which of them run where."""
        program = self.program
        return (
            f"block cyclic reduction of {self.problem.shape[0]} columns of {self.problem.shape[1]} unknowns, "
            f"{program.form}, {program.levels} levels, {program.solves} tridiagonal systems; from level {self.split} "
            f"on with {self.host.name}, below with {self.device.name}"
        )

    def __str__(self) -> str:
        return self.describe()

    def measure(self, f: npt.ArrayLike) -> list[Timed]:
        """Solve once with waits after each part; return, and keep for `trace`, which stage ran where and how long."""
        self._values.load(f)
        self._trace = self._batch.measure()
        return self._trace

    @property
    def trace(self) -> list[Timed]:
        """What `measure` found last."""
        return self._trace

    @property
    def transfer_share(self) -> float:
        """Part of the measured time that the transfers took (0 before `measure`)."""
        total = sum(one.seconds for one in self._trace)
        return sum(one.seconds for one in self._trace if one.phase == "transfer") / total if total else 0.0

    @property
    def removed(self) -> float:
        """The weighted mean taken away from the last right-hand side of a singular problem (waits); else 0."""
        return float(self._mean.host()[0]) if self.problem.singular else 0.0
