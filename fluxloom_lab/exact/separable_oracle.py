"""The program in NumPy with dense matrices: slow, plain, and what the devices are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.linalg.direct.separable.coefficients import Rows, Separable, null_weights
from fluxloom.linalg.direct.separable.jobs import Chains, Sums
from fluxloom.linalg.direct.separable.program import Program

__all__ = ["projected", "run", "settled"]

Values = npt.NDArray[np.float64]


def run(program: Program, f: npt.NDArray[Any]) -> Values:
    """Return the solution for a right-hand side ``f`` of shape ``(n, m)``; of zero mean in a singular problem."""
    problem = program.problem
    n, m = problem.shape
    u = np.zeros((program.columns, m))
    u[:n] = projected(problem, f)[0] if problem.singular else f
    for stage in program.stages:
        if isinstance(stage, Sums):
            _sum(stage, u)
        else:
            _chains(stage, u, problem.x)
    return settled(problem, u[:n]) if problem.singular else u[:n]


def projected(problem: Separable, f: npt.NDArray[Any]) -> tuple[Values, float]:
    """Return the right-hand side less its weighted mean, for which a singular problem has a solution, and that mean."""
    removed = float(null_weights(problem.y) @ f @ null_weights(problem.x))
    return f - removed, removed


def settled(problem: Separable, u: npt.NDArray[Any]) -> Values:
    """Return a solution of a singular problem with zero weighted mean."""
    return projected(problem, u)[0]


def _sum(stage: Sums, u: Values) -> None:
    for k, target in enumerate(stage.targets):
        part = slice(stage.begin[k], stage.begin[k + 1])
        u[target] = stage.keep * u[target] + stage.weights[part] @ u[stage.columns[part]]


def _chains(stage: Chains, u: Values, rows: Rows) -> None:
    """Take all jobs one step further at a time."""
    matrix, unit = rows.matrix().toarray(), np.eye(rows.length)
    v = np.einsum("js,jsi->ji", stage.weights, u[stage.columns])
    counts = np.diff(stage.begin)
    for k in range(stage.longest):
        jobs = np.flatnonzero(counts > k)
        entries = stage.begin[jobs] + k
        systems = matrix + stage.roots[entries, None, None] * unit
        systems[entries == stage.pinned, 0, 0] *= 2  # the singular one
        step = stage.gains[entries, None] * np.linalg.solve(systems, v[jobs, :, None])[..., 0]
        v[jobs] = np.where(stage.kept[jobs, None] > k, v[jobs] + step, step)
    u[stage.targets] = v
