"""One format of Poisson's equation with finite elements, built, checked and timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.core.dtypes import SoA
from fluxloom.core.errors import FluxloomError, PlanError
from fluxloom.device.base import Device
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.declare.schedule import RACE_STRATEGIES, Schedule
from fluxloom.dsl.run.loop import Loop
from fluxloom.fe.cells.dofs import Dofs
from fluxloom.fe.global_matrix import FORMATS, GlobalFormat, GlobalMatrix
from fluxloom.fe.poisson import Integration, LocalMatrices, MatrixFree
from fluxloom.fe.spaces import LagrangeSpace
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.operators import BuiltPreconditioner, Operator, steps_of
from fluxloom.linalg.precond.ssor import SSOR
from fluxloom.linalg.status import Stop
from fluxloom.mesh.data.mesh import MeshData
from fluxloom.mesh.ranks.bind import bind
from fluxloom.perf.stopwatch import Run, Stopwatch

__all__ = ["ALL_FORMATS", "Problem", "Trial", "assembly_rows", "measure_format"]

ALL_FORMATS = ("local", "matrix_free", *FORMATS)
"""What the benchmark knows, in the order of its tables."""

_EPSILONS = 4096.0
"""By how many roundings, relative to the largest, values of a product may differ from those of another format."""

Form = LocalMatrices | MatrixFree | GlobalMatrix


@dataclass(frozen=True, eq=False)
class Problem:
    """Mesh and numbers of one order, and how things run.

    Attributes
    ----------
    data, dofs
        The mesh on the host, and its degrees of freedom.
    dtype
        Of coordinates, matrices and vectors.
    context
        Makes a context: formats have one each, so that plans and tables of one do not outlive it.
    rounds, iterations
        Timed rounds, and iterations of conjugate gradients in each.
    """

    data: MeshData
    dofs: Dofs
    dtype: str
    context: Callable[[], Context]
    rounds: int
    iterations: int

    @property
    def fixed(self) -> npt.NDArray[np.bool_]:
        """Values are prescribed on the whole boundary."""
        return self.dofs.on(list(self.dofs.patches))

    def space(self) -> LagrangeSpace:
        """Return the space in a new context."""
        return LagrangeSpace.of(bind(self.data, self.context(), dtype=self.dtype), self.dofs)

    def build(
        self, space: LagrangeSpace, form: str, integration: Integration = "A", schedule: Schedule | None = None
    ) -> Form:
        """Return the operator in a format."""
        if form == "matrix_free":
            return MatrixFree(space, fixed=self.fixed)
        if form == "local":
            return LocalMatrices(space, 1.0, self.fixed, integration, layout=_side_by_side(space.context.device))
        chosen: GlobalFormat = next(name for name in FORMATS if name == form)
        return GlobalMatrix(space, 1.0, self.fixed, integration, chosen, schedule=schedule)

    def seconds(self, context: Context, run: Run) -> tuple[float, float]:
        """Return the median and the least time of a call over the rounds."""
        watch = Stopwatch(self.rounds, wait=context.device.synchronize)
        times = [watch.round(run) for _ in range(self.rounds)]
        return median(times), min(times)


def _side_by_side(device: Device) -> SoA | None:
    """Return the layout in which work items read an entry of all cells together (the study's transposed one)."""
    return SoA() if device.items else None


@dataclass(frozen=True, eq=False)
class Trial:
    """What came of a format: a row of the record, its product's loops, and the values of the product."""

    row: dict[str, Any]
    product: Sequence[Loop]
    values: npt.NDArray[np.float64]


def measure_format(problem: Problem, form: str, copy_gbs: float, known: npt.NDArray[np.float64] | None) -> Trial:
    """Build a format and time its product and iterations.

    Parameters
    ----------
    problem
        What is solved.
    form
        One of `ALL_FORMATS`.
    copy_gbs
        Copy bandwidth, for the share of it.
    known
        Values of the product in another format, with which those of this one have to agree.

    Raises
    ------
    FluxloomError
        When they do not.
    """
    space = problem.space()
    context = space.context
    built, setup = Stopwatch(wait=context.synchronize).result(lambda: problem.build(space, form))
    operator: Operator = built.matrix if isinstance(built, GlobalMatrix) else built
    rng = np.random.default_rng(3)
    x, y, b = (context.dat(space.rows, name=name, dtype=problem.dtype) for name in "xyb")
    x.write(rng.standard_normal(space.rows.size).astype(problem.dtype))
    loops = [step for step in steps_of(operator.product(x, y)) if isinstance(step, Loop)]
    seconds, best = problem.seconds(context, lambda: [loop() for loop in loops])
    values = y.read().astype(np.float64)
    error = _checked(form, values, known, problem.dtype)
    nbytes = sum(loop.useful_bytes for loop in loops)
    gbs = 1e-9 * nbytes / seconds
    for step in built.load(x, b):
        step()
    row = {
        "order": problem.dofs.element.order, "format": form, "setup_seconds": setup,
        "entries": built.matrix.entries if isinstance(built, GlobalMatrix) else None,
        "memory_mb": 1e-6 * _memory(built), "product_ms": 1e3 * seconds,
        "product_best_ms": 1e3 * best, "product_mb": 1e-6 * nbytes,
        "product_gbs": gbs, "percent_of_copy": 100.0 * gbs / copy_gbs if copy_gbs else None, "difference": error,
        **_iterations(problem, operator, b, "jacobi", built.jacobi),
    }  # fmt: skip
    if isinstance(built, GlobalMatrix):
        row |= _iterations(problem, operator, b, "ssor", lambda: SSOR().build(operator))
    return Trial(row, loops, values)


def _checked(
    form: str, values: npt.NDArray[np.float64], known: npt.NDArray[np.float64] | None, dtype: str
) -> float | None:
    """Return by how much a product differs from that of another format, relative to its largest value."""
    if known is None:
        return None
    error = float(np.abs(values - known).max() / np.abs(known).max())
    if not error <= _EPSILONS * np.finfo(dtype).eps:
        raise FluxloomError(f"fem: the product of the format {form!r} differs by {error:.2e} from that of the first")
    return error


def _memory(built: Form) -> int:
    """Return the bytes that a format keeps for its products and for its assembly, the coordinates not among them."""
    cells = built.space.map.table.nbytes
    if isinstance(built, MatrixFree):
        return cells
    if isinstance(built, LocalMatrices):
        return cells + built.matrices.nbytes
    store, n = built.matrix.pattern.store, built.space.dofs.element.size
    rows = store.start.nbytes + (0 if store.position is None else store.length.nbytes + store.position.nbytes)
    values = store.places * built.matrix.values.scalar.size
    return values + store.index.nbytes + rows + cells * n


def _iterations(
    problem: Problem, operator: Operator, b: Dat, name: str, make: Callable[[], BuiltPreconditioner]
) -> dict[str, Any]:
    """Return iterations of conjugate gradients a second, and the set-up of the preconditioner."""
    context = b.context
    watch = Stopwatch(wait=context.synchronize)
    built, setup = watch.result(make)
    u = Dat(b.set, name="u", dtype=problem.dtype)
    stop = Stop(rtol=1e-30, iterations=problem.iterations)
    solver = ConjugateGradient(operator, b, u, preconditioner=built, stop=stop, interval=min(10, problem.iterations))
    rates = []
    for _ in range(1 + problem.rounds):
        u.write(np.zeros(b.set.size, dtype=problem.dtype))
        status, seconds = watch.result(solver.solve)
        rates.append(status.iterations / seconds)
    return {
        f"{name}_iterations_per_second": median(rates[1:]),
        f"{name}_iterations_per_second_best": max(rates[1:]),
        f"{name}_setup_seconds": setup,
    }


def assembly_rows(
    problem: Problem, form: str, letters: Sequence[Integration], strategies: bool
) -> list[dict[str, Any]]:
    """Return what assembly takes for each order of integration; of the first one with every race strategy, if asked.

    A strategy that a format or device does not allow is left out.
    """
    if form == "matrix_free":
        return []
    tried: list[tuple[Integration, str | None]] = []
    tried.extend((letter, None) for letter in letters)
    if strategies and form not in ("local", "lazy"):
        tried.extend((letters[0], name) for name in RACE_STRATEGIES)
    rows: list[dict[str, Any]] = []
    for letter, strategy in tried:
        space = problem.space()
        try:
            built = problem.build(space, form, letter, None if strategy is None else Schedule(strategy=strategy))
        except PlanError:
            continue
        assert not isinstance(built, MatrixFree)
        run = built.assemble if isinstance(built, GlobalMatrix) else built.assembly
        seconds, best = problem.seconds(space.context, run)
        loops = built.assembly.loops if isinstance(built, GlobalMatrix) else [built.assembly]
        racing = next((loop for loop in loops if loop.races.racing), None)
        rows.append({
            "order": problem.dofs.element.order, "format": form, "integration": letter,
            "strategy": "direct" if racing is None else racing.strategy,
            "chosen_by": "cost model" if strategy is None and not space.context.schedule.strategy else "option",
            "ms": 1e3 * seconds, "best_ms": 1e3 * best,
            "million_cells_per_second": 1e-6 * space.mesh.cells.size / seconds,
        })  # fmt: skip
    return rows
