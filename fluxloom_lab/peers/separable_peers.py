"""What block cyclic reduction is compared with: SciPy's sparse factors of the whole matrix."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np

from fluxloom.machine.system import package_version
from fluxloom_lab.bench.base import Tell
from fluxloom_lab.problems.separable_problem import Manufactured

__all__ = ["factors"]


def factors(given: Manufactured, tell: Tell) -> dict[str, Any]:
    """Return the times of SuperLU for one problem: factors once, then a solve; and its errors."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    begin = time.perf_counter()
    found = splu(csc_matrix(given.problem.matrix()))
    prepared, times, u = time.perf_counter() - begin, [], given.right
    for _ in range(3):
        begin = time.perf_counter()
        u = found.solve(given.right.reshape(-1))
        times.append(time.perf_counter() - begin)
    forward, backward = given.errors(np.asarray(u).reshape(given.right.shape))
    name, n = f"scipy {package_version('scipy')} splu", given.right.shape[0]
    tell(f"{n} x {n}, {name}: {1e3 * median(times):.4g} ms, prepared in {prepared:.2g} s, forward {forward:.1e}")
    return {
        "n": n, "name": name, "seconds": median(times), "prepare_seconds": prepared, "forward": forward,
        "backward_eps": backward,
    }  # fmt: skip
