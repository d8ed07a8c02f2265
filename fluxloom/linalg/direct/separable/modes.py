r"""Three directions: a Fourier transform along a periodic one, and in each mode a separable equation in the other two.

.. math::
    u_{xx} + L u = f, \qquad (L + \beta_l) \hat u_l = \hat f_l, \qquad
    \beta_l = -\frac{4}{h^2} \sin^2 \frac{\pi l}{N}

``L`` is any separable operator. ``beta_l`` is added to the diagonal of ``B`` alone, so all modes share one table of
roots; the real and the imaginary part of a mode are two right-hand sides. These *planes* are cut into batches, which a
device and the processor share by level, see `fluxloom.linalg.direct.separable.batches`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fluxloom.core.errors import SolverError
from fluxloom.device.base import Call, Device
from fluxloom.device.buffer import View
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.arrays import DeviceArray
from fluxloom.dsl.run.primitive import Steps
from fluxloom.linalg.arguments import device_of, floating_of, whole
from fluxloom.linalg.direct.separable.batches import Around, Batch, pipeline
from fluxloom.linalg.direct.separable.coefficients import Separable
from fluxloom.linalg.direct.separable.equation import SeparableEquation
from fluxloom.linalg.direct.separable.native import Machine
from fluxloom.linalg.direct.separable.program import make_program
from fluxloom.linalg.direct.separable.solver import Timed, problem_of
from fluxloom.linalg.direct.separable.values import HostValues
from fluxloom.linalg.direct.transforms import Transforms

__all__ = ["PeriodicSolver"]

_COUNTS = (1, 2, 3, 4, 6, 8)
"""Numbers of batches that are tried."""


class PeriodicSolver:
    """Solves ``u_xx + L u = f`` with a periodic first axis.

    Parameters
    ----------
    problem
        ``L``, discrete or not, in the second and the third axis.
    nodes
        Unknowns along the first axis.
    spacing
        Distance between them.
    device
        Transforms, and runs the levels below ``split``.
    host
        Runs the others, while ``device`` is busy with other batches; a processor by default.
    split
        First level of ``host``; None: ``device`` does all.
    batches
        How many; "auto": the number with the least measured time of a solve.
    form, mapping, dtype, threads, library
        As for `SeparableSolver` and `Transforms`.

    Attributes
    ----------
    count
        Batches.
    tried
        With "auto": seconds of a solve for each number of batches that was tried.
    removed
        The weighted mean taken away from the last right-hand side of a singular problem, else 0.

    Raises
    ------
    SolverError
        If a number makes no sense, or form or mapping do not fit.
    """

    def __init__(
        self, problem: Separable | SeparableEquation, nodes: int, spacing: float,
        device: Device | Context | str | None = None, *, host: Device | Context | str | None = None,
        split: int | None = None, batches: int | Literal["auto"] = "auto",
        form: str = "partial_fractions", mapping: str = "partition", dtype: npt.DTypeLike = np.float64,
        threads: int = 0, library: str = "auto",
    ) -> None:  # fmt: skip
        threads = whole(threads, "separable: threads", 0, " (0: all that the device has)")
        nodes = whole(nodes, "separable: nodes", 3)
        if not spacing > 0:
            raise SolverError(f"{nodes} periodic nodes {spacing} apart: give a distance above 0")
        self.problem, self.nodes, self.dtype = problem_of(problem), nodes, floating_of(dtype, "separable")
        self.shape = (self.nodes, *self.problem.shape)
        self.program = make_program(self.problem, form)
        self.split = self.program.levels if split is None else int(split)
        if not 0 <= self.split <= self.program.levels:
            raise SolverError(f"split {split!r}: a level from 0 to {self.program.levels}, or None")
        self.device = device_of(device)
        self.host = self.device if self.split == self.program.levels else device_of(host)
        self._mapping, self._threads = mapping, threads
        self.modes = self.nodes // 2 + 1
        self.shifts = -((2 / spacing * np.sin(np.pi * np.arange(self.modes) / self.nodes)) ** 2)
        self._open(library, threads)
        limit = self.modes
        if batches != "auto" and not 1 <= int(batches) <= limit:
            raise SolverError(f"{batches!r} batches of {limit} modes: from 1 to {limit}, or 'auto'")
        self.tried: dict[int, float] = {}
        self.count = self._tuned() if batches == "auto" else int(batches)
        self._batches = self._make(self.count)

    def _open(self, library: str, threads: int) -> None:
        """Take memory and make the transforms."""
        workers = threads or int(getattr(self.device, "threads", 1))
        transforms = Transforms(self.device, threads=workers, library=library)
        self._values = HostValues(self.device, self.shape, self.dtype)
        f = self._values.array
        shape, kind = transforms.spectrum("dft", (0,), self.shape, self.dtype)
        self._spectrum = DeviceArray.zeros(self.device, shape, kind)
        self._scale = 1.0 / transforms.scale("dft", (self.nodes,))
        ends = [f.buffer, self._spectrum.buffer]
        forward = transforms.forward("dft", (0,), f, self._spectrum)
        backward = transforms.backward("dft", (0,), self._spectrum, f)
        self._forward = Steps(self.device, forward, ends, ends[1:])
        self._backward = Steps(self.device, backward, ends, ends)
        self._means = [DeviceArray.zeros(self.device, (1,), self.dtype) for _ in range(2)]

    def _make(self, count: int) -> list[Batch]:
        bounds = np.linspace(0, self.modes, count + 1).astype(int).tolist()
        return [self._batch(low, high) for low, high in pairwise(bounds)]

    def _batch(self, low: int, high: int) -> Batch:
        """Return the batch of some modes: their real parts, then their imaginary parts, which mode 0 has not."""
        parts = ((0, low), (1, max(low, 1)))
        shifts = np.concatenate([self.shifts[first:high] for _, first in parts])
        given = self.program, self._mapping, self.dtype, shifts
        near = Machine(self.device, *given, self._threads)
        far = near if self.split == self.program.levels else Machine(self.host, *given, self._threads)
        before: list[Call] = []
        after: list[Call] = []
        place, singular = 0, self.problem.singular and low == 0
        for part, first in parts:
            if high > first:
                values = self._part(part, first, high)
                before.append(near.load(values, place, self._scale))
                after.append(near.store(values, place))
                place += high - first
        memory = [self._spectrum.buffer]
        if singular:
            before += near.settle(self._means[0], 0)
            after = [*near.settle(self._means[1], 0), *after]
            memory += [mean.buffer for mean in self._means]
        around = Around(tuple(before), tuple(after), (self._spectrum.buffer,), tuple(memory))
        return Batch(self.program, near, far, self.split, 0 if singular else -1, around)

    def _part(self, part: int, low: int, high: int) -> DeviceArray:
        """Return the real (0) or imaginary (1) parts of some modes as an array with gaps."""
        n, m = self.problem.shape
        size = self.dtype.itemsize
        steps = (2 * n * m * size, 2 * m * size, 2 * size)
        view = View((high - low, n, m), self.dtype, steps, low * steps[0] + part * size)
        return DeviceArray(self.device, self._spectrum.buffer, view)

    def _tuned(self) -> int:
        """Return the number of batches with the least time; one where only one device works."""
        if self.split == self.program.levels:
            return 1
        for count in _COUNTS:
            if count > self.modes:
                break
            self._batches = self._make(count)
            self._solve()  # loads code
            self.tried[count] = self.seconds(2)
        return min(self.tried, key=lambda count: self.tried[count])

    def _solve(self) -> None:
        self._forward()
        pipeline(self._batches)
        self._backward()

    def __call__(self, f: npt.ArrayLike, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Return the solution for a right-hand side of shape ``(nodes, n, m)`` in host memory.

        Raises
        ------
        SolverError
            If the shape does not fit.
        DatError
            If ``out`` has another shape or type, or is read-only.
        """
        return self._values.solved(f, out, self._solve)

    def describe(self) -> str:
        """Return one line: modes, batches, form, levels, which of them run where."""
        program = self.program
        where = f", from level {self.split} on {self.host.name}" if self.split < program.levels else ""
        return (
            f"Fourier transform of {self.nodes} periodic nodes; block cyclic reduction of {self.modes} modes in "
            f"{self.count} batches, {self.problem.shape[0]} columns of {self.problem.shape[1]} unknowns, "
            f"{program.form}, {program.levels} levels; on {self.device.name}{where}"
        )

    def __str__(self) -> str:
        return self.describe()

    def seconds(self, repeats: int = 3) -> float:
        """Return the least time of some solves, right-hand side and solution on the device (the values are lost)."""
        return min(self.device.elapsed(self._solve) for _ in range(repeats))

    def measure(self, f: npt.ArrayLike) -> list[Timed]:
        """Solve batch by batch, with waits after each part; return which stage ran where and how long, all batches."""
        self._values.load(f)
        self._forward()
        found: dict[tuple[str, int, str, str], list[float]] = {}
        for batch in self._batches:
            for one in batch.measure():
                sums = found.setdefault((one.phase, one.level, one.kernel, one.device), [0.0, 0.0])
                sums[0] += one.systems
                sums[1] += one.seconds
        return [Timed(*key, int(systems), seconds) for key, (systems, seconds) in found.items()]

    @property
    def removed(self) -> float:
        """The weighted mean taken away from the last right-hand side of a singular problem (waits); else 0."""
        return float(self._means[0].host()[0]) if self.problem.singular else 0.0
