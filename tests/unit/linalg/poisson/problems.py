"""Problems with a known discrete solution."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from fluxloom.linalg.direct.poisson import Plan

ENDS = ("periodic", "dirichlet", "neumann", ("dirichlet", "neumann"), ("neumann", "dirichlet"))
CONSTANT = 0.75
"""Is added to the right-hand side of singular problems."""


def coordinates(n: int, ends: Any, centring: str, seed: int) -> np.ndarray:
    """Return faces or nodes at unequal distances for ``n`` unknowns."""
    pair = (ends, ends) if isinstance(ends, str) else ends
    count = n if centring == "cell" or "periodic" in pair else n - 1 + pair.count("dirichlet")
    return np.concatenate(([0.0], np.cumsum(np.random.default_rng(seed).uniform(0.2, 0.5, count))))


def condition(plan: Plan) -> float:
    """Return the largest eigenvalue over the smallest one that is not zero, in magnitude."""
    sums = reduce(np.add.outer, (one.spectrum for one in plan.problem.directions)).ravel() + plan.problem.shift
    sizes = np.sort(np.abs(sums))
    rest = sizes[1:] if plan.problem.singular else sizes
    scale = sum(np.abs(one.spectrum).max() for one in plan.problem.directions) + abs(plan.problem.shift)
    return float(scale / rest[0]) if rest.size else 1.0


def wanted(plan: Plan, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a random solution of a plan, and the right-hand side for it."""
    u = np.random.default_rng(seed).standard_normal(plan.shape)
    if plan.problem.singular:
        u -= np.average(u, weights=plan.volumes())
    f = (plan.matrix() @ u.ravel()).reshape(plan.shape) + plan.boundary()
    return u, f + CONSTANT * plan.problem.singular


def check(plan: Plan, solve: Any = None) -> None:
    """Compare a solution with the wanted one, to rounding times the condition; and what was removed."""
    u, f = wanted(plan)
    f = f.astype(plan.dtype)
    kept = f.copy()
    found = plan(f) if solve is None else solve(f)
    np.testing.assert_array_equal(f, kept)
    assert found.dtype == plan.dtype
    # LAPACK's quick eigenvectors (SciPy before 1.16) are orthogonal to rounding times their number
    dense = [plan.shape[axis] for axis, kind in plan.way.real if kind == "matrix"]
    bound = max([10, *dense]) * np.finfo(plan.dtype).eps * condition(plan) * max(1.0, np.abs(u).max())
    error = np.abs(found - u).max()
    assert error <= bound, f"{plan.way.describe()}: error {error:.2e}, bound {bound:.2e}"
    if plan.problem.singular:
        size = np.abs(f).max() * np.finfo(plan.dtype).eps * 10
        assert abs(plan.removed - CONSTANT) <= size
        assert abs(np.average(found, weights=plan.volumes())) <= bound
    else:
        assert plan.removed == 0.0
