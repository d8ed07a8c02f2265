"""Direct solver of separable equations by block cyclic reduction, prepared once for many right-hand sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Call, Device
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.arguments import device_of, floating_of, whole
from fluxloom.linalg.direct.separable.coefficients import Separable
from fluxloom.linalg.direct.separable.equation import SeparableEquation
from fluxloom.linalg.direct.separable.native import Machine
from fluxloom.linalg.direct.separable.program import Program, make_program
from fluxloom.linalg.direct.separable.values import HostValues, check_out, real_values

__all__ = ["SeparableSolver", "Timed", "problem_of"]


@dataclass(frozen=True)
class Timed:
    """One stage of the last solves.

    Attributes
    ----------
    phase
        "reduction", "substitution", or "transfer".
    level
        0: that of single columns.
    kernel
        "q", "alpha", "gamma", "p"; "down" or "up" for a transfer.
    device
        Where it ran.
    systems
        Tridiagonal systems that were solved.
    seconds
        Of a solve.
    """

    phase: str
    level: int
    kernel: str
    device: str
    systems: int
    seconds: float


class SeparableSolver:
    """Solves a separable equation again and again.

    The work of a solve is about ``2 n log2 n`` tridiagonal systems of ``m`` unknowns, half of them with partial
    fractions where the coefficients are constant.

    Parameters
    ----------
    problem
        The equation: discrete, or a `SeparableEquation`.
    device
        A device, its name, or a context; the processor by default.
    form
        "partial_fractions": all systems of a level at once, in the order in which they are best conditioned;
        "product": chains of systems, as in the thesis and in FISHPACK.
    mapping
        On a device of work items: "thread" a system, "block" a system, or "partition" (chunks of rows); the default is
        "partition". Elsewhere a lane of a vector solves a system.
    dtype
        Of values: float64 or float32.
    threads
        On a processor; 0: all that the device has.
    chunk
        Rows of a work item with the mapping "partition", about; 0: 8.

    Attributes
    ----------
    program
        What is done.

    Raises
    ------
    SolverError
        If form or mapping are unknown or do not fit the problem, or a type or number is none.

    Notes
    -----
    Block cyclic reduction in the stable form of Buneman as generalised by Swarztrauber, SIAM J. Numer. Anal. 11 (1974)
    1136. See `docs/theory/fast_poisson.md`.
    """

    def __init__(
        self, problem: Separable | SeparableEquation, device: Device | Context | str | None = None, *,
        form: str = "partial_fractions", mapping: str = "partition", dtype: npt.DTypeLike = np.float64,
        threads: int = 0, chunk: int = 0,
    ) -> None:  # fmt: skip
        self.problem, self.dtype = problem_of(problem), floating_of(dtype, "separable")
        threads = whole(threads, "separable: threads", 0, " (0: all that the device has)")
        chunk = whole(chunk, "separable: chunk", 0, " (0: 8 rows)")
        self.device = device_of(device)
        self.program: Program = make_program(self.problem, form)
        self._machine = Machine(self.device, self.program, mapping, dtype, np.zeros(1), threads, chunk)
        self._mean = [DeviceArray.zeros(self.device, (1,), dtype) for _ in range(2)]
        self._kept: tuple[Any, Any, Steps] | None = None
        self._calls = self._middle()

    def _middle(self) -> list[Call]:
        plane = 0 if self.problem.singular else -1
        calls = [self._machine.stage(stage, plane) for stage in self.program.stages]
        if not self.problem.singular:
            return calls
        first, last = (self._machine.settle(mean, 0) for mean in self._mean)
        return [*first, *calls, *last]

    def steps(self, f: DeviceArray, u: DeviceArray) -> Steps:
        """Return the solve for right-hand sides in ``f``, with the solution in ``u`` (which may be ``f``).

        Both have the shape `Separable.shape`, and the type of the solver.
        """
        for name, array in (("f", f), ("u", u)):
            if array.shape != self.problem.shape or array.dtype != self.dtype:
                raise SolverError(
                    f"{name} has shape {array.shape} and type {array.dtype}; the problem has {self.problem.shape} "
                    f"(columns, rows), the solver {self.dtype}"
                )
        items = [self._machine.load(f), *self._calls, self._machine.store(u)]
        means = [mean.buffer for mean in self._mean]
        return Steps(self.device, items, [f.buffer, u.buffer], [u.buffer, *means])

    def __call__(self, f: Any, out: Any = None) -> Any:
        """Return the solution for a right-hand side, an array or dat of shape ``(n, m)``.

        Parameters
        ----------
        f
            Right-hand side: of NumPy, of the device's library, or a dat.
        out
            Where the solution goes, may be ``f``; of the shape of the problem and the type of the solver. By default
            a new array of the kind of ``f``.

        Raises
        ------
        SolverError
            If a shape or type does not fit.
        DatError
            If ``out`` is no array or dat, has another shape or type, or is read-only; or if an array is in the memory
            of another device.
        """
        check_out(out, self.problem.shape, self.dtype)
        if isinstance(f, np.ndarray) and (out is None or isinstance(out, np.ndarray)) and not self.device.shared:
            values, steps = self._inside
            self._kept = (values, values, steps)
            return values.solved(f, out, steps)
        source = self._array(f)
        target = source if out is f else self._array(out) if out is not None else self._new()
        if self._kept is None or self._kept[0] is not f or self._kept[1] is not out or source.copied or out is None:
            self._kept = (f, out, self.steps(source, target))
        self._kept[2]()
        if out is None:
            return target.host().copy() if isinstance(f, np.ndarray | Sequence) else target.array()
        if isinstance(out, Dat):
            out.version += 1
        elif target.copied:
            out[...] = target.host() if isinstance(out, np.ndarray) else target.array()
        return out

    @cached_property
    def _inside(self) -> tuple[HostValues, Steps]:
        """Memory of the device for arrays of the host which it cannot use, and the solve in it."""
        values = HostValues(self.device, self.problem.shape, self.dtype)
        return values, self.steps(values.array, values.array)

    def _array(self, values: Any) -> DeviceArray:
        if not isinstance(values, np.ndarray | Sequence) or getattr(values, "dtype", None) == self.dtype:
            return DeviceArray.of(self.device, values)
        found = DeviceArray.of(self.device, real_values(values, self.dtype))
        found.copied = True  # what the user writes later does not show in it
        return found

    def _new(self) -> DeviceArray:
        return DeviceArray.zeros(self.device, self.problem.shape, self.dtype)

    @property
    def removed(self) -> float:
        """The weighted mean taken away from the last right-hand side of a singular problem (waits); else 0."""
        return float(self._mean[0].host()[0]) if self.problem.singular else 0.0

    @property
    def trace(self) -> list[Timed]:
        """Which stage ran where, and its seconds in the solves with the last arrays, all together.

        Devices that work asynchronously measure while ``device.profile`` is set.
        """
        seconds = self._kept[2].seconds if self._kept is not None else {}
        found = []
        for stage in self.program.stages:
            systems = int(getattr(stage, "roots", np.zeros(0)).size)
            found.append(Timed(stage.phase, stage.level, stage.kernel, self.device.name, systems,
                               seconds.get(stage.name, 0.0)))  # fmt: skip
        return found

    def describe(self) -> str:
        """Return one line: form, mapping, levels, systems."""
        program, shape = self.program, self._machine.shape
        how = f"{shape.mapping}, {shape.items} items a system" if self.device.items else f"{shape.lanes} lanes"
        return (
            f"block cyclic reduction of {self.problem.shape[0]} columns of {self.problem.shape[1]} unknowns, "
            f"{program.form}, {program.levels} levels, {program.solves} tridiagonal systems; {self.device.name}: {how}"
        )

    def __str__(self) -> str:
        return self.describe()


def problem_of(given: Separable | SeparableEquation) -> Separable:
    """Return the discrete problem of what a solver is given."""
    if isinstance(given, SeparableEquation):
        return given.problem
    if not isinstance(given, Separable):
        raise SolverError(f"separable: a problem is a Separable or a SeparableEquation, not {given!r}")
    return given
