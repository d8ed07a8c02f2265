"""A separable equation with variable coefficients whose discrete solution is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fluxloom.linalg.direct.separable import Rows, Separable

__all__ = ["Manufactured", "manufactured", "variable_rows"]


def variable_rows(n: int, shift: float) -> Rows:
    """Return the rows of ``d/dx(a u_x) + b u_x``, ``a = 1 + sin / 2``, ``b = 2 cos``, values given on both sides."""
    h = 1.0 / n
    faces, cells = np.arange(n + 1) * h, (np.arange(n) + 0.5) * h
    diffusion = 1.0 + 0.5 * np.sin(2.0 * np.pi * faces + shift)
    advection = 2.0 * np.cos(2.0 * np.pi * cells + shift)
    a = diffusion[:-1] / h**2 - advection / (2.0 * h)
    c = diffusion[1:] / h**2 + advection / (2.0 * h)
    b = -(diffusion[:-1] + diffusion[1:]) / h**2
    b[0] -= a[0]
    b[-1] -= c[-1]
    return Rows(a, b, c)


@dataclass(frozen=True, eq=False)
class Manufactured:
    """A problem with a known solution: random values of order one."""

    problem: Separable
    exact: npt.NDArray[np.float64]
    right: npt.NDArray[np.float64]

    def errors(self, found: npt.NDArray[Any]) -> tuple[float, float]:
        """Return the largest error, and the residual over size of matrix and solution in units of eps."""
        u = found.astype(np.float64)
        size = float(abs(self.problem.matrix()).sum(axis=1).max()) * float(np.abs(u).max())
        residual = float(np.abs(self.problem.times(u) - self.right).max())
        return float(np.abs(u - self.exact).max()), residual / size / float(np.finfo(found.dtype).eps)


def manufactured(n: int, m: int) -> Manufactured:
    """Return a problem of variable coefficients with ``n`` columns of ``m`` unknowns."""
    problem = Separable(variable_rows(m, 0.3), variable_rows(n, 1.1))
    exact = np.random.default_rng(n).standard_normal((n, m))
    return Manufactured(problem, exact, problem.times(exact))
