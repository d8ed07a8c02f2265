"""The benchmark of extruded meshes: one Poisson problem by transforms, directly, and as a whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_array

from fluxloom.core.errors import CaseError
from fluxloom.device.bandwidth import meter_for
from fluxloom.dsl.context import Context
from fluxloom.dsl.declare.dats import Dat
from fluxloom.dsl.run.loop import Loop
from fluxloom.linalg.direct.extruded.batch import GradientBatch, PlaneGradients
from fluxloom.linalg.direct.extruded.frequencies import WIDTH
from fluxloom.linalg.direct.extruded.operator import ShiftedMatrix
from fluxloom.linalg.direct.extruded.plane import ExtrudedMatrix
from fluxloom.linalg.direct.extruded.solver import ExtrudedPoisson
from fluxloom.linalg.direct.extruded.tuning import ExtrudedTuning
from fluxloom.linalg.krylov.conjugate_gradient import ConjugateGradient
from fluxloom.linalg.matrix.distribute import distributed_matrix
from fluxloom.linalg.matrix.matrix import SparseMatrix
from fluxloom.linalg.precond.approximate_inverse import ApproximateInverse
from fluxloom.linalg.precond.jacobi import Jacobi
from fluxloom.linalg.status import Status, Stop
from fluxloom.machine.ranks import rank_devices_of
from fluxloom_lab.bench.base import Record, Tell, box_from_text
from fluxloom_lab.bench.options import Ranked, cells_option, rounds_option
from fluxloom_lab.bench.rounds import slowest, stopwatch, summed
from fluxloom_lab.problems.boxes import usual_side
from fluxloom_lab.problems.matrices import lattice_laplacian
from fluxloom_lab.strategies.sparse_factors import SparseFactors

__all__ = ["ExtrudedBench"]

ROUNDS, REPEATS = 3, 10
SIDE_PYTHON, SIDE_CPU, SIDE_GPU = 6, 64, 192
TOLERANCE, MOST = 1e-8, 5000
DIRECT_MOST = 50_000
"""Cells of a plane above which sparse factors take too long to make."""
_SEED = 1


@dataclass(frozen=True)
class _Problem:
    """Rows of the plane on this rank, and a solution that is known: ``(rows, planes)``, with its right-hand side."""

    context: Context
    plane: Any
    planes: int
    spacing: float
    areas: npt.NDArray[np.float64]
    first: int
    wanted: npt.NDArray[np.float64]
    right: npt.NDArray[np.float64]

    @property
    def cells(self) -> int:
        """Of all ranks."""
        return int(self.plane.shape[1]) * self.planes

    def solver(self, **choices: Any) -> ExtrudedPoisson:
        """Return a solver with the right-hand side."""
        matrix = ExtrudedMatrix(self.plane, self.areas, planes=self.planes, spacing=self.spacing)
        found = ExtrudedPoisson(self.context, matrix, stop=Stop(rtol=TOLERANCE, iterations=MOST), **choices)
        found.b.write(self.right)
        return found


@dataclass(frozen=True)
class ExtrudedOptions(Ranked):
    """Options of the benchmark ``extruded``."""

    cells: str = cells_option("Size of the box: N or NX,NY,NZ.")
    rounds: int = rounds_option()


class ExtrudedBench:
    """Solves ``-L x = b`` in a box with zeros around it and one periodic direction, from zero to 1e-8.

    The plane is kept as any other sparse matrix, ``x`` are random numbers. One product and one iteration for all
    frequencies of a batch are compared with a matrix for each frequency; solves by transforms with conjugate
    gradients, by transforms with sparse factors, and by conjugate gradients for the whole matrix with each other.
    Times are those of the slowest rank, the median of several; set-up comes before them.
    """

    title = "Poisson's equation on an extruded mesh: Fourier transforms and plane solves, against the whole matrix"
    options = ExtrudedOptions

    def run(self, options: ExtrudedOptions, tell: Tell) -> Record:
        """Measure."""
        context, comm = options.context(), options.comm
        shape = box_from_text(options.cells, usual_side(context, SIDE_PYTHON, SIDE_CPU, SIDE_GPU))
        if prod(shape) >= 2**31:
            raise CaseError(f"--cells {options.cells!r}: a box of fewer than 2**31 cells is wanted")
        tell(f"building {shape[2]} x {shape[1]} cells in the plane, {shape[0]} planes, on {context!r}")
        problem = _problem(context, shape)
        meter = meter_for(context.device)
        copies = [meter.measure().copy_gbs]
        parts = {} if context.distributed else _parts(problem, tell)
        rows = []
        for name, run in _methods(problem, options, tell).items():
            row = run()
            tell(f"{name}: {row['iterations']} iterations, {row['seconds']:.4g} s, set-up {row['setup_seconds']:.3g} "
                 f"s, error {row['error']:.1e}")  # fmt: skip
            rows.append({"method": name} | row)
        copies.append(meter.measure().copy_gbs)
        crew, solved = rank_devices_of(context), [row for row in rows if row["converged"]]
        if not solved:
            raise CaseError(f"extruded: no method solved the problem of {shape}")
        best = min(solved, key=lambda row: row["seconds"])
        return Record(
            case="extruded",
            model="Fourier transforms along one direction, conjugate gradients in the plane",
            **crew.place,
            precision="float64",
            sizes={"cells": prod(shape)},
            copy_gbs=summed(comm, median(copies)),
            seconds=best["seconds"],
            metrics={
                "seconds_per_solve": best["seconds"], "best": best["method"], "shape": list(shape), "rtol": TOLERANCE,
                "threads": context.threads, "width": WIDTH, "parts": parts, "methods": rows,
            },
            loops=(),
            command=options.command,
        )  # fmt: skip


def _problem(context: Context, shape: tuple[int, ...]) -> _Problem:
    """Return the problem: unit spacing in all directions; each rank has consecutive rows of the plane."""
    planes, total, comm = shape[0], shape[1] * shape[2], context.comm
    mine = range(comm.rank * total // comm.size, (comm.rank + 1) * total // comm.size)
    plane = csr_array(lattice_laplacian(shape[1:], mine))
    wanted = np.random.default_rng(_SEED).standard_normal((total, planes))
    own = wanted[mine.start : mine.stop]
    right = plane @ wanted + 2 * own - np.roll(own, 1, axis=1) - np.roll(own, -1, axis=1)
    return _Problem(context, plane, planes, 1.0, np.ones(len(mine)), mine.start, own.copy(), right)


# ------------------------------------------------------------------------------------------ parts
def _parts(problem: _Problem, tell: Tell) -> dict[str, Any]:
    """Return what a product and an iteration take with one matrix for a batch, and with one for each system."""
    solver = problem.solver()
    batch = max(solver.batches, key=lambda one: one.width)
    if not isinstance(batch, GradientBatch) or not isinstance(batch.operator, ShiftedMatrix):
        return {}
    operator, rows, context = batch.operator, batch.operator.rows, problem.context
    width, random = operator.systems, np.random.default_rng(_SEED)
    x, y = (context.dat(rows, random.standard_normal((rows.size, width)), name) for name in "xy")
    singles = [operator.member(float(shift)) for shift in operator.shifts]
    vectors = [[context.dat(rows, random.standard_normal(rows.size), name) for name in "xy"] for _ in singles]
    unified = [operator.product(x, y)]
    naive = [matrix.product(pair[0], pair[1]) for matrix, pair in zip(singles, vectors, strict=True)]
    batch.b.write(x.read())
    alone = [_iterations(matrix, *pair) for matrix, pair in zip(singles, vectors, strict=True)]
    batch.solve(1.0)
    per = 1e9 / (rows.size * width)
    timed = {
        "product_unified": _repeated(context, unified), "product_naive": _repeated(context, naive),
        "iteration_unified": _repeated(context, [batch.solver.body]) / batch.solver.interval,
        "iteration_naive": _repeated(context, [one.body for one in alone]) / alone[0].interval,
    }  # fmt: skip
    useful = sum(loop.report().useful_bytes for loop in unified if isinstance(loop, Loop))
    found: dict[str, Any] = {f"{name}_ns": per * seconds for name, seconds in timed.items()}
    found |= {
        "systems": width,
        "product_gain": timed["product_naive"] / timed["product_unified"],
        "iteration_gain": timed["iteration_naive"] / timed["iteration_unified"],
        "product_useful_gbs": 1e-9 * useful / timed["product_unified"],
    }
    tell(
        f"{width} systems, ns a row and system: product {found['product_unified_ns']:.3g}, with a matrix each "
        f"{found['product_naive_ns']:.3g} ({found['product_gain']:.2f}x); iteration "
        f"{found['iteration_unified_ns']:.3g}, {found['iteration_naive_ns']:.3g} ({found['iteration_gain']:.2f}x)"
    )
    return found


def _iterations(matrix: SparseMatrix, b: Dat, x: Dat) -> ConjugateGradient:
    """Return a solver whose chain of iterations is ready."""
    solver = ConjugateGradient(matrix, b, x, preconditioner=Jacobi(), stop=Stop(rtol=1e-300, iterations=2))
    solver.solve()
    return solver


def _repeated(context: Context, steps: list[Any]) -> float:
    """Return the seconds that a list of loops or chains takes, the least of several rounds."""

    def run() -> None:
        for _ in range(REPEATS):
            for step in steps:
                step()

    run()
    return min(context.device.elapsed(run) for _ in range(ROUNDS)) / REPEATS


# ------------------------------------------------------------------------------------------ solves
def _methods(problem: _Problem, options: ExtrudedOptions, tell: Tell) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return what solves the problem, by name."""
    rounds, ranks = options.rounds or ROUNDS, problem.context.comm.size
    recipes = {"": Jacobi(), ", approximate inverse": ApproximateInverse()}
    tuned = PlaneGradients(tuning=ExtrudedTuning())
    found = {
        f"transforms and conjugate gradients{name}": _call(_solved, problem, rounds, {"method": PlaneGradients(recipe)})
        for name, recipe in recipes.items()
    }
    found["the same, tuned"] = _call(_tuned, problem, rounds, {"method": tuned}, tell)
    if ranks > 1:
        groups = max(k for k in range(1, ranks + 1) if ranks % k == 0 and k <= problem.planes // 2 + 1)
        found[f"the same in {groups} teams"] = _call(_solved, problem, rounds, {"groups": groups})
        found[f"tuned in {groups} teams"] = _call(
            _tuned, problem, rounds, {"groups": groups, "method": tuned}, tell
        )  # fmt: skip
    if problem.plane.shape[1] <= DIRECT_MOST:
        found["transforms and sparse factors"] = _call(_solved, problem, rounds, {"method": SparseFactors()})
    found["conjugate gradients for the whole"] = _call(_whole, problem, rounds)
    return found


def _call(function: Callable[..., dict[str, Any]], *arguments: Any) -> Callable[[], dict[str, Any]]:
    return lambda: function(*arguments)


def _solved(problem: _Problem, rounds: int, choices: dict[str, Any]) -> dict[str, Any]:
    solver, setup = stopwatch(problem.context).result(lambda: problem.solver(**choices))
    return {"setup_seconds": setup} | _measured(problem, rounds, solver.x, solver.solve)


def _tuned(problem: _Problem, rounds: int, choices: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Solve until the solver has found its best setting, and then measure."""
    start, zero = time.perf_counter(), np.zeros(problem.wanted.shape)
    solver = problem.solver(**choices)
    while not solver.tuned:
        solver.x.write(zero)
        solver.solve()
    setup = slowest(problem.context.comm, time.perf_counter() - start)
    tell(solver.describe())
    trials = [
        {"bounds": list(t.division.bounds), "better": t.division.better, "seconds": t.seconds, "imbalance": t.imbalance,
         "then": t.then} for t in solver.trace
    ]  # fmt: skip
    return {"setup_seconds": setup, "trials": trials} | _measured(problem, rounds, solver.x, solver.solve)


def _whole(problem: _Problem, rounds: int) -> dict[str, Any]:
    """Solve with the matrix of all cells."""
    start, context, n = time.perf_counter(), problem.context, problem.planes
    along = csr_array(sparse.eye_array(n) * 2 - _shifted(n, 1) - _shifted(n, -1))
    owned, total = problem.plane.shape
    own = sparse.eye_array(owned, total, k=problem.first)
    rows: Any = csr_array(sparse.kron(problem.plane, sparse.eye_array(n)) + sparse.kron(own, along))
    matrix = distributed_matrix(context, rows, name="whole")
    part = matrix.rows.part
    order = np.arange(rows.shape[0]) if part is None else part.numbers[: part.owned] - problem.first * n
    b, x = context.dat(matrix.rows, problem.right.ravel()[order], "b"), context.dat(matrix.rows, name="x", shape=())
    solver = ConjugateGradient(matrix, b, x, preconditioner=Jacobi(), stop=Stop(rtol=TOLERANCE, iterations=MOST))
    context.synchronize()
    setup = slowest(context.comm, time.perf_counter() - start)
    return {"setup_seconds": setup} | _measured(problem, rounds, x, solver.solve, order)


def _shifted(n: int, by: int) -> csr_array:
    k = np.arange(n)
    return csr_array((np.ones(n), (k, (k + by) % n)), shape=(n, n))


def _measured(
    problem: _Problem, rounds: int, x: Dat, solve: Callable[[], Status], order: npt.NDArray[Any] | None = None
) -> dict[str, Any]:
    """Return what solves from zero take, and how good the last one is."""
    context, comm = problem.context, problem.context.comm
    zero, seconds, status, watch = np.zeros(x.read().shape), [], None, stopwatch(context)
    for _ in range(2 + rounds):
        x.write(zero)
        status, taken = watch.result(solve)
        seconds.append(taken)
    assert status is not None
    wanted = problem.wanted if order is None else problem.wanted.ravel()[order]
    error = comm.reduce(np.array([np.abs(x.read() - wanted).max(initial=0.0)]), "max")
    return {
        "converged": status.converged,
        "iterations": status.iterations,
        "iterations_mean": float(status.each.mean()) if status.each.size else float(status.iterations),
        "relative_residual": status.relative,
        "error": float(error[0]),
        "first_seconds": seconds[0],
        "seconds": median(seconds[2:]),
        "ns_per_cell": 1e9 * median(seconds[2:]) / problem.cells,
    }
