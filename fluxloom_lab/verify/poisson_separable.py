"""Block cyclic reduction: errors of both forms with variable coefficients, and SciPy's factors beside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import spsolve

from fluxloom.dsl.context import Context
from fluxloom.linalg.direct.separable import SeparableSolver
from fluxloom_lab.problems.separable_problem import manufactured
from fluxloom_lab.verify.base import Check, Tell

__all__ = ["separable_checks"]

_BACKWARD = 100.0
_FORWARD = {"product": 1e-11, "partial_fractions": 5e-11}
_SIZES, _SIZES_FULL = ((1, 1), (2, 3), (13, 8), (63, 64)), ((31, 31), (100, 37), (127, 127), (511, 511))
_SOURCE = "random solution of order one, variable coefficients"


def separable_checks(context: Context, full: bool, tell: Tell) -> Iterator[Check]:
    """Yield errors of both forms, backward in units of eps and forward, and the distance from SciPy's solution."""
    for n, m in _SIZES + (_SIZES_FULL if full else ()):
        given = manufactured(n, m)
        direct = np.asarray(spsolve(csc_matrix(given.problem.matrix()), given.right.reshape(-1))).reshape(n, m)
        for form, tolerance in _FORWARD.items():
            found = SeparableSolver(given.problem, context, form=form, threads=context.threads)(given.right)
            forward, backward = given.errors(found)
            name = f"block cyclic reduction {n} x {m}, {form}"
            tell(f"{name}: forward {forward:.1e}, backward {backward:.3g} eps")
            yield Check(f"{name}: backward error in eps", backward, 0.0, _BACKWARD, _SOURCE)
            yield Check(f"{name}: forward error", forward, 0.0, tolerance, _SOURCE)
            off = float(np.abs(found - direct).max())
            yield Check(f"{name}: off SciPy's sparse direct solver", off, 0.0, tolerance, "scipy.sparse.linalg.spsolve")
